# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Measures how many packets a second a host takes: a recorded capture, from a file and over UDP, to pcapng and to Parquet.

The sender of the UDP blocks is a process of its own that behaves as a probe's export does: it sends what has not been
freed and no more, and goes back where it is asked to.

A sender that doesn't wait is a process of its own on this machine. It sends 16 blocks by one call of the kernel (UDP_SEGMENT), by
the clock, and nothing twice: what the receiver loses is lost.

Beside it, tcpdump and dumpcap write the same frames to a file, each as a person would start it. liteprobe reads the blocks of a
recording, the others the pcapng file that was made of it before, from a file or from a pipe that ``cat`` fills. Time and processor
time are those of the whole command, its start included, without those of ``cat``. Files are written to the page cache.
"""

import multiprocessing
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from liteprobe.cores.formats import BLOCK_HEADER_WORDS, BLOCK_WORDS, CHANNELS, UNIFIED_DTYPE, UNIFIED_WORDS, Layer3
from liteprobe.host.capture.decode import BLOCK_OCTETS
from liteprobe.host.capture.receive import Receiver, open_socket
from liteprobe.host.capture.ring import ChannelState
from liteprobe.host.capture.session import CaptureSession
from liteprobe.host.capture.sources import LINGER_S, Batches, RecordedSource, UdpSource
from liteprobe.host.capture.write.output import Output
from liteprobe.host.capture.write.parquet import HeaderWriter
from liteprobe.host.capture.write.pcapng import PcapngWriter, PortInterface
from liteprobe.sim.drivers.capture.blocks import line_rate
from liteprobe.sim.drivers.frames import stacks

# Host ---------------------------------------------------------------------------------------------

RING_BLOCKS = 2800  # 4 MB: the SDRAM of the smallest board.
WINDOW_NS = 200_000
READ, SENT, ASKED = range(3)
BURST = 16
RUNS = 3
FRAME_WORDS = 19  # Of the record of a frame of 60 octets.
SPAWN = multiprocessing.get_context("spawn")


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
    """Takes the place of `CaptureRing` for a capture of one channel, with the sender in another process."""

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


class _Noting(UdpSource):
    """A source that notes the numbers of the blocks that come."""

    numbers: list[NDArray[np.uint32]]

    def batches(self) -> Batches:
        """Yield what the source does."""
        self.numbers = []
        for blocks, lengths in super().batches():
            if len(blocks):
                self.numbers.append(blocks[:, 0].copy())
            yield blocks, lengths


def over_udp(
    send: Callable[..., None], path: Path, pointers: Any, ring: RemoteRing, output: Path, *more: float
) -> tuple[int, float, float, _Noting]:
    """Take what another process sends on this machine to a file, from the first block that comes to the end."""
    receiver = Receiver([open_socket("127.0.0.1")])
    sender = SPAWN.Process(target=send, args=(path, receiver.port, pointers, *more), daemon=True)
    try:
        sender.start()
        source = _Noting(ring, receiver, [0])  # type: ignore[arg-type]
        while not receiver.waiting:
            time.sleep(0.001)
        source.stop()
        packets, seconds, used_s = run(source, output)
        return packets, seconds, used_s + processor_s(receiver.pid), source
    finally:
        receiver.close()
        sender.kill()
        sender.join()


def from_network(blocks: Path, path: Path) -> Speed:
    """Take a recording over UDP."""
    pointers = SPAWN.Array("q", 3)
    ring = RemoteRing(pointers, blocks.stat().st_size // BLOCK_OCTETS)
    packets, seconds, used_s, source = over_udp(send, blocks, pointers, ring, path)
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


def of_mix(folder: Path, mix: str, count: int) -> tuple[Path, Path]:
    """Write two recordings of frames of 60 octets that come back to back on two lines, and their unified headers alone.

    ``flows``: 1,024 of UDP. ``scan``: one source that looks for port 443 of random IPv4 addresses. ``random_ipv4``,
    ``random_ipv6``: addresses and ports; the latter have no next header, which there is no space for. ``tags``: none to four
    VLAN tags or labels before IPv4. ``kinds``: everything that the parser knows, and what is broken on purpose.
    """
    folder.mkdir(parents=True, exist_ok=True)
    models = None
    if mix in ("tags", "kinds"):
        models = np.array([list(octets) for octets in (_tagged() if mix == "tags" else _kinds())], np.uint8)
    paths = []
    for name, with_header in (("frames", False), ("headers", True)):
        blocks = line_rate(count, with_header=with_header, snap=0 if with_header else 65535, frames=models)
        words = blocks[:, BLOCK_HEADER_WORDS:].reshape(-1)
        size = UNIFIED_WORDS if with_header else FRAME_WORDS
        table = words[: len(words) // size * size].reshape(-1, size)
        number = np.arange(len(table), dtype=np.uint64)
        table[:, :2] = (10**18 + 672 * (number // 2) + 100 * (number % 2)).view(np.uint32).reshape(-1, 2)
        table.view(np.uint8)[:, 15] = number % 2 << 4  # The port.
        if mix in ("scan", "random_ipv4", "random_ipv6"):
            (_change_headers if with_header else _change_frames)(table, mix)
        blocks[:, BLOCK_HEADER_WORDS:] = words.reshape(len(blocks), -1)
        paths.append(folder / f"{mix}_{name}.blocks")
        blocks.tofile(paths[-1])
    return paths[0], paths[1]


def _change_frames(table: NDArray[np.uint32], mix: str) -> None:
    rng, frames = np.random.default_rng(20), table.view(np.uint8)
    first, size = {"scan": (46, 6), "random_ipv4": (42, 12), "random_ipv6": (38, 32)}[mix]
    frames[:, first : first + size] = rng.integers(0, 256, (len(frames), size), np.uint8)
    if mix == "random_ipv6":
        frames[:, 28:38] = np.frombuffer(bytes.fromhex("86dd6000000000063b40"), np.uint8)
    if mix == "scan":
        frames[:, 42:46], frames[:, 52:54] = frames[0, 42:46], np.frombuffer((443).to_bytes(2), np.uint8)
        frames[:, 50:52] = rng.integers(0, 256, (len(frames), 2), np.uint8)


def _change_headers(words: NDArray[np.uint32], mix: str) -> None:
    rng, table = np.random.default_rng(20), words.view(UNIFIED_DTYPE)[:, 0]
    octets = 16 if mix == "random_ipv6" else 4
    for name in ("destination",) if mix == "scan" else ("source", "destination"):
        table[name][:, :octets] = rng.integers(0, 256, (len(table), octets), np.uint8)
    for name in ("source_port",) if mix == "scan" else ("source_port", "destination_port"):
        table[name] = rng.integers(1, 1 << 16, len(table))
    if mix == "scan":
        table["source"], table["destination_port"] = table["source"][0], 443
    if mix == "random_ipv6":
        table["layers"] = table["layers"] & ~np.uint8(3) | int(Layer3.IPV6)
    table["hash"] = rng.integers(1, 1 << 32, len(table))


def _tagged() -> Iterator[bytes]:
    """Yield 1,024 frames of UDP behind none to four tags, or none to four labels."""
    rng = np.random.default_rng(21)
    for number in range(1024):
        count, is_tags = number % 5, number % 2
        tags = b"".join(b"\x81\x00" + int(tci).to_bytes(2) for tci in rng.integers(1, 4095, count))
        labels = b"".join(
            (int(label) << 12 | (k == count - 1) << 8 | 64).to_bytes(4) for k, label in enumerate(rng.integers(16, 1 << 20, count))
        )
        before = (tags if is_tags else b"\x88\x47" + labels if count else b"") + b"\x08\x00" * (is_tags or not count)
        ip = bytes.fromhex("4500002e000000004011 0000 0a000001".replace(" ", "")) + rng.bytes(4)
        yield (bytes.fromhex("020000000002020000000001") + before + ip + rng.bytes(12)).ljust(60, b"\0")[:60]


def _kinds() -> Iterator[bytes]:
    for frame in stacks.fuzz(1024, seed=22):
        yield frame[:60].ljust(60, b"\0")


def table_of(recording: Path, size: int) -> NDArray[np.uint32]:
    """Return the records of a recording whose records have ``size`` words each: as they were written, not decoded."""
    words = np.fromfile(recording, np.uint32).reshape(-1, BLOCK_WORDS)[:, BLOCK_HEADER_WORDS:].reshape(-1)
    return words[: len(words) // size * size].reshape(-1, size)


EPB, EPB_WORDS, ISB = 6, 26, 5


def off_pcapng(path: Path, recording: Path) -> int:
    """Return how many packets of a file are not those of a recording of 60-octet frames, by a reader of its own."""
    wanted, words = table_of(recording, FRAME_WORDS), np.fromfile(path, np.uint32)
    first = 0
    while words[first] != EPB:
        first += int(words[first + 1]) // 4
    end = first + len(wanted) * EPB_WORDS
    found, rest = words[first:end], words[end:]
    if len(found) < end - first or any(kind != ISB for kind in (rest[0], rest[int(rest[1]) // 4])):
        return len(wanted)
    found = found.reshape(-1, EPB_WORDS)
    made = np.zeros_like(found)
    made[:, 0], made[:, [1, -1]], made[:, 2] = EPB, 4 * EPB_WORDS, wanted[:, 3] >> 28
    made[:, 3], made[:, 4], made[:, 5:7], made[:, 7:22] = wanted[:, 1], wanted[:, 0], 60, wanted[:, 4:]
    made[:, 22] = 6 | 4 << 16  # The channel, 0: epb_queue.
    return int(np.count_nonzero((found != made).any(axis=1)))


def off_parquet(path: Path, recording: Path) -> int:
    """Return how many rows are not those of a recording of unified headers: stamps, ports, lengths, kinds, addresses."""
    wanted, rows = table_of(recording, UNIFIED_WORDS).view(UNIFIED_DTYPE)[:, 0], pq.read_table(path)
    if len(rows) != len(wanted):
        return max(len(rows), len(wanted))
    off = rows["stamp"].cast("int64").to_numpy() != wanted["stamp"].astype(np.int64)
    for name, values in (("port", wanted["way"] >> 4), ("length", wanted["length"]), ("ethertype", wanted["ethertype"])):
        off |= rows[name].to_numpy() != values
    is_ip = wanted["layers"] & 3 != Layer3.NONE
    for name in ("source", "destination"):
        texts = rows[name].combine_chunks()
        texts = texts if isinstance(texts, pa.DictionaryArray) else texts.dictionary_encode()
        families = [socket.AF_INET6 if ":" in text else socket.AF_INET for text in texts.dictionary.to_pylist()]
        octets = [socket.inet_pton(*each).ljust(16, b"\0") for each in zip(families, texts.dictionary.to_pylist(), strict=True)]
        place = texts.indices.fill_null(len(octets)).to_numpy()
        known = np.frombuffer(b"".join([*octets, bytes(16)]), np.uint8).reshape(-1, 16)
        there = np.array([*(6 if family == socket.AF_INET6 else 4 for family in families), 0])
        kept = np.where(wanted["layers"] & 3 == Layer3.IPV6, 16, 4)[:, np.newaxis]
        off |= (there[place] > 0) != is_ip
        off |= is_ip & ((there[place] == 6) != (kept[:, 0] == 16))
        off |= is_ip & ((known[place] != wanted[name]) & (np.arange(16) < kept)).any(axis=1)
    return int(np.count_nonzero(off))


def capinfos(path: Path) -> tuple[int, int]:
    """Return the packets of a file and their octets, as Wireshark's capinfos counts them."""
    done = subprocess.run(["capinfos", "-M", "-T", "-r", "-c", "-d", str(path)], capture_output=True, text=True, check=True)
    packets, octets = done.stdout.split()[-2:]
    return int(packets), int(octets)


