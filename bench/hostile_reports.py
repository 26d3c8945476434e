# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Every report of trains of which records are missing: each figure as with all of them, or "-"."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from lindley import Hop, slot_ns, stamps, through
from numpy.typing import NDArray

from liteprobe.cores.formats import RECORD_DTYPE, ClockError, ClockState
from liteprobe.host.analysis import arrivals, summary
from liteprobe.host.analysis.summary import TrainResult
from liteprobe.host.cli import tables
from liteprobe.host.cli.commands import owd as owd_command
from liteprobe.host.clock.clock import ClockReport
from liteprobe.host.report import files, owd_page, page
from liteprobe.host.suites import owd
from liteprobe.host.suites.owd import OneWayResult
from liteprobe.host.suites.sweep import Sweep
from liteprobe.host.traffic.train import TrainProgram
from liteprobe.sim.drivers.tools.figures import Figure, row
from liteprobe.sim.drivers.tools.page_cells import Cells
from liteprobe.sim.models.receive.meters import DelayModel, SequenceModel

Row = dict[str, Any]

SEEDS = tuple(range(1, 21))  # Pages of the first alone.
LENGTH = 1514  # Octets without FCS.
SHARES = (0.0, 0.01, 0.5, 0.99)
#: What became of frames: part lost, part doubled, part kept back, T_max (ns), count, repeats.
CASES: dict[str, tuple[float, float, float, int | None, int, int]] = {
    "clean": (0, 0, 0, None, 50, 20),
    "one_train": (0, 0, 0, None, 1000, 1),
    "loss": (0.02, 0, 0, None, 50, 20),
    "copies": (0.01, 0.01, 0, None, 50, 20),
    "order": (0, 0, 0.05, None, 50, 20),
    "late": (0, 0, 0.05, 200_000, 50, 20),
}
#: What says how many records there are; a capacity has its own check.
ABOUT = ("records", "complete", "source", "capacity", "notes", "records_lost")
CAPACITY = ("1000.000", "1,000.000")  # Of the hop; no dispersion rate is as much under load.


def result_of(case: str, seed: int) -> TrainResult:
    """Return what a probe says of trains through a hop with other traffic at 30 %: all records, all accumulators."""
    loss, copies, kept_back, _, count, repeats = CASES[case]
    random = np.random.default_rng(seed)
    departures, times = through([Hop(load=0.3)], repeats, count, LENGTH, random)
    shift = 1e9 * np.arange(1, repeats + 1)[:, None] - departures[:, :1]
    departures, times = departures + shift, times + shift + 3000
    times += 300_000 * (random.uniform(size=times.shape) < kept_back)
    numbers = np.arange(times.size)
    numbers = numbers[random.uniform(size=times.size) >= loss]
    numbers = np.concatenate([numbers, numbers[random.uniform(size=len(numbers)) < copies]])
    tx, rx = stamps(departures).ravel()[numbers], stamps(times).ravel()[numbers]
    rx[len(np.unique(numbers)) :] += np.uint64(50_000)
    order = np.argsort(rx, kind="stable")
    records = np.zeros(len(numbers), dtype=RECORD_DTYPE)
    records["sequence"], records["tx_stamp"], records["rx_stamp"] = numbers[order], tx[order], rx[order]
    records["length"] = LENGTH
    return TrainResult(
        TrainProgram(LENGTH, count, repeats), records, _counters(records), times.size, 0, "locked", 12.0, True, ()
    )


def _counters(records: NDArray[np.void]) -> dict[str, int]:
    """Return the probe's accumulators, by the models that its gateware is held against."""
    tracker, delays = SequenceModel(), DelayModel()
    for record in records:
        tracker.arrive(int(record["sequence"]))
        delays.arrive(int(record["rx_stamp"]), int(record["tx_stamp"]))
    tracked = ("lost", "duplicated", "reordered", "beyond_window", "expected")
    return {name: int(getattr(tracker, name)) for name in tracked} | {
        "frames": len(records),
        "first_stamp": int(records["rx_stamp"][0]),
        "last_stamp": int(records["rx_stamp"][-1]),
        "delay_min": delays.least,
        "delay_max": delays.most,
        "delay_sum": delays.total,
        "delay_square_sum": delays.squares,
    }


def without(result: TrainResult, share: float, is_tail: bool, seed: int) -> TrainResult:
    """Return a result of which a part of the records is missing: the last ones, or any."""
    total = len(result.records)
    missing = round(share * total)
    gone = np.arange(total - missing, total) if is_tail else np.random.default_rng(seed).permutation(total)[:missing]
    counters = result.counters | {"records_lost": missing}
    return replace(result, records=np.delete(result.records, gone), counters=counters, complete=not missing)


