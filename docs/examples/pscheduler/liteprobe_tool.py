# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Makes a probe a tool of pScheduler for the tests ``latency`` and ``throughput``.

Each program of the tool (`PROGRAMS`) reads JSON on stdin and prints JSON, as pScheduler's plug-in development kit has it; none
needs pScheduler itself. What a test asks for and can't be done as it says is refused by ``can-run``, with all reasons.
"""

import ipaddress
import json
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import Part
from liteprobe.host import Bounds, Fixed, Headers, Interval, Probe, Stream, StreamFigures, TrafficLook, TrainProgram
from liteprobe.host.analysis import arrivals, summary
from liteprobe.host.analysis.rows import Row
from liteprobe.host.base.document import ByName, DocumentName, Key, Section, Text, build
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.probe_url import is_simulated
from liteprobe.host.fleet.experiment import Experiment
from liteprobe.host.fleet.plan import ExperimentPlan, pairs_of
from liteprobe.host.fleet.probes import PROBE, PlannedProbe
from liteprobe.host.traffic.intervals import NOMINAL
from liteprobe.host.traffic.layout import words_of
from liteprobe.host.traffic.train import schedule

Json = dict[str, Any]
Open = Callable[[PlannedProbe], Probe]

CONFIGURATION = Path(os.environ.get("LITEPROBE_PSCHEDULER_CONFIGURATION", "/etc/pscheduler/tool/liteprobe.yaml"))
ADDRESS = Text("an address or a host name", r"[A-Za-z0-9_.:-]+")
PORT = Section("port", {name: PROBE.keys[name] for name in ("url", "map", "port", "ip", "mac", "router_mac")})
PORTS = Section("configuration", {"ports": Key(ByName(PORT, ADDRESS), "Ports of probes by address.", is_needed=True)})
SCHEMAS = {"latency": 4, "throughput": 7}  # The newest of each test.
SETUP_S = 15  # To open probes, to load them, and to wait for the last frame.
WAITING_MOST_S = 3600
INTERVAL_LEAST = Fraction(1)  # Of a probe that isn't simulated: looks take a quarter of a second.
#: What owping and iperf3 take where a test doesn't say.
PACKETS, PACKET_INTERVAL, BUCKET_WIDTH, DURATION = 100, 0.1, 0.001, Fraction(10)
PAYLOAD = 1452  # Of a datagram (octets): of IPv6 in a frame of 1514.

COMMON = ("schema", "source", "source-node", "dest", "dest-node", "ip-tos", "ip-version", "reverse")
#: Keys that are done as they say.
DONE = {
    "latency": (
        *COMMON,
        *("packet-count", "packet-interval", "packet-timeout", "packet-padding", "bucket-width", "data-ports", "flip"),
    ),
    "throughput": (
        *COMMON,
        *("duration", "interval", "link-rtt", "parallel", "udp", "bandwidth", "bandwidth-strict", "buffer-length"),
        *("flow-label", "single-ended"),
    ),
}
NO_TCP = "a probe sends UDP, which has none"
NO_CPU = "no processor sends the frames"
#: Why others are not.
NOT_DONE = {
    "protocol": "frames are LiteProbe's own, of no other protocol",
    "ctrl-port": "probes have no control connection",
    "output-raw": "a raw packet has the TTL that it came with, which a probe does not record",
    "traverse-nat": "a probe sends to fixed addresses and opens no NAT",
    "burst-size": "frames come at even intervals",
    "fq-rate": "bandwidth paces each stream",
    "window-size": NO_TCP,
    "mss": NO_TCP,
    "no-delay": NO_TCP,
    "congestion": NO_TCP,
    "zero-copy": NO_CPU,
    "client-cpu-affinity": NO_CPU,
    "server-cpu-affinity": NO_CPU,
    "omit": "a stream has its rate from its first frame on",
    "local-address": "the address is that of source",
    "single-ended-port": "the other end is a probe, without a server",
    "reverse-connections": "probes make no connections",
    "loopback": "the two ends are two ports",
}
NOTHING = (False, None, "P0D", "PT0S")  # Values that ask for nothing.


class RefusedError(UsageError):
    """Says all that can't be done of a test.

    Attributes
    ----------
    reasons : list of str
    """

    def __init__(self, reasons: Iterable[str]) -> None:
        self.reasons = list(reasons)
        super().__init__("; ".join(self.reasons))


# What a test asks for -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Ends:
    """The ports that send and receive, called source and dest."""

    source: PlannedProbe
    dest: PlannedProbe

    @property
    def are_of_one_probe(self) -> bool:
        """Whether both are ports of the same probe."""
        return self.source.url == self.dest.url


@dataclass(frozen=True)
class LatencyTest:
    """Holds what a test ``latency`` asks for."""

    ends: Ends
    program: TrainProgram
    waiting_ns: int | None  # T_max of RFC 7680; None: as long as a probe listens.
    bucket_s: float  # Width of a bin of the histogram.

    @classmethod
    def of(cls, spec: Json, ends: Ends) -> "LatencyTest":
        """Return that of a specification; UsageError where no probe can."""
        asked = _headers(spec, ends)
        if "data-ports" in spec:
            asked = replace(asked, source_port=spec["data-ports"]["lower"])
        program = TrainProgram(
            asked.length_min + spec.get("packet-padding", 0),
            spec.get("packet-count", PACKETS),
            interval_ns=float(Fraction(str(spec.get("packet-interval", PACKET_INTERVAL))) * 10**9),
            headers=asked,
        )
        schedule(program, NOMINAL)
        (pair,) = pairs_of([(ends.source, ends.dest, program)])
        assert pair.program
        waiting_s = spec.get("packet-timeout", 0)
        if type(waiting_s) is not int or not 0 <= waiting_s <= WAITING_MOST_S:
            raise UsageError(f"packet-timeout: a probe waits 0 to {WAITING_MOST_S} whole seconds, not {waiting_s}")
        return cls(ends, pair.program, waiting_s * 10**9 or None, float(spec.get("bucket-width", BUCKET_WIDTH)))

    @property
    def seconds(self) -> Fraction:
        """Return how long it takes."""
        return Fraction(self.program.interval_ns or 0) * self.program.count / 10**9 + Fraction(
            self.waiting_ns or 0, 10**9
        )


@dataclass(frozen=True)
class ThroughputTest:
    """Holds what a test ``throughput`` asks for."""

    ends: Ends
    streams: Sequence[Stream]
    payload: int  # Octets of a datagram: rates are of these, as iperf3 has it.
    seconds: Fraction
    interval_s: Fraction | None  # From one figure of the rate to the next.

    @classmethod
    def of(cls, spec: Json, ends: Ends) -> "ThroughputTest":
        """Return that of a specification; UsageError where no probe can."""
        payload = spec.get("buffer-length", PAYLOAD)
        pps = Fraction(spec["bandwidth"], 8 * payload)
        asked = _headers(spec, ends)
        if "flow-label" in spec and not asked.is_ipv6:
            raise UsageError("flow-label: IPv4 has none: leave it out")
        seconds = seconds_of(spec["duration"]) if "duration" in spec else DURATION
        streams, count = [], math.ceil(seconds * pps)
        for number in range(spec.get("parallel", 1)):
            of = replace(asked, flow_label=spec.get("flow-label", 0), source_port=asked.source_port + number)
            length = Fixed(of.payload_offset + payload)
            streams.append(Stream(f"stream {number + 1}", number + 1, length, Interval(pps=pps), count, headers=of))
        (pair,) = pairs_of([(ends.source, ends.dest, streams)])
        every = seconds_of(spec["interval"]) if "interval" in spec else None
        if every is not None and not ends.are_of_one_probe:
            raise UsageError("interval: between two probes there is one figure, of the whole: leave it out")
        if every is not None and every < INTERVAL_LEAST and not is_simulated(ends.source.url):
            raise UsageError(f"interval: {float(every):g} s is less than between two looks: give PT1S or more")
        words_of(pair.streams, None, False)
        return cls(ends, pair.streams, payload, seconds, every)


def seconds_of(text: str) -> Fraction:
    """Return the seconds of a duration of ISO 8601, in weeks to seconds; UsageError where it is none.

    >>> seconds_of("PT1M0.25S")
    Fraction(241, 4)
    """
    number = r"(?:(\d+(?:\.\d+)?){})?"
    pattern = "P{}{}(?:T{}{}{})?".format(*(number.format(unit) for unit in "WDHMS"))
    match = re.fullmatch(pattern, text)
    if not match or not any(match.groups()):
        raise UsageError(f"'{text}' is not a duration: give one like PT10S")
    return sum(
        (Fraction(one or 0) * of for one, of in zip(match.groups(), (604_800, 86_400, 3600, 60, 1), strict=True)),
        Fraction(),
    )


def wanted(given: Json) -> LatencyTest | ThroughputTest:
    """Return what a test asks for; RefusedError with all reasons where it can't be done as it says."""
    kind, spec = given.get("type"), given.get("spec")
    if kind not in SCHEMAS:
        raise RefusedError([f"liteprobe measures {' and '.join(SCHEMAS)}, not '{kind}'"])
    if not isinstance(spec, dict):
        raise RefusedError(["the test has no specification"])
    if (schema := spec.get("schema", 1)) not in range(1, SCHEMAS[kind] + 1):
        raise RefusedError([f"schema {schema} of {kind} is not known: give {SCHEMAS[kind]} or less"])
    reasons = [
        f"{key}: {NOT_DONE.get(key, 'liteprobe does not know it')}: leave it out"
        for key, value in spec.items()
        if key not in DONE[kind] and not (key in NOT_DONE and value in NOTHING)
    ]
    if kind == "throughput" and spec.get("udp") is not True:
        reasons.append("udp: a probe sends no TCP: set it to true")
    if kind == "throughput" and "bandwidth" not in spec:
        reasons.append("bandwidth: without it a probe would fill the line: give bits a second, of payload")
    reasons += [
        f"{key}: there is none: give the address of a port of a probe" for key in ("source", "dest") if key not in spec
    ]
    if reasons:
        raise RefusedError(reasons)
    try:
        ends = ends_of(spec, configured())
        return LatencyTest.of(spec, ends) if kind == "latency" else ThroughputTest.of(spec, ends)
    except (ProbeError, OSError) as error:
        raise RefusedError([str(error)]) from None
    except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError) as error:
        raise RefusedError([f"the specification can't be read: {type(error).__name__} {error}"]) from None


