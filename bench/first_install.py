# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Rows of the first hour: what each extra costs, and every command of the wheel where little is installed. Of ``people``:
from a clone to the first train.

The wheel is made of what git keeps, by way of the source distribution. It is installed into an environment of its own in a
folder with a space in its name, which the user who runs it may not write to: nobody, where the bench runs as root.
"""

import ctypes
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory, mkdtemp

import lock
import make_wheel

from liteprobe.cores.formats import DEFAULT_PRESET, PRESETS
from liteprobe.host.cli.main import COMMANDS
from liteprobe.sim.drivers.tools.figures import ROOT, Figure, note, row

#: Most that an environment may grow by (MB), beside what an empty one has; the plain one is what the issue asks for.
SIZES_MB = {"": 150, "report": 250, "parquet": 330, "packed": 185, "clock": 480, "sim": 400, "build": 560, "all": 1200}
INSTALL_S = 180
FIRST_TRAIN_S = 180
BOARD, ROUTE_S = "colorlight_5a_75b", 7200
NOBODY = 65534
SHELL = ("sh", "env", "dirname", "readlink", "ip")  # What the launcher and discover use; no compiler.
NOBODY_ANSWERS = "etherbone://127.0.0.1:9?timeout=0.05"
#: Each command, or a use of it that needs something, where nothing but the host is installed: exit code, and what is said.
PLAIN: dict[tuple[str, ...], tuple[int, str]] = {
    ("--version",): (0, ""),
    ("completion", "bash"): (0, ""),
    ("doctor", "--no-network"): (0, ""),
    ("discover", "127.0.0.1:9", "--wait", "50ms"): (3, "no probe answers"),
    ("info", "--probe", NOBODY_ANSWERS): (3, "no probe answers"),
    ("train", "--probe", NOBODY_ANSWERS): (3, "no probe answers"),
    ("train",): (1, "[sim]"),
    ("train", "--probe", NOBODY_ANSWERS, "--report", "r.html"): (1, "[report]"),
    ("send", "streams.yaml"): (1, "[sim]"),
    ("replay", "a.pcap", "--port", "0"): (1, "[sim]"),
    ("sets", "sets.yaml"): (1, "[sim]"),
    ("emulate", "--preset", "dsl"): (1, "[sim]"),
    ("owd", "--from", "sim://pair"): (1, "[sim]"),
    ("capture", "--write", "a.pcapng", "--duration", "1s"): (1, "[sim]"),
    ("capture", "--headers", "a.parquet", "--duration", "1s"): (1, "[parquet]"),
    ("monitor",): (1, "[sim]"),
    ("calibrate",): (1, "[sim]"),
    ("stop",): (1, "[sim]"),
    ("clock", "status"): (1, "[sim]"),
    ("clock", "plot", "log", "--out", "c.html"): (1, "[clock]"),
    ("phy",): (1, "[sim]"),
    ("bring-up", "--probe", NOBODY_ANSWERS): (3, "no probe answers"),
    ("regs", "list"): (1, "[sim]"),
    ("agent", "device.py"): (2, "device.py"),
    ("load", "colorlight_5a_75b", "train"): (1, "liteprobe-bitstreams"),
    ("build", "colorlight_5a_75b"): (1, "[build]"),
    ("firmware", "build"): (1, "ZEPHYR_BASE"),
    ("firmware", "flash", "--board", "colorlight_5a_75b"): (1, "[build]"),
    ("firmware", "state"): (1, "[sim]"),
    ("demo",): (1, "[sim]"),
}
SETS = "stream: {length: 60, probe: false, interval: 1us}\nsets: [{}]\n"
#: What is tried of the simulated probe once it is built.
SIMULATED = (
    ("info",),
    ("regs", "list"),
    ("stop",),
    ("clock", "status"),
    ("calibrate", "--count", "100"),
    ("train", "--length", "60", "--count", "100", "--report", "report.html", "--csv", "table.csv"),
)


#: Extras whose least versions are tried (build is left out: half a gigabyte of tools, which run apart), and what with them.
LEAST = ("sim", "parquet", "clock")
OFFICE = "sim://loopback?preset=monitor&play=office.pcapng"
USES_OF_LEAST = (
    ("train", "--length", "60,1514", "--count", "50", "--repeat", "3", "--report", "report.html", "--csv", "table.csv"),
    ("capture", "--probe", OFFICE, "--duration", "3ms", "--write", "a.pcapng", "--headers", "a.parquet"),
    ("monitor", "--probe", OFFICE, "--refresh", "2ms", "--rates", "1ms", "--once"),
    (
        "clock",
        "discipline",
        "--probe",
        "sim://loopback?pps=1ms",
        "--period",
        "1ms",
        "--duration",
        "100ms",
        "--log",
        "log",
    ),
    ("clock", "plot", "log", "--out", "clock.png"),
    ("completion", "bash"),
)


class Installed:
    """An environment with the wheel, and a home and a working folder that its user may write to.

    Parameters
    ----------
    folder : Path
        Where all of it goes.
    extra : str
        Of the package; "": none.
    with_cache : bool
        Whether pip may take what it has kept.
    versions : Path or None
        Pins that pip is to keep to.
    made : Path or None
        The wheel; None: the one for all platforms.
    """

    def __init__(
        self, folder: Path, extra: str, with_cache: bool = True, versions: Path | None = None, made: Path | None = None
    ) -> None:
        self.folder = folder / f"a {extra or 'plain'} environment"
        self.home, self.work, self.bare = (folder / f"{extra} {name}" for name in ("home", "work", "bin"))
        # Compiled Python goes beside its sources, as for a user, not into the cache of this clone.
        usual = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        subprocess.run([sys._base_executable, "-m", "venv", str(self.folder)], check=True, env=usual)  # type: ignore[attr-defined]
        empty = octets(self.folder)
        made = made or distribution()
        asked = f"{made}[{extra}]" if extra else str(made)
        options = [] if with_cache else ["--no-cache-dir"]
        options += ["--constraint", str(versions)] if versions else []
        started = time.monotonic()
        command = [str(self.folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *options, asked]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL, env=usual)
        self.seconds = time.monotonic() - started
        self.megabytes = (octets(self.folder) - empty) / 1e6
        for own in (self.home, self.work):
            own.mkdir()
            own.chmod(0o777)
        self.bare.mkdir()
        for name in SHELL:
            if found := shutil.which(name):
                (self.bare / name).symlink_to(found)
        self.files = self._files()
        for path in [self.folder, *self.folder.rglob("*")]:
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & ~0o222)

    @property
    def written(self) -> int:
        """Return how many files of the environment have come, gone or changed since it was installed."""
        return len(self._files() ^ self.files)

    def run(
        self, arguments: Sequence[str], is_bare: bool = False, most_s: float = 900, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run ``liteprobe`` in the working folder; ``is_bare``: with hardly a program on PATH, and no compiler."""
        as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
        path = f"{self.folder / 'bin'}:{self.bare if is_bare else os.defpath}"
        done: subprocess.CompletedProcess[str] = subprocess.run(
            [str(self.folder / "bin" / "liteprobe"), *arguments],
            cwd=self.work,
            env={"PATH": path, "HOME": str(self.home), "LANG": "C.UTF-8", **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=most_s,
            **as_nobody,  # type: ignore[call-overload]
        )
        return done

    def _files(self) -> set[tuple[str, int, int]]:
        found = [path for path in self.folder.rglob("*") if path.is_file()]
        return {(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in found}


@row("first-hour")
def test_install(is_full: bool) -> Iterator[Figure]:
    """Return size and time of each extra."""
    for extra, most in SIZES_MB.items():
        with installed(extra, not is_full) as there:
            yield Figure(f"size_{extra or 'plain'}", there.megabytes, "MB", most)
            yield Figure(f"install_{extra or 'plain'}", there.seconds, "s", INSTALL_S)


@row("first-hour")
def test_wheel() -> Iterator[Figure]:
    """Run every command where nothing but the host is installed: it works, or says in a line what to type."""
    with installed("") as there:
        uses = PLAIN | {(name, "--help"): (0, "") for name in COMMANDS}
        (there.work / "log").touch()
        for name in ("streams.yaml", "sets.yaml", "a.pcap"):
            shutil.copy(sample(name), there.work / name)
        right = 0
        for arguments, (code, said) in uses.items():
            done = there.run(arguments, is_bare=True)
            is_right = done.returncode == code and said in done.stderr and (code == 0 or is_line(done.stderr))
            right += is_right
            if not is_right:
                note(f"liteprobe {' '.join(arguments)}: {done.returncode}, {done.stderr[-400:]!r}")
        without = {name for name in COMMANDS if not any(use[0] == name and use[1:] != ("--help",) for use in uses)}
        yield Figure("uses_of_commands", len(uses), "uses", len(COMMANDS), is_least=True)
        yield Figure("commands_that_were_not_used", len(without), "commands", 0)
        yield Figure("uses_that_work_or_name_what_to_type", 100 * right / len(uses), "%", 100, is_least=True)
        yield Figure("files_written_into_the_environment", there.written, "files", 0)


@row("first-hour")
def test_train() -> Iterator[Figure]:
    """Go from nothing to the first train with the extra sim; then what else a simulated probe can be asked."""
    with installed("sim") as there:
        done = there.run(["train"], is_bare=True)
        is_named = done.returncode == 1 and "there is no g++: type  apt-get install g++" in done.stderr
        yield Figure("no_compiler_is_named", float(is_named), "of 1", 1, is_least=True)
        done, seconds = timed(there, ["train", "--probe", "sim://loopback", "--length", "60,1514", "--count", "100"])
        is_right = done.returncode == 0 and len(re.findall(r"1000\.000", done.stdout)) == 6
        print(done.stderr, file=sys.stderr, end="")
        yield Figure("first_train_is_right", float(is_right), "of 1", 1, is_least=True)
        yield Figure("first_train", seconds, "s", FIRST_TRAIN_S)
        yield Figure("first_train_with_install", there.seconds + seconds, "s", FIRST_TRAIN_S)
        failed = [use for use in SIMULATED if there.run(use).returncode]
        print(*(f"failed: {' '.join(use)}\n" for use in failed), file=sys.stderr, sep="", end="")
        yield Figure("simulated_commands_that_fail", len(failed), "commands", 0)
        there.home.chmod(0o555)
        done = there.run(["doctor", "--no-network"], XDG_CACHE_HOME=str(there.home / "no"), TMPDIR=str(there.work))
        is_named = done.returncode == 0 and f"what is built goes to {there.work}/liteprobe-" in done.stderr
        there.home.chmod(0o777)
        yield Figure("read_only_home_is_named", float(is_named), "of 1", 1, is_least=True)
        yield Figure("files_written_into_the_environment", there.written, "files", 0)


@row("first-hour")
def test_build(is_full: bool) -> Iterator[Figure]:
    """Write a board's Verilog with the extra build; products go to the working folder. ``--full``: to the bitstream, too."""
    with installed("build") as there:
        done, seconds = timed(there, ["build", BOARD, "--no-compile"])
        print(done.stderr[-400:], file=sys.stderr, end="")
        folder = there.work / "build" / BOARD
        yield found(folder, "build_products", "csr.json", "gateware/liteprobe.v")
        yield Figure("build_no_compile", seconds, "s", INSTALL_S)
        if is_full:
            done, seconds = timed(there, ["build", BOARD], ROUTE_S)
            print(done.stdout, done.stderr[-400:], file=sys.stderr, sep="", end="")
            yield Figure("bitstream_exit_code", done.returncode, "", 0)
            yield found(folder, "bitstream_products", "report.json", "liteprobe.bit", "liteprobe.svf")
            yield Figure("bitstream", seconds, "s", ROUTE_S)
        yield Figure("files_written_into_the_environment", there.written, "files", 0)


@row("first-hour")
def test_lowest() -> Iterator[Figure]:
    """Install the least version of each package that the ranges of pyproject.toml allow, and measure with them."""
    with TemporaryDirectory() as folder:
        pins = least(Path(folder))
        with installed(",".join(LEAST), versions=pins) as there:
            shutil.copy(ROOT / "docs" / "examples" / "office.pcapng", there.work)
            failed = []
            for use in USES_OF_LEAST:
                done = there.run(use)
                if done.returncode or "Warning" in done.stderr:
                    failed.append(use)
                    note(f"failed: {' '.join(use)}: {done.stderr[-400:]}")
            yield Figure("uses_that_fail_with_the_least_versions", len(failed), f"of {len(USES_OF_LEAST)}", 0)


# Clone to first train -----------------------------------------------------------------------------

FIRST = ("liteprobe", "train", "--length", "60,1514", "--count", "100")
FIRST_S, PRESET_S = 45, 40  # On two idle cores.
MOMENTS, SEED = 5, 39
BUSY = 1.5  # Load above which a wall clock says nothing.
PR_SET_CHILD_SUBREAPER = 36
MARK = "LITEPROBE_BENCH_OF"  # In the environment of each process that a clone has started.


@dataclass(frozen=True)
class Took:
    """Holds how a command ended, what it said, and what it took (s)."""

    code: int
    output: str
    wall_s: float
    cpu_s: float


class Clone:
    """A clone of what is committed, with nothing set up; commands run as a new user's do.

    ``pip_cache``: None: an empty one.
    """

    def __init__(self, folder: Path, pip_cache: str | None) -> None:
        self.folder = folder / "liteprobe"
        subprocess.run(["git", "clone", "--quiet", "--depth", "1", f"file://{ROOT}", str(self.folder)], check=True)
        taken = ("PYTHON", "XDG_", "LITEPROBE_", "VIRTUAL_ENV", "PIP_CACHE_DIR")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(taken)}
        self.environment |= {MARK: str(folder)} | ({"PIP_CACHE_DIR": pip_cache} if pip_cache else {})

    def run(self, *arguments: str, stop: tuple[float, int] | None = None) -> Took:
        """Run ``./run``; ``stop``: after so many seconds it gets this signal, SIGKILL as all that it has started does."""
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        before, began = _children_s(), time.monotonic()
        process = subprocess.Popen(
            ["./run", *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=stop and stop[0])
        except subprocess.TimeoutExpired:
            assert stop
            for number in self._started() if stop[1] == signal.SIGKILL else [process.pid]:
                with suppress(ProcessLookupError):
                    os.kill(number, stop[1])
            output, _ = process.communicate()
            with suppress(ChildProcessError):  # Whose parents were killed: their time counts, too.
                while True:
                    os.waitpid(-1, 0)
        return Took(process.returncode, output, time.monotonic() - began, _children_s() - before)

    def _started(self) -> list[int]:
        """Return the processes that this clone's commands have started."""
        mark, found = f"{MARK}={self.environment[MARK]}".encode(), []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if mark in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
        return found


@contextmanager
def cloned(is_cold: bool = False) -> Iterator[Clone]:
    """Clone; the pip cache is this environment's, or an empty one."""
    with TemporaryDirectory(prefix="liteprobe-first-") as folder:
        yield Clone(Path(folder), None if is_cold else os.environ.get("PIP_CACHE_DIR") or str(ROOT / "build/cache/pip"))


def _children_s() -> float:
    """Return the CPU time of all that has been run (s)."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def is_first_train(took: Took) -> bool:
    """Whether a command has measured what `FIRST` asks for: the line rate, six times."""
    return took.code == 0 and len(re.findall(r"1000\.000", took.output)) == 6


def in_time(name: str, took: Took, most_s: float) -> Iterator[Figure]:
    """Return what a command took: CPU time, at most what two cores have in ``most_s``; the wall clock where nobody else runs."""
    yield Figure(f"{name}_cpu", took.cpu_s, "s", 2 * most_s)
    if (load := os.getloadavg()[0]) > os.cpu_count() * BUSY:  # type: ignore[operator]
        note(f"  excluded: {name} by the wall clock, {took.wall_s:.0f} s, for others run here (load {load:.1f})")
    else:
        yield Figure(f"{name}_wall", took.wall_s, "s", most_s)


@row("people")
def test_first(is_full: bool) -> Iterator[Figure]:
    """Go from a clone to the first train, pip's cache warm; then to each further preset. ``--full``: with an empty cache, too."""
    for is_cold in (False, True)[: 1 + is_full]:
        with cloned(is_cold) as clone:
            kind = "cold" if is_cold else "warm"
            took = clone.run(*FIRST)
            note(*(f"  {line}" for line in took.output.splitlines() if line.startswith(("[setup", "liteprobe:"))))
            yield Figure(f"first_train_is_right_{kind}", float(is_first_train(took)), "of 1", 1, is_least=True)
            yield from in_time(f"clone_to_first_train_{kind}", took, FIRST_S)
            for preset in () if is_cold else [name for name in PRESETS if name != DEFAULT_PRESET]:
                took = clone.run("python", "-m", "liteprobe.sim.system.build", "--preset", preset)
                yield Figure(f"{preset}_is_built", float(took.code == 0), "of 1", 1, is_least=True)
                yield from in_time(preset, took, PRESET_S)


@row("people")
def test_interrupted() -> Iterator[Figure]:
    """Go from a clone to the first train, interrupted at random moments: killed, and by Ctrl-C; then on a disk that is full."""
    with cloned() as clone:
        whole = clone.run(*FIRST)
    moments = Random(SEED)
    with cloned() as clone:
        spent = []
        for number in range(MOMENTS):
            how = (signal.SIGKILL, signal.SIGINT)[number % 2]
            # What is done is not done again, so each moment lies in what is left.
            spent.append(clone.run(*FIRST, stop=(moments.uniform(0.05, 0.3) * whole.wall_s, how)))
            note(f"  {how.name} after {spent[-1].wall_s:.1f} of {whole.wall_s:.0f} s")
        spent.append(clone.run(*FIRST))
        yield Figure("train_after_interruptions_is_right", float(is_first_train(spent[-1])), "of 1", 1, is_least=True)
        yield Figure("interruptions", sum(took.code != 0 for took in spent), "times", MOMENTS, is_least=True)
        most = 100 * (1 + MOMENTS / 4)  # A step of a quarter of the time is the longest, and is lost each time.
        yield Figure("cpu_of_an_uninterrupted_one", 100 * sum(one.cpu_s for one in spent) / whole.cpu_s, "%", most)
        yield from _on_a_full_disk(clone)


def _on_a_full_disk(clone: Clone) -> Iterator[Figure]:
    """Build where there are 4 MB, then where there is space."""
    with TemporaryDirectory() as place:
        mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "liteprobe-bench", place]
        if subprocess.run(mount, check=False, capture_output=True).returncode:
            note("  excluded: a full disk, which only root can make here")
            return
        try:
            clone.environment["LITEPROBE_BUILD"] = place
            took = clone.run(*FIRST)
            is_named = took.code == 1 and "No space left on device" in took.output and "Traceback" not in took.output
            if not is_named:
                note(took.output[-1000:])
            yield Figure("full_disk_is_named", float(is_named), "of 1", 1, is_least=True)
            subprocess.run(["mount", "-o", "remount,size=200m", place], check=True)
            yield Figure("train_after_a_full_disk", float(is_first_train(clone.run(*FIRST))), "of 1", 1, is_least=True)
        finally:
            subprocess.run(["umount", "-l", place], check=True)


@row("people", is_long=True)
def test_wheel_of_this_platform() -> Iterator[Figure]:
    """Install the wheel with simulated probes and nothing else, offline: trains where there is no compiler, no Migen, no PATH."""
    with TemporaryDirectory() as folder:
        made = make_wheel.make(Path(folder), Path(folder) / "place")
        yield Figure("wheel_size", made.stat().st_size / 1e6, "MB", 30)
        with installed("", made=made) as there:
            yield Figure("install_wheel", there.seconds, "s", INSTALL_S)
            done, seconds = timed(there, ["train", "--length", "60,1514", "--count", "100"], is_bare=True)
            is_right = done.returncode == 0 and len(re.findall(r"1000\.000", done.stdout)) == 6
            yield Figure("train_without_a_compiler_is_right", float(is_right), "of 1", 1, is_least=True)
            yield Figure("train_without_a_compiler", seconds, "s", FIRST_S)
            failed = [use for use in SIMULATED[:-1] if there.run(use, is_bare=True).returncode]
            note(*(f"failed: {' '.join(use)}" for use in failed))
            yield Figure("simulated_commands_that_fail_without_a_compiler", len(failed), "commands", 0)
            yield Figure("files_written_into_the_environment_of_the_wheel", there.written, "files", 0)


# # #


def least(folder: Path) -> Path:
    """Have uv choose the least versions, and return the file of pins."""
    venv.create(folder / "uv", with_pip=True)
    subprocess.run([str(folder / "uv" / "bin" / "python"), "-m", "pip", "install", "--quiet", lock.UV], check=True)
    pins = folder / "least.txt"
    command = [str(folder / "uv" / "bin" / "uv"), *lock.RESOLVE, "--resolution", "lowest-direct", "--quiet"]
    command += [*(f"--extra={extra}" for extra in LEAST), "--output-file", str(pins)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return pins


@cache
def distribution() -> Path:
    """Return the wheel, made of what git keeps by way of the source distribution."""
    folder = Path(mkdtemp(prefix="liteprobe-wheel-"))
    folder.chmod(0o755)
    clone = folder / "clone"
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in listed.splitlines():
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, clone / name)
    for hook, source in (("build_sdist", clone), ("build_wheel", None)):
        if source is None:
            shutil.unpack_archive(next(folder.glob("*.tar.gz")), folder)
            source = next(folder.glob("liteprobe-*/"))
        script = f"from setuptools import build_meta; build_meta.{hook}({str(folder)!r})"
        subprocess.run([sys.executable, "-c", script], cwd=source, check=True, stdout=subprocess.DEVNULL)
    return next(folder.glob("*.whl"))


@contextmanager
def installed(
    extra: str, with_cache: bool = True, versions: Path | None = None, made: Path | None = None
) -> Iterator[Installed]:
    """Install the wheel with an extra; the environment is taken away again."""
    with TemporaryDirectory(prefix="liteprobe first hour ") as folder:
        Path(folder).chmod(0o755)
        there = Installed(Path(folder), extra, with_cache, versions, made)
        try:
            yield there
        finally:
            for path in [there.folder, *there.folder.rglob("*")]:
                if not path.is_symlink():
                    path.chmod(path.stat().st_mode | 0o200)


def found(folder: Path, name: str, *products: str) -> Figure:
    """Return how many of some products are in a folder."""
    return Figure(
        name, sum((folder / one).is_file() for one in products), f"of {len(products)}", len(products), is_least=True
    )


def octets(folder: Path) -> int:
    """Return what the files of a folder hold, each counted once."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def timed(
    there: Installed, arguments: Sequence[str], most_s: float = 900, is_bare: bool = False
) -> tuple[subprocess.CompletedProcess[str], float]:
    """Run ``liteprobe``, and return what it said and how long it took (s)."""
    started = time.monotonic()
    done = there.run(arguments, is_bare, most_s)
    return done, time.monotonic() - started


def is_line(said: str) -> bool:
    """Whether what was said on stderr is one line of the program's own."""
    return said.startswith("liteprobe: ") and said.count("\n") == 1


def sample(name: str) -> Path:
    """Return an input for a command, made where there is none."""
    path = Path(mkdtemp()) / name
    if name == "a.pcap":  # One frame of 60 octets, times in nanoseconds.
        header = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
        path.write_bytes(header + struct.pack("<IIII", 0, 0, 60, 60) + bytes(60))
    else:
        source = ROOT / "docs" / "examples" / "imix.yaml"
        path.write_text(source.read_text() if name == "streams.yaml" else SETS)
    return path
