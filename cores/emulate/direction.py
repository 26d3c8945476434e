# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The emulation of a direction, without the octets of its frames."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.emulate.counts import ClassCounts
from liteprobe.cores.emulate.engine import QueueEngine
from liteprobe.cores.emulate.fates import FateDrawer
from liteprobe.cores.emulate.generators import ClassGenerators
from liteprobe.cores.emulate.ghosts import BackgroundTraffic
from liteprobe.cores.emulate.lanes import DelayLanes
from liteprobe.cores.emulate.layouts import (
    TICKS_BITS, arrival_layout, counted_layout, departure_layout, fate_layout, late_layout, sent_layout,
)
from liteprobe.cores.emulate.settings import BankSwitch, SettingsMemory
from liteprobe.cores.formats.emulate import DUE_BITS, NOW_BITS

QUEUE = 16 # Frames that wait for their draws; what is longer than the shortest takes its time to come.

# Emulation ----------------------------------------------------------------------------------------

class Emulation(LiteXModule):
    """Says what becomes of each frame of a direction, and when it leaves.

    fates -> engine (with ghosts) -> lanes; settings before, counts behind.

    Parameters
    ----------
    waiting, entries : int
        Frames and ghosts that can wait for service; frames that can wait for service or their departure; powers of two.
    arrival_ticks : int
        After so many ticks every frame, counted from its SFD, has come to ``arrivals``.
    lead_ticks : int
        As ``lead`` of `DelayLanes`.
    with_trace : bool
        As of `QueueEngine`.

    Attributes
    ----------
    start : Signal(), in
        Pulse: begin anew with the settings of bank 0. Before ``now`` counts, by 1000 cycles.
    now : Signal(48), in
        Ticks since the start, some ticks old; 0 before.
    arrivals : Endpoint(arrival_layout), in
    opportunities : Endpoint([("ticks", 32), ("octets", 32)]), in
    verdicts : Endpoint(verdict_layout), out
    departures : Endpoint(departure_layout), out
    late : Endpoint(late_layout), in
    rings : Endpoint(ring_layout), out
    freed, freed_lane, freed_words : in
        As of `QueueEngine`.
    switch : BankSwitch
        ``tick``, ``ask``, ``is_pending``, ``banks``.
    settings_bus, counts_bus : wishbone.Interface, slave
        Of SettingsMemory.words_count and ClassCounts.words words.
    """
    def __init__(self, waiting=512, entries=1024, arrival_ticks=2048, lead_ticks=1024, with_trace=True):
        self.start      = Signal()
        self.now        = Signal(NOW_BITS)
        self.arrivals   = stream.Endpoint(arrival_layout)
        self.departures = stream.Endpoint(departure_layout)
        self.late       = stream.Endpoint(late_layout)

        # # #

        def anew(module):
            module = ResetInserter()(module)
            self.comb += module.reset.eq(self.start)
            return module
        safe = Signal(TICKS_BITS)
        self.settings = settings = SettingsMemory()
        self.switch   = switch   = BankSwitch()
        self.generators = generators = ClassGenerators()
        self.fates    = fates    = anew(FateDrawer(settings, switch, generators))
        self.ghosts   = ghosts   = anew(BackgroundTraffic(settings, switch, generators))
        self.engine   = engine   = anew(QueueEngine(settings, switch, waiting, entries, with_trace))
        self.lanes    = lanes    = anew(DelayLanes(entries, lead_ticks))
        self.counts   = counts   = anew(ClassCounts())
        self.settings_bus, self.counts_bus = settings.bus, counts.bus
        self.opportunities, self.verdicts, self.rings = engine.opportunities, engine.verdicts, engine.rings
        self.freed, self.freed_lane, self.freed_words = engine.freed, engine.freed_lane, engine.freed_words
        self.queue    = queue    = anew(stream.SyncFIFO(arrival_layout, QUEUE))
        # The next frame draws while the engine is at this one.
        self.drawn    = drawn    = anew(stream.Buffer(fate_layout))
        # Neither the engine nor the lanes wait for the counters.
        self.counted  = counted  = anew(stream.SyncFIFO(counted_layout, 4))
        self.sent     = sent     = anew(stream.SyncFIFO(sent_layout, 4))
        # A frame that is in the queue still holds time up; the queue shows the next one at once.
        is_early = Signal()
        self.sync += [
            is_early.eq(self.now < arrival_ticks),
            If(queue.source.valid,
                safe.eq(queue.source.time),
            ).Else(
                safe.eq(Mux(is_early, 0, self.now - arrival_ticks)),
            ),
        ]
        self.comb += [
            switch.start.eq(self.start),
            switch.now.eq(self.now),
            self.arrivals.connect(queue.sink),
            queue.source.connect(fates.sink),
            fates.safe.eq(safe),
            ghosts.safe.eq(safe),
            engine.safe.eq(safe),
            fates.source.connect(drawn.sink),
            drawn.source.connect(engine.arrivals),
            engine.ghost_valid.eq(ghosts.valid),
            ghosts.ready.eq(engine.ghost_ready),
            engine.ghost_known.eq(ghosts.is_known),
            engine.ghost.eq(ghosts.ghost),
            engine.served.connect(lanes.sink),
            engine.left.eq(lanes.left),
            engine.counted.connect(counted.sink),
            counted.source.connect(counts.counted),
            lanes.now.eq(self.now[:DUE_BITS]),
            lanes.sent.connect(sent.sink),
            sent.source.connect(counts.sent),
            self.late.connect(counts.late),
            lanes.source.connect(self.departures),
        ]
