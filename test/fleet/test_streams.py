# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Experiments whose pairs send streams, on modelled probes: counts and delays against true time, faults, stations, files."""

import json
import math
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from liteprobe.cores.formats import PRESETS
from liteprobe.host.base.errors import DataError
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.fleet import collect
from liteprobe.host.fleet.experiment import Experiment, ExperimentResult
from liteprobe.host.fleet.halves import HEARS, Half
from liteprobe.host.fleet.plan import read_plan
from liteprobe.host.serve.station_metrics import StationMetrics
from liteprobe.host.store.store import ResultStore
from liteprobe.sim.drivers.system.fleet import STREAMS, FleetBench, hostile, name_of
from liteprobe.sim.drivers.system.fleet_stations import START_S, Stations
from liteprobe.sim.drivers.system.fleet_stations import hostile as hostile_stations
from liteprobe.sim.models.probe.fleet import TAI_NS, FleetTester

FAULTS, STATION_FAULTS = 10, 8
SENT = {one.name: one.count for one in STREAMS}
Run = Callable[..., tuple[int, str, str]]


def check_true(bench: FleetBench, result: ExperimentResult) -> None:
    """Hold all figures against what the model did."""
    for one in result.pairs:
        assert one.flow is not None and one.flow.latency is not None, one.why
        a, b = int(one.sender[1:]), int(one.receiver[1:])
        true_ns, lost = bench.truth(a, b, one.flow.stream.stream_id)
        assert (one.count("sent"), one.count("lost"), one.count("received")) == (SENT[one.stream], lost, len(true_ns))
        assert (one.count("duplicated"), one.flow.late, one.note) == (0, 0, "")
        assert one.delays is not None and one.bound_ns is not None
        # A bound is 95 %, of clocks of which each is off as long as a start takes; a tick is in it.
        for name, true in (("least", min(true_ns)), ("mean", sum(true_ns) / len(true_ns)), ("most", max(true_ns))):
            assert abs(one.delays[name] - true) < 2.5 * one.bound_ns + 8, (one.name, name)
        assert one.cells.total == len(true_ns)


def test_streams_of_a_mesh_start_at_one_instant_and_each_is_measured(tmp_path: Path) -> None:
    bench = FleetBench(4, 11, tmp_path, FleetTester)
    start_s = TAI_NS // 10**9 + 3
    with Experiment(bench.plan(STREAMS, start_tai_s=start_s), opener=bench.open_one) as experiment:
        result = experiment.run()
    assert (result.is_complete, len(result.pairs), list(result.parts)[:2]) == (
        True,
        4 * 3 * 2,
        ["p00 to p01, voice", "p00 to p01, data"],
    )
    check_true(bench, result)
    ids = {one.flow.stream.stream_id for one in result.pairs if one.flow}
    assert ids == set(range(1, 25))  # No two pairs have one in common.
    first_ns: dict[int, float] = {}
    for one in bench.fleet.passages:
        first_ns.setdefault(one.sender, one.left_ns)
    for sender, left_ns in first_ns.items():
        # The schedule has a stream of its own tick, and the line 84 ticks for the frame of another.
        off_ns = left_ns - bench.fleet.true_ns(start_s * 10**9)
        assert abs(off_ns) < 2.5 * bench.fleet.probes[sender].bound_ns + 16
    assert result.matrix("data")["p00"]["p01"] == result.parts["p00 to p01, data"].to_dict()["mean"]
    assert result.matrix()["p00"]["p01"] == result.parts["p00 to p01, voice"].to_dict()["mean"]


ENDLESS = """
probes:
  p00: {url: 10.9.0.1, ip: 10.0.0.1}
  p01: {url: 10.9.0.2, ip: 10.0.0.2, role: receives}
duration: 19950us
streams:
  - {name: voice, length: 60, pps: 10k}
  - {name: few, length: 128, pps: 1k, count: 3, start: 5ms}
"""


def test_a_duration_ends_all_streams_at_the_probes_themselves(tmp_path: Path) -> None:
    bench = FleetBench(2, 5, tmp_path, FleetTester)
    plan = read_plan(ENDLESS)
    with Experiment(plan, opener=lambda one: bench.open_one(bench.planned()[int(one.name[1:])])) as experiment:
        result = experiment.run()
    assert [(one.stream, one.count("sent")) for one in result.pairs] == [("voice", 200), ("few", 3)]
    assert result.is_complete


