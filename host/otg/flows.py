# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Makes a stream of a flow: size, rate, duration, payload, and how it is measured; what can't be exact is refused by its path.

Source: Open Traffic Generator models 1.61, flow/.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from liteprobe.cores.formats import (
    CHECKSUM_OCTETS,
    FCS,
    HEAD_OCTETS,
    HEADER_OCTETS,
    LIST_ENTRIES_MAX,
    OVERHEAD,
    PAYLOAD_MIN,
    SEQUENCE_OFFSET,
    STAMP_OFFSET_MIN,
    TICK_NS,
)
from liteprobe.host.base.errors import UsageError
from liteprobe.host.otg.layers import FrameBody, begin, settle
from liteprobe.host.otg.messages import Given
from liteprobe.host.otg.packet import FlowPacket, headers_of, modifiers_of, packet_of
from liteprobe.host.traffic.headers import Headers
from liteprobe.host.traffic.intervals import NOMINAL, Burst, Interval, head_ticks
from liteprobe.host.traffic.lengths import Fixed, Length, RandomLength, Stepped, weighted
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.stream import Stream, StreamError, fill_octets

IFG = 12  # Octets from the end of a frame to the next preamble, at least.
IMIXES = {
    "imix": {64: "7", 570: "4", 1518: "1"},
    "ipsec_imix": {90: "58.67", 92: "2", 594: "23.66", 1418: "15.67"},
    "ipv6_imix": {60: "58.67", 496: "2", 594: "23.66", 1518: "15.67"},
    "standard_imix": {58: "58.67", 62: "2", 594: "23.66", 1518: "15.67"},
    "tcp_imix": {90: "58.67", 92: "2", 594: "23.66", 1518: "15.67"},
}
BITS = {"bps": 1, "kbps": 10**3, "mbps": 10**6, "gbps": 10**9}
NANOSECONDS = {"bytes": Fraction(TICK_NS), "nanoseconds": Fraction(1), "microseconds": Fraction(1000)}
COUNT_MOST = 2**32 - 1
STAMP_WIDTHS = (64, 48, 32, 16)
SECOND_NS = 10**9


@dataclass(frozen=True)
class OtgFlow:
    """A flow as the probe sends it, and what is measured of it."""

    name: str
    path: str
    stream: Stream
    tx_name: str
    rx_name: str | None  # None: the port that the wire leads to.
    is_measured: bool
    is_store_forward: bool = False  # Its latency counts from the last bit that leaves.
    has_latency: bool = False
    has_stamps: bool = False
    has_loss: bool = False
    devices: tuple[str, str] | None = None  # Interfaces that it goes from and to.
    rx_tx_ratio: float = 1.0
    needs_mac: bool = False  # The address that its frames go to is that of the gateway.


def exact(number: float) -> Fraction:
    """Return a number as it was written: of several that are the same in 32 bits, the shortest."""
    if isinstance(number, int):
        return Fraction(number)
    short = np.float32(number)
    return Fraction(str(short)) if float(short) == number else Fraction(repr(number))


@dataclass(frozen=True)
class TimeScale:
    """Makes times of a client those of the probe: so many of its seconds pass in one of the probe's."""

    factor: Fraction = Fraction(1)

    def __str__(self) -> str:
        return "" if self.factor == 1 else f" (with the time scale of {float(self.factor):g})"

    def rate(self, rate: Fraction) -> Fraction:
        """Return a rate of the client as one of the probe."""
        return rate * self.factor

    def time(self, time_ns: Fraction) -> Fraction:
        """Return a time of the client as one of the probe."""
        return time_ns / self.factor


# Sizes --------------------------------------------------------------------------------------------


