# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures what a board does at its RGMII pins, with PHYs as they are at power-up, and what margins its buses have on paper.

A board is its own top level, which would be synthesized, in the harness of the simulated probe (sim/pins): the 5A-75B as
``train`` (RTL8211F), the i9 as ``tester`` and the i9+, an Artix-7, as ``train`` (both B50612D). Time before a link is up, and
resets of PHYs, are short there. What is not simulated: 1000BASE-T itself, the delay of a PHY's line side, any delay of the
FPGA but that of received data.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from liteprobe.boards import BOARDS, board
from liteprobe.cores.formats import TAP_NS
from liteprobe.host import Probe, ProbeError, TrainProgram
from liteprobe.host.device.link.url import sim_url
from liteprobe.host.suites.eye import sweep
from liteprobe.sim.drivers.system import senders
from liteprobe.sim.drivers.tools.figures import Figure, row
from liteprobe.sim.pins.build import build_board

PROBES: dict[str, tuple[str, dict[str, Any]]] = {
    "5a_75b": ("colorlight_5a_75b", {}),
    "i9": ("colorlight_i9", {"preset": "tester", "with_streams": False}),
    "i9plus": ("colorlight_i9plus", {}),
}
CABLE_NS = 1000
CABLE = f"cable?delay={CABLE_NS}ns"
PHYS_NS = 14  # Of both models, from the pins of one port to those of the other (sim/pins/test_pins.py).
LENGTHS = (60, 64, 512, 1514, 4600, 9000)
PAUSE_NS = 10_000_000
PAUSE_FULL_NS = 1_000_000_000
SKEWS_PS = (-1000, 0, 437, 1000)
EYE_MIDDLE_PS = 1000  # Of the model without skew.
REFUSED = {
    "100_mbit": ("peer=100", "up at 100 Mb/s"),
    "no_cable": ("peer=0", "is down"),
    "no_clock": ("dead=1", "no receive clock"),
}


@contextmanager
def desk(words: str) -> Iterator[None]:
    """PHYs and cables such as ``peer=100`` (sim/pins/phy.h)."""
    os.environ["LITEPROBE_PHY"] = words
    try:
        yield
    finally:
        del os.environ["LITEPROBE_PHY"]


@row("boards")
def test_pins() -> Iterator[Figure]:
    """Trains of six lengths each way: starts on their octet, stamps those of the pins within a tick."""
    for name, (target, fields) in PROBES.items():
        folder = build_board(target, **fields)
        starts_off = lost = 0
        off_ns: set[int] = set()
        for length in LENGTHS:
            for transmit in (0, 1):
                program = TrainProgram(length=length, count=50, repeats=2, gap_ns=20_000)
                with TemporaryDirectory() as files:
                    made = senders.run(folder, CABLE, program, Path(files), "shared", transmit)
                sent = made.sent()
                starts_off += int(np.sum(np.diff(sent["sfd_tick"].astype(int)) != senders.slots(program)))
                lost += program.total - len(made.result.records)
                if not transmit:  # To port 0 management comes, too, and keeps frames waiting on the wire.
                    delays = made.result.records["rx_stamp"].astype(int) - made.result.records["tx_stamp"].astype(int)
                    off_ns |= set((delays - CABLE_NS - PHYS_NS).tolist())
        yield Figure(f"{name}_starts_off", starts_off, "frames", 0)
        yield Figure(f"{name}_lost", lost, "frames", 0)
        yield Figure(f"{name}_delay_off_pins_most", max(map(abs, off_ns)), "ns", 8)


@row("boards")
def test_links(is_full: bool) -> Iterator[Figure]:
    """A pause, on links that would sleep; links that can't be measured are refused with the reason."""
    pause_ns = PAUSE_FULL_NS if is_full else PAUSE_NS
    for name, (target, fields) in PROBES.items():
        folder = build_board(target, **fields)
        # A pause of 1 s is 125 million ticks of a board at its pins, some minutes of CPU: one will do.
        program = TrainProgram(length=300, count=5, repeats=2 if is_full else 3, gap_ns=pause_ns)
        with (
            TemporaryDirectory() as files,
            Probe(sim_url(CABLE, build=folder, truth=Path(files) / "t", link="shared")) as probe,
        ):
            records = probe.train(program).records
        delays = records["rx_stamp"].astype(int) - records["tx_stamp"].astype(int)
        yield Figure(f"{name}_late_after_{pause_ns // 1_000_000}ms", int(delays.max() - delays.min()), "ns", 0)
        for what, (words, reason) in REFUSED.items():
            said = ""
            with desk(words), Probe(sim_url(CABLE, build=folder, link="shared")) as probe:
                try:
                    probe.train(TrainProgram(length=60, count=20))
                except ProbeError as error:
                    said = str(error)
            yield Figure(f"{name}_{what}_refused", int(reason in said), "", 1, is_least=True)


@row("boards")
def test_eye(is_full: bool) -> Iterator[Figure]:
    """The middle of the eye, for skews of data against the clock on the board; ``--full``: each tap is tried."""
    folder = build_board("colorlight_5a_75b")
    step = 1 if is_full else 4
    for skew_ps in SKEWS_PS:
        words = f"skew_ps={skew_ps}" if skew_ps >= 0 else f"early_ps={-skew_ps}"
        with desk(words), Probe(sim_url(CABLE, build=folder, link="shared")) as probe:
            found = sweep(probe, count=4, step=step)
        off = abs(found.middle - (EYE_MIDDLE_PS - skew_ps) / 1000 / TAP_NS)
        yield Figure(f"eye_middle_off_at_{skew_ps}ps", off, "taps", 1 if is_full else 2)


@row("boards")
def test_margins() -> Iterator[Figure]:
    """The least margin of each board, by the worst case of data sheets (docs/design/io-timing.md)."""
    for name in BOARDS:
        yield Figure(
            f"{name}_least_margin", min(margin.worst_ns for margin in board(name).io_margins()), "ns", 0, is_least=True
        )
