# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A probe of preset ``generator`` as its registers show it: streams by the words of its memories, meters of what comes.

The truth for tests of the host. Modifiers and fills are not in it: a frame is its length, its numbers and its stamp.
Source: docs/traffic.md; Marsaglia, Xorshift RNGs, 2003.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from liteprobe.cores.formats import (
    BEGIN_TICKS,
    BIN_SLOT_WORDS,
    HEADER_WORDS_OF_STREAM,
    LIST_WORDS,
    MODIFIER_WORDS,
    MODIFIERS,
    NO_SEQUENCE,
    PLACE_FIELDS,
    PRESETS,
    SENT_WORDS,
    STREAM_FIELDS,
    STREAM_SLOT_WORDS,
    STREAM_SLOTS_MAX,
    STREAM_WORDS,
    STREAMS,
    LengthKind,
    RecordFlag,
    TransmitState,
)
from liteprobe.sim.models.probe.meters import BINS_BASE, PLACES_BASE, MonitorProbe
from liteprobe.sim.models.probe.trains import (
    BUILD_TICKS,
    HEADER_BASE,
    INCREMENT_ONE,
    OVERHEAD,
    PORT_STRIDE,
    STREAMS_BASE,
    ModelFrame,
    Wire,
    registers,
)
from liteprobe.sim.models.receive.meters import MeasuredFrame, PortMeterModel
from liteprobe.sim.models.traffic.streams import AROUND, Xorshift, exponential

# Streams by their words ---------------------------------------------------------------------------


@dataclass
class StreamWords:
    """A stream that runs by its words.

    Parameters
    ----------
    read : returns a word of the schedule of its port.
    read_list : returns a word of the lists.
    number : of the stream.

    Attributes
    ----------
    due : int; tick of the program in which the next frame is due.
    length, sequence : int; of that frame.
    """

    read: Callable[[int], int]
    read_list: Callable[[int], int]
    number: int

    def __post_init__(self) -> None:
        """Take the words as they are."""
        self.is_begun = False
        self.sequence = self.field("sequence")
        self.draw_length = Xorshift(self.field("length_random"))
        self.draw_interval = Xorshift(self.field("interval_random"))
        self.length_next = self.field("length_next")
        self.list_index = 0
        self.left = 0

    def field(self, name: str) -> int:
        """Return a field of its words, as they are now."""
        field = STREAM_FIELDS[name]
        return self.read(STREAM_WORDS * self.number + field.word) >> field.low & (1 << field.bits) - 1

    def begin(self, elapsed: int | None = None) -> bool:
        """Begin with the program, or in it when ``elapsed`` ticks have passed; return whether it has a frame."""
        self.left = self.field("frames_left")
        self.burst_left = self.field("burst_left")
        start = self.field("phase") + (0 if elapsed is None else elapsed + BEGIN_TICKS)
        self.head = self.due = start
        self.fraction = 0
        if self.left or self.field("endless"):
            self.length = self._length()
            return True
        return False

    def advance(self) -> bool:
        """Go on to the next frame; return whether there is one."""
        self.sequence = (self.sequence + 1) % (1 << 32)
        self.left -= 1
        if not self.left and not self.field("endless"):
            return False
        self.burst_left -= 1
        if self.burst_left > 0:
            self.due += self.field("burst_interval") or self.length + AROUND
        else:
            self.burst_left = max(1, self.field("burst_frames"))
            whole, part = divmod(self._gap() + self.fraction, 1 << 32)
            self.head, self.fraction = self.head + whole, part
            self.due = self.head
        self.length = self._length()
        return True

    # # #

    def _gap(self) -> int:
        """Return the time from head to head, in 2^-32 ticks."""
        if self.field("exponential"):
            return self.field("interval") * exponential(self.draw_interval.draw())
        return self.field("interval") << 32 | self.field("interval_fraction")

    def _length(self) -> int:
        least = self.field("length_least")
        match LengthKind(self.field("length_kind")):
            case LengthKind.STEPPED:
                found = self.length_next
                self.length_next = found + self.field("length_step")
                if self.length_next > self.field("length_greatest"):
                    self.length_next = least
                return found
            case LengthKind.RANDOM:
                return least + self.draw_length.below(self.field("length_range"))
            case LengthKind.LIST:
                entries = self.field("list_entries")
                if self.field("list_drawn"):
                    index = self.draw_length.below(entries)
                else:
                    index, self.list_index = self.list_index, (self.list_index + 1) % entries
                return self.read_list(self.field("list_base") + index) & 0x3FFF
        return least


