# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""One probe that sends on both ports and sees all of it at once: starts, records, streams and histograms against the pins."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from scapy.utils import RawPcapNgReader

from liteprobe.cores.formats import Part
from liteprobe.host.capture.request import CaptureRequest
from liteprobe.host.device.link.url import sim_url
from liteprobe.host.errors import UsageError
from liteprobe.host.measure.monitor import Monitor
from liteprobe.host.probe import Probe
from liteprobe.host.traffic.train import TrainProgram
from liteprobe.sim.bench.system.monitoring import PORTS, Monitored
from liteprobe.sim.bench.system.tester import CABLE, field, joined, probe_frames, send_and_see

HOSTILE = "switch?latency=2us&queue=1000&loss=5%&duplicate=5%&reorder=10%&reorder_by=30us&seed=3"


@pytest.fixture
def both(tester: Path, tmp_path: Path) -> Iterator[Monitored]:
    """A simulated tester whose two ports are joined by a cable."""
    with joined(tester, tmp_path) as found:
        yield found


@pytest.mark.parametrize(("length", "count", "snap"), [(60, 400, 0), (64, 400, 0), (512, 100, 64), (1514, 60, 64)])
def test_both_ports_send_at_line_rate_and_see_every_frame(both: Monitored, length: int, count: int, snap: int) -> None:
    found = send_and_see(both, (length, length), count, snap)
    assert (found.frames, found.starts_off, found.stamps_off) == (PORTS * count, 0, 0)
    assert (found.records, found.dropped, found.records_off, found.uncounted) == (PORTS * count, 0, 0, 0)
    assert found.measures_off == []


def test_on_a_network_that_loses_doubles_and_reorders_all_is_as_on_the_pins(tester: Path, tmp_path: Path) -> None:
    with joined(tester, tmp_path, HOSTILE) as both:
        found = send_and_see(both, (77, 1003), 300, 64, spare_ticks=40)
    assert 500 < found.frames != 600
    assert (found.starts_off, found.stamps_off, found.dropped) == (0, 0, 0)
    assert (found.records, found.records_off, found.uncounted, found.measures_off) == (found.frames, 0, 0, [])


def test_what_the_ring_has_no_room_for_is_counted_exactly(both: Monitored) -> None:
    found = send_and_see(both, (1514, 1514), 400, 65535)
    assert found.dropped > 0 and found.records > 0
    assert (found.starts_off, found.stamps_off, found.records_off, found.uncounted) == (0, 0, 0, 0)
    assert [line for line in found.measures_off if "dropped" not in line] == []


def test_a_train_is_measured_by_its_stream(both: Monitored) -> None:
    result = both.probe.train(TrainProgram(512, 200, stream_id=9), transmit=1, receive=0)
    counters = result.counters
    assert (result.sent, result.late, len(result.records), result.complete) == (200, 0, 0, False)
    assert (counters["frames"], counters["octets"], counters["lost"], counters["expected"]) == (200, 200 * 512, 0, 200)
    delays_ns = [stamp - field(octets, 52, 60) for stamp, octets in probe_frames(both, 0)]
    assert (counters["delay_min"], counters["delay_max"]) == (min(delays_ns), max(delays_ns))
    assert (counters["delay_sum"], counters["delay_square_sum"]) == (sum(delays_ns), sum(one**2 for one in delays_ns))
    assert counters["foreign_streams"] == counters["length_errors"] == 0
    assert result.notes == ("this probe keeps no records of trains: measured by accumulators alone",)


def test_a_part_that_is_missing_is_named(both: Monitored) -> None:
    assert both.probe.parts == Part.GENERATE | Part.MONITOR
    assert both.probe.info()["preset"] == "tester"
    with pytest.raises(UsageError, match="without the part record: build and load one with --preset train"):
        both.probe.need(Part.RECORD)


def test_a_script_sends_captures_and_measures(tester: Path, tmp_path: Path) -> None:
    files = {"write": tmp_path / "c.pcapng", "headers": tmp_path / "h.parquet"}
    with Probe(sim_url(CABLE, build=tester, link="shared")) as probe:
        Monitor(probe, 1).watch(1)
        start_ns = probe.timebase.now_ns + 5_000_000
        probe.launch(TrainProgram(512, 100, interval_ns=20_000.0, stream_id=1, start_time_ns=start_ns), transmit=0)
        found = probe.capture(CaptureRequest(**files, filter="udp and not port 1234", count=100))
        (stream,) = [one for one in probe.measure(1).streams if one.stream_id == 1]
        assert probe.clock.status().name == probe.timebase.clock_state
    assert (found.frames, found.octets, found.signal, found.is_complete) == (100, 51_200, 0, True)
    assert (stream.frames, stream.lost, stream.delay_min_ns, stream.delay_max_ns) == (100, 0, 1000, 1000)
    with RawPcapNgReader(str(files["write"])) as reader:
        stamps = [meta.tshigh << 32 | meta.tslow for _, meta in reader]
    assert stamps == [start_ns + 20_000 * number + 1000 for number in range(100)]
    assert pq.read_table(files["headers"]).num_rows == 100
