# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The control channel under bad conditions: networks, second hosts, hosts that are gone, hosts that write anything."""

import json
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import LEASE_UNIT_BITS
from liteprobe.host.analysis import truth
from liteprobe.host.analysis.summary import TrainResult
from liteprobe.host.base.errors import NetworkError, ProbeError
from liteprobe.host.device.link import sim
from liteprobe.host.device.link.etherbone import EtherboneLink, Write, encode
from liteprobe.host.device.link.sim import SimLink, SimProcess
from liteprobe.host.probe import Probe
from liteprobe.host.traffic.train import TrainProgram
from liteprobe.sim.drivers.management.litex import served
from liteprobe.sim.drivers.system.hostile_relay import HostileRelay, Hostility
from liteprobe.sim.drivers.tools.figures import Figure, note, row

TRAINS = 300
STARTS = 100
STRANGE_REQUESTS = 100_000
KINDS = {
    "loss": ("loss",),
    "duplicate": ("duplicate",),
    "reorder": ("reorder",),
    "all": ("loss", "duplicate", "reorder"),
}
SHORT_UNITS = 5  # A timeout of a tenth of a second, for what isn't run in full.
TICK_NS = 8


def is_right(result: TrainResult, delay_ns: int) -> bool:
    """Return whether a result of the loopback is what arithmetic says, in all of its records."""
    program, records = result.program, result.records
    starts = records["tx_stamp"].astype(np.int64)
    number = np.arange(program.total)
    steps = np.diff(starts)[number[1:] % program.count != 0]
    return bool(
        (result.sent, result.late, result.complete, result.notes) == (program.total, 0, True, ())
        and records["sequence"].tolist() == number.tolist()
        and np.all(records["rx_stamp"].astype(np.int64) - starts == delay_ns)
        and np.all(steps == 8 * program.slot_ticks)
        and result.counters["frames"] == program.total
        and result.counters["lost"] == result.counters["duplicated"] == 0
    )


def random_program(rand: random.Random) -> TrainProgram:
    """Return a program of a few frames."""
    return TrainProgram(
        rand.randrange(60, 300), rand.randrange(1, 80), rand.randrange(1, 4), stream_id=rand.randrange(65536)
    )


@row("hostile")
def test_trains() -> Iterator[Figure]:
    """300 trains over each network: none wrong without an error, and at 1 % no error at all."""
    for kind, parts in KINDS.items():
        for percent in (1, 5, 20):
            network = ",".join([*(f"{part}={percent}%" for part in parts), f"seed={percent}"])
            rand = random.Random(network)
            outcomes = Counter[str]()
            with Probe(f"sim://loopback?delay=40ns&network={network}") as probe:
                for _number in range(TRAINS):
                    program = random_program(rand)
                    try:
                        outcomes["right" if is_right(probe.train(program), 40) else "wrong"] += 1
                    except ProbeError as error:
                        outcomes["refused"] += 1
                        note(f"{network}: {error}")
                assert isinstance(probe.link, SimLink)
                counts = probe.link.network_counts()
            note(f"{network}: {counts}")
            yield Figure(f"trains_wrong_{kind}_{percent}", outcomes["wrong"], f"of {TRAINS}", 0)
            most = 0 if percent == 1 else TRAINS // 20
            yield Figure(f"trains_refused_{kind}_{percent}", outcomes["refused"], f"of {TRAINS}", most)


FAULTS = {
    "change_5": Hostility(changing=0.05),
    "change_1": Hostility(changing=0.01),
    "cut_300": Hostility(longest=300),
    "cut_100": Hostility(longest=100),
    "double": Hostility(doubling=0.2),
    "reorder": Hostility(delaying=0.1, delay_s=0.02),
    "late_200_ms": Hostility(delaying=1.0, delay_s=0.2),
}


