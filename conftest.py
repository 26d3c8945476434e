# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Holds for all tests: some wait for ``--full``, rows of benches are chosen, and each folder has its CPU time."""

from __future__ import annotations

import gc
import os
import pickle
import resource
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.runner import runtestprotocol

from liteprobe.sim.drivers.tools import figures as rows
from liteprobe.sim.drivers.tools import quick_names
from liteprobe.sim.drivers.tools.processes import pass_on_signals
from liteprobe.sim.drivers.tools.wire import FULL_VARIABLE

if TYPE_CHECKING:
    from liteprobe.soc.build.bitstream import Design
    from liteprobe.soc.config import ProbeConfig

CPU = "cpu_s"
KEPT = "liteprobe/cpu_s"  # In pytest's cache: seconds of each test.
SHOWN = 10  # Tests that took most.
YARD_S = 0.05  # The yardstick on the machine that budgets are written down for.
YARD_STEPS = 700_000
YARD_EVERY_S = 20.0  # How long until it is measured again.
STALLED = "stalled_s"
STALL_S = 0.4  # A machine that all of a process stands still on for longer has stalled.
STALL_TRIES = 3
LONGEST = (
    "test_build.py",
    "test_signals.py",
    "test_cli_demo.py",
    "test_pcie.py",
    "test_export.py",
    "test_host.py",
    "test_monitor.py",
    "test_tester.py",
    "test_capture.py",
    "test_management.py",
    "test_transmit_long.py",
)  # Files, in the order in which workers begin with them; then all others.


def cpu_s() -> float:
    """Return the CPU time of this process and of its children that have ended (s)."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def yardstick() -> float:
    """Return how many times the CPU time of the machine that budgets were written down for a short loop takes here."""
    taken_s = []
    for _ in range(3):
        start_s, value = time.process_time(), 1
        for step in range(YARD_STEPS):
            value = (value * 31 + step) & 0xFFFFFFFF
        taken_s.append(time.process_time() - start_s)
    return sorted(taken_s)[len(taken_s) // 2] / YARD_S


# Which tests ---------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--full``, and the budgets of pyproject.toml."""
    parser.addoption(
        "--full", action="store_true", help="run what takes minutes of CPU each, too: place and route of boards"
    )
    parser.addoption("--bench", metavar="NAME", help="run the rows of a bench alone: ./run bench NAME")
    parser.addoption(
        "--row", action="append", default=[], metavar="NAME", help="only this row of the bench (again for more)"
    )
    parser.addoption("--figures", metavar="FILE", help="where the figures of a bench go (build/bench/NAME.json)")
    parser.addini("cpu_budgets", "CPU seconds that the tests of a folder may take: folder seconds", type="linelist")


def pytest_configure(config: pytest.Config) -> None:
    """Make known the mark of tests that are run by ``--full`` alone, and begin to count."""
    config.addinivalue_line("markers", "bench(bench, row, is_long, is_test): a row of a bench, run by ./run bench")
    config.pluginmanager.register(rows.Bench(config), rows.MARK)
    config.addinivalue_line("markers", "full: takes minutes of CPU; run by ./run test --full alone")
    config.addinivalue_line(
        "markers", "sample(n): of a test's cases each n-th and the last are run, all by ./run test --full"
    )
    if config.getoption("--full"):
        os.environ[FULL_VARIABLE] = "1"  # For cocotb's tests, which run in simulators.
    config.pluginmanager.register(Bookkeeper(config))
    config.pluginmanager.register(Stalls(config))
    pass_on_signals()


def wait_for_full(items: list[pytest.Item]) -> None:
    """Mark as ``full`` what a test with the mark ``sample(n)`` leaves out: all but each n-th of its cases, and the last."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sample"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for same in cases.values():
        (every,) = same[0].get_closest_marker("sample").args
        for number, item in enumerate(same[:-1]):
            if number % every:
                item.add_marker(pytest.mark.full)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, which else one worker ends with alone; skip what is marked ``full``, visibly."""
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path.name, len(ranks)))
    if config.getoption("--full"):
        return
    wait_for_full(items)
    for item in items:
        if item.get_closest_marker("full"):
            item.add_marker(pytest.mark.skip(reason="takes minutes of CPU: ./run test --full"))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what is there by now out of each search for garbage, and search less often: a seventh of the CPU time."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)


