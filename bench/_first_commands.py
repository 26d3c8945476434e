# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Row ``commands`` of the first hour: what becomes of each command that README and the pages show."""

import doctest
import sys
import tempfile
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from _figures import ROOT, Figure, Row

sys.path.insert(0, str(ROOT / "tools"))

import command_runs
import commands as tool
import transcripts


def says_it_again(command: str, expected: str) -> bool:
    """Run a command in a folder of its own; return whether it prints what it is known to print."""
    with tempfile.TemporaryDirectory() as folder:
        command_runs.prepare(Path(folder))
        real = transcripts.plain(command_runs.printed(command, Path(folder)))
    if doctest.OutputChecker().check_output(transcripts.plain(textwrap.dedent(expected)), real, doctest.ELLIPSIS):
        return True
    print(f"{command} prints:\n{real}", file=sys.stderr)
    return False


def commands(is_full: bool) -> Iterator[Figure]:
    """Count the commands of each kind, say why others are not run, and run those whose output no page shows.

    Those of ``command_runs.SLOW`` run with ``--full`` alone. Transcripts on pages are compared by test_house_docs.py.
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
    for kind in ("compared", "parsed", "named", "not run"):
        yield Figure(f"commands_{kind.replace(' ', '_')}", kinds[kind], "commands", total)
    yield Figure("commands_wrong", wrong, "commands", 0)
    ran = {**command_runs.QUICK, **(command_runs.SLOW if is_full else {})}
    others = sum(not says_it_again(*item) for item in ran.items())
    yield Figure("commands_run_that_print_another_thing", others, "commands", 0)
    if not is_full:
        print(f"  excluded without --full: {len(command_runs.SLOW)} commands that are run", file=sys.stderr)


def rows() -> dict[str, Row]:
    """Return the rows of this file, by name, for ``bench/first_hour.py``."""
    return {"commands": commands}
