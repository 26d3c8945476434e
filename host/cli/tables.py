# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Prints for commands: tables on stdout, progress on stderr; plain text where nobody looks."""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderableType, RenderResult
from rich.live import Live
from rich.measure import Measurement
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from liteprobe.host.analysis.columns import Column
from liteprobe.host.analysis.rows import DELAYS, TRAINS, Row, capacity_doubt, count_of, incomplete, worst_bound_ns
from liteprobe.host.base.text import is_ascii, now_and_then, visible
from liteprobe.host.clock.timebase import delay_words
from liteprobe.host.device.registers import Register

Parts = Sequence[
    tuple[str, int, int | None]
]  # Of a run: name, how much is done, and how much is asked for, if it is known.
Progressed = Callable[[Parts], None]
ANY_WIDTH = 1000
LEVELS = " ▁▂▃▄▅▆▇█"
TURN_S = 3.0  # Of a page, where a terminal is too low for all of it.
BRIEF_MOST = 0.6  # Of a screen, for what is always there.
TEXT_WIDTH = 20  # Of a column of words that wraps, at least.
#: Between columns of a table that has space, of a tight one, and of one for many numbers; and what its edges take.
SPACES, EDGES = (3, 2, 1), (2, 0, 0)
TIGHT, SENTENCES = 1, 3  # The place of the tight look in these; the look that is not a table.
PLAIN_WIDTH = 160  # Of output that is not a terminal: wide enough that nothing is cut.


