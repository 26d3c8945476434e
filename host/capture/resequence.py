# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Puts the blocks that a network brings back into order, and says which ones to ask for again.

A gap is given up when it is clear that it stays one: when it was asked for often enough, together with all gaps that were
known at the first time (the probe sends all blocks from the one that is asked for), or when blocks come that are further
ahead than a window, since the probe's ring holds no more.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import BLOCK_WORDS
from liteprobe.host.capture.decode import Blocks, are_whole, block_headers, channels_of, no_blocks

WRAP = 1 << 32
NEAR = 1 << 20  # Blocks: a number further ahead is none of this capture.
WINDOWS = 1 << 12, 1 << 16  # Blocks that are held at the least and at the most: 6 and 96 MB.
FAR = 64  # Blocks beyond the window that show that the window is over; fewer may be strays.


@dataclass(frozen=True)
class ResendPolicy:
    """Says when to ask for a block again, and when to give it up."""

    wait_s: float = 0.02  # Time without the block after which it is asked for, and asked for again (s).
    tries: int = 25  # Times that it is asked for, at least 1.


class _ChannelWindow:
    """Holds the blocks of a channel that wait for one before them, each at its number modulo the window."""

    def __init__(self, first: int, window: int) -> None:
        self.expected = self.last_known = self.top = first  # The next one; one after those sent, after those held.
        self.window = window
        self.count = 0
        self.asked_at = 0.0
        self.tops: deque[int] = deque()  # What was known when the block expected was asked for.
        self.far: dict[int, NDArray[np.uint32]] = {}
        self._held = no_blocks()  # Made when one is to be held; its pages are taken when they are written.
        self._is_held = np.zeros(0, bool)

    def ahead(self, number: int) -> int:
        """Return how far a number is ahead of the block expected; 0 where it is behind."""
        ahead = (number - self.expected) % WRAP
        return ahead if ahead < WRAP // 2 else 0

    @property
    def is_behind(self) -> bool:
        """Whether the probe has sent blocks that have not come."""
        return self.count > 0 or 0 < self.ahead(self.last_known) < NEAR

    def hold(self, numbers: NDArray[np.uint32], blocks: Blocks) -> int:
        """Hold blocks of the window; return how many of them had come before."""
        if not len(self._is_held):
            self._held, self._is_held = np.empty((self.window, BLOCK_WORDS), np.uint32), np.zeros(self.window, bool)
        places, first = np.unique(numbers % np.uint32(self.window), return_index=True)
        is_new = ~self._is_held[places]
        places, first = places[is_new], first[is_new]
        self._held[places] = blocks[first]
        self._is_held[places] = True
        self.count += len(places)
        if len(places):
            furthest = (numbers[first] - np.uint32(self.expected)).max()
            self.top = (self.expected + max(int(furthest) + 1, self.ahead(self.top))) % WRAP
        return len(numbers) - len(places)

    def take(self, length: int) -> Blocks:
        """Go on by ``length`` blocks, at most a window, and return those of them that are held."""
        self.expected, first = (self.expected + length) % WRAP, self.expected
        if not self.count:
            return no_blocks()
        places = (first + np.arange(length)) % self.window
        places = places[self._is_held[places]]
        self._is_held[places] = False
        self.count -= len(places)
        return self._held[places]

    def in_order(self) -> int:
        """Return how many blocks that follow one another are held from the expected one on."""
        if not self.count:
            return 0
        place = self.expected % self.window
        around = np.concatenate([self._is_held[place:], self._is_held[:place], [False]])
        return int(np.argmin(around))


