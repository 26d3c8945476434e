# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs streams of one or several ports: what ports send and measure, start in one tick, looks, single stops and starts, counts."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import (
    CHECKSUM_OCTETS,
    HEADER_WORDS_OF_STREAM,
    NO_SEQUENCE,
    OVERHEAD,
    PAYLOAD_MIN,
    SENT_WORDS,
    SEQUENCE_OFFSET,
    STREAM_ACCUMULATORS,
    STREAM_FIELDS,
    STREAM_ID_OFFSET,
    STREAM_SLOT_WORDS,
    STREAM_WORDS,
    STREAMS,
    Part,
    TransmitState,
)
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.base.line import INCREMENT_ONE
from liteprobe.host.base.validate import validated
from liteprobe.host.clock.clock import ClockVerdict
from liteprobe.host.clock.timebase import FREE_RUNNING
from liteprobe.host.device.registers import Registers
from liteprobe.host.measure.delay_bins import FIRST_SETTING, MOVES_MAX, DelayBins, fitting, padded
from liteprobe.host.measure.monitor import Monitor
from liteprobe.host.measure.percentiles import Bounds, Cells
from liteprobe.host.measure.short_stamps import Departures, resolved
from liteprobe.host.measure.streams import ReceivedStream, named, stream_of, streams_memory
from liteprobe.host.run.engine import (
    IN_BAND_PORT,
    SETTLE_PARTS,
    START_MARGIN_NS,
    ErrorWording,
    PortEnd,
    PortRun,
    RunDevice,
    check_ports,
    is_shared,
    noted,
)
from liteprobe.host.run.figures import (
    NONE_CAME,
    PERCENTILES,
    Latency,
    StreamFigures,
    TrafficLook,
    TrafficResult,
    longest_ns,
)
from liteprobe.host.run.port import HALT_TIMEOUT_NS, ProbePort, TransmitPort, known_state
from liteprobe.host.run.receive import Meters
from liteprobe.host.traffic.due import SharedLine, UnknownDueError
from liteprobe.host.traffic.layout import PortWords, receivers_of, words_of
from liteprobe.host.traffic.load import base_of, check_quiet, end_ticks, is_line_full, receiver_settings
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.stream import Stream

Show = Callable[[TrafficLook], None]

START_LOOKS = 20  # Of the time of a look at the probe: from when a start time is written until the start.
LOOKS = 4  # In an arrival timeout, while somebody watches.
PLACING_LOOKS = 8  # For delays by which the histograms are placed.
INTERRUPTED = "interrupted: the streams were stopped before their end"
SILENCE_MARGIN = 1.1  # Of the time that streams take: where it is random, it is the mean.
WORD = 1 << 32
#: Frames in which a count is read twice: its low word may wrap between the two reads of it.
NEAR_WRAP = 1 << 24
#: State that a stream begins anew with, as it was written first; what isn't named goes on.
ANEW = ("phase", "burst_left", "due_fraction", "frames_left")
SAMPLE = 32  # Delays after which bins are moved to where they are.
OUTSIDE_PARTS = 100  # More than one of so many delays outside of the bins: they are moved again.
BARE_SLOT = 0  # Of frames without a probe header.


# What a port sends ------------------------------------------------------------------------------


@dataclass(frozen=True)
class StreamCounts:
    """Counts of what was sent of a stream."""

    sent: int  # Frames that left.
    late: int  # Those among them that started after their tick.
    first_late: int | None  # Number of the first late one.


@dataclass(frozen=True)
class RunningStream:
    """A stream as a port has it, whoever loaded it."""

    port: int
    number: int  # Its place at its port.
    stream_id: int | None  # That its frames carry; None: they have no probe header.
    is_active: bool  # Whether it still has frames.
    is_endless: bool
    is_attached: bool  # Whether it ends with the host that started it.
    sent: int  # Frames that left.
    late: int  # Those among them that started after their tick.


def problems_without_modifiers(stream: Stream) -> Iterator[str]:
    """Yield what of a stream a port without modifiers, one of 10 Gb/s, can't send, and what to give instead."""
    if stream.modifiers:
        yield "headers don't change from frame to frame yet: leave out the modifiers, or use a probe of 1 Gb/s"
    if stream.fill == "prbs":
        yield "there is no fill 'prbs' yet: give zero or counting"
    if stream.used_checksum == "complement":
        yield "no checksum is worked out yet: give UDP over IPv4, or the checksum none or host"
    if stream.used_stamp not in (None, Stamp("probe")):
        yield "a stamp stands in the probe header alone yet: leave out the stamp, or use a probe of 1 Gb/s"


