# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Blocks to records: every frame with its octets, and everything counted; for long, and of the capture of docs/examples."""

import ctypes
import gc
import importlib.util
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scapy.utils import RawPcapNgReader, RawPcapReader

from liteprobe.cores.formats import BLOCK_WORDS, NO_RECORD
from liteprobe.host.capture import decode, session
from liteprobe.host.capture.decode import BlockDecoder, Blocks, block_headers
from liteprobe.host.capture.request import CaptureRequest
from liteprobe.host.capture.resequence import Resequencer
from liteprobe.host.capture.run import capture_recording
from liteprobe.host.capture.session import CaptureSession, Merger
from liteprobe.host.capture.trigger import Trigger
from liteprobe.host.capture.write import parquet
from liteprobe.host.capture.write.output import Output
from liteprobe.host.capture.write.pcapng import PcapngWriter, PortInterface
from liteprobe.host.measure.monitor import PortMeasurement
from liteprobe.host.measure.streams import ReceivedStream
from liteprobe.host.packets.batch import Batch, joined
from liteprobe.host.serve.poll import Totals
from liteprobe.sim.drivers.capture.blocks import Captured, blocks_of, line_rate, mixed
from liteprobe.sim.drivers.tools.wire import is_full

SEED = 20261122


def decoded(blocks: Blocks, at_once: int = 2048, decoder: BlockDecoder | None = None) -> tuple[Batch, BlockDecoder]:
    made = decoder or BlockDecoder()
    return joined([made.decode(blocks[first : first + at_once]) for first in range(0, len(blocks), at_once)]), made


def expect(batch: Batch, frames: Iterable[Captured]) -> None:
    """Hold records, in the order of their stamps, against the frames."""
    wanted = list(frames)
    found = batch.select(np.argsort(batch.stamp, kind="stable"))
    assert found.stamp.tolist() == [frame.stamp for frame in wanted]
    assert found.missing.tolist() == [frame.missing for frame in wanted]
    assert found.channel.tolist() == [frame.channel for frame in wanted]
    assert found.port.tolist() == [frame.port for frame in wanted]
    assert [found.octets(number) for number in range(len(found))] == [frame.kept for frame in wanted]
    for field, values in (
        ("length", [len(frame.octets) for frame in wanted]),
        ("rule", [frame.rule for frame in wanted]),
    ):
        assert [
            value for value, frame in zip(found.heads[field].tolist(), wanted, strict=True) if not frame.missing
        ] == [value for value, frame in zip(values, wanted, strict=True) if not frame.missing]


@pytest.mark.parametrize("at_once", [1, 2, 7, 2048])
def test_records_are_the_frames_however_many_blocks_come_at_once(at_once: int) -> None:
    frames = mixed(1500, SEED, channels=(0, 3, 7), gaps=0.02)
    batch, decoder = decoded(blocks_of(frames, flush_every=300), at_once)
    expect(batch, frames)
    counters = decoder.counters
    assert (counters.damaged, counters.missing, counters.broken, counters.cut, counters.repeated) == (0, 0, 0, 0, 0)
    assert counters.records == 1500
    assert counters.gap_frames == sum(frame.missing for frame in frames) == sum(counters.dropped.values())


