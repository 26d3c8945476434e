# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes reports, each one HTML page that needs nothing else: figures, tables, definitions, error bars; that of trains is here."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from liteprobe.host.analysis.calibration import calibrate
from liteprobe.host.analysis.columns import NONE, Column, shown
from liteprobe.host.analysis.rows import (
    DELAYS,
    TRAINS,
    Row,
    capacity_doubt,
    count_of,
    ends_of,
    interval_of,
    remarks,
    worst_bound_ns,
)
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.extras import named
from liteprobe.host.base.output import write_text
from liteprobe.host.base.text import safe
from liteprobe.host.clock.timebase import delay_words
from liteprobe.host.report import plots
from liteprobe.host.suites.sweep import Sweep

with named():
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

FOLDER = Path(__file__).parent / "templates"


def _shown(value: Any) -> Any:
    """Return what stands in a page: text of others without what sets the direction of writing, or can't be seen."""
    return safe(value) if type(value) is str else value


TEMPLATES = Environment(
    loader=FileSystemLoader(FOLDER), autoescape=True, finalize=_shown, undefined=StrictUndefined, trim_blocks=True
)
FACTS = ("build", "map_hash", "ports", "preset", "tick_ns", "clock_state", "clock_error")  # Of one probe.
SIZE_MAX = 1_000_000  # Octets: small enough to be mailed.

#: Ruiz et al., 2015: their 1G board (ZedBoard, HwP1), from their tables.
PAPER = {("loopback", 60): 1.890, ("loopback", 1514): 20.796, ("switch", 60): 5.149, ("switch", 1514): 35.854}

# Texts.
DEFINITIONS = {
    "Frame length": """
        Octets from the destination address to the end of the payload, without FCS. On the wire a frame takes 24 octets
        more: preamble 7, start delimiter 1, FCS 4, gap 12.""",
    "Time stamps": """
        Departure and arrival are the moments at which the start delimiter (SFD) is at the probe's pins. Departures are
        written into the frame as it leaves.""",
    "Dispersion rate": """
        Of a train of N frames of length L: (N − 1) × 8 × (L + 24) bits over the time from the first arrival to the
        last; the mean over the trains of a row, with the 95 % interval of that mean (± its longer side). Trains that
        are all alike leave a share of others, 3 / trains, and so a long interval. Where nothing else is on the way it
        is the rate at which the train came; with other traffic it is neither the capacity nor what is left of it.
        Frame, IP and UDP rates count L, L − 14 and L − 42 octets of the same frames.""",
    "Capacity": """
        Rate of the narrowest link, by the pairs of frames with the least sum of delays: those were not queued, so their
        distance is what that link takes for a frame (CapProbe, 2004). Given only where nothing can have come between them:
        pairs as fast as the line, of the shortest frames, or of two lengths that agree; known to one tick of that
        distance. Else it is at least what the fastest frames had, or not known.""",
    "On the wire, at the pins": """
        What the simulated wire did is the truth of capacity, delay and loss. The dispersion rate by the times at the
        pins is the same formula over other stamps: it checks the stamps, not the formula.""",
    "One-way delay": """
        Arrival less departure of each frame, by sequence number (RFC 7679). Percentiles are observed values.""",
    "IPDV, PDV": """
        Delay less that of the frame sent before (RFC 3393); delay less the least of its row (RFC 5481).""",
    "Lost, duplicated, reordered": """
        Sent but not received whole (RFC 7680); arrived again (RFC 5560); arrived after a frame with a greater number
        (RFC 4737).""",
    "Late": """
        Frames that left after the tick that was asked for, because of the tester. Each is counted; none is hidden. Those
        that had to wait for another frame of their port, as planned, are counted apart.""",
    "Bit errors": """
        Bits of a payload of PRBS-31 that are not as sent, in frames whose FCS is right; in those whose FCS is wrong they
        are counted apart. Without an error the ratio is given that would have shown one with a probability of 95 %.""",
}
OF_TRAINS = tuple(name for name in DEFINITIONS if name != "Bit errors")
PAPER_TEXT = """
    Ruiz et al. (2015) measured the same sizes, counts and repeats with a board of 1400 USD. Their delays include their
    own buffers (13 ns an octet in a loopback) and a real switch; those here are from pin to pin, and the switch is
    simulated with a latency that is known. So compare the deviations: theirs are 0 to 7 ns in the loopback, those of
    software (pktgen) 5 to 17 µs."""
