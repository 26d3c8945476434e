# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A store of results, against what was put in: bins by arithmetic, files by Arrow, writers that are killed, disks that are full."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.output import words_of
from liteprobe.host.measure.percentiles import Bounds, Cells, Measured
from liteprobe.host.store.query import StoreQuery
from liteprobe.host.store.store import ResultStore, name_of_probe
from liteprobe.host.store.tables import StoredRun
from liteprobe.sim.drivers.tools.stores import BEGIN_NS, DAY_NS, a_run, bin_of, writer


def test_log_linear_bins_of_any_values() -> None:
    """Find each value in the bin that whole numbers say, to the ends of 64 bits; bins tile the line."""
    random_of = random.Random(20261128)
    values = [random_of.randint(-(1 << bits), 1 << bits) for bits in range(1, 63) for _ in range(40)]
    values += [sign * (1 << bits) + more for bits in range(63) for sign in (-1, 1) for more in (-1, 0, 1)]
    values += [-(1 << 63), (1 << 63) - 1]
    for value in values:
        cells = Cells.of_values([value])
        assert (int(cells.lows[0]), int(cells.highs[0]), cells.total) == (*bin_of(value), 1), value
    low, high = bin_of(-5000)
    while high < 5000:
        below, (low, high) = high, bin_of(high + 1)
        assert low == below + 1


def test_log_linear_bins_merge_to_the_same_in_any_order() -> None:
    """Merge bins of parts, wide cells of a meter among them: they are those of all at once, and no value leaves its cell."""
    rng = np.random.default_rng(771)
    values = np.concatenate([rng.lognormal(9, 2, 3000).astype(np.int64), -rng.integers(0, 900, 500)])
    wide = Cells.of([(512, 1023, 7), (-(1 << 63), (1 << 63) - 1, 2), (4096, 4099, 9)])
    whole = Cells.of_values(values).and_those(wide).log_linear()
    parts = [Cells.of_values(part) for part in np.array_split(rng.permutation(values), 7)]
    merged = wide.and_those(*parts).log_linear()
    for name in ("lows", "highs", "counts"):
        assert getattr(merged, name).tolist() == getattr(whole, name).tolist()
    assert whole.total == len(values) + 18
    for percent in (0.1, 50, 99, 99.9):
        exact = np.sort(values)[int(np.ceil(len(values) * percent / 100)) - 1]
        found = Cells.of_values(values).percentile(percent)
        assert found and found.least <= exact <= found.most and (found.least, found.most) == bin_of(int(exact))


def rows(store: ResultStore, table: str) -> list[dict[str, object]]:
    """Return the rows of a table, read by Arrow from the files that count."""
    found: list[dict[str, object]] = []
    for one in store.files(table):
        found += pq.read_table(one.path, partitioning=None).to_pylist()
    return found


def test_a_run_is_there_as_it_was_kept(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    run = StoredRun(
        "send",
        {
            "voice": {"lost": 2, "p99": Measured.of(Bounds(4096, 4351)), "mean": None},
            "data": {"rate": Measured.of(1e9)},
        },
        {"voice": Cells.of_values([1000, 1001, 70])},
        {"data": np.array([5, 7])},
        url="etherbone://10.0.0.50/a=b?x=1",
        document={"ä": [1]},
        uncertainty_ns=8.0,
        began_ns=BEGIN_NS - 5 * 10**9,
    )
    name = store.keep(run, BEGIN_NS + DAY_NS - 1)
    figures = [
        (row["part"], row["name"], row["value"], row["low"], row["high"], row["unit"]) for row in rows(store, "figures")
    ]
    assert figures == [
        ("voice", "lost", 2, 2, 2, ""),
        ("voice", "p99", 4223.5, 4096, 4351, "ns"),
        ("data", "rate", 1e9, 1e9, 1e9, "b/s"),
    ]
    cells = [(row["part"], row["name"], row["low"], row["high"], row["count"]) for row in rows(store, "histograms")]
    assert cells == [("voice", "delay", 70, 70, 1), ("voice", "delay", 1000, 1003, 2)]
    assert [(row["part"], row["number"], row["delay_ns"]) for row in rows(store, "records")] == [
        ("data", 0, 5),
        ("data", 1, 7),
    ]
    (kept,) = rows(store, "runs")
    assert kept["run"] == name and json.loads(str(kept["document"])) == {"ä": [1]} and kept["uncertainty_ns"] == 8.0
    assert str(kept["time"])[:26] == "2024-10-04 23:59:59.999999" and str(kept["began"])[:19] == "2024-10-03 23:59:55"
    # As others read it: hive partitions by Arrow itself.
    table = ds.dataset(tmp_path / "schema=1" / "table=runs", partitioning="hive").to_table()
    assert table["probe"].to_pylist() == ["10.0.0.50/a=b"] and str(table["date"][0]) == "2024-10-04"
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.name.startswith(".")]


