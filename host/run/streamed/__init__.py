# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Ports that send what this host streams to them: traces, and configuration sets."""
