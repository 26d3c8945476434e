# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A filter with a misspelt word: the error names that word, and proposes the right one."""

import random
import subprocess
from collections import Counter
from collections.abc import Iterator

import pytest

from liteprobe.host.base.errors import UsageError
from liteprobe.host.packets.filter import words
from liteprobe.host.packets.filter.expression import parse
from liteprobe.sim.drivers.filter import tcpdump
from liteprobe.sim.drivers.tools.figures import Figure, Size, note, row

SEED = 20261127
#: Terms, the words of which are misspelt: those of letters that are keywords or names of ports and protocols.
TERMS = """
udp port 53; tcp dst port 443; src port ntp; tcp portrange 80-90; host 10.0.0.1; src host 10.0.0.7; net 10.0.0.0/8;
dst net 192.168.0.0/16; ip6 host 2001:db8::1; ip proto 47; ip6 proto 89; proto gre; ether host 02:4c:50:00:00:01;
ether src 02:4c:50:00:00:01; ether proto 0x0806; vlan 7; vlan; mpls 16; icmp; icmp6; arp; udp; sctp port 2905;
less 128; greater 1000; len > 100; multicast; ether broadcast; tcp src port 22; dst 10.0.0.1; src 2001:db8::7;
udp src or dst port 5060; tcp port https; udp port domain; arp host 10.0.0.2; ip src 10.0.0.1; net 10.0.0.0 mask 255.0.0.0;
tcp[tcpflags] & tcp-syn != 0; icmp[icmptype] = icmp-echo; ip[8] < 5 and udp; 100 < len
"""
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def misspelt(draw: random.Random, word: str) -> str:
    """Return a word with a letter left out, put in, exchanged, doubled, or two of them turned."""
    at = draw.randrange(len(word))
    other = draw.choice(LETTERS)
    kinds = [
        word[:at] + word[at + 1 :],
        word[:at] + other + word[at:],
        word[:at] + other + word[at + 1 :],
        word[:at] + word[at] + word[at:],
        word[:at] + word[at : at + 2][::-1] + word[at + 2 :],
    ]
    return draw.choice([one for one in kinds if one and one != word] or [word + other])


def drawn(draw: random.Random) -> tuple[str, str, str]:
    """Return a filter with a misspelt word, that word, and the right one."""
    terms = [one.strip() for one in TERMS.split(";")]
    text = " and ".join(draw.sample(terms, draw.randint(1, 3))).split()
    text = " ".join(draw.choice(["and", "or", "and not"]) if one == "and" else one for one in text).split()
    at = draw.choice([place for place, one in enumerate(text) if one.strip("6-").replace("-", "").isalpha()])
    wrong = misspelt(draw, text[at])
    return " ".join([*text[:at], wrong, *text[at + 1 :]]), wrong, text[at]


@pytest.mark.skipif(not tcpdump.is_there(), reason="tcpdump is missing: apt-get install tcpdump")
@row("people", is_test=True)
def test_misspelt_filters(size: Size) -> Iterator[Figure]:
    """Filters drawn from a seed, each with a word misspelt: its error has that word in quotes; most propose the right one."""
    draw, found, valid = random.Random(SEED), Counter[str](), 0
    while found["asked"] < size.of(60, 1000, 5000):
        text, wrong, right = drawn(draw)
        if wrong in (*words.WORDS, "link"):  # Another word of filters: which one is wrong, nobody knows.
            found["another"] += 1
            continue
        try:
            parse(text)
        except UsageError as error:
            said = str(error)
        else:  # tcpdump takes it, too, or it is an error to take it.
            valid += 1
            if subprocess.run(["tcpdump", "-y", "EN10MB", "-d", text], capture_output=True, check=False).returncode:
                found["taken"] += 1
                note(f"{text}: taken")
            continue
        found["asked"] += 1
        found["named"] += f"'{wrong}'" in said
        found["proposed"] += f"'{right}'" in said.split(f"'{wrong}'")[-1]
        if f"'{wrong}'" not in said:
            note(f"{text}: {said}")
    note(f"  excluded: {valid} filters: still filters with it; {found['another']}: misspelt as another word of filters")
    yield Figure("misspelt_filters", found["asked"], "filters", size.of(60, 200), is_least=True)
    yield Figure("misspelt_word_not_named", found["asked"] - found["named"], "filters", 0)
    yield Figure("right_word_proposed", 100 * found["proposed"] / found["asked"], "%", 80, is_least=True)
    yield Figure("misspelt_and_taken", found["taken"], "filters", 0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("udp prt 53", "'prt' is not a word of a filter after 'udp': did you mean 'port'?"),
        ("tcp and (udp dst prt 53)", "'prt' is not a word of a filter after 'udp dst': did you mean 'port'?"),
        ("hst 10.0.0.1", "'hst' is not a word of a filter: did you mean 'host'?"),
        ("src prot 53", "'prot' is not a word of a filter after 'src': did you mean 'port'?"),
        ("host 10.0.0.1 adn udp", "'adn' is not a word of a filter after 'host 10.0.0.1': did you mean 'and'?"),
        ("tcp prt http and host 10.0.0.1", "'prt' is not a word of a filter after 'tcp': did you mean 'port'?"),
        ("udp destination port 53", "'destination' is not a word of a filter after 'udp': did you mean 'dst'?"),
        ("udp sport 53", "did you mean 'src port'?"),
        ("TCP port 80", "did you mean 'tcp'?"),
        ("udp 53", "'53' is unexpected after 'udp': write 'udp port 53'"),
        ("udp 10.0.0.1", "'10.0.0.1' is unexpected after 'udp': write 'udp and host 10.0.0.1'"),
        ("udp src 10.0.0.1", "'10.0.0.1' is unexpected after 'udp src': write 'udp and src 10.0.0.1'"),
        ("tcp port htp", "no port is called 'htp': give its number; did you mean 'http'?"),
        ("ip proto udpp", "no protocol is called 'udpp': give its number; did you mean 'udp'?"),
        ("port udp 53", "'udp' is unexpected after 'port': write 'udp port'"),
        ("ether hots 02:00:00:00:00:01", "'hots' is not a MAC: give six octets"),
        ("ip[8] < five", "'five' is not a word of a filter after 'ip[8] <'"),
        ("len > 100 nad tcp", "'nad' is not a word of a filter after 'len > 100': did you mean 'and'?"),
        ("tcp[tcpflags] = tcp-sin", "did you mean 'tcp-syn'?"),
        ("zzzzqq 5", "'zzzzqq' is not a word of a filter: write it like 'udp port 53 and net 10.0.0.0/8'"),
    ],
)
@pytest.mark.parametrize("by_libpcap", [False, True])
def test_the_wrong_word_is_named(text: str, said: str, by_libpcap: bool) -> None:
    with pytest.raises(UsageError) as raised:
        parse(text, by_libpcap)
    assert said in str(raised.value)
