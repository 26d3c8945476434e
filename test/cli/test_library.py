# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Calls of the library with wrong types and values, from a seeded generator: ProbeError, or what the plain value gives."""

import importlib
import inspect
import math
import pkgutil
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from liteprobe import host
from liteprobe.cores.formats import Part
from liteprobe.host import (
    Burst,
    CaptureRequest,
    Fixed,
    Headers,
    Interval,
    Probe,
    ReplayOptions,
    Stamp,
    Stream,
    Trace,
    TrainProgram,
)
from liteprobe.host.agent import Agent, AgentClient
from liteprobe.host.base import validate
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.clock.clock import ClockMode
from liteprobe.host.measure.monitor import Monitor
from liteprobe.host.run.sets import SetsOptions
from liteprobe.host.run.streams import Traffic
from liteprobe.host.suites.y1564 import EthernetService
from liteprobe.host.traffic.headers import MplsLabel
from liteprobe.host.traffic.modifiers import Field
from liteprobe.host.traffic.network import (
    BandwidthTrace,
    Bernoulli,
    Change,
    Direction,
    Jitter,
    Network,
    Queue,
    Red,
    Reorder,
    TrafficClass,
)
from liteprobe.host.traffic.sets import Sets
from liteprobe.sim.drivers.agent.device import Device
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.drivers.tools.figures import Figure, Size, note, row
from liteprobe.sim.models.probe.streams import TrafficProbe

SEED = 36
LATE = ("host.cli", "__main__", "serve", "otg")  # Of commands, not of scripts.

for module in pkgutil.walk_packages(host.__path__, f"{host.__name__}."):
    if not any(word in module.name for word in LATE):
        importlib.import_module(module.name)

STREAM = Stream("one", 1, Fixed(64), Interval(pps=20_000), count=3)
ENDLESS = Stream("endless", 1, Fixed(64), Interval(pps=20_000), fill="prbs")
SERVICE = EthernetService("voice", ENDLESS, cir_bps=1e6)
SERVICES = "services:\n- {name: voice, length: 64, cir: 1Mbit}\n"
TAGGED = Stream("tagged", 1, Fixed(64), Interval(pps=20_000), headers=Headers(vlan_tags=(7,)))
CBR = Trace.cbr(Interval(rate_bps=1e8), 64, 5)
STAMPS = np.array([1000, 2000, 3100, 4000, 5200], np.uint64)
COUNTS = np.array([0, 125, 250, 375, 500])
FLOATS = np.array([1.0, 2.0, 2.5, 1.5, 3.0, 2.0])
NUMBERS = np.arange(5)
DOCUMENT = "streams:\n- {name: a, length: 64, pps: 100}\n"
SETS = "stream: {length: 64, ipv4: {}, vlan: [1]}\nsets:\n- {vlan: 5}\n"