def test_faults_at_any_moment_leave_no_wrong_figure_and_are_named(tmp_path: Path) -> None:
    found = []
    for number in range(FAULTS + STATION_FAULTS):
        folder = tmp_path / str(number)
        folder.mkdir()
        of = hostile if number < FAULTS else hostile_stations
        found.append((number, of(7000 + number, folder, FleetTester)))
    for number, one in found:
        assert (number, one.kind, one.wrong, one.unnamed, one.missing, one.is_stopped) == (
            number, one.kind, [], [], [], True,
        )  # fmt: skip
    assert len({one.kind for _, one in found}) > 6 and sum(one.is_noticed for _, one in found) > len(found) / 3


def test_a_probe_that_sends_no_streams_is_named_before_the_start(tmp_path: Path) -> None:
    bench = FleetBench(3, 5, tmp_path, FleetTester)
    bench.fleet.probes[1].values["probe_parts"] = PRESETS["train"]
    with Experiment(bench.plan(STREAMS), opener=bench.open_one) as experiment:
        said = experiment.check()
        result = experiment.run()
    assert said == {"p01": "of another preset: a train sends no streams, and measures none: load generator or tester"}
    for one in result.pairs:
        if "p01" in (one.sender, one.receiver):
            assert not one.is_measured and one.why == f"p01: {said['p01']}"
        else:
            assert one.delays is not None and not one.why


def test_a_way_on_which_all_is_lost_has_its_loss(tmp_path: Path) -> None:
    bench = FleetBench(2, 5, tmp_path, FleetTester)
    bench.fleet.paths[0, 1] = type(bench.fleet.paths[0, 1])(1e4, 0, 1.0)
    with Experiment(bench.plan(STREAMS), opener=bench.open_one) as experiment:
        *there, back, _ = experiment.run().pairs
    for one in there:
        assert (one.count("sent"), one.count("lost"), one.delays) == (SENT[one.stream], SENT[one.stream], None)
        assert one.why.startswith("no frame came")
    assert back.delays is not None


def test_an_interrupt_keeps_what_there_is_and_says_so(tmp_path: Path) -> None:
    bench = FleetBench(3, 5, tmp_path, FleetTester)
    start_s = TAI_NS // 10**9 + 3
    bench.fault("interrupt", 0, 3e9 + 3e5)  # In the first start.
    experiment = Experiment(bench.plan(STREAMS, start_tai_s=start_s), opener=bench.open_one)
    with experiment, pytest.raises(Interrupted) as stop:
        experiment.run()
    (result,) = stop.value.results
    begun = [one for one in result.pairs if one.start_time_ns is not None]
    assert len(begun) == 6 and all(one.note or one.why for one in result.pairs)
    for one in begun:
        true_ns, lost = bench.truth(int(one.sender[1:]), int(one.receiver[1:]), one.flow.stream.stream_id)
        assert (one.count("received"), one.count("lost")) == (len(true_ns), lost)
    assert {probe.values["port0_tx_state"] for probe in bench.fleet.probes} == {0}


# Stations -----------------------------------------------------------------------------------------


