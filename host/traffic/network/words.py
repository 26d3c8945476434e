# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Describes a network to a probe in words: settings, the table of delays, patterns, the trace."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from liteprobe.cores.formats import TICK_NS, packed_words
from liteprobe.cores.formats.emulate import (
    CLASS_FIELDS,
    CLASSES,
    DELAY_ENTRIES,
    DELAY_MAX,
    FINE_BITS,
    LINK_FIELDS,
    NO_LIMIT,
    PATTERN_WORDS,
    REORDER_LANE,
    SETTING_WORDS,
    ClassFlag,
    Feature,
    Service,
)
from liteprobe.cores.formats.emulate import BackgroundKind as Kind
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.units import Number, exact, rate_text, time_text
from liteprobe.host.traffic.intervals import MEAN_MAX, NOMINAL, ticks_of
from liteprobe.host.traffic.network.network import (
    BACKGROUNDS,
    DIRECTIONS,
    KEPT,
    LONGEST_USUAL,
    Background,
    Bernoulli,
    Direction,
    GilbertElliott,
    Jitter,
    LossList,
    Network,
    TrafficClass,
    in_order,
    keeping,
)
from liteprobe.host.traffic.network.store import (
    LINE,
    RING_BITS_MIN,
    BufferAllocation,
    Limits,
    Path,
    Ring,
    divide,
    refit,
)

WORD_MAX = 2**32 - 1


def share_word(share: Number) -> int:
    """Return a share in parts of 2^32; all ones is 1.

    Raises UsageError when it is so small that it would be never.
    """
    value = exact(share)
    word = WORD_MAX if value == 1 else min(round(value * 2**32), WORD_MAX - 1)
    if value and not word:
        raise UsageError(
            f"a share of {float(100 * value):g} % is out of range: give 0 %, or {100 / 2**32:.2g} % or more"
        )
    return word


def seed_of(seed: int, *parts: int) -> int:
    """Return the first state of draws, never 0: each of ``parts`` gives others.

    Source: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, 2014 (SplitMix64).
    """
    state = _mixed(seed)
    for part in parts:
        state = _mixed(state ^ part)
    return state or 1


def _mixed(number: int) -> int:
    number = number + 0x9E3779B97F4A7C15 & 2**64 - 1
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & 2**64 - 1
    number = (number ^ number >> 27) * 0x94D049BB133111EB & 2**64 - 1
    return number ^ number >> 31


BURST_MAX = 2**48 - 1
FINE = 1 << FINE_BITS
LINK_WORDS = max(one.word for one in LINK_FIELDS.values()) + 1
SETTINGS_WORDS = SETTING_WORDS * CLASSES + LINK_WORDS  # That a bank has; the rest isn't read.
SWITCH_MAX = 2**48 - 1
FRAMES, BACKGROUND = 0, 1  # Purposes of draws.
NOWHERE = Ring(0, RING_BITS_MIN)  # Of lanes to which no frame comes.
UNUSED = TrafficClass("unused")  # A class that no frame has.


@dataclass(frozen=True)
class DirectionWords:
    """A direction in the words of a probe."""

    banks: tuple[tuple[int, ...], ...]  # Settings, at the start and from each change on.
    delays: tuple[int, ...]  # The table of delays (ticks).
    patterns: tuple[int, ...]  # The pattern memory.
    trace: tuple[int, ...]  # Entries of two words; none: the link has a rate.
    division: BufferAllocation  # Of the store.
    notes: tuple[str, ...]  # What the reader must know of it.


def words_of(network: Network, limits: Sequence[Limits], increment: int = NOMINAL) -> tuple[DirectionWords, ...]:
    """Return the directions of a network in words.

    ``limits``: of the directions of the probe: there, and back where it has that; ``increment``: nanoseconds a tick of
    its clock, in 8.40 fixed point. Raises UsageError when the probe can't hold it: the message has the limit, and what
    to do.
    """
    return tuple(one.made() for one in makers_of(network, limits, increment))


def makers_of(network: Network, limits: Sequence[Limits], increment: int = NOMINAL) -> "tuple[DirectionMaker, ...]":
    """Return what makes the words of each direction, and later those of what a network is changed to while it runs."""
    return tuple(
        DirectionMaker(network, number, way, one, increment)
        for number, (way, one) in enumerate(zip(DIRECTIONS, limits, strict=False))
    )


