# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What tells one build from another."""

import json
import zlib
from collections.abc import Mapping
from typing import Any


def map_hash(register_map: Mapping[str, Any]) -> int:
    """Return the CRC-32 that tells one register map from another.

    Parameters
    ----------
    register_map : mapping
        LiteX's ``csr.json`` as loaded: ``csr_registers`` and ``memories`` are read.

    Returns
    -------
    int
        CRC-32 (zlib) over the canonical JSON of registers (name, addr, size, type) and memories
        (name, base, size), both sorted.

    Raises
    ------
    KeyError
        If the map has no ``csr_registers`` or an entry lacks a field: it is not a register map.
    """
    registers = sorted(
        [name, entry["addr"], entry["size"], entry["type"]] for name, entry in register_map["csr_registers"].items()
    )
    memories = sorted([name, entry["base"], entry["size"]] for name, entry in register_map.get("memories", {}).items())
    return zlib.crc32(json.dumps([registers, memories], sort_keys=True).encode())