def test_stations_run_streams_without_a_host_and_both_ends_join(tmp_path: Path) -> None:
    fleet = Stations(tmp_path, of=FleetTester)
    halves: list[Half] = []
    with ExitStack() as stack:
        fleet.serve(stack)
        for one in fleet.stations:
            one.seen.append(halves.append)
        metrics = StationMetrics(fleet.stations[0])
        fleet.stations[0].seen.append(metrics.take)
        text, connect = fleet.text(), collect.connector(None)
        plan = read_plan(text)
        assert collect.hand_out(plan, text, connect) == {}
        fleet.pass_until(START_S + 2 * plan.round_ns / 1e9)
        result = collect.collect(plan, text, connect)
    assert result.is_complete
    check_true(fleet.bench, result)
    by_name = result.parts
    for half in halves:
        assert (copy := Half.of(half.octets())).flows == half.flows and copy.verdict == half.verdict
        if half.end == HEARS:
            own = [one for one in by_name.values() if (one.sender, one.receiver) == (half.sender, half.receiver)]
            assert half.received == sum(one.count("received") or 0 for one in own)
            assert {name: cells.total for name, cells in half.cells.items()} == {
                one.name: one.count("received") for one in own
            }
    families = {one.name: one for one in metrics.collect()}
    came = {
        one.labels["pair"]: one.value
        for one in families["liteprobe_station_frames"].samples
        if one.labels["event"] == "received"
    }
    assert came == {
        f"{name_of(a)} to p00": sum(by_name[f"{name_of(a)} to p00, {one}"].count("received") or 0 for one in SENT)
        for a in (1, 2)
    }
    quantiles = {
        (one.labels["pair"], one.labels["quantile"]): one.value
        for one in families["liteprobe_station_delay_seconds"].samples
    }
    assert len(quantiles) == 2 * 2 * 4
    for name in ("p01 to p00, voice", "p02 to p00, data"):
        most_ns = by_name[name].to_dict()["most"]
        assert math.isclose(quantiles[name, "1"] * 1e9, most_ns, rel_tol=0.05)
    with pytest.raises(DataError):
        Half.of(halves[0].octets()[:-9])


# The command --------------------------------------------------------------------------------------

DOCUMENT = """
probes:
  p00: {url: 10.9.0.1, ip: 10.0.0.1}
  p01: {url: 10.9.0.2, ip: 10.0.0.2}
  p02: {url: 10.9.0.3, ip: 10.0.0.3}
defaults: {length: 60}
streams:
  - {name: voice, pps: 20k, count: 20}
  - {name: data, length: {least: 60, greatest: 1514}, rate: 300M, exponential: true, count: 40}
"""


def test_the_command_writes_all_files_of_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    bench = FleetBench(3, 5, tmp_path, FleetTester)
    monkeypatch.setattr("liteprobe.host.probe.open_link", lambda url: bench.links[int(url.rpartition(".")[2]) - 1])
    plan = tmp_path / "plan.yaml"
    plan.write_text(DOCUMENT)
    code, out, _ = run("experiment", str(plan), "--check")
    assert code == 0 and out.count("voice") == out.count("data") == 6 and "60 to 1514" in out
    bench.fault("unlocked", 1, 1.0)
    paths = {kind: tmp_path / f"found.{kind}" for kind in ("json", "csv", "html", "jsonl")}
    asked = ["--json", paths["json"], "--csv", paths["csv"], "--report", paths["html"], "--jsonl", paths["jsonl"]]
    code, out, err = run("experiment", str(plan), *map(str, asked), "--store", str(tmp_path / "store"))
    assert code == 0, err
    assert "4 of 12 pairs' streams have delays" in out and "p01 is left out: not locked" in err
    content = json.loads(paths["json"].read_text())
    rows = {(one["from"], one["to"], one["stream"]): one for one in content["pairs"]}
    assert len(rows) == 12
    lines = paths["csv"].read_text().splitlines()
    store = ResultStore(tmp_path / "store")
    kept = [one for file in store.files("histograms") for one in store.read(file).to_pylist()]
    for a, b, name in (("p00", "p02", "voice"), ("p02", "p00", "data")):
        row = rows[a, b, name]
        true_ns, lost = bench.truth(int(a[1:]), int(b[1:]), row["figures"]["stream_id"])
        assert (row["sent"], row["lost"], row["figures"]["received"]) == (SENT[name], lost, len(true_ns))
        assert abs(row["mean"] - sum(true_ns) / len(true_ns)) < 2.5 * row["bound"] + 8
        assert sum(one[2] for one in row["figures"]["latency_ns"]["histogram"]) == len(true_ns)
        assert sum(one["count"] for one in kept if one["part"] == f"{a} to {b}, {name}") == len(true_ns)
        (line,) = [one for one in lines if one.startswith(f'"{a} to {b}, {name}"')]
        assert line.split(",")[2:4] == [str(SENT[name]), str(len(true_ns))]
    last = json.loads(paths["jsonl"].read_text().splitlines()[-1])
    assert (last["kind"], last["pairs"]) == ("result", content["pairs"])
    page = paths["html"].read_text()
    assert (
        "12 pairs' streams of 3 probes" in page.replace("&#39;", "'") and "p00 to p02, data" in page and "<svg" in page
    )