@pytest.mark.parametrize(
    "url, name", [("pcie:///dev/litepcie0", "dev/litepcie0"), ("sim://", "unknown"), ("a" * 500, "a" * 120)]
)
def test_names_of_probes(url: str, name: str, tmp_path: Path) -> None:
    assert name_of_probe(url) == name
    store = ResultStore(tmp_path)
    store.keep(a_run(url=url))
    assert {one.probe for one in store.files()} == {name}


def test_a_run_whose_last_file_is_missing_is_not_there(tmp_path: Path) -> None:
    """Data come before ``runs``: as a writer that was killed between them leaves it, and torn files beside."""
    store = ResultStore(tmp_path)
    name = store.keep(a_run())
    other = store.keep(a_run(lost=3))
    for path in tmp_path.rglob(f"table=runs/**/{name}.parquet"):
        (path.parent / f".{other}9.parquet.part").write_bytes(path.read_bytes()[:100])
        path.unlink()
    assert {one.name for one in store.files()} == {other}
    assert [row["value"] for row in rows(store, "figures")] == [3, 4223.5]


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    (tmp_path / "schema=2").mkdir()
    with pytest.raises(UsageError, match="of schema 2, and this LiteProbe knows 1: install the version that wrote it"):
        ResultStore(tmp_path)


@pytest.mark.parametrize("place", ["s3://key:secret@bucket/x", "s3://bucket?secret_key=x", "nonsense://x", "s3://"])
def test_no_place_for_a_store(place: str) -> None:
    with pytest.raises(
        UsageError, match="AWS_ACCESS_KEY_ID" if "secret" in place else "can't hold a store|names no bucket"
    ):
        ResultStore(place)


