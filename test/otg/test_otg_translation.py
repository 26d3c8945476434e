# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Configurations of Open Traffic Generator against a model that knows the flows as their clients wrote them."""

import random
import re
from fractions import Fraction
from typing import Any

import pytest
from google.protobuf import json_format
from otg_configs import (
    REFUSED,
    RUNS,
    UNMEASURED,
    config,
    counting,
    dscp,
    ethernet,
    fixed,
    flow,
    ipv4,
    ipv6,
    packets,
    pps,
    tcp,
    udp,
    value,
    values,
    vlan,
)
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import ARP, GRE, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Raw

from liteprobe.host.otg.config import OtgPorts, OtgSetup, setup_of
from liteprobe.host.otg.flows import TimeScale
from liteprobe.host.otg.messages import OtgError, pb
from liteprobe.host.traffic.lengths import Lengths, RandomLength
from liteprobe.host.traffic.modifiers import Field, Values
from liteprobe.sim.models.traffic import otg as model
from liteprobe.sim.models.traffic import streams as traffic

Json = dict[str, Any]
SEEDS = (424242, 20261127, 7_777_777)


def translated(given: Json, scale: int = 1) -> OtgSetup:
    """Return what a configuration asks for."""
    return setup_of(
        json_format.ParseDict(given, pb.Config()), OtgPorts(2, {"veth1": 1}, "sim://x"), TimeScale(Fraction(scale))
    )


def errors_of(given: Json) -> list[str]:
    """Return the errors of a configuration."""
    with pytest.raises(OtgError) as raised:
        translated(given)
    assert (raised.value.code, raised.value.kind) == (400, "validation")
    return raised.value.errors


def frames_of(setup: OtgSetup, most: int = 40) -> list[tuple[int, bytes]]:
    """Return time and octets of the first frames that the streams of a setup are, by the model of streams."""
    streams = [one.stream for one in setup.flows]
    wanted = traffic.schedule(streams, most)
    octets = traffic.octets(streams, wanted, lambda start: 8 * start)
    return [(8 * int(row["start"]), one) for row, one in zip(wanted, octets, strict=True)]


def check(given: Json, scale: int = 1) -> None:
    """Compare the frames of a configuration of one flow with the model."""
    setup, one = translated(given, scale), given["flows"][0]
    count = model.count(one, scale)
    assert setup.flows[0].stream.count == count
    assert model.wrong_frames(one, frames_of(setup, count or 40), scale) == []


@pytest.mark.parametrize("name", RUNS)
def test_frames_are_those_that_the_client_wrote(name: str) -> None:
    check(RUNS[name])


@pytest.mark.parametrize("name", REFUSED)
def test_what_can_not_be_is_refused_by_its_path(name: str) -> None:
    given, path = REFUSED[name]
    errors = errors_of(given)
    assert any(error.startswith(f"{path}: ") for error in errors), errors


def kinds_of(given: Json) -> list[str]:
    """Return the kinds of the headers of a configuration of one flow."""
    return [one["choice"] for one in given["flows"][0]["packet"]]


