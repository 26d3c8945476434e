# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Talks to an agent for a measuring script: sets, reads and watches, and records all of it with its times."""

import secrets
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from liteprobe.host.agent import message
from liteprobe.host.agent.connection import AgentUnreachableError, Connection
from liteprobe.host.agent.keys import Keys, public_key
from liteprobe.host.agent.message import (
    AgentAnswer,
    AgentRequest,
    AgentStatus,
    MessageError,
    MessageKind,
    Scalar,
    Times,
    Type,
    type_of,
)
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.validate import Seconds, validated


@dataclass(frozen=True)
class Event:
    """Records a setting that was set, a value that was read or pushed, or why not."""

    action: str  # "set", "get" or "push".
    name: str
    asked: Scalar | None  # What was asked for, of a set.
    value: Scalar | None  # What the device took, or has; None: an error.
    status: AgentStatus
    why: str  # The text of an error.
    times: Times  # Of the device, when its callback had ended; of an error that no callback made, when it was found.
    sent_ns: int | None  # Time of this host (UTC, ns) just before the request was sent; None of a push.
    received_ns: int | None  # And just after its answer came.
    number: int  # Of the request, or of a push since the agent's start.
    missed: int = 0  # Pushes of this value that are missing before this one.

    @property
    def offset_bounds_ns(self) -> tuple[int, int] | None:
        """Least and greatest difference of the device's clock to this host's (UTC, ns); None of a push.

        The callback ended after the request was sent and before the answer came, so the difference lies between.
        """
        if self.sent_ns is None or self.received_ns is None:
            return None
        return self.times.utc_ns - self.received_ns, self.times.utc_ns - self.sent_ns


def row(event: Event) -> dict[str, Any]:
    """Return an event as plain data that JSON can hold: octets are hexadecimal text, times whole nanoseconds."""
    return {
        "action": event.action,
        "name": event.name,
        "type": None if event.value is None else type_of(event.value).name.lower(),
        "asked": _plain(event.asked),
        "value": _plain(event.value),
        "status": event.status.name.lower(),
        "error": event.why or None,
        "sent_utc_ns": event.sent_ns,
        "received_utc_ns": event.received_ns,
        "agent_utc_ns": event.times.utc_ns,
        "agent_monotonic_ns": event.times.monotonic_ns,
        "agent_duration_ns": event.times.duration_ns,
        "number": event.number,
        "missed": event.missed,
    }


def _plain(value: Scalar | None) -> int | float | bool | str | None:
    return value.hex() if isinstance(value, bytes) else value


CONNECT_S = 5.0
MARGIN_S = 2.0  # For the way, over the time limit of the device.
RESUME_S = 0.05  # An agent that is there again answers within it.
SETTING, VALUE, WATCHED = 1, 2, 3
GAP = "the agent was restarted, or the connection to it was lost: what was pushed meanwhile is missing"


class AgentError(ProbeError):
    """The agent, or the device, refused a request."""

    def __init__(self, why: str, status: AgentStatus) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True)
class Description:
    """Describes a device as its agent does."""

    name: str
    limit_s: float  # Time limit of a callback (s).
    settings: dict[str, Type]
    values: dict[str, Type]
    watchable: frozenset[str]  # Values that can be watched.
    values_port: int  # TCP port that pushes come from.


