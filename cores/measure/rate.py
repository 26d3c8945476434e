# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Counts frames and octets of equal intervals of the probe's time, of all ports at once."""

from migen import *

from litex.gen import *

from litex.soc.interconnect.csr import CSRStatus

from liteprobe.cores.crossing import StillCrossing
from liteprobe.cores.formats import RATE_INTERVAL_NS
from liteprobe.cores.bus import WriteOnlyCSR

NOW_BITS      = 64
DELTA_BITS    = 16 # Of what ``now`` advances by in three ticks; and during a division, in 200.
SETTLE_TICKS  = 16 # From an order to step the clock to when it has stepped.

# Interval Ticker ----------------------------------------------------------------------------------

class IntervalTicker(LiteXModule):
    """Finds the moments at which ``now`` is a whole multiple of an interval; all in ``timebase``.

    It keeps now modulo interval, less the interval, by adding what ``now`` advances by. Where it can't know that, at the start
    and where the clock or the interval is set, it divides.

    Attributes
    ----------
    now : Signal(64), in
        ns.
    steps : Signal(), in
        One cycle: within ten ticks ``now`` may jump.
    interval : Signal(32), in
        ns. Below 2^16 there are no ticks.
    restart : Signal(), in
        One cycle: ``interval`` is another one.
    tick : Signal(), out
        One cycle, five to seven ticks after the first one in which ``now`` has reached a multiple. A multiple that comes
        within 220 ticks of a step may have its tick when they are over; the interval after it is not whole, either.
    is_whole : Signal(), out
        The interval that ended at the last ``tick`` lasted from the multiple before, with no step in it. From ``tick`` on.
    """
    def __init__(self):
        self.now      = Signal(NOW_BITS)
        self.steps    = Signal()
        self.interval = Signal(32)
        self.restart  = Signal()
        self.tick     = Signal()
        self.is_whole = Signal()

        # # #

        # A beat takes three ticks: the sign chooses what is added; it is summed up with the advance; and added.
        beat     = Signal(3, reset=1)
        phase    = Signal((34, True)) # Now modulo interval, less the interval; of a division, its remainder.
        turn     = Signal((34, True), reset_less=True)
        less     = Signal(reset_less=True) # ``turn`` lacks one.
        total    = Signal(35)
        addend   = Signal((34, True), reset_less=True)
        delta    = Signal(DELTA_BITS) # 0 in a division.
        last     = Signal(DELTA_BITS, reset_less=True)
        dividend = Signal(NOW_BITS, reset_less=True)
        place    = Signal(max=NOW_BITS)
        divides  = Signal(reset=1)
        settle   = Signal(max=SETTLE_TICKS, reset=SETTLE_TICKS - 1)
        divided  = Signal(3) # One, two, three beats ago.
        is_on    = Signal()
        broken   = Signal(reset=1)
        negative = Signal()
        takes    = Signal()
        begins   = Signal() # Anew.
        holds    = Signal() # A tick later: many registers wait for it.
        self.comb += [
            negative.eq(phase[-1]),
            takes.eq(beat[0] & ~negative & ~divides & ~divided[0] & is_on & ~begins & ~holds),
            begins.eq(self.steps | self.restart | (settle != 0)),
            total.eq(Cat(Constant(1, 1), delta) + Cat(less, turn)),
        ]
        self.sync.timebase += [
            beat.eq(Cat(beat[-1], beat[:-1])),
            is_on.eq(self.interval[DELTA_BITS:] != 0),
            If(beat[0],
                # With a remainder below 0 a division adds, else it subtracts; so does what has reached the interval.
                turn.eq(0),
                If(~negative, turn.eq(~self.interval)).Elif(divides, turn.eq(self.interval)),
                less.eq(~negative),
                If(divides, phase.eq(Cat(dividend[-1], phase[:-1]))),
            ),
            If(beat[1], addend.eq(total[1:])),
            If(beat[2],
                phase.eq(phase + addend),
                divided.eq(Cat(divides, divided)),
                If(divides,
                    dividend.eq(dividend << 1),
                    place.eq(place - 1),
                    If(place == 0, divides.eq(0)),
                ).Else(
                    delta.eq(self.now - last),
                    last.eq(self.now),
                ),
            ),
            self.tick.eq(takes),
            If(takes,
                self.is_whole.eq(~broken),
                broken.eq(divided[2]), # The multiple came during the division: what begins now begins late.
            ),
            # Wait, then divide.
            If(self.steps | self.restart, settle.eq(SETTLE_TICKS - 1)).Elif(settle != 0, settle.eq(settle - 1)),
            holds.eq(begins),
            If(holds,
                broken.eq(1), divides.eq(1),
                phase.eq(0), place.eq(NOW_BITS - 1), delta.eq(0), beat.eq(1),
                dividend.eq(self.now), last.eq(self.now),
                self.tick.eq(0),
            ),
        ]

