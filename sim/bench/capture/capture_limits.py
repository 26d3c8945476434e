# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What capture holds: the greatest rate at which every frame is kept, by frame length and way out."""

from collections.abc import Sequence
from dataclasses import dataclass

from liteprobe.sim.bench.capture.capture_run import CLK_FREQ, CaptureRun, Sent, compare, run
from liteprobe.sim.models.capture import CaptureRecord

LENGTHS = (60, 64, 128, 256, 512, 1024, 1514, 9000)
PORTS = 2
OCTETS = 400_000
"""That a run keeps: several times what the rings of the runs hold."""

MOST_BPS = 1.6e9
"""A word in each cycle."""


@dataclass(frozen=True)
class Transport:
    """A way out: where the ring is, blocks of its one channel, and options of the bench."""

    with_sdram: bool
    blocks: int
    way: str


TRANSPORTS = {
    "blockram": Transport(False, 8, "pins"),
    "sdram": Transport(True, 64, "pins"),
    "udp": Transport(True, 64, "udp"),
    "udp_blockram": Transport(False, 8, "udp"),
}

LEAST_BLOCKS = {"blockram": 1250.0, "sdram": 730.0, "udp": 730.0, "udp_blockram": 950.0}
"""Mb/s of blocks that a way out is held to."""


def frames(length: int, rate_bps: float, octets: int = OCTETS) -> list[Sent]:
    """Return whole frames of a length at even distances on both ports, all of channel 0; ``rate_bps``: of their octets."""
    interval = 8 * length / rate_bps * CLK_FREQ
    words = -(-length // 4)
    sent = []
    for number in range(max(20, octets // length)):
        head = (number, 0, length | length << 16, number % PORTS << 28)
        octets_ = tuple((number << 12 | word) * 0x9E3779B1 & 0xFFFFFFFF for word in range(words))
        sent.append(Sent(100 + int(number * interval), number % PORTS, CaptureRecord(head, (), octets_)))
    return sorted(sent, key=lambda one: one.port)


def capture(way: Transport, sent: Sequence[Sent], **options: int) -> CaptureRun:
    """Send frames through a way out."""
    # Staging holds a frame of 9000 octets and one that comes.
    return run(sent, [(0, way.blocks)], way.with_sdram, way=way.way, room=4096, **options)


def keeps_all(run_: CaptureRun) -> bool:
    """Whether every frame was kept."""
    return run_.has_all and not any(run_.channels["dropped"]) and not run_.counts["missed"] and not run_.counts["overflowed"]


def limit(way: Transport, length: int, octets: int = OCTETS) -> float:
    """Return the greatest rate (bits of frames a second) at which every frame is kept, to 2 %; 0 where none is."""
    low, high = 0.0, MOST_BPS
    if not keeps_all(capture(way, frames(length, 20e6, 0))):
        return 0.0
    while high - low > 0.02 * high:
        middle = (low + high) / 2
        if keeps_all(capture(way, frames(length, middle, octets))):
            low = middle
        else:
            high = middle
    return low


def beyond(way: Transport, length: int, rate_bps: float) -> tuple[int, list[str]]:
    """Return how many frames are dropped at a rate, and what is wrong with what is kept and reported.

    Short frames may come faster than the writer takes them: those that staging has no place for count, too.
    """
    sent = frames(length, rate_bps, OCTETS // 4)
    run_ = capture(way, sent)
    return sum(run_.channels["dropped"]) + run_.counts["missed"], compare(sent, run_)


def block_rate(way: Transport, length: int) -> float:
    """Return the bits of blocks a second that a way out gives where too much comes."""
    run_ = capture(way, frames(length, MOST_BPS, 3 * OCTETS))
    # From the first block on, without it.
    octets = run_.counts["octets"] - 4 * len(run_.blocks[0][0])
    return 8 * octets / (run_.counts["last"] - run_.counts["first"]) * CLK_FREQ
