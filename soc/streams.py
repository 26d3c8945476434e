# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Ports that send many streams: their memories on the bus."""

from liteprobe.cores.formats import HEADER_WORDS_OF_STREAM, LIST_WORDS, MODIFIER_WORDS, MODIFIERS, SENT_WORDS, STREAM_WORDS, STREAMS

def add_stream_memories(soc, port, streams):
    """Let the host describe streams, and see what was sent of each."""
    soc.add_memory(f"{port}_header", streams.headers_bus, STREAMS*HEADER_WORDS_OF_STREAM)
    soc.add_memory(f"{port}_schedule", streams.streams_bus, STREAMS*STREAM_WORDS)
    soc.add_memory(f"{port}_modifiers", streams.modifiers_bus, STREAMS*MODIFIERS*MODIFIER_WORDS)
    soc.add_memory(f"{port}_lists", streams.lists_bus, LIST_WORDS)
    soc.add_memory(f"{port}_sent", streams.sent_counters.bus, STREAMS*SENT_WORDS)