class StreamsPort(TransmitPort):
    """The transmit side of a port with streams."""

    def __init__(self, registers: Registers, number: int) -> None:
        super().__init__(registers, number)
        self._number = number
        self._schedule = f"port{number}_schedule"
        self._modifiers = f"port{number}_modifiers"
        self._lists = f"port{number}_lists"
        self._sent = f"port{number}_sent"

    def check(self, streams: Sequence[Stream]) -> None:
        """Raise UsageError where the port's gateware can't send one of these streams."""
        if self._modifiers in self._registers.memory_names:
            return
        for stream in streams:
            for problem in problems_without_modifiers(stream):
                raise UsageError(f"stream '{stream.name}': at {stream.line} {problem}")

    def load_streams(self, words: PortWords, is_attached: bool) -> None:
        """Write streams; nothing is sent before ``attach``, ``arm_streams`` and a start.

        The program of the port goes on when none of them is active, until ``let_end``, where they are attached.
        """
        memories = {
            self._schedule: words.schedule,
            self._modifiers: words.modifiers,
            self._lists: words.lists,
            self._header: words.headers,
        }
        for name, content in memories.items():
            if content and name in self._registers.memory_names:
                self._registers.write_memory(name, 0, list(content))
        self._write_many(streams_mask=words.mask, streams_hold=int(is_attached))

    def arm_streams(self) -> None:
        """Take the streams, and build their first frames."""
        self._registers.write(self._prefix + "streams_arm", 1)

    def let_end(self) -> None:
        """Let the program of the port end when no stream is active."""
        self._write_many(streams_hold=0)

    def end(self, number: int) -> None:
        """Let a stream send nothing more."""
        self._registers.write(self._prefix + "streams_end", 1 << number)

    def begin(self, number: int, words: PortWords) -> None:
        """Start a stream that has ended, while the program runs: its numbers go on, and what of it is random.

        One that had sent all of its frames sends as many again.
        """
        first = STREAM_WORDS * number
        own = words.schedule[first : first + STREAM_WORDS]
        frames_left = STREAM_FIELDS["frames_left"]
        left = int(self._registers.read_memory(self._schedule, first + frames_left.word, 1)[0])
        for name in ANEW:
            field = STREAM_FIELDS[name]
            if name == "phase":
                self._registers.write_memory(self._schedule, first + field.word, [0])
            elif name != "frames_left" or left == 0:
                self._registers.write_memory(self._schedule, first + field.word, [own[field.word]])
        self._registers.write(self._prefix + "streams_begin", 1 << number)

    def look_streams(self) -> tuple[TransmitState, bool, int]:
        """Return what the port does, whether its link is up, and the mask of the streams that still have frames."""
        values = self._registers.read_many(self._prefix + name for name in ("state", "link_up", "streams_active"))
        state, is_up, active = values.values()
        return known_state(state), bool(is_up), active

    def counts(self, streams: int = STREAMS) -> list[StreamCounts]:
        """Return what was sent of the first ``streams`` streams."""
        first = self._read_counts(streams)
        rows = (
            self._read_counts(streams)
            if any(low >= WORD - NEAR_WRAP or (high > 0 and low < NEAR_WRAP) for low, high, *_ in first)
            else first
        )
        found = []
        for early, late in zip(first, rows, strict=True):
            # Of two reads no more than one met the wrap: where the high words agree, the later one did not.
            low, high, late_frames, first_late = late if early[1] == late[1] else early
            found.append(StreamCounts(high << 32 | low, late_frames, None if first_late == NO_SEQUENCE else first_late))
        return found

    def running(self) -> list[RunningStream]:
        """Return the streams that were started last, by what the port's memories say."""
        mask, is_attached = self._registers.read_many(
            (self._prefix + "streams_mask", self._prefix + "attached")
        ).values()
        active = self.look_streams()[2]
        schedule = self._registers.read_memory(self._schedule, 0, STREAMS * STREAM_WORDS).reshape(STREAMS, -1).tolist()
        counts = self.counts()
        return [
            RunningStream(
                port=self._number,
                number=number,
                stream_id=self._stream_id(number, schedule[number]),
                is_active=bool(active >> number & 1),
                is_endless=bool(STREAM_FIELDS["endless"].value(schedule[number])),
                is_attached=bool(is_attached),
                sent=counts[number].sent,
                late=counts[number].late,
            )
            for number in range(STREAMS)
            if mask >> number & 1
        ]

    # # #

    def _read_counts(self, streams: int) -> list[list[int]]:
        words = self._registers.read_memory(self._sent, 0, SENT_WORDS * streams)
        rows: list[list[int]] = words.reshape(-1, SENT_WORDS).tolist()
        return rows

    def _stream_id(self, number: int, words: Sequence[int]) -> int | None:
        """Return the stream id that stands in the headers of a stream."""
        if not STREAM_FIELDS["with_probe"].value(words):
            return None
        at = 4 * STREAM_FIELDS["header_words"].value(words) - SEQUENCE_OFFSET + STREAM_ID_OFFSET
        first = HEADER_WORDS_OF_STREAM * number + at // 4
        octets = int(self._registers.read_memory(self._header, first, 1)[0]).to_bytes(4, "little")
        return int.from_bytes(octets[at % 4 : at % 4 + 2])


# What a port measures -----------------------------------------------------------------------------


@dataclass(frozen=True)
class StreamReading:
    """A reading of what a port has measured of a stream."""

    stream: ReceivedStream  # Its accumulators.
    delays: Cells
    outside: int  # Delays outside of the bins, since these were moved.


class StreamMeters:
    """Measures the streams that come to a port.

    Parameters
    ----------
    streams : sequence of Stream
        That come to it.
    latency_range_ns : (int, int) or None
        Between what delays the histograms are; None: they follow what comes.

    Raises
    ------
    UsageError
        When the port can't measure them all.
    """

    def __init__(
        self,
        registers: Registers,
        port: int,
        streams: Sequence[Stream],
        latency_range_ns: tuple[int, int] | None = None,
    ) -> None:
        self.port = port
        self._registers = registers
        self._monitor = Monitor(Meters(registers, port + 1), port)
        self._base = base_of(streams, self._monitor.slots)
        self._settings = receiver_settings(streams, self._base, self._monitor.slots)
        #: Slot of each stream that is measured, by its name. Streams without a probe header can't be distinguished: of
        #: several none is.
        self.slots = {one.name: one.stream_id - self._base + 1 for one in streams if one.probe}
        bare = [one for one in streams if not one.probe]
        if len(bare) == 1 and bare[0].used_stamp is not None:
            self.slots[bare[0].name] = BARE_SLOT
        self._stamped = {one.name for one in streams if one.used_stamp}  # The others have no delay.
        self._follows = latency_range_ns is None
        setting = fitting(*latency_range_ns) if latency_range_ns else FIRST_SETTING
        self._bins = DelayBins(registers, port, sorted(self.slots.values()), setting)
        self._before: dict[str, int] = {}
        self.is_saturated = False  # A bin was full at the last look.

    def begin(self) -> None:
        """Set the meters, and clear them."""
        self._monitor.watch(self._base, prbs=self._settings.prbs, places=self._settings.places)
        self._bins.write()
        self._monitor.clear()
        self._before = self._monitor.events()

    def events(self) -> dict[str, int]:
        """Return what became of the port's frames since ``begin``, by cause."""
        return {name: (value - self._before.get(name, 0)) % 2**64 for name, value in self._monitor.events().items()}

    def look(self) -> dict[str, StreamReading]:
        """Return what was measured of each stream, all of one instant, histograms too."""
        self._bins.look()
        self.is_saturated = bool(self._registers.read(f"port{self.port}_measure_saturated"))
        streams, measured = self.streams(), {}
        self._bins.settle({self.slots[name]: stream.frames for name, stream in streams.items()})
        for name, stream in streams.items():
            slot = self.slots[name]
            if not stream.frames or (slot == BARE_SLOT and len(self.slots) > 1):  # Bins of slot 0 are of all streams.
                measured[name] = StreamReading(stream, Cells.of(()), 0)
            else:
                delays = self._bins.cells(slot, stream.delay_min_ns, stream.delay_max_ns)
                measured[name] = StreamReading(stream, delays, self._bins.outside(slot))
        return measured

    def streams(self) -> dict[str, ReceivedStream]:
        """Return the accumulators of each stream, all of one moment."""
        self._registers.write(f"port{self.port}_measure_latch", 1)
        count = (max(self.slots.values(), default=0) + 1) * STREAM_SLOT_WORDS
        words = self._registers.read_memory(streams_memory(self.port), 0, count).reshape(-1, STREAM_SLOT_WORDS).tolist()
        return {
            name: stream_of(slot, self._base, named(STREAM_ACCUMULATORS, words[slot]), slot in self._settings.prbs)
            for name, slot in self.slots.items()
        }

    def follow(self, measured: Mapping[str, StreamReading]) -> bool:
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
        best = padded(min(least for least, _ in ends), max(most for _, most in ends))
        finer = self._bins.setting.shift - best.shift
        if OUTSIDE_PARTS * outside > all_of_them or finer > (1 if self._bins.moves else 0):
            self._bins.move(best)
        return True

    # # #

    @staticmethod
    def _span(one: StreamReading) -> tuple[int, int]:
        """Return between what nearly all delays lie: a single one that isn't must not widen all bins."""
        most = one.delays.percentile(99)
        return one.stream.delay_min_ns, int(most.most) if most else one.stream.delay_max_ns


