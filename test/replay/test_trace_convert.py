# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Captures that are played into a simulated probe: what scapy reads in the file that its player gets."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest
from scapy.utils import RawPcapReader

from liteprobe.host.base.errors import UsageError
from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.packets.files import as_pcap
from liteprobe.sim.drivers.replay.capture_files import Interface, Packet, pcap, pcapng, random_packets

INTERFACES = (Interface(), Interface(6, offset_s=3600, fcs=4), Interface(0x80 | 20))


def read(path: Path) -> list[tuple[Fraction, int, bytes]]:
    """Return time after the first packet (s), length and octets of each."""
    with RawPcapReader(str(path)) as reader:
        found = [(Fraction(meta.sec * 10**9 + meta.usec, 10**9), meta.wirelen, octets) for octets, meta in reader]
        assert (reader.nano, reader.linktype) == (True, 1)
    return [(time - found[0][0], *rest) for time, *rest in found]  # type: ignore[misc]


def wanted(packets: Sequence[Packet], fcs: Sequence[int]) -> list[tuple[Fraction, int, bytes]]:
    lengths = [max(one.length - fcs[one.interface], 0) for one in packets]
    times = [one.time_s - packets[0].time_s for one in packets]
    return [(*pair, one.octets[: pair[1]]) for *pair, one in zip(times, lengths, packets, strict=True)]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("seed", [1, 2])
def test_pcapng_is_played_as_pcap(tmp_path: Path, order: str, seed: int) -> None:
    packets = random_packets(seed, 300, interfaces=3)
    (tmp_path / "a.pcapng").write_bytes(pcapng(packets, INTERFACES, order))
    with as_pcap(tmp_path / "a.pcapng") as path:
        found = read(path)
    fcs = [one.fcs for one in INTERFACES]
    assert [one[1:] for one in found] == [one[1:] for one in wanted(packets, fcs)]
    off = [abs(got[0] - one[0]) for got, one in zip(found, wanted(packets, fcs), strict=True)]
    assert max(off) < Fraction(2, 1 << 20)  # The coarsest clock of the three.
    assert not path.exists()


@pytest.mark.parametrize("per_second", [10**6, 10**9])
def test_big_endian_pcap_is_played_too_and_a_little_endian_one_is_left_alone(tmp_path: Path, per_second: int) -> None:
    packets = random_packets(3, 100)
    (tmp_path / "big.pcap").write_bytes(pcap(packets, per_second, ">"))
    with as_pcap(tmp_path / "big.pcap") as path:
        assert read(path) == wanted(packets, [0])
    (tmp_path / "little.pcap").write_bytes(pcap(packets, per_second))
    for name in ("little.pcap", "none.pcap"):
        with as_pcap(tmp_path / name) as path:
            assert path == tmp_path / name


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (pcapng([Packet(Fraction(0), bytes(60), 60)], (Interface(link=101),)), "is of link type 101"),
        (pcapng(random_packets(5, 3))[:-5], "packet 3 .* can't be read"),
    ],
    ids=["raw IP", "cut"],
)
def test_pcapng_that_cant_be_played_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "a.pcapng").write_bytes(content)
    with pytest.raises(UsageError, match=said), as_pcap(tmp_path / "a.pcapng"):
        pass


def test_link_gives_its_player_a_pcap(tmp_path: Path) -> None:
    packets = random_packets(7, 5)
    (tmp_path / "a.pcapng").write_bytes(pcapng(packets))
    asked: list[tuple[str, list[tuple[Fraction, int, bytes]]]] = []

    class Process:
        def command(self, line: str) -> str:
            words = line.split()
            asked.append((" ".join(words[:-1]), read(Path(words[-1]))))
            return str(len(packets))

    link = SimLink.__new__(SimLink)
    link._process, link._prefix = Process(), ""  # type: ignore[assignment]
    assert SimLink.play(link, 1, tmp_path / "a.pcapng", 40, 2) == 5
    assert asked == [("play 1 40 2", wanted(packets, [0]))]
