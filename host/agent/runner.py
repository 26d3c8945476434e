# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the callbacks of a device, one at a time, once for a request that comes twice, and goes on without one that hangs."""

import contextlib
import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue

from liteprobe.host.agent.items import Item
from liteprobe.host.agent.message import AgentRequest, AgentStatus, MessageError, MessageKind, Scalar, Times
from liteprobe.host.base.errors import ProbeError

SESSIONS_MOST = 64  # More than jobs, so one that waits for nothing can always be forgotten.


@dataclass
class ControllerSession:
    """Remembers the last request of a controller."""

    number: int = 0  # Of its last request.
    frames: list[bytes] = field(default_factory=list)  # The last request.
    identity: bytes = b""  # Where its answer goes.
    answer: list[bytes] = field(default_factory=list)  # The answer; empty while it is under way.


class Sessions:
    """Remembers the last request of the controllers that asked last."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[int, ControllerSession] = OrderedDict()
        self.duplicates = 0  # Requests that came again.

    def take(self, request: AgentRequest, frames: Sequence[bytes], identity: bytes) -> list[bytes] | None:
        """Return None for a request that is new, else what is to be sent again: nothing while it is under way.

        Raises MessageError when its number was used before for something else.
        """
        known = self._sessions.get(request.session)
        if known is None:
            if len(self._sessions) >= SESSIONS_MOST:
                del self._sessions[next(number for number, one in self._sessions.items() if one.answer)]
            known = ControllerSession()
        elif request.number == known.number and list(frames) == known.frames:
            self.duplicates += 1
            known.identity = identity
            return known.answer
        elif request.number <= known.number:
            raise MessageError(
                f"number {request.number} was used before: the next one is above {known.number}", AgentStatus.NUMBER
            )
        elif not known.answer:
            raise MessageError(f"request {known.number} is not answered yet: wait for it", AgentStatus.NUMBER)
        self._sessions[request.session] = ControllerSession(request.number, list(frames), identity)
        self._sessions.move_to_end(request.session)
        return None

    def answer(self, session: int, frames: list[bytes]) -> bytes:
        """Keep the answer to the last request of a session, and return where it goes."""
        known = self._sessions[session]
        known.answer = frames
        return known.identity


JOBS_MOST = 32


@dataclass
class CallbackJob:
    """Holds a callback that is to be run."""

    item: Item
    request: AgentRequest | None  # Who asks; None: it is read to be pushed.
    deadline_ns: int  # Monotonic time at which it is given up.
    status: AgentStatus = AgentStatus.OK  # How it ended.
    value: Scalar | None = None
    why: str = ""
    times: Times = field(default_factory=lambda: Times(0, 0))

    @property
    def asked(self) -> Scalar | None:
        """The value that is to be set; None where one is read."""
        return self.request.value if self.request and self.request.kind == MessageKind.SET else None

    def fail(self, status: AgentStatus, why: str) -> None:
        """Let it end with an error, now."""
        self.status, self.why, self.times = status, why, now()


def now() -> Times:
    """Return the present time of the device."""
    return Times(time.monotonic_ns(), time.time_ns())


class Runner:
    """Runs jobs in the order in which they come, in a thread of its own.

    A job that is not done by its deadline is given up: where its callback runs, another thread takes the next job, and the
    item of that callback is refused until the callback returns.

    ``answer``: gets each job once, when it is done or given up; called by the thread that calls the methods.
    """

    def __init__(self, answer: Callable[[CallbackJob], None]) -> None:
        self._answer = answer
        self._waiting: deque[CallbackJob] = deque()
        self._running: CallbackJob | None = None
        self._done: SimpleQueue[CallbackJob] = SimpleQueue()
        #: Readable when `collect` has something to do; what makes it so when it is written to.
        self.fd, self.wake_fd = os.pipe()
        os.set_blocking(self.wake_fd, False)
        self._pipe = threading.RLock()  # The handler of a signal may wake it, too.
        self._is_closed = False
        self.timeouts = self.late = 0  # Jobs that were given up; callbacks that returned after that.
        self._jobs = self._thread()

    @property
    def is_full(self) -> bool:
        """Whether no more jobs should be given to it now."""
        return len(self._waiting) + (self._running is not None) >= JOBS_MOST

    @property
    def deadline_ns(self) -> int | None:
        """The next time (monotonic) at which `expire` has something to do; None: never."""
        jobs = [*self._waiting, *([self._running] if self._running else [])]
        return min((job.deadline_ns for job in jobs), default=None)

    def submit(self, job: CallbackJob) -> None:
        """Have a job run when those before it are done."""
        self._waiting.append(job)
        self._next()

    def collect(self) -> None:
        """Answer what is done."""
        os.read(self.fd, 4096)
        while not self._done.empty():
            job = self._done.get()
            if job.item.is_setting and job.status == AgentStatus.OK:
                job.item.last = job.value
            is_awaited = job is self._running
            if is_awaited:
                self._running = None
                self._answer(job)
            else:
                self.late += 1
                job.item.hangs_since_ns = None
        self._next()

    def expire(self) -> None:
        """Give up what is over its time."""
        time_ns = time.monotonic_ns()
        for job in [job for job in self._waiting if job.deadline_ns <= time_ns]:
            self._waiting.remove(job)
            self._give_up(job, "the agent had other callbacks to run; it was not begun")
        running = self._running
        if running and running.deadline_ns <= time_ns:
            running.item.hangs_since_ns = time_ns
            self._running = None
            self._jobs.put(None)  # The thread ends when the callback returns.
            self._jobs = self._thread()
            given_up = CallbackJob(
                running.item, running.request, running.deadline_ns
            )  # The callback may still write into its own.
            self._give_up(given_up, "its callback still runs at the device")
        self._next()

    def close(self) -> None:
        """End the thread, once its callback returns."""
        self._jobs.put(None)
        with self._pipe:
            self._is_closed = True
            os.close(self.fd)
            os.close(self.wake_fd)

    def wake(self) -> None:
        """Make `fd` readable; from any thread."""
        with self._pipe, contextlib.suppress(BlockingIOError):  # A full pipe is readable.
            if not self._is_closed:
                os.write(self.wake_fd, b"\0")

    # # #

    def _next(self) -> None:
        while self._waiting and not self._running:
            job = self._waiting.popleft()
            if job.item.hangs_since_ns is not None:
                job.fail(*busy(job.item))
                self._answer(job)
            else:
                self._running = job
                self._jobs.put(job)

    def _give_up(self, job: CallbackJob, why: str) -> None:
        self.timeouts += 1
        job.fail(AgentStatus.TIMEOUT, f"'{job.item.name}' is over its time limit: {why}")
        self._answer(job)

    def _thread(self) -> "SimpleQueue[CallbackJob | None]":
        jobs: SimpleQueue[CallbackJob | None] = SimpleQueue()
        threading.Thread(target=self._work, args=(jobs,), daemon=True, name="liteprobe agent callbacks").start()
        return jobs

    def _work(self, jobs: "SimpleQueue[CallbackJob | None]") -> None:
        while (job := jobs.get()) is not None:
            _run(job)
            self._done.put(job)
            self.wake()


def busy(item: Item) -> tuple[AgentStatus, str]:
    """Return how a request for an item ends whose callback hangs."""
    since_s = (time.monotonic_ns() - (item.hangs_since_ns or 0)) / 1e9
    return (
        AgentStatus.BUSY,
        f"the callback of '{item.name}' went over its time limit {since_s:.1f} s ago, and still runs",
    )


def _run(job: CallbackJob) -> None:
    began_ns = time.monotonic_ns()
    try:
        returned = job.item.call() if job.asked is None else job.item.call(job.asked)
        job.value = job.item.taken(job.asked, returned)
    except (ProbeError, ValueError) as error:
        job.status, job.why = AgentStatus.REFUSED, str(error) or type(error).__name__
    except BaseException as error:
        job.status, job.why = (
            AgentStatus.REFUSED,
            f"the callback of '{job.item.name}' failed: {type(error).__name__}: {error}",
        )
    ended = now()
    job.times = Times(ended.monotonic_ns, ended.utc_ns, ended.monotonic_ns - began_ns)