#: By the name of a callable: plain arguments, which are right. Of a method: of what it is.
PURE: dict[str, dict[str, Any]] = {
    "analysis.beta.incomplete_beta": {"x": 0.5, "a": 2.0, "b": 3.0},
    "analysis.calibration.fit_line": {"lengths": NUMBERS, "delays_ns": COUNTS},
    "analysis.capacity.dispersion_rate": {"stamps_ns": STAMPS, "length": 64, "overhead": 24},
    "analysis.capacity.dispersions": {"stamps_ns": STAMPS},
    "analysis.capacity.pair_capacity": {
        **{"sequences": NUMBERS, "count": 5, "tx_ns": COUNTS.astype(np.uint64), "rx_ns": STAMPS, "length": 64},
        "line_rate_bps": 1e9,
    },
    "analysis.capacity.span_rate": {"frames": 5, "span_ns": 1000, "length": 64, "overhead": 24},
    "analysis.clock_smooth.smooth": {"time_s": np.arange(6.0), "phase_ns": FLOATS, "has_qerr": np.ones(6, bool)},
    "analysis.clock_stability.allan_deviation": {"phase_ns": FLOATS, "period_ns": 1e9},
    "analysis.clock_stability.longest_run": {"index": NUMBERS, "states": ["locked"] * 5},
    "analysis.clock_stability.wander": {"phase_ns": FLOATS, "period_ns": 1e9},
    "analysis.capacity.together": {"found": []},
    "analysis.confidence.bounded_mean_interval": {"values": FLOATS, "least": 0.0, "most": 1e3, "same": 0.0},
    "analysis.confidence.mean_interval": {"values": FLOATS, "confidence": 0.95},
    "analysis.confidence.percentile_interval": {"values": FLOATS, "percent": 50.0, "confidence": 0.95},
    "analysis.confidence.poisson_bounds": {"found": 3, "confidence": 0.9},
    "analysis.confidence.share_interval": {"found": 3, "count": 10, "of": 100},
    "analysis.confidence.student": {"probability": 0.9, "freedom": 4},
    "analysis.delay.interarrival_jitter": {"owd_ns": COUNTS},
    "analysis.delay.ipdv": {"sequences": NUMBERS, "owd_ns": COUNTS},
    "analysis.delay.owd": {"tx_stamps_ns": STAMPS, "rx_stamps_ns": STAMPS + np.uint64(8)},
    "analysis.delay.pdv": {"owd_ns": COUNTS},
    "analysis.delay.percentile": {"values": FLOATS, "percent": 99.0},
    "analysis.line_clock.fit": {"counts": COUNTS, "now_ns": 8 * COUNTS},
    "analysis.line_clock.unwrap": {"counts": COUNTS, "now_ns": 8 * COUNTS},
    "analysis.sequence.arrivals": {"sequences": NUMBERS, "sent": 6},
    "analysis.sequence.first_arrivals": {"sequences": NUMBERS},
    "analysis.sequence.in_time": {"owd_ns": COUNTS, "waiting_time_ns": 300},
    "analysis.sequence.reordering": {"sequences": NUMBERS},
    "analysis.theory.asymptotic_dispersion_rate": {"capacity_bps": 1e9, "load": 0.5, "input_rate_bps": 1e9},
    "analysis.theory.expected_dispersion_rate": {"capacity_bps": 1e9, "load": 0.5, "count": 10},
    "analysis.theory.frames_per_second": {"length": 64, "line_rate_bps": 1e9},
    "analysis.theory.share": {"length": 64, "octets": 20},
    "analysis.theory.slot_ns": {"length": 64, "line_rate_bps": 1e9},
    "analysis.theory.tick_error": {"length": 64, "count": 10},
    "analysis.theory.utilisation": {"length": 64, "interval_ns": 1000.0, "line_rate_bps": 1e9},
    "capture.request.CaptureRequest.__init__": {
        **{"write": "x.pcapng", "filter": "udp", "trigger": "tcp", "before_ns": 1000, "after_ns": 2000, "count": 5},
        **{"duration_s": 1.5, "tai_utc_s": 37, "host_filter": False},
    },
    "capture.request.CaptureRequest.of": {"wanted": "x.pcapng"},
    "capture.request.CaptureSettings.__init__": {"channels": (0, 1), "snap_length": 64, "with_damaged": True},
    "capture.request.Sampling.__init__": {"shift": 1, "by_hash": True, "seed": 7},
    "capture.request.Sampling.of": {"text": "hash:16:7"},
    "capture.request.Transport.__init__": {"kind": "udp", "udp_port": 5000},
    "device.link.url.sim_url": {"wire": "cable"},
    "run.replay.ReplayOptions.__init__": {"loops": 2, "with_summary": True, "prime_words": 64, "patience_s": 1.0},
    "run.sets.SetsOptions.__init__": {"count": 2, "prime_words": 64, "patience_s": 1.0},
    "run.streamed.StreamOptions.__init__": {"prime_words": 64, "patience_s": 1.0},
    "packets.stamp.requested": {"name": "location", "dscp": 3},
    "run.stamp.StampSession.__init__": {
        **{"address": "198.18.0.2", "count": 5, "interval_ns": 1e6, "padding": 3, "dscp": 9, "tlvs": ("location",)},
        **{"identifier": 7, "is_stateful": True, "source": "198.18.0.9", "vlan_tags": (7,), "any_clock": False},
    },
    "run.streams.SendOptions.__init__": {"receive": {0: 1}, "seconds": 0.5, "latency_range_ns": (0, 1000)},
    "suites.rfc2544.Rfc2544Request.__init__": {
        **{"tests": ("throughput", "loss"), "sizes": ("64", "imix"), "ways": ((0, 1), (1, 0)), "search": "bisection"},
        **{"latency_s": 1.5, "latency_repeats": 3, "load": 0.5, "loss_step": 0.05, "burst_s": 1.0, "burst_repeats": 2},
        **{"pause_s": 0.5, "addresses": 7, "headers": Headers()},
    },
    "suites.rfc2889.AddressSettings.__init__": {"ageing_s": 3.0, "most": 50, "fps": 100.0, "learned": 9},
    "suites.search.Goal.__init__": {"loss_ratio": 0.01, "exceed_ratio": 0.5, "sums": 3, "width": 0.005, "seconds": 2.0},
    "suites.soak.SoakRequest.__init__": {
        **{"streams": (ENDLESS,), "seconds": 3.0, "segment_s": 1.0, "is_bert": True, "ber": 1e-9, "confidence": 0.9},
        "receive": {0: 1},
    },
    "suites.trials.Offer.__init__": {"name": "a", "streams": (STREAM,), "receive": {0: 1}, "block_s": 0.5},
    "suites.trials.TrialSettings.__init__": {"pause_s": 0.5, "growth_most": 0.001, "lengthened": 2},
    "suites.y1564.EthernetService.__init__": {
        **{
            "name": "a",
            "stream": ENDLESS,
            "cir_bps": 1e7,
            "eir_bps": 5e6,
            "cbs": 20_000,
            "ebs": 9000,
            "is_policed": True,
        },
        **{"loss_ratio": 0.01, "delay_ns": 1000, "delay_most_ns": 9000, "variation_ns": 500, "availability": 0.99},
    },
    "suites.y1564.Y1564Request.__init__": {
        **{"services": (SERVICE,), "tests": ("configuration",), "steps": (0.5, 1), "step_s": 1.0, "performance_s": 2.0},
        **{"pause_s": 0.5, "receive": {0: 1}},
    },
    "suites.y1564.read_services": {"text": SERVICES, "name": "a.yaml"},
    "suites.sweep.SweepRequest.__init__": {
        **{"name": "a", "url": "sim://loopback", "programs": [TrainProgram(60, 2)], "transmit": 0, "receive": 1},
        **{"waiting_time_ns": 1000, "theory_bps": 1e9, "theory_delay": (1.0, 2.0), "wire_bps": 1e9},
    },
    "suites.sweep.programs_for": {
        **{"lengths": [60, 64], "counts": [2], "template": TrainProgram(60, 2), "rate_bps": 1e8}
    },
    "traffic.document.read_document": {"text": DOCUMENT, "name": "a.yaml"},
    "traffic.document.read_sets": {
        "text": SETS,
        "name": "a.yaml",
        "interval": Interval(pps=5),
        "repeats": 2,
        "port": 1,
    },
    "traffic.document.write_document": {"streams": [STREAM]},
    "traffic.headers.Headers.__init__": {
        **{"destination_mac": "02:4c:50:54:00:02", "source_ip": "10.0.0.1", "source_port": 5, "vlan_tags": (1, 2)},
        **{"ttl": 3, "mpls_labels": (MplsLabel(5),), "transport": "tcp", "tcp_flags": 2, "identification": 0},
        **{"dont_fragment": False, "tcp_sequence": 1, "tcp_acknowledgment": 2, "tcp_window": 3},
    },
    "traffic.headers.Headers.checksum_seed": {"length": 64},
    "traffic.headers.Headers.octets": {"length": 64, "stream_id": 2},
    "traffic.headers.Headers.stack": {"length": 64, "checksum": 5},
    "traffic.headers.Headers.transport_sum": {"length": 64, "checksum": 5},
    "traffic.headers.MplsLabel.__init__": {"label": 5, "traffic_class": 1, "ttl": 9},
    "traffic.headers.ip_address": {"address": "10.0.0.1"},
    "traffic.headers.mac_octets": {"mac": "02:4c:50:54:00:02"},
    "traffic.headers.vlan_tag": {"number": 5, "priority": 1, "drop_eligible": True},
    "traffic.intervals.Burst.__init__": {"count": 5, "inner_ns": 1000},
    "traffic.intervals.Interval.__init__": {"interval_ns": 90_000, "exponential": True, "burst": Burst(3)},
    "traffic.lengths.Fixed.__init__": {"length": 64},
    "traffic.lengths.Lengths.__init__": {"entries": (64, 65), "random": True},
    "traffic.lengths.RandomLength.__init__": {"least": 64, "greatest": 70},
    "traffic.lengths.Stepped.__init__": {"least": 64, "greatest": 70, "step": 2},
    "traffic.lengths.weighted": {"weights": {64: 2, 70: 1}, "random": True},
    "traffic.load.check_port": {"streams": [STREAM]},
    "traffic.modifiers.Decrement.__init__": {"field": "udp.source", "first": 5, "step": 1, "count": 9},
    "traffic.modifiers.Field.__init__": {"offset": 14, "mask": 255},
    "traffic.modifiers.Increment.__init__": {"field": Field(14, 255), "first": "10.0.0.1", "step": 1, "count": 9},
    "traffic.modifiers.Random.__init__": {"field": "udp.source"},
    "traffic.modifiers.Values.__init__": {"field": "udp.source", "values": (1, 2), "random": True},
    "traffic.network.document.read_network": {"text": "there: {rate: 10M}\n", "name": "a.yaml", "folder": Path()},
    "traffic.network.document.write_network": {"network": Network()},
    "traffic.network.netem.from_netem": {"there": "delay 10ms loss 1%", "back": "rate 1mbit", "expected_bps": 1e6},
    "traffic.network.network.Background.__init__": {"kind": "cbr", "length": 512, "rate_bps": 1e7},
    "traffic.network.network.BandwidthTrace.__init__": {"stamps_ms": (1, 5), "octets": (1504, 1504), "name": "a"},
    "traffic.network.network.BandwidthTrace.from_lines": {"lines": ["1", "5"], "name": "a"},
    "traffic.network.network.BandwidthTrace.most_octets": {"time_ms": Fraction(3)},
    "traffic.network.network.BandwidthTrace.words": {"ticks_per_ns": Fraction(1, 8)},
    "traffic.network.network.Bernoulli.__init__": {"share": 0.5},
    "traffic.network.network.Bucket.__init__": {"rate_bps": 1e6, "burst": 5000},
    "traffic.network.network.Change.__init__": {"at_ns": 1000, "there": Direction()},
    "traffic.network.network.Codel.__init__": {"target_ns": 5000, "interval_ns": 9000, "has_ecn": True},
    "traffic.network.network.Direction.__init__": {"rate_bps": 1e7, "classes": (TrafficClass(),)},
    "traffic.network.network.GilbertElliott.__init__": {"p": 0.1, "r": 0.5, "h": 0.5, "k": 0.9},
    "traffic.network.network.Jitter.__init__": {"kind": "normal", "spread_ns": 1000, "correlation": 0.1},
    "traffic.network.network.LossList.__init__": {"numbers": (1, 5)},
    "traffic.network.network.LossPattern.__init__": {"bits": "0101"},
    "traffic.network.network.Network.__init__": {
        "there": Direction(),
        "changes": (Change(5000),),
        "seed": 7,
        "name": "n",
    },
    "traffic.network.network.Network.at": {"state": 0},
    "traffic.network.network.Network.states": {"way": "there"},
    "traffic.network.network.Pie.__init__": {"target_ns": 5000, "update_ns": 900, "burst_ns": 9000, "has_ecn": True},
    "traffic.network.network.Queue.__init__": {"frames": 10, "red": Red(5000, 9000, 0.5)},
    "traffic.network.network.Red.__init__": {"least": 5000, "most": 9000, "share": 0.5, "weight": 2},
    "traffic.network.network.Reorder.__init__": {"share": 0.5, "extent_ns": 1000},
    "traffic.network.network.TrafficClass.__init__": {
        **{
            "name": "a",
            "match": "udp",
            "queue": Queue(10),
            "weight": 2,
            "delay_ns": 10**6,
            "jitter": Jitter("normal", 5),
        },
        **{"loss": Bernoulli(0.5), "duplicate": 0.1, "corrupt": 0.1, "reorder": Reorder(0.1, 5000), "seed": 3},
    },
    "traffic.presets.preset": {"name": "dsl"},
    "traffic.sets.Repeat.__init__": {"count": 5},
    "traffic.sets.Sets.__init__": {"stream": TAGGED, "sets": [{"vlan": 5}], "fields": ("vlan",), "repeats": 3},
    "traffic.sets.Sets.check": {"values": {"vlan": 9}},
    "traffic.sets.Sets.from_bench": {"stream": TAGGED, "patterns": lambda: [{"vlan": 5}]},
    "traffic.sets.Sets.from_columns": {"stream": TAGGED, "columns": {"vlan": [5, 6]}},
    "traffic.sets.Sets.settings": {"increment": 8 << 40},
    "traffic.stream.Coverage.__init__": {"start": 50, "addresses": 26, "octets": 8, "constant": 6},
    "traffic.stamps.Stamp.__init__": {"place": "octet", "octet": 60, "width": 32, "tick": 1},
    "traffic.stamps.Stamp.offset": {"headers": Headers()},
    "traffic.stream.Stream.__init__": {
        **{"name": "a", "stream_id": 1, "length": Fixed(64), "interval": Interval(pps=5), "count": 5, "start_ns": 800},
        **{"port": 1, "headers": Headers(), "fill": "prbs", "probe": True, "stamp": Stamp(), "seed": 5},
    },
    "traffic.stream.Stream.template": {"length": 64},
    "traffic.stream.fill_octets": {"fill": "prbs", "count": 9},
    "traffic.trace.trace.MadeSource.__init__": {
        "interval": Interval(pps=5),
        "length": Fixed(64),
        "count": 5,
        "seed": 3,
    },
    "traffic.trace.trace.Trace.__init__": {
        **{"source": CBR.source, "factor": Fraction(2), "rate_bps": 1e7, "repeats": 3, "snap_length": 64}
    },
    "traffic.trace.trace.Trace.at_rate": {"rate_bps": 1e7},
    "traffic.trace.trace.Trace.cbr": {"interval": Interval(pps=5), "length": 64, "count": 5, "stream_id": 2, "seed": 3},
    "traffic.trace.trace.Trace.due": {"increment": 8 << 40},
    "traffic.trace.trace.Trace.from_pcap": {"path": "docs/examples/office.pcapng", "sort": True, "repair": True},
    "traffic.trace.trace.Trace.imix": {"interval": Interval(pps=5), "count": 5, "seed": 3},
    "traffic.trace.trace.Trace.limited": {"max_gap_s": 2.0},
    "traffic.trace.trace.MadeSource.frames": {"with_times": True},
    "traffic.trace.trace.Trace.poisson": {"interval": Interval(pps=5), "length": 64, "count": 5},
    "traffic.trace.trace.Trace.records": {"increment": 8 << 40, "first_ticks": 5},
    "traffic.trace.trace.Trace.repeated": {"repeats": 5},
    "traffic.trace.trace.Trace.snapped": {"snap_length": 64},
    "traffic.trace.trace.Trace.stamped": {"stamp": Stamp()},
    "traffic.trace.trace.Trace.starts": {"increment": 8 << 40},
    "traffic.trace.trace.Trace.stretched": {"factor": 2},
    "traffic.trace.trace.Trace.summary": {"increment": 8 << 40},
    "traffic.trace.trace.Trace.turn_ticks": {"increment": 8 << 40},
    "traffic.trace.trace.Trace.with_margin": {"ppm": 100},
    "traffic.train.TrainProgram.__init__": {
        **{"length": 64, "count": 5, "repeats": 2, "interval_ns": 1000.0, "gap_ns": 80.0, "start_time_ns": 5000},
        **{"stream_id": 3, "fill": "prbs", "headers": Headers()},
    },
    "traffic.train.interval_ns_for_rate": {"length": 64, "rate_bps": 1e8},
}
#: Methods of a probe, by what they are of; called on a model of one.
PROBED: dict[str, dict[str, Any]] = {
    "probe.Probe.train": {"program": TrainProgram(60, 3), "transmit": 0, "receive": 1},
    "probe.Probe.trains": {"requests": [(TrainProgram(60, 3), 0, 1)]},
    "probe.Probe.launch": {"program": TrainProgram(60, 3), "transmit": 0},
    "probe.Probe.launch_all": {"requests": [(TrainProgram(60, 3), 0)]},
    "probe.Probe.send": {
        "streams": [STREAM],
        "receive": 1,
        "seconds": 0.01,
        "detach": False,
        "latency_range_ns": (0, 9),
    },
    "probe.Probe.stop": {"port": 0},
    "probe.Probe.wait": {"seconds": 0.001},
    "probe.Probe.set_time": {"time_ns": 5000},
    "probe.Probe.measure": {"port": 1},
    "probe.Probe.need": {"part": Part.STREAMS},
    "probe.Probe.replay": {"traces": {0: CBR}, "loops": 2, "options": ReplayOptions(), "capture": "x.pcapng"},
    "probe.Probe.sets": {"sets": Sets(TAGGED, [{"vlan": 5}]), "options": SetsOptions(), "capture": "x.pcapng"},
    "probe.Probe.emulate": {"network": Network()},
    "probe.Probe.capture": {"request": CaptureRequest(write="x.pcapng")},
    "clock.timebase.Timebase.set_time": {"time_ns": 5000},
    "clock.timebase.Timebase.adjust": {"offset_ns": 5.0},
    "clock.timebase.Timebase.uncertainty_ns": {"delay_ns": 5.0},
    "clock.clock.ProbeClock.enable_pps": {"period_ns": 1000},
    "clock.clock.ProbeClock.set_mode": {"mode": ClockMode.DISCIPLINE},
    "device.registers.Registers.read": {"name": "probe_ports"},
    "device.registers.Registers.read_many": {"names": ["probe_ports"]},
    "device.registers.Registers.constant": {"name": "x"},
    "device.registers.Registers.register": {"name": "probe_ports"},
    "device.registers.Registers.memory": {"name": "port0_tx_header"},
    "device.registers.Registers.write": {"name": "port0_tx_program_length", "value": 5},
    "device.registers.Registers.write_many": {"values": {"port0_tx_program_length": 5}},
    "device.registers.Registers.write_burst": {"values": {"port0_tx_program_length": 5}},
    "device.registers.Registers.read_memory": {"name": "port0_tx_header", "first": 0, "count": 2},
    "device.registers.Registers.write_memory": {"name": "port0_tx_header", "first": 0, "words": [1, 2]},
    "measure.monitor.Monitor.__init__": {"port": 0},
    "measure.monitor.Monitor.watch": {"stream_base": 1, "passed_only": False},
    "measure.monitor.Monitor.set_rate_interval": {"interval_ns": 10**6},
    "measure.monitor.Monitor.read": {"with_histograms": True},
    "measure.monitor.Monitor.events": {"is_latched": False},
    "run.streams.Traffic.stop": {"name": "one"},
    "run.streams.Traffic.start": {"name": "one"},
    "agent.client.AgentClient.set": {"name": "any", "value": 5},
    "agent.client.AgentClient.get": {"name": "any"},
    "agent.client.AgentClient.watch": {"names": "reads"},
    "agent.client.AgentClient.unwatch": {"names": "reads"},
    "agent.agent.Agent.value": {"name": "v", "interval_s": 0.5},
    "agent.agent.Agent.setting": {"name": "s", "minimum": 1.0, "maximum": 2.0, "initial": 1.5},
}
#: Those that are not called here, and why.
EXCLUDED = {
    "takes what only the library makes": (
        "capture.request.CaptureSettings.write", "traffic.headers.Headers.of_entries", "run.emulate.Emulation.result",
        "traffic.intervals.Interval.of_entries", "clock.clock.ProbeClock.__init__", "clock.clock.ProbeClock.qerr_ps",
        "clock.clock.ProbeClock.publish", "clock.timebase.Timebase.__init__", "clock.timebase.Timebase.delay_bound_ns",
        "device.registers.Registers.__init__", "run.streams.Traffic.__init__", "run.emulate.Emulation.__init__",
        "run.emulate.Emulation.started", "run.replay.replay", "run.sets.send_sets", "suites.owd.OneWay.__init__",
        "run.streams.Traffic.starting", "run.streams.Traffic.begin", "run.streams.Traffic.halt", "agent.agent.Agent.add",
        "run.streams.Traffic.lengths_of",
        "run.emulate.Emulation.begin", "run.emulate.Emulation.stop_ports",
        "traffic.network.network.Background.ticks_between", "report.agent_files.document",
        "report.agent_files.table", "report.agent_files.write_parquet", "measure.monitor.Monitor.set_bins",
        "suites.owd.OneWay.clock_of",
        "suites.owd.OneWay.results_of", "suites.owd.OneWay.gap_ns", "suites.owd.OneWay.let_pass", "suites.owd.OneWay.pause",
        "suites.owd.OneWay.seen", "capture.request.CaptureSettings.begin", "run.stamp.StampSession.answered",
        "run.stamp.StampSession.resolved", "traffic.network.network.Background.octets", "suites.trials.Offer.longer",
        "suites.y1564.EthernetService.at", "suites.y1564.EthernetService.burst", "suites.y1564.EthernetService.information",
        "suites.y1564.EthernetService.share_at", "suites.y1564.Y1564Request.tests_of", "suites.soak.SoakRequest.offer",
        "suites.y1564.Y1564Request.seconds_of", "suites.rfc2544.Rfc2544Request.streams",
        "suites.rfc2544.Rfc2544Request.counted",
    ),
    "opens what is named: a probe, a device, a file; `bench truth documents` has its texts": (
        "probe.Probe.__init__", "device.link.url.open_link", "agent.client.AgentClient.__init__", "agent.agent.Agent.__init__",
        "agent.keys.Keys.read", "agent.keys.Keys.__init__", "agent.keys.make_keys", "agent.keys.public_key",
        "analysis.calibration.load", "analysis.truth.read", "clock.log.read", "device.registers.load_map",
        "traffic.network.network.BandwidthTrace.from_file", "packets.filter.expression.parse", "capture.run.capture_recording",
    ),
    "changes a network that runs: test_emulate_live.py and `bench emulator live` have its words": (
        "run.emulate.Emulation.set", "run.emulate.Emulation.set_words", "run.emulate.Emulation.background",
    ),
    "waits, or calls back, while something runs": (
        "agent.client.AgentClient.pushed", "probe.Probe.stamp", "probe.Probe.host", "probe.Probe.resolve",
        "run.streams.Traffic.wait", "run.streams.Traffic.follow", "run.emulate.Emulation.wait",
        "clock.clock.ProbeClock.edges",
    ),
}  # fmt: skip

