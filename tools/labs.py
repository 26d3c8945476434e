# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the notebooks of the labs, of one student or of a class, and opens them in Jupyter: ``./run labs``."""

import argparse
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LABS = ROOT / "docs" / "labs"
#: What notebooks are opened in, and read by; beside what is locked, for nothing that is measured depends on it.
JUPYTER = ("jupyterlab>=4.4,<5", "jupytext>=1.19,<2")
BESIDE = ("student.py", "octet_counter.py")  # What labs import, beside the package.
OWN_NAME = 'os.environ.get("STUDENT", "")'


def folder_of(name: str) -> str:
    """Return a student's name as that of a folder."""
    return re.sub(r"[^\w.-]+", "-", name.strip()).strip("-.") or "student"


def make(folder: Path, student: str) -> list[Path]:
    """Write notebooks, and what they import, into a folder; return what is there already, which is kept: it has work in it."""
    import site_scripts  # Needs jupytext.

    folder.mkdir(parents=True, exist_ok=True)
    texts = {f"{lab.stem}.ipynb": site_scripts.notebook(lab) for lab in sorted(LABS.glob("lab[0-9]*.py"))}
    texts |= {name: (LABS / name).read_text(encoding="utf-8") for name in BESIDE}
    if student:
        texts["student.py"] = texts["student.py"].replace(OWN_NAME, repr(student))
    kept = [folder / name for name in texts if (folder / name).exists()]
    for name, text in texts.items():
        if folder / name not in kept:
            (folder / name).write_text(text, encoding="utf-8")
    return kept


def students(file: Path) -> dict[str, str]:
    """Return the name of each student by that of their folder.

    Raises
    ------
    ValueError
        If two names come to the same folder, or there is none.
    """
    names = [line.strip() for line in file.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    found = {folder_of(name): name for name in names}
    if len(found) != len(names) or not names:
        raise ValueError(f"{file}: {len(names)} names give {len(found)} folders: write a name a line, each another one")
    return found


def install() -> None:
    """Install Jupyter, where it is missing."""
    if find_spec("jupyterlab") and find_spec("jupytext"):
        return
    print("installing Jupyter, once", file=sys.stderr)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *JUPYTER]
    if subprocess.run(pip, check=False).returncode:
        sys.exit("./run labs: Jupyter can't be installed: see the lines above, then run the same command again")


def main(arguments: list[str] | None = None) -> int:
    """Make notebooks, and open them unless they are for others; return an exit code."""
    parser = argparse.ArgumentParser(
        prog="./run labs", description="Make the notebooks of the eight labs and open them in Jupyter."
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path("labs"), help="where they go (default: labs)")
    whose = parser.add_mutually_exclusive_group()
    whose.add_argument("--student", default="", metavar="NAME", help="seeds, and so figures, of this student")
    whose.add_argument(
        "--class", dest="names", type=Path, metavar="FILE", help="names, one a line: a folder each; opens nothing"
    )
    parser.add_argument("--make", action="store_true", help="make them, and open nothing")
    asked = parser.parse_args(arguments)
    try:
        whose_folders = students(asked.names) if asked.names else {".": asked.student.strip()}
    except (OSError, ValueError) as error:
        parser.error(str(error))
    install()
    for name, student in whose_folders.items():
        kept = make(asked.folder / name, student)
        note = f"; {len(kept)} files that were there are as they were" if kept else ""
        print(f"{asked.folder / name}: eight labs{f' of {student}' if student else ''}{note}")
    if asked.names or asked.make:
        return 0
    root = ["--allow-root"] if os.name == "posix" and os.geteuid() == 0 else []  # It serves this machine alone.
    try:
        return subprocess.run([sys.executable, "-m", "jupyterlab", *root, str(asked.folder)], check=False).returncode
    except KeyboardInterrupt:  # Its own end.
        return 0


if __name__ == "__main__":
    sys.exit(main())
