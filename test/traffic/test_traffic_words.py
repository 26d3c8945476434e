# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The words of streams say what the streams say: the reader of words against the model, which never sees them."""

import struct
from collections.abc import Iterator

import pytest

from liteprobe.cores.formats import HEADER_WORDS_OF_STREAM, MODIFIER_WORDS, MODIFIERS, STREAM_WORDS, STREAMS, Fill
from liteprobe.host.traffic.layout import PortWords, port_words
from liteprobe.host.traffic.stream import Stream
from liteprobe.sim.drivers.frames.random_streams import StreamMaker
from liteprobe.sim.drivers.traffic.interpreter import SETTINGS, Contents, ExpectedFrame, Program
from liteprobe.sim.models.traffic.octets import filling
from liteprobe.sim.models.traffic.streams import octets, schedule
from liteprobe.sim.models.traffic.trains import ones_sum

SEED = 20261124
FRAMES = 300
FILLS = {Fill.ZERO: "zero", Fill.COUNTING: "counting", Fill.PRBS: "prbs"}
CLOCKS = (8 << 40, (8 << 40) + 12345, (8 << 40) * 9999 // 10_000, (8 << 40) * 10_001 // 10_000)


def stamp_of(start: int) -> int:
    return 0x0123_4567_89AB_CDEF + 8 * start


def contents_of(words: PortWords) -> Contents:
    """Return the memories of a port, what isn't written as 0."""
    sizes = (STREAMS * STREAM_WORDS, STREAMS * MODIFIERS * MODIFIER_WORDS, 512, STREAMS * HEADER_WORDS_OF_STREAM)
    parts = (words.schedule, words.modifiers, words.lists, words.headers)
    return Contents(*([*part, *[0] * (size - len(part))] for part, size in zip(parts, sizes, strict=True)))


def frames_of(words: PortWords) -> Iterator[ExpectedFrame]:
    program = Program(contents_of(words), words.mask)
    while (frame := program.next_frame()) is not None:
        yield frame


def built(frame: ExpectedFrame, stamp_ns: int) -> bytes:
    """Return the octets of a frame, put together as its settings say."""
    settings = dict(zip((*SETTINGS, "stamp_octets_less_1"), frame.settings, strict=True))
    start = struct.pack(f"<{len(frame.header)}I", *frame.header)
    if settings["with_probe"]:
        start += frame.sequence.to_bytes(4) + bytes(8)
    sent = bytearray((start + filling(FILLS[Fill(settings["fill"])]))[: frame.length])
    if settings["stamp_enable"]:
        at, count = settings["stamp_offset"], settings["stamp_octets_less_1"] + 1
        stamp = (stamp_ns >> 4 * settings["stamp_shift"]) % 2 ** (8 * count)
        if settings["stamp_nibble"]:
            stamp = stamp % 2 ** (8 * count - 4) | sent[at] >> 4 << 8 * count - 4
        sent[at : at + count] = stamp.to_bytes(count)
        if settings["stamp_mend"]:
            lowered = int.from_bytes(sent[at + 6 : at + 8]) - stamp
            sent[at + 6 : at + 8] = (lowered + 0xFFFF * (lowered < 0)).to_bytes(2)
    if settings["checksum_enable"]:
        first = settings["payload_offset"]
        complement = ones_sum(bytes(sent[first:-2]), frame.checksum_seed) ^ 0xFFFF
        sent[-2:] = complement.to_bytes(2, "little" if (frame.length - first) % 2 else "big")
    return bytes(sent)


def program(seed: int) -> tuple[list[Stream], int]:
    maker = StreamMaker(SEED + seed)
    streams = maker.streams(maker.random.randint(1, STREAMS), maker.random.choice((0.5, 0.95, 1)))
    return streams, maker.random.choice(CLOCKS)


@pytest.mark.parametrize("seed", range(30))
def test_frames_of_the_words_are_those_of_the_model(seed: int) -> None:
    print(f"seed {SEED} + {seed}")
    streams, increment = program(seed)
    wanted = schedule(streams, FRAMES, increment)
    frames = [frame for frame, _ in zip(frames_of(port_words(streams, increment)), range(FRAMES), strict=False)]
    found = [(frame.stream, frame.sequence, frame.due, frame.length) for frame in frames]
    assert found == wanted[["stream", "sequence", "due", "length"]].tolist()
    sent = octets(streams, wanted, stamp_of)
    for frame, start, model in zip(frames, wanted["start"].tolist(), sent, strict=True):
        assert built(frame, stamp_of(start)).hex() == model.hex(), streams[frame.stream]