#: What methods are of.
OF: dict[str, Any] = {
    "Headers": Headers(),
    "BandwidthTrace": BandwidthTrace((1, 5), (1504, 1504)),
    "Network": Network(),
    "Sets": Sets(TAGGED, [{"vlan": 5}]),
    "Stamp": Stamp(),
    "Stream": STREAM,
    "Trace": CBR,
    "MadeSource": CBR.source,
}
WRONG: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        -1,
        0,
        2**32,
        2**64,
        -(2**63),
        10**40,
        10**5000,
        60.5,
        -0.5,
        1e300,
        math.nan,
        math.inf,
        -math.inf,
    ),
    *("", "x", "60.5", "-1", "1 parsec", "1e400", "9" * 5000, "\ud800", "a\0b", "\x1b[31m", "\u202e", "None"),
    *(
        b"",
        b"60",
        bytearray(b"6"),
        [],
        (),
        {},
        set(),
        [None],
        ["x"],
        [[1]],
        [1.5],
        [True],
        {"a": 1},
        {1: None},
        [-1],
        [2**64],
    ),
    *(1j, Decimal("1.5"), Fraction(1, 3), object(), int, lambda: 1, range(3), iter([1]), np.nan, np.float32("inf")),
    *(
        np.array(5),
        np.array([1, 2]),
        np.array([[1, 2]]),
        np.array(["a"]),
        np.array([np.nan]),
        np.datetime64("2020-01-01"),
    ),
    *(np.timedelta64(5), np.bool_(True), np.complex64(1), Path(), Path("/nowhere/at/all"), ProbeError("x"), slice(1)),
    *(
        TrainProgram(60, 1),
        Fixed(60),
        STREAM,
        CBR,
        [TrainProgram(60, 1)],
        {0: TrainProgram(60, 1)},
        [(1, 2, 3)],
        NotImplemented,
    ),
)


