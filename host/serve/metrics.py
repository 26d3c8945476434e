# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Offers figures to Prometheus: those of the last look of a monitor, and of what a server runs, whoever asks and how often.

Units are base units (seconds, bytes). What can become less (frames lost, of which one may come late) is a gauge. Delays by
short stamps have a label ``modulo``: what they are known modulo (s).
"""

import math
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from typing import Any, NamedTuple
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from liteprobe.cores.formats import BinKind
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.capture.protocols import PROTOCOLS
from liteprobe.host.measure.monitor import Histogram, PortMeasurement
from liteprobe.host.run.emulate import DROPS
from liteprobe.host.serve.poll import ALL, RECEIVED, Look, totals

PREFIX = "liteprobe_"
PER_SECOND = 1e9  # Nanoseconds; dividing by it rounds once, as multiplying by 1e-9 does not.
STEADY = ("lost", "missing_before")  # Counts that can become less: gauges, as delays are.
HISTOGRAMS = {
    BinKind.LENGTH: ("frame_length_bytes", "Lengths of all frames of a port, without FCS", 1),
    BinKind.DELAY: ("delay_seconds", "One-way delays of all good probe frames of a port", PER_SECOND),
    BinKind.ARRIVAL: (
        "interarrival_seconds",
        "Times between the starts of one frame of a port and the next",
        PER_SECOND,
    ),
}


class Metrics(Collector):
    """Gives the last look away; before the first one, nothing; set ``look`` after each."""

    def __init__(self) -> None:
        self.look: Look | None = None

    def collect(self) -> Iterator[Metric]:
        look = self.look
        if look is None:
            return
        yield from _build()
        yield from _ports(look)
        yield from _streams(look.ports)
        yield from _histograms(look.ports)
        yield from _channels(look)
        yield from _protocols(look)
        yield from _clock(look.clock_state, look.uncertainty_ns)


def _gauge(name: str, about: str, label: str, of: str, value: float) -> GaugeMetricFamily:
    """Return a gauge of one value."""
    gauge = GaugeMetricFamily(PREFIX + name, about, labels=[label])
    gauge.add_metric([of], value)
    return gauge


def _build() -> Iterator[Metric]:
    """Yield what the numbers come from."""
    yield _gauge("build_info", "1, labelled with the version of liteprobe", "version", metadata.version("liteprobe"), 1)


def _clock(state: str, bound_ns: float | None) -> Iterator[Metric]:
    """Yield the state of the clock, and the bound of its error where it is known."""
    yield _gauge("clock_state", "1 for the state of the clock", "state", state, 1)
    if bound_ns is not None:
        about = "95 % bound of the clock's error"
        yield _gauge("clock_uncertainty_seconds", about, "state", state, bound_ns / PER_SECOND)


def serve(metrics: Collector, port: int, address: str = "127.0.0.1") -> WSGIServer:
    """Answer Prometheus on a TCP port; 0: a free one. Call ``shutdown`` of what is returned in the end.

    Raises ProbeError when the port is taken.
    """
    registry = CollectorRegistry()
    registry.register(metrics)
    try:
        server, _ = start_http_server(port, address, registry)
    except (OSError, OverflowError) as error:
        raise ProbeError(
            f"can't serve metrics on {address}:{port} ({error}): give another one (--metrics [ADDRESS:]PORT)"
        ) from None
    return server


def _ports(look: Look) -> Iterator[Metric]:
    port_label = ["port"]
    frames = CounterMetricFamily(PREFIX + "frames", "Frames that came to a port, damaged ones too", labels=port_label)
    octets = CounterMetricFamily(PREFIX + "bytes", "Octets of the frames of a port, without FCS", labels=port_label)
    about = "What became of the frames of a port, by cause"
    events = CounterMetricFamily(PREFIX + "events", about, labels=["port", "event"])
    about = "Rate of frames in the last interval of rates"
    frame_rate = GaugeMetricFamily(PREFIX + "frames_per_second", about, labels=port_label)
    about = "Octets a second that take the line in the last interval of rates, with FCS, preamble and gap"
    octet_rate = GaugeMetricFamily(PREFIX + "line_bytes_per_second", about, labels=port_label)
    for port, seen in zip(look.ports, look.events, strict=True):
        label = str(port.port)
        all_frames, all_octets = totals(port, seen)
        frames.add_metric([label], all_frames)
        octets.add_metric([label], all_octets)
        for name, count in seen.items():
            if name not in ALL:
                events.add_metric([label, name], count)
        frame_rate.add_metric([label], port.rate.frames_per_s if port.rate else math.nan)
        octet_rate.add_metric([label], port.rate.line_bits_per_s / 8 if port.rate else math.nan)
    yield from (frames, octets, events, frame_rate, octet_rate)


def _streams(ports: list[PortMeasurement]) -> Iterator[Metric]:
    for column in RECEIVED.values():
        if not column.metric:
            continue
        is_time = column.metric.endswith("_seconds")
        family = GaugeMetricFamily if is_time or column.key in STEADY else CounterMetricFamily
        labels = ["port", "stream", *["modulo"] * is_time]
        metric = family(f"{PREFIX}stream_{column.metric}", column.about, labels=labels)
        for port in ports:
            for stream in port.streams:
                value = column.value(stream)
                if stream.stream_id is not None and stream.frames and value is not None:
                    of = [str(port.port), str(stream.stream_id), *_modulo(stream.delay_modulo_ns if is_time else None)]
                    metric.add_metric(of, value / PER_SECOND if is_time else value)
        yield metric


def _histograms(ports: list[PortMeasurement]) -> Iterator[Metric]:
    for kind, (name, help_text, scale) in HISTOGRAMS.items():
        metric = HistogramMetricFamily(PREFIX + name, help_text, labels=["port", "modulo"])
        for port in ports:
            if port.histograms:
                values = port.histograms[0][kind]
                of = [str(port.port), *_modulo(values.modulo_ns)]
                metric.add_metric(of, buckets(values, scale), _sum(port, kind) / scale)
        yield metric


def _modulo(modulo_ns: int | None) -> list[str]:
    """Return the value of the label of delays that are known modulo so much alone (s); none where they are known."""
    return [] if modulo_ns is None else [str(modulo_ns / PER_SECOND)]


def _sum(port: PortMeasurement, kind: BinKind) -> int:
    """Return the sum of all values of a histogram of slot 0 (octets or ns), which the accumulators know exactly."""
    if kind == BinKind.LENGTH:
        return port.counters["octets"]
    if kind == BinKind.ARRIVAL:
        return port.counters["last_stamp"] - port.counters["first_stamp"]
    return sum(stream.delay_sum_ns for stream in port.streams)


def buckets(found: Histogram, scale: float = 1) -> list[tuple[str, float]]:
    """Return a histogram as Prometheus has it: how many are at most at each edge, the last one infinite.

    Values are whole numbers (octets, ns), so what lies before an edge is at most one less; ``scale`` of them are a base
    unit. Edges below 0 are left out: what lies there is in the first bucket.
    """
    total, made = 0, []
    counts = [found.below, *found.counts.tolist()]
    for edge, count in zip(found.edges.tolist(), counts, strict=True):
        total += count
        if edge >= 1:
            made.append((str((edge - 1) / scale), float(total)))
    return [*made, ("+Inf", float(total + found.above))]


def _channels(look: Look) -> Iterator[Metric]:
    dropped = CounterMetricFamily(
        PREFIX + "capture_dropped_frames", "Frames of a channel dropped for want of space", labels=["channel"]
    )
    waiting = GaugeMetricFamily(
        PREFIX + "capture_waiting_blocks", "Blocks of the ring that wait for a host", labels=["channel"]
    )
    blocks = GaugeMetricFamily(PREFIX + "capture_blocks", "Blocks of the ring that a channel has", labels=["channel"])
    for channel, state in look.channels.items():
        for metric, value in ((dropped, state.dropped), (waiting, state.waiting), (blocks, state.taken)):
            metric.add_metric([str(channel)], value)
    yield from (dropped, waiting, blocks)


def _protocols(look: Look) -> Iterator[Metric]:
    """Yield what frames carry, where headers are sampled."""
    if (table := look.protocols) is None:
        return
    for column in PROTOCOLS.values():
        if column.metric:
            metric = CounterMetricFamily(f"{PREFIX}sampled_{column.metric}", column.about, labels=["port", "protocol"])
            for row in table.rows:
                metric.add_metric([str(row.port), row.protocol], column.value(row))
            yield metric


# What a server runs ---------------------------------------------------------------------------------


class Figure(NamedTuple):
    """Is a figure of each row of a look: its metric, what it says, where it lies in the row, over what it counts, its kind."""

    name: str
    about: str
    at: str  # Keys, with dots between them.
    scale: float = 1.0
    is_counter: bool = True


#: By the name of a metric's rows: their labels, and their figures.
RUN_ROWS: Mapping[str, tuple[tuple[str, ...], tuple[Figure, ...]]] = {
    "stream": (
        ("stream", "port"),
        (
            Figure("sent_frames", "Frames of a stream that were sent", "sent"),
            Figure("received_frames", "Frames of a stream that came", "received"),
            Figure("lost_frames", "Frames of a stream that are missing as of now", "lost", 1, False),
            Figure("duplicated", "Frames of a stream that came before", "duplicated"),
            Figure("reordered", "Frames of a stream that came after a later one", "reordered"),
            Figure("received_bytes_per_second", "Rate at which a stream came lately", "received_bps", 8, False),
            Figure("delay_min_seconds", "Least one-way delay of a stream", "latency_ns.least", PER_SECOND, False),
            Figure("delay_p99_seconds", "99th percentile of its delays", "latency_ns.p99", PER_SECOND, False),
            Figure("delay_max_seconds", "Greatest one-way delay of a stream", "latency_ns.most", PER_SECOND, False),
        ),
    ),
    "class": (
        ("way", "class"),
        (
            Figure("arrived_frames", "Frames that came to a class of the emulated network", "counts.arrived"),
            Figure("sent_frames", "Frames that left a class of the emulated network", "counts.sent"),
            Figure("dropped_frames", "Frames that a class of the emulated network dropped", "dropped"),
            Figure("waiting_frames", "Frames in the queue of a class", "queue.frames", 1, False),
            Figure("delay_mean_seconds", "Mean delay of a class since the start", "delays.mean_ns", PER_SECOND, False),
            Figure("sent_bytes_per_second", "Rate at which a class sent lately", "sent_bps", 8, False),
        ),
    ),
    "port": (
        ("port",),
        (
            Figure("sent_frames", "Frames that a port has sent of a replay, or of sets", "sent"),
            Figure("asked_frames", "Frames that a port is to send", "asked", 1, False),
            Figure("late_frames", "Frames that came too late from this host", "late"),
        ),
    ),
    "progress": (
        (),
        (
            Figure("sent_frames", "Frames of trains that were sent", "sent"),
            Figure("asked_frames", "Frames of trains that are to be sent", "asked", 1, False),
            Figure("captured_frames", "Frames that are in the file of a capture", "frames"),
            Figure("trials", "Trials of a suite that have ended", "trials"),
            Figure("trials_most", "Trials of a suite at most", "most", 1, False),
        ),
    ),
}


class ServerMetrics(Metrics):
    """Gives away the last look of a monitor, how the probe is, and the last look of what runs, or ran last.

    Parameters
    ----------
    status : callable
        Returns how the probe is, as `liteprobe.host.serve.worker.ProbeWorker.status` does.
    run : callable
        Returns the kind of what runs or ran last, whether it still does, and its last look; None: nothing has run.
    """

    def __init__(
        self, status: Callable[[], dict[str, Any]], run: Callable[[], tuple[str, bool, dict[str, Any]] | None]
    ) -> None:
        super().__init__()
        self._status, self._run = status, run

    def collect(self) -> Iterator[Metric]:
        status, run, look = self._status(), self._run(), self.look
        yield from _build()
        if look is not None:
            yield from _ports(look)
            yield from _streams(look.ports)
            yield from _histograms(look.ports)
            yield from _channels(look)
            yield from _protocols(look)
        if clock := status.get("clock"):
            yield from _clock(clock["state"], clock["bound_ns"])
        about = "1 where the probe answers, else 0"
        yield GaugeMetricFamily(PREFIX + "probe_here", about, float(status["state"] == "here"))
        yield GaugeMetricFamily(PREFIX + "probe_age_seconds", "Time since the probe was heard of", status["age_s"])
        link = GaugeMetricFamily(PREFIX + "link_up", "1 where a port has a link, else 0", labels=["port"])
        for port in status.get("ports", ()):
            link.add_metric([str(port["port"])], float(port["is_up"]))
        yield link
        if run:
            kind, is_running, line = run
            yield _gauge("running", "1 while this runs, 0 once it has ended", "kind", kind, float(is_running))
            yield from _of_run(line)


def _of_run(line: Mapping[str, Any]) -> Iterator[Metric]:
    """Yield the figures of the last look of a run, of the rows that it has."""
    for of, rows in _rows(line).items():
        labels, figures = RUN_ROWS[of]
        for figure in figures:
            family = CounterMetricFamily if figure.is_counter else GaugeMetricFamily
            metric = family(f"{PREFIX}run_{of}_{figure.name}", figure.about, labels=labels)
            for label, row in rows:
                value: Any = row
                for key in figure.at.split("."):
                    value = value.get(key) if isinstance(value, Mapping) else None
                if isinstance(value, list | tuple):  # Least and most: between them.
                    value = sum(value) / len(value)
                if value is not None:
                    metric.add_metric(label, value / figure.scale)
            if metric.samples:
                yield metric


def _rows(line: Mapping[str, Any]) -> dict[str, list[tuple[list[str], Mapping[str, Any]]]]:
    """Return the rows of a look by their kind, each with the values of its labels."""
    ways = [way for way in ("there", "back") if line.get(way)]
    frames = line.get("frames")
    by_port = frames if isinstance(frames, Mapping) else {}
    return {
        "stream": [([row["name"], str(row["port"])], row) for row in line.get("streams", ())],
        "class": [
            ([way, row["name"]], {**row, "dropped": sum(row["counts"][name] for name in DROPS)})
            for way in ways
            for row in line[way]["classes"]
        ],
        "port": [
            ([str(port)], {"sent": count, "asked": line["asked"][port], "late": line["underruns"].get(port)})
            for port, count in by_port.items()
        ],
        "progress": [] if by_port or ways or "streams" in line or "ports" in line else [([], line)],
    }
