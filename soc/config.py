# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Says what a probe is built of, and checks that a board can hold it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from liteprobe.cores.formats import CHANNELS, DEFAULT_PRESET, PRESETS, STREAM_SLOTS, STREAM_SLOT_COUNTS, Part
from liteprobe.cores.formats.emulate import ENTRY_SPACE, RULES, RULES_MOST, TRACE_ENTRY_WORDS

RECORDS = 1024  # That each port holds by default.


def or_words(choices: Iterable[int]) -> str:
    """Return choices as words: ``7, 15 or 31``."""
    *some, last = map(str, choices)
    return f"{', '.join(some)} or {last}"


class BoardLimits(Protocol):
    """Gives what a configuration must know of a board to be checked against it."""

    name: str  # Name of the board, as in ``liteprobe build``.
    ports: int  # Ethernet PHYs of the board.
    sys_clk_freq: float  # Frequency of ``sys`` (Hz).
    lut_sites: int | None  # Number of LUT sites of the device. None: a simulation, which has no limit.
    block_rams: int | None  # Number of block RAMs of the device. None: a simulation, which has no limit.
    with_serial: bool  # Whether a serial port is wired.
    with_pcie: bool  # Whether it plugs into a PCIe slot.
    sdram_bytes: int  # SDRAM that a probe can use; 0: none.
    sdram_banks: int  # Banks of its SDRAM, of 2 MiB each, that an emulator can use.
    eye_clk_freqs: tuple[float, float] | None  # Of its SDRAM whose read phase is found, and where none is; None: it can't.
    spare_bytes: int  # Block RAM that firmware can have by default, where there is no SDRAM; 0: none.
    spare_records: int  # Of each port by default beside firmware in block RAM, which gets what they leave of `RECORDS`.


class Area(NamedTuple):
    """Holds what a part takes of an ECP5.

    Attributes
    ----------
    sites : int
        LUT sites, as Yosys counts them: a LUT4, a cell of carry two, a LUT RAM of 16 x 4 bits six.
    arcs : int
        From the pin that drives a net to each that it feeds, clocks left out: what the router has to find a way for.
    """

    sites: int
    arcs: int


#: Differences of whole netlists (tools/arcs.py): docs/design/parts.md names them. ``..._PORT``: of each port.
BASE = Area(3106, 13521)  # Bus, identity, lease, timebase, and Etherbone in band.
OWN_LINK = Area(467, 2459)
PROCESSOR = Area(3075, 12026)  # With SDRAM as its main RAM.
DISCIPLINE = Area(1785, 7782)
TRAIN_PORT = Area(4168, 18321)
MONITOR, MONITOR_PORT = Area(3466, 13196), Area(4937, 25437)
HASH_PORT = Area(1020, 3830)  # Of that, what hashes the frames of a port.
RATES = Area(493, 2474)  # Of a probe that monitors and does not replay.
MEASURE, MEASURE_PORT = Area(135, 705), Area(2703, 13673)  # With bit errors, and stamps in fields.
SENDER_PORT = Area(1822, 7805)  # Of trains, in a port that monitors or measures.
FIELDS_PORT = Area(623, 2932)  # Bit errors, and stamps in fields, of a port that monitors.
STREAMS_SOURCE = Area(3102, 13084) # Of each port that sends many streams: its source, stamps at any place, counters of each.
REPLAY, REPLAY_PORT = Area(1524, 6116), Area(1426, 5328)  # What takes datagrams; of each port, with stamps of each frame.
SETS_PORT = Area(1820, 7230)  # Of each port that makes frames of configuration sets, without streams.
HOSTS, HOST_PORT = Area(241, 900), Area(3340, 11699)  # The clock of their seconds; of each port, with what waits for the line.
ANSWERS_PORT = Area(545, 3367)  # Of each port with a host that sends nothing else: the way of its answers to the line.
EMULATOR = Area(1515, 8378)  # What both directions share, or the way back.
DIRECTION = Area(10971, 41823)  # Of each direction of the emulated network, with its paths, and its store in block RAM.
SPILL = Area(2321, 7925)  # Of each direction whose lists go to the SDRAM.
AQM = Area(2789, 9000)  # Of each direction whose queues have CoDel and PIE.
SDRAM_STORE = Area(786, 3214)  # Of an emulator whose frames wait in the SDRAM.
TRACE = Area(586, 2269)  # Of each direction whose link can have a bandwidth trace.
MORE_STREAMS = {8: Area(0, 0), 16: Area(106, 427), 32: Area(417, 1909)}  # Slots of a port's meter, in the place of 8.

#: Beyond so many arcs for each LUT site of a device nextpnr places a probe, but finds no way for all of them.
ARCS_A_SITE = 3.2
SITES = 0.8  # Part of a device's LUT sites that is taken at most.


