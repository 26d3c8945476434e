# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The report of a one-way delay: both ways, with the figures of the rows, loss where it was."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from liteprobe.host.analysis import arrivals
from liteprobe.host.analysis.line_clock import LineClock
from liteprobe.host.probe import Probe
from liteprobe.host.report import files, owd_page
from liteprobe.host.report.owd_page import OneWayReport, Points
from liteprobe.host.report.page import SIZE_MAX
from liteprobe.host.suites import owd
from liteprobe.host.suites.owd import OneWayResult
from liteprobe.host.suites.sweep import Sweep
from liteprobe.host.traffic.train import TrainProgram
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.drivers.tools.page_cells import Cells
from liteprobe.sim.models.probe.trains import ModelProbe, cable

SEED = 5
LOCKED = {"clock_state": 3, "clock_alive": 1, "clock_updates": 1, "clock_uncertainty": 2560, "pps_period": 10**9}
LOST = (3, 40)
INTERVAL_NS = 20_000


def result(probe: Probe, length: int, delay_ns: float, lost: tuple[int, ...] = ()) -> OneWayResult:
    """Return what came of a train of 100, some of its frames lost, its delays some ns about ``delay_ns``."""
    train = probe.train(TrainProgram(length, 100, interval_ns=INTERVAL_NS))
    train = replace(train, records=train.records[~np.isin(train.records["sequence"], lost)], uncertainty_ns=24.0)
    train = replace(train, counters=train.counters | {"frames": len(train.records)})
    arrived = arrivals.packets(train)
    owd_ns = delay_ns + np.random.default_rng(SEED).normal(0, 2, len(arrived.sequence))
    status = probe.timebase.clock.status()
    return OneWayResult(train, arrived, owd_ns, None, int(arrived.tx_stamp[0]), status, status)


@pytest.fixture
def ways(tmp_path: Path) -> list[OneWayReport]:
    """There, with two frames lost, and back, which takes 6 ns longer."""
    model = ModelProbe(cable(), with_clock=True)
    model.values |= LOCKED
    probe = Probe(FakeLink(model, tmp_path))
    made = []
    for name, ends, more_ns, lost in (("There", "sim://a to sim://b", 0, LOST), ("Back", "sim://b to sim://a", 6, ())):
        results = [result(probe, length, 1000 + more_ns, lost) for length in (60, 1514)]
        rows = [owd.row(one) for one in results]
        made.append(
            OneWayReport(name, Sweep(ends, "sim://a", probe.info(), [one.train for one in results], rows), results)
        )
    return made


def test_missing_records_are_not_drawn_as_lost_and_delays_are_those_of_the_probe(ways: list[OneWayReport]) -> None:
    whole = ways[1].results[0]
    train = replace(whole.train, records=whole.train.records[:60], complete=False)
    partial = replace(whole, train=train, arrived=arrivals.packets(train), owd_ns=whole.owd_ns[:60])
    points = Points.of(partial, 0.0, None)
    assert (len(points.sent_ns), len(points.lost_ns)) == (0, 0)
    found, raw = owd.row(partial), arrivals.packets(whole.train).owd_ns
    assert (found["records"], found["lost"]) == ({"held": 60, "counted": 100}, 0)
    # In the middle of the tick in which the probe stamped them; percentiles of packets that are not there are none.
    assert [found["owd_ns"][name] for name in ("mean", "min", "max", "p99")] == [
        raw.mean() + 4, raw.min() + 4, raw.max() + 4, None,
    ]  # fmt: skip
    line = LineClock(0, 0, 0.0, 8.0, 0.25, 100, True)
    resolved = owd.row(replace(partial, line=line))
    assert resolved["uncertainty_ns"] == 24.0 + 4 - 0.5


def html(ways: list[OneWayReport], folder: Path) -> str:
    """Return the page."""
    path = folder / "owd.html"
    owd_page.write(path, ways, files.document([way.sweep for way in ways], ["liteprobe", "owd"]))
    return path.read_text(encoding="utf-8")


def test_page_is_small_and_whole_and_needs_nothing_from_elsewhere(ways: list[OneWayReport], tmp_path: Path) -> None:
    text = html(ways, tmp_path)
    cells = Cells.of(text)
    assert len(text.encode()) < SIZE_MAX and cells.open == [] and text.count("<svg") == 2
    assert re.findall(r"https?:|@import|<script|<link|<img|src=", text) == []
    assert len(cells.ids) == len(set(cells.ids))


