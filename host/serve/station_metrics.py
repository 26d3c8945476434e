# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Offers what a station has done and measured last to Prometheus; names and units as in metrics.py.

Of a pair it has the end that is here: the sender knows what left, the receiver what came, and neither the other's clock.
Stands alone: it loads Prometheus' client, which only ``--metrics`` needs.
"""

import threading
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from liteprobe.host.fleet.halves import HEARS, Half
from liteprobe.host.fleet.station import ProbeStation
from liteprobe.host.serve.metrics import PER_SECOND, PREFIX

QUANTILES = (0.0, 0.5, 0.99, 1.0)


class StationMetrics(Collector):
    """Gives what a station has counted, and its last measurement of each pair; `take` is called with each."""

    def __init__(self, station: ProbeStation) -> None:
        self._station, self._lock = station, threading.Lock()
        self._last: dict[str, Half] = {}  # By pair and end.
        self._frames: dict[tuple[str, str], int] = {}  # By pair and what became of them.

    def take(self, half: Half) -> None:
        """Take what was measured of an end."""
        pair = half.of_what
        with self._lock:
            self._last[half.name] = half
            if not half.why:
                what, count = ("received", half.received) if half.end == HEARS else ("sent", half.sent)
                self._frames[pair, what] = self._frames.get((pair, what), 0) + count

    def collect(self) -> Iterator[Metric]:
        """Yield all of it."""
        with self._lock:
            last, frames = list(self._last.values()), dict(self._frames)
        yield GaugeMetricFamily(PREFIX + "station_plans", "Plans that are kept", value=len(self._station.plans))
        about = "Ends of pairs by what became of them, plans refused, results fetched"
        events = CounterMetricFamily(PREFIX + "station_events", about, labels=["event"])
        for event, count in self._station.counts.items():
            events.add_metric([event], count)
        yield events
        found = CounterMetricFamily(PREFIX + "station_frames", "Frames of pairs, at this end", labels=["pair", "event"])
        for (pair, what), count in frames.items():
            found.add_metric([pair, what], count)
        yield found
        about = "1 where the last start of an end of a pair was measured, 0 where it could not be"
        measured = GaugeMetricFamily(PREFIX + "station_measured", about, labels=["pair", "end"])
        about = "Delays of the last start, by both clocks as they are: their difference is in it"
        delays = GaugeMetricFamily(PREFIX + "station_delay_seconds", about, labels=["pair", "quantile"])
        about = "Bound (95 %) of the error of this probe's clock at the last start"
        bounds = GaugeMetricFamily(PREFIX + "station_clock_uncertainty_seconds", about, labels=["pair", "end"])
        for half in last:
            pair = half.of_what
            measured.add_metric([pair, half.end], not half.why)
            if half.verdict and half.verdict.bound_ns is not None:
                bounds.add_metric([pair, half.end], half.verdict.bound_ns / PER_SECOND)
            for name, cells in half.cells.items():
                for quantile in QUANTILES:
                    if bounds_ns := cells.percentile(100 * quantile):
                        delays.add_metric([name, f"{quantile:g}"], bounds_ns.most / PER_SECOND)
        yield from (measured, delays, bounds)
