# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Row ``stops`` of the bench ``truth``: commands that are stopped at random instants, whose disk is full, whose reader has gone.

A command runs in a process that is forked from this one, with all modules loaded, so that a stop costs little more than its
simulated probe. From its files, and from what is in them by readers of their own, the sums are made: what was sent was received or
lost, what was to be captured is in the file or counted as missing.
"""

import contextlib
import faulthandler
import json
import os
import random
import signal
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq
import pytest
from scapy.utils import RawPcapNgReader

from liteprobe.host.base import interrupt
from liteprobe.host.cli import main as cli
from liteprobe.host.cli.__main__ import program
from liteprobe.sim.drivers.replay.capture_files import Packet, pcap
from liteprobe.sim.drivers.system import signals
from liteprobe.sim.drivers.tools.figures import Figure, Size, note, row
from liteprobe.sim.drivers.tools.processes import pass_on_signals
from liteprobe.sim.system.build import build_probe

SEED = 20261126
SIGNALS = {"int": signal.SIGINT, "term": signal.SIGTERM, "hup": signal.SIGHUP}
KINDS = (*SIGNALS, "full", "pipe")
SETS = """stream: {length: 60, vlan: [5], probe: false, interval: 10us}
entry: ipv4.destination
table: [198.18.0.9, 198.18.0.10]
repeats: 3
sets:
"""
DEVICE = "name: queue\nallow: [/proc/loadavg]\nvalues:\n  load: {read: /proc/loadavg, type: text}\n"


@dataclass(frozen=True)
class Command:
    """A command with the preset of its probe; what makes it end by itself; its outputs; the time (s) until it has begun."""

    words: str
    preset: str = "train"
    short: str = ""
    outputs: str = "--json o.json"
    begins_s: float = 1.0
    is_endless: bool = False  # Ctrl-C is its end.


LOOP, CABLE = "--probe sim://loopback?build={build}", "--probe sim://cable?delay=1us&build={build}"
PLAYED = "--probe sim://loopback?build={build}&play=p.pcap,p.pcap"
COMMANDS = {
    "train": Command(f"train {LOOP} --length 60,512 --count 100 --repeat {{many}}", short="2", outputs="--json o.json --csv o.csv"),
    "calibrate": Command(f"calibrate {LOOP} --repeat {{many}}", short="2"),
    "owd": Command("owd --any-clock --from sim://pair?pps=1ms&build={build} --count 100 --repeat {many}", short="2"),
    "send": Command(f"send {LOOP} --rate 300M --length 64-1514 --count {{many}}", "tester", "50"),
    "replay": Command(f"replay p.pcap {CABLE} --loop {{many}}", "replay", "1"),
    "replay_capture": Command(f"replay p.pcap {CABLE} --loop {{many}}", "replay", "1", "--json o.json --capture c.pcapng"),
    "sets": Command(f"sets s.yaml {CABLE} --count {{many}}", "replay", "100", "--json o.json --capture c.pcapng"),
    "capture": Command(
        f"capture {PLAYED} {{many}}", "monitor", "--duration 3ms", "--json o.json -w c.pcapng --headers h.parquet", is_endless=True
    ),
    "capture_stdout": Command(f"capture {PLAYED} -w - {{many}}", "monitor", "--duration 3ms", is_endless=True),
    "monitor": Command(f"monitor {PLAYED} --refresh 1ms {{many}}", "monitor", "--once", is_endless=True),
    "metrics": Command(f"monitor {PLAYED} --refresh 1ms --metrics 0 {{many}}", "monitor", "--once", is_endless=True),
    "emulate": Command(f"emulate --preset dsl {CABLE} {{many}}", "emulator", "--duration 3ms", is_endless=True),
    "clock": Command(f"clock status {LOOP} {{many}}", short=" "),
    "discipline": Command(
        "clock discipline --probe sim://loopback?pps=1ms&build={build} --duration {many}", short="30ms", outputs="--log o.csv"
    ),
    "agent": Command("agent run device.yaml --address tcp://127.0.0.1:0", outputs="", begins_s=0.5, is_endless=True),
}  # fmt: skip
MANY = {
    "replay": "0",
    "replay_capture": "0",
    "clock": "--duration 10s",
    "send": "1000000",
    "sets": "20000",
    "discipline": "100s",
}
OUTPUT_FILES = ("o.json", "o.csv", "c.pcapng", "h.parquet")


@row("truth", "stops")
@pytest.mark.parametrize("name", COMMANDS)
def test_stops(name: str, size: Size) -> Iterator[Figure]:
    """Yield how many ends of a command were not what they are to be, by their exit codes, files and sums."""
    pass_on_signals()
    command, chance = COMMANDS[name], random.Random(f"{name} {SEED}")
    for each in cli.COMMANDS:
        cli.module_of(each)
    build = build_probe("own", preset=command.preset)
    before = signals.shared_memory()
    codes: Counter[str] = Counter()
    wrong = 0
    stops = size.of(5, 20, 200)
    with TemporaryDirectory() as text:
        folder = Path(text)
        (folder / "p.pcap").write_bytes(pcap(_packets()))
        (folder / "s.yaml").write_text(SETS + "".join(f"  - {{vlan: {number % 4096}}}\n" for number in range(20_000)))
        (folder / "device.yaml").write_text(DEVICE)
        for number in range(stops):
            kind = KINDS[number % len(KINDS)]
            for file in OUTPUT_FILES:
                (folder / file).unlink(missing_ok=True)
            stop = Stop.of(kind, command, chance, name)
            ended = stopped(stop, command, folder, str(build), name)
            codes[f"{kind}:{ended.code}"] += 1
            if found := [*faults(stop, command, ended), *sums(name, folder, ended)]:
                wrong += 1
                note(f"# {name} {number} {stop}: {'; '.join(found)}")
    note(f"# {name}, seed {SEED}: {stops} stops, exit codes {dict(sorted(codes.items()))}")
    yield Figure(f"stops_{name}_wrong", wrong, "ends", 0)
    yield Figure(f"stops_{name}_shared_memory_left", len(signals.shared_memory() - before), "files", 0)


@dataclass(frozen=True)
class Stop:
    """Says how a command is stopped: by a signal or a reader that goes, after so long (s); ``full``: outputs on a full disk."""

    kind: str
    after_s: float
    again_s: float | None = None
    full: tuple[str, ...] = ()

    @classmethod
    def of(cls, kind: str, command: Command, chance: random.Random, name: str) -> "Stop":
        """Return a random stop of a kind."""
        after_s = chance.uniform(0, chance.choice([command.begins_s / 4, 2 * command.begins_s]))
        again_s = chance.uniform(0, 0.5) if chance.random() < 0.25 else None
        files = [word for word in command.outputs.split() if not word.startswith("-")]
        full = tuple(chance.sample(files, chance.randint(1, len(files)))) if kind == "full" and files else ()
        return cls(kind, after_s, again_s, full)


def stopped(stop: Stop, command: Command, folder: Path, build: str, name: str) -> signals.Ended:
    """Run the command, and stop it."""
    many = MANY.get(name, "" if command.is_endless else "3000")
    if stop.kind in ("full", "pipe") and command.short:
        many = command.short
    words = [word.format(build=build, many=many) for word in f"{command.words} {command.outputs}".split()]
    words = [part for word in words for part in word.split()]
    words = ["/dev/full" if word in stop.full else word for word in words]
    mark, (reads, writes) = uuid.uuid4().hex, os.pipe()
    signal.pthread_sigmask(
        signal.SIG_BLOCK, interrupt.SIGNALS
    )  # The command lets them through once it has its handlers.
    pid = os.fork()
    if not pid:
        os.close(reads)  # A pipe whose own writer could read it would never be broken.
        _be_command(words, folder, mark, writes)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, interrupt.SIGNALS)
    os.close(writes)
    ends_s = None if command.short or stop.kind not in ("full", "pipe") else 2 * command.begins_s
    code, went_on_s, out = _follow(pid, stop, reads, ends_s)
    ends = time.monotonic() + signals.LEAVE_S
    while (left := signals._running(mark)) and time.monotonic() < ends:
        time.sleep(0.02)
    for number in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
    return signals.Ended(code, out, (folder / "stderr").read_text(), list(left.values()), went_on_s)


def _be_command(words: Sequence[str], folder: Path, mark: str, writes: int) -> None:
    """Be the command line in this process, which ends here."""
    code = 99
    try:
        os.setsid()
        os.chdir(folder)
        os.environ[signals.MARK] = mark
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        errors = os.open("stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        for source, target in ((os.open(os.devnull, os.O_RDONLY), 0), (writes, 1), (errors, 2)):
            os.dup2(source, target)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        faulthandler.register(signal.SIGUSR1, file=2)  # Of a command that hangs we read where.
        sys.argv = ["liteprobe", *words]
        code = program()
    except BaseException as error:
        os.write(2, f"Traceback: {type(error).__name__}: {error}".encode())
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(code)


def _follow(pid: int, stop: Stop, reads: int, ends_s: float | None) -> tuple[int, float | None, str]:
    """Stop the process, and return its exit code, how long it went on (s), and what it printed.

    ``ends_s``: when Ctrl-C ends it, where nothing else would.
    """
    began, octets, is_open = time.monotonic(), b"", True
    os.set_blocking(reads, False)
    moments = [stop.after_s] + ([stop.after_s + stop.again_s] if stop.again_s is not None else [])
    since_s = None
    hang_s = signals.HANG_S * max(1, 3 * os.getloadavg()[0] / (os.cpu_count() or 1))  # Others use the machine, too.
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if is_open:
            with contextlib.suppress(BlockingIOError):
                octets += os.read(reads, 1 << 20)
        now_s = time.monotonic() - began
        if done:
            break
        if moments and now_s >= moments[0] and stop.kind != "full":
            moments.pop(0)
            since_s = since_s or now_s
            if stop.kind != "pipe":
                os.kill(pid, SIGNALS[stop.kind])
            elif is_open:
                os.close(reads)
                is_open = False
        if ends_s is not None and now_s > ends_s:
            os.kill(pid, signal.SIGINT)
            ends_s = None
        if now_s > hang_s:
            os.kill(pid, signal.SIGUSR1)
            time.sleep(1)
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)
    if is_open:
        os.close(reads)
    return (
        os.waitstatus_to_exitcode(status),
        None if since_s is None else now_s - since_s,
        octets.decode("utf-8", "replace"),
    )


def faults(stop: Stop, command: Command, ended: signals.Ended) -> list[str]:
    """Return what is wrong with an end: words, processes, exit code."""
    wrong = [f"{ended.err!r} has {word}" for word in ("Traceback", "Exception ignored", "leaked") if word in ended.err]
    wrong += [f"still runs: {one}" for one in ended.left]
    number = SIGNALS.get(stop.kind)
    if number is None:
        right = {1} if stop.full else {0, 1}
    else:
        right = {128 + number}
        if (
            ended.went_on_s is None
            or ended.went_on_s < signals.AT_EXIT_S
            or (command.is_endless and number == signal.SIGINT)
        ):
            right |= {0}
        if stop.after_s < signals.START_S:
            right |= {-number}
    return wrong + [f"exit code {ended.code}, {ended.err!r}"] * (ended.code not in right)


def sums(name: str, folder: Path, ended: signals.Ended) -> list[str]:
    """Return what does not add up in the files that are there; a file is whole, or there is none."""
    content: Any = {}
    if (folder / "o.json").exists():
        text, is_by_line = (folder / "o.json").read_text(), name in ("monitor", "metrics", "clock")
        content = [json.loads(line) for line in text.splitlines()] if is_by_line else json.loads(text)
    wrong = []
    if name in ("train", "owd", "send") and content:
        wrong = [
            f"sent {one['sent']}, received {one['received']}, lost {one['lost']}"
            for one in content["rows" if name != "send" else "streams"]
            if one["sent"] != one["received"] + one["lost"] or one["lost"]
        ]
    captured = content.get("capture") if name in ("replay_capture", "sets") else content if name == "capture" else None
    if captured:
        accepted = sum(port["accepted"] for port in captured["ports"])
        missing = sum(captured["dropped_by_probe"].values()) + captured["filtered"]
        if accepted != captured["frames"] + missing:
            wrong.append(f"accepted {accepted}, frames {captured['frames']}, missing {missing}")
        unwritten = captured["unwritten"]
        for file, count in (("c.pcapng", _packets_in(folder)), ("h.parquet", _rows_in(folder))):
            without = captured["without_header"] if file == "h.parquet" and count is not None else 0
            if count is not None and count + without + unwritten.get(file, 0) != captured["frames"]:
                wrong.append(f"{file} holds {count} of {captured['frames']}, unwritten {unwritten}")
        if name in ("replay_capture", "sets") and content["ports"][0]["frames"] != captured["frames"]:
            wrong.append(f"sent {content['ports'][0]['frames']}, captured {captured['frames']}")
    return wrong


def _packets_in(folder: Path) -> int | None:
    path = folder / "c.pcapng"
    if not path.exists():
        return None
    with RawPcapNgReader(str(path)) as reader:
        return sum(1 for _ in reader)


def _rows_in(folder: Path) -> int | None:
    path = folder / "h.parquet"
    return int(pq.read_metadata(path).num_rows) if path.exists() else None


def _packets() -> list[Packet]:
    """Return frames of a busy line, which fill three quarters of it."""
    chance, time_ns, found = random.Random(SEED), 0, []
    for _ in range(500):
        octets = chance.randbytes(chance.choice((60, 60, 300, 1514)))
        found.append(Packet(Fraction(time_ns, 10**9), octets, len(octets)))
        time_ns += round((len(octets) + 24) * 8 * 4 / 3)
    return found
