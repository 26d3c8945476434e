# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""LiteX's bridge from a serial line to a bus, as a program sees it: over memory, or as a serial port with a probe behind it."""

import os
import pty
import socket
import threading
import tty
from collections.abc import Sequence

from liteprobe.host.device.link.etherbone import READ_WORDS, Reply, Write, decode_reply, encode

HEADER_OCTETS = 6  # Command, words, address.
WRITE, READ = 1, 2
TIMEOUT_S = 60.0  # Nothing gets lost on localhost; a busy machine is slow.


class Bridge:
    """LiteX's Stream2Wishbone, seen from the line: commands in, words out. It obeys LiteX's own client as well.

    Attributes
    ----------
    memory : dict of int to int, word at each byte address that was written.
    commands : list of (command, byte address, words), all that came.
    lost : int, octets of the next reply that get lost.
    late : int, reads of the line that replies come too late for: from then on a read gets the next one of those.
    waits : list of float, how long each read waited that got less than it asked for.
    is_mute : bool, whether nothing is answered.
    timeout : float, how long a read waits.
    """

    def __init__(self) -> None:
        self.memory: dict[int, int] = {}
        self.commands: list[tuple[int, int, int]] = []
        self.lost = self.late = 0
        self.timeout = 0.5
        self.waits: list[float] = []
        self.is_mute = False
        self.is_closed = False
        self._in = b""
        self._out = b""
        self._late_ones: list[bytes] = []

    def load(self, address: int, count: int) -> list[int]:
        """Return words of the bus from ``address`` upwards."""
        return [self.memory.get(at, 0) for at in range(address, address + 4 * count, 4)]

    def store(self, address: int, words: Sequence[int]) -> None:
        """Write words to the bus from ``address`` upwards."""
        self.memory |= {address + 4 * number: word for number, word in enumerate(words)}

    # As pyserial's Serial has it.

    def write(self, data: bytes) -> int:
        """Take octets from the line, and obey each command that is whole."""
        self._in += bytes(data)
        while len(self._in) >= HEADER_OCTETS:
            command, count, address = self._in[0], self._in[1], 4 * int.from_bytes(self._in[2:HEADER_OCTETS], "big")
            end = HEADER_OCTETS + 4 * count * (command == WRITE)
            if len(self._in) < end:
                break
            octets, self._in = self._in[HEADER_OCTETS:end], self._in[end:]
            self.commands.append((command, address, count))
            self._obey(command, address, count, octets)
        return len(data)

    def read(self, size: int) -> bytes:
        """Return octets that go to the line."""
        if self.late:
            self.late -= 1
        elif self._late_ones:
            self._out += self._late_ones.pop(0)
        octets, self._out = self._out[:size], self._out[size:]
        if len(octets) < size:
            self.waits.append(self.timeout)
        return octets

    def reset_input_buffer(self) -> None:
        """Forget what has come and wasn't read."""
        self._out = b""

    def inWaiting(self) -> int:
        """Return how many octets can be read."""
        return len(self._out)

    def close(self) -> None:
        """Close the line."""
        self.is_closed = True

    # # #

    def _obey(self, command: int, address: int, count: int, octets: bytes) -> None:
        assert count > 0  # The bridge would take 0 for 256.
        if command == WRITE:
            self.store(address, [int.from_bytes(octets[at : at + 4], "big") for at in range(0, 4 * count, 4)])
        elif not self.is_mute:
            assert command == READ
            reply = b"".join(word.to_bytes(4, "big") for word in self.load(address, count))
            if self.late or self._late_ones:
                self._late_ones.append(reply)
            else:
                self._out += reply[self.lost :]
                self.lost = 0


class ProbeBridge(Bridge):
    """The bridge of a simulated probe, which is reached by Etherbone.

    On a serial line no lease guards the bus, so what is written here has the lease that the probe itself names.

    ``port``: int, UDP port on localhost.
    """

    def __init__(self, port: int) -> None:
        super().__init__()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.connect(("127.0.0.1", port))
        self._socket.settimeout(TIMEOUT_S)
        self._number = 0

    def load(self, address: int, count: int) -> list[int]:
        """Return words of the probe's bus."""
        found: list[int] = []
        for first in range(0, count, READ_WORDS):
            found += self._read(address + 4 * first, min(READ_WORDS, count - first)).words.tolist()
        return found

    def store(self, address: int, words: Sequence[int]) -> None:
        """Write words to the probe's bus."""
        self._socket.send(encode(0, [], Write(address, words), (self._read(0, 1).lease, 0)))

    def close(self) -> None:
        """Close the line, and the way to the probe."""
        super().close()
        self._socket.close()

    # # #

    def _read(self, address: int, count: int) -> Reply:
        self._number += 1
        self._socket.send(encode(self._number, range(address, address + 4 * count, 4)))
        while True:
            reply = decode_reply(self._socket.recv(2048))
            if reply and reply.identifier == self._number:
                return reply


class SerialPort:
    """A serial port of this machine (a pseudo-terminal) with a bridge at its other end.

    ``path``: str, the device that a program opens.
    """

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._ours, self._theirs = pty.openpty()  # Theirs stays open, so that the next program finds the line, too.
        tty.setraw(self._theirs)
        self.path = os.ttyname(self._theirs)
        self._is_open = True
        self._pump = threading.Thread(target=self._serve, daemon=True)
        self._pump.start()

    def close(self) -> None:
        """Take the port away."""
        self._is_open = False
        os.write(self._theirs, b"\0")  # Wakes the pump.
        self._pump.join()
        os.close(self._ours)
        os.close(self._theirs)

    # # #

    def _serve(self) -> None:
        while self._is_open:
            self._bridge.write(os.read(self._ours, 4096))
            if waiting := self._bridge.inWaiting():
                os.write(self._ours, self._bridge.read(waiting))
