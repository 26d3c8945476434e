# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Experiments on modelled probes, each with a crystal and a clock of its own: delays and loss against true time, and faults."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.fleet.experiment import Experiment
from liteprobe.host.fleet.turns import Sleep, in_turns
from liteprobe.host.report.experiment_page import write
from liteprobe.host.report.files import head
from liteprobe.host.store.store import ResultStore
from liteprobe.sim.drivers.system.fleet import KINDS, PROGRAM, FleetBench, hostile, name_of
from liteprobe.sim.drivers.tools.wire import is_full
from liteprobe.sim.models.probe.fleet import TAI_NS

PROBES = 20 if is_full() else 10
FAULTS = 40 if is_full() else 0  # Of random kinds, beside one of each kind.
START_S = TAI_NS // 10**9 + 3

Run = Callable[..., tuple[int, str, str]]


def test_probes_start_at_one_instant_and_the_delays_of_all_pairs_are_true(tmp_path: Path) -> None:
    bench = FleetBench(PROBES, 11, tmp_path)
    with Experiment(bench.plan(PROGRAM, start_tai_s=START_S), opener=bench.open_one) as experiment:
        result = experiment.run()
    assert (result.is_complete, result.faults, len(result.pairs)) == (True, {}, PROBES * (PROBES - 1))
    inside = 0
    for one in result.pairs:
        true_ns, lost = bench.truth(int(one.sender[1:]), int(one.receiver[1:]))
        assert (one.count("sent"), one.count("lost"), one.count("received")) == (PROGRAM.count, lost, len(true_ns))
        assert one.delays is not None and one.bound_ns is not None
        error_ns = one.delays["mean"] - sum(true_ns) / len(true_ns)
        inside += abs(error_ns) <= one.bound_ns
        assert abs(error_ns) < 2.5 * one.bound_ns
    assert inside > 0.9 * len(
        result.pairs
    )  # Clocks are few, so their errors are, too: `bench fleet start` has more of them.
    # The first start: each port's first frame, in true time, is off the instant by its clock's error and a tick.
    first_ns = [one.left_ns for one in bench.fleet.passages if one.sequence == 0][:PROBES]
    for left_ns, sender in zip(first_ns, bench.fleet.passages, strict=False):
        assert (
            abs(left_ns - bench.fleet.true_ns(START_S * 10**9)) < 2.5 * bench.fleet.probes[sender.sender].bound_ns + 8
        )
    starts = {one.start_time_ns for one in result.pairs}
    assert len(starts) == PROBES - 1 and min(starts, key=lambda one: one or 0) == START_S * 10**9


def test_faults_at_any_moment_leave_no_wrong_figure_and_are_named(tmp_path: Path) -> None:
    found = []
    for seed, kind in enumerate([*KINDS, *[""] * FAULTS], 1000):
        folder = tmp_path / str(seed)
        folder.mkdir()
        found.append(hostile(seed, folder, kind=kind))
    for seed, one in enumerate(found, 1000):
        assert (seed, one.wrong, one.unnamed, one.missing, one.is_stopped) == (seed, [], [], [], True)
    assert {one.kind for one in found} == set(KINDS) and sum(one.is_noticed for one in found) > len(found) / 2


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("absent", "lost: no answer"),
        ("busy", "busy: "),
        ("preset", "of another preset: it is a monitor, the plan says train"),
        ("unlocked", "not locked: its clock is free-running"),
        ("bound", "not locked well: the error of its clock is 5,000.0 ns, the plan allows 1,000.0 ns"),
        ("second", "its clock disagrees with the others by +1.000 s"),
        ("cut", "lost: no answer"),
    ],
)
def test_who_cant_take_part_is_named_before_the_start_and_the_rest_goes_on(
    kind: str, said: str, tmp_path: Path
) -> None:
    assert kind in KINDS
    bench = FleetBench(4, 5, tmp_path)
    bench.fault(kind, 2, 1.0)
    with Experiment(bench.plan(PROGRAM, preset="train"), opener=bench.open_one) as experiment:
        experiment.check()
        assert list(experiment.faults) == [name_of(2)] and experiment.faults[name_of(2)].startswith(said)
        result = experiment.run()
    for one in result.pairs:
        if name_of(2) in (one.sender, one.receiver):
            assert one.delays is None and one.row is None and one.why.startswith(f"{name_of(2)}: {said}")
        else:
            assert one.delays is not None and not one.why
    assert not result.is_complete


