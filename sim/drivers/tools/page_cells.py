# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Reads a report as a browser would: tables, ids, links."""

from html.parser import HTMLParser
from typing import Self

VOID = {"meta", "br", "use", "path"}


class Cells(HTMLParser):
    """Collects the cells of every table, and checks that what is opened is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []

    @classmethod
    def of(cls, html: str) -> Self:
        """Return what is on a page."""
        parser = cls()
        parser.feed(html)
        parser.close()
        return parser

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids += [found["id"]] if found.get("id") else []  # type: ignore[list-item]
        self.links += [value for name, value in attrs if name in ("href", "src") and value]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data