def test_every_length_and_snap_length_comes_through() -> None:
    octets = np.random.default_rng(SEED).bytes(1600)
    frames = [
        Captured(1000 * length, octets[:length], snap=snap)
        for length in range(1, 1600)
        for snap in (65535, length // 2)
    ]
    batch, _ = decoded(blocks_of(frames))
    assert [batch.octets(number) for number in range(len(batch))] == [frame.kept for frame in frames]


def test_headers_come_as_they_left() -> None:
    frames = [frame for frame in mixed(300, SEED) if frame.with_header]
    batch, _ = decoded(blocks_of(frames))
    assert batch.headers().tobytes() == b"".join(frame.record()[:128] for frame in frames)
    assert batch.has_header.all()


def test_compact_keeps_records_and_no_more() -> None:
    frames = mixed(200, SEED)
    batch, _ = decoded(blocks_of(frames))
    some = batch.select(slice(50, 150)).compact()
    expect(some, frames[50:150])
    assert 4 * len(some.words) == sum(len(frame.record()) for frame in frames[50:150])


def whole_without(frames: list[Captured], blocks: Blocks, lost: int) -> list[Captured]:
    """Return the frames of one channel none of whose words lie in block ``lost``, nor unreachable behind it."""
    sizes = [len(frame.record()) // 4 for frame in frames]
    ends = np.cumsum(sizes)
    counts = block_headers(blocks)["words"].astype(int)
    hole = counts[:lost].sum(), counts[: lost + 1].sum()
    return [
        frame for frame, end, size in zip(frames, ends, sizes, strict=True) if end <= hole[0] or end - size >= hole[1]
    ]


def test_loss_of_any_block_costs_just_the_records_in_it() -> None:
    frames = mixed(120, SEED)
    blocks = blocks_of(frames)
    for lost in range(1, len(blocks) - 1):
        batch, decoder = decoded(np.delete(blocks, lost, axis=0), at_once=5)
        wanted = whole_without(frames, blocks, lost)
        assert batch.stamp.tolist() == [frame.stamp for frame in wanted], lost
        assert (decoder.counters.missing, decoder.counters.broken) == (1, 0)


def test_repeated_and_swapped_blocks_change_nothing_and_are_counted() -> None:
    frames = mixed(400, SEED)
    blocks = blocks_of(frames)
    order = list(range(len(blocks)))
    order[10], order[11] = 11, 10
    order[20:20] = [18, 19, 20]
    batch, decoder = decoded(blocks[order])
    expect(batch, frames)
    assert (decoder.counters.repeated, decoder.counters.out_of_order, decoder.counters.missing) == (3, 1, 0)


def test_block_that_comes_after_its_place_was_given_up_is_late_once_and_then_repeated() -> None:
    blocks = blocks_of(mixed(400, SEED))
    decoder = BlockDecoder()
    for part in (blocks[:10], blocks[11:20], blocks[10:11], blocks[10:11], blocks[5:6]):
        decoder.decode(part)
    assert (decoder.counters.missing, decoder.counters.late, decoder.counters.repeated) == (1, 1, 2)


def test_numbers_wrap() -> None:
    frames = mixed(400, SEED)
    batch, decoder = decoded(blocks_of(frames, first_number=0xFFFFFFF0), at_once=3)
    expect(batch, frames)
    assert (decoder.counters.missing, decoder.counters.restarts) == (0, 0)


def test_numbers_that_begin_anew_are_a_restart_and_no_loss() -> None:
    frames = mixed(200, SEED)
    first, second = blocks_of(frames[:100], first_number=1_000_000), blocks_of(frames[100:])
    batch, decoder = decoded(np.concatenate([first, second]))
    expect(batch, frames)
    assert (decoder.counters.missing, decoder.counters.restarts) == (0, 1)


def test_loss_before_the_first_block_is_seen_where_its_number_is_known() -> None:
    blocks = blocks_of(mixed(100, SEED))
    assert decoded(blocks[3:], decoder=BlockDecoder({0: 0}))[1].counters.missing == 3
    assert decoded(blocks[3:])[1].counters.missing == 0


DAMAGE = {
    "magic": lambda header: header["magic"].__setitem__(0, 0),
    "version": lambda header: header["kind"].__setitem__(0, 0x2000),
    "channel": lambda header: header["kind"].__setitem__(0, 0x1800),
    "spare bits": lambda header: header["kind"].__setitem__(0, 0x1001),
    "words above the most": lambda header: header["words"].__setitem__(0, 365),
    "no words": lambda header: header["words"].__setitem__(0, 0),
    "first behind the end": lambda header: header["first"].__setitem__(0, header["words"][0]),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_block_is_refused_and_the_next_record_found_again(kind: str) -> None:
    frames = mixed(200, SEED)
    blocks = blocks_of(frames).copy()
    header = blocks[4:5, :4].copy()
    DAMAGE[kind](header.view(block_headers(blocks).dtype)[0])
    blocks[4:5, :4] = header
    batch, decoder = decoded(blocks)
    assert batch.stamp.tolist() == [frame.stamp for frame in whole_without(frames, blocks_of(frames), 4)]
    assert (decoder.counters.damaged, decoder.counters.missing) == (1, 1)


def test_cut_datagram_is_refused() -> None:
    blocks = blocks_of(mixed(100, SEED))
    lengths = np.full(len(blocks), 4 * BLOCK_WORDS)
    lengths[3] -= 4
    decoder = BlockDecoder()
    decoder.decode(blocks, lengths)
    assert (decoder.counters.damaged, decoder.counters.missing) == (1, 1)


def test_short_last_block_needs_no_more_octets_than_its_words() -> None:
    frame = Captured(5, bytes(60))
    lengths = np.array([4 * (4 + 4 + 15)])
    decoder = BlockDecoder()
    assert len(decoder.decode(blocks_of([frame]), lengths)) == 1
    assert len(BlockDecoder().decode(blocks_of([frame]), lengths - 1)) == 0


def test_record_that_no_frame_can_have_is_counted_and_walked_no_further() -> None:
    frames = [Captured(1000 * number, bytes(60)) for number in range(200)]
    blocks = blocks_of(frames).copy()
    blocks[2, 4 + int(block_headers(blocks)["first"][2]) + 2] = 61 << 16 | 60  # More octets kept than there were.
    batch, decoder = decoded(blocks)
    assert decoder.counters.broken == 1
    assert 200 - 364 // 19 - 1 <= len(batch) < 200
    assert set(batch.stamp.tolist()) <= {frame.stamp for frame in frames}


def test_record_that_its_neighbour_doesnt_confirm_is_not_taken() -> None:
    frames = [Captured(1000 * number, bytes(60)) for number in range(200)]
    blocks = blocks_of(frames).copy()
    header = block_headers(blocks[3:4]).copy()
    header["first"] += 1
    blocks[3, :4] = header.view(np.uint32)
    batch, decoder = decoded(blocks)
    assert decoder.counters.broken > 0
    crossing = 3 * 364 // 19  # Its end is not where block 3 says that the next one begins.
    assert 1000 * crossing not in batch.stamp.tolist()


def damaged(blocks: Blocks, random: np.random.Generator) -> tuple[Blocks, NDArray[np.int64]]:
    """Return blocks with octets, places and lengths changed at random."""
    made = blocks[random.permutation(len(blocks)) if random.random() < 0.5 else np.arange(len(blocks))].copy()
    octets = made.view(np.uint8)
    for _ in range(int(random.integers(1, 200))):
        row = int(random.integers(len(made)))
        column = int(random.integers(16 if random.random() < 0.5 else 4 * BLOCK_WORDS))
        octets[row, column] = random.integers(256)
    lengths = np.full(len(made), 4 * BLOCK_WORDS)
    lengths[random.random(len(made)) < 0.05] = random.integers(4 * BLOCK_WORDS)
    return made, lengths


def test_fuzz_never_crashes_and_counts_every_block() -> None:
    blocks = blocks_of(mixed(300, SEED, channels=(0, 1), gaps=0.02), flush_every=50)
    for seed in range(150 if is_full() else 50):
        random = np.random.default_rng(seed)
        decoder, count = BlockDecoder(), 0
        for _ in range(3):
            made, lengths = damaged(blocks, random)
            batch = decoder.decode(made, lengths)
            count += len(batch)
            assert (batch.at + 4 <= len(batch.words)).all(), seed
            ends = batch.octets_at + -(-batch.snap_length // 4)
            assert (ends <= len(batch.words)).all(), seed
            batch.compact(), batch.headers()
        assert (decoder.counters.blocks, decoder.counters.records) == (3 * len(blocks), count), seed


def step_by_step(blocks: Blocks, lengths: NDArray[np.int64]) -> tuple[Batch, BlockDecoder]:
    """Decode blocks one record after the other, though all may be alike."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode._Walks, "alike", lambda walks, words: None)
        made = BlockDecoder()
        parts = [made.decode(blocks[k : k + 5], lengths[k : k + 5]) for k in range(0, len(blocks), 5)]
        return joined(parts), made


def test_records_that_are_alike_are_those_found_step_by_step_whatever_is_damaged() -> None:
    alike = 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        length, with_header = int(random.choice([60, 61, 300, 1514])), bool(random.random() < 0.5)
        blocks = line_rate(800, length, with_header=with_header, snap=int(random.choice([0, 1, 59, 65535])))[:40].copy()
        blocks[int(random.integers(20)) :, 0] += np.uint32(random.integers(2))  # Maybe one is lost.
        lengths = np.full(len(blocks), 4 * BLOCK_WORDS)
        if seed % 3 == 0:
            blocks, lengths = damaged(blocks, random)
        elif seed % 3 == 1:
            where = random.integers(4, BLOCK_WORDS, 3), random.integers(0, len(blocks), 3)
            blocks[where[1], where[0]] ^= np.uint32(1 << random.integers(32))
            headers = blocks.view("<u2")  # And where a record begins, or that none does.
            headers[random.integers(len(blocks)), 3] = random.choice([NO_RECORD, 0, 1, 47])
        made = BlockDecoder()
        parts = [made.decode(blocks[k : k + 5], lengths[k : k + 5]) for k in range(0, len(blocks), 5)]
        alike += sum(part.step > 0 for part in parts)
        found, (wanted, slow) = joined(parts), step_by_step(blocks, lengths)
        assert made.counters == slow.counters, seed
        assert found.heads.tobytes() == wanted.heads.tobytes(), seed
        assert found.compact().words.tobytes() == wanted.compact().words.tobytes(), seed
        for part in parts:
            assert not part.step or (part.rows()[:, :4].tobytes() == part.heads.tobytes()), seed
    assert 150 < alike < 450


def test_noise_is_no_block() -> None:
    noise = np.random.default_rng(SEED).integers(0, 2**32, (20_000, BLOCK_WORDS), np.uint32)
    decoder = BlockDecoder()
    assert len(decoder.decode(noise)) == 0
    assert decoder.counters.damaged == decoder.counters.blocks == 20_000


def test_noise_under_good_headers_ends() -> None:
    random = np.random.default_rng(SEED)
    noise = random.integers(0, 2**32, (3000, BLOCK_WORDS), np.uint32)
    headers = block_headers(noise).copy()
    headers["magic"], headers["kind"] = 0x4C50, 0x1000 | random.integers(0, 8, 3000) << 8
    headers["words"] = 1 + headers["words"] % 364
    headers["first"] = np.where(random.random(3000) < 0.2, NO_RECORD, headers["first"] % headers["words"])
    headers["number"] = np.arange(3000) // 8
    noise[:, :4] = headers.view(np.uint32).reshape(-1, 4)
    decoder = BlockDecoder()
    batch = decoder.decode(noise)
    assert (decoder.counters.damaged, decoder.counters.blocks) == (0, 3000)
    assert decoder.counters.broken > 0 and (batch.octets_at <= len(batch.words)).all()


def test_line_rate_of_the_bench_is_what_the_slow_writer_makes() -> None:
    blocks = line_rate(200, 61)
    batch, _ = decoded(blocks)
    frames = [Captured(stamp, batch.octets(number)) for number, stamp in enumerate(batch.stamp.tolist())]
    assert blocks_of(frames)[: len(blocks) - 1].tobytes() == blocks[: len(blocks) - 1].tobytes()
    assert np.diff(batch.stamp.astype(np.int64)).tolist() == [680] * (len(batch) - 1)


# Order of stamps ----------------------------------------------------------------------------------


def test_channels_are_merged_in_the_order_of_stamps() -> None:
    frames = mixed(2000, SEED, channels=(0, 1, 2, 5), gaps=0.01)
    blocks = blocks_of(frames, flush_every=100)
    decoder, merger = BlockDecoder(), Merger(window_ns=10**9)
    parts = [merger.push(decoder.decode(blocks[first : first + 9])) for first in range(0, len(blocks), 9)]
    batch = joined([*chain(*parts), *merger.finish()])
    assert batch.stamp.tolist() == [frame.stamp for frame in frames]
    assert merger.disordered == 0


def test_record_beyond_the_window_is_handed_on_and_counted() -> None:
    merger = Merger(window_ns=100)
    parts = [decoded(blocks_of([Captured(stamp)]))[0] for stamp in (1000, 2000, 950)]
    stamps = [joined(due).stamp.tolist() for due in (*map(merger.push, parts), merger.finish())]
    assert stamps == [[], [1000], [950], [2000]]
    assert merger.disordered == 1


# Trigger ------------------------------------------------------------------------------------------


def triggered(before_ns: int, after_ns: int | None, at: int, **options: int) -> tuple[list[int], Trigger]:
    """Return the stamps that pass of frames each 10 ns, the one with stamp ``at`` being the trigger."""
    frames = [Captured(10 * number, bytes(60), with_header=True) for number in range(1, 200)]
    trigger = Trigger(lambda headers: headers["stamp"] == at, before_ns, after_ns, **options)
    batch, _ = decoded(blocks_of(frames))
    parts = [trigger.push(batch.select(slice(first, first + 17))) for first in range(0, len(batch), 17)]
    return joined(parts).stamp.tolist(), trigger


@pytest.mark.parametrize(("before_ns", "after_ns"), [(0, 0), (55, 30), (400, 10), (10**6, None), (0, None)])
def test_trigger_keeps_so_much_before_and_after(before_ns: int, after_ns: int | None) -> None:
    stamps, trigger = triggered(before_ns, after_ns, 1000)
    end = 1990 if after_ns is None else 1000 + after_ns
    assert stamps == [stamp for stamp in range(10, 2000, 10) if 1000 - before_ns <= stamp <= end]
    assert (trigger.stamp, trigger.is_done) == (1000, after_ns is not None)
    assert trigger.reach_ns == 1000 - stamps[0]


def test_trigger_that_never_comes_keeps_nothing() -> None:
    stamps, trigger = triggered(10**6, None, 5)
    assert (stamps, trigger.stamp) == ([], None)


def test_too_much_before_a_trigger_is_given_up_and_counted() -> None:
    size = 4 * (32 + 15)
    stamps, trigger = triggered(10**6, 0, 1000, held_octets=20 * size)
    assert stamps[-1] == 1000 and trigger.given_up == 100 - len(stamps) > 0


# For long -----------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("count", [300_000, pytest.param(1_000_000, marks=pytest.mark.full)])
def test_a_long_capture_over_a_lossy_network_takes_no_more_memory_than_a_short_one(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "GROUPS", 25)
    rng, order = np.random.default_rng(5), Resequencer({0: 0})
    before = frames = 0
    after: list[int] = []  # Of the last parts: a row group that is being written then is not what stays.
    end = WARM + -(-count // CHUNK)
    with files(tmp_path) as capture:
        for number in range(end):
            if number == WARM:
                before, frames = resident(), capture.frames
            for blocks in lossy(order, chunk(number), rng):
                capture.take(blocks)
            after += [resident()] if number >= end - 3 else []
        grown, frames = min(after) - before, capture.frames - frames
    assert frames > 0.95 * count and order.never_came > count / 1000
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
        found += merger.push(batch)
        assert merger.held_words <= 100_000
    found += merger.finish()
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


# Of docs/examples ---------------------------------------------------------------------------------


EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
TICK_NS = 8


def played(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[int, bytes]]]:
    """Return time (ns) and octets of each frame of both ports, as office.py makes them; without the first and the last."""
    monkeypatch.chdir(folder)
    spec = importlib.util.spec_from_file_location("office", EXAMPLES / "office.py")
    assert spec and spec.loader
    office = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(office)
    office.main()
    found = []
    for name in ("lan.pcap", "uplink.pcap"):
        with RawPcapReader(name) as reader:
            found.append([(meta.sec * 10**9 + meta.usec, octets) for octets, meta in reader][1:-1])
    return found


def captured(path: Path) -> list[list[tuple[int, bytes]]]:
    """Return stamp (ns) and octets of each frame of both interfaces of a pcapng."""
    found: list[list[tuple[int, bytes]]] = [[], []]
    with RawPcapNgReader(str(path)) as reader:
        for octets, meta in reader:
            found[int(meta.ifname.removeprefix(b"port"))].append((meta.tshigh << 32 | meta.tslow, octets))
    return found


def test_example_holds_each_frame_of_the_office_at_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ports = played(tmp_path, monkeypatch)
    capture_recording(EXAMPLES / "office.blocks", CaptureRequest(tmp_path / "again.pcapng"))
    seen = captured(EXAMPLES / "office.pcapng")
    assert captured(tmp_path / "again.pcapng") == seen
    begins_ns = seen[0][0][0] - ports[0][0][0]
    for wanted, found in zip(ports, seen, strict=True):
        assert [octets for _, octets in found] == [octets for _, octets in wanted]
        off_ns = [stamp - begins_ns - sent for (stamp, _), (sent, _) in zip(found, wanted, strict=True)]
        assert all(abs(off) <= TICK_NS for off in off_ns)


def test_examples_are_small() -> None:
    assert sum((EXAMPLES / name).stat().st_size for name in ("office.blocks", "office.pcapng")) < 100_000
