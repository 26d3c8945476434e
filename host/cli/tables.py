# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Prints for commands: tables on stdout, progress on stderr; plain text where nobody looks."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from liteprobe.host.analysis.columns import Column
from liteprobe.host.analysis.rows import DELAYS, TRAINS, Row, capacity_doubt, count_of, incomplete, worst_bound_ns
from liteprobe.host.base.text import safe, say
from liteprobe.host.clock.timebase import delay_words
from liteprobe.host.device.registers import Register

ANY_WIDTH = 1000
LEVELS = " ▁▂▃▄▅▆▇█"
BRIEF_MOST = 0.6  # Of a screen, for what is always there.
TEXT_WIDTH = 6  # Of a column of words, at least.
PLAIN_WIDTH = 160  # Of output that is not a terminal: wide enough that nothing is cut.


class PipedConsole(Console):
    """Raises BrokenPipeError where the reader has gone; a usual one ends the program, whatever else there is to write.

    What others have named is shown without what steers a terminal, wherever it stands.
    """

    def on_broken_pipe(self) -> None:
        """Go on raising."""
        raise

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield the segments of something, each safe."""
        for one in super().render(renderable, options):
            yield one if one.control else Segment(safe(one.text), one.style)


class SafeTable(Table):
    """Makes its cells safe when they are added, so that columns are as wide as what is shown."""

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """Add a row."""
        for one in cells:
            if isinstance(one, Text):
                one.plain = safe(one.plain)
        super().add_row(*(safe(one) if isinstance(one, str) else one for one in cells), **options)


def console() -> Console:
    """Return where tables go."""
    found = PipedConsole(highlight=False)
    return found if found.is_terminal else PipedConsole(highlight=False, width=PLAIN_WIDTH)


def table(*columns: str, title: str | None = None, text: int = 1, is_tight: bool = False) -> Table:
    """Return an empty table: the first ``text`` columns are words, the others numbers."""
    made = SafeTable(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    if is_tight:
        made.padding, made.show_edge = (0, 1, 0, 0), False
    for number, column in enumerate(columns):
        is_text = number < text
        made.add_column(
            column,
            justify="left" if is_text else "right",
            no_wrap=not is_text,
            min_width=TEXT_WIDTH if is_text else None,
        )
    return made


def figures(
    columns: Sequence[Column],
    rows: Sequence[Any],
    style: Callable[[Any], str] = lambda row: "",
    is_tight: bool = False,
    quiet: str = "",
    text: int = 1,
) -> Table:
    """Return rows as a table of these columns.

    ``style``: returns the style of a row's name, which is in the first column.
    ``quiet``: style of a 0 that would be a fault if it were more.
    """
    made = table(*(column.head for column in columns), text=text, is_tight=is_tight)
    for row in rows:
        made.add_row(Text(columns[0].text(row), style(row)), *(cell(column, row, quiet) for column in columns[1:]))
    return made


def in_sentences(columns: Sequence[Column], rows: Sequence[Any], style: str = "bold") -> RenderableType:
    """Return rows as sentences that wrap, where no table fits."""
    said = []
    for row in rows:
        text = Text.assemble((f"{columns[0].text(row)}:", style))
        for number, column in enumerate(columns[1:]):
            text.append(f"{',' * bool(number)} {' '.join(column.head.split())} ").append_text(cell(column, row))
        said.append(text)
    return Group(*said)


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
    ``brief``, ``rest``: in the place of ``whole``; each part of the rest has a title, which begins its pages.
    ``turn``: which page, counted on and on.
    """

    def __init__(
        self,
        head: Callable[[str], RenderableType],
        whole: RenderableType,
        brief: RenderableType,
        rest: Sequence[tuple[Text, Sequence[RenderableType]]],
        turn: int,
    ) -> None:
        self.head, self.whole, self.brief, self.rest, self.turn = head, whole, brief, rest, turn

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        free = options.update(height=None)

        def lines(*parts: RenderableType) -> list[list[Segment]]:
            return [line for part in parts for line in console.render_lines(part, free, pad=False)]

        if len(lines(self.head(""), self.whole)) <= options.max_height:
            yield from (self.head(""), self.whole)
            return
        most = options.max_height - len(lines(self.head("page 99/99")))
        always = lines(self.brief)
        if len(always) > BRIEF_MOST * most:  # It takes turns, too.
            pages, always = [always[at : at + most] for at in range(0, len(always), most)], []
        else:
            pages = []
        most = max(2, most - len(always))
        for title, parts in self.rest:
            above, page = lines(title), list[list[Segment]]()
            for part in parts:
                shown = lines(part)
                if page and len(page) + len(shown) > most - len(above):
                    pages.append(above + page)
                    page = []
                while len(shown) > most - len(above) > 0:
                    pages.append(above + shown[: most - len(above)])
                    shown = shown[most - len(above) :]
                page += shown
            pages += [above + page] * bool(page)
        number = self.turn % len(pages)
        yield self.head(f"page {number + 1}/{len(pages)}")
        for line in [*always, *pages[number]]:
            yield from line
            yield Segment.line()


