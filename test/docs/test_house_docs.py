# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The pages claim what the code does: links, commands, figures, names; and the link check itself."""

import ast
import doctest
import importlib.util
import re
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from liteprobe.host.analysis.theory import slot_ns, tick_error

ROOT = Path(__file__).resolve().parents[2]
CORE_HEADINGS = ["Purpose", "Interface", "Timing", "Registers", "Accuracy and limits", "Verified by", "Source"]


def pages() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [ROOT / path for path in listed.stdout.splitlines() if (ROOT / path).exists()]


def load_tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
    assert [line.split("): ")[1] for line in load_tool("links").broken_links([page])] == faults


def test_no_page_has_a_link_that_leads_nowhere() -> None:
    assert load_tool("links").broken_links(pages()) == []


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


tool = load_tool("transcripts")


def transcripts() -> list[list[tuple[str, str]]]:
    """Return the commands of each ``console`` block, with their outputs; "..." stands for any text."""
    return [tool.COMMAND.findall(block) for page in pages() for block in tool.BLOCK.findall(page.read_text())]


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
    shown, real = tool.plain(shown), tool.plain(real)
    how = "run './run python tools/transcripts.py PAGE', and look at what has changed"
    assert doctest.OutputChecker().check_output(shown, real, doctest.ELLIPSIS), f"{how}; now it prints:\n{real}"


def shown() -> list[Any]:
    """Return the transcripts as parameters; an emulated network takes 20 s, and sim/system has one in each run."""
    return [
        pytest.param(found, id=found[0][0], marks=[pytest.mark.full] * (" emulate " in found[0][0]))
        for found in transcripts()
    ]


@pytest.mark.parametrize("commands", shown())
def test_a_transcript_is_what_the_command_prints(commands: list[tuple[str, str]], tmp_path: Path) -> None:
    """The simulated probe does the same each time, so each figure on a page must come out again."""
    for command, output in commands:
        same(output, tool.printed(command, tmp_path))


@pytest.mark.parametrize("page", ["README.md", "docs/library.md"])
def test_the_script_of_a_page_prints_what_stands_below_it(page: str, tmp_path: Path) -> None:
    """The first Python block of the page, and the block after it that names no language."""
    found = re.search(r"^```python\n(.*?)^```$.*?^```\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    assert found
    (tmp_path / "script.py").write_text(found[1])
    same(found[2], tool.printed("./run python script.py", tmp_path))


# Figures ------------------------------------------------------------------------------------------


def test_the_table_of_capacity_errors_is_arithmetic() -> None:
    rows = re.findall(
        r"^\| (\d+) \| (\d+) \| ([\d.]+) ppm \| ([\d.]+) ppm \|$", (ROOT / "docs/accuracy.md").read_text(), re.MULTILINE
    )
    assert [int(row[0]) for row in rows] == [60, 64, 128, 256, 512, 1024, 1514, 9000]
    for length, slot, short, long in rows:
        computed = [1e6 * tick_error(int(length), count) for count in (100, 1000)]
        assert (float(slot), [short, long]) == (slot_ns(int(length)), [f"{error:.3g}" for error in computed])
