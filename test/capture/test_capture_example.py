# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The capture and the recording of docs/examples are of the traffic that stands beside them, frame by frame."""

import importlib.util
from pathlib import Path

import pytest
from scapy.utils import RawPcapNgReader, RawPcapReader

from liteprobe.host.capture.request import CaptureRequest
from liteprobe.host.capture.run import capture_recording

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
TICK_NS = 8


def played(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[int, bytes]]]:
    """Return time (ns) and octets of each frame of both ports, as office.py makes them; without the first and the last."""
    monkeypatch.chdir(folder)
    spec = importlib.util.spec_from_file_location("office", EXAMPLES / "office.py")
    assert spec and spec.loader
    office = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(office)
    office.main()
    found = []
    for name in ("lan.pcap", "uplink.pcap"):
        with RawPcapReader(name) as reader:
            found.append([(meta.sec * 10**9 + meta.usec, octets) for octets, meta in reader][1:-1])
    return found


def captured(path: Path) -> list[list[tuple[int, bytes]]]:
    """Return stamp (ns) and octets of each frame of both interfaces of a pcapng."""
    found: list[list[tuple[int, bytes]]] = [[], []]
    with RawPcapNgReader(str(path)) as reader:
        for octets, meta in reader:
            found[int(meta.ifname.removeprefix(b"port"))].append((meta.tshigh << 32 | meta.tslow, octets))
    return found


def test_example_holds_each_frame_of_the_office_at_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ports = played(tmp_path, monkeypatch)
    capture_recording(EXAMPLES / "office.blocks", CaptureRequest(tmp_path / "again.pcapng"))
    seen = captured(EXAMPLES / "office.pcapng")
    assert captured(tmp_path / "again.pcapng") == seen
    begins_ns = seen[0][0][0] - ports[0][0][0]
    for wanted, found in zip(ports, seen, strict=True):
        assert [octets for _, octets in found] == [octets for _, octets in wanted]
        off_ns = [stamp - begins_ns - sent for (stamp, _), (sent, _) in zip(found, wanted, strict=True)]
        assert all(abs(off) <= TICK_NS for off in off_ns)


def test_examples_are_small() -> None:
    assert sum((EXAMPLES / name).stat().st_size for name in ("office.blocks", "office.pcapng")) < 100_000
