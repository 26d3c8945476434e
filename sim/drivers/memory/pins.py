# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The SDRAM's pins of a board: its PHY with the controller and a user that checks itself, against a chip with delays."""

import os
import re
import subprocess
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

from migen import *

from litex.gen import *
from litex.gen.fhdl.verilog import convert
from litex.build.lattice.common import lattice_ecp5_trellis_special_overrides

from liteprobe.boards import board
from liteprobe.boards.ecp5 import join_eye, sampled_sdram_phy, sdram_phy
from liteprobe.boards.io_timing import EYE_CLK_FREQS, EYE_CLOCK_STEPS, EYE_STEP
from liteprobe.cores.formats.probe import EyeState
from liteprobe.cores.memory.eye import STEP_TAPS, TAP_PS, ReadEye
from liteprobe.cores.memory.interleaved import InterleavedController
from liteprobe.cores.memory.sdram import SdramController
from liteprobe.sim.drivers.tools.compiled import compiled, verilate
from liteprobe.sim.system.combinatorial import own_combinatorial_blocks

BOARD  = "colorlight_i9"
HERE   = Path(__file__).parent
CELLS  = HERE.parents[1] / "pins" / "cells.v"
ROUNDS = 30
LOOKS  = 5_000 # Cycles from one look at the drift to the next; 2^20 on boards.
OCTET  = 0x55aa33cc # Written by the bus, its octet 1 alone.

# Bench --------------------------------------------------------------------------------------------

class SelfCheck(LiteXModule):
    """Writes a burst of 64 words, reads it back, then an octet in it by the bus, round after round.

    ``errors``, ``rounds``: Signal(32), out; words that were read wrong, and rounds.
    """
    def __init__(self, sdram):
        self.errors = Signal(32)
        self.rounds = rounds = Signal(32)

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
        for name, width in (("memory_clk", 1), ("memory_rst", 1), ("chip_clk", 1), ("errors", 32), ("rounds", 32))
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
    convert_bench(bench, "memory_pins_bench", platform, {clk, rst, chip_clk, errors, rounds}, path)

def convert_bench(bench, name, platform, ios, path):
    """Write a module at the pins of a platform."""
    ios  = {*platform.constraint_manager.get_io_signals(), *ios}
    with own_combinatorial_blocks():
        text = str(convert(bench, ios=ios, name=name, platform=platform,
            special_overrides=dict(lattice_ecp5_trellis_special_overrides)))
    # Migen takes pins of an instance's inout for inputs.
    path.write_text(re.sub(r"input( +wire +\[31:0\] sdram_dq)", r"inout\1", text))

def write_eye(path, mhz, every):
    """Write PHY, controller, what finds the eye and a user to ``path`` as module ``memory_eye_bench``."""
    platform = board(BOARD).platform
    bench = LiteXModule()
    bench.cd_memory = ClockDomain("memory")
    bench.cd_sdram  = ClockDomain("sdram", reset_less=True)
    phy   = sampled_sdram_phy(platform, mhz*1e6)
    sdram = InterleavedController(phy, mhz*1e6, 4, SLOW_MHZ*1e6)
    eye   = ReadEye(sdram, round(1e6/mhz/2/(STEP_TAPS*TAP_PS)), EYE_CLOCK_STEPS, every)
    user  = SelfCheck(SimpleNamespace(bus=sdram.bus, burst=sdram.add_port(), ready=eye.ready))
    for name, module in (("phy", phy), ("sdram", sdram), ("eye", eye), ("user", user)):
        bench.add_module(name=name, module=ClockDomainsRenamer("memory")(module))
    pins = {
        "memory_clk": bench.cd_memory.clk, "memory_rst": bench.cd_memory.rst, "sdram_clk": bench.cd_sdram.clk,
        "errors": user.errors, "rounds": user.rounds, "phase_step": eye.phase_step, "phase_advance": eye.phase_advance,
        "half": eye.walker.is_falling, **{name: getattr(eye.walker, name) for name in ("load_n", "move", "direction")},
        **{f"eye_{name}": getattr(eye, name) for name in ("state", "width", "moves", "errors", "ready", "slow")},
    }
    ios = {name: Signal(len(signal), name=name, name_override=name) for name, signal in pins.items()}
    for name, signal in pins.items():
        bench.comb += signal.eq(ios[name]) if name in ("memory_clk", "memory_rst", "sdram_clk") else ios[name].eq(signal)
    bench.comb += join_eye(phy, eye)
    convert_bench(bench, "memory_eye_bench", platform, set(ios.values()), path)