# What all records give, worked out here -----------------------------------------------------------


def reference(result: TrainResult, waiting_ns: int | None) -> Row:
    """Return figures of all records, by definitions alone."""
    first: dict[int, tuple[int, int]] = {}
    copies = 0
    for record in result.records:
        number = int(record["sequence"])
        copies += number in first
        first.setdefault(number, (int(record["tx_stamp"]), int(record["rx_stamp"])))
    packets = {n: (tx, rx) for n, (tx, rx) in first.items() if waiting_ns is None or rx - tx <= waiting_ns}
    delays = sorted(rx - tx for tx, rx in packets.values())
    highest, reordered = -1, 0
    for number in packets:
        reordered += number < highest
        highest = max(highest, number)
    count, rates = result.program.count, []
    for train in range(result.program.repeats):
        times = [rx for n, (_, rx) in packets.items() if n // count == train]
        rates.append((len(times) - 1) * slot_ns(LENGTH) * 1e9 / (max(times) - min(times)))
    return {
        "received": len(packets), "lost": result.sent - len(packets), "duplicated": copies, "reordered": reordered,
        "expired": len(first) - len(packets), "dispersion_rate_bps.mean": np.mean(rates),
        "dispersion_rate_bps.median": np.median(rates), "owd_ns.mean": np.mean(delays),
        "owd_ns.std": np.std(delays, ddof=1), "owd_ns.min": delays[0], "owd_ns.max": delays[-1],
        "owd_ns.p50": delays[-(-len(delays) * 50 // 100) - 1], "owd_ns.p99": delays[-(-len(delays) * 99 // 100) - 1],
        "owd_ns.p99_9": delays[-(-len(delays) * 999 // 1000) - 1], "pdv_ns.max": delays[-1] - delays[0],
        "pdv_ns.mean": np.mean(delays) - delays[0],
    }  # fmt: skip


def leaves(row: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each figure of a row with its name."""
    if isinstance(row, dict | list):
        for key, value in row.items() if isinstance(row, dict) else enumerate(row):
            yield from leaves(value, f"{name}.{key}" if name else str(key))
    elif name.partition(".")[0] not in ABOUT:
        yield name, row


def is_same(found: Any, known: Any) -> bool:
    """Tell whether two figures are the same number or word."""
    if isinstance(known, str | bool) or known is None or found is None:
        return bool(found == known)
    return bool(abs(found - known) <= 1e-9 * max(abs(found), abs(known), 1e-3))


def is_same_text(found: str, known: str) -> bool:
    """Tell whether two cells show the same; a capacity need not be had of all records to be had of some."""
    try:
        return found in CAPACITY or is_same(float(found), float(known))
    except ValueError:
        return found == known


class Count:
    """Counts figures: all, those that are left out, those that are wrong."""

    def __init__(self) -> None:
        self.all = self.out = self.wrong = 0

    def take(self, name: str, found: Any, known: Any, nothing: Any = None) -> None:
        """Take a figure of missing records and the one of all; ``nothing`` is how a report leaves one out."""
        self.all += 1
        if found == nothing and known != nothing:
            self.out += 1
        elif not (is_same(found, known) if nothing is None else is_same_text(found, known)):
            self.wrong += 1
            print(f"  wrong: {name} is {found}, not {known}")


# Reports ------------------------------------------------------------------------------------------


def clock() -> ClockReport:
    """Return the state of a good clock."""
    counts = (9, 0, 0, 37, ClockError(0), 0, 0, None, 10**9)
    return ClockReport(ClockState.LOCKED, True, True, 8.0, 0.0, 0.0, 0.0, *counts, True, True, 0, 0, 0)


def one_way(result: TrainResult, waiting_ns: int | None) -> OneWayResult:
    """Return a result as one of two probes, its line's clock not resolved."""
    arrived = arrivals.packets(result, waiting_ns)
    return OneWayResult(result, arrived, arrived.owd_ns.astype(np.float64) + 4, None, 10**6, clock(), clock())


def printed(show: Callable[[], None]) -> list[list[str]]:
    """Return the numbers of the tables that are printed, a list a line."""
    out = io.StringIO()
    with redirect_stdout(out):
        show()
    lines = [re.split(r"[\s/]+", line.strip()) for line in out.getvalue().splitlines()]
    return [line for line in lines if line[0].isdigit()]


def renderings(result: TrainResult, waiting_ns: int | None, folder: Path) -> dict[str, tuple[list[list[str]], str]]:
    """Return the cells of every report of a result, and how each leaves a figure out."""
    row = summary.row(result, waiting_ns)
    sweep = Sweep("path", "sim://x", {}, [result], [row])
    found = owd.row(one_way(result, waiting_ns), waiting_ns)
    there = Sweep("a to b", "sim://a", {}, [result], [found])
    content = {**files.document([sweep], []), "created": ""}
    html = page.page([sweep], content, page.Report())
    way = owd_page.OneWayReport("There", there, [one_way(result, waiting_ns)])
    owd_page.write(folder / "owd.html", [way], content)
    tiles = [re.findall(r'class="tile"><b>(.*?)</b>', html)]
    lines = [
        [value for key, value in line.items() if key.partition(".")[0] not in ABOUT]
        for line in csv.DictReader(io.StringIO(files.as_csv([sweep])))
    ]
    json.dumps(files.document([sweep, there], []), allow_nan=False)
    return {
        "train": (printed(lambda: tables.trains([row])), "-"),
        "demo": (printed(lambda: tables.compared([row], "x")), "-"),
        "owd": (printed(lambda: owd_command.show([there])), "-"),
        "csv": (lines, ""),
        "page": ([line for table in Cells.of(html).tables[:2] for line in table[1:]] + tiles[:1], "–"),
        "owd_page": ([line for t in Cells.of((folder / "owd.html").read_text()).tables[:2] for line in t[1:]], "–"),
    }


#: Cells that count records, or that are of the rows that have a figure: they say so themselves.
OF_PAIRS = re.compile(r"^\d+ of \d+$")


def compare(count: Count, found: dict[str, Any], known: dict[str, Any]) -> None:
    """Take every cell of every report."""
    for name, (lines, nothing) in found.items():
        for line, all_of_line in zip(lines, known[name][0], strict=True):
            for cell, whole in zip(line, all_of_line, strict=True):
                parts = list(zip(cell.split(" · "), whole.split(" · "), strict=True))
                for part, full in parts:
                    if not OF_PAIRS.match(part):
                        count.take(name, part.removesuffix(" ns"), full.removesuffix(" ns"), nothing)


def check_capacity(count: Count, row: Mapping[str, Any], of_all: Mapping[str, Any]) -> None:
    """Take a capacity: it is that of the hop, to 0.1 %, or there is none."""
    bps = row["capacity"]["bps"]
    count.all += 1
    count.out += bps is None and of_all["capacity"]["bps"] is not None
    count.wrong += bps is not None and abs(bps / 1e9 - 1) > 1e-3


@row("hostile")
def test_reports(is_full: bool) -> Iterator[Figure]:
    """Rows and reports with 0, 1, 50 and 99 % of their records missing, any of them or the last ones.

    Left out: the figures "k of n" that say themselves of how many records they are, and the plots, which are drawn of
    programs whose records are all there.
    """
    folder = Path("build/bench")
    folder.mkdir(parents=True, exist_ok=True)
    for case, (_, _, _, waiting_ns, _, _) in CASES.items():
        base = Count()
        counts = {share: (Count(), Count()) for share in SHARES}
        for seed in SEEDS if is_full else SEEDS[:3]:
            whole = result_of(case, seed)
            whole_row = summary.row(whole, waiting_ns)
            all_rows = dict(leaves(whole_row))
            all_cells = renderings(whole, waiting_ns, folder) if seed == SEEDS[0] else None
            for name, known in reference(whole, waiting_ns).items():
                base.take(name, all_rows[name], known)
            for share in SHARES:
                for is_tail in (False, True) if share else (True,):
                    result = without(whole, share, is_tail, seed)
                    row = summary.row(result, waiting_ns)
                    of_rows, of_cells = counts[share]
                    for name, value in leaves(row):
                        of_rows.take(name, value, all_rows[name])
                    check_capacity(of_rows, row, whole_row)
                    if all_cells:
                        compare(of_cells, renderings(result, waiting_ns, folder), all_cells)
        yield Figure(f"reports_{case}_off_definition", base.wrong + base.out, f"of {base.all} figures", 0)
        for share, (of_rows, of_cells) in counts.items():
            name = f"reports_{case}_missing_{100 * share:g}"
            wrong, total = of_rows.wrong + of_cells.wrong, of_rows.all + of_cells.all
            yield Figure(f"{name}_wrong", wrong, f"of {total} figures", 0)
            given = 100 * (1 - (of_rows.out + of_cells.out) / total)
            yield Figure(f"{name}_given", given, "%", 100 if share == 0 else 0, True)
