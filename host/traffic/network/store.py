# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Divides the store of a direction: a ring a lane, a power of two of words, by what waits and what is under way."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from liteprobe.cores.formats import LINE_RATE_BPS, MIN_LENGTH, OVERHEAD, TICK_NS
from liteprobe.cores.formats.emulate import ENTRY_SPACE, REORDER_LANE, Feature
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.units import exact
from liteprobe.host.traffic.network.network import DELAY_MOST, FRAMES_MAX, Direction, Queue, TrafficClass

RING_BITS_MIN = 9
RING_BITS_MAX = 20
WORD_OCTETS = 4
SPARE_FRAMES = 3  # In service, entering the store, leaving it.
QUEUE_LEAST = 8  # Frames, where no length is asked for.
WORST_LENGTH = 60  # The length that takes the most words for its octets: ENTRY_SPACE.
TICKS_A_US = 1000 // TICK_NS
KBIT = 1000
ENTRY_TICKS = 2400  # That the entry of a frame is in use before and after its delay, at most.
SHARE_FACTOR = 2  # Of what is drawn, so much more than its mean may come at once.


@dataclass(frozen=True)
class Limits:
    """Limits of a direction of a probe, as it was built."""

    store_words: int  # Of 32 bits, for octets of frames.
    entries: int  # Frames that wait or are under way, at most.
    longest: int  # Octets of the longest frame, without FCS.
    least_delay: int  # Ticks.
    trace_words: int = 0  # For a bandwidth trace; 0: none.
    waiting: int = 0  # Frames that wait for the link, at most, background too; 0: as many as ``entries``.
    features: Feature = ~Feature.NONE  # That its gateware knows.

    @property
    def most_waiting(self) -> int:
        """Frames that wait for the link, at most."""
        return self.waiting or self.entries

    @property
    def frame_words(self) -> int:
        """Words of the longest frame."""
        return -(-self.longest // WORD_OCTETS)


@dataclass(frozen=True)
class Ring:
    """The frames of a lane lie in a ring: 2^bits words from ``start``."""

    start: int
    bits: int

    @property
    def words(self) -> int:
        """Its size."""
        return 1 << self.bits


@dataclass(frozen=True)
class Path:
    """A class in one state of its direction, with its times in ticks."""

    direction: Direction
    one: TrafficClass
    delay: int  # The longest.
    held: int  # How long frames are held back on top.
    jitter: int = 0  # Of ``delay``: what jitter adds to what is asked for, at most.

    @property
    def waits(self) -> bool:
        """Whether frames may wait for service."""
        return self.direction.waits or self.one.bucket is not None

    @property
    def held_share(self) -> Fraction:
        """Share of the frames in the lane of those that are held back, at most."""
        return _portion(exact(self.one.reorder.share)) if self.one.reorder else Fraction(0)

    @property
    def own_share(self) -> Fraction:
        """Share of the frames in the lane of the class, at most."""
        return _portion(1 - exact(self.one.reorder.share)) if self.one.reorder else Fraction(1)

    def octets(self, ticks: int, longest: int) -> Fraction:
        """Return the octets of the store that frames under way for ``ticks`` take."""
        one = self.one
        if not one.has_frames:
            return Fraction(0)
        rates = [(exact(rate), one.around) for rate in (self.direction.rate_bps, one.expected_bps) if rate is not None]
        found = [ticks * rate / LINE_RATE_BPS * _fill(overhead, longest) for rate, overhead in (*rates, LINE)]
        if one.bucket:
            passed = one.bucket.burst + ticks * exact(one.bucket.rate_bps) / LINE_RATE_BPS
            found.append(passed * _fill(one.around, longest))
        if self.direction.trace:
            octets = self.direction.trace.most_octets(Fraction(ticks * TICK_NS, 10**6))
            found.append(octets * _fill(one.around, longest))
        return min(found)

    def queue_words(self, limits: Limits) -> int:
        """Return the words of its queue when it is full; of one whose length isn't given the least."""
        if not self.waits:
            return 0
        queue = self.one.queue
        frames = queue.frames
        if frames is None and queue.octets is None:
            frames = QUEUE_LEAST
        if not self.one.has_frames:  # Its background has no octets there, but an entry each.
            return ENTRY_SPACE * (QUEUE_LEAST if frames is None else frames)
        found = [] if frames is None else [frames * limits.frame_words]
        if queue.octets is not None:
            found.append(-(-queue.octets * ENTRY_SPACE // WORST_LENGTH))
        return min(found)

    def queue_frames(self) -> int:
        """Return the frames of its queue when it is full with long ones; of one whose length isn't given the least."""
        if not self.waits:
            return 0
        return QUEUE_LEAST if self.one.queue.frames is None else self.one.queue.frames


LINE = (Fraction(LINE_RATE_BPS), OVERHEAD)


@dataclass(frozen=True)
class BufferAllocation:
    """A store is divided into rings."""

    rings: dict[int, Ring]  # By lane, those that are used.
    queue_frames: dict[int, int]  # By class: the limit of a queue whose length isn't given.
    notes: tuple[str, ...]


class _DoesNotFit(UsageError):
    """Says what a store doesn't hold."""


def divide(paths: dict[int, list[Path]], limits: Limits, way: str) -> BufferAllocation:
    """Return the division of a store.

    ``paths``: by class: its path in each state of the direction; ``way``: name of the direction, for messages. Raises
    UsageError when it holds too little; the message has limits, each of which is enough with all else as it is.
    """
    try:
        return _divided(paths, limits, way)
    except _DoesNotFit as error:
        raise UsageError(f"{error}: {_advice(paths, limits, way)}") from None


def refit(division: BufferAllocation, paths: dict[int, list[Path]], limits: Limits, way: str) -> BufferAllocation:
    """Return a division with the same rings, for states that weren't known when a store was divided.

    Raises UsageError where a ring is too small for them.
    """
    needs = _needs(paths, limits)
    for lane, words in needs.items():
        has = division.rings[lane].words if lane in division.rings else 0
        if words > has:
            of = f"class '{paths[lane][0].one.name}'" if lane in paths else "what is held back"
            raise UsageError(
                f"{of} of '{way}' would need {size_text(words)} of the store, and has {size_text(has)} since the network began: "
                "ask for less delay or queue, or begin it anew with this"
            )
    queues, notes = _queues(paths, needs, division.rings, limits, way)
    return BufferAllocation(division.rings, queues, notes)


# # #


def _needs(paths: dict[int, list[Path]], limits: Limits) -> dict[int, int]:
    """Return the words that each lane needs."""
    needs = {number: max(_own_words(path, limits) for path in states) for number, states in paths.items()}
    held = max(_held_words(state, limits) for state in _states(paths))
    return needs | ({REORDER_LANE: held} if held else {})


def _divided(paths: dict[int, list[Path]], limits: Limits, way: str) -> BufferAllocation:
    needs = _needs(paths, limits)
    bits = {lane: max(RING_BITS_MIN, (words - 1).bit_length()) for lane, words in needs.items()}
    if sum(1 << one for one in bits.values()) > limits.store_words or max(bits.values()) > RING_BITS_MAX:
        raise _DoesNotFit(_too_little(needs, bits, paths, limits, way))
    _grow(bits, needs, limits.store_words)
    rings, first = {}, 0
    for lane in sorted(bits, key=lambda lane: -bits[lane]):  # The largest first: each begins at a multiple of its size.
        rings[lane] = Ring(first, bits[lane])
        first += 1 << bits[lane]
    queues, notes = _queues(paths, needs, rings, limits, way)
    return BufferAllocation(rings, queues, notes)


def _fill(overhead: int, longest: int) -> Fraction:
    """Return the octets of the store for each octet of the link, at most."""
    whole = -(-longest // WORD_OCTETS) * WORD_OCTETS
    return max(Fraction(ENTRY_SPACE * WORD_OCTETS, WORST_LENGTH + overhead), Fraction(whole, longest + overhead))


def _portion(share: Fraction) -> Fraction:
    return min(Fraction(1), SHARE_FACTOR * share)


def _states(paths: dict[int, list[Path]]) -> Iterable[list[Path]]:
    return [list(state) for state in zip(*paths.values(), strict=True)]


def _own_words(path: Path, limits: Limits) -> int:
    if not path.one.has_frames:
        return path.queue_words(limits)
    under_way = path.octets(path.delay, limits.longest) / WORD_OCTETS
    drawn = path.own_share * (path.queue_words(limits) + under_way)
    return int(drawn) + SPARE_FRAMES * limits.frame_words


def _held_words(state: Sequence[Path], limits: Limits) -> int:
    holding = [path for path in state if path.held_share]
    if not holding:
        return 0
    drawn = sum(
        path.held_share * (path.queue_words(limits) + path.octets(path.delay + path.held, limits.longest) / WORD_OCTETS)
        for path in holding
    )
    return int(drawn) + SPARE_FRAMES * limits.frame_words


def _grow(bits: dict[int, int], needs: dict[int, int], store_words: int) -> None:
    """Double rings while there is space, the one that is fullest first."""
    while True:
        free = store_words - sum(1 << one for one in bits.values())
        may = [lane for lane in bits if 1 << bits[lane] <= free and bits[lane] < RING_BITS_MAX]
        if not may:
            return
        bits[max(may, key=lambda lane: Fraction(needs[lane], 1 << bits[lane]))] += 1


def _queues(
    paths: dict[int, list[Path]], needs: dict[int, int], rings: dict[int, Ring], limits: Limits, way: str
) -> tuple[dict[int, int], tuple[str, ...]]:
    """Return the limits of queues whose length isn't given, and what is to be said of the pool of frames."""
    open_ones = [number for number, states in paths.items() if any(path.one.queue.frames is None for path in states)]
    long = limits.frame_words * WORD_OCTETS
    states = list(_states(paths))
    taken = max(sum(path.queue_frames() for path in state) for state in states)
    under_way = max(sum(path.octets(path.delay + path.held, limits.longest) for path in state) for state in states)
    if taken > limits.most_waiting:
        raise _DoesNotFit(
            f"the queues of '{way}' have {taken} frames, and this probe holds {limits.most_waiting} that wait"
        )
    left = limits.entries - taken - -(-int(under_way) // long)
    if left < 0:
        raise _DoesNotFit(
            f"'{way}' has up to {limits.entries - left} frames that wait or are under way, and this probe holds "
            f"{limits.entries}"
        )
    found = {}
    for number in open_ones:
        spare = (rings[number].words - needs[number]) // limits.frame_words
        free = min(left, limits.most_waiting - taken) // len(open_ones)
        found[number] = min(FRAMES_MAX, QUEUE_LEAST + min(spare, free))
    notes = []
    free = limits.entries - taken
    shortest = int(under_way) // free + 1 - OVERHEAD if free else limits.longest
    if shortest > 60:
        notes.append(
            f"'{way}': the probe holds {limits.entries} frames, so frames shorter than {shortest} octets at the full rate may "
            "be dropped for want of memory (no_store)"
        )
    return found, tuple(notes)


def _too_little(
    needs: dict[int, int], bits: dict[int, int], paths: dict[int, list[Path]], limits: Limits, way: str
) -> str:
    """Return what doesn't find place."""
    lane = max(needs, key=lambda lane: needs[lane])
    others = sum(1 << one for number, one in bits.items() if number != lane)
    free = max(0, min(limits.store_words - others, 1 << RING_BITS_MAX))
    left = size_text(1 << free.bit_length() >> 1)
    kept = f"{size_text(limits.store_words)} for '{way}', in powers of two, of which {left} are left"
    who = "frames that are held back need" if lane == REORDER_LANE else f"class '{paths[lane][0].one.name}' needs"
    return f"{who} {size_text(needs[lane])} for what waits and is under way, and the store of this probe has {kept}"


# Advice ------------------------------------------------------------------------------------------------

Change = Callable[[Path, int], Path]


def _with_delay(path: Path, most: int) -> Path:
    return replace(path, delay=min(path.delay, most + path.jitter))


def _with_extent(path: Path, most: int) -> Path:
    return replace(path, held=min(path.held, most))


def _with_queue(path: Path, most: int) -> Path:
    queue = path.one.queue
    return replace(path, one=replace(path.one, queue=replace(queue, frames=min(queue.frames or most, most))))


def _with_expected(path: Path, most: int) -> Path:
    expected = Fraction(most) if path.one.expected_bps is None else min(exact(path.one.expected_bps), Fraction(most))
    return replace(path, one=replace(path.one, expected_bps=expected))


def _advice(paths: dict[int, list[Path]], limits: Limits, way: str) -> str:
    """Return limits, each of which would be enough: of the class that needs most, else of all classes alike."""

    def most(numbers: Iterable[int], change: Change, least: int, top: int) -> int | None:
        def changed(number: int) -> dict[int, list[Path]]:
            return {**paths, **{one: [change(path, number) for path in paths[one]] for one in numbers}}

        return _most(lambda number: _fits(changed(number), limits), least, top)

    by_need = sorted(paths, key=lambda number: -max(_own_words(path, limits) for path in paths[number]))
    for numbers in (*([number] for number in by_need), by_need):
        states = [path for number in numbers for path in paths[number]]
        offers = []
        least = limits.least_delay + max(path.jitter for path in states)  # So that no jitter is cut.
        ticks = most(numbers, _with_delay, least, max(path.delay - path.jitter for path in states))
        if ticks and ticks // TICKS_A_US > least // TICKS_A_US:
            offers.append(f"a delay of {ticks // TICKS_A_US / 1000:.3f} ms at most")
        ticks = most(numbers, _with_extent, 1, max(path.held for path in states))
        if ticks and ticks >= TICKS_A_US:
            offers.append(f"'reorder' with an extent of {ticks // TICKS_A_US / 1000:.3f} ms at most")
        frames = most(numbers, _with_queue, 1, max((path.queue_frames() for path in states), default=0))
        if frames:
            offers.append(f"a queue of {frames} frames at most")
        rate = most(numbers, _with_expected, KBIT, LINE_RATE_BPS)
        if rate:
            offers.append(f"with 'expected' {rate // KBIT}kbit at most")
        if offers:
            who = f"class '{paths[numbers[0]][0].one.name}'" if len(numbers) == 1 else "each class"
            return f"give {who} {', or '.join(offers)}"
    return "give shorter queues and less delay, or fewer classes"


def _fits(paths: dict[int, list[Path]], limits: Limits) -> bool:
    try:
        _divided(paths, limits, "")
    except _DoesNotFit:
        return False
    return True


def _most(fits: Callable[[int], bool], least: int, top: int) -> int | None:
    """Return the largest number up to ``top`` that fits; None: ``least`` is too much."""
    if least > top or not fits(least):
        return None
    below, above = least, top + 1
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (middle, above) if fits(middle) else (below, middle)
    return below


# What it holds -----------------------------------------------------------------------------------------


def most_delay_us(limits: Limits, rate_bps: int, length: int) -> int:
    """Return the longest delay (us) that a direction takes, and holds at a rate full of frames of ``length`` octets.

    One class has the store; a link slower than the line has the least queue.
    """
    direction = Direction(rate_bps if rate_bps < LINE_RATE_BPS else None)
    slot = Fraction(8 * (length + OVERHEAD) * 10**9, rate_bps * TICK_NS)  # Ticks.
    entries = limits.entries - QUEUE_LEAST * direction.waits
    words = max(ENTRY_SPACE, -(-length // WORD_OCTETS))

    def fits(ticks: int) -> bool:
        path = Path(direction, TrafficClass(), ticks, 0)
        spare = SPARE_FRAMES * limits.frame_words + QUEUE_LEAST * direction.waits * limits.frame_words
        frames = SPARE_FRAMES - (-(ticks + ENTRY_TICKS) // slot)
        return frames <= entries and frames * words + spare <= limits.store_words and _fits({0: [path]}, limits)

    return (_most(fits, limits.least_delay, int(DELAY_MOST) // TICK_NS) or 0) // TICKS_A_US


def most_queue(limits: Limits, length: int) -> int:
    """Return the longest queue of frames of ``length`` octets, of a link without delay, whose ``octets`` are limited, too."""

    def fits(frames: int) -> bool:
        one = TrafficClass(queue=Queue(frames, max(frames * length, MIN_LENGTH)))
        return _fits({0: [Path(Direction(LINE_RATE_BPS), one, limits.least_delay, 0)]}, limits)

    return _most(fits, 1, FRAMES_MAX) or 0


def size_text(words: int) -> str:
    """Return the size of memory, in words of 32 bits."""
    octets = words * WORD_OCTETS
    return f"{octets / 2**20:.2f} MiB" if octets >= 2**20 else f"{octets / 2**10:.1f} KiB"
