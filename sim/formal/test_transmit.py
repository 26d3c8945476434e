# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Claims about pacing for every program and every load: never early, never twice at once on the line."""

import pytest
from migen import *
from migen.fhdl.tools import list_signals

from liteprobe.cores.formats import slot_octets
from liteprobe.cores.transmit import pace
from liteprobe.cores.transmit.frames import DUE_BITS, HOLD_BITS
from liteprobe.cores.transmit.line import LINE_TICKS
from liteprobe.cores.transmit.pace import TrainPacer
from liteprobe.sim.drivers.tools.formal import Proof, Run, prove

DUE_TO_START = 2  # Ticks from the due tick to the start; the lead makes up for them.
SHORTEST     = slot_octets(60)
LONGEST      = slot_octets(1536) # Of a management frame.
FAR          = 2**18 # Ticks; frames that are due or overdue by more are not shown to the pacer.


def internal(module, name):
    """Return a signal that ``module`` shows to nobody: induction must know the whole state."""
    (found,) = {signal for signal in list_signals(module._fragment) if signal.backtrace[-1][0] == name}
    return found


class PacerProof(Proof):
    """A pacer with all that may happen around it, the exact schedule, and who holds the line."""

    def __init__(self, shortest=SHORTEST, longest=LONGEST):
        Proof.__init__(self, ["timebase"])
        self.shortest, self.longest = shortest, longest # Slots (ticks); the longest is management's.
        self.dut = dut = TrainPacer()
        self.is_running  = dut.fsm.ongoing("RUN")
        self.is_draining = dut.fsm.ongoing("DRAIN")
        self.runs        = dut.runs
        dut.finalize() # From here on, nothing can be added to it.
        for endpoint in (dut.sink, dut.management):
            self.free(endpoint.valid, endpoint.first, endpoint.last, endpoint.payload)
        self.free(dut.descriptors.valid, dut.descriptors.payload)
        self.free(dut.now, dut.arm, dut.is_primed, dut.stop, dut.start_strobe)
        self.free(dut.timed, dut.start_time, dut.management_waiting, dut.management_hold)
        self.add_surroundings()
        self.add_schedule()
        self.add_line()

    def promise(self, promise):
        self.assume(promise, "timebase")

    def assert_all(self, *claims):
        for claim in claims:
            self.claim(claim, "timebase")

    def add_surroundings(self):
        """The program's start stands still; so does what is said of a frame in waiting. Nothing follows a final frame."""
        dut, waits = self.dut, self.dut.descriptors
        start    = Cat(dut.timed, dut.start_time)
        before   = Signal(len(start))
        told     = Signal(len(waits.payload.raw_bits()))
        hold     = Signal.like(dut.management_hold)
        is_later = Signal()
        is_told  = Signal()
        is_held  = Signal()
        taken    = Signal(3) # A descriptor was, a tick ago, and before.
        self.sync.timebase += [
            before.eq(start),
            told.eq(waits.payload.raw_bits()),
            hold.eq(dut.management_hold),
            is_later.eq(1),
            is_told.eq(waits.valid & ~waits.ready),
            taken.eq(Cat(waits.valid & waits.ready, taken)),
            is_held.eq(dut.management_waiting & dut.management.valid & ~dut.line.is_sending & ~dut.start_management),
        ]
        self.promise(~is_later | (start == before))
        self.promise(~is_told | (waits.valid & (waits.payload.raw_bits() == told)))
        self.promise(~(dut.is_over & waits.valid))
        self.promise(~waits.valid | (taken == 0))
        self.promise(~is_held | (dut.management_hold == hold))
        self.promise(~waits.valid | (waits.hold >= self.shortest - LINE_TICKS))
        self.promise(dut.management_hold >= self.shortest - LINE_TICKS)
        self.promise(dut.management_hold <= self.longest - LINE_TICKS)

    def add_schedule(self):
        """The schedule as it is meant: the tick of the program, and one subtraction at once."""
        due, waits = self.dut.due, self.dut.descriptors
        self.tick = tick = Signal(DUE_BITS, reset=-pace.LEAD_TICKS)
        self.left = left = Signal(DUE_BITS) # Ticks to the start, in two's complement.
        self.comb += left.eq((waits.due + DUE_TO_START - tick)[:DUE_BITS])
        is_begun = Signal() # Tick 0 has come.
        self.sync.timebase += [
            If(self.runs, tick.eq(tick + 1)).Else(tick.eq(-due.lead)),
            is_begun.eq(self.runs & (is_begun | (tick == 0))),
        ]
        self.promise(~waits.valid | (self.shifted(FAR) < 2*FAR))
        self.promise(~waits.valid | is_begun | (waits.due < FAR))

    def shifted(self, ticks):
        """Return ``left`` and so many ticks more; by name, or Verilog would widen the sum."""
        total = Signal(DUE_BITS)
        self.comb += total.eq(self.left + ticks)
        return total

    def add_line(self):
        """Count how long the line is taken, by the lengths of the slots."""
        line = self.dut.line
        self.taken = taken = Signal(HOLD_BITS + 1) # Ticks until it is free.
        hold, last_hold = Signal(HOLD_BITS), Signal(HOLD_BITS)
        self.comb += [
            hold.eq(Mux(line.choose_management, line.management_hold, line.probe_hold)),
            last_hold.eq(Mux(line.is_management, internal(line, "hold"), line.probe_hold)),
        ]
        self.sync.timebase += If(line.start,
            taken.eq(hold + LINE_TICKS - 1)
        ).Elif(taken != 0,
            taken.eq(taken - 1)
        )

    def add_line_induction(self):
        """Claim what makes the induction go through: how the parts of the state hang together."""
        dut, line = self.dut, self.dut.line
        is_begun, left = internal(line, "is_begun"), internal(line, "left")
        hold = Signal(HOLD_BITS)
        self.comb += hold.eq(Mux(line.is_management, internal(line, "hold"), line.probe_hold))
        self.assert_all(
            line.is_free == (self.taken == 0),
            ~is_begun | (self.taken == hold + LINE_TICKS - 1),
            line.is_free | is_begun | (self.taken == (left + 2)[:len(left)]),
            # A descriptor stands still from before its start until it is taken.
            ~(internal(dut, "is_open") & line.is_free) | (dut.descriptors.valid & ~self.is_draining),
            ~dut.is_begun | (is_begun & ~line.is_management & dut.descriptors.valid),
            ~dut.started | (self.taken > 2),
        )


