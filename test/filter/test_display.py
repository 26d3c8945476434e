# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Wireshark's display filters are recognised, and what is written in their place is named."""

import pytest

from liteprobe.host.base.errors import UsageError
from liteprobe.host.packets.filter.display import advice
from liteprobe.host.packets.filter.expression import parse


@pytest.mark.parametrize(
    "text", ["", "host 10.0.0.1", "tcp port http", "port dns", "host dns.example.com", "net 10 and udp"]
)
def test_a_capture_filter_is_none(text: str) -> None:
    assert advice(text) == ""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("tcp.port==80", "tcp port 80"),
        ("!(udp.dstport eq 53) || ip.addr == 10.0.0.0/8", "not (udp dst port 53) or net 10.0.0.0/8"),
        ("http && ipv6.src == 2001:2::1", "tcp port 80 and src host 2001:2::1"),
        ("vlan.id == 7 and not dns", "vlan 7 and not port 53"),
    ],
)
def test_what_is_known_is_translated(text: str, wanted: str) -> None:
    with pytest.raises(UsageError, match="Wireshark's display filters.*: write '") as error:
        parse(text)
    assert str(error.value).endswith(f"write '{wanted}'")
    parse(wanted)


@pytest.mark.parametrize(
    "text", ["tcp.flags.syn == 1", 'http.host contains "x"', "udp matches abc", "frame.time_delta > 1"]
)
@pytest.mark.parametrize("by_libpcap", [False, True])
def test_what_is_not_known_is_named(text: str, by_libpcap: bool) -> None:
    with pytest.raises(UsageError, match="Wireshark's display filters.*'tcp port 80 and net"):
        parse(text, by_libpcap)
