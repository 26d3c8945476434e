# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Counters against plain sums, and the snapshot that shows them all as of one cycle."""

import random

from migen import Signal, run_simulation

from liteprobe.cores.measure.counters import EventCounters, PortCounters, ProbeCounters, Snapshot

SEED = 11
VERDICTS = ("fcs_error", "runt", "giant", "symbol_error")


def run(dut, cycles, names):
    """Hold each cycle's inputs for a cycle; return the outputs ``names`` after each of them."""
    shown = []

    def generator():
        for inputs in cycles:
            for name, value in inputs.items():
                yield getattr(dut, name).eq(value)
            yield
            for name in inputs:
                yield getattr(dut, name).eq(0)
            yield
            row = []
            for name in names:
                signal = dut.totals[name] if hasattr(dut, "totals") else getattr(dut, name)
                row.append((yield signal))
            shown.append(dict(zip(names, row, strict=True)))

    run_simulation(dut, generator())
    return shown


def test_port_counters_are_sums_over_all_frames_and_a_frame_counts_in_several():
    rng = random.Random(SEED)
    frames = [
        {
            "frame": rng.randrange(4) > 0,
            "length": rng.choice([0, 1, 60, 9018, 0xFFFF]),
            **{name: rng.randrange(2) for name in VERDICTS},
        }
        for _ in range(60)
    ]
    sums = dict.fromkeys(PortCounters.names, 0)
    expected = []
    for frame in frames:
        if frame["frame"]: # Without it, nothing else counts.
            sums["all_frames"] += 1
            sums["all_octets"] += frame["length"]
            for name in VERDICTS:
                sums[f"{name}s"] += frame[name]
        expected.append(dict(sums))
    assert run(PortCounters(), frames, PortCounters.names) == expected, f"seed {SEED}"


def test_octets_go_on_beyond_32_bits():
    dut = PortCounters()
    dut.all_octets.reset = 2**32 - 100
    (shown,) = run(dut, [{"frame": 1, "length": 9000}], ["all_octets"])
    assert shown == {"all_octets": 2**32 + 8900}


def test_clear_wins_over_the_frame_of_the_same_cycle():
    busy = {"frame": 1, "length": 60, **dict.fromkeys(VERDICTS, 1)}
    shown = run(PortCounters(), [busy, {**busy, "clear": 1}, busy], PortCounters.names)
    one = {**dict.fromkeys(PortCounters.names, 1), "all_octets": 60}
    assert shown == [one, dict.fromkeys(PortCounters.names, 0), one]


def test_probe_counters_keep_the_first_and_the_last_stamp_until_they_are_cleared():
    names = ("frames", "octets", "first_stamp", "last_stamp")
    far = 2**64 - 8
    cycles = [
        {"stamp": 7, "length": 99}, # No commit.
        {"commit": 1, "stamp": far, "length": 60},
        {"commit": 1, "stamp": 5, "length": 9000},
        {"commit": 1, "clear": 1, "stamp": 6, "length": 1},
        {"commit": 1, "stamp": 3, "length": 64},
        {"commit": 1, "stamp": 9, "length": 64},
    ]
    rows = [tuple(row.values()) for row in run(ProbeCounters(), cycles, names)]
    assert rows == [(0, 0, 0, 0), (1, 60, far, far), (2, 9060, far, 5), (0, 0, 0, 0), (1, 64, 3, 3), (2, 128, 3, 9)]


def test_events_count_each_on_its_own():
    names = ["lost", "found"]
    shown = run(EventCounters(names), [{"lost": 1}, {"lost": 1, "found": 1}, {}, {"lost": 1, "clear": 1}, {"found": 1}], names)
    assert [tuple(row.values()) for row in shown] == [(1, 0), (2, 1), (2, 1), (0, 0), (0, 1)]


def test_an_event_counts_in_each_cycle_that_it_lasts():
    dut = EventCounters(["seen"])

    def generator():
        yield dut.seen.eq(1)
        for _ in range(5):
            yield
        yield dut.seen.eq(0)
        yield
        assert (yield dut.totals["seen"]) == 5

    run_simulation(dut, generator())


def test_snapshot_shows_all_counts_as_of_one_cycle_and_holds_them():
    count, wide = Signal(8), Signal(64)
    dut = Snapshot({"count": count, "wide": wide})
    dut.sync += [count.eq(count + 1), wide.eq(wide + 2**40)]
    rows = []

    def generator():
        for cycle in range(20):
            yield dut.latch.eq(cycle in (5, 6, 13))
            yield
            names = [dut.latch, count, wide, dut.shown["count"], dut.shown["wide"]]
            row = []
            for signal in names:
                row.append((yield signal))
            rows.append(row)

    run_simulation(dut, generator())
    assert rows[0][3:] == [0, 0]
    for (latch, count_now, wide_now, *shown), (_, _, _, *next_shown) in zip(rows, rows[1:]):
        assert next_shown == ([count_now, wide_now] if latch else shown)
    assert sum(row[0] for row in rows) == 3 and rows[-1][3:] == [row[1:3] for row in rows if row[0]][-1]
