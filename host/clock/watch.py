# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A clock over the whole time of a measurement: its worst state and bound, steps, refused pulses, what moved its reference."""

from collections.abc import Iterable, Iterator, Mapping
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
    last : ClockStatus or None
        Of the last look; None where the gateware has no such clock.
    """

    def __init__(self, clock: Clock, name: str = "the clock") -> None:
        self._clock = clock
        self._name = name
        self._first: ClockStatus | None = None
        self.last: ClockStatus | None = None
        self._worst: ClockStatus | None = None
        self._bound_ns: float | None = 0.0
        self._errors = ClockError.NONE
        self._began_anew = False
        self.look()

    def look(self) -> None:
        """Look once more."""
        if not (self._clock.has_status and self._clock.has_pps):
            return
        before, look = self.last, self._clock.status()
        self._first = self._first or look
        self._began_anew |= before is not None and look.edges < before.edges
        self._errors |= look.errors
        self._bound_ns = _greater(self._bound_ns, look.uncertainty_ns)
        self._worst = min((one for one in (self._worst, look) if one), key=lambda one: BEST_LAST.index(one.state))
        self.last = look

    def end(self) -> ClockVerdict:
        """Look for the last time, and return what is to be said."""
        self.look()
        if self._first is None or self.last is None or self._worst is None:
            return ClockVerdict(NAMES[ClockState.FREE_RUNNING], None)
        steps = (self.last.steps - self._first.steps) & CLOCK_COUNT_MASK
        notes = (*self._of_servo(self._first, self.last, steps), *self._of_pulses(self._first, self.last))
        return ClockVerdict(self._worst.name, self._bound_ns, not (steps or self._began_anew), notes)

    def _of_servo(self, first: ClockStatus, last: ClockStatus, steps: int) -> Iterator[str]:
        """Give what became of ``now``."""
        if first.name != last.name:
            yield f"{self._name} was {first.name} at first, {last.name} at the end"
        if first.mode != last.mode:
            yield f"{self._name} was given another mode while it was measured"
        if self._began_anew:
            yield f"the servo of {self._name} began anew: stamps from before and after are not comparable"
        elif steps:
            times = "once" if steps == 1 else f"{steps} times"
            yield f"{self._name} was stepped {times}: what was measured across a step is off by it"
        if ClockError.STEP_REFUSED in self._errors:
            yield f"{self._name} wanted a step, which waited for the train: it was slewed, and its bound has it"

    def _of_pulses(self, first: ClockStatus, last: ClockStatus) -> Iterator[str]:
        """Give what became of the reference."""
        rejected = 0 if self._began_anew else (last.rejected - first.rejected) % WRAP
        if rejected:
            yield f"{self._name} refused {rejected} of its pulses"
        if missing := (last.missing - first.missing) % MISSING_WRAP:
            yield f"{self._name} missed {missing} pulses"
        if (last.jumps - first.jumps) & CLOCK_COUNT_MASK or ClockError.REFERENCE_JUMPED in self._errors:
            yield f"the reference of {self._name} jumped: the bound has where its pulses were, and where they are"


def _greater(bound_ns: float | None, other_ns: float | None) -> float | None:
    """Return the greater bound; one that is not known is the greatest."""
    return None if bound_ns is None or other_ns is None else max(bound_ns, other_ns)


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
