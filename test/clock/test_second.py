# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The second that a pulse begins: NMEA against pulses, with garbage, leap seconds, lies and silence."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from liteprobe.sim.drivers.clock.clock_runs import LEAP, NO_FIX, NO_NMEA, NO_PPS, UNKNOWN, WRONG, Feed
from liteprobe.sim.models.clock.receiver import clock_text, gga, rmc, sentence, utc_of, zda

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