def switch_ticks(network: Network, increment: int = NOMINAL) -> list[int]:
    """Return the ticks since the start of its changes."""
    found = [round(ticks_of(change.at_ns, increment)) for change in network.changes]
    if found and found[-1] > SWITCH_MAX:
        raise UsageError(
            f"a change at {float(network.changes[-1].at_ns) / 1e9:g} s is out of range: give 26 days at most"
        )
    return found


@dataclass(frozen=True)
class LiveWords:
    """Holds what a direction is changed to while it runs; memories are written before the bank is switched to."""

    bank: tuple[int, ...]
    delays: tuple[int, ...]  # Of the table; none: it stays.
    patterns: dict[int, tuple[int, ...]]  # What is new in the pattern memory, by its first word.
    notes: tuple[str, ...]


# # #


@dataclass
class _Memory:
    """Words that several settings share; equal ones lie there once."""

    way: str
    places: dict[tuple[int, ...], int] = field(default_factory=dict)
    end: int = 0  # Of what was placed last: a place is used again as late as may be.

    def place(self, words: tuple[int, ...]) -> int:
        """Return the first word of these, which are put there unless they are."""
        if words not in self.places:
            taken = sorted((first, first + len(one)) for one, first in self.places.items())
            ends = [0, *(end for _, end in taken)]
            starts = [*(first for first, _ in taken), PATTERN_WORDS]
            free = [(end, start) for end, start in zip(ends, starts, strict=True) if start - end >= len(words)]
            if not free:
                count = sum(map(len, self.places)) + len(words)
                if count <= PATTERN_WORDS:
                    raise UsageError(
                        f"{len(words)} words of a pattern or list of '{self.way}' find no space beside those that hold: end these "
                        "first, then give it"
                    )
                raise UsageError(
                    f"patterns and lists of '{self.way}' have {count} words or more: give "
                    f"{PATTERN_WORDS} at most (32 bits of a pattern, a number of a list, or half a background frame "
                    "each); equal ones count once"
                )
            after = [max(end, self.end) for end, start in free if start - max(end, self.end) >= len(words)]
            self.places[words] = after[0] if after else free[0][0]
            self.end = self.places[words] + len(words)
        return self.places[words]

    def words(self) -> tuple[int, ...]:
        """Return all words of the memory."""
        found = [0] * PATTERN_WORDS
        for words, first in self.places.items():
            found[first : first + len(words)] = words
        return tuple(found)


