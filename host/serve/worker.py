# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Keeps a probe in a thread of its own for a server: looks at it, runs one thing at a time, and knows who may start and stop.

All that is done with the probe is done in that thread: a run, and between its looks what others ask for meanwhile.
"""

import contextlib
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self, TypeVar

from liteprobe.host.base.errors import BusyError, LeaseLostError, ProbeError, UsageError
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.probe import Probe

T = TypeVar("T")
Line = dict[str, Any]
Show = Callable[[Line], None]
Act = Callable[[Probe, Show], Any]

LOOK_S = 0.1  # From a look that is passed on to the next, at least, as of ``--jsonl``.
STATUS_S = 1.0  # From a look at the probe itself to the next.
AGAIN_S = 2.0  # From a try to reach a lost probe to the next.
STALE_S = 3.0  # A probe of which nothing was heard for so long looks lost.
LEAST_S, USUAL_S, MOST_S = 5.0, 30.0, 3600.0  # For how long an owner may be silent.
NAME_MOST = 64  # Characters.


# Who may start and stop ----------------------------------------------------------------------------


class OwnedError(BusyError):
    """Somebody else owns the server's probe; the message says who, and since when."""


@dataclass
class Owner:
    """One who may start and stop: for as long as it is heard of every ``patience_s``."""

    name: str
    since: datetime
    key: str  # That its requests have.
    patience_s: float
    heard_s: float
    claim: int  # Number of its claim: later ones have greater numbers, those of a server that was started later, too.
    present: int = 0  # Connections that are open for it: while there is one it needs no request.


