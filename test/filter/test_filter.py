# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Filter expressions: on the host as in libpcap, in the tables as on the host; refusals, names, and how one is written."""

import json
import random
import re
import socket
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.layers.sctp import SCTP
from scapy.utils import RawPcapNgReader, wrpcap

from liteprobe.cores.formats import (
    FILTER_ENABLED_BIT,
    FILTER_PORTS,
    FILTER_ROW_WORDS,
    FILTER_TERM_WORDS,
    FILTER_WORDS,
    NO_RULE,
    FilterControl,
    UnifiedFlag,
)
from liteprobe.host.base.errors import UsageError
from liteprobe.host.capture.ring import clear_filter, read_hits, write_filter
from liteprobe.host.device.registers import Registers
from liteprobe.host.packets.filter import libpcap
from liteprobe.host.packets.filter.boxes import FilterDoesNotFit, Numbers
from liteprobe.host.packets.filter.expression import fit_trigger, parse
from liteprobe.host.packets.filter.fit import Filter
from liteprobe.host.packets.filter.words import ALIASES, PORTS, PROTOCOLS, numbered, port_of, protocol_of
from liteprobe.host.packets.unified import unified_headers
from liteprobe.sim.drivers.capture.blocks import Captured, blocks_of
from liteprobe.sim.drivers.filter.expressions import EXPRESSIONS, OCTETS, ON_HOST, Frames, RandomExpressions, varied
from liteprobe.sim.drivers.frames import stacks
from liteprobe.sim.drivers.system.fake_link import MemoryLink
from liteprobe.sim.drivers.tools.refusals import refusal
from liteprobe.sim.models.receive.filter import FilterModel

RELATIONS = """
ip[9] = 6
ip[9] != 17
tcp[2:2] > 1024
tcp[0:2] != 80
not udp[2:2] <= 443
1024 <= udp[0:2]
sctp[2:2] < 9
ether[12:2] = 0x0806
not ether[12:2] = 0x86dd
60 < len
(tcp[tcpflags] & (tcp-syn|tcp-ack)) != 0 or arp
""".strip().splitlines()
UNPARSED = UnifiedFlag.UNPARSED
SEED = random.randrange(1000)


@cache
def plain() -> Frames:
    """Frames without tags, labels, extension headers and faults: none may differ from libpcap."""
    return Frames.of(varied(700, random.Random(SEED)))


@cache
def every() -> Frames:
    """Those, and frames with tags, labels, extension headers and faults."""
    rng = random.Random(SEED)
    return Frames.of([*stacks.stacks()[::5], *stacks.fuzz(100, SEED), *varied(200, rng)])


def on_host(text: str, frames: Frames) -> NDArray[np.bool_]:
    return parse(text).matches(unified_headers(frames.packed()))


def in_tables(wanted: Filter, frames: Frames) -> NDArray[np.bool_]:
    model = FilterModel(wanted.words(), drop=wanted.drop)
    return np.array([model.decide(key).passed for key in frames.keys])


def random_expressions(count: int) -> list[str]:
    maker = RandomExpressions(random.Random(SEED), plain().keys)
    return [maker.expression() for _ in range(count)]


# Against libpcap -----------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [*EXPRESSIONS, *ON_HOST, *RELATIONS, *OCTETS[:-2]])
def test_host_matches_what_libpcap_does(text: str) -> None:
    assert np.array_equal(on_host(text, plain()), libpcap.matches(text, plain().octets)), SEED


def test_most_expressions_hold_for_some_frames_and_not_for_others() -> None:
    shares = [on_host(text, every()).mean() for text in EXPRESSIONS]
    assert len([share for share in shares if 0 < share < 1]) > 0.8 * len(shares)


def test_host_matches_what_libpcap_does_for_random_expressions() -> None:
    for text in random_expressions(60):
        assert np.array_equal(on_host(text, plain()), libpcap.matches(text, plain().octets)), (SEED, text)


# In the tables -------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [*EXPRESSIONS, *RELATIONS[:9]])
def test_tables_hold_what_the_host_does_and_with_drop_the_rest(text: str) -> None:
    expression = parse(text)
    wanted = on_host(text, every())
    assert np.array_equal(in_tables(expression.fit(), every()), wanted), SEED
    assert np.array_equal(in_tables(expression.fit(drop=True), every()), ~wanted), SEED


