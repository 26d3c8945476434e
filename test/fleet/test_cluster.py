# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Tasks on workers of a cluster, each a process of its own: killed, of another version, without LiteProbe, or all gone."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="workers on many machines need distributed: type  ./run setup test")

from liteprobe.host.base.errors import ProbeError
from liteprobe.host.fleet import tasks
from liteprobe.host.fleet.tasks import ClusterPool, LocalPool, Task, TasksOutcome, TaskStore, run
from liteprobe.sim.drivers.tools.cluster import Cluster, queue_delays
from liteprobe.sim.drivers.tools.processes import is_running, wait_for

QUEUE = "liteprobe.sim.drivers.tools.cluster:queue_delays"
OTHER = """
from liteprobe.host.fleet import tasks
found = dict(tasks.version()) | {"code": "0" * 64}
tasks.version = lambda: found
"""
WITHOUT = """
import sys
sys.modules["liteprobe.host.fleet.tasks"] = None
"""


def queues(log: Path, count: int) -> list[Task]:
    log.mkdir(exist_ok=True)
    return [Task(QUEUE, {"length": 60, "load": 0.5, "seed": seed, "log": str(log)}) for seed in range(count)]


def expected(count: int) -> dict[int, dict[str, float]]:
    return {seed: queue_delays(60, 0.5, seed) for seed in range(count)}


def begun(log: Path) -> Counter[int]:
    return Counter(int(line.split(",")[2]) for path in log.iterdir() for line in path.read_text().split())


def octets(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*.json")}


def after(count: int, act: Callable[[], None]) -> Callable[[TasksOutcome], None]:
    """Return what acts once so many results are there."""
    done: list[int] = []

    def progress(outcome: TasksOutcome) -> None:
        if len(outcome.results) >= count and not done:
            done.append(1)
            act()

    return progress


def test_workers_are_seen_at_each_look_though_the_client_renews_what_it_knows(tmp_path: Path) -> None:
    """Let the client of Dask renew it all the time: a look that sees no workers would give all tasks out once more."""
    import dask

    with Cluster(tmp_path) as cluster, dask.config.set({"distributed.client.scheduler-info-interval": "1ms"}):
        cluster.add("one")
        pool = ClusterPool(cluster.address)
        try:
            wait_for(lambda: pool.take() or pool.size == 2)
            sizes: Counter[int] = Counter()
            for _ in range(200):
                pool._look()
                sizes[pool.size] += 1
        finally:
            pool.close()
    assert sizes == {2: 200}


def test_a_killed_worker_loses_nothing_and_all_is_as_on_one_machine(tmp_path: Path) -> None:
    asked, log = queues(tmp_path / "log", 30), tmp_path / "log"
    with Cluster(tmp_path / "cluster") as cluster:
        cluster.add("a")
        cluster.add("b")

        def act() -> None:
            cluster.kill("a")
            cluster.add("a")

        found = run(asked, TaskStore(tmp_path / "many"), lambda: ClusterPool(cluster.address), after(10, act))
        assert (found.results, found.errors, found.refused) == (expected(30), {}, {}), cluster.log()
    assert sum(begun(log).values()) - 30 <= 4  # Two a thread are out.
    again = run(asked, TaskStore(tmp_path / "many"), lambda: LocalPool(1))
    assert (again.kept, again.results) == (30, expected(30))
    run(asked, TaskStore(tmp_path / "one"), lambda: LocalPool(1))
    assert octets(tmp_path / "one") == octets(tmp_path / "many")


def test_workers_of_another_version_or_without_liteprobe_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import Client

    (tmp_path / "other.py").write_text(OTHER)
    (tmp_path / "without.py").write_text(WITHOUT)
    asked, log = queues(tmp_path / "log", 8), tmp_path / "log"
    with Cluster(tmp_path / "cluster") as cluster:
        cluster.add("other", "--preload", str(tmp_path / "other.py"))
        cluster.add("without", "--preload", str(tmp_path / "without.py"))
        with Client(cluster.address, timeout=300, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=300)
        pids = {cluster.workers[name].pid for name in ("other", "without")}
        refused: dict[str, str] = {}

        def keep(outcome: TasksOutcome) -> None:
            refused.update(outcome.refused)

        monkeypatch.setattr(tasks, "PATIENCE_S", 1)
        with pytest.raises(
            ProbeError, match="no worker of this LiteProbe has been at the scheduler for 1 s: start some"
        ):
            run(asked, TaskStore(tmp_path / "store"), lambda: ClusterPool(cluster.address), keep)
        monkeypatch.setattr(tasks, "PATIENCE_S", 600)
        cluster.add("same")
        found = run(asked, TaskStore(tmp_path / "store"), lambda: ClusterPool(cluster.address))
        assert found.results == expected(8), cluster.log()
    assert all(address.startswith("tcp://127.0.0.1:") for address in refused)
    assert set(refused.values()) == {
        f"code {'0' * 16}, here {tasks.version()['code'][:16]}",
        "ModuleNotFoundError: import of liteprobe.host.fleet.tasks halted; None in sys.modules",
    }
    assert not pids & {int(path.name) for path in log.iterdir()}


def test_no_scheduler_no_worker_and_a_scheduler_that_goes_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = queues(tmp_path / "log", 200)
    monkeypatch.setattr(tasks, "CONNECT_S", 1)
    with pytest.raises(
        ProbeError, match="there is no scheduler at tcp://127.0.0.1:9 .*: start one with  dask scheduler"
    ):
        run(asked, TaskStore(tmp_path / "store"), lambda: ClusterPool("tcp://127.0.0.1:9"))
    monkeypatch.setattr(tasks, "CONNECT_S", 20)
    monkeypatch.setattr(tasks, "PATIENCE_S", 0.1)
    with Cluster(tmp_path / "cluster") as cluster:
        with pytest.raises(
            ProbeError, match="no worker has been at the scheduler for 0.1 s: start some with  dask worker"
        ):
            run(asked, TaskStore(tmp_path / "store"), lambda: ClusterPool(cluster.address))
        cluster.add("a")
        monkeypatch.setattr(tasks, "PATIENCE_S", 600)
        with pytest.raises(ProbeError, match="the scheduler at .* is gone: start it again"):
            run(
                asked,
                TaskStore(tmp_path / "store"),
                lambda: ClusterPool(cluster.address),
                after(5, cluster.scheduler.kill),
            )
    kept = len(octets(tmp_path / "store"))
    found = run(asked, TaskStore(tmp_path / "store"), lambda: LocalPool(2))
    assert kept >= 5 and (found.kept, found.results) == (kept, expected(200))


def test_workers_end_with_the_program_that_was_killed(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    code = f"""
from pathlib import Path
from liteprobe.host.fleet.tasks import LocalPool, Task, TaskStore, run
name = "liteprobe.sim.drivers.tools.cluster:draw"
tasks = [Task(name, {{"number": n, "log": {str(tmp_path / "log")!r}, "seconds": 600.0}}) for n in range(2)]
run(tasks, TaskStore(Path({str(tmp_path / "store")!r})), lambda: LocalPool(2))
"""
    program = subprocess.Popen([sys.executable, "-c", code])
    wait_for(lambda: program.poll() is not None or len([*(tmp_path / "log").iterdir()]) == 2)
    program.kill()
    program.wait()
    pids = [int(path.name) for path in (tmp_path / "log").iterdir()]
    assert len(pids) == 2
    wait_for(lambda: not any(is_running(pid) for pid in pids))
