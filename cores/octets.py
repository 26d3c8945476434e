# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Converts octets of the wire to words and back: the first is the lowest in a stream, the highest in a number.

``last_be``, as of LiteEth, is the one-hot mark of a frame's last valid byte: bit n says that byte n of the word is the frame's
last. It means something in the last word only; everywhere else it is 0.
"""

from migen import *

TTL = 64 # Of what a probe sends.

def number(*octets):
    """Return octets in the order of the wire as the number that a stream carries: the first one lowest."""
    return int.from_bytes(bytes(octets), "little")

def swapped(signal):
    """Return the octets of a signal in the other order: wire to big-endian number, and back."""
    return Cat(*[signal[at:at + 8] for at in reversed(range(0, len(signal), 8))])

def udp_header_sum(ip):
    """Return what is known beforehand of the one's complement sum of an IPv4 header: of UDP, not to be fragmented.

    Lacks the length and the destination. ``ip``: bytes, of the probe. Source: RFC 791, 3.1; RFC 1071.
    """
    total = sum(int.from_bytes(ip[n:n + 2], "big") for n in (0, 2)) + 0x4500 + 0x4000 + (TTL << 8) + 17
    return (total & 0xffff) + (total >> 16)

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
