# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes unified headers to Parquet: a row a frame, columns by name, as pandas, Polars and DuckDB expect them.

Addresses are text (``10.0.0.1``, ``2001:db8::1``, ``02:4c:50:00:00:01``), because that is what people compare, join
and print, and what DuckDB's ``INET`` is cast from; each distinct one is stored once a row group, unless most differ in the
first group, as in a scan or a flood: then the column is plain. What a frame doesn't have is null. The stamp is a timestamp
in nanoseconds.
"""

import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import NO_RULE, UNIFIED_DTYPE, Layer3, UnifiedFlag
from liteprobe.host.base import extras
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.base.output import FULL
from liteprobe.host.capture.write.columns import TEXT, array, binary
from liteprobe.host.packets import unified
from liteprobe.host.packets.batch import Batch
from liteprobe.host.packets.frames import take

with extras.named():
    import pyarrow as pa
    import pyarrow.parquet as pq

with extras.named():
    import pyarrow as pa

CHUNK = 1 << 14  # Headers at once: 2 MB.
SAMPLE = 1 << 15  # Rows of the first group that say whether addresses repeat.

#: Columns that stand for a bit of ``flags``.
FLAG_COLUMNS = {
    "fcs_error": UnifiedFlag.FCS_ERROR,
    "length_error": UnifiedFlag.LENGTH_ERROR,
    "runt": UnifiedFlag.RUNT,
    "giant": UnifiedFlag.GIANT,
    "symbol_error": UnifiedFlag.SYMBOL_ERROR,
    "truncated": UnifiedFlag.TRUNCATED,
    "unparsed": UnifiedFlag.UNPARSED,
    "fragment": UnifiedFlag.FRAGMENT,
    "probe": UnifiedFlag.PROBE,
}
#: Columns that every frame has.
THERE = (
    "stamp",
    "length",
    "port",
    "channel",
    "source_mac",
    "destination_mac",
    "tags",
    "labels",
    "ethertype",
    *FLAG_COLUMNS,
)
#: Type of each column, in the order of the file.
SCHEMA = pa.schema(
    pa.field(name, kind, nullable=name not in THERE)
    for name, kind in [
        ("stamp", pa.timestamp("ns")),
        ("length", pa.uint16()),
        ("port", pa.uint8()),
        ("channel", pa.uint8()),
        ("rule", pa.uint8()),
        ("source_mac", TEXT),
        ("destination_mac", TEXT),
        ("vlan", pa.uint16()),
        ("tags", pa.list_(pa.uint16())),
        ("labels", pa.list_(pa.uint32())),
        ("ethertype", pa.uint16()),
        ("source", TEXT),
        ("destination", TEXT),
        ("protocol", pa.uint8()),
        ("source_port", pa.uint16()),
        ("destination_port", pa.uint16()),
        ("icmp_type", pa.uint8()),
        ("icmp_code", pa.uint8()),
        ("dscp", pa.uint8()),
        ("ecn", pa.uint8()),
        ("ttl", pa.uint8()),
        ("ip_length", pa.uint32()),
        ("ip_id", pa.uint16()),
        ("flow_label", pa.uint32()),
        ("fragment_offset", pa.uint16()),
        ("more_fragments", pa.bool_()),
        ("dont_fragment", pa.bool_()),
        ("arp_operation", pa.uint16()),
        ("tcp_flags", pa.uint16()),
        ("tcp_window", pa.uint16()),
        ("tcp_sequence", pa.uint32()),
        ("stream_id", pa.uint16()),
        ("sequence", pa.uint32()),
        ("hash", pa.uint32()),
        *((name, pa.bool_()) for name in FLAG_COLUMNS),
    ]
)
#: Columns whose values repeat: what a dictionary is tried for.
REPEATED = [name for name in SCHEMA.names if name not in ("stamp", "ip_id", "tcp_sequence", "sequence", "hash")]

#: Columns of addresses: a dictionary of them pays only where they repeat.
ADDRESSES = [name for name in SCHEMA.names if SCHEMA.field(name).type == TEXT]

#: Columns that have no dictionary where most of their values differ in the first group.
VARIED = [*ADDRESSES, "source_port", "destination_port"]

_COLUMNS = ThreadPoolExecutor(2)  # Make columns: Arrow and NumPy let others run meanwhile.
_NONE = np.zeros(1, bool)  # No row is null.

Column = tuple[NDArray[Any], NDArray[np.bool_] | None]


class _Lane:
    """Holds values of a row group; while all rows share one, that alone."""

    def __init__(self, size: int, kind: np.dtype[Any]) -> None:
        self._size, self._kind = size, kind
        self._rows: NDArray[Any] | None = None  # Used again by the next group.
        self._shared: NDArray[Any] | None = None
        self._octets = b""  # Of what is shared, as it came.

    def put(self, first: int, count: int, values: NDArray[Any]) -> None:
        """Take ``count`` rows from row ``first`` on; ``values`` has one where they share it."""
        if first == 0:
            self._shared = values.astype(self._kind) if len(values) == 1 else None
            self._octets = values[:1].tobytes()
        elif self._shared is not None and not (len(values) == 1 and values.tobytes() == self._octets):
            self._made(values)[:first] = self._shared
            self._shared = None
        if self._shared is None:
            self._made(values)[first : first + count] = values

    def get(self, count: int) -> NDArray[Any]:
        """Return the first ``count`` rows; one, where all share it."""
        if self._shared is not None:
            return self._shared
        assert self._rows is not None
        return self._rows[:count]

    def _made(self, values: NDArray[Any]) -> NDArray[Any]:
        if self._rows is None:
            self._rows = np.empty((self._size, *values.shape[1:]), self._kind)
        return self._rows


class RowGroup:
    """Collects the columns of a row group, part by part."""

    def __init__(self, size: int) -> None:
        self.rows = 0  # Rows that are in it.
        self._size = size
        self._values: dict[str, _Lane] = {}
        self._masks: dict[str, _Lane] = {}

    @property
    def is_full(self) -> bool:
        """Whether no more rows go into it."""
        return self.rows == self._size

    def add(self, headers: NDArray[np.void], shift_ns: int) -> int:
        """Take headers, as many as fit, and return how many."""
        headers = headers[: self._size - self.rows]
        for name, (values, is_there) in _columns(unified.shared(headers), shift_ns).items():
            if name not in self._values:
                self._values[name] = _Lane(self._size, _storage(name))
                self._masks[name] = _Lane(self._size, np.dtype(bool))
            self._values[name].put(self.rows, len(headers), values)
            self._masks[name].put(self.rows, len(headers), _NONE if is_there is None else ~is_there)
        self.rows += len(headers)
        return len(headers)

    def varied(self) -> list[str]:
        """Return the columns of which most values differ, by rows from all over the group."""
        found = []
        for name in VARIED:
            values, mask = (lanes[name].get(self.rows) for lanes in (self._values, self._masks))
            if len(values) == 1:
                continue
            rows = np.flatnonzero(~np.broadcast_to(mask, self.rows))
            sample = values[rows[:: -(-len(rows) // SAMPLE) or 1]]
            distinct = len(binary(sample).unique()) if sample.ndim > 1 else len(pa.array(sample).unique())
            if 2 * distinct > len(sample):
                found.append(name)
        return found

    def table(self, schema: pa.Schema = SCHEMA) -> pa.Table:
        """Return the rows, of ``schema``; they stay until ``rows`` is 0 again."""
        count = self.rows

        def column(field: pa.Field) -> pa.Array | pa.ChunkedArray:
            values, mask = self._values[field.name].get(count), self._masks[field.name].get(count)
            if len(mask) == 1 and mask[0]:
                return pa.nulls(count, field.type)
            is_there = not mask.any()
            if len(values) == 1 and field.type == TEXT and is_there:
                return pa.repeat(array(values, None, TEXT)[0], count)
            values = values if len(values) == count else np.repeat(values, count, axis=0)
            return array(values, None if is_there else mask, field.type)

        arrays = list(_COLUMNS.map(column, schema))
        return pa.Table.from_arrays(arrays, schema=schema)


def table(headers: NDArray[np.void], shift_ns: int = 0) -> pa.Table:
    """Return unified headers as a table of `SCHEMA`."""
    group = RowGroup(len(headers))
    for first in range(0, len(headers), CHUNK):
        group.add(headers[first : first + CHUNK], shift_ns)
    return group.table() if len(headers) else SCHEMA.empty_table()


def _storage(name: str) -> np.dtype[Any]:
    """Return how a column is held until it is written."""
    kind = SCHEMA.field(name).type
    if kind == TEXT:
        return np.dtype(np.uint8)
    if pa.types.is_list(kind):
        kind = kind.value_type
    return np.dtype("int64" if pa.types.is_timestamp(kind) else str(kind))  # Both call their numbers alike.


def _columns(headers: unified.Fields, shift_ns: int) -> dict[str, Column]:
    """Return all columns: values, and where they are there (None: everywhere); of one row where all rows share it."""
    kind = unified.layer3(headers)
    columns = _numbers(headers, shift_ns)
    for name in ("source_mac", "destination_mac"):
        columns[name] = (headers[name], None)
    for name in ("source", "destination"):
        # The kind is a part of the address: 0.0.0.0 is not ::.
        columns[name] = (_beside(kind, headers[name]), kind != Layer3.NONE)
    tags, labels = headers["tags"]["tci"], headers["labels"].astype(np.uint32) >> 12
    columns["tags"] = (_beside(unified.tag_count(headers), tags), None)
    columns["labels"] = (_beside(unified.label_count(headers), labels), None)
    return columns


def _beside(first: NDArray[Any], rest: NDArray[Any]) -> NDArray[Any]:
    """Return rows of one value and of those that come after it."""
    made = np.empty((max(len(first), len(rest)), 1 + rest.shape[1]), rest.dtype.type)
    made[:, 0], made[:, 1:] = first, rest
    return made


def _numbers(headers: unified.Fields, shift_ns: int) -> dict[str, Column]:
    """Return the columns of numbers: values, and where they are there (None: everywhere)."""
    kind = unified.layer3(headers)
    is_ipv4, is_ip, is_arp = kind == Layer3.IPV4, kind >= Layer3.IPV4, kind == Layer3.ARP
    is_tcp, is_probe = unified.has(headers, UnifiedFlag.TCP), unified.has(headers, UnifiedFlag.PROBE)
    protocol = headers["protocol"]
    is_icmp = unified.has(headers, UnifiedFlag.TRANSPORT) & ((protocol == 1) | (protocol == 58))
    has_ports = unified.has(headers, UnifiedFlag.TRANSPORT) & ~is_icmp
    of_ip = unified.ip_fields(headers)
    first = headers["source_port"].astype(np.uint16)
    detail = headers["detail"].astype(np.uint16)
    sequence = headers["sequence"].astype(np.uint32)
    rule = headers["rule"]
    columns: dict[str, Column] = {
        "stamp": (headers["stamp"].astype(np.int64) + shift_ns, None),
        "length": (headers["length"], None),
        "port": (headers["way"] >> 4, None),
        "channel": (headers["way"] & 0xF, None),
        "rule": (rule, rule != NO_RULE),
        "vlan": (headers["tags"]["tci"][:, 0] & 0xFFF, unified.tag_count(headers) > 0),
        "ethertype": (headers["ethertype"], None),
        "protocol": (protocol, is_ip),
        "source_port": (first, has_ports),
        "destination_port": (headers["destination_port"], has_ports),
        "icmp_type": (first >> 8, is_icmp),
        "icmp_code": (first & 0xFF, is_icmp),
        "arp_operation": (of_ip["arp_operation"], is_arp),
        "tcp_flags": (detail[:, 0] & 0xFFF, is_tcp),
        "tcp_window": (detail[:, 1], is_tcp),
        "tcp_sequence": (sequence, is_tcp),
        "stream_id": (detail[:, 1], is_probe),
        "sequence": (sequence, is_probe),
        "hash": (headers["hash"], headers["hash"] != 0),
    }
    for name in ("dscp", "ecn", "ttl", "ip_length", "fragment_offset", "more_fragments"):
        columns[name] = (of_ip[name], is_ip)
    for name in ("ip_id", "dont_fragment"):
        columns[name] = (of_ip[name], is_ipv4)
    columns["flow_label"] = (of_ip["flow_label"], kind == Layer3.IPV6)
    flags = np.ascontiguousarray(headers["flags"])
    for name, flag in FLAG_COLUMNS.items():
        columns[name] = (flags & int(flag) != 0, None)
    return columns


ROW_GROUP = 1 << 19  # Rows: some tens of megabytes, and what a reader takes at once.
ROOM_ROWS = 256  # Octets of the disk that a row may take.
END, END_GROUP = 1 << 14, 1 << 13  # That the file's end may, and what it has of each group.
SAMPLED, STEP = 1 << 12, 1 << 9  # Rows that say what a row takes; that room is taken for ahead of those that wait.
FIT_PARTS = 64  # Of a group that doesn't fit, one of so many may be left out that would.
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
    """

    def __init__(
        self, path: Path, metadata: dict[str, str] | None = None, shift_ns: int = 0, row_group: int = ROW_GROUP
    ) -> None:
        self.paths: list[Path] = []  # All files.
        self.written = 0  # Rows in all of them.
        self._shift_ns = shift_ns
        # One group is written while the next one fills and is made a table: both need little of Python.
        self._group, self._other = RowGroup(row_group), RowGroup(row_group)
        self._writing = ThreadPoolExecutor(2)
        self._job: Future[int] | None = None
        self._metadata = metadata or {}
        self._is_closed = False
        self._sampled, self._row_octets = 0, 0.0  # Rows that were looked at; octets that one takes, and half as much.
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
                elif self._group.rows > self._roomy:
                    self._take_room()

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
        self._start = self._under_way = 0  # Octets before the group that is being written, and that it may take.
        self._roomy = 0  # Rows of the group that fills for which there is room on the disk.
        if not self._reserve(0):
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
        (self._writer or self._opened(self._file, SCHEMA)).close()
        size = self._file.tell()
        self._file.close()
        if self.path.is_file():
            os.truncate(self.path, size)  # Room that was taken, and isn't needed.

    def _take_room(self) -> None:
        """Take room on the disk for the rows that wait and some more, before others take it; where there is none, end the file."""
        rows = self._group.rows
        if not self._row_octets or rows >= SAMPLED > self._sampled:
            self._finish_group()
            self._sampled = min(rows, SAMPLED)
            self._row_octets = 1.5 * self._octets(self._waiting(), self._sampled) / self._sampled
        ahead = max(STEP, rows // 8)
        if self._reserve(round(self._row_octets * (rows + ahead))):
            self._roomy = rows + ahead
        elif self._reserve(self._octets(self._waiting(), rows)):
            self._roomy = rows + ahead // 8  # It is nearly full.
        else:
            self._write_group(is_last=True)

    def _waiting(self) -> pa.Table:
        return self._group.table(self._schema_of(self._group))

    def _write_group(self, is_last: bool = False) -> None:
        """Have the group written, once the one before is; ``is_last``: the disk is full."""
        if self._groups >= GROUPS and self.path.is_file():
            self._finish_group()
            self._next()
        group, rows = self._group, self._group.rows
        self._open_for(group)
        table = self._writing.submit(group.table, self._schema)  # Made while the group before is written.
        self._finish_group()
        count, self._under_way = (rows, ROOM_ROWS * rows) if self._reserve(ROOM_ROWS * rows) else self._fitting(rows)
        self._groups += 1
        self._job = self._writing.submit(self._write_table, table, count)
        if count < rows or is_last:
            self._finish_group()
            group.rows = 0
            raise self._full(rows - count)
        self._group, self._other = self._other, group
        self._group.rows = 0
        self._roomy = 0

    def _fitting(self, rows: int) -> tuple[int, int]:
        """Return how many rows of the group there is room for, and what they take, and take that room: the disk is nearly full."""
        table = self._waiting()
        sizes = {0: 0}

        def fits(count: int) -> bool:
            sizes[count] = self._octets(table, count)
            return self._reserve(sizes[count])

        if fits(rows):
            return rows, sizes[rows]
        least, most = 0, rows
        while most - least > max(rows // FIT_PARTS, 1):
            middle = (least + most) // 2
            least, most = (middle, most) if fits(middle) else (least, middle)
        return least, sizes[least]

    def _octets(self, table: pa.Table, rows: int) -> int:
        """Return the octets that the first rows of a table take in a file of their own."""
        octets = pa.BufferOutputStream()
        with self._opened(octets, table.schema) as writer:
            writer.write_table(table[:rows], row_group_size=rows)
        return int(octets.tell())

    def _reserve(self, octets: int) -> bool:
        """Take room on the disk for octets behind the group that is being written, and for the file's end, if there is.

        Parquet has its list of groups at the end, without which nobody can read it: so the room is taken before a group is
        begun, and what others write meanwhile does no harm.
        """
        try:
            # By its name: before pyarrow 25 an OSFile does not tell its descriptor.
            taken = os.open(self.path, os.O_WRONLY)
            try:
                end = END + END_GROUP * (self._groups + 1)
                os.posix_fallocate(taken, self._start, self._under_way + octets + end)
            finally:
                os.close(taken)
        except OSError as error:
            return error.errno not in FULL  # A device, or a file system that takes no room in advance.
        return True

    def _write_table(self, table: "Future[pa.Table]", rows: int) -> int:
        assert self._writer
        if rows:
            self._writer.write_table(table.result()[:rows], row_group_size=rows)
        return rows

    def _open_for(self, group: "RowGroup") -> None:
        """Open what writes the file, whose first group this is."""
        if not self._writer:
            self._schema = self._schema_of(group)
            try:
                self._writer = self._opened(self._file, self._schema)
            except OSError as error:
                raise self._failed(error) from None

    def _schema_of(self, group: "RowGroup") -> pa.Schema:
        """Return the schema of the file; of one that ``group`` begins, columns of which most values differ are marked as plain."""
        if self._writer:
            return self._schema
        schema = SCHEMA
        for name in group.varied():
            kind = pa.string() if name in ADDRESSES else schema.field(name).type
            field = schema.field(name).with_type(kind).with_metadata({"plain": "yes"})
            schema = schema.set(schema.get_field_index(name), field)
        return schema

    def _opened(self, file: pa.NativeFile, schema: pa.Schema) -> pq.ParquetWriter:
        """Return what writes a file."""
        plain = [field for field in schema if field.metadata or field.name == "stamp"]
        # Types are those of Parquet itself: the schema of Arrow beside it would make text categories in pandas.
        writer = pq.ParquetWriter(
            file,
            schema,
            use_dictionary=[name for name in REPEATED if not schema.field(name).metadata],
            column_encoding={
                field.name: "DELTA_LENGTH_BYTE_ARRAY" if field.type == pa.string() else "DELTA_BINARY_PACKED"
                for field in plain
            },
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
            if job:
                self.written += job.result()
                self._start, self._under_way = self._file.tell(), 0
        except OSError as error:
            raise self._failed(error) from None

    def _full(self, lost: int) -> ProbeError:
        names, more = ", ".join(map(str, self.paths)), f", and {lost} more are lost" if lost else ""
        return ProbeError(
            f"the disk is full: {names} holds {self.written} headers, whole and readable{more}; make room, or keep less "
            "(--filter, --sample)"
        )

    def _failed(self, error: OSError) -> ProbeError:
        return ProbeError(
            f"{self.path} can't be written ({error.strerror or error}), nor read any more: make room on the disk, or keep less "
            "(--filter, --sample)"
        )
