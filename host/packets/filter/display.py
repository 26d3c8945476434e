# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Recognises Wireshark's display filters, and says what is written in their place in a capture filter, where that is known.

Stands alone: it is the words of another language than the filters of a probe.

Source: wireshark-filter(4), pcap-filter(7).
"""

import re

#: Fields, and what a capture filter has for their value; in the place of {0} the value, of {1} the sign.
FIELDS = {
    **{f"{one}.port": f"{one} port {{0}}" for one in ("tcp", "udp")},
    **{f"{one}.srcport": f"{one} src port {{0}}" for one in ("tcp", "udp")},
    **{f"{one}.dstport": f"{one} dst port {{0}}" for one in ("tcp", "udp")},
    **{f"{ip}.addr": "{2} {0}" for ip in ("ip", "ipv6")},
    **{f"{ip}.{way}": f"{way} {{2}} {{0}}" for ip in ("ip", "ipv6") for way in ("src", "dst")},
    "eth.addr": "ether host {0}", "eth.src": "ether src {0}", "eth.dst": "ether dst {0}", "eth.type": "ether proto {0}",
    "vlan.id": "vlan {0}", "ip.proto": "ip proto {0}", "ipv6.nxt": "ip6 proto {0}",
}  # fmt: skip
NUMBERS = {"frame.len": "len", "ip.ttl": "ip[8]", "ip.len": "ip[2:2]"}
#: Protocols by themselves.
PROTOCOLS = {
    "ipv6": "ip6", "icmpv6": "icmp6", "http": "tcp port 80", "tls": "tcp port 443", "ssl": "tcp port 443", "ssh": "tcp port 22",
    "dns": "port 53", "ntp": "udp port 123", "dhcp": "udp port 67", "bootp": "udp port 67", "eth": "",
    **{same: same for same in ("tcp", "udp", "ip", "arp", "icmp", "vlan", "mpls")},
}  # fmt: skip
SIGNS = {"eq": "==", "ne": "!=", "gt": ">", "lt": "<", "ge": ">=", "le": "<=", "=": "=="}
FIELD = r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)+"
TERM = re.compile(rf"({FIELD})\s*(==|!=|>=|<=|>|<|=|\b(?:eq|ne|gt|lt|ge|le)\b)\s*([0-9a-fA-Fx:./-]+)")
OF_CAPTURES = re.compile(r"(?<![\w.])(?:host|net|port|portrange|src|dst|gateway|proto)\s+[^\s()]+")
JOINS = {"&&": "and", "||": "or", "!": "not"}
ALONE = "|".join(name for name, text in PROTOCOLS.items() if text != name)
DISPLAY = re.compile(
    rf"\b(?:eth|ip|ipv6|tcp|udp|icmp|icmpv6|vlan|mpls|arp|frame|sctp|http|dns|tls|rtp|dhcp|ntp|igmp|data)\.[a-z]|"
    rf"\b(?:contains|matches)\b|(?:^|[(!&|]|\b(?:and|or|not)\b)\s*(?:{ALONE})\s*(?:$|[)&|=!<>]|\b(?:and|or)\b)"
)


def advice(text: str) -> str:
    """Return what to write in the place of a display filter; "" where it doesn't look like one."""
    if not DISPLAY.search(OF_CAPTURES.sub(" . ", text)):
        return ""
    found = _translated(text)
    example = f"write '{found}'" if found else "write it like 'tcp port 80 and net 10.0.0.0/8' (man pcap-filter)"
    return f"this is the syntax of Wireshark's display filters, and captures have tcpdump's: {example}"


def _translated(text: str) -> str:
    """Return the capture filter for a display filter, or "" where a part of it is not known."""
    parts: list[str] = []
    while text := text.strip():
        if found := TERM.match(text):
            field, sign, value = found[1], SIGNS.get(found[2], found[2]), found[3]
            if field in NUMBERS:
                parts.append(f"{NUMBERS[field]} {sign} {value}")
            elif field in FIELDS and sign in ("==", "!="):
                one = FIELDS[field].format(value, sign, "net" if "/" in value else "host")
                parts.append(f"not {one}" if sign == "!=" else one)
            else:
                return ""
        elif found := re.match(r"&&|\|\||!|\(|\)|and\b|or\b|not\b", text):
            parts.append(JOINS.get(found[0], found[0]))
        elif (found := re.match(r"[a-z0-9]+(?![.\w])", text)) and PROTOCOLS.get(found[0]):
            parts.append(PROTOCOLS[found[0]])
        else:
            return ""
        text = text[found.end() :]
    return " ".join(parts).replace("( ", "(").replace(" )", ")")
