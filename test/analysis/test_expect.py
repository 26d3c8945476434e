# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Conditions on results: their words, verdicts against arithmetic, exit codes of commands, files of JUnit."""

import json
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from liteprobe.cores.formats import RECORD_DTYPE
from liteprobe.host.analysis import expect
from liteprobe.host.analysis.expect import Condition, Value, judge, junit
from liteprobe.host.analysis.rows import FIGURES
from liteprobe.host.analysis.summary import TrainResult
from liteprobe.host.base import defaults
from liteprobe.host.base.errors import ExpectationError, ProbeError, UndecidedError, UsageError
from liteprobe.host.capture.request import CaptureResult
from liteprobe.host.cli import main as cli
from liteprobe.host.cli.commands import train as command
from liteprobe.host.measure.percentiles import Bounds, Measured
from liteprobe.host.run.emulate import EmulationResult
from liteprobe.host.run.figures import TrafficResult
from liteprobe.host.run.streamed import StreamedResult
from liteprobe.host.serve.poll import Look
from liteprobe.host.suites.sweep import Sweep
from liteprobe.host.traffic.train import TrainProgram
from liteprobe.sim.drivers.tools.figures import Figure, Size, note, row

SEED = 39
#: Units of the truth, written apart from those of the host.
UNITS = {
    "p99": {"ns": 1, "us": 1000, "ms": 10**6, "s": 10**9},
    "mean": {"ns": 1, "us": 1000, "msec": 10**6},
    "rate": {"Mbit": 10**6, "G": 10**9, "k": 1000, "Mbit/s": 10**6},
    "loss_ratio": {"": 1, "%": Fraction(1, 100)},
    "bit_error_ratio": {"": 1, "%": Fraction(1, 100)},
    "lost": {"": 1, "k": 1000},
    "late": {"": 1, "M": 10**6},
}
COMPARED: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "<": lambda a, b: a - b < 0,
    "<=": lambda a, b: not b - a < 0,
    ">": lambda a, b: b - a < 0,
    ">=": lambda a, b: not a - b < 0,
    "==": lambda a, b: not a - b,
    "!=": lambda a, b: bool(a - b),
}
Truth = bool | None


def figure(chance: random.Random, name: str) -> tuple[Value, tuple[Fraction, Fraction] | None]:
    """Return a figure, and between what it lies; of some nothing is known."""
    if chance.random() < 0.05:
        return None, None
    if name in ("lost", "late"):
        count = chance.choice([0, 1, 2, 1000, chance.randrange(10**7)])
        return count, (Fraction(count), Fraction(count))
    scale = {"rate": 1e9, "loss_ratio": 1, "bit_error_ratio": 1e-6}.get(name, 10 ** chance.uniform(1, 7))
    ends = sorted(float(f"{chance.random() * scale:.6g}") for _ in range(2))
    if chance.random() < 0.3:
        ends[1] = ends[0]
    return Measured(sum(ends) / 2, Bounds(*ends)), (Fraction(ends[0]), Fraction(ends[1]))


def over_all_values(sign: str, between: tuple[Fraction, Fraction] | None, limit: Fraction) -> Truth:
    """Return what a condition is for every value that the figure may have; None where that differs."""
    if between is None:
        return None
    least, most = between
    some = {least, most, (least + most) / 2, *([limit] if least <= limit <= most else [])}
    found = {COMPARED[sign](value, limit) for value in some}
    return found.pop() if len(found) == 1 else None


def together(truths: list[Truth]) -> Truth:
    return False if False in truths else None if None in truths else True


