# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Finds the eye of what a SDRAM gives, keeps the clock of its read registers in the middle, and says how wide it is."""

from migen import *

from litex.gen import *

from litex.soc.interconnect.csr import CSRStatus

from liteprobe.cores.crossing import WordCrossing
from liteprobe.cores.formats.probe import EyeState

WORDS  = 16 # Of the pattern.
PLACES = 16 # Of a `SampleQueue`: as many distances from its writer to its reader.
LEAST  = 5  # Steps of an eye, at least.
PROOFS = 15 # Readings in the middle, one more.
SETTLE = 20 # Cycles after a step of the phase, or after a skip, until what is read counts.
SWITCH = 255 # Cycles after the clock has become another one.
EVERY  = 1 << 20 # Cycles from one look at the drift to the next: 8 ms at 125 MHz.

def pattern():
    """Return the words: each bit changes with most of them, alone and with all others; none is as another, or as idle pins."""
    noise, words = 0x2545f491, []
    for n in range(WORDS):
        noise = (noise*1664525 + 1013904223) & 0xffffffff
        words += [[0, 0xffffffff, 0xaaaaaaaa, 0x55555555][n & 3] ^ (1 << (2*n + n//4 & 31) if n & 4 else noise)]
    return words

# Sample Queue -------------------------------------------------------------------------------------

class SampleQueue(LiteXModule):
    """Brings words from the clock of the read registers to that of the controller, of one frequency and any phase.

    Both sides go on with each cycle: so a word takes the same time always. Which time is found by trying.

    Attributes
    ----------
    raw : Signal(32), in, ``memory_read``
    word : Signal(32), out, ``sys``
    skip : Signal(), in, ``sys``
        Words are a cycle younger from now on; after 16 they are as old as before.
    """
    def __init__(self):
        self.raw  = Signal(32)
        self.word = Signal(32)
        self.skip = Signal()

        # # #

        bits    = log2_int(PLACES)
        memory  = Memory(32, PLACES)
        put     = memory.get_port(write_capable=True, clock_domain="memory_read", mode=READ_FIRST)
        get     = memory.get_port(async_read=True)
        self.autocsr_exclude = {"memory"}
        self.specials += memory, put, get
        into    = Signal(bits)
        out     = Signal(bits)
        self.comb += [put.adr.eq(into), put.dat_w.eq(self.raw), put.we.eq(1), get.adr.eq(out)]
        self.sync.memory_read += into.eq(into + 1)
        self.sync += [
            out.eq(out + 1 + self.skip),
            self.word.eq(get.dat_r),
        ]

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
    """Walks the clock of the read registers through its phases at start, keeps the middle of the eye, and follows its drift.

    It goes from where nothing, or an older word, is read right to where the pattern is read first, from there to where it no
    longer is, and half of that back. Now and then it keeps everybody from the memory, saves a few words of the last row, and
    looks whether both ends of the eye are as far as they were: if one is nearer it goes a step away from it.

    Where no eye is wide enough it takes the slow clock, whose phase is right on paper.

    Parameters
    ----------
    sdram : InterleavedController
        Without a port yet.
    steps : int
        Of the phase, in a period.
    every : int
        Cycles from one look at the drift to the next.

    Attributes
    ----------
    skip : Signal(), out; of a `SampleQueue`.
    phase_step, phase_advance : Signal(), Signal(), out
        Of the PLL: a falling edge is a step, to earlier with the other one.
    slow : Signal(), out
        The clock of the controller and of the read registers are to be the slow one.
    ready : Signal(), out
        Everybody may use the memory.
    state : Signal(2), out; an `EyeState`.
    width : Signal(8), out; steps at which the pattern is read right.
    position : Signal(8), out; steps from where it began, as they were at the start.
    moves, errors : Signal(8), Signal(8), out
        Steps to follow a drift; readings of the pattern in the middle that were wrong. They stop at 255.
    """
    def __init__(self, sdram, steps, every=EVERY):
        self.skip          = Signal()
        self.phase_step    = Signal(reset=1)
        self.phase_advance = Signal()
        self.slow     = Signal()
        self.ready    = Signal()
        self.state    = Signal(2)
        self.width    = Signal(8)
        self.position = Signal(8)
        self.moves    = Signal(8)
        self.errors   = Signal(8)

        # # #

        assert 3*steps < 256
        self.user = user = PatternUser(sdram.add_port())
        guard   = Signal(8) # Steps from the middle to what is looked at.
        begin   = Signal(8) # Of the eye.
        tries   = Signal(max=PLACES)
        left    = Signal(8) # Steps to go, readings to do.
        wait    = Signal(8)
        timer   = Signal(max=every + 1)
        is_late_good = Signal()
        is_first = Signal(reset=1)
        self.comb += [sdram.slow.eq(self.slow), sdram.hold.eq(~self.ready)]
        self.sync += [
            wait.eq(Mux(wait != 0, wait - 1, 0)),
            If(timer != 0, timer.eq(timer - 1)),
        ]
        self.fsm = fsm = FSM(reset_state="START")

        def do(state, what, then):
            """Have the user of the pattern do something once nothing moves, then go on."""
            begun = Signal(name=f"begun_{state.lower().replace(chr(45), chr(95))}")
            fsm.act(state,
                what.eq((wait == 0) & sdram.held & ~begun & ~user.done),
                If(what, NextValue(begun, 1)),
                If(user.done, NextValue(begun, 0), *then),
            )

        def steps_of(state, then):
            """Go the steps that are left."""
            # High for two cycles, low for two: four cycles of the VCO each at least.
            fsm.act(state,
                If(wait == 0,
                    If(left == 0, NextValue(wait, SETTLE), *then).Else(
                        NextValue(left, left - 1),
                        NextValue(self.phase_step, 0),
                        NextValue(self.position, Mux(self.phase_advance, self.position - 1, self.position + 1)),
                        NextValue(wait, 2),
                        NextState(f"{state}-LOW"),
                    )
                )
            )
            fsm.act(f"{state}-LOW",
                If(wait == 0, NextValue(self.phase_step, 1), NextValue(wait, 2), NextState(state)),
            )

        def go(count, is_advance, state):
            return [NextValue(left, count), NextValue(self.phase_advance, is_advance), NextState(state)]

        def counted(counter):
            return If(counter != 255, NextValue(counter, counter + 1))

        fsm.act("START", If(sdram.started, NextState("WRITE")))
        do("WRITE", user.write, [NextValue(tries, 0), NextState("SCAN")])
        # At one phase: words of any age. Then on to where it isn't right any more, since it may be anywhere in its eye.
        do("SCAN", user.check, [
            If(user.is_good,
                If(self.slow,
                    NextValue(left, PROOFS),
                    NextState("PROVE"),
                ).Elif(is_first,
                    *go(1, 0, "LEAVE"),
                ).Else(
                    NextValue(begin, self.position),
                    *go(1, 0, "WIDEN"),
                ),
            ).Elif(tries == PLACES - 1,
                NextValue(is_first, 0),
                NextValue(tries, 0),
                NextState("LOST"),
            ).Else(
                NextValue(tries, tries + 1),
                NextState("SKIP"),
            )
        ])
        fsm.act("SKIP", self.skip.eq(1), NextValue(wait, SETTLE), NextState("SCAN"))
        fsm.act("LOST",
            self.skip.eq(1), # The sixteenth: as before.
            NextValue(wait, SETTLE),
            If(self.slow,
                NextValue(self.state, EyeState.FAILED),
                NextState("OPEN"),
            ).Elif(self.position >= 2*steps,
                NextState("NARROW"),
            ).Else(
                *go(1, 0, "SEARCH"),
            )
        )
        steps_of("SEARCH", [NextState("SCAN")])
        steps_of("LEAVE", [NextState("LEAVING")])
        do("LEAVING", user.check, [
            If(user.is_good & (self.position < steps),
                *go(1, 0, "LEAVE"),
            ).Else(
                NextValue(is_first, 0),
                NextValue(tries, 0),
                NextState("SCAN"),
            )
        ])
        steps_of("WIDEN", [NextState("WIDENING")])
        do("WIDENING", user.check, [
            NextValue(self.width, self.position - begin),
            If(user.is_good & (self.position - begin < steps),
                *go(1, 0, "WIDEN"),
            ).Else(
                NextState("JUDGE"),
            )
        ])
        fsm.act("JUDGE",
            NextValue(guard, (self.width - 1)[1:]),
            NextValue(tries, 0),
            If(self.width >= LEAST,
                *go(self.width - (self.width - 1)[1:], 1, "BACK"),
            ).Elif(self.position >= 2*steps,
                NextState("NARROW"),
            ).Else(
                NextState("SCAN"),
            )
        )
        steps_of("BACK", [NextValue(left, PROOFS), NextState("PROVE")])
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
        # No eye.
        fsm.act("NARROW",
            NextValue(self.slow, 1),
            NextValue(wait, SWITCH),
            NextState("WRITE"),
        )
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
        do("PUT", user.write, go(guard, 0, "LATE"))
        steps_of("LATE", [NextState("LOOK-LATE")])
        do("LOOK-LATE", user.check, [NextValue(is_late_good, user.is_good), *go(guard << 1, 1, "EARLY")])
        steps_of("EARLY", [NextState("LOOK-EARLY")])
        do("LOOK-EARLY", user.check, [
            *go(guard, 0, "CENTRE"),
            If(user.is_good & ~is_late_good,
                counted(self.moves),
                NextValue(left, guard - 1),
            ).Elif(~user.is_good & is_late_good,
                counted(self.moves),
                NextValue(left, guard + 1),
            ).Elif(~user.is_good & (guard > LEAST//2),
                NextValue(guard, guard - 1),
                NextValue(self.width, self.width - 2),
            ),
        ])
        steps_of("CENTRE", [NextState("LOOK")])
        do("LOOK", user.check, [If(~user.is_good, counted(self.errors)), NextState("RESTORE")])
        do("RESTORE", user.restore, [NextState("OPEN")])

# Registers ----------------------------------------------------------------------------------------

class EyeRegisters(LiteXModule):
    """Shows what a `ReadEye` in ``memory`` found.

    Parameters
    ----------
    eye : ReadEye
    step_ps : int, of the phase.
    clk_freqs : pair of float, Hz; of the memory's clock, and of the slow one.
    """
    def __init__(self, eye, step_ps, clk_freqs):
        self.state    = CSRStatus(2, description="`EyeState`: 0 searching, 1 found, 2 none (slow clock), 3 that failed, too.")
        self.width    = CSRStatus(8, description="Steps of the phase at which the pattern is read right.")
        self.moves    = CSRStatus(8, description="Steps that followed a drift; 255: that many or more.")
        self.errors   = CSRStatus(8, description="Readings of the pattern in the middle of the eye that were wrong; likewise.")
        self.position = CSRStatus(8, description="Steps from where the search began, modulo 256.")
        self.step_ps  = CSRStatus(16, reset=step_ps, description="Picoseconds of a step.")
        self.clock_khz = CSRStatus(20, description="Of the memory.")

        # # #

        names = ("state", "width", "moves", "errors", "position")
        self.followed = followed = WordCrossing(sum(len(getattr(eye, name)) for name in names), "memory", "sys")
        fast, slow = [round(freq/1e3) for freq in clk_freqs]
        self.comb += [
            followed.i.eq(Cat(*[getattr(eye, name) for name in names])),
            Cat(*[getattr(self, name).status for name in names]).eq(followed.o),
            self.clock_khz.status.eq(Mux(self.state.status >= EyeState.SLOW, slow, fast)),
        ]
