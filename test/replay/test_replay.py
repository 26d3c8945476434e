# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Replays from the first register to the result, over a model of the probe and real sockets."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from liteprobe.cores.formats import TransmitState
from liteprobe.host.base.errors import NoProbeError, ProbeError, UsageError
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.probe import Probe
from liteprobe.host.run.replay import ReplayOptions
from liteprobe.host.run.streamed import StreamLook
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.trace.trace import Trace
from liteprobe.sim.drivers.replay.capture_files import Packet, pcap, random_packets
from liteprobe.sim.drivers.replay.fake_probe import FakeReceiver, ReplayLink, fake_probe
from liteprobe.sim.drivers.tools.refusals import refusal
from liteprobe.sim.models.probe.replay import ReplayModel, SentFrame

Fake = tuple[ReplayModel, ReplayLink, FakeReceiver]


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Fake]:
    """A model, the link to it and the socket that takes words."""
    with fake_probe(tmp_path) as found:
        yield found


def file(folder: Path, packets: list[Packet], name: str = "frames.pcap") -> Trace:
    (folder / name).write_bytes(pcap(packets))
    return Trace.from_pcap(folder / name)


def starts(frames: list[SentFrame], port: int) -> list[int]:
    """Return the ticks of a port's frames, from the first one of any port on."""
    return [one.tick - frames[0].tick for one in frames if one.port == port]


def octets(one: Packet) -> bytes:
    return one.octets + bytes(max(one.length, 60) - len(one.octets))


