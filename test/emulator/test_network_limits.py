# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Networks that the words of a probe, or its memory, can't hold: the message has the limit, and the limit holds."""

from typing import Any

import pytest

from liteprobe.cores.formats.emulate import CLASS_FIELDS, SETTING_WORDS, UNMATCHED_CLASS
from liteprobe.host.base.errors import UsageError
from liteprobe.host.traffic.network import (
    Background,
    BandwidthTrace,
    Bucket,
    Change,
    Direction,
    Jitter,
    LossList,
    Network,
    Queue,
    Reorder,
    TrafficClass,
)
from liteprobe.host.traffic.network.store import Limits
from liteprobe.host.traffic.network.words import DirectionWords, words_of


def there(one: TrafficClass, limits: Limits, rate_bps: int | None = None) -> DirectionWords:
    """Return the words of a direction whose only class is ``one``."""
    return words_of(Network(Direction(rate_bps, classes=[one])), (limits, limits))[0]


def frames_of(words: DirectionWords) -> int:
    """Return the limit of its queue."""
    return CLASS_FIELDS["limit_frames"].value(words.banks[0][SETTING_WORDS * UNMATCHED_CLASS :])


def refusal(network: Network, limits: Limits) -> str:
    with pytest.raises(UsageError) as caught:
        words_of(network, (limits, limits))
    return str(caught.value)


def only(**options: Any) -> Network:
    return Network(Direction(classes=[TrafficClass(**options)]))


SMALL = Limits(store_words=1 << 13, entries=256, longest=1536, least_delay=3000)


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (only(delay_ns=1000), "has a delay of 1 us, and this probe takes 24.000 us at least"),
        (only(delay_ns=8e9, reorder=Reorder(0.5, 1e9)), "delays of up to 9.000 s: give less than 8.590 s in all"),
        (only(delay_ns=1e6), "needs 124.7 KiB for what waits and is under way"),
        (only(delay_ns=1e6), "a delay of 0.228 ms at most, a lower rate, or say with 'expected'"),
        (Network(Direction(10**6, classes=[TrafficClass(queue=Queue(100))])), "a queue of 18 frames at most"),
        (only(delay_ns=30_000, reorder=Reorder(1, 1e6)), "frames that are held back need 128"),
        (Network(Direction(15_000)), "a probe can't be slower than 15.259 kb/s"),
        (Network(Direction(trace=BandwidthTrace((1,), (1500,)))), "no memory for bandwidth traces"),
        (only(delay_ns=30_000, background=Background("constant", share=0.5)), "a share of a link without a rate"),
        (only(background=Background("exponential", rate_bps=1000)), "come every 1.2304e+10 ns"),
        (only(background=Background("constant", interval_ns=1)), "give 8 ns to 34.360 s"),
        (only(background=Background("pattern", entries=((1, 60), (2, 60)))), "would come all at once, for ever"),
        (only(background=Background("on-off", interval_ns=8, burst=1, pause_ns=1)), "would come all at once, for ever"),
        (only(background=Background("random on-off", interval_ns=8, burst=1, pause_ns=1)), "pauses of 8 ns or more"),
        (only(bucket=Bucket(20_000, 10**8)), "give 87437 at most at this rate"),
        (
            Network(Direction(classes=[
                TrafficClass("a", "udp", delay_ns=30_000, jitter=Jitter("uniform", 1000)),
                TrafficClass("b", delay_ns=30_000, jitter=Jitter("uniform", 2000)),
            ])),
            "classes 'a' and 'b' of 'there' have different jitter",
        ),
        (
            Network(Direction(classes=[
                TrafficClass("a", "udp", delay_ns=30_000, jitter=Jitter("uniform", 20_000)),
                TrafficClass("b", delay_ns=60_000, jitter=Jitter("uniform", 20_000, correlation=0.5)),
            ])),
            "that the least delay of this probe cuts differently",
        ),
        (
            Network(Direction(classes=[
                TrafficClass("a", "udp", pattern=LossList(range(300))),
                TrafficClass("b", pattern=LossList(range(1, 301))),
            ])),
            "patterns and lists of 'there' have 600 words or more: give 512",
        ),
    ],
)  # fmt: skip
def test_what_the_words_cannot_hold_is_refused_with_the_limit(network: Network, words: str) -> None:
    assert words in refusal(network, SMALL)


