# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The pages of the boards, of their wiring and of their builds say what the boards' files, the commands and the reports say."""

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest
from boards_page import main

from liteprobe.boards import BOARDS, OTHER_NAMES, VERILOG_ONLY, board
from liteprobe.host.base.folders import ROOT

FOLDER = ROOT / "docs" / "boards"
PAGES = {name: f"{name.replace('_', '-')}.md" for name in ("colorlight_i5", "colorlight_i9", "versa_ecp5")}
PAGES |= {name: "colorlight-5a-75b.md" for name in BOARDS if name.startswith("colorlight_5a")}
PAGES |= {name: f"{name.replace('_', '-')}.md" for name in VERILOG_ONLY if name != "sqrl_acorn"}  # docs/pcie.md.
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
    assert set(PAGES) == {*BOARDS, *VERILOG_ONLY} - {"sqrl_acorn"}
    assert {path.name for path in FOLDER.glob("*.md")} == {*PAGES.values(), "desk.md"}
    for name in (*PAGES, *OTHER_NAMES):
        assert f"`{name}`" in page(OTHER_NAMES.get(name, name)) or f"build {name} " in page(name), name


def test_what_the_desk_shows_of_a_backup_and_a_load_is_what_they_print() -> None:
    """Outputs of the stand-ins (tools/transcripts.yaml) are compared with runs."""
    known = (ROOT / "tools/transcripts.yaml").read_text()
    shown = re.findall(r"^```text\n(.*?)^```$", (FOLDER / "desk.md").read_text(), re.MULTILINE | re.DOTALL)
    assert [block.count("\n") for block in shown] == [2, 2]
    assert [line for block in shown for line in block.splitlines() if f"        {line}\n" not in known] == []


@pytest.mark.parametrize("name", PAGES)
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


@pytest.mark.parametrize("name", PAGES)
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


# Wiring -------------------------------------------------------------------------------------------


PAGE = ROOT / "docs" / "wiring.md"
SIGNALS = {"PPS in": "pps", "PPS out": "pps_out", "UART out": "tx", "UART in": "rx"}
# Connectors as litex-boards and as people call them; number of the pin that litex-boards counts as 0.
CONNECTORS = {"j1": ("J1", 1), "pmode": ("PMOD E", 1), "X3": ("X3", 0)}


