# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Configuration sets in plain Python: from what a stream says to the frames on the line, each put together anew.

Source: IEEE 802.1Q-2022, 9; RFC 791, 8200, 768, 9293, 1071 (headers and checksums).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

# What a stream of sets says, octet by octet -------------------------------------------------------


@dataclass(frozen=True)
class Template:
    """Holds what is the same in all frames.

    Attributes
    ----------
    header : all octets before the sequence, or the fill.
    length : octets of a frame without FCS.
    fields : bits of the fields that sets have, as in a control octet.
    places : first octet in the header, by the bit of the field.
    complement : the last two octets of a frame make the checksum of UDP or TCP right.
    entries : of the table.
    """

    header: bytes
    length: int
    fields: int
    places: dict[int, int]
    complement: bool
    entries: int = 1 << 16


@dataclass(frozen=True)
class Set:
    """Holds what a set says; ``end``: octets of the stream up to its end."""

    values: dict[int, int]
    end: int


@dataclass(frozen=True)
class Repeats:
    """Says how often the last frame may be repeated from here on."""

    count: int
    end: int


@dataclass(frozen=True)
class End:
    """No more sets; ``error`` says why, "" at the end of the stream as it should be."""

    error: str
    end: int


Item = Set | Repeats | End
#: Octets of a field in the stream, by its bit.
OCTETS = {1: 4, 2: 16, 4: 2, 8: 2, 16: 2, 32: 2}
LENGTH, INDEX = 16, 32


def items(octets: bytes, template: Template) -> Iterator[Item]:
    """Yield what a stream says, up to its end; a set that isn't whole is not there yet."""
    at, is_first, run = 0, True, 0
    while at < len(octets):
        control = octets[at]
        at += 1
        if control == 0xFF:
            continue
        if control == 0xC0:
            yield End("", at)
            return
        if control in (0x80, 0xA0):
            if at + 2 > len(octets):
                return
            at += 2
            number = int.from_bytes(octets[at - 2 : at])
            if control == 0x80:
                yield Repeats(number, at)
            else:
                run = number
            continue
        wrong = wrong_control(control, template, is_first, run)
        if wrong:
            yield End(wrong, at)
            return
        for _ in range(run + 1):
            item = one_set(octets, at, control, template)
            if item is None:
                return
            yield item
            if isinstance(item, End):
                return
            at = item.end
        is_first, run = False, 0


def wrong_control(control: int, template: Template, is_first: bool, run: int) -> str:
    """Return what is wrong with the control octet of a set, "" if nothing is."""
    if control >= 64 or (run and not control):
        return "control"
    if control | template.fields != template.fields:
        return "field"
    return "incomplete" if is_first and control != template.fields else ""


def one_set(octets: bytes, at: int, control: int, template: Template) -> Set | End | None:
    """Return the set whose fields begin at an octet; None where it isn't whole."""
    values = {}
    for bit, count in OCTETS.items():
        if not control & bit:
            continue
        if at + count > len(octets):
            return None
        at += count
        value = values[bit] = int.from_bytes(octets[at - count : at])
        if bit == LENGTH and not 60 <= value <= 9000:
            return End("length", at)
        if bit == INDEX and value >= template.entries:
            return End("index", at)
    return Set(values, at)


# What becomes of it -------------------------------------------------------------------------------


OVERHEAD = 24  # Octets of a frame on the line beyond its length.
LEAD = 256  # Ticks before it is due by which the set of a frame must be there.
# At 50 MHz: ticks from the last word of a set until it can be chosen, and from one choice to the next.
PARSE, FRAME = 25, 70

# Frames ------------------------------------------------------------------------------------------------


def ones_sum(octets: bytes) -> int:
    """Return the sum of pairs of octets in one's complement, 0 to 0xfffe: 0xffff is 0."""
    return int.from_bytes(octets + bytes(len(octets) % 2)) % 0xFFFF


