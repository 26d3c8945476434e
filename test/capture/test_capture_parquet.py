# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Unified headers as Parquet: every column against the model of the parser, read back by Arrow; addresses as text."""

import ipaddress
import socket
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from liteprobe.cores.formats import NO_RULE, Layer3, UnifiedFlag
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.capture.decode import BlockDecoder
from liteprobe.host.capture.write import parquet
from liteprobe.host.capture.write.columns import ips, macs
from liteprobe.host.capture.write.parquet import ADDRESSES, FLAG_COLUMNS, SCHEMA, HeaderWriter
from liteprobe.sim.drivers.capture.blocks import Captured, blocks_of, line_rate
from liteprobe.sim.drivers.frames import stacks
from liteprobe.sim.drivers.tools.full_disk import room_for, room_of_each
from liteprobe.sim.models.receive.monitor import flow_hash
from liteprobe.sim.models.receive.unified import UnifiedHeader, unified_header
from liteprobe.sim.models.traffic.trains import ProbeFrame

FIRST = 1_800_000_000_000_000_000
#: Nanoseconds would need pandas, for `to_pylist`.
BUT_STAMP = [name for name in SCHEMA.names if name != "stamp"]


def captured(frames: Sequence[bytes]) -> list[Captured]:
    return [
        Captured(FIRST + 1001 * at, frame, at % 2, 5, rule=at % 256, snap=0, with_header=True)
        for at, frame in enumerate(frames)
    ]


def write(path: Path, frames: Sequence[Captured], **options: Any) -> HeaderWriter:
    writer = HeaderWriter(path, {"liteprobe": "a test"}, **options)
    writer.write(BlockDecoder().decode(blocks_of(frames)))
    writer.close()
    return writer


def row(frame: Captured) -> dict[str, Any]:
    """Return what the file must say of a frame, from the model."""
    model = unified_header(frame.octets)
    ip = b"".join(model.ip)
    flags = model.flags
    is_ip = model.layer3 >= Layer3.IPV4
    has_ports = bool(flags & UnifiedFlag.TRANSPORT)
    is_icmp = has_ports and model.protocol in (1, 58)
    return {
        "length": len(frame.octets),
        "port": frame.port,
        "channel": frame.channel,
        "rule": None if frame.rule == NO_RULE else frame.rule,
        "destination_mac": frame.octets[:6].hex(":") if len(frame.octets) >= 14 else "00:00:00:00:00:00",
        "source_mac": frame.octets[6:12].hex(":") if len(frame.octets) >= 14 else "00:00:00:00:00:00",
        "vlan": int.from_bytes(model.tags[0][:2], "big") & 0xFFF if model.tags else None,
        "tags": [int.from_bytes(tag[:2], "big") for tag in model.tags],
        "labels": [int.from_bytes(label, "big") >> 12 for label in model.labels],
        "ethertype": model.ethertype,
        "protocol": model.protocol if is_ip else None,
        "source": address(model.layer3, model.source),
        "destination": address(model.layer3, model.destination),
        "source_port": int.from_bytes(model.ports[:2], "big") if has_ports and not is_icmp else None,
        "destination_port": int.from_bytes(model.ports[2:], "big") if has_ports and not is_icmp else None,
        "icmp_type": model.ports[0] if is_icmp else None,
        "icmp_code": model.ports[1] if is_icmp else None,
        **of_ip(model.layer3, ip),
        **of_sequences(model),
        "hash": flow_hash(model) or None,
        **{name: bool(flags & flag) for name, flag in FLAG_COLUMNS.items()},
    }


