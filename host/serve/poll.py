# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Looks at a probe of preset ``monitor``: all ports' measurements, the ring, losses by cause, and the worst of them.

A monitor looks for months, and the probe's words wrap: counts of 32 bits go on after 2^32. At the line rate of the shortest
frames a count of frames wraps after 48 minutes, so a look may be missed for nearly as long.
"""

import math
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import CHANNELS, BinKind
from liteprobe.host.analysis.columns import Column, Columns
from liteprobe.host.analysis.result import Result
from liteprobe.host.capture.ring import CHANNEL_MEMORY, CaptureRing, ChannelState
from liteprobe.host.measure.delay_bins import ENOUGH, better
from liteprobe.host.measure.monitor import NAMES, BinSetting, Histogram, Monitor, PortMeasurement, latch_all
from liteprobe.host.measure.percentiles import Cells
from liteprobe.host.measure.streams import ReceivedStream, modulo_of
from liteprobe.host.probe import Probe

if TYPE_CHECKING:
    from liteprobe.host.capture.protocols import ProtocolSampler, ProtocolTable

#: Events that count every frame of a port, and its octets.
ALL = ("all_frames", "all_octets")
#: Events of a port that are not a loss; all others are.
PLAIN = (*ALL, "management_frames", "classified", "matched", "passed", "sampled", "kept", "own_frames")
FITTING = 3  # Looks in a row at which bins fit, until they are taken for chosen: a look may be of a burst alone.
OF_STREAMS = {"lost": "Lost", "duplicated": "Doubled", "reordered": "Reordered", "bit_errors": "Bit errors"}
CHANGES = 12  # Of the bins of a kind at the most, until they are taken for chosen.


WRAP = 1 << 32
WRAPPING = ("expected", "duplicated", "reordered", "beyond_window", "damaged_bit_errors")
UNSTEADY = ("lost",)  # A frame that comes late takes one away.
ORDER = ("lost", "duplicated", "reordered", "beyond_window")  # What sequence numbers tell.


@dataclass(frozen=True, repr=False)
class Look(Result):
    """Holds the measurements of a probe at one time: counts of `Result`; its parts are the ports, each with all of its streams.

    ``refused``: events of a port by which frames were refused, damaged or dropped; a frame may have several.

    >>> Look("sim://x", "locked", 8.0, 0, [], []).verdict("received > 0").checks[0].line
    'received > 0: not held: received is 0'
    """

    url: str
    clock_state: str
    #: 95 % bound of the error of the probe's clock; None: not known, as of a clock that nobody disciplines.
    uncertainty_ns: float | None
    now_ns: int  # The probe's time.
    ports: list[PortMeasurement]
    events: list[dict[str, int]]  # Of each port: what was seen, refused and lost, by cause.
    channels: dict[int, ChannelState] = field(default_factory=dict)  # That a capture uses.
    #: Bins are being chosen (`Poller.follow`): those of some port may have changed right after this look.
    is_choosing: bool = False
    protocols: "ProtocolTable | None" = None  # What frames carry, where headers are sampled.

    @property
    def parts(self) -> dict[str, tuple[PortMeasurement, dict[str, int]]]:
        """Ports by number: measurement and events."""
        return {f"port {port.port}": (port, events) for port, events in zip(self.ports, self.events, strict=True)}

    def to_dict(self) -> dict[str, Any]:
        """Return the look as plain data."""
        return document(self)


def _of_streams(key: str, title: str) -> Column:
    def count(part: tuple[PortMeasurement, dict[str, int]]) -> int | None:
        values = [getattr(stream, key) for stream in part[0].streams if stream.slot]
        return None if None in values else sum(values)

    return Column(key, "", title, of=count)


Look.COLUMNS = Columns(
    Column("received", "", "Frames", of=lambda part: part[0].counters["frames"]),
    Column("octets", "", "Octets", of=lambda part: part[0].counters["octets"]),
    *(_of_streams(key, title) for key, title in OF_STREAMS.items()),
    Column("refused", "", "Refused", of=lambda part: sum(n for name, n in part[1].items() if name not in PLAIN)),
)


@dataclass(frozen=True, repr=False)
class SpanBetweenLooks(Result):
    """Holds what came from one look to a later one: counts and delays by port; of one that was cleared what came since."""

    before: Look
    look: Look

    @property
    def clock_state(self) -> str:
        """As of the later look."""
        return self.look.clock_state

    @property
    def uncertainty_ns(self) -> float | None:
        """Bound of the error of one delay, of the later look; None: not known."""
        return self.look.uncertainty_ns

    @property
    def parts(self) -> dict[str, str]:
        """Ports by number."""
        return {name: name for name in self.look.parts}

    def value(self, key: str, part: Any) -> Any:
        """Return by how much a count grew."""
        now, then = (Look.COLUMNS[key].value(one.parts[part]) for one in (self.look, self.before))
        if key == "lost":  # Where it was not known, the stream was first looked at, and loss counts from there.
            then = sum(stream.lost or 0 for stream in self.before.parts[part][0].streams if stream.slot)
        return now if now is None or then is None or self._is_anew(part) else now - then

    @property
    def cells_by_part(self) -> dict[str, Cells]:
        """Delays of the good probe frames of each port, but for those that are known modulo the range of a stamp alone."""
        found = {}
        for name, (port, _) in self.look.parts.items():
            now = port.histograms[0].get(BinKind.DELAY) if port.histograms else None
            if now is not None and now.modulo_ns is None:
                then = self.before.parts[name][0].histograms
                counts = _counts(now) - (0 if self._is_anew(name) else _counts(then[0][BinKind.DELAY]))
                found[name] = Cells.of_bins(now.setting, counts)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the later look as plain data."""
        return self.look.to_dict()

    def _is_anew(self, name: str) -> bool:
        """Return whether a port was cleared between the looks, as other bins do."""
        ports = [one.parts[name][0] for one in (self.before, self.look)]
        bins = [{kind: one.setting for kind, one in (port.histograms or [{}])[0].items()} for port in ports]
        return bins[0] != bins[1] or ports[1].counters["frames"] < ports[0].counters["frames"]


