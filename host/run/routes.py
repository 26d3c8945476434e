# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What a run is made of: programs on their way from a port to another, of one probe or of two."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import Part
from liteprobe.host.clock.timebase import Timebase
from liteprobe.host.device.link.base import Link
from liteprobe.host.device.phy import Links
from liteprobe.host.device.registers import Registers
from liteprobe.host.errors import UsageError
from liteprobe.host.run.port import Port
from liteprobe.host.traffic.train import Schedule, TrainProgram

RECORDS_MAX = 20_000_000  # Half a gigabyte on the host; longer programs are measured by the accumulators alone.


class Devices(Protocol):
    """What a run works with: the parts of a probe (`Probe` is one)."""

    url: str
    link: Link
    registers: Registers
    timebase: Timebase
    links: Links
    ports: list[Port]

    def need(self, part: Part) -> None:
        """Raise UsageError where the probe has no such part."""


@dataclass(frozen=True)
class Route:
    """A program on its way from a port of a probe to a port of the same one, or of another.

    Attributes
    ----------
    program : TrainProgram
        What is sent.
    sender, receiver : Devices
        Probes.
    transmit, receive : int
        Ports.
    is_recorded : bool
        Each frame has a record; else it is measured by accumulators alone.
    """

    program: TrainProgram
    sender: Devices
    receiver: Devices
    transmit: int = 0
    receive: int = 0
    is_recorded: bool = True


@dataclass
class Job:
    """A route while its program runs."""

    route: Route
    program: TrainProgram
    schedule: Schedule
    records: list[NDArray[np.void]] = field(default_factory=list)
    drained: int = 0
    sent: int = 0
    is_running: bool = True
    is_cut: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def transmit(self) -> Port:
        """The port that sends."""
        return self.route.sender.ports[self.route.transmit]

    @property
    def receive(self) -> Port:
        """The port that measures."""
        return self.route.receiver.ports[self.route.receive]

    @property
    def with_records(self) -> bool:
        """Whether each frame has a record."""
        return self.route.is_recorded and self.receive.receive.keeps_records and self.program.total <= RECORDS_MAX

    @property
    def fits(self) -> bool:
        """Whether the ring holds the whole program, so that nobody need drain it."""
        return not self.with_records or self.program.total <= self.receive.receive.depth

    @property
    def rest_ns(self) -> float:
        """Time in which the ring may be left alone: none after a drain that found a quarter of it full."""
        quarter = self.receive.receive.depth // 4
        interval_ns = self.program.interval_ns or 8.0 * self.program.slot_ticks
        return quarter * interval_ns if self.drained < quarter else 0.0

    def name_of(self, port: Port) -> str:
        """Return what a message calls a port: with its probe, where there are two."""
        if self.route.sender is self.route.receiver:
            return f"port {port.number}"
        probe = self.route.sender if port is self.transmit else self.route.receiver
        return f"port {port.number} of {probe.url}"

    def drain(self) -> None:
        """Fetch what is in the ring."""
        if self.with_records:
            self._keep(self.receive.receive.drain())

    def finish(self) -> None:
        """Fetch the last records."""
        if self.with_records:
            self._keep(self.receive.receive.finish())

    def _keep(self, records: NDArray[np.void]) -> None:
        self.records.append(records)
        self.drained = len(records)


def check_ports(ends: Sequence[tuple[Devices, int]], direction: str, is_named: bool) -> None:
    """Raise UsageError where a probe has no such port, or where one is given twice; ``is_named``: say which probe."""
    for probe, number in ends:
        if not 0 <= number < len(probe.ports):
            where = f" in {probe.url}" if is_named else ""
            raise UsageError(f"there is no {direction} port {number}{where}: give 0 to {len(probe.ports) - 1}")
    if len({(id(probe), number) for probe, number in ends}) != len(ends):
        raise UsageError(f"a {direction} port is given twice: each takes one program at a time")
