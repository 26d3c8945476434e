# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Stamps of arrival: the tick they tell, and which frame gets which, whatever is lost on the way."""

import random

import pytest
from migen import passive, run_simulation

from liteprobe.cores.receive.stamp import ArrivalStamper, StampPairing

CLOCKS = {"sys": 20, "timebase": 8, "eth_rx": 8}
WANTED, OTHER = {"is_wanted": 1}, {"is_wanted": 0}


def pair(reports, stamps, spacing=8):
    """Report frames ``(number, kind)``, one each ``spacing`` cycles, with ``stamps`` (number, ns) in waiting.

    Returns [(frame, stamp)] as they were paired, and how many stamps are left.
    ``frame`` is the place in ``reports`` of the last one reported before.
    """
    dut = StampPairing()
    queue = list(stamps)
    paired, present = [], []

    def report():
        for place, (number, kind) in enumerate(reports):
            for name, value in {"report": 1, "number": number % 16, **kind}.items():
                yield getattr(dut, name).eq(value)
            yield
            present.append(place)
            yield dut.report.eq(0)
            for _ in range(spacing - 1):
                yield
        for _ in range(20):
            yield

    @passive
    def feed():
        while True:
            yield dut.stamps.valid.eq(bool(queue))
            if queue:
                yield dut.stamps.number.eq(queue[0][0] % 16)
                yield dut.stamps.stamp.eq(queue[0][1])
            yield
            if (yield dut.stamps.valid) and (yield dut.stamps.ready):
                queue.pop(0)

    @passive
    def watch():
        while True:
            yield
            if (yield dut.paired):
                paired.append((present[-1], (yield dut.stamp)))

    run_simulation(dut, [report(), feed(), watch()])
    return paired, len(queue)


def stamp_of(number):
    return 0x1122334455667788 + 1000 * number


def stamps_of(numbers):
    return [(number, stamp_of(number)) for number in numbers]


def test_each_probe_frame_gets_the_stamp_of_its_number_through_every_wrap():
    assert pair([(number, WANTED) for number in range(40)], stamps_of(range(40))) == (
        [(number, stamp_of(number)) for number in range(40)],
        0,
    )


@pytest.mark.parametrize("lost", range(20))
def test_a_lost_stamp_shifts_no_other(lost):
    numbers = [number for number in range(20) if number != lost]
    paired, left = pair([(number, WANTED) for number in range(20)], stamps_of(numbers))
    assert paired == [(number, stamp_of(number)) for number in numbers]
    assert left == 0


@pytest.mark.parametrize("stale", range(8))
def test_stamps_of_frames_that_nobody_reported_are_thrown_away(stale):
    """Up to seven: beyond, a number would look as if it were ahead."""
    paired, left = pair([(0, WANTED), (1 + stale, WANTED)], stamps_of(range(2 + stale)), spacing=12)
    assert paired == [(0, stamp_of(0)), (1, stamp_of(1 + stale))]
    assert left == 0


def test_frames_whose_stamp_is_not_wanted_take_it_and_show_it_to_nobody():
    kinds = [OTHER, WANTED, OTHER, OTHER, WANTED, OTHER, OTHER, WANTED]
    paired, left = pair(list(enumerate(kinds)), stamps_of(range(8)))
    assert paired == [(place, stamp_of(place)) for place in (1, 4, 7)]
    assert left == 0


@pytest.mark.parametrize("kind", [WANTED, OTHER])
def test_a_stamp_that_belongs_to_a_frame_to_come_is_left_for_it(kind):
    assert pair([(3, kind)], []) == ([], 0)
    assert pair([(3, kind)], stamps_of([4])) == ([], 1)


def test_a_report_in_the_midst_of_stale_stamps_replaces_the_frame_that_still_looks_for_its_own():
    paired, _ = pair([(6, WANTED), (7, WANTED)], stamps_of(range(8)), spacing=3)
    assert paired == [(1, stamp_of(7))]


def test_pairing_takes_two_cycles_and_reports_may_come_every_second_one():
    """The next report may stand in the very cycle in which the last one is paired."""
    paired, left = pair([(number, WANTED) for number in range(30)], stamps_of(range(30)), spacing=2)
    assert [stamp for _, stamp in paired] == [stamp_of(number) for number in range(30)]
    assert left == 0


def test_random_losses_on_both_sides_end_as_in_the_plain_model():
    seed = 7
    rng = random.Random(seed)
    reports, stamps, number = [], [], 0
    for _ in range(150):
        number += rng.choice([1, 1, 1, 2, 3])
        kind = rng.choice([WANTED, WANTED, OTHER])
        fate = rng.randrange(10)
        if fate != 0:
            stamps.append((number, stamp_of(number)))
        if fate != 1:
            reports.append((number, kind))
    known = dict(stamps)
    expected = [
        (place, known[number]) for place, (number, kind) in enumerate(reports) if kind["is_wanted"] and number in known
    ]
    assert pair(reports, stamps, spacing=16)[0] == expected, f"seed {seed}"
    assert 40 < len(expected) < 100


def stamp_arrivals(ticks, is_read=True, cycles=200):
    """Raise ``sfd`` in these ticks of one clock for timebase and eth_rx; return ([(number, stamp)], now in each tick)."""
    dut = ArrivalStamper()
    seen, nows = [], []

    def drive():
        for tick in range(max(ticks) + 40):
            yield dut.past.eq(5000 + 8 * (tick - dut.past_ticks))
            yield dut.sfd.eq(tick in ticks)
            nows.append(5000 + 8 * tick)
            yield

    def read():
        for cycle in range(cycles):
            yield dut.source.ready.eq(is_read or cycle > cycles // 2)
            yield
            if (yield dut.source.valid) and (yield dut.source.ready):
                seen.append(((yield dut.source.number), (yield dut.source.stamp)))

    run_simulation(dut, {"eth_rx": drive(), "sys": read()}, clocks=CLOCKS)
    return seen, nows


def test_a_stamp_is_the_tick_before_sfd_in_which_the_octet_stood_at_the_phy():
    ticks = [3, 11, 19, 40, 48, 100, 171, 300]
    seen, nows = stamp_arrivals(ticks, cycles=170)
    assert seen == [(place + 1, nows[tick] - 8) for place, tick in enumerate(ticks)]


def test_stamps_that_nobody_reads_are_kept_up_to_sixteen_and_the_oldest_first():
    ticks = [8 * place + 3 for place in range(24)]
    seen, nows = stamp_arrivals(ticks, is_read=False)
    assert 16 <= len(seen) <= 17 # One more may stand in the output register.
    assert seen == [((place + 1) % 16, nows[tick] - 8) for place, tick in enumerate(ticks[: len(seen)])]
