# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Claims about the receive path that hold for every input, not only for those of a test."""

import pytest
from migen import *

from liteprobe.cores.capture.record import RecordRing
from liteprobe.cores.crossing import StreamCrossing
from liteprobe.cores.receive.management import FrameStore
from liteprobe.cores.receive.mac import SFDDetector, least_sfd_spacing
from liteprobe.sim.drivers.tools.formal import Proof, Run, prove


def detector_proof(spacing):
    proof = Proof()
    proof.dut = dut = SFDDetector()
    proof.free(dut.sink.valid, dut.sink.data, dut.sink.error)
    age = Signal(max=least_sfd_spacing, reset=least_sfd_spacing - 1)
    is_open = Signal()
    proof.sync += [
        If(dut.sfd, age.eq(0)).Elif(age != least_sfd_spacing - 1, age.eq(age + 1)),
        If(dut.sfd, is_open.eq(1)).Elif(dut.end, is_open.eq(0)),
    ]
    proof.claim(~dut.sfd | (age >= spacing - 1))
    proof.claim(~dut.end | is_open)
    proof.claim(~dut.sfd | ~is_open | dut.end)
    proof.claim(~dut.octet_valid | (is_open & ~dut.end))
    # What makes the induction go through: how the detector's own state follows the claims'.
    proof.claim(age == least_sfd_spacing - 1 - dut.spacing)
    proof.claim(is_open == (dut.fsm.ongoing("FRAME") | dut.end))
    proof.claim(~(dut.fsm.ongoing("FRAME") & dut.end))
    proof.claim(dut.fsm.ongoing("PREAMBLE") | dut.fsm.ongoing("FRAME") | dut.fsm.ongoing("REFUSED"))
    return proof


def test_each_sfd_has_one_end_and_is_far_from_the_last():
    prove(detector_proof(least_sfd_spacing), "sfd", Run(depth=16))


def test_claim_of_a_wider_spacing_is_refuted():
    with pytest.raises(AssertionError, match="FAIL"):
        prove(detector_proof(least_sfd_spacing + 1), "sfd_refuted", Run("bmc", depth=16))


def test_ring_never_overwrites_what_the_host_has_not_read():
    depth = 2 # Small enough to fill within the steps looked at.
    proof = Proof()
    proof.dut = dut = RecordRing(depth)
    proof.free(dut.keep, dut.read, dut.sequence, dut.tx_stamp, dut.rx_stamp, dut.length, dut.flags)
    proof.free(dut.bus.cyc, dut.bus.stb, dut.bus.adr)
    # The host reads on, and nothing that isn't there; records come at their distance.
    read_before, pause = Signal(32), Signal(4)
    proof.sync += [
        read_before.eq(dut.read),
        If(dut.keep, pause.eq(7)).Elif(pause != 0, pause.eq(pause - 1)),
    ]
    unread = Signal(32)
    proof.comb += unread.eq(dut.written - dut.read)
    proof.assume(unread <= depth)
    proof.assume((dut.read - read_before)[:32] <= depth)
    proof.assume(~dut.keep | (pause == 0))
    proof.claim(~dut.memory.write | (unread < depth))
    proof.claim(~dut.memory.write | (dut.memory.write_address < 6*depth))
    for slot in range(depth):
        is_inside = (dut.memory.write_address >= 6*slot) & (dut.memory.write_address < 6*slot + 6)
        proof.claim(~dut.memory.write | (is_inside == (dut.written[:1] == slot)))
    prove(proof, "ring", Run("bmc", depth=27))


def test_store_keeps_its_output_until_it_is_taken():
    proof = Proof()
    proof.dut = dut = FrameStore(32, octets=64)
    proof.free(dut.sink.valid, dut.sink.last, dut.sink.payload, dut.refuse, dut.source.ready)
    before = Signal(len(dut.source.payload.raw_bits()) + 2)
    now    = Cat(dut.source.payload.raw_bits(), dut.source.last, dut.source.valid)
    held   = Signal()
    proof.sync += [before.eq(now), held.eq(dut.source.valid & ~dut.source.ready)]
    proof.claim(~held | (before == now))
    proof.claim(dut.sink.ready)
    prove(proof, "store", Run(depth=6))


def test_crossing_loses_no_word_and_keeps_their_order_for_any_two_clocks():
    proof = Proof(["sys", "wire"])
    proof.dut = dut = StreamCrossing([("data", 4)], "wire", "sys", depth=4)
    proof.free(dut.sink.valid, dut.source.ready)
    sent, taken = Signal(4), Signal(4)
    proof.comb += dut.sink.data.eq(sent)
    proof.sync.wire += If(dut.sink.valid & dut.sink.ready, sent.eq(sent + 1))
    proof.sync += If(dut.source.valid & dut.source.ready, taken.eq(taken + 1))
    proof.claim(~dut.source.valid | (dut.source.data == taken))
    prove(proof, "crossing", Run("bmc", depth=13))
