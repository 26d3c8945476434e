# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Expressions made into rules of an emulator: how many they take, and what is refused. What they hold for: test_emulator_rules."""

import pytest

from liteprobe.host.base.errors import UsageError
from liteprobe.host.packets.filter.boxes import FilterDoesNotFit
from liteprobe.host.packets.filter.expression import parse
from liteprobe.host.packets.filter.rules import class_rules, rules_of
from liteprobe.sim.drivers.filter.expressions import BY_LIBPCAP
from liteprobe.sim.drivers.tools.refusals import refusal


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("tcp", 1),
        ("vlan 10", 1),
        ("ip[1] & 0xfc == 0xb8", 1),
        ("ip6[0:2] & 0x0fc0 == 0x0b80", 1),
        ("ether proto 0x88f7", 1),
        ("len > 100", 1),
        ("udp portrange 1000-59999", 2),
        ("port 53", 2),
        ("port 5060 or 5061", 2),
        ("host 10.0.0.1", 2),
        ("not port 53", 3),
        ("not (host 10.0.0.1 or port 53)", 5),
        ("net 10.0.0.0/8 and not port 80", 4),
        (" and ".join(f"not (host 10.{n}.0.1 and port {7 * n + 1})" for n in range(7)), 29),
        ("(host 10.0.0.1 or host 10.0.0.200) and not (port 80 or tcp)", 7),
        ("tcp and not tcp", 0),
        ("ip[8] != 64", 2),
        ("ip or ip6 or len >= 0", 1),
        (" or ".join(f"host 10.0.0.{number}" for number in range(1, 8)), 14),
    ],
)
def test_a_rule_is_a_case_of_an_expression(text: str, count: int) -> None:
    if not count:
        assert "no frame can be 'tcp and not tcp': give another 'match'" in refusal(rules_of, parse(text))
        return
    assert len(rules_of(parse(text))) <= count


@pytest.mark.parametrize("text", [text for text in BY_LIBPCAP if not text.startswith(("rarp", "ip protochain"))])
def test_octets_that_the_probe_does_not_keep_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="looks at octets that the probe doesn't keep"):
        rules_of(parse(text))


def test_what_is_thousands_of_rules_is_refused() -> None:
    some = " or ".join(f"net 10.{n}.{n * 37 % 251}.0/24" for n in range(40))
    others = " or ".join(f"port {n * 997}" for n in range(1, 40))
    with pytest.raises(FilterDoesNotFit, match="it is more than 1024 rules, and there are 32 to 128"):
        rules_of(parse(f"({some}) and ({others})"))


def test_more_rules_than_any_probe_has_are_refused_with_their_count_and_no_build_is_advised() -> None:
    hosts = " or ".join(f"host 10.{n}.{n * n % 251}.{n}" for n in range(80))
    asked = {0: ("many", parse(hosts)), 1: ("web", parse("tcp port 80"))}
    assert class_rules(asked, 256).looks
    found = refusal(lambda: class_rules(asked, 128))
    assert "need 162 rules ('many' 160, 'web' 2), and a direction has 128" in found and "--rules" not in found
