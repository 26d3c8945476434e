# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The package as others install it: what is in its source distribution and its wheel, what it asks for, where it builds."""

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
#: Runs in an interpreter that sees a wheel and the packages of this environment, but not this clone.
OUTSIDE = "import sys; sys.path[:0] = {paths!r}\n"
SOURCES = ("py.typed", ".c", ".h", ".cpp", ".v", ".sv", ".yaml", ".html", ".css")
PLAIN = {"numpy", "rich", "shtab", "pyserial", "prometheus-client", "PyYAML", "pyzmq", "platformdirs", "MLRsearch"}
EXTRAS = {"report", "parquet", "packed", "clock", "gateware", "sim", "build", "all", "test"}


def tracked(*patterns: str) -> set[str]:
    command = ["git", "ls-files", "--", *patterns]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return {path for path in listed if (ROOT / path).is_file()}


def backend(folder: Path, hook: str, out: Path) -> Path:
    """Have setuptools make a distribution of the source in ``folder``."""
    script = f"from setuptools import build_meta; print(build_meta.{hook}({str(out)!r}))"
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, check=True, capture_output=True, text=True)
    return out / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, unpacked: made of what git keeps."""
    clone, out = tmp_path_factory.mktemp("a clone"), tmp_path_factory.mktemp("sdist")
    for path in tracked():
        (clone / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, clone / path)
    with tarfile.open(backend(clone, "build_sdist", out)) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # From Python 3.11.4 on.
        archive.extractall(out)
    (unpacked,) = out.glob("liteprobe-*/")
    return unpacked


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, made from the source distribution."""
    return zipfile.ZipFile(backend(sdist, "build_wheel", tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="module")
def site(wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked as an installer does."""
    folder = tmp_path_factory.mktemp("a site")
    wheel.extractall(folder)
    return folder


def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return Parser().parsestr(wheel.read(name).decode())


def outside(site: Path, script: str, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script where the wheel is installed, and no clone is at hand."""
    paths = [str(site), sysconfig.get_paths()["platlib"]]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "LITEPROBE_", "PYTHON"))}
    command = [sys.executable, "-S", "-c", OUTSIDE.format(paths=paths) + script]
    return subprocess.run(
        command, cwd=home, env={**clean, "HOME": str(home), **environment}, capture_output=True, text=True, check=False
    )


def test_the_source_distribution_has_all_that_git_keeps(sdist: Path) -> None:
    packed = {str(path.relative_to(sdist)) for path in sdist.rglob("*") if path.is_file()}
    made = {path for path in packed if path.startswith("liteprobe.egg-info/")} | {"PKG-INFO", "setup.cfg"}
    assert packed - made == tracked()


def test_the_wheel_has_what_runs_and_no_tests(wheel: zipfile.ZipFile) -> None:
    packed = {name for name in wheel.namelist() if name.startswith("liteprobe/")}
    assert {"liteprobe/host/py.typed", "liteprobe/cores/formats/py.typed"} <= packed  # PEP 561.
    ours = {path for path in tracked("cores", "soc", "boards", "host", "sim") if not is_test(path)}
    ours = {path for path in ours if path.endswith((".py", *SOURCES)) or path.startswith("host/serve/page/")}
    firmware = {path for path in tracked("firmware") if not path.startswith("firmware/tests/")}
    assert packed == {f"liteprobe/{path}" for path in ours | firmware}
    assert {"firmware/lib/servo/servo.c", "firmware/app/CMakeLists.txt", "firmware/zephyr/module.yml"} <= firmware


