# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Speaks UARTBone: the probe's bus over a serial line, as LiteX's Stream2Wishbone has it.

Stands alone: each kind of link is a file, and this one needs pyserial.
"""

import threading
from collections.abc import Sequence

import numpy as np
import serial

from liteprobe.host.base.errors import NoProbeError
from liteprobe.host.device.link.base import Link, Words

DEFAULT_BAUD = 115200
COMMAND_WRITE = 0x01  # Burst, address incremented a word each.
COMMAND_READ = 0x02
READ_WORDS = 255  # The count is an octet.
WRITE_WORDS = 64
REPLY_TIMEOUT_S = 0.5
BRIDGE_TIMEOUT_S = 0.1  # The bridge drops a command that stands still for this long.
QUIET_S = 1.5 * BRIDGE_TIMEOUT_S
DRAINED = 4096  # Octets that are taken at once while the line falls silent.
TRIES = 8


def encode(command: int, address: int, count: int) -> bytes:
    """Return the six octets of a command on ``count`` words from byte address ``address``."""
    # On the line addresses count words.
    return bytes([command, count]) + (address // 4).to_bytes(4, "big")


def open_line(device: str, baud: int) -> serial.Serial:
    """Open a serial device; raises NoProbeError when there is no such device, or no right to open it."""
    try:
        return serial.Serial(device, baud, timeout=REPLY_TIMEOUT_S)
    except (OSError, ValueError) as error:
        raise NoProbeError(
            f"can't open {device} at {baud} baud ({error}): check cable, name (ls /dev/ttyUSB*) and group (dialout)"
        ) from None


class UARTLink(Link):
    """A probe behind a serial line."""

    look_ns = 100e6
    is_in_band = False

    def __init__(self, line: serial.Serial, name: str) -> None:
        self._line = line
        self._name = name
        self._lock = threading.RLock()  # A beat of the lease may come from another thread.

    def read(self, address: int, count: int = 1) -> Words:
        bursts = [
            self._read_burst(address + 4 * first, min(READ_WORDS, count - first))
            for first in range(0, count, READ_WORDS)
        ]
        return np.concatenate(bursts) if bursts else np.empty(0, dtype=np.uint32)

    def read_scattered(self, addresses: Sequence[int]) -> Words:
        """Return the words at ``addresses``, in their order; neighbours go in one burst."""
        words: list[Words] = []
        first = 0
        for last in range(1, len(addresses) + 1):
            if last == len(addresses) or addresses[last] != addresses[last - 1] + 4:
                words.append(self.read(addresses[first], last - first))
                first = last
        return np.concatenate(words) if words else np.empty(0, dtype=np.uint32)

    def write(self, address: int, words: Sequence[int]) -> Words:
        with self._lock:
            self.post(address, words)
            return self.read(address, len(words))

    def post(self, address: int, words: Sequence[int]) -> None:
        for first in range(0, len(words), WRITE_WORDS):
            burst = words[first : first + WRITE_WORDS]
            command = encode(COMMAND_WRITE, address + 4 * first, len(burst))
            with self._lock:
                self._send(command + np.asarray(burst, dtype=">u4").tobytes())

    def close(self) -> None:
        self._line.close()

    # # #

    def _read_burst(self, address: int, count: int) -> Words:
        with self._lock:
            for number in range(TRIES):
                self._line.reset_input_buffer()
                self._send(encode(COMMAND_READ, address, count))
                octets = self._line.read(4 * count)
                if number or len(octets) < 4 * count:
                    # Octets got lost: the bridge drops its half command. Or the reply is late: then it, and those to the tries
                    # before, come now, and must not be taken for replies to the next command, for they don't say of what they are.
                    self._fall_silent()
                if len(octets) == 4 * count:
                    return np.frombuffer(octets, dtype=">u4").astype(np.uint32)
        raise NoProbeError(
            f"no probe answers on {self._name}: check power, baud rate (?baud=), "
            f"and that its bitstream is loaded (liteprobe build BOARD --load)"
        )

    def _fall_silent(self) -> None:
        """Throw away what comes, until nothing has come for a while."""
        usual, self._line.timeout = self._line.timeout, QUIET_S
        while self._line.read(DRAINED):
            pass
        self._line.timeout = usual

    def _send(self, octets: bytes) -> None:
        try:
            self._line.write(octets)
        except OSError as error:
            raise NoProbeError(f"{self._name} is gone ({error}): plug it in again") from None
