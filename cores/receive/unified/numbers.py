# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Numbers of the headers that the parser knows, and names of the steps of its walk."""

from liteprobe.cores.formats import EXTENSION_HEADERS, IpProtocol

# Steps --------------------------------------------------------------------------------------------

# Which header a word belongs to; ``ip`` is the first word of either version.
link, tag, label, ip, ipv4, ipv6, extension, skip, transport, arp, done = range(11)

# Protocols ----------------------------------------------------------------------------------------

hop_by_hop, routing, fragment, authentication, destination_options = EXTENSION_HEADERS
icmp, tcp, udp, icmpv6, sctp = IpProtocol.ICMP, IpProtocol.TCP, IpProtocol.UDP, IpProtocol.ICMPV6, IpProtocol.SCTP

def any_of(signal, *values):
    """Return whether a signal has one of these values."""
    found = signal == values[0]
    for value in values[1:]:
        found = found | (signal == value)
    return found
