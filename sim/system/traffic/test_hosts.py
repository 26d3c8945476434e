# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Hosts on the test ports of a whole probe: what is asked at the pins is answered there, in band and beside trains."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from liteprobe.cores.formats import Part
from liteprobe.cores.formats.reflect import (
    HEARD_WORD,
    PAGE_WORD,
    SEND_WORD,
    HostCount,
    HostWords,
    count_register,
    mail_frame,
    mail_words,
)
from liteprobe.host.traffic.train import TrainProgram
from liteprobe.sim.drivers.reflect.requests import PEER, Requests
from liteprobe.sim.drivers.system.monitoring import Monitored, monitored
from liteprobe.sim.drivers.system.tester import CABLE, joined, probe_frames
from liteprobe.sim.models.reflect.host import Host

PORTS = (0, 1)
HOSTS = [
    Host(
        bytes.fromhex(f"02aabbccdd0{port}"),
        bytes([10, 0, port, 2]),
        bytes.fromhex(f"20010db800000000000000000000010{port}"),
    )
    for port in PORTS
]
SETTLE_NS = 300_000


@pytest.fixture
def hosted(tester: Path, tmp_path: Path) -> Iterator[Monitored]:
    """A simulated tester whose ports have hosts."""
    with monitored(tester, tmp_path) as found:
        for port in PORTS:
            set_up(found, port)
        yield found


def set_up(tester: Monitored, port: int) -> None:
    """Give a port its addresses, and let it answer."""
    host = HOSTS[port]
    words = HostWords(host.mac, host.ipv4, host.ipv6).words
    tester.probe.registers.write_memory(f"port{port}_frames", PAGE_WORD, words)
    tester.probe.registers.write(f"port{port}_host_enable", host.enable)


def counts(tester: Monitored, port: int) -> dict[HostCount, int]:
    """Return the counters of a port's host."""
    names = {one: f"port{port}_{count_register(one)}" for one in HostCount}
    found = tester.probe.registers.read_many(names.values())
    return {one: found[name] for one, name in names.items()}


def unanswered(tester: Monitored, port: int) -> list[str]:
    """Return what the host of a port has not answered as the model does, with the times at the pins, or has not counted."""
    host, wrong, wanted = HOSTS[port], [], dict.fromkeys(HostCount, 0)
    left = iter([one for one in tester.pins(port, "out") if one[1][6:12] == host.mac])
    for came_ns, octets in tester.pins(port):
        if octets[6:12] != PEER:
            continue  # The host of the management link, in band.
        count, answer = host.outcome(octets)
        if answer is not None and count is not HostCount.HEARD:
            left_ns, has = next(left, (0, b""))
            count, answer = host.outcome(octets, came_ns, left_ns)
            assert answer is not None
            if has != answer.ljust(60, b"\0"):
                wrong.append(f"{octets.hex()} is answered {has.hex()}, not {answer.hex()}")
        if count is not None:
            wanted[count] += 1
    found = counts(tester, port)
    return wrong + [f"{one.name} {found[one]}, not {wanted[one]}" for one in HostCount if found[one] != wanted[one]]


def test_the_probe_says_that_its_ports_have_hosts(hosted: Monitored) -> None:
    assert hosted.probe.registers.read("probe_parts") & Part.HOSTS


def test_both_ports_answer_all_that_comes_at_line_rate(hosted: Monitored) -> None:
    for port in PORTS:
        requests = Requests(HOSTS[port], random.Random(31 + port), 90)
        kinds = [requests.arp, requests.ping4, requests.ping6, requests.solicitation, requests.heard]
        frames = [kinds[number % 5]() if number % 2 else requests.stamp(44 + number % 20) for number in range(120)]
        hosted.play(port, frames, start_ns=hosted.now_ns() + 20_000)
    hosted.harness.run(SETTLE_NS)
    assert [unanswered(hosted, port) for port in PORTS] == [[], []]


def test_a_port_asks_the_other_one_by_a_frame_of_the_host(tester: Path, tmp_path: Path) -> None:
    # What port 0, in band, answers goes to the network of the management link.
    with joined(tester, tmp_path, CABLE) as both:
        for port in PORTS:
            set_up(both, port)
        asked, ask = HOSTS
        frame = (
            b"\xff" * 6 + ask.mac + bytes.fromhex("08060001080006040001") + ask.mac + ask.ipv4 + bytes(6) + asked.ipv4
        )
        both.probe.registers.write_memory("port1_frames", SEND_WORD, mail_words(frame))
        both.probe.registers.write("port1_host_send", len(frame))
        both.harness.run(50_000)
        assert both.probe.registers.read("port1_host_sending") == 0
        assert [octets for _, octets in both.pins(1, "out")] == [frame.ljust(60, b"\0")]
        assert (counts(both, 1)[HostCount.SENT], counts(both, 0)[HostCount.ARP]) == (1, 1)
        answer = bytes.fromhex("08060001080006040002") + asked.mac + asked.ipv4 + ask.mac + ask.ipv4 + bytes(18)
        assert ask.mac + asked.mac + answer in [octets for _, octets in both.pins(0, "out")]


def test_what_answers_a_port_is_there_to_be_read(hosted: Monitored) -> None:
    reply = Requests(HOSTS[1], random.Random(34)).heard()
    hosted.play(1, [reply], start_ns=hosted.now_ns() + 20_000)
    hosted.harness.run(SETTLE_NS)
    words = hosted.probe.registers.read_memory("port1_frames", HEARD_WORD, 32)
    assert mail_frame(words)[: len(reply)] == reply
    assert counts(hosted, 1)[HostCount.HEARD] == 1


@pytest.mark.parametrize("interval_ns", [1504.0, pytest.param(4000.0, marks=pytest.mark.full)])
def test_a_train_keeps_its_ticks_while_the_host_of_its_port_answers(hosted: Monitored, interval_ns: float) -> None:
    requests = Requests(HOSTS[1], random.Random(33), 90)
    frames = [requests.stamp(44) if number % 2 else requests.ping4() for number in range(400)]
    start_ns = hosted.probe.timebase.now_ns + 2_000_000
    hosted.play(1, frames, start_ns=hosted.now_ns() + 2_000_000)
    hosted.probe.launch_all([(TrainProgram(60, 200, interval_ns=interval_ns, start_time_ns=start_ns), 1)])
    hosted.harness.run(3_000_000)
    left = [stamp for stamp, _ in probe_frames(hosted, 1, "out")]
    assert left == [start_ns + round(number * interval_ns) for number in range(200)]
    found = counts(hosted, 1)
    given = [one for one in hosted.pins(1, "out") if one[1][6:12] == HOSTS[1].mac]
    assert found[HostCount.PING4] + found[HostCount.STAMP4] + found[HostCount.STAMP6] == len(given) > 0
    assert len(given) + found[HostCount.FULL] == len(frames)
