# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Which signals of a design have no name of their own: Migen then calls them after the class of their module."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from migen.fhdl import structure, tracer
from migen.fhdl.tools import list_signals

ROOT = Path(__file__).resolve().parents[3]
OURS = tuple(str(ROOT / folder) for folder in ("cores", "soc", "boards"))


@contextmanager
def watched() -> Iterator[dict[int, str]]:
    """Note where each signal is made that Migen finds no name for: file and line, by the signal's number."""
    places: dict[int, str] = {}
    usual, make = tracer.get_var_name, structure.Signal.__init__
    nameless: list[FrameType] = []

    def get_var_name(frame: FrameType) -> str | None:
        name: str | None = usual(frame)
        if name is None:
            nameless.append(frame)
        return name

    def init(self: Any, *args: Any, **options: Any) -> None:
        nameless.clear()
        make(self, *args, **options)
        caller = sys._getframe(1)
        if caller in nameless and caller.f_code.co_filename.startswith(OURS) and not options.get("name"):
            places[self.duid] = f"{Path(caller.f_code.co_filename).relative_to(ROOT)}:{caller.f_lineno}"

    tracer.get_var_name, structure.Signal.__init__ = get_var_name, init
    try:
        yield places
    finally:
        tracer.get_var_name, structure.Signal.__init__ = usual, make


def nameless(soc: Any, places: dict[int, str]) -> list[str]:
    """Return where the signals of a finalized ``soc`` are made that have no name."""
    return sorted({places[signal.duid] for signal in list_signals(soc.get_fragment()) if signal.duid in places})
