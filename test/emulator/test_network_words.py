# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Networks in the words of a probe: what was encoded is decoded by arithmetic of this file; what the words can't hold."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from random import Random
from statistics import NormalDist, fmean
from typing import Any

import numpy as np
import pytest

from liteprobe.cores.formats.emulate import (
    CLASS_FIELDS,
    CLASSES,
    LINK_FIELDS,
    LINK_WORD,
    SETTING_WORDS,
    UNMATCHED_CLASS,
    ClassFlag,
    Feature,
)
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.units import exact
from liteprobe.host.traffic.intervals import NOMINAL
from liteprobe.host.traffic.network import (
    Background,
    BandwidthTrace,
    Bernoulli,
    Bucket,
    Change,
    Codel,
    Direction,
    GilbertElliott,
    Jitter,
    LossList,
    LossPattern,
    Network,
    Pie,
    Queue,
    Red,
    Reorder,
    TrafficClass,
)
from liteprobe.host.traffic.network.network import DIRECTIONS, in_order
from liteprobe.host.traffic.network.store import Limits
from liteprobe.host.traffic.network.words import DirectionWords, switch_ticks, words_of
from liteprobe.sim.drivers.emulator.random_networks import LEAST_NS, NetworkMaker, typed_back

LARGE = Limits(store_words=1 << 21, entries=1 << 16, longest=1536, least_delay=LEAST_NS // 8, trace_words=1 << 16)
SLOW = NOMINAL - NOMINAL // 10_000  # A clock whose ticks are 100 ppm shorter.
ONE, MS = 2**32 - 1, 10**6


def made(one: TrafficClass, limits: Limits = LARGE, increment: int = NOMINAL, **direction: Any) -> DirectionWords:
    """Return the words of a direction whose only class is ``one``."""
    return words_of(Network(Direction(classes=[one], **direction)), (limits, LARGE), increment)[0]


def fields(words: Sequence[int], number: int = 7) -> dict[str, int]:
    """Return what the words of a class say, by name."""
    own = words[SETTING_WORDS * number : SETTING_WORDS * (number + 1)]
    return {name: (own[one.word] >> one.low) & ((1 << one.bits) - 1) for name, one in CLASS_FIELDS.items()}


def link(words: Sequence[int]) -> dict[str, int]:
    own = words[LINK_WORD:]
    return {name: (own[one.word] >> one.low) & ((1 << one.bits) - 1) for name, one in LINK_FIELDS.items()}


def refusal(network: Network, limits: Limits = LARGE) -> str:
    with pytest.raises(UsageError) as caught:
        words_of(network, (limits, limits))
    return str(caught.value)


# What one setting becomes ------------------------------------------------------------------------------


def test_a_direction_of_nothing_forwards_at_once_with_the_least_delay() -> None:
    words = words_of(Network(), (LARGE, LARGE))[1]
    rest = fields(words.banks[0])
    assert (rest["delay"], rest["flags"], rest["background"], rest["token_octet"]) == (5000, 0, 0, 0)
    assert rest["limit_frames"] >= 1 and rest["limit_octets"] == ONE
    assert link(words.banks[0]) | {"store_start": 0, "store_bits": 0} == dict.fromkeys(LINK_FIELDS, 0)
    assert (set(words.delays), set(words.patterns), words.trace, words.notes) == ({0}, {0}, (), ())


@pytest.mark.parametrize(
    ("share", "word"), [(0, 0), (1, ONE), (0.5, 1 << 31), (1 - 1e-12, ONE - 1), (Fraction(1, 2**32), 1)]
)
def test_a_share_is_in_parts_of_two_to_the_32_and_all_ones_is_one(share: Any, word: int) -> None:
    assert fields(made(TrafficClass(corrupt=share)).banks[0])["corrupt"] == word


def test_a_share_that_would_be_never_is_refused_with_the_least() -> None:
    assert "give 0 %, or 2.3e-08 % or more" in refusal(Network(Direction(classes=[TrafficClass(corrupt=1e-11)])))


def test_a_rate_is_the_fine_time_of_an_octet_and_follows_the_clock() -> None:
    words = made(TrafficClass(), rate_bps=10**7)
    assert link(words.banks[0])["octet"] == 100 * 65536
    slow = words_of(Network(Direction(10**7)), (LARGE, LARGE), SLOW)[0]
    assert link(slow.banks[0])["octet"] == round(100 * 65536 * Fraction(NOMINAL, SLOW)) > 100 * 65536


def test_a_bucket_is_overdrawn_by_the_longest_usual_frame() -> None:
    one = fields(made(TrafficClass(bucket=Bucket(10**6, 10_000), overhead=4)).banks[0])
    octet = 8 * 10**9 // 10**6 // 8 * 65536
    assert one["token_octet"] == octet
    assert one["token_burst_low"] + (one["token_burst_high"] << 32) == (10_000 - 1514 - 4) * octet


def test_gilbert_elliott_has_its_four_letters() -> None:
    one = fields(made(TrafficClass(loss=GilbertElliott(0.25, 0.5, h=0.75, k=1))).banks[0])
    assert [one[f"loss_{name}"] for name in ("enter", "leave", "good", "bad")] == [1 << 30, 1 << 31, 0, 1 << 30]
    one = fields(made(TrafficClass(loss=Bernoulli(0.25))).banks[0])
    assert [one[f"loss_{name}"] for name in ("enter", "leave", "good", "bad")] == [0, 0, 1 << 30, 1 << 30]


def test_red_drops_its_share_just_below_its_most() -> None:
    one = fields(made(TrafficClass(queue=Queue(100, red=Red(10, 50, 0.1, 4)))).banks[0])
    assert (one["red_least"], one["red_most"], one["red_weight"], one["flags"]) == (10, 50, 4, 8)
    assert one["red_slope"] * 40 / 2**32 == pytest.approx(0.1, abs=1e-8)


def test_codel_pie_and_ecn_are_what_their_rfcs_have_where_nothing_is_said() -> None:
    names = ("flags", "codel", "codel_ecn", "pie")
    one = fields(made(TrafficClass(queue=Queue(codel=Codel()))).banks[0])
    assert [one[name] for name in (*names, "codel_target", "codel_interval")] == [0, 1, 0, 0, 625_000, 12_500_000]
    one = fields(made(TrafficClass(queue=Queue(codel=Codel(10**6, 2 * 10**6, True)))).banks[0])
    assert [one[name] for name in (*names, "codel_target", "codel_interval")] == [0, 1, 1, 0, 125_000, 250_000]
    one = fields(made(TrafficClass(queue=Queue(pie=Pie(has_ecn=True)))).banks[0])
    found = [one[name] for name in (*names, "pie_target", "pie_update", "pie_burst")]
    assert found == [ClassFlag.PIE | ClassFlag.ECN, 0, 0, 1, 1_875_000, 1_875_000, 10]
    one = fields(made(TrafficClass(queue=Queue(red=Red(1, 5, 0.1, has_ecn=True)))).banks[0])
    assert one["flags"] == ClassFlag.RED | ClassFlag.ECN


@pytest.mark.parametrize(
    ("queue", "name"),
    [(Queue(codel=Codel()), "codel"), (Queue(pie=Pie()), "pie"), (Queue(red=Red(1, 5, 0.1, has_ecn=True)), "ecn")],
)
def test_what_a_gateware_does_not_know_is_refused(queue: Queue, name: str) -> None:
    old = replace(LARGE, features=Feature.NONE)
    made(TrafficClass(queue=Queue(red=Red(1, 5, 0.1))), limits=old)
    with pytest.raises(
        UsageError, match=f"'{name}', which this probe's gateware doesn't know: build and load a new one"
    ):
        made(TrafficClass(queue=queue), limits=old)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Queue(red=Red(1, 5, 0.1), codel=Codel()), "a queue has 'red' and 'codel': leave one out"),
        (lambda: Codel(interval_ns=2 * 10**9), "interval 2s of CoDel is out of range"),
        (lambda: Pie(update_ns=10**5), "a burst of 1500 updates is out of range: give 255 at most"),
    ],
)
def test_what_no_queue_can_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()


