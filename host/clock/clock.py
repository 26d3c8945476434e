# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads the state of a probe's clock and of its PPS, sets its mode, and watches it while something is measured."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from liteprobe.cores import formats
from liteprobe.cores.formats import CLOCK_LSB, TICK_NS, TICK_PS, ClockError, ClockMode, ClockState, PpsControl
from liteprobe.host.analysis.columns import Column, Columns
from liteprobe.host.analysis.result import Result
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.validate import validated
from liteprobe.host.device.registers import Registers

NAMES = {state: state.name.lower().replace("_", "-") for state in ClockState}
#: What a set bit of ``clock_error`` means, and what to do.
FAULTS = {
    ClockError.NO_PPS: "no PPS: check the receiver's antenna and the wire of its PPS pin",
    ClockError.NO_NMEA: "no NMEA: check the wire and the baud rate of the receiver's UART",
    ClockError.WRONG_SECOND: "the receiver and the clock name different seconds, or its sentences do: wait for a fix, or raise "
    "the baud rate of its UART",
    ClockError.WRONG_GATEWARE: "the firmware was built for another gateware: build and load it again",
    ClockError.NO_FIX: "the receiver knows no time yet: give it a view of the sky",
    ClockError.BAD_NMEA: "garbled NMEA: check the baud rate of the receiver's UART",
    ClockError.STEP_REFUSED: "the clock wants to step, but a train runs: it is slewed, and steps when the train ends",
    ClockError.REFERENCE_JUMPED: "the pulses of the receiver have moved: see whether its antenna or position did",
    ClockError.LEAP_UNSURE: "a leap second may have passed unseen: give TAI less UTC ('liteprobe clock set --leap system')",
    ClockError.SECOND_UNKNOWN: "the second is not known: no receiver has named it clearly yet, 10 to 800 ms after its pulse",
    ClockError.PPS_INVERTED: "pulses last longer than their pauses: their falling edge is taken, turn the PPS over",
}
PUBLISHED = ("state", "uncertainty", "offset", "rate", "drift", "edges", "rejected", "holdover", "tai_utc", "error")
STATUS = (*PUBLISHED, "updates", "alive", "mode")
INPUT = ("control", "period", "present", "glitches", "missing", "spurious")
EDGE = ("count", "now", "now_fraction", "ticks", "width", "flags")
LOOKS_PER_PERIOD = 8
QERR_TRIES = 8  # While the firmware works on an edge.
PATIENCE_PERIODS = 4
PERIOD_MAX_NS = 1_400_000_000  # Of the servo.


@dataclass(frozen=True)
class ClockReport:
    """Holds what was published of a clock last, and its PPS at this moment."""

    state: ClockState  # UNKNOWN when nobody disciplines the clock, or whoever did has fallen silent (the watchdog).
    is_alive: bool  # Whether the firmware (or the host in its place) has published within the watchdog's time.
    was_ever_alive: bool  # Whether anybody has published since reset.
    uncertainty_ns: float | None  # 95 % bound of the error of ``now``; None: not known.
    #: ``offset_ns``, ``rate_ppb``, ``drift_ppt_s``: last residual; rate error of the oscillator, positive: fast; its
    #: change (10^-12 a second).
    offset_ns: float
    rate_ppb: float
    drift_ppt_s: float
    #: ``edges``, ``rejected``: PPS edges used and refused.
    edges: int
    rejected: int
    #: ``holdover_s``, ``tai_utc_s``: since the last edge used; TAI less UTC.
    holdover_s: int
    tai_utc_s: int
    errors: ClockError
    #: ``jumps``, ``steps``: how often the reference jumped, and ``now`` was stepped or set by whoever disciplines it (8
    #: bits, wrap).
    jumps: int
    steps: int
    mode: ClockMode | None  # None: a number that no ``ClockMode`` has.
    period_ns: int  # Nominal, of the PPS.
    is_pps_enabled: bool
    is_pps_present: bool
    #: ``glitches``, ``missing``, ``spurious``: pulses too short, periods without a pulse, pulses out of their window (16
    #: bits, wrap).
    glitches: int
    missing: int
    spurious: int

    @property
    def name(self) -> str:
        """State in a word; a clock that nobody has ever disciplined is ``free-running``."""
        return NAMES[self.state] if self.was_ever_alive else NAMES[ClockState.FREE_RUNNING]

    @property
    def faults(self) -> list[str]:
        """Faults and what to do about them, a sentence each."""
        found = [text for bit, text in FAULTS.items() if bit in self.errors and self.is_alive]
        if not self.was_ever_alive:
            return ["nothing disciplines this clock: run 'liteprobe firmware load', or 'liteprobe clock discipline'"]
        if not self.is_alive:
            return ["the firmware has fallen silent (watchdog): load it again ('liteprobe firmware load')", *found]
        return found


