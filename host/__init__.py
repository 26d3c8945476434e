# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The host library: everything that the command does, in a few lines of script."""

from liteprobe.host.errors import MapError, NoProbeError, ProbeError, UsageError
from liteprobe.host.headers import Headers
from liteprobe.host.probe import Probe
from liteprobe.host.train import TrainProgram, TrainResult

__all__ = ["Headers", "MapError", "NoProbeError", "Probe", "ProbeError", "TrainProgram", "TrainResult", "UsageError"]
