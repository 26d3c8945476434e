# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Four samples of a pin a tick on boards: each in its place, at every phase, against a model of IDDRX1F and IDDR."""

import pytest
from migen import *

from litex.build.io import DDRInput

from liteprobe.boards.artix7 import ArtixSamples
from liteprobe.boards.ecp5 import DdrSamples
from liteprobe.cores.timebase.pps import SAMPLE_TICKS

TICK, QUARTER = 80, 20 # In tenths of a nanosecond.
FIRST         = 40     # Tick 0 begins.
STEP          = 10     # The pin changes 5, 15, 25, ... after the start: never as anything is sampled.
# Each second edge of the double is one of the timebase.
CLOCKS        = {"timebase": (TICK, 0), "timebase2x": (TICK//2, QUARTER), "timebase2x_fall": (TICK//2, 0), "pin": STEP}

class Iddr(Module):
    """IDDRX1F of Lattice's simulation library: two registers at the edges, and both again at the rising one.

    So is an IDDR of Xilinx in the mode SAME_EDGE_PIPELINED: UG471, figure of that mode.
    """
    def __init__(self, i, o1, o2):
        rising, falling = Signal(), Signal()
        self.sync.timebase2x      += [rising.eq(i), o1.eq(rising), o2.eq(falling)]
        self.sync.timebase2x_fall += falling.eq(i)

class Bench(Module):
    """The samples of a pin, with the primitive in the place of the one that only a toolchain knows."""
    def __init__(self, kind):
        self.pin = Signal()
        self.submodules.dut = self.dut = dut = kind(self.pin)
        fragment = dut._fragment # Before anything is finalized: the only special is the primitive.
        (primitive,) = fragment.specials
        fragment.specials.clear()
        self.submodules += Iddr(self.pin, *outputs_of(primitive))

def outputs_of(primitive):
    """Return the signals of the rising edge and of the falling one."""
    if isinstance(primitive, DDRInput):
        return primitive.o1, primitive.o2
    items = {item.name: item for item in primitive.items}
    assert (primitive.of, items["DDR_CLK_EDGE"].value) == ("IDDR", "SAME_EDGE_PIPELINED")
    return items["Q1"].expr, items["Q2"].expr

def samples_of(kind, rise, fall, ticks):
    """Run with a pin that is high from one time to another (tenths of a nanosecond); return the samples of each tick."""
    bench, words = Bench(kind), []
    def pin():
        for time in range(STEP//2, FIRST + (ticks + SAMPLE_TICKS + 1)*TICK, STEP):
            yield bench.pin.eq(rise <= time < fall)
            yield
    def watch():
        for _ in range(ticks + SAMPLE_TICKS + 1):
            words.append((yield bench.dut.samples)) # Of the tick that ends here.
            yield
    run_simulation(bench, {"pin": pin(), "timebase": watch()}, clocks=CLOCKS)
    return words[SAMPLE_TICKS + 1:]

@pytest.mark.parametrize("kind", [DdrSamples, ArtixSamples])
@pytest.mark.parametrize("phase", range(STEP//2, TICK, STEP))
def test_each_sample_is_that_of_its_quarter(kind, phase):
    """A sample is taken as its quarter of the tick ends: high from the end of the quarter on that the pin rises in."""
    rise, fall, ticks = FIRST + 5*TICK + phase, FIRST + 9*TICK + TICK - phase, 14
    wanted = []
    for tick in range(ticks):
        times = [FIRST + tick*TICK + (n + 1)*QUARTER for n in range(4)]
        wanted.append(sum((rise < time < fall) << n for n, time in enumerate(times)))
    assert samples_of(kind, rise, fall, ticks) == wanted
