# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the agent at a device under test: takes requests, runs callbacks, answers with the device's time, pushes values."""

import secrets
import signal
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from liteprobe.host.agent import message
from liteprobe.host.agent.items import OWN_PREFIX, Callback, Item, type_of_setting, type_of_value
from liteprobe.host.agent.keys import Keys, check_address, public_keys
from liteprobe.host.agent.message import AgentAnswer, AgentRequest, AgentStatus, MessageError, MessageKind, Scalar, Type
from liteprobe.host.agent.runner import CallbackJob, Runner, Sessions, busy, now
from liteprobe.host.agent.sockets import Sockets
from liteprobe.host.base.defaults import AGENT_ADDRESS, AGENT_LIMIT_S
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.validate import validated

NS_PER_S = 10**9
TURN = 64  # Messages that are taken before callbacks, pushes and time limits are looked at again.
ROLES = {(True, False): 1, (False, False): 2, (False, True): 3}  # By: is a setting, can be watched.


@validated
class Agent:
    """Offers settings and values of a device to measuring scripts.

    Parameters
    ----------
    name : str
        Of the device, as scripts see it.
    address : str
        ``tcp://HOST:PORT``; port 0: a free one. Anything but loopback needs keys.
    keys : Keys or None
        The agent's own.
    clients : sequence of Path or str
        Files or folders with the public keys of those who may talk to it; with keys only.
    limit_s : float
        A callback that takes longer (s), waiting for others included, is answered with an error.

    Attributes
    ----------
    address : str
        Where it listens, with the port that was taken.
    counts : dict of str to int
        Requests, malformed messages, duplicates, timeouts, late callbacks, refused connections, answers and pushes that could
        not be sent. Scripts read each as ``agent.NAME``.

    Raises
    ------
    UsageError
        When the address isn't one, or needs keys.
    ProbeError
        When the port is taken.
    """

    def __init__(
        self,
        name: str,
        address: str = AGENT_ADDRESS,
        keys: Keys | None = None,
        clients: Sequence[Path | str] = (),
        limit_s: float = AGENT_LIMIT_S,
    ) -> None:
        if not name or len(name.encode()) > message.WHY_MOST or "\0" in name:
            raise UsageError(f"'{name}' is not a name of a device: give 1 to {message.WHY_MOST} octets of text")
        if not 0.001 <= limit_s <= 3600:
            raise UsageError(f"a time limit of {limit_s} s is out of range: give 0.001 to 3600")
        if bool(keys) != bool(clients):
            raise UsageError("keys of the agent and keys of its clients belong together: give both, or none")
        check_address(address, keys is not None, is_agent=True)
        self.name = name
        self._limit_ns = round(limit_s * NS_PER_S)
        self._items: dict[str, Item] = {}
        self._sessions = Sessions()
        self._runner = Runner(self._done)
        self._sockets = Sockets(address, keys, public_keys(clients) if keys else [])
        self.address = self._sockets.address
        self._instance = secrets.randbits(63) + 1
        self._is_stopping = False
        self._thread: threading.Thread | None = None
        self._requests = self._malformed = self._skipped = 0
        self._pushes: dict[str, int] = {}  # Of each value: pushes since the start.
        self._due_ns: dict[str, int] = {}  # Of each value that is watched: when it is read next.
        self._pushing: set[str] = set()
        for count in self.counts:
            self.add(Item(OWN_PREFIX + count, Type.INT, False, partial(self._count, count), is_own=True))

    # What it offers -------------------------------------------------------------------------------

    def setting(
        self, name: str, minimum: float | None = None, maximum: float | None = None, initial: Scalar | None = None
    ) -> Callable[[Callback], Callback]:
        """Make a function that takes the value the callback of a setting; its type is that of its parameter.

        Parameters
        ----------
        minimum, maximum : int or float or None
            Range of an int or float.
        initial : bool, int, float, str or bytes, or None
            What it is before it is set.

        Raises
        ------
        UsageError
            When name, type or range can't be.
        """

        def decorate(callback: Callback) -> Callback:
            kind = type_of_setting(name, callback)
            self.add(Item(name, kind, True, callback, minimum, maximum, last=initial))
            return callback

        return decorate

    def value(self, name: str, interval_s: float = 0.0) -> Callable[[Callback], Callback]:
        """Make a function that returns the value its callback; its type is what the function returns.

        Parameters
        ----------
        interval_s : float
            It is read so often (s) and pushed while somebody watches it; 0: it can't be watched.

        Raises
        ------
        UsageError
            When name or type can't be.
        """
        if interval_s and not 0.001 <= interval_s <= 3600:
            raise UsageError(f"'{name}' can't be read each {interval_s} s: give 0.001 to 3600, or 0")

        def decorate(callback: Callback) -> Callback:
            kind = type_of_value(name, callback)
            self.add(Item(name, kind, False, callback, interval_ns=round(interval_s * NS_PER_S)))
            return callback

        return decorate

    def add(self, item: Item) -> None:
        """Offer an item; raises UsageError when there is one of its name, or there are too many."""
        if item.name in self._items:
            raise UsageError(f"there is a '{item.name}' already: give another name")
        if len(self._items) >= message.ITEMS_MOST:
            raise UsageError(
                f"an agent has {message.ITEMS_MOST} settings and values at most, its own included: leave some out"
            )
        self._items[item.name] = item

    @property
    def counts(self) -> dict[str, int]:
        """Counts so far, by name."""
        return {
            "requests": self._requests,
            "malformed": self._malformed,
            "duplicates": self._sessions.duplicates,
            "timeouts": self._runner.timeouts,
            "late": self._runner.late,
            "denied": self._sockets.denied,
            "unsent": self._sockets.unsent,
            "skipped": self._skipped,
        }

    # Its life -------------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """The settings and values that it offers, without its own counters."""
        return [item.name for item in self._items.values() if not item.is_own]

    def run(self) -> None:
        """Serve until `stop` is called, or an exception such as Ctrl-C ends it."""
        is_main = threading.current_thread() is threading.main_thread()
        # A signal that another thread gets wouldn't end the waiting of this one, in which its handler runs.
        before = signal.set_wakeup_fd(self._runner.wake_fd, warn_on_full_buffer=False) if is_main else -1
        try:
            while not self._is_stopping:
                self._step()
        finally:
            if is_main:
                signal.set_wakeup_fd(before)
            self._runner.close()
            self._sockets.close()

    def stop(self) -> None:
        """End `run`; from any thread."""
        self._is_stopping = True
        self._runner.wake()

    def __enter__(self) -> Self:
        """Serve in a thread."""
        self._thread = threading.Thread(target=self.run, daemon=True, name=f"liteprobe agent {self.name}")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()
        if self._thread:
            self._thread.join()

    # # #

    def _count(self, name: str) -> int:
        return self.counts[name]

    def _step(self) -> None:
        dues = [*self._due_ns.values(), *([self._runner.deadline_ns] if self._runner.deadline_ns else [])]
        wait_ns = max(min(dues) - time.monotonic_ns(), 0) if dues else None
        ready = self._sockets.poll(self._runner.fd, wait_ns, not self._runner.is_full)
        if self._runner.fd in ready:
            self._runner.collect()
        self._runner.expire()
        for topic, is_wanted in self._sockets.subscriptions():
            self._subscribe(topic, is_wanted)
        self._push_due()
        for _ in range(TURN):
            if self._runner.is_full or (received := self._sockets.receive()) is None:
                break
            self._take(*received)

    # Requests -------------------------------------------------------------------------------------

    def _take(self, identity: bytes, frames: list[bytes]) -> None:
        if not message.is_addressed(frames):
            self._malformed += 1
            return
        self._requests += 1
        try:
            request = message.request_of(frames)
            again = self._sessions.take(request, frames, identity)
        except MessageError as error:
            self._malformed += error.status in (AgentStatus.MALFORMED, AgentStatus.VERSION)
            _, _, kind, _, session, number = message.REQUEST.unpack_from(frames[0])
            self._send(identity, _error(kind, session, number, error.status, str(error)))
            return
        if again is not None:
            if again:
                self._sockets.send(identity, again)
            return
        try:
            self._serve(request)
        except MessageError as error:
            self._answer(_error(request.kind, request.session, request.number, error.status, str(error)))

    def _serve(self, request: AgentRequest) -> None:
        """Answer a request, or have its callback run."""
        if request.kind == MessageKind.HELLO:
            self._answer(
                AgentAnswer(
                    MessageKind.HELLO, AgentStatus.OK, request.session, request.number, now(), self._description()
                )
            )
            return
        item = self._items.get(request.name)
        if item is None:
            raise MessageError(f"this device has no '{request.name}': HELLO lists what it has", AgentStatus.UNKNOWN)
        if request.kind == MessageKind.SET and not item.is_setting:
            raise MessageError(f"'{item.name}' is a value, which is only read", AgentStatus.READ_ONLY)
        if request.value is not None:
            item.check(request.value)
        if request.kind == MessageKind.GET and (item.is_setting or item.is_own):
            found: Scalar | None = item.last if item.is_setting else item.call()
            if found is None:
                raise MessageError(f"'{item.name}' was not set yet: set it first", AgentStatus.NOT_SET)
            frame = message.value_frame(found)
            self._answer(AgentAnswer(request.kind, AgentStatus.OK, request.session, request.number, now(), (frame,)))
        elif item.hangs_since_ns is not None:
            raise MessageError(busy(item)[1], AgentStatus.BUSY)
        else:
            self._runner.submit(CallbackJob(item, request, time.monotonic_ns() + self._limit_ns))

    def _description(self) -> tuple[bytes, ...]:
        head = message.DESCRIPTION.pack(-(-self._limit_ns // 10**6), self._sockets.values_port, len(self._items))
        items = (
            message.ITEM.pack(ROLES[item.is_setting, item.interval_ns > 0], item.type) + item.name.encode()
            for item in self._items.values()
        )
        return (head, self.name.encode(), *items)

    def _done(self, job: CallbackJob) -> None:
        body = (message.value_frame(job.value),) if job.value is not None else (message.why_frame(job.why),)
        if job.request is None:
            self._push(job, body)
            return
        request = job.request
        self._answer(AgentAnswer(request.kind, job.status, request.session, request.number, job.times, body))

    def _answer(self, answer: AgentAnswer) -> None:
        frames = message.answer_frames(answer)
        self._sockets.send(self._sessions.answer(answer.session, frames), frames)

    def _send(self, identity: bytes, answer: AgentAnswer) -> None:
        self._sockets.send(identity, message.answer_frames(answer))

    # Pushes ---------------------------------------------------------------------------------------

    def _subscribe(self, topic: bytes, is_wanted: bool) -> None:
        item = self._items.get(topic.removesuffix(message.TOPIC_END).decode("latin-1"))
        if item is None or not item.interval_ns or not topic.endswith(message.TOPIC_END):
            return
        if is_wanted:
            self._due_ns.setdefault(item.name, time.monotonic_ns())
        else:
            self._due_ns.pop(item.name, None)

    def _push_due(self) -> None:
        time_ns = time.monotonic_ns()
        for name in [name for name, due_ns in self._due_ns.items() if due_ns <= time_ns]:
            item = self._items[name]
            missed = (time_ns - self._due_ns[name]) // item.interval_ns
            self._due_ns[name] += (missed + 1) * item.interval_ns
            self._skipped += missed
            if name in self._pushing or item.hangs_since_ns is not None or self._runner.is_full:
                self._skipped += 1
            else:
                self._pushing.add(name)
                self._runner.submit(CallbackJob(item, None, time_ns + self._limit_ns))

    def _push(self, job: CallbackJob, body: tuple[bytes, ...]) -> None:
        name = job.item.name
        self._pushing.discard(name)
        self._pushes[name] = self._pushes.get(name, 0) + 1
        answer = AgentAnswer(MessageKind.PUSH, job.status, self._instance, self._pushes[name], job.times, body)
        self._sockets.push([name.encode() + message.TOPIC_END, *message.answer_frames(answer)])


def _error(kind: int, session: int, number: int, status: AgentStatus, why: str) -> AgentAnswer:
    return AgentAnswer(kind, status, session, number, now(), (message.why_frame(why),))
