# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs what ports send, from one start to its end: links, lease, start in one tick, looks, stop, last frames, notes.

A kind of run (`TrainRun`, `Traffic`, `StreamedRun`, `Emulation`) is a `PortRun` in a file of its own, with the registers, the plan
and the records that it needs. It says what it writes (``load``), what a look reads, when it is over and what it reads at the end.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, NoReturn, Protocol

from liteprobe.cores.formats import Part, TransmitState
from liteprobe.host.base.errors import BusyError, ProbeError, UsageError
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.base.line import Line
from liteprobe.host.clock.clock import ClockVerdict, ClockWatch, watch_all
from liteprobe.host.clock.timebase import Timebase
from liteprobe.host.device.lease import NAMELESS, HostLease
from liteprobe.host.device.link.base import Link
from liteprobe.host.device.phy import Links
from liteprobe.host.device.registers import Registers
from liteprobe.host.run.port import ProbePort

READY_TIMEOUT_NS = 20_000_000
START_MARGIN_NS = 1_000_000  # From the last look at the clock to the start: a few datagrams.
SETTLE_PARTS = 100  # Of the arrival timeout: a duplicate follows its original sooner than that.
IN_BAND_PORT = 0


class RunDevice(Protocol):
    """A probe as a run sees it: a `Probe`, or what stands for one."""

    url: str
    link: Link
    registers: Registers
    lease: HostLease
    timebase: Timebase
    links: Links
    ports: list[ProbePort]
    port_count: int

    @property
    def line(self) -> Line:
        """Line of its test ports."""

    def need(self, part: Part) -> None:
        """Raise UsageError where the probe has no such part."""

    def wait(self, seconds: float) -> None:
        """Let ``seconds`` of the probe's time pass."""


class PortEnd(NamedTuple):
    """A port that a run uses, with its probe and what messages call it."""

    probe: RunDevice
    port: ProbePort
    name: str

    @classmethod
    def of(cls, probe: RunDevice, number: int, is_named: bool = False) -> "PortEnd":
        """Return a port of a run; ``is_named``: messages name its probe, too, as there are two."""
        return cls(probe, probe.ports[number], f"port {number} of {probe.url}" if is_named else f"port {number}")


@dataclass(frozen=True)
class ErrorWording:
    """Words of a kind of run in messages."""

    subject: str  # As in "the probe did not start ...".
    during: str  # As in "the link of port 0 went down ...".
    again: str  # As in "plug in its cable, and ... again".
    restart: str = "Run again"  # As in "was a port stopped from its console? ...".
    prepared: str = "its first frames"  # As in "the probe doesn't get ... ready".