def configured(path: Path | None = None) -> dict[str, PlannedProbe]:
    """Return the ports of probes by address; UsageError, with the line, where one can't be."""
    path = path or CONFIGURATION
    source = DocumentName(path.name)
    root = source.compose(path.read_text(), "ports of probes by address, as docs/experiment.md shows")
    found = {}
    for address, entries in PORTS.read(root, "configuration", source).get("ports").items():
        with source.line(entries.line):
            one = build(PlannedProbe, entries, name="port")
            found[_normal(address)] = one if one.ip else replace(one, ip=_ip_of(address))
    return found


def ends_of(spec: Json, ports: Mapping[str, PlannedProbe]) -> Ends:
    """Return who sends and who receives; ``reverse`` swaps them. Raises UsageError for an address that no port of a probe has."""
    found = []
    for key in ("source", "dest"):
        address = _normal(spec[key])
        if address not in ports:
            raise UsageError(f"{key}: no probe has a port with the address {spec[key]}: name it in {CONFIGURATION}")
        found.append(replace(ports[address], name=key))
    if (found[0].url, found[0].port) == (found[1].url, found[1].port):
        raise UsageError("source and dest are the same port: give two")
    return Ends(*(reversed(found) if spec.get("reverse") else found))


def _normal(address: str) -> str:
    """Return an address as all ways to write it are, or a name in small letters."""
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address.lower().rstrip(".")


