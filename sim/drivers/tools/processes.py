# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Runs programs so that nothing of them is left when a test is cut short, and so that they heed Ctrl-C."""

import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from liteprobe.host.base.programs import end_group

Found = TypeVar("Found")
LIMIT_S = 300  # What no test takes on any machine, nor one that stands still for a while.


def pass_on_signals() -> None:
    """Let programs that this one starts heed Ctrl-C and a hang-up, which a shell has jobs in the background ignore."""
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)  # Unlike "ignore", a handler isn't passed on to them.


def run_group(
    command: Sequence[str | Path], cwd: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in a process group of its own, and return its output as text.

    Whatever ends the waiting (a time-out of the test, Ctrl-C) ends the whole group.
    """
    process = subprocess.Popen(
        command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        out, err = (text.decode("utf-8", "replace") for text in process.communicate())
    finally:
        end_group(process)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def is_running(pid: int) -> bool:
    """Return whether a process is there that hasn't ended.

    One that has ended stays in /proc until its parent takes note of it, which the first process of a container may never do.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(what: Callable[[], Found], limit_s: float = LIMIT_S) -> Found:
    """Return what ``what`` returns as soon as it is true; TimeoutError where it isn't for ``limit_s``."""
    ends_s = time.monotonic() + limit_s
    while not (found := what()):
        if time.monotonic() > ends_s:
            raise TimeoutError(f"it wasn't so for {limit_s:.0f} s")
        time.sleep(0.005)
    return found
