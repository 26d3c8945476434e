# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Builds the site as ``./run docs`` does, and compares it with what host/ and the labs have."""

import ast
import html
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOST = ROOT / "host"
LABS = ROOT / "docs" / "labs"
CELL = re.compile(r"^# %%(?: \[(\w+)\])?\n(.*?)(?=^# %%|\Z)", re.MULTILINE | re.DOTALL)  # Its kind, and its text.


def build(site: Path, *options: str) -> list[str]:
    """Build the site into ``site``; return its warnings and errors, a line each."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site), *options]
    silent = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=ROOT, env=silent, capture_output=True, text=True, check=False)
    found = re.findall(r"^(?:WARNING|ERROR) .*$", done.stderr, re.MULTILINE)
    return found or ([done.stderr[-2000:]] if done.returncode else [])


def public_names() -> set[str]:
    """Return each public module, class, function and method of host/, with its dotted name, by reading the sources."""
    found = set()
    for path in HOST.rglob("*.py"):
        parts = path.relative_to(HOST).with_suffix("").parts
        names = parts[:-1] if parts[-1] == "__init__" else parts
        if any(name.startswith("_") for name in names):
            continue
        module = ".".join(("liteprobe.host", *names))
        found.add(module)
        tree = ast.parse(path.read_text())
        found |= {f"{module}.{name}" for name in _public(tree)}
        found |= {f"{module}.{one.name}.{name}" for one in _classes(tree) for name in _public(one)}
    return found


def inventory(site: Path) -> set[str]:
    """Return the names that have a place on the site (``objects.inv``, format 2 of Sphinx)."""
    octets = (site / "objects.inv").read_bytes()
    lines = zlib.decompress(octets[octets.index(b"zlib.\n") + len(b"zlib.\n") :]).decode().splitlines()
    return {line.split(" ")[0] for line in lines if " py:" in line}


def labs() -> list[Path]:
    """Return the labs of the repository."""
    return sorted(LABS.glob("lab[0-9]*.py"))


def lab_faults(lab: Path, page: str) -> list[str]:
    """Return what the page of a lab (HTML) lacks of the lab's headings and cells of code, or has beside them."""
    cells = CELL.findall(lab.read_text(encoding="utf-8"))
    prose = "\n".join(re.sub(r"^# ?", "", text, flags=re.MULTILINE) for kind, text in cells if kind == "markdown")
    headings = re.findall(
        r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", prose, flags=re.MULTILINE | re.DOTALL), re.MULTILINE
    )
    code = [text.strip() for kind, text in cells if kind != "markdown"]
    shown = [_plain(found) for found in re.findall(r"<h[1-6] id=[^>]*>(.*?)<a class=\"headerlink\"", page, re.DOTALL)]
    blocks = [
        _plain(found) for found in re.findall(r"class=\"[^\"]*\bcell\b[^\"]*\">(<pre>.*?)</pre>", page, re.DOTALL)
    ]
    faults = (
        [f"{lab.name}: headings {shown}, not {headings}"]
        if shown != [re.sub(r"[*`]", "", one) for one in headings]
        else []
    )
    return faults + ([f"{lab.name}: {len(blocks)} blocks of code, not its {len(code)} cells"] if blocks != code else [])


def site_lab_faults(site: Path) -> list[str]:
    """Return what the pages of all labs on a site lack."""
    pages = {lab: site / "labs" / f"{lab.stem}.html" for lab in labs()}
    missing = [f"{lab.name} has no page" for lab, page in pages.items() if not page.is_file()]
    found = [lab_faults(lab, page.read_text(encoding="utf-8")) for lab, page in pages.items() if page.is_file()]
    return missing + [fault for faults in found for fault in faults]


# # #


def _plain(fragment: str) -> str:
    """Return what a reader sees of a piece of HTML."""
    return html.unescape(re.sub(r"<[^>]*>", "", fragment)).strip()


def _public(tree: ast.Module | ast.ClassDef) -> set[str]:
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")}


def _classes(tree: ast.Module) -> list[ast.ClassDef]:
    return [node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
