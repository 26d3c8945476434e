# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Bit errors of fills, and stamps in fields, from the GMII to the meters, compiled: of ports that monitor and that measure."""

import random

import pytest

from liteprobe.cores.formats import Fill, StampPlace
from liteprobe.sim.drivers.frames import stacks
from liteprobe.sim.drivers.receive.fields import (
    BARE, PROBE, STREAMS, check_places, errors_of, named_delays, random_errors, written,
)
from liteprobe.sim.drivers.receive.monitor import Sent
from liteprobe.sim.drivers.tools.wire import is_full
from liteprobe.sim.models.traffic.trains import ProbeFrame

# Bit errors ---------------------------------------------------------------------------------------

def test_every_bit_error_of_a_fill_is_counted_and_none_is_invented():
    found = random_errors(10_000 if is_full() else 1000, seed=1)
    assert found.rows_off == 0 and found.in_fills > found.flipped / 8


def test_a_fill_without_errors_has_none_at_any_length():
    lengths = [*range(60, 130), 1513, 1514, 9017, 9018]
    frames = [ProbeFrame(max(length, 80), True, (), 3, Fill.PRBS) for length in lengths]
    frames += [ProbeFrame(length, False, (), 3, Fill.PRBS) for length in lengths]
    found = errors_of(frames, [Sent(one.octets(n, n)) for n, one in enumerate(frames)])
    assert (found.in_fills, found.rows_off) == (0, 0)


@pytest.mark.parametrize("is_ipv6", [False, True])
def test_a_fill_that_is_wrong_everywhere_is_wrong_in_every_bit(is_ipv6):
    whole = ProbeFrame(9018, is_ipv6, (), 1, Fill.PRBS)
    frame = whole.octets(1, 2)
    at = whole.payload_offset + 18
    inverted = frame[:at] + bytes(octet ^ 0xFF for octet in frame[at:])
    found = errors_of([whole], [Sent(inverted)])
    assert (found.in_fills, found.rows_off) == (8 * (9018 - at - 2 * is_ipv6), 0)


# Stamps in fields ---------------------------------------------------------------------------------

@pytest.mark.parametrize("tags", range(3))
def test_the_delay_of_a_frame_is_that_of_its_field(tags):
    seen, off = named_delays(tags)
    assert (seen, off) == (2 * 20 * 11 * 4, 0)


def test_a_field_may_lie_anywhere_in_the_first_256_octets_and_have_any_width():
    rng = random.Random(11)
    for first in range(0, 256, STREAMS):
        places = {
            slot: StampPlace(min(first + slot - 1, 255), rng.randrange(1, 9), rng.choice([0, rng.randrange(16)]), bool(slot % 2))
            for slot in range(1, STREAMS + 1)
        }
        places[0] = StampPlace(rng.randrange(256), rng.randrange(1, 9), rng.randrange(4))
        sent = []
        for _ in range(8):
            for number in range(STREAMS + 2):
                whole = ProbeFrame(rng.choice([60, 61, 255, 256, 257, 300]), stream_id=(number + 65530) % (1 << 16), fill=Fill.PRBS)
                sent.append(Sent(whole.octets(7, rng.getrandbits(64)), rng.choice([12, 12, 13])))
        check_places(sent, places, stream_base=65530)


def test_frames_without_a_probe_header_are_bare_where_slot_0_has_a_place():
    sent = [Sent(frame.ljust(60, b"\0")) for frame in stacks.stacks()]
    place = StampPlace(18, 2)
    for with_place in (True, False):
        results = check_places(sent, {0: place} if with_place else {1: place})
        for rows in results:
            bare = (rows["is"] & BARE) != 0
            assert bare.any() == with_place
            assert not (bare & (rows["is"] & PROBE != 0)).any()


def test_a_frame_that_ends_before_its_field_has_the_stamp_of_its_header():
    place = StampPlace(60, 4)
    sent = [Sent(ProbeFrame(length, stream_id=4, fill=Fill.PRBS).octets(1, 0x1234567890)) for length in (60, 63, 64, 65)]
    for rows in check_places(sent, {5: place}):
        assert [row["tx_stamp"] == 0x1234567890 for row in rows] == [True, True, False, False]


def test_shortest_frames_of_31_streams_at_line_rate_each_have_their_own_field():
    rng = random.Random(3)
    places = {slot: StampPlace(rng.choice([18, 22, 46, 52]), rng.randrange(1, 9), rng.randrange(4)) for slot in range(STREAMS + 1)}
    places |= {slot: StampPlace(18, 2) for slot in range(1, STREAMS, 3)}
    sent = []
    for number in range(2000):
        frame = ProbeFrame(60, stream_id=number % STREAMS).octets(number, rng.getrandbits(64))
        place = places[number % STREAMS + 1]
        is_safe = place.offset == 18 or place.offset == 52
        sent.append(Sent(written(frame, place, rng.getrandbits(64)) if is_safe and place.octets == 2 else frame))
    for rows in check_places(sent, places):
        assert (rows["is"] & PROBE).all()
        assert set(rows["cycle"][1:] - rows["cycle"][:-1]) <= {33, 34} # 84 octets from start to start.
