# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The words of a trace, as they go along to the process that prepares them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.traffic.intervals import NOMINAL
from liteprobe.host.traffic.trace.trace import Trace


@dataclass(frozen=True)
class TraceWords:
    """The records of a trace.

    Parameters
    ----------
    trace : Trace
    increment : int
        Nanoseconds a tick of the probe's clock, in 8.40 fixed point.
    first_ticks : int
        From the start of the program to the first frame.
    """

    trace: Trace
    increment: int = NOMINAL
    first_ticks: int = 0

    def chunks(self) -> Iterator[NDArray[np.uint32]]:
        """Yield all words, some at once."""
        return self.trace.records(self.increment, self.first_ticks)
