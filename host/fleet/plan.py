# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Plans an experiment on many probes: who sends what to whom, who captures, who runs suites; from YAML (docs/experiment.md)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

from liteprobe.cores.formats import CHANNELS, PRESETS, TICK_NS, Part
from liteprobe.host.base.defaults import KEEPS, TRANSPORTS
from liteprobe.host.base.document import (
    ByName,
    ByShape,
    DocumentName,
    Entries,
    Flag,
    Key,
    OneOf,
    Quantity,
    Schema,
    Section,
    Several,
    Text,
    Whole,
    build,
    check_fields,
    key,
    section_of,
)
from liteprobe.host.base.errors import UsageError, nearest
from liteprobe.host.base.units import PREFIXES, TIMES
from liteprobe.host.capture.request import (
    SNAP_MOST,
    CaptureRequest,
    CaptureSettings,
    Keep,
    Sampling,
    Transport,
)
from liteprobe.host.fleet.probes import (
    IDS,
    NAME,
    PROBE,
    PlannedProbe,
    addressed,
    between,
    called,
    check_measured,
    refuse_ends,
)
from liteprobe.host.fleet.suites import STAMP, SUITE, SUITE_SECTIONS, SUITES_MAX, PlannedSuite, suites_of
from liteprobe.host.traffic.document import OF_ALL, STREAM_GROUPS, STREAMS_DOCUMENT, stream_of
from liteprobe.host.traffic.lengths import Fixed
from liteprobe.host.traffic.load import check_port, end_ticks
from liteprobe.host.traffic.stream import Stream
from liteprobe.host.traffic.train import TrainProgram, interval_ns_for_rate

FILES = ("write", "headers", "blocks")
STATION_MOST = 64 << 20
PROBES_MAX = 256  # A mesh of them has 65,280 pairs, which stream ids of 16 bits tell apart.
PAIRS_MAX = 65_535
SECOND_NS = 10**9
TAI_MAX_S = 2**33
LINE_NS_MOST = 80_000.0  # Of the longest frame, back to back.
FETCH_NS = 500_000.0  # For the record of a frame.
ROUND_NS = 10 * SECOND_NS  # To open a probe, to load it, and to let go of it.


def _time(written: str, most_ns: int, may_be_0: bool = False) -> Quantity:
    return Quantity("a time", written, TIMES, Fraction(most_ns), may_be_0, plain="ns")


UP_TO_A_DAY = _time("a time like 10s, up to 24h (86400s)", 86_400 * SECOND_NS)


Sent = TrainProgram | Sequence[Stream]  # What a pair sends.


@dataclass(frozen=True)
class PlannedPair:
    """A train from a probe to another, by their names; or streams."""

    sender: str
    receiver: str
    program: TrainProgram | None
    streams: tuple[Stream, ...] = ()

    @property
    def ends(self) -> tuple[str, str]:
        """Names of both probes, which no other pair has in this order."""
        return self.sender, self.receiver

    @property
    def flows(self) -> tuple[str, ...]:
        """Names of what is measured one by one: of the streams, or an empty one of the train."""
        return tuple(one.name for one in self.streams) or ("",)

    def longest_ns(self, duration_ns: Fraction | None) -> Fraction:
        """Return how long it sends, where streams end after ``duration_ns`` (ns)."""
        if self.program is not None:
            return Fraction(self.program.count) * Fraction((self.program.interval_ns or LINE_NS_MOST) + FETCH_NS)
        ends = [TICK_NS * end for one in self.streams if (end := end_ticks(one)) is not None]
        if duration_ns is None:
            return max(ends)
        return min(duration_ns, max(ends)) if len(ends) == len(self.streams) else duration_ns


Planned = PlannedPair | PlannedSuite


@dataclass(frozen=True)
class PlannedCapture:
    """A capture at a probe, for as long as the experiment takes."""

    probe: str
    request: CaptureRequest
    most: int | None = None  # Octets of its files, after which it ends; None: where a station runs it `STATION_MOST`.

    @property
    def paths(self) -> dict[str, Path]:
        """Files by what they have: ``write``, ``headers``, ``blocks``."""
        return {name: Path(one) for name in FILES if (one := getattr(self.request, name))}

    def of_start(self, number: int, starts: int) -> "PlannedCapture":
        """Return that of one start of several (from 1), each of which a station captures into files of its own."""
        if starts == 1:
            return self
        return self.into({name: one.with_stem(f"{one.stem}-{number}") for name, one in self.paths.items()})

    def into(self, paths: Mapping[str, Any]) -> "PlannedCapture":
        """Return the same with other files."""
        return replace(self, request=replace(self.request, **paths))

    @property
    def files(self) -> tuple[str, ...]:
        """Names of its files."""
        return tuple(str(one) for one in (self.request.write, self.request.headers, self.request.blocks) if one)


