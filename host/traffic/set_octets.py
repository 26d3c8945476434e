# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Configuration sets as octets: a control octet, then what it names, most significant octet first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import MAX_LENGTH, SET_FIELD_OCTETS, SET_REPEAT, SET_RUN, SetField
from liteprobe.host.errors import UsageError
from liteprobe.host.traffic.headers import ip_address
from liteprobe.host.traffic.nearest import nearest

#: What a set may have, by name, in the order of the octets.
FIELDS = ("address", "vlan", "inner_vlan", "length", "index")
REPEATS_MAX = 0xFFFF
CHUNK_SETS = 4096
RUN_LEAST = 3  # A run of so many sets is not shorter than they are.

Value = int | str
Values = Mapping[str, Value]


@dataclass(frozen=True)
class Repeat:
    """Says among sets how often in a row the last frame may be repeated, from here on, when no set is there in time.

    Parameters
    ----------
    count : int
        0 to 65535.
    """

    count: int

    def __post_init__(self) -> None:
        if not 0 <= self.count <= REPEATS_MAX:
            raise UsageError(f"{self.count} repeats are out of range: give 0 to {REPEATS_MAX}")

    def octets(self) -> bytes:
        """Return it as octets of the stream."""
        return bytes([SET_REPEAT]) + self.count.to_bytes(2)


class SetEncoder:
    """Makes octets of sets.

    Parameters
    ----------
    names : iterable of str
        Of ``FIELDS``: what sets may have.
    is_ipv6 : bool
        Addresses are of IPv6.
    length_min : int
        Of a frame (octets without FCS).
    entries : int
        Of the table.
    """

    def __init__(self, names: Iterable[str], is_ipv6: bool, length_min: int, entries: int) -> None:
        self.fields: dict[str, SetField] = {
            "address": SetField.ADDRESS6 if is_ipv6 else SetField.ADDRESS4,
            "vlan": SetField.TAG,
            "inner_vlan": SetField.INNER_TAG,
            "length": SetField.LENGTH,
            "index": SetField.INDEX,
        }
        limits = {"length": (length_min, MAX_LENGTH), "index": (0, entries - 1)}
        self.names = tuple(name for name in FIELDS if name in set(names))
        self.octets = {name: SET_FIELD_OCTETS[self.fields[name]][0] for name in self.names}
        self.ranges = {name: limits.get(name, (0, (1 << 8 * self.octets[name]) - 1)) for name in self.names}
        self._order = [(name, self.fields[name].value) for name in self.names]

    def mask(self, names: Iterable[str]) -> SetField:
        """Return the control octet of a set with these fields."""
        mask = SetField.NONE
        for name in names:
            mask |= self.fields[name]
        return mask

    def one(self, values: Values) -> tuple[int, bytes]:
        """Return control octet and fields of a set; UsageError where sets have no such field, or a value is out of range."""
        control, octets = 0, b""
        for name, bit in self._order:
            if name in values:
                control |= bit
                octets += self._value(name, values[name])
        if control.bit_count() != len(values):
            name = next(name for name in values if name not in self.names)
            advice = nearest(name, self.names) if self.names else "these sets have none"
            raise UsageError(f"'{name}' is not a field of these sets: {advice}")
        return control, octets

    def checked(self, columns: Mapping[str, NDArray[np.generic]]) -> None:
        """Raise UsageError where columns don't fit together, or the field that they are of."""
        counts = {name: len(column) for name, column in columns.items()}
        if len(set(counts.values())) != 1 or 0 in counts.values():
            raise UsageError(f"columns have {counts} entries: give each as many, and at least one")
        for name, column in columns.items():
            shape = (len(column), 16) if self.octets[name] == 16 else (len(column),)
            if column.shape != shape or column.dtype.kind not in "iu":
                raise UsageError(f"column '{name}' is not an array of whole numbers of shape {shape}: make it one")
            least, most = (0, 0xFF) if self.octets[name] == 16 else self.ranges[name]
            whole = column.astype(np.int64).reshape(len(column), -1)
            bad = np.flatnonzero(((whole < least) | (whole > most)).any(axis=1))
            if len(bad):
                raise UsageError(f"set {bad[0]}: {name} {column[bad[0]]} is out of range: give {least} to {most}")

    def columns(self, columns: Mapping[str, NDArray[np.generic]]) -> Iterator[bytes]:
        """Yield the octets of sets that have all the same fields, up to 4096 sets each."""
        control = self.mask(columns)
        count = len(next(iter(columns.values())))
        for start in range(0, count, CHUNK_SETS):
            parts: list[NDArray[np.uint8]] = []
            for name in self.names:
                octets, some = self.octets[name], columns[name][start : start + CHUNK_SETS]
                kind = np.uint8 if octets == 16 else np.dtype(f">u{octets}")
                parts.append(np.ascontiguousarray(some.astype(kind)).view(np.uint8).reshape(-1, octets))
            rows = np.hstack(parts)
            yield run_of(
                control, [row.tobytes() for row in rows] if len(rows) <= RUN_LEAST else [rows.tobytes()], len(rows)
            )

    def _value(self, name: str, value: Value) -> bytes:
        """Return the octets of a value."""
        (least, most), octets = self.ranges[name], self.octets[name]
        number = value
        if isinstance(value, str):
            if name != "address":
                raise UsageError(f"{name} '{value}' is not a number: give {least} to {most}")
            address, version = ip_address(value), 6 if octets == 16 else 4
            if address.version != version:
                raise UsageError(f"{value} is not an IPv{version} address, which the headers have: give one")
            number = int(address)
        if not isinstance(number, int | np.integer) or not least <= number <= most:
            raise UsageError(f"{name} {value} is out of range: give {least} to {most}")
        return int(number).to_bytes(octets)


def run_of(control: int, fields: Sequence[bytes], count: int) -> bytes:
    """Return sets of one control octet, which they say once where that is shorter; ``fields``: what is in them."""
    if count > RUN_LEAST and control:
        return bytes([SET_RUN]) + (count - 1).to_bytes(2) + bytes([control]) + b"".join(fields)
    return b"".join(bytes([control]) + one for one in fields)


def in_runs(sets: Iterable[tuple[int, bytes]]) -> bytes:
    """Return sets one after the other; ``sets``: control octet and fields of each, up to 65,536."""
    octets = bytearray()
    for control, some in groupby(sets, lambda one: one[0]):
        fields = [one for _, one in some]
        octets += run_of(control, fields, len(fields))
    return bytes(octets)
