# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Says how long the frames of a stream are: always the same, in steps, at random or by a table. Octets without FCS."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from liteprobe.cores.formats import LIST_ENTRIES_MAX, MAX_LENGTH, MIN_LENGTH
from liteprobe.host.base.document import (
    ByShape,
    DocumentName,
    Entries,
    Key,
    Made,
    OneOf,
    Plain,
    Schema,
    Section,
    Several,
    Whole,
    WordOr,
    check_fields,
    key,
    keys_of,
)
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.validate import validated

if TYPE_CHECKING:
    import yaml

ORDERS = ("cyclic", "random")
LENGTH = Whole(MIN_LENGTH, MAX_LENGTH, note=" octets without FCS")
LEAST, GREATEST = "The shortest; with `greatest`.", "The longest."


@dataclass(frozen=True)
class _Weights(Plain):
    """A mapping of lengths to weights."""

    weight = Whole(1, LIST_ENTRIES_MAX)
    written = "a mapping of lengths to weights of 1 to 64 each, which in lowest terms add up to 64 at most"

    def read(self, node: "yaml.Node", name: str, source: DocumentName) -> dict[int, int]:
        """Return the mapping."""
        if node.id != "mapping" or not node.value:
            raise source.at(node, f"'{name}' is {self.written}, like {{60: 7, 590: 4, 1514: 1}}")
        found: dict[int, int] = {}
        for length_node, value in node.value:
            number = LENGTH.read(length_node, "length", source)
            if number in found:
                raise source.at(length_node, f"length {number} has two weights: leave out one")
            found[number] = self.weight.read(value, "weight", source)
        return found

    def schema(self) -> Schema:
        """Return its JSON Schema."""
        return {
            "type": "object",
            "propertyNames": {"pattern": "^[0-9]+$"},
            "additionalProperties": self.weight.schema(),
            "minProperties": 1,
        }


@validated
@dataclass(frozen=True)
class Fixed:
    """All frames have the same length."""

    length: int = key("length", LENGTH, "Octets of a frame without FCS.")

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def least(self) -> int:
        """Length of the shortest frame."""
        return self.length

    @property
    def greatest(self) -> int:
        """Length of the longest frame."""
        return self.length

    @property
    def cycle(self) -> tuple[int, ...]:
        """Lengths until they come again."""
        return (self.length,)

    @property
    def mean(self) -> Fraction:
        """Mean length."""
        return Fraction(self.length)


@validated
@dataclass(frozen=True)
class Stepped:
    """Each frame is ``step`` longer than the one before; the least length follows when that were above the greatest."""

    least: int = key("least", LENGTH, LEAST)
    greatest: int = key("greatest", LENGTH, GREATEST)
    step: int = key(
        "step",
        Whole(1, 2**14 - 1),
        "Each frame is so much longer than the one before, and the least follows the greatest.",
        1,
    )

    def __post_init__(self) -> None:
        _check_order(self)

    @property
    def cycle(self) -> tuple[int, ...]:
        """Lengths until they come again."""
        return tuple(range(self.least, self.greatest + 1, self.step))

    @property
    def mean(self) -> Fraction:
        """Mean length."""
        return Fraction(sum(self.cycle), len(self.cycle))


@validated
@dataclass(frozen=True)
class RandomLength:
    """Each length from the least to the greatest is as likely as any other.

    Limits: 2^16 values of a random number are shared by the lengths, so that one is at most 1/7 likelier than another.
    """

    least: int = key("least", LENGTH, LEAST)
    greatest: int = key("greatest", LENGTH, GREATEST)

    def __post_init__(self) -> None:
        _check_order(self)

    @property
    def cycle(self) -> None:
        """None: they come in no order."""
        return None

    @property
    def mean(self) -> Fraction:
        """Mean length."""
        return Fraction(self.least + self.greatest, 2)


@validated
@dataclass(frozen=True)
class Lengths:
    """Frames have the lengths of a table, from its first to its last and again, or drawn at random."""

    #: 1 to 64 lengths, 60 to 9000 each; one that comes n times is n times as frequent. See ``weighted``.
    entries: tuple[int, ...]
    random: bool = False  # Each frame draws an entry.

    def __post_init__(self) -> None:
        if not 1 <= len(self.entries) <= LIST_ENTRIES_MAX:
            raise UsageError(f"a table of {len(self.entries)} lengths is out of range: give 1 to {LIST_ENTRIES_MAX}")
        for length in self.entries:
            LENGTH.check(length, "length")

    @property
    def least(self) -> int:
        """Length of the shortest frame."""
        return min(self.entries)

    @property
    def greatest(self) -> int:
        """Length of the longest frame."""
        return max(self.entries)

    @property
    def cycle(self) -> tuple[int, ...] | None:
        """Lengths until they come again; None: they are drawn."""
        return None if self.random else self.entries

    @property
    def mean(self) -> Fraction:
        """Mean length."""
        return Fraction(sum(self.entries), len(self.entries))


