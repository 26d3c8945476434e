# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Emulates a direction: it decides what becomes of each frame and when, and joins octets and registers from port to port."""

from typing import NamedTuple

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream
from litex.soc.interconnect.csr import CSRStatus, CSRStorage

from liteprobe.cores.assign import copied
from liteprobe.cores.bus import WriteOnlyCSR
from liteprobe.cores.crossing import StillCrossing
from liteprobe.cores.emulate.background import BackgroundTraffic
from liteprobe.cores.emulate.counts import DirectionCounts
from liteprobe.cores.emulate.engine import QueueEngine
from liteprobe.cores.emulate.impairments import ClassGenerators, ImpairmentSampler
from liteprobe.cores.emulate.lanes import DelayLanes
from liteprobe.cores.emulate.layouts import (
    LENGTH_BITS, TICKS_BITS, arrival_layout, counted_layout, departure_layout, impairment_layout, late_layout, sent_layout,
)
from liteprobe.cores.emulate.memories import SpillStore
from liteprobe.cores.emulate.settings import BankSwitch, SettingsMemory
from liteprobe.cores.emulate.store import FrameMover
from liteprobe.cores.formats import TransmitState
from liteprobe.cores.formats.emulate import DUE_BITS, NOW_BITS, Feature

POOL  = 512 # Entries of each of two lists in block RAM, where the others are in a memory.
QUEUE = 16 # Frames that wait for their draws; what is longer than the shortest takes its time to come.

COUNTS = {
    "damaged":    "Frames with a wrong FCS, runts, giants and frames longer than longest: dropped. Wraps.",
    "overflows":  "Good frames that found no place where they come in. Wraps.",
    "management": "Frames for the probe itself, which don't go through the network. Wraps.",
    "reserved":   "Frames that no bridge forwards (IEEE 802.1D), PAUSE among them: dropped. Wraps.",
}

class DirectionSizes(NamedTuple):
    """Sizes of a direction.

    Attributes
    ----------
    waiting, entries : frames and background frames that can wait for service; frames that can wait or be under way
    longest, rules : as of `ForwardPath`
    without : as of `QueueEngine`, but for ``trace``
    arrival_ticks : from an SFD until the frame is known, where it is the longest
    lead_ticks : from what is known of a departure to its SFD
    engine_ticks : what the engine takes at most, for what it does in its load's limit
    move_ticks : what the longest frame takes more until it is in the store
    """
    waiting:       int
    entries:       int
    longest:       int
    rules:         int
    without:       tuple[str, ...]
    arrival_ticks: int
    lead_ticks:    int
    engine_ticks:  int
    move_ticks:    int

# Direction Control --------------------------------------------------------------------------------

class DirectionControl(LiteXModule):
    """Decides what becomes of each frame of a direction, and when it leaves, without its octets.

    Sampler of impairments -> engine (with background) -> lanes; settings before, counts after.

    Parameters
    ----------
    waiting, entries : int
        Frames and background frames that can wait for service; frames that can wait for service or their departure; powers of two.
        With a memory for more, those of them that are in block RAM.
    arrival_ticks : int
        After so many ticks every frame, counted from its SFD, has come to ``arrivals``.
    lead_ticks : int
        As ``lead`` of `DelayLanes`.
    without : tuple of str
        As of `QueueEngine`.
    longest : int
        As of `DelayLanes`.
    memory : (BurstPort, int, int) or None
        For more of them, as ``port``, ``address`` and ``words`` of `SpillStore`.

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
        Of SettingsMemory.words_count and DirectionCounts.words words.
    """
    def __init__(self, waiting=512, entries=1024, arrival_ticks=2048, lead_ticks=1024, without=(), memory=None,
        longest=2**LENGTH_BITS - 1):
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
        self.sampler  = sampler  = anew(ImpairmentSampler(settings, switch, generators))
        self.background = background = anew(BackgroundTraffic(settings, switch, generators))
        self.engine   = engine   = anew(QueueEngine(settings, switch, waiting, entries, without, memory is not None))
        self.lanes    = lanes    = anew(DelayLanes(entries, lead_ticks, memory is not None, longest))
        self.counts   = counts   = anew(DirectionCounts())
        self.settings_bus, self.counts_bus = settings.bus, counts.bus
        self.opportunities, self.verdicts, self.rings = engine.opportunities, engine.verdicts, engine.rings
        self.freed, self.freed_lane, self.freed_words = engine.freed, engine.freed_lane, engine.freed_words
        self.queue    = queue    = anew(stream.SyncFIFO(arrival_layout, QUEUE))
        # The next frame draws while the engine is at this one.
        self.drawn    = drawn    = anew(stream.Buffer(impairment_layout))
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
            *copied(switch, self, "start", "now"),
            self.arrivals.connect(queue.sink),
            queue.source.connect(sampler.sink),
            sampler.safe.eq(safe),
            background.safe.eq(safe),
            engine.safe.eq(safe),
            sampler.source.connect(drawn.sink),
            drawn.source.connect(engine.arrivals),
            engine.background_valid.eq(background.valid),
            background.ready.eq(engine.background_ready),
            engine.background_known.eq(background.is_known),
            engine.background.eq(background.frame),
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
        if memory is not None:
            self.spill = spill = anew(SpillStore(*memory))
            self.comb += [
                spill.start.eq(self.start),
                engine.rings.connect(spill.rings, omit={"ready"}),
            ]
            for lists, over, back, wants in zip((engine.waiting, lanes.lists), spill.overs, spill.backs, spill.wants):
                self.comb += [lists.over.connect(over), back.connect(lists.back), wants.eq(lists.wants)]

