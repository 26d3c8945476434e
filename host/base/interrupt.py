# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Turns Ctrl-C, SIGTERM and SIGHUP into one exception, raised where it is safe, so that every program ends in the same way.

It is raised from the signal's handler, but never while a module is imported: a C extension swallows an exception then, the
start of a class turns it into another. Then, and when Python had to ignore the exception (in a destructor, in the callback of
a weak reference), it is raised again soon after.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

# On Windows Ctrl-C raises KeyboardInterrupt, as Python has it, and no more.
IS_POSIX = hasattr(signal, "pthread_sigmask")
WORDS_OF = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "terminated: its terminal has closed"}
WORDS = {getattr(signal, name): words for name, words in WORDS_OF.items() if hasattr(signal, name)}
SIGNALS = tuple(WORDS)
AGAIN_S = 0.01
WATCH_S = 0.5  # From one look at the process that started this one to the next.
PATIENCE_S = 1.0  # Within it, a second signal is taken for the first: timeout(1) and terminals often send two.
IMPORTER = "<frozen importlib"


class Interrupted(KeyboardInterrupt):
    """A signal asked the program to end; ``remains``: in words, what there is of what was measured.

    ``exit_code``: 128 and the number of the signal, as a shell has it: 130 for Ctrl-C, 143 for SIGTERM.
    ``results``: what the programs that were cut short had measured (TrainResult).
    """

    def __init__(self, number: int = signal.SIGINT, remains: str = "") -> None:
        words = WORDS[signal.Signals(number)]
        super().__init__(f"{words}; {remains}" if remains else words)
        self.exit_code = 128 + number
        self.results: list[Any] = []


def is_ctrl_c(end: KeyboardInterrupt) -> bool:
    """Return whether Ctrl-C ended the program, which is the end that is meant where nothing else would; a SIGTERM never is."""
    return not isinstance(end, Interrupted) or end.exit_code == Interrupted().exit_code


class StopRequest:
    """A request to end, as of a signal, while a `stop_requests` block runs."""

    def __init__(self) -> None:
        self.number = 0

    @property
    def is_made(self) -> bool:
        return self.number != 0


class _State:
    """State of the handlers; there is one, because signals belong to the process."""

    is_installed = False
    number = 0  # Of the last signal.
    since_s = -PATIENCE_S
    request: StopRequest | None = None
    held = 0  # Blocks of `held` that run.


def install() -> None:
    """Have SIGINT, SIGTERM and SIGHUP raise Interrupted in the main thread, whatever was blocked before.

    A signal that is ignored stays so: ``nohup`` and shells ask for that.
    """
    if _State.is_installed or not IS_POSIX:
        return
    _State.is_installed = True
    signal.signal(signal.SIGALRM, _handle_again)
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _handle)
    usual = sys.unraisablehook

    def hook(ignored: Any) -> None:
        if issubclass(ignored.exc_type, Interrupted):
            _raise_later()
        else:
            usual(ignored)

    sys.unraisablehook = hook
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def ignore() -> None:
    """Ignore all signals from now on: the program is at its end."""
    if IS_POSIX:
        signal.setitimer(signal.ITIMER_REAL, 0)
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def interrupt_of(error: BaseException) -> Interrupted | None:
    """Return the Interrupted that somebody's code made ``error`` of, or None."""
    before: BaseException | None = error
    while before is not None and not isinstance(before, Interrupted):
        before = before.__cause__ or before.__context__
    return before


def pass_on() -> None:
    """Raise Interrupted where a signal has come: what fails then fails because a worker got the signal, too."""
    if _State.number:
        raise Interrupted(_State.number)


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Make the first signal a request, so that nothing is cut in the middle; the next one raises Interrupted as always.

    In another thread than the main one, which signals are of, none is made.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {} if _State.is_installed else {number: signal.signal(number, _handle) for number in SIGNALS}
    _State.request = request
    try:
        yield request
    finally:
        _State.request = None
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held() -> Iterator[None]:
    """Hold signals back while the body runs; what starts here never gets those of the terminal."""
    if not IS_POSIX:
        yield
        return
    _State.held += 1  # The mask is the main thread's: another thread takes the signal, and its handler still runs here.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _State.held -= 1


def start_worker(process: "BaseProcess") -> None:
    """Start a process that Ctrl-C doesn't reach from its first moment: the program that started it ends it.

    What runs in it calls `be_worker` first. It doesn't run the script that started it, as Python would have it: a script needs
    no ``if __name__ == "__main__"``, unless it hands over something of its own making.
    """
    from multiprocessing import resource_tracker
    from pickle import PicklingError

    resource_tracker.ensure_running()  # Else the start of the process starts it, which lets signals through.
    with held():
        try:
            with _without_script():
                process.start()
        except (AttributeError, PicklingError):  # It is of the script.
            process.start()


@contextmanager
def _without_script() -> Iterator[None]:
    """Let the program have no file while the body runs, so that no process that is started runs it, too."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def be_worker() -> None:
    """Be a process of `start_worker`: deaf to what the whole group gets, ended by a SIGTERM of its own at once."""
    if not IS_POSIX:
        return
    os.setpgrp()  # timeout(1) and shells send SIGTERM to the group, while the parent still wants what has come.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def end_with(parent: int) -> None:
    """Have this process get a SIGTERM once the one that started it, of the number ``parent``, has ended, however that was."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_S)
        os.kill(os.getpid(), signal.SIGTERM)

    if IS_POSIX:
        threading.Thread(target=watch, daemon=True).start()


# # #


def _handle(number: int, frame: FrameType | None) -> None:
    now_s = time.monotonic()
    if now_s < _State.since_s + PATIENCE_S and _State.number:
        return
    _State.number, _State.since_s = number, now_s
    if _State.request is not None:
        _State.request.number = number
        _State.request = None
        return
    _raise(frame)


def _handle_again(_: int, frame: FrameType | None) -> None:
    _raise(frame)


def _raise(frame: FrameType | None) -> None:
    if _State.held or _is_delicate(frame):
        _raise_later()
    else:
        raise Interrupted(_State.number)


def _is_delicate(frame: FrameType | None) -> bool:
    """Return whether an exception at ``frame`` would be lost, or turned into another: while a module is imported."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(IMPORTER):
            return True
        frame = frame.f_back
    return False


def _raise_later() -> None:
    signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
