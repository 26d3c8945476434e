# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Where the frames of a trace get the time of their start, and how it is read again from what was captured."""

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import (
    TRACE_STAMP_MEND_BIT,
    TRACE_STAMP_NIBBLE_BIT,
    TRACE_STAMP_OCTETS_BIT,
    TRACE_STAMP_OFFSET_BIT,
    TRACE_STAMP_SHIFT_BIT,
)
from liteprobe.host.errors import UsageError
from liteprobe.host.packets.copy_ranges import Index
from liteprobe.host.traffic.stamps import PLACES, Stamp

TAG_TYPES = (0x8100, 0x88A8, 0x9100)
TAGS_MOST = 4
TYPE_OFFSET = 12
IPV4, IPV6 = 0x0800, 0x86DD
#: Ethertype of the frames that have a place, and its octets behind the start of their IP header.
FIELDS = {"ipv4.identification": (IPV4, 4), "ipv4.checksum": (IPV4, 10), "ipv6.flow_label": (IPV6, 1)}
OFFSET_MOST = 255
NOWHERE = -1


def check(stamp: Stamp) -> None:
    """Raise UsageError unless the frames of a trace can have their stamp there."""
    if stamp.place == "octet":
        assert stamp.octet is not None
        if not 0 <= stamp.octet <= OFFSET_MOST:
            raise UsageError(f"octet {stamp.octet} of a stamp is out of range: give 0 to {OFFSET_MOST}")
    elif stamp.place not in FIELDS:
        places = ", ".join(name for name in PLACES if name == "octet" or name in FIELDS)
        raise UsageError(f"frames of a trace have no stamp in the place '{stamp.place}': give one of {places}")


def stamp_offsets(stamp: Stamp, octets: NDArray[np.uint8], at: Index, kept: Index) -> Index:
    """Return the octet of each frame that its stamp begins with, or ``NOWHERE`` where it has no such place.

    Parameters
    ----------
    stamp : Stamp
    octets : array of u1
        Where frames lie.
    at, kept : array, shape (frames,)
        First octet of each, and how many are there.
    """
    if stamp.place == "octet":
        offsets = np.full(len(at), stamp.octet, np.int64)
    else:
        kind, inner = FIELDS[stamp.place]
        offsets, found = _network(octets, at, kept)
        offsets = np.where(found == kind, offsets + inner, NOWHERE)
    return np.where((offsets + stamp.octets <= kept) & (offsets <= OFFSET_MOST), offsets, NOWHERE)


def stamp_word(stamp: Stamp, offsets: Index) -> NDArray[np.uint32]:
    """Return the third word of the records of frames whose stamps begin at ``offsets``."""
    word = (
        (stamp.octets - 1) << TRACE_STAMP_OCTETS_BIT
        | stamp.tick << TRACE_STAMP_SHIFT_BIT
        | (stamp.bits % 8 != 0) << TRACE_STAMP_NIBBLE_BIT
        | (stamp.place == "ipv4.identification") << TRACE_STAMP_MEND_BIT
    )
    return (word | offsets << TRACE_STAMP_OFFSET_BIT).astype(np.uint32)


def delays_ns(
    stamp: Stamp, received_ns: NDArray[np.uint64], octets: NDArray[np.uint8], at: Index, kept: Index
) -> NDArray[np.int64]:
    """Return the delay of each frame from its stamp to its reception (ns), or -1 where it has no stamp.

    A delay of more than the stamp counts is short by multiples of that. Its unit is that of the stamp, 16^tick ns.
    """
    offsets = stamp_offsets(stamp, octets, at, kept)
    has_stamp = offsets != NOWHERE
    first = at[has_stamp] + offsets[has_stamp]
    sent = np.zeros(len(first), np.uint64)
    for octet in range(stamp.octets):
        sent = sent << np.uint64(8) | octets[first + octet].astype(np.uint64)
    unit = np.uint64(4 * stamp.tick)
    mask = np.uint64((1 << stamp.bits) - 1)
    found = np.full(len(at), -1, np.int64)
    found[has_stamp] = ((((received_ns[has_stamp] >> unit) - sent) & mask) << unit).astype(np.int64)
    return found


def has_octets(wanted: bytes, offset: int, octets: NDArray[np.uint8], at: Index, kept: Index) -> NDArray[np.bool_]:
    """Return which frames, as of ``delays_ns``, have ``wanted`` at an octet."""
    found = kept >= offset + len(wanted)
    for number, octet in enumerate(wanted, offset):
        found[found] = octets[at[found] + number] == octet
    return found


# # #


def _network(octets: NDArray[np.uint8], at: Index, kept: Index) -> tuple[Index, Index]:
    """Return the octet of each frame that its network header begins at, behind VLAN tags, and its Ethertype; 0: cut."""
    offsets = np.full(len(at), TYPE_OFFSET, np.int64)
    kinds = _pairs(octets, at, kept, offsets)
    for _ in range(TAGS_MOST):
        is_tag = np.isin(kinds, TAG_TYPES)
        if not is_tag.any():
            break
        offsets[is_tag] += 4
        kinds[is_tag] = _pairs(octets, at[is_tag], kept[is_tag], offsets[is_tag])
    return offsets + 2, kinds


def _pairs(octets: NDArray[np.uint8], at: Index, kept: Index, offsets: Index) -> Index:
    first = np.minimum(at + offsets, len(octets) - 2)
    pair = octets[first].astype(np.int64) << 8 | octets[first + 1]
    return np.where(offsets + 2 <= kept, pair, 0)
