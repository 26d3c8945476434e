# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Starts at the pins: intervals, trains, ports, time, stop."""

import struct
from fractions import Fraction

import cocotb
from cocotb.triggers import Timer

from liteprobe.cores.formats import NO_SEQUENCE, TransmitState, slot_octets
from liteprobe.sim.drivers.transmit.driver import Program, TransmitDriver, write_verilog
from liteprobe.sim.drivers.tools.wire import is_full, run_wire_test, with_full
from liteprobe.sim.models.traffic.trains import ProbeFrame, wire_octets
from liteprobe.sim.models.traffic.trains import starts

SIZES = [60, 64, 128, 256, 512, 1024, 1514, 9000]
CLEAN = {"late": 0, "first_late": NO_SEQUENCE, "underruns": 0}


def relative(frames):
    """Return the starts from the first one."""
    return [frame.start - frames[0].start for frame in frames]


def is_clean(bench, port, sent):
    """Tell whether the counters show ``sent`` frames and nothing else."""
    counters = bench.counters(port)
    return counters["sent"] == sent and all(counters[name] == value for name, value in CLEAN.items())


# Back to back ------------------------------------------------------------------------------------

@cocotb.test()
@cocotb.parametrize(sys_mhz=with_full([50], [62.5]))
async def trains_leave_back_to_back_on_both_ports_at_once(dut, sys_mhz):
    bench = TransmitDriver(dut, sys_mhz, ppm=-100, look_at=0)
    await bench.reset()
    for length in SIZES:
        count = 100 if length < 256 or is_full() else 25
        count = 1000 if is_full() and length < 256 else count # Of 1000: test_transmit_long.py.
        for sink in bench.sinks:
            sink.frames.clear()
        for port in range(2):
            await bench.arm(port, ProbeFrame(length), Program(count=count))
        await bench.start([0, 1])
        for port in range(2):
            await bench.until(port, TransmitState.IDLE, limit_us=8000)
            frames = bench.sinks[port].frames
            assert relative(frames) == starts(count, 1, Fraction(slot_octets(length)))
            assert {frame.ticks for frame in frames} == {length + 12}
            assert is_clean(bench, port, count)
        assert bench.sinks[0].frames[0].start == bench.sinks[1].frames[0].start


# Intervals ---------------------------------------------------------------------------------------

@cocotb.test()
@cocotb.parametrize(interval=[(84, 0), (84, 1), (84, 2**31), (85, 2**32 - 1), (100, 0x55555555), (168, 0xC0000001), (7000, 3)])
async def frames_start_in_the_tick_of_the_absolute_schedule(dut, interval):
    ticks, fraction = interval
    bench = TransmitDriver(dut, look_at=0)
    await bench.reset()
    count = 400 if ticks < 1000 else 10
    await bench.run(0, ProbeFrame(60), Program(count=count, interval_ticks=ticks, interval_fraction=fraction))
    assert relative(bench.sinks[0].frames) == starts(count, 1, ticks + Fraction(fraction, 2**32))
    assert is_clean(bench, 0, count)


@cocotb.test()
@cocotb.parametrize(gap=[0, 1, 83, 1000], interval=[(0, 0), (90, 2**31)])
async def trains_repeat_after_the_gap(dut, gap, interval):
    ticks, fraction = interval
    bench = TransmitDriver(dut, 62.5, look_at=None)
    await bench.reset()
    program = Program(count=5, repeats=4, interval_ticks=ticks, interval_fraction=fraction, gap_ticks=gap)
    frame = ProbeFrame(61)
    await bench.run(0, frame, program)
    seen = bench.sinks[0].frames
    spacing = ticks + Fraction(fraction, 2**32) if ticks else Fraction(slot_octets(61))
    assert relative(seen) == starts(5, 4, spacing, gap)
    for sequence, wire in enumerate(seen):
        assert wire.octets == wire_octets(frame.octets(sequence, wire.sfd_now))
    assert is_clean(bench, 0, 20)


@cocotb.test()
async def an_interval_below_the_slot_runs_back_to_back_and_counts_each_late_frame(dut):
    bench = TransmitDriver(dut, look_at=0)
    await bench.reset()
    await bench.run(0, ProbeFrame(60), Program(count=50, interval_ticks=80))
    assert relative(bench.sinks[0].frames) == starts(50, 1, Fraction(84))
    assert bench.counters(0) | {"sent": 50, "late": 49, "first_late": 1} == bench.counters(0)


@cocotb.test()
async def counters_of_a_program_start_from_zero_at_each_arm(dut):
    bench = TransmitDriver(dut, look_at=0)
    await bench.reset()
    await bench.run(0, ProbeFrame(60), Program(count=5, interval_ticks=80))
    assert bench.counters(0)["late"] == 4
    await bench.run(0, ProbeFrame(60), Program(count=7, interval_ticks=90))
    assert is_clean(bench, 0, 7)


# Time --------------------------------------------------------------------------------------------

