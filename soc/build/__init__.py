# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Builds a bitstream, reports and generated files from a SoC."""
