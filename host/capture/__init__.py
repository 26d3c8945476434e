# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Captures on the host: blocks of the probe to records, and records to files."""
