# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Times of a trace that go back: refused, or sorted within a window."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from liteprobe.cores.formats import TICK_NS
from liteprobe.host.errors import UsageError
from liteprobe.host.packets.frames import Frames, joined

SORTED_FRAMES = 4096  # A frame may be so many places from where it belongs.


def checked(chunks: Iterator[Frames], ticks_per_unit: Fraction) -> Iterator[Frames]:
    """Yield what comes, sure that no time goes back.

    Raises
    ------
    UsageError
        When one does.
    """
    last: int | None = None
    for chunk in chunks:
        before = np.concatenate([chunk.time[:1] if last is None else [last], chunk.time[:-1]])
        if (back := chunk.time < before).any():
            first = int(np.argmax(back))
            raise _went_back(chunk, first, int(before[first]), ticks_per_unit, "sort them with --sort, or leave it out")
        last = int(chunk.time[-1])
        yield chunk


def in_order(chunks: Iterator[Frames], ticks_per_unit: Fraction) -> Iterator[Frames]:
    """Yield frames in the order of their times; those of equal time in the order in which they came.

    Raises
    ------
    UsageError
        When one comes more than ``SORTED_FRAMES`` frames behind its place.
    """
    held: Frames | None = None
    last: int | None = None
    for chunk in chunks:
        if last is not None and (back := chunk.time < last).any():
            first = int(np.argmax(back))
            advice = f"it belongs more than {SORTED_FRAMES} packets before: sort the file with reordercap"
            raise _went_back(chunk, first, last, ticks_per_unit, advice)
        both = chunk if held is None else joined(held, chunk)
        both = both.select(np.argsort(both.time, kind="stable"))
        done = max(len(both) - SORTED_FRAMES, 0)
        held = both.select(slice(done, None)).compact()
        if done:
            last = int(both.time[done - 1])
            yield both.select(slice(0, done))
    if held is not None and len(held):
        yield held


# # #


def _went_back(chunk: Frames, first: int, before: int, ticks_per_unit: Fraction, advice: str) -> UsageError:
    back_ns = (before - int(chunk.time[first])) * ticks_per_unit * TICK_NS
    return UsageError(
        f"the time of packet {chunk.number + first} (at octet {chunk.base + int(chunk.at[first])}) is {float(back_ns):,.0f} ns "
        f"before that of the one before it: {advice}"
    )
