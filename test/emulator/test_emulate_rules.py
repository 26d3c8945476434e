# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Frames get their class by the rules of both directions in the tables of one filter."""

from pathlib import Path

import pytest

from liteprobe.host.base.errors import UsageError
from liteprobe.host.probe import Probe
from liteprobe.host.run.emulate import rules_of
from liteprobe.host.traffic.network import Direction, Network, TrafficClass
from liteprobe.sim.drivers.system.fake_link import FakeLink, fake_emulator
from liteprobe.sim.models.probe.emulator import EmulatorProbe
from liteprobe.sim.models.receive.filter import FilterKey, FilterModel

Fake = tuple[EmulatorProbe, FakeLink]


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    """A probe that emulates, and the link to it."""
    return fake_emulator(tmp_path)


def test_rules_ask_in_the_order_of_classes_each_way_by_itself() -> None:
    there = Direction(classes=[TrafficClass("a", "udp"), TrafficClass("b", "tcp port 80")])
    back = Direction(classes=[TrafficClass("a", "icmp"), TrafficClass("b", "tcp port 80")])
    rules = rules_of(Network(there, back))
    assert [(one.match.text, one.channel, one.probe_ports) for one in rules] == [
        ("udp", 0, 1), ("icmp", 0, 2), ("tcp port 80", 1, 3),
    ]  # fmt: skip


def test_the_filter_names_the_class_of_a_frame(fake: Fake) -> None:
    there = Direction(classes=[TrafficClass("a", "udp port 5060"), TrafficClass("b", "udp")])
    back = Direction(classes=[TrafficClass("a", "udp"), TrafficClass("c", "arp"), TrafficClass("d")])
    with Probe(fake[1]) as probe, probe.emulate(Network(there, back)):
        memory = probe.registers.memory("filter")
        words = [int(word) for word in probe.registers.read_memory("filter", 0, memory.words)]
        control = probe.registers.read("filter_control")
    model = FilterModel({address: word for address, word in enumerate(words) if word})
    addresses = (bytes(4), bytes(4))

    def channel(port: int, protocol: int, destination: int) -> int | None:
        key = FilterKey(1, addresses, protocol, (1, destination), probe_port=port)  # type: ignore[arg-type]
        return model.decide(key).channel

    assert control == 1
    assert [channel(0, 17, 5060), channel(0, 17, 9), channel(1, 17, 5060), channel(0, 6, 5060)] == [0, 1, 0, None]


def test_without_classes_nothing_is_filtered(fake: Fake) -> None:
    fake[0].values["filter_control"] = 1
    with Probe(fake[1]) as probe, probe.emulate(Network()):
        assert probe.registers.read("filter_control") == 0


def test_matches_that_do_not_fit_are_refused_before_anything_is_written(fake: Fake) -> None:
    classes = [TrafficClass("a", "udp port 5060"), TrafficClass("b", "tcp port 80")]
    with Probe(fake[1]) as probe, pytest.raises(UsageError, match="share one set of") as caught:
        probe.emulate(Network(Direction(classes=classes)))
    assert "match by what one set of each can say, or use fewer classes" in str(caught.value)
    assert fake[0].values["probe_lease_owner"] >> 16 == 0
    with Probe(fake[1]) as probe, pytest.raises(UsageError, match="no frame can be 'udp and tcp'"):
        probe.emulate(Network(Direction(classes=[TrafficClass(match="udp and tcp")])))
