# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The host library, to be imported from here: everything that the command does, in a few lines of script.

>>> from liteprobe.host import Network, Probe, Replay, Stream, StreamFigures, Train
>>> Train(60, count=1000, interval="1us").total
1000
"""

import importlib
from typing import TYPE_CHECKING, Any

from liteprobe.host.base.errors import MapError as MapError
from liteprobe.host.base.errors import NoProbeError as NoProbeError
from liteprobe.host.base.errors import ProbeError as ProbeError
from liteprobe.host.base.errors import UsageError as UsageError

if TYPE_CHECKING:
    from liteprobe.host.analysis.expect import Judgement as Judgement
    from liteprobe.host.analysis.result import Result as Result
    from liteprobe.host.analysis.summary import TrainResult as TrainResult
    from liteprobe.host.base.errors import BusyError as BusyError
    from liteprobe.host.base.errors import DataError as DataError
    from liteprobe.host.base.errors import ExpectationError as ExpectationError
    from liteprobe.host.base.errors import UndecidedError as UndecidedError
    from liteprobe.host.capture.request import CaptureRequest as CaptureRequest
    from liteprobe.host.capture.request import CaptureResult as CaptureResult
    from liteprobe.host.capture.request import CaptureSettings as CaptureSettings
    from liteprobe.host.measure.monitor import Monitor as Monitor
    from liteprobe.host.measure.monitor import PortMeasurement as PortMeasurement
    from liteprobe.host.measure.percentiles import Bounds as Bounds
    from liteprobe.host.measure.percentiles import Measured as Measured
    from liteprobe.host.probe import Probe as Probe
    from liteprobe.host.run.emulate import Emulation as Emulation
    from liteprobe.host.run.emulate import EmulationResult as EmulationResult
    from liteprobe.host.run.figures import StreamFigures as StreamFigures
    from liteprobe.host.run.figures import TrafficLook as TrafficLook
    from liteprobe.host.run.figures import TrafficResult as TrafficResult
    from liteprobe.host.run.hosts import HostSettings as HostSettings
    from liteprobe.host.run.replay import PortReplay as PortReplay
    from liteprobe.host.run.replay import ReplayOptions as ReplayOptions
    from liteprobe.host.run.replay import ReplayResult as ReplayResult
    from liteprobe.host.run.sets import PortSets as PortSets
    from liteprobe.host.run.sets import SetsOptions as SetsOptions
    from liteprobe.host.run.sets import SetsResult as SetsResult
    from liteprobe.host.run.stamp import StampResult as StampResult
    from liteprobe.host.run.stamp import StampSession as StampSession
    from liteprobe.host.run.streams import Traffic as Traffic
    from liteprobe.host.run.trains import Route as Route
    from liteprobe.host.suites.owd import OneWay as OneWay
    from liteprobe.host.suites.owd import OneWayResult as OneWayResult
    from liteprobe.host.suites.rfc2544 import Rfc2544 as Rfc2544
    from liteprobe.host.suites.rfc2544 import Rfc2544Request as Rfc2544Request
    from liteprobe.host.suites.rfc2544 import Rfc2544Result as Rfc2544Result
    from liteprobe.host.suites.sweep import Sweep as Sweep
    from liteprobe.host.suites.sweep import SweepRequest as SweepRequest
    from liteprobe.host.traffic.headers import Headers as Headers
    from liteprobe.host.traffic.headers import MplsLabel as MplsLabel
    from liteprobe.host.traffic.intervals import Burst as Burst
    from liteprobe.host.traffic.intervals import Interval as Interval
    from liteprobe.host.traffic.lengths import IMIX as IMIX
    from liteprobe.host.traffic.lengths import Fixed as Fixed
    from liteprobe.host.traffic.lengths import RandomLength as RandomLength
    from liteprobe.host.traffic.lengths import Stepped as Stepped
    from liteprobe.host.traffic.modifiers import Decrement as Decrement
    from liteprobe.host.traffic.modifiers import Increment as Increment
    from liteprobe.host.traffic.modifiers import Random as Random
    from liteprobe.host.traffic.modifiers import Values as Values
    from liteprobe.host.traffic.network import BandwidthTrace as BandwidthTrace
    from liteprobe.host.traffic.network import Bernoulli as Bernoulli
    from liteprobe.host.traffic.network import Change as Change
    from liteprobe.host.traffic.network import Codel as Codel
    from liteprobe.host.traffic.network import Direction as Direction
    from liteprobe.host.traffic.network import GilbertElliott as GilbertElliott
    from liteprobe.host.traffic.network import Jitter as Jitter
    from liteprobe.host.traffic.network import Network as Network
    from liteprobe.host.traffic.network import Pie as Pie
    from liteprobe.host.traffic.network import Queue as Queue
    from liteprobe.host.traffic.network import Red as Red
    from liteprobe.host.traffic.network import Reorder as Reorder
    from liteprobe.host.traffic.network import TrafficClass as TrafficClass
    from liteprobe.host.traffic.sets import Sets as Sets
    from liteprobe.host.traffic.stamps import Stamp as Stamp
    from liteprobe.host.traffic.stream import Stream as Stream
    from liteprobe.host.traffic.trace.trace import Replay as Replay
    from liteprobe.host.traffic.trace.trace import Trace as Trace
    from liteprobe.host.traffic.train import Train as Train
    from liteprobe.host.traffic.train import TrainProgram as TrainProgram

#: Loaded when they are asked for: numpy takes longer than all that a command line needs to be understood.
_LATER = {
    "analysis.expect": "Judgement",
    "analysis.result": "Result",
    "analysis.summary": "TrainResult",
    "base.errors": "BusyError DataError ExpectationError UndecidedError",
    "capture.request": "CaptureRequest CaptureResult CaptureSettings",
    "measure.monitor": "Monitor PortMeasurement",
    "measure.percentiles": "Bounds Measured",
    "probe": "Probe",
    "run.emulate": "Emulation EmulationResult",
    "run.figures": "StreamFigures TrafficLook TrafficResult",
    "run.hosts": "HostSettings",
    "run.replay": "PortReplay ReplayOptions ReplayResult",
    "run.sets": "PortSets SetsOptions SetsResult",
    "run.stamp": "StampResult StampSession",
    "run.streams": "Traffic",
    "run.trains": "Route",
    "suites.owd": "OneWay OneWayResult",
    "suites.rfc2544": "Rfc2544 Rfc2544Request Rfc2544Result",
    "suites.sweep": "Sweep SweepRequest",
    "traffic.headers": "Headers MplsLabel",
    "traffic.intervals": "Burst Interval",
    "traffic.lengths": "IMIX Fixed RandomLength Stepped",
    "traffic.modifiers": "Decrement Increment Random Values",
    "traffic.network": "BandwidthTrace Bernoulli Change Codel Direction GilbertElliott Jitter Network Pie Queue Red Reorder "
    "TrafficClass",
    "traffic.sets": "Sets",
    "traffic.stamps": "Stamp",
    "traffic.stream": "Stream",
    "traffic.trace.trace": "Replay Trace",
    "traffic.train": "Train TrainProgram",
}
_PLACES = {name: f"{__name__}.{place}" for place, names in _LATER.items() for name in names.split()}
__all__ = ["MapError", "NoProbeError", "ProbeError", "UsageError", *_PLACES]


def __getattr__(name: str) -> Any:
    """Return what is loaded later."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__} has no {name}")
    return getattr(importlib.import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
