# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The pages claim what the code does: links, commands, figures, names, registers; and the tools that check and write them."""

import ast
import doctest
import re
import subprocess
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import links
import pytest
import registers_page as tool
import transcripts as sessions

from liteprobe.host.analysis.theory import slot_ns, tick_error
from liteprobe.sim.drivers.tools.compiled import apart

ROOT = Path(__file__).resolve().parents[2]
CORE_HEADINGS = ["Purpose", "Interface", "Timing", "Registers", "Accuracy and limits", "Verified by", "Source"]


def pages() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [ROOT / path for path in listed.stdout.splitlines() if (ROOT / path).exists()]


def blocks(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of ``page`` in ``language`` ("" for those that name none)."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


# The link check -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("[a](there.md)", []),
        ("[a](there.md#two-words)", []),
        ("[a](#here)\n# Here", []),
        ("[a](folder/)", []),
        ("[a](https://example.org/nowhere)", []),
        ("`[a](gone.md)`", []),
        ("```\n[a](gone.md)\n```", []),
        ("[a](gone.md)", ["there is no gone.md"]),
        ("![a](gone.png)", ["there is no gone.png"]),
        ("[a](there.md#three-words)", ["there.md has no heading #three-words"]),
        ("[a](#here)\n```\n# Here\n```", ["page.md has no heading #here"]),
        ("[a](there.md) [b](gone.md) [c](../gone)", ["there is no gone.md", "there is no ../gone"]),
    ],
)
def test_link_check_finds_what_leads_nowhere_and_nothing_else(tmp_path: Path, text: str, faults: list[str]) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "there.md").write_text("# There\n\n## Two `words`\n")
    page = tmp_path / "page.md"
    page.write_text(text)
    assert [line.split("): ")[1] for line in links.broken_links([page])] == faults


def test_no_page_has_a_link_that_leads_nowhere() -> None:
    assert links.broken_links(pages()) == []


# Commands and names -------------------------------------------------------------------------------


def test_each_run_command_that_a_page_shows_exists() -> None:
    usage = subprocess.run([ROOT / "run", "help"], check=True, capture_output=True, text=True).stdout
    commands = set(re.findall(r"^\s+.*?\b(\w+)(?: [A-Z\[]\S*)?  ", usage, re.MULTILINE)) | {"help", "shell"}
    shown = {(page.name, name) for page in pages() for name in re.findall(r"\./run ([a-z]\w*)", page.read_text())}
    assert {"demo", "test"} <= {name for _, name in shown}
    assert {item for item in shown if item[1] not in commands} == set()


