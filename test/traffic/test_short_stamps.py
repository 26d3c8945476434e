# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Delays by stamps of few bits: right, or marked with what they are modulo; and never a number that can't be."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from liteprobe.host.base.errors import UsageError
from liteprobe.host.cli import tables
from liteprobe.host.cli.commands import send
from liteprobe.host.measure.percentiles import Bounds
from liteprobe.host.run.figures import Latency, StreamFigures
from liteprobe.host.traffic.document import read_document, write_document
from liteprobe.host.traffic.headers import Headers
from liteprobe.host.traffic.intervals import Burst, Interval
from liteprobe.host.traffic.lengths import Fixed
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.stream import Stream
from liteprobe.sim.drivers.system.fake_link import MakeProbe, maker, some
from liteprobe.sim.drivers.tools.figures import Figure, Size, note, row
from liteprobe.sim.models.probe.streams import TrafficFrame

SIX = Headers(source_ip="2001:2::1", destination_ip="2001:2::2")
PLACES: tuple[tuple[str, Headers], ...] = (
    ("ipv4.identification", Headers()),
    ("ipv4.checksum", Headers()),
    ("ipv6.flow_label", SIX),
    ("octet", Headers()),
)
SHORT = Stream("short", 1, Fixed(128), Interval(pps=50_000), 30, stamp=Stamp("ipv4.identification"))


@pytest.fixture
def make(tmp_path: Path) -> MakeProbe:
    return maker(tmp_path)


def measured(
    make: MakeProbe, stream: Stream, delay_ticks: Callable[[int], int | None]
) -> tuple[StreamFigures, list[int]]:
    """Return the figures of a stream, and the delay (ns) of each frame that came; None is one that was lost."""
    came: list[int] = []

    def wire(frame: TrafficFrame) -> list[tuple[int, TrafficFrame]]:
        ticks = delay_ticks(frame.sequence)
        came.extend([] if ticks is None else [8 * ticks])
        return [] if ticks is None else [(ticks, frame)]

    probe, _, link = make(some(wire))  # type: ignore[arg-type]
    link.arrival_timeout_s = 2.0
    return probe.send([stream]).result().rows[0], came


def faults_of(latency: Latency, delays: list[int], unit_ns: int, range_ns: int | None) -> list[str]:
    """Return what is wrong in figures, by the delays that frames had."""
    known = np.array(delays, np.int64)
    figures = [latency.figures[name] for name in ("least", "mean", "most")]
    found = []

    def is_off(one: Any, true: float) -> bool:
        """Return whether a figure, or both bounds of one, is further from the truth than the unit of the stamp lets it be."""
        ends = (one.least, one.most) if isinstance(one, Bounds) else (one, one)
        return not ends[0] - unit_ns <= true <= ends[1] + unit_ns

    if latency.modulo_ns is None:
        wanted = [int(known.min()), float(known.mean()), int(known.max())]
        if any(one is None or is_off(one, true) for one, true in zip(figures, wanted, strict=True)):
            found.append(f"{figures} in the place of {wanted}")
    else:
        # Shifted by whole ranges, all figures must be those of the delays, where delays fit into one.
        if latency.modulo_ns != range_ns:
            found.append(f"modulo {latency.modulo_ns}, not {range_ns}")
        off = known.min() // latency.modulo_ns * latency.modulo_ns
        if np.ptp(known) < latency.modulo_ns // 2:
            for one, true in zip(figures, (known.min(), known.mean(), known.max()), strict=True):
                if one is not None and all(is_off(one, true - off - more) for more in (0, latency.modulo_ns)):
                    found.append(f"{figures} modulo {latency.modulo_ns} in the place of {known.min()} to {known.max()}")
    order = [one.least if isinstance(one, Bounds) else one for one in figures if one is not None]
    if order != sorted(order) or any(one < 0 for one in order):
        found.append(f"{figures} out of order")
    for bounds in (latency.p50, latency.p99, latency.p99_9):
        if bounds and bounds.least < 0:
            found.append(f"a percentile of {bounds}")
    return found


