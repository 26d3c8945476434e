# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""netem's words, as tc-netem(8) has them: what they become, what is said to differ, what is refused."""

from fractions import Fraction
from pathlib import Path

import pytest

from liteprobe.host.base.errors import UsageError
from liteprobe.host.traffic.network import Bernoulli, Direction, GilbertElliott, Jitter, Queue, Reorder, TrafficClass
from liteprobe.host.traffic.network.document import read_network, write_network
from liteprobe.host.traffic.network.netem import from_netem

MS = 10**6


def one(text: str) -> TrafficClass:
    """Return the class that netem's words become."""
    (found,) = from_netem(text)[0].there.classes
    return found


def notes(text: str) -> str:
    return "\n".join(from_netem(text)[1])


def part(percent: str) -> Fraction:
    return Fraction(percent) / 100


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("delay 100ms", {"delay_ns": 100 * MS}),
        ("delay 100", {"delay_ns": 100_000}),
        ("latency 1.5msecs", {"delay_ns": 1.5 * MS}),
        ("delay 100ms 10ms", {"delay_ns": 100 * MS, "jitter": Jitter("uniform", 10 * MS)}),
        ("delay 100ms 25", {"delay_ns": 100 * MS, "jitter": Jitter("uniform", 25_000)}),
        ("delay 100ms 10ms 25%", {"delay_ns": 100 * MS, "jitter": Jitter("uniform", 10 * MS, correlation=part("25"))}),
        ("delay 100ms 20ms distribution normal", {"delay_ns": 100 * MS, "jitter": Jitter("normal", 20 * MS)}),
        ("delay 1s 20ms dist paretonormal", {"delay_ns": 10**9, "jitter": Jitter("paretonormal", 20 * MS)}),
        ("loss 0.1%", {"loss": Bernoulli(part("0.1"))}),
        ("loss random 0.3", {"loss": Bernoulli(part("0.3"))}),
        ("drop 100%", {"loss": Bernoulli(1)}),
        ("loss 20% 25%", {"loss": GilbertElliott(part("15"), part("60"))}),
        ("loss gemodel 1%", {"loss": GilbertElliott(part("1"), part("99"))}),
        ("loss gemodel 1% 10%", {"loss": GilbertElliott(part("1"), part("10"))}),
        ("loss gemodel 1% 10% 70%", {"loss": GilbertElliott(part("1"), part("10"), part("30"))}),
        ("loss gemodel 1% 10% 70% 0.1%", {"loss": GilbertElliott(part("1"), part("10"), part("30"), part("99.9"))}),
        ("loss state 1%", {"loss": GilbertElliott(part("1"), part("99"))}),
        ("loss state 1% 10%", {"loss": GilbertElliott(part("1"), part("10"))}),
        ("loss state 1% 10% 0% 50% 0%", {"loss": GilbertElliott(part("1"), part("10"))}),
        ("corrupt 0.1%", {"corrupt": part("0.1"), "is_mended": True}),
        ("duplicate 1% 30%", {"duplicate": part("1")}),
        ("dup 1%", {"duplicate": part("1")}),
        ("delay 10ms reorder 25% 50%", {"reorder": Reorder(part("75"), 10 * MS)}),
        ("delay 10ms reorder 25% 50% gap 5", {"reorder": Reorder(Fraction(7, 8), 10 * MS)}),
        ("delay 10ms reorder gap 5", {"reorder": Reorder(Fraction(4, 5), 10 * MS)}),
        ("gap 5 delay 10ms", {"reorder": Reorder(Fraction(4, 5), 10 * MS)}),
    ],
)
def test_words_become_settings_of_the_only_class(text: str, changed: dict[str, object]) -> None:
    assert one(text) == TrafficClass(overhead=0, **changed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "rate_bps", "overhead", "frames"),
    [
        ("rate 10mbit limit 100", 10**7, 0, 100),
        ("rate 100kbit", 10**5, 0, None),
        ("rate 1Mbps", 8 * 10**6, 0, None),
        ("rate 1000000", 10**6, 0, None),
        ("rate 512kibit 20", 512 * 1024, 20, None),
        ("rate 5mbit 20 0 0 limit 7", 5 * 10**6, 20, 7),
    ],
)
def test_a_rate_is_that_of_the_link_with_its_queue(text: str, rate_bps: int, overhead: int, frames: int | None) -> None:
    queue = Queue(frames=frames)
    assert from_netem(text)[0].there == Direction(rate_bps, classes=(TrafficClass(overhead=overhead, queue=queue),))


def test_a_whole_command_line_is_taken_from_netem_on_and_the_way_back_has_words_of_its_own() -> None:
    network, _ = from_netem("tc qdisc add dev eth0 root netem delay 20ms seed 7", "loss 1%")
    assert (network.there.classes[0].delay_ns, network.back.classes[0].loss, network.seed) == (
        20 * MS, Bernoulli(part("1")), 7,
    )  # fmt: skip
    assert from_netem("delay 20ms")[0].back == Direction()


def test_with_reorder_what_is_held_back_has_the_jitter_around_the_delay() -> None:
    found = one("delay 20ms 2ms distribution normal reorder 25%")
    assert found.delay_ns is None and found.jitter and found.reorder
    quantiles = found.jitter.quantiles_ns()
    asked = Jitter("normal", 2 * MS).quantiles_ns()
    assert [found.reorder.extent_ns + extra for extra in quantiles] == [20 * MS + extra for extra in asked]  # type: ignore[operator]