def _compact(heads: Sequence[str], title: str | None = None) -> Table:
    """Return an empty table of numbers that wastes no column, for a terminal of 80."""
    made = SafeTable(
        box=box.SIMPLE_HEAD, show_edge=False, padding=0, title=title, title_justify="left", title_style="bold"
    )
    for head in heads:
        made.add_column(head, justify="right", no_wrap=True)
    return made


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
    out.print(_filled(_compact([column.head for column in columns], title), columns, rows))
    _remarks(rows)
    out.print()


def _filled(made: Table, columns: Sequence[Column], rows: Sequence[Row]) -> Table:
    """Return a table with the figures of rows, nothing between thousands."""
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
    heads = [column.head for column in columns]
    out = console()
    out.print(_filled(table(*heads, text=0) if is_wide else _compact(heads), columns, rows))
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
    _remarks(rows)


def one_way(rows: Sequence[Row]) -> Table:
    """Return a row for each length of one direction."""
    heads = ("owd ns", "std", "min", "p99", "p99.9")
    delays = zip(DELAYS.of("mean std least p99 p99_9"), heads, strict=True)
    columns = [
        *TRAINS.of("length count repeat"),
        *(replace(one, head=head, digits=2) for one, head in delays),
        TRAINS["lost"],
    ]
    return _filled(table(*(column.head for column in columns), text=0), columns, rows)


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
    if is_wanted and line_of and (not out.is_terminal or out.is_dumb_terminal):
        yield _lines(*line_of)
        return
    if not is_wanted or not out.is_terminal:
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


def _lines(line_of: Callable[[Any, Any], str], every_s: float) -> Callable[[Any], None]:
    before, due_s = None, time.monotonic() + every_s

    def show(look: Any) -> None:
        nonlocal before, due_s
        if before is look or (before is not None and time.monotonic() < due_s):
            return
        if before is not None:
            say(line_of(before, look), flush=True)
            due_s = max(due_s, time.monotonic() - every_s) + every_s
        before = look

    return show


@contextmanager
def frame_counter() -> Iterator[Callable[[int], None] | None]:
    """Show on stderr how many frames have come, as the caller says, and how many a second; None where nobody looks."""
    errors = PipedConsole(stderr=True)
    if not errors.is_terminal:
        yield None
        return
    text = TextColumn("{task.completed:,} frames, {task.fields[rate]:,.0f}/s")
    with Progress(SpinnerColumn(), text, console=errors, transient=True, refresh_per_second=4) as bars:
        task = bars.add_task("", total=None, rate=0.0)
        began_s = time.monotonic()
        yield lambda count: bars.update(task, completed=count, rate=count / (time.monotonic() - began_s + 1e-9))


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """Show progress on stderr while the body runs; nothing where stderr is not a terminal."""
    errors = PipedConsole(stderr=True)
    bars = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("frames"),
        TimeRemainingColumn(),
        console=errors,
        disable=not errors.is_terminal,
        transient=True,
    )
    with bars:
        yield bars
