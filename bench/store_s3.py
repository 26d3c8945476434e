# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures a store in a bucket of a server of S3 that isn't ours: writers, readers and compactions, and who is killed meanwhile.

The server is versitygw, a Go module, with a folder as its disk. Where it isn't on PATH, it is built once into build/s3,
which takes minutes and isn't measured.
"""

import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from fleet import COMPACTOR, all_of, faults, killed
from pyarrow import fs

from liteprobe.host.base.output import words_of
from liteprobe.host.store.query import StoreQuery
from liteprobe.host.store.store import ResultStore
from liteprobe.sim.drivers.tools.figures import ROOT, Figure, Size, drawn, note, row
from liteprobe.sim.drivers.tools.stores import BEGIN_NS, DAY_NS, a_run, writer

SERVER = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
KEYS = ("a-key-of-tests", "a-secret-of-tests")
BUCKET = "months"


class Server:
    """Serves a folder as buckets; it may be killed and started again, at the same address."""

    def __init__(self, program: str, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        self._command = [program, "--port", self.address, "--quiet", "posix", str(folder)]
        self._own = {"ROOT_ACCESS_KEY": KEYS[0], "ROOT_SECRET_KEY": KEYS[1]}
        self.start()

    def start(self) -> None:
        """Start it, and wait until it listens."""
        nowhere = subprocess.DEVNULL
        self._process = subprocess.Popen(self._command, env=os.environ | self._own, stdout=nowhere, stderr=nowhere)
        while True:
            with suppress(OSError), socket.create_connection(self.address.split(":"), 1):  # type: ignore[arg-type]
                return
            if self._process.poll() is not None:
                raise RuntimeError(f"the server of S3 has ended with {self._process.returncode}")
            time.sleep(0.02)

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()

    def url(self, folder: str, bucket: str = BUCKET) -> str:
        """Return the URL of a store."""
        return f"s3://{bucket}/{folder}?endpoint_override={self.address}&scheme=http"


def program() -> str:
    """Return the server, which is built where it isn't there; without Go the row is skipped."""
    folder = ROOT / "build" / "s3"
    if found := shutil.which("versitygw") or shutil.which("versitygw", path=str(folder)):
        return found
    if not shutil.which("go"):
        pytest.skip("neither versitygw nor go, which builds it, is on PATH: install golang, or versitygw")
    began = time.monotonic()
    subprocess.run(["go", "install", SERVER], check=True, env=os.environ | {"GOBIN": str(folder)})
    note(f"# {SERVER} was built in {time.monotonic() - began:.0f} s, which are not measured")
    return str(folder / "versitygw")


@contextmanager
def served(folder: Path) -> Iterator[Server]:
    """Give a server with an empty bucket, whose keys are those of this process."""
    folder.mkdir()
    server = Server(program(), folder)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AWS_ACCESS_KEY_ID", KEYS[0])
            patch.setenv("AWS_SECRET_ACCESS_KEY", KEYS[1])
            patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
            made = fs.S3FileSystem(endpoint_override=server.address, scheme="http", allow_bucket_creation=True)
            made.create_dir(BUCKET)
            yield server
    finally:
        server.kill()


@row("fleet", "s3")
def test_s3(size: Size, tmp_path: Path) -> Iterator[Figure]:
    """Write into a bucket by two, one of whom is killed; ask beside compactions; kill these, and the server; give what is wrong.

    What is asked each time: files that can't be read to the end, with their checksums; runs that were said to be there
    and aren't, or that lack a table, or count twice. The server is ended as by a crash, and started again on its folder.
    """
    chance = drawn()
    with served(tmp_path / "disk") as server:
        yield from _costs(size, server)
        yield from _writers(size, server, chance)
        yield from _readers(size, server)
        yield from _compactions(size, server, chance)
        yield from _crashes(size, server, chance)
        yield from _refusals(server)
        parts = sum(len(files) for _, _, files in os.walk(tmp_path / "disk" / BUCKET / ".sgwtmp"))
        yield Figure("parts of files that nobody will end, in the bucket", parts, "", 0)


# # #


def _costs(size: Size, server: Server) -> Iterator[Figure]:
    store, runs = ResultStore(server.url("costs")), size.of(3, 100)
    began = time.monotonic()
    for number in range(runs):
        store.keep(a_run(lost=number), BEGIN_NS + number)
    yield Figure("a run kept", (time.monotonic() - began) / runs, "s", 0.5)
    began = time.monotonic()
    assert ResultStore(server.url("costs")).compact().merged == runs
    yield Figure(f"{runs} runs compacted", time.monotonic() - began, "s", 60)
    began = time.monotonic()
    (found,) = StoreQuery(ResultStore(server.url("costs"))).percentiles([50]).rows
    yield Figure("a percentile of these", time.monotonic() - began, "s", 2)
    yield Figure("runs of them that are missing", runs - found["samples"], "", 0)


