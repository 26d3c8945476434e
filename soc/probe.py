# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Builds the probe: test ports, timebase, management link and processor on one bus."""

from migen import *

from litex.gen import *

from litex.soc.cores.uart import RS232PHY, UART
from litex.soc.integration.soc import SoCRegion
from litex.soc.integration.soc_core import SoCCore
from litex.soc.interconnect import wishbone
from litex.soc.interconnect.csr import *

from liteprobe.cores.bus import BANK_BITS, BusRegister, ReadBack
from liteprobe.cores.capture.capture import BlockCapture
from liteprobe.cores.capture.export import BlockExport, FrameArbiter
from liteprobe.cores.capture.ring_memory import BlockRamRing, BurstRing
from liteprobe.cores.formats import (
    BLOCK_WORDS, HEADER_WORDS_OF_STREAM, LIST_WORDS, MODIFIER_WORDS, MODIFIERS, SENT_WORDS, STREAM_WORDS, STREAMS,
    TICKS_PER_SECOND, Part,
)
from liteprobe.cores.management.lease import WriteLease
from liteprobe.cores.management.mdio import Mdio
from liteprobe.cores.management.stack import ManagementPort, ManagementStack
from liteprobe.cores.measure.port import PortMeter
from liteprobe.cores.measure.rate import RateMeter
from liteprobe.cores.receive.filter.tables import FilterTables
from liteprobe.cores.receive.path import MeasurePath, MonitorPath, RecordPath
from liteprobe.cores.timebase.clock import TimebaseClock
from liteprobe.cores.timebase.pps_registers import Pps
from liteprobe.cores.timebase.status import ClockStatusBlock
from liteprobe.cores.transmit.management import ManagementTransmit
from liteprobe.cores.transmit.pace import StartGate
from liteprobe.cores.transmit.path import TransmitPath
from liteprobe.cores.transmit.sources.replay import ReplayPort, ReplaySource
from liteprobe.cores.transmit.sources.sets import SdramTable, SetRegisters, SetsSource
from liteprobe.soc.boot import processor_parameters
from liteprobe.soc.datagrams import add_datagrams, add_slots
from liteprobe.soc.emulate import add_emulator, add_leave
from liteprobe.soc.export import identity, soc_map
from liteprobe.soc.main_ram import (
    add_boot, add_place, behind_start, burst_port, ring_address, sdram_places, write_boot_program,
)

CSR_ORIGIN       = 0xf0000000 # The same with and without a CPU.
DATA_WIDTH       = 32         # Of the frame streams in sys.
BUS_TIMEOUT      = 1024 # Cycles. A wrong address answers soon, so that Etherbone's client needn't wait.

# Identity -----------------------------------------------------------------------------------------

class ProbeIdentity(LiteXModule):
    """Says what is built in, and starts programs on several ports in one tick.

    Attributes
    ----------
    map_hash : CSRStatus(32), set when the SoC is finalized
    parts : CSRStatus(8), ``formats.Part``
    ports, record_depth, data_width, ticks_per_second : CSRStatus, constants of the build
    start : CSR(ports), write only; ports to start, bit n is port n
    lease : WriteLease
    writes_skipped : CSRStatus(16), requests whose writes were left out (`ManagementStack`)
    """
    def __init__(self, config, sys_clk_freq):
        self.map_hash         = CSRStatus(32)
        self.parts            = CSRStatus(8,  reset=int(config.parts),
            description="Parts: 1 generate, 2 record, 4 monitor, 8 streams, 16 measure, 32 replay, 64 sets, 128 emulate.")
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

        # Management link --------------------------------------------------------------------------
        {
            "own":    self.add_link_own,
            "shared": self.add_link_shared,
            "uart":   self.add_link_uart,
            "pcie":   self.add_link_pcie,
        }[config.link]()

    # Bus ------------------------------------------------------------------------------------------

    def add_bus_registers(self):
        """Put a register between the processor and the bus."""
        for name, master in list(self.bus.masters.items()):
            register = BusRegister(master)
            self.add_module(name=f"{name}_register", module=register)
            self.comb += master.connect(register.sink)
            self.bus.masters[name] = register.source

    def add_controller(self, name="ctrl", **kwargs):
        """Leave the scratch register out, which nobody reads but LitePCIe's own test of its driver."""
        SoCCore.add_controller(self, name, with_scratch=self.probe_config.link == "pcie", **kwargs)

    def add_csr_bridge(self, name="csr", origin=None, register=True):
        """Put a register between the bus and the registers (LiteX does so only beside a SDRAM), and a memory of the settings."""
        SoCCore.add_csr_bridge(self, name, origin, register=True)
        # With more modules than 16: meters with a processor or with senders, or a bank for each DMA.
        config    = self.probe_config
        has_more  = (config.monitors or config.measures) and (config.with_cpu or config.generates)
        bank_bits = BANK_BITS + (config.link == "pcie" or has_more)
        self.read_back = ReadBack(self.csr.masters[name], self.csr.paging, bank_bits)
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
        """Talk to the GNSS receiver: LiteX's UART."""
        baud = self.probe_config.gnss_baud
        self.gnss_phy = RS232PHY(self.board.gnss(), self.sys_clk_freq, baud)
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
        path = TransmitPath(self.timebase, DATA_WIDTH, self.carries_management(number), phy.tx_ticks, sources)
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
        if is_shared and not config.generates:
            self.port0_transmit = transmit = ManagementTransmit()
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
            export.peer_mac.eq(request.peer_mac),
            export.peer_ip.eq(request.peer_ip),
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
            stack.is_held.eq(lease.is_held),
            stack.granted.eq(lease.granted),
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
        # LitePCIe is only needed here.
        from liteprobe.soc.pcie import BAR0_BYTES, add_pcie, connect_ring
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
        self.management_port = port = ManagementPort(phy, number, count_bits)
        self.add_management(port.source, port.sink, port.transmit.has_space)

    def add_link_shared(self):
        """Reach the bus by Etherbone in band, on test port 0."""
        config  = self.probe_config
        receive = self.port0_arrive if config.emulates else self.port0_monitor if config.monitors else self.port0_rx
        if self.probe_config.generates:
            sink, has_space = self.port0_tx.management_sink, self.port0_tx.management_has_space
        else:
            sink, has_space = self.port0_transmit.sink, self.port0_transmit.has_space
        self.add_management(receive.management_source, sink, has_space)

    # Identity -------------------------------------------------------------------------------------

    def finalize(self):
        if self.finalized:
            return
        SoCCore.finalize(self)
        if self.probe_config.link == "pcie":
            from liteprobe.soc.pcie import check_reach
            check_reach(self.bus.regions)
        # Known only now that every register has its address; the Verilog is written later.
        self.read_back.learn(self.csr_bankarray.banks)
        if self.probe_config.with_cpu and self.probe_config.with_discipline:
            write_boot_program(self, soc_map(self)["csr_registers"])
        self.probe.map_hash.status.reset = Constant(identity(self), 32)
