# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Results go to files in the same forms from every command: a document, a line a look, a table with commas."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from liteprobe.host.cli import main as cli

Run = Callable[..., tuple[int, str, str]]
DATA = ("json", "jsonl", "csv")
OF_A_RUN = {"created", "command", "kind"}  # What differs from run to run, and what only lines have.


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def plain(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in OF_A_RUN}


@pytest.mark.parametrize(
    ("line", "rows", "looks"),
    [
        ("train --length 60,1514 --count 5", 2, 2),
        ("send --pps 10k --count 50 --length 64", 1, 1),
        ("calibrate --count 5 --repeat 2 --length 60,64,1514", 3, 3),
        ("replay office.pcapng --check", 1, 0),
        ("capture --read office.blocks -w c.pcapng", 1, 1),
    ],
)
def test_the_last_line_is_the_document_and_the_table_has_a_line_a_part(
    run: Run, models: None, line: str, rows: int, looks: int
) -> None:
    words = line.split()
    code, out, err = run(*words, "--json", "a.json", "--jsonl", "a.jsonl", "--csv", "a.csv")
    assert code == 0, err
    document = json.loads(Path("a.json").read_text())
    *before, last = map(json.loads, Path("a.jsonl").read_text().splitlines())
    assert len(before) >= looks and {one["kind"] for one in before} <= {"look"} and last["kind"] == "result"
    assert plain(last) == plain(document)
    assert len(table(Path("a.csv").read_text())) == rows
    for name in DATA:  # Each by itself to stdout, in the place of the table.
        if not line.startswith("capture"):
            code, out, _ = run(*words, f"--{name}")
            shown = table(out) if name == "csv" else [*map(json.loads, out.splitlines() if name == "jsonl" else [out])]
            assert code == 0 and len(shown) >= 1


def test_a_stream_has_the_same_figures_in_its_line_as_in_the_document(run: Run, models: None) -> None:
    assert run("send", "--pps", "10k", "--count", "50", "--length", "64", "--json", "a.json", "--csv", "a.csv")[0] == 0
    (stream,) = json.loads(Path("a.json").read_text())["streams"]
    (row,) = table(Path("a.csv").read_text())
    assert [row[name] for name in ("name", "sent", "received", "lost")] == ["stream", "50", "50", "0"]
    assert (float(row["mean"]), stream["sent"]) == (37 * 8, 50)


@pytest.mark.parametrize("name", ["train", "send", "replay", "sets", "emulate", "owd", "calibrate", "capture"])
def test_every_command_with_results_has_the_same_options(run: Run, name: str) -> None:
    code, out, _ = run(name, "--help")
    assert code == 0 and all(f"--{one} [FILE]" in out for one in DATA)
    assert ("--report FILE.html" in out) == (name not in ("calibrate", "capture"))
    words = {"replay": ["x"], "owd": ["--from", "sim://pair"]}.get(name, [])
    code, _, err = run(name, *words, "--json", "--csv")
    assert code == 2 and "--json and --csv can't both go to stdout: give one of them a file" in err


@pytest.mark.parametrize("line", ["monitor --jsonl", "clock status --jsonl"])
def test_commands_that_only_look_take_jsonl_for_their_lines(line: str) -> None:
    assert str(cli.make_parser().parse_args(line.split()).json) == "-"