def test_tables_hold_random_expressions_or_refuse_them() -> None:
    fitting = 0
    for text in random_expressions(60):
        try:
            wanted = parse(text).fit()
        except FilterDoesNotFit:
            continue
        fitting += 1
        assert np.array_equal(in_tables(wanted, every()), on_host(text, every())), (SEED, text)
    assert fitting > 30


def test_empty_expression_holds_for_every_frame_and_a_contradiction_for_none() -> None:
    assert in_tables(parse("").fit(), every()).all()
    assert on_host("", every()).all()
    assert not in_tables(parse("tcp and udp").fit(), every()).any()
    assert not on_host("tcp and udp", every()).any()


@pytest.mark.parametrize(
    ("text", "terms", "rows"),
    [
        ("tcp", 1, (0, 0)),
        ("host 192.0.2.1", 2, (1, 1)),
        ("not host 192.0.2.1", 1, (1, 1)),
        ("host 192.0.2.1 or 192.0.2.5 or 2001:db8::1", 2, (3, 3)),
        ("net 192.0.2.0/25 or net 192.0.2.128/25", 2, (1, 1)),
        ("src net 10.0.0.0/8 and not src net 10.0.0.0/9", 1, (1, 0)),
        ("tcp port 80 or tcp port 443", 2, (0, 0)),
        ("ip and not icmp and not arp", 1, (0, 0)),
        ("host 192.0.2.1 and host 192.0.2.5", 2, (2, 2)),
        ("vlan 5 or vlan 7", 1, (0, 0)),
    ],
)
def test_fewest_terms_and_rows(text: str, terms: int, rows: tuple[int, int]) -> None:
    tables = parse(text).fit().tables
    assert len(tables.conditions) == terms
    assert tuple(map(len, tables.rows)) == rows


def test_closest_prefix_is_the_rule_and_rules_have_names() -> None:
    wanted = parse("dst net 198.18.0.0/15 or dst host 2001:db8::1 or src port 7").fit()
    assert wanted.rules() == {
        32: "dst net 2001:db8::1/128",
        33: "dst net 198.18.0.0/15",
        64: "case 1 of 2",
        65: "case 2 of 2",
    }
    model = FilterModel(wanted.words())
    rules = {model.decide(key).rule for key in every().keys}
    assert {33, NO_RULE} <= rules <= {32, 33, 64, 65, NO_RULE}


@pytest.mark.parametrize(
    ("filter_", "trigger"),
    [
        ("", "host 192.0.2.1"),
        ("", "tcp port 80 or icmp"),
        ("udp", "net 198.18.0.0/15"),
        ("ip or arp", "not udp"),
        ("net 10.0.0.0/8 or net 192.0.2.0/24", "tcp dst port 443"),
        ("", "vlan 5"),
    ],
)
def test_trigger_goes_to_its_own_channel_and_changes_nothing_else(filter_: str, trigger: str) -> None:
    model = FilterModel(fit_trigger(parse(filter_), parse(trigger), 6).words())
    decisions = [model.decide(key) for key in every().keys]
    passes, fires = on_host(filter_, every()), on_host(trigger, every())
    assert [one.passed for one in decisions] == passes.tolist()
    assert [one.channel == 6 for one in decisions if one.passed] == fires[passes].tolist()


def test_trigger_that_the_tables_cannot_hold_is_refused_with_the_remedy() -> None:
    for filter_, trigger in (("ip", "tcp port 80 or udp port 53"), ("", "len > 1000"), ("mpls", "udp")):
        with pytest.raises(FilterDoesNotFit, match=r"let this host look for the trigger \(--host-trigger\)"):
            fit_trigger(parse(filter_), parse(trigger), 0)
    with pytest.raises(UsageError, match="no frame can be both 'tcp' and 'udp': give another --trigger"):
        fit_trigger(parse("tcp"), parse("udp"), 0)


def test_channel_and_ports_of_the_probe_are_in_every_term() -> None:
    words = parse("host 192.0.2.1").fit(channel=5, probe_ports=2).words()
    terms = [words[FILTER_TERM_WORDS + number] for number in range(2)]
    assert [term >> 20 & 3 for term in terms] == [2, 2]
    assert [term >> 22 for term in terms] == [1 << FILTER_ENABLED_BIT - 22 | 5 << 1 | 1] * 2
    assert "there is no channel 8: give 0 to 7" in refusal(parse("tcp").fit, channel=8)
    assert "0 is not a set of ports" in refusal(parse("tcp").fit, probe_ports=0)