MakeMeters = Callable[[Registers, int, Sequence[Stream], tuple[int, int] | None], StreamMeters]

# The plan -----------------------------------------------------------------------------------------


@validated
@dataclass(frozen=True)
class SendOptions:
    """Options of sending and measuring streams."""

    #: Port that measures: all streams, or those that each port sends; None: the one that the wire leads to.
    receive: int | Mapping[int, int] | None = None
    #: Of the probe's time, after which they are stopped; None: when they have sent all their frames.
    seconds: float | None = None
    is_detached: bool = False  # They go on when this host lets go of the probe, or is gone.
    #: Between what delays the histograms are; None: they follow the delays that come.
    latency_range_ns: tuple[int, int] | None = None
    comes_back: Callable[[Stream], Stream] | None = None  # Returns what a stream comes back as; None: as it is.


@dataclass(frozen=True)
class SendingPort:
    """A port that sends streams."""

    port: ProbePort
    transmit: StreamsPort  # Its transmit side.
    streams: tuple[Stream, ...]  # By their numbers at the port.
    words: PortWords  # What its memories hold.
    receive: int  # Port that measures them.

    @property
    def slack_ticks(self) -> int | None:
        """By how much a frame leaves after its tick at the most (ticks); None: not known.

        What streams of rates that fit on the line have in waiting is no more than what each may be ahead of its rate (Cruz, A
        Calculus for Network Delay, 1991).
        """
        found = [due.slack for due in self.words.dues]
        return None if None in found else sum(one or 0 for one in found)

    def wait_ticks(self, number: int) -> int:
        """Return by how much the first frame of a stream leaves after its tick at the most: by all others due before it."""
        first = self.words.dues[number].times.phase
        return sum(
            due.before(first + 1) * (stream.length.greatest + OVERHEAD)
            for stream, due in zip(self.streams, self.words.dues, strict=True)
            if due is not self.words.dues[number]
        )


@dataclass(frozen=True)
class Plan:
    """Streams on their way from ports to ports of a probe."""

    streams: tuple[Stream, ...]  # In the order in which they were given.
    senders: tuple[SendingPort, ...]  # By port.
    meters: dict[int, StreamMeters]  # By port.
    #: The host won't hear of the probe until the streams end: they leave too little of the line that it shares.
    is_quiet: bool
    tick_ns: Fraction  # An octet of the line by the probe's clock, by which times became ticks.

    @property
    def is_timed(self) -> bool:
        """Whether the probe itself ends all of them when their time is over."""
        return all(sender.words.is_timed for sender in self.senders)

    @property
    def is_short(self) -> bool:
        """Whether the stamp of one has few bits, so that its delays are known by when it left."""
        return any(stream.used_stamp is not None and stream.used_stamp.range_ns is not None for stream in self.streams)

    @property
    def unit_ns(self) -> int:
        """By how much the unit of a stamp makes a delay uncertain: the greatest of all, 0 where each counts ns."""
        stamps = [stream.used_stamp for stream in self.streams]
        return max(one.unit_ns if one and one.tick else 0 for one in stamps)

    @property
    def is_cut(self) -> bool:
        """Whether that keeps a stream from sending all of its frames."""
        return self.is_timed and any(self.end_of(stream.name) != stream.count for stream in self.streams)

    def end_of(self, name: str) -> int | None:
        """Return how many frames the probe sends of a stream; None: without an end."""
        sender, number = self.find(name)
        return sender.words.ends[number]

    @classmethod
    def of(
        cls,
        probe: RunDevice,
        streams: Sequence[Stream],
        options: SendOptions,
        receiver: RunDevice | None = None,
        meters_of: MakeMeters = StreamMeters,
    ) -> "Plan":
        """Return the plan of what is to be sent, checked before anything is written.

        ``receiver``: probe whose port ``options.receive`` measures all of them; None: the same one. Raises UsageError when the
        probe can't send or measure these streams, or they add up to more than the line of a port.
        """
        probe.need(Part.STREAMS)
        if receiver is None:
            count = len(probe.ports)
            receivers = receivers_of(streams, options.receive, partial(probe.link.receive_port, ports=count), count)
        else:
            assert isinstance(options.receive, int)
            check_ports([(probe, stream.port) for stream in streams[:1]], "transmit", is_named=True)
            check_ports([(receiver, options.receive)], "receive", is_named=True)
            receivers = dict.fromkeys((stream.port for stream in streams), options.receive)
        for stream in streams:
            if stream.line != probe.line:
                raise UsageError(
                    f"stream '{stream.name}' is one of {stream.line}, and the probe's ports have {probe.line}: give it "
                    "line=probe.line; standard tests, soak tests and Open Traffic Generator are for 1 Gb/s so far"
                )
        increment = probe.line.of_octets(probe.timebase.increment)
        senders = []
        for number, words in words_of(streams, options.seconds, options.is_detached, increment).items():
            own = tuple(stream for stream in streams if stream.port == number)
            port = probe.ports[number]
            assert isinstance(port.transmit, StreamsPort)
            port.transmit.check(own)
            senders.append(SendingPort(port, port.transmit, own, words, receivers[number]))
        meters = {}
        for number in sorted(set(receivers.values())):
            coming = [stream for sender in senders if sender.receive == number for stream in sender.streams]
            coming = [options.comes_back(stream) for stream in coming] if options.comes_back else coming
            meters[number] = meters_of((receiver or probe).registers, number, coming, options.latency_range_ns)
        is_quiet = _is_quiet(probe, senders)
        found = cls(tuple(streams), tuple(senders), meters, is_quiet, Fraction(increment) / INCREMENT_ONE)
        check_quiet(is_quiet, streams, options.seconds, found.is_timed)
        return found

    def find(self, name: str) -> tuple[SendingPort, int]:
        """Return the sender of a stream and its number there; UsageError when there is no such stream."""
        for sender in self.senders:
            for number, stream in enumerate(sender.streams):
                if stream.name == name:
                    return sender, number
        names = ", ".join(f"'{stream.name}'" for stream in self.streams)
        raise UsageError(f"there is no stream '{name}': give one of {names}")

    def duration_ns(self, seconds: float | None) -> Fraction | None:
        """Return when the last stream ends (ns from the start), or is stopped; None: never."""
        ends = [end for stream in self.streams if (end := end_ticks(stream)) is not None]
        asked = None if seconds is None else Fraction(seconds) * 10**9
        if len(ends) < len(self.streams):
            return asked
        last = self.streams[0].line.octet_ns * max(ends)
        return last if asked is None else min(last, asked)


