# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Streams of a whole tester, from ``probe.send`` to the result: starts, octets and figures against the pins and the model."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from liteprobe.cores.formats import LEASE_UNIT_BITS, TransmitState
from liteprobe.host.base.errors import LeaseLostError, ProbeError
from liteprobe.host.probe import Probe
from liteprobe.host.run.figures import StreamFigures, TrafficLook
from liteprobe.host.traffic.headers import Headers
from liteprobe.host.traffic.intervals import Burst, Interval
from liteprobe.host.traffic.lengths import IMIX, Fixed, RandomLength, Stepped
from liteprobe.host.traffic.modifiers import Increment, Random, Values
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.stream import Stream
from liteprobe.sim.drivers.system.senders import Frames, Sent, joined, wrong_streams
from liteprobe.sim.models.traffic import streams as traffic
from liteprobe.sim.models.receive.meters import SequenceModel

HOSTILE = "switch?latency=2us&queue=1000&loss=5%&duplicate=5%&reorder=10%&reorder_by=30us&seed=3"
OUT, IN = 1, 0  # Management is in band on port 0.
FIXED = Stream("fixed", 1, Fixed(60), Interval(pps=50_000), count=60, port=OUT)
ENDLESS = replace(FIXED, name="endless", stream_id=2, length=Fixed(300), interval=Interval(pps=40_000), count=None)


@pytest.fixture
def both(tester: Path, tmp_path: Path) -> Iterator[Sent]:
    with joined(tester, tmp_path) as found:
        yield found


def check_pins(frames: Frames, streams: list[Stream]) -> None:
    """Compare what left a port with the model."""
    assert wrong_streams(frames, streams) == []


MANY = [
    Stream("plain", 10, Fixed(60), Interval(pps=60_000), 60, port=OUT),
    Stream("mix", 11, IMIX, Interval(share=0.2, exponential=True), 50, port=OUT, fill="prbs", seed=9),
    Stream(
        "tags", 12, RandomLength(80, 300), Interval(interval_ns=15_001), 40, 5000, OUT,
        Headers(vlan_tags=(5, 7)), (Increment("vlan[1].id", 100, 3, 5), Random("ipv4.source")), fill="counting",
    ),
    Stream(
        "six", 13, Stepped(90, 200, 11), Interval(pps=30_000, burst=Burst(3)), 30, port=OUT,
        headers=Headers(source_ip="2001:2::1", destination_ip="2001:2::2"),
        modifiers=(Values("udp.destination", (7, 9, 4000)),), fill="prbs",
    ),
    Stream("bare", 14, Fixed(128), Interval(pps=20_000), 20, port=OUT, headers=Headers(transport="tcp"), probe=False),
]  # fmt: skip


def test_every_frame_of_five_streams_is_on_the_pins_as_the_model_has_it(both: Sent) -> None:
    result = both.probe.send(MANY).result()
    check_pins(both.pins(OUT), MANY)
    wanted, delays = traffic.schedule(MANY, 100_000), delays_of(both)
    for number, row in enumerate(result.rows):
        own = wanted[wanted["stream"] == number]
        assert (row.sent, row.waited, row.late, row.first_late) == (len(own), own["late"].sum(), 0, None)
        if row.stream.probe:
            assert (row.received, row.lost, row.octets) == (len(own), 0, own["length"].sum())
            check_delays(row, [delays[place] for place in np.flatnonzero(wanted["stream"] == number)])
    assert [row.bit_errors for row in result.rows] == [None, 0, None, 0, None]
    assert (result.end, result.is_complete, result.notes) == ("sent", True, ())


def test_seconds_are_kept_to_the_tick_at_the_pins(both: Sent) -> None:
    drawn = replace(ENDLESS, name="drawn", stream_id=3, interval=Interval(pps=90_000, exponential=True))
    streams = [ENDLESS, FIXED, drawn, replace(ENDLESS, name="none", stream_id=4, start_ns=200_000)]
    result = both.probe.send(streams, seconds=123.456e-6).result()
    counts = [sum(due < 15_432 for due in own) for own in dues_of(streams, 15_432)]
    assert [row.sent for row in result.rows] == [row.received for row in result.rows] == counts
    assert counts[3] == 0 and (result.end, result.duration_s) == ("stopped", 123.456e-6)
    check_pins(both.pins(OUT), [replace(one, count=n) for one, n in zip(streams[:3], counts, strict=False)])


