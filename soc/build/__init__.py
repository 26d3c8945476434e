# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Tools around a SoC: from its configuration to a bitstream, reports and generated files."""
