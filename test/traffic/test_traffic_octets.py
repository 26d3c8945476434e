# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Octets of the model of streams, by scapy and tshark as independent witnesses."""

import ipaddress
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6, in6_chksum
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether
from scapy.packet import Packet
from scapy.utils import checksum as internet_checksum

from liteprobe.host.traffic.stream import (
    Decrement,
    Field,
    Fixed,
    Headers,
    Increment,
    Interval,
    Random,
    Stamp,
    Stream,
    Values,
)
from liteprobe.sim.drivers.frames.random_streams import StreamMaker
from liteprobe.sim.drivers.frames.tshark import write_pcap
from liteprobe.sim.models.traffic.streams import Xorshift, octets, schedule, state_of

SEED = 1916
NOW = 0x0123_4567_89AB_CDEF  # Far from 0 in all of its octets.


def frames_of(stream: Stream, count: int) -> list[bytes]:
    return list(octets([stream], schedule([stream], count), lambda start: NOW + 8 * start))


def test_octets_of_a_probe_frame_are_those_of_a_worked_example() -> None:
    frame = frames_of(Stream("a", 0xBEEF, Fixed(64), Interval(), fill="counting"), 2)[1]
    ip = "45000032000040004011ae93c6120001c6120002"
    assert frame.hex() == (
        "024c50540002"
        "024c50540001"
        "0800" + ip + "c020c021001e0000"
        "4c50524fbeef00000001" + f"{NOW + 8 * 88:016x}" + "00010203"
    )


RANDOM_STREAMS = [stream for seed in range(30) for stream in StreamMaker(SEED + seed, any_bits=0).streams(10)]


@pytest.fixture(scope="module")
def dissected() -> list[tuple[Stream, list[bytes]]]:
    """300 random streams, the first frames of each, whatever the others do."""
    print(f"seed {SEED}")
    return [(stream, frames_of(stream, 3)) for stream in RANDOM_STREAMS]


def test_scapy_finds_all_checksums_of_random_streams_right(dissected: list[tuple[Stream, list[bytes]]]) -> None:
    seen: Counter[str] = Counter()
    for stream, frames in dissected:
        for frame in frames:
            packet = Ether(frame)
            if stream.headers.is_ipv4 and (stream.stamp is None or stream.stamp.place != "ipv4.checksum"):
                assert internet_checksum(bytes(packet[IP])[:20]) == 0, stream
                seen["ip"] += 1
            transport = packet.getlayer(UDP) or packet.getlayer(TCP)
            if stream.used_checksum == "none":
                assert transport is None or (transport.name, transport.chksum) == ("UDP", 0)
                continue
            assert transport is not None
            assert transport_checksum(packet, transport) in (0, 0xFFFF), stream
            seen[f"{transport.name} of {stream.used_checksum}"] += 1
    kinds = {"ip", "UDP of complement", "UDP of host", "TCP of complement", "TCP of host"}
    assert {kind for kind, count in seen.items() if count >= 3} == kinds, seen


def transport_checksum(packet: Packet, transport: Packet) -> int:
    """Return the sum over UDP or TCP with its pseudo-header, which is 0 where it is right."""
    octets_of_it = bytes(transport)
    protocol = 17 if transport.name == "UDP" else 6
    if IPv6 in packet:
        found: int = in6_chksum(protocol, packet[IPv6], octets_of_it)
        return found
    pseudo = bytes(packet[IP])[12:20] + bytes([0, protocol]) + len(octets_of_it).to_bytes(2)
    found = internet_checksum(pseudo + octets_of_it)
    return found


def test_scapy_reads_the_fields_that_were_asked_for(dissected: list[tuple[Stream, list[bytes]]]) -> None:
    for stream, frames in dissected:
        for sequence, frame in enumerate(frames):
            assert_fields(stream, sequence, frame)


Named = dict[str, object]

BITS = {
    **{"vlan.id": 12, "vlan.priority": 3, "mpls.label": 20, "ipv4.tos": 8, "ipv4.identification": 16},
    **{"ipv6.flow_label": 20, "tcp.sequence": 32, "mac.source": 32, "mac.destination": 32},
    **{
        f"{name}.{end}": bits
        for name, bits in (("ipv4", 32), ("ipv6", 32), ("udp", 16), ("tcp", 16))
        for end in ("source", "destination")
    },
}


