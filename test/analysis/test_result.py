# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Results of all kinds as people use them: counts, delays, plain data, data frames, a plot, a line, a table; one import place."""

import ast
import doctest
import importlib
import json
import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from liteprobe import host
from liteprobe.cores.formats import RECORD_DTYPE, SetError
from liteprobe.cores.formats.emulate import HISTOGRAM_BINS
from liteprobe.host import (
    Bounds,
    CaptureResult,
    EmulationResult,
    Fixed,
    Interval,
    Measured,
    ProbeError,
    Result,
    SetsResult,
    Stream,
    StreamFigures,
    TrafficResult,
    Train,
    TrainResult,
    UsageError,
)
from liteprobe.host.analysis import result as results
from liteprobe.host.base.errors import DataError
from liteprobe.host.measure.percentiles import Cells
from liteprobe.host.replay.streamer import StreamState
from liteprobe.host.run.emulate import ClassCounts, ClassDelays, ClassLook, ClassQueue, DirectionLook, EmulationLook
from liteprobe.host.run.figures import Latency
from liteprobe.host.run.sets import PortSets, SetsCounts, SetsSummary
from liteprobe.host.run.streamed import Delays

ROOT = Path(host.__file__).parent
WITH_EXAMPLES = [
    path for path in sorted(ROOT.rglob("*.py")) if "\n    >>> " in path.read_text() or "\n>>> " in path.read_text()
]


def train(delays: list[int], sent: int | None = None, error_ns: float = 8.0) -> TrainResult:
    """Return a result of back-to-back frames of 60 octets with these delays (ns)."""
    records = np.zeros(len(delays), RECORD_DTYPE)
    records["sequence"], records["length"] = np.arange(len(delays)), 60
    records["tx_stamp"] = 1000 + 672 * records["sequence"].astype(np.uint64)
    records["rx_stamp"] = records["tx_stamp"] + np.array(delays, np.uint64)
    count = len(delays) if sent is None else sent
    return TrainResult(Train(60, count), records, {}, count, 0, "free-running", error_ns, True, ())


def stream(name: str, sent: int, lost: int, cells: list[tuple[int, int, int]], port: int = 0) -> StreamFigures:
    """Return the figures of a stream whose delays lie in these bins."""
    of = Cells.of(cells)
    ends = [of.percentile(percent) for percent in (50, 99, 99.9)]
    latency = Latency(cells[0][0], float(cells[0][0]), 1.0, cells[-1][1], *ends, of, 0) if cells else None
    asked = Stream(name, 1, Fixed(64), Interval(pps=1000), port=port)
    rates = {"sent_fps": Bounds(999, 1001), "received_fps": Bounds(998, 999), "received_bps": Bounds(7e5, 8e5)}
    return StreamFigures(
        asked, 1, False, sent, 0, None, sent - lost, 64 * (sent - lost), lost, 0, 0, 0, latency=latency, **rates
    )


def traffic(*rows: StreamFigures, error_ns: float = 8.0) -> TrafficResult:
    return TrafficResult(rows, 0.5, "sent", True, "free-running", error_ns, ("a note",))


def sets(frames: int, delays: list[int], capture: CaptureResult | None = None) -> SetsResult:
    summary = SetsSummary(("vlan",), 4, 0, 0, 1000.0, 1e6, 0.001, 1e5)
    seen = Delays(len(delays), 0, np.array(delays, np.int64))
    common = {"port": 0, "asked": frames, "frames": frames, "late": 0, "first_late": None, "underruns": 0, "receive": 1}
    state = StreamState(None, None, 0)  # type: ignore[arg-type]
    port = PortSets(
        **common,
        first_underrun=None,
        sent=state,
        delays=seen,
        counts=SetsCounts(frames, 0, 0, None, SetError(0)),
        summary=summary,
        is_counted=True,
    )
    return SetsResult((port,), 0.1, "sent", True, "locked", 20.0, capture, ())


