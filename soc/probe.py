# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Builds the probe: test ports, timebase, management link and processor on one bus."""

from typing import NamedTuple

from migen import *

from litex.gen import *

from litex.soc.cores.uart import UART
from litex.soc.integration.soc import SoCRegion
from litex.soc.integration.soc_core import SoCCore
from litex.soc.interconnect import wishbone
from litex.soc.interconnect.csr import *

from liteprobe.cores.assign import copied
from liteprobe.cores.bus import BANK_BITS, BusRegister, ReadBack, joins_banks
from liteprobe.cores.capture.capture import BlockCapture
from liteprobe.cores.capture.export import BlockExport, FrameArbiter
from liteprobe.cores.capture.ring_memory import BlockRamRing, BurstRing
from liteprobe.cores.emulate.arrive import ForwardPath
from liteprobe.cores.emulate.bypass import ReverseBypass
from liteprobe.cores.emulate.direction import DirectionSizes, EmulatedDirection, Origin
from liteprobe.cores.emulate.forward import ForwardSource
from liteprobe.cores.emulate.layouts import ENTRY_WORDS
from liteprobe.cores.emulate.store import BlockStore, BlockTrace, SdramStore, SdramTrace
from liteprobe.cores.formats import (
    BLOCK_WORDS, HEADER_WORDS_OF_STREAM, LIST_WORDS, MODIFIER_WORDS, MODIFIERS, SENT_WORDS, STATUS_PERIOD_S, STREAM_WORDS,
    STREAMS, TICKS_PER_SECOND, Part,
)
from liteprobe.cores.formats.emulate import ENTRY_SPACE, TRACE_ENTRY_WORDS
from liteprobe.cores.formats.reflect import COUNT_WORD, FRAMES_WORDS, HostCount, count_register
from liteprobe.cores.formats.replay import RING_WORDS, TABLE_ENTRIES
from liteprobe.cores.management.lease import WriteLease
from liteprobe.cores.management.mdio import Mdio
from liteprobe.cores.management.stack import ManagementPort, ManagementStack
from liteprobe.cores.measure.port import PortMeter
from liteprobe.cores.measure.rate import RateMeter
from liteprobe.cores.formats.probe import EyeState
from liteprobe.cores.memory.eye import STEP_TAPS, TAP_PS, EyeRegisters, ReadEye
from liteprobe.cores.memory.interleaved import BusCrossing, InterleavedController, PortCrossing
from liteprobe.cores.memory.ports import BurstPorts, MemoryCrossing
from liteprobe.cores.memory.sdram import BANKS, COLUMNS, ROWS, SdramController
from liteprobe.cores.receive.datagrams.counts import COUNTS, STRANGE
from liteprobe.cores.receive.datagrams.receiver import DatagramReceiver
from liteprobe.cores.receive.datagrams.slots import SlotReceiver
from liteprobe.cores.receive.datagrams.status import ERRORS_WORD, FIRST_UNDERRUN_WORD, FRAMES_WORD, SHOWN_WORDS, UNDERRUNS_WORD
from liteprobe.cores.receive.filter.tables import FilterTables
from liteprobe.cores.receive.path import MeasurePath, MonitorPath, RecordPath
from liteprobe.cores.reflect.host import PortHost
from liteprobe.cores.timebase.clock import TimebaseClock
from liteprobe.cores.timebase.pps_registers import Pps
from liteprobe.cores.timebase.seconds import SecondsClock
from liteprobe.cores.timebase.serial import SerialLine
from liteprobe.cores.timebase.status import ClockStatusBlock
from liteprobe.cores.transmit.due import DUE_TO_START, LEAD_TICKS
from liteprobe.cores.transmit.management import ManagementTransmit
from liteprobe.cores.transmit.pace import START_TO_SFD, StartGate
from liteprobe.cores.transmit.path import ForwardTransmit, TransmitPath
from liteprobe.cores.transmit.sources.replay import ReplayPort, ReplaySource
from liteprobe.cores.transmit.sources.sets import SdramTable, SetRegisters, SetsSource
from liteprobe.cores.transmit.stamp import STAMP_TICKS
from liteprobe.soc.boot import BootRegisters, Firmware, boot_program, processor_parameters
from liteprobe.soc.config import LONGEST
from liteprobe.soc.export import identity, soc_map
from liteprobe.soc.processor import CrossoverConsole, TickTimer

CSR_ORIGIN       = 0xf0000000 # The same with and without a CPU.
DATA_WIDTH       = 32         # Of the frame streams in sys.
BUS_TIMEOUT      = 1024 # Cycles. A wrong address answers soon, so that Etherbone's client needn't wait.

# Parts of the SoC ---------------------------------------------------------------------------------
#
# Functions beside the class, not methods: Migen names signals after the frames that make them, and routing follows the names.

# SDRAM --------------------------------------------------------------------------------------------

BANK_BYTES     = 4*ROWS*COLUMNS
FIRMWARE_BYTES = 1024*1024 # Of the SDRAM, where it is main RAM.
SDRAM_ORIGIN   = 0x48000000 # Of a SDRAM that isn't main RAM.

class SdramPlace(NamedTuple):
    """A part of the SDRAM, octets from its beginning."""
    origin: int
    size:   int