DELAY_BOUND = """
    The clock was {states}; {trust}, by the probe's own account: a departure is stamped by the clock
    that sends it; an arrival may come to its stamp up to one tick late. That bound is of one delay; means are better
    only where the error differs from frame to frame. Constant delays inside a PHY are not in it: liteprobe calibrate
    takes them out, at each link-up."""
RATE_BOUND = """
    A train's dispersion rate is known to one tick of its length: {span} in these rows. Standard deviations are the
    scatter that was seen, not a bound; zero means that all trains took the same number of ticks."""
THROUGHPUT = """
    Lines: what the link can carry. {marks} Below: mean of the trains over theory; a bar is the standard deviation of a
    train, and one tick ({tick} ns) more."""
DELAY = """
    Means, with bars from the least to the greatest delay of a row. Lines: least squares through the mean of every
    train, the calibration of the path."""
HISTOGRAM = """
    Every packet, over the least delay of its row. The scale of shares is logarithmic, so that single packets show."""
DISTRIBUTION = """
    Share of the frames sent that came within a delay over the least of their row: each line ends at the share that came
    at all, so what is missing to 100 % is lost. Marks: 50, 99 and 99.9 % of those that came."""
DISPERSION = """
    {name}, {count} frames of {length} octets: time from arrival to arrival, {least} to {most} ns. Drawn thinned where
    the train is long."""
SENT = """
    {frames} frames of {span} octets were sent as packet trains through: {names}. Every figure below is computed from
    all of them, or left out."""


class Block:
    """A part of a page: the macro of the template that shows it, and what it shows, as plain text."""

    def __init__(self, macro: str, **values: Any) -> None:
        self.macro, self.values = macro, values


@dataclass(frozen=True)
class Report:
    """Words a report, beside what it takes from the rows."""

    title: str = "Packet trains, measured"  # Heading.
    paragraphs: Sequence[str] = ()  # What was measured and on what, in words.
    is_paper: bool = False  # Whether the packet-train paper's figures stand beside these.


def write_report(path: Path, sweeps: Sequence[Sweep], content: Mapping[str, Any], report: Report | None = None) -> None:
    """Write the page of ``sweeps`` to ``path``; ``content`` is that of the JSON file (``files.document``)."""
    write_text(path, page(sweeps, content, report or Report()))


def write(path: Path, result: Sweep, content: Mapping[str, Any]) -> None:
    """Write the page of one sweep."""
    write_report(path, [result], content)


def page(sweeps: Sequence[Sweep], content: Mapping[str, Any], report: Report) -> str:
    """Return the whole page."""
    parts = [
        *said_of(report.paragraphs or _paragraphs(sweeps)),
        *notes(sweeps),
        _tiles(sweeps),
        *_figures(sweeps),
        *(part for sweep in sweeps for part in _tables(sweep)),
        *(_paper(sweeps) if report.is_paper else ()),
        *_error_bars(sweeps),
        *definitions(),
        *environment(sweeps, content),
    ]
    return document(report.title, content, parts)


def document(title: str, content: Mapping[str, Any], parts: Sequence[Block]) -> str:
    """Return a page of its title and parts; ``content`` is that of the JSON file."""
    return TEMPLATES.get_template("page.html").render(title=title, content=content, parts=parts)


# Numbers, the same everywhere ---------------------------------------------------------------------


def number(value: float | None, digits: int = 1) -> str:
    """Return a number with a fixed count of digits, thousands apart; a dash where there is none."""
    return typeset(shown(value, digits))


def typeset(text: str) -> str:
    """Return a figure of a column as it stands on a page: with a minus sign, and a dash where there is none."""
    parts = ("–" if part == NONE else re.sub("^-", "−", part) for part in text.split(" · "))
    return " · ".join(parts).replace("±", " ± ")


