# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What a transmit port counts, against a dict."""

import random

import pytest
from migen import *

from liteprobe.cores.formats import NO_SEQUENCE
from liteprobe.cores.transmit import counters
from liteprobe.cores.transmit.counters import COUNTER_BITS, EVENTS, TransmitCounters

APART = 20 # Ticks; a slot is longer.

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
        for name in [*EVENTS, "management_dropped", "disturbed", "first_late"]:
            found[name] = yield getattr(dut, name)
    run_simulation(dut, {"timebase": events(), "sys": host()}, clocks={"timebase": 8, "sys": (20, 3)})
    return found

def test_every_event_is_counted_once_and_no_other():
    rng    = random.Random(5)
    pulses = {name: {APART*n for n in range(60) if rng.random() < 0.5} for name in EVENTS if name != "late"}
    found  = run(APART*60, pulses, dropped={3, 4, 5, 90}, disturbs={7, 8})
    expected = {name: len(ticks) for name, ticks in pulses.items()} | {"late": 0, "first_late": NO_SEQUENCE}
    assert found == expected | {"management_dropped": 4, "disturbed": 2}

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
