# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""One script that every agent passes, in Python and in C: the protocol of docs/agent.md and what is pushed, in plain octets."""

import itertools
import signal
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import zmq

from liteprobe.sim.drivers.agent import fuzz, processes
from liteprobe.sim.drivers.agent.raw import GET, HELLO, PUSH, SET, Controller, Reply, frame, header
from liteprobe.sim.drivers.tools.processes import wait_for
from liteprobe.sim.models.agent import COUNTERS, SETTINGS, Value, parsed

OK, MALFORMED, VERSION, NUMBER, UNKNOWN, READ_ONLY, TYPE, RANGE, NOT_SET, BUSY, REFUSED, TIMEOUT = range(12)
LIMIT_MS = 400
PATIENT_MS = 20_000
HANG_MS = 4000  # More than a machine stands still.
SLACK_S = 20.0  # More than a machine stands still.
ONE_OF_EACH: dict[str, Value] = {"queue_length": 7, "gain": 1.5, "enabled": True, "label": "é", "blob": b"\0\xff"}


@pytest.fixture
def device(agent_peer: str) -> Iterator[processes.Running]:
    """A device that was just started; in the end it must stop, and its sanitizers must be silent."""
    with processes.device(agent_peer, str(LIMIT_MS)) as running:
        yield running


@pytest.fixture
def address(device: processes.Running) -> str:
    return device.address


@pytest.fixture
def one(address: str) -> Iterator[Controller]:
    with Controller(address) as controller:
        yield controller


def count(controller: Controller, name: str) -> Value:
    return controller.ask(GET, name).value


# What it says of itself ---------------------------------------------------------------------------


def test_hello_says_what_the_device_has(one: Controller) -> None:
    reply = one.ask(HELLO)
    limit_ms, port, items = struct.unpack("<IHH", reply.body[0])
    assert (reply.status, limit_ms, reply.body[1], items) == (OK, LIMIT_MS, b"example", len(reply.body) - 2)
    assert port not in (0, int(one.socket.getsockopt_string(zmq.LAST_ENDPOINT).rpartition(":")[2]))
    wanted = {name: (1, kind) for name, (kind, _, _) in SETTINGS.items()} | dict.fromkeys(COUNTERS, (2, 1))
    wanted |= {b"sets": (2, 1), b"reads": (3, 1), b"broken": (2, 2)}
    assert {item[2:]: (item[0], item[1]) for item in reply.body[2:]} == wanted and items == len(wanted)


def test_times_are_those_of_the_device(one: Controller) -> None:
    before_ns, before_utc_ns = time.monotonic_ns(), time.time_ns()
    replies = [one.ask(GET, "sets"), one.ask(SET, "hang_ms", 50), one.ask(GET, "hang_ms"), one.ask(GET, "nothing")]
    monotonic = [before_ns, *(reply.monotonic_ns for reply in replies), time.monotonic_ns()]
    utc = [before_utc_ns, *(reply.utc_ns for reply in replies), time.time_ns()]
    assert monotonic == sorted(monotonic) and utc == sorted(utc)
    assert 50e6 <= replies[1].duration_ns <= 50e6 + SLACK_S * 1e9 and replies[2].duration_ns == 0


# Values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("any", [0, -1, 2**63 - 1, -(2**63)]),
        ("queue_length", [1, 1000]),
        ("gain", [-10.0, 10.0, 0.0, -0.0, 5e-324]),
        ("enabled", [True, False]),
        ("label", ["", "a", "é" * 512, "😀" * 256, "\x01\x7f\ud7ff\U0010ffff"]),
        ("blob", [b"", b"\0", bytes(range(256)) * 4]),
    ],
)
def test_each_value_that_a_type_can_have_is_taken_and_given_back(
    one: Controller, name: str, values: list[Value]
) -> None:
    for value in values:
        taken = 0.0 if value == 5e-324 else value
        for reply in (one.ask(SET, name, value), one.ask(GET, name)):
            assert (reply.value, type(reply.value)) == (taken, type(value))
    assert count(one, "sets") == len(values)


def test_a_device_says_what_it_took(one: Controller) -> None:
    assert [one.ask(SET, "gain", value).value for value in (1.2, -1.3, 9.9)] == [1.0, -1.5, 10.0]
    assert one.ask(GET, "gain").value == 10.0


