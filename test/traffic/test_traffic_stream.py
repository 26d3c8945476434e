# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Streams as data: what those of a port add up to, and what can't be."""

from fractions import Fraction

import pytest

from liteprobe.host.base.errors import UsageError
from liteprobe.host.traffic.layout import port_words
from liteprobe.host.traffic.load import check_port, percent, receiver_settings, share_of
from liteprobe.host.traffic.stream import (
    IMIX,
    Burst,
    Field,
    Fixed,
    Headers,
    Increment,
    Interval,
    Lengths,
    MplsLabel,
    Random,
    RandomLength,
    Stamp,
    Stepped,
    Stream,
    Values,
    vlan_tag,
    weighted,
)

IPV6 = Headers(source_ip="2001:2::1", destination_ip="2001:2::2")


# What a port adds up to --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("length", "interval", "share"),
    [
        (Fixed(60), Interval(pps=1_488_095), Fraction(84 * 1_488_095, 125_000_000)),
        (Fixed(1226), Interval(interval_ns=100_000), Fraction(1, 10)),
        (Fixed(1226), Interval(interval_ns=100_000, burst=Burst(5)), Fraction(1, 2)),
        (IMIX, Interval(rate_bps=2e8), Fraction(1, 5)),
        (Stepped(60, 100, 20), Interval(pps=1000), Fraction(104 * 1000, 125_000_000)),
        (RandomLength(60, 100), Interval(pps=1000, exponential=True), Fraction(104 * 1000, 125_000_000)),
        (Lengths((60, 100, 80)), Interval(pps=1000, burst=Burst(7)), Fraction(104 * 1000, 125_000_000)),
        (Fixed(60), Interval(), Fraction(1)),
    ],
)
def test_the_share_of_a_stream_is_that_of_its_octets(length: Fixed, interval: Interval, share: Fraction) -> None:
    assert share_of(Stream("a", 1, length, interval)) == share


def test_ten_tenths_are_the_whole_line() -> None:
    streams = [Stream(f"s{n}", n, Fixed(60), Interval(share=0.1)) for n in range(10)]
    assert sum(check_port(streams).values()) == 1


def test_streams_that_follow_one_another_do_not_add_up() -> None:
    # 1000 frames of 1000 ticks: the second one begins in the tick in which the first has ended.
    first = Stream("a", 1, Fixed(976), Interval(), count=1000)
    assert check_port([first, Stream("b", 2, Fixed(976), Interval(), start_ns=8_000_000)]) == {"a": 1, "b": 1}
    with pytest.raises(UsageError, match=r"add up to 200 % of the line \(a 100 %, b 100 %\)"):
        check_port([first, Stream("b", 2, Fixed(976), Interval(), start_ns=7_999_992)])


@pytest.mark.parametrize(
    ("share", "text"), [(Fraction(1, 3), "33.3333 %"), (Fraction(3, 2), "150 %"), (Fraction(1, 2**30), "0 %")]
)
def test_shares_are_said_in_per_cent(share: Fraction, text: str) -> None:
    assert percent(share) == text


def test_lists_that_are_equal_count_once() -> None:
    tables = [Lengths(tuple(range(60 + n, 124 + n))) for n in range(9)]
    streams = [Stream(f"s{n}", n, table, Interval(pps=1)) for n, table in enumerate(tables)]
    assert len(port_words([*streams[:8], Stream("t", 99, tables[0], Interval(pps=1))]).lists) == 512
    with pytest.raises(
        UsageError, match="tables and lists of port 0 have 576 entries: give 512 at most; equal ones count once"
    ):
        check_port(streams)