def of_ip(kind: Layer3, ip: bytes) -> dict[str, Any]:
    """Return what the file must say of a packet, from the octets of its header that the parser keeps."""
    is_ip, is_ipv4, is_ipv6 = kind >= Layer3.IPV4, kind == Layer3.IPV4, kind == Layer3.IPV6

    def number(first: int, end: int) -> int:
        return int.from_bytes(ip[first:end], "big")

    traffic_class = ip[1] if is_ipv4 else number(0, 2) >> 4 & 0xFF
    at = 6 if is_ipv4 else 10  # IPv6: in its fragment header.
    offset = 8 * (number(6, 8) & 0x1FFF) if is_ipv4 else number(10, 12) & 0xFFF8
    more = bool(ip[at] >> 5 & 1) if is_ipv4 else bool(ip[11:12] and ip[11] & 1)
    return {
        "dscp": traffic_class >> 2 if is_ip else None,
        "ecn": traffic_class & 3 if is_ip else None,
        "ttl": ip[8 if is_ipv4 else 7] if is_ip else None,
        "ip_length": (number(2, 4) if is_ipv4 else 40 + number(4, 6)) if is_ip else None,
        "ip_id": number(4, 6) if is_ipv4 else None,
        "flow_label": number(1, 4) & 0xFFFFF if is_ipv6 else None,
        "fragment_offset": offset if is_ip else None,
        "more_fragments": more if is_ip else None,
        "dont_fragment": bool(ip[6] >> 6 & 1) if is_ipv4 else None,
        "arp_operation": number(2, 4) if kind == Layer3.ARP else None,
    }


def of_sequences(model: UnifiedHeader) -> dict[str, Any]:
    """Return what the file must say of TCP and of a probe's own frame."""
    is_tcp, is_probe = bool(model.flags & UnifiedFlag.TCP), bool(model.flags & UnifiedFlag.PROBE)
    return {
        "tcp_flags": int.from_bytes(model.detail[:2], "big") & 0xFFF if is_tcp else None,
        "tcp_window": int.from_bytes(model.detail[2:], "big") if is_tcp else None,
        "tcp_sequence": model.sequence if is_tcp else None,
        "stream_id": int.from_bytes(model.detail[2:], "big") if is_probe else None,
        "sequence": model.sequence if is_probe else None,
    }


def address(kind: Layer3, octets: bytes) -> str | None:
    if kind == Layer3.NONE:
        return None
    return str(ipaddress.ip_address(octets[:16] if kind == Layer3.IPV6 else octets[:4]))


def test_every_column_is_what_the_parser_says(tmp_path: Path) -> None:
    frames = captured([*stacks.stacks(), *stacks.fuzz(300, seed=5)])
    assert write(tmp_path / "h.parquet", frames).written == len(frames)
    compare(tmp_path / "h.parquet", frames)


def compare(path: Path, frames: Sequence[Captured]) -> None:
    """Compare every column of every row with the model of the parser."""
    found = pq.read_table(path)
    assert found["stamp"].cast("int64").to_pylist() == [frame.stamp for frame in frames]
    for got, frame in zip(found.select(BUT_STAMP).to_pylist(), frames, strict=True):
        assert got == row(frame), frame.octets.hex()


def mix(name: str, count: int, rng: Random) -> list[bytes]:
    """Return frames of UDP: one flow; a scan from one source; random addresses and ports; every seventh has none."""
    frames = []
    for number in range(count):
        macs, ends = bytes(12), b"\x0a\0\0\1" * 2
        if name == "scan":
            ends = ends[:4] + rng.randbytes(4)
        elif name != "flow":
            macs, ends = rng.randbytes(12), rng.randbytes(32 if name == "ipv6" else 8)
        payload = rng.randbytes(4) + bytes.fromhex("001a0000") + bytes(18)
        start = "86dd6000000000241140" if name == "ipv6" else "08004500002e00000000401100ff"
        frame = macs + bytes.fromhex(start) + ends + payload
        frames.append(frame if number % 7 else macs + b"\x88\xb5" + bytes(46))
    return frames


@pytest.mark.parametrize(("first", "then"), [("flow", "ipv6"), ("ipv6", "flow"), ("scan", "ipv4"), ("ipv4", "scan")])
def test_addresses_that_differ_are_plain_and_every_column_is_as_ever(tmp_path: Path, first: str, then: str) -> None:
    rng = Random(f"{first} {then}")
    frames = captured([*mix(first, 200, rng), *mix(then, 200, rng), *mix("ipv6", 30, rng), *stacks.fuzz(70, seed=6)])
    write(tmp_path / "h.parquet", frames, row_group=200)
    compare(tmp_path / "h.parquet", frames)
    plain = {"flow": set(), "scan": {"destination"}}.get(
        first, {"source", "destination", "source_mac", "destination_mac"}
    )
    meta = pq.ParquetFile(tmp_path / "h.parquet").metadata
    for group in range(meta.num_row_groups):
        columns = [meta.row_group(group).column(number) for number in range(meta.num_columns)]
        without = {each.path_in_schema for each in columns if not each.has_dictionary_page}
        assert without & set(ADDRESSES) == plain, "the first group says it"


