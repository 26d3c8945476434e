# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Judges results by conditions like ``lost == 0`` or ``p99 < 10us``: held, not held, or unknown where an error bar crosses.

A condition names a figure, a comparison and a limit with its unit. Counts, and the ratio of loss, are of the whole run; any
other figure must hold of every part (stream, port, class, program), or of the one that stands before it: ``voice.p99 < 10us``.
"""

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from xml.etree import ElementTree

from liteprobe.host.base.errors import ExpectationError, UndecidedError, UsageError, nearest
from liteprobe.host.base.text import safe
from liteprobe.host.base.units import PACKET_RATES, PER_CENT, PREFIXES, RATES, TIMES, Factors, quantity, with_unit
from liteprobe.host.measure.percentiles import Bounds, Measured

Value = int | Measured | None
Values = Mapping[str, Value]

DELAYS = (
    "least",
    "mean",
    "std",
    "p50",
    "p99",
    "p99_9",
    "most",
)  # Figures of delays (ns), which the error of a clock widens.
#: Counts, whose sum over all parts is that of the whole.
COUNTS = (
    "sent", "received", "lost", "duplicated", "reordered", "waited", "late", "bit_errors", "checked_bits", "octets",
    "underruns", "edges", "rejected", "missing", "spurious", "glitches", "faults", "unlocked", "passed", "failed",
    "not_done", "refused", "discarded", "full", "early", "no_store", "corrupted", "marked", "events",
)  # fmt: skip
OF_WHOLE = (*COUNTS, "loss_ratio")
SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
#: Other words for figures.
WORDS = {
    "p99.9": "p99_9", "min": "least", "max": "most", "avg": "mean", "median": "p50", "loss": "loss_ratio", "dropped": "lost",
    "dup": "duplicated", "reord": "reordered", "throughput": "rate", "ber": "bit_error_ratio",
}  # fmt: skip
_CONDITION = re.compile(r"\s*(.+?)\s*(<=|>=|==|!=|<|>)\s*(.+?)\s*", re.DOTALL)


@dataclass(frozen=True)
class Kind:
    """A kind of figures: units of limits, an example, and in which a value is shown."""

    units: Factors
    example: str
    shown: Callable[[Fraction], str]
    unit: str = ""  # Of values, and of limits once they are read.


def _with(units: Factors) -> Callable[[Fraction], str]:
    return lambda value: "-" * (value < 0) + with_unit(abs(value), units, 3)


TIME = Kind(TIMES, "10us", _with(TIMES), "ns")
RATIO = Kind({"": 1, **PER_CENT}, "0.1%", lambda value: f"{float(value):.6g}")
RATE = Kind(RATES, "900Mbit", _with({f"{prefix}b/s": size for prefix, size in PREFIXES.items()}), "b/s")
FRAMES = Kind(PACKET_RATES, "20kpps", _with({f"{prefix}pps": size for prefix, size in PREFIXES.items()}), "1/s")
COUNT = Kind(PREFIXES, "0", lambda value: f"{int(value):,}" if value.denominator == 1 else f"{float(value):,.6g}")
KINDS = {
    **dict.fromkeys((*DELAYS, "jitter", "bound", "offset", "pdv", "buffer", "recovery", "reset"), TIME),
    **dict.fromkeys(("rate_ppb", "burst"), COUNT),
    "rate": RATE,
    "capacity": RATE,
    "fps": FRAMES,
}
NAMES = (*COUNTS, *KINDS, "loss_ratio", "bit_error_ratio")


def kind_of(name: str) -> Kind:
    """Return the kind of a figure."""
    return RATIO if name.endswith("_ratio") else KINDS.get(name, COUNT)


@dataclass(frozen=True)
class Condition:
    """Compares a figure with a limit.

    >>> Condition.of("p99 < 10us").holds(Measured(9000.0, Bounds(8000, 9999)))
    True
    >>> print(Condition.of("voice.p99 < 10us").holds(Measured(9999.0, Bounds(9000, 10_500))))
    None
    """

    text: str  # As it was given.
    part: str  # Stream, port, class or program; empty: all of them.
    name: str  # Of the figure.
    sign: str
    limit: Fraction  # In ns, b/s, frames a second, or as a number.

    @classmethod
    def of(cls, text: str) -> "Condition":
        """Read a condition; raises UsageError, which says what to write."""
        found = _CONDITION.fullmatch(text)
        if not found:
            raise UsageError(
                f"'{text}' is not a condition: write it like 'lost == 0' or 'p99 < 10us', with one of {' '.join(SIGNS)}"
            )
        part, name = _figure(found[1])
        if not name:
            word = found[1].rpartition(".")[2]
            raise UsageError(f"there is no figure '{word}' for '{text}': {nearest(word, NAMES)}")
        kind = kind_of(name)
        limit = Fraction(0) if re.fullmatch(r"[+-]?0+(\.0*)?", found[3]) else quantity(found[3], kind.units)
        if limit is None:
            raise UsageError(
                f"'{found[3]}' is not a limit for {name}: write it like '{name} {found[2]} {kind.example}'"
            )
        return cls(text.strip(), part, name, found[2], limit)

    def holds(self, value: Value) -> bool | None:
        """Return whether a value holds it; None: its error bar crosses the limit, or it isn't known."""
        if value is None:
            return None
        bounds = value.bounds if isinstance(value, Measured) else Bounds(value, value)
        least, most = bounds.least, bounds.most
        if self.sign in ("==", "!="):
            is_equal = False if not least <= self.limit <= most else True if least == most else None
            return is_equal if is_equal is None or self.sign == "==" else not is_equal
        ends = {SIGNS[self.sign](end, self.limit) for end in (least, most)}
        return ends.pop() if len(ends) == 1 else None

    def shown(self, value: Value) -> str:
        """Return a value in words, with its bounds where they differ."""
        kind = kind_of(self.name)
        if value is None:
            return "not known"
        bounds = value.bounds if isinstance(value, Measured) else Bounds(value, value)
        if bounds.least == bounds.most:
            return kind.shown(Fraction(value))
        ends = (
            "unbounded" if abs(end) == float("inf") else kind.shown(Fraction(end))
            for end in (bounds.least, bounds.most)
        )
        return f"{kind.shown(Fraction(value))} ({' to '.join(ends)})"


