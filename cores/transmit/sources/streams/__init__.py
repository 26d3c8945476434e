# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends streams: up to 16 a port, each with lengths, intervals and modifiers."""
