# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Computes one-way delay and its variation, packet by packet."""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.base.errors import DataError
from liteprobe.host.base.validate import Percent, validated

JITTER_BLOCK = 256


@validated
def owd(tx_stamps_ns: NDArray[np.uint64], rx_stamps_ns: NDArray[np.uint64]) -> NDArray[np.int64]:
    """One-way delay: arrival minus departure of each packet, SFD to SFD.

    Source: RFC 7679, section 3.

    Returns
    -------
    array, shape (packets,)
        Delays (ns); negative when the clocks disagree. Stamps wrap at 2^64 ns.
    """
    return (rx_stamps_ns.astype(np.uint64) - tx_stamps_ns.astype(np.uint64)).astype(np.int64)


@validated
def ipdv(sequences: NDArray[np.integer], owd_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """IP packet delay variation: the delay of each packet less that of the packet sent before it.

    Source: RFC 3393, section 2; RFC 5481, section 4.1.

    Parameters
    ----------
    sequences : array, shape (packets,)
        Sequence numbers, each once, in any order.
    owd_ns : array, shape (packets,)
        Their one-way delays (ns).

    Returns
    -------
    array, shape (pairs,)
        IPDV (ns) in order of sequence, for each packet whose predecessor arrived, too.
    """
    order = np.argsort(sequences, kind="stable")
    is_pair = np.diff(sequences[order].astype(np.int64)) == 1
    pairs: NDArray[np.int64] = np.diff(owd_ns[order])[is_pair]
    return pairs


@validated
def pdv(owd_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Packet delay variation: the delay of each packet over the least of the stream.

    Source: RFC 5481, section 4.2.

    Parameters
    ----------
    owd_ns : array, shape (packets,)
        One-way delays (ns), lost packets left out; negative when the clocks disagree.

    Returns
    -------
    array, shape (packets,)
        PDV (ns), 0 for the fastest packet.

    Raises
    ------
    DataError
        If the stream is empty: it has no least delay.
    """
    if not len(owd_ns):
        raise DataError("an empty stream has no least delay")
    over_least: NDArray[np.int64] = owd_ns - owd_ns.min()
    return over_least


@validated
def interarrival_jitter(owd_ns: NDArray[np.int64]) -> NDArray[np.float64]:
    """Interarrival jitter of RTP: the smoothed size of the change of delay from arrival to arrival.

    Source: RFC 3550, section 6.4.1.

    Parameters
    ----------
    owd_ns : array, shape (packets,)
        One-way delays (ns) in order of arrival.

    Returns
    -------
    array, shape (packets,)
        J (ns) after each packet, from J = 0: J += (|D| - J) / 16.
    """
    if not len(owd_ns):
        return np.zeros(0)
    steps = np.abs(np.diff(owd_ns, prepend=owd_ns[:1])).astype(np.float64)
    # In blocks that are short enough for the powers of 16/15: J(n) = (15/16)^n * (J(0) + sum of |D(k)| (16/15)^k / 16).
    growth = (16 / 15) ** np.arange(1, JITTER_BLOCK + 1)
    jitter, last = np.empty(len(steps)), 0.0
    for first in range(0, len(steps), JITTER_BLOCK):
        block = steps[first : first + JITTER_BLOCK]
        power = growth[: len(block)]
        jitter[first : first + len(block)] = (last + np.cumsum(block * power) / 16) / power
        last = jitter[first + len(block) - 1]
    return jitter


@validated
def percentile(values: NDArray[np.number], percent: Percent) -> float:
    """Return the least observed value that at least ``percent`` of the sample do not exceed.

    Source: RFC 2330, section 11.3 (empirical distribution function).
    """
    if not len(values):
        raise DataError("an empty sample has no percentile: give one value or more")
    # In fractions: 99.9 % of 1000 is 999, where doubles make it a little more.
    rank = max(1, math.ceil(Fraction(str(percent)) * len(values) / 100))
    return float(np.partition(values, rank - 1)[rank - 1])