@dataclass(frozen=True, repr=False)
class ClockResult(Result):
    """Says what was seen of a clock at some looks: figures of the last one, and what was worst of all.

    >>> ClockResult([]).verdict("unlocked == 0").exit_code
    5
    """

    looks: Sequence[ClockReport]

    COLUMNS: ClassVar[Columns] = Columns(
        #: The greatest 95 % bound of the error of all looks (ns).
        Column("bound", "", "Bound,\nns", 1, of=lambda one: one.bound_ns),
        Column(
            "offset", "", "Offset,\nns", 2, of=lambda one: abs(one.last.offset_ns) if one.last.was_ever_alive else None
        ),
        Column("rate_ppb", "", "Rate,\nppb", 3, of=lambda one: one.last.rate_ppb if one.last.was_ever_alive else None),
        *(
            Column(name, "", name.capitalize(), of=lambda one, name=name: getattr(one.last, name))  # type: ignore[misc]
            for name in ("edges", "rejected", "missing", "spurious", "glitches")
        ),
        Column("faults", "", "Faults", of=lambda one: max(len(look.faults) for look in one.looks)),
        Column("unlocked", "", "Looks\nunlocked", of=lambda one: sum(x.state != ClockState.LOCKED for x in one.looks)),
    )

    @property
    def last(self) -> ClockReport:
        """The last look."""
        return self.looks[-1]

    @property
    def bound_ns(self) -> float | None:
        """The greatest bound of all looks (ns); None: one was not known."""
        bounds = [look.uncertainty_ns for look in self.looks]
        return None if None in bounds else max(bound for bound in bounds if bound is not None)

    @property
    def parts(self) -> dict[str, "ClockResult"]:
        """The clock itself, if there was a look."""
        return {"clock": self} if self.looks else {}

    def to_dict(self) -> dict[str, Any]:
        """Return its figures as plain data."""
        return self.COLUMNS.document(self)

    def count(self, name: str) -> int | None:
        """Return a count; None where nobody looked, or a clock has none."""
        return super().count(name) if self.looks and name in self.COLUMNS else None


@dataclass(frozen=True)
class Edge:
    """A PPS edge as the gateware stamped it: ``now`` and ``ticks`` at the beginning of one tick."""

    count: int  # Edges since reset (32 bits, wraps).
    #: ``now_ns``, ``fraction``: time in ns and 2^-32 ns.
    now_ns: int
    fraction: int
    ticks: int  # Of the oscillator, since reset.
    width_ticks: int  # How long its pulse has lasted so far.
    is_spurious: bool
    #: From the end of the part of the tick that the edge came in to the end of the tick: ticks are sampled
    #: ``pps_samples`` times, so the edge is TICK_PS - early_ps after the beginning of the tick, or up to one part less.
    early_ps: int = 0


