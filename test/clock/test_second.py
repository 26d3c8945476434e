# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The second that a pulse begins: NMEA against pulses, with garbage, leap seconds, lies and silence; beside a second witness."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from numpy.typing import NDArray

from liteprobe.sim.drivers.clock.clock_runs import LEAP, NO_FIX, NO_NMEA, NO_PPS, UNKNOWN, UNSURE, WRONG, Feed
from liteprobe.sim.models.clock.receiver import clock_text, gga, rmc, sentence, tim_tp, utc_of, zda

TAI_UTC = 37
START = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
Sentences = Callable[[int, datetime], bytes]


def tai(utc: datetime, tai_utc: int = TAI_UTC) -> int:
    """Return the TAI second (since 1970-01-01 TAI) that begins at ``utc``."""
    return int(utc.timestamp()) + tai_utc


def seconds(count: int, sentences: Sentences, start: datetime = START, delay_ms: int = 150) -> Feed:
    """Return ``count`` pulses, a second apart, with sentences after each."""
    feed = Feed()
    for number in range(count):
        feed.pulse(5000 + 1000 * number)
        feed.octets(5000 + 1000 * number + delay_ms, sentences(number, start + timedelta(seconds=number)))
    return feed


@pytest.mark.parametrize("make", [rmc, zda])
def test_three_sentences_that_agree_with_the_pulses_name_the_second(make: Callable[[datetime], bytes]) -> None:
    answers = seconds(5, lambda _, utc: make(utc)).run()[1::2]
    assert answers["is_known"].tolist() == [0, 0, 1, 1, 1]
    assert answers["tai"][2:].tolist() == [tai(START) + number for number in (2, 3, 4)]
    assert answers["faults"].tolist() == [UNKNOWN, UNKNOWN, 0, 0, 0]


@pytest.mark.parametrize(
    "utc",
    [
        datetime(2028, 2, 29, 23, 59, 58, tzinfo=UTC),
        datetime(2099, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2025, 1, 1, tzinfo=UTC),
    ],
)
def test_dates_are_those_of_the_calendar(utc: datetime) -> None:
    make = rmc if utc.year < 2099 else zda
    answers = seconds(5 if utc.year < 2099 else 4, lambda _, now: make(now), utc).run(
        TAI_UTC, utc, datetime(utc.year, 1, 1, tzinfo=UTC)
    )
    assert answers["tai"][-1] == tai(utc) + len(answers) // 2 - 1
    assert answers["is_known"][-1] == 1
    assert answers["malformed"][-1] == 0


def test_gga_has_no_date_and_can_only_confirm() -> None:
    alone = seconds(8, lambda _, utc: gga(utc)).run()
    assert not alone["is_known"].any()
    after = seconds(20, lambda number, utc: rmc(utc) if number < 5 else gga(utc)).run()
    assert (after["is_known"][-1], after["faults"][-1], after["tai"][-1]) == (1, 0, tai(START) + 19)
    lying = seconds(20, lambda number, utc: rmc(utc) if number < 5 else gga(utc + timedelta(seconds=1))).run()
    assert lying["faults"][-1] & WRONG and not lying["corrections"][-1]


def test_all_sentences_of_a_second_are_one_vote() -> None:
    answers = seconds(2, lambda _, utc: rmc(utc) + zda(utc) + rmc(utc)).run()
    assert not answers["is_known"].any()


# Lies ---------------------------------------------------------------------------------------------


def test_one_wrong_second_changes_nothing_and_is_reported() -> None:
    answers = seconds(20, lambda number, utc: rmc(utc + timedelta(seconds=number == 10))).run()[1::2]
    assert answers["faults"].tolist() == [UNKNOWN] * 2 + [0] * 8 + [WRONG] + [0] * 9
    assert answers["tai"][-1] == tai(START) + 19
    assert (answers["wrong"][-1], answers["corrections"][-1]) == (1, 0)


def test_ten_minutes_of_wrong_seconds_that_agree_correct_the_second() -> None:
    """Of a receiver without TIM-TP, whose first sentences were wrong."""
    answers = seconds(630, lambda number, utc: rmc(utc - timedelta(seconds=3 * (number < 12)))).run()[1::2]
    assert answers["tai"][11] == tai(START) + 8
    assert answers["faults"][12:611].tolist() == [WRONG] * 599
    assert answers["tai"][611] == tai(START) + 611
    assert (answers["corrections"][-1], answers["faults"][-1]) == (1, 0)


