# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the tables of keys in docs/traffic.md and docs/emulator.md: a test fails when they are not those of the code.

A table stands between the lines ``<!-- keys: TITLE -->`` and ``<!-- end -->``.
"""

import re
from pathlib import Path

from liteprobe.host.traffic.document.keys import SECTIONS
from liteprobe.host.traffic.document.network_keys import NETWORK_SECTIONS
from liteprobe.host.traffic.document.sections import Section

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = (DOCS / "traffic.md", DOCS / "emulator.md")
ALL = {section.title: section for section in (*SECTIONS, *NETWORK_SECTIONS)}
TABLE = re.compile(r"^<!-- keys: ([^\n]*) -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
LINK = re.compile(rf"the keys of an? ({'|'.join(sorted(ALL, key=len, reverse=True))})\b")


def table(section: Section) -> str:
    """Return the table of a section."""
    lines = ["| key | value | without it | |", "|---|---|---|---|"]
    for name, key in section.keys.items():
        value = LINK.sub(lambda found: f"[{found[1]}](#{found[1].lower().replace(' ', '-')})", key.kind.written)
        without = "must be given" if key.is_needed else key.default
        lines.append(f"| `{name}` | {value} | {without} | {key.about} |")
    return "\n".join(lines)


def current(page: str) -> str:
    """Return the page with its tables as they should be."""
    return TABLE.sub(lambda found: f"<!-- keys: {found[1]} -->\n{table(ALL[found[1]])}\n<!-- end -->", page)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(current(path.read_text()))
