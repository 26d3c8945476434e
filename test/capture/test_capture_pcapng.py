# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Captures as pcapng, read by three programs that share no code with LiteProbe: tshark, scapy and python-pcapng."""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pcapng import FileScanner, blocks
from scapy.utils import RawPcapNgReader

from liteprobe.cores.formats import UnifiedFlag
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.capture.decode import BlockDecoder
from liteprobe.host.capture.write.output import Output
from liteprobe.host.capture.write.pcapng import HASH_WORD, PcapngWriter, PortInterface, Statistics
from liteprobe.host.packets.batch import Batch
from liteprobe.sim.drivers.capture.blocks import Captured, blocks_of, line_rate, mixed
from liteprobe.sim.drivers.frames import stacks
from liteprobe.sim.drivers.frames.tshark import TRUTHS
from liteprobe.sim.drivers.tools.full_disk import room_for
from liteprobe.sim.models.receive.monitor import flow_hash
from liteprobe.sim.models.receive.unified import unified_header

SEED = 20261122
PORTS = (PortInterface("port0", "port 0 of sim://", "udp", "Clock: locked, within 8.0 ns"), PortInterface("port1"))


def write(
    path: Path, frames: Sequence[Captured], parts: int = 1, ports: Sequence[PortInterface] = PORTS, shift_ns: int = 0
) -> PcapngWriter:
    """Write frames of one channel, in parts, with statistics at the end."""
    output = Output(path)
    writer = PcapngWriter(output, ports, "a probe", "a comment", shift_ns)
    batch = BlockDecoder().decode(blocks_of(frames))
    for part in np.array_split(np.arange(len(batch)), parts):
        writer.write(batch.select(part))
    writer.close([Statistics(received=1000 + port, accepted=900, comment=f"end {port}") for port in range(len(ports))])
    output.close()
    return writer


def alike(random: np.random.Generator, count: int, length: int, hashed: str = "", snap: int = 65535) -> Batch:
    """Return records of one size, whose ports, channels, lengths, stamps and hashes differ."""
    batch = BlockDecoder().decode(line_rate(count, length, with_header=bool(hashed), snap=snap))
    batch.heads["way"], batch.heads["length"] = (
        random.integers(0, 256, len(batch)),
        random.integers(80, 1515, len(batch)),
    )
    batch.heads["stamp"] = np.sort(random.integers(0, 2**63, len(batch)))
    if hashed:
        hashes = random.integers(1, 2**32, len(batch))
        batch.rows()[:, HASH_WORD] = {"all": hashes, "some": hashes * (hashes % 2), "none": 0}[hashed]
    return batch


@pytest.mark.parametrize("snap", [0, 1, 60, 65535])
def test_packets_that_are_alike_are_written_as_each_alone(snap: int, tmp_path: Path) -> None:
    """The form of the last ones is filled in, whichever those were."""
    random = np.random.default_rng(SEED + snap)
    kinds = [*product((5000, 300), (61, 64), ("", "all", "some", "none"))]
    batches = [alike(random, *kinds[k], snap) for k in random.permutation(len(kinds))]
    files = []
    for is_known in (True, False):
        output = Output(tmp_path / f"{is_known}.pcapng")
        writer = PcapngWriter(output, PORTS, shift_ns=-37 * 10**9)
        for batch in batches:
            writer.write(replace(batch, step=batch.step if is_known else 0))
        writer.close()
        output.close()
        files.append(output.path.read_bytes())
    assert all(batch.step for batch in batches) and files[0] == files[1]


@pytest.fixture(scope="module")
def frames() -> list[Captured]:
    made = mixed(400, SEED, gaps=0.05)
    every = (UnifiedFlag.FCS_ERROR, UnifiedFlag.GIANT, UnifiedFlag.RUNT, UnifiedFlag.SYMBOL_ERROR)
    made += [Captured(made[-1].stamp + 5, bytes(range(64)), 1, 0, flag | every[0], 3) for flag in every]
    return made


@pytest.fixture(scope="module")
def packets(frames: list[Captured]) -> list[Captured]:
    return [frame for frame in frames if not frame.missing]


