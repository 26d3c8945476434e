# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Accumulators, histograms and rates of a port against their models: random frames, and the corners one by one."""

import numpy as np
import pytest
from migen import Memory, run_simulation

from liteprobe.cores.formats import (
    BINS, PORT_ACCUMULATORS, RECORD_SLOTS, RECORD_WINDOW, STREAM_ACCUMULATORS, STREAM_SLOT_WORDS, STREAM_SLOTS_MAX,
    STREAM_WINDOW, BinKind, RecordFlag, lost_frames,
)
from liteprobe.cores.measure.streams import StreamMeter
from liteprobe.sim.drivers.measure import rate
from liteprobe.sim.drivers.measure.streams import Kind, Script, random_run, run
from liteprobe.sim.models.receive.meters import BinSettings, MeasuredFrame, PortMeterModel
from liteprobe.sim.drivers.tools.steps import assign, pulse, wait_cycles

SPACING = 32
PORT = {"slots": 16, "window": STREAM_WINDOW}
FIELDS = {"slots": STREAM_SLOTS_MAX, "window": STREAM_WINDOW, "with_fields": True} # Of a port that sends streams, too.
RECORDING = {"slots": RECORD_SLOTS, "window": RECORD_WINDOW} # The meter beside a ring of records.
FAR = 2**32 - 1


def words_after(frames, latch=100, clears=(), spacing=SPACING, meter=PORT):
    """Return the snapshot and the bins of frames that come ``spacing`` cycles apart; latch and clears after the first one."""
    script = Script()
    events = [(100 + spacing * n, n, frame) for n, frame in enumerate(frames)]
    steps = [(cycle, script.frame, (cycle, frame)) for cycle, _, frame in events]
    steps += [(100 + after, script.do, (100 + after, Kind.CLEAR)) for after in clears]
    steps += [(100 + latch, script.do, (100 + latch, Kind.LATCH))]
    for _, act, arguments in sorted(steps, key=lambda step: step[0]):
        act(*arguments)
    end = 100 + max(spacing * len(frames), latch, *clears, 0) + 100
    script.do(end, Kind.READ_STREAMS)
    script.do(end, Kind.READ_BINS)
    done = run(script, **meter)
    return done.snapshots[0].tolist(), done.bins[0].tolist()


def model_after(frames, meter=PORT):
    """Return the same of the model."""
    model = PortMeterModel(slots=meter["slots"], window=meter["window"])
    for frame in frames:
        model.arrive(frame)
    return model.words(), [count for slot in model.bins for count in slot]


def probe(sequence, stamp=1000, delay=10, length=60, **fields):
    """Return a frame of stream 0."""
    return MeasuredFrame(stamp, length, is_probe=True, sequence=sequence, tx_stamp=stamp - delay, **fields)


@pytest.mark.parametrize(
    ("seed", "meter"),
    [
        *[(1, PORT), (3, RECORDING), (5, FIELDS)],
        *[pytest.param(seed, meter, marks=pytest.mark.full) for seed, meter in ((2, PORT), (4, RECORDING), (6, FIELDS))],
    ],
)
def test_random_frames_of_many_streams_are_counted_exactly(seed, meter):
    outcome = random_run(6000, seed, segment=600, **meter)
    assert outcome.found == []
    assert (outcome.frames, outcome.off_words, outcome.off_bins, outcome.off_saturated) == (6000, 0, 0, 0)
    assert outcome.streams >= 20


def test_a_full_bin_stays_full_and_says_so():
    outcome = random_run(3000, 3, segment=500, count_bits=5)
    assert outcome.found == []
    assert (outcome.off_bins, outcome.off_saturated) == (0, 0)