@pytest.mark.parametrize(
    ("text", "part", "reason"),
    [
        (
            "tcp port 80 or udp port 53",
            "tcp port 80 or udp port 53",
            "one set of source ports, and this asks for 80 and for 53",
        ),
        ("ip and len > 100", "len > 100", "hold no lengths"),
        ("less 100", "less 100", "hold no lengths"),
        ("tcp and tcp[tcpflags] & tcp-syn != 0", "tcp[tcpflags] & tcp-syn != 0", "hold no flags of TCP"),
        ("ip[8] < 5 or arp", "ip[8] < 5", "hold no TTL"),
        ("icmp[icmptype] = icmp-echo", "icmp[icmptype] = icmp-echo", "hold no types of ICMP"),
        ("not arp[6:2] = 1", "arp[6:2] = 1", "hold no operation of ARP"),
        ("ip[16] >= 224", "ip[16] >= 224", "hold no octets of addresses: write 'net' and a prefix"),
        ("mpls 7 and tcp", "mpls 7", "hold no labels"),
        ("vlan 5 and vlan 6", "vlan 6", "know the outermost tag alone"),
        ("ether multicast", "ether multicast", "groups are not a range"),
        ("ether proto 0x88cc", "ether proto 0x88cc", "types of ip, ip6 and arp alone"),
        (
            "ether src 02:00:00:00:00:01 or ether src 02:00:00:00:00:03",
            "ether src 02:00:00:00:00:01 or ether src 02:00:00:00:00:03",
            "one range of source MACs, and this asks for 020000000001, 020000000003",
        ),
    ],
)
def test_part_that_does_not_fit_is_named_with_the_reason(text: str, part: str, reason: str) -> None:
    with pytest.raises(FilterDoesNotFit) as raised:
        parse(text).fit()
    assert raised.value.part == part
    assert reason in str(raised.value)
    assert "let this host filter (--host-filter)" in str(raised.value)
    assert raised.value.exit_code == 2


def test_octets_that_nobody_has_are_refused_by_probe_and_host() -> None:
    asked = ["ip[20] < 5", "icmp[4:2] = 1", "tcp[8:4] = 0", "arp[18:4] = 1", "ip[2:2] - 20 > 6", "stp", "llc", "isis"]
    for part in [*asked, "rarp", "ether proto 0x42", "ether proto 1500"]:
        expression = parse(f"udp and {part}")
        with pytest.raises(FilterDoesNotFit) as raised:
            expression.fit()
        assert f"{part}' does not fit into the probe: its tables see MACs" in str(raised.value)
        assert "no other octets; have libpcap filter on this host (--host-filter)" in str(raised.value)
        with pytest.raises(UsageError, match=r"looks at octets .*\(--host-filter\).*tcpdump -r FILE"):
            expression.matches(unified_headers(plain().packed()))


def test_what_libpcap_refuses_too_is_said_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        UsageError, match=r"give a number from 0 to 65535 \(libpcap: illegal port number 70000 > 65535\)$"
    ):
        parse("port 70000")
    monkeypatch.setattr(libpcap, "NAMES", ())
    libpcap.library.cache_clear()
    for text, said in (("port 70000", "give a number from 0 to 65535$"), ("stp", "no host is called 'stp'")):
        with pytest.raises(UsageError, match=said):
            parse(text)


@pytest.mark.parametrize("text", ["ip6 proto 44", "ip6 proto 0", "ah", "proto 60"])
def test_extension_header_as_a_protocol_is_refused(text: str) -> None:
    assert "behind extension headers of IPv6" in refusal(parse(f"{text} or arp").fit, error=FilterDoesNotFit)
    assert parse("ip proto 44").fit()
    seen = [
        n for n, header in enumerate(every().headers) if not (header.tags or header.labels or header.flags & UNPARSED)
    ]
    found = libpcap.matches(text, every().octets)
    assert np.array_equal(on_host(text, every())[seen], found[seen]), SEED


def test_more_terms_and_more_rows_than_there_are_do_not_fit() -> None:
    hosts = " or ".join(f"src host 192.0.2.{2 * number}" for number in range(33))
    assert parse(hosts.rpartition(" or ")[0]).fit()
    assert "33 source prefixes, and there are 32 rows" in refusal(parse(hosts).fit, error=FilterDoesNotFit)
    pairs = " or ".join(f"(src host 192.0.2.{number} and dst host 198.51.100.{number * 3})" for number in range(9))
    assert len(parse(pairs.rpartition(" or ")[0]).fit().tables.conditions) == 8
    assert "9 cases, and there are 8 terms" in refusal(parse(pairs).fit, error=FilterDoesNotFit)


