# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The stream of words to a probe: on real sockets through networks of all kinds, and answer by answer by a clock of a test."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from liteprobe.cores.formats import DATAGRAM_HEADER_WORDS, DATAGRAM_WORDS, DatagramFlag, StatusFlag
from liteprobe.host.base.errors import LeaseLostError, NoProbeError, ProbeError, UsageError
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
from liteprobe.host.replay.streamer import Streamer
from liteprobe.host.replay.udp import LOOK_MOST_S, PATIENCE_S, SILENCE_S, Flow, Pace, UdpSender, UdpTarget
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.trace.trace import Trace, TraceWords
from liteprobe.sim.drivers.replay.capture_files import pcap, random_packets
from liteprobe.sim.drivers.replay.fake_probe import FakeReceiver, RandomWords, Ring
from liteprobe.sim.drivers.system.hostile_relay import HostileRelay, Hostility
from liteprobe.sim.drivers.tools.processes import is_running, wait_for

SESSION, LEASE = 0x1234, 0x0567


@contextmanager
def sending(port: int, sources: dict[int, RandomWords], slots: int = 1024, **how: bool) -> Iterator[dict[int, Flow]]:
    """Stream from threads of this process, which is started at once."""
    made = {
        number: Flow(Slots(slots), ReplaySession(number, SESSION, LEASE), Pace(patience_s=0.6)) for number in sources
    }
    sock = UdpTarget("127.0.0.1", port).open()
    threads = [threading.Thread(target=UdpSender(sock, list(made.values()), **how).run)]
    for number, source in sources.items():
        threads.append(threading.Thread(target=made[number].slots.fill, args=(source, made[number].session)))
    for thread in threads:
        thread.start()
    try:
        yield made
    finally:
        for one in made.values():
            one.slots.cells[Cell.STOP] = 1
        for thread in threads:
            thread.join()
        sock.close()


def streamed(rings: dict[int, Ring], hostility: Hostility, words: int, **how: bool) -> dict[int, Flow]:
    """Stream random words, and see that they are what the rings take."""
    sources = {port: RandomWords(hostility.seed + port, words) for port in rings}
    with (
        FakeReceiver(rings) as receiver,
        HostileRelay(receiver.port, hostility) as relay,
        sending(relay.port, sources, **how) as made,
    ):
        wait_for(lambda: all(one.is_done or one.fault for one in made.values()))
        assert [one.fault for one in made.values()] == [Fault.NONE] * len(made)
    for port, ring in rings.items():
        assert bytes(ring.octets) == sources[port].all().tobytes()
        assert made[port].slots.cells[Cell.ACCEPTED] == words
    return made


# Whatever the network does ------------------------------------------------------------------------


@pytest.mark.sample(5)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.05, 0.2])
@pytest.mark.parametrize("kind", ["loss", "doubling", "reordering", "all"])
def test_what_is_taken_is_what_was_given(kind: str, share: float) -> None:
    """Loss, doubling and reordering of 1, 5 and 20 % both ways, and all of them at once."""
    names = ("loss", "doubling", "reordering") if kind == "all" else (kind,)
    streamed({0: Ring(SESSION, LEASE)}, Hostility(**dict.fromkeys(names, share), seed=len(kind)), 30_000)


def test_two_ports_share_a_socket_and_a_bad_network() -> None:
    rings = {port: Ring(SESSION, LEASE, words_a_second=(port + 1) * 1e6) for port in range(2)}
    made = streamed(rings, Hostility(0.02, 0.02, 0.02, stall_each_s=0.05), 150_000)
    assert all(one.slots.cells[Cell.GAPS] > 0 for one in made.values())


