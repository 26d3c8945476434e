# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Each command that README or a page shows is run and compared, or is taken by the parsers, or has its reason."""

import re
from pathlib import Path

import commands as tool
import pytest
import transcripts

ROOT = Path(__file__).resolve().parents[2]


PAGE = """\
# A page

`liteprobe phy sweep` and `./run liteprobe train
--length 60` in prose, `train` and `--length` alone.

```console
$ liteprobe info
not a command
```
```
./run build colorlight_i5 --load   # into the board
liteprobe capture --read a -w - | tshark -r - && cd there
./run liteprobe emulate --preset dsl \\
    --check
board  liteprobe
```
```yaml
liteprobe: no
```
"""


def test_commands_of_a_page_are_found_in_blocks_and_in_prose() -> None:
    found = [(one.text, one.block, one.is_compared) for one in tool.commands_of("page.md", PAGE)]
    assert [(" ".join(text.split()), block, compared) for text, block, compared in found] == [
        ("liteprobe info", True, True),
        ("./run build colorlight_i5 --load", True, False),
        ("liteprobe capture --read a -w -", True, False),
        ("tshark -r -", True, False),
        ("cd there", True, False),
        ("./run liteprobe emulate --preset dsl --check", True, False),
        ("liteprobe phy sweep", False, False),
        ("./run liteprobe train --length 60", False, False),
    ]


@pytest.mark.parametrize(
    ("text", "block", "fate"),
    [
        ("liteprobe info --probe pcie:///dev/litepcie0", True, ("parsed", "a board")),
        ("./run build colorlight_i9 --preset generator", True, ("parsed", "minutes of place and route")),
        ("liteprobe bring-up", False, ("parsed", "seconds of a probe's time: hours of simulation")),
        ("./run build BOARD --restore FILE", False, ("compared", "run, --full: stand-ins for toolchain and board")),
        (
            "liteprobe phy --probe etherbone://192.168.1.50",
            True,
            ("compared", "run, --full: a simulated probe for a board"),
        ),
        ("liteprobe owd --from URL --to URL", False, ("parsed", "prose: how a command is called")),
        ("liteprobe build --replay", False, ("named", "the name of a command, or of some options of it")),
        ("./run bench clock two_clocks", False, ("not run", "minutes")),
        ("./run python docs/examples/poisson.py --plot x.png", True, ("not run", "a script with a test of its own")),
        ("sudo ip link set eth0 up", True, ("not run", "root")),
        ("ZEPHYR_BASE=FOLDER ./run test", True, ("not run", "the tests themselves")),
        ("./run demo", True, ("compared", "test_cli_demo.py")),
    ],
)
def test_a_command_is_parsed_named_or_not_run_for_a_reason(text: str, block: bool, fate: tuple[str, str]) -> None:
    found = tool.fate_of(tool.Command("page.md", text, block))
    assert (found.kind, found.why) == fate


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("liteprobe trian", "did you mean train"),
        ("liteprobe train --lenght 60", "--lenght"),
        ("liteprobe train --probe sim://cabel", "cabel"),
        ("liteprobe clock log --duration 1d", "'1d' is not a time"),
        ("./run build colorlight_i7", "invalid choice"),
        ("./run build colorlight_i5 --no-backup", "--no-backup is for what writes the flash"),
        ("liteprobe build --reply", "required"),
        ("./run tset", "no command 'tset'"),
        ("./run bench nothing", "there is no bench 'nothing'"),
        ("./run bench clock three_clocks", "the bench clock has no row 'three_clocks'"),
        ("./run python tools/nothing.py", "no tools/nothing.py"),
        ("./run python tools/lint.py", "no test has tools/lint.py in it"),
        ("frobnicate it", "is not a command that tools/commands.py knows"),
    ],
)
@pytest.mark.parametrize("block", [True, False])
def test_a_command_that_can_not_be_right_is_found(text: str, said: str, block: bool) -> None:
    with pytest.raises(ValueError, match=said):
        tool.fate_of(tool.Command("page.md", text, block))


def test_no_page_shows_a_command_that_can_not_be_right() -> None:
    faults = []
    for command in tool.all_commands():
        try:
            tool.fate_of(command)
        except ValueError as error:
            faults.append(f"{command.page}: {command.text}: {error}")
    assert faults == []


def test_what_is_run_is_on_a_page() -> None:
    shown = {command.text for command in tool.all_commands()}
    assert {*transcripts.QUICK, *transcripts.SLOW} <= shown
    assert {*transcripts.AT_DESK} - transcripts.ELSEWHERE <= {transcripts.normal(text) for text in shown}


@pytest.mark.parametrize("page", [name for name in transcripts.SESSIONS if name.startswith("docs/boards/")])
def test_the_desk_follows_a_board_page_in_its_order(page: str) -> None:
    """Only commands that need what no desk has are left out."""
    shown = [
        command for command in tool.all_commands() if command.page == page and command.block and not command.is_compared
    ]
    typed = [transcripts.normal(one.text) for one in shown if one.text.startswith("./run")]
    assert [step.command for step in transcripts.SESSIONS[page]] == [
        text for text in typed if not re.search("bring-up|firmware build", text)
    ]


@pytest.mark.parametrize(
    "command", [*transcripts.QUICK, *(pytest.param(command, marks=pytest.mark.full) for command in transcripts.SLOW)]
)
def test_a_command_prints_what_it_is_known_to_print(command: str, tmp_path: Path) -> None:
    step = {**transcripts.QUICK, **transcripts.SLOW}[command]
    printed = transcripts.run(step, tmp_path)
    assert step.is_said(printed), f"it prints:\n{printed}"


@pytest.mark.full
@pytest.mark.parametrize("session", transcripts.SESSIONS)
def test_a_session_at_the_desk_prints_what_it_is_known_to_print(session: str, tmp_path: Path) -> None:
    others = [
        f"$ {step.command}\n{printed}"
        for step, printed in transcripts.session(session, tmp_path)
        if not step.is_said(printed)
    ]
    assert others == [], "\n".join(others)
