# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What runs on and on beside a probe: its meters looked at again and again, metrics, the clock's discipline."""
