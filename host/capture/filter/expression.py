# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A filter expression, and what becomes of it: words for the probe, or an answer for each unified header."""

from collections.abc import Sequence
from dataclasses import dataclass

from liteprobe.cores.formats import (
    CHANNELS,
    DESTINATION_RULES,
    FILTER_MACS,
    FILTER_PORTS,
    FILTER_ROW_HITS,
    FILTER_ROW_WORDS,
    FILTER_ROWS,
    FILTER_TERM_HITS,
    FILTER_TERM_WORDS,
    FILTER_TERMS,
    FILTER_VECTORS,
    FILTER_VLANS,
    TERM_RULES,
    FilterControl,
)
from liteprobe.host.capture.filter import libpcap
from liteprobe.host.capture.filter.boxes import FilterDoesNotFit, boxes_of, intersection
from liteprobe.host.capture.filter.differences import Difference, differences
from liteprobe.host.capture.filter.fit import ALL_PROBE_PORTS, Tables, fit, sorted_rows, words_of
from liteprobe.host.capture.filter.nodes import Headers, Node, Octets, Truth
from liteprobe.host.capture.filter.syntax import Parser
from liteprobe.host.capture.filter.words import MeaninglessError
from liteprobe.host.device.registers import Registers
from liteprobe.host.errors import UsageError

MEMORY = "filter"
CONTROL = "filter_control"
LOOK_HERE = "let this host look for the trigger (--host-trigger)"
PORT_WORDS = 0x800  # Of each set of ports.
VECTOR_WORDS = 0x200  # Of the prefixes of each table of addresses.
#: What is written of the memory, as first word and count; sets of ports and prefixes only where they are asked for.
TABLE_BLOCK = (FILTER_ROW_WORDS[0], FILTER_VLANS + 128 - FILTER_ROW_WORDS[0])
TERM_BLOCK = (FILTER_TERM_WORDS, FILTER_MACS[1][1] + 4 - FILTER_TERM_WORDS)
HIT_BLOCK = (FILTER_ROW_HITS[0], FILTER_TERM_HITS + FILTER_TERMS - FILTER_ROW_HITS[0])


@dataclass(frozen=True)
class Filter:
    """What the tables of a probe hold for an expression.

    Parameters
    ----------
    text : str
        The expression.
    tables : Tables
    drop : bool
        What matches is dropped; else what doesn't.
    channel : int or None
        That its terms name,
    naming : int
        so many of them, from the first one.
    probe_ports : int
        Bit n: frames of port n may match.
    """

    text: str
    tables: Tables
    drop: bool = False
    channel: int | None = None
    probe_ports: int = ALL_PROBE_PORTS
    naming: int = FILTER_TERMS

    def words(self) -> dict[int, int]:
        """Return the words of the filter's memory that are not 0, by address."""
        return words_of(self.tables, self.marks())

    def marks(self) -> list[tuple[int | None, int]]:
        """Return of each term the channel that it names, and the ports whose frames may match."""
        terms = range(len(self.tables.conditions))
        return [(self.channel if term < self.naming else None, self.probe_ports) for term in terms]

    def blocks(self) -> list[tuple[int, list[int]]]:
        """Return what is to be written into the filter's memory: address of the first word, and words.

        Counters are cleared. Sets of ports that no term asks for are left as they are, and so are prefixes where no row
        is used.
        """
        words = self.words()
        ranges = [TABLE_BLOCK, TERM_BLOCK, HIT_BLOCK]
        for first, name in zip(FILTER_PORTS, ("source_port", "destination_port"), strict=True):
            if name in self.tables.shared:
                ranges.append((first, PORT_WORDS))
        ranges += [(first, VECTOR_WORDS) for first, rows in zip(FILTER_VECTORS, self.tables.rows, strict=True) if rows]
        return [(first, [words.get(address, 0) for address in range(first, first + count)]) for first, count in ranges]

    def control(self) -> FilterControl:
        """Return what is written into the control register."""
        return FilterControl.ENABLE | (FilterControl.DROP if self.drop else FilterControl.NONE)

    def rules(self) -> dict[int, str]:
        """Return what each ``rule`` of a header means."""
        found: dict[int, str] = {}
        for first, side, rows in zip((0, DESTINATION_RULES), ("src", "dst"), self.tables.rows, strict=True):
            found |= {first + row: f"{side} net {network}" for row, (network, _) in enumerate(sorted_rows(rows))}
        count = len(self.tables.conditions)
        return found | {TERM_RULES + term: f"case {term + 1} of {count}" for term in range(count)}


