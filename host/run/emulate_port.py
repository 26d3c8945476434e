# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A direction of a probe's emulator: its registers, settings and counters."""

from collections.abc import Sequence

from liteprobe.cores.formats.emulate import BANK_WORDS, COUNTER_WORDS, DELAY_ENTRIES
from liteprobe.host.device.registers import Registers
from liteprobe.host.errors import UsageError
from liteprobe.host.traffic.network.store import Limits
from liteprobe.host.traffic.network.words import DirectionWords

DELAYS_WORD = 2 * BANK_WORDS
PATTERNS_WORD = DELAYS_WORD + DELAY_ENTRIES
EVENTS = ("damaged", "overflows", "management")
BANK_BIT = 1  # Of ``bank``; what is above says whether a switch is to come.


class DirectionPort:
    """A direction: from the port of its number to the other one.

    Parameters
    ----------
    registers : Registers
        Of the probe.
    number : int

    Raises
    ------
    UsageError
        When the probe has no emulator.
    """

    def __init__(self, registers: Registers, number: int) -> None:
        self._registers = registers
        self._prefix = f"direction{number}_"
        self.number = number
        if self._prefix + "arm" not in registers.names:
            raise UsageError("this probe was built without an emulator: build and load one with --preset emulator")

    @staticmethod
    def count(registers: Registers) -> int:
        """Return how many directions a probe emulates."""
        return sum(f"direction{number}_arm" in registers.names for number in range(2))

    @property
    def limits(self) -> Limits:
        """What it holds."""
        names = ("store_words", "entries", "longest", "least_delay", "waiting")
        values = self._read(*(name for name in names if self._prefix + name in self._registers.names))
        trace = self._prefix + "trace"
        has_trace = trace in self._registers.memory_names
        return Limits(**values, trace_words=self._registers.memory(trace).words if has_trace else 0)

    def load(self, words: DirectionWords) -> None:
        """Write what holds at the start, into bank 0, and what both banks share."""
        self.write_bank(0, words.banks[0])
        self._write_settings(DELAYS_WORD, words.delays)
        self._write_settings(PATTERNS_WORD, words.patterns)
        if words.trace:
            self._registers.write_memory(self._prefix + "trace", 0, list(words.trace))
        if self._prefix + "trace_entries" in self._registers.names:
            self._registers.write_many({self._prefix + "trace_entries": len(words.trace) // 2})

    def write_bank(self, bank: int, words: Sequence[int]) -> None:
        """Write the settings of a bank that doesn't hold now."""
        self._write_settings(BANK_WORDS * bank, words)

    def arm(self) -> None:
        """Take the settings of bank 0 for the next start."""
        self._registers.write(self._prefix + "arm", 1)

    def switch(self, ticks: int) -> None:
        """Let the other bank hold from a tick since the start on; at once where that has passed."""
        self._registers.write_burst({self._prefix + "switch_at": ticks})  # It doesn't read as it was written.
        self._registers.write(self._prefix + "switch", 1)

    def look(self) -> tuple[int, int]:
        """Return the bank that holds now, and the ticks since the start."""
        # One datagram, read in this order: a read of the bank latches the time.
        values = self._read("bank", "now")
        return values["bank"] & BANK_BIT, values["now"]

    def events(self) -> dict[str, int]:
        """Return what is counted of frames that no class has (modulo 2^32)."""
        return self._read(*EVENTS)

    def counts(self, number: int) -> list[int]:
        """Return the words of a class's counters."""
        words = self._registers.read_memory(self._prefix + "counts", COUNTER_WORDS * number, COUNTER_WORDS)
        return [int(word) for word in words]

    def _read(self, *names: str) -> dict[str, int]:
        values = self._registers.read_many([self._prefix + name for name in names])
        return {name.removeprefix(self._prefix): value for name, value in values.items()}

    def _write_settings(self, first: int, words: Sequence[int]) -> None:
        self._registers.write_memory(self._prefix + "settings", first, list(words))
