# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Finds the packets of a program that count among the records of all that came."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import DAMAGE, RecordFlag
from liteprobe.host.analysis import delay, sequence
from liteprobe.host.traffic.train import TrainRecords

#: Frames that the probe measures nothing of, either: damaged, of a length that does not match their headers, of others.
REFUSED = np.uint16(DAMAGE | RecordFlag.LENGTH_ERROR | RecordFlag.FOREIGN_STREAM)


@dataclass(frozen=True)
class ArrivedPackets:
    """Holds the packets of a program that arrived whole and in time, each once, in order of arrival."""

    #: Shape (packets,): number of each over the whole program; its train is ``sequence // count``.
    sequence: NDArray[np.int64]
    #: ``tx_stamp``, ``rx_stamp``: shape (packets,): departure and arrival (SFD, ns).
    tx_stamp: NDArray[np.uint64]
    rx_stamp: NDArray[np.uint64]
    owd_ns: NDArray[np.int64]  # Shape (packets,): one-way delay (ns).
    duplicated: int  # Further arrivals of packets that had come already.
    expired: int  # Packets that came after the waiting time: lost.


def packets(result: TrainRecords, waiting_time_ns: int | None = None) -> ArrivedPackets:
    """Return the packets of ``result`` that count: whole, of this program, each once, within the waiting time T_max.

    A packet that arrived twice counts once, at its first arrival; one beyond ``waiting_time_ns`` is lost (RFC 7680).
    """
    records = result.records
    records = records[(records["flags"] & REFUSED == 0) & (records["sequence"] < result.program.total)]
    is_first = sequence.first_arrivals(records["sequence"])
    firsts = records[is_first]
    owd_ns = delay.owd(firsts["tx_stamp"], firsts["rx_stamp"])
    is_in_time = sequence.in_time(owd_ns, waiting_time_ns)
    firsts = firsts[is_in_time]
    return ArrivedPackets(
        sequence=firsts["sequence"].astype(np.int64),
        tx_stamp=firsts["tx_stamp"],
        rx_stamp=firsts["rx_stamp"],
        owd_ns=owd_ns[is_in_time],
        duplicated=int((~is_first).sum()),
        expired=int((~is_in_time).sum()),
    )


def held(result: TrainRecords) -> int:
    """Return how many records there are of frames that the probe measured."""
    return int((result.records["flags"] & REFUSED == 0).sum())


def has_all_records(result: TrainRecords) -> bool:
    """Tell whether every frame that the probe measured is among the records, so that figures may come from them."""
    return held(result) == result.counters.get("frames", held(result))


def trains(result: TrainRecords, arrived: ArrivedPackets) -> list[NDArray[np.intp]]:
    """Return the rows of ``arrived`` that belong to each train of the program, in order of arrival."""
    number = arrived.sequence // result.program.count
    order = np.argsort(number, kind="stable")
    bounds = np.searchsorted(number[order], np.arange(1, result.program.repeats))
    return np.split(order, bounds)
