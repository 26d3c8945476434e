# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Takes lines of XGMII through the PCS of 10 Gb/s, and lines of bits back, between clocks as those of a transceiver."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from migen import *

from litex.gen import *

from liteprobe.cores.xgmii.pcs import BER_CYCLES, XgmiiPCS
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.tools.pins import PinnedBench
from liteprobe.sim.models import baser
from liteprobe.sim.models.xgmii import IDLE, WORD, Line, LineWriter

COUNTS = ["tx_lost", "tx_missed", "rx_lost", "rx_missed", "rx_error_count", "is_locked"]
BLOCK  = np.dtype([("payload", "<u8"), ("header", "u1")])

# PCS Bench ----------------------------------------------------------------------------------------

class PcsBench(PinnedBench):
    """A PCS on pins of its names."""

    def __init__(self, ber_cycles=BER_CYCLES):
        PinnedBench.__init__(self, "timebase", "eth_rx", "gt_tx", "gt_rx")
        self.pcs = pcs = XgmiiPCS(ber_cycles)
        self.add_inputs(pcs, ["tx_data", "tx_control", "tx_take", "rx_valid", "rx_header", "rx_payload"])
        self.add_outputs(pcs, ["tx_header", "tx_payload", "rx_data", "rx_control", "slip", *COUNTS])


BENCH = CompiledBench(PcsBench, Path(__file__).with_name("pcs.cpp"))

# Runs ---------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class PcsRun:
    """Holds what left: blocks as on the line; and words of XGMII, one a cycle of ``eth_rx``; blocks before each slip; counters."""

    blocks: NDArray[np.void]
    received: Line
    slips: list[int]
    counts: dict[str, int]

    def bits(self) -> NDArray[np.uint8]:
        """Return the bits that left, in their order on the line."""
        headers = np.unpackbits(self.blocks["header"][:, None], axis=1, bitorder="little")[:, :2]
        octets  = np.ascontiguousarray(self.blocks["payload"]).view(np.uint8).reshape(-1, 8)
        return np.hstack([headers, np.unpackbits(octets, axis=1, bitorder="little")]).reshape(-1)


def run(
    sent: Line | None = None, bits: NDArray[np.uint8] | None = None, offset: int = 0, ppm: int = 0, **parameters: int
) -> PcsRun:
    """Send a line, and let bits come, from bit ``offset`` on, of a clock that is faster by ``ppm``."""
    coming = b"" if bits is None else np.packbits(bits, bitorder="little").tobytes()
    files  = {"xgmii": sent.words().tobytes() if sent else b"", "bits": coming}
    done   = BENCH.run(files, {"offset": offset, "rx_ppm": 1000 + ppm}, **parameters)
    return PcsRun(
        done.array("blocks", BLOCK),
        Line.read(done.array("words", WORD)),
        done.array("slips", "<u4").tolist(),
        dict(zip(COUNTS, done.numbers, strict=True)),
    )

# Lines --------------------------------------------------------------------------------------------

def trimmed(line: Line) -> tuple[list[list[int]], list[list[int]]]:
    """Return the octets and flags of a line from its first word on that is neither idle nor a local fault."""
    octets, control = line.octets.reshape(-1, 8), line.control.reshape(-1, 8)
    fault = np.array(baser.LOCAL_FAULT)
    is_idle = (octets == IDLE).all(axis=1) & control.all(axis=1)
    is_fault = (octets == fault[0]).all(axis=1) & (control == fault[1]).all(axis=1)
    others = np.flatnonzero(~(is_idle | is_fault))
    return octets[others[0] : others[-1] + 1].tolist(), control[others[0] : others[-1] + 1].tolist()


def after_idle(line: Line, words: int = 400) -> Line:
    """Return a line with so many words of idle before it."""
    writer = LineWriter()
    writer.idle(8 * words)
    return Line(
        np.concatenate([np.frombuffer(writer.octets, np.uint8), line.octets]),
        np.concatenate([np.frombuffer(writer.control, bool), line.control]),
    )
