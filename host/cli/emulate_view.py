# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Emulated networks as tables: what is asked for, what they do while they run, what came of them."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from liteprobe.host.cli import tables
from liteprobe.host.device.link.sim_stations import StationsReport
from liteprobe.host.run.emulate_figures import (
    DROPS,
    ClassDelays,
    ClassLook,
    DirectionLook,
    EmulationLook,
    EmulationResult,
)
from liteprobe.host.traffic.document import treatment
from liteprobe.host.traffic.network.network import DIRECTIONS, Direction, Network
from liteprobe.host.units import rate_text

WAYS = {"there": "port 0 → port 1", "back": "port 1 → port 0"}
FATES = ("sent", *DROPS, "late")
HEADS = {"no_store": "no store"}
BAR = 10
ENDS = {
    "done": "stopped after its time",
    "finished": "stopped when its stations had done all",
    "stopped": "stopped",
    "interrupted": "interrupted",
    "detached": "left running",
}


def asked(network: Network) -> RenderableType:
    """Return what a network does, a table a direction, and what changes when."""
    parts: list[RenderableType] = [Text(network.name, "bold")]
    if network.about:
        parts.append(Text(network.about))
    for way in DIRECTIONS:
        parts.append(_asked_way(way, getattr(network, way)))
    for number, change in enumerate(network.changes, 1):
        before, after = network.at(number - 1), network.at(number)
        for way in DIRECTIONS:
            lines = _changed(getattr(before, way), getattr(after, way))
            parts += [Text(f"from {float(change.at_ns) / 1e9:g} s, {way}: {line}") for line in lines]
    return Group(*parts)


def live(look: EmulationLook, url: str, turn: int = 0) -> RenderableType:
    """Return a screen of a network that runs; ``turn``: which direction, where the terminal is too low for both."""
    head = Text.assemble(("liteprobe emulate ", "bold"), url, f"   {look.there.seconds:,.3f} s")
    if look.changes:
        head.append(f"   change {look.there.state} of {look.changes}")
    panels = [_panel(way) for way in look.ways]
    return Group(head, tables.InTurn(panels, turn), Text("Ctrl-C stops it.", "dim"))


def final(result: EmulationResult) -> RenderableType:
    """Return what came of a network."""
    last = result.last
    end = ENDS[result.end] if result.end else "still running"
    lines = [f"{last.there.seconds:,.3f} s, {end}. Clock {result.clock_state}.", *result.notes]
    stations = [_stations(result.stations)] if result.stations else []
    return Group(*(_panel(way) for way in last.ways), *stations, *(Text(line) for line in lines))


# # #


def _stations(report: StationsReport) -> RenderableType:
    shown = tables.table("station", "port", "sent", "received", "octets", "wrong FCS", "sent again", text=1)
    for port, (name, one) in enumerate(zip(report.names, report.ports, strict=True)):
        row = [tables.counted(value) for value in (one.sent + one.played, one.frames, one.octets)]
        shown.add_row(Text(name, "bold"), str(port), *row, tables.bad(one.wrong), tables.counted(one.resent))
    return Group(shown, Text(report.sentence))


def _asked_way(way: str, direction: Direction) -> RenderableType:
    link = "no rate: nothing waits" if direction.rate_bps is None else rate_text(direction.rate_bps)
    if direction.trace:
        link = f"trace {direction.trace.name}, {rate_text(direction.trace.rate_bps)} in the mean"
    service = f", {direction.service}" if len(direction.numbered) > 1 else ""
    shown = tables.table(
        "class", "matches", "what its frames meet", title=f"{way}: {WAYS[way]}, {link}{service}", text=3
    )
    for one in direction.numbered.values():
        shown.add_row(Text(one.name), Text(one.match or "the rest"), Text(treatment(one)))
    return shown


def _changed(before: Direction, after: Direction) -> list[str]:
    """Return what a change of a direction names, a line each."""
    lines = []
    if before.rate_bps != after.rate_bps:
        lines.append(f"rate {rate_text(after.rate_bps) if after.rate_bps is not None else 'none'}")
    if before.service != after.service:
        lines.append(f"service {after.service}")
    lines += [
        f"class '{new.name}': {treatment(new)}"
        for old, new in zip(before.numbered.values(), after.numbered.values(), strict=True)
        if old != new
    ]
    return lines