@dataclass
class Writer:
    """Writes the header of each frame."""

    template: Template
    table: Sequence[int]
    header: bytearray = field(default_factory=bytearray)
    length: int = 0

    def __post_init__(self) -> None:
        self.header, self.length = bytearray(self.template.header), self.template.length

    def next(self, values: dict[int, int]) -> bytes:
        """Return the header of the frame of a set."""
        for bit, value in values.items():
            if bit == LENGTH:
                self.length = value
                continue
            octets = self.table[value].to_bytes(4) if bit == INDEX else value.to_bytes(OCTETS[bit])
            place = self.template.places[bit]
            self.header[place : place + len(octets)] = octets
        self._mend()
        return bytes(self.header)

    def _mend(self) -> None:
        """Make lengths and the IPv4 checksum right."""
        header, (ip, version) = self.header, network(self.header)
        if version == 4:
            header[ip + 2 : ip + 4] = (self.length - ip).to_bytes(2)
            header[ip + 10 : ip + 12] = bytes(2)
            header[ip + 10 : ip + 12] = (0xFFFF - ones_sum(bytes(header[ip : ip + 20]))).to_bytes(2)
        if version == 6:
            header[ip + 4 : ip + 6] = (self.length - ip - 40).to_bytes(2)
        at, protocol = transport(header)
        if protocol == 17:
            header[at + 4 : at + 6] = (self.length - at).to_bytes(2)

    def seed(self) -> int:
        """Return the sum of pseudo-header and header of UDP or TCP, 0 to 0xfffe."""
        if not self.template.complement:
            return 0
        header, (ip, version) = bytes(self.header), network(self.header)
        at, protocol = transport(self.header)
        addresses = header[ip + (8 if version == 6 else 12) : at]
        of_transport = header[at : at + (8 if protocol == 17 else 20)]
        return ones_sum(addresses + (self.length - at).to_bytes(4) + protocol.to_bytes(4) + of_transport)


def network(header: bytes | bytearray) -> tuple[int, int]:
    """Return where the IP header is, and its version; 0 where there is none."""
    at = 12
    while header[at : at + 2] in (b"\x81\x00", b"\x88\xa8"):
        at += 4
    ethertype = bytes(header[at : at + 2])
    at += 2
    if ethertype == b"\x88\x47":
        while not header[at + 2] & 1:
            at += 4
        at += 4
        return at, header[at] >> 4
    return at, {b"\x08\x00": 4, b"\x86\xdd": 6}.get(ethertype, 0)


def transport(header: bytes | bytearray) -> tuple[int, int]:
    """Return where the header of UDP or TCP is, and the protocol; 0 where there is none."""
    ip, version = network(header)
    if not version:
        return ip, 0
    protocol = header[ip + (6 if version == 6 else 9)]
    return ip + (40 if version == 6 else 20), protocol if protocol in (6, 17) else 0


# When --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Frame:
    """A frame: number, tick at which it is due, its length and header, and whether it has a set of its own."""

    sequence: int
    due: int
    length: int
    header: bytes
    seed: int
    is_repeat: bool


@dataclass(frozen=True)
class Outcome:
    """Holds the outcome of a program of sets; counters as the gateware has them; ``first_underrun`` None: none.

    ``margin``: ticks by which all sets came before or behind what decides on their frames, where times count.
    """

    frames: list[Frame]
    sets: int = 0
    repeats: int = 0
    underruns: int = 0
    first_underrun: int | None = None
    error: str = ""
    margin: float = math.inf


class Schedule:
    """Due ticks of frames at a constant interval, or back to back for None."""

    def __init__(self, interval: Fraction | None) -> None:
        self.interval, self.due = interval, Fraction(0)

    def next(self, length: int) -> None:
        """Move on behind a frame."""
        self.due += length + OVERHEAD if self.interval is None else self.interval

    @property
    def tick(self) -> int:
        """The tick at which the next frame is due."""
        return math.floor(self.due)


