# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The capture of the PPS in parts of a tick, and the receiver's quantisation error: the whole probe against its pins."""

from pathlib import Path

import numpy as np
import pytest

from liteprobe.cores.formats import PpsControl
from liteprobe.host.clock import TICK_PS
from liteprobe.sim.bench import truth
from liteprobe.sim.bench.harness import probe_of

PIN_PORT = 255  # Of the rows of pulses.
PERIOD_NS = 100_000
SAMPLES = 4


@pytest.mark.parametrize("ppm", [17, -40])
def test_an_edge_lies_in_the_quarter_of_a_tick_that_it_tells(own: Path, tmp_path: Path, ppm: int) -> None:
    path, count = tmp_path / "truth", 60
    spec = f"period={PERIOD_NS // 1000}us&first=250us&width=3us&jitter=40ns&ppm={ppm}&seed=5"
    with probe_of(own, "--truth", str(path), "--pps", spec) as (harness, probe):
        clock = probe.timebase.clock
        probe.registers.write("pps_period", PERIOD_NS)
        probe.registers.write("pps_control", PpsControl.ENABLE)
        assert clock.quantum_ps == TICK_PS // SAMPLES
        edges = []
        for n in range(count):
            harness.run(max(0, 300_000 + n * PERIOD_NS - harness.run(0)))
            edges.append(clock.edge())
        harness.command("sync")
    rows = truth.read_truth(path)
    rows = rows[(rows["port"] == PIN_PORT) & (rows["direction"] == truth.IN)][:count]
    assert [edge.count for edge in edges] == list(range(1, count + 1))
    ends_ps = np.array([1000 * edge.now_ns + TICK_PS - edge.early_ps for edge in edges])
    before_ps = ends_ps - rows["origin_tick"].astype(np.int64)
    assert (before_ps > 0).all() and (before_ps <= clock.quantum_ps).all()
    assert {edge.early_ps for edge in edges} == {n * clock.quantum_ps for n in range(SAMPLES)}
