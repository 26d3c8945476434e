# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Crosses clock domains, the only modules that do: a level, a pulse, a handshake, a still, held or followed word, a stream."""

from migen import *
from migen.genlib.cdc import MultiReg, PulseSynchronizer

from litex.gen import *

from litex.soc.interconnect import stream, wishbone

# Asynchronous FIFO in LUT RAM, fast enough for 125 MHz on ECP5: only `StreamCrossing` is built on it.

# Gray Pointer -------------------------------------------------------------------------------------

class GrayPointer(LiteXModule):
    """Counts steps, in binary and in Gray code, whose present and next value are registers.

    Attributes
    ----------
    step : Signal(), in
    binary, gray, gray_next : Signal(width), out
    """
    def __init__(self, width):
        self.step      = Signal()
        self.binary    = Signal(width)
        self.gray      = Signal(width)
        self.gray_next = Signal(width, reset=1)

        # # #

        after_next = Signal(width)
        self.gray.attr.add("no_retiming")
        self.comb += after_next.eq(self.binary + 2)
        self.sync += If(self.step,
            self.binary.eq(self.binary + 1),
            self.gray.eq(self.gray_next),
            self.gray_next.eq(after_next ^ after_next[1:]),
        )

def differ(a, b):
    """Return whether two words of one width differ, written bit by bit."""
    return Reduce("OR", [x ^ y for x, y in zip(a, b)])

# Shallow FIFO -------------------------------------------------------------------------------------

class ShallowFIFO(LiteXModule):
    """Asynchronous FIFO in LUT RAM whose only read register is its output; domains ``write`` and ``read``.

    Migen's AsyncFIFO looks up the address after next in the same cycle as it learns of ``ready``: six levels of
    logic, too slow for 125 MHz on ECP5. Here the address is a register, and so is each verdict.

    Parameters
    ----------
    rests_write, rests_read : bool
        After each transfer into (out of) the memory that side rests for a cycle, which takes half of the logic.

    Attributes
    ----------
    sink, source : Endpoint(layout), in (write) and out (read)
    """
    def __init__(self, layout, depth, rests_write=False, rests_read=False):
        self.sink   = sink   = stream.Endpoint(layout)
        self.source = source = stream.Endpoint(layout)

        # # #

        bits       = log2_int(depth)
        entry      = Cat(*sink.payload.flatten(), *sink.param.flatten(), sink.first, sink.last)
        fields     = Cat(*source.payload.flatten(), *source.param.flatten(), source.first, source.last)
        storage    = Memory(len(entry), depth)
        write_port = storage.get_port(write_capable=True, clock_domain="write", mode=READ_FIRST)
        read_port  = storage.get_port(async_read=True, clock_domain="read")
        produce    = ClockDomainsRenamer("write")(GrayPointer(bits + 1))
        consume    = ClockDomainsRenamer("read")(GrayPointer(bits + 1))
        produced   = Signal(bits + 1) # As the reader knows it.
        consumed   = Signal(bits + 1) # As the writer knows it.
        full       = Signal(bits + 1) # Where the writer would be with the FIFO full.
        is_there   = Signal()
        stream.set_reset_less(source.payload) # Counts only with ``valid``.
        self.specials   += storage, write_port, read_port
        self.specials   += MultiReg(produce.gray, produced, "read"), MultiReg(consume.gray, consumed, "write")
        self.submodules += produce, consume
        self.comb += [
            full.eq(Cat(consumed[:-2], ~consumed[-2], ~consumed[-1])),
            produce.step.eq(sink.valid & sink.ready),
            write_port.adr.eq(produce.binary[:-1]),
            write_port.dat_w.eq(entry),
            write_port.we.eq(produce.step),
            consume.step.eq(is_there & (source.ready | ~source.valid)),
            read_port.adr.eq(consume.binary[:-1]),
        ]
        self.sync.write += self.judge(sink.ready, produce, full, rests_write)
        self.sync.read += [
            self.judge(is_there, consume, produced, rests_read),
            If(source.ready | ~source.valid,
                source.valid.eq(is_there),
                fields.eq(read_port.dat_r),
            ),
        ]

    def judge(self, verdict, pointer, limit, rests):
        """Register whether ``pointer`` is away from ``limit``, for a step and for none side by side: a step is known late."""
        if rests:
            return verdict.eq(~pointer.step & (pointer.gray != limit))
        # Bit by bit for the step, because Yosys would make one comparison after a multiplexer of two that look alike.
        return verdict.eq(Mux(pointer.step, differ(pointer.gray_next, limit), pointer.gray != limit))