@dataclass(frozen=True)
class Call:
    """A call with one argument changed; ``is_right``: it means the same as the plain one."""

    name: str
    argument: str
    value: Any
    is_right: bool


def parameter(name: str, argument: str) -> inspect.Parameter:
    """Return the parameter of a callable."""
    return inspect.signature(validate.PUBLIC[name]).parameters[argument]


def alike(name: str, argument: str, value: Any) -> list[Any]:
    """Return other ways to write an argument: numpy's numbers, text with units, lists for tuples."""
    hint, unit = str(parameter(name, argument).annotation), argument.rpartition("_")[2]
    unit, found = unit * (unit in ("ns", "s", "seconds", "bps", "pps", "share")), list[Any]()
    is_text = (
        "str" in hint or "Part" in hint or "Mode" in hint or "Literal" in hint or "Scalar" in hint or "Value" in hint
    )
    if isinstance(value, bool):
        return [np.bool_(value)]
    if isinstance(value, int):
        found += [kind(value) for kind in (np.int64, np.uint64, np.int32, np.uint8) if 0 <= value <= np.iinfo(kind).max]
        found += [] if is_text else [str(value), hex(value)]
    if isinstance(value, float):
        found += [np.float64(value)] + [np.float32(value)] * (float(np.float32(value)) == value)
        found += [int(value), np.int64(value)] * value.is_integer() + [str(value)] * (not is_text and bool(unit))
    if isinstance(value, int | float) and not is_text and unit in ("ns", "s", "seconds", "bps"):
        exact = Fraction(str(value))
        factors = {"ns": {"ns": 1, "us": 1000, "s": 10**9}, "bps": {"k": 1000, "M": 10**6, "Mb/s": 10**6}}
        of = factors.get(unit, {"s": 1, "ms": Fraction(1, 1000), "us": Fraction(1, 10**6)})
        if "traffic.intervals" in name or "traffic.network" in name:
            of.pop("Mb/s", None)  # As in documents.
        found += [
            f"{Decimal((exact / size).numerator) / (exact / size).denominator:f}{word}" for word, size in of.items()
        ]
    if isinstance(value, str) and value:
        found += [np.str_(value)] + [Path(value)] * ("Path" in hint and "str" in hint)
    if isinstance(value, tuple | list) and value:
        found += [list(value), tuple(value)]
        if all(type(one) is int for one in value) and "tuple[int, int]" not in hint:
            found += [np.array(value), [np.int64(one) for one in value]]
    if isinstance(value, np.ndarray):
        found += [value.tolist()] + (
            [value.astype(np.uint16), value.astype(object).tolist()] if value.dtype.kind in "iu" else []
        )
    if isinstance(value, Mapping):
        found += [{np.int64(key) if isinstance(key, int) else key: one for key, one in value.items()}]
    return found


