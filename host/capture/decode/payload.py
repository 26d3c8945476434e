# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Where the payload of a probe frame begins, behind any tags, labels and extension headers."""

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import (
    EXTENSION_HEADERS,
    EXTENSIONS_MAX,
    LABEL_KINDS,
    LABELS_MAX,
    TAG_KINDS,
    TAGS_MAX,
    IpProtocol,
)

UDP_OCTETS = 8


def payload_places(table: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return where the UDP payload of each frame begins, walking through its headers as the probe's parser does.

    Parameters
    ----------
    table : array, shape (frames, octets)
        The first octets of frames that the parser found to be a probe's.

    Returns
    -------
    array, shape (frames,)
        Places (octets); beyond the octets that are there where the headers end beyond them.
    """
    rows, last = np.arange(len(table)), table.shape[1] - 1

    def octet(places: NDArray[np.int64]) -> NDArray[np.int64]:
        found: NDArray[np.int64] = table[rows, np.minimum(places, last)].astype(np.int64)
        return found

    def pair(places: NDArray[np.int64]) -> NDArray[np.int64]:
        return octet(places) << 8 | octet(places + 1)

    at = np.full(len(table), 12)
    for _ in range(TAGS_MAX):
        at += 4 * np.isin(pair(at), list(TAG_KINDS))
    is_label = np.isin(pair(at), LABEL_KINDS)
    at += 2
    for _ in range(LABELS_MAX):
        is_bottom = octet(at + 2) & 1 == 1
        at += 4 * is_label
        is_label &= ~is_bottom
    version, length, following = octet(at) >> 4, octet(at) & 15, octet(at + 6)
    at += np.where(version == 4, 4 * length, 40)
    is_walking = version == 6
    for _ in range(EXTENSIONS_MAX):
        is_walking &= np.isin(following, EXTENSION_HEADERS)
        size = np.where(following == IpProtocol.AUTHENTICATION, 4 * (octet(at + 1) + 2), 8 * (octet(at + 1) + 1))
        size = np.where(following == IpProtocol.FRAGMENT, 8, size)
        following = np.where(is_walking, octet(at), following)
        at += np.where(is_walking, size, 0)
    return at + UDP_OCTETS