def test_a_value_of_another_type_is_refused_and_not_turned_into_one(one: Controller) -> None:
    taken = 0
    for name, value in itertools.product(ONE_OF_EACH, ONE_OF_EACH.values()):
        is_own = type(value) is type(ONE_OF_EACH[name])
        reply = one.ask(SET, name, value)
        assert reply.status == (OK if is_own else TYPE)
        taken += is_own
        assert count(one, "sets") == taken and (is_own or "type" in reply.why)


def test_what_is_out_of_range_does_not_reach_the_device(one: Controller) -> None:
    for name, value in (("queue_length", 0), ("queue_length", 1001), ("queue_length", -(2**63)), ("gain", 10.001)):
        reply = one.ask(SET, name, value)
        assert reply.status == RANGE and "out of range" in reply.why and name in reply.why
    assert (count(one, "sets"), one.ask(GET, "queue_length").status) == (0, NOT_SET)


@pytest.mark.parametrize(
    "octets",
    [
        b"", b"\0", b"\6a", b"\1" + bytes(7), b"\1" + bytes(9), b"\2" + bytes(7), b"\2" + struct.pack("<d", float("nan")),
        b"\2" + struct.pack("<d", float("-inf")), b"\3", b"\3\2", b"\3\1\0", b"\4a\0b", b"\4\xc0\xaf", b"\4\xed\xa0\x80",
        b"\4\xf4\x90\x80\x80", b"\4\xe2\x82", b"\4" + b"a" * 1025, b"\5" + b"a" * 1025,
    ],
)  # fmt: skip
def test_octets_that_are_not_a_value_are_malformed(every: dict[str, str], agent_peer: str, octets: bytes) -> None:
    with Controller(every[agent_peer], session=next(sessions)) as one:
        before = count(one, "sets"), count(one, "agent.malformed")
        assert isinstance(before[1], int)
        for name in SETTINGS:
            one.number += 1
            reply = one.answer(header(SET, one.session, one.number), name, octets)
            assert (reply.status, reply.number) == (MALFORMED, one.number) and reply.why
        assert (count(one, "sets"), count(one, "agent.malformed")) == (before[0], before[1] + len(SETTINGS))


sessions = itertools.count(1000)


