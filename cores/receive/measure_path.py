# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The receive path of a port that measures streams, and keeps no frame."""

from migen import *

from litex.gen import *

from litex.soc.interconnect.csr import CSRStatus, CSRStorage

from liteprobe.cores.crossing import LevelCrossing
from liteprobe.cores.measure.tally import Tally
from liteprobe.cores.receive.arrivals import Arrivals
from liteprobe.cores.receive.report import FrameReport
from liteprobe.cores.receive.unified.parser import passing_cycles
from liteprobe.cores.timebase.line_clock import LineClockLatch

# Measure Path -------------------------------------------------------------------------------------

class MeasurePath(LiteXModule):
    """Tells the meters of a port of every frame that comes in; never stalls, and counts whatever it can't keep.

    arrivals (mac -> stamp -> parse) -> report -> meters (`PortMeter` with fields). Frames that are not a probe's go to
    management.

    Parameters
    ----------
    clock : ProbeClock
        Gives ``now`` (ns) in timebase.
    with_management : bool
        Gives good frames that carry no probe signature to ``management_source``.
    with_line_clock : bool
        Latches the clock of the line: registers ``line_*``, as of `LineClockLatch`.
    pad_ticks : int
        As of `ArrivalStamper`.

    Attributes
    ----------
    sink, management_source : as of `Arrivals`
        Rename eth_rx to the port's own domain.
    link_up : Signal(), in, asynchronous
        The PHY's; 1 unless driven.
    measured : Endpoint(measured_layout), out
        As of `FrameReport`.
    arrivals : Arrivals
        ``arrivals.passing`` is for the meter's ``fields``.
    clear, latch : Signal(), in, sys
        As the registers.
    tally : Tally
        ``tally.bus`` is the Wishbone slave of the snapshot, ``tally.layout`` says where it has each counter.

    Limits: as of `Arrivals`.
    """
    def __init__(self, clock, with_management=False, with_line_clock=False, with_csr=True, pad_ticks=0):
        self.link_up  = Signal(reset=1)
        self.clear    = Signal()
        self.latch    = Signal()

        # # #

        self.arrivals = arrivals = Arrivals(clock, with_headers=False, wait=passing_cycles, with_management=with_management,
            pad_ticks=pad_ticks, with_fields=True)
        self.sink, self.management_source = arrivals.sink, arrivals.management_source
        self.report   = FrameReport(arrivals, with_fields=True)
        self.measured = self.report.measured
        self.tally    = tally = Tally(arrivals.events)
        self.comb += [
            arrivals.for_management.eq(~arrivals.parser.walk.has_probe),
            tally.clear.eq(self.clear),
            tally.latch.eq(self.latch),
        ]
        if with_csr:
            self.add_csr()
        if with_line_clock:
            self.line = LineClockLatch(arrivals.stamper.waiting)

    def add_csr(self):
        """Add the registers of the contract ("Registers of a generator", ``port<n>_rx``)."""
        self._clear   = CSRStorage(1, name="clear", description="Write: clear the counters.")
        self._latch   = CSRStorage(1, name="latch", description="Write: snapshot of all counters.")
        self._link_up = CSRStatus(1, name="link_up")

        # # #

        self.link_crossing = LevelCrossing("sys")
        self.comb += [
            self.clear.eq(self._clear.re),
            self.latch.eq(self._latch.re),
            self.link_crossing.i.eq(self.link_up),
            self._link_up.status.eq(self.link_crossing.o),
        ]
