# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Computes what an Ethernet link can carry, from frame lengths in octets without FCS (60 to 9000)."""

import math
from typing import Annotated

from liteprobe.cores.formats import LINE_RATE_BPS, OVERHEAD
from liteprobe.host.base.validate import Between, Length, Rate, Share, validated

MAC_HEADER = 14
UDP_HEADERS = 42  # MAC 14, IPv4 20, UDP 8.


MEAN_MOST = 10**6  # Frames, from which on a train is as one without an end.


@validated
def slot_ns(length: Length, line_rate_bps: Rate = LINE_RATE_BPS) -> float:
    """Return the time (ns) from SFD to SFD of frames back to back."""
    return 8e9 * (length + OVERHEAD) / line_rate_bps


@validated
def frames_per_second(length: Length, line_rate_bps: Rate = LINE_RATE_BPS) -> float:
    """Return the greatest frame rate of the link (1/s)."""
    return line_rate_bps / (8 * (length + OVERHEAD))


@validated
def share(length: Length, octets: Annotated[int, Between(0)]) -> float:
    """Return which part of the link ``octets`` of each frame are, when frames go back to back (0 to 1).

    ``octets`` is ``length`` for the frame, length + 4 with its FCS, length - 14 for IP, length - 42 for UDP payload.
    """
    return octets / (length + OVERHEAD)


@validated
def utilisation(length: Length, interval_ns: Rate | None, line_rate_bps: Rate = LINE_RATE_BPS) -> float:
    """Return octets on the wire over octets that the link could carry (0 to 1).

    Parameters
    ----------
    length : int
        Frame length without FCS (octets).
    interval_ns : float or None
        SFD to SFD (ns); None: back to back.
    """
    return 1.0 if interval_ns is None else slot_ns(length, line_rate_bps) / interval_ns


@validated
def asymptotic_dispersion_rate(capacity_bps: Rate, load: Share, input_rate_bps: Rate) -> float:
    """Return the dispersion rate (b/s) of an endless train through one hop with other traffic: not its capacity.

    Source: Dovrolis, Ramanathan, Moore, INFOCOM 2001, section III.

    Parameters
    ----------
    capacity_bps : float
        Capacity of the hop (b/s).
    load : float
        Other traffic over the hop's capacity (0 to 1).
    input_rate_bps : float
        Rate at which the train comes in (b/s).
    """
    return capacity_bps / (1 + load * capacity_bps / input_rate_bps)


@validated
def expected_dispersion_rate(capacity_bps: Rate, load: Share, count: Annotated[int, Between(1)]) -> float:
    """Return the mean dispersion rate (b/s) of trains of ``count`` frames through one hop of the rate of the line.

    Between the first frame and the last, K frames of other traffic come, Poisson with mean ``load`` (count - 1), and
    each takes the time of one more frame: the mean of capacity / (1 + K / (count - 1)).

    Source: Poisson arrivals at a queue that does not run empty while a train comes in; docs/accuracy.md.

    Parameters
    ----------
    capacity_bps : float
        Capacity of the hop, at which the train comes in, too (b/s).
    load : float
        Other traffic, Poisson, of frames of the same length, over the hop's capacity (0 to 1).
    count : int
        Frames in a train, 2 or more.
    """
    mean = load * (count - 1)
    if not mean:
        return capacity_bps
    if mean > MEAN_MOST:
        return asymptotic_dispersion_rate(capacity_bps, load, capacity_bps)
    most = math.ceil(mean + 40 * math.sqrt(mean) + 40)
    chances = (math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(most))
    return capacity_bps * math.fsum(chance / (1 + k / (count - 1)) for k, chance in enumerate(chances))


@validated
def tick_error(length: Length, count: Annotated[int, Between(1)], octets: float = 1.0) -> float:
    """Return the relative error of a train's capacity when its dispersion is off by so many octet times (of 8 ns at 1 Gb/s)."""
    return octets / ((count - 1) * (length + OVERHEAD)) if count > 1 else float("inf")
