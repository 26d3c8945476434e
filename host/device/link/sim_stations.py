# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Stations at the ends of a simulated probe's lines: what they are, and what they have seen."""

from dataclasses import dataclass
from pathlib import Path

CLIENT, SERVER = 1, 2
TICK_NS = 8


@dataclass(frozen=True)
class Station:
    """A station with a TCP/IP stack of its own, whose clock is the simulation's.

    Attributes
    ----------
    library : Path
        The stack, compiled.
    number : int
        SERVER serves a web site, CLIENT fetches all of it.
    lengths : tuple of int
        Of its files (octets).
    is_kept : bool
        Whether the client asks for all of them over one connection.
    seed : int
        Of the stack's random numbers; not 0.
    """

    library: Path
    number: int
    lengths: tuple[int, ...]
    is_kept: bool
    seed: int


@dataclass(frozen=True)
class Seen:
    """What went over the line of a port until now.

    Attributes
    ----------
    played, is_playing : int, bool
        Frames of captures that went into the port; whether more are to come.
    sent : int
        Frames of the station, that wait for the line, too.
    frames, octets, wrong : int
        That came from the port with a good FCS, and their octets without it; that came with a wrong one.
    done_ticks : int
        From its start until a client had all files; 0: it hasn't, or is none.
    files, content, misread, connections, repeats, resent : int
        Of a stack: files and octets of content that it has fetched; octets that aren't those of the site; connections that it
        has opened; fetches begun anew since their connection broke; segments that it has sent again.
    """

    played: int
    is_playing: bool
    sent: int
    frames: int
    octets: int
    wrong: int
    done_ticks: int = 0
    files: int = 0
    content: int = 0
    misread: int = 0
    connections: int = 0
    repeats: int = 0
    resent: int = 0
