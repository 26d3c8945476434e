# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads networks from YAML documents, with the line of each error, writes them, and says in words what they do.

What may stand in them is declared with the dataclasses that hold it (host/base/document.py).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from liteprobe.cores.formats.emulate import CLASSES, UNMATCHED_CLASS
from liteprobe.host.base.document import (
    NAME,
    ByName,
    DocumentError,
    DocumentName,
    Entries,
    Key,
    OneOf,
    Schema,
    Section,
    Several,
    build,
    dumped,
    keys_of,
    values_of,
)
from liteprobe.host.base.errors import UsageError, nearest
from liteprobe.host.base.units import line_text, rate_text, share_text, time_text
from liteprobe.host.base.validate import validated
from liteprobe.host.traffic.network import network as parts
from liteprobe.host.traffic.network.network import (
    BUCKET,
    CHANGES_MAX,
    DIRECTIONS,
    LONGEST_USUAL,
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
LIVE_CHANGE = Section("change while it runs", {way: CHANGE.keys[way] for way in ("both", *DIRECTIONS)})
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
def read_network(text: str, name: str = "network.yaml", folder: Path | None = Path()) -> Network:
    """Return the network of a YAML document.

    ``name``: of the file, for messages; ``folder``: where files lie that it names; None: it may name none. Raises UsageError
    with name and line where something isn't as docs/emulator.md says, or no probe can do it.
    """
    source = DocumentName(name)
    document = NETWORK.read(source.compose(text, "a network, as docs/emulator.md shows"), "document", source)
    begun = {way: _overlaid(document, way) for way in DIRECTIONS}
    ways = {way: LiveDirection.begun(one, _trace(one, folder)) for way, one in begun.items()}
    directions = {way: one.direction for way, one in ways.items()}
    changes = []
    for entries in document.get("changes", ()):
        ways = {way: one.changed(_overlaid(entries, way)) for way, one in ways.items()}
        with source.line(entries.line):
            changes.append(build(Change, entries, **{way: one.direction for way, one in ways.items()}))
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
    found |= {way: one for way in DIRECTIONS if (one := direction_document(getattr(network, way)))}
    changes = []
    states = {way: network.states(way) for way in DIRECTIONS}
    for state, change in enumerate(network.changes):
        changed = {way: change_document(*states[way][state : state + 2]) for way in DIRECTIONS}
        changes.append(CHANGE.write(values_of(change)) | {way: one for way, one in changed.items() if one})
    return found | ({"changes": changes} if changes else {})


ClassesMade = dict[tuple[tuple[str, int], ...], tuple[Entries, TrafficClass]]


@dataclass(frozen=True)
class LiveDirection:
    """A direction with the keys that say it, so that a change keeps what it doesn't name."""

    entries: Entries
    direction: Direction
    classes: ClassesMade  # That were made, by their keys' values.

    def __post_init__(self) -> None:
        object.__setattr__(self.direction, "said", self)

    @classmethod
    def begun(cls, entries: Entries, trace: BandwidthTrace | None = None) -> "LiveDirection":
        """Return a direction of the keys of a document."""
        classes: ClassesMade = {}
        return cls(entries, _direction(entries, trace, classes), classes)

    @classmethod
    def of(cls, direction: Direction) -> "LiveDirection":
        """Return a direction with the keys that its document would have."""
        said: LiveDirection | None = direction.said
        if said and said.direction is direction:  # Else it is a copy in which something may differ.
            return said
        return cls.read(direction_document(direction) or {"service": direction.service}, direction.trace)

    @classmethod
    def read(cls, document: Mapping[str, Any], trace: BandwidthTrace | None = None) -> "LiveDirection":
        """Return a direction of plain data. Raises UsageError where that isn't one."""
        source = SettingName("the direction")
        entries = DIRECTION.read(source.compose(json.dumps(document), "a direction"), "direction", source)
        return cls.begun(entries, trace)

    @property
    def document(self) -> dict[str, Any]:
        """The direction as plain data, from which `read` makes it with the same keys."""
        classes = [one.values for one in self.entries.get("classes", ())]
        found = DIRECTION.write({**self.entries.values, "classes": classes})
        return {name: one for name, one in found.items() if name != "classes" or classes}

    def changed(self, change: Entries) -> "LiveDirection":
        """Return it after a change. Raises UsageError where that can't be."""
        if not change.values:
            return self
        entries = _changed(self.entries, change)
        return LiveDirection(entries, _direction(entries, self.direction.trace, self.classes), self.classes)


class SettingName(DocumentName):
    """Names a setting, which has no lines, in messages."""

    def error(self, line: int, message: str) -> DocumentError:
        """Return the error of a setting."""
        return DocumentError(f"{self.name}: {message}")


def change_of(plain: Mapping[str, Any], name: str) -> dict[str, Entries]:
    """Return what a change says, by direction; ``plain``: its keys `both`, `there`, `back` as plain data, ``name``: for messages.

    Raises UsageError where something isn't as docs/emulator.md says.
    """
    source = SettingName(name)
    entries = LIVE_CHANGE.read(source.compose(json.dumps(plain), "what changes"), "change", source)
    return {way: _overlaid(entries, way) for way in DIRECTIONS}


def set_by_words(ways: Mapping[str, LiveDirection], word: str) -> dict[str, LiveDirection]:
    """Return directions after a setting like ``there.voice.delay=5ms``: direction, class, key and keys within it, value.

    Without a class, and with ``rest``, it is of the direction. ``rate`` of a class is that of its bucket. Raises UsageError where
    something isn't as docs/emulator.md says.
    """
    source = SettingName(f"'{word}'")
    place, equals, text = word.partition("=")
    names, _, path = place.strip().partition(".")
    if not equals or not path or not text.strip():
        raise UsageError(
            f"'{word}' sets nothing: write DIRECTION.CLASS.KEY=VALUE, like there.voice.delay=5ms or both.rate=2Mbit"
        )
    value = _plain(source.compose(text, "a value"))
    OneOf(("both", *DIRECTIONS)).check(names, "direction")
    found = dict(ways)
    for way in ways if names == "both" else (names,):
        if way not in ways:
            raise UsageError(f"'{word}': this probe emulates from port 0 to port 1 alone: set what is of 'there'")
        one = ways[way].direction
        of, keys = _named(one, path.split("."))
        plain = {keys[0]: _within(CLASS.write(values_of(of or one.numbered[UNMATCHED_CLASS])), keys, value)}
        if of and keys[0] == "rate":
            before = BUCKET.write(of.bucket) if of.bucket else {"burst": LONGEST_USUAL + of.around}
            plain = {"bucket": "none" if value == "none" else {**before, "rate": value}}
        change = {way: {"classes": {of.name: plain}} if of else plain}
        found[way] = ways[way].changed(change_of(change, f"'{word}'")[way])
    return found


def _named(one: Direction, path: list[str]) -> tuple[TrafficClass | None, list[str]]:
    """Return the class that a path begins with, None for the direction, and the keys after it; names may have dots."""
    for count in range(len(path) - 1, 0, -1):
        name = ".".join(path[:count])
        for of in one.numbered.values():
            if of.name == name:
                return of, path[count:]
    if len(path) > 1 and path[0] not in CHANGED.keys:
        raise UsageError(
            f"there is no class '{path[0]}': {nearest(path[0], [of.name for of in one.numbered.values()])}"
        )
    return None, path


def _within(before: Mapping[str, Any], keys: Sequence[str], value: Any) -> Any:
    """Return the value of the first of some keys, in which the last has a new one."""
    if len(keys) == 1:
        return value
    now = before.get(keys[0], {})
    if not isinstance(now, Mapping):  # In short.
        now = {"frames": now} if keys[0] == "queue" else {}
    return {**now, keys[1]: _within(now, keys[1:], value)}


def _plain(node: Any) -> Any:
    """Return a node as plain data whose scalars are as they are written."""
    if node.id == "mapping":
        return {key.value: _plain(value) for key, value in node.value}
    return [_plain(one) for one in node.value] if node.id == "sequence" else node.value


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


def _trace(entries: Entries, folder: Path | None) -> BandwidthTrace | None:
    if "trace" not in entries.values:
        return None
    with entries.source.line(entries.lines["trace"]):
        try:
            if folder is None:
                raise UsageError("no file of this host can be named here: give 'rate' in the place of 'trace'")
            return BandwidthTrace.from_file(folder / entries.values["trace"])
        except UsageError as error:  # Its own file and line follow.
            raise UsageError(f"trace: {error}") from None


def _direction(entries: Entries, trace: BandwidthTrace | None, known: ClassesMade) -> Direction:
    for group in NETWORK_GROUPS:
        entries.refuse_both(group)

    def _made(one: Entries) -> TrafficClass:
        place = tuple((name, id(value)) for name, value in one.values.items())
        if place not in known:
            known[place] = one, _class(one)
        return known[place][1]

    common, rest = entries.only(INHERITED), entries.only(TREATMENT)
    given = entries.get("classes", ())
    classes = [_made(one.over(common if "match" in one.values else rest, NETWORK_GROUPS)) for one in given]
    if rest.values and all(one.match for one in classes):
        classes.append(_made(rest))
    with entries.source.line(entries.line_of("classes")):
        made: Direction = build(Direction, entries, classes=classes, trace=trace)
    return made


def _class(entries: Entries) -> TrafficClass:
    for group in NETWORK_GROUPS:
        entries.refuse_both(group)
    with entries.source.line(entries.line):
        made: TrafficClass = build(TrafficClass, entries)
    return made


def direction_document(direction: Direction) -> dict[str, Any]:
    """Return a direction as the plain data of its document."""
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


def change_document(before: Direction, after: Direction) -> dict[str, Any]:
    """Return what a change says."""
    found = CHANGED.write(values_of(after, before))
    for number, new in after.numbered.items():
        changed = CLASS.write(values_of(new, before.numbered[number]))
        if new.match is None and new.name == REST and new.seed is None and len(after.numbered) == 1:
            found |= changed
        elif changed:
            found.setdefault("classes", {})[new.name] = changed
    return found


RATES_SAID = 12  # Changes of a rate in a sentence.

# In words ----------------------------------------------------------------------------------------------


def link_words(direction: Direction) -> str:
    """Return what link a direction has."""
    if direction.trace:
        return f"trace {direction.trace.name}, {line_text(direction.trace.rate_bps)} in the mean"
    return "no rate" if direction.rate_bps is None else line_text(direction.rate_bps)


def change_words(network: Network, way: str) -> list[tuple[float, list[str]]]:
    """Return when a direction changes (s), and what of it, in words; changes of the other one are left out."""
    states = network.states(way)
    steps = zip(network.changes, states, states[1:], strict=False)
    found = [
        (float(change.at_ns) / 1e9, _said_of(before, after)) for change, before, after in steps if before is not after
    ]
    return [(seconds, said) for seconds, said in found if said]


def _said_of(before: Direction, after: Direction) -> list[str]:
    said = []
    if before.rate_bps != after.rate_bps:
        said.append(f"rate {'none' if after.rate_bps is None else rate_text(after.rate_bps)}")
    if before.link != after.link:
        said.append(f"link {after.link}")
    if before.service != after.service:
        said.append(f"service {after.service}")
    classes = zip(before.numbered.values(), after.numbered.values(), strict=True)
    return said + [f"class '{new.name}': {treatment(new)}" for old, new in classes if old != new]


def rate_words(network: Network, way: str) -> str:
    """Return the link of a direction and how its rate changes, in a sentence: ``10 Mb/s, from 5 s on 2 Mb/s``."""
    states, said = network.states(way), list[str]()
    last = states[0]
    for change, state in zip(network.changes, states[1:], strict=True):
        if state.rate_bps != last.rate_bps:
            said.append(f"from {float(change.at_ns) / 1e9:g} s on {link_words(state)}")
            last = state
    more = f"and {len(said) - RATES_SAID} more changes of it" if len(said) > RATES_SAID + 1 else ""
    return ", ".join(filter(None, [link_words(states[0]), *(said[:RATES_SAID] if more else said), more]))


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
    size = f"{one.length} octets" if one.takes_ns is None else f"{time_text(one.takes_ns)} of the link"
    return f"{one.kind} background {pace}, {size} each{bursts}"


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
