# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Capture through the gateware, compiled: every frame is in its channel's blocks or reported, whatever host and memory do."""

import random
from dataclasses import replace

import pytest

from liteprobe.cores.formats import BLOCK_WORDS, CHANNELS
from liteprobe.sim.drivers.capture.capture import (
    LEAST_BLOCKS, START, TRANSPORTS, Mix, Sent, block_rate, compare, random_records, run,
)
from liteprobe.sim.models.receive.capture import CaptureRecord, capture

COUNT = 3000
CYCLES_A_US = 50
TWO = [(0, 4), (4, 4)] # Base and blocks of two channels.
BUSY = Mix(channels=2, interval=80)
SLOW = Mix(channels=2, interval=300)

@pytest.fixture
def rng():
    seed = random.randrange(2**31)
    print("seed", seed)
    return random.Random(seed)

def kept(rng, mix, tables, with_sdram=False, **options):
    """Send records of a mix, hold what comes out against them, and return the run."""
    sent = random_records(rng, mix, COUNT)
    done = run(sent, tables, with_sdram, seed=rng.randrange(2**31), **options)
    assert compare(sent, done, options.get("number", 0)) == []
    return done

def has_open(blocks):
    """Whether the last block was open at the end: one that is full to its last word leaves none."""
    return len(blocks[-1]) < BLOCK_WORDS

def test_blocks_of_a_capture_that_nobody_reads_are_those_of_the_model(rng):
    # Each record may take one block besides the open one, so when the writer looks at a gap makes no difference.
    mix    = Mix(ports=1, channels=4, interval=200, snap_lengths=(0, 1, 60, 64, 700), lost=0)
    tables = [(0, 4), (4, 2), (6, 1), (7, 0)]
    sent   = random_records(rng, mix, COUNT)
    done   = run(sent, tables, flush=65535, ignore=0xff)
    blocks = [blocks for _, blocks in tables] + [0]*(CHANNELS - len(tables))
    assert [[list(block) for block in blocks] for blocks in done.blocks] == capture((one.record for one in sent), blocks)
    assert done.channels["written"] == [3 + has_open(done.blocks[0]), 1 + has_open(done.blocks[1])] + [0]*6

@pytest.mark.parametrize("with_sdram", [False, True])
@pytest.mark.parametrize("mix, options", [
    (Mix(ports=1, channels=2, interval=30), {}),                       # More than the ring takes.
    (BUSY, {"away_from": 20_000, "away_to": 60_000}),                  # The host goes, and comes back.
    (SLOW, {"loss": 40}),                                              # Blocks get lost, and are asked for again.
    (SLOW, {"stall": 128, "pace": 100, "flush": 20}),                  # Idle cycles and stalls everywhere, short blocks.
    (SLOW, {"way": "udp", "answers": 5000, "loss": 10, "flush": 200}), # As datagrams, beside answers.
    (BUSY, {"rounds": 3}),                                             # Captures that were cut short before.
])
def test_every_frame_is_kept_or_told_of(rng, with_sdram, mix, options):
    done = kept(rng, mix, TWO, with_sdram, **options)
    assert min(done.channels["written"][:2]) > 20

def test_blocks_are_read_over_the_bus(rng):
    done = kept(rng, Mix(channels=2, interval=600), TWO, way="bus")
    assert min(done.channels["written"][:2]) > 20

def test_numbers_of_blocks_wrap(rng):
    first = 2**32 - 4
    done  = kept(rng, BUSY, TWO, number=first)
    assert all(0 < count < 1000 for count in done.channels["written"][:2])
    assert [block[0] for block in done.blocks[0][:7]] == [2**32 - 4, 2**32 - 3, 2**32 - 2, 2**32 - 1, 0, 1, 2]

def test_channel_that_nobody_reads_disturbs_no_other(rng):
    done = kept(rng, Mix(channels=2, interval=400, lost=0), TWO, ignore=0b10)
    # Three blocks beside the open one, and the open one at the end: none is open when the third is full to its last word.
    assert done.channels["dropped"][0] == 0 and done.channels["written"][1] == 3 + has_open(done.blocks[1])
    assert done.channels["dropped"][1] > COUNT/4

def test_tiny_rings_and_none(rng):
    tables = [(0, 0), (0, 1), (1, 1), (2, 2), (4, 2), (6, 2)]
    done   = kept(rng, Mix(channels=7, snap_lengths=(0, 60)), tables)
    assert done.channels["written"][:3] == [0, 0, 0] and min(done.channels["written"][3:6]) > 5

def test_table_that_is_wrong_is_refused(rng):
    tables = [(0, 3), (5, 4), (8, 1), (0, 8), (2**16, 1), (0, 2**16), (7, 1)]
    done   = kept(rng, Mix(channels=7, lost=0), tables)
    assert done.channels["taken"] == [0, 0, 0, 8, 0, 0, 1, 0]
    assert done.channels["written"][:3] == [0, 0, 0]

