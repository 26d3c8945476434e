# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Files that can't be replayed as they are: each is refused with the packet and the octet, or mended as asked."""

import random
import struct
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from liteprobe.host.base.errors import UsageError
from liteprobe.host.packets import window
from liteprobe.host.traffic.trace.trace import Trace
from liteprobe.sim.drivers.replay.capture_files import Interface, Packet, block, pcap, pcapng, random_packets, section
from liteprobe.sim.models.traffic.replay import Record, decode

Write = Callable[[list[Packet]], bytes]
KINDS: list[Write] = [pcap, pcapng]


@pytest.fixture(params=KINDS, ids=["pcap", "pcapng"])
def write(request: pytest.FixtureRequest) -> Write:
    """Writes a file of either kind."""
    return request.param  # type: ignore[no-any-return]


def read(folder: Path, content: bytes, **how: bool) -> list[Record]:
    path = folder / "frames.pcap"
    path.write_bytes(content)
    return decode([int(word) for words in Trace.from_pcap(path, **how).records() for word in words])


def plain(count: int = 20, length: int = 100) -> list[Packet]:
    return [Packet(Fraction(number, 1000), bytes([number]) * length, length) for number in range(count)]


# Cut and corrupt ----------------------------------------------------------------------------------


def test_a_file_that_is_cut_anywhere_is_refused_or_kept_up_to_there(tmp_path: Path, write: Write) -> None:
    """At every octet of its last packets; between two of them it is whole."""
    packets = plain(4, 61)
    whole = write(packets)
    ends = {len(write(packets[: count + 1])): count + 1 for count in range(4)}
    for size in range(len(write(packets[:2])), len(whole) + 1):
        count = max(found for end, found in ends.items() if end <= size)
        if size in ends:
            assert len(read(tmp_path, whole[:size])) == count
            continue
        with pytest.raises(
            UsageError, match=rf"packet {count + 1} \(at octet \d+\) can't be read: it.* cut after \d+ of \d+ oct"
        ):
            read(tmp_path, whole[:size])
        assert [one.octets for one in read(tmp_path, whole[:size], repair=True)] == [
            one.octets for one in packets[:count]
        ]


def test_the_octet_that_is_named_is_that_of_the_packet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Write
) -> None:
    packets = plain(20)
    whole = write(packets)
    at = len(write(packets[:13]))
    for size in (300, 4 << 20):
        monkeypatch.setattr(window, "WINDOW", size)
        with pytest.raises(UsageError, match=rf"packet 14 \(at octet {at}\)"):
            read(tmp_path, whole[: at + 50])


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (4, 10**9, "packet 3 .* is corrupt"),  # Nanoseconds.
        (8, 101, "packet 3 .* is corrupt"),  # Kept more than its length.
        (8, 0x7FFFFFFF, "packet 3 .* it would be 2147483647 octets long"),
        (12, 99, "packet 3 .* is corrupt"),
    ],
)
def test_a_corrupt_header_of_a_pcap_is_named(tmp_path: Path, place: int, value: int, words: str) -> None:
    content = bytearray(pcap(plain()))
    struct.pack_into("<I", content, 24 + 2 * 116 + place, value)
    with pytest.raises(UsageError, match=words):
        read(tmp_path, bytes(content))
    assert len(read(tmp_path, bytes(content), repair=True)) == 2


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (4, 133, "packet 3 .* a block can't be 133 octets long"),
        (4, 0, "packet 3 .* a block can't be 0 octets long"),
        (4, 1 << 20, "packet 3 .* a packet can't be 1048576 octets long"),
        (4, 24, "packet 3 .* can't be 24 octets long"),
        (8, 7, "packet 3 .* is corrupt"),  # Interface.
        (20, 120, "packet 3 .* is corrupt"),  # Kept.
        (24, 99, "packet 3 .* is corrupt"),  # Length.
        (128, 128, "packet 3 .* is corrupt"),  # Size once more.
    ],
)
def test_a_corrupt_block_of_a_pcapng_is_named(tmp_path: Path, place: int, value: int, words: str) -> None:
    content = bytearray(pcapng(plain()))
    struct.pack_into("<I", content, len(section([Interface()])) + 2 * 132 + place, value)
    with pytest.raises(UsageError, match=words):
        read(tmp_path, bytes(content))
    assert len(read(tmp_path, bytes(content), repair=True)) == 2


