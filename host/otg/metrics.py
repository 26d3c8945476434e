# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Fills in the metrics of flows and ports: counts, rates, loss, time stamps, latency. Octets are counted with the FCS.

Source: Open Traffic Generator models 1.61, result/flow.yaml, result/port.yaml; RFC 1242, 3.8 (latency).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from liteprobe.cores.formats import FCS, LINE_RATE_BPS, OVERHEAD, TICK_NS, Part
from liteprobe.host.measure.monitor import Monitor
from liteprobe.host.measure.percentiles import Bounds
from liteprobe.host.otg.config import OtgSetup
from liteprobe.host.otg.flows import OtgFlow, TimeScale
from liteprobe.host.probe import Probe
from liteprobe.host.run.figures import StreamFigures
from liteprobe.host.run.streams import Traffic
from liteprobe.host.traffic.due import UnknownDueError
from liteprobe.host.traffic.lengths import Fixed

DRAWN_MOST = 1 << 22  # Lengths that are drawn again, to count the octets that were sent of frames of random sizes.
BEYOND = OVERHEAD - FCS  # Octets of a frame on the line that layer 2 doesn't count.


@dataclass(frozen=True)
class FlowState:
    """Says what is known of a flow."""

    flow: OtgFlow
    state: str  # ``started``, ``stopped`` or ``paused``.
    row: StreamFigures | None  # None: it was not started yet.
    is_over: bool  # Nothing more comes.
    traffic: Traffic | None = None

    @property
    def sent(self) -> int:
        """Frames that left."""
        return self.row.sent if self.row else 0

    @property
    def octets_sent(self) -> int | None:
        """Octets that left, with FCS; None: not known."""
        if not self.sent or self.row is None or self.traffic is None:
            return 0
        length = self.row.stream.length
        if length.cycle is not None:
            whole, part = divmod(self.sent, len(length.cycle))
            octets = whole * sum(length.cycle) + sum(length.cycle[:part])
        elif self.sent <= DRAWN_MOST:
            try:
                octets = int(self.traffic.lengths_of(self.flow.name, self.sent).sum())
            except UnknownDueError:
                return None
        else:
            return None
        return octets + FCS * self.sent

    def rate(self, found: Bounds | None, scale: TimeScale) -> float:
        """Return a rate as the client counts time; 0 when it has stopped."""
        return found.middle / float(scale.factor) if found and self.state == "started" and not self.is_over else 0.0


def flow_metrics(
    found: Any, states: Sequence[FlowState], setup: OtgSetup, scale: TimeScale, columns: Collection[str]
) -> None:
    """Add the metrics of flows to a response."""
    for one in states:
        metric = found.flow_metrics.add()
        flow, row = one.flow, one.row
        metric.name, metric.port_tx = flow.name, flow.tx_name
        if flow.rx_name:
            metric.port_rx = flow.rx_name
        values: dict[str, Any] = {"frames_tx": one.sent, "bytes_tx": one.octets_sent}
        fps = one.rate(row.sent_fps if row else None, scale)
        size = float(flow.stream.length.mean) + FCS
        values |= _rates("tx", fps, 8 * size * fps)
        if flow.is_measured:
            received, octets = (row.received or 0, row.octets or 0) if row else (0, 0)
            values |= {"frames_rx": received, "bytes_rx": octets + FCS * received}
            came_fps = one.rate(row.received_fps if row else None, scale)
            line_bps = one.rate(row.received_bps if row else None, scale)
            values |= _rates("rx", came_fps, max(line_bps - 8 * BEYOND * came_fps, 0.0))
            _measured(metric, one, setup, scale, values)
        for name, value in values.items():
            if value is not None and (not columns or name in columns or name == "loss"):
                setattr(metric, name, value)
        if not columns or "transmit" in columns:
            metric.transmit = getattr(metric.Transmit, one.state)


def _rates(end: str, fps: float, bps: float) -> dict[str, float]:
    """Return the rates of an end of a flow: of frames, and of octets and bits of layer 2 and of the line."""
    return {
        f"frames_{end}_rate": fps,
        f"{end}_l1_rate_bps": bps + 8 * BEYOND * fps,
        f"{end}_rate_bytes": bps / 8,
        f"{end}_rate_bps": bps,
        f"{end}_rate_kbps": bps / 1e3,
        f"{end}_rate_mbps": bps / 1e6,
    }


