# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A degraded network between two ports, as plain data: directions, their classes, and what changes when."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from liteprobe.cores.formats import LINE_RATE_BPS, MIN_LENGTH, OVERHEAD
from liteprobe.cores.formats.emulate import CLASSES, UNMATCHED_CLASS
from liteprobe.host.errors import UsageError
from liteprobe.host.traffic.intervals import Number, exact
from liteprobe.host.traffic.network.background import Background
from liteprobe.host.traffic.network.bandwidth import BandwidthTrace
from liteprobe.host.traffic.network.delays import Jitter, Reorder, check_share
from liteprobe.host.traffic.network.losses import Loss, Pattern

DIRECTIONS = ("there", "back")
SERVICES = ("strict", "weighted")
REST = "rest"
FRAMES_MAX = 2**16 - 1
OCTETS_MAX = 2**32 - 2  # One more is for no limit.
OVERHEAD_MAX = 255
WEIGHT_MAX = 255
RED_WEIGHT_MAX = 15
SEED_MAX = 2**64 - 1
CHANGES_MAX = 10_000
LONGEST_USUAL = 1514  # Octets of the longest frame without a tag: those that a burst must let pass.


@dataclass(frozen=True)
class Red:
    """Random early detection: frames are dropped before the queue is full, the more, the longer it was of late.

    Source: Floyd and Jacobson, Random Early Detection Gateways for Congestion Avoidance, 1993.

    Parameters
    ----------
    least, most : int
        Frames of the mean queue from which some, and from which all are dropped.
    share : number
        That is dropped just below ``most``, from 0 to 1.
    weight : int
        With each frame the mean takes on 2^-weight of the difference.
    """

    least: int
    most: int
    share: Number
    weight: int = 9

    def __post_init__(self) -> None:
        if not 0 <= self.least < self.most <= FRAMES_MAX:
            raise UsageError(
                f"RED from {self.least} to {self.most} frames is out of range: give 0 to {FRAMES_MAX}, the lower first"
            )
        if not 0 <= self.weight <= RED_WEIGHT_MAX:
            raise UsageError(f"a RED weight of {self.weight} is out of range: give 0 to {RED_WEIGHT_MAX}")
        check_share(self.share, "a RED share")


@dataclass(frozen=True)
class Queue:
    """What waits for the link, without the frame in service.

    Parameters
    ----------
    frames : int or None
        At most, background among them; None: as many as the probe's store holds.
    octets : int or None
        At most, without FCS; None: no limit.
    red : Red or None
    """

    frames: int | None = None
    octets: int | None = None
    red: Red | None = None

    def __post_init__(self) -> None:
        if self.frames is not None and not 1 <= self.frames <= FRAMES_MAX:
            raise UsageError(f"a queue of {self.frames} frames is out of range: give 1 to {FRAMES_MAX}")
        if self.octets is not None and not MIN_LENGTH <= self.octets <= OCTETS_MAX:
            raise UsageError(f"a queue of {self.octets} octets is out of range: give {MIN_LENGTH} to {OCTETS_MAX}")


@dataclass(frozen=True)
class Bucket:
    """A token bucket: the rate of a class beside that of the link.

    Parameters
    ----------
    rate_bps : number
    burst : int
        Octets with overhead that may pass at once: at least a frame of 1514 octets. A longer frame overdraws the bucket.
    """

    rate_bps: Number
    burst: int

    def __post_init__(self) -> None:
        check_rate(self.rate_bps, "a token bucket")


