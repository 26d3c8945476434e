# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Schedules the frames of a program of trains."""

from enum import IntEnum

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.assign import copied
from liteprobe.cores.formats import OVERHEAD, SEQUENCE_OFFSET, STAMP_OCTETS, STAMP_OFFSET
from liteprobe.cores.transmit.frames import LENGTH_BITS, descriptor_description

WORD_BITS = 32
# Of a program, in the memory that holds them.
NUMBERS = ["count", "repeats", "interval_ticks", "interval_fraction", "gap_ticks"]

class TrainState(IntEnum):
    """Places what is counted in its memory."""

    FRAMES   = 0 # Of this train, those before this one left out.
    TRAINS   = 1
    FRACTION = 2 # Of the due tick, 2^-32 ticks.
    DUE_LOW  = 3
    DUE_HIGH = 4
    SEQUENCE = 5
    NONE     = 6 # 0: nobody writes it.

class Addend(IntEnum):
    """Says what a step adds."""

    NONE   = 0
    NUMBER = 1
    SLOT   = 2 # Of a frame, on the line.
    LESS   = 3 # -1.

class TrainStep(IntEnum):
    """Numbers the steps, in their order."""

    COUNT         = 0
    REPEATS       = 1
    IDLE          = 2
    INTERVAL      = 3
    PART          = 4
    NO_PART       = 5
    NO_LOW        = 6
    NO_HIGH       = 7
    NO_SEQUENCE   = 8
    FRAME         = 9 # From here again for each frame.
    TRAIN         = 10
    AGAIN         = 11
    ADD_PART      = 12
    HOLD          = 13
    ADD_LOW       = 14
    ADD_HIGH      = 15
    SHOW          = 16
    NEXT          = 17
    GAP_LOW       = 18
    GAP_HIGH      = 19

