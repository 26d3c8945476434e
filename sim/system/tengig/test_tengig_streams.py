# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Streams of the simulated probe of 10 Gb/s, by the host's own means: starts, octets and figures against the pins and the model."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from liteprobe.cores.formats import TransmitState
from liteprobe.host import Probe, TrainProgram, UsageError
from liteprobe.host.base.line import TEN_GIGABIT
from liteprobe.host.cli.main import main
from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.run.figures import TrafficResult
from liteprobe.host.run.streams import StreamsPort
from liteprobe.host.traffic.headers import Headers
from liteprobe.host.traffic.intervals import Burst, Interval
from liteprobe.host.traffic.lengths import IMIX, Fixed, Length, Lengths, RandomLength, Stepped
from liteprobe.host.traffic.modifiers import Random
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.stream import Stream
from liteprobe.sim.drivers.xgmii import streams as driver
from liteprobe.sim.system.xgmii.build import build_probe

SLOT_NS = 67.2  # Of a frame of 60 octets.
MANY = 10**6
BACK_TO_BACK = Interval()


@pytest.fixture(scope="session")
def build() -> Path:
    """The simulated probe of 10 Gb/s that sends streams."""
    return build_probe("generator")


def stream(
    number: int, length: int = 60, interval: Interval = BACK_TO_BACK, count: int | None = 100, port: int = 0
) -> Stream:
    """Return a stream of 10 Gb/s."""
    return Stream(f"s{number}", number, Fixed(length), interval, count, port=port, line=TEN_GIGABIT)


def sent(build: Path, files: Path, streams: Sequence[Stream], wire: str = "cable?delay=1us") -> TrafficResult:
    """Send streams, and hold what left both ports and what was counted against the model."""
    with driver.opened(wire, build, files) as probe:
        result = probe.send(streams).result()
        left = [driver.left_of(probe, files, port) for port in (0, 1)]
    for port in (0, 1):
        own = [one for one in streams if one.port == port]
        frames = driver.wanted(own, MANY) if own else np.empty(0, driver.traffic.FRAME_DTYPE)
        assert driver.wrong(left[port], own, frames) == []
        for number, one in enumerate(own):
            mine = frames[frames["stream"] == number]
            row = result[one.name]
            assert (row.sent, row.received, row.lost, row.late) == (len(mine), len(mine), 0, 0)
            assert (row.waited, row.octets) == (mine["late"].sum(), mine["length"].sum())
    return result


# Starts and octets --------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [60, 61, 62, 63, 64, 1514, 9000])
def test_sixteen_streams_on_each_port_fill_the_line(build: Path, tmp_path: Path, length: int) -> None:
    count = 20 if length > 1000 else 60
    streams = [
        replace(stream(16 * port + n, length, Interval(share=1 / 16), count, port), name=f"{port}-{n}", stream_id=n)
        for port in (0, 1)
        for n in range(1, 17)
    ]
    result = sent(build, tmp_path, streams)
    span = max(row.last_arrival_ns or 0 for row in result.rows) - min(row.first_arrival_ns or 0 for row in result.rows)
    assert abs(span - 0.8 * (length + 24) * (16 * count - 1)) < 4.2
    assert result.is_complete and result.notes == ()


def test_one_stream_fills_the_line(build: Path, tmp_path: Path) -> None:
    result = sent(build, tmp_path, [stream(1, 60, count=1000), stream(2, 61, count=1000, port=1)])
    assert [row.delayed for row in result.rows] == [0, 0]
    assert result["s1"].offered_fps == pytest.approx(14_880_952.38)


def test_rates_intervals_bursts_and_starts_are_those_of_the_model(build: Path, tmp_path: Path) -> None:
    streams = [
        replace(stream(1, 60, Interval(pps=1_000_000), 100), fill="counting"),
        replace(stream(2, 124, Interval(interval_ns=333.333), 90), start_ns=1234.5),
        stream(3, 300, Interval(rate_bps=2_500_000_000, burst=Burst(5)), 80),
        stream(4, 77, Interval(interval_ns=2000, burst=Burst(7, 150.4)), 70),
        replace(stream(5, 128, Interval(share=0.02), 20), probe=False, headers=Headers(transport="tcp"), checksum="host"),
        replace(stream(6, 1514, Interval(share=0.01), 20), headers=Headers(vlan_tags=(5,), identification=9)),
    ]  # fmt: skip
    with driver.opened("cable?delay=1us", build, tmp_path) as probe:
        result = probe.send(streams).result()
        left = driver.left_of(probe, tmp_path, 0)
    assert driver.wrong(left, streams, driver.wanted(streams, MANY)) == []
    assert result["s6"].received == 20  # Behind a tag its probe header is elsewhere.


