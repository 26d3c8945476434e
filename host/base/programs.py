# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs a long program that says on stderr what it is doing: passes that on, with the time, and ends it with all it started.

A line that ends in ``about N s`` says how long that takes: it gets a bar, where a person watches.
"""

import contextlib
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from liteprobe.host.base import interrupt

LOOK_S = 1.0
REMINDER_S = 60.0  # Where nobody watches: a log shows that it goes on.
END_S = 5.0
LAST_LINES = 15
ERASE = "\r\x1b[K"
FORETOLD = re.compile(r"about (\d+) s$")
BAR_CHARACTERS = 20


@dataclass(frozen=True)
class Ended:
    """Holds how a program ended."""

    code: int  # Its exit code; negative: the signal that ended it.
    output: str  # What it printed on stdout, where that was kept.
    tail: str  # The last lines that it printed on stderr.


def module(name: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of this package in this Python, whatever modules lie in the working directory."""
    return [sys.executable, "-P", "-m", name, *arguments]


def run(command: Sequence[str], keep_output: bool = False, passes_on: str = "") -> Ended:
    """Run a program in a process group of its own.

    ``keep_output``: keep what it prints on stdout; else that goes to ours.
    ``passes_on``: what lines of its stderr begin with that a person is to see; "": all.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if keep_output else None,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        tail = _follow(process, passes_on)
        output = process.stdout.read().decode("utf-8", "replace") if process.stdout else ""
        return Ended(process.wait(), output, "\n".join(tail))
    finally:
        end_group(process)
        for pipe in (process.stdout, process.stderr):
            if pipe:
                pipe.close()


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """End a program that leads a process group, and all that it started: asked first, then made to."""
    if process.poll() is not None:
        return
    with interrupt.held():
        for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
            with contextlib.suppress(ProcessLookupError):
                if hasattr(os, "killpg"):
                    os.killpg(process.pid, number)
                else:
                    process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_S)


# # #


def _follow(process: "subprocess.Popen[bytes]", passes_on: str) -> deque[str]:
    """Pass on what the program says until it closes its stderr; return its last lines."""
    assert process.stderr
    tail: deque[str] = deque(maxlen=LAST_LINES)
    shown = _Shown()
    rest = b""
    with selectors.DefaultSelector() as selector, contextlib.closing(shown):
        selector.register(process.stderr, selectors.EVENT_READ)
        while True:
            if not selector.select(LOOK_S):
                shown.go_on()
                continue
            octets = os.read(process.stderr.fileno(), 65536)
            *lines, rest = (rest + octets).split(b"\n")
            for line in (line.decode("utf-8", "replace") for line in lines):
                tail.append(line)
                if line.startswith(passes_on):
                    shown.show(line)
            if not octets:
                return tail


class _Shown:
    """Shows a person on stderr each line as it comes, and under the last one how long it is at that."""

    def __init__(self) -> None:
        self._is_watched = sys.stderr.isatty()
        self._line = ""
        self._since_s = self._reminded_s = time.monotonic()

    def show(self, line: str) -> None:
        self.close()
        print(line, file=sys.stderr, flush=True)
        self._line = line
        self._since_s = self._reminded_s = time.monotonic()

    def go_on(self) -> None:
        now_s = time.monotonic()
        if self._line and self._is_watched:
            print(f"{ERASE}  {_state(self._line, now_s - self._since_s)}", end="", file=sys.stderr, flush=True)
        elif self._line and now_s >= self._reminded_s + REMINDER_S:
            print(f"  {now_s - self._since_s:.0f} s: {self._line}", file=sys.stderr, flush=True)
            self._reminded_s = now_s

    def close(self) -> None:
        """Take away what is shown while nothing comes."""
        if self._line and self._is_watched:
            print(ERASE, end="", file=sys.stderr, flush=True)


def _state(line: str, seconds: float) -> str:
    """Return how far it is with what a line has announced, so many seconds after it."""
    found = FORETOLD.search(line)
    if not found:
        return f"{seconds:.0f} s"
    due_s = int(found[1])
    if seconds > due_s:
        return f"{seconds:.0f} s, {seconds - due_s:.0f} s longer than foretold"
    full = int(BAR_CHARACTERS * seconds / max(due_s, 1))
    return f"[{'#' * full}{'-' * (BAR_CHARACTERS - full)}] {seconds:.0f} of about {due_s} s"