SpanBetweenLooks.COLUMNS = Look.COLUMNS


def _counts(found: Histogram) -> NDArray[np.int64]:
    return np.concatenate([[found.below], found.counts, [found.above]]).astype(np.int64)


@dataclass
class StreamBegin:
    """Holds what a stream had when it was first looked at; ``counts``: those of `ORDER`, which go on from there."""

    counts: dict[str, int]
    came: int
    missing: int | None  # Numbers from 0 on; None: not known.


class Totals:
    """Adds up what wraps, from one look to the next; begins anew where the probe did.

    A meter takes 0 for the first number of a stream. Nothing tells how many numbers were before the first one that it saw, so
    loss counts from the first look at a stream on; ``from_start``: its first number is known to be 0, and loss counts from it.
    A number of 2^31 or more is behind 0: until numbers wrap, nothing is known of the order of a stream that came so.
    """

    def __init__(self, from_start: bool = False) -> None:
        self._from_start = from_start
        self._begun: dict[Hashable, StreamBegin | None] = {}  # None: its order is not known.
        self._last: dict[Hashable, int] = {}
        self._total: dict[Hashable, int] = {}
        self._age: dict[Hashable, int] = {}
        # Which stream a slot has: what another host has it watch must leave no count.
        self._ids: dict[Hashable, int | None] = {}

    def of_port(self, port: PortMeasurement) -> PortMeasurement:
        """Return a measurement whose counts of streams go on after 2^32."""
        return replace(port, streams=[self._stream(port.port, stream) for stream in port.streams])

    def of_channel(self, number: int, state: ChannelState) -> ChannelState:
        """Return a channel whose drops go on after 2^32, and over captures that begin."""
        key = ("channel", number)
        return replace(state, dropped=self._add(key, state.dropped, is_anew=state.dropped < self._last.get(key, 0) and
                                                state.written < self._age.get(key, 0), age=state.written))  # fmt: skip

    # # #

    def _stream(self, port: int, stream: ReceivedStream) -> ReceivedStream:
        values: dict[str, Any] = {}
        key = (port, stream.slot)
        is_other = self._ids.get(key, stream.stream_id) != stream.stream_id
        is_anew = is_other or stream.frames < self._age.get(key, 0)  # 64 bits: less only after a clear.
        self._age[key], self._ids[key] = stream.frames, stream.stream_id
        for name in (*WRAPPING, *UNSTEADY):
            count = getattr(stream, name)
            if count is not None:
                values[name] = self._add((*key, name), count, is_anew, name in UNSTEADY)
        if is_anew:
            self._begun.pop(key, None)
        found = replace(stream, **values)
        return found if self._from_start or not stream.slot else self._since_begin(key, found)

    def _since_begin(self, key: Hashable, stream: ReceivedStream) -> ReceivedStream:
        """Return a stream whose order and loss count from its first look on."""
        if not stream.frames:
            return stream
        is_first = self._begun.get(key) is None
        if is_first and not stream.expected:
            self._begun[key] = None
            unknown: dict[str, Any] = dict.fromkeys(ORDER)
            return replace(stream, missing_before=None, **unknown)
        counts = {name: getattr(stream, name) for name in ORDER}
        if is_first:
            was_unknown = key in self._begun
            zero = counts if was_unknown else dict.fromkeys(ORDER, 0) | {"lost": counts["lost"]}
            came = stream.came + zero["duplicated"] + zero["beyond_window"]  # As `ReceivedStream.came` will count them.
            self._begun[key] = StreamBegin(dict(zero), came, None if was_unknown else counts["lost"])
        begun = self._begun[key]
        assert begun
        begun.counts["lost"] = min(begun.counts["lost"], counts["lost"])  # One of before came late.
        since: dict[str, Any] = {name: count - begun.counts[name] for name, count in counts.items()}
        if is_first and begun.missing != 0:
            since["lost"] = None
        return replace(stream, missing_before=begun.missing, came_before=begun.came, **since)

    def clear_port(self, number: int) -> None:
        """Begin anew with the streams of a port, whose meter was cleared."""
        for key in [key for key in self._age if isinstance(key, tuple) and key[0] == number]:
            self._age[key] = 1 << 64

    def _add(self, key: Hashable, count: int, is_anew: bool, is_unsteady: bool = False, age: int | None = None) -> int:
        if age is not None:
            self._age[key] = age
        if is_anew or key not in self._last:
            self._total[key] = count
        else:
            step = (count - self._last[key]) % WRAP
            self._total[key] += step - WRAP if is_unsteady and step >= WRAP // 2 else step
        self._last[key] = count
        return self._total[key]


