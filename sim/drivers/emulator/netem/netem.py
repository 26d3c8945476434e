# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The same configurations through netem and through the reference of the emulator, and what is said of each.

netem runs in the user-mode kernel of Debian's package, which is fetched into build/ and needs no root to run.
"""

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import TICK_NS
from liteprobe.cores.formats.emulate import DELAY_ENTRIES, FINE_BITS, ClassFlag
from liteprobe.sim.drivers.tools import debian
from liteprobe.sim.drivers.tools.processes import run_group
from liteprobe.sim.models.emulator.direction import AROUND, Direction
from liteprobe.sim.models.emulator.settings import Settings, bank_words

# Kernel -------------------------------------------------------------------------------------------

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
    """Names what is sent through some words of netem; "": none.

    Attributes
    ----------
    count, length : frames, and octets of each (without FCS).
    interval_us : 0: as fast as they can be sent.
    """
    name: str
    netem: str
    count: int
    interval_us: int
    length: int

@dataclass(frozen=True)
class Passed:
    """Holds the result, a value a frame.

    Attributes
    ----------
    sent_ns, received_ns : received: -1 of a frame that didn't arrive.
    order : numbers of the frames that arrived, as they did.
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

    Raises RuntimeError with the end of what the kernel says.
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


# Beside the reference -----------------------------------------------------------------------------

MS = 10**6 // TICK_NS # Ticks.
SHARE = 2**32
JITTER = 2 * MS
OCTET = 100 << FINE_BITS # 10 Mb/s.
SAME_NS = 1000 # Delays of two runs that differ by less are the same.

class Tells(Enum):
    """Names what a configuration is measured by."""
    DELAY = "delay"
    LOSS = "loss"
    INTERVAL = "interval"

@dataclass(frozen=True)
class Configuration:
    """Asks the same of netem and of a class of the emulator.

    Attributes
    ----------
    own, link : of the class and of the link.
    delays : of the direction's table (ticks).
    delay_ns : that is to be, on average.
    """
    asked: Asked
    own: Mapping[str, int]
    link: Mapping[str, int]
    delays: tuple[int, ...] = ()
    delay_ns: int = 0
    tells: Tells = Tells.DELAY

UNIFORM = tuple(round((n + 0.5) / DELAY_ENTRIES * 2 * JITTER) for n in range(DELAY_ENTRIES))
CONFIGURATIONS = (
    Configuration(Asked("nothing", "", 1000, 2000, 60), {}, {}),
    Configuration(Asked("delay", "delay 20ms", 1000, 2000, 60), {"delay": 20 * MS}, {}, delay_ns=20_000_000),
    Configuration(
        Asked("jitter", "delay 20ms 2ms", 2000, 1000, 60),
        {"delay": 20 * MS - JITTER, "flags": int(ClassFlag.JITTER)}, {}, UNIFORM, 20_000_000,
    ),
    Configuration(Asked("loss", "loss 1%", 50_000, 0, 60), {"loss_good": SHARE // 100}, {}, tells=Tells.LOSS),
    Configuration(
        Asked("gemodel", "loss gemodel 1% 10%", 50_000, 0, 60),
        {"loss_enter": SHARE // 100, "loss_leave": SHARE // 10, "loss_bad": SHARE - 1}, {}, tells=Tells.LOSS,
    ),
    Configuration(
        Asked("rate", "rate 10mbit limit 100", 400, 0, 1250), {"limit_frames": 100}, {"octet": OCTET}, tells=Tells.INTERVAL,
    ),
)

def ours(one: Configuration, sent_ns: NDArray[np.int64], seed: int) -> Passed:
    """Return what comes of frames that are sent at these times, as a line lets them follow each other."""
    settings = Settings(bank_words({0: {**one.own, "frame_seed_low": seed}}, one.link), delays=one.delays)
    direction = Direction(settings)
    ticks, free = [], 0
    for time_ns in (sent_ns - sent_ns[0]).tolist():
        ticks.append(max(time_ns // TICK_NS, free))
        free = ticks[-1] + one.asked.length + AROUND
    left = direction.finish([(tick, one.asked.length, 0) for tick in ticks], ticks[-1] + 1000 * MS)
    received = np.full(len(ticks), -1, np.int64)
    for tick, number in left:
        received[number] = tick * TICK_NS
    return Passed(np.array(ticks, np.int64) * TICK_NS, received, np.array([number for _, number in left], np.int64))

@dataclass(frozen=True)
class Summary:
    """Sums up two runs of a configuration; delays over what is asked, of the first.

    Attributes
    ----------
    median_us, deviation_us, most_us : of the error of the delay; most: of either sign.
    reordered : frames that came after one that was sent later.
    lost, correlation, burst : share; of a frame's loss with the next one's; mean frames that are lost in a row.
    gap_us : deviation of the intervals at which frames came.
    same : share of frames that both runs lose, or delay alike.
    """
    median_us: float
    deviation_us: float
    most_us: float
    reordered: int
    lost: float
    correlation: float
    burst: float
    gap_us: float
    same: float

def summary(one: Configuration, first: Passed, second: Passed) -> Summary:
    """Return what is said of two runs."""
    is_lost = first.received_ns < 0
    here = ~is_lost
    error = (first.received_ns - first.sent_ns)[here] - one.delay_ns
    newest = np.maximum.accumulate(first.order)
    lost = is_lost.astype(np.float64)
    bursts = int((np.diff(lost, prepend=0) == 1).sum())
    delays = [np.where(run.received_ns < 0, -1, run.received_ns - run.sent_ns) for run in (first, second)]
    both_lost = (delays[0] == -1) & (delays[1] == -1)
    both_here = (delays[0] != -1) & (delays[1] != -1)
    same = both_lost | (both_here & (np.abs(delays[0] - delays[1]) < SAME_NS))
    return Summary(
        median_us=float(np.median(error)) / 1000, deviation_us=float(error.std()) / 1000, most_us=float(np.abs(error).max()) / 1000,
        reordered=int((first.order < newest).sum()), lost=float(lost.mean()),
        correlation=float(np.corrcoef(lost[:-1], lost[1:])[0, 1]) if 0 < bursts and lost.std() else 0.0,
        burst=float(lost.sum()) / bursts if bursts else 0.0,
        gap_us=float(np.diff(np.sort(first.received_ns[here])).std()) / 1000, same=float(same.mean()),
    )
