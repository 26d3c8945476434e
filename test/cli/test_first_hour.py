# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The first hour of a stranger: modules that lie around, folders that can't be used, programs that fail, inputs of one's own."""

import errno
import io
import json
import os
import re
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from matplotlib.figure import Figure
from migen import Module

from liteprobe.host.base import doctor, extras, folders, programs
from liteprobe.host.base.doctor import Finding, State
from liteprobe.host.base.errors import UsageError
from liteprobe.host.device import discover
from liteprobe.host.device.discover import places
from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.device.link.url import open_link
from liteprobe.host.report import clock_plots
from liteprobe.sim.drivers.labs import notebook
from liteprobe.sim.system import build
from liteprobe.soc.export import soc_map
from liteprobe.soc.extension import extend_with

ROOT = Path(__file__).resolve().parents[2]
LAUNCHER = (ROOT / "tools" / "liteprobe").read_text()
TRAP = 'raise SystemExit("a trap")\n'


def program(path: Path, text: str) -> Path:
    """Write a program of the shell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def launcher(folder: Path) -> Path:
    """Put the launcher into ``folder/bin``."""
    path = folder / "bin" / "liteprobe"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(LAUNCHER)
    path.chmod(0o755)
    return path


def said(command: list[str | Path], **options: object) -> tuple[int, str, str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    return done.returncode, done.stdout, done.stderr


# Python ------------------------------------------------------------------------------------------


def test_modules_that_lie_where_the_user_stands_are_not_run(tmp_path: Path) -> None:
    """As a clone called liteprobe does, and the files of a student: in the program itself, and in those that it starts."""
    (tmp_path / "liteprobe" / "host").mkdir(parents=True)
    for name in ("liteprobe/host/__init__", "random", "socket", "json", "numpy", "rich"):
        (tmp_path / f"{name}.py").write_text(TRAP)
    command = launcher(tmp_path / "env")
    program(tmp_path / "env" / "bin" / "python", f'exec "{sys.executable}" "$@"')
    code, out, err = said([command, "doctor", "--no-network"], cwd=tmp_path)
    assert (code, "a trap" in out + err, "missing tools" in out) == (0, False, False)
    assert "yosys" in out


def test_without_an_environment_the_launcher_finds_the_python_that_it_was_installed_for(tmp_path: Path) -> None:
    """As with pip's --user: two Pythons, and the package in the folder of the one that isn't called python3."""
    command = launcher(tmp_path / "local")
    (tmp_path / "local" / "lib" / "python3.97" / "site-packages" / "liteprobe" / "host").mkdir(parents=True)
    (tmp_path / "local" / "lib" / "python3.98" / "site-packages" / "liteprobe" / "host").mkdir(parents=True)  # Is gone.
    program(tmp_path / "path" / "python3", "echo No module named liteprobe >&2; exit 1")
    program(tmp_path / "path" / "python3.97", 'echo "$@"')
    path = f"{tmp_path}/path:{os.environ['PATH']}"
    assert said([command, "--version"], env={"PATH": path}) == (
        0,
        "-P -c import liteprobe.host.base.interrupt\n-P -m liteprobe.host.cli --version\n",
        "",
    )


def test_a_shell_that_is_given_the_launcher_finds_the_python_beside_it(tmp_path: Path) -> None:
    launcher(tmp_path)
    program(tmp_path / "bin" / "python", 'echo "beside $*"')
    assert said(["sh", "liteprobe", "info"], cwd=tmp_path / "bin") == (0, "beside -P -m liteprobe.host.cli info\n", "")


def test_installed_with_target_the_launcher_finds_the_package_beside_it(tmp_path: Path) -> None:
    command = launcher(tmp_path / "a target")
    (tmp_path / "a target" / "liteprobe" / "host").mkdir(parents=True)
    program(tmp_path / "path" / "python3", 'echo "$PYTHONPATH"')
    path = f"{tmp_path}/path:{os.environ['PATH']}"
    code, out, _ = said([command], env={"PATH": path, "PYTHONPATH": "/before"})
    assert (code, set(out.splitlines())) == (0, {f"{tmp_path}/a target/bin/..:/before"})


def test_where_no_python_has_the_package_the_launcher_says_so(tmp_path: Path) -> None:
    program(tmp_path / "path" / "python3", "echo No module named liteprobe >&2; exit 1")
    (tmp_path / "lib" / "python3.98" / "site-packages" / "liteprobe" / "host").mkdir(parents=True)  # Is gone.
    path = f"{tmp_path}/path:{os.environ['PATH']}"
    expected = (
        "liteprobe: no Python here (python3 python3.98) has the package liteprobe: start it by the one that it was installed "
        "with, PYTHON -m liteprobe.host.cli\n"
    )
    assert said([launcher(tmp_path)], env={"PATH": path}) == (1, "", expected)


def test_a_program_that_was_run_leaves_no_pipe_open() -> None:
    script = "from liteprobe.host.base import programs; print(programs.run(['echo', 'x'], keep_output=True).output)"
    assert said([sys.executable, "-X", "dev", "-c", script]) == (0, "x\n\n", "")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_what_a_long_program_says_is_followed_by_how_long_it_takes_which_a_terminal_alone_erases(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(shown, "isatty", lambda: is_terminal)
    monkeypatch.setattr(programs, "LOOK_S", 0.02)
    monkeypatch.setattr(programs, "REMINDER_S", 0.04)
    monkeypatch.setattr(sys, "stderr", shown)
    programs.run(["sh", "-c", "exit"])
    assert shown.getvalue() == ""
    programs.run(["sh", "-c", "echo a >&2; sleep 0.3; echo b >&2"])
    erased, waited = r"\r\x1b\[K", r"  \d+ s"
    on_terminal = f"a\n(?:{erased}{waited})+{erased}b\n(?:{erased}{waited})*{erased}"
    expected = on_terminal if is_terminal else rf"a\n(?:{waited}: a\n)+b\n(?:{waited}: b\n)*"
    assert re.fullmatch(expected, shown.getvalue()), repr(shown.getvalue())


@pytest.mark.parametrize(
    ("line", "seconds", "shown"),
    [
        ("building: about 20 s", 5, "[#####---------------] 5 of about 20 s"),
        ("building: about 20 s", 20, "[####################] 20 of about 20 s"),
        ("building: about 20 s", 31, "31 s, 11 s longer than foretold"),
        ("building: about 0 s", 0, "[--------------------] 0 of about 0 s"),
        ("built in about 20 s: there", 5, "5 s"),
    ],
)
def test_what_is_foretold_gets_a_bar_which_says_when_it_was_wrong(line: str, seconds: float, shown: str) -> None:
    assert programs._state(line, seconds) == shown


def test_a_terminal_that_lacks_a_character_is_shown_its_number(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", folders.VARIABLE: f"{tmp_path}/Übung"}
    code, out, err = said([sys.executable, "-m", "liteprobe.host.cli", "doctor", "--no-network"], env=environment)
    assert (code, rf"{tmp_path}/\xdcbung" in out, err) == (0, True, "")


# Folders -----------------------------------------------------------------------------------------


def test_a_folder_of_builds_is_found_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler runs in another folder, and the shell doesn't know ~ behind a sign of equality in quotes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", f"{tmp_path}/home")
    found = []
    for named in ("b", "~/b"):
        monkeypatch.setenv(folders.VARIABLE, named)
        found.append(folders.build_folder())
    assert found == [tmp_path / "b", tmp_path / "home" / "b"]


def test_the_doctor_sees_that_nothing_can_be_built_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(folders.VARIABLE, f"{tmp_path}/file/b")
    assert doctor.build_folder() == Finding(
        "folder of builds",
        State.MISSING,
        f"{tmp_path}/file/b: nothing new can be built there (Not a directory)",
        "export LITEPROBE_BUILD=FOLDER",
    )


def test_what_is_built_already_is_taken_from_a_folder_that_is_not_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(folders.VARIABLE, str(tmp_path))
    target = tmp_path / "sim" / "key"
    target.mkdir(parents=True)
    (target / "liteprobe-sim").touch()
    assert build.build("key", lambda: pytest.fail("it was built")) == target
    assert list(target.parent.iterdir()) == [target]


def test_a_working_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    script = (
        "import os, sys; from liteprobe.host.cli.main import main; from liteprobe.sim.system import build\n"
        "os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')\n"
        "code = main(['build', 'colorlight_5a_75b', '--no-compile'])\n"
        "sys.argv[1:] = []; sys.exit(10 * build.main() + code)"
    )
    why = "the folder that you are in is gone: cd to one that is there, and run again"
    code, _, err = said(
        [sys.executable, "-c", script], cwd=tmp_path, env={**os.environ, folders.VARIABLE: f"{tmp_path}/b"}
    )
    assert (code, err) == (12, f"liteprobe: {why}\nbuild: {why}\n")


def test_a_file_system_without_links_gets_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setenv(folders.VARIABLE, str(tmp_path))
    monkeypatch.setattr(os, "link", refuse)

    def compile_harness(folder: Path, *_: object) -> None:
        for name in ("linked", build.LIBRARY):
            (folder / name).write_text("x")

    monkeypatch.setattr(build, "compile_harness", compile_harness)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "liteprobe-sim").write_text("half of an earlier one")
    with ThreadPoolExecutor(1) as pool:
        build.make_executable(tmp_path / "work", [], build.Design(None, "", lambda *_: []), pool, [])
    assert all((tmp_path / "work" / name).read_text() == "x" for name in (build.EXECUTABLE, build.LIBRARY))


# Programs that fail ------------------------------------------------------------------------------


def built(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what the program that builds a simulated probe says of why it can't."""
    monkeypatch.setattr(sys, "argv", ["build"])
    build.tools.cache_clear()
    try:
        assert build.main() == 1
    finally:
        build.tools.cache_clear()
    return capsys.readouterr().err.splitlines()[-1]


