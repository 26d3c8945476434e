# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads a network from a YAML document."""

from fractions import Fraction
from pathlib import Path
from typing import Any

from liteprobe.host.errors import UsageError
from liteprobe.host.traffic.document.kinds import Schema, Source
from liteprobe.host.traffic.document.network_keys import NETWORK, TREATMENT
from liteprobe.host.traffic.document.read import compose
from liteprobe.host.traffic.document.sections import Entries, document_schema
from liteprobe.host.traffic.network import (
    Background,
    BandwidthTrace,
    Bernoulli,
    Bucket,
    Change,
    Direction,
    GilbertElliott,
    Jitter,
    LossList,
    LossPattern,
    Network,
    Queue,
    Red,
    Reorder,
    TrafficClass,
)
from liteprobe.host.traffic.network.network import DIRECTIONS, REST

#: Keys of which one replaces the other.
GROUPS = (("rate", "trace"), ("loss_pattern", "loss_list"))
PLAIN = ("weight", "overhead", "duplicate", "corrupt", "discard")


def read_network(text: str, name: str = "network.yaml", folder: Path = Path()) -> Network:
    """Return the network of a YAML document.

    Parameters
    ----------
    text : str
    name : str
        Of the file, for messages.
    folder : Path
        Where files lie that it names.

    Raises
    ------
    UsageError
        With name and line where something isn't as docs/emulator.md says, or no probe can do it.
    """
    source = Source(name)
    document = NETWORK.read(compose(text, source, "a network, as docs/emulator.md shows"), "document", source)
    ways = {way: _overlaid(document, way) for way in DIRECTIONS}
    traces = {way: _trace(entries, folder, source) for way, entries in ways.items()}
    directions = {way: _direction(entries, traces[way], source) for way, entries in ways.items()}
    changes = []
    for entries in document.get("changes", ()):
        for way in DIRECTIONS:
            ways[way] = _changed(ways[way], _overlaid(entries, way), source)
        changed = {way: _direction(one, traces[way], source) for way, one in ways.items()}
        with source.line(entries.line):
            changes.append(Change(entries.values["at"], **changed))
    with source.line(document.line_of("changes")):
        return Network(
            **directions,
            changes=changes,
            seed=document.get("seed", 1),
            name=document.get("name", Path(name).stem),
            about=document.get("about", ""),
        )


