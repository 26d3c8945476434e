# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Two stations, and an emulated network between them: the time goes from each event to the next one.

Each station is a web server or a client on a TCP/IP stack of its own, in this process.
"""

import ctypes
import pathlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from heapq import heappop, heappush
from tempfile import TemporaryDirectory

from liteprobe.cores.formats import TICK_NS
from liteprobe.cores.formats.emulate import UNMATCHED_CLASS
from liteprobe.host.device.link.sim_stations import CLIENT, SERVER
from liteprobe.sim.drivers.emulator.stations import build
from liteprobe.sim.models.emulator.direction import AROUND, Direction
from liteprobe.sim.models.emulator.fifo import FifoDirection
from liteprobe.sim.models.emulator.settings import Settings

# Station ------------------------------------------------------------------------------------------

FRAME_MAX = 1514
NEVER = 2**64 - 1

@dataclass(frozen=True)
class Progress:
    """Counts what a client has, as client.h lists it, and what either station sent again."""
    files: int
    octets: int
    wrong: int
    connections: int
    repeats: int
    resent: int

NAMES = tuple(field.name for field in fields(Progress))

class Station:
    """A stack that knows no time but the ticks that it is given, which must not go back.

    Parameters
    ----------
    number : SERVER serves the site, CLIENT fetches all of it, from tick 0 on.
    lengths : of the site's files (octets).
    is_kept : the client asks for all files over one connection.
    seed : of the stack's random numbers (ports, sequence numbers); not 0.
    """
    def __init__(self, number: int, lengths: Sequence[int], is_kept: bool, seed: int) -> None:
        # A library has one stack: each station loads a copy of its own.
        with TemporaryDirectory() as folder:
            self.library = ctypes.CDLL(str(shutil.copy(build.library(), pathlib.Path(folder) / "station.so")))
        take_in, run_timers, take_out = self.library.station_take_in, self.library.station_run_timers, self.library.station_take_out
        take_in.argtypes = [ctypes.c_uint64, ctypes.c_char_p, ctypes.c_uint16]
        run_timers.argtypes = [ctypes.c_uint64]
        take_out.argtypes = [ctypes.c_char_p]
        self.library.station_next_timer.restype = ctypes.c_uint64
        self.library.station_start.argtypes = [
            ctypes.c_uint, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint32), ctypes.c_uint32, ctypes.c_int,
        ]
        self.buffer = ctypes.create_string_buffer(FRAME_MAX)
        words = (ctypes.c_uint32 * len(lengths))(*lengths)
        if self.library.station_start(number, seed, words, len(lengths), is_kept):
            raise RuntimeError("the station didn't start: give at most 65536 files and a seed that isn't 0")

    def take_in(self, tick: int, frame: bytes) -> None:
        """Take a frame, without FCS, whose last octet came at a tick."""
        if self.library.station_take_in(tick * TICK_NS, frame, len(frame)):
            raise MemoryError("a station has no memory for a frame")

    def run_timers(self, tick: int) -> None:
        """Let the timers run that have run out by a tick."""
        self.library.station_run_timers(tick * TICK_NS)

    def next_timer(self) -> int:
        """Return the tick at which the next timer runs out."""
        time_ns = int(self.library.station_next_timer())
        return NEVER if time_ns == NEVER else -(-time_ns // TICK_NS)

    def take_out(self) -> Iterator[bytes]:
        """Yield the frames that leave, without FCS."""
        while length := self.library.station_take_out(self.buffer):
            yield self.buffer.raw[:length]

    def progress(self) -> Progress:
        """Return what the client has so far."""
        words = (ctypes.c_uint32 * len(NAMES))()
        self.library.station_read_progress(words)
        return Progress(*words)


# Network ------------------------------------------------------------------------------------------

FCS = 4
PREAMBLE = 8 # With the SFD; what a station sends at a tick has its first octet on the line in the next one.
CLASS = UNMATCHED_CLASS # Of all that the stations send.
ORDER = (CLIENT, SERVER)
Model = Callable[[Settings], Direction] | Callable[[Settings], FifoDirection]

class Path:
    """The way from one station to the other: its line, and a direction of the network."""
    def __init__(self, settings: Settings, destination: int, model: Model) -> None:
        self.direction = model(settings)
        self.destination = destination
        self.octets: list[bytes] = []
        self.least = self.direction.bank.classes[CLASS].delay
        self.free = 0
        if self.least < 1:
            raise ValueError(f"a network that delays nothing: give class {CLASS} a delay of 1 tick or more")

    def send(self, tick: int, frame: bytes) -> None:
        """Let a frame leave the station at a tick, or when its line is free."""
        start = max(tick + PREAMBLE, self.free)
        self.free = start + len(frame) + AROUND
        self.direction.arrive(start, len(frame), CLASS)
        self.octets.append(frame)

    def advance(self, tick: int) -> list[tuple[int, bytes]]:
        """Let the time go on; return the frames that arrive at the other station, and the ticks of their last octets."""
        left = self.direction.advance(tick, self.least)
        return [(start + len(self.octets[number]) + FCS, self.octets[number]) for start, number in left]

class Simulation:
    """A client, a server and the network between them.

    Parameters
    ----------
    there, back : of the direction from the client to the server, and back.
    lengths, is_kept, seed
        As of `Station`.
    start : the tick of the network at which the stations start; backgrounds begin at 0.
    model : of a direction.

    Attributes
    ----------
    tick : the simulated time.
    sent : list of (tick, destination, frame); all that arrived at a station.
    """
    def __init__(self, there: Settings, back: Settings, lengths: list[int], is_kept: bool, seed: int, start: int = 0,
        model: Model = Direction) -> None:
        self.stations = {number: Station(number, lengths, is_kept, 2 * seed + number) for number in ORDER}
        # By the station that sends.
        self.paths = {CLIENT: Path(there, SERVER, model), SERVER: Path(back, CLIENT, model)}
        self.files = len(lengths)
        self.start = self.tick = start
        self.coming: list[tuple[int, int, int, bytes]] = [] # Tick, order, destination, frame.
        self.order = 0
        self.sent: list[tuple[int, int, bytes]] = []
        self.least = min(path.least for path in self.paths.values())
        self.timers = {number: start + station.next_timer() for number, station in self.stations.items()}
        for number in ORDER:
            self.hand_out(number)

    def hand_out(self, number: int) -> None:
        """Let what a station has to send leave; see when it wants to be called."""
        for frame in self.stations[number].take_out():
            self.paths[number].send(self.tick, frame)
        self.timers[number] = self.start + self.stations[number].next_timer()

    def step(self) -> None:
        """Go on to the next event, or so far that what the stations send now hasn't arrived."""
        event = min(*self.timers.values(), self.coming[0][0] if self.coming else self.tick + self.least)
        self.tick = max(self.tick, min(event, self.tick + self.least))
        for path in self.paths.values():
            for tick, frame in path.advance(self.tick):
                self.order += 1
                heappush(self.coming, (tick, self.order, path.destination, frame))
        for number in ORDER:
            if self.timers[number] <= self.tick:
                self.stations[number].run_timers(self.tick - self.start)
                self.hand_out(number)
        while self.coming and self.coming[0][0] <= self.tick:
            tick, _, number, frame = heappop(self.coming)
            self.sent.append((tick, number, frame))
            self.stations[number].take_in(tick - self.start, frame)
            self.hand_out(number)

    def run(self, until: int) -> bool:
        """Go on until the client has all files, or a tick; return whether it has."""
        done = False
        while not done and self.tick < until:
            before = len(self.sent)
            self.step()
            if len(self.sent) > before:
                done = self.stations[CLIENT].progress().files == self.files
        return done

    def go_on(self, until: int) -> None:
        """Go on until a tick, whatever the client has."""
        while self.tick < until:
            self.step()

    def count(self, counter: int) -> int:
        """Return a counter of both directions."""
        return sum(path.direction.counts.of_class[CLASS][counter] for path in self.paths.values())
