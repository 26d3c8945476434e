# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Adds up the streams of a port on its line, checks whether one port can send them all, and sets up the port that receives."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from liteprobe.cores.formats import LIST_WORDS, OVERHEAD, STREAM_SLOTS_MAX, STREAMS, StampPlace
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.units import exact
from liteprobe.host.base.validate import validated
from liteprobe.host.traffic.intervals import head_ticks, is_back_to_back
from liteprobe.host.traffic.lengths import Lengths
from liteprobe.host.traffic.modifiers import Values, value_of
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.stream import Stream


def share_of(stream: Stream, increment: Fraction | int | None = None) -> Fraction:
    """Return the share of the line that a stream takes while it lasts (above 1: more than the line).

    ``increment``: nanoseconds an octet of the line by the probe's clock, in 8.40 fixed point; None: by a right one.
    """
    nominal = stream.line.nominal
    if is_back_to_back(stream.interval, stream.length, nominal):
        return Fraction(1)
    ticks = head_ticks(stream.interval, stream.length, nominal if increment is None else increment)
    return stream.interval.frames * (stream.length.mean + OVERHEAD) / ticks


def end_ticks(stream: Stream) -> Fraction | None:
    """Return when a stream ends (ticks from the start of the program, the mean where it is random); None: never."""
    if stream.count is None:
        return None
    slots = stream.count * (stream.length.mean + OVERHEAD)
    return exact(stream.start_ns) / stream.line.octet_ns + slots / share_of(stream)


def at_once(streams: Sequence[Stream]) -> list[list[Stream]]:
    """Return the streams that are on the line together, each time that one begins."""
    ends = [end_ticks(stream) for stream in streams]
    together = []
    starts = [exact(stream.start_ns) / stream.line.octet_ns for stream in streams]
    for start in sorted(set(starts)):
        begun = [one <= start for one in starts]
        ended = [end is not None and end <= start for end in ends]
        together.append(
            [one for one, is_on, is_over in zip(streams, begun, ended, strict=True) if is_on and not is_over]
        )
    return together


def percent(share: Fraction) -> str:
    """Return a share as per cent, to four digits after the point."""
    return f"{float(share * 100):.4f}".rstrip("0").rstrip(".") + " %"


@validated
def check_port(streams: Sequence[Stream]) -> dict[str, Fraction]:
    """Check whether one port can send these streams, and return the share of the line of each by name.

    Raises UsageError when they are too many, share a name or an id, are of several ports, have longer lists than the
    probe holds, or add up to more than the line; the message has the share of each.
    """
    if not 1 <= len(streams) <= STREAMS:
        raise UsageError(f"{len(streams)} streams are out of range: give 1 to {STREAMS} a port")
    ports = sorted({stream.port for stream in streams})
    if len(ports) > 1:
        raise UsageError(
            f"streams of ports {', '.join(map(str, ports))} are not of one port: check each port by itself"
        )
    for what, keys in {
        "a name": [one.name for one in streams],
        "an id": [str(one.stream_id) for one in streams],
    }.items():
        for key in keys:
            if keys.count(key) > 1:
                raise UsageError(
                    f"{keys.count(key)} streams have {what} in common, '{key}': give each {what} of its own"
                )
    words = sum(len(entries) for entries in lists(streams))
    if words > LIST_WORDS:
        raise UsageError(
            f"tables and lists of port {ports[0]} have {words} entries: give {LIST_WORDS} at most; equal ones count once"
        )
    for together in at_once(streams):
        total = sum((share_of(stream) for stream in together), Fraction(0))
        if total > 1:
            each = ", ".join(f"{stream.name} {percent(share_of(stream))}" for stream in together)
            raise UsageError(
                f"the streams of port {ports[0]} add up to {percent(total)} of the line ({each}): lower the rates"
            )
    return {stream.name: share_of(stream) for stream in streams}


def slowdown(streams: Sequence[Stream], increment: Fraction | int) -> Fraction:
    """Return by what the intervals of ``streams`` are to be stretched, so that they fit on the line by this clock: 1 or more.

    What adds up to the whole line by the nominal clock is more than that where the probe's own is slower; shares of the line
    follow the line and are not stretched.
    """
    most = Fraction(1)
    for together in at_once(streams):
        by_line = [stream for stream in together if share_of(stream, increment) == share_of(stream)]
        by_clock = [stream for stream in together if stream not in by_line]
        clocked = sum((share_of(stream, increment) for stream in by_clock), Fraction(0))
        rest = 1 - sum((share_of(stream) for stream in by_line), Fraction(0))
        most = max(most, clocked / rest if rest > 0 else Fraction(1))
    return most


