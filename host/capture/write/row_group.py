# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Unified headers as the columns of a row group: their names and types, and how they are taken out of the headers."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import NO_RULE, Layer3, UnifiedFlag
from liteprobe.host import extras
from liteprobe.host.capture.decode import unified
from liteprobe.host.capture.write.columns import TEXT, array, binary

with extras.named():
    import pyarrow as pa

CHUNK = 1 << 12  # Headers at once: half a megabyte.
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
#: Type of each column, in the order of the file.
SCHEMA = pa.schema(
    [
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

Column = tuple[NDArray[Any], NDArray[np.bool_] | None]


class RowGroup:
    """Columns of a row group, filled part by part.

    Attributes
    ----------
    rows : int
        Rows that are in it.
    """

    def __init__(self, size: int) -> None:
        self.rows = 0
        self._size = size
        self._values: dict[str, NDArray[Any]] = {}
        self._masks: dict[str, NDArray[np.bool_]] = {}

    @property
    def is_full(self) -> bool:
        """Whether no more rows go into it."""
        return self.rows == self._size

    def add(self, headers: NDArray[np.void], shift_ns: int) -> int:
        """Take headers, as many as there is room for, and return how many."""
        headers = headers[: self._size - self.rows]
        rows = slice(self.rows, self.rows + len(headers))
        for name, (values, is_there) in _columns(headers, shift_ns).items():
            if name not in self._values:
                self._values[name] = np.empty((self._size, *values.shape[1:]), _storage(name))
                if is_there is not None:
                    self._masks[name] = np.empty(self._size, bool)
            self._values[name][rows] = values
            if is_there is not None:
                np.logical_not(is_there, out=self._masks[name][rows])
        self.rows += len(headers)
        return len(headers)

    def varied(self) -> list[str]:
        """Return the columns of addresses of which most differ, by rows from all over the group."""
        found = []
        for name in ADDRESSES:
            mask = self._masks.get(name)
            rows = np.arange(self.rows) if mask is None else np.flatnonzero(~mask[: self.rows])
            sample = self._values[name][rows[:: -(-len(rows) // SAMPLE) or 1]]
            if 2 * len(binary(sample).unique()) > len(sample):
                found.append(name)
        return found

    def table(self, schema: pa.Schema = SCHEMA) -> pa.Table:
        """Return the rows, of ``schema``, and begin anew."""
        rows = slice(0, self.rows)

        def column(field: pa.Field) -> pa.Array:
            values, mask = self._values[field.name][rows], self._masks.get(field.name)
            mask = None if mask is None or not mask[rows].any() else mask[rows]
            return array(values, mask, field.type)

        with ThreadPoolExecutor(2) as columns:  # Arrow and NumPy let others run meanwhile.
            arrays = list(columns.map(column, schema))
        self.rows = 0
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


def _columns(headers: NDArray[np.void], shift_ns: int) -> dict[str, Column]:
    """Return all columns: values, and where they are there (None: everywhere)."""
    kind = unified.layer3(headers)
    columns = _numbers(headers, shift_ns)
    for name in ("source_mac", "destination_mac"):
        columns[name] = (headers[name], None)
    for name in ("source", "destination"):
        # The kind is a part of the address: 0.0.0.0 is not ::.
        columns[name] = (np.column_stack([kind, headers[name]]), kind != Layer3.NONE)
    tags, labels = headers["tags"]["tci"], headers["labels"].astype(np.uint32) >> 12
    columns["tags"] = (np.column_stack([unified.tag_count(headers), tags]), None)
    columns["labels"] = (np.column_stack([unified.label_count(headers), labels]), None)
    return columns


def _numbers(headers: NDArray[np.void], shift_ns: int) -> dict[str, Column]:
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
