# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Building a simulated probe: one that was interrupted goes on where it was, with tools that are stand-ins."""

import json
import re
import threading
from collections import Counter
from pathlib import Path

import pytest

from liteprobe.host.base import folders
from liteprobe.sim.system import build
from liteprobe.soc import export

TOOLS = 9  # Verilator, three sources that all probes share, two of the model, what it differs in, the linker, twice.


class Killed(BaseException):
    """Stands for SIGKILL: nobody catches it."""


class Tools:
    """Tools that leave a product of their own; the one that is ``fatal`` is killed with half of it written."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.elaborated = 0
        self.fatal = 0
        self._calls = 0
        self._lock = threading.Lock()

    def run(self, command: list[str], folder: Path, log: Path) -> None:
        """Do what a tool does, or die of it."""
        target = Path(command[command.index("-o" if "-o" in command else "--Mdir") + 1])
        with self._lock:
            self._calls += 1
            is_fatal = self._calls == self.fatal
        if "--Mdir" in command:
            target.mkdir()
            (target / "a.cpp").write_text("half")
            target /= "b__Slow.cpp"
        target.write_text("half" if is_fatal else "whole")
        if is_fatal:
            raise Killed
        self.done[target.parent.name if "--Mdir" in command else target.name] += 1

    def design(self) -> build.Design:
        """Elaborate."""
        self.elaborated += 1

        def write(_: object, folder: Path) -> list[Path]:
            (folder / "top.v").write_text("module top; endmodule")
            return [folder / "top.v"]

        return build.Design(None, "variant", write)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    tools = Tools()
    monkeypatch.setenv(folders.VARIABLE, str(tmp_path))
    monkeypatch.setattr(build, "JOBS", 2)
    monkeypatch.setattr(build, "run", tools.run)
    monkeypatch.setattr(export, "write_map", lambda _, path: path.write_text("{}"))
    return tools


@pytest.mark.parametrize("fatal", range(TOOLS + 1))
def test_no_step_that_was_done_is_done_again_and_no_half_is_taken(tools: Tools, tmp_path: Path, fatal: int) -> None:
    tools.fatal = fatal
    if fatal:
        with pytest.raises(Killed):
            build.build("key", tools.design)
        assert not (tmp_path / "sim" / "key").exists()
    folder = build.build("key", tools.design)
    assert all((folder / name).read_text() == "whole" for name in (build.EXECUTABLE, build.LIBRARY))
    assert (folder / "csr.json").exists()
    assert tools.elaborated == 1
    assert len(tools.done) == TOOLS and set(tools.done.values()) == {1}
    assert not list(tmp_path.rglob("new-*")) and not list(tmp_path.rglob("*.work"))


def test_half_a_design_is_written_anew(tools: Tools, tmp_path: Path) -> None:
    def write(_: object, folder: Path) -> list[Path]:
        (folder / "gateware").mkdir()
        raise Killed

    for _ in range(2):  # The second one finds no folder in its way.
        with pytest.raises(Killed):
            build.build("key", lambda: build.Design(None, "variant", write))
    assert (build.build("key", tools.design) / "liteprobe-sim").read_text() == "whole"


def test_one_that_was_interrupted_says_so_and_foretells_by_what_the_first_one_took(
    tools: Tools, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tools.fatal = 3
    with pytest.raises(Killed):
        build.build("key", tools.design)
    first = capsys.readouterr().err.splitlines()
    marker = tmp_path / "sim" / "key.work" / build.DESIGN
    marker.write_text(json.dumps(json.loads(marker.read_text()) | {"written_s": 100.0}))
    build.shutil.rmtree(marker.parent / "verilated", ignore_errors=True)
    build.build("key", tools.design)
    said = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"liteprobe: its Verilog is there: .* about [0-9] s", first[-1])
    assert re.fullmatch(r"liteprobe: its Verilog is there: .* about [123][0-9]{2} s", said[1])
    assert said[0] == "liteprobe: going on with the simulated probe whose build was interrupted"
    assert said[-1].startswith("liteprobe: built in ")


def test_a_full_disk_is_named_and_a_later_build_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = build.shutil.disk_usage(tmp_path)._replace(free=0)
    monkeypatch.setattr(build.shutil, "disk_usage", lambda _: full)
    with pytest.raises(OSError, match="No space left on device") as raised:
        build.run(["false"], tmp_path, tmp_path / "log")
    assert raised.value.filename == str(tmp_path)
