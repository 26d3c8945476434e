# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Truth for the rules that name classes: from their words and the unified headers of frames to classes.

Source: cores/formats/emulate.py, docs/design/emulator.md ("Rules").
"""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import UNIFIED_DTYPE
from liteprobe.cores.formats.emulate import (
    RULE_BLOCK_WORDS,
    RULE_BOUNDS,
    RULE_DENIES_BIT,
    RULE_RANGES,
    RULE_VERDICTS,
    RULES,
    UNMATCHED_CLASS,
)
from liteprobe.sim.models.receive.unified import unified_header

FLAGS = (1 << 12) - 1  # Up to PROBE.
TRANSPORT = 1 << 9
WITH_PORTS = (6, 17, 132)


def headers_of(frames: Iterable[bytes]) -> NDArray[np.void]:
    """Return the unified headers of frames as an emulator has them."""
    octets = b"".join(unified_header(frame, with_rarp=True).octets() for frame in frames)
    return np.frombuffer(octets, UNIFIED_DTYPE)


def compared_words(headers: NDArray[np.void]) -> NDArray[np.uint32]:
    """Return the words that rules are compared with, shape (headers, 32)."""
    words = np.ascontiguousarray(headers).view(np.uint32).reshape(len(headers), -1).copy()
    layers = headers["layers"].astype(np.uint32)
    has_ports = (words[:, 3] & TRANSPORT != 0) & np.isin(headers["protocol"], WITH_PORTS)
    words[:, 3] &= FLAGS
    words[:, 4] = words[:, 4] & 0xFFFFFF | (layers >> 2 & 7) << 24 | (layers >> 5) << 28
    words[:, 5] = words[:, 5] & 0xFFFF00FF | (layers & 3) << 8 | has_ports.astype(np.uint32) << 10
    return words


class RulesModel:
    """Rules as they are in the memory of a direction.

    Parameters
    ----------
    memory : words by their address; others are 0.
    looks : register ``rule_words``.
    rules : how many there are.
    """

    def __init__(self, memory: Mapping[int, int], looks: int, rules: int = RULES) -> None:
        self.memory, self.looks, self.rules = memory, looks, rules

    def words(self, first: int, count: int) -> list[int]:
        """Return words of all blocks, with a bit for each rule."""
        blocks = range(self.rules // RULES)
        return [
            sum(self.memory.get(RULE_BLOCK_WORDS * block + place, 0) << RULES * block for block in blocks)
            for place in range(first, first + count)
        ]

    def holding(self, headers: NDArray[np.void]) -> NDArray[np.bool_]:
        """Return which rules hold for which headers, shape (headers, rules)."""
        words = compared_words(headers)
        found = np.full((len(headers), self.rules), self.looks != 0)
        bits = np.arange(self.rules)

        def table(first: int) -> NDArray[np.bool_]:
            return np.array([[word >> int(bit) & 1 for bit in bits] for word in self.words(first, 16)], bool)

        for word in (number for number in range(3, 32) if self.looks >> number & 1):
            for half in range(8):
                found &= table(128 * word + 16 * half)[words[:, word] >> 4 * half & 15]
        for field, name in enumerate(RULE_RANGES):
            for is_upper in range(2 * (self.looks >> field & 1)):
                so_far = np.ones_like(found)
                for half in range(4):
                    at = RULE_BOUNDS + 32 * (8 + 8 * field + 4 * is_upper + half)
                    value = headers[name].astype(int) >> 4 * half & 15
                    so_far = table(at)[value] | (table(at + 16)[value] & so_far)
                found &= so_far
        return found

    def classes(self, headers: NDArray[np.void]) -> NDArray[np.uint8]:
        """Return the class of each header."""
        found = np.full(len(headers), UNMATCHED_CLASS, np.uint8)
        is_open = np.ones(len(headers), bool)  # No rule has named a class.
        skipped = np.full(len(headers), -1)
        a_turn = self.rules // 16
        for rule, holds in enumerate(self.holding(headers).T):
            verdict = self.words(RULE_VERDICTS + rule // a_turn, 1)[0] >> 4 * (rule % a_turn)
            number, denies = verdict & 7, verdict >> RULE_DENIES_BIT & 1
            counts = holds & is_open & (skipped != number)
            if denies:
                skipped[counts] = number
            else:
                found[counts], is_open[counts] = number, False
        return found
