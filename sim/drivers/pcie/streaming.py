# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A host that streams slots to the rings of a probe in its slot, and what comes out of them, for cocotb."""

import random
import struct
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from liteprobe.cores.formats import DATAGRAM_MAGIC, DMA_SLOT_BYTES, SLOT_WORDS
from liteprobe.sim.drivers.pcie.host import Host, map_of_run
from liteprobe.sim.drivers.pcie.probes import FIRST, RINGS

SLOTS = 16 # Of a ring in the host's memory: the bench needs no more, and each is three writes.
PATIENCE = 80 # Looks, of LOOK_CYCLES each, until something must have come.
LOOK_CYCLES = 250


def slot(ring: int, session: int, position: int, words: list[int], lease: int = 0, magic: int = DATAGRAM_MAGIC,
    count: int | None = None) -> bytes:
    """Return a slot; what is behind its words is garbage."""
    head = (magic << 16 | ring, session << 16 | lease, position % 2**32, len(words) if count is None else count)
    octets = struct.pack(f"<{4 + len(words)}I", *head, *words)
    return octets + random.Random(position).randbytes(DMA_SLOT_BYTES - len(octets))


class Drain:
    """Takes the words of a ring, with pauses.

    ``part``: of all cycles, in which it takes a word.
    """

    def __init__(self, dut: Any, ring: int, seed: int) -> None:
        self.found: list[int] = []
        self.part = 1.0
        self._dut = dut
        self._pins = [getattr(dut, f"ring{ring}_{name}") for name in ("valid", "ready", "data")]
        self._chance = random.Random(f"{seed} {ring}")
        self._pins[1].value = 0

    def start(self) -> None:
        """Begin to take words."""
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        valid, ready, data = self._pins
        beat, is_ready = RisingEdge(self._dut.clk_sys), 0
        while True:
            await beat
            if is_ready and valid.value:
                self.found.append(int(data.value))
            wanted = int(self._chance.random() < self.part)
            if wanted != is_ready:
                ready.value = is_ready = wanted


class Streaming(Host):
    """A host that streams to all rings."""

    takes_pins = None

    def __init__(self, dut: Any, **options: Any) -> None:
        super().__init__(dut, map_of_run(), **options)
        self.filled = [0] * RINGS
        self.strange = [0] * RINGS # When the session was opened.
        self.drains = [Drain(dut, ring, cocotb.RANDOM_SEED) for ring in range(RINGS)]

    async def open(self, ring: int, session: int) -> None:
        """Begin a session."""
        await self.write(f"ring{ring}_session", session)
        await self.write(f"ring{ring}_open", 1)
        self.strange[ring] = await self.read(f"port{ring}_replay_strange")

    async def run(self, ring: int) -> None:
        """Start the reader of a ring."""
        self.filled[ring] = 0
        await self.start_reader(ring, SLOTS)

    async def room(self, ring: int) -> int:
        """Return how many slots are free."""
        taken = await self.read(f"replay_dma_taken{ring}")
        assert taken <= self.filled[ring], "it took more than was filled"
        return SLOTS - (self.filled[ring] - taken)

    async def give(self, ring: int, slots: list[bytes]) -> None:
        """Fill slots, and say so."""
        for one in slots:
            at = self.filled[ring] % SLOTS * DMA_SLOT_BYTES
            self.reader_ring(ring)[1][at : at + DMA_SLOT_BYTES] = one
            self.filled[ring] += 1
        await self.write(f"replay_dma_filled{ring}", self.filled[ring])

    async def stream(self, given: dict[int, list[bytes]]) -> None:
        """Give all slots of some rings as there is room, until all are taken."""
        waiting = {ring: list(slots) for ring, slots in given.items()}
        looks, before = 0, -1
        while any(waiting.values()) or any([await self.room(ring) < SLOTS for ring in given]):
            for ring, slots in waiting.items():
                count = min(await self.room(ring), len(slots))
                if count:
                    await self.give(ring, slots[:count])
                    del slots[:count]
            await ClockCycles(self.dut.clk_sys, LOOK_CYCLES)
            now = sum(len(drain.found) for drain in self.drains)
            looks, before = (0 if now != before else looks + 1), now
            assert looks < PATIENCE, "nothing moves"

    async def counts(self, ring: int) -> dict[str, int]:
        """Return what the probe counts of a ring; ``strange``, which goes on for ever, since the session was opened."""
        names = ("accepted", "datagrams", "repeated", "early", "full", "strange")
        found = {name: await self.read(f"port{ring}_replay_{name}") for name in names}
        return {**found, "strange": found["strange"] - self.strange[ring]}

    async def come(self, ring: int, count: int) -> list[int]:
        """Return the words that have come out of a ring, once they are so many; more are found, too."""
        for _ in range(PATIENCE):
            if len(self.drains[ring].found) >= count:
                break
            await ClockCycles(self.dut.clk_sys, LOOK_CYCLES)
        return self.drains[ring].found


def words(seed: Any, count: int) -> list[int]:
    """Return words that differ by their seed."""
    source = random.Random(str(seed))
    return [source.getrandbits(32) for _ in range(count)]


def slots(ring: int, session: int, all_words: list[int], first: int = 0, sizes: Any = SLOT_WORDS,
    start: int = FIRST) -> list[bytes]:
    """Return the slots of words from number ``first`` on, of a session that begins at ``start``; ``sizes``: words of each, or what
    gives them."""
    made = []
    while first < len(all_words):
        size = sizes if isinstance(sizes, int) else sizes()
        made.append(slot(ring, session, start + first, all_words[first : first + size]))
        first += size
    return made
