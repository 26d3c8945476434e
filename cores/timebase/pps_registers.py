# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Gives the PPS input and output their registers."""

from migen import *

from litex.gen import *

from litex.soc.interconnect.csr import *
from litex.soc.interconnect.csr_eventmanager import EventManager, EventSourcePulse

from liteprobe.cores.crossing import EventCrossing, HeldCrossing, LevelCrossing, PulseCrossing, StillCrossing
from liteprobe.cores.bus import WriteOnlyCSR
from liteprobe.cores.timebase.pps import PpsInput, edge_numbers
from liteprobe.cores.timebase.pps_out import PpsOutput
from liteprobe.cores.timebase.word_window import WordStatus, WordWindow

PERIOD_NS = 1_000_000_000
MIN_WIDTH = 16 # Ticks: longer than what a bad line makes of an edge.
OUT_WIDTH = 1_250_000 # Ticks: 10 ms.

class Pps(LiteXModule):
    """Input and output of a pulse per second (or per another period), with registers in ``sys``.

    Parameters
    ----------
    clock : TimebaseClock
    samples : int
        Samples of the input a tick: 1, 2 or 4.

    Attributes
    ----------
    samples : Signal(samples), in, ``timebase``
        Of the input, as `PulseDetector` takes them.
    pin_out : Signal(), out, ``timebase``
    """
    def __init__(self, clock, samples=1):
        self.samples = Signal(samples)
        self.pin_out = Signal()

        # # #

        self.input  = PpsInput(clock, samples)
        self.output = PpsOutput()
        self.comb += [
            self.input.samples.eq(self.samples),
            self.output.now.eq(clock.now),
            self.pin_out.eq(self.output.pin),
        ]
        self.add_csr()

    # Registers ------------------------------------------------------------------------------------

    def add_csr(self):
        """Add the registers of the contract ("Registers", ``pps``)."""
        self._control   = CSRStorage(2, name="control",
            description="Bit 0: enable; bit 1: a pulse is low. Write it after the three that follow.")
        self._period    = WriteOnlyCSR(32, name="period", reset=PERIOD_NS, description="Nominal period (ns, whole ticks).")
        self._min_width = WriteOnlyCSR(16, name="min_width", reset=MIN_WIDTH, description="Ticks; a shorter pulse is a glitch.")
        self._window    = WriteOnlyCSR(32, name="window",
            description="ns; an edge further from a whole number of periods is spurious; 0: none is.")
        self._latch     = CSRStorage(1, name="latch", description="Write: take the last edge, count to flags.")
        self._count     = WordStatus(32, name="count",     description="Edges accepted since reset.")
        self._now       = WordStatus(64, name="now",       description="Time of the last edge (ns).")
        self._now_fraction = WordStatus(32, name="now_fraction", description="2^-32 ns.")
        self._ticks     = WordStatus(64, name="ticks",     description="The tick counter at the last edge.")
        self._width     = WordStatus(32, name="width",     description="Ticks that its pulse has lasted so far.")
        self._flags     = WordStatus(8,  name="flags",
            description="Bit 0: the last edge was spurious; bits 5..4: how many samples before the end of its tick it came.")
        self._samples   = CSRStatus(3, name="samples", reset=len(self.samples),
            description="Samples of the input a tick, at even distances: 1, 2 or 4.")
        self._glitches  = CSRStatus(16, name="glitches", description="Pulses shorter than min_width, or too soon; live, wraps.")
        self._missing   = CSRStatus(16, name="missing", description="Periods without an edge; live, wraps.")
        self._spurious  = CSRStatus(16, name="spurious", description="Edges outside the window; live, wraps.")
        self._present   = CSRStatus(1, name="present", description="An edge within the last 1.5 periods; live.")
        self._clear     = CSRStorage(1, name="clear", description="Write: clear glitches, missing, spurious, out_late.")
        self._out_next   = WriteOnlyCSR(64, name="out_next", description="Time of the next rising edge (ns).")
        self._out_period = WriteOnlyCSR(32, name="out_period", reset=PERIOD_NS, description="ns; 0: no more edges.")
        self._out_width  = WriteOnlyCSR(32, name="out_width", reset=OUT_WIDTH, description="Ticks that the output stays high.")
        self._out_arm    = CSRStorage(1, name="out_arm", description="Write: take the three registers above.")
        self._out_late   = CSRStatus(16, name="out_late", description="Edges left out, their time had passed; live, wraps.")
        self.ev      = EventManager()
        self.ev.edge = EventSourcePulse(description="An edge was accepted.")
        self.ev.finalize()

        # # #

        self.add_settings()
        self.add_last_edge()
        self.add_counters()

    def add_settings(self):
        """Bring what is written to ``timebase``.

        Settings of the input stand still but for the tick of a write: then an edge in progress may be missed, no more.
        """
        source, sink = self.input, self.output
        running = Cat(self._out_period.storage, self._out_width.storage)
        self.arm  = arm  = StillCrossing(len(self._out_next.storage), "sys", "timebase")
        self.held = held = HeldCrossing(len(running), "sys", "timebase") # An output that runs needs them until it is armed again.
        self.comb += [
            Cat(source.enable, source.invert).eq(self._control.storage),
            source.period.eq(self._period.storage),
            source.min_width.eq(self._min_width.storage),
            source.window.eq(self._window.storage),
            arm.take.eq(self._out_arm.re),
            held.take.eq(self._out_arm.re),
            arm.i.eq(self._out_next.storage),
            held.i.eq(running),
            sink.arm.eq(arm.taken),
            sink.first.eq(arm.o),
            Cat(sink.period, sink.width).eq(held.o),
        ]

    def add_last_edge(self):
        """Let ``sys`` read the last edge."""
        source = self.input
        self.latch  = latch  = PulseCrossing("sys", "timebase")
        self.window = window = WordWindow([(register, edge_numbers(name)) for register, name in [
            (self._count,        "count"),
            (self._now,          "now"),
            (self._now_fraction, "fraction"),
            (self._ticks,        "ticks"),
            (self._width,        "width"),
            (self._flags,        "flags"),
        ]])
        self.comb += [
            latch.i.eq(self._latch.re),
            # Still again five cycles of ``sys`` after the write, before a bus can ask; eight while an edge is stored.
            source.take.eq(latch.o),
            source.number.eq(window.number),
            window.value.eq(source.word),
        ]

    def add_counters(self):
        """Count events in ``sys``, where they can be read at any time."""
        source = self.input
        self.present = present = LevelCrossing("sys")
        self.glitch  = glitch  = EventCrossing("timebase", "sys") # They may follow each other closely.
        edge, missing, spurious, late = crossings = [PulseCrossing("timebase", "sys") for _ in range(4)]
        self.submodules += crossings
        self.comb += [
            present.i.eq(source.is_present),
            self._present.status.eq(present.o),
            edge.i.eq(source.accepted),
            self.ev.edge.trigger.eq(edge.o),
            glitch.event.eq(source.glitch),
            missing.i.eq(source.missed),
            spurious.i.eq(source.spurious),
            late.i.eq(self.output.late),
        ]
        for register, step in [
            (self._glitches, glitch.count),
            (self._missing,  missing.o),
            (self._spurious, spurious.o),
            (self._out_late, late.o),
        ]:
            self.sync += [
                register.status.eq(register.status + step),
                If(self._clear.re, register.status.eq(0)),
            ]
