# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Puts imports off until what they bring is used: a command's arguments are read, and its help is printed, without its library.

Stands alone because every command begins with it, before anything that takes long is loaded.
"""

import builtins
import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any


class LazyModule(ModuleType):
    """Imports the module of its name when one of that module's names is asked for."""

    def __getattr__(self, name: str) -> Any:
        """Return what the module has under a name, a module within it too."""
        module = importlib.import_module(self.__name__)
        try:
            return getattr(module, name)
        except AttributeError:
            if not hasattr(module, "__path__"):
                raise
            return importlib.import_module(f"{self.__name__}.{name}")


@contextmanager
def lazily() -> Iterator[None]:
    """Put off the imports of the body: modules (``from a.b import c``, ``import a.b``), and never what is in them."""
    usual = builtins.__import__

    def put_off(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        if not fromlist:
            return LazyModule(name.partition(".")[0])
        package = ModuleType(name)
        for each in fromlist:
            setattr(package, each, LazyModule(f"{name}.{each}"))
        return package

    builtins.__import__ = put_off
    try:
        yield
    finally:
        builtins.__import__ = usual
