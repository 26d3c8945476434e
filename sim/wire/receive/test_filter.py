# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The filter of the gateware, compiled: what it says of frames and counts is what the model says."""

import random
from itertools import product

import pytest

from liteprobe.cores.formats import (
    FILTER_CONDITIONS, FILTER_MACS, FILTER_PORTS, FILTER_PROTOCOLS, FILTER_ROW_WORDS, FILTER_TERM_WORDS, FILTER_VECTORS,
    FILTER_VLANS, NO_RULE, TERM_RULES, FilterCondition, FilterControl, Layer3,
)
from liteprobe.host.packets.filter import libpcap
from liteprobe.host.packets.filter.expression import parse
from liteprobe.sim.drivers.filter.filter import compare
from liteprobe.sim.drivers.filter.expressions import Frames, varied
from liteprobe.sim.drivers.filter.filter import RandomRules, Row, mac_words, row_words
from liteprobe.sim.drivers.filter.filter import CONTROL, WRITE, FilterRun, answer_of, hit_words
from liteprobe.sim.models.receive.filter import FilterKey, FilterModel

EVERY = 15 << 16 | 3 << 20 | 1 << 26  # A term of no condition, enabled.
IPV4 = FilterKey(Layer3.IPV4, (bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])), 17, (1000, 2000), 5, (0x10, 0x20))


def term(number=0, **conditions):
    """Return the word of a term that asks these conditions."""
    asked = sum(value << FILTER_CONDITIONS[name] for name, value in conditions.items())
    return {FILTER_TERM_WORDS + number: EVERY | asked}


def outcome(words, keys, drop=False, distances=(32,)):
    """Return the answers and counters of keys at port 0, and those of the model."""
    run, model = FilterRun(random.Random(1)), FilterModel(words, drop=drop)
    run.load(words)
    run.control(drop=drop)
    run.idle(40)
    run.send((keys, []), distances)
    run.read(hit_words())
    sent, counters = run.run()
    decisions = [model.decide(key) for key in keys]
    for decision in decisions:
        model.count(decision)
    hits = [*model.row_hits[0], *model.row_hits[1], *model.term_hits]
    return (sent.answers[0], counters.read), ([answer_of(decision) for decision in decisions], hits)


def check(words, keys, drop=False):
    """Hold the gateware against the model; return which keys passed."""
    found, wanted = outcome(words, keys, drop)
    assert found == wanted
    return [answer[0] for answer in found[0]]


def test_random_rules_and_packets_at_both_ports_at_line_rate():
    seed = random.randrange(1000)
    result = compare(seed, rule_sets=60, packets=60)
    assert (result.disagreements, result.counters_off, result.packets) == (0, 0, 7200), f"seed {seed}"
    assert result.latencies == {54}
    assert 0.2 < result.matched / result.packets < 0.9, f"seed {seed}"


@pytest.mark.parametrize("number", range(8))
def test_each_term_is_named_where_it_is_the_first_that_holds(number):
    """The terms before it hold for no kind of frame, those after it for all."""
    words = {FILTER_TERM_WORDS + before: EVERY & ~(15 << 16) for before in range(number)}
    for after in range(number, 8):
        words |= term(after)
    found, wanted = outcome(words, [IPV4, FilterKey(Layer3.ARP)])
    assert found == wanted
    assert [answer[2] for answer in found[0]] == [TERM_RULES + number] * 2


def test_every_frame_matches_where_no_term_is_enabled():
    words = row_words(0, {3: Row(bytes(4), 0, 255)})
    found, wanted = outcome(words, [IPV4, FilterKey()])
    assert found == wanted
    assert found[0] == [(True, True, NO_RULE, None)] * 2
    assert check(words, [IPV4], drop=True) == [False]


