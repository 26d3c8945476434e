# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads the words of an expression: addresses, networks, ports, protocols, MACs, by number or by name.

Names of ports and protocols are the same on every machine, whatever its lists in /etc.

Source: IANA, Service Name and Transport Protocol Port Number Registry; Protocol Numbers.
"""

import difflib
import re
import socket
from collections.abc import Iterable
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from liteprobe.host.base.errors import UsageError

#: IP protocols by name; those that tcpdump has words for, and what else a network carries.
PROTOCOLS = {
    "icmp": 1,
    "igmp": 2,
    "ipencap": 4,
    "tcp": 6,
    "igp": 9,
    "udp": 17,
    "dccp": 33,
    "ipv6": 41,
    "rsvp": 46,
    "gre": 47,
    "esp": 50,
    "ah": 51,
    "icmp6": 58,
    "ipv6-icmp": 58,
    "eigrp": 88,
    "ospf": 89,
    "etherip": 97,
    "pim": 103,
    "ipcomp": 108,
    "vrrp": 112,
    "l2tp": 115,
    "isis": 124,
    "sctp": 132,
    "udplite": 136,
    "mpls-in-ip": 137,
}

_BOTH = """
echo 7, discard 9, daytime 13, chargen 19, time 37, tacacs 49, domain 53, kerberos 88, sunrpc 111, epmap 135, snmp 161,
snmptrap 162, ptp-event 319, ptp-general 320, ldap 389, svrloc 427, https 443, kpasswd 464, rtsp 554,
ldp 646, ldaps 636, domain-s 853, openvpn 1194, radius 1812, radius-acct 1813, nfs 2049, sip 5060, sips 5061
"""
_TCP = """
ftp-data 20, ftp 21, ssh 22, telnet 23, smtp 25, nicname 43, finger 79, http 80, pop3 110, ident 113, nntp 119,
netbios-ssn 139, imap 143, bgp 179, microsoft-ds 445, urd 465, printer 515, submission 587, ipp 631, netconf-ssh 830,
owamp-control 861, twamp-control 862, rsync 873, ftps-data 989, ftps 990, telnets 992, imaps 993, pop3s 995, socks 1080,
ms-sql-s 1433, cisco-sccp 2000, iscsi-target 3260, mysql 3306, ms-wbt-server 3389, svn 3690, ntske 4460,
xmpp-client 5222, xmpp-server 5269, postgresql 5432, amqps 5671, amqp 5672, redis 6379, syslog-tls 6514, http-alt 8080,
git 9418
"""
_UDP = """
bootps 67, bootpc 68, tftp 69, ntp 123, netbios-ns 137, netbios-dgm 138, isakmp 500, syslog 514, router 520,
dhcpv6-client 546, dhcpv6-server 547, asf-rmcp 623, owamp-test 861, twamp-test 862, l2f 1701, gtp-control 2123,
gtp-user 2152, bfd-control 3784, bfd-echo 3785, ipsec-nat-t 4500, vxlan 4789, mdns 5353, geneve 6081, sflow 6343,
mpls-udp 6635, babel 6696
"""
_SCTP = "m3ua 2905, diameter 3868, amqp 5672, s1-control 36412, x2-control 36422"

#: What Debian and tcpdump's users call some of them, after IANA's name.
ALIASES = {
    "nicname": "whois",
    "http": "www",
    "ident": "auth",
    "imap": "imap2",
    "snmptrap": "snmp-trap",
    "sips": "sip-tls",
    "urd": "submissions",
    "l2f": "l2tp",
}


def _read(*lists: str) -> dict[str, int]:
    """Return the numbers of lists of ``name number``, by names and aliases."""
    pairs = (entry.split() for text in lists for entry in text.split(","))
    named = {name: int(number) for name, number in pairs}
    return named | {alias: named[name] for name, alias in ALIASES.items() if name in named}


#: Ports by protocol and name.
PORTS = {"tcp": _read(_BOTH, _TCP), "udp": _read(_BOTH, _UDP), "sctp": _read(_SCTP)}


Network = IPv4Network | IPv6Network


WITH_PORTS: tuple[str, ...] = ("tcp", "udp", "sctp")
DOTTED = re.compile(r"\d+(\.\d+){0,3}")
WORD = re.compile(r"[^\s()\[\]!<>=&|+*]+")
NAMED = ("port", "portrange", "proto", "protochain")  # Names of these are looked up; libpcap asks the lists in /etc.
KEYWORDS = {
    "icmp",
    "igmp",
    "tcp",
    "udp",
    "esp",
    "ah",
    "icmp6",
    "pim",
    "vrrp",
    "sctp",
}  # Not names, unless after a backslash.
JOINTS = {"and", "or", "not"}
#: All words of the language.
WORDS = (
    *(
        "and",
        "or",
        "not",
        "src",
        "dst",
        "host",
        "net",
        "port",
        "portrange",
        "proto",
        "mask",
        "ether",
        "ip",
        "ip6",
        "arp",
    ),
    *("vlan", "mpls", "less", "greater", "len", "multicast", "broadcast", *sorted(KEYWORDS)),
)
OF_PORTS = re.compile(r"\b(tcp|udp|sctp)\s+((src|dst)\s+((or|and)\s+(src|dst)\s+)?)?$")
OF_ETHERNET = re.compile(r"\b(ether|link)\s+$")


#: What people write who know other languages, and the word here.
SYNONYMS = {
    **dict.fromkeys(("source", "from"), "src"), **dict.fromkeys(("destination", "dest", "to"), "dst"),
    **dict.fromkeys(("sport", "srcport"), "src port"), **dict.fromkeys(("dport", "dstport"), "dst port"),
    **dict.fromkeys(("address", "addr", "hostname"), "host"), **dict.fromkeys(("network", "subnet"), "net"),
    **dict.fromkeys(("range", "ports"), "portrange"), **dict.fromkeys(("eth", "mac", "ethernet"), "ether"),
    "protocol": "proto", "vid": "vlan", "ipv4": "ip", "ipv6": "ip6", "icmpv6": "icmp6", "smaller": "less", "larger": "greater",
}  # fmt: skip
ALIKE = 0.6  # As of `difflib`: 'udq' is 0.67 like 'udp', 'prt' 0.86 like 'port'.

ALIKE_NAMES = 0.7  # There are many of them.


class WrongWordError(UsageError):
    """Names a word that is none here."""


class MeaninglessError(UsageError):
    """Is refused whatever libpcap says: nobody means it, or libpcap would ask the lists of this machine."""


def meant(word: str, names: Iterable[str], alike: float = ALIKE) -> str:
    """Return the question whether one of some names was meant, the one that is most like a word; "" where none is like it."""
    lower, known = word.lower(), list(names)
    found = (
        SYNONYMS.get(lower) or lower * (lower in known) or "".join(difflib.get_close_matches(lower, known, 1, alike))
    )
    return f"did you mean '{found}'?" if found else ""


def number_of(word: str, most: int, what: str) -> int:
    """Return a number, decimal, octal with a leading 0, or hexadecimal with 0x.

    Raises UsageError when it is none, or above ``most``.
    """
    try:
        value = int(word, 16 if word[:2].lower() == "0x" else 8 if word[0] == "0" and len(word) > 1 else 10)
    except ValueError:
        raise UsageError(f"'{word}' is not a {what}: give a number from 0 to {most}") from None
    if not 0 <= value <= most:
        raise UsageError(f"{word} is not a {what}: give a number from 0 to {most}")
    return value


def protocol_of(word: str) -> int:
    """Return the number of a protocol; a backslash before its name is taken, as tcpdump asks for one."""
    name = word.removeprefix("\\")
    if name in PROTOCOLS:
        return PROTOCOLS[name]
    if name[:1].isdigit():
        return number_of(name, 255, "protocol")
    raise MeaninglessError(
        "; ".join(
            filter(None, [f"no protocol is called '{name}': give its number", meant(name, PROTOCOLS, ALIKE_NAMES)])
        )
    )


def port_of(word: str, protocols: tuple[str, ...]) -> int:
    """Return the number of a port, of the first of these protocols that knows its name."""
    if re.fullmatch(r"\d+|0[xX][0-9a-fA-F]+", word):
        return number_of(word, 65535, "port")
    if word in WITH_PORTS:
        raise MeaninglessError(f"'{word}' is unexpected after 'port': write '{word} port'")
    for protocol in protocols:
        if word in PORTS[protocol]:
            return PORTS[protocol][word]
    names = [*WORDS, *(name for protocol in protocols for name in PORTS[protocol])]
    raise MeaninglessError(
        "; ".join(filter(None, [f"no port is called '{word}': give its number", meant(word, names, ALIKE_NAMES)]))
    )


def ports_of(word: str, protocols: tuple[str, ...]) -> tuple[int, int]:
    """Return the ends of a range of ports, ``a-b``; names may have hyphens, too."""
    for hyphen in [place for place, letter in enumerate(word) if letter == "-"]:
        ends = (word[:hyphen], word[hyphen + 1 :])
        try:
            low, high = (port_of(end, protocols) for end in ends)
        except (UsageError, IndexError):
            continue
        return min(low, high), max(low, high)
    number = port_of(word, protocols)
    return number, number


def numbered(expression: str) -> str:
    """Return an expression with numbers in place of the names of ports and protocols: libpcap asks no list in /etc then.

    Raises UsageError when no port or protocol has such a name.
    """
    scope, is_first, protocols = "", False, WITH_PORTS

    def number(found: re.Match[str]) -> str:
        nonlocal scope, is_first, protocols
        word = found[0]
        if word in NAMED:
            before = expression[: found.start()]
            of_ports = OF_PORTS.search(before)
            scope = "" if OF_ETHERNET.search(before) else word  # Types of Ethernet are libpcap's own.
            is_first, protocols = True, (of_ports[1],) if of_ports else WITH_PORTS
            return word
        if word in JOINTS or not scope:
            return word
        is_wanted, is_first = is_first, False
        try:
            if scope == "portrange":
                return "{}-{}".format(*ports_of(word, protocols))
            if scope == "port":
                return str(port_of(word, protocols))
            return word if word in KEYWORDS else str(protocol_of(word))
        except MeaninglessError:
            if is_wanted:
                raise
        except UsageError:  # A number: libpcap says what is wrong with it.
            return word
        scope = ""
        return word

    return WORD.sub(number, expression)


def is_mac(word: str) -> bool:
    """Tell whether a word is a MAC: six octets with colons or hyphens, or three of four digits with dots."""
    return bool(re.fullmatch(r"([0-9a-fA-F]{1,2}[:-]){5}[0-9a-fA-F]{1,2}|([0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4}", word))


def mac_of(word: str) -> bytes:
    """Return the octets of a MAC."""
    if not is_mac(word):
        said = f"'{word}' is not a MAC: give six octets such as 02:4c:50:00:00:01"
        raise MeaninglessError("; ".join(filter(None, [said, meant(word, ("host", *WORDS))])))
    if "." in word:
        return bytes.fromhex(word.replace(".", ""))
    return bytes(int(octet, 16) for octet in re.split("[:-]", word))


def host_of(word: str) -> list[Network]:
    """Return the addresses of a host as networks of one: one, or all that its name has."""
    if is_mac(word):
        raise UsageError(f"'{word}' is a MAC: write 'ether host', 'ether src' or 'ether dst' before it")
    if "/" in word:
        raise UsageError(f"'{word}' is a network: write 'net' before it")
    try:
        return [ip_network(ip_address(word))]
    except ValueError:
        pass
    if DOTTED.fullmatch(word):
        raise MeaninglessError(f"'{word}' is not an address: give four numbers up to 255, or write 'net' before it")
    try:
        found = socket.getaddrinfo(word, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # UnicodeError: no host can have such a name, like '.a'.
        if likely := meant(word, WORDS):
            raise WrongWordError(f"no host is called '{word}', and it is not a word of a filter: {likely}") from None
        raise UsageError(f"no host is called '{word}': give its address") from None
    return [
        ip_network(ip_address(address)) for address in dict.fromkeys(str(entry[4][0]).split("%")[0] for entry in found)
    ]


def net_of(word: str, mask: str | None = None) -> Network:
    """Return a network: ``10``, ``192.168``, ``10.0.0.0/8``, ``2001:db8::/32``, or an address and its mask.

    Raises UsageError when it is none, or has bits behind its prefix.
    """
    address, _, length = word.partition("/")
    try:
        if ":" in address:
            whole = IPv6Address(address)
            bits = number_of(length, 128, "length of a prefix") if length else 128
            return IPv6Network((whole, bits))
        parts = address.split(".")
        if not DOTTED.fullmatch(address):
            raise MeaninglessError(f"'{word}' is not a network: give one such as 10.0.0.0/8 or 2001:db8::/32")
        four = IPv4Address(".".join([*parts, *["0"] * (4 - len(parts))]))
        if mask is not None:
            return IPv4Network((four, mask))
        return IPv4Network((four, number_of(length, 32, "length of a prefix") if length else 8 * len(parts)))
    except AddressValueError as error:
        raise UsageError(f"'{word}' is not a network: {error}") from None
    except ValueError as error:
        # As tcpdump: most likely another prefix was meant.
        shown = f"{word} mask {mask}" if mask else word
        raise UsageError(f"'{shown}' is not a network: {error}; give the first address of the network") from None
