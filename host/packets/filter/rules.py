# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Turns expressions into rules of an emulator, which name the classes of frames: exactly the frames that libpcap matches.

A rule says of each half of an octet of the header which values it may have, and bounds of ports and length. An expression is
rules in sequence, of which the first that holds says whether the expression does.

Source: docs/design/emulator.md ("Rules"); libpcap's gencode.c, for what each word looks at behind ``vlan`` and ``mpls``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from liteprobe.cores.formats import EXTENSION, LABELS_MAX, TAG_KINDS, TAGS_MAX, UNIFIED_PLACES, IpProtocol, Layer3
from liteprobe.cores.formats.emulate import (
    RULE_BLOCK_WORDS,
    RULE_BOUNDS,
    RULE_DENIES_BIT,
    RULE_HALVES,
    RULE_KINDS_WORD,
    RULE_RANGES,
    RULE_TURNS,
    RULE_VERDICTS,
    RULES,
    RULES_MOST,
)
from liteprobe.host.base.errors import UsageError
from liteprobe.host.packets.filter import nodes
from liteprobe.host.packets.filter.boxes import FilterDoesNotFit
from liteprobe.host.packets.filter.expression import Expression

ANY = 0xFFFF  # Values of half an octet, a bit each.
LENGTH = RULE_RANGES.index("length")
MOST = 1024  # Rules on the way: what needs more is not worked out to its end.

#: Octet of the header in which a field begins.
AT = {name: 4 * word + octet for name, (word, octet) in UNIFIED_PLACES.items()}
LAYER3 = AT["reserved"]  # Bits 1..0; bit 2: it has ports.
COUNTS = AT["layers"]  # Tags, labels.
#: Octets of headers by protocol, as places of the unified header; what is negative is the complement of a constant.
IP = AT["ip"]
OCTETS: Mapping[str, Mapping[int, int]] = {
    "ip": {
        place: (IP if place < 12 else AT["source"] - 12 if place < 16 else AT["destination"] - 16) + place
        for place in range(20)
    },
    "ip6": {place: (IP if place < 8 else AT["source"] - 8) + place for place in range(40)},
    "arp": {
        **{place: ~octet for place, octet in enumerate(bytes.fromhex("00010800"))},
        **{place: IP - 4 + place for place in range(4, 8)},
        **{place: AT["source"] - 14 + place for place in range(14, 18)},
        **{place: AT["destination"] - 24 + place for place in range(24, 28)},
    },
    **{name: {place: AT["source_port"] + place for place in range(4)} for name in ("udp", "sctp", "icmp", "icmp6")},
    "tcp": {
        **{place: AT["source_port"] + place for place in range(4)},
        **{place: AT["sequence"] - 4 + place for place in range(4, 8)},
        **{place: AT["detail"] - 12 + place for place in range(12, 16)},
    },
    "ether": {
        **{place: AT["destination_mac"] + place for place in range(12)},
        12: AT["ethertype"] + 1,
        13: AT["ethertype"],
    },
}
LAYERS = {"ip": Layer3.IPV4, "ip6": Layer3.IPV6, "arp": Layer3.ARP}
TYPES = {Layer3.IPV4: 0x0800, Layer3.IPV6: 0x86DD, Layer3.ARP: 0x0806}
MPLS_UNICAST = 0x8847
OF_FLAGS = 2 * (AT["flags"] + 1)  # The half with bits 11 to 8 of the flags.
TRANSPORT_BIT, TCP_BIT = 1, 2  # In that half.


