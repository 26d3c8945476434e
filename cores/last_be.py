# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Converts between a byte count and ``last_be``, the one-hot mark of a frame's last valid byte.

``last_be`` bit n says that byte n of the word is the frame's last. It means something in the last
word only; everywhere else it is 0.
"""

from migen import *

# Last BE from Length ------------------------------------------------------------------------------

def last_be_of_length(length, data_width):
    """Return the ``last_be`` expression of the last word of a frame of ``length`` bytes (from 1)."""
    count = data_width//8
    tail  = length[:log2_int(count)]
    return Cat(*[tail == (byte + 1) % count for byte in range(count)])

def words_of_length(length, data_width):
    """Return the expression of the number of words that ``length`` bytes take."""
    shift = log2_int(data_width//8)
    return length[shift:] + (length[:shift] != 0)

# Length from Last BE ------------------------------------------------------------------------------

def bytes_of_last_be(last_be):
    """Return the expression of the valid bytes (1 to len(last_be)) in a last word; 0 when not one-hot."""
    width = bits_for(len(last_be))
    value = Constant(0, width)
    for byte in range(len(last_be)):
        value = value | Mux(last_be[byte], Constant(byte + 1, width), Constant(0, width))
    return value
