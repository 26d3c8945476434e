# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Traces that the whole simulated probe replays while a host streams them by UDP: every frame at the pins is the file's."""

import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from liteprobe.cores.formats import LEASE_UNIT_BITS, RING_WORDS, Part, TransmitState
from liteprobe.host.capture.request import CaptureRequest
from liteprobe.host.capture.request import CaptureSettings
from liteprobe.host.device.link.url import open_link, sim_url
from liteprobe.host.device.registers import load_map
from liteprobe.host.base.errors import LeaseLostError, ProbeError
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.run.streamed import StreamLook
from liteprobe.host.traffic.sets import Sets
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.stream import Fixed, Interval, Stream
from liteprobe.host.traffic.trace.trace import Trace
from liteprobe.sim.drivers.replay import sets_port
from liteprobe.sim.drivers.system import senders
from liteprobe.sim.drivers.system.senders import Sent
from liteprobe.sim.models.traffic.sets import outcome
from liteprobe.sim.drivers.replay.sets_maker import template_of


@pytest.fixture(scope="module")
def build(replay_build: Path) -> Path:
    return replay_build


@pytest.fixture
def both(build: Path, tmp_path: Path) -> Iterator[Sent]:
    with senders.joined(build, tmp_path, link="own") as sent:
        yield sent


def made(sent: Sent, name: str, *arguments: float) -> tuple[Trace, list[senders.Packet]]:
    """Return random packets, and the trace of a file of them."""
    count, seed, load, shortest, longest = arguments
    packets = list(senders.packets(int(count), int(seed), load, int(shortest), int(longest)))
    senders.write(sent.files / name, packets)
    return Trace.from_pcap(sent.files / name), packets


def test_two_files_start_in_one_tick_and_are_captured_with_their_delays(both: Sent) -> None:
    assert both.probe.parts == Part.GENERATE | Part.MONITOR | Part.REPLAY | Part.SETS
    one, packets = made(both, "one.pcap", 150, 1, 0.5, 60, 400)
    other, others = made(both, "other.pcap", 60, 2, 1.0, 60, 1514)
    stamp = Stamp("octet", octet=42)
    settings = CaptureSettings(snap_length=64)
    request = CaptureRequest(str(both.files / "seen.pcapng"), settings=settings)
    result = both.probe.replay({0: one, 1: other.stamped(stamp)}, capture=request)
    frames = both.all_pins(0), both.all_pins(1)
    assert senders.wrong_packets(frames[0], packets) == []
    stamped = [
        (time, octets[:42] + right.octets[42:50] + octets[50:])
        for (time, octets), right in zip(frames[1], others, strict=True)
    ]
    assert senders.wrong_packets(stamped, others) == []
    assert frames[0][0][0] == frames[1][0][0]
    for port, count in ((0, 150), (1, 60)):
        assert (result[port].frames, result[port].underruns, result[port].late) == (count, 0, 0)
    assert result.capture is not None and result.capture.counts["records"] == 210
    delays, scheduled = result[1].delays, result[0].scheduled
    assert delays is not None and delays.values.tolist() == [1000] * 60
    assert scheduled is not None and scheduled.delays.values.tolist() == [1000] * 150  # Those without a stamp.
    assert result.is_complete
    assert [one.sent.resent for one in result.ports] == [0, 0]


@pytest.mark.full
def test_nothing_is_sent_again_to_a_simulation_that_loses_nothing(both: Sent) -> None:
    """Its time stands while the kernel's buffer for it fills, which holds 92 datagrams."""
    trace, packets = made(both, "long.pcap", 360, 8, 1.0, 1514, 1514)
    result = both.probe.replay(trace)
    assert senders.wrong_packets(both.all_pins(0), packets) == []
    assert result[0].sent.accepted > RING_WORDS
    assert (result[0].sent.resent, result[0].underruns) == (0, 0)


def test_a_trace_longer_than_the_ring_over_a_network_that_loses_keeps_every_octet(build: Path, tmp_path: Path) -> None:
    with senders.joined(build, tmp_path, network="loss=2%,duplicate=2%,reorder=2%,seed=1", link="own") as sent:
        trace, packets = made(sent, "long.pcap", 440, 3, 0.6, 1000, 1514)
        result = sent.probe.replay(trace)
        frames = sent.all_pins(0)
        first = result[0].first_underrun
        assert [octets for _, octets in frames] == [packet.octets for packet in packets]
        assert senders.wrong_packets(frames[:first], packets[:first]) == []
        assert result[0].sent.accepted > RING_WORDS
        assert result.is_complete == (result[0].underruns == 0)


