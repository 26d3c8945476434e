# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""CERN's experiment: a web site is fetched through a queue that carries other traffic, too.

12.5 ms each way, 10 Mb/s, a queue of 128 frames; 499 files, 1.6 MB. Background of frames of 1514 octets in both directions: at
constant or exponential intervals, in bursts, or by a pattern of exponential intervals that was uploaded and repeats, as theirs was.
Load is the share of the rate that the background asks for; a pattern's own share is off by one part in the root of its intervals.

Source: M. Ivanovici, R. Beuran, N. Davies, "Assessing Application Performance in Degraded Network Environments: an FPGA-based
Approach", Communicating Process Architectures 2005.
"""

import multiprocessing
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from liteprobe.cores.formats import TICK_NS
from liteprobe.cores.formats.emulate import FINE_BITS, PATTERN_WORDS, BackgroundKind, ClassCounter
from liteprobe.host.device.link.sim_stations import CLIENT
from liteprobe.sim.drivers.emulator.stations.network import CLASS, Model, Simulation
from liteprobe.sim.models.emulator.direction import AROUND
from liteprobe.sim.models.emulator.fifo import FifoDirection
from liteprobe.sim.models.emulator.settings import Settings, bank_words

FILES = 499
SITE_OCTETS = 1_600_000
SITE_SEED = 2005
SIGMA = 1.2  # Of the logarithm of a file's length: some are twenty times as long as most.

TICKS_S = 10**9 // TICK_NS
DELAY = 12_500_000 // TICK_NS
BACKGROUND_LENGTH = 1514
BURST = 32  # Frames, on average.
STORE_BITS = 18  # Of the words of the engine's store: more than a queue of frames and what is under way.


@dataclass(frozen=True)
class Line:
    """A direction without its background.

    Attributes
    ----------
    octet, delay : ticks of an octet on the link; from its end on.
    queue : frames.
    """

    octet: int = 100  # 10 Mb/s.
    delay: int = DELAY
    queue: int = 128


CERN = Line()


class Kind(Enum):
    """Kinds of background traffic."""

    CONSTANT = "constant"
    EXPONENTIAL = "exponential"
    BURSTS = "bursts"
    PATTERN = "pattern"


@dataclass(frozen=True)
class Transfer:
    """Holds the result of a transfer.

    Attributes
    ----------
    seconds : until the client had the last file; of one that isn't complete, how long it was given.
    wrong : octets that weren't those of the site.
    connections, repeats : opened; fetches begun anew.
    frames, lost : of the stations, both directions; those that found the queue full.
    """

    seconds: float
    is_complete: bool
    wrong: int
    connections: int
    repeats: int
    frames: int
    lost: int


def site(files: int = FILES, octets: int = SITE_OCTETS) -> list[int]:
    """Return the lengths of the files, log-normal, always the same, exactly ``octets`` in total."""
    shares = np.random.default_rng(SITE_SEED).lognormal(0, SIGMA, files)
    ends = np.rint(np.cumsum(shares) / shares.sum() * octets).astype(np.int64)
    return [int(length) for length in np.diff(ends, prepend=0)]


def fields(kind: Kind, load: float, seed: int, line: Line = CERN) -> dict[str, int]:
    """Return the settings of the class of a direction: queue, delay, and a background that asks for this share of the rate."""
    own = {"delay": line.delay, "limit_frames": line.queue, "overhead": AROUND}
    if load:
        service = (BACKGROUND_LENGTH + AROUND) * line.octet
        random = np.random.default_rng([SITE_SEED, seed])
        ticks, fraction = divmod(round((service << FINE_BITS) / load), 1 << FINE_BITS)
        own |= {"background_length": BACKGROUND_LENGTH, "background_phase": int(random.integers(4 * service))}
        own |= {"background_seed_low": int(random.integers(1, 2**32)), "background_seed_high": int(random.integers(2**32))}
        if kind is not Kind.BURSTS:
            own["background"] = BackgroundKind[kind.name]
            own |= {"background_ticks": ticks, "background_fraction": fraction}
        else:
            # Frames of a burst come as fast as a line of 1 Gb/s brings them.
            gap = BACKGROUND_LENGTH + AROUND
            own |= {"background": BackgroundKind.RANDOM_ON_OFF, "background_ticks": gap, "background_burst": 2**32 // BURST}
            own["background_pause"] = round(BURST * service / load - (BURST - 1) * gap)
    return own


@dataclass(frozen=True)
class Case:
    """A background, and how the site is fetched through it.

    Attributes
    ----------
    load : share of the rate.
    gaps : intervals of a pattern.
    """

    kind: Kind
    load: float
    is_kept: bool
    seed: int = 0
    gaps: int = 0


def pattern(gaps: int, load: float, seed: int, line: Line = CERN) -> list[int]:
    """Return the words of a pattern of exponential intervals, with the mean of a load; a seed draws the same ones at any load."""
    mean = (BACKGROUND_LENGTH + AROUND) * line.octet / load
    drawn = np.rint(np.random.default_rng([SITE_SEED, seed, gaps]).exponential(mean, gaps))
    return [int(word) for ticks in drawn for word in (ticks, BACKGROUND_LENGTH)]


def settings(case: Case, number: int) -> Settings:
    """Return a direction of CERN's network; a pattern longer than a probe's memory is for `FifoDirection` only."""
    seed = 2 * case.seed + number
    own = fields(case.kind, case.load, seed) | {"store_bits": STORE_BITS}
    if case.gaps:
        own["background_count"] = min(case.gaps, PATTERN_WORDS // 2)
    words = pattern(case.gaps, case.load, seed) if case.gaps else []
    return Settings(bank_words({CLASS: own}, {"octet": CERN.octet << FINE_BITS}), patterns=words)


def simulation(case: Case, lengths: Sequence[int], model: Model = FifoDirection) -> Simulation:
    """Return the stations and the network between them."""
    there, back = (settings(case, number) for number in range(2))
    return Simulation(there, back, list(lengths), case.is_kept, case.seed + 1, model=model)


def transfer(case: Case, lengths: Sequence[int], limit_s: float) -> Transfer:
    """Fetch a site through the network."""
    one = simulation(case, lengths)
    is_complete = one.run(round(limit_s * TICKS_S))
    progress = one.stations[CLIENT].progress()
    return Transfer(
        seconds=one.tick / TICKS_S,
        is_complete=is_complete,
        wrong=progress.wrong,
        connections=progress.connections,
        repeats=progress.repeats,
        frames=one.count(int(ClassCounter.ARRIVED)),
        lost=one.count(int(ClassCounter.FULL)),
    )


def transfers(cases: Sequence[Case], limit_s: float, processes: int = 2) -> list[Transfer]:
    """Fetch the site in each case, in processes side by side; each ends after some, as a stack stays in its memory."""
    with multiprocessing.get_context("spawn").Pool(processes, maxtasksperchild=8) as pool:
        return pool.starmap(transfer, [(case, site(), limit_s) for case in cases], chunksize=8)