def test_two_clocks_that_disagree_are_both_named(tmp_path: Path) -> None:
    bench = FleetBench(2, 5, tmp_path)
    bench.fault("second", 1, 1.0)
    with Experiment(bench.plan(PROGRAM), opener=bench.open_one) as experiment, pytest.raises(ProbeError) as error:
        experiment.run()
    assert str(error.value).count("the clocks disagree") == 2


def test_a_plan_in_the_past_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    bench = FleetBench(2, 5, tmp_path)
    plan = bench.plan(PROGRAM, start_tai_s=TAI_NS // 10**9 - 5)
    with (
        Experiment(plan, opener=bench.open_one) as experiment,
        pytest.raises(UsageError, match="is past, or less than"),
    ):
        experiment.run()
    assert not bench.fleet.passages


def test_a_way_on_which_all_is_lost_has_its_loss(tmp_path: Path) -> None:
    bench = FleetBench(2, 5, tmp_path)
    bench.fleet.paths[0, 1] = type(bench.fleet.paths[0, 1])(1e4, 0, 1.0)
    with Experiment(bench.plan(PROGRAM), opener=bench.open_one) as experiment:
        there, back = experiment.run().pairs
    assert (there.count("sent"), there.count("lost"), there.delays, there.why[:13]) == (20, 20, None, "no frame came")
    assert back.delays is not None


def test_an_interrupt_stops_all_ports_and_keeps_what_there_is(tmp_path: Path) -> None:
    bench = FleetBench(4, 5, tmp_path)
    bench.fault("interrupt", 0, 3.5e9)  # After the first start.
    experiment = Experiment(bench.plan(PROGRAM, start_tai_s=START_S), opener=bench.open_one)
    with experiment, pytest.raises(Interrupted) as stop:
        experiment.run()
    (result,) = stop.value.results
    assert [one.delays is not None for one in result.pairs].count(True) in (4, 8)
    assert all(one.why for one in result.pairs if one.delays is None)
    assert {probe.values["port0_tx_state"] for probe in bench.fleet.probes} == {0}


# The command --------------------------------------------------------------------------------------

DOCUMENT = """
probes:
  p00: {url: 10.9.0.1, ip: 10.0.0.1}
  p01: {url: 10.9.0.2, ip: 10.0.0.2}
  p02: {url: 10.9.0.3, ip: 10.0.0.3}
train: {length: 60, count: 20, interval: 10us}
"""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FleetBench:
    """Three probes, whose addresses end in their numbers from 1."""
    made = FleetBench(3, 5, tmp_path)
    monkeypatch.setattr("liteprobe.host.probe.open_link", lambda url: made.links[int(url.rpartition(".")[2]) - 1])
    (tmp_path / "plan.yaml").write_text(DOCUMENT)
    return made


def test_the_command_prints_and_writes_what_came(bench: FleetBench, tmp_path: Path, run: Run) -> None:
    bench.fault("unlocked", 1, 1.0)
    path = tmp_path / "found.json"
    code, out, err = run("experiment", str(tmp_path / "plan.yaml"), "--json", str(path))
    assert code == 0, err
    assert "p01 is left out: not locked: its clock is free-running" in err and "2 of 6 pairs have delays" in out
    content = json.loads(path.read_text())
    assert (content["format"], content["is_complete"], list(content["faults"])) == (
        "liteprobe-experiment",
        False,
        ["p01"],
    )
    (there,) = [one for one in content["pairs"] if (one["from"], one["to"]) == ("p00", "p02")]
    true_ns, lost = bench.truth(0, 2)
    assert there["lost"] == lost and abs(there["mean"] - sum(true_ns) / len(true_ns)) < 2.5 * there["bound"]


def test_the_command_keeps_delays_in_a_store_and_draws_them(bench: FleetBench, tmp_path: Path, run: Run) -> None:
    bench.fault("unlocked", 1, 1.0)
    page, csv = tmp_path / "found.html", tmp_path / "found.csv"
    asked = [str(tmp_path / "plan.yaml"), "--store", str(tmp_path / "store"), "--report", str(page), "--csv", str(csv)]
    code, _, err = run("experiment", *asked)
    assert code == 0, err
    true_ns = {f"p0{a} to p0{b}": bench.truth(a, b)[0] for a, b in ((0, 2), (2, 0))}
    store = ResultStore(tmp_path / "store")
    (kept,) = [store.read(one).to_pylist()[0] for one in store.files("runs")]
    assert [one.probe for one in store.files("runs")] == ["plan"]
    assert (kept["command"], kept["url"], kept["is_complete"]) == ("experiment", "experiment://plan", False)
    rows = csv.read_text().splitlines()
    known = {row.split(",")[0] for row in rows[1:] if row.split(",")[5]}
    assert known == set(true_ns) and len(rows) == 7
    for name, delays in true_ns.items():
        cells = [
            one for file in store.files("histograms") for one in store.read(file).to_pylist() if one["part"] == name
        ]
        assert sum(one["count"] for one in cells) == len(delays)
        off_ns = 2.5 * kept["uncertainty_ns"] + 1
        for percent in (50, 100):
            place = len(delays) * percent // 100 - 1
            ordered = [one for cell in sorted(cells, key=lambda one: one["low"]) for one in [cell] * cell["count"]]
            assert ordered[place]["low"] - off_ns <= sorted(delays)[place] <= ordered[place]["high"] + off_ns
    text = page.read_text()
    assert (
        "p01 was left out: not locked" in text
        and "2 of 6" in text
        and "<svg" in text
        and text.count("free-running") >= 4
    )


def test_a_page_of_an_experiment_without_any_delay_says_why(tmp_path: Path) -> None:
    bench = FleetBench(2, 5, tmp_path)
    for path in ((0, 1), (1, 0)):
        bench.fleet.paths[path] = type(bench.fleet.paths[path])(1e4, 0, 1.0)
    with Experiment(bench.plan(PROGRAM), opener=bench.open_one) as experiment:
        result = experiment.run()
    content = head("liteprobe-experiment", ["liteprobe"]) | result.to_dict()
    write(tmp_path / "page.html", result, content)
    text = (tmp_path / "page.html").read_text()
    assert text.count("no frame came") == 2 and "0 of 2" in text and "<svg" not in text


def test_the_command_keeps_what_there_is_when_it_is_interrupted(bench: FleetBench, tmp_path: Path, run: Run) -> None:
    bench.fault("interrupt", 0, 3.5e9)  # After the first start.
    (tmp_path / "plan.yaml").write_text(f"{DOCUMENT}start_tai: {START_S}\n")
    path = tmp_path / "found.json"
    code, _, err = run("experiment", str(tmp_path / "plan.yaml"), "--json", str(path))
    assert code == 130, err
    assert [one["mean"] is not None for one in json.loads(path.read_text())["pairs"]].count(True) == 3


def test_a_file_that_cant_be_written_is_named_and_the_table_is_printed(
    bench: FleetBench, tmp_path: Path, run: Run
) -> None:
    code, out, err = run("experiment", str(tmp_path / "plan.yaml"), "--json", "/dev/full")
    assert code == 1 and "/dev/full" in err and "6 of 6 pairs have delays" in out
    assert all(bench.truth(a, b)[0] for a in range(3) for b in range(3) if a != b)


def test_check_shows_the_starts_and_opens_nothing(bench: FleetBench, tmp_path: Path, run: Run) -> None:
    code, out, _ = run("experiment", str(tmp_path / "plan.yaml"), "--check")
    assert code == 0 and out.count("10.000 µs") == 6
    assert bench.fleet.now_ns == 0


# Turns --------------------------------------------------------------------------------------------


def test_runs_take_turns_by_when_they_are_due() -> None:
    said: list[tuple[str, float]] = []
    now = [0.0]

    def act(name: str, steps: list[float]) -> Callable[[Sleep], None]:
        def run(sleep: Sleep) -> None:
            for step in steps:
                sleep(step)
                said.append((name, now[0]))

        return run

    in_turns([act("a", [2, 2]), act("b", [1, 4]), act("c", [])], lambda s: now.__setitem__(0, now[0] + s))
    assert said == [("b", 1), ("a", 2), ("a", 4), ("b", 5)]


def test_an_error_of_the_program_is_raised_when_all_are_over() -> None:
    over = []

    def good(sleep: Sleep) -> None:
        sleep(1)
        over.append(True)

    def bad(sleep: Sleep) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        in_turns([bad, good], lambda s: None)
    assert over == [True]
