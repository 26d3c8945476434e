# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Says what of a stream a port of 10 Gb/s can't send yet.

Stands alone: it gets shorter with each part that comes, and goes with the last one.
"""

from collections.abc import Iterator, Sequence

from liteprobe.host.base.errors import UsageError
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.stream import Stream


def check_plain(streams: Sequence[Stream]) -> None:
    """Raise UsageError for a stream that such a port can't send; the message names the part, and what to give instead."""
    for stream in streams:
        for problem in _problems(stream):
            raise UsageError(f"stream '{stream.name}': at {stream.line} {problem}")


def _problems(stream: Stream) -> Iterator[str]:
    if stream.modifiers:
        yield "headers don't change from frame to frame yet: leave out the modifiers, or use a probe of 1 Gb/s"
    if stream.fill == "prbs":
        yield "there is no fill 'prbs' yet: give zero or counting"
    if stream.used_checksum == "complement":
        yield "no checksum is worked out yet: give UDP over IPv4, or the checksum none or host"
    if stream.used_stamp not in (None, Stamp("probe")):
        yield "a stamp stands in the probe header alone yet: leave out the stamp, or use a probe of 1 Gb/s"
