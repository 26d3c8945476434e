# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The meters of a port while streams come to it: set before, read while they come and at the end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from liteprobe.cores.formats import STREAM_ACCUMULATORS, STREAM_SLOT_WORDS
from liteprobe.host.device.registers import Registers
from liteprobe.host.errors import UsageError
from liteprobe.host.measure.delay_bins import FIRST_SETTING, MOVES_MAX, DelayBins, fitting, roomy
from liteprobe.host.measure.monitor import Monitor
from liteprobe.host.measure.percentiles import Cells
from liteprobe.host.measure.streams import Stream, named, stream_of, streams_memory
from liteprobe.host.run.receive import Meters
from liteprobe.host.traffic.load import receiver_settings
from liteprobe.host.traffic.stream import Stream as SentStream

SAMPLE = 32  # Delays after which bins are moved to where they are.
OUTSIDE_PARTS = 100  # More than one of so many delays outside of the bins: they are moved again.
BARE_SLOT = 0  # Of frames without a probe header.


@dataclass(frozen=True)
class Measured:
    """What a port has measured of a stream.

    Attributes
    ----------
    stream : Stream
        Its accumulators.
    delays : Cells
    outside : int
        Delays outside of the bins, since these were moved.
    """

    stream: Stream
    delays: Cells
    outside: int


class StreamMeters:
    """What measures the streams that come to a port.

    Parameters
    ----------
    registers : Registers
        Of the probe.
    port : int
    streams : sequence of SentStream
        That come to it.
    latency_range_ns : (int, int) or None
        Between what delays the histograms are; None: they follow what comes.

    Attributes
    ----------
    slots : dict of str to int
        Slot of each stream that is measured, by its name. Streams without a probe header are not told from one another: of
        several none is.
    is_saturated : bool
        A bin was full at the last look.

    Raises
    ------
    UsageError
        When the port can't measure them all.
    """

    def __init__(
        self,
        registers: Registers,
        port: int,
        streams: Sequence[SentStream],
        latency_range_ns: tuple[int, int] | None = None,
    ) -> None:
        self.port = port
        self._registers = registers
        self._monitor = Monitor(Meters(registers, port + 1), port)
        self._base = _base(streams, self._monitor.slots)
        self._settings = receiver_settings(streams, self._base, self._monitor.slots)
        self.slots = {one.name: one.stream_id - self._base + 1 for one in streams if one.probe}
        bare = [one for one in streams if not one.probe]
        if len(bare) == 1 and bare[0].used_stamp is not None:
            self.slots[bare[0].name] = BARE_SLOT
        self._stamped = {one.name for one in streams if one.used_stamp}  # The others have no delay.
        self._follows = latency_range_ns is None
        setting = fitting(*latency_range_ns) if latency_range_ns else FIRST_SETTING
        self._bins = DelayBins(registers, port, sorted(self.slots.values()), setting)
        self._before: dict[str, int] = {}
        self.is_saturated = False

    def begin(self) -> None:
        """Set the meters, and clear them."""
        self._monitor.watch(self._base, prbs=self._settings.prbs, places=self._settings.places)
        self._bins.write()
        self._monitor.clear()
        self._before = self._monitor.events()

    def events(self) -> dict[str, int]:
        """Return what became of the port's frames since ``begin``, by cause."""
        return {name: (value - self._before.get(name, 0)) % 2**64 for name, value in self._monitor.events().items()}

    def look(self) -> dict[str, Measured]:
        """Return what was measured of each stream, all of one moment; histograms lack the last few frames before it."""
        self._bins.look()  # First, so that least and greatest delay are of all that is in them.
        self.is_saturated = bool(self._registers.read(f"port{self.port}_measure_saturated"))
        measured = {}
        for name, stream in self.streams().items():
            slot = self.slots[name]
            if not stream.frames or (slot == BARE_SLOT and len(self.slots) > 1):  # Bins of slot 0 are of all streams.
                measured[name] = Measured(stream, Cells.of(()), 0)
            else:
                delays = self._bins.cells(slot, stream.delay_min_ns, stream.delay_max_ns)
                measured[name] = Measured(stream, delays, self._bins.outside(slot))
        return measured

    def streams(self) -> dict[str, Stream]:
        """Return the accumulators of each stream, all of one moment."""
        self._registers.write(f"port{self.port}_measure_latch", 1)
        count = (max(self.slots.values(), default=0) + 1) * STREAM_SLOT_WORDS
        words = self._registers.read_memory(streams_memory(self.port), 0, count).reshape(-1, STREAM_SLOT_WORDS).tolist()
        return {
            name: stream_of(slot, self._base, named(STREAM_ACCUMULATORS, words[slot]), slot in self._settings.prbs)
            for name, slot in self.slots.items()
        }

    def follow(self, measured: Mapping[str, Measured]) -> bool:
        """Move the bins to where delays are, if too many are elsewhere or finer ones would do; return whether that is known."""
        if not self._follows or self._bins.moves >= MOVES_MAX:
            return True
        stamped = {name: one for name, one in measured.items() if name in self._stamped}
        if not stamped:
            return True
        known = [one for one in stamped.values() if one.stream.frames]
        outside = sum(one.outside for one in known)
        all_of_them = outside + sum(self._bins.inside(self.slots[name]) for name in stamped)
        if all_of_them < SAMPLE:
            return False
        ends = [self._span(one) for one in known]
        best = roomy(min(least for least, _ in ends), max(most for _, most in ends))
        finer = self._bins.setting.shift - best.shift
        if OUTSIDE_PARTS * outside > all_of_them or finer > (1 if self._bins.moves else 0):
            self._bins.move(best)
        return True

    # # #

    @staticmethod
    def _span(one: Measured) -> tuple[int, int]:
        """Return between what nearly all delays lie: a single one that isn't must not widen all bins."""
        most = one.delays.percentile(99)
        return one.stream.delay_min_ns, int(most.most) if most else one.stream.delay_max_ns


def _base(streams: Sequence[SentStream], slots: int) -> int:
    """Return the id of slot 1."""
    ids = [one.stream_id for one in streams if one.probe]
    if not ids:
        return 0
    if max(ids) - min(ids) > slots - 2:
        raise UsageError(
            f"stream ids {min(ids)} to {max(ids)} come to one port, which measures {slots - 1} in a row: "
            f"give ids that are no further apart"
        )
    return min(ids)
