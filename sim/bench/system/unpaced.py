# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A recorded capture over UDP from a sender that doesn't wait: what comes at a set rate, and whether each loss is counted.

The sender is a process of its own on this machine. It sends 16 blocks by one call of the kernel (UDP_SEGMENT), by the clock,
and nothing twice: what the receiver loses is lost.
"""

import multiprocessing
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import BLOCK_HEADER_WORDS, BLOCK_WORDS
from liteprobe.host.capture.decode import BLOCK_OCTETS
from liteprobe.host.capture.receive import Receiver, open_socket
from liteprobe.host.capture.sources import LINGER_S, Batches, UdpSource
from liteprobe.sim.bench.system.host_speed import SENT, RemoteRing, processor_s, run

UDP_SEGMENT = 103  # Option of SOL_UDP, Linux; Python has no name for it.
BURST = 16
ENDED, STARTED = 2, 3  # Beside SENT: times (ns) of the last block and of the first.
HURRY_S = 120.0


@dataclass(frozen=True)
class Unpaced:
    """What was sent, and what came of it.

    Parameters
    ----------
    frames, written, whole : int
        Frames that were sent; that are in the file; all of whose octets came.
    blocks, came, never_came : int
        Blocks that were sent; that came, by their numbers; that the product counts as lost.
    rate : float
        Frames a second, as they were sent.
    cores : float
        Processor cores that all that receives took.
    """

    frames: int
    written: int
    whole: int
    blocks: int
    came: int
    never_came: int
    rate: float
    cores: float

    @property
    def off(self) -> int:
        """Blocks and frames that are neither there nor counted as lost, or both."""
        return abs(self.blocks - self.came - self.never_came) + abs(self.whole - self.written)


class _Noting:
    """A source that notes the numbers of the blocks that come."""

    def __init__(self, source: UdpSource) -> None:
        self._source = source
        self.numbers: list[NDArray[np.uint32]] = []

    def batches(self) -> Batches:
        """Yield what the source does."""
        for blocks, lengths in self._source.batches():
            if len(blocks):
                self.numbers.append(blocks[:, 0].copy())
            yield blocks, lengths


def send(path: Path, port: int, blocks_a_second: float, shared: Any) -> None:
    """Send a recording at a rate, whatever becomes of it: the other process."""
    octets = memoryview(path.read_bytes())
    count, pointers = len(octets) // BLOCK_OCTETS, shared.get_obj()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_UDP if hasattr(socket, "SOL_UDP") else 17, UDP_SEGMENT, BLOCK_OCTETS)
        sock.connect(("127.0.0.1", port))
        began_s = time.monotonic()
        pointers[STARTED] = int(1e9 * began_s)
        for first in range(0, count, BURST):
            if (early_s := began_s + first / blocks_a_second - time.monotonic()) > 0:
                time.sleep(early_s)
            end = min(first + BURST, count)
            sock.send(octets[first * BLOCK_OCTETS : end * BLOCK_OCTETS])
            pointers[SENT] = end
        pointers[ENDED] = int(1e9 * time.monotonic())
        time.sleep(HURRY_S)  # Ended by the parent.


def at_rate(path: Path, output: Path, frames_a_second: float, frame_words: int) -> Unpaced:
    """Send a recording of frames of ``frame_words`` words each; take it to a file."""
    count = path.stat().st_size // BLOCK_OCTETS
    payload = BLOCK_WORDS - BLOCK_HEADER_WORDS
    context = multiprocessing.get_context("spawn")
    shared = context.Array("q", 4)
    receiver = Receiver([open_socket("127.0.0.1")])
    blocks_a_second = frames_a_second * frame_words / payload
    sender = context.Process(target=send, args=(path, receiver.port, blocks_a_second, shared), daemon=True)
    try:
        sender.start()
        source = UdpSource(_Line(shared, count), receiver, [0])  # type: ignore[arg-type]
        while not receiver.waiting:
            time.sleep(0.001)
        source.stop()
        noting = _Noting(source)
        written, seconds, used_s = run(noting, output)  # type: ignore[arg-type]
        used_s += processor_s(receiver.pid)
        sent_s = (shared[ENDED] - shared[STARTED]) / 1e9
    finally:
        receiver.close()
        sender.kill()
        sender.join()
    is_there = np.zeros(count, bool)
    is_there[np.concatenate(noting.numbers)] = True
    frames = count * payload // frame_words
    first = np.arange(frames) * frame_words
    whole = int(np.count_nonzero(is_there[first // payload] & is_there[(first + frame_words - 1) // payload]))
    came = int(np.count_nonzero(is_there))
    return Unpaced(
        frames, written, whole, count, came, source.order.never_came, frames / sent_s, used_s / (seconds - LINGER_S)
    )


def greatest(measure: Callable[[float], Unpaced], rates: list[float]) -> tuple[list[Unpaced], Unpaced | None]:
    """Return what came at each rate (frames/s, rising) until blocks were lost twice, and the best run without a loss."""
    runs: list[Unpaced] = []
    best: Unpaced | None = None
    for rate in rates:
        for _ in range(2):
            runs.append(measure(rate))
            if not runs[-1].never_came:
                best = runs[-1]
                break
        else:
            break
    return runs, best


# # #


class _Line(RemoteRing):
    """A ring that nobody can free or ask."""

    def free(self, channel: int, number: int) -> None:
        """Do nothing."""

    def resend(self, channel: int, number: int) -> None:
        """Do nothing."""
