# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Steps that processes in Migen's simulator share; each is taken by ``yield from``."""

from collections.abc import Generator
from typing import Any

Step = Generator[Any, Any, None]


def wait_cycles(count: int) -> Step:
    """Wait for so many cycles."""
    for _ in range(count):
        yield


def wait_until(signal: Any) -> Step:
    """Wait for the cycle in which a signal is 1."""
    while not (yield signal):
        yield


def pulse(signal: Any) -> Step:
    """Raise a signal for a cycle; returns in the next one."""
    yield signal.eq(1)
    yield
    yield signal.eq(0)


def assign(module: Any, **values: Any) -> Step:
    """Give signals of a module values, by their names."""
    for name, value in values.items():
        yield getattr(module, name).eq(value)
