# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The simulated probe of 10 Gb/s: trains by the host's own means, held against arithmetic and what stood on its pins."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from liteprobe.cores.formats import BINS, BinKind, Part, RecordFlag, TransmitState
from liteprobe.host import Probe, ProbeError, TrainProgram, UsageError
from liteprobe.host.base.line import GIGABIT, TEN_GIGABIT
from liteprobe.host.cli.main import main
from liteprobe.host.measure.monitor import BinSetting, Monitor
from liteprobe.host.run.trains import TrainResult
from liteprobe.host.traffic.headers import Headers
from liteprobe.sim.drivers.frames import truth
from liteprobe.sim.system.xgmii.build import build_probe

OCTET_NS = 0.8
COLUMN = 4


@pytest.fixture(scope="session")
def build() -> Path:
    """The simulated probe of 10 Gb/s."""
    return build_probe()


@pytest.fixture
def probe(build: Path) -> Probe:
    """One at a loopback."""
    with Probe(f"sim10g://loopback?build={build}") as opened:
        yield opened


def columns(ticks: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the times of the columns (ns) in which SFDs of these octets stand at the pins: frames start in one."""
    starts = ticks.astype(np.int64) - 7
    return OCTET_NS * (-(-starts // COLUMN) * COLUMN + COLUMN)


def run(
    build: Path, wire: str, program: TrainProgram, files: Path, transmit: int = 0
) -> tuple[TrainResult, NDArray[np.void]]:
    """Send a program over a wire; return what was measured, and the rows of truth."""
    path = files / "truth"
    mark = "&" if "?" in wire else "?"
    with Probe(f"sim10g://{wire}{mark}build={build}&truth={path}") as opened:
        found = opened.train(program, transmit=transmit)
    return found, truth.read_truth(path)


def offsets_ns(found: TrainResult, rows: NDArray[np.void], receive: int) -> tuple[NDArray[np.float64], ...]:
    """Return departures and arrivals of all records, less the times at the pins (ns since reset)."""
    sent = {int(row["sequence"]): int(row["sfd_tick"]) for row in truth.frames_out(rows, 0)}
    came = truth.frames_in(rows, receive)
    whole = came[came["flags"] & truth.BAD_FCS == 0]
    records = found.records[found.records["flags"] & int(RecordFlag.FCS_ERROR) == 0]
    assert records["sequence"].tolist() == whole["sequence"].tolist()
    left = np.array([sent[int(number)] for number in records["sequence"]])
    departures = records["tx_stamp"].astype(np.int64) - columns(left)
    arrivals = records["rx_stamp"].astype(np.int64) - columns(whole["sfd_tick"])
    return departures, arrivals


# Rate and delay -----------------------------------------------------------------------------------


def test_the_command_measures_the_line_rate(build: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "train.json"
    url = f"sim10g://loopback?build={build}"
    assert main(["train", "--probe", url, "--length", "60,1514", "--count", "500", "--json", str(out)]) == 0
    assert "10000.000" in capsys.readouterr().out
    for row, length in zip(json.loads(out.read_text())["rows"], (60, 1514), strict=True):
        slot_ns = OCTET_NS * (length + 24)
        assert row["theory_bps"] == 1e10
        assert row["interval_ns"] == pytest.approx(slot_ns)
        # From the first stamp to the last: a column, and whole nanoseconds, may be missing.
        assert row["dispersion_rate_bps"]["mean"] == pytest.approx(1e10, abs=1e10 * 4.2 / (499 * slot_ns))
        assert row["resolution_ppm"] == pytest.approx(1e6 * 4.2 / (499 * slot_ns))
        assert (row["lost"], row["duplicated"], row["reordered"], row["late"]) == (0, 0, 0, 0)
        assert (row["owd_ns"]["min"], row["owd_ns"]["max"]) in {(3, 4), (3, 3), (4, 4)}  # The shortest loop: a column.
        assert row["uncertainty_ns"] == pytest.approx(7.4)


@pytest.mark.parametrize("length", [60, 61, 130, 1514, 9000])
def test_frames_start_in_the_columns_of_their_octets(build: Path, tmp_path: Path, length: int) -> None:
    program = TrainProgram(length, 40, 2, gap_ns=1000.0)
    found, rows = run(build, "loopback", program, tmp_path)
    assert (found.sent, found.late, found.complete) == (80, 0, True)
    starts = truth.frames_out(rows, 0)["sfd_tick"].astype(int)
    dues = [(length + 24) * n + (1250 if n >= 40 else 0) for n in range(80)]
    assert (starts - starts[0]).tolist() == [due // COLUMN * COLUMN for due in dues]


def test_an_interval_of_time_is_one_of_the_probes_clock(build: Path, tmp_path: Path) -> None:
    _, rows = run(build, "loopback", TrainProgram(60, 300, interval_ns=1000 / 3), tmp_path)
    starts = truth.frames_out(rows, 0)["sfd_tick"].astype(int)
    late_ns = OCTET_NS * (starts - starts[0]) - 1000 / 3 * np.arange(300)
    assert -3.2 < late_ns.min() and late_ns.max() < 0.01


# Stamps and counts --------------------------------------------------------------------------------

WIRES = [
    ("loopback", 0, 3.2),
    ("loopback?delay=12.8us", 0, 12800),
    ("cable?delay=1us", 1, 1001.6),  # To the next column.
    ("switch?latency=3us&loss=10%&duplicate=10%&reorder=10%&reorder_by=2us&seed=3", 1, None),
    ("switch?rate=3G&queue=30&cross=0.4&seed=5", 1, None),
    ("cable?corrupt=0.2&seed=9", 1, 3.2),
]


@pytest.mark.parametrize(("wire", "receive", "delay_ns"), WIRES)
def test_stamps_and_counts_are_those_of_the_pins(
    build: Path, tmp_path: Path, wire: str, receive: int, delay_ns: float | None
) -> None:
    found, rows = run(build, wire, TrainProgram(124, 150, 2, fill="counting"), tmp_path)
    assert np.ptp(np.concatenate(offsets_ns(found, rows, receive))) < 1.02  # Whole nanoseconds, and 16 ps.
    came = truth.frames_in(rows, receive)
    sound = came[came["flags"] & truth.BAD_FCS == 0]
    counters, records = found.counters, found.records[found.records["flags"] & int(RecordFlag.FCS_ERROR) == 0]
    assert counters["all_frames"] - counters["runts"] >= len(came)
    assert counters["fcs_errors"] == len(came) - len(sound)
    assert counters["frames"] == len(sound)
    assert counters["octets"] == 124 * len(sound)
    assert counters["duplicated"] == len(sound) - len(set(sound["sequence"].tolist()))
    assert counters["lost"] == int(sound["sequence"].max()) + 1 - len(set(sound["sequence"].tolist()))
    most, behind, seen = -1, 0, set()
    for number in sound["sequence"].tolist():
        behind += number < most and number not in seen
        most = max(most, number)
        seen.add(number)
    assert counters["reordered"] == behind
    delays = [int(one["rx_stamp"]) - int(one["tx_stamp"]) for one in records]
    assert (counters["delay_min"], counters["delay_max"]) == (min(delays), max(delays))
    assert (counters["delay_sum"], counters["delay_square_sum"]) == (sum(delays), sum(one * one for one in delays))
    stamps = records["rx_stamp"].tolist()
    assert (counters["first_stamp"], counters["last_stamp"]) == (stamps[0], stamps[-1])
    if delay_ns is not None:
        assert abs(np.array(delays) - delay_ns).max() < 1.02


@pytest.mark.parametrize("ppm", [-100, 100])
def test_a_receivers_clock_that_is_another_one_costs_a_cycle_at_most(build: Path, tmp_path: Path, ppm: int) -> None:
    found, rows = run(build, f"loopback?delay=2us&ppm={ppm}", TrainProgram(60, 400), tmp_path)
    sent = {int(row["sequence"]): int(row["sfd_tick"]) for row in truth.frames_out(rows, 0)}
    departures, _ = offsets_ns(found, rows, 0)
    assert np.ptp(departures) < 1.02
    assert len(found.records) == len(sent) == 400
    # The wire gives a frame anew by the other clock; what it says of its ticks are those of the probe's.
    delays = found.records["rx_stamp"].astype(np.int64) - found.records["tx_stamp"].astype(np.int64)
    assert 2000 - 7.4 < delays.min() and delays.max() < 2000 + 4 * 3.2 + 6.4 + 1


def test_both_ports_start_in_one_cycle_and_at_their_time(build: Path, tmp_path: Path) -> None:
    path = tmp_path / "truth"
    with Probe(f"sim10g://cable?delay=500ns&build={build}&truth={path}") as opened:
        opened.set_time(10**18)
        start_ns = opened.timebase.now_ns + 1_200_000
        programs = [TrainProgram(length, 50, start_time_ns=start_ns, stream_id=7) for length in (60, 1514)]
        found = opened.trains([(programs[0], 0, 1), (programs[1], 1, 0)])
    rows = truth.read_truth(path)
    first = [int(truth.frames_out(rows, port)["sfd_tick"][0]) for port in (0, 1)]
    assert first[0] == first[1]
    for one in found:
        assert one.complete and one.notes == ()
        assert abs(int(one.records["tx_stamp"][0]) - start_ns) <= 4  # Half a cycle, and a whole nanosecond.


def test_another_stream_is_counted_apart(build: Path) -> None:
    with Probe(f"sim10g://loopback?build={build}") as opened:
        transmit, receive = opened.ports[0].transmit, opened.ports[0].receive
        opened.train(TrainProgram(60, 20, stream_id=5))
        receive._registers.write_many({"port0_rx_stream_id": 9})
        opened.registers.write("port0_rx_clear", 1)
        transmit.arm()
        opened.registers.write("probe_start", 1)
        opened.wait(1e-5)
        counters = receive.counters()
    assert (counters["frames"], counters["foreign_streams"], counters["all_frames"]) == (0, 20, 20)


# Histograms ---------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def meters() -> Path:
    """The simulated probe of 10 Gb/s that measures streams, with histograms, in the place of records."""
    return build_probe("generator")


def origin_for(values: NDArray[np.float64], shift: int) -> int:
    """Return an origin of bins, none of whose edges is within 1.2 ns of a value: stamps are whole nanoseconds."""
    width = 1 << shift
    for origin in range(max(int(values.min()) - width, 0), int(values.min()) + 1):
        places = (values - origin) % width
        if min(places.min(), width - places.max()) > 1.2:
            return origin
    raise AssertionError("no origin is far from all values")


METERED = ["switch?latency=3us&loss=10%&duplicate=10%&reorder=10%&reorder_by=2us&seed=3", "cable?delay=2us"]


@pytest.mark.parametrize("wire", METERED)
def test_meters_and_histograms_are_those_of_the_pins(meters: Path, tmp_path: Path, wire: str) -> None:
    bins: dict[BinKind, BinSetting] = {}
    for attempt in range(2):  # The first one says where edges of bins may be.
        path = tmp_path / f"truth{attempt}"
        with Probe(f"sim10g://{wire}&preset=generator&build={meters}&truth={path}") as opened:
            monitor = Monitor(opened, 1)
            if bins:
                monitor.set_bins(bins)
            monitor.watch(3)
            opened.launch(TrainProgram(60, 600, stream_id=5))
            opened.wait(1e-4)
            found = opened.measure(1)
        rows = truth.read_truth(path)
        sent = {int(row["sequence"]): int(row["sfd_tick"]) for row in truth.frames_out(rows, 0)}
        came = truth.frames_in(rows, 1)
        numbers, times = came["sequence"].tolist(), columns(came["sfd_tick"])
        delays = times - columns(np.array([sent[number] for number in numbers]))
        bins = {
            BinKind.LENGTH: BinSetting(60, 0),
            BinKind.DELAY: BinSetting(origin_for(delays, 5), 5),
            BinKind.ARRIVAL: BinSetting(origin_for(np.diff(times), 4), 4),
        }
    stream = found.streams[3]
    assert (stream.stream_id, stream.frames, stream.octets) == (5, len(came), 60 * len(came))
    assert [one.frames for one in found.streams] == [0, 0, 0, len(came), *[0] * (len(found.streams) - 4)]
    assert (stream.lost, stream.duplicated) == (max(numbers) + 1 - len(set(numbers)), len(numbers) - len(set(numbers)))
    assert found.counters["frames"] == len(came) and found.counters["octets"] == 60 * len(came)
    assert abs(stream.delay_min_ns - delays.min()) < 1.02 and abs(stream.delay_max_ns - delays.max()) < 1.02
    assert abs(stream.delay_mean_ns - delays.mean()) < 1.02
    for slot in (0, 3):
        for kind, values in [
            (BinKind.LENGTH, np.full(len(came), 60.0)),
            (BinKind.DELAY, delays),
            (BinKind.ARRIVAL, np.diff(times)),
        ]:
            have = found.histograms[slot][kind]
            at = (values - have.setting.origin) // (1 << have.setting.shift)
            regular = BINS[kind].regular
            wanted = np.bincount(at[(at >= 0) & (at < regular)].astype(int), minlength=regular)
            assert have.counts.tolist() == wanted.tolist()
            assert (have.below, have.above) == (int((at < 0).sum()), int((at >= regular).sum()))
    assert not found.is_saturated and found.histograms[1][BinKind.LENGTH].total == 0


def test_a_train_is_measured_by_meters_at_the_line_rate(meters: Path) -> None:
    with Probe(f"sim10g://loopback?preset=generator&build={meters}") as opened:
        found = opened.train(TrainProgram(60, 5000))
        assert list(opened.traffic()) == []
    names = ("frames", "lost", "duplicated", "reordered", "foreign_streams", "overflows", "unclassified")
    assert [found.counters[name] for name in names] == [5000, 0, 0, 0, 0, 0, 0]
    assert found.counters["all_frames"] == 5000
    span_ns = found.counters["last_stamp"] - found.counters["first_stamp"]
    assert abs(span_ns - 4999 * 84 * OCTET_NS) < 4.2
    assert (found.counters["delay_min"], found.counters["delay_max"]) in {(3, 4), (3, 3), (4, 4)}


def test_a_probe_of_records_says_which_one_has_histograms(probe: Probe) -> None:
    with pytest.raises(UsageError, match="without the part monitor or measure: give it as preset=generator"):
        probe.measure(0)


# Programs -----------------------------------------------------------------------------------------


def test_a_program_is_stopped_after_its_present_frame_and_the_next_one_runs_whole(probe: Probe) -> None:
    probe.launch(TrainProgram(1514, 10**6))
    assert probe.busy_port == 0
    assert probe.stop(0)
    state, sent, is_up = probe.ports[0].transmit.look()
    assert (state, is_up) == (TransmitState.IDLE, True) and 0 < sent < 10**6
    assert not probe.stop(0)
    assert probe.train(TrainProgram(60, 100)).complete


def test_a_program_waits_for_its_time_and_can_be_stopped_until_then(probe: Probe) -> None:
    probe.launch(TrainProgram(60, 10, start_time_ns=probe.timebase.now_ns + 10**8))
    assert probe.ports[0].transmit.look()[0] == TransmitState.WAITING
    assert probe.stop(0)
    assert probe.ports[0].transmit.look()[:2] == (TransmitState.IDLE, 0)


def test_what_is_armed_is_stopped_before_it_starts_and_a_program_that_cannot_be_is_ignored(probe: Probe) -> None:
    transmit = probe.ports[0].transmit
    probe.train(TrainProgram(60, 1))
    transmit.arm()
    assert transmit.look()[0] == TransmitState.READY
    transmit.stop()
    assert transmit.look()[0] == TransmitState.IDLE
    for name, value in [("length", 59), ("count", 0), ("repeats", 0)]:
        before = probe.registers.read(f"port0_tx_{name}")
        probe.registers.write_many({f"port0_tx_{name}": value})
        transmit.arm()
        assert transmit.look()[0] == TransmitState.IDLE
        probe.registers.write_many({f"port0_tx_{name}": before})


def test_late_frames_and_writes_to_a_running_program_are_counted(probe: Probe) -> None:
    transmit = probe.ports[0].transmit
    probe.train(TrainProgram(60, 10))
    probe.registers.write_many({"port0_tx_interval_ticks": 80, "port0_tx_count": 50})
    transmit.arm()
    probe.registers.write("probe_start", 1)
    probe.wait(1e-5)
    counters = transmit.counters()
    assert (counters["sent"], counters["late"], counters["first_late"]) == (50, 49, 1)
    probe.launch(TrainProgram(1514, 10**5))
    probe.registers.write_many({"port0_tx_gap_ticks": 5})
    probe.stop(0)
    assert transmit.counters()["disturbed"] == 1
    transmit.clear()
    assert {name: value for name, value in transmit.counters().items() if value} == {"first_late": 2**32 - 1}


def test_more_records_than_the_ring_holds_are_counted_as_lost(probe: Probe) -> None:
    transmit, receive = probe.ports[0].transmit, probe.ports[0].receive
    program = TrainProgram(60, 1500)
    probe.train(TrainProgram(60, 1))
    receive.start(program)
    probe.registers.write_many({"port0_tx_count": 1500, "port0_tx_interval_ticks": 0})
    transmit.arm()
    probe.registers.write("probe_start", 1)
    probe.wait(2e-4)
    counters = receive.counters()
    assert (counters["frames"], counters["records_written"], counters["records_lost"]) == (1500, 1024, 476)
    assert receive.drain()["sequence"].tolist() == list(range(1024))


def test_a_link_that_is_down_is_said_and_comes_back(build: Path) -> None:
    with Probe(f"sim10g://loopback?build={build}") as opened:
        opened.link.set_link(0, False)
        opened.wait(2e-6)
        assert opened.info()["port0_link_up"] is False and opened.info()["port1_link_up"] is True
        with pytest.raises(ProbeError, match="link"):
            opened.train(TrainProgram(60, 10))
        opened.link.set_link(0, True)
        opened.wait(2e-6)
        assert opened.train(TrainProgram(60, 10)).complete


def test_hostile_frames_are_counted_by_what_is_wrong_with_them(build: Path) -> None:
    preamble = bytes.fromhex("55555555555555d5")
    with Probe(f"sim10g://cable?build={build}") as opened:
        receive = opened.ports[0].receive
        receive.start(TrainProgram(60, 1))
        sound = bytes(60) + (0x04128908).to_bytes(4, "little")
        for octets in (sound, sound[:-1] + b"\0", bytes(20), bytes(9100)):
            opened.link.inject(0, preamble + octets)
        opened.link.inject(0, preamble[1:] + sound)
        opened.wait(3e-5)
        counters = receive.counters()
    wanted = {
        "all_frames": 4,
        "fcs_errors": 3,
        "runts": 1,
        "giants": 1,
        "preamble_errors": 1,
        "frames": 0,
        "overflows": 0,
    }
    assert {name: counters[name] for name in wanted} == wanted


# The probe says what it is ------------------------------------------------------------------------


def test_the_host_takes_the_line_from_the_probe(probe: Probe, own: Path) -> None:
    assert probe.line == TEN_GIGABIT
    assert probe.info()["octets_per_tick"] == 8
    assert probe.timebase.tick_ns == pytest.approx(6.4)
    probe.timebase.increment += 1000
    probe.reset()
    assert probe.timebase.increment == TEN_GIGABIT.increment
    with Probe(f"sim://loopback?build={own}") as other:
        assert other.line == GIGABIT


def test_registers_are_those_of_1_gigabit(build: Path, own: Path) -> None:
    def names(folder: Path) -> set[str]:
        found = json.loads((folder / "csr.json").read_text())
        return {
            name for kind in ("csr_registers", "memories") for name in found[kind] if name.startswith(("port", "probe"))
        }

    ours, theirs = names(build), names(own)
    assert ours - theirs == {"probe_octets_per_tick"}
    missing = {name.split("_", 1)[1] for name in theirs - ours}
    assert {name for name in missing if not name.startswith("rx_line")} == {"tx_checksum_enable", "tx_checksum_seed"}


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ({"headers": Headers(source_ip="fd00::1", destination_ip="fd00::2")}, "no trains over IPv6"),
        ({"fill": "prbs"}, "no fill 'prbs'"),
        ({"interval_ns": 60.0}, "above the line rate for length 100: give 99.2 ns or more"),
    ],
)
def test_what_a_probe_of_10_gigabit_lacks_is_refused(probe: Probe, program: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        probe.train(TrainProgram(100, 10, **program))  # type: ignore[arg-type]
    assert probe.busy_port is None


def test_parts_are_refused_with_what_has_them(probe: Probe) -> None:
    with pytest.raises(UsageError, match="without the part streams: give it as preset=generator"):
        probe.traffic()
    with pytest.raises(UsageError, match="without the part replay: give it as preset=replay"):
        probe.need(Part.REPLAY)
    with pytest.raises(UsageError, match="at 10 Gb/s there are trains, streams and replay alone so far"):
        probe.need(Part.SETS)
