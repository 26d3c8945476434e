# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The script ./run on machines that a directory of stubs stands for: nothing is installed, nothing is fetched."""

import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INPUTS = ("run", "requirements.lock", "pyproject.toml", "setup.py", "tools/liteprobe")

# What a minimal Debian has; the script may need nothing else.
NEEDED = "bash cat chmod cp cut date dirname env find flock grep ln mkdir mv readlink rm sed sh sha256sum sleep sort tail touch tr"

# A Python that makes environments, whose pip writes down what it is asked for, and that loads libraries.
PYTHON = """#!/bin/bash
echo "python $*" >>"$CALLS"
case "$*" in
    "-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; touch "$3/pyvenv.cfg" ;;
    *libftdi1.so.2*) if [ -e "$LACKS_LIBFTDI" ]; then exit 1; fi ;;
    "-m pip "*install*) if [ -e "$BREAK" ]; then echo "pip: no route to the index"; exit 1; fi ;;
esac
exit 0
"""


@dataclass
class Machine:
    """A machine that has what lies in ``bin``, with a clone of the repository on it."""

    folder: Path

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    @property
    def clone(self) -> Path:
        return self.folder / "clone"

    @property
    def lacks_libftdi(self) -> Path:
        """A file that is there while this library isn't."""
        return self.folder / "lacks-libftdi"

    def install(self, name: str, script: str = "#!/bin/bash\n") -> None:
        """Put the program ``name`` on this machine."""
        (self.bin / name).write_text(script)
        (self.bin / name).chmod(0o755)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ./run in the clone; the environment holds nothing but PATH."""
        environment = {
            "PATH": str(self.bin),
            "CALLS": str(self.folder / "calls"),
            "BREAK": str(self.folder / "break"),
            "LACKS_LIBFTDI": str(self.lacks_libftdi),
        }
        command = [str(self.clone / "run"), *arguments]
        return subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60
        )

    def calls(self) -> list[str]:
        """Return the calls that stubs have written down since the last time."""
        written = self.folder / "calls"
        lines = written.read_text().splitlines() if written.exists() else []
        written.unlink(missing_ok=True)
        return [line for line in lines if "ensurepip" not in line and "--version" not in line]


@pytest.fixture
def bare(tmp_path: Path) -> Machine:
    """A minimal Debian, used by somebody who isn't root and whom sudo asks for a password."""
    machine = Machine(tmp_path)
    machine.bin.mkdir()
    machine.clone.mkdir()
    for name in NEEDED.split():
        found = shutil.which(name)
        assert found, name
        (machine.bin / name).symlink_to(found)
    for name in INPUTS:
        (machine.clone / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, machine.clone / name)
    # The system's own Python is looked for by its path, too: here it is this machine's.
    script = (machine.clone / "run").read_text()
    (machine.clone / "run").write_text(script.replace("/usr/bin/python3", str(machine.bin / "python3")))
    machine.install("id", "#!/bin/bash\necho 1000\n")
    machine.install("sudo", "#!/bin/bash\nexit 1\n")
    machine.install("apt-get")
    return machine


@pytest.fixture
def ready(bare: Machine) -> Machine:
    """The same with all Debian packages; ``liteprobe`` does nothing."""
    for name in ("g++", "make", "perl", "dtc", "tshark", "liteprobe"):
        bare.install(name)
    bare.install("python3", PYTHON)
    return bare


def test_help_needs_no_setup_and_names_each_command(bare: Machine) -> None:
    done = bare.run("help")
    assert (done.returncode, done.stderr) == (0, "")
    for command in ("demo", "liteprobe", "build", "bench", "test", "lint", "python", "shell", "setup", "lock", "clean"):
        assert f"\n  {command} " in done.stdout or f" {command} " in done.stdout
    assert not (bare.clone / "build").exists()


def test_unknown_command_is_an_error_of_usage(bare: Machine) -> None:
    done = bare.run("dmeo")
    assert done.returncode == 2
    assert done.stderr.startswith("run: there is no command 'dmeo'\nusage: ./run COMMAND")


def test_without_root_the_exact_command_to_type_is_printed(bare: Machine) -> None:
    done = bare.run("demo")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "run: Debian packages are missing: python3 python3-venv g++",
        "next: type:  sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends python3 python3-venv g++'"
        "   then run this again",
    ]


