# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""How many packets a second a host takes: a recorded capture, from a file and over UDP, to pcapng and to Parquet.

The sender of the UDP blocks is a process of its own that behaves as a probe's export does: it sends what has not been
freed and no more, and goes back where it is asked to.
"""

import multiprocessing
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from liteprobe.cores.formats import BLOCK_HEADER_WORDS, BLOCK_WORDS, CHANNELS, UNIFIED_DTYPE, UNIFIED_WORDS, Layer3
from liteprobe.host.capture.write.output import Output
from liteprobe.host.capture.write.parquet import HeaderWriter
from liteprobe.host.capture.write.pcapng import PortInterface, PcapngWriter
from liteprobe.host.capture.receive import Receiver, open_socket
from liteprobe.host.capture.ring import ChannelState
from liteprobe.host.capture.session import CaptureSession
from liteprobe.host.capture.sources import LINGER_S, RecordedSource, UdpSource
from liteprobe.host.capture.decode import BLOCK_OCTETS
from liteprobe.sim.bench.capture.blocks import line_rate

RING_BLOCKS = 2800  # 4 MB: the SDRAM of the smallest board.
WINDOW_NS = 200_000
READ, SENT, ASKED = range(3)
BURST = 16
RUNS = 3
FRAME_WORDS = 19  # Of the record of a frame of 60 octets.


@dataclass(frozen=True)
class Speed:
    """Packets of a run, its time (s), blocks that had to be sent again, and the processor time of all that receives (s)."""

    packets: int
    seconds: float
    asked: int = 0
    never_came: int = 0
    processor_s: float = 0.0

    @property
    def rate(self) -> float:
        """Packets a second."""
        return self.packets / self.seconds

    def cores(self, rate: float) -> float:
        """Return how many processor cores ``rate`` packets a second take: others on the machine hardly change it."""
        return self.processor_s / self.packets * rate


@contextmanager
def sink(path: Path) -> Iterator[Any]:
    """Open a file of the kind that its name says."""
    if path.suffix == ".parquet":
        headers = HeaderWriter(path)
        yield headers
        headers.close()
        return
    output = Output(path)
    writer = PcapngWriter(output, [PortInterface("port0"), PortInterface("port1")])
    yield writer
    writer.close()
    output.close()


def run(source: RecordedSource | UdpSource, path: Path) -> tuple[int, float, float]:
    """Take all blocks of a source to a file; return packets, time and processor time."""
    began_s, used_s = time.monotonic(), time.process_time()
    with sink(path) as writer:
        capture = CaptureSession([writer], window_ns=WINDOW_NS)
        for blocks, lengths in source.batches():
            capture.take(blocks, lengths)
        capture.finish()
    return capture.frames, time.monotonic() - began_s, time.process_time() - used_s


def from_file(blocks: Path, path: Path) -> Speed:
    """Take a recording from a file."""
    packets, seconds, used_s = run(RecordedSource(blocks), path)
    return Speed(packets, seconds, processor_s=used_s)


class RemoteRing:
    """What `CaptureRing` is to a capture of one channel, with the sender in another process."""

    def __init__(self, pointers: Any, count: int) -> None:
        self._pointers = pointers.get_obj()
        self._count = count

    def stop(self, wait: object = None) -> None:
        """Do nothing: the recording ends by itself."""

    def states(self) -> list[ChannelState]:
        """Return how it is with channel 0, and that there are no others."""
        none = ChannelState(0, 0, 0, 0, 0)
        read = self._pointers[READ]
        mine = ChannelState(read, self._pointers[SENT], self._count, 0, RING_BLOCKS)
        return [mine] + [none] * (CHANNELS - 1)

    def free(self, channel: int, number: int) -> None:
        """Let blocks be overwritten."""
        self._pointers[READ] = number

    def resend(self, channel: int, number: int) -> None:
        """Go back."""
        self._pointers[ASKED] = number + 1


def send(blocks: Path, port: int, pointers: Any) -> None:
    """Send a recording as a probe does: the other process."""
    table = np.memmap(blocks, np.uint32, "r").reshape(-1, BLOCK_WORDS)
    views = [memoryview(block.data) for block in table]
    shared, sent, count = pointers.get_obj(), 0, len(views)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(("127.0.0.1", port))
        while shared[READ] < count:
            if asked := shared[ASKED]:
                shared[ASKED] = 0
                sent = asked - 1
            end = min(sent + BURST, count, shared[READ] + RING_BLOCKS)
            for view in views[sent:end]:
                sock.send(view)
            if end <= sent:
                time.sleep(0.0002)
            sent = max(sent, end)
            shared[SENT] = sent


def from_network(blocks: Path, path: Path) -> Speed:
    """Take a recording over UDP on this machine, from the first block that comes to the end of the file."""
    context = multiprocessing.get_context("spawn")
    count = blocks.stat().st_size // BLOCK_OCTETS
    pointers = context.Array("q", 3)
    receiver = Receiver([open_socket("127.0.0.1")])
    sender = context.Process(target=send, args=(blocks, receiver.port, pointers), daemon=True)
    try:
        sender.start()
        ring = RemoteRing(pointers, count)
        source = UdpSource(ring, receiver, [0])  # type: ignore[arg-type]
        while not receiver.waiting:
            time.sleep(0.001)
        source.stop()
        packets, seconds, used_s = run(source, path)
        used_s += processor_s(receiver.pid)
    finally:
        receiver.close()
        sender.kill()
        sender.join()
    # The end is only known by a silence.
    return Speed(packets, seconds - LINGER_S, source.order.asked, source.order.never_came, used_s)


def processor_s(pid: int) -> float:
    """Return the processor time that a process has used (s)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def recordings(folder: Path, packets: int) -> tuple[Path, Path]:
    """Write two recordings of frames of 60 octets at line rate: the frames, and their unified headers alone."""
    folder.mkdir(parents=True, exist_ok=True)
    frames, headers = folder / "frames.blocks", folder / "headers.blocks"
    line_rate(packets).tofile(frames)
    line_rate(packets, with_header=True, snap=0).tofile(headers)
    return frames, headers


