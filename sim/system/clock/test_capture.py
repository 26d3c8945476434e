# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The capture of the PPS in parts of a tick, and the receiver's quantisation error: the whole probe against its pins."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from liteprobe.cores.formats import ClockState, PpsControl
from liteprobe.host import Probe
from liteprobe.host.clock.clock import TICK_PS
from liteprobe.host.device.link.sim import SimLink
from liteprobe.sim.drivers.frames import truth
from liteprobe.sim.drivers.system.firmware_run import NOMINAL_NS, boot
from liteprobe.sim.drivers.system.harness import probe_of
from liteprobe.sim.models.clock.receiver import rmc, tim_tp, ubx, utc_of

PIN_PORT = 255  # Of the rows of pulses.
PERIOD_NS = 100_000
SAMPLES = 4


@pytest.mark.parametrize("ppm", [17, -40])
def test_an_edge_lies_in_the_quarter_of_a_tick_that_it_tells(own: Path, tmp_path: Path, ppm: int) -> None:
    path, count = tmp_path / "truth", 60
    spec = f"period={PERIOD_NS // 1000}us&first=250us&width=3us&jitter=40ns&ppm={ppm}&seed=5"
    with probe_of(own, "--truth", str(path), "--pps", spec) as (harness, probe):
        clock = probe.timebase.clock
        probe.registers.write("pps_period", PERIOD_NS)
        probe.registers.write("pps_control", PpsControl.ENABLE)
        assert clock.quantum_ps == TICK_PS // SAMPLES
        edges = []
        for n in range(count):
            harness.run(max(0, 300_000 + n * PERIOD_NS - harness.run(0)))
            edges.append(clock.edge())
        harness.command("sync")
    rows = truth.read_truth(path)
    rows = rows[(rows["port"] == PIN_PORT) & (rows["direction"] == truth.IN)][:count]
    assert [edge.count for edge in edges] == list(range(1, count + 1))
    ends_ps = np.array([1000 * edge.now_ns + TICK_PS - edge.early_ps for edge in edges])
    before_ps = ends_ps - rows["origin_tick"].astype(np.int64)
    assert (before_ps > 0).all() and (before_ps <= clock.quantum_ps).all()
    assert {edge.early_ps for edge in edges} == {n * clock.quantum_ps for n in range(SAMPLES)}


# Quantisation error -------------------------------------------------------------------------------

PERIOD_PS = 10_000_504_137  # In the simulation's time, which is the oscillator's: it is 50.4 ppm fast.
FIRST_PS = 25_000_000_000
UTC_OF_FIRST = 1_796_000_000
CHUNK, CHUNK_PS = 16, 600_000_000  # 53 octets in 2 ms: the FIFO has 64, and is emptied after one to two.
SETTLE, SETTLE_TOLD = 10, 6  # Pulses.
#: Requests of the firmware to the receiver, each of 11 octets: TIM-TP with each pulse, NAV-TIMELS with each tenth fix.
TIM_TP, NAV_TIMELS = ubx(0x06, 0x01, bytes([0x0D, 0x01, 1])), ubx(0x06, 0x01, bytes([0x01, 0x26, 10]))
GRID_PS, RAMP = 20_833, 16  # A receiver's clock of 48 MHz, which slides a period in so many pulses.


@dataclass
class Seen:
    """An edge: its number, what the clock showed at the true second (ns), what was published of it (ns, ps)."""

    number: int
    error_ns: float
    told_ns: float
    qerr_ps: int | None