def drawn(chance: random.Random) -> tuple[Stream, Callable[[int], int | None]]:
    """Return a stream whose stamp has few bits, and the delays of its frames."""
    place, headers = chance.choice(PLACES)
    octet = {"octet": chance.randint(64, 80), "width": 8 * chance.randint(2, 8)} if place == "octet" else {}
    interval_ns = int(10 ** chance.uniform(3.45, 6))
    delay_ns = 10 ** chance.uniform(3, 9)
    expected = {"delay_ns": 2 * delay_ns} if chance.random() < 0.2 else {"tick": chance.choice((0, 0, 0, 1, 2))}
    bursts = chance.choice((None, None, Burst(3)))
    stream = Stream(
        "drawn",
        chance.randint(0, 2000),
        Fixed(chance.choice((128, 300))),
        Interval(interval_ns=interval_ns * (3 if bursts else 1), exponential=chance.random() < 0.3, burst=bursts),
        chance.randint(1, 40),
        start_ns=chance.choice((0, 12_345)),
        headers=headers,
        stamp=Stamp(place, **octet, **expected),
        seed=chance.randint(0, 99),
        probe=chance.random() < 0.85,
    )
    range_ns = (stream.used_stamp or Stamp("probe")).range_ns or 1 << 40
    # Jitter of a fourth of the interval keeps the order; some lie across the end of the range.
    if chance.random() < 0.3:
        delay_ns = max(1000.0, delay_ns // range_ns * range_ns - 40)
    reach = int(min(chance.choice((0, 10, interval_ns / 32, range_ns / 8)), 10**8) / 8)
    lost = chance.choice((0.0, 0.0, 0.1))
    fates = [
        None if chance.random() < lost else int(delay_ns / 8) + chance.randint(0, max(0, reach)) for _ in range(200)
    ]
    return stream, lambda number: fates[number]


@row("truth", "stamps", is_test=True)
def test_delays_by_short_stamps_are_right_or_marked(size: Size, tmp_path: Path) -> Iterator[Figure]:
    """Stamps of 16 to 64 bits at four places, delays of 1 us to 1 s, in a model of the probe: gateware's meters, written apart."""
    make, cells, marked, wrong, none = maker(tmp_path), size.of(30, 1500, 8000), 0, 0, 0
    for seed in range(cells):
        chance = random.Random(f"stamps {seed}")
        stream, fate = drawn(chance)
        found, delays = measured(make, stream, fate)
        stamp = stream.used_stamp
        assert stamp is not None
        if found.latency is None:
            none += 1
            continue
        marked += found.latency.modulo_ns is not None
        faults = faults_of(found.latency, delays, stamp.unit_ns + 8, stamp.range_ns)
        if faults:
            wrong += 1
            note(f"seed {seed}: {stream.stamp}, {stream.interval}: {'; '.join(faults)}")
    note(
        f"stamps: {cells} cells, {none} of which nothing came (excluded), {marked} marked modulo, the rest are as they are"
    )
    yield Figure("stamps_wrong_without_a_mark", wrong, "cells", 0)
    yield Figure("stamps_known", 100 * (1 - marked / (cells - none)), "%", 50, is_least=True)


# What is seen -------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay_ns", [100_000, 2_165_328, 65_528, 65_536, 8])
def test_a_delay_of_several_ranges_is_known_by_the_order_of_frames(make: MakeProbe, delay_ns: int) -> None:
    found, _ = measured(make, SHORT, lambda number: delay_ns // 8)
    latency = found.latency
    assert latency and (latency.least_ns, latency.mean_ns, latency.most_ns) == (delay_ns,) * 3
    assert latency.modulo_ns is None and latency.p50 and latency.p50.least <= delay_ns <= latency.p50.most


def test_a_delay_that_nothing_tells_is_marked_in_every_output(make: MakeProbe, tmp_path: Path) -> None:
    rare = replace(
        SHORT, interval=Interval(pps=5000)
    )  # A frame in 200 us may be three ranges later than the one before.
    probe, _, _ = make(some(lambda frame: [(100_000 // 8, frame)]))
    result = probe.send([rare]).result()
    latency = result["short"].latency
    assert latency and (latency.mean_ns, latency.modulo_ns) == (34_464, 65_536)
    assert result.notes == (
        "stream 'short': its delays are modulo 65,536 ns, the range of its stamp: give the longest delay that you expect "
        "(stamp: delay) or a stamp of more bits",
    )
    assert json.loads(json.dumps(result.to_dict()))["streams"][0]["latency_ns"]["modulo"] == 65_536
    console = tables.console()
    with console.capture() as shown:
        console.print(send.final(result))
    assert "modulo" in shown.get() and "65,536" in shown.get()


def test_delays_across_the_end_of_the_range_give_a_mean_and_no_ends(make: MakeProbe) -> None:
    rare = replace(SHORT, interval=Interval(pps=5000))
    found, delays = measured(make, rare, lambda number: (65_536 + (-40, 40)[number % 2]) // 8)
    latency = found.latency
    assert latency and latency.modulo_ns == 65_536
    assert latency.mean_ns == np.mean(delays) and (latency.least_ns, latency.most_ns, latency.std_ns) == (None,) * 3
    assert latency.figures["least"].least <= 65_496 <= latency.figures["least"].most
    assert latency.figures["most"].least <= 65_576 <= latency.figures["most"].most
    assert latency.p50 and latency.p50.least <= 65_496 <= latency.p50.most and latency.p99
    assert latency.p99.least <= 65_576 <= latency.p99.most


def test_delays_all_over_the_range_have_no_figures(make: MakeProbe) -> None:
    rare = replace(SHORT, interval=Interval(pps=5000))
    found, _ = measured(make, rare, lambda number: (100_000 + 3000 * number) // 8)
    latency = found.latency
    assert latency and latency.modulo_ns == 65_536
    assert (latency.least_ns, latency.mean_ns, latency.most_ns, latency.p50) == (None,) * 4


def test_the_unit_of_a_stamp_is_chosen_by_the_delay_that_is_expected(make: MakeProbe) -> None:
    text = "streams: [{length: 128, pps: 5k, count: 9, stamp: {place: ipv4.identification, delay: 2ms}}]"
    (stream,) = read_document(text)
    assert stream.stamp and (stream.stamp.tick, stream.stamp.range_ns) == (2, 1 << 24)
    assert read_document(write_document([stream])) == [stream]
    found, _ = measured(make, stream, lambda number: 2_165_328 // 8)
    assert found.latency and found.latency.modulo_ns is None
    assert found.latency.mean_ns == pytest.approx(2_165_328, abs=256)
    assert Stamp("ipv4.identification", tick=3, delay_ns=100).tick == 3
    with pytest.raises(UsageError, match="leave out the tick, or give 2 or more"):
        Stamp("ipv4.identification", tick=1, delay_ns=2_000_000)
