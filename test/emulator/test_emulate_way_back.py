# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The model of a probe of one direction counts what goes back, as the gateware does."""

from pathlib import Path
from random import Random

import pytest

from liteprobe.host.probe import Probe
from liteprobe.host.traffic.network import Network
from liteprobe.sim.drivers.system.fake_link import fake_emulator
from liteprobe.sim.models.emulator.direction import Arrival, leaving
from liteprobe.sim.models.probe.emulator import EmulatorProbe

LONGEST, INTERVAL = 1536, 1600
NAMES = ("sent", "damaged", "full", "state")


@pytest.mark.parametrize("seed", range(3))
def test_frames_of_the_way_back_are_counted_whether_a_network_runs_or_not(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    lengths = [59, 60, LONGEST, LONGEST + 1, *(chance.randint(1, INTERVAL - 24) for _ in range(20))]
    frames = [(length, chance.random() < 0.3) for length in lengths]
    model, link = fake_emulator(tmp_path, EmulatorProbe(directions=1, longest=LONGEST))

    def check(start: int) -> None:
        count = (model.tick - start) // INTERVAL + 1
        came = [Arrival(start + INTERVAL * n, bytes(frames[n % 24][0]), frames[n % 24][1]) for n in range(count)]
        whole = [one for one in came if one.tick + len(one.octets) + 4 <= model.tick]
        left = [one for one in leaving(came, LONGEST) if one.first <= model.tick]
        assert [model.values[f"port0_tx_{name}"] for name in NAMES] == [
            len(left),
            len(whole) - len(leaving(whole, LONGEST)),
            0,
            0,
        ]

    with Probe(link) as probe:
        start = model.tick
        model.offer_back(frames, INTERVAL)
        for _ in range(200):
            probe.wait(chance.randint(1, 2000) * 8e-9)
            check(start)
        with probe.emulate(Network()) as emulation:
            for _ in range(20):
                emulation.wait(chance.randint(1, 2000) * 8e-9)
                check(start)
        sent = probe.registers.read("port0_tx_sent")  # Time goes on with each read.
        assert sent == model.values["port0_tx_sent"] > 50
        check(start)


def test_frames_that_a_line_could_not_bring_are_refused() -> None:
    with pytest.raises(ValueError, match="1537 ticks don't hold the slot"):
        EmulatorProbe(directions=1).offer_back([(60, False), (1514, False)], 1537)


def test_only_a_probe_of_one_direction_has_the_registers_of_the_way_back() -> None:
    names = [{name for name in EmulatorProbe(directions=n).map["csr_registers"] if "port0_tx" in name} for n in (1, 2)]
    assert names[0] == {f"port0_tx_{name}" for name in (*NAMES, "management_sent", "management_dropped", "link_up")}
    assert "port0_tx_full" not in names[1] and "port0_tx_stop" in names[1]