class Poller:
    """Looks at a probe again and again; ``ports`` None: at all. ``from_start``: as of `Totals`.

    ``sampler``: open, counts what frames carry; None: nobody does.

    Raises UsageError when the probe has no such port, or no meters.
    """

    def __init__(
        self,
        probe: Probe,
        ports: Sequence[int] | None = None,
        from_start: bool = False,
        sampler: "ProtocolSampler | None" = None,
    ) -> None:
        self._probe, self._sampler = probe, sampler
        numbers = range(probe.port_count) if ports is None else ports
        self._monitors = [Monitor(probe, number) for number in numbers]
        self._totals = Totals(from_start)
        self._following: dict[tuple[int, BinKind], tuple[int, int]] = {}  # Changes, and fitting looks, that are left.
        self._ring = CaptureRing(probe.registers) if CHANNEL_MEMORY in probe.registers.memory_names else None

    def set(
        self, stream_base: int | None, bins: Mapping[BinKind, BinSetting], rate_interval_ns: int | None = None
    ) -> None:
        """Say what is measured; nothing where nothing is given.

        Raises UsageError when the probe can't.

        ``stream_base``: first of the streams of each port; ``rate_interval_ns``: what rates are counted over, of the probe's
        time.
        """
        for monitor in self._monitors:
            if stream_base is not None:
                monitor.watch(stream_base)
            if bins:
                monitor.set_bins(bins)
            if bins or stream_base is not None:
                self._totals.clear_port(monitor.port)
        if rate_interval_ns is not None and self._monitors:
            self._monitors[0].set_rate_interval(rate_interval_ns)

    def follow(self, kinds: Iterable[BinKind] = tuple(BinKind)) -> None:
        """Choose bins anew, at each look, until they show what comes; each change clears streams and histograms of a port."""
        chosen = tuple(kinds)
        self._following = {(monitor.port, kind): (CHANGES, FITTING) for monitor in self._monitors for kind in chosen}

    def _choose(self, monitor: Monitor, seen: PortMeasurement) -> bool:
        """Change the bins of a port, where others would show better what it has seen; return whether that goes on."""
        changed, goes_on = {}, False
        for kind, found in seen.histograms[0].items() if seen.histograms else ():
            changes, looks = self._following.get((monitor.port, kind), (0, 0))
            if not changes or not looks or not found.total:
                continue
            goes_on = True
            if found.total < ENOUGH:
                continue
            if setting := better(found, seen):
                changed[kind] = setting
            self._following[monitor.port, kind] = (changes - 1, FITTING) if setting else (changes, looks - 1)
        if changed:
            monitor.set_bins(changed)
            self._totals.clear_port(monitor.port)
        return goes_on

    def wait(self, seconds: float) -> None:
        """Let so many seconds of the probe's time pass; what is sampled is counted meanwhile."""
        (self._sampler or self._probe).wait(seconds)

    def look(self) -> Look:
        """Return how it is now: all counts of all ports latched by one batch of writes, a microsecond or so apart."""
        probe = self._probe
        if self._sampler:
            self._sampler.take()  # Before all frames are counted, of which these are some.
        bins = [monitor.read_bins() for monitor in self._monitors]
        latch_all(probe.registers, [name for monitor in self._monitors for name in monitor.latches])
        ports = [monitor.read(bins_before=before) for monitor, before in zip(self._monitors, bins, strict=True)]
        events = [monitor.events(is_latched=True) for monitor in self._monitors]
        states = self._ring.states() if self._ring else []
        clock_state, uncertainty_ns = probe.timebase.trust()
        counted = [self._totals.of_port(port) for port in ports]
        choosing = [self._choose(monitor, seen) for monitor, seen in zip(self._monitors, ports, strict=True)]
        return Look(
            probe.url,
            clock_state,
            uncertainty_ns,
            probe.timebase.now_ns,
            counted,
            events,
            {
                number: self._totals.of_channel(number, states[number])
                for number in range(CHANNELS)
                if states and states[number].taken
            },
            any(choosing),
            self._sampler.table({one.port: totals(one, seen)[0] for one, seen in zip(ports, events, strict=True)})
            if self._sampler
            else None,
        )


