# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Says what a server runs: of each kind its document, its options, how both are checked, and the call of the library that does it.

Documents, options, errors and forms come from one declaration each (`liteprobe.host.base.document`).
"""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import yaml

from liteprobe.cores.formats import PRESETS as BUILDS
from liteprobe.cores.formats import BinKind, Part
from liteprobe.host.base.defaults import FILLS
from liteprobe.host.base.document import (
    NAME,
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
)
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.base.line import FASTEST, GIGABIT, line_of_url
from liteprobe.host.base.probe_url import is_simulated
from liteprobe.host.base.units import DURATIONS
from liteprobe.host.capture.protocols import ProtocolSampler, sampling_of
from liteprobe.host.capture.request import CaptureRequest
from liteprobe.host.capture.ring import CHANNEL_MEMORY
from liteprobe.host.packets.stamp import ASKED
from liteprobe.host.probe import Probe
from liteprobe.host.report import files
from liteprobe.host.run import emulate, replay, stamp
from liteprobe.host.run.sets import SetsOptions
from liteprobe.host.serve.poll import Look, Poller
from liteprobe.host.serve.poll import document as look_of
from liteprobe.host.serve.worker import Act, Line, Show
from liteprobe.host.suites import rfc2544, search, soak, sweep, y1564
from liteprobe.host.suites.suite import Suite, SuiteLook, SuiteRequest
from liteprobe.host.suites.trials import Journal
from liteprobe.host.traffic import document, layout, load
from liteprobe.host.traffic.intervals import RATE, SHARE, TIME
from liteprobe.host.traffic.network.document import network_schema, read_network
from liteprobe.host.traffic.presets import FOLDER, PRESETS
from liteprobe.host.traffic.trace.trace import Trace
from liteprobe.host.traffic.train import TrainProgram

DAY_NS = 86_400 * 10**9
DURATION = Quantity("a time", "a time with ns, us, ms, s, min or h, up to 30 days", DURATIONS, Fraction(30 * DAY_NS))
TIMES_MOST = Quantity("a number", "a number above 0, up to 1000", {"": 1}, Fraction(1000), plain="")
PORT = Whole(0, 15)
UPLOAD = Text("the name of a file that was uploaded", r"[0-9a-f]{16}")
SIM_LOOK_S = 0.01
TRIALS_SHOWN = 50
SAMPLED = 16  # Of so many frames one is looked at for its protocol: two full lines are 190 Mb/s of headers then.
FRAMES_MOST = 1_000_000  # Of trains, whose records this host keeps.
ROW_SHOWN = (
    "length",
    "count",
    "sent",
    "received",
    "lost",
    "reordered",
    "duplicated",
    "frame_bps",
    "owd_ns",
    "complete",
)
#: Keys of a session of STAMP, and what `stamp.StampSession` calls them.
STAMP_KEYS = {
    "port": "port", "count": "count", "interval": "interval_ns", "padding": "padding", "ssid": "identifier", "tlvs": "tlvs",
    "dscp": "dscp", "ttl": "ttl", "from": "source", "via": "via", "mac": "destination_mac", "any_clock": "any_clock",
    "transmit": "transmit",
}  # fmt: skip
LINES_OF_FILE = re.compile(r"(?P<name>document|options):(?P<line>\d+): (?P<words>.*)", re.DOTALL)


class FieldError(UsageError):
    """An error of a document or of options, with its place: the line, and the JSON Pointer of what is wrong."""

    def __init__(self, words: str, part: str, line: int | None, path: str) -> None:
        super().__init__(words)
        self.part, self.line, self.path = part, line, path


@dataclass(frozen=True)
class AskedRun:
    """Holds what was asked for, checked."""

    name: str  # For people.
    said: list[str]  # As ``--check`` says it.
    act: Act
    document: str = ""  # As it was read.
    page: tuple[str, ...] = ()  # Module of the report, then the name of what more it takes.


@dataclass(frozen=True)
class Place:
    """Says where something runs, and where its files go."""

    url: str  # The probe.
    uploads: Path
    folder: Path  # Of the result.
    measured: Callable[[Look], None] = lambda look: None  # Given each look of a monitor, for metrics.


Read = Callable[[str, Entries, Place], AskedRun]


@dataclass(frozen=True)
class RunKind:
    """A kind of thing that a server runs."""

    name: str
    title: str
    about: str
    form: str  # Of its result's JSON.
    needs: Part  # One of these a probe needs.
    read: Read  # Of the document, the options, and where it runs.
    options: Section
    schema: Callable[[], Schema] | None = None  # Of its document; None: it has none.
    examples: Mapping[str, str] | None = None  # Documents by name.

    def description(self) -> Line:
        """Return what a form of it needs, as plain data."""
        return {
            "name": self.name,
            "title": self.title,
            "about": self.about,
            "needs": [str(part.name).lower() for part in self.needs],
            "presets": [name for name, parts in BUILDS.items() if parts & self.needs],
            "schema": self.schema() if self.schema else None,
            "options": self.options.document_schema(f"{self.name}-options.json", f"LiteProbe options of {self.name}"),
            "examples": {
                name: {"text": text, "document": yaml.safe_load(text)} for name, text in (self.examples or {}).items()
            },
        }

    def asked(self, given: Any, options: Any, place: Place) -> AskedRun:
        """Return what is asked for: ``given`` is the document as text (YAML, JSON) or as plain data, so are ``options``.

        Raises FieldError, as ``--check`` says it, and where; UsageError where there is no such place.
        """
        texts = {"document": _text(given), "options": _text(options or {})}
        try:
            source = DocumentName("options")
            entries = self.options.read(source.compose(texts["options"] or "{}", "options"), "options", source)
            if self.schema and not texts["document"].strip():
                raise FieldError("the document is empty: begin with an example", "document", 1, "")
            return self.read(texts["document"], entries, place)
        except FieldError:
            raise
        except UsageError as error:
            found = LINES_OF_FILE.fullmatch(str(error))
            if not found:
                raise
            line = int(found["line"])
            path = paths_of(texts[found["name"]]).get(line, "")
            raise FieldError(found["words"], found["name"], line, path) from None


def _text(given: Any) -> str:
    """Return a document as text, plain data with a line for each value, so that errors find it."""
    return (
        given
        if isinstance(given, str)
        else json.dumps(given, indent=1, ensure_ascii=False)
        if given is not None
        else ""
    )


def paths_of(text: str) -> dict[int, str]:
    """Return the JSON Pointer of what begins on each line of a YAML document, the outermost one; RFC 6901."""
    found: dict[int, str] = {}
    seen: set[int] = set()  # An alias is walked once: of aliases in aliases there may be no end.

    def walk(node: yaml.Node, path: str) -> None:
        if id(node) in seen:
            return
        seen.add(id(node))
        found.setdefault(node.start_mark.line + 1, path)
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                inner = f"{path}/{str(key.value).replace('~', '~0').replace('/', '~1')}"
                found[key.start_mark.line + 1] = found.get(key.start_mark.line + 1) or inner
                walk(value, inner)
        elif isinstance(node, yaml.SequenceNode):
            for number, value in enumerate(node.value):
                walk(value, f"{path}/{number}")

    with suppress(yaml.YAMLError, RecursionError):
        if (root := yaml.compose(text, yaml.SafeLoader)) is not None:
            walk(root, "")
    return found


def _seconds(options: Entries, name: str = "duration") -> float | None:
    given = options.get(name)
    return None if given is None else float(given) / 1e9


# What there is --------------------------------------------------------------------------------------

_DURATION = Key(DURATION, "Of the probe's time; then it ends.", "until all is sent, or it is stopped")
_RECEIVE = Key(PORT, "Port that measures.", "where the wire leads")
_CAPTURE = Key(Flag(), "Keep what all ports see meanwhile, as pcapng.", "false")


def _streams(text: str, options: Entries, place: Place) -> AskedRun:
    streams = document.read_document(text, "document", line_of_url(place.url) or GIGABIT)
    receive, seconds = options.get("receive"), _seconds(options)
    said = [layout.check_all(streams, seconds, False, receive, place.url)]
    said += [f"{one.name}: {load.percent(load.share_of(one))} of the line of port {one.port}" for one in streams]

    def act(probe: Probe, show: Show) -> Any:
        with probe.send(streams, receive, seconds) as traffic:
            traffic.follow(lambda look: show(look.to_dict()))
            return traffic.result()

    return AskedRun(
        ", ".join(one.name for one in streams[:3]), said, act, document.write_document(streams), ("traffic_page",)
    )


def _network(text: str, options: Entries, place: Place) -> AskedRun:
    network = read_network(text, "document", None)  # Files of this host are nobody's business.
    emulate.rules_of(network)
    said, seconds = emulate.check_network(network), _seconds(options)

    def act(probe: Probe, show: Show) -> Any:
        look_s = SIM_LOOK_S if is_simulated(place.url) else emulate.LOOK_S / 4
        with probe.emulate(network) as emulation:
            stations = probe.link.stations if seconds is None else None
            done = (lambda look: emulate.have_done(stations, look)) if stations else None
            return emulation.wait(seconds, lambda look: show(emulate.look_document(look)), look_s, done)

    return AskedRun("network" if network.name == "document" else network.name, said, act, text, ("emulate_page",))


def _sets(text: str, options: Entries, place: Place) -> AskedRun:
    sets = document.read_sets(text, "document")
    capture = CaptureRequest(place.folder / "capture.pcapng") if options.get("capture") else None

    def act(probe: Probe, show: Show) -> Any:
        return probe.sets(sets, SetsOptions(count=options.get("count")), capture, lambda look: show(asdict(look)))

    return AskedRun(
        "sets",
        [f"{sets.frames or 'no end of'} frames from port {sets.stream.port}"],
        act,
        text,
        ("streamed_page", "SETS"),
    )


def _replay(text: str, options: Entries, place: Place) -> AskedRun:
    del text
    path = place.uploads / options.values["file"]
    if not path.is_file():
        raise options.error("file", "there is no such file any more: upload it again")
    options.refuse_both(("speed", "rate"))
    port, loops = options.get("port", 0), options.get("loops", 1) or None
    capture = CaptureRequest(place.folder / "capture.pcapng") if options.get("capture") else None
    with options.source.line(options.line_of("file")):
        trace = Trace.from_pcap(path, options.get("sort", False), options.get("repair", False))
        if "speed" in options.values:
            trace = trace.stretched(1 / options.values["speed"])
        elif "rate" in options.values:
            trace = trace.at_rate(options.values["rate"])
        found = replay.check({port: trace}, replay.ReplayOptions(loops=loops))
    said = [json.dumps(found.document()["ports"][0], default=str), *found.notes]

    def act(probe: Probe, show: Show) -> Any:
        return probe.replay({port: trace}, loops, capture, show=lambda look: show(asdict(look)))

    return AskedRun(options.get("name", "capture"), said, act, "", ("streamed_page", "REPLAY"))


def _train(text: str, options: Entries, place: Place) -> AskedRun:
    """Return trains, a program for each length and count, and what was measured of those that have ended."""
    del text
    options.refuse_both(("interval", "rate"))
    line = line_of_url(place.url) or FASTEST  # What a probe's own can't do is refused when it runs.
    with options.source.line(options.line):
        template = TrainProgram(
            length=60,
            count=1,
            repeats=options.get("repeat", 1),
            interval_ns=float(options.values["interval"]) if "interval" in options.values else None,
            gap_ns=options.get("gap"),
            fill=options.get("fill", "zero"),
        )
        rate_bps = float(options.values["rate"]) if "rate" in options.values else None
        programs = sweep.programs_for(
            options.get("lengths", [1514]), options.get("counts", [100]), template, rate_bps, line
        )
        sweep.check_programs(programs, line)
    request = sweep.SweepRequest("train", place.url, programs, None, options.get("port", 0), options.get("receive"))

    def act(probe: Probe, show: Show) -> Any:
        found: list[sweep.Sweep] = []

        def seen(sent: int, total: int) -> None:
            rows: list[Line] = [dict(row) for row in (found[-1].rows if found else [])[-TRIALS_SHOWN:]]
            show({"sent": sent, "asked": total, "programs": [{name: row[name] for name in ROW_SHOWN} for row in rows]})

        try:
            return sweep.run(request, seen, probe, found.append)
        except Interrupted as stop:
            stop.results = found[-1:]
            raise

    if request.total > FRAMES_MOST:
        words = (
            f"{request.total:,} frames are too many for a page: give {FRAMES_MOST:,} at most, or use liteprobe train"
        )
        raise options.error("repeat" if "repeat" in options.values else "counts", words)
    frames = f"{request.total} frames from port {request.transmit}, in {len(programs)} programs"
    return AskedRun("train", [frames], act, page=("page",))


def _stamp(text: str, options: Entries, place: Place) -> AskedRun:
    del text, place
    given = {name: options.values[key] for key, name in STAMP_KEYS.items() if key in options.values}
    given |= {"interval_ns": float(given["interval_ns"])} if "interval_ns" in given else {}
    with options.source.line(options.line):
        session = stamp.StampSession(options.values["address"], **given | {"tlvs": tuple(given.get("tlvs", ()))})
    said = f"{session.count} packets to {session.address}, port {session.port}, and back"
    return AskedRun(
        session.address,
        [said],
        lambda probe, show: probe.stamp(session, lambda look: show(look.to_dict())),
        page=("stamp_page",),
    )


def _monitor(text: str, options: Entries, place: Place) -> AskedRun:
    del text
    seconds, rates = _seconds(options), options.get("rates")

    with options.source.line(options.line_of("protocols")):
        one_of = options.get("protocols", 1 if is_simulated(place.url) else SAMPLED)
        sampling = sampling_of(one_of) if one_of else None

    def act(probe: Probe, show: Show) -> Any:
        with ExitStack() as stack:
            sampler = None
            if sampling and ("protocols" in options.values or CHANNEL_MEMORY in probe.registers.memory_names):
                sampler = stack.enter_context(ProtocolSampler(probe, sampling))
            looker = Poller(probe, None, options.get("from_start", False), sampler)
            looker.set(options.get("streams"), {}, None if rates is None else round(rates))
            looker.follow(tuple(BinKind))
            began_s = probe.link.now_s()
            while True:
                look = looker.look()
                place.measured(look)
                show(look_of(look))
                if seconds is not None and probe.link.now_s() - began_s >= seconds:
                    return look
                looker.wait(SIM_LOOK_S / 10 if is_simulated(place.url) else 0.25)

    return AskedRun("monitor", ["all ports, until it is stopped" if seconds is None else f"for {seconds:g} s"], act)


def _capture(text: str, options: Entries, place: Place) -> AskedRun:
    del text
    with options.source.line(options.line):
        request = CaptureRequest(
            place.folder / "capture.pcapng",
            filter=options.get("filter"),
            count=options.get("count"),
            duration_s=_seconds(options),
        )

    def act(probe: Probe, show: Show) -> Any:
        stop: list[Interrupted] = []

        def counted(frames: int) -> None:
            try:
                if not stop:
                    show({"frames": frames})
            except Interrupted as asked:
                stop.append(asked)
                raise

        result = probe.capture(request, counted)
        if stop:
            stop[0].results = [result]
            raise stop[0]
        return result

    return AskedRun(options.get("filter", "all frames"), ["what all ports see, into a pcapng"], act)


def _suite(make: Callable[..., Suite], request: SuiteRequest, page: str, text: str, place: Place) -> AskedRun:
    """Return a suite that keeps each trial as it ends, and shows those that have."""
    plan = request.plan()

    def act(probe: Probe, show: Show) -> Any:
        ready = request
        if isinstance(request, rfc2544.Rfc2544Request):
            sent = request.ways[0][0]
            there = (sent, probe.link.receive_port(sent, probe.port_count))
            ready = replace(request, ways=tuple([there, there[::-1]][: len(request.ways)]))
        head = {"suite": page, "url": place.url, "request": ready.to_dict()}
        with Journal(place.folder / "trials.jsonl", head) as journal:

            def shown(look: SuiteLook) -> None:
                names = ("number", "name", "seconds", "load", "sent", "received", "lost", "verdict", "reason")
                ended = [{name: getattr(one, name) for name in names} for one in journal.trials[-TRIALS_SHOWN:]]
                show({**look.to_dict(), "ended": ended})

            one = make(probe, ready, journal, shown)
            try:
                return one.run()
            except KeyboardInterrupt as stop:
                if journal.trials:
                    stop.results = [one.result()]  # type: ignore[attr-defined]
                raise

    return AskedRun(
        page.removesuffix("_page"), [plan.words(is_simulated(place.url)), *request.marks], act, text, (page,)
    )


def _rfc2544(text: str, options: Entries, place: Place) -> AskedRun:
    usual = rfc2544.usual(place.url)
    trial_s = _seconds(options) or usual["duration"]
    with options.source.line(options.line):
        request = rfc2544.Rfc2544Request(
            tests=tuple(options.get("tests", ("throughput", "latency"))),
            sizes=tuple(options.get("sizes", rfc2544.SIZES)),
            ways=((options.get("port", 0), -1), (-1, -2))[: 2 if options.get("both_ways") else 1],
            goal=search.goal_of(options.get("goal", "rfc2544"), seconds=trial_s),
            latency_s=usual["latency_duration"],
            latency_repeats=int(usual["latency_repeats"]),
            load=None if "load" not in options.values else float(options.values["load"]),
            burst_s=usual["burst_duration"],
            burst_repeats=int(usual["burst_repeats"]),
            pause_s=usual["pause"],
        )
        for size in request.sizes:
            request.counted(size, 1.0, 1)
    return _suite(rfc2544.Rfc2544, request, "rfc2544_page", text, place)


def _y1564(text: str, options: Entries, place: Place) -> AskedRun:
    step_s, performance_s, pause_s = y1564.usual_s(place.url)
    request = y1564.Y1564Request(
        services=tuple(y1564.read_services(text, "document")),
        tests=tuple(options.get("tests", ("configuration", "performance"))),
        step_s=_seconds(options) or step_s,
        performance_s=_seconds(options, "performance") or performance_s,
        pause_s=pause_s,
    )
    return _suite(y1564.Y1564, request, "y1564_page", text, place)


def _soak(text: str, options: Entries, place: Place) -> AskedRun:
    whole_s, segment_s = soak.usual_s(place.url)
    streams = tuple(document.read_document(text, "document"))
    request = soak.SoakRequest(streams, _seconds(options) or whole_s, _seconds(options, "segment") or segment_s)
    return _suite(soak.Soak, request, "soak_page", text, place)


STREAMS_EXAMPLE = """\
streams:
  - {name: voice, length: 214, pps: 5000, fill: prbs}
  - {name: bulk, length: imix, share: 30%, exponential: true}
