# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Holds what all suites of trials have in common: how they are asked for, how far they are, verdicts, and what a result has."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from liteprobe.host.analysis.columns import time_text
from liteprobe.host.analysis.result import Result
from liteprobe.host.run.figures import TrafficLook
from liteprobe.host.suites.trials import Journal, Offer, Sender, SuitePlan, Trial, Trials, TrialSettings

NOTES_MOST = 12


class Verdict(StrEnum):
    """Verdict on a step, a stream or a service."""

    PASSED = "passed"
    FAILED = "FAILED"
    UNKNOWN = "not known"  # An error bar crosses a limit, the tester was at fault, or it was ended before its end.
    SKIPPED = "not done"

    @classmethod
    def of_all(cls, found: Iterable[str], is_complete: bool = True) -> "Verdict":
        """Return the worst of those that were done; none is passed before all is done.

        >>> Verdict.of_all(["passed", "not done"]), Verdict.of_all(["passed", "FAILED"]), Verdict.of_all([])
        (<Verdict.PASSED: 'passed'>, <Verdict.FAILED: 'FAILED'>, <Verdict.UNKNOWN: 'not known'>)
        """
        done = {*found} - {cls.SKIPPED}
        worst = next((one for one in (cls.FAILED, cls.UNKNOWN) if one in done), cls.PASSED)
        return worst if worst is not cls.PASSED or (done and is_complete) else cls.UNKNOWN


class SuiteRequest(ABC):
    """Says what a suite is asked for; a suite goes on only with the same."""

    source: ClassVar[str] = ""  # Who asks for what: ``the RFCs ask``.

    @property
    def shortfalls(self) -> list[str]:
        """Sentences that say where it asks for less than its standard does; empty: nowhere."""
        return []

    @property
    def marks(self) -> list[str]:
        """Words that must stand above all figures; none: it is as the standard asks."""
        return [f"Not as {self.source}: {'; '.join(self.shortfalls)}."] if self.shortfalls else []

    @abstractmethod
    def plan(self) -> SuitePlan:
        """Return how many trials it takes, and how long."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""


@dataclass(frozen=True)
class SuiteLook:
    """Says how far a suite is."""

    doing: str  # What is sent now.
    done: int  # Trials that have ended.
    most: int  # Trials in all, about, at most.
    elapsed_s: float  # Of the trial, of the probe's time.
    rows: tuple[Any, ...]  # Figures so far.

    @property
    def words(self) -> str:
        """Line that says how far it is."""
        return f"trial {self.done + 1} of up to {self.most}: {self.doing}, {time_text(1e9 * self.elapsed_s)}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, without its figures."""
        return {"doing": self.doing, "trials": self.done, "most": self.most, "elapsed_s": self.elapsed_s}


@dataclass(frozen=True, repr=False)
class SuiteResult(Result):
    """Holds what came of a suite: all of `Result`, and its trials."""

    request: Any  # A SuiteRequest.
    trials: tuple[Trial, ...]
    is_complete: bool
    notes: tuple[str, ...]
    uncertainty_ns: float  # Bound of the error of one delay.

    @property
    def lied(self) -> int:
        """Trials that could not be believed."""
        return sum(not trial.is_valid for trial in self.trials)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {
            "is_complete": self.is_complete,
            "is_conformant": not self.request.shortfalls,
            "shortfalls": self.request.shortfalls,
            "notes": list(self.notes),
            "request": self.request.to_dict(),
            **self.figures_dict(),
            "trial_count": len(self.trials),
            "lied": self.lied,
            "trials": [trial.to_dict() for trial in self.trials],
        }

    @abstractmethod
    def figures_dict(self) -> dict[str, Any]:
        """Return its own figures as plain data."""


class Suite(ABC):
    """Runs the trials of a suite on a probe.

    Parameters
    ----------
    probe : Sender
    request : SuiteRequest
    journal : Journal or None
        Where each trial is kept as it ends, and from which it goes on.
    show : callable or None
        Given a look, now and then.
    pause_s : float
        After each trial (s).
    """

    lies_fail: ClassVar[bool] = False  # Whether a trial in which a queue fills always counts as failed.

    def __init__(
        self,
        probe: Sender,
        request: Any,
        journal: Journal | None = None,
        show: Callable[[Any], None] | None = None,
        pause_s: float = 0.0,
    ) -> None:
        self._probe, self._request, self._show = probe, request, show or (lambda look: None)
        self._trials = Trials(probe, TrialSettings(pause_s), journal, self._look)
        self._most = request.plan().most
        self._rows: list[Any] = []  # Figures so far.
        self._doing = ""

    @abstractmethod
    def run(self) -> Any:
        """Run all that is asked for; raises ProbeError when a link goes down: `result` has what was measured until then."""

    @abstractmethod
    def result(self, is_complete: bool = False) -> Any:
        """Return what was measured until now."""

    # # #

    def _look(self, offer: Offer, look: TrafficLook) -> None:
        doing = self._doing or offer.name
        self._show(SuiteLook(doing, len(self._trials.done), self._most, look.elapsed_s, tuple(self._rows)))

    def _common(self, is_complete: bool) -> dict[str, Any]:
        """Return what results of all suites have."""
        done = tuple(self._trials.done)
        notes = [*self._notes(), *dict.fromkeys(note for trial in done for note in trial.notes)][:NOTES_MOST]
        bound_ns = max((trial.uncertainty_ns for trial in done), default=0.0)
        return {
            "request": self._request,
            "trials": done,
            "is_complete": is_complete,
            "notes": tuple(notes),
            "uncertainty_ns": bound_ns,
        }

    def _notes(self) -> Iterator[str]:
        """Yield what must be known about all trials."""
        if not self.lies_fail:
            return
        lied = [trial for trial in self._trials.done if not trial.is_valid]
        if lied:
            yield (
                f"{len(lied)} of {len(self._trials.done)} trials lied, and count as failed: '{lied[0].name}', trial "
                f"{lied[0].number}: {lied[0].reason}"
            )
