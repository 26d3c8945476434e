# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A ring that sends its blocks by UDP, as a probe's does, over a network that loses some of them."""

import socket
import threading
import time
from collections.abc import Callable, Iterable

import numpy as np

from liteprobe.cores.formats import BLOCK_WORDS, CHANNELS
from liteprobe.host.capture.ring import ChannelState
from liteprobe.host.capture.decode import Blocks, block_headers, channels_of

PACE_S = 20e-6  # Between blocks: a gigabit's 12 us, and some for the machine.

#: Whether a block is lost: from channel, number, and how often it was sent before.
Loses = Callable[[int, int, int], bool]


class FakeRing:
    """Takes the place of `CaptureRing`, with all blocks there from the start.

    Parameters
    ----------
    blocks : array, shape (blocks, 368)
    size : blocks of a channel that may be sent and not freed.

    ``sends``, ``resends``: times that each (channel, number) was sent; the numbers that were asked for.
    """

    def __init__(self, blocks: Blocks, loses: Loses = lambda *_: False, size: int = 64) -> None:
        channels = channels_of(block_headers(blocks))
        self._blocks = {channel: blocks[channels == channel] for channel in range(CHANNELS)}
        self._loses = loses
        self._size = size
        self._sent = dict.fromkeys(range(CHANNELS), 0)
        self._read = dict.fromkeys(range(CHANNELS), 0)
        self.sends: dict[tuple[int, int], int] = {}
        self.resends: list[tuple[int, int]] = []
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def send_to(self, port: int) -> None:
        """Begin to send to ports of this machine: channel n to ``port`` + n."""
        self._thread = threading.Thread(target=self._send, args=(port,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Send no more."""
        self._is_over.set()
        if self._thread:
            self._thread.join()

    def stop(self, wait: object = None) -> None:
        """Do nothing: all has been captured."""

    def states(self) -> list[ChannelState]:
        """Return how it is with each channel."""
        with self._lock:
            return [
                ChannelState(self._read[channel], self._sent[channel], self._written(channel), 0, self._size)
                for channel in range(CHANNELS)
            ]

    def free(self, channel: int, number: int) -> None:
        """Let blocks be overwritten."""
        with self._lock:
            assert self._read[channel] <= number <= self._written(channel), "freed what has not been written"
            self._read[channel] = number

    def resend(self, channel: int, number: int) -> None:
        """Send from a block on again."""
        with self._lock:
            assert number >= self._read[channel], "asked for what was freed"
            self.resends.append((channel, number))
            self._sent[channel] = number

    def fetch(self, channel: int, numbers: Iterable[int]) -> Blocks:
        """Return blocks over the bus."""
        return np.array(self._blocks[channel][list(numbers)], np.uint32)

    def _written(self, channel: int) -> int:
        """Return how many blocks there are room for."""
        return min(len(self._blocks[channel]), self._read[channel] + self._size)

    def _send(self, port: int) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            while not self._is_over.is_set():
                for channel in range(CHANNELS):
                    self._send_next(sock, port, channel)
                time.sleep(PACE_S)

    def _send_next(self, sock: socket.socket, port: int, channel: int) -> None:
        with self._lock:
            number = self._sent[channel]
            if number >= self._written(channel):
                return
            self._sent[channel] += 1
            times = self.sends.get((channel, number), 0)
            self.sends[channel, number] = times + 1
        if not self._loses(channel, number, times):
            block = self._blocks[channel][number]
            words = 4 + int(block_headers(block.reshape(1, BLOCK_WORDS))["words"][0])
            sock.sendto(block[:words].tobytes(), ("127.0.0.1", port + channel))


def numbers_of(blocks: Blocks) -> list[int]:
    """Return the numbers of blocks."""
    return [int(number) for number in block_headers(blocks)["number"]]
