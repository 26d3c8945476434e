# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Accumulators of a port and of its streams, as the memory of its meter shows them."""

from collections.abc import Mapping, Sequence

from liteprobe.cores.formats import PORT_ACCUMULATORS, STREAM_ACCUMULATORS, STREAM_SLOT_WORDS, Accumulator
from liteprobe.host.device.registers import Registers


def streams_memory(port: int) -> str:
    """Return the name of the memory that shows the accumulators of a port."""
    return f"port{port}_streams"


def read_accumulators(registers: Registers, port: int) -> list[dict[str, int]]:
    """Return the accumulators of the last snapshot by name: those of the port, then those of each slot.

    Slot 0 has the probe frames of no stream, slot 1 the first stream, and so on.
    """
    memory = streams_memory(port)
    words = registers.read_memory(memory, 0, registers.memory(memory).words)
    slots = words.reshape(-1, STREAM_SLOT_WORDS).tolist()
    return [named(PORT_ACCUMULATORS, slots[0]), *(named(STREAM_ACCUMULATORS, slot) for slot in slots)]


def read_stream(registers: Registers, port: int) -> dict[str, int]:
    """Return the accumulators of the first stream, as of the last snapshot, by name."""
    words = registers.read_memory(streams_memory(port), STREAM_SLOT_WORDS, STREAM_SLOT_WORDS)
    return named(STREAM_ACCUMULATORS, words.tolist())


def named(layout: Mapping[str, Accumulator], words: Sequence[int]) -> dict[str, int]:
    """Return the accumulators that ``words`` of a slot hold, by name."""
    return {name: place.value(words) for name, place in layout.items()}
