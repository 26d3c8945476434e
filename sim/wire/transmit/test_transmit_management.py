# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Management frames at the pins: whole, in order, and never in the way of a program."""

import random

import cocotb
from cocotb.triggers import Timer

from liteprobe.cores.formats import IFG, TransmitState, slot_octets
from liteprobe.sim.drivers.transmit.driver import Program, TransmitDriver, write_verilog
from liteprobe.sim.drivers.tools.wire import is_full, run_wire_test, with_full
from liteprobe.sim.models.traffic.trains import ProbeFrame, wire_octets



def management_frame(rng, length):
    """Return a frame that no one takes for a probe's."""
    return bytes([0x02, 0xEE]) + rng.randbytes(length - 2)


def split(frames):
    """Return (probe frames, management frames) of a wire."""
    management = [frame for frame in frames if frame.data[:2] == b"\x02\xee"]
    return [frame for frame in frames if frame not in management], management


def check_gaps(frames):
    """Assert that frames are 12 octets apart or more."""
    for one, two in zip(frames, frames[1:], strict=False):
        assert two.start - (one.start + one.ticks) >= IFG


def check_program(bench, port, frame, program):
    """Assert that the program ran as if it had been alone; return its frames and the others."""
    probes, management = split(bench.sinks[port].frames)
    interval = program.interval_ticks or slot_octets(frame.length)
    total = program.count * program.repeats
    assert [wire.start - probes[0].start for wire in probes] == [
        k * interval + k // program.count * program.gap_ticks for k in range(total)
    ]
    for sequence, wire in enumerate(probes):
        assert wire.octets == wire_octets(frame.octets(sequence, wire.sfd_now))
    check_gaps(bench.sinks[port].frames)
    counters = bench.counters(port)
    assert (counters["sent"], counters["late"], counters["underruns"]) == (total, 0, 0)
    assert counters["management_sent"] == len(management)
    return probes, management


@cocotb.test()
@cocotb.parametrize(sys_mhz=[50, 62.5])
async def management_frames_of_all_lengths_leave_whole_and_in_order(dut, sys_mhz):
    bench = TransmitDriver(dut, sys_mhz)
    await bench.reset()
    rng = random.Random(1)
    sent = [management_frame(rng, length) for length in [*range(14, 70), 127, 300, 1023, 1514, 1536, 60]]
    for frame in sent:
        await bench.manage(0, frame)
        await Timer(slot_octets(len(frame)) * 8, "ns")
    await Timer(20, "us")
    assert [wire.octets for wire in bench.sinks[0].frames] == [wire_octets(frame) for frame in sent]
    check_gaps(bench.sinks[0].frames)
    assert bench.counters(0)["management_sent"] == len(sent)
    assert bench.counters(0)["management_held"] == bench.counters(0)["management_dropped"] == 0


@cocotb.test()
async def stored_management_frames_leave_at_line_rate(dut):
    bench = TransmitDriver(dut)
    await bench.reset()
    sent = [management_frame(random.Random(n), length) for n, length in enumerate([1000, 61, 60, 62, 63, 14, 300])]
    for frame in sent:
        await bench.manage(0, frame)
    await Timer(30, "us")
    seen = bench.sinks[0].frames
    assert [wire.octets for wire in seen] == [wire_octets(frame) for frame in sent]
    # From the second on all are stored before the line is free; a slot ends four ticks before the next can be seen.
    assert all(two.start - one.start - slot_octets(len(one.data)) <= 8 for one, two in zip(seen, seen[1:], strict=False))