@row("hostile")
def test_faults(is_full: bool) -> Iterator[Figure]:
    """Datagrams changed (checksums renewed), cut, doubled, reordered, late: each train is right, or the network is named."""
    folder = sim.build(sim.SimOptions())
    for kind, hostility in FAULTS.items():
        is_slow = kind == "late_200_ms"
        found: Counter[str] = Counter()
        probes = (2 if is_full else 1) if is_slow else (200 if is_full else 3)
        for seed in range(probes):
            process = SimProcess([str(folder / sim.EXECUTABLE), "--port", "0", "--wire", "loopback?delay=40ns"])
            with HostileRelay(process.udp_ports[0], replace(hostility, seed=seed)) as relay:
                try:
                    with Probe(EtherboneLink("127.0.0.1", relay.port), folder / sim.MAP) as probe:
                        for number in range(1 if is_slow else 3):
                            program = random_program(random.Random(f"{seed} {number}"))
                            found["right" if is_right(probe.train(program, receive=0), 40) else "wrong"] += 1
                except NetworkError:
                    found["named"] += 1
                except ProbeError as error:
                    found["other"] += 1
                    note(f"{kind}: {error}")
            process.close()
        note(f"{kind}, {probes} probes: {dict(found)}")
        yield Figure(f"faults_wrong_{kind}", found["wrong"], "trains", 0)
        yield Figure(f"faults_not_named_{kind}", found["other"], f"of {probes}", probes // 50)


@row("hostile")
def test_litex_clients(is_full: bool) -> Iterator[Figure]:
    """Bursts of 1 to 255 words through LiteX's server and RemoteClient, beside a host that has the lease and without one."""
    rand = random.Random(37)
    wrong = done = 0
    with served(sim.build(sim.SimOptions())) as server:
        client = server.client()
        lengths = range(1, 256) if is_full else range(1, 256, 8)
        for count in lengths:
            place = client.mems.main_ram.base + 4 * rand.randrange(4096)
            words = [rand.getrandbits(32) for _ in range(count)]
            client.write(place, words)
            wrong += client.read(place, count) != words
        with server.probe() as probe:
            probe.lease.ensure()
            for count in lengths:
                place = client.mems.main_ram.base + 4 * rand.randrange(4096)
                before = client.read(place, count)
                client.write(place, [word ^ 1 for word in before])
                done += client.read(place, count) != before
            skipped = probe.lease.left_out()
        client.close()
    yield Figure("litex_bursts_wrong", wrong, f"of {len(lengths)}", 0)
    yield Figure("litex_writes_done_beside_a_lease", done, f"of {len(lengths)}", 0)
    yield Figure("litex_writes_left_out_and_counted", skipped, f"of {len(lengths)}", len(lengths), is_least=True)


@contextmanager
def free_running(*options: str, wire: str = "loopback?delay=40ns") -> Iterator[tuple[SimProcess, list[str]]]:
    """Run a probe whose time flows by itself; gives its process and the options of a command that uses it."""
    folder = sim.build(sim.SimOptions())
    process = SimProcess([str(folder / sim.EXECUTABLE), "--port", "0", "--wire", wire, "--free-run", *options])
    try:
        yield process, ["--probe", f"etherbone://127.0.0.1:{process.udp_ports[0]}", "--map", str(folder / sim.MAP)]
    finally:
        process.close()


def command(*arguments: str) -> "subprocess.Popen[str]":
    """Start ``liteprobe``."""
    return subprocess.Popen(
        [sys.executable, "-m", "liteprobe.host.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@row("hostile")
def test_two_hosts(is_full: bool) -> Iterator[Figure]:
    """Two hosts start at random times: each one's figures are right, or it is refused with the name of the other."""
    rand = random.Random(13)
    found: Counter[str] = Counter()
    starts = STARTS if is_full else STARTS // 4
    with free_running() as (_, options):
        for _ in range(starts):
            hosts = []
            for length in (rand.randrange(60, 100), rand.randrange(100, 1500)):
                count = rand.randrange(200, 1000)
                train = f"train --length {length} --count {count} --repeat 3 --receive 0 --json".split()
                hosts.append((length, count, command(*train, *options)))
                time.sleep(rand.uniform(0, 1.0))
            for length, count, host in hosts:
                out, error = host.communicate(timeout=300)
                if host.returncode == 0:
                    found["right" if says_right(out, length, count) else "wrong"] += 1
                elif host.returncode == 1 and "in use by" in error and "(pid " in error and " since " in error:
                    found["refused"] += 1
                else:
                    found["other"] += 1
                    note(error)
    note(f"two hosts, {starts} starts: {dict(found)}")
    yield Figure("two_hosts_wrong", found["wrong"], "results", 0)
    yield Figure("two_hosts_neither_right_nor_refused", found["other"], "results", 0)
    yield Figure("two_hosts_right", found["right"], "results", starts, is_least=True)
    yield Figure("two_hosts_refused", found["refused"], "results", 1, is_least=True)


def says_right(text: str, length: int, count: int) -> bool:
    """Return whether the JSON of a train tells what was sent, and of it nothing lost and every delay."""
    (row,) = json.loads(text)["sweeps"][0]["rows"]
    figures = [row[name] for name in ("length", "count", "repeat", "sent", "received", "lost", "late")]
    return figures == [length, count, 3, 3 * count, 3 * count, 0, 0]


@row("hostile")
def test_silence(is_full: bool) -> Iterator[Figure]:
    """A host that ends in the middle of a train: how long the probe goes on (its own time)."""
    for name, ends in (("sigterm", signal.SIGTERM), ("sigkill", signal.SIGKILL), ("unplugged", signal.SIGSTOP)):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "truth"
            with free_running("--truth", str(file)) as (process, options):
                timeout_s = lease_timeout(options, None if is_full else SHORT_UNITS)
                host = command("train", *options, "--length", "1514", "--count", str(2**32 - 1), "--receive", "0")
                wait_for_frames(process, file)
                ended_ns = int(process.command("time"))
                host.send_signal(ends)
                last_ns = wait_for_silence(process, file, ended_ns + round((timeout_s + 0.1) * 1e9))
                host.kill()
                host.communicate()
        seconds = (last_ns - ended_ns) / 1e9
        yield Figure(f"silence_after_{name}", seconds, "s of the probe's time", 3.0 if is_full else timeout_s + 0.05)


def lease_timeout(options: list[str], units: int | None) -> float:
    """Set the timeout of the lease, where asked for, and return it (s)."""
    host, port = options[1].removeprefix("etherbone://").split(":")
    with Probe(EtherboneLink(host, int(port)), options[3]) as probe:
        if units is not None:
            probe.registers.write("probe_lease_timeout", units)
        unit_s = 2**LEASE_UNIT_BITS / probe.registers.constant("config_clock_frequency")
        return float(probe.registers.read("probe_lease_timeout") * unit_s)


def frames_out(process: SimProcess, file: Path) -> NDArray[np.void]:
    """Return what left the probe's port 0 up to now."""
    process.command("sync")
    rows = truth.read(file)
    sent: NDArray[np.void] = rows[(rows["port"] == 0) & (rows["direction"] == 0) & (rows["flags"] == 0)]
    return sent


def wait_for_frames(process: SimProcess, file: Path) -> None:
    """Wait until a train runs."""
    for _ in range(600):
        if len(frames_out(process, file)) > 100:
            return
        time.sleep(0.1)
    raise ProbeError("no train runs after a minute: see what liteprobe train says")


def wait_for_silence(process: SimProcess, file: Path, latest_ns: int) -> int:
    """Wait until nothing was sent for a millisecond, or until ``latest_ns``; return when the last frame began (ns)."""
    while True:
        now_ns = int(process.command("time"))
        last_ns = TICK_NS * int(frames_out(process, file)["sfd_tick"][-1])
        if now_ns > latest_ns or now_ns - last_ns > 1_000_000:
            return last_ns
        time.sleep(0.5)


def strange_request(rand: random.Random, places: list[tuple[int, int]]) -> bytes:
    """Return a whole request that reads and writes anywhere: in the registers, the memories, or beyond them."""

    def address() -> int:
        if rand.random() < 0.2:
            return rand.getrandbits(30) << 2
        base, octets = rand.choice(places)
        return base + (rand.randrange(octets) & ~3)

    writes = [rand.choice([0, 1, rand.getrandbits(32)]) for _ in range(rand.choice([0, 1, 1, 4]))]
    reads = [address() for _ in range(rand.randrange(1, 5))]
    return encode(rand.getrandbits(32), reads, Write(address(), writes) if writes else None)


@row("hostile")
def test_hostile_host(is_full: bool) -> Iterator[Figure]:
    """A host that reads and writes whatever comes to its mind, then a reset and a train."""
    requests = STRANGE_REQUESTS if is_full else STRANGE_REQUESTS // 10
    for seed in (1, 2, 3) if is_full else (1,):
        rand = random.Random(seed)
        with Probe("sim://loopback?delay=40ns") as probe:
            assert isinstance(probe.link, SimLink)
            registers = probe.registers
            places = [(memory.address, 4 * memory.words) for memory in map(registers.memory, registers.memory_names)]
            places += [(register.address, 4 * register.words) for register in map(registers.register, registers.names)]
            answered = 0
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
                stranger.connect(("127.0.0.1", probe.link.port))
                for _ in range(requests):
                    stranger.send(strange_request(rand, places))
                    probe.link.now_ns()  # When it answers this, it has answered that.
                    answered += has_answer(stranger)
            probe.reset()
            right = sum(is_right(probe.train(random_program(rand)), 40) for _ in range(10))
        note(f"hostile host, seed {seed}: {answered} of {requests} requests answered")
        yield Figure(f"hostile_host_trains_right_{seed}", right, "of 10", 10, is_least=True)
        yield Figure(f"hostile_host_unanswered_{seed}", requests - answered, f"of {requests}", requests // 100)


def has_answer(stranger: socket.socket) -> bool:
    """Return whether an answer waits, and take it."""
    stranger.setblocking(False)
    try:
        return bool(stranger.recv(2048))
    except BlockingIOError:
        return False
