# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Watches a GMII and knows the tick of each frame, by the simulator's own time."""

from dataclasses import dataclass, field
from typing import Any

from cocotb.triggers import FallingEdge, RisingEdge
from cocotb.utils import get_sim_time

PREAMBLE_AND_SFD = 8


@dataclass
class WireFrame:
    """One assertion of TX_EN.

    Attributes
    ----------
    start : int
        Tick of the first preamble octet.
    ticks : int
        Octets from there to the end of the FCS.
    octets : bytes
        All of them, where the sink was asked to look; else empty.
    sfd_now : int
        ``now`` (ns) in the tick of the eighth octet, likewise.
    """

    start: int
    ticks: int = 0
    octets: bytes = b""
    sfd_now: int = 0

    @property
    def sfd(self) -> int:
        """Tick of the SFD."""
        return self.start + PREAMBLE_AND_SFD - 1

    @property
    def data(self) -> bytes:
        """The frame without preamble, SFD and FCS."""
        return self.octets[PREAMBLE_AND_SFD:-4]


@dataclass
class GmiiSink:
    """Collects frames; reads the octets of the first ``look_at`` of them, or of all.

    ``clock``, ``valid``, ``data`` and ``now`` are cocotb handles, ``period_fs`` that of the clock, ``origin_fs`` the time of
    its first rising edge. Octets are sampled in the middle of a tick; where no octets are read only the edges
    of TX_EN cost time.
    """

    clock: Any
    valid: Any
    data: Any
    now: Any
    period_fs: int
    look_at: int | None = None
    origin_fs: int = 0
    frames: list[WireFrame] = field(default_factory=list)

    async def run(self) -> None:
        """Watch for ever."""
        while True:
            await RisingEdge(self.valid)
            frame = WireFrame(start=self.tick())
            if self.look_at is None or len(self.frames) < self.look_at:
                await self.read(frame)
            else:
                await FallingEdge(self.valid)
            frame.ticks = self.tick() - frame.start
            self.frames.append(frame)

    async def read(self, frame: WireFrame) -> None:
        """Read the octets of the frame that has just begun."""
        octets = bytearray()
        edge = FallingEdge(self.clock)
        while True:
            await edge
            if not self.valid.value:
                break
            octets.append(int(self.data.value))
            if len(octets) == PREAMBLE_AND_SFD:
                frame.sfd_now = int(self.now.value)
        frame.octets = bytes(octets)

    def tick(self) -> int:
        """Return the number of the present tick."""
        return (int(get_sim_time("fs")) - self.origin_fs) // self.period_fs
