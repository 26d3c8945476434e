# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Executes a lab from its first cell to its last, as a notebook or as a script, in a folder of its own."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

LABS = Path(__file__).resolve().parents[3] / "docs" / "labs"
CELL_TIMEOUT_S = 3600  # On a machine that does much else.
RESULTS = "lab-results"


def names() -> list[str]:
    """Return the names of all labs, in their order."""
    return sorted(path.stem for path in LABS.glob("lab[0-9]*.py"))


def load(name: str) -> ModuleType:
    """Return a module of docs/labs by its path there, without ``.py``."""
    spec = importlib.util.spec_from_file_location(Path(name).name, LABS / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def copied(folder: Path) -> Path:
    """Copy all that students have into ``folder``, and return it."""
    for path in LABS.glob("*.py"):
        shutil.copy(path, folder)
    return folder


def results(name: str, folder: Path) -> dict[str, Any]:
    """Return what a lab has stored; FileNotFoundError where it has none, or no plot."""
    number = name.split("_")[0]
    if not (folder / RESULTS / f"{number}.png").exists():
        raise FileNotFoundError(f"{name} has made no plot")
    found: dict[str, Any] = json.loads((folder / RESULTS / f"{number}.json").read_text(encoding="utf-8"))
    return found


def execute(name: str, folder: Path) -> dict[str, Any]:
    """Execute a lab as a notebook in ``folder``, and return its results.

    Raises nbclient.exceptions.CellExecutionError when a cell fails; the message has the cell and its traceback.
    """
    import jupytext  # With nbclient it takes a second to load.
    from nbclient import NotebookClient

    os.environ.setdefault("MPLBACKEND", "Agg")
    for variable in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
        os.environ[variable] = str(folder / ".jupyter")  # Nothing is written to home.
    copied(folder)
    book = jupytext.read(folder / f"{name}.py")
    place = {"metadata": {"path": str(folder)}}
    quiet = ["--log-level=40"]  # It warns of others on this machine, whom nothing here is kept from.
    NotebookClient(
        book, timeout=CELL_TIMEOUT_S, kernel_name="python3", resources=place, extra_arguments=quiet
    ).execute()
    return results(name, folder)


def run_script(name: str, folder: Path) -> dict[str, Any]:
    """Run a lab by plain Python in ``folder``, and return its results; CalledProcessError when it fails."""
    copied(folder)
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    subprocess.run([sys.executable, folder / f"{name}.py"], cwd=folder, env=environment, check=True)
    return results(name, folder)