def test_why_a_simulated_probe_cannot_be_built_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(folders.VARIABLE, f"{tmp_path}/file")
    assert built(monkeypatch, capsys) == (
        f"build: {tmp_path}/file/sim can't be used (Not a directory): see to its rights and to room on the disk, "
        "or name another folder (LITEPROBE_BUILD=FOLDER)"
    )
    program(tmp_path / "bin" / "g++", "echo no licence >&2; exit 3")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    assert built(monkeypatch, capsys) == "build: 'g++ --version' fails with 3: no licence"


def test_what_a_compiler_says_is_kept_and_its_log_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    compiler = program(tmp_path / "g++", "echo one; echo cc1plus: error: out of cheese; exit 3")
    with pytest.raises(RuntimeError, match=rf"^g\+\+ failed with 3, log {log}: cc1plus: error: out of cheese$"):
        build.run([str(compiler)], tmp_path, log)


def test_a_compiler_that_compiles_nothing_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [check.state for check in doctor.compilers()] == [State.OK, State.OK]
    compiler = program(tmp_path / "g++", "echo fatal error: string: No such file >&2; exit 1")
    (tmp_path / "cc").write_text("no program")
    (tmp_path / "cc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    assert [(check.state, check.said) for check in doctor.compilers()] == [
        (State.MISSING, f"{compiler} compiles nothing: fatal error: string: No such file"),
        (State.MISSING, f"{tmp_path}/cc compiles nothing: Exec format error"),
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("#!/bin/sh\nexit 7\n", "exit code 7"),
        ("#!/bin/sh\nprintf '\\377 broken' >&2; exit 1", "\ufffd broken"),
        ("no program", "Exec format error"),
        ("#!/nowhere/at/all\n", "No such file or directory"),
        ("#!/bin/sh\nexec sleep 60\n", "it doesn't end within 0 s"),
        ("#!/bin/sh\nprintf 'openFPGALoader v1'\n", ""),
    ],
)
def test_a_loader_that_does_not_work_is_missing(
    text: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "TIMEOUT_S", 0.3)
    loader = tmp_path / "loader"
    loader.write_text(text)
    loader.chmod(0o755)
    check = doctor.tool("openFPGALoader", str(loader))
    expected = (State.MISSING, f"{loader} can't tell its version: {why}") if why else (State.OK, str(loader))
    assert (check.state, check.said) == expected