@cache
def build(top, write, **options):
    """Return the executable."""
    tool = ["verilator", "--binary", "--timing", "-O3", "-Wno-fatal", "-Wno-lint", "-Wno-style", "--Mdir", "obj"]
    tool = [*tool, "--top-module", top, "-o", "pins"]
    files = [HERE / f"{top.removeprefix('memory_')}.v", HERE / "leaves.v", CELLS]
    def compile_(folder):
        verilate([*tool, f"{top}_bench.v", *map(str, files)], folder)
    texts = [file.read_text(encoding="utf-8") for file in files]
    return compiled(f"{top}_bench", partial(write, **options), compile_, [*texts, *tool]) / "obj" / "pins"

def errors_of(is_late, mhz, clock_ns, out_ns, access_ns, hold_ns):
    """Return how many words were read wrong in ROUNDS rounds of 65."""
    period  = round(1e6/mhz)
    times   = {"period": period, "clock": round(1e3*clock_ns) % period, "out": round(1e3*out_ns)}
    times  |= {"access": round(1e3*access_ns), "hold": round(1e3*hold_ns), "rounds": ROUNDS}
    found   = simulate(build("memory_pins", write_verilog, is_late=is_late, mhz=mhz), times)
    assert found["rounds"] == ROUNDS, f"{found['rounds']} rounds in a millisecond"
    return found["errors"]

def simulate(program, times):
    """Run a bench with plusargs; return the numbers that it prints."""
    command = [str(program), *[f"+{name}={value}" for name, value in times.items()]]
    done    = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ, timeout=600)
    return {name: int(value) for name, value in re.findall(r"(\w+) (-?\d+)", done.stdout)}

# Eye ----------------------------------------------------------------------------------------------

SLOW_MHZ = EYE_CLK_FREQS[1]/1e6
SETUP, KEEPING = 0.85, 0.98 # Of the FPGA: what its registers ask for around their edge.
BACK     = 1.5 # From the chip to the FPGA, ns, with no skew.

class Eye(NamedTuple):
    """Holds what a search found, and what the model knows: ``off_ns`` from the middle, at first and in the end; ``width_ns``."""
    words: int
    errors: int
    state: EyeState
    steps: int
    moves: int
    wrong: int
    off_ns: tuple[float, float]
    width_ns: float
    step_ns: float

def eye_of(mhz, skew_ns=0.0, drift_ns=0.0, rounds=ROUNDS, **times):
    """Have the eye found with a skew of what is read and a drift of it over the rounds.

    ``times`` : ns; ``out`` (tCOPLL, 2), ``access`` and ``hold`` (tAC 5.5, tOH 2).
    """
    out, access, hold = times.get("out", 2.0), times.get("access", 5.5) + SETUP + BACK, times.get("hold", 2.0) - KEEPING + BACK
    period, lag = 1e3/mhz, EYE_CLOCK_STEPS[0]*EYE_STEP + 1e3/mhz
    values = {"period": period, "slow": 1e3/SLOW_MHZ, "step": EYE_STEP, "lag": lag, "tap": times.get("tap", TAP_PS/1e3)}
    values = {**values, "out": out, "access": access, "hold": hold, "skew": skew_ns, "drift": drift_ns}
    found  = simulate(build("memory_eye", write_eye, mhz=mhz, every=LOOKS), {
        **{name: round(1e3*value) for name, value in values.items()}, "rounds": rounds,
    })
    def off(before, shift_ns):
        sampled = found[f"{before}half"]*period/2 - found[f"{before}taps"]*values["tap"]
        middle  = found[f"{before}lag"]/1e3 + out + (access + hold + period)/2 + skew_ns + shift_ns
        return (sampled - middle + period/2) % period - period/2
    return Eye(
        words    = found["rounds"]*130,
        errors   = found["errors"],
        state    = EyeState(found["state"]),
        steps    = found["width"],
        moves    = found["moves"],
        wrong    = found["wrong"],
        off_ns   = (off("found_", 0), off("", drift_ns)),
        width_ns = period + hold - access,
        step_ns  = STEP_TAPS*TAP_PS/1e3,
    )
