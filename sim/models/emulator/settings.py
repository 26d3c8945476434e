# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads the words of a direction: its classes and its link, as docs/design/emulator.md and the formats have them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from liteprobe.cores.formats.emulate import (
    BANK_WORDS,
    CLASS_FIELDS,
    CLASSES,
    DELAY_ENTRIES,
    FINE_BITS,
    LINK_FIELDS,
    LINK_WORD,
    PATTERN_WORDS,
    SETTING_WORDS,
    BackgroundKind,
    ClassFlag,
    Service,
)
from liteprobe.cores.formats.traffic import packed_words

ALWAYS = 2**32 - 1
SHARES = ("loss_enter", "loss_leave", "loss_good", "loss_bad", "duplicate", "corrupt", "reorder", "delay_repeat")
AS_THEY_ARE = (
    *("red_weight", "red_least", "red_most", "red_slope", "reorder_ticks", "delay", "limit_frames", "limit_octets"),
    *("codel_target", "codel_interval", "pie_target", "pie_update", "pie_burst"),
    *("token_octet", "pattern_start", "pattern_count"),
    *("background_length", "background_burst", "background_pause", "background_start", "background_phase"),
)


@dataclass(frozen=True, slots=True)
class ClassSettings:
    """A class; shares in parts of 2^32, all ones being one more than that. Times are fine where their name says so."""

    discards: bool
    loses_late: bool
    has_jitter: bool
    has_red: bool
    is_mended: bool
    has_list: bool
    has_ecn: bool
    has_codel: bool
    has_pie: bool
    pie_sees: bool
    has_codel_ecn: bool
    background: BackgroundKind
    red_weight: int
    service_weight: int
    loss_enter: int
    loss_leave: int
    loss_good: int
    loss_bad: int
    duplicate: int
    corrupt: int
    reorder: int
    reorder_ticks: int
    delay: int
    delay_repeat: int
    limit_frames: int
    limit_octets: int
    red_least: int
    red_most: int
    red_slope: int
    codel_target: int
    codel_interval: int
    pie_target: int
    pie_update: int
    pie_burst: int
    token_octet: int
    token_burst_fine: int
    overhead: int
    pattern_start: int
    pattern_count: int
    background_fine: int
    background_mean_32: int
    background_length: int
    background_burst: int
    background_pause: int
    background_start: int
    background_count: int
    background_phase: int
    frame_seed: int
    background_seed: int

    @classmethod
    def of(cls, words: Sequence[int]) -> "ClassSettings":
        """Return what the words of a class say."""
        value = {name: place.value(words) for name, place in CLASS_FIELDS.items()}
        flags = ClassFlag(value["flags"])
        background_fine = value["background_ticks"] << FINE_BITS | value["background_fraction"]
        return cls(
            discards=ClassFlag.DISCARD in flags,
            loses_late=ClassFlag.LOSS_LATE in flags,
            has_jitter=ClassFlag.JITTER in flags,
            has_red=ClassFlag.RED in flags,
            is_mended=ClassFlag.MENDED in flags,
            has_list=ClassFlag.LIST in flags,
            has_ecn=ClassFlag.ECN in flags,
            has_pie=ClassFlag.PIE in flags,
            pie_sees=bool(value["pie"]),
            has_codel=bool(value["codel"]),
            has_codel_ecn=bool(value["codel_ecn"]),
            background=BackgroundKind(value["background"]),
            service_weight=value["service_weight"] or 256,
            token_burst_fine=value["token_burst_high"] << 32 | value["token_burst_low"],
            background_fine=background_fine,
            background_mean_32=value["background_ticks"] * 32 + (value["background_fraction"] >> 11) & ALWAYS,
            background_count=value["background_count"] or 1,
            overhead=value["overhead"] - (value["overhead"] >> 8 << 9),
            frame_seed=value["frame_seed_high"] << 32 | value["frame_seed_low"],
            background_seed=value["background_seed_high"] << 32 | value["background_seed_low"],
            **{name: share(value[name]) for name in SHARES},
            **{name: value[name] for name in AS_THEY_ARE},
        )


def share(word: int) -> int:
    """Return the number below which a draw of 32 bits must be."""
    return 2**32 if word == ALWAYS else word


@dataclass(frozen=True, slots=True)
class Bank:
    """The settings of a direction that hold at a time."""

    classes: tuple[ClassSettings, ...]
    octet: int
    is_weighted: bool
    has_trace: bool

    @classmethod
    def of(cls, words: Sequence[int]) -> "Bank":
        """Return what the words of a bank say."""
        classes = tuple(
            ClassSettings.of(words[SETTING_WORDS * number : SETTING_WORDS * (number + 1)]) for number in range(CLASSES)
        )
        link = {name: place.value(words[LINK_WORD:]) for name, place in LINK_FIELDS.items()}
        return cls(
            classes,
            link["octet"],
            Service(link["service"]) is Service.WEIGHTED,
            bool(link["trace"]),
        )


@dataclass(frozen=True)
class Settings:
    """All that a direction begins with.

    Attributes
    ----------
    words : the bank that holds at the start.
    delays : entries of the delay table, ticks; fewer are followed by zeros. Likewise ``patterns``.
    trace : opportunities: ticks since the one before, octets. It repeats.
    """

    words: Sequence[int]
    delays: Sequence[int] = ()
    patterns: Sequence[int] = ()
    trace: Sequence[tuple[int, int]] = ()

    def delay_table(self) -> list[int]:
        """Return all entries."""
        return [*self.delays, *[0] * (DELAY_ENTRIES - len(self.delays))]

    def pattern_memory(self) -> list[int]:
        """Return all words."""
        return [*self.patterns, *[0] * (PATTERN_WORDS - len(self.patterns))]


#: A class of which nothing is asked: all its frames pass.
PLAIN = {"limit_frames": 0xFFFF, "limit_octets": ALWAYS, "service_weight": 1}


def bank_words(classes: Mapping[int, Mapping[str, int]], link: Mapping[str, int] | None = None) -> list[int]:
    """Return the words of a bank; a class has what ``classes`` names, and of all else what is plain."""
    words = []
    for number in range(CLASSES):
        seeds = {"frame_seed_low": 2 * number + 1, "background_seed_low": 2 * number + 2}
        values = {**PLAIN, **seeds, **classes.get(number, {})}
        words += packed_words(CLASS_FIELDS, SETTING_WORDS, values)
    words += packed_words(LINK_FIELDS, SETTING_WORDS, link or {})
    return [*words, *[0] * (BANK_WORDS - len(words))]
