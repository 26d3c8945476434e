# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Makes the FCS of 64 bits a cycle, with two levels of LUTs in its loop.

The CRC register is linear in what it was and in the data, so what a word adds is formed a cycle before, apart from the register.
A last word that isn't whole is taken as if zeros followed: a transmitter steps back over them afterwards, by constant matrices;
a receiver compares with the residue that it would have after them. So no other CRC is needed for each length of a tail.

Source: IEEE 802.3, 3.2.9. Bit 0 of the register is what goes out first (the reflected form).
"""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import FCS_POLYNOMIAL, FCS_RESIDUE

REFLECTED = int(f"{FCS_POLYNOMIAL:032b}"[::-1], 2)
RESIDUE   = int(f"{FCS_RESIDUE:032b}"[::-1], 2)

def stepped(state, octets):
    """Return what a register becomes by so many octets of zeros; back, where it is negative."""
    for _ in range(8*octets):
        state = (state >> 1) ^ (REFLECTED if state & 1 else 0)
    for _ in range(-8*octets):
        state = (((state ^ REFLECTED) << 1) | 1 if state >> 31 else state << 1) & 0xffffffff
    return state

def step(bits, octets):
    """Return the 32 bits, as expressions, that a register of these bits becomes by so many octets of zeros."""
    images = [stepped(1 << n, octets) for n in range(32)]
    return [Reduce("XOR", [bits[n] for n, image in enumerate(images) if image >> to & 1]) for to in range(32)]

def advanced(crc):
    """Return, as one expression, a register after a word, but for what the word adds."""
    return Cat(*step(crc, 8))

def addend(word):
    """Return, as one expression, what a word of 64 bits adds to the register."""
    bits = [word[n] for n in range(64)]
    return Cat(*(low ^ high for low, high in zip(step(bits[:32], 8), step(bits[32:], 4))))

def stepped_back(crc, octets):
    """Return, as one expression, a register before so many octets of zeros."""
    return Cat(*step(crc, -octets))
