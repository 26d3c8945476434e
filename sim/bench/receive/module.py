# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A receive path as a Verilog module with plain pins, for cocotb and for timing runs."""

from migen import *

from litex.gen import *

from liteprobe.cores.receive.path import RecordPath
from liteprobe.cores.timebase.clock import ProbeClock
from liteprobe.sim.bench.tools.module import write_module

RECORD_DEPTH = 128  # A ring that is full soon.

# Receive Bench ------------------------------------------------------------------------------------


class ReceiveBench(LiteXModule):
    """A receive path and a clock, on pins.

    ``is_synchronous`` runs the receive clock and the timebase from one pin, without ``eth_rx``.

    Pins: ``<domain>_clk``, ``<domain>_rst`` of ``sys``, ``timebase`` and ``eth_rx``; ``rx_dv``, ``rx_data``, ``rx_er``;
    inputs of `RecordPath` by their names; ``records_*`` of the ring and its bus; ``streams_*`` and ``snapshot_*`` of the
    other two; ``management_*``; ``now``; ``paired`` and ``stamp`` (each RX stamp of a frame that is classified); ``seen``
    and ``classified`` of each frame that wasn't cut.
    """

    inputs = ("stream_id", "clear", "latch", "records_read", "records_enable")

    def __init__(self, with_management=True, record_depth=RECORD_DEPTH, is_synchronous=False):
        self.pins = set()
        for name in ["sys", "timebase"] + ([] if is_synchronous else ["eth_rx"]):
            domain = ClockDomain(name)
            setattr(self, f"cd_{name}", domain)
            self.pins |= {domain.clk, domain.rst}
        self.clock = clock = ProbeClock()
        path = RecordPath(clock, with_management, record_depth)
        if is_synchronous:
            path = ClockDomainsRenamer({"eth_rx": "timebase"})(path)
        self.path = path

        sink, bus, source, arrivals = path.sink, path.records.bus, path.management_source, path.arrivals
        buses = {"records": bus, "streams": path.streams.bus, "snapshot": path.tally.bus}
        for name, signal in [
            ("rx_dv", sink.valid),
            ("rx_data", sink.data),
            ("rx_er", sink.error),
            ("management_ready", source.ready),
            *[(f"{name}_{part}", getattr(bus, part)) for name, bus in buses.items() for part in ("stb", "adr")],
            *[(name, getattr(path, name)) for name in self.inputs],
        ]:
            self.comb += signal.eq(self.add_pin(name, len(signal)))
        self.comb += [bus.cyc.eq(bus.stb) for bus in buses.values()]
        for name, signal in [
            ("now", clock.now),
            ("paired", arrivals.pairing.paired),
            ("stamp", arrivals.pairing.stamp),
            ("seen", arrivals.parser.seen),
            ("classified", arrivals.parser.frame.is_classified),
            *[(f"{name}_ack", bus.ack) for name, bus in buses.items()],
            *[(f"{name}_data", bus.dat_r) for name, bus in buses.items()],
            ("records_written", path.records.written),
            ("records_lost", path.records.lost),
            ("management_valid", source.valid),
            ("management_last", source.last),
            ("management_data", source.data),
            ("management_last_be", source.last_be),
        ]:
            self.comb += self.add_pin(name, len(signal)).eq(signal)

    def add_pin(self, name, width):
        """Return a new pin of that name."""
        pin = Signal(width, name=name, name_override=name)
        self.pins.add(pin)
        return pin


def write_verilog(path, **kwargs):
    """Write the bench to ``path`` as module ``receive_bench``; keywords as of ReceiveBench."""
    bench = ReceiveBench(**kwargs)
    # Verilator never evaluates ``always @(*)`` blocks of constants; see docs/design.
    write_module(bench, "receive_bench", path)
