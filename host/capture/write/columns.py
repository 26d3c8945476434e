# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Makes Arrow's arrays of columns: numbers, lists, and addresses as `socket.inet_ntop` writes them, a column at once."""

import socket
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import Layer3
from liteprobe.host.base import extras

with extras.named():
    import pyarrow as pa

PART = 1 << 14  # Addresses at once: a megabyte, which stays in the cache.
IPV4_OCTETS, GROUPS, CELL = 4, 8, 8


def macs(octets: NDArray[np.uint8]) -> pa.StringArray:
    """Return MAC addresses as text; ``octets``: shape (addresses, 6)."""
    cells = np.full((len(octets), 6, 3), ord(":"), np.uint8)
    cells[:, :, :2] = _HEX[octets]
    cells[:, 5, 2] = 0
    return _joined(cells.reshape(-1, 18))


def ips(octets: NDArray[np.uint8]) -> pa.StringArray:
    """Return IP addresses as text; ``octets``: shape (addresses, 17), the `Layer3` of each and its address."""
    parts = [_ips(octets[first : first + PART]) for first in range(0, len(octets), PART)]
    return pa.concat_arrays(parts) if parts else pa.array([], pa.string())


# # #


def _table(texts: list[str], size: int) -> NDArray[np.uint8]:
    """Return texts as rows of ``size`` octets, filled with 0."""
    return np.array(texts, f"S{size}").view(np.uint8).reshape(-1, size)


_HEX = _table([f"{value:02x}" for value in range(256)], 2)
_DECIMAL = _table([f"{value}." for value in range(256)], 4).view(np.uint32)[:, 0]
_GROUP = _table([f"{value:x}:" for value in range(1 << 16)], CELL).view(np.uint64)[:, 0]
_LAST_GROUP = _table([f"{value:x}" for value in range(1 << 16)], CELL).view(np.uint64)[:, 0]


