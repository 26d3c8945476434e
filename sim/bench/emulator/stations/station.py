# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A station in this process: a web server or a client on a TCP/IP stack of its own."""

import ctypes
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory

from liteprobe.cores.formats import TICK_NS
from liteprobe.sim.bench.emulator.stations import build

FRAME_MAX = 1514
NEVER = 2**64 - 1

@dataclass(frozen=True)
class Progress:
    """What a client has, as client.h lists it; what either station sent again."""
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
    number : int
        SERVER serves the site, CLIENT fetches all of it, from tick 0 on.
    lengths : sequence of int
        Of the site's files (octets).
    is_kept : bool
        The client asks for all files over one connection.
    seed : int
        Of the stack's random numbers (ports, sequence numbers); not 0.
    """
    def __init__(self, number: int, lengths: Sequence[int], is_kept: bool, seed: int) -> None:
        # A library has one stack: each station loads a copy of its own.
        with TemporaryDirectory() as folder:
            self.library = ctypes.CDLL(str(shutil.copy(build.library(), Path(folder) / "station.so")))
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
