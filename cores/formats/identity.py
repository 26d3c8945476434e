# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What a probe is made of, and what tells one build from another."""

import json
import zlib
from collections.abc import Mapping
from enum import IntFlag
from typing import Any, Final


class Part(IntFlag):
    """Register ``probe_parts``: what is built in."""

    GENERATE = 1  # Ports send trains.
    RECORD = 2  # Ports keep a record of each frame of a train, and nothing else.
    MONITOR = 4  # Ports parse, filter, measure and capture all frames.
    STREAMS = 8  # Ports send many streams.
    MEASURE = 16  # Ports measure streams (accumulators, histograms), and keep nothing.
    REPLAY = 32  # Ports send traces that the host streams to them.
    SETS = 64  # Ports make frames of configuration sets that the host streams; with REPLAY.
    EMULATE = 128  # Ports are joined by an emulated network.


#: The parts of each preset; the first one is the default.
PRESETS: Final = {
    "train": Part.GENERATE | Part.RECORD,
    "monitor": Part.MONITOR,
    "generator": Part.GENERATE | Part.STREAMS | Part.MEASURE,
    "tester": Part.GENERATE | Part.STREAMS | Part.MONITOR,
    "replay": Part.GENERATE | Part.MONITOR | Part.REPLAY | Part.SETS,
    "emulator": Part.GENERATE | Part.EMULATE,
}
DEFAULT_PRESET: Final = "train"


def preset_of(parts: int) -> str:
    """Return the preset of a probe with ``parts``, with or without what may be chosen; ValueError where there is none."""
    optional = Part.STREAMS | Part.REPLAY | Part.SETS
    for name, its_parts in PRESETS.items():
        if parts == its_parts:
            return name
    for name, its_parts in PRESETS.items():
        if parts & ~optional == its_parts & ~optional and not parts & ~(its_parts | Part.REPLAY | Part.SETS):
            return name
    raise ValueError(f"no preset has the parts {parts:#x}: was the gateware built by a later version?")


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