@validated
class ProbeClock:
    """Reads and sets what disciplines a probe's clock."""

    def __init__(self, registers: Registers) -> None:
        self._registers = registers
        names = set(registers.names)
        self.has_status = "clock_state" in names
        self.has_pps = "pps_latch" in names
        self._quantum_ps: int | None = None

    def status(self) -> ClockReport:
        """Return what is known of the clock; raises ProbeError when the gateware has no such clock."""
        self.check()
        names = [f"clock_{name}" for name in STATUS] + [f"pps_{name}" for name in INPUT]
        found = self._registers.read_many(names)
        word = {name.removeprefix("clock_"): value for name, value in found.items()}
        states = {int(state) for state in ClockState}
        modes = {int(mode) for mode in ClockMode}
        uncertainty = word["uncertainty"]
        return ClockReport(
            state=ClockState(word["state"] if word["state"] in states else 0),
            is_alive=bool(word["alive"]),
            was_ever_alive=bool(word["updates"] or word["alive"]),
            uncertainty_ns=None
            if uncertainty == formats.UNCERTAINTY_UNKNOWN or not word["state"]
            else uncertainty * CLOCK_LSB,
            offset_ns=word["offset"] * CLOCK_LSB,
            rate_ppb=word["rate"] * CLOCK_LSB,
            drift_ppt_s=word["drift"] * CLOCK_LSB,
            edges=word["edges"],
            rejected=word["rejected"],
            holdover_s=word["holdover"],
            tai_utc_s=word["tai_utc"],
            errors=ClockError(word["error"] & formats.CLOCK_ERROR_MASK),
            jumps=word["error"] >> formats.CLOCK_JUMPS_BIT & formats.CLOCK_COUNT_MASK,
            steps=word["error"] >> formats.CLOCK_STEPS_BIT & formats.CLOCK_COUNT_MASK,
            mode=ClockMode(word["mode"]) if word["mode"] in modes else None,
            period_ns=found["pps_period"],
            is_pps_enabled=bool(found["pps_control"] & PpsControl.ENABLE),
            is_pps_present=bool(found["pps_present"]),
            glitches=found["pps_glitches"],
            missing=found["pps_missing"],
            spurious=found["pps_spurious"],
        )

    def check(self) -> None:
        """Raise ProbeError when the gateware has no disciplined clock."""
        if not (self.has_status and self.has_pps):
            raise ProbeError(
                "this gateware has no PPS and no clock status: build it without --no-discipline (liteprobe build BOARD)"
            )

    # PPS --------------------------------------------------------------------------------------

    def enable_pps(self, period_ns: int | None = None) -> None:
        """Let the PPS in; ``period_ns`` None: the period that is set."""
        self.check()
        if period_ns is not None:
            if not 1 <= period_ns <= PERIOD_MAX_NS:
                raise UsageError(f"a period of {period_ns} ns is out of range: give up to {PERIOD_MAX_NS / 1e9:g} s")
            self._registers.write_many({"pps_period": period_ns})
        control = self._registers.read("pps_control")
        self._registers.write("pps_control", control | PpsControl.ENABLE)

    @property
    def quantum_ps(self) -> int:
        """Resolution of an edge's capture (ps): a tick by its number of samples."""
        if self._quantum_ps is None:
            self.check()
            samples = self._registers.read("pps_samples") if "pps_samples" in self._registers.names else 1
            self._quantum_ps = TICK_PS // max(1, samples)
        return self._quantum_ps

    def edge(self) -> Edge:
        """Return the last PPS edge; all zero before the first."""
        self.check()
        self._registers.write("pps_latch", 1)
        found = self._registers.read_many(f"pps_{name}" for name in EDGE)
        return Edge(
            count=found["pps_count"],
            now_ns=found["pps_now"],
            fraction=found["pps_now_fraction"],
            ticks=found["pps_ticks"],
            width_ticks=found["pps_width"],
            is_spurious=bool(found["pps_flags"] & formats.PPS_SPURIOUS),
            early_ps=(found["pps_flags"] >> formats.PPS_EARLY_BIT & formats.PPS_EARLY_MASK) * self.quantum_ps,
        )

    def qerr_ps(self, edge: Edge, wait: Callable[[float], None] | None = None) -> int | None:
        """Return how much later than the receiver's own second an edge came (ps), as the firmware reports it; None: unknown.

        ``edge``: the last one: what is reported of it stays until the firmware has taken the next.
        ``wait``: as in `edges`: where the firmware has reported an edge before, it is given time to tell of this one.
        """
        if "clock_qerr" not in self._registers.names:
            return None
        for _ in range(QERR_TRIES):
            word = self._registers.read("clock_qerr")
            if not word & formats.QERR_KNOWN:
                break
            if word >> formats.QERR_COUNT_BIT & formats.QERR_COUNT_MASK == edge.count & formats.QERR_COUNT_MASK:
                late_ps = word >> formats.QERR_BIT
                return late_ps - (1 << 32 - formats.QERR_BIT if late_ps >> 31 - formats.QERR_BIT else 0)
            if wait is None:
                break
            wait(self._registers.read("pps_period") / 1e9 / LOOKS_PER_PERIOD / QERR_TRIES)
        return None

    def edges(self, seconds: float, wait: Callable[[float], None]) -> Iterator[Edge]:
        """Give each edge that comes within ``seconds`` (probe time), as it comes.

        ``wait``: lets so many seconds of the probe's time pass: ``probe.wait``.
        Raises ProbeError when the PPS input is off, or no edge comes for four periods and none has before.
        """
        status = self.status()
        if not status.is_pps_enabled:
            raise ProbeError("the PPS input is off: start the firmware, or 'liteprobe clock discipline'")
        step_s = status.period_ns / 1e9 / LOOKS_PER_PERIOD
        last = self.edge()
        start = self._ticks()
        seen = False
        while (passed_ns := TICK_NS * (self._ticks() - start)) < seconds * 1e9:
            wait(step_s)
            edge = self.edge()
            if edge.count != last.count:
                seen = True
                yield edge
            last = edge
            if not seen and passed_ns > PATIENCE_PERIODS * status.period_ns:
                raise ProbeError(f"no PPS within four periods of {status.period_ns} ns: {FAULTS[ClockError.NO_PPS]}")

    def _ticks(self) -> int:
        self._registers.write("timebase_latch", 1)
        return self._registers.read("timebase_ticks")

    # What a host may ask ----------------------------------------------------------------------

    def set_mode(self, mode: ClockMode) -> None:
        """Tell whoever disciplines the clock to do so, to leave it alone, or to acquire anew."""
        self.check()
        self._registers.write_many({"clock_mode": int(mode)})

    def publish(self, values: dict[str, int]) -> None:
        """Publish words of the block ``clock`` at once, in the place of the firmware; this feeds the watchdog."""
        self.check()
        self._registers.write_burst({f"clock_{name}": value for name, value in values.items()})
        self._registers.write("clock_update", 1)


