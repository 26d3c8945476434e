# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The clock as a host sees it: status, log, time and mode, over a model of its registers, and what becomes of it meanwhile."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from liteprobe.cores.formats import CLOCK_JUMPS_BIT, CLOCK_STEPS_BIT, ClockError, ClockMode, ClockState, TransmitState
from liteprobe.host.analysis import summary
from liteprobe.host.analysis.summary import TrainResult
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.capture import live
from liteprobe.host.cli.tables import _trust
from liteprobe.host.clock import log as clock_log
from liteprobe.host.clock.clock import ClockWatch, Edge, watch_all
from liteprobe.host.probe import Probe
from liteprobe.host.run.trains import Route
from liteprobe.host.suites.owd import OneWay
from liteprobe.host.traffic.train import TrainProgram
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.models.probe.trains import ModelProbe, cable

SIGN = 2**32
LOCKED = {
    "clock_state": 3, "clock_alive": 1, "clock_updates": 7, "clock_uncertainty": 10 * 256, "clock_offset": SIGN - 640,
    "clock_rate": 20_000 * 256, "clock_drift": SIGN - 128, "clock_edges": 99, "clock_rejected": 2, "clock_tai_utc": 37,
    "pps_period": 10**9, "pps_control": 1, "pps_present": 1, "pps_missing": 4,
}  # fmt: skip


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelProbe:
    """A probe with a clock and a cable of 1 ms; every URL leads to it."""
    made = ModelProbe(cable(125_000), with_clock=True)
    made.values["pps_period"] = 10**9

    monkeypatch.setattr("liteprobe.host.probe.open_link", lambda url: FakeLink(made, tmp_path))
    return made


Run = Callable[..., tuple[int, str, str]]


# Status -------------------------------------------------------------------------------------------


def test_status_gives_each_word_in_its_unit(model: ModelProbe) -> None:
    model.values |= LOCKED
    with Probe("any") as probe:
        status = probe.timebase.clock.status()
    assert (status.state, status.name, status.is_alive, status.faults) == (ClockState.LOCKED, "locked", True, [])
    assert (status.uncertainty_ns, status.offset_ns, status.rate_ppb, status.drift_ppt_s) == (10.0, -2.5, 2e4, -0.5)
    assert (status.edges, status.rejected, status.tai_utc_s, status.missing) == (99, 2, 37, 4)
    assert (status.period_ns, status.is_pps_enabled, status.is_pps_present) == (10**9, True, True)
    assert status.mode == ClockMode.DISCIPLINE


@pytest.mark.parametrize(
    ("values", "name", "bound_ns", "fault"),
    [
        ({"clock_updates": 0, "clock_alive": 0, "clock_state": 0}, "free-running", None, "nothing disciplines"),
        ({"clock_alive": 0, "clock_state": 0}, "unknown", None, "watchdog"),
        ({"clock_uncertainty": SIGN - 1, "clock_state": 1, "clock_error": 1}, "free-running", None, "antenna"),
        ({"clock_state": 2}, "acquiring", 10.0, None),
        ({"clock_state": 4, "clock_error": int(ClockError.NO_PPS)}, "holdover", 10.0, "antenna"),
        ({"clock_error": int(ClockError.WRONG_SECOND)}, "locked", 10.0, "different seconds"),
        ({"clock_error": int(ClockError.STEP_REFUSED)}, "locked", 10.0, "a train runs"),
        ({"clock_state": 7}, "unknown", 10.0, None),
        ({"clock_mode": 99}, "locked", 10.0, None),
    ],
)
def test_each_state_and_each_fault_is_told(
    model: ModelProbe, run: Run, values: dict[str, int], name: str, bound_ns: float | None, fault: str | None
) -> None:
    model.values |= LOCKED | values
    code, out, _ = run("clock", "status", "--json")
    found = json.loads(out)
    assert (code, found["state"], found["uncertainty_ns"]) == (0, name, bound_ns)
    assert [fault in text for text in found["faults"]] == ([] if fault is None else [True])
    shown = run("clock", "status")[1]
    assert name in shown and (fault is None or fault.split()[-1] in shown)


