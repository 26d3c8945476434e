# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Configuration sets: what varies from frame to frame, a few octets each, and the stream whose frames a probe makes of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from liteprobe.cores.formats import (
    MAX_LENGTH,
    SET_END,
    SET_FIELD_OCTETS,
    SET_NOTHING,
    SET_PLACES,
    SET_REPEAT,
    SET_RUN,
    SET_TEMPLATE_WORDS,
    STREAM_FIELDS,
    TABLE_ENTRIES,
    SetField,
    packed_words,
)
from liteprobe.host.base.errors import UsageError, nearest
from liteprobe.host.base.units import exact
from liteprobe.host.base.validate import Increment, refuse, validated
from liteprobe.host.traffic.headers import header_words, ip_address
from liteprobe.host.traffic.intervals import NOMINAL, is_back_to_back
from liteprobe.host.traffic.layout import template_values, timing
from liteprobe.host.traffic.lengths import Fixed
from liteprobe.host.traffic.load import check_port
from liteprobe.host.traffic.modifiers import Field, Random, field_of
from liteprobe.host.traffic.stream import Stream

#: What a set may have, by name, in the order of the octets.
FIELDS = ("address", "vlan", "inner_vlan", "length", "index")
REPEATS_MAX = 0xFFFF
CHUNK_SETS = 4096
RUN_LEAST = 3  # A run of so many sets is not shorter than they are.

Value = int | str
Values = Mapping[str, Value]


@validated
@dataclass(frozen=True)
class Repeat:
    """Says among sets how often in a row the last frame may be repeated, from here on, when no set is there in time."""

    count: int  # 0 to 65535.

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
        if not isinstance(values, Mapping):
            raise refuse("set", values, "a mapping of fields to values")
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
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or not least <= number <= most:
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


__all__ = ["ADDRESSES", "FIELDS", "Repeat", "SetEncoder", "SetSettings", "Sets", "Value", "Values", "in_runs", "run_of"]

Patterns = Callable[[], Iterable[Values | Repeat]]

ADDRESSES = ("source", "destination")
TAGS = {"vlan": 14, "inner_vlan": 18}  # Octets before the TCI.
ALL = 0xFFFFFFFF
WORD = 4


@dataclass(frozen=True)
class SetSettings:
    """Settings that a probe needs before the first set, as its registers take it."""

    template: tuple[int, ...]  # The first four words of a stream.
    header: tuple[int, ...]  # Words of the header memory, those of stream 0.
    length: int  # Octets of a frame without FCS where sets have no length.
    fields: SetField  # What sets may have.
    places: int  # Register ``places``: SET_PLACES and SET_SUMMED.
    repeats: int  # Repeats in a row until the stream of sets says another number.
    interval: int  # From start to start, in ticks.
    fraction: int  # And in 2^-32 ticks; both 0: back to back.