@dataclass(frozen=True)
class TrafficClass:
    """Frames that are treated alike. Classes have priority in their order, and a frame is of the first one that matches.

    Parameters
    ----------
    name : str
    match : str or None
        A filter expression, as of `liteprobe capture`; None: what no other class matches. One class of a direction has none.
    discard : bool
        All its frames are dropped at once.
    queue : Queue
    weight : int
        Frames in a row, of weighted service.
    bucket : Bucket or None
    overhead : int
        Octets that each frame takes on the link beside its own length without FCS: 24 are preamble, FCS and gap; 0 counts what a
        capture shows.
    delay_ns : number or None
        From the end of its service on the link; None: the least that the probe can.
    jitter : Jitter or None
    loss : Bernoulli, GilbertElliott or None
    pattern : LossPattern, LossList or None
        What is lost, too.
    is_lost_late : bool
        What is lost takes space in the queue and time of the link, and is lost behind it.
    duplicate, corrupt : number
        Shares of the frames that leave twice; that leave with one wrong bit.
    is_mended : bool
        The FCS of a corrupted frame is good.
    reorder : Reorder or None
    background : Background or None
    expected_bps : number or None
        What comes of it at most, for the division of the probe's store; None: as much as its link or bucket lets pass.
    seed : int or None
        Of its draws; None: from that of the network.
    """

    name: str = REST
    match: str | None = None
    discard: bool = False
    queue: Queue = Queue()
    weight: int = 1
    bucket: Bucket | None = None
    overhead: int = OVERHEAD
    delay_ns: Number | None = None
    jitter: Jitter | None = None
    loss: Loss | None = None
    pattern: Pattern | None = None
    is_lost_late: bool = False
    duplicate: Number = 0
    corrupt: Number = 0
    is_mended: bool = False
    reorder: Reorder | None = None
    background: Background | None = None
    expected_bps: Number | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise UsageError("a class needs a name: give one")
        if not 1 <= self.weight <= WEIGHT_MAX:
            raise UsageError(f"a weight of {self.weight} is out of range: give 1 to {WEIGHT_MAX} frames in a row")
        if not 0 <= self.overhead <= OVERHEAD_MAX:
            raise UsageError(f"an overhead of {self.overhead} octets is out of range: give 0 to {OVERHEAD_MAX}")
        if self.delay_ns is not None and exact(self.delay_ns) < 0:
            raise UsageError(f"a delay of {self.delay_ns} ns is out of range: give 0 or more")
        check_share(self.duplicate, "a share of duplicates")
        check_share(self.corrupt, "a share of corrupted frames")
        if self.seed is not None:
            check_seed(self.seed)
        if self.expected_bps is not None:
            check_rate(self.expected_bps, "what is expected")
        if self.bucket and self.bucket.burst < LONGEST_USUAL + self.overhead:
            raise UsageError(
                f"a burst of {self.bucket.burst} octets lets no frame of {LONGEST_USUAL} pass: "
                f"give {LONGEST_USUAL + self.overhead} or more"
            )


@dataclass(frozen=True)
class Direction:
    """From one port to the other.

    Parameters
    ----------
    rate_bps : number or None
        Of the link, overheads counted; None: service takes no time.
    service : str
        ``strict``: the first class with something that waits; ``weighted``: in turn, so many frames each.
    classes : sequence of TrafficClass
        Up to 7 that match, in the order of their priority, and one without; what that one says holds for all the rest.
    trace : BandwidthTrace or None
        In the place of a rate.
    """

    rate_bps: Number | None = None
    service: str = "strict"
    classes: Sequence[TrafficClass] = ()
    trace: BandwidthTrace | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", tuple(self.classes))
        if self.service not in SERVICES:
            raise UsageError(f"no service is called '{self.service}': give one of {', '.join(SERVICES)}")
        if self.rate_bps is not None:
            check_rate(self.rate_bps, "a link")
            if self.trace:
                raise UsageError("a link has a rate or a trace: leave out one")
        names = [one.name for one in self.classes]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"{names.count(name)} classes are called '{name}': give each a name of its own")
        rest = [one.name for one in self.classes if one.match is None]
        if len(rest) > 1:
            raise UsageError(f"classes '{rest[0]}' and '{rest[1]}' match nothing: give 'match' to all but one")
        if len(names) - len(rest) > CLASSES - 1:
            raise UsageError(
                f"{len(names) - len(rest)} classes that match are out of range: give {CLASSES - 1} at most"
            )

    @property
    def numbered(self) -> dict[int, TrafficClass]:
        """Its classes by the number that the probe has for them; the last is that of frames that no other matches."""
        found = dict(enumerate(one for one in self.classes if one.match is not None))
        rest = [one for one in self.classes if one.match is None]
        return found | {UNMATCHED_CLASS: rest[0] if rest else TrafficClass()}

    @property
    def waits(self) -> bool:
        """Whether frames may have to wait for the link."""
        return self.rate_bps is not None or self.trace is not None