def best(measure: Callable[[], Speed]) -> Speed:
    """Return the fastest of three runs: others use this machine, too."""
    return max((measure() for _ in range(RUNS)), key=lambda speed: speed.rate)


def synced(path: Path) -> float:
    """Return how long it takes until a file is on the disk (s)."""
    began_s = time.monotonic()
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return time.monotonic() - began_s


# Without a pace -----------------------------------------------------------------------------------

UDP_SEGMENT = 103  # Option of SOL_UDP, Linux; Python has no name for it.
ENDED, STARTED = 2, 3  # Beside SENT: times (ns) of the last block and of the first.
HURRY_S = 120.0


@dataclass(frozen=True)
class Unpaced:
    """Counts what was sent, and its result.

    Parameters
    ----------
    frames, written, whole : frames that were sent; that are in the file; all of whose octets came.
    blocks, came, never_came : blocks that were sent; that came, by their numbers; that the product counts as lost.
    rate : frames a second, as they were sent.
    cores : processor cores that all that receives took.
    """

    frames: int
    written: int
    whole: int
    blocks: int
    came: int
    never_came: int
    rate: float
    cores: float

    @property
    def off(self) -> int:
        """Blocks and frames that are neither there nor counted as lost, or both."""
        return abs(self.blocks - self.came - self.never_came) + abs(self.whole - self.written)


