# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends octets on a GMII and knows when each SFD stood there; watches one and knows each frame's tick; probe frames by scapy."""

import struct
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge
from cocotb.utils import get_sim_time
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether

from liteprobe.cores.formats import IFG, PREAMBLE, PREAMBLE_OCTET, SFD_OCTET, SIGNATURE
from liteprobe.sim.models.receive.port import Symbol

# Source -------------------------------------------------------------------------------------------

def with_fcs(data: bytes) -> bytes:
    """Return a frame with its FCS."""
    return data + zlib.crc32(data).to_bytes(4, "little")


def carrier(octets: bytes, errors: Iterable[int] = ()) -> list[Symbol]:
    """Return symbols of octets as they are, with RX_ER at the given places."""
    wrong = set(errors)
    return [Symbol(True, octet, place in wrong) for place, octet in enumerate(octets)]


def idle(count: int = IFG) -> list[Symbol]:
    """Return octet times without carrier."""
    return [Symbol()] * count


def on_wire(octets: bytes, preamble: int = PREAMBLE, gap: int = IFG, errors: Iterable[int] = ()) -> list[Symbol]:
    """Return symbols of preamble, SFD, ``octets`` (FCS included, if there shall be one) and gap.

    ``errors`` are places of RX_ER, counted from the first octet after the SFD.
    """
    start = bytes([PREAMBLE_OCTET] * preamble + [SFD_OCTET])
    return carrier(start + octets, [len(start) + place for place in errors]) + idle(gap)


class GmiiSource:
    """Drives the receive pins of a GMII, one symbol a clock; idle between calls.

    Parameters
    ----------
    clock, valid, data, error : cocotb handles; pins; they change right after a rising edge, like registers.
    now : called while an SFD octet stands on the pins: what ``sfd_now`` keeps.

    Attributes
    ----------
    symbols : all that was sent, from the first call on.
    sfd_now : ``now()`` by the place of each octet 0xD5 in ``symbols``.
    """

    def __init__(self, clock: Any, valid: Any, data: Any, error: Any, now: Callable[[], Any]) -> None:
        self.clock, self.valid, self.data, self.error, self.now = clock, valid, data, error, now
        self.symbols: list[Symbol] = []
        self.sfd_now: dict[int, Any] = {}
        self.valid.value = self.data.value = self.error.value = 0

    async def send(self, symbols: Iterable[Symbol]) -> None:
        """Send symbols, and leave the wire idle."""
        last = Symbol()
        edge = RisingEdge(self.clock)
        for symbol in [*symbols, Symbol()]:
            await edge
            if symbol != last:
                self.valid.value = symbol.carrier
                self.data.value = symbol.octet
                self.error.value = symbol.error
                last = symbol
            if symbol.carrier and symbol.octet == SFD_OCTET:
                await ReadOnly()
                self.sfd_now[len(self.symbols)] = self.now()
            self.symbols.append(symbol)


# Sink ---------------------------------------------------------------------------------------------

PREAMBLE_AND_SFD = 8


@dataclass
class WireFrame:
    """One assertion of TX_EN.

    Attributes
    ----------
    start : tick of the first preamble octet.
    ticks : octets from there to the end of the FCS.
    octets : all of them, where the sink was asked to look; else empty.
    sfd_now : ``now`` (ns) in the tick of the eighth octet, likewise.
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


# Probe frames -------------------------------------------------------------------------------------

def headers_length(tags: int = 0, version: int = 4) -> int:
    """Return the octets before the UDP payload."""
    return 14 + 4 * tags + (20 if version == 4 else 40) + 8


def probe_frame(
    sequence: int,
    tx_stamp: int,
    length: int = 60,
    stream_id: int = 1,
    tags: int = 0,
    version: int = 4,
) -> bytes:
    """Return a probe frame of ``length`` octets without FCS (of its least length, where that is more).

    ``tags`` VLAN tags (the outer of two is an S-tag); ``version`` of IP, 4 or 6; ``tx_stamp`` in ns.
    """
    payload = struct.pack(">IHIQ", SIGNATURE, stream_id, sequence, tx_stamp)
    payload = payload.ljust(length - headers_length(tags, version), b"\xd5")
    frame = Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02")
    for tag in range(tags):
        frame /= (Dot1AD if tags == 2 and tag == 0 else Dot1Q)(vlan=100 + tag, prio=3)
    frame /= IP(src="10.0.0.1", dst="10.0.0.2") if version == 4 else IPv6(src="2001:db8::1", dst="2001:db8::2")
    return bytes(frame / UDP(sport=50000, dport=50001) / payload)


def other_frame(number: int, length: int = 60) -> bytes:
    """Return a UDP frame that is not a probe, told by ``number``."""
    payload = struct.pack(">I", number).ljust(length - headers_length(), b"\x55")
    return bytes(
        Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02")
        / IP(src="10.0.0.1", dst="10.0.0.2")
        / UDP(sport=1234, dport=1234)
        / payload
    )
