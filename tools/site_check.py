# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Builds the site as ``./run docs`` does, and compares its inventory of names with what host/ has."""

import ast
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOST = ROOT / "host"


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


# # #


def _public(tree: ast.Module | ast.ClassDef) -> set[str]:
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")}


def _classes(tree: ast.Module) -> list[ast.ClassDef]:
    return [node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
