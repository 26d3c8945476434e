# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The emulation of a direction as a Verilog module with plain pins, for a compiled bench."""

from migen import *

from litex.gen import *

from liteprobe.cores.emulate.direction import DirectionControl
from liteprobe.sim.bench.tools.module import write_module
from liteprobe.sim.bench.tools.pins import PinnedBench

WAITING, ENTRIES = 1024, 4096  # Frames and background frames that wait; frames that wait or are under way.
ARRIVAL_TICKS, LEAD_TICKS = 2048, 1024
COUNTS = 1 << 16  # Bit of ``adr``: the counts, not the settings.

# Engine Bench -------------------------------------------------------------------------------------


class EngineBench(PinnedBench):
    """An `DirectionControl`.

    Pins: ``sys_clk``, ``sys_rst``; ``<stream>_valid``, ``_ready`` and payload of its streams; ``start``, ``now``, ``freed``,
    ``freed_lane``, ``freed_words``, ``switch_at``, ``switch_ask``, ``switch_pending``; one bus ``adr``, ``stb``, ``we``, ``dat_w``,
    ``ack``, ``dat_r``; ``is_idle``: a pulse each time that the engine finds that it has nothing to do yet;
    ``is_empty``: no frame waits for its draws or its verdict; ``counted_<field>``.
    """

    def __init__(self):
        PinnedBench.__init__(self)
        self.core = core = DirectionControl(WAITING, ENTRIES, ARRIVAL_TICKS, LEAD_TICKS)
        for name in ["start", "now", "freed", "freed_lane", "freed_words"]:
            self.add_input(name, getattr(core, name))
        self.add_input("switch_at", core.switch.tick)
        self.add_input("switch_ask", core.switch.ask)
        self.add_output("switch_pending", core.switch.is_pending)
        for stream in ["arrivals", "opportunities", "late"]:
            self.add_stream(stream, self.add_input, self.add_output)
        for stream in ["verdicts", "departures"]:
            self.add_stream(stream, self.add_output, self.add_input)
        counted = core.engine.counted
        self.add_output("counted_valid", counted.valid & counted.ready)
        for name in ["arrives", "background", "outcome", "number"]:
            self.add_output(f"counted_{name}", getattr(counted, name))
        self.add_output("is_empty", ~core.queue.source.valid & ~core.drawn.source.valid)
        fsm = core.engine.fsm
        self.add_output("is_idle", fsm.ongoing("DECIDE") & fsm.before_entering("PICK"))
        self.add_bus([core.settings_bus, core.counts_bus])

    def add_stream(self, name, forth, back):
        """Give a stream its pins."""
        end = getattr(self.core, name)
        forth(f"{name}_valid", end.valid)
        back(f"{name}_ready", end.ready)
        for field, _ in end.description.payload_layout:
            forth(f"{name}_{field}", getattr(end, field))

    def add_input(self, name, signal):
        self.comb += signal.eq(self.add_pin(name, len(signal)))

    def add_output(self, name, value):
        self.comb += self.add_pin(name, value.nbits if hasattr(value, "nbits") else len(value)).eq(value)


def write_verilog(path):
    """Write the bench to ``path`` as module ``engine_bench``."""
    write_module(EngineBench(), "engine_bench", path)
