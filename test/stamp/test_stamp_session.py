# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sessions of STAMP without a probe: what is sent, what the numbers of answers say of each way, what is refused."""

import random
from collections.abc import Callable

import numpy as np
import pytest

from liteprobe.host.base.errors import UsageError
from liteprobe.host.measure.percentiles import Bounds
from liteprobe.host.packets.stamp import ASKED, SenderPacket
from liteprobe.host.run.stamp import Answers, StampSession, tlvs_of, ways_of
from liteprobe.host.traffic.stream import Stream
from liteprobe.sim.models.reflector import Received, Reflector
from liteprobe.sim.models.traffic import streams

SEED = random.randrange(2**32)
Run = Callable[..., tuple[int, str, str]]


def travelled(session: StampSession, fates: list[tuple[bool, bool]], is_stateful: bool, before: int = 0) -> Answers:
    """Return the answers to packets, each of which is lost on its way there or back (``fates``), in order.

    ``before``: packets of an earlier session of the same numbers.
    """
    reflector, rows = Reflector(is_stateful=is_stateful), []
    for number in range(-before, len(fates)):
        packet = SenderPacket(max(number, 0), 1000 * number + 10**6, tlvs=session.requests)
        is_lost_there, is_lost_back = fates[number] if number >= 0 else (False, True)
        if not is_lost_there:
            one = Received(packet.pack(), "198.18.0.1", 1, 862, 64, 0, 10**15 + number)
            answer = reflector.answer(one, 10**15 + number + 7)
            assert answer is not None
            rows += [] if is_lost_back else [answer]
    octets = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1) if rows else np.empty((0, 44), np.uint8)
    return Answers(np.arange(len(rows), dtype=np.int64), octets, np.full(len(rows), octets.shape[1]))


def frame_of(stream: Stream, number: int) -> bytes:
    """Return a frame of a stream, as a model of the gateware makes it."""
    return [*streams.octets([stream], streams.schedule([stream], number + 1), lambda tick: tick)][number]


def ends(count: int | Bounds | None) -> tuple[float, float]:
    assert count is not None
    return (count.least, count.most) if isinstance(count, Bounds) else (count, count)


@pytest.mark.parametrize("tlvs", [(), ("direct-measurement",)])
@pytest.mark.parametrize("before", [0, 100, pytest.param(1000, marks=pytest.mark.full)])
def test_bounds_of_each_way_hold_and_are_as_narrow_as_can_be(tlvs: tuple[str, ...], before: int) -> None:
    chance = random.Random(SEED)
    for _ in range(200):
        count = chance.randrange(1, 40)
        fates = [(chance.random() < 0.3, chance.random() < 0.3) for _ in range(count)]
        session = StampSession("198.18.0.2", count=count, tlvs=tlvs)
        answers = travelled(session, fates, is_stateful=True, before=before)
        ways = ways_of(session, answers, count, True)
        reached = sum(not there for there, _ in fates)
        came = [number for number, fate in enumerate(fates) if not any(fate)]
        assert (ways["both"].received, ways["both"].lost) == (len(came), count - len(came))
        if not came:
            assert ways["there"].received is None
            continue
        least, most = ends(ways["there"].received)
        assert least <= reached <= most, SEED
        # What nobody can know: which way packets before the first answer (of a count that goes on) and after the last were lost on.
        assert most - least == count - 1 - came[-1] + (came[0] if before else 0), SEED
        assert ends(ways["there"].lost) == (count - most, count - least)
        assert ends(ways["back"].lost) == (least - len(came), most - len(came))


def test_a_reflector_that_does_not_count_says_nothing_of_the_ways_unless_all_came() -> None:
    session = StampSession("198.18.0.2", count=10)
    whole = ways_of(session, travelled(session, [(False, False)] * 10, is_stateful=False), 10, None)
    assert [(one.sent, one.received, one.lost) for name, one in whole.items() if name != "reflector"] == [
        (10, 10, 0)
    ] * 3
    fates = [(False, number == 3) for number in range(10)]
    some = ways_of(session, travelled(session, fates, is_stateful=False), 10, None)
    assert (some["there"].received, some["back"].lost, some["both"].lost) == (None, None, 1)


def test_duplicates_and_reordering_are_those_of_the_rfcs() -> None:
    session = StampSession("198.18.0.2", count=6)
    answers = travelled(session, [(False, False)] * 6, is_stateful=True)
    order = [0, 2, 1, 1, 3, 5, 4, 4]  # Two are late, two came twice.
    came = Answers(np.arange(len(order)), answers.octets[order], answers.length[order])
    ways = ways_of(session, came, 6, True)
    assert (ways["both"].received, ways["both"].lost, ways["both"].duplicated, ways["both"].reordered) == (6, 0, 2, 2)
    assert (ways["there"].reordered, ways["back"].reordered) == (0, 2)


