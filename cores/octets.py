# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Orders octets of the wire in words: the first one is the lowest in a stream, the highest in a number."""

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