class Owners:
    """Gives one client at a time the right to start and stop.

    Parameters
    ----------
    ended : callable
        Called, with the name, when an owner has gone or let go: what it runs ends then.
    clock : callable
        Returns the time (s).
    """

    def __init__(self, ended: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._ended, self._clock = ended, clock
        self._lock = threading.RLock()
        self._owner: Owner | None = None
        self.claims = time.time_ns() // 10**6  # Number of the last claim: a reader of old news knows them for old.

    def claim(self, name: str, patience_s: float = USUAL_S) -> Owner:
        """Make somebody the owner, and return it with its key.

        Raises OwnedError where another is, UsageError for a name or a time that can't be.
        """
        said = " ".join(name.split())
        if not said or len(said) > NAME_MOST or not said.isprintable():
            raise UsageError(f"a name has 1 to {NAME_MOST} characters that can be printed: give one, like 'Ann, lab 3'")
        if not LEAST_S <= patience_s <= MOST_S:
            raise UsageError(f"{patience_s:g} s is out of range: give {LEAST_S:g} to {MOST_S:g}")
        with self._lock:
            if (owner := self.holder()) is not None:
                raise _owned(owner)
            self.claims += 1
            key = secrets.token_urlsafe(18)
            self._owner = Owner(said, datetime.now(UTC), key, patience_s, self._clock(), self.claims)
            return self._owner

    def holder(self) -> Owner | None:
        """Return who is the owner; one that was silent for too long is none any more."""
        with self._lock:
            owner = self._owner
            if owner and not owner.present and self._clock() - owner.heard_s > owner.patience_s:
                self._end(owner)
                owner = None
            return owner

    def check(self, key: str | None) -> Owner:
        """Return the owner whose key this is, heard of now.

        Raises OwnedError where another is the owner, UsageError where nobody is.
        """
        with self._lock:
            owner = self.holder()
            if owner is None:
                raise UsageError("nobody owns the probe: claim it first, by a name")
            if not secrets.compare_digest((key or "").encode(), owner.key.encode()):
                raise _owned(owner)
            owner.heard_s = self._clock()
            return owner

    def enter(self, key: str | None) -> bool:
        """Note that a connection of the owner is open; return whether it is the owner's."""
        with self._lock, contextlib.suppress(ProbeError):
            self.check(key).present += 1
            return True
        return False

    def leave(self, key: str | None) -> None:
        """Note that a connection of the owner has ended."""
        with self._lock, contextlib.suppress(ProbeError):
            owner = self.check(key)
            owner.present = max(owner.present - 1, 0)

    def release(self, key: str | None) -> None:
        """Let go; raises as `check` does."""
        with self._lock:
            self._end(self.check(key))

    # # #

    def _end(self, owner: Owner) -> None:
        self._owner = None
        self._ended(owner.name)


def _owned(owner: Owner) -> OwnedError:
    return OwnedError(
        f"'{owner.name}' owns the probe since {owner.since:%Y-%m-%d %H:%M:%S} UTC: watch, or wait until it is given back"
    )


# What runs ------------------------------------------------------------------------------------------


@dataclass
class ProbeRun:
    """Something that runs on the probe, or has run."""

    number: str  # Unguessable.
    kind: str
    name: str
    owner: str
    act: Act = field(repr=False)  # Of the probe and of what shows a line; returns the result.
    #: Called in the thread at the end: writes files, and returns the result as ``--jsonl`` has it.
    finish: Callable[["ProbeRun"], Line] = field(default=lambda run: {}, repr=False)
    state: str = "waiting"  # ``running``, ``stopping``, ``ended``, ``failed``.
    since: datetime = field(default_factory=lambda: datetime.now(UTC))
    end: str = ""  # Why it has ended.
    result: Any = None
    last: Line = field(default_factory=dict)  # The last look.

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.state in ("ended", "failed")

    def document(self) -> Line:
        """Return what it is, as plain data."""
        names = ("number", "kind", "name", "owner", "state", "end")
        return {name: getattr(self, name) for name in names} | {"since": self.since.isoformat(timespec="seconds")}


class ProbeWorker:
    """Has the probe while the ``with`` block runs: one that is lost is opened again.

    Parameters
    ----------
    open_probe : callable
        Opens it; called in the thread.
    tell : callable
        Given each line, in the thread: looks and results, as ``--jsonl`` has them, with the number of their run.
    """

    def __init__(self, open_probe: Callable[[], Probe], tell: Callable[[Line], None] = lambda line: None) -> None:
        self._open, self._tell = open_probe, tell
        self._wake = threading.Condition()
        self._calls: deque[Callable[[Probe], None]] = deque()
        self._waiting: deque[Future[Any]] = deque()
        self._is_ended = False
        self._why = ""  # Why the present run is to stop.
        self._next: ProbeRun | None = None
        self.run: ProbeRun | None = None  # That runs, or ran last.
        self._status: Line = {}
        self._state, self._error = "opening", ""
        self._heard_s = time.monotonic()
        self._status_due_s = self._look_due_s = 0.0
        self._thread = threading.Thread(target=self._serve, name="probe", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._wake:
            self._is_ended = True
            self._why = self._why or "the server ended"
            self._wake.notify()
        self._thread.join(30.0)

    def start(self, run: ProbeRun) -> None:
        """Start something; raises BusyError while something runs, ProbeError while the probe is lost."""
        with self._wake:
            if self.is_busy:
                assert self.run
                raise BusyError(f"'{self.run.name}' of {self.run.owner} runs: stop it, or wait until it ends")
            if self._state != "here":
                raise ProbeError(f"the probe is {self._state}: {self._error or 'wait until it is there'}")
            self._why = ""
            self.run = self._next = run
            self._wake.notify()

    def stop(self, why: str = "stopped") -> bool:
        """Have what runs stop; return whether anything ran. Its result comes as always."""
        with self._wake:
            if not self.is_busy:
                return False
            assert self.run
            self._why, self.run.state = self._why or why, "stopping"
            return True

    def call(self, act: Callable[[Probe], T]) -> "Future[T]":
        """Have something short done with the probe: now, or between two looks of what runs."""
        future: Future[T] = Future()

        def do(probe: Probe) -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(act(probe))
            except Exception as error:
                future.set_exception(error)

        with self._wake:
            if self._state != "here":
                future.set_exception(
                    ProbeError(f"the probe is {self._state}: {self._error or 'wait until it is there'}")
                )
                return future
            self._calls.append(do)
            self._waiting.append(future)
            self._wake.notify()
        return future

    @property
    def is_busy(self) -> bool:
        """Whether something runs, or is about to."""
        return self.run is not None and not self.run.is_over

    def status(self) -> Line:
        """Return what is known of the probe, and how old that is (s): ``here``, ``stale``, ``lost`` or ``opening``."""
        age_s = time.monotonic() - self._heard_s
        state = "stale" if self._state == "here" and age_s > STALE_S else self._state
        return {**self._status, "state": state, "age_s": round(age_s, 1), "error": self._error}

    # # #

    def _serve(self) -> None:
        while not self._is_ended:
            try:
                with self._open() as probe:
                    self._heard(probe, first=True)
                    self._attend(probe)
            except Exception as error:  # A fault of a run is the run's: this is of the probe, or of its link.
                self._lose(str(error) if isinstance(error, ProbeError | OSError) else repr(error))
            with self._wake:
                if not self._is_ended:
                    self._wake.wait(AGAIN_S)

    def _attend(self, probe: Probe) -> None:
        """Do what is asked for, and look at the probe now and then, until the end or until the probe is lost."""
        while not self._is_ended:
            with self._wake:
                if not self._calls and not self._next and not self._is_ended:
                    self._wake.wait(max(self._status_due_s - time.monotonic(), 0.0))
                run, self._next = self._next, None
            if run:
                self._run(probe, run)
            self._between(probe)

    def _between(self, probe: Probe) -> None:
        """Do what others ask for, and look at the probe where it is time."""
        while self._calls:
            self._calls.popleft()(probe)
            self._waiting.popleft()
        if time.monotonic() >= self._status_due_s:
            self._heard(probe)

    def _heard(self, probe: Probe, first: bool = False) -> None:
        found = status_of(probe)
        facts = self._status.get("facts", {})
        if first:
            facts = {name: value for name, value in probe.info().items() if name not in ("lease", "now_ns")}
        if first:
            probe.lease.release()
        with self._wake:
            self._status = {**found, "facts": facts}
            self._state, self._error, self._heard_s = "here", "", time.monotonic()
            self._status_due_s = self._heard_s + STATUS_S

    def _lose(self, words: str) -> None:
        with self._wake:
            self._state, self._error = "lost", words
            run, self._next = self._next, None
            waiting = list(self._waiting)
            self._calls.clear()
            self._waiting.clear()
        for future in waiting:
            if not future.done():
                with contextlib.suppress(Exception):
                    future.set_exception(ProbeError(words))
        if run:
            self._over(run, "failed", words)

    def _run(self, probe: Probe, run: ProbeRun) -> None:
        run.state, self._look_due_s = "running", 0.0

        def show(line: Line) -> None:
            now_s = self._heard_s = time.monotonic()
            run.last = line
            if now_s >= self._look_due_s:
                self._look_due_s = now_s + LOOK_S
                self._tell({"kind": "look", "run": run.number, **line})
            self._between(probe)
            if self._why:
                raise Interrupted

        state, end = "ended", ""
        try:
            run.result = run.act(probe, show)
            end = str(getattr(run.result, "end", "")) or "done"
            if end == "interrupted" and self._why:
                run.result, end = _stopped(run.result), self._why
        except Interrupted as stop:
            run.result = _stopped(stop.results[0]) if stop.results else None
            end = self._why
        except (ProbeError, OSError) as error:
            state, end = "failed", str(error)
        except Exception as error:  # A fault of this program must not end the server.
            state, end = "failed", f"{error!r}: report this with what was asked for"
        with contextlib.suppress(ProbeError):
            probe.lease.release()
        run.end, content = end, {}
        try:
            content = run.finish(run)
        except (ProbeError, OSError) as error:
            end = f"{end}; its files could not be written: {error}"
        self._over(run, state, end, content)
        self._heard(probe)

    def _over(self, run: ProbeRun, state: str, end: str, content: Line | None = None) -> None:
        with self._wake:
            run.end, run.state = end, state
        self._tell({"kind": "result", "run": run.number, "state": state, "why": end, **(content or {})})


def _stopped(result: Any) -> Any:
    """Return a result that says that it was stopped, as it was meant to be."""
    return replace(result, end="stopped") if getattr(result, "end", "") == "interrupted" else result


def status_of(probe: Probe) -> Line:
    """Return how a probe is, by reads alone: no lease is taken for it."""
    state, bound_ns = probe.timebase.trust()
    return {
        "url": probe.url,
        "parts": [str(part.name).lower() for part in probe.parts],
        "lease": probe.lease.holder(),
        "clock": {"state": state, "bound_ns": bound_ns},
        "ports": [
            {"port": port, "is_up": is_up}
            for port in range(probe.port_count)
            if (is_up := _link(probe, port)) is not None
        ],
    }


def _link(probe: Probe, port: int) -> bool | None:
    """Return whether a port has a link, as its transmit path or, where it only receives, its receive path has it; None: neither."""
    names = [f"port{port}_{way}_link_up" for way in ("tx", "rx")]
    found = [name for name in names if name in probe.registers.names]
    return bool(probe.registers.read(found[0])) if found else None


def busy_or(error: BaseException) -> int:
    """Return the HTTP status of an error of the library: 400 what can't be, 409 another has it, 503 no probe, 502 it failed."""
    if isinstance(error, BusyError | LeaseLostError):
        return 409
    if isinstance(error, UsageError):
        return 400
    return 503 if getattr(error, "exit_code", 1) == 3 else 502
