# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What each controller asked last: so a request that comes twice is done once, and answered the same."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from liteprobe.host.agent.message import MessageError, Request, Status

SESSIONS_MOST = 64  # More than jobs, so one that waits for nothing can always be forgotten.


@dataclass
class Session:
    """A controller.

    Attributes
    ----------
    number : int
        Of its last request.
    frames : list of bytes
        The last request.
    identity : bytes
        Where its answer goes.
    answer : list of bytes
        The answer; empty while it is under way.
    """

    number: int = 0
    frames: list[bytes] = field(default_factory=list)
    identity: bytes = b""
    answer: list[bytes] = field(default_factory=list)


class Sessions:
    """Remembers the last request of the controllers that asked last.

    Attributes
    ----------
    duplicates : int
        Requests that came again.
    """

    def __init__(self) -> None:
        self._sessions: OrderedDict[int, Session] = OrderedDict()
        self.duplicates = 0

    def take(self, request: Request, frames: Sequence[bytes], identity: bytes) -> list[bytes] | None:
        """Return None for a request that is new, else what is to be sent again: nothing while it is under way.

        Raises
        ------
        MessageError
            When its number was used before for something else.
        """
        known = self._sessions.get(request.session)
        if known is None:
            if len(self._sessions) >= SESSIONS_MOST:
                del self._sessions[next(number for number, one in self._sessions.items() if one.answer)]
            known = Session()
        elif request.number == known.number and list(frames) == known.frames:
            self.duplicates += 1
            known.identity = identity
            return known.answer
        elif request.number <= known.number:
            raise MessageError(
                f"number {request.number} was used before: the next one is above {known.number}", Status.NUMBER
            )
        elif not known.answer:
            raise MessageError(f"request {known.number} is not answered yet: wait for it", Status.NUMBER)
        self._sessions[request.session] = Session(request.number, list(frames), identity)
        self._sessions.move_to_end(request.session)
        return None

    def answer(self, session: int, frames: list[bytes]) -> bytes:
        """Keep the answer to the last request of a session, and return where it goes."""
        known = self._sessions[session]
        known.answer = frames
        return known.identity
