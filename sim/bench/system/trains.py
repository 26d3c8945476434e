# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends trains from a simulated probe, and brings what it measured together with what stood on its pins."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from liteprobe.host import Probe, TrainProgram, TrainResult
from liteprobe.host.device.link.url import sim_url
from liteprobe.sim.bench.frames import truth

SLOT = 24  # Octets of a frame's slot besides its length: preamble, SFD, FCS, gap.


@dataclass(frozen=True)
class Run:
    """What the probe said, and what was on its pins."""

    result: TrainResult
    rows: NDArray[np.void]
    transmit: int = 0

    def sent(self, port: int | None = None) -> NDArray[np.void]:
        """Return the frames that left a port: the one of the train, unless another is named."""
        return truth.frames_out(self.rows, self.transmit if port is None else port)

    def received(self, port: int = 1) -> NDArray[np.void]:
        """Return the frames that came to a port."""
        return truth.frames_in(self.rows, port)


def run(folder: Path, wire: str, program: TrainProgram, files: Path, link: str = "own", transmit: int = 0) -> Run:
    """Send a program from a port and read the truth of it."""
    path = files / "truth & more"  # What parts options in a URL.
    with Probe(sim_url(wire, build=folder, truth=path, pcap=files / "pins", link=link)) as probe:
        result = probe.train(program, transmit=transmit)
    return Run(result, truth.read_truth(path), transmit)


def slots(program: TrainProgram) -> list[int]:
    """Return the ticks from start to start of a back-to-back program."""
    gap = round((program.gap_ns or 0) / 8)
    starts = program.count * program.repeats - 1
    return [program.length + SLOT + (gap if (k + 1) % program.count == 0 else 0) for k in range(starts)]