def page_rows(name: str) -> dict[str, list[str]]:
    """Return connector and site of each signal, from the table of a board."""
    (section,) = re.findall(rf"^### {name}\n(.*?)(?=^#|\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("|")]
    return {signal: row[1:3] for row in rows for signal in SIGNALS if row[0].startswith(signal)}


def asked_for(name: str) -> dict[str, str]:
    """Return the place on a connector of each signal, as the board's file asks for it."""
    places = {}
    for resource, _, *parts in board(name).platform.constraint_manager.available:
        if resource in ("pps", "pps_out"):
            places[resource] = parts[0].identifiers[0]
        elif resource == "gnss":
            places |= {part.name: part.constraints[0].identifiers[0] for part in parts if hasattr(part, "constraints")}
    return places


def sites(name: str) -> dict[str, str]:
    """Return the site of each signal, as it goes into the constraints of a build."""
    one = board(name)
    uart = one.gnss()
    signals = {"pps": one.pps(), "pps_out": one.pps_out(), "tx": uart.tx, "rx": uart.rx}
    found = {signal: pins[0] for signal, pins, *_ in one.platform.constraint_manager.get_sig_constraints()}
    for record, pins, _, (_, _, part) in one.platform.constraint_manager.get_sig_constraints():
        if part:
            found[getattr(record, part, record)] = pins[0]
    return {what: found[signal] for what, signal in signals.items()}


@pytest.mark.parametrize("name", PAGES)
def test_page_has_the_sites_of_the_board(name: str) -> None:
    rows = page_rows(name)
    assert {SIGNALS[signal]: site for signal, (_, site) in rows.items()} == sites(name)


@pytest.mark.parametrize("name", BOARDS)
def test_page_has_the_connectors_of_the_board(name: str) -> None:
    said = {SIGNALS[signal]: place for signal, (place, _) in page_rows(name).items()}
    wanted = {}
    for what, place in asked_for(name).items():
        connector, number = place.split(":")
        called, first = CONNECTORS[connector]
        wanted[what] = f"{called} pin {int(number) + first}"
    # The 5A-75B has its input on the button, which is on no connector of litex-boards.
    assert said == {"pps": "J19 KEY+"} | wanted


# Reports of builds --------------------------------------------------------------------------------


def build_of(builds, name, seed, fmax_mhz, folder="", **config):
    """Write the report of a build."""
    report = {
        "config": {"ports": 2, "link": "shared", "with_cpu": True, **config},
        "device": "LFE5U-25F-6BG256C",
        "seed": seed,
        "date": "2026-11-23",
        "seconds": {"synthesis": 61.4, "place_and_route": 99.8, "total": 165.2},
        "tools": {"yosys": "0.70", "nextpnr-ecp5": "0.11.1"},
        "area": {"lut4": {"used": 18000, "available": 24288, "percent": 74.1}},
        "clocks": {"sys": {"fmax_mhz": fmax_mhz, "constraint_mhz": 50.0}},
    }
    path = builds / name / (folder or f"seed{seed}") / "report.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report))


def written(tmp_path):
    main(["--build", str(tmp_path), "--page", str(tmp_path / "boards.md")])
    return (tmp_path / "boards.md").read_text()


def test_page_holds_area_and_fmax_of_every_seed(tmp_path):
    for seed, fmax_mhz in [(10, 51.25), (2, 55.5)]:
        build_of(tmp_path, "colorlight_5a_75b", seed, fmax_mhz)
    text = written(tmp_path)
    assert "| lut4 | 18000 | 24288 | 74.1 % |" in text
    assert "| clock | asked for | seed 2 | seed 10 |" in text
    assert "| sys | 50 MHz | 55.5 MHz | 51.2 MHz |" in text
    tools = "with Yosys 0.70 and nextpnr 0.11.1, on 2026-11-23."
    assert f"Seed 2 took 165 s (synthesis 61 s, place and route 100 s) {tools}" in text


def test_presets_have_sections_of_their_own_which_say_what_is_built_in(tmp_path):
    for name, config in [
        ("colorlight_i5", {}),
        ("colorlight_i5_monitor", {"ports": 1, "link": "own", "with_cpu": False}),
        ("colorlight_i9_tester", {"preset": "tester", "with_streams": False}),
        ("colorlight_i9_replay", {"preset": "replay", "with_discipline": False, "with_sets": False}),
        (
            "colorlight_i5_replay",
            {"preset": "replay", "ports": 1, "link": "own", "with_cpu": False, "with_discipline": False},
        ),
    ]:
        build_of(tmp_path, name, 1, 51.0, **config)
    sections = {part.split("\n")[0]: part for part in written(tmp_path).split("## ")}
    train, monitor = sections["colorlight_i5"], sections["colorlight_i5, preset monitor"]
    assert "2 test ports, Etherbone in band, VexRiscv." in train
    assert "1 test port, Etherbone on a port of its own, no processor." in monitor
    assert "in band, VexRiscv, no streams to send." in sections["colorlight_i9, preset tester"]
    without = "in band, VexRiscv, no discipline of the clock, no configuration sets."
    assert without in sections["colorlight_i9, preset replay"]
    without = "1 test port, Etherbone on a port of its own, no processor, no discipline of the clock. The board: "
    assert without in sections["colorlight_i5, preset replay"]


def test_board_that_was_not_built_is_said(tmp_path):
    text = written(tmp_path)
    assert all(f"## {name}\n" in text and f"Not built yet: `./run build {name}`." in text for name in BOARDS)


def test_a_section_without_a_build_stays_as_it_was(tmp_path):
    for name in ("colorlight_5a_75b", "colorlight_i5_monitor"):
        build_of(tmp_path, name, 1, 51.0)
    first = written(tmp_path)
    assert written(tmp_path) == first
    for path in tmp_path.glob("*/seed1/report.json"):
        path.unlink()
    assert written(tmp_path) == first
    build_of(tmp_path, "colorlight_5a_75b", 3, 54.0, folder="seed1")
    second = written(tmp_path)
    assert second == first.replace(
        "seed 1 |\n|---|---|---|\n| sys | 50 MHz | 51.0", "seed 3 |\n|---|---|---|\n| sys | 50 MHz | 54.0", 1
    ).replace("Seed 1", "Seed 3", 1)
