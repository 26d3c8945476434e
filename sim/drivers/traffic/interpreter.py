# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Reads the words of streams as cores/formats/traffic.py has them, and says which frames follow: the truth for the gateware."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from liteprobe.cores.formats import (
    HEADER_WORDS_OF_STREAM, LN2, MODIFIER_FIELDS, MODIFIER_WORDS, MODIFIERS, OVERHEAD, STREAM_FIELDS, STREAM_WORDS,
    STREAMS, LengthKind, ModifierOp, WordField,
)

MASK = 0xFFFFFFFF
SETTINGS = (
    "header_words", "with_probe", "fill", "payload_offset", "checksum_enable", "stamp_enable", "stamp_offset", "stamp_shift",
    "stamp_nibble", "stamp_mend",
)  # fmt: skip


def random_after(x: int) -> int:
    """Return the number that xorshift32 gives after x."""
    x ^= x << 13 & MASK
    x ^= x >> 17
    return x ^ (x << 5 & MASK)


def exponential_gap(mean: int, u: int) -> int:
    """Return an interval (2^-32 ticks) of an exponential distribution of a mean (2^-5 ticks)."""
    zeros = 32 - u.bit_length()
    index = (u << zeros & MASK) >> 22 & 511
    logarithm = zeros * LN2 + round(-math.log((512 + index + 0.5) / 1024) * 2**27)
    return mean * logarithm


def ones_sum(terms: Iterable[int]) -> int:
    """Return the one's complement sum of halfwords."""
    total = sum(terms)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


class ExpectedFrame(NamedTuple):
    """A descriptor, and the header at the time when its frame is built."""

    stream: int
    sequence: int
    length: int
    due: int
    checksum_seed: int
    settings: tuple[int, ...]  # SETTINGS, then stamp_octets.
    header: tuple[int, ...]


class Words:
    """Words that are read and written by the names of their fields."""

    def __init__(self, fields: dict[str, WordField], words: Sequence[int]) -> None:
        self.fields = fields
        self.words = list(words)

    def __getitem__(self, name: str) -> int:
        return self.fields[name].value(self.words)

    def __setitem__(self, name: str, value: int) -> None:
        field = self.fields[name]
        mask = (1 << field.bits) - 1 << field.low
        self.words[field.word] = self.words[field.word] & ~mask | value << field.low & mask


class Modifier:
    """One modifier of a stream."""

    def __init__(self, words: Sequence[int], lists: Sequence[int]) -> None:
        self.words = Words(MODIFIER_FIELDS, words)
        self.lists = lists

    def value(self) -> int:
        """Return the value of the next frame; state is that of the one after."""
        words = self.words
        op = words["op"]
        if op == ModifierOp.STEP:
            value = words["value"]
            left = words["left"]
            is_last = words["number"] != 0 and left == 1
            words["value"] = words["first"] if is_last else (value + words["step"]) & MASK
            words["left"] = words["number"] if is_last else (left - 1) & MASK
            return value
        if op == ModifierOp.LIST:
            index = words["value"]
            words["value"] = (index + 1) % words["number"]
            return self.lists[words["list_base"] + index]
        words["random"] = random_after(words["random"])
        if op == ModifierOp.RANDOM:
            return words["random"]
        return self.lists[words["list_base"] + ((words["random"] >> 16) * words["number"] >> 16)]


