# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Finds the eye of what a SDRAM gives, keeps the time at which it is sampled in the middle, and says how wide it is."""

from migen import *

from litex.gen import *

from litex.soc.interconnect.csr import CSRStatus

from liteprobe.cores.crossing import WordCrossing
from liteprobe.cores.formats.probe import EyeState

WORDS  = 16 # Of the pattern.
PLACES = 16 # Of a `SampleQueue`: as many ages.
TAP_PS    = 25 # Of a DELAYF, nominal: FPGA-TN-02035-1.2, 3.11.
STEP_TAPS = 4  # A position.
REACH     = 32 # Positions of all taps.
LEAST  = 9  # Positions of an eye, at least.
PROOFS = 15 # Readings in the middle, one more.
SETTLE = 20 # Cycles after a move until what is read counts.
SWITCH = 255 # Cycles after the clock has become another one.
EVERY  = 1 << 23 # Cycles from one look at the drift to the next: 67 ms at 125 MHz.

def pattern():
    """Return the words: each bit changes with most of them, alone and with all others; none is as another, or as idle pins."""
    noise, words = 0x2545f491, []
    for n in range(WORDS):
        noise = (noise*1664525 + 1013904223) & 0xffffffff
        words += [[0, 0xffffffff, 0xaaaaaaaa, 0x55555555][n & 3] ^ (1 << (2*n + n//4 & 31) if n & 4 else noise)]
    return words

# Sample Queue -------------------------------------------------------------------------------------

class SampleQueue(LiteXModule):
    """Gives the words of one edge of the clock, so many cycles old.

    Attributes
    ----------
    rising, falling : Signal(32), Signal(32), in
        What both edges of a cycle sampled, the falling one half a cycle later.
    is_falling : Signal(), in
        Which of them.
    age : Signal(4), in
        Cycles.
    word : Signal(32), out
    """
    def __init__(self):
        self.rising     = Signal(32)
        self.falling    = Signal(32)
        self.is_falling = Signal()
        self.age        = Signal(log2_int(PLACES))
        self.word       = Signal(32)

        # # #

        memory = Memory(32, PLACES)
        put    = memory.get_port(write_capable=True, mode=READ_FIRST)
        get    = memory.get_port(async_read=True)
        self.autocsr_exclude = {"memory"}
        self.specials += memory, put, get
        taken  = Signal(32, reset_less=True)
        into   = Signal.like(self.age)
        out    = Signal.like(self.age)
        self.comb += [put.adr.eq(into), put.dat_w.eq(taken), put.we.eq(1), get.adr.eq(out)]
        self.sync += [
            into.eq(into + 1),
            out.eq(into - self.age),
            taken.eq(Mux(self.is_falling, self.falling, self.rising)),
            self.word.eq(get.dat_r),
        ]

# Walker -------------------------------------------------------------------------------------------

class SampleWalker(LiteXModule):
    """Moves the time at which words are sampled, by the delay of the data pins and by the edge that samples.

    A position is a step of 4 taps, 100 ps. The delays reach over less than half a period: between two halves are positions that
    are out of reach, where it stops beside, on the nearer side.

    Parameters
    ----------
    half : int, positions of half a period, at least REACH.

    Attributes
    ----------
    target : Signal(9), in; where to go. ``go`` : Signal(), in; pulse: go.
    done : Signal(), out; pulse: it is there, or beside it.
    home : Signal(), in; pulse: count positions from 2*half on, as at the start.
    position : Signal(9), out
    is_first : Signal(), out; of its half: the one before is out of reach, or was.
    following : Signal(9), out; the next position, later, that is in reach.
    is_falling, age : Signal(), Signal(4), out; of a `SampleQueue`. ``younger`` : Signal(), in; pulse.
    load_n, move, direction : Signal(), out; of each DELAYF: a falling edge of ``move`` is a tap, one less with ``direction``.
    """
    def __init__(self, half):
        self.target     = Signal(9)
        self.go         = Signal()
        self.done       = Signal()
        self.home       = Signal()
        self.position   = Signal(9, reset=2*half)
        self.is_first   = Signal()
        self.following  = Signal(9)
        self.is_falling = Signal()
        self.age        = Signal(log2_int(PLACES))
        self.younger    = Signal()
        self.load_n     = Signal()
        self.move       = Signal()
        self.direction  = Signal()

        # # #

        jump  = half - REACH + 1
        later = Signal(max=REACH) # Position within the half.
        up, down, is_far = Signal(), Signal(), Signal()
        taps  = Signal(8)
        wait  = Signal(8)
        self.comb += [
            self.is_first.eq(later == 0),
            self.following.eq(self.position + Mux(later == REACH - 1, jump, 1)),
        ]
        self.sync += [
            self.load_n.eq(1),
            If(wait != 0, wait.eq(wait - 1)),
            If(self.younger, self.age.eq(self.age - 1)),
            If(self.home, self.position.eq(2*half + later + Mux(self.is_falling, half, 0))),
        ]
        def moves(count, less, state):
            return [NextValue(taps, count), NextValue(self.direction, less), NextValue(wait, 4), NextState(state)]
        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE", If(self.go, NextState("LOOK")))
        fsm.act("LOOK",
            NextValue(up, self.target > self.position),
            NextValue(down, self.target < self.position),
            NextValue(is_far, (self.target > self.position + jump//2) | (self.position > self.target + jump//2)),
            NextState("DECIDE"),
        )
        fsm.act("DECIDE",
            If(up & (later != REACH - 1),
                NextValue(later, later + 1),
                NextValue(self.position, self.position + 1),
                *moves(STEP_TAPS, 1, "HIGH"),
            ).Elif(up & is_far,
                NextValue(later, 0),
                NextValue(self.position, self.position + jump),
                NextValue(self.is_falling, ~self.is_falling),
                # Of the next cycle.
                If(self.is_falling, NextValue(self.age, self.age - 1)),
                *moves(STEP_TAPS*(REACH - 1), 0, "HIGH"),
            ).Elif(down & (later != 0),
                NextValue(later, later - 1),
                NextValue(self.position, self.position - 1),
                *moves(STEP_TAPS, 0, "HIGH"),
            ).Elif(down & is_far,
                NextValue(later, REACH - 1),
                NextValue(self.position, self.position - jump),
                NextValue(self.is_falling, ~self.is_falling),
                If(~self.is_falling, NextValue(self.age, self.age + 1)),
                *moves(STEP_TAPS*(REACH - 1), 1, "HIGH"),
            ).Else(
                NextValue(wait, SETTLE),
                NextState("SETTLE"),
            )
        )
        fsm.act("HIGH",
            If(wait == 0, NextValue(self.move, 1), NextValue(wait, 1), NextState("LOW")),
        )
        fsm.act("LOW",
            If(wait == 0,
                NextValue(self.move, 0),
                NextValue(wait, 1),
                NextValue(taps, taps - 1),
                NextState("HIGH"),
                If(taps == 1, NextState("LOOK")),
            )
        )
        fsm.act("SETTLE", If(wait == 0, self.done.eq(1), NextState("IDLE")))

# Pattern User -------------------------------------------------------------------------------------

class PatternUser(LiteXModule):
    """Writes the pattern to a row of the SDRAM, reads it, and keeps what was there before.

    Attributes
    ----------
    save, write, restore, check : Signal(), in
        Pulse, one of them, while nothing is under way: begin.
    done : Signal(), out
        Pulse: it is over.
    is_good : Signal(), out
        With ``done`` of ``check``: all words were right.
    """
    def __init__(self, port):
        self.save    = Signal()
        self.write   = Signal()
        self.restore = Signal()
        self.check   = Signal()
        self.done    = Signal()
        self.is_good = Signal()

        # # #

        request = port.request
        memory  = Memory(32, WORDS)
        put     = memory.get_port(write_capable=True, mode=READ_FIRST)
        get     = memory.get_port(async_read=True)
        self.autocsr_exclude = {"memory"}
        self.specials += memory, put, get
        number  = Signal(max=WORDS)
        word    = Signal(32)
        is_old  = Signal() # What was there before: saved, or restored.
        is_last = Signal()
        self.comb += [
            request.address.eq(Replicate(1, len(request.address)) ^ 0xff), # Of the last row.
            request.rest.eq(WORDS - 1),
            get.adr.eq(number),
            put.adr.eq(number),
            put.dat_w.eq(port.read_data),
            put.we.eq(port.gives & is_old),
            Case(number, {n: word.eq(one) for n, one in enumerate(pattern())}),
            port.write_data.eq(Mux(is_old, get.dat_r, word)),
            is_last.eq((port.takes | port.gives) & (number == WORDS - 1)),
        ]
        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            NextValue(number, 0),
            NextValue(self.is_good, 1),
            NextValue(is_old, self.save | self.restore),
            NextValue(request.write, self.write | self.restore),
            If(self.save | self.write | self.restore | self.check, NextState("ASK")),
        )
        fsm.act("ASK",
            request.valid.eq(1),
            If(request.ready, NextState("WORDS")),
        )
        fsm.act("WORDS",
            If(port.takes | port.gives, NextValue(number, number + 1)),
            If(port.gives & (port.read_data != word), NextValue(self.is_good, 0)),
            If(is_last, NextState("DONE")),
        )
        fsm.act("DONE", self.done.eq(1), NextState("IDLE"))

# Read Eye -----------------------------------------------------------------------------------------

class ReadEye(LiteXModule):
    """Walks the time at which words are sampled through its positions at start, keeps the middle of the eye, and follows its drift.

    It goes from where nothing, or an older word, is read right to where the pattern is read first, from there to where it no
    longer is, and half of that back. An end or a middle that is out of reach of the delays is brought into it: the chip's clock
    gets another phase, and the search begins anew.

    Now and then it keeps everybody from the memory, saves a few words of the last row, and looks whether both ends of the eye are
    as far as they were: if one is nearer it goes a step away from it. Where no eye is wide enough it takes the slow clock, at which
    the first position is right on paper.

    Parameters
    ----------
    sdram : InterleavedController
        Without a port yet.
    half : int
        Positions of half a period.
    clock_steps : sequence of int
        Phases of the chip's clock in the order in which they are tried, steps of the PLL; it has the first one.
    every : int
        Cycles from one look at the drift to the next.

    Attributes
    ----------
    walker : SampleWalker
    phase_step, phase_advance : Signal(), Signal(), out
        Of the PLL, the chip's clock: a falling edge is a step, to earlier with the other one.
    slow : Signal(), out
        The clock of the controller, and of the chip, is to be the slow one.
    ready : Signal(), out
        Everybody may use the memory.
    state : Signal(2), out; an `EyeState`.
    width : Signal(8), out; positions at which the pattern is read right.
    moves, errors : Signal(8), Signal(8), out
        Steps to follow a drift; readings of the pattern in the middle that were wrong. They stop at 255.
    """
    def __init__(self, sdram, half, clock_steps, every=EVERY):
        self.walker        = walker = SampleWalker(half)
        self.phase_step    = Signal(reset=1)
        self.phase_advance = Signal()
        self.slow     = Signal()
        self.ready    = Signal()
        self.state    = Signal(2)
        self.width    = Signal(8)
        self.moves    = Signal(8)
        self.errors   = Signal(8)

        # # #

        shifts = [after - before for before, after in zip(clock_steps, clock_steps[1:])]
        limit = 6*half # Two periods from the start.
        assert half >= REACH and limit + 2*half < 512
        self.user = user = PatternUser(sdram.add_port())
        guard   = Signal(8) # Positions from the middle to what is looked at.
        begin   = Signal(9) # Of the eye.
        centre  = Signal(9)
        tries   = Signal(max=PLACES)
        left    = Signal(5) # Steps of the phase to go, readings to do.
        option  = Signal(max=len(clock_steps)) # Phases of the chip's clock that were tried.
        wait    = Signal(8)
        timer   = Signal(max=every + 1)
        is_hidden    = Signal() # An end of the eye is out of reach.
        is_late_good = Signal()
        goes_late    = Signal() # The last move.
        has_moved    = Signal() # At the last look.
        is_first     = Signal(reset=1)
        self.comb += [sdram.slow.eq(self.slow), sdram.hold.eq(~self.ready)]
        self.sync += [
            If(wait != 0, wait.eq(wait - 1)),
            If(timer != 0, timer.eq(timer - 1)),
        ]
        self.fsm = fsm = FSM(reset_state="START")

        def do(state, what, then, done=user.done):
            """Have the user of the pattern or the walker do something once nothing moves, then go on."""
            begun = Signal(name=f"begun_{state.lower().replace('-', '_')}")
            fsm.act(state,
                what.eq((wait == 0) & sdram.held & ~begun & ~done),
                If(what, NextValue(begun, 1)),
                If(done, NextValue(begun, 0), *then),
            )

        def walk(state, then):
            do(state, walker.go, then, walker.done)

        def go(target, state):
            return [NextValue(walker.target, target), NextState(state)]

        def counted(counter):
            return If(counter != 255, NextValue(counter, counter + 1))

        fsm.act("START", If(sdram.started, NextState("WRITE")))
        do("WRITE", user.write, [NextValue(tries, 0), NextState("SCAN")])
        # At one position: words of any age. Then on to where it isn't right any more, since it may be anywhere in its eye.
        do("SCAN", user.check, [
            If(user.is_good,
                If(self.slow,
                    NextValue(left, PROOFS),
                    NextState("PROVE"),
                ).Elif(is_first,
                    *go(walker.following, "LEAVE"),
                ).Else(
                    NextValue(begin, walker.position),
                    NextValue(is_hidden, walker.is_first),
                    *go(walker.following, "WIDEN"),
                ),
            ).Elif(tries == PLACES - 1,
                NextValue(is_first, 0),
                NextValue(tries, 0),
                NextState("LOST"),
            ).Else(
                NextValue(tries, tries + 1),
                NextState("YOUNGER"),
            )
        ])
        fsm.act("YOUNGER", walker.younger.eq(1), NextValue(wait, SETTLE), NextState("SCAN"))
        fsm.act("LOST",
            walker.younger.eq(1), # The sixteenth: as before.
            NextValue(wait, SETTLE),
            If(self.slow,
                NextValue(self.state, EyeState.FAILED),
                NextState("OPEN"),
            ).Elif(walker.position >= limit,
                NextState("NARROW"),
            ).Else(
                *go(walker.following, "SEARCH"),
            )
        )
        walk("SEARCH", [NextState("SCAN")])
        walk("LEAVE", [NextState("LEAVING")])
        do("LEAVING", user.check, [
            If(user.is_good & (walker.position < limit),
                *go(walker.following, "LEAVE"),
            ).Else(
                NextValue(is_first, 0),
                NextValue(tries, 0),
                NextState("SCAN"),
            )
        ])
        walk("WIDEN", [NextState("WIDENING")])
        do("WIDENING", user.check, [
            NextValue(self.width, walker.position - begin),
            If(user.is_good & (walker.position - begin < 2*half),
                *go(walker.following, "WIDEN"),
            ).Else(
                NextValue(is_hidden, is_hidden | walker.is_first),
                NextState("JUDGE"),
            )
        ])
        fsm.act("JUDGE",
            NextValue(guard, self.width[1:]),
            NextValue(tries, 0),
            NextValue(centre, begin + (self.width - 1)[1:]),
            If(self.width < LEAST,
                If(walker.position >= limit, NextState("NARROW")).Else(NextState("SCAN")),
            ).Elif(is_hidden & (option != len(shifts)),
                NextState("SHIFT"),
            ).Else(
                *go(begin + (self.width - 1)[1:], "BACK"),
            )
        )
        walk("BACK", [
            NextValue(left, PROOFS),
            NextState("PROVE"),
            If((walker.position != centre) & (option != len(shifts)), NextState("SHIFT")),
        ])
        # Another phase of the chip's clock.
        fsm.act("SHIFT",
            NextValue(option, option + 1),
            Case(option, {n: [
                NextValue(self.phase_advance, int(steps < 0)),
                NextValue(left, abs(steps)),
            ] for n, steps in enumerate(shifts)}),
            NextValue(is_first, 1),
            NextState("SHIFTING"),
        )
        fsm.act("SHIFTING",
            If(wait == 0,
                NextValue(wait, 4),
                If(left == 0,
                    walker.home.eq(1),
                    NextValue(wait, SETTLE),
                    NextState("WRITE"),
                ).Else(
                    NextValue(left, left - 1),
                    NextValue(self.phase_step, 0),
                    NextState("SHIFTED"),
                )
            )
        )
        fsm.act("SHIFTED", If(wait == 0, NextValue(self.phase_step, 1), NextValue(wait, 4), NextState("SHIFTING")))
        do("PROVE", user.check, [
            If(~user.is_good,
                counted(self.errors),
                If(self.slow, NextValue(self.state, EyeState.FAILED), NextState("OPEN")).Else(NextState("NARROW")),
            ).Elif(left == 0,
                NextValue(self.state, Mux(self.slow, EyeState.SLOW, EyeState.FOUND)),
                NextState("OPEN"),
            ).Else(
                NextValue(left, left - 1),
            )
        ])
        # No eye: the rising edge, without a delay.
        fsm.act("NARROW", walker.home.eq(1), *go(2*half + REACH - 1, "SETTLE"))
        walk("SETTLE", [NextValue(self.slow, 1), NextValue(wait, SWITCH), NextState("WRITE")])
        fsm.act("OPEN", NextValue(self.ready, 1), NextValue(timer, every), NextState("KEEP"))
        # Drift.
        fsm.act("KEEP",
            If((timer == 0) & (self.state == EyeState.FOUND),
                NextValue(self.ready, 0),
                NextValue(wait, SETTLE),
                NextState("SAVE"),
            )
        )
        do("SAVE", user.save, [NextState("PUT")])
        do("PUT", user.write, go(centre + guard, "LATE"))
        walk("LATE", [NextState("LOOK-LATE")])
        do("LOOK-LATE", user.check, [NextValue(is_late_good, user.is_good), *go(centre - guard, "EARLY")])
        walk("EARLY", [NextState("LOOK-EARLY")])
        do("LOOK-EARLY", user.check, [
            *go(centre, "CENTRE"),
            NextValue(has_moved, 0),
            If(user.is_good != is_late_good,
                NextValue(goes_late, is_late_good),
                # Back at once: an end is between two positions.
                If(has_moved & (goes_late != is_late_good),
                    NextValue(guard, guard - (guard > LEAST//2)),
                ).Else(
                    counted(self.moves),
                    NextValue(has_moved, 1),
                    NextValue(centre, Mux(is_late_good, centre + 1, centre - 1)),
                    NextValue(walker.target, Mux(is_late_good, centre + 1, centre - 1)),
                ),
            ).Elif(~user.is_good & (guard > LEAST//2),
                NextValue(guard, guard - 1),
                NextValue(self.width, self.width - 2),
            ),
        ])
        walk("CENTRE", [NextState("LOOK")])
        do("LOOK", user.check, [If(~user.is_good, counted(self.errors)), NextState("RESTORE")])
        do("RESTORE", user.restore, [NextState("OPEN")])

# Registers ----------------------------------------------------------------------------------------

class EyeRegisters(LiteXModule):
    """Shows what a `ReadEye` in ``memory`` found.

    Parameters
    ----------
    eye : ReadEye
    clk_freqs : pair of float, Hz; of the memory's clock, and of the slow one.
    """
    def __init__(self, eye, clk_freqs):
        self.state    = CSRStatus(2, description="`EyeState`: 0 searching, 1 found, 2 none (slow clock), 3 that failed, too.")
        self.width    = CSRStatus(8, description="Steps of the sampling time at which the pattern is read right.")
        self.moves    = CSRStatus(8, description="Steps that followed a drift; 255: that many or more.")
        self.errors   = CSRStatus(8, description="Readings of the pattern in the middle of the eye that were wrong; likewise.")
        self.step_ps  = CSRStatus(16, reset=STEP_TAPS*TAP_PS, description="Picoseconds of a step, nominal.")
        self.clock_khz = CSRStatus(20, description="Of the memory.")

        # # #

        names = ("state", "width", "moves", "errors")
        self.followed = followed = WordCrossing(sum(len(getattr(eye, name)) for name in names), "memory", "sys")
        fast, slow = [round(freq/1e3) for freq in clk_freqs]
        self.comb += [
            followed.i.eq(Cat(*[getattr(eye, name) for name in names])),
            Cat(*[getattr(self, name).status for name in names]).eq(followed.o),
            self.clock_khz.status.eq(Mux(self.state.status >= EyeState.SLOW, slow, fast)),
        ]
