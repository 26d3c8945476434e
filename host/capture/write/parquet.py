# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Unified headers to Parquet: a row a frame, columns by name, as pandas, Polars and DuckDB expect them.

Addresses are text (``10.0.0.1``, ``2001:db8::1``, ``02:4c:50:00:00:01``), because that is what people compare, join
and print, and what DuckDB's ``INET`` is cast from; each distinct one is stored once a row group, unless most differ in the
first group, as in a scan or a flood: then the column is plain. What a frame doesn't have is null. The stamp is a timestamp
in nanoseconds.
"""

import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from liteprobe.cores.formats import UNIFIED_DTYPE
from liteprobe.host import extras
from liteprobe.host.capture.decode.batch import Batch
from liteprobe.host.capture.write.output import FULL
from liteprobe.host.capture.write.row_group import CHUNK, REPEATED, SCHEMA, RowGroup
from liteprobe.host.errors import ProbeError
from liteprobe.host.packets.frames import take

with extras.named():
    import pyarrow as pa
    import pyarrow.parquet as pq

ROW_GROUP = 1 << 19  # Rows: some tens of megabytes, and what a reader takes at once.
ROOM, ROOM_ROWS = 1 << 20, 256  # Octets of the disk that the file's end and a row may take.
GROUPS = 1 << 12  # Row groups of a file: what is known of each (37 KB) stays in memory until the file ends.


class HeaderWriter:
    """Writes the unified headers of records into a Parquet file, a row group at a time.

    A file ends after GROUPS row groups (2^31 rows, 24 minutes at line rate), so that memory is bounded, and the next one
    begins: ``office.parquet``, ``office-2.parquet``.

    Parameters
    ----------
    path : Path
        Of the first file.
    metadata : dict or None
        What the file says of the capture, by name.
    shift_ns : int
        Added to every stamp: less 37 s, TAI becomes UTC.
    row_group : int
        Rows of a group.

    Attributes
    ----------
    path : Path
        Of the file that is being written.
    paths : list of Path
        All files.
    written : int
        Rows in all of them.
    """

    def __init__(
        self, path: Path, metadata: dict[str, str] | None = None, shift_ns: int = 0, row_group: int = ROW_GROUP
    ) -> None:
        self.paths: list[Path] = []
        self.written = 0
        self._shift_ns = shift_ns
        # One group is written while the next one fills: writing needs no Python.
        self._group, self._other = RowGroup(row_group), RowGroup(row_group)
        self._writing = ThreadPoolExecutor(1)
        self._job: Future[int] | None = None
        self._metadata = metadata or {}
        self._is_closed = False
        if not self._begin(path):
            raise ProbeError(f"the disk is full: {path} was not written; make room, or name a file elsewhere")

    def write(self, batch: Batch) -> None:
        """Take the headers of the records that have one."""
        at = batch.at[batch.has_header]
        for first in range(0, len(at), CHUNK):
            # A part that stays in the cache while its columns are taken out.
            headers = take(batch.words, at[first : first + CHUNK], UNIFIED_DTYPE)
            while len(headers):
                taken = self._group.add(headers, self._shift_ns)
                headers = headers[taken:]
                if self._group.is_full:
                    self._write_group()

    def close(self) -> None:
        """Write what waits, and the end of the file, without which nobody can read it; closing twice is harmless."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            try:
                if self._group.rows:
                    self._write_group()
                self._finish_group()
            finally:
                self._writing.shutdown()
                self._end()
        except OSError as error:
            raise self._failed(error) from None

    def _begin(self, path: Path) -> bool:
        """Begin a file; return whether the disk has room for it."""
        self.path = path
        self._file = pa.OSFile(str(path), "wb")
        self._groups, self._schema = 0, SCHEMA
        self._writer: pq.ParquetWriter | None = None
        if not self._has_room_for(0):
            self._file.close()
            path.unlink()
            return False
        self.paths.append(path)
        return True

    def _next(self) -> None:
        """End the file, and begin the next one."""
        try:
            self._end()
            first = self.paths[0]
            is_there = self._begin(first.with_stem(f"{first.stem}-{len(self.paths) + 1}"))
        except OSError as error:
            raise self._failed(error) from None
        if not is_there:
            self._is_closed = True
            self._writing.shutdown()
            raise self._full(self._group.rows)

    def _end(self) -> None:
        """Write the end of the file, without which nobody can read it."""
        (self._writer or self._opened([])).close()
        size = self._file.tell()
        self._file.close()
        if self.path.is_file():
            os.truncate(self.path, size)  # Room that was taken, and isn't needed.

    def _write_group(self) -> None:
        """Have the group written, once the one before is."""
        self._finish_group()
        if self._groups >= GROUPS and self.path.is_file():
            self._next()
        self._groups += 1
        rows = kept = self._group.rows
        while kept and not self._has_room_for(kept):
            kept //= 2
        self._job = self._writing.submit(self._write_table, self._group, kept)
        if kept < rows:
            self._finish_group()
            self._group.rows = 0
            raise self._full(rows - kept)
        self._group, self._other = self._other, self._group

    def _has_room_for(self, rows: int) -> bool:
        """Take room on the disk for these rows and for the file's end, if there is.

        Parquet has its list of groups at the end, without which nobody can read it: so the room is taken before a group is
        begun, and what others write meanwhile does no harm.
        """
        try:
            # By its name: before pyarrow 25 an OSFile does not tell its descriptor.
            taken = os.open(self.path, os.O_WRONLY)
            try:
                os.posix_fallocate(taken, self._file.tell(), ROOM_ROWS * rows + ROOM)
            finally:
                os.close(taken)
        except OSError as error:
            return error.errno not in FULL  # A device, or a file system that takes no room in advance.
        return True

    def _write_table(self, group: "RowGroup", rows: int) -> int:
        if not self._writer:
            self._writer = self._opened(group.varied())
        if rows:
            self._writer.write_table(group.table(self._schema)[:rows], row_group_size=rows)
        return rows

    def _opened(self, plain: list[str]) -> pq.ParquetWriter:
        """Return what writes the file, with no dictionary for the columns ``plain``."""
        for name in plain:
            self._schema = self._schema.set(self._schema.get_field_index(name), pa.field(name, pa.string()))
        # Types are those of Parquet itself: the schema of Arrow beside it would make text categories in pandas.
        writer = pq.ParquetWriter(
            self._file,
            self._schema,
            use_dictionary=[name for name in REPEATED if name not in plain],
            compression="zstd",
            compression_level=1,
            write_statistics=["stamp"],
            store_schema=False,
        )
        writer.add_key_value_metadata(self._metadata)
        return writer

    def _finish_group(self) -> None:
        """Wait for the group that is being written."""
        job, self._job = self._job, None
        try:
            self.written += job.result() if job else 0
        except OSError as error:
            raise self._failed(error) from None

    def _full(self, lost: int) -> ProbeError:
        names = ", ".join(map(str, self.paths))
        return ProbeError(
            f"the disk is full: {names} holds {self.written} headers, whole and readable, and {lost} more are lost; make "
            "room, or keep less (--filter, --sample)"
        )

    def _failed(self, error: OSError) -> ProbeError:
        return ProbeError(
            f"{self.path} can't be written ({error.strerror or error}), nor read any more: make room on the disk, or keep less "
            "(--filter, --sample)"
        )
