# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Says where the time of sending stands in a frame, how wide it is and how fast it counts."""

from dataclasses import dataclass, replace
from fractions import Fraction

from liteprobe.cores.formats import STAMP_OFFSET, stamp_range_ns
from liteprobe.host.base.document import (
    ByShape,
    Key,
    Made,
    OneOf,
    Quantity,
    Whole,
    check_fields,
    key,
    keys,
    part,
    values_of,
)
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.units import TIMES, Number, exact
from liteprobe.host.base.validate import validated
from liteprobe.host.traffic.headers import Headers

WIDTH_MAX = 64
NIBBLE, TICK_MAX = 4, 15
FLOW_LABEL_WIDTH = 20

DELAY = Quantity(
    "a time", "a time with ns, us, ms or s, above 0, up to 1000 s; no unit: ns", TIMES, Fraction(10**12), plain="ns"
)

PLACES = {
    "probe": "in the probe header, 64 bits",
    "octet": "at an octet of the payload, 16 to 64 bits",
    "ipv4.identification": "in the identification of IPv4, 16 bits; the header checksum stays right",
    "ipv4.checksum": "in the header checksum of IPv4, 16 bits, which is wrong then",
    "ipv6.flow_label": "in the flow label of IPv6, 20 bits",
    "none": "nowhere",
}
WIDTHS = {"probe": 64, "ipv4.identification": 16, "ipv4.checksum": 16, "ipv6.flow_label": FLOW_LABEL_WIDTH}


@validated
@dataclass(frozen=True)
class Stamp:
    """The time at the SFD of the frame, in units of 16^tick ns, the lowest ``width`` bits of it.

    A stamp that stands at an ``octet`` of its own (from 0 at the destination MAC) has a ``width`` of its own, too (None: 64).
    Slow counters (``tick``) are for long delays in few bits; by the longest ``delay_ns`` that is expected the fastest one that
    holds it is chosen.
    """

    place: str = keys({"place": Key(OneOf(tuple(PLACES)), "Where it stands.", is_needed=True)}, "probe")
    octet: int | None = key(
        "octet", Whole(0, 255), "With the place `octet`: first octet of the stamp, from 0 at the destination MAC.", None
    )
    width: int | None = key(
        "width", Whole(16, WIDTH_MAX), "With the place `octet`: bits, a multiple of 8.", None, f"{WIDTH_MAX}"
    )
    tick: int = key("tick", Whole(0, TICK_MAX), "It counts units of 16^tick ns.", 0)
    delay_ns: Number | None = key(
        "delay",
        DELAY,
        "In the place of `tick`: the longest delay that is expected; it then counts the least units that hold it.",
        None,
    )

    def __post_init__(self) -> None:
        if (self.octet is None) == (self.place == "octet"):
            raise UsageError(
                "the place 'octet' of a stamp needs the number of the octet: add it"
                if self.octet is None
                else f"a stamp in the place '{self.place}' has no octet of its own: leave it out, or give the place octet"
            )
        if self.width is not None and self.place in WIDTHS:
            if self.width != WIDTHS[self.place]:
                raise UsageError(
                    f"a stamp in the place '{self.place}' has {WIDTHS[self.place]} bits: leave out the width"
                )
            object.__setattr__(self, "width", None)
        if self.width is not None and self.width % 8:
            raise UsageError(f"a stamp of {self.width} bits is out of range: give 16 to 64 in steps of 8")
        check_fields(self, " of a stamp")
        if self.delay_ns is not None:
            self._fit(exact(self.delay_ns))

    def _fit(self, delay_ns: Fraction) -> None:
        """Choose the unit by the longest delay that is expected."""
        fits = [tick for tick in range(TICK_MAX + 1) if 1 << self.bits + NIBBLE * tick > delay_ns]
        if self.tick and self.tick not in fits:
            raise UsageError(
                f"a stamp of {self.bits} bits that counts {self.unit_ns:,} ns can't hold a delay of {float(delay_ns):,.0f} ns: "
                f"leave out the tick, or give {fits[0]} or more"
            )
        object.__setattr__(self, "tick", max(self.tick, fits[0]))

    @property
    def bits(self) -> int:
        """Width in bits."""
        return WIDTHS.get(self.place, WIDTH_MAX) if self.width is None else self.width

    @property
    def octets(self) -> int:
        """Octets that have a part of it."""
        return -(-self.bits // 8)

    @property
    def unit_ns(self) -> int:
        """Time that it counts by."""
        return 1 << NIBBLE * self.tick

    @property
    def range_ns(self) -> int | None:
        """Delays are known modulo this by it; None: it is longer than any run."""
        return stamp_range_ns(self.bits, self.tick)

    def offset(self, headers: Headers) -> int:
        """Return its first octet in frames with these headers; Raises UsageError where they don't have its place."""
        if self.place == "octet":
            assert self.octet is not None
            return self.octet
        if self.place == "probe":
            return headers.payload_offset + STAMP_OFFSET
        if self.place.startswith("ipv4") and not headers.is_ipv4:
            raise UsageError(f"a stamp in {self.place} needs IPv4 headers: give IPv4 addresses or another place")
        if self.place.startswith("ipv6") and not headers.is_ipv6:
            raise UsageError(f"a stamp in {self.place} needs IPv6 headers: give IPv6 addresses or another place")
        return (
            headers.network_offset + {"ipv4.identification": 4, "ipv4.checksum": 10, "ipv6.flow_label": 1}[self.place]
        )


STAMP = replace(part(Stamp, "stamp"), back=lambda one: {"place": one.place, **values_of(one)})
#: In a stream: a place, or the keys of a stamp.
STAMPS = ByShape(
    Made(
        OneOf(tuple(PLACES)), Stamp, lambda one: one.place, lambda one: one.place != "octet" and one == Stamp(one.place)
    ),
    STAMP,
)
