# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Due ticks of streams against the model, which draws frame by frame from what was asked for."""

from fractions import Fraction
from itertools import islice

import pytest

from liteprobe.host.traffic.due import CHUNK, DRAWN_MAX, UnknownDueError
from liteprobe.host.traffic.intervals import Burst, Interval
from liteprobe.host.traffic.layout import port_words
from liteprobe.host.traffic.lengths import IMIX, Fixed
from liteprobe.host.traffic.stream import Stream
from liteprobe.sim.drivers.frames.random_streams import StreamMaker
from liteprobe.sim.models.traffic import streams as traffic

CLOCKS = (8 << 40, int(8 * 2**40 * (1 + 80e-6)), int(8 * 2**40 * (1 - 80e-6)))


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