# Level Crossing -----------------------------------------------------------------------------------

class LevelCrossing(LiteXModule):
    """Follows a slow single bit (link up, reset done); two to three cycles of ``cd_to`` late.

    Attributes
    ----------
    i : Signal(), in, any domain
    o : Signal(), out, cd_to
    """
    def __init__(self, cd_to, reset=0):
        self.i = Signal(reset=reset)
        self.o = Signal(reset=reset)

        # # #

        self.specials += MultiReg(self.i, self.o, cd_to, reset=reset)

# Pulse Crossing -----------------------------------------------------------------------------------

class PulseCrossing(LiteXModule):
    """Turns each one-cycle pulse into one pulse of the other domain, by a toggle.

    The pulse comes out in the fourth cycle of ``cd_to`` after the toggle, one less or one more by
    the phase of the clocks: an uncertainty of at most one tick. It is a register, fit to go far.

    Attributes
    ----------
    i : Signal(), in, cd_from
        Pulses must be three cycles of ``cd_to`` apart; closer ones are lost in pairs.
    o : Signal(), out, cd_to
    """
    def __init__(self, cd_from, cd_to):
        self.i = Signal()
        self.o = Signal()

        # # #

        self.pulse = pulse = PulseSynchronizer(cd_from, cd_to)
        sync = getattr(self.sync, cd_to)
        sync += self.o.eq(pulse.o)
        self.comb += pulse.i.eq(self.i)

# Handshake Crossing -------------------------------------------------------------------------------

class HandshakeCrossing(LiteXModule):
    """Has the other domain do one thing after another, and tells when each is done: two registers each way.

    Attributes
    ----------
    ask : Signal(), in, cd_from
        Begins; not while ``busy``.
    busy, done : Signal(), out, cd_from
        From the cycle after ``ask`` until ``done``, which is its last cycle.
    asked : Signal(), out, cd_to
        Until the cycle of ``answer``, with it.
    answer : Signal(), in, cd_to
        One cycle: it is done.

    Limits: both domains must be reset together.
    """
    def __init__(self, cd_from, cd_to):
        self.ask    = Signal()
        self.busy   = Signal()
        self.done   = Signal()
        self.asked  = Signal()
        self.answer = Signal()

        # # #

        begun      = Signal()
        begun_to   = Signal()
        ended      = Signal()
        ended_from = Signal()
        begun.attr.add("no_retiming")
        ended.attr.add("no_retiming")
        self.specials += MultiReg(begun, begun_to, cd_to), MultiReg(ended, ended_from, cd_from)
        self.comb += [
            self.done.eq(self.busy & (ended_from == begun)),
            self.asked.eq(begun_to != ended),
        ]
        sync = getattr(self.sync, cd_from)
        sync += [
            If(self.done, self.busy.eq(0)),
            If(self.ask, self.busy.eq(1), begun.eq(~begun)),
        ]
        sync = getattr(self.sync, cd_to)
        sync += If(self.answer, ended.eq(~ended))

# Still Word Crossing ------------------------------------------------------------------------------