def test_stamps_are_nanoseconds(tmp_path: Path) -> None:
    frames = captured([bytes(60)] * 5)
    write(tmp_path / "h.parquet", frames)
    column = pq.read_table(tmp_path / "h.parquet")["stamp"]
    assert str(column.type) == "timestamp[ns]"
    assert column.cast("int64").to_pylist() == [frame.stamp for frame in frames]


def test_tcp_and_probe_fields_are_theirs_alone(tmp_path: Path) -> None:
    tcp = bytes.fromhex(
        "024c50000002024c5000000108004500002800070000400600000a0000010a0000021234567800000009000000005012abcd00000000"
    )
    probe = ProbeFrame(60, stream_id=17).octets(5, 6)
    write(tmp_path / "h.parquet", captured([tcp, probe]))
    first, second = pq.read_table(tmp_path / "h.parquet", columns=BUT_STAMP).to_pylist()
    names = ("tcp_flags", "tcp_window", "tcp_sequence", "sequence", "stream_id", "probe")
    assert [first[name] for name in names] == [0x012, 0xABCD, 9, None, None, False]
    assert [second[name] for name in names] == [None, None, None, 5, 17, True]


def test_row_groups_are_as_long_as_asked_and_lose_nothing(tmp_path: Path) -> None:
    frames = captured(list(stacks.stacks()))
    writer = write(tmp_path / "h.parquet", frames, row_group=100)
    meta = pq.ParquetFile(tmp_path / "h.parquet").metadata
    rows = [meta.row_group(group).num_rows for group in range(meta.num_row_groups)]
    assert rows == [100] * 9 + [6] and writer.written == 906
    column = pq.read_table(tmp_path / "h.parquet")["stamp"].cast("int64").to_pylist()
    assert column == [frame.stamp for frame in frames]


def test_types_and_metadata_are_in_the_file(tmp_path: Path) -> None:
    write(tmp_path / "h.parquet", captured([bytes(60)]), shift_ns=-FIRST)
    schema = pq.read_schema(tmp_path / "h.parquet")
    assert schema.names == SCHEMA.names
    assert {str(schema.field(name).type) for name in ("source", "source_mac")} == {"string"}
    assert pq.ParquetFile(tmp_path / "h.parquet").metadata.metadata[b"liteprobe"] == b"a test"
    assert pq.read_table(tmp_path / "h.parquet")["stamp"].cast("int64").to_pylist() == [0]


def test_no_header_makes_an_empty_table(tmp_path: Path) -> None:
    write(tmp_path / "h.parquet", [Captured(5, bytes(60)), Captured(6, missing=3)])
    assert pq.read_table(tmp_path / "h.parquet").num_rows == 0


def test_long_capture_goes_on_in_further_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "GROUPS", 3)
    frames = captured(list(stacks.stacks()))
    writer = write(tmp_path / "h.parquet", frames, row_group=100)
    assert [path.name for path in writer.paths] == ["h.parquet", "h-2.parquet", "h-3.parquet", "h-4.parquet"]
    tables = [pq.read_table(path) for path in writer.paths]
    assert [table.num_rows for table in tables] == [300, 300, 300, len(frames) - 900] and writer.written == len(frames)
    assert pa.concat_tables(tables)["stamp"].cast("int64").to_pylist() == [frame.stamp for frame in frames]
    assert all(pq.ParquetFile(path).metadata.metadata[b"liteprobe"] == b"a test" for path in writer.paths)


def test_disk_that_is_full_when_the_next_file_begins_leaves_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "GROUPS", 3)
    frames = captured(list(stacks.stacks()))
    reserve = HeaderWriter._reserve
    first = tmp_path / "h.parquet"
    monkeypatch.setattr(HeaderWriter, "_reserve", lambda self, octets: self.path == first and reserve(self, octets))
    writer = HeaderWriter(tmp_path / "h.parquet", row_group=100)
    with pytest.raises(
        ProbeError, match=r"full: .*h.parquet holds 300 headers, whole and readable, and 100 more are lost"
    ):
        writer.write(BlockDecoder().decode(blocks_of(frames)))
    writer.close()
    assert [path.name for path in tmp_path.iterdir()] == ["h.parquet"]
    column = pq.read_table(tmp_path / "h.parquet")["stamp"].cast("int64").to_pylist()
    assert column == [frame.stamp for frame in frames[:300]]


