# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The devices of the simulation, frame by frame, against their model and against arithmetic (sim/models/device.py)."""

import random
from dataclasses import replace
from fractions import Fraction
from math import ceil
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from liteprobe.sim.drivers.frames import truth
from liteprobe.sim.drivers.system.harness import Harness, frame
from liteprobe.sim.drivers.system.wire_run import play, probe_content, traffic
from liteprobe.sim.models import device as model
from liteprobe.sim.drivers.tools.processes import LIMIT_S

LENGTHS = [60, 61, 64, 128, 512, 1514]


def labelled(sequence: int, length: int, labels: dict[str, int]) -> bytes:
    """A probe frame over IPv4 with a VLAN, a DSCP and a UDP port of destination, where they are given."""
    tag = bytes.fromhex("8100") + labels["vlan"].to_bytes(2, "big") if "vlan" in labels else b""
    ip = bytes([0x45, labels.get("dscp", 0) << 2]) + (length - 14 - len(tag)).to_bytes(2, "big") + bytes(5) + b"\x11"
    udp = bytes(2) + labels.get("port", 0).to_bytes(2, "big") + bytes(4)
    probe = b"LPRO\x00\x01" + sequence.to_bytes(4, "big") + bytes(8)
    ethernet = bytes.fromhex("020000000002 020000000001") + tag + b"\x08\x00"
    return (ethernet + ip + bytes(10) + udp + probe).ljust(length, b"\xa5")


def left(rows: NDArray[np.void], port: int, frames: list[tuple[bytes, int]], **of_all: object) -> list[model.Frame]:
    """Return what left a port, as the model wants it: the SFD tick is from the pins, the octets are what was injected."""
    out = truth.frames_out(rows, port)
    assert len(out) == len(frames)
    return [
        model.Frame(int(row["sfd_tick"]) - 7, len(octets), 7, **of_all)  # type: ignore[arg-type]
        for row, (octets, _) in zip(out, frames, strict=True)
    ]


def assert_as_modelled(rows: NDArray[np.void], spec: str, departures: tuple[list[model.Frame], ...]) -> None:
    """Every frame's fate, tick and origin at both ports as the model says."""
    expected = model.passage(spec, (departures[0], departures[1]))
    for port in (0, 1):
        assert list(truth.frames_out(rows, port)["fate"]) == expected.fates[port]
        came = truth.frames_in(rows, port)
        got = [tuple(int(row[name]) for name in ("sfd_tick", "fate", "origin_tick")) for row in came]
        assert got == [
            (arrival.sfd_tick, arrival.fate, departures[origin][arrival.number].sfd_tick)
            for arrival, origin in zip(expected.arrivals[port], expected.origins[port], strict=True)
        ]
        assert list(came["flags"] & truth.BAD_FCS > 0) == [a.flipped is not None for a in expected.arrivals[port]]


SPECS = [
    "device",
    "device?mode=cut&latency=400ns",
    "device?mode=cut&latency=1us&rate=700M&queue=3&corrupt=0.2&loss=5%&seed=3",
    "device?rate=600M&queue=5",
    "device?rate=999999937&buffer=3000&latency=192ns",
    "device?pps=400k&queue=9",
    "device?pps=333333&rate=123456789&buffer=20000",
    "device?load=83.4%",
    "device?load=0.3&load_burst=1538",
    "device?loss=0.1&corrupt=0.1&seed=18446744073709551615",
    "device?fault_size=516",
    "device?pause=20us&pause_every=150us&pause_at=40us&queue=6",
    "device?rate=500M&pause=300us&pause_at=100us&buffer=40000",
    "device?reboot=150us&reboot_at=200us&rate=200M",
    "device?reboot=110us&reboot_every=270us&reboot_at=50us&rate=400M&queue=1000",
    "device?does=drop",
    "device?does=return&rate=300M&queue=7",
    "device?does=flood&copies=2&queue=11&rate=777M",
]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("idle_ns", [0, 9000])
def test_every_frame_meets_what_the_model_says(stand_in: Path, tmp_path: Path, spec: str, idle_ns: int) -> None:
    frames = traffic(seed=SPECS.index(spec) + 7 * idle_ns, count=120, lengths=LENGTHS, idle_ns=idle_ns)
    rows = play(stand_in, spec, frames, tmp_path)
    assert_as_modelled(rows, spec, (left(rows, 0, frames), left(rows, 1, frames)))
    if "does" not in spec:
        for port in (0, 1):
            assert truth.balance(rows, port, 1 - port).holds