@pytest.mark.parametrize(
    ("values", "conditions", "code"),
    [
        ({}, ("bound < 11ns", "offset <= 2.5ns", "rate_ppb == 20k", "missing == 4", "faults == 0", "unlocked == 0"), 0),
        ({}, ("bound < 10ns",), 4),
        ({"clock_state": 4}, ("unlocked == 0",), 4),
        ({"clock_state": 4, "clock_error": int(ClockError.NO_PPS)}, ("faults == 0",), 4),
        ({"clock_uncertainty": SIGN - 1}, ("bound < 1s",), 5),
        ({"clock_updates": 0, "clock_alive": 0, "clock_state": 0}, ("offset < 1s",), 5),
        ({}, ("p99 < 1us",), 2),
    ],
)
def test_conditions_on_a_clock(
    model: ModelProbe, run: Run, tmp_path: Path, values: dict[str, int], conditions: tuple[str, ...], code: int
) -> None:
    model.values |= LOCKED | values
    options = [word for one in conditions for word in ("--expect", one)]
    found, out, err = run("clock", "status", *options, "--junit", str(tmp_path / "c.xml"))
    assert found == code, err
    if code in (0, 4):
        assert out.count("held: ") == len(conditions)
        assert (tmp_path / "c.xml").read_text().count("<failure") == bool(code)
    json_code, out, err = run("clock", "status", "--json", *options)
    assert json_code == code and (code == 2 or len(json.loads(out)["expect"]) == len(conditions))


def test_a_clock_is_as_bad_as_its_worst_look() -> None:
    from liteprobe.host.clock.clock import ClockReport, ClockResult

    words = dict.fromkeys(ClockReport.__dataclass_fields__, 0)
    looks = [
        ClockReport(
            **{
                **words,
                "state": state,
                "uncertainty_ns": bound,
                "errors": ClockError(0),
                "is_alive": True,
                "was_ever_alive": True,
            }
        )  # type: ignore[arg-type]
        for state, bound in ((ClockState.LOCKED, 5.0), (ClockState.HOLDOVER, 80.0), (ClockState.LOCKED, 6.0))
    ]
    result = ClockResult(looks)
    assert (result.to_dict()["bound"], result.count("unlocked"), result.count("faults")) == (80.0, 1, 0)
    assert ClockResult([*looks, replace(looks[0], uncertainty_ns=None)]).bound_ns is None


def test_every_fault_has_a_text() -> None:
    from liteprobe.host.clock.clock import FAULTS

    assert set(FAULTS) == set(ClockError)


def test_a_gateware_without_the_clock_says_how_to_build_one(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("liteprobe.host.probe.open_link", lambda url: FakeLink(ModelProbe(), tmp_path))
    log = str(tmp_path / "log")
    for command in (
        ["status"], ["log", "--out", log, "--for", "1s"], ["set", "--mode", "reacquire"], ["discipline", "--for", "1s"],
    ):  # fmt: skip
        code, _, err = run("clock", *command)
        assert (code, "build it without --no-discipline" in err) == (1, True), command


# Results ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "locked, within 10.0 ns (95 %)"),
        ({"clock_uncertainty": SIGN - 1, "clock_state": 1}, "free-running, error not known"),
    ],
)
def test_words_of_a_clock_give_its_own_bound(model: ModelProbe, values: dict[str, int], words: str) -> None:
    model.values |= LOCKED | values
    with Probe("any") as probe:
        assert probe.timebase.trust_words() == words


@pytest.mark.parametrize(
    ("values", "state", "uncertainty_ns"),
    [
        ({}, "locked", 8 + 2 * 10),  # 1 ms by a crystal within 50 ppm could be off by 50 ns; both stamps are within 10.
        ({"clock_uncertainty": 40 * 256}, "locked", 8 + 50),
        ({"clock_state": 4, "clock_uncertainty": 20 * 256}, "holdover", 8 + 40),
        ({"clock_state": 0, "clock_alive": 0}, "unknown", 8 + 50),
        ({"clock_state": 0, "clock_alive": 0, "clock_updates": 0}, "free-running", 8 + 50),
    ],
)
def test_a_result_carries_the_state_and_the_bound_of_the_clock(
    model: ModelProbe, values: dict[str, int], state: str, uncertainty_ns: float
) -> None:
    model.values |= LOCKED | values
    with Probe("any") as probe:
        probe.timebase.oscillator_ppm = 50.0
        result = probe.train(TrainProgram(60, 2))
    assert (result.clock_state, result.uncertainty_ns) == (state, pytest.approx(uncertainty_ns))


