# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The command sweep: its grid, what it refuses, and rows that are those of the commands themselves."""

import csv
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from liteprobe.host.fleet import grid as grids
from liteprobe.host.fleet.tasks import TaskStore
from liteprobe.sim.drivers.desk import toolchain

Run = Callable[..., tuple[int, str, str]]
TRAIN = ("train", "--length", "{length}", "--count", "10")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--over", "a=1", *TRAIN), "the command has no {a} for --over a: give one of length"),
        (TRAIN, "{length} has no values: give --over length=VALUES"),
        (("--over", "length=", *TRAIN), "'length=' has no name or no values"),
        (("--over", "length=60,60", *TRAIN), "has a value twice"),
        (("--over", "length=9-6", *TRAIN), "'9-6' is not a range"),
        (("--over", "length=60", "--over", "length=61", *TRAIN), "--over is given twice"),
        (("--over", "length=1-1001", "--over", "a=1-100", "train", "{length}{a}"), "the grid has 100,100 points"),
        (("--over", "length=60", *TRAIN, "--probe", "10.0.0.50"), "is a device, which isn't the same twice"),
        (("--over", "length=60", *TRAIN, "--csv", "a.csv"), "--csv is of one run: leave it out of the command"),
        (("--over", "length=60", *TRAIN, "--nothing"), "--nothing"),
        (("--over", "length=x", *TRAIN), "'x' is not a whole number"),
        (("--over", "a=1", "info", "{a}"), "info"),
        (("--over", "a=1", "doctor", "--probe", "{a}"), "doctor"),
        (("--workers", "0", "--over", "length=60", *TRAIN), "--workers 0: give 1 to 1024"),
        (("--workers", "2", "--cluster", "tcp://a:1", "--over", "length=60", *TRAIN), "leave one of them out"),
        (("--over", "seed=1-2", "build", "--load", "colorlight_i5", "--seed", "{seed}"), "loads nothing"),
        (
            ("--over", "seed=1-2", "build", "colorlight_i5", "--preset", "none", "--seed", "{seed}"),
            "invalid choice: 'none'",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(
    run: Run, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    code, out, error = run("sweep", "--kept", str(tmp_path / "kept"), *words)
    assert (code in (1, 2), out, said in error, (tmp_path / "kept").exists()) == (True, "", True, False), error


def test_rows_are_those_of_the_command_itself_and_are_kept(run: Run, tmp_path: Path) -> None:
    own = []
    for length in ("60", "200"):
        path = tmp_path / f"{length}.csv"
        assert run("train", "--length", length, "--count", "10", "--csv", str(path))[0] == 0
        own += [{"length": length, "length measured": length, **row} for row in csv.DictReader(path.open())]
    for workers, values in (("1", "60,7,200"), ("2", "60,200")):
        kept, made = tmp_path / f"kept{workers}", tmp_path / "sweep.csv"
        code, out, error = run(
            *("sweep", "--kept", str(kept), "--workers", workers, "--over", f"length={values}"),
            *("--csv", str(made), "--json", str(tmp_path / "sweep.json"), *TRAIN),
        )
        rows = [
            {**row, "length measured": row["length"]} | dict(row)
            for row in csv.DictReader(made.open())
            if not row.get("error")
        ]
        document = json.loads((tmp_path / "sweep.json").read_text())
        names = [name for name in own[0] if name != "length measured"]
        assert [[row[name] for name in names] for row in rows] == [[row[name] for name in names] for row in own]
        assert (code, "exit code 2: length 7 is out of range" in error) == ((1, True) if workers == "1" else (0, False))
        assert [one["point"] for one in document["tasks"]] == [{"length": one} for one in values.split(",")]
        assert all(TaskStore(kept).path(one["key"]).exists() == ("error" not in one) for one in document["tasks"])
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / f"kept{n}").rglob("*.json")} for n in (1, 2))
    assert one == two and len(one) == 2
    code, out, error = run("sweep", "--kept", str(kept), "--over", "length=60,200", *TRAIN)
    assert (code, "2 tasks, 2 done before" in error) == (0, True)
    code, out, _ = run("sweep", "--check", "--kept", str(kept), "--over", "length=60,61", *TRAIN)
    assert "2 tasks, 1 of them done" in out


def test_files_go_with_the_task_and_their_content_is_in_its_key(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "sub" / "streams.yaml"
    path.parent.mkdir()
    words = ("send", "sub/streams.yaml", "--probe", "sim://switch?preset=tester", "--count", "{count}")
    keys = []
    for length in (60, 61):
        path.write_text(f"streams: [{{length: {length}, pps: 1000}}]")
        grid = grids.Grid(words, {"count": ("5",)})
        from liteprobe.host.cli.commands import sweep

        (task,) = sweep._asked(grid)
        keys.append(task.key)
        assert task.arguments["words"] == ["send", "streams.yaml", *words[2:-1], "5"]
    assert keys[0] != keys[1]


def test_seeds_of_place_and_route_share_a_netlist_and_a_missed_one_is_a_row(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    toolchain.install(tools)
    (tools / "nextpnr-ecp5").write_text(f"""#!/bin/sh
case "$*" in *--version*) ;; *) touch nextpnr.log ;; esac
{sys.executable} -c 'import sys; sys.argv[0] = "nextpnr-ecp5"; from {toolchain.__name__} import main; main()' "$@" || exit
case "$*" in *"--seed 2"*) sed -i 's/"achieved": [0-9.]*/"achieved": 40.5/g' nextpnr.json; exit 1;; esac
""")
    (tools / "nextpnr-ecp5").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("LITEPROBE_BUILD", str(tmp_path / "build"))
    made = tmp_path / "seeds.csv"
    code, _, error = run(
        *("sweep", "--workers", "2", "--over", "seed=1-2", "--csv", str(made), "build", "i5"),
        *("--preset", "train", "--seed", "{seed}"),
    )
    assert code == 0, error
    first, second = csv.DictReader(made.open())
    assert (first["board"], first["met"], first["why"], second["met"]) == ("colorlight_i5", "yes", "", "no")
    assert "40.5" in second["why"] and second["sys MHz"] == "40.5" and float(first["timebase MHz"]) >= 125
    assert first["netlist"] == second["netlist"] and first["nextpnr-ecp5"] == "0.0"
    assert [path.suffix for path in sorted((tmp_path / "build" / "seeds").iterdir())] == [".json", ""]
