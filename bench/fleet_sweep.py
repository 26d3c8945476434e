# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Rows of the bench "fleet": tasks on workers that are killed, and what a task costs the scheduler, the network and the store."""

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from liteprobe.host.fleet.tasks import ClusterPool, LocalPool, Task, TasksOutcome, TaskStore, run
from liteprobe.sim.drivers.tools.cluster import Cluster, queue_delays
from liteprobe.sim.drivers.tools.figures import Figure, Size, drawn, note, row

FUNCTION = "liteprobe.sim.drivers.tools.cluster:queue_delays"
FRAMES = 100_000  # Of a task: some 10 ms.
SIZES, LOADS = (60, 124, 252, 508, 1514), (0.1, 0.3, 0.5, 0.7, 0.9)


def _asked(count: int, log: Path, frames: int = FRAMES) -> list[Task]:
    """Return sizes x loads x seeds of a queue as tasks."""
    log.mkdir(parents=True)
    points = [(size, load) for size in SIZES for load in LOADS]
    made = []
    for number in range(count):
        size, load = points[number % len(points)]
        arguments = {"length": size, "load": load, "seed": number // len(points), "frames": frames}
        made.append(Task(FUNCTION, {**arguments, "log": str(log)} if log.name == "log" else arguments))
    return made


def _octets(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes().split(b"\n", 1)[1] for path in sorted(folder.rglob("*.json"))}


def _begun(log: Path) -> Counter[str]:
    return Counter(line for path in log.iterdir() for line in path.read_text().split())


def _cpu_s(pid: int) -> float:
    """Return the processor time of a process (s), by /proc."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class _Killer:
    """Kills a worker of a cluster each time that so many results more are there, and starts another in its place."""

    def __init__(self, cluster: Cluster, chance: random.Random) -> None:
        self._cluster, self._chance = cluster, chance
        self.killed = 0
        self._due = chance.randint(1, 60)

    def __call__(self, outcome: TasksOutcome) -> None:
        if len(outcome.results) >= self._due:
            self._due = len(outcome.results) + self._chance.randint(20, 80)
            name = self._chance.choice(sorted(self._cluster.workers))
            self._cluster.kill(name)
            self._cluster.add(name)
            self.killed += 1


@row("fleet", "sweep")
def test_sweep(size: Size, tmp_path: Path) -> Iterator[Figure]:
    """Run tasks on a scheduler and 1, 2 and 3 workers, all processes of their own, of which one is killed every 20 to 80 results.

    The results are held against those of one process without an engine. What was begun is written by the tasks themselves.
    """
    chance, count = drawn(), size.of(40, 500)
    plain = [queue_delays(**task.arguments) for task in _asked(count, tmp_path / "plain")]
    wrong = differ = missing = twice = killed = out_most = 0
    first: dict[str, bytes] = {}
    for workers in (1, 2, 3):
        place = tmp_path / str(workers)
        asked = _asked(count, place / "log")
        with Cluster(place / "cluster") as cluster:
            for number in range(workers):
                cluster.add(str(number))
            killer = _Killer(cluster, chance)
            pool = ClusterPool(cluster.address)
            began_s = time.monotonic()
            found = run(asked, TaskStore(place / "kept"), lambda pool=pool: pool, killer)  # type: ignore[misc]
            took_s = time.monotonic() - began_s
        wrong += sum(found.results.get(number) != one for number, one in enumerate(plain))
        again = sum(_begun(place / "log").values()) - count
        missing += len(found.errors) + count - len(found.results)
        bodies = sorted(_octets(place / "kept").values())
        first = first or {str(number): body for number, body in enumerate(bodies)}
        differ += bodies != list(first.values())
        twice, killed, out_most = twice + again, killed + killer.killed, out_most + 2 * workers * killer.killed
        note(f"# {workers} workers: {took_s:.1f} s, {killer.killed} killed, {again} tasks begun twice")
    yield Figure("workers killed", killed, "", 3 * count / 100, is_least=True)
    yield Figure("results that differ from one process without an engine", wrong, "", 0)
    yield Figure("sets of results that are not the same to the octet", differ, "", 0)
    yield Figure("tasks lost", missing, "", 0)
    yield Figure(
        "tasks begun twice, over those that were out when a worker was killed", twice / max(out_most, 1), "", 1
    )


@row("fleet", "sweep_cost")
def test_sweep_cost(size: Size, tmp_path: Path) -> Iterator[Figure]:
    """Measure what a task costs beside its own work, which is next to nothing here: the engine, its store, Dask, and plain joblib.

    A worker and nothing killed. Processor time is that of this process (with its store), of the scheduler and of the worker.
    """
    from joblib import Parallel, delayed

    count = size.of(30, 1000)
    asked = _asked(count, tmp_path / "tasks", frames=10)

    def timed(act: Callable[[], object]) -> tuple[float, float]:
        began_s, spent_s = time.monotonic(), time.process_time()
        act()
        return 1e3 * (time.monotonic() - began_s) / count, 1e3 * (time.process_time() - spent_s) / count

    def joblib_alone() -> object:
        return Parallel(n_jobs=2, batch_size=1)(delayed(queue_delays)(**task.arguments) for task in asked)

    joblib_alone()  # Starts its processes.
    plain = timed(joblib_alone)
    local = LocalPool(2)
    run(asked[:2], TaskStore(tmp_path / "warm"), lambda: local)
    pool = LocalPool(2)
    ours = timed(lambda: run(asked, TaskStore(tmp_path / "local"), lambda: pool))
    kept = timed(lambda: run(asked, TaskStore(tmp_path / "local"), lambda: LocalPool(2)))
    octets = sum(path.stat().st_size for path in (tmp_path / "local").rglob("*.json")) / count
    with Cluster(tmp_path / "cluster") as cluster:
        cluster.add("0")
        cluster.add("1")
        many = ClusterPool(cluster.address)
        ends_s = time.monotonic() + 120
        while many.size < 4 and time.monotonic() < ends_s:
            many.take()
        before = [_cpu_s(one.pid) for one in (cluster.scheduler, *cluster.workers.values())]
        sent = _loopback_octets()
        there = timed(lambda: run(asked, TaskStore(tmp_path / "many"), lambda: many, None))
        sent = _loopback_octets() - sent
        after = [_cpu_s(one.pid) for one in (cluster.scheduler, *cluster.workers.values())]
        scheduler, *workers = [1e3 * (end - begin) / count for begin, end in zip(before, after, strict=True)]
    yield Figure("joblib alone, a task", plain[0], "ms", 100)
    yield Figure("joblib alone, a task, processor of the caller", plain[1], "ms", 100)
    yield Figure("on processes, a task", ours[0], "ms", 100)
    yield Figure("on processes, a task, processor of the caller", ours[1], "ms", 100)
    yield Figure("a task that is kept", kept[0], "ms", 100)
    yield Figure("a task that is kept, processor", kept[1], "ms", 100)
    yield Figure("a result on the disk", octets, "octets", 1000)
    yield Figure("on a cluster, a task", there[0], "ms", 100)
    yield Figure("on a cluster, a task, processor of the caller", there[1], "ms", 100)
    yield Figure("on a cluster, a task, processor of the scheduler", scheduler, "ms", 100)
    yield Figure("on a cluster, a task, processor of the workers", sum(workers), "ms", 100)
    yield Figure("on a cluster, a task, on the network", sent / count, "octets", 100_000)


def _loopback_octets() -> int:
    """Return what has gone over this machine's loopback interface, others' octets included, by /proc."""
    for line in Path("/proc/self/net/dev").read_text().splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == "lo":
            return int(counts.split()[0])
    return 0