def test_the_readme_explains_each_folder_of_the_tree() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    folders = {path.split("/")[0] for path in listed.splitlines() if "/" in path and path[0] != "."}
    explained = set(re.findall(r"^(\w+)/ ", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert explained == folders


@pytest.mark.parametrize("page", [page.relative_to(ROOT) for page in pages()], ids=str)
def test_python_on_a_page_names_only_what_liteprobe_has(page: Path) -> None:
    """Each name that an example imports from liteprobe can be imported."""
    for block in blocks(ROOT / page, "python"):
        imports = [node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.ImportFrom) and node.module]
        for node in imports:
            exec(compile(ast.Module([node], []), str(page), "exec"), {})  # An import that fails says its name.


@pytest.mark.parametrize("page", sorted((ROOT / "docs/cores").glob("*.md")), ids=lambda page: page.stem)
def test_the_page_of_a_core_has_the_headings_of_all_cores(page: Path) -> None:
    headings = re.findall(r"^## (.*)$", page.read_text(), re.MULTILINE)
    assert headings == CORE_HEADINGS


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_of_prose_fit_120_columns(page: Path) -> None:
    """Not code, tables, headings, pictures, pages that are generated, nor one code span or link that is longer."""
    if page.name in ("boards.md", "stages.md"):
        return
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    long = [
        line
        for line in prose.splitlines()
        if len(line) > 120 and not re.match(r"\||#|!\[|`[^`]*`\S*$|\[[^\]]*\]\(\S*$", line)
    ]
    assert long == []


def test_the_changelog_has_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert re.search(rf"^## .*\b{re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


# Transcripts --------------------------------------------------------------------------------------


def transcripts() -> list[list[tuple[str, str]]]:
    """Return the commands of each ``console`` block, with their outputs; "..." stands for any text."""
    return [sessions.COMMAND.findall(block) for page in pages() for block in sessions.BLOCK.findall(page.read_text())]


@pytest.mark.parametrize("page", pages(), ids=[str(page.relative_to(ROOT)) for page in pages()])
def test_what_looks_like_a_transcript_is_compared(page: Path) -> None:
    """A prompt stands in ``console`` blocks alone, which are run; what isn't run shows commands, without their output."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    prompts = [
        text.splitlines()[0] for kind, text in fenced if kind != "console" and re.search(r"^\S*\$ ", text, re.MULTILINE)
    ]
    assert prompts == [], "make it a console block, or show the command alone"


def same(shown: str, real: str) -> None:
    """Compare a transcript with what was printed, blank lines and spaces at the ends of lines aside."""
    shown, real = sessions.plain(shown), sessions.plain(real)
    how = "run './run python tools/transcripts.py PAGE', and look at what has changed"
    assert doctest.OutputChecker().check_output(shown, real, doctest.ELLIPSIS), f"{how}; now it prints:\n{real}"


def shown() -> list[Any]:
    """Return the transcripts as parameters; those with probes of their own wait, and sim/system has one of each in a run.

    So does the long one of a loaded switch, whose figures the demo holds against the theory (test/train/test_cli_demo.py).
    """
    return [
        pytest.param(
            found, id=found[0][0], marks=[pytest.mark.full] * bool(re.search(r" (emulate|stamp) |cross=", found[0][0]))
        )
        for found in transcripts()
    ]


@pytest.mark.parametrize("commands", shown())
def test_a_transcript_is_what_the_command_prints(commands: list[tuple[str, str]], tmp_path: Path) -> None:
    """The simulated probe does the same each time, so each figure on a page must come out again."""
    for command, output in commands:
        same(output, sessions.printed(command, tmp_path))


@pytest.mark.parametrize("page", ["README.md", "docs/library.md"])
def test_the_script_of_a_page_prints_what_stands_below_it(page: str, tmp_path: Path) -> None:
    """The first Python block of the page, and the block after it that names no language."""
    found = re.search(r"^```python\n(.*?)^```$.*?^```\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    assert found
    (tmp_path / "script.py").write_text(found[1])
    same(found[2], sessions.printed("./run python script.py", tmp_path))


# Figures ------------------------------------------------------------------------------------------


def test_the_table_of_capacity_errors_is_arithmetic() -> None:
    rows = re.findall(
        r"^\| (\d+) \| (\d+) \| ([\d.]+) ppm \| ([\d.]+) ppm \|$", (ROOT / "docs/accuracy.md").read_text(), re.MULTILINE
    )
    assert [int(row[0]) for row in rows] == [60, 64, 128, 256, 512, 1024, 1514, 9000]
    for length, slot, short, long in rows:
        computed = [1e6 * tick_error(int(length), count) for count in (100, 1000)]
        assert (float(slot), [short, long]) == (slot_ns(int(length)), [f"{error:.3g}" for error in computed])


# Tables of registers ------------------------------------------------------------------------------


PAGES = sorted((ROOT / "docs/cores").glob("*.md"))


@pytest.fixture(scope="module")
def regions() -> dict[str, list[Any]]:
    """CSRs of each module; Migen finds their names in a stack that is short."""
    return apart(tool.regions)  # Kept: the tables ask for them again.


@pytest.mark.usefixtures("regions")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_tables_of_a_page_are_those_of_the_code(page: Path) -> None:
    """Run tools/registers_page.py where this fails."""
    assert page.read_text() == tool.current(page.read_text())


def test_each_module_with_registers_of_ours_is_on_one_page(regions: dict[str, list[Any]]) -> None:
    shown = [name for page in PAGES for name in re.findall(r"^<!-- registers: (\w+) -->$", page.read_text(), re.M)]
    theirs = {"ctrl", "timer0", "uart", "identifier_mem"}
    ours = {re.sub(r"^(port|direction)\d", r"\g<1>0", name) for name in regions} - theirs
    assert sorted(shown) == sorted(ours)


def test_ports_of_one_kind_have_the_same_registers(regions: dict[str, list[Any]]) -> None:
    for kind in ("port{}_tx", "port{}_rx", "port{}_snapshot", "direction{}"):
        names = [[csr.name for csr in regions[kind.format(number)]] for number in (0, 1)]
        assert names[0] == names[1]


@pytest.mark.usefixtures("regions")
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


def test_no_meaning_is_left_of_a_register_that_is_gone(regions: dict[str, list[Any]]) -> None:
    for module, meanings in tool.MEANINGS.items():
        assert set(meanings) - {csr.name for csr in regions[module]} == set()


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