def _ip_of(address: str) -> str:
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        raise UsageError(f"'{address}' is a name: give its address with ip") from None


def _headers(spec: Json, ends: Ends) -> Headers:
    headers = Headers(
        source_ip=ends.source.ip or "", destination_ip=ends.dest.ip or "", traffic_class=spec.get("ip-tos", 0)
    )
    family = 6 if headers.is_ipv6 else 4
    if spec.get("ip-version", family) != family:
        raise UsageError(f"ip-version: source and dest have addresses of IPv{family}: leave it out")
    return headers


# Latency ------------------------------------------------------------------------------------------


def measure_latency(test: LatencyTest, wait: Callable[[], None], opener: Open) -> Json:
    """Send a train, and return a result of ``latency``."""
    if not test.ends.are_of_one_probe:
        return _between_probes(test, wait, opener)
    with opener(test.ends.source) as probe:
        probe.need(Part.GENERATE)
        probe.need(Part.RECORD)
        if test.waiting_ns:
            probe.link.arrival_timeout_s = max(test.waiting_ns / 1e9, probe.link.arrival_timeout_s)
        wait()
        result = probe.train(test.program, test.ends.source.port, test.ends.dest.port)
    row = summary.row(result, test.waiting_ns)
    if not arrivals.has_all_records(result):
        raise ProbeError("the probe has not recorded all delays: give a greater packet-interval, or fewer packets")
    owd_ns = arrivals.packets(result, test.waiting_ns).owd_ns
    return latency_result(test, row, owd_ns, result.uncertainty_ns, [f"clock: {result.clock_state}", *result.notes])


