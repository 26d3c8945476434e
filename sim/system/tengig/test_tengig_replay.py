# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Traces that the simulated probe of 10 Gb/s replays while a host streams them: every frame at the pins is the file's."""

import json
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from liteprobe.cores.formats import LEASE_UNIT_BITS, Part, TransmitState
from liteprobe.host import Interval, Probe, ProbeError, Sets, UsageError
from liteprobe.host.base.errors import LeaseLostError
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.cli.main import main
from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.device.link.url import sim10g_options
from liteprobe.host.run.streamed import StreamLook
from liteprobe.host.traffic.lengths import Fixed
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.stream import Stream
from liteprobe.host.traffic.trace.trace import Trace
from liteprobe.sim.drivers.system import senders
from liteprobe.sim.drivers.system.senders import Packet, Sent
from liteprobe.sim.models import xgmii
from liteprobe.sim.system.xgmii.build import build_probe

COLUMN = 4


@pytest.fixture(scope="session")
def build() -> Path:
    """The simulated probe of 10 Gb/s that replays."""
    return build_probe("replay")


@contextmanager
def joined(build: Path, files: Path, more: str = "") -> Iterator[Sent]:
    """One whose ports are joined by a cable; its pins go to files."""
    options = sim10g_options(f"sim10g://cable?delay=1us&preset=replay&build={build}{more}")
    with Probe(SimLink(replace(options, pcap=files / "pins"))) as probe:
        yield Sent(probe, files)


@pytest.fixture
def both(build: Path, tmp_path: Path) -> Iterator[Sent]:
    with joined(build, tmp_path) as sent:
        yield sent


def made(sent: Sent, name: str, *arguments: float) -> tuple[Trace, list[Packet]]:
    """Return random packets, and the trace of a file of them, ten times as fast: a tick of 1 Gb/s is then an octet."""
    count, seed, load, shortest, longest = arguments
    packets = list(senders.packets(int(count), int(seed), load, int(shortest), int(longest)))
    senders.write(sent.files / name, packets)
    return Trace.from_pcap(sent.files / name).stretched(Fraction(1, 10)), packets


def octets_of(time_ns: float) -> int:
    """Return a time of a file that is ten times as fast, in octets, rounded as the host does."""
    return int(time_ns / 8 + 0.5)


