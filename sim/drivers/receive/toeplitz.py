# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Microsoft's vectors of the Toeplitz hash, and the flow hash of the gateware in Migen's simulator.

Source: Microsoft, "Verifying the RSS hash calculation".
"""

import ipaddress
from collections.abc import Generator, Sequence
from typing import Any

from migen import run_simulation

from liteprobe.cores.formats import UNIFIED_PLACES, Layer3, UnifiedFlag
from liteprobe.cores.receive.hashes import FlowHash
from liteprobe.sim.models.receive.unified import UnifiedHeader

#: Source, port, destination, port, hash of the addresses, hash with ports.
VECTORS = [
    ("66.9.149.187", 2794, "161.142.100.80", 1766, 0x323E8FC2, 0x51CCC178),
    ("199.92.111.2", 14230, "65.69.140.83", 4739, 0xD718262A, 0xC626B0EA),
    ("24.19.198.95", 12898, "12.22.207.184", 38024, 0xD2D0A5DE, 0x5C2B394A),
    ("38.27.205.30", 48228, "209.142.163.6", 2217, 0x82989176, 0xAFC7327F),
    ("153.39.163.191", 44251, "202.188.127.2", 1303, 0x5D1809C5, 0x10E828A2),
    ("3ffe:2501:200:1fff::7", 2794, "3ffe:2501:200:3::1", 1766, 0x2CC18CD5, 0x40207D3D),
    ("3ffe:501:8::260:97ff:fe40:efab", 14230, "ff02::1", 4739, 0x0F0C461C, 0xDDE51BBF),
    ("3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, "fe80::200:f8ff:fe21:67cf", 38024, 0x4B61E985, 0x02D1FEEF),
]
TCP = UnifiedFlag.TRANSPORT | UnifiedFlag.TCP


def header_of(
    source: str, source_port: int, destination: str, destination_port: int, flags: UnifiedFlag = TCP
) -> UnifiedHeader:
    """Return the header of a TCP packet, or of one without ports."""
    ends = [ipaddress.ip_address(end).packed for end in (source, destination)]
    kind = Layer3.IPV4 if len(ends[0]) == 4 else Layer3.IPV6
    ports = source_port.to_bytes(2) + destination_port.to_bytes(2)
    return UnifiedHeader(layer3=kind, protocol=6, flags=flags, source=ends[0], destination=ends[1], ports=ports)


def hashes(headers: Sequence[UnifiedHeader], sorts: int = 1) -> list[tuple[int, int]]:
    """Return the hash of each header and the cycles that it took; ``sorts`` 0: as Microsoft's, a hash of one direction."""
    dut: Any = FlowHash()
    found = []

    def write(name: str, octets: bytes) -> Generator[Any, Any, None]:
        for number in range(0, len(octets), 4):
            yield dut.write.eq(1)
            yield dut.address.eq(UNIFIED_PLACES[name][0] + number // 4)
            yield dut.data.eq(int.from_bytes(octets[number : number + 4], "little"))
            yield

    def drive() -> Generator[Any, Any, None]:
        yield dut.sorts.eq(sorts)
        for header in headers:
            fields = {"destination": header.destination, "source": header.source, "source_port": header.ports, "ip": b"noise"}
            for name, octets in fields.items():
                yield from write(name, octets)
            yield dut.write.eq(0)
            yield dut.start.eq(1)
            yield dut.is_ipv6.eq(header.layer3 == Layer3.IPV6)
            yield dut.has_ports.eq(UnifiedFlag.TRANSPORT in header.flags and UnifiedFlag.FRAGMENT not in header.flags)
            yield
            yield dut.start.eq(0)
            yield
            cycles = 1
            while not (yield dut.done):
                yield
                cycles += 1
                assert cycles < 40
            found.append(((yield dut.hash), cycles))

    run_simulation(dut, drive())
    return found
