# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A direction of an emulated network: what becomes of each frame, and when it leaves.

Events in the order of their times; on a tie a switch of the settings, an arrival, a background frame, a service. Source:
docs/design/emulator.md; Marsaglia, Xorshift RNGs, 2003 (what frames and background frames draw, from the random states of a class).
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from liteprobe.cores.formats import MIN_LENGTH, slot_octets
from liteprobe.cores.formats.emulate import (
    CLASSES,
    CODEL_BACKLOG,
    CODEL_COUNT_MAX,
    COUNTER_WORDS,
    HISTOGRAM_BINS,
    HISTOGRAM_WORD,
    LANES,
    PATTERN_WORDS,
    PIE_BACKLOG,
    PIE_CHANGE_MAX,
    PIE_FIFTH,
    PIE_IDLE,
    PIE_SHIFTS,
    PIE_TENTH,
    PIE_WAIT_MAX,
    REORDER_LANE,
    BackgroundKind,
    ClassCounter,
    ClassGauge,
    Outcome,
    codel_step,
)
from liteprobe.sim.models.emulator.settings import Bank, ClassSettings, Settings
from liteprobe.sim.models.traffic.streams import exponential

FCS_OCTETS = 4
#: From the last octet of a frame on the pins to the SFD of the same frame where it leaves, where the line is free.
LEAST_TICKS, MOST_TICKS = 20, 80


class Arrival(NamedTuple):
    """A frame that comes: the tick of its SFD, its octets without FCS, whether the FCS is wrong."""

    tick: int
    octets: bytes
    is_bad: bool


class Leave(NamedTuple):
    """A frame that leaves: its octets, and the first and last tick in which its SFD may be."""

    octets: bytes
    first: int
    last: int


def is_reserved(octets: bytes) -> bool:
    """Return whether no bridge forwards a frame: to 01-80-C2-00-00-0X (IEEE 802.1D-2004, 7.12.6), or MAC control."""
    return octets[:6].hex()[:11] == "0180c200000" or octets[12:14] == b"\x88\x08"


def is_good(frame: Arrival, longest: int) -> bool:
    """Return whether nothing is wrong with a frame."""
    return not frame.is_bad and MIN_LENGTH <= len(frame.octets) <= longest


def leaving(frames: Iterable[Arrival], longest: int) -> list[Leave]:
    """Return what leaves, where nothing else is on the line: each frame once it is whole and the one before is through."""
    left: list[Leave] = []
    first = last = 0
    for frame in frames:
        if is_good(frame, longest) and not is_reserved(frame.octets):
            end = frame.tick + len(frame.octets) + FCS_OCTETS
            first, last = max(end + LEAST_TICKS, first), max(end + MOST_TICKS, last)
            left.append(Leave(frame.octets, first, last))
            slot = slot_octets(len(frame.octets))
            first, last = first + slot, last + slot
    return left


# Direction -----------------------------------------------------------------------------------------

# Draws --------------------------------------------------------------------------------------------


MASK64 = 2**64 - 1
FINE = 16


@dataclass(slots=True)
class Frame:
    """A frame: when it came (tick of its SFD), its length without FCS, its class; what it drew; what became of it.

    ``did_wait``: it waits, or did; ``is_kept``: it was to be sent then. ``is_ect``: it can be marked, ``is_marked``: it was.
    ``due`` is None until it is known, and of a frame that isn't sent; ``leaves``: tick of its SFD at the port, of its first copy's.
    """

    number: int
    time: int
    length: int
    klass: int
    lane: int = 0
    delay: int = 0
    red: int = 0
    is_lost: bool = False
    is_late: bool = False
    is_twice: bool = False
    is_corrupt: bool = False
    is_mended: bool = False
    bit: int = 0
    is_ect: bool = False
    is_marked: bool = False
    did_wait: bool = False
    outcome: Outcome | None = None
    is_kept: bool = False
    due: int | None = None
    leaves: int | None = None


def draws(state: int, count: int) -> list[int]:
    """Return ``count`` draws from a state, and the state after them."""
    found = []
    for _ in range(count):
        state ^= state << 13 & MASK64
        state ^= state >> 7
        state ^= state << 17 & MASK64
        found.append(state >> 32)
    found.append(state)
    return found