def send_unpaced(path: Path, port: int, shared: Any, blocks_a_second: float) -> None:
    """Send a recording at a rate, whatever becomes of it: the other process."""
    octets = memoryview(path.read_bytes())
    count, pointers = len(octets) // BLOCK_OCTETS, shared.get_obj()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_UDP if hasattr(socket, "SOL_UDP") else 17, UDP_SEGMENT, BLOCK_OCTETS)
        sock.connect(("127.0.0.1", port))
        began_s = time.monotonic()
        pointers[STARTED] = int(1e9 * began_s)
        for first in range(0, count, BURST):
            if (early_s := began_s + first / blocks_a_second - time.monotonic()) > 0:
                time.sleep(early_s)
            end = min(first + BURST, count)
            sock.send(octets[first * BLOCK_OCTETS : end * BLOCK_OCTETS])
            pointers[SENT] = end
        pointers[ENDED] = int(1e9 * time.monotonic())
        time.sleep(HURRY_S)  # Ended by the parent.


def at_rate(path: Path, output: Path, frames_a_second: float, frame_words: int) -> Unpaced:
    """Send a recording of frames of ``frame_words`` words each; take it to a file."""
    count = path.stat().st_size // BLOCK_OCTETS
    payload = BLOCK_WORDS - BLOCK_HEADER_WORDS
    shared = SPAWN.Array("q", 4)
    blocks_a_second = frames_a_second * frame_words / payload
    ring = _Line(shared, count)
    written, seconds, used_s, source = over_udp(send_unpaced, path, shared, ring, output, blocks_a_second)
    sent_s = (shared[ENDED] - shared[STARTED]) / 1e9
    is_there = np.zeros(count, bool)
    is_there[np.concatenate(source.numbers)] = True
    frames = count * payload // frame_words
    first = np.arange(frames) * frame_words
    whole = int(np.count_nonzero(is_there[first // payload] & is_there[(first + frame_words - 1) // payload]))
    came = int(np.count_nonzero(is_there))
    return Unpaced(
        frames, written, whole, count, came, source.order.never_came, frames / sent_s, used_s / (seconds - LINGER_S)
    )


def greatest(measure: Callable[[float], Unpaced], rates: list[float]) -> tuple[list[Unpaced], Unpaced | None]:
    """Return what came at each rate (frames/s, rising) until blocks were lost twice, and the best run without a loss."""
    runs: list[Unpaced] = []
    best: Unpaced | None = None
    for rate in rates:
        for _ in range(2):
            runs.append(measure(rate))
            if not runs[-1].never_came:
                best = runs[-1]
                break
        else:
            break
    return runs, best


# # #


class _Line(RemoteRing):
    """A ring that nobody can free or ask."""

    def free(self, channel: int, number: int) -> None:
        """Do nothing."""

    def resend(self, channel: int, number: int) -> None:
        """Do nothing."""


# Beside other programs ----------------------------------------------------------------------------

PCAP_HEAD, PACKET_HEAD, FRAME = 24, 16, 60  # Octets of a pcap file, and of the frames of the recordings.
SAID = {"liteprobe": r"^([\d,]+) frames", "dumpcap": r"Packets received/dropped on interface .*: (\d+)/0 "}


@dataclass(frozen=True)
class Command:
    """A program that writes frames anew.

    Parameters
    ----------
    name : what the figure is called.
    words : program and arguments.
    source : what it reads.
    """

    name: str
    words: list[str]
    source: Path
    by_pipe: bool
    output: Path


@dataclass(frozen=True)
class Written:
    """Frames that the file holds, time (s), processor time (s) and octets of the file."""

    frames: int
    seconds: float
    processor_s: float
    octets: int


def commands(recording: Path, pcapng: Path, folder: Path) -> list[Command]:
    """Return what is compared; ``pcapng`` has the frames of ``recording``."""
    host = [sys.executable, "-P", "-m", "liteprobe.host.cli", "capture", "--read"]  # As the script that is installed.
    found = []
    for by_pipe in (False, True):
        way = "by_pipe" if by_pipe else "from_file"
        ours, theirs = folder / f"liteprobe_{way}.pcapng", folder / f"tcpdump_{way}.pcap"
        read = "-" if by_pipe else str(recording)
        found.append(Command(f"liteprobe_{way}", [*host, read, "-w", str(ours)], recording, by_pipe, ours))
        words = ["tcpdump", "-r", "-" if by_pipe else str(pcapng), "-w", str(theirs)]
        found.append(Command(f"tcpdump_{way}", words, pcapng, by_pipe, theirs))
    theirs = folder / "dumpcap_by_pipe.pcapng"  # dumpcap reads no files.
    found.append(Command("dumpcap_by_pipe", ["dumpcap", "-i", "-", "-w", str(theirs)], pcapng, True, theirs))
    return found


def is_there(command: Command) -> bool:
    """Return whether the program is installed."""
    return shutil.which(command.words[0]) is not None


def written(command: Command) -> Written:
    """Run a command, and return what it wrote.

    Raises subprocess.CalledProcessError when it fails.
    """
    command.output.unlink(missing_ok=True)
    cat = subprocess.Popen(["cat", str(command.source)], stdout=subprocess.PIPE) if command.by_pipe else None
    with tempfile.TemporaryFile("w+") as said:
        began_s = time.monotonic()
        process = subprocess.Popen(command.words, stdin=cat.stdout if cat else subprocess.DEVNULL, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began_s
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    if cat:
        assert cat.stdout
        cat.stdout.close()
        cat.wait()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command.words, text)
    return Written(_frames(command, text), seconds, used.ru_utime + used.ru_stime, command.output.stat().st_size)


def best_written(measure: Callable[[], Written], runs: int = 3) -> Written:
    """Return the quickest of some runs."""
    return min((measure() for _ in range(runs)), key=lambda each: each.seconds)


# # #


def _frames(command: Command, text: str) -> int:
    """Return how many frames were written: as the program says, or by the size of the file."""
    for program, pattern in SAID.items():
        if command.name.startswith(program):
            found = re.search(pattern, text, re.MULTILINE)
            return int(found[1].replace(",", "")) if found else 0
    return (command.output.stat().st_size - PCAP_HEAD) // (PACKET_HEAD + FRAME)
