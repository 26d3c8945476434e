# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Drives a ``liteprobe-sim`` process for tests: commands, raw frames, and Etherbone with and without the host's own driver."""

import socket
import struct
import subprocess
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from liteprobe.host.device.link.etherbone import EtherboneLink
from liteprobe.host.probe import Probe

PREAMBLE = bytes([0x55] * 7 + [0xD5])


def frame(content: bytes, preamble: bytes = PREAMBLE) -> bytes:
    """Return the octets of a frame on the pins: preamble, content, right FCS. Nothing is padded."""
    return preamble + content + zlib.crc32(content).to_bytes(4, "little")


class Client:
    """An Etherbone client with a socket of its own. Source: CERN "Etherbone 1.0", 32-bit addresses and data."""

    HEADER = bytes.fromhex("4e6f104400000000")

    def __init__(self, udp_port: int, timeout_s: float = 20.0) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(timeout_s)
        self.socket.connect(("127.0.0.1", udp_port))

    def request(self, address: int, count: int = 1) -> bytes:
        """Return the request to read ``count`` words."""
        addresses = struct.pack(f">{count}I", *range(address, address + 4 * count, 4))
        return self.HEADER + struct.pack(">BBBBI", 0, 0x0F, 0, count, 0) + addresses

    def ask(self, address: int, count: int = 1) -> None:
        """Send the request to read ``count`` words."""
        self.socket.send(self.request(address, count))

    def ask_together(self, requests: Sequence[bytes]) -> None:
        """Send requests in one datagram, as a batch."""
        self.socket.send(b"LPBT" + b"".join(struct.pack(">H", len(request)) + request for request in requests))

    def answer(self) -> list[int]:
        """Return the words of the next answer."""
        payload = self.socket.recv(2048)
        assert payload[:2] == b"\x4e\x6f", payload.hex()
        count = payload[10]
        return list(struct.unpack(f">{count}I", payload[16 : 16 + 4 * count]))

    def read(self, address: int, count: int = 1) -> list[int]:
        """Read ``count`` words from ``address`` on."""
        self.ask(address, count)
        return self.answer()

    def write(self, address: int, words: Sequence[int]) -> None:
        """Write words from ``address`` on; nothing answers."""
        head = struct.pack(">BBBBI", 0, 0x0F, len(words), 0, address)
        self.socket.send(self.HEADER + head + struct.pack(f">{len(words)}I", *words))


class Harness:
    """A running simulated probe.

    Parameters
    ----------
    folder : with ``liteprobe-sim``.
    options : of the command line, each a word.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [str(folder / "liteprobe-sim"), *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.ports = [int(word) for word in self._line().split()[1:]]  # Of a pair, one a probe.
        self.udp_port = self.ports[0]

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"liteprobe-sim has ended with {self.process.wait()}")
        return line.strip()

    def uart(self) -> str:
        """Return the path of the pseudo-terminal; only of a probe with link=uart, and only once."""
        return self._line().split()[1]

    def command(self, line: str) -> str:
        """Send a command and return its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self._line()

    def run(self, ns: int) -> int:
        """Let ``ns`` of simulated time pass; return the time (ns)."""
        return int(self.command(f"run {ns}").split()[1])

    def inject(self, port: int, octets: bytes) -> None:
        """Put raw octets on the receive pins of ``port`` as soon as the line is free."""
        assert self.command(f"inject {port} {octets.hex()}") == "ok"

    def close(self) -> None:
        """End the simulation; its files are complete afterwards."""
        if self.process.poll() is None:
            assert self.process.stdin is not None
            self.process.stdin.write("quit\n")
            self.process.stdin.close()
            self.process.wait(timeout=30)

    def __enter__(self) -> "Harness":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.process.kill()
        self.close()


class LockStepLink(EtherboneLink):
    """A link within this machine to a probe whose time goes on with each reading: no reading is spent on trying the network."""

    def prove(self, address: int) -> None:
        """Do nothing."""


@contextmanager
def probe_of(folder: Path, *options: str) -> Iterator[tuple[Harness, Probe]]:
    """A probe in lock-step whose harness can be told what to do."""
    with (
        Harness(folder, *options) as harness,
        Probe(LockStepLink("127.0.0.1", harness.udp_port), map=folder / "csr.json") as probe,
    ):
        yield harness, probe


@contextmanager
def free_running(folder: Path, wire: str = "loopback") -> Iterator[int]:
    """Run a probe whose time flows by itself; gives its UDP port."""
    command = [str(folder / "liteprobe-sim"), "--wire", wire, "--free-run"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin and process.stdout
    try:
        yield int(process.stdout.readline().removeprefix("listening "))
    finally:
        process.communicate("quit\n", timeout=30)
