# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Unified headers at 10 Gb/s: each equals the model's, whatever comes and as close as it can come."""

import random
import struct

import pytest

from liteprobe.cores.formats import UNIFIED_OCTETS, UnifiedFlag
from liteprobe.sim.drivers.frames import stacks
from liteprobe.sim.drivers.receive.unified import differing, expected
from liteprobe.sim.drivers.xgmii import parse


@pytest.mark.parametrize("stall", [0, 60])
def test_every_stack_back_to_back(stall):
    frames = stacks.stacks()
    done = parse.run(frames, stall=stall)
    assert done.lost == 0
    assert differing(frames, done.octets) == []
    assert done.cycles <= sum(len(frame) + 24 for frame in frames) / 8 + 1


def test_a_frame_that_ends_anywhere():
    frames = [frame[:end] for frame in stacks.stacks()[::9] for end in range(len(frame) + 1)]
    done = parse.run(frames, gap=150)
    assert done.lost == 0
    assert differing(frames, done.octets) == []


def test_broken_frames():
    frames = list(stacks.fuzz(5000, seed=12))
    done = parse.run(frames)
    assert done.lost == 0
    assert differing(frames, done.octets) == []


def long_frame(chance):
    """Return a frame whose IP packet ends near its end, far behind its headers, or anywhere."""
    length = chance.choice([chance.randrange(100, 300), chance.randrange(1400, 1519), chance.randrange(8900, 9019)])
    is_ipv6 = chance.random() < 0.5
    kind = b"\x86\xdd" if is_ipv6 else b"\x08\x00"
    start = bytes(12) + chance.choice([kind, bytes.fromhex("81000123") + kind, bytes.fromhex("8847000011400001213f")])
    protocol = chance.choice([6, 17, 132, 47, 1])
    left = length - len(start) - (40 if is_ipv6 else 0)
    total = left + chance.choice([0, 0, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 9, -40, 40, 4000])
    if is_ipv6:
        head = struct.pack(">IHBB", 6 << 28, total, protocol, 64)
    else:
        head = struct.pack(">HHIBBH", 0x4500, total, 1, 64, protocol, 0)
    return (start + head).ljust(length, b"\x5a")


def test_the_length_of_ip_is_held_against_frames_whose_bodies_are_passed_over():
    chance = random.Random(13)
    frames = [long_frame(chance) for _ in range(1000)]
    done = parse.run(frames)
    assert done.lost == 0
    assert differing(frames, done.octets) == []
    flags = [
        int.from_bytes(done.octets[at + 12 : at + 14], "little") for at in range(0, len(done.octets), UNIFIED_OCTETS)
    ]
    assert 200 < sum(bool(one & int(UnifiedFlag.LENGTH_ERROR)) for one in flags) < 800


def test_wrong_fcs_is_in_the_flags():
    frames = list(stacks.stacks()[:80])
    bad = [number % 3 == 1 for number in range(80)]
    done = parse.run(frames, bad)
    verdicts = [UnifiedFlag.FCS_ERROR if one else UnifiedFlag.NONE for one in bad]
    assert differing(frames, done.octets, verdicts) == []


@pytest.mark.parametrize("length", [9018, 9019, 32767, 32768, 65535, 65536, 70000])
def test_giants(length):
    frames = [stacks.stacks()[6].ljust(length, b"\x45"), stacks.stacks()[7]]
    done = parse.run(frames)
    assert done.lost == 0
    assert differing(frames, done.octets) == []


def test_frames_that_find_no_place_are_dropped_whole_and_counted():
    """Headers of 4,000 octets and more, each of which takes twice as long as its frame, and shortest frames between them."""
    skipped = bytes([60, 255]).ljust(2048, b"\0") + bytes([59, 255]).ljust(2048, b"\0")
    deep = bytes(12) + bytes.fromhex("86dd60000000") + struct.pack(">HBB", len(skipped), 60, 64) + bytes(32) + skipped
    frames = []
    for number in range(4000):
        frame = deep if number % 50 < 5 else bytes(60)
        frames.append(struct.pack(">I", number) + frame[4:])
    done = parse.run(frames, stall=250)
    found = [done.octets[at : at + UNIFIED_OCTETS] for at in range(0, len(done.octets), UNIFIED_OCTETS)]
    wanted = {expected(frame): number for number, frame in enumerate(frames)}
    numbers = [wanted[header] for header in found]
    assert numbers == sorted(set(numbers))
    assert len(found) + done.lost == len(frames)
    assert 100 < done.lost < 3000