def test_only_tests_ask_for_what_only_tests_need(ready: Machine) -> None:
    (ready.bin / "tshark").unlink()
    (ready.bin / "dtc").unlink()
    assert ready.run("python").returncode == 0
    done = ready.run("test")
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        1,
        "run: Debian packages are missing: device-tree-compiler tshark",
    )


def test_only_builds_ask_for_the_library_that_loads_boards(ready: Machine) -> None:
    ready.lacks_libftdi.touch()
    for command in ("demo", "liteprobe", "test", "python"):
        assert ready.run(command).returncode == 0
    for command in (["build", "colorlight_5a_75b"], ["liteprobe", "build", "colorlight_5a_75b"], ["setup", "build"]):
        done = ready.run(*command)
        assert done.returncode == 1
        assert done.stderr.splitlines()[0] == "run: Debian packages are missing: libftdi1-2"
    ready.lacks_libftdi.unlink()
    assert ready.run("setup", "build").returncode == 0


def test_the_bench_of_the_clock_asks_for_what_counts_its_instructions(ready: Machine) -> None:
    (ready.clone / "bench").mkdir()
    (ready.clone / "bench" / "rows.py").write_text('@row("clock")\n@row("train", is_long=True)\n')
    assert ready.run("bench", "train").returncode == 0
    done = ready.run("bench", "clock")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-2] == "run: Debian packages are missing: gcc-riscv64-unknown-elf qemu-user"
    for name in ("riscv64-unknown-elf-gcc", "qemu-riscv32"):
        ready.install(name)
    assert ready.run("bench", "clock").returncode == 0


def test_root_gets_the_library_that_loads_boards(ready: Machine) -> None:
    ready.lacks_libftdi.touch()
    ready.install("id", "#!/bin/bash\necho 0\n")
    apt = f'#!/bin/bash\necho "apt-get $*" >>"$CALLS"\ncase "$*" in *install*) rm {ready.lacks_libftdi} ;; esac\n'
    ready.install("apt-get", apt)
    assert ready.run("setup", "build").returncode == 0
    asked = [call.split()[-1] for call in ready.calls() if call.startswith("apt-get")]
    assert asked == ["update", "libftdi1-2"]


def test_without_apt_the_lacking_programs_are_named(bare: Machine) -> None:
    (bare.bin / "apt-get").unlink()
    done = bare.run("demo")
    assert done.returncode == 1
    assert done.stderr.startswith("run: this system lacks: python3 python3-venv g++, and has no apt-get\nnext: ")


def test_an_old_python_is_named_with_the_version_that_is_needed(ready: Machine) -> None:
    old = '#!/bin/bash\n[ "$1" = --version ] && echo Python 3.9.2 && exit\nexit 1\n'
    ready.install("python3", old)
    ready.install("id", "#!/bin/bash\necho 0\n")
    done = ready.run("python")
    assert done.returncode == 1
    assert "run: LiteProbe needs Python 3.11 to 3.14 (Debian 12, Ubuntu 24.04 or newer have it); " in done.stderr
    assert "this system's is Python 3.9.2" in done.stderr


def test_root_installs_what_is_missing_and_goes_on(ready: Machine) -> None:
    (ready.bin / "g++").unlink()
    ready.install("id", "#!/bin/bash\necho 0\n")
    apt = (
        f'#!/bin/bash\necho "apt-get $*" >>"$CALLS"\ncase "$*" in *g++*) cp {ready.bin}/make {ready.bin}/g++ ;; esac\n'
    )
    ready.install("apt-get", apt)
    assert ready.run("python", "-c", "pass").returncode == 0
    calls = ready.calls()
    assert [call.split()[-1] for call in calls if call.startswith("apt-get")] == ["update", "g++"]
    assert calls[-1] == "python -c pass"


