# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Traces of any length, of a file or made up, and the words that a probe replays them from."""