def test_seconds_that_contradict_each_other_are_never_known() -> None:
    generator = random.Random(4)
    answers = seconds(60, lambda _, utc: rmc(utc + timedelta(seconds=generator.randint(-1000, 1000)))).run()
    assert not answers["is_known"].any()


def test_a_receiver_without_a_fix_is_not_believed() -> None:
    answers = seconds(10, lambda _, utc: rmc(utc, is_valid=False) + zda(utc)).run()
    assert not answers["is_known"].any()
    assert answers["faults"][-1] == NO_FIX | UNKNOWN
    assert answers["times"][-1] == 20


@pytest.mark.parametrize(
    "void",
    [
        sentence("GNRMC,,V,,,,,,,,,,N"),  # No antenna since it was switched on.
        sentence("GNRMC,120000.00,V,,,,,,,,,,N"),
        sentence("GNGGA,,,,,,0,00,99.99,,,,,,"),
        rmc(START, is_valid=False),
    ],
)
def test_a_receiver_without_an_antenna_talks_and_has_no_fix(void: bytes) -> None:
    """Not to be mistaken for a wire that is cut: it leaves the time empty, or runs on by itself."""
    answers = seconds(10, lambda _, __: void).run()
    assert not answers["is_known"].any()
    assert answers["faults"][-1] == NO_FIX | UNKNOWN
    lost = seconds(20, lambda number, utc: rmc(utc) if number < 10 else void).run()[1::2]
    assert (lost["tai"][-1], lost["faults"][9], lost["faults"][-1]) == (tai(START) + 19, 0, NO_FIX)


@pytest.mark.parametrize("weeks", [-1024, 1024, 2048])
def test_a_week_count_that_wrapped_is_put_right_and_counted(weeks: int) -> None:
    wrong = timedelta(weeks=weeks)
    make = zda if weeks > 1024 else rmc
    answers = seconds(10, lambda _, utc: make(utc + wrong)).run()
    assert (answers["is_known"][-1], answers["rollovers"][-1], answers["faults"][-1]) == (1, 10, 0)
    assert answers["tai"][-1] == tai(START) + 9


# Leap seconds -------------------------------------------------------------------------------------


def leaping(extra: int, shows_60: bool) -> Sentences:
    """Return the sentences around the end of June 2026 with a second more or less; second 8 is the extra one."""
    end = datetime(2026, 6, 30, 23, 59, 52, tzinfo=UTC)

    def sentences(number: int, _: datetime) -> bytes:
        if extra > 0 and number == 8:
            last = end + timedelta(seconds=7)
            return rmc(last, leap=True) if shows_60 else rmc(last)
        late = number >= (9 if extra > 0 else 7)
        return rmc(end + timedelta(seconds=number - extra * late))

    return sentences


@pytest.mark.parametrize(("extra", "shows_60"), [(1, True), (1, False), (-1, False)])
def test_a_leap_second_moves_tai_minus_utc_and_not_the_pulse(extra: int, shows_60: bool) -> None:
    start = datetime(2026, 6, 30, 23, 59, 52, tzinfo=UTC)
    answers = seconds(30, leaping(extra, shows_60)).run()[1::2]
    assert answers["tai"][3:].tolist() == [tai(start) + number for number in range(3, 30)]
    assert answers["tai_utc"][-1] == TAI_UTC + extra
    assert (answers["faults"][-1], answers["corrections"][-1]) == (0, 0)
    assert bool(answers["faults"][8] & LEAP) == (extra > 0 and shows_60)


def test_a_shift_of_a_second_at_another_time_is_no_leap() -> None:
    answers = seconds(30, lambda number, utc: rmc(utc - timedelta(seconds=number >= 10))).run()[1::2]
    assert answers["tai_utc"][-1] == TAI_UTC
    assert (answers["corrections"][-1], answers["faults"][-1]) == (0, WRONG)
    assert answers["tai"][-1] == tai(START) + 29


# Silence ------------------------------------------------------------------------------------------


def test_pulses_without_sentences_keep_the_second_and_say_so() -> None:
    answers = seconds(30, lambda number, utc: rmc(utc) if number < 10 else b"").run()[1::2]
    assert answers["tai"][-1] == tai(START) + 29
    assert answers["faults"][-1] == NO_NMEA
    assert answers["is_known"][-1] == 1


def test_sentences_without_pulses_name_nothing() -> None:
    feed = Feed()
    for number in range(20):
        feed.octets(5150 + 1000 * number, rmc(utc_of(int(START.timestamp()) + number)))
    answers = feed.run()
    assert not answers["is_known"].any()
    assert answers["faults"][-1] == NO_PPS | UNKNOWN
    assert answers["unassigned"][-1] == 20