def test_setup_installs_the_pins_of_its_sections_and_nothing_else(ready: Machine) -> None:
    ready.run("setup", "build")
    section, pins = "", {"base": [], "build": [], "docs": [], "test": []}  # type: dict[str, list[str]]
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        if line.startswith("# == "):
            section = line.removeprefix("# == ")
        elif line and not line.startswith("#"):
            pins[section].append(line)
    files = {name: sorted((ready.clone / "build").glob(f"requirements-{name}*.txt")) for name in pins}
    found = {name: [line for file in files[name] for line in file.read_text().splitlines()] for name in pins}
    assert sorted(found["base"]) == sorted(pins["base"])
    assert (found["build"], found["docs"], found["test"]) == (pins["build"], [], [])
    halves = [len(file.read_text().splitlines()) for file in files["base"]]
    assert len(halves) == 2 and abs(halves[0] - halves[1]) <= 2
    installs = [call for call in ready.calls() if " install " in call]
    assert all("--no-deps" in call for call in installs)
    what = [call.split()[-1] for call in installs]
    assert what[0] == next(pin for pin in pins["base"] if pin.startswith("setuptools=="))
    side_by_side = [f"build/requirements-{name}.txt" for name in ("base-1", "base-2", "build")]
    assert installs[1].split("--editable . ")[1].split() == ["liteiclink==2025.4", "litex-boards==2023.12"]
    assert sorted(what[2:]) == side_by_side


def test_without_a_network_the_proxy_is_asked_for(ready: Machine) -> None:
    said = "WARNING: Retrying after connection broken by 'NewConnectionError(\"[Errno -3]\")': /simple/numpy/"
    ready.install("python3", PYTHON.replace("pip: no route to the index", said.replace('"', '\\"')))
    (ready.folder / "break").touch()
    done = ready.run("python")
    assert done.returncode == 1
    assert (
        "run: pip failed: there is no network, or no way through it\nnext: connect this machine, or name its proxy"
        in done.stderr
    )


def test_a_second_call_sets_nothing_up_and_takes_no_time(ready: Machine) -> None:
    ready.run("python", "-c", "1")
    ready.calls()
    took_s = []
    for _ in range(5):  # The least: other tests share the machine.
        began = time.monotonic()
        done = ready.run("python", "-c", "2")
        took_s.append(time.monotonic() - began)
        assert (ready.calls(), done.stderr) == (["python -c 2"], "")
    assert min(took_s) < 0.3


def test_output_of_the_command_is_not_mixed_with_progress(ready: Machine) -> None:
    done = ready.run("python")
    assert done.stdout == ""
    assert "[setup +" in done.stderr


def test_a_setup_that_broke_says_why_and_goes_on_the_next_time(ready: Machine) -> None:
    (ready.folder / "break").touch()
    broken = ready.run("python", "-c", "pass")
    assert broken.returncode == 1
    assert "pip: no route to the index" in broken.stderr
    assert broken.stderr.splitlines()[-1].startswith("next: mend what the lines above say")
    assert "python -c pass" not in ready.calls()
    (ready.folder / "break").unlink()
    assert ready.run("python", "-c", "pass").returncode == 0
    assert ready.calls()[-1] == "python -c pass"


def test_half_an_environment_is_made_anew(ready: Machine) -> None:
    (ready.clone / ".venv/bin").mkdir(parents=True)
    (ready.clone / ".venv/rubbish").touch()
    assert ready.run("python").returncode == 0
    assert not (ready.clone / ".venv/rubbish").exists()


def test_an_environment_whose_making_was_cut_short_is_made_anew_though_its_pip_answers(ready: Machine) -> None:
    assert ready.run("python").returncode == 0
    (ready.clone / ".venv/rubbish").touch()
    for name in (".made", ".stamp-base"):
        (ready.clone / ".venv" / name).unlink()
    assert ready.run("python").returncode == 0
    assert not (ready.clone / ".venv/rubbish").exists()


@pytest.mark.parametrize("record", [None, "", "numpy/__init__.py,,\nnumpy.dist-info/RECORD,,\n"])
def test_a_package_that_a_killed_pip_left_half_installed_is_installed_again(ready: Machine, record: str | None) -> None:
    """pip takes a package for installed once its metadata is there, and writes its own record of it last."""
    assert ready.run("python").returncode == 0
    site = ready.clone / ".venv/lib/python3.12/site-packages"
    for name, said in (("whole.dist-info", "whole.dist-info/INSTALLER,,\n"), ("half.dist-info", record)):
        (site / name).mkdir(parents=True)
        (site / name / "METADATA").touch()
        if said is not None:
            (site / name / "RECORD").write_text(said)
    (ready.clone / ".venv/.stamp-base").unlink()
    assert ready.run("python").returncode == 0
    assert [path.name for path in site.iterdir()] == ["whole.dist-info"]