def _is_quiet(probe: RunDevice, senders: Sequence[SendingPort]) -> bool:
    """Return whether answers come through a port that has no space for them."""
    found = [sender.streams for sender in senders if sender.port.number == IN_BAND_PORT]
    if not found or not is_shared(probe):
        return False
    return is_line_full(found[0])


# The run ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TimeWindow:
    """A time of the probe's clock that lies between two (ns)."""

    least_ns: int
    most_ns: int


@dataclass(frozen=True)
class StreamSample:
    """A stream as it was known at a look."""

    at: TimeWindow
    counts: StreamCounts
    received: ReceivedStream | None = None


@validated
class Traffic(PortRun):
    """Streams that run, until their result is taken; a context manager that stops them, unless they are detached.

    ``receiver``: probe that measures all of them at ``options.receive``; None: the one that sends. ``meters_of`` makes its meters.

    Raises
    ------
    UsageError
        When the probe can't send or measure them.
    """

    wording = ErrorWording("the streams", "while streams ran", "send", "Send them again")

    def __init__(
        self,
        probe: RunDevice,
        streams: Sequence[Stream],
        options: SendOptions,
        receiver: RunDevice | None = None,
        meters_of: MakeMeters = StreamMeters,
    ) -> None:
        self._probe, self._receiver, self._options = probe, receiver or probe, options
        self._plan = plan = Plan.of(probe, streams, options, receiver, meters_of)
        ends = [(probe, sender.port.number) for sender in plan.senders], [(self._receiver, n) for n in plan.meters]
        super().__init__(*([PortEnd.of(*end, is_named=receiver is not None) for end in side] for side in ends))
        self._active = {sender.port.number: sender.words.mask for sender in plan.senders}
        self._samples: dict[str, StreamSample] = {}  # Of the last look.
        self._lines = {
            sender.port.number: SharedLine(sender.words.dues, sender.words.ends, probe.line.column)
            for sender in plan.senders
        }
        self._waits: dict[str, tuple[int, int | None] | None] = {}  # As of `_plan_waits`, by stream.
        self._touched: set[str] = set()  # Streams that somebody stopped or started.
        self._ready_ns = self._last_ns = 0
        self._start_ns: int | None = None  # Of the first tick of the program, where that must be known.
        self._started = TimeWindow(0, 0)
        self._stopped: TimeWindow | None = None
        self.notes += [note for sender in plan.senders for note in sender.words.notes]
        self._result: TrafficResult | None = None
        self.tend: Callable[[], None] | None = None  # Called at each look: what must go on beside the streams.

    # What a script uses -----------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        """Whether a stream still had frames at the last look."""
        return not self.end and any(self._active.values())

    def look(self) -> TrafficLook:
        """Return how all streams are now.

        Raises
        ------
        UsageError
            When a port was given something else to send or to measure since.
        ProbeError
            When a link is down, or the streams did not start: they are stopped then.
        """
        self.check_own()
        try:
            return self._look()
        except ProbeError:
            self.halt()
            raise

    def stop(self, name: str | None = None) -> None:
        """Stop all streams, or the one of this name while the others go on; what is committed still leaves.

        Raises
        ------
        UsageError
            When there is no such stream, or a port was given something else to send since.
        """
        if name is None:
            self.halt()
            return
        self.check_own()
        sender, number = self._plan.find(name)
        self._touched.add(name)
        sender.transmit.end(number)

    def lengths_of(self, name: str, frames: int) -> NDArray[np.int64]:
        """Return the lengths of the first frames of a stream (octets without FCS), shape (frames,); raises UnknownDueError."""
        sender, number = self._plan.find(name)
        return sender.words.dues[number].frames(0, frames)[1]

    def start(self, name: str) -> None:
        """Start a stream again that was stopped, or that has sent all of its frames: then it sends as many more.

        Its sequence numbers go on, and so does what is random in it. One that still has frames just goes on.

        Raises
        ------
        UsageError
            When there is no such stream, or the program of its port has ended.
        """
        self.check_own()
        sender, number = self._plan.find(name)
        port = sender.port.number
        state, _, active = sender.transmit.look_streams()
        if self.end or state == TransmitState.IDLE:
            raise UsageError(f"port {port} has ended, so stream '{name}' can't start again: send all of them anew")
        if active >> number & 1:
            return  # The probe works on its words.
        self._touched.add(name)
        sender.transmit.begin(number, sender.words)
        self._active[port] |= 1 << number

    def wait(self, show: Show | None = None) -> None:
        """Wait until all streams have sent all of their frames, or the time is over that they were given; look now and then.

        Parameters
        ----------
        show : callable or None
            Given each look.

        Raises
        ------
        UsageError
            When that would never be, or a port was given something else to send or to measure since.
        KeyboardInterrupt
            Passed on after the streams were stopped; Interrupted has the result until then.
        """
        self.check_own()
        endless = self._endless()
        if endless and self._options.seconds is None:
            raise UsageError(f"streams without an end ({endless}) are not waited for: call stop, or give seconds")
        self.follow(show)

    def _endless(self) -> str:
        """Return which streams run without an end, as a message says it."""
        if self.end or self._plan.duration_ns(None) is not None:
            return ""
        self._read()
        endless = []
        for stream in self._plan.streams:
            sender, number = self._plan.find(stream.name)
            if stream.count is None and self._active[sender.port.number] >> number & 1:
                endless.append(f"'{stream.name}'")
        return ", ".join(endless)

    def follow(self, show: Show | None = None) -> None:
        """Wait as ``wait`` does, for streams without an end, too: until something interrupts it."""
        seconds = self._options.seconds
        with self.stopped_at_errors():
            if self._plan.is_quiet and self.is_running:
                self.let_pass(self._plan_s())
            while self.is_running:
                look = self._look()
                if show:
                    show(look)
                left_s = float("inf") if seconds is None else seconds - look.elapsed_s
                step_s = self.patience_s / (LOOKS if show else 1)
                if look.is_running and (left_s > 0 or self._plan.is_timed):
                    self.let_pass(min(step_s, left_s) if left_s > 0 else self.patience_s / SETTLE_PARTS)
                elif look.is_running:
                    self.halt()

    def result(self) -> TrafficResult:
        """Return what came of the streams, when the last frame has come or none has for the arrival timeout.

        Raises
        ------
        UsageError
            When they have no end, and were not stopped; or a port was given something else to send or to measure since.
        KeyboardInterrupt
            Passed on; Interrupted has the result of what had come.
        """
        if self._result is None:
            self.check_own()
            if self.is_running:
                self.wait()
            try:
                self._finish()
                self.settle(self._missing)
            except Interrupted as end:
                self.end = "interrupted"
                end.results = [self._make_result()]
                raise
            self._result = self._make_result()
        return self._result

    def __enter__(self) -> "Traffic":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._options.is_detached:
            self.halt()

    # # #

    # Begin --------------------------------------------------------------------------------------

    def begin(self, is_measured: bool = True) -> None:
        """Load, start all ports in one tick, and look until the histograms are placed.

        Raises
        ------
        ProbeError
            When a link is down, or the probe does not get ready.
        """
        with self.stopped_at_errors():
            super().begin(is_measured)
            is_quiet = self._plan.is_quiet
            most_ns = self._ready_ns + START_MARGIN_NS if is_quiet else self._probe.timebase.now_ns
            self._started = TimeWindow(self._ready_ns, most_ns)
            if self._start_ns is not None and most_ns < self._start_ns:
                self._started = TimeWindow(self._start_ns, self._start_ns)
                self.let_pass((self._start_ns - most_ns) / 1e9)
            for _ in range(0 if is_quiet else PLACING_LOOKS):
                placed = [meters.follow(meters.look()) for meters in self._plan.meters.values()]
                if all(placed):
                    return
                self.let_pass(self.patience_s / LOOKS / PLACING_LOOKS)

    def load(self) -> None:
        """Set the meters, and load the streams."""
        self._probe.lease.leaves_running |= self._options.is_detached
        for meters in self._plan.meters.values():
            meters.begin()
        for sender in self._plan.senders:
            sender.transmit.clear()
            sender.transmit.load_streams(sender.words, not self._options.is_detached)
        self._start_ns = self.start_ns()
        for sender in self._plan.senders:
            sender.transmit.attach(self._start_ns, not self._options.is_detached)
            sender.transmit.arm_streams()

    def start_ns(self) -> int | None:
        """Return when the program is to start (ns of the probe's clock); None: at once."""
        margin_ns = START_MARGIN_NS + int(START_LOOKS * self._probe.link.look_ns)
        return self._probe.timebase.now_ns + margin_ns if self._plan.is_short else None

    def _bound_ns(self, rows: Sequence[StreamFigures], clock: ClockVerdict) -> float:
        """Return the bound of the error of a delay of these rows (ns)."""
        return self._probe.timebase.delay_bound_ns(longest_ns(rows), clock) + self._plan.unit_ns

    def starting(self, probe: RunDevice, now_ns: int) -> float:
        """Keep when it starts; streams that leave no room for answers are followed by their end alone."""
        self._ready_ns = now_ns
        if not self._plan.is_quiet:
            return 0.0
        return SILENCE_MARGIN * self._plan_s() + (max(self._start_ns or 0, now_ns) - now_ns + START_MARGIN_NS) / 1e9

    def _plan_s(self) -> float:
        """Return how long the streams take; 0 where that is without an end."""
        return float(self._plan.duration_ns(self._options.seconds) or 0) / 1e9

    # While they run ---------------------------------------------------------------------------

    def _look(self) -> TrafficLook:
        if self.tend:
            self.tend()
        before, readings = self._samples, self._read()
        self._catch_up()
        self._plan_waits()
        now_ns = self._last_ns = max(sample.at.most_ns for sample in self._samples.values())
        clock, found = self.clock, []
        for stream in self._plan.streams:
            row = self._row(stream.name, readings, before[stream.name].counts.late if before else 0)
            found.append(self._since(row, before[stream.name]) if before else row)
        for number, meters in self._plan.meters.items():
            meters.follow(readings[number])
        elapsed_s = (now_ns - self._started.least_ns) / 1e9
        bound_ns = self._bound_ns(found, clock)
        return TrafficLook(tuple(found), now_ns, elapsed_s, self.is_running, clock.state, bound_ns)

    def _read(self) -> dict[int, dict[str, StreamReading]]:
        """Read what ports have sent, then what they have measured, and keep it, and which streams are active.

        Raises
        ------
        ProbeError
            When a link is down, or the streams did not start.
        """
        timebase, found = self._probe.timebase, dict[str, StreamSample]()
        before_ns = timebase.now_ns
        for sender in self._plan.senders:
            state, is_up, self._active[sender.port.number] = sender.transmit.look_streams()
            counts = sender.transmit.counts(len(sender.streams))
            self.check_started(state)
            if not is_up:
                self._lose(self.senders, sender.port.number, sum(one.sent for one in counts))
            at = TimeWindow(before_ns, before_ns)
            found |= {stream.name: StreamSample(at, one) for stream, one in zip(sender.streams, counts, strict=True)}
        for number in self._plan.meters:
            if not self._receiver.ports[number].receive.is_link_up:
                self._lose(self.receivers, number, sum(sample.counts.sent for sample in found.values()))
        self._samples = found
        readings = self._measure()
        at = TimeWindow(before_ns, timebase.now_ns)
        self._samples = {name: replace(one, at=at) for name, one in self._samples.items()}
        return readings

    def _catch_up(self) -> None:
        """Make what was sent that of the instant of the meters: no less than what had come by then.

        Frames left after the counts of senders were read. By their numbers it is known of how many they came.
        """
        for sender in self._plan.senders:
            gone = [self._gone(stream.name) for stream in sender.streams]
            if not any(gone):
                continue
            counts = sender.transmit.counts(len(sender.streams))
            for stream, more, now in zip(sender.streams, gone, counts, strict=True):
                sample = self._samples[stream.name]
                sent = min(sample.counts.sent + more, now.sent)
                self._samples[stream.name] = replace(sample, counts=replace(sample.counts, sent=sent))

    def _gone(self, name: str) -> int:
        """Return how many frames of a stream left, and came, after it was read how many had left."""
        counts, came = self._samples[name].counts, self._samples[name].received
        if came is None or not came.frames:
            return 0
        if came.slot == BARE_SLOT:
            return max(came.frames - counts.sent, 0)
        ahead = (came.expected - counts.sent) % WORD
        return ahead if ahead < WORD // 2 else 0

    def _plan_waits(self) -> None:
        """Keep how many frames of each stream wait for the line by the plan, and the first of them; None: not known."""
        for sender in self._plan.senders:
            counts = [self._samples[stream.name].counts for stream in sender.streams]
            planned: list[tuple[int, int | None]] | None = [(0, None)] * len(counts)
            if any(one.late for one in counts):
                is_planned = not any(stream.name in self._touched for stream in sender.streams)
                planned = self._lines[sender.port.number].waited([one.sent for one in counts]) if is_planned else None
            self._waits |= {
                stream.name: planned[number] if planned else None for number, stream in enumerate(sender.streams)
            }

    def _lose(self, ends: Sequence[PortEnd], port: int, sent: int) -> None:
        name = next(end.name for end in ends if end.port.number == port)
        self.lose_link(name, f"{sent} frames had been sent")

    def _measure(self) -> dict[int, dict[str, StreamReading]]:
        """Return what each port has measured, and keep it with what was sent."""
        found = {number: meters.look() for number, meters in self._plan.meters.items()}
        for measured in found.values():
            for name, one in measured.items():
                self._samples[name] = replace(self._samples[name], received=one.stream)
        return found

    def _row(self, name: str, readings: dict[int, dict[str, StreamReading]], sure: int | None = None) -> StreamFigures:
        """Return a row; ``sure``: of frames that left after their tick, those of an earlier look, of which all is known.

        A look reads how many frames left before it reads how many of them did so after their tick.
        """
        sender, number = self._plan.find(name)
        active, reading = self._active[sender.port.number], readings[sender.receive].get(name)
        counts = self._samples[name].counts
        row = _row(sender, number, counts, reading, active)
        if planned := self._waits[name] if counts.late else (0, None):
            late = max((counts.late if sure is None else sure) - planned[0], 0)
            first = None if planned[1] == counts.first_late or not late else counts.first_late
            row = replace(row, late=late, first_late=first, waited=counts.late - late)
        stamp = sender.streams[number].used_stamp
        if row.latency and reading and stamp and stamp.range_ns is not None:
            left = self._departures(sender, number, row)
            row = replace(row, latency=_short_latency(stamp, reading, left))
        return _without_percentiles(row) if self._plan.meters[sender.receive].is_saturated else row

    def _departures(self, sender: SendingPort, number: int, row: StreamFigures) -> Departures:
        """Return what is known of when the frames of a stream left."""
        timebase = self._probe.timebase
        return Departures(
            due=sender.words.dues[number],
            start_ns=(self._started.least_ns, self._started.most_ns),
            tick_ns=self._plan.tick_ns,
            late_ticks=sender.slack_ticks if row.delayed else 0,
            is_numbered=row.stream.probe and row.name not in self._touched and row.sent < WORD // 2,
            is_steady=self.clock.state == FREE_RUNNING and timebase.tick_ns == self._plan.tick_ns,
        )

    def _since(self, row: StreamFigures, before: StreamSample) -> StreamFigures:
        """Return a row with the rates since another look."""
        now = self._samples[row.name]
        received_fps, received_bps = _received_rates(row.stream, before.received, now.received)
        sent_fps = None if row.delayed else self._departed(row, before.counts.sent - 1, row.sent - 1)
        if sent_fps is None:
            sent_fps = _per_second(row.sent - before.counts.sent, before.at, now.at)
        return replace(row, sent_fps=sent_fps, received_fps=received_fps, received_bps=received_bps)

    def _departed(self, row: StreamFigures, first: int, last: int, end_ns: int | None = None) -> Bounds | None:
        """Return the rate (frames a second) of the frames from number ``first`` to ``last``, by when they were due.

        None where it can't be known by that; ``end_ns``: by then they had left.
        """
        if first < 0 or last <= first or row.name in self._touched:
            return None
        sender, number = self._plan.find(row.name)
        due, slack, wait = sender.words.dues[number], sender.slack_ticks if row.delayed else 0, 0
        try:
            span = due.due(last) - due.due(first)
            if row.delayed:
                if slack is None and end_ns is not None:
                    slack = int((end_ns - self._started.least_ns) / self._plan.tick_ns) - due.due(last)
                wait = sender.wait_ticks(number) if self._samples[row.name].counts.first_late == 0 else 0
        except UnknownDueError:
            return None
        off = row.stream.line.column
        if slack is None or span - wait <= off:
            return None
        least_s, most_s = (float(ticks * self._plan.tick_ns) / 1e9 for ticks in (span - wait - off, span + slack + off))
        return Bounds((last - first) / most_s, (last - first) / least_s)

    # The end ----------------------------------------------------------------------------------

    def halt(self, why: str = "stopped") -> None:
        """Stop all streams, as of `PortRun`, and keep when."""
        if self.end:
            return
        with suppress(ProbeError):
            self._probe.link.expect_silence(0)
            before_ns = self._probe.timebase.now_ns
            super().halt(why)
            self._stopped = TimeWindow(before_ns, self._probe.timebase.now_ns)
        self.end = why

    def _finish(self) -> None:
        """Let ports whose streams have ended end, too, and wait until their last frames have left."""
        if self.end:
            return
        self.end = "stopped" if self._plan.is_cut else "sent"
        timebase = self._probe.timebase
        for sender in self._plan.senders:
            if not self._options.is_detached:
                sender.transmit.let_end()
            deadline_ns = timebase.now_ns + HALT_TIMEOUT_NS
            while sender.transmit.look_streams()[0] != TransmitState.IDLE:
                self._last_ns = timebase.now_ns
                if self._last_ns > deadline_ns:
                    raise ProbeError(f"port {sender.port.number} doesn't end: reset the probe, and report this")

    def _missing(self) -> int:
        """Return how many frames that were sent have not come."""
        samples, missing = self._read_at_end(), 0
        for meters in self._plan.meters.values():
            for name, stream in meters.streams().items():
                missing += max(samples[name].counts.sent - stream.came, 0)
        return missing

    def _read_at_end(self) -> dict[str, StreamSample]:
        """Return what was sent, whatever state the links are in."""
        found: dict[str, StreamSample] = {}
        for sender in self._plan.senders:
            for stream, one in zip(sender.streams, sender.transmit.counts(len(sender.streams)), strict=True):
                found[stream.name] = StreamSample(self._started, one)
        return found

    def _make_result(self) -> TrafficResult:
        self._samples = self._read_at_end()
        self._active = dict.fromkeys(self._active, 0)
        self._plan_waits()
        readings = self._measure()
        ended_ns = self._stopped.least_ns if self._stopped else self._last_ns
        found = []
        for stream in self._plan.streams:
            row = _at_the_end(self._row(stream.name, readings))
            sent_fps = self._departed(row, 0, row.sent - 1, self._stopped.most_ns if self._stopped else ended_ns)
            found.append(_over_all(row, sent_fps, self._samples[stream.name].received))
        asked = {stream.name: self._plan.end_of(stream.name) for stream in self._plan.streams}
        unsent = [] if self._stopped else _unsent(found, asked, self._touched)
        notes = [*self.all_notes(), *unsent, *[INTERRUPTED] * (self.end == "interrupted")]
        notes += [note for sender in self._plan.senders for note in _sender_notes(sender, not self._touched)]
        notes += [
            f"stream '{row.name}': {row.delayed:,} frames started after their tick; which of them only waited for others of their "
            "port isn't worked out: there are too many"
            for row in found
            if row.late is None and not self._touched
        ]
        notes += _row_notes(found, self._options.latency_range_ns is not None)
        is_whole = self.end != "interrupted" and not unsent
        for number, meters in self._plan.meters.items():
            events = meters.events()
            notes += _port_notes(number, events, meters.is_saturated)
            is_whole &= not (events["overflows"] or events["unclassified"] or meters.is_saturated)
        clock, seconds = self.clock, (ended_ns - self._started.most_ns) / 1e9
        asked_s = self._options.seconds
        if asked_s is not None and self._plan.is_timed and not self._stopped:
            seconds = asked_s if self._plan.is_cut else min(seconds, asked_s)
        return TrafficResult(
            tuple(found),
            seconds,
            self.end,
            is_whole,
            clock.state,
            self._bound_ns(found, clock),
            (*notes, *clock.notes),
        )

    def partial_results(self) -> list[TrafficResult]:
        """Return what came of streams that were interrupted."""
        return [self.result()] if self.is_started else []