def network_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of a document of a network."""
    return document_schema(NETWORK, "LiteProbe network")


# # #


def _overlaid(entries: Entries, way: str) -> Entries:
    """Return the keys of a direction: those of both, with its own on top."""
    nothing = Entries({}, {}, entries.line)
    own: Entries = entries.get(way, nothing)
    return own.over(entries.get("both", nothing), GROUPS)


def _changed(before: Entries, change: Entries, source: Source) -> Entries:
    """Return a direction after a change."""
    by_name = {one.values["name"]: one for one in before.get("classes", ())}
    for name, entries in change.get("classes", {}).items():
        if name not in by_name:
            known = ", ".join(by_name) or "none"
            raise source.error(entries.line, f"there is no class '{name}' to change: this direction has {known}")
        by_name[name] = entries.over(by_name[name], GROUPS)
    changed = Entries({**change.values, "classes": tuple(by_name.values())}, change.lines, change.line)
    after = changed.over(before, GROUPS)
    if "trace" in before.values and "rate" in change.values:
        raise source.error(change.lines["rate"], "this direction has a bandwidth trace, which stays: leave out 'rate'")
    return after


def _refuse_both(entries: Entries, source: Source) -> None:
    for first, second in GROUPS:
        if first in entries.values and second in entries.values:
            raise source.error(entries.lines[second], f"'{first}' and '{second}' are both given: leave out one")


def _trace(entries: Entries, folder: Path, source: Source) -> BandwidthTrace | None:
    if "trace" not in entries.values:
        return None
    with source.line(entries.lines["trace"]):
        try:
            return BandwidthTrace.from_file(folder / entries.values["trace"])
        except UsageError as error:  # Its own file and line follow.
            raise UsageError(f"trace: {error}") from None


def _direction(entries: Entries, trace: BandwidthTrace | None, source: Source) -> Direction:
    _refuse_both(entries, source)
    classes = [_class(one, one.values["name"], source) for one in entries.get("classes", ())]
    rest = Entries(
        {key: value for key, value in entries.values.items() if key in TREATMENT}, entries.lines, entries.line
    )
    unmatched = [one.name for one in classes if one.match is None]
    if rest.values and unmatched:
        key = next(iter(rest.values))
        raise source.error(
            entries.lines[key],
            f"'{key}' is for what no class matches, and so is class '{unmatched[0]}', which has no 'match': move it there",
        )
    if rest.values:
        classes.append(_class(rest, REST, source))
    with source.line(entries.line_of("classes")):
        return Direction(_number(entries, "rate"), entries.get("service", "strict"), classes, trace)


def _class(entries: Entries, name: str, source: Source) -> TrafficClass:
    _refuse_both(entries, source)
    plain = {key: entries.values[key] for key in PLAIN if key in entries.values}
    for key in ("duplicate", "corrupt"):
        if key in plain:
            plain[key] /= 100
    made: dict[str, Any] = {
        "jitter": _jitter(entries, source),
        "queue": _queue(entries, source),
        "bucket": _bucket(entries, source),
        "loss": _loss(entries, source),
        "pattern": _pattern(entries, source),
        "reorder": _reorder(entries, source),
        "background": _background(entries, source),
    }
    with source.line(entries.line):
        return TrafficClass(
            name,
            entries.get("match"),
            **plain,
            **made,
            delay_ns=_number(entries, "delay"),
            is_lost_late=entries.get("loss_late", False),
            is_mended=entries.get("mended", False),
            expected_bps=_number(entries, "expected"),
            seed=entries.get("seed"),
        )


def _part(entries: Entries, key: str) -> Entries | None:
    """Return the keys of a part that may be "none"."""
    part: Entries | str | None = entries.get(key)
    return part if isinstance(part, Entries) else None


def _number(entries: Entries, key: str) -> Fraction | None:
    """Return a number, or None where a word stands in its place."""
    value: Fraction | str | None = entries.get(key)
    return None if isinstance(value, str) else value


def _share(entries: Entries, key: str, default: int = 0) -> Any:
    return entries.values[key] / 100 if key in entries.values else default


def _jitter(entries: Entries, source: Source) -> Jitter | None:
    part = _part(entries, "jitter")
    if part is None:
        return None
    with source.line(part.line):
        kind = part.get("distribution", "table" if "table" in part.values else "normal")
        if ("table" in part.values) == ("spread" in part.values):
            raise UsageError("jitter needs 'spread', or 'table' in its place: give one of them")
        return Jitter(kind, part.get("spread", 0), part.get("table", ()), _share(part, "correlation"))


def _queue(entries: Entries, source: Source) -> Queue:
    given: int | Entries | None = entries.get("queue")
    if not isinstance(given, Entries):
        return Queue(given)
    red = _part(given, "red")
    with source.line(given.line):
        early = None
        if red is not None:
            early = Red(red.values["least"], red.values["most"], _share(red, "share"), red.get("weight", 9))
        return Queue(given.get("frames"), given.get("octets"), early)


def _bucket(entries: Entries, source: Source) -> Bucket | None:
    part = _part(entries, "bucket")
    if part is None:
        return None
    with source.line(part.line):
        return Bucket(part.values["rate"], part.values["burst"])


def _loss(entries: Entries, source: Source) -> Bernoulli | GilbertElliott | None:
    given = entries.get("loss")
    if given is None:
        return None
    with source.line(entries.line_of("loss")):
        if isinstance(given, Entries):
            p, r = _share(given, "p"), _share(given, "r")
            return GilbertElliott(p, r, _share(given, "h"), _share(given, "k", 1))
        return Bernoulli(given / 100)


def _pattern(entries: Entries, source: Source) -> LossPattern | LossList | None:
    with source.line(entries.line_of("loss_pattern", "loss_list")):
        if "loss_list" in entries.values:
            return LossList(entries.values["loss_list"])
        bits = entries.get("loss_pattern", "none")
        return None if bits == "none" else LossPattern(bits)


def _reorder(entries: Entries, source: Source) -> Reorder | None:
    part = _part(entries, "reorder")
    if part is None:
        return None
    with source.line(part.line):
        return Reorder(_share(part, "share"), part.values["extent"])


def _background(entries: Entries, source: Source) -> Background | None:
    part = _part(entries, "background")
    if part is None:
        return None
    with source.line(part.line):
        return Background(
            part.values["kind"],
            part.get("length", 1514),
            part.get("rate"),
            _share(part, "share") if "share" in part.values else None,
            part.get("interval"),
            part.get("burst", 0),
            part.get("pause", 0),
            tuple((one.values["after"], one.values["length"]) for one in part.get("entries", ())),
            part.get("phase", 0),
        )
