# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the command line as a shell does, sends it a signal at some moment, and says what it left behind."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PROGRAM = Path(sys.executable).parent / "liteprobe"
MARK = "LITEPROBE_SIGNALS"  # In the environment of all that the command starts.
HANG_S = 60.0
LEAVE_S = 5.0  # A simulated probe ends with its input.
START_S = 0.2  # Until its handlers are there, a program is ended by the kernel, with nothing begun and nothing to say.
AT_EXIT_S = 0.5  # All was done when the signal came: Python was ending.
SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Sent:
    """Names the moment in which a signal comes.

    Attributes
    ----------
    after_s : since the start of the command.
    to_group : to all processes that it has started in its group, as a terminal and timeout(1) do.
    again_s : so much later it comes once more.
    """

    number: int
    after_s: float
    to_group: bool = False
    again_s: float | None = None


@dataclass(frozen=True)
class Ended:
    """Holds how a command ended: exit code (negative: the kernel ended it), outputs, command lines of what still ran.

    ``went_on_s``: how long it ran after the signal; None: it had ended before.
    """

    code: int
    out: str
    err: str
    left: list[str]
    went_on_s: float | None


def moment(chance: random.Random, span_s: float) -> Sent:
    """Return a signal at a random moment, half of them in the first tenth of ``span_s``."""
    after_s = chance.uniform(0, chance.choice([span_s / 10, span_s]))
    again_s = chance.uniform(0, 0.5) if chance.random() < 0.25 else None
    return Sent(chance.choice([signal.SIGINT, signal.SIGTERM]), after_s, chance.random() < 0.4, again_s)


def run(arguments: Sequence[str], sent: Sent, folder: Path) -> Ended:
    """Run the command in ``folder``, and send it a signal."""
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        [str(PROGRAM), *arguments],
        cwd=folder,
        env={**os.environ, MARK: mark},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    since_s = None
    for wait_s in (sent.after_s, sent.again_s):
        if wait_s is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(wait_s)
            if _send(process, sent) and since_s is None:
                since_s = time.monotonic()
    try:
        out, err = process.communicate(timeout=HANG_S)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        err += "it hung\n"
    went_on_s = None if since_s is None else time.monotonic() - since_s
    ends = time.monotonic() + LEAVE_S
    while (left := _running(mark)) and time.monotonic() < ends:
        time.sleep(0.05)
    for number in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
    return Ended(process.returncode, out, err, list(left.values()), went_on_s)


def faults(ended: Ended, sent: Sent, may_end_well: bool = False) -> list[str]:
    """Return what is wrong with an end.

    ``may_end_well``: an interrupt is the end that is meant, once the command has begun.
    """
    wrong = [
        f"{ended.err!r} has {word}"
        for word in ("Traceback", "Exception ignored", "leaked", "it hung")
        if word in ended.err
    ]
    wrong += [f"still runs: {command}" for command in ended.left]
    if ended.code == 128 + sent.number:
        # A report that was whole before the signal came was named.
        lines = [line for line in ended.err.splitlines() if not line.startswith("report: ")]
        wrong += [f"{ended.err!r} is not one line"] if len(lines) != 1 else []
    elif ended.code == -sent.number:
        wrong += (
            [f"the kernel ended it after {sent.after_s:.3f} s, {ended.err!r}"]
            if ended.err or sent.after_s > START_S
            else []
        )
    elif not (ended.code == 0 and (may_end_well or ended.went_on_s is None or ended.went_on_s < AT_EXIT_S)):
        wrong.append(f"exit code {ended.code}, {ended.err!r}")
    return wrong


def shared_memory() -> set[str]:
    """Return the names of all shared memory of Python."""
    return {path.name for path in SHARED_MEMORY.glob("psm_*")}


# # #


def _send(process: "subprocess.Popen[str]", sent: Sent) -> bool:
    if process.poll() is not None:
        return False
    with contextlib.suppress(ProcessLookupError):
        (os.killpg if sent.to_group else os.kill)(process.pid, sent.number)
    return True


def _running(mark: str) -> dict[int, str]:
    """Return the processes that have the mark in their environment, and are not zombies."""
    found = {}
    wanted = f"{MARK}={mark}".encode()
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and wanted in (folder / "environ").read_bytes():
                found[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ").strip()
    return found
