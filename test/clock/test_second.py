# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The second that a pulse begins: NMEA against pulses, with garbage, leap seconds, lies and silence; beside a second witness."""

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from numpy.typing import NDArray

from liteprobe.sim.drivers.clock import second_streams
from liteprobe.sim.drivers.clock.clock_runs import LEAP, NO_FIX, NO_NMEA, NO_PPS, UNKNOWN, UNSURE, WRONG, Feed
from liteprobe.sim.drivers.tools.figures import Figure, Size, note, row
from liteprobe.sim.models.clock.receiver import clock_text, gga, rmc, sentence, tim_tp, timels, utc_of, zda

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
def test_a_leap_second_that_nobody_announced_is_a_fault_until_a_host_tells_it(extra: int, shows_60: bool) -> None:
    start = datetime(2026, 6, 30, 23, 59, 52, tzinfo=UTC)
    feed = seconds(30, leaping(extra, shows_60))
    feed.announce(34_500, TAI_UTC + extra, datetime(2027, 1, 1, tzinfo=UTC))
    feed.pulse(35_000)
    feed.octets(35_150, rmc(start + timedelta(seconds=30 - extra)))
    answers = feed.run()
    seen = answers[1:60:2]
    assert seen["tai"][3:].tolist() == [tai(start) + number for number in range(3, 30)]
    assert (seen["tai_utc"][-1], seen["faults"][-1], seen["corrections"][-1]) == (TAI_UTC, WRONG | LEAP, 0)
    assert bool(seen["faults"][8] & LEAP) == (extra > 0 and shows_60)
    last = answers[-1]
    assert (last["tai"], last["tai_utc"], last["faults"]) == (tai(start) + 30, TAI_UTC + extra, 0)


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
def test_a_leap_second_while_the_receiver_is_silent_moves_nothing_and_is_reported(witness: Witness) -> None:
    """Pulses go on: TAI is counted. What sentences say then, a receiver that is late would say as well."""
    start = NEW_YEAR - timedelta(seconds=60)

    def witnessed(number: int, utc: datetime) -> bytes:
        return b"" if silent(number) or witness is nobody else tim_tp(utc, 0, gps_utc=GPS)

    found = run(900, lambda n, utc: b"" if silent(n) else rmc(counting_none(n, utc)), witnessed, start)
    assert found["tai"][3:].tolist() == [tai(start) + number for number in range(3, 900)]
    assert found["tai_utc"][-1] == TAI_UTC and found["faults"][-1] & WRONG


@pytest.mark.parametrize("witness", [nobody, in_utc, in_gps])
def test_a_leap_second_before_a_reboot_is_reported(witness: Witness) -> None:
    """An hour after it, with the TAI - UTC of before: TIM-TP in GPS time shows another second than sentences do."""
    start = NEW_YEAR + timedelta(hours=1)

    def witnessed(number: int, utc: datetime) -> bytes:
        return witness(number, utc) if witness is not in_gps else tim_tp(utc, 0, gps_utc=GPS + 1)

    found = run(60, lambda _, utc: rmc(utc), witnessed, start)
    assert found["is_known"][3:].all()
    assert (found["tai_utc"][-1], found["faults"][-1]) == (37, UNSURE | (WRONG if witness is in_gps else 0))


def test_without_gps_time_a_second_that_was_counted_over_the_half_year_stays_sure() -> None:
    """From before the end of June to after it, pulse by pulse."""
    start = datetime(2026, 6, 30, 23, 59, 30, tzinfo=UTC)
    found = run(90, lambda _, utc: rmc(utc), start=start)
    assert not found["faults"][3:].any() and found["tai"][-1] == tai(start) + 89


def test_gps_time_that_comes_later_makes_sure() -> None:
    start = datetime(2026, 9, 1, tzinfo=UTC)
    found = run(60, lambda _, utc: rmc(utc), lambda n, utc: in_gps(n, utc) if n >= 30 else b"", start)
    assert (found["faults"][3:30] == UNSURE).all() and not found["faults"][31:].any()