def test_a_wheel_of_this_platform_brings_simulated_probes_that_need_no_compiler(
    sdist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ask for them where nothing is on PATH; what did not come along is built, as ever."""
    (tmp_path / "built" / "own-train").mkdir(parents=True)
    for name in ("liteprobe-sim", "csr.json"):
        (tmp_path / "built" / "own-train" / name).write_text("#!/bin/sh\n")
    (tmp_path / "built" / "own-train" / "liteprobe-sim").chmod(0o755)
    monkeypatch.setenv("LITEPROBE_BUILT", str(tmp_path / "built"))
    made = zipfile.ZipFile(backend(sdist, "build_wheel", tmp_path))
    library, version = platform.libc_ver()
    system = f"manylinux_{version.replace('.', '_')}" if library == "glibc" else "linux"
    assert Path(str(made.filename)).name.endswith(f"-py3-none-{system}_{platform.machine()}.whl")
    mode = made.getinfo("liteprobe/built/own-train/liteprobe-sim").external_attr >> 16
    assert mode & 0o111  # pip makes executable what is.
    (metadata,) = [name for name in made.namelist() if name.endswith(".dist-info/WHEEL")]
    assert "Root-Is-Purelib: false" in made.read(metadata).decode()
    made.extractall(tmp_path / "site")
    script = """
from liteprobe.host import ProbeError
from liteprobe.host.base.doctor import compilers
from liteprobe.host.device.link.sim import SimOptions, build
print(build(SimOptions()))
print(compilers()[0].state.name)
try:
    build(SimOptions(link="uart"))
except ProbeError as error:
    print(error)
"""
    done = outside(tmp_path / "site", script, tmp_path, PATH="")
    kept, state, refused = done.stdout.splitlines()
    assert (kept, state) == (f"{tmp_path}/site/liteprobe/built/own-train", "OK")
    assert refused == "the simulated probe is compiled here, and there is no g++: type  apt-get install g++"


def is_test(path: str) -> bool:
    name = Path(path).name
    return (
        path.startswith(("sim/unit/", "sim/wire/", "sim/formal/")) or name == "conftest.py" or name.startswith("test_")
    )


def test_the_wheel_asks_for_ranges_of_what_a_host_needs_and_names_its_extras(wheel: zipfile.ZipFile) -> None:
    found = metadata(wheel)
    asked = [Requirement(text) for text in found.get_all("Requires-Dist", [])]
    assert {one.name for one in asked if one.marker is None} == PLAIN
    assert set(found.get_all("Provides-Extra", [])) >= EXTRAS
    loose = [
        str(one) for one in asked if one.name != "liteprobe" and not {">="} <= {each.operator for each in one.specifier}
    ]
    assert (loose, found["Requires-Python"]) == ([], ">=3.11")


def test_outside_a_clone_builds_go_to_the_cache_and_products_to_the_working_directory(
    site: Path, tmp_path: Path
) -> None:
    asked = "f.is_clone(), f.build_folder(), f.products(), f.ROOT"
    script = f"from liteprobe.host.base import folders as f; print({asked}, sep='\\n')"
    home = tmp_path / "a home"
    home.mkdir()
    assert outside(site, script, home).stdout.splitlines() == [
        *("False", f"{home}/.cache/liteprobe", "build", f"{site}/liteprobe")
    ]
    asked = outside(site, script, home, XDG_CACHE_HOME=f"{home}/c").stdout.splitlines()
    assert asked[1] == f"{home}/c/liteprobe"
    asked = outside(site, script, home, LITEPROBE_BUILD=f"{home}/b").stdout.splitlines()
    assert asked[1] == f"{home}/b"
    from liteprobe.host.base import folders

    assert (folders.is_clone(), folders.products()) == (True, ROOT / "build")


def test_where_the_cache_cannot_be_written_a_temporary_folder_is_named(site: Path, tmp_path: Path) -> None:
    """A file stands in its place: that stops root, too."""
    (tmp_path / "c").touch()
    script = "from liteprobe.host.base import folders as f; print(f.build_folder())"
    done = outside(site, script, tmp_path, XDG_CACHE_HOME=f"{tmp_path}/c", TMPDIR=str(tmp_path))
    folder = f"{tmp_path}/liteprobe-{os.getuid()}"
    assert done.stdout == f"{folder}\n"
    assert done.stderr == (
        f"liteprobe: {tmp_path}/c/liteprobe can't be written to (Not a directory): what is built goes to {folder}, "
        "which may not last; to keep it, set LITEPROBE_BUILD=FOLDER\n"
    )
    assert oct(Path(folder).stat().st_mode)[-3:] == "700"


def test_nothing_is_built_where_another_user_could_have_put_it(site: Path, tmp_path: Path) -> None:
    (tmp_path / "c").touch()
    (tmp_path / f"liteprobe-{os.getuid()}").mkdir()
    script = (
        "import os; from liteprobe.host.base import folders as f; mine = os.getuid()\n"
        "f.os.getuid = lambda: mine + 1 if sys._getframe(1).f_code.co_name == '_why_not' else mine\n"
        "f.build_folder()"
    )
    done = outside(site, script, tmp_path, XDG_CACHE_HOME=f"{tmp_path}/c", TMPDIR=str(tmp_path))
    assert "it belongs to another user): name another folder, LITEPROBE_BUILD=FOLDER" in done.stderr


def test_the_servo_is_compiled_from_the_wheel_into_the_cache(site: Path, tmp_path: Path) -> None:
    script = "from liteprobe.host.clock.servo import Servo; print(Servo(10**9).config.period_ns)"
    done = outside(site, script, tmp_path)
    assert (done.stdout, done.stderr) == ("1000000000\n", "")
    assert len(list((tmp_path / ".cache" / "liteprobe" / "firmware-host").glob("servo-*.so"))) == 1
    done = outside(site, script, tmp_path, PATH="", XDG_CACHE_HOME=f"{tmp_path}/other")
    assert "there is no C compiler: type  apt-get install gcc  or name one in CC" in done.stderr
