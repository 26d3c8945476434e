# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The random numbers of the simulated wires, in plain integers, so that each draw can be worked out again."""

MASK = 2**64 - 1
PPB = 10**9


class SplitMix:
    """SplitMix64 with one state for each seed and stream.

    Parameters
    ----------
    seed : of the wire, 0 to 2^64 - 1.
    stream : 16 * port + purpose; purpose 0 frames, 1 cross traffic of the first hop, 2 of the last.

    Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
    """

    def __init__(self, seed: int, stream: int) -> None:
        self._state = seed ^ ((stream + 1) * 0xD1B54A32D192ED03 & MASK)
        self.next()  # The first value of near seeds is near; it is thrown away.

    def next(self) -> int:
        """Return 64 bits."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & MASK
        z = self._state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        return z ^ z >> 31

    def below(self, bound: int) -> int:
        """Return a number from 0 to bound - 1."""
        return self.next() * bound >> 64

    def happens(self, ppb: int) -> bool:
        """Return True in ``ppb`` of 10^9 cases."""
        return self.below(PPB) < ppb

    def exponential(self) -> int:
        """Return an exponential variate of mean 1, times 2^64.

        Source: von Neumann, "Various techniques used in connection with random digits", 1951: only comparisons,
        so it is exact on every machine.
        """
        whole = 0
        while True:
            first = self.next()
            run = [first]
            while (value := self.next()) < run[-1]:
                run.append(value)
            if len(run) % 2:
                return (whole << 64) + first
            whole += 1
