# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A clock over the whole time of a measurement: its worst state and bound, steps, refused pulses, what moved its reference."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from liteprobe.cores.formats import CLOCK_COUNT_MASK, ClockError, ClockState
from liteprobe.host.clock.clock import NAMES, Clock, ClockStatus

WRAP = 2**32
MISSING_WRAP = 2**16
BEST_LAST = (ClockState.UNKNOWN, ClockState.FREE_RUNNING, ClockState.ACQUIRING, ClockState.HOLDOVER, ClockState.LOCKED)


@dataclass(frozen=True)
class ClockVerdict:
    """What is to be said of a clock from the first look at it to the last.

    Attributes
    ----------
    state : str
        The worst that was seen.
    bound_ns : float or None
        The greatest 95 % bound of the error of ``now`` that was seen; None: not known.
    is_whole : bool
        ``now`` was not stepped, and the servo did not begin anew: stamps of the beginning and of the end go together.
    notes : tuple of str
        What the reader of the figures must know, a sentence each.
    """

    state: str
    bound_ns: float | None
    is_whole: bool = True
    notes: tuple[str, ...] = ()


class ClockWatch:
    """Looks at a clock now and then while something is measured; the first look is when it is made.

    Parameters
    ----------
    clock : Clock
    name : str
        What the notes call it.

    Attributes
    ----------
    looks : list of ClockStatus
        None where the gateware has no such clock.
    """

    def __init__(self, clock: Clock, name: str = "the clock") -> None:
        self._clock = clock
        self._name = name
        self.looks: list[ClockStatus] = []
        self.look()

    def look(self) -> None:
        """Look once more."""
        if self._clock.has_status and self._clock.has_pps:
            self.looks.append(self._clock.status())

    def end(self) -> ClockVerdict:
        """Look for the last time, and return what is to be said."""
        self.look()
        if not self.looks:
            return ClockVerdict(NAMES[ClockState.FREE_RUNNING], None)
        worst = min(self.looks, key=lambda look: BEST_LAST.index(look.state))
        bounds = [look.uncertainty_ns for look in self.looks]
        known = [bound for bound in bounds if bound is not None]
        is_known = len(known) == len(bounds)
        began_anew, steps = self._began_anew(), self._counted("steps", CLOCK_COUNT_MASK + 1)
        return ClockVerdict(
            worst.name, max(known) if is_known else None, not (steps or began_anew), self._notes(steps, began_anew)
        )

    def _counted(self, name: str, wrap: int) -> int:
        first, last = (int(getattr(look, name)) for look in (self.looks[0], self.looks[-1]))
        return (last - first) % wrap

    def _began_anew(self) -> bool:
        return any(later.edges < before.edges for before, later in zip(self.looks, self.looks[1:], strict=False))

    def _notes(self, steps: int, began_anew: bool) -> tuple[str, ...]:
        first, last = self.looks[0], self.looks[-1]
        said = [f"{self._name} was {first.name} at first, {last.name} at the end"] * (first.name != last.name)
        if (first.mode, first.name) != (last.mode, last.name) and first.mode != last.mode:
            said.append(f"{self._name} was given another mode while it was measured")
        if began_anew:
            said.append(f"the servo of {self._name} began anew: stamps from before and after are not comparable")
        elif steps:
            said.append(f"{self._name} was stepped {_times(steps)}: what was measured across a step is off by it")
        rejected = 0 if began_anew else self._counted("rejected", WRAP)
        counts = {
            "refused {} of its pulses": rejected,
            "missed {} pulses": self._counted("missing", MISSING_WRAP),
        }
        said += [f"{self._name} " + text.format(count) for text, count in counts.items() if count]
        if any(ClockError.STEP_REFUSED in look.errors for look in self.looks):
            said.append(f"{self._name} wanted a step, which waited for the train: it was slewed, and its bound has it")
        jumps = self._counted("jumps", CLOCK_COUNT_MASK + 1)
        if jumps or any(ClockError.REFERENCE_JUMPED in look.errors for look in self.looks):
            said.append(f"the reference of {self._name} jumped: the bound has where its pulses were, and where they are")
        return tuple(said)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def watch_all(clocks: Mapping[int, tuple[str, Clock]]) -> dict[int, ClockWatch]:
    """Begin to watch the clocks of all probes, given with their URLs; with one probe alone the notes don't name it."""
    return {
        key: ClockWatch(clock, "the clock" if len(clocks) == 1 else f"the clock of {url}")
        for key, (url, clock) in clocks.items()
    }


def look_at(watches: Iterable[ClockWatch]) -> None:
    """Look at all of them once more."""
    for watch in watches:
        watch.look()
