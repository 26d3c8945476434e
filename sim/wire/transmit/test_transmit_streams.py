# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Frames that bring their own tick, length and stamp, at the pins, against plain arithmetic."""

import random
import struct

import cocotb
from cocotb.triggers import Timer
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

from liteprobe.cores.formats import HORIZON, NO_SEQUENCE, STAMP_OFFSET_MIN, STREAMS, Fill, TransmitState, slot_octets
from liteprobe.sim.drivers.tools.wire import run_wire_test, with_full
from liteprobe.sim.drivers.transmit.driver import Program
from liteprobe.sim.drivers.transmit.streams import ScriptedFrame, StreamsDriver, counts_of, starts_of, write_verilog
from liteprobe.sim.models.traffic.trains import ProbeFrame, ones_sum, wire_octets

SHIFTS = [0, 3, 12]
TIME = 0x1234_5678_9ABC_DEF1  # ns; every octet and nibble of it differs.


async def check(bench, frames, **how):
    """Run a script; compare octets and starts of all frames, by the first start of a train on the other port, and counters."""
    for sink in bench.sinks:
        sink.frames.clear()
    await bench.arm(1, ProbeFrame(60), Program(count=1))
    await bench.arm_streams(frames, **how)
    await bench.start([0, 1])
    await bench.until(0, TransmitState.IDLE, 5000)
    seen = bench.sinks[0].frames
    assert [wire.octets for wire in seen] == [
        wire_octets(bench.expected(frame, wire.sfd_now)) for frame, wire in zip(frames, seen, strict=True)
    ]
    begin = bench.sinks[1].frames[0].start
    assert [wire.start - begin for wire in seen] == starts_of(frames)
    counts = counts_of(frames)
    assert {stream: await bench.sent(stream) for stream in range(STREAMS)} == counts
    counters = bench.counters(0)
    late = sum(one[1] for one in counts.values())
    assert (counters["sent"], counters["late"], counters["underruns"]) == (len(frames), late, 0)
    return seen


def random_settings(rng, stream):
    """Return what all frames of a stream have in common."""
    with_probe = rng.random() < 0.5
    header = rng.randbytes(4 * rng.randrange(4, 13))
    payload_offset = 4 * rng.randrange(5, 11) - 2
    shift, octets = rng.choice([(0, 8), (0, 2), (3, 4), (7, 3), (12, 2)])
    checksum = rng.random() < 0.5
    place = rng.randrange(STAMP_OFFSET_MIN, 50)
    if checksum and place < payload_offset < place + octets:
        place = payload_offset
    return {
        "stream": stream,
        "header": header,
        "with_probe": with_probe,
        "fill": rng.choice(list(Fill)),
        "payload_offset": payload_offset,
        "checksum_enable": checksum,
        "checksum_seed": rng.randrange(2**16),
        "stamp_enable": rng.random() < 0.8,
        "stamp_offset": place,
        "stamp_octets": octets,
        "stamp_shift": shift,
        "stamp_nibble": rng.random() < 0.3,
    }


@cocotb.test()
@cocotb.parametrize(seed=with_full([1], [2, 3, 4, 5, 6]))
async def frames_of_several_streams_leave_when_due_as_they_are_meant(dut, seed):
    rng = random.Random(seed)
    bench = StreamsDriver(dut, 46.875 if seed % 2 else 62.5, ppm=-100)
    await bench.reset()
    await bench.set_time(TIME)
    streams = [random_settings(rng, stream) for stream in rng.sample(range(STREAMS), 6)]
    frames, sequences, due = [], dict.fromkeys(range(STREAMS), 0), 0
    for _ in range(100):
        settings = rng.choice(streams)
        stream = settings["stream"]
        length = rng.choice([60, 61, rng.randrange(60, 300), rng.randrange(60, 300)] + [1514] * (rng.random() < 0.05))
        frames.append(ScriptedFrame(sequence=sequences[stream], length=length, due=due, **settings))
        sequences[stream] += 1
        due += rng.choice([0, 84, slot_octets(length), slot_octets(length) + 1, rng.randrange(1000), -50])
        if rng.random() < 0.05:
            due += HORIZON + rng.randrange(-100, 3000)
    await check(bench, frames)
    # Again, from counters that are not 0, and with a script of others before.
    await check(bench, frames[40:60:-1] + [frames[0]])


