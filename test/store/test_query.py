# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Questions about a store, against NumPy over all that was put in; before, while and after it is compacted."""

import json
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.measure.percentiles import Bounds, Cells, Measured
from liteprobe.host.store.query import StoreQuery
from liteprobe.host.store.store import ResultStore
from liteprobe.host.store.tables import StoredRun
from liteprobe.sim.drivers.tools.figures import ROOT
from liteprobe.sim.drivers.tools.stores import BEGIN_NS, DAY_NS, a_run, bin_of

PAGE = ROOT / "docs" / "store.md"
BEGIN = datetime.fromtimestamp(BEGIN_NS // 10**9, UTC)
DAYS, RUNS_A_DAY = 6, 5
PERCENTS = (0, 1, 50, 90, 99, 99.9, 100)
Samples = list[tuple[int, str, np.ndarray]]  # Time of the end (ns), probe, delays.


def filled(place: Path, seed: int = 5521) -> tuple[ResultStore, Samples]:
    """Return a store with runs of two probes over days, and what is in it."""
    rng = np.random.default_rng(seed)
    store, samples = ResultStore(place), []
    for day in range(DAYS):
        for number in range(RUNS_A_DAY):
            probe = ("switch", "device")[number % 2]
            values = rng.lognormal(7 + number / 3, 1, int(rng.integers(1, 400))).astype(np.int64) - 200
            at_ns = BEGIN_NS + day * DAY_NS + int(rng.integers(0, DAY_NS))
            run = StoredRun(
                "send",
                {"voice": {"sent": len(values) + day, "received": len(values), "lost": day}},
                {"voice": Cells.of_values(values)},
                url=f"sim://{probe}?x=1",
                uncertainty_ns=8.0 + day,
            )
            store.keep(run, at_ns)
            samples.append((at_ns, probe, values))
    return store, samples


def check(store: ResultStore, samples: Samples, hours: tuple[float, float], probe: str | None = None) -> None:
    """Hold percentiles of a span against those of all its values by NumPy."""
    ends = [BEGIN + timedelta(hours=one) for one in hours]
    first, last = (BEGIN_NS + int(one * 3600) * 10**9 for one in hours)
    found = StoreQuery(store, ends[0], ends[1], probe).percentiles(PERCENTS)
    expected = {}
    for name in sorted({one for _, one, _ in samples}):
        parts = [values for at, one, values in samples if one == name and first <= at < last]
        if parts and probe in (None, name):
            expected[name] = np.sort(np.concatenate(parts))
    assert {row["probe"]: row["samples"] for row in found.rows} == {name: len(one) for name, one in expected.items()}
    for row in found.rows:
        values = expected[row["probe"]]
        for percent in PERCENTS:
            exact = int(values[max(int(np.ceil(len(values) * percent / 100 - 1e-9)), 1) - 1])
            bounds = row[f"p{percent:g}".replace(".", "_")].bounds
            assert (bounds.least, bounds.most) == bin_of(exact), percent


def test_percentiles_of_any_span_before_and_after_compaction(tmp_path: Path) -> None:
    """Whole days are read from what compaction has merged, the ends of a span from the runs: the same each time."""
    store, samples = filled(tmp_path)
    spans: list[tuple[float, float]] = [(0, 24 * DAYS), (24, 72), (13.5, 100.25), (30, 40)]
    for turn in range(3):
        for span in spans:
            check(store, samples, span)
        check(store, samples, spans[0], "device")
        done = store.compact()
        assert (done.merged, done.made, done.damaged) == ((DAYS * RUNS_A_DAY, 2 * DAYS, []) if not turn else (0, 0, []))
    assert len(store.files()) == 4 * 2 * DAYS  # figures, histograms, days, runs.
    assert len(list(tmp_path.rglob("*.parquet"))) == len(store.files())
    store.keep(a_run(values=(7,), url="sim://switch"), BEGIN_NS)
    check(store, [*samples, (BEGIN_NS, "switch", np.array([7]))], spans[0])


def test_compaction_leaves_large_files_alone(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    for number in range(6):
        run = StoredRun(
            "send", {str(part): {"lost": number} for part in range(10 if number < 4 else 50)}, url="sim://x"
        )
        store.keep(run, BEGIN_NS + number)
    assert store.compact(40).merged == 4  # 10 rows each; those of 50 stay.
    assert store.compact(40).merged == 0
    assert sorted(pq_rows(store)) == [40, 50, 50]


def pq_rows(store: ResultStore) -> list[int]:
    return [store.read(one).num_rows for one in store.files("figures")]


def sums(store: ResultStore) -> tuple[int, int]:
    """Return how many runs there are, and the sum of a figure of each."""
    found = StoreQuery(store).sql(
        "SELECT (SELECT count(*) FROM runs), sum(value), (SELECT sum(count) FROM delays) FROM figures WHERE name = 'lost'"
    )
    runs, lost, samples = found.rows[0].values()
    assert samples == runs
    return runs, int(lost)


COMPACTOR = """
import sys
from liteprobe.host.store.store import ResultStore
store = ResultStore({place!r})
print("begin", flush=True)
store.compact()
"""


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(6))
def test_a_compaction_may_be_killed_at_any_moment(seed: int, tmp_path: Path) -> None:
    """Each run counts once, after the kill and after the compaction that follows it."""
    store = ResultStore(tmp_path)
    for number in range(24):
        store.keep(a_run(lost=number), BEGIN_NS + number % 3 * DAY_NS)
    one = subprocess.Popen([sys.executable, "-c", COMPACTOR.format(place=str(tmp_path))], stdout=subprocess.PIPE)
    assert one.stdout and one.stdout.readline()
    time.sleep(random.Random(seed).random() * 0.15)
    one.send_signal(signal.SIGKILL)
    one.wait()
    assert sums(ResultStore(tmp_path)) == (24, 276)
    store.compact()
    assert sums(ResultStore(tmp_path)) == (24, 276)
    assert len(store.files()) == 12


def test_readers_and_a_writer_beside_a_compaction(tmp_path: Path) -> None:
    """A reader never misses a run that was kept before it began, nor counts one twice."""
    store = ResultStore(tmp_path)
    for number in range(12):
        store.keep(a_run(lost=1), BEGIN_NS + number)
    kept, faults, is_done = [12], [], threading.Event()

    def read() -> None:
        while not is_done.is_set():
            before = kept[0]
            found = sums(ResultStore(tmp_path))
            if not before <= found[0] == found[1] <= kept[0] + 1:
                faults.append((before, found, kept[0]))

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        try:
            for turn in range(12):
                for number in range(3):
                    ResultStore(tmp_path).keep(a_run(lost=1), BEGIN_NS + 1000 * turn + number)
                    kept[0] += 1
                store.compact()
        finally:
            is_done.set()
    assert [one.result() for one in readers] == [None, None]
    assert faults == [] and sums(store) == (48, 48)


def test_two_compactions_at_once_are_refused(tmp_path: Path) -> None:
    import fcntl

    store, _ = filled(tmp_path)
    with (tmp_path / ".compact.lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another compaction is at .*: wait until it has ended"):
            store.compact()


@pytest.mark.parametrize("fault", ["flip", "cut", "empty", "garbage"])
def test_a_damaged_file_is_named_and_left_out(fault: str, tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    values = tuple(range(1000, 90_000, 7))
    store.keep(a_run(values=values), BEGIN_NS)
    store.keep(a_run(values=(5, 6, 7)), BEGIN_NS + 1)
    path = Path(store.files("histograms")[0].path)
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 64
    path.write_bytes(
        {"flip": bytes(content), "cut": bytes(content[: len(content) // 2]), "empty": b""}.get(fault, b"x" * 999)
    )
    found = StoreQuery(store).percentiles([50])
    assert (found.left_out, [row["samples"] for row in found.rows]) == ((str(path),), [3])
    done = store.compact()
    assert len(done.damaged) == 1 and str(path.parent.parent.name) and path.exists()


def test_two_runs_side_by_side(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    sides = [(100, Bounds(4096, 4351)), (103, Bounds(4300, 4500)), (100, Bounds(4400, 4500))]
    names = [
        store.keep(StoredRun("send", {"voice": {"sent": n, "p99": Measured.of(one)}}), BEGIN_NS) for n, one in sides
    ]
    found = StoreQuery(store).compare(names[0], names[1][:31]).rows
    assert [(row["name"], row["first"], row["second"], row["difference"], row["differs"]) for row in found] == [
        ("sent", 100, 103, 3, "yes"),
        ("p99", 4223.5, 4400, 176.5, "no"),
    ]
    assert [row["differs"] for row in StoreQuery(store).compare(names[0], names[2]).rows] == ["no", "yes"]
    for given, said in ((names[0][:4], "3 runs begin with"), ("zz", "no run begins with"), ("", "no run begins with")):
        with pytest.raises(UsageError, match=said):
            StoreQuery(store).compare(given, names[1])


def test_days_against_conditions(tmp_path: Path) -> None:
    """Counts and delays of each day, where a limit within the bin or within the clock's error is not known."""
    store, samples = filled(tmp_path)
    rows = StoreQuery(store, probe="switch").days(["loss < 1%", "p99 < 1s", "voice.p50 >= -1s", "data.lost == 0"]).rows
    for day, row in enumerate(rows):
        mine = [values for at, probe, values in samples if probe == "switch" and (at - BEGIN_NS) // DAY_NS == day]
        total, lost = sum(map(len, mine)), day * len(mine)
        assert (str(row["date"]), row["sent"], row["received"], row["lost"]) == (
            str((BEGIN + timedelta(days=day)).date()), total + lost, total, lost,
        )  # fmt: skip
        low, high = bin_of(int(np.sort(np.concatenate(mine))[-1]))
        assert row["most"].bounds == Bounds(low - 8 - day, high + 8 + day)
        assert row["loss < 1%"] == ("held" if lost / (total + lost) < 0.01 else "NOT HELD")
        assert (row["p99 < 1s"], row["voice.p50 >= -1s"], row["data.lost == 0"]) == ("held", "held", "")
    assert len(rows) == DAYS
    (first,) = (
        StoreQuery(store, BEGIN, BEGIN + timedelta(days=1), "switch").days([f"most < {int(rows[0]['most'])}ns"]).rows
    )
    assert first[f"most < {int(rows[0]['most'])}ns"] == "not known"


def test_segments_are_not_counted_twice(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    whole = store.keep(StoredRun("soak", {"voice": {"sent": 30, "lost": 3, "received": 27}}), BEGIN_NS)
    for lost in (1, 2):
        part = StoredRun("soak", {"voice": {"sent": 15, "lost": lost, "received": 15 - lost}}, within=whole)
        store.keep(part, BEGIN_NS)
    (row,) = StoreQuery(store).days().rows
    assert (row["sent"], row["received"], row["lost"]) == (30, 27, 3)


def test_clocks_that_nobody_knows_leave_days_open(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    run = a_run()
    store.keep(StoredRun(run.command, run.figures, run.cells, uncertainty_ns=float("inf")), BEGIN_NS)
    (row,) = StoreQuery(store).days(["p99 < 1s"]).rows
    assert row["p99 < 1s"] == "not known" and StoreQuery(store).percentiles([50]).plain()[0]["error_ns"] is None


def test_what_can_not_be_asked(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    with pytest.raises(UsageError, match="has no runs of then: look at --since, --until and --probe, or keep some"):
        StoreQuery(store).runs()
    store.keep(a_run())
    for text, said in (
        ("SELEC", "Parser Error"),
        ("SELECT x FROM runs", "Binder Error"),
        ("SELECT 1 FROM y", "Catalog"),
    ):
        with pytest.raises(UsageError, match=said):
            StoreQuery(store).sql(text)
    with pytest.raises(ProbeError, match="Conversion Error"):
        StoreQuery(store).sql("SELECT run::INTEGER FROM runs")
    with pytest.raises(UsageError, match="there is no percentile 101"):
        StoreQuery(store).percentiles([101])
    with pytest.raises(UsageError, match="days don't have jitter"):
        StoreQuery(store).days(["jitter < 1us"])


SAMPLE = Path(__file__).parent / "schema_1"


def test_a_store_of_schema_1_stays_readable() -> None:
    """Read what LiteProbe of 2026-11-28 wrote and compacted: a change that this fails at needs the next number."""
    store = ResultStore(SAMPLE)
    query = StoreQuery(store)
    said = json.loads((SAMPLE / "answers.json").read_text())
    assert query.percentiles([50, 99]).plain() == said["percentiles"]
    assert query.days(["loss < 1%"]).plain() == said["days"]
    assert query.sql("SELECT count(*) AS runs, sum(uncertainty_ns) AS sum FROM runs").plain() == said["runs"]
    assert {one.table for one in store.files()} == {"runs", "figures", "histograms", "days", "records"}


def test_a_report_draws_what_the_store_has(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    """Find a mark of each day in each line, counts and verdicts in the table; names of others stay text."""
    store = ResultStore(tmp_path / "store")
    names = []
    for day in range(9):
        cells = Cells.of_values(range(1000 * (day + 1), 1000 * (day + 1) + 50))
        figures = {"a <b> $x$": {"sent": 50 + day, "received": 50, "lost": day}}
        kept = StoredRun("send", figures, {"a <b> $x$": cells}, url="sim://switch", uncertainty_ns=8.0)
        names.append(store.keep(kept, BEGIN_NS + day * DAY_NS))
    damaged = store.files("histograms")[4].path
    Path(damaged).write_bytes(b"x" * 999)
    path = tmp_path / "page.html"
    given = ("--percentiles", "50,99", "--sla", "lost < 4", "--compare", names[0], names[8])
    code, _, errors = run("report", "--from", str(tmp_path / "store"), "--output", str(path), *given)
    assert (code, errors) == (0, f"left out, because it is damaged: {damaged}\nreport: {path}\n")
    text = path.read_text()
    assert text.count('xlink:href="') == 0 and "<b> $x$" not in text and "a &lt;b&gt; $x$" in text
    lines = re.findall(r'<g id="percentiles-line2d_\d+">\s*<path d="([^"]*)" clip-path', text)
    points = [len(re.findall("[ML]", one)) for one in lines]
    assert points.count(8) == 2  # A line a percentile; the damaged day has no point.
    assert text.count(">held<") == 4 and text.count(">NOT HELD<") == 5
    assert "left out, because it is damaged" in text and "8,000 ns" not in text
    rows = re.findall(r"<td>lost</td><td></td><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td>", text)
    assert rows == [("0", "8", "8", "yes")]
    code, _, errors = run("report", "--from", str(tmp_path / "none"), "--output", str(path))
    assert code == 2 and "has no runs of then" in errors


@pytest.mark.parametrize("is_compact", [False, True])
@pytest.mark.parametrize("package", ["polars", "pandas"])
def test_the_line_of_the_page_for_polars_and_pandas(
    package: str, is_compact: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run what docs/store.md has for a package, and hold each row of its frame against what was put in."""
    pytest.importorskip(package)
    store, samples = filled(tmp_path / "results")
    if is_compact:
        store.compact()
    others = {"polars", "pandas"} - {package}
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    text = re.search(r"^## Polars and pandas$.*?```python\n(.*?)```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert text
    lines = [line for line in text[1].splitlines() if not any(other in line for other in others)]
    assert sum(package in line for line in lines) == 2  # An import, and the line.
    exec("\n".join(lines), names)
    columns = ("date", "probe", "time", "part", "name", "value")
    rows = zip(*(names["frame"][name].to_list() for name in columns), strict=True)
    found = sorted((str(day), probe, round(at.timestamp() * 1e6), *more) for day, probe, at, *more in rows)
    expected = []
    for at_ns, probe, values in samples:
        day = (at_ns - BEGIN_NS) // DAY_NS
        date = str((BEGIN + timedelta(days=day)).date())
        for name, value in (("sent", len(values) + day), ("received", len(values)), ("lost", day)):
            expected.append((date, probe, at_ns // 1000, "voice", name, float(value)))
    assert found == sorted(expected)


def test_the_command(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    place = str(tmp_path)
    filled(tmp_path)
    code, out, err = run("query", place, "--percentiles", "50,99.9", "--csv")
    assert (code, err) == (0, "") and out.splitlines()[0] == (
        "probe,part,samples,p50,p50_low,p50_high,p99_9,p99_9_low,p99_9_high,error_ns"
    )
    assert len(out.splitlines()) == 3
    code, out, err = run("query", place, "--days", "--sla", "loss == 0", "--json")
    assert code == 4 and "loss == 0: not held in 10 of 12 rows" in err and len(json.loads(out)["rows"]) == 12
    code, out, _ = run("query", place)
    assert code == 0 and out.count(" send ") == DAYS * RUNS_A_DAY
    assert run("query", place, "--compact")[:2] == (
        0,
        "30 parts are 12 now; 90 files that no longer count were removed\n",
    )
    assert run("query", place, "--sql", "SELECT count(*)::INT AS n FROM runs", "--csv")[:2] == (0, "n\r\n30\r\n")
    for more, said in (
        (["--sql", "SELECT 1", "--days"], "--sql and --days are two questions"),
        (["--sla", "lost == 0"], "--sla is of --days"),
        (["--percentiles", "x"], "'x' is not a list of percentiles"),
        (["--since", "yesterday"], "'yesterday' is not a time"),
    ):
        code, _, err = run("query", place, *more)
        assert code == 2 and said in err


def test_a_soak_keeps_its_segments(run: Callable[..., tuple[int, str, str]], probes: None, tmp_path: Path) -> None:
    """Each segment is there with its delays, and what they sum to is what the run says."""
    place, whole = str(tmp_path / "store"), tmp_path / "soak.json"
    options = ("--length", "508", "--rate", "400M", "--duration", "3ms", "--segment", "1ms")
    kept = ("--trials", str(tmp_path / "kept.jsonl"), "--store", place, "--json", str(whole))
    code, _, err = run("soak", *options, *kept)
    assert code == 0, err
    (stream,) = json.loads(whole.read_text())["streams"]
    query = StoreQuery(ResultStore(place))
    rows = query.sql("SELECT command, run, within FROM runs ORDER BY time, command").rows
    assert [row["command"] for row in rows] == ["soak segment"] * 3 + ["soak"]
    assert {row["within"] for row in rows[:3]} == {rows[3]["run"]} and rows[3]["within"] is None
    (day,) = query.days().rows
    assert (day["sent"], day["received"], day["lost"]) == (stream["sent"], stream["received"], stream["lost"])
    (found,) = query.percentiles([0, 100]).rows
    assert (
        found["samples"] == stream["received"]
        and found["p0"].bounds.least <= stream["least"] <= found["p0"].bounds.most
    )
