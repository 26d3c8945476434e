# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Replays over PCIe: words by way of rings in this machine's memory, to a card that reads them, from processes of their own."""

import json
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest

from liteprobe.cores.formats import DMA_SLOTS, RING_WORDS, map_hash
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.device.link.base import Link
from liteprobe.host.device.link.pcie import PcieLink
from liteprobe.host.probe import Probe
from liteprobe.host.replay.dma import DmaFlow, DmaTarget, PortAddresses
from liteprobe.host.replay.slots import DMA_SLOT, Cell, Fault, ReplaySession, Slots
from liteprobe.host.replay.streamer import Streamer
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.trace.trace import Trace
from liteprobe.sim.drivers.pcie.replay_card import CardServer, ReplayCard
from liteprobe.sim.drivers.replay.capture_files import Packet, pcap
from liteprobe.sim.drivers.replay.fake_probe import RandomWords, Ring
from liteprobe.sim.drivers.tools.processes import wait_for

Run = Callable[..., tuple[int, str, str]]
SESSION, LEASE = 0x1234, 0x8000
PATH = "/dev/litepcie0"


@pytest.fixture
def card(tmp_path: Path) -> ReplayCard:
    return ReplayCard(tmp_path)


@pytest.fixture
def server(card: ReplayCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CardServer]:
    """Lets this and other processes open the card's devices, whose first one is /dev/litepcie0."""
    with CardServer(card, tmp_path) as made:

        def open_link(url: str) -> Link:
            path = url.removeprefix("pcie://")
            return PcieLink(made.open_device(path), path)

        monkeypatch.setattr("liteprobe.host.probe.open_link", open_link)
        monkeypatch.setattr("liteprobe.host.run.streamed.DmaTarget", partial(DmaTarget, open_device=made.open_device))
        yield made


def probe_of(card: ReplayCard) -> Probe:
    return Probe(PcieLink(card.open(PATH), PATH), card.map_file)


def addresses(card: ReplayCard) -> tuple[PortAddresses, ...]:
    with probe_of(card) as probe:
        return tuple(PortAddresses.of(probe.registers, port) for port in range(2))


def flow_of(card: ReplayCard, words: RandomWords, port: int = 0, ring: Ring | None = None) -> DmaFlow:
    """Return a flow whose slots are all made, to a ring of a session that is open."""
    card.rings[port] = ring or Ring(SESSION, LEASE)
    session = ReplaySession(port, SESSION, LEASE)
    slots = Slots(4 * DMA_SLOTS, shape=DMA_SLOT)
    slots.fill(words, session)
    path = f"/dev/litepcie{port}"
    return DmaFlow(slots, session, card.open(path), path, addresses(card)[port])


def run_to_end(card: ReplayCard, flow: DmaFlow) -> int:
    """Step until all is there; return how many steps it took."""
    steps = 0
    while flow.slots.cells[Cell.ACCEPTED] < flow.slots.cells[Cell.WORDS]:
        flow.step()
        assert flow.slots.cells[Cell.FAULT] == Fault.NONE
        steps += 1
        assert steps < 100_000
    return steps


@pytest.mark.parametrize("count", [1, 1019, 1020, 1021, 300_000])
def test_what_is_in_the_ring_is_what_was_given(card: ReplayCard, count: int) -> None:
    """The rings wrap in both memories."""
    words = RandomWords(count, count)
    flow = flow_of(card, words, port=1)
    run_to_end(card, flow)
    flow.close()
    assert bytes(card.rings[1].octets) == words.all().tobytes()
    assert flow.slots.cells[Cell.SENT] == card.rings[1].taken == -(-count // 1020)
    assert card.running == [] and card.locked == set()


def test_a_probe_without_room_is_waited_for(card: ReplayCard) -> None:
    words = RandomWords(3, 200_000)
    flow = flow_of(card, words, ring=Ring(SESSION, LEASE, words=4096, words_a_second=1e6, since_s=time.monotonic()))
    run_to_end(card, flow)
    assert bytes(card.rings[0].octets) == words.all().tobytes()
    assert card.rings[0].full == 0


def test_slots_are_given_back_only_when_the_probe_has_read_them(card: ReplayCard) -> None:
    words = RandomWords(5, 1020 * 600)
    card.rings[0] = Ring(SESSION, LEASE, words=1020, words_a_second=1e-9, since_s=time.monotonic())
    flow = flow_of(card, words, ring=card.rings[0])
    for _ in range(50):
        flow.step()
    assert flow.slots.cells[Cell.SENT] == DMA_SLOTS + 1, "one is in the probe's ring, the others in this machine's"
    assert flow.slots.cells[Cell.FREED] == DMA_SLOTS + 1


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda card: card.rings.update({0: Ring(SESSION + 1, LEASE)}), Fault.SESSION),
        (lambda card: card.probe.values.update({"probe_lease_owner": 0x9001}), Fault.NONE),
        (lambda card: card.reset(0, 7000), Fault.GONE),
        (lambda card: card.probe.count(0, accepted=10**6), Fault.BROKEN),
        (lambda card: card.probe.count(0, early=1), Fault.BROKEN),
    ],
)
def test_what_contradicts_the_stream_ends_it(
    card: ReplayCard, change: Callable[[ReplayCard], None], fault: Fault
) -> None:
    flow = flow_of(card, RandomWords(1, 600_000))
    flow.step()
    change(card)
    for _ in range(3):
        flow.step()
    assert flow.slots.cells[Cell.FAULT] == fault