@pytest.mark.parametrize("count", [1, 40])
def test_a_leap_second_that_gps_time_alone_shows_is_reported(count: int) -> None:
    start = NEW_YEAR + timedelta(hours=1)

    def shown(number: int, utc: datetime) -> bytes:
        return tim_tp(utc, 0, gps_utc=GPS + 1) if 20 <= number < 20 + count else b""

    found = run(60, lambda _, utc: rmc(utc), shown, start)
    assert (found["tai"][-1], found["tai_utc"][-1]) == (tai(start) + 59, TAI_UTC)
    assert found["faults"][20 : 20 + count].tolist() == [UNSURE | WRONG] * min(count, 40)
    assert found["faults"][-1] == UNSURE | (WRONG if count == 40 else 0)


@pytest.mark.parametrize("weeks", [-1024, 1024])
def test_a_receiver_that_lost_count_of_the_weeks_agrees_with_itself(weeks: int) -> None:
    wrong = timedelta(weeks=weeks)
    found = run(60, lambda _, utc: rmc(utc + wrong), lambda _, utc: tim_tp(utc + wrong, 0, gps_utc=GPS))
    assert (found["tai"][-1], found["faults"][-1], found["rollovers"][-1]) == (tai(START) + 59, 0, 60)


# Leap seconds that are announced ------------------------------------------------------------------

JUNE = datetime(2026, 6, 30, 23, 59, 30, tzinfo=UTC)
END_S = 30  # After JUNE.


def over_the_end(
    leap: int, events: Callable[[Feed, int, int], None], style: str = "60", count: int = 90
) -> NDArray[np.void]:
    """Return what is known over the end of June, with its leap second; ``events`` adds what else comes each second."""
    feed, looks = Feed(), []
    for number in range(count):
        at_ms = 5000 + 1000 * number
        is_leap = leap == 1 and number == END_S
        utc = JUNE + timedelta(seconds=number - leap * (number >= END_S + min(leap, 0)))
        feed.pulse(at_ms)
        feed.octets(
            at_ms + 150,
            rmc(utc, leap=True)
            if is_leap and style == "60"
            else rmc(utc + timedelta(seconds=is_leap * (style == "00"))),
        )
        events(feed, number, at_ms + 300)
        feed.octets(at_ms + 900, b"")
        looks.append(feed.count - 1)
    return feed.run()[looks]


@pytest.mark.parametrize(("leap", "style"), [(1, "60"), (1, "59"), (1, "00"), (-1, "")])
@pytest.mark.parametrize("who", ["receiver", "host"])
def test_an_announced_leap_second_comes_without_a_fault(leap: int, style: str, who: str) -> None:
    def announce(feed: Feed, number: int, at_ms: int) -> None:
        if who == "host" and number == 5:
            feed.announce(at_ms, TAI_UTC, JUNE + timedelta(seconds=END_S), leap)
        elif who == "receiver" and number % 10 == 4:
            has_been = number >= END_S
            feed.octets(at_ms, timels(GPS + leap * has_been, leap * (not has_been), END_S - number))

    found = over_the_end(leap, announce, style)
    assert found["tai"][3:].tolist() == [tai(JUNE) + number for number in range(3, 90)]
    assert not found["faults"][3:].any()
    assert found["tai_utc"].tolist() == [TAI_UTC + leap * (n >= END_S + leap) for n in range(90)]


@pytest.mark.parametrize("who", ["receiver", "host"])
def test_a_leap_second_that_was_withdrawn_does_not_come(who: str) -> None:
    def announce(feed: Feed, number: int, at_ms: int) -> None:
        if who == "host" and number in (5, 15):
            feed.announce(at_ms, TAI_UTC, JUNE + timedelta(seconds=END_S), int(number == 5))
        elif who == "receiver" and number % 10 == 4:
            feed.octets(at_ms, timels(GPS, int(number < 10), END_S - number))

    found = over_the_end(0, announce)
    assert found["tai"][3:].tolist() == [tai(JUNE) + number for number in range(3, 90)]
    assert not found["faults"][3:].any() and (found["tai_utc"] == TAI_UTC).all()


