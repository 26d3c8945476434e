# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The processor's timer against LiteX's, its uptime against a count of cycles, its console against two queues."""

import random
from collections import deque

import pytest
from migen import *

from litex.soc.cores.timer import Timer

from liteprobe.soc.processor import CONSOLE_OCTETS, CrossoverConsole, TickTimer

HALF = 2**31


def interrupts(timer, steps, seed):
    """Return in which cycles an event is pending, while the timer is started and stopped and its events are cleared at random."""
    rng = random.Random(seed)
    seen = []

    def process():
        for _ in range(steps):
            if rng.random() < 0.02:
                period = rng.choice([1, 2, 3, rng.randrange(4, 40)])
                yield timer._en.storage.eq(0)
                yield timer._load.storage.eq(period)
                yield timer._reload.storage.eq(period)
                for _ in range(rng.randrange(2, 5)):  # Zephyr writes one register after another.
                    seen.append((yield timer.ev.zero.pending))
                    yield
                yield timer._en.storage.eq(rng.random() < 0.8)
            yield timer.ev.pending.re.eq(rng.random() < 0.1)
            yield timer.ev.pending.r.eq(1)
            seen.append((yield timer.ev.zero.pending))
            yield

    run_simulation(timer, process())
    return seen


@pytest.mark.parametrize("seed", [41, 20261127, 7])
def test_a_timer_whose_load_is_its_reload_interrupts_as_litex_s_does(seed):
    ours, theirs = interrupts(TickTimer(), 1500, seed), interrupts(Timer(), 1500, seed)
    # Before the first start LiteX's counts nothing, and says so.
    assert ours == theirs
    assert 50 < sum(ours) < len(ours) - 50


@pytest.mark.parametrize("start", [2**32 - 5, HALF - 5, 2**33 + HALF - 4, 2**56 - 6, 12345])
@pytest.mark.parametrize("latches", [range(12), (1, 9), (5,), (3, 4, 5, 6)])
def test_uptime_is_the_cycle_of_its_latch_until_the_next_one(start, latches):
    timer = TickTimer()
    wanted, found = [], []

    def process():
        yield timer.uptime_low.eq(start % 2**32)
        yield timer.uptime_high.eq(start >> 32)
        yield
        now = yield timer.uptime_low
        now |= start >> 32 << 32
        held = None
        for cycle in range(14):
            if held is not None:
                wanted.append(held % 2**56)
                found.append((yield timer._uptime_cycles.status))
            # Written here, it stands in the cycle that comes.
            yield timer._uptime_latch.re.eq(cycle in latches)
            if cycle - 1 in latches:
                held = now + cycle
            yield

    run_simulation(timer, process())
    assert found == wanted
    assert wanted


@pytest.mark.parametrize("seed", [3, 1127])
def test_each_octet_of_a_console_comes_once_and_in_order(seed):
    rng = random.Random(seed)
    console = CrossoverConsole()
    sides = [(console, console.xover), (console.xover, console)]
    queues = [deque(), deque()]
    moved = [0, 0]
    plans = [(False, 0, False)] * 2  # Stand in the cycle that is looked at.

    def process():
        for step in range(3000):
            is_slow = step // 200 % 2  # Now the reader is slower, now the writer.
            for number, (writer, reader) in enumerate(sides):
                queue = queues[number]
                is_full = len(queue) == CONSOLE_OCTETS
                assert ((yield writer._txfull.status), (yield reader._rxempty.status)) == (is_full, not queue)
                if queue:
                    assert (yield reader._rxtx.w) == queue[0]
                puts, octet, takes = plans[number]
                if takes and queue:
                    queue.popleft()
                    moved[number] += 1
                if puts and not is_full:
                    queue.append(octet)
                puts, octet, takes = rng.random() < (0.2, 0.6)[is_slow], rng.randrange(256), rng.random() < (0.6, 0.2)[is_slow]
                plans[number] = puts, octet, takes
                yield writer._rxtx.re.eq(puts)
                yield writer._rxtx.r.eq(octet)
                if reader is console:
                    yield console._ev_pending.re.eq(takes or rng.random() < 0.5)
                    yield console._ev_pending.r.eq(takes << 1 | rng.randrange(2))
                else:
                    yield reader._rxtx.we.eq(takes)
            yield

    run_simulation(console, process())
    assert min(moved) > 500
