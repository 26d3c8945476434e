# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What fills a frame, octet for octet."""

from liteprobe.cores.formats import PRBS_BITS, PRBS_SEED, PRBS_TAPS


def fill_octets(fill: str, count: int) -> bytes:
    """Return the first octets of a fill: ``zero``, ``counting`` or ``prbs`` (ITU-T O.150, first bit in bit 7)."""
    if fill == "counting":
        return bytes(number % 256 for number in range(count))
    return _prbs(count) if fill == "prbs" else bytes(count)


def _prbs(count: int) -> bytes:
    state, sent = PRBS_SEED, 0
    for _ in range(8 * count):
        new = (state >> PRBS_TAPS[0] - 1 ^ state >> PRBS_TAPS[1] - 1) & 1
        state = (state << 1 | new) & (1 << PRBS_BITS) - 1
        sent = sent << 1 | new
    return sent.to_bytes(count)
