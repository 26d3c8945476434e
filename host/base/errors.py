# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Defines the errors of the host library: what went wrong, what to do next, and the exit code of a command that meets it."""

from collections.abc import Sequence


class ProbeError(Exception):
    """Something failed; the message says what happened, and what to do next, in one or two sentences."""

    exit_code = 1  # Of a command that ends with this error: 1 failed, 2 usage, 3 no probe.


class UsageError(ProbeError):
    """Refuses what can't be done by any probe, or not by this one: exit code 2."""

    exit_code = 2


class NoProbeError(ProbeError):
    """No probe answers at this address: exit code 3."""

    exit_code = 3


class BusyError(ProbeError):
    """Another host has the probe: exit code 1."""


class LeaseLostError(ProbeError):
    """The probe is not this host's any more, so what it measured is void: exit code 1."""


class NetworkError(ProbeError):
    """The network between host and probe changes or cuts datagrams, so nothing that comes over it can be believed: exit code 1."""


class MapError(ProbeError):
    """The register map does not belong to the gateware that runs in the probe: exit code 1."""


class RangeError(UsageError):
    """A field of a dataclass is out of its range; ``key`` says which."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.key = name


class ExpectationError(ProbeError, AssertionError):
    """A condition on a result doesn't hold: exit code 4."""

    exit_code = 4


class UndecidedError(ExpectationError):
    """A condition on a result is unknown: its error bar crosses the limit, or nobody measured it: exit code 5."""

    exit_code = 5


class DataError(UsageError, ValueError):
    """Figures can't be worked out of these data."""


def is_near(word: str, words: Sequence[str]) -> bool:
    """Return whether a word looks like one of ``words``."""
    return bool(_near(word, words))


def nearest(word: str, words: Sequence[str]) -> str:
    """Return the advice for a word that isn't one of ``words``."""
    close = _near(word, words)
    return f"did you mean '{close[0]}'?" if close else f"give one of {', '.join(words)}"


def _near(word: str, words: Sequence[str]) -> list[str]:
    import difflib  # Needed by who mistypes.

    return difflib.get_close_matches(word, words, n=1)
