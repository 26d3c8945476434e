# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Names of ports and protocols: IANA's, and the same on a machine that has no list of them."""

import re
import socket
import subprocess
from pathlib import Path

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.layers.sctp import SCTP
from scapy.utils import wrpcap

from liteprobe.host.base.errors import UsageError
from liteprobe.host.packets.filter.expression import parse
from liteprobe.host.packets.filter.words import ALIASES, PORTS, PROTOCOLS, numbered, port_of, protocol_of

LAYERS = {"tcp": TCP, "udp": UDP, "sctp": SCTP}


def names_of_tshark(named: list[tuple[str, str]], folder: Path) -> list[str]:
    """Return what tshark calls the port of each protocol and name: by its list, which an older one shows in frames alone."""
    listed = subprocess.run(["tshark", "-G", "services"], capture_output=True, text=True, check=False).stdout
    rows = [line.split("\t") for line in listed.splitlines()]
    if names := {(protocol, int(port)): name for name, port, protocol, *_ in rows}:
        return [names.get((protocol, PORTS[protocol][name]), "") for protocol, name in named]
    frame = Ether(src="02:4c:50:00:00:01", dst="02:4c:50:00:00:02") / IP(src="192.0.2.1", dst="192.0.2.2")
    frames = [frame / LAYERS[protocol](sport=60000, dport=PORTS[protocol][name]) for protocol, name in named]
    wrpcap(str(folder / "ports.pcap"), frames)
    command = ["tshark", "-N", "t", "-r", str(folder / "ports.pcap"), "-O", "tcp,udp,sctp"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.findall(r"^ +Destination [Pp]ort: (\S+) \(", text, re.MULTILINE)


def test_names_of_ports_are_those_of_tshark(tmp_path: Path) -> None:
    named = [(protocol, name) for protocol, names in PORTS.items() for name in names if name not in ALIASES.values()]
    assert names_of_tshark(named, tmp_path) == [name for _, name in named]


def test_numbers_of_protocols_are_those_of_the_socket_module() -> None:
    known = {name: getattr(socket, f"IPPROTO_{name.upper()}", None) for name in PROTOCOLS}
    known |= {"icmp6": socket.IPPROTO_ICMPV6, "ipencap": socket.IPPROTO_IPIP}
    checked = {name: number for name, number in known.items() if number is not None}
    assert len(checked) >= 13
    assert {name: PROTOCOLS[name] for name in checked} == checked


def test_names_do_not_depend_on_lists_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: str) -> int:
        raise OSError("no such list")

    for name in ("getservbyname", "getservbyport", "getprotobyname"):
        monkeypatch.setattr(socket, name, missing)
    assert [port_of("http", ("tcp",)), port_of("ntp", ("tcp", "udp")), port_of("www", ("tcp",))] == [80, 123, 80]
    assert [protocol_of("gre"), protocol_of("\\sctp")] == [47, 132]
    assert parse("tcp port http or udp port domain or ip proto \\ospf").text


def test_a_name_belongs_to_its_protocol() -> None:
    assert [protocol for protocol in PORTS if "syslog" in PORTS[protocol]] == ["udp"]
    assert {protocol for protocol in PORTS if "snmp-trap" in PORTS[protocol]} == {"tcp", "udp"}


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (
            "tcp port http or https and not (udp src or dst port domain)",
            "tcp port 80 or 443 and not (udp src or dst port 53)",
        ),
        ("portrange ftp-data-ssh", "portrange 20-22"),
        ("ip proto \\ospf or gre or tcp", "ip proto 89 or 47 or tcp"),
        ("ether proto \\ip6 or port 70000 or host domain", "ether proto \\ip6 or port 70000 or host domain"),
        ("tcp[tcpflags] & tcp-syn != 0", "tcp[tcpflags] & tcp-syn != 0"),
    ],
)
def test_libpcap_gets_numbers_and_asks_no_list_of_the_system(text: str, asked: str) -> None:
    assert numbered(text) == asked


@pytest.mark.parametrize(
    "text", ["proto nonsense", "ip6 proto nonsense", "port nonsense", "udp port ssh", "ip protochain nonsense"]
)
def test_a_name_that_is_not_known_is_refused_whether_libpcap_knows_it_or_not(text: str) -> None:
    with pytest.raises(UsageError, match=r"^no (port|protocol) is called '(nonsense|ssh)': give its number$"):
        numbered(text)
    with pytest.raises(UsageError):
        parse(text)
    with pytest.raises(UsageError, match=r"^no (port|protocol) is called"):
        parse(text, by_libpcap=True)


@pytest.mark.parametrize("text", ["net loopback", "ether host nonsense", "gateway nonsense"])
def test_names_of_networks_and_macs_are_not_asked_for(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """libpcap would take them on a machine with them in /etc/networks or /etc/ethers."""
    monkeypatch.setattr("liteprobe.host.packets.filter.expression.refusal", lambda _: None)
    with pytest.raises(UsageError):
        parse(text)
