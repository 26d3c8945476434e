# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs an emulated network: settings, start of both directions in one tick, looks, changes at their ticks, stop."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Protocol

from liteprobe.cores.formats import TransmitState
from liteprobe.cores.formats.emulate import CLASSES, UNMATCHED_CLASS
from liteprobe.host.capture.filter.expression import Rule, fit_rules, parse
from liteprobe.host.capture.filter.fit import Filter, clear_filter, write_filter
from liteprobe.host.errors import ProbeError, UsageError
from liteprobe.host.interrupt import Interrupted
from liteprobe.host.run.emulate_figures import (
    ClassCounters,
    ClassCounts,
    ClassDelays,
    ClassQueue,
    DirectionLook,
    EmulationLook,
    EmulationResult,
    Extended,
    notes_of,
)
from liteprobe.host.run.emulate_port import EVENTS, DirectionPort
from liteprobe.host.run.port import Port, check_own
from liteprobe.host.run.routes import Devices
from liteprobe.host.run.start import await_ready, start_together
from liteprobe.host.traffic.network.network import DIRECTIONS, REST, Direction, Network
from liteprobe.host.traffic.network.words import DirectionWords, switch_ticks, words_of

PORTS = len(DIRECTIONS)
LOOK_S = 1.0
LOOK_MOST_S = 10.0  # Counters of octets come round in 34 s.
SAMPLES_MOST = 400
Show = Callable[[EmulationLook], None]


class EmulationDevice(Devices, Protocol):
    """What an emulation works with: a `Probe`, or what stands for one."""

    def wait(self, seconds: float) -> None:
        """Let ``seconds`` of the probe's time pass."""


def rules_of(network: Network) -> list[Rule]:
    """Return what names the classes of both directions, in the order in which it is asked.

    A direction's frames come in at the port of its number; a class of the same number and match on both is one rule.
    """
    found: list[Rule] = []
    for number in range(UNMATCHED_CLASS):
        for port, way in enumerate(DIRECTIONS):
            one = getattr(network, way).numbered.get(number)
            if one is None or one.match is None:
                continue
            if found and (found[-1].match.text, found[-1].channel) == (one.match, number):
                found[-1] = replace(found[-1], probe_ports=found[-1].probe_ports | 1 << port)
            else:
                found.append(Rule(parse(one.match), number, 1 << port))
    return found


def filter_of(network: Network) -> Filter | None:
    """Return the filter that names its classes; None: it has none to name.

    Raises
    ------
    UsageError
        When the probe's tables can't hold it.
    """
    rules = rules_of(network)
    return fit_rules(rules) if rules else None


@dataclass
class _Direction:
    """A direction that runs, and what is still to be changed in it."""

    way: str
    port: DirectionPort
    out: Port
    counters: list[ClassCounters]
    events: Extended
    words: DirectionWords | None = None
    state: int = 0  # Changes that hold.
    asked: int = 0  # Changes that hold or are set.


