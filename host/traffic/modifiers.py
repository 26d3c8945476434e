# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Changes a field of the headers from frame to frame: it counts, is random, or takes values of a list."""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from liteprobe.cores.formats import LIST_ENTRIES_MAX
from liteprobe.cores.formats import MODIFIERS as MODIFIERS_MAX
from liteprobe.host.base.document import (
    NAME,
    WORD_MAX,
    Entries,
    FieldValue,
    Key,
    Made,
    OneOf,
    Section,
    Several,
    Whole,
    build,
    check_fields,
    key,
    keys_of,
    values_of,
)
from liteprobe.host.base.errors import UsageError, nearest
from liteprobe.host.base.validate import validated
from liteprobe.host.traffic.headers import Headers, mac_octets
from liteprobe.host.traffic.lengths import ORDERS

WINDOW = 4  # Octets.
OFFSET_MAX = 124

Value = int | str


@validated
@dataclass(frozen=True)
class Field:
    """Any bits of the headers, by place and mask: the first octet is in the highest bits, values count the lowest of these bits."""

    offset: int = key("offset", Whole(0, OFFSET_MAX), "In the place of `field`: the first of four octets, even.")
    mask: int = key(
        "mask", Whole(1, WORD_MAX, hexadecimal=True), "With `offset`: the bits of the four octets that change."
    )

    def __post_init__(self) -> None:
        if self.offset % 2:
            raise UsageError(f"offset {self.offset} of a field is out of range: give an even number and move the mask")
        check_fields(self, " of a field")

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


@validated
@dataclass(frozen=True)
class Increment:
    """Adds a step from frame to frame; its field is one of ``FIELDS``, ``vlan[n].id``, ``mpls[n].label``, or place and mask."""

    field: str | Field
    first: Value | None = key(
        "first",
        FieldValue(),
        "Of `increment` and `decrement`: value of the first frame.",
        None,
        "what the headers have",
    )
    step: int = key("step", Whole(1, WORD_MAX), "Of `increment` and `decrement`: what is added or taken away.", 1)
    count: int = key(
        "count", Whole(0, WORD_MAX), "Of `increment` and `decrement`: values until the first comes again; 0: never.", 0
    )

    def __post_init__(self) -> None:
        check_fields(self, " of a modifier")

    @property
    def signed_step(self) -> int:
        """Step that is added to the value from frame to frame."""
        return self.step


@validated
@dataclass(frozen=True)
class Decrement(Increment):
    """Takes a step away from frame to frame; parameters as of Increment."""

    @property
    def signed_step(self) -> int:
        """Step that is added to the value from frame to frame."""
        return -self.step


@validated
@dataclass(frozen=True)
class Random:
    """Draws all bits of the field anew for each frame: those of a 32-bit random number under the mask."""

    field: str | Field


@validated
@dataclass(frozen=True)
class Values:
    """Takes the values of a list, from the first to the last and again, or each frame draws one of them."""

    field: str | Field
    values: tuple[Value, ...] = key(
        "values", Several(FieldValue(), LIST_ENTRIES_MAX), "Of `values`: those that the field takes."
    )
    random: bool = False

    def __post_init__(self) -> None:
        check_fields(self, " of a modifier")


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
    """Return place and mask of a field of these headers.

    Raises UsageError where there is no such field, or these headers don't have it.
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

    Raises UsageError where an address can't be read, does not belong to the field, or the value needs more bits than
    the field has.
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


# In documents ------------------------------------------------------------------------------------------

OPERATIONS: dict[str, type[Modifier]] = {
    "increment": Increment,
    "decrement": Decrement,
    "random": Random,
    "values": Values,
}
MODIFIER = Section(
    "modifier",
    {
        "field": Key(NAME, "What changes, by name."),
        **{name: replace(one, is_needed=False) for name, one in keys_of(Field).items()},
        "op": Key(OneOf(tuple(OPERATIONS)), "How it changes from frame to frame.", is_needed=True),
        **keys_of(Increment),
        "values": replace(keys_of(Values)["values"], is_needed=False),
        "order": Key(OneOf(ORDERS), "Of `values`: `random` draws one for each frame.", "cyclic"),
    },
)


def _modifier(given: Entries) -> Modifier:
    values, operation = given.values, given.values["op"]
    kind = OPERATIONS[operation]
    given.refuse_both(("field", "offset"), "modifier")
    own = {**keys_of(kind), **({"order": None} if kind is Values else {})}
    for name in values:
        if name not in ("op", "field", *keys_of(Field), *own):
            raise given.error(name, f"'{name}' is not of op '{operation}': leave it out, or change op")
    if "field" in values and "mask" in values:
        raise UsageError("a mask belongs to 'offset', a field has its own: leave it out")
    if "field" not in values and not keys_of(Field).keys() <= values.keys():
        raise UsageError("a modifier needs 'field', or 'offset' and 'mask': say what changes")
    if kind is Values and "values" not in values:
        raise UsageError("op 'values' needs 'values': give those that the field takes")
    others: dict[str, Any] = {"field": values["field"] if "field" in values else build(Field, given)}
    if kind is Values:
        others["random"] = values.get("order") == "random"
    made: Modifier = build(kind, given, **others)
    return made


def _modifier_values(modifier: Modifier) -> dict[str, Any]:
    field, operation = modifier.field, next(name for name, kind in OPERATIONS.items() if type(modifier) is kind)
    found = values_of(field) if isinstance(field, Field) else {"field": field}
    order = {"order": "random"} if isinstance(modifier, Values) and modifier.random else {}
    return {**found, "op": operation, **values_of(modifier), **order}


MODIFIERS = Several(Made(MODIFIER, _modifier, _modifier_values), MODIFIERS_MAX)
