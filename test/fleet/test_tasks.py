# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Tasks on workers that die, in folders that are damaged, full or taken: what is kept, done again and named."""

import os
import random
import signal
from collections import Counter
from pathlib import Path

import pytest

from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.fleet import tasks
from liteprobe.host.fleet.tasks import LocalPool, Task, TasksOutcome, TaskStore, run
from liteprobe.sim.drivers.tools.processes import is_running

WORK = "liteprobe.sim.drivers.tools.cluster"


def drawn(log: Path, count: int, seconds: float = 0.0) -> list[Task]:
    log.mkdir(exist_ok=True)
    return [Task(f"{WORK}:draw", {"number": n, "log": str(log), "seconds": seconds}) for n in range(count)]


def expected(count: int) -> dict[int, dict[str, float]]:
    return {n: {"number": n, "drawn": random.Random(n).random()} for n in range(count)}


def begun(log: Path) -> Counter[int]:
    return Counter(int(line) for path in log.iterdir() for line in path.read_text().split())


def octets(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*.json")}


def test_a_run_goes_on_and_a_damaged_result_alone_is_done_again(tmp_path: Path) -> None:
    asked, store = drawn(tmp_path / "log", 12), tmp_path / "store"
    first = run(asked[:8], TaskStore(store), lambda: LocalPool(2))
    assert (first.results, first.kept) == (expected(8), 0)
    before = octets(store)
    path = TaskStore(store).path(asked[3].key)
    path.write_bytes(path.read_bytes().replace(b'"number":3', b'"number":4'))
    cut = TaskStore(store).path(asked[5].key)
    cut.write_bytes(cut.read_bytes()[:-9])
    second = run(asked, TaskStore(store), lambda: LocalPool(2))
    assert (second.results, second.kept, second.damaged) == (expected(12), 6, 2)
    assert begun(tmp_path / "log") == Counter({**dict.fromkeys(range(12), 1), 3: 2, 5: 2})
    assert before.items() <= octets(store).items()


def test_what_raises_and_what_kills_is_named_and_its_neighbours_are_done(tmp_path: Path) -> None:
    asked = [
        *drawn(tmp_path / "log", 10),
        Task(f"{WORK}:fail", {"number": 7}),
        Task(f"{WORK}:kill", {"number": 1}),
    ]
    found = run(asked, TaskStore(tmp_path / "store"), lambda: LocalPool(2))
    assert found.results == expected(10)
    assert found.errors == {10: "ValueError: 7 is odd", 11: "its worker died 5 times, at last when it was alone"}
    assert len(octets(tmp_path / "store")) == 10


def test_a_liteprobe_that_is_changed_while_its_tasks_run_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers that start after a change, as after one has died, are of another version than the one that asks."""
    asked, done = drawn(tmp_path / "log", 6, 0.0), []

    def progress(outcome: TasksOutcome) -> None:
        done.append(len(outcome.results))
        if done[-1] == 2:
            monkeypatch.setattr(tasks, "version", lambda: {"code": "0" * 64})

    with pytest.raises(
        ProbeError, match="changed on this machine while its tasks ran .*: run the same command again; the"
    ):
        run(asked, TaskStore(tmp_path / "store"), lambda: LocalPool(1), progress)
    monkeypatch.undo()
    found = run(asked, TaskStore(tmp_path / "store"), lambda: LocalPool(1))
    assert (found.kept, found.results) == (2, expected(6))


def test_workers_killed_at_random_lose_nothing(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    generator, log, store = random.Random(seed), tmp_path / "log", tmp_path / "store"
    asked, killed, due = drawn(log, 60, 0.02), [0], [5]

    def progress(outcome: TasksOutcome) -> None:
        if (
            len(outcome.results) < due[0]
        ):  # By what is done, not by time: a task is met once, whatever the machine does.
            return
        due[0] = len(outcome.results) + generator.randint(8, 20)
        if workers := {int(path.name) for path in log.iterdir() if is_running(int(path.name))}:
            os.kill(generator.choice(sorted(workers)), signal.SIGKILL)
            killed[0] += 1

    found = run(asked, TaskStore(store), lambda: LocalPool(2), progress)
    assert (found.results, found.errors) == (expected(60), {}), f"seed {seed}"
    twice = sum(begun(log).values()) - 60
    assert killed[0] > 1 and twice <= 2 * killed[0], (
        f"seed {seed}: {twice} done twice by {killed[0]} kills of 2 workers"
    )


def test_another_version_is_refused_before_its_first_task(tmp_path: Path) -> None:
    task = drawn(tmp_path / "log", 1)[0]
    answer = tasks.work({**tasks.version(), "code": "0" * 64, "numpy": "1.0"}, task)
    assert (answer.body, answer.error, begun(tmp_path / "log")) == (None, "", Counter())
    here = tasks.version()
    assert answer.other == f"code {here['code'][:16]}, here 0000000000000000, numpy {here['numpy']}, here 1.0"


def test_a_folder_that_is_taken_or_no_folder_is_refused(tmp_path: Path) -> None:
    with TaskStore(tmp_path / "store").held(), pytest.raises(UsageError, match="another run keeps its results in"):
        run(drawn(tmp_path / "log", 1), TaskStore(tmp_path / "store"), lambda: LocalPool(1))
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="name another folder"):
        run(drawn(tmp_path / "log", 1), TaskStore(tmp_path / "file"), lambda: LocalPool(1))


def test_a_full_disk_ends_the_run_and_keeps_what_was_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual, written = tasks.write_text, [0]

    def full(path: Path, text: str) -> None:
        written[0] += 1
        if written[0] > 3:
            raise OSError(28, "No space left on device", str(path))
        usual(path, text)

    asked = drawn(tmp_path / "log", 9)
    monkeypatch.setattr(tasks, "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        run(asked, TaskStore(tmp_path / "store"), lambda: LocalPool(2))
    monkeypatch.setattr(tasks, "write_text", usual)
    found = run(asked, TaskStore(tmp_path / "store"), lambda: LocalPool(2))
    assert (found.kept, found.results) == (3, expected(9))
