# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Offers the figures of a monitor to Prometheus: those of the last look, whoever asks and how often.

Units are base units (seconds, bytes). What can become less (frames lost, of which one may come late) is a gauge. Delays by
short stamps have a label ``modulo``: what they are known modulo (s).
"""

import math
from collections.abc import Iterator
from importlib import metadata
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from liteprobe.cores.formats import BinKind
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.measure.monitor import Histogram, PortMeasurement
from liteprobe.host.serve.poll import ALL, RECEIVED, Look, totals

PREFIX = "liteprobe_"
PER_SECOND = 1e9  # Nanoseconds; dividing by it rounds once, as multiplying by 1e-9 does not.
STEADY = ("lost",)  # Counts that can become less: gauges, as delays are.
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
        yield from _clock(look)


def _gauge(name: str, about: str, label: str, of: str, value: float) -> GaugeMetricFamily:
    """Return a gauge of one value."""
    gauge = GaugeMetricFamily(PREFIX + name, about, labels=[label])
    gauge.add_metric([of], value)
    return gauge


def _build() -> Iterator[Metric]:
    """Yield what the numbers come from."""
    yield _gauge("build_info", "1, labelled with the version of liteprobe", "version", metadata.version("liteprobe"), 1)


def _clock(look: Look) -> Iterator[Metric]:
    """Yield the state of the clock, and the bound of its error where it is known."""
    yield _gauge("clock_state", "1 for the state of the clock", "state", look.clock_state, 1)
    if look.uncertainty_ns is not None:
        about, bound_s = "95 % bound of the clock's error", look.uncertainty_ns / PER_SECOND
        yield _gauge("clock_uncertainty_seconds", about, "state", look.clock_state, bound_s)


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