@pytest.mark.parametrize(("gap_s", "is_known"), [(1, 1), (60, 1), (299, 1), (400, 0)])
def test_missing_pulses_are_counted_over_as_long_as_the_clock_allows(gap_s: int, is_known: int) -> None:
    feed = seconds(5, lambda _, utc: rmc(utc))
    feed.pulse(9000 + 1000 * gap_s + 7)
    answers = feed.run()
    assert answers["is_known"][-1] == is_known
    if is_known:
        assert answers["tai"][-1] == tai(START) + 4 + gap_s


def test_a_pulse_off_the_grid_is_counted_and_moves_nothing() -> None:
    feed = seconds(5, lambda _, utc: rmc(utc))
    feed.pulse(9400)
    feed.pulse(10000)
    answers = feed.run()
    assert answers["spurious"][-2:].tolist() == [1, 1]
    assert (answers["tai"][-1], answers["is_known"][-1]) == (tai(START) + 5, 1)


def test_a_grid_that_moved_is_learnt_anew() -> None:
    feed = seconds(5, lambda _, utc: rmc(utc))
    for number in range(12):
        feed.pulse(10500 + 1000 * number)
        feed.octets(10700 + 1000 * number, rmc(START + timedelta(seconds=6 + number)))
    answers = feed.run()
    assert 0 in answers["is_known"][12:].tolist()
    assert (answers["tai"][-1], answers["is_known"][-1]) == (tai(START) + 17, 1)


@pytest.mark.parametrize("delay_ms", [2, 950])
def test_a_sentence_whose_second_isnt_clear_is_not_used(delay_ms: int) -> None:
    answers = seconds(10, lambda _, utc: rmc(utc), delay_ms=delay_ms).run()
    assert not answers["is_known"].any()
    assert answers["unassigned"][-1] == 10


# Garbage ------------------------------------------------------------------------------------------

UTC_TEXT = clock_text(START)
BAD = [
    sentence(f"GNRMC,{UTC_TEXT},A,,,,,,,040326").replace(b"*", b"#"),
    sentence(f"GNRMC,{UTC_TEXT},A,,,,,,,040326")[:-4] + b"00\r\n",
    sentence(f"GNRMC,{UTC_TEXT},A,,,,,,,040326")[:30] + b"\r\n",
    sentence(f"GNRMC,{UTC_TEXT},A,{'5' * 80},,,,,,040326"),
    sentence("GNRMC,246000.00,A,,,,,,,040326"),
    sentence("GNRMC,120060.00,A,,,,,,,040326"),
    sentence("GNRMC,120000.50,A,,,,,,,040326"),
    sentence("GNRMC,120000x,A,,,,,,,040326"),
    sentence("GNRMC,12000,A,,,,,,,040326"),
    sentence("GNRMC,,A,,,,,,,,,,N"),
    sentence("GNRMC,,V"),
    sentence(f"GNRMC,{UTC_TEXT},A,,,,,,,310426"),
    sentence(f"GNRMC,{UTC_TEXT},A,,,,,,,290227"),
    sentence(f"GNRMC,{UTC_TEXT},A,,,,,,,001326"),
    sentence(f"GNRMC,{UTC_TEXT},A,,,,,,,04032"),
    sentence(f"GNRMC,{UTC_TEXT},A"),
    sentence(f"GNZDA,{UTC_TEXT},4,3,2026,00,00"),
    sentence(f"GNGGA,{UTC_TEXT},,"),
    sentence("GN"),
    sentence(""),
    b"$*00\r\n",
    b"$$$$\r\n",
    b"\x00\xff$GN\x80RMC\r\n",
]


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_sentence_tells_no_time_and_the_next_good_one_does(bad: bytes) -> None:
    feed = Feed()
    feed.octets(0, bad)
    feed.octets(1, rmc(START))
    assert feed.run()["times"].tolist() == [0, 1]


def test_what_is_refused_is_counted() -> None:
    feed = Feed()
    feed.octets(0, BAD[1] + BAD[3] + BAD[4] + sentence("GNGSV,1,1,00"))
    answer = feed.run()[0]
    assert (answer["refused"], answer["malformed"], answer["sound"]) == (2, 1, 2)