def length_of(flow: Given) -> Length | None:
    """Return the lengths of a flow's frames, without FCS; what can't be is reported."""
    size = flow.part("size")
    if size is None:
        return Fixed(64 - FCS)
    kind = size.choice("fixed")
    try:
        match kind:
            case "fixed":
                return Fixed(int(size.value("fixed", 64)) - FCS)
            case "increment":
                steps = size.part(kind)
                start, end, step = (steps.value(name, usual) if steps else usual for name, usual in STEPS)
                return Stepped(start - FCS, end - FCS, step)
            case "random":
                ends = size.part(kind)
                least, most = (ends.value(name, usual) if ends else usual for name, usual in ENDS)
                return Fixed(least - FCS) if least == most else RandomLength(least - FCS, most - FCS)
            case "weight_pairs":
                return _weighted(size)
        size.error("choice", f"'{kind}' is not supported: give fixed, increment, random or weight_pairs")
    except UsageError as error:
        size.error(kind, f"{error} (a size of OTG has {FCS} octets more, for the FCS)")
    return None


ANY_LENGTH = Fixed(64 - FCS)  # In the place of one that can't be, so that the rest of the flow is looked at.
STEPS = (("start", 64), ("end", 1518), ("step", 1))
ENDS = (("min", 64), ("max", 1518))


def _weighted(size: Given) -> Length | None:
    pairs = size.part("weight_pairs")
    kind = pairs.choice("predefined") if pairs else "predefined"
    if kind == "predefined":
        name = str(pairs.value("predefined", "imix")) if pairs else "imix"
        if name not in IMIXES:
            size.error("weight_pairs.predefined", f"there is no '{name}': give one of {', '.join(IMIXES)}")
            return None
        weights = {one: Fraction(text) for one, text in IMIXES[name].items()}
    else:
        assert pairs is not None
        weights = {}
        for one in pairs.parts("custom"):
            octets = int(one.value("size", 64))
            weights[octets] = weights.get(octets, Fraction(0)) + exact(one.value("weight", 1))
    if not weights or min(weights.values()) <= 0:
        size.error(f"weight_pairs.{kind}", "it needs one pair or more, with weights above 0")
        return None
    scale = math.lcm(*(weight.denominator for weight in weights.values()))
    whole = {octets - FCS: int(weight * scale) for octets, weight in weights.items()}
    total = sum(whole.values()) // math.gcd(*whole.values())
    if total > LIST_ENTRIES_MAX:
        size.error(
            f"weight_pairs.{kind}",
            f"in lowest terms its weights add up to {total}, and a probe draws from {LIST_ENTRIES_MAX} entries: "
            "give custom ones that add up to no more",
        )
        return None
    return weighted(whole, random=len(whole) > 1)


# Rates and durations --------------------------------------------------------------------------------


@dataclass(frozen=True)
class FlowPace:
    """Says when the frames of a flow are due."""

    interval: Interval
    count: int | None
    start_ns: Fraction


def pace_of(flow: Given, length: Length, scaled: TimeScale) -> FlowPace | None:
    """Return when frames are due, and how many there are; what can't be is reported."""
    try:
        interval = _interval(flow, scaled)
        ticks = head_ticks(interval, length, NOMINAL)
    except UsageError as error:
        flow.error("rate", f"{error}{scaled}")
        flow.abandon()
        return None
    if ticks < length.mean + OVERHEAD:
        most = Fraction(SECOND_NS, TICK_NS) / (length.mean + OVERHEAD) / scaled.factor
        share = float((length.mean + OVERHEAD) / ticks)
        flow.error("rate", f"it is {share:.2%} of the line: give {float(most):,.1f} frames a second or less{scaled}")
        return None
    duration = flow.part("duration")
    kind = duration.choice("continuous") if duration else "continuous"
    chosen = duration.part(kind) if duration and kind in duration.message.DESCRIPTOR.fields_by_name else None
    if kind not in ("continuous", "fixed_packets", "fixed_seconds", "burst"):
        flow.error(
            "duration.choice", f"'{kind}' is not supported: give fixed_packets, fixed_seconds, burst or continuous"
        )
        return None
    _check_gap(flow, chosen, length, ticks)
    if kind == "burst":
        return _burst(flow, chosen, length, ticks, scaled)
    start_ns = scaled.time(_time(chosen.part("delay") if chosen else None, "bytes", 0))
    count: int | None = None
    if kind == "fixed_packets":
        count = int(chosen.value("packets", 1)) if chosen else 1
        if not count:
            flow.error("duration.fixed_packets.packets", "0 is out of range: give 1 or more")
            return None
    elif kind == "fixed_seconds":
        seconds = exact(chosen.value("seconds", 1)) if chosen else Fraction(1)
        count = math.ceil(scaled.time(seconds * SECOND_NS) / TICK_NS / ticks)
        if not 1 <= count <= COUNT_MOST:
            flow.error("duration.fixed_seconds.seconds", f"{count} frames are out of range: give 1 to {COUNT_MOST}")
            return None
    return FlowPace(interval, count, start_ns)


