# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Divides the store of a direction: a ring a lane, a power of two of words, by what waits and what is under way."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from liteprobe.cores.formats import LINE_RATE_BPS, OVERHEAD, TICK_NS
from liteprobe.cores.formats.emulate import ENTRY_SPACE, REORDER_LANE, Feature
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.units import exact
from liteprobe.host.traffic.network.network import FRAMES_MAX, Direction, TrafficClass

RING_BITS_MIN = 9
RING_BITS_MAX = 20
WORD_OCTETS = 4
SPARE_FRAMES = 3  # In service, entering the store, leaving it.
QUEUE_LEAST = 8  # Frames, where no length is asked for.
WORST_LENGTH = 60  # The length that takes the most words for its octets: ENTRY_SPACE.
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
        rates = [
            (exact(rate), one.overhead) for rate in (self.direction.rate_bps, one.expected_bps) if rate is not None
        ]
        found = [ticks * rate / LINE_RATE_BPS * _fill(overhead, longest) for rate, overhead in (*rates, LINE)]
        if one.bucket:
            passed = one.bucket.burst + ticks * exact(one.bucket.rate_bps) / LINE_RATE_BPS
            found.append(passed * _fill(one.overhead, longest))
        if self.direction.trace:
            octets = self.direction.trace.most_octets(Fraction(ticks * TICK_NS, 10**6))
            found.append(octets * _fill(one.overhead, longest))
        return min(found)

    def queue_words(self, limits: Limits) -> int:
        """Return the words of its queue when it is full; of one whose length isn't given the least."""
        if not self.waits:
            return 0
        queue = self.one.queue
        frames = queue.frames
        if frames is None and queue.octets is None:
            frames = QUEUE_LEAST
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


def divide(paths: dict[int, list[Path]], limits: Limits, way: str) -> BufferAllocation:
    """Return the division of a store.

    ``paths``: by class: its path in each state of the direction; ``way``: name of the direction, for messages. Raises
    UsageError when it holds too little; the message has the limit.
    """
    needs = {number: max(_own_words(path, limits) for path in states) for number, states in paths.items()}
    held = [_held_words(state, limits) for state in _states(paths)]
    if max(held):
        needs[REORDER_LANE] = max(held)
    bits = {lane: max(RING_BITS_MIN, (words - 1).bit_length()) for lane, words in needs.items()}
    if sum(1 << one for one in bits.values()) > limits.store_words or max(bits.values()) > RING_BITS_MAX:
        raise UsageError(_too_little(paths, needs, bits, limits, way))
    _grow(bits, needs, limits.store_words)
    rings, first = {}, 0
    for lane in sorted(bits, key=lambda lane: -bits[lane]):  # The largest first: each begins at a multiple of its size.
        rings[lane] = Ring(first, bits[lane])
        first += 1 << bits[lane]
    queues, notes = _queues(paths, needs, rings, limits, way)
    return BufferAllocation(rings, queues, notes)


# # #


def _fill(overhead: int, longest: int) -> Fraction:
    """Return the octets of the store for each octet of the link, at most."""
    whole = -(-longest // WORD_OCTETS) * WORD_OCTETS
    return max(Fraction(ENTRY_SPACE * WORD_OCTETS, WORST_LENGTH + overhead), Fraction(whole, longest + overhead))


def _portion(share: Fraction) -> Fraction:
    return min(Fraction(1), SHARE_FACTOR * share)


def _states(paths: dict[int, list[Path]]) -> Iterable[list[Path]]:
    return [list(state) for state in zip(*paths.values(), strict=True)]


def _own_words(path: Path, limits: Limits) -> int:
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
        raise UsageError(
            f"the queues of '{way}' have {taken} frames, and this probe holds {limits.most_waiting} that wait: give that in all"
        )
    left = limits.entries - taken - -(-int(under_way) // long)
    if left < 0:
        most = max(0, limits.entries - -(-int(under_way) // long))
        raise UsageError(
            f"'{way}' has up to {limits.entries - left} frames that wait or are under way, and this probe holds "
            f"{limits.entries}: "
            + (
                f"give queues of {most} frames in all, or shorter delays"
                if most
                else "give shorter delays, or lower rates"
            )
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
    paths: dict[int, list[Path]], needs: dict[int, int], bits: dict[int, int], limits: Limits, way: str
) -> str:
    """Return what doesn't find place, and the limit."""
    lane = max(needs, key=lambda lane: needs[lane])
    others = sum(1 << one for number, one in bits.items() if number != lane)
    free = max(0, min(limits.store_words - others, 1 << RING_BITS_MAX))
    ring = 1 << free.bit_length() - 1 if free else 0
    kept = f"{_size(limits.store_words)} for '{way}'"
    if lane == REORDER_LANE:
        return (
            f"frames that are held back need {_size(needs[lane])}, and the store of this probe has {kept}, in powers "
            f"of two, of which {_size(ring)} are left: hold back fewer, or for a shorter time"
        )
    path = max(paths[lane], key=lambda path: _own_words(path, limits))
    left = ring - path.queue_words(limits) - SPARE_FRAMES * limits.frame_words
    octets = path.octets(path.delay, limits.longest)
    most = Fraction(left * WORD_OCTETS) / octets * path.delay if octets else Fraction(0)
    frames = int((ring * WORD_OCTETS - octets) / limits.longest) - SPARE_FRAMES
    if left > 0 and most >= limits.least_delay:
        advice = (
            f"give it a delay of {int(most * TICK_NS / 1000) / 1000:.3f} ms at most, a lower rate, or say with 'expected' what "
            "comes of it at most"
        )
    elif frames > 0 and path.waits:
        advice = f"give it a queue of {frames} frames at most, or less delay"
    else:
        advice = "give it a shorter queue and less delay, or fewer classes"
    return (
        f"class '{path.one.name}' needs {_size(needs[lane])} for what waits and is under way, and the store of this probe has "
        f"{kept}, in powers of two, of which {_size(ring)} are left: {advice}"
    )


def _size(words: int) -> str:
    octets = words * WORD_OCTETS
    return f"{octets / 2**20:.2f} MiB" if octets >= 2**20 else f"{octets / 2**10:.1f} KiB"
