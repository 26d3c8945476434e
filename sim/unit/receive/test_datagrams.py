# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Tests that a probe joins the receiver of datagrams to its management port, its ports and its map."""

import struct
from types import SimpleNamespace

import pytest
from litex.gen import LiteXModule
from litex.soc.interconnect import stream
from liteeth.common import eth_phy_description
from migen import Signal, passive, run_simulation

from liteprobe.boards import board
from liteprobe.cores.capture.export import FrameArbiter
from liteprobe.cores.formats import DATAGRAM_MAGIC, RING_WORDS, TABLE_ENTRIES
from liteprobe.cores.memory.sdram import BurstPort
from liteprobe.sim.drivers.tools.compiled import apart
from liteprobe.sim.drivers.tools.steps import assign, pulse, wait_cycles, wait_until
from liteprobe.soc.config import ProbeConfig
from liteprobe.soc.export import soc_map
from liteprobe.soc.probe import ProbeSoC, add_datagrams, ring_address

MAC, IP = 0x10E2D5000001, "192.168.1.50"
HOST_MAC, HOST_IP = bytes.fromhex("02aabbccdd01"), bytes([192, 168, 1, 16])
SESSION, LEASE = 0x1234, 7
ARP = b"\xff" * 6 + HOST_MAC + b"\x08\x06" + bytes(range(46))


class Ports:
    """Burst ports, as of a memory."""

    def __init__(self):
        self.ports = []

    def add_port(self, writes=True):
        self.ports.append(BurstPort())
        return self.ports[-1]


def replay_port():
    """Return the signals of a port that replays."""
    widths = {"session": 16, "written": 32, "fetched": 32, "frames": 32, "underruns": 16, "first_underrun": 32}
    flags = ("opens", "closes", "restart", "is_restarted", "keeps", "errors", "is_running", "is_starved")
    return SimpleNamespace(**{name: Signal(widths.get(name, 1), name=name) for name in (*widths, *flags)})


class FakeProbe(LiteXModule):
    """Stands in for a probe, as `add_datagrams` asks: its stack echoes what comes, as an export would use the link too."""

    def __init__(self, with_export):
        self.probe_config = SimpleNamespace(
            ports=1,
            mac_address=MAC,
            ip_address=IP,
            replays=True,
            makes_sets=True,
            shares_sdram=True,
            stores_in_sdram=False,
            main_ram_kind=lambda _: "none",
        )
        self.board, self.sys_clk_freq = None, 50e6
        self.probe = SimpleNamespace(lease=SimpleNamespace(number=Signal(16, reset=LEASE), is_held=Signal(reset=1)))
        self.replay_ports = [replay_port()]
        self.words_as_registers = {}
        self.memories = {}
        self.receive = stream.Endpoint(eth_phy_description(32))
        self.transmit = stream.Endpoint(eth_phy_description(32))
        self.has_space = Signal()
        self.sdram, self.burst_ports = None, Ports()
        receive, transmit, has_space = add_datagrams(self, self.receive, self.transmit, self.has_space)
        if with_export:
            self.export = FrameArbiter()
            self.comb += receive.connect(self.export.first), self.export.source.connect(transmit)
            self.comb += self.export.has_space.eq(has_space)
        else:
            self.comb += receive.connect(transmit)

    def add_memory(self, name, bus, words):
        self.memories[name] = (bus, words)


def datagram(position, words):
    """Return a frame that carries words."""
    header = (DATAGRAM_MAGIC << 16 | 1 << 8, SESSION << 16 | LEASE, position)
    payload = struct.pack(f"<{3 + len(words)}I", *header, *words)
    udp = struct.pack(">4H", 5000, 1236, 8 + len(payload), 0)
    ip = struct.pack(">HHHHBBH", 0x4500, 28 + len(payload), 0, 0x4000, 64, 17, 0) + HOST_IP + bytes([192, 168, 1, 50])
    return (MAC.to_bytes(6, "big") + HOST_MAC + b"\x08\x00" + ip + udp + payload).ljust(60, b"\0")


def words_of(frame):
    return [
        (int.from_bytes(frame[at : at + 4], "little"), len(frame[at : at + 4]), at + 4 >= len(frame))
        for at in range(0, len(frame), 4)
    ]


def send(dut, frames):
    for frame in frames:
        for data, octets, last in words_of(frame):
            yield from assign(dut.receive, valid=1, data=data, last=last, last_be=1 << (octets - 1) if last else 0)
            yield
            yield from wait_until(dut.receive.ready)
    yield dut.receive.valid.eq(0)