def test_patterns_lie_in_one_memory_equal_ones_once() -> None:
    bits = LossPattern("1" + 39 * "0")
    classes = [
        TrafficClass("a", "udp", pattern=bits),
        TrafficClass("b", "tcp", pattern=LossList([3, 17])),
        TrafficClass("c", "arp", pattern=bits),
        TrafficClass("d", background=Background("pattern", entries=((80, 60), (800, 1514)), phase_ns=16)),
    ]
    words = words_of(Network(Direction(classes=classes)), (LARGE, LARGE))[0]
    found = [fields(words.banks[0], number) for number in (0, 1, 2, 7)]
    assert [(one["pattern_start"], one["pattern_count"], one["flags"]) for one in found[:3]] == [
        (0, 40, 0), (2, 2, 32), (0, 40, 0),
    ]  # fmt: skip
    assert (found[3]["background_start"], found[3]["background_count"], found[3]["background_phase"]) == (4, 2, 2)
    assert words.patterns[:8] == (1, 0, 3, 17, 10, 60, 100, 1514)
    assert not any(words.patterns[8:])


@pytest.mark.parametrize("kind", ["uniform", "normal", "pareto", "paretonormal"])
def test_jitter_is_a_table_around_the_delay(kind: str) -> None:
    words = made(TrafficClass(delay_ns=20e6, jitter=Jitter(kind, 2e6, correlation=0.25)))
    base = fields(words.banks[0])["delay"]
    delays_ms = [8e-6 * (base + one) for one in words.delays]
    assert len(delays_ms) == 1024 and words.delays[0] == 0 and list(words.delays) == sorted(words.delays)
    middle = {"uniform": 20, "normal": 20}.get(kind)
    if middle:
        assert fmean(delays_ms) == pytest.approx(middle, abs=1e-4)
    if kind == "uniform":
        assert (delays_ms[0], delays_ms[-1]) == pytest.approx((18, 22), abs=0.003)
    if kind == "normal":
        assert delays_ms[768] == pytest.approx(20 + 2 * NormalDist().inv_cdf(768.5 / 1024), abs=1e-5)
    if kind == "pareto":  # Of netem: (u^(-1/3) - 1.5) * 4/3 spreads.
        assert delays_ms[512] == pytest.approx(20 + 2 * ((511.5 / 1024) ** (-1 / 3) - 1.5) * 4 / 3, abs=1e-5)
    assert fields(words.banks[0])["delay_repeat"] == 1 << 30