@validated
class Sets:
    """Frames that differ in a few fields, as the small sets that a host streams: hardware makes a whole frame of each.

    Parameters
    ----------
    stream : Stream
        What is the same in all frames: headers, fill, probe header, stamp, checksum, interval; and what the first frame has
        where its set says nothing. Without modifiers, start, bursts and random intervals.
    sets : iterable of mapping, or of Repeat, or a callable that returns one
        Of each frame what varies, by the names in ``FIELDS``; a field that a set lacks is as in the set before.
        ``address``: a number or an IP address; ``vlan``, ``inner_vlan``: the 16-bit TCI of the first and second tag (see
        ``vlan_tag``); ``length``: octets without FCS; ``index``: of the table's entry. It may be endless. Another process
        goes through it while the probe sends: a generator can't go there, a function at the top of a module can.
    fields : sequence of str, or None
        Names of what sets may have; None: what the first one has.
    address : str
        ``source`` or ``destination``: which IP address ``address`` is.
    entry : str or int or None
        What an entry of the table is: a field of four octets, like ``ipv4.destination``, or the first of any four, even.
    table : sequence of int or str
        Up to 65,536 entries: numbers of 32 bits, or IPv4 addresses.
    repeats : int
        How often in a row the last frame is repeated when no set is there in time, 0 to 65535.

    Attributes
    ----------
    table : array of uint32, shape (entries,)

    Raises
    ------
    UsageError
        When no probe can send this. What is wrong with a set is raised when it is its turn, with its number.
    """

    def __init__(
        self,
        stream: Stream,
        sets: Iterable[Values | Repeat] | Patterns,
        *,
        fields: Sequence[str] | None = None,
        address: str = "source",
        entry: str | int | None = None,
        table: Sequence[Value] = (),
        repeats: int = 0,
    ) -> None:
        self.stream, self.address, self.entry, self.repeats = stream, address, entry, Repeat(repeats).count
        # Of a generator the first set is taken now, and is put before the others.
        self._source: Iterable[Values | Repeat] | Patterns = sets
        head = list(_up_to_first_set(self._items()))
        if isinstance(sets, Iterator):
            self._source = chain(head, sets)
        self.fields = _names(head) if fields is None else tuple(fields)
        self.table = _entries(table)
        self._columns: dict[str, NDArray[Any]] = {}
        self._check()
        self._encoder = SetEncoder(self.fields, stream.headers.is_ipv6, stream.length_min, len(self.table))
        self._places = self._checked_places()

    @classmethod
    def from_bench(cls, stream: Stream, patterns: Patterns, **settings: Any) -> "Sets":
        """Return the sets that a function yields: the one that drives the simulation of a device, so that both see the same.

        Parameters
        ----------
        stream, settings
            As above.
        patterns : callable
            Yields what varies in each frame, as ``sets`` above; at the top of a module.
        """
        return cls(stream, patterns, **settings)

    @classmethod
    def from_columns(cls, stream: Stream, columns: Mapping[str, ArrayLike], **settings: Any) -> "Sets":
        """Return sets that have all the same fields, each an array of numbers: octets are made many times faster.

        Parameters
        ----------
        stream, settings
            As above; without ``fields``.
        columns : mapping of str to array, shape (sets,)
            By name of the field; an IPv6 address is 16 octets, shape (sets, 16).
        """
        try:
            arrays: dict[str, NDArray[Any]] = {name: np.asarray(column) for name, column in columns.items()}
        except (ValueError, TypeError):
            raise refuse("columns", columns, "an array of whole numbers for each field") from None
        made = cls(stream, [], fields=tuple(arrays), **settings)
        made._encoder.checked(arrays)
        made._columns = arrays
        return made

    def settings(self, increment: Increment = NOMINAL) -> SetSettings:
        """Return what a probe must know; ``increment``: ns a tick of its clock, in 8.40 fixed point."""
        stream = self.stream
        pairs = {place + n for field, place in self._places.items() for n in range(0, SET_FIELD_OCTETS[field][1], 2)}
        values = template_values(stream, pairs, "length" in self.fields)
        summed = min(stream.headers.summed_pairs, default=0) if stream.used_checksum == "complement" else 0
        octets = bytes([*(self._places.get(field, 0) for field in SET_PLACES), summed])
        interval, fraction = 0, 0
        if not is_back_to_back(stream.interval, stream.length):
            times = timing(stream, increment)
            interval, fraction = times.interval, times.fraction
        return SetSettings(
            tuple(packed_words(STREAM_FIELDS, SET_TEMPLATE_WORDS, values)),
            tuple(header_words(stream.template(stream.length.least))),
            stream.length.least,
            self._encoder.mask(self.fields),
            int.from_bytes(octets, "little"),
            self.repeats,
            interval,
            fraction,
        )

    def octets(self) -> Iterator[bytes]:
        """Yield the sets as a probe takes them, in chunks of whole words, with their end.

        Raises
        ------
        UsageError
            With the number of the set, from 0, that no frame can be made of; the sets before it were yielded.
        """
        chunks = self._encoder.columns(self._columns) if self._columns else self._of_items(self._items())
        for chunk in chain(chunks, [bytes([SET_END])]):
            yield chunk + bytes([SET_NOTHING]) * (-len(chunk) % WORD)

    def chunks(self) -> Iterator[NDArray[np.uint32]]:
        """Yield the same as arrays of words, shape (words,)."""
        for chunk in self.octets():
            yield np.frombuffer(chunk, "<u4").astype(np.uint32, copy=False)

    def check(self, values: Values) -> None:
        """Raise UsageError when no frame can be made of a set."""
        self._encoder.one(values)

    @property
    def frames(self) -> int | None:
        """Number of sets; None: not known before they are gone through."""
        if self._columns:
            return len(next(iter(self._columns.values())))
        if not isinstance(self._source, Sequence):
            return None
        return sum(not isinstance(item, Repeat) for item in self._source)

    @property
    def set_octets(self) -> int:
        """Octets of a set that has all fields, its control octet included."""
        return 1 + sum(self._encoder.octets.values())

    def __getstate__(self) -> dict[str, Any]:
        if isinstance(self._source, Iterator):
            raise UsageError(
                "sets of a generator can't go to the process that streams them: give the function that yields them, or a list"
            )
        return vars(self)

    # # #

    def _items(self) -> Iterator[Values | Repeat]:
        source = self._source() if callable(self._source) else self._source
        if not isinstance(source, Iterable):
            raise refuse("what the function of the sets returns", source, "sets, a mapping each")
        return iter(source)

    def _check(self) -> None:
        stream, headers = self.stream, self.stream.headers
        for name in self.fields:
            if name not in FIELDS:
                raise UsageError(f"'{name}' is not a field of a set: {nearest(name, FIELDS)}")
        if self.address not in ADDRESSES:
            raise UsageError(f"address '{self.address}' of sets is unknown: give one of {', '.join(ADDRESSES)}")
        if "address" in self.fields and not headers.has_ip:
            raise UsageError("sets have an address, the headers no IP: give IP headers, or leave it out")
        for least, name in enumerate(TAGS, 1):
            if name in self.fields and len(headers.vlan_tags) < least:
                raise UsageError(
                    f"sets have '{name}', the headers {len(headers.vlan_tags)} VLAN tags: give {least} or more"
                )
        if "index" in self.fields and self.entry is None:
            raise UsageError("sets have an index, its entry no place: give 'entry', what an entry of the table is")
        if "index" in self.fields and not len(self.table):
            raise UsageError("sets have an index, and the table is empty: give 'table'")
        if not isinstance(stream.length, Fixed):
            raise UsageError("the stream of sets has several lengths: give one there, and those of frames in the sets")
        if stream.modifiers:
            raise UsageError("the stream of sets has modifiers: leave them out, sets say what changes")
        if stream.coverage:
            raise UsageError("the stream of sets has a coverage: leave it out, or send it as a stream")
        interval = stream.interval
        if interval.exponential or interval.burst is not None or exact(stream.start_ns):
            raise UsageError("sets are due at a constant interval: leave out bursts, exponential intervals and a start")
        if "length" in self.fields and (interval.rate_bps is not None or interval.share not in (None, 1)):
            raise UsageError("lengths of sets vary, so a rate has no interval: give a time, or packets a second")
        check_port([stream])
        if "length" in self.fields and stream.used_checksum == "host":
            raise UsageError("lengths of sets vary, so the host can't work out the checksum: give complement")

    def _checked_places(self) -> dict[SetField, int]:
        """Return the first octet of each field in the header; what modifiers must not change, sets must not either."""
        headers, of_name = self.stream.headers, self._encoder.fields
        octets = 16 if headers.is_ipv6 else 4
        addresses = headers.network_offset + (8 if headers.is_ipv6 else 12)
        all_places = {**TAGS, "address": addresses + octets * ADDRESSES.index(self.address)}
        changes: list[str | Field] = [f"vlan[{n}].id" for n, name in enumerate(TAGS) if name in self.fields]
        if "address" in self.fields:
            changes.append(Field(all_places["address"] + octets - 4, ALL))
        if "index" in self.fields:
            assert self.entry is not None
            field = Field(self.entry, ALL) if isinstance(self.entry, int) else field_of(self.entry, headers)
            if field.mask != ALL:
                raise UsageError(
                    f"field '{self.entry}' has fewer than the four octets of an entry: give their first octet"
                )
            all_places["index"] = field.offset
            changes.append(field)
            address = all_places["address"]
            if "address" in self.fields and address - 4 < field.offset < address + octets:
                raise UsageError(
                    "an entry of the table and the address are in the same place: give them different ones"
                )
        replace(self.stream, modifiers=tuple(Random(field) for field in changes))
        return {of_name[name]: all_places[name] for name in self.fields if name in all_places}

    def _of_items(self, items: Iterator[Values | Repeat]) -> Iterator[bytes]:
        number = 0
        while some := list(islice(items, CHUNK_SETS)):
            chunk = bytearray()
            sets: list[tuple[int, bytes]] = []
            for item in some:
                if isinstance(item, Repeat):
                    chunk += in_runs(sets) + item.octets()
                    sets = []
                    continue
                try:
                    sets.append(self._encoder.one(item if number else self._completed(item)))
                except UsageError as error:
                    yield bytes(chunk) + in_runs(sets)
                    raise UsageError(f"set {number}: {error}") from None
                number += 1
            yield bytes(chunk) + in_runs(sets)

    def _completed(self, values: Values) -> Values:
        """Return the first set with all fields: those that it lacks are as in the stream."""
        headers = self.stream.headers
        preset: dict[str, Value] = {"length": self.stream.length.least}
        if headers.has_ip:
            preset["address"] = headers.source_ip if self.address == "source" else headers.destination_ip
        preset |= dict(zip(TAGS, headers.vlan_tags, strict=False))
        if "index" in self.fields and "index" not in values:
            raise UsageError("the first set lacks 'index', and the stream says nothing of it: give it")
        return {name: values.get(name, preset.get(name, 0)) for name in self.fields} | dict(values)


def _up_to_first_set(items: Iterator[Values | Repeat]) -> Iterator[Values | Repeat]:
    for item in items:
        yield item
        if not isinstance(item, Repeat):
            return


def _names(head: Sequence[Values | Repeat]) -> tuple[str, ...]:
    """Return the fields of the first set, if there is one."""
    first = head[-1] if head else {}
    return () if isinstance(first, Repeat) else tuple(first)


def _entries(table: Sequence[Value]) -> NDArray[np.uint32]:
    if len(table) > TABLE_ENTRIES:
        raise UsageError(f"a table of {len(table)} entries is too long: give {TABLE_ENTRIES} at most")
    entries = np.zeros(len(table), np.uint32)
    for number, value in enumerate(table):
        entry = int(ip_address(value)) if isinstance(value, str) else int(value)
        if not 0 <= entry <= ALL:
            raise UsageError(f"entry {number} of the table, {value}, is out of range: give numbers of 32 bits")
        entries[number] = entry
    return entries
