# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Holds the figures of configuration sets: what they come to before, and what was sent of them."""

from dataclasses import asdict, dataclass
from typing import Any

from liteprobe.cores.formats import DATAGRAM_HEADER_WORDS, DATAGRAM_WORDS, OVERHEAD, SetError
from liteprobe.host.analysis.columns import MEGA, Column, Columns
from liteprobe.host.run.streamed_figures import PortFigures, StreamedResult
from liteprobe.host.traffic.intervals import NOMINAL
from liteprobe.host.traffic.load import share_of
from liteprobe.host.traffic.sets import Sets

LINE_BPS = 10**9
PAYLOAD, AROUND = 4 * DATAGRAM_WORDS, 20 + 8 + 4 * DATAGRAM_HEADER_WORDS  # Octets of a datagram, and around them in IP.


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
    """Counts of a port that makes frames of sets.

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


@dataclass(frozen=True)
class SetsSummary:
    """What sets come to where frames have the length of the stream.

    Attributes
    ----------
    fields : tuple of str
    set_octets : int
        Of a set with all fields, its control octet included.
    entries : int
        Of the table.
    repeats : int
        That are allowed in a row at first.
    frames_per_s, rate_bps, share : float
        Of the frames: how many, on the wire (frame + 24 octets), and which part of the line that is.
    stream_bps : float
        That the sets take on the way to the probe, in runs, IP.
    """

    fields: tuple[str, ...]
    set_octets: int
    entries: int
    repeats: int
    frames_per_s: float
    rate_bps: float
    share: float
    stream_bps: float

    @classmethod
    def of(cls, sets: Sets, increment: int = NOMINAL) -> "SetsSummary":
        """Return that of sets; ``increment``: ns a tick of the probe's clock, in 8.40 fixed point."""
        share = float(share_of(sets.stream, increment))
        frames_per_s = share * LINE_BPS / (8 * (sets.stream.length.least + OVERHEAD))
        stream_bps = 8 * frames_per_s * (sets.set_octets - 1) * (PAYLOAD + AROUND) / PAYLOAD
        return cls(
            sets.fields,
            sets.set_octets,
            len(sets.table),
            sets.repeats,
            frames_per_s,
            share * LINE_BPS,
            share,
            stream_bps,
        )


@dataclass(frozen=True, kw_only=True)
class PortSets(PortFigures):
    """What a port sent of sets; the rest as of `PortFigures`.

    Attributes
    ----------
    counts : SetsCounts
    summary : SetsSummary
    is_counted : bool
        No more than so many frames were asked for, so sets may be left over.
    """

    counts: SetsCounts
    summary: SetsSummary
    is_counted: bool

    @property
    def is_whole(self) -> bool:
        """Whether all sets were sent, and none of them was waited for."""
        return (self.sent.is_all or self.is_counted) and not self.counts.fault and not self.underruns

    @property
    def rate_bps(self) -> float:
        """Of its frames, as planned (on the wire)."""
        return self.summary.rate_bps

    def notes(self, was_stopped: bool) -> list[str]:
        """Return what the reader of the figures must know, a sentence each."""
        notes = [self.counts.fault] if self.counts.fault else []
        if self.underruns:
            notes.append(
                f"{self.underruns} frames were waited for after they were due, number {self.first_underrun} first: lower the rate, "
                "or allow repeats"
            )
        return notes + self.without_stamp()

    def row(self) -> dict[str, Any]:
        """Return the figures as what JSON can hold."""
        counts = asdict(self.counts) | {"error": self.counts.error.name.lower()}
        return super().row() | {"counts": counts, "planned": asdict(self.summary)}


SetsResult = StreamedResult[PortSets]
#: Of sets alone: of a port what it sent, and what was planned.
OF_SETS = Columns(
    Column("sets", "of sets", "Of sets", of=lambda one: one.counts.sets),
    Column("repeats", "repeats", "Repeats", of=lambda one: one.counts.repeats),
)


def _planned(key: str, title: str, digits: int = 0, scale: float = 1.0) -> Column:
    return Column(key, "", title, digits, scale, of=lambda one: getattr(one.summary, key))


PLANNED = Columns(
    Column("fields", "", "Fields", of=lambda one: ", ".join(one.summary.fields) or None),
    _planned("set_octets", "Octets\nof a set"),
    _planned("entries", "Entries of\nthe table"),
    _planned("repeats", "Repeats\nallowed"),
    _planned("frames_per_s", "Frames\na second", 1),
    _planned("rate_bps", "Mb/s", 3, MEGA),
    _planned("share", "Of the line,\n%", 3, 0.01),
    _planned("stream_bps", "Stream to the\nprobe, Mb/s", 3, MEGA),
)
