# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Two ports that monitor, or one beside a port that measures streams, as a Verilog module with plain pins, for a compiled bench."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.capture.descriptors import descriptor_layout
from liteprobe.cores.formats import STREAM_SLOTS_MAX
from liteprobe.cores.measure.field_delay import FieldDelay
from liteprobe.cores.receive.path import MeasurePath, MonitorPath
from liteprobe.cores.receive.unified.key import key_layout
from liteprobe.sim.bench.tools.module import write_module

# Numbers ------------------------------------------------------------------------------------------

PORTS   = 2
MAC     = 0x024c500000aa # Of the probe; management is on port 0.
LATENCY = 54             # Of a filter.

# Parity Matcher -----------------------------------------------------------------------------------

class ParityMatcher(LiteXModule):
    """In the place of a filter: matches frames by the parity of all fields that they have.

    Attributes
    ----------
    key, start, done, matched, passed, rule, names_channel, channel
        As of `FilterMatcher`. ``rule`` is the protocol; tagged frames with an odd VLAN id name a channel.
    drop : Signal(), in
        Passes what doesn't match.
    """
    def __init__(self):
        self.key           = Record(key_layout())
        self.start         = Signal()
        self.done          = Signal()
        self.matched       = Signal()
        self.passed        = Signal()
        self.rule          = Signal(8)
        self.names_channel = Signal()
        self.channel       = Signal(3)
        self.drop          = Signal()

        # # #

        key, held = self.key, Record(key_layout())
        age       = Signal(max=LATENCY + 1)
        is_any, is_ip, is_ipv6 = held.layer3 != 0, held.layer3[1], held.layer3 == 3
        fields = [
            (held.source[:32],       is_any),  (held.source[32:],      is_ipv6),
            (held.destination[:32],  is_any),  (held.destination[32:], is_ipv6),
            (held.protocol,          is_ip),   (held.vlan,             held.has_tag),
            (held.source_port,       held.has_ports),  (held.destination_port, held.has_ports),
            (held.source_mac,        held.has_macs),   (held.destination_mac,  held.has_macs),
        ]
        parity, parts = Signal(), Signal(len(fields))
        for number, (field, condition) in enumerate(fields):
            self.comb += parts[number].eq(condition & Reduce("XOR", [field[bit] for bit in range(len(field))]))
        self.comb += parity.eq(Reduce("XOR", [parts[number] for number in range(len(fields))]))
        self.sync += [
            self.done.eq(age == LATENCY - 1),
            If(age == LATENCY - 1,
                self.matched.eq(parity),
                self.passed.eq(parity ^ self.drop),
                self.rule.eq(Mux(is_ip, held.protocol, 255)),
                self.names_channel.eq(held.has_tag & held.vlan[0]),
                self.channel.eq(held.vlan[1:4]),
            ),
        ]
        # A row a cycle, for 32 cycles; what is under way behind them is not disturbed by the next frame.
        first, second = Record(key_layout()), Signal(max=LATENCY + 1)
        self.sync += [
            If(second != 0, second.eq(second + 1)),
            If(age != 0, age.eq(age + 1)),
            If(age == LATENCY - 1, age.eq(0)),
            If(second == 32, second.eq(0), age.eq(33), held.eq(first)),
            If(self.start, first.eq(key), second.eq(1)),
        ]

# Monitor Bench ------------------------------------------------------------------------------------

class Now(LiteXModule):
    """A clock that counts ticks.

    Attributes
    ----------
    now : Signal(64), out
        ns, in ``timebase``.
    """
    def __init__(self):
        self.now = Signal(64)

        # # #

        self.sync.timebase += self.now.eq(self.now + 8)

OF_HASH = ("sample_by_hash", "sample_seed", "table_write", "table_number", "table_value")

