# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Random records for the capture."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from liteprobe.cores.formats import CHANNELS, RECORD_HEAD_WORDS, UNIFIED_WORDS, UnifiedFlag
from liteprobe.sim.bench.capture.capture_run import Sent
from liteprobe.sim.models.capture import CaptureRecord

START = 100  # Cycle of the first one.


@dataclass(frozen=True)
class Mix:
    """What comes: on how many ports and channels, how often (mean cycles between two records of a port), how long.

    ``snap_lengths``: of which one is drawn; ``headers``, ``lost``: parts of the records that have a header, that are lost before.
    """

    ports: int = 2
    channels: int = CHANNELS
    interval: int = 100
    snap_lengths: Sequence[int] = (0, 60, 64, 333)
    headers: float = 0.3
    lost: float = 0.02


def random_record(rng: random.Random, mix: Mix, port: int, number: int) -> CaptureRecord:
    """Return a record; its stamp tells port and number."""
    length = rng.choice(mix.snap_lengths)
    flags = rng.getrandbits(16) & ~(UnifiedFlag.HEADER | UnifiedFlag.GAP)
    place = rng.getrandbits(8) << 16 | rng.randrange(mix.channels) << 24 | port << 28
    head = (rng.getrandbits(32), port << 24 | number, rng.randrange(60, 1515) | length << 16, flags | place)
    rest = UNIFIED_WORDS - RECORD_HEAD_WORDS if rng.random() < mix.headers else 0
    words = [tuple(rng.getrandbits(32) for _ in range(count)) for count in (rest, -(-length // 4))]
    return CaptureRecord(head, *words)


def random_records(rng: random.Random, mix: Mix, count: int) -> list[Sent]:
    """Return so many records, by port in the order of time."""
    sent = []
    for port in range(mix.ports):
        cycle = START
        for number in range(count // mix.ports):
            cycle += rng.randrange(1, 2 * mix.interval)
            record = random_record(rng, mix, port, number)
            sent.append(Sent(cycle, port, record, rng.random() < mix.lost))
    return sent