def _between_probes(test: LatencyTest, wait: Callable[[], None], opener: Open) -> Json:
    """Measure from one probe to another, whose clocks both know a TAI second."""
    ends = (test.ends.source, test.ends.dest)
    waiting_ns = None if test.waiting_ns is None else Fraction(test.waiting_ns)
    plan = ExperimentPlan(ends, pairs_of([(*ends, test.program)]), waiting_time_ns=waiting_ns)
    with Experiment(plan, opener=opener) as experiment:
        wait()
        result = experiment.run()
    (pair,) = result.pairs
    if pair.row is None or pair.owd_ns is None or pair.bound_ns is None:
        raise ProbeError(pair.why)
    states = [pair.row["sender"]["clock_state"], pair.row["receiver"]["clock_state"]]
    clocks = [f"clock of {name}: {state}" for name, state in zip(("source", "dest"), states, strict=True)]
    return latency_result(test, pair.row, pair.owd_ns, pair.bound_ns, [*clocks, *result.notes, pair.note])


def latency_result(test: LatencyTest, row: Row, owd_ns: NDArray[Any], bound_ns: float, notes: Sequence[str]) -> Json:
    """Return a result of ``latency``: counts of a row, the histogram of all delays, and the bound of the clocks (95 %)."""
    program = test.program
    said = [
        f"{program.count} frames of {program.length} octets, {program.interval_ns:g} ns from start to start",
        f"error of one delay: {bound_ns:g} ns (95 %)",
        *notes,
    ]
    found: Json = {
        "schema": 1,
        "succeeded": True,
        "packets-sent": row["sent"],
        "packets-received": row["received"],
        "packets-lost": row["lost"],
        "packets-duplicated": row["duplicated"],
        "packets-reordered": row["reordered"],
        "histogram-latency": histogram(owd_ns, test.bucket_s),
        "diags": "\n".join(one for one in said if one),
    }
    if math.isfinite(bound_ns):
        found["max-clock-error"] = bound_ns / 1e6  # ms.
    return found


