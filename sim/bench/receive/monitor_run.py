# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Plays frames into two ports that monitor or measure, compiled by Verilator, and reads what comes out."""

import struct
import subprocess
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import IFG, TICK_NS, PREAMBLE_OCTET, SFD_OCTET
from liteprobe.sim.bench.tools.compiled import compiled_program
from liteprobe.sim.bench.receive.monitor_module import counters, write_verilog

MAIN = Path(__file__).with_name("monitor_run.cpp")

PORTS = 2
QUIET_TICKS = 20  # Before the first frame.
NO_ERROR = 0xFFFFFFFF
PREAMBLE = bytes([PREAMBLE_OCTET] * 7 + [SFD_OCTET])

MEASURED_DTYPE = np.dtype(
    [
        ("stamp", "<u8"),
        ("tx_stamp", "<u8"),
        ("sequence", "<u4"),
        ("length", "<u2"),
        ("flags", "<u2"),
        ("stream_id", "<u2"),
        ("is", "<u2"),  # Bit 0: a probe; bit 1: it passed; bit 2: it is bare.
        ("cycle", "<u4"),
        ("bit_errors", "<u4"),
    ]
)
SEEN_DTYPE = np.dtype([("length", "<u4"), ("cycle", "<u4")])
CLASSIFIED = 1 << 31
HEADER_OCTETS = 112  # Words 4 to 31 of a unified header.


@dataclass(frozen=True)
class Sent:
    """A frame on the wire: its octets without FCS, idle octets before its preamble, and what is wrong with it."""

    frame: bytes
    gap: int = IFG
    bad_fcs: bool = False
    error_at: int = NO_ERROR
    """Octet of the frame that comes with RX_ER."""

    def octets(self) -> bytes:
        """Return what is on the pins."""
        fcs = zlib.crc32(self.frame) ^ self.bad_fcs
        return PREAMBLE + self.frame + fcs.to_bytes(4, "little")


@dataclass(frozen=True)
class Kept:
    """A descriptor, and the words that came with it."""

    head: bytes
    hash: int
    has_header: bool
    lost: bool
    skipped: bool
    header: bytes
    data: bytes


@dataclass(frozen=True)
class PortRun:
    """What came out of a port."""

    seen: NDArray[np.void]
    measured: NDArray[np.void]
    kept: list[Kept]
    management: list[bytes]
    counters: dict[str, int]


@cache
def build(with_fields: bool, with_hash: bool) -> Path:
    """Return the executable, compiled if need be."""
    return compiled_program("monitor_bench", partial(write_verilog, with_fields=with_fields, with_hash=with_hash), MAIN)


@cache
def layouts(with_fields: bool) -> list[dict[str, tuple[int, int]]]:
    """Return where each counter of each port is."""
    return list(counters(with_fields))


def stamps(sent: Sequence[Sent]) -> list[int]:
    """Return when the SFD of each frame stands on the pins (ns)."""
    found, tick = [], QUIET_TICKS
    for one in sent:
        tick += one.gap
        found.append(TICK_NS * (tick + len(PREAMBLE) - 1))
        tick += len(one.octets())
    return found


def wire(sent: Sequence[Sent]) -> bytes:
    """Return the file that the bench plays."""
    parts = []
    for one in sent:
        octets = one.octets()
        error_at = one.error_at if one.error_at == NO_ERROR else len(PREAMBLE) + one.error_at
        parts.append(struct.pack("<III", one.gap, len(octets), error_at) + octets)
    return b"".join(parts)


def kept(octets: bytes) -> Iterator[Kept]:
    """Yield the records of a port."""
    at = 0
    while at < len(octets):
        head, (flow, bits, words) = octets[at : at + 16], struct.unpack_from("<III", octets, at + 16)
        at += 28
        has_header, lost, skipped = (bool(bits >> bit & 1) for bit in range(3))
        header = octets[at : at + HEADER_OCTETS * (has_header and not skipped)]
        at += len(header)
        data = octets[at : at + 4 * words * (not skipped)]
        at += len(data)
        yield Kept(head, flow, has_header, lost, skipped, header, data)


def frames_of(words: NDArray[np.uint32]) -> list[bytes]:
    """Return the frames that went to management."""
    frames, octets = [], b""
    for data, marks in words.reshape(-1, 2).tolist():
        octets += struct.pack("<I", data)
        if marks >> 8:
            frames.append(octets[: len(octets) - 4 + (marks & 15).bit_length()])
            octets = b""
    return frames


@dataclass(frozen=True)
class Reader:
    """How the reader of a port behaves."""

    stall: int = 0
    """Of 256 cycles, those in which it takes nothing."""
    skip: int = 0
    """Of 256 records, those of which it takes the descriptor alone."""
    pause: int = 0
    """Cycles of each stretch in which it takes nothing at all; 0 for none."""


ALWAYS = Reader()
AS_THEY_ARE: Mapping[str, int] = MappingProxyType({})


def run(
    sent: Sequence[Sequence[Sent]],
    reader: Reader = ALWAYS,
    settings: Mapping[str, int] = AS_THEY_ARE,
    with_fields: bool = False,
    with_hash: bool = True,
) -> list[PortRun]:
    """Play frames into each port and return what came out.

    Parameters
    ----------
    sent : of each port.
    reader : of both.
    settings : by name, of both ports; ``table<n>`` are entries of the channel table, ``place<n>`` of the places of stamps.
    with_fields : both ports check fills and take stamps from fields, and port 1 only measures.
    with_hash : they hash frames.
    """
    executable = build(with_fields, with_hash)
    with TemporaryDirectory(dir=executable.parent) as name:
        folder = Path(name)
        for port in range(PORTS):
            (folder / f"wire{port}").write_bytes(wire(sent[port]))
        words = {"snap_length": 0xFFFF, "enable": 1, **settings}
        behaviour = [str(reader.stall), str(reader.skip), str(reader.pause)]
        command = [str(executable), name, *behaviour, *(f"{key}={value}" for key, value in words.items())]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the bench ended with {done.returncode}: {done.stderr}")
        found = []
        for port, line in enumerate(done.stdout.splitlines()):
            snapshot = list(map(int, line.split()[1:]))
            found.append(
                PortRun(
                    np.fromfile(folder / f"seen{port}", SEEN_DTYPE),
                    np.fromfile(folder / f"measured{port}", MEASURED_DTYPE),
                    list(kept((folder / f"records{port}").read_bytes())),
                    frames_of(np.fromfile(folder / f"management{port}", np.uint32)),
                    {
                        name: sum(snapshot[first + word] << 32 * (words - 1 - word) for word in range(words))
                        for name, (first, words) in layouts(with_fields)[port].items()
                    },
                )
            )
    assert len(found) == PORTS
    return found