WRAP = 2**32
MISSING_WRAP = 2**16
BEST_LAST = (ClockState.UNKNOWN, ClockState.FREE_RUNNING, ClockState.ACQUIRING, ClockState.HOLDOVER, ClockState.LOCKED)


@dataclass(frozen=True)
class ClockVerdict:
    """Says what is known of a clock from the first look at it to the last: its worst state and bound, steps, refused pulses."""

    state: str  # The worst that was seen.
    bound_ns: float | None  # The greatest 95 % bound of the error of ``now`` that was seen; None: not known.
    #: ``now`` was not stepped, and the servo did not begin anew: stamps of the beginning and of the end go together.
    is_whole: bool = True
    notes: tuple[str, ...] = ()  # What the reader of the figures must know, a sentence each.


class ClockWatch:
    """Looks at a clock now and then while something is measured; the first look is when it is made.

    ``name``: what the notes call it.

    ``last``: of the last look; None where the gateware has no such clock.
    """

    def __init__(self, clock: ProbeClock, name: str = "the clock") -> None:
        self._clock = clock
        self._name = name
        self._first: ClockReport | None = None
        self.last: ClockReport | None = None
        self._worst: ClockReport | None = None
        self._bound_ns: float | None = 0.0
        self._errors = ClockError.NONE
        self._began_anew = False
        self.look()

    def look(self) -> None:
        if not (self._clock.has_status and self._clock.has_pps):
            return
        before, look = self.last, self._clock.status()
        self._first = self._first or look
        self._began_anew |= before is not None and look.edges < before.edges
        self._errors |= look.errors
        self._bound_ns = _greater(self._bound_ns, look.uncertainty_ns)
        self._worst = min((one for one in (self._worst, look) if one), key=lambda one: BEST_LAST.index(one.state))
        self.last = look

    def end(self) -> ClockVerdict:
        """Look for the last time, and return what is to be said."""
        self.look()
        if self._first is None or self.last is None or self._worst is None:
            return ClockVerdict(NAMES[ClockState.FREE_RUNNING], None)
        steps = (self.last.steps - self._first.steps) & formats.CLOCK_COUNT_MASK
        notes = (*self._of_servo(self._first, self.last, steps), *self._of_pulses(self._first, self.last))
        return ClockVerdict(self._worst.name, self._bound_ns, not (steps or self._began_anew), notes)

    def _of_servo(self, first: ClockReport, last: ClockReport, steps: int) -> Iterator[str]:
        """Give what became of ``now``."""
        if first.name != last.name:
            yield f"{self._name} was {first.name} at first, {last.name} at the end"
        if first.mode != last.mode:
            yield f"{self._name} was given another mode while it was measured"
        if self._began_anew:
            yield f"the servo of {self._name} began anew: stamps from before and after are not comparable"
        elif steps:
            times = "once" if steps == 1 else f"{steps} times"
            yield f"{self._name} was stepped {times}: what was measured across a step is off by it"
        if ClockError.STEP_REFUSED in self._errors:
            yield f"{self._name} wanted a step, which waited for the train: it was slewed, and its bound has it"

    def _of_pulses(self, first: ClockReport, last: ClockReport) -> Iterator[str]:
        """Give what became of the reference."""
        rejected = 0 if self._began_anew else (last.rejected - first.rejected) % WRAP
        if rejected:
            yield f"{self._name} refused {rejected} of its pulses"
        if missing := (last.missing - first.missing) % MISSING_WRAP:
            yield f"{self._name} missed {missing} pulses"
        if (last.jumps - first.jumps) & formats.CLOCK_COUNT_MASK or ClockError.REFERENCE_JUMPED in self._errors:
            yield f"the reference of {self._name} jumped: the bound has where its pulses were, and where they are"


def _greater(bound_ns: float | None, other_ns: float | None) -> float | None:
    """Return the greater bound; one that is not known is the greatest."""
    return None if bound_ns is None or other_ns is None else max(bound_ns, other_ns)


def watch_all(clocks: Mapping[int, tuple[str, ProbeClock]]) -> dict[int, ClockWatch]:
    """Begin to watch the clocks of all probes, given with their URLs; with one probe alone the notes don't name it."""
    return {
        key: ClockWatch(clock, "the clock" if len(clocks) == 1 else f"the clock of {url}")
        for key, (url, clock) in clocks.items()
    }


def look_at(watches: Iterable[ClockWatch]) -> None:
    """Look at all of them once more."""
    for watch in watches:
        watch.look()
