# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Pages of the Python files of docs/: of a notebook kept as text its cells, of any other script its lines."""

import re
from collections.abc import Iterator
from pathlib import Path

import jupytext

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
ANSWERS = DOCS / "labs" / "teacher"  # In the repository alone: not for the students' site.
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
RUN_IT = "Its figures and plots are yours to make: [how to run it](index.md#how-to-run-one)."


def scripts() -> Iterator[Path]:
    """Return the scripts that have a page."""
    yield from (path for path in sorted(DOCS.rglob("*.py")) if ANSWERS not in path.parents)


def is_script(path: Path) -> bool:
    """Tell whether a file of the repository is one of them."""
    return path.suffix == ".py" and path.is_relative_to(DOCS) and ANSWERS not in path.parents


def is_notebook(script: Path) -> bool:
    """Tell whether a script has cells."""
    return re.search(r"^# %%", script.read_text(encoding="utf-8"), re.MULTILINE) is not None


def notebook(script: Path) -> str:
    """Return the notebook (.ipynb) of a script with cells; it is the same in each build."""
    book = jupytext.read(script)
    book.metadata.kernelspec = KERNEL
    for number, cell in enumerate(book.cells):
        cell.id = f"cell-{number}"
    return str(jupytext.writes(book, fmt="ipynb"))


def markdown(script: Path) -> str:
    """Return the page of a script: what a reader of the notebook sees before it is run, its code between the text."""
    if not is_notebook(script):
        text = script.read_text(encoding="utf-8").rstrip()
        return f"# {script.name}\n\n{_buttons(script.name)}\n\n{_fenced(text)}\n"
    cells = [cell for cell in jupytext.read(script).cells if not _says_nothing(cell.source)]
    parts = [_fenced(cell.source) if cell.cell_type == "code" else cell.source for cell in cells]
    title, _, rest = parts[0].partition("\n")
    below = f"{_buttons(script.name, script.with_suffix('.ipynb').name)}\n\n{RUN_IT}"
    return "\n\n".join([title, below, rest.strip(), *parts[1:]]) + "\n"


# # #


def _says_nothing(source: str) -> bool:
    """Tell whether a cell is but the lines above the first one: whose file it is, and the licence."""
    return "SPDX-License-Identifier" in source and all(line.startswith("#") for line in source.splitlines())


def _buttons(*names: str) -> str:
    """Return links by which a browser saves files of the page's folder, where else it would show them."""
    return " ".join(f'[Download {name}]({name}){{ .md-button download="{name}" }}' for name in names)


def _fenced(code: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{{.python .cell}}\n{code}\n{fence}"