def test_the_first_thing_that_a_host_asks_waits_for_the_sdram_and_is_done(build: Path) -> None:
    """The SDRAM takes 0.4 ms to start, and the bus gives an access up after 1024 cycles."""
    soc = load_map(build / "csr.json")
    words = [0x1234_5678, 0x9ABC_DEF0]
    link = open_link(sim_url("cable?delay=1us", build=build, link="own"))
    try:
        assert link.write(soc["memories"]["sets_table"]["base"], words).tolist() == words
        assert link.read(soc["csr_registers"]["ctrl_bus_errors"]["addr"], 1).tolist() == [0]
    finally:
        link.close()


def test_a_short_trace_repeats_in_the_ring(both: Sent) -> None:
    trace, packets = made(both, "short.pcap", 40, 4, 0.6, 60, 200)
    result = both.probe.replay(trace, loops=5)
    frames = both.all_pins(0)
    assert [octets for _, octets in frames] == [packet.octets for packet in packets] * 5
    assert (result[0].frames, result[0].underruns) == (200, 0)
    turn_ns = frames[160][0] - frames[120][0]
    later = [packet._replace(time_ns=packet.time_ns + turn * turn_ns) for turn in range(5) for packet in packets]
    assert senders.wrong_packets(frames, later) == []


def test_a_replay_that_is_stopped_ends_with_a_whole_frame_and_the_next_one_is_right(both: Sent) -> None:
    endless, packets = made(both, "endless.pcap", 30, 5, 1.0, 1514, 1514)
    result, frames = senders.stop_replay(both, endless)
    assert {octets for _, octets in frames} == {packet.octets for packet in packets} and len(frames) > 60
    assert (result.end, result[0].frames) == ("interrupted", len(frames))
    trace, packets = made(both, "next.pcap", 50, 6, 0.5, 60, 300)
    both.probe.replay(trace)
    assert senders.wrong_packets(both.all_pins(0)[len(frames) :], packets) == []


@pytest.mark.full
def test_a_host_that_is_gone_leaves_a_probe_that_ends_by_itself(both: Sent) -> None:
    unit_s = 2**LEASE_UNIT_BITS / both.probe.registers.constant("config_clock_frequency")
    endless, _ = made(both, "endless.pcap", 30, 7, 0.05, 1514, 1514)

    def go(look: StreamLook) -> None:
        if look.frames[0] > 5:
            both.probe.registers.write("probe_lease_timeout", 0)  # The unit that has begun.
            both.probe.lease._stop_beats()  # As a host that is killed, or unplugged.
            raise Interrupted(signal.SIGTERM)

    states = []
    transmit = both.probe.ports[0].transmit
    halt, both.probe.ports[0].halt = both.probe.ports[0].halt, lambda timebase: False  # Nor does it stop the port.
    with pytest.raises((Interrupted, ProbeError)):
        both.probe.replay(endless, loops=None, show=go)
    states.append(transmit.look()[0])
    both.probe.ports[0].halt = halt
    with pytest.raises(LeaseLostError, match="heard nothing of this host for too long"):
        for _ in range(8):
            both.probe.wait(unit_s / 8)
            transmit.look()
    states.append(transmit.look()[0])
    assert states == [TransmitState.RUNNING, TransmitState.IDLE]


def test_sets_come_out_as_frames(both: Sent) -> None:
    chance, count = np.random.default_rng(1), 300
    table = chance.integers(0, 1 << 32, 500).tolist()
    stream = Stream("line", 7, Fixed(64), Interval())
    columns = {"address": chance.integers(0, 1 << 32, count), "index": chance.integers(0, len(table), count)}
    asked = Sets.from_columns(stream, columns, entry="ipv4.destination", table=table)
    row = both.probe.sets(asked)[0]
    frames = both.all_pins(0)
    truth = outcome(b"".join(asked.octets()), template_of(asked), table, None, 0, [False] * count)
    octets = sets_port.SetOctets(stream)
    assert [got for _, got in frames] == [
        octets.frame(one, ns) for one, (ns, _) in zip(truth.frames, frames, strict=True)
    ]
    assert (row.counts.sets, row.counts.repeats, row.counts.underruns, row.late) == (count, 0, 0, 0)


def test_sets_are_captured_with_their_delays(both: Sent) -> None:
    count = 300
    asked = Sets.from_columns(Stream("line", 7, Fixed(64), Interval()), {"address": np.arange(count)})
    result = both.probe.sets(asked, capture=both.files / "seen.pcapng")
    delays = result[0].delays
    assert delays is not None and delays.values.tolist() == [1000] * count
    assert (result.is_complete, result.notes, delays.without) == (True, (), 0)
    assert result.capture is not None and result.capture.frames == count
