# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A filter is written into a probe whole, while it is not in force."""

from collections.abc import Sequence

import numpy as np

from liteprobe.cores.formats import FILTER_PORTS, FILTER_ROW_WORDS, FILTER_WORDS, FilterControl
from liteprobe.host.capture.ring import clear_filter, read_hits, write_filter
from liteprobe.host.device.link.base import Link, Words
from liteprobe.host.device.registers import Registers
from liteprobe.host.packets.filter.expression import parse


class RecordingLink(Link):
    """A link to registers and a memory that remember; notes every write."""

    def __init__(self) -> None:
        self.words: dict[int, int] = {}
        self.log: list[int] = []

    def read(self, address: int, count: int = 1) -> Words:
        return np.array([self.words.get(address + 4 * number, 0) for number in range(count)], np.uint32)

    def read_scattered(self, addresses: Sequence[int]) -> Words:
        return np.array([self.words.get(address, 0) for address in addresses], np.uint32)

    def write(self, address: int, words: Sequence[int]) -> Words:
        self.log.append(address)
        self.words |= {address + 4 * number: int(word) for number, word in enumerate(words)}
        return self.read(address, len(words))

    def close(self) -> None:
        """Nothing to close."""


def probe() -> tuple[RecordingLink, Registers]:
    link = RecordingLink()
    register_map = {
        "csr_registers": {"filter_control": {"addr": 0x100, "size": 1, "type": "rw"}},
        "memories": {"filter": {"base": 0x10000, "size": 4 * FILTER_WORDS}},
    }
    return link, Registers(link, register_map)


def test_filter_is_written_whole_while_it_is_not_in_force() -> None:
    link, registers = probe()
    link.words = {0x10000 + 4 * address: 0xFFFFFFFF for address in range(0x1100, FILTER_WORDS)}
    wanted = parse("tcp port 80 and net 192.0.2.0/24").fit(drop=True)
    write_filter(registers, wanted)
    assert link.log[0] == link.log[-1] == 0x100
    assert link.words[0x100] == FilterControl.ENABLE | FilterControl.DROP
    memory = {at // 4 - 0x4000: word for at, word in link.words.items() if at >= 0x10000 and word}
    assert {at: word for at, word in memory.items() if word != 0xFFFFFFFF} == wanted.words()
    assert FILTER_PORTS[0] + 80 // 32 in memory
    assert FILTER_ROW_WORDS[1] in memory
    assert read_hits(registers) == {}
    clear_filter(registers)
    assert link.words[0x100] == 0
