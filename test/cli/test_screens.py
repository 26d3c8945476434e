# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Screens of all commands, in terminals of all sizes and without one: nothing is dropped without a word."""

import io
import re
from random import Random

import pytest
from rich.console import Console, RenderableType

from liteprobe.host.cli import tables

SIZES = ((80, 24), (40, 20), (20, 5), (160, 50), (300, 60))


def shown(screen: RenderableType, width: int, height: int = 60) -> list[str]:
    """Return the lines of something on a terminal."""
    out = Console(width=width, height=height, force_terminal=True, color_system=None, file=io.StringIO())
    out.print(screen)
    return [line.rstrip() for line in out.file.getvalue().splitlines()]  # type: ignore[attr-defined]


def squeezed(lines: list[str]) -> str:
    return re.sub(r"[\s│─]", "", "".join(lines))


def word(draw: Random, most: int) -> str:
    """Return a name, from one of a letter to one longer than a terminal."""
    return "".join(draw.choice("abcdef012:-") for _ in range(draw.choice((1, 8, 16, 39, most)))) + "x"


@pytest.mark.parametrize("width", [20, 40, 80, 160, 300])
def test_a_table_has_every_head_and_cell_at_every_width(width: int) -> None:
    for seed in range(12):
        draw = Random(seed)
        columns = [f"h{number}\ni{number}" for number in range(draw.randint(1, 20))]
        units = [draw.choice(("", "", "ns", "Mb/s")) for _ in columns]
        keys, text = draw.randint(1, 2), draw.randint(0, 1)
        made = tables.FittingTable(["k", "m"][:keys] + columns, text, keys, "the title", [""] * keys + units)
        rows = []
        for _ in range(draw.randint(1, 40)):
            row = [
                word(draw, 60),
                *(f"{draw.randrange(10 ** draw.randint(1, 20)):,}" for _ in range(len(columns) + keys - 1)),
            ]
            rows.append(row)
            made.add_row(*row)
        for most in (None, 5, 40):
            console = Console(width=width, file=io.StringIO())
            pages = [made] if most is None else made.pages(console, console.options, most)
            lines: list[str] = []
            for page in pages:
                if isinstance(page, list):
                    assert len(page) <= most  # type: ignore[operator]
                    lines += ["".join(one.text for one in line) for line in page]
                else:
                    lines += shown(page, width)
            said = f"seed {seed}, width {width}, pages of {most}\n" + "\n".join(lines)
            assert all(len(line.rstrip()) <= width for line in lines), said
            joined, plain = squeezed(lines), " ".join("".join(f"{line}\n" for line in lines).split())
            assert "…" not in joined and joined.count("thetitle") == 1, said
            for row in rows:
                for one in row:
                    assert one in joined, (one, said)
            for head, unit in zip(columns, units, strict=True):
                assert all(one in plain for one in head.split()) and unit in plain, (head, said)
