# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The report: small, whole, without any address, and with the figures of the rows."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from liteprobe.host.analysis.calibration import calibrate
from liteprobe.host.base.defaults import PAPER_LENGTHS
from liteprobe.host.probe import Probe
from liteprobe.host.report import files, plots
from liteprobe.host.report.page import SIZE_MAX, Report, number, page
from liteprobe.host.suites import sweep
from liteprobe.host.traffic.train import TrainProgram
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.drivers.tools.page_cells import Cells
from liteprobe.sim.models.probe.trains import ModelFrame, ModelProbe, Wire

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
            half = (rates_bps["ci95_high"] - rates_bps["ci95_low"]) / 2
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