def wrong(frames: senders.Frames, packets: Sequence[Packet], loops: int = 1) -> list[str]:
    """Return what left a port otherwise than a file ten times as fast says: each in the column of its octet, or when it may.

    A trace that loops has a mean interval before each turn, the first one too.
    """
    dues = [octets_of(packet.time_ns - packets[0].time_ns) for packet in packets]
    span_ns = packets[-1].time_ns - packets[0].time_ns
    turn = octets_of(span_ns + -(-span_ns // (len(packets) - 1)))
    first = turn - dues[-1] if loops > 1 else 0
    wanted = [(first + turn * n + due) // COLUMN * COLUMN for n in range(loops) for due in dues]
    lengths = [len(packet.octets) for packet in packets] * loops
    starts = [wanted[0] + (stamp - frames[0][0]) // 8 for stamp, _ in frames]
    theory = xgmii.started(wanted, [False] * len(wanted), lengths)
    found = [
        f"frame {n} starts at {start}, not {right}"
        for n, (start, right) in enumerate(zip(starts, theory))
        if start != right
    ]
    if [octets for _, octets in frames] != [packet.octets for packet in packets] * loops:
        found.append(f"{len(frames)} frames have not the octets of {len(packets) * loops}")
    return found


def test_two_files_start_in_one_column_and_each_frame_in_its_own(both: Sent) -> None:
    assert both.probe.parts == Part.GENERATE | Part.MEASURE | Part.REPLAY
    one, packets = made(both, "one.pcap", 150, 1, 0.5, 60, 400)
    other, others = made(both, "other.pcap", 60, 2, 1.0, 60, 1514)
    result = both.probe.replay({0: one, 1: other})
    frames = both.all_pins(0), both.all_pins(1)
    assert (wrong(frames[0], packets), wrong(frames[1], others)) == ([], [])
    assert frames[0][0][0] == frames[1][0][0]
    for port, count in ((0, 150), (1, 60)):
        assert (result[port].frames, result[port].underruns, result[port].late) == (count, 0, 0)
    assert result.is_complete
    assert (result[1].counts.errors, result[1].waited, result[1].fetched_late) == (0, 0, 0)
    assert result[1].rate_bps == pytest.approx(1e10)


def test_a_trace_loops_in_the_ring_and_the_longest_frames_fill_the_line(both: Sent) -> None:
    trace, packets = made(both, "short.pcap", 20, 4, 0.6, 60, 203)
    result = both.probe.replay(trace, loops=5)
    frames = both.all_pins(0)
    assert wrong(frames, packets, 5) == []
    assert (result[0].frames, result[0].underruns, result[0].counts.errors) == (100, 0, 0)
    longest, packets = made(both, "longest.pcap", 12, 9, 1.0, 9000, 9000)
    result = both.probe.replay(longest)
    assert wrong(both.all_pins(0)[len(frames) :], packets) == []
    assert result.is_complete


def test_a_replay_that_is_stopped_ends_with_a_whole_frame_and_the_next_one_is_right(both: Sent) -> None:
    endless, packets = made(both, "endless.pcap", 30, 5, 1.0, 1514, 1514)
    result, frames = senders.stop_replay(both, endless)
    assert {octets for _, octets in frames} == {packet.octets for packet in packets} and len(frames) > 60
    assert (result.end, result[0].frames) == ("interrupted", len(frames))
    trace, packets = made(both, "next.pcap", 50, 6, 0.5, 60, 300)
    both.probe.replay(trace)
    assert wrong(both.all_pins(0)[len(frames) :], packets) == []


def test_a_network_that_loses_what_is_streamed_changes_no_octet(build: Path, tmp_path: Path) -> None:
    with joined(build, tmp_path, "&network=loss=5%,duplicate=5%,reorder=5%,seed=1") as sent:
        trace, packets = made(sent, "lossy.pcap", 60, 3, 0.6, 60, 1514)
        result = sent.probe.replay(trace)
        assert wrong(sent.all_pins(0), packets) == []
        assert result.is_complete and result[0].sent.resent > 0


def test_a_host_that_is_gone_leaves_a_probe_that_ends_by_itself(both: Sent) -> None:
    unit_s = 2**LEASE_UNIT_BITS / both.probe.registers.constant("config_clock_frequency")
    endless, _ = made(both, "endless.pcap", 30, 7, 0.005, 1514, 1514)

    def go(look: StreamLook) -> None:
        if look.frames[0] > 5:
            both.probe.registers.write("probe_lease_timeout", 0)  # The unit that has begun.
            both.probe.lease._stop_beats()  # As a host that is killed, or unplugged.
            raise Interrupted(signal.SIGTERM)

    transmit = both.probe.ports[0].transmit
    halt, both.probe.ports[0].halt = both.probe.ports[0].halt, lambda timebase: False  # Nor does it stop the port.
    with pytest.raises((Interrupted, ProbeError)):
        both.probe.replay(endless, loops=None, show=go)
    states = [transmit.look()[0]]
    both.probe.ports[0].halt = halt
    with pytest.raises(LeaseLostError, match="heard nothing of this host for too long"):
        for _ in range(8):
            both.probe.wait(unit_s / 8)
            transmit.look()
    states.append(transmit.look()[0])
    assert states == [TransmitState.RUNNING, TransmitState.IDLE]


def test_the_command_replays_at_the_rate_of_the_line(
    build: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    senders.write(tmp_path / "some.pcap", senders.packets(40, 8, 0.5, 500, 1514))
    url = f"sim10g://cable?preset=replay&build={build}"
    for pace, rate in (("--top", 1e10), ("--rate=50%", 5e9), ("--rate=2.5G", 2.5e9)):
        out = tmp_path / "replay.json"
        assert main(["replay", str(tmp_path / "some.pcap"), pace, "--probe", url, "--json", str(out)]) == 0
        row = json.loads(out.read_text())["ports"][0]
        # The last frame has no gap after it.
        assert row["planned"]["rate_bps"] == pytest.approx(rate, rel=0.06)
        assert (row["frames"], row["late"], row["underruns"], row["is_whole"]) == (40, 0, 0, True)
        assert f"{100 * row['planned']['rate_bps'] / 1e10:.2f} %" in capsys.readouterr().out


def test_what_replay_lacks_at_10_gigabit_is_refused_with_what_to_do(build: Path, tmp_path: Path) -> None:
    trace = Trace.cbr(Interval(rate_bps=5e8), 100, 5)
    sets = Sets.from_columns(Stream("line", 7, Fixed(64), Interval()), {"address": range(5)})
    with Probe(f"sim10g://cable?preset=replay&build={build}") as probe:
        for act, said in [
            (
                lambda: probe.replay(trace.stamped(Stamp("octet", octet=42))),
                "replays frames without a stamp: leave --stamp out",
            ),
            (lambda: probe.replay(trace.at_rate(10_000_000_001)), "out of range: give 1 to 1e9"),
            (
                lambda: probe.sets(sets),
                "without the part sets: at 10 Gb/s there are trains, streams and replay alone so far",
            ),
            (lambda: probe.replay(trace, capture=tmp_path / "seen.pcapng"), "this probe captures nothing"),
        ]:
            with pytest.raises(UsageError, match=said):
                act()
        assert probe.busy_port is None
