# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Truth for what is measured in a frame besides a probe's header: bit errors of its fill, and a TX stamp in any field."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import CHECKSUM_OCTETS, FILL_OFFSET, HEAD_OCTETS, StampPlace
from liteprobe.sim.models.probe_frame import prbs_octets

LONGEST = 9018


@cache
def fill() -> NDArray[np.uint8]:
    """Return the fill of the longest frame."""
    return np.frombuffer(prbs_octets(LONGEST), np.uint8)


def fill_errors(frame: bytes, payload_offset: int, is_ipv6: bool) -> int:
    """Return how many bits of a frame's fill (without FCS) are not those of PRBS-31; IPv6 ends in a complement."""
    octets = np.frombuffer(frame, np.uint8)[payload_offset + FILL_OFFSET : len(frame) - CHECKSUM_OCTETS * is_ipv6]
    return int(np.unpackbits(octets ^ fill()[: len(octets)]).sum())


def field_stamp(frame: bytes, place: StampPlace, stamp: int) -> int | None:
    """Return the TX stamp that a field says of a frame that arrived at ``stamp`` (ns); None: the field isn't there."""
    end = place.offset + place.octets
    if end > min(len(frame), HEAD_OCTETS):
        return None
    modulus = 1 << place.bits
    value = int.from_bytes(frame[place.offset : end]) % modulus
    units = ((stamp >> 4 * place.shift) - value) % modulus
    return (stamp - (units << 4 * place.shift)) % (1 << 64)
