# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Truth for the flow hash: Toeplitz over sorted endpoints.

Source: Microsoft, "RSS hashing functions" and "Verifying the RSS hash calculation" (key and vectors).
"""

from liteprobe.cores.formats import FLOW_KEY, Layer3, UnifiedFlag
from liteprobe.sim.models.unified import WITH_PORTS, UnifiedHeader

KEY_BITS = 8 * len(FLOW_KEY)


def toeplitz(data: bytes, key: bytes = FLOW_KEY) -> int:
    """Return the XOR of those 32-bit windows of the key that begin where ``data`` has a 1."""
    bits, value = int.from_bytes(key), 0
    for place in range(8 * len(data)):
        if data[place // 8] & 0x80 >> place % 8:
            value ^= bits >> (8 * len(key) - 32 - place) & 0xFFFFFFFF
    return value


def flow_octets(header: UnifiedHeader) -> bytes:
    """Return what the hash of a frame is taken of: addresses, then ports, of the lower endpoint first.

    Ports of TCP, UDP and SCTP; fragments have none, the first one neither, so that a packet stays together.
    """
    if header.layer3 is Layer3.NONE:
        return b""
    ends = [(header.source, header.ports[:2]), (header.destination, header.ports[2:])]
    has_ports = UnifiedFlag.TRANSPORT in header.flags and header.protocol in WITH_PORTS
    if not has_ports or UnifiedFlag.FRAGMENT in header.flags:
        return b"".join(sorted(address for address, _ in ends))
    (low, low_port), (high, high_port) = sorted(ends)
    return low + high + low_port + high_port


def flow_hash(header: UnifiedHeader) -> int:
    """Return the hash of a frame's flow; 0 where it has no layer 3."""
    return toeplitz(flow_octets(header))
