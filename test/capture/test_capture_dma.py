# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""`liteprobe capture --via dma`: all that a card writes into the host's memory, octet for octet, and how it ends if it can't."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from scapy.utils import RawPcapNgReader

from liteprobe.cores.formats import DMA_SLOTS, PRESETS
from liteprobe.host.base.errors import NoProbeError
from liteprobe.host.capture import sources
from liteprobe.host.device.link.base import Link
from liteprobe.host.device.link.pcie import PcieLink
from liteprobe.sim.drivers.capture.blocks import Captured, blocks_of, mixed
from liteprobe.sim.drivers.pcie.fake_card import FakeCard
from liteprobe.sim.drivers.system.fake_link import FakeLink

Run = Callable[..., tuple[int, str, str]]
Insert = Callable[..., FakeCard]
SEED = 20261122


@pytest.fixture
def insert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Insert:
    """Puts a card with these frames into the slot, whose first device is /dev/litepcie0."""

    def made(frames: Sequence[Captured], **options: Any) -> FakeCard:
        card = FakeCard(blocks_of(frames), tmp_path, **options)

        def open_link(url: str) -> Link:
            path = url.removeprefix("pcie://")
            return PcieLink(card.open(path), path)

        monkeypatch.setattr("liteprobe.host.probe.open_link", open_link)
        monkeypatch.setattr("liteprobe.host.capture.live.DeviceFile", card.open)
        return card

    return made


@pytest.fixture
def capture(run: Run, tmp_path: Path) -> Callable[..., tuple[int, str, dict[str, Any]]]:
    """Captures from a card, and asks it to end at once: what is in its rings must come all the same."""

    def command(*arguments: str, probe: str = "/dev/litepcie0") -> tuple[int, str, dict[str, Any]]:
        paths = [tmp_path / name for name in ("c.pcapng", "c.json", "csr.json")]
        end = () if "--duration" in arguments else ("--duration", "1ns")
        code, out, err = run(
            "capture", "--probe", f"pcie://{probe}", "--map", str(paths[2]), *end,
            "-w", str(paths[0]), "--json", str(paths[1]), *arguments,
        )  # fmt: skip
        assert out == ""
        return code, err, json.loads(paths[1].read_text()) if paths[1].exists() else {}

    return command


def packets(folder: Path) -> list[tuple[int, bytes]]:
    """Return stamp and octets of each packet, by stamp."""
    with RawPcapNgReader(str(folder / "c.pcapng")) as reader:
        return sorted((meta.tshigh << 32 | meta.tslow, octets) for octets, meta in reader)


def truth(frames: Sequence[Captured]) -> list[tuple[int, bytes]]:
    return [(frame.stamp, frame.kept) for frame in frames if not frame.missing]


def is_let_go(card: FakeCard) -> bool:
    """Return whether the next program finds it as it should be."""
    return not (
        card.running or card.locked or card.probe.values["capture_enable"] or any(f.is_open for f in card.files)
    )


@pytest.mark.parametrize("pace", [1, 5])
def test_every_frame_of_all_channels_comes_over_rings_that_wrap(
    insert: Insert, capture: Any, tmp_path: Path, pace: int
) -> None:
    frames = mixed(4000, SEED, channels=(0, 3, 5), gaps=0.05)
    card = insert(frames, pace=pace)
    code, err, counts = capture("--channels", "0,3,5")
    assert code == 0 and packets(tmp_path) == truth(frames)
    assert all(card.probe.values[f"capture_dma_written{channel}"] > 2 * DMA_SLOTS for channel in (0, 3, 5))
    gaps = [frame.missing for frame in frames if frame.missing]
    assert (counts["gaps"], counts["gap_frames"]) == (len(gaps), sum(gaps)) and len(gaps) > 20
    assert [counts[name] for name in ("missing", "damaged", "broken", "cut", "repeated", "restarts")] == [0] * 6
    assert "bus" not in err and is_let_go(card)


def test_capture_begins_before_its_dma_and_a_second_one_anew(insert: Insert, capture: Any, tmp_path: Path) -> None:
    frames = mixed(60, SEED)
    card = insert(frames)
    assert capture("--via", "dma")[0] == 0 and packets(tmp_path) == truth(frames)
    writes = card.probe.writes
    before_dma = writes[: writes.index("capture_dma_taken0")]
    assert before_dma.count("capture_enable") == 2, "the capture begins first, then its DMA"
    assert capture("--via", "dma")[0] == 0 and packets(tmp_path) == truth(frames), "a second one begins anew"


def test_ring_that_is_full_is_told(insert: Insert, capture: Any, tmp_path: Path) -> None:
    frames = mixed(1200, SEED)
    card = insert(frames, pace=DMA_SLOTS)
    code, err, counts = capture()
    whole_rings = (len(blocks_of(frames)) - 1) // DMA_SLOTS
    assert code == 0 and packets(tmp_path) == truth(frames)
    assert counts["stalls"] == whole_rings > 1 and f"{whole_rings} times this host was too slow to take blocks" in err
    assert is_let_go(card)


def test_count_ends_it_with_blocks_left_in_the_rings(insert: Insert, capture: Any, tmp_path: Path) -> None:
    frames = mixed(2000, SEED)
    card = insert(frames, pace=1)
    code, _, counts = capture("--count", "5", "--duration", "100s")
    assert (code, counts["frames"]) == (0, 5) and packets(tmp_path) == truth(frames)[:5]
    assert card.probe.values["capture_dma_written0"] < len(blocks_of(frames)) and is_let_go(card)


