# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Marks of ECN at the pins of the whole simulated probe: as the reference and scapy have them, and tshark finds them good."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IP, TCP, UDP, IPOption_NOP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet as Layer, Raw

from liteprobe.cores.formats import TICK_NS
from liteprobe.cores.formats.emulate import UNMATCHED_CLASS, ClassCounter, ClassFlag
from liteprobe.sim.drivers.system.emulator import bank, emulating, rings
from liteprobe.sim.drivers.system.senders import Packet
from liteprobe.sim.models.emulator.settings import Settings

ALL = 2**32 - 1
# All that find something waiting.
RED = {"flags": int(ClassFlag.RED | ClassFlag.ECN), "red_most": 60_000, "red_slope": ALL}
CODEL = {"codel": 1, "codel_ecn": 1, "codel_target": 2000, "codel_interval": 20_000}


def frame(chance: random.Random) -> bytes:
    """Return a frame of any ECN codepoint, behind tags and labels, or one of something else."""
    layers: list[Layer] = [Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")]
    layers += [Dot1Q(vlan=chance.randrange(4096)) for _ in range(chance.choice([0, 0, 1, 2, 4]))]
    count = chance.choice([0, 0, 0, 1, 2, 4])
    layers += [MPLS(label=chance.randrange(16, 2**20), s=number == count - 1) for number in range(count)]
    tos = chance.randrange(256)
    ip = chance.choice(
        [IP(tos=tos, id=chance.randrange(2**16), options=[IPOption_NOP()] * chance.choice([0, 4])), IPv6(tc=tos)]
    )
    layers += [ip, chance.choice([UDP(dport=9), TCP(dport=9)])] if chance.random() < 0.9 or count else [ARP()]
    whole = layers[0]
    for one in layers[1:]:
        whole = whole / one
    return bytes(whole / Raw(chance.randbytes(chance.choice([60, 600, 1300]))))


@pytest.mark.parametrize("own", [RED, CODEL], ids=["red", "codel"])
def test_frames_are_marked_and_their_checksums_mended(
    emulator_build: Path, tmp_path: Path, own: dict[str, int]
) -> None:
    chance, made, now = random.Random(7), [], 0
    for _ in range(200):
        octets = frame(chance)
        made.append(Packet(1_700_000_000 * 10**9 + now, octets))
        now += TICK_NS * (len(octets) + 24)
    settings = Settings(bank({UNMATCHED_CLASS: own}, {"octet": 80_000}, rings({UNMATCHED_CLASS: 14}, 1 << 15), 6000))
    with emulating(emulator_build, tmp_path) as emulated:
        emulated.name_classes()
        emulated.start({0: settings})
        emulated.play({0: made}, 300e-6)
        assert emulated.compare(0, settings) == []
        marked, early = (emulated.counts(0)[UNMATCHED_CLASS][one] for one in (ClassCounter.MARKED, ClassCounter.EARLY))
    assert marked > 10 and early > 2
    tshark = shutil.which("tshark")
    if tshark:
        fields = (
            "ip.checksum.status",
            "ip.dsfield.ecn",
            "ipv6.tclass.ecn",
            "tcp.checksum.status",
            "udp.checksum.status",
        )
        options = [word for name in fields for word in ("-e", name)]
        checks = [word for name in ("ip", "tcp", "udp") for word in ("-o", f"{name}.check_checksum:TRUE")]
        read = [tshark, "-n", "-r", tmp_path / "pins.port1.out.pcap", "-T", "fields", "-E", "separator=,"]
        text = subprocess.run([*read, *options, *checks], capture_output=True, text=True, check=True).stdout
        rows = [line.split(",") for line in text.splitlines()]
        assert not [row for row in rows if "0" in (row[0], row[3], row[4])]  # Bad.
        assert sum("3" in (row[1], row[2]) for row in rows) >= marked