@cocotb.test()
@cocotb.parametrize(shift=SHIFTS)
async def a_stamp_is_written_at_each_place(dut, shift):
    bench = StreamsDriver(dut)
    await bench.reset()
    await bench.set_time(TIME)
    header = bytes(range(0xE0, 0xE0 + 16))
    frames = []
    for number, offset in enumerate(range(STAMP_OFFSET_MIN, 72)):
        octets = min(1 + number % 8, 8 - shift // 2)
        frames.append(
            ScriptedFrame(
                number % 16,
                number,
                84,
                108 * number,
                header,
                fill=Fill.PRBS,
                stamp_enable=True,
                stamp_offset=offset,
                stamp_octets=octets,
                stamp_shift=shift,
                stamp_nibble=number % 3 == 0,
                # A stamp is in the sum as a whole, or not at all.
                payload_offset=40,
                checksum_enable=not offset < 40 < offset + octets,
                checksum_seed=number,
            )
        )
    await check(bench, frames)


def ipv4_header(rng, tags):
    """Return an Ethernet and IPv4 header, then a port number each, with an identification of 0 and its checksum."""
    header = struct.pack(
        ">BBHHHBBH", 0x45, rng.randrange(256), 64, 0, 0x4000, rng.randrange(1, 256), 17, 0
    ) + rng.randbytes(8)
    header = header[:10] + struct.pack(">H", ones_sum(header) ^ 0xFFFF) + header[12:]
    ethernet = rng.randbytes(12) + b"\x81\x00\x00\x01" * tags + b"\x08\x00"
    return ethernet + header + rng.randbytes(2)


@cocotb.test()
@cocotb.parametrize(tags=[0, 1])
async def the_checksum_of_ipv4_follows_a_stamp_in_its_identification(dut, tags):
    bench = StreamsDriver(dut)
    await bench.reset()
    rng = random.Random(tags)
    for shift in SHIFTS:
        # So that the octets of the stamp reach all over 16 bits, the sum of the header and of it 0xffff, too.
        await bench.set_time(rng.randrange(2**63))
        frames = [
            ScriptedFrame(
                number,
                0,
                90,
                200 * number,
                ipv4_header(rng, tags),
                stamp_enable=True,
                stamp_offset=18 + 4 * tags,
                stamp_octets=2,
                stamp_shift=shift,
                stamp_mend=True,
            )
            for number in range(STREAMS)
        ]
        for wire in await check(bench, frames):
            header = Ether(wire.data)[IP].copy()
            checksum = header.chksum
            del header.chksum
            assert IP(bytes(header)).chksum == checksum


@cocotb.test()
async def what_is_overdue_by_any_time_leaves_at_once_and_moves_nothing_later(dut):
    bench = StreamsDriver(dut)
    await bench.reset()
    header = bytes(range(16))
    dues = [
        0,
        -5,
        -(2**17),
        -(2**17) - 1,
        -(2**19),
        -(2**20),
        -(2**40),
        -(2**62),
        3000,
        -(2**20) + 3100,
        12_000,
        12_084,
    ]
    frames = [ScriptedFrame(number, number, 60, due, header) for number, due in enumerate(dues)]
    await check(bench, frames)


@cocotb.test()
async def management_passes_where_no_frame_is_due_and_never_moves_one(dut):
    bench = StreamsDriver(dut)
    await bench.reset()
    rng = random.Random(4)
    header = bytes(range(16))
    dues = [0, 100, 30_000, 31_700, 60_000]
    frames = [ScriptedFrame(0, number, 60, due, header) for number, due in enumerate(dues)]
    await bench.arm_streams(frames)
    await bench.start([0])
    sent = []
    for number in range(24):
        await Timer(rng.randrange(10_000, 30_000), "ns")
        sent.append(b"\x02\xee" + rng.randbytes(rng.choice([58, 300, 1534])))
        await bench.manage(0, sent[-1])
        if number == 0:
            await Timer(20_000, "ns")
    await bench.until(0, TransmitState.IDLE)
    await Timer(30_000, "ns")
    seen = bench.sinks[0].frames
    probes = [wire for wire in seen if wire.data[:2] != b"\x02\xee"]
    assert [wire.start - probes[0].start for wire in probes] == dues
    assert [wire.octets for wire in seen if wire not in probes] == [wire_octets(frame) for frame in sent]
    counters = bench.counters(0)
    assert (counters["sent"], counters["late"], counters["management_dropped"]) == (len(dues), 0, 0)
    # All but the few that met a frame in waiting, or came within 256 ticks after one.
    assert counters["management_held"] < 6
    assert len([wire for wire in seen if probes[1].start < wire.start < probes[2].start]) > 5


@cocotb.test()
async def a_program_without_frames_is_ready_and_goes_on_until_stop(dut):
    bench = StreamsDriver(dut)
    await bench.reset()
    await bench.arm_streams([], hold=True)
    await bench.start([0])
    await Timer(50, "us")
    assert bench.state(0) == TransmitState.RUNNING
    reply = b"\x02\xee" + bytes(100)
    await bench.manage(0, reply)
    await Timer(10, "us")
    assert [wire.octets for wire in bench.sinks[0].frames] == [wire_octets(reply)]
    await bench.pulse(dut.p0_stop)
    await bench.until(0, TransmitState.IDLE, 10)
    # Without hold it ends by itself, at once.
    await bench.arm_streams([])
    await bench.start([0])
    await bench.until(0, TransmitState.IDLE, 10)
    assert len(bench.sinks[0].frames) == 1


@cocotb.test()
async def streams_start_at_a_time_and_are_stopped(dut):
    bench = StreamsDriver(dut)
    await bench.reset()
    await bench.set_time(10**9)
    header = bytes(range(16))
    frames = [ScriptedFrame(0, number, 60, 1000 * number, header) for number in range(100)]
    await bench.arm_streams(frames, start_time=10**9 + 60_003)
    await bench.start([0])
    await bench.until(0, TransmitState.RUNNING, 100)
    await Timer(100, "us")
    await bench.pulse(dut.p0_stop)
    await bench.until(0, TransmitState.IDLE, 20)
    seen = bench.sinks[0].frames
    assert 0 <= seen[0].sfd_now + 16 - (10**9 + 60_003) < 8
    assert [wire.start - seen[0].start for wire in seen] == [1000 * number for number in range(len(seen))]
    assert 11 <= len(seen) <= 14
    assert await bench.sent(0) == (len(seen), 0, NO_SEQUENCE)
    await bench.pulse(dut.p0_clear)
    await bench.cycles(100)
    assert await bench.sent(0) == (0, 0, NO_SEQUENCE)


@cocotb.test()
async def a_port_with_streams_sends_trains_as_any(dut):
    bench = StreamsDriver(dut)
    await bench.reset()
    header = bytes(range(16))
    for length, ipv6 in [(60, False), (123, True), (1514, False)]:
        await bench.run_streams([ScriptedFrame(3, 0, 60, 0, header)])
        assert await bench.sent(3) == (1, 0, NO_SEQUENCE)
        bench.sinks[0].frames.clear()
        frame = ProbeFrame(length, ipv6=ipv6, fill=Fill.PRBS)
        await bench.run(0, frame, Program(count=5, interval_ticks=slot_octets(length) + 7))
        seen = bench.sinks[0].frames
        assert [wire.octets for wire in seen] == [
            wire_octets(frame.octets(sequence, wire.sfd_now + 16)) for sequence, wire in enumerate(seen)
        ]
        assert [wire.start - seen[0].start for wire in seen] == [(slot_octets(length) + 7) * k for k in range(5)]
        assert bench.counters(0)["sent"] == 5
        assert await bench.sent(3) == (1, 0, NO_SEQUENCE)


def test_streams():
    run_wire_test(__file__, "streams_bench", write_verilog, "transmit_streams")
