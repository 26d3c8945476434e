# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends configuration sets: what is the same in all frames of a port, its sets as a streamed program, and what it counts."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from liteprobe.cores.formats import DATAGRAM_HEADER_WORDS, DATAGRAM_WORDS, NO_SEQUENCE, OVERHEAD, Part, SetError
from liteprobe.host.analysis.columns import MEGA, Column, Columns
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.validate import validated
from liteprobe.host.device.registers import Registers
from liteprobe.host.run.engine import ErrorWording, RunDevice, check_ports
from liteprobe.host.run.port import TransmitPort
from liteprobe.host.run.streamed import (
    Delays,
    PortFigures,
    Show,
    StreamedPort,
    StreamedResult,
    StreamedRun,
    StreamOptions,
    target_of,
)
from liteprobe.host.traffic.intervals import NOMINAL
from liteprobe.host.traffic.load import share_of
from liteprobe.host.traffic.sets import Sets

ENDLESS = 0xFFFFFFFF  # Frames of a train, and trains: 2^64 frames.
TABLE = "sets_table"
COUNTERS = ("sets", "repeats", "underruns", "first_underrun", "error")
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
    """Counts of a port that makes frames of sets."""

    sets: int  # Frames that were made of sets.
    repeats: int  # Frames that were the last one again, because no set was there in time.
    underruns: int  # Frames whose sets were waited for after they were due.
    first_underrun: int | None  # Number of the first of them, from 0.
    error: SetError  # Why the program ended before its sets did; the bad one is number ``sets``, from 0.

    @property
    def fault(self) -> str:
        """The fault of the set that ended the program, "" if nothing is."""
        return f"set {self.sets} can't be sent: {ERRORS[self.error]}" if self.error else ""


@dataclass(frozen=True)
class SetsSummary:
    """Figures of sets where frames have the length of the stream."""

    fields: tuple[str, ...]
    set_octets: int  # Of a set with all fields, its control octet included.
    entries: int  # Of the table.
    repeats: int  # That are allowed in a row at first.
    frames_per_s: float  # Of the frames.
    rate_bps: float  # On the wire (frame + 24 octets).
    share: float  # Which part of the line that is.
    stream_bps: float  # That the sets take on the way to the probe, in runs, IP.

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
    """Figures of what a port sent of sets; the rest as of `PortFigures`."""

    counts: SetsCounts
    summary: SetsSummary
    is_counted: bool  # No more than so many frames were asked for, so sets may be left over.

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


class SetsPort(TransmitPort):
    """The transmit side of a port that makes frames of configuration sets."""

    def __init__(self, registers: Registers, number: int) -> None:
        super().__init__(registers, number)
        self._sets = f"port{number}_sets_"

    def load_sets(
        self, sets: Sets, increment: int = NOMINAL, count: int | None = None, is_attached: bool = True
    ) -> None:
        """Write what is the same in all frames, and the table; nothing is sent before ``arm_sets``, words and a start.

        Parameters
        ----------
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


@validated
@dataclass(frozen=True)
class SetsOptions(StreamOptions):
    """Options of sending sets; the rest as of `StreamOptions`."""

    count: int | None = None  # Frames at most, repeated ones included; None: until the sets end.


class SentSets(StreamedPort[PortSets]):
    """Sets on their port."""

    leaves, slower = "these sets leave", "a lower --rate"

    def __init__(self, probe: RunDevice, number: int, sets: Sets, options: SetsOptions) -> None:
        super().__init__(probe, number)
        self._probe, self._sets, self._count = probe, sets, options.count
        self._transmit = SetsPort(probe.registers, number)
        self._summary = SetsSummary.of(sets, probe.timebase.increment)
        self.prime, self.load = options.prime_words, self._summary.share
        self.asked = min((one for one in (options.count, sets.frames) if one is not None), default=None)
        stream = sets.stream
        self.stamp = stream.used_stamp
        self.signature = stream.headers.payload_offset if stream.probe else None

    @property
    def words(self) -> Sets:
        """The sets themselves."""
        return self._sets

    def load_port(self) -> None:
        """Load what is the same in all frames, and the table."""
        self._transmit.load_sets(self._sets, self._probe.timebase.increment, self._count)

    def arm(self) -> None:
        """Take sets as soon as they are there."""
        self._transmit.arm_sets()

    def figures(self, delays: Delays | None) -> PortSets:
        """Return what the port sent."""
        counters = self._transmit.counters()
        counts = self._transmit.sets_counts()
        return PortSets(
            **self.common_figures(counters["sent"], counters["late"], counters["first_late"], delays),
            underruns=counts.underruns,
            first_underrun=counts.first_underrun,
            counts=counts,
            summary=self._summary,
            is_counted=self._count is not None,
        )


class SetsRun(StreamedRun[PortSets]):
    """A streamed run of sets."""

    wording = ErrorWording("the sets", "while it sent", "send")


@validated
def send_sets(
    probe: RunDevice,
    sets: Sets | Mapping[int, Sets],
    options: SetsOptions | None = None,
    show: Show | None = None,
) -> SetsResult:
    """Send the frames that a probe makes of sets, and return what came of it.

    Raises UsageError when the probe, its link or a port can't; ProbeError, KeyboardInterrupt as of `StreamedRun`.

    Parameters
    ----------
    sets : Sets or mapping of int to Sets
        By port, all from the same tick; one alone is sent from the port of its stream. Other processes go through them: a script
        that puts functions or classes of its own into them begins with ``if __name__ == "__main__":``.
    show : callable or None
        Given a look, now and then.
    """
    options = options or SetsOptions()
    given = {sets.stream.port: sets} if isinstance(sets, Sets) else sets
    probe.need(Part.SETS)
    if not given:
        raise UsageError("there are no sets to send: give some")
    tables = [one.table.tolist() for one in given.values() if "index" in one.fields]
    if any(table != tables[0] for table in tables):
        raise UsageError("sets of several ports have different tables, the probe has one: give all of them the same")
    check_ports([(probe, number) for number in given], "transmit")
    target = target_of(probe, options.patience_s)
    jobs = [SentSets(probe, number, one, options) for number, one in sorted(given.items())]
    return SetsRun(probe, jobs, target, options, show).run()
