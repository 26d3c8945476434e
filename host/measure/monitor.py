# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads what a probe measures without recording frames: counts, rates, streams and histograms of a port."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores import formats
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.validate import validated
from liteprobe.host.device.bitstreams import how_to_get
from liteprobe.host.device.registers import Registers
from liteprobe.host.measure import streams as received

RATE_TRIES, LATCH_TRIES = 8, 50
NAMES = {formats.BinKind.LENGTH: "length", formats.BinKind.DELAY: "delay", formats.BinKind.ARRIVAL: "arrival"}
UNITS = {formats.BinKind.LENGTH: "octets", formats.BinKind.DELAY: "ns", formats.BinKind.ARRIVAL: "ns"}
#: What the registers of an origin hold.
ORIGINS = {
    formats.BinKind.LENGTH: (0, 1 << 16),
    formats.BinKind.DELAY: (-1 << 63, 1 << 63),
    formats.BinKind.ARRIVAL: (0, 1 << 32),
}


@dataclass(frozen=True)
class Rate:
    """Frames and octets (without formats.FCS) of one interval of the probe's time."""

    number: int  # Intervals that had ended, with this one; the same number means the same interval. Wraps at 2^32.
    interval_ns: int  # Its length, from one whole multiple of it to the next.
    #: False: the clock was set meanwhile, or it was the first one; its length isn't known, and no rate is right.
    is_whole: bool
    #: ``frames``, ``octets``: that ended in it.
    frames: int
    octets: int

    @property
    def frames_per_s(self) -> float:
        """Frames a second; NaN where the interval is not whole."""
        return self.frames * 1e9 / self.interval_ns if self.is_whole else float("nan")

    @property
    def bits_per_s(self) -> float:
        """Bits a second of layer 2: frames with their formats.FCS."""
        return 8 * (self.octets + formats.FCS * self.frames) * 1e9 / self.interval_ns if self.is_whole else float("nan")

    @property
    def line_bits_per_s(self) -> float:
        """Bits a second that the line is taken: frames with formats.FCS, preamble and the least gap."""
        octets = self.octets + formats.OVERHEAD * self.frames
        return 8 * octets * 1e9 / self.interval_ns if self.is_whole else float("nan")


@dataclass(frozen=True)
class BinSetting:
    """Says how values are sorted: regular bin k has those from ``origin`` + k * 2^``shift`` on, in octets or ns."""

    origin: int
    shift: int


@dataclass(frozen=True)
class Histogram:
    """Counts how many values fell where."""

    kind: formats.BinKind
    setting: BinSetting
    #: ``below``, ``above``: values before the first and behind the last regular bin.
    below: int
    above: int
    #: Shape (bins,): of the regular bins. A bin that reached 2^32 - 1 stays there (`PortMeasurement.is_saturated`).
    counts: NDArray[np.int64]
    #: Values are known modulo this alone, the least range of short stamps; None: they are known.
    modulo_ns: int | None = None

    @property
    def edges(self) -> NDArray[np.float64]:
        """Edges of the regular bins, shape (bins + 1,), in ``unit``; exact up to 2^53."""
        return self.setting.origin + np.arange(len(self.counts) + 1, dtype=np.float64) * 2.0**self.setting.shift

    @property
    def unit(self) -> str:
        return UNITS[self.kind]

    @property
    def total(self) -> int:
        """Values of all bins, the outer ones too."""
        return self.below + self.above + int(self.counts.sum())


@dataclass(frozen=True)
class PortMeasurement:
    """Holds what a port has measured since the last clear."""

    port: int
    #: Of all frames that were measured, of the same instant as ``streams``: ``frames``, ``octets`` (without formats.FCS),
    #: ``first_stamp``, ``last_stamp`` (ns), ``other_streams`` (good probe frames that have no slot).
    counters: dict[str, int]
    rate: Rate | None  # Of the last interval that ended; None before the first, and on a probe that counts no rates.
    streams: list[received.ReceivedStream]  # By slot, from 0.
    #: By slot: slot 0 is of all frames (delays: of all good probe frames). As many values as the rest counts at its instant; of
    #: frames that came while bins were read, which bin each is in is a guess among those that grew.
    histograms: list[dict[formats.BinKind, Histogram]]
    is_saturated: bool  # A bin was full and has missed values.
    has_rates: bool = True  # The probe counts rates.


class Metered(Protocol):
    """Names what has meters: a `Probe`, or what stands for one."""

    registers: Registers
    port_count: int