def test_no_more_are_on_their_way_than_the_pace_allows() -> None:
    """Words that aren't accepted stay at the flight, whatever space is free, also after a loss."""
    session, flight = ReplaySession(0, SESSION, LEASE), 20
    made = Flow(Slots(256), session, Pace(flight=flight, timeout_s=60))
    made.slots.fill(RandomWords(1, 200 * DATAGRAM_WORDS), session)
    sent, accepted, outstanding = 0, 0, []

    def answer(flags: int = 0) -> None:
        words = accepted * DATAGRAM_WORDS
        made.take(ReplayStatus(session, StatusFlag(flags), words, words + 1000 * DATAGRAM_WORDS, 0, 0, 0))

    while not made.is_done:
        while (octets := made.burst()) is not None:
            sent += -(-len(octets) // SLOT_OCTETS)
        outstanding.append(sent - accepted)
        if accepted == 101:
            answer(StatusFlag.GAP)  # All that were on their way are sent again.
            sent = accepted
            while (octets := made.burst()) is not None:
                sent += -(-len(octets) // SLOT_OCTETS)
            outstanding.append(sent - accepted)
        accepted = min(accepted + 5 - 4 * (accepted == 0), sent)
        answer()
    assert accepted == 200 and max(outstanding) == flight
    assert made.slots.cells[Cell.TIMEOUTS] == 0


@pytest.mark.parametrize("size", [365, 400, 1000, 20_000])
def test_a_ring_that_is_full_is_never_overrun(size: int) -> None:
    """However small it is; without loss no datagram comes when there is no room."""
    ring = Ring(SESSION, LEASE, words=size, words_a_second=200_000 if size < 1000 else 500_000)
    streamed({0: ring}, Hostility(), 20_000)
    assert (ring.full, ring.early) == (0, 0)


def test_a_ring_that_is_full_survives_a_bad_network() -> None:
    ring = Ring(SESSION, LEASE, words=8000, words_a_second=500_000)
    streamed({0: ring}, Hostility(0.1, 0.1, 0.1, stall_each_s=0.03), 100_000)


@pytest.mark.parametrize("is_cut", [True, False])
def test_the_kernel_cuts_datagrams_or_the_sender_does(is_cut: bool) -> None:
    streamed({0: Ring(SESSION, LEASE)}, Hostility(), 365 * 300, with_segments=is_cut)


@pytest.mark.parametrize("words", [1, 364, 365, 366, 365 * 44, 365 * 45 + 1, 365 * 2048])
def test_the_last_datagram_is_as_long_as_what_is_left(words: int) -> None:
    streamed({0: Ring(SESSION, LEASE)}, Hostility(seed=words), words)


def test_what_is_prepared_slowly_is_awaited_and_counted() -> None:
    source = RandomWords(3, 40_000, pause_s=0.004)
    with FakeReceiver({0: Ring(SESSION, LEASE)}) as receiver, sending(receiver.port, {0: source}) as made:
        wait_for(lambda: made[0].is_done)
        assert bytes(receiver.rings[0].octets) == source.all().tobytes()
        assert made[0].slots.cells[Cell.STARVED] > 3


def test_positions_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session of 2^32 words takes half an hour: here they wrap at 2^17, as the ring's words are fewer."""
    from liteprobe.host.replay import slots
    from liteprobe.sim.drivers.replay import fake_probe

    for module in (slots, flows, fake_probe):
        monkeypatch.setattr(module, "POSITIONS", 1 << 17)
    streamed({0: Ring(SESSION, LEASE, words=20_000)}, Hostility(0.01, 0.01, 0.01), 300_000)


# Faults -------------------------------------------------------------------------------------------


def ended(receiver: FakeReceiver, source: RandomWords, act: Callable[[Flow], None] = lambda _: None) -> Fault:
    """Return how a stream ends once ``act`` was done in its middle."""
    with sending(receiver.port, {0: source}) as made:
        wait_for(lambda: made[0].slots.cells[Cell.ACCEPTED] > 2000 or made[0].fault)
        act(made[0])
        wait_for(lambda: made[0].fault or made[0].is_done)
        return made[0].fault


def test_a_probe_that_never_answers_is_said_to_be_silent() -> None:
    with FakeReceiver({0: Ring(SESSION, LEASE)}) as receiver:
        receiver.is_mute = True
        assert ended(receiver, RandomWords(1, 50_000)) == Fault.SILENT


def test_a_port_that_nobody_listens_to_is_said_to_be_silent() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with sending(port, {0: RandomWords(1, 5000)}) as made:
        wait_for(lambda: made[0].fault)
        assert made[0].fault == Fault.SILENT


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda ring, _: setattr(ring, "lease", LEASE + 1), Fault.LEASE),
        (lambda ring, _: setattr(ring, "session", SESSION + 1), Fault.SESSION),
        (lambda _, receiver: setattr(receiver, "is_mute", True), Fault.GONE),
        (lambda ring, _: setattr(ring, "position", 10**6), Fault.BROKEN),
    ],
)
def test_what_ends_in_the_middle_is_said_to_be_what_it_is(
    change: Callable[[Ring, FakeReceiver], None], fault: Fault
) -> None:
    ring = Ring(SESSION, LEASE, words_a_second=300_000)
    with FakeReceiver({0: ring}) as receiver:
        assert ended(receiver, RandomWords(1, 400_000), lambda _: change(ring, receiver)) == fault


