# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Chooses bins of histograms from what came, and moves those of delays while frames come; no value is lost by that."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import BIN_SHIFT_MAX, BIN_SLOT_WORDS, BINS, BinKind
from liteprobe.host.base.errors import UsageError
from liteprobe.host.device.registers import Registers
from liteprobe.host.measure.monitor import ORIGINS, BinSetting, Histogram, PortMeasurement, bins_at
from liteprobe.host.measure.percentiles import LEAST, MOST, Cells

PLACE = BINS[BinKind.DELAY]
FIRST_SETTING = BinSetting(0, 9)  # Before anything is known: 23 us in steps of 512 ns.
SHIFT_MIN = 3  # A tick: no stamp of a port is finer.
FINEST = {BinKind.LENGTH: 0, BinKind.DELAY: SHIFT_MIN, BinKind.ARRIVAL: SHIFT_MIN}
MOVES_MAX = 16  # Of the bins in a run: each reads them twice.


def fitting(least: int, most: int, kind: BinKind = BinKind.DELAY) -> BinSetting:
    """Return the narrowest bins that hold values from ``least`` to ``most`` (ns, or octets of `BinKind.LENGTH`).

    Raises UsageError when there are none.
    """
    regular = BINS[kind].regular
    for shift in range(FINEST[kind], BIN_SHIFT_MAX + 1):
        origin = least >> shift << shift
        if most < origin + (regular << shift):
            return BinSetting(origin, shift)
    raise UsageError(
        f"delays from {least} to {most} ns are too far apart for a histogram: give a range of up to "
        f"{regular << BIN_SHIFT_MAX} ns"
    )


def padded(least: int, most: int, kind: BinKind = BinKind.DELAY) -> BinSetting:
    """Return bins for values that were seen from ``least`` to ``most``, with some to spare for those that come."""
    regular = BINS[kind].regular
    span = max(most - least, regular << FINEST[kind] >> 1)
    first = max(least - span // 8, min(least, 0))  # What is never negative needs no bins there.
    return fitting(first, min(most + span // 2, first + (regular - 1 << BIN_SHIFT_MAX)), kind)


class DelayBins:
    """The histograms of delay of some slots of a port; ``moves``: how often they were moved."""

    def __init__(self, registers: Registers, port: int, slots: Sequence[int], setting: BinSetting) -> None:
        self._registers = registers
        self._prefix = f"port{port}_measure_delay_"
        self._memory = f"port{port}_bins"
        self._slots = tuple(slots)
        self.setting = setting
        self.moves = 0
        self._moved_from: dict[int, list[Cells]] = {slot: [] for slot in slots}
        self._base = {slot: np.zeros(PLACE.words, np.int64) for slot in slots}
        self._counts = dict(self._base)

    def write(self) -> None:
        """Sort by the bins as set; whoever calls it clears the meters, or counts what comes from then on."""
        values = {"origin": self.setting.origin, "shift": self.setting.shift}
        self._registers.write_many({self._prefix + name: value for name, value in values.items()})

    def look(self) -> None:
        """Read the bins, before a snapshot of what they must agree with: `settle`."""
        self._counts = self._read()

    def settle(self, values: Mapping[int, int]) -> None:
        """Make the bins those of a snapshot that was taken since ``look``, at which each slot had so many values."""
        if all(int(self._counts[slot].sum()) == total for slot, total in values.items()):
            return
        after = self._read()
        self._counts |= {slot: bins_at(self._counts[slot], after[slot], total) for slot, total in values.items()}

    def cells(self, slot: int, least_ns: int, most_ns: int) -> Cells:
        """Return the delays of a slot at the last look, none of which is outside of ``least_ns`` to ``most_ns``."""
        now = Cells.of_bins(self.setting, self._counts[slot] - self._base[slot])
        return now.and_those(*self._moved_from[slot]).within(least_ns, most_ns)

    def outside(self, slot: int) -> int:
        """Return how many delays at the last look lay outside of the bins, since these were moved."""
        counts = self._counts[slot] - self._base[slot]
        return int(counts[0] + counts[-1])

    def inside(self, slot: int) -> int:
        """Return how many lay in them."""
        counts = self._counts[slot] - self._base[slot]
        return int(counts[1:-1].sum())

    def move(self, setting: BinSetting) -> None:
        """Sort by other bins from now on, without clearing: what came before stays sorted by the old ones.

        What comes in the meantime is known to be a delay, and not more.
        """
        before = self._read()
        old, self.setting = self.setting, setting
        self.write()
        self._counts = self._read()
        for slot in self._slots:
            came = int((self._counts[slot] - before[slot]).sum())
            self._moved_from[slot].append(Cells.of_bins(old, before[slot] - self._base[slot]))
            self._moved_from[slot].append(Cells.of([(LEAST, MOST, came)]))
        self._base = self._counts
        self.moves += 1

    def _read(self) -> dict[int, NDArray[np.int64]]:
        """Return the bins of each slot as they are now."""
        found = {}
        for slot in self._slots:
            words = self._registers.read_memory(self._memory, BIN_SLOT_WORDS * slot + PLACE.first, PLACE.words)
            found[slot] = words.astype(np.int64)
        return found


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
        made = padded(min(one.delay_min_ns for one in ends), max(one.delay_max_ns for one in ends))
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
    made = padded(max(least, ORIGINS[found.kind][0]), most - 1, found.kind)
    return made if made.shift < found.setting.shift else None
