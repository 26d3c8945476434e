# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Loads the example scripts of docs/examples as modules."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples"


def load(name: str) -> ModuleType:
    """Return an example as a module."""
    path = EXAMPLES / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
