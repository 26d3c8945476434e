# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Random numbers, the same as in formats.next_random and formats.emulate.next_random64."""

from migen import *

from liteprobe.cores.formats import XORSHIFT

def xorshift(state, shifts=XORSHIFT):
    """Return the next state of xorshift32, which is its output too, of a signal of 32 bits; or of others, by their shifts.

    Source: Marsaglia, Xorshift RNGs, 2003.
    """
    left, right, last = shifts
    first  = state ^ Cat(Constant(0, left), state[:-left])
    second = first ^ (first >> right)
    return second ^ (second << last)[:len(state)]