def test_the_host_ends_with_the_reason_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not with the traceback of the program that builds."""
    (tmp_path / "file").touch()
    environment = {**os.environ, folders.VARIABLE: f"{tmp_path}/file"}
    code, _, err = said([sys.executable, "-m", "liteprobe.host.cli", "info", "--probe", "sim://cable"], env=environment)
    assert (code, err.count("\n")) == (1, 1)
    assert err.startswith(f"liteprobe: the simulated probe can't be built: {tmp_path}/file/sim can't be used (")


# Scripts -----------------------------------------------------------------------------------------

WORKER = """
import multiprocessing
from liteprobe.host.base import interrupt

{before}
process = multiprocessing.get_context("spawn").Process(target={target}, args=("worker",))
interrupt.start_worker(process)
process.join()
print(process.exitcode)
"""
OF_THE_SCRIPT = """
def say(words): print(words)

if __name__ != "__main__":
    raise SystemExit(say("script"))
"""


@pytest.mark.parametrize(
    ("target", "before", "expected"),
    [("print", "print('script', flush=True)", "script\nworker\n0\n"), ("say", OF_THE_SCRIPT, "script\n0\n")],
)
def test_a_script_is_run_once_whatever_processes_it_needs(
    target: str, before: str, expected: str, tmp_path: Path
) -> None:
    """As those of the pages, which have no ``if __name__ == "__main__"``; one that hands over a function of its own is loaded."""
    (tmp_path / "script.py").write_text(WORKER.format(target=target, before=before))
    assert said([sys.executable, tmp_path / "script.py"]) == (0, expected, "")


# Networks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["", "BusyBox v1.36", "null", "{}", "7", '[{"flags": ["UP"], "addr_info": [{}]}]', '[{"flags": 1}]']
)
def test_an_ip_that_cannot_be_understood_is_done_without(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discover, "_guess", lambda: {"default": []})
    assert discover.interfaces(text) in ({"default": []}, {})


def test_an_ip_that_hangs_or_cannot_start_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discover, "TIMEOUT_S", 0.2)
    monkeypatch.setattr(discover, "_guess", lambda: {"default": []})
    monkeypatch.setattr(discover, "ARP_TABLE", tmp_path / "none")
    for text in ("exec sleep 60", "printf '\\377'"):
        for name in ("ip", "arp"):
            program(tmp_path / name, text)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")
        assert (discover.interfaces(), discover.neighbours()) == ({"default": []}, {})


@pytest.mark.parametrize("target", ["fd00::2", "[fd00::2]:1234", "fd00::/64", "1:2:3:4:5:6:7:8"])
def test_an_address_of_ipv6_is_said_to_be_one(target: str) -> None:
    with pytest.raises(UsageError, match=r"is an IPv6 address, and probes speak IPv4 alone: write it like 192\.168"):
        places([target])
    with pytest.raises(UsageError, match="that is an IPv6 address, and probes speak IPv4 alone"):
        open_link(f"etherbone://{target.replace('/', '')}")


def test_the_doctor_says_which_networks_were_left_out() -> None:
    checks = doctor.probes([], 1, ["10.4.0.0/16 (eth0) is too large"])
    assert [(check.name, check.state, check.said) for check in checks] == [
        ("network", State.NONE, "10.4.0.0/16 (eth0) is too large"),
        ("probe", State.NONE, "none answers at the one address that was asked"),
    ]


def test_without_a_loopback_interface_the_simulated_probe_says_what_to_do() -> None:
    link = SimLink.__new__(SimLink)
    link.host, link.port = "127.0.0.1", 7
    error = link._unreachable(OSError(errno.ENETUNREACH, "Network is unreachable"))
    assert str(error) == (
        "cannot reach the simulated probe at 127.0.0.1:7 (Network is unreachable): it is on this host's loopback interface, "
        "which must be up (ip link set lo up)"
    )


# Circuits of one's own ---------------------------------------------------------------------------

ALONE = ". It is loaded on its own, without what lies beside it: put all that it needs into one file, or install it"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def extend(soc:\n", "can't be loaded: line 1: '(' was never closed"),
        ("def extend(soc):\n    raise KeyError('boo')\n", "can't extend the probe: line 2: KeyError: 'boo'"),
        ("\n1 / 0\n", "can't be loaded: line 2: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(0)\n", "can't be loaded: line 2: SystemExit: 0"),
        ("import beside\n", f"can't be loaded: line 1: ModuleNotFoundError: No module named 'beside'{ALONE}"),
        (
            "from . import x\n",
            f"can't be loaded: line 1: ImportError: attempted relative import with no known parent package{ALONE}",
        ),
        (
            "from migen import Module\ndef extend(soc):\n    soc.add_module('timebase', Module())\n",
            "can't extend the probe: line 3: the probe has a 'timebase' already: give the module another name",
        ),
        ("x = 1\n", "has no function extend(soc): see docs/labs/octet_counter.py"),
    ],
)
def test_what_is_wrong_with_a_circuit_of_ones_own_is_said_with_its_line(
    text: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from litex.gen import LiteXModule

    soc = LiteXModule()
    soc.add_module("timebase", Module())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "beside.py").touch()
    path = Path("my circuit.py")
    path.write_text(text)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    with pytest.raises(ValueError) as error:
        extend_with(soc, path)
    assert str(error.value) == f"my circuit.py {why}"


def test_two_registers_of_one_name_are_refused() -> None:
    """LiteX's map would have one of them, and a host would read that one for both."""

    def soc(snapshots: dict[str, dict[str, tuple[int, int]]], **regions: list[str]) -> SimpleNamespace:
        made = {
            name: SimpleNamespace(obj=[SimpleNamespace(name=each) for each in names]) for name, names in regions.items()
        }
        memory = SimpleNamespace(origin=0)
        return SimpleNamespace(csr_regions=made, snapshots=snapshots, mem_regions={"port0_snapshot": memory})

    with pytest.raises(
        ValueError, match="^two registers have the name mine_a: give one of them, or its module, another$"
    ):
        soc_map(soc({}, mine=["a", "b", "a"]))
    with pytest.raises(ValueError, match="the name port0_rx_clear:"):
        soc_map(soc({}, port0=["rx_clear"], port0_rx=["clear"]))
    with pytest.raises(ValueError, match="the name port0_rx_frames:"):
        soc_map(soc({"port0": {"frames": (0, 1)}}, port0=["rx_frames"]))