def test_a_table_of_delays_has_equal_shares_of_its_entries() -> None:
    words = made(TrafficClass(delay_ns=80_000, jitter=Jitter("table", table_ns=(800, 80, 1600, 8000))))
    assert fields(words.banks[0])["delay"] == 10_010
    assert words.delays == (0,) * 256 + (90,) * 256 + (190,) * 256 + (990,) * 256


def test_delays_below_the_least_are_the_least_and_that_is_said() -> None:
    words = made(TrafficClass(delay_ns=80_000, jitter=Jitter("uniform", 80_000)))
    assert fields(words.banks[0])["delay"] == 5000
    assert words.notes[1:] == (
        "class 'rest' of 'there': 25.0 % of its delays would be below the least of this probe, 40.000 us, and are that",
    )
    assert words.delays[:256] == (0,) * 256 and words.delays[257] > 0


def test_draws_differ_by_direction_class_and_purpose_and_repeat() -> None:
    both = words_of(Network(Direction(classes=[TrafficClass("a", "udp")])), (LARGE, LARGE))
    again = words_of(Network(Direction(classes=[TrafficClass("a", "udp")])), (LARGE, LARGE))
    assert both == again
    seeds = [
        (one[f"{what}_seed_low"], one[f"{what}_seed_high"])
        for words in both
        for number in range(CLASSES)
        for one in [fields(words.banks[0], number)]
        for what in ("frame", "background")
    ]
    assert len(set(seeds)) == len(seeds) == 32 and (0, 0) not in seeds
    own = [fields(made(TrafficClass(seed=9)).banks[0])["frame_seed_low"] for _ in range(2)]
    assert own[0] == own[1] != seeds[14][0]


