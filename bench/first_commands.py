# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Row ``commands`` of the first hour: what becomes of each command that README and the pages show."""

import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import commands as tool
import transcripts

from liteprobe.sim.drivers.tools.figures import Figure, note, row


def prints_another_thing(step: transcripts.Step) -> bool:
    """Run a command in a folder of its own; return whether it prints another thing than it is known to print."""
    with tempfile.TemporaryDirectory() as folder:
        printed = transcripts.run(step, Path(folder))
    if step.is_said(printed):
        return False
    note(f"{step.command} prints:\n{printed}")
    return True


def sessions_that_differ() -> int:
    """Run all sessions at the simulated desk; return how many commands print another thing than they are known to print."""
    others = 0
    for name in transcripts.SESSIONS:
        with tempfile.TemporaryDirectory() as folder:
            for step, printed in transcripts.session(name, Path(folder)):
                if not step.is_said(printed):
                    others += 1
                    note(f"{step.typed or step.command} prints:\n{printed}")
    return others


def scripts_that_differ() -> Iterator[Figure]:
    """Run the blocks of pages that use git and the network, each as a script in a folder of its own."""
    differ = left_out = 0
    with tempfile.TemporaryDirectory(prefix="liteprobe-pages-") as folder:
        for script in transcripts.SCRIPTS:
            if script.is_offline and not transcripts.has_offline():
                left_out += 1
                continue
            started = time.monotonic()
            printed = transcripts.run_script(script, Path(folder))
            is_right = script.is_said(printed)
            differ += not is_right
            note(f"  {script.page}: {script.first}: {time.monotonic() - started:.0f} s")
            if not is_right:
                note(printed[-3000:])
    yield Figure(
        "blocks_run_as_scripts", len(transcripts.SCRIPTS) - left_out, "blocks", len(transcripts.SCRIPTS), is_least=True
    )
    yield Figure("blocks_that_print_another_thing", differ, "blocks", 0)


@row("first-hour")
def test_commands(is_full: bool) -> Iterator[Figure]:
    """Count the commands of each kind, say why others are not run, and run those whose output no page shows.

    Those of ``transcripts.SLOW``, the sessions at the simulated desk and the blocks that use git and the network run with
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
            note(f"{command.page}: {command.text}: {error}")
            continue
        kinds[fate.kind] += 1
        reasons[fate.kind, fate.why] += 1
    for (kind, why), count in sorted(reasons.items()):
        note(f"  {count:>4} {kind}: {why}")
    total = sum(kinds.values()) + wrong
    yield Figure("commands_shown", total, "commands", 1, is_least=True)
    for kind in ("compared", "run", "parsed", "named", "not run"):
        yield Figure(f"commands_{kind.replace(' ', '_')}", kinds[kind], "commands", total)
    yield Figure("commands_wrong", wrong, "commands", 0)
    ran = {**transcripts.QUICK, **(transcripts.SLOW if is_full else {})}
    others = sum(map(prints_another_thing, ran.values()))
    yield Figure("commands_run_that_print_another_thing", others, "commands", 0)
    if is_full:
        yield Figure("commands_at_the_desk_that_print_another_thing", sessions_that_differ(), "commands", 0)
        yield from scripts_that_differ()
        return
    steps = sum(map(len, transcripts.SESSIONS.values()))
    left = (
        f"{len(transcripts.SLOW)} commands that are run, {steps} at a simulated desk, {len(transcripts.SCRIPTS)} blocks"
    )
    note(f"  excluded without --full: {left} that use git and the network")
