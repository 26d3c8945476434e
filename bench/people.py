# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Row ``examples`` of the bench ``people``: the examples of each ``--help``, run as they stand there."""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import transcripts

from liteprobe.host.cli import main as cli
from liteprobe.sim.drivers.tools.figures import ROOT, Figure, note, row

#: Examples that are not run, and why.
REASONS = {
    r"192\.168\.1\.|/dev/": "a board",
    "^liteprobe build": "place and route",
    "^liteprobe agent": "it serves until Ctrl-C",
    "^liteprobe station": "it serves until Ctrl-C",
    "^liteprobe demo": "minutes: the bench first-hour runs one",
    "^liteprobe discover": "the network of this machine",
}


def write_files(folder: Path) -> None:
    """Write the files that guesses and examples take for granted."""
    transcripts.prepare(folder)
    shutil.copy(folder / "a.pcap", folder / "x.pcap")
    for name, copy in {
        "imix.yaml": "streams.yaml",
        "office.blocks": "office.blocks",
        "office.pcapng": "office.pcapng",
    }.items():
        shutil.copy(ROOT / "docs" / "examples" / name, folder / copy)
    (folder / "network.yaml").write_text("both: {rate: 10Mbit}\n")


@row("people")
def test_examples(is_full: bool) -> Iterator[Figure]:
    """Run the examples of each command that need no board, one after the other in one folder; each ends with 0."""
    asked = [line for name in cli.COMMANDS for line in cli.module_of(name).EXAMPLES.strip().splitlines()]
    left = {line: next((why for text, why in REASONS.items() if re.search(text, line)), "") for line in asked}
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder))
        for line in (line for line, why in left.items() if not why):
            began_s = time.monotonic()
            command = line.replace("liteprobe", f"{sys.executable} -m liteprobe.host.cli", 1)
            done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, check=False)
            note(f"  {line}: {time.monotonic() - began_s:.1f} s")
            if done.returncode:
                failed += 1
                note(done.stderr)
    for why in dict.fromkeys(filter(None, left.values())):
        note(f"  excluded: {list(left.values()).count(why)} examples: {why}")
    yield Figure("examples", len(asked), "examples", 3 * len(cli.COMMANDS), is_least=True)
    yield Figure("examples_run", list(left.values()).count(""), "examples", 1, is_least=True)
    yield Figure("examples_that_fail", failed, "examples", 0)
