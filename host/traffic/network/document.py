# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads networks from YAML documents, with the line of each error, writes them, and says in words what they do.

What may stand in them is declared with the dataclasses that hold it (host/base/document.py).
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from liteprobe.cores.formats.emulate import CLASSES
from liteprobe.host.base.document import (
    NAME,
    ByName,
    DocumentName,
    Entries,
    Key,
    Schema,
    Section,
    Several,
    build,
    dumped,
    keys_of,
    values_of,
)
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.units import rate_text, share_text, time_text
from liteprobe.host.base.validate import validated
from liteprobe.host.traffic.network import network as parts
from liteprobe.host.traffic.network.network import (
    CHANGES_MAX,
    DIRECTIONS,
    REST,
    Background,
    BandwidthTrace,
    Bernoulli,
    Change,
    Direction,
    GilbertElliott,
    LossList,
    LossPattern,
    Network,
    Queue,
    TrafficClass,
)

#: Keys of which one replaces the other.
NETWORK_GROUPS = (("rate", "trace"), ("loss_pattern", "loss_list"))
CLASS_ORDER = (
    *("name", "match", "delay", "jitter", "queue", "weight", "bucket", "overhead", "loss", "loss_pattern", "loss_list"),
    *("loss_late", "duplicate", "corrupt", "mended", "reorder", "background", "discard", "expected", "seed"),
)
CLASS = Section("class", {name: keys_of(TrafficClass)[name] for name in CLASS_ORDER})
#: What frames of a class meet. In a change, too.
TREATMENT = {name: one for name, one in CLASS.keys.items() if name not in ("name", "match", "seed")}
#: Of these, what a direction has for all its classes, unless they give their own: what is on the path, not of the queue.
INHERITED = (
    *("delay", "jitter", "overhead", "loss", "loss_pattern", "loss_list", "loss_late"),
    *("duplicate", "corrupt", "mended", "discard"),
)
DIRECTION = Section(
    "direction",
    {
        **keys_of(Direction),
        "trace": Key(NAME, "In the place of `rate`: a file of Mahimahi, beside the document."),
        "classes": Key(
            Several(CLASS, CLASSES), "In the order of their priority; a frame is of the first that matches."
        ),
        **TREATMENT,
    },
)
CHANGED = Section(
    "changed direction",
    {
        **keys_of(Direction),
        "classes": Key(ByName(Section("changed class", TREATMENT)), "By name."),
        **TREATMENT,
    },
)
CHANGE = Section(
    "change",
    {
        **keys_of(Change),
        "both": Key(CHANGED, "What changes in both directions."),
        "there": Key(CHANGED, "What changes from port 0 to port 1."),
        "back": Key(CHANGED, "What changes from port 1 to port 0."),
    },
)
NETWORK = Section(
    "network",
    {
        **{name: keys_of(Network)[name] for name in ("name", "about", "seed", "reserved")},
        "both": Key(DIRECTION, "Keys of both directions, unless they give their own."),
        "there": Key(DIRECTION, "From port 0 to port 1."),
        "back": Key(DIRECTION, "From port 1 to port 0."),
        "changes": Key(Several(CHANGE, CHANGES_MAX), "What changes when; a change keeps what it doesn't name."),
    },
)


@validated
def read_network(text: str, name: str = "network.yaml", folder: Path = Path()) -> Network:
    """Return the network of a YAML document.

    ``name``: of the file, for messages; ``folder``: where files lie that it names. Raises UsageError with name and line
    where something isn't as docs/emulator.md says, or no probe can do it.
    """
    source = DocumentName(name)
    document = NETWORK.read(source.compose(text, "a network, as docs/emulator.md shows"), "document", source)
    ways = {way: _overlaid(document, way) for way in DIRECTIONS}
    traces = {way: _trace(entries, folder) for way, entries in ways.items()}
    directions = {way: _direction(entries, traces[way]) for way, entries in ways.items()}
    changes = []
    for entries in document.get("changes", ()):
        for way in DIRECTIONS:
            ways[way] = _changed(ways[way], _overlaid(entries, way))
        changed = {way: _direction(one, traces[way]) for way, one in ways.items()}
        with source.line(entries.line):
            changes.append(build(Change, entries, **changed))
    with source.line(document.line_of("changes")):
        others = {**directions, "changes": changes, "name": document.get("name", Path(name).stem)}
        made: Network = build(Network, document, **others)
    return made