class PortRun:
    """One start of ports of one probe or several, all in the same tick; a kind of run adds what it sends and measures.

    Parameters
    ----------
    senders, receivers : sequence of PortEnd
        Ports that send; those that measure what comes.
    """

    wording: ClassVar[ErrorWording]  # Of the kind of run.

    def __init__(self, senders: Sequence[PortEnd], receivers: Sequence[PortEnd] = ()) -> None:
        self.senders, self.receivers = senders, receivers
        self.probes = list({id(end.probe): end.probe for end in (*senders, *receivers)}.values())
        self.patience_s = self.probes[0].link.arrival_timeout_s  # Without a frame for so long, none comes any more.
        self.end = ""  # Why it has ended; empty: it has not.
        self.notes: list[str] = []  # What the reader of the figures must know, of what came before the start.
        self._left_out = 0  # Writes of other hosts that the probes left out.
        self.clocks: Mapping[int, ClockWatch] = {}  # By the id of the probe, from the start on.
        self.is_measured, self.is_started = True, False  # Its receivers measure it; it has been started.

    # What a kind of run adds ----------------------------------------------------------------------

    def load(self) -> None:
        """Write what is sent and measured, and arm it; the ports are this run's."""
        raise NotImplementedError

    def starting(self, probe: RunDevice, now_ns: int) -> float:
        """Note that a probe starts after ``now_ns`` of its clock; return for how long (s) it then may not answer, in band."""
        return 0.0

    def partial_results(self) -> list[Any]:
        """Return what was measured until a signal stopped the run."""
        return []

    # Begin ----------------------------------------------------------------------------------------

    def begin(self, is_measured: bool = True) -> None:
        """See that links are up, take the ports, load and start.

        Raises ProbeError when a link is down, or the probe does not get ready.
        """
        self.prepare(is_measured)
        self.start_all()

    def prepare(self, is_measured: bool = True) -> None:
        """Do all of ``begin`` but the start."""
        self.is_measured = is_measured
        self.check_links()
        for probe in self.probes:
            probe.registers.own()
        for end in self.senders:
            check_free(*end)
        for end in self.senders:
            self.notes += end.port.free(end.probe.timebase)
            end.port.sends_for = self
        if is_measured:
            for end in self.receivers:
                end.port.measures_for = self
        self.load()

    def check_links(self) -> None:
        """Raise ProbeError unless each port has a link that can be measured, and note what PHYs say of it."""
        for probe, port, name in dict.fromkeys((*self.senders, *self.receivers)):
            check_link(probe, port, name)
            probe.links.check(port.number, port.receive.latch_line)
        for probe in self.probes:
            self.notes += probe.links.notes()

    def start_all(self) -> None:
        """Start all that is armed in one tick of each probe."""
        self.clocks = watch_all({id(probe): (probe.url, probe.timebase.clock) for probe in self.probes})
        senders = list({id(end.probe): end.probe for end in self.senders}.values())
        ready_ns = [self.await_ready(probe) for probe in senders]
        for probe, now_ns in zip(senders, ready_ns, strict=True):
            probe.link.expect_silence(self.starting(probe, now_ns))
            probe.registers.write(
                "probe_start", sum(1 << end.port.number for end in self.senders if end.probe is probe)
            )
        self.is_started = True

    def await_ready(self, probe: RunDevice) -> int:
        """Wait until all ports of a probe have their first frames, and return the time of the last look at the clock (ns)."""
        ports = [end.port for end in self.senders if end.probe is probe]
        now_ns = probe.timebase.now_ns
        deadline_ns = now_ns + READY_TIMEOUT_NS
        while any(port.transmit.look()[0] != TransmitState.READY for port in ports):
            now_ns = probe.timebase.now_ns
            if now_ns > deadline_ns:
                raise ProbeError(
                    f"the probe doesn't get {self.wording.prepared} ready: reset it, and report this with the command"
                )
        return now_ns

    # While it runs --------------------------------------------------------------------------------

    @property
    def clock(self) -> ClockVerdict:
        """State of the first probe's clock, from the start until now."""
        probe = self.probes[0]
        return (self.clocks.get(id(probe)) or ClockWatch(probe.timebase.clock)).end()

    def all_notes(self) -> list[str]:
        """Return the notes until now, and one of the writes of other hosts."""
        self._left_out += sum(probe.lease.left_out() for probe in self.probes)
        note = f"another host, without the lease, wrote to the probe: its writes were left out (requests: {self._left_out})"
        return [*self.notes, *[note] * bool(self._left_out)]

    def check_started(self, state: TransmitState) -> None:
        """Raise ProbeError where a port still waits for its start."""
        if state in (TransmitState.ARMED, TransmitState.READY):
            raise ProbeError(
                f"the probe did not start {self.wording.subject}: was a port stopped from its console? {self.wording.restart}"
            )

    def lose_link(self, name: str, so_far: str) -> NoReturn:
        """Raise ProbeError: the link of a port went down; ``so_far``: how many frames had passed, in words."""
        raise ProbeError(
            f"the link of {name} went down {self.wording.during} ({so_far}): plug in its cable, and {self.wording.again} again"
        )

    def check_own(self) -> None:
        """Raise UsageError unless this run was the last to load all of its senders, and to set the meters of its receivers."""
        lost = {end.port.number for end in self.senders if end.port.sends_for is not self}
        lost |= {end.port.number for end in self.receivers if end.port.measures_for is not self}
        if lost:
            raise UsageError(
                f"port {min(lost)} was reset or given something else since, so what came of these streams is gone: take the "
                "result before"
            )

    def let_pass(self, seconds: float) -> None:
        """Let time pass."""
        self.probes[0].link.wait(seconds)

    # End ------------------------------------------------------------------------------------------

    @contextmanager
    def stopped_at_errors(self) -> Iterator[None]:
        """Stop all ports when the body fails; when a signal ends it, `Interrupted` has what was measured until then."""
        try:
            yield
        except Interrupted as signal:
            self.halt()
            self.end = "interrupted"
            with suppress(ProbeError):
                signal.results = self.partial_results()
            raise
        except BaseException:
            self.halt()
            raise

    def halt(self, why: str = "stopped") -> None:
        """Stop what this run still sends, whatever state the links are in; it has ended ``why``, unless it had before."""
        if self.end:
            return
        self.end = why
        for probe in self.probes:
            probe.link.expect_silence(0)  # A port that was stopped holds no answer back.
            with suppress(ProbeError):
                self.stop_ports(probe)

    def stop_ports(self, probe: RunDevice) -> bool:
        """Stop what this run sends from ports of a probe, and return whether any still sent."""
        own = [end.port for end in self.senders if end.probe is probe and end.port.sends_for is self]
        return sum(port.halt(probe.timebase) for port in own) > 0

    def settle(self, missing: Callable[[], int]) -> None:
        """Wait until no frame is missing, or none has come for ``patience_s``: a slow queue empties slowly.

        ``missing`` looks, and returns how many frames that were sent have not come.
        """
        step_s = settle_s = self.patience_s / SETTLE_PARTS
        silence_s = 0.0
        left = missing()
        while left > 0 and silence_s < self.patience_s:
            self.let_pass(step_s)
            before, left = left, missing()
            silence_s = 0.0 if left < before else silence_s + step_s
            step_s = settle_s if left < before else min(2 * step_s, max(self.patience_s - silence_s, settle_s))
        self.let_pass(settle_s)


