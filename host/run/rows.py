# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Rows of figures from what ports have counted: rates between two looks or of all, losses, notes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from liteprobe.cores.formats import CHECKSUM_OCTETS, OVERHEAD, PAYLOAD_MIN, TICK_NS
from liteprobe.host.measure.percentiles import Bounds, Cells
from liteprobe.host.measure.streams import ReceivedStream
from liteprobe.host.run.figures import PERCENTILES, Latency, StreamFigures
from liteprobe.host.run.meters import BARE_SLOT, Measured
from liteprobe.host.run.plan import Sender
from liteprobe.host.run.streams_port import StreamCounts
from liteprobe.host.traffic.stream import Stream


@dataclass(frozen=True)
class Moment:
    """A time of the probe's clock that lies between two (ns)."""

    least_ns: int
    most_ns: int


@dataclass(frozen=True)
class Point:
    """What was known of a stream at a look."""

    at: Moment
    counts: StreamCounts
    received: ReceivedStream | None = None


def row(sender: Sender, stream: Stream, point: Point, measured: Measured | None) -> StreamFigures:
    """Return what is known of a stream at a look, without its rates."""
    counts = point.counts
    found = StreamFigures(
        stream=stream,
        receive=sender.receive if measured else None,
        is_active=False,
        sent=counts.sent,
        late=counts.late,
        first_late=counts.first_late,
    )
    if measured is None:
        return found
    came = measured.stream
    latency = _latency(measured) if stream.used_stamp else None
    found = replace(found, received=came.frames, octets=came.octets, latency=latency)
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


def without_percentiles(found: StreamFigures) -> StreamFigures:
    """Return a row whose histogram has missed values: least, mean and greatest delay are right all the same."""
    if found.latency is None:
        return found
    return replace(found, latency=replace(found.latency, p50=None, p99=None, p99_9=None, cells=Cells.of(())))


def at_the_end(found: StreamFigures) -> StreamFigures:
    """Return a row of which nothing more is sent or comes: what is missing is lost."""
    if found.lost is None or found.received is None:
        return found
    came = found.received - (found.duplicated or 0) - (found.beyond_window or 0)
    return replace(found, lost=max(found.sent - came, 0))


def _checked_bits(stream: Stream, came: ReceivedStream) -> int:
    others = stream.headers.payload_offset + PAYLOAD_MIN + (CHECKSUM_OCTETS if stream.headers.is_ipv6 else 0)
    return 8 * (came.octets - came.frames * others)


def _latency(measured: Measured) -> Latency | None:
    came, cells = measured.stream, measured.delays
    if not came.frames:
        return None
    p50, p99, p99_9 = (cells.percentile(percent) for percent in PERCENTILES)
    ends = (came.delay_min_ns, came.delay_mean_ns, came.delay_std_ns, came.delay_max_ns)
    return Latency(*ends, p50, p99, p99_9, cells, measured.outside)


# Rates --------------------------------------------------------------------------------------------


def since(found: StreamFigures, before: Point, now: Point) -> StreamFigures:
    """Return a row with the rates since another look."""
    sent_fps = per_second(now.counts.sent - before.counts.sent, before.at, now.at)
    received_fps, received_bps = _received_rates(found.stream, before.received, now.received)
    return replace(found, sent_fps=sent_fps, received_fps=received_fps, received_bps=received_bps)


def over_all(found: StreamFigures, start: Moment, end: Moment | None, came: ReceivedStream | None) -> StreamFigures:
    """Return a row with the rates of all of its frames; ``end``: when it was stopped, None where it ended by itself."""
    sent_fps = per_second(found.sent, start, end) if end else None
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


def per_second(frames: int, start: Moment, end: Moment) -> Bounds | None:
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
    longest_s, shortest_s = (span_ns + TICK_NS) / 1e9, max(span_ns - TICK_NS, 1) / 1e9
    return Bounds(frames / longest_s, frames / shortest_s), Bounds(bits[0] / longest_s, bits[1] / shortest_s)


# Notes --------------------------------------------------------------------------------------------


def notes(rows: Sequence[StreamFigures], is_given_range: bool) -> list[str]:
    """Return what the reader of rows must know of them."""
    found = []
    for one in rows:
        name, latency = f"stream '{one.name}'", one.latency
        # Frames of several streams, and those of random intervals, wait for each other.
        is_alone = [other.stream.port for other in rows].count(
            one.stream.port
        ) == 1 and not one.stream.interval.exponential
        said = {
            f"{one.late} of {one.sent} frames started after their tick, number {one.first_late} first": is_alone
            and one.late,
            f"{one.beyond_window} frames came so late that they may be copies; they count as lost": one.beyond_window,
            f"{latency.outside if latency else 0} of {one.received} delays are outside of the range that was given; percentiles "
            f"there reach to the extremes": latency and is_given_range and latency.outside,
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
            f"none of its {one.sent} frames came to port {one.receive} whole: check what is on the way, or name the port that "
            "it leads to (receive)": one.sent and one.received == 0,
        }
        found += [f"{name}: {note}" for note, holds in said.items() if holds]
    return found


def unsent(rows: Sequence[StreamFigures], touched: Collection[str]) -> list[str]:
    """Return notes on streams that have not sent all, though nobody stopped or started them (``touched``)."""
    asked = [(row, row.stream.count) for row in rows if row.name not in touched]
    return [
        f"stream '{row.name}': it has no end, but ended: was its port stopped from the console of the probe, or the probe reset?"
        if count is None
        else f"stream '{row.name}': {count - row.sent} of {count} frames were not sent"
        for row, count in asked
        if count is None or row.sent < count
    ]


def sender_notes(sender: Sender, is_untouched: bool) -> list[str]:
    """Return what the reader must know of a port that sent; who starts streams again writes while it runs."""
    counters = sender.transmit.counters()
    said = {
        f"{counters['underruns']} frames were built too late for the line": counters["underruns"],
        f"what it sends was written {counters['disturbed']} times while it ran, so what was sent is not what was asked for: "
        f"let one host at a time use the port": is_untouched and counters["disturbed"],
    }
    return [f"port {sender.port.number}: {note}" for note, holds in said.items() if holds]


def port_notes(number: int, events: Mapping[str, int], is_saturated: bool) -> list[str]:
    """Return what the reader must know of what came to a port."""
    said = {
        f"{events['fcs_errors']} frames with a bad FCS came, which are in no stream": events["fcs_errors"],
        f"{events['overflows']} frames were dropped in the receiver": events["overflows"],
        f"{events['unclassified']} frames came too close behind others to be measured": events["unclassified"],
        "a bin of a histogram was full, so there are no percentiles": is_saturated,
    }
    return [f"port {number}: {note}" for note, holds in said.items() if holds]
