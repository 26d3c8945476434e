# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Takes the requests of Open Traffic Generator, whatever they come by, to the session in the thread of the probe."""

import time
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import Any, TypeVar

from google.protobuf import json_format
from google.protobuf.message import Message

from liteprobe.host.otg.flows import TimeScale
from liteprobe.host.otg.messages import OtgError, pb
from liteprobe.host.otg.session import Session, error_of
from liteprobe.host.probe import Probe
from liteprobe.host.serve.worker import ProbeWorker

T = TypeVar("T")
MODELS = ">=1.30.0,<2.0.0"  # Of clients that may come: they hold their own version against it.
CALL_S = 300.0  # For what one request may take.
AGAIN_S = 0.02  # From a question whether a capture is whole to the next.


class OtgApi:
    """Answers requests: each method returns a message of the models, or raises OtgError.

    Parameters
    ----------
    worker : ProbeWorker
        Has the probe.
    session : Session
        What its thread does.
    """

    def __init__(self, worker: ProbeWorker, session: Session, scale: TimeScale) -> None:
        self._worker, self._session, self.scale = worker, session, scale

    def set_config(self, config: Message) -> Any:
        """Take a configuration."""
        return self._warned(lambda probe: self._session.set_config(probe, config))

    def update_config(self, update: Message) -> Any:
        """Change flows."""
        return self._warned(lambda probe: self._session.update_config(probe, update))

    def append_config(self, append: Message) -> Any:
        """Add flows."""
        return self._warned(lambda probe: self._session.append_config(probe, append))

    def delete_config(self, delete: Message) -> Any:
        """Take flows away."""
        return self._warned(lambda probe: self._session.delete_config(probe, delete))

    def get_config(self) -> Any:
        """Return the configuration."""
        return self._call(lambda probe: self._session.get_config())

    def set_control_state(self, state: Message) -> Any:
        """Start or stop something."""
        return pb.Warning(
            warnings=self._until(lambda probe: self._session.set_state(probe, state), "pings do not end: ask again")
        )

    def set_control_action(self, action: Message) -> Any:
        """Ping from devices; return what came of each."""
        pings = self._call(lambda probe: self._session.ping(probe, action))
        return self._until(
            lambda probe: self._session.pinged(pings),
            "no answer comes to pings, and no end: start protocols, and ask again",
        )

    def get_metrics(self, request: Message) -> Any:
        """Return metrics."""
        return self._call(lambda probe: self._session.metrics(probe, request))

    def get_states(self, request: Message) -> Any:
        """Return states."""
        return self._call(lambda probe: self._session.states(request))

    def get_capture(self, request: Message) -> Iterator[bytes]:
        """Return the octets of a capture, when all of its frames are there."""
        return self._until(
            lambda probe: self._session.captured(probe, request), "the capture does not end: stop it, and ask again"
        )

    def get_version(self) -> Any:
        """Return the versions of models, messages and this server; where time is scaled, the last says so."""
        scaled = "" if self.scale.factor == 1 else f"+time-scale.{float(self.scale.factor):g}"
        return pb.Version(
            api_spec_version=MODELS,
            sdk_version=metadata.version("snappi"),
            app_version=f"{metadata.version('liteprobe')}{scaled}",
        )

    # # #

    def _warned(self, act: Callable[[Probe], list[str]]) -> Any:
        return pb.Warning(warnings=self._call(act))

    def _until(self, act: Callable[[Probe], T | None], words: str) -> T:
        """Ask again and again until there is an answer."""
        ends_s = time.monotonic() + CALL_S
        while (found := self._call(act)) is None:
            if time.monotonic() > ends_s:
                raise OtgError([f"{words} ({CALL_S:g} s have passed)"], 500, "internal")
            time.sleep(AGAIN_S)
        return found

    def _call(self, act: Callable[[Probe], T]) -> T:
        try:
            return self._worker.call(act).result(CALL_S)
        except TimeoutError:
            raise OtgError([f"the probe did not do this within {CALL_S:g} s: ask again"], 503, "internal") from None
        except Exception as error:
            raise error_of(error) from None


def parsed(content: bytes, message: Message) -> Message:
    """Return JSON as a message; OtgError, with the path, where it is none."""
    try:
        json_format.Parse(content, message)
    except (json_format.ParseError, ValueError, RecursionError) as error:
        raise OtgError([f"this is no {message.DESCRIPTOR.name} of the models: {str(error)[:400]}"]) from None
    return message


def error_message(error: OtgError) -> Any:
    """Return an error as a message."""
    kinds = pb.Error.Kind
    return pb.Error(code=error.code, kind=getattr(kinds, error.kind), errors=error.errors)
