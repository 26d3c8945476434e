# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The pages of docs/boards say what the boards' files and the commands say."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from liteprobe.boards import BOARDS, OTHER_NAMES, board

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "boards"
PAGES = {
    "colorlight_5a_75b": "colorlight-5a-75b.md",
    "colorlight_5a_75b_v7_0": "colorlight-5a-75b.md",
    "colorlight_5a_75e": "colorlight-5a-75b.md",
    "colorlight_5a_75e_v6_0": "colorlight-5a-75b.md",
    "colorlight_i5": "colorlight-i5.md",
    "colorlight_i9": "colorlight-i9.md",
    "versa_ecp5": "versa-ecp5.md",
}
# What stands for something of the user's own, or of one board, in a message.
PLACES = (
    r"^\d+ |openFPGALoader|\b(?:CABLE|BOARD|FILE)\b|cmsisdap|ft2232|LFE5U\w*-\d+|colorlight_\w+|0xff\b|\d[\d.:]+\d|/dev/\w+"
    r"|\bport \d"
)


def page(name: str) -> str:
    return (FOLDER / PAGES[name]).read_text()


@cache
def said() -> str:
    """Return all that the programs can say: the strings of their sources, and what loaders say in the tests."""
    paths = [*ROOT.glob("soc/build/*.py"), *ROOT.glob("host/*.py"), *ROOT.glob("host/device/**/*.py")]
    paths.append(ROOT / "sim/drivers/tools/fake_loaders.py")
    nodes = (node for path in paths for node in ast.walk(ast.parse(path.read_text())))
    return "\n".join(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


def messages(path: Path) -> list[str]:
    """Return what the tables of faults quote of a program: their first column's code that isn't a command."""
    section = re.search(r"^## (?:What goes|Goes) wrong.*?(?=^## |\Z)", path.read_text(), re.MULTILINE | re.DOTALL)
    assert section
    cells = [line.split("|")[1] for line in section[0].splitlines()[2:] if line.startswith("| ") and "---" not in line]
    quoted = [code for cell in cells for code in re.findall(r"`([^`]+)`", cell)]
    return [code for code in quoted if " " in code and not code.startswith(("--", "ping", "liteprobe"))]


def test_each_board_has_a_page_and_each_page_names_its_boards() -> None:
    assert set(PAGES) == set(BOARDS)
    assert {path.name for path in FOLDER.glob("*.md")} == {*PAGES.values(), "desk.md"}
    for name in (*BOARDS, *OTHER_NAMES):
        assert f"`{name}`" in page(OTHER_NAMES.get(name, name)) or f"build {name} " in page(name), name


@pytest.mark.parametrize("name", BOARDS)
def test_the_page_of_a_board_has_its_cable_its_flash_and_where_firmware_lies(name: str) -> None:
    target, text = board(name), page(name)
    assert f"`--cable {target.cable}`, which is the default" in text or f"`--cable {target.cable}`, the default" in text
    assert f"{target.flash_bytes >> 20} MB" in text
    assert f"firmware at {target.flash_offset >> 20} MiB" in text


def test_the_pads_of_the_receiver_cards_are_those_of_their_file() -> None:
    pads = dict(re.findall(r"(J\d+) \((\w+)\)", board("colorlight_5a_75b").loading))
    assert len(pads) == 5
    text = page("colorlight_5a_75b")
    assert {pad: re.search(rf"{pad} is (\w+)|{pad} (T\w\w)\b", text) is not None for pad in pads} == dict.fromkeys(
        pads, True
    )
    drawing = (ROOT / "docs/images/board-5a-75b.svg").read_text()
    shown = set(re.findall(r">(J\d+)</text>\s*<text[^>]*>(\w+)</text>", drawing))
    assert {pair for pair in shown if pair[0] in pads and not pair[1].startswith("J")} == set(pads.items())


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.md")), ids=lambda path: path.stem)
def test_each_message_of_a_page_is_one_that_a_program_gives(path: Path) -> None:
    found = messages(path)
    assert found
    strange = [
        message
        for message in found
        for part in re.split(PLACES, message)
        if len(part.strip(" ,'")) > 3 and part.strip(" ,'") not in said()
    ]
    assert strange == []


@pytest.mark.parametrize("name", BOARDS)
def test_the_lights_of_a_board_are_named_by_their_pins(name: str) -> None:
    """The pins that litex-boards has for LEDs; of a receiver card the LED is told by J19."""
    pins = [
        pin
        for resource, _, *parts in board(name).platform.constraint_manager.available
        if resource.startswith("user_led")
        for pin in parts[0].identifiers
    ]
    assert pins
    section = re.search(r"^## LEDs\n(.*?)(?=^## )", page(name), re.MULTILINE | re.DOTALL)
    assert section
    assert "DATA_LED-" in section[1] if "5a_75" in name else all(re.search(rf"\b{pin}\b", section[1]) for pin in pins)