@validated
class Monitor:
    """The meters of a port; raises UsageError when the probe has no such port, or no meters."""

    def __init__(self, probe: Metered, port: int) -> None:
        ports = probe.port_count
        if not 0 <= port < ports:
            raise UsageError(f"the probe has no port {port}: give 0 to {ports - 1}")
        self.port = port
        self._registers = probe.registers
        self._prefix = f"port{port}_measure_"
        self._bins = f"port{port}_bins"
        if self._bins not in probe.registers.memory_names:
            raise UsageError(
                "this probe measures trains only: "
                + how_to_get(probe.registers.identifier, ("monitor", "generator", "tester"))
            )
        latches, self._counted = (f"port{port}_monitor_latch", f"port{port}_rx_latch"), f"port{port}_rx_"
        names = probe.registers.names
        self._latches = [latch for latch in latches if latch in names]
        self._events = received.counters_of(probe.registers, port)
        self._places = f"port{port}_places"
        self.has_rates = "rates_number" in names
        self.has_fields = self._places in probe.registers.memory_names
        self.slots = probe.registers.memory(received.streams_memory(port)).words // formats.STREAM_SLOT_WORDS

    @property
    def latches(self) -> list[str]:
        """Registers that take the snapshots of this port: write 1 to each (`latch_all`).

        The meter's is first: a frame is seen before it is measured, so no more are ever measured than were seen.
        """
        return [self._prefix + "latch", *self._latches]

    def read(self, with_histograms: bool = True, bins_before: NDArray[np.int64] | None = None) -> PortMeasurement:
        """Return what the port has measured; ``histograms`` is empty unless asked for.

        ``bins_before``: `read_bins` of before the snapshot that was taken; None: this takes one.
        """
        if bins_before is None:
            bins_before = self.read_bins() if with_histograms else None
            self._registers.write(self._prefix + "latch", 1)
        accumulators = received.read_accumulators(self._registers, self.port)
        base, checked, ranges = self.stream_base, self.prbs_slots, self._ranges_ns()
        streams = [
            received.stream_of(slot, base, values, slot in checked, ranges[slot])
            for slot, values in enumerate(accumulators[1:])
        ]
        counters = accumulators[0]
        histograms = []
        if with_histograms and bins_before is not None:
            histograms = self._histograms(bins_before, counters["frames"], streams)
        return PortMeasurement(
            port=self.port,
            counters=counters | {"other_streams": streams[0].frames},
            rate=self.rate(),
            streams=streams,
            histograms=histograms,
            is_saturated=bool(self._registers.read(self._prefix + "saturated")),
            has_rates=self.has_rates,
        )

    def events(self, is_latched: bool = False) -> dict[str, int]:
        """Return what became of the port's frames, all of one instant: what was seen, refused and lost, by cause."""
        if not is_latched:
            latch_all(self._registers, self._latches)
        values = self._registers.read_many(self._events) if self._events else {}
        return {name.removeprefix(self._counted): value for name, value in values.items()}

    def clear(self) -> None:
        """Set accumulators and histograms to zero, in one cycle."""
        self._registers.write(self._prefix + "clear", 1)

    @property
    def stream_base(self) -> int:
        """Stream id of slot 1; those of the other slots follow, modulo 2^16."""
        return self._registers.read(self._prefix + "stream_base")

    @property
    def prbs_slots(self) -> set[int]:
        """Slots whose streams' fill is checked."""
        mask = self._registers.read(self._prefix + "prbs") if self.has_fields else 0
        return {slot for slot in range(self.slots) if mask >> slot & 1}

    def _ranges_ns(self) -> list[int | None]:
        """Return by slot what its delays are modulo, by the place of its stamps, whoever set that."""
        if not self.has_fields:
            return [None] * self.slots
        places = map(formats.StampPlace.of, self._registers.read_memory(self._places, 0, self.slots).tolist())
        return [place and place.range_ns for place in places]

    def watch(
        self,
        stream_base: int = 0,
        passed_only: bool = False,
        prbs: Collection[int] = (),
        places: Mapping[int, formats.StampPlace] | None = None,
    ) -> None:
        """Measure the streams from ``stream_base`` on, of all frames or of those that the filter lets pass; and clear.

        Raises UsageError when a stream id, slot or place is out of range, or the probe was built without them.

        Parameters
        ----------
        stream_base : int
            Stream id of slot 1.
        passed_only : bool
            Measure frames that the filter lets pass alone.
        prbs : collection of int
            Slots whose streams' fill is PRBS-31: their bit errors are counted.
        places : dict of int to formats.StampPlace, or None
            By slot: where its frames have their TX stamp; of others it is in the probe's header. The place of slot 0 is also that
            of all frames without a probe's header, which are then measured there.
        """
        if not 0 <= stream_base < received.STREAM_IDS:
            raise UsageError(f"there is no stream {stream_base}: give 0 to {received.STREAM_IDS - 1}")
        places = places or {}
        self._check_fields(prbs, places)
        values = {"stream_base": stream_base, "measure_passed": int(passed_only)}
        if self.has_fields:
            values["prbs"] = sum(1 << slot for slot in set(prbs))
            words = [places[slot].word if slot in places else 0 for slot in range(self.slots)]
            self._registers.write_memory(self._places, 0, words)
        self._registers.write_many({self._prefix + name: value for name, value in values.items()})
        self.clear()

    def _check_fields(self, prbs: Collection[int], places: Mapping[int, formats.StampPlace]) -> None:
        if not self.has_fields and (prbs or places):
            raise UsageError(
                "this probe checks no fill and takes no stamps from fields: "
                + how_to_get(self._registers.identifier, ("generator", "tester"))
            )
        for slot in (*prbs, *places):
            if not 0 <= slot < self.slots:
                raise UsageError(f"port {self.port} has no slot {slot}: give 0 to {self.slots - 1}")
        for place in places.values():
            check_place(place)

    # Rates ------------------------------------------------------------------------------------

    def rate(self) -> Rate | None:
        """Return frames and octets of the last interval that ended, all of one interval.

        None before the first, and on a probe that counts no rates (preset generator).
        Raises ProbeError when the intervals end faster than they can be read.
        """
        if not self.has_rates:
            return None
        names = ("rates_number", "rates_whole", f"rates_port{self.port}_frames", f"rates_port{self.port}_octets")
        for _ in range(RATE_TRIES):
            interval_ns = self.rate_interval_ns
            number, is_whole, frames, octets = self._registers.read_many(names).values()
            if self._registers.read("rates_number") == number and self.rate_interval_ns == interval_ns:
                return Rate(number, interval_ns, bool(is_whole), frames, octets) if number else None
        raise ProbeError("an interval of rates is shorter than the time to read it: set a longer one")

    @property
    def rate_interval_ns(self) -> int:
        """Interval of all ports (ns of the probe's clock)."""
        return self._registers.read("rates_interval")

    def set_rate_interval(self, interval_ns: int) -> None:
        """Count rates of all ports over ``interval_ns`` from now on; the next interval that ends is not whole.

        Raises UsageError when it is below 1 ms, or not below 2^32 ns, or the probe counts no rates.
        """
        if not self.has_rates:
            fix = how_to_get(self._registers.identifier, ("monitor", "tester"))
            raise UsageError(f"this probe counts no rates: {fix}")
        if not formats.RATE_INTERVAL_MIN_NS <= interval_ns < 1 << 32:
            raise UsageError(
                f"no rates over {interval_ns} ns: give {formats.RATE_INTERVAL_MIN_NS} to {(1 << 32) - 1} ns"
            )
        self._registers.write_many({"rates_interval": interval_ns})

    # Histograms -------------------------------------------------------------------------------

    def bins(self) -> dict[formats.BinKind, BinSetting]:
        """Return how values are sorted."""
        registers = [self._prefix + name + end for name in NAMES.values() for end in ("_origin", "_shift")]
        values = self._registers.read_many(registers)
        return {
            kind: BinSetting(values[self._prefix + name + "_origin"], values[self._prefix + name + "_shift"])
            for kind, name in NAMES.items()
        }

    def set_bins(self, settings: Mapping[formats.BinKind, BinSetting]) -> None:
        """Sort by other bins from now on, in all slots; clears all that was measured, or old and new would mix.

        Raises UsageError when an origin or a shift doesn't fit the gateware.
        """
        values = {}
        for kind, setting in settings.items():
            least, end = ORIGINS[kind]
            if not least <= setting.origin < end:
                raise UsageError(
                    f"bins of {NAMES[kind]} can't begin at {setting.origin} {UNITS[kind]}: give {least} to {end - 1}"
                )
            if not 0 <= setting.shift <= formats.BIN_SHIFT_MAX:
                raise UsageError(
                    f"bins of 2^{setting.shift} {UNITS[kind]}: give a shift of 0 to {formats.BIN_SHIFT_MAX}"
                )
            values[f"{self._prefix}{NAMES[kind]}_origin"] = setting.origin
            values[f"{self._prefix}{NAMES[kind]}_shift"] = setting.shift
        self._registers.write_many(values)
        self.clear()

    def read_bins(self) -> NDArray[np.int64]:
        """Return the words of the histograms as they are now, ``BIN_SLOT_WORDS`` of each slot."""
        words = self._registers.read_memory(self._bins, 0, self._registers.memory(self._bins).words)
        return words.astype(np.int64)

    def _histograms(
        self, before: NDArray[np.int64], frames: int, streams: Sequence[received.ReceivedStream]
    ) -> list[dict[formats.BinKind, Histogram]]:
        """Return the histograms of each slot at the snapshot, when the port had so many frames and these streams."""
        values = values_of(frames, [one.frames for one in streams])
        modulo_ns = [received.modulo_of(streams), *(one.delay_modulo_ns for one in streams[1:])]
        settings, places = self.bins(), formats.BINS.items()
        before = before.reshape(-1, formats.BIN_SLOT_WORDS)
        after = before
        for slot, counts in enumerate(values):
            if any(int(before[slot][at.first : at.first + at.words].sum()) != counts[kind] for kind, at in places):
                after = self.read_bins().reshape(before.shape)
                break
        found = []
        for early, late, counts, modulo in zip(before, after, values, modulo_ns, strict=True):
            histograms: dict[formats.BinKind, Histogram] = {}
            for kind, place in places:
                part = slice(place.first, place.first + place.words)
                bins = bins_at(early[part], late[part], counts[kind])
                own = modulo if kind == formats.BinKind.DELAY else None
                histograms[kind] = Histogram(kind, settings[kind], int(bins[0]), int(bins[-1]), bins[1:-1], own)
            found.append(histograms)
        return found

    # Accumulators -----------------------------------------------------------------------------

    def accumulators(self) -> list[dict[str, int]]:
        """Return the accumulators of one instant by name: those of the port, then those of each slot."""
        self._registers.write(self._prefix + "latch", 1)
        return received.read_accumulators(self._registers, self.port)


