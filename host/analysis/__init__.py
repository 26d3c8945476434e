# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Works out capacity, delay, loss and calibration from arrays of stamps and sequence numbers. Knows no probe."""