class ClassDraws:
    """The states that a class keeps from frame to frame."""

    def __init__(self, settings: ClassSettings, delays: Sequence[int], patterns: Sequence[int]) -> None:
        self.state = settings.frame_seed
        self.delays, self.patterns = delays, patterns
        self.count = 0
        self.is_bad = False
        self.quantile = 0
        self.pattern: tuple[int, int, bool] | None = None
        self.pattern_began = 0  # With this frame of the class.
        self.listed: frozenset[int] = frozenset()

    def draw(self, frame: Frame, own: ClassSettings) -> None:
        """Let the next frame of the class draw."""
        state, loss, twice, corrupt, bit, reorder, repeat, quantile, frame.red, self.state = draws(self.state, 9)
        self.is_bad = state >= own.loss_leave if self.is_bad else state < own.loss_enter
        frame.is_lost = loss < (own.loss_bad if self.is_bad else own.loss_good)
        pattern = (own.pattern_start, own.pattern_count, own.has_list)
        if pattern != self.pattern:
            self.pattern, self.pattern_began = pattern, self.count
            self.listed = frozenset(self.word(own, n) for n in range(own.pattern_count if own.has_list else 0))
        if own.pattern_count and self.is_named(own):
            frame.is_lost = True
        self.count += 1
        frame.is_late = own.loses_late
        frame.is_twice = twice < own.duplicate
        frame.is_corrupt = corrupt < own.corrupt
        frame.is_mended = own.is_mended
        frame.bit = bit * 8 * frame.length >> 32
        if repeat >= own.delay_repeat:
            self.quantile = quantile >> 22
        frame.lane, frame.delay = frame.klass, own.delay
        if own.has_jitter:
            frame.delay += self.delays[self.quantile]
        if reorder < own.reorder:
            frame.lane = REORDER_LANE
            frame.delay += own.reorder_ticks

    def is_named(self, own: ClassSettings) -> bool:
        """Whether the pattern names the frame at hand."""
        if own.has_list:
            return self.count in self.listed
        place = (self.count - self.pattern_began) % own.pattern_count
        return bool(self.word(own, place // 32) >> place % 32 & 1)

    def word(self, own: ClassSettings, place: int) -> int:
        """Return a word of the pattern."""
        return self.patterns[(own.pattern_start + place) % PATTERN_WORDS]


class ClassBackground:
    """The background of a class: the background frame that is scheduled, and what is kept from one to the next.

    Attributes
    ----------
    time : fine time of the background frame that is scheduled; None where there is no background.
    length, red : its length and draw.
    """

    def __init__(self, settings: ClassSettings, patterns: Sequence[int]) -> None:
        self.state = settings.background_seed
        self.patterns = patterns
        self.kind = BackgroundKind.NONE
        self.place = 0  # Of the background frame that is scheduled, in its burst or pattern.
        self.is_first = True
        self.time: int | None = None
        self.length = self.red = 0

    def settle(self, tick: int, own: ClassSettings) -> None:
        """Begin anew where the kind isn't what it was."""
        if own.background is self.kind:
            return
        self.kind, self.time = own.background, None
        if self.kind is not BackgroundKind.NONE:
            self.time, self.is_first = tick + own.background_phase << FINE, True
            self.schedule(own)

    def schedule(self, own: ClassSettings) -> None:
        """Schedule the background frame after the one that is scheduled."""
        assert self.time is not None
        interval, burst, self.red, self.state = draws(self.state, 3)
        self.length = own.background_length
        match self.kind:
            case BackgroundKind.CONSTANT:
                self.time += 0 if self.is_first else own.background_fine
            case BackgroundKind.EXPONENTIAL:
                self.time += drawn(own.background_mean_32, interval)
            case BackgroundKind.ON_OFF:
                self.advance(own.background_burst)
                if not self.is_first:
                    self.time += own.background_fine if self.place else own.background_pause << FINE
            case BackgroundKind.RANDOM_ON_OFF:
                pauses = burst < own.background_burst or own.background_burst == 2**32 - 1
                if not self.is_first:
                    self.time += (
                        drawn(own.background_pause * 32 & 2**32 - 1, interval) if pauses else own.background_fine
                    )
            case BackgroundKind.PATTERN:
                self.advance(own.background_count)
                ticks, length = (
                    self.patterns[(own.background_start + 2 * self.place + n) % PATTERN_WORDS] for n in (0, 1)
                )
                self.time += ticks << FINE
                self.length = length & 2**14 - 1
        self.is_first = False

    def advance(self, count: int) -> None:
        """Go to the next place of a burst or a pattern."""
        self.place = 0 if self.is_first or self.place + 1 >= count else self.place + 1


def drawn(mean_32: int, draw: int) -> int:
    """Return an exponential interval, fine time; the mean in 2^-5 ticks."""
    return mean_32 * exponential(draw or 1) >> 16


# Counts -------------------------------------------------------------------------------------------


MASK = 2**32 - 1
REASONS = (Outcome.DISCARDED, Outcome.LOST, Outcome.FULL, Outcome.EARLY, Outcome.NO_STORE)
COUNTER_OF = {outcome: int(ClassCounter[outcome.name]) for outcome in REASONS}
ARRIVED, ARRIVED_OCTETS, SENT, SENT_OCTETS, DUPLICATED, CORRUPTED, HELD_BACK, BACKGROUND, BACKGROUND_DROPPED, WAITED = (
    int(ClassCounter[name])
    for name in (
        *("ARRIVED", "ARRIVED_OCTETS", "SENT", "SENT_OCTETS", "DUPLICATED", "CORRUPTED"),
        *("HELD_BACK", "BACKGROUND", "BACKGROUND_DROPPED", "WAITED"),
    )
)
MARKED = int(ClassCounter.MARKED)
QUEUE_FRAMES, QUEUE_OCTETS, QUEUE_MOST, DELAY_LEAST, DELAY_MOST = (
    int(ClassGauge[name]) for name in ("QUEUE_FRAMES", "QUEUE_OCTETS", "QUEUE_MOST", "DELAY_LEAST", "DELAY_MOST")
)


class Counts:
    """The words of ``direction<n>_counts``, a list a class; they don't wrap here."""

    def __init__(self) -> None:
        self.of_class = [[0] * COUNTER_WORDS for _ in range(CLASSES)]
        for words in self.of_class:
            words[DELAY_LEAST] = MASK

    def arrived(self, klass: int, length: int) -> None:
        """Count a frame that came in."""
        words = self.of_class[klass]
        words[ARRIVED] += 1
        words[ARRIVED_OCTETS] += length

    def dropped(self, klass: int, outcome: Outcome, is_background: bool) -> None:
        """Count what is dropped, for this reason."""
        self.of_class[klass][BACKGROUND_DROPPED if is_background else COUNTER_OF[outcome]] += 1

    def queued(self, klass: int, frames: int, octets: int) -> None:
        """Note what waits in a class."""
        words = self.of_class[klass]
        words[QUEUE_FRAMES], words[QUEUE_OCTETS] = frames, octets
        if frames > words[QUEUE_MOST]:
            words[QUEUE_MOST] = frames

    def joined(self, frame: Frame, is_held: bool) -> None:
        """Count what was drawn of a frame that waits, and will be sent."""
        words = self.of_class[frame.klass]
        words[DUPLICATED] += frame.is_twice
        words[CORRUPTED] += frame.is_corrupt
        words[HELD_BACK] += is_held

    def sent(self, frame: Frame, due: int) -> None:
        """Count a frame whose departure is known."""
        words, delay = self.of_class[frame.klass], due - frame.time & MASK
        words[SENT] += 1 + frame.is_twice
        words[SENT_OCTETS] += frame.length * (1 + frame.is_twice)
        words[DELAY_LEAST] = min(words[DELAY_LEAST], delay)
        words[DELAY_MOST] = max(words[DELAY_MOST], delay)
        words[HISTOGRAM_WORD + min(delay.bit_length(), HISTOGRAM_BINS - 1)] += 1

    def released(self, frame: Frame, waited: bool) -> None:
        """Count a frame that is released to the port."""
        self.of_class[frame.klass][WAITED] += waited

    def words(self, klass: int) -> list[int]:
        """Return the words of a class as a probe shows them."""
        return [word & MASK for word in self.of_class[klass]]


# Direction ----------------------------------------------------------------------------------------


AROUND = 24
"""Octets that a frame takes on the line beyond its own: preamble, SFD, FCS, interpacket gap."""
NEVER, ALWAYS = 2**100, -(2**100)
MOST_SHARE = 2**32 - 1

Waiting = tuple[int, Frame | None, int]
"""Length of what waits, the frame (None for a background frame), and the tick at which it came."""


def is_from(time: int, other: int) -> bool:
    """Return whether a tick isn't before another, both modulo 2^32."""
    return (time - other) % 2**32 < 2**31


@dataclass(slots=True)
class CodelState:
    """Keeps what CoDel remembers of a class: ticks modulo 2^32, and numbers of drops or marks.

    ``above``: when it is too late for the wait to go below the target, None where it is.
    """

    above: int | None = None
    following: int = 0
    is_dropping: bool = False
    count: int = 0
    last: int = 0


@dataclass(slots=True)
class PieState:
    """Keeps what PIE remembers of a class: ticks, modulo 2^32 where they name a time, and a share in parts of 2^32."""

    following: int
    burst: int  # Updates.
    share: int = 0
    wait: int = 0
    before: int = 0

    def update(self, own: ClassSettings) -> None:
        """Change the share: RFC 8033, 4.2, with 4.2969 = 0.125 * 8 ns * 2^32, and ten times that."""
        error = self.wait - own.pie_target + 10 * (self.wait - self.before)
        change = (error << 2) + (error >> 2) + (error >> 5) + (error >> 6)
        change >>= next((shift for below, shift in PIE_SHIFTS if self.share < below), 0)
        if self.share >= PIE_TENTH:
            change = min(change, PIE_CHANGE_MAX)
        share = min(max(self.share + change, 0), MOST_SHARE)
        if not self.wait and not self.before:
            share -= share >> 6
        self.share, self.before = share, self.wait
        self.following = self.following + own.pie_update & MASK
        self.burst = max(self.burst - 1, 0)


class Direction:
    """A network from one port to another, fed as time goes on.

    What becomes of a frame doesn't depend on how often or how far ``advance`` is called.

    Attributes
    ----------
    frames : all that came, by their number.
    departures : list of (tick, number); what ``advance`` returned so far.
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
        self.early: list[CodelState | PieState] = [CodelState() for _ in range(CLASSES)]
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

    def arrive(self, tick: int, length: int, klass: int, is_ect: bool = False) -> int:
        """Take a frame whose SFD comes at ``tick``, later than all before it; return its number, from 0.

        ``is_ect``: its ECN codepoint isn't 0, so that it can be marked.
        """
        if tick < self.known or (self.arrivals and tick <= self.arrivals[-1].time):
            raise ValueError(f"a frame at tick {tick} comes too late: give frames in order, before the time goes on")
        frame = Frame(len(self.frames), tick, length, klass, is_ect=is_ect)
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
        ahead_ticks : no frame that comes later is delayed by less: departures that are due before ``until_tick`` and so
            many ticks are returned, too.

        Returns
        -------
        list of (tick, number)
            The next frames that leave, and the tick of their SFD at the port; a frame that leaves twice is there twice.

        Raises ValueError if a frame is delayed by less than was said.
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
        outcome = self.refusal(klass, own, background.length, background.red)[0]
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
        is_marked = False
        if own.discards:
            outcome: Outcome | None = Outcome.DISCARDED
        elif frame.is_lost and not frame.is_late:
            outcome = Outcome.LOST
        else:
            outcome, is_marked = self.refusal(klass, own, frame.length, frame.red, frame.is_ect)
        if outcome is None:
            frame.is_marked, frame.did_wait = is_marked, True
            self.wait(klass, frame.length, frame)
            frame.is_kept = not frame.is_lost
            if frame.is_kept:
                self.counts.joined(frame, frame.lane == REORDER_LANE)
        else:
            frame.outcome = outcome
            self.counts.dropped(klass, outcome, is_background=False)

    # Queue.

    def refusal(
        self, klass: int, own: ClassSettings, length: int, red: int, is_ect: bool = False
    ) -> tuple[Outcome | None, bool]:
        """Return why a queue doesn't take what comes, None if it does, and whether it is marked."""
        frames = len(self.queues[klass])
        is_marked = False
        if own.has_red:
            mean = self.means[klass]
            mean += (frames << 16) - mean >> own.red_weight
            self.means[klass] = mean
            above = mean - (own.red_least << 16)
            if mean >= own.red_most << 16:
                return Outcome.EARLY, False
            is_hit = above >= 0 and red < min(above * own.red_slope >> 16, MOST_SHARE)
            is_marked = is_hit and own.has_ecn and is_ect
            if is_hit and not is_marked:
                return Outcome.EARLY, False
        elif own.has_pie and self.is_hit_by_pie(klass, own, red):
            is_marked = own.has_ecn and is_ect and self.pie(klass, own).share < PIE_TENTH
            if not is_marked:
                return Outcome.EARLY, False
        if frames + 1 > own.limit_frames or self.octets[klass] + length > own.limit_octets:
            return Outcome.FULL, False
        return None, is_marked

    def wait(self, klass: int, length: int, frame: Frame | None) -> None:
        """Let a frame or a background frame wait for service."""
        queue = self.queues[klass]
        queue.append((length, frame, self.last_event >> FINE))
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

    def pie(self, klass: int, own: ClassSettings) -> PieState:
        """Return the state of PIE, once all updates that are due are done."""
        state, now = self.early[klass], self.last_event >> FINE & MASK
        if isinstance(state, PieState) and not (
            is_from(now, state.following) and is_from(now - state.following, PIE_IDLE * own.pie_update)
        ):
            while is_from(now, state.following):
                state.update(own)
            return state
        self.early[klass] = begun = PieState(now + own.pie_update & MASK, own.pie_burst)
        return begun

    def is_hit_by_pie(self, klass: int, own: ClassSettings, draw: int) -> bool:
        """Return whether PIE would drop what comes."""
        state, half = self.pie(klass, own), own.pie_target // 2
        if not state.share and state.wait < half and state.before < half:
            state.burst = own.pie_burst
        is_calm = state.before < half and state.share < PIE_FIFTH
        return draw < state.share and not state.burst and not is_calm and self.octets[klass] > PIE_BACKLOG

    def leave_pie(self, klass: int, own: ClassSettings) -> Waiting:
        """Return what waits longest; PIE sees how long it did."""
        state, found = self.pie(klass, own), self.leave_queue(klass)
        waited = (self.last_event >> FINE) - found[2] & MASK
        state.wait = min(waited, PIE_WAIT_MAX) if self.queues[klass] else 0
        return found

    def codel(self, klass: int) -> CodelState:
        """Return the state of CoDel."""
        state = self.early[klass]
        if isinstance(state, CodelState):
            return state
        self.early[klass] = begun = CodelState()
        return begun

    def leave_codel(self, klass: int, own: ClassSettings, now: int) -> Waiting:
        """Return what CoDel lets be served; all that it drops before waits no more, and leaves something behind."""
        state = self.codel(klass)
        is_over = self.is_over(klass, own, now)
        if state.is_dropping:
            state.is_dropping = is_over
            while state.is_dropping and is_from(now, state.following):
                state.count = min(state.count + 1, CODEL_COUNT_MAX)
                is_marked = self.mark(klass, own)
                if not is_marked:
                    self.drop_head(klass)
                    state.is_dropping = self.is_over(klass, own, now)
                if state.is_dropping:
                    state.following += codel_step(own.codel_interval, state.count)
                if is_marked:
                    break
        elif is_over:
            more = state.count - state.last
            is_again = more > 1 and not is_from(now - state.following, 16 * own.codel_interval)
            state.count = state.last = more if is_again else 1
            state.following = now + codel_step(own.codel_interval, state.count)
            state.is_dropping = True
            if not self.mark(klass, own):
                self.drop_head(klass)
                self.is_over(klass, own, now)
        return self.leave_queue(klass)

    def is_over(self, klass: int, own: ClassSettings, now: int) -> bool:
        """Return whether what waits longest has waited too long, and so did all for an interval."""
        state, queue = self.codel(klass), self.queues[klass]
        length, _, came = queue[0]
        if (now - came) % 2**32 < own.codel_target or self.octets[klass] - length <= CODEL_BACKLOG:
            state.above = None
            return False
        if state.above is None:
            state.above = now + own.codel_interval
            return False
        return is_from(now, state.above)

    def mark(self, klass: int, own: ClassSettings) -> bool:
        """Mark what waits longest, where it can be; return whether it was."""
        frame = self.queues[klass][0][1]
        if frame is None or not frame.is_ect or not own.has_codel_ecn:
            return False
        frame.is_marked = True
        return True

    def drop_head(self, klass: int) -> None:
        """Drop what waits longest."""
        frame = self.leave_queue(klass)[1]
        if frame is not None:
            frame.outcome = Outcome.EARLY
        self.counts.dropped(klass, Outcome.EARLY, is_background=frame is None)

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
        if own.has_codel:
            served = self.leave_codel(klass, own, time >> FINE)
        elif own.pie_sees:
            served = self.leave_pie(klass, own)
        else:
            served, self.early[klass] = self.leave_queue(klass), CodelState()
        frame, earliest = served[1], self.earliest[klass]
        self.counts.of_class[klass][MARKED] += frame is not None and frame.is_marked and not frame.is_lost
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
