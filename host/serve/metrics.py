# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What a monitor measures as Prometheus metrics: the numbers of the last look, whoever asks and how often."""

import math
from collections.abc import Iterator
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from liteprobe.host.errors import ProbeError
from liteprobe.host.measure.monitor import NAMES, Histogram, PortMeasurement
from liteprobe.host.serve.poll import Look

PREFIX = "liteprobe_"
STREAM_COUNTS = ("frames", "octets", "lost", "duplicated", "reordered", "beyond_window")
STREAM_ERRORS = ("bit_errors", "damaged_bit_errors")
STREAM_DELAYS = ("delay_min_ns", "delay_max_ns", "delay_mean_ns", "delay_std_ns")


class Metrics(Collector):
    """Gives the last look away; before the first one, nothing.

    Attributes
    ----------
    look : Look or None
        Set it after each look.
    """

    def __init__(self) -> None:
        self.look: Look | None = None

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics of the last look."""
        look = self.look
        if look is None:
            return
        yield from _ports(look)
        yield from _streams(look.ports)
        yield from _histograms(look.ports)
        yield from _channels(look)
        yield from _clock(look)


def _clock(look: Look) -> Iterator[Metric]:
    """Yield the state of the clock, and the bound of its error where it is known."""
    state = GaugeMetricFamily(PREFIX + "clock_state", "1 for the state of the clock", labels=["state"])
    state.add_metric([look.clock_state], 1)
    yield state
    if look.uncertainty_ns is not None:
        bound = GaugeMetricFamily(PREFIX + "clock_uncertainty_ns", "95 % bound of the clock's error", labels=["state"])
        bound.add_metric([look.clock_state], look.uncertainty_ns)
        yield bound


def serve(metrics: Metrics, port: int, address: str = "0.0.0.0") -> WSGIServer:
    """Answer Prometheus on a TCP port; 0: a free one. Call ``shutdown`` of what is returned in the end.

    Raises
    ------
    ProbeError
        When the port is taken.
    """
    registry = CollectorRegistry()
    registry.register(metrics)
    try:
        server, _ = start_http_server(port, address, registry)
    except (OSError, OverflowError) as error:
        raise ProbeError(f"can't serve metrics on port {port} ({error}): give another one (--metrics PORT)") from None
    return server


def _ports(look: Look) -> Iterator[Metric]:
    frames = CounterMetricFamily(PREFIX + "frames", "Frames that came to a port", labels=["port"])
    octets = CounterMetricFamily(PREFIX + "octets", "Their octets, without FCS", labels=["port"])
    events = CounterMetricFamily(
        PREFIX + "events", "What a port saw, refused and lost, by cause", labels=["port", "event"]
    )
    rates = {
        "frames_per_s": GaugeMetricFamily(PREFIX + "frames_per_second", "In the last interval", labels=["port"]),
        "line_bits_per_s": GaugeMetricFamily(
            PREFIX + "line_bits_per_second", "With FCS, preamble and gap, in the last interval", labels=["port"]
        ),
    }
    for port, seen in zip(look.ports, look.events, strict=True):
        label = str(port.port)
        frames.add_metric([label], port.counters["frames"])
        octets.add_metric([label], port.counters["octets"])
        for name, count in seen.items():
            events.add_metric([label, name], count)
        for name, metric in rates.items():
            metric.add_metric([label], getattr(port.rate, name) if port.rate else math.nan)
    yield from (frames, octets, events, *rates.values())


def _streams(ports: list[PortMeasurement]) -> Iterator[Metric]:
    labels = ["port", "stream"]
    counts = {
        name: CounterMetricFamily(f"{PREFIX}stream_{name}", "Probe frames of a stream", labels=labels)
        for name in STREAM_COUNTS
    }
    bits = {
        name: CounterMetricFamily(f"{PREFIX}stream_{name}", "Bits that are not PRBS-31's", labels=labels)
        for name in STREAM_ERRORS
    }
    delays = {
        name: GaugeMetricFamily(f"{PREFIX}stream_{name}", "One-way delay of a stream", labels=labels)
        for name in STREAM_DELAYS
    }
    for port in ports:
        for stream in port.streams:
            if stream.stream_id is None or not stream.frames:
                continue
            values = [str(port.port), str(stream.stream_id)]
            for name, counter in counts.items():
                counter.add_metric(values, getattr(stream, name))
            for name, errors in bits.items():
                if (count := getattr(stream, name)) is not None:
                    errors.add_metric(values, count)
            for name, gauge in delays.items():
                gauge.add_metric(values, getattr(stream, name))
    yield from (*counts.values(), *bits.values(), *delays.values())


def _histograms(ports: list[PortMeasurement]) -> Iterator[Metric]:
    for kind, name in NAMES.items():
        unit = "octets" if name == "length" else "ns"
        metric = HistogramMetricFamily(f"{PREFIX}{name}_{unit}", "Of all frames of a port", labels=["port"])
        for port in ports:
            if port.histograms:
                metric.add_metric([str(port.port)], buckets(port.histograms[0][kind]), None)
        yield metric


def buckets(found: Histogram) -> list[tuple[str, float]]:
    """Return a histogram as Prometheus has it: how many are at most at each edge, the last one infinite.

    Values are whole numbers, so what lies before an edge is at most one less.
    """
    total, made = found.below, [(str(float(found.edges[0] - 1)), float(found.below))]
    for edge, count in zip(found.edges[1:].tolist(), found.counts.tolist(), strict=True):
        total += count
        made.append((str(float(edge - 1)), float(total)))
    return [*made, ("+Inf", float(total + found.above))]


def _channels(look: Look) -> Iterator[Metric]:
    dropped = CounterMetricFamily(PREFIX + "capture_dropped", "Frames dropped for want of room", labels=["channel"])
    waiting = GaugeMetricFamily(PREFIX + "capture_waiting_blocks", "Blocks that wait for a host", labels=["channel"])
    blocks = GaugeMetricFamily(PREFIX + "capture_blocks", "Blocks that there are", labels=["channel"])
    for channel, state in look.channels.items():
        for metric, value in ((dropped, state.dropped), (waiting, state.waiting), (blocks, state.taken)):
            metric.add_metric([str(channel)], value)
    yield from (dropped, waiting, blocks)
