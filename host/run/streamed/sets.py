# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends configuration sets: what sets are as a program of a streamed run."""

from collections.abc import Mapping
from dataclasses import dataclass

from liteprobe.cores.formats import NO_SEQUENCE, Part
from liteprobe.host.errors import UsageError
from liteprobe.host.run.routes import check_ports
from liteprobe.host.run.streamed.figures import Delays
from liteprobe.host.run.streamed.program import Show, StreamedDevice, StreamedPort, StreamOptions, Terms
from liteprobe.host.run.streamed.run import StreamedRun, target_of
from liteprobe.host.run.streamed.sets_figures import PortSets, SetsResult, SetsSummary
from liteprobe.host.run.streamed.sets_port import SetsPort
from liteprobe.host.traffic.sets import Sets


@dataclass(frozen=True)
class SetsOptions(StreamOptions):
    """How sets are sent; the rest as of `StreamOptions`.

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

    terms = Terms("these sets leave", "a lower --rate", "sent", "left", "send")

    def __init__(self, probe: StreamedDevice, number: int, sets: Sets, options: SetsOptions) -> None:
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


def send_sets(
    probe: StreamedDevice,
    sets: Sets | Mapping[int, Sets],
    options: SetsOptions | None = None,
    show: Show | None = None,
) -> SetsResult:
    """Send the frames that a probe makes of sets, and return what came of it.

    Parameters
    ----------
    probe : StreamedDevice
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
    check_ports([(probe, number) for number in given], "transmit", False)
    target = target_of(probe, options.patience_s)
    jobs = [SentSets(probe, number, one, options) for number, one in sorted(given.items())]
    return StreamedRun(probe, jobs, target, options, show).run()
