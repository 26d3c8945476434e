# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Makes pseudo-random bits: PRBS-31, with which senders fill frames and receivers compare them, and xorshift for draws.

Source: ITU-T O.150, section 5.8 (PRBS-31).
"""

from functools import reduce
from operator import xor

from migen import *

from liteprobe.cores.formats import PRBS_BITS, PRBS_SEED, PRBS_TAPS, XORSHIFT

LANE = 32 # Bits of a word.

def place_of(number):
    """Return which bit of a word is sent as its bit ``number``: octet 0 first, of each octet bit 7."""
    return 8*(number//8) + 7 - number%8

def prbs_advance(state):
    """Return (lane, next state): the next 32 bits of PRBS-31, first bit in bit 7 of byte 0."""
    bits = [[n] for n in range(PRBS_BITS)] # Each bit as the list of state bits that it is the sum of.
    sent = []
    for _ in range(LANE):
        new  = sorted(set(bits[PRBS_TAPS[0] - 1]) ^ set(bits[PRBS_TAPS[1] - 1]))
        bits = [new] + bits[:-1]
        sent.append(new)
    def total(terms):
        return reduce(xor, [state[n] for n in terms])
    lane = [total(sent[place_of(n)]) for n in range(LANE)] # ``place_of`` is its own inverse.
    return Cat(*lane), Cat(*[total(terms) for terms in bits])

def first_word():
    """Return the first word of a fill."""
    state = PRBS_SEED
    word  = 0
    for number in range(LANE):
        bit   = (state >> PRBS_TAPS[0] - 1 ^ state >> PRBS_TAPS[1] - 1) & 1
        state = (state << 1 | bit) & PRBS_SEED
        word |= bit << place_of(number)
    return word

def xorshift(state, shifts=XORSHIFT):
    """Return the next state of xorshift32, which is its output too, of a signal of 32 bits; or of others, by their shifts.

    Source: Marsaglia, Xorshift RNGs, 2003.
    """
    left, right, last = shifts
    first  = state ^ Cat(Constant(0, left), state[:-left])
    second = first ^ (first >> right)
    return second ^ (second << last)[:len(state)]
