# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Datagrams that carry words to a probe, and its answers.

Source: cores/formats/replay.py ("Datagrams").
"""

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import (
    DATAGRAM_HEADER_WORDS,
    DATAGRAM_MAGIC,
    DATAGRAM_WORDS,
    SLOT_HEADER_WORDS,
    SLOT_WORDS,
    STATUS_WORDS,
    DatagramFlag,
    StatusFlag,
)


@dataclass(frozen=True)
class Shape:
    """What carries words to a probe: words of its header, and behind it at most."""

    header: int
    words: int

    @property
    def octets(self) -> int:
        """Octets of one."""
        return 4 * (self.header + self.words)


DATAGRAM = Shape(DATAGRAM_HEADER_WORDS, DATAGRAM_WORDS)
DMA_SLOT = Shape(SLOT_HEADER_WORDS, SLOT_WORDS)  # Its header is that of a datagram, and its length.
HEADER_OCTETS = 4 * DATAGRAM_HEADER_WORDS
SLOT_OCTETS = DATAGRAM.octets
STATUS = struct.Struct(f"<{STATUS_WORDS}I")
FLAGS_OCTET = 1  # Of a datagram, in which its flags are.
POSITIONS = 1 << 32


@dataclass(frozen=True)
class Session:
    """What all datagrams of a port carry.

    Parameters
    ----------
    port : int
        Of the probe.
    number : int
        Of the session, 16 bits.
    lease : int
        Under which this host has the probe, 16 bits.
    """

    port: int
    number: int
    lease: int


@dataclass(frozen=True)
class Status:
    """An answer of the probe.

    Attributes
    ----------
    session : Session
    flags : StatusFlag
    accepted : int
        Position (words, modulo 2^32) up to which the probe has all words.
    limit : int
        Position up to which it has room.
    refused : int
        Datagrams that were not accepted; modulo 2^16.
    underruns : int
        Frames that came too late; modulo 2^16.
    frames : int
        Frames that were sent.
    """

    session: Session
    flags: StatusFlag
    accepted: int
    limit: int
    refused: int
    underruns: int
    frames: int


def decode_status(datagram: bytes | memoryview) -> Status | None:
    """Return an answer taken apart, or None when ``datagram`` is something else."""
    if len(datagram) != STATUS.size:
        return None
    first, second, accepted, limit, counts, frames = STATUS.unpack(datagram)
    if first >> 16 != DATAGRAM_MAGIC:
        return None
    session = Session(first & 0xFF, second >> 16, second & 0xFFFF)
    return Status(session, StatusFlag(first >> 8 & 0xFF), accepted, limit, counts >> 16, counts & 0xFFFF, frames)


def write_headers(slots: NDArray[Any], session: Session, first: int, shape: Shape, words: int) -> None:
    """Write the headers of datagrams of ``words`` words, or of slots of a DMA: those from number ``first`` of the session on."""
    positions = shape.words * (first + np.arange(len(slots), dtype=np.int64))
    slots[:, 0] = DATAGRAM_MAGIC << 16 | session.port
    slots[:, 1] = session.number << 16 | session.lease
    slots[:, 2] = positions & (POSITIONS - 1)
    slots[:, 3 : shape.header] = words


def ask(octets: memoryview, at: int) -> None:
    """Let the datagram that begins at octet ``at`` ask for an answer at once."""
    octets[at + FLAGS_OCTET] |= DatagramFlag.ASK