@pytest.mark.parametrize("rows", [1, 100, 511, 513, 4096, 7000])
def test_all_rows_that_fit_are_in_the_file(tmp_path: Path, rows: int) -> None:
    """Room for what the same rows take elsewhere, for its end, and no octet more than it may take before."""
    batch = BlockDecoder().decode(line_rate(rows, with_header=True))
    rows = int(np.count_nonzero(batch.has_header))  # The last block is open.
    whole = HeaderWriter(tmp_path / "whole.parquet")
    whole.write(batch)
    whole.close()
    room = 3 * (tmp_path / "whole.parquet").stat().st_size // 2 + parquet.END + 2 * parquet.END_GROUP
    with room_of_each({"h.parquet": room}):
        writer = HeaderWriter(tmp_path / "h.parquet")
        writer.write(batch)
        writer.close()
    assert pq.read_table(tmp_path / "h.parquet").num_rows == writer.written == rows


def test_full_disk_is_told_and_nothing_is_left_on_it(tmp_path: Path) -> None:
    with (
        room_for(5000),
        pytest.raises(
            ProbeError, match=r"the disk is full: .*h.parquet was not written; make room, or name a file elsewhere"
        ),
    ):
        HeaderWriter(tmp_path / "h.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("row_group", [100, 400, 1000])
def test_disk_that_fills_leaves_rows_that_can_be_read(tmp_path: Path, row_group: int) -> None:
    frames = captured(list(stacks.stacks()))
    batch = BlockDecoder().decode(blocks_of(frames))
    with room_for((1 << 20) + 256 * 400):
        writer = HeaderWriter(tmp_path / "h.parquet", row_group=row_group)
        with pytest.raises(ProbeError, match=r"disk is full: .* holds \d+ headers, whole and readable") as error:
            for _ in range(100):
                writer.write(batch)
            writer.close()
        writer.close()
    column = pq.read_table(tmp_path / "h.parquet")["stamp"].cast("int64").to_pylist()
    assert column == ([frame.stamp for frame in frames] * 100)[: len(column)]
    assert len(column) == writer.written >= 200 and f"holds {len(column)} headers" in str(error.value)
    assert (tmp_path / "h.parquet").stat().st_size < 1 << 20  # Room that was taken is given back.


# Addresses as text --------------------------------------------------------------------------------


def hostile(count: int) -> NDArray[np.uint8]:
    """Return addresses of all kinds in one column: each set of IPv6 groups that are 0, mapped ones, random ones."""
    rng = np.random.default_rng(20)
    octets = rng.integers(0, 256, (count, 17), np.uint8)
    octets[:, 0] = rng.choice([Layer3.ARP, Layer3.IPV4, Layer3.IPV6], count)
    groups = octets[:, 1:].reshape(-1, 8, 2)
    groups[rng.random((count, 8)) < 0.5] = 0
    groups[rng.random((count, 8)) < 0.2, 0] = 0
    sets = np.arange(256)[:, np.newaxis] >> np.arange(8) & 1
    octets[:256, 0] = Layer3.IPV6
    groups[:256] = np.where(sets[..., np.newaxis], 0, rng.integers(1, 256, (256, 8, 2)))
    octets[256:400, 0] = Layer3.IPV6
    octets[256:400, 1:13] = np.frombuffer(bytes(10) + b"\xff\xff", np.uint8)
    return octets


def test_ip_addresses_are_as_inet_ntop_writes_them() -> None:
    octets = hostile(70_000)  # More than are taken at once.
    wanted = [
        socket.inet_ntop(socket.AF_INET6, row[1:])
        if row[0] == Layer3.IPV6
        else socket.inet_ntop(socket.AF_INET, row[1:5])
        for row in map(bytes, octets)
    ]
    assert ips(octets).to_pylist() == wanted
    is_ipv4 = octets[:, 0] != Layer3.IPV6
    assert ips(octets[is_ipv4]).to_pylist() == [text for text in wanted if ":" not in text]
    assert ips(octets[:0]).to_pylist() == []


def test_mac_addresses_are_pairs_of_hexadecimal_digits() -> None:
    octets = hostile(1000)[:, 1:7]
    assert macs(octets).to_pylist() == [bytes(row).hex(":") for row in octets]