def emulation(arrived: int, dropped: int, counts: dict[int, int]) -> EmulationResult:
    """Return that of one direction; ``counts``: delays by the number of their bin, of ticks of 8 ns."""
    bins = tuple(counts.get(number, 0) for number in range(HISTOGRAM_BINS))
    of = ClassCounts(arrived, 64 * arrived, arrived - dropped, 64, 0, 0, dropped, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    delays = ClassDelays(40.0, 120.0, 80.0, Bounds(50, 110), 20.0, 0.0, bins, 8.0)
    look = ClassLook(0, "voice", None, of, ClassQueue(0, 0, 3), delays, None, None, 1e6, 9e5)
    there = DirectionLook("there", 1.0, 0, True, True, 0, 0, 0, 0, (look,))
    return EmulationResult(None, EmulationLook(there, None, 0), (), "done", "locked", ())


CAPTURE = CaptureResult({"frames": 40, "octets": 2560, "dropped": {"0": 2}, "gap_frames": 2})
ALL: dict[str, tuple[Result, tuple[int | None, int | None, int | None]]] = {
    "train": (train([100, 200, 300], sent=4), (4, 3, 1)),
    "traffic": (
        traffic(stream("voice", 100, 1, [(96, 103, 99)]), stream("bulk", 50, 0, [(200, 215, 50)])),
        (150, 149, 1),
    ),
    "sets": (sets(5, [100, 104, 108, 112]), (5, 4, 1)),
    "capture": (CAPTURE, (None, 40, 2)),
    "emulation": (emulation(100, 7, {3: 50, 4: 43}), (100, 93, 7)),
}


@pytest.mark.parametrize("kind", ALL)
def test_each_kind_of_result_has_its_counts_and_plain_data(kind: str) -> None:
    result, counts = ALL[kind]
    assert (result.sent, result.received, result.lost) == counts
    of = counts[0] if counts[0] is not None else 42
    assert result.loss_ratio == counts[2] / of  # type: ignore[operator]
    plain = result.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == json.loads(json.dumps(plain)) and plain
    assert repr(result).startswith(f"<{type(result).__name__}: ") and "\n" not in repr(result)
    assert f"{counts[2]:,} lost" in repr(result)
    shown = result._repr_html_()
    assert shown.startswith("<table>") and all(f"<td>{name}</td>" in shown for name in result.parts)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("train", [100, 200, 300]), ("traffic", [99] * 99 + [207] * 50), ("sets", [100, 104, 108, 112]), ("capture", [])],
)
def test_delays_are_an_array_of_whole_nanoseconds(kind: str, expected: list[int]) -> None:
    delays = ALL[kind][0].delays_ns
    assert delays.dtype == np.int64 and delays.tolist() == expected


def test_a_delay_of_an_emulated_class_is_the_middle_of_its_bin_between_the_least_and_the_greatest() -> None:
    # Bin 3 has 4 to 7 ticks of 8 ns, cut at the least of 40 ns; bin 4 has 8 to 15, cut at the greatest of 120 ns.
    result = ALL["emulation"][0]
    assert result.delays_ns.tolist() == [48] * 50 + [92] * 43
    (voice,) = result.parts.values()
    assert (voice.p50.bounds, voice.p99.bounds, voice.least, voice.most) == (Bounds(40, 56), Bounds(64, 120), 40, 120)
    assert (voice.mean, voice.mean.bounds) == (80.0, Bounds(50, 110))


def test_figures_of_delays_are_numbers_with_bounds_and_those_of_a_result_have_the_error_of_the_clock() -> None:
    result = train([100, 200, 300])
    assert (result.p99, result.p99.bounds if result.p99 else None) == (300.0, Bounds(292, 308))
    voice = ALL["traffic"][0].parts["voice"]
    assert (voice.p99, voice.p99.bounds, voice.p99.bounds.error) == (99.5, Bounds(96, 103), 3.5)
    wide = ALL["traffic"][0].figures["voice"]["p99"]
    assert isinstance(wide, Measured) and wide.bounds == Bounds(88, 111)
    assert pickle.loads(pickle.dumps(voice.p99)).bounds == Bounds(96, 103)


def test_what_nobody_measured_is_none_and_a_capture_with_losses_knows_no_loss_of_the_device() -> None:
    silent = traffic(stream("voice", 10, 0, []))
    assert silent.parts["voice"].p99 is None and silent.delays_ns.tolist() == []
    holed = sets(5, [100, 104], CAPTURE)
    assert (holed.sent, holed.received, holed.lost, holed.loss_ratio) == (5, None, None, None)
    lost_block = CaptureResult({"frames": 1, "octets": 64, "dropped": {}, "missing": 1})
    assert (lost_block.received, lost_block.lost, lost_block.loss_ratio) == (1, None, None)


