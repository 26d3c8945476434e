# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Searches the greatest load that a device sustains: MLRsearch by its authors' library, and the bisection of RFC 2544 beside it.

A search is given what runs a trial, and looks at nothing else. Both end with two loads: the greatest that was shown to pass, and
the least above it that was shown not to. Where no load passed, there is no figure.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from liteprobe.host.base import extras
from liteprobe.host.base.errors import UsageError, nearest
from liteprobe.host.base.validate import validated
from liteprobe.host.suites.trials import Trial

Measure = Callable[[float, float], Trial]  # Of a load (share of the line) and a time (s).

FOREVER_S = (
    1e9  # A search ends by its goal: a limit on this machine's time would let a resumed one come to another end.
)
QUICK_S = 1.0  # Trials that MLRsearch begins with, where those of its goal are longer.
SCALE = 1e6  # Loads of MLRsearch: in millionths of the line.


@validated
@dataclass(frozen=True)
class Goal:
    """Says when a load counts as sustained, and how close the search comes.

    A load passes when at least ``sum_s`` seconds of trials of ``seconds`` were run at it, and those that lost more than
    ``loss_ratio`` are no more than ``exceed_ratio`` of that time.

    Source: RFC 2544, section 26.1; MLRsearch (Internet-Draft of the BMWG, draft-ietf-bmwg-mlrsearch), section 4.
    """

    seconds: float = 60.0
    loss_ratio: float = 0.0
    exceed_ratio: float = 0.0
    sums: int = 1  # Trials that a load takes: ``sum_s`` over ``seconds``.
    width: float = 0.005  # Of the load: by so much at most the two ends of the search are apart.
    least: float = 0.01  # Share of the line: nothing is sent more slowly.

    def __post_init__(self) -> None:
        for name, least, most in (
            ("loss_ratio", 0.0, 0.5), ("exceed_ratio", 0.0, 0.9), ("width", 1e-5, 0.2), ("least", 1e-4, 0.9), ("sums", 1, 1000),
        ):  # fmt: skip
            if not least <= getattr(self, name) <= most:
                raise UsageError(f"{name} {getattr(self, name):g} is out of range: give {least:g} to {most:g}")
        if not self.seconds > 0:
            raise UsageError(f"trials of {self.seconds:g} s are out of range: give more than 0 s")

    @property
    def words(self) -> str:
        """Words for it, for people."""
        said = f"loss of {100 * self.loss_ratio:g} % at most, trials of {self.seconds:g} s"
        said += f", precision {100 * self.width:g} % of the load"
        if self.sums > 1:
            said += f", {self.sums} trials a load, of which {100 * self.exceed_ratio:g} % may lose more"
        return said


#: Goals by name, as MLRsearch's authors and the groups that use it have them.
GOALS: dict[str, dict[str, float]] = {
    "rfc2544": {"loss_ratio": 0.0, "exceed_ratio": 0.0, "sums": 1},
    "tst009": {
        "loss_ratio": 0.0,
        "exceed_ratio": 0.5,
        "sums": 2,
    },  # ETSI GS NFV-TST 009: binary search with loss verification.
    "ndr": {"loss_ratio": 0.0, "exceed_ratio": 0.5, "sums": 21},  # FD.io CSIT.
    "pdr": {"loss_ratio": 0.005, "exceed_ratio": 0.5, "sums": 21},
}


def goal_of(name: str, **others: Any) -> Goal:
    """Return a goal by its name, with some of its values changed."""
    if name not in GOALS:
        raise UsageError(f"there is no goal '{name}': {nearest(name, list(GOALS))}")
    found: dict[str, Any] = {**GOALS[name], **others}
    return Goal(**found)


@dataclass(frozen=True)
class Found:
    """Holds what a search has found."""

    method: str  # ``mlrsearch`` or ``bisection``.
    lower: float | None  # Greatest load that passed (share of the line, each way); None: none did.
    upper: float | None  # Least load above it that did not; None: there is none, the line is full.
    trials: tuple[Trial, ...]
    loads: tuple[float, ...]  # Of each trial.

    @property
    def seconds(self) -> float:
        """Time of all its trials (s of the probe's)."""
        return sum(trial.seconds for trial in self.trials)

    def at(self, load: float | None) -> list[Trial]:
        """Return its trials at a load."""
        return [trial for trial, one in zip(self.trials, self.loads, strict=True) if one == load]