class DirectionMaker:
    """Makes the words of a direction."""

    def __init__(self, network: Network, number: int, way: str, limits: Limits, increment: int) -> None:
        self._network, self._number, self._way, self._limits = network, number, way, limits
        self._ticks_per_ns = ticks_of(1, increment)
        self._notes: dict[str, None] = {}
        self._states = [self._in_order(state) for state in network.states(way)]
        self._memory = _Memory(way)
        self._table: tuple[int, ...] = ()
        self._table_of: tuple[str, Jitter] | None = None
        self._delays: dict[tuple[str, int, int], int] = {}
        self._classes: dict[tuple[int, ...], tuple[list[int], TrafficClass]] = {}
        self._division: BufferAllocation | None = None

    def made(self) -> DirectionWords:
        """Return them."""
        paths = self._paths(self._states)
        trace = self._trace()
        self._division = division = divide(paths, self._limits, self._way)
        banks = tuple(self._bank(state, division) for state in self._states)
        delays = self._table or (0,) * DELAY_ENTRIES
        notes = (*self._notes, *division.notes)
        return DirectionWords(banks, delays, self._memory.words(), trace, division, notes)

    def adopt(self, bank: Sequence[int]) -> None:
        """Take a direction, of one state, as a host has left it in a probe: where its frames and patterns lie."""
        (state,) = self._states
        self._paths(self._states)
        rings, queues = {}, {}
        for lane in range(CLASSES + 1):
            first, fields = SETTING_WORDS * lane, CLASS_FIELDS if lane < CLASSES else LINK_FIELDS
            value = {name: place.value(bank[first:]) for name, place in fields.items()}
            ring = Ring(value["store_start"], value["store_bits"])
            if ring != NOWHERE or lane in state.numbered:
                rings[lane] = ring
            one = state.numbered.get(lane)
            if one is None:
                continue
            queues[lane] = value["limit_frames"]
            if one.pattern:
                self._memory.places[one.pattern.words()] = value["pattern_start"]
            if one.background and one.background.entries:
                self._memory.places[self._entries(one.background)] = value["background_start"]
        self._division = BufferAllocation(rings, queues, ())

    def changed(self, states: Sequence[Direction], kept: Sequence[Direction]) -> list[LiveWords]:
        """Return the words of states that weren't known at the start, in the order in which they are to hold.

        ``kept``: those that hold before. Raises UsageError where the probe can't go over to one of them; all is then as before.
        """
        before = self._table, self._table_of, self._memory, self._notes
        try:
            return self._changed(
                [self._in_order(state) for state in states], [self._in_order(state) for state in kept], before[2]
            )
        except UsageError:
            self._table, self._table_of, self._memory, self._notes = before
            raise

    def _changed(self, states: list[Direction], kept: list[Direction], memory: _Memory) -> list[LiveWords]:
        assert self._division
        self._notes, self._delays, self._classes = {}, {}, {}
        used = [one for state in kept for one in state.numbered.values()]
        words = [one.pattern.words() for one in used if one.pattern]
        words += [self._entries(one.background) for one in used if one.background and one.background.entries]
        self._memory = replace(memory, places={one: at for one, at in memory.places.items() if one in words})
        if not any(one.jitter for one in used):
            self._table, self._table_of = (), None
        division = refit(self._division, self._paths([*kept, *states]), self._limits, self._way)
        banks = [self._bank(state, division) for state in states]
        patterns = {at: one for one, at in self._memory.places.items() if one not in words}
        delays = () if any(one.jitter for one in used) else self._table
        first = LiveWords(banks[0], delays, patterns, (*self._notes, *division.notes))
        return [first, *(LiveWords(bank, (), {}, ()) for bank in banks[1:])]

    def _paths(self, states: Sequence[Direction]) -> dict[int, list[Path]]:
        distinct = list({id(state): state for state in states}.values())
        return {number: [self._path(state, number) for state in distinct] for number in distinct[0].numbered}

    # Times ---------------------------------------------------------------------------------------------

    def _ticks(self, time_ns: Number) -> int:
        return round(exact(time_ns) * self._ticks_per_ns)

    def _delay(self, one: TrafficClass) -> int:
        """Return the least delay of a class (ticks), and keep its quantiles."""
        key = one.name, id(one.delay_ns), id(one.jitter)
        if key not in self._delays:
            self._delays[key] = self._least_delay(one)
        return self._delays[key]

    def _least_delay(self, one: TrafficClass) -> int:
        least = self._limits.least_delay
        delay = least if one.delay_ns is None else self._ticks(one.delay_ns)
        if delay < least:
            raise UsageError(
                f"class '{one.name}' of '{self._way}' has a delay of {float(one.delay_ns or 0) / 1000:g} us, and this "
                f"probe takes {self._time(least)} at least: give that, or leave 'delay' out for the least"
            )
        if not one.jitter:
            return delay
        all_of_it = [delay + self._ticks(quantile) for quantile in one.jitter.quantiles_ns()]
        cut = sum(ticks < least for ticks in all_of_it)
        if cut:
            self._notes[
                f"class '{one.name}' of '{self._way}': {100 * cut / DELAY_ENTRIES:.1f} % of its delays would be below "
                f"the least of this probe, {self._time(least)}, and are that"
            ] = None
        kept = [max(ticks, least) for ticks in all_of_it]
        table = tuple(ticks - kept[0] for ticks in kept)
        if self._table_of and table != self._table:
            first, same = (
                self._table_of,
                replace(one.jitter, correlation=self._table_of[1].correlation) == self._table_of[1],
            )
            what = "jitter that the least delay of this probe cuts differently" if same else "different jitter"
            advice = (
                "give them longer delays, or less jitter" if same else "give them the same jitter, in all changes too"
            )
            raise UsageError(
                f"classes '{first[0]}' and '{one.name}' of '{self._way}' have {what}, and a direction has one table of delays: "
                f"{advice}"
            )
        self._table, self._table_of = table, (one.name, one.jitter)
        return kept[0]

    def _in_order(self, state: Direction) -> Direction:
        """Return a state whose correlations are known, and say what order does to jitter at the rate that is expected."""
        classes = {one.name: self._kept(state, one) for one in state.numbered.values() if one.jitter}
        if all(classes[one.name] is one for one in state.classes if one.name in classes):
            return state
        return replace(state, classes=[classes.get(one.name, one) for one in state.classes])

    def _kept(self, state: Direction, one: TrafficClass) -> TrafficClass:
        assert one.jitter
        rates = [state.rate_bps, one.expected_bps]
        rates += [part.rate_bps for part in (one.bucket, state.trace) if part]
        rate, around = min([(exact(rate), one.around) for rate in rates if rate is not None] + [LINE])
        gap = float(8 * (LONGEST_USUAL + around) * 10**9 / rate)
        least = self._limits.least_delay / self._ticks_per_ns
        asked = exact(least if one.delay_ns is None else one.delay_ns)
        delays = np.array([float(max(asked + quantile, least)) for quantile in one.jitter.quantiles_ns()])
        frames = f"frames of {LONGEST_USUAL} octets, one each {time_text(round(gap))} ({rate_text(rate)})"
        who = f"class '{one.name}' of '{self._way}'"
        share = one.jitter.correlation
        if share is None:
            share = keeping(delays, gap)
            if share is None:
                raise UsageError(
                    f"{who} can't keep the distribution of its delays with {frames}: say with 'expected' that less comes, or give "
                    "less jitter"
                )
            self._notes[
                f"{who}: a delay stays for {1 / (1 - share)} frames in the mean, so that {frames}, keep their order, and their "
                "delays the distribution that is asked for"
            ] = None
            return replace(one, jitter=replace(one.jitter, correlation=share))
        mean, deviation = in_order(delays, gap, float(share))
        usual = float(delays.std())
        if max(abs(mean - delays.mean()), abs(deviation - usual)) > KEPT * usual:
            kept = keeping(delays, gap)
            advice = (
                f"; 'correlation: keep' ({float(100 * kept):.4g} %) keeps the distribution" if kept is not None else ""
            )
            self._notes[
                f"{who}: {frames}, keep their order: delays of {_ms(mean)} in the mean, not {_ms(float(delays.mean()))}, that "
                f"deviate by {_ms(deviation)}, not {_ms(usual)}. Fewer frames come nearer to what is asked for{advice}"
            ] = None
        return one

    def _time(self, ticks: int) -> str:
        return f"{float(ticks / self._ticks_per_ns) / 1000:.3f} us"

    def _path(self, state: Direction, number: int) -> Path:
        one = state.numbered[number]
        longest = self._delay(one) + (self._table[-1] if one.jitter else 0)
        held = self._ticks(one.reorder.extent_ns) if one.reorder else 0
        if longest + held >= DELAY_MAX:
            raise UsageError(
                f"class '{one.name}' of '{self._way}' has delays of up to {self._seconds(longest + held)}: give "
                f"{self._seconds(DELAY_MAX)} at most in all, jitter and 'reorder' included"
            )
        jitter = max(self._ticks(one.jitter.quantiles_ns()[-1]), 0) if one.jitter else 0
        return Path(state, one, longest, held, jitter)

    def _seconds(self, ticks: int) -> str:
        """Return a time that may be typed back: rounded down."""
        return f"{int(ticks / self._ticks_per_ns) // 10**6 / 1000:.3f} s"

    def _fine(self, rate_bps: Number, what: str) -> int:
        """Return the fine time of an octet at a rate."""
        octet = 8 * 10**9 * self._ticks_per_ns / exact(rate_bps)
        if round(octet * FINE) > WORD_MAX:
            least = 8 * 10**9 * self._ticks_per_ns * FINE / WORD_MAX
            raise UsageError(
                f"{what} of '{self._way}' has {float(rate_bps):g} b/s, and a probe can't be slower than "
                f"{-(-least // 1) / 1000:.3f} kb/s: give that or more"
            )
        return round(octet * FINE)

    def _trace(self) -> tuple[int, ...]:
        trace = self._states[0].trace
        if not trace:
            return ()
        if not self._limits.trace_words:
            raise UsageError(
                "this probe has no memory for bandwidth traces: give 'rate' in the place of 'trace', or build one with "
                "--trace-entries"
            )
        most = self._limits.trace_words // 2
        if len(trace.stamps_ms) > most:
            raise UsageError(
                f"{trace.name} has {len(trace.stamps_ms)} opportunities, and this probe holds {most}: shorten it, to the lines "
                f"up to {trace.stamps_ms[most - 1]} ms"
            )
        return tuple(trace.words(self._ticks_per_ns))

    # Banks ---------------------------------------------------------------------------------------------

    def _bank(self, state: Direction, division: BufferAllocation) -> tuple[int, ...]:
        words: list[int] = []
        for number in range(CLASSES):
            one = state.numbered.get(number, UNUSED)
            key = number, id(one), id(state.rate_bps)
            if key not in self._classes:
                values = self._class_values(one, number, self._delay(one))
                values |= self._queue_values(one, division.queue_frames.get(number, 0))
                values |= self._background_values(one.background, state, one.around) if one.background else {}
                values |= _ring_values(division.rings.get(number, NOWHERE))
                self._classes[key] = packed_words(CLASS_FIELDS, SETTING_WORDS, values), one
            words += self._classes[key][0]
        link = {
            "octet": 0 if state.rate_bps is None else self._fine(state.rate_bps, "the link"),
            "service": Service.WEIGHTED if state.service == "weighted" else Service.STRICT,
            "trace": int(state.trace is not None),
            **_ring_values(division.rings.get(REORDER_LANE, NOWHERE)),
        }
        return (*words, *packed_words(LINK_FIELDS, LINK_WORDS, link))

    def _class_values(self, one: TrafficClass, number: int, delay: int) -> dict[str, int]:
        flags = {
            ClassFlag.DISCARD: one.discard,
            ClassFlag.LOSS_LATE: one.is_lost_late,
            ClassFlag.JITTER: one.jitter is not None,
            ClassFlag.RED: one.queue.red is not None,
            ClassFlag.MENDED: one.is_mended,
            ClassFlag.LIST: isinstance(one.pattern, LossList),
            ClassFlag.ECN: any(early is not None and early.has_ecn for early in (one.queue.red, one.queue.pie)),
            ClassFlag.PIE: one.queue.pie is not None,
        }
        parts = (self._number, number) if one.seed is None else ()
        seed = self._network.seed if one.seed is None else one.seed
        frames, background = (seed_of(seed, *parts, purpose) for purpose in (FRAMES, BACKGROUND))
        values = {
            "flags": sum(flag for flag, is_set in flags.items() if is_set),
            "service_weight": one.weight,
            "duplicate": share_word(one.duplicate),
            "corrupt": share_word(one.corrupt),
            "reorder": share_word(one.reorder.share) if one.reorder else 0,
            "reorder_ticks": self._ticks(one.reorder.extent_ns) if one.reorder else 0,
            "delay": delay,
            "delay_repeat": share_word(one.jitter.correlation or 0) if one.jitter else 0,
            "overhead": one.around & 511,
            **_halves("frame_seed", frames),
            **_halves("background_seed", background),
            **_loss_values(one),
        }
        if one.pattern:
            values |= {"pattern_start": self._memory.place(one.pattern.words()), "pattern_count": one.pattern.count}
        if one.bucket:
            octet = self._fine(one.bucket.rate_bps, f"the token bucket of class '{one.name}'")
            burst = (one.bucket.burst - LONGEST_USUAL - one.around) * octet
            if burst > BURST_MAX:
                most = BURST_MAX // octet + LONGEST_USUAL + one.around
                raise UsageError(
                    f"class '{one.name}' of '{self._way}' has a burst of {one.bucket.burst} octets: give {most} at most at "
                    "this rate"
                )
            values |= {"token_octet": octet, **_halves("token_burst", burst)}
        return values

    def _queue_values(self, one: TrafficClass, frames: int) -> dict[str, int]:
        queue = one.queue
        values = {
            "limit_frames": frames if queue.frames is None else queue.frames,
            "limit_octets": NO_LIMIT if queue.octets is None else queue.octets,
        }
        if queue.red:
            slope = exact(queue.red.share) * 2**32 / (queue.red.most - queue.red.least)
            values |= {
                "red_weight": queue.red.weight,
                "red_least": queue.red.least,
                "red_most": queue.red.most,
                "red_slope": min(round(slope), WORD_MAX),
            }
        if codel := queue.codel:
            values |= {
                "codel": 1,
                "codel_ecn": int(codel.has_ecn),
                "codel_target": self._ticks(codel.target_ns),
                "codel_interval": self._ticks(codel.interval_ns),
            }
        if pie := queue.pie:
            values |= {
                "pie": 1,
                "pie_target": self._ticks(pie.target_ns),
                "pie_update": self._ticks(pie.update_ns),
                "pie_burst": pie.updates,
            }
        needed = {Feature.CODEL: queue.codel, Feature.PIE: queue.pie, Feature.ECN: queue.red and queue.red.has_ecn}
        for feature, is_needed in needed.items():
            if is_needed and not feature & self._limits.features:
                raise UsageError(
                    f"class '{one.name}' of '{self._way}' has '{str(feature.name).lower()}', which this probe's gateware doesn't "
                    "know: build and load a new one, or leave it out"
                )
        return values

    def _background_values(self, one: Background, state: Direction, overhead: int) -> dict[str, int]:
        kind = BACKGROUNDS[one.kind]
        values = {
            "background": int(Kind.NONE if one.is_stopped else kind),
            "background_phase": self._word(one.phase_ns, "phase"),
        }
        if kind == Kind.PATTERN:
            entries = self._entries(one)
            self._check_goes_on(sum(entries[::2]))
            start = self._memory.place(entries)
            return values | {"background_start": start, "background_count": len(entries) // 2, "background_length": 0}
        rate = state.trace.rate_bps if state.trace else None
        rate = exact(state.rate_bps) if state.rate_bps is not None else rate
        values["background_length"] = one.octets(None if state.trace else rate, overhead)
        ticks = one.ticks_between(rate, overhead, self._ticks_per_ns)
        most = MEAN_MAX if kind == Kind.EXPONENTIAL else Fraction(WORD_MAX)
        if not 1 <= ticks <= most:
            raise UsageError(
                f"background frames of '{self._way}' come every {float(ticks * TICK_NS):g} ns: give {TICK_NS} ns to "
                f"{int(most * TICK_NS) // 10**6 / 1000:.3f} s"
            )
        values["background_ticks"], values["background_fraction"] = divmod(
            min(round(ticks * FINE), WORD_MAX * FINE), FINE
        )
        if kind == Kind.ON_OFF:
            self._check_goes_on(self._ticks(one.pause_ns))
            values |= {"background_burst": int(one.burst), "background_pause": self._word(one.pause_ns, "pause")}
        elif kind == Kind.RANDOM_ON_OFF:
            pause = self._word(one.pause_ns, "pause", int(MEAN_MAX))
            self._check_goes_on(pause)
            values |= {"background_burst": share_word(1 / exact(one.burst)), "background_pause": pause}
        return values

    def _entries(self, one: Background) -> tuple[int, ...]:
        """Return the words of a background pattern."""
        return tuple(word for time, length in one.entries for word in (self._word(time, "time"), length))

    def _check_goes_on(self, ticks: int) -> None:
        if not ticks:
            raise UsageError(
                f"the background of '{self._way}' would come all at once, for ever: give times and pauses of {TICK_NS} ns or more"
            )

    def _word(self, time_ns: Number, what: str, most: int = WORD_MAX) -> int:
        ticks = self._ticks(time_ns)
        if ticks > most:
            raise UsageError(
                f"the background of '{self._way}' has a {what} of {float(time_ns) / 1e9:g} s: give {self._seconds(most)} at "
                "most"
            )
        return ticks


def _ms(time_ns: float) -> str:
    return f"{time_ns / 1e6:.4g} ms"


def _loss_values(one: TrafficClass) -> dict[str, int]:
    if isinstance(one.loss, Bernoulli):
        return {"loss_good": share_word(one.loss.share), "loss_bad": share_word(one.loss.share)}
    if isinstance(one.loss, GilbertElliott):
        return {
            "loss_enter": share_word(one.loss.p),
            "loss_leave": share_word(one.loss.r),
            "loss_good": share_word(1 - exact(one.loss.k)),
            "loss_bad": share_word(1 - exact(one.loss.h)),
        }
    return {}


def _ring_values(ring: Ring) -> dict[str, int]:
    return {"store_start": ring.start, "store_bits": ring.bits}


def _halves(name: str, value: int) -> dict[str, int]:
    return {f"{name}_low": value & WORD_MAX, f"{name}_high": value >> 32}
