# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Finds out which captured frame is which frame of a trace, by their octets, so that frames without a stamp have a delay.

The rule. A frame is known by its length on the wire and by its first octets, as many as the capture keeps. Of a frame that the
trace has once, the first copy that came is it, wherever it came. Frames that the trace has several times are told apart by their
order, and only where nothing speaks against it: each frame of the trace came exactly once, in order, and none was dropped on
the way into the capture. Else none of them has a delay. Nothing is guessed: what the device under test has changed, added or
doubled has no delay either.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import MAX_LENGTH, OVERHEAD, TICK_NS
from liteprobe.host.capture.decode.batch import Batch
from liteprobe.host.packets.frames import MASKS, WORD_OCTETS, Index, move, starts
from liteprobe.host.run.streamed.figures import Delays, ScheduledDelays
from liteprobe.host.run.streamed.replay_figures import PortReplay
from liteprobe.host.run.streamed.replay_schedule import ReplaySchedule
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.trace.records import NOWHERE, stamp_offsets, starts_of
from liteprobe.host.traffic.trace.trace import Trace

MATCHED_MOST = 4_000_000  # Frames: 64 MB of a trace, and as much of a capture.
Keys = NDArray[np.uint64]
NO_TIME = np.iinfo(np.int64).min  # Of a frame that started nobody knows when.

