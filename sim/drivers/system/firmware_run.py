# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A simulated probe whose firmware runs, and the receiver that is wired to it."""

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from liteprobe.cores.formats import CLOCK_ERROR_MASK, ClockError, ClockState
from liteprobe.host import Probe
from liteprobe.host.clock.clock import ClockReport
from liteprobe.host.device.firmware import Console, load, read_image
from liteprobe.host.device.firmware_build import EPOCH_VARIABLE, NOT_BEFORE, Tools, find_tools
from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.device.link.url import sim_url
from liteprobe.sim.models.clock.receiver import rmc, utc_of

NOMINAL_NS = 10_000_000
PERIOD_NS = 10_000_504  # In the simulation's time, which is the oscillator's: it is 50.4 ppm fast.
RATE_PPB = 50_400
FIRST_NS = 25_000_000
UTC_OF_FIRST = 1_778_720_000  # In May 2026: no leap second can have been since 2017.
BUILT = {EPOCH_VARIABLE: str(NOT_BEFORE)}  # The firmware is older than that, whatever day it is.
TAI_UTC = 37
SENTENCE_AFTER_NS = 4_500_000
CHUNK, CHUNK_NS = 16, 800_000  # 20 octets a millisecond: the FIFO has 64, and is emptied every other one.
SYS_NS = 16  # A cycle of the processor.
CYCLES_MS = 50_000  # Of a processor at 50 MHz.
PROMPT = b"~$ "
CLOCK = (
    "state",
    "uncertainty",
    "offset",
    "rate",
    "edges",
    "rejected",
    "holdover",
    "tai_utc",
    "error",
    "updates",
    "alive",
)


def simulated_tools() -> Tools:
    """Return what firmware is built with whose receiver is simulated: as `find_tools`, and dated before its receiver."""
    tools = find_tools()
    return replace(tools, environment={**tools.environment, **BUILT})


class Work(NamedTuple):
    """CPU time for an edge, cycles: of the last one, and of the longest since the firmware began."""

    last: int
    most: int


class Receiver:
    """A receiver of the simulated probe: a "second" is a period, and sentences follow their pulses by 0.45 of one."""

    def __init__(self, link: SimLink) -> None:
        self.link = link
        self.number = 0  # Of the next pulse.
        self.has_pulses = True
        self.has_sentences = False
        self.is_garbled = False
        self.ahead_s = 0  # Of the true second.
        self.late_ns = 0  # Of its pulses,
        self.width_ns = 8000  # which last so long.
        self.utc_of_first = UTC_OF_FIRST
        self.leap: int | None = None  # Number of the pulse that begins a second 60.
        self.instead: bytes | None = None  # What it says in the place of its sentences.

    def give(self, ahead: int) -> None:
        """Make sure that what comes in the next periods is known to the simulation."""
        now_ns = self.link.now_ns()
        self.number = max(self.number, math.ceil((now_ns + 1000 - FIRST_NS) / PERIOD_NS))
        while FIRST_NS + self.number * PERIOD_NS < now_ns + ahead * PERIOD_NS:
            at_ns = FIRST_NS + self.number * PERIOD_NS
            if self.has_pulses:
                self.link.receive(f"pps {at_ns + self.late_ns} {self.width_ns}")
            if self.has_sentences:
                self._say(at_ns + SENTENCE_AFTER_NS)
            self.number += 1

    def _sentence(self) -> bytes:
        is_leap = self.number == self.leap
        late = self.leap is not None and self.number >= self.leap
        octets = rmc(utc_of(self.utc_of_first + self.number + self.ahead_s - late), leap=is_leap)
        return octets.replace(b"A", b"B", 1) if self.is_garbled else octets

    def _say(self, at_ns: int) -> None:
        octets = self._sentence() if self.instead is None else self.instead
        for first in range(0, len(octets), CHUNK):
            self.link.receive(f"gnss {at_ns} {octets[first : first + CHUNK].hex()}")
            at_ns += CHUNK_NS


