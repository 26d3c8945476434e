# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""TAI beside a second witness: UBX-TIM-TP against NMEA, leap seconds that nobody saw, and the count of the pulses first."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from numpy.typing import NDArray

from liteprobe.sim.drivers.clock.clock_runs import UNSURE, WRONG, Feed
from liteprobe.sim.models.clock.receiver import rmc, tim_tp

TAI_UTC = 37
START = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
LEAP = datetime(2027, 1, 1, tzinfo=UTC)  # A second 60 before it, in these tests.
GPS, IN_UTC = 18, None
Witness = Callable[[int, datetime], bytes]


def nobody(_: int, __: datetime) -> bytes:
    """Return what a receiver without TIM-TP says."""
    return b""


def in_gps(_: int, utc: datetime) -> bytes:
    return tim_tp(utc, 0, gps_utc=GPS)


def in_utc(_: int, utc: datetime) -> bytes:
    return tim_tp(utc, 0)


def tai(utc: datetime, tai_utc: int = TAI_UTC) -> int:
    return int(utc.timestamp()) + tai_utc


def run(
    count: int,
    nmea: Callable[[int, datetime], bytes],
    witness: Witness = nobody,
    start: datetime = START,
    has_pulse: Callable[[int], bool] = lambda _: True,
) -> NDArray[np.void]:
    """Return what is known after each second: its pulse, a sentence, and TIM-TP about the next pulse."""
    feed, looks = Feed(), []
    for number in range(count):
        at_ms, utc = 5000 + 1000 * number, start + timedelta(seconds=number)
        if has_pulse(number):
            feed.pulse(at_ms)
        feed.octets(at_ms + 150, nmea(number, utc) if has_pulse(number) else b"")
        feed.octets(at_ms + 300, witness(number + 1, utc + timedelta(seconds=1)))
        looks.append(len(feed._records) - 1)
    return feed.run()[looks]


# NMEA lies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("witness", [nobody, in_gps, in_utc])
@pytest.mark.parametrize("seconds", [-1, 1, 60])
def test_a_minute_of_wrong_sentences_moves_nothing_and_is_reported(witness: Witness, seconds: int) -> None:
    found = run(120, lambda n, utc: rmc(utc + timedelta(seconds=seconds * (20 <= n < 80))), witness)
    assert found["tai"][3:].tolist() == [tai(START) + number for number in range(3, 120)]
    assert (found["faults"][20:80] == WRONG).all() and not found["faults"][80:].any()
    assert (found["corrections"][-1], found["tai_utc"][-1]) == (0, TAI_UTC)


@pytest.mark.parametrize("witness", [in_gps, in_utc])
def test_a_witness_for_the_known_second_holds_against_any_number_of_sentences(witness: Witness) -> None:
    found = run(800, lambda n, utc: rmc(utc + timedelta(seconds=n >= 20)), witness)
    assert (found["tai"][-1], found["faults"][-1]) == (tai(START) + 799, WRONG)


@pytest.mark.parametrize("witness", [in_gps, in_utc])
def test_two_witnesses_that_agree_for_ten_pulses_move_tai(witness: Witness) -> None:
    """The first sentences were 3 s late, as of a receiver that was busy; no TIM-TP by then."""
    found = run(
        60,
        lambda n, utc: rmc(utc - timedelta(seconds=3 * (n < 20))),
        lambda n, utc: witness(n, utc) if n >= 20 else b"",
    )
    assert found["tai"][19] == tai(START) + 16
    moved = int(np.argmax(found["tai"] == np.arange(60) + tai(START)))
    assert 29 <= moved <= 31 and found["corrections"][-1] == 1 and not found["faults"][moved:].any()


def test_a_witness_that_lags_by_a_pulse_is_not_believed() -> None:
    """Each message is about the pulse before: neither a leap second nor a reason to move."""
    found = run(60, lambda _, utc: rmc(utc), lambda _, utc: tim_tp(utc - timedelta(seconds=1), 0, gps_utc=GPS))
    assert (found["tai"][-1], found["tai_utc"][-1], found["faults"][-1]) == (tai(START) + 59, TAI_UTC, 0)


@pytest.mark.parametrize("seed", range(3))
def test_a_witness_that_talks_nonsense_moves_nothing(seed: int) -> None:
    generator = random.Random(seed)

    def nonsense(_: int, utc: datetime) -> bytes:
        off = timedelta(seconds=generator.choice([-604_800, 604_800, 7, 1, 2, -1000, 0.5]))
        return tim_tp(utc + off, 0, gps_utc=generator.choice([GPS, None, 4]), reference=generator.choice([0, 2, 3, 15]))

    found = run(300, lambda _, utc: rmc(utc), nonsense)
    assert found["tai"][3:].tolist() == [tai(START) + number for number in range(3, 300)]
    assert found["tai_utc"][-1] == TAI_UTC


def test_a_witness_against_what_is_sure_is_reported() -> None:
    """Until June there can have been no leap second: one of the two is wrong, and TAI stays."""
    found = run(60, lambda _, utc: rmc(utc), lambda n, utc: tim_tp(utc, 0, gps_utc=GPS + (n >= 20)))
    assert (found["tai"][-1], found["tai_utc"][-1], found["faults"][-1]) == (tai(START) + 59, TAI_UTC, WRONG)


# Leap seconds that nobody saw ---------------------------------------------------------------------


