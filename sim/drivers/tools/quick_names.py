# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Lets Migen name signals in a third of the time in tests: it looks through the stack for each of them.

What a place in the code calls its signal is looked up once; an object is sought among its class's by what it is, the newest
first; and the frames of pytest, which call the test or the fixture, are left out: they say nothing of a design, and stand
before the name of every signal alike. Names are those that Migen gives where a design is made by a program.
"""

from collections.abc import Callable
from types import CodeType, FrameType, ModuleType
from typing import Any

import _pytest.fixtures
import _pytest.python

#: What calls a test, and a fixture: frames before it are pytest's.
CALLERS = {_pytest.python.pytest_pyfunc_call.__code__, _pytest.fixtures.call_fixture_func.__code__}


def install(tracer: ModuleType) -> None:
    """Give Migen's module ``tracer`` the functions of this one; what it has found so far is forgotten."""
    tracer.name_to_idx.clear()
    tracer.classname_to_objs.clear()
    if not hasattr(tracer.trace_back, "is_quick"):
        tracer.trace_back = _trace_back(tracer)  # type: ignore[attr-defined]


def _trace_back(tracer: Any) -> Callable[..., list[tuple[str, int]]]:
    names: dict[tuple[CodeType, int], str | None] = {}
    usual = tracer.get_var_name

    def name_of(frame: FrameType) -> str | None:
        if tracer.get_var_name is not usual:  # A test watches.
            found: str | None = tracer.get_var_name(frame)
            return found
        place = frame.f_code, frame.f_lasti
        if place not in names:
            names[place] = usual(frame)
        return names[place]

    def index_of(objects: list[Any], sought: Any) -> int:
        for index in range(len(objects) - 1, -1, -1):
            if objects[index] is sought:
                return index
        objects.append(sought)
        return len(objects) - 1

    def counted(name: str) -> tuple[str, int]:
        name = tracer.remove_underscore(name)
        number = tracer.name_to_idx[name]
        tracer.name_to_idx[name] += 1
        return name, number

    def trace_back(varname: str | None = None) -> list[tuple[str, int]]:
        """Return what Migen's function does, but for pytest's frames."""
        found: list[tuple[str, int]] = []
        frame = tracer.inspect.currentframe().f_back.f_back
        while frame is not None and frame.f_code not in CALLERS:
            name = name_of(frame) if varname is None else varname
            if name is not None:
                found.append(counted(name))
            owner = frame.f_locals.get("self")
            if owner is not None and not hasattr(owner, "__del__"):
                kind = owner.__class__.__name__.lower()
                index = index_of(tracer.classname_to_objs.setdefault(kind, []), owner)
                found.append((tracer.remove_underscore(kind), index))
            elif name is not None:
                of = frame.f_code.co_name
                found.append(counted(frame.f_globals["__name__"].split(".")[-1] if of == "<module>" else of))
            varname, frame = None, frame.f_back
        found.reverse()
        return found

    trace_back.is_quick = True  # type: ignore[attr-defined]
    return trace_back
