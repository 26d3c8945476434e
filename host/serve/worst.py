# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The worst that looks have shown since somebody cleared it: what is over when a person looks again stays seen."""

import math
import time
from dataclasses import dataclass, field

from liteprobe.host.serve.poll import Look, losses
from liteprobe.host.serve.totals import WRAP


@dataclass
class Worst:
    """Peaks of all looks since the last `clear`.

    Attributes
    ----------
    since : str
        Time of day of this host.
    rate_bps : dict of int to float
        By port: the greatest rate on the line.
    lost : dict of int to int
        By port: most frames that were refused, damaged or lost from one look to the next.
    waiting : dict of int to int
        By channel: most blocks that waited.
    """

    since: str = field(default_factory=lambda: time.strftime("%H:%M:%S"))
    rate_bps: dict[int, float] = field(default_factory=dict)
    lost: dict[int, int] = field(default_factory=dict)
    waiting: dict[int, int] = field(default_factory=dict)
    _events: dict[int, dict[str, int]] = field(default_factory=dict)

    def clear(self) -> None:
        """Begin anew; what was counted before is not a loss of the next look."""
        self.since, self.rate_bps, self.lost, self.waiting = time.strftime("%H:%M:%S"), {}, {}, {}

    def take(self, look: Look) -> None:
        """Take a look in."""
        for port, events in zip(look.ports, look.events, strict=True):
            number, counts = port.port, losses(events)
            if port.rate and math.isfinite(port.rate.line_bits_per_s):
                self.rate_bps[number] = max(self.rate_bps.get(number, 0.0), port.rate.line_bits_per_s)
            before = self._events.get(number, counts)  # What was lost before the first look isn't known to be of now.
            came = sum((count - before.get(name, 0)) % WRAP for name, count in counts.items())
            self.lost[number] = max(self.lost.get(number, 0), came)
            self._events[number] = counts
        for channel, state in look.channels.items():
            self.waiting[channel] = max(self.waiting.get(channel, 0), state.waiting)