def test_tables_show_the_figures_of_the_rows(ways: list[OneWayReport], tmp_path: Path) -> None:
    there, back, clocks, *_ = Cells.of(html(ways, tmp_path)).tables
    for way, table in zip(ways, (there, back), strict=True):
        for row, line in zip(way.sweep.rows, table[1:], strict=True):
            assert line[:2] == [str(row["length"]), "1 × 100"]
            assert float(line[2].replace(",", "")) == pytest.approx(row["owd_ns"]["mean"], abs=0.005)
            assert (line[9], line[10]) == ("24.0", f"{row['lost']} · 0 · 0 · 0")
    assert {line[10] for line in there[1:]} == {"2 · 0 · 0 · 0"}
    assert len(clocks) == 1 + 2 * 4 and {tuple(line[1:4]) for line in clocks[1:]} == {
        ("sender", "locked", "10.0"), ("receiver", "locked", "10.0"),
    }  # fmt: skip


def test_half_of_there_less_back_is_told_with_both_ways_alone(ways: list[OneWayReport], tmp_path: Path) -> None:
    assert owd_page.asymmetry_ns([way.sweep for way in ways]) == pytest.approx(-3, abs=0.3)
    assert "half of there less back" in html(ways, tmp_path)
    assert "half of there less back" not in html(ways[:1], tmp_path)


def test_a_lost_packet_is_drawn_when_it_was_sent(ways: list[OneWayReport]) -> None:
    points = ways[0].points[0]
    sent_ns = points.lost_ns - ways[0].results[0].start_time_ns
    assert np.abs(sent_ns - INTERVAL_NS * np.array(LOST)).max() <= 8
    assert len(points.owd_ns) == 98
    # A stroke for each.
    assert owd_page.over_time([("There", [points])]).count("<path") > owd_page.over_time(
        [("There", [replace(points, lost_ns=points.lost_ns[:0])])]
    ).count("<path")


def test_a_calibration_moves_what_is_drawn_as_it_moves_the_rows(ways: list[OneWayReport]) -> None:
    way = ways[0]
    row = {**way.sweep.rows[0], "calibration_ns": 100.0}
    moved = replace(way, sweep=replace(way.sweep, rows=[row, way.sweep.rows[1]]))
    assert moved.points[0].owd_ns == pytest.approx(way.points[0].owd_ns - 100)


def test_a_way_on_which_nothing_arrived_or_no_clock_is_known_has_a_page(
    ways: list[OneWayReport], tmp_path: Path
) -> None:
    nothing = Points(60, np.zeros(0, np.int64), np.zeros(0), np.array([5, 7]), None)
    assert "nothing to draw" in owd_page.shares([("There", [nothing])])
    assert "<svg" in owd_page.over_time([("There", [nothing])])
    rows = [{**row, "uncertainty_ns": None} for row in ways[0].sweep.rows]
    assert "– ns" in html([replace(ways[0], sweep=replace(ways[0].sweep, rows=rows))], tmp_path)


def points(delay_ns: float, sent_ns: int, is_resolved: bool) -> Points:
    sent = np.arange(20, dtype=np.int64) * INTERVAL_NS + sent_ns
    return Points(60, sent, np.full(20, delay_ns), np.zeros(0, np.int64), 14.0, is_resolved)


def test_both_ways_have_one_axis_and_what_is_not_resolved_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Figure] = []

    def keep(figure: Figure, name: str) -> str:
        drawn.append(figure)
        return name

    monkeypatch.setattr(owd_page, "svg", keep)
    named = [("There", [points(1000.0, 0, False)]), ("Back", [points(1200.0, 700_000, True)])]
    for draw in (owd_page.over_time, owd_page.shares):
        draw(named)
        first, second = drawn.pop().axes
        assert first.get_xlim() == second.get_xlim()
        assert "not resolved within the tick, ± 4 ns: 60 octets" in first.get_title(loc="left")
        assert second.get_title(loc="left") == "Back"
    owd_page.over_time(named)
    (bars,) = drawn.pop().axes[0].containers
    ends = [segment[:, 1].tolist() for segment in bars.lines[2][0].get_segments()]
    assert ends == [[996.0, 1004.0]] * 20