def _writers(size: Size, server: Server, chance: random.Random) -> Iterator[Figure]:
    place, turns = server.url("writers"), size.of(1, 20, 100)
    said: list[str] = []
    for turn in range(turns):
        both = [writer(place, f"one {turn}"), writer(place, f"two {turn}", 10)]
        said += killed(both[0], chance) + all_of(both[1])
        if turn % 10 == 9:
            ResultStore(place).compact()
    damaged, lost, torn = faults(place, said)
    note(f"# {len(said):,} runs were said to be there")
    yield Figure("writers killed, each beside another one", turns, "", turns, is_least=True)
    yield Figure("damaged files", damaged, "", 0)
    yield Figure("runs that were said to be there and are not", lost, "", 0)
    yield Figure("runs that lack figures or histograms", torn, "", 0)


def _readers(size: Size, server: Server) -> Iterator[Figure]:
    place, turns = server.url("readers"), size.of(2, 20)
    wrong, asked, kept, is_done = [], 0, 0, threading.Event()

    def keep(count: int) -> None:
        nonlocal kept
        for _ in range(count):
            ResultStore(place).keep(a_run(lost=1), BEGIN_NS + kept)
            kept += 1

    def read() -> None:
        nonlocal asked
        while not is_done.is_set():
            before = kept
            found = _sums(place)
            asked += 1
            if not (before <= found[0] <= kept + 1 and len({*found}) == 1):
                wrong.append((before, found, kept))

    keep(12)
    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(turns):
            keep(3)
            ResultStore(place).compact()
    finally:
        is_done.set()
        reader.join()
    note(*wrong)
    yield Figure("questions beside compactions", asked, "", turns / 2, is_least=True)
    yield Figure("of these, with a run that was missing or twice", len(wrong), "", 0)


def _compactions(size: Size, server: Server, chance: random.Random) -> Iterator[Figure]:
    place, turns, number, wrong = server.url("compactions"), size.of(2, 20, 50), 0, 0
    for _ in range(turns):
        for _ in range(6):
            ResultStore(place).keep(a_run(lost=1), BEGIN_NS + number % 3 * DAY_NS)
            number += 1
        one = subprocess.Popen([sys.executable, "-c", COMPACTOR.format(place=place)], stdout=subprocess.PIPE)
        assert one.stdout and one.stdout.readline()
        time.sleep(chance.random() * 0.4)
        one.kill()
        one.wait()
        wrong += {*_sums(place)} != {number}
    yield Figure("compactions killed", turns, "", turns, is_least=True)
    yield Figure("of these, after which a run was missing or twice", wrong, "", 0)


def _crashes(size: Size, server: Server, chance: random.Random) -> Iterator[Figure]:
    """Kill the server while a writer is at it: the writer says so and ends, what it had said to be there is there."""
    place, turns, said, silent = server.url("crashes"), size.of(1, 10, 30), list[str](), 0
    for turn in range(turns):
        one = writer(place, f"turn {turn}", is_loud=True)
        assert one.stdout
        said.append(one.stdout.readline().strip())
        time.sleep(chance.random() * 0.2)
        server.kill()
        out = one.communicate()[0].split("\n")
        said += [line for line in out if len(line) == 32]
        silent += one.returncode == 0 or "its server doesn't answer" not in out[-2]
        server.start()
    damaged, lost, torn = faults(place, said)
    yield Figure("servers killed while a writer was at it", turns, "", turns, is_least=True)
    yield Figure("writers that did not say so", silent, "", 0)
    yield Figure("damaged files after it", damaged, "", 0)
    yield Figure("runs that were said to be there before and are not", lost, "", 0)
    yield Figure("runs that lack figures or histograms after it", torn, "", 0)


def _refusals(server: Server) -> Iterator[Figure]:
    """Give what is wrong, and look whether the error says what to do next."""
    keys = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    cases = {
        "a bucket that isn't there": (server.url("x", "no-such-bucket"), {}, "no such bucket"),
        "a name that no bucket has": (server.url("x", "b"), {}, "no such bucket"),
        "a wrong secret": (server.url("x"), {keys[1]: "wrong"}, "refuses the keys"),
        "an unknown key": (server.url("x"), {keys[0]: "nobody"}, "refuses the keys"),
        "https where it speaks http": (server.url("x").replace("=http", "=https"), {}, "doesn't answer): check"),
        "a port where nobody is": (
            server.url("x").replace(server.address, "127.0.0.1:9"),
            {},
            "doesn't answer): check",
        ),
    }
    wrong = slow = 0.0
    for name, (place, own, expected) in cases.items():
        began = time.monotonic()
        with pytest.MonkeyPatch.context() as patch:
            for key, value in own.items():
                patch.setenv(key, value)
            try:
                ResultStore(place).keep(a_run())
                said = "nothing"
            except OSError as error:
                error.filename = place
                said = words_of(error)
        slow = max(slow, time.monotonic() - began)
        if expected not in said:
            note(f"# {name}: {said}")
            wrong += 1
    yield Figure("mistakes of a user", len(cases), "", 6, is_least=True)
    yield Figure("of these, without a word of what to do", wrong, "", 0)
    yield Figure("wait for the slowest one", slow, "s", 30)


def _sums(place: str) -> tuple[int, int, int]:
    """Return how many runs there are, the sum of a figure that is one in each, and the samples."""
    text = "SELECT (SELECT count(*) FROM runs) AS runs, sum(value)::INT AS lost, (SELECT sum(count)::INT FROM delays) AS n "
    (found,) = StoreQuery(ResultStore(place)).sql(text + "FROM figures WHERE name = 'lost'").rows
    return found["runs"], found["lost"], found["n"]