@dataclass(frozen=True)
class Check:
    """A condition, and what became of it."""

    condition: Condition
    holds: bool | None  # None: unknown.
    said: str  # The figures that decided, in words.
    is_crossed: bool = False  # Unknown because an error bar crosses the limit, not because nobody measured it.

    @property
    def word(self) -> str:
        """Whether it held, in a word."""
        return {True: "held", False: "not held", None: "unknown"}[self.holds]

    @property
    def line(self) -> str:
        """All of it in a line."""
        return f"{self.condition.text}: {self.word}: {self.said}"


@dataclass(frozen=True)
class Judgement:
    """Holds what became of all conditions; true where all of them held.

    >>> verdict = judge(["lost == 0", "p99 < 10us"], {"train": {"p99": Measured(9e3, Bounds(9e3, 9e3))}}, {"lost": 2})
    >>> verdict.exit_code, [check.word for check in verdict.checks]
    (4, ['not held', 'held'])
    """

    checks: tuple[Check, ...]

    def __bool__(self) -> bool:
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """Exit code of a command: 0 all held, 4 one didn't, 5 one is unknown."""
        found = [check.holds for check in self.checks]
        return ExpectationError.exit_code if False in found else UndecidedError.exit_code if None in found else 0

    def require(self) -> None:
        """Raise ExpectationError where a condition didn't hold, UndecidedError where one is unknown."""
        wrong = [check for check in self.checks if not check.holds]
        if wrong:
            kind = ExpectationError if self.exit_code == ExpectationError.exit_code else UndecidedError
            hint = "; give a limit outside of the error bar, or be lenient" * any(check.is_crossed for check in wrong)
            raise kind("; ".join(check.line for check in wrong) + hint * (kind is UndecidedError))

    def document(self) -> list[dict[str, Any]]:
        """Return it as what JSON can hold: ``holds`` is null where it is unknown."""
        return [{"condition": one.condition.text, "holds": one.holds, "said": one.said} for one in self.checks]

    def junit(self, suite: str) -> str:
        """Return it as a file of JUnit: a case for each condition, which failed, or has an error where it is unknown."""
        kinds = {True: "", False: "failure", None: "error"}
        return junit(suite, [(check.condition.text, kinds[check.holds], check.line) for check in self.checks])