@dataclass(frozen=True)
class Expression:
    """A filter expression that has been read."""

    text: str
    tree: Node

    def matches(self, headers: Headers) -> Truth:
        """Return which unified headers it holds for.

        Raises
        ------
        UsageError
            If it looks at octets that these don't have.
        """
        return self.tree.matches(headers)

    def differences(self) -> Sequence[Difference]:
        """Return where it may hold for other frames than in tcpdump."""
        return differences(self.tree)

    def fit(self, drop: bool = False, channel: int | None = None, probe_ports: int = ALL_PROBE_PORTS) -> Filter:
        """Return the expression as tables of the probe; parameters as of `Filter`.

        Raises
        ------
        FilterDoesNotFit
            If they can't hold it; names the part and the reason.
        UsageError
            If there is no such channel, or no such port.
        """
        if channel is not None and not 0 <= channel < CHANNELS:
            raise UsageError(f"there is no channel {channel}: give 0 to {CHANNELS - 1}")
        if not 0 < probe_ports <= ALL_PROBE_PORTS:
            raise UsageError(f"{probe_ports} is not a set of ports: give 1, 2 or 3")
        return Filter(self.text, fit(boxes_of(self.tree), self.text), drop, channel, probe_ports)


def parse(text: str) -> Expression:
    """Read a filter expression; an empty one holds for every frame.

    Raises
    ------
    UsageError
        If neither this nor libpcap understands it: says what, and what to write instead.
    """
    try:
        return Expression(text, Parser(text).whole())
    except MeaninglessError:
        raise
    except UsageError as error:
        reason = libpcap.refusal(text)
        if reason is None:
            return Expression(text, Octets(text))
        raise UsageError(f"{error} (libpcap: {reason})" if reason else str(error)) from None


def fit_trigger(wanted: Expression, trigger: Expression, channel: int) -> Filter:
    """Return tables that pass what ``wanted`` does; what of it ``trigger`` matches goes to a channel of its own.

    Raises
    ------
    FilterDoesNotFit
        If they can't hold both; names the part and the reason.
    UsageError
        If no frame can fire it.
    """
    text = " and ".join(f"({one.text})" for one in (wanted, trigger) if one.text)
    try:
        passing = boxes_of(wanted.tree)
        if firing := intersection(passing, boxes_of(trigger.tree)):
            return Filter(text, fit((*firing, *passing), text), channel=channel, naming=len(firing))
        raise UsageError(f"no frame can be both '{wanted.text}' and '{trigger.text}': give another --trigger")
    except FilterDoesNotFit as error:
        raise FilterDoesNotFit(error.part, error.reason, LOOK_HERE) from None


def write_filter(registers: Registers, wanted: Filter) -> None:
    """Put a filter in force; until it is, every frame passes."""
    registers.write(CONTROL, FilterControl.NONE)
    for first, words in wanted.blocks():
        registers.write_memory(MEMORY, first, words)
    registers.write(CONTROL, wanted.control())


def clear_filter(registers: Registers) -> None:
    """Let every frame pass."""
    registers.write(CONTROL, FilterControl.NONE)


def read_hits(registers: Registers) -> dict[int, int]:
    """Return how many frames each row and term has matched, by the number that is its ``rule``; those of 0 are left out."""
    first, count = HIT_BLOCK
    words = [int(word) for word in registers.read_memory(MEMORY, first, count)]
    numbers = [*range(2 * FILTER_ROWS), *range(TERM_RULES, TERM_RULES + FILTER_TERMS)]
    return {number: hits for number, hits in zip(numbers, words, strict=True) if hits}