@pytest.mark.parametrize(
    ("start", "told", "expected", "fault"),
    [
        (NEW_YEAR + timedelta(hours=1), timels(GPS + 1), 38, 0),
        (NEW_YEAR + timedelta(hours=1), timels(GPS), 37, 0),
        (NEW_YEAR + timedelta(hours=1), timels(None), 37, UNSURE),
        (NEW_YEAR + timedelta(hours=1), timels(GPS + 1, source=0), 37, UNSURE),  # A constant of its firmware.
        (NEW_YEAR + timedelta(hours=1), timels(GPS + 1, source=255), 37, UNSURE),
        (START, timels(GPS + 1), 37, LEAP),  # There can have been none: one of the two is wrong.
    ],
)
def test_a_receiver_that_knows_tai_less_utc_is_believed_where_it_can_be_right(
    start: datetime, told: bytes, expected: int, fault: int
) -> None:
    found = run(60, lambda _, utc: rmc(utc), lambda n, _: told if n % 10 == 5 else b"", start)
    assert (found["tai"][-1], found["tai_utc"][-1], found["faults"][-1]) == (tai(start, expected) + 59, expected, fault)


@pytest.mark.parametrize("who", ["receiver", "host"])
def test_after_a_leap_second_that_nobody_saw_the_news_of_it_moves_utc_and_not_tai(who: str) -> None:
    """Sentences have contradicted since."""
    start = NEW_YEAR - timedelta(seconds=60)
    feed, looks = Feed(), []
    for number in range(400):
        at_ms, utc = 5000 + 1000 * number, counting_none(number, start + timedelta(seconds=number))
        feed.pulse(at_ms)
        feed.octets(at_ms + 150, b"" if silent(number) else rmc(utc))
        if number >= 300 and number % 10 == 0:
            if who == "receiver":
                feed.octets(at_ms + 300, timels(GPS + 1))
            else:
                feed.announce(at_ms + 300, TAI_UTC + 1, NEW_YEAR + timedelta(days=180))
        feed.octets(at_ms + 900, b"")
        looks.append(feed.count - 1)
    found = feed.run()[looks]
    assert found["tai"][3:].tolist() == [tai(start) + number for number in range(3, 400)]
    assert (found["faults"][299] & WRONG, found["tai_utc"][-1], found["faults"][-1]) == (WRONG, TAI_UTC + 1, 0)


def test_a_leap_second_at_another_time_than_the_end_of_a_quarter_is_not_announced() -> None:
    found = run(60, lambda _, utc: rmc(utc), lambda n, _: timels(GPS, 1, 50 - n) if n % 10 == 5 else b"")
    assert (found["tai_utc"][-1], found["faults"][-1]) == (TAI_UTC, 0)


# Late, early, after a pause -----------------------------------------------------------------------


def per_second(count: int, *says: tuple[int, Callable[[datetime], bytes]], start: datetime = START) -> NDArray[np.void]:
    """Return what is known at the end of each second in which octets come so long (ms) after its pulse; each names its own."""
    feed, looks, events = Feed(), [], []
    for number in range(count):
        events.append((1000 * number, None))
        events += [(1000 * number + late_ms, make(start + timedelta(seconds=number))) for late_ms, make in says]
        events.append((1000 * number + 995, b""))
    for at_ms, octets in sorted(events, key=lambda event: event[0]):
        if octets is None:
            feed.pulse(5000 + at_ms)
        elif at_ms < 1000 * count:
            feed.octets(5000 + at_ms, octets)
            if not octets:
                looks.append(feed.count - 1)
    return feed.run()[looks]


def is_right_or_reported(found: NDArray[np.void], start: datetime = START) -> bool:
    wrong = found["tai"].astype(np.int64) != np.arange(len(found)) + tai(start)
    return not (wrong & (found["is_known"] == 1) & (found["faults"] == 0)).any()


def test_a_sentence_that_ends_in_the_next_second_names_none() -> None:
    """RMC comes 1040 ms late, right GGA 90 ms after the pulse."""
    found = per_second(900, (90, gga), (1040, rmc))
    assert is_right_or_reported(found) and found["faults"][-1]
    alone = per_second(60, (90, gga), (850, rmc))
    assert (alone["is_known"][-1], alone["faults"][-1]) == (1, 0) and is_right_or_reported(alone)


@pytest.mark.parametrize("witness", [in_gps, in_utc])
def test_a_late_receiver_invents_no_leap_second(witness: Witness) -> None:
    """After the last bulletin, TIM-TP in GPS time: sentences are a second behind, and TAI - UTC is not another."""
    start = datetime(2026, 9, 1, tzinfo=UTC)
    found = run(900, lambda _, utc: rmc(utc - timedelta(seconds=1)), witness, start)
    assert (found["tai_utc"] == TAI_UTC).all() and (found["faults"] > 0).all()


