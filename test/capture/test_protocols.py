# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Holds what frames carry, by their headers, against the stacks that were sent and against tshark: hostile frames, samples."""

import io
import random
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from scapy.layers.dhcp6 import DHCP6_Solicit
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import ARP, GRE, Dot1Q, Ether
from scapy.layers.sctp import SCTP
from scapy.packet import Packet, Raw

from liteprobe.cores.formats import UnifiedFlag
from liteprobe.host.analysis.confidence import share_interval
from liteprobe.host.base.errors import UsageError
from liteprobe.host.capture import protocols
from liteprobe.host.capture.decode import BlockDecoder
from liteprobe.host.capture.protocols import ROWS_MOST, ProtocolCounts, ProtocolSampler, ProtocolTable, sampling_of
from liteprobe.host.capture.request import Sampling
from liteprobe.host.capture.sources import RecordedSource
from liteprobe.host.cli.commands.monitor import view
from liteprobe.host.probe import Probe
from liteprobe.host.serve.poll import Poller, document
from liteprobe.sim.drivers.capture.blocks import Captured, blocks_of
from liteprobe.sim.drivers.capture.ring import WithRing
from liteprobe.sim.drivers.serve.ways import monitor as arriving
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.models.probe.meters import MonitorProbe

START = 1_800_000_000_000_000_000
OFFICE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "office.blocks"
OF_ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
#: Frames, and what they are called.
STACKS: dict[str, list[Packet]] = {
    "IPv4 TCP https": [IP() / TCP(sport=50000, dport=443), Dot1Q(vlan=7) / Dot1Q(vlan=8) / IP() / TCP(sport=443, dport=50000)],
    "IPv4 TCP": [IP() / TCP(sport=50000, dport=50001)],
    "IPv4 UDP domain": [IP() / UDP(sport=53, dport=853), IP() / UDP(sport=50000, dport=53)],  # Of two the lower port.
    "IPv4 UDP": [IP() / UDP(sport=25, dport=50000)],  # That number is one of TCP.
    "IPv4 ICMP": [IP() / ICMP()],
    "IPv4 GRE": [IP() / GRE() / IP() / UDP(sport=50000, dport=53)],
    "IPv4 SCTP m3ua": [IP() / SCTP(sport=50000, dport=2905)],
    "IPv4 protocol 200": [IP(proto=200) / bytes(30)],
    "IPv6 UDP dhcpv6-client": [IPv6() / UDP(sport=546, dport=547) / DHCP6_Solicit()],
    "IPv6 ICMP6": [IPv6() / ICMPv6EchoRequest()],
    "ARP": [ARP()],
    "LLDP": [Raw(bytes(50))],
    "LLC": [Raw(bytes(50))],
    "type 0x9999": [Raw(bytes(50))],
}  # fmt: skip
TYPES = {"LLDP": 0x88CC, "LLC": 50, "type 0x9999": 0x9999}


def octets_of(name: str, packet: Packet) -> bytes:
    whole = OF_ETHER.copy()
    if name in TYPES:
        whole.type = TYPES[name]
    return bytes(whole / packet).ljust(60, b"\0")


def counted(frames: list[Captured]) -> ProtocolTable:
    counts = ProtocolCounts()
    counts.write(BlockDecoder().decode(blocks_of(frames)))
    return counts.table({port: sum(not one.missing for one in frames if one.port == port) for port in (0, 1)})


def found(table: ProtocolTable, port: int) -> dict[str, tuple[int, int]]:
    return {row.protocol: (row.frames, row.octets) for row in table.rows if row.port == port}


def test_each_stack_is_counted_under_its_name_at_its_port() -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print("seed", seed)
    draw, sent, frames = random.Random(seed), Counter[tuple[int, str]](), []
    octets = Counter[tuple[int, str]]()
    for number in range(600):
        name, port = draw.choice([*STACKS]), draw.randrange(2)
        made = octets_of(name, draw.choice(STACKS[name]))
        frames.append(Captured(START + number, made, port, with_header=True))
        sent[port, name] += 1
        octets[port, name] += len(made)
        if draw.random() < 0.1:
            frames.append(Captured(START + number, missing=draw.randrange(1, 99), port=port))
    table = counted(frames)
    for port in (0, 1):
        assert found(table, port) == {
            name: (count, octets[port, name]) for (at, name), count in sent.items() if at == port
        }
        total = sum(count for (at, _), count in sent.items() if at == port)
        rows = [row for row in table.rows if row.port == port]
        assert [row.frames for row in rows] == sorted((row.frames for row in rows), reverse=True)
        assert all(row.share.least == row.share.most == pytest.approx(row.frames / total) for row in rows)
        assert table.said(port) == f"of {total} of {total} frames"


