# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Names of ports and protocols that an expression may use: the same on every machine, whatever its lists in /etc.

Source: IANA, Service Name and Transport Protocol Port Number Registry; Protocol Numbers.
"""

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
