# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Drives the capture, from records to a host that loses some."""
