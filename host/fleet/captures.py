# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Captures what a probe of an experiment sees, from before its first start until after its last, beside all that is sent.

Stands alone: a run of its own that goes on beside those of pairs, over all starts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from liteprobe.cores.formats import PRESETS, Part, preset_of
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.base.output import words_of
from liteprobe.host.capture.request import CaptureResult
from liteprobe.host.capture.run import capture_probe
from liteprobe.host.capture.session import Sink
from liteprobe.host.fleet.plan import PlannedCapture
from liteprobe.host.fleet.turns import InTurns, Sleep
from liteprobe.host.probe import Probe

TURN_S = 0.005  # From one look at what has come to the next.


@dataclass
class CaptureFigures:
    """Holds what came of the capture at a probe; ``why``: why it has ended before its end, or has nothing."""

    probe: str
    files: tuple[str, ...]
    result: CaptureResult | None = None
    why: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether every frame that was to be kept was written."""
        return not self.why and self.result is not None and self.result.is_complete

    @property
    def said(self) -> str:
        """Its frames, files and losses, in a line."""
        if self.result is None:
            return f"capture at {self.probe}: {self.why}"
        lost = self.result.frames_lost
        missing = ", some of them lost" if lost is None else f", {lost:,} lost" * bool(lost)
        why = f" ({self.why})" * bool(self.why)
        return f"capture at {self.probe}: {self.result.frames:,} frames{missing}, in {', '.join(self.files)}{why}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data: the counts of `CaptureResult.to_dict` under ``counts``."""
        counts = None if self.result is None else self.result.to_dict()
        return {
            "probe": self.probe,
            "files": list(self.files),
            "why": self.why,
            "is_complete": self.is_complete,
            "counts": counts,
        }


def unable(probe: Probe) -> str:
    """Return why a probe captures nothing; empty: it can."""
    if Part.MONITOR in probe.parts:
        return ""
    names = [name for name, parts in PRESETS.items() if Part.MONITOR in parts]
    return f"a {preset_of(probe.parts)} captures nothing: load {' or '.join(names)}"


class CaptureBeside:
    """Runs a capture as one of several turns, until `end` is called; a companion of the capture, as `CaptureCompanion` says.

    ``figures`` : what has come of it.
    """

    sinks: Sequence[Sink] = ()

    def __init__(self, planned: PlannedCapture, probe: Probe) -> None:
        self._planned, self._probe = planned, probe
        self.figures = CaptureFigures(planned.probe, planned.files)
        self._is_over = self._is_full = False
        self._device: InTurns | None = None

    @property
    def paths(self) -> Mapping[str, Path]:
        """Files by what they have."""
        return self._planned.paths

    def run(self, sleep: Sleep) -> None:
        """Capture until `end`, and keep what came, or why nothing did."""
        self._device = InTurns(self._probe, sleep, self.end)
        figures = self.figures
        figures.why = unable(self._probe)
        if figures.why:
            return
        try:
            figures.result = capture_probe(self._device, self._planned.request, companion=self)
            figures.why = "; ".join(figures.result.failed)
        except ProbeError as error:
            figures.why = str(error)
        except OSError as error:
            figures.why = words_of(error)
        if self._is_full and not figures.why:
            figures.why = (
                f"its files came to {self._planned.most:,} octets, and it ended: give it a filter, snap or size"
            )

    def end(self) -> None:
        """Let it end, when all that is on its way has been taken."""
        self._is_over = True

    def is_wanted(self) -> bool:
        """Let others go on, and return whether it is to go on."""
        assert self._device
        if not self._is_over:
            self._device.wait(TURN_S)
        if not self._is_over and self._planned.most is not None:
            octets = sum(one.stat().st_size for one in self._planned.paths.values() if one.exists())
            self._is_over = self._is_full = octets >= self._planned.most
        return not self._is_over

    def stop(self) -> None:
        """End it, because a signal came."""
        self.end()
