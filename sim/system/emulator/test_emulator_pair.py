# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A tester beside an emulator, in one simulation: the tester measures the delays and losses that the emulator was given."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from liteprobe.cores.formats import Part
from liteprobe.host import Probe
from liteprobe.host.base.errors import UsageError
from liteprobe.host.device.link import sim
from liteprobe.host.device.link.url import sim_options
from liteprobe.host.run.figures import StreamFigures
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.lengths import Fixed
from liteprobe.host.traffic.network.document import read_network
from liteprobe.host.traffic.stream import Stream
from liteprobe.host.traffic.train import TrainProgram

PAIR = "sim://pair?preset=tester&peer=emulator&cpu=0&oscillators=0,0"
FRAMES, LENGTH = 400, 100
CABLES_NS = 2 * 8  # To the emulator and back.
NETWORKS = (("60us", "none"), ("100us", "'00100000'"))


def documents(folder: Path) -> Iterator[tuple[int, Path]]:
    """Write two networks that differ by 40 us and in the third of each eight frames; yield delay (us) and document of each."""
    document = folder / "network.yaml"
    for delay, pattern in NETWORKS:
        document.write_text(f"there: {{delay: {delay}, loss_pattern: {pattern}}}\n")
        yield int(delay.removesuffix("us")), document


def sent_through(probe: Probe) -> StreamFigures:
    """Send frames from port 0 to port 1; return what was measured of them, after all were sent."""
    (found,) = (
        probe.send([Stream("one", 1, Fixed(LENGTH), Interval(pps=150_000), FRAMES)], receive={0: 1}).result().rows
    )
    assert (found.sent, found.late, found.duplicated) == (FRAMES, 0, 0)
    return found


@pytest.fixture
def built(own: Path, emulator_build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the probes of a pair be two that other tests have built, whatever is asked for."""
    monkeypatch.setattr(sim, "build", lambda options, *_: emulator_build if options.preset == "emulator" else own)


@pytest.mark.usefixtures("built")
def test_a_train_finds_the_delay_and_the_loss_that_were_asked_for_exactly(tmp_path: Path) -> None:
    """Two networks that differ by 40 us and in the third of each eight frames: so do the delays and losses of each frame."""
    lost = [[], [number for number in range(FRAMES) if number % 8 == 2]]
    for without, (delay_us, document) in zip(lost, documents(tmp_path), strict=True):
        with Probe(f"sim://emulated?preset=train&by={document}") as probe:
            assert probe.parts & Part.GENERATE and not probe.parts & Part.EMULATE
            found = probe.train(TrainProgram(LENGTH, FRAMES, interval_ns=6000.0), transmit=0, receive=1)
        assert (found.sent, found.late, found.complete) == (FRAMES, 0, True)
        assert found.records["sequence"].tolist() == [number for number in range(FRAMES) if number not in without]
        assert set(found.records["rx_stamp"] - found.records["tx_stamp"]) == {1000 * delay_us + CABLES_NS}


@pytest.mark.full
def test_a_delay_and_a_loss_that_were_asked_for_are_those_that_are_measured(tmp_path: Path) -> None:
    """Two networks that differ by 40 us and in the third of each eight frames: so do all delays, to the ns, and the losses."""
    delays_ns, found = [], []
    for delay_us, document in documents(tmp_path):
        delays_ns.append(1000 * delay_us)
        with Probe(f"sim://emulated?by={document}") as probe:
            found.append(sent_through(probe))
    assert [one.lost for one in found] == [0, FRAMES // 8]
    for delay_ns, one in zip(delays_ns, found, strict=True):
        assert one.latency and (one.latency.least_ns, one.latency.most_ns) == (
            delay_ns + CABLES_NS,
            delay_ns + CABLES_NS,
        )


@pytest.mark.full
def test_both_probes_of_a_pair_are_what_they_are_said_to_be() -> None:
    with Probe(f"{PAIR}&probe=a") as tester, Probe(f"{PAIR}&probe=b") as emulator:
        assert tester.parts & Part.STREAMS and not tester.parts & Part.EMULATE
        assert emulator.parts & Part.EMULATE and not emulator.parts & Part.STREAMS
        emulation = emulator.emulate(read_network("there: {delay: 60us}"))
        assert sent_through(tester).received == FRAMES
        assert emulation


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "by=network.yaml"),
        ("?by=none.yaml", "can't read none.yaml"),
        ("?by=CHANGES", "leave out the key 'changes'"),
        ("?by=WRONG", "delay"),
        ("?by=LONG", "queue|frames"),
        ("?by=GOOD&peer=nothing", "peer is"),
    ],
)
def test_what_cannot_be_emulated_is_refused_before_a_probe_is_built(
    options: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("liteprobe.host.probe.open_link", lambda url: pytest.fail(f"{url} was opened"))
    texts = {
        "CHANGES": "changes: [{at: 1s, there: {delay: 1ms}}]",
        "WRONG": "there: {delay: 1 parsec}",
        "LONG": "there: {rate: 1Mbit, queue: 1000000}",
        "GOOD": "there: {}",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        options = options.replace(f"={name}", f"={tmp_path / name}")
    with pytest.raises(UsageError, match=said):
        Probe(f"sim://emulated{options}")


def test_the_other_probe_of_the_pair_has_no_document() -> None:
    options = sim_options("sim://emulated?by=a%2526b.yaml&preset=generator")
    assert (options.emulates, options.peer, options.preset, options.oscillators) == (
        Path("a%26b.yaml"),
        "emulator",
        "generator",
        (0.0, 0.0),
    )
