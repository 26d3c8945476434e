# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Truth for an emulated network, event by event, in plain integers, from docs/design/emulator.md and nothing else."""
