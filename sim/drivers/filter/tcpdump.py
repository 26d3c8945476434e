# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""tcpdump as a witness of which frames an expression holds for, where it is installed."""

import getpass
import shutil
import struct
import subprocess
from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

NANOSECONDS, SNAP_LENGTH, ETHERNET = 0xA1B23C4D, 262144, 1
HEAD_OCTETS = 24


def is_there() -> bool:
    """Tell whether tcpdump is installed."""
    return shutil.which("tcpdump") is not None


class Witness:
    """A file of frames that tcpdump is asked about.

    ``frames``: without FCS.
    """

    def __init__(self, frames: Sequence[bytes]) -> None:
        self._folder = TemporaryDirectory()
        self._path = Path(self._folder.name) / "frames.pcap"
        self._records = [
            struct.pack("<IIII", number, 0, len(frame), len(frame)) + frame for number, frame in enumerate(frames)
        ]
        head = struct.pack("<IHHiIII", NANOSECONDS, 2, 4, 0, 0, SNAP_LENGTH, ETHERNET)
        self._path.write_bytes(head + b"".join(self._records))

    def takes(self, text: str, wanted: NDArray[np.bool_]) -> bool:
        """Return whether tcpdump takes those frames for an expression, and no others."""
        asked = ["tcpdump", "-Z", getpass.getuser(), "--nano", "-r", str(self._path), "-w", "-", text]
        done = subprocess.run(asked, capture_output=True, check=False)
        if done.returncode and b"rejects all packets" in done.stderr:
            return not wanted.any()
        assert done.returncode == 0, (text, done.stderr)
        return done.stdout[HEAD_OCTETS:] == b"".join(compress(self._records, wanted.tolist()))