def test_policers_colour_each_service_by_its_own_buckets(stand_in: Path, tmp_path: Path) -> None:
    spec = (
        "device?service0=vlan:100,cir:100M,cbs:4000&service1=dscp:46,cir:50M,cbs:2000,eir:80M,ebs:6000"
        "&service2=port:5001,cir:0,cbs:9000,eir:10M,ebs:3000,couple:1&service3=all:0,cir:200M,cbs:1600,eir:0,ebs:0,couple:1"
    )
    generator = random.Random(20261127)
    kinds: list[dict[str, int]] = [
        {"vlan": 100},
        {"vlan": 101, "dscp": 46},
        {"dscp": 46},
        {"port": 5001},
        {"port": 5002},
    ]
    labels = [generator.choice(kinds) for _ in range(300)]
    frames = [
        (frame(labelled(number, generator.choice(LENGTHS), of)), generator.randrange(4000))
        for number, of in enumerate(labels)
    ]
    rows = play(stand_in, spec, frames, tmp_path)
    departures = tuple(
        [replace(entry, labels=tuple(of.items())) for entry, of in zip(left(rows, port, frames), labels, strict=True)]
        for port in (0, 1)
    )
    assert_as_modelled(rows, spec, departures)
    for kind in kinds:
        fates = {int(f) for f, of in zip(truth.frames_out(rows, 0)["fate"], labels, strict=True) if of == kind}
        assert fates == {truth.DELIVERED, truth.REFUSED}, kind


LEARNERS = [
    "device?table=20",
    "device?table=7&age=40us",
    "device?table=1000&learn=200k",
    "device?table=12&learn=400k&age=25us&storm=50k&rate=700M&queue=9",
    "device?storm=30k&largest=600",
    "device?table=9&reboot=110us&reboot_every=270us&reboot_at=50us",
]


@pytest.mark.parametrize("spec", LEARNERS)
def test_a_switch_learns_and_filters_by_addresses(stand_in: Path, tmp_path: Path, spec: str) -> None:
    generator = random.Random(f"2889 {spec}")
    macs = [generator.randrange(2**40) << 1 & 0xFEFFFFFFFFFF for _ in range(16)] + [2**48 - 1, 0x01005E000001]
    contents, addresses = [], []
    for number in range(400):
        source, destination = generator.choice(macs[:-2] + macs[-1:] * (number % 40 == 0)), generator.choice(macs)
        octets = destination.to_bytes(6) + source.to_bytes(6) + probe_content(number, generator.choice(LENGTHS))[12:]
        contents.append((frame(octets), generator.randrange(3000)))
        addresses.append((("source", source), ("destination", destination)))
    rows = play(stand_in, spec, contents, tmp_path)
    departures = tuple(
        [replace(one, labels=of) for one, of in zip(left(rows, port, contents), addresses, strict=True)]
        for port in (0, 1)
    )
    assert_as_modelled(rows, spec, departures)
    fates = {int(fate) for port in (0, 1) for fate in truth.frames_out(rows, port)["fate"]}
    assert fates >= {truth.DELIVERED, truth.REFUSED if "table" in spec else truth.LOST}


# What a device can do, by arithmetic ----------------------------------------------------------------


def equal_frames(length: int, interval: Fraction, count: int) -> tuple[list[model.Frame], list[model.Frame]]:
    """Frames of one length at equal intervals (ticks), as a probe sends them: each in the tick in which it is due."""
    return [model.Frame(10_000 + int(number * interval), length + 12) for number in range(count)], []


TRUTHS = [
    ("device", 60, 1.0),
    ("device?rate=600M", 1514, 0.6),
    ("device?pps=800k", 60, 800_000 * 84 * 8 / 1e9),
    ("device?pps=800k&rate=950M", 1514, 0.95),
    ("device?load=83.4%", 512, 0.834),
    ("device?service0=all:0,cir:50M,cbs:2000,eir:30M,ebs:2000", 1014, 0.08 * 1038 / 1018),
]