class _Measurer:
    """Runs the trials that MLRsearch asks for. No subclass of its own measurer: only a search imports the package."""

    def __init__(self, measure: Measure, result: Callable[..., Any]) -> None:
        self._measure, self._result = measure, result
        self.trials: list[Trial] = []
        self.loads: list[float] = []

    def measure(self, intended_duration: float, intended_load: float) -> Any:
        """Run one."""
        load = share_of(intended_load)
        trial = self._measure(load, intended_duration)
        self.trials.append(trial)
        self.loads.append(load)
        return self._result(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=10
            ** 9,  # The ratio is what counts: of the way that lost the most, and of what a queue swallowed.
            loss_count=-(-trial.shown_loss * 10**9 // 1),
        )


def share_of(load: float) -> float:
    """Return the share of the line of a load of MLRsearch, to nine digits: it is written into documents and compared."""
    return round(load / SCALE, 9)


def mlrsearch(measure: Measure, goal: Goal, most: float = 1.0) -> Found:
    """Search with MLRsearch; ``most``: the greatest load."""
    with (
        extras.named()
    ):  # It looks through all modules that there are, ten times: a third of what a command's imports take.
        from MLRsearch import Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal

    quick_s = min(QUICK_S, goal.seconds)
    measurer = _Measurer(measure, MeasurementResult)
    asked = SearchGoal(
        loss_ratio=goal.loss_ratio,
        exceed_ratio=goal.exceed_ratio,
        relative_width=goal.width,
        initial_trial_duration=quick_s,
        final_trial_duration=goal.seconds,
        duration_sum=goal.seconds * goal.sums,
        preceding_targets=2 if quick_s < goal.seconds or goal.sums > 1 else 0,
        fail_fast=False,
    )
    config = Config(
        goals=[asked],
        min_load=SCALE * goal.least,
        max_load=SCALE * most,
        search_duration_max=FOREVER_S,
        warmup_duration=None,
    )
    result = MultipleLossRatioSearch(config=config).search(measurer=measurer, debug=lambda _: None)[asked]
    lower, upper = (
        None if one is None else share_of(float(one))
        for one in (result.relevant_lower_bound, result.relevant_upper_bound)
    )
    return Found("mlrsearch", lower, upper, tuple(measurer.trials), tuple(measurer.loads))


def bisection(measure: Measure, goal: Goal, most: float = 1.0) -> Found:
    """Search by bisection, from the greatest load on, each load with as many trials as the goal asks for."""
    trials: list[Trial] = []
    loads: list[float] = []

    def passes(load: float) -> bool:
        bad = 0
        for number in range(goal.sums):
            trial = measure(load, goal.seconds)
            trials.append(trial)
            loads.append(load)
            bad += trial.shown_loss > goal.loss_ratio
            if bad > goal.exceed_ratio * goal.sums or number + 1 - bad >= goal.sums * (1 - goal.exceed_ratio):
                break
        return bad <= goal.exceed_ratio * goal.sums

    lower, upper = narrowed(passes, goal.width, goal.least, most)
    return Found("bisection", lower, upper, tuple(trials), tuple(loads))


def narrowed(
    passes: Callable[[float], bool], width: float, least: float, most: float = 1.0
) -> tuple[float | None, float | None]:
    """Return the greatest load that passes, and the least above it that doesn't, no further apart than ``width`` of it.

    The first is None where no load from ``least`` on passes; the second is None where ``most`` passes.
    """
    if passes(most):
        return most, None
    lower: float | None = None
    upper = most
    while upper - (lower or 0.0) > width * upper:
        middle = round((upper + (lower or 0.0)) / 2, 9)
        if middle < least:
            break
        if passes(middle):
            lower = middle
        else:
            upper = middle
    return lower, upper


METHODS = {"mlrsearch": mlrsearch, "bisection": bisection}
