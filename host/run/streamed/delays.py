# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Delays of frames that were streamed and sent with a stamp, from the records of a capture."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import SIGNATURE, STAMP_OFFSET
from liteprobe.host.capture.decode.batch import Batch
from liteprobe.host.packets.frames import WORD_OCTETS
from liteprobe.host.run.streamed.figures import Delays
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.trace.records import delays_ns, has_octets

KEPT_MOST = 20_000_000


class DelaySink:
    """Takes records of a capture, and keeps the delays of the frames that have a stamp.

    Parameters
    ----------
    stamps : mapping of int to Stamp
        By the port that frames come to.
    signatures : mapping of int to int
        By port, the octet at which the signature of probe frames begins: others have no stamp. A stamp in the probe header needs
        it.
    """

    def __init__(self, stamps: Mapping[int, Stamp], signatures: Mapping[int, int] | None = None) -> None:
        self._signatures = dict(signatures or {})
        self._stamps = {port: self._placed(port, stamp) for port, stamp in stamps.items()}
        self._frames = dict.fromkeys(stamps, 0)
        self._without = dict.fromkeys(stamps, 0)
        self._found: dict[int, list[NDArray[np.int64]]] = {port: [] for port in stamps}

    def write(self, batch: Batch) -> None:
        """Take records."""
        octets = batch.words.view(np.uint8)
        at, kept, ports, stamps = WORD_OCTETS * batch.octets_at, batch.snap_length, batch.port, batch.stamp
        for port, stamp in self._stamps.items():
            own = (ports == port) & ~batch.is_gap
            count = int(np.count_nonzero(own))
            if port in self._signatures:
                own[own] = has_octets(SIGNATURE.to_bytes(4), self._signatures[port], octets, at[own], kept[own])
            delays = delays_ns(stamp, stamps[own], octets, at[own], kept[own])
            found = delays[delays >= 0]
            self._without[port] += count - len(found)
            if self._frames[port] < KEPT_MOST:
                self._found[port].append(found[: KEPT_MOST - self._frames[port]])
            self._frames[port] += len(found)

    def delays(self, port: int) -> Delays | None:
        """Return the delays of the frames that came to a port; None: none has stamps there."""
        if port not in self._stamps:
            return None
        parts = self._found[port]
        return Delays(
            self._frames[port], self._without[port], np.concatenate(parts) if parts else np.empty(0, np.int64)
        )

    # # #

    def _placed(self, port: int, stamp: Stamp) -> Stamp:
        """Return a stamp whose place can be found in octets alone."""
        if stamp.place != "probe":
            return stamp
        return Stamp("octet", self._signatures[port] + STAMP_OFFSET, stamp.bits, stamp.tick)