@pytest.mark.parametrize("seed", range(4))
def test_fuzzed_octets_break_nothing_and_never_name_a_wrong_second(seed: int) -> None:
    """Good sentences with octets changed, lost and added, and plain noise; sanitizers watch."""
    generator = random.Random(seed)
    print("seed", seed)

    def fuzzed(_: int, utc: datetime) -> bytes:
        octets = bytearray(rmc(utc) + gga(utc) + zda(utc))
        for _ in range(generator.choice([0, 0, 1, 3, 30])):
            position = generator.randrange(len(octets))
            kind = generator.randrange(3)
            if kind == 0:
                octets[position] = generator.randrange(256)
            elif kind == 1:
                del octets[position]
            else:
                octets.insert(position, generator.choice(b"$*,\r\n0A\x00\xff"))
        noise = generator.randbytes(generator.choice([0, 0, 5, 300]))
        return bytes(octets) + noise

    answers = seconds(2000, fuzzed).run()[1::2]
    known = answers["is_known"].astype(bool)
    assert known[50:].all()
    assert all(answers["tai"][number] == tai(START) + number for number in range(2000) if known[number])
    assert answers["refused"][-1] > 100


def test_pure_noise_is_never_a_time() -> None:
    generator = random.Random(9)
    feed = Feed()
    for number in range(200):
        feed.pulse(1000 * number)
        feed.octets(1000 * number + 100, bytes(generator.choices(b"$GNRMCZDA,.*0123456789\r\n", k=2000)))
    assert feed.run()["times"][-1] == 0


# Beside UBX-TIM-TP --------------------------------------------------------------------------------


NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)  # A second 60 before it, in these tests.
GPS, IN_UTC = 18, None
Witness = Callable[[int, datetime], bytes]


def nobody(_: int, __: datetime) -> bytes:
    """Return what a receiver without TIM-TP says."""
    return b""


def in_gps(_: int, utc: datetime) -> bytes:
    return tim_tp(utc, 0, gps_utc=GPS)


def in_utc(_: int, utc: datetime) -> bytes:
    return tim_tp(utc, 0)


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


def counting_none(number: int, utc: datetime) -> datetime:
    """Return UTC after a leap second at LEAP, of a time that counts none."""
    return utc - timedelta(seconds=utc > NEW_YEAR)


def silent(number: int) -> bool:
    """Whether the receiver says nothing over the end of the year."""
    return 20 <= number < 200


@pytest.mark.parametrize("witness", [nobody, in_gps])
def test_a_leap_second_while_the_receiver_is_silent_moves_utc_and_not_tai(witness: Witness) -> None:
    """Pulses go on: TAI is counted."""
    start = NEW_YEAR - timedelta(seconds=60)

    def witnessed(number: int, utc: datetime) -> bytes:
        return b"" if silent(number) or witness is nobody else tim_tp(utc, 0, gps_utc=GPS)

    found = run(300, lambda n, utc: b"" if silent(n) else rmc(counting_none(n, utc)), witnessed, start)
    assert found["tai"][3:].tolist() == [tai(start) + number for number in range(3, 300)]
    assert found["tai_utc"][-1] == TAI_UTC + 1
    # Without TIM-TP nobody knows what was in the half year before.
    assert found["faults"][-1] == (UNSURE if witness is nobody else 0)


@pytest.mark.parametrize(("witness", "is_right"), [(nobody, False), (in_utc, False), (in_gps, True)])
def test_a_leap_second_in_an_outage_or_before_a_reboot_is_seen_by_gps_time_or_reported(
    witness: Witness, is_right: bool
) -> None:
    """An hour after it, with the TAI - UTC of before."""
    start = NEW_YEAR + timedelta(hours=1)

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
    start = NEW_YEAR - timedelta(seconds=60)
    found = run(
        800,
        lambda n, utc: rmc(counting_none(n, utc)),
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
    start = NEW_YEAR + timedelta(hours=1)
    found = run(60, lambda _, utc: rmc(utc), lambda n, utc: tim_tp(utc, 0, gps_utc=19) if n >= 20 else b"", start)
    assert found["tai"][19] == tai(start) + 19
    assert (found["tai"][-1], found["tai_utc"][-1], found["faults"][-1]) == (tai(start, 38) + 59, 38, 0)
    assert found["corrections"][-1] == 1


@pytest.mark.parametrize(("pulses", "leaps"), [(1, 0), (9, 0), (10, 1), (11, 1)])
def test_a_leap_second_is_believed_once_gps_time_has_shown_it_for_ten_pulses(pulses: int, leaps: int) -> None:
    start = NEW_YEAR + timedelta(hours=1)

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
