# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Suites of an experiment, on modelled probes: against what the model did, in all files, with faults; what is refused."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

from liteprobe.cores.formats import PRESETS
from liteprobe.host.base.errors import UsageError
from liteprobe.host.fleet import collect
from liteprobe.host.fleet.experiment import Experiment
from liteprobe.host.fleet.plan import read_plan
from liteprobe.host.fleet.suite_runs import RESULTS, SuiteFigures
from liteprobe.host.store.query import StoreQuery
from liteprobe.host.store.store import ResultStore
from liteprobe.host.suites.rfc2544 import Rfc2544Request
from liteprobe.host.suites.soak import SoakRequest
from liteprobe.sim.drivers.system.fleet import Hostile
from liteprobe.sim.drivers.system.fleet_stations import COUNT, START_S, Stations
from liteprobe.sim.drivers.system.fleet_suites import (
    AT,
    OF_STATIONS,
    bench_of,
    check_all,
    document,
    hostile,
    hostile_stations,
)
from liteprobe.sim.models.probe.fleet import TAI_NS, FleetTester
from liteprobe.sim.models.probe.fleet import Path as Way

FAULTS = 8
Run = Callable[..., tuple[int, str, str]]
TITLES = ["rfc2544, p00 to p01", "y1564, p02 to p03", "soak, p04", "later, p05 to p00"]


def test_suites_at_probes_and_between_them_are_true_and_in_all_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    bench = bench_of(5, tmp_path)
    monkeypatch.setattr("liteprobe.host.probe.open_link", lambda url: bench.links[int(url.rpartition(".")[2]) - 1])
    plan, out, page, store = (tmp_path / name for name in ("plan.yaml", "found.json", "found.html", "store"))
    plan.write_text(document())
    code, text, _ = run("experiment", str(plan), "--check")
    assert code == 0 and bench.fleet.now_ns == 0
    assert [line.split()[:2] for line in text.splitlines() if "trials" in line or "segments" in line] == [
        ["1", "rfc2544"], ["1", "y1564"], ["1", "soak"], ["2", "later"],
    ]  # fmt: skip
    expected = "y1564, p02 to p03, voice/cir-100.rate > 40M"
    code, text, err = run(
        "experiment", str(plan), "--json", str(out), "--report", str(page), "--store", str(store), "--expect", expected
    )
    assert code == 0, err
    content = json.loads(out.read_text())
    assert (content["is_complete"], [one["name"] for one in content["suites"]]) == (True, TITLES)
    assert [one["holds"] for one in content["expect"]] == [True]
    for one in content["suites"]:
        assert f"{one['name']}: {one['verdict'] or 'done'}" in text and f"<h2>{one['name']}" in page.read_text()
        assert one["result"]["trial_count"] == len(one["result"]["trials"]) > 1
    assert [one["start_time_ns"] % 10**9 for one in content["suites"]] == [0] * 4
    starts = [one["start_time_ns"] for one in content["suites"]]
    assert starts[0] == starts[1] == starts[2] < starts[3]  # p00 is busy in the first start.
    # The first frame of each leaves at the start, by the clock of its own probe.
    for one, number, since in zip(content["suites"], (0, 2, AT, 5), (0, 0, 0, starts[3] - TAI_NS), strict=True):
        left_ns = min(frame.left_ns for frame in bench.fleet.passages if frame.sender == number)
        assert abs(left_ns - max(one["start_time_ns"] - TAI_NS, since)) < 2.5 * bench.fleet.probes[number].bound_ns + 16
    runs = StoreQuery(ResultStore(store)).sql("SELECT command, url FROM runs ORDER BY command, url").rows
    assert [(one["command"], one["url"]) for one in runs] == [
        ("experiment", "experiment://plan"),
        ("experiment rfc2544", "experiment://plan/rfc2544, p00 to p01"),
        ("experiment soak", "experiment://plan/later, p05 to p00"),
        ("experiment soak", "experiment://plan/soak, p04"),
        ("experiment y1564", "experiment://plan/y1564, p02 to p03"),
    ]


