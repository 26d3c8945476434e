# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The host library: everything that the command does, in a few lines of script."""

import importlib
from typing import TYPE_CHECKING, Any

from liteprobe.host.errors import MapError, NoProbeError, ProbeError, UsageError

if TYPE_CHECKING:
    from liteprobe.host.capture.request import CaptureRequest
    from liteprobe.host.probe import Probe
    from liteprobe.host.traffic.headers import Headers
    from liteprobe.host.traffic.train import TrainProgram, TrainResult

__all__ = [
    "CaptureRequest",
    "Headers",
    "MapError",
    "NoProbeError",
    "Probe",
    "ProbeError",
    "TrainProgram",
    "TrainResult",
    "UsageError",
]

#: Loaded when they are asked for: numpy takes longer than all that a command line needs to be understood.
_LATER = {
    "CaptureRequest": "capture.request",
    "Headers": "traffic.headers",
    "Probe": "probe",
    "TrainProgram": "traffic.train",
    "TrainResult": "traffic.train",
}


def __getattr__(name: str) -> Any:
    """Return what is loaded later."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__} has no {name}")
    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
