# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The eye of a port's received data: at which delays of the FPGA all frames come whole, and the middle of them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from liteprobe.cores.formats import DELAY_TAPS, EYE_NS, TAP_NS
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.device.phy import Phys, ReceiveDelay
from liteprobe.host.probe import Probe
from liteprobe.host.run.trains import Route, TrainRun
from liteprobe.host.traffic.train import TrainProgram

TAIL_S = 100e-6  # For the last frame of a train on its way.
EYE_TAPS = EYE_NS / TAP_NS
MANAGEMENT_PORT = 0  # In band.


class Eye(NamedTuple):
    """Result of a sweep."""

    whole: list[int]  # Frames that came whole at each delay, from tap 0 on.
    sent: int  # Frames sent at each.
    first: int  # First tap of the longest run at which all came.
    last: int  # Last tap of it.
    middle: int  # Of the eye (taps): of that run, or from its one edge half of the width that data sheets give.
    clipped: str  # Which edge lies beyond the reach of the delay: ``first``, ``last``, ``both``, or empty.

    @property
    def width_ns(self) -> float:
        """Width of the eye that was seen."""
        return (self.last - self.first) * TAP_NS


def sweep(
    probe: Probe,
    port: int = 1,
    transmit: int = 0,
    count: int = 20,
    step: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Eye:
    """Walk the delay of ``port`` against trains that ``transmit`` sends to it, and keep the middle of the eye.

    Raises UsageError when the probe has no such delay, or when management comes through the port; ProbeError when no
    delay brings all frames; the delay of the build is set again.

    Parameters
    ----------
    port, transmit : int
        Where the delay is changed, and from where frames come: join both by a cable.
    count : int
        Frames at each delay.
    step : int
        Taps from one delay to the next.
    progress : callable or None
        Called with the delays done and the delays to do.
    """
    if not Phys.are_there(probe.registers):
        raise UsageError(
            f"{probe.url} has no delay that can be changed: it is not a board with RGMII, or of an older build"
        )
    if probe.link.is_in_band and port == MANAGEMENT_PORT:
        raise UsageError(
            f"management comes through port {port}, and a wrong delay would cut it off: sweep the other port, whose PHY and "
            f"FPGA are the same, or reach the probe by its serial port"
        )
    program = TrainProgram(length=512, count=count, gap_ns=0.0)
    delay = ReceiveDelay(probe.registers, port)
    whole = []
    taps = range(0, DELAY_TAPS, step)
    try:
        delay.set(0)
        for done, _ in enumerate(taps):
            whole.append(_whole(probe, program, transmit, port))
            delay.move(step)
            if progress:
                progress(done + 1, len(taps))
        eye = eye_of(whole, count, step)
    except BaseException:
        delay.default()
        raise
    delay.set(eye.middle)
    return eye


def eye_of(whole: Sequence[int], sent: int, step: int = 1) -> Eye:
    """Return the eye that frames show which came whole, one figure every ``step`` taps from 0 on."""
    runs, begin = [], None
    for number, frames in enumerate([*whole, -1]):
        if frames == sent:
            begin = number if begin is None else begin
        elif begin is not None:
            runs.append((begin, number - 1))
            begin = None
    if not runs:
        raise ProbeError(
            f"no delay brought all {sent} frames (at best {max(whole, default=0)}): is the cable between both ports, and its "
            f"link up at 1 Gb/s? Else the PHY does not delay its clock, or is not the one that the board should have"
        )
    begin, end = max(runs, key=lambda run: run[1] - run[0])
    first, last = begin * step, end * step
    is_first_hidden, is_last_hidden = begin == 0, end == len(whole) - 1
    if is_first_hidden and is_last_hidden:
        clipped, middle = "both", (first + last) // 2
    elif is_first_hidden:
        clipped, middle = "first", max(0, round(last + step / 2 - EYE_TAPS / 2))
    elif is_last_hidden:
        clipped, middle = "last", min(DELAY_TAPS - 1, round(first - step / 2 + EYE_TAPS / 2))
    else:
        clipped, middle = "", (first + last) // 2
    return Eye(list(whole), sent, first, last, middle, clipped)


def _whole(probe: Probe, program: TrainProgram, transmit: int, receive: int) -> int:
    """Return how many frames of a train come whole."""
    meter = probe.ports[receive].receive
    meter.start(program, with_records=False)
    end_ns = TrainRun([Route(program, probe, probe, transmit, receive)]).launch()
    probe.link.wait(max(0, end_ns - probe.timebase.now_ns) / 1e9 + TAIL_S)
    return meter.counters()["frames"]