def dues_of(streams: list[Stream], ticks: int) -> list[list[int]]:
    """Return the due ticks of each stream's frames, beyond ``ticks``."""
    wanted = traffic.schedule(streams, 20 + ticks // 80)
    return [wanted["due"][wanted["stream"] == number].tolist() for number in range(len(streams))]


def test_both_ports_start_in_the_same_tick(both: Sent) -> None:
    there = [replace(one, name=f"{one.name}-0", port=IN, interval=Interval(pps=10_000), count=20) for one in MANY[:1]]
    result = both.probe.send([*there, *MANY[:2]]).result()
    assert both.pins(IN)[0][0] == both.pins(OUT)[0][0]
    assert [(row.receive, row.lost) for row in result.rows] == [(OUT, 0), (IN, 0), (IN, 0)]
    check_pins(both.pins(OUT), MANY[:2])


def test_on_a_hostile_network_figures_are_those_of_the_pins(tester: Path, tmp_path: Path) -> None:
    streams = [replace(FIXED, count=300), replace(FIXED, name="b", stream_id=5, length=Fixed(400), count=150)]
    with joined(tester, tmp_path, HOSTILE) as both:
        result = both.probe.send(streams).result()
        arrived, sent = both.pins(IN, "in"), both.pins(OUT)
    for row in result.rows:
        own = [(stamp, octets) for stamp, octets in arrived if octets[46:48] == row.stream.stream_id.to_bytes(2)]
        order = SequenceModel(window=128)
        for _, octets in own:
            order.arrive(int.from_bytes(octets[48:52]))
        delays = [stamp - int.from_bytes(octets[52:60]) for stamp, octets in own]
        assert (row.received, row.duplicated, row.reordered) == (len(own), order.duplicated, order.reordered)
        assert row.sent == sum(octets[46:48] == row.stream.stream_id.to_bytes(2) for _, octets in sent)
        assert row.lost == row.sent - len({octets[48:52] for _, octets in own}) > 0
        check_delays(row, delays)


def delays_of(both: Sent) -> list[int]:
    """Return the delay of each frame from pin to pin: requests of the host are on the same line, so some wait for these."""
    there, here = both.pins(OUT), both.pins(IN, "in")
    assert [octets for _, octets in there] == [octets for _, octets in here]
    return [came - went for (went, _), (came, _) in zip(there, here, strict=True)]


def check_delays(row: StreamFigures, delays: list[int]) -> None:
    latency = row.latency
    assert latency and latency.cells.total == len(delays)
    assert (latency.least_ns, latency.most_ns) == (min(delays), max(delays))
    assert latency.mean_ns == pytest.approx(np.mean(delays))
    assert latency.std_ns == pytest.approx(np.std(delays, ddof=1))
    for percent, bounds in ((50, latency.p50), (99, latency.p99), (99.9, latency.p99_9)):
        true = sorted(delays)[int(np.ceil(percent * len(delays) / 100)) - 1]
        assert bounds and bounds.least <= true <= bounds.most


def test_a_stream_stops_and_starts_again_while_others_run(both: Sent) -> None:
    sending = both.probe.send([ENDLESS, FIXED])
    sending.stop("endless")
    both.probe.wait(0.0003)
    stopped = sending.look().rows[0].sent
    assert not sending.look().rows[0].is_active and sending.look().rows[0].sent == stopped
    while sending.look().rows[1].is_active:
        both.probe.wait(0.0002)
    sending.start("endless")
    sending.start("fixed")
    both.probe.wait(0.002)
    assert sending.look().rows[1].sent == 120
    sending.stop()
    result = sending.result()
    frames = both.pins(OUT)
    numbers = [int.from_bytes(octets[48:52]) for _, octets in frames if octets[46:48] == b"\0\2"]
    assert numbers == list(range(result["endless"].sent)) and len(numbers) > stopped
    assert [row.lost for row in result.rows] == [0, 0]
    gaps = {late - early for (early, one), (late, _) in zip(frames, frames[1:], strict=False) if one[46:48] == b"\0\1"}
    assert min(gaps) >= 84 * 8


def test_streams_that_are_stopped_in_mid_frame_end_with_a_whole_one(both: Sent) -> None:
    sending = both.probe.send([Stream("long", 1, Fixed(9000), port=OUT)])
    sending.stop()
    result = sending.result()
    frames = both.pins(OUT)
    assert {len(octets) for _, octets in frames} == {9000}
    assert (result["long"].sent, result["long"].received, result["long"].lost) == (len(frames), len(frames), 0)


@pytest.mark.parametrize("detach", [False, True])
def test_streams_end_with_the_lease_unless_they_are_detached_and_a_later_host_stops_them(
    both: Sent, detach: bool
) -> None:
    both.probe.send([ENDLESS], detach=detach)
    both.probe.lease.release()
    both.probe.wait(0.0002)
    before = len(both.pins(OUT))
    both.probe.wait(0.0005)
    assert (len(both.pins(OUT)) > before) == detach
    later = Probe(both.link, both.link.map_file)
    (found,) = later.traffic()
    assert (found.port, found.number, found.stream_id, found.is_active) == (OUT, 0, 2, detach)
    assert (found.is_endless, found.is_attached) == (True, not detach)
    assert [later.stop(port) for port in (0, 1)] == [False, detach]
    assert later.traffic()[0].sent == len(both.pins(OUT))
    later.lease.release()


def test_a_link_that_goes_down_ends_the_streams(both: Sent) -> None:
    def pull(look: TrafficLook) -> None:
        both.link.set_link(OUT, False)

    sending = both.probe.send([replace(FIXED, count=500)])
    with pytest.raises(ProbeError, match=f"the link of port {OUT} went down while streams ran"):
        sending.wait(pull)
    assert both.probe.ports[OUT].transmit.look()[0] == TransmitState.IDLE
    row = sending.result()["fixed"]
    assert 0 < row.sent < 500 and row.received is not None and row.received <= row.sent


def test_in_band_a_full_line_is_not_disturbed_and_the_host_waits(both: Sent) -> None:
    full = Stream("full", 1, Fixed(60), count=1500, port=IN)
    result = both.probe.send([full]).result()
    check_pins(both.pins(IN), [full])
    assert (result["full"].received, result["full"].lost, result["full"].late) == (1500, 0, 0)


@pytest.mark.parametrize(
    ("stamp", "headers"),
    [
        (Stamp("octet", 60, 32, 1), Headers()),
        (Stamp("ipv4.identification", tick=1), Headers(vlan_tags=(3,))),
        (Stamp("ipv6.flow_label", tick=1), Headers(source_ip="2001:2::1", destination_ip="2001:2::2")),
    ],
    ids=["octet", "identification", "flow label"],
)
def test_a_stamp_in_a_field_is_measured_on_reception(both: Sent, stamp: Stamp, headers: Headers) -> None:
    stream = replace(FIXED, length=Fixed(140), headers=headers, stamp=stamp, count=30)
    result = both.probe.send([stream]).result()
    check_pins(both.pins(OUT), [stream])
    shift = 4 * stamp.tick
    there, here = both.pins(OUT), both.pins(IN, "in")
    delays = [(came >> shift) - (went >> shift) << shift for (went, _), (came, _) in zip(there, here, strict=True)]
    check_delays(result["fixed"], delays)


def test_delays_of_a_queue_are_followed_by_the_histogram(tester: Path, tmp_path: Path) -> None:
    wire = "switch?latency=2us&queue=1000&rate=500M"
    queued = Stream("queued", 1, Fixed(500), Interval(share=0.8), 300, port=OUT)
    with joined(tester, tmp_path, wire) as both:
        result = both.probe.send([queued]).result()
        arrived = both.pins(IN, "in")
    delays = [stamp - int.from_bytes(octets[52:60]) for stamp, octets in arrived]
    assert max(delays) > 100_000 + min(delays)
    check_delays(result["queued"], delays)


@pytest.mark.full
def test_streams_end_when_their_host_is_gone_unless_they_are_detached(both: Sent) -> None:
    unit_s = 2**LEASE_UNIT_BITS / both.probe.registers.constant("config_clock_frequency")
    both.probe.registers.write("probe_lease_timeout", 1)
    slow = replace(ENDLESS, interval=Interval(pps=500))
    both.probe.send([slow])
    both.probe.send([replace(slow, name="detached", port=IN)], detach=True)
    both.probe.lease._stop_beats()  # As a host that is killed, or unplugged.
    both.probe.wait(2.5 * unit_s)
    with pytest.raises(LeaseLostError, match="heard nothing of this host for too long"):
        both.probe.traffic()
    states = [port.transmit.look()[0] for port in both.probe.ports]
    assert states == [TransmitState.RUNNING, TransmitState.IDLE]
    assert [both.probe.stop(port) for port in (IN, OUT)] == [True, False]