# Rows of figures and notes ------------------------------------------------------------------------


def _row(
    sender: SendingPort, number: int, counts: StreamCounts, reading: StreamReading | None, active: int
) -> StreamFigures:
    """Return what is known of stream ``number`` of a port at a look, without its rates; ``active``: mask of those that go on."""
    stream = sender.streams[number]
    found = StreamFigures(
        stream=stream,
        receive=sender.receive if reading else None,
        is_active=bool(active >> number & 1),
        sent=counts.sent,
        late=None,
        first_late=None,
        delayed=counts.late,
    )
    if reading is None:
        return found
    came = reading.stream
    latency = _latency(reading) if stream.used_stamp else None
    found = replace(found, received=came.frames, octets=came.octets, latency=latency)
    if came.frames:
        found = replace(found, first_arrival_ns=came.first_stamp_ns, last_arrival_ns=came.last_stamp_ns)
    if came.slot == BARE_SLOT:
        return found
    found = replace(
        found,
        lost=came.lost,
        duplicated=came.duplicated,
        reordered=came.reordered,
        beyond_window=came.beyond_window,
    )
    if not stream.has_checked_fill:
        return found
    return replace(
        found,
        bit_errors=came.bit_errors,
        damaged_bit_errors=came.damaged_bit_errors,
        checked_bits=_checked_bits(stream, came),
    )