@dataclass(frozen=True)
class ExperimentPlan:
    """An experiment: each pair's train or streams start with those of others, at one TAI instant.

    Raises UsageError, naming the fix, when it can't be.
    """

    probes: tuple[PlannedProbe, ...]
    pairs: tuple[PlannedPair, ...]
    start_in_ns: Fraction = key(
        "start_in",
        _time("a time like 5s, up to 24h (86400s)", 86_400 * SECOND_NS, may_be_0=True),
        "The first start is the first second (period of the PPS) so long after all were checked, or later.",
        Fraction(2 * SECOND_NS),
    )
    start_tai_s: int | None = key(
        "start_tai",
        Whole(0, TAI_MAX_S),
        "In the place of `start_in`: the first start, in TAI seconds since 1970 (a probe's clock).",
        None,
        "as `start_in` says",
    )
    preset: str | None = key(
        "preset", OneOf(tuple(PRESETS)), "Preset that every probe has.", None, "any that sends what the plan says"
    )
    clock_bound_ns: Fraction = key(
        "clock_bound",
        _time("a time like 1us, up to 1s", SECOND_NS),
        "Greatest error that a clock may have, by its own bound (95 %).",
        Fraction(1000),
    )
    waiting_time_ns: Fraction | None = key(
        "waiting_time",
        _time("a time like 100ms, up to 1h (3600s)", 3600 * SECOND_NS),
        "T_max of RFC 7680: a frame that takes longer is lost.",
        None,
        "2ms simulated, 1s else",
    )
    round_every_ns: Fraction | None = key(
        "round_every",
        UP_TO_A_DAY,
        "From one start to the next, in whole seconds, where stations run it.",
        None,
        "as long as the longest train or stream takes, and some",
    )
    duration_ns: Fraction | None = key(
        "duration",
        UP_TO_A_DAY,
        "After which the probes end all streams.",
        None,
        "when each has sent its `count`",
    )
    captures: tuple[PlannedCapture, ...] = ()
    suites: tuple[PlannedSuite, ...] = ()
    by_name: Mapping[str, PlannedProbe] = field(init=False, repr=False, compare=False)
    with_streams: frozenset[str] = field(init=False, repr=False, compare=False)  # Probes that send or measure some.
    in_pairs: frozenset[str] = field(init=False, repr=False, compare=False)  # Probes that send or measure anything.

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {one.name: one for one in self.probes})
        of_suites = frozenset(name for one in self.suites for name in one.ends)
        ends = frozenset(name for one in self.pairs if one.streams for name in one.ends)
        object.__setattr__(self, "with_streams", ends | of_suites)
        in_pairs = frozenset(name for one in self.pairs for name in one.ends)
        object.__setattr__(self, "in_pairs", in_pairs | of_suites)
        check_fields(self)
        if len(self.by_name) < len(self.probes):
            raise UsageError("two probes of an experiment have the same name: give each one of its own")
        urls: dict[str, str] = {}
        for one in self.probes:
            if (other := urls.setdefault(one.url, one.name)) != one.name:
                raise UsageError(f"probes '{other}' and '{one.name}' are both {one.url}: leave out one")
        if not (0 if self.suites else 1) <= len(self.pairs) <= PAIRS_MAX:
            raise UsageError(f"the experiment has {len(self.pairs)} pairs: give 1 to {PAIRS_MAX}")
        for pair in self.pairs:
            for name in pair.ends:
                if name not in self.by_name:
                    raise UsageError(f"no probe is called '{name}': {nearest(name, tuple(self.by_name))}")
            if pair.sender == pair.receiver:
                raise UsageError(f"'{pair.sender}' sends to itself: give two probes")
            if (pair.program is None) == (not pair.streams):
                raise UsageError(f"'{pair.sender}' to '{pair.receiver}' sends a train or streams: give one of them")
            endless = next((one.name for one in pair.streams if one.count is None), None)
            if endless is not None and self.duration_ns is None:
                raise UsageError(f"stream '{endless}' has no end: give it a count, or a duration of all")
        if self.duration_ns is not None and not any(one.streams for one in self.pairs):
            raise UsageError("'duration' is of streams, and no pair has any: leave it out")
        if len({one.ends for one in self.pairs}) < len(self.pairs):
            raise UsageError("a pair is given twice: leave out one")
        self._check_captures()
        for suite in self.suites:
            for name in suite.ends:
                if name not in self.by_name:
                    raise UsageError(f"no probe is called '{name}': {nearest(name, tuple(self.by_name))}")
        titles = [one.title for one in self.suites]
        if again := next((one for one in titles if titles.count(one) > 1), None):
            raise UsageError(f"two suites are '{again}': give each a 'name' of its own")

    def _check_captures(self) -> None:
        hear_trains = {one.receiver for one in self.pairs if one.program is not None}
        hold_sessions = {one.sender for one in self.suites if one.kind == STAMP}
        files: dict[str, str] = {}
        for one in self.captures:
            if one.probe not in self.by_name:
                raise UsageError(f"no probe is called '{one.probe}': {nearest(one.probe, tuple(self.by_name))}")
            if one.probe in hear_trains:
                raise UsageError(
                    f"'{one.probe}' hears a train, whose records take its capture: capture at another probe, or send streams"
                )
            if one.probe in hold_sessions:
                raise UsageError(
                    f"'{one.probe}' has a session of STAMP, which takes its capture: capture at another probe"
                )
            for name in one.files:
                if name == "-" or (other := files.setdefault(name, one.probe)) != one.probe:
                    said = (
                        "stdout can't take captures"
                        if name == "-"
                        else f"'{other}' and '{one.probe}' would both write {name}"
                    )
                    raise UsageError(f"{said}: give a file each, as with {{probe}} in its name")
        if len({one.probe for one in self.captures}) < len(self.captures):
            raise UsageError("a probe has two captures: leave out one")

    @property
    def round_ns(self) -> int:
        """Time from one start to the next where stations run the plan (ns), whole seconds."""
        if self.round_every_ns is not None:
            return -(-int(self.round_every_ns) // SECOND_NS) * SECOND_NS
        longest_ns = max((one.longest_ns(self.duration_ns) for one in self.pairs), default=Fraction(0))
        waiting_ns = SECOND_NS if self.waiting_time_ns is None else int(self.waiting_time_ns)
        return -(-int(longest_ns + waiting_ns + ROUND_NS) // SECOND_NS) * SECOND_NS

    def parts_of(self, name: str) -> Part:
        """Return the parts that a probe needs for its pairs."""
        own = Part.STREAMS if name in self.with_streams else Part(0)
        return own | (Part.GENERATE if name in self.in_pairs else Part(0))

    def starts(self) -> list[tuple[int, list[Planned]]]:
        """Return each start (TAI, ns) and what begins then, of a plan that stations run; UsageError where it doesn't say when."""
        if self.start_tai_s is None:
            raise UsageError("stations need 'start_tai': give a TAI second, as of: echo $(($(date +%s) + 37 + 60))")
        start_ns, found = self.start_tai_s * SECOND_NS, list[tuple[int, list[Planned]]]()
        for all_of_one in self.all_rounds():
            found.append((start_ns, all_of_one))
            start_ns += self.span_ns(all_of_one)
        return found

    def span_ns(self, all_of_one: Sequence[Planned]) -> int:
        """Return the time from a start to the next, or to the end, where stations run the plan (ns), whole seconds."""
        longest_s = max((one.most_s for one in all_of_one if isinstance(one, PlannedSuite)), default=None)
        if longest_s is None:
            return self.round_ns
        return SECOND_NS * ceil(longest_s) + ROUND_NS

    def length_ns(self, all_of_one: Sequence[Planned]) -> int:
        """Return how long a start is sent and measured, at the most (ns), but for what opening a probe takes."""
        return self.span_ns(all_of_one) - ROUND_NS

    def all_rounds(self) -> list[list[Planned]]:
        """Return what begins together, start by start: first the pairs, then the suites, each probe in one at a time."""
        found: list[list[PlannedSuite]] = []
        for suite in self.suites:
            place = 1 + max((n for n, of in enumerate(found) for one in of if {*one.ends} & {*suite.ends}), default=-1)
            found += [[] for _ in range(place + 1 - len(found))]
            found[place].append(suite)
        pairs: list[list[Planned]] = [[*all_of_one] for all_of_one in self.rounds()]
        return pairs + [[*all_of_one] for all_of_one in found]

    def rounds(self) -> list[list[PlannedPair]]:
        """Return the pairs in as many starts as are needed: a port sends to one at a time, and hears one.

        A mesh of n probes takes n - 1, in each of which every probe sends to one and hears one.
        """
        places = {name: place for place, name in enumerate(self.by_name)}
        apart = len(places)

        def order(pair: PlannedPair) -> tuple[int, int]:
            sender = places[pair.sender]
            return (places[pair.receiver] - sender) % apart, sender

        found: list[list[PlannedPair]] = []
        busy: list[set[tuple[str, str]]] = []  # Ports of each start, that send and that receive.
        for pair in sorted(self.pairs, key=order):
            ends = {("sends", pair.sender), ("receives", pair.receiver)}
            number = next((number for number, taken in enumerate(busy) if not taken & ends), len(found))
            if number == len(found):
                found.append([])
                busy.append(set())
            found[number].append(pair)
            busy[number] |= ends
        return found


def mesh(probes: Sequence[PlannedProbe], sent: Sent) -> tuple[PlannedPair, ...]:
    """Return a pair for each probe that sends and each other one that receives, in both directions where roles let them."""
    return pairs_of([(a, b, sent) for a in probes for b in probes if a is not b and a.sends and b.receives])


def pairs_of(ends: Iterable[tuple[PlannedProbe, PlannedProbe, Sent]]) -> tuple[PlannedPair, ...]:
    """Return pairs whose frames have the addresses and ports of their ends, and stream ids that no other pair has.

    Ids of a pair's streams are as far apart as given, and begin behind those of the pair before. Raises UsageError where no
    pair can send this.
    """
    found, next_id = [], 1
    for a, b, sent in ends:
        if isinstance(sent, TrainProgram):
            program = replace(sent, headers=addressed(sent.headers, a, b), stream_id=next_id)
            found.append(PlannedPair(a.name, b.name, program))
            next_id += 1
        else:
            shift = max(next_id - min(one.stream_id for one in sent), 0)
            streams = tuple(between(one, a, b, one.stream_id + shift) for one in sent)
            found.append(PlannedPair(a.name, b.name, None, streams))
            next_id = 1 + max(one.stream_id for one in streams)
        if next_id > IDS:
            raise UsageError(f"the streams of all pairs need more than {IDS - 1} ids: give fewer pairs or streams")
    return tuple(found)


# Documents ----------------------------------------------------------------------------------------

#: Keys of a stream that a train has not: it is one kind of frame with a probe header behind UDP, and its pair gives its ends.
NOT_OF_TRAINS = (
    *("modify", "exponential", "burst", "start", "seed", "port", "from", "via", "probe", "stamp", "checksum"),
    *("payload", "mpls", "ethertype", "tcp"),
)
TRAIN = Section("train", {name: one for name, one in OF_ALL.items() if name not in NOT_OF_TRAINS})
DEFAULTS, STREAMS = (STREAMS_DOCUMENT.keys[name].kind for name in ("defaults", "streams"))
PAIR = Section(
    "pair",
    {
        "from": Key(NAME, "Name or label of who sends.", is_needed=True),
        "to": Key(NAME, "Name or label of who receives.", is_needed=True),
        "both_ways": Key(Flag(), "The way back, too.", "false"),
        "train": Key(TRAIN, "What is other than in `train` of the document."),
        "streams": Key(STREAMS, "In the place of what the document says: streams, with the document's `defaults`."),
    },
)
MESH = "mesh"
FILE = Text("the path of a file", r".+")
#: Keys of a capture are the options of `liteprobe capture` that a capture beside an experiment can have.
CAPTURE = Section(
    "capture",
    {
        "at": Key(NAME, "Name or label of the probes.", is_needed=True),
        "write": Key(FILE, "Frames as pcapng (`FILE.pcap`: as pcap); `{probe}` in it is the probe's name."),
        "headers": Key(FILE, "Unified headers as Parquet, likewise."),
        "blocks": Key(FILE, "Blocks as they come, likewise."),
        "filter": Key(Text("an expression like tcpdump's", r".+"), "Which frames.", "all"),
        "host_filter": Key(Flag(), "By libpcap on this host.", "false"),
        "ports": Key(Several(Whole(0, 1), 2), "Ports whose frames are kept.", "both"),
        "sample": Key(Text("N, or hash:N[:SEED]", r"\S+", Sampling.of), "Every Nth frame.", "all"),
        "damaged": Key(Flag(), "Damaged frames, too.", "false"),
        "snap": Key(Whole(0, SNAP_MOST), "Octets of a frame at the most.", "all"),
        "keep": Key(OneOf(KEEPS), "What is kept of a frame.", "what the files need"),
        "channels": Key(Several(Whole(0, CHANNELS - 1), CHANNELS), "Flows go to these, by hash.", "0"),
        "via": Key(OneOf(TRANSPORTS), "How blocks come here.", "the fastest way"),
        "size": Key(
            Quantity("octets", "octets, with k, M or G", PREFIXES, Fraction(10**12), plain=""),
            "Octets of its files, after which it ends.",
            f"none; {STATION_MOST:,} by a station",
        ),
        "utc": Key(Whole(-100, 100), "Stamps are UTC, so many seconds less than TAI.", "stamps are TAI"),
    },
)
PLAN_DOCUMENT = Section(
    "experiment",
    {
        "probes": Key(ByName(PROBE, NAME), "The probes by name, 2 to 256.", is_needed=True),
        **section_of(ExperimentPlan, "plan").keys,
        "train": Key(TRAIN, "The train of each pair; it, `streams`, or those of each pair must be given."),
        "defaults": Key(DEFAULTS, "Keys that all streams have, unless they give them."),
        "streams": Key(STREAMS, "In the place of a train: the streams of each pair; up to 16."),
        "pairs": Key(
            ByShape(OneOf((MESH,)), None, Several(PAIR, PAIRS_MAX)),
            "Who sends to whom: a list, or `mesh`: each to all others, as their roles let them.",
            MESH,
        ),
        "captures": Key(
            Several(CAPTURE, PROBES_MAX),
            "What is captured at probes, from before the first start until after the last.",
        ),
        "suites": Key(Several(SUITE, SUITES_MAX), "What suites run at probes or between them, after the pairs."),
    },
)
SECTIONS = (PLAN_DOCUMENT, PROBE, PAIR, CAPTURE, *SUITE_SECTIONS)


def read_plan(text: str, name: str = "plan.yaml") -> ExperimentPlan:
    """Return the plan of a YAML document.

    ``name``: of the file, for messages. Raises UsageError with name and line where something isn't as docs/experiment.md says.
    """
    source = DocumentName(name)
    document = PLAN_DOCUMENT.read(source.compose(text, "a plan, as docs/experiment.md shows"), "experiment", source)
    document.refuse_both(("start_in", "start_tai"), "experiment")
    given = document.get("probes")
    if not 2 <= len(given) <= PROBES_MAX:
        raise document.error("probes", f"the plan has {len(given)} probes: give 2 to {PROBES_MAX}")
    probes = []
    for word, entries in given.items():
        with source.line(entries.line):
            probes.append(build(PlannedProbe, entries, name=word))
    suites = [one for entries in document.get("suites", ()) for one in suites_of(entries, probes)]
    is_of_suites = bool(suites) and not any(name in document.values for name in ("train", "streams", "pairs"))
    with source.line(document.line_of("pairs", "probes")):
        pairs = () if is_of_suites else pairs_of(_ends(document, probes))
    captures = [one for entries in document.get("captures", ()) for one in _captures(entries, probes)]
    of_all = {"probes": tuple(probes), "pairs": pairs, "captures": tuple(captures), "suites": tuple(suites)}
    with source.line(document.line_of("captures", "suites")):
        made: ExperimentPlan = build(ExperimentPlan, document, **of_all)
    return made


def plan_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of a document with a plan."""
    return PLAN_DOCUMENT.document_schema("experiment.json", "LiteProbe experiment")


# # #


def _ends(document: Entries, probes: Sequence[PlannedProbe]) -> list[tuple[PlannedProbe, PlannedProbe, Sent]]:
    wanted = document.get("pairs", MESH)
    document.refuse_both(("train", "streams"), "experiment")
    if wanted == MESH:
        sent = _sent(document, document)
        return [(a, b, sent) for a in probes for b in probes if a is not b and a.sends and b.receives]
    found: dict[tuple[str, str], tuple[PlannedProbe, PlannedProbe, Sent]] = {}
    for entries in wanted:
        sent = _sent(document, entries)
        ways = [("from", "to"), ("to", "from")] if entries.get("both_ways") else [("from", "to")]
        for first, second in ways:
            for a in called(entries, first, probes):
                for b in called(entries, second, probes):
                    if a is b:
                        continue
                    _check_roles(entries, a, b)
                    if (a.name, b.name) in found:
                        raise entries.error(
                            first, f"the pair from '{a.name}' to '{b.name}' is given twice: leave out one"
                        )
                    found[a.name, b.name] = (a, b, sent)
    if not found:
        raise document.error("pairs", "no pair has two probes: give names or labels of two")
    return list(found.values())


def _sent(document: Entries, pair: Entries) -> Sent:
    """Return what a pair sends: its own train or streams, else those of the document."""
    pair.refuse_both(("train", "streams"), "pair")
    nothing = Entries({}, {}, document.line, document.source)
    if "streams" in pair.values or ("train" not in pair.values and "streams" in document.values):
        common = document.get("defaults", nothing)
        given = pair.get("streams") or document.get("streams")
        streams = []
        for number, entries in enumerate(given, 1):
            refuse_ends(entries, common)
            streams.append(stream_of(entries.over(common, STREAM_GROUPS), number))
            with entries.source.line(entries.line):
                check_measured(streams[-1])
        with document.source.line(pair.line_of("streams")):
            check_port(streams)
        return streams
    if "train" not in pair.values and "train" not in document.values:
        raise pair.source.error(pair.line, "nothing says what is sent: give 'train' or 'streams'")
    own = nothing if pair is document else pair.get("train", nothing)
    return program_of(own.over(document.get("train", nothing), STREAM_GROUPS))


def _captures(entries: Entries, probes: Sequence[PlannedProbe]) -> Iterator[PlannedCapture]:
    """Give the capture of each probe that is called so."""
    keep, sample = entries.get("keep"), entries.get("sample")
    with entries.source.line(entries.line):
        settings = CaptureSettings(
            entries.get("channels") or (0,),
            entries.get("snap", SNAP_MOST),
            None if keep is None else Keep[keep.upper()],
            sample or Sampling(),
            bool(entries.get("damaged")),
        )
        for one in called(entries, "at", probes):
            files = {
                name: entries.values[name].replace("{probe}", one.name) for name in FILES if name in entries.values
            }
            yield PlannedCapture(
                one.name,
                CaptureRequest(
                    **files,
                    settings=settings,
                    ports=entries.get("ports"),
                    filter=entries.get("filter"),
                    host_filter=bool(entries.get("host_filter")),
                    tai_utc_s=entries.get("utc"),
                    transport=Transport(entries.get("via")),
                ),
                int(entries.get("size")) if "size" in entries.values else None,
            )


def _check_roles(entries: Entries, a: PlannedProbe, b: PlannedProbe) -> None:
    if not a.sends:
        raise entries.error("from", f"'{a.name}' only receives, by its role: give it another role")
    if not b.receives:
        raise entries.error("to", f"'{b.name}' only sends, by its role: give it another role")


def program_of(entries: Entries) -> TrainProgram:
    """Return the program of the keys of a train."""
    if "count" not in entries.values:
        raise entries.source.error(entries.line, "a train needs 'count': give a number of frames, like 100")
    stream = stream_of(replace(entries, values={**entries.values, "name": "train"}), 1)
    if not isinstance(stream.length, Fixed):
        raise entries.error("length", "the frames of a train have one length: give one, like 60")
    length, interval = stream.length.length, stream.interval
    interval_ns = interval.interval_ns
    if interval.pps is not None:
        interval_ns = Fraction(SECOND_NS) / Fraction(interval.pps)
    rate_bps = interval.rate_bps
    if interval.share is not None:
        rate_bps = Fraction(interval.share) * SECOND_NS
    if rate_bps is not None:
        interval_ns = Fraction(interval_ns_for_rate(length, float(rate_bps)))
    with entries.source.line(entries.line):
        return TrainProgram(
            length,
            stream.count or 1,
            interval_ns=None if interval_ns is None else float(interval_ns),
            fill=stream.fill,
            headers=stream.headers,
        )
