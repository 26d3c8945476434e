# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Parts of one's own in a probe: a file that adds them, without a change to the package."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

EXTEND = "extend"

def extend_with(soc: Any, path: Path) -> None:
    """Let the function ``extend(soc)`` of a Python file add modules to a probe that is not finalized yet.

    It finds all that `ProbeSoC` has built: ``soc.phys`` (``source`` in ``eth_rx<n>``, ``sink`` in ``timebase``),
    ``soc.probe_config``, ``soc.timebase``. What it adds by ``soc.add_module(name, module)`` has its registers in the map.

    Raises
    ------
    ValueError
        If there is no such file, or no such function in it.
    """
    if not path.is_file():
        raise ValueError(f"there is no {path} to extend the probe with: name a Python file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is not a Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    extend = getattr(module, EXTEND, None)
    if not callable(extend):
        raise ValueError(f"{path} has no function {EXTEND}(soc): see docs/labs/octet_counter.py")
    extend(soc)