def outcome(
    octets: bytes,
    template: Template,
    table: Sequence[int],
    interval: Fraction | None,
    allowed: int,
    decisions: Sequence[bool],
) -> Outcome:
    """Return the frames where it is known which of them are repeated (``decisions``), and check that they may be.

    Raises ValueError when one is repeated that must not be, or there are more frames than sets.
    """
    writer, schedule = Writer(template, table), Schedule(interval)
    stream = items(octets, template)
    frames: list[Frame] = []
    repeats = in_row = 0
    header = b""
    pending: list[int] = []  # What was allowed since the last set.
    result = Outcome(frames)
    for number, is_repeat in enumerate(decisions):
        if is_repeat:
            # SET_REPEATs that come next may be there already.
            if not pending:
                pending, stream = _allowed_from(stream, allowed)
            in_row += 1
            repeats += 1
            if in_row > max(pending) or not header:
                raise ValueError(f"frame {number} is repeat {in_row} in a row of {pending} that are allowed")
        else:
            item = next(stream, None)
            while isinstance(item, Repeats):
                allowed, item = item.count, next(stream, None)
            if not isinstance(item, Set):
                raise ValueError(f"frame {number} has no set")
            header, in_row, pending = writer.next(item.values), 0, []
        frames.append(Frame(number, schedule.tick, writer.length, header, writer.seed(), is_repeat))
        schedule.next(writer.length)
    end = next((item for item in stream if not isinstance(item, Repeats)), None)
    error = end.error if isinstance(end, End) else "" if end is None else "more sets"
    return replace(result, sets=len(frames) - repeats, repeats=repeats, error=error)


def _allowed_from(stream: Iterator[Item], allowed: int) -> tuple[list[int], Iterator[Item]]:
    """Return what may be allowed before the next set, and the stream as it was."""
    seen: list[Item] = []
    counts = [allowed]
    for item in stream:
        seen.append(item)
        if not isinstance(item, Repeats):
            break
        counts.append(item.count)

    def again() -> Iterator[Item]:
        yield from seen
        yield from stream

    return counts, again()


@dataclass
class Clocked:
    """Chooses frames at the ticks at which a source does, where sets are there at known ticks."""

    writer: Writer
    schedule: Schedule
    allowed: int
    count: int
    frames: list[Frame] = field(default_factory=list)
    sets: int = 0
    repeats: int = 0
    underruns: int = 0
    first_underrun: int | None = None
    margin: float = math.inf
    free: float = -math.inf  # Tick at which the next frame can be chosen.
    in_row: int = 0
    header: bytes = b""

    def is_later(self, there: float, tick: float) -> bool:
        """Return whether a set is there too late, and keep how nearly."""
        self.margin = min(self.margin, abs(there - tick))
        return there > tick

    def repeat_until(self, there: float) -> None:
        """Repeat the last frame in each slot until something is there."""
        while self.header and self.in_row < self.allowed and len(self.frames) < self.count:
            tick = max(self.schedule.tick - LEAD, self.free)
            if not self.is_later(there, tick):
                return
            self.send(tick, True)

    def send(self, tick: float, is_repeat: bool) -> None:
        """Send the present header; it was chosen in this tick."""
        writer, number = self.writer, len(self.frames)
        self.frames.append(Frame(number, self.schedule.tick, writer.length, self.header, writer.seed(), is_repeat))
        self.schedule.next(writer.length)
        self.free = tick + FRAME
        self.in_row = self.in_row + 1 if is_repeat else 0
        self.repeats, self.sets = self.repeats + is_repeat, self.sets + (not is_repeat)

    def send_set(self, values: dict[int, int], there: float) -> None:
        """Send the frame of a set."""
        if self.is_later(there, max(self.schedule.tick, self.free)):
            self.underruns += 1
            self.first_underrun = len(self.frames) if self.first_underrun is None else self.first_underrun
        self.header = self.writer.next(values)
        self.send(max(there, self.free), False)

    def outcome(self, error: str = "") -> Outcome:
        """Return what it came to."""
        counts = (self.sets, self.repeats, self.underruns, self.first_underrun)
        return Outcome(self.frames, *counts, error, self.margin)


def timed(
    octets: bytes,
    template: Template,
    table: Sequence[int],
    interval: Fraction,
    allowed: int,
    arrivals: Sequence[float],
    count: int,
) -> Outcome:
    """Return the frames, ``count`` at most, where it is known when each octet is there (ticks since the start)."""
    clocked = Clocked(Writer(template, table), Schedule(interval), allowed, count)
    for item in items(octets, template):
        there = arrivals[item.end - 1] + PARSE
        clocked.repeat_until(there)
        if len(clocked.frames) == count:
            break
        if isinstance(item, Repeats):
            clocked.allowed, clocked.free = item.count, max(clocked.free, there)
        elif isinstance(item, End):
            return clocked.outcome(item.error)
        else:
            clocked.send_set(item.values, there)
    return clocked.outcome()