@dataclass
class Running:
    """A probe whose firmware runs."""

    probe: Probe
    console: Console
    receiver: Receiver
    boot_cycles: int  # From the jump into the image to the first publication, and one look more.

    def clock(self) -> dict[str, int]:
        """Return what any host reads of the clock; signed where it is; of the errors their bits alone."""
        values = self.probe.registers.read_many(f"clock_{name}" for name in CLOCK)
        values["clock_error"] &= CLOCK_ERROR_MASK
        return {name.removeprefix("clock_"): value for name, value in values.items()}

    def status(self) -> ClockReport:
        """Return what ``liteprobe clock status`` shows."""
        return self.probe.timebase.clock.status()

    def edge(self) -> tuple[int, int]:
        """Return what the clock showed at the last edge: whole periods, and nanoseconds from there (either way).

        The edge is at the beginning of its tick, which the stamp tells; the servo takes it for the middle of its quarter, so
        the clock is 1 ns behind at the edge.
        """
        registers = self.probe.registers
        registers.write("pps_latch", 1)
        now = registers.read("pps_now")
        number = (now + NOMINAL_NS // 2) // NOMINAL_NS
        return number, now - number * NOMINAL_NS

    def pulses(self) -> int:
        """Return the number of the last pulse, from 0."""
        return (self.receiver.link.now_ns() - FIRST_NS) // PERIOD_NS

    def tai(self) -> int:
        """Return the second that the last pulse began, which the receiver knows."""
        return self.receiver.utc_of_first + TAI_UTC + self.pulses()

    def wait(self, periods: float) -> None:
        """Let periods pass, pulses and sentences among them."""
        while periods > 0:
            self.receiver.give(ahead=2)
            self.probe.wait(min(periods, 1) * PERIOD_NS / 1e9)
            periods -= 1

    def until(self, states: set[ClockState], periods: int) -> dict[str, int]:
        """Wait for one of some states, for up to so many periods."""
        for _ in range(periods):
            found = self.clock()
            if found["state"] in states:
                return found
            self.wait(1)
        raise AssertionError(f"still {self.clock()}")

    def until_error(self, bit: ClockError, is_set: bool, periods: int) -> dict[str, int]:
        """Wait until a bit of the errors is as wanted, for up to so many periods."""
        for _ in range(periods):
            found = self.clock()
            if bool(found["error"] & bit) == is_set:
                return found
            self.wait(1)
        raise AssertionError(f"still {self.clock()}")

    def shell(self, line: str) -> str:
        """Type a command, and return what it answers."""
        self.receiver.give(ahead=5)
        self.console.write(line.encode() + b"\n")
        said = b""
        for _ in range(60):
            self.receiver.give(ahead=3)
            said += self.console.follow(PERIOD_NS / 1e9, PROMPT)
            if PROMPT in said:
                return said.decode()
        raise AssertionError(f"no prompt after {said!r}")

    def work(self) -> Work:
        """Return the CPU time that edges took, as the shell tells it."""
        said = re.search(r"(\d+) us an edge, at most (\d+) us", self.shell("clock"))
        assert said
        return Work(*(int(us) * 1000 // SYS_NS for us in said.groups()))


@contextmanager
def boot(build: Path, image: Path, **options: str | Path) -> Iterator[Running]:
    """Load the firmware into a new simulation, with nothing wired to it yet, and wait until it publishes.

    Parameters
    ----------
    build, image : the simulated probe, and firmware for it.
    options : further ones of its URL.
    """
    with Probe(sim_url("cable?delay=1us", build=build, **options)) as probe:
        link = probe.registers.link
        assert isinstance(link, SimLink)
        probe.registers.write_many({"pps_period": NOMINAL_NS})
        load(probe.registers, read_image(image))
        began_ns = link.now_ns()
        while not probe.registers.read("clock_updates") and link.now_ns() < began_ns + 20_000_000:
            probe.wait(20e-6)
        boot_cycles = (link.now_ns() - began_ns) // SYS_NS
        yield Running(probe, Console(probe.registers), Receiver(link), boot_cycles)
