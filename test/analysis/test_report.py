# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The reports of sweeps and of a one-way delay: small, whole, without any address, and with the figures of the rows."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from liteprobe.host.analysis import arrivals
from liteprobe.host.analysis.calibration import calibrate
from liteprobe.host.analysis.line_clock import LineClock
from liteprobe.host.base.defaults import PAPER_LENGTHS
from liteprobe.host.probe import Probe
from liteprobe.host.report import files, owd_page, plots
from liteprobe.host.report.owd_page import OneWayReport, Points
from liteprobe.host.report.page import SIZE_MAX, Report, number, page, typeset
from liteprobe.host.suites import owd, sweep
from liteprobe.host.suites.owd import OneWayResult
from liteprobe.host.suites.sweep import Sweep
from liteprobe.host.traffic.train import TrainProgram
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.drivers.tools.page_cells import Cells
from liteprobe.sim.models.probe.trains import ModelFrame, ModelProbe, Wire, cable

SEED = 42


def switch(tick_of: list[ModelProbe]) -> Wire:
    """Return a switch of 3 us whose queue wanders, from a seed; it loses a frame and copies one."""
    random = np.random.default_rng(SEED)
    free = [0]

    def wire(frame: ModelFrame) -> list[tuple[int, int, ModelFrame]]:
        now = tick_of[0].tick
        start = max(now + frame.length + 387, free[0] + int(random.integers(0, 40)))
        free[0] = start + frame.length + 24
        copies = {5: 0, 7: 2}.get(frame.sequence, 1)
        return [(1, start - now, frame)] * copies

    return wire


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory: pytest.TempPathFactory) -> list[sweep.Sweep]:
    """Two sweeps of the paper's sizes, smaller: through a cable, and through a switch that loses and copies."""
    found = []
    for name in ("loopback", "switch"):
        here: list[ModelProbe] = []
        wire = switch(here) if name == "switch" else lambda frame: [(1, 3, frame)]
        here.append(ModelProbe(wire))
        programs = sweep.programs_for(PAPER_LENGTHS, (20, 100), TrainProgram(60, 1, 3))
        request = sweep.SweepRequest(name, f"sim://{name}", programs, theory_delay=(0.0, 24.0))
        found.append(sweep.run(request, None, Probe(FakeLink(here[0], tmp_path_factory.mktemp(name)))))
    return found


@pytest.fixture(scope="module")
def html(sweeps: list[sweep.Sweep]) -> str:
    return page(sweeps, files.document(sweeps, ["liteprobe", "train"]), Report(is_paper=True))


@pytest.fixture(scope="module")
def cells(html: str) -> Cells:
    return Cells.of(html)


def test_page_is_small_and_whole(html: str, cells: Cells) -> None:
    assert len(html.encode()) < SIZE_MAX
    assert cells.open == []
    assert html.count("<svg") == 5


def test_page_needs_nothing_from_elsewhere(html: str, cells: Cells) -> None:
    assert re.findall(r"https?:|//[a-z]|@import|<script|<link|<img|<iframe|src=", html.replace("sim://", "")) == []
    assert re.findall(r"url\((?!#)", html) == []
    assert all(link.startswith("#") for link in cells.links)


def test_ids_of_the_plots_do_not_meet(html: str, cells: Cells) -> None:
    assert len(cells.ids) == len(set(cells.ids))
    asked = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', html))
    assert {one or other for one, other in asked} <= set(cells.ids)


def test_colours_are_those_of_the_page(html: str) -> None:
    drawings = html[html.index("<svg") : html.rindex("</svg>")]
    colours = set(re.findall(r"#[0-9a-f]{6}\b", drawings))
    assert colours <= {"#ffffff", "#000000"}, "fixed colours don't turn with light and dark"
    defined = set(re.findall(r"(--[a-z0-9-]+):", html))
    assert set(re.findall(r"var\((--[a-z0-9-]+)\)", html)) <= defined


