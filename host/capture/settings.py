# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Settings of a capture: sampling, lengths, what is kept, and which channels frames go to.

Source: docs/design/monitor.md ("Sampling").
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from liteprobe.cores.formats import CHANNELS
from liteprobe.host.device.registers import Registers
from liteprobe.host.errors import UsageError

SNAP_MOST = 65535
SHIFT_MOST = 4
HASH_SLOTS = 128  # Of the channel table.
DAMAGED_BIT = 2  # Of register ``keep``.
BY_HASH_BIT = 3  # Of register ``sample``.


class Keep(IntEnum):
    """What a record has of a frame."""

    PACKETS = 1
    HEADERS = 2
    BOTH = 3


@dataclass(frozen=True)
class Sampling:
    """Which of the frames that pass are kept.

    Parameters
    ----------
    shift : int
        One of 2^shift.
    by_hash : bool
        By the packet's hash, so that probes with one seed choose the same packets; else every 2^shift-th.
    seed : int
        Of the hash, 32 bits.
    """

    shift: int = 0
    by_hash: bool = False
    seed: int = 0

    @classmethod
    def of(cls, text: str) -> "Sampling":
        """Return what ``16``, ``hash:16`` or ``hash:16:7`` mean.

        Raises
        ------
        UsageError
            When it is none of these.
        """
        words = text.split(":")
        by_hash = words[0] == "hash"
        numbers = words[1:] if by_hash else words
        try:
            one_of, seed = int(numbers[0], 0), int(numbers[1], 0) if by_hash and len(numbers) == 2 else 0
            is_right = one_of in (1 << shift for shift in range(SHIFT_MOST + 1)) and 0 <= seed < 1 << 32
        except (ValueError, IndexError):
            is_right = False
        if not is_right or len(numbers) > 1 + by_hash:
            raise UsageError(
                f"'{text}' is not a sampling: give 1, 2, 4, 8 or 16 (every so manieth frame), or hash:16 or hash:16:SEED"
            )
        return cls(one_of.bit_length() - 1, by_hash, seed)


@dataclass(frozen=True)
class CaptureSettings:
    """Settings of a capture.

    Raises
    ------
    UsageError
        When no probe could do it.
    """

    channels: tuple[int, ...] = (0,)
    snap_length: int = SNAP_MOST
    keep: Keep = Keep.PACKETS
    sampling: Sampling = Sampling()
    with_damaged: bool = False

    def __post_init__(self) -> None:
        if not self.channels or not all(0 <= channel < CHANNELS for channel in self.channels):
            raise UsageError(f"channels are 0 to {CHANNELS - 1}: give one or more of them, like 0,1,2,3")
        if len(set(self.channels)) != len(self.channels):
            raise UsageError("a channel is named twice: give each once")
        if not 0 <= self.snap_length <= SNAP_MOST:
            raise UsageError(f"snap length {self.snap_length} is out of range: give 0 to {SNAP_MOST}")

    def table(self) -> list[int]:
        """Return the channel of each of the 128 values of ``hash & 127``: evenly spread."""
        return [self.channels[slot % len(self.channels)] for slot in range(HASH_SLOTS)]

    def write(self, registers: Registers, ports: Iterable[int]) -> None:
        """Tell the probe, for some of its ports.

        Raises
        ------
        UsageError
            When these settings need the flow hash, and the probe was built without; nothing is written then.
        """
        has_hash = registers.has_flow_hash
        if not has_hash:
            self._check_without_hash()
        for port in ports:
            prefix = f"port{port}_monitor_"
            sample = self.sampling.shift | self.sampling.by_hash << BY_HASH_BIT
            seed = {prefix + "sample_seed": self.sampling.seed} if has_hash else {}
            registers.write_many({prefix + "snap_length": self.snap_length, prefix + "sample": sample} | seed)
            for slot, channel in enumerate(self.table() if has_hash else ()):
                registers.write(prefix + "channel_table", slot << 8 | channel)
            registers.write(prefix + "clear", 1)
            registers.write_many({prefix + "keep": self.keep | self.with_damaged << DAMAGED_BIT})

    def _check_without_hash(self) -> None:
        fix = "or build and load a probe with --hash, where its board has room"
        if self.sampling.by_hash:
            raise UsageError(f"this probe has no flow hash, so it samples by count alone: give --sample 8, {fix}")
        if self.channels != (0,):
            raise UsageError(f"this probe has no flow hash, so all frames go to channel 0: leave --channels out, {fix}")
