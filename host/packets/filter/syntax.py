# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads filter expressions in tcpdump's syntax.

Source: pcap-filter(7): `not` binds closest, `and` and `or` alike and from the left; an operand without a qualifier has that
of the one before.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from liteprobe.cores.formats import Layer3
from liteprobe.host.base.errors import UsageError
from liteprobe.host.packets.filter import words
from liteprobe.host.packets.filter.nodes import (
    IP,
    Address,
    And,
    CarriedProtocol,
    Everything,
    Layer3Type,
    Mac,
    Mpls,
    Node,
    Not,
    Octets,
    Or,
    PortRange,
    Vlan,
    ethertype,
    length,
    multicast,
)
from liteprobe.host.packets.filter.relations import FOUR, LLC_MOST, LONGEST, NAMES, RELATIONS, relation

TOKEN = re.compile(r"\s*(\(|\)|\[[^\]]*\]|&&|\|\||<=|>=|==|!=|<<|>>|[!<>=&|+*]|[^\s()\[\]!<>=&|+*]+)")
CONNECTIVES = {"and": "and", "&&": "and", "or": "or", "||": "or"}
NEGATIONS = ("not", "!")
VALUES = ("len", *NAMES)  # Of relations.
BEFORE = ("(", *CONNECTIVES, *NEGATIONS)
DIRECTIONS = {"src": "source", "dst": "destination"}
TYPES = ("host", "net", "port", "portrange")
SIX = frozenset({Layer3.IPV6})
KINDS = {"ip": FOUR, "ip6": SIX, "arp": frozenset({Layer3.ARP})}
#: Protocols that stand alone, and the versions of IP that tcpdump takes them of.
PROTOCOLS = {
    **dict.fromkeys(("tcp", "udp", "sctp", "pim", "esp", "ah"), IP),
    **dict.fromkeys(("icmp", "igmp", "vrrp"), FOUR),
    "icmp6": SIX,
}
ETHERTYPES = {"ip": 0x0800, "arp": 0x0806, "rarp": 0x8035, "ip6": 0x86DD}
BROADCAST = b"\xff" * 6
BOUND = ("inbound", "outbound")
UNKNOWN = {
    **dict.fromkeys(("gateway", "broadcast"), "needs what only a host on that network knows"),
    **dict.fromkeys(("protochain", "rarp", "pppoed", "pppoes", "geneve"), "is not looked at by the probe"),
    **dict.fromkeys(BOUND, "means nothing to a probe"),
}


@dataclass(frozen=True)
class Token:
    """A word of an expression, and where it is."""

    word: str
    start: int
    end: int


@dataclass(frozen=True)
class Head:
    """Qualifiers of an operand: protocol (or ``ether``), direction (or None: either), type."""

    protocol: str | None = None
    sides: tuple[str, ...] = ("source", "destination")
    is_both: bool = False  # ``src and dst``.
    type: str = "host"
    is_typed: bool = False  # The type stands right before the operand.


