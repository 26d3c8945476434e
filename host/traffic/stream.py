# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A stream of frames as pure data: what it sends and when, checked as far as that can be without a probe."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from liteprobe.cores.formats import CHECKSUM_OCTETS, MIN_LENGTH, PAYLOAD_MIN, SEQUENCE_OFFSET
from liteprobe.host.traffic.fills import fill_octets
from liteprobe.host.traffic.headers import (
    CHECKSUM_CONSTANT,
    Headers,
    MplsLabel,
    ones_complement_sum,
    probe_octets,
    vlan_tag,
)
from liteprobe.host.traffic.intervals import Burst, Interval, Number
from liteprobe.host.traffic.lengths import IMIX, Fixed, Length, Lengths, RandomLength, Stepped, weighted
from liteprobe.host.traffic.modifiers import Decrement, Field, Increment, Modifier, Random, Values, field_of
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.stream_checks import StreamError, check

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
