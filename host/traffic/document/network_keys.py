# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The keys of a document of a network, each with unit, range and meaning: reading, schema and page have them from here."""

from fractions import Fraction

from liteprobe.cores.formats import GIANT_LENGTH, LINE_RATE_BPS, MIN_LENGTH, OVERHEAD
from liteprobe.cores.formats.emulate import CLASSES, DELAY_ENTRIES, PATTERN_WORDS
from liteprobe.host.capture.filter.expression import parse
from liteprobe.host.traffic.document.kinds import NAME, Choice, Flag, Quantity, Text, Whole
from liteprobe.host.traffic.document.sections import AnyOf, Either, Key, Named, Section, Several
from liteprobe.host.traffic.network.network import (
    BACKGROUNDS,
    BURST_MAX,
    CHANGES_MAX,
    ENTRIES_MAX,
    FRAMES_MAX,
    JITTERS,
    NUMBER_MAX,
    OCTETS_MAX,
    OVERHEAD_MAX,
    RED_WEIGHT_MAX,
    SEED_MAX,
    SERVICES,
    WEIGHT_MAX,
)

TIMES = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
RATES = {"bit": 1, "k": 10**3, "kbit": 10**3, "M": 10**6, "Mbit": 10**6, "G": 10**9, "Gbit": 10**9}
DELAY_MOST, PAUSE_MOST, CHANGE_MOST = Fraction(8_589_000_000), Fraction(34_359_000_000), Fraction(26 * 86400 * 10**9)

DELAY = Quantity("a time", "a time with ns, us, ms or s, up to 8.589 s", TIMES, DELAY_MOST, may_be_0=True)
SPREAD = Quantity("a time", "a time with ns, us, ms or s, above 0, up to 8.589 s", TIMES, DELAY_MOST)
PAUSE = Quantity("a time", "a time with ns, us, ms or s, up to 34.359 s", TIMES, PAUSE_MOST, may_be_0=True)
AT = Quantity("a time", "a time with ns, us, ms or s, above 0, up to 26 days", TIMES, CHANGE_MOST)
RATE = Quantity("a rate", "a rate with bit, kbit, Mbit or Gbit a second, up to 1Gbit", RATES, Fraction(LINE_RATE_BPS))
BACKGROUND_RATE = Quantity("a rate", "a rate with bit, kbit, Mbit or Gbit a second", RATES, Fraction(10**11))
SHARE = Quantity("a share", "per cent like 12.5%, 0% to 100%", {"%": 1}, Fraction(100), may_be_0=True)
LOAD = Quantity("a share", "per cent of the link, like 80%, above 0%; above 100% too", {"%": 1}, Fraction(100_000))
NONE, LEAST = Choice(("none",)), Choice(("least",))
LENGTH = Whole(MIN_LENGTH, GIANT_LENGTH)
FRAMES = Whole(1, FRAMES_MAX)
BITS = Text("0 and 1, like 00010, in quotes", "[01]+")
MATCH = Text("a filter expression, as of liteprobe capture", r".*\S.*", check=parse)

