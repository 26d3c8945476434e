# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Translates the words of netem, as tc-netem(8) has them, into a network, and says what differs.

Source: tc-netem(8) and tc/q_netem.c of iproute2; net/sched/sch_netem.c of Linux.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from liteprobe.cores.formats import LINE_RATE_BPS, MIN_LENGTH, TICK_NS, slot_octets
from liteprobe.cores.formats.emulate import WAIT_MAX
from liteprobe.host.base.errors import UsageError, nearest
from liteprobe.host.base.units import PER_CENT, TC_DECIMAL, TC_RATES, TC_TIMES, WHOLE, Factors, Number, split
from liteprobe.host.base.validate import validated
from liteprobe.host.traffic.network.network import (
    LONGEST_USUAL,
    OVERHEAD_MAX,
    OVERHEAD_MIN,
    SEED_MAX,
    Bernoulli,
    Direction,
    GilbertElliott,
    Jitter,
    Loss,
    Network,
    Queue,
    Reorder,
    TrafficClass,
)

WORD_LEAST = 3  # Letters of an option that are taken for the whole word.
SHARES = {**PER_CENT, "": PER_CENT["%"]}
STORE_OVERHEAD = Fraction(64, 61)  # Of the octets that the store is divided for, over those of frames.
LIMIT = 1000  # Frames, of tc where none is given.
FRAMES_A_SECOND = Fraction(LINE_RATE_BPS, 8 * slot_octets(MIN_LENGTH))  # Of the shortest.
#: What ``tc qdisc show`` prints before the first option: how many words with it.
HEAD = {"root": 1, "ingress": 1, "offloaded": 1, "deleted": 1, "dev": 2, "parent": 2, "handle": 2, "refcnt": 2}
#: Other disciplines of tc, and what a document has in their place.
DISCIPLINES = {
    "tbf": "'bucket' with 'rate' and 'burst', and 'queue'",
    **dict.fromkeys(
        ("htb", "hfsc", "drr"), "'classes' with 'match' and 'weight', 'service: weighted', 'bucket' as ceiling"
    ),
    "prio": "'classes' with 'match', the first served first",
    **dict.fromkeys(("pfifo", "bfifo", "pfifo_fast", "fq", "sfq"), "'rate' and 'queue'"),
    **dict.fromkeys(("red", "codel", "fq_codel", "pie", "fq_pie", "cake"), "'rate' and 'queue' with what drops early"),
}