def values_of(frames: int, of_streams: Sequence[int]) -> list[dict[formats.BinKind, int]]:
    """Return how many values the histograms of each slot have, by the frames of the port and those of each slot's stream."""
    counts = [(frames, sum(of_streams)), *((count, count) for count in of_streams[1:])]
    kinds = formats.BinKind
    return [{kinds.LENGTH: count, kinds.ARRIVAL: max(count - 1, 0), kinds.DELAY: delays} for count, delays in counts]


def bins_at(before: NDArray[np.int64], after: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Return bins of an instant between two reads, at which they held ``total`` values.

    No bin is less than at the first read or more than at the second: so what is returned never falls from one instant to the
    next. Where ``total`` is not between (somebody cleared, a bin is full), they are those of the later read.
    """
    grown = after - before
    missing, came = total - int(before.sum()), int(grown.sum())
    if not 0 <= missing <= came or (grown < 0).any():
        return after
    shares = np.append(0, np.cumsum(grown)) * missing // max(came, 1)
    return before + np.diff(shares)


def latch_all(registers: Registers, latches: Sequence[str]) -> None:
    """Take snapshots in this order, as close to one another as the link can: in one batch of writes.

    Where the network took one of them away, or let another overtake it, all are taken again.
    """
    registers.own()
    words = {registers.register(latch).address: 1 for latch in latches}
    for _ in range(LATCH_TRIES):
        if registers.link.write_scattered(words):
            return
    raise ProbeError(
        "the network loses so many datagrams that counts are of no one instant: check its cables and its load"
    )


OCTETS_MAX, SHIFT_MAX = 8, 15


def check_place(place: formats.StampPlace) -> None:
    """Raise UsageError, naming the reason, where the gateware can't take a stamp from ``place``."""
    end = place.offset + place.octets
    if not 1 <= place.octets <= OCTETS_MAX or not place.bits:
        raise UsageError(f"a stamp can't have {place.octets} octets: give 1 to {OCTETS_MAX}")
    if place.offset < 0 or end > formats.HEAD_OCTETS:
        raise UsageError(
            f"a stamp can't lie in octets {place.offset} to {end - 1}: give places within {formats.HEAD_OCTETS} octets"
        )
    if not 0 <= place.shift <= SHIFT_MAX:  # A field may have bits beyond the 64 of the time: they are 0.
        raise UsageError(f"a stamp can't be shifted by {place.shift} nibbles: give 0 to {SHIFT_MAX}")
