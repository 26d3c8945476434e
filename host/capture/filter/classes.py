# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Several expressions at once, each of which names a channel: of those that match, the first one does."""

from collections.abc import Sequence
from dataclasses import dataclass

from liteprobe.host.capture.filter.boxes import Box, FilterDoesNotFit, boxes_of
from liteprobe.host.capture.filter.expression import Filter, parse
from liteprobe.host.capture.filter.fit import fit
from liteprobe.host.errors import UsageError


@dataclass(frozen=True)
class Rule:
    """An expression that names a channel.

    Parameters
    ----------
    text : str
        The expression.
    channel : int
    probe_ports : int
        Bit n: frames of port n may match.
    """

    text: str
    channel: int
    probe_ports: int


@dataclass(frozen=True)
class RuleFilter(Filter):
    """What the tables hold for several rules.

    Parameters
    ----------
    rules_of_terms : tuple of Rule
        For each term, the rule that it is of.
    """

    rules_of_terms: tuple[Rule, ...] = ()

    def marks(self) -> list[tuple[int | None, int]]:
        """Return of each term the channel that it names, and the ports whose frames may match."""
        return [(rule.channel, rule.probe_ports) for rule in self.rules_of_terms]


def fit_rules(rules: Sequence[Rule]) -> RuleFilter:
    """Return the tables of rules.

    Raises
    ------
    FilterDoesNotFit
        When they can't hold all of them; names the part and the reason.
    UsageError
        When one can't be understood, or no frame can match it.
    """
    boxes: list[Box] = []
    owners: list[Rule] = []
    for rule in rules:
        found = boxes_of(parse(rule.text).tree)
        if not found:
            raise UsageError(f"no frame can be '{rule.text}': give another 'match'")
        boxes += found
        owners += [rule] * len(found)
    text = "; ".join(rule.text for rule in rules)
    try:
        return RuleFilter(text, fit(tuple(boxes), text), rules_of_terms=tuple(owners))
    except FilterDoesNotFit as error:
        advice = "match by what one set of each can say, or use fewer classes"
        raise FilterDoesNotFit(error.part, error.reason, advice) from None