@pytest.mark.parametrize("octets", [4, 16])
def test_prefixes_of_every_length(octets):
    """A frame with an address that differs in any one bit, or in none, under a row of each length; 32 rows at a time."""
    rng = random.Random(octets)
    bits = 8 * octets
    layer3 = Layer3.IPV4 if octets == 4 else Layer3.IPV6
    for side, first in product(range(2), range(0, bits + 1, 32)):
        prefix, lengths = rng.randbytes(octets), range(first, min(first + 32, bits + 1))
        words = term(0, **{("source", "destination")[side]: FilterCondition.IN})
        words |= row_words(side, {row: Row(prefix, length, 1) for row, length in enumerate(reversed(lengths))})
        near = [int.from_bytes(prefix) ^ change for change in (0, *(1 << bit for bit in range(bits)))]
        keys = []
        for address in near:
            both = [rng.randbytes(octets), rng.randbytes(octets)]
            both[side] = address.to_bytes(octets)
            keys.append(FilterKey(layer3, (both[0], both[1]), 17))
        passed = check(words, keys)
        # The shortest prefix of the rows decides: a bit beyond it doesn't.
        assert passed == [True, *(bits - bit > lengths[0] for bit in range(bits))]


@pytest.mark.parametrize("side", [0, 1])
def test_row_of_one_version_matches_no_address_of_the_other(side):
    six = FilterKey(Layer3.IPV6, (bytes(16), bytes(16)), 17)
    four = FilterKey(Layer3.IPV4, (bytes(4), bytes(4)), 17)
    arp = FilterKey(Layer3.ARP, (bytes(4), bytes(4)))
    name = ("source", "destination")[side]
    for octets, passed in ((4, [False, True, True, False]), (16, [True, False, False, False])):
        words = term(0, **{name: FilterCondition.IN}) | row_words(side, {9: Row(bytes(octets), 0, 1)})
        assert check(words, [six, four, arp, FilterKey()]) == passed


