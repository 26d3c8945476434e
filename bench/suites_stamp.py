# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sessions of STAMP with programs of others, each way: stamp-suite, Nokia's twampy, scapy.

A program that isn't on PATH (``stamp-suite``, ``twampy``) is skipped, which is said: nothing is fetched or built here.
Not measured here are delays: these programs have clocks of their own.
"""

import json
import random
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from scapy.contrib import stamp as scapy_stamp

from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.packets.stamp import (
    ASKED,
    ErrorEstimate,
    ReflectorPacket,
    SenderPacket,
    StampTlv,
    Tlv,
    TlvFlag,
    ntp_time,
    ptp_time,
    requested,
)
from liteprobe.host.probe import Probe
from liteprobe.host.run.stamp import StampSession
from liteprobe.host.traffic.headers import mac_octets
from liteprobe.sim.drivers.peers.peer import Peer, ReflectingHost
from liteprobe.sim.drivers.tools.figures import Figure, note, row
from liteprobe.sim.models.reflector import Host, Received, Reflector

PACKETS = 1000
ANSWER_S = 2.0
SETTLE_S = 1.0
IP_RECVTTL = 12  # Of Linux; Python does not name it.
#: One that nobody knows, and padding.
EXTRA = (Tlv(200, b"liteprobe"), Tlv(StampTlv.EXTRA_PADDING, bytes(30)))


def found(program: str) -> bool:
    """Return whether a program is there; say so where it isn't."""
    if shutil.which(program):
        return True
    note(f"skipped: {program} is not on PATH")
    return False


@contextmanager
def running(*command: str) -> Iterator[None]:
    """Run a program in the background, until the body is left."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(SETTLE_S)
        yield
    finally:
        process.terminate()
        process.wait(5)


def free_port() -> int:
    """Return a UDP port of this machine that nobody has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


# Their reflectors ---------------------------------------------------------------------------------


def packet(number: int, chance: random.Random, tlvs: tuple[Tlv, ...]) -> SenderPacket:
    """Return a test packet with any times, errors and identifiers."""
    is_ptp = chance.random() < 0.5
    time_ns = chance.randrange(2**60)
    error = ErrorEstimate(chance.random() < 0.5, is_ptp, chance.randrange(64), chance.randrange(1, 256))
    return SenderPacket(number, (ptp_time if is_ptp else ntp_time)(time_ns), error, 7, tlvs)


def wrong_answers(port: int, tlvs: tuple[Tlv, ...], is_stateful: bool, copies: bool = True) -> tuple[int, int]:
    """Send packets to a reflector one by one; return how many were answered, and how many answers are not as the RFCs say.

    ``copies``: whether the reflector is to know the extensions of RFC 8972: the session identifier, and TLVs.
    """
    chance, answered, wrong = random.Random(20261127), 0, 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.settimeout(ANSWER_S)
        sender.connect(("127.0.0.1", port))
        for number in range(PACKETS):
            asked = packet(number, chance, tlvs)
            sender.send(asked.pack())
            with suppress(TimeoutError, ConnectionRefusedError):
                came = ReflectorPacket.unpack(sender.recv(2048))
                answered += 1
                wrong += bool(difference(asked, came, number if is_stateful else asked.sequence, copies))
    return answered, wrong


def difference(asked: SenderPacket, came: ReflectorPacket, sequence: int, copies: bool) -> list[str]:
    """Return what of an answer isn't as the RFCs say."""
    pairs = {
        "sequence": (came.sequence, sequence),
        "sender's sequence": (came.sender_sequence, asked.sequence),
        "sender's time": (came.sender_timestamp, asked.timestamp),
        "sender's error": (came.sender_error, asked.error),
        "order of T2 and T3": (came.received <= came.timestamp, True),
        "multiplier": (came.error.multiplier > 0, True),
        "rest": (came.rest, b""),
    }
    if copies:
        pairs["identifier"] = (came.ssid, asked.ssid)
        pairs["types"] = ([one.type for one in came.tlvs], [one.type for one in asked.tlvs])
        pairs["lengths"] = ([len(one.value) for one in came.tlvs], [len(one.value) for one in asked.tlvs])
        unknown = [one.type for one in came.tlvs if one.flags & TlvFlag.UNRECOGNIZED]
        pairs["unknown"] = (unknown, [one.type for one in asked.tlvs if one.type == EXTRA[0].type])
    return [f"{name}: {one}, not {other}" for name, (one, other) in pairs.items() if one != other]