def test_streams_of_two_ports_are_not_of_one() -> None:
    with pytest.raises(UsageError, match="streams of ports 0, 1 are not of one port"):
        check_port([Stream("a", 1, Fixed(60)), Stream("b", 2, Fixed(60), port=1)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Interval(pps=1, share=1), "packets a second and a share of the line are given: give one of them"),
        (lambda: Interval(pps=0), "pps 0 is out of range: give frames a second, with k or M, above 0"),
        (lambda: Interval(burst=Burst(2)), "bursts need a length of time"),
        (lambda: Burst(0), "count 0 of a burst is out of range: give 1 to 65535"),
        (lambda: Lengths(()), "a table of 0 lengths is out of range: give 1 to 64"),
        (lambda: weighted({}), "a table of 0 lengths is out of range"),
        (lambda: weighted({60: 0}), "a weight of 0 is out of range: give 1 or more, or leave the length out"),
        (lambda: Stepped(60, 70, 0), "step 0 of a length is out of range"),
        (lambda: Values("udp.source", ()), "'values' of a modifier has 0 items: give 1 to 64"),
        (lambda: Increment("udp.source", step=0), "step 0 of a modifier is out of range"),
        (lambda: Increment("udp.source", first=-1), "first -1 of a modifier is out of range"),
        (lambda: Field(0, 0), "mask 0x0 of a field is out of range"),
        (lambda: Stamp("somewhere"), "place 'somewhere' of a stamp is unknown: give one of probe, octet"),
        (lambda: Stamp("octet", 60, 0), "width 0 of a stamp is out of range"),
        (lambda: Stamp("probe", 60), "a stamp in the place 'probe' has no octet of its own"),
        (lambda: Stamp(tick=16), "tick 16 of a stamp is out of range: give 0 to 15"),
        (lambda: vlan_tag(4096), "VLAN id 4096 is out of range"),
        (lambda: MplsLabel(1 << 20), "label 1048576 of an MPLS label is out of range"),
        (lambda: Headers(mpls_labels=(MplsLabel(1),) * 5), "5 MPLS labels are too many: give up to 4"),
        (lambda: Headers(transport="sctp"), "transport 'sctp' is unknown: give one of udp, tcp, none"),
        (lambda: Headers(ethertype=100), "ethertype 0x64 is out of range: give 0x600 to 0xffff"),
        (lambda: Stream(" ", 1, Fixed(60)), "it has no name: give it one"),
        (lambda: Stream("a", 65536, Fixed(60)), "id 65536 is out of range"),
        (
            lambda: Stream("a", 1, RandomLength(60, 90)),
            "random lengths can't be due back to back: give a share of 100%",
        ),
        (
            lambda: Stream("a", 1, Fixed(60), Interval(pps=0.9, exponential=True)),
            "the mean of exponential intervals of 1.111 s is out of range: give 1.073 s at most",
        ),
        (
            lambda: Stream("a", 1, Fixed(60), Interval(pps=0.02)),
            "an interval of 50.000 s is out of range: give 34.359 s at most",
        ),
        (
            lambda: Stream("a", 1, Fixed(60), start_ns=2**35),
            "start 34359738368ns is out of range: give a time with ns, us, ms or s, up to 34.359 s",
        ),
        (lambda: Stream("a", 1, Fixed(60), start_ns=float("nan")), "nan can't be counted with: give a finite number"),
        (lambda: Interval(pps=float("inf")), "inf can't be counted with: give a finite number"),
        (lambda: Burst(2, float("nan")), "nan can't be counted with: give a finite number"),
        (
            lambda: Stream("a", 1, Fixed(60), Interval(interval_ns=2000, burst=Burst(3, 800))),
            "a burst lasts 2272 ns, the next one begins after 2000 ns",
        ),
        (
            lambda: Stream("a", 1, Fixed(82), headers=IPV6, modifiers=(Random(Field(18, 0xFF00)),)),
            "changes the protocol, which the checksum must not",
        ),
        (
            lambda: Stream("a", 1, Fixed(82), probe=False, checksum="host", modifiers=(Random("ipv4.source"),)),
            "field 'ipv4.source' enters the checksum, which the host can't work out then",
        ),
        (
            lambda: Stream("a", 1, IMIX, probe=False, checksum="host"),
            "the host can't work out the checksum: its length varies",
        ),
        (
            lambda: Stream(
                "a", 1, Fixed(99), Interval(), headers=Headers(identification=5), stamp=Stamp("ipv4.identification")
            ),
            "the identification 5 is where the stamp stands: leave it out",
        ),
    ],
)
def test_what_cannot_be_is_refused(make: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("stream", "is_checked"),
    [
        (Stream("a", 1, Fixed(100), fill="prbs"), True),
        (Stream("a", 1, Fixed(100)), False),
        (Stream("a", 1, Fixed(100), fill="prbs", probe=False), False),
        (Stream("a", 1, Fixed(100), fill="prbs", headers=IPV6), True),  # The receiver leaves its complement out.
        (Stream("a", 1, Fixed(100), fill="prbs", checksum="complement"), False),
        (Stream("a", 1, Fixed(100), fill="prbs", stamp=Stamp("ipv4.identification")), True),
        (Stream("a", 1, Fixed(100), fill="prbs", stamp=Stamp("octet", 60, 16)), False),
    ],
)
def test_a_fill_is_checked_where_nothing_else_stands_in_it(stream: Stream, is_checked: bool) -> None:
    assert stream.has_checked_fill == is_checked
    assert receiver_settings([stream], 1).prbs == ({1} if is_checked else set())