def test_whatever_is_broken_nothing_else_than_an_error_comes_of_it(tmp_path: Path, write: Write) -> None:
    """Random octets of random files are changed: frames or a UsageError, and with repair what is before the first change."""
    for seed in range(150):
        chance = random.Random(seed)
        packets = random_packets(seed, 30, most=200)
        content = bytearray(write(packets))
        places = sorted(chance.randrange(24, len(content)) for _ in range(chance.randint(1, 3)))
        for place in places:
            content[place] = chance.randrange(256)
        try:
            read(tmp_path, bytes(content), sort=True)
        except UsageError as error:
            assert (
                "packet" in str(error)
                or "section" in str(error)
                or "can't be read" in str(error)
                or "FCS" in str(error)
            )


# Other kinds --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty: give a file that tcpdump"),
        (b"\x1f\x8b\x08\x00" + bytes(40), "it is packed: unpack it with gunzip"),
        (b"just text, and more of it than a header has", "is neither pcap nor pcapng"),
        (pcap(plain())[:20], "it ends within its header"),
        (
            pcap(plain(), link=113),
            r"packet 1 \(at octet 40\) is of link type 113 \(Linux cooked\), and a probe sends Ethernet",
        ),
        (pcapng(plain(), (Interface(link=127),)), r"packet 1 .* is of link type 127 \(radiotap\)"),
        (pcapng(plain()) + block(3, struct.pack("<I", 60) + bytes(60)), "Simple Packet Block, which has no time"),
        (pcapng(plain()) + block(2, bytes(80)), "obsolete Packet Block: write the file anew with editcap"),
        (section([Interface(127)]) + pcapng(plain()), "units a second, which these times can't be counted in"),
        (pcap([]), "the trace has no frame: nothing would be sent"),
        (pcapng([]), "the trace has no frame: nothing would be sent"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read(tmp_path, content)


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file"):
        Trace.from_pcap(tmp_path / "nothing.pcap")
    with pytest.raises(UsageError, match="it is not a file, and is read more than once"):
        Trace.from_pcap(tmp_path)


@pytest.mark.parametrize(("length", "fcs"), [(9001, 0), (9005, 4), (65549, 0)])
def test_a_packet_that_is_too_long_is_refused_by_its_number(tmp_path: Path, length: int, fcs: int) -> None:
    packets = [*plain(6), Packet(Fraction(1), bytes(length), length)]
    at = 24 + 6 * 116 + 16
    advice = "a probe sends 9000 at most: leave it out with editcap, or capture with offloads off"
    with pytest.raises(UsageError, match=rf"packet 7 \(at octet {at}\) is {length - fcs} octets long, and {advice}"):
        read(tmp_path, pcap(packets, fcs=fcs))
    assert len(read(tmp_path, pcap([*plain(6), Packet(Fraction(1), bytes(9000 + fcs), 9000 + fcs)], fcs=fcs))) == 7


# Times that go back -------------------------------------------------------------------------------


def shuffled(seed: int, reach: int, count: int = 9000) -> list[Packet]:
    """Return packets that are up to ``reach`` places from where they belong, some of equal times."""
    chance = random.Random(seed)
    places = sorted(range(count), key=lambda number: (number + chance.uniform(0, reach), number))
    return [Packet(Fraction(number // 3, 10**6), number.to_bytes(4) * 16, 64) for number in places]


def test_times_that_go_back_are_refused_by_their_number(tmp_path: Path, write: Write) -> None:
    packets = plain(9)
    packets[5] = Packet(packets[4].time_s - Fraction(3, 10**6), bytes(60), 60)
    with pytest.raises(
        UsageError, match=r"the time of packet 6 \(at octet \d+\) is 3,000 ns before .*: sort them with --sort"
    ):
        read(tmp_path, write(packets))


@pytest.mark.parametrize("size", [5000, 100_000, 4 << 20])
def test_times_that_go_back_are_sorted_as_asked(tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "WINDOW", size)
    packets = shuffled(1, 3000)
    assert [one.octets[:4] for one in read(tmp_path, pcap(packets), sort=True)] == [
        one.octets[:4] for one in sorted(packets, key=lambda one: one.time_s)
    ]


def test_times_that_go_back_too_far_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "WINDOW", 50_000)
    packets = [*(Packet(Fraction(number), bytes(60), 60) for number in range(9000)), Packet(Fraction(3), bytes(60), 60)]
    with pytest.raises(
        UsageError, match=r"packet 9001 .* more than 4096 packets before: sort the file with reordercap"
    ):
        read(tmp_path, pcap(packets), sort=True)


def test_a_time_that_jumps_by_days_is_refused(tmp_path: Path) -> None:
    packets = [Packet(Fraction(0), bytes(60), 60), Packet(Fraction(10**9), bytes(60), 60)]
    with pytest.raises(UsageError, match="packet 2 comes 277,778 hours after the one before"):
        read(tmp_path, pcap(packets))
