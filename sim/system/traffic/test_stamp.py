# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sessions of STAMP from a simulated tester to a reflector that was written from the RFCs: each figure against the wire."""

import doctest
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import transcripts as sessions
from numpy.typing import NDArray

from liteprobe.host.base.errors import ProbeError
from liteprobe.host.cli.main import main
from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.device.link.url import sim_url
from liteprobe.host.measure.percentiles import Bounds
from liteprobe.host.packets.stamp import ANSWER_DTYPE
from liteprobe.host.probe import Probe
from liteprobe.host.run.hosts import HostSettings
from liteprobe.host.run.stamp import StampResult, StampSession
from liteprobe.host.traffic.document import read_document
from liteprobe.host.traffic.headers import Headers
from liteprobe.host.traffic.train import TrainProgram
from liteprobe.sim.drivers.peers.peer import Peer, ReflectingHost
from liteprobe.sim.models.reflector import Host, Reflector

PORT = 1  # Management is in band on port 0.
MAC = bytes.fromhex("024c50540002")
SEED = random.randrange(2**31)
ADDRESSES = ("198.18.0.2", "2001:2::2")


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for what does not come no longer than these lines and reflectors take: simulated time is dear."""
    monkeypatch.setattr(SimLink, "arrival_timeout_s", 5e-4)


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


@pytest.mark.parametrize("address", [ADDRESSES[0], pytest.param(ADDRESSES[1], marks=pytest.mark.full)])
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


@pytest.mark.parametrize(
    ("own", "other"), [pytest.param("10.0.1.2", "10.0.1.3", marks=pytest.mark.full), ("fd00::2", "fd00::3")]
)
def test_the_reflector_of_another_port_says_what_the_cable_takes(tester: Path, own: str, other: str) -> None:
    name = "ipv6" if ":" in own else "ipv4"
    with Probe(sim_url("cable?delay=1us", build=tester, link="shared")) as probe:
        probe.host(0).set(HostSettings(**{name: other}, reflects=True, is_stateful=True))  # type: ignore[arg-type]
        session = StampSession(other, count=40, interval_ns=20_000.0, source=own, transmit=PORT, any_clock=True)
        result = probe.stamp(session)
        counted = probe.host(0).counts()
    there, back, both, reflector = (result[name] for name in ("there", "back", "both", "reflector"))
    assert (both.sent, both.received, both.lost, result.is_stateful) == (40, 40, 0, None)
    # One clock stamps all four times, each at a SFD: a way is the cable. Requests of management delay what comes to port 0.
    assert (there.least, back.least, back.most, both.least) == (1000, 1000, 1000, 2000)
    assert there.delays_ns is not None and back.delays_ns is not None and both.delays_ns is not None
    assert (there.delays_ns + back.delays_ns == both.delays_ns).all()
    assert reflector.least is not None and reflector.least > 8 * 90
    assert counted["stamp6" if name == "ipv6" else "stamp4"] == 40
    assert counted["nd" if name == "ipv6" else "arp"] >= 1


# In band, the simulation takes ARP that port 0 asks for management's: what asks is port 1.
DOCUMENT = """
defaults: {port: 1, length: 100, pps: 9k, count: 30}
streams:
  - {name: four, from: 10.0.2.2, via: 10.0.2.1, ipv4: {destination: 10.0.1.2}}
  - {name: six, from: "fd00:0:0:2::2", via: "fd00:0:0:2::1", ipv6: {destination: "fd00:0:0:1::2"}}
"""


def test_streams_pass_a_router_that_must_be_spoken_to(tester: Path) -> None:
    with Probe(sim_url("router?latency=3us", build=tester, link="shared")) as probe:
        with probe.send(read_document(DOCUMENT)) as traffic:
            result = traffic.result()
        with pytest.raises(
            ProbeError, match=r"10\.0\.2\.9 did not answer ARP on port 1 \(asked 3 times from 10\.0\.2\.2\)"
        ):
            probe.send([replace(read_document(DOCUMENT)[0], via="10.0.2.9")])
        asked = probe.host(1).counts()
    assert [(one.name, one.sent, one.received, one.lost) for one in result.rows] == [
        (name, 30, 30, 0) for name in ("four", "six")
    ]
    assert result["four"].least == 8 * (100 + 12) + 3000  # Of a router that needn't wait: docs/simulation.md.
    assert (asked["heard"], asked["sent"]) == (
        2,
        2 + 2 + 1 + 3,
    )  # Announced twice, two questions; and again, then three.


@pytest.mark.parametrize(
    ("own", "router", "other"),
    [
        pytest.param("10.0.2.2", "10.0.2.1", "10.0.1.2", marks=pytest.mark.full),
        ("fd00:0:0:2::2", "fd00:0:0:2::1", "fd00:0:0:1::2"),
    ],
)
def test_a_train_passes_it_as_streams_do(tester: Path, own: str, router: str, other: str) -> None:
    headers = Headers(source_ip=own, destination_ip=other)
    program = TrainProgram(100, 30, interval_ns=111_000.0, headers=headers, source=own, via=router)
    with Probe(sim_url("router?latency=3us", build=tester, link="shared")) as probe:
        result = probe.train(program, PORT)
        with pytest.raises(ProbeError, match=r"did not answer .* on port 1"):
            probe.train(replace(program, via=router.replace("::1", "::9").replace("2.1", "2.9")), PORT)
    assert (result.sent, result.received, result.lost) == (30, 30, 0)
    assert result.program.headers.destination_mac == "02:00:00:00:52:01"
    assert min(result.delays_ns) == 8 * (100 + 12) + 3000


def test_a_session_prints_what_its_page_shows(tester: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first session of the page, which the tester of the other tests sends; its own command is run by ``--full``."""
    page = (sessions.ROOT / "docs/stamp.md").read_text()
    command, shown = sessions.COMMAND.findall(sessions.BLOCK.findall(page)[0])[0]
    url = sim_url("reflector", build=tester, link="shared")
    assert main([*command.split()[2:], "--transmit", str(PORT), "--probe", url]) == 0
    printed = sessions.plain(capsys.readouterr().out)
    assert doctest.OutputChecker().check_output(sessions.plain(shown), printed, doctest.ELLIPSIS), printed
