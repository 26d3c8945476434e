# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Two simulated probes whose clocks follow a PPS each, and how far a measured one-way delay is from the truth."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.analysis import line_clock
from liteprobe.host.serve.discipline import Discipline, settle
from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.device.link.url import sim_url
from liteprobe.host.suites.owd import OneWayResult
from liteprobe.host.probe import Probe
from liteprobe.sim.drivers.frames.truth import frames_in, read_truth

PORTS_PER_PROBE = 16 # In rows of the truth.
LATCHES = 96
TICK_NS = 8.0


@dataclass
class PairBench:
    """Two open probes of one simulation.

    ``servos``: their servos, on this host.
    """

    a: Probe
    b: Probe
    servos: list[Discipline]
    truth: Path

    def tend(self) -> None:
        """Let the servos do what is to be done by now."""
        for servo in self.servos:
            servo.tend()

    def settle(self, periods: int) -> None:
        """Let so many periods of the PPS pass."""
        settle(self.servos, periods*self.servos[0].period_ns/1e9)

    def errors_ns(self, result: OneWayResult, receiver: int = 1, port: int = 0) -> NDArray[np.float64]:
        """Return measured less true delay of each packet of ``result`` (ns), received at a port of probe 0 (a) or 1 (b)."""
        link = self.a.link
        assert isinstance(link, SimLink)
        link.sync()
        # Of this program alone: it began at its PPS, by a clock that is good to far better than a train is long.
        rows = frames_in(read_truth(self.truth), PORTS_PER_PROBE*receiver + port)
        rows = rows[rows["origin_tick"].astype(np.int64) > 1000*(result.start_time_ns - 1000)]
        first = {int(row["sequence"]): row for row in reversed(rows)}
        true_ps = [int(first[int(n)]["sfd_tick"]) - int(first[int(n)]["origin_tick"]) for n in result.arrived.sequence]
        return np.asarray(result.owd_ns - np.array(true_ps)/1e3, np.float64)


@contextmanager
def open_pair(truth: Path, wire: str = "pair?delay=1us", build: Path | None = None, **settings: str) -> Iterator[PairBench]:
    """Open both probes of a pair without firmware, their servos on this host; ``settings`` go into the URL."""
    options: dict[str, str | Path] = {"pps": "1ms", "cpu": "0", "truth": truth, **settings}
    if build is not None:
        options["build"] = build
    with Probe(sim_url(wire, **options, probe="a")) as a, Probe(sim_url(wire, **options, probe="b")) as b:
        yield PairBench(a, b, [Discipline(a), Discipline(b)], truth)


def stamps(at_ns: NDArray[np.float64], own_ns: float) -> NDArray[np.int64]:
    """Return stamps: the beginning of the tick, the ticks beginning at ``own_ns``, its fraction of a ns cut off."""
    whole: NDArray[np.int64] = np.floor(np.floor((at_ns - own_ns)/TICK_NS)*TICK_NS + own_ns).astype(np.int64)
    return whole


def modelled_errors_ns(
    sender_ns: NDArray[np.float64], receiver_ns: NDArray[np.float64], seed: int, rate_ppm: float = 50.0, packets: int = 10
) -> NDArray[np.float64]:
    """Return what two clocks, the stamps' ticks and the line's clock make of a delay's error (ns).

    Parameters
    ----------
    sender_ns, receiver_ns : array, shape (trains,); error of each clock at each train, from runs of the servo.
    rate_ppm : between the two oscillators: how fast the ticks of the line slide past those of the receiver.
    packets : of each train.

    Returns
    -------
    array, shape (trains x packets,)
    """
    generator = np.random.default_rng([seed, 4])
    found = []
    for sent, received in zip(sender_ns, receiver_ns, strict=True):
        own_ns = generator.uniform(0, TICK_NS) # Phase of the receiver's ticks.
        period_ns = TICK_NS*(1 - rate_ppm*1e-6) # Of a tick of the line, by the receiver's clock.
        phase_ns = generator.uniform(0, TICK_NS) + received

        latched = np.sort(generator.choice(2_000_000, LATCHES, replace=False))
        line = line_clock.fit(latched, stamps(phase_ns + period_ns*latched, own_ns))
        arrived = generator.integers(2_000_000, 2_500_000, packets)
        stamped = stamps(phase_ns + period_ns*arrived, own_ns)
        departed = sent - generator.uniform(0, 1, packets) # The sender's stamp is cut to a ns, too.
        measured = stamped + line.correction(stamped) - (phase_ns - received + period_ns*arrived)
        found.append(measured - departed)
    return np.concatenate(found)


def spread(errors_ns: NDArray[np.float64]) -> tuple[float, float]:
    """Return RMS and P99.9 of the absolute error (ns)."""
    return float(np.sqrt(np.mean(errors_ns**2))), float(np.percentile(np.abs(errors_ns), 99.9))