def test_block_that_is_not_full_closes_after_a_while():
    record = CaptureRecord((1, 2, 60 | 60 << 16, 0), (), tuple(range(15)))
    second = START + 20_000
    done   = run([Sent(START, 0, record), Sent(second, 0, record)], [(0, 8)], flush=100, after=40_000)
    assert [len(block) for block in done.blocks[0]] == [23, 23]
    for sent, got in zip((START, second), done.cycles):
        # The bench counts from some cycles before.
        assert 0 <= got - sent - 100*CYCLES_A_US < 100*CYCLES_A_US

def test_frames_of_9000_octets_and_eight_channels_in_sdram_beside_a_processor(rng):
    mix  = Mix(interval=1500, snap_lengths=(9000, 60, 1514))
    done = kept(rng, mix, [(256*n, 256) for n in range(8)], with_sdram=True, cpu=20, room=8192)
    assert done.counts["cpu"] > 10_000 and done.counts["cpu_worst"] <= 29

@pytest.mark.parametrize("options", [
    {"way": "bus"}, # Reads a block as soon as it is told of, while what wrote it waits behind another user's bursts.
    {"cpu": 20},
    {"way": "udp", "answers": 5000, "loss": 10, "flush": 200},
])
def test_ring_in_a_memory_of_its_own_clock_that_others_use(rng, options):
    kept(rng, SLOW, TWO, with_sdram=True, hog=2, **options)

@pytest.mark.parametrize("name", LEAST_BLOCKS)
def test_blocks_leave_at_their_rate(name):
    assert block_rate(TRANSPORTS[name], 1514) > 1e6*LEAST_BLOCKS[name]

# Triggers -----------------------------------------------------------------------------------------

EIGHT = [(8*channel, 8) for channel in range(4)] # Too little for all that comes before a trigger, or after it.

def triggered(rng, mix, fires_at, before, **options):
    """Send records of which the ``fires_at``-th is the first for channel 3; nobody frees a block. Hold all against the model."""
    sent  = random_records(rng, mix, COUNT)
    order = sorted(range(COUNT), key=lambda number: sent[number].cycle)
    for number in order[fires_at:fires_at + 1]:
        sent[number] = replace(sent[number], record=on_channel(sent[number].record, 3))
    settings = {"flush": 65535, "trigger": 1 << 3, "before": before, "ignore": 0xff, "seed": rng.randrange(2**31)}
    done     = run(sent, EIGHT, True, **settings, **options)
    wanted   = capture((sent[number].record for number in done.order), [8]*4 + [0]*4, 1 << 3, 1 + before)
    assert done.has_all and len(done.order) == COUNT
    assert [[list(block) for block in blocks] for blocks in done.blocks] == wanted
    assert min(done.channels["freed"][:3]) > 0
    return done

def on_channel(record, channel):
    """Return a record that goes to another channel."""
    return replace(record, head=(*record.head[:3], record.head[3] & ~(15 << 24) | channel << 24))

@pytest.mark.parametrize("before", [0, 1, 2, 3])
def test_trigger_keeps_the_newest_before_it_and_the_oldest_after(rng, before):
    done = triggered(rng, Mix(channels=3, interval=400, lost=0), COUNT//2, before)
    assert 0 < done.counts["fired_at"] < done.counts["end"]
    assert [len(blocks) for blocks in done.blocks] == [7 + has_open(blocks) for blocks in done.blocks[:3]] + [1] + [0]*4
    assert min(done.channels["dropped"][:3]) > 0 and done.channels["dropped"][3] == 0

def test_capture_that_ends_before_its_trigger_holds_the_newest(rng):
    done = triggered(rng, Mix(channels=3, interval=300, lost=0), COUNT, 3)
    assert done.counts["fired_at"] == 0 and sum(done.channels["dropped"]) == 0

def test_next_capture_waits_for_its_own_trigger(rng):
    done = triggered(rng, Mix(channels=3, interval=400, lost=0), COUNT//2, 1, rounds=3)
    assert done.counts["fired_at"] > 0

def test_record_that_is_too_long_for_what_came_before_is_dropped_and_frees_nothing(rng):
    # Two of the eight blocks: of 600 octets there is room for one record, of 4000 for none.
    mix  = Mix(ports=1, channels=3, interval=2000, snap_lengths=(600, 4000), headers=0, lost=0)
    sent = random_records(rng, mix, 200)
    done = run(sent, EIGHT, True, flush=65535, trigger=1 << 3, before=0)
    long = [one for one in sent if len(one.record.octets) == 1000]
    assert sum(done.channels["dropped"]) == len(long) > 50
