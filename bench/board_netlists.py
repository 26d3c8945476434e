# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Holds what Yosys makes of each flagship against its RTL, both at their pins, under the same traffic from a seed.

The same commands, foreign frames and PPS go to both simulations. All that came to the pins and left them, octet for octet
with its ticks, and all registers at the end must be the same. What is not here: nextpnr's packed netlist
(sim/pins/test_netlist.py has it for two boards), and delays of the FPGA.
"""

import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray

from liteprobe.host import Fixed, Interval, Probe, Stream, TrainProgram
from liteprobe.host.device import lease
from liteprobe.host.device.link import etherbone
from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.device.link.url import sim_url
from liteprobe.host.traffic.network.netem import from_netem
from liteprobe.host.traffic.trace.trace import Trace
from liteprobe.sim.drivers.frames import truth
from liteprobe.sim.drivers.frames.gmii import with_fcs
from liteprobe.sim.drivers.frames.stacks import fuzz
from liteprobe.sim.drivers.system.senders import joined, packets, write, wrong_packets
from liteprobe.sim.drivers.tools.figures import Figure, note, row
from liteprobe.sim.pins.build import build_board
from liteprobe.soc.build.flagships import FLAGSHIPS, Flagship
from liteprobe.soc.config import ProbeConfig

CABLE, LOOPBACK = "cable?delay=1us", "loopback?delay=1us"
PREAMBLE = b"\x55" * 7 + b"\xd5"
PPS_NS = 1_000_000
FRAMES = 1000  # Foreign ones: whole, broken, cut.
REPLAYED = 100
SEED = 20261128


@dataclass(frozen=True)
class Life:
    """Holds what was on the pins of a board, and its registers at the end."""

    rows: NDArray[np.void]
    octets: dict[str, bytes]
    registers: dict[str, int]
    edges: int


def options_of(config: ProbeConfig) -> dict[str, Any]:
    """Return the fields that aren't as by default."""
    return {
        one.name: getattr(config, one.name)
        for one in fields(config)
        if getattr(config, one.name) != getattr(ProbeConfig(), one.name)
    }


def live(folder: Path, config: ProbeConfig, files: Path, frames: int) -> Life:
    """Let a board do what its preset is for, and what strangers make it do, by a seed."""
    chance = random.Random(SEED)
    # A host draws its number, says when it took the probe, and numbers its requests by the clock: here both lives have one host.
    clock = SimpleNamespace(**vars(time) | {"monotonic_ns": lambda: SEED})
    with (
        patch.object(lease, "secrets", SimpleNamespace(randbelow=lambda _: SEED & 0xFFF)),
        patch.object(lease, "name_of_this_process", str),
        patch.object(etherbone, "time", clock),
    ):
        return _live(folder, config, files, frames, chance)


def _live(folder: Path, config: ProbeConfig, files: Path, frames: int, chance: random.Random) -> Life:
    pps = {"pps": "1ms", "jitter": "30ns"} if config.with_discipline else {}
    edges = 0
    wire = CABLE if config.ports > 1 else LOOPBACK
    with Probe(
        sim_url(wire, build=folder, truth=files / "truth", pcap=files / "pins", link=config.link, **pps)
    ) as probe:
        assert isinstance(probe.link, SimLink)
        if config.emulates:
            back = "delay 80us loss 20%" if config.directions == 2 else None
            network, _ = from_netem("delay 100us loss 30%", back)
            with probe.emulate(network):
                _inject(probe.link, probe, range(1), frames, chance)
                probe.wait(1e-3)
        else:
            if config.sends_streams:
                streams = [Stream(f"s{n}", n, Fixed(60 + 200 * n), Interval(share=0.2), count=40) for n in range(1, 4)]
                probe.send(streams, receive=1).result()
            if config.generates and not config.monitors:
                for transmit in range(config.ports):
                    probe.train(TrainProgram(length=64, count=50, repeats=2, gap_ns=20_000), transmit=transmit)
            _inject(probe.link, probe, range(config.ports), frames, chance)
        if config.with_discipline:
            probe.clock.enable_pps(PPS_NS)
            edges = len(list(probe.clock.edges(5 * PPS_NS / 1e9, probe.wait)))
        names = list(json.loads((folder / "csr.json").read_text(encoding="utf-8"))["csr_registers"])
        registers = {name: probe.registers.read(name) for name in names}
    octets = {path.name: path.read_bytes() for path in sorted(files.glob("pins.*"))}
    return Life(truth.read_truth(files / "truth"), octets, registers, edges)


