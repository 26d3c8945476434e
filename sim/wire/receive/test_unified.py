# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Unified headers through the gateware, compiled: each equals the model's, whatever comes and however it comes."""

import struct

import pytest

from liteprobe.cores.formats import UNIFIED_OCTETS, UnifiedFlag
from liteprobe.sim.drivers.frames import stacks
from liteprobe.sim.drivers.receive import unified
from liteprobe.sim.drivers.receive.unified import differing, expected

BURST = 1  # Spacing: words and frames without an idle cycle.


def headers(run):
    return [run.octets[at : at + UNIFIED_OCTETS] for at in range(0, len(run.octets), UNIFIED_OCTETS)]


@pytest.mark.parametrize("stall", [0, 60])
def test_every_stack_at_line_rate(stall):
    frames = stacks.stacks()
    run = unified.run(frames, stall=stall)
    assert differing(frames, run.octets) == []
    assert run.lost == 0


def test_frame_that_ends_anywhere():
    frames = [frame[:end] for frame in stacks.stacks()[::9] for end in range(len(frame) + 1)]
    run = unified.run(frames, spacing=60)
    assert differing(frames, run.octets) == []


def test_fuzzed_frames():
    frames = list(stacks.fuzz(10_000, seed=11))
    run = unified.run(frames)
    assert differing(frames, run.octets) == []


def test_shortest_frames_a_word_a_cycle_every_33_cycles():
    frames = [frame for frame in stacks.stacks() if len(frame) == 60] * 20
    run = unified.run(frames, spacing=33)
    assert differing(frames, run.octets) == []
    assert run.lost == 0
    assert run.cycles < 33 * len(frames) + 1200


def test_errors_of_the_mac_are_in_the_flags_and_overflows_have_no_header():
    frames = list(stacks.stacks()[:80])
    errors = [number % 8 for number in range(80)]
    run = unified.run(frames, errors)
    kept = [number for number in range(80) if not errors[number] & 4]
    verdicts = [
        UnifiedFlag.FCS_ERROR * (errors[number] & 1) | UnifiedFlag.SYMBOL_ERROR * (errors[number] >> 1 & 1)
        for number in kept
    ]
    assert differing([frames[number] for number in kept], run.octets, verdicts) == []
    assert run.lost == 0


@pytest.mark.parametrize(("spacing", "stall"), [(BURST, 0), (unified.LINE_RATE, 200)])
def test_headers_that_find_no_room_are_dropped_whole_and_counted(spacing, stall):
    frames = [struct.pack(">I", number).ljust(60, b"\xff") for number in range(5000)]
    run = unified.run(frames, spacing=spacing, stall=stall)
    found = headers(run)
    assert run.lost > 1000
    assert len(found) + run.lost == len(frames)
    wanted = {expected(frame): number for number, frame in enumerate(frames)}
    numbers = [wanted[header] for header in found]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("length", [9018, 9019, 65535, 65536, 70000])
def test_giants(length):
    frames = [stacks.stacks()[6].ljust(length, b"\x45"), stacks.stacks()[7]]
    run = unified.run(frames)
    assert differing(frames, run.octets) == []
