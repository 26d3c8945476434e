# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Transcripts of the documentation: ``console`` blocks, which a test compares with what the commands print.

As a program (``./run python tools/transcripts.py PAGE...``) it runs them, and writes what they print now into the pages.
A block that begins with ``switch (`` is the end of what ``./run demo`` prints.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
DEMO = re.compile(r"^```\n(switch \(.*?)^```$", re.MULTILINE | re.DOTALL)


def printed(command: str, folder: Path) -> str:
    """Run a command of the environment as ./run does, in ``folder``; return what it printed, or why it refused.

    What goes to stderr beside the output isn't shown: a first build says there what it does. The folder has a link to the
    documentation and its examples, as a clone has it. Commands may be joined by pipes; tshark may be one.
    """
    docs = folder / "docs"
    if not docs.exists():
        docs.symlink_to(ROOT / "docs")
    environment = {**os.environ, "LITEPROBE_BUILD": str(ROOT / "build"), "NO_COLOR": "1"}
    output = b""
    for part in command.split(" | "):
        words = _words(part)
        done = subprocess.run(words, cwd=folder, env=environment, input=output, capture_output=True, check=False)
        output, said = done.stdout, done.stderr.decode()
        assert done.returncode == 0 or (done.returncode == 2 and not output), said
    return output.decode() or said


def _words(command: str) -> list[str]:
    """Return a command of a page as it can be run here."""
    words = shlex.split(command)
    if words[0] == "tshark":
        return words
    assert words[:2] in (["./run", "liteprobe"], ["./run", "python"]), command
    return [sys.executable, *(["-m", "liteprobe.host.cli"] if words[1] == "liteprobe" else []), *words[2:]]


def plain(text: str) -> str:
    """Return a text without blank lines, and without spaces at the ends of lines."""
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines() if line.strip())


def renewed(page: str) -> str:
    """Return a page with what its commands print now."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)

        def block(found: re.Match[str]) -> str:
            text = COMMAND.sub(lambda part: f"$ {part[1]}\n{plain(printed(part[1], here))}", found[1])
            return f"```console\n{text}```"

        page = BLOCK.sub(block, page)
        if not DEMO.search(page):
            return page
        shown = printed("./run liteprobe demo", here)
        shown = re.sub(r"in \d+ s\. Report: .*", "in ... s. Report: build/demo/report.html", shown)
        shown = "\n".join(line.rstrip() for line in shown[shown.index("\nswitch (") + 1 :].splitlines()) + "\n"
        return DEMO.sub(lambda _: f"```\n{shown}```", page)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")
