# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What changes in the headers from frame to frame: a field that counts, is random, or takes values of a list."""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass

from liteprobe.cores.formats import LIST_ENTRIES_MAX
from liteprobe.host.errors import UsageError, nearest
from liteprobe.host.traffic.headers import Headers, mac_octets

WINDOW = 4  # Octets.
WORD = 2**32

Value = int | str


@dataclass(frozen=True)
class Field:
    """Any bits of the headers, by place and mask.

    Parameters
    ----------
    offset : int
        First of four octets, from 0 at the destination MAC; even.
    mask : int
        Bits of the four octets that change, the first octet in the highest bits; 1 to 0xffffffff. Values are numbers of the
        lowest of these bits.
    """

    offset: int
    mask: int

    def __post_init__(self) -> None:
        if self.offset < 0 or self.offset % 2:
            raise UsageError(f"offset {self.offset} of a field is out of range: give an even number and move the mask")
        if not 0 < self.mask < WORD:
            raise UsageError(f"mask {self.mask:#x} of a field is out of range: give 1 to 0xffffffff")

    def __str__(self) -> str:
        return f"mask {self.mask:#010x} at octet {self.offset}"

    @property
    def shift(self) -> int:
        """Bits from the lowest of the four octets to the lowest that changes."""
        return (self.mask & -self.mask).bit_length() - 1

    @property
    def most(self) -> int:
        """Greatest value."""
        return self.mask >> self.shift

    @property
    def pairs(self) -> tuple[int, ...]:
        """First octets of the pairs of octets that change."""
        halves = ((self.offset, self.mask >> 16), (self.offset + 2, self.mask & 0xFFFF))
        return tuple(offset for offset, mask in halves if mask)

    @property
    def touched(self) -> frozenset[int]:
        """Octets that change."""
        return frozenset(self.offset + n for n in range(WINDOW) if self.mask >> 8 * (WINDOW - 1 - n) & 0xFF)


def _check_values(*values: Value | None) -> None:
    for value in values:
        if isinstance(value, int) and not 0 <= value < WORD:
            raise UsageError(f"value {value} of a modifier is out of range: give 0 to {WORD - 1}")


@dataclass(frozen=True)
class Increment:
    """Adds a step from frame to frame.

    Parameters
    ----------
    field : str or Field
        One of ``FIELDS``, ``vlan[n].id``, ``mpls[n].label``..., or a place and a mask.
    first : int, str or None
        Value of the first frame, a number or an address; None: what the headers have.
    step : int
        1 to 2^32-1.
    count : int
        Values until the first comes again, 1 to 2^32-1; 0: never, the field counts on through all its values.
    """

    field: str | Field
    first: Value | None = None
    step: int = 1
    count: int = 0

    def __post_init__(self) -> None:
        _check_values(self.first)
        if not 1 <= self.step < WORD:
            raise UsageError(f"step {self.step} of a modifier is out of range: give 1 to {WORD - 1}")
        if not 0 <= self.count < WORD:
            raise UsageError(f"count {self.count} of a modifier is out of range: give 0 (endless) to {WORD - 1}")

    @property
    def signed_step(self) -> int:
        """What is added to the value from frame to frame."""
        return self.step


@dataclass(frozen=True)
class Decrement(Increment):
    """Takes a step away from frame to frame; parameters as of Increment."""

    @property
    def signed_step(self) -> int:
        """What is added to the value from frame to frame."""
        return -self.step


@dataclass(frozen=True)
class Random:
    """Draws all bits of the field anew for each frame: those of a 32-bit random number under the mask.

    Parameters
    ----------
    field : str or Field
        As of Increment.
    """

    field: str | Field


@dataclass(frozen=True)
class Values:
    """Takes the values of a list, from the first to the last and again, or drawn at random.

    Parameters
    ----------
    field : str or Field
        As of Increment.
    values : tuple of int or str
        1 to 64 numbers or addresses.
    random : bool
        Each frame draws one of them.
    """

    field: str | Field
    values: tuple[Value, ...]
    random: bool = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.values) <= LIST_ENTRIES_MAX:
            raise UsageError(f"a list of {len(self.values)} values is out of range: give 1 to {LIST_ENTRIES_MAX}")
        _check_values(*self.values)


Modifier = Increment | Decrement | Random | Values

# Named fields ------------------------------------------------------------------------------------------

Place = Callable[[Headers], int]
HALF = 0xFFFF
ALL = 0xFFFFFFFF

