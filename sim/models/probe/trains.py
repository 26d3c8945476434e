# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A probe as its registers show it: programs run, frames cross a wire, records and accumulators fill.

The truth for tests of the host: exact in ticks, without gateware or simulation. Source: docs/design/interfaces.md.
"""

import heapq
import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from liteprobe.cores.formats import (
    HEADER_OCTETS,
    NO_SEQUENCE,
    PRESETS,
    RECORD_OCTETS,
    RECORD_SLOTS,
    RECORD_WINDOW,
    STREAM_SLOT_WORDS,
    RecordFlag,
    TransmitState,
    map_hash,
)
from liteprobe.sim.models.receive.meters import MeasuredFrame, PortMeterModel

CSR_BASE = 0xF0000000
HEADER_BASE = 0x40000000
RECORDS_BASE = 0x50000000
STREAMS_BASE = 0x60000000
PORT_STRIDE = 0x01000000
STREAM_WORDS = RECORD_SLOTS * STREAM_SLOT_WORDS
OVERHEAD = 24
INCREMENT_ONE = 2**40
TICKS_PER_SECOND = 125_000_000
SYS_HZ, LEASE_UNITS = 62_500_000, 120
BUILD_TICKS = 500  # From arm to ready.


def registers(text: str) -> dict[str, int]:
    """Return registers with their widths in bits, from ``"name:width ..."``; 32 where none is said."""
    parts = (word.partition(":") for word in text.split())
    return {name: int(width or 32) for name, _, width in parts}


# Registers of each module. Those in STROBES act when written, and read 0.
PROBE = registers("map_hash ports:8 record_depth start:2 ticks_per_second data_width:8 parts:8 writes_skipped:16")
LEASE = registers("owner claim steal release left:8 timeout:8 name:512 expired:16")
TIMEBASE = registers("latch:1 now:64 now_fraction ticks:64 increment:48 set_time:64 set:1 adjust:64 adjust_apply:1")
PPS_CONTROL = registers("control:2 period min_width:16 window")
PPS = PPS_CONTROL | registers("latch:1 count now:64 now_fraction ticks:64 width flags:8 samples:3")
PPS |= registers("glitches:16 missing:16 spurious:16 present:1")
PUBLISHED = registers("state:3 uncertainty offset rate drift edges rejected holdover tai_utc error qerr")
CLOCK = PUBLISHED | registers("update:1 updates:16 watchdog:16 alive:1 mode:8")
PROGRAM = registers(
    "length:14 count repeats interval_ticks interval_fraction gap_ticks start_time:64 timed:1 fill:2 payload_offset:8 "
    "checksum_enable:1 checksum_seed:16"
)
TX_STATUS = registers(
    "sent late first_late underruns:16 management_sent management_held:16 management_dropped:16 disturbed:16"
)
TX = PROGRAM | registers("attached:1 arm:1 stop:1 clear:1 state:3") | TX_STATUS | registers("link_up:1")
#: What a port counts of any frame; those that this model has no cause for stay 0.
EVENTS = registers(
    "all_frames:64 all_octets:64 fcs_errors:64 length_errors:64 bad_probes:64 runts:64 giants:64 preamble_errors:64 "
    "symbol_errors:64 overflows:64 stamp_errors:64 unclassified:64 management_frames:64 management_dropped:64"
)
RX_STATUS = registers("records_written records_lost link_up:1")
RX = registers("stream_id:16 clear:1 latch:1 records_read records_enable:1") | RX_STATUS | EVENTS
STROBES = {"claim", "steal", "release", "start", "latch", "set", "adjust_apply", "arm", "stop", "clear", "update"}
WRITTEN = {*PROGRAM, "increment", "set_time", "adjust", "stream_id", "records_read", "records_enable", "attached"}
WRITTEN |= {"timeout", "name", *PPS_CONTROL, "watchdog", "mode"} | STROBES


@dataclass(frozen=True)
class ModelFrame:
    """A probe frame on the wire; ``stamp`` in ns, ``length`` in octets without FCS."""

    port: int
    sequence: int
    stream_id: int
    length: int
    stamp: int
    flags: RecordFlag = RecordFlag.NONE


#: What becomes of a frame that leaves a port: (port it reaches, delay in ticks, frame as it arrives), in any number.
Wire = Callable[[ModelFrame], Iterable[tuple[int, int, ModelFrame]]]


def loopback(delay_ticks: int = 10) -> Wire:
    """Return a wire that leads each port to itself."""
    return lambda frame: [(frame.port, delay_ticks, frame)]


def cable(delay_ticks: int = 10) -> Wire:
    """Return a wire between ports 0 and 1."""
    return lambda frame: [(1 - frame.port, delay_ticks, frame)]


class ModelProbe:
    """A probe behind its bus.

    Parameters
    ----------
    wire : what becomes of the frames.
    ports, depth : test ports, records of a ring.
    with_clock : bool
        Whether it has a PPS and the status of a clock: what is published appears at once, its watchdog never bites.

    Attributes
    ----------
    map : its register map.
    tick : ticks since reset.
    values : registers by name, as an unsigned number; a test may set any.
    """

    def __init__(self, wire: Wire | None = None, ports: int = 2, depth: int = 1024, with_clock: bool = False) -> None:
        constants = {"config_clock_frequency": SYS_HZ}
        self.map: dict[str, Any] = {"csr_bases": {}, "csr_registers": {}, "constants": constants, "memories": {}}
        self.wire = wire or loopback()
        self.ports, self.depth = ports, depth
        self.tick, self._set_tick, self._set_ns = 0, 0, Fraction(0)
        self.values: dict[str, int] = {}
        self._words: dict[int, tuple[str, int]] = {}
        modules = {"probe": PROBE, "probe_lease": LEASE, "timebase": TIMEBASE}
        modules |= {"pps": PPS, "clock": CLOCK} if with_clock else {}
        for port in range(ports):
            modules |= {f"port{port}_tx": TX, f"port{port}_rx": RX}
        for module, widths in modules.items():
            self.extend(module, widths, WRITTEN | PUBLISHED.keys() if module == "clock" else WRITTEN)
        areas = {"header": (HEADER_BASE, HEADER_OCTETS // 4), "streams": (STREAMS_BASE, STREAM_WORDS)}
        for port in range(ports):
            self.extend_memories(port, areas | {"records": (RECORDS_BASE, depth * RECORD_OCTETS // 4)})
        self.values |= {"probe_ports": ports, "probe_record_depth": depth}
        self.values |= {"probe_ticks_per_second": TICKS_PER_SECOND, "probe_data_width": 32}
        self.values |= {"probe_parts": PRESETS["train"], "timebase_increment": 8 * INCREMENT_ONE}
        self.values |= dict.fromkeys(("probe_lease_timeout", "probe_lease_left"), LEASE_UNITS)
        self.values |= {"probe_lease_owner": 0x8000}
        self._memory: dict[int, int] = {}
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0
        self._programs: list[dict[str, int]] = [{}] * ports
        self._streams = [PortMeterModel(slots=RECORD_SLOTS, window=RECORD_WINDOW) for _ in range(ports)]
        self._live: list[dict[str, int]] = [{} for _ in range(ports)]
        for port in range(ports):
            self.values[f"port{port}_tx_link_up"] = self.values[f"port{port}_rx_link_up"] = 1
            self.values[f"port{port}_tx_first_late"] = NO_SEQUENCE
            self.values[f"port{port}_rx_records_enable"] = 1

    # Map --------------------------------------------------------------------------------------

    def extend(self, module: str, widths: Mapping[str, int], written: Container[str]) -> None:
        """Give the probe registers ``<module>_<name>``, after those that it has; ``written``: those that a host may write."""
        entries = self.map["csr_registers"]
        address = max((entry["addr"] + 4 * entry["size"] for entry in entries.values()), default=CSR_BASE)
        for name, width in widths.items():
            whole, words = f"{module}_{name}", math.ceil(width / 32)
            entries[whole] = {"addr": address, "size": words, "type": "rw" if name in written else "ro"}
            self._words |= {address + 4 * number: (whole, 32 * (words - 1 - number)) for number in range(words)}
            self.values.setdefault(whole, 0)
            address += 4 * words
        self.values["probe_map_hash"] = map_hash(self.map)

    def extend_memories(self, number: int, areas: Mapping[str, tuple[int, int]], owner: str = "port") -> None:
        """Give ``<owner><number>`` memories: of each the base of the first one's, and words."""
        for name, (base, words) in areas.items():
            place = {"base": base + PORT_STRIDE * number, "size": 4 * words, "type": "io"}
            self.map["memories"][f"{owner}{number}_{name}"] = place
        self.values["probe_map_hash"] = map_hash(self.map)

    def remove(self, names: Iterable[str]) -> None:
        """Take registers and memories away: this probe has none."""
        for name in names:
            self.map["csr_registers" if name in self.map["csr_registers"] else "memories"].pop(name)
        self.values["probe_map_hash"] = map_hash(self.map)

    # Bus --------------------------------------------------------------------------------------

    def read(self, address: int) -> int:
        """Return the word at ``address``; a read changes nothing."""
        if address not in self._words:
            return self._memory.get(address, 0)
        name, shift = self._words[address]
        return 0 if name.rpartition("_")[2] in STROBES else (self.values[name] >> shift) & 0xFFFFFFFF

    def write(self, address: int, word: int) -> None:
        """Write the word at ``address``."""
        if address not in self._words:
            self._memory[address] = word
            return
        name, shift = self._words[address]
        if self.map["csr_registers"][name]["type"] == "ro":
            return
        if name == "timebase_increment":
            self._set_clock(self._now())  # Holds from now on, not for what has passed.
        self.values[name] = self.values[name] & ~(0xFFFFFFFF << shift) | word << shift
        self._act(name, word)

    def now(self) -> int:
        """Return the time (ns)."""
        return int(self._now())

    def show(self, base: int, words: Sequence[int]) -> None:
        """Let a memory hold ``words`` from address ``base`` on."""
        self._memory |= {base + 4 * number: word for number, word in enumerate(words)}

    def advance(self, ticks: int) -> None:
        """Let ``ticks`` pass."""
        end = self.tick + ticks
        while self._events and self._events[0][0] <= end:
            self.tick, _, act = heapq.heappop(self._events)
            act()
        self.tick = end

    # # #

    def _now(self) -> Fraction:
        elapsed = self.tick - self._set_tick
        return self._set_ns + Fraction(elapsed * self.values["timebase_increment"], INCREMENT_ONE)

    def _at(self, tick: int, act: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._events, (tick, self._number, act))

    def _act(self, name: str, word: int) -> None:
        module, _, strobe = name.rpartition("_")
        if name == "timebase_adjust_apply":
            adjust = self.values["timebase_adjust"]
            self._set_clock(self.now() + Fraction(adjust - (adjust >> 63 << 64), 2**32))
        elif name == "timebase_set":
            self._set_clock(Fraction(self.values["timebase_set_time"]))
        elif name == "timebase_latch":
            self.values |= {"timebase_now": self.now(), "timebase_ticks": self.tick}
        elif name == "clock_update":
            self.values |= {"clock_updates": self.values["clock_updates"] + 1, "clock_alive": 1}
        elif name == "pps_latch":
            pass  # A test sets the last edge.
        elif module == "probe_lease":
            self._lease(strobe, word)
        elif name == "probe_start":
            self._start([port for port in range(self.ports) if word >> port & 1])
        elif strobe in ("arm", "stop", "clear", "latch"):
            port, direction = int(module[4]), module[-2:]
            getattr(self, f"_{direction}_{strobe}")(port)

    def end_lease(self) -> None:
        """End the lease of a host that doesn't answer any more: what it has attached stops."""
        self._lease("release", self.values["probe_lease_owner"])

    def _lease(self, strobe: str, word: int) -> None:
        """Claim, steal or release the probe; time doesn't end the lease of this model."""
        owner = self.values["probe_lease_owner"]
        is_held, is_present = owner >> 16 > 0, (word ^ owner) & 0xFFFF == 0 and word >> 16 > 0
        if not is_present or (strobe == "claim" and is_held) or (strobe == "release" and word != owner):
            return
        self.values["probe_lease_owner"] = (
            (0 if strobe == "release" else word >> 16 << 16) | 0x8000 | (owner + 1) & 0x7FFF
        )
        for port in range(self.ports):
            if is_held and self.values[f"port{port}_tx_attached"]:
                self._tx_stop(port)

    def _set_clock(self, time_ns: Fraction) -> None:
        self._set_tick, self._set_ns = self.tick, time_ns

    # Transmit ---------------------------------------------------------------------------------

    def _tx(self, port: int, **values: int) -> None:
        self.values |= {f"port{port}_tx_{name}": value for name, value in values.items()}

    def _tx_clear(self, port: int) -> None:
        self._tx(port, **dict.fromkeys(TX_STATUS, 0) | {"first_late": NO_SEQUENCE})

    def _tx_arm(self, port: int) -> None:
        self._programs[port] = {name: self.values[f"port{port}_tx_{name}"] for name in PROGRAM}
        offset = self._programs[port]["payload_offset"] + 4
        words = [self._memory.get(HEADER_BASE + PORT_STRIDE * port + at - at % 4, 0) for at in (offset, offset + 1)]
        octets = [words[at - offset] >> 8 * (at % 4) & 0xFF for at in (offset, offset + 1)]
        self._programs[port]["stream_id"] = octets[0] << 8 | octets[1]
        self._tx(port, state=TransmitState.ARMED, sent=0)
        self._at(self.tick + BUILD_TICKS, lambda: self._tx(port, state=TransmitState.READY))

    def _tx_stop(self, port: int) -> None:
        self._programs[port] = {}
        self._tx(port, state=TransmitState.IDLE)

    def _start(self, ports: list[int]) -> None:
        """Schedule the first frames of all ``ports`` for one tick, if all of them are ready."""
        if any(self.values[f"port{port}_tx_state"] != TransmitState.READY for port in ports):
            return
        for port in ports:
            program = self._programs[port]
            wait_ns = max(0, program["start_time"] - self.now()) if program["timed"] else 0
            wait_ticks = math.ceil(Fraction(wait_ns * INCREMENT_ONE, self.values["timebase_increment"]))
            first = self.tick + max(1, wait_ticks)
            self._tx(port, state=TransmitState.WAITING if wait_ns else TransmitState.RUNNING)
            act = partial(self._send, port, program, first, 0)  # Of this program: another one may be armed by then.
            self._at(first, act)

    def _send(self, port: int, program: dict[str, int], first: int, sequence: int) -> None:
        """Send a frame now, and schedule the next: absolute times, so that no error adds up."""
        if program is not self._programs[port] or not program:
            return
        frame = ModelFrame(port, sequence, program["stream_id"], program["length"], self.now())
        self._tx(port, state=TransmitState.RUNNING, sent=sequence + 1)
        for target, delay, arrived in self.wire(frame):
            self._at(self.tick + delay, lambda target=target, arrived=arrived: self._receive(target, arrived))  # type: ignore[misc]
        slot = program["length"] + OVERHEAD
        if sequence + 1 == program["count"] * program["repeats"]:
            self._at(self.tick + slot, lambda: self._tx_stop(port))
            return
        interval = Fraction(program["interval_ticks"]) + Fraction(program["interval_fraction"], 2**32) or Fraction(slot)
        train, number = divmod(sequence + 1, program["count"])
        offset = (train * program["count"] + number) * interval + train * program["gap_ticks"]
        self._at(first + math.floor(offset), lambda: self._send(port, program, first, sequence + 1))

    # Receive ----------------------------------------------------------------------------------

    def _rx_clear(self, port: int) -> None:
        self._streams[port].clear()
        self._live[port] = {}
        self.values |= dict.fromkeys((f"port{port}_rx_{name}" for name in (*RX_STATUS, "records_read")), 0)
        self.values[f"port{port}_rx_link_up"] = self.values[f"port{port}_tx_link_up"]

    def _rx_latch(self, port: int) -> None:
        self.values |= {f"port{port}_rx_{name}": self._live[port].get(name, 0) for name in EVENTS}
        self.show(STREAMS_BASE + PORT_STRIDE * port, self._streams[port].words())

    def _receive(self, port: int, frame: ModelFrame) -> None:
        if not self.values[f"port{port}_rx_link_up"]:
            return
        self._add(port, all_frames=1, all_octets=frame.length)
        self._add(port, fcs_errors=int(bool(frame.flags & RecordFlag.FCS_ERROR)))
        meter = self._streams[port]
        meter.stream_base = self.values[f"port{port}_rx_stream_id"]
        order = meter.arrive(
            MeasuredFrame(
                self.now(), frame.length, int(frame.flags), True, frame.stream_id, frame.sequence, frame.stamp
            )
        )
        if frame.stream_id != meter.stream_base:
            order = RecordFlag.FOREIGN_STREAM
        if self.values[f"port{port}_rx_records_enable"]:
            self._record(port, replace(frame, flags=frame.flags | order))

    def _add(self, port: int, **amounts: int) -> None:
        live = self._live[port]
        live |= {name: live.get(name, 0) + amount for name, amount in amounts.items()}

    def _record(self, port: int, frame: ModelFrame) -> None:
        prefix = f"port{port}_rx_records_"
        written = self.values[prefix + "written"]
        if written - self.values[prefix + "read"] == self.depth:
            self.values[prefix + "lost"] += 1
            return
        now = self.now()
        base = RECORDS_BASE + PORT_STRIDE * port + RECORD_OCTETS * (written % self.depth)
        stamps = (frame.stamp & 0xFFFFFFFF, frame.stamp >> 32, now & 0xFFFFFFFF, now >> 32)
        words = (frame.sequence, *stamps, frame.length | int(frame.flags) << 16)
        self.show(base, words)
        self.values[prefix + "written"] += 1


def damaged(frame: ModelFrame) -> ModelFrame:
    """Return ``frame`` with a bad FCS."""
    return replace(frame, flags=frame.flags | RecordFlag.FCS_ERROR)