@pytest.mark.parametrize(
    "day", [datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)]
)
def test_sentences_that_are_late_after_silence_over_an_end_are_no_leap_second(day: datetime) -> None:
    start = day - timedelta(seconds=120)
    found = run(900, lambda n, utc: b"" if 20 <= n < 260 else rmc(utc - timedelta(seconds=260 <= n < 263)), start=start)
    assert found["tai"][3:].tolist() == [tai(start) + number for number in range(3, 900)]
    assert (found["tai_utc"] == TAI_UTC).all() and not found["faults"][-1] & WRONG


@pytest.mark.parametrize("late_ms", [2, 820, 950, 999])
def test_a_second_that_is_not_clear_stays_unknown_and_is_reported(late_ms: int) -> None:
    found = per_second(60, (late_ms, rmc))
    assert not found["is_known"].any() and (found["faults"] & UNKNOWN).all()


@pytest.mark.parametrize("width_ms", [100, 200])
@pytest.mark.parametrize("late_ms", [20, 60, 90, 150, 190, 250, 700])
def test_a_pulse_taken_at_its_falling_edge_names_no_wrong_second(width_ms: int, late_ms: int) -> None:
    found = per_second(60, (late_ms - width_ms, rmc))
    assert is_right_or_reported(found)


def test_two_sentences_without_a_pulse_between_name_two_seconds() -> None:
    feed, looks = Feed(), []
    for number in range(60):
        if number not in (2, 30, 31):
            feed.pulse(5000 + 1000 * number)
        feed.octets(5150 + 1000 * number, rmc(START + timedelta(seconds=number)))
        looks.append(feed.count - 1)
    found = feed.run()[looks]
    assert not found["faults"][32:].any() and not (found["faults"][3:] & WRONG).any()
    assert found["tai"][-1] == tai(START) + 59


def test_ten_fixes_a_second_are_well() -> None:
    def ten(utc: datetime) -> bytes:
        return b"".join(sentence(f"GNZDA,{utc:%H%M%S}.{tenth}0,{utc:%d,%m,%Y},00,00") for tenth in range(10))

    found = per_second(
        30, *((100 * tenth + 20, lambda utc, tenth=tenth: ten(utc)[38 * tenth :][:38]) for tenth in range(10))
    )
    assert len(ten(START)) == 380 and not found["faults"][3:].any() and found["malformed"][-1] == 0
    assert found["tai"][-1] == tai(START) + 29


@pytest.mark.parametrize("off_s", [-2, 2])
def test_a_cold_start_without_leap_seconds_is_reported_once_they_come(off_s: int) -> None:
    found = run(1400, lambda n, utc: rmc(utc + timedelta(seconds=off_s * (n < 750))))
    assert (found["faults"][750:1349] & WRONG).all()
    assert (found["tai"][-1], found["faults"][-1]) == (tai(START) + 1399, 0)


def test_another_receiver_takes_over() -> None:
    """RMC and GGA, then ZDA alone, which says nothing of a fix."""
    found = run(60, lambda n, utc: rmc(utc) + gga(utc) if n < 20 else zda(utc))
    assert (found["faults"][40:] == 0).all() and found["tai"][-1] == tai(START) + 59
    assert is_right_or_reported(found)


def test_a_later_sentence_of_the_same_pulse_is_compared() -> None:
    found = per_second(30, (100, rmc), (300, lambda utc: zda(utc + timedelta(seconds=1))))
    assert is_right_or_reported(found) and (found["faults"] > 0).all()


# Sentences that say nothing of the time -----------------------------------------------------------


def of_mode(mode: str, status: str = "A", date: str = "040326") -> bytes:
    return sentence(f"GNRMC,{UTC_TEXT},{status},5542.1234,N,01233.5678,E,0.01,,{date},,,{mode}")


