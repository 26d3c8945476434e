# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The first hour of a board: each part of a probe is tried, and what was seen goes into one report."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import pairwise
from statistics import fmean, median
from typing import Any, ClassVar

from liteprobe.cores.formats import TICK_NS, BootState, Part
from liteprobe.host.analysis.columns import Column, Columns
from liteprobe.host.analysis.expect import Values
from liteprobe.host.analysis.result import Result
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.device.bitstreams import how_to_get
from liteprobe.host.device.firmware import CPU_RESET, wait_for_ram
from liteprobe.host.device.phy import Phys
from liteprobe.host.device.ram import KEEP_S, check_ram
from liteprobe.host.probe import Probe
from liteprobe.host.run.trains import Route, TrainRun
from liteprobe.host.suites.eye import EYE_TAPS, MANAGEMENT_PORT, sweep
from liteprobe.host.suites.suite import Verdict
from liteprobe.host.traffic.train import TrainProgram

READS = 200  # Of the register map's hash.
RATE_MOST_PPM = 1000.0  # By the host's clock, which a busy network blurs: another crystal is further off.
PPS_RATE_MOST_PPM = 100.0  # Of a crystal, by a PPS.
PPS_PERIODS = 3
LENGTHS = (60, 1514)
RAMS = ("main_ram", "capture_ring")
DAMAGE = ("fcs_errors", "length_errors", "late", "underruns", "duplicated", "reordered", "overflows")


class NotDone(Exception):
    """A check that this probe, or this desk, has nothing for; the message says why."""


