# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A capture and a monitor that go on for long: what they remember doesn't grow with frames, nor with time."""

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from liteprobe.cores.formats import BLOCK_WORDS
from liteprobe.host.capture import session
from liteprobe.host.capture.decode import BlockDecoder, Blocks
from liteprobe.host.capture.resequence import Resequencer
from liteprobe.host.capture.session import CaptureSession, Merger
from liteprobe.host.capture.write import parquet
from liteprobe.host.capture.write.output import Output
from liteprobe.host.capture.write.pcapng import PcapngWriter, PortInterface
from liteprobe.host.measure.monitor import PortMeasurement
from liteprobe.host.measure.streams import ReceivedStream
from liteprobe.host.serve.poll import Totals
from liteprobe.sim.drivers.capture.blocks import line_rate

CHUNK = 91 * 550  # Frames whose records fill whole blocks.
FRAME_NS = 672
FIRST_NS = 10**18
WARM = 4  # Chunks after which all buffers have been made.
GROWTH_OCTETS = 4 << 20


def resident() -> int:
    """Return how much memory of this process is resident (octets), what nobody uses given back."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    pa.default_memory_pool().release_unused()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def chunk(number: int) -> Blocks:
    """Return the blocks of one of many parts of a capture at line rate, headers alone."""
    start_ns = FIRST_NS + number * CHUNK * FRAME_NS
    blocks = line_rate(CHUNK, with_header=True, snap=0, start_ns=start_ns)
    blocks[:, 0] += np.uint32(number * len(blocks))
    return blocks


def lossy(order: Resequencer, blocks: Blocks, rng: np.random.Generator) -> Iterator[Blocks]:
    """Yield what comes of blocks of which a hundredth is lost and a tenth swapped, and what is given up in the end."""
    now_s = float(blocks[0, 0])  # Each chunk long after the last.
    kept = np.flatnonzero(rng.random(len(blocks)) >= 0.01)
    for part in np.array_split(kept, 4):
        part = part[np.argsort(part + 20 * (rng.random(len(part)) < 0.1), kind="stable")]
        yield order.push(blocks[part], np.full(len(part), 4 * BLOCK_WORDS), now_s)
    for step in range(60):
        yield order.give_up(now_s + 0.1 * step)
        order.overdue(now_s + 0.1 * step)


@contextmanager
def files(folder: Path) -> Iterator[CaptureSession]:
    """A capture to both kinds of files; row groups are short, so that there are 250 of a million frames."""
    output = Output(folder / "c.pcapng")
    headers = parquet.HeaderWriter(folder / "h.parquet", row_group=4000)
    yield CaptureSession([PcapngWriter(output, [PortInterface("port0")]), headers])
    headers.close()
    output.close()


def test_capture_of_a_million_frames_over_a_lossy_network_takes_no_more_memory_than_a_short_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "GROUPS", 25)
    rng, order = np.random.default_rng(5), Resequencer({0: 0})
    before = frames = 0
    with files(tmp_path) as capture:
        for number in range(WARM + -(-1_000_000 // CHUNK)):
            if number == WARM:
                before, frames = resident(), capture.frames
            for blocks in lossy(order, chunk(number), rng):
                capture.take(blocks)
        grown, frames = resident() - before, capture.frames - frames
    assert frames > 950_000 and order.never_came > 1000
    assert order.never_came == capture.decoder.counters.missing
    assert grown < GROWTH_OCTETS, f"{grown >> 10} KB more"


def test_stamps_that_stand_still_hold_back_no_more_than_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that doesn't go on: nothing is ever a window old."""
    monkeypatch.setattr(session, "HELD_WORDS", 100_000)
    decoder, merger, found = BlockDecoder(), Merger(), []
    blocks = line_rate(CHUNK, with_header=True, snap=0)
    for first in range(0, len(blocks), 100):
        batch = decoder.decode(blocks[first : first + 100])
        batch.heads["stamp"] = FIRST_NS
        found.append(merger.push(batch))
        assert len(merger._held.words) <= 100_000
    found.append(merger.finish())
    assert sum(map(len, found)) == CHUNK and merger.disordered == 0


def test_monitor_remembers_no_stream_that_is_no_longer_watched() -> None:
    """Another host has the meters watch other streams: each begins at what it shows."""
    totals, sizes = Totals(), set()
    for stream_id in range(500):
        stream = ReceivedStream(1, stream_id, 10**6 + stream_id, *[0] * 3, 9, 0, 1000 - stream_id, *[0] * 6)
        port = PortMeasurement(0, {}, None, [stream], [], False)
        assert totals.of_port(port).streams[0].duplicated == 1000 - stream_id
        sizes.add(len(totals._last) + len(totals._total) + len(totals._age) + len(totals._ids))
    assert len(sizes) == 1