# Set ----------------------------------------------------------------------------------------------


def test_time_is_set_to_the_nanosecond_and_never_while_a_train_runs(model: ModelProbe, run: Run) -> None:
    wanted = 1_700_000_000_123_456_789
    assert run("clock", "set", "--time", str(wanted))[0] == 0
    assert model.values["timebase_set_time"] == wanted and wanted <= model.now() < wanted + 100_000
    for state in (TransmitState.WAITING, TransmitState.RUNNING):
        model.values["port1_tx_state"] = state
        code, _, err = run("clock", "set", "--time", "now")
        assert (code, "port 1 runs a train or streams" in err) == (1, True)
    assert model.values["timebase_set_time"] == wanted


def test_now_is_the_time_of_the_host_in_tai(model: ModelProbe, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 5 * 10**9)
    assert run("clock", "set", "--time", "now", "--tai-utc", "40")[0] == 0
    assert model.values["timebase_set_time"] == 45 * 10**9


@pytest.mark.parametrize(("mode", "number"), [("discipline", 0), ("leave-alone", 1), ("reacquire", 2)])
def test_mode_is_what_the_firmware_reads(model: ModelProbe, run: Run, mode: str, number: int) -> None:
    model.values["clock_mode"] = 77
    assert run("clock", "set", "--mode", mode)[0] == 0
    assert model.values["clock_mode"] == number


@pytest.mark.parametrize(
    "arguments", [["--time", "tomorrow"], ["--mode", "none"], [], ["--time", "1", "--mode", "reacquire"]]
)
def test_nonsense_is_a_usage_error(model: ModelProbe, run: Run, arguments: list[str]) -> None:
    assert run("clock", "set", *arguments)[0] == 2


# Log ----------------------------------------------------------------------------------------------


def write_log(
    path: Path, edges: list[Edge], model: ModelProbe, period_ns: int, qerr_ps: list[int | None], quantum_ps: int = 8000
) -> None:
    with Probe("any") as probe, path.open("w") as stream:
        writer = clock_log.Writer(stream, period_ns, quantum_ps)
        for edge, qerr in zip(edges, qerr_ps, strict=True):
            writer.write(edge, probe.timebase.clock.status(), qerr)


def test_a_log_comes_back_exactly(model: ModelProbe, tmp_path: Path) -> None:
    model.values |= LOCKED
    start, path = 1_700_000_000 * 10**9, tmp_path / "log"
    late = [3, 5, -2, 7]
    index = [0, 1, 3, 4]  # One is missing; then a spurious one comes.
    edges = [
        Edge(n, start + k * 10**9 + off, 2**31, 125_002_500 * k + 11, 100, False)
        for n, (k, off) in enumerate(zip(index, late, strict=True))
    ]
    spurious = Edge(9, start + 4_300_000_000, 0, 537_000_000, 100, True)
    write_log(path, [*edges, spurious], model, 10**9, [1500, None, None, -250, None])
    log = clock_log.read(path)
    assert log.index.tolist() == index
    assert (log.period_ns, log.now_ns.tolist()) == (10**9, [edge.now_ns for edge in edges])
    # Clock less PPS: the stamp, half a tick, less what the receiver says.
    assert log.offset_ns.tolist() == [3 + 0.5 + 4 - 1.5, 5.5 + 4, -1.5 + 4, 7.5 + 4 + 0.25]
    assert log.oscillator_ns.tolist() == [0.0, 20_000 + 1.5, 60_000 + 1.5, 80_000 + 1.5 + 0.25]
    assert "locked,-2.500,10.000" in path.read_text().splitlines()[2]


