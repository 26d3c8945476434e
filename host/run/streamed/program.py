# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What a streamed run is asked for, and what a kind of program has to know of its port."""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol

from liteprobe.cores.formats import RING_WORDS, TransmitState
from liteprobe.host.capture.request import CaptureRequest
from liteprobe.host.replay.slots import ReplaySession, WordSource
from liteprobe.host.run.routes import Devices
from liteprobe.host.run.streamed.figures import Delays, FiguresT, Sent
from liteprobe.host.run.streamed.replay_matching import ArrivalSink
from liteprobe.host.run.streamed.replay_port import ReplayPort
from liteprobe.host.run.streamed.replay_schedule import ReplaySchedule
from liteprobe.host.traffic.stamps import Stamp

PRIME_WORDS = RING_WORDS - RING_WORDS // 16  # All that is sure to be taken: the rest may be in the next datagram.


@dataclass(frozen=True)
class StreamLook:
    """How a run is: by port the frames that were sent, those that are to be (None: not known), those too late, datagrams again."""

    frames: dict[int, int]
    asked: dict[int, int | None]
    underruns: dict[int, int]
    resent: dict[int, int]


Show = Callable[[StreamLook], None]


class StreamedDevice(Devices, Protocol):
    """What a run works with: a `Probe`, or what stands for one."""

    port_count: int

    def wait(self, seconds: float) -> None:
        """Let ``seconds`` of the probe's time pass."""


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """How ports are streamed to.

    Parameters
    ----------
    capture : CaptureRequest or None
        What to capture meanwhile, on all ports.
    prime_words : int
        Words that are in the ring before it starts, or all.
    patience_s : float or None
        Without an answer for so long, the probe is gone; None: as the link says.
    remark : callable or None
        Called with a line on what isn't as fast as it could be.
    """

    capture: CaptureRequest | None = None
    prime_words: int = PRIME_WORDS
    patience_s: float | None = None
    remark: Callable[[str], None] | None = None


@dataclass(frozen=True)
class Terms:
    """What messages call a kind of program.

    Attributes
    ----------
    subject : str
        As in "... leaves no room".
    slower : str
        As in "use another port, or ...".
    did, had, again : str
        What the port did, what its frames had done, and what to do again.
    """

    subject: str
    slower: str
    did: str
    had: str
    again: str


class StreamedPort(ABC, Generic[FiguresT]):
    """A port and what this host streams to it, and how far it is; a subclass is a kind of program.

    Parameters
    ----------
    probe : StreamedDevice
    number : int
        Of the port.

    Attributes
    ----------
    receive : int
        Port that the wire leads to.
    loops : int
        How often what is in the ring is sent; 0: without an end.
    prime : int
        Words that must be in the ring before it starts; fewer where there are no more.
    asked : int or None
        Frames that are to be sent.
    load : float
        Share of the line, 0 to 1.
    stamp : Stamp or None
        Where frames have the time of their start.
    has_schedule : bool
        It is known when each frame starts, so those without a stamp can have a delay, too.
    signature : int or None
        Octet of the signature in frames that have one: others have no stamp.
    state, frames, sent : TransmitState, int, Sent
        As of the last look.
    """

    terms: ClassVar[Terms]

    def __init__(self, probe: StreamedDevice, number: int) -> None:
        self.port = probe.ports[number]
        self.ring = ReplayPort(probe.registers, number)
        self.receive = probe.link.receive_port(number, len(probe.ports))
        self.session = ReplaySession(number, secrets.randbelow(0xFFFF) + 1, 0)
        self.loops, self.prime = 1, PRIME_WORDS
        self.asked: int | None = None
        self.load = 1.0
        self.stamp: Stamp | None = None
        self.has_schedule = False
        self.signature: int | None = None
        self.state, self.frames, self.sent = TransmitState.IDLE, 0, Sent(0, 0, 0, 0, False)

    @property
    @abstractmethod
    def words(self) -> WordSource:
        """What is streamed."""

    def load_port(self) -> None:
        """Load what the port must know; its ring is open."""

    @abstractmethod
    def arm(self) -> None:
        """Take the program as its words come."""

    @abstractmethod
    def figures(self, delays: Delays | None) -> FiguresT:
        """Return what the port sent."""

    def by_schedule(self, found: FiguresT, schedule: ReplaySchedule, arrivals: ArrivalSink) -> FiguresT | str:
        """Return figures with delays of frames without a stamp, or why there are none; where ``has_schedule``."""
        return found