@pytest.mark.parametrize(("spec", "length", "expected"), TRUTHS)
def test_the_throughput_is_where_losses_begin(spec: str, length: int, expected: float) -> None:
    device = model.parse(spec)
    load = model.throughput(device, length)
    assert float(load) == pytest.approx(expected, rel=1e-12)
    for factor, is_lossless in ((Fraction(1), True), (Fraction(104, 100), load == 1)):
        interval = (length + model.LINE_OVERHEAD) / min(load * factor, Fraction(1))
        fates = model.passage(spec, equal_frames(length, interval, 4_000)).fates[0]
        assert (set(fates) == {model.DELIVERED}) == is_lossless


@pytest.mark.parametrize("length", [60, 512, 1514])
@pytest.mark.parametrize(
    "spec",
    ["device?rate=600M&queue=10", "device?rate=834M&buffer=65536", "device?pps=100k&queue=33", "device?load=0.9"],
)
def test_the_burst_is_the_longest_that_loses_none(spec: str, length: int) -> None:
    longest = model.burst(model.parse(spec), length)
    if longest == model.ENDLESS:  # A frame takes the line longer than 10 us.
        assert (spec, length) == ("device?pps=100k&queue=33", 1514)
        longest = 1_000
    interval = Fraction(length + model.LINE_OVERHEAD)
    for frames, lost in ((longest, 0), (longest + 1, int(longest != 1_000))):
        fates = model.passage(spec, equal_frames(length, interval, frames)).fates[0]
        assert sum(fate != model.DELIVERED for fate in fates) == lost


def test_a_device_that_pauses_loses_none_while_its_queue_holds_the_pause() -> None:
    spec = "device?pause=100us&pause_every=1ms&queue=50&rate=900M"
    device = model.parse(spec)
    for length in (60, 512, 1514):
        load = model.throughput(device, length)
        assert load == min(Fraction(81, 100), Fraction(50 * (length + 24), 12_500), 1)
        for of_queue, is_lossless in ((-2, True), (2, False)):
            octets = length + 24
            near = load * (50 + of_queue) / 50
            if near > Fraction(9, 10):
                continue
            fates = model.passage(spec, equal_frames(length, octets / near, 3_000)).fates[0]
            assert (set(fates) == {model.DELIVERED}) == is_lossless, (length, of_queue)


@pytest.mark.parametrize("length", [60, 1514])
def test_the_delay_at_the_pins_is_to_the_tick(stand_in: Path, tmp_path: Path, length: int) -> None:
    for spec, ticks in (("device?latency=1us", length + 12 + 125), ("device?mode=cut&latency=1us", 125)):
        assert model.latency_ticks(model.parse(spec), length) == ticks
        frames = [(frame(probe_content(number, length)), 20_000) for number in range(5)]
        rows = play(stand_in, spec, frames, tmp_path)
        for port in (0, 1):
            assert list(truth.delays_ns(truth.frames_in(rows, port))) == [8 * ticks] * 5


def test_a_burst_at_the_pins_is_as_long_as_the_arithmetic_says(stand_in: Path, tmp_path: Path) -> None:
    spec, length = "device?rate=600M&buffer=6400", 124
    longest = model.burst(model.parse(spec), length)
    assert longest == 50 + ceil(50 * 0.6 / 0.4) + 1  # 50 wait, the line takes 0.6 of what comes, one is being sent.
    frames = [(frame(probe_content(number, length)), 0) for number in range(longest + 3)]
    rows = play(stand_in, spec, frames, tmp_path)
    assert list(truth.frames_out(rows, 0)["fate"][:longest]) == [truth.DELIVERED] * longest
    assert truth.frames_out(rows, 0)["fate"][longest] == truth.QUEUE_DROP


