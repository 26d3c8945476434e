# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What a board has that a configuration is checked against."""

from collections.abc import Iterable
from typing import Protocol

RECORDS = 1024  # That each port holds by default.


def or_words(choices: Iterable[int]) -> str:
    """Return choices as words: ``7, 15 or 31``."""
    *some, last = map(str, choices)
    return f"{', '.join(some)} or {last}"


class BoardLimits(Protocol):
    """What a configuration must know of a board to be checked against it."""

    @property
    def name(self) -> str:
        """Name of the board, as in ``liteprobe build``."""

    @property
    def ports(self) -> int:
        """Ethernet PHYs of the board."""

    @property
    def sys_clk_freq(self) -> float:
        """Frequency of ``sys`` (Hz)."""

    @property
    def lut_sites(self) -> int | None:
        """Number of LUT sites of the device. None: a simulation, which has no limit."""

    @property
    def block_rams(self) -> int | None:
        """Number of block RAMs of the device. None: a simulation, which has no limit."""

    @property
    def with_serial(self) -> bool:
        """Whether a serial port is wired."""

    @property
    def with_pcie(self) -> bool:
        """Whether it plugs into a PCIe slot."""

    @property
    def sdram_bytes(self) -> int:
        """SDRAM that a probe can use; 0: none."""

    @property
    def sdram_banks(self) -> int:
        """Banks of its SDRAM, of 2 MiB each, that an emulator can use."""

    @property
    def spare_bytes(self) -> int:
        """Block RAM that firmware can have by default, where there is no SDRAM; 0: none."""

    @property
    def spare_records(self) -> int:
        """Records of each port by default beside firmware in spare block RAM, which gets what they leave of `RECORDS`."""
