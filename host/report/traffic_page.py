# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The report of streams: a row of figures each, which part came within which delay, the rates that were asked for and came."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from liteprobe.host.clock.timebase import delay_words
from liteprobe.host.measure.percentiles import Bounds
from liteprobe.host.report import page, traffic_plots, words
from liteprobe.host.report.page import Part, heading, number, said_of, table
from liteprobe.host.report.words import words as said
from liteprobe.host.run.figures import Latency, StreamFigures, TrafficResult, totals

TITLE = "Streams, measured"
DEFINED = ("Frame length", "Time stamps", "Lost, duplicated, reordered", "Late", "Bit errors")
ENDS = {
    "sent": "until all frames were sent",
    "stopped": "until it was stopped",
    "interrupted": "until it was interrupted",
}


def write(path: Path, result: TrafficResult, content: Mapping[str, Any]) -> None:
    """Write the page of ``result`` to ``path``; ``content`` is that of the JSON file (``files.traffic_document``)."""
    parts = [
        *said_of([_sent(result, content["url"])]),
        *said_of(result.notes, "note"),
        _tiles(result),
        *_figures(result),
        *_counts(result),
        *_delays(result),
        heading("How far to trust it"),
        *said_of([_trust(result)]),
        *page.asked_for(content["document"]),
        *page.definitions(DEFINED),
        *page.made_with(content),
    ]
    path.write_text(page.document(TITLE, content, parts), encoding="utf-8")


def bounded(bounds: Bounds | None, scale: float = 1.0, digits: int = 0) -> str:
    """Return a figure with its error, where the digits show it."""
    if bounds is None:
        return number(None)
    shown, error = number(bounds.middle / scale, digits), number(bounds.error / scale, digits)
    return shown if not float(error.replace(",", "")) else f"{shown} ± {error}"


# # #


def _sent(result: TrafficResult, url: str) -> str:
    return said(
        words.TRAFFIC_SENT,
        streams=f"{len(result.rows)} streams" if len(result.rows) > 1 else "A stream",
        url=page.address(url),
        duration=f"{result.duration_s:,.3f}",
        end=ENDS[result.end],
    )


def _trust(result: TrafficResult) -> str:
    return said(words.TRAFFIC_BOUND, state=result.clock_state, trust=delay_words(result.uncertainty_ns))


def _tiles(result: TrafficResult) -> Part:
    total = totals(result.rows)
    known = [row.latency.most_ns for row in result.rows if row.latency]
    tiles = [
        (page.count(total["sent"]), "frames sent"),
        (page.count(total["received"]), "received"),
        (page.count(total["lost"]), "lost"),
        (page.count(total["late"]), "left after their tick"),
        (f"{number(max(known, default=None), 0)} ns", "greatest delay"),
    ]
    checked = [row for row in result.rows if row.bit_errors is not None]
    if checked:
        kind = "stream" if len(checked) == 1 else "streams"
        tiles.append((page.count(sum(row.bit_errors or 0 for row in checked)), f"bit errors, of {len(checked)} {kind}"))
    return page.tiles_of(tiles)


def _figures(result: TrafficResult) -> list[Part]:
    captions = [
        (traffic_plots.distribution(result.rows), "Which part came within which delay.", said(words.TRAFFIC_DELAYS)),
        (traffic_plots.rates(result.rows), "Rates.", said(words.TRAFFIC_RATES)),
    ]
    return [heading("Figures"), page.figures(captions)]


def _counts(result: TrafficResult) -> list[Part]:
    has_bits = any(row.bit_errors is not None for row in result.rows)
    has_beyond = any(row.beyond_window for row in result.rows)
    heads = "Stream|Id|Port|Asked for,\nMb/s|Came,\nMb/s|Sent|Received|Lost|Doubled|Reordered|Late"
    heads += "|Too late\nto say" * has_beyond + "|Bit errors|Error ratio" * has_bits
    rows = []
    for row in result.rows:
        ports = str(row.stream.port) if row.receive is None else f"{row.stream.port} → {row.receive}"
        cells = [row.name, str(row.stream.stream_id) if row.stream.probe else "–", ports]
        cells += [page.megabits(row.offered_bps), bounded(row.received_bps, 1e6, 3)]
        cells += [
            page.count(one) for one in (row.sent, row.received, row.lost, row.duplicated, row.reordered, row.late)
        ]
        cells += [page.count(row.beyond_window)] * has_beyond
        cells += [_bit_errors(row), _ratio(row)] * has_bits
        rows.append(cells)
    return [heading("Frames"), table(heads, rows)]


def _bit_errors(row: StreamFigures) -> str:
    if row.damaged_bit_errors:
        return f"{page.count(row.bit_errors)}, in damaged\nframes {page.count(row.damaged_bit_errors)}"
    return page.count(row.bit_errors)


def _ratio(row: StreamFigures) -> str:
    ratio = row.bit_error_ratio
    if ratio is None:
        return number(None)
    return f"{ratio.middle:.2e} ± {ratio.error:.1e}" if row.bit_errors else f"< {ratio.most:.1e}"


def _delays(result: TrafficResult) -> list[Part]:
    heads = ["Stream", "Least", "Mean", "Std", "p50", "p99", "p99.9", "Greatest", "Outside\nof bins"]
    rows = [[row.name, *_delay_cells(row.latency)] for row in result.rows]
    return [heading("One-way delay, ns"), *said_of([said(words.TRAFFIC_BINS)]), table(heads, rows)]


def _delay_cells(latency: Latency | None) -> list[str]:
    if latency is None:
        return [number(None)] * 8
    std = None if latency.std_ns != latency.std_ns else latency.std_ns
    cells = [number(latency.least_ns, 0), number(latency.mean_ns, 1), number(std, 1)]
    cells += [bounded(one) for one in (latency.p50, latency.p99, latency.p99_9)]
    return [*cells, number(latency.most_ns, 0), page.count(latency.outside)]
