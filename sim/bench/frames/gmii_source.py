# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends octets on a GMII, whole frames or garbage, and knows when each SFD stood there."""

import zlib
from collections.abc import Callable, Iterable
from typing import Any

from cocotb.triggers import ReadOnly, RisingEdge

from liteprobe.cores.formats import IFG, PREAMBLE, PREAMBLE_OCTET, SFD_OCTET
from liteprobe.sim.models.receive.port import Symbol


def with_fcs(data: bytes) -> bytes:
    """Return a frame with its FCS."""
    return data + zlib.crc32(data).to_bytes(4, "little")


def carrier(octets: bytes, errors: Iterable[int] = ()) -> list[Symbol]:
    """Return symbols of octets as they are, with RX_ER at the given places."""
    wrong = set(errors)
    return [Symbol(True, octet, place in wrong) for place, octet in enumerate(octets)]


def idle(count: int = IFG) -> list[Symbol]:
    """Return octet times without carrier."""
    return [Symbol()] * count


def on_wire(octets: bytes, preamble: int = PREAMBLE, gap: int = IFG, errors: Iterable[int] = ()) -> list[Symbol]:
    """Return symbols of preamble, SFD, ``octets`` (FCS included, if there shall be one) and gap.

    ``errors`` are places of RX_ER, counted from the first octet after the SFD.
    """
    start = bytes([PREAMBLE_OCTET] * preamble + [SFD_OCTET])
    return carrier(start + octets, [len(start) + place for place in errors]) + idle(gap)


class GmiiSource:
    """Drives the receive pins of a GMII, one symbol a clock; idle between calls.

    Parameters
    ----------
    clock, valid, data, error : cocotb handles
        Pins; they change right after a rising edge, like registers.
    now : function
        Called while an SFD octet stands on the pins: what ``sfd_now`` keeps.

    Attributes
    ----------
    symbols : list of Symbol
        All that was sent, from the first call on.
    sfd_now : dict of int to Any
        ``now()`` by the place of each octet 0xD5 in ``symbols``.
    """

    def __init__(self, clock: Any, valid: Any, data: Any, error: Any, now: Callable[[], Any]) -> None:
        self.clock, self.valid, self.data, self.error, self.now = clock, valid, data, error, now
        self.symbols: list[Symbol] = []
        self.sfd_now: dict[int, Any] = {}
        self.valid.value = self.data.value = self.error.value = 0

    async def send(self, symbols: Iterable[Symbol]) -> None:
        """Send symbols, and leave the wire idle."""
        last = Symbol()
        edge = RisingEdge(self.clock)
        for symbol in [*symbols, Symbol()]:
            await edge
            if symbol != last:
                self.valid.value = symbol.carrier
                self.data.value = symbol.octet
                self.error.value = symbol.error
                last = symbol
            if symbol.carrier and symbol.octet == SFD_OCTET:
                await ReadOnly()
                self.sfd_now[len(self.symbols)] = self.now()
            self.symbols.append(symbol)