def test_an_answer_is_never_needed_twice() -> None:
    """All answers that announce room may be lost: the sender asks again."""
    ring = Ring(SESSION, LEASE, words=2000, words_a_second=1e6)
    source = RandomWords(1, 20_000)
    with FakeReceiver({0: ring}) as receiver, sending(receiver.port, {0: source}) as made:
        for _ in range(3):
            wait_for(lambda: ring.accepted > 0)
            receiver.is_mute = True
            time.sleep(0.3)
            receiver.is_mute = False
            time.sleep(0.05)
        wait_for(lambda: made[0].is_done)
    assert bytes(ring.octets) == source.all().tobytes()


def test_counts_of_answers_wrap_and_may_be_overtaken() -> None:
    """Underruns that the probe counts in 16 bits are kept in 64."""
    ring = Ring(SESSION, LEASE, words_a_second=400_000)
    with FakeReceiver({0: ring}) as receiver, sending(receiver.port, {0: RandomWords(1, 200_000)}) as made:
        for underruns in (3, 20_000, 50_000, 70_000):
            ring.underruns = underruns
            time.sleep(0.05)
        wait_for(lambda: made[0].is_done)
        wait_for(lambda: made[0].slots.cells[Cell.UNDERRUNS] == 70_000)


# Processes ----------------------------------------------------------------------------------------


def test_a_trace_of_a_file_goes_through_processes_and_a_bad_network(tmp_path: Path) -> None:
    path = tmp_path / "frames.pcap"
    path.write_bytes(pcap(random_packets(1, 3000)))
    words = TraceWords(Trace.from_pcap(path))
    rings = {port: Ring(SESSION, LEASE, words_a_second=1e6) for port in range(2)}
    with (
        FakeReceiver(rings) as receiver,
        HostileRelay(receiver.port, Hostility(0.02, 0.02, 0.02, stall_each_s=0.1)) as relay,
        Streamer(
            UdpTarget("127.0.0.1", relay.port), {ReplaySession(port, SESSION, LEASE): words for port in rings}
        ) as streamer,
    ):
        wait_for(lambda: all(streamer.state(port).is_all for port in rings))
        states = [streamer.state(port) for port in rings]
    whole = np.concatenate(list(words.chunks()))
    for ring, state in zip(rings.values(), states, strict=True):
        assert bytes(ring.octets) == whole.tobytes()
        assert (state.accepted, state.words) == (len(whole), len(whole))
        assert state.datagrams - state.resent == -(-len(whole) // 365)
        assert state.round_trip_s > 0


def test_a_stream_stops_at_once_and_leaves_nothing_behind() -> None:
    endless = TraceWords(Trace.cbr(Interval(), 1514, None))
    with FakeReceiver({0: Ring(SESSION, LEASE, words_a_second=1e6)}) as receiver:
        streamer = Streamer(UdpTarget("127.0.0.1", receiver.port), {ReplaySession(0, SESSION, LEASE): endless})
        wait_for(lambda: streamer.state(0).accepted > 10_000)
        pids = streamer.pids
        began_s = time.monotonic()
        streamer.close()
        assert time.monotonic() - began_s < 5
        streamer.close()

        def is_at_rest() -> bool:
            """Whether nothing comes any more: what was on its way is taken first."""
            taken = receiver.rings[0].accepted
            time.sleep(0.05)
            return receiver.rings[0].accepted == taken

        wait_for(is_at_rest)
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_when_the_host_is_killed_its_processes_end() -> None:
    script = f"""
import time
from liteprobe.host.replay.slots import ReplaySession
from liteprobe.host.replay.streamer import Streamer
from liteprobe.host.replay.udp import UdpTarget
from liteprobe.host.traffic.trace.trace import TraceWords
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.trace.trace import Trace

if __name__ == "__main__":
    words = TraceWords(Trace.cbr(Interval(), 1514, None))
    streamer = Streamer(UdpTarget("127.0.0.1", PORT), {{ReplaySession(0, {SESSION}, {LEASE}): words}})
    print(*streamer.pids, flush=True)
    time.sleep(60)
"""
    ring = Ring(SESSION, LEASE, words_a_second=1e6)
    with FakeReceiver({0: ring}) as receiver:
        command = [sys.executable, "-c", script.replace("PORT", str(receiver.port))]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as host:
            assert host.stdout
            pids = [int(word) for word in host.stdout.readline().split()]
            wait_for(lambda: ring.accepted > 10_000)
            host.kill()
        assert len(pids) == 2
        wait_for(lambda: not any(is_running(pid) for pid in pids))


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"is_mute": True}, NoProbeError, "nothing answers at 127.0.0.1, UDP port .*: let the firewalls"),
        ({"lease": LEASE + 1}, LeaseLostError, "the probe was taken from this host"),
        ({"session": SESSION + 1}, ProbeError, "another program of this host streams to port 0 now"),
    ],
)
def test_errors_say_what_to_do(change: dict[str, int], error: type[ProbeError], words: str) -> None:
    ring = replace(Ring(SESSION, LEASE), **{key: value for key, value in change.items() if key != "is_mute"})  # type: ignore[arg-type]
    with FakeReceiver({0: ring}) as receiver:
        receiver.is_mute = "is_mute" in change
        target = UdpTarget("127.0.0.1", receiver.port, Pace(patience_s=0.3))
        source = TraceWords(Trace.cbr(Interval(), 60, 1000))
        with (
            Streamer(target, {ReplaySession(0, SESSION, LEASE): source}) as streamer,
            pytest.raises(error, match=words),
        ):
            wait_for(lambda: streamer.state(0).is_all)


