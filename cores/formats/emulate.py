# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Defines the words in which a host describes a degraded network to the emulator, and what is counted of it.

A direction goes from one port to another. What its words do, event by event, is in docs/design/emulator.md. A share is a
number of 32 bits in parts of 2^32; all ones is 1. Times are ticks; a *fine* time is in parts of 2^16 ticks.
"""

from enum import IntEnum, IntFlag
from typing import Final

from liteprobe.cores.formats.traffic import WordField

CLASSES: Final = 8  # Of a direction; class 7 has the frames that no rule names.
UNMATCHED_CLASS: Final = CLASSES - 1
LANES: Final = CLASSES + 1  # Frames of a class leave in the order of its lane; the last one has those that are held back.
REORDER_LANE: Final = CLASSES

FINE_BITS: Final = 16  # Of a tick.
TIME_BITS: Final = 48  # Of a fine time where it is compared, modulo: 32 of them are ticks.
NOW_BITS: Final = 48  # Of ticks since the start: 26 days.
WAIT_MAX: Final = 1 << 30  # Ticks: no interval and no service is longer than 8.6 s.
DUE_BITS: Final = 32  # Of a departure's tick where it waits: delays are below DELAY_MAX.
DELAY_MAX: Final = 1 << 30  # Ticks: 8.6 s.

#: Words of a store in the SDRAM for each frame that waits or is under way: it takes so many at least.
ENTRY_SPACE: Final = 16

# Settings: a memory of 32-bit words a direction, in two banks. ------------------------------------------

SETTING_WORDS: Final = 32  # Of a class; class c from word SETTING_WORDS*c. The link has the words after the last class.
LINK_WORD: Final = SETTING_WORDS * CLASSES
BANK_WORDS: Final = 512  # Bank b begins at word BANK_WORDS*b. The engine goes over to the other bank between two events.

DELAY_ENTRIES: Final = 1024  # Quantiles of the delay, ticks, one table a direction.
PATTERN_WORDS: Final = 512  # A memory a direction, shared by loss patterns and background patterns.
NO_LIMIT: Final = 0xFFFFFFFF


class ClassFlag(IntFlag):
    """Bits of word 0 of a class."""

    NONE = 0
    DISCARD = 1 << 0  # All its frames are dropped at once.
    LOSS_LATE = 1 << 1  # What is lost takes queue space and service time, and is dropped after the queue.
    JITTER = 1 << 2  # The delay has a quantile of the table on top.
    RED = 1 << 3
    MENDED = 1 << 4  # A corrupted frame leaves with a good FCS; else with a bad one.
    LIST = 1 << 5  # The loss pattern is a list of frame numbers, ascending; else bits, which repeat.
    ECN = 1 << 6  # What RED or PIE would drop is marked, where it can be.
    PIE = 1 << 7  # Drops by chance, when a frame comes; `pie` of the class must be set, too.


class BackgroundKind(IntEnum):
    """Names the ways in which the background frames of a class follow each other."""

    NONE = 0
    CONSTANT = 1  # At each interval.
    EXPONENTIAL = 2  # Intervals of an exponential distribution, whose mean is the interval.
    ON_OFF = 3  # Bursts of background frames at the interval, a fixed number each; then a pause.
    RANDOM_ON_OFF = 4  # Likewise, of a geometric number; pauses of an exponential distribution.
    PATTERN = 5  # Intervals and lengths of a list, which repeats.


class Service(IntEnum):
    """Names the orders in which the link serves classes."""

    STRICT = 0  # The lowest number that can be served.
    WEIGHTED = 1  # So many frames of each in turn.


#: Words of a class.
CLASS_FIELDS: Final = {
    "flags":              WordField(0, 0, 8),
    "background":         WordField(0, 8, 3),   # BackgroundKind.
    "red_weight":         WordField(0, 16, 4),  # The mean queue takes on 2^-weight of the difference at each arrival.
    "service_weight":     WordField(0, 24, 8),  # Frames in a row, from 1.
    "loss_enter":         WordField(1),         # Gilbert-Elliott: p, from the good to the bad state, each frame.
    "loss_leave":         WordField(2),         # r, back.
    "loss_good":          WordField(3),         # 1-k, loss in the good state.
    "loss_bad":           WordField(4),         # 1-h, loss in the bad state.
    "duplicate":          WordField(5),
    "corrupt":            WordField(6),
    "reorder":            WordField(7),         # Share of frames that are held back,
    "reorder_ticks":      WordField(8, 0, 30),  # for so long, on top of their delay.
    "delay":              WordField(9, 0, 30),  # Ticks, from the end of service.
    "delay_repeat":       WordField(10),        # Share of frames that have the quantile of the one before in the class.
    "limit_frames":       WordField(11, 0, 16),  # That wait for service, background frames too; the one in service doesn't count.
    "limit_octets":       WordField(12),        # Likewise; octets without FCS.
    "red_least":          WordField(13, 0, 16),  # Frames.
    "red_most":           WordField(13, 16, 16),
    "red_slope":          WordField(14),        # Share for each frame of the mean queue above red_least.
    "codel_target":       WordField(13, 0, 27),  # Ticks, in the place of RED: that a frame may wait,
    "codel_interval":     WordField(14, 0, 27),  # and for how long one may wait longer.
    "pie_target":         WordField(13, 0, 26),  # Likewise of PIE: the wait to keep to,
    "pie_update":         WordField(14, 0, 27),  # how often its share of drops changes,
    "pie_burst":          WordField(31, 0, 8),   # and how many of those nothing is dropped at first.
    "token_octet":        WordField(15),        # Fine time for each octet of the token bucket; 0: no bucket.
    "token_burst_low":    WordField(16),        # Fine time by which the bucket may be ahead.
    "token_burst_high":   WordField(17, 0, 13),  # 4.3 s at most.
    "overhead":           WordField(17, 16, 9),  # Signed: octets that each frame takes of link and bucket beside its length.
    "codel":              WordField(17, 25, 1),  # CoDel drops frames where they would be served,
    "codel_ecn":          WordField(17, 26, 1),  # or marks them, where they can be.
    "pie":                WordField(17, 27, 1),  # PIE sees how long frames wait.
    "pattern_start":      WordField(18, 0, 9),  # Word of the pattern memory.
    "pattern_count":      WordField(18, 16, 15),  # Bits, or frame numbers; 0: no loss pattern.
    "background_ticks":     WordField(19),        # The interval, ticks,
    "background_fraction":  WordField(20, 0, 16),  # and parts of 2^16.
    "background_length":    WordField(20, 16, 14),
    "background_burst":     WordField(21),        # On-off: frames of a burst; random: 2^32 divided by their mean number.
    "background_pause":     WordField(22),        # Ticks from the last frame of a burst to the first of the next, or their mean.
    "background_start":     WordField(23, 0, 9),  # Pattern: word of the pattern memory,
    "background_count":     WordField(23, 16, 9),  # entries of two words: ticks since the one before; length.
    "background_phase":     WordField(24),        # Ticks from the start to the first of them (EXPONENTIAL: none, a draw).
    "frame_seed_low":     WordField(27),        # State of the draws of frames at the start; not 0,
    "frame_seed_high":    WordField(28),
    "background_seed_low":  WordField(29),        # and of background frames.
    "background_seed_high": WordField(30),
    "store_start":        WordField(25, 0, 21),  # Words: where the frames of the lane lie in the store, a multiple of the size.
    "store_bits":         WordField(26, 0, 5),  # The size, 2^bits words, from 9.
}  # fmt: skip

#: Words of the link, from LINK_WORD.
LINK_FIELDS: Final = {
    "octet":        WordField(0),         # Fine time of service for each octet; 0: none is needed.
    "service":      WordField(1, 0, 1),   # Service.
    "trace":        WordField(1, 1, 1),   # Service by the opportunities of a trace, and not by ``octet``.
    "store_start":  WordField(2, 0, 21),  # As of a class, for the lane of frames that are held back.
    "store_bits":   WordField(3, 0, 5),
}  # fmt: skip

TRACE_ENTRY_WORDS: Final = 2  # Ticks since the opportunity before, or the start; octets. A trace repeats.

# CoDel. --------------------------------------------------------------------------------------------------

CODEL_BACKLOG: Final = 1514  # Octets: nothing is dropped that leaves no more than that behind.
CODEL_COUNT_MAX: Final = 2**16 - 1
CODEL_INTERVAL_MAX: Final = 2**27 - 1  # Ticks: sixteen of them are compared, modulo 2^32.


CODEL_ROOTS: Final[tuple[int, ...]] = (0, *(round(2**16 / count**0.5) for count in range(1, 256)))


def codel_step(interval: int, count: int) -> int:
    """Return ``interval`` / sqrt(``count``) in ticks: exact below a count of 256 but for rounding, then within 0.8 %."""
    shift = max(0, count.bit_length() - 7) // 2
    return interval * CODEL_ROOTS[count >> 2 * shift] >> 16 + shift


# PIE: shares are parts of 2^32. --------------------------------------------------------------------------

PIE_BACKLOG: Final = 2 * CODEL_BACKLOG  # Octets: where no more wait nothing is dropped.
PIE_WAIT_MAX: Final = 2**26 - 1  # Ticks: a longer wait counts as that.
PIE_IDLE: Final = 16  # Updates: where so many are due, PIE begins anew.
#: A change is this many bits less where the share is below.
PIE_SHIFTS: Final = tuple(
    (round(2**32 / 10**digits), shift) for digits, shift in ((6, 11), (5, 9), (4, 7), (3, 5), (2, 3), (1, 1))
)
PIE_TENTH: Final = PIE_SHIFTS[-1][0]
PIE_FIFTH: Final = 2 * PIE_TENTH
PIE_CHANGE_MAX: Final = PIE_TENTH // 5


class Feature(IntFlag):
    """Bits of the register ``features``: what a build can do beside what each does."""

    NONE = 0
    CODEL = 1 << 0
    ECN = 1 << 1
    PIE = 1 << 2


RESERVED_MACS: Final = 0x0180C2000000  # To this and the next 15 bridges forward nothing (IEEE 802.1D-2004, table 7-10).
MAC_CONTROL_TYPE: Final = 0x8808  # PAUSE and the like, whatever the address (IEEE 802.3, clause 31).

# Rules: of which class a frame is. -----------------------------------------------------------------------

# A memory of 32-bit words a direction; in each word bit r is rule r of a block of 32, and block b begins at word
# RULE_BLOCK_WORDS*b. All rules are compared with the header of a frame at once, half an octet after the other.
RULES: Final = 32  # In a block.
RULES_MOST: Final = 128
RULE_BLOCK_WORDS: Final = 1 << 13
# Word 128*w + 16*h + v: rules that half h of word w of the header may be v for. Half 0 has bits 3..0, half 7 bits 31..28.
RULE_HALVES: Final = 8
# Bounds of ranges, from RULE_BOUNDS + 32*(8 + 8*field + 4*is_upper + half), the lowest half of a field first: 16 words that say for
# which values the bound holds whatever lower halves are; then 16 for which it holds if it does for the halves below.
RULE_BOUNDS: Final = 1 << 12
RULE_RANGES: Final = ("source_port", "destination_port", "length")
# Of block 0 alone, word RULE_VERDICTS + t: of N rules four bits for each of the N/16 from rule N/16*t on, the first one lowest: its
# class, and whether what it holds for is not of that class, whatever later rules of the class say.
RULE_VERDICTS: Final = RULE_BOUNDS + (1 << 10)
RULE_TURNS: Final = 16
RULE_DENIES_BIT: Final = 3
# Words of the header that are not as in the unified header.
RULE_FLAGS_WORD: Final = 3  # ``flags`` up to PROBE in the low half, no more.
RULE_LAYERS_WORD: Final = 4  # Octet 3: tags in bits 3..0, labels in bits 7..4.
RULE_KINDS_WORD: Final = 5  # Octet 1: layer 3 in bits 1..0; bit 2: it has ports (of TCP, UDP, SCTP).
# Register ``rule_words``: bit w: word w of the header is compared; bits 0 to 2: each of RULE_RANGES is. 0: no rule holds.

# Random numbers: xorshift64, a state a class and purpose. ------------------------------------------------

XORSHIFT64: Final = (13, 7, 17)  # Marsaglia, Xorshift RNGs, 2003: left, right, left. A draw is the high half of the new state.


class Draw(IntEnum):
    """Draws of a frame, in this order, each of them for every frame of a class."""

    STATE = 0  # Of Gilbert-Elliott.
    LOSS = 1
    DUPLICATE = 2
    CORRUPT = 3
    BIT = 4  # Which bit is wrong: draw * 8*length >> 32.
    REORDER = 5
    REPEAT = 6
    QUANTILE = 7  # draw >> 22.
    RED = 8


class BackgroundDraw(IntEnum):
    """Draws of a background frame, in this order, each of them for every background frame of a class."""

    INTERVAL = 0  # 0 counts as 1.
    BURST = 1
    RED = 2


def next_random64(state: int) -> int:
    """Return the state after ``state``, of 64 bits and not 0."""
    first, second, third = XORSHIFT64
    state ^= state << first & 2**64 - 1
    state ^= state >> second
    return state ^ (state << third & 2**64 - 1)


# Results. -------------------------------------------------------------------------------------------------


class Outcome(IntEnum):
    """Names what becomes of a frame."""

    SENT = 0
    DISCARDED = 1  # By its class.
    LOST = 2  # By a loss model or pattern.
    FULL = 3  # The queue was: frames or octets.
    EARLY = 4  # By RED, CoDel or PIE.
    NO_STORE = 5  # The memory was full, not the queue: a limit of the probe.


class ClassCounter(IntEnum):
    """Counters of a class, 32 bits, wrap; in memory ``direction<n>_counts`` from word COUNTER_WORDS*class."""

    ARRIVED = 0
    ARRIVED_OCTETS = 1
    SENT = 2  # It is known when they leave; a duplicate too.
    SENT_OCTETS = 3
    DISCARDED = 4
    LOST = 5
    FULL = 6
    EARLY = 7
    NO_STORE = 8
    DUPLICATED = 9
    CORRUPTED = 10
    HELD_BACK = 11
    BACKGROUND = 12
    BACKGROUND_DROPPED = 13
    LATE = 14  # Released after its tick for want of memory or of the engine's time; not for a line that was busy.
    WAITED = 15  # Released after its tick because the line was busy with another frame.
    MARKED = 16  # By ECN, counted when they are served; those among them that are sent.


class ClassGauge(IntEnum):
    """Words of a class after its counters: what is now, or was at most since the start."""

    QUEUE_FRAMES = 17
    QUEUE_OCTETS = 18
    QUEUE_MOST = 19  # Frames.
    DELAY_LEAST = 20  # Ticks, SFD to SFD as due; all ones before the first frame.
    DELAY_MOST = 21
    LATE_MOST = 22  # Ticks.


COUNTER_WORDS: Final = 64  # Of a class: the counters, then a histogram of delays from word HISTOGRAM_WORD.
HISTOGRAM_WORD: Final = 32
HISTOGRAM_BINS: Final = 32  # Bin b: delays of 2^(b-1) to 2^b - 1 ticks, SFD to SFD as due; bin 0: none.
