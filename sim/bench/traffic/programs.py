# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Random programs of streams, as the words of their memories: every kind of everything that a host may write."""

from dataclasses import dataclass
from random import Random

from liteprobe.cores.formats import (
    HEADER_WORDS_OF_STREAM,
    LIST_ENTRIES_MAX,
    LIST_WORDS,
    MODIFIER_FIELDS,
    MODIFIER_WORDS,
    MODIFIERS,
    STREAM_FIELDS,
    STREAM_WORDS,
    STREAMS,
    LengthKind,
    ModifierOp,
    packed_words,
)
from liteprobe.sim.bench.traffic.interpreter import Contents

WORD = 1 << 32


@dataclass(frozen=True)
class Taste:
    """What the programs are made of.

    Attributes
    ----------
    endless : streams have no end; else each second one has.
    least_interval, most_interval : ticks.
    is_full : all streams, four modifiers each, random lengths at random intervals, frames of 60 octets.
    """

    endless: bool = False
    least_interval: int = 1
    most_interval: int = 5000
    is_full: bool = False


def random_contents(random: Random, taste: Taste | None = None) -> Contents:
    """Return the words of all 16 streams; each has a good description."""
    taste = taste or Taste()
    # Each entry of a list may be a length: none is below that of the shortest frame.
    contents = Contents([], [], [random.randrange(WORD) | 64 for _ in range(LIST_WORDS)], [])
    grid = random.choice([1, 50, 400])  # Ticks: coarse ones are often due together.
    for _ in range(STREAMS):
        header_words = 12 if taste.is_full else random.randint(4, HEADER_WORDS_OF_STREAM)
        contents.headers += [random.randrange(WORD) for _ in range(HEADER_WORDS_OF_STREAM)]
        free = set(range(2 * header_words))
        modifiers = random_modifiers(random, header_words, free, taste.is_full)
        contents.modifiers += [word for words in modifiers for word in words]
        values = {**random_header(random, header_words, free), **random_length(random, taste.is_full)}
        values |= random_interval(random, taste, grid)
        contents.schedule += packed_words(STREAM_FIELDS, STREAM_WORDS, values)
    return contents


def random_header(random: Random, header_words: int, free: set[int]) -> dict[str, int]:
    """Return what a stream says of its header and its frames; takes halfwords that are free."""
    values = {
        name: random.getrandbits(STREAM_FIELDS[name].bits)
        for name in (
            "fill", "with_probe", "checksum_enable", "stamp_enable", "stamp_nibble", "stamp_mend", "stamp_octets_less_1",
            "stamp_shift", "payload_offset", "stamp_offset", "checksum_seed", "ipv4_sum",
        )
    }  # fmt: skip
    values |= {
        "header_words": header_words,
        "seed_lengths": random.randrange(3),
        "network_base": random.randrange(60),
        "transport_offset": random.randrange(60),
        "sequence": random.choice([0, random.randrange(WORD), WORD - 3]),
    }
    for name in ("network", "udp", "ipv4"):
        if free and random.random() < 0.7:
            halfword = random.choice(sorted(free))
            free.discard(halfword)
            values |= {f"{name}_write": 1, f"{name}_halfword": halfword}
    return values


def random_length(random: Random, is_full: bool) -> dict[str, int]:
    """Return what a stream says of its lengths."""
    kind = LengthKind.RANDOM if is_full else random.choice(list(LengthKind))
    least = 60 if is_full else random.randint(60, 300)
    values = {"length_kind": int(kind), "list_drawn": random.getrandbits(1), "length_random": random.randrange(1, WORD)}
    if kind == LengthKind.LIST:
        entries = random.choice([1, 2, 7, LIST_ENTRIES_MAX])
        base = random.randint(0, LIST_WORDS - entries)
        return values | {"list_base": base, "list_entries": entries, "list_index": random.randrange(entries)}
    if kind == LengthKind.RANDOM:
        return values | {"length_least": least, "length_range": 1 if is_full else random.choice([1, 2, 1000, 9000])}
    greatest = least + random.choice([0, 10, 1000])
    values |= {"length_least": least, "length_greatest": greatest}
    if kind == LengthKind.STEPPED:
        values |= {"length_next": random.randint(least, greatest), "length_step": random.choice([0, 1, 7, 600])}
    return values


def random_interval(random: Random, taste: Taste, grid: int) -> dict[str, int]:
    """Return what a stream says of its due ticks and its end."""
    exponential = taste.is_full or random.random() < 0.4
    interval = random.randint(taste.least_interval, taste.most_interval)
    if exponential:
        values = {"exponential": 1, "interval": 32 * interval + random.randrange(32), "interval_random": random.randrange(1, WORD)}
    else:
        whole = max(interval // grid, 1) * grid
        values = {"interval": whole, "interval_fraction": random.choice([0, random.randrange(WORD)])}
    burst = 1 if taste.is_full else random.choice([0, 1, 1, 2, 3, 9])
    values |= {
        "burst_frames": burst,
        "burst_left": max(burst, 1),
        "burst_interval": random.choice([0, 84, grid * random.randint(1, 20)]),
        "phase": random.choice([0, grid * random.randrange(40), random.randrange(5000)]),
        "due_fraction": random.choice([0, random.randrange(WORD)]),
    }
    if taste.endless or random.random() < 0.5:
        return values | {"endless": 1, "frames_left": random.randrange(WORD)}
    return values | {"frames_left": random.choice([0, 1, 2, random.randint(1, 300)])}


def random_modifiers(random: Random, header_words: int, free: set[int], is_full: bool) -> list[list[int]]:
    """Return the words of four modifiers; takes the halfwords that they change."""
    count = MODIFIERS if is_full else random.randint(0, MODIFIERS)
    made = []
    for number in range(MODIFIERS):
        values = random_modifier(random)
        if number >= count:
            values["op"] = int(ModifierOp.NONE) if number == count else values["op"]  # What comes after it is not looked at.
        halfword = random.randrange(2 * header_words - 1)
        for name, place in (("high", halfword), ("low", halfword + 1)):
            taken = place in free and (is_full or random.random() < 0.8)
            free -= {place} if taken and number < count else set()
            mask = random.choice([0xFFFF, random.randrange(1, 1 << 16)]) if taken else 0
            values["mask"] |= mask << (16 if name == "high" else 0)
            values |= {f"{name}_in_{what}": random.getrandbits(1) if taken else 0 for what in ("ipv4", "seed")}
        made.append(packed_words(MODIFIER_FIELDS, MODIFIER_WORDS, values | {"halfword": halfword}))
    return made


def random_modifier(random: Random) -> dict[str, int]:
    """Return what a modifier does, without its place."""
    op = random.choice([one for one in ModifierOp if one])
    values = {"op": int(op), "mask": 0}
    if op in (ModifierOp.LIST, ModifierOp.DRAWN):
        entries = random.choice([1, 2, 7, LIST_ENTRIES_MAX])
        values |= {"list_base": random.randint(0, LIST_WORDS - entries), "number": entries}
    if op == ModifierOp.LIST:
        values |= {"value": random.randrange(entries)}
    elif op == ModifierOp.STEP:
        number = random.choice([0, 1, 2, 5, WORD - 1])
        left = random.randint(1, number) if number else random.choice([0, 1, 2, random.randrange(WORD)])
        values |= {"number": number, "left": left}
        values |= {name: random.randrange(WORD) for name in ("step", "first", "value")}
    else:
        values |= {"random": random.randrange(1, WORD)}
    return values