"""
SETS_EXAMPLE = """\
stream: {name: hosts, length: 128, pps: 100k, ipv4: {source: 10.0.0.1, destination: 10.0.1.1}}
fields: [address]
sets: [{address: 10.0.0.1}, {address: 10.0.0.2}, {address: 10.0.0.3}]
"""
SERVICES_EXAMPLE = """\
services:
  - {name: gold, length: 512, cir: 100M}
"""
SOAK_EXAMPLE = "streams: [{name: all, length: imix, share: 50%, fill: prbs}]\n"

KINDS = {
    kind.name: kind
    for kind in (
        RunKind(
            "streams",
            "Streams",
            "Many streams at once, each measured.",
            files.TRAFFIC_FORMAT,
            Part.STREAMS,
            _streams,
            Section("options", {"duration": _DURATION, "receive": _RECEIVE}),
            document.schema,
            {"two streams": STREAMS_EXAMPLE},
        ),
        RunKind(
            "train",
            "Trains",
            "Frames on their exact ticks: rate, delay, loss and order of each program.",
            files.FORMAT,
            Part.GENERATE,
            _train,
            Section(
                "options",
                {
                    "lengths": Key(Several(Whole(60, 9000), 64), "Octets without FCS, a program for each.", "1514"),
                    "counts": Key(Several(Whole(1, 1_000_000), 16), "Frames of a train, a program for each.", "100"),
                    "repeat": Key(Whole(1, 1_000_000), "Trains of each kind.", "1"),
                    "interval": Key(TIME, "From SFD to SFD.", "back to back"),
                    "rate": Key(RATE, "In the place of `interval`: on the wire."),
                    "gap": Key(TIME, "Extra time between trains.", "what fetching takes"),
                    "fill": Key(OneOf(tuple(FILLS)), "The rest of the payload.", "zero"),
                    "port": Key(PORT, "Port that sends.", "0"),
                    "receive": _RECEIVE,
                },
            ),
        ),
        RunKind(
            "stamp",
            "STAMP",
            "A path to a reflector and back: delay and loss of each way (RFC 8762).",
            files.STAMP_FORMAT,
            Part.STREAMS,
            _stamp,
            Section(
                "options",
                {
                    "address": Key(NAME, "IPv4 or IPv6 address of the reflector.", is_needed=True),
                    "port": Key(Whole(1, 65535), "Its UDP port.", "862"),
                    "count": Key(Whole(1, 1 << 31), "Packets.", "100"),
                    "interval": Key(TIME, "From SFD to SFD.", "1ms"),
                    "padding": Key(Whole(0, 1400), "Octets of the TLV Extra Padding.", "none; 4 over IPv6"),
                    "dscp": Key(Whole(0, 63), "Of the packets.", "0"),
                    "ttl": Key(Whole(1, 255), "TTL or hop limit.", "255"),
                    "ssid": Key(Whole(0, 65535), "Identifier of the session.", "1"),
                    "tlvs": Key(Several(OneOf(tuple(ASKED)), len(ASKED)), "TLVs to ask for.", "none"),
                    "from": Key(NAME, "Source address.", "198.18.0.1 or 2001:2::1"),
                    "via": Key(NAME, "Router on the way, with `from`."),
                    "mac": Key(NAME, "MAC address of the reflector, or of the router to it."),
                    "transmit": Key(PORT, "Port of the probe.", "0"),
                    "any_clock": Key(Flag(), "Give delays of each way though a clock is not synchronised.", "false"),
                },
            ),
        ),
        RunKind(
            "network",
            "Network",
            "Two ports joined by a degraded network.",
            files.EMULATION_FORMAT,
            Part.EMULATE,
            _network,
            Section("options", {"duration": _DURATION}),
            network_schema,
            {name: (FOLDER / f"{name}.yaml").read_text(encoding="utf-8") for name in PRESETS},
        ),
        RunKind(
            "replay",
            "Replay",
            "A capture, with its gaps.",
            files.REPLAY.format,
            Part.REPLAY,
            _replay,
            Section(
                "options",
                {
                    "file": Key(UPLOAD, "The capture: pcap or pcapng.", is_needed=True),
                    "name": Key(NAME, "For people."),
                    "port": Key(PORT, "Port that sends it.", "0"),
                    "loops": Key(Whole(0, 65535), "How often it is sent; 0: until it is stopped.", "1"),
                    "speed": Key(TIMES_MOST, "So many times as fast as the file says.", "1"),
                    "rate": Key(RATE, "In the place of `speed`: a constant rate on the wire."),
                    "sort": Key(Flag(), "Bring packets into order whose times go back.", "false"),
                    "repair": Key(Flag(), "Replay a file that is cut up to there.", "false"),
                    "capture": _CAPTURE,
                },
            ),
        ),
        RunKind(
            "sets",
            "Sets",
            "Frames that vary by configuration sets.",
            files.SETS.format,
            Part.SETS,
            _sets,
            Section("options", {"count": Key(Whole(1, 2**32 - 1), "Frames at most.", "all"), "capture": _CAPTURE}),
            document.sets_schema,
            {"three addresses": SETS_EXAMPLE},
        ),
        RunKind(
            "monitor",
            "Monitor",
            "What comes to the ports: rates, protocols, streams, histograms, losses by cause.",
            "liteprobe-monitor",
            Part.MONITOR | Part.MEASURE,
            _monitor,
            Section(
                "options",
                {
                    "duration": _DURATION,
                    "streams": Key(Whole(0, 0xFFFF), "Measure the streams from this id on; clears what was measured."),
                    "from_start": Key(
                        Flag(),
                        "Streams begin after this: what is missing from number 0 on is lost.",
                        "lost counts from the first look at a stream on",
                    ),
                    "rates": Key(DURATION, "Count rates over this time of the probe, from 1 ms.", "as it is set"),
                    "protocols": Key(
                        Whole(0, 16),
                        "Count what frames carry, of one frame in 1, 2, 4, 8 or 16; 0: of none. It takes the capture.",
                        f"{SAMPLED}; simulated 1; 0 where the probe captures nothing",
                    ),
                },
            ),
        ),
        RunKind(
            "capture",
            "Capture",
            "Frames that come to the ports, into a pcapng with nanoseconds.",
            "liteprobe-capture",
            Part.MONITOR,
            _capture,
            Section(
                "options",
                {
                    "filter": Key(NAME, "Keep what matches this expression of tcpdump.", "all"),
                    "count": Key(Whole(1, 10_000_000), "Frames at most."),
                    "duration": _DURATION,
                },
            ),
        ),
        RunKind(
            "rfc2544",
            "RFC 2544",
            "Throughput, latency, loss and back-to-back frames of a device.",
            files.RFC2544_FORMAT,
            Part.STREAMS,
            _rfc2544,
            Section(
                "options",
                {
                    "tests": Key(Several(OneOf(rfc2544.TESTS[:5]), 5), "Which.", "throughput, latency"),
                    "sizes": Key(Several(NAME, 16), "Frame sizes with FCS; imix.", ", ".join(rfc2544.SIZES)),
                    "duration": Key(DURATION, "Of a trial.", "60 s; simulated 20 ms"),
                    "port": Key(PORT, "Port that sends.", "0"),
                    "both_ways": Key(Flag(), "Send both ways at once.", "false"),
                    "goal": Key(OneOf(tuple(search.GOALS)), "What counts as passed.", "rfc2544"),
                    "load": Key(SHARE, "Of the line, for latency.", "the throughput"),
                },
            ),
        ),
        RunKind(
            "y1564",
            "Y.1564",
            "Services: their rates, policing, bursts, and all at once.",
            files.Y1564_FORMAT,
            Part.STREAMS,
            _y1564,
            Section(
                "options",
                {
                    "tests": Key(Several(OneOf(("configuration", "performance")), 2), "Which.", "both"),
                    "duration": Key(DURATION, "Of a step.", "60 s; simulated 20 ms"),
                    "performance": Key(DURATION, "All services at once.", "15 min; simulated 20 ms"),
                },
            ),
            y1564.schema,
            {"one service": SERVICES_EXAMPLE},
        ),
        RunKind(
            "soak",
            "Soak",
            "Streams for hours, and what went wrong when.",
            files.SOAK_FORMAT,
            Part.STREAMS,
            _soak,
            Section(
                "options",
                {
                    "duration": Key(DURATION, "In all.", "1 h; simulated 20 ms"),
                    "segment": Key(DURATION, "What is kept at once.", "1 min; simulated 5 ms"),
                },
            ),
            document.schema,
            {"one stream": SOAK_EXAMPLE},
        ),
    )
}