def test_a_link_flaps_at_its_time(stand_in: Path, tmp_path: Path) -> None:
    spec = "device?latency=192ns&flap=100us&flap_at=200us&flap_every=300us&flap_port=1"
    frames = [(frame(probe_content(number, 60)), 9_000) for number in range(90)]
    rows = play(stand_in, spec, frames, tmp_path)
    is_down = [
        (8 * (sfd - 7) - 200_000) % 300_000 < 100_000 for sfd in truth.frames_out(rows, 1)["sfd_tick"].astype(int)
    ]
    began = [8 * int(sfd) >= 200_000 for sfd in truth.frames_out(rows, 1)["sfd_tick"]]
    fates = [truth.CUT if down and begun else truth.DELIVERED for down, begun in zip(is_down, began, strict=True)]
    assert list(truth.frames_out(rows, 1)["fate"]) == fates
    assert truth.CUT in fates
    assert truth.balance(rows, 0, 1).holds


# Liars -------------------------------------------------------------------------------------------


def test_a_device_that_answers_arp_for_others_gives_its_own_mac(stand_in: Path, tmp_path: Path) -> None:
    from scapy.layers.inet6 import ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptSrcLLAddr, IPv6
    from scapy.layers.l2 import ARP, Ether

    mac = "02:00:00:00:00:01"
    asked = [
        Ether(src=mac, dst="ff:ff:ff:ff:ff:ff") / ARP(hwsrc=mac, psrc="10.1.2.3", pdst="10.1.2.99"),
        Ether(src=mac, dst="33:33:ff:00:00:09")
        / IPv6(src="fd00::3", dst="ff02::1:ff00:9", hlim=255)
        / ICMPv6ND_NS(tgt="fd00::9")
        / ICMPv6NDOptSrcLLAddr(lladdr=mac),
    ]
    frames = [(frame(bytes(packet).ljust(60, b"\0")), 20_000) for packet in asked]
    rows = play(stand_in, "device?answers=all", frames, tmp_path)
    assert set(truth.frames_out(rows, 0)["fate"]) == {truth.DELIVERED}  # They go on, too.
    for port in (0, 1):
        _, contents = truth.read_pcap(tmp_path / f"pins.port{port}.in.pcap")
        packets = [Ether(content) for content in contents]
        answers = [packet for packet in packets if packet.src == f"02:00:00:00:44:0{port}"]
        assert len(packets) == 4 and len(answers) == 2
        reply, advertisement = answers
        assert (reply[ARP].op, reply[ARP].psrc, reply[ARP].pdst, reply.dst) == (2, "10.1.2.99", "10.1.2.3", mac)
        assert reply[ARP].hwsrc == reply.src
        assert advertisement[ICMPv6ND_NA].tgt == "fd00::9" and advertisement[IPv6].dst == "fd00::3"
        sum_right = advertisement[ICMPv6ND_NA].cksum
        del advertisement[ICMPv6ND_NA].cksum
        assert Ether(bytes(advertisement))[ICMPv6ND_NA].cksum == sum_right


# Bad input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wire", "culprit"),
    [
        ("device?latency=100ns", "latency"),
        ("device?mode=fast", "mode=fast"),
        ("device?mode=cut&buffer=9000", "mode=cut"),
        ("device?pause=1ms&pause_every=1ms", "pause_every"),
        ("device?reboot=50us", "reboot"),
        ("device?service0=cir:5M", "service0"),
        ("device?service0=vlan:4096", "vlan"),
        ("device?service0=vlan:1,cir:2G", "cir"),
        ("device?service16=vlan:1", "service16"),
        ("device?does=explode", "explode"),
        ("device?ipv4_0=10.0.0.1/24", "ipv4_0"),
        ("router?ipv4_0=10.0.0.1", "ipv4_0"),
        ("router?ipv6_1=fd00::/200", "ipv6_1"),
        ("router?next_hop4_1=10.0.0.300", "next_hop4_1"),
        ("router?vlan0=4095", "vlan0"),
        ("router?mode=cut", "mode"),
    ],
)
def test_options_that_cannot_be_are_refused_by_name(stand_in: Path, wire: str, culprit: str) -> None:
    import subprocess

    command = [str(stand_in / "liteprobe-sim"), "--wire", wire]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=LIMIT_S, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 2
    assert culprit in done.stderr


def test_a_pair_is_not_joined_by_a_device(stand_in: Path) -> None:
    with pytest.raises(RuntimeError, match="ended with 2"):
        Harness(stand_in, "--wire", "device", "--oscillators", "1,2")