# Syntax --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("tcp or udp and port 53", "(tcp or udp) and port 53"),
        ("tcp port 80", "tcp and port 80"),
        ("tcp port http", "tcp port 80"),
        ("port 0x50", "port 80"),
        ("ip host 192.0.2.1", "ip and host 192.0.2.1"),
        ("host 192.0.2.1 or 192.0.2.2", "host 192.0.2.1 or host 192.0.2.2"),
        ("port 80 or 443 and not 22", "(port 80 or port 443) and not port 22"),
        ("src port (80 or 443)", "src port 80 or src port 443"),
        ("tcp && !port 80 || udp", "(tcp and not port 80) or udp"),
        ("src 192.0.2.1", "src host 192.0.2.1"),
        ("192.0.2.1", "host 192.0.2.1"),
        ("net 192.0.2", "net 192.0.2.0/24"),
        ("net 10.0.0.0 mask 255.0.0.0", "net 10.0.0.0/8"),
        ("tcp port 80 host 192.0.2.1", "tcp port 80 and host 192.0.2.1"),
        ("ip proto \\tcp", "ip and tcp"),
        ("proto 0x11", "udp"),
        ("portrange 90-80", "portrange 80-90"),
        ("ether host 02-4c-50-00-00-02", "ether host 02:4c:50:0:0:2"),
        ("ether proto \\arp", "arp"),
        ("broadcast", "ether dst ff:ff:ff:ff:ff:ff"),
        ("greater 100", "len >= 100"),
        ("len = 60", "less 60 and greater 60"),
        ("len > 70000", "tcp and udp"),
        ("60 < len", "greater 61"),
        ("ip[9] = 6", "ip proto 6"),
        ("ip[9] = 300", "tcp and udp"),
        ("ip[9] != 300", "ip"),
        ("ip[0x9] != 07", "ip and not ip proto 7"),
        ("icmp[icmptype] = icmp-echo", "icmp[0] == 8"),
        ("(arp[6:2]) = 1", "1 = arp[6:2]"),
        ("ether[12:2] = 0x0800", "ip"),
        ("ether[12 : 2] != 0x88cc", "not ether proto 0x88cc"),
        ("tcp[2:2] > 1024", "ip and tcp dst portrange 1025-65535"),
        ("udp[0:2] != 53", "ip and udp src portrange 0-65535 and not src port 53"),
        ("tcp[0:2] > 70000", "tcp and udp"),
        ("(tcp[tcpflags] & tcp-syn) != 0", "tcp[13] & 2 != 0"),
    ],
)
def test_two_ways_to_write_the_same(text: str, same: str) -> None:
    assert np.array_equal(on_host(text, every()), on_host(same, every()))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tcp and", "'tcp and' ends too soon: something must come after 'and'"),
        ("(tcp", "'(tcp' is not closed"),
        ("tcp)", "')' is unexpected after 'tcp'"),
        ("port 70000", "70000 is not a port: give a number from 0 to 65535"),
        ("port nonsense", "no port is called 'nonsense'"),
        ("vlan 4096", "4096 is not a VLAN id"),
        ("net 10.0.0.1/8", "give the first address of the network"),
        ("net 10.0.0.0/33", "33 is not a length of a prefix"),
        ("host 10.0.0", "'10.0.0' is not an address"),
        ("host 10.0.0.0/8", "write 'net' before it"),
        ("host 02:00:00:00:00:01", "write 'ether host'"),
        ("ether host 10.0.0.1", "'10.0.0.1' is not a MAC"),
        ("ether port 5", "'ether port' means nothing"),
        ("icmp port 5", "'icmp' has no ports"),
        ("tcp host 10.0.0.1", "'tcp host' means nothing"),
        ("proto nonsense", "no protocol is called 'nonsense'"),
        ("ip[0", "can't be read"),
        ("inbound", "'inbound' means nothing to a probe"),
        ("ether", "says nothing"),
    ],
)
def test_what_can_not_be_read_is_refused_with_what_to_write(text: str, said: str) -> None:
    assert said in refusal(parse, text)


def test_numbers_are_sets() -> None:
    rng = random.Random(SEED)
    for _ in range(300):
        one, other = ({number for number in range(12) if rng.randrange(2)} for _ in range(2))
        a, b = (Numbers.of(12, [(number, number) for number in found]) for found in (one, other))
        for found, wanted in [(a | b, one | other), (a & b, one & other), (~a, set(range(12)) - one)]:
            assert {number for number in range(12) if number in found} == wanted
            assert all(high + 1 < low for (_, high), (low, _) in zip(found.ranges, found.ranges[1:], strict=False))
        assert (a <= b) == (one <= other)
        assert a.is_empty == (not one)


