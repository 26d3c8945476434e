# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A probe that replays traces, as its registers show it: what is in its rings is sent, each frame at max(due, line free).

The truth for tests of the host. Source: docs/design/replay.md ("Registers").
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from liteprobe.cores.formats import NO_SEQUENCE, PRESETS, Part, SetError, TransmitState, map_hash
from liteprobe.sim.models.probe.trains import INCREMENT_ONE, OVERHEAD, ModelProbe, registers
from liteprobe.sim.models.traffic.replay import Record, decode
from liteprobe.sim.models.traffic.sets import End, Schedule, Set, Template, Writer, items

CONTROLS = ("session", "open", "close", "mode", "loops", "prime", "arm")
COUNTERS = (
    *("accepted", "frames", "underruns", "first_underrun", "errors"),
    *("datagrams", "repeated", "early", "full", "strange"),
)
LOOK_TICKS = 1000


@dataclass(frozen=True)
class SentFrame:
    """A frame that left: its port, the tick of its start, its octets without FCS."""

    port: int
    tick: int
    octets: bytes


class ReplayModel(ModelProbe):
    """A probe with the parts generate, record and replay.

    Parameters
    ----------
    words : gives the words that are in the ring of a port.
    open_ring : called with port, session and lease when a session is opened.

    Attributes
    ----------
    frames : that left, in order.
    underrun_at : by port: the frame that comes too late, if there is one.
    late_at : by port: a frame that starts late for another reason.
    """

    def __init__(
        self, words: Callable[[int], list[int]], open_ring: Callable[[int, int, int], None], ports: int = 2
    ) -> None:
        super().__init__(ports=ports)
        self._words_of, self._open_ring = words, open_ring
        for port in range(ports):
            self.extend(f"port{port}_replay", dict.fromkeys((*CONTROLS, *COUNTERS), 32), CONTROLS)
        self.values["probe_parts"] = int(PRESETS["train"] | Part.REPLAY | Part.SETS)
        self.frames: list[SentFrame] = []
        self.underrun_at: dict[int, int] = {}
        self.late_at: dict[int, int] = {}
        self._traces: list[list[Record]] = [[] for _ in range(ports)]

    # # #

    def _act(self, name: str, word: int) -> None:
        if "_replay_" not in name:
            super()._act(name, word)
            return
        port, action = int(name[4]), name.rpartition("_")[2]
        if action == "open":
            self._count(port, **dict.fromkeys(COUNTERS, 0) | {"first_underrun": NO_SEQUENCE})
            self._open_ring(port, self.values[f"port{port}_replay_session"], self.values["probe_lease_owner"] & 0xFFFF)
        elif action == "arm":
            self._tx(port, state=TransmitState.ARMED, sent=0)
            self._look(port)

    def _count(self, port: int, **values: int) -> None:
        self.values |= {f"port{port}_replay_{name}": value for name, value in values.items()}

    def _look(self, port: int) -> None:
        """See whether enough is in the ring: this model starts when all of it is."""
        if self.values[f"port{port}_tx_state"] != TransmitState.ARMED:
            return
        words = self._words_of(port)
        loops, prime = (self.values[f"port{port}_replay_{name}"] for name in ("loops", "prime"))
        if len(words) < prime or (loops != 1 and len(words) > prime):
            self._at(self.tick + LOOK_TICKS, lambda: self._look(port))
            return
        try:
            self._traces[port] = decode(words)
            self._tx(port, state=TransmitState.READY)
        except (ValueError, IndexError):
            self._at(self.tick + LOOK_TICKS, lambda: self._look(port))

    def _start(self, ports: list[int]) -> None:
        if any(self.values[f"port{port}_tx_state"] != TransmitState.READY for port in ports):
            return
        for port in ports:
            timed, start_ns = (self.values[f"port{port}_tx_{name}"] for name in ("timed", "start_time"))
            wait_ns = max(0, start_ns - self.now()) if timed else 0
            self._tx(port, state=TransmitState.WAITING if wait_ns else TransmitState.RUNNING)
            self._plan(port, self.tick + max(1, math.ceil(wait_ns * INCREMENT_ONE / self.values["timebase_increment"])))

    def _plan(self, port: int, first: int) -> None:
        """Schedule all frames of a port; a trace that is repeated in the ring goes on where it ended."""
        loops = self.values[f"port{port}_replay_loops"] or 3  # An endless one is stopped before that.
        free, begun, number = 0, first, 0
        for _ in range(loops):
            for record in self._traces[port]:
                due = begun + record.tick
                start = max(due, free)
                if number in (self.underrun_at.get(port), self.late_at.get(port)):
                    start += 1000
                free = start + len(record.octets) + OVERHEAD
                self._at(start, partial(self._send_record, port, record, number, start > due))
                number += 1
            begun += self._traces[port][-1].tick
        self._at(free, lambda: self._tx_stop(port))

    def _send_record(self, port: int, record: Record, number: int, is_late: bool) -> None:
        if self.values[f"port{port}_tx_state"] not in (TransmitState.WAITING, TransmitState.RUNNING):
            return
        self._tx(port, state=TransmitState.RUNNING)
        self.frames.append(SentFrame(port, self.tick, record.octets))
        self._tx(port, sent=number + 1)
        self._count(port, frames=number + 1)
        if is_late:
            first = self.values[f"port{port}_tx_first_late"]
            late = self.values[f"port{port}_tx_late"] + 1
            self._tx(port, late=late, first_late=number if first == NO_SEQUENCE else first)
        if self.underrun_at.get(port) == number:
            self._count(port, underruns=1, first_underrun=number)


# Configuration sets --------------------------------------------------------------------------------

SETS_SETTINGS = registers("fields places:48 first_repeats_allowed:16 arm:1 template0 template1 template2 template3")
SETS_COUNTERS = registers("sets repeats underruns first_underrun error:3")
TABLE_BASE, TABLE_OCTETS = 0x70000000, 1 << 18


class SetsModel(ReplayModel):
    """A probe with the part replay; it starts when all of a stream is there.

    ``words``, ``open_ring``, ``ports``: as of `ReplayModel`.

    Attributes
    ----------
    template : what is the same in all frames: the model doesn't read it from its registers.
    underrun_at : dict of int to int; as of `ReplayModel`.
    """

    template: Template

    def __init__(
        self, words: Callable[[int], list[int]], open_ring: Callable[[int, int, int], None], ports: int = 2
    ) -> None:
        super().__init__(words, open_ring, ports)
        for port in range(ports):
            self.extend(f"port{port}_sets", SETS_SETTINGS | SETS_COUNTERS, SETS_SETTINGS)
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
            self._sets(port, **dict.fromkeys(SETS_COUNTERS, 0) | {"first_underrun": NO_SEQUENCE})
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