def listed(columns: Sequence[Column], rows: Sequence[Any]) -> Block:
    """Return rows as a table of these columns."""
    cells = [[typeset(column.text(row)) for column in columns] for row in rows]
    return table([column.title for column in columns], cells)


def agrees(row: Row) -> bool | None:
    """Tell whether theory's rate lies in the 95 % interval of the measured one, or a tick beside; None: not known."""
    interval = interval_of(row)
    if interval is None:
        return None
    tick = row["theory_bps"] * (row["resolution_ppm"] or 0.0) / 1e6
    return interval[0] - tick <= row["theory_bps"] <= interval[1] + tick


def count(value: int | None) -> str:
    """Return a count, thousands apart; a dash where it is not known."""
    return number(value, 0)


def total(rows: Sequence[Row], name: str) -> str:
    """Return the sum of a count over all rows; a dash where one of them doesn't know it."""
    values = [count_of(row, name) for row in rows]
    known = [value for value in values if value is not None]
    return count(sum(known) if len(known) == len(values) else None)


def said(text: str, **figures: str) -> str:
    """Return a text in one line, with its figures filled in."""
    return " ".join(text.split()).format(**figures)


def heading(text: str, level: int = 2) -> Block:
    """Return a heading."""
    return Block("heading", text=text, level=level)


def said_of(texts: Sequence[str], kind: str = "paragraph") -> list[Block]:
    """Return texts, a paragraph each; ``kind`` "note": what must not be missed, given without its full stop."""
    return [Block(kind, text=text) for text in texts]


def table(heads: str | Sequence[str], rows: Sequence[Sequence[str]], kind: str = "") -> Block:
    """Return a table that scrolls by itself; ``heads``: "|" stands between them; ``kind``: "words" or, of numbers, empty."""
    return Block("table", heads=heads.split("|") if isinstance(heads, str) else heads, rows=rows, kind=kind)


def tiles_of(found: Sequence[tuple[str, str]]) -> Block:
    """Return figures of the whole, large, each with what it is."""
    return Block("tiles", entries=found)


def figures(captions: Sequence[tuple[str, str, str]]) -> Block:
    """Return plots (SVG), each with the title and the text of its caption."""
    return Block("figures", entries=captions)


# Parts --------------------------------------------------------------------------------------------


def _paragraphs(sweeps: Sequence[Sweep]) -> list[str]:
    rows = [row for sweep in sweeps for row in sweep.rows]
    lengths = sorted({row["length"] for row in rows})
    return [
        said(
            SENT,
            frames=f"{sum(row['sent'] for row in rows):,}",
            span=f"{lengths[0]} to {lengths[-1]}" if len(lengths) > 1 else str(lengths[0]),
            names=", ".join(sweep.name for sweep in sweeps),
        )
    ]


def notes(sweeps: Sequence[Sweep]) -> list[Block]:
    """Return what a reader must know before any figure."""
    found = []
    for sweep in sweeps:
        for row in sweep.rows:
            if of_it := remarks(row):
                where = f"{sweep.name}, length {row['length']}, count {row['count']}"
                found.append(f"{where}: {'; '.join(of_it)}")
    return said_of(found, "note")


def _tiles(sweeps: Sequence[Sweep]) -> Block:
    rows = [row for sweep in sweeps for row in sweep.rows]
    held = [found for row in rows if (found := agrees(row)) is not None]
    claims = [row for row in rows if row["capacity"]["bps"] is not None]
    tiles = [
        (f"{sum(row['sent'] for row in rows):,}", "frames sent, in all rows"),
        (total(rows, "lost"), "lost, in all rows"),
        (total(rows, "late"), "late: left after their tick, in all rows"),
        (f"{sum(held)} of {len(held)}", "rows where theory lies within the 95 % interval"),
        (f"{len(claims)} of {len(rows)}", "rows with a capacity"),
        _deviation_tile(sweeps),
    ]
    wired = [(row["capacity"]["bps"], row["wire"].get("capacity_bps")) for row in claims if "wire" in row]
    errors = [abs(found / true - 1) for found, true in wired if found and true]
    if errors:
        worst = max(errors)
        tiles.append(
            (
                f"{number(1e6 * worst, 2)} ppm",
                f"error of the capacity against the wire, the greatest of {len(errors)} rows",
            )
        )
    known = [max(abs(least), abs(most)) for least, most in map(ends_of, rows) if least is not None and most is not None]
    if known:
        off = max(known)
        tiles.append((f"{off} ns", f"error of a delay against the pins, the greatest of {len(known)} rows"))
    return tiles_of(tiles)


