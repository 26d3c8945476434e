# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Configuration sets of all sorts from a seed: every kind of header, every choice of fields, and what the model must know."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.base.errors import UsageError
from liteprobe.host.traffic.sets import FIELDS, Repeat, Sets, Values
from liteprobe.host.traffic.stream import Fixed, Interval, Stream
from liteprobe.sim.drivers.frames.random_streams import StreamMaker
from liteprobe.sim.models.traffic.sets import Template
from liteprobe.sim.models.traffic.sets import network, transport

NAMED = ("mac.source", "mac.destination", "ipv4.source", "ipv4.destination", "tcp.sequence")
BITS = {"address": 1, "vlan": 4, "inner_vlan": 8, "length": 16, "index": 32}
CHANCE_OF_FIELD = 0.6


@dataclass(frozen=True)
class Made:
    """Sets by the host, and the same for the model.

    Attributes
    ----------
    octets : all of its stream.
    table : array of uint32
    interval : ticks; None: back to back.
    """

    sets: Sets
    octets: bytes
    template: Template
    table: NDArray[np.uint32]
    interval: Fraction | None

    @property
    def words(self) -> NDArray[np.uint32]:
        """The stream as words."""
        return np.frombuffer(self.octets, "<u4")


def template_of(sets: Sets) -> Template:
    """Return what is the same in all frames, with the places of fields found by walking the octets of the headers."""
    stream = sets.stream
    header = stream.template(stream.length.least)
    ip, version = network(header)
    addresses, octets = (ip + 8, 16) if version == 6 else (ip + 12, 4)
    bits = {**BITS, "address": 2 if version == 6 else 1}
    places = {bits["address"]: addresses + octets * (sets.address == "destination"), 4: 14, 8: 18}
    at, _ = transport(header)
    named = {"mac.source": 8, "mac.destination": 2, "ipv4.source": ip + 12, "ipv4.destination": ip + 16, "tcp.sequence": at + 4}
    entry = sets.entry
    places[32] = entry if isinstance(entry, int) else named.get(entry or "", 0)
    fields = sum(bits[name] for name in sets.fields)
    complement = stream.used_checksum == "complement"
    return Template(header, stream.length.least, fields, places, complement, max(1, len(sets.table)))


class SetsMaker:
    """Makes sets that a probe can send, all from one seed.

    ``entries``: of the table, at most.
    """

    def __init__(self, seed: int, entries: int = 1 << 16) -> None:
        self.random = random.Random(seed)
        self.streams = StreamMaker(seed, 300, with_coverage=False)  # Sets refuse one.
        self.entries = entries

    def made(self, count: int, repeats_said: float = 0.05) -> Made:
        """Return ``count`` sets; of each hundred ``repeats_said`` * 100 are followed by a SET_REPEAT."""
        while True:
            stream, interval = self.stream()
            names = [name for name in FIELDS if self.random.random() < CHANCE_OF_FIELD]
            entry = self.entry(stream)
            length_min = stream.length_min
            entries = self.random.choice([1, 7, self.entries])
            table = np.random.default_rng(self.random.getrandbits(32)).integers(0, 1 << 32, entries)
            wide = stream.headers.is_ipv6
            try:
                items = self.items(names, count, length_min, entries, wide, repeats_said)
                sets = Sets(
                    stream,
                    items,
                    fields=names,
                    address=self.random.choice(["source", "destination"]),
                    entry=entry,
                    table=table.tolist(),
                    repeats=self.random.choice([0, 0, 1, 3, 65535]),
                )
            except UsageError:
                continue
            return Made(sets, b"".join(sets.octets()), template_of(sets), sets.table, interval)

    def stream(self) -> tuple[Stream, Fraction | None]:
        """Return a stream without anything that varies, and its interval in ticks."""
        while True:
            interval = self.random.choice(
                [Interval(), Interval(interval_ns=self.random.randint(600, 4000)), Interval(pps=self.random.randint(2, 10**6))]
            )
            drawn = self.streams.stream(self.random.randrange(1, 1 << 16), Fraction(1, 2))
            length = Fixed(max(drawn.length_min, self.random.choice([60, 61, 100, 300])))
            try:
                stream = replace(
                    drawn, length=length, interval=interval, modifiers=(), start_ns=0, count=None, checksum="auto"
                )
            except UsageError:
                continue
            ticks = None
            if interval.interval_ns is not None:
                ticks = Fraction(interval.interval_ns) / 8
            if interval.pps is not None:
                ticks = Fraction(round(Fraction(125_000_000, int(interval.pps)) * 2**32), 2**32)
            return stream, ticks

    def entry(self, stream: Stream) -> str | int:
        """Return what an entry is: nothing that turns one header into another."""
        headers = stream.headers
        places: list[str | int] = [*range(0, 10, 2), *NAMED]
        if headers.has_ip:
            first = headers.network_offset + (8 if headers.is_ipv6 else 12)
            places += [*range(first, max(first + 2, stream.template_octets - 3), 2)] * 2
        return self.random.choice(places)

    def items(
        self, names: list[str], count: int, length_min: int, entries: int, is_ipv6: bool, repeats_said: float
    ) -> Iterator[Values | Repeat]:
        """Yield sets, the first one with all fields."""
        most = {"address": (1 << (128 if is_ipv6 else 32)) - 1, "vlan": 0xFFFF, "inner_vlan": 0xFFFF, "index": entries - 1}
        share = self.random.choice([0.3, 0.7, 1])
        for number in range(count):
            if self.random.random() < repeats_said:
                yield Repeat(self.random.choice([0, 1, 2, 65535]))
            of_this = [name for name in names if not number or self.random.random() < share]
            yield {
                name: self.random.randint(length_min, length_min + self.random.choice([0, 40, 8000]) % (9001 - length_min))
                if name == "length"
                else self.random.randint(0, most[name])
                for name in of_this
            }