def test_a_file_that_is_wrong_in_its_middle_ends_the_stream_with_its_packet(tmp_path: Path) -> None:
    path = tmp_path / "frames.pcap"
    path.write_bytes(pcap(random_packets(1, 50))[:-1])
    source = TraceWords(Trace.from_pcap(path))
    with (
        FakeReceiver({0: Ring(SESSION, LEASE)}) as receiver,
        Streamer(UdpTarget("127.0.0.1", receiver.port), {ReplaySession(0, SESSION, LEASE): source}) as streamer,
        pytest.raises(UsageError, match="packet 50 .* is cut after"),
    ):
        wait_for(lambda: streamer.state(0).is_all)


def test_without_a_route_it_says_so() -> None:
    with pytest.raises(NoProbeError, match="can't send to 255.255.255.255, UDP port 1236"):
        Streamer(UdpTarget("255.255.255.255"), {})


class MovingCells:
    """Cells that another process writes while they are read: all of it, from the ``number``-th read on."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __getitem__(self, cell: Cell) -> int:
        self.left -= 1
        before, after = {Cell.WORDS: 10}, {Cell.WORDS: 30, Cell.ACCEPTED: 30, Cell.IS_ALL: 1}
        return (before if self.left >= 0 else after).get(cell, 0)


@pytest.mark.sample(7)
@pytest.mark.parametrize("number", range(20))
def test_a_state_that_changes_while_it_is_read_is_never_all_with_less(number: int) -> None:
    slots = {0: SimpleNamespace(cells=MovingCells(number))}
    state = Streamer.state(SimpleNamespace(slots=slots, _check=lambda port: None), 0)  # type: ignore[arg-type]
    assert not state.is_all or (state.accepted, state.words) == (30, 30)


# Answer by answer ---------------------------------------------------------------------------------


FLOW_SESSION = ReplaySession(0, 7, 3)
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
    made = Flow(Slots(SLOTS), FLOW_SESSION)
    maker = threading.Thread(target=made.slots.fill, args=(Words(12), FLOW_SESSION))
    maker.start()
    wait_until_written(made, SLOTS)
    yield made
    made.slots.cells[Cell.STOP] = 1
    maker.join()


def wait_until_written(flow: Flow, datagrams: int) -> None:
    """Wait until so many datagrams were made, and see that no more are."""
    wait_for(lambda: flow.slots.cells[Cell.WRITTEN] >= datagrams)
    time.sleep(0.01)
    assert flow.slots.cells[Cell.WRITTEN] == datagrams


def answer(flow: Flow, accepted: int, limit: int) -> None:
    """Let the probe answer: datagrams that it has, and up to which it has room."""
    flow.take(ReplayStatus(FLOW_SESSION, StatusFlag.NONE, accepted * DATAGRAM_WORDS, limit * DATAGRAM_WORDS, 0, 0, 0))


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
    made.fill(Words(3), FLOW_SESSION)
    assert (made.cells[Cell.WRITTEN], made.cells[Cell.IS_ALL]) == (3, 1)
