# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Keeps results in a folder or an S3-compatible bucket: a Parquet file a table and run, whole or not there, from many writers.

A run is there when its file of the table ``runs`` is, which is written last. A file that `compact` made says in its metadata
which ones it stands for: those are left out from then on, also while they are still there.
"""

import errno
import re
import secrets
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from liteprobe.host.base import extras, output
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.text import visible
from liteprobe.host.store.tables import DAYS, HISTOGRAMS, RUNS, SCHEMA, TABLES, StoredRun

with extras.named():
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import fs

REPLACES = b"liteprobe.replaces"  # Names of the files that one stands for, apart by blanks.
TRIES = 10  # Of listing: until two in a row agree.
PAUSE_S = 0.05
ROWS_LEAST = 100_000  # Of a file that compaction leaves alone.
ROWS_MOST = 2_000_000  # From where on it begins another one.
LEFT_S = 86_400.0  # After which what a killed writer left is removed.
NAME_MOST = 120  # Characters of a probe's name.
#: What Arrow says of a server of S3: an error of the system, and plainer words.
SAID_BY_S3 = (
    ("NETWORK_CONNECTION|REQUEST_TIMEOUT", errno.ECONNREFUSED, "its server doesn't answer"),
    ("NO_SUCH_BUCKET|InvalidBucketName", errno.ENOENT, "there is no such bucket, and none is made"),
    (
        "SIGNATURE_DOES_NOT_MATCH|INVALID_ACCESS_KEY_ID|ACCESS_DENIED|HTTP status 403|UserNotFound",
        errno.EACCES,
        "its server refuses the keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or what they may do there",
    ),
)
_FILE = re.compile(
    r"schema=(?P<schema>\d+)/table=(?P<table>\w+)/date=(?P<date>\d{4}-\d\d-\d\d)/probe=(?P<probe>[^/]+)/"
    r"(?P<name>[0-9a-f]{32})(?P<merged>-merged)?\.parquet"
)


@dataclass(frozen=True)
class StoredFile:
    """Names a file of a store by what its path says."""

    path: str  # As the file system has it.
    table: str
    date: str  # Of its runs (UTC), like ``2026-11-28``.
    probe: str
    name: str  # The same in all tables that were written together.
    is_merged: bool  # Whether `compact` made it.
    size: int  # Octets.


class ResultStore:
    """Holds results of many runs, of many probes and hosts.

    >>> import tempfile
    >>> store = ResultStore(tempfile.mkdtemp())
    >>> name = store.keep(StoredRun("send", {"voice": {"lost": 2}}, url="sim://loopback"))
    >>> [(one.table, one.probe, one.name == name) for one in store.files()]
    [('figures', 'loopback', True), ('runs', 'loopback', True)]

    Parameters
    ----------
    place : str or Path
        A folder, or a URL like ``s3://bucket/folder?endpoint_override=host:9000&scheme=http``, as pyarrow takes it.

    Raises
    ------
    UsageError
        When it is of a newer schema than this version of LiteProbe knows, or no place that could be one.
    OSError
        When it can't be reached.
    """

    def __init__(self, place: str | Path) -> None:
        self.place = str(place)
        self.system, self.root = _opened(self.place)
        self._replaced: dict[str, frozenset[str]] = {}  # By path of a merged file.
        with self._named():
            self._check()

    # Writing --------------------------------------------------------------------------------------

    def keep(self, run: StoredRun, at_ns: int | None = None, name: str | None = None) -> str:
        """Write a run, and return its name once it is there.

        ``at_ns``: when it was measured, since 1970 (None: now); ``name``: one of `new_name` that nobody has used (None: another).

        Raises OSError, with the place, where it can't be written: then nothing of it is there.
        """
        at_ns = time.time_ns() if at_ns is None else at_ns
        name = name or new_name(at_ns)
        self.put(run.tables(name, at_ns), day_of(at_ns), name_of_probe(run.url), name)
        return name

    def put(
        self, tables: Mapping[str, pa.Table], day: str, probe: str, name: str, replaces: Sequence[str] = ()
    ) -> None:
        """Write tables that belong together, ``runs`` last; ``replaces``: names of the files that these stand for."""
        written = []
        merged = "-merged" * bool(replaces)
        try:
            for table in sorted(tables, key=lambda one: one == RUNS):
                folder = f"{self.root}/schema={SCHEMA}/table={table}/date={day}/probe={quote(probe, safe='')}"
                path = f"{folder}/{name}{merged}.parquet"
                content = tables[table]
                if table == RUNS and replaces:
                    content = content.replace_schema_metadata({REPLACES: " ".join(replaces).encode()})
                written.append(path)
                with self._named():
                    self._put(path, _octets(content))
        except BaseException:
            for path in reversed(written):
                with suppress(OSError):
                    self.system.delete_file(path)
            raise

    def _put(self, path: str, content: pa.Buffer) -> None:
        if not isinstance(self.system, fs.LocalFileSystem):
            with self.system.open_output_stream(path) as stream:
                stream.write(content)  # One PUT, or, of more than 10 MB, parts that are joined when all are there.
            return
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        output.write_synced(target, content)

    def compact(self, least: int = ROWS_LEAST) -> "Compacted":
        """Make one file of those of a day and a probe that have less than ``least`` rows, and remove what no longer counts.

        It may be killed, and others may write and read meanwhile: each run counts once at any time. A file that is damaged
        stays as it is. Raises UsageError where another one is at it, in a folder; of a bucket start one at a time.
        """
        done = Compacted()
        with self._locked(), self._named():
            now = self.files()
            done.removed += self._sweep({one.name for one in now})
            groups: dict[tuple[str, str], dict[str, list[StoredFile]]] = {}
            for one in now:
                groups.setdefault((one.date, one.probe), {}).setdefault(one.name, []).append(one)
            for (day, probe), by_name in groups.items():
                self._compact(day, probe, by_name, least, done)
        return done

    def _compact(
        self, day: str, probe: str, by_name: Mapping[str, list[StoredFile]], least: int, done: "Compacted"
    ) -> None:
        """Make files of one day and probe; ``by_name``: those that were written together."""
        small: dict[str, dict[str, pa.Table]] = {}
        held = 0
        for name, files in sorted(by_name.items()):
            try:
                rows = max(pq.read_metadata(one.path, filesystem=self.system).num_rows for one in files)
                tables = {one.table: self.read(one) for one in files} if rows < least else {}
            except (pa.ArrowException, OSError) as error:
                done.damaged.append(f"{files[0].path}: {error}")
                continue
            if tables:
                small[name], held = tables, held + rows
            if held >= ROWS_MOST:
                self._merge(day, probe, small, done)
                small, held = {}, 0
        self._merge(day, probe, small, done)

    def _merge(self, day: str, probe: str, small: Mapping[str, dict[str, pa.Table]], done: "Compacted") -> None:
        if len(small) < 2:
            return
        made = {
            table: pa.concat_tables([one[table] for one in small.values() if table in one])
            for table in TABLES
            if table != DAYS and any(table in one for one in small.values())
        }
        if HISTOGRAMS in made:
            made[DAYS] = merged(made[HISTOGRAMS])
        self.put(made, day, probe, new_name(time.time_ns()), sorted(small))
        done.merged += len(small)
        done.made += 1
        done.removed += self._sweep({one.name for one in self.files()})

    def read(self, one: StoredFile) -> pa.Table:
        """Return the rows of a file; raises OSError or ArrowException where it is damaged: checksums are looked at."""
        return pq.read_table(
            one.path,
            filesystem=self.system,
            partitioning=None,
            page_checksum_verification=True,
            schema=TABLES[one.table],
        ).replace_schema_metadata(None)

    def _sweep(self, there: Collection[str]) -> int:
        """Delete what doesn't count: files for which others stand, and what killed writers left a day ago; return how many."""
        listed = {name: self._listed(name) for name in (RUNS, *(name for name in TABLES if name != RUNS))}
        gone = self._gone(listed[RUNS])
        old = datetime.now(UTC) - timedelta(seconds=LEFT_S)
        committed = {one.name for one in listed[RUNS]}
        count = 0
        for one in (one for files in listed.values() for one in files if one.name not in there):
            is_left = one.name not in committed and self.system.get_file_info(one.path).mtime < old
            if one.name in gone or is_left:
                self.system.delete_file(one.path)
                count += 1
        if isinstance(self.system, fs.LocalFileSystem):
            for path in Path(self.root).glob(f"schema={SCHEMA}/*/*/*/.*.part"):
                if path.stat().st_mtime < old.timestamp():
                    path.unlink(missing_ok=True)
                    count += 1
        return count

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the store against another `compact`, where it is a folder; the system lets go of it when this one is killed."""
        if not isinstance(self.system, fs.LocalFileSystem):
            yield
            return
        Path(self.root).mkdir(parents=True, exist_ok=True)
        with (Path(self.root) / ".compact.lock").open("w") as stream:
            output.hold(stream.fileno(), f"another compaction is at {self.place}: wait until it has ended")
            yield

    # Reading --------------------------------------------------------------------------------------

    def files(self, *tables: str) -> list[StoredFile]:
        """Return the files that count now, in order of time, of some tables or of all: each run is in one of a table."""
        before: list[StoredFile] | None = None
        for number in range(TRIES):
            data = [one for name in TABLES if name != RUNS for one in self._listed(name)]
            runs = self._listed(RUNS)
            if before == runs or number == TRIES - 1:
                break
            before = runs  # What is deleted or written meanwhile may have been seen in part.
            time.sleep(PAUSE_S * bool(number))
        there = {one.name for one in runs} - self._gone(runs)
        found = [one for one in [*data, *runs] if one.name in there and one.table in (tables or TABLES)]
        return sorted(found, key=lambda one: (one.table, one.date, one.name))

    def _gone(self, runs: Sequence[StoredFile]) -> set[str]:
        """Return the names of files for which others stand."""
        lonely: dict[tuple[str, str], int] = {}
        for one in runs:
            lonely[one.date, one.probe] = lonely.get((one.date, one.probe), 0) + 1
        found: set[str] = set()
        for one in runs:
            if one.is_merged and lonely[one.date, one.probe] > 1:
                found |= self._replaces(one)
        return found

    def _replaces(self, one: StoredFile) -> frozenset[str]:
        if one.path not in self._replaced:
            try:
                metadata = pq.read_schema(one.path, filesystem=self.system).metadata or {}
            except FileNotFoundError:
                return frozenset()  # Others have come in its place meanwhile.
            except (pa.ArrowInvalid, OSError):
                raise ProbeError(
                    f"{one.path} is damaged, and says which others count: restore it, or delete it"
                ) from None
            self._replaced[one.path] = frozenset(metadata.get(REPLACES, b"").decode().split())
        return self._replaced[one.path]

    def _listed(self, table: str) -> list[StoredFile]:
        chosen = fs.FileSelector(f"{self.root}/schema={SCHEMA}/table={table}", allow_not_found=True, recursive=True)
        found = []
        with self._named():
            for one in self.system.get_file_info(chosen):
                match = _FILE.fullmatch(one.path[len(self.root) + 1 :])
                if match and one.is_file:
                    probe, is_merged = unquote(match["probe"]), bool(match["merged"])
                    found.append(StoredFile(one.path, table, match["date"], probe, match["name"], is_merged, one.size))
        return sorted(found, key=lambda one: (one.date, one.name))

    def _check(self) -> None:
        """Raise UsageError where a newer version has written, OSError where there is no bucket: listing it says nothing."""
        folders = self.system.get_file_info(fs.FileSelector(self.root, allow_not_found=True))
        numbers = [int(match[1]) for one in folders if (match := re.fullmatch(r"schema=(\d{1,9})", one.base_name))]
        if newer := max([number for number in numbers if number > SCHEMA], default=None):
            raise UsageError(
                f"{self.place} is of schema {newer}, and this LiteProbe knows {SCHEMA}: install the version that wrote it, "
                "or name another place"
            )
        is_bucket = not isinstance(self.system, fs.LocalFileSystem)
        if is_bucket and self.system.get_file_info(self.root.partition("/")[0]).type == fs.FileType.NotFound:
            raise OSError(errno.EIO, "NO_SUCH_BUCKET")

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Name the place in errors of its file system."""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            number = getattr(error, "errno", None) or errno.EIO
            what = getattr(error, "strerror", None) or str(error).splitlines()[0]
            if number == errno.EIO:
                found = ((one, words) for pattern, one, words in SAID_BY_S3 if re.search(pattern, what))
                number, what = next(found, (number, what))
            raise OSError(number, what, self.place) from None