@row("suites")
def test_stamp_suite_reflects() -> Iterator[Figure]:
    """1,000 packets to stamp-suite's reflector, stateless and stateful, bare and with TLVs: each answer is checked."""
    if not found("stamp-suite"):
        return
    tlvs = (*(requested(name) for name in ASKED), *EXTRA)
    for name, is_stateful, own in (("stateless", False, ()), ("stateful", True, ()), ("tlvs", False, tlvs)):
        port = free_port()
        command = ["stamp-suite", "-i", "-S", "127.0.0.1", "-o", str(port), *["--stateful-reflector"] * is_stateful]
        with running(*command):
            answered, wrong = wrong_answers(port, own, is_stateful)
        yield Figure(f"stamp_suite_{name}_answered", answered, f"of {PACKETS}", PACKETS, is_least=True)
        yield Figure(f"stamp_suite_{name}_wrong", wrong, "answers", 0)


@row("suites")
def test_twampy_reflects() -> Iterator[Figure]:
    """1,000 packets to the reflector of Nokia's twampy, which is one of TWAMP Light: bare packets, stateful."""
    if not found("twampy"):
        return
    port = free_port()
    with running("twampy", "responder", f"127.0.0.1:{port}"):
        answered, wrong = wrong_answers(port, (), is_stateful=True, copies=False)
    yield Figure("twampy_reflector_answered", answered, f"of {PACKETS}", PACKETS, is_least=True)
    yield Figure("twampy_reflector_wrong", wrong, "answers", 0)


class Forwarded(Reflector):
    """Hands each packet to a reflector on a UDP port of this machine, and its answer back."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.settimeout(ANSWER_S)
        self._socket.connect(("127.0.0.1", port))

    def answer(self, one: Received, sent_ns: int) -> bytes | None:
        """Return the other reflector's answer, whatever time it takes: simulated time stands still."""
        del sent_ns
        self._socket.send(one.payload)
        with suppress(TimeoutError, ConnectionRefusedError):
            return self._socket.recv(2048)
        return None


@row("suites")
def test_stamp_suite_answers_a_probe() -> Iterator[Figure]:
    """1,000 packets of a simulated tester's session, with TLVs, answered by stamp-suite; its times are this machine's."""
    if not found("stamp-suite"):
        return
    tlvs = ("direct-measurement", "class-of-service", "location")
    session = StampSession("198.18.0.2", count=PACKETS, interval_ns=9000.0, tlvs=tlvs)
    port = free_port()
    with running("stamp-suite", "-i", "-S", "127.0.0.1", "-o", str(port), "--stateful-reflector"):
        host = Host(("198.18.0.2",), mac_octets(session.destination_mac), reflector=Forwarded(port))
        with Probe("sim://cable?loss=100%&preset=tester&cpu=0") as probe, Peer(ReflectingHost(host)) as peer:
            assert isinstance(probe.link, SimLink)
            peer.put(probe.link, 0)
            result = probe.stamp(session)
    ways = [result[name] for name in ("there", "back", "both")]
    yield Figure("stamp_suite_to_probe_received", result.received or 0, f"of {PACKETS}", PACKETS, is_least=True)
    yield Figure(
        "stamp_suite_to_probe_lost_of_three", sum(one.lost == 0 for one in ways), "ways without loss", 3, is_least=True
    )
    returned = sum(one.returned == PACKETS and not one.unrecognized for one in result.tlvs)
    yield Figure("stamp_suite_to_probe_tlvs", returned, "TLVs in every answer", len(tlvs), is_least=True)


# Their senders ------------------------------------------------------------------------------------


