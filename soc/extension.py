# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Adds parts of one's own to a probe from a file, without a change to the package.

Stands alone: simulated builds take it, too, without the tools of a board.
"""

from __future__ import annotations

import importlib.util
import os
import traceback
from pathlib import Path
from typing import Any

EXTEND = "extend"
SCOPE  = Path(__file__).with_name("scope.py") # What ``--scope`` adds.

def extend_with(soc: Any, path: Path) -> None:
    """Let the function ``extend(soc)`` of a Python file add modules to a probe that is not finalized yet.

    It finds all that `ProbeSoC` has built: ``soc.phys`` (``source`` in ``eth_rx<n>``, ``sink`` in ``timebase``),
    ``soc.probe_config``, ``soc.timebase``. What it adds by ``soc.add_module(name, module)`` has its registers in the map.

    Raises
    ------
    ValueError
        If there is no such file, if it has no such function, or if it fails. The message names the line.
    """
    if not path.is_file():
        raise ValueError(f"there is no {path} to extend the probe with: name a Python file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is not a Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        extend = getattr(module, EXTEND, None)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{path} can't be loaded: {_what_happened(error, path)}") from error
    if not callable(extend):
        raise ValueError(f"{path} has no function {EXTEND}(soc): see docs/labs/octet_counter.py")
    try:
        extend(soc)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{path} can't extend the probe: {_what_happened(error, path)}") from error


def _what_happened(error, path):
    """Return what an error in the file means, and in which line of the file it was."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}"
    frames = list(traceback.walk_tb(error.__traceback__))
    lines = [line for frame, line in frames if frame.f_code.co_filename == os.path.abspath(path)]
    where = f"line {lines[-1]}: " if lines else ""
    last = frames[-1][0]
    if isinstance(error, AssertionError) and last.f_code.co_name == "add_module":
        return f"{where}the probe has a '{last.f_locals.get('name')}' already: give the module another name"
    hint = ""
    if isinstance(error, ImportError):
        hint = ". It is loaded on its own, without what lies beside it: put all that it needs into one file, or install it"
    return f"{where}{type(error).__name__}: {error}{hint}"
