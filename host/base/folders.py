# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Finds the folder of what LiteProbe builds: in the clone that it runs from, else in the user's cache folder."""

import os
import sys
from functools import cache
from pathlib import Path

from liteprobe.host.base.errors import ProbeError, UsageError

ROOT = Path(__file__).resolve().parents[2]  # Of the repository, or of the installed package.
MARKS = ("run", "pyproject.toml", "setup.py")  # No installed package has them beside ``host``.
VARIABLE = "LITEPROBE_BUILD"
NAME = "liteprobe"


def is_clone() -> bool:
    """Return whether this is a clone of the repository, not an installed package."""
    return all((ROOT / name).is_file() for name in MARKS)


def build_folder() -> Path:
    """Return the folder of what is built once and kept: simulated probes, the servo.

    It is what LITEPROBE_BUILD names (read-only, where all that is asked for is in it), else ``build`` of a clone that can be
    written to, else the user's cache folder (``~/.cache/liteprobe`` on Linux), else a temporary folder, of which a line on
    stderr tells.
    Raises ProbeError when no folder can be written to.
    """
    named = os.environ.get(VARIABLE)
    if named:
        return Path(os.path.abspath(Path(named).expanduser()))
    if is_clone() and os.access(ROOT, os.W_OK):
        return ROOT / "build"
    return _cache()


def built_in(name: str) -> Path | None:
    """Return the folder of what came with the package under a name, built already (``./run wheel``); None: nothing did."""
    folder = ROOT / "built" / name
    return folder if folder.is_dir() and not is_clone() else None


def check_here() -> None:
    """Raise UsageError where the working directory was deleted: no relative path can be used then."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise UsageError("the folder that you are in is gone: cd to one that is there, and run again") from None


def why_not(folder: Path) -> str:
    """Return why nothing can be written to ``folder``, which is made where it can be; "": it can."""
    import tempfile

    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return error.strerror or str(error)
    return ""


def products() -> Path:
    """Return the folder of bitstreams and firmware: ``build`` of a clone, or of the working directory."""
    return ROOT / "build" if is_clone() and os.access(ROOT, os.W_OK) else Path("build")


# # #


@cache
def _cache() -> Path:
    import tempfile

    import platformdirs  # Not needed in a clone.

    folder = platformdirs.user_cache_path(NAME, appauthor=False)
    reason = _why_not(folder)
    if not reason:
        return folder
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    other = Path(tempfile.gettempdir()) / f"{NAME}-{user}"
    if also := _why_not(other):
        raise ProbeError(
            f"nothing can be written to {folder} ({reason}), nor to {other} ({also}): name another folder, {VARIABLE}=FOLDER"
        )
    print(
        f"liteprobe: {folder} can't be written to ({reason}): what is built goes to {other}, which may not last; "
        f"to keep it, set {VARIABLE}=FOLDER",
        file=sys.stderr,
        flush=True,
    )
    return other


def _why_not(folder: Path) -> str:
    """Return why what is built and run here can't be kept in ``folder``; "": it can."""
    if reason := why_not(folder):
        return reason
    # What is built is run: nobody else may have put it there.
    if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
        return "it belongs to another user"
    return ""
