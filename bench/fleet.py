# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Rows of the bench "fleet": a store of months, its size and its answers, and what becomes of it when writers are killed."""

import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from liteprobe.host.measure.percentiles import Cells
from liteprobe.host.store.query import StoreQuery
from liteprobe.host.store.store import ResultStore, merged, new_name
from liteprobe.host.store.tables import DAYS, FIGURES, HISTOGRAMS, RUNS, TABLES
from liteprobe.sim.drivers.tools.figures import Figure, Size, drawn, note, row
from liteprobe.sim.drivers.tools.stores import BEGIN_NS, DAY_NS, a_run, writer

YEAR = 364  # Days, whole weeks.
NAMES = ("sent", "received", "lost", "duplicated", "reordered", "late", "rate", "least", "mean", "p50", "p99", "most")
PERCENTS = (50, 99, 99.9, 99.99)
MOST_NS = 1 << 22  # Of a delay here: each is counted by its own value, for the reference.


def _day_of(
    rng: np.random.Generator, day: int, shape: tuple[int, int], samples: int, reference: NDArray[np.int64]
) -> dict[str, pa.Table]:
    """Return the tables of a day; ``shape``: runs, and parts of each; ``reference``: counts of each delay (ns), added to."""
    runs, parts = shape
    each = np.sort(rng.integers(0, DAY_NS // 1000, runs)) + (BEGIN_NS + day * DAY_NS) // 1000
    names = pa.array([f"{day:08x}{number:024x}" for number in range(runs)])
    times = pa.array(each, pa.timestamp("us", "UTC"))
    made: dict[str, pa.Table] = {}
    columns = {name: pa.nulls(runs, kind) for name, kind in zip(TABLES[RUNS].names, TABLES[RUNS].types, strict=True)}
    made[RUNS] = pa.table(columns | {"run": names, "time": times, "uncertainty_ns": np.full(runs, 8.0)}, TABLES[RUNS])
    count = runs * parts * len(NAMES)
    of_run = pa.array(np.repeat(np.arange(runs), parts * len(NAMES)))
    values = rng.lognormal(10, 1, count).round(1)
    columns = {
        "run": names.take(of_run),
        "time": times.take(of_run),
        "value": values,
        "low": values,
        "high": values + 127,
    }
    columns["part"] = pa.array([f"voice {part}" for part in range(parts) for _ in NAMES] * runs)
    columns["name"] = pa.array(list(NAMES) * (runs * parts))
    columns["unit"] = pa.array(["ns" if name in NAMES[7:] else "" for name in NAMES] * (runs * parts))
    made[FIGURES] = pa.table({name: columns[name] for name in TABLES[FIGURES].names}, TABLES[FIGURES])
    delays = np.minimum(rng.lognormal(10.5, 0.4, samples).astype(np.int64), MOST_NS - 1)
    np.add(reference, np.bincount(delays, minlength=MOST_NS), out=reference)
    ends = np.linspace(0, samples, runs + 1).astype(np.int64)
    cells = [Cells.of_values(delays[first:end]) for first, end in pairwise(ends)]
    of_run = pa.array(np.repeat(np.arange(runs), [len(one.counts) for one in cells]))
    columns = {"run": names.take(of_run), "time": times.take(of_run)}
    columns |= {
        name: pa.array([text] * len(of_run)) for name, text in (("part", "voice 0"), ("name", "delay"), ("unit", "ns"))
    }
    for name, of in (("low", "lows"), ("high", "highs"), ("count", "counts")):
        columns[name] = np.concatenate([getattr(one, of) for one in cells])
    made[HISTOGRAMS] = pa.table(columns, TABLES[HISTOGRAMS])
    made[DAYS] = merged(made[HISTOGRAMS])
    return made


def _exact(reference: NDArray[np.int64], percent: float) -> int:
    """Return a percentile by the counts of each value alone."""
    total = int(reference.sum())
    return int(np.searchsorted(np.cumsum(reference), -(-total * round(percent * 100) // 10_000)))


@row("fleet")
def test_store(size: Size, tmp_path: Path) -> Iterator[Figure]:
    """Measure a year of a probe: rows of figures and samples in its store, their size, and how long questions take.

    With --full 10^8 rows and 10^9 samples; else a tenth. Answers are held against counts of each value, by NumPy alone.
    Files are made as a compaction leaves them; the time to make them is not measured.
    """
    rows, samples = size.of(10**5, 10**7, 10**8), size.of(10**6, 10**8, 10**9)
    rng = np.random.default_rng(drawn().randrange(2**32))
    runs = 288  # One of five minutes.
    parts = max(round(rows / YEAR / runs / len(NAMES)), 1)
    store, reference, of_weeks = ResultStore(tmp_path), np.zeros(MOST_NS, np.int64), np.zeros(MOST_NS, np.int64)
    counted = bins = 0
    for day in range(YEAR):
        was = reference.copy() if 70 <= day < 77 else reference
        tables = _day_of(rng, day, (runs, parts), samples // YEAR, reference)
        of_weeks += reference - was
        counted, bins = counted + len(tables[FIGURES]), bins + len(tables[HISTOGRAMS])
        text = (date(1970, 1, 1) + timedelta(days=BEGIN_NS // DAY_NS + day)).isoformat()
        store.put(tables, text, "switch", new_name(BEGIN_NS + day), ["0" * 32])
    octets = sum(one.size for one in store.files())
    total = int(reference.sum())
    note(
        f"# {counted:,} rows of figures, {bins:,} bins of {YEAR * runs:,} histograms with {total:,} samples, {YEAR} days"
    )
    yield Figure("rows of figures", counted / rows, "of those asked for", 0.95, is_least=True)
    yield Figure("samples", total / samples, "of those asked for", 0.95, is_least=True)
    yield Figure("store", octets / 1e9, "GB", 4)
    yield Figure("octets of a row of figures", _octets(store, FIGURES) / counted, "octets", 40)
    begin = datetime.fromtimestamp(BEGIN_NS // 10**9, UTC)
    for name, span, known in (("year", (0, YEAR), reference), ("week", (70, 77), of_weeks)):
        began, spent = time.monotonic(), time.process_time()
        query = StoreQuery(ResultStore(tmp_path), begin + timedelta(days=span[0]), begin + timedelta(days=span[1]))
        (found,) = query.percentiles(PERCENTS).rows
        took, cpu = time.monotonic() - began, time.process_time() - spent
        wrong = int(known.sum()) != found["samples"]
        wider = 0.0
        for percent in PERCENTS:
            exact, bounds = _exact(known, percent), found[f"p{percent:g}".replace(".", "_")].bounds
            wrong |= not bounds.least <= exact <= bounds.most
            wider = max(wider, (bounds.most - bounds.least + 1) / exact)
        yield Figure(f"percentiles of a {name}", took, "s", 2.0)
        yield Figure(f"percentiles of a {name}, processor", cpu, "s", 2.0)
        yield Figure(f"percentiles of a {name} that are outside of their bin", int(wrong), "", 0)
        yield Figure(f"width of a bin, of a {name}", 100 * wider, "% of the value", 100 / 128)
    began = time.monotonic()
    found = StoreQuery(ResultStore(tmp_path)).sql("SELECT count(*) AS n FROM figures").rows[0]
    yield Figure("count of all figures", time.monotonic() - began, "s", 30)
    began = time.monotonic()
    days = StoreQuery(ResultStore(tmp_path)).days(["lost == 0"]).rows
    yield Figure("days of all figures", time.monotonic() - began, "s", 120)
    yield Figure("days that are there", len({one["date"] for one in days}), "", YEAR, is_least=True)
    yield Figure("memory, at the most", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, "GB", 6)


def _octets(store: ResultStore, table: str) -> int:
    return sum(one.size for one in store.files(table))


def faults(place: Path | str, said: list[str]) -> tuple[int, int, int]:
    """Return damaged files, runs that were said to be there and aren't, and runs whose figures or histograms are missing."""
    store = ResultStore(place)
    damaged, there = 0, {name: set[str]() for name in (RUNS, FIGURES, HISTOGRAMS)}
    for one in store.files(*there):
        try:
            there[one.table] |= set(store.read(one)["run"].to_pylist())
        except (pa.ArrowException, OSError):
            damaged += 1
    torn = sum(len(there[RUNS] ^ there[name]) for name in (FIGURES, HISTOGRAMS))
    return damaged, len({*said} - there[RUNS]), torn


@row("fleet", "store_writers")
def test_store_writers(size: Size, tmp_path: Path) -> Iterator[Figure]:
    """Kill a writer at random moments, from a random number of runs on, while another one keeps on writing, and compact between.

    Each turn's writers go on in the store of the turns before. What is asked: files that Arrow can't read to the end,
    with their checksums; runs whose name the writer had printed; runs that lack a table.
    """
    chance = drawn()
    said: list[str] = []
    lost = torn = damaged = kept = 0
    turns = size.of(3, 100)
    for turn in range(turns):
        both = [writer(tmp_path, f"one {turn}"), writer(tmp_path, f"two {turn}", 10)]
        said += killed(both[0], chance) + all_of(both[1])
        if turn % 5 == 4 or turn == turns - 1:
            if turn % 10 == 9:
                ResultStore(tmp_path).compact()
            found = faults(tmp_path, said)
            damaged, lost, torn = damaged + found[0], lost + found[1], torn + found[2]
    kept = StoreQuery(ResultStore(tmp_path)).sql("SELECT count(*) AS n FROM runs").rows[0]["n"]
    note(f"# {turns} writers killed, {turns} beside them not; {len(said):,} runs said to be there, {kept:,} there")
    yield Figure("writers killed", turns, "", turns, is_least=True)
    yield Figure("damaged files", damaged, "", 0)
    yield Figure("runs that were said to be there and are not", lost, "", 0)
    yield Figure("runs that lack figures or histograms", torn, "", 0)
    yield Figure("runs there, beyond one a killed writer", max(kept - len(said) - turns, 0), "", 0)


def killed(one: "subprocess.Popen[str]", chance: random.Random) -> list[str]:
    """Kill a writer at a moment of chance after its first run, and return what it had said."""
    assert one.stdout
    said = [one.stdout.readline().strip()]
    time.sleep(chance.random() * 0.1)
    one.send_signal(signal.SIGKILL)
    said += one.stdout.read().split()
    one.wait()
    return [name for name in said if len(name) == 32]


def all_of(one: "subprocess.Popen[str]") -> list[str]:
    """Return what a writer says until it ends by itself."""
    assert one.stdout
    said = one.stdout.read().split()
    assert one.wait() == 0
    return said


COMPACTOR = """
from liteprobe.host.store.store import ResultStore
store = ResultStore({place!r})
print("begin", flush=True)
store.compact()
"""


@row("fleet", "store_compaction")
def test_store_compaction(size: Size, tmp_path: Path) -> Iterator[Figure]:
    """Kill compactions at random moments, and ask after each: every run is to count once."""
    chance = drawn()
    wrong = 0
    turns = size.of(2, 50)
    number = 0
    for _ in range(turns):
        store = ResultStore(tmp_path)
        for _ in range(12):
            store.keep(a_run(lost=1), BEGIN_NS + number % 3 * DAY_NS)
            number += 1
        one = subprocess.Popen([sys.executable, "-c", COMPACTOR.format(place=str(tmp_path))], stdout=subprocess.PIPE)
        assert one.stdout and one.stdout.readline()
        time.sleep(chance.random() * 0.15)
        one.kill()
        one.wait()
        text = "SELECT (SELECT count(*) FROM runs) AS runs, sum(value) AS lost, (SELECT sum(count) FROM delays) AS samples "
        (found,) = StoreQuery(ResultStore(tmp_path)).sql(text + "FROM figures WHERE name = 'lost'").rows
        wrong += {*found.values()} != {number}
    store.compact()
    yield Figure("compactions killed", turns, "", turns, is_least=True)
    yield Figure("of these, after which a run was missing or twice", wrong, "", 0)
    yield Figure("files that count after one that was not", len(store.files()), "", 12)


FULL = """
import resource, signal, sys
from liteprobe.host.base.output import outputs
from liteprobe.host.store.store import ResultStore
from liteprobe.sim.drivers.tools.stores import a_run
store = ResultStore({place!r})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))
with outputs() as out:
    out.write({place!r}, lambda: store.keep(a_run()))
print("kept")
"""


@row("fleet", "store_full_disk")
def test_store_full_disk(size: Size, tmp_path: Path) -> Iterator[Figure]:
    """Let the disk be full at many sizes (RLIMIT_FSIZE, in the place of a disk): it is said in words, and nothing is lost."""
    chance = drawn()
    store = ResultStore(tmp_path)
    store.keep(a_run())
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    turns, refused, changed, silent = size.of(2, 20), 0, 0, 0
    for _ in range(turns):
        code = FULL.format(place=str(tmp_path), most=chance.randrange(0, max(map(len, before.values()))))
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        refused += "kept" not in ended.stdout
        silent += f"cannot write {tmp_path} (File too large): free space on the disk" not in ended.stderr
        changed += {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} != before
    yield Figure("writers that found the disk full", refused, "", turns, is_least=True)
    yield Figure("of these, without a word of it", silent, "", 0)
    yield Figure("of these, with a file lost, changed or left", changed, "", 0)
    yield Figure("processors", os.cpu_count() or 0, "", 2)