def _deviation_tile(sweeps: Sequence[Sweep]) -> tuple[str, str]:
    """Return the greatest deviation of delay of a row, and which row it is."""
    name = "standard deviation of delay, the greatest of all rows"
    found = [
        (row["owd_ns"]["std"], f"{name}: {address(sweep.name)}, {row['length']} octets")
        for sweep in sweeps
        for row in sweep.rows
        if row["owd_ns"]["std"] is not None
    ]
    worst, where = max(found, default=(None, name))
    if worst is not None and worst >= 10_000:
        return f"{number(worst / 1e3, 1)} µs", where
    return f"{number(worst, 1)} ns", where


def _figures(sweeps: Sequence[Sweep]) -> list[Block]:
    drawn, result, values = plots.typical_train(sweeps)
    train = {
        "name": drawn.name,
        "count": str(result.program.count),
        "length": str(result.program.length),
        "least": number(float(values.min()) if len(values) else None, 0),
        "most": number(float(values.max()) if len(values) else None, 0),
    }
    captions = [
        (
            plots.throughput(sweeps),
            "Dispersion rate against size.",
            said(THROUGHPUT, marks=_marks(plots.over_sizes(sweeps)), tick=f"{float(result.line.octet_ns):g}"),
        ),
        (plots.delay(sweeps), "One-way delay against size.", said(DELAY)),
        (plots.histogram(sweeps), "Delay over the least.", said(HISTOGRAM)),
        (plots.distribution(sweeps), "Distribution of delay, and loss.", said(DISTRIBUTION)),
        (plots.dispersion(sweeps), "Dispersion of one train.", said(DISPERSION, **train)),
    ]
    return [heading("Figures"), figures(captions)]


def _marks(sweeps: Sequence[Sweep]) -> str:
    names = {"o": "dots", "s": "squares", "^": "triangles", "D": "diamonds"}
    return (
        "Marks: " + ", ".join(f"{names[plots.MARKERS[place]]} {sweep.name}" for place, sweep in enumerate(sweeps)) + "."
    )


LOCAL = re.compile(r"[?&](?:build|truth|pcap)=[^&\s]*")


def address(text: str) -> str:
    """Return a URL, or a text with some, without what only says where files lie."""
    return re.sub(r"(?m)(^|\s)([^?&\s]*)&", r"\1\2?", LOCAL.sub("", text))


def _tables(sweep: Sweep) -> list[Block]:
    """Return a sweep's rows in two tables, rates and delays, each beside theory, the wire and the times at the pins."""
    has_wire, has_theory = (any(key in row for row in sweep.rows) for key in ("wire", "theory_owd_ns"))
    rates = ["length trains rate half_width rate_std theory", "pins_rate" * has_wire, "tick capacity"]
    rates += ["wire_capacity" * has_wire, "pairs"]
    ends = ["theory_delay" * has_theory, "wire_delay off_pins" * has_wire, "ipdv_std counts", "wire_lost" * has_wire]
    delays = TRAINS.of("length trains") + DELAYS.of("mean std least p50 p99 p99_9 most") + TRAINS.of(" ".join(ends))
    return [
        heading(sweep.name[:1].upper() + sweep.name[1:]),
        Block("address", text=address(sweep.url)),
        heading("Rates, Mb/s on the wire", 3),
        listed(TRAINS.of(" ".join(rates)), sweep.rows),
        heading("One-way delay, ns", 3),
        listed(delays, sweep.rows),
        *_doubts(sweep),
    ]


