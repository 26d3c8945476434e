# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""``liteprobe rfc2544`` with a device of plain Python behind it: what it prints and writes, verdicts, runs that go on."""

import csv
import json
import shlex
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from liteprobe.host.cli import kept
from liteprobe.sim.drivers.suites.fake_probe import FakeProbe
from liteprobe.sim.models.forwarder import Device, Switch

Run = Callable[..., tuple[int, str, str]]
SHORT = (
    "rfc2544", "--probe", "sim://switch?preset=tester", "--frame-size", "64,512", "--duration", "2ms", "--latency-duration", "2ms",
    "--burst-duration", "2ms",
)  # fmt: skip


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., FakeProbe]:
    """Puts a device behind the command."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LITEPROBE_BUILD", str(tmp_path / "build"))

    def put(device: Device | None = None, **options: int) -> FakeProbe:
        made = FakeProbe(device or Switch(rate=Fraction(6, 10), queue=16), **options)  # type: ignore[arg-type]
        monkeypatch.setattr(kept, "open_probe", lambda args: made)
        return made

    return put


def test_a_suite_is_printed_and_written_and_says_everywhere_that_it_is_not_conformant(
    run: Run, probe: Callable[..., FakeProbe], tmp_path: Path
) -> None:
    probe()
    outputs = ("--json", "r.json", "--csv", "r.csv", "--report", "r.html", "--jsonl", "r.jsonl", "--trials", "t.jsonl")
    code, out, err = run(*SHORT, "--both-ways", *outputs)
    assert (code, "trials: t.jsonl" in err) == (0, True)
    said = "2 ms trials: not conformant"
    assert out.count(said) == 2  # Before, and above the table.
    assert "about" in out.splitlines()[0] and "which simulates it" in out.splitlines()[0]
    content = json.loads((tmp_path / "r.json").read_text())
    assert content["format"] == "liteprobe-rfc2544"
    assert (content["is_conformant"], content["shortfalls"][0]) == (False, said)
    assert [one["size"] for one in content["sizes"]] == ["64", "512"]
    assert [one["throughput"]["lower"] < 0.601 for one in content["sizes"]] == [True, True]
    rows = list(csv.DictReader((tmp_path / "r.csv").open()))
    assert [(row["name"], row["conformance"].partition(";")[0]) for row in rows] == [("64", said), ("512", said)]
    assert said in (tmp_path / "r.html").read_text()
    assert json.loads((tmp_path / "r.jsonl").read_text().splitlines()[-1])["kind"] == "result"
    kept = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert [one["kind"] for one in kept] == ["head"] + ["trial"] * content["trial_count"]


def test_trials_are_kept_even_where_nobody_asks_for_it(
    run: Run, probe: Callable[..., FakeProbe], tmp_path: Path
) -> None:
    probe()
    code, _, err = run(*SHORT, "--tests", "throughput")
    (file,) = (tmp_path / "build" / "trials").iterdir()
    assert (code, f"trials: {file}" in err) == (0, True)


def test_a_suite_that_failed_says_how_to_go_on_and_goes_on(
    run: Run, probe: Callable[..., FakeProbe], tmp_path: Path
) -> None:
    probe()
    assert run(*SHORT, "--json", "whole.json")[0] == 0
    probe(fails_at=9)
    code, out, err = run(*SHORT, "--trials", "my trials.jsonl", "--json", "cut.json")
    assert (code, "went down" in err, "incomplete" in out) == (1, True, False)
    assert err.splitlines()[-1].endswith(f"7 trials are kept: go on with --resume {shlex.quote('my trials.jsonl')}")
    assert json.loads((tmp_path / "cut.json").read_text())["is_complete"] is False
    again = probe()
    code, _, err = run(*SHORT, "--resume", "my trials.jsonl", "--json", "again.json")
    assert (code, "7 of them are there" in err) == (0, True)
    whole, found = (json.loads((tmp_path / name).read_text()) for name in ("whole.json", "again.json"))
    assert found["sizes"] == whole["sizes"] and found["trials"] == whole["trials"]
    assert again.sends == len(whole["trials"]) - 7 + 1


def test_another_command_does_not_go_on(run: Run, probe: Callable[..., FakeProbe]) -> None:
    probe()
    assert run(*SHORT, "--tests", "throughput", "--trials", "t.jsonl")[0] == 0
    code, _, err = run(*SHORT, "--tests", "throughput,loss", "--resume", "t.jsonl")
    assert (code, "go on with the same command, or begin anew with another file" in err) == (2, True)


def test_conditions_have_their_exit_codes(run: Run, probe: Callable[..., FakeProbe], tmp_path: Path) -> None:
    probe()
    one = (*SHORT, "--tests", "throughput,latency", "--junit", "j.xml")
    assert run(*one, "--expect", "rate > 590M", "--expect", "p50 < 10us")[0] == 0
    assert run(*one, "--expect", "512.rate > 700M")[0] == 4
    assert run(*one, "--expect", "rate > 600M")[0] == 5
    assert 'name="rate &gt; 600M"' in (tmp_path / "j.xml").read_text()
    code, _, err = run(*one, "--expect", "lost == 0")
    assert (code, "'rfc2544' doesn't measure lost" in err) == (2, True)


def test_a_plan_is_only_said_and_a_long_one_says_what_shortens_it(run: Run) -> None:
    code, out, _ = run("rfc2544", "--check", "--probe", "etherbone://192.0.2.1", "--latency-repeats", "200")
    lines = out.splitlines()
    assert (code, lines[0].startswith("1429 to 2423 trials, ")) == (0, True)
    assert "h" in lines[0] and lines[1].startswith("Shorter: --latency-repeats 3: up to ")
    assert not any("not conformant" in line for line in lines if not line.startswith("Shorter"))


def test_a_reset_command_that_fails_ends_the_suite(run: Run, probe: Callable[..., FakeProbe]) -> None:
    probe()
    code, _, err = run(
        *SHORT, "--tests", "reset", "--load", "50%", "--reset-command", "echo no such outlet >&2; exit 3"
    )
    assert (code, "--reset-command ended with 3: no such outlet" in err) == (1, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--frame-size", "63"), "'63' is not a frame size"),
        (("--frame-size", "64,"), "is not a list of words"),
        (("--tests", "jitter"), "there is no test 'jitter'"),
        (("--goal", "best"), "give one of rfc2544, tst009, ndr, pdr"),
        (("--precision", "0%"), "width 0 is out of range: give 1e-05 to 0.2"),
        (("--trials", "a.jsonl", "--resume", "b.jsonl"), "leave out --trials"),
        (("--resume", "none.jsonl"), "there is no none.jsonl to go on from"),
        (("--src-ip", "10.0.0.1", "--dst-ip", "2001:2::1"), "10.0.0.1"),
        (("--vlan", "7", "--frame-size", "64"), "is too short for its headers"),
        (("--transmit", "7"), "there is no port 7: give 0 to 1"),
    ],
)
def test_what_can_not_be_is_refused(
    run: Run, probe: Callable[..., FakeProbe], options: tuple[str, ...], message: str
) -> None:
    probe()
    code, _, err = run("rfc2544", "--probe", "sim://x", *options)
    assert (code, message in err) == (2, True), err


def test_kept_trials_that_the_suite_would_not_have_come_to_are_not_gone_on_with(
    run: Run, probe: Callable[..., FakeProbe], tmp_path: Path
) -> None:
    probe()
    assert run(*SHORT, "--tests", "throughput", "--trials", "t.jsonl")[0] == 0
    lines = (tmp_path / "t.jsonl").read_text().splitlines()
    (tmp_path / "t.jsonl").write_text(
        "\n".join([lines[0], lines[1], lines[2].replace('"throughput 64"', '"loss 64"'), ""])
    )
    code, _, err = run(*SHORT, "--tests", "throughput", "--resume", "t.jsonl")
    assert (code, "begin anew with another file" in err, "go on with --resume" in err) == (2, True, False)
