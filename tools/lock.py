# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Has uv resolve the ranges of pyproject.toml into requirements.lock: every package, direct or not, with its exact version.

Each section of the file is installed upon the ones before it, and holds what it adds. What is locked stays as it is where
the ranges allow it; ``./run lock --upgrade`` or ``--upgrade-package NAME`` (of ``uv pip compile``) takes newer versions.
Afterwards look at the difference, and run the tests.
"""

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / "build" / "lock"
UV = "uv>=0.13,<0.14"

# Section of the lock file: extras of pyproject.toml; the project's own dependencies come with the first.
SECTIONS = {
    "base": ("sim", "parquet", "store", "packed", "clock", "serve", "otg", "sweep"),
    "build": ("build",),
    "docs": ("docs",),
    "test": ("test",),
}

HEADER = """\
# Every package of the environment, with its exact version; made by ./run lock, never by hand.
# base: what a probe, its gateware and its simulation need; build: bitstreams; docs: the site; test: tests and lint.
"""
RESOLVE = (
    *("pip", "compile", "pyproject.toml", "--universal", "--python-version", "3.11"),
    *("--native-tls", "--no-annotate", "--no-header"),
)


def resolve(extras: tuple[str, ...], earlier: Path | None, lock: str, options: list[str]) -> list[str]:
    """Return the packages of ``extras``, with the versions of ``earlier``, a list of them, and of ``lock`` where they may be."""
    found = ENVIRONMENT / f"{extras[-1]}.txt"
    found.write_text(lock)
    command = [str(ENVIRONMENT / "bin" / "uv"), *RESOLVE, *options, "--quiet", "--output-file", str(found)]
    command += [f"--extra={extra}" for extra in extras] + ([f"--constraint={earlier}"] if earlier else [])
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return found.read_text().splitlines()


def main() -> None:
    """Write the lock file named on the command line; what else is there are options of ``uv pip compile``."""
    target, options = Path(sys.argv[1]), sys.argv[2:]
    venv.create(ENVIRONMENT, with_pip=True)
    subprocess.run([str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "install", "--quiet", UV], check=True)
    lock, text = target.read_text() if target.exists() else "", HEADER
    known: list[str] = []
    extras: tuple[str, ...] = ()
    for section, more in SECTIONS.items():
        extras += more
        earlier = ENVIRONMENT / "earlier.txt"
        earlier.write_text("\n".join(known))
        resolved = resolve(extras, earlier if known else None, lock, options)
        added = [pin for pin in resolved if pin not in known]
        text += f"\n# == {section}\n" + "".join(f"{pin}\n" for pin in added) + "# == end\n"
        known += added
    target.write_text(text)


if __name__ == "__main__":
    main()
