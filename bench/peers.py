# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Programs of others that send, on a virtual link between two network namespaces, as its other end sees them."""

import os
import shutil
import struct
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import LINE_RATE_BPS, MIN_LENGTH, OVERHEAD
from liteprobe.sim.drivers.frames.tshark import write_pcap

PACKAGES = {"trafgen": "netsniff-ng", "tcpreplay": "tcpreplay", "tcpdump": "tcpdump", "ip": "iproute2"}
NAMES = ("lpsend", "lpsee")
SETTLE_S = 1.0
SEEN_OCTETS = 64  # Of each frame.
FRACTIONS = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}  # Nanoseconds of a unit, by the magic of a pcap.


class Read(NamedTuple):
    """A packet of a pcap: its time (ns), its octets that the file has, its octets on the wire."""

    time_ns: int
    octets: bytes
    length: int


def read(path: Path) -> list[Read]:
    """Return the packets of a little-endian pcap, by their times: read apart from the host's reader."""
    data, at, found = path.read_bytes(), 24, []
    unit = FRACTIONS[struct.unpack_from("<I", data)[0]]
    while at < len(data):
        second, part, kept, length = struct.unpack_from("<IIII", data, at)
        found.append(Read(second * 10**9 + part * unit, data[at + 16 : at + 16 + kept], max(length, MIN_LENGTH)))
        at += 16 + kept
    return sorted(found, key=lambda one: one.time_ns)


class Seen(NamedTuple):
    """Holds the result of a request.

    Attributes
    ----------
    frames : int
        That the other end saw.
    utilisation : float
        Of a line of 1 Gb/s, from the first to the last one.
    error_ns : array, shape (frames - 1,)
        How far each interval is from the one that was asked for; empty where none was.
    """

    frames: int
    utilisation: float
    error_ns: NDArray[np.int64]


def missing(tools: Iterable[str] = PACKAGES) -> list[str]:
    """Return the Debian packages of ``tools`` that are missing, or what else is."""
    found = [PACKAGES[tool] for tool in tools if shutil.which(tool) is None]
    return found if os.geteuid() == 0 else [*found, "the rights of root, for network namespaces"]


@contextmanager
def link() -> Iterator[tuple[str, str]]:
    """Join two namespaces of our own by a virtual link; its ends have their names."""
    first, second = NAMES
    try:
        for name in NAMES:
            _run("ip", "netns", "add", name)
        _run("ip", "link", "add", first, "netns", first, "type", "veth", "peer", "name", second, "netns", second)
        for name in NAMES:
            _run("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
            _run("ip", "-n", name, "link", "set", name, "up")
        yield first, second
    finally:
        for name in NAMES:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def watched(folder: Path, command: Callable[[Path, str], list[str]], given: Path) -> Path:
    """Let a program send into a link of its own, and return the capture of its other end: pcap, nanoseconds, 64 octets.

    ``command`` gives what is run, from ``given`` and the interface.
    """
    got = folder / "seen.pcap"
    with link() as (sender, receiver):
        capture = ["tcpdump", "-i", receiver, "-w", str(got), "-s", str(SEEN_OCTETS), "-B", "262144"]
        watching = subprocess.Popen(
            ["ip", "netns", "exec", receiver, *capture, "--time-stamp-precision=nano", "-j", "host"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(SETTLE_S)
        _run("ip", "netns", "exec", sender, *command(given, sender))
        time.sleep(SETTLE_S)
        watching.terminate()
        watching.wait()
    return got


def seen(folder: Path, command: Callable[[Path, str], list[str]], frame: bytes, interval_ns: int | None) -> Seen:
    """Let a program send ``frame`` again and again, and return what the other end of a link of its own saw.

    ``command`` gives what is run, from a pcap with the frame and the interface.
    """
    given = folder / "frame.pcap"
    write_pcap(given, [frame])
    stamps = np.array([one.time_ns for one in read(watched(folder, command, given))], np.int64)
    gaps = np.diff(stamps)
    lasts_ns = max(int(stamps[-1] - stamps[0]), 1) if len(stamps) else 1
    line_ns = 8 * (len(frame) + OVERHEAD) * 10**9 / LINE_RATE_BPS
    error = np.abs(gaps - interval_ns) if interval_ns is not None else gaps[:0]
    return Seen(len(stamps), len(gaps) * line_ns / lasts_ns, error)


def trafgen(frame: bytes, count: int, interval_ns: int | None) -> Callable[[Path, str], list[str]]:
    """Return how trafgen sends; one process, as with a gap it has to."""

    def command(given: Path, interface: str) -> list[str]:
        program = given.with_suffix(".cfg")
        program.write_text("{ " + ", ".join(f"0x{octet:02x}" for octet in frame) + " }\n", encoding="utf-8")
        pace = [] if interval_ns is None else ["-t", f"{interval_ns}ns"]
        return ["trafgen", "-o", interface, "-i", str(program), "-n", str(count), "-P", "1", "-q", *pace]

    return command


def tcpreplay(frame: bytes, count: int, interval_ns: int | None) -> Callable[[Path, str], list[str]]:
    """Return how tcpreplay sends."""

    def command(given: Path, interface: str) -> list[str]:
        pace = "--topspeed" if interval_ns is None else f"--pps={10**9 / interval_ns:.0f}"
        return ["tcpreplay", "-q", "-K", "-i", interface, f"--loop={count}", pace, str(given)]

    return command


def tcpreplay_file(given: Path, interface: str) -> list[str]:
    """Return how tcpreplay sends a file at its times."""
    return ["tcpreplay", "-q", "-K", "-i", interface, str(given)]


# # #


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:6])}: {done.stderr.strip()[-300:]}")