def test_a_trace_keeps_its_times_however_long_it_is() -> None:
    stamps = tuple(range(1, 20_001))
    trace = BandwidthTrace(stamps, (1500,) * len(stamps))
    words = words_of(Network(Direction(trace=trace)), (LARGE, LARGE), SLOW)[0]
    assert link(words.banks[0])["trace"] == 1 and link(words.banks[0])["octet"] == 0
    ticks = Fraction(20_000 * 10**6, 8) * NOMINAL / SLOW
    assert sum(words.trace[::2]) == round(ticks)
    assert set(words.trace[1::2]) == {1500}


def test_changes_have_a_bank_each_and_rings_stay() -> None:
    slow = Direction(10**6, classes=[TrafficClass(delay_ns=50e6, queue=Queue(10))])
    network = Network(
        Direction(10**7, classes=[TrafficClass(queue=Queue(500))]), changes=[Change(1e9, slow), Change(2e9)]
    )
    words = words_of(network, (LARGE, LARGE))[0]
    assert switch_ticks(network) == [125_000_000, 250_000_000]
    assert [link(bank)["octet"] for bank in words.banks] == [100 * 65536, 1000 * 65536, 1000 * 65536]
    assert len({(fields(bank)["store_start"], fields(bank)["store_bits"]) for bank in words.banks}) == 1


# Whatever is asked for ---------------------------------------------------------------------------------


def near(word: int, share: Any) -> bool:
    return word == ONE if share == 1 else abs(word - float(share) * 2**32) <= 1


