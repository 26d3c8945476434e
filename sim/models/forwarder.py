# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Devices under test in plain Python, whose throughput, buffer, latency and loss are known: the truth for suites.

Written apart from the suites: a device is asked frame by frame, in the order of their starts. All times in ticks of 8 ns, from the
first octet of the preamble; a frame of L octets (without FCS) is on the line for L + 12 ticks, and takes L + 24 of it.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from liteprobe.sim.models import device

ON_LINE, SLOT = 12, 24  # Octets of a frame beside its length, without and with the gap.
TICKS_PER_SECOND = 125_000_000


@dataclass
class Device:
    """Forwards each frame when it has come whole, and a latency later; kinds of devices are made of it.

    Parameters
    ----------
    latency : int
        From the end of a frame until it can leave (ticks).
    """

    latency: int = 375

    def forward(self, tick: int, port: int, length: int) -> int | None:
        """Return the tick at which a frame leaves that began to come at ``tick`` on ``port``; None: it is lost."""
        return tick + self._held(length)

    def meet(self, tick: int, port: int, length: int, addresses: tuple[int, int]) -> int | None:
        """Return the same for a frame from the first of two MAC addresses to the second."""
        del addresses
        return self.forward(tick, port, length)

    def truth(self, length: int, is_both_ways: bool) -> Fraction:
        """Return its throughput as a share of the line."""
        del length, is_both_ways
        return Fraction(1)

    def comes_back(self) -> bool:
        """Return whether frames leave by the port that they came to."""
        return False

    def copies(self) -> int:
        """Return how often each frame leaves."""
        return 1

    def _held(self, length: int) -> int:
        return length + ON_LINE + self.latency


@dataclass
class Switch(Device):
    """Has an output of a rate and a queue of so many frames.

    Parameters
    ----------
    rate : Fraction
        Share of the line at which the output sends; or at most ``frames`` a second, where that is given.
    queue : int
        Frames that can wait.
    is_shared : bool
        Whether both directions share one output.
    pause : (int, int) or None
        The output stands still for so many ticks in each so many.
    faults : mapping
        Another share for frames of a length (octets without FCS).
    """

    rate: Fraction = Fraction(1)
    queue: int = 64
    frames: int = 0
    is_shared: bool = False
    pause: tuple[int, int] | None = None
    faults: dict[int, Fraction] = field(default_factory=dict)
    #: When each output is free, and when what waits starts, in parts of a tick (`_parts`): as exact as fractions, and faster.
    _free: dict[int, int] = field(default_factory=dict)
    _waiting: dict[int, deque[int]] = field(default_factory=dict)

    def forward(self, tick: int, port: int, length: int) -> int | None:
        """Return when a frame leaves, or None where the queue is full."""
        lane = 0 if self.is_shared else port
        waiting = self._waiting.get(lane) or self._waiting.setdefault(lane, deque())
        parts, each = self._parts, self._services.get(length) or self._service_of(length)
        came = (tick + length + ON_LINE + self.latency) * parts
        while waiting and waiting[0] <= came:
            waiting.popleft()
        if len(waiting) >= self.queue:
            return None
        start = self._free.get(lane, 0)
        if start < came:
            start = came
        if self.pause:
            start = self._awake(start, self.pause)
        self._free[lane] = start + each
        waiting.append(start)
        return start // parts

    def service(self, length: int) -> Fraction:
        """Return for how long a frame occupies the output (ticks)."""
        if self.frames:
            return Fraction(TICKS_PER_SECOND, self.frames)
        return (length + SLOT) / self.faults.get(length, self.rate)

    def truth(self, length: int, is_both_ways: bool) -> Fraction:
        """Return the share of the line that it can sustain, each way."""
        share = (length + SLOT) / self.service(length)
        if self.pause:
            share *= 1 - Fraction(*self.pause)
            held = Fraction(self.queue, self.pause[0]) * (length + SLOT)  # What the queue takes in during a pause.
            share = min(share, held)
        return min(share / (2 if self.is_shared and is_both_ways else 1), Fraction(1))

    @cached_property
    def _parts(self) -> int:
        """Into how many parts a tick is divided, so that no time is between two."""
        return math.lcm(self.frames or 1, self.rate.numerator, *(share.numerator for share in self.faults.values()))

    @cached_property
    def _services(self) -> dict[int, int]:
        """For how many parts of a tick a frame of a length occupies the output."""
        return {}

    def _service_of(self, length: int) -> int:
        parts = self.service(length) * self._parts
        assert parts.denominator == 1
        self._services[length] = int(parts)
        return int(parts)

    def _awake(self, start: int, pause: tuple[int, int]) -> int:
        asleep, period = (ticks * self._parts for ticks in pause)
        into = start % period
        return start + asleep - into if into < asleep else start


