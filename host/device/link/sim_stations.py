# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Describes stations at the ends of a simulated probe's lines, and reads what they have seen."""

import json
import subprocess
import weakref
from dataclasses import asdict, dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Protocol

from liteprobe.cores.formats import TICK_NS
from liteprobe.host.base import programs
from liteprobe.host.base.errors import ProbeError

CLIENT, SERVER = 1, 2
CLIENT_PORT = 1  # The way to it is 'there', which presets have as the way down.
WEIGHTS = (1, 2, 4)
AHEAD_NS = 100_000  # From now to their start. The network starts first, within microseconds.
BUILD = "liteprobe.sim.drivers.emulator.stations.build"
REFLECTOR = "liteprobe.sim.drivers.peers.peer"
REFLECTOR_PORTS = 2


@dataclass(frozen=True)
class Station:
    """A station with a TCP/IP stack of its own, whose clock is the simulation's."""

    library: Path  # The stack, compiled.
    number: int  # SERVER serves a web site, CLIENT fetches all of it.
    lengths: tuple[int, ...]  # Of its files (octets).
    is_kept: bool  # Whether the client asks for all of them over one connection.
    seed: int  # Of the stack's random numbers; not 0.


@dataclass(frozen=True)
class Seen:
    """Counts what went over the line of a port until now."""

    #: ``played``, ``is_playing``: frames of captures that went into the port; whether more are to come.
    played: int
    is_playing: bool
    sent: int  # Frames of the station, that wait for the line, too.
    #: ``frames``, ``octets``, ``wrong``: that came from the port with a good FCS, and their octets without it; that came
    #: with a wrong one.
    frames: int
    octets: int
    wrong: int
    done_ticks: int = 0  # From its start until a client had all files; 0: it hasn't, or is none.
    #: ``files``, ``content``, ``misread``, ``connections``, ``repeats``, ``resent``: of a stack: files and octets of
    #: content that it has fetched; octets that aren't those of the site; connections that it has opened; fetches begun
    #: anew since their connection broke; segments that it has sent again.
    files: int = 0
    content: int = 0
    misread: int = 0
    connections: int = 0
    repeats: int = 0
    resent: int = 0