def test_ring_of_another_program_is_an_error_and_its_capture_goes_on(insert: Insert, capture: Any) -> None:
    card = insert(mixed(60, SEED))
    card.locked.add(3)
    code, err, _ = capture("--channels", "0,3")
    assert (code, err.count("\n")) == (1, 1) and "another program takes what /dev/litepcie3 captures: end it" in err
    assert card.locked == {3} and not any(file.is_open for file in card.files)
    assert [name for name in card.probe.writes if name.startswith(("capture", "filter", "port0_monitor"))] == []


def test_devices_that_cant_be_opened_leave_the_bus_and_say_so(insert: Insert, capture: Any, tmp_path: Path) -> None:
    frames = mixed(20, SEED, channels=(0, 3))
    card = insert(frames)
    card.absent.add("/dev/litepcie3")
    code, err, _ = capture("--channels", "0,3")
    assert code == 0 and packets(tmp_path) == truth(frames) and is_let_go(card)
    assert "blocks come over the bus, which is slow: can't open /dev/litepcie3" in err
    code, err, _ = capture("--channels", "0,3", "--via", "dma")
    assert (code, err) == (NoProbeError("").exit_code, "liteprobe: can't open /dev/litepcie3 (absent)\n")
    assert is_let_go(card)


def test_bus_is_taken_where_it_is_asked_for(insert: Insert, capture: Any, tmp_path: Path) -> None:
    frames = mixed(20, SEED)
    card = insert(frames)
    assert capture("--via", "bus")[0] == 0 and packets(tmp_path) == truth(frames)
    assert len(card.files) == 1 and "capture_dma_taken0" not in card.probe.writes


def test_channel_without_a_ring_is_told(insert: Insert, capture: Any, tmp_path: Path) -> None:
    frames = mixed(20, SEED, channels=(1, 4))
    insert(frames, rings=4)
    code, err, _ = capture("--channels", "1,4", "--via", "dma")
    assert code == 2 and "has no ring for channel 4 in the host's memory: give others (--channels), or --via bus" in err
    code, err, _ = capture("--channels", "1,4")
    assert code == 0 and packets(tmp_path) == truth(frames) and "over the bus, which is slow" in err


def test_other_link_has_no_dma(run: Run, insert: Insert, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = insert(mixed(20, SEED))
    monkeypatch.setattr("liteprobe.host.probe.open_link", lambda url: FakeLink(card.probe, tmp_path))
    code, _, err = run("capture", "--via", "dma", "-w", str(tmp_path / "c.pcapng"))
    assert (code, err.count("\n")) == (2, 1)
    assert "a probe in a PCIe slot only: leave out --via dma, or give --probe pcie:///dev/litepcie0" in err


def test_device_of_another_channel_is_not_the_first(insert: Insert, capture: Any) -> None:
    card = insert(mixed(20, SEED))
    code, err, _ = capture(probe="/dev/litepcie1")
    assert code == 1 and "/dev/litepcie1 isn't the device of channel 0: give the probe's first one" in err
    assert is_let_go(card)


def test_blocks_that_never_come_end_in_an_error(insert: Insert, capture: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "DMA_END_LOOKS", 100)
    frames = mixed(60, SEED)
    card = insert(frames)
    card.is_stuck = True
    code, err, _ = capture()
    left = len(blocks_of(frames))
    assert code == 1 and f"doesn't end its capture: blocks left of each channel {{0: {left}}}" in err
    assert is_let_go(card)


def test_card_that_is_pulled_out_leaves_nothing_open(
    insert: Insert, capture: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = insert(mixed(60, SEED))

    def pull_out(*_: Any) -> None:
        card.is_gone = True

    monkeypatch.setattr(sources.DmaSource, "stop", pull_out)
    code, err, _ = capture("--channels", "0,3")
    assert code == 3 and "is gone" in err and not any(file.is_open for file in card.files)


def test_probe_without_flow_hash_refuses_what_needs_it_and_captures_all_else(
    insert: Insert, capture: Any, tmp_path: Path
) -> None:
    frames = mixed(60, SEED)
    card = insert(frames, with_hash=False)
    for arguments, why in (
        (("--channels", "0,3"), "so all frames go to channel 0: leave --channels out, or build"),
        (("--channels", "2"), "so all frames go to channel 0: leave --channels out, or build"),
        (
            ("--sample", "hash:8"),
            "so it samples by count alone: give --sample 8, or build and load a probe with --hash",
        ),
    ):
        code, err, _ = capture(*arguments)
        assert (code, err.count("\n")) == (2, 1) and "this probe has no flow hash" in err and why in err
        assert not any(name.startswith("port") for name in card.probe.writes) and is_let_go(card)
    assert capture("--sample", "8")[0] == 0 and packets(tmp_path) == truth(frames)
    assert [card.probe.values[f"port{port}_monitor_sample"] for port in range(2)] == [3, 3]


@pytest.mark.parametrize("with_hash", [True, False])
def test_info_says_whether_a_monitor_has_the_flow_hash(
    insert: Insert, run: Run, tmp_path: Path, with_hash: bool
) -> None:
    card = insert([], with_hash=with_hash)
    card.probe.values["probe_parts"] = int(PRESETS["monitor"])
    code, out, _ = run("info", "--probe", "pcie:///dev/litepcie0", "--map", str(tmp_path / "csr.json"), "--json")
    assert (code, json.loads(out)["flow_hash"]) == (0, with_hash)