class MonitorBench(LiteXModule):
    """Ports on pins: ``<domain>_clk``, ``<domain>_rst``, settings for both, and ``p<n>_*`` of each port.

    ``with_fields``: port 0 checks fills and takes stamps from fields, and so does port 1, which only measures; it has the pins of
    a monitor, too, on which nothing comes. Without ``with_hash`` ports hash no frame; the pins of settings that would choose by it
    lead nowhere.
    """
    def __init__(self, with_fields=False, with_hash=True):
        self.pins    = set()
        self.layouts = []
        for name in ("sys", "timebase", "eth_rx"):
            domain = ClockDomain(name)
            setattr(self, f"cd_{name}", domain)
            self.pins |= {domain.clk, domain.rst}
        self.clock     = Now()
        self.with_hash = with_hash
        shared = {name: self.add_pin(name, width) for name, width in [
            ("snap_length", 16), ("keep_headers", 1), ("keep_damaged", 1), ("keep_own", 1), ("enable", 1), ("sample_shift", 3),
            ("sample_by_hash", 1), ("sample_seed", 32), ("table_write", 1), ("table_number", 7), ("table_value", 3),
            ("clear", 1), ("latch", 1), ("drop", 1)]}
        self.fields = {name: self.add_pin(name, width) for name, width in [
            ("stream_base", 16), ("place_write", 1), ("place_number", 5), ("place_value", 32)]}
        for port in range(PORTS):
            add = self.add_measure if with_fields and port else self.add_monitor
            self.add_port(port, add(port, shared, with_fields), with_fields)

    def add_monitor(self, port, shared, with_fields):
        """Return the path of a port that monitors."""
        matcher = ParityMatcher()
        path    = MonitorPath(self.clock, matcher, port, management_mac=MAC if port == 0 else None, with_fields=with_fields,
            with_hash=self.with_hash)
        self.submodules += matcher, path
        self.comb += matcher.drop.eq(shared["drop"])
        for name, pin in shared.items():
            if name != "drop" and (self.with_hash or name not in OF_HASH):
                self.comb += getattr(path, name).eq(pin)
        return path

    def add_measure(self, port, shared, with_fields):
        """Return the path of a port that measures streams."""
        path = MeasurePath(self.clock, with_management=True)
        self.submodules += path
        self.comb += [getattr(path, name).eq(shared[name]) for name in ("clear", "latch")]
        path.skip = Signal()
        for name, layout in [("descriptor", descriptor_layout()), ("header", [("data", 32)]), ("data", [("data", 32)])]:
            setattr(path, name, stream.Endpoint(layout))
        return path

    def add_fields(self, path):
        """Take stamps from fields, and return what is measured then."""
        fields = FieldDelay(STREAM_SLOTS_MAX)
        self.submodules += fields
        bus = fields.bus
        self.comb += [
            fields.passing.eq(path.arrivals.passing),
            path.measured.connect(fields.measured),
            fields.stream_base.eq(self.fields["stream_base"]),
            bus.cyc.eq(self.fields["place_write"]), bus.stb.eq(bus.cyc), bus.we.eq(bus.cyc),
            bus.adr.eq(self.fields["place_number"]),
            bus.dat_w.eq(self.fields["place_value"]),
        ]
        return fields.source

    def add_port(self, port, path, with_fields):
        """Add the pins of a port."""
        for name in ("valid", "data", "error"):
            signal = getattr(path.sink, name)
            self.comb += signal.eq(self.add_pin(f"p{port}_sink_{name}", len(signal)))
        self.comb += path.skip.eq(self.add_pin(f"p{port}_skip", 1))
        for name in ("descriptor", "header", "data", "management_source"):
            self.add_stream(f"p{port}_{name}", getattr(path, name))
        self.add_stream(f"p{port}_measured", self.add_fields(path) if with_fields else path.measured)
        parser, bus = path.arrivals.parser, path.tally.bus
        for name, signal in [("seen", parser.seen), ("is_classified", parser.frame.is_classified), ("length", parser.frame.length),
            ("busy", path.tally.busy), ("bus_dat_r", bus.dat_r), ("bus_ack", bus.ack)]:
            self.comb += self.add_pin(f"p{port}_{name}", len(signal)).eq(signal)
        for name in ("adr", "cyc", "stb"):
            signal = getattr(bus, name)
            self.comb += signal.eq(self.add_pin(f"p{port}_bus_{name}", len(signal)))
        self.layouts.append(path.tally.layout)

    def add_stream(self, prefix, source):
        """Add pins for a stream that leaves."""
        for name, *_ in source.description.payload_layout:
            signal = getattr(source, name)
            self.comb += self.add_pin(f"{prefix}_{name}", len(signal)).eq(signal)
        self.comb += [
            self.add_pin(f"{prefix}_valid", 1).eq(source.valid),
            self.add_pin(f"{prefix}_last", 1).eq(source.last),
            source.ready.eq(self.add_pin(f"{prefix}_ready", 1)),
        ]

    def add_pin(self, name, width):
        """Return a new pin of that name."""
        pin = Signal(width, name=name, name_override=name)
        self.pins.add(pin)
        return pin

def write_verilog(path, with_fields=False, with_hash=True):
    """Write the bench to ``path`` as module ``monitor_bench``."""
    bench = MonitorBench(with_fields, with_hash)
    write_module(bench, "monitor_bench", path)

def counters(with_fields=False) -> list[dict[str, tuple[int, int]]]:
    """Return where the snapshot of each port has each counter: name to first word and words."""
    return MonitorBench(with_fields).layouts