def histogram(delays_ns: NDArray[Any], bucket_s: float) -> dict[str, int]:
    """Return how many delays there are of each bin, by their middles in bins, to two places.

    >>> histogram(np.array([1_004_000, 1_006_000, -3]), 0.001)
    {'0.00': 1, '1.00': 1, '1.01': 1}
    """
    middles, counts = np.unique(np.round(delays_ns / (bucket_s * 1e9), 2) + 0.0, return_counts=True)
    return {f"{middle:.2f}": int(count) for middle, count in zip(middles, counts, strict=True)}


# Throughput ---------------------------------------------------------------------------------------


def measure_throughput(test: ThroughputTest, wait: Callable[[], None], opener: Open) -> Json:
    """Send streams, and return a result of ``throughput``."""
    looks: list[TrafficLook] = []

    def show(look: TrafficLook) -> None:
        every, before_s = test.interval_s, looks[-1].elapsed_s if looks else 0.0
        if every and look.elapsed_s // every > before_s // every and look.elapsed_s < test.seconds:
            looks.append(look)

    if not test.ends.are_of_one_probe:
        return throughput_result(test, (), *_streams_between_probes(test, wait, opener))
    with opener(test.ends.source) as probe:
        probe.need(Part.STREAMS)
        wait()
        with probe.send(test.streams, test.ends.dest.port) as traffic:
            traffic.wait(show)
            result = traffic.result()
    if not result.is_complete:
        raise ProbeError(f"it ended before its time: {' '.join(result.notes) or result.end}")
    return throughput_result(test, looks, result.rows, result.notes)


def _streams_between_probes(
    test: ThroughputTest, wait: Callable[[], None], opener: Open
) -> tuple[list[StreamFigures], Sequence[str]]:
    """Return the figures of streams from one probe to another, and notes."""
    ends = (test.ends.source, test.ends.dest)
    plan = ExperimentPlan(ends, pairs_of([(*ends, test.streams)]))
    with Experiment(plan, opener=opener) as experiment:
        wait()
        result = experiment.run()
    flows = [one.flow for one in result.pairs if one.flow]
    if len(flows) < len(test.streams):
        raise ProbeError(next(one.why for one in result.pairs if not one.flow))
    return flows, [*result.notes, *dict.fromkeys(one.note for one in result.pairs if one.note)]


def throughput_result(
    test: ThroughputTest, looks: Sequence[TrafficLook], rows_of_all: Sequence[StreamFigures], notes: Sequence[str]
) -> Json:
    """Return a result of ``throughput``: rates of payload, of each stream and of all, by interval and in the whole."""
    intervals = []
    before: tuple[float, list[tuple[int, int, int]]] = (0.0, [(0, 0, 0)] * len(test.streams))
    ends = [(look.elapsed_s, look.rows) for look in looks]
    for end_s, rows in [*ends, (float(test.seconds), rows_of_all)] if looks else []:
        counts = [(row.sent, row.received or 0, row.lost or 0) for row in rows]
        streams = []
        for number, (now, then) in enumerate(zip(counts, before[1], strict=True), 1):
            sent, received, lost = (one - other for one, other in zip(now, then, strict=True))
            rates = (sent / (end_s - before[0]), received / (end_s - before[0]))
            streams.append(_part(number, (before[0], end_s), test.payload, (sent, lost), rates))
        intervals.append({"streams": streams, "summary": _sum(streams)})
        before = (end_s, counts)
    whole = []
    for number, row in enumerate(rows_of_all, 1):
        fps = (_middle(row.sent_fps), _middle(row.received_fps))
        whole.append(_part(number, (0.0, float(test.seconds)), test.payload, (row.sent, row.lost), fps))
    of = test.streams[0]
    said = [
        f"{len(test.streams)} streams of frames of {of.length.greatest} octets, with {test.payload} octets of payload each",
        "throughput is of payload; jitter is not measured, see the test latency",
        *notes,
    ]
    return {
        "schema": 1,
        "succeeded": True,
        "diags": "\n".join(said),
        "intervals": intervals,
        "summary": {"streams": whole, "summary": _sum(whole)},
    }


