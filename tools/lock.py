# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Works out requirements.lock anew: every package, direct or not, that the pins of pyproject.toml bring in.

Each section of the file is installed upon the ones before it, in an environment of its own, and holds what it
added. Run by ``./run lock``; afterwards look at the difference, and run the tests.
"""

import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / "build" / "lock"

# Section of the lock file: extras of pyproject.toml ("" = the project's own dependencies).
SECTIONS = {"base": ("", "gateware", "sim"), "build": ("build",), "docs": ("docs",), "test": ("test",)}

# Installed without what they ask for: pytest and numpydoc (Sphinx) serve its own tests and pages alone.
ALONE = {"allantools"}

HEADER = """\
# Every package of the environment, with its exact version; made by ./run lock, never by hand.
# base: what a probe, its gateware and its simulation need; build: bitstreams; docs: the site; test: tests and lint.
"""


def pins(extras: tuple[str, ...]) -> list[str]:
    """Return the requirements that pyproject.toml states for ``extras``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups: dict[str, list[str]] = {"": project["dependencies"], **project["optional-dependencies"]}
    return [pin for extra in extras for pin in groups[extra]]


def pip(*arguments: str) -> str:
    """Run pip in the environment and return what it printed."""
    command = [str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def work_out() -> dict[str, list[str]]:
    """Install section after section; return the pins that each one added."""
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    venv.create(ENVIRONMENT, with_pip=True)
    pip("uninstall", "--yes", "setuptools")
    known: list[str] = []
    sections: dict[str, list[str]] = {}
    for section, extras in SECTIONS.items():
        alone = [pin for pin in pins(extras) if pin.split("==")[0] in ALONE]
        pip("install", "--quiet", "--no-compile", *(pin for pin in pins(extras) if pin not in alone))
        if alone:
            pip("install", "--quiet", "--no-compile", "--no-deps", *alone)
        frozen = pip("freeze", "--all", "--exclude", "pip").splitlines()
        if changed := set(known) - set(frozen):
            raise SystemExit(f"section {section} changes the version of {sorted(changed)}: pin them in pyproject.toml")
        sections[section] = [pin for pin in frozen if pin not in known]
        known = frozen
    return sections


def main() -> None:
    """Write the lock file named on the command line."""
    lines = [HEADER]
    for section, requirements in work_out().items():
        lines += [f"\n# == {section}\n", *(f"{pin}\n" for pin in requirements), "# == end\n"]
    Path(sys.argv[1]).write_text("".join(lines))


if __name__ == "__main__":
    main()