def test_cut_broken_and_unread_frames_have_a_row_each_and_none_is_left_out() -> None:
    whole = octets_of("IPv4 UDP", IP() / UDP(sport=1, dport=2))
    frames = [
        Captured(START, whole[:20], with_header=True),  # Ends within the IP header.
        Captured(START + 1, whole[:14] + b"\x4f" + whole[15:], with_header=True),  # A header longer than the packet.
        Captured(START + 2, whole, with_header=False),  # As under load.
        Captured(START + 3, whole, flags=UnifiedFlag.FCS_ERROR, with_header=True),
        Captured(START + 4, octets_of("x", IP(frag=100) / bytes(40)), with_header=True),  # It has no ports.
    ]
    rows = found(counted(frames), 0)
    assert rows["header left out"] == (1, 60) and rows["IPv4 UDP"] == (1, 60)
    assert sum(count for count, _ in rows.values()) == 5


def test_a_flood_of_types_takes_no_more_than_its_rows() -> None:
    frames = [
        Captured(START + number, bytes(12) + number.to_bytes(2) + bytes(46), with_header=True)
        for number in range(0x600, 0x2000)
    ]
    rows = found(counted(frames), 0)
    assert len(rows) == ROWS_MOST
    assert rows["others"] == (len(frames) - ROWS_MOST + 1, 60 * (len(frames) - ROWS_MOST + 1))


@pytest.mark.skipif(not shutil.which("tshark"), reason="tshark, as a witness, is not installed: apt install tshark")
def test_the_office_is_as_tshark_sees_it() -> None:
    counts, decoder = ProtocolCounts(), BlockDecoder()
    for blocks, lengths in RecordedSource(OFFICE).batches():
        counts.write(decoder.decode(blocks, lengths))
    fields = ["frame.interface_id", "frame.len", "frame.protocols"]
    command = ["tshark", "-n", "-r", OFFICE.with_suffix(".pcapng"), "-T", "fields", *(f"-e{one}" for one in fields)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    words = {"ip": "IPv4", "ipv6": "IPv6", "arp": "ARP", "tcp": "TCP", "udp": "UDP", "icmp": "ICMP", "icmpv6": "ICMP6"}
    wanted, octets = Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    for port, length, carried in (line.split("\t") for line in told):
        name = " ".join(words[one] for one in carried.split(":") if one in words)
        wanted[int(port), name] += 1
        octets[int(port), name] += int(length)
    for port in (0, 1):
        without: Counter[str] = Counter()
        lengths_of: Counter[str] = Counter()
        for row in counts.table({port: 0}).rows:
            name = " ".join(row.protocol.split()[:2])  # Without the service.
            without[name] += row.frames
            lengths_of[name] += row.octets
        assert without == {name: count for (at, name), count in wanted.items() if at == port}
        assert lengths_of == {name: count for (at, name), count in octets.items() if at == port}


# Of a probe -----------------------------------------------------------------------------------------


class Line(WithRing, MonitorProbe):
    """A probe to whose port 0 frames come where a test says so."""

    def bring(self, frames: list[bytes]) -> None:
        for octets in frames:
            self._add(0, all_frames=1, all_octets=len(octets))
            self.keep(Captured(START, octets, 0))


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Line, Probe]]:
    monkeypatch.setattr(protocols, "TAKE_S", 60.0)  # A look has all that waits, however slow this machine is.
    model = Line(preset="monitor")
    with Probe(FakeLink(model, tmp_path)) as probe:
        yield model, probe


