# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Records of a train's frames, from the words of a ring of records or from the octets that a capture kept."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import FAULTS, FILL_OFFSET, RECORD_DTYPE, RECORD_WORDS, SIGNATURE, RecordFlag, UnifiedFlag
from liteprobe.host.capture.decode.batch import Batch
from liteprobe.host.capture.decode.payload import payload_places
from liteprobe.host.device.link.base import Words
from liteprobe.host.packets.frames import take

PAYLOAD_DTYPE = np.dtype([("signature", ">u4"), ("stream_id", ">u2"), ("sequence", ">u4"), ("tx_stamp", ">u8")])
PROBE, GAP, FOREIGN = int(UnifiedFlag.PROBE), int(UnifiedFlag.GAP), int(RecordFlag.FOREIGN_STREAM)

Records = NDArray[np.void]


def concatenated(records: Sequence[Records]) -> Records:
    """Return records that were taken one after the other, in one array of ``RECORD_DTYPE``."""
    return np.concatenate(records) if records else np.empty(0, dtype=RECORD_DTYPE)


def decode_records(words: Words) -> Records:
    """Return the records that ``words`` of a ring hold, shape (records,), of ``RECORD_DTYPE``."""
    table = words.reshape(-1, RECORD_WORDS).astype(np.uint64)
    records = np.empty(len(table), dtype=RECORD_DTYPE)
    records["sequence"] = table[:, 0]
    records["tx_stamp"] = table[:, 1] | table[:, 2] << np.uint64(32)
    records["rx_stamp"] = table[:, 3] | table[:, 4] << np.uint64(32)
    records["length"] = table[:, 5] & np.uint64(0xFFFF)
    records["flags"] = table[:, 5] >> np.uint64(16)
    return records


def records_of(batch: Batch, stream_id: int) -> Records:
    """Return a record of each probe frame in a capture of their octets, in order; gaps and frames without a stamp have none.

    Flags of sequence (duplicate, reordered, beyond the window) are not set: a host that has all records needs none.
    """
    flags = batch.heads["flags"]
    frames = batch.select((flags & PROBE != 0) & (flags & GAP == 0) & (batch.stamp != 0))
    records = np.empty(len(frames), RECORD_DTYPE)
    records["rx_stamp"], records["length"] = frames.heads["stamp"], frames.heads["length"]
    records["flags"] = frames.heads["flags"] & int(FAULTS)
    is_whole = np.zeros(len(frames), bool)
    for size in np.unique(frames.snap_length).tolist():
        of_size = np.flatnonzero(frames.snap_length == size)
        octets = take(frames.words, frames.octets_at[of_size], np.dtype((np.void, -(-size // 4) * 4)))
        table = octets.view(np.uint8).reshape(len(of_size), -1)[:, :size]
        places = payload_places(table)
        here = places + FILL_OFFSET <= size
        chosen, columns = of_size[here], places[here, np.newaxis] + np.arange(FILL_OFFSET)
        payload = np.take_along_axis(table[here], columns, axis=1).view(PAYLOAD_DTYPE).reshape(-1)
        records["sequence"][chosen], records["tx_stamp"][chosen] = payload["sequence"], payload["tx_stamp"]
        records["flags"][chosen] |= np.where(payload["stream_id"] == stream_id, 0, FOREIGN).astype(np.uint16)
        is_whole[chosen] = payload["signature"] == SIGNATURE
    return records[is_whole]
