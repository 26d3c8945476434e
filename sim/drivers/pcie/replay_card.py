# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A probe in a PCIe slot that replays, behind a stand-in for LitePCIe's driver: slots that it reads from the host's memory.

Source: docs/pcie.md ("Rings"); docs/design/replay.md ("Over PCIe"); ``driver/kernel/main.c`` (LitePCIe 2024.12).

Other processes open its device files, too: over a socket, with the card's memory mapped as the driver's is.
"""

import json
import mmap
import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from liteprobe.cores.formats import DMA_SLOT_BYTES, DMA_SLOTS, map_hash
from liteprobe.host.device.link.dma import IOCTL_DMA_READER
from liteprobe.host.device.link.pcie import Device
from liteprobe.host.base.errors import NoProbeError
from liteprobe.sim.drivers.pcie.fake_card import PATH, RING_BYTES, DriverFile
from liteprobe.sim.drivers.replay.fake_probe import MAGIC, Ring
from liteprobe.sim.models.probe.replay import ReplayModel

# Card ---------------------------------------------------------------------------------------------

PORTS = 2
HEADER = struct.Struct("<4I")
READER_IDLE = 2
ACCESS_TICKS = 2000  # Of the probe's time, that pass with an access to a register.


class ReplayCardProbe(ReplayModel):
    """Registers of a probe that replays what it reads from the host's memory."""

    def __init__(self, rings: dict[int, Ring]) -> None:
        def words(port: int) -> list[int]:
            octets = bytes(rings[port].octets) if port in rings else b""
            return [int(word) for word in np.frombuffer(octets, "<u4")]

        def open_ring(port: int, session: int, lease: int) -> None:
            rings[port] = Ring(session, lease)

        super().__init__(words, open_ring, PORTS)
        registers: dict[str, Any] = dict(self.map["csr_registers"])
        address = max(entry["addr"] + 4 * entry["size"] for entry in registers.values())
        for port in range(PORTS):
            for name in (f"replay_dma_filled{port}", f"replay_dma_taken{port}", f"pcie_dma{port}_reader_enable"):
                registers[name] = {"addr": address, "size": 1, "type": "rw"}
                self._words[address] = (name, 0)
                self.values[name] = READER_IDLE if "enable" in name else 0
                address += 4
        self.map = self.map | {"csr_registers": registers}
        self.values["probe_map_hash"] = map_hash(self.map)

    def count(self, port: int, **values: int) -> None:
        """Set counts of a port."""
        self._count(port, **values)


class ReplayCard:
    """The card and its driver; it reads slots with each access to a register.

    Attributes
    ----------
    rings : of the sessions that were opened.
    memory : rings in the host's memory.
    locked : channels whose reader a program has.
    is_gone : the card was pulled out.
    """

    def __init__(self, folder: Path) -> None:
        self.rings: dict[int, Ring] = {}
        self.probe = ReplayCardProbe(self.rings)
        self.map_file = folder / "csr.json"
        self.map_file.write_text(json.dumps(self.probe.map))
        self.files = [os.memfd_create(f"ring{port}") for port in range(PORTS)]
        for one in self.files:
            os.ftruncate(one, RING_BYTES)
        self.memory = [mmap.mmap(one, RING_BYTES) for one in self.files]
        self.locked: set[int] = set()
        self.is_gone = False
        self._lock = threading.Lock()

    def open(self, path: str) -> "ReplayCardFile":
        """Open the device of a channel, as `DeviceFile` does."""
        channel = int(path.removeprefix(PATH))
        if channel >= PORTS:
            raise NoProbeError(f"can't open {path} (absent)")
        return ReplayCardFile(self, channel)

    @property
    def running(self) -> list[int]:
        """Channels whose reader runs."""
        return [n for n in range(PORTS) if self.probe.values[f"pcie_dma{n}_reader_enable"] & 1]

    def exchange(self, address: int, word: int, is_write: bool) -> int:
        """Write a register, or read it; some time passes."""
        with self._lock:
            if is_write:
                self.probe.write(address, word)
            for channel in self.running:
                while self._read_slot(channel):
                    pass
            self.probe.advance(ACCESS_TICKS)
            return self.probe.read(address)

    def enable(self, channel: int, is_on: bool) -> None:
        """Start a reader or stop it."""
        with self._lock:
            if is_on and channel not in self.running:
                self.probe.values[f"replay_dma_taken{channel}"] = 0
            self.probe.values[f"pcie_dma{channel}_reader_enable"] = 1 if is_on else READER_IDLE

    def reset(self, channel: int, taken: int) -> None:
        """Stop a reader as a reset of the probe does, with garbage in its count."""
        with self._lock:
            self.probe.values |= {f"pcie_dma{channel}_reader_enable": READER_IDLE, f"replay_dma_taken{channel}": taken}

    # # #

    def _read_slot(self, channel: int) -> bool:
        """Read a slot, if one is filled and its words find room in the ring; return whether it was."""
        values, ring = self.probe.values, self.rings.get(channel)
        taken = values[f"replay_dma_taken{channel}"]
        if taken == values[f"replay_dma_filled{channel}"]:
            return False
        at = taken % DMA_SLOTS * DMA_SLOT_BYTES
        slot = self.memory[channel][at : at + DMA_SLOT_BYTES]
        first, second, position, count = HEADER.unpack_from(slot)
        strange = values[f"port{channel}_replay_strange"]
        if first != MAGIC << 16 | channel or ring is None or second != ring.session << 16 | ring.lease:
            self.probe.count(channel, strange=strange + 1)
        else:
            assert position == ring.accepted and 1 <= count <= DMA_SLOT_BYTES // 4 - 4
            ring.drain(time.monotonic())
            if count > ring.words - (ring.accepted - ring.freed):
                return False
            ring.octets += slot[HEADER.size : HEADER.size + 4 * count]
            ring.taken += 1
            self.probe.count(channel, accepted=ring.accepted, datagrams=ring.taken)
        values[f"replay_dma_taken{channel}"] = taken + 1
        return True


