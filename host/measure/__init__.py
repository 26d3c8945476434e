# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads what a probe measures without recording frames."""
