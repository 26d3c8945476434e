# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A link to the model of a probe: what tests of the host use where a board or the simulation would stand."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from liteprobe.host.device.link.base import Link, Words
from liteprobe.host.probe import Probe
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.lengths import Fixed, IMIX
from liteprobe.host.traffic.stream import Stream
from liteprobe.sim.models.probe.emulator import EmulatorProbe
from liteprobe.sim.models.probe.streams import TrafficFrame, TrafficProbe
from liteprobe.sim.models.probe.trains import ModelFrame, ModelProbe, TICKS_PER_SECOND, Wire, cable

REQUEST_TICKS = 200  # A datagram there and back, beside its words.
WORD_TICKS = 12


class FakeLink(Link):
    """Reads and writes a model, whose time passes with each request and each wait.

    Parameters
    ----------
    model : the probe.
    folder : where the register map is written to.

    Attributes
    ----------
    silences : arguments of ``expect_silence`` (s), in order.
    waits : arguments of ``wait`` (s), in order.
    """

    arrival_timeout_s = 0.002
    look_ns = 100_000.0
    is_in_band = False
    oscillator_ppm = 0.0

    def __init__(self, model: ModelProbe, folder: Path) -> None:
        self.model = model
        self.map_file = folder / "csr.json"
        self.map_file.write_text(json.dumps(model.map))
        self.silences: list[float] = []
        self.waits: list[float] = []
        self.is_closed = False

    def read(self, address: int, count: int = 1) -> Words:
        """Return ``count`` words from ``address`` upwards."""
        return self.read_scattered(range(address, address + 4 * count, 4))

    def read_scattered(self, addresses: Sequence[int]) -> Words:
        """Return the words at ``addresses``."""
        self.model.advance(REQUEST_TICKS + WORD_TICKS * len(addresses))
        return np.array([self.model.read(address) for address in addresses], dtype=np.uint32)

    def write(self, address: int, words: Sequence[int]) -> Words:
        """Write ``words`` from ``address`` upwards, and read them back."""
        for number, word in enumerate(words):
            self.model.write(address + 4 * number, word)
        return self.read(address, len(words))

    def beat(self, act: Callable[[], None], period_s: float) -> Callable[[], None]:
        """Nothing: the lease of the model never ends in silence."""
        return lambda: None

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.waits.append(seconds)
        self.model.advance(round(seconds * TICKS_PER_SECOND))

    def expect_silence(self, seconds: float) -> None:
        """Note what was expected."""
        self.silences.append(seconds)

    def close(self) -> None:
        """Note it."""
        self.is_closed = True


class MemoryLink(Link):
    """A bus with memory all over, which notes what is written.

    Attributes
    ----------
    words : words by address, 0 where nothing was written.
    writes : addresses and words that were written, in order.
    """

    def __init__(self) -> None:
        self.words: dict[int, int] = {}
        self.writes: list[tuple[int, int]] = []

    def read(self, address: int, count: int = 1) -> Words:
        """Return ``count`` words from ``address`` upwards."""
        return self.read_scattered(range(address, address + 4 * count, 4))

    def read_scattered(self, addresses: Sequence[int]) -> Words:
        """Return the words at ``addresses``."""
        return np.array([self.words.get(address, 0) for address in addresses], dtype=np.uint32)

    def write(self, address: int, words: Sequence[int]) -> Words:
        """Write ``words`` from ``address`` upwards, and read them back."""
        for number, word in enumerate(words):
            self.put(address + 4 * number, int(word))
        return self.read(address, len(words))

    def put(self, address: int, word: int) -> None:
        """Write a word."""
        self.writes.append((address, word))
        self.words[address] = word

    def close(self) -> None:
        """Nothing is open."""


def fake_emulator(folder: Path, model: EmulatorProbe | None = None) -> tuple[EmulatorProbe, FakeLink]:
    """Return a model, and a link to it; the map is written to a folder."""
    found = model or EmulatorProbe()
    return found, FakeLink(found, folder)


# Streams -------------------------------------------------------------------------------------------

DELAY_TICKS = 37
FIXED = Stream("fixed", 1, Fixed(60), Interval(pps=20_000), count=40)
MIXED = Stream("mixed", 2, IMIX, Interval(share=0.2, exponential=True), count=200, fill="prbs")
ENDLESS = Stream("endless", 3, Fixed(128), Interval(rate_bps=10**7))

MakeProbe = Callable[..., tuple[Probe, TrafficProbe, FakeLink]]


def maker(folder: Path) -> MakeProbe:
    """Return what makes a probe whose ports are joined by a wire, by default a cable; its map is written to a folder."""

    def make_probe(wire: Wire | None = None) -> tuple[Probe, TrafficProbe, FakeLink]:
        model = TrafficProbe(wire or cable(DELAY_TICKS))
        link = FakeLink(model, folder)
        return Probe(link), model, link

    return make_probe


def some(keep: Callable[[TrafficFrame], list[tuple[int, ModelFrame]]]) -> Wire:
    """Return a cable that delivers a frame as often, and as late (ticks), as ``keep`` says."""
    return lambda frame: [(1 - frame.port, delay, one) for delay, one in keep(frame)]  # type: ignore[arg-type]
