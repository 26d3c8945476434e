# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Where a probe takes words from this host: by UDP, or by DMA from its memory."""

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

from liteprobe.cores.formats import REPLAY_PORT
from liteprobe.host.capture.receive import SharedMemory
from liteprobe.host.device.link.pcie import Device, DeviceFile
from liteprobe.host.errors import NoProbeError, ProbeError
from liteprobe.host.replay.datagrams import DATAGRAM, DMA_SLOT, Session, Shape
from liteprobe.host.replay.dma_sender import PortAddresses, send_by_dma
from liteprobe.host.replay.flow import Pace
from liteprobe.host.replay.sender import open_sender, send
from liteprobe.host.replay.slots import SLOTS, Fault

DMA_SLOTS_READY = SLOTS // 4  # 16 MB a port, and more than a tenth of a second of a line.

Parts = Sequence[tuple[Session, SharedMemory]]


class Target(Protocol):
    """A way to the rings of a probe; it goes along to the process that sends.

    Attributes
    ----------
    shape : Shape
        Of what carries the words.
    slots : int
        How many of them each port may have ready.
    """

    @property
    def shape(self) -> Shape: ...

    @property
    def slots(self) -> int: ...

    def open(self) -> socket.socket | None:
        """Return the socket that goes along, too, where there is one; NoProbeError where there is no route."""

    def send(self, sock: socket.socket | None, parts: Parts, parent: int) -> None:
        """Send until stopped, or until the parent has gone: the process. ``parts``: of each port session and memory."""

    def error(self, fault: Fault, accepted: int) -> ProbeError | None:
        """Return what to say of a fault of this way after so many words; None: it is none of this way."""


@dataclass(frozen=True)
class UdpTarget:
    """UDP: the probe's address, its UDP port; and how words are sent, the flight that of all ports together.

    ``with_segments``: the kernel cuts large pieces into datagrams, where it can.
    """

    address: str
    port: int = REPLAY_PORT
    pace: Pace = field(default_factory=Pace)
    with_segments: bool = True
    shape: ClassVar[Shape] = DATAGRAM
    slots: ClassVar[int] = SLOTS

    def open(self) -> socket.socket:
        """Return a socket that sends to the probe.

        Raises
        ------
        NoProbeError
            When there is no route to it.
        """
        try:
            return open_sender(self.address, self.port)
        except OSError as error:
            raise NoProbeError(
                f"can't send to {self.address}, UDP port {self.port} ({error.strerror}): check the address and the network"
            ) from None

    def send(self, sock: socket.socket | None, parts: Parts, parent: int) -> None:
        """Send until stopped, or until the parent has gone: the process."""
        assert sock
        ready = [(session, self.slots, memory) for session, memory in parts]
        pace = replace(self.pace, flight=self.pace.flight // len(parts))
        send(sock, ready, pace, self.with_segments, parent)

    def error(self, fault: Fault, accepted: int) -> ProbeError | None:
        """Return what to say of a fault of the network."""
        where = f"{self.address}, UDP port {self.port}"
        if fault == Fault.SILENT:
            return NoProbeError(
                f"nothing answers at {where}: let the firewalls of this host and on the way pass UDP port {self.port} both "
                "ways, and check that the probe's gateware has the part replay (liteprobe info)"
            )
        if fault == Fault.GONE:
            return ProbeError(
                f"the probe has not answered for {self.pace.patience_s:g} s after {accepted} words: check its power "
                "and the cable of its management port; it stops at the underrun"
            )
        if fault == Fault.SOCKET:
            return ProbeError(f"the network to {where} has broken: check the cable and the address, and run again")
        return None


@dataclass(frozen=True)
class DmaTarget:
    """PCIe: the path of the probe's first device, and where the registers of each port are.

    Parameters
    ----------
    path : str
    ports : tuple of PortAddresses
        By number.
    open_device : callable
        From a path to a device; it goes along to the process that sends.
    """

    path: str
    ports: tuple[PortAddresses, ...]
    open_device: Callable[[str], Device] = DeviceFile
    shape: ClassVar[Shape] = DMA_SLOT
    slots: ClassVar[int] = DMA_SLOTS_READY

    def open(self) -> None:
        """Open nothing: the process that sends does."""

    def send(self, sock: socket.socket | None, parts: Parts, parent: int) -> None:
        """Send until stopped, or until the parent has gone: the process."""
        assert sock is None
        ready = [(session, self.slots, memory, self.ports[session.port]) for session, memory in parts]
        send_by_dma(self.path, ready, self.open_device, parent)

    def error(self, fault: Fault, accepted: int) -> ProbeError | None:
        """Return what to say of a fault of the card."""
        if fault == Fault.GONE:
            return ProbeError(
                f"the probe was reset after {accepted} words, or its card is gone: look at it (liteprobe info), and run again"
            )
        return None