def _interval(flow: Given, scaled: TimeScale) -> Interval:
    rate = flow.part("rate")
    kind = rate.choice("pps") if rate else "pps"
    if kind == "pps":
        return Interval(pps=scaled.rate(Fraction(rate.value("pps", 1000) if rate else 1000)))
    assert rate is not None
    if kind in BITS:
        default = 10**9 // BITS[kind]
        return Interval(rate_bps=scaled.rate(Fraction(rate.value(kind, default)) * BITS[kind]))
    if kind == "percentage":
        return Interval(share=scaled.rate(exact(rate.value(kind, 100)) / 100))
    raise UsageError(f"'{kind}' is not supported: give pps, bps, kbps, mbps, gbps or percentage")


def _time(given: Given | None, kind: str, default: float) -> Fraction:
    """Return a time in one of several units (ns)."""
    if given is None:
        return exact(default) * NANOSECONDS[kind]
    unit = given.choice(kind)
    if unit not in NANOSECONDS:
        given.error("choice", f"'{unit}' is not supported: give {', '.join(NANOSECONDS)}")
        return Fraction(0)
    number = float(given.value(unit, default))
    if not 0 <= number < math.inf:
        given.error(unit, f"{number} is out of range: give 0 or more")
        return Fraction(0)
    return exact(number) * NANOSECONDS[unit]


def _check_gap(flow: Given, chosen: Given | None, length: Length, ticks: Fraction) -> None:
    """Report a least gap between frames that the rate leaves no space for."""
    gap = int(chosen.value("gap", IFG)) if chosen else IFG
    left = math.floor(ticks) - (length.greatest + OVERHEAD - IFG)
    if gap > max(left, IFG):
        flow.error(
            f"{chosen.path.removeprefix(flow.path + '.') if chosen else 'duration'}.gap",
            f"the rate leaves {max(left, IFG)} octets between frames, not {gap}: lower the rate or the gap",
        )


def _burst(flow: Given, chosen: Given | None, length: Length, ticks: Fraction, scaled: TimeScale) -> FlowPace | None:
    """Return bursts: frames at the rate of the flow, then the gap between bursts, from the end of the last frame on."""
    packets, bursts = (
        int(chosen.value(name, usual)) if chosen else usual for name, usual in (("packets", 1), ("bursts", 0))
    )
    gap_ns = scaled.time(_time(chosen.part("inter_burst_gap") if chosen else None, "bytes", IFG))
    if not isinstance(length, Fixed):
        flow.error("duration.burst", "frames of a burst have one size: give a fixed size, or another duration")
        return None
    inner = Fraction(round(ticks))  # The probe rounds it to its ticks.
    if inner != ticks and packets > 1:
        flow.report.warn(
            flow.at("rate"),
            f"within bursts frames start every {float(inner * TICK_NS):g} ns, not {float(ticks * TICK_NS):g}: whole "
            f"ticks of {TICK_NS} ns",
        )
    slot = length.length + OVERHEAD
    head_ns = TICK_NS * ((packets - 1) * inner + slot - IFG) + max(gap_ns, Fraction(TICK_NS * IFG))
    if gap_ns < TICK_NS * IFG:
        flow.report.warn(
            flow.at("duration.burst.inter_burst_gap"), f"frames are {IFG} octets apart at least: that is kept"
        )
    if not 1 <= packets <= COUNT_MOST or bursts * packets > COUNT_MOST:
        flow.error(
            "duration.burst", f"{bursts} bursts of {packets} frames are out of range: give up to {COUNT_MOST} frames"
        )
        return None
    try:
        burst = Burst(packets, None if inner <= slot else inner * TICK_NS) if packets > 1 else None
        return FlowPace(Interval(interval_ns=head_ns, burst=burst), bursts * packets or None, Fraction(0))
    except UsageError as error:
        flow.error("duration.burst", error)
        return None