def figures(cells: list[str]) -> list[float]:
    return [float(text.replace(",", "").replace("−", "-")) for text in cells]


def test_tables_show_the_figures_of_the_rows(sweeps: list[sweep.Sweep], cells: Cells) -> None:
    for place, measured in enumerate(sweeps):
        rates, delays = cells.tables[2 * place : 2 * place + 2]
        assert len(rates) == len(delays) == 1 + len(measured.rows)
        for rate, delay, row in zip(rates[1:], delays[1:], measured.rows, strict=True):
            assert rate[:2] == delay[:2] == [str(row["length"]), f"{row['repeat']} × {row['count']}"]
            rates_bps, owd, capacity = row["dispersion_rate_bps"], row["owd_ns"], row["capacity"]
            half = max(rates_bps["ci95_high"] - rates_bps["mean"], rates_bps["mean"] - rates_bps["ci95_low"])
            bps = [rates_bps["mean"], half, rates_bps["std"], row["theory_bps"]]
            assert figures(rate[2:6]) == [round(value / 1e6, 3) for value in bps]
            assert figures(rate[6:7]) == [round(row["resolution_ppm"], 2)]
            assert rate[7] == ("–" if capacity["bps"] is None else f"{capacity['bps'] / 1e6:,.3f}")
            assert rate[8] == f"{capacity['near']} of {capacity['pairs']}"
            assert figures(delay[2:4]) == [round(owd["mean"], 1), round(owd["std"], 1)]
            assert figures(delay[4:10]) == [owd[name] for name in ("min", "p50", "p99", "p99_9", "max")] + [24.0]
            assert figures(delay[10:11]) == [round(row["ipdv_ns"]["std"], 1)]
            assert delay[11] == " · ".join(str(row[name]) for name in ("lost", "duplicated", "reordered", "late"))


def test_lost_frames_are_said_at_the_top(sweeps: list[sweep.Sweep], html: str) -> None:
    assert sum(row["lost"] for row in sweeps[1].rows) == 14
    assert "<b>14</b><span>lost, in all rows</span>" in html


def test_line_of_calibration_is_that_of_the_trains(sweeps: list[sweep.Sweep], html: str) -> None:
    line = calibrate(sweeps[1].rows).line
    assert f"switch: {line.intercept:.1f} ns + {line.slope:.4f} ns/B" in html


def test_paper_stands_beside_these_figures(sweeps: list[sweep.Sweep], cells: Cells) -> None:
    (paper,) = [table for table in cells.tables if "Paper" in table[0]]
    assert [row[:2] for row in paper[1:]] == [
        ["loopback, 60 octets", "1.890 µs"], ["loopback, 1514 octets", "20.796 µs"],
        ["switch, 60 octets", "5.149 µs"], ["switch, 1514 octets", "35.854 µs"],
    ]  # fmt: skip
    assert paper[1][2:] == ["0.024 µs", "0.0 ns"]


def test_incomplete_results_are_said_before_the_figures(sweeps: list[sweep.Sweep]) -> None:
    row = dict(sweeps[0].rows[0], complete=False, notes=["3 records found the ring <full>"])
    broken = replace(sweeps[0], rows=[row, *sweeps[0].rows[1:]])
    text = page([broken], files.document([broken], []), Report())
    assert text.index("results are incomplete; 3 records found the ring &lt;full&gt;") < text.index("<h2>")


def test_sweep_that_received_nothing_has_a_page(sweeps: list[sweep.Sweep]) -> None:
    from liteprobe.host.analysis import summary

    empty = [replace(result, records=result.records[:0], counters={}) for result in sweeps[0].results]
    nothing = replace(sweeps[0], results=empty, rows=[summary.row(result) for result in empty])
    assert "–" in page([nothing], files.document([nothing], []), Report())


# Drawing ------------------------------------------------------------------------------------------


