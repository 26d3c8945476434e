# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Plays frames through a wire of the harness, in both directions at once, and reads the truth of it."""

import random
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from liteprobe.sim.drivers.frames import truth
from liteprobe.sim.drivers.system.harness import Harness, frame

SIGNATURE = b"LPRO"


def probe_content(sequence: int, length: int, tags: int = 0) -> bytes:
    """A probe frame over IPv4 without FCS, from MACs that nobody has."""
    ethernet = bytes.fromhex("020000000002 020000000001") + bytes.fromhex("81000001") * tags + b"\x08\x00"
    ip = bytes.fromhex("4500") + (length - 14 - 4 * tags).to_bytes(2, "big") + bytes(16)
    payload = SIGNATURE + b"\x00\x01" + sequence.to_bytes(4, "big") + bytes(8)
    return (ethernet + ip + bytes(8) + payload).ljust(length, b"\xa5")


def traffic(seed: int, count: int, lengths: list[int], idle_ns: int) -> list[tuple[bytes, int]]:
    """Frames and the pause that follows each (ns); with ``idle_ns`` 0 they are back to back."""
    generator = random.Random(seed)
    frames = []
    for sequence in range(count):
        content = probe_content(sequence, generator.choice(lengths), sequence % 3)
        frames.append((frame(content), generator.randrange(idle_ns) if idle_ns and generator.random() < 0.7 else 0))
    return frames


def play(folder: Path, spec: str, frames: list[tuple[bytes, int]], files: Path, *options: str) -> NDArray[np.void]:
    """Play frames through a wire in both directions; return the rows of truth."""
    path = files / "truth"
    with Harness(folder, "--wire", spec, "--truth", str(path), "--pcap", str(files / "pins"), *options) as harness:
        for octets, pause_ns in frames:
            harness.inject(2, octets)
            if pause_ns:
                harness.run(pause_ns)
        harness.run(8 * sum(len(octets) + 12 for octets, _ in frames) + 3_000_000)
    return truth.read_truth(path)
