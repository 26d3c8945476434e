# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What came of looking for one thing."""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Whether a thing is there; ``NONE``: nothing is plugged in, or nobody answers, which may be as it should be."""

    OK = "ok"
    MISSING = "missing"
    NONE = "none"


@dataclass(frozen=True)
class Check:
    """One thing that was looked for.

    Attributes
    ----------
    name : str
    state : State
    said : str
        What was found.
    advice : str
        What to do; "": nothing.
    is_needed : bool
        Whether the host can do nothing without it.
    """

    name: str
    state: State
    said: str
    advice: str = ""
    is_needed: bool = False


def found(name: str, said: str) -> Check:
    """Return that a thing is there."""
    return Check(name, State.OK, said)


def missing(name: str, said: str, advice: str, is_needed: bool = False) -> Check:
    """Return that a thing is missing, and what to do."""
    return Check(name, State.MISSING, said, advice, is_needed)


def none(name: str, said: str, advice: str = "") -> Check:
    """Return that there is none of a thing that need not be there."""
    return Check(name, State.NONE, said, advice)