# Origin -------------------------------------------------------------------------------------------

class Origin(LiteXModule):
    """Knows the tick at which the time of a program is 0.

    Attributes
    ----------
    ticks : Signal(64), in, ``timebase``
        Of the `TimebaseClock`.
    strobe : Signal(), in, ``timebase``
        The program starts.
    origin : Signal(48), out, ``sys``
        Still from some cycles after a start to the next one.

    Parameters
    ----------
    lead : int
        Ticks from ``strobe`` to tick 0, as the stamp of an SFD counts them.
    """
    def __init__(self, lead):
        self.ticks  = Signal(64)
        self.strobe = Signal()
        self.origin = Signal(NOW_BITS)

        # # #

        origin = Signal(NOW_BITS, reset_less=True)
        begun  = Signal()
        self.crossing = crossing = StillCrossing(NOW_BITS, "timebase", "sys")
        self.sync.timebase += [
            begun.eq(self.strobe),
            If(self.strobe, origin.eq(self.ticks[:NOW_BITS] + lead)),
        ]
        self.comb += [
            crossing.i.eq(origin),
            crossing.take.eq(begun),
        ]
        self.sync += If(crossing.taken, self.origin.eq(crossing.o))

# Emulated Direction -------------------------------------------------------------------------------

class EmulatedDirection(LiteXModule):
    """Emulates a network between the receive path of a port and the transmit path of another; in ``sys``.

    Parameters
    ----------
    receive : ForwardPath
    transmit : ForwardTransmit
        Whose ``forward`` is a `ForwardSource`.
    store : RingStore
    limits : DirectionSizes
    trace : TraceReader or None
        Of opportunities, where links can have them.
    memory : as of `DirectionControl`
        With one, POOL of what waits and of what is under way are in block RAM.

    Attributes
    ----------
    emulation : DirectionControl
        ``settings_bus``, ``counts_bus``.
    origin : Signal(48), in
        As of `Origin`.
    arm : Signal(), in
        Pulse: a forwarding program is to start; ignored unless the transmit path is idle.
    rule_words, forward_reserved : Signal(32), Signal(), in
        As ``looks`` of `RuleMatcher`, and ``forwards_reserved`` of `ForwardPath`.
    """
    def __init__(self, receive, transmit, store, limits, trace=None, memory=None):
        self.origin = Signal(NOW_BITS)
        self.arm    = Signal()
        self.rule_words       = Signal(32)
        self.forward_reserved = Signal()

        # # #

        self.store     = store
        waiting, entries = (limits.waiting, limits.entries) if memory is None else (POOL, POOL)
        self.emulation = emulation = DirectionControl(waiting, entries, limits.arrival_ticks, limits.lead_ticks,
            (*limits.without, *["trace"]*(trace is None)), memory, limits.longest)
        self.mover     = mover     = FrameMover(store)
        self.forward   = forward   = transmit.forward
        arms      = Signal()
        is_begun  = Signal() # The time is that of this program.
        runs      = Signal()
        elapsed   = transmit.elapsed.elapsed
        self.comb += [
            arms.eq(self.arm & ~transmit.is_busy),
            transmit.forward_arm.eq(arms),
            emulation.start.eq(arms),
            mover.anew.eq(arms),
            mover.drains.eq(~runs),
            runs.eq((transmit.state == TransmitState.RUNNING) & ~transmit.is_stopped),
            emulation.now.eq(Mux(elapsed[-1] | ~runs, 0, elapsed[:NOW_BITS])),
            receive.runs.eq(runs & is_begun),
            receive.matcher.looks.eq(self.rule_words),
            receive.forwards_reserved.eq(self.forward_reserved),
            receive.origin.eq(self.origin),
            receive.source.connect(emulation.arrivals),
            receive.descriptor.connect(mover.descriptor),
            receive.data.connect(mover.data),
            receive.skip.eq(mover.skip),
            emulation.verdicts.connect(mover.verdicts),
            emulation.rings.connect(store.rings, omit={"ready"}),
            emulation.departures.connect(forward.departures),
            forward.read.connect(store.read),
            store.read_data.connect(forward.read_data),
            *copied(forward, store, "level", "is_idle"),
            mover.lane.eq(forward.lane),
            forward.position.eq(mover.position),
            *copied(emulation, forward, "freed", "freed_lane", "freed_words"),
            forward.elapsed.eq(elapsed),
            forward.is_taken.eq(transmit.announce.taken.o),
            forward.is_late.eq(transmit.counters.pulses["late"]),
            forward.is_sent.eq(transmit.counters.pulses["sent"]),
            forward.late.connect(emulation.late),
        ]
        if trace is not None:
            self.trace = trace
            self.comb += [
                trace.start.eq(arms),
                trace.source.connect(emulation.opportunities),
            ]
        # The origin is there long before tick 0: the lead is longer.
        self.sync += is_begun.eq(runs & (is_begun | ~elapsed[-1]))
        settled = limits.arrival_ticks + limits.lead_ticks + limits.engine_ticks + limits.move_ticks
        self.counts      = {name: Signal(32, name=f"{name}_count") for name in COUNTS}
        for name, pulse in (("damaged", receive.damaged), ("overflows", receive.overflows), ("management", receive.own),
            ("reserved", receive.reserved)):
            self.sync += If(pulse, self.counts[name].eq(self.counts[name] + 1))
        features = Feature.NONE if "aqm" in limits.without else ~Feature.NONE
        self.constants = {
            "least_delay": (settled, "Ticks: no frame may be delayed by less."),
            "entries":     (limits.entries, "Frames that can be in the network."),
            "waiting":     (limits.waiting, "Frames and background frames that can wait for service."),
            "store_words": (store.words, "Words for their octets."),
            "longest":     (limits.longest, "Octets of the longest frame, without FCS."),
            "rules":       (limits.rules, "Rules that name classes."),
            "features":    (int(features), "What it can beside what each can: formats.emulate.Feature."),
        }

    def add_csr(self):
        """Add the registers of the contract (docs/design/emulator.md)."""
        switch, emulation = self.emulation.switch, self.emulation
        self._arm       = CSRStorage(1, name="arm", description="Write: a forwarding program is to start; ignored unless idle.")
        self._switch_at = WriteOnlyCSR(NOW_BITS, name="switch_at", description="Tick at which the bank of settings changes.")
        self._switch    = CSRStorage(1, name="switch", description="Write: change it then, or at once; ignored while switching.")
        self._bank      = CSRStatus(2, name="bank", description="Bank that holds; bit 1: a switch is to come.")
        self._now       = CSRStatus(NOW_BITS, name="now", description="Ticks since the start, as of the last read of bank.")
        self.comb += [
            self.arm.eq(self._arm.re),
            switch.tick.eq(self._switch_at.storage),
            switch.ask.eq(self._switch.re),
            self._bank.status.eq(Cat(switch.banks["engine"], switch.is_pending)),
        ]
        self.sync += If(self._bank.we, self._now.status.eq(emulation.now))
        self._rule_words = CSRStorage(32, name="rule_words", description="Words of a header that rules look at; before arm.")
        self._forward_reserved = CSRStorage(1, name="forward_reserved",
            description="Frames that no bridge forwards (IEEE 802.1D) go through the network, too; before arm.")
        self.comb += [
            self.rule_words.eq(self._rule_words.storage),
            self.forward_reserved.eq(self._forward_reserved.storage),
        ]
        self._origin    = CSRStatus(NOW_BITS, name="origin",
            description="Tick of the probe's clock that is tick 0 of this program.")
        self.comb += self._origin.status.eq(self.origin)
        if hasattr(self, "trace"):
            self._trace_entries = WriteOnlyCSR(len(self.trace.count), name="trace_entries",
                description="Opportunities of the trace; before arm.")
            self.comb += self.trace.count.eq(self._trace_entries.storage)
        for name, (value, description) in self.constants.items():
            setattr(self, f"_{name}", CSRStatus(32, reset=value, name=name, description=description))
        for name, description in COUNTS.items():
            register = CSRStatus(32, name=name, description=description)
            setattr(self, f"_{name}", register)
            self.comb += register.status.eq(self.counts[name])