def _without_percentiles(found: StreamFigures) -> StreamFigures:
    """Return a row whose histogram has missed values: least, mean and greatest delay are right all the same."""
    if found.latency is None:
        return found
    return replace(found, latency=replace(found.latency, p50=None, p99=None, p99_9=None, cells=Cells.of(())))


def _at_the_end(found: StreamFigures) -> StreamFigures:
    """Return a row of which nothing more is sent or comes: what is missing is lost."""
    if found.lost is None or found.received is None:
        return found
    came = found.received - (found.duplicated or 0) - (found.beyond_window or 0)
    return replace(found, lost=max(found.sent - came, 0))


def _checked_bits(stream: Stream, came: ReceivedStream) -> int:
    others = stream.headers.payload_offset + PAYLOAD_MIN + (CHECKSUM_OCTETS if stream.headers.is_ipv6 else 0)
    return 8 * (came.octets - came.frames * others)


def _latency(reading: StreamReading) -> Latency | None:
    came, cells = reading.stream, reading.delays
    if not came.frames:
        return None
    p50, p99, p99_9 = (cells.percentile(percent) for percent in PERCENTILES)
    ends = (came.delay_min_ns, came.delay_mean_ns, came.delay_std_ns, came.delay_max_ns)
    return Latency(*ends, p50, p99, p99_9, cells, reading.outside)


