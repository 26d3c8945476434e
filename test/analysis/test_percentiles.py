# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Percentiles of values that are known by bins, and bins that follow what comes."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from liteprobe.cores.formats import BINS, BinKind
from liteprobe.host.analysis.delay import percentile
from liteprobe.host.base.errors import UsageError
from liteprobe.host.measure.delay_bins import FINEST, better, fitting, padded
from liteprobe.host.measure.monitor import BinSetting, Histogram, Monitor, PortMeasurement
from liteprobe.host.measure.percentiles import Bounds, Cells
from liteprobe.host.measure.streams import ReceivedStream
from liteprobe.host.probe import Probe
from liteprobe.host.serve.poll import CHANGES, Look, Poller, Worst
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.models.probe.meters import MonitorProbe
from liteprobe.sim.models.receive.meters import MeasuredFrame

PERCENTS = (0.1, 25, 50, 99, 99.9, 100)
REGULAR = BINS[BinKind.DELAY].regular


def sorted_into(values: NDArray[np.int64], setting: BinSetting) -> NDArray[np.int64]:
    """Return what the gateware counts: below, regular bins, above."""
    numbers = np.clip((values - setting.origin >> setting.shift) + 1, 0, REGULAR + 1)
    return np.bincount(numbers, minlength=REGULAR + 2).astype(np.int64)


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(8))
def test_bounds_hold_the_true_percentile_of_values_in_several_histograms(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = [rng.integers(-5000, 90_000, rng.integers(1, 400)), rng.exponential(3000, 700).astype(np.int64) + 4000]
    settings = [BinSetting(int(rng.integers(-9000, 9000)), int(rng.integers(0, 13))) for _ in parts]
    binned = [Cells.of_bins(one, sorted_into(part, one)) for part, one in zip(parts, settings, strict=True)]
    unsorted = rng.integers(0, 50_000, 20)
    values = np.concatenate([*parts, unsorted])
    least, most = int(values.min()), int(values.max())
    cells = binned[0].and_those(binned[1], Cells.of([(least, most, 20)])).within(least, most)
    assert cells.total == len(values)
    for percent in PERCENTS:
        bounds = cells.percentile(percent)
        assert bounds and bounds.least <= percentile(values, percent) <= bounds.most
    at, low, high = cells.distribution()
    for value, below, above in zip(at, low, high, strict=True):
        assert below <= np.mean(values <= value) <= above


def test_bounds_are_as_near_as_a_bin_is_wide() -> None:
    values = np.arange(8000, 16_000, 8)
    setting = fitting(8000, 15_999)
    cells = Cells.of_bins(setting, sorted_into(values, setting)).within(8000, 15_992)
    assert setting == BinSetting(7936, 8)
    assert cells.percentile(50) == Bounds(11_776, 12_031)
    assert percentile(values, 50) == 11_992


def test_a_percentile_is_the_least_value_that_so_many_do_not_exceed() -> None:
    cells = Cells.of([(value, value, 1) for value in (10, 20, 30)])
    found = [cells.percentile(percent) for percent in (33, 34, 50, 66, 67, 100)]
    assert found == [Bounds(value, value) for value in (10, 20, 20, 20, 30, 30)]
    thousand = Cells.of([(value, value, 1) for value in range(1, 1001)])
    assert [thousand.percentile(percent) for percent in (99, 99.9)] == [Bounds(990, 990), Bounds(999, 999)]


def test_a_constant_is_exact_and_nothing_has_no_percentile() -> None:
    setting = BinSetting(0, 9)
    cells = Cells.of_bins(setting, sorted_into(np.full(100, 296), setting)).within(296, 296)
    assert {cells.percentile(percent) for percent in PERCENTS} == {Bounds(296, 296)}
    assert Cells.of(()).percentile(50) is None


@pytest.mark.parametrize(
    ("least", "most"), [(0, 0), (296, 296), (-5, 7), (10**9, 10**9 + 1), (-(10**12), -(10**12) + 367), (5, 98 * 10**9)]
)
def test_bins_that_fit_hold_both_ends_and_are_the_narrowest(least: int, most: int) -> None:
    setting = fitting(least, most)
    assert setting.origin <= least and most < setting.origin + (REGULAR << setting.shift)
    assert setting.origin % 8 == 0 and setting.shift >= 3
    if setting.shift > 3:
        narrower = setting.shift - 1
        assert most >= (least >> narrower << narrower) + (REGULAR << narrower)


@pytest.mark.parametrize(("least", "most"), [(296, 296), (1000, 9000), (-100, 50), (0, 90 * 10**9)])
def test_roomy_bins_leave_some_for_what_comes_and_none_where_nothing_can(least: int, most: int) -> None:
    setting = padded(least, most)
    end = setting.origin + (REGULAR << setting.shift)
    assert setting.origin <= least and end > most
    assert end - most >= min(most - least, 100) and (setting.origin >= 0 or least < 0)


def test_no_bins_hold_what_is_too_far_apart() -> None:
    most = (REGULAR << 31) + 1
    with pytest.raises(UsageError, match=f"give a range of up to {REGULAR << 31} ns"):
        fitting(0, most)
    assert math.isclose((REGULAR << 31) / 1e9, 98.78, abs_tol=0.01)


# Bins that follow ---------------------------------------------------------------------------------


FIRST = 1_800_000_000_000_000_000
Values = NDArray[np.int64]
Draw = Callable[[np.random.Generator], NDArray[np.float64]]
TRAFFIC: dict[str, tuple[BinKind, Draw]] = {
    "one length": (BinKind.LENGTH, lambda rng: np.full(5000, rng.integers(60, 1515))),
    "three lengths": (BinKind.LENGTH, lambda rng: rng.choice([60, 570, 1514], 5000)),
    "jumbo": (BinKind.LENGTH, lambda rng: rng.uniform(60, 9600, 5000)),
    "line rate": (BinKind.ARRIVAL, lambda rng: np.full(5000, 672)),
    "random times": (BinKind.ARRIVAL, lambda rng: rng.exponential(10.0 ** rng.integers(3, 9), 5000) + 672),
    "bursts": (BinKind.ARRIVAL, lambda rng: np.where(rng.random(5000) < 0.02, 3e7, 700.0)),
    "delays": (BinKind.DELAY, lambda rng: rng.normal(10.0 ** rng.integers(3, 9), 300, 5000)),
    "a clock far behind": (BinKind.DELAY, lambda rng: -(10.0 ** rng.integers(9, 12)) + rng.exponential(5000, 5000)),
    "one far away": (BinKind.DELAY, lambda rng: np.append(rng.normal(5000, 90, 4999), 4e10)),
}


def histogram_of(kind: BinKind, values: Values, setting: BinSetting) -> Histogram:
    """Count by division, as the gateware is specified to."""
    places = (values - setting.origin) >> setting.shift
    regular = BINS[kind].regular
    counts = np.array([np.count_nonzero(places == place) for place in range(regular)])
    below, above = (int(np.count_nonzero(part)) for part in (places < 0, places >= regular))
    return Histogram(kind, setting, below, above, counts)


def measured(kind: BinKind, values: Values) -> PortMeasurement:
    """Return what else a port says of them."""
    ends = {"first_stamp": 0, "last_stamp": int(values.sum()) if kind == BinKind.ARRIVAL else 0}
    delays = (int(values.min()), int(values.max()), int(values.sum()), 0)
    stream = ReceivedStream(0, None, len(values), 0, 0, 0, 0, 0, 0, 0, 0, *delays)
    return PortMeasurement(0, ends, None, [stream] if kind == BinKind.DELAY else [], [], False)


@pytest.mark.parametrize("name", TRAFFIC)
def test_bins_settle_where_nearly_all_values_are_and_are_well_used(name: str) -> None:
    kind, draw = TRAFFIC[name]
    seed = int(np.random.default_rng().integers(1000))
    values = draw(np.random.default_rng(seed)).astype(np.int64)
    setting, port, changes = BinSetting(0, 6), measured(kind, values), 0
    while made := better(histogram_of(kind, values, setting), port):
        assert made != setting and changes < CHANGES, (seed, made)
        setting, changes = made, changes + 1
    found = histogram_of(kind, values, setting)
    used = np.flatnonzero(found.counts)
    spread = (used[-1] - used[0] + 1) / len(found.counts)
    assert found.below + found.above <= 0.01 * len(values), (seed, setting)
    assert spread > 1 / 8 or setting.shift == FINEST[kind] or name == "bursts", (seed, setting, used)


def test_too_few_values_choose_nothing() -> None:
    values = np.arange(99) * 10**6
    assert better(histogram_of(BinKind.ARRIVAL, values, BinSetting(0, 3)), measured(BinKind.ARRIVAL, values)) is None


def test_a_poller_changes_bins_until_they_fit_and_again_when_it_is_asked(tmp_path: Path) -> None:
    model = MonitorProbe()
    probe = Probe(FakeLink(model, tmp_path))
    poller, monitor = Poller(probe, [1]), Monitor(probe, 1)
    poller.set(None, {BinKind.LENGTH: BinSetting(100, 0)})
    now = FIRST

    def looks(interval_ns: int, count: int) -> list[Look]:
        nonlocal now
        found = []
        for _ in range(count):
            for _ in range(150):
                now += interval_ns
                model.arrive(1, MeasuredFrame(now, 600))
            found.append(poller.look())
        return found

    before = monitor.bins()
    assert not any(look.is_choosing for look in looks(50_000_000, 2)) and monitor.bins() == before
    poller.follow([BinKind.ARRIVAL])
    seen = looks(50_000_000, 12)
    # Each change clears, so what is shown is of one setting.
    assert [look.is_choosing for look in seen[-3:]] == [False] * 3 and seen[0].is_choosing
    last = seen[-1].ports[0].histograms[0][BinKind.ARRIVAL]
    assert last.below + last.above == 0 and last.edges[-1] > 50_000_000 > last.edges[0]
    assert monitor.bins()[BinKind.LENGTH] == BinSetting(100, 0)
    chosen = monitor.bins()
    outside = looks(900_000_000, 2)[-1].ports[0].histograms[0][BinKind.ARRIVAL]
    assert outside.above == 300 and monitor.bins() == chosen
    poller.follow()
    found = looks(900_000_000, 12)[-1].ports[0].histograms[0]
    assert found[BinKind.ARRIVAL].edges[-1] > 900_000_000 and found[BinKind.ARRIVAL].above == 0
    assert found[BinKind.LENGTH].below + found[BinKind.LENGTH].above == 0


def test_a_burst_at_the_first_look_chooses_no_bins_for_what_follows(tmp_path: Path) -> None:
    model = MonitorProbe()
    poller = Poller(Probe(FakeLink(model, tmp_path)))
    poller.set(None, {BinKind.ARRIVAL: BinSetting(0, 6)})
    poller.follow(kind for kind in BinKind)
    now = FIRST
    for interval_ns in (700, *[16_000] * 8):
        for _ in range(200):
            now += interval_ns
            for port in range(2):
                model.arrive(port, MeasuredFrame(now, 600))
        ports = [port.histograms[0][BinKind.ARRIVAL] for port in poller.look().ports]
    for found in ports:
        assert found.above == 0 and found.edges[0] <= 16_000 < found.edges[-1]


def test_the_worst_stays_until_it_is_cleared(tmp_path: Path) -> None:
    model, worst = MonitorProbe(), Worst()
    poller = Poller(Probe(FakeLink(model, tmp_path)), [0])
    lost = [7, 7, 12, 12, 13]  # 7 were lost before anybody looked.
    octets = [1000, 90_000, 500, 500, 600]
    shown = []
    for count, size in zip(lost, octets, strict=True):
        model.end_interval([10, 0], [size, 0])
        look = poller.look()
        worst.take(replace(look, events=[look.events[0] | {"all_frames": 10**6 * size, "fcs_errors": count}]))
        shown.append((worst.lost[0], worst.rate_bps[0]))
    rates = [8 * (size + 24 * 10) * 1e9 / model.values["rates_interval"] for size in octets]
    assert shown == [(0, rates[0]), *[(0, rates[1])], *[(5, rates[1])] * 3]
    worst.clear()
    assert worst.lost == {} and worst.rate_bps == {}
    worst.take(replace(look, events=[look.events[0] | {"fcs_errors": 13}]))
    assert (worst.lost[0], worst.rate_bps[0]) == (0, rates[-1]) and math.isfinite(rates[-1])