VARYING = {
    "drawn intervals": [stream(1, 60, Interval(share=0.8, exponential=True), 300)],
    "sixteen of drawn intervals": [stream(n, 60, Interval(share=1 / 16, exponential=True), 60) for n in range(1, 17)],
    "drawn bursts": [stream(n, 64, Interval(share=0.2, exponential=True, burst=Burst(n + 1)), 60) for n in range(1, 5)],
    "steps": [replace(stream(1, count=200), length=Stepped(60, 99, 3))],
    "drawn lengths": [replace(stream(1, 60, Interval(share=0.9), 200), length=RandomLength(60, 300), fill="counting")],
    "lists in turn": [replace(stream(1, count=300), length=Lengths((60, 61, 60, 62)))],
    "drawn entries": [
        replace(stream(1, 60, Interval(share=0.9, exponential=True), 200), length=Lengths(IMIX.entries, random=True))
    ],
    "bursts of drawn lengths": [
        replace(
            stream(1, 60, Interval(share=0.5, burst=Burst(3)), 100),
            length=RandomLength(80, 300),
            headers=Headers(vlan_tags=(3,)),
        )
    ],
}


@pytest.mark.parametrize("name", VARYING)
def test_lengths_and_intervals_that_vary_are_those_of_the_model(build: Path, tmp_path: Path, name: str) -> None:
    sent(build, tmp_path, VARYING[name])


def any_length(chance: random.Random) -> Length:
    """Return a length of any kind."""
    least = chance.choice([60, 60, 61, 64, 124, chance.randrange(60, 600)])
    return chance.choice(
        [
            Fixed(least),
            Fixed(9000 if chance.random() < 0.3 else least),
            RandomLength(least, least + chance.randrange(900)),
            Stepped(least, least + chance.randrange(1, 60), chance.randrange(1, 9)),
            Lengths(tuple(chance.randrange(60, 300) for _ in range(chance.randrange(2, 9))), chance.random() < 0.5),
        ]
    )