def check_class(one: TrafficClass, word: dict[str, int], words: DirectionWords, ticks_per_ns: Fraction) -> None:
    """Compare the words of a class with what was asked for, by what the words mean."""
    flags = [one.discard, one.is_lost_late, one.jitter is not None, one.queue.red is not None, one.is_mended]
    assert [bool(word["flags"] >> bit & 1) for bit in range(6)] == [*flags, isinstance(one.pattern, LossList)]
    assert near(word["duplicate"], one.duplicate) and near(word["corrupt"], one.corrupt)
    assert (word["service_weight"], word["overhead"]) == (one.weight, (one.overhead or 0) & 511)
    if one.reorder:
        assert near(word["reorder"], one.reorder.share)
        assert abs(word["reorder_ticks"] - one.reorder.extent_ns * ticks_per_ns) <= Fraction(1, 2)
    if one.queue.frames is not None:
        assert word["limit_frames"] == one.queue.frames
    assert word["limit_octets"] == (ONE if one.queue.octets is None else one.queue.octets)
    least = LARGE.least_delay
    middle = least if one.delay_ns is None else one.delay_ns * ticks_per_ns
    if one.jitter is None:
        assert abs(word["delay"] - middle) <= Fraction(1, 2)
    else:
        asked = [max(middle + quantile * ticks_per_ns, least) for quantile in one.jitter.quantiles_ns()]
        errors = [word["delay"] + extra - wanted for extra, wanted in zip(words.delays, asked, strict=True)]
        assert max(map(abs, errors)) <= 1
        assert near(word["delay_repeat"], one.jitter.correlation)
    if one.pattern:
        first, count = word["pattern_start"], word["pattern_count"]
        if isinstance(one.pattern, LossList):
            assert words.patterns[first : first + count] == tuple(one.pattern.numbers)
        else:
            bits = [words.patterns[first + number // 32] >> number % 32 & 1 for number in range(count)]
            assert "".join(map(str, bits)) == one.pattern.bits
    else:
        assert word["pattern_count"] == 0
    if one.bucket:
        octet = 8 * ticks_per_ns * 10**9 / exact(one.bucket.rate_bps) * 65536
        assert abs(word["token_octet"] - octet) <= Fraction(1, 2)
    else:
        assert word["token_octet"] == 0


def check_background(
    one: Background, word: dict[str, int], words: DirectionWords, rate: Any, ticks_per_ns: Fraction
) -> None:
    numbers = ("constant", "exponential", "on-off", "random on-off", "pattern")
    assert word["background"] == 1 + numbers.index(one.kind)
    assert abs(word["background_phase"] - one.phase_ns * ticks_per_ns) <= Fraction(1, 2)
    if one.kind == "pattern":
        first = word["background_start"]
        entries = words.patterns[first : first + 2 * word["background_count"]]
        assert entries[1::2] == tuple(length for _, length in one.entries)
        for ticks, (time, _) in zip(entries[::2], one.entries, strict=True):
            assert abs(ticks - time * ticks_per_ns) <= Fraction(1, 2)
        return
    assert word["background_length"] == one.length
    if one.interval_ns is not None:
        asked = one.interval_ns * ticks_per_ns
    else:
        bps = exact(one.rate_bps) if one.rate_bps is not None else exact(one.share) * rate
        asked = 8 * (one.length + word["overhead"] - (word["overhead"] >> 8 << 9)) / bps * 10**9 * ticks_per_ns
    assert abs(word["background_ticks"] + Fraction(word["background_fraction"], 65536) - asked) <= Fraction(1, 65536)
    if one.kind in ("on-off", "random on-off"):
        assert abs(word["background_pause"] - one.pause_ns * ticks_per_ns) <= Fraction(1, 2)
        assert (
            word["background_burst"] == one.burst
            if one.kind == "on-off"
            else near(word["background_burst"], Fraction(1, one.burst))
        )


@pytest.mark.sample(7)
@pytest.mark.parametrize("seed", range(60))
def test_what_is_asked_for_is_in_the_words(seed: int) -> None:
    network = NetworkMaker(seed).network()
    increment = (NOMINAL, SLOW)[seed % 2]
    ticks_per_ns = Fraction(2**40, increment)
    for way, words in zip(("there", "back"), words_of(network, (LARGE, LARGE), increment), strict=True):
        states = network.states(way)
        assert len(words.banks) == len(states) == len(network.changes) + 1
        for state, bank in zip(states, words.banks, strict=True):
            rate = exact(state.rate_bps) if state.rate_bps else None
            octet = 0 if rate is None else 8 * 10**9 / rate * 65536 * ticks_per_ns
            assert abs(link(bank)["octet"] - octet) <= Fraction(1, 2)
            assert link(bank)["service"] == (state.service == "weighted")
            matched = [one for one in state.classes if one.match is not None]
            rest = [one for one in state.classes if one.match is None] or [TrafficClass()]
            for number, one in [*enumerate(matched), (7, rest[0])]:
                word = fields(bank, number)
                around = (-10 if state.trace else 24) if one.overhead is None else one.overhead
                check_class(replace(one, overhead=around), word, words, ticks_per_ns)
                if one.background:
                    rate_of_link = state.trace.rate_bps if state.trace else rate
                    check_background(one.background, word, words, rate_of_link, ticks_per_ns)
                else:
                    assert word["background"] == 0


@pytest.mark.sample(7)
@pytest.mark.parametrize("seed", range(60))
def test_rings_are_aligned_apart_and_hold_queue_and_delay(seed: int) -> None:
    network = NetworkMaker(seed).network()
    limits = replace(LARGE, store_words=(LARGE.store_words, 1_700_000)[seed % 2])
    for way, words in zip(("there", "back"), words_of(network, (limits, limits)), strict=True):
        rings = sorted(words.division.rings.values(), key=lambda ring: ring.start)
        assert all(ring.start % ring.words == 0 and ring.bits >= 9 for ring in rings)
        assert all(low.start + low.words <= high.start for low, high in pairwise(rings))
        assert rings[-1].start + rings[-1].words <= limits.store_words
        for state, bank in zip(network.states(way), words.banks, strict=True):
            for number, one in state.numbered.items():
                word = fields(bank, number)
                assert (word["store_start"], 1 << word["store_bits"]) == (
                    words.division.rings[number].start, words.division.rings[number].words,
                )  # fmt: skip
                if one.reorder or state.trace or one.bucket or not state.rate_bps:
                    continue
                octets = min(word["limit_frames"] * 1536, word["limit_octets"])
                under_way = (word["delay"] + (words.delays[-1] if one.jitter else 0)) * min(1, state.rate_bps / 10**9)
                assert 4 << word["store_bits"] >= octets + 0.98 * under_way * 1514 / (1514 + one.around)
            if any(one.reorder and one.reorder.share for one in state.numbered.values()):
                assert 1 << link(bank)["store_bits"] == words.division.rings[8].words


# What the words can't hold ------------------------------------------------------------------------


def there(one: TrafficClass, limits: Limits, rate_bps: int | None = None) -> DirectionWords:
    """Return the words of a direction whose only class is ``one``."""
    return words_of(Network(Direction(rate_bps, classes=[one])), (limits, limits))[0]


def frames_of(words: DirectionWords) -> int:
    """Return the limit of its queue."""
    return CLASS_FIELDS["limit_frames"].value(words.banks[0][SETTING_WORDS * UNMATCHED_CLASS :])


def only(**options: Any) -> Network:
    return Network(Direction(classes=[TrafficClass(**options)]))


SMALL = Limits(store_words=1 << 13, entries=256, longest=1536, least_delay=3000)


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (only(delay_ns=1000), "has a delay of 1 us, and this probe takes 24.000 us at least"),
        (only(delay_ns=8e9, reorder=Reorder(0.5, 1e9)), "delays of up to 9.000 s: give 8.589 s at most in all"),
        (only(delay_ns=1e6), "needs 124.7 KiB for what waits and is under way"),
        (only(delay_ns=1e6), "give class 'rest' a delay of 0.228 ms at most, or with 'expected' 228832kbit at most"),
        (Network(Direction(10**6, classes=[TrafficClass(queue=Queue(100))])), "a queue of 18 frames at most"),
        (only(delay_ns=30_000, reorder=Reorder(1, 1e6)), "frames that are held back need 128"),
        (Network(Direction(15_000)), "a probe can't be slower than 15.259 kb/s"),
        (Network(Direction(trace=BandwidthTrace((1,), (1500,)))), "no memory for bandwidth traces"),
        (only(delay_ns=30_000, background=Background("constant", share=0.5)), "a share of a link without a rate"),
        (only(background=Background("exponential", rate_bps=1000)), "come every 1.2304e+10 ns"),
        (only(background=Background("constant", interval_ns=1)), "give 8 ns to 34.359 s"),
        (only(background=Background("pattern", entries=((1, 60), (2, 60)))), "would come all at once, for ever"),
        (only(background=Background("on-off", interval_ns=8, burst=1, pause_ns=1)), "would come all at once, for ever"),
        (only(background=Background("random on-off", interval_ns=8, burst=1, pause_ns=1)), "pauses of 8 ns or more"),
        (only(bucket=Bucket(20_000, 10**8)), "give 87437 at most at this rate"),
        (
            Network(Direction(classes=[
                TrafficClass("a", "udp", delay_ns=30_000, jitter=Jitter("uniform", 1000)),
                TrafficClass("b", delay_ns=30_000, jitter=Jitter("uniform", 2000)),
            ])),
            "classes 'a' and 'b' of 'there' have different jitter",
        ),
        (
            Network(Direction(classes=[
                TrafficClass("a", "udp", delay_ns=30_000, jitter=Jitter("uniform", 20_000)),
                TrafficClass("b", delay_ns=60_000, jitter=Jitter("uniform", 20_000, correlation=0.5)),
            ])),
            "that the least delay of this probe cuts differently",
        ),
        (
            Network(Direction(classes=[
                TrafficClass("a", "udp", pattern=LossList(range(300))),
                TrafficClass("b", pattern=LossList(range(1, 301))),
            ])),
            "patterns and lists of 'there' have 600 words or more: give 512",
        ),
    ],
)  # fmt: skip
def test_what_the_words_cannot_hold_is_refused_with_the_limit(network: Network, words: str) -> None:
    assert words in refusal(network, SMALL)


