# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Which frames of a class are lost: by a model that draws, by a pattern, or by their numbers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from liteprobe.cores.formats.emulate import PATTERN_WORDS
from liteprobe.host.errors import UsageError
from liteprobe.host.traffic.intervals import Number, exact
from liteprobe.host.traffic.network.delays import check_share

BITS = 32
NUMBER_MAX = 2**32 - 1


@dataclass(frozen=True)
class Bernoulli:
    """Each frame is lost by itself.

    Parameters
    ----------
    share : number
        Of the frames, from 0 to 1.
    """

    share: Number

    def __post_init__(self) -> None:
        check_share(self.share, "a loss")


@dataclass(frozen=True)
class GilbertElliott:
    """Losses come in bursts: the path is in a good or in a bad state, and goes over with each frame.

    With the defaults of ``h`` and ``k`` it is Gilbert's model: what comes in the bad state is lost, all else isn't. The loss is
    (r (1-k) + p (1-h)) / (p + r), a stay in the bad state has a mean of 1/r frames.

    Source: Gilbert, Capacity of a Burst-Noise Channel, 1960; Elliott, Estimates of Error Rates for Codes on Burst-Noise Channels,
    1963; in the letters of Salsano, Ludovici and Ordine, 2009, which netem has.

    Parameters
    ----------
    p, r : number
        Probability with each frame of going over to the bad state, and back, from 0 to 1.
    h, k : number
        Share of the frames that the bad, and the good state let pass.
    """

    p: Number
    r: Number
    h: Number = 0
    k: Number = 1

    def __post_init__(self) -> None:
        for name in ("p", "r", "h", "k"):
            check_share(getattr(self, name), f"'{name}'")
        if exact(self.p) and not exact(self.r):
            raise UsageError("with 'r' of 0 % the bad state never ends: give more, or 'loss' as one share")


@dataclass(frozen=True)
class LossPattern:
    """Frames are lost as bits say: the first bit is the first frame of the class; behind the last the pattern repeats.

    Parameters
    ----------
    bits : str
        ``1``: lost.
    """

    bits: str

    def __post_init__(self) -> None:
        if not re.fullmatch("[01]+", self.bits):
            raise UsageError(f"'{self.bits[:40]}' is not a pattern of losses: give 0 and 1, like 00010")
        if len(self.bits) > PATTERN_WORDS * BITS:
            raise UsageError(
                f"a pattern of {len(self.bits)} frames is out of range: give {PATTERN_WORDS * BITS} at most; it repeats"
            )

    @property
    def count(self) -> int:
        """Frames until it repeats."""
        return len(self.bits)

    def words(self) -> tuple[int, ...]:
        """Return its words of the pattern memory."""
        parts = [self.bits[first : first + BITS] for first in range(0, len(self.bits), BITS)]
        return tuple(int(part[::-1], 2) for part in parts)


@dataclass(frozen=True)
class LossList:
    """These frames of the class are lost, once.

    Parameters
    ----------
    numbers : sequence of int
        From 0, ascending.
    """

    numbers: Sequence[int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", tuple(self.numbers))
        if not 1 <= len(self.numbers) <= PATTERN_WORDS:
            raise UsageError(
                f"a list of {len(self.numbers)} lost frames is out of range: give 1 to {PATTERN_WORDS}, or a pattern"
            )
        ascends = all(low < high for low, high in pairwise(self.numbers))
        if not ascends or self.numbers[0] < 0 or self.numbers[-1] > NUMBER_MAX:
            raise UsageError(f"numbers of lost frames ascend from 0 to {NUMBER_MAX}: sort them, each once")

    @property
    def count(self) -> int:
        """Frames that are lost."""
        return len(self.numbers)

    def words(self) -> tuple[int, ...]:
        """Return its words of the pattern memory."""
        return tuple(self.numbers)


Loss = Bernoulli | GilbertElliott
Pattern = LossPattern | LossList
