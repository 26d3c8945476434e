# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends what is ready for all ports by LitePCIe's DMA readers: into rings of this machine's memory, which the probe reads.

Nothing gets lost or reordered on this way, and a probe without space leaves slots in the ring: there is nothing to send again.
Source: docs/design/replay.md ("Over PCIe"); docs/pcie.md ("Rings").
"""

import contextlib
import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from liteprobe.cores.formats import DMA_SLOTS, StatusFlag, TransmitState
from liteprobe.host.base.errors import NoProbeError, ProbeError
from liteprobe.host.device.link.dma import ENABLED, DmaDevice, device_of_channel, wrong_channel
from liteprobe.host.device.link.pcie import Device, DeviceFile, PcieLink
from liteprobe.host.device.registers import Registers
from liteprobe.host.replay.slots import (
    DMA_SLOT,
    POSITIONS,
    SLOTS,
    Cell,
    Fault,
    Parts,
    ReplaySession,
    Shape,
    Slots,
    taken,
)

DMA_SLOTS_READY = SLOTS // 4  # 16 MB a port, and more than a tenth of a second of a line.
WAIT_S = 0.0005  # The ring lasts 8 ms of a full line.
COUNTS = ("accepted", "repeated", "early", "strange", "underruns", "frames")


@dataclass(frozen=True)
class PortAddresses:
    """Addresses of the registers of a port that replays, and of its DMA reader: those that are looked at, and two others."""

    looked_at: dict[str, int]
    filled: int
    enable: int

    @classmethod
    def of(cls, registers: Registers, port: int) -> "PortAddresses":
        """Return those of a probe; UsageError where it has none."""
        names = {name: f"port{port}_replay_{name}" for name in COUNTS}
        names |= {"taken": f"replay_dma_taken{port}", "owner": "probe_lease_owner", "state": f"port{port}_tx_state"}
        looked_at = {name: registers.register(full).address for name, full in names.items()}
        others = (f"replay_dma_filled{port}", f"pcie_dma{port}_reader_enable")
        return cls(looked_at, *(registers.register(name).address for name in others))


class DmaFlow:
    """The words of one port on their way.

    Raises ProbeError when another program has the ring, or the device is another channel's; NoProbeError when the
    device is gone.

    Parameters
    ----------
    slots : Slots
        Of shape DMA_SLOT.
    device : Device
        Of the port's channel, open.
    name : str
        Of the device, for errors.
    """

    def __init__(self, slots: Slots, session: ReplaySession, device: Device, name: str, at: PortAddresses) -> None:
        self.slots, self.session, self._at = slots, session, at
        self._cells = slots.cells
        self._link = PcieLink(device, name)
        self._dma = DmaDevice(device, name, is_reader=True)
        if not self._dma.lock():
            raise ProbeError(f"another program streams to {name}: end it (fuser {name})")
        self._ring = self._dma.map()
        self._filled = self._taken = self._accepted = 0
        self._is_starved = False
        self._link.post(at.filled, [0])
        self._dma.enable(True)
        if not self._link.read(at.enable)[0] & ENABLED:
            raise wrong_channel(name, session.port)
        self._strange = int(self._link.read(at.looked_at["strange"])[0])

    def step(self) -> bool:
        """Look how far the probe is, and fill slots that are free; return whether there were any to fill."""
        if self._cells[Cell.FAULT]:
            return False
        if self._cells[Cell.ERROR]:
            self._cells[Cell.FAULT] = Fault.PREPARATION
            return False
        self._look()
        return not self._cells[Cell.FAULT] and self._fill()

    def close(self) -> None:
        """Stop the reader, and let the device go."""
        self._dma.close()

    # # #

    def _look(self) -> None:
        cells = self._cells
        words = self._link.read_scattered(list(self._at.looked_at.values())).tolist()
        now = dict(zip(self._at.looked_at, words, strict=True))
        taken, gain = (now["taken"] - self._taken) % POSITIONS, (now["accepted"] - self._accepted) % POSITIONS
        cells[Cell.ANSWERS] += 1
        if taken > self._filled - self._taken:
            cells[Cell.FAULT] = Fault.GONE
        elif now["strange"] != self._strange or gain >= POSITIONS // 2:
            is_ours = now["owner"] & 0xFFFF == self.session.lease or not self.session.lease
            cells[Cell.FAULT] = Fault.SESSION if is_ours else Fault.LEASE
        elif (
            self._accepted + gain > min(self._filled * DMA_SLOT.words, cells[Cell.WORDS])
            or now["repeated"]
            or now["early"]
        ):
            cells[Cell.FAULT] = Fault.BROKEN
        else:
            self._taken += taken
            self._accepted += gain
            cells[Cell.ACCEPTED] = self._accepted
            cells[Cell.UNDERRUNS], cells[Cell.FRAMES] = now["underruns"], now["frames"]
            is_running, is_dry = now["state"] == TransmitState.RUNNING, now["underruns"] > 0
            cells[Cell.FLAGS] = StatusFlag.RUNNING * is_running | StatusFlag.UNDERRUN * is_dry

    def _fill(self) -> bool:
        cells, words = self._cells, self.slots.words
        ready, free = cells[Cell.WRITTEN] - self._filled, DMA_SLOTS - (self._filled - self._taken)
        is_starved = not ready and free == DMA_SLOTS and not cells[Cell.IS_ALL]
        if is_starved and not self._is_starved and self._filled:
            cells[Cell.STARVED] += 1
        self._is_starved = is_starved
        count = min(ready, free)
        for _ in range(count):
            self._ring[self._filled % DMA_SLOTS] = words[self._filled % self.slots.count]
            self._filled += 1
        if count:
            self._link.post(self._at.filled, [self._filled % POSITIONS])
            cells[Cell.FREED] = self._filled
            cells[Cell.SENT] += count
        return count > 0


def run(flows: Sequence[DmaFlow], is_wanted: Callable[[], bool] = lambda: True) -> None:
    """Send, until every flow is stopped or it is not wanted any more."""
    while not all(flow.slots.cells[Cell.STOP] for flow in flows) and is_wanted():
        has_sent = False
        for flow in flows:
            if flow.slots.cells[Cell.STOP]:
                continue
            try:
                has_sent |= flow.step()
            except NoProbeError as error:
                flow.slots.fail(str(error))
                flow.slots.cells[Cell.FAULT] = Fault.DEVICE
        if not has_sent:
            time.sleep(WAIT_S)


@dataclass(frozen=True)
class DmaTarget:
    """PCIe: the path of the probe's first device, and where the registers of each port are."""

    path: str
    ports: tuple[PortAddresses, ...]  # By number.
    #: From a path to a device; it goes along to the process that sends.
    open_device: Callable[[str], Device] = DeviceFile
    shape: ClassVar[Shape] = DMA_SLOT
    slots: ClassVar[int] = DMA_SLOTS_READY

    def open(self) -> None:
        """Open nothing: the process that sends does."""

    def send(self, sock: socket.socket | None, parts: Parts, parent: int) -> None:
        """Send until stopped, or until the parent has gone: the process."""
        assert sock is None
        with taken(parts, self.shape) as all_slots:
            self._send(all_slots, [session for session, _ in parts], lambda: os.getppid() == parent)

    def error(self, fault: Fault, accepted: int) -> ProbeError | None:
        """Return what to say of a fault of the card."""
        if fault == Fault.GONE:
            return ProbeError(
                f"the probe was reset after {accepted} words, or its card is gone: look at it (liteprobe info), and run again"
            )
        return None

    # # #

    def _send(
        self, all_slots: Sequence[Slots], sessions: Sequence[ReplaySession], is_wanted: Callable[[], bool]
    ) -> None:
        flows: list[DmaFlow] = []
        with contextlib.ExitStack() as stack:
            for slots, session in zip(all_slots, sessions, strict=True):
                name = device_of_channel(self.path, session.port)
                try:
                    device = self.open_device(name)
                    stack.callback(device.close)
                    flows.append(DmaFlow(slots, session, device, name, self.ports[session.port]))
                    stack.callback(flows[-1].close)
                except ProbeError as error:
                    slots.fail(str(error))
                    slots.cells[Cell.FAULT] = Fault.DEVICE
            while not flows and not all(slots.cells[Cell.STOP] for slots in all_slots) and is_wanted():
                time.sleep(WAIT_S)
            run(flows, is_wanted)
