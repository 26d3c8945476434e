# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends configuration sets: what is the same in all frames of a port, its sets as a streamed program, and what it counts."""

from collections.abc import Mapping
from dataclasses import dataclass

from liteprobe.cores.formats import NO_SEQUENCE, Part, SetError
from liteprobe.host.device.registers import Registers
from liteprobe.host.errors import UsageError
from liteprobe.host.run.engine import ErrorWording, RunDevice, check_ports
from liteprobe.host.run.port import TransmitPort
from liteprobe.host.run.sets_figures import PortSets, SetsCounts, SetsResult, SetsSummary
from liteprobe.host.run.streamed import Show, StreamedPort, StreamedRun, StreamOptions, target_of
from liteprobe.host.run.streamed_figures import Delays
from liteprobe.host.traffic.intervals import NOMINAL
from liteprobe.host.traffic.sets import Sets

ENDLESS = 0xFFFFFFFF  # Frames of a train, and trains: 2^64 frames.
TABLE = "sets_table"
COUNTERS = ("sets", "repeats", "underruns", "first_underrun", "error")


class SetsPort(TransmitPort):
    """The transmit side of a port that makes frames of configuration sets.

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


@dataclass(frozen=True)
class SetsOptions(StreamOptions):
    """Options of sending sets; the rest as of `StreamOptions`.

    Parameters
    ----------
    count : int or None
        Frames at most, repeated ones included; None: until the sets end.
    """

    count: int | None = None


class SentSets(StreamedPort[PortSets]):
    """Sets on their port.

    Parameters
    ----------
    probe, number : as of `StreamedPort`
    sets : Sets
    options : SetsOptions
    """

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
        first_late = counters["first_late"]
        return PortSets(
            port=self.port.number,
            asked=self.asked,
            frames=counters["sent"],
            late=counters["late"],
            first_late=None if first_late == NO_SEQUENCE else first_late,
            underruns=counts.underruns,
            first_underrun=counts.first_underrun,
            sent=self.sent,
            receive=self.receive,
            delays=delays,
            counts=counts,
            summary=self._summary,
            is_counted=self._count is not None,
        )


class SetsRun(StreamedRun[PortSets]):
    """A streamed run of sets."""

    wording = ErrorWording("the sets", "while it sent", "send")


def send_sets(
    probe: RunDevice,
    sets: Sets | Mapping[int, Sets],
    options: SetsOptions | None = None,
    show: Show | None = None,
) -> SetsResult:
    """Send the frames that a probe makes of sets, and return what came of it.

    Parameters
    ----------
    probe : RunDevice
    sets : Sets or mapping of int to Sets
        By port, all from the same tick; one alone is sent from the port of its stream. Other processes go through them: a script
        that puts functions or classes of its own into them begins with ``if __name__ == "__main__":``.
    options : SetsOptions or None
    show : callable or None
        Given a look, now and then.

    Raises
    ------
    UsageError
        When the probe, its link or a port can't.
    ProbeError, KeyboardInterrupt
        As of `StreamedRun`.
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