def judge(
    conditions: Iterable[str | Condition], parts: Mapping[str, Values], whole: Values, lenient: bool = False
) -> Judgement:
    """Judge figures: those of each part by their names, and of the whole; ``lenient``: a crossed limit counts as held.

    >>> crossed = {"voice": {"p99": Measured(10.0, Bounds(5, 15))}}
    >>> judge(["p99 < 10ns"], crossed, {}).exit_code, judge(["p99 < 10ns"], crossed, {}, lenient=True).exit_code
    (5, 0)
    """
    return Judgement(
        tuple(
            _judged(one if isinstance(one, Condition) else Condition.of(one), parts, whole, lenient)
            for one in conditions
        )
    )


def junit(suite: str, cases: Sequence[tuple[str, str, str]]) -> str:
    """Return a file of JUnit; ``cases``: name, ``failure``, ``error`` or nothing, and what is said.

    >>> print(junit("run", [("lost == 0", "", "lost is 0")]).splitlines()[2])
      <testsuite name="run" tests="1" failures="0" errors="0">
    """
    counts = {f"{kind}s": str(sum(one[1] == kind for one in cases)) for kind in ("failure", "error")}
    root = ElementTree.Element("testsuites")
    made = ElementTree.SubElement(root, "testsuite", {"name": safe(suite), "tests": str(len(cases)), **counts})
    for name, kind, said in cases:
        case = ElementTree.SubElement(made, "testcase", classname=safe(suite), name=safe(name))
        if kind:
            ElementTree.SubElement(case, kind, message=safe(said)).text = safe(said)
        else:
            ElementTree.SubElement(case, "system-out").text = safe(said)
    ElementTree.indent(root)
    return ElementTree.tostring(root, "unicode", xml_declaration=True) + "\n"


# # #


def _figure(text: str) -> tuple[str, str]:
    """Return the part and the name of a figure; no name where there is no such figure."""
    places = [-1, *(at for at, letter in enumerate(text) if letter == ".")]
    for at in places:
        name = WORDS.get(text[at + 1 :], text[at + 1 :])
        if name in NAMES:
            return text[: max(at, 0)], name
    return "", ""


def _judged(condition: Condition, parts: Mapping[str, Values], whole: Values, lenient: bool) -> Check:
    name = condition.name
    if condition.part and condition.part not in parts:
        return Check(
            condition, None, f"there is no '{condition.part}': {nearest(condition.part, list(parts) or ['none'])}"
        )
    if condition.part:
        values = {condition.part: parts[condition.part].get(name)}
    elif name in OF_WHOLE:
        values = {"": whole.get(name)}
    else:
        values = {part: of[name] for part, of in parts.items() if name in of}
    found = {part: condition.holds(value) for part, value in values.items()}
    holds = False if False in found.values() else None if None in found.values() or not found else True
    shown = [part for part, one in found.items() if one is holds][:3] if holds is not True else list(found)
    ranked = sorted(shown, key=lambda part: values[part] or 0, reverse=condition.sign.startswith("<"))[
        : 1 if holds else 3
    ]
    said = ", ".join(
        f"{part + ': ' if len(values) > 1 else ''}{name} is {condition.shown(values[part])}" for part in ranked
    )
    is_crossed = (
        holds is None and all(values[part] is not None for part, one in found.items() if one is None) and bool(found)
    )
    if is_crossed and lenient:
        return Check(condition, True, f"{said}, whose error bar crosses the limit (--lenient)")
    return Check(
        condition,
        holds,
        (said or "nothing was measured") + ", whose error bar crosses the limit" * is_crossed,
        is_crossed,
    )
