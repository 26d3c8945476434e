# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Simulates a probe of 10 Gb/s in the harness of 1 Gb/s."""