def _inject(link: SimLink, probe: Probe, ports: range, frames: int, chance: random.Random) -> None:
    """Put foreign frames on the wire: as they are, with a wrong FCS, cut anywhere."""
    for number, frame in enumerate(fuzz(frames, SEED)):
        octets = with_fcs(frame.ljust(60, b"\0"))
        if number % 10 == 7:
            octets = octets[:-1] + bytes([octets[-1] ^ 0x10])
        if number % 10 == 8:
            octets = octets[: chance.randrange(1, len(octets))]
        link.inject(ports[number % len(ports)], PREAMBLE + octets)
        if number % 5 == 0:
            probe.wait(chance.randrange(1, 30) * 1e-6)
    probe.wait(200e-6)


def replayed(folder: Path, config: ProbeConfig, files: Path) -> list[str]:
    """Replay a trace; return what left otherwise than the file has it, tick by tick, octet by octet.

    A life of its own: how a host's datagrams fall into the probe's time follows this machine's, so no two are the same.
    """
    made = list(packets(REPLAYED, SEED, 0.5))
    write(files / "trace.pcap", made)
    with joined(folder, files, CABLE if config.ports > 1 else LOOPBACK, config.link) as sent:
        result = sent.probe.replay(Trace.from_pcap(files / "trace.pcap"))
        wrong: list[str] = wrong_packets(sent.pins(0), made)
        return wrong + ["the replay is not complete"] * (not result.is_complete)


def differs(flagship: Flagship, frames: int) -> tuple[Life, int, list[str], list[str]]:
    """Return what the RTL did, rows of the truth, captures and registers that differ, and what was replayed wrongly."""
    config = flagship.config
    options = options_of(config)
    lives, replays = [], []
    for source in ("rtl", "yosys"):
        folder = build_board(flagship.board, source, **options)
        with TemporaryDirectory() as files:
            lives.append(live(folder, config, Path(files), frames))
        if config.replays:
            with TemporaryDirectory() as files:
                replays += [f"{source}, replay: {what}" for what in replayed(folder, config, Path(files))]
    rtl, netlist = lives
    same = min(len(rtl.rows), len(netlist.rows))
    wrong = int(np.sum(rtl.rows[:same] != netlist.rows[:same])) + abs(len(rtl.rows) - len(netlist.rows))
    names = [name for name, value in rtl.registers.items() if netlist.registers[name] != value]
    names += [name for name, octets in rtl.octets.items() if netlist.octets[name] != octets]
    return rtl, wrong, names, replays


@row("boards", is_long=True)
@pytest.mark.parametrize("flagship", FLAGSHIPS, ids=lambda one: str(one).replace(":", "_"))
def test_netlists(flagship: Flagship) -> Iterator[Figure]:
    """Rows of the truth and registers that differ, RTL beside Yosys' netlist, of a flagship; minutes each."""
    rtl, wrong, names, replays = differs(flagship, FRAMES)
    note(*(f"{flagship}: {name} differs" for name in names), *replays)
    of = str(flagship).replace(":", "_")
    yield Figure(f"{of}_rows", len(rtl.rows), "frames", FRAMES, is_least=True)
    yield Figure(f"{of}_rows_that_differ", wrong, "frames", 0)
    yield Figure(f"{of}_registers", len(rtl.registers), "", 50, is_least=True)
    yield Figure(f"{of}_captures_and_registers_that_differ", len(names), "", 0)
    if flagship.config.replays:
        yield Figure(f"{of}_of_{2 * REPLAYED}_replayed_wrong", len(replays), "frames", 0)
    if flagship.config.with_discipline:
        yield Figure(f"{of}_pps_edges", rtl.edges, "", 4, is_least=True)
