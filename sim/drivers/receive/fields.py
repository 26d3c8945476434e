# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Frames with bit errors, and with stamps in fields, through compiled ports that monitor and that measure, against the models."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import Fill, Layer3, StampPlace, UnifiedFlag
from liteprobe.sim.drivers.receive.monitor import Sent, run, stamps
from liteprobe.sim.models.receive.meters import field_stamp, fill_errors
from liteprobe.sim.models.traffic.trains import ProbeFrame
from liteprobe.sim.models.receive.unified import unified_header

STREAMS = 31
PROBE, PASSED, BARE = 1, 2, 4  # Bits of a row's ``is``.
SHIFTS = (0, 1, 3, 15)
#: Fields that carry a stamp: whether the frame is IPv6, octet without tags, widths in octets, whether a nibble stays.
NAMED: dict[str, tuple[bool, int, list[int], bool]] = {
    "IPv4 identification": (False, 18, [2], False),
    "IPv6 flow label": (True, 15, [3], True),
    "probe header": (False, 52, [8], False),
    "a field of the payload": (False, 60, [1, 2, 3, 4, 5, 6, 7, 8], False),
}

Rows = NDArray[Any]


def measured(sent: Sequence[Sent], settings: Mapping[str, int] | None = None) -> list[Rows]:
    """Return the rows that each port hands to its meters; each frame must have one."""
    runs = run([sent, sent], settings=settings or {}, with_fields=True)
    for port, one in enumerate(runs):
        assert len(one.measured) == len(sent), f"port {port}"
        assert one.measured["stamp"].tolist() == stamps(sent), f"port {port}"
        assert (one.counters["unclassified"], one.counters["overflows"], one.counters["stamp_errors"]) == (0, 0, 0)
    return [one.measured for one in runs]


# Bit errors ---------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Errors:
    """Counts frames with bit errors, bits put in, those of fills, and rows of the meters that are wrong."""

    frames: int
    flipped: int
    in_fills: int
    rows_off: int