def _panel(way: DirectionLook) -> RenderableType:
    parts: list[RenderableType] = []
    outside = {"bad FCS or length": way.damaged, "no space on the way in": way.overflows}
    if lost := ", ".join(f"{count:,} {name}" for name, count in outside.items() if count):
        parts.append(Text.assemble(("! ", "bold red"), (lost, "red")))
    parts += [_fates(way.classes), _queues(way.classes)]
    delays = [_delays(one) for one in way.classes if any(one.delays.counts)]
    parts += delays
    state = "" if way.is_link_up else ", its link is down"
    state += "" if way.is_running else ", not running"
    style = "cyan" if way.is_running and way.is_link_up else "red"
    return Panel(Group(*parts), title=f"{way.way}: {WAYS[way.way]}{state}", title_align="left", border_style=style)


def _fates(classes: Sequence[ClassLook]) -> RenderableType:
    heads = ["arrived", *(HEADS.get(name, name) for name in FATES)]
    wide = tables.table("class", *heads, text=1)
    tight = tables.table("class", *heads, text=1, is_tight=True)
    least = tables.table("class", "arrived", "sent", "dropped", "late", text=1, is_tight=True)
    for one in classes:
        few = [tables.counted(one.counts.arrived), tables.counted(one.counts.sent)]
        least.add_row(
            Text(one.name, "bold"), *few, tables.bad(one.counts.dropped, "dim"), tables.bad(one.counts.late, "dim")
        )
        row: list[RenderableType] = [tables.counted(one.counts.arrived), tables.counted(one.counts.sent)]
        row += [tables.bad(getattr(one.counts, name), "dim") for name in FATES[1:]]
        for shown in (wide, tight):
            shown.add_row(Text(one.name, "bold"), *row)
    return tables.Either(wide, tables.Either(tight, least))


def _queues(classes: Sequence[ClassLook]) -> RenderableType:
    has_background = any(one.counts.background for one in classes)
    heads = ["Mb/s in", "Mb/s out", "frames", "octets", "most", *["background", "dropped"] * has_background]
    wide = tables.table("class", "queue", *heads, text=2)
    narrow = tables.table("class", *heads, text=1, is_tight=True)
    for one in classes:
        queue = one.queue
        rates = [tables.megabits(one.arrived_bps), tables.megabits(one.sent_bps)]
        counts = [tables.counted(value) for value in (queue.frames, queue.octets, queue.most)]
        if has_background:
            counts += [tables.counted(one.counts.background), tables.counted(one.counts.background_dropped)]
        full = -(-BAR * queue.frames // max(queue.most, 1))
        bar = Text.assemble(("━" * full, "cyan"), ("·" * (BAR - full), "dim"))  # Without colours, too.
        wide.add_row(Text(one.name, "bold"), bar, *rates, *counts)
        narrow.add_row(Text(one.name, "bold"), *rates, *counts)
    return tables.Either(wide, narrow)


def _delays(one: ClassLook) -> RenderableType:
    """Return the histogram of a class: a bar for each doubling of the delay."""
    delays = one.delays
    used = [number for number, count in enumerate(delays.counts) if count]
    first, last = used[0], used[-1]
    edges = delays.edges_ns
    text = Text.assemble((f"{one.name:<6} ", "bold"), f"delay {time_text(edges[first])} ")
    text.append_text(tables.bars(delays.counts[first : last + 1]))
    text.append(f" {time_text(edges[last + 1])}   {span(delays)}")
    return text


def span(delays: ClassDelays) -> str:
    """Return the ends of delays."""
    if delays.least_ns is None or delays.most_ns is None:
        return tables.NONE
    return f"{time_text(delays.least_ns)} to {time_text(delays.most_ns)}"


def time_text(time_ns: float) -> str:
    """Return a time in the unit that shows it with one digit or more before the point."""
    scale, unit = next((one for one in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")) if time_ns >= one[0]), (1.0, "ns"))
    digits = 0 if unit == "ns" else 3
    return f"{time_ns / scale:,.{digits}f} {unit}"