@dataclass
class Compacted:
    """Says what a compaction did."""

    merged: int = 0  # Runs, or files of several, that are in larger files now.
    made: int = 0  # These, of each table one.
    removed: int = 0  # Files that no longer count.
    damaged: list[str] = field(default_factory=list)  # Files that stay as they are, and why.


def merged(cells: pa.Table) -> pa.Table:
    """Return the bins of many histograms with those that are alike as one; ``time`` is the first one of each."""
    keys = ["part", "name", "unit", "low", "high"]
    found = cells.group_by(keys).aggregate([("count", "sum"), ("time", "min")])
    found = found.rename_columns({"count_sum": "count", "time_min": "time"}).append_column(
        "run", pa.nulls(len(found), pa.string())
    )
    return found.sort_by([(key, "ascending") for key in keys]).select(TABLES[DAYS].names).cast(TABLES[DAYS])


def new_name(at_ns: int) -> str:
    """Return a name that nobody else makes, and that sorts by time: 16 digits of the time, 16 by chance, in base 16."""
    return f"{at_ns:016x}{secrets.token_hex(8)}"


def day_of(at_ns: int) -> str:
    """Return the day of a time since 1970 (ns), in UTC.

    >>> day_of(86_400 * 10**9 - 1), day_of(86_400 * 10**9)
    ('1970-01-01', '1970-01-02')
    """
    return datetime.fromtimestamp(at_ns // 10**9, UTC).date().isoformat()


def name_of_probe(url: str) -> str:
    """Return the name by which a store knows a probe: its URL without scheme and options.

    >>> name_of_probe("sim://switch?latency=3us"), name_of_probe("etherbone://10.0.0.50"), name_of_probe("")
    ('switch', '10.0.0.50', 'unknown')
    """
    return url.partition("?")[0].rpartition("://")[2].strip("/")[:NAME_MOST] or "unknown"


# # #


def _opened(place: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a place, and the path there."""
    if "://" not in place:
        return fs.LocalFileSystem(), str(Path(place).absolute())
    is_s3 = place.startswith("s3://")
    with suppress(ValueError):
        if "@" in urlsplit(place).netloc or "secret" in urlsplit(place).query:
            raise UsageError(
                "a key in a URL is seen by others: give it in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and leave it out here"
            )
    whole = "allow_delayed_open=true"  # A PUT a file: of parts a writer that is killed would leave some in the bucket for ever.
    try:
        system, path = fs.FileSystem.from_uri(f"{place}{'&' if '?' in place else '?'}{whole}" if is_s3 else place)
    except (pa.ArrowException, OSError, ValueError) as error:
        said = visible(str(error).splitlines()[0])
        raise UsageError(
            f"'{visible(place)}' can't hold a store ({said}): give a folder, or s3://BUCKET/FOLDER"
        ) from None
    if not path.strip("/"):
        raise UsageError(f"'{visible(place)}' names no bucket: give a folder, or s3://BUCKET/FOLDER")
    return system, path.rstrip("/")


def _octets(table: pa.Table) -> pa.Buffer:
    """Return a table as a Parquet file; each page has a checksum."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue()