def claims_of(proof, early=0, overlap=0, intrusion=0):
    """Return the claims by name; each number above 0 makes one of them bolder by so many ticks than is true."""
    dut, line = proof.dut, proof.dut.line
    ahead  = proof.shifted(early)
    spare  = proof.shifted(-(dut.management_hold + LINE_TICKS + intrusion))
    before = Signal()
    was_due = Signal()
    waited  = Signal(3) # The descriptor was there a tick ago, and before.
    proof.sync.timebase += [
        before.eq((proof.taken == 1) & bool(overlap)),
        was_due.eq(dut.due.is_due),
        waited.eq(Cat(dut.descriptors.valid, waited)),
    ]
    return {
        "early"     : ~dut.start | (ahead == 0) | ahead[-1],
        "late"      : ~dut.start | was_due | (ahead == 0) | ~waited[-1], # Unless something else held it up.
        "told"      : ~dut.start | (dut.due.is_late == ahead[-1]),
        "overlap"   : ~line.start | ((proof.taken == 0) & ~before),
        "both"      : ~(dut.start & dut.start_management),
        # Management is through by the tick of the next start.
        "intrusion" : ~(dut.start_management & proof.is_running & dut.descriptors.valid) | ~spare[-1],
    }


def test_slots_never_overlap_on_the_line():
    """By induction: for every program, every load, all time."""
    proof = PacerProof()
    proof.add_line_induction()
    claims = claims_of(proof)
    proof.assert_all(claims["overlap"], claims["both"])
    prove(proof, "pacer_line", Run(depth=4))


def test_frames_start_neither_early_nor_late(monkeypatch):
    """Bounded to 25 ticks out of reset: up to the first start of a program with a shorter lead, whatever else happens.

    For all time only the line's slots are proved. That management never delays a start is proved for no number of
    ticks here: its claim ("intrusion") is held against bolder ones below, and against the wire in sim/wire.
    """
    monkeypatch.setattr(pace, "LEAD_TICKS", 16)
    proof = PacerProof(shortest=12, longest=16)
    claims = claims_of(proof)
    proof.assert_all(claims["early"], claims["late"], claims["told"])
    prove(proof, "pacer_start", Run("bmc", 25))


# The lead, and the steps until a trace shows that a claim goes too far; slots are as short, or it takes too long.
BOLDER = {"early": (16, 26), "overlap": (16, 26), "intrusion": (28, 28)}


@pytest.mark.parametrize(
    "name", [pytest.param("early", marks=pytest.mark.full), "overlap", pytest.param("intrusion", marks=pytest.mark.full)]
)
def test_claim_that_goes_a_tick_too_far_is_refuted(monkeypatch, name):
    lead, depth = BOLDER[name]
    monkeypatch.setattr(pace, "LEAD_TICKS", lead)
    proof = PacerProof(shortest=12, longest=lead)
    proof.assert_all(claims_of(proof, **{name: 1})[name])
    with pytest.raises(AssertionError, match="returned FAIL"):
        prove(proof, f"pacer_{name}", Run("bmc", depth))
