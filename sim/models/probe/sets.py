# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A probe that makes frames of configuration sets, as its registers show it: what is in its rings is sent, each frame when due."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial

from liteprobe.cores.formats import NO_SEQUENCE, SetError, TransmitState, map_hash
from liteprobe.sim.models.probe.replay import LOOK_TICKS, ReplayModel, SentFrame
from liteprobe.sim.models.probe.trains import registers
from liteprobe.sim.models.traffic.sets import OVERHEAD, End, Schedule, Set, Template, Writer, items

SETTINGS = registers("fields places:48 first_repeats_allowed:16 arm:1 template0 template1 template2 template3")
COUNTERS = registers("sets repeats underruns first_underrun error:3")
TABLE_BASE, TABLE_OCTETS = 0x70000000, 1 << 18


class SetsModel(ReplayModel):
    """A probe with the part replay; it starts when all of a stream is there.

    Parameters
    ----------
    words, open_ring, ports : as of `ReplayModel`

    Attributes
    ----------
    template : what is the same in all frames: the model doesn't read it from its registers.
    underrun_at : dict of int to int
        As of `ReplayModel`.
    """

    template: Template

    def __init__(
        self, words: Callable[[int], list[int]], open_ring: Callable[[int, int, int], None], ports: int = 2
    ) -> None:
        super().__init__(words, open_ring, ports)
        for port in range(ports):
            self.extend(f"port{port}_sets", SETTINGS | COUNTERS, SETTINGS)
        self.map["memories"]["sets_table"] = {"base": TABLE_BASE, "size": TABLE_OCTETS, "type": "io"}
        self.values["probe_map_hash"] = map_hash(self.map)

    def table(self, entries: int) -> list[int]:
        """Return the first entries of the table."""
        return [self._memory.get(TABLE_BASE + 4 * number, 0) for number in range(entries)]

    # # #

    def _act(self, name: str, word: int) -> None:
        if "_sets_" not in name:
            super()._act(name, word)
        elif name.endswith("_arm"):
            port = int(name[4])
            self._tx(port, state=TransmitState.ARMED, sent=0)
            self._sets(port, **dict.fromkeys(COUNTERS, 0) | {"first_underrun": NO_SEQUENCE})
            self._look(port)

    def _sets(self, port: int, **values: int) -> None:
        self.values |= {f"port{port}_sets_{name}": value for name, value in values.items()}

    def _octets(self, port: int) -> bytes:
        return b"".join(word.to_bytes(4, "little") for word in self._words_of(port))

    def _look(self, port: int) -> None:
        if self.values[f"port{port}_tx_state"] != TransmitState.ARMED:
            return
        if any(isinstance(item, End) for item in items(self._octets(port), self.template)):
            self._tx(port, state=TransmitState.READY)
        else:
            self._at(self.tick + LOOK_TICKS, lambda: self._look(port))

    def _plan(self, port: int, first: int) -> None:
        """Schedule all frames of a port."""
        values = {
            name: self.values[f"port{port}_tx_{name}"] for name in ("interval_ticks", "interval_fraction", "count")
        }
        interval = values["interval_ticks"] + Fraction(values["interval_fraction"], 1 << 32)
        schedule = Schedule(interval or None)
        writer = Writer(self.template, self.table(self.template.entries))
        free, number, error = 0, 0, ""
        for item in items(self._octets(port), self.template):
            if isinstance(item, End):
                error = item.error
            if not isinstance(item, Set) or number == values["count"]:
                continue
            header, due = writer.next(item.values), first + schedule.tick
            start = max(due, free) + 1000 * (self.underrun_at.get(port) == number)
            free = start + writer.length + OVERHEAD
            schedule.next(writer.length)
            self._at(start, partial(self._send_set, port, header, number))
            number += 1
        self._at(free, partial(self._end_sets, port, error))

    def _send_set(self, port: int, header: bytes, number: int) -> None:
        if self.values[f"port{port}_tx_state"] != TransmitState.RUNNING:
            return
        self.frames.append(SentFrame(port, self.tick, header))
        self._tx(port, sent=number + 1)
        self._sets(port, sets=number + 1)
        if self.underrun_at.get(port) == number:
            self._sets(port, underruns=1, first_underrun=number)

    def _end_sets(self, port: int, error: str) -> None:
        self._sets(port, error=SetError[error.upper()] if error else 0)
        self._tx_stop(port)
