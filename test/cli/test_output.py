# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Checks what commands write: line by line, and at their end, where each output ends by itself."""

import argparse
import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from liteprobe.host.base import interrupt
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.base.output import STDOUT, Lines, OutputError, outputs, write_text
from liteprobe.host.cli import results
from liteprobe.host.cli.main import said_of
from liteprobe.host.cli.results import publish
from liteprobe.host.suites.sweep import Sweep
from liteprobe.sim.drivers.tools.full_disk import room_for

DOCUMENTS = [{"a": 1}, {"b": [2.5, None]}]
TEXTS = ['{"a": 1}\n', '{"b": [2.5, null]}\n']


def test_lines_are_in_the_file_as_soon_as_they_are_written(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    lines = Lines(file)
    for number, document in enumerate(DOCUMENTS, 1):
        lines.write(document)
        assert file.read_text() == "".join(TEXTS[:number])
    lines.close()
    with pytest.raises(ValueError, match="closed"):
        lines.write({})


def test_lines_on_stdout_leave_it_open_and_make_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = Lines(STDOUT)
    for document in DOCUMENTS:
        lines.write(document)
    lines.close()
    assert capsys.readouterr().out == "".join(TEXTS)
    assert not sys.stdout.closed and not os.listdir(tmp_path)


# Several outputs ----------------------------------------------------------------------------------


class Full:
    """A stream that takes so many octets, and then none: its disk is full, or its reader has gone; the last may fail to close."""

    def __init__(self, room: int, number: int = errno.ENOSPC) -> None:
        self.room, self.number = room, number

    def write(self, text: str) -> int:
        self.room -= len(text)
        if self.room < 0:
            raise OSError(self.number, os.strerror(self.number))
        return len(text)

    def flush(self) -> None:
        self.write("")


def published(folder: Path, json: str, report: str, cause: BaseException | None = None) -> None:
    args = argparse.Namespace(json=Path(json), report=Path(report))
    publish(args, "a table", {"a": 1}, lambda path, content: write_text(path, "a page"), cause)


@pytest.mark.parametrize("is_json_full", [False, True])
@pytest.mark.parametrize("is_report_full", [False, True])
@pytest.mark.parametrize("fails", [None, errno.ENOSPC, errno.EPIPE, errno.EIO])
def test_an_output_that_cant_be_written_keeps_no_other_one_from_it(
    is_json_full: bool, is_report_full: bool, fails: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    json, report = tmp_path / "j", tmp_path / "r"
    if fails:
        monkeypatch.setattr(sys, "stdout", Full(2, fails))
    wanted = ["stdout"] * (fails not in (None, errno.EPIPE)) + ["/dev/full"] * (is_json_full or is_report_full)
    raised: BaseException | None = None
    try:
        published(tmp_path, "/dev/full" if is_json_full else str(json), "/dev/full" if is_report_full else str(report))
    except (OutputError, BrokenPipeError) as error:
        raised = error
    assert (json.exists(), report.exists()) == (not is_json_full, not is_report_full)
    if wanted:
        lines = str(raised).splitlines()
        assert isinstance(raised, OutputError) and raised.exit_code == 1 and len(lines) == len(wanted)
        assert all(name in line or fails == errno.EIO for name, line in zip(wanted, lines, strict=True))
    else:
        assert isinstance(raised, BrokenPipeError) == (fails == errno.EPIPE)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_results_are_written_waits_until_all_are(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interrupt, "PATIENCE_S", 600)  # The later ones are the same, however slow this machine is.
    monkeypatch.setattr(interrupt._State, "number", 0)
    with pytest.raises(Interrupted, match="all was measured and written") as raised, outputs() as out:
        for name in "abc":
            path = tmp_path / name
            out.write(path, lambda path=path: (write_text(path, "whole"), os.kill(os.getpid(), number)))
    assert raised.value.exit_code == 128 + number
    assert [(tmp_path / name).read_text() for name in "abc"] == ["whole"] * 3


def test_behind_a_signal_the_next_one_ends_the_writing_and_leaves_no_half_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interrupt._State, "number", 0)
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(Interrupted(signal.SIGTERM)))
    first = Interrupted(signal.SIGINT)
    with pytest.raises(Interrupted, match="terminated"):
        published(tmp_path, str(tmp_path / "j"), str(tmp_path / "r"), first)
    assert not os.listdir(tmp_path)


def test_what_ended_a_measurement_is_said_with_what_could_not_be_written(tmp_path: Path) -> None:
    end = Interrupted(signal.SIGTERM, "2 of 3 programs were measured")
    published(tmp_path, "/dev/full", str(tmp_path / "r"), end)
    assert said_of(end) == (
        "terminated; 2 of 3 programs were measured; cannot write /dev/full (No space left on device): free space on the disk, "
        "or name another file, and run again"
    )
    assert end.exit_code == 143 and (tmp_path / "r").read_text() == "a page"


def test_a_file_that_was_there_stays_where_the_new_one_does_not_fit(tmp_path: Path) -> None:
    (tmp_path / "j").write_text("before")
    with room_for(100), pytest.raises(OutputError, match="cannot write .*/j \\(File too large\\)"), outputs() as out:
        out.write(tmp_path / "j", lambda: write_text(tmp_path / "j", "x" * 1000))
    assert (tmp_path / "j").read_text() == "before" and os.listdir(tmp_path) == ["j"]


def test_results_that_grow_are_tried_again_at_the_end_and_shown_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The disk is full while trains are sent, and has room at the end."""
    monkeypatch.setattr(results, "AGAIN_S", 0.0)
    args = argparse.Namespace(json=tmp_path / "t.json", csv=tmp_path / "t.csv", report=None)
    written = results.Results(args, 2, lambda sweeps: print("shown", len(sweeps[0].rows)), lambda *_: None)
    rows = [{"length": 60}, {"length": 61}]
    with written.written():
        with room_for(50):
            written.take([Sweep("a", "sim://a", {}, [], rows[:1])])
        assert os.listdir(tmp_path) == ["t.csv"]
        written.take([Sweep("a", "sim://a", {}, [], rows)])
    assert capsys.readouterr().out == "shown 2\n" and (tmp_path / "t.csv").read_text().split() == [
        "name,length",
        "a,60",
        "a,61",
    ]
    assert sorted(os.listdir(tmp_path)) == ["t.csv", "t.json"]


def test_programs_that_name_one_file_go_in_turn_and_one_that_is_killed_holds_up_none(tmp_path: Path) -> None:
    code = """
import os, sys
from pathlib import Path
from liteprobe.host.base.output import in_turn
folder = Path(sys.argv[1])
with in_turn(folder / "lock", lambda: print("waits", file=sys.stderr)):
    for _ in range(200):  # What two at once would lose: one reads what the other one has not yet written.
        count = int((folder / "count").read_text())
        (folder / "count").write_text(str(count + 1))
    if sys.argv[2:]:
        print("holds", flush=True)
        sys.stdin.read()
"""
    (tmp_path / "count").write_text("0")
    command = [sys.executable, "-c", code, str(tmp_path)]
    first = subprocess.Popen([*command, "stay"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert first.stdout and first.stdout.readline() == "holds\n"
    rest = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for program in rest:  # All of them have said so, and have counted nothing.
        assert program.stderr and program.stderr.readline() == "waits\n"
    assert (tmp_path / "count").read_text() == "200"
    first.kill()
    assert [program.wait() for program in rest] == [0, 0, 0]
    assert (tmp_path / "count").read_text() == "800"
    first.communicate()
    for program in rest:
        program.communicate()