def lists(streams: Sequence[Stream]) -> list[tuple[int, ...]]:
    """Return the lists of streams as words of the list memory, each of several equal ones once."""
    found: dict[tuple[int, ...], None] = {}
    for stream in streams:
        if isinstance(stream.length, Lengths):
            found[stream.length.entries] = None
        for modifier, place in stream.fields():
            if isinstance(modifier, Values):
                found[list_words(stream, modifier, place.shift)] = None
    return list(found)


def list_words(stream: Stream, modifier: Values, shift: int) -> tuple[int, ...]:
    """Return the values of a modifier as words of the list memory, in their place in the window."""
    return tuple(value_of(value, modifier.field, stream.headers) << shift for value in modifier.values)


STREAM_IDS: Final = 1 << 16


def base_of(streams: Sequence[Stream], slots: int) -> int:
    """Return the id of slot 1; UsageError where a port can't measure all of these streams."""
    ids = [one.stream_id for one in streams if one.probe]
    if not ids:
        return 0
    if max(ids) - min(ids) > slots - 2:
        raise UsageError(
            f"stream ids {min(ids)} to {max(ids)} come to one port, which measures {slots - 1} in a row: "
            "give ids that are closer to one another"
        )
    return min(ids)


FREE_NS = 10_000  # Of free line for each frame: twice what an answer of management needs.


def is_line_full(streams: Sequence[Stream]) -> bool:
    """Return whether the streams of a port leave no space for answers of management between their frames."""
    frames_per_ns = sum(share_of(one) / (one.line.octet_ns * (one.length.mean + OVERHEAD)) for one in streams)
    return 1 - sum(share_of(one) for one in streams) < FREE_NS * frames_per_ns


def check_quiet(is_quiet: bool, streams: Sequence[Stream], seconds: float | None, is_timed: bool) -> None:
    """Raise UsageError where streams leave no space for answers on the line that the host shares, and don't end by themselves.

    ``is_timed``: the probe itself ends them when the seconds are over.
    """
    if is_quiet and not is_timed and (seconds is not None or any(one.count is None for one in streams)):
        raise UsageError(
            "these streams leave no room for answers on port 0, whose line the host shares, so they could not be stopped: "
            "give each a count, or all a time, or a lower rate"
        )


@dataclass(frozen=True)
class ReceiverSettings:
    """Settings of the meters of a receiving port, as `Monitor.watch` takes it."""

    prbs: frozenset[int]  # Slots of streams whose fill is checked.
    places: dict[int, StampPlace]  # By slot: where its frames have their stamp; others have it in the probe header.


def receiver_settings(streams: Iterable[Stream], stream_base: int, slots: int = STREAM_SLOTS_MAX) -> ReceiverSettings:
    """Return what a port must know that receives ``streams``; id ``stream_base`` is in slot 1, the next one in slot 2.

    Raises UsageError when a stream has no slot, two of one id differ, or streams without a probe header have stamps in
    different places: these look the same to it.
    """
    prbs = set()
    places: dict[int, StampPlace] = {}
    ids: dict[int, str] = {}
    for stream in streams:
        slot = (stream.stream_id - stream_base) % STREAM_IDS + 1 if stream.probe else 0
        if slot >= slots:
            raise UsageError(
                f"stream '{stream.name}' of id {stream.stream_id} is not among the {slots - 1} that are measured: "
                f"give an id from {stream_base} to {stream_base + slots - 2}"
            )
        if slot and ids.setdefault(slot, stream.name) != stream.name:
            raise UsageError(
                f"streams '{ids[slot]}' and '{stream.name}' of id {stream.stream_id} come to one port: give each an id of its own"
            )
        if slot and stream.has_checked_fill:
            prbs.add(slot)
        place = _place(stream)
        if place is not None and places.setdefault(slot, place) != place:
            raise UsageError(
                f"stream '{stream.name}' has no probe header, and its stamp another place than those of others without: "
                "give them the same place, or a probe header"
            )
    return ReceiverSettings(frozenset(prbs), places)


def _place(stream: Stream) -> StampPlace | None:
    """Return where a stream's stamp is; None where it is in the probe header, as by default, or there is none."""
    stamp = stream.used_stamp
    if stamp is None or stamp == Stamp("probe"):
        return None
    return StampPlace(stamp.offset(stream.headers), stamp.octets, stamp.tick, stamp.bits % 8 != 0)
