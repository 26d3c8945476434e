# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A stream of frames is pure data: what it sends and when, checked as far as that can be without a probe."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from liteprobe.cores.formats import (
    CHECKSUM_OCTETS,
    HEAD_OCTETS,
    HEADER_OCTETS,
    MAX_LENGTH,
    MIN_LENGTH,
    MODIFIERS,
    OVERHEAD,
    PAYLOAD_MIN,
    PRBS_BITS,
    PRBS_SEED,
    PRBS_TAPS,
    SEQUENCE_OFFSET,
    STAMP_OFFSET_MIN,
    TICK_NS,
)
from liteprobe.host.defaults import FILLS
from liteprobe.host.errors import UsageError
from liteprobe.host.traffic.headers import (
    CHECKSUM_CONSTANT,
    Headers,
    MplsLabel,
    ones_complement_sum,
    probe_octets,
    vlan_tag,
)
from liteprobe.host.traffic.intervals import (
    NOMINAL,
    TICKS_MAX,
    Burst,
    Interval,
    Number,
    check_ticks,
    exact,
    head_ticks,
    is_back_to_back,
)
from liteprobe.host.traffic.lengths import IMIX, Fixed, Length, Lengths, RandomLength, Stepped, weighted
from liteprobe.host.traffic.modifiers import Decrement, Field, Increment, Modifier, Random, Values, field_of, value_of
from liteprobe.host.traffic.stamps import Stamp

__all__ = [
    "IMIX",
    "Burst",
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
    "vlan_tag",
    "weighted",
]


