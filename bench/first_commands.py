# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Row ``commands`` of the first hour: what becomes of each command that README and the pages show."""

import doctest
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import command_desk
import command_runs
import commands as tool
import page_scripts
import transcripts

from liteprobe.sim.bench.tools.figures import Figure, row


def says_it_again(command: str, expected: str) -> bool:
    """Run a command in a folder of its own; return whether it prints what it is known to print."""
    with tempfile.TemporaryDirectory() as folder:
        command_runs.prepare(Path(folder))
        real = transcripts.plain(command_runs.printed(command, Path(folder)))
    if doctest.OutputChecker().check_output(transcripts.plain(textwrap.dedent(expected)), real, doctest.ELLIPSIS):
        return True
    print(f"{command} prints:\n{real}", file=sys.stderr)
    return False


def sessions_that_differ() -> int:
    """Run all sessions at the simulated desk; return how many commands print another thing than they are known to print."""
    others = 0
    for name in command_desk.SESSIONS:
        with tempfile.TemporaryDirectory() as folder:
            for step, printed in command_desk.said(name, Path(folder)):
                if not command_desk.is_said(step, printed):
                    others += 1
                    print(f"{step.typed or step.command} prints:\n{printed}", file=sys.stderr)
    return others


def scripts_that_differ() -> Iterator[Figure]:
    """Run the blocks of pages that use git and the network, each as a script in a folder of its own."""
    differ = left_out = 0
    with tempfile.TemporaryDirectory(prefix="liteprobe-pages-") as folder:
        for script in page_scripts.SCRIPTS:
            if script.is_offline and not page_scripts.has_offline():
                left_out += 1
                continue
            started = time.monotonic()
            printed = page_scripts.run(script, Path(folder))
            is_right = page_scripts.is_said(script, printed)
            differ += not is_right
            print(f"  {script.page}: {script.first}: {time.monotonic() - started:.0f} s", file=sys.stderr)
            if not is_right:
                print(printed[-3000:], file=sys.stderr)
    yield Figure(
        "blocks_run_as_scripts",
        len(page_scripts.SCRIPTS) - left_out,
        "blocks",
        len(page_scripts.SCRIPTS),
        is_least=True,
    )
    yield Figure("blocks_that_print_another_thing", differ, "blocks", 0)


@row("first-hour")
def test_commands(is_full: bool) -> Iterator[Figure]:
    """Count the commands of each kind, say why others are not run, and run those whose output no page shows.

    Those of ``command_runs.SLOW``, the sessions at the simulated desk and the blocks that use git and the network run with
    ``--full`` alone. Transcripts on pages are compared by test_house_docs.py.
    """
    kinds: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    wrong = 0
    for command in tool.all_commands():
        try:
            fate = tool.fate_of(command)
        except ValueError as error:
            wrong += 1
            print(f"{command.page}: {command.text}: {error}", file=sys.stderr)
            continue
        kinds[fate.kind] += 1
        reasons[fate.kind, fate.why] += 1
    for (kind, why), count in sorted(reasons.items()):
        print(f"  {count:>4} {kind}: {why}", file=sys.stderr)
    total = sum(kinds.values()) + wrong
    yield Figure("commands_shown", total, "commands", 1, is_least=True)
    for kind in ("compared", "run", "parsed", "named", "not run"):
        yield Figure(f"commands_{kind.replace(' ', '_')}", kinds[kind], "commands", total)
    yield Figure("commands_wrong", wrong, "commands", 0)
    ran = {**command_runs.QUICK, **(command_runs.SLOW if is_full else {})}
    others = sum(not says_it_again(*item) for item in ran.items())
    yield Figure("commands_run_that_print_another_thing", others, "commands", 0)
    if is_full:
        yield Figure("commands_at_the_desk_that_print_another_thing", sessions_that_differ(), "commands", 0)
        yield from scripts_that_differ()
        return
    steps = sum(map(len, command_desk.SESSIONS.values()))
    left = f"{len(command_runs.SLOW)} commands that are run, {steps} at a simulated desk, {len(page_scripts.SCRIPTS)} blocks"
    print(f"  excluded without --full: {left} that use git and the network", file=sys.stderr)