def _doubts(sweep: Sweep) -> list[Block]:
    """Return why rows have no capacity, or whose it is."""
    doubts = [
        f"{row['length']} octets, {row['repeat']} × {row['count']}: {doubt}"
        for row in sweep.rows
        if (doubt := capacity_doubt(row))
    ]
    return [*said_of(["Of the capacity:"]), Block("items", entries=doubts)] if doubts else []


def _paper(sweeps: Sequence[Sweep]) -> list[Block]:
    """Return the packet-train paper's delays beside these."""
    rows = []
    for sweep in sweeps:
        for (name, length), theirs_us in PAPER.items():
            ours = [
                row["owd_ns"] for row in sweep.rows if row["length"] == length and row["owd_ns"]["mean"] is not None
            ]
            if sweep.name != name or not ours:
                continue
            deviations = [found["std"] for found in ours if found["std"] is not None]
            mean, std = ours[-1]["mean"] or 0.0, max(deviations, default=None)
            rows.append(
                [
                    f"{name}, {length} octets",
                    f"{theirs_us:.3f} µs",
                    f"{number(mean / 1e3, 3)} µs",
                    f"{number(std, 1)} ns",
                ]
            )
    if not rows:
        return []
    shown = table(["Path and size", "Paper", "Here, mean", "Here, deviation"], rows)
    return [heading("Compared with the packet-train paper"), *said_of([said(PAPER_TEXT)]), shown]


def _error_bars(sweeps: Sequence[Sweep]) -> list[Block]:
    rows = [row for sweep in sweeps for row in sweep.rows]
    worst = worst_bound_ns(rows)
    states = ", ".join(sorted({row["clock_state"] for row in rows}))
    ticks = [row["resolution_ppm"] for row in rows if row["resolution_ppm"] is not None]
    span = f"{number(min(ticks), 2)} to {number(max(ticks), 2)} ppm" if ticks else "unknown"
    lines = []
    for sweep in sweeps:
        try:
            line = calibrate(sweep.rows).line
        except UsageError:
            continue
        reach = line.interval()
        lines.append(
            f"{sweep.name}: slope {number(line.slope, 4)} ± {number(reach[0], 4)} ns an octet, "
            f"intercept {number(line.intercept, 2)} ± {number(reach[1], 2)} ns (95 %, {line.points} trains)"
        )
    fits = [*said_of(["Lines through the delays:"]), Block("items", entries=lines)] if lines else []
    bounds = [said(DELAY_BOUND, states=states, trust=delay_words(worst)), said(RATE_BOUND, span=span)]
    return [heading("Accuracy"), *said_of(bounds), *fits]


def definitions(names: Sequence[str] = OF_TRAINS, own: Mapping[str, str] | None = None) -> list[Block]:
    """Return what these words mean; ``own``: what others mean, that are of one page alone."""
    entries = [
        (name, said(text)) for name, text in {**{name: DEFINITIONS[name] for name in names}, **(own or {})}.items()
    ]
    return [heading("Definitions"), Block("terms", entries=entries)]


def asked_for(document: str) -> list[Block]:
    """Return the document that was asked for."""
    return [heading("The document"), Block("verbatim", text=document)]


def made_with(content: Mapping[str, Any]) -> list[Block]:
    """Return what the figures of one probe were made with; ``content`` is that of the JSON file."""
    probe = content["probe"]
    return _made_with(content, [(f"probe: {name.replace('_', ' ')}", probe[name]) for name in FACTS if name in probe])


def environment(sweeps: Sequence[Sweep], content: Mapping[str, Any]) -> list[Block]:
    """Return what a report was made with, and on which probes."""
    probes = [
        (f"{sweep.name}: {name.replace('_', ' ')}", value)
        for sweep in sweeps
        for name, value in sweep.probe.items()
        if name in ("map_hash", "ports", "record_depth", "tick_ns", "clock_state")
    ]
    return _made_with(content, probes)


def _made_with(content: Mapping[str, Any], facts: Sequence[tuple[str, Any]]) -> list[Block]:
    return [heading("Made with"), table(["", ""], [*content["environment"].items(), *facts], "words")]