# Probe --------------------------------------------------------------------------------------------


SCHEDULE_BASE = 0x70000000
MODIFIERS_BASE = 0x78000000
LISTS_BASE = 0x80000000
SENT_BASE = 0x88000000
SLOTS = STREAM_SLOTS_MAX
REGISTERS = registers("mask:16 hold:1 arm:1 begin:16 end:16 active:16")
HEADER_OF_ALL = STREAMS * HEADER_WORDS_OF_STREAM
MEMORIES = {
    "header": (HEADER_BASE, HEADER_OF_ALL),
    "schedule": (SCHEDULE_BASE, STREAMS * STREAM_WORDS),
    "modifiers": (MODIFIERS_BASE, STREAMS * MODIFIERS * MODIFIER_WORDS),
    "lists": (LISTS_BASE, LIST_WORDS),
    "sent": (SENT_BASE, STREAMS * SENT_WORDS),
    "streams": (STREAMS_BASE, SLOTS * STREAM_SLOT_WORDS),
    "bins": (BINS_BASE, SLOTS * BIN_SLOT_WORDS),
}


@dataclass(frozen=True)
class TrafficFrame(ModelFrame):
    """A frame of a stream; without a probe header it has no number, and its stamp may be in a field."""

    number: int = 0
    is_probe: bool = True
    bit_errors: int = 0