class NetemWords:
    """The words of one direction, taken from the first to the last.

    ``text``: what comes up to the word ``netem`` is skipped, and what ``tc qdisc show`` prints before and after the options.
    """

    def __init__(self, text: str) -> None:
        words = text.split()
        self._words = words[words.index("netem") + 1 :] if "netem" in words else words
        if "Sent" in self._words:
            self._words = self._words[: self._words.index("Sent")]  # Of ``tc -s``.
        self._next = 0
        self.notes: list[str] = []
        while self.following in HEAD or re.fullmatch("[0-9a-f]*:[0-9a-f]*", self.following):
            self._next += HEAD.get(self.following, 1)

    @property
    def following(self) -> str:
        """The next word, "" after the last."""
        return self._words[self._next] if self._next < len(self._words) else ""

    @property
    def has_number(self) -> bool:
        """Whether a number follows."""
        return bool(re.match(r"[-+.]?[0-9]", self.following))

    def skip(self, *words: str) -> str:
        """Take the next word where it is one of these; return it, else ""."""
        return self.word("") if self.following in words else ""

    def option(self, options: Iterable[str]) -> str:
        """Return the next option; three letters or more of one are enough, where they are no other's."""
        word = self.word("an option")
        names = tuple(options)
        close = [name for name in names if len(word) >= WORD_LEAST and name.startswith(word)]
        discipline = word if word != "qdisc" else self.following
        if discipline in DISCIPLINES:
            raise UsageError(
                f"'{discipline}' is another discipline than netem: write a document with {DISCIPLINES[discipline]} in its place "
                "(docs/emulator.md)"
            )
        if word not in names and len(close) != 1:
            raise UsageError(f"netem has no option '{word}': {nearest(word, names)}")
        return word if word in names else close[0]

    def word(self, what: str) -> str:
        """Return the next word; ``what``: what it is, for messages."""
        if self._next >= len(self._words):
            raise UsageError(f"netem's words end where {what} is missing: give it")
        self._next += 1
        return self._words[self._next - 1]

    def time_ns(self, what: str) -> Fraction:
        """Return a time (ns)."""
        time_ns = self._quantity(what, TC_TIMES, "a time like 20ms; without a unit it is us")
        if time_ns >= WAIT_MAX * TICK_NS:
            raise UsageError(f"{what} of {float(time_ns / 10**9):g} s is out of range: give less than 8.59 s")
        return time_ns

    def rate_bps(self) -> Fraction:
        """Return a rate (b/s)."""
        if self.following.endswith("%"):
            raise UsageError(
                f"a rate of '{self.following}' is a share of an interface that isn't known here: give b/s, like 10mbit"
            )
        return self._quantity("a rate", TC_RATES, "a rate like 10mbit; without a unit it is b/s")

    def share(self, what: str) -> Fraction:
        """Return per cent as a share."""
        share = self._quantity(what, SHARES, "per cent, like 1%")
        if share > 1:
            raise UsageError(f"{what} of {float(100 * share):g} % is out of range: give 0% to 100%")
        return share

    def whole(self, what: str, most: int, least: int = 0) -> int:
        """Return a whole number from ``least`` to ``most``."""
        word = self.word(what).lower()
        digits = word.removeprefix("-") if least < 0 else word
        number = int(word, 16 if digits.startswith("0x") else 10) if re.fullmatch(WHOLE, digits) else least - 1
        if not least <= number <= most:
            raise UsageError(f"'{word}' is not {what} of netem: give a whole number, {least} to {most}")
        return number

    def _quantity(self, what: str, units: Factors, form: str) -> Fraction:
        word = self.word(what)
        found = split(re.sub("secs$", "sec", word.lower()), units, TC_DECIMAL, {})
        if not found:
            raise UsageError(f"'{word}' is not {what} of netem: give {form}")
        if word == found[0] and Fraction(word):
            unit = {TC_TIMES[""]: "us", TC_RATES[""]: "b/s", SHARES[""]: "%"}[found[1]]
            self.notes.append(f"'{word}' ({what}) has no unit: it is {word} {unit}, as tc takes it.")
        return Fraction(found[0]) * found[1]


DISTRIBUTIONS = ("uniform", "normal", "pareto", "paretonormal")
STATE_NAMES = ("p13", "p31", "p32", "p23", "p14")
GE_NAMES = ("p", "r", "1-h", "1-k")


@validated
def from_netem(there: str, back: str | None = None, expected_bps: Number | None = None) -> tuple[Network, list[str]]:
    """Return the network that netem's words stand for, and what differs from netem, a sentence each.

    Raises UsageError when the words are wrong, or netem does what the probe can't.

    Parameters
    ----------
    there : str
        What follows ``netem`` on a command line of tc; what comes up to that word is skipped.
    back : str or None
        Of the way back; None: nothing is done to it.
    expected_bps : number or None
        What comes at most on each of these ways, for the division of the probe's store.
    """
    one = _Translator(there).translated()
    other = _Translator(back).translated() if back is not None else None
    notes = dict.fromkeys([*one.notes, *(other.notes if other else [])])
    seeds = {each.seed for each in (one, other) if each and each.seed is not None}
    if len(seeds) > 1:
        raise UsageError("both directions have a 'seed' of their own, and a network has one: give one of them")
    for each in (one, other):
        if each and expected_bps is not None:
            each.one = replace(each.one, expected_bps=expected_bps)
    network = Network(one.direction, other.direction if other else Direction(), name="netem")
    return (replace(network, seed=seeds.pop()) if seeds else network), list(notes)


@dataclass
class _Found:
    """Collects what the words of a direction stand for."""

    one: TrafficClass = field(default_factory=lambda: TrafficClass(overhead=0))
    rate_bps: Fraction | None = None
    limit: int | None = None
    seed: int | None = None
    delay_ns: Fraction = Fraction(0)
    spread_ns: Fraction = Fraction(0)
    delay_correlation: Fraction = Fraction(0)
    distribution: str | None = None
    reorder: Fraction | None = None
    gap: int | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def direction(self) -> Direction:
        """The direction."""
        return Direction(self.rate_bps, classes=(self.one,))


