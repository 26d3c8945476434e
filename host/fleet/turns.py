# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Lets several runs go on side by side, one at a time: each has the probes to itself until it lets time pass.

A run of the engine (`PortRun`) is written as if it were alone, and what fails in it ends it alone. So a run for each pair of
probes, in turns, is an experiment in which the rest goes on. Stands alone: threads of which one runs at a time.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from liteprobe.host.base.interrupt import Interrupted, held

Sleep = Callable[[float], None]
Act = Callable[[Sleep], None]
SIGNAL_BASE = 128  # Of the exit code of a program that a signal ended.


class _Turn(threading.Thread):
    """A run, which waits for its turn."""

    def __init__(self, number: int, act: Act, wait: Sleep) -> None:
        super().__init__(name=f"turn {number}", daemon=True)
        self._act, self._wait = act, wait
        self._go, self._parked = threading.Semaphore(0), threading.Event()
        self._parked.set()
        self._is_ending = False
        self.due_s, self.is_over = 0.0, False
        self.end: BaseException | None = None  # What it is to be ended with.
        self.error: BaseException | None = None  # What ended it.

    def run(self) -> None:
        """Do all of it, in turns."""
        self._go.acquire()
        try:
            self._act(self._sleep)
        except BaseException as error:
            self.error = error
        self.is_over = True
        self._parked.set()

    def take(self) -> None:
        """Give it its turn, until it lets time pass or is over."""
        with held():  # A signal comes before it has its turn, or while it has it.
            self._parked.clear()
            self._go.release()
        self.finish()

    def finish(self) -> None:
        """Wait until it has no turn."""
        self._parked.wait()

    def _sleep(self, seconds: float) -> None:
        if self._is_ending:
            self._wait(seconds)  # Nobody else goes on any more.
            return
        self.due_s += max(seconds, 0.0)
        self._parked.set()
        self._go.acquire()
        if self.end is not None:
            self._is_ending = True
            raise self.end


def in_turns(acts: Sequence[Act], wait: Sleep) -> None:
    """Run all of ``acts`` until each is over.

    A signal ends all: each run gets an Interrupted of its own where it lets time pass, and the signal is raised when all are
    over. What else a run raises is raised when all are over.

    Parameters
    ----------
    acts : each is called with what lets seconds of the probes' time pass.
    wait : lets so many seconds pass for all.
    """
    turns = [_Turn(number, act, wait) for number, act in enumerate(acts)]
    now_s = 0.0
    for one in turns:
        one.start()
    left = list(turns)
    try:
        while left:
            one = min(left, key=lambda turn: turn.due_s)
            if one.due_s > now_s:
                wait(one.due_s - now_s)
                now_s = one.due_s
            one.take()
            left = [turn for turn in turns if not turn.is_over]
    except BaseException as end:
        for one in turns:
            one.finish()
        for one in turns:
            if not one.is_over:
                one.end = Interrupted(end.exit_code - SIGNAL_BASE) if isinstance(end, Interrupted) else Interrupted()
                one.take()
        raise
    for one in turns:
        if one.error is not None:
            raise one.error


class InTurns:
    """A probe whose waits let others go on; ``end`` is called when a signal has come: what is on its way is still taken."""

    def __init__(self, probe: Any, sleep: Sleep, end: Callable[[], None]) -> None:
        self._probe, self._sleep, self._end = probe, sleep, end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._probe, name)

    def wait(self, seconds: float) -> None:
        """Let time pass for all."""
        try:
            self._sleep(seconds)
        except Interrupted:
            self._end()