def leaping(number: int, utc: datetime) -> datetime:
    """Return UTC after a leap second at LEAP, of a time that counts none."""
    return utc - timedelta(seconds=utc > LEAP)


def silent(number: int) -> bool:
    """Whether the receiver says nothing over the end of the year."""
    return 20 <= number < 200


@pytest.mark.parametrize("witness", [nobody, in_gps])
def test_a_leap_second_while_the_receiver_is_silent_moves_utc_and_not_tai(witness: Witness) -> None:
    """Pulses go on: TAI is counted."""
    start = LEAP - timedelta(seconds=60)

    def witnessed(number: int, utc: datetime) -> bytes:
        return b"" if silent(number) or witness is nobody else tim_tp(utc, 0, gps_utc=GPS)

    found = run(300, lambda n, utc: b"" if silent(n) else rmc(leaping(n, utc)), witnessed, start)
    assert found["tai"][3:].tolist() == [tai(start) + number for number in range(3, 300)]
    assert found["tai_utc"][-1] == TAI_UTC + 1
    # Without TIM-TP nobody knows what was in the half year before.
    assert found["faults"][-1] == (UNSURE if witness is nobody else 0)


@pytest.mark.parametrize(("witness", "is_right"), [(nobody, False), (in_utc, False), (in_gps, True)])
def test_a_leap_second_in_an_outage_or_before_a_reboot_is_seen_by_gps_time_or_reported(
    witness: Witness, is_right: bool
) -> None:
    """An hour after it, with the TAI - UTC of before."""
    start = LEAP + timedelta(hours=1)

    def witnessed(number: int, utc: datetime) -> bytes:
        return witness(number, utc) if witness is not in_gps else tim_tp(utc, 0, gps_utc=GPS + 1)

    found = run(30, lambda _, utc: rmc(utc), witnessed, start)
    assert found["is_known"][3:].all()
    if is_right:
        assert (found["tai"][-1], found["tai_utc"][-1], found["faults"][-1]) == (tai(start, 38) + 29, 38, 0)
    else:
        assert (found["tai_utc"][-1], found["faults"][-1]) == (37, UNSURE)


def test_an_outage_with_a_leap_second_in_it_is_mended_by_gps_time() -> None:
    """No pulse for ten minutes: the second is learnt anew."""
    start = LEAP - timedelta(seconds=60)
    found = run(
        800,
        lambda n, utc: rmc(leaping(n, utc)),
        lambda _, utc: tim_tp(utc, 0, gps_utc=GPS),
        start,
        lambda n: not 20 <= n < 620,
    )
    assert (found["tai"][-1], found["tai_utc"][-1], found["faults"][-1]) == (tai(start) + 799, 38, 0)


def test_without_gps_time_a_second_that_was_counted_over_the_half_year_stays_sure() -> None:
    """From before the end of June to after it, pulse by pulse."""
    start = datetime(2026, 6, 30, 23, 59, 30, tzinfo=UTC)
    found = run(90, lambda _, utc: rmc(utc), start=start)
    assert not found["faults"][3:].any() and found["tai"][-1] == tai(start) + 89


def test_gps_time_that_comes_later_makes_sure() -> None:
    start = datetime(2026, 9, 1, tzinfo=UTC)
    found = run(60, lambda _, utc: rmc(utc), lambda n, utc: in_gps(n, utc) if n >= 30 else b"", start)
    assert (found["faults"][3:30] == UNSURE).all() and not found["faults"][31:].any()


def test_a_leap_second_that_gps_time_shows_later_moves_tai_by_it() -> None:
    start = LEAP + timedelta(hours=1)
    found = run(60, lambda _, utc: rmc(utc), lambda n, utc: tim_tp(utc, 0, gps_utc=19) if n >= 20 else b"", start)
    assert found["tai"][19] == tai(start) + 19
    assert (found["tai"][-1], found["tai_utc"][-1], found["faults"][-1]) == (tai(start, 38) + 59, 38, 0)
    assert found["corrections"][-1] == 1


@pytest.mark.parametrize(("pulses", "leaps"), [(1, 0), (9, 0), (10, 1), (11, 1)])
def test_a_leap_second_is_believed_once_gps_time_has_shown_it_for_ten_pulses(pulses: int, leaps: int) -> None:
    start = LEAP + timedelta(hours=1)

    def shown(number: int, utc: datetime) -> bytes:
        return tim_tp(utc, 0, gps_utc=GPS + 1) if 20 <= number < 20 + pulses else b""

    found = run(60, lambda _, utc: rmc(utc), shown, start)
    assert found["tai"][28] == tai(start) + 28
    assert (found["tai"][-1], found["tai_utc"][-1]) == (tai(start, TAI_UTC + leaps) + 59, TAI_UTC + leaps)
    assert (found["corrections"][-1], found["faults"][-1]) == (leaps, 0 if leaps else UNSURE)


@pytest.mark.parametrize("weeks", [-1024, 1024])
def test_a_receiver_that_lost_count_of_the_weeks_agrees_with_itself(weeks: int) -> None:
    wrong = timedelta(weeks=weeks)
    found = run(60, lambda _, utc: rmc(utc + wrong), lambda _, utc: tim_tp(utc + wrong, 0, gps_utc=GPS))
    assert (found["tai"][-1], found["faults"][-1], found["rollovers"][-1]) == (tai(START) + 59, 0, 60)
