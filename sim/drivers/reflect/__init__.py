# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Drives the host of a test port."""
