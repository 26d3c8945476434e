# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Models of oscillators, receivers, servos and the timebase."""