def area(
    parts: Part, ports: int, has_own_link: bool, with_cpu: bool, with_discipline: bool, slots: int,
    more: tuple[int, bool, int, int, int, bool, int],
) -> Area:
    """Return what a probe of these parts takes.

    Parameters
    ----------
    slots : of the meter of each port that has one.
    more : directions of an emulated network, whether its frames wait in the SDRAM; directions that can have a trace, whose lists
        go to the SDRAM, whose queues have CoDel and PIE; whether frames that are monitored are hashed; ports with a host.
    """
    directions, in_sdram, traces, spills, early, with_hash, hosts = more
    has_meters = bool(parts & (Part.MONITOR | Part.MEASURE))
    of_port = [
        (Part.RECORD in parts, TRAIN_PORT),
        (Part.MONITOR in parts, MONITOR_PORT),
        (Part.MEASURE in parts, MEASURE_PORT),
        (Part.GENERATE in parts and has_meters, SENDER_PORT),
        (Part.STREAMS in parts, STREAMS_SOURCE),
        (Part.STREAMS in parts and Part.MONITOR in parts, FIELDS_PORT),
        (Part.REPLAY in parts, REPLAY_PORT),
        (Part.SETS in parts, SETS_PORT),
        (has_meters, MORE_STREAMS[slots]),
    ]
    once = [
        (True, BASE),
        (has_own_link, OWN_LINK),
        (with_cpu, PROCESSOR),
        (with_discipline, DISCIPLINE),
        (Part.MONITOR in parts, MONITOR),
        (Part.MONITOR in parts and Part.REPLAY not in parts, RATES),
        (Part.MEASURE in parts, MEASURE),
        (Part.REPLAY in parts, REPLAY),
        (Part.EMULATE in parts, EMULATOR),
        (Part.HOSTS in parts, HOSTS),
        (in_sdram, SDRAM_STORE),
        *[(True, HOST_PORT)] * hosts,
        *[(Part.GENERATE not in parts, ANSWERS_PORT)] * hosts,
        *[(True, DIRECTION)] * directions,
        *[(True, TRACE)] * traces,
        *[(True, SPILL)] * spills,
        *[(True, AQM)] * early,
    ]
    taken = [part for is_in, part in [*once, *of_port * ports] if is_in]
    if Part.MONITOR in parts and not with_hash:
        taken += [Area(-HASH_PORT.sites, -HASH_PORT.arcs)] * ports
    return Area(sum(part.sites for part in taken), sum(part.arcs for part in taken))


def capacity(lut_sites: int) -> Area:
    """Return what can be placed and routed on a device of so many LUT sites."""
    return Area(int(SITES * lut_sites), int(ARCS_A_SITE * lut_sites))


def _has(part: Part, text: str) -> property:
    """Return a property that says whether ``part`` is built in."""
    return property(lambda config: part in config.parts, doc=text)


@dataclass(frozen=True, kw_only=True)
class PartsConfig:
    """Chooses parts: those of a preset, and others beside or out of them.

    Parameters
    ----------
    preset : ``train`` sends trains and measures them; ``monitor`` sends nothing but management, and parses, filters,
        measures and captures what comes in (docs/design/monitor.md); ``tester`` sends trains and streams, and does all that a
        monitor does; ``generator`` sends trains and streams, and measures streams; ``replay`` sends trains and what the host
        streams to it, and does all that a monitor does; ``emulator`` joins two ports by an emulated network. ``PRESETS`` has the
        parts of each.
    with_streams : build in what sends many streams, where the preset has it (``generator``, ``tester``).
    with_replay : build in what sends traces that a host streams, beside what the preset has (``replay`` has it).
    with_sets : and what makes frames of configuration sets.
    with_hash : hash the frames that ports monitor, for channels by flow, samples by hash and the flow hash of records.
    with_hosts : ports answer ARP, ND, ping and STAMP, and send frames of a host's program.
    host_ports : which of them; none named: all.
    """

    preset: str = DEFAULT_PRESET
    with_streams: bool = True
    with_replay: bool = False
    with_sets: bool = True
    with_hash: bool = True
    with_hosts: bool = False
    host_ports: tuple[int, ...] = ()

    @property
    def parts(self) -> Part:
        """Parts that are built in."""
        parts = PRESETS[self.preset]
        if self.with_replay:
            parts |= Part.REPLAY | Part.SETS
        if self.with_hosts:
            parts |= Part.HOSTS
        left_out = Part.STREAMS * (not self.with_streams) | Part.SETS * (not self.with_sets)
        return parts & ~left_out

    generates     = _has(Part.GENERATE, "Whether ports send trains.")
    monitors      = _has(Part.MONITOR,
        "Whether ports have a monitor path, in the place of a receive path that keeps records of trains alone.")
    measures      = _has(Part.MEASURE,
        "Whether ports measure streams and keep nothing, in the place of a receive path that keeps records.")
    sends_streams = _has(Part.STREAMS,
        "Whether ports send many streams; then meters count bit errors, and take TX stamps from fields.")
    replays       = _has(Part.REPLAY, "Whether ports send what the host streams: traces, and configuration sets.")
    makes_sets    = _has(Part.SETS, "Whether ports make frames of configuration sets.")
    emulates      = _has(Part.EMULATE, "Whether ports are joined by an emulated network.")

    @property
    def leaves_hash_out(self) -> bool:
        """Whether ports monitor, and hash no frame."""
        return self.monitors and not self.with_hash

    @property
    def counts_rates(self) -> bool:
        """Whether rates are counted over short intervals; a probe that replays leaves their place to that."""
        return self.monitors and not self.replays