class _Translator:
    """Translates the words of one direction."""

    def __init__(self, text: str) -> None:
        self._words = NetemWords(text)
        self._found = _Found()
        self._given: set[str] = set()
        self._options: dict[str, Callable[[], None]] = {
            "limit": self._limit,
            "delay": self._delay,
            "latency": self._delay,
            "distribution": self._distribution,
            "loss": self._loss,
            "drop": self._loss,
            "corrupt": self._corrupt,
            "duplicate": self._duplicate,
            "reorder": self._reorder,
            "gap": self._gap,
            "rate": self._rate,
            "slot": self._slot,
            "ecn": self._ecn,
            "seed": self._seed,
        }

    def translated(self) -> _Found:
        """Return what they stand for."""
        if not self._words.following:
            raise UsageError('netem needs options: give some, like "delay 20ms loss 1%"')
        while self._words.following:
            name = self._words.option(self._options)
            if self._options[name] in [self._options[one] for one in self._given]:
                raise UsageError(f"netem's '{name}' is given twice: leave out one")
            self._given.add(name)
            self._options[name]()
        self._join_delay()
        self._join_reorder()
        self._join_queue()
        one, found = self._found.one, self._found
        found.notes += self._words.notes
        if one.loss and one.duplicate:
            found.notes.append("A frame that is both lost and duplicated leaves once with netem, and not at all here.")
        return found

    # Options -------------------------------------------------------------------------------------------

    def _limit(self) -> None:
        self._found.limit = self._words.whole("a limit", 2**32 - 1)

    def _delay(self) -> None:
        found = self._found
        found.delay_ns = self._words.time_ns("a delay")
        if self._words.has_number:
            found.spread_ns = self._words.time_ns("a jitter")
            if self._words.has_number:
                found.delay_correlation = self._words.share("a correlation")
        if self._words.skip("distribution"):
            self._given.add("distribution")
            self._distribution()

    def _distribution(self) -> None:
        name = self._words.word("a distribution")
        if name not in DISTRIBUTIONS:
            raise UsageError(
                f"the distribution '{name}' of netem is not known here: give one of {', '.join(DISTRIBUTIONS)}, or its "
                "delays as 'table' of a document"
            )
        self._found.distribution = name

    def _loss(self) -> None:
        word = self._words.skip("random", "state", "gemodel")
        loss: Loss
        if word == "gemodel":
            loss = self._gilbert()
        elif word == "state":
            loss = self._states()
        else:
            loss = self._random_loss()
        self._found.one = replace(self._found.one, loss=loss)

    def _random_loss(self) -> Loss:
        share = self._words.share("a loss")
        correlation = self._words.share("a correlation") if self._words.has_number else Fraction(0)
        if not correlation or share in (0, 1):
            return Bernoulli(share)
        if correlation == 1:
            raise UsageError("with a correlation of 100% the first frame decides for all: give less")
        self._found.notes.append(
            f"A loss with a correlation of {float(100 * correlation):g} % is Gilbert's model here, with that "
            "correlation from frame to frame and the loss that is asked for; netem's own correlation changes the "
            "loss, and tc-netem(8) advises against it."
        )
        return GilbertElliott(share * (1 - correlation), (1 - share) * (1 - correlation))

    def _several(self, names: tuple[str, ...]) -> list[Fraction]:
        found: list[Fraction] = []
        for name in names:  # ``tc qdisc show`` prints their names, too.
            if not self._words.skip(name) and found and not self._words.has_number:
                break
            found.append(self._words.share(f"'{name}'"))
        return found

    def _gilbert(self) -> GilbertElliott:
        given = self._several(GE_NAMES)
        defaults = [given[0], 1 - given[0], Fraction(1), Fraction(0)]
        p, r, bad, good = [*given, *defaults[len(given) :]]
        self._found.notes.append(
            "netem draws the loss of a frame by the state before it moves, the probe by the state that it moves to: "
            "losses and bursts have the same distributions, a frame later or earlier."
        )
        return GilbertElliott(p, r, 1 - bad, 1 - good)

    def _states(self) -> GilbertElliott:
        given = self._several(STATE_NAMES)
        if len(given) > 2 and (given[2] or (len(given) > 4 and given[4])):
            raise UsageError(
                "netem's 'state' with p32 or p14 has three or four states, and the probe has two: give p13 and p31, or "
                "'gemodel'"
            )
        p13 = given[0]
        return GilbertElliott(p13, given[1] if len(given) > 1 else 1 - p13)

    def _corrupt(self) -> None:
        self._found.one = replace(self._found.one, corrupt=self._words.share("a share to corrupt"), is_mended=True)
        self._correlation("corrupt")
        self._found.notes.append(
            "A corrupted frame has one wrong bit anywhere in it and leaves with a good FCS, as from a host with "
            "netem; checksums of IP, TCP and UDP show the fault."
        )

    def _duplicate(self) -> None:
        self._found.one = replace(self._found.one, duplicate=self._words.share("a share to duplicate"))
        self._correlation("duplicate")
        self._found.notes.append(
            "A duplicate leaves right after its frame; with netem it has a delay of its own, and takes time of the 'rate'."
        )

    def _reorder(self) -> None:
        if self._words.following == "gap":
            return
        self._found.reorder = self._words.share("a share to reorder")
        self._correlation("reorder")

    def _gap(self) -> None:
        self._found.gap = self._words.whole("a gap", 2**32 - 1)

    def _rate(self) -> None:
        rate = self._words.rate_bps()
        has_more = self._words.skip("packetoverhead") or self._words.has_number
        overhead = self._overhead() if has_more else 0
        self._found.rate_bps = rate
        self._found.one = replace(self._found.one, overhead=overhead)

    def _overhead(self) -> int:
        overhead = self._words.whole("a packet overhead", OVERHEAD_MAX, OVERHEAD_MIN)
        if (self._words.skip("cellsize") or self._words.has_number) and (
            cell := self._words.whole("a cell size", 2**32 - 1)
        ):
            raise UsageError(
                f"cells of {cell} octets can't be done: the link counts octets. Give a packet overhead that takes as much, or "
                "a lower rate"
            )
        if self._words.skip("celloverhead") or self._words.has_number:
            self._words.word("a cell overhead")
        return overhead

    def _slot(self) -> None:
        raise UsageError(
            "netem's 'slot' can't be done: leave it out. Where the probe has memory for traces (liteprobe emulate --limits), "
            "give a document with a bandwidth trace, which delivers octets at set times"
        )

    def _ecn(self) -> None:
        raise UsageError(
            "netem's 'ecn' can't be done: it marks what 'loss' would drop, and the probe marks what a queue would. Leave it out, "
            "or give 'ecn' of 'codel', 'pie' or 'red' of a queue in a document"
        )

    def _seed(self) -> None:
        self._found.seed = self._words.whole("a seed", SEED_MAX)
        self._found.notes.append(
            "The seed gives other draws than netem's: the same on each run, but not the same as there."
        )

    def _correlation(self, of: str) -> None:
        """Take a correlation of draws that the probe makes each by itself."""
        if self._words.has_number and (share := self._words.share("a correlation")):
            self._found.notes.append(
                f"The correlation of {float(100 * share):g} % of '{of}' is left out: each frame is drawn by itself, with the "
                "same share."
            )

    # What belongs together -----------------------------------------------------------------------------

    def _join_delay(self) -> None:
        found = self._found
        if found.distribution and not found.spread_ns:
            raise UsageError(
                "netem's 'distribution' needs a jitter: give one, like \"delay 20ms 2ms distribution normal\""
            )
        if found.delay_ns:
            found.one = replace(found.one, delay_ns=found.delay_ns)
        else:
            found.notes.append("Without a delay frames still take the probe's least delay, some microseconds.")
        if not found.spread_ns:
            return
        kind = found.distribution or "uniform"
        found.one = replace(found.one, jitter=Jitter(kind, found.spread_ns, correlation=found.delay_correlation))
        found.notes.append(
            "Jitter doesn't reorder here: a frame waits for the one before it. With netem, frames overtake each other "
            "where the jitter is longer than the time between them."
        )
        found.notes.append(
            "The distribution of delays has 1024 quantiles (netem's tables have 4096), and none is below the probe's "
            "least delay (netem: 0)."
        )
        if kind == "uniform" and not found.distribution:
            found.notes.append("Without 'distribution' delays are uniform, as the kernel does it.")
        if found.delay_correlation:
            found.notes.append(
                f"The correlation of delays is the share of frames ({float(100 * found.delay_correlation):g} %) that "
                "have the delay of the one before: the distribution stays what it is, which netem's averaging changes."
            )

    def _join_reorder(self) -> None:
        """Turn it round: netem lets a share go at once and delays the rest; here the rest is held back."""
        found = self._found
        if found.reorder is None and found.gap is None:
            return
        if not found.delay_ns:
            raise UsageError(
                "netem's 'reorder' needs a delay, which frames that go at once don't have: give 'delay', too"
            )
        gap = found.gap or 1
        share = Fraction(1) if found.reorder is None else found.reorder
        if not share:
            return
        at_once = 1 / (gap - 1 + 1 / share)
        if at_once == 1:
            raise UsageError(
                "with 'reorder 100%', or 'gap 1' alone, all frames go at once: leave out the delay, or give a longer gap or a "
                "smaller share"
            )
        extent, jitter = found.delay_ns, found.one.jitter
        if jitter:  # What is held back has the jitter around the delay: the probe adds what is above the shortest.
            quantiles = jitter.quantiles_ns()
            extent = found.delay_ns + quantiles[0]
            if extent <= 0:
                raise UsageError(
                    "with 'reorder' the jitter must be smaller than the delay: give less jitter, or more delay"
                )
            jitter = replace(jitter, kind="table", spread_ns=0, table_ns=tuple(one - quantiles[0] for one in quantiles))
        found.one = replace(found.one, delay_ns=None, jitter=jitter, reorder=Reorder(1 - at_once, extent))
        found.notes.append(
            f"{float(100 * at_once):g} % of the frames go at once, drawn each by itself, and overtake; the others are "
            "held back by the delay, all of it on top of the probe's least."
        )
        if gap > 1:
            found.notes.append(
                f"'gap {gap}' is in that share: netem lets at least {gap - 1} frames pass between two that overtake, "
                "here it is so on average."
            )
        if found.spread_ns:
            found.notes.append(
                "Frames that overtake have the jitter, too, from the probe's least delay on; with netem they have none."
            )

    def _join_store(self) -> None:
        """Take the limit of what is delayed for what comes at most: netem drops the rest, too."""
        found = self._found
        limit = LIMIT if found.limit is None else found.limit
        quantile = Jitter(found.distribution or "uniform", found.spread_ns).quantiles_ns()[-1] if found.spread_ns else 0
        longest_s = (found.delay_ns + quantile) / 10**9
        if not longest_s:
            if found.limit is not None:
                found.notes.append(f"'limit {limit}' has no effect without 'delay' or 'rate': nothing waits.")
            return
        if limit and (expected := limit * 8 * LONGEST_USUAL / (longest_s * STORE_OVERHEAD)) < LINE_RATE_BPS:
            found.one = replace(found.one, expected_bps=max(Fraction(int(expected)), Fraction(1)))
        if limit < FRAMES_A_SECOND * longest_s:
            found.notes.append(
                f"netem's limit of {limit} frames{' (what tc takes)' * (found.limit is None)} is of those that are delayed, too: "
                f"it drops what comes above {float(limit / longest_s):,.6g} frames/s. The probe's store is divided for as much; it "
                "drops what finds no space (no_store). Give 'limit', or --expected, for another rate."
            )

    def _join_queue(self) -> None:
        found = self._found
        if found.rate_bps is None:
            self._join_store()
            return
        found.one = replace(found.one, queue=Queue(frames=found.limit))
        if found.limit is None:
            found.notes.append(
                "The queue is as long as the probe's store allows; netem's is 1000 frames, those that are delayed among them."
            )
        else:
            found.notes.append(
                f"The limit of {found.limit} frames is of those that wait for the link; netem counts those that are delayed, too."
            )
        if found.spread_ns:
            found.notes.append(
                "Jitter comes after the link here, and doesn't change its queue; netem has it before the link."
            )