@dataclass(frozen=True)
class Product:
    """Says which values halves of octets may have, by their number (bits of 16; others may have all), and ranges of fields."""

    halves: Mapping[int, int]
    ranges: Mapping[int, tuple[int, int]]

    def __and__(self, other: "Product") -> "Product | None":
        """Return what both say; None where nothing is left."""
        halves, ranges = dict(self.halves), dict(self.ranges)
        for half, values in other.halves.items():
            halves[half] = halves.get(half, ANY) & values
            if not halves[half]:
                return None
        for field, (low, high) in other.ranges.items():
            least, most = ranges.get(field, (low, high))
            ranges[field] = max(low, least), min(high, most)
            if ranges[field][0] > ranges[field][1]:
                return None
        return Product(halves, ranges)

    def covers(self, other: "Product") -> bool:
        """Tell whether this holds wherever the other does."""
        return all(not other.halves.get(half, ANY) & ~values for half, values in self.halves.items()) and all(
            field in other.ranges and low <= other.ranges[field][0] and other.ranges[field][1] <= high
            for field, (low, high) in self.ranges.items()
        )

    def joined(self, other: "Product") -> "Product | None":
        """Return what holds where one of both does; None where a product can't say that."""
        if self.covers(other):
            return self
        if other.covers(self):
            return other
        halves = [
            half
            for half in self.halves.keys() | other.halves.keys()
            if self.halves.get(half, ANY) != other.halves.get(half, ANY)
        ]
        ranges = [
            field
            for field in self.ranges.keys() | other.ranges.keys()
            if self.ranges.get(field) != other.ranges.get(field)
        ]
        if len(halves) + len(ranges) != 1:
            return None
        if halves:
            values = self.halves[halves[0]] | other.halves[halves[0]]
            rest = {half: one for half, one in self.halves.items() if half != halves[0]}
            return Product(rest if values == ANY else rest | {halves[0]: values}, self.ranges)
        (low, high), (least, most) = self.ranges[ranges[0]], other.ranges[ranges[0]]
        if max(low, least) > min(high, most) + 1:
            return None
        return Product(self.halves, {**self.ranges, ranges[0]: (min(low, least), max(high, most))})


EVERY = Product({}, {})
#: Products in sequence, each with whether the expression holds for what it is the first to hold for; else it doesn't.
Sequence_ = tuple[tuple[Product, bool], ...]
ALWAYS: Sequence_ = ((EVERY, True),)
NEVER: Sequence_ = ()


def tidy(entries: Iterable[tuple[Product, bool]]) -> Sequence_:
    """Return fewer entries that say the same."""
    found: list[tuple[Product, bool]] = []
    for new, holds in entries:
        if any(before.covers(new) for before, _ in found):
            continue
        # Down to the last one that says otherwise of the same frames, order doesn't matter.
        place = len(found)
        while place and (found[place - 1][1] == holds or (found[place - 1][0] & new) is None):
            place -= 1
            joined = found[place][0].joined(new) if found[place][1] == holds else None
            if joined is not None and all((joined & later) is None for later, said in found[place:] if said != holds):
                del found[place]
                new, place = joined, len(found)
        found.append((new, holds))
        if len(found) > MOST:
            raise TooManyError
    while found and not found[-1][1]:
        found.pop()
    return tuple(found)


class TooManyError(Exception):
    """More rules are needed than are worked out."""


def negated(one: Sequence_) -> Sequence_:
    """Return what holds where this doesn't."""
    return tidy([*((product, not holds) for product, holds in one), (EVERY, True)])


def _both(first: Sequence_, second: Sequence_) -> Sequence_:
    found: list[tuple[Product, bool]] = []
    # Where the second says nothing the first goes on: to a case of which the second says nothing either, or to one that denies.
    rest = () if all(holds for _, holds in first) else ((EVERY, False),)
    for product, holds in first:
        if not holds:
            found.append((product, False))
            continue
        for other, also in (*second, *rest):
            common = product & other
            if common is not None:
                found.append((common, also))
        if len(found) > 4 * MOST:
            raise TooManyError
    return tidy(found)


def both(first: Sequence_, second: Sequence_) -> Sequence_:
    """Return what holds where both do."""
    return min(_both(first, second), _both(second, first), key=len)


def either(parts: Iterable[Sequence_]) -> Sequence_:
    """Return what holds where one of some does."""
    parts = list(parts)
    # Cases that deny nothing may stand one after the other, and before one that does.
    plain = tidy(entry for one in parts if all(holds for _, holds in one) for entry in one)
    found = NEVER
    for one in (one for one in parts if not all(holds for _, holds in one)):
        found = negated(both(negated(found), negated(one))) if found else one
    return min(tidy((*plain, *found)), negated(both(negated(plain), negated(found))), key=len) if found else plain


def values(holds: Callable[[int], bool]) -> int:
    """Return the set of values of half an octet for which something holds."""
    return sum(1 << value for value in range(16) if holds(value))