def _measured(metric: Any, one: FlowState, setup: OtgSetup, scale: TimeScale, values: dict[str, Any]) -> None:
    """Add loss, its duration, time stamps and latency, as far as they were asked for and are known."""
    flow, row = one.flow, one.row
    if row is None:
        return
    received = row.received or 0
    expected = row.sent * flow.rx_tx_ratio
    lost = max(expected - received, 0.0) if one.is_over or row.lost is None else float(row.lost)
    if flow.has_loss:
        values["loss"] = 100.0 * lost / expected if expected else 0.0
    if setup.has_loss_duration:
        fps = row.received_fps.middle if row.received_fps else row.offered_fps
        metric.packet_loss_duration.value = 1e3 * lost / fps * float(scale.factor)
    if flow.has_stamps and row.first_arrival_ns is not None and row.last_arrival_ns is not None:
        metric.timestamps.first_timestamp_ns = float(row.first_arrival_ns)
        metric.timestamps.last_timestamp_ns = float(row.last_arrival_ns)
    if flow.has_latency and row.latency is not None:
        less = TICK_NS * (row.stream.length.greatest + FCS) if flow.is_store_forward else 0
        assert not less or isinstance(row.stream.length, Fixed)
        found = row.latency
        for name, value in (
            ("minimum_ns", found.least_ns),
            ("maximum_ns", found.most_ns),
            ("average_ns", found.mean_ns),
        ):
            if value is not None:
                setattr(metric.latency, name, float(value - less))


@dataclass(frozen=True)
class PortView:
    """Holds what metrics of ports come from."""

    probe: Probe
    setup: OtgSetup
    scale: TimeScale
    sent: Mapping[int, Sequence[FlowState]]  # By the port that sends.
    capturing: Collection[int]
    before: dict[str, tuple[int, dict[str, int]]]  # Counts of the last time, by port; they are kept here.


def port_metrics(found: Any, ports: Mapping[str, int], view: PortView, columns: Collection[str]) -> None:
    """Add the metrics of ports to a response."""
    probe, setup, scale = view.probe, view.setup, view.scale
    for name, number in ports.items():
        metric = found.port_metrics.add()
        metric.name = name
        counts = {"frames_rx": 0, "bytes_rx": 0}
        if probe.parts & (Part.MONITOR | Part.MEASURE):
            counters = Monitor(probe, number).read(with_histograms=False).counters
            counts = {"frames_rx": counters["frames"], "bytes_rx": counters["octets"] + FCS * counters["frames"]}
        now_ns = probe.timebase.now_ns
        states = view.sent.get(number, [])
        octets = [one.octets_sent for one in states]
        counts["frames_tx"] = sum(one.sent for one in states)
        if None not in octets:
            counts["bytes_tx"] = sum(one or 0 for one in octets)
        then_ns, last = view.before.get(name, (now_ns, counts))
        span_s = (now_ns - then_ns) / 1e9 * float(scale.factor)
        view.before[name] = (now_ns, counts)
        values: dict[str, Any] = dict(counts)
        for key, value in counts.items():
            gone = value - last.get(key, 0)
            values[f"{key}_rate"] = max(gone, 0) / span_s if span_s > 0 else 0.0
        location = setup.locations[name]
        values["location"] = location if scale.factor == 1 else f"{location} (time scale {float(scale.factor):g})"
        values["speed"] = LINE_RATE_BPS // 8000
        for key, value in values.items():
            if not columns or key in columns:
                setattr(metric, key, value)
        is_up, is_sending = probe.ports[number].transmit.is_link_up, any(one.state == "started" for one in states)
        words = {
            "link": "up" if is_up else "down",
            "capture": "started" if number in view.capturing else "stopped",
            "transmit": "started" if is_sending else "stopped",
        }
        for key, word in words.items():
            if not columns or key in columns:
                kind = metric.DESCRIPTOR.fields_by_name[key].enum_type.values_by_name[word]
                setattr(metric, key, kind.number)
