# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Keeps one time for the whole probe."""