def halves(octet: int, value: int, mask: int = 0xFF) -> dict[int, int]:
    """Return what an octet of the header must be."""
    found = {}
    for half, shift in ((2 * octet, 0), (2 * octet + 1, 4)):
        part, bits = value >> shift & 15, mask >> shift & 15
        if bits:
            found[half] = values(lambda one, part=part, bits=bits: (one ^ part) & bits == 0)  # type: ignore[misc]
    return found


def number(octets: Sequence[int], value: int, mask: int) -> Product:
    """Return what octets of the header must be for their number, the first octet highest, to be a value."""
    found: dict[int, int] = {}
    for place, octet in enumerate(reversed(octets)):
        found |= halves(octet, value >> 8 * place & 255, mask >> 8 * place & 255)
    return Product(found, {})


def compared(octets: Sequence[int], relation: nodes.Relation) -> Sequence_:
    """Return the relation of a number of octets; negative ones are the complement of a constant."""
    octets = [*[~0] * (4 - len(octets)), *octets]
    compare, parts = relation.compare, []
    for place, octet in enumerate(octets):
        for is_high in (1, 0):
            shift = 4 * (2 * (3 - place) + is_high)
            at = 2 * octet + is_high if octet >= 0 else ~(~octet >> 4 * is_high & 15)
            parts.append((at, relation.mask >> shift & 15, relation.value >> shift & 15))

    def one(at: int, holds: Callable[[int], bool]) -> dict[int, int] | None:
        """Return what half an octet must be; None: it can't."""
        if at < 0:
            return {} if holds(~at) else None
        found = values(holds)
        return {} if found == ANY else {at: found} if found else None

    beyond: dict[str, Callable[[int, int], bool]] = {"<": int.__lt__, ">": int.__gt__}
    found: list[Product] = []
    so_far: dict[int, int] | None = {}
    for at, mask, value in parts:
        if compare[0] in beyond and so_far is not None:
            more = one(at, lambda half, mask=mask, value=value: beyond[compare[0]](half & mask, value))  # type: ignore[misc]
            if more is not None:
                found.append(Product(so_far | more, {}))
        same = one(at, lambda half, mask=mask, value=value: half & mask == value)  # type: ignore[misc]
        so_far = None if so_far is None or same is None else so_far | same
    if compare in ("=", "!=", "<=", ">=") and so_far is not None:
        found.append(Product(so_far, {}))
    holds = tidy((product, True) for product in found)
    return negated(holds) if compare == "!=" else holds


def ranged(field: int, least: int, most: int) -> Sequence_:
    """Return what a port or the length must be."""
    if least > most:
        return NEVER
    if (least, most) == (0, 0xFFFF):
        return ALWAYS
    if field != LENGTH:  # A range that is one value of each half, or some of one, is joined with others of its kind.
        octets = [AT["source_port"] + 2 * field, AT["source_port"] + 2 * field + 1]
        found = both(
            *(
                compared(octets, nodes.Relation("", (0, 2), 0xFFFF, compare, value))
                for compare, value in ((">=", least), ("<=", most))
            )
        )
        if len(found) == 1:
            return found
    return ((Product({}, {field: (least, most)}), True),)