class ReplayCardFile(DriverFile):
    """A device file of a card that replays."""

    dma, place = IOCTL_DMA_READER, 0

    def map(self, length: int, offset: int, is_writable: bool = False) -> memoryview:
        """Return the memory of the ring to the probe."""
        assert (length, offset, is_writable) == (RING_BYTES, 0, True)
        return memoryview(self.card.memory[self.channel])


# Server -------------------------------------------------------------------------------------------

REQUEST = struct.Struct("<I")
MAP = 0  # In the place of an ioctl's number.
MOST = 256  # Octets of a message.


class SocketDevice:
    """A device file, as `DeviceFile` is one; it is closed when its process ends, however it does."""

    def __init__(self, server: str, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()  # The thread of the lease uses it, too.
        self._socket.connect(server)
        self._socket.send(path.encode())
        if error := self._socket.recv(MOST)[1:]:
            raise NoProbeError(error.decode())

    def ioctl(self, request: int, argument: bytearray) -> None:
        """Exchange ``argument`` with the card."""
        with self._lock:
            self._socket.send(REQUEST.pack(request) + argument)
            answer = self._socket.recv(MOST)
        if number := REQUEST.unpack_from(answer)[0]:
            raise OSError(number, "refused")
        argument[:] = answer[REQUEST.size :]

    def map(self, length: int, offset: int, is_writable: bool = False) -> memoryview:
        """Return the ring's memory."""
        assert (length, offset, is_writable) == (RING_BYTES, 0, True)
        self._socket.send(REQUEST.pack(MAP))
        _, files, _, _ = socket.recv_fds(self._socket, MOST, 1)
        return memoryview(mmap.mmap(files[0], length))

    def close(self) -> None:
        """Close it."""
        self._socket.close()


class CardServer:
    """Lets processes open the devices of a card; a context manager.

    ``open_device``: from a path to a device, in any process.
    """

    def __init__(self, card: ReplayCard, folder: Path) -> None:
        self._card = card
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.bind(str(folder / "card"))
        self._socket.listen()
        self.open_device: Callable[[str], Device] = partial(SocketDevice, str(folder / "card"))
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> "CardServer":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    # # #

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with peer:
            try:
                file = self._card.open(peer.recv(MOST).decode())
            except NoProbeError as error:
                peer.send(b"!" + str(error).encode())
                return
            peer.send(b".")
            try:
                while message := peer.recv(MOST):
                    (request,), argument = REQUEST.unpack_from(message), bytearray(message[REQUEST.size :])
                    if request == MAP:
                        socket.send_fds(peer, [b"."], [self._card.files[file.channel]])
                        continue
                    try:
                        file.ioctl(request, argument)
                        peer.send(REQUEST.pack(0) + argument)
                    except OSError as error:
                        peer.send(REQUEST.pack(error.errno or 1))
            except ConnectionError:
                pass
            finally:
                file.close()