def assert_fields(stream: Stream, sequence: int, frame: bytes) -> None:
    """Hold what scapy reads against the headers, with what each modifier should have put there by now."""
    found, expected = as_found(frame, stream.headers), as_asked(stream.headers, len(frame))
    if stream.stamp is not None and stream.stamp.place in expected:
        time = NOW + 8 * int(schedule([stream], sequence + 1)["start"][sequence])
        expected[stream.stamp.place] = (time >> 4 * stream.stamp.tick) % 2 ** BITS[stream.stamp.place]
    for modifier in stream.modifiers:
        assert isinstance(modifier.field, str)
        now, asked = (low_bits(one.pop(modifier.field), modifier.field) for one in (found, expected))
        if isinstance(modifier, Values):
            turn = as_number(modifier.values[sequence % len(modifier.values)])
            assert now == turn or (modifier.random and now in map(as_number, modifier.values)), (stream, modifier)
        elif isinstance(modifier, Increment):
            first = asked if modifier.first is None else as_number(modifier.first)
            turns = sequence % modifier.count if modifier.count else sequence
            step = -modifier.step if isinstance(modifier, Decrement) else modifier.step
            bits = BITS[re.sub(r"\[.\]", "", modifier.field)]
            assert now == (first + turns * step) % 2**bits, (stream, modifier)
    assert found == expected, stream
    if stream.probe and not (stream.stamp and stream.stamp.place == "octet"):
        probe = frame[stream.headers.payload_offset :]
        stamp = bytes(8) if stream.stamp and stream.stamp.place != "probe" else probe[10:18]
        assert probe[:18] == b"LPRO" + stream.stream_id.to_bytes(2) + sequence.to_bytes(4) + stamp


def as_asked(headers: Headers, length: int) -> Named:
    """Return what the fields of a frame should be, before anything changes."""
    fields: Named = {"mac.destination": headers.destination_mac, "mac.source": headers.source_mac}
    for number, tci in enumerate(headers.vlan_tags):
        fields |= {f"vlan[{number}].id": tci & 0xFFF, f"vlan[{number}].priority": tci >> 13}
        fields[f"vlan[{number}] is service"] = number == 0 and len(headers.vlan_tags) > 1
    for number, label in enumerate(headers.mpls_labels, 1):
        others = (label.traffic_class, label.ttl, int(number == len(headers.mpls_labels)))
        fields |= {f"mpls[{number - 1}].label": label.label, f"mpls[{number - 1}] others": others}
    network = 14 + 4 * len(headers.vlan_tags) + 4 * len(headers.mpls_labels)
    ends: Named = {"source": headers.source_ip, "destination": headers.destination_ip}
    if headers.is_ipv4:
        fields |= {f"ipv4.{end}": address for end, address in ends.items()}
        fields |= {"ipv4.tos": headers.traffic_class, "ttl": headers.ttl, "ipv4.identification": 0}
        fields |= {"length": length - network}
    if headers.is_ipv6:
        fields |= {f"ipv6.{end}": address for end, address in ends.items()}
        fields |= {"traffic class": headers.traffic_class, "ttl": headers.ttl, "ipv6.flow_label": headers.flow_label}
        fields |= {"length": length - network - 40}
    kind = headers.transport if headers.has_transport else "none"
    if kind != "none":
        fields |= {f"{kind}.source": headers.source_port, f"{kind}.destination": headers.destination_port}
    if kind == "udp":
        fields["udp length"] = length - network - (20 if headers.is_ipv4 else 40)
    if kind == "tcp":
        fields |= {"tcp.sequence": 0, "flags": 0x10, "offset": 5}
    return fields


def as_found(frame: bytes, headers: Headers) -> Named:
    """Return what scapy reads."""
    packet = Ether(frame)
    fields: Named = {"mac.destination": packet.dst, "mac.source": packet.src}
    for number, tag in enumerate(_layers(packet, (Dot1AD, Dot1Q))):
        fields |= {f"vlan[{number}].id": tag.vlan, f"vlan[{number}].priority": tag.prio}
        fields[f"vlan[{number}] is service"] = isinstance(tag, Dot1AD)
    for number, label in enumerate(_layers(packet, (MPLS,))):
        fields |= {f"mpls[{number}].label": label.label, f"mpls[{number}] others": (label.cos, label.ttl, label.s)}
    if not headers.has_ip:
        return fields
    if IP in packet:
        ip = packet[IP]
        fields |= {"ipv4.source": ip.src, "ipv4.destination": ip.dst, "ipv4.tos": ip.tos, "ttl": ip.ttl}
        fields |= {"length": ip.len, "ipv4.identification": ip.id}
    if IPv6 in packet:
        ip = packet[IPv6]
        fields |= {"ipv6.source": ip.src, "ipv6.destination": ip.dst, "traffic class": ip.tc, "ttl": ip.hlim}
        fields |= {"length": ip.plen, "ipv6.flow_label": ip.fl}
    if UDP in packet:
        udp = packet[UDP]
        fields |= {"udp.source": udp.sport, "udp.destination": udp.dport, "udp length": udp.len}
    if TCP in packet:
        tcp = packet[TCP]
        fields |= {"tcp.source": tcp.sport, "tcp.destination": tcp.dport}
        fields |= {"tcp.sequence": tcp.seq, "flags": int(tcp.flags), "offset": tcp.dataofs}
    return fields


def _layers(packet: Packet, kinds: tuple[type[Packet], ...]) -> list[Packet]:
    """Return the layers of these kinds before anything that a payload was guessed to be."""
    found = []
    layer = packet.payload
    while layer and not isinstance(layer, (IP, IPv6)):
        if isinstance(layer, kinds):
            found.append(layer)
        layer = layer.payload
    return found


