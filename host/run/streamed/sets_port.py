# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The transmit side of a port that makes frames of configuration sets: what is the same in all of them, and what it counts."""

from dataclasses import dataclass

from liteprobe.cores.formats import NO_SEQUENCE, SetError
from liteprobe.host.device.registers import Registers
from liteprobe.host.run.port import TransmitPort
from liteprobe.host.traffic.intervals import NOMINAL
from liteprobe.host.traffic.sets import Sets

ENDLESS = 0xFFFFFFFF  # Frames of a train, and trains: 2^64 frames.
TABLE = "sets_table"
COUNTERS = ("sets", "repeats", "underruns", "first_underrun", "error")

#: What to do about a program that ended before its sets did.
ERRORS = {
    SetError.CONTROL: "it has an unknown control octet",
    SetError.FIELD: "it has a field that these sets have not",
    SetError.INCOMPLETE: "it is the first one and lacks a field",
    SetError.LENGTH: "its length is out of range: give 60 to 9000",
    SetError.INDEX: "its index is beyond the probe's table",
}


@dataclass(frozen=True)
class SetsCounts:
    """What a port counts of a program of sets.

    Attributes
    ----------
    sets : int
        Frames that were made of sets.
    repeats : int
        Frames that were the last one again, because no set was there in time.
    underruns : int
        Frames whose sets were waited for after they were due.
    first_underrun : int or None
        Number of the first of them, from 0.
    error : SetError
        Why the program ended before its sets did; the bad one is number ``sets``, from 0.
    """

    sets: int
    repeats: int
    underruns: int
    first_underrun: int | None
    error: SetError

    @property
    def fault(self) -> str:
        """What is wrong with the set that ended the program, "" if nothing is."""
        return f"set {self.sets} can't be sent: {ERRORS[self.error]}" if self.error else ""


class SetsPort(TransmitPort):
    """The transmit side of a port with sets.

    Parameters
    ----------
    registers, number : as of `TransmitPort`
    """

    def __init__(self, registers: Registers, number: int) -> None:
        super().__init__(registers, number)
        self._sets = f"port{number}_sets_"

    def load_sets(
        self, sets: Sets, increment: int = NOMINAL, count: int | None = None, is_attached: bool = True
    ) -> None:
        """Write what is the same in all frames, and the table; nothing is sent before ``arm_sets``, words and a start.

        Parameters
        ----------
        sets : Sets
        increment : int
            Nanoseconds a tick of the probe's clock, in 8.40 fixed point.
        count : int or None
            Frames at most, repeated ones included, 1 to 2^32-1; None: until the sets end.
        is_attached : bool
            The program ends when this host lets go of the probe, or is gone.
        """
        settings = sets.settings(increment)
        self._registers.write_memory(self._header, 0, list(settings.header))
        if len(sets.table):
            self._registers.write_memory(TABLE, 0, sets.table.tolist())
        self._write_many(
            length=settings.length,
            count=ENDLESS if count is None else count,
            repeats=ENDLESS if count is None else 1,
            interval_ticks=settings.interval,
            interval_fraction=settings.fraction,
            gap_ticks=0,
            start_time=0,
            timed=0,
            attached=int(is_attached),
        )
        own = {
            "fields": int(settings.fields),
            "places": settings.places,
            "first_repeats_allowed": settings.repeats,
            **{f"template{number}": word for number, word in enumerate(settings.template)},
        }
        self._registers.write_many({self._sets + name: value for name, value in own.items()})

    def arm_sets(self) -> None:
        """Take the program, and build its first frames as soon as their sets are there."""
        self._registers.write(self._sets + "arm", 1)

    def sets_counts(self) -> SetsCounts:
        """Return all that is counted of sets."""
        names = [self._sets + name for name in COUNTERS]
        sets, repeats, underruns, first, error = self._registers.read_many(names).values()
        return SetsCounts(sets, repeats, underruns, None if first == NO_SEQUENCE else first, SetError(error))
