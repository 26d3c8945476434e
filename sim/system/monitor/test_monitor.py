# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The whole monitor: traffic on both ports at the pins, records, counters and meters at the host."""

import random
import struct
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from scapy.all import IP, UDP, Dot1Q, Ether, IPv6, Raw  # type: ignore[attr-defined]

from liteprobe.host.capture import live
from liteprobe.host.packets.filter.expression import fit_trigger, parse
from liteprobe.host.capture.ring import write_filter
from liteprobe.host.capture.live import Transport
from liteprobe.host.capture.ring import CaptureRing
from liteprobe.host.capture.request import CaptureSettings, Keep, Sampling
from liteprobe.host.capture.trigger import ProbeTrigger
from liteprobe.host.base.errors import UsageError
from liteprobe.host.measure.monitor import Monitor
from liteprobe.host.device.registers import Registers
from liteprobe.host.traffic.train import TrainProgram
from liteprobe.sim.drivers.system.monitoring import MACS, line_rate, shortest
from liteprobe.sim.drivers.system.monitoring import PORTS, Got, Monitored, monitored
from liteprobe.sim.system.build import build_probe


@pytest.fixture
def monitor(monitor_build: Path, tmp_path: Path) -> Iterator[Monitored]:
    """A simulated monitor with Etherbone on a port of its own."""
    with monitored(monitor_build, tmp_path) as found:
        yield found


def mixed(seed: int, count: int) -> list[bytes]:
    """Frames of many lengths, tagged or not, of both IPs."""
    rand = random.Random(seed)
    frames = []
    for number in range(count):
        ip = (
            IPv6(src="2001:db8::1", dst=f"2001:db8:1::{number % 9}")
            if rand.random() < 0.4
            else IP(src="10.0.0.1", dst="10.0.0.2")
        )
        link = Ether(**MACS) / Dot1Q(vlan=100 + number % 3) if rand.random() < 0.3 else Ether(**MACS)
        frames.append(bytes(link / ip / UDP(sport=number, dport=9) / Raw(rand.randbytes(rand.randrange(18, 1400)))))
    return frames


def expected(monitor: Monitored, snap: int, wanted: Callable[[bytes], bool] = lambda _: True) -> list[Got]:
    """Records of all wanted frames of the pins, in the order of their stamps."""
    found = [
        Got(port, stamp, len(octets), octets[:snap])
        for port in range(PORTS)
        for stamp, octets in monitor.pins(port)
        if wanted(octets)
    ]
    return sorted(found, key=lambda record: (record.stamp, record.port))


def in_order(records: list[Got]) -> list[Got]:
    """Records by stamp and port."""
    return sorted(records, key=lambda record: (record.stamp, record.port))


def test_both_ports_at_line_rate_with_all_features_on(monitor: Monitored) -> None:
    count = 1500
    found = line_rate(monitor, count)
    assert (found.frames, found.spacings_off) == (PORTS * count, 0)
    assert found.records > count // 4 and found.records_off == 0
    assert (found.counters_off, found.dropped, found.channels) == ([], 0, 4)


@pytest.mark.parametrize("way", ["udp", pytest.param("bus", marks=pytest.mark.full)])
def test_whole_frames_of_all_lengths_come_to_the_host(monitor: Monitored, way: str) -> None:
    frames = [mixed(port, 60) for port in range(PORTS)]

    def traffic() -> None:
        for port in range(PORTS):
            monitor.play(port, frames[port], interval_ns=40_000)

    got, dropped = monitor.capture(CaptureSettings(), traffic, for_ns=3_000_000, way=Transport(way))
    assert in_order(got.records) == expected(monitor, 65535)
    assert len(got.records) == 120 and not any(dropped.values())
    assert got.counts["ports"] == [{"received": 60, "accepted": 60}] * PORTS


def test_a_ring_that_nobody_empties_drops_whole_frames_and_counts_them(monitor: Monitored) -> None:
    """8 channels share the ring; line rate of long frames is more than the way out takes."""
    frames = [bytes(Ether(**MACS) / IP() / UDP() / Raw(bytes(1472))) for _ in range(900)]

    def traffic() -> None:
        for port in range(PORTS):
            monitor.play(port, frames)

    settings = CaptureSettings(channels=(0,))
    got, dropped = monitor.capture(settings, traffic, for_ns=900 * 1538 * 8 + 300_000)
    came, sent = expected(monitor, 65535), {(r.port, r.stamp): r for r in expected(monitor, 65535)}
    assert all(sent[record.port, record.stamp] == record for record in got.records)
    assert len(got.records) + dropped[0] == len(came)
    assert sum(got.missing.values()) == dropped[0]


class ShortRing(CaptureRing):
    """A ring of which but 16 blocks are used."""

    def __init__(self, registers: Registers) -> None:
        super().__init__(registers)
        self.blocks = 16


