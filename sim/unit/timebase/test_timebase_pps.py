# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The PPS input: stamps against the tick of the pin, counts against a model of events."""

import random

import pytest
from migen import *

from liteprobe.cores.timebase.clock import FRACTION_BITS, INCREMENT, TimebaseClock
from liteprobe.cores.timebase.pps import EARLY_BIT, SAMPLE_TICKS, PinSamples, PpsInput, edge_numbers
from liteprobe.sim.models.clock.pps import EARLY_TICKS, Outcome, Pulse, Settings, judge, seen as seen_in

ENABLED = 8
ODD = INCREMENT + 12_345_678_901  # ns per tick that is not a round number: 11 ns more a second.
EVENTS = ["accepted", "glitch", "missed", "spurious"]
CLOCKS = {"timebase": 8, "sys": 8}


class Bench(Module):
    """The input; ``pad`` is its pin, sampled as each tick ends. ``word``: of several samples, those of this tick."""

    def __init__(self, samples=1):
        self.submodules.clock = self.clock = TimebaseClock()
        self.submodules.pps = self.pps = PpsInput(self.clock, samples)
        if samples == 1:
            self.pad = Signal()
            self.submodules.pin = pin = PinSamples(self.pad)
            self.comb += self.pps.samples.eq(pin.samples)
            return
        self.word = word = Signal(samples)
        for _ in range(SAMPLE_TICKS):
            later = Signal(samples)
            self.sync.timebase += later.eq(word)
            word = later
        self.comb += self.pps.samples.eq(word)


class Seen:
    """Holds what was seen: the time of the pin's rises, each edge handed over, the ticks of each event."""

    def __init__(self):
        self.rises = []
        self.edges = []
        self.events = {name: [] for name in EVENTS}
        self.is_present = None

    def outcome(self, pulses):
        count = {name: len(ticks) for name, ticks in self.events.items()}
        return (count["accepted"], count["spurious"], count["glitch"], count["missed"], self.is_present)


def apply(settings, bench, invert=0):
    pps = bench.pps
    for name, value in [
        ("period", 8 * settings.period),
        ("min_width", settings.min_width),
        ("window", 8 * settings.window),
    ]:
        yield getattr(pps, name).eq(value)
    yield pps.invert.eq(invert)
    if hasattr(bench, "pad"):
        yield bench.pad.eq(invert)


def edge_of(pps):
    """Read the last edge, in ``sys``."""
    found = []
    for name in ("count", "now", "fraction", "ticks", "width", "flags"):
        value = 0
        for number in edge_numbers(name):
            yield pps.number.eq(number)
            yield
            value = value << 32 | (yield pps.word)
        found.append(value)
    return tuple(found)


@passive
def reader(pps, edges):
    """Read each edge that is handed over."""
    was_taken = 0
    while True:
        taken = yield pps.taken
        if taken and not was_taken:  # It may last for some cycles of ``sys``.
            for _ in range(3):
                yield
            edges.append((yield from edge_of(pps)))
        was_taken = taken
        yield


def run_pps(pulses, settings, end, increment=INCREMENT, invert=0):
    """Put ``pulses`` on the pin, ask for the last edge after each has ended, and return what was seen."""
    bench, seen = Bench(), Seen()
    pps = bench.pps
    high = {tick for pulse in pulses for tick in range(pulse.rise, pulse.rise + pulse.width)}
    asks = {pulse.rise + pulse.width + 12 for pulse in pulses}

    def process():
        yield from apply(settings, bench, invert)
        yield bench.clock.increment.eq(increment)
        yield  # The pin has its resting level.
        was = invert
        for tick in range(end):
            # Written now, it stands in the next tick.
            yield bench.pad.eq(((tick + 1) in high) ^ invert)
            yield pps.enable.eq(tick + 1 >= ENABLED)
            yield pps.take.eq(tick in asks)
            level = yield bench.pad
            if level != was and level != invert:
                clock = bench.clock
                seen.rises.append(
                    ((yield clock.now), (yield clock.fraction) >> (FRACTION_BITS - 32), (yield clock.ticks))
                )
            was = level
            for name in EVENTS:
                if (yield getattr(pps, name)):
                    seen.events[name].append(tick)
            yield
        seen.is_present = bool((yield pps.is_present))

    run_simulation(bench, {"timebase": process(), "sys": reader(pps, seen.edges)}, clocks=CLOCKS)
    return seen


