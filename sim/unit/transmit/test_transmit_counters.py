# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Tests the counters of a transmit port against a dict."""

import random

import pytest
from migen import *

from liteprobe.cores.formats import NO_SEQUENCE, SENT_WORDS, STREAMS
from liteprobe.cores.transmit import counters
from liteprobe.cores.transmit.counters import COUNTER_BITS, COUNTERS, EVENTS, TransmitCounters
from liteprobe.cores.transmit.sources.streams.streams import SentCounters

APART = 20 # Ticks; a slot is longer,
SLOT  = 85 # at least so long.

def run(ticks, pulses=None, settle=40, **sys):
    """Return the counters after ``ticks``; ``pulses`` and the keywords map a name to the ticks (``sys``: cycles) of its pulses."""
    dut, found, pulses = TransmitCounters(), {}, pulses or {}
    def events():
        for tick in range(ticks + settle):
            for name in EVENTS:
                yield dut.events[name].eq(tick in pulses.get(name, ()))
            yield
    def host():
        for cycle in range(ticks*8//20 + settle):
            for name, cycles in sys.items():
                yield getattr(dut, name).eq(cycle in cycles)
            yield
        for number, name in enumerate(COUNTERS):
            yield dut.asks.eq(1 << number)
            yield
            found[name] = yield dut.word
    run_simulation(dut, {"timebase": events(), "sys": host()}, clocks={"timebase": 8, "sys": (20, 3)})
    return found

def test_every_event_is_counted_once_and_no_other():
    rng    = random.Random(5)
    pulses = {name: {APART*n for n in range(60) if rng.random() < 0.5} for name in EVENTS if name != "late"}
    found  = run(APART*60, pulses, dropped={3, 4, 5, 90}, disturbs={7, 8})
    expected = {name: len(ticks) for name, ticks in pulses.items()} | {"late": 0, "first_late": NO_SEQUENCE}
    assert found == expected | {"management_dropped": 4, "disturbed": 2}

@pytest.mark.parametrize("seed", range(4))
def test_a_bus_that_reads_in_every_second_cycle_takes_no_event_away(seed):
    """All at once at a clear, too: what comes after it is counted, what came before it is not."""
    rng    = random.Random(seed)
    late   = {SLOT*n for n in range(40) if rng.random() < 0.3}
    sent   = {SLOT*n + 10 for n in range(40)}
    others = {name: {SLOT*n + rng.randrange(9) for n in range(40)} for name in EVENTS if name not in ("late", "sent")}
    writes = {SLOT*n*8//20 + 2*k for n in range(40) for k in range(2)}
    cleared = rng.randrange(15, 25)
    cycle   = (SLOT*cleared - 5)*8//20 # Nothing of the slots before crosses any more.
    asks   = set(range(seed % 2, 2000, 2))
    found  = run(SLOT*40, {"late": late, "sent": sent, **others}, asks=asks, disturbs=writes, clear={cycle})
    left   = sorted(tick for tick in late if tick >= SLOT*cleared)
    first  = left[0]//SLOT - cleared if left else NO_SEQUENCE
    count  = 40 - cleared
    assert found == dict.fromkeys(others, count) | {
        "late": len(left), "sent": count, "first_late": first, "management_dropped": 0,
        "disturbed": sum(one > cycle for one in writes)}

def test_the_first_late_frame_is_told_by_the_frames_sent_before_it():
    sent  = {APART*n for n in range(10)}
    found = run(APART*10, {"sent": sent, "late": {APART*6 - 10, APART*8 - 10}})
    assert (found["sent"], found["late"], found["first_late"]) == (10, 2, 6)

def test_a_program_clears_what_is_its_own_and_a_clear_all():
    sent = {"sent": {0, APART}, "underruns": {0}, "management_sent": {0, APART}, "management_held": {0}}
    of_program = run(100, sent, dropped={2}, disturbs={2}, clear_program={30})
    assert of_program == {
        "late": 0, "sent": 0, "underruns": 0, "disturbed": 0, "first_late": NO_SEQUENCE,
        "management_sent": 2, "management_held": 1, "management_dropped": 1,
    }
    everything = run(100, sent, dropped={2}, disturbs={2}, clear={30})
    assert set(everything.values()) == {0, NO_SEQUENCE}

@pytest.mark.parametrize("name", sorted(COUNTER_BITS))
def test_a_narrow_counter_stops_at_its_highest(monkeypatch, name):
    monkeypatch.setitem(counters.COUNTER_BITS, name, 3)
    strobe = {"management_dropped": "dropped", "disturbed": "disturbs"}.get(name)
    if strobe:
        assert run(200, **{strobe: set(range(5, 14))})[name] == 7
    else:
        assert run(APART*9, {name: {APART*n for n in range(9)}})[name] == 7

# Of each stream -----------------------------------------------------------------------------------

def run_sent(frames, clear_at=None, first=(0, 0, NO_SEQUENCE)):
    """Return (sent, late, first late) of each stream after ``frames``, (stream, sequence, late); each begins with ``first``."""
    dut = SentCounters()
    sent, late, first_late = first
    dut.memory.init = [sent & 2**32 - 1, sent >> 32, late, first_late]*STREAMS
    dut.seen.reset  = Constant(2**STREAMS - 1)
    found = {}
    def process():
        for number, (stream, sequence, is_late) in enumerate(frames):
            yield dut.stream.eq(stream)
            yield dut.sequence.eq(sequence)
            for cycle in range(33):
                yield dut.taken.eq(cycle == 2)
                yield dut.late.eq(cycle == 1 + number % 3 and is_late)
                yield dut.sent.eq(cycle == 5)
                yield dut.clear.eq((number, cycle) == clear_at)
                yield
                if cycle == 2:
                    yield dut.stream.eq(15 - stream) # The next one waits.
        for stream in range(STREAMS):
            words = []
            for word in range(SENT_WORDS):
                words.append((yield from dut.bus.read(SENT_WORDS*stream + word)))
            found[stream] = (words[1] << 32 | words[0], words[2], words[3])
    run_simulation(dut, process())
    return found

def expected_sent(frames, first=(0, 0, NO_SEQUENCE)):
    counts = dict.fromkeys(range(STREAMS), first)
    for stream, sequence, is_late in frames:
        sent, late, first_late = counts[stream]
        counts[stream] = (sent + 1, late + is_late, sequence if is_late and late == 0 else first_late)
    return counts

def test_frames_of_each_stream_are_counted_and_its_first_late_one_is_remembered():
    rng    = random.Random(6)
    frames = [(rng.randrange(STREAMS), rng.getrandbits(32), rng.random() < 0.3) for _ in range(100)]
    assert run_sent(frames) == expected_sent(frames)

def test_frames_sent_are_counted_in_64_bits():
    first  = (2**32 - 2, 5, 77)
    frames = [(stream, 1, True) for stream in (3, 3, 3, 4, 3)]
    assert run_sent(frames, first=first) == expected_sent(frames, first)

@pytest.mark.parametrize("cycle", range(18))
def test_a_clear_forgets_all_and_loses_no_frame_after_it(cycle):
    frames = [(stream % 3, stream, True) for stream in range(12)]
    found  = run_sent(frames, clear_at=(5, cycle), first=(7, 7, 7))
    # From the pulse that it is sent on a frame takes ten cycles.
    assert found == expected_sent(frames[5:] if cycle < 6 else frames[6:])
