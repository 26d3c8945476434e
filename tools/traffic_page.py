# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes what is made from the keys of documents: their tables in docs/, and the JSON Schemas in docs/schema/.

A test fails when they are not those of the code. A table stands between the lines ``<!-- keys: TITLE -->`` and
``<!-- end -->``.
"""

import json
import re
from pathlib import Path

from liteprobe.host.base.document import Section
from liteprobe.host.fleet import plan as plans
from liteprobe.host.suites import y1564 as services
from liteprobe.host.traffic import document as streams
from liteprobe.host.traffic.network import document as networks

DOCS = Path(__file__).resolve().parent.parent / "docs"
ALL = {
    section.title: section for section in (*streams.SECTIONS, *networks.SECTIONS, *services.SECTIONS, *plans.SECTIONS)
}
SCHEMAS = {
    "streams": streams.schema,
    "sets": streams.sets_schema,
    "network": networks.network_schema,
    "services": services.schema,
    "experiment": plans.plan_schema,
}
PAGES = ("traffic.md", "emulator.md", "y1564.md", "experiment.md")
TABLE = re.compile(r"^<!-- keys: ([^\n]*) -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
LINK = re.compile(rf"the keys of an? ({'|'.join(sorted(ALL, key=len, reverse=True))})\b")


def table(section: Section, page: str) -> str:
    """Return the table of a section on a page; what other sections say is linked there, or on the page that has it."""

    def link(found: re.Match[str]) -> str:
        mark = f"<!-- keys: {found[1]} -->"
        where = "" if mark in page else next((name for name in PAGES if mark in (DOCS / name).read_text()), PAGES[0])
        return f"[{found[1]}]({where}#{found[1].lower().replace(' ', '-')})"

    lines = ["| key | value | without it | |", "|---|---|---|---|"]
    for name, key in section.keys.items():
        value = LINK.sub(link, key.kind.written)
        without = "must be given" if key.is_needed else key.default
        lines.append(f"| `{name}` | {value} | {without} | {key.about} |")
    return "\n".join(lines)


def current(page: str) -> str:
    """Return the page with its tables as they should be."""
    return TABLE.sub(lambda found: f"<!-- keys: {found[1]} -->\n{table(ALL[found[1]], page)}\n<!-- end -->", page)


def schemas() -> dict[Path, str]:
    """Return the JSON Schemas by file."""
    return {DOCS / "schema" / f"{name}.json": json.dumps(made(), indent=1) + "\n" for name, made in SCHEMAS.items()}


if __name__ == "__main__":
    for name in PAGES:
        (DOCS / name).write_text(current((DOCS / name).read_text()))
    for path, text in schemas().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
