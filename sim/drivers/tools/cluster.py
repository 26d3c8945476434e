# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A scheduler of Dask and workers on this machine, each a process of its own, which can be killed; and tasks for them."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

START_S = 120.0  # For a process to be there: the machine may be busy.
LOOK_S = 0.1
SETTINGS = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "60s", "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "3"}


class Cluster:
    """Runs a scheduler and workers while it is entered; each worker does one task at a time.

    ``folder``: for its files; ``path``: a folder that workers import from; ``address``: of the scheduler.
    """

    def __init__(self, folder: Path, path: Path | None = None) -> None:
        self._folder, self._ends = folder, ExitStack()
        self._environment = os.environ | SETTINGS | ({"PYTHONPATH": str(path)} if path else {})
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self.address = ""

    def __enter__(self) -> "Cluster":
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / "scheduler.json"
        options = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show", "--scheduler-file", str(file))
        self.scheduler = self._start("distributed.cli.dask_scheduler", *options)
        ends_s = time.monotonic() + START_S
        while not self.address:
            assert self.scheduler.poll() is None and time.monotonic() < ends_s, self.log()
            time.sleep(LOOK_S)
            if file.exists() and (text := file.read_text()).rstrip().endswith("}"):
                self.address = json.loads(text)["address"]
        return self

    def __exit__(self, *_: object) -> None:
        for one in (*self.workers.values(), self.scheduler):
            one.kill()
            one.wait()
        self._ends.close()

    def add(self, name: str, *options: str) -> None:
        """Start a worker, or another one of a name whose process has ended."""
        given = ("--name", name, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(self._folder))
        self.workers[name] = self._start("distributed.cli.dask_worker", self.address, *given, *options)

    def kill(self, name: str) -> None:
        """End a worker by SIGKILL."""
        self.workers[name].send_signal(signal.SIGKILL)
        self.workers[name].wait()

    def log(self) -> str:
        """Return what all of them have said."""
        return (self._folder / "log").read_text(errors="replace")

    def _start(self, module: str, *options: str) -> "subprocess.Popen[bytes]":
        log = self._ends.enter_context((self._folder / "log").open("ab"))
        command = [sys.executable, "-m", module, *options]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._environment)


def queue_delays(length: int, load: float, seed: int, log: str = "", frames: int = 20_000) -> dict[str, Any]:
    """Return mean and 99th percentile of the wait of frames in a queue with Poisson arrivals (ns), by Lindley's recursion.

    ``log``: a folder where each process writes which tasks it began, so that work done twice is seen.
    """
    if log:
        with (Path(log) / str(os.getpid())).open("a", encoding="utf-8") as file:
            file.write(f"{length},{load},{seed}\n")
    service_ns = (length + 24) * 8.0
    generator = np.random.default_rng([length, round(1000 * load), seed])
    steps = service_ns - generator.exponential(service_ns / load, frames)
    walk = np.concatenate([[0.0], np.cumsum(steps)])
    waits = np.sort(walk - np.minimum.accumulate(walk))
    return {"mean": float(waits.mean()), "p99": float(waits[int(0.99 * frames)])}


def draw(number: int, log: str, seconds: float = 0.0) -> dict[str, Any]:
    """Return what a seeded generator gives."""
    with (Path(log) / str(os.getpid())).open("a", encoding="utf-8") as file:
        file.write(f"{number}\n")
    time.sleep(seconds)
    return {"number": number, "drawn": random.Random(number).random()}


def fail(number: int) -> None:
    """Raise."""
    raise ValueError(f"{number} is odd")


def kill(number: int) -> None:
    """End the worker."""
    os.kill(os.getpid(), signal.SIGKILL)
