# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Draws of the emulator, and words of its settings."""

from migen import *

from liteprobe.cores.formats.emulate import CLASSES, NO_LIMIT, SETTING_WORDS, XORSHIFT64
from liteprobe.cores.prbs import xorshift

STATE_BITS = 64

def next_state(state):
    """Return the state of a class's generator after ``state``; the draw is its high half."""
    return xorshift(state, XORSHIFT64)

def happens(draw, share):
    """Return whether a share, in parts of 2^32 and all ones for 1, happens by a draw."""
    return (draw < share) | (share == NO_LIMIT)

def word_address(bank, word, number):
    """Return the address of a word of a class, in the banks."""
    return Cat(in_block(word), number, Constant(0, 1), bank)

def link_address(bank, word):
    """Return the address of a word of the link, in the banks."""
    return Cat(in_block(word), Constant(CLASSES, 4), bank)

def in_block(word):
    """Return the number of a word of a class or of the link, as wide as it must be."""
    return Constant(word, log2_int(SETTING_WORDS)) if isinstance(word, int) else word

def field(fields, name, data):
    """Return a field of a word."""
    place = fields[name]
    return data[place.low:place.high]
