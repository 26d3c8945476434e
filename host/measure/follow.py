# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Chooses bins of histograms from what came: wider where values lie outside of them, narrower where they fill few."""

import numpy as np

from liteprobe.cores.formats import BIN_SHIFT_MAX, BINS, BinKind
from liteprobe.host.measure.delay_bins import roomy
from liteprobe.host.measure.monitor import ORIGINS, BinSetting, Histogram, PortMeasurement

ENOUGH = 100  # Values, to choose from.
OUTSIDE = 0.01  # Of all values may lie outside.
TAIL = 0.002  # Of all values at each end don't ask for bins.
FEW = 4  # Bins get narrower where values fill less than a fourth of them.
WIDER = 3  # Bits, where nothing is known of how far values go.
AFTER_MEAN = 4  # Times the mean: 98 % of times between frames that come at random.


def better(found: Histogram, port: PortMeasurement) -> BinSetting | None:
    """Return bins that show a histogram of all frames of ``port`` better; None: it is well as it is, or too few came."""
    if found.total < ENOUGH:
        return None
    if found.below + found.above > OUTSIDE * found.total:
        return _wider(found, port)
    return _narrower(found)


def _wider(found: Histogram, port: PortMeasurement) -> BinSetting | None:
    ends = [stream for stream in port.streams if stream.frames]
    if found.kind == BinKind.DELAY and ends:
        made = roomy(min(one.delay_min_ns for one in ends), max(one.delay_max_ns for one in ends))
        if made.shift > found.setting.shift or made.origin != found.setting.origin:
            return made
    shift = found.setting.shift + WIDER
    if found.kind == BinKind.ARRIVAL:
        span = port.counters["last_stamp"] - port.counters["first_stamp"]
        mean = max(span, 0) // found.total
        shift = max(shift, (AFTER_MEAN * mean // BINS[found.kind].regular).bit_length())
    shift = min(shift, BIN_SHIFT_MAX)
    origin = -(BINS[found.kind].regular << shift >> 1) if found.kind == BinKind.DELAY else 0
    return None if shift == found.setting.shift else BinSetting(origin, shift)


def _narrower(found: Histogram) -> BinSetting | None:
    so_far = found.below + np.cumsum(found.counts)
    first = int(np.searchsorted(so_far, TAIL * found.total, "right"))
    last = int(np.searchsorted(so_far, (1 - TAIL) * found.total))
    last = min(last, len(found.counts) - 1)
    if (last - first + 1) * FEW > len(found.counts):
        return None
    width = 1 << found.setting.shift
    least, most = (found.setting.origin + place * width for place in (first, last + 1))
    made = roomy(max(least, ORIGINS[found.kind][0]), most - 1, found.kind)
    return made if made.shift < found.setting.shift else None