def test_a_lease_that_another_host_has_taken_is_told_from_another_session(card: ReplayCard) -> None:
    flow = flow_of(card, RandomWords(1, 600_000))
    flow.step()
    card.probe.values["probe_lease_owner"] = 0x9001
    card.rings[0] = Ring(SESSION + 1, 0x9001)
    for _ in range(3):
        flow.step()
    assert flow.slots.cells[Cell.FAULT] == Fault.LEASE


def packets(gap_us: int = 100, count: int = 20, length: int = 100) -> list[Packet]:
    return [Packet(Fraction(number * gap_us, 10**6), bytes([number]) * length, length) for number in range(count)]


def test_liteprobe_replay_sends_two_files_on_two_ports_over_pcie(
    run: Run, card: ReplayCard, server: CardServer, tmp_path: Path
) -> None:
    for name, count in (("a.pcap", 20), ("b.pcap", 10)):
        (tmp_path / name).write_bytes(pcap(packets(count=count)))
    files = [str(tmp_path / name) for name in ("a.pcap", "b.pcap")]
    code, out, err = run(
        "replay", *files, "--probe", f"pcie://{PATH}", "--map", str(card.map_file), "--transmit", "0,1",
        "--json", str(tmp_path / "r.json"),
    )  # fmt: skip
    assert (code, err) == (0, "")
    content = json.loads((tmp_path / "r.json").read_text())
    rows = [(row["port"], row["asked"], row["frames"], row["late"], row["underruns"]) for row in content["ports"]]
    assert (content["end"], content["is_complete"], rows) == ("sent", True, [(0, 20, 20, 0, 0), (1, 10, 10, 0, 0)])
    first = card.probe.frames[0].tick
    for port, count in ((0, 20), (1, 10)):
        sent = [one for one in card.probe.frames if one.port == port]
        assert [one.tick - first for one in sent] == [12_500 * number for number in range(count)]
        assert [one.octets for one in sent] == [one.octets for one in packets(count=count)]
    assert "All was sent within " in out
    wait_for(lambda: not card.running and not card.locked)


def test_a_trace_that_is_longer_than_the_ring_is_streamed_while_it_is_sent(
    card: ReplayCard, server: CardServer
) -> None:
    with Probe(PcieLink(server.open_device(PATH), PATH), card.map_file) as probe:
        result = probe.replay(Trace.cbr(Interval(pps=500_000), 60, 8000))  # 17 words a frame.
    row = result[0]
    assert (row.asked, row.frames, row.late, row.underruns, row.counts.full) == (8000, 8000, 0, 0, 0)
    assert row.sent.accepted == 136_000 > RING_WORDS and row.sent.resent == 0 and result.is_complete


def test_a_ring_that_another_program_has_is_said_before_anything_is_sent(card: ReplayCard, server: CardServer) -> None:
    card.locked.add(0)
    with (
        Probe(PcieLink(server.open_device(PATH), PATH), card.map_file) as probe,
        pytest.raises(ProbeError, match="another program streams to /dev/litepcie0: end it"),
    ):
        probe.replay(_trace())
    assert card.probe.frames == []


def _trace() -> Trace:
    return Trace.cbr(Interval(pps=10_000), 100, 20)


def test_a_card_that_is_pulled_out_ends_the_stream(card: ReplayCard, server: CardServer) -> None:
    card.rings[0] = Ring(SESSION, LEASE, words=4096, words_a_second=1.0, since_s=time.monotonic())
    target = DmaTarget(PATH, addresses(card), server.open_device)
    with Streamer(target, {ReplaySession(0, SESSION, LEASE): RandomWords(1, 3_000_000)}) as streamer:
        wait_for(lambda: streamer.state(0).accepted)
        card.is_gone = True
        with pytest.raises(ProbeError, match="/dev/litepcie0 is gone"):
            wait_for(lambda: streamer.state(0).is_all)


def test_a_probe_without_a_reader_refuses(card: ReplayCard, server: CardServer) -> None:
    content = json.loads(card.map_file.read_text())
    content["csr_registers"] = {
        name: entry for name, entry in content["csr_registers"].items() if "replay_dma" not in name
    }
    card.probe.values["probe_map_hash"] = map_hash(content)
    card.map_file.write_text(json.dumps(content))
    with (
        Probe(PcieLink(server.open_device(PATH), PATH), card.map_file) as probe,
        pytest.raises(UsageError, match="where its gateware has a DMA reader"),
    ):
        probe.replay(_trace())


SCRIPT = """
import pickle, sys, time
from pathlib import Path
from liteprobe.host.replay.streamer import Streamer
if __name__ == "__main__":
    target, sources = pickle.loads(Path(sys.argv[1]).read_bytes())
    with Streamer(target, sources):
        time.sleep(60)
"""


def test_a_host_that_is_killed_leaves_the_card_to_the_next_one(
    card: ReplayCard, server: CardServer, tmp_path: Path
) -> None:
    card.rings[0] = Ring(SESSION, LEASE, words=4096, words_a_second=1e5, since_s=time.monotonic())
    target = DmaTarget(PATH, addresses(card), server.open_device)
    script, given = tmp_path / "stream.py", tmp_path / "given"
    script.write_text(SCRIPT)
    given.write_bytes(pickle.dumps((target, {ReplaySession(0, SESSION, LEASE): RandomWords(1, 20_000_000)})))
    process = subprocess.Popen([sys.executable, str(script), str(given)])
    wait_for(lambda: card.rings[0].taken > 3)
    process.kill()
    process.wait()
    wait_for(lambda: not card.running and not card.locked)
    with Probe(PcieLink(server.open_device(PATH), PATH), card.map_file) as probe:
        result = probe.replay(_trace())
    assert (result[0].frames, result.is_complete) == (20, True)
