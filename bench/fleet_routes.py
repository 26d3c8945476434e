# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A row of the bench "fleet": seeds of place and route through ``liteprobe sweep``, on workers of which one is killed meanwhile."""

import csv
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from liteprobe.sim.drivers.tools.cluster import Cluster
from liteprobe.sim.drivers.tools.figures import Figure, note, row
from liteprobe.sim.drivers.tools.processes import is_running, wait_for
from liteprobe.soc.build.bitstream import router_rounds

#: What is small enough to be routed in some minutes.
BUILD = (
    "build",
    "colorlight_i5",
    "--preset",
    "train",
    "--ports",
    "1",
    "--no-cpu",
    "--link",
    "uart",
    "--seed",
    "{seed}",
)
SEEDS = 2
LIMIT_S = 3600.0


@row("fleet", "routes", is_long=True)
def test_routes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Figure]:
    """Route two seeds of a small probe on two workers, kill (SIGKILL) the first one that routes, and run the same command again.

    Runs of nextpnr are counted by the folders that its processes work in, by /proc. Nothing is built before.
    """
    monkeypatch.setenv("LITEPROBE_BUILD", str(tmp_path / "build"))
    files = [tmp_path / "first.csv", tmp_path / "again.csv"]
    began_s = time.monotonic()
    with Cluster(tmp_path / "cluster") as cluster:
        for name in ("0", "1"):
            cluster.add(name)
        runs = Runs(tmp_path / "build" / "seeds")
        first = _sweep(tmp_path, files[0], "--cluster", cluster.address)
        found = wait_for(lambda: (first.poll() is not None and "ended") or runs.routing(), LIMIT_S)
        assert isinstance(found, int), f"{(tmp_path / 'first.csv.said').read_text()[-2000:]} {cluster.log()[-2000:]}"
        name = next(name for name, one in cluster.workers.items() if one.pid in _ancestors(found))
        gone_s = time.monotonic()
        cluster.kill(name)
        cluster.add(name)
        wait_for(lambda: not is_running(found), LIMIT_S)
        gone_s = time.monotonic() - gone_s
        wait_for(lambda: runs.have_ended(first), LIMIT_S)
        code, said = first.wait(), (tmp_path / "first.csv.said").read_text()
    took_s = time.monotonic() - began_s
    assert code == 0, said[-2000:]
    rows = list(csv.DictReader(files[0].open()))
    count = len(runs.found)
    again_s = time.monotonic()
    again = _sweep(tmp_path, files[1], "--workers", "1")
    wait_for(lambda: runs.have_ended(again), LIMIT_S)
    again_s = time.monotonic() - again_s
    note(*(f"# seed {one['seed']}: met {one['met']}, sys {one['sys MHz']} MHz, {one['lut4']} LUT4" for one in rows))
    note(f"# {took_s:.0f} s with the kill, {again_s:.0f} s again; a worker was killed while its nextpnr routed")
    yield Figure("seeds with a row", len({one["seed"] for one in rows if one.get("netlist")}), "", SEEDS, is_least=True)
    yield Figure("runs of nextpnr", count, "", SEEDS + 1)
    yield Figure("netlists made", len(list((tmp_path / "build" / "seeds").glob("*.json"))), "", 1)
    yield Figure("nextpnr of a killed worker ended after", gone_s, "s", 5)
    yield Figure("runs of nextpnr of the same command again", len(runs.found) - count, "", 0)
    yield Figure("tables that differ then", int(files[0].read_bytes() != files[1].read_bytes()), "", 0)


class Runs:
    """Knows which runs of nextpnr there were in a folder; ``found``: their folders."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.found: set[str] = set()

    def have_ended(self, sweep: "subprocess.Popen[bytes]") -> bool:
        """Look for runs that have begun since, and return whether the sweep that starts them has ended."""
        self._processes()
        return sweep.poll() is not None

    def routing(self) -> int | None:
        """Return a process of nextpnr that has begun to route."""
        return next((pid for pid, place in self._processes().items() if router_rounds(place / "nextpnr.log")), None)

    def _processes(self) -> dict[int, Path]:
        processes = {}
        for one in Path("/proc").iterdir():
            try:
                place = Path(os.readlink(one / "cwd"))
                words = (one / "cmdline").read_text().split("\0")
            except (OSError, ValueError):
                continue  # Ended meanwhile, or another user's.
            if place.is_relative_to(self._folder) and any("nextpnr" in Path(word).name for word in words[:2]):
                processes[int(one.name)] = place
        self.found |= {str(place) for place in processes.values()}
        return processes


def _ancestors(pid: int) -> list[int]:
    found = []
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        found.append(pid)
    return found


def _sweep(folder: Path, table: Path, *more: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "liteprobe.host.cli", "sweep", "--kept", str(folder / "kept"), "--csv", str(table)]
    with Path(f"{table}.said").open("w") as said:
        words = [*command, *more, "--over", f"seed=1-{SEEDS}", *BUILD]
        return subprocess.Popen(words, stdout=said, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
