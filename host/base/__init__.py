# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Holds what each part of the host takes: errors, units, documents, results in files, and the machine that it runs on."""
