# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A stream of frames is pure data: what it sends and when, checked as far as that can be without a probe."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from liteprobe.cores.formats import (
    CHECKSUM_OCTETS,
    HEAD_OCTETS,
    HEADER_OCTETS,
    MAX_LENGTH,
    MIN_LENGTH,
    OVERHEAD,
    PAYLOAD_MIN,
    PRBS_BITS,
    PRBS_SEED,
    PRBS_TAPS,
    SEQUENCE_OFFSET,
    STAMP_OFFSET_MIN,
)
from liteprobe.host.base.defaults import FILLS
from liteprobe.host.base.document import (
    NAME,
    WORD_MAX,
    Flag,
    Key,
    OneOf,
    Section,
    Text,
    Whole,
    check_fields,
    inline,
    key,
    keys,
    keys_of,
    part,
)
from liteprobe.host.base.errors import RangeError, UsageError
from liteprobe.host.base.line import GIGABIT, Line
from liteprobe.host.base.units import Number, exact
from liteprobe.host.base.validate import Between, validated
from liteprobe.host.traffic.headers import (
    ANY_IP,
    CHECKSUM_CONSTANT,
    HALFWORD,
    Headers,
    MplsLabel,
    ones_complement_sum,
    probe_octets,
    sourced,
    vlan_tag,
)
from liteprobe.host.traffic.intervals import START, Burst, Interval, head_ticks, is_back_to_back
from liteprobe.host.traffic.lengths import IMIX, LENGTHS, Fixed, Length, Lengths, RandomLength, Stepped, weighted
from liteprobe.host.traffic.modifiers import (
    MODIFIERS,
    Decrement,
    Field,
    Increment,
    Modifier,
    Random,
    Values,
    field_of,
    value_of,
)
from liteprobe.host.traffic.stamps import STAMPS, Stamp

__all__ = [
    "IMIX",
    "Burst",
    "Coverage",
    "Decrement",
    "Field",
    "Fixed",
    "Headers",
    "Increment",
    "Interval",
    "Length",
    "Lengths",
    "Modifier",
    "MplsLabel",
    "Random",
    "RandomLength",
    "Stamp",
    "Stepped",
    "Stream",
    "StreamError",
    "Values",
    "fill_octets",
    "vlan_tag",
    "weighted",
]


PORTS = 16
HALFWORDS_OF_HEADERS = Whole(0, HEADER_OCTETS - 2)
OCTETS = Text("octets in hexadecimal, like 00ff 12", r"([0-9a-fA-F]{2}\s*)*", bytes.fromhex, bytes.hex)
#: How the checksum of UDP or TCP is made right.
CHECKSUMS = {
    "auto": "none for UDP over IPv4, else complement",
    "complement": "the last two octets of the frame are what the sum lacks",
    "host": "worked out by the host: where nothing varies that enters it",
    "none": "no checksum: 0, of UDP over IPv4 alone",
}


@validated
@dataclass(frozen=True)
class Coverage:
    """Says what the two octets at the end of a frame make right, where that is no UDP or TCP header of the stream's own.

    It is for headers that stand in the payload: ICMP, or UDP and TCP of an inner packet. Where it begins behind the stream's own
    IPv6 header, the pseudo-header is that of this one. Numbers of octets are even.

    Source: RFC 792; RFC 4443, section 2.3; RFC 7820, section 3.
    """

    start: int = key(
        "from", HALFWORDS_OF_HEADERS, "First octet of the frame that the sum covers, up to the frame's end."
    )
    addresses: int = key(
        "addresses", HALFWORDS_OF_HEADERS, "First octet before that which it covers, too: addresses.", 0
    )
    octets: int = key("octets", Whole(0, 32), "Octets of these addresses.", 0)
    constant: int = key("constant", HALFWORD, "What else enters the sum: of a pseudo-header, length and protocol.", 0)

    def __post_init__(self) -> None:
        check_fields(self, " of a coverage")
        for number in (self.start, self.addresses, self.octets):
            if number % 2:
                raise UsageError(f"{number} octets of a coverage are out of range: give even numbers")
        if self.octets and self.addresses + self.octets > self.start:
            raise UsageError(
                f"the addresses of a coverage end behind octet {self.start}, where it begins: give them earlier"
            )


COVERAGE = part(Coverage, "coverage")


class StreamError(UsageError):
    """A stream that can't be; ``key`` says which of its settings is to be changed."""

    def __init__(self, name: str, key: str, message: str) -> None:
        super().__init__(f"stream '{name}': {message}")
        self.key = key


