# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The receiver's quantisation error: UBX among NMEA, garbage, and which pulse a message belongs to; sanitizers watch."""

import random
import struct
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from liteprobe.sim.drivers.clock.clock_runs import Feed
from liteprobe.sim.drivers.clock.virtual_time import compile_program
from liteprobe.sim.models.clock.receiver import rmc, tim_tp, ubx

START = datetime(2026, 11, 28, 23, 59, 50, tzinfo=UTC)  # Saturday: the week of GPS ends.
MOST_PS = 100_000


def at(number: int) -> datetime:
    """Return the second of pulse ``number``."""
    return START + timedelta(seconds=number)


def late_ps(number: int) -> int:
    """Return what the receiver says of pulse ``number``: never the same twice."""
    return (number * 7919) % 20_001 - 10_000


def pulse_ms(number: int) -> int:
    """Return when pulse ``number`` comes."""
    return 5000 + 1000 * number


def lateness(feed: Feed, count: int) -> list[int | None]:
    """Return what is known of the lateness of each of ``count`` pulses."""
    pulses = feed.run()[feed.pulse_records]
    assert len(pulses) == count
    return [int(one["late_ps"]) if one["has_qerr"] else None for one in pulses]


def second(feed: Feed, number: int, message: bytes, after_ms: int = 300) -> None:
    """Let pulse ``number`` come, its sentence, and a message about the next pulse."""
    feed.pulse(pulse_ms(number))
    feed.octets(pulse_ms(number) + 100, rmc(at(number)))
    feed.octets(pulse_ms(number) + after_ms, message)


def test_each_pulse_has_the_error_that_was_told_before_it() -> None:
    """The first message has nothing to be compared with; a new week of GPS begins at pulse 10."""
    feed, count = Feed(), 30
    for number in range(count):
        second(feed, number, tim_tp(at(number + 1), late_ps(number + 1)))
    assert lateness(feed, count) == [None, None, *[late_ps(number) for number in range(2, count)]]
    answer = feed.run()[-1]
    assert (answer["times"], answer["refused"], answer["messages"], answer["messages_refused"]) == (count, 0, count, 0)
    assert (answer["qerr_used"], answer["pulses"]) == (count - 2, count)


def test_a_message_behind_its_pulse_is_of_no_other() -> None:
    """From pulse 10 on each message comes 50 ms after the pulse that it describes."""
    feed, count = Feed(), 20
    for number in range(count):
        is_late = number >= 10
        feed.pulse(pulse_ms(number))
        feed.octets(pulse_ms(number) + 40, rmc(at(number)))
        if is_late:
            feed.octets(pulse_ms(number) + 50, tim_tp(at(number), late_ps(number)))
        if number < 9:
            feed.octets(pulse_ms(number) + 300, tim_tp(at(number + 1), late_ps(number + 1)))
    found = lateness(feed, count)
    assert found[:10] == [None, None, *[late_ps(number) for number in range(2, 10)]]
    assert found[10:] == [None] * 10
    assert feed.run()[-1]["qerr_refused"] == 10


@pytest.mark.parametrize("ahead_s", [18, 4, 0])
def test_a_receiver_may_count_in_any_time(ahead_s: int) -> None:
    """GPS is 18 s ahead of UTC, BeiDou 4."""
    feed, count = Feed(), 12
    for number in range(count):
        second(feed, number, tim_tp(at(number + 1 + ahead_s), late_ps(number + 1)))
    assert lateness(feed, count) == [None, None, *[late_ps(number) for number in range(2, count)]]


def test_a_lost_message_leaves_one_pulse_without() -> None:
    feed, count = Feed(), 12
    for number in range(count):
        second(feed, number, b"" if number == 5 else tim_tp(at(number + 1), late_ps(number + 1)))
    assert lateness(feed, count) == [None if number in (0, 1, 6) else late_ps(number) for number in range(count)]


def test_a_lost_pulse_takes_its_message_with_it() -> None:
    feed, count = Feed(), 12
    for number in range(count):
        if number != 6:
            feed.pulse(pulse_ms(number))
        feed.octets(pulse_ms(number) + 300, tim_tp(at(number + 1), late_ps(number + 1)))
    wanted = [None, None, *[late_ps(number) for number in range(2, count) if number != 6]]
    assert lateness(feed, count - 1) == wanted


def test_a_pulse_off_the_grid_takes_nothing() -> None:
    feed, count = Feed(), 12
    for number in range(count):
        second(feed, number, tim_tp(at(number + 1), late_ps(number + 1)))
        if number == 6:
            feed.pulse(pulse_ms(number) + 700)
    wanted: list[int | None] = [None, None, *[late_ps(number) for number in range(2, count)]]
    assert lateness(feed, count + 1) == [*wanted[:7], None, *wanted[7:]]


