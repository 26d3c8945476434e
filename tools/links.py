# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Finds links of Markdown pages that lead nowhere: a file that isn't there, a heading that a page hasn't got."""

import re
from pathlib import Path

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
FENCED = re.compile(r"^(`{3,}|~{3,}).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"`[^`\n]*`")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)


def anchor(heading: str) -> str:
    """Return the anchor that GitHub gives to ``heading``."""
    text = re.sub(r"[*_`]|\[([^\]]*)\]\([^)]*\)", lambda found: found.group(1) or "", heading)
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    """Return the anchors of all headings of ``page``, code blocks left out."""
    return {anchor(heading) for heading in HEADING.findall(FENCED.sub("", page.read_text()))}


def fault(page: Path, target: str) -> str | None:
    """Return what is wrong with the link ``target`` on ``page``, None if it holds. The network is not asked."""
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return None
    path, _, fragment = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.exists():
        return f"there is no {path}"
    if fragment and file.suffix == ".md" and fragment not in anchors(file):
        return f"{file.name} has no heading #{fragment}"
    return None


def broken_links(pages: list[Path]) -> list[str]:
    """Return a line ``page: link: what is wrong`` for each broken link."""
    found = []
    for page in pages:
        for target in LINK.findall(QUOTED.sub("", FENCED.sub("", page.read_text()))):
            if (wrong := fault(page, target)) is not None:
                found.append(f"{page}: ({target}): {wrong}")
    return found
