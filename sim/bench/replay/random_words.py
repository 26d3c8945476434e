# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Random words to be streamed, which other processes make, too, and waiting for what becomes of them."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LONGEST_S = 60.0


@dataclass(frozen=True)
class RandomWords:
    """Random words in chunks of random size."""

    seed: int
    count: int
    pause_s: float = 0.0

    def all(self) -> NDArray[np.uint32]:
        """Return all words."""
        return np.random.default_rng(self.seed).integers(0, 2**32, self.count, np.uint32)

    def chunks(self) -> Iterator[NDArray[np.uint32]]:
        """Yield them, some at once."""
        words, chance, at = self.all(), np.random.default_rng(self.seed), 0
        while at < len(words):
            size = int(chance.integers(1, 3000))
            yield words[at : at + size]
            at += size
            time.sleep(self.pause_s)


def wait_for(what: Callable[[], object]) -> None:
    """Wait until something is so."""
    ends = time.monotonic() + LONGEST_S
    while not what():
        assert time.monotonic() < ends, "it takes too long"
        time.sleep(0.002)