def test_thinning_keeps_the_least_and_the_greatest() -> None:
    y = np.random.default_rng(SEED).normal(size=100_000)
    y[54_321], y[12_345] = 99, -99
    x, thinned = plots.thin(np.arange(100_000), y, 1000)
    assert len(x) <= 1000 and thinned.max() == 99 and thinned.min() == -99
    assert np.array_equal(y[x], thinned)


@pytest.mark.parametrize("span", [0, 8, 80, 1000, 123_456_789])
def test_bins_hold_every_value_and_are_whole_ticks(span: int) -> None:
    values = np.array([0, span // 2, span])
    edges = plots.bin_edges(values)
    assert np.histogram(values, edges)[0].sum() == 3
    assert set(np.diff(edges) % 8) == {0} and len(edges) <= plots.BINS_MAX + 4


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (-0.04, "0.0"), (1234.56, "1,234.6"), (-7.25, "−7.2"), (0.0, "0.0")]
)
def test_numbers_read_well(value: float | None, text: str) -> None:
    assert number(value) == text


def test_report_is_written_where_asked(sweeps: list[sweep.Sweep], tmp_path: Path) -> None:
    from liteprobe.host.report.page import write_report

    write_report(tmp_path / "r.html", sweeps, files.document(sweeps, ["x"]))
    assert (tmp_path / "r.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_percentiles_of_the_drawing_are_those_of_the_packets_one_below_the_other(sweeps: list[sweep.Sweep]) -> None:
    label = r'translate\([\d.]+ ([\d.]+)\)">(p[\d.]+) ([\d.]+) (ns|µs)</text>'
    found = re.findall(label, plots.distribution(sweeps))
    shown = [(name, round(float(value) * {"ns": 1, "µs": 1000}[unit])) for _, name, value, unit in found]
    wanted = []
    for each in sweeps:
        delays = [one.records["rx_stamp"].astype(int) - one.records["tx_stamp"].astype(int) for one in each.results]
        firsts = [np.unique(one.records["sequence"], return_index=True)[1] for one in each.results]  # Without copies.
        over = np.concatenate([part[first] - part.min() for part, first in zip(delays, firsts, strict=True)])
        wanted += [(f"p{one:g}", np.percentile(over, one, method="inverted_cdf")) for one in (50, 99, 99.9)]
    assert shown == wanted
    heights = np.array([float(height) for height, *_ in found]).reshape(len(sweeps), -1)
    assert np.diff(heights).min() > 8  # Pixels of the letters.


# One-way delay ------------------------------------------------------------------------------------


OWD_SEED = 5
LOCKED = {"clock_state": 3, "clock_alive": 1, "clock_updates": 1, "clock_uncertainty": 2560, "pps_period": 10**9}
LOST = (3, 40)
INTERVAL_NS = 20_000


def result(probe: Probe, length: int, delay_ns: float, lost: tuple[int, ...] = ()) -> OneWayResult:
    """Return what came of a train of 100, some of its frames lost, its delays some ns about ``delay_ns``."""
    train = probe.train(TrainProgram(length, 100, interval_ns=INTERVAL_NS))
    train = replace(train, records=train.records[~np.isin(train.records["sequence"], lost)], uncertainty_ns=24.0)
    train = replace(train, counters=train.counters | {"frames": len(train.records)})
    arrived = arrivals.packets(train)
    owd_ns = delay_ns + np.random.default_rng(OWD_SEED).normal(0, 2, len(arrived.sequence))
    status = probe.timebase.clock.status()
    return OneWayResult(train, arrived, owd_ns, None, int(arrived.tx_stamp[0]), status, status)


@pytest.fixture
def reports(tmp_path: Path) -> list[OneWayReport]:
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


def test_missing_records_are_not_drawn_as_lost_and_delays_are_those_of_the_probe(reports: list[OneWayReport]) -> None:
    whole = reports[1].results[0]
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


def owd_html(reports: list[OneWayReport], folder: Path) -> str:
    """Return the page."""
    path = folder / "owd.html"
    owd_page.write(path, reports, files.document([one.sweep for one in reports], ["liteprobe", "owd"]))
    return path.read_text(encoding="utf-8")


def test_page_is_small_and_whole_and_needs_nothing_from_elsewhere(reports: list[OneWayReport], tmp_path: Path) -> None:
    text = owd_html(reports, tmp_path)
    cells = Cells.of(text)
    assert len(text.encode()) < SIZE_MAX and cells.open == [] and text.count("<svg") == 2
    assert re.findall(r"https?:|@import|<script|<link|<img|src=", text) == []
    assert len(cells.ids) == len(set(cells.ids))


def test_tables_of_a_one_way_delay_show_the_figures_of_the_rows(reports: list[OneWayReport], tmp_path: Path) -> None:
    there, back, clocks, *_ = Cells.of(owd_html(reports, tmp_path)).tables
    for one, table in zip(reports, (there, back), strict=True):
        for row, line in zip(one.sweep.rows, table[1:], strict=True):
            assert line[:2] == [str(row["length"]), "1 × 100"]
            assert float(line[2].replace(",", "")) == pytest.approx(row["owd_ns"]["mean"], abs=0.005)
            assert (line[9], line[10]) == ("24.0", f"{row['lost']} · 0 · 0 · 0")
    assert {line[10] for line in there[1:]} == {"2 · 0 · 0 · 0"}
    assert len(clocks) == 1 + 2 * 4 and {tuple(line[1:4]) for line in clocks[1:]} == {
        ("sender", "locked", "10.0"), ("receiver", "locked", "10.0"),
    }  # fmt: skip


def test_half_of_there_less_back_is_told_with_both_ways_alone(reports: list[OneWayReport], tmp_path: Path) -> None:
    assert owd_page.asymmetry_ns([one.sweep for one in reports]) == pytest.approx(-3, abs=0.3)
    assert "half of there less back" in owd_html(reports, tmp_path)
    assert "half of there less back" not in owd_html(reports[:1], tmp_path)


def test_a_lost_packet_is_drawn_when_it_was_sent(reports: list[OneWayReport]) -> None:
    points = reports[0].points[0]
    sent_ns = points.lost_ns - reports[0].results[0].start_time_ns
    assert np.abs(sent_ns - INTERVAL_NS * np.array(LOST)).max() <= 8
    assert len(points.owd_ns) == 98
    # A stroke for each.
    assert owd_page.over_time([("There", [points])]).count("<path") > owd_page.over_time(
        [("There", [replace(points, lost_ns=points.lost_ns[:0])])]
    ).count("<path")


def test_a_calibration_moves_what_is_drawn_as_it_moves_the_rows(reports: list[OneWayReport]) -> None:
    one = reports[0]
    row = {**one.sweep.rows[0], "calibration_ns": 100.0}
    moved = replace(one, sweep=replace(one.sweep, rows=[row, one.sweep.rows[1]]))
    assert moved.points[0].owd_ns == pytest.approx(one.points[0].owd_ns - 100)


def test_a_way_on_which_nothing_arrived_or_no_clock_is_known_has_a_page(
    reports: list[OneWayReport], tmp_path: Path
) -> None:
    nothing = Points(60, np.zeros(0, np.int64), np.zeros(0), np.array([5, 7]), None)
    assert "nothing to draw" in owd_page.shares([("There", [nothing])])
    assert "<svg" in owd_page.over_time([("There", [nothing])])
    rows = [{**row, "uncertainty_ns": None} for row in reports[0].sweep.rows]
    assert "– ns" in owd_html([replace(reports[0], sweep=replace(reports[0].sweep, rows=rows))], tmp_path)


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


def test_each_figure_of_a_cell_that_is_left_out_is_a_dash() -> None:
    assert [typeset(text) for text in ("-", "- · -", "-1 · -", "3 · -2±1")] == ["–", "– · –", "−1 · –", "3 · −2 ± 1"]