@cocotb.test()
@cocotb.parametrize(length=[60, 512, 1514], seed=with_full([1], [2]))
async def at_half_load_management_fits_into_the_gaps_and_moves_no_start(dut, length, seed):
    bench = TransmitDriver(dut)
    await bench.reset()
    rng = random.Random(seed)
    frame = ProbeFrame(length)
    program = Program(count=40 if length < 1514 or is_full() else 16, interval_ticks=2 * slot_octets(length))
    await bench.arm(0, frame, program)
    await bench.start([0])
    sent = []
    while bench.state(0) != TransmitState.IDLE:
        sent.append(management_frame(rng, rng.randrange(14, max(61, length // 2))))
        await bench.manage(0, sent[-1])
        await Timer(rng.randrange(1, 4 * length), "ns")
        if len(sent) % 3 == 0:
            await Timer(rng.randrange(1, 20), "us")
    await Timer(60, "us")
    probes, management = check_program(bench, 0, frame, program)
    kept = [wire.octets for wire in management]
    assert len(kept) + bench.counters(0)["management_dropped"] == len(sent)
    order = [wire_octets(one) for one in sent]
    assert [octets for octets in order if octets in kept] == kept
    inside = [wire for wire in management if probes[0].start < wire.start < probes[-1].start]
    assert len(inside) >= 5, "gaps were left unused"


@cocotb.test()
@cocotb.parametrize(spare=[-1, 0, 1], length=[60, 100, 777])
async def a_management_frame_needs_its_slot_to_the_octet(dut, spare, length):
    bench = TransmitDriver(dut)
    await bench.reset()
    frame = ProbeFrame(64)
    program = Program(count=30, interval_ticks=slot_octets(64) + slot_octets(length) + spare)
    await bench.arm(0, frame, program)
    await bench.start([0])
    await Timer(18, "us")
    await bench.manage(0, management_frame(random.Random(3), length))
    await bench.until(0, TransmitState.IDLE)
    await Timer(20, "us")
    probes, management = check_program(bench, 0, frame, program)
    assert len(management) == 1
    assert (management[0].start > probes[-1].start) == (spare < 0)
    assert bench.counters(0)["management_held"] == 1


@cocotb.test()
async def management_that_finds_the_line_free_in_a_program_is_not_held(dut):
    bench = TransmitDriver(dut)
    await bench.reset()
    frame = ProbeFrame(64)
    program = Program(count=3, interval_ticks=10_000)
    await bench.arm(0, frame, program)
    await bench.start([0])
    await Timer(30, "us")
    for seed in range(3):
        await bench.manage(0, management_frame(random.Random(seed), 100))
        await Timer(10, "us")
    await bench.until(0, TransmitState.IDLE)
    await Timer(20, "us")
    _, management = check_program(bench, 0, frame, program)
    assert len(management) == 3
    assert bench.counters(0)["management_held"] == 0


@cocotb.test()
@cocotb.parametrize(length=[60, 1514], gap=[0, 700])
async def back_to_back_management_waits_for_the_end_or_a_gap_between_trains(dut, length, gap):
    bench = TransmitDriver(dut, 62.5)
    await bench.reset()
    frame = ProbeFrame(length)
    count = 20 if length < 1514 or is_full() else 5
    program = Program(count=count, repeats=3, gap_ticks=gap)
    await bench.arm(0, frame, program)
    await bench.start([0])
    await Timer(19, "us")
    reply = management_frame(random.Random(5), 350)
    await bench.manage(0, reply)
    await bench.until(0, TransmitState.IDLE)
    await Timer(20, "us")
    probes, management = check_program(bench, 0, frame, program)
    assert [wire.octets for wire in management] == [wire_octets(reply)]
    last = probes[count - 1] if gap else probes[-1]
    assert last.start + slot_octets(length) <= management[0].start <= last.start + slot_octets(length) + 12
    assert bench.counters(0)["management_held"] == 1


@cocotb.test()
@cocotb.parametrize(seed=with_full([0, 1, 3], [2, *range(4, 12)]))
async def a_start_is_in_one_tick_of_both_ports_whatever_management_does(dut, seed):
    """Frames of all lengths hit every moment before a start and a timed start."""
    bench = TransmitDriver(dut, 50 if seed % 2 else 62.5)
    await bench.reset()
    rng = random.Random(seed)
    start_time = None if seed % 3 else 110_000 + rng.randrange(1000)
    frame = ProbeFrame(60)
    program = Program(count=3, start_time=start_time)
    for port in range(2):
        await bench.arm(port, frame, program)
    await Timer(rng.randrange(1000), "ns")
    sent = []

    async def disturb():
        for _ in range(12):
            sent.append(management_frame(rng, rng.choice([14, 60, 400, 1514])))
            await bench.manage(0, sent[-1])
            await Timer(rng.randrange(1, 14), "us")

    task = cocotb.start_soon(disturb())
    await Timer(rng.randrange(1, 60000), "ns")
    await bench.start([0, 1])
    await bench.until(0, TransmitState.IDLE)
    await task
    await Timer(60, "us")
    probes, management = check_program(bench, 0, frame, program)
    assert probes[0].start == bench.sinks[1].frames[0].start
    if start_time is not None:
        assert 0 <= probes[0].sfd_now - start_time < 8
    assert len(management) + bench.counters(0)["management_dropped"] == len(sent)


@cocotb.test()
async def what_finds_no_room_is_dropped_whole_and_counted_and_stop_is_obeyed(dut):
    bench = TransmitDriver(dut)
    await bench.reset()
    frame = ProbeFrame(1514)
    await bench.arm(0, frame, Program(count=100000))
    await bench.start([0])
    await Timer(20, "us")
    rng = random.Random(9)
    sent = [management_frame(rng, length) for length in [1200, 1400, 1540, 1300, 1400, 100, 200]]
    for one in sent:
        await bench.manage(0, one)
    await bench.pulse(dut.p0_stop)
    await bench.until(0, TransmitState.IDLE, 100)
    await Timer(60, "us")
    probes, management = split(bench.sinks[0].frames)
    assert all(wire.start > probes[-1].start for wire in management)
    kept = [wire_octets(sent[k]) for k in (0, 1, 3, 5)]
    assert [wire.octets for wire in management] == kept
    counters = bench.counters(0)
    assert (counters["management_sent"], counters["management_dropped"]) == (4, 3)
    await bench.manage(0, sent[2][:1536])
    await Timer(20, "us")
    assert bench.sinks[0].frames[-1].octets == wire_octets(sent[2][:1536])


def test_management():
    run_wire_test(__file__, "transmit_bench", write_verilog, "transmit_management")
