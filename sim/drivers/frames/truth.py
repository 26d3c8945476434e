# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Reads what the simulated probe wrote about its pins: the truth file and the pcap files."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.analysis.truth import TRUTH_DTYPE

TICK_NS = 8
OUT, IN = 0, 1
DELIVERED, LOST, QUEUE_DROP, DUPLICATE, CORRUPTED, CUT, IN_FLIGHT, REFUSED, TAKEN = range(9)
BAD_FCS, MISSING_SFD, FOREIGN = 1, 2, 4
NO_SEQUENCE = 0xFFFFFFFF

PCAP_NS_MAGIC = 0xA1B23C4D


def read_truth(path: Path) -> NDArray[np.void]:
    """Return the rows of a truth file in the order of their writing, dtype `TRUTH_DTYPE`, shape ``(frames,)``.

    Raises ValueError for a file that ends inside a row: ask the simulation for ``sync`` first.
    """
    if path.stat().st_size % TRUTH_DTYPE.itemsize:
        raise ValueError(f"{path} ends inside a row: read it after sync or quit")
    return np.fromfile(path, dtype=TRUTH_DTYPE)


def frames_out(rows: NDArray[np.void], port: int) -> NDArray[np.void]:
    """Return the test frames that left the probe at ``port``, in order; management is left out."""
    kept = rows[(rows["port"] == port) & (rows["direction"] == OUT) & (rows["flags"] & FOREIGN == 0)]
    ordered: NDArray[np.void] = kept[np.argsort(kept["frame"], kind="stable")]
    return ordered


def frames_in(rows: NDArray[np.void], port: int) -> NDArray[np.void]:
    """Return the frames from the wire that stood on the receive pins of ``port``, in order."""
    kept = rows[(rows["port"] == port) & (rows["direction"] == IN) & (rows["flags"] & FOREIGN == 0)]
    kept = kept[(kept["fate"] != CUT) & (kept["fate"] != IN_FLIGHT)]
    ordered: NDArray[np.void] = kept[np.argsort(kept["frame"], kind="stable")]
    return ordered


def delays_ns(arrivals: NDArray[np.void]) -> NDArray[np.int64]:
    """Return the one-way delay, SFD to SFD at the pins, of each row of `frames_in` (ns), shape ``(frames,)``."""
    return TICK_NS * (arrivals["sfd_tick"].astype(np.int64) - arrivals["origin_tick"].astype(np.int64))


@dataclass(frozen=True)
class Balance:
    """Balances the frames of one direction; ``sent`` is the sum of the outcomes of all that left."""

    sent: int
    delivered: int  # Corrupted ones included: they came, too.
    lost: int
    dropped: int
    cut: int
    in_flight: int
    arrived: int  # Rows at the other end, copies left out.
    copies: int
    refused: int = 0  # By a policer, or a router that has no way for it.
    taken: int = 0  # By a router: it was for itself.

    @property
    def holds(self) -> bool:
        """Whether each frame that left has come or has a reason."""
        explained = self.delivered + self.lost + self.dropped + self.cut + self.in_flight + self.refused + self.taken
        return self.sent == explained and self.arrived == self.delivered


def balance(rows: NDArray[np.void], from_port: int, to_port: int) -> Balance:
    """Return the balance of the direction ``from_port`` to ``to_port``."""
    out = frames_out(rows, from_port)
    left = out["fate"]
    came = rows[(rows["port"] == to_port) & (rows["direction"] == IN) & (rows["flags"] & FOREIGN == 0)]
    unseen = (came["fate"] == CUT) | (came["fate"] == IN_FLIGHT)
    copies = int(np.sum(came["fate"] == DUPLICATE))
    # A frame that was cut as it left has a row at the other end, too, where its first octets came.
    twice = int(np.sum(np.isin(came["origin_tick"][came["fate"] == CUT], out["sfd_tick"][left == CUT])))
    return Balance(
        sent=len(left),
        delivered=int(np.sum((left == DELIVERED) | (left == CORRUPTED))) - int(np.sum(unseen)) + twice,
        lost=int(np.sum(left == LOST)),
        dropped=int(np.sum(left == QUEUE_DROP)),
        cut=int(np.sum(left == CUT)) + int(np.sum(came["fate"] == CUT)) - twice,
        in_flight=int(np.sum(left == IN_FLIGHT)) + int(np.sum(came["fate"] == IN_FLIGHT)),
        arrived=len(came) - int(np.sum(unseen)) - copies,
        copies=copies,
        refused=int(np.sum(left == REFUSED)),
        taken=int(np.sum(left == TAKEN)),
    )


def read_pcap(path: Path) -> tuple[NDArray[np.int64], list[bytes]]:
    """Return the stamps (ns, shape ``(frames,)``) and the frames without FCS of a pcap file with nanoseconds."""
    data = path.read_bytes()
    header = np.frombuffer(data, "<u4", 6)
    if header[0] != PCAP_NS_MAGIC or header[5] != 1:
        raise ValueError(f"{path} is not an Ethernet pcap with nanoseconds")
    stamps, frames, at = [], [], 24
    while at < len(data):
        seconds, nanoseconds, kept, _ = np.frombuffer(data, "<u4", 4, at)
        stamps.append(int(seconds) * 10**9 + int(nanoseconds))
        frames.append(data[at + 16 : at + 16 + int(kept)])
        at += 16 + int(kept)
    return np.array(stamps, np.int64), frames
