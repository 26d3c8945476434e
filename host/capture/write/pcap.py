# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes records to pcap with nanoseconds: frames alone, for what reads no pcapng.

Stands alone: a format of its own, as `pcapng` is.

A pcap has no place for ports, errors and drops: frames of all ports follow one another, in the order of their stamps.

Source: draft-ietf-opsawg-pcap, sections 4 (file header) and 5 (packet record).
"""

from collections.abc import Sequence

import numpy as np

from liteprobe.host.capture.write.output import Output
from liteprobe.host.capture.write.pcapng import Statistics
from liteprobe.host.packets.batch import Batch
from liteprobe.host.packets.frames import WORD_OCTETS
from liteprobe.host.packets.pcap import PCAP_HEADER

HEAD = np.dtype([(name, "<u4") for name in ("second", "rest", "captured", "length")])
SECOND_NS = np.uint64(10**9)


class PcapWriter:
    """Writes records into a pcap, in the order in which they are given; gaps are left out, and counted by the capture.

    ``shift_ns``: added to every stamp: less 37 s, TAI becomes UTC. A stamp before 1970 is written modulo 2^32 s.
    """

    def __init__(self, output: Output, shift_ns: int = 0) -> None:
        self._output = output
        self._shift = np.uint64(shift_ns % 2**64)
        output.write(PCAP_HEADER)

    def write(self, batch: Batch) -> None:
        """Write the frames of some records."""
        batch = batch.select(~batch.is_gap)
        heads = np.empty(len(batch), HEAD)
        stamps = batch.heads["stamp"] + self._shift
        heads["second"], heads["rest"] = stamps // SECOND_NS & np.uint64(0xFFFFFFFF), stamps % SECOND_NS
        heads["captured"], heads["length"] = batch.heads["snap_length"], batch.heads["length"]
        octets, packed, size = batch.words.view(np.uint8).data, heads.tobytes(), HEAD.itemsize
        pieces: list[bytes | memoryview] = []
        for number, (at, kept) in enumerate(
            zip((WORD_OCTETS * batch.octets_at).tolist(), batch.snap_length.tolist(), strict=True)
        ):
            pieces += packed[size * number : size * (number + 1)], octets[at : at + kept]
        if pieces:
            sizes = size + batch.snap_length
            self._output.write(b"".join(pieces), np.cumsum(sizes) - sizes)

    def close(self, statistics: Sequence[Statistics] = ()) -> None:
        """End the file, which says nothing of what was counted."""