def test_a_capture_finer_than_a_tick_is_logged_and_comes_back(model: ModelProbe, tmp_path: Path) -> None:
    path, early_ps = tmp_path / "log", [6000, 0, 2000, 4000]
    edges = [Edge(n, n * 10**9, 0, 125_000_000 * n, 100, False, early) for n, early in enumerate(early_ps)]
    write_log(path, edges, model, 10**9, [None, 500, None, None], quantum_ps=2000)
    log = clock_log.read(path)
    # The middle of the quarter: 8 - 1 - early ns after the stamp.
    assert (log.quantum_ns, log.late_ns.tolist()) == (2.0, [1.0, 7.0, 5.0, 3.0])
    assert log.offset_ns.tolist() == [1.0, 7.0 - 0.5, 5.0, 3.0]
    assert log.oscillator_ns.tolist() == [0.0, 6.0 - 0.5, 4.0, 2.0]


def test_a_log_of_captures_by_the_tick_is_still_read(tmp_path: Path) -> None:
    path = tmp_path / "log"
    rows = [f"{n},{n * 10**9},0,{125_000_000 * n},9,0,,locked,0.0,9.0" for n in range(4)]
    columns = "count,now_ns,now_fraction,ticks,width_ticks,is_spurious,qerr_ps,state,offset_ns,uncertainty_ns"
    path.write_text("\n".join(["# liteprobe-pps 1, period_ns 1000000000", columns, *rows, ""]))
    assert clock_log.read(path).offset_ns.tolist() == [4.0] * 4


@pytest.mark.parametrize(
    ("word", "count", "late_ps"),
    [
        (0, 0, None),
        (1250 << 8 | 5 << 1 | 1, 5, 1250),
        (1250 << 8 | 5 << 1 | 1, 128 + 5, 1250),
        (1250 << 8 | 5 << 1 | 1, 6, None),
        ((-1250 & 0xFFFFFF) << 8 | 5 << 1 | 1, 5, -1250),
        (1250 << 8 | 5 << 1, 5, None),
    ],
)
def test_the_error_of_an_edge_is_that_which_was_told_of_it(
    model: ModelProbe, word: int, count: int, late_ps: int | None
) -> None:
    model.values |= LOCKED | {"clock_qerr": word, "pps_period": 10**6}
    with Probe("any") as probe:
        assert probe.timebase.clock.qerr_ps(Edge(count, 0, 0, 0, 9, False), probe.wait) == late_ps


def test_the_error_of_an_edge_is_waited_for(model: ModelProbe) -> None:
    model.values |= LOCKED | {"clock_qerr": 700 << 8 | 4 << 1 | 1, "pps_period": 10**6}
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            model.values["clock_qerr"] = 900 << 8 | 5 << 1 | 1

    with Probe("any") as probe:
        assert probe.timebase.clock.qerr_ps(Edge(5, 0, 0, 0, 9, False), wait) == 900
    assert len(waits) == 3