def _runs() -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return, by the set of groups that are 0 (bit k: group k), which are left out, and where they begin (8: none are)."""
    is_out, begins = np.zeros((256, GROUPS), bool), np.full(256, GROUPS)
    for zeros in range(256):
        lengths = [next(k for k in range(GROUPS - at + 1) if not zeros >> at + k & 1) for at in range(GROUPS)]
        longest = max(lengths)
        if longest > 1:  # The first of the longest ones; one group alone is written.
            begins[zeros] = lengths.index(longest)
            is_out[zeros, begins[zeros] : begins[zeros] + longest] = True
    return is_out, begins


_IS_OUT, _BEGINS = _runs()


def _joined(cells: NDArray[np.uint8]) -> pa.StringArray:
    """Return the octets of each row that are not 0, as text."""
    is_there = cells != 0
    offsets = np.zeros(len(cells) + 1, np.int32)
    np.cumsum(_counts(is_there), out=offsets[1:])
    chosen = np.compress(is_there.reshape(-1), cells.reshape(-1))
    return pa.StringArray.from_buffers(len(cells), pa.py_buffer(offsets), pa.py_buffer(chosen))


def _counts(is_there: NDArray[np.bool_]) -> NDArray[Any]:
    """Return how many are true in each row: eight sums of octets by one addition, where a row is whole words."""
    if is_there.shape[1] % 8:
        return np.asarray(np.count_nonzero(is_there, axis=1))
    words = is_there.view(np.uint64)
    sums = words[:, 0].copy()
    for column in range(1, words.shape[1]):
        sums += words[:, column]
    return np.asarray(sums * np.uint64(0x0101010101010101) >> np.uint64(56))


def _ips(octets: NDArray[np.uint8]) -> pa.StringArray:
    is_ipv6 = octets[:, 0] == Layer3.IPV6
    if not is_ipv6.any():
        return _joined(_ipv4(octets[:, 1 : 1 + IPV4_OCTETS]))
    if is_ipv6.all():
        return _joined(_ipv6(octets[:, 1:]))
    cells = np.zeros((len(octets), GROUPS * CELL), np.uint8)
    cells[~is_ipv6, : 4 * IPV4_OCTETS] = _ipv4(octets[~is_ipv6, 1 : 1 + IPV4_OCTETS])
    cells[is_ipv6] = _ipv6(octets[is_ipv6, 1:])
    return _joined(cells)


def _ipv4(octets: NDArray[np.uint8]) -> NDArray[np.uint8]:
    cells = _DECIMAL[octets].view(np.uint8).reshape(-1, 4 * IPV4_OCTETS)
    last = cells[:, -4:]
    last[last == ord(".")] = 0
    return cells


def _ipv6(octets: NDArray[np.uint8]) -> NDArray[np.uint8]:
    groups = np.ascontiguousarray(octets).view(">u2").astype(np.uint16)
    cells = np.empty((len(groups), GROUPS), np.uint64)
    np.take(_GROUP, groups, out=cells, mode="clip")
    np.take(_LAST_GROUP, groups[:, -1], out=cells[:, -1], mode="clip")
    made = cells.view(np.uint8).reshape(-1, GROUPS * CELL)
    some = np.flatnonzero((groups == 0).any(axis=1))  # Few of random addresses.
    zeros = np.packbits(groups[some] == 0, axis=1, bitorder="little")[:, 0]
    cells[some] = np.where(_IS_OUT[zeros], np.uint64(0), cells[some])
    is_short = _BEGINS[zeros] < GROUPS
    short, begins = some[is_short], _BEGINS[zeros[is_short]]
    cells[short, begins] = np.where(begins == 0, _word("::"), _word(":"))
    for row in some[zeros & 0x1F == 0x1F].tolist():
        text: Any = socket.inet_ntop(socket.AF_INET6, octets[row].tobytes()).encode()
        made[row] = np.frombuffer(text.ljust(GROUPS * CELL, b"\0"), np.uint8)
    return made


def _word(text: str) -> np.uint64:
    return np.uint64(int.from_bytes(text.encode(), "little"))


MAC_OCTETS = 6
TEXT = pa.dictionary(pa.int32(), pa.string())  # In the file: text, with each distinct one written once.


def array(values: NDArray[Any], mask: NDArray[np.bool_] | None, kind: pa.DataType) -> pa.Array:
    """Return a column; null where ``mask`` says so."""
    if kind == TEXT:
        return _distinct_texts(values, mask)
    if kind == pa.string():
        return _texts(values, mask)
    if pa.types.is_list(kind):
        return _lists(values, kind)
    return pa.array(values, kind, mask=mask)


def _lists(values: NDArray[Any], kind: pa.DataType) -> pa.Array:
    """Return a column of lists, from rows of how many there are, and what."""
    counts = values[:, 0]
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    chosen = values[:, 1:][np.arange(values.shape[1] - 1) < counts[:, np.newaxis]] if offsets[-1] else values[:0, 0]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(chosen, kind.value_type))


def binary(octets: NDArray[np.uint8]) -> pa.FixedSizeBinaryArray:
    """Return rows of octets as values."""
    return pa.Array.from_buffers(pa.binary(octets.shape[1]), len(octets), [None, pa.py_buffer(octets)])


def _texts(octets: NDArray[np.uint8], mask: NDArray[np.bool_] | None = None) -> pa.StringArray:
    """Return addresses as text; null where ``mask`` says so."""
    made = macs(octets) if octets.shape[1] == MAC_OCTETS else ips(octets)
    if mask is None:
        return made
    _, offsets, texts = made.buffers()
    is_there = pa.py_buffer(np.packbits(~mask, bitorder="little"))
    return pa.StringArray.from_buffers(len(made), offsets, texts, is_there)


def _distinct_texts(octets: NDArray[np.uint8], mask: NDArray[np.bool_] | None) -> pa.DictionaryArray:
    """Return a column of addresses, every distinct one made into text once."""
    size = octets.shape[1]
    encoded = binary(octets).dictionary_encode()
    distinct = encoded.dictionary
    rows = np.frombuffer(distinct.buffers()[1], np.uint8, len(distinct) * size, distinct.offset * size)
    return pa.DictionaryArray.from_arrays(encoded.indices.to_numpy(), _texts(rows.reshape(-1, size)), mask=mask)