def sdram_places(config, board):
    """Return who has which part of the SDRAM: those that are wanted, ``capture`` the rest."""
    wanted = {"firmware": FIRMWARE_BYTES} if config.main_ram_kind(board) == "sdram" else {}
    if config.replays:
        wanted |= {"sets": 4*TABLE_ENTRIES} if config.makes_sets else {}
        wanted |= {f"replay{port}": 4*RING_WORDS for port in range(config.ports)}
    if config.stores_in_sdram:
        wanted |= {f"emulate{number}": 4*config.store_words for number in range(config.directions)}
        if config.spills: # Queues and lanes: ENTRY_WORDS for each ENTRY_SPACE words of the store.
            wanted |= {f"waiting{number}": 2*4*config.store_words//ENTRY_SPACE*ENTRY_WORDS for number in range(config.directions)}
        if config.trace_depth:
            wanted |= {f"trace{number}": 4*TRACE_ENTRY_WORDS*config.trace_depth for number in range(config.directions)}
    places, at = {}, 0
    for name, size in wanted.items():
        places[name] = SdramPlace(at, size)
        at += size
    places["capture"] = SdramPlace(at, BANK_BYTES*sdram_banks(config, board) - at)
    if places["capture"].size < 0:
        raise ValueError(f"the SDRAM of {board.name} is {-places['capture'].size} bytes too small: lower store_words")
    return places

def sdram_banks(config, board):
    """Return the banks of the SDRAM that are used: two, which all boards have; of an emulator, all."""
    return board.sdram_banks if config.stores_in_sdram else BANKS

def add_sdram(soc, name, origin):
    """Give ``soc`` the board's SDRAM as a region of the bus; return whether it is ready.

    A probe whose ports share it has it run in a clock of its own where the board has one.
    """
    config, board = soc.probe_config, soc.board
    has_clock = config.shares_sdram and board.memory_clk_freq is not None
    if config.has_eye:
        return add_eye_sdram(soc, name, origin)
    phy, clk_freq = board.sdram(has_clock)
    soc.sdram_phy = phy
    if interleaves(soc):
        sdram = InterleavedController(phy, clk_freq, sdram_banks(config, board))
    else:
        sdram = SdramController(phy, clk_freq,
            with_bursts      = config.monitors or config.shares_sdram,
            with_late_answer = board.with_late_sdram and not has_clock,
            banks            = sdram_banks(config, board),
            with_early_tick  = has_clock)
    soc.sdram = ClockDomainsRenamer("memory")(sdram) if has_clock else sdram
    memory    = sdram
    if interleaves(soc):
        soc.memory_crossing = memory = BusCrossing(sdram, sdram.started)
    elif has_clock:
        soc.memory_crossing = memory = MemoryCrossing(sdram)
    if config.shares_sdram and not interleaves(soc):
        soc.burst_ports = BurstPorts(memory.burst)
    return add_sdram_region(soc, name, origin, memory, sdram.banks)

def add_sdram_region(soc, name, origin, memory, banks):
    """Give ``soc`` a memory as a region of the bus; return whether it is ready."""
    soc.bus.add_slave(name, memory.bus, SoCRegion(origin=origin, size=BANK_BYTES*banks, mode="rwx"))
    soc.sdram_region = soc.bus.regions[name]
    soc.sdram_ready  = memory.ready
    return memory.ready

def add_eye_sdram(soc, name, origin):
    """Do as `add_sdram`, with a clock at which the eye of what is read is found at start: registers ``sdram_eye``."""
    board, clocks = soc.board, soc.crg
    soc.sdram_phy = phy = board.eye_sdram()
    fast, slow = board.eye_clk_freqs
    sdram = InterleavedController(phy, fast, sdram_banks(soc.probe_config, board), slow)
    eye   = ReadEye(sdram, round(1e12/fast/2/(STEP_TAPS*TAP_PS)), board.eye_clock_steps)
    soc.sdram     = ClockDomainsRenamer("memory")(sdram)
    soc.eye       = ClockDomainsRenamer("memory")(eye)
    soc.sdram_eye = EyeRegisters(eye, (fast, slow))
    soc.comb += [
        *board.join_eye(phy, eye),
        *copied(clocks, eye, "slow", "phase_step", "phase_advance"),
    ]
    # It keeps everybody away now and then, and is ready all the same.
    soc.memory_crossing = memory = BusCrossing(sdram, eye.state != EyeState.SEARCHING)
    return add_sdram_region(soc, name, origin, memory, sdram.banks)

def interleaves(soc):
    """Return whether each user of the SDRAM of ``soc`` has a port to it, in its clock: two full lines ask for that."""
    return soc.probe_config.stores_in_sdram and soc.board.memory_clk_freq is not None

def behind_start(soc, host):
    """Return the bus of a host, whose accesses wait there until the SDRAM of ``soc`` is started.

    The interconnect answers what takes longer than its time-out, a write as if it were done, and the start takes longer.
    """
    bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")
    soc.comb += [
        host.connect(bus, omit={"cyc"}),
        bus.cyc.eq(host.cyc & soc.sdram_ready),
    ]
    return bus

def burst_port(soc, writes=True, reads=True):
    """Return a burst port to the SDRAM of ``soc``, which gets the SDRAM with it unless that is main RAM.

    ``writes``, ``reads``: it is for that.
    """
    if not hasattr(soc, "sdram"):
        # BAR0 reaches main RAM, and what is in its place.
        origin = soc.mem_map["main_ram"] if soc.probe_config.link == "pcie" else SDRAM_ORIGIN
        add_sdram(soc, "sdram" if soc.probe_config.shares_sdram else "capture_ring", origin)
    if interleaves(soc):
        crossing = PortCrossing(soc.sdram.add_port(writes), writes, reads)
        soc.submodules += crossing
        return crossing.burst
    # Else there is one user, and the controller's own port is enough.
    return soc.burst_ports.add_port(writes) if soc.probe_config.shares_sdram else soc.sdram.burst

def add_place(soc, name, part):
    """Let the host find a part of the SDRAM as the memory ``name``, within the SDRAM's region; return its `SdramPlace`."""
    place = sdram_places(soc.probe_config, soc.board)[part]
    soc.bus.add_region(name,
        SoCRegion(origin=soc.sdram_region.origin + place.origin, size=place.size, mode="rw", linker=True))
    return place

def ring_address(soc, number=0):
    """Return where the ring of a port that replays begins in the SDRAM, words."""
    return sdram_places(soc.probe_config, soc.board)[f"replay{number}"].origin//4

# Main RAM -----------------------------------------------------------------------------------------

def add_main_ram(soc):
    """Give ``soc`` the main RAM that is asked for; return whether it is ready, a signal or 1.

    Main RAM of block RAM is LiteX's own (`processor_parameters`).
    """
    return add_sdram(soc, "main_ram", soc.mem_map["main_ram"]) if soc.probe_config.main_ram_kind(soc.board) == "sdram" else 1

def add_boot(soc):
    """Give ``soc`` the registers that start firmware; from flash too, where there is main RAM to copy it to."""
    ready = add_main_ram(soc)
    flash = None
    if soc.board.flash_offset is not None and "main_ram" in soc.bus.regions:
        soc.flash_pins = flash = soc.board.flash()
    soc.boot = BootRegisters(ready, flash)

def write_boot_program(soc, registers):
    """Write the program into the ROM of ``soc``, whose registers are where the map ``registers`` says."""
    def address(name):
        return registers[name]["addr"]
    firmware = None
    if "boot_flash" in registers:
        ram = soc.bus.regions["main_ram"]
        firmware = Firmware(soc.board.flash_offset, ram.origin, ram.size,
            map_hash  = address("probe_map_hash"),
            ram_ready = address("boot_ram"),
            flash     = address("boot_flash"),
        )
    soc.init_rom("rom", boot_program(address("boot_entry"), address("boot_state"), firmware), auto_size=False)

# Emulated network ---------------------------------------------------------------------------------

BUFFER_WORDS = 1024 # That are read ahead of a direction.
# Of a frame that are here before it is shown: block RAM is faster than the line, the SDRAM may have others to serve.
LEAVE_WORDS  = {False: 16, True: 384}
MOVE_TICKS   = 3 # At most, in which a word goes to the store: a cycle of the slowest ``sys``.
# From the start to tick 0, as the MAC has it: the start is seen a tick later.
ORIGIN_TICKS = 1 + LEAD_TICKS + DUE_TO_START + START_TO_SFD - STAMP_TICKS # The path has no stamp.

def add_leave(soc, number):
    """Send on a PHY what leaves the network, or what goes back where it has one direction: registers ``port<n>_tx``."""
    if number < 2 - soc.probe_config.directions:
        add_back(soc)
        return
    source = ForwardSource(BUFFER_WORDS, LEAVE_WORDS[soc.probe_config.stores_in_sdram], soc.probe_config.with_aqm)
    path   = ForwardTransmit(source, soc.carries_management(number), soc.phys[number].tx_ticks)
    path.add_csr()
    soc.join_transmit(number, path, soc.add_local_timebase(f"tx{number}"))

def add_back(soc):
    """Let the frames of port 1 leave by port 0 as they came."""
    limits = direction_limits(soc.probe_config)
    back   = ReverseBypass(limits.longest, staging_octets(limits), soc.carries_management(0))
    back.add_csr()
    names  = {"eth_rx": "eth_rx1", "timebase": soc.add_local_timebase("tx0")}
    soc.add_module(name="port0_tx", module=ClockDomainsRenamer(names)(back))
    soc.comb += [
        soc.phys[1].source.connect(back.sink),
        back.source.connect(soc.phys[0].sink),
        back.phy_link_up.eq(soc.phys[0].link_up),
    ]

def staging_octets(limits):
    """Return the size of a memory for frames as they come in."""
    return 1 << (2*limits.longest).bit_length()

def add_emulator(soc):
    """Give each direction its network: registers ``direction<n>``."""
    config = soc.probe_config
    soc.arrive_ports = [add_arrive(soc, number) for number in range(config.directions)]
    for number in range(config.directions):
        add_direction(soc, number)

def add_arrive(soc, number):
    """Take in the frames of a PHY: module ``port<n>_arrive``."""
    config = soc.probe_config
    phy    = soc.phys[number]
    limits = direction_limits(config)
    path   = ForwardPath(soc.timebase, limits.rules,
        config.mac_address if soc.carries_management(number) else None,
        longest        = limits.longest,
        staging_octets = staging_octets(limits),
        with_marks     = config.with_aqm,
        pad_ticks      = phy.rx_ticks)
    domain = soc.add_local_timebase(f"rx{number}")
    path   = ClockDomainsRenamer({"eth_rx": f"eth_rx{number}", "timebase": domain})(path)
    soc.add_module(name=f"port{number}_arrive", module=path)
    soc.comb += phy.source.connect(path.sink)
    return path

def direction_limits(config):
    """Return the sizes of each direction of a probe."""
    longest = config.longest
    return DirectionSizes(
        waiting       = config.most_waiting,
        entries       = config.most_entries,
        longest       = longest,
        rules         = config.rules,
        without       = () if config.with_aqm else ("aqm",),
        # The frame, as many octets as its parser and the rules take, and what is counted of it meanwhile.
        arrival_ticks = longest + 4 + 512,
        lead_ticks    = 4096 if config.stores_in_sdram else 512,
        engine_ticks  = 256,
        # The words of a frame of 1536 octets are moved in the ticks above.
        move_ticks    = MOVE_TICKS*(longest - LONGEST[0])//4,
    )

def add_direction(soc, number):
    """Emulate a network from port ``number`` to the other one."""
    config   = soc.probe_config
    out      = 1 - number
    transmit = getattr(soc, f"port{out}_tx")
    store    = frame_store(soc, number)
    trace    = add_trace(soc, number) if config.trace_depth else None
    memory   = None
    if config.spills:
        place  = sdram_places(config, soc.board)[f"waiting{number}"]
        memory = burst_port(soc), place.origin//4, config.store_words
    port     = EmulatedDirection(soc.arrive_ports[number], transmit, store, direction_limits(config), trace, memory)
    port.add_csr()
    soc.add_module(name=f"direction{number}", module=port)
    origin = Origin(ORIGIN_TICKS + soc.phys[out].tx_ticks)
    origin = ClockDomainsRenamer({"timebase": soc.add_local_timebase(f"origin{number}")})(origin)
    soc.add_module(name=f"direction{number}_origin", module=origin)
    soc.comb += [
        origin.ticks.eq(soc.timebase.ticks),
        origin.strobe.eq(soc.gate.strobe[out]),
        port.origin.eq(origin.origin),
    ]
    if config.directions == 1:
        soc.comb += soc.port0_tx.forwards_reserved.eq(port.forward_reserved)
    emulation = port.emulation
    soc.add_memory(f"direction{number}_settings", emulation.settings_bus, emulation.settings.words_count)
    soc.add_memory(f"direction{number}_counts", emulation.counts_bus, emulation.counts.words)
    rules = soc.arrive_ports[number].matcher.memory
    soc.add_memory(f"direction{number}_rules", rules.bus, rules.words)

def frame_store(soc, number):
    """Return where the octets of a direction wait."""
    config = soc.probe_config
    if not config.stores_in_sdram:
        return BlockStore(config.store_words, BUFFER_WORDS)
    place = sdram_places(config, soc.board)[f"emulate{number}"]
    return SdramStore(burst_port(soc, reads=False), burst_port(soc, writes=False), place.origin//4, place.size//4, BUFFER_WORDS)

def add_trace(soc, number):
    """Give a direction a bandwidth trace, memory ``direction<n>_trace``; return what reads it."""
    config, name = soc.probe_config, f"direction{number}_trace"
    if not config.stores_in_sdram:
        trace = BlockTrace(config.trace_depth)
        soc.add_memory(name, trace.bus, trace.words)
        return trace
    port  = burst_port(soc, writes=False)
    place = add_place(soc, name, f"trace{number}")
    return SdramTrace(port, place.origin//4, config.trace_depth)

# Replay -------------------------------------------------------------------------------------------

#: Words of a ring's counts that are registers of its port.
COUNT_REGISTERS = ("accepted", "datagrams", "repeated", "early", "full")
#: Words after the counts of two rings that are registers of its port, too.
SHOWN     = {
    "underruns": UNDERRUNS_WORD, "frames": FRAMES_WORD, "first_underrun": FIRST_UNDERRUN_WORD, "errors": ERRORS_WORD,
}
SHOWN_BASE = 2*COUNTS

def add_datagrams(soc, receive, transmit, has_space):
    """Take datagrams out of ``receive``, and answer on ``transmit`` before all others; return what the stack has in their place.

    Registers ``port<n>_replay_accepted``, ``_datagrams``, ``_repeated``, ``_early``, ``_full`` and ``_strange``, and of the
    replay ``_frames``, ``_underruns``, ``_first_underrun`` and ``_errors``.

    Parameters
    ----------
    soc : ProbeSoC
        With ``replay_ports``, a `RingReaderPort` of each test port.
    receive, transmit, has_space
        As of `ProbeSoC.add_management`.
    """
    config    = soc.probe_config
    datagrams = DatagramReceiver(config.ports, burst_port(soc), ring_address(soc), config.mac_address, config.ip_address,
        int(STATUS_PERIOD_S*soc.sys_clk_freq))
    soc.add_module(name="datagrams", module=datagrams)
    sink = datagrams.join_link(receive, transmit, has_space)
    datagrams.join_lease(soc.probe.lease)
    soc.add_memory("datagrams", datagrams.bus, SHOWN_BASE + SHOWN_WORDS*config.ports)
    soc.words_as_registers["datagrams"] = {}
    for number, port in enumerate(soc.replay_ports):
        datagrams.join_ring(number, port)
        shown = {f"port{number}_replay_{name}": SHOWN_BASE + SHOWN_WORDS*number + place for name, place in SHOWN.items()}
        soc.words_as_registers["datagrams"] |= count_registers(number, COUNTS*number) | shown
    return datagrams.source, sink, 1

def add_slots(soc):
    """Fill the ring of each port that replays from slots in the host's memory, by the DMA reader of its channel.

    Registers as of `add_datagrams`, and ``replay_dma_filled<n>``, ``replay_dma_taken<n>``.
    """
    from liteprobe.cores.receive.datagrams.slot_reader import SlotRegisters # LitePCIe is only needed here.
    dma = SlotRegisters()
    soc.add_module(name="replay_dma", module=dma)
    for number, port in enumerate(soc.replay_ports):
        reader   = soc.capture_dma.channels[number].reader
        receiver = SlotReceiver(number, burst_port(soc), ring_address(soc, number))
        soc.add_module(name=f"port{number}_slots", module=receiver)
        dma.add_csr(number, reader)
        port.add_counters()
        receiver.join_reader(reader)
        receiver.join_ring(0, port)
        receiver.join_lease(soc.probe.lease)
        soc.add_memory(f"port{number}_slots", receiver.bus, 2*COUNTS) # As large as its LUT RAM, or addresses would be others.
        soc.words_as_registers[f"port{number}_slots"] = count_registers(number)

def count_registers(number, first=0):
    """Return the registers that the counts of a port's ring are: where each is in its memory, from word ``first`` on."""
    found = {f"port{number}_replay_{name}": first + place for place, name in enumerate(COUNT_REGISTERS)}
    found[f"port{number}_replay_strange"] = STRANGE # One for all rings of the memory.
    return found

# Hosts --------------------------------------------------------------------------------------------

def add_hosts(soc):
    """Give test ports their hosts: registers ``port<n>_host``, memory ``port<n>_frames``."""
    seconds   = SecondsClock()
    soc.add_module(name="seconds", module=ClockDomainsRenamer({"timebase": soc.add_local_timebase("seconds")})(seconds))
    soc.comb += seconds.now.eq(soc.timebase.now)
    for number in soc.probe_config.hosts:
        add_host(soc, number)

def add_host(soc, number):
    """Let a host take in what a port receives, and answer by the queue of the port's management."""
    receive = getattr(soc, f"port{number}_monitor" if soc.probe_config.monitors else f"port{number}_rx")
    sink, has_spare, stamp = transmit_queue(soc, number)
    host = PortHost(soc.sys_clk_freq)
    host.add_csr()
    soc.add_module(name=f"port{number}_host", module=host)
    soc.add_memory(f"port{number}_frames", host.bus, FRAMES_WORDS)
    soc.words_as_registers[f"port{number}_frames"] = {f"port{number}_{count_register(one)}": COUNT_WORD + one for one in HostCount}
    if soc.carries_management(number):
        # The management stack goes first. It has space: the host leaves it some.
        soc.host_arbiter = arbiter = FrameArbiter()
        soc.comb += [
            arbiter.has_space.eq(1),
            arbiter.source.connect(sink),
        ]
        sink = arbiter.second
    soc.comb += [
        *host.join_port(receive.arrivals, soc.seconds),
        *host.join_line(sink, has_spare, stamp, soc.seconds),
    ]

def transmit_queue(soc, number):
    """Return sink, ``has_spare`` and `DepartureStamp` of the queue of a port's management."""
    if soc.probe_config.generates:
        path = getattr(soc, f"port{number}_tx")
        return path.management_sink, path.management_has_spare, path.management.stamp
    path = getattr(soc, f"port{number}_transmit")
    return path.sink, path.has_spare, path.queue.stamp

# PCIe ---------------------------------------------------------------------------------------------

def add_pcie(soc, phy, channels, readers=0):
    """Give ``soc`` the management link by PCIe, and ``soc.capture_dma``, which takes the blocks of the capture.

    Names of modules and constants are those that LitePCIe's driver knows.

    Parameters
    ----------
    phy : PHY of LitePCIe, 64 bits wide, with a BAR0 of BAR0_BYTES.
    channels : int, from 1 to 8
    readers : int
        How many of them, from the first one on, read slots from the host's memory, too: ``reader``, a `SlotReader`.
    """
    # LitePCIe is only needed here.
    from litepcie.core import LitePCIeEndpoint, LitePCIeMSI
    from liteprobe.cores.capture.dma import CaptureDma
    from liteprobe.cores.receive.datagrams.slot_reader import SlotReader
    from liteprobe.soc.pcie import ADDRESS_WIDTH, MSI_BLOCKS, BarWindow, ends_failed_reads
    soc.pcie_phy      = phy
    soc.pcie_endpoint = LitePCIeEndpoint(phy, endianness=phy.endianness, address_width=ADDRESS_WIDTH)
    soc.pcie_endpoint.comb += ends_failed_reads(soc.pcie_endpoint)
    soc.pcie_window   = BarWindow(soc.pcie_endpoint)
    soc.pcie_msi      = LitePCIeMSI()
    soc.bus.add_master("pcie", soc.pcie_window.bus)
    soc.comb += soc.pcie_msi.source.connect(phy.msi)

    soc.capture_dma = CaptureDma(soc.pcie_endpoint, channels, ADDRESS_WIDTH)
    soc.add_constant("DMA_CHANNELS",   channels)
    soc.add_constant("DMA_ADDR_WIDTH", ADDRESS_WIDTH)
    irqs = Signal(channels)
    for number, channel in enumerate(soc.capture_dma.channels):
        if number < readers:
            channel.reader = SlotReader(soc.pcie_endpoint, ADDRESS_WIDTH)
        soc.add_module(name=f"pcie_dma{number}", module=channel)
        soc.add_constant(f"PCIE_DMA{number}_WRITER_INTERRUPT", number)
        # The driver reads this one of every channel, and nothing ever raises it.
        soc.add_constant(f"PCIE_DMA{number}_READER_INTERRUPT", channels + number)
        soc.sync += irqs[number].eq(channel.done & (channel.written[:log2_int(MSI_BLOCKS)] == MSI_BLOCKS - 1))
    soc.comb += soc.pcie_msi.irqs.eq(irqs)

def connect_ring(soc, capture):
    """Let the blocks of a capture leave by ``soc.capture_dma``, and be freed once they are in the host's memory.

    Parameters
    ----------
    capture : Capture
        Its ``bus`` is taken here. Of what a trigger has freed nothing is known here: a host looks for its trigger by itself.

    Returns the bus that takes its place, a slave: the table for the host.
    """
    from liteprobe.cores.capture.dma import RingPointers
    dma = soc.capture_dma
    soc.ring_pointers = pointers = RingPointers(len(dma.channels))
    soc.comb += [
        *copied(dma.sink, capture.block, "valid", "last", "data", "channel"),
        capture.block.ready.eq(dma.sink.ready),
        capture.send.eq(dma.is_open),
        *copied(pointers, dma, "done", "rewind"),
        pointers.clear.eq(capture.channels.clear),
        *[mine.eq(theirs) for mine, theirs in zip(pointers.in_flight, dma.in_flight)],
    ]
    bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")
    soc.ring_table = wishbone.Arbiter([pointers.bus, bus], capture.bus)
    return bus

# Identity -----------------------------------------------------------------------------------------

class ProbeIdentity(LiteXModule):
    """Says what is built in, and starts programs on several ports in one tick.

    Attributes
    ----------
    map_hash : CSRStatus(32), set when the SoC is finalized
    parts : CSRStatus(16), ``formats.Part``
    ports, record_depth, data_width, ticks_per_second : CSRStatus, constants of the build
    start : CSR(ports), write only; ports to start, bit n is port n
    lease : WriteLease
    writes_skipped : CSRStatus(16), requests whose writes were left out (`ManagementStack`)
    """
    def __init__(self, config, sys_clk_freq):
        self.map_hash         = CSRStatus(32)
        self.parts            = CSRStatus(16, reset=int(config.parts),
            description="1 generate, 2 record, 4 monitor, 8 streams, 16 measure, 32 replay, 64 sets, 128 emulate, 256 hosts.")
        self.ports            = CSRStatus(8,  reset=config.ports)
        self.record_depth     = CSRStatus(32, reset=config.record_depth if Part.RECORD in config.parts else 0)
        if config.generates:
            self.start        = CSR(config.ports)
        self.ticks_per_second = CSRStatus(32, reset=TICKS_PER_SECOND)
        self.data_width       = CSRStatus(8,  reset=DATA_WIDTH)
        self.writes_skipped   = CSRStatus(16, description="Requests whose writes came twice, late, or without the lease. Wraps.")
        self.lease            = WriteLease(sys_clk_freq)

# Probe --------------------------------------------------------------------------------------------

class ProbeSoC(SoCCore):
    """Builds a probe for a board.

    Parameters
    ----------
    board : Board
        Gives ``name``, ``platform``, ``ports``, ``sys_clk_freq``, ``block_rams``, ``with_serial``, ``crg()`` (a
        module with the domains ``sys`` and ``timebase``), ``phy(number)`` (``sink`` in ``timebase``,
        ``source`` in ``eth_rx<number>``, ``link_up``), ``pps_samples()`` (a module with ``samples`` of the PPS
        input, 1, 2 or 4 bits as `PulseDetector` takes them), the pads ``pps_out()`` and ``gnss()`` (``tx``, ``rx``),
        ``pps_is_serial_rx``, ``sdram_bytes`` and ``spare_bytes`` (0: none), ``spare_records``, ``memory_clk_freq`` (of the
        SDRAM of a probe that replays; None: ``sys``), ``sdram(has_clock)`` (LiteDRAM's PHY, in ``memory`` where ``has_clock``, and
        the frequency that the chip's times are kept at), ``flash_offset`` (of firmware; None: no flash) and the pads ``flash()``.
    config : ProbeConfig

    Raises ValueError, before anything is built, when the board cannot hold the configuration.
    """
    def __init__(self, board, config):
        config = config.on(board)
        self.board        = board
        self.probe_config = config
        self.banks        = [] # Of registers; LiteX makes them when the SoC is finalized.

        # SoCCore ----------------------------------------------------------------------------------
        self.mem_map = {**SoCCore.mem_map, "csr": CSR_ORIGIN}
        SoCCore.__init__(self, board.platform, int(board.sys_clk_freq),
            ident       = f"liteprobe on {board.name}",
            bus_timeout = BUS_TIMEOUT,
            **processor_parameters(config, board),
        )
        self.crg = board.crg()
        self.add_bus_registers()

        # Identity and time ------------------------------------------------------------------------
        self.probe = ProbeIdentity(config, self.sys_clk_freq)
        self.add_timebase()
        if config.with_discipline:
            self.add_discipline()

        # Ports ------------------------------------------------------------------------------------
        self.snapshots = {} # Of each port: where its memory has each accumulator (`Tally.layout`).
        self.words_as_registers = {} # Of each other memory whose words are registers: their names, and which word each is.
        self.phys      = [self.add_phy(number) for number in range(config.ports)]
        if hasattr(board, "mdio"):
            self.add_mdio()
        if config.generates:
            self.add_start()
            for number, phy in enumerate(self.phys):
                self.add_transmit(number, phy)
        if config.emulates:
            add_emulator(self)
        elif config.monitors:
            self.add_monitor()
        else:
            add_port = self.add_measure_port if config.measures else self.add_receive
            for number, phy in enumerate(self.phys):
                add_port(number, phy)
        if config.replays:
            self.add_replays()
        if config.with_hosts:
            add_hosts(self)

        # Management link --------------------------------------------------------------------------
        {
            "own":    self.add_link_own,
            "shared": self.add_link_shared,
            "uart":   self.add_link_uart,
            "pcie":   self.add_link_pcie,
        }[config.link]()

    # Bus ------------------------------------------------------------------------------------------

    def add_bus_registers(self):
        """Hold what the bus answers to the processor in registers."""
        for name, master in list(self.bus.masters.items()):
            register = BusRegister(master)
            self.add_module(name=f"{name}_register", module=register)
            self.comb += master.connect(register.sink)
            self.bus.masters[name] = register.source

    def add_uart(self, name="uart", **kwargs):
        """Give the processor a console that the host reads and writes."""
        self.add_module(name=name, module=CrossoverConsole())

    def add_timer(self, name="timer0"):
        """Interrupt the processor for each tick of its kernel."""
        self.add_module(name=name, module=TickTimer())
        self.irq.add(name, use_loc_if_exists=True)

    def add_controller(self, name="ctrl", **kwargs):
        """Leave the scratch register out, which nobody reads but LitePCIe's own test of its driver."""
        SoCCore.add_controller(self, name, with_scratch=self.probe_config.link == "pcie", **kwargs)

    def add_csr_bridge(self, name="csr", origin=None, **kwargs):
        """Put a register between the bus and the registers (LiteX does so only beside a SDRAM), and a memory of the settings."""
        # It is given by place: LiteX 2024.12 calls it ``register``, later ones ``with_register``.
        SoCCore.add_csr_bridge(self, name, origin, True)
        # With more modules than 16: meters with a processor or with senders, or a bank for each DMA.
        config    = self.probe_config
        has_more  = config.with_hosts or ((config.monitors or config.measures) and (config.with_cpu or config.generates))
        bank_bits = BANK_BITS + (config.link == "pcie" or has_more)
        asking = getattr(self, f"{name}_bridge").wishbone # It takes the address a cycle before it gives it to the registers.
        assert asking.addressing == "word"
        self.read_back = ReadBack(self.csr.masters[name], self.csr.paging, bank_bits, self.banks, ahead=asking.adr)
        self.csr.masters[name] = self.read_back.bus

    # Time -----------------------------------------------------------------------------------------

    def add_timebase(self):
        """Keep the one time of all ports."""
        self.last_timebase = "timebase" # Of the parts that have a reset of their own.
        clock = TimebaseClock()
        clock.add_csr()
        self.timebase = ClockDomainsRenamer({"timebase": self.add_local_timebase("clock")})(clock)

    def add_discipline(self):
        """Let firmware, or a host, keep the time on a reference: PPS, receiver, status, and the start of firmware."""
        self.add_pps()
        self.add_gnss()
        self.clock = ClockStatusBlock(self.board.sys_clk_freq)
        if self.probe_config.with_cpu:
            add_boot(self)

    def add_pps(self):
        """Take a PPS and give one; a serial link on the same pin goes first, and the input then stays silent."""
        board   = self.board
        samples = Signal()
        if not (board.pps_is_serial_rx and self.probe_config.link == "uart"):
            self.pps_pin = board.pps_samples()
            samples      = self.pps_pin.samples
        pps      = Pps(self.timebase, len(samples))
        self.pps = ClockDomainsRenamer({"timebase": self.add_local_timebase("pps")})(pps)
        self.comb += pps.samples.eq(samples)
        self.comb += board.pps_out().eq(pps.pin_out)
        self.add_interrupt("pps")

    def add_gnss(self):
        """Talk to the GNSS receiver: LiteX's UART, but for what is on its line."""
        baud = self.probe_config.gnss_baud
        self.gnss_phy = SerialLine(self.board.gnss(), self.sys_clk_freq, baud)
        self.gnss     = UART(self.gnss_phy, tx_fifo_depth=16, rx_fifo_depth=64)
        self.add_constant("GNSS_BAUD", baud)
        self.add_interrupt("gnss")

    def add_interrupt(self, name):
        """Give the processor, where there is one, the interrupt of a module."""
        if self.probe_config.with_cpu:
            self.irq.add(name)

    def add_start(self):
        """Start the ports of a mask in one tick, by a write to ``probe_start``."""
        self.gate = gate = StartGate(self.probe_config.ports)
        self.comb += [
            gate.mask.eq(self.probe.start.r),
            gate.request.eq(self.probe.start.re),
        ]

    # Ports ----------------------------------------------------------------------------------------

    def add_phy(self, number):
        """Add the PHY of a test port, and return it."""
        phy = self.board.phy(number)
        self.add_module(name=f"port{number}_phy", module=phy)
        return phy

    def add_mdio(self):
        """Set up the PHYs at the start, and let the host talk to them: registers ``phy``."""
        board = self.board
        self.phy = phy = Mdio(board.mdio(), self.sys_clk_freq, board.phy_kind.start, len(self.phys), **board.phy_times)
        self.comb += [one.reset.eq(phy.phy_reset) for one in self.phys]
        self.comb += [status.eq(one.status) for status, one in zip(phy.status, self.phys)]
        self.comb += [one.delay.eq(phy.delay[3*port:3*port + 3]) for port, one in enumerate(self.phys)]

    def carries_management(self, number):
        """Return whether management is in band on a test port: on port 0 alone."""
        return self.probe_config.link == "shared" and number == 0

    def add_local_timebase(self, part):
        """Give a part of the probe the clock ``timebase`` with a reset of its own; return the domain's name.

        One reset for all would cross the whole chip within a tick, which is the longest path of the timebase. The resets
        follow each other by a tick, because Yosys makes one register of two that are alike.
        """
        name   = f"timebase_{part}"
        domain = ClockDomain(name)
        setattr(self, f"cd_{name}", domain)
        domain.rst.reset_less = True
        self.comb          += domain.clk.eq(ClockSignal("timebase"))
        self.sync.timebase += domain.rst.eq(ResetSignal(self.last_timebase))
        self.last_timebase = name
        return name

    def add_transmit(self, number, phy):
        """Send programs on a PHY: registers ``port<n>_tx``, memory ``port<n>_header``, and those of streams."""
        config  = self.probe_config
        if config.emulates:
            return add_leave(self, number)
        sources = []
        if config.replays:
            sources = [ReplaySource()]
        if config.makes_sets:
            table   = SdramTable(burst_port(self, writes=False), sdram_places(config, self.board)["sets"].origin//4)
            sources = [*sources, SetsSource(table, with_templates=not config.sends_streams)]
        if config.sends_streams:
            from liteprobe.cores.transmit.sources.streams.streams import StreamSource
            sources = [StreamSource([source.user for source in sources if source.name == "sets"]), *sources]
        has_host  = number in config.hosts
        has_queue = self.carries_management(number) or has_host
        path = TransmitPath(self.timebase, DATA_WIDTH, has_queue, phy.tx_ticks, sources, has_host)
        path.add_csr()
        self.join_transmit(number, path, self.add_local_timebase(f"tx{number}"))
        if config.sends_streams:
            bus = path.streams.headers_bus
            self.add_memory(f"port{number}_header", bus, STREAMS*HEADER_WORDS_OF_STREAM)
            self.add_memory(f"port{number}_schedule", path.streams.streams_bus, STREAMS*STREAM_WORDS)
            self.add_memory(f"port{number}_modifiers", path.streams.modifiers_bus, STREAMS*MODIFIERS*MODIFIER_WORDS)
            self.add_memory(f"port{number}_lists", path.streams.lists_bus, LIST_WORDS)
            self.add_memory(f"port{number}_sent", path.streams.sent_counters.bus, STREAMS*SENT_WORDS)
        elif config.makes_sets:
            bus = path.sets.headers_bus
            self.add_memory(f"port{number}_header", bus, STREAMS*HEADER_WORDS_OF_STREAM)
        else:
            header = wishbone.SRAM(path.header)
            self.add_module(name=f"port{number}_header", module=header)
            self.add_memory(f"port{number}_header", header.bus, path.header.depth)
            bus = header.bus
        self.comb += path.header_write.eq(bus.cyc & bus.stb & bus.we & bus.ack)

    def join_transmit(self, number, path, domain):
        """Join a transmit path to its PHY and to what starts programs: module ``port<n>_tx``."""
        phy = self.phys[number]
        self.add_module(name=f"port{number}_tx", module=ClockDomainsRenamer({"timebase": domain})(path))
        self.comb += [
            path.source.connect(phy.sink), path.phy_link_up.eq(phy.link_up),
            path.start_strobe.eq(self.gate.strobe[number]),
            path.lease_ended.eq(self.probe.lease.ended),
            self.gate.ready[number].eq(path.ready),
        ]

    def add_receive(self, number, phy):
        """Measure what a PHY receives, and record its probe frames.

        Registers ``port<n>_rx``; memories ``port<n>_records``, ``port<n>_streams``, ``port<n>_snapshot``.
        """
        config = self.probe_config
        path   = RecordPath(self.timebase, self.carries_management(number), config.record_depth, phy.rx_ticks)
        path   = self.join_receive(f"port{number}_rx", number, path, config.with_discipline)
        self.add_memory(f"port{number}_records", path.records.bus, path.records.words)
        self.add_memory(f"port{number}_streams", path.streams.bus, path.streams.bus_words)
        self.add_snapshot(number, path)

    def add_measure_port(self, number, phy):
        """Measure what a PHY receives, and keep nothing: registers ``port<n>_rx``, and those of the meter."""
        path = MeasurePath(self.timebase, self.carries_management(number), phy.rx_ticks)
        path = self.join_receive(f"port{number}_rx", number, path, self.probe_config.with_discipline)
        self.add_meter(number, path)

    def add_monitor_port(self, number, phy):
        """Filter, measure and capture what a PHY receives: registers ``port<n>_monitor``, and those of the meter.

        A port that sends nothing else sends management by itself.
        """
        config    = self.probe_config
        is_shared = self.carries_management(number)
        path = MonitorPath(self.timebase, self.filter.matchers[number], number, config.mac_address if is_shared else None,
            pad_ticks   = phy.rx_ticks,
            with_fields = config.sends_streams,
            with_hash   = config.with_hash)
        path = self.join_receive(f"port{number}_monitor", number, path, config.with_discipline and config.generates)
        if config.counts_rates:
            parser, ended = path.parser, self.rates.ended[number]
            self.comb += [
                ended.valid.eq(parser.seen),
                ended.length.eq(parser.frame.length),
            ]
        self.add_meter(number, path)
        has_host = number in config.hosts
        if (is_shared or has_host) and not config.generates:
            transmit = ManagementTransmit(self.timebase if has_host else None, phy.tx_ticks)
            transmit = ClockDomainsRenamer({"timebase": self.add_local_timebase(f"tx{number}")})(transmit)
            self.add_module(name=f"port{number}_transmit", module=transmit)
            self.comb += transmit.source.connect(phy.sink)
        return path

    def add_meter(self, number, path):
        """Measure the frames of a port's ``path``, and the streams of them.

        Registers ``port<n>_measure``; memories ``port<n>_snapshot``, ``port<n>_streams``, ``port<n>_bins``, and
        ``port<n>_places`` where ports send streams.
        """
        config = self.probe_config
        meter  = PortMeter(slots=config.slots(self.board), with_fields=config.sends_streams)
        self.add_module(name=f"port{number}_measure", module=meter)
        self.comb += path.measured.connect(meter.measured)
        self.add_snapshot(number, path)
        self.add_memory(f"port{number}_streams", meter.streams.bus, meter.streams.bus_words)
        self.add_memory(f"port{number}_bins", meter.histograms.bus, meter.histograms.bus_words)
        if config.sends_streams:
            self.comb += meter.fields.passing.eq(path.arrivals.passing)
            self.add_memory(f"port{number}_places", meter.fields.bus, meter.fields.bus_words)

    def add_snapshot(self, number, path):
        """Let the host read what a receive path counts: memory ``port<n>_snapshot``, whose words are registers."""
        self.add_memory(f"port{number}_snapshot", path.tally.bus, path.tally.words)
        self.snapshots[f"port{number}"] = path.tally.layout

    def join_receive(self, name, number, path, with_line_clock):
        """Join a receive path to its PHY: a module with its registers. Returns it, in the clocks of the port."""
        phy = self.phys[number]
        path.add_csr()
        if with_line_clock:
            path.add_line_clock()
        path = ClockDomainsRenamer({"eth_rx": f"eth_rx{number}", "timebase": self.add_local_timebase(f"rx{number}")})(path)
        self.add_module(name=name, module=path)
        self.comb += [
            phy.source.connect(path.sink),
            path.link_up.eq(phy.link_up),
        ]
        return path

    def add_replays(self):
        """Give each port a ring for what the host streams: registers ``port<n>_replay`` and ``port<n>_sets``.

        The link adds what fills the rings (`add_datagrams`, `add_slots`). The table of sets is a part of the SDRAM's region.
        """
        self.replay_ports = []
        for number in range(self.probe_config.ports):
            path = getattr(self, f"port{number}_tx")
            port = ReplayPort(path, burst_port(self, writes=False), ring_address(self, number))
            port.add_csr()
            self.add_module(name=f"port{number}_replay", module=port)
            self.replay_ports.append(port)
            if self.probe_config.makes_sets:
                self.add_module(name=f"port{number}_sets", module=SetRegisters(path.sets))
        if self.probe_config.makes_sets:
            add_place(self, "sets_table", "sets")

    def add_memory(self, name, bus, words):
        """Give a memory a place on the bus, which nobody caches."""
        self.bus.add_slave(name=name, slave=bus, region=SoCRegion(size=4*words, cached=False))

    # Monitor --------------------------------------------------------------------------------------

    def add_monitor(self):
        """Filter the frames of all ports, measure them, and capture those that pass: registers ``filter``, ``capture``."""
        config      = self.probe_config
        self.filter = FilterTables(config.ports)
        self.filter.add_csr()
        self.add_memory("filter", self.filter.bus, self.filter.words)
        if config.counts_rates:
            self.rates = RateMeter(self.timebase, config.ports)
        paths = [self.add_monitor_port(number, phy) for number, phy in enumerate(self.phys)]
        memory, address = self.ring_memory()
        self.capture = capture = BlockCapture(config.ports, memory, self.sys_clk_freq)
        capture.add_csr(address)
        for path, to in zip(paths, capture.ports):
            self.comb += [
                path.descriptor.connect(to.descriptor),
                path.header.connect(to.header),
                path.data.connect(to.data),
                path.skip.eq(to.skip),
            ]

    def ring_memory(self):
        """Return where a capture waits for the host, and its address on the bus."""
        config = self.probe_config
        if config.ring_kind(self.board) == "sdram":
            place = sdram_places(config, self.board)["capture"]
            port  = burst_port(self)
            return BurstRing(port, place.size//(4*BLOCK_WORDS), place.origin//4), self.sdram_region.origin + place.origin
        memory = BlockRamRing(config.capture_blocks)
        self.add_memory("capture_ring", memory.bus, memory.words)
        return memory, self.bus.regions["capture_ring"].origin

    def add_export(self, transmit, has_space):
        """Send blocks beside the answers of the management stack on ``transmit``, to whoever asked for them."""
        config, request = self.probe_config, self.management.request
        self.export = export = BlockExport(config.mac_address, config.ip_address)
        export.add_csr()
        self.export_arbiter = arbiter = FrameArbiter(is_quiet=not config.replays)
        self.comb += [
            self.capture.block.connect(export.sink),
            self.capture.send.eq(export.send),
            *copied(export, request, "peer_mac", "peer_ip"),
            self.management.source.connect(arbiter.first),
            export.source.connect(arbiter.second),
            arbiter.source.connect(transmit),
            arbiter.has_space.eq(has_space),
        ]

    def add_channel_table(self, bus):
        """Let the host see the channels of the capture."""
        self.add_memory("capture_channels", bus, self.capture.channels.words)

    # Management link ------------------------------------------------------------------------------

    def add_management(self, receive, transmit, has_space=1):
        """Answer frames of ``receive`` on ``transmit``, where ``has_space`` says whether one fits; give Etherbone the bus."""
        config = self.probe_config
        if config.replays:
            receive, transmit, has_space = add_datagrams(self, receive, transmit, has_space)
        self.management = stack = ManagementStack(config.mac_address, config.ip_address)
        lease, skipped  = self.probe.lease, self.probe.writes_skipped.status
        self.comb += [
            receive.connect(stack.sink),
            stack.lease.eq(lease.number),
            *copied(stack, lease, "is_held", "granted"),
            lease.heard.eq(stack.heard),
        ]
        self.sync += skipped.eq(skipped + stack.skipped)
        if config.monitors:
            self.add_export(transmit, has_space)
            self.add_channel_table(self.capture.bus)
        else:
            self.comb += self.management.source.connect(transmit)
        bus = behind_start(self, stack.bus) if config.replays else stack.bus
        self.bus.add_master("etherbone", bus)

    def add_link_uart(self):
        """Reach the bus through the serial port."""
        self.add_uartbone(baudrate=self.probe_config.uart_baud)
        if self.probe_config.monitors:
            self.add_channel_table(self.capture.bus)

    def add_link_pcie(self):
        """Reach the bus through BAR0; ``capture_dma`` takes what the capture keeps, and brings what is replayed."""
        from liteprobe.soc.pcie import BAR0_BYTES # LitePCIe is only needed here.
        config = self.probe_config
        add_pcie(self, self.board.pcie_phy(BAR0_BYTES), config.dma_channels, readers=config.ports if config.replays else 0)
        if config.replays:
            add_slots(self)
        if config.monitors:
            self.add_channel_table(connect_ring(self, self.capture))

    def add_link_own(self):
        """Reach the bus by Etherbone on the port after the test ports."""
        number = self.probe_config.ports
        phy    = self.board.phy(number)
        self.add_module(name="management_phy", module=phy)
        # Where sites are scarce the counters are short: they wrap sooner.
        count_bits = 16 if self.probe_config.replays else 32
        port = ManagementPort(phy, number, count_bits)
        self.management_port = port = ClockDomainsRenamer({"timebase": self.add_local_timebase("management")})(port)
        self.add_management(port.source, port.sink, port.transmit.has_space)

    def add_link_shared(self):
        """Reach the bus by Etherbone in band, on test port 0."""
        config  = self.probe_config
        receive = self.port0_arrive if config.emulates else self.port0_monitor if config.monitors else self.port0_rx
        if self.probe_config.generates:
            sink, has_space = self.port0_tx.management_sink, self.port0_tx.management_has_space
        else:
            sink, has_space = self.port0_transmit.sink, self.port0_transmit.has_space
        if 0 in config.hosts:
            sink = self.host_arbiter.first
        self.add_management(receive.management_source, sink, has_space)

    # Identity -------------------------------------------------------------------------------------

    def finalize(self):
        if self.finalized:
            return
        with joins_banks(self.banks):
            SoCCore.finalize(self)
        if self.probe_config.link == "pcie":
            from liteprobe.soc.pcie import check_reach
            check_reach(self.bus.regions)
        # Known only now that every register has its address; the Verilog is written later.
        self.read_back.learn(self.csr_bankarray.banks)
        if self.probe_config.with_cpu and self.probe_config.with_discipline:
            write_boot_program(self, soc_map(self)["csr_registers"])
        self.probe.map_hash.status.reset = Constant(identity(self), 32)
