# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Commands of the pages that take a board, a toolchain of minutes or Ctrl-C: run at a desk where all that is simulated.

`desk_boards` has those that build and load, `desk_probes` those that ask a probe. As a program (``./run python
tools/command_desk.py SESSION...``) this prints what the commands of a session print now.
"""

import doctest
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import desk_boards
import desk_probes
from command_runs import prepare
from desk_step import Step
from transcripts import plain

from liteprobe.sim.bench.desk.desk import Desk

ROOT = Path(__file__).resolve().parent.parent
LOCKED = ("colorlight_i5", "colorlight_i9")  # Shipped with a write-protected flash.
#: Commands that follow one another in one folder, by the name of what they are.
SESSIONS: dict[str, tuple[Step, ...]] = {**desk_boards.SESSIONS, **desk_probes.SESSIONS}


def normal(text: str) -> str:
    """Return a command as ``liteprobe`` gets it: ``./run liteprobe``, ``./run`` before ``build``, and spaces left out."""
    return re.sub(r"^\./run (?:liteprobe )?", "liteprobe ", " ".join(text.split()))


def how(text: str) -> str:
    """Return how a command is run, "": it isn't."""
    return HOW.get(normal(text), "")


def said(name: str, folder: Path) -> Iterator[tuple[Step, str]]:
    """Run the commands of a session in a folder, and yield each with what it printed, and what the loader was asked."""
    with Desk(folder) as desk:
        yield from _said(desk, SESSIONS[name])


def _said(desk: Desk, steps: Sequence[Step]) -> Iterator[tuple[Step, str]]:
    prepare(desk.work)
    shutil.copytree(ROOT / "docs" / "labs", desk.work / "docs" / "labs")
    (desk.work / "build").mkdir()
    setting = None
    with ExitStack() as probe:
        for step in steps:
            if step.board:
                desk.put_board(step.board, step.board in LOCKED)
            if step.image:
                desk.put_firmware(step.image)
            for file, text in step.files.items():
                (desk.work / file).write_text(text, encoding="utf-8")
            if step.setting != setting:  # Else it is the same probe, and goes on.
                probe.close()
                setting = step.setting
                if setting:
                    probe.enter_context(desk.probe(setting))
            printed = desk.run(step.typed or step.command, step.until, step.input, step.is_alone)
            yield step, plain(printed + "".join(f"> {line}\n" for line in desk.asked()))


def is_said(step: Step, printed: str) -> bool:
    """Return whether a command printed what it is known to print."""
    return doctest.OutputChecker().check_output(plain(step.said), printed, doctest.ELLIPSIS)


#: How each command of a page is run, in the form of `normal`.
HOW = {text: step.how for steps in SESSIONS.values() for step in steps for text in (step.command, *step.also)}
#: Builds that a page doesn't name as they stand here: with a seed, and the i9 in the place of BOARD.
ELSEWHERE = {
    f"liteprobe build colorlight_5a_75b{desk_boards.REPLAY_5A} --seed 1",
    "liteprobe build colorlight_i5",
    "liteprobe emulate --preset dsl --detach",
    *desk_boards.OF_I5,
}
HOW |= {text: HOW[filled] for text, filled in desk_boards.FILLED.items()}

if __name__ == "__main__":
    for session in sys.argv[1:] or SESSIONS:
        with tempfile.TemporaryDirectory() as place:
            for one, printed in said(session, Path(place)):
                print(
                    f"{'same ' if is_said(one, printed) else 'OTHER'} $ {one.typed or one.command}\n{printed}",
                    flush=True,
                )
