# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sessions of STAMP from a simulated tester to a reflector that was written from the RFCs: each figure against the wire."""

import random
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.device.link.url import sim_url
from liteprobe.host.measure.percentiles import Bounds
from liteprobe.host.packets.stamp import ANSWER_DTYPE
from liteprobe.host.probe import Probe
from liteprobe.host.run.stamp import StampResult, StampSession
from liteprobe.sim.drivers.peers.peer import Peer, ReflectingHost
from liteprobe.sim.models.reflector import Host, Reflector

PORT = 1  # Management is in band on port 0.
MAC = bytes.fromhex("024c50540002")
SEED = random.randrange(2**31)
ADDRESSES = ("198.18.0.2", "2001:2::2")


def run(folder: Path, peer: ReflectingHost, *sessions: StampSession) -> list[StampResult]:
    """Return what came of sessions of a probe with a reflector at the end of its line, which nothing else is on."""
    with Probe(sim_url("cable?loss=100%", build=folder, link="shared")) as probe, Peer(peer) as one:
        assert isinstance(probe.link, SimLink)
        one.put(probe.link, PORT)
        return [probe.stamp(session) for session in sessions]


def payloads(sent: list[tuple[int, bytes]]) -> NDArray[np.void]:
    """Return the bases of the answers that a reflector sent, whatever became of them."""
    bases = [frame[at : at + 44] for _, frame in sent for at in [62 if frame[12:14] == b"\x86\xdd" else 42]]
    return np.frombuffer(b"".join(bases), ANSWER_DTYPE)


def came_of(peer: ReflectingHost) -> NDArray[np.uint32]:
    """Return the numbers of the packets whose answers were not lost."""
    return np.asarray(payloads(peer.delivered)["sender_sequence"])


def least(found: int | Bounds | None) -> float:
    """Return the least that a count can be."""
    assert found is not None
    return found.least if isinstance(found, Bounds) else found


def most(found: int | Bounds | None) -> float:
    """Return the most that a count can be."""
    assert found is not None
    return found.most if isinstance(found, Bounds) else found


@pytest.mark.parametrize("address", ADDRESSES)
def test_each_way_is_what_was_on_the_wire(tester: Path, address: str) -> None:
    peer = ReflectingHost(
        Host(ADDRESSES, MAC, reflector=Reflector(is_stateful=True, is_ptp=True)), 1504, loss=0.1, seed=SEED
    )
    session = StampSession(
        address, count=120, interval_ns=9000.0, tlvs=("direct-measurement",), any_clock=True, transmit=PORT, dscp=12
    )
    (result,) = run(tester, peer, session)
    there, back, both, reflector = (result[name] for name in ("there", "back", "both", "reflector"))
    reached, came = 120 - peer.lost_there, 120 - peer.lost_there - peer.lost_back
    assert (both.sent, both.received, both.lost, both.duplicated, both.reordered) == (120, came, 120 - came, 0, 0), SEED
    assert (there.sent, back.received) == (120, came), SEED
    last = 119 - int(came_of(peer)[-1])  # Packets after the last answer: it isn't known which way they were lost on.
    for found, truth in (
        (there.received, reached),
        (there.lost, peer.lost_there),
        (back.sent, reached),
        (back.lost, peer.lost_back),
    ):
        assert least(found) <= truth <= most(found) == least(found) + last, SEED
    answers = payloads(peer.sent)
    assert answers["sequence"].tolist() == list(range(reached))
    assert np.diff(answers["sender_sequence"].astype(int)).min() > 0 and answers["sender_error"][0] == 0x3FFF
    sent_ns = answers["sender_timestamp"].astype(np.int64)
    assert (np.diff(sent_ns) == 9000 * np.diff(answers["sender_sequence"].astype(np.int64))).all()
    # The line has no delay of its own: both ways take nothing, and each way what the two clocks are apart.
    assert (both.least, both.most, both.std) == (0.0, 0.0, 0.0)
    assert (there.least, there.most) == (-back.least, -back.most)
    assert reflector.least == reflector.most == 1504 + 8 * (len(peer.sent[0][1]) + 4)
    assert (result.late, result.is_stateful, result.is_complete, result.end) == (0, True, True, "sent")
    assert next((one.name, one.returned, one.unrecognized) for one in result.tlvs) == ("direct-measurement", came, 0)
    assert {
        frame[15] if frame[12:14] == b"\x08\0" else (frame[14] << 8 | frame[15]) >> 4 & 255 for _, frame in peer.sent
    } == {48}


def test_a_reflector_of_twamp_light_and_one_that_is_silent(tester: Path) -> None:
    short = ReflectingHost(Host(ADDRESSES, MAC, reflector=Reflector(is_short=True)), seed=SEED)
    session = StampSession("198.18.0.2", count=30, interval_ns=9000.0, padding=20, transmit=PORT)
    silent = StampSession("198.18.0.9", count=5, interval_ns=9000.0, transmit=PORT)
    result, nothing = run(tester, short, session, silent)
    assert (result.sent, result.received, result.lost) == (30, 30, 0)
    assert result["there"].least is None and result["both"].most == 0.0
    assert [one.returned for one in result.tlvs] == [0]
    assert any("TLV extra-padding: in 0 of 30 answers" in note for note in result.notes)
    assert (nothing.sent, nothing.received, nothing.lost) == (5, 0, 5)
    assert any("no answer came from 198.18.0.9 port 862: check the address" in note for note in nothing.notes)