@pytest.fixture(scope="module")
def capture(frames: list[Captured], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pcapng") / "capture.pcapng"
    write(path, frames, parts=3)
    return path


def tshark(path: Path, *arguments: str) -> tuple[str, str]:
    """Run tshark; return what it printed, and what it warned of."""
    done = subprocess.run(["tshark", "-n", "-r", path, *arguments], capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if not line.startswith("Running as user")]
    assert done.returncode == 0, done.stderr
    return done.stdout, "\n".join(said)


def fields(path: Path, *names: str) -> list[list[str]]:
    found, said = tshark(path, "-T", "fields", *(word for name in names for word in ("-e", name)))
    assert said == ""
    return [[TRUTHS.get(field, field) for field in line.split("\t")] for line in found.splitlines()]


# tshark -------------------------------------------------------------------------------------------


def test_tshark_reads_stamps_lengths_and_interfaces_without_a_warning(capture: Path, packets: list[Captured]) -> None:
    names = ("frame.time_epoch", "frame.len", "frame.cap_len", "frame.interface_name", "frame.interface_id")
    rows = fields(capture, *names)
    assert [int(row[0].replace(".", "")) for row in rows] == [packet.stamp for packet in packets]
    assert [(int(row[1]), int(row[2])) for row in rows] == [
        (len(packet.octets), len(packet.kept)) for packet in packets
    ]
    assert [row[3] for row in rows] == [f"port{packet.port}" for packet in packets]


def test_tshark_reads_the_octets(capture: Path, packets: list[Captured]) -> None:
    found, said = tshark(capture, "-T", "json", "-x", "-j", "frame")
    raw = [packet["_source"]["layers"].get("frame_raw") for packet in json.loads(found)]
    assert said == ""
    assert [bytes.fromhex(each[0]) if each else b"" for each in raw] == [packet.kept for packet in packets]


def test_tshark_sees_fcs_errors(capture: Path, packets: list[Captured]) -> None:
    rows = fields(capture, "frame.packet_flags_crc_error", "frame.packet_flags_symbol_error")
    for row, packet in zip(rows, packets, strict=True):
        has_error = bool(packet.flags & UnifiedFlag.FCS_ERROR)
        assert row[0] == ("1" if has_error else ""), packet.flags
        has_symbol = bool(packet.flags & UnifiedFlag.SYMBOL_ERROR)
        assert row[1] == (("1" if has_symbol else "0") if has_error else "")


def test_tshark_sees_drops_and_queues(capture: Path, frames: list[Captured]) -> None:
    rows = fields(capture, "frame.drop_count", "frame.interface_queue")
    assert [row[0] for row in rows] == [str(count) if count else "" for count in drops(frames)]
    assert {row[1] for row in rows} == {"0"}


def test_tshark_is_content_with_all_stacks(tmp_path: Path) -> None:
    made = [Captured(10**18 + 1000 * at, frame, at % 2, with_header=True) for at, frame in enumerate(stacks.stacks())]
    write(tmp_path / "stacks.pcapng", made)
    rows = fields(tmp_path / "stacks.pcapng", "frame.time_epoch", "frame.protocols")
    assert [int(row[0].replace(".", "")) for row in rows] == [frame.stamp for frame in made]
    assert sum("ipv6" in row[1] for row in rows) > 300


def test_capinfos_says_what_the_file_says(capture: Path, packets: list[Captured]) -> None:
    said = subprocess.run(["capinfos", "-M", capture], capture_output=True, text=True, check=True).stdout
    lines = {line.split(":", 1)[0].strip(): line.split(":", 1)[1].strip() for line in said.splitlines() if ":" in line}
    assert lines["Number of packets"] == str(len(packets))
    assert lines["Capture hardware"] == "a probe" and lines["Capture comment"] == "a comment"
    assert "Strict time order:   True" in said or lines["Strict time order"] == "True"
    assert "Time resolution = 0x09" in said


# scapy --------------------------------------------------------------------------------------------


def test_scapy_reads_the_same(capture: Path, packets: list[Captured]) -> None:
    with RawPcapNgReader(str(capture)) as reader:
        found = [(octets, meta) for octets, meta in reader]
    assert [octets for octets, _ in found] == [packet.kept for packet in packets]
    assert [meta.tshigh << 32 | meta.tslow for _, meta in found] == [packet.stamp for packet in packets]
    assert {meta.tsresol for _, meta in found} == {10**9}
    assert [meta.wirelen for _, meta in found] == [len(packet.octets) for packet in packets]
    assert [meta.ifname for _, meta in found] == [f"port{packet.port}".encode() for packet in packets]


# python-pcapng ------------------------------------------------------------------------------------


def scan(path: Path) -> list[Any]:
    with path.open("rb") as file:
        return list(FileScanner(file))


def drops(frames: Sequence[Captured]) -> list[int]:
    """Return how many frames of its channel were dropped before each packet."""
    waiting: dict[int, int] = {}
    found = []
    for frame in frames:
        waiting[frame.channel] = waiting.get(frame.channel, 0) + frame.missing
        if not frame.missing:
            found.append(waiting[frame.channel])
            waiting[frame.channel] = 0
    return found


def test_python_pcapng_reads_the_same(capture: Path, frames: list[Captured], packets: list[Captured]) -> None:
    found = [block for block in scan(capture) if isinstance(block, blocks.EnhancedPacket)]
    assert [block.packet_data for block in found] == [packet.kept for packet in packets]
    stamps = [block.timestamp_high << 32 | block.timestamp_low for block in found]
    assert stamps == [packet.stamp for packet in packets]
    assert {block.timestamp_resolution for block in found} == {1e-9}
    assert [block.interface_id for block in found] == [packet.port for packet in packets]
    assert [block.options.get("epb_dropcount", 0) for block in found] == drops(frames)
    # python-pcapng knows no epb_queue (6): its octets as they stand.
    assert all(block.options.get_raw(6) == b"\0\0\0\0" for block in found)


def test_hash_of_the_flow_is_there_where_its_header_is(capture: Path, packets: list[Captured]) -> None:
    found = [block for block in scan(capture) if isinstance(block, blocks.EnhancedPacket)]
    for block, packet in zip(found, packets, strict=True):
        has_hash = "epb_hash" in block.options
        wanted = flow_hash(unified_header(packet.octets))
        assert has_hash == (packet.with_header and wanted != 0)
        if has_hash:
            assert block.options.get_raw("epb_hash") == b"\x05" + wanted.to_bytes(4, "big")


def test_frames_of_a_probe_without_flow_hash_have_none(tmp_path: Path) -> None:
    frames = [replace(frame, with_hash=False) for frame in mixed(200, SEED)]
    assert any(frame.with_header for frame in frames)
    write(tmp_path / "none.pcapng", frames)
    found = [block for block in scan(tmp_path / "none.pcapng") if isinstance(block, blocks.EnhancedPacket)]
    assert [block.packet_data for block in found] == [frame.kept for frame in frames if not frame.missing]
    assert not any("epb_hash" in block.options for block in found)


def test_interfaces_say_what_they_are(capture: Path) -> None:
    section, first, second = scan(capture)[:3]
    assert (section.options["opt_comment"], section.options["shb_hardware"]) == ("a comment", "a probe")
    assert section.options["shb_userappl"].startswith("liteprobe ")
    assert (first.options["if_name"], second.options["if_name"]) == ("port0", "port1")
    assert first.options["opt_comment"] == "Clock: locked, within 8.0 ns"
    assert (first.options["if_speed"], first.options.get_raw("if_tsresol")) == (10**9, b"\x09")
    assert first.options.get_raw("if_filter") == b"\0udp" and "if_filter" not in second.options


def test_statistics_say_what_was_dropped(capture: Path, frames: list[Captured], packets: list[Captured]) -> None:
    found = [block for block in scan(capture) if isinstance(block, blocks.InterfaceStatistics)]
    assert [block.interface_id for block in found] == [0, 1]
    for port, block in enumerate(found):
        options = block.options
        pairs = zip(packets, drops(frames), strict=True)
        assert options["isb_ifdrop"] == sum(count for packet, count in pairs if packet.port == port)
        assert options["isb_usrdeliv"] == sum(packet.port == port for packet in packets)
        assert (options["isb_ifrecv"], options["isb_filteraccept"]) == (1000 + port, 900)
        assert options["opt_comment"] == f"end {port}"


def test_drops_behind_the_last_packet_are_in_the_statistics(tmp_path: Path) -> None:
    path = tmp_path / "end.pcapng"
    writer = write(path, [Captured(5, bytes(60)), Captured(6, missing=7)], parts=2)
    *_, first, _ = scan(path)
    assert first.options["isb_ifdrop"] == 7 == writer.dropped[0]


def test_drops_wait_for_the_next_packet_of_their_channel(tmp_path: Path) -> None:
    write(tmp_path / "wait.pcapng", [Captured(5, bytes(60)), Captured(6, missing=7), Captured(9, bytes(60))], parts=2)
    assert fields(tmp_path / "wait.pcapng", "frame.drop_count") == [[""], ["7"]]


def test_port_that_nobody_named_gets_its_interface(tmp_path: Path) -> None:
    frames = [Captured(5, bytes(60), port=0), Captured(6, bytes(60), port=9), Captured(7, bytes(60), port=4)]
    write(tmp_path / "ports.pcapng", frames, parts=3, ports=PORTS[:1])
    assert [row[0] for row in fields(tmp_path / "ports.pcapng", "frame.interface_name")] == ["port0", "port9", "port4"]


def test_utc_is_so_many_seconds_less(tmp_path: Path) -> None:
    stamp = 1_800_000_037_123_456_789
    write(tmp_path / "utc.pcapng", [Captured(stamp, bytes(60))], shift_ns=-37 * 10**9)
    assert fields(tmp_path / "utc.pcapng", "frame.time_epoch") == [["1800000000.123456789"]]


def test_file_without_frames_is_read(tmp_path: Path) -> None:
    write(tmp_path / "none.pcapng", [])
    assert fields(tmp_path / "none.pcapng", "frame.time_epoch") == []


# What goes wrong ----------------------------------------------------------------------------------


@pytest.mark.parametrize("room", [1000, 5003, 100_001])
def test_full_disk_leaves_a_file_of_whole_packets(tmp_path: Path, packets: list[Captured], room: int) -> None:
    path = tmp_path / "full.pcapng"
    with room_for(room), pytest.raises(ProbeError, match="the disk is full: .* whole and readable; make room"):
        write(path, packets, parts=4)
    rows = fields(path, "frame.time_epoch")
    assert room - 9300 < path.stat().st_size <= room
    assert [int(row[0].replace(".", "")) for row in rows] == [packet.stamp for packet in packets[: len(rows)]]
    assert len(rows) > 0


def test_reader_that_has_gone_is_told(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    output = Output(tmp_path / "pipe")
    os.dup2(writer, output.fileno())
    os.close(writer)
    with pytest.raises(ProbeError, match="the reader of .* has gone after 0 octets"):
        output.write(b"something")
    output.close()