def test_a_line_says_which_part_is_the_worst_and_names_of_others_steer_no_terminal_and_no_page() -> None:
    assert repr(ALL["traffic"][0]) == "<TrafficResult: 150 sent, 149 received, 1 lost, p99 207.5 ns (bulk)>"
    assert repr(train([3000, 9_000_000])) == "<TrainResult: 2 sent, 2 received, 0 lost, p99 9 ms>"
    evil = traffic(stream("<b>\x1b[2J", 1, 0, [(1, 1, 1)]), stream("x", 1, 0, [(0, 0, 1)]))
    assert "\x1b" not in repr(evil) + evil._repr_html_() and "<b>" not in evil._repr_html_()


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_data_frame_has_a_row_a_frame_of_a_train_and_a_row_a_stream(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, SimpleNamespace(DataFrame=dict))
    frames = getattr(train([100, 200]), f"to_{package}")()
    assert [frames[name].tolist() for name in ("sequence", "delay_ns")] == [[0, 1], [100, 200]]
    rows = getattr(ALL["traffic"][0], f"to_{package}")()
    assert (rows["name"], rows["lost"], rows["p99"]) == (["voice", "bulk"], [1, 0], [99.5, 207.5])
    assert (rows["p99_low"], rows["p99_high"]) == ([88, 192], [111, 223])
    assert "sent_low" not in rows and {len(column) for column in rows.values()} == {2}


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_data_frame_has_whole_numbers_and_floats_as_the_package_has_them(package: str) -> None:
    """Take streams whose bounds are whole numbers in one row, fractions or not known in another: Polars refuses a mixture."""
    pytest.importorskip(package)
    rows = [stream("a", 10, 1, [(96, 103, 9)]), stream("b", 20, 20, []), stream("c", 30, 3, [(8, 8, 27)])]
    known = [Bounds(998, 999), None, Bounds(1, 2.5)]
    of = [replace(row, received_fps=bounds) for row, bounds in zip(rows, known, strict=True)]
    frame = getattr(traffic(*of), f"to_{package}")()
    found = {
        name: [None if value != value else value for value in frame[name].to_list()]
        for name in ("name", "lost", "fps", "fps_low", "fps_high", "p99", "p99_low", "p99_high")
    }
    assert found == {
        "name": ["a", "b", "c"],
        "lost": [1, 20, 3],
        "fps": [998.5, None, 1.75],
        "fps_low": [998, None, 1],
        "fps_high": [999, None, 2.5],
        "p99": [99.5, None, 8],
        "p99_low": [88, None, 0],
        "p99_high": [111, None, 16],
    }
    assert {str(frame[name].dtype).lower() for name in ("lost", "sent")} == {"int64"}


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_package_that_is_missing_is_named_with_what_to_type(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        ProbeError, match=f"a data frame needs {package}, which is not installed: type  .*pip install {package}"
    ):
        getattr(train([100]), f"to_{package}")()


def test_a_plot_is_the_distribution_of_each_part(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    axes = ALL["traffic"][0].plot()
    voice, bulk = axes.get_lines()
    assert (voice.get_label(), bulk.get_label(), axes.get_xlabel()) == ("voice", "bulk", "delay, ns")
    assert voice.get_xdata()[-1] == 99 and voice.get_ydata()[-1] == bulk.get_ydata()[-1] == 100  # type: ignore[index]
    assert train([1000, 2000, 3000, 4000]).plot(axes) is axes
    added = axes.get_lines()[2]
    assert list(added.get_xdata()) == [1, 2, 3, 4] and list(added.get_ydata()) == [25, 50, 75, 100]  # type: ignore[arg-type]
    with pytest.raises(DataError, match="has no delays to plot"):
        CAPTURE.plot()


def test_delays_of_a_histogram_that_fit_no_array_are_refused_with_what_to_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "DELAYS_MOST", 98)
    with pytest.raises(DataError, match="99 delays don't fit into an array of 98: take the bins"):
        _ = ALL["traffic"][0].delays_ns


# One place to import from -------------------------------------------------------------------------


def test_what_is_imported_later_is_what_type_checkers_see() -> None:
    tree = ast.parse(Path(host.__file__).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    typed = {name.asname: f"{node.module}" for node in imports for name in node.names if name.asname}
    assert {name: typed[name] for name in host._PLACES} == host._PLACES
    assert set(typed) == set(host.__all__)
    assert all(getattr(host, name) is not None for name in host.__all__)
    with pytest.raises(AttributeError):
        _ = host.Trian


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.stem)
def test_examples_of_docstrings_are_true(path: Path) -> None:
    name = ".".join(("liteprobe", "host", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted and not found.failed


# Quantities ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "interval_ns"),
    [
        ({"interval": "1us"}, 1000.0),
        ({"interval": "1.5 us"}, 1500.0),
        ({"rate": "500Mbit"}, 1344.0),
        ({"rate": "333.333Mbit"}, 8e9 * 84 / 333_333_000),
        ({"interval_ns": np.int64(1000)}, 1000.0),
    ],
)
def test_a_quantity_of_a_train_may_be_a_text_with_its_unit(given: dict[str, Any], interval_ns: float) -> None:
    assert Train(60, np.int32(100), **given).interval_ns == pytest.approx(interval_ns, rel=1e-15)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [lambda **given: Train(60, 1, **given), lambda **given: Interval(**given)])
@pytest.mark.parametrize("value", [1000, 1000.0, "1000", "1 parsec", b"1us", True, np.int64(5), ["1us"]])
def test_a_quantity_without_its_unit_or_of_a_wrong_type_is_refused_with_what_to_give(
    make: Callable[..., Any], value: Any
) -> None:
    for name, example in (("interval", "1us"), ("rate", "500Mbit")):
        with pytest.raises(UsageError, match=f"{name} is .*: give a text with its unit, like '{example}', or {name}_"):
            make(**{name: value})


def test_a_pace_is_given_once() -> None:
    for given in ({"interval_ns": 1000.0, "interval": "1us"}, {"interval": "1us", "rate": "1Mbit"}):
        with pytest.raises(UsageError, match="give one of them"):
            Train(60, 1, **given)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="rate_bps is given twice"):
        Interval(rate_bps=5.0, rate="1Mbit")
