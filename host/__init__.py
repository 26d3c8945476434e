# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The host library: everything that the command does, in a few lines of script."""

import importlib
from typing import TYPE_CHECKING, Any

from liteprobe.host.base.errors import MapError, NoProbeError, ProbeError, UsageError

if TYPE_CHECKING:
    from liteprobe.host.capture.request import CaptureRequest
    from liteprobe.host.probe import Probe
    from liteprobe.host.run.figures import TrafficResult
    from liteprobe.host.run.replay import ReplayOptions, ReplayResult
    from liteprobe.host.run.streams import Traffic
    from liteprobe.host.traffic.headers import Headers
    from liteprobe.host.traffic.intervals import Burst, Interval
    from liteprobe.host.traffic.lengths import IMIX, Fixed
    from liteprobe.host.traffic.stamps import Stamp
    from liteprobe.host.traffic.stream import Stream
    from liteprobe.host.traffic.trace.trace import Trace
    from liteprobe.host.traffic.train import TrainProgram, TrainResult

__all__ = [
    "IMIX",
    "Burst",
    "CaptureRequest",
    "Fixed",
    "Headers",
    "Interval",
    "MapError",
    "NoProbeError",
    "Probe",
    "ProbeError",
    "ReplayOptions",
    "ReplayResult",
    "Stamp",
    "Stream",
    "Trace",
    "Traffic",
    "TrafficResult",
    "TrainProgram",
    "TrainResult",
    "UsageError",
]

#: Loaded when they are asked for: numpy takes longer than all that a command line needs to be understood.
_LATER = {
    "IMIX": "traffic.lengths",
    "Burst": "traffic.intervals",
    "CaptureRequest": "capture.request",
    "Fixed": "traffic.lengths",
    "Headers": "traffic.headers",
    "Interval": "traffic.intervals",
    "Probe": "probe",
    "ReplayOptions": "run.replay",
    "ReplayResult": "run.replay",
    "Stamp": "traffic.stamps",
    "Stream": "traffic.stream",
    "Trace": "traffic.trace.trace",
    "Traffic": "run.streams",
    "TrafficResult": "run.figures",
    "TrainProgram": "traffic.train",
    "TrainResult": "traffic.train",
}


def __getattr__(name: str) -> Any:
    """Return what is loaded later."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__} has no {name}")
    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