def check_link(probe: RunDevice, port: ProbePort, name: str) -> None:
    """Raise ProbeError, naming what is wrong, where the link of a port is down."""
    if not port.transmit.is_link_up:
        raise ProbeError(f"the link of {name} {probe.links.trouble(port.number)}")


def check_free(probe: RunDevice, port: ProbePort, name: str) -> None:
    """Raise BusyError where a port sends what another host has left running, unless this one was asked to take it."""
    state, sent, _ = port.transmit.look()
    if state == TransmitState.IDLE or port.sends_for is not None or probe.lease.steals:
        return
    raise BusyError(
        f"{name} sends what was left running there, {sent:,} frames so far, by {probe.lease.before or NAMELESS}: wait until it is "
        f"done, use another port, or end it with --steal (steal=True) or  liteprobe stop --port {port.number}"
    )


def check_ports(ends: Sequence[tuple[RunDevice, int]], direction: str, is_named: bool = False) -> None:
    """Raise UsageError where a probe has no such port, or where one is given twice; ``is_named``: say which probe."""
    for probe, number in ends:
        if not 0 <= number < len(probe.ports):
            where = f" in {probe.url}" if is_named else ""
            raise UsageError(f"there is no {direction} port {number}{where}: give 0 to {len(probe.ports) - 1}")
    if len({(id(probe), number) for probe, number in ends}) != len(ends):
        raise UsageError(f"a {direction} port is given twice: each takes one program at a time")


def is_shared(probe: RunDevice) -> bool:
    """Return whether the probe's answers to this host leave by port ``IN_BAND_PORT``, between the frames that it sends."""
    name = f"port{IN_BAND_PORT}_tx_management_sent"
    return probe.link.is_in_band and probe.registers.read(name) != probe.registers.read(name)


def noted(facts: Mapping[str, object]) -> list[str]:
    """Return the sentences of ``facts`` that hold."""
    return [sentence for sentence, holds in facts.items() if holds]