class TrafficProbe(MonitorProbe):
    """A probe whose ports send streams over a wire, and measure what comes.

    ``wire``: what becomes of the frames.

    ``frames``: that left, in order.
    """

    def __init__(self, wire: Wire | None = None, ports: int = 2, with_clock: bool = False) -> None:
        super().__init__(ports, with_fields=True, wire=wire, with_clock=with_clock)
        for port in range(ports):
            self.extend(f"port{port}_tx_streams", REGISTERS, REGISTERS.keys() - {"active"})
            self.extend_memories(port, MEMORIES)
            self.remove([f"port{port}_records"])
        self.values["probe_parts"] = int(PRESETS["generator"])
        self.meters = [PortMeterModel(slots=SLOTS) for _ in range(ports)]
        self.frames: list[TrafficFrame] = []
        self._sending: list[dict[int, StreamWords]] = [{} for _ in range(ports)]  # Streams that are active.
        self._loaded: list[dict[int, StreamWords]] = [{} for _ in range(ports)]
        self._first = [0] * ports
        self._free = [0] * ports
        self._has_sent = [False] * ports
        self._turn = [0] * ports  # Counts what changes which frame is the next.

    def read(self, address: int) -> int:
        """Return the word at ``address``; a read changes nothing."""
        port, offset = divmod(address - BINS_BASE, PORT_STRIDE)
        if 0 <= port < self.ports and offset < 4 * SLOTS * BIN_SLOT_WORDS:
            slot, place = divmod(offset // 4, BIN_SLOT_WORDS)
            return self.meters[port].bins[slot][place]
        return super().read(address)

    # # #

    def _act(self, name: str, word: int) -> None:
        port = int(name[4]) if name.startswith("port") else 0
        register = name.partition("_tx_")[2]
        if register == "streams_arm":
            self._arm_streams(port)
        elif register == "streams_begin":
            self._begin_streams(port, word)
        elif register == "streams_end":
            self._end_streams(port, word)
        elif register == "streams_hold":
            self._look_for_end(port)
        else:
            super()._act(name, word)

    # Transmit ---------------------------------------------------------------------------------

    def _word(self, base: int, port: int, number: int) -> int:
        return self._memory.get(base + PORT_STRIDE * port + 4 * number, 0)

    def _arm_streams(self, port: int) -> None:
        mask = self.values[f"port{port}_tx_streams_mask"]
        self._loaded[port] = {
            number: StreamWords(
                lambda word: self._word(SCHEDULE_BASE, port, word),
                lambda word: self._word(LISTS_BASE, port, word),
                number,
            )
            for number in range(STREAMS)
            if mask >> number & 1
        }
        self._sending[port] = {number: one for number, one in self._loaded[port].items() if one.begin()}
        self._clear_sent(port)
        self._tx(port, state=TransmitState.ARMED, sent=0)
        self._show_active(port)
        self._at(self.tick + BUILD_TICKS, lambda: self._tx(port, state=TransmitState.READY))

    def _start(self, ports: list[int]) -> None:
        """Start ports, all in one tick, if all of them are ready."""
        if any(self.values[f"port{port}_tx_state"] != TransmitState.READY for port in ports):
            return
        for port in ports:
            wait_ns = (
                self.values[f"port{port}_tx_start_time"] - self.now() if self.values[f"port{port}_tx_timed"] else 0
            )
            wait_ticks = math.ceil(Fraction(wait_ns * INCREMENT_ONE, self.values["timebase_increment"]))
            self._first[port] = self._free[port] = self.tick + max(1, wait_ticks)
            self._has_sent[port] = False
            self._tx(port, state=TransmitState.RUNNING)
            self._plan(port)

    def _plan(self, port: int) -> None:
        """Have the stream that is due first send when the line is free."""
        self._turn[port] += 1
        turn, sending = self._turn[port], self._sending[port]
        if not sending:
            self._look_for_end(port)
            return
        number = min(sending, key=lambda one: (sending[one].due, one))
        due = self._first[port] + sending[number].due
        self._at(max(due, self._free[port]), lambda: self._send_stream(port, number, due, turn))

    def _send_stream(self, port: int, number: int, due: int, turn: int) -> None:
        if turn != self._turn[port] or self.values[f"port{port}_tx_state"] != TransmitState.RUNNING:
            return
        stream = self._sending[port][number]
        is_late = self.tick > due and self._has_sent[port]
        self._has_sent[port] = True
        frame = TrafficFrame(
            port,
            stream.sequence,
            self._stream_id(port, number),
            stream.length,
            self.now(),
            number=number,
            is_probe=bool(stream.field("with_probe")),
        )
        self.frames.append(frame)
        self._count_sent(port, number, stream.sequence, is_late)
        for target, delay, arrived in self.wire(frame):
            self._at(self.tick + delay, lambda target=target, arrived=arrived: self._receive(target, arrived))  # type: ignore[misc]
        self._free[port] = self.tick + frame.length + OVERHEAD
        if not stream.advance():
            del self._sending[port][number]
        self._keep_state(port, stream)
        self._show_active(port)
        self._plan(port)

    def _stream_id(self, port: int, number: int) -> int:
        """Return the stream id that stands in its headers, as octets."""
        words = [
            self._word(HEADER_BASE, port, HEADER_WORDS_OF_STREAM * number + n) for n in range(HEADER_WORDS_OF_STREAM)
        ]
        octets = b"".join(word.to_bytes(4, "little") for word in words)
        at = octets.find(b"LPRO")
        return int.from_bytes(octets[at + 4 : at + 6]) if at >= 0 else 0

    def _count_sent(self, port: int, number: int, sequence: int, is_late: bool) -> None:
        base = SENT_BASE + PORT_STRIDE * port + 4 * SENT_WORDS * number
        low, high, late, first_late = (self._memory.get(base + 4 * n, 0) for n in range(SENT_WORDS))
        sent = (high << 32 | low) + 1
        first_late = sequence if is_late and first_late == NO_SEQUENCE else first_late
        self.show(base, [sent & 0xFFFFFFFF, sent >> 32, late + is_late, first_late])
        values = self.values
        self._tx(port, sent=values[f"port{port}_tx_sent"] + 1, late=values[f"port{port}_tx_late"] + is_late)

    def _keep_state(self, port: int, stream: StreamWords) -> None:
        """Write what changes from frame to frame, as far as a host reads it."""
        base = SCHEDULE_BASE + PORT_STRIDE * port + 4 * STREAM_WORDS * stream.number
        self.show(base + 4 * STREAM_FIELDS["sequence"].word, [stream.sequence])
        if not stream.field("endless"):
            self.show(base + 4 * STREAM_FIELDS["frames_left"].word, [stream.left])

    def _begin_streams(self, port: int, mask: int) -> None:
        if self.values[f"port{port}_tx_state"] != TransmitState.RUNNING:
            return
        for number, stream in self._loaded[port].items():
            if mask >> number & 1:
                self._sending[port].pop(number, None)
                if stream.begin(self.tick - self._first[port]):
                    self._sending[port][number] = stream
        self._show_active(port)
        self._plan(port)

    def _end_streams(self, port: int, mask: int) -> None:
        self._sending[port] = {n: one for n, one in self._sending[port].items() if not mask >> n & 1}
        self._show_active(port)
        self._plan(port)

    def _show_active(self, port: int) -> None:
        self.values[f"port{port}_tx_streams_active"] = sum(1 << number for number in self._sending[port])

    def _look_for_end(self, port: int) -> None:
        """End the program when no stream is active, and nobody holds it."""
        is_running = self.values[f"port{port}_tx_state"] == TransmitState.RUNNING
        if is_running and not self._sending[port] and not self.values[f"port{port}_tx_streams_hold"]:
            self._at(max(self._free[port], self.tick), lambda: self._tx_stop(port))

    def _tx_stop(self, port: int) -> None:
        super()._tx_stop(port)
        self._sending[port] = {}
        self._show_active(port)

    def _tx_clear(self, port: int) -> None:
        super()._tx_clear(port)
        self._clear_sent(port)

    def _clear_sent(self, port: int) -> None:
        self.show(SENT_BASE + PORT_STRIDE * port, [0, 0, 0, NO_SEQUENCE] * STREAMS)

    # Receive ----------------------------------------------------------------------------------

    def _rx_latch(self, port: int) -> None:
        self.values |= {f"port{port}_rx_{name}": count for name, count in self._live[port].items()}

    def _receive(self, port: int, frame: ModelFrame) -> None:
        if not self.values[f"port{port}_rx_link_up"]:
            return
        assert isinstance(frame, TrafficFrame)
        self._add(port, all_frames=1, all_octets=frame.length)
        self._add(port, fcs_errors=int(bool(frame.flags & RecordFlag.FCS_ERROR)))
        slot = self.meters[port].slot_of(frame.stream_id) if frame.is_probe else 0
        word = self._word(PLACES_BASE, port, slot)
        place = {name: word >> first & (1 << bits) - 1 for name, (first, bits) in PLACE_FIELDS.items()}
        is_bare = not frame.is_probe and bool(place["enable"])
        stamp = frame.stamp
        if place["enable"]:  # The last time until now that has these bits.
            bits, shift = 8 * (place["octets"] + 1) - 4 * place["nibble"], 4 * place["shift"]
            stamp = self.now() - ((self.now() >> shift) - (stamp >> shift)) % (1 << bits) * (1 << shift)
        self.meters[port].arrive(
            MeasuredFrame(
                self.now(),
                frame.length,
                int(frame.flags),
                frame.is_probe,
                frame.stream_id,
                frame.sequence,
                stamp,
                bit_errors=frame.bit_errors,
                is_bare=is_bare,
            )
        )
        self.values[f"port{port}_measure_saturated"] = int(self.meters[port].saturated)
