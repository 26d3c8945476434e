# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Probe frames at the pins: every octet, by our model and by scapy."""

import struct
import zlib

import cocotb
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, in6_chksum
from scapy.layers.l2 import Dot1Q, Ether

from liteprobe.cores.formats import Fill, slot_octets
from liteprobe.sim.drivers.transmit.driver import Program, TransmitDriver, write_verilog
from liteprobe.sim.drivers.tools.wire import run_wire_test, with_full
from liteprobe.sim.models.traffic.trains import ProbeFrame, wire_octets
from liteprobe.sim.models.traffic.trains import starts

SIZES = [*range(60, 69), 127, 128, 129, 256, 512, 1024, 1514]
SIZES_IPV6 = [*range(88, 97), 127, 1513, 1514]


async def check_frames(bench, frame, count):
    """Send a train and compare every octet with the model; the stamp with the clock at the SFD."""
    seen = bench.sinks[0].frames
    seen.clear()
    await bench.run(0, frame, Program(count=count))
    assert [wire.octets for wire in seen] == [
        wire_octets(frame.octets(sequence, wire.sfd_now)) for sequence, wire in enumerate(seen)
    ]
    assert [wire.start - seen[0].start for wire in seen] == starts(count, 1, slot_octets(frame.length))
    assert (bench.counters(0)["sent"], bench.counters(0)["late"]) == (count, 0)
    return seen


@cocotb.test()
@cocotb.parametrize(sys_mhz=with_full([50], [62.5]), ppm=[-100, 100])
async def frames_are_those_of_the_model_octet_by_octet(dut, sys_mhz, ppm):
    bench = TransmitDriver(dut, sys_mhz, ppm)
    await bench.reset()
    for length in SIZES:
        await check_frames(bench, ProbeFrame(length, fill=Fill(length % 3)), 3)


@cocotb.test()
@cocotb.parametrize(fill=list(Fill), tags=[(), (0x2064,), (0x6001, 0x0FFF)])
async def checksums_of_ipv6_are_right_at_even_and_odd_lengths(dut, fill, tags):
    bench = TransmitDriver(dut)
    await bench.reset()
    for length in SIZES_IPV6:
        frame = ProbeFrame(length, ipv6=True, vlan_tags=tags, fill=fill)
        for wire in await check_frames(bench, frame, 2):
            packet = Ether(wire.data)
            datagram = bytes(packet[UDP])
            # A sum over all, its own checksum field included, is 0 after inversion.
            assert in6_chksum(17, packet[IPv6], datagram) in (0, 0xFFFF)


@cocotb.test()
@cocotb.parametrize(tags=[(), (0x2064,), (0x6001, 0x0FFF)])
async def scapy_reads_what_was_asked_for(dut, tags):
    bench = TransmitDriver(dut)
    await bench.reset()
    for length in [60 + 4 * len(tags), 129, 1514]:
        frame = ProbeFrame(length, vlan_tags=tags, stream_id=0xBEEF, fill=Fill.COUNTING)
        for sequence, wire in enumerate(await check_frames(bench, frame, 3)):
            assert wire.octets[:8] == b"\x55" * 7 + b"\xd5"
            assert zlib.crc32(wire.data) == struct.unpack("<I", wire.octets[-4:])[0]
            packet = Ether(wire.data)
            seen_tags = [packet.getlayer(Dot1Q, n + 1) for n in range(len(tags))]
            assert [tag.prio << 13 | tag.vlan for tag in seen_tags] == list(tags)
            header = packet[IP].copy()
            checksum = header.chksum
            del header.chksum
            assert IP(bytes(header)).chksum == checksum
            assert packet[IP].len == length - 14 - 4 * len(tags)
            assert packet[UDP].len == packet[IP].len - 20 and packet[UDP].chksum == 0
            payload = bytes(packet[UDP].payload)
            assert struct.unpack(">4sHIQ", payload[:18]) == (b"LPRO", 0xBEEF, sequence, wire.sfd_now)
            assert payload[18:] == bytes(k % 256 for k in range(len(payload) - 18))


def test_frames():
    run_wire_test(__file__, "transmit_bench", write_verilog, "transmit_frames")


@pytest.mark.full
def test_frames_from_64_bits():
    def write(path):
        write_verilog(path, data_width=64)

    run_wire_test(__file__, "transmit_bench", write, "transmit_frames_64", filter_="frames_are")