def _short_latency(stamp: Stamp, reading: StreamReading, left: Departures) -> Latency:
    """Return the delays of a stream whose stamp has few bits; what isn't known where they pass the end of its range is left out."""
    assert stamp.range_ns is not None
    came = reading.stream
    found = resolved(stamp.range_ns, stamp.unit_ns, came, reading.delays, left)
    p50, p99, p99_9 = (found.cells.percentile(percent) for percent in PERCENTILES)
    least = most = mean = std = None
    if found.wrapped is not None:
        mean = came.delay_mean_ns + found.shift_ns + found.wrapped / came.frames * stamp.range_ns
    if found.wrapped == 0:
        least, std, most = came.delay_min_ns + found.shift_ns, came.delay_std_ns, came.delay_max_ns + found.shift_ns
    return Latency(least, mean, std, most, p50, p99, p99_9, found.cells, reading.outside, found.modulo_ns)


def _over_all(found: StreamFigures, sent_fps: Bounds | None, came: ReceivedStream | None) -> StreamFigures:
    """Return a row with the rates of all of its frames."""
    if not came or came.frames < 2:
        return replace(found, sent_fps=sent_fps)
    first = replace(came, frames=1, octets=0, last_stamp_ns=came.first_stamp_ns)
    received_fps, _ = _received_rates(found.stream, first, came)
    # From the first start to the last one all frames but one passed, of a length that may not be known.
    seconds = (came.last_stamp_ns - came.first_stamp_ns) / 1e9
    ends = (found.stream.length.greatest, found.stream.length.least)
    bits = [8 * (came.octets - length + OVERHEAD * (came.frames - 1)) for length in ends]
    received_bps = Bounds(bits[0] / seconds, bits[1] / seconds) if seconds > 0 else None
    return replace(found, sent_fps=sent_fps, received_fps=received_fps, received_bps=received_bps)


