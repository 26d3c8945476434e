# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The tables on the pages of the cores are those of the code; and the tool that writes them."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs/cores").glob("*.md"))


def load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("registers_page", ROOT / "tools/registers_page.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tool = load_tool()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_tables_of_a_page_are_those_of_the_code(page: Path) -> None:
    """Run tools/registers_page.py where this fails."""
    assert page.read_text() == tool.current(page.read_text())


def test_each_module_with_registers_of_ours_is_on_one_page() -> None:
    shown = [name for page in PAGES for name in re.findall(r"^<!-- registers: (\w+) -->$", page.read_text(), re.M)]
    theirs = {"ctrl", "timer0", "uart", "identifier_mem"}
    ours = {re.sub(r"^(port|direction)\d", r"\g<1>0", name) for name in tool.regions()} - theirs
    assert sorted(shown) == sorted(ours)


def test_ports_of_one_kind_have_the_same_registers() -> None:
    for kind in ("port{}_tx", "port{}_rx", "port{}_snapshot", "direction{}"):
        names = [[csr.name for csr in tool.regions()[kind.format(number)]] for number in (0, 1)]
        assert names[0] == names[1]


def test_a_table_that_was_changed_by_hand_is_written_anew() -> None:
    page = "# A\n<!-- registers: timebase -->\nold\n<!-- end -->\nrest\n"
    once = tool.current(page)
    assert "old" not in once and once.startswith("# A\n<!-- registers") and once.endswith("<!-- end -->\nrest\n")
    assert "| 0x000 | `latch` | 1 | write | | Write: take the snapshot. |" in once.splitlines()
    # latch, now (64 bits, so two words), now_fraction, ticks (two words), then increment.
    assert "| 0x018 | `increment` | 48 | rw | 0x80000000000 |" in once
    assert tool.current(once.replace("0x018", "0x01c")) == once


def fake(name: str, description: str | None) -> object:
    csr = type("CSRStatus", (SimpleNamespace,), {})
    return csr(name=name, size=40, description=description, status=SimpleNamespace(reset=SimpleNamespace(value=3)))


def test_a_register_without_meaning_and_one_with_two_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    module = {"probe": [fake("ports", "In the gateware.")], "timebase": [fake("phase", None)], "new": [fake("a", "A.")]}
    monkeypatch.setattr(tool, "regions", lambda: module)
    with pytest.raises(ValueError, match="probe_ports has a description"):
        tool.registers_of("probe")
    with pytest.raises(KeyError, match="timebase_phase has no description"):
        tool.registers_of("timebase")
    assert tool.registers_of("new") == [tool.Register("a", 0, 40, "ro", 3, "A.")]


def test_no_meaning_is_left_of_a_register_that_is_gone() -> None:
    for module, meanings in tool.MEANINGS.items():
        assert set(meanings) - {csr.name for csr in tool.regions()[module]} == set()


def test_ports_are_read_to_the_end_of_their_section_and_no_further() -> None:
    docstring = "Does.\n\nParameters\n----------\nwidth : int\n\nAttributes\n----------\na, b : Signal(4), in\n"
    docstring += "    First ``x``.\n    More.\nc : Signal(), out\n\nLimits: d : none.\n"
    assert tool.entries_of(docstring, "Parameters") == [("width", "int", "")]
    assert tool.entries_of(docstring, "Attributes") == [
        ("a, b", "Signal(4), in", "First ``x``. More."),
        ("c", "Signal(), out", ""),
    ]
    assert tool.entries_of(docstring, "Returns") == []


def test_a_class_that_is_gone_is_refused() -> None:
    with pytest.raises(KeyError, match="has no class Gone"):
        tool.port_table("cores/crossing.py", "Gone")