def as_number(value: int | str) -> int:
    return value if isinstance(value, int) else low_bits(value, "")


def low_bits(value: object, field: str) -> int:
    """Return the last 32 bits of an address, or a number as it is."""
    if isinstance(value, int):
        return value
    text = str(value)
    if text.count(":") == 5 and field.startswith("mac"):
        return int(text.replace(":", ""), 16) % 2**32
    return int(ipaddress.ip_address(text)) % 2**32


def test_bits_of_any_place_change_and_no_others() -> None:
    place = Field(16, 0x00F0_0F00)
    plain = Stream("a", 1, Fixed(100), Interval(), headers=Headers(vlan_tags=(0, 0)), probe=False, fill="prbs")
    before = frames_of(plain, 1)[0]
    changes = (Increment(place, 3, 0x0F00), Values(Field(24, 0xFF), (0x80, 0x40)))
    for number, frame in enumerate(frames_of(Stream(**{**vars(plain), "modifiers": changes}), 8)):
        window = int.from_bytes(before[16:20]) & ~0x00F0_0F00 | (3 + 0x0F00 * number << 8) & 0x00F0_0F00
        assert frame[16:20] == window.to_bytes(4)
        assert frame[27] == (0x80, 0x40)[number % 2]
        changed = {n for n in range(100) if frame[n] != before[n]}
        assert changed <= {17, 18, 27, 32, 33}  # The last two: the checksum of the header, whose TTL or flags changed.


def test_random_bits_are_those_of_the_next_number() -> None:
    stream = Stream("a", 1, Fixed(60), modifiers=(Random("udp.source"), Random("ipv4.source")))
    frames = frames_of(stream, 50)
    for purpose, octet, count in ((2, 34, 2), (3, 26, 4)):
        draws = Xorshift(state_of(stream, purpose))
        expected = [(draws.draw() % 2 ** (8 * count)).to_bytes(count) for _ in range(50)]
        assert [frame[octet : octet + count] for frame in frames] == expected


@pytest.mark.parametrize("tick", [0, 3, 15])
def test_stamps_stand_where_they_were_asked_for(tick: int) -> None:
    ipv6 = Headers(source_ip="2001:2::1", destination_ip="2001:2::2", traffic_class=0xA5)
    for headers, stamp, octet, bits in (
        (Headers(), Stamp("octet", 50, 24, tick), 50, 24),
        (Headers(vlan_tags=(1,)), Stamp("ipv4.identification", tick=tick), 22, 16),
        (Headers(), Stamp("ipv4.checksum", tick=tick), 24, 16),
        (ipv6, Stamp("ipv6.flow_label", tick=tick), 14, 20),
    ):
        stream = Stream("a", 1, Fixed(100), Interval(), headers=headers, probe=False, stamp=stamp)
        for frame, start in zip(frames_of(stream, 2), [0, 124], strict=True):
            found = int.from_bytes(frame[octet : octet + -(-bits // 8) + (bits == 20)]) % 2**bits
            assert found == (NOW + 8 * start) // 16**tick % 2**bits


# tshark as a second witness ----------------------------------------------------------------------------


def test_tshark_accepts_every_checksum(tmp_path: Path, dissected: list[tuple[Stream, list[bytes]]]) -> None:
    assert shutil.which("tshark"), "tshark is missing: ./run setup test"
    listed = [(stream, frame) for stream, frames in dissected for frame in frames]
    write_pcap(tmp_path / "frames.pcap", [frame for _, frame in listed])
    fields = ("ip.checksum.status", "udp.checksum.status", "tcp.checksum.status", "frame.protocols")
    command = ["tshark", "-n", "-r", str(tmp_path / "frames.pcap"), "-T", "fields", "-E", "occurrence=f"]
    for checked in ("ip.check_checksum", "udp.check_checksum", "tcp.check_checksum"):
        command += ["-o", f"{checked}:TRUE"]
    command += [word for name in fields for word in ("-e", name)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    counts: Counter[str] = Counter()
    for (stream, _), line in zip(listed, done.stdout.splitlines(), strict=True):
        ip, udp, tcp, protocols = line.split("\t")
        wrong = stream.stamp is not None and stream.stamp.place == "ipv4.checksum" and stream.headers.is_ipv4
        kind = stream.headers.transport if stream.headers.has_transport else ""
        assert ip == ("" if not stream.headers.is_ipv4 else "0" if wrong else "1"), (stream, protocols)
        absent = stream.used_checksum == "none"
        assert udp == ("" if kind != "udp" else "3" if absent else "1"), (stream, protocols)
        assert tcp == ("" if kind != "tcp" else "1"), (stream, protocols)
        counts[f"{kind} {udp}{tcp}"] += 1
    assert min(counts["udp 1"], counts["udp 3"], counts["tcp 1"]) > 30, counts