def test_of_two_messages_the_last_one_counts() -> None:
    feed, count = Feed(), 8
    for number in range(count):
        second(feed, number, tim_tp(at(number + 1), 1) + tim_tp(at(number + 1), late_ps(number + 1)))
    assert lateness(feed, count)[2:] == [late_ps(number) for number in range(2, count)]


@pytest.mark.parametrize(
    "message",
    [
        tim_tp(at(6), 5, is_valid=False),
        tim_tp(at(6), MOST_PS + 1),
        tim_tp(at(6), -MOST_PS - 1),
        tim_tp(at(6), -(2**31) + 1),
        tim_tp(at(7), 5),
        tim_tp(at(5), 5),
        tim_tp(at(6), 5)[:-1] + b"\x00",
        tim_tp(at(6), 5)[:-2] + b"\x00" + tim_tp(at(6), 5)[-1:],
        tim_tp(at(6), 5)[:-1],
        ubx(0x0D, 0x03, tim_tp(at(6), 5)[6:-2]),
        ubx(0x0D, 0x01, tim_tp(at(6), 5)[6:-3]),
        ubx(0x0D, 0x01, tim_tp(at(6), 5)[6:-2] + b"\x00"),
    ],
)
def test_a_message_that_is_wrong_tells_nothing_of_its_pulse(message: bytes) -> None:
    feed, count = Feed(), 12
    for number in range(count):
        second(feed, number, message if number == 5 else tim_tp(at(number + 1), late_ps(number + 1)))
    found = lateness(feed, count)
    assert found[:6] == [None, None, *[late_ps(number) for number in range(2, 6)]]
    assert found[6] is None
    assert found[9:] == [late_ps(number) for number in range(9, count)]


@pytest.mark.parametrize("late", [MOST_PS, -MOST_PS, 0])
def test_an_error_of_any_size_of_a_receiver_is_taken(late: int) -> None:
    feed = Feed()
    for number in range(4):
        second(feed, number, tim_tp(at(number + 1), late))
    assert lateness(feed, 4) == [None, None, late, late]


@pytest.mark.parametrize("size", [0, 1, 15, 17, 1024])
def test_a_message_with_sentences_inside_is_none_of_nmea(size: int) -> None:
    """Other messages are skipped whole, whatever is in them, up to the longest that is believed."""
    payload = (rmc(START) * 20 + tim_tp(START, 3) * 8)[:size]
    feed = Feed()
    feed.octets(0, ubx(0x01, 0x35, payload) + rmc(START))
    answer = feed.run()[0]
    assert (answer["times"], answer["messages"], answer["pulses"], answer["refused"]) == (1, 1, 0, 0)


def test_a_length_that_no_message_has_swallows_nothing() -> None:
    feed = Feed()
    feed.octets(0, b"\xb5\x62\x01\x35" + struct.pack("<H", 1025) + rmc(START) + tim_tp(START, 3))
    answer = feed.run()[0]
    assert (answer["times"], answer["pulses"], answer["messages_refused"]) == (1, 1, 1)


@pytest.mark.parametrize("noise", [b"\xb5", b"\xb5\xb5", b"\x62\xb5", b"\xb5x", b"$GN"])
def test_a_message_is_found_right_behind_noise(noise: bytes) -> None:
    feed = Feed()
    feed.octets(0, noise + tim_tp(START, 3))
    assert feed.run()[0]["pulses"] == 1


@pytest.mark.parametrize("seed", range(4))
def test_fuzzed_octets_break_nothing_and_never_tell_a_wrong_error(seed: int) -> None:
    """Sentences and messages with octets changed, lost and added, and plain noise."""
    generator = random.Random(seed)
    print("seed", seed)
    feed, count = Feed(), 2000
    for number in range(count):
        feed.pulse(pulse_ms(number))
        octets = bytearray(rmc(at(number)) + tim_tp(at(number + 1), late_ps(number + 1)))
        for _ in range(generator.choice([0, 0, 0, 1, 3, 30])):
            position = generator.randrange(len(octets))
            kind = generator.randrange(3)
            if kind == 0:
                octets[position] = generator.randrange(256)
            elif kind == 1:
                del octets[position]
            else:
                octets.insert(position, generator.choice(b"$*\xb5\x62\x0d\x01\x10\x00\xff"))
        feed.octets(pulse_ms(number) + 100, bytes(octets) + generator.randbytes(generator.choice([0, 0, 5, 300])))
    found = lateness(feed, count)
    known = [number for number in range(count) if found[number] is not None]
    assert [found[number] for number in known] == [late_ps(number) for number in known]
    assert count / 4 < len(known) < count
    assert feed.run()[-1]["messages_refused"] > 100


def test_the_receiver_is_asked_for_a_message_a_pulse() -> None:
    """UBX-CFG-MSG: class, message, rate on the port that it comes in by."""
    program = compile_program("second", sanitize=True)
    asked = subprocess.run([program, "enable"], stdout=subprocess.PIPE, check=True).stdout
    assert asked == ubx(0x06, 0x01, bytes([0x0D, 0x01, 1]))
