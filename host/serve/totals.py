# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Counts of 32 bits that go on behind 2^32: a monitor looks for months, and the probe's words wrap.

At the line rate of the shortest frames a count of frames wraps after 48 minutes, so a look may be missed for nearly as long.
"""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from liteprobe.host.capture.ring import ChannelState
from liteprobe.host.measure.monitor import PortMeasurement
from liteprobe.host.measure.streams import ReceivedStream

WRAP = 1 << 32
WRAPPING = ("expected", "duplicated", "reordered", "beyond_window", "damaged_bit_errors")
UNSTEADY = ("lost",)  # A frame that comes late takes one away.


class Totals:
    """Adds up what wraps, from one look to the next; begins anew where the probe did."""

    def __init__(self) -> None:
        self._last: dict[Hashable, int] = {}
        self._total: dict[Hashable, int] = {}
        self._age: dict[Hashable, int] = {}
        # Which stream a slot has: what another host has it watch leaves nothing behind.
        self._ids: dict[Hashable, int | None] = {}

    def of_port(self, port: PortMeasurement) -> PortMeasurement:
        """Return a measurement whose counts of streams go on behind 2^32."""
        return replace(port, streams=[self._stream(port.port, stream) for stream in port.streams])

    def of_channel(self, number: int, state: ChannelState) -> ChannelState:
        """Return a channel whose drops go on behind 2^32, and over captures that begin."""
        key = ("channel", number)
        return replace(state, dropped=self._add(key, state.dropped, is_anew=state.dropped < self._last.get(key, 0) and
                                                state.written < self._age.get(key, 0), age=state.written))  # fmt: skip

    # # #

    def _stream(self, port: int, stream: ReceivedStream) -> ReceivedStream:
        values: dict[str, Any] = {}
        key = (port, stream.slot)
        is_other = self._ids.get(key, stream.stream_id) != stream.stream_id
        is_anew = is_other or stream.frames < self._age.get(key, 0)  # 64 bits: less only after a clear.
        self._age[key], self._ids[key] = stream.frames, stream.stream_id
        for name in (*WRAPPING, *UNSTEADY):
            count = getattr(stream, name)
            if count is not None:
                values[name] = self._add((*key, name), count, is_anew, name in UNSTEADY)
        return replace(stream, **values)

    def _add(self, key: Hashable, count: int, is_anew: bool, is_unsteady: bool = False, age: int | None = None) -> int:
        if age is not None:
            self._age[key] = age
        if is_anew or key not in self._last:
            self._total[key] = count
        else:
            step = (count - self._last[key]) % WRAP
            self._total[key] += step - WRAP if is_unsteady and step >= WRAP // 2 else step
        self._last[key] = count
        return self._total[key]