def held(there: Reorder | None, rest: Reorder | None) -> Direction:
    return Direction(10**7, classes=[TrafficClass("a", "udp", reorder=there), TrafficClass("b", reorder=rest)])


SOME, NONE = Reorder(0.1, 1e6), Reorder(0, 1e6)


@pytest.mark.parametrize(
    ("way", "options"),
    [
        ("there", {"there": held(SOME, SOME)}),
        ("back", {"back": held(SOME, SOME)}),
        ("there", {"changes": [Change(1e9, held(SOME, SOME))], "there": held(None, None)}),
        ("there", {"changes": [Change(1e9, held(None, SOME))], "there": held(SOME, None)}),
        ("there", {"changes": [Change(1, held(SOME, None)), Change(2, held(None, SOME))], "there": held(None, None)}),
    ],
)
def test_two_classes_of_a_direction_cannot_hold_frames_back(way: str, options: dict[str, Any]) -> None:
    with pytest.raises(
        UsageError, match=f"classes 'a' and 'b' of '{way}' have 'reorder', and one class of a direction"
    ):
        Network(**options)


def test_one_class_of_each_direction_can_hold_frames_back() -> None:
    """One that holds none back doesn't count, nor does the other direction."""
    later = [Change(1e9, held(None, None)), Change(2e9, held(Reorder(0.2, 2e6), NONE))]
    assert Network(held(SOME, NONE), held(None, SOME), later).states("there")[2].classes[0].reorder


