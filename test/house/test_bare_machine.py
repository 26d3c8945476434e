# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""tools/bare_machine: what it makes of a minimal Debian, by stubs of what needs root; and what it does where it can't."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "bare_machine"
PROGRAMS = {
    "id": "echo 0",
    "debootstrap": 'for base; do case $base in */*) break ;; esac; done; echo "$*" >>"$CALLS"\n'
    'mkdir -p "$base"/{etc/apt/apt.conf.d,root,tmp}',
    "apt-get": 'echo "mirror:/debian $(. /etc/os-release; echo "$VERSION_CODENAME") main"',
    "apt-config": "echo 'Acquire::Retries \"7\";'; echo 'DPkg::Post-Invoke \"x\";'",
    # Nothing is mounted, and the root is not changed; the PATH that is set inside has these programs, too.
    "unshare": 'while [ "${1#--}" != "$1" ]; do shift; done; exec "${@/#PATH=/PATH=${0%/*}:}"',
    "mount": ":",
    "chroot": '[ "$2" != true ] || exit 0; export HOME="$1/root"; shift; exec "$@"',
}


class Here:
    """A machine whose root and mounts are stubs, and a repository with one commit."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin, self.bases = folder, folder / "bin", folder / "bases"
        self.bin.mkdir()
        for name, script in PROGRAMS.items():
            self.install(name, script)
        self.repository = folder / "a repository"
        self.repository.mkdir()
        (self.repository / "kept").write_text("committed\n")
        for words in ("init -q", "add kept", "-c user.name=a -c user.email=a@b commit -qm a"):
            subprocess.run(["git", *words.split()], cwd=self.repository, check=True)
        (self.repository / "kept").write_text("changed since\n")
        self.environment = {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "HOME": str(folder),
            "BARE_FOLDER": str(self.bases),
            "PIP_CACHE_DIR": str(folder / "pip"),
            "CALLS": str(folder / "calls"),
            "https_proxy": "http://proxy:1/",
            "PIP_TARGET": "/elsewhere",
        }

    def install(self, name: str, script: str) -> None:
        (self.bin / name).write_text(f"#!/bin/bash\n{script}\n")
        (self.bin / name).chmod(0o755)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        options = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": 60}
        return subprocess.run([str(SCRIPT), *words], env=self.environment, check=False, **options)

    def left(self) -> list[str]:
        """Return the names of machines that are left."""
        return [path.name for path in self.bases.glob("machine.*")]


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path)


def test_command_runs_in_a_clone_of_what_is_committed_with_proxies_and_nothing_else(here: Here) -> None:
    done = here.run(str(here.repository), "cat kept; pwd; env | cut -d= -f1 | sort | tr '\\n' ' '; exit 7")
    lines = done.stdout.splitlines()
    assert (done.returncode, lines[0], Path(lines[1]).parts[-2:]) == (7, "committed", ("root", "liteprobe")), (
        done.stderr
    )
    names = {"HOME", "LANG", "PATH", "PIP_CACHE_DIR", "https_proxy"}
    assert set(lines[2].split()) - {"PWD", "OLDPWD", "SHLVL", "_"} == names
    assert here.left() == []


def test_base_is_made_once_for_each_suite_from_the_mirror_of_this_system(here: Here) -> None:
    for suite in ([], [], ["--suite", "trixie"]):
        assert here.run(*suite, str(here.repository), "true").returncode == 0
    calls = (here.folder / "calls").read_text().splitlines()
    assert [call.split()[2] for call in calls] == ["bookworm", "trixie"]
    assert {call.split()[1] for call in calls} == {"--include=ca-certificates,git"}
    assert (here.bases / "trixie/etc/apt/apt.conf.d/90caller").read_text() == 'Acquire::Retries "7";\n'
    sources = here.bases / "trixie/etc/apt/sources.list"
    if "ID=debian\n" in Path("/etc/os-release").read_text():
        assert [call.split()[-1] for call in calls] == ["mirror:/debian"] * 2
        assert sources.read_text() == "deb mirror:/debian trixie main\n"


@pytest.mark.parametrize(
    ("name", "script", "said"),
    [
        ("id", "echo 1000", "it needs root to make a minimal Debian"),
        ("unshare", "exit 1", "nothing may be mounted here"),
        ("debootstrap", "echo no mirror; exit 1", "no minimal Debian can be made"),
    ],
)
def test_where_it_cannot_it_says_so_and_runs_in_place(here: Here, name: str, script: str, said: str) -> None:
    here.install(name, script)
    done = here.run(str(here.repository), "cat kept; exit 7")
    assert (done.returncode, done.stdout) == (7, "changed since\n")
    assert f"bare_machine: {said}" in done.stderr and "runs in place, on this system as it is" in done.stderr


def test_without_debootstrap_apt_get_installs_it_or_it_runs_in_place(here: Here) -> None:
    if shutil.which("debootstrap", path="/usr/sbin:/usr/bin"):
        pytest.skip("this system has a debootstrap")
    (here.bin / "debootstrap").unlink()
    here.install("apt-get", 'echo "$*" >>"$CALLS"; exit 1')
    done = here.run(str(here.repository), "cat kept")
    assert "there is no debootstrap, and apt-get can't install it" in done.stderr
    assert (done.stdout, (here.folder / "calls").read_text().count("update")) == ("changed since\n", 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_what_runs_and_leaves_no_machine(here: Here, number: signal.Signals) -> None:
    started = here.folder / "started"
    script = f"echo $$ >'{started}.new'; mv '{started}.new' '{started}'; exec sleep 600"
    command = [str(SCRIPT), str(here.repository), script]
    process = subprocess.Popen(command, env=here.environment, stderr=subprocess.DEVNULL)
    while not started.exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(number)
    assert process.wait(30) == 128 + number
    assert here.left() == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


def test_what_a_killed_run_left_is_removed_by_the_next(here: Here) -> None:
    here.bases.mkdir()
    (here.bases / "machine.dead").mkdir()
    (here.bases / "machine.dead.lock").touch()
    assert here.run(str(here.repository), "true").returncode == 0
    assert here.left() == []


def test_usage_is_said_where_words_are_missing(here: Here) -> None:
    done = here.run(str(here.repository))
    assert done.returncode == 2 and done.stderr.startswith(
        "usage: tools/bare_machine [--suite NAME] REPOSITORY COMMAND"
    )