@pytest.mark.parametrize(
    ("octets", "times", "is_used"),
    [
        (of_mode("A"), 1, 1), (of_mode("D"), 1, 1), (of_mode("R"), 1, 1), (of_mode("F"), 1, 1), (of_mode(""), 1, 1),
        (of_mode("S"), 1, 0), (of_mode("E"), 1, 0), (of_mode("N"), 1, 0), (of_mode("M"), 1, 0), (of_mode("A", "V"), 1, 0),
        (of_mode("A", date="040387"), 0, 0), (of_mode("A", date="060180"), 0, 0),
        (of_mode("A", date="040306"), 1, 1),
        *((sentence(f"GNGGA,{UTC_TEXT},5542.1,N,01233.5,E,{quality},12,0.8,10.0,M,40.0,M,,"), 1, 0) for quality in "0678"),
        (sentence(f"GNZDA,{UTC_TEXT},04,03,2087,00,00"), 1, 0),
        (sentence("PUBX,00," + "0" * 200), 0, 0),
    ],
)  # fmt: skip
def test_only_a_fix_names_a_second(octets: bytes, times: int, is_used: int) -> None:
    feed = Feed()
    feed.pulse(5000)
    feed.octets(5150, octets)
    answer = feed.run()[-1]
    assert (answer["times"], answer["sentences"], answer["refused"]) == (times, is_used, 0)


@pytest.mark.parametrize("year", ["87", "80", "99"])
def test_a_year_that_has_been_is_never_believed(year: str) -> None:
    found = per_second(60, (150, lambda utc: sentence(f"GNRMC,{clock_text(utc)},A,,,,,,,0403{year},,,A")))
    assert is_right_or_reported(found)


def test_zda_of_a_receiver_that_lost_its_fix_names_nothing() -> None:
    found = run(20, lambda n, utc: gga(utc, is_valid=n < 5) + zda(utc + timedelta(seconds=40 * (n >= 5))))
    assert not (found["faults"][5:] & WRONG).any() and found["tai"][-1] == tai(START) + 19


# Receivers of all kinds on a line of their own speed ----------------------------------------------


@row("clock", "second", is_test=True)
def test_second_is_right_or_a_fault_says_so(size: Size) -> Iterator[Figure]:
    """Streams with faults from seeds, and receivers that are well for an hour (a minute as a test)."""
    count, batch, wrong, excluded, looks, known = size.of(60, 3000, 100_000), 500, 0, 0, 0, 0
    once_wrong = (14395, 17852)  # Second receivers, stale sentences: wrong in silence, before faults stayed.
    for first in range(0, count, batch):
        seeds = [
            *range(first, min(first + batch, count)),
            *(once_wrong if first == 0 and count < max(once_wrong) else ()),
        ]
        cases = [second_streams.faulty(seed) for seed in seeds]
        for case, found in zip(cases, second_streams.run(case.stream for case in cases), strict=True):
            silent_looks = second_streams.silent_wrong(case.stream, found)
            is_early = np.arange(len(found)) <= case.first_right
            excluded += int((silent_looks & is_early).sum())
            bad = silent_looks & ~is_early
            if bad.any():
                note(f"# {case.name}: TAI off by {found['tai'].astype(np.int64) - case.stream.tai()}")
            wrong += bool(bad.any())
            looks += len(found)
            known += int(found["is_known"].sum())
    note(f"# {count} streams, {looks} looks, a second known in {known / looks:.0%}")
    note(
        f"# excluded: {excluded} looks before the receiver has named its first right second after its pulse, among them"
    )
    note(
        "#   those at pulses taken at their falling edge, after their sentences: PPS_INVERTED tells these of the pulse's width"
    )
    yield Figure("second_wrong_without_a_fault", wrong, f"streams of {count}", 0)
    kinds = second_streams.healthy_kinds(size.of(30, 100, 300))
    span_s = size.of(60, 3600)
    streams = [second_streams.healthy(kind, START, span_s, seed) for seed, kind in enumerate(kinds)]
    ill = 0
    for kind, stream, found in zip(kinds, streams, second_streams.run(streams), strict=True):
        is_well = (
            not found["faults"][5:].any() and (found["tai"][5:] == stream.tai()[5:]).all() and not found["refused"][-1]
        )
        ill += not is_well
        if not is_well:
            note(f"# {kind}: faults {np.unique(found['faults'][5:])}, {found['refused'][-1]} garbled")
    yield Figure("second_fault_of_a_healthy_receiver", ill, f"of {len(kinds)}, {span_s} s", 0)