#: By name: what the headers must have, the first of four octets, the mask. A field of 16 bits is the window's end.
FIELDS: dict[str, tuple[str, Place, int]] = {
    "mac.destination": ("", lambda _: 2, ALL),
    "mac.source": ("", lambda _: 8, ALL),
    "ipv4.source": ("IPv4", lambda headers: headers.network_offset + 12, ALL),
    "ipv4.destination": ("IPv4", lambda headers: headers.network_offset + 16, ALL),
    "ipv4.tos": ("IPv4", lambda headers: headers.network_offset - 2, 0xFF),
    "ipv4.identification": ("IPv4", lambda headers: headers.network_offset + 2, HALF),
    "ipv6.source": ("IPv6", lambda headers: headers.network_offset + 20, ALL),
    "ipv6.destination": ("IPv6", lambda headers: headers.network_offset + 36, ALL),
    "ipv6.flow_label": ("IPv6", lambda headers: headers.network_offset, 0xFFFFF),
    "udp.source": ("UDP", lambda headers: headers.transport_offset - 2, HALF),
    "udp.destination": ("UDP", lambda headers: headers.transport_offset, HALF),
    "tcp.source": ("TCP", lambda headers: headers.transport_offset - 2, HALF),
    "tcp.destination": ("TCP", lambda headers: headers.transport_offset, HALF),
    "tcp.sequence": ("TCP", lambda headers: headers.transport_offset + 4, ALL),
}
#: Fields of a tag or label, by what follows ``vlan[n]`` or ``mpls[n]``: its window ends with the TCI, or is the label.
STACKED = {"vlan.id": 0xFFF, "vlan.priority": 0xE000, "mpls.label": 0xFFFFF000}
STACKED_NAME = re.compile(r"(vlan|mpls)\[(\d+)\]\.(\w+)")
FIELD_NAMES = (*FIELDS, "vlan[n].id", "vlan[n].priority", "mpls[n].label")


def field_of(name: str | Field, headers: Headers) -> Field:
    """Return place and mask of a field behind these headers.

    Raises
    ------
    UsageError
        Where there is no such field, or these headers don't have it.
    """
    if isinstance(name, Field):
        return name
    if found := STACKED_NAME.fullmatch(name):
        stack, place, part = found[1], int(found[2]), found[3]
        entries = len(headers.vlan_tags if stack == "vlan" else headers.mpls_labels)
        if f"{stack}.{part}" in STACKED:
            if place >= entries:
                what = "VLAN tags" if stack == "vlan" else "MPLS labels"
                raise UsageError(f"field '{name}' is not in the headers, which have {entries} {what}: add it there")
            start = headers.labels_offset if stack == "mpls" else 12
            return Field(start + 4 * place, STACKED[f"{stack}.{part}"])
    if name not in FIELDS:
        advice = nearest(re.sub(r"\[\d+\]", "[n]", name), FIELD_NAMES)
        raise UsageError(f"'{name}' is not a field: {advice}; any other bits have an offset and a mask")
    needed, offset, mask = FIELDS[name]
    has = {
        "": True,
        "IPv4": headers.is_ipv4,
        "IPv6": headers.is_ipv6,
        "UDP": headers.has_transport and headers.transport == "udp",
        "TCP": headers.has_transport and headers.transport == "tcp",
    }
    if not has[needed]:
        raise UsageError(f"field '{name}' needs {needed}, which these headers don't have: change them, or the field")
    return Field(offset(headers), mask)


def value_of(value: Value, name: str | Field, headers: Headers) -> int:
    """Return a value as a number of the field; the upper part of a MAC or IPv6 address must be that of the headers.

    Raises
    ------
    UsageError
        Where an address can't be read, does not belong to the field, or the value needs more bits than the field has.
    """
    field = field_of(name, headers)
    number = value if isinstance(value, int) else _address(value, name, headers)
    if number > field.most:
        raise UsageError(f"value {value} does not fit into field '{name}': give 0 to {field.most}")
    return number


def _address(text: str, name: str | Field, headers: Headers) -> int:
    of_headers = {
        "mac.destination": headers.destination_mac,
        "mac.source": headers.source_mac,
        "ipv4.source": headers.source_ip,
        "ipv4.destination": headers.destination_ip,
        "ipv6.source": headers.source_ip,
        "ipv6.destination": headers.destination_ip,
    }
    if not isinstance(name, str) or name not in of_headers:
        raise UsageError(f"value '{text}' of field '{name}' is not a number: give a whole number")
    octets, own = (_octets(one, name) for one in (text, of_headers[name]))
    if octets[:-WINDOW] != own[:-WINDOW]:
        raise UsageError(
            f"'{text}' differs from {of_headers[name]} of the headers in more than its last four octets: "
            f"field '{name}' changes these alone"
        )
    return int.from_bytes(octets[-WINDOW:])


def _octets(text: str, name: str) -> bytes:
    if name.startswith("mac"):
        return mac_octets(text)
    try:
        return (ipaddress.IPv4Address if name.startswith("ipv4") else ipaddress.IPv6Address)(text).packed
    except ValueError:
        kind = "IPv4" if name.startswith("ipv4") else "IPv6"
        raise UsageError(f"'{text}' is not an {kind} address, which field '{name}' takes") from None