# Payload and measuring ----------------------------------------------------------------------------


def _payload(flow: Given, packet: FlowPacket, headers: Headers, length: Length) -> tuple[bytes, str]:
    """Return the first octets of the payload and the fill of the rest; what can't be is reported."""
    given = flow.part("payload")
    kind = given.choice("fixed") if given else "fixed"
    most = HEADER_OCTETS - headers.payload_offset
    rest = length.greatest - headers.payload_offset - len(packet.payload)
    if kind == "fixed":
        chosen = given.part("fixed") if given else None
        text = str(chosen.value("pattern", "00")) if chosen else "00"
        repeats = bool(chosen.value("repeat", True)) if chosen else True
        try:
            octets = bytes.fromhex(text)
        except ValueError:
            flow.error(
                "payload.fixed.pattern", f"'{text[:40]}' is not hexadecimal: give an even number of digits 0 to f"
            )
            return packet.payload, "zero"
        whole = (
            (octets * (rest // max(len(octets), 1) + 1))[: max(rest, 0)]
            if repeats and octets
            else octets[: max(rest, 0)]
        )
    elif kind in ("increment_byte", "decrement_byte"):
        whole = bytes((k if kind == "increment_byte" else 255 - k) % 256 for k in range(max(rest, 0)))
    elif kind in ("increment_word", "decrement_word"):
        words = (k if kind == "increment_word" else 0xFFFF - k for k in range(max(rest, 0) // 2 + 1))
        whole = b"".join((word % 65536).to_bytes(2) for word in words)[: max(rest, 0)]
    else:
        flow.error("payload.choice", f"'{kind}' is not supported")
        return packet.payload, "zero"
    whole = packet.payload + whole
    needed = len(whole.rstrip(b"\0"))
    if needed <= most:
        return whole[: max(needed, len(packet.payload))], "zero"
    start = -(-(headers.payload_offset + len(packet.payload)) // 4) * 4 - headers.payload_offset
    if whole[start:] == fill_octets("counting", len(whole) - start) and not any(whole[len(packet.payload) : start]):
        return packet.payload, "counting"
    flow.error(
        "payload" if kind != "fixed" or not packet.custom_path else "packet",
        f"its first {needed} octets are not all 0, and a probe sends {most} octets of this kind after these headers: "
        "give a shorter pattern without repeat, or 00",
    )
    return packet.payload, "zero"


@dataclass(frozen=True)
class FlowMetrics:
    """Holds what the metrics of a flow ask for."""

    is_enabled: bool = False
    has_loss: bool = False
    has_stamps: bool = False
    has_latency: bool = False
    is_store_forward: bool = False
    ratio: float = 1.0


def _metrics(flow: Given, length: Length) -> FlowMetrics:
    metrics = flow.part("metrics")
    if metrics is None:
        return FlowMetrics()
    latency, ratio = metrics.part("latency"), metrics.part("rx_tx_ratio")
    has_latency = bool(latency.value("enable", False)) if latency else False
    mode = latency.value("mode", "store_forward") if latency else "store_forward"
    is_store_forward = mode in ("store_forward", "unspecified")
    if has_latency and is_store_forward and not isinstance(length, Fixed):
        metrics.error(
            "latency.mode", "from the last bit on, delays of frames of several sizes are not known: give cut_through"
        )
    value = 1.0
    if ratio is not None:
        if ratio.choice("value") == "value":
            value = float(ratio.value("value", 1.0))
        if value <= 0 or ratio.choice("value") != "value":
            ratio.error("", "give a value above 0")
            value = 1.0
    tags = metrics.part("predefined_metric_tags")
    if tags and tags.value("rx_name", False):
        tags.error("rx_name", "metrics of a flow are of one port: leave it out")
    enabled = bool(metrics.value("enable", False))
    flags = [bool(metrics.value(name, False)) for name in ("loss", "timestamps")]
    return FlowMetrics(enabled, flags[0], flags[1], has_latency, is_store_forward, value)


# Flows --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FlowEnds:
    """Names the ends of a flow."""

    tx_name: str
    rx_name: str | None
    port: int
    devices: tuple[str, str] | None = None


#: Path of the setting of a flow that a setting of a stream comes from.
PATHS = {
    "length": "size",
    "interval": "rate",
    "burst": "duration.burst",
    "count": "duration",
    "start": "duration",
    "probe": "metrics.enable",
    "stamp": "metrics.enable",
    "payload": "payload",
    "checksum": "packet",
    "name": "name",
}


def flow_of(flow: Given, ends: FlowEnds, number: int, scaled: TimeScale) -> OtgFlow | None:
    """Return a flow; None where it can't be, which is reported. ``number``: of its stream, from 1."""
    report = flow.report
    before = len(report.errors)
    name = str(flow.value("name", ""))
    packet, length = packet_of(flow), length_of(flow)
    wanted, pace = _metrics(flow, length or ANY_LENGTH), pace_of(flow, length or ANY_LENGTH, scaled)
    if len(report.errors) > before or pace is None or length is None:
        flow.abandon()
        return None
    for path in packet.automatic.values():
        if ends.devices is None:
            report.error(path, "an address is found for devices alone: give a value, or tx_rx.device")
    try:
        headers = headers_of(packet)
    except UsageError as error:
        flow.error("packet", error)
        return None
    if packet.has_layers:
        begin(flow, packet, headers, length)
        if len(report.errors) > before:
            return None
    payload, fill = _payload(flow, packet, headers, length)
    made = _made(flow, packet, headers, pace, _Content(name, number, length, payload, fill, ends.port), wanted)
    if made is None or len(report.errors) > before:
        return None
    return OtgFlow(
        name,
        flow.path,
        made,
        ends.tx_name,
        ends.rx_name,
        wanted.is_enabled,
        wanted.is_store_forward,
        wanted.has_latency,
        wanted.has_stamps,
        wanted.has_loss,
        ends.devices,
        wanted.ratio,
        packet.needs_mac,
    )


@dataclass(frozen=True)
class _Content:
    name: str
    number: int
    length: Length
    payload: bytes
    fill: str
    port: int


def _made(
    flow: Given, packet: FlowPacket, headers: Headers, pace: FlowPace, content: _Content, wanted: FlowMetrics
) -> Stream | None:
    """Return the stream, with the checksum and the stamp that fit; what can't be is reported."""
    report, least = flow.report, content.length.least
    carries = packet.is_udp and not content.payload and content.fill == "zero" and wanted.is_enabled
    carries = carries and least >= headers.payload_offset + PAYLOAD_MIN + (CHECKSUM_OCTETS if headers.is_ipv6 else 0)
    coverage, bits = None, tuple(packet.bits)
    if packet.has_layers:
        body = FrameBody(headers, content.payload, content.fill, content.length, wanted.is_enabled)
        settled = settle(flow, packet, body)
        if settled is None:
            return None
        content, bits, coverage = replace(content, payload=settled.payload), settled.bits, settled.coverage
    template = headers.stack(max(least, headers.payload_offset), 0) + (content.payload if packet.has_layers else b"")
    end = headers.payload_offset + (SEQUENCE_OFFSET if carries else len(content.payload))
    placed = modifiers_of(bits, template, end if carries else -(-end // 4) * 4, report)
    checksum = "complement" if coverage else None
    checksum = checksum or _checksum(flow, packet, headers, content, bool(placed) or wanted.is_enabled, carries)
    if checksum is None:
        return None
    stamp = None
    if wanted.is_enabled and not carries:
        stamp = _stamp(headers, content, checksum)
        if stamp is None and content.payload and not packet.payload:
            flow.error(
                "payload", "a measured frame has a stamp in its payload, which leaves no space for it: give 00, or less"
            )
            return None
        if stamp is None:
            flow.error(
                "metrics.enable",
                f"a frame of {least + FCS} octets has no space for a stamp of 2 octets after its headers: give a greater size",
            )
            return None
        report.warn(
            flow.at("metrics"),
            "its frames carry no probe header (that needs UDP, space, and a payload of 00): what is received counts all "
            "such frames that come to the port",
        )
    try:
        return Stream(
            name=content.name,
            stream_id=content.number,
            length=content.length,
            interval=pace.interval,
            count=pace.count,
            start_ns=pace.start_ns,
            port=content.port,
            headers=headers,
            modifiers=tuple(one.modifier for one in placed),
            payload=content.payload,
            fill=content.fill,
            probe=carries,
            stamp=stamp,
            checksum=checksum,
            coverage=coverage,
            seed=content.number,
        )
    except StreamError as error:
        text = str(error).removeprefix(f"stream '{content.name}': ")
        if error.key.startswith("modify[") and placed:
            report.error(placed[int(error.key[7:-1])].path, text)
        elif error.key == "modify":
            for one in placed:
                report.error(one.path, f"{len(placed)} fields of the packet change or are unusual: {text}")
        else:
            flow.error(PATHS.get(error.key, "packet"), text)
    except UsageError as error:
        flow.error("packet", error)
    return None


def _checksum(
    flow: Given, packet: FlowPacket, headers: Headers, content: _Content, varies: bool, carries: bool
) -> str | None:
    """Return how the checksum of UDP or TCP is made right; None where it can't be, which is reported."""
    is_optional = headers.transport == "udp" and headers.is_ipv4
    if not headers.has_transport or (packet.checksum == "zero" and is_optional):
        return "none"
    if packet.checksum == "zero":
        flow.report.error(packet.checksum_path, "UDP over IPv6 has a checksum always: give generated")
        return None
    if isinstance(content.length, Fixed) and not varies:
        return "host"
    end = headers.payload_offset + (PAYLOAD_MIN if carries else len(content.payload))
    aligned = end if carries else -(-end // 4) * 4
    if content.length.least >= aligned + CHECKSUM_OCTETS:
        if any(content.payload) or content.fill != "zero":
            flow.report.warn(flow.at("payload"), "the last two octets of its frames make the checksum right")
        return "complement"
    if is_optional and packet.checksum == "auto":
        return "none"
    if is_optional:
        flow.report.error(
            packet.checksum_path,
            f"{content.length.least + FCS} octets leave no space for the two octets that make the checksum right: give a greater "
            "size, or leave the checksum out (it is 0 then)",
        )
        return None
    return "complement"


def _stamp(headers: Headers, content: _Content, checksum: str) -> Stamp | None:
    """Return a stamp in the payload, as wide as can be; None: there is no space."""
    first = max(headers.payload_offset + len(content.payload), STAMP_OFFSET_MIN)
    first += first % 2
    end = min(content.length.least - CHECKSUM_OCTETS * (checksum == "complement"), HEAD_OCTETS)
    for width in STAMP_WIDTHS:
        if first + width // 8 <= end:
            return Stamp("octet", first, width)
    return None
