# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The SDRAM's pins of a board: its PHY with the controller and a user that checks itself, against a chip with delays."""

import os
import re
import subprocess
from functools import cache, partial
from pathlib import Path

from migen import *

from litex.gen import *
from litex.gen.fhdl.verilog import convert
from litex.build.lattice.common import lattice_ecp5_trellis_special_overrides

from liteprobe.boards import board
from liteprobe.boards.ecp5 import sdram_phy
from liteprobe.cores.memory.sdram import SdramController
from liteprobe.sim.drivers.tools.compiled import compiled, verilate

BOARD  = "colorlight_i9"
HERE   = Path(__file__).parent
CELLS  = HERE.parents[1] / "pins" / "cells.v"
ROUNDS = 30
OCTET  = 0x55aa33cc # Written by the bus, its octet 1 alone.

# Bench --------------------------------------------------------------------------------------------

class SelfCheck(LiteXModule):
    """Writes a burst of 64 words, reads it back, then an octet in it by the bus, round after round.

    ``errors``, ``rounds``: Signal(16), out; words that were read wrong, and rounds.
    """
    def __init__(self, sdram):
        self.errors = Signal(16)
        self.rounds = rounds = Signal(16)

        # # #

        bus, port = sdram.bus, sdram.burst
        written = Signal(6)
        got     = Signal(7)
        wrong   = Signal()
        def word(number): # All bits change from one to the next.
            return Cat(number, rounds[:10], ~number, ~rounds[:10]) ^ Replicate(number[0], 32)
        fifth = C(5, 6)
        octet = (word(fifth) & 0xffff00ff) | (OCTET & 0xff00)
        self.comb += [
            port.write_data.eq(word(written)),
            port.request.address.eq(Cat(C(0, 6), rounds)),
            port.request.rest.eq(63),
            bus.adr.eq(Cat(fifth, rounds)),
            bus.dat_w.eq(OCTET),
            bus.stb.eq(bus.cyc),
        ]
        self.sync += [
            If(port.takes, written.eq(written + 1)),
            If(port.gives, got.eq(got + 1)),
            If((port.gives & (port.read_data != word(got[:6]))) | wrong, self.errors.eq(self.errors + 1)),
        ]
        self.fsm = fsm = FSM(reset_state="WRITE")
        fsm.act("WRITE",
            port.request.valid.eq(sdram.ready),
            port.request.write.eq(1),
            If(port.request.valid & port.request.ready, NextState("READ")),
        )
        fsm.act("READ",
            port.request.valid.eq(1),
            NextValue(got, 0),
            If(port.request.ready, NextState("CHECK")),
        )
        fsm.act("CHECK", If(got == 64, NextState("WRITE-OCTET")))
        fsm.act("WRITE-OCTET", bus.cyc.eq(1), bus.we.eq(1), bus.sel.eq(0b0010), If(bus.ack, NextState("READ-WORD")))
        fsm.act("READ-WORD",
            bus.cyc.eq(1),
            bus.sel.eq(0b1111),
            If(bus.ack,
                wrong.eq(bus.dat_r != octet),
                NextValue(rounds, rounds + 1),
                NextState("WRITE"),
            )
        )

def write_verilog(path, is_late, mhz):
    """Write PHY, controller and user to ``path`` as module ``memory_pins_bench``."""
    platform = board(BOARD).platform
    bench = LiteXModule()
    bench.cd_memory = ClockDomain("memory")
    bench.cd_sdram  = ClockDomain("sdram", reset_less=True)
    clk, rst, chip_clk, errors, rounds = [
        Signal(width, name=name, name_override=name)
        for name, width in (("memory_clk", 1), ("memory_rst", 1), ("chip_clk", 1), ("errors", 16), ("rounds", 16))
    ]
    phy   = sdram_phy(platform, mhz*1e6, is_late)
    sdram = SdramController(phy, mhz*1e6, with_bursts=True)
    user  = SelfCheck(sdram)
    for name, module in (("phy", phy), ("sdram", sdram), ("user", user)):
        bench.add_module(name=name, module=ClockDomainsRenamer("memory")(module))
    bench.comb += [
        bench.cd_memory.clk.eq(clk),
        bench.cd_memory.rst.eq(rst),
        bench.cd_sdram.clk.eq(chip_clk),
        errors.eq(user.errors),
        rounds.eq(user.rounds),
    ]
    ios  = {*platform.constraint_manager.get_io_signals(), clk, rst, chip_clk, errors, rounds}
    text = str(convert(bench, ios=ios, name="memory_pins_bench", regular_comb=False, platform=platform,
        special_overrides=dict(lattice_ecp5_trellis_special_overrides)))
    # Migen takes pins of an instance's inout for inputs.
    path.write_text(re.sub(r"input( +wire +\[31:0\] sdram_dq)", r"inout\1", text))

@cache
def build(is_late, mhz):
    """Return the executable."""
    tool = ["verilator", "--binary", "--timing", "-O3", "-Wno-fatal", "-Wno-lint", "-Wno-style", "--Mdir", "obj"]
    tool = [*tool, "--top-module", "memory_pins", "-o", "pins"]
    files = [HERE / "pins.v", CELLS]
    def compile_(folder):
        verilate([*tool, "memory_pins_bench.v", *map(str, files)], folder)
    texts = [file.read_text(encoding="utf-8") for file in files]
    write = partial(write_verilog, is_late=is_late, mhz=mhz)
    return compiled("memory_pins_bench", write, compile_, [*texts, *tool]) / "obj" / "pins"

def errors_of(is_late, mhz, clock_ns, out_ns, access_ns, hold_ns):
    """Return how many words were read wrong in ROUNDS rounds of 65."""
    period  = round(1e6/mhz)
    times   = {"period": period, "clock": round(1e3*clock_ns) % period, "out": round(1e3*out_ns)}
    times  |= {"access": round(1e3*access_ns), "hold": round(1e3*hold_ns), "rounds": ROUNDS}
    command = [str(build(is_late, mhz)), *[f"+{name}={value}" for name, value in times.items()]]
    done    = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ, timeout=100)
    rounds, errors = map(int, re.search(r"rounds (\d+) errors (\d+)", done.stdout).groups())
    assert rounds == ROUNDS, f"{rounds} rounds in a millisecond"
    return errors