def flipped(frame: bytes, bits: Sequence[int]) -> bytes:
    """Return a frame with these bits of it wrong."""
    octets = bytearray(frame)
    for bit in bits:
        octets[bit // 8] ^= 1 << bit % 8
    return bytes(octets)


def errors_of(frames: Sequence[ProbeFrame], sent: Sequence[Sent], bits: int = 0) -> Errors:
    """Hold the bit errors of each frame, and its stream, against what was put in; ``frames``: as they were before."""
    count = off = 0
    for rows in measured(sent):
        count = 0
        for whole, one, row in zip(frames, sent, rows, strict=True):
            header = unified_header(one.frame)
            is_probe = header.tx_stamp is not None
            is_right = bool(row["is"] & PROBE) == is_probe and bool(row["flags"] & UnifiedFlag.FCS_ERROR) == one.bad_fcs
            if is_probe:
                wanted = fill_errors(one.frame, whole.payload_offset, header.layer3 == Layer3.IPV6)
                is_right &= bool(row["bit_errors"] == wanted)
                is_right &= bool(row["stream_id"] == int.from_bytes(header.detail[2:]))
                count += wanted
            off += not is_right
    return Errors(len(frames), bits, count, off)


def random_errors(wanted: int, seed: int) -> Errors:
    """Put ``wanted`` bit errors or more into any place of PRBS frames, with a bad FCS or a mended one."""
    rng = random.Random(seed)
    frames, sent, flips = [], [], 0
    while flips < wanted:
        is_ipv6, tags = rng.random() < 0.4, tuple(rng.randrange(1, 4095) for _ in range(rng.randrange(3)))
        least = (80 if is_ipv6 else 60) + 4 * len(tags)
        length = least + rng.choice([0, 1, 2, 3, 4, 5, 6, 7, rng.randrange(64), rng.randrange(1514 - least)])
        whole = ProbeFrame(length, is_ipv6, tags, rng.randrange(STREAMS + 4), Fill.PRBS)
        frame = whole.octets(rng.getrandbits(32), rng.getrandbits(64))
        errors = rng.choice([0, 1, 1, 1, 2, 3, 20])
        start = rng.choice([0, 0, whole.payload_offset * 8, 8 * length - 40])
        broken = flipped(frame, [rng.randrange(start, 8 * length) for _ in range(errors)])
        flips += errors
        frames.append(whole)
        sent.append(Sent(broken, bad_fcs=rng.random() < 0.5))
    return errors_of(frames, sent, flips)


# Stamps in fields ---------------------------------------------------------------------------------

def written(frame: bytes, place: StampPlace, value: int) -> bytes:
    """Return a frame with a value in the field of a place."""
    octets = bytearray(frame)
    end = place.offset + place.octets
    if place.is_nibble:
        value = value % (1 << place.bits) | octets[place.offset] >> 4 << place.bits
    octets[place.offset : end] = (value % (1 << 8 * place.octets)).to_bytes(place.octets)
    return bytes(octets)


def check_places(sent: Sequence[Sent], places: Mapping[int, StampPlace], stream_base: int = 0) -> list[Rows]:
    """Hold each frame's TX stamp against its field, AssertionError where it isn't; ``places`` by slot."""
    settings = {f"place{slot}": places[slot].word if slot in places else 0 for slot in range(STREAMS + 1)}
    results = measured(sent, settings | {"stream_base": stream_base})
    for rows in results:
        for one, row in zip(sent, rows, strict=True):
            header = unified_header(one.frame)
            number = (int.from_bytes(header.detail[2:]) - stream_base) % (1 << 16)
            slot = 0 if header.tx_stamp is None or number >= STREAMS else number + 1
            stamp = int(row["stamp"])
            found = field_stamp(one.frame, places[slot], stamp) if slot in places else None
            assert bool(row["is"] & BARE) == (found is not None and header.tx_stamp is None)
            if found is not None or header.tx_stamp is not None:
                assert row["tx_stamp"] == (header.tx_stamp if found is None else found), (slot, places.get(slot))
    return results


def named_delays(tags: int, count: int = 20) -> tuple[int, int]:
    """Return the delays by every named field behind so many tags, in each width and tick, and those that aren't the truth."""
    rng = random.Random(tags)
    cases = [
        (is_ipv6, StampPlace(offset + 4 * tags, octets, shift, is_nibble))
        for is_ipv6, offset, widths, is_nibble in NAMED.values()
        for octets in widths
        for shift in SHIFTS
    ]
    seen = off = 0
    for first in range(0, len(cases), STREAMS):
        some = cases[first : first + STREAMS]
        sent, delays = [], []
        for _ in range(count):
            for number, (is_ipv6, place) in enumerate(some):
                whole = ProbeFrame(100 + 20 * is_ipv6, is_ipv6, (5,) * tags, number)
                sent.append(Sent(whole.octets(7, rng.getrandbits(64))))
                delays.append(rng.randrange(min(1 << place.bits + 4 * place.shift, 1 << 62)))
        arrivals = stamps(sent)
        for at, one in enumerate(sent):
            place, left = some[at % len(some)][1], arrivals[at] - delays[at]
            sent[at] = replace(one, frame=written(one.frame, place, left >> 4 * place.shift))
        for rows in check_places(sent, {1 + number: place for number, (_, place) in enumerate(some)}):
            found = rows["stamp"].astype(np.uint64) - rows["tx_stamp"].astype(np.uint64)
            for at, got in enumerate(found.tolist()):
                place, unit = some[at % len(some)][1], 4 * some[at % len(some)][1].shift
                ticks = (arrivals[at] >> unit) - (arrivals[at] - delays[at] >> unit)
                off += got != ticks % (1 << place.bits) << unit
                seen += 1
    return seen, off
