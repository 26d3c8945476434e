# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""All checks of style and types, one after the other; exits 1 if one finds something. Run by ``./run lint``."""

import ast
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from links import broken_links

ROOT = Path(__file__).resolve().parent.parent

# What mypy checks strictly; the rest is Migen, which it can't see through.
TYPED = ("host", "sim/drivers", "sim/models", "cores/formats")
TYPED_SCRIPTS = (
    *("bench", "docs/examples/pscheduler", "docs/examples/twelve"),
    *("tools/links.py", "tools/lock.py", "tools/lint.py"),
)
QUESTIONS = ("Who", "What", "Which", "How", "Where", "When", "That")
SHELL_SCRIPTS = ("run", ".ci/run", "tools/bare_machine")  # Beside those whose names end in .sh.


def tracked(*patterns: str) -> list[Path]:
    """Return the files of the repository that match ``patterns``, new ones that git would take included."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [path for line in sorted(set(listed.splitlines())) if (path := Path(line)).exists()]


def is_gateware(path: Path) -> bool:
    """Return whether a file is written in Migen: a bench at the signals of a core is."""
    return "\nfrom migen import *\n" in (ROOT / path).read_text()


def tool(*command: str | Path) -> bool:
    """Run a tool of the environment; return whether it is content."""
    return subprocess.run([sys.executable, "-m", *command], check=False).returncode == 0


def link_package() -> None:
    """Make the folder in which mypy finds the package: it doesn't see an editable install."""
    link = ROOT / "build" / "typing" / "liteprobe"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(os.path.relpath(ROOT, link.parent))


def check_types() -> bool:
    """Run mypy in strict mode over everything that is typed."""
    link_package()
    typed = [path for path in tracked(*TYPED) if path.suffix == ".py" and not is_gateware(path)]
    scripts = [path for path in tracked(*TYPED_SCRIPTS) if path.suffix == ".py"]
    return tool("mypy", *(Path("build/typing/liteprobe") / path for path in typed), *scripts)


def check_shell() -> bool:
    """Run shellcheck over the shell scripts."""
    shellcheck = Path(sys.executable).parent / "shellcheck"
    return subprocess.run([shellcheck, *SHELL_SCRIPTS, *tracked("*.sh")], check=False).returncode == 0


def check_links() -> bool:
    """Look for links between pages that lead nowhere."""
    found = broken_links(tracked("*.md"))
    print("\n".join(found), end="\n" if found else "")
    return not found


def check_first_lines() -> bool:
    """Look for docstrings that begin with a question word: their first line has no subject and no verb."""
    found = []
    for path in tracked("*.py"):
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                first = (ast.get_docstring(node) or "").partition("\n")[0]
                if first.partition(" ")[0].rstrip(",:") in QUESTIONS:
                    found.append(
                        f"{path}: '{first}': begin with a verb (a class: 'Grants ...'; a function: 'Return ...')"
                    )
    print("\n".join(found), end="\n" if found else "")
    return not found


CHECKS: dict[str, Callable[[], bool]] = {
    "ruff check": lambda: tool("ruff", "check", "--quiet"),
    "ruff format": lambda: tool("ruff", "format", "--check", "--quiet"),
    "mypy": check_types,
    "shellcheck": check_shell,
    "links": check_links,
    "first lines": check_first_lines,
}


def main() -> int:
    """Run all checks, say which ones failed, and return the exit code."""
    os.chdir(ROOT)
    failed = []
    for name, check in CHECKS.items():
        print(f"== {name}", flush=True)
        if not check():
            failed.append(name)
    print(f"lint: {'failed: ' + ', '.join(failed) if failed else 'all is well'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