def test_what_suites_find_is_what_the_model_did(tmp_path: Path) -> None:
    bench = bench_of(6, tmp_path)
    with Experiment(
        read_plan(document()), opener=lambda one: bench.open_one(bench.planned()[int(one.name[1:])])
    ) as run:
        result = run.run()
    found = Hostile("none", [], [], [], True, False)
    check_all(bench, result.suites, found)
    for one in result.suites:
        assert one.is_complete and one.rows and one.uncertainty_ns
    assert (found.wrong, found.unnamed, found.missing) == ([], [], [])
    soak = result.suites[2]
    passed = [frame.came_ns for frame in bench.fleet.passages if frame.sender == frame.receiver == AT]
    assert (soak.count("sent"), soak.count("received")) == (len(passed), sum(one is not None for one in passed))


SESSION = "suites: [{at: p04, stamp: {address: 10.9.9.5, count: 40, interval: 20us}}]"


def test_a_session_of_stamp_begins_at_the_start_and_is_true(tmp_path: Path) -> None:
    bench = bench_of(7, tmp_path)
    plan = read_plan(document(SESSION))
    with Experiment(plan, opener=lambda one: bench.open_one(bench.planned()[int(one.name[1:])])) as experiment:
        (one,) = experiment.run().suites
    own = [frame for frame in bench.fleet.passages if frame.sender == AT]
    assert (one.words, one.count("sent"), len(own)) == ("stamp, p04: done", 40, 40)
    assert one.document is not None and one.document["ways"][0]["received"] == 40
    assert one.start_time_ns is not None
    assert abs(own[0].left_ns - (one.start_time_ns - TAI_NS)) < 2.5 * bench.fleet.probes[AT].bound_ns + 16


def test_who_cant_run_a_suite_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    bench = bench_of(5, tmp_path)
    bench.fleet.probes[2].values["probe_parts"] = PRESETS["train"]
    bench.is_absent.add(5)
    with Experiment(
        read_plan(document()), opener=lambda one: bench.open_one(bench.planned()[int(one.name[1:])])
    ) as run:
        said = run.check()
        result = run.run()
    why = "of another preset: a train sends no streams, and measures none: load generator or tester"
    assert said == {"p02": why} and result.faults["p05"] == "lost: no answer from probe 5"
    assert [one.words for one in result.suites if not one.is_complete] == [
        f"y1564, p02 to p03: p02: {why}",
        "later, p05 to p00: p05: lost: no answer from probe 5",
    ]
    assert [one.is_complete for one in result.suites] == [True, False, True, False]