def totals(port: PortMeasurement, events: Mapping[str, int]) -> tuple[int, int]:
    """Return all frames that came to a port, and their octets, since its counters were cleared.

    They are those of the events. Meters, which ``--streams`` and ``--bins`` clear by themselves, count less.
    """
    frames, octets = port.counters["frames"], port.counters["octets"]
    return events.get(ALL[0], frames), events.get(ALL[1], octets)


def losses(events: Mapping[str, int]) -> dict[str, int]:
    """Return the events that say of frames that they were refused, damaged or lost."""
    return {name: count for name, count in events.items() if name not in PLAIN}


def _of_one(key: str) -> Callable[[ReceivedStream], Any]:
    """Return what finds a count of one stream: of many at once, numbers say nothing."""
    return lambda stream: None if stream.stream_id is None else getattr(stream, key)


#: Of a stream that a port receives.
RECEIVED = Columns(
    Column("stream_id", "stream", of=lambda stream: "others" if stream.stream_id is None else str(stream.stream_id)),
    Column("frames", "frames", metric="frames", about="Probe frames of a stream that came, duplicates and late ones too"),
    Column("octets", metric="bytes", about="Octets of the probe frames of a stream, without FCS"),
    Column(
        "lost", "lost", is_fault=True, of=_of_one("lost"),
        metric="lost_frames", about="Probe frames of a stream that are missing as of now, since it was first looked at",
    ),
    Column(
        "missing_before", "before", of=_of_one("missing_before"),
        metric="missing_before_frames",
        about="Numbers of a stream that had not come when it was first looked at: sent before its meter was cleared, or lost",
    ),
    Column("loss_ratio", "%", "", 3, of=lambda stream: None if stream.stream_id is None else 100 * stream.loss_ratio),
    Column(
        "duplicated", "dup", is_fault=True, of=_of_one("duplicated"),
        metric="duplicated", about="Probe frames of a stream that came before, within the last 128 sequence numbers",
    ),
    Column(
        "reordered", "reord", is_fault=True, of=_of_one("reordered"),
        metric="reordered", about="Probe frames of a stream that came after a later one",
    ),
    Column(
        "beyond_window", "late", is_fault=True, of=_of_one("beyond_window"),
        metric="beyond_window", about="Probe frames of a stream that came more than 128 sequence numbers late",
    ),
    Column(
        "bit_errors", "bit errors", is_fault=True,
        metric="bit_errors", about="Wrong bits in the PRBS-31 fill of the good frames of a stream",
    ),
    Column(
        "damaged_bit_errors", "damaged", is_fault=True,
        metric="damaged_bit_errors", about="Wrong bits in the PRBS-31 fill of frames of a stream whose FCS is wrong",
    ),
    Column("delay_min_ns", "delay min", metric="delay_min_seconds", about="Least one-way delay of a stream"),
    Column("delay_mean_ns", "mean", "", 1, metric="delay_mean_seconds", about="Mean one-way delay of a stream"),
    Column("delay_max_ns", "max", metric="delay_max_seconds", about="Greatest one-way delay of a stream"),
    Column(
        "delay_std_ns", "std ns", "", 1,
        metric="delay_std_seconds", about="Standard deviation of the one-way delays of a stream",
    ),
    Column("delay_modulo_ns", "modulo"),
)  # fmt: skip
BIT_ERRORS = "bit_errors damaged_bit_errors"
COUNTS = "frames lost loss_ratio duplicated reordered beyond_window"
DELAYS = "delay_min_ns delay_mean_ns delay_max_ns delay_std_ns"


