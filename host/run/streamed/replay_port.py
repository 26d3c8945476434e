# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The side of a port that replays what the host streams to it."""

from dataclasses import dataclass, fields

from liteprobe.host.device.registers import Registers

NO_FRAME = 0xFFFFFFFF  # ``first_underrun`` while no frame came too late.


@dataclass(frozen=True)
class ReplayCounts:
    """What a port counts of a replay.

    Attributes
    ----------
    frames : int
        That were sent.
    underruns : int
        Frames whose last word came into the ring after they were due.
    first_underrun : int or None
        Number of the first of them, from 0.
    errors : int
        Records that no frame can be made of; the program ends there.
    accepted : int
        Position (words, modulo 2^32) up to which words are in the ring.
    datagrams, repeated, early, full : int
        Datagrams that were taken; that were there already; that were ahead of a missing one; that found no room.
    strange : int
        Of another session, lease, port or length.
    """

    frames: int
    underruns: int
    first_underrun: int | None
    errors: int
    accepted: int
    datagrams: int
    repeated: int
    early: int
    full: int
    strange: int


class ReplayPort:
    """The replay side of a port.

    Parameters
    ----------
    registers : Registers
        Of the probe.
    number : int
        Of the port.
    """

    def __init__(self, registers: Registers, number: int) -> None:
        self._registers = registers
        self._prefix = f"port{number}_replay_"

    def open(self, session: int, loops: int, prime: int) -> None:
        """Empty the ring and clear the counters for a session.

        Parameters
        ----------
        session : int
            Its number, 16 bits.
        loops : int
            How often what is in the ring is sent; 0: without an end; 1: it need not find room there.
        prime : int
            Words that must be in the ring, or the last record, before the program is ready.
        """
        self._registers.write_burst({self._prefix + "session": session})
        values = {"loops": loops, "prime": prime}
        self._registers.write_many({self._prefix + name: value for name, value in values.items()})
        self._registers.write(self._prefix + "open", 1)

    def prime(self, words: int) -> None:
        """Have the program start with so many words: there are no more."""
        self._registers.write(self._prefix + "prime", words)

    def close(self) -> None:
        """End the session: what is streamed to it is not taken any more."""
        self._registers.write(self._prefix + "close", 1)

    def arm(self) -> None:
        """Take the first records as soon as they are there."""
        self._registers.write(self._prefix + "arm", 1)

    def counts(self) -> ReplayCounts:
        """Return all counters."""
        values = self._registers.read_many(self._prefix + one.name for one in fields(ReplayCounts))
        found = {name.removeprefix(self._prefix): value for name, value in values.items()}
        first = found.pop("first_underrun")
        return ReplayCounts(first_underrun=None if first == NO_FRAME else first, **found)
