# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures a path to a reflector of STAMP and back: a session of test packets at an exact interval, and what came of each way.

The packets are a stream of the probe, with its stamp of sending in the field of T1. Where the probe captures, answers are
taken one by one; where it only measures, its meter reads the stamp that the reflector has copied.

Source: RFC 8762; RFC 8972; RFC 7680 (loss), RFC 5560 (duplicates), RFC 4737 (reordering).
"""

import ipaddress
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import HEADER_OCTETS, MIN_LENGTH, Part
from liteprobe.cores.formats.reflect import STAMP_BASE, STAMP_PORT, STAMP_TTL, TlvFlag
from liteprobe.host.analysis.columns import Column, Columns
from liteprobe.host.analysis.result import PartFigures, Result, of_cells, ratio
from liteprobe.host.analysis.sequence import reordering
from liteprobe.host.analysis.summary import sample
from liteprobe.host.base.defaults import (
    DESTINATION_MAC,
    SOURCE_IP,
    SOURCE_IPV6,
    SOURCE_MAC,
    SOURCE_PORT,
)
from liteprobe.host.base.document import Whole
from liteprobe.host.base.errors import RangeError, UsageError
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.base.validate import validated
from liteprobe.host.capture.request import CaptureRequest
from liteprobe.host.clock.clock import ClockVerdict
from liteprobe.host.measure.percentiles import Bounds, Cells
from liteprobe.host.packets import stamp as packets
from liteprobe.host.packets.batch import Batch
from liteprobe.host.packets.frames import take
from liteprobe.host.packets.stamp import (
    ANSWER_DTYPE,
    LEAST_ANSWER,
    NTP_EPOCH_S,
    ErrorEstimate,
    SenderPacket,
    StampTlv,
    Tlv,
)
from liteprobe.host.packets.unified import payload_places
from liteprobe.host.run.figures import DELAYS_OF, RESULTS, Latency, TrafficLook, TrafficResult
from liteprobe.host.run.streams import SendOptions, Traffic
from liteprobe.host.traffic.headers import Headers, ip_address
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.lengths import Fixed
from liteprobe.host.traffic.load import check_port
from liteprobe.host.traffic.modifiers import Field, Increment
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.stream import Stream

Show = Callable[[TrafficLook], None]
Integers = NDArray[np.int64]

#: What is said of T1, which counts ns of the probe's clock and is of no use to others: its error may be anything.
ERROR_OF_T1 = ErrorEstimate(scale=63, multiplier=255)
SNAP_SPARE = 16  # Octets, for tags and labels that the network puts before a frame's own.
LOOK_S = 0.5  # Of this machine, from look to look, while answers are captured.
SEQUENCE_BITS = 0xFFFFFFFF
TLV_FLAGS = (TlvFlag.UNRECOGNIZED, TlvFlag.MALFORMED, TlvFlag.INTEGRITY)
DIRECT = "direct-measurement"
PADDING = "extra-padding"
PADDING_IPV6 = (
    4  # Octets at least: the last two of a frame make its checksum right, behind a whole word of the headers.
)
COUNT_MOST, PADDING_MOST, DSCP_MOST = 1 << 31, 1400, 63
TRUSTED = ("locked", "holdover")
WAYS = ("there", "back", "both", "reflector")


@validated
@dataclass(frozen=True)
class StampSession:
    """A session of test packets, unauthenticated; UsageError where it can't be.

    ``padding`` is octets of the value of Extra Padding; over IPv6 there are 4 at least, two of which mend the checksum.
    """

    address: str  # Of the reflector, IPv4 or IPv6.
    port: int = STAMP_PORT  # Its UDP port.
    count: int = 100  # Packets.
    interval_ns: float = 1_000_000.0  # From SFD to SFD.
    padding: int | None = None
    dscp: int = 0
    ttl: int = STAMP_TTL  # TTL or hop limit.
    identifier: int = 1  # Of the session (SSID), 16 bits.
    tlvs: tuple[str, ...] = ()  # What to ask for, by the names of `packets.ASKED`.
    #: Whether the reflector counts its answers; None: it does where its numbers say so.
    is_stateful: bool | None = None
    source: str | None = None  # IP address; None: the usual one of a stream.
    #: Router on the way, of which the probe finds the MAC address before it sends; None: as ``destination_mac`` says, or where
    #: the probe has hosts and a source is given, the reflector is a neighbour that is asked.
    via: str | None = None
    source_port: int = SOURCE_PORT
    source_mac: str = SOURCE_MAC
    destination_mac: str = DESTINATION_MAC  # Of the reflector, or of the router to it.
    vlan_tags: tuple[int, ...] = ()
    transmit: int = 0  # Port of the probe, which the answers come to, too.
    #: Whether delays of each way are given though a clock isn't synchronised: they are then off by what the two differ.
    any_clock: bool = False

    def __post_init__(self) -> None:
        self._check()
        if self.via is not None and self.source is None:
            raise UsageError(f"the router {self.via} is asked from an address: give the session's own, too (--from)")
        if len(set(self.tlvs)) < len(self.tlvs):
            raise UsageError("a TLV is asked for twice: name each once")
        octets = sum(len(one.pack()) for one in self.requests if one.name != PADDING)
        padding = packets.TLV_HEAD.size * (len(self.requests) - len(self.tlvs))
        free = (HEADER_OCTETS - self.headers.payload_offset) // 4 * 4 - STAMP_BASE - padding
        if octets > free:
            raise UsageError(
                f"the TLVs that are asked for take {octets} octets of each packet, and a probe has {max(free, 0)} for them with "
                "these headers: ask for fewer, in several sessions"
            )
        check_port([self.stream])

    def _check(self) -> None:
        for name, value, least, most in (
            ("count", self.count, 1, COUNT_MOST), ("padding", self.padding or 0, 0, PADDING_MOST),
            ("dscp", self.dscp, 0, DSCP_MOST), ("ttl", self.ttl, 1, 255), ("ssid", self.identifier, 0, 0xFFFF),
            ("port", self.port, 1, 0xFFFF), ("src-port", self.source_port, 1, 0xFFFF),
        ):  # fmt: skip
            try:
                Whole(least, most).check(value, name)
            except UsageError as error:
                raise RangeError(str(error), name) from None
        address = ip_address(self.address)
        is_broadcast = address == ipaddress.IPv4Address("255.255.255.255")
        if address.is_multicast or address.is_unspecified or is_broadcast:
            raise UsageError(f"{self.address} is not the address of one reflector: give a unicast address")
        if address == ip_address(self.source_ip):
            raise UsageError(
                f"{self.address} is the session's own address: give that of the reflector, or another source"
            )

    @property
    def source_ip(self) -> str:
        """Address that packets come from."""
        return self.source or (SOURCE_IPV6 if ip_address(self.address).version == 6 else SOURCE_IP)

    @property
    def requests(self) -> tuple[Tlv, ...]:
        """TLVs of each packet, Extra Padding last."""
        is_ipv6 = ip_address(self.address).version == 6
        asked = tuple(packets.requested(name, self.dscp) for name in self.tlvs)
        octets = max(self.padding or 0, PADDING_IPV6) if is_ipv6 else self.padding
        return asked if octets is None else (*asked, Tlv(StampTlv.EXTRA_PADDING, bytes(octets)))

    @property
    def packet(self) -> SenderPacket:
        """The first packet, but for its stamp."""
        return SenderPacket(0, 0, ERROR_OF_T1, self.identifier, self.requests)

    @cached_property
    def headers(self) -> Headers:
        """Headers of each packet."""
        return Headers(
            destination_mac=self.destination_mac,
            source_mac=self.source_mac,
            source_ip=self.source_ip,
            destination_ip=self.address,
            source_port=self.source_port,
            destination_port=self.port,
            vlan_tags=self.vlan_tags,
            ttl=self.ttl,
            traffic_class=self.dscp << 2,
        )

    @cached_property
    def stream(self) -> Stream:
        """The stream of packets, as a probe sends it."""
        headers, octets = self.headers, self.packet.pack()
        padding = self.requests[-1].value if self.requests and self.requests[-1].name == PADDING else b""
        at = headers.payload_offset
        modifiers = [Increment(Field(at, SEQUENCE_BITS), first=0)]
        for place, one in zip(packets.tlv_places(self.requests), self.requests, strict=True):
            if one.name == DIRECT:
                modifiers.append(Increment(Field(at + place + packets.TLV_HEAD.size, SEQUENCE_BITS), first=1))
        return Stream(
            name="stamp",
            stream_id=1,
            length=Fixed(max(at + len(octets), MIN_LENGTH)),
            interval=Interval(interval_ns=self.interval_ns),
            count=self.count,
            port=self.transmit,
            headers=headers,
            modifiers=tuple(modifiers),
            payload=octets[: len(octets) - len(padding)],
            probe=False,
            stamp=Stamp("octet", at + packets.TIMESTAMP_OFFSET),
        )

    def resolved(self, probe: Any) -> tuple[Stream, Callable[[], None] | None]:
        """Return the stream with the MAC addresses of who is next, where these are to be found; and what keeps them."""
        has_hosts = bool(probe.parts & Part.HOSTS) and self.destination_mac == DESTINATION_MAC
        if self.source is None or not (has_hosts or self.via):
            return self.stream, None
        asking = replace(self.stream, source=self.source, via=self.via)
        (found,), neighbours = probe.resolve([asking], self.transmit)
        return found, neighbours.tend

    def answered(self, stream: Stream) -> Stream:
        """Return what a packet comes back as, for the meters: the stamp stands where a reflector copies it to."""
        at = stream.headers.payload_offset + packets.SENDER_TIMESTAMP_OFFSET
        return replace(stream, stamp=Stamp("octet", at), modifiers=())


# Answers ------------------------------------------------------------------------------------------


class AnswerSink:
    """Takes records of a capture, and keeps the answers of a session's reflector."""

    def __init__(self, session: StampSession) -> None:
        self._session = session
        self._octets = STAMP_BASE + sum(len(one.pack()) for one in session.requests if one.name != PADDING)
        self._octets += packets.TLV_HEAD.size * any(one.name == PADDING for one in session.requests)
        self._stamps: list[Integers] = []
        self._rows: list[NDArray[np.uint8]] = []
        self._lengths: list[Integers] = []
        self.foreign = 0  # Frames by these ports that are no answer of this session.
        self.gaps = 0  # Frames that the capture dropped.

    @property
    def snap_length(self) -> int:
        """Octets of a frame that the capture must keep."""
        return self._session.stream.headers.payload_offset + self._octets + SNAP_SPARE

    def write(self, batch: Batch) -> None:
        """Take records."""
        self.gaps += int(batch.missing.sum())
        frames = batch.select(np.flatnonzero(~batch.is_gap))
        for size in np.unique(frames.snap_length).tolist():
            of_size = np.flatnonzero(frames.snap_length == size)
            self._take(frames.select(of_size), size)

    def _take(self, frames: Batch, size: int) -> None:
        octets = take(frames.words, frames.octets_at, np.dtype((np.void, -(-size // 4) * 4)))
        table = np.ascontiguousarray(octets).view(np.uint8).reshape(len(frames), -1)[:, :size]
        # Columns beyond the end are zero: answers of TWAMP Light may be shorter than the base.
        padded = np.pad(table, ((0, 0), (0, self._octets + SNAP_SPARE)))
        places = np.minimum(payload_places(table), size)
        head = self._columns(padded, np.maximum(places - 8, 0), 8).astype(np.int64)
        ports = [head[:, 0] << 8 | head[:, 1], head[:, 2] << 8 | head[:, 3]]
        length = (head[:, 4] << 8 | head[:, 5]) - 8
        is_ours = (ports[0] == self._session.port) & (ports[1] == self._session.source_port)
        is_ours &= (length >= LEAST_ANSWER) & (places + LEAST_ANSWER <= size)
        rows = self._columns(padded, places, self._octets)
        numbers = rows[:, :STAMP_BASE].copy().view(ANSWER_DTYPE).reshape(-1)["sender_sequence"]
        is_ours &= numbers < self._session.count
        self.foreign += int(np.count_nonzero(~is_ours))
        self._stamps.append(frames.stamp[is_ours].astype(np.int64))
        self._rows.append(rows[is_ours])
        self._lengths.append(length[is_ours])

    @staticmethod
    def _columns(table: NDArray[np.uint8], first: Integers, count: int) -> NDArray[np.uint8]:
        return np.take_along_axis(table, first[:, np.newaxis] + np.arange(count), axis=1)

    def answers(self) -> "Answers":
        """Return all of them, in the order in which they came."""
        stamps = np.concatenate([np.empty(0, np.int64), *self._stamps])
        rows = np.concatenate([np.empty((0, self._octets), np.uint8), *self._rows])
        lengths = np.concatenate([np.empty(0, np.int64), *self._lengths])
        order = np.argsort(stamps, kind="stable")
        return Answers(stamps[order], rows[order], lengths[order])


@dataclass(frozen=True)
class Answers:
    """Answers of a reflector, in the order in which they came."""

    stamp_ns: Integers  # Shape (answers,). T4, by the probe's clock.
    octets: NDArray[np.uint8]  # Shape (answers, octets). The base and what follows it, up to the padding.
    length: Integers  # Shape (answers,). Octets of each answer's UDP payload.

    @cached_property
    def base(self) -> NDArray[np.void]:
        """The base of each, shape (answers,), of `ANSWER_DTYPE`."""
        return np.ascontiguousarray(self.octets[:, :STAMP_BASE]).view(ANSWER_DTYPE).reshape(-1)

    @cached_property
    def firsts(self) -> Integers:
        """Places of the first answer to each packet, in the order in which they came."""
        return np.sort(np.unique(self.base["sender_sequence"], return_index=True)[1]).astype(np.int64)

    @property
    def duplicated(self) -> int:
        """Answers to packets that were answered before."""
        return len(self.stamp_ns) - len(self.firsts)

    @cached_property
    def is_ptp(self) -> NDArray[np.bool_]:
        """Whether the times of each are in PTPv2's format."""
        return np.asarray(self.base["error"] >> 14 & 1 == 1)

    def time_ns(self, name: str) -> Integers:
        """Return ``t2`` or ``t3`` of each (ns since 1970, by the reflector's clock and scale)."""
        found = packets.nanoseconds(self.base[f"{name}_seconds"], self.base[f"{name}_fraction"], self.is_ptp)
        return found - np.where(self.is_ptp, 0, NTP_EPOCH_S * 10**9)

    @cached_property
    def sent_ns(self) -> Integers:
        """T1, by the probe's clock."""
        return self.base["sender_timestamp"].astype(np.int64)

    @cached_property
    def residence_ns(self) -> Integers:
        """T3 less T2."""
        return self.time_ns("t3") - self.time_ns("t2")

    @cached_property
    def error(self) -> ErrorEstimate | None:
        """The worst error estimate of all; None without answers."""
        words = [ErrorEstimate.of(int(one)) for one in np.unique(self.base["error"])]
        return max(words, key=lambda one: (not one.is_synchronized, one.bound_ns or float("inf")), default=None)

    def tlv(self, place: int, count: int) -> NDArray[np.uint8]:
        """Return ``count`` octets of each from octet ``place`` of its payload on, shape (answers, count)."""
        return self.octets[:, place : place + count]


# Figures ------------------------------------------------------------------------------------------

Count = int | Bounds | None


@dataclass(frozen=True)
class WayFigures(PartFigures):
    """Figures of a way, as far as they are known: ``there``, ``back``, ``both``, or the time in the ``reflector``."""

    name: str
    #: ``sent``, ``received``, ``lost``: packets of this way; bounds where the reflector's numbers leave it open, None: not known.
    sent: Count = None
    received: Count = None
    lost: Count = None
    duplicated: int | None = None
    reordered: int | None = None
    delays_ns: Integers | None = None  # Of each answered packet, in the order of arrival; None: not known one by one.
    latency: Latency | None = None  # By the probe's meter, where that alone knows it.

    @cached_property
    def delay_figures(self) -> Mapping[str, Any]:
        """Figures of its delays by their names (ns)."""
        if self.latency is not None:
            return self.latency.figures
        if self.delays_ns is None or not len(self.delays_ns):
            return {}
        found: dict[str, Any] = dict(sample(self.delays_ns))
        return {name: found[key] for name, key in FIGURES.items()}

    @property
    def loss_ratio(self) -> float | Bounds | None:
        """Lost over sent."""
        if isinstance(self.lost, Bounds):
            return (
                Bounds(self.lost.least / self.sent, self.lost.most / self.sent) if isinstance(self.sent, int) else None
            )
        return ratio(self.lost, self.sent) if isinstance(self.sent, int) else None


FIGURES = {"least": "min", "mean": "mean", "std": "std", "p50": "p50", "p99": "p99", "p99_9": "p99_9", "most": "max"}
COUNTS = "sent received lost duplicated reordered"
WAY = Columns(
    Column("name", "way", "Way"),
    Column("sent", "sent", "Sent"),
    Column("received", "received", "Received"),
    Column("lost", "lost", "Lost", is_fault=True),
    Column("duplicated", "dup", "Doubled", is_fault=True),
    Column("reordered", "reord", "Reordered", is_fault=True),
    Column("loss_ratio", "", "Loss ratio", 6),
)


def _delay(key: str) -> Callable[[WayFigures], Any]:
    return lambda one: one.delay_figures.get(key)


WAY_DELAYS = Columns(*(replace(DELAYS_OF[key], of=_delay(key)) for key in FIGURES))


@dataclass(frozen=True)
class TlvFigures:
    """Says what became of a TLV that was asked for."""

    name: str
    returned: int  # Answers that have it.
    unrecognized: int  # Of these: the reflector does not know it.
    malformed: int
    integrity: int
    value: bytes  # Of the last answer that has it.

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, the value in hexadecimal."""
        names = ("name", "returned", "unrecognized", "malformed", "integrity")
        return {name: getattr(self, name) for name in names} | {"value": self.value.hex()}


def tlv_words(one: TlvFigures) -> str:
    """Return the value of the last answer in words."""
    value = one.value
    numbers = [int.from_bytes(value[at : at + 4], "big") for at in range(0, len(value), 4)]
    if one.unrecognized == one.returned or not value:
        return "not known to the reflector" if one.unrecognized else "returned" if one.returned else "not returned"
    if one.name == "location":
        return f"packets came to port {numbers[0] >> 16}, from port {numbers[0] & 0xFFFF}"
    if one.name == "timestamp-information":
        words = [f"{SOURCES.get(value[at], value[at])}, {METHODS.get(value[at + 1], value[at + 1])}" for at in (0, 2)]
        return f"T2: {words[0]}; T3: {words[1]}"
    if one.name == "class-of-service":
        came, ecn = numbers[0] >> 20 & 63, numbers[0] >> 18 & 3
        refused = "" if not numbers[0] >> 16 & 3 else ", and was not to be used by the reflector"
        return f"DSCP {numbers[0] >> 26} was asked for the answer, DSCP {came} and ECN {ecn} came there{refused}"
    if one.name == DIRECT:
        return f"{numbers[0]:,} sent, {numbers[1]:,} came to the reflector, {numbers[2]:,} sent by it"
    return value.hex()


#: RFC 8972, 4.3: where the time of a reflector is from, and how it takes it.
SOURCES = {1: "NTP", 2: "PTP", 3: "SSU or BITS", 4: "GNSS", 5: "its own clock"}
METHODS = {1: "stamped by hardware", 2: "stamped by software", 3: "stamped by its control plane"}


@dataclass(frozen=True, repr=False)
class StampResult(Result):
    """Holds what came of a session: all of `Result`; its parts are the ways.

    ``sent``, ``received`` and ``lost`` of the result are those of both ways together.
    """

    session: StampSession
    ways: tuple[WayFigures, ...]
    tlvs: tuple[TlvFigures, ...]
    late: int | None  # Packets that the probe started after their tick though the line was free.
    is_stateful: bool | None  # Whether the reflector counts its answers; None: its numbers don't say.
    error: ErrorEstimate | None  # The worst that the reflector gave; None: not known.
    duration_s: float  # From the start to the last look at what was sent.
    end: str  # ``sent``, ``stopped`` or ``interrupted``.
    is_complete: bool  # Whether it ended as was asked for, and all that came was taken.
    clock_state: str
    uncertainty_ns: float  # Bound of the error of a delay of both ways (ns).
    #: Bound of the error of a delay of one way: of both clocks (ns); None: not known.
    one_way_uncertainty_ns: float | None
    notes: tuple[str, ...]

    COLUMNS: ClassVar[Columns] = Columns(*WAY.of(f"{COUNTS} loss_ratio"), *WAY_DELAYS.values())

    def __getitem__(self, name: str) -> WayFigures:
        """Return the figures of a way; KeyError where there is none."""
        return {one.name: one for one in self.ways}[name]

    @property
    def parts(self) -> dict[str, WayFigures]:
        """Ways by name."""
        return {one.name: one for one in self.ways}

    @property
    def delays_by_part(self) -> dict[str, Integers]:
        """Delays of each way in the order in which the answers came, or by the bins of the meter (ns)."""
        return self.records_by_part | {one.name: of_cells(one.latency.cells) for one in self.ways if one.latency}

    @property
    def records_by_part(self) -> dict[str, Integers]:
        """Delays of each way in the order in which the answers came, but for those that the meter knows (ns)."""
        return {one.name: one.delays_ns for one in self.ways if one.delays_ns is not None}

    @property
    def cells_by_part(self) -> dict[str, Cells]:
        """Delays of each way by bins."""
        measured = {one.name: one.latency.cells for one in self.ways if one.latency and one.latency.modulo_ns is None}
        return {name: Cells.of_values(delays) for name, delays in self.delays_by_part.items()} | measured

    def count(self, name: str) -> int | None:
        """Return a count of both ways together."""
        found = self.value(name, self["both"])
        return found if isinstance(found, int) else None

    def error_ns(self, part: Any) -> float:
        """Return the bound of the error of a delay of a way (ns)."""
        if part.name in ("there", "back"):
            return float("inf") if self.one_way_uncertainty_ns is None else self.one_way_uncertainty_ns
        return 1.0 if part.name == "reflector" else self.uncertainty_ns

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        ways = [
            {**WAY.document(one), "delay_ns": WAY_DELAYS.document(one) if one.delay_figures else None}
            for one in self.ways
        ]
        error = self.error
        reflector = {
            "address": self.session.address,
            "port": self.session.port,
            "is_stateful": self.is_stateful,
            "is_synchronized": None if error is None else error.is_synchronized,
            "format": None if error is None else "ptp" if error.is_ptp else "ntp",
            "error_ns": None if error is None else error.bound_ns,
        }
        one_way = {"one_way_uncertainty_ns": self.one_way_uncertainty_ns}
        tlvs = [one.to_dict() for one in self.tlvs]
        return {
            **RESULTS.document(self),
            **one_way,
            "late": self.late,
            "reflector": reflector,
            "ways": ways,
            "tlvs": tlvs,
        }


def ways_of(session: StampSession, answers: Answers, sent: int, is_stateful: bool | None) -> dict[str, WayFigures]:
    """Return the figures of each way but its delays: packets by what the reflector's numbers say."""
    base, firsts = answers.base[answers.firsts], answers.firsts
    numbers = base["sender_sequence"].astype(np.int64)
    came = len(firsts)
    both = WayFigures("both", sent, came, sent - came, answers.duplicated, len(reordering(numbers).positions))
    reached = _reached(session, answers, sent, is_stateful)
    there = WayFigures("there", sent, reached, None if reached is None else _less(sent, reached))
    back = WayFigures("back", reached, came, None if reached is None else _less(reached, came))
    if is_stateful and came:
        own = _unwrapped(base["sequence"].astype(np.int64))
        back = replace(back, reordered=len(reordering(own).positions))
        there = replace(there, reordered=len(reordering(numbers[np.argsort(own, kind="stable")]).positions))
    return {"there": there, "back": back, "both": both, "reflector": WayFigures("reflector")}


def _less(first: Count, second: Count) -> Count:
    """Return a difference of counts, with its bounds."""
    assert first is not None and second is not None
    ends = [(one.least, one.most) if isinstance(one, Bounds) else (one, one) for one in (first, second)]
    return _count(max(ends[0][0] - ends[1][1], 0), max(ends[0][1] - ends[1][0], 0))


def _count(least: float, most: float) -> int | Bounds:
    return round(least) if least == most else Bounds(least, most)


def _unwrapped(numbers: Integers) -> Integers:
    """Return numbers of 32 bits as they were before they wrapped, by the first of them."""
    found: Integers = (numbers - numbers[0] + (1 << 31)) % (1 << 32) - (1 << 31) + numbers[0]
    return found


def _reached(session: StampSession, answers: Answers, sent: int, is_stateful: bool | None) -> Count:
    """Return how many packets reached the reflector, as far as its numbers tell; None: they don't.

    Between the first and the last answer that came, they tell it exactly. Before and after, every packet without an answer may
    have been lost on either way, but for a count that begins at 0.
    """
    if not len(answers.firsts):
        return 0 if not sent else None
    if DIRECT in session.tlvs and (found := _by_direct_measurement(session, answers, sent)) is not None:
        return found
    if not is_stateful:
        return sent if len(answers.firsts) == sent else None
    own = _unwrapped(answers.base["sequence"].astype(np.int64))
    numbers = answers.base["sender_sequence"].astype(np.int64)
    return _between(numbers, own, sent)


def _between(numbers: Integers, own: Integers, sent: int) -> int | Bounds:
    """Return how many of ``sent`` packets a counter that counts each (``own``, at packets ``numbers``) has seen, with bounds."""
    first, last = int(np.argmin(own)), int(np.argmax(own))
    seen = int(own[last] - own[first]) + 1
    before_most, after_most = int(numbers[first]), sent - 1 - int(numbers[last])
    before = int(own[first])
    is_from_zero = before <= before_most  # A greater one goes on from an earlier session.
    least, most = (before, before) if is_from_zero else (0, before_most)
    return _count(min(seen + least, sent), min(seen + most + max(after_most, 0), sent))


def _by_direct_measurement(session: StampSession, answers: Answers, sent: int) -> Count:
    at = _place_of(session, DIRECT)
    octets = answers.tlv(at, packets.TLV_HEAD.size + 12)
    is_good = (octets[:, 0] & (TlvFlag.UNRECOGNIZED | TlvFlag.MALFORMED) == 0) & (
        octets[:, 1] == StampTlv.DIRECT_MEASUREMENT
    )
    if not is_good.any():
        return None
    counters = np.ascontiguousarray(octets[is_good, 4:16]).view(">u4").astype(np.int64)
    numbers = answers.base["sender_sequence"][is_good].astype(np.int64)
    return _between(numbers, _unwrapped(counters[:, 1]) - 1, sent)


def _place_of(session: StampSession, name: str) -> int:
    places = packets.tlv_places(session.requests)
    return next(place for place, one in zip(places, session.requests, strict=True) if one.name == name)


def tlvs_of(session: StampSession, answers: Answers) -> tuple[TlvFigures, ...]:
    """Return what became of the TLVs that were asked for; padding, too."""
    found = []
    for place, one in zip(packets.tlv_places(session.requests), session.requests, strict=True):
        size = packets.TLV_HEAD.size + (0 if one.name == PADDING else len(one.value))
        octets = answers.tlv(place, size)
        has = octets[(octets[:, 1] == one.type) & (answers.length >= place + packets.TLV_HEAD.size)]
        unknown, malformed, spoilt = (int(np.count_nonzero(has[:, 0] & flag)) for flag in TLV_FLAGS)
        value = has[-1, 4:].tobytes() if len(has) else b""
        found.append(TlvFigures(one.name, len(has), unknown, malformed, spoilt, value))
    return tuple(found)


# The run ------------------------------------------------------------------------------------------


class StampRun:
    """One session: it sends, and takes the answers; beside a capture where the probe has one."""

    def __init__(self, probe: Any, session: StampSession, show: Show | None = None) -> None:
        probe.need(Part.STREAMS)
        probe.need(Part.MONITOR | Part.MEASURE)
        self._probe, self._session, self._show = probe, session, show
        options = SendOptions(receive=session.transmit, comes_back=session.answered)
        stream, tend = session.resolved(probe)
        self._traffic = self.traffic_of(stream, options)
        self._traffic.tend = tend
        self._captures = bool(probe.parts & Part.MONITOR)
        self._sink = AnswerSink(session)
        self._sent: TrafficResult | None = None
        self._look_due_s = 0.0
        self._lost_records = 0

    def traffic_of(self, stream: Stream, options: SendOptions) -> Traffic:
        """Return what sends the packets."""
        return Traffic(self._probe, [stream], options)

    def run(self) -> StampResult:
        """Send all, and return what came of it; what is raised is as of `Traffic`."""
        if not self._captures:
            self._traffic.begin()
            try:
                self._traffic.follow(self._show)
            except Interrupted as end:
                if end.results:
                    (self._sent,) = end.results
                    end.results = [self._measured()]
                raise
            self._sent = self._traffic.result()
            return self._measured()
        from liteprobe.host.capture.request import CaptureSettings
        from liteprobe.host.capture.run import capture_probe  # Its files take a while to load.

        request = CaptureRequest(
            settings=CaptureSettings(snap_length=self._sink.snap_length),
            filter=f"udp src port {self._session.port}",
            ports=(self._session.transmit,),
            is_for_sinks=True,
        )
        with self._traffic.stopped_at_errors():
            captured = capture_probe(self._probe, request, companion=self)
        self._lost_records = 0 if captured.is_complete else captured.frames_lost or 1
        return self._result()

    # As the companion of a capture ------------------------------------------------------------------

    @property
    def sinks(self) -> Sequence[AnswerSink]:
        """Takers of records."""
        return [self._sink]

    def is_wanted(self) -> bool:
        """Start when the capture does; return whether it is to go on: until answers have had time to come."""
        if not self._traffic.is_started and not self._traffic.end:
            self._traffic.begin()
        if not self._traffic.end and time.monotonic() < self._look_due_s:
            return True
        self._look_due_s = time.monotonic() + LOOK_S
        if self._traffic.is_running:
            look = self._traffic.look()
            try:
                if self._show:
                    self._show(look)
            except Interrupted:  # As of a signal: what is on its way is still taken.
                self.stop()
            return True
        if self._sent is None:
            self._sent = self._traffic.result()  # It waits for what has not come.
        return False

    def stop(self) -> None:
        """Stop sending, because a signal came."""
        self._traffic.halt("interrupted")

    # Results ----------------------------------------------------------------------------------------

    def _measured(self) -> StampResult:
        """Return what the meter knows: both ways, with the time in the reflector."""
        sent = self._sent
        assert sent is not None
        (row,) = sent.rows
        came = row.received or 0
        lost = row.sent - came if came <= row.sent else None
        both = WayFigures("both", row.sent, came, lost, latency=row.latency if came else None)
        note = (
            "this probe measures and does not capture: delays of both ways have the reflector's own time in them, each way by "
            "itself is not known, and any frame without a probe header that came counts as an answer"
        )
        return self._made(sent, {"both": both}, (), None, None, [note])

    def _result(self) -> StampResult:
        sent, session, answers = self._sent, self._session, self._sink.answers()
        assert sent is not None
        (row,) = sent.rows
        is_stateful = session.is_stateful
        if is_stateful is None and bool((answers.base["sequence"] != answers.base["sender_sequence"]).any()):
            is_stateful = True
        ways = ways_of(session, answers, row.sent, is_stateful)
        firsts = answers.firsts
        if len(firsts):
            whole = (answers.stamp_ns - answers.sent_ns - answers.residence_ns)[firsts]
            ways["both"] = replace(ways["both"], delays_ns=whole)
            ways["reflector"] = replace(ways["reflector"], delays_ns=answers.residence_ns[firsts])
        bound_ns, notes = self._one_way(answers, sent)
        if len(firsts) and (bound_ns is not None or session.any_clock):
            shift_ns = np.where(answers.is_ptp, 0, self._tai_utc_s() * 10**9)
            there = _nearest(answers.time_ns("t2") + shift_ns - answers.sent_ns)
            back = _nearest(answers.stamp_ns - answers.time_ns("t3") - shift_ns)
            ways["there"] = replace(ways["there"], delays_ns=there[firsts])
            ways["back"] = replace(ways["back"], delays_ns=back[firsts])
        return self._made(sent, ways, tlvs_of(session, answers), is_stateful, answers, notes, bound_ns)

    def _tai_utc_s(self) -> int:
        clock = self._probe.timebase.clock
        return int(clock.status().tai_utc_s) if clock.has_status else 0

    def _one_way(self, answers: Answers, sent: TrafficResult) -> tuple[float | None, list[str]]:
        """Return the bound of the error of a delay of one way (ns), and why there is none."""
        error, verdict = answers.error, self._traffic.clock
        if error is None:
            return None, []
        if verdict.state not in TRUSTED or verdict.bound_ns is None or not verdict.is_whole:
            why = f"the probe's clock is {verdict.state}"
        elif not error.is_synchronized or error.bound_ns is None:
            why = "the reflector says that its clock is not synchronised"
        else:
            return verdict.bound_ns + error.bound_ns + sent.uncertainty_ns, []
        said = (
            "are off by what the clocks differ" if self._session.any_clock else "are not given (--any-clock gives them)"
        )
        return None, [f"{why}, so delays of each way {said}"]

    def _made(
        self,
        sent: TrafficResult,
        ways: Mapping[str, WayFigures],
        tlvs: tuple[TlvFigures, ...],
        is_stateful: bool | None,
        answers: Answers | None,
        notes: Sequence[str],
        one_way_ns: float | None = None,
    ) -> StampResult:
        (row,) = sent.rows
        found = [one for one in sent.notes if "probe header" not in one and "none of its" not in one]
        both = ways["both"]
        if not both.received:
            found.append(
                f"no answer came from {self._session.address} port {self._session.port}: check the address, the MAC address of "
                "the next hop (--dst-mac), and that a reflector runs there"
            )
        elif answers is not None and "there" in ways and ways["there"].received is None:
            found.append(
                "this reflector does not count its answers, so it is not known on which way packets were lost: ask for "
                "--tlv direct-measurement, or give --stateful where it does count"
            )
        if self._sink.foreign:
            found.append(
                f"{self._sink.foreign:,} frames from UDP port {self._session.port} were no answers to this session"
            )
        if self._lost_records:
            found.append(
                f"the capture dropped {self._lost_records:,} frames or more, which count as lost: lower the rate"
            )
        came = 0 if answers is None else len(answers.stamp_ns)
        for one in tlvs:
            if one.unrecognized or one.malformed or one.integrity or one.returned < came:
                found.append(
                    f"TLV {one.name}: in {one.returned:,} of {came:,} answers, not known to the reflector in "
                    f"{one.unrecognized:,}, malformed in {one.malformed:,}"
                )
        if answers is not None and len(answers.firsts) and int(answers.residence_ns.min()) < 0:
            found.append("the reflector says that packets left it before they came: its clock was set back meanwhile")
        return StampResult(
            session=self._session,
            ways=tuple(ways[name] for name in WAYS if name in ways),
            tlvs=tlvs,
            late=row.late,
            is_stateful=is_stateful,
            error=None if answers is None else answers.error,
            duration_s=sent.duration_s,
            end=sent.end,
            is_complete=sent.is_complete and not self._lost_records,
            clock_state=sent.clock_state,
            uncertainty_ns=self._uncertainty_ns(both, sent),
            one_way_uncertainty_ns=one_way_ns,
            notes=(*found, *notes),
        )

    def _uncertainty_ns(self, both: WayFigures, sent: TrafficResult) -> float:
        """Return the bound of the error of a delay of both ways (ns): of the probe's clock, and of the digits of T2 and T3."""
        clock: ClockVerdict = self._traffic.clock
        longest = both.delay_figures.get("most")
        known = float(longest.most if isinstance(longest, Bounds) else longest or 0)
        bound_ns: float = self._probe.timebase.delay_bound_ns(known, clock)
        return max(bound_ns, sent.uncertainty_ns) + 1.0


def _nearest(delays_ns: Integers) -> Integers:
    """Return delays without whole wraps of the 32 bits of seconds of either format."""
    wrap = (1 << 32) * 10**9
    return (delays_ns + wrap // 2) % wrap - wrap // 2


def run_stamp(probe: Any, session: StampSession, show: Show | None = None) -> StampResult:
    """Run a session, as `Probe.stamp` says."""
    return StampRun(probe, session, show).run()