def _part(
    number: int, span_s: tuple[float, float], payload: int, counts: tuple[int, int | None], rates: tuple[float, float]
) -> Json:
    """Return the figures of a stream; ``counts``: sent and lost, ``rates``: sent and received frames a second."""
    return {
        "stream-id": number,
        "start": span_s[0],
        "end": span_s[1],
        "throughput-bits": 8 * payload * rates[0],
        "throughput-bytes": payload * counts[0],
        "receiver-throughput-bits": 8 * payload * rates[1],
        "sent": counts[0],
        "lost": counts[1],
        "jitter": None,
    }


def _middle(bounds: Bounds | None) -> float:
    return 0.0 if bounds is None else (bounds.least + bounds.most) / 2


def _sum(parts: Sequence[Json]) -> Json:
    """Return the figures of all streams together."""
    added = ("throughput-bits", "throughput-bytes", "receiver-throughput-bits", "sent", "lost")
    found = {**parts[0], **{name: sum(one[name] for one in parts) for name in added}}
    del found["stream-id"]
    return found


# Programs -----------------------------------------------------------------------------------------


def can_run(given: Json) -> Json:
    """Return whether a test can be run as it says, else all reasons."""
    try:
        wanted(given)
    except RefusedError as error:
        return {"can-run": False, "reasons": error.reasons}
    return {"can-run": True}


def duration(given: Json) -> Json:
    """Return how long a test takes at the most."""
    return {"duration": f"PT{math.ceil(wanted(given).seconds) + SETUP_S}S"}


def participant_data(given: Json) -> Json:
    """Return nothing: the first participant reaches all probes."""
    return {}


def run(given: Json, opener: Open | None = None, sleep: Callable[[float], None] = time.sleep) -> Json:
    """Measure, from the start of the schedule on, and return a result; of another participant than the first an empty one.

    ``opener``: opens a probe; None: by its URL. ``sleep``: waits for the start.
    """
    if given["participant"]:
        return {"succeeded": True, "diags": "the first participant measures"}
    start = datetime.fromisoformat(given["schedule"]["start"])

    def wait() -> None:
        sleep(max(start.timestamp() - time.time(), 0))

    empty: Json = {"intervals": [], "summary": {}} if given["test"].get("type") == "throughput" else {}
    try:
        test = wanted(given["test"])
        opened = opener or (lambda one: Probe(one.url, one.map))
        if isinstance(test, LatencyTest):
            return measure_latency(test, wait, opened)
        return measure_throughput(test, wait, opened)
    except (ProbeError, OSError) as error:
        return {"schema": 1, "succeeded": False, "error": str(error), "diags": "", **empty}


def merged_results(given: Json) -> Json:
    """Return the result of the first participant."""
    found = given["results"][0] if given["results"] else None
    return found or {"succeeded": False, "error": "the first participant gave no result", "diags": ""}


PROGRAMS: dict[str, Callable[[Json], Json]] = {
    "can-run": can_run,
    "duration": duration,
    "participant-data": participant_data,
    "run": run,
    "merged-results": merged_results,
}


def main(program: str) -> None:
    """Run a program of the tool: JSON from stdin to stdout; what isn't JSON of pScheduler is said on stderr, with exit code 1."""
    try:
        print(json.dumps(PROGRAMS[program](json.load(sys.stdin)), allow_nan=False))
    except (ValueError, KeyError, TypeError, AttributeError, UsageError) as error:
        sys.exit(f"{program}: {type(error).__name__}: {error}")