def calls(chance: random.Random) -> Iterator[Call]:
    """Yield calls without an end: one in three is right in another way."""
    table = PURE | PROBED
    arguments = [(name, argument) for name, given in table.items() for argument in given]
    while True:
        chance.shuffle(arguments)
        for name, argument in arguments:
            same = alike(name, argument, table[name][argument])
            is_right = bool(same) and chance.random() < 1 / 3
            yield Call(name, argument, chance.choice(same if is_right else WRONG), is_right)


def normal(result: Any, depth: int = 0) -> Any:
    """Return a result as plain data that can be compared: numbers are exact, whatever their type."""
    if depth > 8 or result is None or isinstance(result, bool | str | bytes | Path):
        return str(result) if isinstance(result, Path) else result
    if isinstance(result, np.ndarray):
        return normal(result.tolist(), depth + 1) if result.dtype.names is None else len(result)
    if isinstance(result, int | float | Fraction | np.generic):
        plain = result.item() if isinstance(result, np.generic) else result
        return Fraction(str(plain)) if not isinstance(plain, float) or math.isfinite(plain) else str(plain)
    if isinstance(result, Sets):
        return normal((result.settings(), list(result.octets())), depth + 1)
    if isinstance(result, Traffic):
        result.stop()
        return [row.name for row in result.result().rows]
    if isinstance(result, Mapping):
        return {key: normal(one, depth + 1) for key, one in result.items()}
    if isinstance(result, list | tuple | Iterator):
        return [normal(one, depth + 1) for one in islice(result, 20)]
    if is_dataclass(result):
        names = [one.name for one in fields(result) if one.compare]
        return type(result).__name__, {one: normal(getattr(result, one), depth + 1) for one in names}
    return type(result).__name__


