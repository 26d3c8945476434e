# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the tables of keys in docs/traffic.md: a test fails when they are not those of the code.

A table stands between the lines ``<!-- keys: TITLE -->`` and ``<!-- end -->``.
"""

import re
from pathlib import Path

from liteprobe.host.traffic.document.keys import SECTIONS
from liteprobe.host.traffic.document.sections import Section

PAGE = Path(__file__).resolve().parent.parent / "docs" / "traffic.md"
TABLE = re.compile(r"^<!-- keys: ([^\n]*) -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"the keys of an? (\w+)")


def table(section: Section) -> str:
    """Return the table of a section."""
    lines = ["| key | value | without it | |", "|---|---|---|---|"]
    for name, key in section.keys.items():
        value = LINK.sub(r"[\1](#\1)", key.kind.written)
        without = "must be given" if key.is_needed else key.default
        lines.append(f"| `{name}` | {value} | {without} | {key.about} |")
    return "\n".join(lines)


def current(page: str) -> str:
    """Return the page with its tables as they should be."""
    sections = {section.title: section for section in SECTIONS}
    return TABLE.sub(lambda found: f"<!-- keys: {found[1]} -->\n{table(sections[found[1]])}\n<!-- end -->", page)


if __name__ == "__main__":
    PAGE.write_text(current(PAGE.read_text()))