@dataclass(frozen=True)
class StationsAsked:
    """Holds what a ``sim://emulator`` asks for: a web server at port 0 and a client at port 1, or players of captures."""

    is_web: bool = True
    #: ``files``, ``octets``: of the site: how many, how long together.
    files: int = 3
    octets: int = 20_000
    #: ``is_kept``, ``seed``: as of `Station`.
    is_kept: bool = True
    seed: int = 1
    play: tuple[Path, ...] = ()  # Captures, one for each port; "" plays none.
    repeats: int = 1  # How often each is played; 0: without end.

    @property
    def lengths(self) -> tuple[int, ...]:
        """Of the files: the second is twice and the third four times as long as the first, and so on by threes."""
        weights = [WEIGHTS[number % len(WEIGHTS)] for number in range(self.files)]
        ends = [end * self.octets // sum(weights) for end in accumulate(weights, initial=0)]
        return tuple(after - before for before, after in pairwise(ends))


@dataclass(frozen=True)
class ReflectorAsked:
    """Holds what a ``sim://reflector`` asks for: a reflector of STAMP at the end of each port's line."""

    is_stateful: bool = False
    is_ptp: bool = False  # Its times are in PTPv2's format.
    hold_ns: int = 1000  # From the last octet of a packet to the SFD of its answer.
    loss: float = 0.0  # Share of the packets, and of the answers, that are lost.
    seed: int = 1  # Of what is lost.


class ReflectorProcess:
    """Runs a simulated reflector, a process of its own; ProbeError when it can't be, with what to do."""

    def __init__(self, asked: ReflectorAsked) -> None:
        command = [*programs.module(REFLECTOR), json.dumps(asdict(asked))]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the host.
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline().split()
        if len(line) != 1 + REFLECTOR_PORTS:
            why = (self._process.communicate()[1].strip().splitlines() or ["?"])[-1]
            raise ProbeError(f"there is no simulated reflector here ({why}): it is compiled once, and needs gcc")
        self.library = Path(line[0])
        self.ports = [int(number) for number in line[1:]]
        self.close = weakref.finalize(self, _end, self._process)

    def put(self, link: "StationsLink") -> None:
        """Sit down at all ports."""
        for port, tcp_port in enumerate(self.ports):
            link.put_station(port, Station(self.library, 1, (1,), False, tcp_port), 0)


def _end(process: "subprocess.Popen[str]") -> None:
    """End the process; it ends when nobody writes to it any more."""
    process.communicate()


@dataclass(frozen=True)
class StationsReport:
    """Reports what the stations at both ports saw."""

    asked: StationsAsked
    ports: tuple[Seen, ...]

    @property
    def seconds(self) -> float | None:
        """From the start until the client had all files; None: it hasn't all, or there is no client."""
        ticks = self.ports[CLIENT_PORT].done_ticks
        return ticks * TICK_NS / 1e9 if self.asked.is_web and ticks else None

    @property
    def names(self) -> tuple[str, str]:
        return ("server", "client") if self.asked.is_web else ("player", "player")

    @property
    def are_done(self) -> bool:
        """Whether they have done all that was asked of them; never where nothing was."""
        if self.asked.is_web:
            return self.seconds is not None
        return bool(self.asked.play) and not any(one.is_playing for one in self.ports)

    @property
    def sentence(self) -> str:
        """Result of the transfer, or of the captures, as a sentence."""
        client = self.ports[CLIENT_PORT]
        if not self.asked.is_web:
            played = sum(one.played for one in self.ports)
            return f"{played:,} frames played, {sum(one.frames for one in self.ports):,} received."
        begun = f", {client.repeats:,} begun anew" if client.repeats else ""
        if not client.files and not client.content:
            return f"No file of {self.asked.files:,} has come yet; connections: {client.connections:,}{begun}."
        end = f"in {1e3 * self.seconds:,.3f} ms" if self.seconds else "so far"
        what = f"{client.files:,} of {self.asked.files:,} files, {client.content:,} octets {end}"
        right = "each as the server has it" if not client.misread else f"{client.misread:,} of them wrong"
        return f"{what}, {right}; connections: {client.connections:,}{begun}."

    def document(self) -> dict[str, Any]:
        ports = [{"station": name, **asdict(one)} for name, one in zip(self.names, self.ports, strict=True)]
        return {"seconds": self.seconds, "ports": ports}


class StationsLink(Protocol):
    """The link to a simulated probe that has stations, as `SimLink` is one."""

    def now_ns(self) -> int: ...
    def put_station(self, port: int, station: Station, start_ns: int) -> None: ...
    def play(self, port: int, path: Path, start_ns: int = 0, repeats: int = 1) -> int: ...
    def seen(self, port: int) -> Seen: ...


class Stations:
    """The stations at the ports of a simulated probe: they begin with the network.

    Raises ProbeError when there is no TCP/IP stack for them, with what to do.
    """

    def __init__(self, link: StationsLink, asked: StationsAsked) -> None:
        self._link, self.asked = link, asked
        self._library = stack() if asked.is_web else Path()

    def begin(self) -> None:
        """Let them begin anew, both at one time."""
        start_ns = self._link.now_ns() + AHEAD_NS
        asked = self.asked
        if asked.is_web:
            for port, number in enumerate((SERVER, CLIENT)):
                station = Station(self._library, number, asked.lengths, asked.is_kept, 2 * asked.seed + number)
                self._link.put_station(port, station, start_ns)
        for port, capture in enumerate(asked.play):
            self._link.play(port, capture, start_ns, asked.repeats)

    def report(self) -> StationsReport:
        return StationsReport(self.asked, tuple(self._link.seen(port) for port in range(2)))


def stack() -> Path:
    """Return the TCP/IP stack of a station, compiled first where need be; raises ProbeError when that can't be done here."""
    done = programs.run(programs.module(BUILD), keep_output=True)
    lines = done.output.strip().splitlines()
    if done.code or not lines:
        why = done.tail.strip().splitlines()[:1] or ["?"]
        raise ProbeError(
            f"the stations have no TCP/IP stack here ({why[0]}): it is lwIP, which is fetched once from Debian's source package, "
            "and needs apt, a network and gcc. Without it give captures: sim://emulator?play=a.pcap,b.pcap"
        )
    return Path(lines[-1])