class Library:
    """Calls the library by the names of what it offers; each call of a probe has one of its own."""

    def __init__(self, folder: Path, client: AgentClient) -> None:
        self.folder, self.client = folder, client
        self._plain: dict[str, Any] = {}

    def call(self, name: str, given: Mapping[str, Any]) -> Any:
        """Return what a call returns, as plain data; ProbeErrors are raised."""
        given = dict(given)
        names = [given.pop("names")] if "names" in given and "AgentClient" in name else []
        if name.startswith("agent.agent.Agent."):
            with Agent("a", "tcp://127.0.0.1:0") as agent:
                return normal(getattr(agent, name.rpartition(".")[2])(**given))
        found = self._function(name)(*names, **given)
        return normal(found)

    def plain(self, name: str) -> Any:
        """Return what the plain call returns, or the text of its error."""
        if name not in self._plain:
            try:
                self._plain[name] = self.call(name, (PURE | PROBED)[name])
            except ProbeError as error:
                self._plain[name] = str(error)
        return self._plain[name]

    def _function(self, name: str) -> Callable[..., Any]:
        path = name.split(".")
        place = next(
            end for end in range(len(path), 0, -1) if path[end - 1].islower() and ".".join(path[:end]) in MODULES
        )
        found: Any = MODULES[".".join(path[:place])]
        of, *method = path[place:]
        if name in PURE:
            found = getattr(found, of)
            if method in ([], ["__init__"]):
                return found
            is_made = isinstance(inspect.getattr_static(found, method[0]), classmethod)
            return getattr(found if is_made else OF[of], method[0])
        if of == "AgentClient":
            self.client.set("any", 5)
            return getattr(self.client, method[0])
        model = TrafficProbe(lambda frame: [(1 - frame.port, 10, frame)])
        probe = Probe(FakeLink(model, self.folder))
        if of == "Monitor":
            return (
                (lambda port: Monitor(probe, port).port)
                if method == ["__init__"]
                else getattr(Monitor(probe, 0), method[0])
            )
        if of == "Traffic":
            return getattr(probe.send([STREAM], 1), method[0])
        owner = {"Probe": probe, "Timebase": probe.timebase, "ProbeClock": probe.clock, "Registers": probe.registers}[
            of
        ]
        return getattr(owner, method[0])