def expected(model: Outcome):
    return (len(model.edges), len(model.spurious), model.glitches, model.missing, model.is_present)


# Stamps -------------------------------------------------------------------------------------------

@pytest.mark.parametrize("invert", [0, 1])
@pytest.mark.parametrize("increment", [INCREMENT, ODD, 7 * INCREMENT // 8 + 987_654_321])
def test_an_edge_has_the_time_and_ticks_of_the_tick_in_which_the_pin_rose(increment, invert):
    rng = random.Random(increment)
    pulses = []
    tick = 30
    for _ in range(12):
        pulses.append(Pulse(tick, rng.randrange(1, 40)))
        tick += pulses[-1].width + rng.randrange(16, 60)
    seen = run_pps(pulses, Settings(period=64), tick + 40, increment, invert)
    wanted = [(n + 1, *rise, pulse.width, 0) for n, (rise, pulse) in enumerate(zip(seen.rises, pulses, strict=True))]
    assert seen.edges == wanted


def test_the_last_edge_is_handed_over_whole_at_every_tick():
    """Two edges, and a question in each tick about the second: the answer is all of the first or all of the second."""
    first, second = Pulse(20, 5), Pulse(60, 5)

    def answer(ask, is_asked_before):
        bench = Bench()
        pps = bench.pps
        found = []

        def process():
            yield from apply(Settings(period=64, min_width=3), bench)
            yield pps.enable.eq(1)
            for tick in range(110):
                yield bench.pad.eq(any(p.rise <= tick + 1 < p.rise + p.width for p in (first, second)))
                yield pps.take.eq(tick == ask or (is_asked_before and tick == 40))
                yield

        run_simulation(bench, {"timebase": process(), "sys": reader(pps, found)}, clocks=CLOCKS)
        assert len(found) == 1 + is_asked_before
        return found[-1]

    for is_asked_before in (False, True):
        answers = [answer(ask, is_asked_before) for ask in range(58, 84)]
        counts = [count for count, *_ in answers]
        assert counts == sorted(counts) and set(counts) == {1, 2}
        (rise, _), (later, _) = sorted({(ticks, count) for count, _, _, ticks, _, _ in answers})
        assert later - rise == second.rise - first.rise
        for count, now, fraction, ticks, width, spurious in answers:
            assert (ticks, now, fraction, spurious) == (
                (rise, later)[count - 1],
                8 * (ticks - 1),
                0,
                0,
            )  # The sum starts a tick late.
            assert width == 5 if count == 1 else width in (4, 5)
        assert answers[-1][4] == 5


def test_an_edge_is_0_before_the_first_one_and_after_a_reset_again():
    bench = ResetInserter(["timebase"])(Bench())
    pps = bench.pps
    found = []

    def process():
        yield from apply(Settings(period=64, min_width=3), bench)
        yield pps.enable.eq(1)
        for tick in range(140):
            yield bench.pad.eq(50 <= tick < 56)
            yield pps.take.eq(tick in (20, 80, 120))
            yield bench.reset_timebase.eq(tick == 100)
            yield

    run_simulation(bench, {"timebase": process(), "sys": reader(pps, found)}, clocks=CLOCKS)
    assert [edge[0] for edge in found] == [0, 1, 0]
    assert found[0] == found[2] == (0,) * 6


@pytest.mark.parametrize("before", range(-6, 7))
def test_the_ticks_of_an_edge_borrow_from_their_high_word(before):
    """The low word of the counter wraps at any tick about the rise."""
    rise, wrap = 40, 5 * 2**32
    bench = Bench()
    pps = bench.pps
    found, truth = [], []

    def process():
        yield from apply(Settings(period=64, min_width=3), bench)
        yield pps.enable.eq(1)
        for tick in range(90):
            if tick == 10:
                yield bench.clock.ticks.eq(wrap - (rise - tick) + before)
            yield bench.pad.eq(rise <= tick + 1 < rise + 6)
            yield pps.take.eq(tick == 60)
            if tick == rise:
                truth.append((yield bench.clock.ticks))
            yield

    run_simulation(bench, {"timebase": process(), "sys": reader(pps, found)}, clocks=CLOCKS)
    assert [edge[3] for edge in found] == truth
    assert abs(truth[0] - wrap - before) <= 1


def test_an_edge_of_any_phase_lies_in_the_tick_of_its_stamp():
    """The pin has a clock of its own, 1/80 slower: every phase comes by. Times in 1/20 ns; the two never coincide."""
    tick, pin_period = 160, 162
    bench, truth, edges = Bench(), [], []
    pps = bench.pps

    def pin():
        yield from apply(Settings(period=64, min_width=3), bench)
        yield pps.enable.eq(1)
        for _ in range(8):
            yield
        for n in range(8, 8 + 81 * 23):
            # Written here, it stands from this clock's next edge on: n edges have been before it.
            yield bench.pad.eq(n % 23 >= 18)
            if n % 23 == 18:
                truth.append(pin_period // 2 + n * pin_period)
            yield

    @passive
    def watch():
        while True:
            yield pps.take.eq((yield pps.accepted))
            yield

    processes = {"timebase": watch(), "pin": pin(), "sys": reader(pps, edges)}
    run_simulation(bench, processes, clocks={"timebase": tick, "pin": pin_period, "sys": 40})
    found = [edge[3] for edge in edges]
    assert len(found) >= 80
    # Tick k begins with rising edge k - 1, at half a period and k - 1 whole ones.
    phases = [time - (tick // 2 + (ticks - 1) * tick) for time, ticks in zip(truth, found)]
    assert all(0 < phase < tick for phase in phases)
    assert len(set(phases)) == 80


# Samples ------------------------------------------------------------------------------------------

def run_samples(stream, samples, settings, invert=0):
    """Put a stream of samples on the pin, some a tick; return each edge as (count, tick of its rise, flags), and glitches."""
    bench, edges, origin, glitches = Bench(samples), [], [], []
    pps = bench.pps
    ticks = [stream[first : first + samples] for first in range(0, len(stream), samples)]
    words = [sum((bit ^ invert) << n for n, bit in enumerate(tick)) for tick in ticks]

    def process():
        yield from apply(settings, bench, invert)
        yield bench.word.eq(words[0])
        for _ in range(ENABLED):  # The pin has its resting level.
            yield
        yield pps.enable.eq(1)
        origin.append((yield bench.clock.ticks) + 1)
        for word in words:
            yield bench.word.eq(word)
            glitches.append((yield pps.glitch))
            yield pps.take.eq((yield pps.accepted))
            yield

    run_simulation(bench, {"timebase": process(), "sys": reader(pps, edges)}, clocks=CLOCKS)
    return [(count, ticks - origin[0], flags) for count, _, _, ticks, _, flags in edges], sum(glitches)


def pulses_in(stream, samples, settings):
    """Return what `run_samples` must return of the same stream."""
    pulses, early = seen_in(stream, samples)
    model = judge(pulses, settings, 0, len(stream) // samples)
    edges = [(count + 1, pulses[number].rise, early[number] << EARLY_BIT) for count, number in enumerate(model.edges)]
    return edges, model.glitches


@pytest.mark.parametrize("invert", [0, 1])
@pytest.mark.parametrize("samples", [2, 4])
def test_an_edge_tells_the_sample_with_which_the_pin_rose(samples, invert):
    """Each phase; before it nothing, or a glitch of each width at each distance, within its tick and before."""
    stream, wanted = [0] * 8 * samples, []
    for phase in range(samples):
        for before in [
            [],
            *[[1] * high + [0] * low for high in range(1, samples + 1) for low in range(1, samples + 2)],
        ]:
            stream += [0] * (-len(stream) % samples)
            stream += [0] * (4 * samples + phase - len(before)) + before
            wanted.append((len(stream) // samples, samples - 1 - phase))
            stream += [1] * 3 * samples + [0] * (22 * samples)
    stream += [0] * (-len(stream) % samples + 40 * samples)
    settings = Settings(period=64, min_width=3)
    found = run_samples(stream, samples, settings, invert)
    assert found == pulses_in(stream, samples, settings)
    clean = [(rise, flags >> EARLY_BIT) for _, rise, flags in found[0]]
    # A glitch that covers the last sample of the tick before is one pulse with what follows: no last sample is in the gap.
    apart = [not stream[samples * rise - 1] for rise, _ in wanted]
    assert [one for one, is_apart in zip(clean, apart, strict=True) if is_apart] == [
        one for one, is_apart in zip(wanted, apart, strict=True) if is_apart
    ]
    assert sum(apart) > len(apart) / 2
    assert {flags for _, flags in clean} == set(range(samples))


@pytest.mark.sample(5)
@pytest.mark.parametrize("seed", range(6))
def test_an_edge_of_any_samples_is_that_of_the_model(seed):
    print("seed", seed)
    rng = random.Random(seed)
    samples = rng.choice([2, 4])
    stream = [0] * 8 * samples
    for _ in range(12):
        for _ in range(rng.randrange(4)):  # A line that rings.
            stream += [1] * rng.randrange(1, 2 * samples) + [0] * rng.randrange(1, 2 * samples)
        stream += [1] * rng.randrange(3 * samples, 6 * samples) + [0] * rng.randrange(20 * samples, 30 * samples)
    stream += [0] * (-len(stream) % samples + 40 * samples)
    settings = Settings(period=64, min_width=rng.choice([1, 3]))
    edges, glitches = run_samples(stream, samples, settings, rng.randrange(2))
    wanted, others = pulses_in(stream, samples, settings)
    # Who asks for an edge as it is accepted reads the width of then; a later edge may have come before that.
    assert edges == [edge for edge in wanted if edge[0] in {count for count, *_ in edges}]
    assert (edges[-1], glitches) == (wanted[-1], others)


# Width --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("min_width", [1, 2, 3, 16])
def test_a_pulse_counts_from_its_least_width_on(min_width):
    widths = [min_width + more for more in (-1, 0, 1) if min_width + more > 0]
    pulses = [Pulse(40 + 60 * n, width) for n, width in enumerate(widths)]
    seen = run_pps(pulses, Settings(period=100, min_width=min_width), 40 + 60 * len(widths))
    assert len(seen.events["accepted"]) == sum(width >= min_width for width in widths)
    assert len(seen.events["glitch"]) == sum(width < min_width for width in widths)
    last = [width for width in widths if width >= min_width]
    assert [edge[4] for edge in seen.edges if edge[0]] == last


def test_a_glitch_right_after_a_pulse_changes_nothing_of_the_edge():
    pulses = [Pulse(30, 20), *[Pulse(51 + 2 * n, 1) for n in range(10)]]
    seen = run_pps(pulses, Settings(period=100, min_width=4), 100)
    assert (len(seen.events["accepted"]), len(seen.events["glitch"])) == (1, 10)
    assert {edge[1:] for edge in seen.edges} == {(*seen.rises[0], 20, 0)}


@pytest.mark.parametrize("min_width", [0, 1, 3])
@pytest.mark.parametrize("low", range(1, EARLY_TICKS + 4))
def test_a_pulse_that_begins_before_the_last_edge_is_stored_is_a_glitch(low, min_width):
    width = max(1, min_width)
    pulses = [Pulse(30, width), Pulse(30 + width + low, 20)]
    seen = run_pps(pulses, Settings(period=100, min_width=min_width), 100)
    is_two = low > EARLY_TICKS
    assert (len(seen.events["accepted"]), len(seen.events["glitch"])) == (1 + is_two, 1 - is_two)
    assert seen.outcome(pulses) == expected(judge(pulses, Settings(100, min_width), ENABLED, 100))
    assert seen.edges[-1] == (1 + is_two, *seen.rises[is_two], 20 if is_two else width, 0)


def test_a_pulse_that_is_there_at_the_start_does_not_count():
    seen = run_pps([Pulse(0, 60), Pulse(90, 10)], Settings(period=200), 150)
    assert (len(seen.events["accepted"]), len(seen.events["glitch"])) == (1, 0)
    assert seen.edges[-1][1:4] == seen.rises[-1]


# PpsWatchdog -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("off", [-7, -6, -5, 0, 5, 6, 7])
@pytest.mark.parametrize("skipped", [0, 1, 2])
def test_an_edge_is_spurious_beyond_the_window_and_not_within(off, skipped):
    period, window = 130, 6
    pulses = [Pulse(20, 4), Pulse(20 + (1 + skipped) * period + off, 4)]
    settings = Settings(period, min_width=3, window=window)
    seen = run_pps(pulses, settings, 60 + (1 + skipped) * period)
    assert len(seen.events["spurious"]) == (abs(off) > window)
    assert len(seen.events["missed"]) == skipped
    assert [edge[5] for edge in seen.edges] == [0, int(abs(off) > window)]


def test_a_new_phase_is_taken_after_four_periods_without_the_old_one():
    period = 100
    old, new = [Pulse(20 + period * n, 4) for n in range(3)], [Pulse(360 + period * n, 4) for n in range(8)]
    settings = Settings(period, window=5)
    seen = run_pps(old + new, settings, 1100)
    model = judge(old + new, settings, ENABLED, 1100)
    assert model.spurious == [3, 4, 5, 6]  # Then the phase is the new one's.
    assert seen.outcome(old + new) == expected(model)


@pytest.mark.sample(5)
@pytest.mark.parametrize("seed", range(6))
def test_counts_are_those_of_the_model(seed):
    print("seed", seed)
    rng = random.Random(seed)
    settings = Settings(rng.choice([96, 125, 200]), min_width=rng.choice([1, 4, 9]), window=rng.choice([0, 3, 10]))
    pulses = []
    for n in range(1, 16):
        if rng.random() < 0.3:
            continue
        jitter = rng.choice([0, 0, 1, -1, 4, -4, 12, -12])
        pulses.append(Pulse(n * settings.period + jitter, rng.randrange(1, 12)))
    end = 17 * settings.period - 20
    seen = run_pps(pulses, settings, end)
    assert seen.outcome(pulses) == expected(judge(pulses, settings, ENABLED, end))


def test_a_period_is_missed_half_a_period_late_and_presence_ends_there():
    period = 400
    seen = run_pps([Pulse(20, 4)], Settings(period), 20 + 4 * period)
    assert [round((tick - 20) / period, 1) for tick in seen.events["missed"]] == [1.5, 2.5, 3.5]
    assert not seen.is_present
    assert run_pps([Pulse(20, 4)], Settings(period), 20 + period).is_present


def test_an_edge_sets_the_phase_even_where_a_lap_ends():
    """The second edge comes 1.5 periods late, less or more: the next period is missed 1.5 periods after it, always."""
    period = 64
    for off in range(-8, 9):
        second = Pulse(20 + 3 * period // 2 + off, 4)
        seen = run_pps([Pulse(20, 4), second], Settings(period), second.rise + 2 * period)
        assert abs(seen.events["missed"][-1] - second.rise - 3 * period // 2) <= 8, off
