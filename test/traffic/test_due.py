# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Due ticks of streams against the model, which draws frame by frame from what was asked for."""

import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import islice

import pytest

from liteprobe.host.base.line import TEN_GIGABIT
from liteprobe.host.traffic import due as drawing
from liteprobe.host.traffic.due import CHUNK, DRAWN_MAX, PLANNED_MOST, SharedLine, UnknownDueError
from liteprobe.host.traffic.intervals import Burst, Interval
from liteprobe.host.traffic.layout import port_words
from liteprobe.host.traffic.lengths import IMIX, Fixed
from liteprobe.host.traffic.stream import Stream
from liteprobe.sim.drivers.frames.random_streams import StreamMaker
from liteprobe.sim.drivers.tools.figures import Figure, Size, note, row
from liteprobe.sim.models.traffic import streams as traffic

CLOCKS = (8 << 40, int(8 * 2**40 * (1 + 80e-6)), int(8 * 2**40 * (1 - 80e-6)))


@pytest.mark.sample(5)
@pytest.mark.parametrize("seed", range(12))
def test_due_ticks_and_ends_are_those_of_the_model_frame_by_frame(seed: int) -> None:
    streams = StreamMaker(seed, 300).streams(8, 0.9)
    clock = CLOCKS[seed % 3]
    words = port_words(streams, clock)
    for stream, due in zip(streams, words.dues, strict=True):
        wanted = [tick for tick, _ in islice(traffic.dues(stream, clock, traffic.stretch(streams, clock)), 300)]
        assert [due.due(number) for number in range(len(wanted))] == wanted
        for ticks in (0, 1, wanted[0], wanted[0] + 1, wanted[len(wanted) // 2], wanted[-1] - 1, wanted[-1]):
            first = next(number for number, tick in enumerate(wanted) if tick >= ticks)
            assert due.before(ticks) == first


def test_due_ticks_far_away_are_those_of_the_model() -> None:
    drawn = Stream("drawn", 1, Fixed(60), Interval(share=0.3, exponential=True))
    bursts = Stream("bursts", 2, IMIX, Interval(share=0.3, exponential=True, burst=Burst(3)), seed=5)
    words = port_words([drawn, bursts])
    for stream, due in zip((drawn, bursts), words.dues, strict=True):
        far = 2 * CHUNK + 77
        tick = next(islice(traffic.dues(stream, traffic.EXACT), far, None))[0]
        assert due.due(far) == tick
    with pytest.raises(UnknownDueError):
        words.dues[0].due(2 * DRAWN_MAX)


def test_what_no_drawing_reaches_is_said_without_drawing_and_what_it_reaches_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = Stream("drawn", 1, Fixed(60), Interval(pps=100_000, exponential=True))
    drawn: list[int] = []
    real = drawing._exponentials
    monkeypatch.setattr(drawing, "_exponentials", lambda draws: drawn.append(len(draws)) or real(draws))
    words = port_words([random], duration_ns=Fraction(3600 * 10**9))
    assert (words.ends, words.is_timed, sum(drawn) < 10 * CHUNK) == ((None,), False, True)
    monkeypatch.setattr(drawing, "DRAWN_MAX", 4 * CHUNK)
    reach_ns = Fraction(5 * CHUNK * 10**4)  # Of intervals of 10 us: five chunks, as many as are drawn.
    for share, is_timed in ((0.9, True), (0.98, True), (1.02, False), (1.1, False)):
        assert port_words([random], duration_ns=reach_ns * Fraction(share)).is_timed == is_timed
        with monkeypatch.context() as slowly:
            slowly.setattr(drawing, "MEAN_MOST", 1e9)
            assert port_words([random], duration_ns=reach_ns * Fraction(share)).is_timed == is_timed


def test_streams_end_by_frames_where_a_duration_is_given() -> None:
    streams = [
        Stream("fast", 1, Fixed(60), Interval(pps=100_000)),
        Stream("few", 2, Fixed(60), Interval(pps=100_000), count=7),
        Stream("none", 3, Fixed(60), Interval(pps=1000), start_ns=200_000),
    ]
    words = port_words(streams, duration_ns=Fraction(200_000))
    assert (words.ends, words.mask, words.is_timed) == ((20, 7, 0), 0b011, True)
    assert port_words(streams, duration_ns=Fraction(200_001)).ends == (21, 7, 1)
    assert port_words(streams).ends == (None, 7, None)
    forever = port_words(streams, duration_ns=Fraction(10**15))
    assert (forever.ends, forever.mask, forever.is_timed) == ((None, 7, None), 0b111, False)
    assert "not kept to the tick" in forever.notes[-1] and not words.notes


# The line that streams share ----------------------------------------------------------------------


@row("people", "waited", is_test=True)
def test_frames_that_wait_for_others_are_those_of_the_model(
    size: Size, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Figure]:
    """Sets of streams from seeds: at each of some looks, frames that wait, and the first of them, are those of the model."""
    found: Counter[str] = Counter()
    for seed in range(size.of(4, 60, 1000)):
        draw = random.Random(seed)
        streams = StreamMaker(seed, 1514).streams(draw.randint(1, 12), draw.choice([0.3, 0.9, 0.99]))
        clock = CLOCKS[seed % 3]
        wanted = traffic.schedule(streams, size.of(1000, 3000), clock)
        words = port_words(streams, clock)
        monkeypatch.setattr("liteprobe.host.traffic.due.PLANNED_ONCE", draw.choice([300, 1 << 18, 1 << 18]))
        line = SharedLine(words.dues, words.ends)
        for at in sorted(draw.sample(range(1, len(wanted) + 1), 5)):
            seen = wanted[:at]
            sent = [int((seen["stream"] == number).sum()) for number in range(len(streams))]
            late = [
                seen[(seen["stream"] == number) & seen["late"]]["sequence"].tolist() for number in range(len(streams))
            ]
            right = [(len(one), one[0] if one else None) for one in late]
            planned = line.waited(sent)
            found["looks"] += 1
            found["frames"] += at
            found["waited"] += sum(map(len, late))
            if planned != right:
                found["wrong"] += 1
                note(f"seed {seed}, {at} frames: {planned}, not {right}")
    yield Figure("looks", found["looks"], "looks", size.of(20, 300), is_least=True)
    yield Figure("frames_that_waited", found["waited"], "frames", 300, is_least=True)
    yield Figure("looks_other_than_the_model", found["wrong"], "looks", 0)


def test_on_a_line_with_columns_a_frame_waits_if_its_column_has_passed() -> None:
    first, second = [
        Stream(name, number, Fixed(length), Interval(share=0.4), 1, start_ns, line=TEN_GIGABIT)
        for number, (name, length, start_ns) in enumerate([("long", 62, 0), ("short", 60, 68)])
    ]
    dues = port_words([first, second]).dues
    assert [one.due(0) for one in dues] == [
        0,
        85,
    ]  # The long one has the line up to tick 86: of the same column of four.
    assert SharedLine(dues, (1, 1)).waited([1, 1]) == [(0, None), (1, 0)]
    assert SharedLine(dues, (1, 1), TEN_GIGABIT.column).waited([1, 1]) == [(0, None), (0, None)]
    later = port_words([first, replace(second, start_ns=66.4)]).dues
    assert SharedLine(later, (1, 1), TEN_GIGABIT.column).waited([1, 1]) == [(0, None), (1, 0)]


def test_what_is_too_much_to_work_out_is_not_known() -> None:
    streams = [Stream("a", 1, Fixed(60), Interval(share=0.4)), Stream("b", 2, IMIX, Interval(share=0.4))]
    line = SharedLine(port_words(streams).dues, (None, None))
    assert line.waited((PLANNED_MOST, 1)) is None
    began_s = time.process_time()
    assert line.waited((400_000, 75_000)) is not None
    assert time.process_time() - began_s < 2
