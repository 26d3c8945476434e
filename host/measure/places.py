# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Which fields of a frame a probe can take a TX stamp from."""

from liteprobe.cores.formats import HEAD_OCTETS, StampPlace
from liteprobe.host.errors import UsageError

OCTETS_MAX, SHIFT_MAX = 8, 15


def check_place(place: StampPlace) -> None:
    """Raise UsageError, naming the reason, where the gateware can't take a stamp from ``place``."""
    end = place.offset + place.octets
    if not 1 <= place.octets <= OCTETS_MAX or not place.bits:
        raise UsageError(f"a stamp can't have {place.octets} octets: give 1 to {OCTETS_MAX}")
    if place.offset < 0 or end > HEAD_OCTETS:
        raise UsageError(
            f"a stamp can't lie in octets {place.offset} to {end - 1}: give places within {HEAD_OCTETS} octets"
        )
    if not 0 <= place.shift <= SHIFT_MAX:  # A field may have bits beyond the 64 of the time: they are 0.
        raise UsageError(f"a stamp can't be shifted by {place.shift} nibbles: give 0 to {SHIFT_MAX}")