@pytest.mark.parametrize("changed", INPUTS)
def test_a_change_of_what_it_depends_on_runs_the_setup_again(ready: Machine, changed: str) -> None:
    ready.run("python")
    ready.calls()
    with (ready.clone / changed).open("a") as file:
        file.write("# changed\n")
    ready.run("python", "-c", "pass")
    assert any("requirements-base-1.txt" in call for call in ready.calls())


def test_what_is_built_is_built_before_others_are_installed_beside_it(ready: Machine) -> None:
    """setuptools imports what it finds in the environment: a half installed ``packaging`` ended a set-up, once in many."""
    ready.install(
        "python3",
        PYTHON.replace("exit 0", 'case "$*" in *--editable*) sleep 0.3; echo built >>"$CALLS" ;; esac; exit 0'),
    )
    assert ready.run("setup", "test").returncode == 0
    calls = [call for call in ready.calls() if call == "built" or " install " in call]
    built = calls.index("built")
    assert ["setuptools==" in call for call in calls[: built - 1]] == [True]
    assert "--editable . liteiclink==" in calls[built - 1] and "litex-boards==" in calls[built - 1]
    later = calls[built + 1 :]
    assert len(later) == 5
    assert all("--only-binary :all: -r build/requirements-" in call for call in later)


def test_two_at_once_set_up_once(ready: Machine) -> None:
    slow = PYTHON.replace('"-m venv "*)', '"-m venv "*) sleep 0.5;')
    slow = slow.replace(
        'case "$*" in',
        '[ "$*" != "-c pass" ] || [ ! -e /proc/self/fd/9 ] || echo "has the lock" >>"$CALLS"\ncase "$*" in',
    )
    ready.install("python3", slow)
    environment = {"PATH": str(ready.bin), "CALLS": str(ready.folder / "calls"), "BREAK": str(ready.folder / "break")}
    command = [str(ready.clone / "run"), "python", "-c", "pass"]
    both = [subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait(timeout=60) for process in both] == [0, 0]
    calls = ready.calls()
    assert sum("-m venv" in call for call in calls) == 1
    assert calls.count("python -c pass") == 2
    assert "has the lock" not in calls  # Neither holds back a third for as long as it runs.


def test_caches_are_kept_inside_the_repository(ready: Machine) -> None:
    tells = '[ "$*" != caches ] || echo "$XDG_CACHE_HOME $PIP_CACHE_DIR $MPLCONFIGDIR"; exit 0'
    ready.install("python3", PYTHON.replace("exit 0", tells))
    folders = ready.run("python", "caches").stdout.split()
    cache = f"{ready.clone}/build/cache"
    assert folders == [cache, f"{cache}/pip", f"{cache}/matplotlib"]


def test_run_works_from_any_folder_and_through_a_link(ready: Machine, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(ready.clone / "run")
    environment = {"PATH": str(ready.bin), "CALLS": str(ready.folder / "calls"), "BREAK": "none"}
    done = subprocess.run(
        [str(tmp_path / "link"), "python"], env=environment, cwd="/", check=False, capture_output=True
    )
    assert done.returncode == 0
    assert (ready.clone / ".venv/bin/python").exists()


def test_clean_keeps_caches_and_environment_and_clean_all_keeps_nothing(ready: Machine) -> None:
    ready.run("python")
    (ready.clone / "build/cache").mkdir(exist_ok=True)
    (ready.clone / "build/sim").mkdir()
    assert ready.run("clean").returncode == 0
    assert not (ready.clone / "build/sim").exists()
    assert (ready.clone / "build/cache").exists()
    ready.calls()
    ready.run("python", "-c", "pass")
    assert ready.calls() == ["python -c pass"]
    assert ready.run("clean", "--all").returncode == 0
    assert sorted(os.listdir(ready.clone)) == sorted({name.partition("/")[0] for name in INPUTS})


def test_bench_without_a_name_lists_the_benches(ready: Machine) -> None:
    (ready.clone / "bench").mkdir()
    (ready.clone / "bench/rows.py").write_text('@row("train")\n    @row("nested")\n')
    assert ready.run("bench", "nested").returncode == 2
    done = ready.run("bench")
    assert done.returncode == 2
    assert done.stderr.rstrip().endswith("NAME is one of: train")