@dataclass(frozen=True)
class Change:
    """What holds from a time on; frames that are in the network keep their place.

    Parameters
    ----------
    at_ns : number
        Since the start.
    there, back : Direction or None
        The whole direction as it is then; None: as before.
    """

    at_ns: Number
    there: Direction | None = None
    back: Direction | None = None

    def __post_init__(self) -> None:
        if exact(self.at_ns) <= 0:
            raise UsageError(f"a change at {self.at_ns} ns is out of range: give a time after the start")


@dataclass(frozen=True)
class Network:
    """A network between port 0 and port 1.

    Parameters
    ----------
    there, back : Direction
        From port 0 to port 1, and back.
    changes : sequence of Change
        By their times.
    seed : int
        Of all draws: the same network with the same seed gives the same frames the same fates.
    name, about : str
        For people.
    """

    there: Direction = field(default_factory=Direction)
    back: Direction = field(default_factory=Direction)
    changes: Sequence[Change] = ()
    seed: int = 1
    name: str = "network"
    about: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "changes", tuple(self.changes))
        check_seed(self.seed)
        if len(self.changes) > CHANGES_MAX:
            raise UsageError(f"{len(self.changes)} changes are out of range: give {CHANGES_MAX} at most")
        times = [exact(one.at_ns) for one in self.changes]
        if any(low >= high for low, high in pairwise(times)):
            raise UsageError("changes follow each other in time: sort them, and put what changes at one time together")
        for way in DIRECTIONS:
            for one in self.states(way)[1:]:
                _check_change(self.states(way)[0], one, way)
            _check_reorder(self.states(way), way)

    def states(self, way: str) -> list[Direction]:
        """Return a direction at the start and from each change on."""
        found: list[Direction] = [getattr(self, way)]
        for change in self.changes:
            found.append(getattr(change, way) or found[-1])
        return found

    def at(self, state: int) -> "Network":
        """Return the network as it is from a change on, 0 being the start, without its changes."""
        return replace(self, there=self.states("there")[state], back=self.states("back")[state], changes=())


# # #


def check_rate(rate_bps: Number, what: str) -> None:
    """Raise UsageError unless a rate is above 0 and not above the line's."""
    if not 0 < exact(rate_bps) <= LINE_RATE_BPS:
        raise UsageError(
            f"{what} of {rate_bps} b/s is out of range: give more than 0, up to {LINE_RATE_BPS // 10**9} Gb/s"
        )


def check_seed(seed: int) -> None:
    """Raise UsageError unless a seed is one."""
    if not 0 <= seed <= SEED_MAX:
        raise UsageError(f"a seed of {seed} is out of range: give 0 to {SEED_MAX}")


def _check_change(first: Direction, later: Direction, way: str) -> None:
    """Raise UsageError where a change names what the probe can't change while it runs."""
    named = [[(one.name, one.match) for one in direction.numbered.values()] for direction in (first, later)]
    if named[0] != named[1]:
        raise UsageError(
            f"a change of '{way}' has other classes: keep their names, matches and order, and change what they do"
        )
    if first.trace != later.trace:
        raise UsageError(f"a change of '{way}' has another bandwidth trace: a trace stays from the start to the end")
    seeds = [[one.seed for one in direction.numbered.values()] for direction in (first, later)]
    if seeds[0] != seeds[1]:
        raise UsageError(
            f"a change of '{way}' has other seeds: draws go on from where they are, leave the seeds as they are"
        )


def _check_reorder(states: Sequence[Direction], way: str) -> None:
    """Raise UsageError where several classes hold frames back: the octets of those lie in one ring, as they came."""
    classes = [one for state in states for one in state.numbered.values()]
    names = list(dict.fromkeys(one.name for one in classes if one.reorder and exact(one.reorder.share)))
    if len(names) > 1:
        raise UsageError(
            f"classes '{names[0]}' and '{names[1]}' of '{way}' have 'reorder', and one class of a direction can hold frames "
            "back, always the same: leave it out of all others, in all changes too"
        )