# Rate Meter ---------------------------------------------------------------------------------------

ended_layout = [
    ("valid",   1),
    ("length", 16), # Octets without FCS.
]

class RateMeter(LiteXModule):
    """Counts frames and octets of each interval of ``now``, of all ports in the same cycle.

    Parameters
    ----------
    clock : TimebaseClock
        Gives ``now``, and tells of its steps.
    ports : int

    Attributes
    ----------
    ended : list of Record(ended_layout), in
        A frame of each port that ended; two cycles apart, or farther.
    interval : Signal(32), in
        ns, up to 4.29 s; below 2^16 nothing is counted anew.
    restart : Signal(), in
        One cycle: ``interval`` is another one. It must stand still for six ticks of ``timebase``.
    number : Signal(32), out
        Intervals that have ended. Wraps.
    is_whole : Signal(), out
        The last one lasted from one whole multiple of ``interval`` to the next, and the clock wasn't set meanwhile.
    frames, octets : list of Signal(28), list of Signal(32), out
        Of the last interval that ended, of each port. They change with ``number``, in one cycle.

    A frame belongs to the interval in which it ended, as ``sys`` sees it: some 100 ns late.
    """
    def __init__(self, clock, ports, with_csr=True):
        self.ended    = [Record(ended_layout) for _ in range(ports)]
        self.interval = Signal(32, reset=RATE_INTERVAL_NS)
        self.restart  = Signal()
        self.number   = Signal(32)
        self.is_whole = Signal()
        self.frames   = [Signal(28, name=f"port{port}_frames") for port in range(ports)]
        self.octets   = [Signal(32, name=f"port{port}_octets") for port in range(ports)]

        # # #

        # Time.
        # -----
        self.ticker = ticker = IntervalTicker()
        self.order  = order  = StillCrossing(32, "sys", "timebase")
        self.moment = moment = StillCrossing(1, "timebase", "sys")
        interval = Signal(32, reset=RATE_INTERVAL_NS, reset_less=True)
        restart  = Signal()
        self.sync.timebase += [
            restart.eq(order.taken),
            If(order.taken, interval.eq(order.o)),
        ]
        self.comb += [
            order.i.eq(self.interval),
            order.take.eq(self.restart),
            ticker.now.eq(clock.now),
            ticker.steps.eq(clock.set | clock.adjust_apply),
            ticker.interval.eq(interval),
            ticker.restart.eq(restart),
            moment.i.eq(ticker.is_whole),
            moment.take.eq(ticker.tick),
        ]

        # Counts.
        # -------
        tick = moment.taken
        self.sync += If(tick,
            self.number.eq(self.number + 1),
            self.is_whole.eq(moment.o),
        )
        for ended, frames, octets in zip(self.ended, self.frames, self.octets):
            self.add_port(tick, ended, frames, octets)

        if with_csr:
            self.add_csr()

    def add_port(self, tick, ended, frames, octets):
        """Count from tick to tick; a frame that ends with one waits for the next cycle."""
        waiting = Signal()
        length  = Signal(16, reset_less=True)
        counts  = [(Signal(28, name="frame_count"), 1, frames), (Signal(32, name="octet_count"), length, octets)]
        self.sync += [
            waiting.eq(ended.valid | (waiting & tick)),
            If(ended.valid, length.eq(ended.length)),
        ]
        for count, addend, shown in counts:
            self.sync += If(tick,
                shown.eq(count),
                count.eq(0),
            ).Elif(waiting,
                count.eq(count + addend),
            )

    def add_csr(self):
        """Add the registers (docs/cores/measure-streams.md)."""
        self._interval = WriteOnlyCSR(32, name="interval", reset=RATE_INTERVAL_NS, description="Of the probe's time (ns).")
        self._number   = CSRStatus(32, name="number", description="Intervals that have ended; wraps.")
        self._whole    = CSRStatus(1, name="whole", description="The clock wasn't set in the last one.")

        # # #

        self.comb += [
            self.interval.eq(self._interval.storage),
            self.restart.eq(self._interval.re),
            self._number.status.eq(self.number),
            self._whole.status.eq(self.is_whole),
        ]
        for n, (frames, octets) in enumerate(zip(self.frames, self.octets)):
            for name, signal in (("frames", frames), ("octets", octets)):
                register = CSRStatus(len(signal), name=f"port{n}_{name}", description=f"Of port {n}, in the last interval.")
                setattr(self, f"_port{n}_{name}", register)
                self.comb += register.status.eq(signal)
