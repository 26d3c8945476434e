# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Every command ends well on Ctrl-C and SIGTERM, whenever they come: from the first millisecond of Python to the report."""

import csv
import json
import os
import random
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from liteprobe.sim.drivers.system import signals

SEED = 20261122
#: Command, how long it takes until it is at work (s), and whether a signal is its usual end.
COMMANDS: dict[str, tuple[Callable[[Path, Path], list[str]], float, bool]] = {
    "help": (lambda own, monitor: ["train", "--help"], 0.3, False),
    "train": (
        lambda own, monitor: ["train", "--probe", f"sim://loopback?build={own}", "--count", "1000", "--repeat", "3000"],
        3.0,
        False,
    ),
    "report": (
        lambda own, monitor: [
            "train",
            "--probe",
            f"sim://loopback?build={own}",
            "--length",
            "60,99",
            "--report",
            "r.html",
        ],
        5.0,
        False,
    ),
    "capture": (
        lambda own, monitor: ["capture", "--probe", f"sim://loopback?preset=monitor&build={monitor}", "-w", "c.pcapng"],
        3.0,
        True,
    ),
    "monitor": (
        lambda own, monitor: ["monitor", "--probe", f"sim://loopback?preset=monitor&build={monitor}"],
        3.0,
        True,
    ),
    "demo": (lambda own, monitor: ["demo", "--repeat", "1", "--out", "demo", "--sim", str(own)], 8.0, False),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_signal_at_any_moment_is_one_line_its_exit_code_and_nothing_left(
    name: str, own: Path, monitor_build: Path, tmp_path: Path
) -> None:
    make, span_s, may_end_well = COMMANDS[name]
    chance = random.Random(f"{name} {SEED}")
    before = signals.shared_memory()
    sent = signals.moment(chance, span_s)  # ./run bench hostile signals: many more.
    ended = signals.run(make(own, monitor_build), sent, tmp_path)
    assert signals.faults(ended, sent, may_end_well) == [], (SEED, sent)
    assert signals.shared_memory() - before == set()


@pytest.mark.parametrize("name", ["train", "capture", "demo"])
def test_a_command_that_is_killed_leaves_no_process(name: str, own: Path, monitor_build: Path, tmp_path: Path) -> None:
    make, span_s, _ = COMMANDS[name]
    ended = signals.run(make(own, monitor_build), signals.Sent(signal.SIGKILL, span_s), tmp_path)
    assert (ended.code, ended.left, ended.err) == (-signal.SIGKILL, [], "")


def test_what_was_measured_before_an_interrupt_is_shown_and_in_the_files(own: Path, tmp_path: Path) -> None:
    lengths = list(range(60, 1500))
    arguments = [
        "train",
        "--probe",
        f"sim://loopback?build={own}",
        "--length",
        ",".join(map(str, lengths)),
        "--count",
        "20",
    ]
    sent = signals.Sent(signal.SIGTERM, 6.0)
    ended = signals.run([*arguments, "--json", "t.json", "--csv", "t.csv"], sent, tmp_path)
    assert signals.faults(ended, sent) == [] and ended.code == 143
    document = json.loads((tmp_path / "t.json").read_text())
    measured = [row["length"] for row in document["rows"]]
    assert measured == lengths[: len(measured)] and 0 < len(measured) < len(lengths) and not document["is_complete"]
    assert [int(row["length"]) for row in csv.DictReader((tmp_path / "t.csv").open())] == measured
    said = f"liteprobe: terminated; {len(measured)} of {len(lengths)} programs were measured"
    assert ended.err in (f"{said}\n", f"{said}, the last one in part\n")
    assert all(f"\n {length:>6} " in ended.out or str(length) in ended.out for length in measured)


def test_trains_that_were_sent_before_an_interrupt_are_measured(own: Path, tmp_path: Path) -> None:
    arguments = [
        "train",
        "--probe",
        f"sim://loopback?build={own}",
        "--length",
        "60",
        "--count",
        "100",
        "--repeat",
        "100000",
    ]
    sent = signals.Sent(signal.SIGINT, 6.0)
    ended = signals.run([*arguments, "--json", "t.json"], sent, tmp_path)
    assert ended.err == "liteprobe: interrupted; 1 of 1 programs were measured, the last one in part\n"
    document = json.loads((tmp_path / "t.json").read_text())
    (row,) = document["rows"]
    assert not document["is_complete"] and not row["complete"]
    assert row["notes"][0] == f"interrupted: {row['sent']} of 10000000 frames were sent" and row["sent"] > 100
    assert (row["received"], row["lost"], row["owd_ns"]["min"], row["owd_ns"]["max"]) == (row["sent"], 0, 8, 8)


def test_a_program_that_a_terminal_has_left_ends_too(own: Path, tmp_path: Path) -> None:
    arguments = COMMANDS["train"][0](own, own)
    ended = signals.run(arguments, signals.Sent(signal.SIGHUP, 4.0), tmp_path)
    assert (ended.code, ended.left) == (129, []) and ended.err.startswith(
        "liteprobe: terminated: its terminal has closed"
    )


# Outputs that can't be written ---------------------------------------------------------------------


def shell(line: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PATH": f"{signals.PROGRAM.parent}:{os.environ['PATH']}"}
    environment.pop("PYTHONUNBUFFERED", None)  # With it, what can't be written is known at once.
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


FULL = "liteprobe: cannot write {} (No space left on device): free space on the disk, or name another file, and run again\n"
ENDS = [
    ("regs list --probe {own} | true", 1, ""),
    ("train --help | true", 1, ""),
    ("completion bash | true", 1, ""),
    ("info --probe {own} >/dev/full", 1, FULL.format("stdout")),
    ("train --help >/dev/full", 1, FULL.format("stdout")),
    ("train --probe {own} --count 2 --csv /dev/full", 1, FULL.format("/dev/full")),
    ("train --probe {own} --count 2 --json /dev/full", 1, FULL.format("/dev/full")),
    ("train --probe {own} --count 2 --report /dev/full", 1, FULL.format("/dev/full")),
    ("info --probe {own} --json /dev/full", 1, FULL.format("/dev/full")),
    (
        "info --probe {own} >&-",
        1,
        "liteprobe: cannot write to stdout, which is closed: send it to a file, or to /dev/null\n",
    ),
    ("info --probe {own} >&- 2>&-", 1, ""),
    ("info --probe {own} <&- >&- --json info.json", 1, None),
    ("trian 2>&-", 2, ""),
    ("trian 2>/dev/full", 2, ""),
]


@pytest.mark.parametrize(("line", "code", "said"), ENDS, ids=[line for line, *_ in ENDS])
def test_an_output_that_cant_be_written_is_one_line(
    line: str, code: int, said: str | None, own: Path, tmp_path: Path
) -> None:
    done = shell(f"liteprobe {line.format(own=f'sim://loopback?build={own}')}", tmp_path)
    assert done.returncode == code and (said is None or done.stderr == said)
