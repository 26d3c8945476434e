# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads what a probe found of the eye of its SDRAM."""

from dataclasses import dataclass

from liteprobe.cores.formats.probe import EyeState
from liteprobe.host.device.registers import Registers

EYE_REGISTERS = ("state", "width", "moves", "errors", "step_ps", "clock_khz")


@dataclass(frozen=True)
class MemoryEye:
    """Holds what a probe found of the eye of its SDRAM: the phases at which it reads it right."""

    state: EyeState
    width_ps: int
    step_ps: int
    clock_khz: int
    moves: int  # Steps that followed a drift; 255: that many or more.
    errors: int  # Readings of the pattern in the middle that were wrong; likewise.

    @property
    def text(self) -> str:
        at = f"{self.clock_khz / 1000:g} MHz"
        if self.state == EyeState.FOUND:
            kept = f"{self.moves} steps of {self.step_ps} ps moved since, {self.errors} readings wrong"
            return f"{self.width_ps / 1000:g} ns wide at {at}; {kept}"
        if self.state == EyeState.SLOW:
            return f"none found at the fast clock, so the memory runs at {at}"
        return (
            "being looked for"
            if self.state == EyeState.SEARCHING
            else f"none found, and at {at} it reads wrong words, too"
        )


def memory_eye(registers: Registers) -> MemoryEye | None:
    """Return what the probe found; None where its SDRAM has a phase that is fixed, or it has none."""
    if "sdram_eye_state" not in registers.names:
        return None
    state, width, moves, errors, step, clock = registers.read_many(
        f"sdram_eye_{name}" for name in EYE_REGISTERS
    ).values()
    return MemoryEye(EyeState(state), width * step, step, clock, moves, errors)
