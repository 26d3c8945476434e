# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""One probe that sends on both ports and sees all of it at once: starts, records, streams and histograms against the pins."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from liteprobe.cores.formats import BinKind, Part
from liteprobe.host.capture.settings import CaptureSettings, Keep
from liteprobe.host.errors import UsageError
from liteprobe.host.monitor import Monitor
from liteprobe.host.train import OVERHEAD, TrainProgram
from liteprobe.sim.bench.monitoring import PORTS, Got, Monitored, monitored

OCTET_NS = 8
AHEAD_NS = 2_000_000  # From the request to the first SFD.


@pytest.fixture
def both(tester: Path, tmp_path: Path) -> Iterator[Monitored]:
    """A simulated tester whose two ports are joined by a cable."""
    with monitored(tester, tmp_path, "--wire", "cable?delay=1us") as found:
        yield found


def probes(both: Monitored, port: int, direction: str = "in") -> list[tuple[int, bytes]]:
    """Time and octets of the probe frames on a port's pins."""
    return [(stamp, octets) for stamp, octets in both.pins(port, direction) if octets[42:46] == b"LPRO"]


def number(octets: bytes, start: int, end: int) -> int:
    """A field of a frame."""
    return int.from_bytes(octets[start:end], "big")


@pytest.mark.parametrize(("length", "count", "snap"), [(60, 400, 0), (64, 400, 0), (512, 100, 64), (1514, 60, 64)])
def test_both_ports_send_at_line_rate_and_see_every_frame(both: Monitored, length: int, count: int, snap: int) -> None:
    probe, slot_ns = both.probe, OCTET_NS * (length + OVERHEAD)
    meters = [Monitor(probe, port) for port in range(PORTS)]
    for meter in meters:
        meter.watch(stream_base=1)
    before = [meter.events() for meter in meters]
    starts_ns = []

    def traffic() -> None:
        starts_ns.append(probe.timebase.now_ns + AHEAD_NS)
        program = TrainProgram(length, count, start_time_ns=starts_ns[0], fill="prbs")
        probe.launch_all([(replace(program, stream_id=1 + port), port) for port in range(PORTS)])

    settings = CaptureSettings(snap_length=snap, keep=Keep.PACKETS)
    got, dropped = both.capture(settings, traffic, AHEAD_NS + count * slot_ns + 400_000)
    (start_ns,) = starts_ns

    for port in range(PORTS):
        sent = probes(both, port, "out")
        # Every start is on its octet, and each frame carries the time of its own.
        assert [number(octets, 48, 52) for _, octets in sent] == list(range(count))
        assert [stamp for stamp, _ in sent] == [start_ns + slot_ns * sequence for sequence in range(count)]
        assert [number(octets, 52, 60) for _, octets in sent] == [stamp for stamp, _ in sent]
    pins = [probes(both, port) for port in range(PORTS)]
    wanted = {Got(port, stamp, len(octets), octets[:snap]) for port in range(PORTS) for stamp, octets in pins[port]}
    assert len(got.records) == len(set(got.records)) == PORTS * count and set(got.records) == wanted
    assert not any(dropped.values()) and not got.missing

    for port, (meter, frames) in enumerate(zip(meters, pins, strict=True)):
        seen = meter.read()
        stream = seen.streams[2 - port]
        assert (stream.stream_id, stream.frames, stream.octets) == (2 - port, count, length * count)
        assert (stream.lost, stream.duplicated, stream.reordered, stream.beyond_window) == (0, 0, 0, 0)
        assert (stream.first_stamp_ns, stream.last_stamp_ns) == (frames[0][0], frames[-1][0])
        # Management in band may stand before a frame on its way: the pins say how long each took.
        delays_ns = [stamp - number(octets, 52, 60) for stamp, octets in frames]
        assert (stream.delay_min_ns, stream.delay_max_ns) == (min(delays_ns), max(delays_ns))
        assert (stream.delay_sum_ns, stream.delay_square_sum) == (sum(delays_ns), sum(one**2 for one in delays_ns))
        histograms = seen.histograms[2 - port]
        assert (histograms[BinKind.LENGTH].total, histograms[BinKind.DELAY].total) == (count, count)
        assert histograms[BinKind.ARRIVAL].total == count - 1
        events = {
            name: value - before[port][name] for name, value in meter.events().items() if value != before[port][name]
        }
        in_band = events.get("management_frames", 0)
        assert events.pop("all_frames") == events.pop("classified") == count + in_band
        refused = {
            name for name in events if name.endswith(("errors", "dropped", "lost")) or name in ("runts", "unclassified")
        }
        assert not refused, events
        assert both.probe.ports[port].transmit.counters()["late"] == 0


def test_a_train_is_measured_by_its_stream(both: Monitored) -> None:
    result = both.probe.train(TrainProgram(512, 200, stream_id=9), transmit=1, receive=0)
    counters = result.counters
    assert (result.sent, result.late, len(result.records), result.complete) == (200, 0, 0, False)
    assert (counters["frames"], counters["octets"], counters["lost"], counters["expected"]) == (200, 200 * 512, 0, 200)
    delays_ns = [stamp - number(octets, 52, 60) for stamp, octets in probes(both, 0)]
    assert (counters["delay_min"], counters["delay_max"]) == (min(delays_ns), max(delays_ns))
    assert (counters["delay_sum"], counters["delay_square_sum"]) == (sum(delays_ns), sum(one**2 for one in delays_ns))
    assert counters["foreign_streams"] == counters["length_errors"] == 0
    assert result.notes == ("this probe keeps no records of trains: measured by accumulators alone",)


def test_a_part_that_is_missing_is_named(both: Monitored) -> None:
    assert both.probe.parts == Part.GENERATE | Part.MONITOR
    assert both.probe.info()["preset"] == "tester"
    with pytest.raises(UsageError, match="without the part record: build and load one with --preset train"):
        both.probe.need(Part.RECORD)