# Names --------------------------------------------------------------------------------------------


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


# In a probe ---------------------------------------------------------------------------------------


def probe() -> tuple[MemoryLink, Registers]:
    link = MemoryLink()
    register_map = {
        "csr_registers": {"filter_control": {"addr": 0x100, "size": 1, "type": "rw"}},
        "memories": {"filter": {"base": 0x10000, "size": 4 * FILTER_WORDS}},
    }
    return link, Registers(link, register_map)


def test_filter_is_written_whole_while_it_is_not_in_force() -> None:
    link, registers = probe()
    link.words = {0x10000 + 4 * address: 0xFFFFFFFF for address in range(0x1100, FILTER_WORDS)}
    wanted = parse("tcp port 80 and net 192.0.2.0/24").fit(drop=True)
    write_filter(registers, wanted)
    assert link.writes[0][0] == link.writes[-1][0] == 0x100
    assert link.words[0x100] == FilterControl.ENABLE | FilterControl.DROP
    memory = {at // 4 - 0x4000: word for at, word in link.words.items() if at >= 0x10000 and word}
    assert {at: word for at, word in memory.items() if word != 0xFFFFFFFF} == wanted.words()
    assert FILTER_PORTS[0] + 80 // 32 in memory
    assert FILTER_ROW_WORDS[1] in memory
    assert read_hits(registers) == {}
    clear_filter(registers)
    assert link.words[0x100] == 0


# On the host --------------------------------------------------------------------------------------


Run = Callable[..., tuple[int, str, str]]
FIRST = 1_800_000_000_000_000_000


def stamps(path: Path) -> list[int]:
    with RawPcapNgReader(str(path)) as reader:
        return [meta.tshigh << 32 | meta.tslow for _, meta in reader]


@pytest.mark.parametrize("snap", [65535, 30])
@pytest.mark.parametrize("with_header", [False, True])
def test_host_filter_takes_what_libpcap_takes_and_counts_what_was_cut(
    run: Run, tmp_path: Path, snap: int, with_header: bool
) -> None:
    frames = stacks.stacks()
    sent = [Captured(FIRST + 1000 * at, frame, with_header=with_header, snap=snap) for at, frame in enumerate(frames)]
    blocks_of(sent).tofile(tmp_path / "a.blocks")
    ipv4 = [(FIRST + 1000 * at, frame) for at, frame in enumerate(frames) if frame[12:14] == b"\x08\x00"]
    for text, wanted in (
        ("ip[8] < 64", [stamp for stamp, frame in ipv4 if frame[22] < 64]),
        ("ip[24] & 2 != 0", [stamp for stamp, frame in ipv4 if frame[38] & 2 and snap > 38]),
    ):
        paths = str(tmp_path / "c.pcapng"), str(tmp_path / "c.json")
        code, _, err = run(
            "capture", "-r", str(tmp_path / "a.blocks"), "--filter", text, "--host-filter",
            "-w", paths[0], "--json", paths[1],
        )  # fmt: skip
        assert code == 0 and stamps(tmp_path / "c.pcapng") == wanted and "other than in tcpdump" not in err
        counts = json.loads((tmp_path / "c.json").read_text())
        cut = sum(len(frame) > snap for frame in frames)
        assert (counts["filtered"], counts["filter_cut"]) == (len(frames) - len(wanted), cut)
        assert (f"{cut} frames were cut (--snap) before libpcap looked at them" in err) == (cut > 0)


def test_host_filter_without_octets_or_without_libpcap_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = [Captured(FIRST + at, frame, with_header=True, snap=0) for at, frame in enumerate(stacks.stacks()[:9])]
    blocks_of(sent).tofile(tmp_path / "headers.blocks")
    asked = ("capture", "-r", str(tmp_path / "headers.blocks"), "--headers", str(tmp_path / "h"), "--filter", "ip")
    code, _, err = run(*asked, "--host-filter")
    assert code == 2 and "these came with headers alone: leave it out" in err
    monkeypatch.setattr(libpcap, "NAMES", ("no-libpcap.so",))
    libpcap.library.cache_clear()
    code, _, err = run(*asked, "--host-filter")
    assert code == 2 and "--host-filter needs libpcap: install it (Debian: libpcap0.8)" in err
    assert run(*asked)[0] == 0