class StillCrossing(LiteXModule):
    """Tells the other domain of a word that stands still by itself; it takes no register.

    Attributes
    ----------
    i : Signal(width), in, cd_from
        Must stand still from ``take`` until nobody looks at ``o`` any more.
    take : Signal(), in, cd_from
        The next take must come at least four cycles of both domains later.
    o : Signal(width), out, for cd_to
    taken : Signal(), out, cd_to
        One pulse for each take: ``o`` is new and still.
    """
    def __init__(self, width, cd_from, cd_to):
        self.i     = Signal(width)
        self.take  = Signal()
        self.o     = Signal(width)
        self.taken = Signal()

        # # #

        self.pulse = pulse = PulseCrossing(cd_from, cd_to)
        self.comb += [
            pulse.i.eq(self.take),
            self.o.eq(self.i),
            self.taken.eq(pulse.o),
        ]

# Held Word Crossing -------------------------------------------------------------------------------

class HeldCrossing(LiteXModule):
    """Takes a word on demand and shows it, held, to the other domain.

    Attributes
    ----------
    i : Signal(width), in, cd_from
    take : Signal(), in, cd_from
        Takes ``i``. The next take must come at least four cycles of both domains later.
    o : Signal(width), out, for cd_to
        Stands still from before ``taken`` to the next ``take``; not to be looked at in between.
    taken : Signal(), out, cd_to
        One pulse for each take: ``o`` is new and still.
    """
    def __init__(self, width, cd_from, cd_to):
        self.i     = Signal(width)
        self.take  = Signal()
        self.o     = Signal(width)
        self.taken = Signal()

        # # #

        held = Signal(width, reset_less=True)
        held.attr.add("no_retiming")
        sync = getattr(self.sync, cd_from)
        sync += If(self.take, held.eq(self.i))

        self.still = still = StillCrossing(width, cd_from, cd_to)
        self.comb += [still.i.eq(held), still.take.eq(self.take), self.o.eq(still.o), self.taken.eq(still.taken)]

# Followed Word Crossing ---------------------------------------------------------------------------

OVERDUE = 7 # Bit of a counter: after 128 cycles a handshake is begun anew, if a reset took the last one.

class WordCrossing(LiteXModule):
    """Follows a word by a handshake: every value shown was once whole on the other side.

    Attributes
    ----------
    i : Signal(width), in, cd_from
        May change at any time; values that are gone before the next handshake are skipped.
    o : Signal(width), out, cd_to
        Up to some ten cycles of both domains old.
    """
    def __init__(self, width, cd_from, cd_to):
        self.i = Signal(width)
        self.o = Signal(width)

        # # #

        # As Migen's BusSynchronizer, but for its time-out, whose comparison is too long for 125 MHz on ECP5.
        self.held   = held   = HeldCrossing(width, cd_from, cd_to)
        self.answer = answer = PulseCrossing(cd_to, cd_from)
        waited = Signal(OVERDUE + 1, reset=1 << OVERDUE)
        self.comb += [
            held.i.eq(self.i),
            held.take.eq(answer.o | waited[OVERDUE]),
            answer.i.eq(held.taken),
        ]
        sync = getattr(self.sync, cd_from)
        sync += If(held.take, waited.eq(0)).Else(waited.eq(waited + 1))
        sync = getattr(self.sync, cd_to)
        sync += If(held.taken, self.o.eq(held.o))

# Stream Crossing ----------------------------------------------------------------------------------

LUT_RAM_DEPTH = 64 # Up to here a memory is read without a clock.

class StreamCrossing(LiteXModule):
    """Carries a stream across clocks through an asynchronous FIFO with a registered output.

    Parameters
    ----------
    layout : LiteX stream description or layout
    depth : int
        Transfers held; a power of two, from 4.
    rests : str
        Name of the domain whose side takes or gives a transfer in every second cycle at most, ``timebase`` for one: it then
        closes timing more easily. Only for a depth up to LUT_RAM_DEPTH.

    Attributes
    ----------
    sink, source : Endpoint(layout), in (cd_from) and out (cd_to)
        Same transfers in the same order. No memory is seen unregistered.

    Limits: both domains must be reset together, or the FIFO's pointers part.
    """
    def __init__(self, layout, cd_from, cd_to, depth=16, rests=None):
        self.sink   = sink   = stream.Endpoint(layout)
        self.source = source = stream.Endpoint(layout)

        # # #

        assert rests in (None, cd_from, cd_to) and (rests is None or depth <= LUT_RAM_DEPTH)
        if depth <= LUT_RAM_DEPTH:
            fifo = ShallowFIFO(layout, depth, rests_write=rests == cd_from, rests_read=rests == cd_to)
        else:
            fifo = stream.AsyncFIFO(layout, depth, buffered=True)
        self.fifo = ClockDomainsRenamer({"write": cd_from, "read": cd_to})(fifo)
        self.comb += [
            sink.connect(fifo.sink),
            fifo.source.connect(source),
        ]