RED = Section(
    "RED",
    {
        "least": Key(Whole(0, FRAMES_MAX), "Frames of the mean queue from which some are dropped,", is_needed=True),
        "most": Key(Whole(1, FRAMES_MAX), "and from which all are.", is_needed=True),
        "share": Key(SHARE, "Dropped just below `most`; from `least` on the share grows evenly.", is_needed=True),
        "weight": Key(Whole(0, RED_WEIGHT_MAX), "With each frame the mean takes on 2^-weight of the difference.", "9"),
    },
)
QUEUE = Section(
    "queue",
    {
        "frames": Key(FRAMES, "That wait, background too, the one in service not.", "as the store has space for"),
        "octets": Key(Whole(MIN_LENGTH, OCTETS_MAX), "Likewise, without FCS.", "no limit"),
        "red": Key(Either(NONE, RED), "Random early detection."),
    },
)
BUCKET = Section(
    "bucket",
    {
        "rate": Key(RATE, "At which tokens come.", is_needed=True),
        "burst": Key(
            Whole(MIN_LENGTH, OCTETS_MAX),
            "Octets, with `overhead`, that may pass at once: a frame of 1514 octets at least.",
            is_needed=True,
        ),
    },
)
JITTER = Section(
    "jitter",
    {
        "distribution": Key(Choice(JITTERS), "Of the delays.", "normal; table with `table`"),
        "spread": Key(SPREAD, "Half the width of `uniform`, the standard deviation of the others."),
        "table": Key(
            Several(DELAY, DELAY_ENTRIES), "In the place of `spread`: what comes on top of `delay`, in equal shares."
        ),
        "correlation": Key(SHARE, "Share of the frames that have the delay of the one before.", "0%"),
    },
)
LOSS = Section(
    "loss",
    {
        "p": Key(SHARE, "With each frame: from the good to the bad state,", is_needed=True),
        "r": Key(SHARE, "and back.", is_needed=True),
        "h": Key(SHARE, "What the bad state lets pass.", "0%"),
        "k": Key(SHARE, "What the good state lets pass.", "100%"),
    },
)
REORDER = Section(
    "reorder",
    {
        "share": Key(SHARE, "Share of the frames that are held back.", is_needed=True),
        "extent": Key(
            SPREAD, "How long, on top of `delay`; how many frames overtake follows from their rate.", is_needed=True
        ),
    },
)
ENTRY = Section(
    "entry",
    {
        "after": Key(PAUSE, "Since the one before.", is_needed=True),
        "length": Key(LENGTH, "Octets without FCS.", is_needed=True),
    },
)
BACKGROUND = Section(
    "background",
    {
        "kind": Key(Choice(tuple(BACKGROUNDS)), "How its frames follow each other.", is_needed=True),
        "length": Key(LENGTH, "Octets of each, without FCS.", "1514"),
        "rate": Key(BACKGROUND_RATE, "Of its frames with `overhead`; of bursts, within one."),
        "share": Key(LOAD, "In the place of `rate`: a share of the direction's."),
        "interval": Key(PAUSE, "In the place of `rate`: from frame to frame, or the mean."),
        "burst": Key(
            Quantity("a number", "a number from 1", {"": 1}, Fraction(BURST_MAX)),
            "Of `on-off`: frames of a burst; of `random on-off`: their mean.",
        ),
        "pause": Key(PAUSE, "From the last frame of a burst to the next burst, or the mean."),
        "entries": Key(Several(ENTRY, ENTRIES_MAX), "Of `pattern`; they repeat."),
        "phase": Key(PAUSE, "From the start to the first frame; `exponential` draws it.", "0s"),
    },
)
#: What frames of a class meet. In a change, too.
TREATMENT = {
    "delay": Key(AnyOf(LEAST, DELAY), "From the end of its time on the link.", "the least of the probe"),
    "jitter": Key(Either(NONE, JITTER), "How delays differ; frames of a class keep their order.", "none"),
    "queue": Key(Either(FRAMES, QUEUE), "What waits for the link; a number is of frames.", "what the store holds"),
    "weight": Key(Whole(1, WEIGHT_MAX), "Frames in a row, of weighted service.", "1"),
    "bucket": Key(Either(NONE, BUCKET), "Token bucket: a rate of the class's own.", "none"),
    "overhead": Key(
        Whole(0, OVERHEAD_MAX), "Octets of each frame on the link beside those of a capture.", str(OVERHEAD)
    ),
    "loss": Key(Either(SHARE, LOSS), "A share, each frame by itself; or the model of Gilbert and Elliott.", "0%"),
    "loss_pattern": Key(
        AnyOf(NONE, BITS), "1: this frame is lost; the first is the first of the class, and they repeat."
    ),
    "loss_list": Key(
        Several(Whole(0, NUMBER_MAX), PATTERN_WORDS), "In the place of `loss_pattern`: numbers of lost frames, from 0."
    ),
    "loss_late": Key(Flag(), "What is lost takes space in the queue and time of the link.", "false"),
    "duplicate": Key(SHARE, "Share of the frames that leave twice, one right after the other.", "0%"),
    "corrupt": Key(SHARE, "Share of the frames that leave with one wrong bit.", "0%"),
    "mended": Key(Flag(), "The FCS of a corrupted frame is good.", "false"),
    "reorder": Key(Either(NONE, REORDER), "Frames that are held back, so that others overtake them.", "none"),
    "background": Key(Either(NONE, BACKGROUND), "Frames that nobody sends: they take queue and link.", "none"),
    "discard": Key(Flag(), "All frames are dropped.", "false"),
    "expected": Key(
        AnyOf(NONE, RATE), "What comes at most; the store is divided by it.", "what link and bucket let pass"
    ),
}
CLASS = Section(
    "class",
    {
        "name": Key(NAME, "For people: in tables and reports.", is_needed=True),
        "match": Key(MATCH, "Which frames. One class may have none: what no other matches."),
        **TREATMENT,
        "seed": Key(Whole(0, SEED_MAX), "Of its draws.", "from that of the network"),
    },
)
LINK = {
    "rate": Key(AnyOf(NONE, RATE), "Of the link: frames with their `overhead`.", "none: nothing waits"),
    "service": Key(Choice(SERVICES), "`strict`: the first class that waits; `weighted`: in turn.", "strict"),
}
DIRECTION = Section(
    "direction",
    {
        **LINK,
        "trace": Key(NAME, "In the place of `rate`: a file of Mahimahi, beside the document."),
        "classes": Key(
            Several(CLASS, CLASSES), "In the order of their priority; a frame is of the first that matches."
        ),
        **TREATMENT,
    },
)
CHANGED = Section(
    "changed direction",
    {
        **LINK,
        "classes": Key(Named(Section("changed class", TREATMENT)), "By name."),
        **TREATMENT,
    },
)
CHANGE = Section(
    "change",
    {
        "at": Key(AT, "Since the start.", is_needed=True),
        "both": Key(CHANGED, "What changes in both directions."),
        "there": Key(CHANGED, "What changes from port 0 to port 1."),
        "back": Key(CHANGED, "What changes from port 1 to port 0."),
    },
)
NETWORK = Section(
    "network",
    {
        "name": Key(NAME, "For people.", "that of the file"),
        "about": Key(NAME, "For people: what it is, where its figures come from."),
        "seed": Key(Whole(0, SEED_MAX), "Of all draws: the same seed gives the same frames the same fates.", "1"),
        "both": Key(DIRECTION, "Keys of both directions, unless they give their own."),
        "there": Key(DIRECTION, "From port 0 to port 1."),
        "back": Key(DIRECTION, "From port 1 to port 0."),
        "changes": Key(Several(CHANGE, CHANGES_MAX), "What changes when; a change keeps what it doesn't name."),
    },
)

#: In the order of the page.
NETWORK_SECTIONS = (
    NETWORK, DIRECTION, CLASS, QUEUE, RED, BUCKET, JITTER, LOSS, REORDER, BACKGROUND, ENTRY, CHANGE, CHANGED
)  # fmt: skip
