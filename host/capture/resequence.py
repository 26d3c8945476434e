# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Puts the blocks that a network brings back into order, and says which ones to ask for again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import BLOCK_WORDS
from liteprobe.host.capture.decode.stream import Blocks, are_whole, block_headers, channels_of

WRAP = 1 << 32
NEAR = 1 << 20  # Blocks: a number further ahead is none of this capture.


@dataclass(frozen=True)
class Patience:
    """When to ask for a block again, and when to give it up.

    Parameters
    ----------
    wait_s : float
        Time without the block after which it is asked for, and asked for again (s).
    tries : int
        Times that it is asked for.
    """

    wait_s: float = 0.02
    tries: int = 25


@dataclass
class _Channel:
    expected: int
    held: dict[int, NDArray[np.uint32]] = field(default_factory=dict)
    tries: int = 0
    asked_at: float = 0.0
    last_known: int = 0  # Blocks that the probe has sent.

    @property
    def is_behind(self) -> bool:
        """Whether the probe has sent blocks that have not come."""
        return bool(self.held) or 0 < (self.last_known - self.expected) % WRAP < NEAR


class Resequencer:
    """Orders the blocks of all channels by their numbers.

    Parameters
    ----------
    first_numbers : mapping
        Number of the first block to come, by channel. Others are foreign.
    patience : Patience

    Attributes
    ----------
    asked, repeated, never_came, foreign : int
        Times that blocks were asked for again; blocks that came again; blocks that never came; what is not a block of a
        channel of this capture.
    """

    def __init__(self, first_numbers: Mapping[int, int], patience: Patience | None = None) -> None:
        self.patience = patience or Patience()
        self.asked = self.repeated = self.never_came = self.foreign = 0
        self._channels = {number: _Channel(first, last_known=first) for number, first in first_numbers.items()}

    def expected(self, channel: int) -> int:
        """Return the number of the next block of a channel: all before it have been handed on."""
        return self._channels[channel].expected

    def push(self, blocks: Blocks, lengths: NDArray[Any], now_s: float) -> Blocks:
        """Take what came at ``now_s``; return the blocks that are due, each channel in order.

        What is in order, as nearly always, is handed on as it is, without a copy.
        """
        headers = block_headers(blocks)
        is_known = are_whole(headers, lengths)
        channels = channels_of(headers)
        is_known &= np.isin(channels, list(self._channels))
        self.foreign += int(np.count_nonzero(~is_known))
        rows: list[NDArray[np.int64]] = []
        late: list[NDArray[np.uint32]] = []
        for number, channel in self._channels.items():
            mine = np.flatnonzero(is_known & (channels == number))
            numbers = headers["number"][mine]
            wanted = np.uint32(channel.expected) + np.arange(len(mine), dtype=np.uint32)
            if not channel.held and (numbers == wanted).all():
                if len(mine):
                    self._advance(channel, channel.expected + len(mine), now_s)
                rows.append(mine)
            elif len(mine):
                late += self._hold(channel, numbers, blocks[mine], now_s)
        whole = np.sort(np.concatenate(rows)) if rows else np.empty(0, np.int64)
        in_order = blocks if len(whole) == len(blocks) else blocks[whole]
        return np.concatenate([in_order, np.array(late).reshape(-1, BLOCK_WORDS)]) if late else in_order

    def note_sent(self, channel: int, sent: int, now_s: float) -> None:
        """Take how many blocks the probe has sent: one that is lost at the end would be missed by nobody else.

        A block is late from ``now_s`` on, however long ago the last look was: it may be on its way.
        """
        state = self._channels.get(channel)
        if state is not None and (sent - state.last_known) % WRAP < NEAR:
            if not state.is_behind:
                state.asked_at = now_s
            state.last_known = sent

    def overdue(self, now_s: float) -> list[tuple[int, int]]:
        """Return which blocks (channel, number) are to be asked for at ``now_s``: call it now and then."""
        found = []
        for number, channel in self._channels.items():
            if not channel.is_behind:
                channel.asked_at = now_s
                continue
            if now_s - channel.asked_at >= self.patience.wait_s and channel.tries < self.patience.tries:
                channel.tries += 1
                channel.asked_at = now_s
                self.asked += 1
                found.append((number, channel.expected))
        return found

    def give_up(self, now_s: float) -> Blocks:
        """Return the blocks behind those that were asked for often enough: these are counted as never come."""
        freed: list[NDArray[np.uint32]] = []
        for channel in self._channels.values():
            is_over = channel.tries >= self.patience.tries and now_s - channel.asked_at >= self.patience.wait_s
            if not is_over:
                continue
            ahead = min(((number - channel.expected) % WRAP for number in channel.held), default=0)
            ahead = ahead or (channel.last_known - channel.expected) % WRAP
            self.never_came += ahead
            self._advance(channel, channel.expected + ahead, now_s)
            freed += self._release(channel, now_s)
        return np.array(freed, np.uint32).reshape(-1, BLOCK_WORDS)

    def _hold(
        self, channel: _Channel, numbers: NDArray[np.uint32], blocks: Blocks, now_s: float
    ) -> list[NDArray[np.uint32]]:
        """Keep blocks that came out of order; return those that are due."""
        if not channel.held:
            channel.asked_at = now_s
        for number, block in zip(numbers.tolist(), blocks, strict=True):
            ahead = (number - channel.expected) % WRAP
            if ahead >= WRAP // 2 or number in channel.held:
                self.repeated += 1
            elif ahead >= NEAR:
                self.foreign += 1
            else:
                channel.held[number] = block.copy()
        return self._release(channel, now_s)

    def _release(self, channel: _Channel, now_s: float) -> list[NDArray[np.uint32]]:
        freed = []
        number = channel.expected
        while (block := channel.held.pop(number, None)) is not None:
            freed.append(block)
            number = (number + 1) % WRAP
        if freed:
            self._advance(channel, number, now_s)
        return freed

    @staticmethod
    def _advance(channel: _Channel, number: int, now_s: float) -> None:
        channel.expected = number % WRAP
        channel.tries = 0
        channel.asked_at = now_s  # While blocks come, none is late.
        if (channel.expected - channel.last_known) % WRAP < NEAR:
            channel.last_known = channel.expected