@dataclass(frozen=True)
class Stream:
    """Frames of one kind that a port sends beside up to fifteen others.

    Parameters
    ----------
    name : str
        For people: in tables and reports.
    stream_id : int
        Number that a probe header carries, 0 to 65535; those of the streams that one port receives lie within 31.
    length : Fixed, Stepped, RandomLength or Lengths
        Octets of the frames without FCS.
    interval : Interval
        When they are due; by default back to back.
    count : int or None
        Frames, 1 to 2^32-1; None: endless.
    start_ns : number
        From the start of the program to the first frame (ns), rounded to whole ticks; up to 34 s.
    port : int
        That sends it.
    headers : Headers
        From the MAC addresses to UDP or TCP.
    modifiers : tuple of Modifier
        Up to four; what each changes is described with it.
    payload : bytes
        Octets that follow the headers, before the fill; without a probe header alone.
    fill : str
        The rest of the frame: ``zero``, ``counting`` or ``prbs``, anew in each frame. Without a probe header it begins at the
        next multiple of four octets; up to there are zeros.
    probe : bool
        A probe header (signature, stream id, sequence, TX stamp) follows UDP: the stream is measured on reception.
    stamp : Stamp or None
        Where the time of sending stands; None: in the probe header, or nowhere where there is none.
    checksum : str
        Of UDP or TCP: ``auto``, ``complement``, ``host`` or ``none`` (``CHECKSUMS``).
    seed : int
        Of all that is random in the stream, 0 to 2^32-1. Streams of different ids draw different numbers from one seed.

    Raises
    ------
    StreamError
        When no probe can send this stream.
    """

    name: str
    stream_id: int
    length: Length
    interval: Interval = field(default_factory=Interval)
    count: int | None = None
    start_ns: Number = 0
    port: int = 0
    headers: Headers = field(default_factory=Headers)
    modifiers: tuple[Modifier, ...] = ()
    payload: bytes = b""
    fill: str = "zero"
    probe: bool = True
    stamp: Stamp | None = None
    checksum: str = "auto"
    seed: int = 1

    def __post_init__(self) -> None:
        check(self)

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
        """How the checksum is made right: ``complement``, ``host`` or ``none``."""
        if self.checksum != "auto":
            return self.checksum
        is_optional = self.headers.transport == "udp" and self.headers.is_ipv4
        return "complement" if self.headers.has_transport and not is_optional else "none"

    @property
    def template_octets(self) -> int:
        """Octets that come from the header memory: up to the sequence, or to the fill, a multiple of four."""
        if self.probe:
            return self.headers.payload_offset + SEQUENCE_OFFSET
        return -(-(self.headers.payload_offset + len(self.payload)) // 4) * 4

    @property
    def length_min(self) -> int:
        """Length of the shortest frame that has all that it must."""
        end = self.headers.payload_offset + PAYLOAD_MIN if self.probe else self.template_octets
        return max(MIN_LENGTH, end + (CHECKSUM_OCTETS if self.used_checksum == "complement" else 0))

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
        start = self.template_octets - self.headers.payload_offset
        payload = self.payload.ljust(start, b"\0") + fill_octets(self.fill, length - self.template_octets)
        total = self.headers.transport_sum(length, 0) + ones_complement_sum(payload)
        checksum = 0xFFFF - ((total & 0xFFFF) + (total >> 16))
        return checksum or CHECKSUM_CONSTANT[self.headers.transport]


def fill_octets(fill: str, count: int) -> bytes:
    """Return the first octets of a fill: ``zero``, ``counting`` or ``prbs`` (ITU-T O.150, first bit in bit 7)."""
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


COUNT_MAX = 2**32 - 1
SEED_MAX = 2**32 - 1
#: How the checksum of UDP or TCP is made right.
CHECKSUMS = {
    "auto": "none for UDP over IPv4, else complement",
    "complement": "the last two octets of the frame are what the sum lacks",
    "host": "worked out by the host: where nothing varies that enters it",
    "none": "no checksum: 0, of UDP over IPv4 alone",
}


class StreamError(UsageError):
    """A stream that can't be; ``key`` says which of its settings is to be changed."""

    def __init__(self, name: str, key: str, message: str) -> None:
        super().__init__(f"stream '{name}': {message}")
        self.key = key


def check(stream: Stream) -> None:
    """Raise StreamError, naming the fix, when no probe can send ``stream``."""
    _check_numbers(stream)
    _check_headers(stream)
    _check_checksum(stream)
    _check_length(stream)
    _check_interval(stream)
    _check_modifiers(stream)
    _check_stamp(stream)


# # #


def _require(holds: bool, stream: Stream, key: str, message: str) -> None:
    if not holds:
        raise StreamError(stream.name, key, message)


def _check_numbers(stream: Stream) -> None:
    _require(bool(stream.name.strip()), stream, "name", "it has no name: give it one")
    _require(0 <= stream.stream_id <= 0xFFFF, stream, "id", f"id {stream.stream_id} is out of range: give 0 to 65535")
    _require(stream.port >= 0, stream, "port", f"port {stream.port} is out of range: give 0 or more")
    _require(
        stream.count is None or 1 <= stream.count <= COUNT_MAX,
        stream,
        "count",
        f"count {stream.count} is out of range: give 1 to {COUNT_MAX}, or none for an endless stream",
    )
    most = TICKS_MAX * TICK_NS
    _require(
        0 <= exact(stream.start_ns) <= most,
        stream,
        "start",
        f"start {stream.start_ns} ns is out of range: give 0 to {most // 10**6 / 1000:.3f} s",
    )
    fills = ", ".join(FILLS)
    _require(stream.fill in FILLS, stream, "fill", f"fill '{stream.fill}' is unknown: give one of {fills}")
    _require(0 <= stream.seed <= SEED_MAX, stream, "seed", f"seed {stream.seed} is out of range: give 0 to {SEED_MAX}")


def _check_headers(stream: Stream) -> None:
    headers = stream.headers
    is_udp = headers.has_transport and headers.transport == "udp"
    _require(
        is_udp or not stream.probe,
        stream,
        "probe",
        "a probe header is found on reception behind UDP alone: give UDP headers, or set probe to false",
    )
    _require(
        not (stream.payload and stream.probe),
        stream,
        "payload",
        "a probe header takes the place of the payload: leave out the payload, or set probe to false",
    )
    octets = stream.template_octets
    _require(
        octets <= HEADER_OCTETS,
        stream,
        "payload",
        f"headers and payload of {octets} octets are too long: give {HEADER_OCTETS} at most, the fill comes after them",
    )


def _check_checksum(stream: Stream) -> None:
    headers, kind = stream.headers, stream.checksum
    _require(kind in CHECKSUMS, stream, "checksum", f"checksum '{kind}' is unknown: give one of {', '.join(CHECKSUMS)}")
    is_optional = not headers.has_transport or (headers.transport == "udp" and headers.is_ipv4)
    name = f"{headers.transport.upper()} over {'IPv6' if headers.is_ipv6 else 'IPv4'}"
    _require(
        kind != "none" or is_optional,
        stream,
        "checksum",
        f"{name} has a checksum always: give checksum complement, or host where nothing varies that enters it",
    )
    _require(
        kind not in ("complement", "host") or headers.has_transport,
        stream,
        "checksum",
        f"there is no UDP or TCP whose checksum could be '{kind}': leave it out",
    )
    if kind != "host":
        return
    varies = {
        "its length": not isinstance(stream.length, Fixed),
        "its probe header": stream.probe,
        "a stamp in its payload": stream.used_stamp is not None and stream.used_stamp.place == "octet",
    }
    for what, does in varies.items():
        _require(not does, stream, "checksum", f"the host can't work out the checksum: {what} varies: give complement")


def _check_length(stream: Stream) -> None:
    least = stream.length.least
    _require(
        least >= stream.length_min,
        stream,
        "length",
        f"length {least} is too short for its headers: give {stream.length_min} to {MAX_LENGTH}",
    )


def _check_interval(stream: Stream) -> None:
    interval, length = stream.interval, stream.length
    if is_back_to_back(interval, length):
        _require(
            length.cycle is not None,
            stream,
            "interval",
            "frames of random lengths can't be due back to back: give a share of 100%, where those after longer ones are late",
        )
        return
    ticks = head_ticks(interval, length, NOMINAL)
    try:
        check_ticks(interval, ticks)
    except UsageError as error:
        raise StreamError(stream.name, "interval", str(error)) from None
    if interval.burst is None or interval.burst.inner_ns is None:
        return
    slot_ns = TICK_NS * (length.greatest + OVERHEAD)
    inner_ns = exact(interval.burst.inner_ns)
    _require(
        inner_ns >= slot_ns,
        stream,
        "burst",
        f"an interval of {float(inner_ns):g} ns within bursts is too short for frames of {length.greatest} octets: "
        f"give {slot_ns} ns or more, or none for back to back",
    )
    _require(
        round(inner_ns / TICK_NS) <= TICKS_MAX,
        stream,
        "burst",
        f"an interval of {float(inner_ns):g} ns within bursts is out of range: give {TICKS_MAX * TICK_NS} ns at most",
    )
    lasts_ns = (interval.burst.count - 1) * inner_ns + slot_ns
    _require(
        interval.exponential or lasts_ns <= ticks * TICK_NS,
        stream,
        "burst",
        f"a burst lasts {float(lasts_ns):g} ns, the next one begins after {float(ticks * TICK_NS):g} ns: "
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


def _check_modifiers(stream: Stream) -> None:
    count = len(stream.modifiers)
    _require(count <= MODIFIERS, stream, "modify", f"{count} modifiers are too many: give {MODIFIERS} at most")
    taken: dict[int, Modifier] = {}
    for number, modifier in enumerate(stream.modifiers):
        try:
            place = field_of(modifier.field, stream.headers)
            _check_values(stream, modifier)
            _check_place(stream, modifier, place)
            for pair in place.pairs:
                if pair in taken:
                    raise UsageError(
                        f"fields '{taken[pair].field}' and '{modifier.field}' both change octets {pair} and {pair + 1}: "
                        "give one modifier for both, by offset and mask"
                    )
                taken[pair] = modifier
        except UsageError as error:
            raise StreamError(stream.name, f"modify[{number}]", str(error)) from None


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
    if stream.used_checksum == "host" and (headers.summed_pairs & set(place.pairs) or _is_payload(headers, place)):
        raise UsageError(f"field '{name}' enters the checksum, which the host can't work out then: give complement")


def _is_payload(headers: Headers, place: Field) -> bool:
    return max(place.touched) >= headers.payload_offset


def _check_stamp(stream: Stream) -> None:
    stamp, headers = stream.used_stamp, stream.headers
    if stamp is None:
        return
    _require(
        stream.probe or stamp.place != "probe",
        stream,
        "stamp",
        "there is no probe header for the stamp: give it another place, or set probe to true",
    )
    try:
        offset = stamp.offset(headers)
    except UsageError as error:
        raise StreamError(stream.name, "stamp", str(error)) from None
    _require(
        offset >= STAMP_OFFSET_MIN,
        stream,
        "stamp",
        f"a stamp at octet {offset} is too early, the frame has left by then: give {STAMP_OFFSET_MIN} or more",
    )
    if stamp.place == "octet":
        first = headers.payload_offset + (PAYLOAD_MIN if stream.probe else 0)
        end = stream.length.least - (CHECKSUM_OCTETS if stream.used_checksum == "complement" else 0)
        last = min(end, HEAD_OCTETS) - stamp.octets
        _require(
            first <= offset <= last,
            stream,
            "stamp",
            f"a stamp of {stamp.octets} octets at octet {offset} is not in the payload of the shortest frame: "
            + (f"give octet {first} to {last}" if first <= last else "give longer frames"),
        )
    is_mended = stamp.place == "ipv4.identification"
    _require(
        not is_mended or headers.identification == 0,
        stream,
        "stamp",
        f"the identification {headers.identification} is where the stamp stands: leave it out",
    )
    octets = set(range(offset, offset + stamp.octets))
    for modifier, place in stream.fields():
        _require(
            not octets & place.touched, stream, "stamp", f"field '{modifier.field}' is where the stamp stands: move one"
        )