def test_faults_at_any_moment_leave_no_wrong_figure_and_are_named(tmp_path: Path) -> None:
    kinds = set()
    for seed in range(8000, 8000 + FAULTS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        one = hostile(seed, folder)
        kinds.add(one.kind)
        assert (seed, one.wrong, one.unnamed, one.missing, one.is_stopped) == (seed, [], [], [], True)
    assert len(kinds) > 3


@pytest.fixture
def stations(tmp_path: Path) -> Iterator[Stations]:
    """Three stations, each of a probe that hears itself."""
    made = Stations(tmp_path, of=FleetTester)
    for number in range(COUNT):
        made.bench.fleet.paths[number, number] = Way(20e3, 500)
    with ExitStack() as stack:
        made.serve(stack)
        yield made


@pytest.mark.parametrize("reads", [0, 300])
def test_stations_run_suites_alone_and_one_that_was_killed_goes_on(stations: Stations, reads: int) -> None:
    text = stations.text(sent=OF_STATIONS)
    plan, connect = read_plan(text), collect.connector(None)
    assert collect.hand_out(plan, text, connect) == {}
    if reads:
        stations.victim, stations.kill_reads = 1, reads
        stations.faults.append((START_S - 12, "killed", 1))
    starts = plan.starts()
    stations.pass_until(starts[-1][0] / 1e9 + 30)
    for _ in range(2):
        result = collect.collect(plan, text, connect)
        assert result.is_complete and [one.start_time_ns for one in result.suites] == [
            *[START_S * 10**9] * 3,
            starts[1][0],
        ]
        found = Hostile("killed", [], [], [], True, False)
        check_all(stations.bench, result.suites, found)
        assert (found.wrong, found.unnamed, found.missing) == ([], [], [])
        (note,) = [one.note for one in result.suites if one.sender == "p01"]
        assert note == ("the station was away meanwhile: 2 trials were kept" if reads else "")
    assert collect.forget(plan, text, connect) == {}
    left = [path.suffix for one in stations.stations for path in one.folder.iterdir()]
    assert left == [".fetched"] * COUNT


def test_stations_refuse_a_suite_that_needs_the_other_probe(stations: Stations) -> None:
    text = stations.text(sent="suites: [{at: p00, to: p01, soak: {streams: [{length: 60, pps: 1k}]}}]")
    with pytest.raises(UsageError, match="'soak, p00 to p01' goes on by what came to the other probe"):
        collect.hand_out(read_plan(text), text, collect.connector(None))


def test_faults_of_stations_that_run_suites_leave_no_wrong_figure(tmp_path: Path) -> None:
    for seed in range(8100, 8100 + FAULTS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        one = hostile_stations(seed, folder)
        assert (seed, one.kind, one.wrong, one.unnamed, one.missing) == (seed, one.kind, [], [], [])


def test_requests_are_those_of_the_commands() -> None:
    text = "suites: [{at: p00, to: p01, rfc2544: {both: 1}}]".replace("both: 1", "frame_size: [64, imix]")
    (benchmark,) = read_plan(document(text)).suites
    asked = benchmark.asked
    # A real probe: the times of the RFCs.
    assert isinstance(asked, Rfc2544Request) and (asked.sizes, asked.goal.seconds, asked.latency_repeats) == (
        ("64", "imix"), 60.0, 20,
    )  # fmt: skip
    assert (asked.headers.source_ip, asked.headers.destination_ip) == ("10.0.0.1", "10.0.0.2")
    simulated = document("suites: [{at: p00, bert: {ber: 1e-3, streams: [{fill: prbs, length: 500}]}}]").replace(
        "10.9.0.1'", "sim://pair?probe=a'"
    )
    (errors,) = read_plan(simulated).suites
    assert isinstance(errors.asked, SoakRequest) and (errors.asked.ber, errors.asked.segment_s) == (1e-3, 0.005)
    assert errors.asked.seconds == pytest.approx(1.01 * 2.9957e3 / 832e6, rel=0.01)  # 436 of 524 octets are PRBS.


@pytest.mark.parametrize(
    ("suites", "said"),
    [
        ("{at: p09, soak: {streams: [{length: 60}]}}", "no probe has the name or label 'p09'"),
        ("{at: p00}", "a suite is one of these: give rfc2544, y1564, soak, bert, stamp"),
        ("{at: p00, rfc2544: {}, soak: {streams: [{length: 60}]}}", "'rfc2544' and 'soak' of a suite are both given"),
        ("{at: p00, rfc2544: {tests: [reset]}}", "tests 'reset' is unknown: give one of throughput"),
        ("{at: p00, rfc2544: {frame_size: [63]}}", "'63' is not a frame size"),
        ("{at: p00, rfc2544: {load: 0%}}", "load 0% is out of range"),
        ("{at: p00, to: p01, stamp: {address: 10.0.0.2}}", "a session of STAMP is answered where it goes"),
        ("{at: p00, to: p01, rfc2544: {both_ways: true}}", "leave out 'both_ways'"),
        ("{at: p00, to: p01, soak: {receive: 1, streams: [{length: 60}]}}", "leave out 'receive'"),
        ("{at: p00, soak: {streams: [{length: 60, port: 1}]}}", "leave 'port' out here"),
        ("{at: p00, soak: {streams: [{length: 60, count: 1}]}}", "leave out the count"),
        ("{at: p00, bert: {ber: x, streams: [{length: 60}]}}", "'x' is not a ratio"),
        ("{at: p00, y1564: {services: [{name: a, length: 60}]}}", "it has no rate"),
        ("{at: p00, rfc2544: {}}, {at: p00, rfc2544: {}}", "two suites are 'rfc2544, p00': give each a 'name'"),
    ],
)
def test_suites_that_cant_be_are_refused_with_their_line(suites: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        read_plan(document(f"suites: [{suites}]"))
    assert said in str(error.value) and str(error.value).startswith("plan.yaml:8: ")


@pytest.mark.parametrize("kind", RESULTS)
def test_each_figure_of_a_suite_has_a_name_on_the_terminal_and_on_the_page(kind: str) -> None:
    found = SuiteFigures.__dict__["shown"].fget(
        SimpleNamespace(kind=kind, rows={"part": dict.fromkeys(RESULTS[kind].COLUMNS, 1.0)})
    )
    assert all(column.head and column.title for column in found)
    assert len({column.head for column in found}) == len(found) == len([*RESULTS[kind].COLUMNS]) + 1
