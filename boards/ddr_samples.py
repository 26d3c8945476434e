# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Four samples of a pin a tick, by a DDR input at twice the timebase: on any pin of an ECP5."""

from migen import *

from litex.gen import *

from litex.build.io import DDRInput

# DDR Samples --------------------------------------------------------------------------------------

class DdrSamples(LiteXModule):
    """Samples a pin each quarter of a tick (2 ns).

    ``timebase2x`` and ``timebase`` come from one PLL and rise together, so which sample belongs to which part of a tick is
    so by construction: there is nothing to align and nothing to reset.

    Parameters
    ----------
    pad : Signal(), asynchronous

    Attributes
    ----------
    samples : Signal(4), out, ``timebase``
        The pin 2, 4, 6 and 8 ns after the tick SAMPLE_TICKS before began; the earliest in bit 0.

    Limits: from ``timebase2x`` to ``timebase`` there are 4 ns, which nextpnr does not check; ``soc/build/report.py`` does.
    Source: Lattice FPGA-TN-02035 (ECP5 High-Speed I/O), GDDRX1_RX.SCLK, which all sides have; simulation library, IDDRX1F:
    the samples of a rising edge and of the falling one behind it come out together, at the next rising edge.
    """
    def __init__(self, pad):
        self.samples = Signal(4)

        # # #

        pair   = Signal(2) # Of the rising edge before the last one, and the falling one behind it.
        before = Signal(2, reset_less=True)
        word   = Signal(4, reset_less=True)
        late   = Signal(reset_less=True)
        self.specials += DDRInput(clk=ClockSignal("timebase2x"), i=pad, o1=pair[0], o2=pair[1])
        self.sync.timebase2x += before.eq(pair)
        # What is taken as tick t + 2 begins was sampled 4, 6, 8 and 10 ns after tick t began.
        self.sync.timebase += [
            word.eq(Cat(before, pair)),
            late.eq(word[3]),
        ]
        self.comb += self.samples.eq(Cat(late, word[:3]))
