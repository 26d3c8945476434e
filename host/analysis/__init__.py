# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What arrays of stamps and sequence numbers say: capacity, delay, loss, calibration. Knows no probe."""
