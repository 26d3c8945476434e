# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The option --host-filter of capture: libpcap over the octets of a recording."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from scapy.utils import RawPcapNgReader

from liteprobe.host.packets.filter import libpcap
from liteprobe.sim.drivers.capture.blocks import Captured, blocks_of
from liteprobe.sim.drivers.frames import stacks

Run = Callable[..., tuple[int, str, str]]
FIRST = 1_800_000_000_000_000_000


def stamps(path: Path) -> list[int]:
    with RawPcapNgReader(str(path)) as reader:
        return [meta.tshigh << 32 | meta.tslow for _, meta in reader]


@pytest.mark.parametrize("snap", [65535, 30])
@pytest.mark.parametrize("with_header", [False, True])
def test_host_filter_takes_what_libpcap_takes_and_counts_what_was_cut(
    run: Run, tmp_path: Path, snap: int, with_header: bool
) -> None:
    frames = stacks.stacks()
    sent = [Captured(FIRST + 1000 * at, frame, with_header=with_header, snap=snap) for at, frame in enumerate(frames)]
    blocks_of(sent).tofile(tmp_path / "a.blocks")
    ipv4 = [(FIRST + 1000 * at, frame) for at, frame in enumerate(frames) if frame[12:14] == b"\x08\x00"]
    for text, wanted in (
        ("ip[8] < 64", [stamp for stamp, frame in ipv4 if frame[22] < 64]),
        ("ip[24] & 2 != 0", [stamp for stamp, frame in ipv4 if frame[38] & 2 and snap > 38]),
    ):
        paths = str(tmp_path / "c.pcapng"), str(tmp_path / "c.json")
        code, _, err = run(
            "capture", "-r", str(tmp_path / "a.blocks"), "--filter", text, "--host-filter",
            "-w", paths[0], "--json", paths[1],
        )  # fmt: skip
        assert code == 0 and stamps(tmp_path / "c.pcapng") == wanted and "other than in tcpdump" not in err
        counts = json.loads((tmp_path / "c.json").read_text())
        cut = sum(len(frame) > snap for frame in frames)
        assert (counts["filtered"], counts["filter_cut"]) == (len(frames) - len(wanted), cut)
        assert (f"{cut} frames were cut (--snap) before libpcap looked at them" in err) == (cut > 0)


def test_host_filter_without_octets_or_without_libpcap_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = [Captured(FIRST + at, frame, with_header=True, snap=0) for at, frame in enumerate(stacks.stacks()[:9])]
    blocks_of(sent).tofile(tmp_path / "headers.blocks")
    asked = ("capture", "-r", str(tmp_path / "headers.blocks"), "--headers", str(tmp_path / "h"), "--filter", "ip")
    code, _, err = run(*asked, "--host-filter")
    assert code == 2 and "these came with headers alone: leave it out" in err
    monkeypatch.setattr(libpcap, "NAMES", ("no-libpcap.so",))
    libpcap.library.cache_clear()
    code, _, err = run(*asked, "--host-filter")
    assert code == 2 and "--host-filter needs libpcap: install it (Debian: libpcap0.8)" in err
    assert run(*asked)[0] == 0