def _per_second(frames: int, start: TimeWindow, end: TimeWindow) -> Bounds | None:
    """Return the rate of frames that left between two moments, neither of which need be that of a frame."""
    most_s, least_s = (end.most_ns - start.least_ns) / 1e9, (end.least_ns - start.most_ns) / 1e9
    return Bounds(max(frames - 1, 0) / most_s, (frames + 1) / least_s) if least_s > 0 else None


def _received_rates(
    stream: Stream, before: ReceivedStream | None, now: ReceivedStream | None
) -> tuple[Bounds | None, Bounds | None]:
    """Return frames a second and bits a second of the line, between the last frames of two looks."""
    if not before or not now or not before.frames or now.last_stamp_ns <= before.last_stamp_ns:
        return None, None
    span_ns = now.last_stamp_ns - before.last_stamp_ns
    frames, octets = now.frames - before.frames, now.octets - before.octets
    reach = stream.length.greatest - stream.length.least  # Of the first or of the last one.
    bits = [8 * (octets + off + OVERHEAD * frames) for off in (-reach, reach)]
    off_ns = float(stream.line.tick_ns) + stream.line.cut_ns
    longest_s, shortest_s = (span_ns + off_ns) / 1e9, max(span_ns - off_ns, 1) / 1e9
    return Bounds(frames / longest_s, frames / shortest_s), Bounds(bits[0] / longest_s, bits[1] / shortest_s)


def _row_notes(rows: Sequence[StreamFigures], is_given_range: bool) -> list[str]:
    """Return what the reader of rows must know of them."""
    found = []
    for one in rows:
        name, latency = f"stream '{one.name}'", one.latency
        first = "" if one.first_late is None else f", number {one.first_late} first"
        said = {
            f"{one.late} of {one.sent} frames left late, though the line was free{first}: report this": one.late,
            f"{one.beyond_window} frames came so late that they may be copies; they count as lost": one.beyond_window,
            f"{latency.outside if latency else 0} of {one.received} delays are outside of the range that was given; percentiles "
            f"there reach to the extremes": latency and is_given_range and latency.outside,
            f"its delays are modulo {(latency and latency.modulo_ns) or 0:,} ns, the range of its stamp: give the longest delay "
            "that you expect (stamp: delay) or a stamp of more bits": latency and latency.modulo_ns is not None,
            "its bit errors are not known: a stamp, or the complement of a checksum over IPv4, stands in its fill": one.receive
            is not None
            and one.stream.fill == "prbs"
            and one.stream.probe
            and not one.stream.has_checked_fill,
            f"it has no probe header, so what is received counts any frame without one that came to port {one.receive}": (
                one.received is not None and not one.stream.probe
            ),
            "it is not measured: the port that it comes to can't tell it from other streams without a probe header": (
                one.received is None and not one.stream.probe and one.stream.used_stamp is not None
            ),
            f"{NONE_CAME} {one.sent} frames came to port {one.receive} whole and in time: check what is on the way, give a "
            "longer waiting time, or name the port that it leads to (receive)": one.sent and one.received == 0,
        }
        found += [f"{name}: {note}" for note in noted(said)]
    return found


def _unsent(rows: Sequence[StreamFigures], asked: Mapping[str, int | None], touched: Collection[str]) -> list[str]:
    """Return notes on streams that have not sent all they were to, though nobody stopped or started them (``touched``)."""
    found = []
    for row in rows:
        count = asked[row.name]
        if row.name in touched or (count is not None and row.sent >= count):
            continue
        found.append(
            f"stream '{row.name}': it has no end, but ended: was its port stopped from the console of the probe, or the probe "
            "reset?"
            if count is None
            else f"stream '{row.name}': {count - row.sent} of {count} frames were not sent"
        )
    return found


def _sender_notes(sender: SendingPort, is_untouched: bool) -> list[str]:
    """Return what the reader must know of a port that sent; who starts streams again writes while it runs."""
    counters = sender.transmit.counters()
    said = {
        f"{counters['underruns']} frames were built too late for the line": counters["underruns"],
        f"what it sends was written {counters['disturbed']} times while it ran, so what was sent is not what was asked for: "
        f"let one host at a time use the port": is_untouched and counters["disturbed"],
    }
    return [f"port {sender.port.number}: {note}" for note in noted(said)]


def _port_notes(number: int, events: Mapping[str, int], is_saturated: bool) -> list[str]:
    """Return what the reader must know of what came to a port."""
    said = {
        f"{events['fcs_errors']} frames with a bad FCS came, which are in no stream": events["fcs_errors"],
        f"{events['overflows']} frames were dropped in the receiver": events["overflows"],
        f"{events['unclassified']} frames came too close after others to be measured": events["unclassified"],
        "a bin of a histogram was full, so there are no percentiles": is_saturated,
    }
    return [f"port {number}: {note}" for note in noted(said)]
