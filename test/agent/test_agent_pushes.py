# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Values that an agent pushes to those who watch them: of each peer, in plain octets."""

import itertools
import signal
import time
from collections.abc import Iterator

import pytest
import zmq

from liteprobe.sim.drivers.agent import processes
from liteprobe.sim.drivers.agent.raw import GET, PUSH, SET, Controller, Reply
from liteprobe.sim.models.agent import Value


@pytest.fixture
def device(agent_peer: str) -> Iterator[processes.Running]:
    """A device that was just started."""
    with processes.device(agent_peer) as running:
        yield running


@pytest.fixture
def one(device: processes.Running) -> Iterator[Controller]:
    with Controller(device.address) as controller:
        yield controller


def count(controller: Controller, name: str) -> Value:
    return controller.ask(GET, name).value


def pushes(socket: "zmq.Socket[bytes]", number: int) -> list[Reply]:
    found = []
    for _ in range(number):
        assert socket.poll(5000), "nothing is pushed"
        topic, *frames = socket.recv_multipart()
        assert topic == b"reads\0"
        found.append(Reply.of(frames))
    return found


def test_a_value_is_pushed_to_all_who_watch_it_with_number_and_time(one: Controller) -> None:
    sockets = [one.watcher(b"reads\0"), one.watcher(b"reads\0")]
    first, second = ({reply.number: reply for reply in pushes(socket, 10)} for socket in sockets)
    assert list(first) == list(range(min(first), min(first) + 10))
    assert {reply.kind for reply in first.values()} == {PUSH | 0x80}
    assert len({reply.session for reply in first.values()}) == 1
    assert all(reply.value == number for number, reply in first.items())  # It is read for pushes alone.
    both = first.keys() & second.keys()
    assert both and all(first[number].octets == second[number].octets for number in both)
    gaps_ns = [after.monotonic_ns - before.monotonic_ns for before, after in itertools.pairwise(first.values())]
    assert 15e6 < sorted(gaps_ns)[len(gaps_ns) // 2] < 60e6


def test_a_value_is_read_only_while_somebody_watches_it(one: Controller) -> None:
    assert count(one, "reads") == 1
    time.sleep(0.1)
    assert count(one, "reads") == 2
    socket = one.watcher(b"reads\0")
    pushes(socket, 3)
    socket.close()
    time.sleep(0.1)
    before = count(one, "reads")
    time.sleep(0.1)
    assert isinstance(before, int) and count(one, "reads") == before + 1


def test_topics_that_are_none_are_nobodys(one: Controller) -> None:
    topics = (
        b"",
        b"reads",
        b"sets\0",
        b"read",
        b"reads\0x",
        b"\0",
        b"\xff" * 300,
        b"agent.requests\0",
        b"queue_length\0",
    )
    sockets = [one.watcher(topic) for topic in topics]
    time.sleep(0.1)
    assert not any(socket.poll(0) for socket in sockets)
    assert count(one, "reads") == 1


INTERVAL_NS = 20e6


def skipped_between(one: Controller, first: Reply, last: Reply) -> float:
    """Return what must have been skipped between two pushes, by their times, less what the agent counted."""
    due = (last.monotonic_ns - first.monotonic_ns) / INTERVAL_NS
    skipped = count(one, "agent.skipped")
    assert isinstance(skipped, int) and skipped > 5
    return due - (last.number - first.number) - skipped


def test_a_value_whose_callback_waits_for_another_is_skipped_and_counted(one: Controller) -> None:
    socket = one.watcher(b"reads\0")
    first = pushes(socket, 1)[0]
    one.ask(SET, "hang_ms", 200)
    found = pushes(socket, 8)
    assert [reply.number for reply in found] == list(range(first.number + 1, first.number + 9))
    assert abs(skipped_between(one, first, found[-1])) < 2.5


def test_an_agent_that_was_stopped_skips_what_was_due_and_counts_it(device: processes.Running, one: Controller) -> None:
    socket = one.watcher(b"reads\0")
    first = pushes(socket, 1)[0]
    device.process.send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    device.process.send_signal(signal.SIGCONT)
    found = pushes(socket, 5)
    assert [reply.number for reply in found] == list(range(first.number + 1, first.number + 6))
    assert abs(skipped_between(one, first, found[-1])) < 2.5
