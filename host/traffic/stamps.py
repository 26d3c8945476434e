# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Where the time of sending stands in a frame, how wide it is and how fast it counts."""

from dataclasses import dataclass

from liteprobe.cores.formats import STAMP_OFFSET
from liteprobe.host.errors import UsageError
from liteprobe.host.traffic.headers import Headers

TICK_MAX = 15
WIDTH_MIN, WIDTH_MAX = 16, 64
FLOW_LABEL_WIDTH = 20

PLACES = {
    "probe": "in the probe header, 64 bits",
    "octet": "at an octet of the payload, 16 to 64 bits",
    "ipv4.identification": "in the identification of IPv4, 16 bits; the header checksum stays right",
    "ipv4.checksum": "in the header checksum of IPv4, 16 bits, which is wrong then",
    "ipv6.flow_label": "in the flow label of IPv6, 20 bits",
    "none": "nowhere",
}
WIDTHS = {"probe": 64, "ipv4.identification": 16, "ipv4.checksum": 16, "ipv6.flow_label": FLOW_LABEL_WIDTH}


@dataclass(frozen=True)
class Stamp:
    """The time at the SFD of the frame, in units of 16^tick ns, the lowest ``width`` bits of it.

    Parameters
    ----------
    place : str
        ``probe``, ``octet``, ``ipv4.identification``, ``ipv4.checksum``, ``ipv6.flow_label`` or ``none``.
    octet : int or None
        First octet of the stamp, from 0 at the destination MAC; with the place ``octet`` alone.
    width : int or None
        Bits, 16 to 64 in steps of 8, with the place ``octet`` alone; None: 64, or what the place has.
    tick : int
        A unit is 16^tick ns, 0 to 15: slow counters are for long delays in few bits.
    """

    place: str = "probe"
    octet: int | None = None
    width: int | None = None
    tick: int = 0

    def __post_init__(self) -> None:
        if self.place not in PLACES:
            raise UsageError(f"'{self.place}' is not a place of a stamp: give one of {', '.join(PLACES)}")
        if (self.octet is None) == (self.place == "octet"):
            raise UsageError(
                "the place 'octet' of a stamp needs the number of the octet: add it"
                if self.octet is None
                else f"a stamp in the place '{self.place}' has no octet of its own: leave it out, or give the place octet"
            )
        if self.width is not None and self.place in WIDTHS and self.width != WIDTHS[self.place]:
            raise UsageError(f"a stamp in the place '{self.place}' has {WIDTHS[self.place]} bits: leave out the width")
        if not (WIDTH_MIN <= self.bits <= WIDTH_MAX and (self.bits % 8 == 0 or self.place == "ipv6.flow_label")):
            raise UsageError(f"a stamp of {self.width} bits is out of range: give 16 to 64 in steps of 8")
        if not 0 <= self.tick <= TICK_MAX:
            raise UsageError(f"tick {self.tick} of a stamp is out of range: give 0 to {TICK_MAX}, for 16^tick ns")

    @property
    def bits(self) -> int:
        """Width in bits."""
        return WIDTHS.get(self.place, WIDTH_MAX) if self.width is None else self.width

    @property
    def octets(self) -> int:
        """Octets that have a part of it."""
        return -(-self.bits // 8)

    def offset(self, headers: Headers) -> int:
        """Return its first octet behind these headers; Raises UsageError where they don't have its place."""
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