def test_what_waits_has_a_limit_of_its_own() -> None:
    few = Limits(store_words=1 << 21, entries=8192, longest=1536, least_delay=3000, waiting=512)
    assert frames_of(there(TrafficClass(queue=Queue(500)), few, 10**7)) == 500
    assert frames_of(there(TrafficClass(), few, 10**7)) == 512
    classes = [TrafficClass("a", "udp", queue=Queue(500)), TrafficClass("b", queue=Queue(13))]
    assert "the queues of 'there' have 513 frames, and this probe holds 512 that wait" in refusal(
        Network(Direction(10**7, classes=classes)), few
    )


#: An i9, both ways: an entry for each 16 words of 2 MiB.
I9 = Limits(store_words=1 << 19, entries=1 << 15, longest=1536, least_delay=6404, waiting=1 << 15)


@pytest.mark.parametrize(
    "options",
    [
        {"queue": Queue(1000)},  # netem's `rate 100mbit limit 1000`.
        {"queue": Queue(812)},  # 100 ms of full frames.
        {"delay_ns": 1e8},
        {"queue": Queue(30_000, octets=1_900_000)},  # Of 60 octets.
    ],
)
def test_an_i9_holds_what_its_store_does(options: dict[str, Any]) -> None:
    assert there(TrafficClass(**options), I9, 10**8).notes == ()


def test_an_i9_holds_eight_queues_of_128_frames() -> None:
    matches = ["udp", "tcp", "icmp", "arp", "ip6", "vlan 7", "ip", None]
    words_of(Network(Direction(10**8, classes=[TrafficClass(f"c{m}", m, queue=Queue(128)) for m in matches])), (I9, I9))


def test_what_an_i9_refuses_is_a_frame_more_than_what_it_takes() -> None:
    def asked(frames: int) -> Network:
        return Network(Direction(10**8, classes=[TrafficClass(queue=Queue(frames))]))

    words_of(asked(1361), (I9, I9))
    assert refusal(asked(1362), I9).endswith(
        "give class 'rest' a queue of 1361 frames at most, or with 'expected' 81833kbit at most"
    )


