# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures ends by time, and looks, of streams that are drawn from seeds.

``durations`` and ``looks`` run the host over a model of the probe, which sends by the words of its memories; ``durations`` asks
the model of a schedule, too, which draws each frame of up to a second. ``truth stamps`` is in test/traffic. Not compared: programs
that no port can send (drawn again), and frames that a port's other streams kept waiting past the end of the duration: a duration
is that of due ticks.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from liteprobe.cores.formats import BinKind
from liteprobe.host.serve.poll import Poller
from liteprobe.host.traffic.layout import port_words
from liteprobe.host.traffic.stream import Stream
from liteprobe.sim.drivers.frames.random_streams import StreamMaker
from liteprobe.sim.drivers.system.fake_link import DELAY_TICKS, maker
from liteprobe.sim.drivers.tools.figures import Figure, Size, note, row
from liteprobe.sim.models.traffic import streams as traffic

MODEL_NS = (3, 6.7)  # Powers of ten: durations of whole runs.
SECOND_NS = (3, 9)


def drawn(seed: int, longest: int, count: int, total: float) -> list[Stream]:
    """Return streams of one port. Stamps are those of probe headers alone: a port reads others at one place for all streams."""
    return [replace(stream, stamp=None) for stream in StreamMaker(seed, longest).streams(count, total)]


@row("truth")
def test_durations(size: Size, tmp_path: Path) -> Iterator[Figure]:
    """Durations of 1 us to 5 ms of whole runs, and of 1 us to 1 s by the schedule, kept to the tick; sent_fps has the truth."""
    make, runs, streams_off, rates_off, streams_seen = maker(tmp_path), size.of(5, 150, 1000), 0, 0, 0
    for seed in range(runs):
        chance = random.Random(f"durations {seed}")
        streams = drawn(seed, chance.choice((80, 200, 1514)), chance.randint(1, 6), 0.9)
        ticks = round(10 ** chance.uniform(*MODEL_NS) / 8)
        probe, model, _ = make()
        result = probe.send(streams, seconds=8 * ticks / 1e9).result()
        wanted = traffic.schedule(streams, 200_000)
        for number, found in enumerate(result.rows):
            due = wanted["due"][wanted["stream"] == number]
            past = np.flatnonzero(due >= ticks)
            stamps = [frame.stamp for frame in model.frames if frame.number == number]
            streams_seen += 1
            if not found.sent == len(stamps) == (past[0] if len(past) else len(due)):
                streams_off += 1
                note(f"seed {seed}, stream {number}: {found.sent} sent, {len(stamps)} left, in {8 * ticks} ns")
            if len(stamps) > 1 and found.sent_fps:
                true = 1e9 * (len(stamps) - 1) / (stamps[-1] - stamps[0])
                rates_off += not found.sent_fps.least <= true <= found.sent_fps.most
    note(f"durations: {runs} programs of {streams_seen} streams")
    yield Figure("durations_off", streams_off, "streams", 0)
    yield Figure("durations_rates_off", rates_off, "streams", 0)
    off, asked = 0, size.of(3, 40, 200)
    for seed in range(asked):
        chance = random.Random(f"schedules {seed}")
        (stream,) = StreamMaker(1000 + seed, 1514).streams(1, chance.uniform(0.01, 0.5))
        ticks = round(10 ** chance.uniform(*SECOND_NS) / 8)
        dues = (tick for tick, _ in traffic.dues(stream, traffic.EXACT, traffic.stretch([stream], traffic.EXACT)))
        ends = next((number for number, tick in enumerate(dues) if tick >= ticks), stream.count)
        off += port_words([stream], duration_ns=Fraction(8 * ticks)).ends != (ends,)
    yield Figure("durations_by_schedule_off", off, f"of {asked} streams", 0)


@row("truth")
def test_looks(size: Size, tmp_path: Path) -> Iterator[Figure]:
    """Looks at streams while frames go on: no more came than was sent, and all histograms are of the instant of the counts."""
    make, runs, looks, contradictions = maker(tmp_path), size.of(3, 60, 400), 0, 0
    for seed in range(runs):
        chance = random.Random(f"looks {seed}")
        streams = drawn(seed, chance.choice((80, 1514)), chance.randint(1, 6), 0.95)
        probe, model, _ = make()
        with probe.send(streams) as sending:
            for _ in range(10):
                probe.wait(chance.uniform(0, 2e-4))
                came_before = [sum(frame.number == number for frame in model.frames) for number in range(len(streams))]
                look = sending.look()
                for found, before in zip(look.rows, came_before, strict=True):
                    gone = sum(frame.number == streams.index(found.stream) for frame in model.frames)
                    looks += 1
                    bad = not before <= found.sent <= gone
                    if found.received is not None and found.stream.probe:
                        bad |= found.received > found.sent or bool(found.lost)
                        bad |= found.latency is not None and found.latency.cells.total != found.received
                    contradictions += bad
            seen = Poller(probe).look()
            for port in seen.ports:
                totals = {kind: one.total for kind, one in port.histograms[0].items()}
                contradictions += totals[BinKind.LENGTH] != port.counters["frames"]
                contradictions += totals[BinKind.DELAY] != sum(stream.frames for stream in port.streams)
    note(f"looks: {looks} rows of looks of {runs} programs; the wire takes {DELAY_TICKS} ticks")
    yield Figure("looks_contradictions", contradictions, "rows", 0)
