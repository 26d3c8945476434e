# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Stands for a probe: sends streams through a device of plain Python, and counts what comes as a probe would."""

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from types import SimpleNamespace, TracebackType

from liteprobe.host.base.errors import ProbeError
from liteprobe.host.measure.percentiles import Bounds, Cells
from liteprobe.host.run.figures import Latency, StreamFigures, TrafficLook, TrafficResult
from liteprobe.host.traffic.stream import Stream
from liteprobe.sim.models.forwarder import SLOT, Device

TICK_NS = 8
CLOCK = "free-running"
BOUND_NS = 8.0
LEAD = 125_000  # Ticks from a request until the first frame.


@dataclass
class Seen:
    """Holds what a port has seen of a stream, all in ticks."""

    sent: list[int] = field(default_factory=list)  # Starts.
    came: list[int] = field(default_factory=list)
    delays: Counter[int] = field(default_factory=Counter)
    octets: int = 0
    lost: int = 0
    doubled: int = 0


class FakeProbe:
    """A probe of two ports with a device between them; its time passes as frames are sent.

    Parameters
    ----------
    device : Device
    is_late : bool
        Whether it is a bad tester: one frame of each stream is late.
    fails_at : int or None
        Number of the trial in which its link goes down.
    """

    url = "fake://device"
    port_count = 2

    def __init__(self, device: Device, is_late: bool = False, fails_at: int | None = None) -> None:
        self.device, self.is_late, self.fails_at = device, is_late, fails_at
        self.now, self.sends = 0, 0  # Ticks; how often streams were sent.
        self.link = SimpleNamespace(arrival_timeout_s=0.002, receive_port=lambda port, ports: (port + 1) % ports)

    def __enter__(self) -> "FakeProbe":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def info(self) -> dict[str, int | float | str | bool]:
        """Return what it is."""
        return {"url": self.url, "ports": self.port_count, "tick_ns": 8.0, "clock_state": CLOCK}

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += round(seconds * 10**9 / TICK_NS)

    def send(self, streams: Sequence[Stream], receive: Mapping[int, int] | None = None) -> "FakeTraffic":
        """Send streams through the device."""
        self.sends += 1
        if self.sends == self.fails_at:
            raise ProbeError("the link of port 0 went down while streams ran (0 frames had been sent): plug in its cable")
        return FakeTraffic(self, streams, receive or {0: 1, 1: 0})


