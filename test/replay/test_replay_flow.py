# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The flow of a port's words sends, keeps and asks, answer by answer, by a clock of the test's own."""

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from liteprobe.cores.formats import DATAGRAM_HEADER_WORDS, DATAGRAM_WORDS, DatagramFlag, StatusFlag
from liteprobe.host.replay import slots as places
from liteprobe.host.replay import udp as flows
from liteprobe.host.replay.slots import (
    LOOK_S,
    REAL_TIME,
    SLOT_OCTETS,
    Cell,
    Fault,
    ReplaySession,
    ReplayStatus,
    Slots,
    Urgency,
)
from liteprobe.host.replay.udp import LOOK_MOST_S, PATIENCE_S, SILENCE_S, Flow

SESSION = ReplaySession(0, 7, 3)
SLOTS = 4
A_SILENCE_S = SILENCE_S + 0.001


@dataclass
class Clock:
    """Time that stands still until a test lets it pass."""

    now_s: float = 100.0


@dataclass(frozen=True)
class Words:
    """Datagrams whose words are all their number."""

    datagrams: int

    def chunks(self) -> Iterator[NDArray[np.uint32]]:
        """Yield them all at once."""
        yield np.repeat(np.arange(self.datagrams, dtype=np.uint32), DATAGRAM_WORDS)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(flows, "time", SimpleNamespace(monotonic=lambda: made.now_s))
    return made


@pytest.fixture
def flow(clock: Clock) -> Iterator[Flow]:
    """A flow of twelve datagrams, of which four find room; the others are made as that becomes free."""
    made = Flow(Slots(SLOTS), SESSION)
    maker = threading.Thread(target=made.slots.fill, args=(Words(12), SESSION))
    maker.start()
    wait_until_written(made, SLOTS)
    yield made
    made.slots.cells[Cell.STOP] = 1
    maker.join()


def wait_until_written(flow: Flow, datagrams: int) -> None:
    """Wait until so many datagrams were made, and see that no more are."""
    ends_s = time.monotonic() + 10
    while flow.slots.cells[Cell.WRITTEN] < datagrams:
        assert time.monotonic() < ends_s, "it takes too long"
        time.sleep(0.001)
    time.sleep(0.01)
    assert flow.slots.cells[Cell.WRITTEN] == datagrams


def answer(flow: Flow, accepted: int, limit: int) -> None:
    """Let the probe answer: datagrams that it has, and up to which it has room."""
    flow.take(ReplayStatus(SESSION, StatusFlag.NONE, accepted * DATAGRAM_WORDS, limit * DATAGRAM_WORDS, 0, 0, 0))


def sent(flow: Flow) -> list[tuple[int, int, bool]]:
    """Return number, content and whether an answer is asked for, of the datagrams that are to be sent now."""
    octets = flow.burst()
    if octets is None:
        return []
    words = np.frombuffer(octets, np.uint32).reshape(-1, SLOT_OCTETS // 4)
    return [
        (int(one[2]) // DATAGRAM_WORDS, int(one[DATAGRAM_HEADER_WORDS]), bool(one[0] >> 8 & DatagramFlag.ASK))
        for one in words
    ]


def test_the_last_datagram_that_was_accepted_stays_until_the_next_one_is(clock: Clock, flow: Flow) -> None:
    """With it the probe is asked: so its place isn't given to another one."""
    assert sent(flow) == [(0, 0, True)]
    answer(flow, 1, 4)
    assert sent(flow) == [(1, 1, False), (2, 2, False), (3, 3, False)]
    answer(flow, 4, 4)
    wait_until_written(flow, 7)
    clock.now_s += A_SILENCE_S
    assert sent(flow) == [(3, 3, True)]


def test_where_nothing_is_on_its_way_and_no_answer_comes_the_probe_is_asked_again_and_again(
    clock: Clock, flow: Flow
) -> None:
    """The answer that announced room may have been lost."""
    sent(flow)
    answer(flow, 1, 1)
    for _ in range(3):
        clock.now_s += SILENCE_S / 2
        assert sent(flow) == []
        clock.now_s += A_SILENCE_S / 2
        assert sent(flow) == [(0, 0, True)]
        assert sent(flow) == []
    answer(flow, 1, 2)
    assert sent(flow) == [(1, 1, False)]


def test_a_host_that_stood_still_asks_again_and_does_not_say_that_the_probe_is_gone(clock: Clock, flow: Flow) -> None:
    """A machine that slept, or had no processor for its programs: what was answered meanwhile waits in the socket."""
    sent(flow)
    answer(flow, 1, 4)
    assert len(sent(flow)) == 3
    clock.now_s += 100 * PATIENCE_S
    assert sent(flow) == [(1, 1, True)] and flow.fault == Fault.NONE
    answer(flow, 4, 4)
    assert flow.slots.cells[Cell.ACCEPTED] == 4 * DATAGRAM_WORDS
    heard_s = clock.now_s
    while flow.fault == Fault.NONE and clock.now_s < heard_s + 2 * PATIENCE_S:
        clock.now_s += LOOK_MOST_S / 4
        sent(flow)
    assert flow.fault == Fault.GONE
    assert clock.now_s == pytest.approx(heard_s + PATIENCE_S, abs=LOOK_MOST_S)


# Who goes first ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "classes"), [(0.7, [os.SCHED_RR]), (0.9, [os.SCHED_RR, os.SCHED_OTHER])])
def test_a_source_that_would_take_a_core_gives_the_real_time_class_back(
    monkeypatch: pytest.MonkeyPatch, share: float, classes: list[int]
) -> None:
    """For good, and only after half a second: the first datagrams are made all at once."""
    asked: list[tuple[int, int]] = []
    clock = Clock()
    fake = SimpleNamespace(monotonic=lambda: clock.now_s, process_time=lambda: share * clock.now_s)
    monkeypatch.setattr(places, "time", fake)
    monkeypatch.setattr(os, "setpriority", lambda *_: None)
    monkeypatch.setattr(os, "sched_setscheduler", lambda _, policy, given: asked.append((policy, given.sched_priority)))
    urgency = Urgency()
    for _ in range(20):
        urgency.look()
        clock.now_s += LOOK_S / 3
        assert len(asked) == 1 or clock.now_s >= 100 + LOOK_S
    assert [policy for policy, _ in asked] == classes
    assert asked[0] == (os.SCHED_RR, REAL_TIME)


def test_where_the_system_lets_no_program_go_first_it_is_made_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refuse)
    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    made = Slots(SLOTS)
    made.urgency = Urgency()
    made.fill(Words(3), SESSION)
    assert (made.cells[Cell.WRITTEN], made.cells[Cell.IS_ALL]) == (3, 1)
