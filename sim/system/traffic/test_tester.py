# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""One probe that sends on both ports and sees all of it at once: starts, records, streams and histograms against the pins."""

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from scapy.utils import RawPcapNgReader

from liteprobe.cores.formats import Fill, Part, RecordFlag, StampPlace
from liteprobe.host.capture.request import CaptureRequest
from liteprobe.host.device.link.url import sim_url
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.measure.monitor import Monitor
from liteprobe.host.probe import Probe
from liteprobe.host.run.port import TransmitPort
from liteprobe.host.traffic.headers import Headers
from liteprobe.host.analysis.summary import TrainResult
from liteprobe.host.traffic.train import TrainProgram
from liteprobe.sim.drivers.frames.gmii import probe_frame
from liteprobe.sim.drivers.system.monitoring import PORTS, Monitored
from liteprobe.sim.drivers.system.tester import CABLE, field, joined, probe_frames, send_and_see
from liteprobe.sim.models.receive.meters import signed
from liteprobe.sim.models.receive.meters import field_stamp, fill_errors
from liteprobe.sim.models.traffic.trains import ProbeFrame

HEADERS = (Headers(), Headers(source_ip="2001:2::1", destination_ip="2001:2::2"), Headers(vlan_tags=(5, 7)))
HOSTILE = "switch?latency=2us&queue=1000&loss=5%&duplicate=5%&reorder=10%&reorder_by=30us&seed=3"


@pytest.fixture
def both(tester: Path, tmp_path: Path) -> Iterator[Monitored]:
    """A simulated tester whose two ports are joined by a cable."""
    with joined(tester, tmp_path) as found:
        yield found


@pytest.mark.parametrize(
    ("length", "count", "snap"),
    [
        (60, 400, 0),
        pytest.param(64, 400, 0, marks=pytest.mark.full),
        pytest.param(512, 100, 64, marks=pytest.mark.full),
        (1514, 60, 64),
    ],
)
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
    found = send_and_see(both, (1514, 1514), 200, 65535)
    assert found.dropped > 0 and found.records > 0
    assert (found.starts_off, found.stamps_off, found.records_off, found.uncounted) == (0, 0, 0, 0)
    assert [line for line in found.measures_off if "dropped" not in line] == []


def test_a_train_is_measured_by_its_stream_and_recorded_by_the_capture(both: Monitored) -> None:
    result = both.probe.train(TrainProgram(512, 200, stream_id=9), transmit=1, receive=0)
    counters = result.counters
    assert (result.sent, result.late, len(result.records), result.complete) == (200, 0, 200, True)
    assert recorded(result) == on_pins(both, 0)
    assert (counters["records_written"], counters["records_lost"]) == (200, 0)
    assert (counters["frames"], counters["octets"], counters["lost"], counters["expected"]) == (200, 200 * 512, 0, 200)
    delays_ns = [stamp - field(octets, 52, 60) for stamp, octets in probe_frames(both, 0)]
    assert (counters["delay_min"], counters["delay_max"]) == (min(delays_ns), max(delays_ns))
    assert (counters["delay_sum"], counters["delay_square_sum"]) == (sum(delays_ns), sum(one**2 for one in delays_ns))
    assert counters["foreign_streams"] == counters["length_errors"] == 0
    assert result.notes == ()


@pytest.mark.parametrize(
    "headers",
    [HEADERS[0], *[pytest.param(one, marks=pytest.mark.full) for one in HEADERS[1:]]],
    ids=["IPv4", "IPv6", "tags"],
)
def test_trains_of_both_ports_at_once_are_recorded_each_at_its_port(both: Monitored, headers: Headers) -> None:
    programs = [TrainProgram(length, 150, stream_id=length, headers=headers) for length in (108, 300)]
    results = both.probe.trains([(programs[0], 0, 1), (programs[1], 1, 0)])
    for result, port in zip(results, (1, 0), strict=True):
        assert (result.complete, recorded(result)) == (True, on_pins(both, port))


def test_records_of_a_hostile_network_are_those_of_the_pins(tester: Path, tmp_path: Path) -> None:
    with joined(tester, tmp_path, HOSTILE) as both:
        result = both.probe.train(TrainProgram(99, 300, interval_ns=3000.0, stream_id=3), transmit=0, receive=1)
        assert (result.complete, recorded(result)) == (True, on_pins(both, 1))
    assert result.counters["lost"] > 0 < result.counters["duplicated"]