_CHANCE = np.random.default_rng(0x4C50)
_ADDED, _FIRST, _SECOND = (
    _CHANCE.integers(0, 1 << 64, MAX_LENGTH // WORD_OCTETS + 1, np.uint64) | np.uint64(1) for _ in range(3)
)
_OF_LENGTH = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


def frame_keys(octets: NDArray[np.uint8], at: Index, kept: Index, length: Index) -> Keys:
    """Return a hash of each frame: of 64 bits, the same whether zeros at the end are there or not.

    Parameters
    ----------
    octets : array of u1
        Where frames lie, and a word behind the last one.
    at, kept : array, shape (frames,)
        First octet of each, and how many are to be looked at.
    length : array, shape (frames,)
        Octets of each on the wire.
    """
    counts = (kept + WORD_OCTETS - 1) // WORD_OCTETS
    first = starts(counts)
    words = np.zeros(int(counts.sum()) + 1, np.uint32)
    move(octets, at, words, first, counts)
    is_cut = kept % WORD_OCTETS != 0
    words[(first + counts - 1)[is_cut]] &= MASKS[(kept % WORD_OCTETS)[is_cut]]
    place = np.arange(len(words) - 1) - np.repeat(first, counts)
    sums = np.zeros(len(words), np.uint64)
    np.cumsum(_mixed(words[:-1], place) - _mixed(np.uint32(0), place), out=sums[1:])
    return np.asarray(sums[first + counts] - sums[first] + length.astype(np.uint64) * _OF_LENGTH)


@dataclass(frozen=True)
class Sent:
    """The frames of a trace that have no stamp: key of each, and the tick of its start, from the first frame of all on."""

    keys: Keys
    ticks: Index
    numbers: Index


def sent_frames(trace: Trace, increment: int, prefix: int, most: int) -> Sent:
    """Return the frames of a trace that have no stamp, of its first ``most``; ``prefix``: octets that a capture keeps."""
    keys, ticks, numbers, free, seen = [], [], [], 0, 0
    for frames, due in trace.due(increment):
        start, free = starts_of(due, frames.length + OVERHEAD, free)
        offsets = stamp_offsets(trace.stamp, frames.octets, frames.at, frames.kept) if trace.stamp else None
        number = seen + np.arange(len(frames))
        own = number < most if offsets is None else (number < most) & (offsets == NOWHERE)
        some = frames.select(own)
        keys.append(frame_keys(some.octets, some.at, np.minimum(some.kept, prefix), some.length))
        ticks.append(start[own])
        numbers.append(number[own])
        seen += len(frames)
        if seen >= most:
            break
    return Sent(np.concatenate(keys), np.concatenate(ticks), np.concatenate(numbers))


class ArrivalSink:
    """Takes records of a capture, and keeps key and time of the frames that have no stamp.

    Parameters
    ----------
    stamps : mapping of int to Stamp or None
        By the port that frames come to.
    prefix : int
        Octets that the capture keeps of a frame.
    """

    def __init__(self, stamps: Mapping[int, Stamp | None], prefix: int) -> None:
        self._stamps, self.prefix = dict(stamps), prefix
        self._keys: dict[int, list[Keys]] = {port: [] for port in stamps}
        self._times: dict[int, list[Index]] = {port: [] for port in stamps}
        self._came = dict.fromkeys(stamps, 0)
        self._has_gap = dict.fromkeys(stamps, False)

    def write(self, batch: Batch) -> None:
        """Take records."""
        octets, is_gap, ports = batch.words.view(np.uint8), batch.is_gap, batch.port
        length = batch.heads["length"].astype(np.int64)
        for port, stamp in self._stamps.items():
            own = ports == port
            self._has_gap[port] |= bool((own & is_gap).any())
            own &= ~is_gap
            at, kept = WORD_OCTETS * batch.octets_at[own], batch.snap_length[own]
            self._came[port] += len(at)
            if self._came[port] > MATCHED_MOST:
                continue
            looked = np.minimum(length[own], self.prefix)
            is_free = kept >= looked
            if stamp is not None:
                is_free &= stamp_offsets(stamp, octets, at, kept) == NOWHERE
            self._keys[port].append(frame_keys(octets, at[is_free], looked[is_free], length[own][is_free]))
            self._times[port].append(batch.stamp[own][is_free].astype(np.int64))

    def arrivals(self, port: int) -> tuple[Keys, Index, bool] | None:
        """Return keys and times (ns) of what came to a port, in the order of their times, and whether some is missing.

        None where more came than are kept.
        """
        if self._came[port] > MATCHED_MOST:
            return None
        keys = np.concatenate([np.empty(0, np.uint64), *self._keys[port]])
        times = np.concatenate([np.empty(0, np.int64), *self._times[port]])
        order = np.argsort(times, kind="stable")
        return keys[order], times[order], self._has_gap[port]


def scheduled_delays(one: PortReplay, schedule: ReplaySchedule, arrivals: ArrivalSink) -> ScheduledDelays | str | None:
    """Return the delays of what a port sent without a stamp; why there are none; None: all of it has one.

    Frames from the first underrun on have none: when they started, this host doesn't know.
    """
    if one.summary is None or one.asked is None:
        return "the trace was not looked through before, or has no end"
    if one.summary.stamped == one.frames:
        return None
    came = arrivals.arrivals(one.receive)
    if came is None or one.summary.frames > MATCHED_MOST:
        return f"more than {MATCHED_MOST:,} frames"
    is_late = one.late > (one.expected_late or 0) and not one.underruns
    if trouble := schedule.trouble or ("frames started later than they should have" if is_late else ""):
        return trouble
    if one.fetched_late or one.counts.errors or not one.frames:
        return "the probe did not send the frames as they are"
    sent = sent_frames(one.trace, one.increment, arrivals.prefix, one.frames)
    started = schedule.starts_ns(sent.ticks)
    if one.first_underrun is not None:
        started[sent.numbers >= one.first_underrun] = NO_TIME
    return matched(sent.keys, started, *came)


def matched(sent: Keys, started_ns: Index, came: Keys, came_ns: Index, has_gap: bool) -> ScheduledDelays:
    """Return the delays of the frames that were found, by the rule of this module.

    Parameters
    ----------
    sent : array, shape (frames,)
        Key of each frame of the trace, in order.
    started_ns : array, shape (frames,)
        When each started; NO_TIME: nobody knows.
    came, came_ns : array, shape (captured,)
        Key and time of each captured frame, in the order of the times.
    has_gap : bool
        Whether frames are missing in the capture itself.
    """
    kinds, kind, copies = np.unique(sent, return_inverse=True, return_counts=True)
    place = np.minimum(np.searchsorted(kinds, came), max(len(kinds) - 1, 0))
    is_known = kinds[place] == came if len(kinds) else np.zeros(len(came), np.bool_)
    known = place[is_known]
    arrived = np.bincount(known, minlength=len(kinds))
    number = _numbers(kind, copies, known)
    is_first = number >= 0
    is_whole = bool((arrived == copies).all()) and not has_gap and bool((np.diff(number[is_first]) > 0).all())
    is_told = is_first & ((copies[known] == 1) | is_whole)
    times = came_ns[is_known][is_told]
    started = started_ns[number[is_told]]
    is_right = (started != NO_TIME) & (times >= started - TICK_NS)
    values = (times - started)[is_right]
    repeated = int(np.maximum(arrived - copies, 0).sum())
    strange = int(np.count_nonzero(~is_known))
    delays = Delays(len(values), len(came) - len(values), values)
    return ScheduledDelays(
        delays,
        missing=int(np.maximum(copies - arrived, 0).sum()),
        repeated=repeated,
        strange=strange,
        ambiguous=len(came) - strange - repeated - len(values),
    )


# # #


def _mixed(words: NDArray[np.uint32] | np.uint32, place: Index) -> Keys:
    found = (words + _ADDED[place]) * _FIRST[place]
    found ^= found >> _HALF
    return np.asarray(found * _SECOND[place])


def _numbers(kind: Index, copies: Index, known: Index) -> Index:
    """Return the number of the frame that each arrival is: the n-th copy of its kind; -1 where the trace has fewer."""
    by_kind = np.argsort(kind, kind="stable")
    first = np.cumsum(copies) - copies
    order = np.argsort(known, kind="stable")
    arrived = np.bincount(known, minlength=len(copies))
    which = np.empty(len(known), np.int64)
    which[order] = np.arange(len(known)) - np.repeat(np.cumsum(arrived) - arrived, arrived)
    is_one = which < copies[known]
    found = np.full(len(known), -1, np.int64)
    found[is_one] = by_kind[first[known[is_one]] + which[is_one]]
    return found
