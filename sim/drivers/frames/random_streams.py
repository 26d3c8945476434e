# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Streams of all sorts from a seed: every kind of header, length, interval, modifier, stamp and checksum."""

import random
from dataclasses import replace
from fractions import Fraction

from liteprobe.host.traffic.headers import Headers
from liteprobe.host.traffic.stream import (
    IMIX, Burst, Coverage, Decrement, Field, Fixed, Increment, Interval, Length, Lengths, Modifier, MplsLabel, Random,
    RandomLength, Stamp, Stepped, Stream, StreamError, Values,
)

TRIES = 200
NAMED = {
    "ipv4": ("ipv4.source", "ipv4.destination", "ipv4.tos", "ipv4.identification"),
    "ipv6": ("ipv6.source", "ipv6.destination", "ipv6.flow_label"),
    "udp": ("udp.source", "udp.destination"),
    "tcp": ("tcp.source", "tcp.destination", "tcp.sequence"),
}
STAMPS = ("probe", "octet", "ipv4.identification", "ipv4.checksum", "ipv6.flow_label", "none")


class StreamMaker:
    """Makes streams that a probe can send, all from one seed.

    Parameters
    ----------
    longest : longest frame, in octets without FCS.
    any_bits : how many of the modifiers are of any bits: they may turn one header into another.
    with_coverage : whether some streams have a coverage.
    """

    def __init__(self, seed: int, longest: int = 1514, any_bits: float = 0.2, with_coverage: bool = True) -> None:
        self.random = random.Random(seed)
        self.longest = longest
        self.any_bits = any_bits
        self.with_coverage = with_coverage

    def streams(self, count: int, total: float = 0.95) -> list[Stream]:
        """Return streams of one port that take about this share of its line together."""
        weights = [self.random.uniform(0.2, 1) for _ in range(count)]
        shares = [Fraction(int(10**6 * total * weight / sum(weights)), 10**6) for weight in weights]
        return [self.stream(number, share) for number, share in enumerate(shares, 1)]

    def stream(self, number: int, share: Fraction) -> Stream:
        """Return a stream; what goes with nothing else is drawn again."""
        for _ in range(TRIES):
            headers = self.headers()
            length = self.length()
            interval = self.interval(share, length)
            try:
                stream = Stream(
                    f"stream {number}",
                    number,
                    length,
                    interval,
                    count=self.random.choice((None, self.random.randint(1, 2000))),
                    start_ns=self.random.choice((0, self.random.randint(0, 100_000))),
                    headers=headers,
                    fill=self.random.choice(("zero", "counting", "prbs")),
                    probe=headers.has_transport and headers.transport == "udp" and self.random.random() < 0.6,
                    seed=self.random.getrandbits(32),
                )
                return self.changed(stream)
            except StreamError:
                continue
        raise RuntimeError(f"no stream of share {share} in {TRIES} tries")

    def changed(self, stream: Stream) -> Stream:
        """Return a stream with modifiers, payload, stamp and checksum; each that can't be is drawn again or left out."""
        if not stream.probe:
            payload = self.random.randbytes(self.random.choice((0, 0, 1, 7, 20)))
            stream = self.either(stream, payload=payload)
            if self.with_coverage and payload and not stream.headers.has_transport and self.random.random() < 0.7:
                stream = self.either(stream, coverage=self.coverage(stream.headers))
        stream = self.either(stream, checksum=self.random.choice(("complement", "host", "auto", "none")))
        for _ in range(self.random.randint(0, 4)):
            stream = self.either(stream, modifiers=(*stream.modifiers, self.modifier(stream.headers)))
        place = self.random.choice(STAMPS)
        octet = self.random.randint(20, 200) if place == "octet" else None
        width = self.random.choice((16, 24, 32, 40, 48, 56, 64)) if place == "octet" else None
        try:
            stamp = Stamp(place, octet, width, self.random.choice((0, 0, 1, 2, 5, 15)))
            return replace(stream, stamp=stamp)
        except StreamError:
            return stream

    def coverage(self, headers: Headers) -> Coverage:
        """Return a coverage at the start of the payload, or a little later; with or without addresses."""
        start = headers.payload_offset + 2 * self.random.choice((0, 0, 1, 3))
        if headers.is_ipv6 and start == headers.transport_offset:
            return Coverage(start)
        octets = 2 * self.random.randint(0, 4)
        return Coverage(start, start - octets - 2, octets, self.random.getrandbits(16))

    def either(self, stream: Stream, **change: object) -> Stream:
        """Return the stream with a change, or as it is where that can't be."""
        try:
            return replace(stream, **change)  # type: ignore[arg-type]
        except StreamError:
            return stream

    def headers(self) -> Headers:
        """Return some headers."""
        draw = self.random
        kind = draw.choice(("ipv4", "ipv4", "ipv6", "raw"))
        fields: dict[str, object] = {}
        if kind == "ipv6":
            ends = [f"2001:db8::{draw.getrandbits(16):x}:{draw.getrandbits(16):x}" for _ in range(2)]
            fields = {"source_ip": ends[0], "destination_ip": ends[1], "flow_label": draw.choice((0, 0xABCDE))}
        elif kind == "raw":
            fields = {"ethertype": draw.choice((0x88B5, 0x88B6))}
        labels = () if kind == "raw" else tuple(self.label() for _ in range(draw.choice((0, 0, 1, 4))))
        return Headers(
            destination_mac=":".join(f"{draw.getrandbits(8):02x}" for _ in range(6)),
            source_port=draw.randint(1024, 0xFFFF),
            vlan_tags=tuple(draw.getrandbits(16) for _ in range(draw.choice((0, 0, 1, 2, 4)))),
            mpls_labels=labels,
            ttl=draw.randint(1, 255),
            traffic_class=draw.getrandbits(8),
            transport=draw.choice(("udp", "udp", "tcp", "none")),
            **fields,  # type: ignore[arg-type]
        )

    def label(self) -> MplsLabel:
        """Return a label that isn't reserved."""
        return MplsLabel(self.random.randint(16, 0xFFFFF), self.random.randint(0, 7), self.random.randint(1, 255))

    def length(self) -> Length:
        """Return some lengths."""
        draw = self.random
        least, greatest = sorted(draw.randint(60, self.longest) for _ in range(2))
        table = tuple(draw.randint(60, self.longest) for _ in range(draw.randint(1, 64)))
        return draw.choice(
            (
                Fixed(least),
                Fixed(greatest),
                Stepped(least, greatest, draw.randint(1, 300)),
                RandomLength(least, greatest),
                Lengths(table, draw.random() < 0.5),
                IMIX,
            )
        )

    def interval(self, share: Fraction, length: Length) -> Interval:
        """Return intervals that take this share of the line."""
        draw = self.random
        burst = None
        if draw.random() < 0.3:
            burst = Burst(draw.randint(1, 20), draw.choice((None, 8 * (length.greatest + 24 + draw.randint(0, 99)))))
        return Interval(share=share, exponential=draw.random() < 0.4, burst=burst)

    def modifier(self, headers: Headers) -> Modifier:
        """Return a modifier of a named field, or of any."""
        draw = self.random
        field = self.field(headers)
        kind = draw.choice((Increment, Decrement, Random, Values))
        if kind is Random:
            return Random(field)
        most = 0xFF if isinstance(field, Field) or field in ("ipv4.tos", "vlan[0].priority") else 0xFFF
        if isinstance(field, str) and field.endswith("priority"):
            most = 7
        if kind is Values:
            values = tuple(draw.randint(0, most) for _ in range(draw.randint(1, 8)))
            return Values(field, values, draw.random() < 0.5)
        first = draw.choice((None, draw.randint(0, most)))
        return (Increment if kind is Increment else Decrement)(
            field, first, draw.choice((1, 1, 3, 1000)), draw.choice((0, 1, 5, 100))
        )

    def field(self, headers: Headers) -> str | Field:
        """Return a field of these headers, or any bits."""
        draw = self.random
        names = ["mac.source", "mac.destination"]
        names += [f"vlan[{n}].{part}" for n in range(len(headers.vlan_tags)) for part in ("id", "priority")]
        names += [f"mpls[{n}].label" for n in range(len(headers.mpls_labels))]
        if headers.has_ip:
            names += NAMED["ipv6" if headers.is_ipv6 else "ipv4"] * 2
            names += NAMED.get(headers.transport, ()) * 2
        if draw.random() < self.any_bits:
            return Field(2 * draw.randint(0, 30), 0xFF << 8 * draw.randint(0, 3))
        return draw.choice(names)