@validated
def write_network(network: Network) -> str:
    """Return a network as a YAML document, which reads as the same network."""
    return dumped(network_document(network))


def network_document(network: Network) -> dict[str, Any]:
    """Return a network as the plain data of its document."""
    found = NETWORK.write({"name": network.name, **values_of(network), "seed": network.seed})
    found |= {way: one for way in DIRECTIONS if (one := _direction_document(getattr(network, way)))}
    changes = []
    for state, change in enumerate(network.changes):
        before, after = network.at(state), network.at(state + 1)
        changed = {way: _change_document(getattr(before, way), getattr(after, way)) for way in DIRECTIONS}
        changes.append(CHANGE.write(values_of(change)) | {way: one for way, one in changed.items() if one})
    return found | ({"changes": changes} if changes else {})


def network_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of a document of a network."""
    return NETWORK.document_schema("network.json", "LiteProbe network")


def _overlaid(entries: Entries, way: str) -> Entries:
    """Return the keys of a direction: those of both, with its own on top."""
    nothing = Entries({}, {}, entries.line, entries.source)
    own: Entries = entries.get(way, nothing)
    return own.over(entries.get("both", nothing), NETWORK_GROUPS)


def _changed(before: Entries, change: Entries) -> Entries:
    """Return a direction after a change."""
    by_name = {one.values["name"]: one for one in before.get("classes", ())}
    for name, entries in change.get("classes", {}).items():
        if name == REST and all("match" in one.values for one in by_name.values()):
            by_name[REST] = Entries({"name": REST}, {}, entries.line, entries.source)
        if name not in by_name:
            known = ", ".join(by_name) or "none"
            raise entries.source.error(
                entries.line, f"there is no class '{name}' to change: this direction has {known}"
            )
        by_name[name] = entries.over(by_name[name], NETWORK_GROUPS)
    changed = replace(change, values={**change.values, "classes": tuple(by_name.values())})
    after = changed.over(before, NETWORK_GROUPS)
    if "trace" in before.values and "rate" in change.values:
        raise change.error("rate", "this direction has a bandwidth trace, which stays: leave out 'rate'")
    return after


def _trace(entries: Entries, folder: Path) -> BandwidthTrace | None:
    if "trace" not in entries.values:
        return None
    with entries.source.line(entries.lines["trace"]):
        try:
            return BandwidthTrace.from_file(folder / entries.values["trace"])
        except UsageError as error:  # Its own file and line follow.
            raise UsageError(f"trace: {error}") from None


def _direction(entries: Entries, trace: BandwidthTrace | None) -> Direction:
    for group in NETWORK_GROUPS:
        entries.refuse_both(group)
    common, rest = entries.only(INHERITED), entries.only(TREATMENT)
    given = entries.get("classes", ())
    classes = [_class(one.over(common if "match" in one.values else rest, NETWORK_GROUPS)) for one in given]
    if rest.values and all(one.match for one in classes):
        classes.append(_class(rest))
    with entries.source.line(entries.line_of("classes")):
        made: Direction = build(Direction, entries, classes=classes, trace=trace)
    return made


def _class(entries: Entries) -> TrafficClass:
    for group in NETWORK_GROUPS:
        entries.refuse_both(group)
    with entries.source.line(entries.line):
        made: TrafficClass = build(TrafficClass, entries)
    return made


def _direction_document(direction: Direction) -> dict[str, Any]:
    found = DIRECTION.write(values_of(direction))
    if direction.trace:
        found["trace"] = direction.trace.name
    for one in direction.classes:
        values = values_of(one)
        if one.match is None and one.name == REST and one.seed is None and len(direction.classes) == 1:
            found |= CLASS.write(values)  # Beside classes these would be theirs, too.
        else:
            found.setdefault("classes", []).append(CLASS.write({"name": one.name, **values}))
    return found


def _change_document(before: Direction, after: Direction) -> dict[str, Any]:
    """Return what a change says."""
    found = CHANGED.write(values_of(after, before))
    for number, new in after.numbered.items():
        changed = CLASS.write(values_of(new, before.numbered[number]))
        if new.match is None and new.name == REST and new.seed is None and len(after.numbered) == 1:
            found |= changed
        elif changed:
            found.setdefault("classes", {})[new.name] = changed
    return found


# In words ----------------------------------------------------------------------------------------------


def treatment(one: TrafficClass) -> str:
    """Return what frames of a class meet, in the order in which they meet it."""
    return "; ".join(_parts(one)) or "nothing"


def _parts(one: TrafficClass) -> Iterator[str]:
    if one.discard:
        yield "discarded"
    if one.loss:
        yield _loss(one)
    if isinstance(one.pattern, LossPattern):
        yield f"loss pattern of {one.pattern.count} frames"
    if isinstance(one.pattern, LossList):
        yield f"{one.pattern.count} frames lost by number"
    if one.is_lost_late and (one.loss or one.pattern):
        yield "lost after the queue"
    yield from _queue(one.queue)
    if one.background:
        yield _background(one.background)
    if one.bucket:
        yield f"bucket {rate_text(one.bucket.rate_bps)}, burst {one.bucket.burst:,} octets"
    if one.weight > 1:
        yield f"weight {one.weight}"
    yield _delay(one)
    if one.reorder:
        yield f"{share_text(one.reorder.share)} held back for {time_text(one.reorder.extent_ns)}"
    if one.duplicate:
        yield f"{share_text(one.duplicate)} duplicated"
    if one.corrupt:
        yield f"{share_text(one.corrupt)} corrupted{', FCS mended' if one.is_mended else ''}"


def _loss(one: TrafficClass) -> str:
    loss = one.loss
    if isinstance(loss, Bernoulli):
        return f"loss {share_text(loss.share)}"
    assert isinstance(loss, GilbertElliott)
    letters = ", ".join(f"{name} {share_text(getattr(loss, name))}" for name in ("p", "r", "h", "k"))
    return f"loss in bursts ({letters})"


def _queue(queue: Queue) -> Iterator[str]:
    limits = {"frames": queue.frames, "octets": queue.octets}
    given = [f"{value:,} {name}" for name, value in limits.items() if value is not None]
    if given:
        yield "queue of " + " or ".join(given)
    if queue.red:
        ecn = ", with ECN" if queue.red.has_ecn else ""
        yield f"RED from {queue.red.least} to {queue.red.most} frames, up to {share_text(queue.red.share)}{ecn}"
    if codel := queue.codel:
        ecn = ", with ECN" if codel.has_ecn else ""
        yield f"CoDel to {time_text(codel.target_ns)} within {time_text(codel.interval_ns)}{ecn}"
    if pie := queue.pie:
        ecn = ", with ECN" if pie.has_ecn else ""
        yield f"PIE to {time_text(pie.target_ns)}, each {time_text(pie.update_ns)}{ecn}"


def _background(one: Background) -> str:
    if one.kind == "pattern":
        return f"background pattern of {len(one.entries)} frames"
    pace = f"{share_text(one.share)} of the link" if one.share is not None else ""
    pace = rate_text(one.rate_bps) if one.rate_bps is not None else pace
    pace = f"each {time_text(one.interval_ns)}" if one.interval_ns is not None else pace
    bursts = f", bursts of {float(one.burst):g}, pause {time_text(one.pause_ns)}" if one.burst else ""
    return f"{one.kind} background {pace}, {one.length} octets{bursts}"


def _delay(one: TrafficClass) -> str:
    delay = "least delay" if one.delay_ns is None else f"delay {time_text(one.delay_ns)}"
    if not one.jitter:
        return delay
    if one.jitter.kind == "table":
        found = f"{delay} and a table of {len(one.jitter.table_ns):,}"
    else:
        found = f"{delay} ± {time_text(one.jitter.spread_ns)} ({one.jitter.kind})"
    share = one.jitter.correlation
    return found + (f", correlation {'keep' if share is None else share_text(share)}" if share != 0 else "")


#: Sections in the order of docs/emulator.md.
SECTIONS: tuple[Section, ...] = (
    *(NETWORK, DIRECTION, CLASS),
    *(
        one.section
        for one in (parts.QUEUE, parts.RED, parts.CODEL, parts.PIE, parts.BUCKET, parts.JITTER, parts.GE, parts.REORDER)
    ),
    *(parts.BACKGROUND.section, parts.ENTRY.section, CHANGE, CHANGED),
)
