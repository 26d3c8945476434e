# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Probe frames at the pins: every octet, every start."""

import struct

import cocotb

from liteprobe.cores.ethernet import slot_octets
from liteprobe.cores.formats import Fill
from liteprobe.sim.bench.transmit import write_verilog
from liteprobe.sim.bench.transmit_driver import Program, TransmitDriver
from liteprobe.sim.bench.wire import run_wire_test
from liteprobe.sim.models.probe_frame import ProbeFrame, wire_octets
from liteprobe.sim.models.schedule import starts

SIZES = [60, 61, 62, 63, 64, 65, 127, 128, 129, 256, 512, 1024, 1514]


def stamp_of(frame: ProbeFrame, octets: bytes) -> int:
    """Return the stamp in a frame as seen."""
    place = 8 + frame.payload_offset + 10
    return int(struct.unpack(">Q", octets[place : place + 8])[0])


@cocotb.test()
@cocotb.parametrize(sys_mhz=[50, 62.5], ppm=[-100, 100])
async def frames_are_those_of_the_model_octet_by_octet(dut, sys_mhz, ppm):
    bench = TransmitDriver(dut, sys_mhz, ppm)
    await bench.reset()
    seen = bench.sinks[0].frames
    for length in SIZES:
        frame = ProbeFrame(length, fill=Fill(length % 3))
        seen.clear()
        await bench.run(0, frame, Program(count=4))
        for sequence, wire in enumerate(seen):
            assert stamp_of(frame, wire.octets) == wire.sfd_now
            assert wire.octets == wire_octets(frame.octets(sequence, wire.sfd_now))
        assert [wire.start - seen[0].start for wire in seen] == starts(4, 1, slot_octets(length))
        assert bench.counters(0)["sent"] == 4 and bench.counters(0)["late"] == 0


def test_frames():
    run_wire_test(__file__, "transmit_bench", write_verilog, "transmit")