class Stream:
    """One stream: its words, its modifiers and its header, which change from frame to frame."""

    def __init__(
        self, number: int, words: Sequence[int], modifiers: Sequence[int], lists: Sequence[int], header: Sequence[int]
    ) -> None:
        self.number = number
        self.words = Words(STREAM_FIELDS, words)
        starts = range(0, MODIFIERS * MODIFIER_WORDS, MODIFIER_WORDS)
        self.modifiers = [Modifier(modifiers[at : at + MODIFIER_WORDS], lists) for at in starts]
        self.lists = lists
        self.octets = bytearray(b"".join(word.to_bytes(4, "little") for word in header))
        self.due = 0

    def has_frames(self) -> bool:
        """Return whether there is one more."""
        return bool(self.words["endless"] or self.words["frames_left"])

    def start(self, base: int) -> None:
        """Begin with the phase after tick ``base``."""
        self.due = base + self.words["phase"]
        self.words["phase"] = 0

    def halfword(self, number: int) -> int:
        """Return a halfword of the header."""
        return int.from_bytes(self.octets[2 * number : 2 * number + 2], "big")

    def set_halfword(self, number: int, value: int, mask: int = 0xFFFF) -> None:
        """Change bits of a halfword of the header."""
        if mask:
            changed = self.halfword(number) & ~mask | value & mask
            self.octets[2 * number : 2 * number + 2] = changed.to_bytes(2, "big")

    def next_frame(self) -> ExpectedFrame:
        """Return the next frame; state is that of the one after."""
        words, due = self.words, self.due
        length = self.next_length()
        sequence = words["sequence"]
        words["sequence"] = (sequence + 1) & MASK
        self.advance(length)
        if not words["endless"]:
            words["frames_left"] = words["frames_left"] - 1
        seed = self.edit_header(length)
        settings = (*(words[name] for name in SETTINGS), words["stamp_octets_less_1"])
        header = tuple(int.from_bytes(self.octets[4 * n : 4 * n + 4], "little") for n in range(words["header_words"]))
        return ExpectedFrame(self.number, sequence, length, due, seed, settings, header)

    def next_length(self) -> int:
        """Return the length of the next frame."""
        words = self.words
        kind, least = words["length_kind"], words["length_least"]
        if kind == LengthKind.FIXED:
            return least
        if kind == LengthKind.STEPPED:
            length = words["length_next"]
            after = length + words["length_step"]
            words["length_next"] = least if after > words["length_greatest"] else after
            return length
        if kind == LengthKind.LIST and not words["list_drawn"]:
            index = words["list_index"]
            words["list_index"] = (index + 1) % words["list_entries"]
        else:
            words["length_random"] = random_after(words["length_random"])
            index = (words["length_random"] >> 16) * words["length_range"] >> 16
        return self.lists[words["list_base"] + index] & 0x3FFF if kind == LengthKind.LIST else least + index

    def advance(self, length: int) -> None:
        """Move on to the tick of the next frame."""
        words = self.words
        since = words["phase"]
        if words["burst_left"] > 1:
            words["burst_left"] = words["burst_left"] - 1
            inner = words["burst_interval"] or length + OVERHEAD
            self.due += inner
            words["phase"] = since + inner
            return
        words["burst_left"] = words["burst_frames"]
        if words["exponential"]:
            words["interval_random"] = random_after(words["interval_random"])
            gap = exponential_gap(words["interval"], words["interval_random"])
        else:
            gap = words["interval"] << 32 | words["interval_fraction"]
        gap += words["due_fraction"]
        words["due_fraction"] = gap & MASK
        self.due += (gap >> 32) - since
        words["phase"] = 0

    def edit_header(self, length: int) -> int:
        """Write what varies into the header; return the checksum seed."""
        words = self.words
        in_ipv4, in_seed = [words["ipv4_sum"]], [words["checksum_seed"]]
        for modifier in self.modifiers:
            if modifier.words["op"] == ModifierOp.NONE:
                break
            value, mask, at = modifier.value(), modifier.words["mask"], modifier.words["halfword"]
            for name, place, shift in (("high", at, 16), ("low", at + 1, 0)):
                self.set_halfword(place, value >> shift & 0xFFFF, mask >> shift & 0xFFFF)
                in_ipv4 += [self.halfword(place)] if modifier.words[f"{name}_in_ipv4"] else []
                in_seed += [self.halfword(place)] if modifier.words[f"{name}_in_seed"] else []
        network, transport = length - words["network_base"], length - words["transport_offset"]
        if words["network_write"]:
            self.set_halfword(words["network_halfword"], network)
            in_ipv4.append(network)
        if words["udp_write"]:
            self.set_halfword(words["udp_halfword"], transport)
        if words["ipv4_write"]:
            self.set_halfword(words["ipv4_halfword"], ones_sum(in_ipv4) ^ 0xFFFF)
        return ones_sum([*in_seed, *[transport] * words["seed_lengths"]])


@dataclass
class Contents:
    """Holds what a host writes into the memories of a port."""

    schedule: list[int]
    modifiers: list[int]
    lists: list[int]
    headers: list[int]

    def stream(self, number: int) -> Stream:
        """Return a stream as it begins."""
        per_stream = MODIFIERS * MODIFIER_WORDS
        return Stream(
            number,
            self.schedule[STREAM_WORDS * number : STREAM_WORDS * (number + 1)],
            self.modifiers[per_stream * number : per_stream * (number + 1)],
            self.lists,
            self.headers[HEADER_WORDS_OF_STREAM * number : HEADER_WORDS_OF_STREAM * (number + 1)],
        )


class Program:
    """All streams of a port: frames come in the order of their due ticks, the lowest number first on a tie."""

    def __init__(self, contents: Contents, mask: int) -> None:
        self.streams = [contents.stream(number) for number in range(STREAMS)]
        begun = [number for number in range(STREAMS) if mask >> number & 1]
        for number in begun:
            self.streams[number].start(0)
        self.active = {number for number in begun if self.streams[number].has_frames()}

    def next_frame(self) -> ExpectedFrame | None:
        """Return the next frame of all, None when there is none any more."""
        if not self.active:
            return None
        number = min(self.active, key=lambda one: (self.streams[one].due, one))
        frame = self.streams[number].next_frame()
        if not self.streams[number].has_frames():
            self.active.discard(number)
        return frame

    def contents(self, lists: list[int]) -> Contents:
        """Return what the memories hold now."""
        return Contents(
            [word for stream in self.streams for word in stream.words.words],
            [word for stream in self.streams for one in stream.modifiers for word in one.words.words],
            lists,
            [int.from_bytes(s.octets[4 * n : 4 * n + 4], "little") for s in self.streams for n in range(HEADER_WORDS_OF_STREAM)],
        )
