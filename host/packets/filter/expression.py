# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Parses a filter expression, once: tables of the probe, headers and this host are asked through the object that comes of it."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import numpy as np

from liteprobe.cores.formats import CHANNELS, UNIFIED_DTYPE
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.validate import validated
from liteprobe.host.packets.batch import Batch
from liteprobe.host.packets.filter.boxes import FilterDoesNotFit, boxes_of, intersection
from liteprobe.host.packets.filter.differences import Difference, differences, said
from liteprobe.host.packets.filter.display import advice
from liteprobe.host.packets.filter.fit import ALL_PROBE_PORTS, Filter, fit
from liteprobe.host.packets.filter.libpcap import REFUSED, FrameFilter, compiled, refusal
from liteprobe.host.packets.filter.nodes import Headers, Node, Octets, Truth
from liteprobe.host.packets.filter.syntax import ExpressionParser
from liteprobe.host.packets.filter.words import MeaninglessError, WrongWordError

Matches = Callable[[Headers], Truth]  # From unified headers to which of them match.
Passes = Callable[[Batch], Truth]  # The same from records.

LOOK_HERE = "let this host look for the trigger (--host-trigger)"


def matching(batch: Batch, matches: Matches) -> Truth:
    """Return which records match; gaps don't.

    Raises UsageError when frames came without their unified headers.
    """
    if not (batch.has_header | batch.is_gap).all():
        raise UsageError(
            "a filter and a trigger on this host look at unified headers, which these frames came without: capture "
            "with --keep both, or give --host-filter for the filter to look at octets"
        )
    found = np.zeros(len(batch), bool)
    has_header = batch.has_header
    found[has_header] = matches(batch.headers())
    return found


@dataclass(frozen=True)
class Expression:
    """Knows what a filter expression means: in the probe's tables, for unified headers, for records on this host."""

    text: str  # As it was written.
    tree: Node
    #: What libpcap made of it, where this host is to filter whole frames by it; None: headers and tables do.
    instructions: bytes | None = None

    def matches(self, headers: Headers) -> Truth:
        """Return which unified headers it holds for; UsageError if it looks at octets that these don't have."""
        return self.tree.matches(headers)

    def check_headers(self) -> None:
        """Raise UsageError if unified headers can't tell whether it holds."""
        self.matches(np.empty(0, UNIFIED_DTYPE))

    def passes(self) -> Passes:
        """Return what tells on this host which records pass: libpcap where it compiled the expression, else their headers."""
        return partial(matching, matches=self.matches) if self.instructions is None else FrameFilter(self.instructions)

    def differences(self) -> Sequence[Difference]:
        """Return where it may hold for other frames than in tcpdump."""
        return differences(self.tree)

    def remark(self, is_trigger: bool = False) -> str:
        """Return one line that says for which frames it is other than tcpdump's; "" where it is the same."""
        return said(self.differences(), is_trigger) if self.instructions is None else ""

    def fit(self, drop: bool = False, channel: int | None = None, probe_ports: int = ALL_PROBE_PORTS) -> Filter:
        """Return the expression as tables of the probe.

        Raises FilterDoesNotFit if they can't hold it; names the part and the reason; UsageError if there is no such
        channel, or no such port.

        Parameters
        ----------
        drop : bool
            What matches is dropped; else what doesn't.
        channel : int or None
            To which what matches goes; None: as its flow hash says.
        probe_ports : int
            Bit n: frames of port n may match.
        """
        if channel is not None and not 0 <= channel < CHANNELS:
            raise UsageError(f"there is no channel {channel}: give 0 to {CHANNELS - 1}")
        if not 0 < probe_ports <= ALL_PROBE_PORTS:
            raise UsageError(f"{probe_ports} is not a set of ports: give 1, 2 or 3")
        tables = fit(boxes_of(self.tree), self.text)
        return Filter(self.text, tables, [(channel, probe_ports)] * len(tables.conditions), drop)


LENGTH_MOST, DEPTH_MOST = 16_384, 32
NOTS = re.compile(rf"(?:(?:not\b|!)\s*){{{DEPTH_MOST},}}")


@validated
def parse(text: str, by_libpcap: bool = False) -> Expression:
    """Read a filter expression; an empty one holds for every frame.

    ``by_libpcap``: have libpcap look at the octets of whole frames on this host, exactly as tcpdump: it takes all that
    libpcap knows. Raises UsageError if neither this nor libpcap understands it: says what, and what to write instead;
    or libpcap is to filter, and isn't installed.
    """
    depth = max(accumulate((one == "(") - (one == ")") for one in text), default=0)
    is_long = len(text) > LENGTH_MOST or depth > DEPTH_MOST or NOTS.search(text) is not None
    if by_libpcap:
        with _of_wireshark(text):
            try:
                return Expression(text, Octets(text), compiled(text))
            except UsageError as error:
                if REFUSED in str(error) and not is_long:
                    _check_words(text)
                raise
    if is_long:
        raise UsageError(
            f"the expression is longer than {LENGTH_MOST} characters, or nested more than {DEPTH_MOST} deep: shorten it"
        )
    with _of_wireshark(text):
        try:
            return Expression(text, ExpressionParser(text).whole())
        except MeaninglessError:
            raise
        except UsageError as error:
            reason = refusal(text)
            if reason is None:
                return Expression(text, Octets(text))
            if not reason or isinstance(error, WrongWordError):
                raise
            raise UsageError(f"{error} (libpcap: {reason})") from None


def _check_words(text: str) -> None:
    """Raise the error that names the word which is wrong in an expression that libpcap refuses, if there is one."""
    try:
        ExpressionParser(text).whole()
    except (WrongWordError, MeaninglessError):
        raise
    except UsageError:  # Nothing is said that libpcap doesn't.
        return


@contextmanager
def _of_wireshark(text: str) -> Iterator[None]:
    """Refuse what is a display filter of Wireshark as that."""
    try:
        yield
    except UsageError as error:
        raise (UsageError(f"'{text}': {of_wireshark}") if (of_wireshark := advice(text)) else error) from None


def fit_trigger(wanted: Expression, trigger: Expression, channel: int, probe_ports: int = ALL_PROBE_PORTS) -> Filter:
    """Return tables that pass what ``wanted`` does; what of it ``trigger`` matches goes to a channel of its own.

    ``probe_ports``: bit n: frames of port n pass.

    Raises FilterDoesNotFit if they can't hold both; names the part and the reason; UsageError if no frame can fire it.
    """
    text = " and ".join(f"({one.text})" for one in (wanted, trigger) if one.text)
    try:
        passing = boxes_of(wanted.tree)
        if firing := intersection(passing, boxes_of(trigger.tree)):
            marks = [(channel, probe_ports)] * len(firing) + [(None, probe_ports)] * len(passing)
            return Filter(text, fit((*firing, *passing), text), marks)
        raise UsageError(f"no frame can be both '{wanted.text}' and '{trigger.text}': give another --trigger")
    except FilterDoesNotFit as error:
        raise FilterDoesNotFit(error.part, error.reason, LOOK_HERE) from None
