# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A direction of an emulated network: what becomes of each frame, and when it leaves.

Events in the order of their times; on a tie a switch of the settings, an arrival, a background frame, a service. Source:
docs/design/emulator.md.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from liteprobe.cores.formats.emulate import CLASSES, LANES, REORDER_LANE, Outcome
from liteprobe.sim.models.emulator.counts import BACKGROUND, Counts
from liteprobe.sim.models.emulator.draws import FINE, ClassBackground, ClassDraws, Frame
from liteprobe.sim.models.emulator.settings import Bank, ClassSettings, Settings

AROUND = 24
"""Octets that a frame takes on the line beyond its own: preamble, SFD, FCS, interpacket gap."""
NEVER, ALWAYS = 2**100, -(2**100)
MOST_SHARE = 2**32 - 1

Waiting = tuple[int, Frame | None]
"""Length of what waits, and the frame; None for a background frame."""


class Direction:
    """A network from one port to another, fed as time goes on.

    What becomes of a frame doesn't depend on how often or how far ``advance`` is called.

    Attributes
    ----------
    frames : list of Frame
        All that came, by their number.
    counts : Counts
    departures : list of (tick, number)
        What ``advance`` returned so far.
    """

    def __init__(self, settings: Settings) -> None:
        self.bank = Bank.of(settings.words)
        delays, patterns = settings.delay_table(), settings.pattern_memory()
        self.draws = [ClassDraws(one, delays, patterns) for one in self.bank.classes]
        self.background = [ClassBackground(one, patterns) for one in self.bank.classes]
        self.trace = settings.trace
        if self.bank.has_trace and not any(ticks for ticks, _ in settings.trace):
            raise ValueError("the trace takes no time: give an opportunity with ticks before it")
        self.frames: list[Frame] = []
        self.departures: list[tuple[int, int]] = []
        self.counts = Counts()
        self.arrivals: deque[Frame] = deque()
        self.switches: deque[tuple[int, Bank]] = deque()
        self.known = 0  # All that comes before this tick is known.
        # Queues.
        self.queues: list[deque[Waiting]] = [deque() for _ in range(CLASSES)]
        self.octets = [0] * CLASSES
        self.means = [0] * CLASSES
        self.earliest: list[int] = [ALWAYS] * CLASSES  # Of each class: when its bucket lets it be served.
        self.has_tokens = False  # Any of them, ever.
        self.waiting = 0  # A bit for each class.
        # Service.
        self.served, self.weight_left = CLASSES - 1, 0
        self.service_end = self.last_event = 0
        self.transit: Waiting | None = None
        self.transit_lacks = 0
        self.opportunity = 0  # The next one,
        self.opportunity_time = settings.trace[0][0] << FINE if self.bank.has_trace else NEVER
        # Lanes and line.
        self.lane_due = [0] * LANES
        self.leaving: list[tuple[int, int, int, int]] = []  # Due, lane, how many ended their service before, number.
        self.ended = 0
        self.line_free = 0
        self.settled = 0  # What is due before this tick has been sent.
        self.background_time, self.background_class = NEVER, 0
        self.settle_background(0)

    # From outside.

    def arrive(self, tick: int, length: int, klass: int) -> int:
        """Take a frame whose SFD comes at ``tick``, later than all before it; return its number, from 0."""
        if tick < self.known or (self.arrivals and tick <= self.arrivals[-1].time):
            raise ValueError(f"a frame at tick {tick} comes too late: give frames in order, before the time goes on")
        frame = Frame(len(self.frames), tick, length, klass)
        self.frames.append(frame)
        self.arrivals.append(frame)
        return frame.number

    def switch(self, tick: int, words: Sequence[int]) -> None:
        """Go over to a bank of other settings at a tick."""
        if tick < self.known or (self.switches and tick < self.switches[-1][0]):
            raise ValueError(f"a switch at tick {tick} comes too late: name it before the time goes on")
        bank = Bank.of(words)
        if bank.has_trace is not self.bank.has_trace:
            raise ValueError("a switch can't change between a rate and a trace: start the direction anew")
        self.switches.append((tick, bank))

    def advance(self, until_tick: int, ahead_ticks: int = 0) -> list[tuple[int, int]]:
        """Let the time go on: all that arrives before ``until_tick`` has been given.

        Parameters
        ----------
        until_tick : int
        ahead_ticks : int
            No frame that comes later is delayed by less: departures that are due before ``until_tick`` and so many ticks are
            returned, too.

        Returns
        -------
        list of (tick, number)
            The next frames that leave, and the tick of their SFD at the port; a frame that leaves twice is there twice.

        Raises
        ------
        ValueError
            If a frame is delayed by less than was said.
        """
        self.known = max(self.known, until_tick)
        self.run(self.known << FINE)
        self.settled = max(self.settled, self.known + ahead_ticks)
        left: list[tuple[int, int]] = []
        while self.leaving and self.leaving[0][0] < self.settled:
            due, _, _, number = heappop(self.leaving)
            frame = self.frames[number]
            frame.leaves = max(due, self.line_free)
            for _ in range(1 + frame.is_twice):
                start = max(due, self.line_free)
                self.line_free = start + frame.length + AROUND
                self.counts.released(frame, start > due)
                left.append((start, number))
        self.departures += left
        return left

    def finish(self, arrivals: Iterable[tuple[int, int, int]], until_tick: int) -> list[tuple[int, int]]:
        """Take all arrivals (tick, length, class), let the time go on, and return all departures that are due before its end."""
        for tick, length, klass in arrivals:
            self.arrive(tick, length, klass)
        self.advance(until_tick)
        return self.departures

    # Events.

    def run(self, end: int) -> None:
        """Do all events before a fine time."""
        while True:
            service = self.opportunity_time if self.bank.has_trace else self.service_time() if self.waiting else NEVER
            switch = self.switches[0][0] << FINE if self.switches else NEVER
            arrival = self.arrivals[0].time << FINE if self.arrivals else NEVER
            time = min(service, switch, arrival, self.background_time)
            if time >= end:
                return
            self.last_event = time
            if switch == time:
                self.go_over(*self.switches.popleft())
            elif arrival == time:
                self.take_frame(self.arrivals.popleft())
            elif self.background_time == time:
                self.take_background()
            elif self.bank.has_trace:
                self.serve_opportunity(time)
            else:
                self.serve(time)

    def go_over(self, tick: int, bank: Bank) -> None:
        """Let other settings hold."""
        self.bank = bank
        self.settle_background(tick)

    def settle_background(self, tick: int) -> None:
        """Let new backgrounds begin, and old ones end."""
        for background, own in zip(self.background, self.bank.classes, strict=True):
            background.settle(tick, own)
        self.find_background()

    def find_background(self) -> None:
        """Find the next background frame of all."""
        self.background_time = NEVER
        for klass, background in enumerate(self.background):
            if background.time is not None and background.time < self.background_time:
                self.background_time, self.background_class = background.time, klass

    def take_background(self) -> None:
        """A background frame comes."""
        klass = self.background_class
        background, own = self.background[klass], self.bank.classes[klass]
        self.counts.of_class[klass][BACKGROUND] += 1
        outcome = self.refusal(klass, own, background.length, background.red)
        if outcome is None:
            self.wait(klass, background.length, None)
        else:
            self.counts.dropped(klass, outcome, is_background=True)
        background.schedule(own)
        self.find_background()

    def take_frame(self, frame: Frame) -> None:
        """A frame comes."""
        klass = frame.klass
        own = self.bank.classes[klass]
        self.counts.arrived(klass, frame.length)
        self.draws[klass].draw(frame, own)
        if own.discards:
            outcome: Outcome | None = Outcome.DISCARDED
        elif frame.is_lost and not frame.is_late:
            outcome = Outcome.LOST
        else:
            outcome = self.refusal(klass, own, frame.length, frame.red)
        if outcome is None:
            self.wait(klass, frame.length, frame)
            frame.is_kept = not frame.is_lost
            if frame.is_kept:
                self.counts.joined(frame, frame.lane == REORDER_LANE)
        else:
            frame.outcome = outcome
            self.counts.dropped(klass, outcome, is_background=False)

    # Queue.

    def refusal(self, klass: int, own: ClassSettings, length: int, red: int) -> Outcome | None:
        """Return why a queue doesn't take what comes; None if it does."""
        frames = len(self.queues[klass])
        if own.has_red:
            mean = self.means[klass]
            mean += (frames << 16) - mean >> own.red_weight
            self.means[klass] = mean
            above = mean - (own.red_least << 16)
            if mean >= own.red_most << 16 or (above >= 0 and red < min(above * own.red_slope >> 16, MOST_SHARE)):
                return Outcome.EARLY
        if frames + 1 > own.limit_frames or self.octets[klass] + length > own.limit_octets:
            return Outcome.FULL
        return None

    def wait(self, klass: int, length: int, frame: Frame | None) -> None:
        """Let a frame or a background frame wait for service."""
        queue = self.queues[klass]
        queue.append((length, frame))
        self.octets[klass] += length
        self.waiting |= 1 << klass
        self.counts.queued(klass, len(queue), self.octets[klass])

    def leave_queue(self, klass: int) -> Waiting:
        """Return what waits longest in a class; it waits no more."""
        queue = self.queues[klass]
        found = queue.popleft()
        self.octets[klass] -= found[0]
        if not queue:
            self.waiting &= ~(1 << klass)
        self.counts.queued(klass, len(queue), self.octets[klass])
        return found

    # Service.

    def service_time(self) -> int:
        """Return when the link serves next, if nothing comes before; something waits."""
        time = max(self.service_end, self.last_event)
        return time if self.able(time) else self.least_token_time()

    def able(self, time: int) -> int:
        """Return the classes that can be served at a time, a bit each."""
        able = self.waiting
        if self.has_tokens:
            for klass, earliest in enumerate(self.earliest):
                if earliest > time:
                    able &= ~(1 << klass)
        return able

    def least_token_time(self) -> int:
        """Return when the first of the classes that wait for their bucket can be served."""
        return min(earliest for klass, earliest in enumerate(self.earliest) if self.waiting >> klass & 1)

    def choose(self, able: int) -> int:
        """Return which of the classes that can be served is."""
        first = (able & -able).bit_length() - 1
        goes_on = bool(self.weight_left and able >> self.served & 1)
        if not self.bank.is_weighted:
            goes_on = goes_on and first == self.served
        elif not goes_on:
            after = [klass for klass in range(self.served + 1, CLASSES) if able >> klass & 1]
            first = after[0] if after else first
        if not goes_on:
            self.served = first
            self.weight_left = self.bank.classes[self.served].service_weight
        self.weight_left -= 1
        return self.served

    def begin(self, time: int, able: int) -> tuple[Waiting, int]:
        """Choose what is served; return it, and the octets of its service."""
        klass = self.choose(able)
        own = self.bank.classes[klass]
        served, earliest = self.leave_queue(klass), self.earliest[klass]
        octets = served[0] + own.overhead
        self.earliest[klass] = ALWAYS
        if own.token_octet:
            full = max(earliest + own.token_burst_fine, time)
            self.earliest[klass] = full + octets * own.token_octet - own.token_burst_fine
            self.has_tokens = True
        return served, octets

    def serve(self, time: int) -> None:
        """Serve a frame, from its beginning to its end, which nothing changes any more."""
        served, octets = self.begin(time, self.able(time))
        self.service_end = time + octets * self.bank.octet
        self.end(served, self.service_end)

    def serve_opportunity(self, time: int) -> None:
        """Serve with the octets of an opportunity."""
        left = self.trace[self.opportunity][1]
        while left:
            if self.transit is None:
                able = self.able(time)
                if not able:
                    break
                self.transit, self.transit_lacks = self.begin(time, able)
            taken = min(left, self.transit_lacks)
            left -= taken
            self.transit_lacks -= taken
            if not self.transit_lacks:
                served, self.transit = self.transit, None
                self.end(served, time)
        self.opportunity = (self.opportunity + 1) % len(self.trace)
        self.opportunity_time += self.trace[self.opportunity][0] << FINE

    def end(self, served: Waiting, time: int) -> None:
        """The service of a frame ends: it is due."""
        frame = served[1]
        if frame is None:
            return
        if frame.is_lost:
            frame.outcome = Outcome.LOST
            self.counts.dropped(frame.klass, Outcome.LOST, is_background=False)
            return
        lane = frame.lane
        due = max((time >> FINE) + frame.delay, self.lane_due[lane])
        if due < self.settled:
            raise ValueError(
                f"a frame is due at tick {due}, and all before {self.settled} have left: look less far ahead"
            )
        self.lane_due[lane] = frame.due = due
        frame.outcome = Outcome.SENT
        self.counts.sent(frame, due)
        heappush(self.leaving, (due, lane, self.ended, frame.number))
        self.ended += 1