def test_counts_that_wrap_are_told_apart() -> None:
    session = StampSession("198.18.0.2", count=8)
    answers = travelled(session, [(number == 4, False) for number in range(8)], is_stateful=True)
    octets = answers.octets.copy()
    own = (answers.base["sequence"].astype(np.int64) + 2**32 - 3) % 2**32
    octets[:, 0:4] = own.astype(">u4").view(np.uint8).reshape(-1, 4)
    ways = ways_of(session, Answers(answers.stamp_ns, octets, answers.length), 8, True)
    assert (ways["there"].received, ways["there"].lost, ways["back"].lost) == (7, 1, 0)


@pytest.mark.parametrize(("address", "length"), [("198.18.0.2", 86), ("2001:2::2", 114)])
def test_the_frames_are_those_of_the_rfc(address: str, length: int) -> None:
    session = StampSession(address, count=3, dscp=34, ttl=9, vlan_tags=(7,))
    stream = session.stream
    at = stream.headers.payload_offset
    frame = frame_of(stream, 2)
    assert len(frame) == length + 4
    packet = SenderPacket.unpack(frame[at:])
    assert (packet.sequence, packet.ssid, packet.error.word, packet.rest) == (2, 1, 0x3FFF, b"")
    assert [one.name for one in packet.tlvs] == ["extra-padding"] * (":" in address)
    assert stream.used_stamp is not None and stream.used_stamp.offset(stream.headers) == at + 4
    answered = session.answered(stream).used_stamp
    assert answered is not None and answered.offset(stream.headers) == at + 28


def test_every_tlv_can_be_asked_for_and_lies_where_it_is_looked_for() -> None:
    for name in ASKED:
        session = StampSession("198.18.0.2", count=4, tlvs=(name,), padding=3)
        answers = travelled(session, [(False, False)] * 4, is_stateful=False)
        assert [(one.name, one.returned, one.unrecognized) for one in tlvs_of(session, answers)] == [
            (name, 4, 0), ("extra-padding", 4, 0)
        ]  # fmt: skip
        frame = frame_of(session.stream, 1)
        packet = SenderPacket.unpack(frame[42:])
        assert [one.name for one in packet.tlvs] == [name, "extra-padding"]
        if name == "direct-measurement":
            assert packet.tlvs[0].value == (2).to_bytes(4, "big") + bytes(8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("198.18.0.1",), "198.18.0.1 is the session's own address: give that of the reflector, or another source"),
        (("255.255.255.255",), "is not the address of one reflector: give a unicast address"),
        (("ff02::1",), "is not the address of one reflector: give a unicast address"),
        (("0.0.0.0",), "is not the address of one reflector: give a unicast address"),
        (("reflector.example",), "'reflector.example' is not an IP address: write it like 198.18.0.1"),
        (("198.18.0.2", "--from", "2001:2::1"), "are of different families"),
        (("198.18.0.2", "--port", "0"), "--port 0 is out of range: give 1 to 65535"),
        (("198.18.0.2", "--count", "0"), "--count 0 is out of range"),
        (("198.18.0.2", "--dscp", "64"), "--dscp 64 is out of range: give 0 to 63"),
        (("198.18.0.2", "--padding", "1500"), "--padding 1500 is out of range: give 0 to 1400"),
        (("198.18.0.2", "--ssid", "65536"), "--ssid 65536 is out of range"),
        (("198.18.0.2", "--tlv", "hmac"), "there is no TLV 'hmac' to ask for"),
        (("198.18.0.2", "--tlv", "location,location"), "a TLV is asked for twice: name each once"),
        (
            ("2001:2::2", "--tlv", "direct-measurement,location"),
            "take 24 octets of each packet, and a probe has 16 for them",
        ),
        (("198.18.0.2", "--auth", "key"), "the authenticated mode of STAMP is not available (--auth)"),
        (("198.18.0.2", "--interval", "100ns"), "add up to 880 % of the line"),
        (("198.18.0.2", "--stateful", "--stateless"), "not allowed with argument"),
        (("198.18.0.2", "--probe", "sim://reflector?loss=200%"), "loss '200%' is not a percentage below 100%, like 2%"),
        (("198.18.0.2", "--probe", "sim://reflector?latency=3us"), "a reflector has no option 'latency=3us'"),
        (("198.18.0.2", "--probe", "sim://reflector?stateful=2"), "stateful is 0 or 1"),
        (("198.18.0.2", "--expect", "jitter < 1us"), "'stamp' doesn't measure jitter"),
    ],
)
def test_what_can_not_be_is_refused_before_anything_is_sent(run: Run, arguments: tuple[str, ...], message: str) -> None:
    code, out, err = run("stamp", *arguments)
    assert (code, out) == (2, "") and message in err, err


def test_an_address_of_another_kind_of_python_object_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="address"):
        StampSession(5)  # type: ignore[arg-type]