# Number Crossing ----------------------------------------------------------------------------------

class NumberCrossing(LiteXModule):
    """Follows a counter that steps by one, by its Gray code; two to three cycles of ``cd_to`` late.

    Attributes
    ----------
    step : Signal(), in, cd_from
        Counts one. May come in every cycle.
    o : Signal(width), out, cd_to
        The count, modulo 2^width, as it was; it may jump by several where ``cd_to`` is slower.
    """
    def __init__(self, width, cd_from, cd_to):
        self.step = Signal()
        self.o    = Signal(width)

        # # #

        count    = Signal(width)
        next_one = Signal(width)
        gray     = Signal(width)
        gray_to  = Signal(width)
        gray.attr.add("no_retiming")
        sync = getattr(self.sync, cd_from)
        sync += If(self.step, count.eq(next_one), gray.eq(next_one ^ next_one[1:]))
        self.specials += MultiReg(gray, gray_to, cd_to)
        self.comb += next_one.eq(count + 1)
        self.comb += [self.o[n].eq(Reduce("XOR", [gray_to[m] for m in range(n, width)])) for n in range(width)]

# Event Crossing -----------------------------------------------------------------------------------

class EventCrossing(LiteXModule):
    """Carries events that may come in every cycle, into a slower domain too: none is lost.

    Attributes
    ----------
    event : Signal(), in, cd_from
        One event a cycle.
    count : Signal(4), out, cd_to
        Events that arrived in this cycle; add them up.

    Limits: fewer than 16 events a cycle of ``cd_to``.
    """
    def __init__(self, cd_from, cd_to):
        self.event = Signal()
        self.count = Signal(4)

        # # #

        self.number = number = NumberCrossing(4, cd_from, cd_to)
        seen = Signal(4)
        sync = getattr(self.sync, cd_to)
        sync += [
            seen.eq(number.o),
            self.count.eq(number.o - seen),
        ]
        self.comb += number.step.eq(self.event)

# Access Crossing ----------------------------------------------------------------------------------

class AccessCrossing(LiteXModule):
    """Brings the accesses of a bus to another domain, one after the other; some five cycles of each there and back.

    Attributes
    ----------
    bus : wishbone.Interface, slave, ``sys``
        Whole words: ``sel`` is ignored.
    asked : Signal(), out, cd_to
        An access waits; until the cycle of ``answer``, with it.
    adr, we, dat_w : Signal(32), Signal(), Signal(32), out
        Of it; they stand still while ``asked``.
    answer, dat_r : Signal(), Signal(32), in, cd_to
        One cycle: it is done, and this was read.
    """
    def __init__(self, cd_to):
        self.bus    = bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.asked  = Signal()
        self.adr    = bus.adr
        self.we     = bus.we
        self.dat_w  = bus.dat_w
        self.answer = Signal()
        self.dat_r  = Signal(32)

        # # #

        self.handshake = handshake = HandshakeCrossing("sys", cd_to)
        read = Signal(32, reset_less=True)
        read.attr.add("no_retiming")
        self.comb += [
            handshake.ask.eq(bus.cyc & bus.stb & ~handshake.busy),
            self.asked.eq(handshake.asked),
            handshake.answer.eq(self.answer),
            bus.ack.eq(handshake.done),
            bus.dat_r.eq(read),
        ]
        sync  = getattr(self.sync, cd_to)
        sync += If(self.answer, read.eq(self.dat_r))
