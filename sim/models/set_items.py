# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What a stream of configuration sets says, octet by octet."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Template:
    """What is the same in all frames.

    Attributes
    ----------
    header : bytes
        All octets before the sequence, or the fill.
    length : int
        Octets of a frame without FCS.
    fields : int
        Bits of the fields that sets have, as in a control octet.
    places : dict of int to int
        First octet in the header, by the bit of the field.
    complement : bool
        The last two octets of a frame make the checksum of UDP or TCP right.
    entries : int
        Of the table.
    """

    header: bytes
    length: int
    fields: int
    places: dict[int, int]
    complement: bool
    entries: int = 1 << 16


@dataclass(frozen=True)
class Set:
    """What a set says; ``end``: octets of the stream up to its end."""

    values: dict[int, int]
    end: int


@dataclass(frozen=True)
class Repeats:
    """How often the last frame may be repeated from here on."""

    count: int
    end: int


@dataclass(frozen=True)
class End:
    """No more sets; ``error`` says why, "" at the end of the stream as it should be."""

    error: str
    end: int


Item = Set | Repeats | End
#: Octets of a field in the stream, by its bit.
OCTETS = {1: 4, 2: 16, 4: 2, 8: 2, 16: 2, 32: 2}
LENGTH, INDEX = 16, 32


def items(octets: bytes, template: Template) -> Iterator[Item]:
    """Yield what a stream says, up to its end; a set that isn't whole is not there yet."""
    at, is_first, run = 0, True, 0
    while at < len(octets):
        control = octets[at]
        at += 1
        if control == 0xFF:
            continue
        if control == 0xC0:
            yield End("", at)
            return
        if control in (0x80, 0xA0):
            if at + 2 > len(octets):
                return
            at += 2
            number = int.from_bytes(octets[at - 2 : at])
            if control == 0x80:
                yield Repeats(number, at)
            else:
                run = number
            continue
        wrong = wrong_control(control, template, is_first, run)
        if wrong:
            yield End(wrong, at)
            return
        for _ in range(run + 1):
            item = one_set(octets, at, control, template)
            if item is None:
                return
            yield item
            if isinstance(item, End):
                return
            at = item.end
        is_first, run = False, 0


def wrong_control(control: int, template: Template, is_first: bool, run: int) -> str:
    """Return what is wrong with the control octet of a set, "" if nothing is."""
    if control >= 64 or (run and not control):
        return "control"
    if control | template.fields != template.fields:
        return "field"
    return "incomplete" if is_first and control != template.fields else ""


def one_set(octets: bytes, at: int, control: int, template: Template) -> Set | End | None:
    """Return the set whose fields begin at an octet; None where it isn't whole."""
    values = {}
    for bit, count in OCTETS.items():
        if not control & bit:
            continue
        if at + count > len(octets):
            return None
        at += count
        value = values[bit] = int.from_bytes(octets[at - count : at])
        if bit == LENGTH and not 60 <= value <= 9000:
            return End("length", at)
        if bit == INDEX and value >= template.entries:
            return End("index", at)
    return Set(values, at)