class RuleWalk:
    """A walk through an expression as libpcap reads it, from the left: ``vlan`` and ``mpls`` move what comes after them."""

    def __init__(self) -> None:
        self.tags = self.labels = 0

    def of(self, node: nodes.Node) -> Sequence_:
        """Return the rules of a part.

        Raises FilterDoesNotFit where the header doesn't have what it looks at.
        """
        match node:
            case nodes.Everything():
                return ALWAYS
            case nodes.Not(part=part):
                return negated(self.of(part))
            case nodes.And(parts=parts):
                return reduce(both, [self.of(part) for part in parts])
            case nodes.Or(parts=parts):
                return either([self.of(part) for part in parts])
            case nodes.Layer3Type(kinds=kinds, is_outermost=is_outermost):
                return either(self.type_of(kind, is_outermost) for kind in sorted(kinds))
            case nodes.CarriedProtocol(number=carried, kinds=kinds):
                return self.carried(carried, kinds & nodes.IP)
            case nodes.Address(side=side, network=network):
                octets = range(AT[side], AT[side] + network.max_prefixlen // 8)
                address = number(octets, int(network.network_address), int(network.netmask))
                return all_of(self.here, layers(node.kinds), address)
            case nodes.PortRange(side=side, least=least, most=most):
                has_ports = Product({2 * LAYER3: values(lambda one: bool(one & 4))}, {})
                plain = all_of(self.here, has_ports, Product(halves(AT["extensions"], 0), {}))
                return both(plain, ranged(RULE_RANGES.index(f"{side}_port"), least, most))
            case nodes.Vlan(number=vlan):
                return self.vlan(vlan)
            case nodes.Mpls(number=label):
                return self.mpls(label)
            case nodes.Mac(side=side, octets=octets_):
                first = AT[f"{side}_mac"]
                return all_of(number(range(first, first + 6), int.from_bytes(octets_), (1 << 48) - 1))
            case nodes.OnHost(relations=relations):
                return reduce(both, map(self.relation, relations))
        reason = "it looks at octets that the probe doesn't keep of a frame"
        raise FilterDoesNotFit(node.text, reason, "match by other fields of its headers")

    @property
    def here(self) -> Product:
        """Product that says where layer 3 is: behind as many tags and labels as were written."""
        return Product({2 * COUNTS: 1 << self.tags, 2 * COUNTS + 1: 1 << self.labels}, {})

    def type_of(self, kind: Layer3, is_outermost: bool) -> Sequence_:
        """Return what a type of layer 3 is."""
        if is_outermost:
            return self.relation(nodes.Relation("ether", (12, 2), nodes.WORD_MOST, "=", TYPES[kind]))
        if self.labels:  # Libpcap looks at the version behind the last label.
            return all_of(self.here, layers({kind}))
        return self.relation(nodes.Relation("type", (12, 2), nodes.WORD_MOST, "=", TYPES[kind]))

    def carried(self, protocol: int, kinds: Iterable[Layer3]) -> Sequence_:
        """Return what carries a protocol: in IPv6, libpcap looks at the first header, and behind it where that is of a fragment."""
        first, fragment = AT["ip"] + 6, EXTENSION | IpProtocol.FRAGMENT
        if protocol not in nodes.EXTENSIONS:
            # Of all numbers that are here these halves let pass that of a fragment, and none.
            either_ = {half: bits | 1 for half, bits in halves(AT["extensions"], fragment).items()}
            plain = Product(either_ | halves(AT["extensions"] + 1, 0), {})
            return all_of(self.here, layers(kinds), Product(halves(AT["protocol"], protocol), {}), plain)
        found = []
        if Layer3.IPV4 in kinds:
            found.append(all_of(self.here, layers({Layer3.IPV4}), Product(halves(AT["protocol"], protocol), {})))
        if Layer3.IPV6 in kinds:
            of_six = (self.here, layers({Layer3.IPV6}))
            found.append(all_of(*of_six, Product(halves(first, protocol), {})))
            behind = Product(halves(AT["ip"] + 8, protocol) | halves(AT["extensions"], fragment), {})
            found.append(all_of(*of_six, behind))
        return either(found)

    def vlan(self, vlan: int | None) -> Sequence_:
        """Return what has one more tag, with an id unless None."""
        tags, self.tags = self.tags, self.tags + 1
        if tags >= TAGS_MAX:
            return NEVER
        there = Product({2 * COUNTS: values(lambda one: tags < one <= TAGS_MAX)}, {})
        at = AT["tags"] + 4 * tags
        return all_of(there, *([] if vlan is None else [number((at, at + 1), vlan, 0xFFF)]))

    def mpls(self, label: int | None) -> Sequence_:
        """Return what has one more label, this one unless None."""
        labels, self.labels = self.labels, self.labels + 1
        if labels >= LABELS_MAX or self.tags > TAGS_MAX:
            return NEVER
        there = {2 * COUNTS: 1 << self.tags, 2 * COUNTS + 1: values(lambda one: labels < one <= LABELS_MAX)}
        if not labels:
            there |= halves(AT["ethertype"], MPLS_UNICAST & 255) | halves(AT["ethertype"] + 1, MPLS_UNICAST >> 8)
        at = AT["labels"] + 4 * labels
        asked = [] if label is None else [number(range(at, at + 4), label << 12, 0xFFFFF000)]
        return all_of(Product(there, {}), *asked)

    def relation(self, asked: nodes.Relation) -> Sequence_:
        """Return a relation; what layer 3 and the protocol are stands beside it."""
        protocol, places = asked.protocol, range(asked.place[0], sum(asked.place))
        if protocol == "len":
            least, most = {"<": (0, asked.value - 1), "<=": (0, asked.value), ">": (asked.value + 1, 0xFFFF)}.get(
                asked.compare, (asked.value, 0xFFFF if asked.compare == ">=" else asked.value)
            )
            found = ranged(LENGTH, min(least, 0x10000), min(most, 0xFFFF))
            return negated(found) if asked.compare == "!=" else found
        if protocol == "type":
            return self.of_type(asked.value)
        octets = [OCTETS[protocol][place] for place in places]
        if protocol == "ether":
            return outermost(octets, asked)
        if protocol in LAYERS:
            return both(all_of(layers({LAYERS[protocol]})), compared(octets, asked))
        bit = TCP_BIT if protocol == "tcp" and places[-1] > 3 else TRANSPORT_BIT
        there = {OF_FLAGS: values(lambda one: bool(one >> bit & 1))}
        return both(all_of(Product(there | halves(AT["extensions"], 0), {})), compared(octets, asked))

    def of_type(self, wanted: int) -> Sequence_:
        """Return what has a type behind as many tags as were written."""
        if wanted in TAG_KINDS:
            if self.tags >= TAGS_MAX:
                return NEVER
            half, shift = 2 * AT["tag_kinds"] + self.tags // 2, 2 * (self.tags % 2)
            kind = {half: values(lambda one: one >> shift & 3 == TAG_KINDS[wanted])}
            return all_of(Product(kind | {2 * COUNTS: values(lambda one: self.tags < one <= TAGS_MAX)}, {}))
        is_type = halves(AT["ethertype"], wanted & 255) | halves(AT["ethertype"] + 1, wanted >> 8)
        return all_of(Product(is_type | {2 * COUNTS: 1 << self.tags}, {}))


def layers(kinds: Iterable[Layer3]) -> Product:
    """Return what is one of these kinds of layer 3."""
    wanted = {int(kind) for kind in kinds}
    return Product({2 * LAYER3: values(lambda one: one & 3 in wanted)}, {})


def all_of(*products: Product) -> Sequence_:
    """Return what all products say."""
    found: Product | None = EVERY
    for one in products:
        found = None if found is None or not all(one.halves.values()) else found & one
    if found is None:
        return NEVER
    return (
        (Product({half: bits & ANY for half, bits in found.halves.items() if bits & ANY != ANY}, found.ranges), True),
    )


def outermost(octets: Sequence[int], asked: nodes.Relation) -> Sequence_:
    """Return a relation of MACs and the type behind them, which is that of the outermost tag where there is one."""
    if not {AT["ethertype"], AT["ethertype"] + 1} & set(octets):
        return compared(octets, asked)
    untagged = both(all_of(Product({2 * COUNTS: 1}, {})), compared(octets, asked))
    tagged = []
    for number_, kind in TAG_KINDS.items():
        known = {AT["ethertype"] + 1: ~(number_ >> 8), AT["ethertype"]: ~(number_ & 255)}
        is_kind = all_of(Product({2 * AT["tag_kinds"]: values(lambda one, kind=kind: one & 3 == kind)}, {}))  # type: ignore[misc]
        tagged.append(both(is_kind, compared([known.get(octet, octet) for octet in octets], asked)))
    # Without a tag the kind is 0.
    return either([untagged, *tagged])


# Rules of a direction ------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClassRules:
    """Holds the rules of a direction, in the order of their classes."""

    rules: tuple[tuple[Product, bool, int], ...]  # The third is the class.

    @property
    def looks(self) -> int:
        """Word for ``rule_words``."""
        words = {half // RULE_HALVES for product, _, _ in self.rules for half in product.halves}
        fields = {field for product, _, _ in self.rules for field in product.ranges}
        if self.rules and not words | fields:
            words = {RULE_KINDS_WORD}
        return sum(1 << place for place in words | fields)

    @cached_property
    def memory(self) -> dict[int, int]:
        """Words for the memory of rules, by address: all that are looked at."""
        found: dict[int, int] = {}
        nibbles, looks = np.arange(16), self.looks
        for block in range(-(-len(self.rules) // RULES)):
            bits = [
                (place, product)
                for place, (product, _, _) in enumerate(self.rules[RULES * block : RULES * (block + 1)])
            ]
            for half in (half for half in range(24, 256) if looks >> half // RULE_HALVES & 1):
                at = RULE_BLOCK_WORDS * block + 16 * half
                words = np.zeros(16, int)
                for place, product in bits:
                    words |= (product.halves.get(half, ANY) >> nibbles & 1) << place
                found |= dict(zip(range(at, at + 16), map(int, words), strict=True))
            for field in (field for field in range(len(RULE_RANGES)) if looks >> field & 1):
                for step in range(8):
                    at, shift = RULE_BLOCK_WORDS * block + RULE_BOUNDS + 32 * (8 + 8 * field + step), 4 * (step % 4)
                    for is_equal in range(2):
                        words = np.zeros(16, int)
                        for place, product in bits:
                            bound = product.ranges.get(field, (0, 0xFFFF))[step // 4] >> shift & 15
                            inside = nibbles == bound if is_equal else nibbles > bound if step < 4 else nibbles < bound
                            words |= inside.astype(int) << place
                        found |= dict(
                            zip(range(at + 16 * is_equal, at + 16 * is_equal + 16), map(int, words), strict=True)
                        )
        return found

    def blocks(self, rules: int) -> list[tuple[int, list[int]]]:
        """Return what is written to the memory of a probe with so many rules: address of the first word, and words."""
        memory, a_turn = dict(self.memory), rules // RULE_TURNS
        for turn in range(RULE_TURNS if self.rules else 0):
            some = self.rules[a_turn * turn : a_turn * (turn + 1)]
            memory[RULE_VERDICTS + turn] = sum(
                (class_ | (not holds) << RULE_DENIES_BIT) << 4 * place for place, (_, holds, class_) in enumerate(some)
            )
        for block in range(-(-len(self.rules) // RULES), rules // RULES):
            looked_at = [address for address in self.memory if address < RULE_BLOCK_WORDS]
            memory |= {RULE_BLOCK_WORDS * block + address: 0 for address in looked_at}
        found: list[tuple[int, list[int]]] = []
        for address, word in sorted(memory.items()):
            if found and found[-1][0] + len(found[-1][1]) == address:
                found[-1][1].append(word)
            else:
                found.append((address, [word]))
        return found


def rules_of(expression: Expression) -> Sequence_:
    """Return the rules of an expression.

    Raises FilterDoesNotFit where the probe's headers don't have what it looks at, or it is thousands of rules; UsageError where
    no frame can match.
    """
    try:
        found = RuleWalk().of(expression.tree)
    except TooManyError:
        reason = f"it is more than {MOST} rules, and there are {RULES} to {RULES_MOST}"
        raise FilterDoesNotFit(expression.text, reason, "match by fewer or simpler cases") from None
    if not found:
        raise UsageError(f"no frame can be '{expression.text}': give another 'match'")
    return found


def class_rules(classes: Mapping[int, tuple[str, Expression]], most: int = RULES) -> ClassRules:
    """Return the rules of a direction, of which there are ``most``; ``classes``: name and expression by number.

    Raises as `rules_of`; UsageError where there are too many: says how many each class needs.
    """
    found = {place: rules_of(expression) for place, (_, expression) in sorted(classes.items())}
    count = sum(map(len, found.values()))
    if count > most:
        parts = ", ".join(f"'{classes[place][0]}' {len(rules)}" for place, rules in found.items())
        raise UsageError(
            f"the classes need {count} rules ({parts}), and a direction has {most}: match by fewer or simpler cases"
            + (f", or build with --rules {min(RULES_MOST, 1 << (count - 1).bit_length())}" if most < RULES_MOST else "")
        )
    return ClassRules(tuple((product, holds, place) for place, rules in found.items() for product, holds in rules))