class ExpressionParser:
    """Reads one expression."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[Token] = []
        self.at = 0
        self.head: Head | None = None  # Of the last operand.
        place = 0
        while text[place:].strip():
            found = TOKEN.match(text, place)
            if not found:
                raise UsageError(f"'{text[place:].strip()}' can't be read: is a bracket missing?")
            self.tokens.append(Token(found[1], found.start(1), found.end(1)))
            place = found.end()

    # Words --------------------------------------------------------------------------------------

    @property
    def word(self) -> str:
        """The present word; "" at the end."""
        return self.tokens[self.at].word if self.at < len(self.tokens) else ""

    def after(self, count: int = 1) -> str:
        """Return a word behind the present one."""
        return self.tokens[self.at + count].word if self.at + count < len(self.tokens) else ""

    def take(self) -> str:
        """Return the present word, and go on behind it."""
        if self.at == len(self.tokens):
            raise UsageError(f"'{self.text}' ends too soon: something must come after '{self.tokens[-1].word}'")
        self.at += 1
        return self.tokens[self.at - 1].word

    def accept(self, *wanted: str) -> bool:
        """Go on behind the present word if it is one of these."""
        found = self.word in wanted
        self.at += found
        return found

    def since(self, first: int) -> str:
        """Return what was written from a token to the last one taken."""
        return self.text[self.tokens[first].start : self.tokens[self.at - 1].end]

    def unexpected(self, otherwise: str, more: Iterable[str] = ()) -> UsageError:
        """Return the error for the present word, where it is none of a filter; ``otherwise`` where it is, or a number.

        ``more``: what may be meant beside the words of filters.
        """
        if not self.word[:1].isalpha() or self.word in words.WORDS:
            return UsageError(otherwise)
        first = next((at for at in reversed(range(self.at)) if self.tokens[at].word in BEFORE), -1) + 1
        after = f" after '{self.since(first)}'" if first < self.at else ""
        likely = (
            words.meant(self.word, TYPES) if first < self.at and self.tokens[self.at - 1].word in DIRECTIONS else ""
        )
        likely = (
            likely or words.meant(self.word, (*words.WORDS, *more)) or words.meant(self.word, sorted(words.JOINTS), 0.5)
        )
        likely = likely or "write it like 'udp port 53 and net 10.0.0.0/8'"
        return words.WrongWordError(f"'{self.word}' is not a word of a filter{after}: {likely}")

    # Expressions --------------------------------------------------------------------------------

    def whole(self) -> Node:
        """Read all of it."""
        if not self.tokens:
            return Everything("")
        found = self.expression(self.term)
        if self.word:
            raise self.unexpected(f"'{self.word}' is unexpected after '{self.since(0)}': join both by 'and' or 'or'")
        return with_depths(with_depths(found, 0, Vlan)[0], 0, Mpls)[0]

    def expression(self, operand: Callable[[], Node]) -> Node:
        """Read operands that are joined; one behind another without a word between them is joined by `and`."""
        first = self.at
        found = operand()
        while self.word and self.word != ")":
            if self.word in CONNECTIVES:
                kind = CONNECTIVES[self.take()]
            elif self.starts_primitive():
                kind = "and"
            else:
                break
            other = operand()
            join = And if kind == "and" else Or
            before = found.parts if type(found) is join else (found,)
            found = join(self.since(first), (*before, other))
        return found

    def term(self) -> Node:
        """Read an operand, negated or in parentheses."""
        first = self.at
        if self.accept(*NEGATIONS):
            part = self.term()
            return Not(self.since(first), part)
        if self.word == "(":
            relation_ = self.relation()
            if not isinstance(relation_, Octets):
                return relation_
            self.at = first + 1
            return self.closed(self.expression(self.term), first)
        return self.primitive()

    def closed(self, found: Node, first: int) -> Node:
        """Take the parenthesis that ends what began at a token."""
        if not self.accept(")"):
            raise self.unexpected(f"'{self.since(first)}' is not closed: a ')' is missing")
        return replace(found, text=self.since(first))

    def starts_primitive(self) -> bool:
        """Tell whether the present word begins an operand of its own."""
        alone = ("vlan", "mpls", "less", "greater", "len", "proto", "ether", "multicast", "broadcast", "(", *NEGATIONS)
        return self.word in (*alone, *DIRECTIONS, *TYPES, *KINDS, *PROTOCOLS)

    # Primitives ---------------------------------------------------------------------------------

    def primitive(self) -> Node:
        """Read an operand."""
        first, word = self.at, self.word
        if self.after().startswith("[") or word == "len" or (word[:1].isdigit() and self.after() in RELATIONS):
            return self.relation(is_one=True)
        special: dict[str, Callable[[], Node]] = {
            "vlan": self.vlan,
            "mpls": self.mpls,
            "less": self.bound,
            "greater": self.bound,
            "proto": lambda: self.protocol(IP),
            "multicast": lambda: self.group("ether"),
        }
        if word in special:
            return special[word]()
        if word == "broadcast" or (word == "ether" and self.after() == "broadcast"):
            self.at += 1 + (word == "ether")
            return Mac(self.since(first), "destination", BROADCAST)
        if word in ("ether", *KINDS) and self.after() == "multicast":
            self.at += 1
            return self.group(word)
        if word in ("ether", *KINDS) and self.after() == "proto":
            self.at += 1
            return self.ethertype() if word == "ether" else self.protocol(KINDS[word])
        if word in UNKNOWN or self.after() in UNKNOWN:
            name = word if word in UNKNOWN else self.after()
            if name != word and word not in (*words.WORDS, "link"):
                raise self.unexpected(f"'{word}' is unexpected before '{name}': leave it out")
            error = words.MeaninglessError if name in (*BOUND, "gateway") else UsageError
            raise error(f"'{name}' {UNKNOWN[name]}: leave it out")
        return self.operand()

    def operand(self) -> Node:
        """Read qualifiers and what they qualify; the last ones, where none are there."""
        first = self.at
        protocol = self.take() if self.word in ("ether", "link", *KINDS, *PROTOCOLS) else None
        sides, is_both = self.direction()
        has_type = self.word in TYPES
        protocol = "ether" if protocol == "link" else protocol
        head = Head(protocol, sides, is_both, self.take() if has_type else "host", has_type)
        is_bare = protocol is None and sides == Head().sides and not is_both and not has_type
        if (
            protocol
            and not has_type
            and self.at == first + 1
            and (self.at == len(self.tokens) or not self.names_host())
        ):
            return self.alone(protocol, first)
        if is_bare and self.at == first:
            if self.head is None:
                return self.named(Head(), first)
            head = replace(self.head, is_typed=False)
        self.head = head
        if self.accept("("):
            opened = self.at - 1
            return self.closed(self.expression(lambda: self.listed(head)), opened)
        return self.named(head, first)

    def names_host(self) -> bool:
        """Tell whether a word stands here that no operator is."""
        return self.word not in (")", *CONNECTIVES, *NEGATIONS) and not self.starts_primitive()

    def listed(self, head: Head) -> Node:
        """Read an operand of a list in parentheses."""
        return self.named(head, self.at)

    def direction(self) -> tuple[tuple[str, ...], bool]:
        """Read a direction: ``src``, ``dst``, ``src or dst``, ``src and dst``."""
        either = Head().sides
        if self.word not in DIRECTIONS:
            return either, False
        side = self.take()
        if self.word in CONNECTIVES and self.after() in DIRECTIONS and self.after() != side:
            # ``src or dst port``, not ``src 10.0.0.1 or dst 10.0.0.2``.
            kind = CONNECTIVES[self.take()]
            self.take()
            return either, kind == "and"
        return (DIRECTIONS[side],), False

    def alone(self, protocol: str, first: int) -> Node:
        """Return what a protocol without an operand says."""
        text = self.since(first)
        if protocol in KINDS:
            return Layer3Type(text, KINDS[protocol])
        if protocol in PROTOCOLS:
            return CarriedProtocol(text, words.PROTOCOLS[protocol], PROTOCOLS[protocol])
        raise UsageError(f"'{text}' says nothing: write 'ether host', 'ether src' or 'ether dst' and a MAC")

    def named(self, head: Head, first: int) -> Node:
        """Read what qualifiers qualify."""
        if head.protocol == "ether":
            node = self.mac(head)
        elif head.type in ("port", "portrange"):
            node = self.ports(head)
        else:
            node = self.address(head)
        return replace(node, text=self.since(first))

    def sided(self, head: Head, parts: list[Node]) -> Node:
        """Join what holds of each side, and give all of it to one protocol."""
        node = parts[0] if len(parts) == 1 else (And if head.is_both else Or)("", tuple(parts))
        if head.protocol in KINDS:
            return And("", (Layer3Type(head.protocol, KINDS[head.protocol]), node))
        if head.protocol in PROTOCOLS:
            return And(
                "", (CarriedProtocol(head.protocol, words.PROTOCOLS[head.protocol], PROTOCOLS[head.protocol]), node)
            )
        return node

    def mac(self, head: Head) -> Node:
        """Read a MAC."""
        if head.type != "host":
            raise UsageError(f"'ether {head.type}' means nothing: write 'ether host', 'ether src' or 'ether dst'")
        octets = words.mac_of(self.take())
        return self.sided(replace(head, protocol=None), [Mac("", side, octets) for side in head.sides])

    def ports(self, head: Head) -> Node:
        """Read a port or a range of ports."""
        if head.protocol not in (None, *words.WITH_PORTS):
            raise UsageError(f"'{head.protocol}' has no ports: leave it out, or write tcp, udp or sctp")
        protocols = (head.protocol,) if head.protocol else words.WITH_PORTS
        word = self.take()
        if head.type == "portrange":
            least, most = words.ports_of(word, protocols)
        else:
            least = most = words.port_of(word, protocols)
        return self.sided(head, [PortRange("", side, least, most) for side in head.sides])

    def address(self, head: Head) -> Node:
        """Read a host or a network."""
        if head.type == "host" and not head.is_typed:
            self.check_address(head)
        if head.protocol in PROTOCOLS:
            raise UsageError(f"'{head.protocol} {head.type}' means nothing: write '{head.protocol} and {head.type}'")
        word = self.take()
        if head.type == "net":
            networks = [words.net_of(word, self.take() if self.accept("mask") else None)]
        else:
            networks = words.host_of(word)
        parts = [self.sided(head, [Address("", side, network) for side in head.sides]) for network in networks]
        return parts[0] if len(parts) == 1 else Or("", tuple(parts))

    def check_address(self, head: Head) -> None:
        """Raise WrongWordError where the present word can't be an address: no type before it said that it is one."""
        word = self.word
        side = next(one for one, name in DIRECTIONS.items() if name == head.sides[0]) if len(head.sides) == 1 else ""
        said = " ".join(filter(None, [head.protocol, side]))
        if head.protocol in PROTOCOLS and word[:1].isdigit():
            right = f"{said} port {word}" if word.isdigit() else f"{head.protocol} and {side or 'host'} {word}"
            raise words.WrongWordError(f"'{word}' is unexpected after '{said}': write '{right}'")
        if word in CONNECTIVES:
            self.at += 1
            raise self.unexpected(f"'{word}' is unexpected after '{said}': an address must come before it")
        may_be_a_name = head.protocol not in PROTOCOLS and self.after() in ("", ")", "&&", "||", *words.WORDS)
        if word[:1].isalpha() and ":" not in word and not may_be_a_name:
            raise self.unexpected(f"'{word}' is unexpected after '{said}': leave it out")

    # Other primitives ---------------------------------------------------------------------------

    def vlan(self) -> Node:
        """Read ``vlan`` and its id, if there is one."""
        first = self.at
        self.take()
        number = words.number_of(self.take(), 4095, "VLAN id") if self.word[:1].isdigit() else None
        return Vlan(self.since(first), number)

    def mpls(self) -> Node:
        """Read ``mpls`` and its label, if there is one."""
        first = self.at
        self.take()
        label = words.number_of(self.take(), (1 << 20) - 1, "label") if self.word[:1].isdigit() else None
        return Mpls(self.since(first), label)

    def protocol(self, kinds: frozenset[Layer3]) -> Node:
        """Read ``proto`` and a protocol."""
        first = self.at - (self.at > 0 and self.tokens[self.at - 1].word in KINDS)
        self.take()
        number = words.protocol_of(self.take())
        return CarriedProtocol(self.since(first), number, kinds)

    def ethertype(self) -> Node:
        """Read ``proto`` behind ``ether``, and a type."""
        first = self.at - 1
        self.take()
        word = self.take().removeprefix("\\")
        number = ETHERTYPES[word] if word in ETHERTYPES else words.number_of(word, LONGEST, "type")
        for name, kinds in KINDS.items():
            if ETHERTYPES[name] == number:
                return Layer3Type(self.since(first), kinds)
        return ethertype(self.since(first), number) if number > LLC_MOST else Octets(self.since(first))

    def group(self, protocol: str) -> Node:
        """Read ``multicast``."""
        first = self.at - (self.at > 0 and self.tokens[self.at - 1].word in ("ether", *KINDS))
        self.take()
        text = self.since(first)
        if protocol == "ether":
            return multicast(text)
        # As tcpdump: all from 224.0.0.0 on.
        network = words.net_of({"ip": "224.0.0.0/3", "ip6": "ff00::/8"}.get(protocol, "224.0.0.0/4"))
        return And(text, (Layer3Type(protocol, KINDS[protocol]), Address(text, "destination", network)))

    def bound(self) -> Node:
        """Read ``less`` or ``greater`` and a length; both include it."""
        first = self.at
        is_less = self.take() == "less"
        value = words.number_of(self.take(), LONGEST, "length")
        return length(self.since(first), *((0, value) if is_less else (value, LONGEST)))

    def relation(self, is_one: bool = False) -> Node:
        """Read a relation, to the next word that joins; ``is_one``: it can't be anything else."""
        first, depth = self.at, 0
        while self.word and (depth or self.word not in (")", *CONNECTIVES)):
            if is_one and self.word[:1].isalpha() and self.word not in VALUES and not self.after().startswith("["):
                raise self.unexpected(f"'{self.word}' is unexpected after '{self.since(first)}': leave it out", VALUES)
            depth += {"(": 1, ")": -1}.get(self.take(), 0)
        return relation(self.since(first))


def with_depths(node: Node, depth: int, kind: type[Vlan | Mpls]) -> tuple[Node, int]:
    """Tell each ``vlan`` (``mpls``) which tag it means: behind those that must be there for it; return how many those are."""
    if isinstance(node, kind):
        return replace(node, depth=depth), 1
    if isinstance(node, Not):
        return replace(node, part=with_depths(node.part, depth, kind)[0]), 0
    if isinstance(node, And):
        parts, count = [], 0
        for part in node.parts:
            found, more = with_depths(part, depth + count, kind)
            parts.append(found)
            count += more
        return replace(node, parts=tuple(parts)), count
    if isinstance(node, Or):
        both = [with_depths(part, depth, kind) for part in node.parts]
        return replace(node, parts=tuple(found for found, _ in both)), min(count for _, count in both)
    return node, 0