STORES = ("sdram", "block")
LONGEST = (1536, 9018)  # Octets of a frame without FCS.
LEAST_STORE_WORDS = 1 << 13  # Of a direction: each of nine lanes has a ring of 512 or more.
LARGEST_STORE_WORDS = {"sdram": 1 << 20, "block": 1 << 15}
# Block RAMs of the way back where there is one direction; of each direction, of each 512 entries and each 32 rules of one; of the
# entries of one that go to the SDRAM, and of a store there.
BACK_RAMS, DIRECTION_RAMS, ENTRIES_RAMS, RULES_RAMS, SPILLED_RAMS, SDRAM_RAMS = 4, 26, 3, 10, 5, 2
BLOCK_WAITING = 512  # Frames and background frames that wait for service in a direction with a store in block RAM.
JUMBO_RAMS = 14  # More of each port that takes frames in, where they may be jumbo frames.
STORE_RAM_WORDS = 512  # In a block RAM.
LEAST_ENTRIES, LARGEST_ENTRIES = 64, 4096
LARGEST_TRACE = {"sdram": 1 << 17, "block": 1 << 12}
USUAL_STORE_WORDS, USUAL_TRACE = 1 << 19, 1 << 16


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """Sizes of an emulated network.

    Parameters
    ----------
    directions : 1 (from port 0 to port 1) or 2.
    store : where frames wait: ``sdram``, or ``block`` (block RAM: short delays).
    store_words : of the store of each direction, a power of two.
    entries : where what is known of a frame stays in block RAM, a power of two: frames of a direction in the network.
    with_spill : it goes to the SDRAM, with the frames: one waits for each ENTRY_SPACE words of the store.
    longest : octets of the longest frame without FCS, 1536 or 9018.
    trace_entries : opportunities of a bandwidth trace that each direction holds, a power of two, beside the store; 0: none;
        None: `USUAL_TRACE` in the SDRAM, where that has space beside the store, in block RAM none.
    rules : that name the classes of each direction: 32, 64 or 128.
    with_aqm : queues can drop by CoDel and PIE, and mark frames (ECN).
    with_eye : the SDRAM has the fastest clock of the board, and its read phase is found at start.
    """

    directions: int = 2
    store: str = "sdram"
    store_words: int = USUAL_STORE_WORDS
    entries: int = 1024
    with_spill: bool = True
    longest: int = 1536
    trace_entries: int | None = None
    rules: int = RULES
    with_aqm: bool = True
    with_eye: bool = False

    @property
    def trace_depth(self) -> int:
        """Opportunities of a bandwidth trace that each direction holds."""
        if self.trace_entries is not None:
            return self.trace_entries
        return USUAL_TRACE if self.store == "sdram" and self.store_words <= USUAL_STORE_WORDS else 0

    @property
    def most_entries(self) -> int:
        """Frames of a direction that can wait or be under way, at most."""
        return self.store_words // ENTRY_SPACE if self.spills else self.entries

    @property
    def most_waiting(self) -> int:
        """Frames and background frames of a direction that can wait for service, at most."""
        return self.store_words // ENTRY_SPACE if self.spills else BLOCK_WAITING

    @property
    def spills(self) -> bool:
        """Whether what is known of frames that wait goes to the SDRAM, too."""
        return self.store == "sdram" and self.with_spill

    @property
    def network_rams(self) -> int:
        """Block RAMs of an emulator besides its processor, as Yosys counts them for 512 entries, scaled."""
        words = self.store_words + TRACE_ENTRY_WORDS * self.trace_depth
        in_store = 0 if self.store == "sdram" else -(-words // STORE_RAM_WORDS)
        lists = SPILLED_RAMS if self.spills else ENTRIES_RAMS * max(1, self.entries // 512)
        direction = DIRECTION_RAMS + lists + RULES_RAMS * self.rules // RULES + in_store
        jumbo = 2 * JUMBO_RAMS * (self.longest > LONGEST[0])  # One of them is the way back's, where there is one direction.
        back = BACK_RAMS * (self.directions == 1)
        return back + SDRAM_RAMS * (self.store == "sdram") + jumbo + self.directions * direction

    def check_network(self, board: BoardLimits, ports: int) -> None:
        """Raise ValueError, naming the fix, when ``board`` cannot hold this network between so many ports."""
        if ports != 2:
            raise ValueError(f"an emulated network joins two ports, not {ports}: set ports to 2")
        if self.directions not in (1, 2):
            raise ValueError(f"directions {self.directions} is out of range: use 1 (from port 0 to port 1) or 2")
        if self.store not in STORES:
            raise ValueError(f"store {self.store!r} is unknown: choose one of {', '.join(STORES)}")
        if self.store == "sdram" and not board.sdram_bytes:
            raise ValueError(f"{board.name} has no SDRAM for frames in the network: use store=block")
        if self.with_eye and (self.store != "sdram" or board.eye_clk_freqs is None):
            raise ValueError(f"{board.name} has no SDRAM here whose read phase could be found: leave with_eye out (no --eye)")
        if self.longest not in LONGEST:
            raise ValueError(f"longest {self.longest} is not supported: use {LONGEST[0]}, or {LONGEST[1]} for jumbo frames")
        for name, value, least, most in (
            ("store_words", self.store_words, LEAST_STORE_WORDS, LARGEST_STORE_WORDS[self.store]),
            ("entries", self.entries, LEAST_ENTRIES, LARGEST_ENTRIES),
            ("rules", self.rules, RULES, RULES_MOST),
        ):
            if not least <= value <= most or value & (value - 1):
                raise ValueError(f"{name} {value} is not a power of two from {least} to {most}: use {most}")
        most = LARGEST_TRACE[self.store]
        if (entries := self.trace_depth) and (not 0 < entries <= most or entries & (entries - 1)):
            raise ValueError(f"trace_entries {entries} is not 0 or a power of two up to {most}: use {most}")

LEAST_SYS_HZ = 48e6 # The shortest frames end 84 octet times apart, and the receive path wants 32 cycles for each.
LINKS, RINGS = ("own", "shared", "uart", "pcie"), ("auto", "sdram", "block")
CPU_VARIANTS, MAIN_RAMS = ("lite", "standard"), ("auto", "sdram", "block", "none")
REPLAY_PORTS = 2  # Rings that a host can fill.
BLOCK_RAM_BITS = 16 * 1024  # One ECP5 EBR holds 18 kbit; the parity bits are of no use to 32-bit words.
RECORD_BITS = 6 * 32
# Block RAMs of a monitor, of each of its ports, of what writes a ring into SDRAM, and of a processor besides its memories.
MONITOR_RAMS, MONITOR_PORT_RAMS, SDRAM_RING_RAMS, CPU_RAMS = 22, 15, 2, 5
# The same of a probe that measures streams, besides its processor.
MEASURE_RAMS, MEASURE_PORT_RAMS = 8, 8
# Of each port that sends, that monitors and takes stamps from fields, that sends many streams.
GENERATE_PORT_RAMS, FIELDS_PORT_RAMS, STREAMS_PORT_RAMS = 2, 1, 6
REPLAY_RAMS, REPLAY_PORT_RAMS = 2, 2  # Of a probe that replays; of each of its ports.
HOST_PORT_RAMS = 8  # Of each port with a host: its requests, its memory, and what waits for the line.
MORE_STREAMS_RAMS  = {8: 0, 16: 5, 32: 15}  # Of each port, by slots of its meter.
LARGEST_SITES = 43848  # Of the boards that a refusal names.
BUILDS = " (builds that fit: docs/emulator.md, 'On a board')"
COMFORT = 0.95 # Part of what can be routed that is taken unasked: nearer to the limit not every seed is.
LARGEST_CAPTURE_BLOCKS = 1024
LARGEST_RECORD_DEPTH = 8192  # `port<n>_records` then takes 192 KiB of the bus.
LEAST_MAIN_RAM, LARGEST_MAIN_RAM, MAIN_RAM_STEP = 32 * 1024, 16 * 1024 * 1024, 8192
UART_CLOCKS_PER_BIT = 8  # Fewer, and the receiver's sampling error eats the margin of a stop bit.


def most_ports(board: BoardLimits, preset: str) -> int:
    """Return how many test ports ``board`` can have, without a processor; 1 at the least."""
    if Part.EMULATE in PRESETS[preset]: # Joins two, in as many directions as there is space for.
        return min(2, board.ports)
    has_streams = Part.MONITOR not in PRESETS[preset] # A tester has its ports rather than its streams.
    fields  = {"preset": preset, "with_cpu": False, "with_streams": has_streams}
    choices = (ProbeConfig(ports=ports, **fields) for ports in range(board.ports, 1, -1))
    return next((config.ports for config in choices if config.fits(board)), 1)


@dataclass(frozen=True, kw_only=True)
class ProbeConfig(PartsConfig, NetworkConfig):
    """Says what to build in; fixed at build time.

    Parameters
    ----------
    preset, with_... : which parts, as of `PartsConfig`.
    directions, store, store_words, entries, longest, rules : of an emulated network, as of `NetworkConfig`.
    ports : test ports, from 1.
    link : the management link: ``own`` (Etherbone on the port after the test ports), ``shared`` (Etherbone in band
        on test port 0), ``uart`` (UARTBone) or ``pcie`` (BAR0).
    dma_channels : rings in the host's memory, from 1 to 8, with ``pcie``.
    record_depth : records held for each port, a power of two (preset train); 0: 1024, or the board's
        ``spare_records`` beside firmware in block RAM that the board has to spare.
    ring : where a capture waits for the host (preset monitor): ``sdram``, ``block`` (block RAM), or ``auto``: the board's
        SDRAM where it has one, else block RAM.
    capture_blocks : of 1472 octets, that a ring of block RAM holds.
    streams : that each port with meters measures (all presets but ``train``), 7, 15 or 31; 0: as many as there is space for, but
        31 only where ports send streams.
    with_cpu : build the VexRiscv in; ``cpu_variant`` is ``lite`` or ``standard``.
    rom_bytes, ram_bytes : memories of the CPU, powers of two.
    main_ram : RAM that firmware is loaded into and runs in: ``sdram``, ``block``, ``none``, or ``auto``: block RAM where
        ``main_ram_bytes`` is given, else, where firmware can be started (``with_cpu``, ``with_discipline``), the board's
        SDRAM, or block RAM where it has that to spare.
    main_ram_bytes : size of ``block``, a multiple of 8192; 0: what the board has to spare.
    ip_address, mac_address : of the management stack.
    uart_baud : bits a second of the UARTBone.
    gnss_baud : bits a second of the GNSS receiver's UART.
    with_discipline : build in what a clock on a reference takes: PPS in and out, the receiver's UART, clock status, line
        clocks, and the registers that start firmware.
    """

    ports: int = 2
    link: str = "shared"
    record_depth: int = 0
    with_cpu: bool = True
    cpu_variant: str = "lite"
    rom_bytes: int = 1024
    ram_bytes: int = 8192
    main_ram: str = "auto"
    main_ram_bytes: int = 0
    ip_address: str = "192.168.1.50"
    mac_address: int = 0x10E2D5000000
    uart_baud: int = 115200
    gnss_baud: int = 9600
    with_discipline: bool = True
    dma_channels: int = 8
    ring: str = "auto"
    capture_blocks: int = 8
    streams: int = 0

    @property
    def stores_in_sdram(self) -> bool:
        """Whether frames in the emulated network wait in the SDRAM; else in block RAM."""
        return self.emulates and self.store == "sdram"

    @property
    def has_eye(self) -> bool:
        """Whether the read phase of the SDRAM is found at start."""
        return self.stores_in_sdram and self.with_eye

    @property
    def shares_sdram(self) -> bool:
        """Whether ports read the SDRAM, or several write it: then it may have a clock of its own."""
        return self.replays or self.stores_in_sdram

    @property
    def needs_sdram(self) -> bool:
        """Whether no board without SDRAM can hold it."""
        return self.shares_sdram or (self.monitors and self.ring == "sdram") or (self.with_cpu and self.main_ram == "sdram")

    @property
    def phys(self) -> int:
        """PHYs that this configuration takes."""
        return self.ports + (self.link == "own")

    @property
    def hosts(self) -> tuple[int, ...]:
        """Test ports that have a host, in order."""
        return tuple(sorted({*(self.host_ports or range(self.ports))})) if self.with_hosts else ()

    def main_ram_kind(self, board: BoardLimits) -> str:
        """Return what the main RAM is on ``board``: ``sdram``, ``block`` or ``none``."""
        if self.main_ram != "auto":
            return self.main_ram
        if self.main_ram_bytes:
            return "block"
        if not (self.with_cpu and self.with_discipline):
            return "none"
        return "sdram" if board.sdram_bytes else "block" if board.spare_bytes else "none"

    def ring_kind(self, board: BoardLimits) -> str:
        """Return where a capture waits on ``board``: ``sdram`` or ``block``."""
        if self.ring != "auto":
            return self.ring
        return "sdram" if board.sdram_bytes else "block"

    def slots(self, board: BoardLimits) -> int:
        """Return the slots of the meter of each port that has one: a stream each, and one for all else."""
        if self.streams:
            return self.streams + 1
        most = len(STREAM_SLOT_COUNTS) if self.sends_streams else 2
        return next((slots for slots in reversed(STREAM_SLOT_COUNTS[1:most]) if self._has_room(slots, board)), STREAM_SLOTS)

    def _has_room(self, slots: int, board: BoardLimits) -> bool:
        large = replace(self, streams=slots - 1)
        fits  = board.block_rams is None or large.block_rams_needed(board) <= board.block_rams
        # As many as a port sends, wherever they fit.
        return fits and large.fits(board, 1.0 if self.sends_streams else COMFORT)

    def main_ram_block_bytes(self, board: BoardLimits) -> int:
        """Return the block RAM that is main RAM on ``board``."""
        if self.main_ram_kind(board) != "block":
            return 0
        # What the records leave that are fewer unasked.
        fewer = (RECORDS - board.spare_records) * (Part.RECORD in self.parts and self.record_depth <= board.spare_records)
        return self.main_ram_bytes or board.spare_bytes + board.ports * fewer * RECORD_BITS // 8

    def records(self, board: BoardLimits) -> int:
        """Return how many records each port holds on ``board`` (preset train)."""
        is_spare = self.main_ram_block_bytes(board) and not self.main_ram_bytes
        return self.record_depth or (board.spare_records if is_spare else RECORDS)

    def on(self, board: BoardLimits) -> ProbeConfig:
        """Return what is built on ``board``, its records among it; raise ValueError as `check` does."""
        self.check(board)
        return replace(self, record_depth=self.records(board))

    @property
    def area(self) -> Area:
        """Area that this takes of a device, with as few streams as are asked for."""
        slots = self.streams + 1 if self.streams + 1 in STREAM_SLOT_COUNTS else STREAM_SLOTS
        directions = self.directions * self.emulates
        each = (directions * has for has in (bool(self.trace_depth), self.spills, self.with_aqm))
        more = (directions, self.stores_in_sdram, *each, self.with_hash, len(self.hosts))
        return area(self.parts, self.ports, self.link == "own", self.with_cpu, self.with_discipline, slots, more)

    def fits(self, board: BoardLimits, share: float = 1.0) -> bool:
        """Return whether a share of the LUT sites of ``board`` is enough, and of the ways that the router finds."""
        if board.lut_sites is None:
            return True
        most = capacity(board.lut_sites)
        return self.area.sites <= share * most.sites and self.area.arcs <= share * most.arcs

    def smaller(self, board: BoardLimits) -> Iterator[str]:
        """Yield each thing that could be chosen otherwise, alone, so that ``board`` holds it."""
        fewer  = [slots - 1 for slots in STREAM_SLOT_COUNTS if slots - 1 < self.streams]
        others = {
            "no processor (--no-cpu)": replace(self, with_cpu=False),
            **({"no streams to send (--no-traffic)": replace(self, with_streams=False)} if self.sends_streams else {}),
            **({"no replay (--no-replay)": replace(self, with_replay=False)} if self.with_replay else {}),
            **({"no configuration sets (--no-sets)": replace(self, with_sets=False)} if Part.SETS in self.parts else {}),
            **({"no hosts (--no-hosts)": replace(self, with_hosts=False, host_ports=())} if self.with_hosts else {}),
            **{f"a host on port {one} alone (--hosts {one})": replace(self, host_ports=(one,)) for one in self.hosts[:-1]},
            **({"no flow hash (--no-hash)": replace(self, with_hash=False)} if self.monitors else {}),
            "no discipline of the clock (--no-discipline)": replace(self, with_discipline=False),
            **{f"--streams {streams}": replace(self, streams=streams) for streams in fewer},
            **({"--link shared": replace(self, link="shared")} if self.link == "own" else {}),
            **({"no CoDel and PIE (--no-aqm)": replace(self, with_aqm=False)} if self.emulates else {}),
            **({"lists in block RAM (--no-spill)": replace(self, with_spill=False)} if self.emulates else {}),
            **({"--trace-entries 0": replace(self, trace_entries=0)} if self.emulates else {}),
            **({"--directions 1": replace(self, directions=1)} if self.emulates and self.directions > 1 else {}),
            **{f"--ports {ports}": replace(self, ports=ports) for ports in range(self.ports - 1, 0, -1)},
            **{f"--preset {name}": replace(self, preset=name) for name in PRESETS if name not in (self.preset, "emulator")},
        }
        return (name for name, other in others.items() if other != self and other.fits(board))

    def check(self, board: BoardLimits) -> None:
        """Raise ValueError, naming the fix, when ``board`` cannot hold this configuration."""
        self._check_preset(board)
        self._check_ports(board)
        self._check_address()
        self._check_clock(board)
        self._check_records()
        self._check_replay(board)
        if self.emulates:
            self.check_network(board, self.ports)
        self._check_cpu()
        self._check_main_ram(board)
        self._check_uart(board)
        self._check_pcie(board)
        self._check_area(board)
        self._check_block_rams(board)

    def _check_preset(self, board: BoardLimits) -> None:
        if self.preset not in PRESETS:
            raise ValueError(f"preset {self.preset!r} is unknown: choose one of {', '.join(PRESETS)}")
        if self.with_hosts and self.emulates:
            raise ValueError("ports of an emulated network have no hosts, which would take frames out of it: leave --hosts out")
        if strange := [port for port in self.hosts if port not in range(self.ports)]:
            raise ValueError(f"there is no test port {strange[0]} for a host: give --hosts ports from 0 to {self.ports - 1}")
        if self.ring not in RINGS:
            raise ValueError(f"ring {self.ring!r} is unknown: choose one of {', '.join(RINGS)}")
        if (self.monitors or self.measures) and self.streams not in (0, *(slots - 1 for slots in STREAM_SLOT_COUNTS)):
            raise ValueError(f"{self.streams} streams are not supported: use {or_words(slots - 1 for slots in STREAM_SLOT_COUNTS)}")
        if not self.monitors:
            return
        if self.ring == "sdram" and not board.sdram_bytes:
            raise ValueError(f"{board.name} has no SDRAM for the ring: use ring=block")
        if not 2 <= self.capture_blocks <= LARGEST_CAPTURE_BLOCKS:
            raise ValueError(f"capture_blocks {self.capture_blocks} is out of range: use 2 to {LARGEST_CAPTURE_BLOCKS}")

    def _check_ports(self, board: BoardLimits) -> None:
        if self.link not in LINKS:
            raise ValueError(f"link {self.link!r} is unknown: choose one of {', '.join(LINKS)}")
        if not 1 <= self.ports <= board.ports:
            raise ValueError(f"{board.name} has {board.ports} ports, not {self.ports}: set ports from 1 to {board.ports}")
        if self.phys > board.ports:
            raise ValueError(
                f"{board.name} has {board.ports} ports and all are test ports, so none is left for link=own: "
                f"use link=shared, or ports={board.ports - 1}"
            )

    def _check_area(self, board: BoardLimits) -> None:
        if board.lut_sites is None or self.fits(board):
            return
        ways = [f"build with {way}" if not n else way for n, way in enumerate(self.smaller(board))]
        boards = ["colorlight_i9"] + ([] if self.needs_sdram else ["versa_ecp5"]) # The Versa has none.
        ways += [f"take the board {' or '.join(boards)}"] if board.lut_sites < LARGEST_SITES else []
        raise ValueError(
            f"{board.name} is too small for preset {self.preset} with {self.ports} port{'s' * (self.ports > 1)}: it takes "
            f"{self.area.sites} of {board.lut_sites} LUT sites and {self.area.arcs} wires, of which nextpnr routes "
            f"{capacity(board.lut_sites).arcs}: {', or '.join(ways) or f'leave more than one part out{BUILDS * self.emulates}'}"
        )

    def _check_address(self) -> None:
        try:
            address = ipaddress.IPv4Address(self.ip_address)
        except ipaddress.AddressValueError as error:
            raise ValueError(f"{self.ip_address!r} is not an IPv4 address ({error}): write it as 192.168.1.50") from None
        if address.is_multicast or address.is_unspecified or address.is_loopback or address == ipaddress.IPv4Address(2**32 - 1):
            raise ValueError(f"{address} can't be the address of a probe: choose a unicast address such as 192.168.1.50")
        if not 0 < self.mac_address < 2**48:
            raise ValueError(f"MAC address {self.mac_address:#x} doesn't fit: give 48 bits, not all zero")
        if self.mac_address >> 40 & 1:
            raise ValueError(f"MAC address {self.mac_address:012x} is a group address: clear bit 0 of its first octet")

    def _check_clock(self, board: BoardLimits) -> None:
        if board.sys_clk_freq < LEAST_SYS_HZ:
            raise ValueError(
                f"sys at {board.sys_clk_freq / 1e6:g} MHz is too slow to measure every frame of a line of 1 Gb/s: "
                f"raise sys_clk_freq to {LEAST_SYS_HZ / 1e6:g} MHz"
            )

    def _check_records(self) -> None:
        depth = self.record_depth or RECORDS
        if not 16 <= depth <= LARGEST_RECORD_DEPTH or depth & (depth - 1):
            raise ValueError(f"record_depth {depth} is not a power of two from 16 to {LARGEST_RECORD_DEPTH}: use 1024")

    def _check_replay(self, board: BoardLimits) -> None:
        if not self.replays:
            return
        if not board.sdram_bytes:
            raise ValueError(f"replay keeps what the host streams in a SDRAM, {board.name} has none: choose another preset")
        if self.link == "uart":
            raise ValueError("link=uart does not carry what is replayed: use link=own, link=shared or link=pcie")
        if self.ports > REPLAY_PORTS:
            raise ValueError(f"replay has {REPLAY_PORTS} rings, not {self.ports}: set ports to {REPLAY_PORTS} at most")

    def _check_cpu(self) -> None:
        if not self.with_cpu:
            return
        if self.cpu_variant not in CPU_VARIANTS:
            raise ValueError(f"cpu_variant {self.cpu_variant!r} can't run Zephyr here: use {' or '.join(CPU_VARIANTS)}")
        for name, size in (("rom_bytes", self.rom_bytes), ("ram_bytes", self.ram_bytes)):
            if not 256 <= size <= 128 * 1024 or size & (size - 1):
                raise ValueError(f"{name} {size} is not a power of two from 256 to 131072: use 8192")

    def _check_main_ram(self, board: BoardLimits) -> None:
        if self.main_ram not in MAIN_RAMS:
            raise ValueError(f"main_ram {self.main_ram!r} is unknown: choose one of {', '.join(MAIN_RAMS)}")
        kind, size = self.main_ram_kind(board), self.main_ram_block_bytes(board)
        if kind == "none" or not self.with_cpu:
            return
        if not self.with_discipline:
            raise ValueError("main RAM is for firmware, which nothing can start without with_discipline: set it too")
        if kind == "block" and (not LEAST_MAIN_RAM <= size <= LARGEST_MAIN_RAM or size % MAIN_RAM_STEP):
            raise ValueError(f"main_ram_bytes {size} is not a multiple of 8192 from 32768 to 16777216: use 131072")
        if kind == "sdram" and self.main_ram_bytes:
            raise ValueError("main_ram_bytes is the size of block RAM: leave it out, or use main_ram=block")
        if kind == "sdram" and not board.sdram_bytes:
            raise ValueError(f"{board.name} has no SDRAM for a probe: use block RAM, main_ram_bytes=131072 (--main-ram 131072)")

    def _check_uart(self, board: BoardLimits) -> None:
        fastest = int(board.sys_clk_freq // UART_CLOCKS_PER_BIT)
        if self.with_discipline and not 1200 <= self.gnss_baud <= fastest:
            raise ValueError(f"gnss_baud {self.gnss_baud} is out of range on {board.name}: use 1200 to {fastest}")
        if self.link != "uart":
            return
        if not board.with_serial:
            raise ValueError(f"{board.name} has no serial port for link=uart: use link=own or link=shared")
        if not 1200 <= self.uart_baud <= fastest:
            raise ValueError(f"uart_baud {self.uart_baud} is out of range on {board.name}: use 1200 to {fastest}")

    def _check_pcie(self, board: BoardLimits) -> None:
        if self.link != "pcie":
            return
        if not board.with_pcie:
            raise ValueError(f"{board.name} has no PCIe for link=pcie: use link=shared, or the board sqrl_acorn")
        if not 1 <= self.dma_channels <= CHANNELS:
            raise ValueError(f"dma_channels {self.dma_channels} is out of range: use 1 to {CHANNELS}")
        if self.replays and self.dma_channels < self.ports:
            raise ValueError(f"replay takes a DMA channel a port: set dma_channels to {self.ports} or more")
        if (self.replays or (self.monitors and self.ring_kind(board) == "sdram")) and self.main_ram_kind(board) == "block":
            raise ValueError("BAR0 reaches main RAM in block RAM, or the SDRAM of rings: use main_ram=sdram or main_ram=none")

    def block_rams_needed(self, board: BoardLimits) -> int:
        """Return how many block RAMs of ``board`` this takes at least; with meters up to one, as Yosys counts them."""
        bits = 8 * (self.rom_bytes + self.ram_bytes + self.main_ram_block_bytes(board)) if self.with_cpu else 0
        hosts = HOST_PORT_RAMS * len(self.hosts)
        if not (self.monitors or self.measures or self.emulates):
            return -(-(bits + self.ports * self.records(board) * RECORD_BITS) // BLOCK_RAM_BITS) + hosts
        cpu = CPU_RAMS + -(-bits // BLOCK_RAM_BITS) if self.with_cpu else 0
        if self.emulates:
            return self.network_rams + cpu
        send = GENERATE_PORT_RAMS * self.generates + STREAMS_PORT_RAMS * self.sends_streams
        port = MORE_STREAMS_RAMS[self.slots(board)] + send
        if self.measures:
            return MEASURE_RAMS + (MEASURE_PORT_RAMS + port) * self.ports + hosts + cpu
        ring = self.capture_blocks * 384 * 32 // BLOCK_RAM_BITS if self.ring_kind(board) == "block" else SDRAM_RING_RAMS
        fields = FIELDS_PORT_RAMS * self.sends_streams
        replay = (REPLAY_RAMS + REPLAY_PORT_RAMS * self.ports) * self.replays
        return MONITOR_RAMS + (MONITOR_PORT_RAMS + fields + port) * self.ports + hosts + replay + ring + cpu

    def _check_block_rams(self, board: BoardLimits) -> None:
        if board.block_rams is None:
            return
        # Of a train: what is known before synthesis. FIFOs of the paths come on top, so a build may still not fit.
        needed = self.block_rams_needed(board)
        if needed > board.block_rams:
            whats = ["ports, streams, capture_blocks, or leave the processor out (--no-cpu)"] * self.monitors
            whats += ["ports, streams, or leave the processor out (--no-cpu)"] * self.measures
            whats += ["entries, store_words, or use store=sdram, or directions=1"] * self.emulates
            what = [*whats, "record_depth, ram_bytes or main_ram_bytes"][0]
            raise ValueError(f"memories need {needed} block RAMs, {board.name} has {board.block_rams}: lower {what}")
