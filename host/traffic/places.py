# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What a receiving port must know of the streams that it measures: where their stamps stand, and which fill is PRBS."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from liteprobe.cores.formats import STREAM_SLOTS_MAX, StampPlace
from liteprobe.host.errors import UsageError
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.stream import Stream

STREAM_IDS: Final = 1 << 16


@dataclass(frozen=True)
class ReceiverSettings:
    """What the meters of a receiving port are set to, as `Monitor.watch` takes it.

    Attributes
    ----------
    prbs : frozenset of int
        Slots of streams whose fill is checked.
    places : dict of int to StampPlace
        By slot: where its frames have their stamp; others have it in the probe header.
    """

    prbs: frozenset[int]
    places: dict[int, StampPlace]


def receiver_settings(streams: Iterable[Stream], stream_base: int, slots: int = STREAM_SLOTS_MAX) -> ReceiverSettings:
    """Return what a port must know that receives ``streams``; id ``stream_base`` is in slot 1, the next one in slot 2.

    Raises
    ------
    UsageError
        When a stream has no slot, two of one id differ, or streams without a probe header have stamps in different places:
        these are not told from one another.
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
