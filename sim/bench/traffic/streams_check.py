# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Compares what the gateware sends for the words of streams with what the interpreter says."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from liteprobe.sim.bench.traffic.interpreter import SETTINGS, Contents, ExpectedFrame
from liteprobe.sim.bench.traffic.streams_run import FRAME_DTYPE, Kind, Memory, Script, address

COMPARED = ("stream", "sequence", "length", "due", "checksum_seed", *SETTINGS, "stamp_octets", "header")


def write_contents(script: Script, contents: Contents) -> None:
    """Write all memories."""
    script.write(Memory.SCHEDULE, 0, contents.schedule)
    script.write(Memory.MODIFIERS, 0, contents.modifiers)
    script.write(Memory.LISTS, 0, contents.lists)
    script.write(Memory.HEADERS, 0, contents.headers)


def read_contents(script: Script, contents: Contents) -> None:
    """Read as many words back."""
    sizes = {
        Memory.SCHEDULE: contents.schedule,
        Memory.MODIFIERS: contents.modifiers,
        Memory.LISTS: contents.lists,
        Memory.HEADERS: contents.headers,
    }
    for memory, words in sizes.items():
        for n in range(len(words)):
            script.do(Kind.READ, address(memory, n))


def words_of(contents: Contents) -> list[int]:
    """Return the words in the order in which they are read back."""
    return [*contents.schedule, *contents.modifiers, *contents.lists, *contents.headers]


def as_frames(expected: Sequence[ExpectedFrame]) -> NDArray[np.void]:
    """Return frames that are expected, like those that come."""
    frames = np.zeros(len(expected), FRAME_DTYPE)
    for name in ("stream", "sequence", "length", "due", "checksum_seed"):
        frames[name] = [getattr(frame, name) for frame in expected]
    for n, name in enumerate((*SETTINGS, "stamp_octets")):
        frames[name] = [frame.settings[n] for frame in expected]
    for n, frame in enumerate(expected):
        frames["header"][n, : len(frame.header)] = frame.header
    return frames


def differences(got: NDArray[np.void], expected: Iterable[ExpectedFrame]) -> list[str]:
    """Return in what the first frame that differs does; none where all are as expected."""
    wanted = as_frames(list(expected))
    if len(got) != len(wanted):
        return [f"{len(got)} frames, not {len(wanted)}"]
    unlike = np.zeros(len(got), bool)
    for name in COMPARED:
        different = got[name] != wanted[name]
        unlike |= different.any(axis=1) if name == "header" else different
    if not unlike.any():
        return []
    first = int(np.argmax(unlike))
    return [
        f"frame {first}: {name} is {got[name][first]}, not {wanted[name][first]}"
        for name in COMPARED
        if np.any(got[name][first] != wanted[name][first])
    ]
