# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Serves a probe as an Open Traffic Generator."""