@cocotb.test()
@cocotb.parametrize(offset_ns=[0, 1, 3, 7, 8, 1000001])
async def a_timed_program_has_its_first_sfd_in_the_first_tick_from_start_time_on(dut, offset_ns):
    bench = TransmitDriver(dut, 50)
    await bench.reset()
    time = 1_700_000_000_000_000_003
    await bench.set_time(time)
    start_time = time + 40_000 + offset_ns
    for port in range(2):
        await bench.arm(port, ProbeFrame(60), Program(count=2, interval_ticks=100, start_time=start_time))
    await bench.start([0, 1])
    await bench.until(0, TransmitState.WAITING, 10)
    await bench.until(0, TransmitState.IDLE, 2000)
    await bench.until(1, TransmitState.IDLE, 10)
    for sink in bench.sinks:
        assert 0 <= sink.frames[0].sfd_now - start_time < 8
        assert relative(sink.frames) == [0, 100]
    assert bench.sinks[0].frames[0].start == bench.sinks[1].frames[0].start
    assert is_clean(bench, 0, 2)


@cocotb.test()
@cocotb.parametrize(ago_ns=[8, 100, 10**9])
async def a_start_time_that_has_passed_starts_at_once(dut, ago_ns):
    bench = TransmitDriver(dut, 50)
    await bench.reset()
    await bench.set_time(2 * 10**9)
    await bench.arm(0, ProbeFrame(60), Program(count=3, interval_ticks=100, start_time=2 * 10**9 - ago_ns))
    await bench.start([0])
    await bench.until(0, TransmitState.IDLE, 10)
    assert relative(bench.sinks[0].frames) == [0, 100, 200]
    assert is_clean(bench, 0, 3)


@cocotb.test()
async def stamps_follow_a_clock_of_any_increment(dut):
    bench = TransmitDriver(dut, 50)
    await bench.reset()
    dut.increment.value = (7 << 40) + 987_654_321_987
    frame = ProbeFrame(60)
    await bench.run(0, frame, Program(count=40, interval_ticks=91, interval_fraction=12345))
    for wire in bench.sinks[0].frames:
        assert struct.unpack(">Q", wire.data[52:60])[0] == wire.sfd_now


# Start and stop ----------------------------------------------------------------------------------

@cocotb.test()
async def a_start_before_all_masked_ports_are_ready_starts_nothing_then_or_later(dut):
    bench = TransmitDriver(dut, look_at=0)
    await bench.reset()
    await bench.arm(1, ProbeFrame(1514), Program(count=1))
    await bench.until(1, TransmitState.READY)
    await bench.request_start([0, 1])
    await Timer(60, "us")
    assert bench.state(1) == TransmitState.READY and not bench.sinks[1].frames
    await bench.arm(0, ProbeFrame(60), Program(count=1))
    await Timer(60, "us")
    assert [bench.state(port) for port in (0, 1)] == [TransmitState.READY] * 2
    await bench.start([0, 1])
    await bench.request_start([0, 1])  # Doubled on its way.
    await bench.until(0, TransmitState.IDLE)
    await bench.until(1, TransmitState.IDLE)
    assert [len(sink.frames) for sink in bench.sinks] == [1, 1]
    assert bench.sinks[0].frames[0].start == bench.sinks[1].frames[0].start
    for port in (0, 1):
        await bench.arm(port, ProbeFrame(60), Program(count=1))
    await Timer(60, "us")
    assert [bench.state(port) for port in (0, 1)] == [TransmitState.READY] * 2


@cocotb.test()
@cocotb.parametrize(length=[60, 61, 1514], after_us=[0, 17, 25, 26])
async def a_stopped_program_ends_with_a_whole_frame_and_the_next_one_is_whole(dut, length, after_us):
    bench = TransmitDriver(dut)
    await bench.reset()
    frame = ProbeFrame(length)
    await bench.arm(0, frame, Program(count=1000))
    if after_us:
        await bench.start([0])
        await Timer(after_us, "us")
    await bench.pulse(dut.p0_stop)
    await bench.until(0, TransmitState.IDLE, 30)
    seen = bench.sinks[0].frames
    assert bench.counters(0)["sent"] == len(seen) < 1000
    assert relative(seen) == [k * slot_octets(length) for k in range(len(seen))]
    assert len(seen) == 0 if after_us < 17 else len(seen) >= 1
    for sequence, wire in enumerate(seen):
        assert wire.octets == wire_octets(frame.octets(sequence, wire.sfd_now))
    seen.clear()
    other = ProbeFrame(77)
    await bench.run(0, other, Program(count=3))
    assert [wire.octets for wire in seen] == [
        wire_octets(other.octets(sequence, wire.sfd_now)) for sequence, wire in enumerate(seen)
    ]
    assert is_clean(bench, 0, 3)


@cocotb.test()
async def a_waiting_program_can_be_stopped(dut):
    bench = TransmitDriver(dut)
    await bench.reset()
    await bench.arm(0, ProbeFrame(60), Program(count=3, start_time=10**15))
    await bench.start([0])
    await bench.until(0, TransmitState.WAITING, 10)
    await bench.pulse(dut.p0_stop)
    await bench.until(0, TransmitState.IDLE, 10)
    assert bench.sinks[0].frames == []


@cocotb.test()
@cocotb.parametrize(bad=[{"count": 0}, {"repeats": 0}])
async def a_program_without_frames_is_not_armed(dut, bad):
    bench = TransmitDriver(dut)
    await bench.reset()
    await bench.arm(0, ProbeFrame(60), Program(**{"count": 1, **bad}))
    await Timer(5, "us")
    assert bench.state(0) == TransmitState.IDLE
    await bench.run(0, ProbeFrame(60), Program(count=2))
    assert is_clean(bench, 0, 2)


def test_schedule():
    run_wire_test(__file__, "transmit_bench", write_verilog, "transmit_schedule")