class Resequencer:
    """Orders the blocks of all channels by their numbers.

    Memory is bounded: a channel holds at most a window of blocks. So is the time that a block is held: `ResendPolicy.tries` + 1
    waits without the block before it, twice that where it came when that was already asked for.

    Parameters
    ----------
    first_numbers : mapping
        Number of the first block to come, by channel. Others are foreign.
    ring : int
        Blocks of a channel that the probe's ring holds: the window is a power of two, as large as that where WINDOWS allows.
    """

    def __init__(self, first_numbers: Mapping[int, int], patience: ResendPolicy | None = None, ring: int = 0) -> None:
        self.patience = patience or ResendPolicy()
        self.window = min(max(1 << (ring - 1).bit_length(), WINDOWS[0]), WINDOWS[1])
        #: Times that blocks were asked for again; blocks that came again, or after they were given up; blocks that were
        #: given up; what is not a block of a channel of this capture.
        self.asked = self.repeated = self.never_came = self.foreign = 0
        self._channels = {number: _ChannelWindow(first, self.window) for number, first in first_numbers.items()}

    def expected(self, channel: int) -> int:
        """Return the number of the next block of a channel: all before it have been handed on, or given up."""
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
        late: list[Blocks] = []
        for number, channel in self._channels.items():
            mine = np.flatnonzero(is_known & (channels == number))
            numbers = headers["number"][mine]
            wanted = np.uint32(channel.expected) + np.arange(len(mine), dtype=np.uint32)
            if not channel.count and (numbers == wanted).all():
                if len(mine):
                    channel.expected = (channel.expected + len(mine)) % WRAP
                    self._progress(channel, now_s)
                    self.foreign += len(channel.far)
                    channel.far.clear()
                rows.append(mine)
            else:
                late += self._hold(channel, numbers, blocks[mine], now_s)
        whole = np.sort(np.concatenate(rows)) if rows else np.empty(0, np.int64)
        in_order = blocks if len(whole) == len(blocks) else blocks[whole]
        return np.concatenate([in_order, *late]) if late else in_order

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
                channel.tops.clear()
                continue
            if now_s - channel.asked_at >= self.patience.wait_s and len(channel.tops) < self.patience.tries:
                channel.tops.append((channel.expected + self._known(channel)) % WRAP)
                channel.asked_at = now_s
                self.asked += 1
                found.append((number, channel.expected))
        return found

    def give_up(self, now_s: float) -> Blocks:
        """Return the blocks behind those that were asked for often enough: these are counted as never come."""
        freed: list[Blocks] = []
        for channel in self._channels.values():
            is_over = now_s - channel.asked_at >= self.patience.wait_s
            if is_over and len(channel.tops) >= self.patience.tries:
                freed += self._pass(channel, channel.ahead(channel.tops.popleft()))
        return np.concatenate(freed) if freed else no_blocks()

    # # #

    @staticmethod
    def _known(channel: _ChannelWindow) -> int:
        """Return how many blocks are known of, from the expected one on."""
        sent = channel.ahead(channel.last_known)
        return max(channel.ahead(channel.top), sent if sent < NEAR else 0)

    def _hold(self, channel: _ChannelWindow, numbers: NDArray[np.uint32], blocks: Blocks, now_s: float) -> list[Blocks]:
        """Keep blocks that came out of order; return those that are due."""
        freed: list[Blocks] = []
        part = channel.window // 2  # So much of what goes on in order isn't far.
        for first in range(0, len(numbers), part):
            some = slice(first, first + part)
            if not channel.is_behind:
                channel.asked_at = now_s
            self._sort(channel, numbers[some], blocks[some])
            if count := channel.in_order():
                freed.append(channel.take(count))
                self._progress(channel, now_s)
            freed += self._come_near(channel)
            while len(channel.far) >= FAR:
                # Half a window more, so that it isn't soon full again.
                freed += self._pass(channel, min(map(channel.ahead, channel.far)) + 1 - channel.window // 2)
        return freed

    def _sort(self, channel: _ChannelWindow, numbers: NDArray[np.uint32], blocks: Blocks) -> None:
        """Hold what is within the window, lay aside what is a little beyond, and count the rest."""
        ahead = (numbers - np.uint32(channel.expected)).astype(np.int64)
        self.repeated += int(np.count_nonzero(ahead >= WRAP // 2))
        self.foreign += int(np.count_nonzero((ahead >= NEAR) & (ahead < WRAP // 2)))
        is_near = ahead < channel.window
        if is_near.any():
            self.repeated += channel.hold(numbers[is_near], blocks[is_near])
        for place in np.flatnonzero((ahead >= channel.window) & (ahead < NEAR)).tolist():
            self.repeated += int(numbers[place]) in channel.far
            channel.far[int(numbers[place])] = blocks[place].copy()

    def _come_near(self, channel: _ChannelWindow) -> list[Blocks]:
        """Hold what was beyond the window and no longer is; return what is due."""
        near = [number for number in channel.far if (number - channel.expected) % WRAP < channel.window]
        if near:
            blocks = np.array([channel.far.pop(number) for number in near])
            self.repeated += channel.hold(np.array(near, np.uint32), blocks)
        return [channel.take(count)] if (count := channel.in_order()) else []

    def _pass(self, channel: _ChannelWindow, ahead: int) -> list[Blocks]:
        """Give up what hasn't come of the next ``ahead`` blocks; return those that have, and those that follow."""
        freed: list[Blocks] = []
        target = (channel.expected + ahead) % WRAP
        while left := channel.ahead(target):
            step = min(left, channel.window)
            freed.append(channel.take(step))
            self.never_came += step - len(freed[-1])
            freed += self._come_near(channel)
        if count := channel.in_order():
            freed.append(channel.take(count))
        self._settle(channel)
        return freed

    def _progress(self, channel: _ChannelWindow, now_s: float) -> None:
        """Note that the block expected has come: while blocks come, none is late."""
        channel.asked_at = now_s
        channel.tops.clear()
        self._settle(channel)

    @staticmethod
    def _settle(channel: _ChannelWindow) -> None:
        """Have nothing that is remembered lie behind the block expected."""
        if (channel.expected - channel.last_known) % WRAP < NEAR:
            channel.last_known = channel.expected
        if not channel.ahead(channel.top):
            channel.top = channel.expected
        while channel.tops and not channel.ahead(channel.tops[0]):
            channel.tops.popleft()