@validated
class AgentClient:
    """Talks to the agent of a device.

    Parameters
    ----------
    address : str
        ``tcp://HOST:PORT``.
    keys : Keys or None
        Of this end; needed where the address isn't loopback.
    agent_key : bytes, Path, str or None
        The agent's public key, or its file (NAME.key).
    connect_s : float
        How long to wait for the agent (s).

    Attributes
    ----------
    address : str
    device : Description
    events : list of Event
        All that was set, read and pushed so far, errors included.

    Raises
    ------
    UsageError
        When the address isn't one, or keys are missing.
    AgentUnreachableError
        When no agent answers, or the keys are wrong.
    """

    def __init__(
        self,
        address: str,
        keys: Keys | None = None,
        agent_key: bytes | Path | str | None = None,
        connect_s: float = CONNECT_S,
    ) -> None:
        key = agent_key if agent_key is None or isinstance(agent_key, bytes) else public_key(agent_key)
        self.address = address
        self.events: list[Event] = []
        self._session = _new_session()
        self._number = 0
        self._watched: set[str] = set()
        self._pushed: dict[str, tuple[int, int]] = {}  # Of each value: the agent's session, and the last number.
        self._connection = Connection(address, keys, key)
        try:
            self.device = _description(self._ask(MessageKind.HELLO, limit_s=connect_s))
        except BaseException:
            self.close()
            raise

    def set(self, name: str, value: Scalar) -> Scalar:
        """Set a setting, and return what the device took, which a device may have rounded.

        Raises
        ------
        AgentError
            When the agent or the device refuses, or the device takes too long.
        AgentUnreachableError
            When no answer comes; the device may still do what was asked, once.
        """
        if type(value) is int and self.device.settings.get(name) == Type.FLOAT:
            value = float(value)
        return self._keep("set", name, value)

    def get(self, name: str) -> Scalar:
        """Return a value, or what a setting was set to last; raises as `set`."""
        return self._keep("get", name, None)

    def watch(self, *names: str) -> None:
        """Have values pushed from now on; `pushed` takes them.

        Raises
        ------
        UsageError
            When the device doesn't push a value of this name.
        """
        for name in names:
            if name not in self.device.watchable:
                known = ", ".join(sorted(self.device.watchable)) or "none"
                raise UsageError(f"'{name}' can't be watched: '{self.device.name}' pushes {known}")
            self._connection.watch([_topic(name)], self.device.values_port)
            self._watched.add(name)

    def unwatch(self, *names: str) -> None:
        """Have values pushed no more."""
        for name in names:
            self._connection.unwatch(_topic(name))
            self._watched.discard(name)

    def pushed(self, seconds: Seconds = 0.0) -> list[Event]:
        """Return what was pushed since the last call and within ``seconds`` from now; an `Event` says what is missing.

        When the agent was restarted, or the connection lost, values are watched again as soon as it answers, and an event of
        status TIMEOUT says for each that what was pushed meanwhile is missing.

        Raises
        ------
        MessageError
            When something else than an agent of this version pushes.
        AgentUnreachableError
            When the connection was lost for more than 5 s.
        AgentError
            When the agent that is there again doesn't push a value that was watched.
        """
        end_s = time.monotonic() + seconds
        found: list[Event] = []
        while True:
            frames = self._connection.pushed(max(end_s - time.monotonic(), 0))
            if frames:
                found += self._push(frames)
            elif self._connection.lost_s is None:
                break
            elif resumed := self._resume(self._connection.lost_s, end_s):
                found += resumed
            elif time.monotonic() >= end_s:
                break
        self.events += found
        return found

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Self:
        """Use it in a ``with`` statement."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    # # #

    def _ask(self, kind: MessageKind, name: str = "", value: Scalar | None = None, limit_s: float = 0.0) -> AgentAnswer:
        self._number += 1
        request = AgentRequest(kind, self._session, self._number, name, value)
        try:
            answer = self._connection.ask(request, limit_s or self.device.limit_s + MARGIN_S)
        except AgentUnreachableError:
            self._session = _new_session()  # The agent may still have this request: the next one doesn't wait for it.
            raise
        if answer.status == AgentStatus.VERSION:
            raise AgentUnreachableError(answer.why)
        return answer

    def _keep(self, action: str, name: str, asked: Scalar | None) -> Scalar:
        """Set or get, and keep what comes of it."""
        _check_name(name)
        sent_ns = time.time_ns()
        answer = self._ask(MessageKind.GET if asked is None else MessageKind.SET, name, asked)
        received_ns = time.time_ns()
        is_good = answer.status == AgentStatus.OK
        value, why = (answer.value, "") if is_good else (None, answer.why)
        self.events.append(
            Event(action, name, asked, value, answer.status, why, answer.times, sent_ns, received_ns, answer.number)
        )
        if value is None:
            raise AgentError(f"{self.device.name}: {why}", answer.status)
        return value

    def _resume(self, lost_s: float, end_s: float) -> list[Event]:
        """Watch values again once the agent answers, and return the events that say so; nothing: it doesn't answer yet."""
        try:
            self.device = _description(self._ask(MessageKind.HELLO, limit_s=max(end_s - time.monotonic(), RESUME_S)))
        except AgentUnreachableError as error:
            if time.monotonic() - lost_s > CONNECT_S:
                raise AgentUnreachableError(f"the connection for watched values was lost, and {error}") from None
            return []
        self._connection.forget_values()
        names = sorted(self._watched)
        for name in names:
            if name not in self.device.watchable:
                self._watched.discard(name)
                raise AgentError(
                    f"{self.device.name} was restarted, and '{name}' can't be watched any more", AgentStatus.UNKNOWN
                )
        self._connection.watch(map(_topic, names), self.device.values_port)
        return [self._gap(name) for name in names]

    def _gap(self, name: str) -> Event:
        """Return the event that says that pushes of a value are missing."""
        self._pushed.pop(name, None)
        times = Times(time.monotonic_ns(), time.time_ns())
        return Event("push", name, None, None, AgentStatus.TIMEOUT, GAP, times, None, None, 0)

    def _push(self, frames: list[bytes]) -> list[Event]:
        answer = message.answer_of(frames[1:])
        if answer.kind != MessageKind.PUSH:
            raise MessageError(f"what was pushed is of kind {answer.kind}, not {int(MessageKind.PUSH)}")
        name = frames[0].removesuffix(message.TOPIC_END).decode("ascii", "replace")
        session, last = self._pushed.get(name, (answer.session, answer.number - 1))
        gap = [] if session == answer.session else [self._gap(name)]
        missed = 0 if gap else max(answer.number - last - 1, 0)
        self._pushed[name] = answer.session, answer.number
        is_good = answer.status == AgentStatus.OK
        value, why = (answer.value, "") if is_good else (None, answer.why)
        event = Event("push", name, None, value, answer.status, why, answer.times, None, None, answer.number, missed)
        return [*gap, event]


def _new_session() -> int:
    return secrets.randbits(63) + 1


def _topic(name: str) -> bytes:
    return name.encode() + message.TOPIC_END


def _check_name(name: str) -> None:
    if not message.NAME.fullmatch(name.encode()):
        raise UsageError(f"'{name}' is not a name: a letter, then up to 62 letters, digits, and _ . -")


def _description(answer: AgentAnswer) -> Description:
    if answer.status != AgentStatus.OK:
        raise AgentError(answer.why, answer.status)
    try:
        head, name, *items = answer.body
        limit_ms, values_port, count = message.DESCRIPTION.unpack(head)
        if count != len(items):
            raise ValueError
        kinds: dict[int, dict[str, Type]] = {SETTING: {}, VALUE: {}, WATCHED: {}}
        for item in items:
            role, kind = message.ITEM.unpack_from(item)
            kinds[role][item[message.ITEM.size :].decode("ascii")] = Type(kind)
        text = name.decode()
    except (ValueError, KeyError, struct.error):
        raise MessageError("the agent's description of its device is not as the protocol has it") from None
    values = kinds[VALUE] | kinds[WATCHED]
    return Description(text, limit_ms / 1e3, kinds[SETTING], values, frozenset(kinds[WATCHED]), values_port)