@pytest.fixture(scope="module")
def every() -> Iterator[dict[str, str]]:
    """Addresses of devices that many tests share."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        yield {
            peer: stack.enter_context(processes.device(peer, str(LIMIT_MS))).address
            for peer in processes.PEERS
            if peer == "python" or not processes.lacking()
        }


# Errors -------------------------------------------------------------------------------------------


def test_errors_say_what_is_wrong(one: Controller) -> None:
    for kind, name, value, status, words in (
        (GET, "nothing", None, UNKNOWN, "no 'nothing'"),
        (SET, "nothing", 1, UNKNOWN, "no 'nothing'"),
        (SET, "sets", 1, READ_ONLY, "only read"),
        (SET, "agent.requests", 1, READ_ONLY, "only read"),
        (GET, "label", None, NOT_SET, "not set yet"),
        (SET, "fuse", 3, REFUSED, "the fuse is blown (3)"),
        (GET, "fuse", None, NOT_SET, "not set yet"),
        (GET, "broken", None, REFUSED, ""),
    ):
        reply = one.ask(kind, name, value)
        assert (reply.status, words in reply.why) == (status, True), (name, reply.why)
    assert count(one, "sets") == 0


@pytest.mark.parametrize("version", [0, 2, 255])
def test_another_version_is_answered_with_the_one_that_is_spoken(one: Controller, version: int) -> None:
    for frames in ([b""], [b"\0" * 100], []):
        reply = one.answer(header(99, 0, 5, version) + b"more", *frames)
        assert (reply.status, reply.session, reply.number, reply.kind) == (VERSION, 0, 5, 99 | 0x80)
        assert f"version 1, not {version}" in reply.why
    assert count(one, "agent.malformed") == 3


@pytest.mark.parametrize(
    "frames",
    [
        [header(HELLO, 9, 1), b""],
        [header(GET, 9, 1)],
        [header(GET, 9, 1), b"sets", frame(1)],
        [header(SET, 9, 1), b"any"],
        [header(SET, 9, 1), b"any", frame(1), b""],
        [header(SET, 9, 1), b"any", *[frame(1)] * 500],
        [header(0, 9, 1), b"any", frame(1)],
        [header(PUSH, 9, 1), b"any", frame(1)],
        [header(HELLO, 0, 1)],
        [header(HELLO, 9, 0)],
        [header(HELLO, 9, 1, zero=1)],
        [header(HELLO, 9, 1, zero=256)],
        [header(HELLO, 9, 1) + b"\0"],
        [header(GET, 9, 1), b""],
        [header(GET, 9, 1), b"sets\0"],
        [header(GET, 9, 1), b"1sets"],
        [header(GET, 9, 1), b"a" * 64],
        [header(GET, 9, 1), b"s\xc3\xa9ts"],
    ],
)
def test_what_the_grammar_does_not_have_is_malformed(
    every: dict[str, str], agent_peer: str, frames: list[bytes]
) -> None:
    with Controller(every[agent_peer], session=next(sessions)) as one:
        before = count(one, "sets")
        reply = one.answer(*frames)
        assert (reply.status, reply.kind) == (MALFORMED, frames[0][5] | 0x80) and reply.why
        assert count(one, "sets") == before


def test_what_is_not_of_this_protocol_is_counted_and_not_answered(one: Controller) -> None:
    for frames in (
        [b""],
        [b"GET / HTTP/1.1\r\n\r\n"],
        [b"", header(HELLO, 1, 1)],
        [header(HELLO, 1, 1)[:-1]],
        [b"x" * 2048],
    ):
        one.send(*frames)
    assert one.take(0.1) is None
    assert count(one, "agent.malformed") == 5 and count(one, "agent.requests") == 2


def test_a_frame_that_is_too_long_ends_the_connection_and_nothing_else(address: str) -> None:
    with Controller(address, 1) as one, Controller(address, 2) as other:
        one.send(header(SET, 1, 1), b"blob", b"\5" + bytes(2048))
        assert one.take(0.1) is None
        assert (count(other, "sets"), count(other, "agent.malformed")) == (0, 0)
        assert one.ask(SET, "any", 1).value == 1  # libzmq connects again.


def test_fuzzed_messages_are_judged_as_the_grammar_does(address: str) -> None:
    found = fuzz.run(address, 2000, seed=20261124)
    assert found.wrong == []
    assert min(found.accepted, found.refused, found.ignored) > 100


# Duplicates ---------------------------------------------------------------------------------------


def test_a_request_that_comes_twice_is_done_once_and_answered_the_same(address: str) -> None:
    frames = [header(SET, 77, 5), b"any", frame(4)]
    with Controller(address) as one, Controller(address, 2) as other:
        first = one.answer(*frames)
        again = [one.answer(*frames), other.answer(*frames), one.answer(*frames)]
        assert [reply.octets for reply in again] == [first.octets] * 3
        assert (first.value, count(other, "sets"), count(other, "agent.duplicates")) == (4, 1, 3)


def test_a_number_is_used_once(one: Controller) -> None:
    assert one.answer(header(SET, 77, 5), b"any", frame(4)).status == OK
    for frames in ([header(SET, 77, 5), b"any", frame(5)], [header(GET, 77, 4), b"any"], [header(HELLO, 77, 5)]):
        reply = one.answer(*frames)
        assert reply.status == NUMBER and "above 5" in reply.why
    assert one.answer(header(GET, 77, 6), b"any").value == 4
    assert one.answer(header(GET, 78, 1), b"any").value == 4


def test_a_request_that_is_under_way_is_not_begun_again_and_is_answered_where_it_came_from_last(
    agent_peer: str,
) -> None:
    frames = [header(SET, 77, 1), b"hang_ms", frame(250)]
    with (
        processes.device(agent_peer, str(PATIENT_MS)) as device,
        Controller(device.address) as one,
        Controller(device.address, 2) as other,
    ):
        one.send(*frames)
        time.sleep(0.05)
        reply = one.answer(header(GET, 77, 2), b"sets")
        assert reply.status == NUMBER and "not answered yet" in reply.why
        assert other.answer(*frames).value == 250 and one.take(0.1) is None
        assert (count(other, "sets"), count(other, "agent.duplicates")) == (1, 1)


def test_sessions_that_were_used_long_ago_are_forgotten(one: Controller) -> None:
    frames = [header(SET, 10**6, 1), b"any", frame(4)]
    one.answer(*frames)
    for session in range(63):
        one.answer(header(GET, 10**7 + session, 1), b"any")
    one.answer(*frames)
    assert count(one, "sets") == 1
    for session in range(64):
        one.answer(header(GET, 10**8 + session, 1), b"any")
    one.answer(*frames)
    assert count(one, "sets") == 2


# Callbacks that hang, and many controllers --------------------------------------------------------


def test_a_callback_that_hangs_is_answered_for_and_holds_up_nobody_for_long(agent_peer: str) -> None:
    with (
        processes.device(agent_peer, str(HANG_MS)) as device,
        Controller(device.address, 1) as one,
        Controller(device.address, 2) as other,
    ):
        began_s = time.monotonic()
        one.send(header(SET, 1, 1), b"hang_ms", frame(2 * HANG_MS))
        time.sleep(0.05)
        assert other.ask(HELLO).status == OK and time.monotonic() - began_s < HANG_MS / 1e3
        time.sleep(HANG_MS / 2e3)  # What is asked for now has as much time left when its turn comes.
        assert other.ask(SET, "any", 5).value == 5  # It waited for the thread that took over.
        assert HANG_MS / 1e3 <= time.monotonic() - began_s <= HANG_MS / 1e3 + SLACK_S
        reply = one.take()
        assert reply and reply.status == TIMEOUT and "still runs" in reply.why
        one.number = 1
        refused = one.ask(SET, "hang_ms", 0)
        assert refused.status == BUSY and "still runs" in refused.why
        assert (count(other, "sets"), count(other, "agent.timeouts"), count(other, "agent.late")) == (1, 1, 0)
        wait_for(lambda: count(one, "agent.late") == 1)
        assert (one.ask(GET, "hang_ms").value, one.ask(SET, "hang_ms", 0).value) == (2 * HANG_MS, 0)
        assert (count(one, "sets"), count(one, "agent.late"), one.take(0)) == (3, 1, None)


def test_what_waits_too_long_is_not_begun(address: str) -> None:
    with Controller(address) as one:
        # Each takes 0.25 s, and all have 0.4 s from when they came: two begin.
        for session in range(4):
            one.send(header(SET, 100 + session, 1), b"hang_ms", frame(250))
        replies = sorted((reply for _ in range(4) if (reply := one.take())), key=lambda reply: reply.session)
        assert [reply.status for reply in replies] == [OK, TIMEOUT, TIMEOUT, TIMEOUT]
        assert ["not begun" in reply.why for reply in replies[1:]] == [False, True, True]
        wait_for(lambda: count(one, "agent.late") == 1)
        assert (count(one, "sets"), count(one, "agent.timeouts"), count(one, "agent.late")) == (2, 3, 1)


def test_an_agent_stops_though_a_callback_hangs(address: str) -> None:
    """The fixture asserts that it ends, with exit code 0."""
    with Controller(address) as one:
        assert one.ask(SET, "hang_ms", 60000).status == TIMEOUT


def test_many_controllers_at_once_each_get_their_own_answers(address: str) -> None:
    wrong: list[Reply] = []

    def work(session: int) -> None:
        with Controller(address, session) as one:
            for number in range(100):
                value = 1000 * session + number
                reply = one.ask(SET, "any", value)
                if reply.value != value:
                    wrong.append(reply)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(1, 9)))
    with Controller(address, 99) as one:
        assert wrong == [] and (count(one, "sets"), count(one, "agent.unsent")) == (800, 0)


def test_more_requests_than_an_agent_keeps_wait_in_the_socket(agent_peer: str) -> None:
    with processes.device(agent_peer, str(PATIENT_MS)) as device, Controller(device.address) as one:
        for session in range(1, 501):
            one.send(header(SET, 10**6 + session, 1), b"any", frame(session))
        replies = [one.take() for _ in range(500)]
    assert [reply and reply.value for reply in replies] == list(range(1, 501))


def test_an_answer_that_nobody_takes_is_counted(address: str) -> None:
    with Controller(address, 2) as other:
        for sent in range(1, 6):  # Where the machine stood still, the answer came before its asker went.
            with Controller(address, 1) as one:
                one.send(header(SET, sent, 1), b"hang_ms", frame(250))
                time.sleep(0.05)
            wait_for(lambda sent=sent: count(other, "sets") == sent)
            time.sleep(0.05)
            if count(other, "agent.unsent"):
                break
        assert 1 <= count(other, "agent.unsent") <= sent == count(other, "sets")


def test_the_models_values_are_those_of_the_wire() -> None:
    assert [parsed(frame(value)) for value in ONE_OF_EACH.values()] == [
        (kind, value) for kind, value in enumerate(ONE_OF_EACH.values(), 1)
    ]


# Pushes -------------------------------------------------------------------------------------------


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
    names = (b"", b"reads", b"sets\0", b"read", b"reads\0x", b"\0", b"\xff" * 300)
    topics = (*names, b"agent.requests\0", b"queue_length\0")
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