class Wrong(ProbeError):
    """A check that failed, with its figures."""

    def __init__(self, message: str, figures: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.figures = figures or {}


@dataclass(frozen=True)
class BringUpCheck:
    """One part of a probe, as it was found."""

    name: str
    verdict: Verdict
    seen: str  # What was seen, or what is wrong and what to do, in words.
    figures: dict[str, Any] = field(default_factory=dict)  # The same, in figures.

    def of_frames(self, name: str, of: Callable[[Iterable[int]], int]) -> int | None:
        """Return a figure over the frames of all lengths; None: no frames were sent in this check."""
        values = [found[name] for key, found in self.figures.items() if key.startswith("length_")]
        return of(values) if values else None


@dataclass(frozen=True, repr=False)
class BringUpResult(Result):
    """Says what became of all checks; its parts are the checks, by name, of which those of frames have counts and delays.

    >>> checks = [BringUpCheck("PPS", Verdict.SKIPPED, "this probe was built without a PPS")]
    >>> BringUpResult(checks).verdict("failed == 0", "not_done == 0").checks[1].line
    'not_done == 0: not held: not_done is 1'
    """

    checks: Sequence[BringUpCheck]

    COLUMNS: ClassVar[Columns] = Columns(
        *(
            Column(key, "", title, of=lambda one, verdict=verdict: int(one.verdict == verdict))  # type: ignore[misc]
            for key, title, verdict in (
                ("passed", "Passed", Verdict.PASSED), ("failed", "Failed", Verdict.FAILED),
                ("not_done", "Not done", Verdict.SKIPPED),
            )
        ),
        *(
            Column(key, "", title, of=lambda one, name=name, of=of: one.of_frames(name, of))  # type: ignore[misc]
            for key, title, name, of in (
                ("sent", "Sent", "sent", sum), ("received", "Received", "frames", sum), ("lost", "Lost", "lost", sum),
                ("least", "Least,\nns", "delay_min", min), ("most", "Most,\nns", "delay_max", max),
            )
        ),
    )  # fmt: skip

    @property
    def parts(self) -> dict[str, BringUpCheck]:
        """Checks by name."""
        return {check.name: check for check in self.checks}

    @property
    def judged_figures(self) -> Mapping[str, Values]:
        """Figures by check: those of frames of the checks that sent some."""
        return {
            check: {name: value for name, value in row.items() if row["sent"] is not None or value is not None}
            for check, row in self.figures.items()
        }

    def count(self, name: str) -> int | None:
        """Return the sum of a count over the checks that have one; None where none has."""
        values = [value for check in self.checks if (value := self.value(name, check)) is not None]
        return sum(values) if values else None

    def to_dict(self) -> dict[str, Any]:
        """Return the checks as plain data."""
        return {"checks": [asdict(check) for check in self.checks]}


@dataclass(frozen=True)
class Extent:
    """Extent of what is tried."""

    frames: int = 1_000_000  # Each way, of both lengths together; 0: none.
    ram_bytes: int | None = None  # Of the SDRAM; None: all; 0: none.
    #: How long to look at the PPS and at the oscillator (probe time); and the SDRAM keeps what it is given as long, up
    #: to 0.2 s.
    seconds: float = 5.0
    with_eye: bool = False  # Find the eye of each port that can be swept. The port keeps the middle.


Seen = tuple[str, dict[str, Any]]
Progress = Callable[[str], None]


class BringUp:
    """Tries a probe, one part after the other; what fails doesn't end it.

    ``progress``: called with the name of each check before it is made; ``done``: with the check itself after it.
    """

    def __init__(
        self,
        probe: Probe,
        extent: Extent | None = None,
        progress: Progress | None = None,
        done: Callable[[BringUpCheck], None] | None = None,
    ) -> None:
        self._probe = probe
        self._extent = extent or Extent()
        self._progress = progress or (lambda name: None)
        self._done = done or (lambda check: None)
        self.checks: list[BringUpCheck] = []

    def run(self) -> list[BringUpCheck]:
        """Try everything, and return what was seen."""
        self._try("management link", self._management)
        self._try("oscillator", self._oscillator)
        self._try("PHYs", self._phys)
        for port in range(self._probe.port_count):
            self._try(f"link of port {port}", partial(self._link, port))
        if self._extent.with_eye:
            for port in range(self._probe.port_count):
                self._try(f"eye of port {port}", partial(self._eye, port))
        for transmit, receive in self._routes():
            self._try(f"frames {transmit} to {receive}", partial(self._frames, transmit, receive))
        self._try("SDRAM", self._ram)
        self._try("PPS", self._pps)
        return self.checks

    def _try(self, name: str, check: Callable[[], Seen]) -> None:
        self._progress(name)
        figures: dict[str, Any] = {}
        try:
            seen, figures = check()
            verdict = Verdict.PASSED
        except NotDone as reason:
            verdict, seen = Verdict.SKIPPED, str(reason)
        except Wrong as wrong:
            verdict, seen, figures = Verdict.FAILED, str(wrong), wrong.figures
        except ProbeError as error:
            verdict, seen = Verdict.FAILED, str(error)
        self.checks.append(BringUpCheck(name, verdict, seen, figures))
        self._done(self.checks[-1])

    def _routes(self) -> list[tuple[int, int]]:
        count = len(self._probe.ports)
        return [(port, self._probe.link.receive_port(port, count)) for port in range(count)]

    # Checks -----------------------------------------------------------------------------------

    def _management(self) -> Seen:
        """Registers read the same again and again; how long that takes."""
        link, registers = self._probe.link, self._probe.registers
        times = []
        for _ in range(READS):
            before_s = link.now_s()
            found = registers.read("probe_map_hash")
            times.append(1e6 * (link.now_s() - before_s))
            if found != registers.map_hash:
                raise Wrong(f"the hash of the map reads {found:08x} in place of {registers.map_hash:08x}")
        figures = {"reads": READS, "median_us": median(times), "longest_us": max(times)}
        return f"{READS} reads, {figures['median_us']:.0f} us each, {figures['longest_us']:.0f} us the longest", figures

    def _oscillator(self) -> Seen:
        """Ticks by the clock of the host, which tells another crystal, or a PLL that is wrong."""
        begin_s, first, first_late_s = self._moment()
        self._probe.wait(self._extent.seconds)
        end_s, last, last_late_s = self._moment()
        ppm = ((last - first) * TICK_NS / 1e9 / (end_s - begin_s) - 1) * 1e6
        within_ppm = (first_late_s + last_late_s) / (end_s - begin_s) * 1e6
        figures = {"ppm_by_host": ppm, "within_ppm": within_ppm, "seconds": end_s - begin_s}
        if abs(ppm) > RATE_MOST_PPM + within_ppm:
            raise Wrong(
                f"a tick of {TICK_NS} ns is {ppm:+.0f} ppm off by this host's clock: the board has another crystal, or the "
                f"bitstream is that of another revision",
                figures,
            )
        return f"{ppm:+.0f} ppm by this host's clock, within {within_ppm:.0f} ppm", figures

    def _moment(self) -> tuple[float, int, float]:
        """Return the host's time (s), the ticks since reset at most so much later, and how much (s)."""
        link, timebase = self._probe.link, self._probe.timebase
        before_s = link.now_s()
        ticks = timebase.ticks
        return before_s, ticks, link.now_s() - before_s

    def _phys(self) -> Seen:
        """All of them answer on MDIO, and are of a kind that the probe sets up."""
        probe = self._probe
        if not Phys.are_there(probe.registers):
            raise NotDone("this probe does not reach its PHYs: it is simulated, or a board without MDIO")
        states = probe.links.states
        figures = {"phys": [asdict(state) for state in states]}
        if len(states) < probe.port_count:
            raise Wrong(
                f"{len(states)} of {probe.port_count} PHYs answer on MDIO: the bitstream may be that of another revision of "
                f"the board, or its MDIO pins are others",
                figures,
            )
        if notes := probe.links.notes():
            raise Wrong("; ".join(notes), figures)
        return "; ".join(f"{s.name}, MDIO {s.address}, Energy Efficient Ethernet {s.eee}" for s in states), figures

    def _link(self, port: int) -> Seen:
        """It is up at 1 Gb/s full duplex, and a receive clock comes."""
        probe = self._probe
        if Part.GENERATE not in probe.parts:
            fix = how_to_get(probe.registers.identifier, ("train", "generator", "tester"))
            raise NotDone(f"this probe does not send: {fix}")
        ports = probe.ports
        if not ports[port].transmit.is_link_up:
            raise Wrong(f"the link of port {port} {probe.links.trouble(port)}")
        probe.links.check(port, ports[port].receive.latch_line)
        states = probe.links.states
        speed = states[port].link if port < len(states) else "speed not known"
        return f"up, {speed}", {}

    def _eye(self, port: int) -> Seen:
        """The middle of the eye, and how far that is from the delay of the build."""
        probe = self._probe
        if not Phys.are_there(probe.registers):
            raise NotDone("this probe has no receive delay that can be changed")
        if probe.link.is_in_band and port == MANAGEMENT_PORT:
            raise NotDone(f"management comes through port {port}: a wrong delay would cut it off")
        transmit = next(sender for sender, receiver in self._routes() if receiver == port)
        eye = sweep(probe, port, transmit)
        return (
            f"taps {eye.first} to {eye.last} of {EYE_TAPS:.0f} by data sheets, {eye.clipped or 'no'} edge hidden; "
            f"tap {eye.middle} is set"
        ), eye._asdict()

    def _frames(self, transmit: int, receive: int) -> Seen:
        """Frames back to back, the shortest and the longest, none lost and none damaged."""
        if not self._extent.frames:
            raise NotDone("no frames were asked for")
        figures = {}
        damaged = []
        for length in LENGTHS:
            program = TrainProgram(length=length, count=-(-self._extent.frames // len(LENGTHS)), gap_ns=0.0)
            route = Route(program, self._probe, self._probe, transmit, receive, is_recorded=False)
            result = TrainRun([route]).run()[0]
            counters = result.counters
            count = {"sent": result.sent, "frames": counters["frames"], "lost": result.sent - counters["frames"]}
            count |= {name: counters[name] for name in DAMAGE if name in counters}
            figures[f"length_{length}"] = count | {
                "delay_min": counters["delay_min"],
                "delay_max": counters["delay_max"],
            }
            found = ", ".join(
                f"{value} {name.replace('_', ' ')}"
                for name, value in count.items()
                if value and name not in ("sent", "frames")
            )
            if found or result.sent != program.total:
                damaged.append(f"{length} octets: {result.sent} of {program.total} sent, {found or 'none lost'}")
        if damaged:
            raise Wrong("; ".join(damaged) + ": check the cable, then 'liteprobe phy sweep'", figures)
        delays = [figures[f"length_{length}"] for length in LENGTHS]
        return "; ".join(
            f"{count['frames']} of {length} octets whole, {count['delay_min']} to {count['delay_max']} ns"
            for length, count in zip(LENGTHS, delays, strict=True)
        ), figures

    def _ram(self) -> Seen:
        """Each word keeps what is written, by itself, and over more than the time of a refresh."""
        registers = self._probe.registers
        name = next((name for name in RAMS if name in registers.memory_names), None)
        if name is None:
            raise NotDone("this probe has no RAM beside its block RAM")
        if self._extent.ram_bytes == 0:
            raise NotDone("no test of it was asked for")
        words = None if self._extent.ram_bytes is None else self._extent.ram_bytes // 4
        with self._processor_held():
            result = check_ram(registers, name, self._probe.wait, words, min(KEEP_S, self._extent.seconds))
        if result.bad:
            raise Wrong(result.text, asdict(result))
        return f"{name}: {result.text}", asdict(result)

    @contextmanager
    def _processor_held(self) -> Any:
        """Hold the processor, where there is one, while its RAM is tested; from flash it starts anew afterwards."""
        registers = self._probe.registers
        if "boot_entry" not in registers.names:
            yield
            return
        if registers.read("boot_state") == BootState.STARTED:
            raise NotDone(
                "firmware that a host has loaded runs in it: 'liteprobe' can't start that again; reset the probe"
            )
        wait_for_ram(registers)
        registers.write("ctrl_reset", CPU_RESET)
        try:
            yield
        finally:
            registers.write_many({"boot_entry": 0, "boot_state": 0})
            registers.write("ctrl_reset", 0)

    def _pps(self) -> Seen:
        """Edges come, as far apart as a crystal may make them."""
        probe = self._probe
        clock = probe.clock
        if not clock.has_pps:
            raise NotDone("this probe was built without a PPS")
        if not clock.status().is_pps_enabled:
            clock.enable_pps(probe.link.pps_period_ns)
        period_ns = clock.status().period_ns
        if self._extent.seconds * 1e9 < PPS_PERIODS * period_ns:
            raise NotDone(f"that takes {PPS_PERIODS} periods of {period_ns / 1e9:g} s: look longer (--duration)")
        try:
            edges = list(clock.edges(self._extent.seconds, probe.wait))
        except ProbeError as error:
            raise NotDone(f"{error}; without a receiver there is none") from None
        steps = [
            ((later.ticks - edge.ticks) * TICK_NS - (later.early_ps - edge.early_ps) / 1000)
            / (later.count - edge.count)
            for edge, later in pairwise(edges)
        ]
        if not steps:
            raise NotDone(f"only {len(edges)} edge came: look longer (--duration)")
        ppm = (fmean(steps) / period_ns - 1) * 1e6
        status = clock.status()
        figures = {
            "edges": len(edges),
            "period_ns": period_ns,
            "ppm_by_pps": ppm,
            "spread_ns": max(steps) - min(steps),
            "glitches": status.glitches,
            "missing": status.missing,
            "spurious": status.spurious,
        }
        text = f"{len(edges)} edges, the oscillator {ppm:+.3f} ppm off, intervals within {figures['spread_ns']:.1f} ns"
        if abs(ppm) > PPS_RATE_MOST_PPM or figures["glitches"]:
            raise Wrong(f"{text}; {figures['glitches']} glitches: check the wire of the PPS and its level", figures)
        return text, figures
