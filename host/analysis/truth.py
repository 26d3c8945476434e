# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads the simulation's truth, when each frame was on the wire, and compares a measurement with it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import NO_SEQUENCE
from liteprobe.host.analysis import capacity
from liteprobe.host.analysis.rows import Deviation, PinFigures, WireFigures
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.base.line import GIGABIT, Line
from liteprobe.host.base.validate import validated

#: A row of the truth file; see docs/design/interfaces.md, "The simulated probe".
_OCTETS = [(name, "u1") for name in ("port", "direction", "fate", "flags")]
_WORDS = [("sfd_tick", "<u8"), ("frame", "<u4"), ("length", "<u4")]
TRUTH_DTYPE = np.dtype([*_WORDS, *_OCTETS, ("sequence", "<u4"), ("origin_tick", "<u8")])
OUT, IN = 0, 1
DELIVERED, DUPLICATE = 0, 3


@validated
def read(path: Path) -> NDArray[np.void]:
    """Return the rows of a truth file, shape (rows,), of ``TRUTH_DTYPE``; a row still being written is left out."""
    try:
        octets = path.read_bytes()
    except OSError as error:
        raise ProbeError(f"the truth file {path} can't be read ({error.strerror}): run the simulation again") from None
    whole = len(octets) // TRUTH_DTYPE.itemsize
    return np.frombuffer(octets, TRUTH_DTYPE, count=whole)


@dataclass(frozen=True)
class Truth:
    """Tells what happened to the probe frames of one program."""

    sequence: NDArray[np.int64]  # Shape (arrivals,): sequence numbers that came in whole, in order of arrival.
    #: ``departure_tick``, ``arrival_tick``: shape (arrivals,): SFD at the pins, out of and into the probe (ticks since
    #: reset).
    departure_tick: NDArray[np.int64]
    arrival_tick: NDArray[np.int64]
    sent: NDArray[np.int64]  # Shape (frames,): SFD of every frame that left (ticks), in order.
    line: Line = GIGABIT  # A tick is an octet of it.

    @property
    def owd_ns(self) -> NDArray[np.int64]:
        """True one-way delay of each arrival (ns), to a whole one."""
        return self.ns_of(self.arrival_tick - self.departure_tick)

    def ns_of(self, ticks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return times (ns), whole ones, of ticks."""
        return ticks * self.line.octet_ns.numerator // self.line.octet_ns.denominator


def programs(
    rows: NDArray[np.void], transmit: int, receive: int, totals: list[int], line: Line = GIGABIT
) -> list[Truth]:
    """Split the truth of one run into its programs, in the order in which they were sent.

    Raises ProbeError if the file holds another number of probe frames than the programs sent.

    Parameters
    ----------
    rows : array of ``TRUTH_DTYPE``
        The whole file.
    transmit, receive : int
        Ports of the probe.
    totals : list of int
        Frames that each program sent.
    line : Line
        Of the probe.
    """
    probe = rows[rows["sequence"] != NO_SEQUENCE]
    out = probe[(probe["direction"] == OUT) & (probe["port"] == transmit)]
    out = out[np.argsort(out["sfd_tick"], kind="stable")]
    if len(out) != sum(totals):
        raise ProbeError(
            f"the truth file holds {len(out)} frames, but {sum(totals)} were sent: "
            "some were on their way still; wait longer for them (--waiting-time)"
        )
    came = (probe["direction"] == IN) & (probe["port"] == receive) & (probe["flags"] & 1 == 0)
    came &= np.isin(probe["fate"], [DELIVERED, DUPLICATE])
    into = probe[came]
    into = into[np.argsort(into["sfd_tick"], kind="stable")]
    ends = np.cumsum(totals)
    found = []
    for start, end in zip(ends - totals, ends, strict=True):
        sent = out["sfd_tick"][start:end]
        is_ours = np.isin(into["origin_tick"], sent)
        found.append(
            Truth(
                sequence=into["sequence"][is_ours].astype(np.int64),
                departure_tick=into["origin_tick"][is_ours].astype(np.int64),
                arrival_tick=into["sfd_tick"][is_ours].astype(np.int64),
                sent=sent.astype(np.int64),
                line=line,
            )
        )
    return found


def deviations_ns(sequences: NDArray[np.integer], owd_ns: NDArray[np.int64], truth: Truth) -> NDArray[np.int64]:
    """Return measured less true delay of each packet (ns), shape (packets,).

    Raises ProbeError if a packet was measured that never came in.
    """
    first = np.unique(truth.sequence, return_index=True)[1]
    known, true_ns = truth.sequence[first], truth.owd_ns[first]
    at = np.searchsorted(known, sequences)
    if len(sequences) and (len(known) == 0 or (known[np.minimum(at, len(known) - 1)] != sequences).any()):
        raise ProbeError("a packet was measured that the truth file doesn't know: run again")
    return owd_ns - true_ns[at]


def wire_figures(truth: Truth) -> WireFigures:
    """Return what the wire did to the packets of a program: ``owd_ns`` (mean), ``received`` and ``lost``."""
    first = np.unique(truth.sequence, return_index=True)[1]
    return {
        "owd_ns": float(truth.owd_ns[first].mean()) if len(first) else None,
        "received": len(first),
        "lost": len(truth.sent) - len(first),
    }


def pin_figures(truth: Truth, count: int, length: int, deviation_ns: NDArray[np.int64]) -> PinFigures:
    """Return a check of the stamps: the same formula over the times at the pins, and how far delays are from there.

    Parameters
    ----------
    count, length : int
        Frames in a train; their length (octets without FCS).
    deviation_ns : array, shape (packets,)
        Measured less true delay of each; empty where not every packet has its record.

    Returns
    -------
    PinFigures
        ``dispersion_rate_bps`` (mean over trains) and ``deviation_ns`` (mean, min, max).
    """
    first = np.unique(truth.sequence, return_index=True)[1]
    number = truth.sequence[first] // count
    arrivals = truth.ns_of(truth.arrival_tick[first])
    rates = [
        capacity.dispersion_rate(arrivals[number == train].astype(np.uint64), length) for train in np.unique(number)
    ]
    known = [rate for rate in rates if np.isfinite(rate)]
    return {"dispersion_rate_bps": float(np.mean(known)) if known else None, "deviation_ns": _spread(deviation_ns)}


def _spread(values: NDArray[np.int64]) -> Deviation:
    if not len(values):
        return {"mean": None, "min": None, "max": None}
    return {"mean": float(values.mean()), "min": int(values.min()), "max": int(values.max())}