@row("people", "expect", is_test=True)
def test_verdicts_are_those_of_arithmetic(size: Size) -> Iterator[Figure]:
    chance, wrong, seen = random.Random(SEED), [], dict.fromkeys((True, False, None), 0)
    total = size.of(200, 20_000, 200_000)
    for _ in range(total):
        names = [
            f"{chance.choice(['voice', 'bulk.1', '1514x100', 'there.web', 'p99'])} {k}"
            for k in range(chance.randint(1, 4))
        ]
        name, sign = chance.choice(list(UNITS)), chance.choice(list(COMPARED))
        drawn = {part: figure(chance, name) for part in names}
        whole, between = figure(chance, name)
        unit = chance.choice(list(UNITS[name]))
        near = [end for one in [*(pair for _, pair in drawn.values()), between] if one for end in one]
        at = chance.choice(near or [Fraction(1)]) * chance.choice([1, 1, Fraction(999, 1000), Fraction(1001, 1000), 2])
        digits = f"{float(at / UNITS[name][unit]):.{chance.choice([3, 9, 17])}g}"
        limit = Fraction(digits) * UNITS[name][unit]
        part = chance.choice(["", *names])
        text = f"{part + '.' if part else ''}{name}{chance.choice(['', ' '])}{sign}{chance.choice(['', ' '])}{digits}{unit}"
        truth = (
            over_all_values(sign, drawn[part][1], limit)
            if part
            else over_all_values(sign, between, limit)
            if name in ("lost", "late", "loss_ratio")
            else together([over_all_values(sign, one, limit) for _, one in drawn.values()])
        )
        figures = {one: {name: value} for one, (value, _) in drawn.items()}
        verdict = judge([text], figures, {name: whole})
        seen[truth] += 1
        if (verdict.checks[0].holds, verdict.exit_code) != (truth, {True: 0, False: 4, None: 5}[truth]):
            wrong.append(f"{text} of {drawn} and {between}: {verdict.checks[0].line}, not {truth}")
    note(*wrong[:10], *([f"held {seen[True]}, not held {seen[False]}, unknown {seen[None]}"] if size else []))
    yield Figure("expect_wrong", len(wrong), "verdicts", 0)
    for what, count in (("held", seen[True]), ("not_held", seen[False]), ("unknown", seen[None])):
        yield Figure(f"expect_{what}", count, "conditions", total // 20, is_least=True)


@pytest.mark.parametrize(
    ("text", "part", "name", "sign", "limit"),
    [
        ("lost == 0", "", "lost", "==", 0),
        ("p99<10us", "", "p99", "<", 10_000),
        ("p99.9 < 1.5 ms", "", "p99_9", "<", 1_500_000),
        ("voice.p99.9<=0", "voice", "p99_9", "<=", 0),
        ("a.b.max > 1s", "a.b", "most", ">", 10**9),
        ("loss < 0.1%", "", "loss_ratio", "<", Fraction(1, 1000)),
        ("rate >= 900Mbit/s", "", "rate", ">=", 900_000_000),
        ("received > 10k", "", "received", ">", 10_000),
        ("port 0.p50 < 1us", "port 0", "p50", "<", 1000),
    ],
)
def test_words_of_a_condition(text: str, part: str, name: str, sign: str, limit: Fraction | int) -> None:
    assert Condition.of(text) == Condition(text, part, name, sign, Fraction(limit))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lost", "'lost' is not a condition: write it like 'lost == 0' or 'p99 < 10us'"),
        ("lost = 0", "is not a condition: write it like"),
        ("losst == 0", "there is no figure 'losst' for 'losst == 0': did you mean 'lost'"),
        ("p99 < 10", "'10' is not a limit for p99: write it like 'p99 < 10us'"),
        ("rate > 900", "write it like 'rate > 900Mbit'"),
        ("loss < few", "'few' is not a limit for loss_ratio: write it like 'loss_ratio < 0.1%'"),
        ("1us < p99 < 2us", "there is no figure '1us' for|is not a limit for"),
        ("", "is not a condition"),
        ("< 5", "is not a condition"),
        ("p99 < nan", "is not a limit"),
        ("p99 < inf", "is not a limit"),
    ],
)
def test_what_cannot_be_judged_is_refused_with_what_to_write(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Condition.of(text)


def test_lenient_takes_what_is_crossed_and_not_what_nobody_measured() -> None:
    figures = {"a": {"p99": Measured(10.0, Bounds(5, 15)), "p50": None}}
    assert judge(["p99 < 10ns"], figures, {}).exit_code == 5
    assert judge(["p99 < 10ns"], figures, {}, lenient=True).exit_code == 0
    assert judge(["p50 < 10ns"], figures, {}, lenient=True).exit_code == 5
    assert (
        judge(["b.p99 < 10ns"], figures, {}, lenient=True).checks[0].line
        == "b.p99 < 10ns: unknown: there is no 'b': give one of a"
    )
    assert judge(["p99 < 10ns"], {}, {}, lenient=True).checks[0].said == "nothing was measured"


def test_one_that_does_not_hold_weighs_more_than_one_that_is_unknown() -> None:
    figures: dict[str, dict[str, Value]] = {"a": {"p99": Measured(10.0, Bounds(5, 15))}, "b": {"p99": 99}}
    (check,) = judge(["p99 < 10ns"], figures, {}).checks
    assert check.line == "p99 < 10ns: not held: b: p99 is 99ns"
    said = r"a.p99 < 10ns: unknown: p99 is 10ns \(5ns to 15ns\), whose error bar crosses the limit"
    with pytest.raises(UndecidedError, match=said):
        judge(["b.p99 > 10ns", "a.p99 < 10ns"], figures, {}).require()
    with pytest.raises(AssertionError) as raised:
        judge(["lost == 0", "a.p99 < 10ns"], figures, {"lost": 3}).require()
    assert type(raised.value) is ExpectationError and "lost == 0: not held: lost is 3" in str(raised.value)


def test_a_file_of_junit_has_a_case_for_each_condition_whatever_its_name() -> None:
    figures: dict[str, dict[str, Value]] = {"<\x1b&": {"p99": Measured(10.0, Bounds(5, 15))}}
    verdict = judge(["lost == 0", "late < 5", "<\x1b&.p99 < 10ns"], figures, {"lost": 0, "late": 7})
    (suite,) = ElementTree.fromstring(verdict.junit("liteprobe send"))
    assert [suite.get(name) for name in ("name", "tests", "failures", "errors")] == ["liteprobe send", "3", "1", "1"]
    assert [[child.tag for child in case] for case in suite] == [["system-out"], ["failure"], ["error"]]
    assert [case.get("name") for case in suite] == ["lost == 0", "late < 5", "<\\x1b&.p99 < 10ns"]
    assert ElementTree.fromstring(junit("x", []))[0].get("tests") == "0"


# Of commands --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        (defaults.FIGURES_OF_TRAINS, FIGURES),
        (defaults.FIGURES_OF_STREAMS, TrafficResult.COLUMNS),
        (defaults.FIGURES_OF_PORTS, StreamedResult.COLUMNS),
        (defaults.FIGURES_OF_CLASSES, EmulationResult.COLUMNS),
        (defaults.FIGURES_OF_CAPTURES, CaptureResult.COLUMNS),
        (defaults.FIGURES_OF_LOOKS, Look.COLUMNS),
    ],
)
def test_the_figures_that_a_command_names_are_those_of_its_result(names: str, columns: dict[str, object]) -> None:
    assert set(names.split()) == set(columns) and set(columns) <= set(expect.NAMES)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A train that was measured: 10 sent, 2 of them lost, 100 ns each."""
    records = np.zeros(8, RECORD_DTYPE)
    records["sequence"], records["length"], records["tx_stamp"] = np.arange(8), 60, 1000 + 672 * np.arange(8)
    records["rx_stamp"] = records["tx_stamp"] + np.uint64(100)
    found = TrainResult(TrainProgram(60, 10), records, {}, 10, 0, "free-running", 8.0, True, ())
    sweep = Sweep("loopback", "sim://loopback", {}, [found], [found.row])

    def measure(args: object, request: object, take: Callable[[Sweep], None]) -> Sweep:
        take(sweep)
        return sweep

    monkeypatch.setattr(command, "measure", measure)


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (
            ["lost == 2", "p99 < 1us"],
            0,
            ["lost == 2: held: lost is 2", "p99 < 1us: held: p99 is 100ns (92ns to 108ns)"],
        ),
        (
            ["lost == 0", "p99 < 1us"],
            4,
            ["lost == 0: not held: lost is 2", "p99 < 1us: held: p99 is 100ns (92ns to 108ns)"],
        ),
        (["p99 < 100ns"], 5, ["p99 < 100ns: unknown: p99 is 100ns (92ns to 108ns), whose error bar crosses the limit"]),
        (["p99 < 100ns", "loss < 1%"], 4, ["loss < 1%: not held: loss_ratio is 0.2"]),
    ],
)
def test_a_command_says_each_condition_and_ends_with_its_code(
    options: list[str], code: int, said: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [word for text in options for word in ("--expect", text)]
    files = ["--junit", str(tmp_path / "j.xml"), "--json", str(tmp_path / "j.json")]
    assert cli.main(["train", *given, *files]) == code
    printed = capsys.readouterr()
    assert all(line in printed.out.splitlines() for line in said)
    (suite,) = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert [case.get("name") for case in suite] == options
    kept = json.loads((tmp_path / "j.json").read_text())["expect"]
    assert [one["condition"] for one in kept] == options
    assert cli.main(["train", *given, "--lenient"]) == (0 if code == 5 else code)


@pytest.mark.usefixtures("measured")
def test_where_json_is_on_stdout_conditions_are_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["train", "--expect", "lost == 0", "--json"]) == 4
    printed = capsys.readouterr()
    assert json.loads(printed.out)["expect"][0]["holds"] is False and "lost == 0: not held: lost is 2" in printed.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["train", "--expect", "bit_errors == 0"],
            "'train' doesn't measure bit_errors of 'bit_errors == 0': give one of",
        ),
        (["send", "--expect", "lost == 0", "--check"], "--check measures nothing that --expect could judge"),
        (["train", "--expect", "lost == 0", "--detach"], "--detach measures nothing"),
        (["emulate", "--yaml", "--expect", "lost == 0"], "--yaml measures nothing"),
        (["train", "--lenient"], "--lenient is of conditions: give --expect 'lost == 0', too"),
        (["capture", "-w", "x.pcapng", "--expect", "p99 < 1us"], "'capture' doesn't measure p99"),
    ],
)
def test_conditions_that_cannot_be_judged_are_refused_before_anything_is_measured(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == 2
    assert said in capsys.readouterr().err


def test_a_run_that_fails_has_its_error_in_the_file_of_junit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(args: object, request: object, take: object) -> Sweep:
        raise ProbeError("the link of port 0 is down")

    monkeypatch.setattr(command, "measure", measure)
    assert cli.main(["train", "--expect", "lost == 0", "--junit", str(tmp_path / "j.xml")]) == 1
    (suite,) = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert (suite.get("errors"), suite[0][0].get("message")) == ("1", "the link of port 0 is down")
    assert "the link of port 0 is down" in capsys.readouterr().err