# Marking -----------------------------------------------------------------------------------------


def test_one_bad_file_does_not_end_the_marking_of_a_class(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check = notebook.load("teacher/check")
    expected = check.answers()["lab1_line_rate"]
    right = {name: answer["value"] for name, answer in expected.items()}
    handed_in = {
        "right": json.dumps(right).encode(),
        "of_windows": b"\xef\xbb\xbf" + json.dumps(right).encode(),
        "empty": b"",
        "octets": b"\xff\xfe",
        "list": b"[1]",
        "nothing": b"null",
        "deep": b"[" * 100_000,
        "words": json.dumps(right | {"slot_60_ns": "672"}).encode(),
        "truth": json.dumps(right | {"slot_60_ns": True}).encode(),
        "not_a_number": json.dumps(right | {"slot_60_ns": float("nan")}).encode(),
        "huge": json.dumps(right | {"slot_60_ns": 10**400}).encode(),
    }
    for name, octets in handed_in.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "lab1.json").write_bytes(octets)
    files = [f"{tmp_path}/{name}/lab1.json" for name in [*handed_in, "absent"]]
    assert check.main(files) == 1
    lines = capsys.readouterr().out.splitlines()
    scores = {line.split("/")[-2]: line.split(": ")[1] for line in lines if not line.startswith(" ")}
    full, count = f"{len(right)} of {len(right)}", len(right)
    assert scores == {
        **dict.fromkeys(("right", "of_windows"), full),
        **dict.fromkeys(("empty", "octets", "list", "nothing", "deep", "absent"), f"0 of {count}"),
        **dict.fromkeys(("words", "truth", "not_a_number", "huge"), f"{count - 1} of {count}"),
    }
    assert '  slot_60_ns: "672" is not a number; 672 (8 ns * (60 + 24))' in lines


# Plots, and what to type ---------------------------------------------------------------------------


def test_a_clock_that_is_never_off_is_plotted_without_a_warning() -> None:
    """A newcomer plots that of a simulated probe on a simulated PPS first."""
    axes = Figure().subplots()
    axes.errorbar([1, 2], [0, 0], [0, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clock_plots._logarithmic(axes)
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")
        axes.plot([1, 2], [0, 3])
        clock_plots._logarithmic(axes)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


def test_where_there_is_no_pip_uv_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "is_installed", lambda module: module != "pip")
    assert extras.install("x") == f"uv pip install --python {extras.quoted(sys.executable)} x"
