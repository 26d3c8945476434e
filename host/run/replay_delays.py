# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Delays of frames that were replayed with a stamp, from the records of a capture."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.capture.decode.batch import Batch
from liteprobe.host.capture.decode.copy_ranges import WORD_OCTETS
from liteprobe.host.run.replay_figures import Delays
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.trace.stamping import delays_ns

KEPT_MOST = 20_000_000


class DelaySink:
    """Takes records of a capture, and keeps the delays of the frames that have a stamp.

    Parameters
    ----------
    stamps : mapping of int to Stamp
        By the port that frames come to.
    """

    def __init__(self, stamps: Mapping[int, Stamp]) -> None:
        self._stamps = dict(stamps)
        self._frames = dict.fromkeys(stamps, 0)
        self._without = dict.fromkeys(stamps, 0)
        self._found: dict[int, list[NDArray[np.int64]]] = {port: [] for port in stamps}

    def write(self, batch: Batch) -> None:
        """Take records."""
        octets = batch.words.view(np.uint8)
        at, kept, ports, stamps = WORD_OCTETS * batch.octets_at, batch.snap_length, batch.port, batch.stamp
        for port, stamp in self._stamps.items():
            own = (ports == port) & ~batch.is_gap
            delays = delays_ns(stamp, stamps[own], octets, at[own], kept[own])
            found = delays[delays >= 0]
            self._without[port] += len(delays) - len(found)
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