class FakeTraffic:
    """Streams that were sent: as `Traffic`, but all has happened when it is made."""

    def __init__(self, probe: FakeProbe, streams: Sequence[Stream], receive: Mapping[int, int]) -> None:
        self.probe, self.streams, self.receive = probe, streams, receive
        self._start = probe.now + LEAD
        self._seen = {stream.name: Seen() for stream in streams}
        self._end = self._start
        self._frames_left = heapq.merge(*map(self._frames, streams))
        self._free: dict[int, int] = {}
        self._last = 0

    def __enter__(self) -> "FakeTraffic":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass

    def wait(self, show: Callable[[TrafficLook], None] | None = None) -> None:
        """Look in the middle, and when all has been sent."""
        self._pass(sum(stream.count or 0 for stream in self.streams) // 2)
        self._show(show, self._end, True)
        self._pass(None)
        self._show(show, self._end, False)
        self.probe.now = max(self._last, self._end) + LEAD

    def result(self) -> TrafficResult:
        """Return what came of all."""
        rows = tuple(self._row(stream) for stream in self.streams)
        return TrafficResult(rows, (self._end - self._start) * TICK_NS / 1e9, "sent", True, CLOCK, BOUND_NS, ())

    def _show(self, show: Callable[[TrafficLook], None] | None, at: int, is_running: bool) -> None:
        if show:
            rows = tuple(self._row(stream, at) for stream in self.streams)
            show(TrafficLook(rows, at * TICK_NS, (at - self._start) * TICK_NS / 1e9, is_running, CLOCK, BOUND_NS))

    # # #

    def _frames(self, stream: Stream) -> Iterator[tuple[int, int, int, str, tuple[int, int]]]:
        """Yield the frames of a stream: the tick at which it is due, port, length, name, and its MAC addresses."""
        lengths = stream.length.cycle
        assert lengths and stream.count
        start = self._start + int(Fraction(stream.start_ns) / TICK_NS)
        slot = Fraction(sum(lengths), len(lengths)) + SLOT
        each = slot / Fraction(stream.interval.share or 1)
        macs = [int(one.replace(":", ""), 16) for one in (stream.headers.source_mac, stream.headers.destination_mac)]
        steps = [any(one.field == f"mac.{which}" for one in stream.modifiers) for which in ("source", "destination")]
        filled, is_full, above, below = 0, each == slot, each.numerator, each.denominator
        for number in range(stream.count):
            length = lengths[number % len(lengths)]
            due = start + (filled if is_full else -(-number * above // below))  # The tick at which it is past.
            addresses = (macs[0] + number * steps[0], macs[1] + number * steps[1])
            yield due, stream.port, length, stream.name, addresses
            filled += length + SLOT

    def _pass(self, count: int | None) -> None:
        """Give frames to the device in the order of their starts: so many, or all."""
        device, free, ends = self.probe.device, self._free, self._end
        simply = type(device).meet is Device.meet  # By tick, port and length alone.
        is_plain = type(device).comes_back is Device.comes_back and type(device).copies is Device.copies
        goes = {port: self.receive.get(port, 1 - port) for port in (0, 1)}
        for due, port, length, name, addresses in islice(self._frames_left, count):
            seen = self._seen[name]
            tick = free.get(port, 0)
            if tick < due:
                tick = due
            free[port] = over = tick + length + SLOT
            if ends < over:
                ends = over
            seen.sent.append(tick)
            left = device.forward(tick, port, length) if simply else device.meet(tick, port, length, addresses)
            goes_to = 1 - port if is_plain or not device.comes_back() else port
            if left is None or goes[port] != goes_to:
                seen.lost += 1
                continue
            copies = 1 if is_plain else device.copies()
            seen.came += [left] * copies
            seen.delays[left - tick] += copies
            seen.octets += copies * length
            seen.doubled += copies - 1
            if self._last < left:
                self._last = left
        self._end = ends

    def _row(self, stream: Stream, until: int | None = None) -> StreamFigures:
        seen = self._seen[stream.name]
        sent = seen.sent if until is None else [tick for tick in seen.sent if tick < until]
        came = seen.came if until is None else [tick for tick in seen.came if tick < until]
        delays = [(TICK_NS * ticks, TICK_NS * ticks, count) for ticks, count in sorted(seen.delays.items())]
        latency = None
        if delays and until is None:
            cells, total = Cells.of(delays), sum(count for *_, count in delays)
            mean = sum(ns * count for ns, _, count in delays) / total
            p50, p99, p99_9 = (cells.percentile(percent) for percent in (50, 99, 99.9))
            latency = Latency(delays[0][0], mean, 0.0, delays[-1][0], p50, p99, p99_9, cells, 0)
        return StreamFigures(
            stream=stream,
            receive=self.receive.get(stream.port, 1 - stream.port),
            is_active=False,
            sent=len(sent),
            late=int(self.probe.is_late),
            first_late=None,
            received=len(came),
            octets=seen.octets,
            lost=seen.lost,
            duplicated=seen.doubled,
            reordered=0,
            beyond_window=0,
            latency=latency,
            sent_fps=_rate(sent),
            received_fps=_rate(came),
        )


def _rate(ticks: Sequence[int]) -> Bounds | None:
    """Return frames a second from the first to the last, to a tick."""
    if len(ticks) < 2:
        return None
    span = ticks[-1] - ticks[0]
    return Bounds((len(ticks) - 1) / ((span + 1) * 8e-9), (len(ticks) - 1) / (max(span - 1, 1) * 8e-9))