@pytest.mark.parametrize("meter", [PORT, FIELDS])
@pytest.mark.parametrize("after", range(-2, 36))
def test_a_snapshot_knows_the_frames_up_to_the_cycle_after_its_latch(after, meter):
    frames = [probe(n, 1000 + n) for n in range(3)]
    known = frames[: 1 + (after + 1) // SPACING] if after >= -1 else []
    assert words_after(frames, latch=after, meter=meter)[0] == model_after(known, meter)[0]


@pytest.mark.parametrize("meter", [PORT, FIELDS])
@pytest.mark.parametrize("after", range(34))
def test_a_clear_forgets_the_frame_under_way_and_nothing_of_the_next(after, meter):
    frames = [probe(n, 1000 + n) for n in range(3)]
    left = frames[2:] if after == SPACING else frames[1:] if after < SPACING else frames[2:]
    assert words_after(frames, latch=200, clears=[after], meter=meter) == model_after(left, meter)


def test_each_damage_keeps_a_probe_frame_out_of_its_stream_but_not_out_of_the_port():
    flags = [1 << bit for bit in range(16)]
    snapshot, bins = words_after([probe(n, flags=flag) for n, flag in enumerate(flags)], latch=2000)
    bad = RecordFlag.FCS_ERROR | RecordFlag.LENGTH_ERROR | RecordFlag.RUNT | RecordFlag.GIANT | RecordFlag.SYMBOL_ERROR
    assert PORT_ACCUMULATORS["frames"].value(snapshot) == 16
    assert STREAM_ACCUMULATORS["frames"].value(snapshot[32:64]) == 16 - bin(bad).count("1")
    assert sum(bins[BINS[BinKind.LENGTH].first :][: BINS[BinKind.LENGTH].words]) == 16


@pytest.mark.parametrize(
    ("sequences", "lost", "duplicated", "reordered", "beyond"),
    [
        ([0, 1, 2], 0, 0, 0, 0),
        ([5], 5, 0, 0, 0),
        ([0, 2, 1], 0, 0, 1, 0),
        ([0, 2, 1, 1], 0, 1, 1, 0),
        ([2**32 - 1, 0, 1], 2**32 - 1, 0, 1, 0),
        ([2**31 - 1, 2**32 - 1, 0], 2**32 - 2, 0, 0, 0),
        ([0, 128, 1, 1], 126, 1, 1, 0),
        ([0, 129, 1, 2], 127, 0, 1, 1),
        ([0, 128, 0], 127, 0, 0, 1),
        ([0, 1, 1, 3, 1, 3], 1, 3, 0, 0), # RFC 5560: arrivals per packet 1, 3, 0, 2.
        ([1, 2, 3, 5, 6, 7, 8, 4, 9, 10], 1, 0, 1, 0), # RFC 4737, section 7; METHODS.md 2; so are the next three.
        ([1, 2, 3, 4, 7, 5, 6, 8], 1, 0, 2, 0),
        ([1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11], 1, 0, 3, 0),
        ([1, 2, 3, 6, 7, 4, 5, 8, 9, 10, 12, 13, 11], 1, 0, 3, 0),
        ([2**31 - 1, 2**32 - 3, 2**32 - 1, 0, 2**32 - 2, 1, 2**32 - 2], 2**32 - 4, 1, 1, 0),
        ([0, 1, 2, 3, 132, 131], 127, 0, 1, 0), # 3 and 131 share a place of the window.
    ],
)
def test_loss_follows_from_what_is_counted(sequences, lost, duplicated, reordered, beyond):
    frames = [probe(sequence, 1000 + n) for n, sequence in enumerate(sequences)]
    snapshot = words_after(frames, latch=2000)[0]
    found = {name: place.value(snapshot[32:64]) for name, place in STREAM_ACCUMULATORS.items()}
    model = PortMeterModel(**PORT)
    for frame in frames:
        model.arrive(frame)
    assert lost_frames(found) == lost == model.streams[1].accumulators()["lost"]
    assert [found[name] for name in ("duplicated", "reordered", "beyond_window")] == [duplicated, reordered, beyond]


@pytest.mark.parametrize(("behind", "flag"), [(1, "duplicated"), (1023, "reordered"), (1024, "reordered"), (1025, "beyond_window")])
def test_the_window_of_a_stream_with_records_reaches_its_length_back(behind, flag):
    frames = [probe(sequence, 1000) for sequence in (0, 2000, 2001 - behind)]
    snapshot = words_after(frames, latch=200, meter=RECORDING)[0]
    found = {name: place.value(snapshot[32:64]) for name, place in STREAM_ACCUMULATORS.items()}
    assert {name for name in ("duplicated", "reordered", "beyond_window") if found[name]} == {flag}


@pytest.mark.parametrize("delay", [0, 1, -5, 0x10000, FAR, FAR + 1, 2**40, 2**63 - 1, -FAR, -FAR - 1, -FAR - 2, -(2**63)])
def test_squares_of_far_delays_are_clamped(delay):
    snapshot = words_after([probe(0, 1000, delay)])[0]
    found = {name: place.value(snapshot[32:64]) for name, place in STREAM_ACCUMULATORS.items()}
    delays = [found[name] for name in ("delay_min", "delay_max", "delay_sum")]
    assert (delays, found["delay_square_sum"]) == ([delay] * 3, min(abs(delay), FAR) ** 2)


def test_values_at_the_edges_of_bins_fall_into_the_upper_one():
    settings = BinSettings(dict.fromkeys(BinKind, 100), dict.fromkeys(BinKind, 5))
    model, script = PortMeterModel(settings=settings, **PORT), Script()
    script.set(50, settings, 0, False)
    edges = [100 + 32 * n for n in range(47)]
    values = [value + offset for value in edges for offset in (-1, 0)]
    for number, value in enumerate([*values, 2**63 - 1, -(2**63), 2**37 + 99, 2**37 + 100]):
        frame = MeasuredFrame(value % 2**64, value % 2**16, is_probe=True, sequence=number, tx_stamp=0)
        script.frame(100 + SPACING * number, frame)
        model.arrive(frame)
    script.do(10000, Kind.READ_BINS)
    assert run(script, **PORT).bins[0].tolist() == [count for slot in model.bins for count in slot]
    place = BINS[BinKind.DELAY]
    counts = np.array(model.bins[1][place.first :][: place.words])
    assert counts.tolist() == [2] + [2] * place.regular + [4]


def test_octets_go_on_beyond_a_word():
    count, length = 65_600, 2**16 - 1
    frames = [probe(n, 1000 + n, length=length) for n in range(count)]
    snapshot = words_after(frames, latch=SPACING * count + 50)[0]
    places = {0: PORT_ACCUMULATORS, 32: STREAM_ACCUMULATORS}
    octets = [table["octets"].value(snapshot[first : first + 32]) for first, table in places.items()]
    assert octets == [count * length] * 2 and count * length > 2**32


@pytest.mark.parametrize(("seed", "interval_ns"), [(1, 65_536), (2, 70_001)])
def test_rates_are_of_whole_intervals_of_the_clock_whatever_it_does(seed, interval_ns):
    outcome = rate.random_run(10_000, seed, interval_ns)
    assert outcome.found == []
    assert outcome.intervals > 30
    assert outcome.whole > 20


def test_frames_go_on_beyond_a_word():
    meter = StreamMeter(slots=RECORD_SLOTS, window=RECORD_WINDOW)
    memory = next(special for special in meter.words._fragment.specials if isinstance(special, Memory))
    nearly, shown = 2**32 - 2, []

    def bring(sequence):
        measured = meter.measured
        yield from assign(measured, sequence=sequence, is_probe=1, passed=1)
        yield from pulse(measured.valid)
        yield from wait_cycles(SPACING - 1)

    def run():
        yield from bring(0)
        yield from wait_cycles(10)
        # As if all but the last of 2^32 - 2 frames had come: the counts are in the bank that was written.
        for bank in (0, 1):
            for slot, table in ((0, PORT_ACCUMULATORS), (1, STREAM_ACCUMULATORS)):
                word = (bank * RECORD_SLOTS + slot) * STREAM_SLOT_WORDS + table["frames"].first
                yield memory[word].eq(nearly)
        for sequence in (1, 2, 3):
            yield from bring(sequence)
        yield from pulse(meter.latch)
        yield from wait_cycles(100)
        for slot, table in ((0, PORT_ACCUMULATORS), (1, STREAM_ACCUMULATORS)):
            words = [0] * STREAM_SLOT_WORDS
            for word in (table["frames"].first, table["frames"].first + 1):
                words[word] = yield from meter.bus.read(STREAM_SLOT_WORDS * slot + word)
            shown.append(table["frames"].value(words))

    run_simulation(meter, run())
    assert shown == [nearly + 3] * 2 and nearly + 3 > 2**32