def test_records_that_the_capture_has_no_room_for_are_counted(both: Monitored, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = 300
    # Of its blocks only 16 are used, so that 180 records fit, and the host believes that all do.
    monkeypatch.setattr(both.probe.ports[0].receive._recorder._ring, "blocks", 16)  # type: ignore[attr-defined]
    result = both.probe.train(TrainProgram(112, sent), transmit=1, receive=0)
    counters, came = result.counters, on_pins(both, 0)
    assert (counters["frames"], result.complete) == (sent, False)
    assert counters["records_lost"] == sent - len(result.records) > 0
    assert set(recorded(result)) <= set(came)
    assert result.notes == (
        f"{counters['records_lost']} records found the ring full, so per-packet figures are incomplete: "
        f"send fewer frames at once, or a gap between trains",
    )


SIGNED = (
    Headers(source_ip="2001:2::1", destination_ip="2001:2:4c50:524f::2"),
    Headers(source_ip="2001:2::1", destination_ip="2001:2::2", source_port=0x4C50, destination_port=0x524F),
    Headers(vlan_tags=(5, 7), source_port=0x4C50, destination_port=0x524F),
)


@pytest.mark.parametrize("headers", SIGNED, ids=["address", "ports", "ports behind tags"])
def test_a_signature_among_the_headers_is_not_taken_for_the_payload(both: Monitored, headers: Headers) -> None:
    result = both.probe.train(TrainProgram(120, 20, headers=headers), transmit=0, receive=1)
    assert (result.complete, result.notes) == (True, ())
    assert [row[0] for row in recorded(result)] == list(range(20))
    assert {row[2] - row[1] for row in recorded(result)} == {1000}


@pytest.mark.parametrize("error", [KeyboardInterrupt, ProbeError])
def test_a_train_that_failed_while_it_was_loaded_leaves_nothing_to_the_next(
    both: Monitored, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def fail(port: TransmitPort) -> None:
        raise error("while it is loaded")

    with monkeypatch.context() as patch, pytest.raises(error):
        patch.setattr(TransmitPort, "arm", fail)
        both.probe.train(TrainProgram(60, 5), transmit=0, receive=1)
    end_ns = both.probe.launch(TrainProgram(60, 50), transmit=0)
    while both.probe.timebase.now_ns < end_ns + 100_000:
        both.probe.wait(1e-4)
    result = both.probe.train(TrainProgram(200, 20), transmit=0, receive=1)
    assert (result.complete, len(result.records), result.notes) == (True, 20, ())
    assert set(result.records["length"].tolist()) == {200}


def test_two_ports_of_short_frames_are_more_than_the_capture_takes_and_the_result_says_so(both: Monitored) -> None:
    results = both.probe.trains([(TrainProgram(60, 300), 0, 1), (TrainProgram(60, 300), 1, 0)])
    for result, port in zip(results, (1, 0), strict=True):
        lost = result.counters["records_lost"]
        assert (result.complete, result.counters["frames"], len(result.records)) == (False, 300, 300 - lost)
        assert set(recorded(result)) <= set(on_pins(both, port))
        assert lost > 0 and f"{lost} records came faster than the capture takes them" in result.notes[0]


def test_two_ports_of_longer_frames_are_all_recorded(both: Monitored) -> None:
    results = both.probe.trains([(TrainProgram(112, 300), 0, 1), (TrainProgram(112, 300), 1, 0)])
    for result, port in zip(results, (1, 0), strict=True):
        assert (result.complete, recorded(result)) == (True, on_pins(both, port))


def test_copies_that_come_later_than_the_window_are_waited_for(tester: Path, tmp_path: Path) -> None:
    wire = "switch?latency=3us&reorder=20%&reorder_by=1900us&duplicate=80%&seed=1&queue=5000"
    with joined(tester, tmp_path, wire) as both:
        result = both.probe.train(TrainProgram(60, 300, interval_ns=5000.0), transmit=1, receive=0)
        assert sorted(recorded(result)) == sorted(on_pins(both, 0))
    assert result.complete and result.counters["beyond_window"] > 0


def test_frames_of_others_are_flagged_or_left_out(both: Monitored) -> None:
    program = TrainProgram(
        200, 50, interval_ns=20_000.0, stream_id=1, start_time_ns=both.probe.timebase.now_ns + 4_000_000
    )
    foreign, other, cut = probe_frame(5, 0, stream_id=2), bytes(100), probe_frame(5, 0, stream_id=1, tags=2)[:62]
    both.play(1, [foreign, other, cut], 30_000, both.now_ns() + 4_200_000)
    result = both.probe.train(program, transmit=0, receive=1)
    flags = result.records["flags"].tolist()
    assert (result.complete, result.counters["foreign_streams"], result.counters["length_errors"]) == (True, 1, 1)
    assert sorted(flags) == [0] * 50 + [int(RecordFlag.FOREIGN_STREAM)]


def test_a_capture_after_a_train_has_all_ports_again(both: Monitored) -> None:
    both.probe.train(TrainProgram(60, 10), transmit=0, receive=1)
    found = send_and_see(both, (60, 60), 50, 0)
    assert (found.records, found.dropped, found.records_off) == (100, 0, 0)


def recorded(result: TrainResult) -> list[tuple[int, int, int, int]]:
    """Return sequence, both stamps and length of each record, in order."""
    return [tuple(row) for row in result.records[["sequence", "tx_stamp", "rx_stamp", "length"]].tolist()]


def on_pins(tester: Monitored, port: int) -> list[tuple[int, int, int, int]]:
    """Return the same of the probe frames on the pins of a port, wherever their headers end."""
    found = []
    for stamp, octets in tester.pins(port):
        if (at := octets.find(b"LPRO")) >= 0:
            found.append((field(octets, at + 6, at + 10), field(octets, at + 10, at + 18), stamp, len(octets)))
    return found


def test_a_part_that_is_missing_is_named(both: Monitored) -> None:
    assert both.probe.parts == Part.GENERATE | Part.STREAMS | Part.MONITOR | Part.HOSTS
    assert both.probe.info()["preset"] == "tester"
    with pytest.raises(UsageError, match="without the part record: build and load one with --preset train"):
        both.probe.need(Part.RECORD)


def test_bit_errors_and_delays_by_a_field_are_those_of_the_pins(both: Monitored) -> None:
    rng, frames = random.Random(5), []
    for number in range(300):
        octets = bytearray(
            ProbeFrame(rng.randrange(60, 400), stream_id=3 + number % 3, fill=Fill.PRBS).octets(number, 0)
        )
        for _ in range(number % 4):
            octets[rng.randrange(60, len(octets) + 1) - 1] ^= 1 << rng.randrange(8)
        octets[18:20] = rng.randbytes(2)
        frames.append(bytes(octets))
    monitor = Monitor(both.probe, 1)
    place = StampPlace(18, 2, 1)
    monitor.watch(stream_base=3, prbs=[1, 2], places={2: place, 3: place})
    both.play(1, frames)
    both.harness.run(2_000_000)
    came = [(stamp, octets) for stamp, octets in both.pins(1) if octets[42:46] == b"LPRO"]
    assert [octets for _, octets in came] == frames
    for stream in both.probe.measure(1).streams[1:4]:
        mine = [(stamp, octets) for stamp, octets in came if octets[47] == stream.stream_id]
        wanted = sum(fill_errors(octets, 42, is_ipv6=False) for _, octets in mine)
        assert stream.bit_errors == (wanted if stream.slot in (1, 2) else None)
        sent = [
            field_stamp(octets, place, stamp) if stream.slot > 1 else field(octets, 52, 60) for stamp, octets in mine
        ]
        delays = [signed(stamp - (tx or 0)) for (stamp, _), tx in zip(mine, sent, strict=True)]
        assert (stream.delay_min_ns, stream.delay_max_ns, stream.delay_sum_ns) == (
            min(delays),
            max(delays),
            sum(delays),
        )


def test_a_script_sends_captures_and_measures(tester: Path, tmp_path: Path) -> None:
    files = {"write": tmp_path / "c.pcapng", "headers": tmp_path / "h.parquet"}
    with Probe(sim_url(CABLE, build=tester, link="shared")) as probe:
        Monitor(probe, 1).watch(1)
        start_ns = probe.timebase.now_ns + 3_000_000
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
