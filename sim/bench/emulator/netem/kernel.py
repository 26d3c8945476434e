# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Frames through netem, in the user-mode kernel of Debian's package, which is fetched into build/ and needs no root to run."""

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from liteprobe.sim.bench.tools import debian
from liteprobe.sim.bench.tools.processes import run_group

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
PACKAGE = "user-mode-linux"
KERNEL = ROOT / "build" / "corpora" / PACKAGE
FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror")
MODULES = ("drivers/net/veth", "net/sched/sch_netem")
LIMIT_S = 300 # Of a run of the kernel.
NEEDED = ("gcc", "tc", "ip", "dpkg-deb", "timeout")

@dataclass(frozen=True)
class Asked:
    """What is sent through which words of netem; "": none.

    Attributes
    ----------
    name, netem : str
    count, length : int
        Frames, and octets of each (without FCS).
    interval_us : int
        0: as fast as they can be sent.
    """
    name: str
    netem: str
    count: int
    interval_us: int
    length: int

@dataclass(frozen=True)
class Passed:
    """What came of it, a value a frame.

    Attributes
    ----------
    sent_ns, received_ns : array of int
        Received: -1 of a frame that didn't arrive.
    order : array of int
        Numbers of the frames that arrived, as they did.
    """
    sent_ns: NDArray[np.int64]
    received_ns: NDArray[np.int64]
    order: NDArray[np.int64]

def lacking() -> str:
    """Return why there is no netem to measure on this machine; "": there is. Fetches the kernel if need be."""
    paths = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    missing = [name for name in NEEDED if not shutil.which(name, path=paths)]
    if missing:
        return f"no {' and no '.join(missing)}: install gcc and iproute2"
    if platform.machine() != "x86_64":
        return f"the user-mode kernel of {platform.machine()} isn't tried: use an x86_64 machine"
    try:
        debian.binary(PACKAGE, KERNEL)
    except (RuntimeError, OSError, ValueError, subprocess.CalledProcessError) as error:
        return f"the package {PACKAGE} can't be fetched: {error}"
    return ""

def compiled(folder: Path) -> None:
    """Compile what runs in the kernel, and what is loaded into it."""
    for words in (["-o", "probe", str(HERE / "probe.c")], ["-shared", "-fPIC", "-o", "xstate.so", str(HERE / "xstate.c")]):
        done = subprocess.run(["gcc", *FLAGS, *words], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"gcc failed:\n{done.stderr[-3000:]}")

def script(folder: Path, runs: Sequence[tuple[Asked, Path]]) -> str:
    """Return what the kernel does: it sees this machine's files, and writes into ``folder`` alone."""
    modules = [next(KERNEL.glob(f"usr/lib/uml/modules/*/kernel/{name}.ko")) for name in MODULES]
    lines = ["#!/bin/sh", "export PATH=/usr/sbin:/usr/bin:/sbin:/bin", "mount -t proc proc /proc"]
    lines += [f"mount -t hostfs -o {folder} none {folder}", f"cd {folder}"]
    lines += [f"./probe load {module}" for module in modules]
    lines += ["ip link add name va type veth peer name vb", "ip link set va up", "ip link set vb up", "sleep 1"]
    for asked, path in runs:
        if asked.netem:
            lines.append(f"tc qdisc replace dev va root netem {asked.netem} || exit")
        lines.append(f"./probe send {path} {asked.count} {asked.interval_us} {asked.length} || exit")
        if asked.netem:
            lines.append("tc qdisc del dev va root")
    return "\n".join([*lines, "echo complete > complete", "echo o > /proc/sysrq-trigger", "sleep 9"]) + "\n"

def read(path: Path, asked: Asked) -> Passed:
    """Return what a run wrote."""
    sent, received = np.full(asked.count, -1, np.int64), np.full(asked.count, -1, np.int64)
    order = []
    for line in path.read_text(encoding="ascii").splitlines():
        kind, number, time_ns = line.split()
        (sent if kind == "s" else received)[int(number)] = int(time_ns)
        if kind == "r":
            order.append(int(number))
    return Passed(sent, received, np.array(order, np.int64))

def measure(asked: Sequence[Asked]) -> list[Passed]:
    """Send everything that is asked, in one run of the kernel, in this order.

    Raises
    ------
    RuntimeError
        With the end of what the kernel says.
    """
    with TemporaryDirectory(dir=KERNEL.parent) as temporary:
        folder = Path(temporary)
        compiled(folder)
        runs = [(one, folder / f"run{number}") for number, one in enumerate(asked)]
        init = folder / "init"
        init.write_text(script(folder, runs), encoding="ascii")
        init.chmod(0o755)
        words = ["mem=512M", "rootfstype=hostfs", "rootflags=/", "ro", f"init={init}"]
        words += ["con=null", "con0=null,fd:1", "ssl=null", "quiet"]
        command = ["timeout", str(LIMIT_S), str(KERNEL / "usr" / "bin" / "linux.uml"), *words]
        environment = {**os.environ, "LD_PRELOAD": str(folder / "xstate.so"), "TMPDIR": str(folder), "HOME": str(folder)}
        done = run_group(command, folder, environment)
        if not (folder / "complete").exists():
            raise RuntimeError(f"the user-mode kernel didn't come to its end:\n{(done.stdout + done.stderr)[-2000:]}")
        return [read(path, one) for one, path in runs]