@validated
@dataclass(frozen=True)
class Stream:
    """Frames of one kind that a port sends beside up to fifteen others.

    Without a ``count`` it is endless; ``start_ns`` (ns) is rounded to whole ticks. The fill begins anew in each frame; without a
    probe header it begins at the next multiple of four octets, up to there are zeros. A probe header is signature, stream id,
    sequence and TX stamp. Without a ``stamp`` that is in the probe header, or nowhere. Streams of different ids draw different
    numbers from one seed. What each modifier changes is described with it.

    Raises
    ------
    StreamError
        When no probe can send this stream.
    """

    name: str = keys({"name": Key(NAME, "For people: in tables and reports.", "stream-<id>")})
    stream_id: int = keys(
        {
            "id": Key(
                HALFWORD,
                "Number that a probe header carries; those that one port receives lie within 31.",
                "its place in the document, from 1",
            )
        }
    )
    length: Length = keys(
        {
            "length": Key(
                LENGTHS,
                "Octets of a frame without FCS; a list is taken from the first to the last and again.",
                "must be given",
            )
        }
    )
    interval: Interval = inline(Interval)
    count: int | None = key(
        "count", Whole(1, WORD_MAX, note=", or none for an endless stream"), "Frames.", None, "endless"
    )
    start_ns: Number = key("start", START, "From the start of the program to the first frame.", 0)
    port: int = key("port", Whole(0, PORTS - 1), "Port that sends it.", 0)
    headers: Headers = inline(Headers)
    modifiers: tuple[Modifier, ...] = keys(
        {"modify": Key(MODIFIERS, "What changes in the headers from frame to frame.")}, ()
    )
    payload: bytes = keys(
        {"payload": Key(OCTETS, "Octets that follow the headers, before the fill; without a probe header alone.")}, b""
    )
    fill: str = key("fill", OneOf(tuple(FILLS)), "The rest of the frame.", "zero")
    probe: bool = key(
        "probe", Flag(), "A probe header follows UDP: the stream is measured on reception.", True, "true with UDP"
    )
    stamp: Stamp | None = key(
        "stamp", STAMPS, "Where the time of sending stands.", None, "probe with a probe header, else none"
    )
    checksum: str = key("checksum", OneOf(tuple(CHECKSUMS)), "How the checksum of UDP or TCP is made right.", "auto")
    coverage: Coverage | None = key(
        "coverage",
        COVERAGE,
        "What the complement makes right where that is a header in the payload.",
        None,
        "the UDP or TCP header",
    )
    seed: int = key("seed", Whole(0, WORD_MAX), "Of all that is random in the stream.", 1)
    #: ``source``, ``via``: with them the probe finds the MAC addresses before it sends.
    source: str | None = key(
        "from",
        ANY_IP,
        "Address that the sending port has, in the place of `source` of `ipv4` or `ipv6`; it answers ARP, neighbour discovery and "
        "ping, and the MAC addresses are found before the run.",
        None,
        "the port has no address",
    )
    via: str | None = key(
        "via", ANY_IP, "With `from`: address of the router on the way.", None, "the destination is a neighbour"
    )
    line: Line = GIGABIT  # Of the port that sends it: what a share, and back to back, are; a probe takes its own.

    def __post_init__(self) -> None:
        try:
            check_fields(self)
        except RangeError as error:
            raise StreamError(self.name, error.key, str(error)) from None
        try:
            object.__setattr__(self, "headers", sourced(self.headers, self.source, self.via))
        except RangeError as error:
            raise StreamError(self.name, error.key, str(error)) from None
        for name, message in _problems(self):
            raise StreamError(self.name, name, message)

    @property
    def used_stamp(self) -> Stamp | None:
        """The stamp that its frames have."""
        stamp = self.stamp or Stamp("probe" if self.probe else "none")
        return None if stamp.place == "none" else stamp

    @property
    def has_checked_fill(self) -> bool:
        """Whether all of its fill is PRBS-31 that a receiver can check: bit errors are counted.

        Nothing of a probe stands in it: no stamp, and no complement but that of IPv6, which a receiver leaves out.
        """
        stamp, start = self.used_stamp, self.headers.payload_offset + PAYLOAD_MIN
        is_stamped = stamp is not None and stamp.offset(self.headers) + stamp.octets > start
        is_mended = self.used_checksum == "complement" and not self.headers.is_ipv6
        return self.probe and self.fill == "prbs" and not (is_stamped or is_mended)

    @property
    def used_checksum(self) -> str:
        """Way in which the checksum is made right: ``complement``, ``host`` or ``none``."""
        if self.checksum != "auto":
            return self.checksum
        if self.coverage:
            return "complement"
        is_optional = self.headers.transport == "udp" and self.headers.is_ipv4
        return "complement" if self.headers.has_transport and not is_optional else "none"

    @property
    def covered_from(self) -> int:
        """First octet of the frame that the complement covers as it leaves."""
        return self.coverage.start if self.coverage else self.headers.payload_offset

    @property
    def has_own_pseudo_header(self) -> bool:
        """Whether its IP header enters the checksum."""
        headers = self.headers
        return headers.has_transport or (
            self.coverage is not None and headers.is_ipv6 and self.coverage.start == headers.transport_offset
        )

    @property
    def summed_pairs(self) -> frozenset[int]:
        """Pairs of octets before those that enter the checksum and may vary, by their first octet."""
        if self.coverage is None:
            return self.headers.summed_pairs
        if self.has_own_pseudo_header:
            return frozenset(range(self.headers.network_offset + 8, self.headers.transport_offset, 2))
        return frozenset(range(self.coverage.addresses, self.coverage.addresses + self.coverage.octets, 2))

    @property
    def template_octets(self) -> int:
        """Octets that come from the header memory: up to the sequence, or to the fill, a multiple of four."""
        if self.probe:
            return self.headers.payload_offset + SEQUENCE_OFFSET
        return -(-(self.headers.payload_offset + len(self.payload)) // 4) * 4

    @property
    def length_min(self) -> int:
        """Length of the shortest frame that has all that it must."""
        end = self.headers.payload_offset + (PAYLOAD_MIN if self.probe else len(self.payload))
        if self.used_checksum != "complement":
            return max(MIN_LENGTH, end)
        return max(MIN_LENGTH, (end if self.probe else self.template_octets) + CHECKSUM_OCTETS)

    def template(self, length: int) -> bytes:
        """Return the octets of the header memory for a frame of ``length`` octets (without FCS)."""
        checksum = CHECKSUM_CONSTANT[self.headers.transport] if self.used_checksum == "complement" else 0
        if self.used_checksum == "host":
            checksum = self._sum_of_all(length)
        stack = self.headers.stack(length, checksum)
        octets = stack + (probe_octets(self.stream_id) if self.probe else self.payload)
        return octets.ljust(self.template_octets, b"\0")

    def fields(self) -> Iterator[tuple[Modifier, Field]]:
        """Yield its modifiers, each with what it changes."""
        for modifier in self.modifiers:
            yield modifier, field_of(modifier.field, self.headers)

    def _sum_of_all(self, length: int) -> int:
        """Return the checksum of UDP or TCP, worked out over the whole frame."""
        start = min(self.template_octets, length) - self.headers.payload_offset
        fill = fill_octets(self.fill, max(length - self.template_octets, 0))
        payload = self.payload.ljust(start, b"\0") + fill
        total = self.headers.transport_sum(length, 0) + ones_complement_sum(payload)
        checksum = 0xFFFF - ((total & 0xFFFF) + (total >> 16))
        return checksum or CHECKSUM_CONSTANT[self.headers.transport]


STREAM = Section(
    "stream",
    {
        name: keys_of(Stream)[name]
        for name in dict.fromkeys(
            [
                "name",
                "id",
                "port",
                *(name for name in keys_of(Stream) if name not in ("modify", "seed")),
                "modify",
                "seed",
            ]
        )
    },
)


@validated
def fill_octets(fill: str, count: Annotated[int, Between(0, MAX_LENGTH)]) -> bytes:
    """Return the first octets of a fill: ``zero``, ``counting`` or ``prbs`` (ITU-T O.150, first bit in bit 7)."""
    OneOf(tuple(FILLS)).check(fill, "fill")
    if fill == "counting":
        return bytes(number % 256 for number in range(count))
    return _prbs(count) if fill == "prbs" else bytes(count)


def _prbs(count: int) -> bytes:
    state, sent = PRBS_SEED, 0
    for _ in range(8 * count):
        new = (state >> PRBS_TAPS[0] - 1 ^ state >> PRBS_TAPS[1] - 1) & 1
        state = (state << 1 | new) & (1 << PRBS_BITS) - 1
        sent = sent << 1 | new
    return sent.to_bytes(count)


# Checks ------------------------------------------------------------------------------------------------


def _problems(stream: Stream) -> Iterator[tuple[str, str]]:
    """Yield what keeps a stream from being sent, as the key of the setting that is to be changed, and the message."""
    if not stream.name.strip():
        yield "name", "it has no name: give it one"
    yield from _problems_of_headers(stream)
    yield from _problems_of_checksum(stream)
    if stream.length.least < stream.length_min:
        yield (
            "length",
            f"length {stream.length.least} is too short for its headers: give {stream.length_min} to {MAX_LENGTH}",
        )
    yield from _problems_of_interval(stream)
    yield from _problems_of_modifiers(stream)
    yield from _problems_of_stamp(stream)


def _problems_of_headers(stream: Stream) -> Iterator[tuple[str, str]]:
    if stream.probe and not (stream.headers.has_transport and stream.headers.transport == "udp"):
        yield "probe", "a probe header is found on reception behind UDP alone: give UDP headers, or set probe to false"
    if stream.payload and stream.probe:
        yield (
            "payload",
            "a probe header takes the place of the payload: leave out the payload, or set probe to false",
        )
    octets = stream.template_octets
    if octets > HEADER_OCTETS:
        yield (
            "payload",
            f"headers and payload of {octets} octets are too long: give {HEADER_OCTETS} at most, the fill comes after them",
        )


def _problems_of_checksum(stream: Stream) -> Iterator[tuple[str, str]]:
    headers, kind = stream.headers, stream.checksum
    if kind == "none" and headers.has_transport and not (headers.transport == "udp" and headers.is_ipv4):
        name = f"{headers.transport.upper()} over {'IPv6' if headers.is_ipv6 else 'IPv4'}"
        yield (
            "checksum",
            f"{name} has a checksum always: give checksum complement, or host where nothing varies that enters it",
        )
    if stream.coverage:
        yield from _problems_of_coverage(stream, stream.coverage)
    elif kind in ("complement", "host") and not headers.has_transport:
        yield "checksum", f"there is no UDP or TCP whose checksum could be '{kind}': leave it out"
    varies = {
        "its length": not isinstance(stream.length, Fixed),
        "its probe header": stream.probe,
        "a stamp in its payload": stream.used_stamp is not None and stream.used_stamp.place == "octet",
    }
    for what, does in varies.items():
        if kind == "host" and does:
            yield "checksum", f"the host can't work out the checksum: {what} varies: give complement"


def _problems_of_coverage(stream: Stream, coverage: Coverage) -> Iterator[tuple[str, str]]:
    headers, end = stream.headers, stream.headers.payload_offset + len(stream.payload)
    at = headers.network_offset
    made = {at + 2, at + 10} if headers.is_ipv4 else {at + 4} if headers.is_ipv6 else set()
    if made & set(range(coverage.addresses, coverage.addresses + coverage.octets, 2)):
        yield (
            "coverage",
            "its addresses hold the length or the checksum of the IP header, which the probe makes: give addresses alone",
        )
    if headers.has_transport:
        yield (
            "coverage",
            f"{headers.transport.upper()} has a checksum of its own: leave out the coverage, or give no transport",
        )
    elif stream.checksum not in ("auto", "complement"):
        yield (
            "checksum",
            f"a coverage is made right by the complement, not by '{stream.checksum}': leave out one of them",
        )
    elif not headers.payload_offset <= coverage.start < end:
        yield (
            "coverage",
            f"octet {coverage.start} is not in the payload, octets {headers.payload_offset} to {end - 1}: begin there",
        )
    elif stream.has_own_pseudo_header and (coverage.octets or coverage.constant):
        yield (
            "coverage",
            "behind an IPv6 header it has the pseudo-header of this one: leave out addresses, octets and constant",
        )


def _problems_of_interval(stream: Stream) -> Iterator[tuple[str, str]]:
    interval, length = stream.interval, stream.length
    try:
        if is_back_to_back(interval, length, stream.line.nominal):
            if length.cycle is None:
                yield (
                    "interval",
                    "frames of random lengths can't be due back to back: give a share of 100%, where those after longer ones "
                    "are late",
                )
            return
        ticks = head_ticks(interval, length, stream.line.nominal)
    except UsageError as error:
        yield "interval", str(error)
    if interval.burst is None or interval.burst.inner_ns is None:
        return
    octet_ns = stream.line.octet_ns
    slot_ns = octet_ns * (length.greatest + OVERHEAD)
    inner_ns = exact(interval.burst.inner_ns)
    if inner_ns < slot_ns:
        yield (
            "burst",
            f"an interval of {float(inner_ns):g} ns within bursts is too short for frames of {length.greatest} octets: "
            f"give {float(slot_ns):g} ns or more, or none for back to back",
        )
    lasts_ns = (interval.burst.count - 1) * inner_ns + slot_ns
    if not interval.exponential and lasts_ns > ticks * octet_ns:
        yield (
            "burst",
            f"a burst lasts {float(lasts_ns):g} ns, the next one begins after {float(ticks * octet_ns):g} ns: "
            "give a shorter interval within bursts, or a longer one between them",
        )


def _kept_right(stream: Stream) -> dict[int, str]:
    """Return what a probe keeps right by itself, by the first octet of its pair."""
    headers = stream.headers
    network, transport = headers.network_offset, headers.transport_offset
    kept: dict[int, str] = {}
    if headers.is_ipv4:
        kept |= {network + 2: "total length of IPv4", network + 10: "header checksum of IPv4"}
    if headers.is_ipv6:
        kept |= {network + 4: "payload length of IPv6"}
    if headers.has_transport and headers.transport == "udp":
        kept |= {transport + 4: "length of UDP", transport + 6: "checksum of UDP"}
    if headers.has_transport and headers.transport == "tcp":
        kept |= {transport + 16: "checksum of TCP"}
    return kept


def _problems_of_modifiers(stream: Stream) -> Iterator[tuple[str, str]]:
    taken: dict[int, Modifier] = {}
    for number, modifier in enumerate(stream.modifiers):
        try:
            place = field_of(modifier.field, stream.headers)
            _check_values(stream, modifier)
            _check_place(stream, modifier, place)
        except UsageError as error:
            yield f"modify[{number}]", str(error)
        for pair in place.pairs:
            if pair in taken:
                yield (
                    f"modify[{number}]",
                    f"fields '{taken[pair].field}' and '{modifier.field}' both change octets {pair} and {pair + 1}: "
                    "give one modifier for both, by offset and mask",
                )
            taken[pair] = modifier


def _check_values(stream: Stream, modifier: Modifier) -> None:
    values = modifier.values if isinstance(modifier, Values) else ()
    if isinstance(modifier, Increment) and modifier.first is not None:
        values = (modifier.first,)
    for value in values:
        value_of(value, modifier.field, stream.headers)


def _check_place(stream: Stream, modifier: Modifier, place: Field) -> None:
    name, headers, end = modifier.field, stream.headers, stream.template_octets
    if place.offset + 4 > end:
        raise UsageError(
            f"the four octets of field '{name}' reach beyond the headers: give an offset of {end - 4} or less, and move the mask"
        )
    if stream.probe and max(place.touched) >= headers.payload_offset:
        raise UsageError(f"field '{name}' is in the probe header: end before octet {headers.payload_offset}")
    kept = _kept_right(stream)
    for pair in place.pairs:
        if pair in kept:
            raise UsageError(f"field '{name}' is the {kept[pair]}, which is kept right by itself: leave it out")
    if stream.used_checksum == "none":
        return
    protocol = headers.network_offset + (6 if headers.is_ipv6 else 9)
    if protocol in place.touched:
        raise UsageError(f"field '{name}' changes the protocol, which the checksum must not: give checksum none")
    if stream.used_checksum == "host" and (
        stream.summed_pairs & set(place.pairs) or max(place.touched) >= headers.payload_offset
    ):
        raise UsageError(f"field '{name}' enters the checksum, which the host can't work out then: give complement")


def _problems_of_stamp(stream: Stream) -> Iterator[tuple[str, str]]:
    stamp, headers = stream.used_stamp, stream.headers
    if stamp is None:
        return
    if stamp.place == "probe" and not stream.probe:
        yield "stamp", "there is no probe header for the stamp: give it another place, or set probe to true"
    try:
        offset = stamp.offset(headers)
    except UsageError as error:
        yield "stamp", str(error)
    if offset < STAMP_OFFSET_MIN:
        yield (
            "stamp",
            f"a stamp at octet {offset} is too early, the frame has left by then: give {STAMP_OFFSET_MIN} or more",
        )
    first = headers.payload_offset + (PAYLOAD_MIN if stream.probe else 0)
    end = stream.length.least - (CHECKSUM_OCTETS if stream.used_checksum == "complement" else 0)
    last = min(end, HEAD_OCTETS) - stamp.octets
    if stamp.place == "octet" and not first <= offset <= last:
        yield (
            "stamp",
            f"a stamp of {stamp.octets} octets at octet {offset} is not in the payload of the shortest frame: "
            + (f"give octet {first} to {last}" if first <= last else "give longer frames"),
        )
    if stamp.place == "ipv4.identification" and headers.identification:
        yield "stamp", f"the identification {headers.identification} is where the stamp stands: leave it out"
    octets = set(range(offset, offset + stamp.octets))
    for modifier, place in stream.fields():
        if octets & place.touched:
            yield "stamp", f"field '{modifier.field}' is where the stamp stands: move one"