Length = Fixed | Stepped | RandomLength | Lengths


@validated
def weighted(weights: Mapping[int, int], random: bool = False) -> Lengths:
    """Return the table in which each length comes as often as its weight says, spread as evenly as can be.

    ``weights``: length (octets without FCS) to weight, 1 or more; divided by their greatest common divisor they add up
    to 64 at most; ``random``: each frame draws an entry.
    """
    if any(weight < 1 for weight in weights.values()):
        raise UsageError(
            f"a weight of {min(weights.values())} is out of range: give 1 or more, or leave the length out"
        )
    divisor = math.gcd(*weights.values()) if weights else 1
    counts = {length: weight // divisor for length, weight in weights.items()}
    total = sum(counts.values())
    if total > LIST_ENTRIES_MAX:
        raise UsageError(f"weights add up to {total} entries: give smaller ones, {LIST_ENTRIES_MAX} at most in all")
    # Each turn all gain their weight, and the one with most pays for the turn.
    credit = dict.fromkeys(counts, 0)
    entries = []
    for _ in range(total):
        for length, count in counts.items():
            credit[length] += count
        richest = max(credit, key=credit.__getitem__)
        credit[richest] -= total
        entries.append(richest)
    return Lengths(tuple(entries), random)


#: The simple Internet mix, 7 : 4 : 1 packets of IP of 40 (padded to the shortest frame), 576 and 1500 octets.
IMIX = weighted({60: 7, 590: 4, 1514: 1})


def _check_order(length: Stepped | RandomLength) -> None:
    check_fields(length, " of a length")
    if length.least > length.greatest:
        raise UsageError(f"the least length {length.least} is above the greatest, {length.greatest}: exchange them")


# In documents ------------------------------------------------------------------------------------------

TABLE = WordOr(OneOf(("imix",)), Several(LENGTH, LIST_ENTRIES_MAX))
LENGTH_TABLE = Section(
    "length",
    {
        **{name: replace(one, is_needed=False) for name, one in keys_of(Stepped).items()},
        "weights": Key(_Weights(), "In the place of `least` and `greatest`: how often each length comes."),
        "table": Key(TABLE, "In the place of `weights`: the lengths one after the other, or `imix`."),
        "order": Key(OneOf(ORDERS), "`random`: each frame draws its length.", "cyclic"),
    },
)


def _length_of(given: str | int | tuple[int, ...] | Entries) -> Length:
    if given == "imix":
        return IMIX
    if isinstance(given, int):
        return Fixed(given)
    if not isinstance(given, Entries):
        return Lengths(tuple(int(one) for one in given))
    values, is_random = given.values, given.get("order") == "random"
    for name in ("weights", "table"):
        for other in ("least", "greatest", "step", "weights", "table"):
            if name != other:
                given.refuse_both((name, other), "length")
    if "weights" in values:
        return weighted(values["weights"], is_random)
    if "table" in values:
        return Lengths(IMIX.entries if values["table"] == "imix" else values["table"], is_random)
    if not {"least", "greatest"} <= values.keys():
        raise UsageError("a length needs 'least' and 'greatest', or 'weights', or 'table': give one of these")
    if not is_random:
        return Stepped(values["least"], values["greatest"], values.get("step", 1))
    given.refuse_both(("step", "order"), "length of random order")
    return RandomLength(values["least"], values["greatest"])


def _written(length: Length) -> Any:
    match length:
        case Fixed(one):
            return one
        case Stepped(least, greatest, step):
            return {"least": least, "greatest": greatest, "step": step}
        case RandomLength(least, greatest):
            return {"least": least, "greatest": greatest, "order": "random"}
        case Lengths(entries, random):
            table: Any = "imix" if entries == IMIX.entries else entries
            return {"table": table, "order": "random"} if random else table


LENGTHS = Made(
    ByShape(WordOr(OneOf(("imix",)), ByShape(LENGTH, several=Several(LENGTH, LIST_ENTRIES_MAX))), LENGTH_TABLE),
    _length_of,
    _written,
)