@pytest.mark.parametrize("one_of", [1, 2, 16])
def test_a_look_says_of_how_many_of_all_frames_its_protocols_are(one_of: int, line: tuple[Line, Probe]) -> None:
    model, probe = line
    udp, arp = (octets_of(name, STACKS[name][0]) for name in ("IPv4 UDP", "ARP"))
    model.bring([udp] * 7)  # Before: they are none of it.
    with ProtocolSampler(probe, sampling_of(one_of)) as sampler:
        poller = Poller(probe, [0], sampler=sampler)
        nothing = poller.look().protocols
        assert nothing and (nothing.seen, nothing.of, nothing.rows) == ({0: 0}, {0: 0}, [])
        draw = random.Random(one_of)
        sent = [draw.choice([udp, udp, udp, arp]) for _ in range(960)]
        model.bring(sent)
        poller.wait(0.01)
        table = poller.look().protocols
        assert table and (table.seen, table.of) == ({0: 960 // one_of}, {0: 960})
        shares = {row.protocol: row.share for row in table.rows}
        for name, octets in (("IPv4 UDP", udp), ("ARP", arp)):
            of_all = sent.count(octets) / 960
            assert shares[name].least - 1e-12 <= of_all <= shares[name].most + 1e-12
            assert (shares[name].most == shares[name].least) == (one_of == 1)
        assert model.values["port0_monitor_keep"] == 2 and model.values["port0_monitor_snap_length"] == 0
    assert model.values["port0_monitor_keep"] == model.values["capture_enable"] == 0  # Nothing goes on behind it.


def test_frames_that_the_ring_has_no_space_for_are_left_out_of_those_that_were_seen(line: tuple[Line, Probe]) -> None:
    model, probe = line
    with ProtocolSampler(probe, Sampling()) as sampler:
        poller = Poller(probe, [0], sampler=sampler)
        model.bring([octets_of("ARP", ARP())] * 5000)  # The ring has 4,096 blocks.
        look = poller.look()
        assert look.protocols and (look.protocols.seen, look.protocols.of) == ({0: 4096}, {0: 5000})
        assert look.channels[0].dropped == 904 and look.protocols.said(0) == "of 4,096 of 5,000 frames"


def test_a_terminal_has_the_table_below_its_port_and_json_all_rows(line: tuple[Line, Probe]) -> None:
    model, probe = line
    with ProtocolSampler(probe, sampling_of(2)) as sampler:
        model.bring(
            [octets_of("ARP", ARP())] * 20 + [bytes(12) + kind.to_bytes(2) + bytes(46) for kind in range(7000, 7040)]
        )
        look = Poller(probe, None, sampler=sampler).look()
    screen = io.StringIO()
    Console(width=80, file=screen).print(view(look))
    of_port = [one.strip(" │") for one in screen.getvalue().splitlines()]
    at = of_port.index("what frames carry, of 30 of 60 frames (one in 2); 5 more in --json")
    assert [one.split()[0] for one in of_port[at + 2 :][:3]] == ["protocol", "─" * len(of_port[at + 3]), "ARP"]
    assert re.fullmatch(r"ARP +10 +600 +34.3±11.6", of_port[at + 4])
    assert "what frames carry, of 0 of 0 frames (one in 2)" in of_port
    rows = document(look)["protocols"]["rows"]
    assert len(rows) == 21 and rows[0] == {
        "port": 0, "protocol": "ARP", "frames": 10, "octets": 600, "share": pytest.approx([0.2273, 0.4594], abs=1e-3)
    }  # fmt: skip


def test_what_cant_be_sampled_is_refused(tmp_path: Path) -> None:
    for one_of in (0, 3, 32, -1):
        with pytest.raises(UsageError, match=f"one frame in {one_of}: give 1, 2, 4, 8 or 16"):
            sampling_of(one_of)
    with Probe(FakeLink(MonitorProbe(), tmp_path)) as probe, pytest.raises(UsageError, match="captures nothing"):
        ProtocolSampler(probe, Sampling())


def test_frames_go_on_while_a_monitor_waits(tmp_path: Path) -> None:
    with Probe(FakeLink(arriving(), tmp_path)) as probe, ProtocolSampler(probe, sampling_of(1)) as sampler:
        poller = Poller(probe, None, sampler=sampler)
        looks = [poller.look().protocols for _ in range(3) if poller.wait(0.005) is None]
        seen = [one.seen[1] for one in looks if one]
        assert 0 < seen[0] < seen[1] < seen[2]
        assert {row.protocol for row in looks[-1].rows} == {"IPv4 TCP https", "IPv4 UDP domain", "IPv6 UDP", "ARP"}  # type: ignore[union-attr]


# Shares ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("of", "count", "such"), [(1000, 63, 300), (10_000, 625, 200), (200, 100, 3)])
def test_the_interval_of_a_share_holds_19_times_of_20(of: int, count: int, such: int) -> None:
    drawn = np.random.default_rng().hypergeometric(such, of - such, count, 2000)
    bounds = {number: share_interval(number, count, of) for number in set(drawn.tolist())}
    held = sum(bounds[number][0] <= such / of <= bounds[number][1] for number in drawn.tolist())
    assert held > 0.93 * 2000  # Score intervals come to 95 % on the average of shares, some below: 6 sigma under 0.96.


def test_the_interval_of_a_share_ends_in_a_point_and_begins_with_everything() -> None:
    assert share_interval(0, 0) == (0.0, 1.0)
    assert share_interval(0, 50, 50) == (0.0, 0.0) and share_interval(50, 50, 50) == (1.0, 1.0)
    # Wilson's own of 10 in 20, without end: by hand 0.5 +- 1.96/20 sqrt(5 + 0.96)/(1 + 3.84/20).
    assert share_interval(10, 20) == pytest.approx((0.29930, 0.70070), abs=1e-5)