def held(there: Reorder | None, rest: Reorder | None) -> Direction:
    return Direction(10**7, classes=[TrafficClass("a", "udp", reorder=there), TrafficClass("b", reorder=rest)])


SOME, NONE = Reorder(0.1, 1e6), Reorder(0, 1e6)


@pytest.mark.parametrize(
    ("way", "options"),
    [
        ("there", {"there": held(SOME, SOME)}),
        ("back", {"back": held(SOME, SOME)}),
        ("there", {"changes": [Change(1e9, held(SOME, SOME))], "there": held(None, None)}),
        ("there", {"changes": [Change(1e9, held(None, SOME))], "there": held(SOME, None)}),
        ("there", {"changes": [Change(1, held(SOME, None)), Change(2, held(None, SOME))], "there": held(None, None)}),
    ],
)
def test_two_classes_of_a_direction_cannot_hold_frames_back(way: str, options: dict[str, Any]) -> None:
    with pytest.raises(
        UsageError, match=f"classes 'a' and 'b' of '{way}' have 'reorder', and one class of a direction"
    ):
        Network(**options)


def test_one_class_of_each_direction_can_hold_frames_back() -> None:
    """One that holds none back doesn't count, nor does the other direction."""
    later = [Change(1e9, held(None, None)), Change(2e9, held(Reorder(0.2, 2e6), NONE))]
    assert Network(held(SOME, NONE), held(None, SOME), later).states("there")[2].classes[0].reorder


def test_what_waits_has_a_limit_of_its_own() -> None:
    few = Limits(store_words=1 << 21, entries=8192, longest=1536, least_delay=3000, waiting=512)
    assert frames_of(there(TrafficClass(queue=Queue(500)), few, 10**7)) == 500
    assert frames_of(there(TrafficClass(), few, 10**7)) == 512
    classes = [TrafficClass("a", "udp", queue=Queue(500)), TrafficClass("b", queue=Queue(13))]
    assert "the queues of 'there' have 513 frames, and this probe holds 512 that wait" in refusal(
        Network(Direction(10**7, classes=classes)), few
    )


def test_what_is_said_to_be_the_most_is_the_most() -> None:
    """The limit of the message is taken, a little more isn't."""
    words_of(only(delay_ns=228_000), (SMALL, SMALL))
    assert "ms at most" in refusal(only(delay_ns=230_000), SMALL)
    words_of(Network(Direction(10**6, classes=[TrafficClass(queue=Queue(18))])), (SMALL, SMALL))
    assert "frames at most" in refusal(Network(Direction(10**6, classes=[TrafficClass(queue=Queue(19))])), SMALL)
    words_of(only(delay_ns=5e6, expected_bps=40e6), (SMALL, SMALL))


def test_frames_that_find_no_entry_are_announced() -> None:
    few = Limits(store_words=1 << 20, entries=1002, longest=1536, least_delay=3000)
    words = there(TrafficClass(delay_ns=12.5e6), few)
    assert words.notes == (
        "'there': the probe holds 1002 frames, so frames shorter than 1512 octets at the full rate may be dropped for want of "
        "memory (no_store)",
    )
    one = TrafficClass(queue=Queue(990), delay_ns=1e6)
    found = refusal(Network(Direction(10**9, classes=[one])), few)
    assert "has up to 1071 frames that wait or are under way, and this probe holds 1002: give queues of 921" in found
    assert found.endswith("give queues of 921 frames in all, or shorter delays")
    assert refusal(only(delay_ns=13e6), few).endswith("give shorter delays, or lower rates")
