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
    """Run a command of the environment as ./run does, in ``folder``; return what it printed, or why it refused."""
    words = shlex.split(command)
    assert words[:2] in (["./run", "liteprobe"], ["./run", "python"]), command
    environment = {**os.environ, "LITEPROBE_BUILD": str(ROOT / "build"), "NO_COLOR": "1"}
    entry = ["-m", "liteprobe.host.cli"] if words[1] == "liteprobe" else []
    done = subprocess.run(
        [sys.executable, *entry, *words[2:]], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == (0 if done.stdout else 2), done.stderr  # A first build says on stderr what it does.
    return done.stdout or done.stderr


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