def test_a_line_still_being_written_is_left_out(model: ModelProbe, tmp_path: Path) -> None:
    path = tmp_path / "log"
    edges = [Edge(n, n * 10**6, 0, n * 125_000, 9, False) for n in range(1, 6)]
    write_log(path, edges, model, 10**6, [None] * 5)
    path.write_text(path.read_text() + "6,60000")
    assert clock_log.read(path).index.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a PPS log"),
        ("# liteprobe-pps 1, period_ns x\n", "is not a PPS log"),
        ("# liteprobe-pps 1, period_ns 1000\ncount\n", "0 edges"),
        ("# liteprobe-pps 1, period_ns 1000\ncount,now_ns\n1,2\n", "line 3 of"),
        (
            "# liteprobe-pps 1, period_ns 1000\ncount,now_ns,now_fraction,ticks,is_spurious\n1,2,0,0,0\n1,x,0,0,0\n",
            "line 4 of",
        ),
    ],
)
def test_what_is_no_log_is_said(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "log"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        clock_log.read(path)


def test_edges_are_given_as_they_come_and_silence_is_an_error(model: ModelProbe) -> None:
    model.values |= LOCKED | {"pps_count": 4, "pps_period": 10**6}
    with Probe("any") as probe:
        waits = 0

        def wait(seconds: float) -> None:
            nonlocal waits
            waits += 1
            model.advance(round(seconds * 125e6))
            if waits in (3, 10):
                model.values |= {"pps_count": model.values["pps_count"] + 1, "pps_now": waits}

        found = [(edge.count, edge.now_ns) for edge in probe.timebase.clock.edges(2e-3, wait)]
        assert found == [(5, 3), (6, 10)]
        with pytest.raises(ProbeError, match="no PPS within four periods"):
            list(probe.timebase.clock.edges(10e-3, probe.wait))
        model.values["pps_control"] = 0
        with pytest.raises(ProbeError, match="PPS input is off"):
            next(probe.timebase.clock.edges(10e-3, probe.wait))


def test_a_plot_is_drawn_in_each_format_and_says_its_figures(model: ModelProbe, run: Run, tmp_path: Path) -> None:
    path, seed = tmp_path / "log", 5
    print("seed", seed)
    noise = np.random.default_rng(seed).integers(-8, 0, 400)
    edges = [Edge(n, n * 10**9 + int(off), 0, 125_002_500 * n + int(off) // 8, 9, False) for n, off in enumerate(noise)]
    del edges[100:103]
    write_log(path, edges, model, 10**9, [None] * len(edges))
    for suffix, magic in ((".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF")):
        picture = tmp_path / f"clock{suffix}"
        code, out, _ = run("clock", "plot", str(path), "--out", str(picture))
        assert code == 0 and picture.read_bytes().startswith(magic)
        assert "397 edges of 1000000000 ns, 3 missing, 0 outliers; oscillator +20.0000 ppm" in out
    assert run("clock", "plot", str(path), "--out", str(tmp_path / "clock.txt"))[0] == 2


# In the middle of a measurement -------------------------------------------------------------------


AT_FIRST = {
    "clock_state": 3, "clock_alive": 1, "clock_updates": 7, "clock_uncertainty": 10 * 256, "clock_edges": 90,
    "clock_rejected": 2, "clock_error": 250 << CLOCK_STEPS_BIT | 3 << CLOCK_JUMPS_BIT,
    "pps_period": 10**6, "pps_control": 1, "pps_present": 1, "pps_missing": 65_535,
}  # fmt: skip
MIDDLE_TICKS = 100_000  # In the middle of the train.
PROGRAM = TrainProgram(60, 20, interval_ns=100_000)
CASES: list[tuple[dict[str, int], str, float | None, str]] = [
    ({}, "locked", 10, ""),
    ({"clock_error": 251 << CLOCK_STEPS_BIT | 3 << CLOCK_JUMPS_BIT}, "locked", None, "was stepped once"),
    ({"clock_error": 4 << CLOCK_STEPS_BIT | 3 << CLOCK_JUMPS_BIT}, "locked", None, "was stepped 10 times"),
    ({"clock_error": 250 << CLOCK_STEPS_BIT | 4 << CLOCK_JUMPS_BIT}, "locked", 10, "the reference of"),
    ({"clock_error": AT_FIRST["clock_error"] | ClockError.REFERENCE_JUMPED}, "locked", 10, "the reference of"),
    ({"clock_error": AT_FIRST["clock_error"] | ClockError.STEP_REFUSED}, "locked", 10, "wanted a step"),
    ({"clock_rejected": 5}, "locked", 10, "refused 3 of its pulses"),
    ({"pps_missing": 1}, "locked", 10, "missed 2 pulses"),
    ({"clock_edges": 2}, "locked", None, "began anew"),
    ({"clock_state": 4, "clock_uncertainty": 30 * 256}, "holdover", 30, "was locked at first, holdover at the end"),
    ({"clock_uncertainty": 2**32 - 1}, "locked", None, ""),
    ({"clock_mode": 1}, "locked", 10, "another mode"),
]


def changing_model(values: dict[str, int]) -> ModelProbe:
    """Return a probe on a cable, whose clock changes in the middle of the train."""
    made = ModelProbe(cable(125), with_clock=True)
    made.values |= AT_FIRST
    made._at(MIDDLE_TICKS, lambda: made.values.update(values))
    return made


def notes_of_clock(notes: tuple[str, ...]) -> list[str]:
    """Return what is said of clocks."""
    return [note for note in notes if "clock" in note]


def train(values: dict[str, int], folder: Path) -> TrainResult:
    """Send a train of 2 ms, in whose middle the clock changes."""
    return Probe(FakeLink(changing_model(values), folder)).train(PROGRAM)


@pytest.mark.parametrize(("values", "state", "bound_ns", "said"), CASES)
def test_a_train_says_what_became_of_its_clock(
    tmp_path: Path, values: dict[str, int], state: str, bound_ns: float | None, said: str
) -> None:
    result = train(values, tmp_path)
    notes = notes_of_clock(result.notes)
    assert [said in note for note in notes] == [True] * bool(said)
    assert result.clock_state == state
    # A step is of unknown size; what isn't known otherwise still has its crystal, which is exact here.
    is_whole = not ("stepped" in said or "anew" in said)
    assert (summary.row(result)["uncertainty_ns"] is not None) == is_whole
    trust = _trust([summary.row(result)])
    assert ("not known" in trust) == (not is_whole) and trust.startswith(f"Clock {state};")


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(("values", "state", "bound_ns", "said"), CASES)
def test_one_way_delay_has_the_bounds_of_both_clocks_over_all_of_it(
    tmp_path: Path, which: int, values: dict[str, int], state: str, bound_ns: float | None, said: str
) -> None:
    """Of two probes, whose clocks are watched, one changes."""
    models, probes = [], []
    for name in "ab":
        (tmp_path / name).mkdir()
        models.append(ModelProbe(with_clock=True))
        models[-1].values |= AT_FIRST
        probes.append(Probe(FakeLink(models[-1], tmp_path / name)))
        probes[-1].url = f"sim://{name}"
    suite = OneWay([Route(PROGRAM, *probes)])
    suite.clocks = watch_all({id(probe): (probe.url, probe.timebase.clock) for probe in probes})
    models[which].values |= values
    verdict = suite.clock_of(suite.jobs[0], {})
    assert [said in note for note in verdict.notes] == [True] * bool(said)
    assert all(f"sim://{'ab'[which]}" in note for note in verdict.notes)
    assert verdict.state == state
    # The other clock's 10 ns, and half a tick: no latches of the line. Two locked clocks of which nothing is said are random.
    together = None if bound_ns is None else bound_ns + 10 if said or state != "locked" else math.hypot(bound_ns, 10)
    assert verdict.bound_ns == (None if together is None else together + 4)


def test_a_gateware_without_a_clock_is_free_running(tmp_path: Path) -> None:
    verdict = ClockWatch(Probe(FakeLink(ModelProbe(), tmp_path)).timebase.clock).end()
    assert (verdict.state, verdict.bound_ns, verdict.is_whole, verdict.notes) == ("free-running", None, True, ())


def test_the_worst_look_between_counts(tmp_path: Path) -> None:
    """Holdover that has come and gone by the end."""
    made = ModelProbe(with_clock=True)
    made.values |= AT_FIRST
    watch = ClockWatch(Probe(FakeLink(made, tmp_path)).timebase.clock)
    made.values |= {"clock_state": 4, "clock_uncertainty": 500 * 256}
    watch.look()
    made.values |= AT_FIRST
    verdict = watch.end()
    assert (verdict.state, verdict.bound_ns, verdict.notes) == ("holdover", 500.0, ())


def test_a_capture_ends_with_the_worst_of_its_clock(tmp_path: Path) -> None:
    made = ModelProbe(with_clock=True)
    made.values |= AT_FIRST
    probe = Probe(FakeLink(made, tmp_path))
    assert live.clock_words(probe) == (
        "Clock of the probe: locked, within 10.0 ns (95 %); a stamp comes up to 8 ns after its SFD"
    )
    watch = ClockWatch(probe.timebase.clock)
    made.values |= {"clock_state": 4, "clock_uncertainty": 300 * 256, "clock_rejected": 4}
    assert live.watched_words(watch) == (
        "Clock of the probe, at its worst: holdover, within 300.0 ns (95 %); a stamp comes up to 8 ns after its SFD; "
        "the clock was locked at first, holdover at the end; the clock refused 2 of its pulses"
    )
    made.values |= {"clock_error": 251 << CLOCK_STEPS_BIT | 3 << CLOCK_JUMPS_BIT}
    assert "at its worst: holdover, error not known" in live.watched_words(watch)