def delay_columns(streams: Sequence[ReceivedStream]) -> list[Column]:
    """Return the columns of delays, and what these are modulo where that is short."""
    return RECEIVED.of(DELAYS + " delay_modulo_ns" * (modulo_of(streams) is not None))


def document(look: Look) -> dict[str, Any]:
    """Return a look as what JSON can hold; NaN becomes null."""
    ports = []
    for port, events in zip(look.ports, look.events, strict=True):
        streams = [
            asdict(stream)
            | {
                "delay_mean_ns": number(stream.delay_mean_ns),
                "delay_std_ns": number(stream.delay_std_ns),
                "loss_ratio": number(stream.loss_ratio),
            }
            for stream in port.streams
        ]
        rate = port.rate and {
            **asdict(port.rate),
            "frames_per_s": number(port.rate.frames_per_s),
            "bits_per_s": number(port.rate.bits_per_s),
            "line_bits_per_s": number(port.rate.line_bits_per_s),
        }
        histograms = [{NAMES[kind]: histogram(found) for kind, found in slot.items()} for slot in port.histograms]
        ports.append(
            {"port": port.port, "counters": port.counters, "events": events, "rate": rate, "streams": streams}
            | {"histograms": histograms, "is_saturated": port.is_saturated}
        )
    channels = {str(channel): asdict(state) for channel, state in look.channels.items()}
    clock = {"state": look.clock_state, "uncertainty_ns": look.uncertainty_ns, "now_ns": look.now_ns}
    protocols = {"protocols": look.protocols.to_dict()} if look.protocols else {}
    return {"url": look.url, "clock": clock, "ports": ports, "channels": channels, **protocols}


def histogram(found: Histogram) -> dict[str, Any]:
    """Return a histogram as what JSON can hold."""
    setting = found.setting
    counts: dict[str, Any] = {"below": found.below, "counts": found.counts.tolist(), "above": found.above}
    if found.kind == BinKind.DELAY:
        counts["modulo_ns"] = found.modulo_ns
    return {"origin": setting.origin, "width": 1 << setting.shift, "unit": found.unit} | counts


def number(value: float) -> float | None:
    """Return a number that JSON can hold: None for NaN and infinity."""
    return value if math.isfinite(value) else None


@dataclass
class Worst:
    """Peaks of all looks since the last `clear`."""

    since: str = field(default_factory=lambda: time.strftime("%H:%M:%S"))  # Time of day of this host.
    rate_bps: dict[int, float] = field(default_factory=dict)  # By port: the greatest rate on the line.
    #: By port: most frames that were refused, damaged or lost from one look to the next.
    lost: dict[int, int] = field(default_factory=dict)
    waiting: dict[int, int] = field(default_factory=dict)  # By channel: most blocks that waited.
    _events: dict[int, dict[str, int]] = field(default_factory=dict)

    def clear(self) -> None:
        """Begin anew; what was counted before is not a loss of the next look."""
        self.since, self.rate_bps, self.lost, self.waiting = time.strftime("%H:%M:%S"), {}, {}, {}

    def take(self, look: Look) -> None:
        for port, events in zip(look.ports, look.events, strict=True):
            number, counts = port.port, losses(events)
            if port.rate and math.isfinite(port.rate.line_bits_per_s):
                self.rate_bps[number] = max(self.rate_bps.get(number, 0.0), port.rate.line_bits_per_s)
            before = self._events.get(number, counts)  # What was lost before the first look isn't known to be of now.
            came = sum((count - before.get(name, 0)) % WRAP for name, count in counts.items())
            self.lost[number] = max(self.lost.get(number, 0), came)
            self._events[number] = counts
        for channel, state in look.channels.items():
            self.waiting[channel] = max(self.waiting.get(channel, 0), state.waiting)