@pytest.mark.parametrize("seed", range(8))
def test_any_mix_of_rates_and_lengths_leaves_as_the_model_has_it(build: Path, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    streams = []
    for port in (0, 1):
        number = chance.randrange(1, 17)
        shares = [chance.random() ** 3 for _ in range(number)]
        load = chance.choice([0.3, 0.9, 1.0]) / sum(shares)
        for n, share in enumerate(shares):
            length = any_length(chance)
            burst = Burst(chance.randrange(2, 20)) if chance.random() < 0.2 else None
            interval = Interval(share=max(share * load * 0.999, 1e-4), burst=burst, exponential=chance.random() < 0.3)
            streams.append(
                Stream(
                    f"{port}-{n}",
                    n + 1,
                    length,
                    interval,
                    max(1, round(40_000 * float(interval.share or 0) / float(length.mean + 24))),
                    chance.choice([0, 0, chance.randrange(2000), 0.8 * chance.randrange(9)]),
                    port,
                    fill=chance.choice(["zero", "counting"]),
                    seed=chance.randrange(2**32),
                    line=TEN_GIGABIT,
                )
            )
    sent(build, tmp_path, streams)


def test_streams_of_more_than_the_line_for_a_while_wait_in_the_order_of_their_ticks(
    build: Path, tmp_path: Path
) -> None:
    result = sent(build, tmp_path, [stream(n, 60 + n, Interval(interval_ns=20_000), 3) for n in range(1, 17)])
    assert [row.waited for row in result.rows] == [0, *[3] * 15]


# While they run -----------------------------------------------------------------------------------

ENDLESS = stream(2, 300, Interval(pps=400_000), None)


def test_a_stream_stops_and_starts_again_while_others_run(build: Path, tmp_path: Path) -> None:
    with driver.opened("cable?delay=1us", build, tmp_path) as probe:
        sending = probe.send([ENDLESS, stream(1, 60, Interval(pps=500_000), 60)])
        sending.stop("s2")
        probe.wait(0.00003)
        stopped = sending.look().rows[0].sent
        assert not sending.look().rows[0].is_active and sending.look().rows[0].sent == stopped
        while sending.look().rows[1].is_active:
            probe.wait(0.00002)
        sending.start("s2")
        sending.start("s1")
        probe.wait(0.0002)
        assert sending.look().rows[1].sent == 120
        sending.stop()
        result = sending.result()
        left = driver.left_of(probe, tmp_path, 0)
    for number, row in zip((2, 1), result.rows, strict=True):
        own = [octets for octets in left.frames if octets[46:48] == number.to_bytes(2)]
        assert [int.from_bytes(octets[48:52]) for octets in own] == list(range(row.sent))
    assert [row.lost for row in result.rows] == [0, 0]
    assert result["s2"].sent > stopped


def test_streams_that_are_stopped_in_mid_frame_end_with_a_whole_one(build: Path, tmp_path: Path) -> None:
    with driver.opened("cable?delay=1us", build, tmp_path) as probe:
        for _ in range(3):
            sending = probe.send([stream(1, 9000, count=None)])
            sending.stop()
            result = sending.result()
            assert 0 < result["s1"].sent == result["s1"].received
        left = driver.left_of(probe, tmp_path, 0)
    assert {len(octets) for octets in left.frames} == {9000}


@pytest.mark.parametrize("detach", [False, True])
def test_streams_end_with_the_lease_unless_they_are_detached(build: Path, tmp_path: Path, detach: bool) -> None:
    with driver.opened("cable?delay=1us", build, tmp_path) as probe:
        probe.send([ENDLESS], detach=detach)
        probe.lease.release()
        probe.wait(0.00002)
        before = len(driver.left_of(probe, tmp_path, 0).frames)
        probe.wait(0.00005)
        assert (len(driver.left_of(probe, tmp_path, 0).frames) > before) == detach
        assert isinstance(probe.link, SimLink)
        later = Probe(probe.link, probe.link.map_file)
        (found,) = later.traffic()
        assert (found.port, found.number, found.stream_id, found.is_active) == (0, 0, 2, detach)
        assert (found.is_endless, found.is_attached) == (True, not detach)
        assert [later.stop(port) for port in (0, 1)] == [detach, False]
        assert later.traffic()[0].sent == len(driver.left_of(probe, tmp_path, 0).frames)
        later.lease.release()


def test_what_is_armed_can_be_stopped_and_trains_and_streams_take_turns(build: Path, tmp_path: Path) -> None:
    with driver.opened("cable?delay=1us", build, tmp_path) as probe:
        transmit = probe.ports[0].transmit
        assert isinstance(transmit, StreamsPort)
        probe.send([stream(1, 60, count=5)]).result()
        for _ in range(2):
            transmit.arm_streams()
            probe.wait(1e-6)
            transmit.stop()
            probe.wait(1e-6)
            assert transmit.look()[0] == TransmitState.IDLE
        assert probe.launch(TrainProgram(60, 30)) is not None
        probe.wait(1e-5)
        assert probe.ports[0].transmit.counters()["sent"] == 30
        result = probe.send([stream(1, 60, count=7)]).result()
        assert (result["s1"].sent, result["s1"].received) == (7, 7)
        assert len(driver.left_of(probe, tmp_path, 0).frames) == 5 + 30 + 7


# The command and its errors -----------------------------------------------------------------------


def test_the_command_sends_at_the_rate_of_the_line(
    build: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, out = f"sim10g://cable?delay=1us&preset=generator&build={build}", tmp_path / "out.json"
    command = ["send", "--probe", url, "--length", "60", "--rate", "5G", "--count", "300"]
    assert main([*command, "--check"]) == 0
    assert "5,000.000" in capsys.readouterr().out
    assert main([*command, "--json", str(out)]) == 0
    (row,) = json.loads(out.read_text())["streams"]
    assert (row["sent"], row["received"], row["lost"], row["late"]) == (300, 300, 0, 0)
    assert row["received_bps"] == [pytest.approx(5e9, rel=1e-3)] * 2
    assert main(["send", "--probe", url, "--rate", "11G"]) == 2


REFUSED = [
    (replace(ENDLESS, modifiers=(Random("ipv4.source"),)), "headers don't change"),
    (replace(ENDLESS, fill="prbs"), "no fill 'prbs'"),
    (replace(ENDLESS, headers=Headers(source_ip="2001:2::1", destination_ip="2001:2::2")), "no checksum"),
    (replace(ENDLESS, stamp=Stamp("ipv4.identification")), "in the probe header alone"),
]


@pytest.mark.parametrize(("refused", "why"), REFUSED)
def test_what_there_is_not_at_10_gigabit_is_refused_by_its_part(
    build: Path, tmp_path: Path, refused: Stream, why: str
) -> None:
    message = f"stream 's2': at 10 Gb/s .*{why}"
    with driver.opened("loopback", build, tmp_path) as probe, pytest.raises(UsageError, match=message):
        probe.send([refused])