@dataclass
class Policer(Device):
    """Loses what comes above a share of the line, with a bucket of two frames, and has no queue."""

    share: Fraction = Fraction(834, 1000)
    #: When the bucket of each direction is full again, in parts of a tick: as many as the share's numerator.
    _full: dict[int, int] = field(default_factory=dict)

    def forward(self, tick: int, port: int, length: int) -> int | None:
        """Return when a frame leaves, or None where the bucket is empty."""
        cost, now = (length + SLOT) * self.share.denominator, tick * self.share.numerator
        full = max(self._full.get(port, 0), now)
        if full - now > cost:
            return None
        self._full[port] = full + cost
        return tick + self._held(length)

    def truth(self, length: int, is_both_ways: bool) -> Fraction:
        """Return the share of the policer."""
        del length, is_both_ways
        return self.share


@dataclass
class Lossy(Device):
    """Loses one frame of so many, at any load."""

    one_of: int = 100_000
    _count: int = 0

    def forward(self, tick: int, port: int, length: int) -> int | None:
        """Return when a frame leaves, or None for each of so many."""
        self._count += 1
        return None if self._count % self.one_of == 0 else tick + self._held(length)

    def truth(self, length: int, is_both_ways: bool) -> Fraction:
        """Return 0: it loses at any load."""
        del length, is_both_ways
        return Fraction(0)


@dataclass
class Hostile(Device):
    """Does what no device should: loses all, sends back, sends each frame many times, or is away for a while."""

    loses_all: bool = False
    is_mirror: bool = False
    times: int = 1
    away: tuple[int, int] | None = None  # From tick to tick.
    on_frame: Callable[[int], None] | None = None  # Called with the tick of each.
    seen: int = 0  # For it to keep a tick in.

    def forward(self, tick: int, port: int, length: int) -> int | None:
        """Return when a frame leaves, or None where it is lost."""
        if self.on_frame:
            self.on_frame(tick)
        if self.loses_all or (self.away and self.away[0] <= tick < self.away[1]):
            return None
        return tick + self._held(length)

    def comes_back(self) -> bool:
        """Return whether it is a mirror."""
        return self.is_mirror

    def copies(self) -> int:
        """Return how often each frame leaves."""
        return self.times


@dataclass
class Learner(Switch):
    """Learns addresses, filters by them, and floods what it doesn't know.

    Parameters
    ----------
    spec : str
        Of the simulated device that it is (sim/models/device.py): its table, learning rate, ageing, storm limit, largest frame.
    floods : bool
        Whether it forwards frames to addresses that it doesn't know.
    """

    spec: str = "device?table=100"
    floods: bool = True

    def __post_init__(self) -> None:
        self.known = device.parse(self.spec)
        self.table = device.AddressTable(self.known)
        self._storm_free = Fraction(0)

    def meet(self, tick: int, port: int, length: int, addresses: tuple[int, int]) -> int | None:
        """Return when a frame leaves, or None where it is filtered or lost."""
        source, destination = addresses
        known, came = self.known, tick + length + ON_LINE
        if known.largest and length + device.FCS > known.largest:
            return None
        is_group = bool(destination >> 40 & 1)
        if known.storm and is_group:
            if came < self._storm_free:
                return None
            self._storm_free = came + Fraction(TICKS_PER_SECOND, known.storm)
        filtered = known.table and self.table.filters(port, source, destination, came)
        if filtered or not (self.floods or is_group or destination in self.table.entries):
            return None
        return self.forward(tick, port, length)