@passive
def write_words(port, memory):
    """Take bursts into a memory."""
    while True:
        yield
        if (yield port.request.valid):
            address, rest = (yield port.request.address), (yield port.request.rest)
            yield from pulse(port.request.ready)
            yield port.takes.eq(1)
            for number in range(rest + 1):
                yield
                memory[address + number] = yield port.write_data
            yield port.takes.eq(0)


def joined(with_export, rooms):
    """Send an ARP request, a datagram and the request again; return the frames that leave, and what the memory got."""
    dut = FakeProbe(with_export)
    port, replay = dut.burst_ports.ports[0], dut.replay_ports[0]
    left, memory, waited = [], {}, []

    def drive():
        yield from assign(replay, session=SESSION, is_restarted=1, frames=99)
        yield from pulse(replay.opens)
        yield from wait_cycles(40)
        yield from send(dut, [ARP, datagram(0, [1, 2, 3, 4]), ARP])
        yield from wait_cycles(300)

    @passive
    def read():
        frame = b""
        yield dut.transmit.ready.eq(1)
        for cycle in range(100000):
            yield dut.has_space.eq(rooms(cycle))
            yield
            if (yield dut.transmit.valid):
                if not frame:
                    waited.append(rooms(cycle - 1) or rooms(cycle - 2))
                octets = {0: 4, 1: 1, 2: 2, 4: 3, 8: 4}[(yield dut.transmit.last_be)]
                frame += (yield dut.transmit.data).to_bytes(4, "little")[:octets]
                if (yield dut.transmit.last):
                    left.append(frame)
                    frame = b""

    run_simulation(dut, [drive(), read(), write_words(port, memory)])
    return left, memory, waited


@pytest.mark.parametrize("with_export", [False, True])
def test_answers_and_the_stack_share_the_way_out(with_export):
    left, memory, waited = joined(with_export, lambda cycle: cycle % 50 < 10)
    answer = struct.pack("<6I", DATAGRAM_MAGIC << 16, SESSION << 16 | LEASE, 4, RING_WORDS, 0, 99)
    answers = [frame for frame in left if frame[42:] == answer]
    assert sorted(left) == sorted([ARP, ARP, *answers]) and len(answers) == 1
    assert answers[0][:6] == HOST_MAC and answers[0][30:34] == HOST_IP
    assert memory == {TABLE_ENTRIES + place: place + 1 for place in range(4)}
    assert all(waited)


def test_words_of_a_replay_are_read_beside_the_counts():
    dut = FakeProbe(False)
    replay, (bus, words) = dut.replay_ports[0], dut.memories["datagrams"]
    shown = {"underruns": 0xABCD, "frames": 0x12345678, "first_underrun": 0xFEDCBA98, "errors": 1}
    found = {}

    def drive():
        yield from assign(replay, **shown, session=SESSION, is_restarted=1)
        yield from pulse(replay.opens)
        yield from wait_cycles(40)
        yield from send(dut, [datagram(0, [1, 2, 3, 4]), datagram(5, [6, 7])])  # That one is ahead.
        # While an answer waits for room, and shows words of its own.
        for name, place in dut.words_as_registers["datagrams"].items():
            assert place < words
            yield from assign(bus, adr=place, cyc=1, stb=1)
            yield
            yield from wait_until(bus.ack)
            found[name.removeprefix("port0_replay_")] = yield bus.dat_r
            yield bus.stb.eq(0)
            yield

    run_simulation(dut, drive())
    counts = {"accepted": 4, "datagrams": 1, "repeated": 0, "early": 1, "full": 0, "strange": 0}
    assert found == counts | shown


@pytest.mark.parametrize("fields", [{"ports": 1, "link": "own"}, {"ports": 2, "link": "shared"}])
def test_counts_are_registers_of_their_ports(quiet, fields):
    def made():
        soc = ProbeSoC(board("colorlight_i9"), ProbeConfig(preset="replay", with_cpu=False, **fields))
        soc.finalize()
        return soc_map(soc), ring_address(soc)

    found, ring = apart(made)
    base = found["memories"]["datagrams"]["base"]
    kinds = ("accepted", "datagrams", "repeated", "early", "full")
    expected = {
        f"port{port}_replay_{name}": base + 32 * port + 4 * place
        for port in range(fields["ports"])
        for place, name in enumerate(kinds)
    }
    expected |= {
        f"port{port}_replay_{name}": base + 64 + 32 * port + 4 * place
        for port in range(fields["ports"])
        for name, place in {"underruns": 4, "frames": 5, "first_underrun": 6, "errors": 7}.items()
    }
    expected |= {f"port{port}_replay_strange": base + 24 for port in range(fields["ports"])}
    its = {name: found["csr_registers"][name]["addr"] for name in expected}
    assert its == expected
    assert ring == TABLE_ENTRIES  # Without a processor there is no firmware before it.