def of_mix(headers: Path, mix: str) -> Path:
    """Write a recording anew, with other addresses and ports: ``scan``, ``random_ipv4`` or ``random_ipv6``.

    A scan is one source that looks for port 443 of random IPv4 addresses. IPv6 frames have no next header: there is no
    room for one. Where a record goes beyond the last whole block, it stays as it was.
    """
    blocks = np.fromfile(headers, np.uint32).reshape(-1, BLOCK_WORDS)
    words = blocks[:, BLOCK_HEADER_WORDS:].reshape(-1)
    rng = np.random.default_rng(20)
    path = headers.with_name(f"{mix}_{headers.name}")
    if words[2] >> 16 & 0xFFFF:  # Octets that are kept: frames.
        frames = words[: len(words) // FRAME_WORDS * FRAME_WORDS].reshape(-1, FRAME_WORDS).view(np.uint8)
        first, size = {"scan": (46, 6), "random_ipv4": (42, 12), "random_ipv6": (38, 32)}[mix]
        frames[:, first : first + size] = rng.integers(0, 256, (len(frames), size), np.uint8)
        if mix == "random_ipv6":
            frames[:, 28:38] = np.frombuffer(bytes.fromhex("86dd6000000000063b40"), np.uint8)
        if mix == "scan":
            frames[:, 42:46], frames[:, 52:54] = frames[0, 42:46], np.frombuffer((443).to_bytes(2), np.uint8)
            frames[:, 50:52] = rng.integers(0, 256, (len(frames), 2), np.uint8)
        blocks[:, BLOCK_HEADER_WORDS:] = words.reshape(len(blocks), -1)
        blocks.tofile(path)
        return path
    count = len(words) // UNIFIED_WORDS
    table = words[: count * UNIFIED_WORDS].copy().view(UNIFIED_DTYPE)
    octets = 16 if mix == "random_ipv6" else 4
    names = ("destination",) if mix == "scan" else ("source", "destination")
    for name in names:
        table[name][:, :octets] = rng.integers(0, 256, (count, octets), np.uint8)
    for name in ("source_port",) if mix == "scan" else ("source_port", "destination_port"):
        table[name] = rng.integers(1, 1 << 16, count)
    if mix == "scan":
        table["source"], table["destination_port"] = table["source"][0], 443
    if mix == "random_ipv6":
        table["layers"] = table["layers"] & ~np.uint8(3) | int(Layer3.IPV6)
    table["hash"] = rng.integers(1, 1 << 32, count)
    words[: count * UNIFIED_WORDS] = table.view(np.uint32)
    blocks[:, BLOCK_HEADER_WORDS:] = words.reshape(len(blocks), -1)
    blocks.tofile(path)
    return path


def best(measure: Callable[[], Speed]) -> Speed:
    """Return the fastest of three runs: others use this machine, too."""
    return max((measure() for _ in range(RUNS)), key=lambda speed: speed.rate)


def synced(path: Path) -> float:
    """Return how long it takes until a file is on the disk (s)."""
    began_s = time.monotonic()
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return time.monotonic() - began_s
