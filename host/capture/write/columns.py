# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Columns of numbers, lists and addresses as Arrow's arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.host import extras
from liteprobe.host.capture.write.texts import ips, macs

with extras.named():
    import pyarrow as pa

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
    kept = values[:, 1:][np.arange(values.shape[1] - 1) < counts[:, np.newaxis]] if offsets[-1] else values[:0, 0]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(kept, kind.value_type))


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