class Emulation:
    """An emulated network on a probe.

    It goes on when this host is gone. As a context it is stopped at the end, unless it was detached.

    Parameters
    ----------
    probe : EmulationDevice
    network : Network or None
        None: the one that another host has started; its classes have numbers for names.

    Raises
    ------
    UsageError
        When the probe can't: the message has the limit, and what to do.
    """

    def __init__(self, probe: EmulationDevice, network: Network | None = None) -> None:
        self._probe, self.network = probe, network
        count = max(1, DirectionPort.count(probe.registers))
        ports = [DirectionPort(probe.registers, number) for number in range(count)]
        if len(probe.ports) < PORTS:
            raise UsageError(f"{probe.url} has {len(probe.ports)} ports that send, and an emulator needs {PORTS}")
        limits = [port.limits for port in ports]
        self._tick_ns = probe.timebase.tick_ns
        increment = probe.timebase.increment
        if network and count < PORTS and any(one != Direction() for one in network.states("back")):
            raise UsageError(
                f"{probe.url} emulates a network from port 0 to port 1 alone: say what is wanted under 'there', nothing of 'back'"
            )
        self._filter = filter_of(network) if network else None
        words = words_of(network, limits, increment) if network else (None,) * count
        self._switches = switch_ticks(network, increment) if network else []
        self._directions = [
            _Direction(
                way,
                ports[number],
                probe.ports[1 - number],
                _counters(network, way, limits[number].longest),
                Extended(limits[number].longest),
                words[number],
            )
            for number, way in enumerate(DIRECTIONS[:count])
        ]
        self._notes = dict.fromkeys(note for one in words if one for note in one.notes)
        self._end = ""
        self._samples: list[EmulationLook] = []
        self._every = 1  # Of so many looks one is kept.
        self._looks = 0
        self._last: EmulationLook | None = None
        if network is None and not any(self._is_running(one) for one in self._directions):
            raise UsageError("no network runs on this probe: start one")

    def __enter__(self) -> "Emulation":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        if self._end:
            return
        if kind is None:
            self.stop()
            return
        with suppress(ProbeError):  # The first error is the one to hear of.
            self.stop()

    # Start and end ------------------------------------------------------------------------------------

    @classmethod
    def started(cls, probe: EmulationDevice, network: Network | None) -> "Emulation":
        """Return a network that has begun, or the one that runs."""
        emulation = cls(probe, network)
        emulation.begin()
        return emulation

    def begin(self) -> None:
        """Start both directions in one tick; nothing, where another host has.

        Raises
        ------
        ProbeError
            When a link is down.
        """
        if self.network is None:
            return
        probe, ports = self._probe, self._ports
        for port in ports:
            if not port.transmit.is_link_up:
                raise ProbeError(f"the link of port {port.number} {probe.links.trouble(port.number)}")
        probe.registers.own()
        for port in ports:
            self._notes |= dict.fromkeys(port.free(probe.timebase))
            port.sends_for = self
        try:
            self._load_and_start()
        except BaseException:
            with suppress(ProbeError):
                for port in ports:
                    port.halt(probe.timebase)
            raise

    def _load_and_start(self) -> None:
        probe, ports = self._probe, self._ports
        if self._filter:
            write_filter(probe.registers, self._filter)
        else:
            clear_filter(probe.registers)
        for one in self._directions:
            assert one.words
            one.port.load(one.words)
            one.port.arm()
        await_ready(probe, ports, "the network")
        start_together(probe, ports, 0.0)
        if probe.link.stations:
            probe.link.stations.begin()
        for one in self._directions:
            self._set_change(one)

    def stop(self) -> None:
        """End both directions: frames that wait or are under way are gone."""
        if self._end:
            return
        self._end = "stopped"
        if self.network and all(port.sends_for is self for port in self._ports):
            with suppress(ProbeError):
                self.look()
        for port in self._ports:
            if self.network is None or port.sends_for is self:
                port.halt(self._probe.timebase)

    def detach(self) -> None:
        """Let it go on when this host lets go of the probe; of changes to come the next one is set, later ones are not made."""
        self.look()
        self._end = "detached"
        left = len(self._switches) - min(one.asked for one in self._directions)
        if left:
            self._note(f"{left} changes are not made, because this host has let go: they need it")

    def wait(
        self,
        seconds: float | None = None,
        show: Show | None = None,
        look_s: float = LOOK_S,
        is_done: Callable[[EmulationLook], bool] | None = None,
    ) -> EmulationResult:
        """Look now and then for so many seconds of the probe's time, or until it ends, and return what came of it.

        Parameters
        ----------
        seconds : float or None
        show : callable or None
            Given each look.
        look_s : float
            Between looks; up to 10 s.
        is_done : callable or None
            Given each look: whether that is the end, before its time.

        Raises
        ------
        KeyboardInterrupt
            Passed on; `Interrupted` has the result until then. The network runs on until it is stopped.
        """
        look_s, came = min(look_s, LOOK_MOST_S), "stopped"
        try:
            look = self.look()
            while any(way.is_running for way in look.ways):
                if show:
                    show(look)
                left = look_s if seconds is None else seconds - look.there.seconds
                if left <= 0:
                    came = "done"
                    break
                if is_done and is_done(look):
                    came = "finished"
                    break
                self._probe.wait(min(look_s, left, self._until_change(look)))
                look = self.look()
            if show:
                show(look)
        except Interrupted as end:
            self._end = "interrupted"
            with suppress(ProbeError):
                end.results = [self.result()]
            self._end = ""
            raise
        return self.result(came)

    # Figures ------------------------------------------------------------------------------------------

    def look(self) -> EmulationLook:
        """Return how it is now, and set the change that comes next.

        Raises
        ------
        UsageError
            When a port was given something else since.
        """
        if self.network:
            check_own(self, self._ports, [])
        ways = {one.way: self._look_at(one) for one in self._directions}
        look = EmulationLook(ways["there"], ways.get("back"), len(self._switches))
        self._last = look
        if self._looks % self._every == 0:
            self._samples.append(look)
            if len(self._samples) > SAMPLES_MOST:
                self._samples, self._every = self._samples[::2], 2 * self._every
        self._looks += 1
        return look

    @property
    def counts(self) -> dict[str, dict[str, ClassCounts]]:
        """Counters of now, by direction and class."""
        return {way.way: {one.name: one.counts for one in way.classes} for way in self.look().ways}

    @property
    def queues(self) -> dict[str, dict[str, ClassQueue]]:
        """Queues of now, by direction and class."""
        return {way.way: {one.name: one.queue for one in way.classes} for way in self.look().ways}

    @property
    def delays(self) -> dict[str, dict[str, ClassDelays]]:
        """Delays until now, by direction and class."""
        return {way.way: {one.name: one.delays for one in way.classes} for way in self.look().ways}

    def result(self, end: str = "") -> EmulationResult:
        """Return what came of it until now; ``end``: how it ended, if that isn't known yet."""
        last = self._last or self.look()
        samples = self._samples if self._samples and self._samples[-1] is last else [*self._samples, last]
        clock_state, notes = self._probe.timebase.clock_state, (*self._notes, *notes_of(last))
        seen = self._probe.link.stations.report() if self._probe.link.stations else None
        return EmulationResult(self.network, last, tuple(samples), self._end or end, clock_state, notes, seen)

    # # #

    @property
    def _ports(self) -> list[Port]:
        return [one.out for one in self._directions]

    def _note(self, text: str) -> None:
        self._notes[text] = None

    def _is_running(self, one: _Direction) -> bool:
        return one.out.transmit.look()[0] in (TransmitState.WAITING, TransmitState.RUNNING)

    def _look_at(self, one: _Direction) -> DirectionLook:
        state, _, is_up = one.out.transmit.look()
        bank, now = one.port.look()
        classes = [kept.look(one.port.counts(kept.number), now, self._tick_ns) for kept in one.counters]
        events = dict(zip(EVENTS, one.events.take(list(one.port.events().values())), strict=True))
        if not is_up:
            self._note(f"the link of port {one.out.number} was down for a time: frames to it were lost on the line")
        if one.asked > one.state and bank == one.asked & 1:
            one.state = one.asked
            self._set_change(one)
        is_running = state in (TransmitState.WAITING, TransmitState.RUNNING)
        if self.network is None:
            classes = [
                kept for kept in classes if kept.counts.arrived or kept.counts.ghosts or kept.number == UNMATCHED_CLASS
            ]
        return DirectionLook(
            one.way,
            float(now * self._tick_ns) / 1e9,
            one.state,
            is_running,
            is_up,
            **{name: count or 0 for name, count in events.items()},
            classes=tuple(classes),
        )

    def _set_change(self, one: _Direction) -> None:
        """Write the settings of the next change into the bank that is free, and set its tick."""
        if one.words is None or one.asked >= len(self._switches):
            return
        number, at = one.asked + 1, self._switches[one.asked]
        one.port.write_bank(number & 1, one.words.banks[number])
        one.port.switch(at)
        one.asked = number
        now = one.port.look()[1]
        if now > at:
            late_ms = float((now - at) * self._tick_ns) / 1e6
            self._note(
                f"change {number} of '{one.way}' was made up to {late_ms:,.3f} ms late: the host looked too late, "
                "leave more time between changes"
            )

    def _until_change(self, look: EmulationLook) -> float:
        """Return the seconds until just after the next change that is set, for the one behind it to be set soon."""
        left = [
            float(self._switches[one.asked - 1] * self._tick_ns) / 1e9 - way.seconds
            for one, way in zip(self._directions, look.ways, strict=True)
            if one.state < one.asked < len(self._switches)
        ]
        return max(0.0, min(left)) + 1e-4 if left else LOOK_MOST_S


def _counters(network: Network | None, way: str, longest: int) -> list[ClassCounters]:
    if network is None:
        names = {number: f"class {number}" for number in range(CLASSES)} | {UNMATCHED_CLASS: REST}
        return [ClassCounters(number, name, None, longest) for number, name in names.items()]
    numbered = getattr(network, way).numbered
    return [ClassCounters(number, one.name, one.match, longest) for number, one in numbered.items()]
