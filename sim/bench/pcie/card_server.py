# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Device files of a card that other processes open, too: over a socket, with the card's memory mapped as the driver's is."""

import mmap
import socket
import struct
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from liteprobe.host.device.link.pcie import Device
from liteprobe.host.errors import NoProbeError
from liteprobe.sim.bench.pcie.replay_card import RING_BYTES, ReplayCard

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

    Attributes
    ----------
    open_device : callable
        From a path to a device, in any process.
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