def test_what_is_said_to_be_the_most_is_the_most() -> None:
    """The limit of the message is taken, a little more isn't."""
    words_of(only(delay_ns=228_000), (SMALL, SMALL))
    assert "ms at most" in refusal(only(delay_ns=230_000), SMALL)
    words_of(Network(Direction(10**6, classes=[TrafficClass(queue=Queue(18))])), (SMALL, SMALL))
    assert "frames at most" in refusal(Network(Direction(10**6, classes=[TrafficClass(queue=Queue(19))])), SMALL)
    words_of(only(delay_ns=5e6, expected_bps=40e6), (SMALL, SMALL))


def test_frames_that_find_no_entry_are_announced() -> None:
    few = Limits(store_words=1 << 20, entries=1002, longest=1536, least_delay=3000)
    words = there(TrafficClass(delay_ns=12.5e6), few)
    assert words.notes == (
        "'there': the probe holds 1002 frames, so frames shorter than 1512 octets at the full rate may be dropped for want of "
        "memory (no_store)",
    )
    one = TrafficClass(queue=Queue(990), delay_ns=1e6)
    found = refusal(Network(Direction(10**9, classes=[one])), few)
    assert "has up to 1071 frames that wait or are under way, and this probe holds 1002: give class" in found
    assert found.endswith(
        "a delay of 0.149 ms at most, or a queue of 921 frames at most, or with 'expected' 149768kbit at most"
    )
    assert "give class 'rest' a delay of 12.504 ms at most, or" in refusal(only(delay_ns=13e6), few)


def test_what_order_does_to_jitter_is_said_and_a_correlation_keeps_the_distribution() -> None:
    """The mean of 171 ms was measured on the reference, a frame each 0.12 ms."""
    jitter = Jitter("pareto", 20 * MS)
    one = TrafficClass(delay_ns=100 * MS, jitter=jitter, overhead=-14)
    (said,) = [note for note in made(one, rate_bps=100 * MS).notes if "keep their order" in note]
    assert "one each 120us (100Mbit), keep their order: delays of 171" in said and "'correlation: keep' (99." in said
    kept = made(replace(one, jitter=replace(jitter, correlation=None)), rate_bps=100 * MS)
    repeat = fields(kept.banks[0])["delay_repeat"] / 2**32
    quantiles = np.array([float(one) for one in jitter.quantiles_ns()])
    for share, is_kept in ((repeat, True), (1 - 1.2 * (1 - repeat), False)):
        mean, deviation = in_order(quantiles, 120_000, share)
        off = max(abs(mean - quantiles.mean()), abs(deviation - quantiles.std()))
        assert (off <= 0.01 * quantiles.std()) == is_kept
    assert not [note for note in made(one, rate_bps=10**5, increment=NOMINAL).notes if "keep their order" in note]
    late = replace(one, jitter=Jitter("uniform", 4 * 10**9, correlation=None), delay_ns=4 * 10**9)
    assert "can't keep the distribution of its delays" in refusal(Network(Direction(10**9, classes=[late])))


@pytest.mark.sample(7)
@pytest.mark.parametrize("seed", range(40))
def test_each_limit_of_a_refusal_is_true_when_it_is_typed_back(seed: int) -> None:
    network = NetworkMaker(seed).network()
    draw = Random(seed)
    limits = Limits(
        1 << draw.randint(14, 19), 1 << draw.randint(6, 11), 1536, LEAST_NS // 8, 1 << 16, draw.choice([0, 64])
    )
    for way in DIRECTIONS:
        asked = Network(**{way: getattr(network, way)})
        try:
            words_of(asked, (limits, limits))
        except UsageError as error:
            offered = typed_back(asked, str(error))
            assert offered or "shorter queues and less delay, or fewer classes" in str(error), error
            for one in offered:
                words_of(one, (limits, limits))