def drawn(rng: random.Random, number: int) -> Json:
    """Return any flow that a probe can send."""

    def number_field(bits: int, high: bool = False) -> Json:
        top = (1 << bits) - 1
        low = rng.randrange(top // 2)
        kind = rng.randrange(4)
        if kind == 0 or high:
            return value(rng.randrange(top + 1))
        if kind == 1:
            return values(*(rng.randrange(top + 1) for _ in range(rng.randrange(1, 9))))
        step = rng.randrange(1, max(2, top // 64))
        if rng.random() < 0.3:  # It leaves the field's range, and goes on at the other end.
            return counting(top - rng.randrange(step), step, rng.randrange(2, 30))
        if rng.random() < 0.2:
            return counting(rng.randrange(step), step, rng.randrange(2, 30), "decrement")
        if kind == 2:
            return counting(low, step, rng.randrange(1, min(30, max(2, (top - low) // step))))
        return counting(top - low, step, rng.randrange(1, min(30, max(2, (top - low) // step))), "decrement")

    has_vlan, is_six, is_tcp = rng.random() < 0.4, rng.random() < 0.4, rng.random() < 0.4
    packet = [ethernet(number)] + ([vlan(1, id=number_field(12), priority=value(rng.randrange(8)))] if has_vlan else [])
    changing = (not has_vlan) + rng.randrange(2)
    if is_six:
        label = number_field(20, changing < 1)
        packet.append(
            ipv6(flow_label=label, hop_limit=value(rng.randrange(256)), traffic_class=value(rng.randrange(256)))
        )
    else:
        phb = number_field(6, changing < 1)
        packet.append(ipv4(priority=dscp(phb, value(rng.randrange(4))), time_to_live=value(rng.randrange(256))))
    packet.append((tcp if is_tcp else udp)(src_port=number_field(16), dst_port=number_field(16)))
    size = rng.choice([128, 129, 200, 333, 1518])
    rate: Json = rng.choice(
        [
            pps(rng.randrange(1, 80_000)),
            {"choice": "percentage", "percentage": rng.randrange(1, 1000) / 10},
            {"choice": "kbps", "kbps": str(rng.randrange(1, 1_000_000))},
        ]
    )
    metrics = {"enable": rng.random() < 0.5}
    return flow(
        *packet, number=number, size=fixed(size), rate=rate, duration=packets(rng.randrange(1, 40)), metrics=metrics
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_any_flow_is_exact(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        check(config(drawn(rng, 1)))


def test_a_time_scale_makes_a_client_s_second_shorter() -> None:
    slow = flow(rate=pps(50), duration={"choice": "fixed_seconds", "fixed_seconds": {"seconds": 2}})
    check(config(slow), 1000)
    late = flow(
        rate=pps(50),
        duration={
            "choice": "fixed_packets",
            "fixed_packets": {"packets": 3, "delay": {"choice": "microseconds", "microseconds": 5000}},
        },
    )
    assert translated(config(late), 1000).flows[0].stream.start_ns == 5000
    with pytest.raises(OtgError) as raised:
        translated(config(flow(rate={"choice": "percentage", "percentage": 1})), 1000)
    assert "(with the time scale of 1000)" in raised.value.errors[0]


def test_sizes_are_drawn_by_their_weights() -> None:
    lengths = translated(RUNS["imix"]).flows[0].stream.length
    assert isinstance(lengths, Lengths) and lengths.random
    assert sorted(lengths.entries) == [60] * 7 + [566] * 4 + [1514]
    lengths = translated(RUNS["custom weights"]).flows[0].stream.length
    assert isinstance(lengths, Lengths) and sorted(lengths.entries) == [60] * 7 + [508] * 2 + [996]
    assert translated(RUNS["sizes at random"]).flows[0].stream.length == RandomLength(60, 196)


def every_field(message: Any, depth: int = 0) -> Any:
    """Fill each field of a message, lists with one member, to a depth."""
    for one in message.DESCRIPTOR.fields:
        if one.message_type is not None:
            if depth < 3:
                inner = getattr(message, one.name).add() if one.is_repeated else getattr(message, one.name)
                inner.SetInParent() if not one.is_repeated else None
                every_field(inner, depth + 1)
        elif one.name not in ("name", "choice", "location", "port_names", "port_name"):
            filled: Any = {9: "1", 8: True, 12: b"1"}.get(one.type, 1)
            if one.is_repeated:
                getattr(message, one.name).append(filled)
            else:
                setattr(message, one.name, filled)
    return message


def test_no_field_of_the_models_is_passed_over() -> None:
    read = ("ports", "flows", "captures", "layer1", "devices", "options")
    for top in pb.Config.DESCRIPTOR.fields:
        given = pb.Config()
        inner = getattr(given, top.name)
        every_field(inner.add() if top.is_repeated else inner, 1)
        with pytest.raises(OtgError) as raised:
            setup_of(given, OtgPorts(2), TimeScale())
        paths = " ".join(error.split(": ")[0] for error in raised.value.errors)
        assert re.search(rf"\b{top.name}\b", paths)
        if top.name not in read:
            assert raised.value.errors == [
                f"{top.name}: liteprobe does not support this field: leave it out (docs/otg.md)"
            ]


def test_each_field_of_a_flow_makes_a_difference_or_an_error() -> None:
    """A field that is set beside a good flow changes what is sent or measured, is refused, or says what holds anyway."""
    same = {"metrics.loss", "metrics.timestamps", "duration.fixed_packets.gap", "metrics.latency.mode"}
    base = config(flow(duration=packets(5)))
    plain = repr(translated(base).flows[0].stream)
    kept = set()
    for path, changed in _with_one_more(json_format.ParseDict(base, pb.Config())):
        try:
            found = setup_of(changed, OtgPorts(2), TimeScale())
        except OtgError:
            continue
        if repr(found.flows[0].stream) == plain:
            kept.add(path)
    assert kept <= same | {"metrics.rx_tx_ratio.value", "size.choice", "rate.choice", "packet"}, kept


def _with_one_more(base: Any) -> Any:
    """Yield configurations that have one field of the flow more, with its path."""

    def visit(message: Any, path: str, whole: Any) -> Any:
        for one in message.DESCRIPTOR.fields:
            if one.is_repeated or one.name in ("choice", "name"):
                continue
            here = f"{path}.{one.name}".lstrip(".")
            if one.message_type is not None:
                if message.HasField(one.name):
                    yield from visit(getattr(message, one.name), here, whole)
            elif not message.HasField(one.name):
                setattr(message, one.name, {9: "1", 8: True, 14: 1}.get(one.type, 1))
                yield here, whole
                message.ClearField(one.name)

    yield from visit(base.flows[0], "", base)
    for header in base.flows[0].packet:
        for one in header.DESCRIPTOR.fields:
            if one.message_type is not None and not one.is_repeated and not header.HasField(one.name):
                getattr(header, one.name).SetInParent()
                yield f"packet.{one.name}", base
                header.ClearField(one.name)


def test_all_errors_of_a_configuration_are_told_at_once() -> None:
    given = config(
        flow(size=fixed(3), rate=pps(10**8)),
        flow(number=2, metrics={"enable": True, "predefined_metric_tags": {"rx_name": True}}),
    )
    found = [error.split(": ")[0] for error in errors_of(given)]
    assert found == ["flows[0].size.fixed", "flows[0].rate", "flows[1].metrics.predefined_metric_tags.rx_name"]


def test_locations_are_numbers_urls_or_names() -> None:
    for location, number in {"1": 1, "sim://x;0": 0, "veth1": 1}.items():
        given = config(ports=[{"name": "a", "location": location}], layer1=[])
        assert translated(given).ports == {"a": number}
    for location in ("2", "sim://y;0", "eth1", "", "-1", "٣"):
        given = config(ports=[{"name": "a", "location": location}], layer1=[])
        assert errors_of(given)[0].startswith(f"ports[0].location: '{location}' is not a port of this probe")


def test_flows_without_a_probe_header_say_what_is_counted() -> None:
    setup = translated(RUNS["tcp"])
    assert [line.split(": ")[0] for line in setup.warnings] == ["flows[0].metrics"]
    assert translated(config(flow(ethernet(), ipv4(), tcp(), metrics=UNMEASURED))).warnings == ()


PEER = {
    **{"ethernet": Ether, "vlan": Dot1Q, "arp": ARP, "gre": GRE, "ipv4": IP, "ipv6": IPv6, "udp": UDP, "tcp": TCP},
    **{"icmp": ICMP, "icmpv6": ICMPv6EchoRequest, "vxlan": VXLAN, "igmpv1": Raw},
}
LAYERS = [
    name
    for name in RUNS
    if {"vxlan", "icmp", "icmpv6", "gre", "arp", "igmpv1"} & set(kinds_of(RUNS[name]))
    and name not in ("wrong checksum", "gre of ppp", "vxlan over ipv6")
]  # Of PPP in GRE scapy knows PPTP alone; what follows ARP in a tunnel it leaves out of lengths.


@pytest.mark.parametrize("name", LAYERS)
def test_scapy_reads_the_layers_and_finds_their_checksums_right(name: str) -> None:
    """A peer that knows nothing of this project: taken apart and put together again, each frame is the same."""
    wanted = [PEER[kind] for kind in kinds_of(RUNS[name]) if kind != "custom"]
    for _, octets in frames_of(translated(RUNS[name])):
        frame = Ether(octets)
        layers = [frame.getlayer(number) for number in range(len(wanted))]
        assert [type(layer) for layer in layers] == wanted
        for layer in layers:
            is_free = isinstance(layer, UDP) and layer.chksum == 0
            for field in {"chksum", "cksum", "len", "plen"} & set(layer.fields):
                if not (is_free and field == "chksum"):
                    layer.delfieldval(field)
        assert bytes(frame) == octets


def test_many_values_in_steps_are_a_count_and_others_too_many() -> None:
    check(config(flow(ethernet(), ipv4(), udp(src_port=values(*range(7, 700, 7))))))
    many = [number * number for number in range(70)]
    error = errors_of(config(flow(ethernet(), ipv4(), udp(src_port=values(*many)))))[0]
    assert error.startswith("flows[0].packet[2].udp.src_port.values: 70 values are too many")


def test_random_values_are_those_of_their_seed() -> None:
    def drawn_values(seed: int) -> tuple[object, ...]:
        pattern = {"choice": "random", "random": {"min": 1000, "max": 1009, "seed": seed, "count": 50}}
        modifier = translated(config(flow(ethernet(), ipv4(), udp(dst_port=pattern)))).flows[0].stream.modifiers[0]
        assert isinstance(modifier, Values) and isinstance(modifier.field, Field)
        return modifier.values

    assert drawn_values(1) == drawn_values(1) != drawn_values(2)
    frames = frames_of(
        translated(
            config(
                flow(
                    ethernet(),
                    ipv4(),
                    udp(dst_port={"choice": "random", "random": {"min": 1000, "max": 1009, "count": 30}}),
                )
            )
        )
    )
    assert {int.from_bytes(octets[36:38]) for _, octets in frames} <= set(range(1000, 1010))