class PipedConsole(Console):
    """Raises BrokenPipeError where the reader has gone; a usual one ends the program, whatever else there is to write.

    What others have named is shown without what steers a terminal, wherever it stands.
    """

    def on_broken_pipe(self) -> None:
        """Go on raising."""
        raise

    def print(self, *objects: Any, soft_wrap: bool | None = None, **options: Any) -> None:
        """Print something; lines are left whole (``soft_wrap``) where no terminal would break them within words."""
        super().print(*objects, soft_wrap=soft_wrap and not self.is_terminal, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield the segments of something, each as the terminal can show it."""
        for one in super().render(_safe(renderable) if isinstance(renderable, Text) else renderable, options):
            yield one if one.control else Segment(visible(one.text), one.style)


class SafeTable(Table):
    """Makes its cells safe when they are added, so that columns are as wide as what is shown."""

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """Add a row."""
        super().add_row(*map(_safe, cells), **options)


def _safe(one: Any) -> Any:
    """Return a cell without what steers a terminal."""
    if isinstance(one, Text):
        one.plain = visible(one.plain)
        return one
    return visible(one) if isinstance(one, str) else one


def console() -> Console:
    """Return where tables go; a terminal that can't move its cursor has its width, too."""
    found = PipedConsole(highlight=False)
    if not found.is_terminal:
        return PipedConsole(highlight=False, width=PLAIN_WIDTH)
    if not found.is_dumb_terminal:
        return found
    width, height = shutil.get_terminal_size()
    return PipedConsole(highlight=False, width=width, height=height)


class FittingTable:
    """Shows rows as one table where they fit, else with less space, else as several, else in sentences: nothing is cut.

    Parameters
    ----------
    heads : of the columns, the lines of each apart by a new line.
    text : the first so many columns are words, which may wrap behind the first one; the others are numbers.
    keys : the first so many columns tell rows apart, and begin each table.
    title : above all of it.
    units : of the columns; those of one unit stand together where they fit, and the first of them in a table has it.
    is_tight : whether no space is lost, even where there is enough.
    """

    def __init__(
        self,
        heads: Sequence[str],
        text: int = 1,
        keys: int = 1,
        title: str | None = None,
        units: Sequence[str] = (),
        is_tight: bool = False,
    ) -> None:
        self._heads, self._text, self._keys, self._title, self._is_tight = heads, text, keys, title, is_tight
        self._units = units or [""] * len(heads)
        self._rows: list[list[Text]] = []

    def add_row(self, *cells: str | Text) -> None:
        """Add a row."""
        self._rows.append([_safe(one if isinstance(one, Text) else Text(one)) for one in cells])

    @property
    def columns(self) -> int:
        return len(self._heads)

    def pages(self, console: Console, options: ConsoleOptions, most: int) -> Iterator[list[list[Segment]]]:
        """Yield the lines of all of it, at most so many at once, each time with the heads."""
        for part in self._parts(options.max_width):
            wraps = part[0] == SENTENCES or self._keys < self._text
            head, again = (len(console.render_lines(self._made(part, at, at), options, pad=False)) for at in (0, 1))
            first, count = 0, 1 if wraps else max(1, most - head)
            page: list[list[Segment]] = []
            while first < len(self._rows):
                lines = console.render_lines(self._made(part, first, first + count), options, pad=False)
                repeated = 0 if part[0] == SENTENCES else len(page) and again
                if page and len(page) + len(lines) - repeated > most:
                    yield from (page[at : at + most] for at in range(0, len(page), most))
                    page, repeated = [], 0
                page += lines[repeated:]
                first += count
            yield from (page[at : at + most] for at in range(0, len(page), most))

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        widths = self._widths()
        return Measurement(min(widths), sum(widths) + self._space(self._looks()[0], len(widths)))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, part in enumerate(self._parts(options.max_width)):
            if number and part[0]:  # One that is tight has no empty line of its own.
                yield ""
            yield self._made(part, 0, len(self._rows))

    # # #

    def _looks(self) -> list[int]:
        return [*range(self._is_tight, len(SPACES))]

    @staticmethod
    def _space(look: int, columns: int) -> int:
        return SPACES[look] * (columns - 1) + EDGES[look]

    def _widths(self, is_least: bool = False) -> list[int]:
        """Return the width of each column, or what it takes at least."""
        heads = zip(self._heads, self._units, strict=True)
        found = [max(map(cell_len, f"{head}\n{unit}".split("\n"))) for head, unit in heads]
        for row in self._rows:
            found = [max(width, *map(cell_len, one.plain.split("\n"))) for width, one in zip(found, row, strict=True)]
        return [
            min(width, TEXT_WIDTH) if is_least and self._keys <= number < self._text else width
            for number, width in enumerate(found)
        ]

    def _parts(self, width: int) -> list[tuple[int, list[int]]]:
        """Return how each table looks, a place in SPACES, and its columns; all of them in one look of SENTENCES."""
        widths: list[int] = self._widths(is_least=True)
        every = [*range(len(self._heads))]
        for look in self._looks():
            if sum(widths) + self._space(look, len(every)) <= width:
                return [(look, every)]
        keys = every[: self._keys]

        def is_fit(columns: list[int]) -> bool:
            taken: int = sum(widths[one] for one in [*keys, *columns])
            return taken + self._space(TIGHT, len(keys) + len(columns)) <= width

        parts: list[list[int]] = [[]]
        for _, found in groupby(every[self._keys :], lambda number: self._units[number]):
            group = [*found]
            for columns in [group] if is_fit(group) else [[one] for one in group]:
                parts += [[]] * bool(parts[-1] and not is_fit([*parts[-1], *columns]))
                parts[-1] = [*parts[-1], *columns]
        if not all(map(is_fit, parts)) or len(parts) > max(2, (len(every) - len(keys)) // 2):
            return [(SENTENCES, every)]
        return [(TIGHT, [*keys, *part]) for part in parts]

    def _made(self, part: tuple[int, list[int]], first: int, end: int) -> RenderableType:
        look, columns = part
        if look == SENTENCES:
            above = [Text(self._title, "bold")] if self._title and not first else []
            return Group(*above, *map(self._sentence, self._rows[first:end]))
        is_first = not first and columns == [*range(len(columns))]
        title = self._title if is_first else None
        made = SafeTable(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
        if look:
            made.padding, made.show_edge = (0, SPACES[look] - 1, 0, 0), False
        for before, number in zip([-1, *columns], columns, strict=False):
            unit = "" if before >= self._keys and self._units[before] == self._units[number] else self._units[number]
            head = f"{self._heads[number]}\n{unit}" if unit else self._heads[number]
            is_text = number < self._text
            justify: JustifyMethod = "left" if is_text else "right"
            is_whole = not is_text or number < self._keys
            made.add_column(head, justify=justify, no_wrap=is_whole, overflow="fold")
        for row in self._rows[first:end]:
            made.add_row(*(row[number].copy() for number in columns))
        return made

    def _sentence(self, row: Sequence[Text]) -> Text:
        said = Text()
        for number, (head, unit, one) in enumerate(zip(self._heads, self._units, row, strict=True)):
            head = " ".join(head.split())
            if number < self._keys:
                name = one.plain if self._text else f"{head} {one.plain}"
                said.append(f"{', ' * bool(number)}{name}{':' * (number == self._keys - 1)}", "bold")
            else:
                said.append(f"{',' * (number > self._keys)} {head} ").append_text(one).append(f" {unit}".rstrip())
        return said


def table(*columns: str, title: str | None = None, text: int = 1, keys: int = 1) -> FittingTable:
    """Return an empty table: the first ``text`` columns are words, the others numbers; ``keys``: columns that tell rows apart."""
    return FittingTable(columns, text, keys, title)


def figures(
    columns: Sequence[Column],
    rows: Sequence[Any],
    style: Callable[[Any], str] = lambda row: "",
    is_tight: bool = False,
    quiet: str = "",
    text: int = 1,
) -> FittingTable:
    """Return rows as a table of these columns.

    ``style``: returns the style of a row's name, which is in the first column.
    ``quiet``: style of a 0 that would be a fault if it were more.
    """
    heads, units = ([getattr(column, name) for column in columns] for name in ("head", "unit"))
    made = FittingTable(heads, text, units=units, is_tight=is_tight)
    for row in rows:
        made.add_row(Text(columns[0].text(row), style(row)), *(cell(column, row, quiet) for column in columns[1:]))
    return made


def more(shown: int, row: Mapping[str, Any], part: str) -> Text:
    """Return how many figures of a row of JSON are not among those that are shown, and where they are."""

    def leaves(one: Any) -> int:
        return sum(map(leaves, one.values())) if isinstance(one, Mapping) else 1

    count = leaves(row) - shown
    return Text(f"--json has {count} more figures of each {part}." if count > 0 else "")


def cell(column: Column, row: Any, quiet: str = "") -> Text:
    """Return a figure, red where it is a fault and isn't 0."""
    return Text(column.text(row), "" if not column.is_fault else "red" if column.value(row) else quiet)


def bars(counts: Sequence[int]) -> Text:
    """Return counts as bars, a character each; what isn't 0 never looks so."""
    most = max(counts, default=0) or 1
    last = len(LEVELS) - 1
    return Text("".join(LEVELS[-(-count * last // most)] for count in counts), "cyan on grey11")


class Either:
    """Shows the first of several that fits, else the last."""

    def __init__(self, *which: RenderableType) -> None:
        self.which = which

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = options.update(max_width=ANY_WIDTH)
        fit = (one for one in self.which[:-1] if Measurement.get(console, wide, one).maximum <= options.max_width)
        yield next(fit, self.which[-1])


class Paged:
    """Shows all of it where it fits into the terminal, else what is always shown, and below it one page of the rest.

    ``head``: returns the line above, of what says which page it is.
    ``brief``, ``rest``: in the place of ``whole``; None: nothing is always shown; each part of the rest may have a title,
    which begins its pages.
    ``turn``: which page, counted on and on.
    """

    def __init__(
        self,
        head: Callable[[str], RenderableType],
        whole: RenderableType,
        brief: RenderableType | None,
        rest: Sequence[tuple[RenderableType | None, Sequence[RenderableType]]],
        turn: int,
    ) -> None:
        self.head, self.whole, self.brief, self.rest, self.turn = head, whole, brief, rest, turn

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        pages = self.pages(console, options)
        for line in pages[self.turn % len(pages)]:
            yield from line
            yield Segment.line()

    def pages(self, console: Console, options: ConsoleOptions) -> list[list[list[Segment]]]:
        """Return the lines of all pages."""
        free = options.update(height=None)

        def lines(*parts: RenderableType) -> list[list[Segment]]:
            return [line for part in parts for line in console.render_lines(part, free, pad=False)]

        def pieces(part: RenderableType, most: int) -> Iterable[list[list[Segment]]]:
            return part.pages(console, free, most) if isinstance(part, FittingTable) else [lines(part)]

        whole = lines(self.head(""), self.whole)
        if len(whole) <= options.max_height:
            return [whole]
        is_low = 2 * len(lines(self.head("page 99/99"))) > options.max_height
        head = Text if is_low else self.head
        most = max(1, options.max_height - len(lines(head("page 99/99"))))
        always = [] if self.brief is None else lines(self.brief)
        first = lines(self.head("")) * is_low  # Its line takes a turn, too.
        if len(always) > BRIEF_MOST * most:
            first, always = first + always, []
        pages = [first[at : at + most] for at in range(0, len(first), most)]
        most -= len(always)
        for title, parts in self.rest:
            above, page = [] if title is None or most < 2 else lines(title)[:1], list[list[Segment]]()
            free_rows = most - len(above)
            for shown in (piece for part in parts for piece in pieces(part, free_rows)):
                if page and len(page) + len(shown) > free_rows:
                    pages.append(above + page)
                    page = []
                while len(shown) > free_rows:
                    pages.append(above + shown[:free_rows])
                    shown = shown[free_rows:]
                page += shown
            pages += [above + page] * bool(page)
        count = len(pages)
        return [lines(head(f"page {at}/{count}")) + always + page for at, page in enumerate(pages, 1)]


def fact_table(found: Iterable[tuple[str, object]]) -> Table:
    """Return names and values as a table."""
    shown = SafeTable(box=None, show_header=False, pad_edge=False)
    shown.add_column(style="cyan", no_wrap=True)
    shown.add_column(overflow="fold")
    for name, value in found:
        shown.add_row(name, str(value))
    return shown


def live(screen: bool = False, transient: bool = False) -> Live:
    """Return what shows one thing after the other in its place; ``screen``: alone on the terminal; ``transient``: until it ends."""
    return Live(console=console(), auto_refresh=False, screen=screen, transient=transient)


def registers(entries: Sequence[Register], values: Mapping[str, int] | None) -> None:
    """Print registers: where they lie, or what they hold."""
    shown = table("register", "address", "bits", "access") if values is None else table("register", "decimal", "hex")
    for entry in entries:
        if values is None:
            shown.add_row(entry.name, f"0x{entry.address:08x}", str(entry.bits), "rw" if entry.is_writable else "ro")
        else:
            value = values[entry.name]
            digits = entry.bits // 4
            shown.add_row(entry.name, str(value), f"0x{value % (1 << entry.bits):0{digits}x}")
    console().print(shown)


def compared(rows: Sequence[Row], title: str) -> None:
    """Print measured beside theory, and how far stamps are from the pins, for a terminal of 80 columns."""
    columns = [
        *TRAINS.of("length count rate half_width"),
        replace(TRAINS["theory"], head="theory"),
        *TRAINS.of("capacity"),
    ]
    columns += [replace(DELAYS["mean"], head="delay"), *TRAINS.of("theory_delay off_pins lost")]
    out = console()
    out.print(_filled(columns, rows, 2, title))
    _remarks(rows)
    out.print()


def _filled(columns: Sequence[Column], rows: Sequence[Row], keys: int = 3, title: str | None = None) -> FittingTable:
    """Return a table with the figures of rows, nothing between thousands."""
    made = FittingTable([column.head for column in columns], 0, keys, title)
    for row in rows:
        made.add_row(*(one.text(row).replace(",", "").replace(" to ", "..").replace(" · ", "/") for one in columns))
    return made


OF_LENGTHS = "Length in octets, without FCS."
WIDE = 140  # Columns that the whole table of trains takes.


def trains(rows: Sequence[Row]) -> None:
    """Print the figures of programs of trains, and below them what must be known about them."""
    is_wide = console().width >= WIDE
    rates = "load rate half_width theory capacity" if is_wide else "rate half_width capacity"
    mean, std, p99 = DELAYS.of("mean std p99")
    columns = [
        *TRAINS.of(f"length count repeat {rates}"),
        replace(mean, head="owd ns"),
        std,
        replace(p99, head="p99", digits=1),
    ]
    columns += TRAINS.of("ipdv_std lost duplicated reordered late" if is_wide else "counts")
    out = console()
    out.print(_filled(columns, rows))
    out.print(OF_LENGTHS)
    out.print(
        "Mb/s on the wire, frame + 24 octets: mean dispersion rate of the trains; capacity by the pairs that were not "
        "queued."
    )
    out.print(
        "+-95 %: the longer side; it holds what rare trains that have not come yet could change, so more trains make it "
        "closer."
    )
    out.print(_trust(rows))
    out.print(more(len(columns), rows[0], "train"))
    _remarks(rows)


def one_way(rows: Sequence[Row]) -> FittingTable:
    """Return a row for each length of one direction."""
    heads = ("owd ns", "std", "min", "p99", "p99.9")
    delays = zip(DELAYS.of("mean std least p99 p99_9"), heads, strict=True)
    columns = [
        *TRAINS.of("length count repeat"),
        *(replace(one, head=head, digits=2) for one, head in delays),
        TRAINS["lost"],
    ]
    return _filled(columns, rows)


def _trust(rows: Sequence[Row]) -> str:
    """Return the states of the clock, and the greatest bound of a delay."""
    states = " and ".join(dict.fromkeys(row["clock_state"] for row in rows))
    return f"Clock {states}; {delay_words(worst_bound_ns(rows))}."


def _remarks(rows: Sequence[Row]) -> None:
    """Print what must be known about rows: records that are missing, damage, notes."""
    out = console()
    for row in rows:
        damage = ", ".join(f"{found} {name.replace('_', ' ')}" for name in _DAMAGE if (found := count_of(row, name)))
        doubt = capacity_doubt(row) if row["count"] > 1 else ""
        where = f"length {row['length']}, count {row['count']}"
        if said := list(filter(None, [incomplete(row), damage, *row["notes"]])):
            out.print(f"{where}: {'; '.join(said)}", soft_wrap=True, markup=False)
        if doubt:
            out.print(f"{where}: {doubt}", markup=False)


_DAMAGE = ("fcs_errors", "length_errors", "runts", "giants", "overflows", "expired")


@contextmanager
def watched(
    is_wanted: bool,
    screen_of: Callable[[Any], RenderableType],
    every_s: float = 0.0,
    is_alone: bool = False,
    line_of: tuple[Callable[[Any, Any], str], float] | None = None,
) -> Iterator[Callable[[Any], None] | None]:
    """Give what shows looks while something runs, at most every so often; None where it is not wanted, or nobody looks.

    ``is_alone``: on a screen of its own; else in its place above the result.
    ``line_of``: for a terminal that can't move its cursor, or a file: returns the line of a look, given the look of the line
    before it; and how many seconds of this machine lie between lines.
    """
    out = console()
    if is_wanted and line_of and not _is_screen(out):
        yield now_and_then(*line_of)
        return
    if not is_wanted or not _is_screen(out):
        yield None
        return
    with live(screen=is_alone, transient=not is_alone) as screen:
        due_s = 0.0

        def show(look: Any) -> None:
            nonlocal due_s
            if time.monotonic() >= due_s:
                screen.update(screen_of(look), refresh=True)
                due_s = time.monotonic() + every_s

        yield show


@contextmanager
def frame_counter() -> Iterator[Callable[[int], None] | None]:
    """Show on stderr how many frames have come, as the caller says, and how many a second; None where nobody looks."""
    errors = PipedConsole(stderr=True)
    if not errors.is_terminal:
        yield None
        return
    text = TextColumn("{task.completed:,} frames, {task.fields[rate]:,.0f}/s")
    with Progress(_spinner(), text, console=errors, transient=True, refresh_per_second=4) as bars:
        task = bars.add_task("", total=None, rate=0.0)
        began_s = time.monotonic()
        yield lambda count: bars.update(task, completed=count, rate=count / (time.monotonic() - began_s + 1e-9))


@contextmanager
def progress(has_lines: bool, every_s: float, unit: str = "frames") -> Iterator[Progressed]:
    """Give what shows the progress of each part: bars on stderr, or lines on stdout where that is not a screen.

    ``has_lines``: whether stdout takes lines; ``every_s``: of this machine, from one to the next.
    """
    errors, began_s = PipedConsole(stderr=True), time.monotonic()
    has_bars = _is_screen(errors)
    lines = (
        now_and_then(partial(_done, began_s, unit), every_s)
        if has_lines and not (has_bars and _is_screen(console()))
        else None
    )
    columns = (_spinner(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TextColumn(unit), TimeRemainingColumn(), console=errors, disable=not has_bars, transient=True
    ) as bars:
        tasks: list[TaskID] = []

        def show(parts: Parts) -> None:
            for number, (name, done, asked) in enumerate(parts):
                if number == len(tasks):
                    tasks.append(bars.add_task(name, total=asked))
                bars.update(tasks[number], completed=done, description=name)
            if lines:
                lines((time.monotonic(), [*parts]))

        yield show


def _spinner() -> SpinnerColumn:
    return SpinnerColumn("line" if is_ascii() else "dots")


def _is_screen(out: Console) -> bool:
    """Return whether something can be shown in the place of what was there."""
    return out.is_terminal and not out.is_dumb_terminal


def _done(began_s: float, unit: str, before: tuple[float, Parts], look: tuple[float, Parts]) -> str:
    """Return how far parts are, and how fast they were since a look before, in a line."""
    (then_s, old), (now_s, new) = before, look
    said = [f"{now_s - began_s:,.1f} s"]
    for number, (name, done, asked) in enumerate(new):
        rate = (done - (old[number][1] if number < len(old) else 0)) / max(now_s - then_s, 1e-9)
        of = "" if asked is None else f" of {asked:,}"
        said.append(f"{name}: {done:,}{of} {unit}, {rate:,.0f}/s")
    return "   ".join(said)
