# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The clock's status: what is published, when, and what silence does to it."""

import pytest
from migen import *

from liteprobe.cores.timebase.status import WORDS, ClockStatus

SYS_CLK_FREQ = 10_000 # 10 cycles a millisecond.
CYCLES       = 10

def write(dut, name, value):
    """Write as the bus does: one cycle of the strobe, the register new in the next one."""
    register = getattr(dut, f"_{name}")
    if isinstance(getattr(register, "storage", None), Signal):
        yield register.storage.eq(value)
        yield register.re.eq(1)
    else:
        yield register.r.eq(value)
        yield register.re.eq(1)
    yield
    yield register.re.eq(0)
    yield

def words_of(dut):
    found = {}
    for name, _, _ in WORDS:
        found[name] = (yield getattr(dut, f"_{name}").w)
    return found

def run(process):
    dut = ClockStatus(SYS_CLK_FREQ)
    run_simulation(dut, process(dut), clocks={"sys": 10})

def test_words_appear_all_at_once_with_the_update():
    values = {name: (0x9e3779b9*(n + 1)) % 2**bits | 1 for n, (name, bits, _) in enumerate(WORDS)}
    def process(dut):
        assert (yield from words_of(dut)) == dict.fromkeys(values, 0)
        for name, value in values.items():
            yield from write(dut, name, value)
        assert (yield from words_of(dut)) == dict.fromkeys(values, 0)
        yield from write(dut, "update", 1)
        yield
        assert (yield from words_of(dut)) == values
        assert (yield dut._updates.status) == 1
        yield from write(dut, "rate", 5)
        assert (yield from words_of(dut)) == values
        yield from write(dut, "update", 1)
        assert (yield from words_of(dut)) == {**values, "rate": 5}
        assert (yield dut._updates.status) == 2
    run(process)

@pytest.mark.parametrize("watchdog", [1, 3, 50])
def test_silence_makes_the_state_unknown_after_the_watchdog_and_nothing_else(watchdog):
    def process(dut):
        yield from write(dut, "watchdog", watchdog)
        yield from write(dut, "state", 3)
        yield from write(dut, "offset", 77)
        for _ in range(7): # Any phase of the milliseconds.
            yield
        yield from write(dut, "update", 1)
        lived = 0
        for _ in range((watchdog + 2)*CYCLES):
            yield
            assert (yield dut._state.w) == 3*(yield dut._alive.status)
            lived += (yield dut._alive.status)
        assert watchdog*CYCLES - 2 <= lived <= watchdog*CYCLES
        assert (yield dut._offset.w) == 77
        yield from write(dut, "update", 1)
        yield
        assert (yield dut._state.w) == 3
    run(process)

def test_updates_in_time_keep_it_alive():
    def process(dut):
        yield from write(dut, "watchdog", 2)
        yield from write(dut, "state", 4)
        yield from write(dut, "update", 1)
        yield
        for _ in range(10):
            for _ in range(2*CYCLES - 5):
                yield
                assert (yield dut._state.w) == 4
            yield from write(dut, "update", 1)
    run(process)

def test_the_watchdog_is_three_seconds_at_reset_and_the_state_unknown():
    def process(dut):
        assert (yield dut._watchdog.storage) == 3000
        assert ((yield dut._state.w), (yield dut._alive.status)) == (0, 0)
    run(process)
