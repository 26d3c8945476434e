# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Traffic is pure data here: headers, trains, streams, sets, traces, networks."""