class S3(BaseHTTPRequestHandler):
    """Stands in for a server of S3 that knows one bucket, ``months``, which is empty, and one key, ``tester``."""

    def do_GET(self) -> None:
        """List a bucket, or refuse."""
        bucket, key = self.path[1:].partition("?")[0].strip("/"), self.headers.get("Authorization", "")
        code, fault = 200, ""
        if "tester/" not in key:
            code, fault = 403, "InvalidAccessKeyId"
        elif bucket != "months":
            code, fault = 404, "NoSuchBucket"
        said = f"<Error><Code>{fault}</Code><Message>x</Message></Error>" if fault else "<ListBucketResult/>"
        self.send_response(code)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(said.encode())

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize(
    "bucket, key, said",
    [
        ("weeks", "tester", "there is no such bucket, and none is made): check its name"),
        (
            "months",
            "nobody",
            "refuses the keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or what they may do there)",
        ),
    ],
)
def test_a_bucket_that_can_not_be_used_is_refused_before_anything_is_measured(
    bucket: str, key: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a server says it, over HTTP; bench/store_s3.py has a real one. A bucket that can be used is empty."""
    for name, value in (("ACCESS_KEY_ID", "tester"), ("SECRET_ACCESS_KEY", "x"), ("EC2_METADATA_DISABLED", "true")):
        monkeypatch.setenv(f"AWS_{name}", value)
    with ThreadingHTTPServer(("127.0.0.1", 0), S3) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            end = f"/x?endpoint_override=127.0.0.1:{server.server_address[1]}&scheme=http"
            assert ResultStore(f"s3://months{end}").files() == []
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
            with pytest.raises(OSError) as found:
                ResultStore(f"s3://{bucket}{end}")
        finally:
            server.shutdown()
    assert said in words_of(found.value)


def test_two_writers_at_once_and_one_is_killed(tmp_path: Path) -> None:
    """All that a writer has said to be stored is there, of both, and no file is torn, whenever one is killed."""
    both = [writer(tmp_path, "one"), writer(tmp_path, "two", 40)]
    killed, whole = both
    assert killed.stdout and whole.stdout
    said = [killed.stdout.readline().strip() for _ in range(5)]
    time.sleep(random.random() / 20)
    killed.send_signal(signal.SIGKILL)
    said += killed.stdout.read().split()
    said += whole.stdout.read().split()
    assert (killed.wait(), whole.wait()) == (-signal.SIGKILL, 0)
    store = ResultStore(tmp_path)
    there = {str(row["run"]) for row in rows(store, "runs")}
    assert set(said) <= there and len(there) <= len(said) + 1
    for table in ("figures", "histograms"):
        assert {str(row["run"]) for row in rows(store, table)} == there
    parts = [(row["part"], row["value"]) for row in rows(store, "figures") if row["name"] == "lost"]
    assert sorted(float(str(value)) for part, value in parts if part == "two") == list(range(40))


FULL = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2700, 2700))
from liteprobe.host.base.output import outputs
from liteprobe.host.store.store import ResultStore
from liteprobe.host.store.tables import StoredRun
from liteprobe.sim.drivers.tools.stores import BEGIN_NS, DAY_NS, a_run, bin_of, writer

run = StoredRun("send", {{"voice": {{"lost": 1}}}}, document={{str(number): number**2 for number in range(9000)}})
with outputs() as out:
    out.write({place!r}, lambda: ResultStore({place!r}).keep(run))
"""


def test_a_full_disk_is_said_and_what_was_there_stays(tmp_path: Path) -> None:
    """Figures fit, ``runs`` with its document doesn't: nothing of the run is there, what was there is, and the result is shown."""
    place = tmp_path / "store"
    store = ResultStore(place)
    store.keep(a_run())
    before = {path: path.read_bytes() for path in place.rglob("*.parquet")}
    ended = subprocess.run(
        [sys.executable, "-c", FULL.format(place=str(place))], capture_output=True, text=True, check=False
    )
    assert ended.returncode and "OutputError" in ended.stderr
    assert f"cannot write {place} (File too large): free space on the disk, or name another file" in ended.stderr
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before


def test_a_command_keeps_what_it_prints(run: Callable[..., tuple[int, str, str]], probes: None, tmp_path: Path) -> None:
    """The figures of the table, whose bounds the CSV has, are those of the store."""
    place, csv = tmp_path / "store", tmp_path / "run.json"
    code, _, errors = run(
        "send", "--length", "60", "--count", "300", "--rate", "100M", "--store", str(place), "--json", str(csv)
    )
    assert (code, errors) == (0, "")
    (kept,) = rows(ResultStore(place), "runs")
    assert json.loads(str(kept["document"])) == json.loads(csv.read_text())
    figures = {str(row["name"]): row for row in rows(ResultStore(place), "figures")}
    (stream,) = json.loads(csv.read_text())["streams"]
    assert (figures["sent"]["value"], figures["received"]["value"], figures["lost"]["value"]) == (300, 300, 0)
    assert figures["most"]["value"] == stream["latency_ns"]["most"] and figures["most"]["unit"] == "ns"
    assert sum(int(str(row["count"])) for row in rows(ResultStore(place), "histograms")) == 300


def test_records_are_kept_if_asked(run: Callable[..., tuple[int, str, str]], probes: None, tmp_path: Path) -> None:
    """Each frame has its delay, by DuckDB: what they come to is what the command prints of them."""
    place, whole = str(tmp_path / "store"), tmp_path / "run.json"
    given = ("train", "--length", "60,700", "--count", "40", "--repeat", "3", "--store", place, "--json", str(whole))
    assert run(*given)[0] == 0 and not ResultStore(place).files("records")
    assert run(*given, "--store-records")[0] == 0
    text = "SELECT part, count(*) AS n, min(delay_ns) AS low, max(delay_ns) AS high, avg(delay_ns) AS mean, "
    text += "count(DISTINCT number) AS numbers, max(number) AS last FROM records JOIN runs USING (run) GROUP BY part ORDER BY n"
    found = {row["part"]: row for row in StoreQuery(ResultStore(place)).sql(text).rows}
    assert sorted(found) == ["60", "700"]
    for row in json.loads(whole.read_text())["rows"]:
        one, owd = found[str(row["length"])], row["owd_ns"]
        assert (one["n"], one["numbers"], one["last"]) == (120, 120, 119) == (row["received"], 120, 119)
        assert (one["low"], one["high"], one["mean"]) == (owd["min"], owd["max"], pytest.approx(owd["mean"], 1e-12))
    code, _, errors = run("train", "--store-records")
    assert code == 2 and "--store-records says what --store keeps: give that, too" in errors


@pytest.mark.parametrize("more", [["--check"], ["--detach"], ["--schema"]])
def test_what_measures_nothing_keeps_nothing(
    more: list[str], run: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    code, _, errors = run("send", *more, "--store", str(tmp_path / "store"))
    assert code == 2 and f"{more[0]} measures nothing that --store could keep" in errors
    assert not os.listdir(tmp_path)
