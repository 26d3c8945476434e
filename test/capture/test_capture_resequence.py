# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Blocks over networks that lose, repeat and swap them: each is handed on once, in order, or counted as lost once, in time."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from liteprobe.cores.formats import BLOCK_MAGIC, BLOCK_VERSION, BLOCK_WORDS
from liteprobe.host.capture import resequence
from liteprobe.host.capture.decode import Blocks
from liteprobe.host.capture.resequence import ResendPolicy, Resequencer

WINDOW = 256
PATIENCE = ResendPolicy(wait_s=0.02, tries=3)
STEP_S = 0.001
RATE = 40  # Blocks of a channel in a step.
WRAP = 1 << 32


@pytest.fixture(autouse=True)
def small_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window that a run of a second goes beyond."""
    monkeypatch.setattr(resequence, "WINDOWS", (WINDOW, WINDOW))


@dataclass
class Line:
    """Loses, doubles and reorders blocks. Losses are parts of all; a burst loses ``burst`` blocks that follow one another."""

    loss: float = 0.0
    bursts: float = 0.0
    burst: int = 0
    swapped: float = 0.0
    swap_s: float = 0.0
    repeated: float = 0.0

    def arrivals(self, rng: np.random.Generator, count: int) -> list[tuple[float, int]]:
        """Return when (s) which block comes, of ``count`` that are sent at an even pace."""
        sent_s = np.arange(count) * (STEP_S / RATE)
        is_lost = rng.random(count) < self.loss
        for begin in np.flatnonzero(rng.random(count) < self.bursts).tolist():
            is_lost[begin : begin + self.burst] = True
        times = sent_s + (rng.random(count) < self.swapped) * rng.random(count) * self.swap_s
        again = np.flatnonzero((rng.random(count) < self.repeated) & ~is_lost)
        found = [(times[number], number) for number in np.flatnonzero(~is_lost).tolist()]
        return sorted(found + [(times[number] + rng.random() * self.swap_s, int(number)) for number in again])


LINES = {
    "losses": Line(loss=0.05),
    "half is lost": Line(loss=0.5),
    "nearly all is lost": Line(loss=0.97),
    "swapped and repeated": Line(swapped=0.3, swap_s=0.002, repeated=0.2),
    "bursts beyond the window": Line(bursts=0.0005, burst=3 * WINDOW),
    "all of it": Line(loss=0.1, bursts=0.0007, burst=2 * WINDOW, swapped=0.2, swap_s=0.002, repeated=0.1),
}


def made(numbers: NDArray[np.int64], first: int, channel: int) -> Blocks:
    """Return whole blocks that say in all their words which they are."""
    blocks = np.empty((len(numbers), BLOCK_WORDS), np.uint32)
    blocks[:] = ((numbers * 40503 + channel) % WRAP)[:, np.newaxis]
    blocks[:, 0], blocks[:, 1], blocks[:, 2] = (numbers + first) % WRAP, BLOCK_WORDS - 4 | 0xFFFF << 16, 0
    blocks[:, 3] = BLOCK_MAGIC << 16 | BLOCK_VERSION << 12 | channel << 8
    return blocks


@dataclass
class Outcome:
    """Numbers that were handed on, and when (s), by channel."""

    order: Resequencer
    numbers: dict[int, list[int]] = field(default_factory=dict)
    times: dict[int, list[float]] = field(default_factory=dict)

    def take(self, blocks: Blocks, now_s: float, firsts: dict[int, int]) -> None:
        for channel, first in firsts.items():
            mine = blocks[blocks[:, 3] >> 8 & 0xF == channel]
            numbers = (mine[:, 0].astype(np.int64) - first) % WRAP
            assert (mine == made(numbers, first, channel)).all(), "a block isn't what it was"
            self.numbers.setdefault(channel, []).extend(numbers.tolist())
            self.times.setdefault(channel, []).extend([now_s] * len(numbers))


def ran(arrivals: dict[int, list[tuple[float, int]]], firsts: dict[int, int], count: int) -> Outcome:
    """Push what arrives, a step at a time, to somebody whose asking nobody hears."""
    order = Resequencer(firsts, PATIENCE, ring=WINDOW)
    outcome = Outcome(order)
    places = dict.fromkeys(firsts, 0)
    # Until all that was sent is handed on or given up.
    for step in range(count // RATE + 1000):
        now_s = step * STEP_S
        parts = [np.empty((0, BLOCK_WORDS), np.uint32)]
        for channel, first in firsts.items():
            mine, begin = arrivals[channel], places[channel]
            while places[channel] < len(mine) and mine[places[channel]][0] <= now_s:
                places[channel] += 1
            parts.append(made(np.array([n for _, n in mine[begin : places[channel]]], np.int64), first, channel))
            order.note_sent(channel, (first + min(step * RATE, count)) % WRAP, now_s)
        blocks = np.concatenate(parts)
        outcome.take(order.push(blocks, np.full(len(blocks), 4 * BLOCK_WORDS), now_s), now_s, firsts)
        outcome.take(order.give_up(now_s), now_s, firsts)
        order.overdue(now_s)
        held = max(channel.count + len(channel.far) for channel in order._channels.values())
        assert held <= WINDOW + resequence.FAR, "memory is bounded"
        is_all = all(places[channel] == len(mine) for channel, mine in arrivals.items())
        if is_all and all(order.expected(c) == (f + count) % WRAP for c, f in firsts.items()):
            break
    return outcome


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", LINES)
def test_each_block_is_handed_on_in_order_or_counted_as_lost_and_in_time(name: str, seed: int) -> None:
    """Against a plain reference: what has come, each once, sorted; all else is lost."""
    line, rng, count = LINES[name], np.random.default_rng([seed, *name.encode()]), 12 * WINDOW
    firsts = {0: 0, 5: WRAP - 1000}
    arrivals = {channel: line.arrivals(rng, count) for channel in firsts}
    outcome = ran(arrivals, firsts, count)
    lost = repeated = 0
    for channel, found in arrivals.items():
        wanted = sorted({number for _, number in found})
        assert outcome.numbers[channel] == wanted
        lost += count - len(wanted)
        repeated += len(found) - len(wanted)
        came: dict[int, float] = {}
        for time_s, number in found:
            came.setdefault(number, time_s)
        held_s = max(time_s - came[n] for n, time_s in zip(wanted, outcome.times[channel], strict=True))
        waits_s = (PATIENCE.tries + 1) * (PATIENCE.wait_s + STEP_S)
        assert held_s <= line.swap_s + 2 * waits_s
    order = outcome.order
    assert (order.never_came, order.repeated, order.foreign) == (lost, repeated, 0)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_comes_whenever_each_block_counts_once(seed: int) -> None:
    """Blocks that come long after they were given up are lost all the same, and said to have come again."""
    rng, count = np.random.default_rng(seed), 10 * WINDOW
    line = Line(loss=0.1, bursts=0.001, burst=WINDOW, swapped=0.05, swap_s=0.5, repeated=0.3)
    arrivals = {0: line.arrivals(rng, count)}
    outcome = ran(arrivals, {0: 7}, count)
    found = outcome.numbers[0]
    assert found == sorted(set(found)) and set(found) <= {number for _, number in arrivals[0]}
    order = outcome.order
    assert order.never_came + len(found) == count
    assert len(found) + order.repeated + order.foreign == len(arrivals[0])


@pytest.mark.parametrize("loss", [0.02, 0.3, 0.5])
def test_what_is_asked_for_and_sent_again_is_not_given_up(loss: float) -> None:
    """A sender that goes back to the block asked for and sends all from there on, a part of which is lost again."""
    rng, count = np.random.default_rng(int(100 * loss)), 6 * WINDOW
    order, found = Resequencer({3: 0}, ResendPolicy(tries=12), ring=WINDOW), Outcome(Resequencer({}))
    way: list[tuple[float, int]] = []
    sent = 0
    for step in range(60_000):
        now_s = step * STEP_S
        end = min(sent + RATE, count, order.expected(3) + WINDOW)
        for number in range(sent, end):
            if rng.random() >= loss:
                heapq.heappush(way, (now_s + 0.002 * rng.random(), number))
        sent = max(sent, end)
        numbers = []
        while way and way[0][0] <= now_s:
            numbers.append(heapq.heappop(way)[1])
        blocks = made(np.array(numbers, np.int64), 0, 3)
        order.note_sent(3, sent, now_s)
        found.take(order.push(blocks, np.full(len(blocks), 4 * BLOCK_WORDS), now_s), now_s, {3: 0})
        found.take(order.give_up(now_s), now_s, {3: 0})
        for _, number in order.overdue(now_s):
            sent = number
        if order.expected(3) == count:
            break
    assert found.numbers[3] == list(range(count)) and order.never_came == 0


def strays(numbers: list[int]) -> Iterator[Blocks]:
    """Yield blocks, one at a time."""
    for number in numbers:
        yield made(np.array([number]), 0, 0)


def test_strays_beyond_the_window_give_nothing_up() -> None:
    """Blocks of an earlier capture, fewer than show that the window is over."""
    order = Resequencer({0: 0}, PATIENCE, ring=WINDOW)
    for stray in strays([WINDOW, 5000, 90_000, 5000, *range(20_000, 20_050)]):
        assert len(order.push(stray, np.array([4 * BLOCK_WORDS]), 0.0)) == 0
    assert order.never_came == 0
    mine = made(np.arange(100), 0, 0)
    assert order.push(mine, np.full(100, 4 * BLOCK_WORDS), 0.1) is mine
    assert (order.expected(0), order.never_came, order.foreign, order.repeated) == (100, 0, 53, 1)


def test_window_that_is_full_gives_up_at_once() -> None:
    order = Resequencer({0: 0}, PATIENCE, ring=WINDOW)
    numbers = np.arange(10, 10 + 4 * WINDOW)
    found = order.push(made(numbers, 0, 0), np.full(len(numbers), 4 * BLOCK_WORDS), 0.0)
    assert found[:, 0].tolist() == numbers.tolist() and order.never_came == 10


def test_gap_that_is_filled_leaves_its_patience_to_the_next() -> None:
    """Of many gaps, each is filled when it is asked for itself: all after it are lost again each time."""
    order, count = Resequencer({0: 0}, PATIENCE, ring=WINDOW), 200
    numbers = np.array([number for number in range(count) if number % 8])
    order.note_sent(0, count, 0.0)
    found = [order.push(made(numbers, 0, 0), np.full(len(numbers), 4 * BLOCK_WORDS), 0.0)[:, 0]]
    for step in range(1, 2000):
        now_s = STEP_S * step
        found.append(order.give_up(now_s)[:, 0])
        for _, number in order.overdue(now_s):
            found.append(order.push(made(np.array([number]), 0, 0), np.array([4 * BLOCK_WORDS]), now_s)[:, 0])
    assert np.concatenate(found).tolist() == list(range(count))
    assert (order.asked, order.never_came) == (count // 8, 0)