class TrainSchedule(LiteXModule):
    """Emits one descriptor a frame: ``count`` frames in each of ``repeats`` trains; in ``sys``.

    The first frame is due in tick 0. The interval has a fraction of 2^-32 ticks, which is carried from frame to frame: no
    rounding error adds up.

    Numbers of 32 bits are read one a cycle, and what it counts lies in a LUT RAM, to which one adder adds a word a cycle. So the
    next descriptor is there four cycles after one was taken, and there are 11 cycles from one to the next at least.

    Attributes
    ----------
    source : Endpoint(descriptor_description()), out
        ``sequence`` counts from 0 over the whole program; ``final`` marks the last frame of all.
    address, number : Signal(3), Signal(32), out and in
        Reads a number of the program, by its place in ``NUMBERS``, in the same cycle; all must stand still from ``check`` on
        while active. ``count`` and ``repeats`` are from 1. ``interval_ticks`` are whole ticks from start to start; with a
        fraction of 0, too, 0 is back to back. ``interval_fraction`` are 2^-32 ticks. ``gap_ticks`` come after the slot of the
        last frame of a train.
    length : Signal(14), in
        Octets of a frame, without FCS. It must stand still while active, as all that follow.
    payload_offset : Signal(8), in
        Start of the UDP payload; ``payload_offset + 6`` must be a multiple of 4.
    fill : Signal(2), in
        ``formats.Fill``.
    checksum_enable, checksum_seed : Signal(), Signal(16), in
    check : Signal(), in
        One cycle: takes count and repeats of a program; ignored while active.
    checked, is_good : Signal(), Signal(), out
        One cycle, three later: whether neither is 0.
    start : Signal(), in
        Begins the program that was checked; ignored while active.
    stop : Signal(), in
        While high, the next descriptor is ``empty`` and ``final``: the program ends early.
    is_active : Signal(), out
    memory : Memory(32, 16)
        What it counts, by `TrainState`.
    """
    def __init__(self):
        self.source            = stream.Endpoint(descriptor_description())
        self.address           = Signal(max=len(NUMBERS))
        self.number            = Signal(WORD_BITS)
        self.length            = Signal(LENGTH_BITS)
        self.payload_offset    = Signal(8)
        self.fill              = Signal(2)
        self.checksum_enable   = Signal()
        self.checksum_seed     = Signal(16)
        self.check             = Signal()
        self.checked           = Signal()
        self.is_good           = Signal()
        self.start             = Signal()
        self.stop              = Signal()
        self.is_active         = Signal()

        # # #

        # One step.
        # ---------
        # state[target] becomes state[read] plus an addend and a carry.
        self.read     = Signal(max=len(TrainState))
        self.target   = Signal(max=len(TrainState))
        self.addend   = Signal(max=len(Addend))
        self.carry_in = Signal()
        self.writes   = Signal()
        self.total    = Signal(WORD_BITS)
        self.is_zero  = Signal() # The total.
        self.carry    = Signal() # Of the step before.
        self.step     = Signal(max=len(TrainStep), reset=int(TrainStep.IDLE))
        self.add_state()

        # Steps of a program.
        # -------------------
        self.train_last = Signal()
        self.is_last    = Signal() # The last frame of all.
        self.is_slot    = Signal() # Back to back.
        self.is_over    = Signal()
        self.is_first   = Signal() # The descriptor that comes next.
        self.add_steps()
        self.add_descriptor()
        self.add_settings()

    def add_state(self):
        """Add a word a cycle to what is counted."""
        self.memory = memory = Memory(WORD_BITS, 16, init=[0]*16, name="train")
        reader = memory.get_port(async_read=True)
        writer = memory.get_port(write_capable=True, mode=READ_FIRST)
        self.specials += memory, reader, writer
        slot   = Signal(LENGTH_BITS + 1)
        addend = Signal(WORD_BITS)
        total  = Signal(WORD_BITS + 2)
        self.comb += [
            slot.eq(self.length + OVERHEAD),
            Case(self.addend, {
                int(Addend.NUMBER) : addend.eq(self.number),
                int(Addend.SLOT)   : addend.eq(slot),
                int(Addend.LESS)   : addend.eq(2**WORD_BITS - 1),
                "default"          : addend.eq(0),
            }),
            # One adder: the carry comes in through an extra lowest bit.
            total.eq(Cat(Constant(1, 1), reader.dat_r) + Cat(self.carry_in, addend)),
            self.total.eq(total[1:]),
            self.is_zero.eq(self.total == 0),
            reader.adr.eq(self.read),
            writer.adr.eq(self.target),
            writer.dat_w.eq(self.total),
            writer.we.eq(self.writes),
        ]
        self.sync += If(self.step != int(TrainStep.HOLD), self.carry.eq(total[-1]))

    def do(self, number, target, read=None, addend=None, carry=0, more=()):
        """Return a step: state[target] becomes state[read], 0 without, plus the addend and the carry, then ``more`` holds."""
        return {int(number): [
            self.target.eq(int(target)),
            self.read.eq(int(TrainState.NONE if read is None else read)),
            *([] if addend is None else [
                self.addend.eq(int(addend if isinstance(addend, Addend) else Addend.NUMBER)),
                *([] if isinstance(addend, Addend) else [self.address.eq(NUMBERS.index(addend))])]),
            self.carry_in.eq(carry),
            self.writes.eq(1),
            *more,
        ]}

    def add_steps(self):
        """Check a program, begin it, and after each descriptor work out the next one."""
        interval  = [If(self.is_slot, self.addend.eq(int(Addend.SLOT))), If(self.is_first, self.addend.eq(int(Addend.NONE)))]
        not_first = [If(self.is_first, self.addend.eq(int(Addend.NONE)))]
        of_train  = [If(~self.train_last, self.writes.eq(0))]
        steps = {}
        for one in [
            self.do(TrainStep.COUNT,       TrainState.FRAMES,   addend="count"),
            self.do(TrainStep.REPEATS,     TrainState.TRAINS,   addend="repeats"),
            # The words are cleared by the next steps; only whether they are 0 counts.
            self.do(TrainStep.INTERVAL,    TrainState.DUE_LOW,  addend="interval_ticks"),
            self.do(TrainStep.PART,        TrainState.FRACTION, addend="interval_fraction"),
            self.do(TrainStep.NO_PART,     TrainState.FRACTION),
            self.do(TrainStep.NO_LOW,      TrainState.DUE_LOW),
            self.do(TrainStep.NO_HIGH,     TrainState.DUE_HIGH),
            self.do(TrainStep.NO_SEQUENCE, TrainState.SEQUENCE),
            # Is the next one the last of its train, and of all?
            self.do(TrainStep.FRAME,       TrainState.FRAMES,   TrainState.FRAMES, Addend.LESS),
            self.do(TrainStep.TRAIN,       TrainState.TRAINS,   TrainState.TRAINS, Addend.LESS, more=of_train),
            self.do(TrainStep.AGAIN,       TrainState.FRAMES,   addend="count", more=of_train),
            self.do(TrainStep.ADD_PART,    TrainState.FRACTION, TrainState.FRACTION, "interval_fraction", more=not_first),
            # Once the one before is taken, for a source may say only then how long it was.
            self.do(TrainStep.ADD_LOW,     TrainState.DUE_LOW,  TrainState.DUE_LOW, "interval_ticks", self.carry, more=interval),
            self.do(TrainStep.ADD_HIGH,    TrainState.DUE_HIGH, TrainState.DUE_HIGH, carry=self.carry),
            self.do(TrainStep.SHOW,        TrainState.SEQUENCE, TrainState.SEQUENCE),
            self.do(TrainStep.NEXT,        TrainState.SEQUENCE, TrainState.SEQUENCE, carry=1),
            self.do(TrainStep.GAP_LOW,     TrainState.DUE_LOW,  TrainState.DUE_LOW, "gap_ticks", more=of_train),
            self.do(TrainStep.GAP_HIGH,    TrainState.DUE_HIGH, TrainState.DUE_HIGH, carry=self.carry & self.train_last),
        ]:
            steps |= one
        self.comb += Case(self.step, {**steps, "default": []})

        # A step a cycle, but where it waits.
        # -----------------------------------
        step  = self.step
        waits = Signal()
        is_held = (step == int(TrainStep.HOLD)) & self.source.valid & ~self.source.ready
        self.comb += waits.eq((step == int(TrainStep.IDLE)) | is_held)
        self.sync += [
            If(~waits, step.eq(step + 1)),
            If(step == int(TrainStep.GAP_HIGH), step.eq(int(TrainStep.FRAME))),
            If(~self.is_active & self.check, step.eq(int(TrainStep.COUNT))),
            If(~self.is_active & self.start, step.eq(int(TrainStep.INTERVAL))),
            If(self.is_over, step.eq(int(TrainStep.IDLE))),
            self.checked.eq(step == int(TrainStep.REPEATS)),
            If(step == int(TrainStep.COUNT),   self.is_good.eq(~self.is_zero)),
            If(step == int(TrainStep.REPEATS), self.is_good.eq(self.is_good & ~self.is_zero)),
            # Both parts of the interval are 0.
            If(step == int(TrainStep.INTERVAL), self.is_slot.eq(self.is_zero)),
            If(step == int(TrainStep.PART),     self.is_slot.eq(self.is_slot & self.is_zero)),
            If(step == int(TrainStep.FRAME),    self.train_last.eq(self.is_zero)),
            If(step == int(TrainStep.TRAIN),    self.is_last.eq(self.train_last & self.is_zero)),
        ]

    def add_descriptor(self):
        """Show a descriptor until it is taken."""
        source   = self.source
        due      = Signal(2*WORD_BITS, reset_less=True)
        sequence = Signal(WORD_BITS,   reset_less=True)
        is_final = Signal(reset_less=True)
        is_empty = Signal(reset_less=True)
        shows    = Signal()
        self.comb += [
            self.is_over.eq(source.valid & source.ready & source.final),
            shows.eq(self.step == int(TrainStep.SHOW)),
            source.first.eq(1),
            source.last.eq(1),
            source.sequence.eq(sequence),
            source.length.eq(self.length),
            source.due.eq(due),
            source.final.eq(is_empty | is_final),
            source.empty.eq(is_empty),
        ]
        self.sync += [
            If(self.step == int(TrainStep.ADD_LOW),  due[:WORD_BITS].eq(self.total)),
            If(self.step == int(TrainStep.ADD_HIGH), due[WORD_BITS:].eq(self.total)),
            If(shows,
                sequence.eq(self.total),
                is_final.eq(self.is_last),
                # Sampled between descriptors only: one that waits must not change.
                is_empty.eq(self.stop),
            ),
            If(shows, source.valid.eq(1)).Elif(source.ready, source.valid.eq(0)),
            If(shows, self.is_first.eq(0)).Elif(self.start, self.is_first.eq(1)),
            If(self.start, self.is_active.eq(1)),
            If(self.is_over, self.is_active.eq(0)),
        ]

    def add_settings(self):
        """Say what stands in each frame: the same in all, a probe's header with its stamp."""
        source = self.source
        self.comb += [
            source.stream.eq(0),
            source.header_words.eq((self.payload_offset + SEQUENCE_OFFSET)[2:]),
            source.with_probe.eq(1),
            *copied(source, self, "fill", "payload_offset", "checksum_enable", "checksum_seed"),
            source.stamp_enable.eq(1),
            source.stamp_offset.eq(self.payload_offset + STAMP_OFFSET),
            source.stamp_octets.eq(STAMP_OCTETS - 1),
            source.stamp_shift.eq(0),
            source.stamp_nibble.eq(0),
            source.stamp_mend.eq(0),
        ]