MODULES = {
    name.removeprefix("liteprobe.host."): one for name, one in sys.modules.items() if name.startswith("liteprobe.host.")
}


def may_be(call: Call, plain: Any) -> bool:
    """Return whether an accepted value is of a type that the signature names, so that it was right to take it."""
    hint, value = str(parameter(call.name, call.argument).annotation), call.value
    if value is None:
        return "None" in hint or "Optional" in hint or "Any" in hint
    if isinstance(value, bool | np.bool_):
        return isinstance(plain, bool) or "bool" in hint or "Scalar" in hint
    if isinstance(value, float | np.floating) and not math.isfinite(value):
        return False
    if isinstance(value, int | float | Fraction):
        return isinstance(plain, int | float | Fraction) or "int" in hint or "Scalar" in hint
    if isinstance(value, str):
        return "str" in hint or "Scalar" in hint or isinstance(plain, str | int | float | Fraction | Path)
    if isinstance(value, bytes):
        return "bytes" in hint or "Scalar" in hint
    if isinstance(value, list | tuple | set | dict | range | np.ndarray | Iterator):
        return isinstance(plain, list | tuple | dict | np.ndarray) or callable(plain)
    return type(value) is type(plain) or callable(value) or isinstance(value, Path | Fixed)


def failing(library: Library, call: Call) -> tuple[str, str]:
    """Make a call; return "refused" or "right", or "wrong" and what is wrong."""
    plain = (PURE | PROBED)[call.name]
    try:
        found = library.call(call.name, {**plain, call.argument: call.value})
    except ProbeError as error:
        said = str(error)
        if not call.is_right:
            return "refused", ""
        expected = library.plain(call.name)
        return ("right", "") if isinstance(expected, str) else ("wrong", f"refused: {said}")
    except Exception as error:
        return "wrong", f"{type(error).__name__}: {str(error)[:200]}"
    if call.is_right:
        expected = library.plain(call.name)
        return ("right", "") if found == expected else ("wrong", f"{found} is not {expected}"[:400])
    return ("right", "") if may_be(call, plain[call.argument]) else ("wrong", f"accepted: {found}"[:200])


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """Calls of the library, beside an agent."""
    agent = Agent("example", "tcp://127.0.0.1:0", limit_s=0.3)
    Device(agent)
    with agent, AgentClient(agent.address) as client:
        yield Library(tmp_path, client)


