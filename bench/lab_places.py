# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures whether labgrid takes docs/examples/labgrid: its own coordinator, exporter and clients, and a simulated probe.

labgrid is installed into an environment of its own, build/labgrid, once; that isn't measured.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from hostile_control import free_running

from liteprobe.sim.drivers.tools.figures import ROOT, Figure, note, row

LABGRID = "labgrid==26.0.1"
EXAMPLE = ROOT / "docs" / "examples" / "labgrid"
PATIENCE_S = 120.0


class Lab:
    """Runs labgrid's programs, with a coordinator and an exporter until it is closed."""

    def __init__(self, folder: Path, url: str, register_map: str) -> None:
        self._bin, self._stack = environment(), ExitStack()
        shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
        self.measure, exported = folder / "measure.py", folder / "exporter.yaml"
        text = exported.read_text().replace("etherbone://192.168.1.50", url)
        exported.write_text(f"{text}    map: {register_map}\n")
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self._coordinator = f"127.0.0.1:{probe.getsockname()[1]}"
        self._start(folder, "coordinator", "-l", self._coordinator)
        self._wait("places")
        exporter = self._start(folder, "exporter", "-c", self._coordinator, "-n", "desk", "exporter.yaml")
        while "desk/bench/LiteProbe" not in self._wait("resources"):
            if exporter.poll() is not None:
                raise RuntimeError(f"labgrid's exporter has ended: {(folder / 'exporter.log').read_text()[-600:]}")
            time.sleep(0.2)

    def close(self) -> None:
        """End its programs."""
        self._stack.close()

    def client(self, user: str, *words: str) -> tuple[int, str]:
        """Run ``labgrid-client`` for a user; return its exit code and what it printed."""
        return self._ran(user, str(self._bin / "labgrid-client"), *words)

    def script(self, user: str) -> tuple[int, str]:
        """Run the example for a user."""
        return self._ran(user, str(self._bin / "python"), str(self.measure))

    def _ran(self, user: str, *command: str) -> tuple[int, str]:
        own = {"LG_COORDINATOR": self._coordinator, "LG_USERNAME": user, "LG_HOSTNAME": f"host-of-{user}"}
        ended = subprocess.run(command, env=os.environ | own, capture_output=True, text=True, check=False)
        return ended.returncode, ended.stdout + ended.stderr

    def _start(self, folder: Path, name: str, *words: str) -> "subprocess.Popen[bytes]":
        command = [str(self._bin / f"labgrid-{name}"), *words]
        with (folder / f"{name}.log").open("w") as log:
            one = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        self._stack.callback(one.wait)
        self._stack.callback(one.terminate)
        return one

    def _wait(self, word: str) -> str:
        end_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < end_s:
            code, said = self.client("desk", word)
            if code == 0:
                return said
            time.sleep(0.2)
        raise RuntimeError(f"labgrid's coordinator does not answer: {said}")


def environment() -> Path:
    """Return where labgrid's programs are; they see the packages of this environment, too, behind their own."""
    folder = ROOT / "build" / "labgrid"
    if not (folder / "bin" / "labgrid-client").exists():
        began = time.monotonic()
        subprocess.run([sys._base_executable, "-m", "venv", "--clear", str(folder)], check=True)  # type: ignore[attr-defined]
        subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "-q", LABGRID], check=True)
        (packages,) = (folder / "lib").glob("python3*/site-packages")
        ours = sysconfig.get_paths()["purelib"]
        (packages / "liteprobe.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
        note(f"# {LABGRID} was installed in {time.monotonic() - began:.0f} s, which are not measured")
    return folder / "bin"


@row("fleet", "labgrid")
def test_labgrid(tmp_path: Path) -> Iterator[Figure]:
    """Acquire a place with a probe, use it, release it, by two clients in turn; the second one is refused meanwhile."""
    with free_running(wire="cable?delay=40ns") as (_, options), ExitStack() as stack:
        lab = Lab(tmp_path / "lab", options[1], options[3])
        stack.callback(lab.close)
        place = ("-p", "bench")
        steps: list[tuple[str, Callable[[], tuple[int, str]], int, str]] = [
            ("a place is made", lambda: lab.client("ann", *place, "create"), 0, ""),
            ("it has the probe", lambda: lab.client("ann", *place, "add-match", "desk/bench/LiteProbe"), 0, ""),
            ("no use before it is acquired", lambda: lab.script("ann"), 1, "bench is not acquired|not acquired"),
            ("ann acquires it", lambda: lab.client("ann", *place, "acquire"), 0, "acquired place bench"),
            ("bob is refused it", lambda: lab.client("bob", *place, "acquire"), 1, "already acquired"),
            ("bob is refused its use", lambda: lab.script("bob"), 1, "acquired by a different user|not acquired"),
            ("ann measures", lambda: lab.script("ann"), 0, "100 sent, 100 received, delay (\\d+) to (\\d+) ns"),
            ("ann releases it", lambda: lab.client("ann", *place, "release"), 0, "released place bench"),
            ("bob acquires it", lambda: lab.client("bob", *place, "acquire"), 0, "acquired place bench"),
            ("bob measures", lambda: lab.script("bob"), 0, "100 sent, 100 received, delay (\\d+) to (\\d+) ns"),
        ]
        wrong, off_ns = 0, []
        for name, act, code, said in steps:
            found = act()
            match = re.search(said, found[1])
            if found[0] != code or not match:
                note(f"# {name}: {found[0]}, {found[1].strip()[-600:]}")
                wrong += 1
            elif match.groups():
                off_ns += [abs(int(one) - 40) for one in match.groups()]  # Of the simulated wire.
        yield Figure("steps of two clients", len(steps), "", 10, is_least=True)
        yield Figure("of these, not as they should be", wrong, "", 0)
        yield Figure("a delay off the wire's", max(off_ns, default=float("nan")), "ns", 8)