class Receiver:
    """A receiver whose pulses are on the grid of its own clock, late by up to half a period of it either way."""

    def __init__(self, probe: Probe) -> None:
        link = probe.registers.link
        assert isinstance(link, SimLink)
        self.probe, self.link = probe, link
        self.number = 0  # Of the next pulse.
        self.tells = False  # TIM-TP, of the pulse that follows.

    @staticmethod
    def second_ps(number: int) -> int:
        """Return when a second begins, in the simulation's time."""
        return FIRST_PS + number * PERIOD_PS

    @staticmethod
    def late_ps(number: int) -> int:
        """Return how much later the pulse comes."""
        return number % RAMP * GRID_PS // RAMP - GRID_PS // 2

    def give(self) -> None:
        """Tell the simulation of the next pulse, the sentence behind it and what is said of the one after."""
        number = self.number
        at_ps = self.second_ps(number) + self.late_ps(number)
        self.link.receive(f"pps {at_ps // 1000}.{at_ps % 1000:03} 8000")
        said = rmc(utc_of(UTC_OF_FIRST + number))
        if self.tells:
            said += tim_tp(utc_of(UTC_OF_FIRST + number + 1), self.late_ps(number + 1))
        for chunk, first in enumerate(range(0, len(said), CHUNK)):
            start_ns = (self.second_ps(number) + 4_500_000_000 + chunk * CHUNK_PS) // 1000
            self.link.receive(f"gnss {start_ns} {said[first : first + CHUNK].hex()}")
        self.number += 1

    def pulse(self) -> Seen:
        """Let the next pulse come, and be taken; the clock at its second is worked out from the stamp, by ticks of 8 ns."""
        self.give()
        number = self.number - 1
        self.probe.wait((self.second_ps(number) // 1000 + 6_500_000 - self.link.now_ns()) / 1e9)
        clock = self.probe.timebase.clock
        edge, status = clock.edge(), clock.status()
        stamped_ps = 8000 * (edge.ticks - 1)
        assert 0 <= self.second_ps(number) + self.late_ps(number) - stamped_ps < TICK_PS
        shown_ns = edge.now_ns + Fraction(edge.fraction, 2**32) + Fraction(self.second_ps(number) - stamped_ps, 1000)
        off_ns = (shown_ns + NOMINAL_NS // 2) % NOMINAL_NS - NOMINAL_NS // 2
        return Seen(number, float(off_ns), status.offset_ns, clock.qerr_ps(edge))


@pytest.fixture(scope="module")
def receiver(own: Path, image: Path) -> Iterator[Receiver]:
    """A probe whose firmware runs, with a receiver; needs Zephyr, as sim/system/firmware/test_firmware.py does."""
    with boot(own, image) as running:
        yield Receiver(running.probe)


def messages_of(octets: bytes) -> list[bytes]:
    """Return what the firmware asked the receiver for."""
    return [octets[first : first + len(TIM_TP)] for first in range(0, len(octets), len(TIM_TP))]


def test_the_servo_follows_the_second_and_not_the_sawtooth_that_is_told(receiver: Receiver) -> None:
    """A ramp of the receiver's clock period, without and then with TIM-TP; the truth is the receiver's own second."""
    silent = [receiver.pulse() for _ in range(SETTLE + RAMP)][SETTLE:]
    assert receiver.probe.timebase.clock.status().state == ClockState.LOCKED
    assert {one.qerr_ps for one in silent} == {None}
    asked = messages_of(receiver.link.sent_to_receiver())
    receiver.tells = True
    told = [receiver.pulse() for _ in range(SETTLE_TOLD + RAMP)]
    assert [one.qerr_ps for one in told] == [None, None, *[receiver.late_ps(one.number) for one in told[2:]]]
    told = told[SETTLE_TOLD:]
    # At the start, and every ten seconds (of a period each) until it came; for leap seconds as long as they aren't sure.
    assert set(asked) <= {TIM_TP, NAV_TIMELS} and 2 <= asked.count(TIM_TP) <= 4
    assert set(messages_of(receiver.link.sent_to_receiver())) <= {NAV_TIMELS}
    status = receiver.probe.timebase.clock.status()
    assert (status.state, status.rejected) == (ClockState.LOCKED, 0)
    errors = [np.array([one.error_ns for one in part]) for part in (silent, told)]
    off = [np.array([one.told_ns - one.error_ns for one in part]) for part in (silent, told)]
    rms = [float(np.sqrt(np.mean(part**2))) for part in errors]
    print(f"clock without {rms[0]:.2f} ns RMS, with {rms[1]:.2f}")
    print("what was told less what was true:", *[f"{np.abs(part).max():.2f} ns" for part in off])
    # What the servo takes for the second is off by the sawtooth, or by half a quarter of a tick.
    assert np.abs(off[1]).max() < 1.1 and np.abs(off[0]).max() > 8
    assert np.abs(errors[1]).max() < 2 and rms[1] < rms[0] / 3