@row("truth", "library", is_test=True)
def test_wrong_types_and_values_are_refused_or_mean_what_they_say(library: Library, size: Size) -> Iterator[Figure]:
    chance, wrong, counts = random.Random(SEED), list[str](), Counter[tuple[str, str]]()
    for call in islice(calls(chance), size.of(300, 6000, 30_000)):
        outcome, why = failing(library, call)
        counts[call.name, outcome] += 1
        if why:
            wrong.append(f"{call.name}({call.argument}={validate.shown(call.value)}): {why}")
    if size > Size.TEST or wrong:
        note(*wrong)
        for name in PURE | PROBED:
            note(
                f"{name}: {counts[name, 'refused']} refused, {counts[name, 'right']} right, {counts[name, 'wrong']} wrong"
            )
        for why, names in EXCLUDED.items():
            note(f"{len(names)} excluded, {why}: {', '.join(names)}")
    yield Figure("library_wrong", len(wrong), "calls", 0)
    for outcome in ("refused", "right"):
        total = sum(count for (_, one), count in counts.items() if one == outcome)
        yield Figure(f"library_{outcome}", total, "calls", 1, is_least=True)


def test_every_argument_of_what_the_library_offers_is_checked_or_excluded() -> None:
    excluded = {name for names in EXCLUDED.values() for name in names}
    own = [name for name, function in validate.PUBLIC.items() if not function.__module__.startswith("test")]
    takes = {name for name in own if set(inspect.signature(validate.PUBLIC[name]).parameters) - {"self", "cls"}}
    assert takes - set(PURE) - set(PROBED) - excluded == set()
    for name in takes - excluded:
        kinds = validate.kinds_of(validate.PUBLIC[name].__wrapped__)  # type: ignore[attr-defined]
        named = set(inspect.signature(validate.PUBLIC[name]).parameters) - {"self", "cls"}
        assert kinds.keys() | {"settings"} >= named, name


def test_what_an_iterator_gives_is_checked_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validate, "PUBLIC", {})

    @validate.validated
    def doubled(values: Iterable[int]) -> list[int]:
        return [2 * value for value in values]

    assert doubled(iter(["3", 4])) == [6, 8]
    with pytest.raises(ProbeError, match=r"item 1 is None \(NoneType\): give a whole number"):
        doubled(iter([1, None]))  # type: ignore[list-item]
