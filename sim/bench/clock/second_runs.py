# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Feeds the firmware's libraries of the second and of qErr with pulses and octets, and reads what they make of them."""

import struct
import subprocess
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from liteprobe.sim.bench.clock.virtual_time import compile_program

NO_PPS, NO_NMEA, WRONG, NO_FIX, UNKNOWN, LEAP, UNSURE = (1 << bit for bit in range(7))

ANSWER = np.dtype(
    [
        ("tai", "u8"),
        ("is_known", "u4"),
        ("tai_utc", "i4"),
        ("faults", "u4"),
        ("sentences", "u4"),
        ("unassigned", "u4"),
        ("wrong", "u4"),
        ("spurious", "u4"),
        ("corrections", "u4"),
        ("sound", "u4"),
        ("refused", "u4"),
        ("malformed", "u4"),
        ("times", "u4"),
        ("messages", "u4"),
        ("messages_refused", "u4"),
        ("pulses", "u4"),
        ("has_qerr", "u4"),
        ("late_ps", "i4"),
        ("qerr_used", "u4"),
        ("qerr_refused", "u4"),
        ("qerr_waits", "u4"),
        ("rollovers", "u4"),
        ("unused", "u4"),
    ]
)


class Feed:
    """What comes in, in the order of time."""

    def __init__(self) -> None:
        self._records: list[bytes] = []
        self.pulse_records: list[int] = []  # Which answers are those after a pulse.

    def pulse(self, ms: int) -> None:
        """A pulse comes."""
        self.pulse_records.append(len(self._records))
        self._records.append(struct.pack("<QII", ms, 0, 0))

    def octets(self, ms: int, octets: bytes) -> None:
        """The UART brings octets; none: only look at what is known."""
        self._records.append(struct.pack("<QII", ms, 1, len(octets)) + octets)

    def run(
        self, tai_utc: int = 37, sure_until: datetime | None = None, not_before: datetime | None = None
    ) -> NDArray[np.void]:
        """Return the answer after each, from the library compiled with sanitizers."""
        program = compile_program("second", sanitize=True)
        arguments = [tai_utc]
        if sure_until and not_before:
            arguments += [int(sure_until.timestamp()), int(not_before.timestamp())]
        done = subprocess.run(
            [program, *map(str, arguments)], input=b"".join(self._records), stdout=subprocess.PIPE, check=True
        )
        return np.frombuffer(done.stdout, ANSWER)