@pytest.mark.parametrize("way", ["udp", pytest.param("bus", marks=pytest.mark.full)])
def test_trigger_in_the_probe_keeps_the_newest_before_it_and_all_that_follows(
    monitor: Monitored, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(live, "CaptureRing", ShortRing)
    frames = [[shortest(number, port) for number in range(600)] for port in range(PORTS)]
    wanted = bytes(Ether(**MACS) / IP(src="10.0.0.1", dst="192.0.2.99") / UDP() / Raw(bytes(18)))
    frames[1][570] = wanted  # What follows finds room in the last quarter, so the host may come late.
    write_filter(monitor.probe.registers, fit_trigger(parse(""), parse("host 192.0.2.99"), channel=3))

    def traffic() -> None:
        for port in range(PORTS):
            monitor.play(port, frames[port], interval_ns=20_000 + 700 * port)

    trigger = ProbeTrigger(channel=3)
    got, dropped = monitor.capture(CaptureSettings(), traffic, 13_000_000, Transport(way), trigger)
    came = expected(monitor, 65535)
    assert len(came) == PORTS * 600 and not any(dropped.values())
    assert got.records == came[-len(got.records) :]
    # Before it six of eight blocks, of 364 words each, one of which is the open one; 19 words a frame.
    place = [record.octets for record in got.records].index(wanted)
    assert 4 * 364 <= 19 * place <= 6 * 364
    assert [record.channel for record in got.records if record.octets == wanted] == [3]
    assert got.counts["overwritten"][0] > 0 and got.counts["overwritten"][3] == 0


def test_capture_whose_trigger_never_fires_ends_when_it_is_told_to(monitor: Monitored) -> None:
    write_filter(monitor.probe.registers, fit_trigger(parse("udp"), parse("host 192.0.2.99"), channel=1))
    frames = [shortest(number, 0) for number in range(50)]
    traffic = partial(monitor.play, 0, frames, 20_000)
    got, _ = monitor.capture(CaptureSettings(), traffic, 2_000_000, trigger=ProbeTrigger(channel=1))
    assert got.records == [] and len(monitor.pins(0)) == 50
    passing = sum(frame[23] == 17 for frame in frames)
    assert got.counts["ports"][0] == {"received": 50, "accepted": passing} and 0 < passing < 50


def test_samples_are_every_eighth_frame_that_passes(monitor: Monitored) -> None:
    frames = [shortest(number, 0) for number in range(400)]
    settings = CaptureSettings(sampling=Sampling(shift=3), keep=Keep.HEADERS)
    got, _ = monitor.capture(settings, lambda: monitor.play(0, frames, interval_ns=5_000), for_ns=2_300_000)
    stamps = [stamp for stamp, _ in monitor.pins(0)]
    assert [record.stamp for record in in_order(got.records)] == stamps[::8]


def probe_frame(stream: int, sequence: int, tx_stamp: int, length: int = 60) -> bytes:
    """A frame of a train, over IPv4."""
    payload = b"LPRO" + struct.pack(">HIQ", stream, sequence, tx_stamp)
    return bytes(Ether(**MACS) / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=5000, dport=5001) / Raw(payload)).ljust(
        length, b"\0"
    )


def test_streams_are_measured_without_keeping_a_frame(monitor: Monitored) -> None:
    port, start_ns, interval_ns = 1, monitor.now_ns() + 200_000, 3_000
    # Stream 0 in order; stream 1 loses 4, 5 and 9, brings 7 twice, and 12 behind 14.
    order = [0, 1, 2, 3, 6, 7, 7, 8, 10, 11, 13, 14, 12, 15]
    frames = []
    for number, sequence in enumerate(order):
        for stream, own in ((0, number), (1, sequence)):
            sent_ns = start_ns + interval_ns * len(frames) - 700 - 10 * number
            frames.append(probe_frame(stream, own, sent_ns))
    meter = Monitor(monitor.probe, port)
    meter.clear()
    monitor.play(port, frames, interval_ns, start_ns)
    monitor.harness.run(600_000)
    assert [stamp for stamp, _ in monitor.pins(port)] == [
        start_ns + interval_ns * number for number in range(len(frames))
    ]
    found = {stream.stream_id: stream for stream in meter.read().streams}
    delays = [700 + 10 * number for number in range(len(order))]
    for stream, lost, duplicated, reordered in ((0, 0, 0, 0), (1, 3, 1, 1)):
        seen = found[stream]
        assert (seen.frames, seen.lost, seen.duplicated, seen.reordered) == (len(order), lost, duplicated, reordered)
        assert (seen.delay_min_ns, seen.delay_max_ns) == (min(delays), max(delays))
        assert seen.delay_mean_ns == pytest.approx(sum(delays) / len(delays))


@pytest.mark.parametrize("preset", ["tester", pytest.param("monitor", marks=pytest.mark.full)])
def test_etherbone_answers_in_band_under_full_load(preset: str, tmp_path: Path) -> None:
    with monitored(build_probe("shared", with_cpu=False, preset=preset), tmp_path) as monitor:
        frames = [shortest(number, 0) for number in range(4000)]
        monitor.probe.registers.write("port0_monitor_keep", 1)
        before = monitor.events(0)
        monitor.play(0, frames)
        reads = [monitor.probe.registers.read("probe_ports") for _ in range(40)]
        assert reads == [PORTS] * 40
        monitor.harness.run(3_500_000)
        events = {name: count - before[name] for name, count in monitor.events(0).items()}
        assert events["kept"] == len(frames)
        assert events["own_frames"] >= 40
        # The request that reads the counters is itself on its way: stored, but not decided on, at either reading.
        seen = events["management_frames"], events["all_frames"] - events["kept"]
        assert all(abs(count - events["own_frames"]) <= 1 for count in seen)
        assert events["management_dropped"] == events["overflows"] == events["unclassified"] == 0


def test_a_monitor_refuses_trains(monitor: Monitored) -> None:
    with pytest.raises(
        UsageError, match="without the part generate: build and load one with --preset train or generator or tester"
    ):
        monitor.probe.train(TrainProgram(length=60, count=10))
    assert monitor.probe.info()["preset"] == "monitor"