def pytest_keyboard_interrupt(excinfo: pytest.ExceptionInfo[BaseException]) -> None:
    """Say where a signal ended this process: a worker's own report of it is a word."""
    print(excinfo.getrepr(style="short"), file=sys.__stderr__, flush=True)


# Rows of benches -----------------------------------------------------------------------------------


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Generator[rows.Figures, None, None]:
    """Takes the figures of a row."""
    bench: rows.Bench = request.config.pluginmanager.get_plugin(rows.MARK)
    taken = rows.Figures(rows.row_name(request.node), bool(bench.name))
    yield taken
    bench.found += taken.found


@pytest.fixture
def size(request: pytest.FixtureRequest) -> rows.Size:
    """Give a row its size."""
    bench: rows.Bench = request.config.pluginmanager.get_plugin(rows.MARK)
    return bench.size_of(request.node)


@pytest.fixture
def is_full(size: rows.Size) -> bool:
    """Whether a row runs in full."""
    return size is rows.Size.FULL


# Boards --------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def elaborated(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, ProbeConfig], tuple[Design, dict[str, Any]]]:
    """Elaborates a board with a configuration, once for all tests of all workers: what it left is read by many, changed by none."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # That of all workers.

    @cache
    def make(name: str, config: ProbeConfig) -> tuple[Design, dict[str, Any]]:
        from liteprobe.host.base.output import in_turn
        from liteprobe.sim.drivers.tools.compiled import apart
        from liteprobe.soc.build.bitstream import elaborate

        out = folder / f"{name}-{sha256(repr(config).encode()).hexdigest()[:16]}"
        kept = out.with_suffix(".pickle")
        with in_turn(out.with_suffix(".lock")):
            if not kept.exists():
                kept.write_bytes(pickle.dumps(apart(elaborate, name, config, out)))
        made: tuple[Design, dict[str, Any]] = pickle.loads(kept.read_bytes())
        return made

    return make


# Names of signals ----------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def new_names() -> None:
    """Let Migen forget for which objects it found names, all of which it looks through for each signal, and look faster."""
    if tracer := sys.modules.get("migen.fhdl.tracer"):
        quick_names.install(tracer)


# Machines that stand still -------------------------------------------------------------------------


class Stalls:
    """Runs a test again that failed while the machine stood still, and says so in the end: its limits of time were of no use.

    A thread sleeps for a moment, again and again: how late it wakes is how long nothing of this process ran. A test that fails
    with no such stop fails; so does one that fails three times.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.lock = threading.Lock()
        self.longest_s, self.before_s = 0.0, time.monotonic()
        self.again: dict[str, float] = {}
        threading.Thread(target=self.watch, name="stalls", daemon=True).start()

    def watch(self) -> None:
        """Keep the longest time that this process stood still."""
        while True:
            time.sleep(0.05)
            self.look()

    def look(self) -> None:
        """Take the time since the last look, by this thread or by the test's: which of them wakes first nobody knows."""
        with self.lock:
            now_s = time.monotonic()
            self.longest_s, self.before_s = max(self.longest_s, now_s - self.before_s), now_s

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run a test, and again."""
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        stalled_s = 0.0
        for left in reversed(range(STALL_TRIES)):
            self.look()
            self.longest_s = 0.0
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
            self.look()
            if not left or self.longest_s < STALL_S or not any(report.failed for report in reports):
                break
            stalled_s += self.longest_s
            item._initrequest()  # type: ignore[attr-defined]  # As pytest-rerunfailures does.
        for report in reports:
            if stalled_s:
                report.user_properties = [*report.user_properties, (STALLED, stalled_s)]
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep which tests ran again."""
        for name, value in report.user_properties:
            if name == STALLED:
                self.again[report.nodeid] = value

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print which tests ran again, and for how long the machine had stood still in them."""
        for name, stalled_s in self.again.items():
            terminalreporter.write_line(f"ran again, the machine stood still for {stalled_s:.1f} s in it: {name}")


# CPU time of each group ----------------------------------------------------------------------------


class Bookkeeper:
    """Tells with each report what CPU time it took, and adds them up in the process that prints them.

    A worker counts from one report to the next, so fixtures and children are in it; collection isn't.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.counted_s = cpu_s()
        self.taken_s: Counter[str] = Counter()
        self.of_test_s: Counter[str] = Counter()
        self.tests: Counter[str] = Counter()
        self.full: set[str] = set()
        self.slower = 1.0  # Of the worker that was slowest over the whole run, by the yardstick.
        self.of_worker: dict[int, float] = {}
        self.yards: list[float] = []  # What the yardstick said in this worker.
        self.next_yard_s = 0.0
        pairs = (line.split() for line in config.getini("cpu_budgets"))
        self.budgets_s = {folder: float(seconds) for folder, seconds in pairs}

    def measure(self) -> None:
        """Measure the yardstick once in a while, for other work may begin in mid-run: the mean counts.

        Budgets of a faster machine are never tighter. What the yardstick takes isn't counted.
        """
        if time.monotonic() >= self.next_yard_s:
            counted_s = cpu_s()
            self.yards.append(max(1.0, yardstick()))
            self.counted_s += cpu_s() - counted_s
            self.next_yard_s = time.monotonic() + YARD_EVERY_S

    def since_s(self) -> float:
        """Return the CPU time since the last call (s)."""
        before, self.counted_s = self.counted_s, cpu_s()
        return self.counted_s - before

    def overdrawn(self) -> list[str]:
        """Return the folders that took more than they may; none where everything is run, firmware, too, or a benchmark."""
        if self.config.getoption("--full") or self.config.getoption("--bench") or "ZEPHYR_BASE" in os.environ:
            return []
        return [folder for folder in self.budgets_s if self.taken_s[folder] > self.budget_s(folder)]

    def budget_s(self, folder: str) -> float:
        """Return the CPU time that a folder may take on this machine (s)."""
        return self.budgets_s[folder] * self.slower

    def pytest_collection_finish(self) -> None:
        """Measure the yardstick, and begin with the first test."""
        self.measure()
        self.since_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Tell the CPU time since the last report, and whether a test waits for ``--full``."""
        report = yield
        waits = bool(item.get_closest_marker("full")) and not self.config.getoption("--full")
        slower = sum(self.yards) / len(self.yards)
        report.user_properties = [*report.user_properties, (CPU, (self.since_s(), waits, os.getpid(), slower))]
        self.measure()
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a report to the folder whose budget it is of, or to its own."""
        path = Path(report.nodeid.split("::")[0])
        folder = next((name for name in self.budgets_s if path.is_relative_to(name)), str(path.parent))
        for name, value in report.user_properties:
            if name == CPU:
                seconds, waits, worker, slower = value
                self.of_worker[worker] = slower
                self.slower = max(self.of_worker.values())
                self.taken_s[folder] += seconds
                self.of_test_s[report.nodeid] += seconds
                if waits:
                    self.full.add(report.nodeid)
        self.tests[folder] += report.when == "call"

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Fail when a budget is passed."""
        if self.overdrawn() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return (yield)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what each folder took, and which tests took most."""
        if not self.taken_s or hasattr(self.config, "workerinput") or self.config.getoption("--bench"):
            return
        line = terminalreporter.write_line
        terminalreporter.section("CPU time")
        for folder, seconds in sorted(self.taken_s.items()):
            budget = f"of {self.budget_s(folder):.0f} s" if folder in self.budgets_s else ""
            line(f"{folder:<12} {self.tests[folder]:>5} tests {seconds:>6.0f} s {budget}")
        together_s = sum(self.taken_s.values())
        line(f"{'together':<12} {sum(self.tests.values()):>5} tests {together_s:>6.0f} s, yardstick {self.slower:.2f}")
        if cache := getattr(self.config, "cache", None):
            cache.set(KEPT, {name: round(seconds, 3) for name, seconds in self.of_test_s.items()})
        line("most: " + ", ".join(f"{seconds:.0f} s {name}" for name, seconds in self.of_test_s.most_common(SHOWN)))
        if self.full:
            line(f"{len(self.full)} tests were skipped that take minutes of CPU each: ./run test --full")
        for folder in self.overdrawn():
            line(
                f"FAILED: the tests of {folder} took {self.taken_s[folder]:.0f} s of CPU, {self.budget_s(folder):.1f} s are "
                "planned: make them cheaper, mark one as full, or plan anew in pyproject.toml (docs/design/test-suite.md)",
                red=True,
            )