SETS = {
    "protocol": {FILTER_PROTOCOLS + 17 // 4: 1 << 8 * (17 % 4)},
    "source_port": {FILTER_PORTS[0] + 1000 // 32: 1 << 1000 % 32},
    "destination_port": {FILTER_PORTS[1] + 2000 // 32: 1 << 2000 % 32},
    "vlan": {FILTER_VLANS: 1 << 5},
    "source_mac": mac_words(0, 0x10, 0x10),
    "destination_mac": mac_words(1, 0x20, 0x20),
    "source": row_words(0, {31: Row(bytes([10, 0, 0, 1]), 32, 255)}),
    "destination": row_words(1, {0: Row(bytes([10, 0, 0, 2]), 32, 255)}),
}
OTHERS = {
    "protocol": {"protocol": 18},
    "source_port": {"ports": (1001, 2000)},
    "destination_port": {"ports": (1000, 2001)},
    "vlan": {"vlan": 6},
    "source_mac": {"macs": (0x11, 0x20)},
    "destination_mac": {"macs": (0x10, 0x21)},
    "source": {"addresses": (bytes([10, 0, 0, 3]), IPV4.addresses[1])},
    "destination": {"addresses": (IPV4.addresses[0], bytes([10, 0, 0, 3]))},
}


@pytest.mark.parametrize("number", [0, 3, 7])
@pytest.mark.parametrize("name", SETS)
def test_condition_ignores_or_takes_what_is_in_or_what_is_not(name, number):
    other = FilterKey(**{**vars(IPV4), **OTHERS[name]})
    none = FilterKey()  # Neither layer 3, nor ports, nor a tag, nor MACs.
    expected = {"IGNORED": [True] * 3, "IN": [True, False, False], "NOT_IN": [False, True, True]}
    sets = SETS[name] if name != "protocol" else {word: 0xFF * value for word, value in SETS[name].items()}
    for condition in FilterCondition:
        words = sets | term(number, **{name: condition})
        assert check(words, [IPV4, other, none]) == expected[condition.name]


def test_protocols_of_a_term_are_its_own():
    words = term(2, protocol=1) | {FILTER_PROTOCOLS + 4: 1 << 8 + 3}
    assert check(words, [IPV4]) == [False]
    assert check(words | term(3, protocol=1), [IPV4]) == [True]


@pytest.mark.parametrize("kind", list(Layer3))
def test_kinds_of_layer_3(kind):
    keys = [FilterKey(), FilterKey(Layer3.ARP, (bytes(4),) * 2), IPV4, FilterKey(Layer3.IPV6, (bytes(16),) * 2, 6)]
    words = {FILTER_TERM_WORDS + 4: EVERY & ~(15 << 16) | 1 << 16 + kind}
    assert check(words, keys) == [key.layer3 is kind for key in keys]


def test_limits_of_macs_to_every_part():
    least, most = 0x0002_0000_8000, 0x0004_8000_0001
    macs = [limit + change for limit in (least, most) for part in (0, 16, 32) for change in (0, 1 << part, -(1 << part))]
    for name, words in (("source_mac", mac_words(0, least, most)), ("destination_mac", mac_words(1, least, most))):
        keys = [FilterKey(macs=(mac, mac)) for mac in [0, *macs, (1 << 48) - 1]]
        passed = check(words | term(0, **{name: FilterCondition.IN}), keys)
        assert passed == [least <= key.macs[0] <= most for key in keys]


def test_ports_of_the_probe():
    words = {FILTER_TERM_WORDS: EVERY & ~(1 << 20), FILTER_TERM_WORDS + 6: EVERY & ~(1 << 21)}
    run = FilterRun(random.Random(1))
    run.load(words)
    run.control()
    run.send(([IPV4] * 3, [IPV4] * 4))
    run.read(hit_words())
    sent, counters = run.run()
    assert sent.answers == ([(True, True, TERM_RULES + 6, None)] * 3, [(True, True, TERM_RULES, None)] * 4)
    assert counters.read[64:] == [4, 0, 0, 0, 0, 0, 3, 0]


def test_channel_is_the_first_source_rows_else_the_first_destination_rows_else_the_lowest_terms():
    def rows(source, destination, of_term):
        words = {FILTER_TERM_WORDS + 1: EVERY | 0 if of_term is None else EVERY | 1 << 22 | of_term << 23}
        words |= {FILTER_TERM_WORDS + 5: EVERY | 1 << 22 | 7 << 23}
        for side, channels in enumerate((source, destination)):
            words |= row_words(
                side, {row: Row(bytes(4), 0, 2, channel) for row, channel in zip((2, 11, 29), channels, strict=True)}
            )
        return words

    for source, destination, of_term, channel in [
        ((None, 3, 4), (1, 1, 1), 2, 3),
        ((5, 3, 4), (1, 1, 1), 2, 5),
        ((None, None, 4), (1, 1, 1), 2, 4),
        ((None, None, None), (None, 6, 1), 2, 6),
        ((None, None, None), (None, None, None), 2, 2),
        ((None, None, None), (None, None, None), None, None),
    ]:
        # Started anywhere in a lap, which lasts 32 cycles.
        found, wanted = outcome(rows(source, destination, of_term), [IPV4] * 33, distances=(33,))
        assert found == wanted
        assert found[0] == [(True, True, 2, channel)] * 33


def test_hits_are_exact_where_both_ports_match_all_rows_in_the_same_cycles():
    words = term(5)
    for side in range(2):
        words |= row_words(side, dict.fromkeys(range(32), Row(bytes(4), 0, 1)))
    run = FilterRun(random.Random(1))
    run.rng.randrange = lambda _: 7  # Both ports start at once.
    run.load(words)
    run.control()
    run.send(([IPV4] * 500, [IPV4] * 700))
    run.read(hit_words())
    _, counters = run.run()
    assert counters.read == [1200] * 64 + [0, 0, 0, 0, 0, 1200, 0, 0]


def test_disabled_filter_passes_everything_and_counts_nothing():
    run = FilterRun(random.Random(1))
    run.load(term(0, source=1) | row_words(0, {0: Row(bytes(4), 0, 255, 5)}))
    run.control(enable=False, drop=True)
    run.send(([IPV4] * 20, [FilterKey()] * 20))
    run.read(hit_words())
    sent, counters = run.run()
    assert sent.answers == ([(True, True, NO_RULE, None)] * 20,) * 2
    assert counters.read == [0] * 72


def test_bus_reads_what_it_wrote():
    rng = random.Random(3)
    words = {address: rng.getrandbits(32) for address in [*range(0, 0x1000, 7), *range(0x1000, 0x1800)]}
    run = FilterRun(rng)
    run.access([(WRITE | address, word) for address, word in words.items()])
    run.read(words)
    (found,) = run.run()
    assert found.read == list(words.values())
    assert run.longest <= 12
    assert FILTER_ROW_WORDS[0] in words and FILTER_VECTORS[1] + 511 in words


def test_bus_reads_terms_limits_and_counters_that_it_wrote():
    rng = random.Random(3)
    addresses = [*range(FILTER_TERM_WORDS, FILTER_MACS[1][1] + 4), *hit_words()]
    words = {address: rng.getrandbits(32) for address in addresses}
    run = FilterRun(rng)
    run.access([(WRITE | address, word) for address, word in words.items()])
    run.read(words)
    (found,) = run.run()
    assert found.read == list(words.values())


def test_bus_is_answered_and_frames_are_while_tables_change():
    rng = random.Random(4)
    rules, others = RandomRules(rng), RandomRules(rng)
    keys = [[rules.key(port) for _ in range(1500)] for port in range(2)]
    accesses = [(WRITE | address, word) for address, word in others.words.items()]
    accesses += [(rng.getrandbits(13) | WRITE * rng.randrange(2), rng.getrandbits(32)) for _ in range(1000)]
    run = FilterRun(rng)
    run.load(rules.words)
    run.control()
    run.send((keys[0], keys[1]), accesses=accesses)
    (sent,) = run.run()
    assert [len(answers) for answers in sent.answers] == [1500, 1500]
    assert sent.latencies == {54}
    assert run.longest <= 132  # A write to a counter waits for its turn.


def test_filter_that_is_switched_decides_no_frame_by_halves():
    """Frames that don't match pass while it drops what matches, and while it is off; nothing is between."""
    on, off = (FilterControl.ENABLE | FilterControl.DROP, FilterControl.NONE)
    accesses = []
    for number in range(2000):
        accesses += [(CONTROL, on if number % 2 else off), *[(FILTER_VLANS, 0)] * (number % 7)]
    run = FilterRun(random.Random(1))
    run.load(term(0, vlan=1))
    run.control()
    run.send(([IPV4] * 1500, [IPV4] * 1500), accesses=accesses)
    (sent, *_) = run.run()
    found = {answer for answers in sent.answers for answer in answers}
    assert found == {(True, False, NO_RULE, None), (True, True, NO_RULE, None)}


def test_counter_that_is_written_counts_on_from_there():
    words = term(4) | row_words(1, {30: Row(bytes(4), 0, 1)})
    run = FilterRun(random.Random(1))
    run.load(words)
    run.control()
    run.send(([IPV4] * 100, [IPV4] * 100), accesses=[(WRITE | hit, 0xFFFFFFF0) for hit in hit_words()])
    run.send(([IPV4] * 10, [IPV4] * 10))
    run.read(hit_words())
    first = run.run()[-1].read
    # 220 less those before the write, which was somewhere within the first order.
    assert (first[62] + 16) % 2**32 <= 220
    assert (first[68] + 16) % 2**32 <= 220
    untouched = [hit for number, hit in enumerate(first) if number not in (62, 68)]
    assert set(untouched) == {0xFFFFFFF0}


@pytest.mark.parametrize(
    "text",
    [
        "net 198.18.0.0/15 and not port 80",
        "not host 192.0.2.1",
        "tcp port 80 or tcp port 443",
        "ip6 and icmp6 or arp",
        "src net 2001:db8::/32 and dst portrange 0-1023",
        "ether broadcast or ip multicast",
    ],
)
def test_expression_in_the_gateware_passes_what_libpcap_does(text):
    frames = Frames.of(varied(300, random.Random(7)))
    passed = check(parse(text).fit().words(), list(frames.keys))
    assert passed == libpcap.matches(text, frames.octets).tolist()
    assert 0 < sum(passed) < len(passed)


def test_frame_that_comes_too_soon_takes_the_place_of_the_one_before():
    keys = [IPV4, FilterKey(), IPV4]
    run = FilterRun(random.Random(1))
    run.load(term(0, vlan=1) | {FILTER_VLANS: 1 << 5})
    run.control()
    run.send((keys, []), distances=(31,))
    with pytest.raises(RuntimeError, match="3 keys, 1 answers"):
        run.run()