@contextmanager
def reflecting(reflector: Reflector) -> Iterator[tuple[int, Callable[[], int]]]:
    """Serve the reference reflector on a UDP port of this machine; yields the port, and how many packets it has answered."""
    answered = [0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)
        server.settimeout(0.1)
        ended = threading.Event()

        def serve() -> None:
            while not ended.is_set():
                with suppress(TimeoutError):
                    payload, ancillary, _, (address, port) = server.recvmsg(2048, 64)
                    came_ns = time.time_ns()
                    ttl = int.from_bytes(ancillary[0][2], "little")
                    one = Received(payload, address, port, server.getsockname()[1], ttl, 0, came_ns)
                    if made := reflector.answer(one, time.time_ns()):
                        server.sendto(made, (address, port))
                        answered[0] += 1

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1], lambda: answered[0]
        finally:
            ended.set()
            thread.join()


@row("suites")
def test_stamp_suite_sends() -> Iterator[Figure]:
    """1,000 packets of stamp-suite's sender to the reference reflector, either format of time: what its own report says."""
    if not found("stamp-suite"):
        return
    for name, reflector in (("ntp", Reflector()), ("ptp_stateful", Reflector(is_stateful=True, is_ptp=True))):
        with reflecting(reflector) as (port, answered):
            options = ["-r", "127.0.0.1", "-p", str(port), "-c", str(PACKETS), "-d", "1", "-L", "2", "--ssid", "7"]
            command = ["stamp-suite", *options, "--output-format", "json"]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        said = json.loads(done.stdout)
        yield Figure(f"stamp_suite_{name}_came", answered(), f"of {PACKETS}", PACKETS, is_least=True)
        yield Figure(f"stamp_suite_{name}_received", said["packets_received"], f"of {PACKETS}", PACKETS, is_least=True)
        yield Figure(f"stamp_suite_{name}_lost", said["packets_lost"], "packets", 0)


@row("suites")
def test_twampy_sends() -> Iterator[Figure]:
    """1,000 packets of twampy's sender to the reference reflector: what its own report says was lost."""
    if not found("twampy"):
        return
    with reflecting(Reflector(is_stateful=True)) as (port, answered):
        command = ["twampy", "sender", f"127.0.0.1:{port}", f"127.0.0.1:{free_port()}", "-i", "1", "-c", str(PACKETS)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    losses = [line.split()[-1] for line in done.stdout.splitlines() if line.startswith(("  Outbound", "  Inbound"))]
    note(*done.stdout.splitlines()[-6:])
    yield Figure("twampy_sender_came", answered(), f"of {PACKETS}", PACKETS, is_least=True)
    yield Figure("twampy_sender_lossless_ways", sum(one == "0.0%" for one in losses), "of 2", 2, is_least=True)


# Scapy --------------------------------------------------------------------------------------------


@row("suites")
def test_scapy() -> Iterator[Figure]:
    """1,000 packets each way, packed here and taken apart by scapy, and made by scapy and taken apart here."""
    chance, wrong_there, wrong_back = random.Random(862), 0, 0
    for number in range(PACKETS):
        one = packet(chance.randrange(2**32), chance, ())
        told = scapy_stamp.STAMPSessionSenderTestUnauthenticated(one.pack())
        seen = (told.seq, told.ssid, told.err_estimate.S, told.err_estimate.Z, told.err_estimate.scale)
        error = one.error
        wrong_there += seen != (one.sequence, one.ssid, error.is_synchronized, error.is_ptp, error.scale)
        wrong_there += told.err_estimate.multiplier != error.multiplier
        answer = Reflector(is_stateful=True).answer(Received(one.pack(), "192.0.2.1", 9, 862, 64, 0, number), number)
        assert answer is not None
        theirs = scapy_stamp.STAMPSessionReflectorTestUnauthenticated(answer)
        ours = ReflectorPacket.unpack(bytes(theirs))
        expected = (0, one.sequence, one.timestamp, one.error, one.ssid, 64)
        back = (ours.sequence, ours.sender_sequence, ours.sender_timestamp, ours.sender_error, ours.ssid)
        wrong_back += (*back, ours.sender_ttl) != expected
        wrong_back += (theirs.seq_sender, theirs.ttl_sender) != (one.sequence, 64)
    yield Figure("scapy_wrong_there", wrong_there, f"of {PACKETS}", 0)
    yield Figure("scapy_wrong_back", wrong_back, f"of {PACKETS}", 0)