def expected_starts(packets: list[Packet]) -> tuple[list[int], int]:
    """Return max(due, line free) of each, and how many are late."""
    free, found, late = 0, [], 0
    for one in packets:
        due = int(((one.time_s - packets[0].time_s) * 125_000_000 + Fraction(1, 2)) // 1)
        found.append(max(due, free))
        late += free > due
        free = found[-1] + max(one.length, 60) + 24
    return found, late


def test_two_files_on_two_ports_start_in_one_tick_and_every_frame_leaves_when_it_can(
    fake: Fake, tmp_path: Path
) -> None:
    packets = [random_packets(seed, 60, gap_ns=9000) for seed in (1, 2)]
    looks: list[StreamLook] = []
    with Probe(fake[1]) as probe:
        traces = {port: file(tmp_path, one, f"{port}.pcap") for port, one in enumerate(packets)}
        result = probe.replay(traces, show=looks.append)
    for port, own in enumerate(packets):
        wanted, late = expected_starts(own)
        assert starts(fake[0].frames, port) == wanted
        assert [one.octets for one in fake[0].frames if one.port == port] == [octets(one) for one in own]
        row = result[port]
        assert np.concatenate(list(row.planned_starts())).tolist() == wanted
        assert fake[0].values[f"port{port}_tx_attached"] == 1
        assert (row.asked, row.frames, row.late, row.waited, row.delayed) == (60, 60, 0, late, late)
        assert row.first_late is not None
        assert row.sent.is_all and row.is_whole
        said = f"port {port}: {late} frames waited until the frame before had left the line, as the trace has it"
        assert said in result.notes
    assert (result.end, result.is_complete, result.capture) == ("sent", True, None)
    frames = [look.frames[0] for look in looks]
    assert frames == sorted(frames) and frames[-1] == 60


@pytest.mark.parametrize(("seed", "gap_ns"), [(3, 9000), (4, 2000), (5, 700), (6, 20_000)])
def test_what_waits_in_each_turn_is_told_from_what_is_late(fake: Fake, tmp_path: Path, seed: int, gap_ns: int) -> None:
    """Unless the line is still busy when the next turn begins: then it is not known."""
    packets, loops = random_packets(seed, 40, gap_ns=gap_ns), 4
    trace = file(tmp_path, packets)
    with Probe(fake[1]) as probe:
        row = probe.replay(trace, loops=loops)[0]
    twice = np.concatenate([due for _, due in trace.repeated(2).due()])
    once, period = twice[: len(packets)], twice[len(packets)]  # The ring repeats whole ticks.
    due = np.concatenate([once + turn * period for turn in range(loops)]).tolist()
    free, wanted, waits, turns_apart = 0, [], 0, True
    for number, (tick, one) in enumerate(zip(due, packets * loops, strict=True)):
        turns_apart &= number % len(packets) > 0 or free <= tick
        wanted.append(max(tick, free))
        waits += free > tick
        free = wanted[-1] + max(one.length, 60) + 24
    assert starts(fake[0].frames, 0) == wanted
    assert row.delayed == waits
    assert (row.late, row.waited) == ((0, waits) if turns_apart or not waits else (None, None))


def test_an_underrun_is_said_with_the_number_of_its_frame(fake: Fake) -> None:
    fake[0].underrun_at[0] = 17
    with Probe(fake[1]) as probe:
        result = probe.replay(Trace.cbr(Interval(pps=10_000), 200, 40))
    row = result[0]
    assert (row.underruns, row.first_underrun, row.late, row.waited, row.is_whole) == (1, 17, 1, 0, False)
    assert not result.is_complete
    assert any("1 frames came too late from this host, number 17 first: give --snap" in note for note in result.notes)


def test_a_frame_that_is_late_and_had_not_to_be_makes_it_incomplete(fake: Fake) -> None:
    fake[0].late_at[0] = 3
    with Probe(fake[1]) as probe:
        result = probe.replay(Trace.cbr(Interval(pps=10_000), 200, 40))
    row = result[0]
    assert (row.late, row.first_late, row.waited, row.underruns, row.is_whole) == (1, 3, 0, 0, False)
    assert not result.is_complete


def test_a_short_trace_is_repeated_in_the_ring_and_a_long_one_by_the_host(fake: Fake) -> None:
    trace = Trace.cbr(Interval(pps=50_000), 60, 10)
    with Probe(fake[1]) as probe:
        result = probe.replay(trace, loops=3)
        assert (fake[0].values["port0_replay_loops"], fake[0].values["port0_replay_prime"]) == (
            3,
            170,
        )  # All its words.
        assert starts(fake[0].frames, 0) == [2500 * number for number in range(30)]
        assert (result[0].asked, result[0].frames, result.is_complete) == (30, 30, True)
        fake[0].frames.clear()
        result = probe.replay(Trace.cbr(Interval(pps=500_000), 60, 8000), loops=2)  # 17 words a frame.
        assert (fake[0].values["port0_replay_loops"], fake[0].values["port0_replay_prime"]) == (1, 122_880)
        assert starts(fake[0].frames, 0) == [250 * number for number in range(16_000)]
        assert (result[0].asked, result[0].frames, result.is_complete) == (16_000, 16_000, True)


@pytest.mark.parametrize("with_summary", [True, False])
def test_no_more_is_waited_for_than_the_trace_has(fake: Fake, tmp_path: Path, with_summary: bool) -> None:
    """Words that wait for a long time included."""
    packets = [Packet(Fraction(40 * number), bytes(60), 60) for number in range(3)]

    def show(look: StreamLook) -> None:
        raise Interrupted

    with Probe(fake[1]) as probe, pytest.raises(Interrupted):
        probe.replay(file(tmp_path, packets), options=ReplayOptions(with_summary=with_summary), show=show)
    assert fake[0].values["port0_replay_prime"] == 3 * 17 + 2 * 2


def test_an_interrupt_stops_the_ports_and_keeps_what_was_sent(fake: Fake) -> None:
    def show(look: StreamLook) -> None:
        if look.frames[0] > 10:
            raise Interrupted

    with Probe(fake[1]) as probe:
        with pytest.raises(Interrupted) as caught:
            probe.replay(Trace.cbr(Interval(pps=1000), 60, 100), loops=None, show=show)
        (result,) = caught.value.results
        assert 10 < result[0].frames < 100
        assert (result.end, result.is_complete) == ("interrupted", False)
        assert fake[0].values["port0_tx_state"] == TransmitState.IDLE


def test_a_link_that_goes_down_ends_it(fake: Fake) -> None:
    def show(look: StreamLook) -> None:
        fake[0].values["port0_tx_link_up"] = 0

    with Probe(fake[1]) as probe:
        with pytest.raises(ProbeError, match="the link of port 0 went down while it replayed"):
            probe.replay(Trace.cbr(Interval(pps=1000), 60, 1000), show=show)
        assert fake[0].values["port0_tx_state"] == TransmitState.IDLE


def test_a_load_that_a_slower_device_can_not_take_is_said(fake: Fake) -> None:
    with Probe(fake[1]) as probe:
        full = probe.replay(Trace.cbr(Interval(), 60, 5000))
        less = probe.replay(Trace.cbr(Interval(), 60, 5000).with_margin(200))
    assert any("100.000 % of the line" in note and "give --margin-ppm 200" in note for note in full.notes)
    assert less.notes == ()


def test_nothing_is_sent_when_a_file_is_wrong(fake: Fake, tmp_path: Path) -> None:
    trace = file(tmp_path, random_packets(1, 50))
    path = tmp_path / "frames.pcap"
    path.write_bytes(path.read_bytes()[:-1])
    with Probe(fake[1]) as probe:
        with pytest.raises(UsageError, match="packet 50 .* is cut after"):
            probe.replay(trace)
        with pytest.raises(UsageError, match="packet 50 .* is cut after"):
            probe.replay(trace, options=ReplayOptions(with_summary=False))
    assert fake[0].frames == []


def test_what_the_probe_or_the_link_can_not_is_refused(fake: Fake) -> None:
    model, link, receiver = fake
    trace = Trace.cbr(Interval(), 60, 10)
    with Probe(link) as probe:
        for given, words in (
            ({}, "there is no trace to replay"),
            ({2: trace}, "there is no transmit port 2: give 0 to 1"),
        ):
            with pytest.raises(UsageError, match=words):
                probe.replay(given)
        assert "can't be sent 0 times" in refusal(probe.replay, trace, loops=0)
        receiver.is_mute = True
        with pytest.raises(NoProbeError, match="nothing answers at 127.0.0.1"):
            probe.replay(trace, options=ReplayOptions(patience_s=0.3))
        receiver.is_mute = False
        link._receiver = None
        assert "over PCIe where its gateware has a DMA reader" in refusal(probe.replay, trace)
    model.values["probe_parts"] = 1 | 2
    with Probe(link) as probe, pytest.raises(UsageError, match="was built without the part replay"):
        probe.replay(trace)


def test_a_line_that_the_answers_leave_by_has_room_for_them(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    model, link, _ = fake
    read = model.read

    def answered(address: int) -> int:
        model.values["port0_tx_management_sent"] += 1
        return read(address)

    monkeypatch.setattr(model, "read", answered)
    monkeypatch.setattr(link, "is_in_band", True)
    half = Trace.cbr(Interval(share=0.5), 60, 100)
    with Probe(link) as probe:
        assert "this trace leaves no room for that on its line" in refusal(probe.replay, half.at_top())
        assert probe.replay({0: half, 1: half.at_top()}).is_complete
        monkeypatch.setattr(link, "is_in_band", False)
        assert probe.replay(half.at_top()).is_complete