def test_the_words_of_the_issue_say_all_that_differs() -> None:
    text = (
        "delay 20ms 2ms distribution normal loss gemodel 1% 10% 70% 0.1% duplicate 1% corrupt 0.1% reorder 25% 50% gap 5 "
        "rate 10mbit limit 100"
    )
    said = from_netem(text)[1]
    for words in (
        "netem draws the loss of a frame by the state before it moves",
        "A duplicate leaves right after its frame",
        "leaves with a good FCS",
        "The correlation of 50 % of 'reorder' is left out",
        "Jitter doesn't reorder here",
        "1024 quantiles",
        "12.5 % of the frames go at once",
        "'gap 5' is in that share",
        "Frames that overtake have the jitter, too",
        "The limit of 100 frames is of those that wait for the link",
        "Jitter comes after the link here",
        "both lost and duplicated",
    ):
        assert sum(words in line for line in said) == 1, words
    assert len(said) == 12


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("loss 1%", "Without a delay frames still take the probe's least delay"),
        ("delay 1ms limit 5", "'limit 5' has no effect without 'rate'"),
        ("delay 1ms 10us", "delays are uniform, as the kernel does it"),
        ("delay 1ms 10us 25%", "(25 %) that have the delay of the one before"),
        ("loss 1% 25%", "Gilbert's model here"),
        ("rate 1mbit", "netem's is 1000 frames"),
        ("delay 1ms seed 3", "other draws than netem's"),
    ],
)
def test_what_differs_is_said(text: str, words: str) -> None:
    assert words in notes(text)


def test_a_plain_delay_differs_in_nothing() -> None:
    assert from_netem("delay 20ms")[1] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "netem needs options"),
        ("netem", "netem needs options"),
        ("dealy 10ms", "no option 'dealy': did you mean 'delay'?"),
        ("de 10ms", "no option 'de'"),
        ("delay", "words end where a delay is missing"),
        ("delay 10parsec", "'10parsec' is not a delay of netem: give a time like 20ms"),
        ("delay -5ms", "'-5ms' is not a delay"),
        ("delay nan", "'nan' is not a delay"),
        ("delay 8.59s", "a delay of 8.59 s is out of range"),
        ("delay 10ms 9s", "a jitter of 9 s is out of range"),
        ("delay 1ms delay 2ms", "'delay' is given twice"),
        ("delay 1ms latency 2ms", "'latency' is given twice"),
        ("loss 101%", "a loss of 101 % is out of range"),
        ("loss gemodel", "words end where 'p' is missing"),
        ("loss gemodel 1% 0%", "the bad state never ends"),
        ("loss state 1% 10% 5%", "three or four states"),
        ("loss state 1% 10% 0% 50% 1%", "three or four states"),
        ("loss 1% 100%", "the first frame decides for all"),
        ("delay 1ms distribution normal", "'distribution' needs a jitter"),
        ("delay 1ms 1ms distribution experimental", "the distribution 'experimental' of netem is not known here"),
        ("reorder 25% 50%", "'reorder' needs a delay"),
        ("delay 10ms reorder 100%", "all frames go at once"),
        ("delay 1ms 5ms reorder 10%", "the jitter must be smaller than the delay"),
        ("rate 5kbit 20 100 5", "cells of 100 octets can't be done"),
        ("rate 5mbit -14", "a packet overhead of -14 octets can't be done"),
        ("rate 50%", "a share of an interface that isn't known here"),
        ("rate 10gbit", "rate 10Gbit of a link is out of range"),
        ("rate 10mbit limit 100000", "frames 100000 of a queue is out of range: give 1 to 65535"),
        ("rate 10mbit limit x", "'x' is not a limit"),
        ("delay 10ms slot 20ms", "'slot' can't be done"),
        ("loss 1% ecn", "'ecn' can't be done"),
    ],
)
def test_what_is_wrong_or_cannot_be_done_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        from_netem(text)
    assert words in str(caught.value)


#: Of tc-netem(8), and of what people write about it: what no other test here has.
OTHERS = (
    "delay 3ms 1ms 75% distribution pareto",
    "delay 100ms 20ms distribution uniform",
    "delay 5ms 10ms",
    "delay 0",
    "loss 15.3% 25% delay 200ms 40ms 25% reorder 5% 50%",
    "loss state 5% 50%",
    "loss random 0.5%",
    "loss 0% corrupt 0%",
    "duplicate 9% 50% corrupt 5% 25%",
    "gap 0 delay 10ms reorder 10%",
    "delay 10ms 2ms reorder 50%",
    "limit 10",
    "rate 100mbit 24 0 0",
    "rate 256kbit delay 0.5s",
    "rate 1mbit 20 limit 50",
    "seed 42 loss 5%",
    "latency 5ms drop 1%",
    "dev eth0 root netem delay 97ms",
    "sudo tc qdisc add dev enp0s3 root handle 1: netem delay 200ms limit 1000",
)


@pytest.mark.parametrize("text", OTHERS)
def test_what_others_write_is_a_network_that_a_document_gives_back(text: str) -> None:
    network, _ = from_netem(text)
    assert write_network(read_network(write_network(network), "netem.yaml", Path())) == write_network(network)


@pytest.mark.parametrize(
    "text", ["slot 800us 1200us packets 50", "delay 10ms ; reboot", "loss 1/3", "rate 1mbit limit 0", "gap 1"]
)
def test_what_others_write_is_refused_with_what_to_do(text: str) -> None:
    with pytest.raises(UsageError, match="give"):
        from_netem(text)
