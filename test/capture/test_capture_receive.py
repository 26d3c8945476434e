# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Blocks over a network that loses, repeats and swaps them: what can be had again is, what can't is counted; buffers."""

import os
import signal
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from liteprobe.cores.formats import BLOCK_MAGIC, BLOCK_VERSION, BLOCK_WORDS
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.capture.decode import BLOCK_OCTETS, Blocks, block_headers, no_blocks
from liteprobe.host.capture.receive import (
    MOST_OCTETS,
    SO_RCVBUFFORCE,
    UDP_GRO,
    Datagrams,
    Receiver,
    buffer_remark,
    open_socket,
    open_sockets,
)
from liteprobe.host.capture.resequence import ResendPolicy, Resequencer
from liteprobe.host.capture.ring import CaptureRing
from liteprobe.host.capture.sources import Batches, BusSource, UdpSource
from liteprobe.host.capture.trigger import ProbeTrigger, TriggeredSource, free_channel
from liteprobe.host.device.link.base import Words
from liteprobe.host.device.registers import Registers
from liteprobe.sim.drivers.capture.blocks import blocks_of, mixed
from liteprobe.sim.drivers.capture.fake_ring import FakeRing, Loses, numbers_of
from liteprobe.sim.drivers.system.fake_link import MemoryLink
from liteprobe.sim.drivers.tools.processes import wait_for
from liteprobe.sim.drivers.tools.refusals import refusal

SEED = 20261122
UDP_SEGMENT = 103  # Of Linux; Python has no name for it.
PATIENCE = ResendPolicy(wait_s=0.01, tries=5)
UNHURRIED = ResendPolicy(wait_s=20.0)  # So long does no busy machine keep a datagram.


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver(open_sockets([0, 2], address="127.0.0.1"), [0, 2], slots=512)
    yield made
    made.close()


def received(
    receiver: Receiver, ring: FakeRing, channels: list[int], patience: ResendPolicy = PATIENCE
) -> tuple[Blocks, UdpSource]:
    """Return all blocks that come from a ring, and what knows what was lost."""
    source = UdpSource(ring, receiver, channels, patience)  # type: ignore[arg-type]
    source.stop()
    ring.send_to(receiver.port)
    parts = [blocks.copy() for blocks, _ in source.batches()]
    ring.close()
    return np.concatenate(parts) if parts else np.empty((0, BLOCK_WORDS), np.uint32), source


def bodies(blocks: Blocks, channel: int) -> list[bytes]:
    """Return header and words of the blocks of a channel, in the order in which they stand."""
    headers = block_headers(blocks)
    return [
        block[: 4 + int(header["words"])].tobytes()
        for block, header in zip(blocks, headers, strict=True)
        if header["kind"] >> 8 & 0xF == channel
    ]


LOSSES: dict[str, Loses] = {
    "nothing": lambda *_: False,
    "every fifth, once": lambda channel, number, times: number % 5 == 2 and not times,
    "the first, twice": lambda channel, number, times: number == 0 and times < 2,
    "the last of each channel": lambda channel, number, times: number >= 40 and not times,
    "ten in a row": lambda channel, number, times: 20 <= number < 30 and times < 2,
}


@pytest.mark.parametrize("name", LOSSES)
def test_what_the_network_loses_is_asked_for_and_comes_in_order(receiver: Receiver, name: str) -> None:
    blocks = blocks_of(mixed(300, SEED, channels=(0, 2)))
    ring = FakeRing(blocks, LOSSES[name])
    found, source = received(receiver, ring, [0, 2], PATIENCE if name != "nothing" else UNHURRIED)
    for channel in (0, 2):
        assert bodies(found, channel) == bodies(blocks, channel)
    assert source.order.never_came == source.order.foreign == 0
    assert bool(ring.resends) == (name != "nothing") == (source.order.asked > 0)
    assert [state.read for state in ring.states()] == [state.written for state in ring.states()]


def test_block_that_never_comes_is_counted_and_the_rest_is_there(receiver: Receiver) -> None:
    blocks = blocks_of(mixed(300, SEED))
    ring = FakeRing(blocks, lambda channel, number, times: number == 7)
    found, source = received(receiver, ring, [0])
    assert numbers_of(found) == [number for number in range(len(blocks)) if number != 7]
    assert (source.order.never_came, ring.sends[0, 7] > PATIENCE.tries) == (1, True)


def test_capture_of_nothing_ends(receiver: Receiver) -> None:
    found, source = received(receiver, FakeRing(np.empty((0, BLOCK_WORDS), np.uint32)), [0])
    assert len(found) == 0 and source.order.asked == 0


def test_more_blocks_than_there_are_places_come_all(receiver: Receiver) -> None:
    blocks = blocks_of(mixed(6000, SEED))
    assert len(blocks) > 3 * 512
    found, source = received(receiver, FakeRing(blocks, size=300), [0])
    assert numbers_of(found) == list(range(len(blocks)))
    assert source.order.never_came == 0


def test_full_memory_stalls_and_overwrites_nothing() -> None:
    blocks = blocks_of(mixed(200, SEED))[:20]
    receiver = Receiver([open_socket("127.0.0.1")], slots=8)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            for block in blocks:
                sock.sendto(block.tobytes(), ("127.0.0.1", receiver.port))
        wait_for(lambda: receiver.stalls > 0)
        found = []
        while len(found) < 20:
            some, lengths = receiver.look(5)
            assert (lengths == 4 * BLOCK_WORDS).all() and receiver.waiting <= 8
            found += [block.tobytes() for block in some]
            receiver.free(len(some))
        assert found == [block.tobytes() for block in blocks]
        del some, lengths
    finally:
        receiver.close()


def test_receiver_that_dies_is_told() -> None:
    receiver = Receiver([open_socket("127.0.0.1")], slots=8)
    os.kill(receiver.pid, signal.SIGKILL)
    receiver._process.join()
    assert "has ended: start the capture again" in refusal(receiver.look, 1, error=ProbeError)
    receiver.close()


def test_port_that_is_taken_is_told() -> None:
    with open_socket("127.0.0.1") as taken, pytest.raises(ProbeError, match="can't receive on UDP port .* in use"):
        open_socket("127.0.0.1", taken.getsockname()[1])


# Order --------------------------------------------------------------------------------------------


def test_what_is_in_order_is_handed_on_without_a_copy() -> None:
    blocks = blocks_of(mixed(100, SEED)).copy()
    order = Resequencer({0: 0})
    assert order.push(blocks, np.full(len(blocks), 4 * BLOCK_WORDS), 0.0) is blocks


def test_noise_and_channels_of_others_are_foreign() -> None:
    blocks = blocks_of(mixed(50, SEED, channels=(0, 1))).copy()
    count = len(bodies(blocks, 1))
    noise = np.full((3, BLOCK_WORDS), 7, np.uint32)
    order = Resequencer({0: 0})
    mine = order.push(np.concatenate([noise, blocks]), np.full(len(blocks) + 3, 4 * BLOCK_WORDS), 0.0)
    assert (order.foreign, bodies(mine, 0)) == (3 + count, bodies(blocks, 0))


def test_number_far_ahead_is_foreign_and_held_nowhere() -> None:
    blocks = blocks_of(mixed(50, SEED), first_number=1 << 24)
    order = Resequencer({0: 0})
    assert len(order.push(blocks, np.full(len(blocks), 4 * BLOCK_WORDS), 0.0)) == 0
    assert order.foreign == len(blocks) and order.overdue(9.0) == []


def test_numbers_wrap_while_blocks_are_swapped() -> None:
    blocks = blocks_of(mixed(200, SEED), first_number=0xFFFFFFFC)
    places = [1, 0, 3, 2, *range(4, len(blocks))]
    order = Resequencer({0: 0xFFFFFFFC})
    parts = [order.push(blocks[place : place + 1], np.array([4 * BLOCK_WORDS]), 0.0) for place in places]
    assert numbers_of(np.concatenate(parts)) == numbers_of(blocks)
    assert order.overdue(100.0) == []


def test_block_is_asked_for_in_time_and_not_too_often() -> None:
    blocks = blocks_of(mixed(100, SEED))
    order = Resequencer({0: 0}, ResendPolicy(wait_s=1.0, tries=2))
    order.push(blocks[1:3], np.full(2, 4 * BLOCK_WORDS), 10.0)
    asked = [order.overdue(now_s) for now_s in (10.5, 11.0, 11.5, 12.0, 13.0, 14.0)]
    assert asked == [[], [(0, 0)], [], [(0, 0)], [], []]
    assert numbers_of(order.give_up(12.9)) == []
    assert numbers_of(order.give_up(13.0)) == [1, 2] and order.never_came == 1


def test_block_that_was_just_sent_is_not_late_however_long_the_host_was_busy() -> None:
    order = Resequencer({0: 0}, ResendPolicy(wait_s=1.0, tries=2))
    assert order.overdue(10.0) == []
    order.note_sent(0, 1, 50.0)
    assert [order.overdue(now_s) for now_s in (50.0, 50.9, 51.0)] == [[], [], [(0, 0)]]


# Registers ----------------------------------------------------------------------------------------


class RingLink(MemoryLink):
    """A bus with the registers and the table of a ring: blocks are taken over when it is enabled."""

    def write(self, address: int, words: object) -> Words:
        found = super().write(address, words)
        if address == 0 and self.words[0]:
            for channel in range(8):
                row = 0x1000 + 64 * channel
                self.words |= {row + 24: self.words.get(row + 4, 0), row + 8: 0, row + 12: 0, row + 16: 0}
        return found


def made_ring(blocks: int = 10) -> tuple[CaptureRing, MemoryLink]:
    link = RingLink()
    names = ("enable", "running", "flush_us", "ring_blocks", "ring_address", "trigger", "trigger_state")
    registers = {f"capture_{name}": {"addr": 4 * place, "size": 1, "type": "rw"} for place, name in enumerate(names)}
    registers |= {"export_udp_port": {"addr": 40, "size": 1, "type": "rw"}}
    registers |= {"export_start": {"addr": 44, "size": 1, "type": "rw"}}
    link.words |= {12: blocks, 16: 0x10000}
    memories = {"capture_channels": {"base": 0x1000, "size": 512}}
    return CaptureRing(Registers(link, {"csr_registers": registers, "memories": memories})), link


def test_ring_is_shared_out_evenly_in_powers_of_two() -> None:
    ring, link = made_ring(11)
    ring.start([2, 5])
    rows = link.read(0x1000, 128).reshape(8, 16)
    shares = {2: [0, 4, 0, 0], 5: [4, 4, 0, 0]}
    assert rows[:, :4].tolist() == [shares.get(channel, [0] * 4) for channel in range(8)]
    assert (link.words[0], link.words[8]) == (1, 1000)


def test_trigger_is_told_to_the_probe_and_halves_what_a_channel_may_have() -> None:
    ring, link = made_ring(16)
    ring.start([0, 1], trigger=ProbeTrigger(1).word)
    assert link.words[20] == 1 | 2 << 1 | 1 << 9
    ring.start([0, 1, 2, 3])
    assert link.words[20] == 0
    with pytest.raises(UsageError, match="the ring has 16 blocks, too few for 3 channels"):
        ring.start([0, 1, 2], trigger=ProbeTrigger(2).word)


@dataclass
class TriggeredRun:
    """A ring that fires after some waits, and a source of blocks that are said by channel and number."""

    fires_after: int
    came: list[tuple[int, int]]
    waits: int = 0
    stopped: int = 0
    first: dict[int, int] | None = None

    def __post_init__(self) -> None:
        self.ring, self.link = made_ring(32)
        self.ring.start([0, 3], trigger=ProbeTrigger(3).word)
        self.source = TriggeredSource(self.ring, [0, 3], self.wait, self.open)

    def wait(self, seconds: float) -> None:
        self.waits += 1
        if self.waits == self.fires_after:
            # Read and written of both: 5 to 9, and 0 to 1.
            self.link.words |= {24: 2, 0x1008: 5, 0x1010: 9, 0x1000 + 4 * 50: 0, 0x1000 + 4 * 52: 1}

    def open(self, first: dict[int, int]) -> "TriggeredRun":
        self.first = first
        return self

    def stop(self) -> None:
        self.stopped += 1

    def batches(self) -> Batches:
        for channel, number in self.came:
            block = np.zeros((1, BLOCK_WORDS), np.uint32)
            block[0, [0, 3]] = number, BLOCK_MAGIC << 16 | BLOCK_VERSION << 12 | channel << 8
            yield block, None
            block[:] = 0xDEAD  # What was yielded is overwritten.
            yield no_blocks(), None


def named(blocks: Blocks) -> list[tuple[int, int]]:
    return [(int(block[3]) >> 8 & 15, int(block[0])) for block in blocks]


def test_what_the_ring_held_comes_at_once_when_the_trigger_has_fired() -> None:
    held = [(0, 5), (3, 0), (0, 6), (3, 1), (0, 7), (0, 8)]
    run = TriggeredRun(4, [*held, (0, 9), (0, 10)])
    found = [named(blocks) for blocks, _ in run.source.batches() if len(blocks)]
    assert found == [held, [(0, 9)], [(0, 10)]]
    assert run.waits == 4 and run.first == run.source.overwritten == {0: 5, 3: 0}
    # Both are sent from the first block that is there.
    assert (run.link.words[0x100C], run.link.words[0x1000 + 4 * 51]) == (5, 0)


def test_blocks_that_never_come_do_not_keep_what_has_come() -> None:
    run = TriggeredRun(1, [(0, 5), (3, 0)])
    assert [named(blocks) for blocks, _ in run.source.batches() if len(blocks)] == [[(0, 5), (3, 0)]]


def test_capture_that_is_stopped_before_its_trigger_has_nothing() -> None:
    run = TriggeredRun(99, [(0, 0)])
    batches = run.source.batches()
    assert len(next(batches)[0]) == 0
    run.source.stop()
    assert list(batches) == [] and run.first is None and run.link.words[0] == 0


def test_trigger_takes_a_channel_of_its_own() -> None:
    assert free_channel([0, 2]) == 1
    assert "give 7 --channels at the most, or --host-trigger" in refusal(free_channel, range(8))


def test_channels_that_are_not_taken_are_told() -> None:
    ring, link = made_ring(16)
    link.write = MemoryLink.write.__get__(link)  # type: ignore[method-assign]
    assert "doesn't take its channels" in refusal(ring.start, [0], error=ProbeError)


def test_blocks_go_to_the_ports_of_their_channels() -> None:
    ring, link = made_ring(16)
    ring.send_to(40000, [0, 3])
    assert (link.words[40], link.words[44]) == (40000, 0b1001)


def test_too_many_channels_for_the_ring_are_refused() -> None:
    assert "the ring has 10 blocks, too few for 8 channels" in refusal(made_ring(10)[0].start, list(range(8)))


def test_probe_without_a_ring_is_refused() -> None:
    with pytest.raises(UsageError, match="captures nothing: build and load one with --preset monitor or tester"):
        CaptureRing(Registers(MemoryLink(), {"csr_registers": {}}))


def test_blocks_are_read_over_the_bus_where_the_ring_has_them_and_freed() -> None:
    blocks = blocks_of(mixed(300, SEED))
    assert len(blocks) > 20
    ring, link = made_ring(7)
    ring.start([3])
    waits = []

    def wait(seconds: float) -> None:
        """Let the probe write two more blocks."""
        waits.append(seconds)
        written = link.words.get(0x1000 + 4 * (16 * 3 + 4), 0)
        assert written == link.words[0x1000 + 4 * (16 * 3 + 2)], "all that was written is freed"
        for number in range(written, min(written + 2, len(blocks))):
            link.write(0x10000 + 4 * BLOCK_WORDS * (number % 4), blocks[number].tolist())
            written = number + 1
        link.words[0x1000 + 4 * (16 * 3 + 4)] = written
        if written == len(blocks):
            source.stop()

    source = BusSource(ring, [3], wait)
    found = np.concatenate([part for part, _ in source.batches()])
    assert found.tobytes() == blocks.tobytes()
    assert link.words[0] == 0 and len(waits) == -(-len(blocks) // 2)


# The kernel's buffer ------------------------------------------------------------------------------


class Kernel(socket.socket):
    """A socket of a system whose net.core.rmem_max is ``most``, and that may refuse more to whoever asks with force."""

    most = 212_992  # What Linux comes with.
    may_force = False

    def __init__(self, *args: int) -> None:
        super().__init__(*args)
        self.granted = 0
        self.asked: list[tuple[int, int]] = []

    def setsockopt(self, level: int, option: int, value: int) -> None:  # type: ignore[override]
        self.asked.append((option, value))
        assert level == socket.SOL_SOCKET
        if option == SO_RCVBUFFORCE and not self.may_force:
            raise PermissionError(1, "Operation not permitted")
        self.granted = 2 * (value if option == SO_RCVBUFFORCE else min(value, self.most))

    def getsockopt(self, level: int, option: int) -> int:  # type: ignore[override]
        assert (level, option) == (socket.SOL_SOCKET, socket.SO_RCVBUF)
        return self.granted


@pytest.mark.parametrize(
    ("may_force", "most", "granted_kb"),
    [(True, 212_992, 0), (False, 32 << 20, 0), (False, 212_992, 208), (False, 4 << 20, 4096)],
)
def test_buffer_that_the_kernel_refuses_is_told_with_what_gives_more(
    monkeypatch: pytest.MonkeyPatch, may_force: bool, most: int, granted_kb: int
) -> None:
    monkeypatch.setattr(Kernel, "may_force", may_force)
    monkeypatch.setattr(Kernel, "most", most)
    monkeypatch.setattr(socket, "socket", Kernel)
    sockets = open_sockets([0, 1], address="127.0.0.1")
    wanted = [(SO_RCVBUFFORCE, 32 << 20)] + [(socket.SO_RCVBUF, 32 << 20)] * (not may_force)
    assert [made.asked for made in sockets] == [wanted, wanted]  # type: ignore[attr-defined]
    said = (
        f"the kernel buffers {granted_kb} KB of blocks for this program, not 32768 KB: when the program is late, blocks are "
        "lost and asked for again; sysctl -w net.core.rmem_max=33554432 gives more"
    )
    assert buffer_remark(sockets) == (said if granted_kb else "")
    for made in sockets:
        made.close()


def test_buffer_is_as_large_as_this_system_gives() -> None:
    """With the right to force it (of root) all that is asked for, else what net.core.rmem_max allows."""
    most = int(Path("/proc/sys/net/core/rmem_max").read_text())
    status = Path("/proc/self/status").read_text()
    may_force = int(status.split("CapEff:")[1].split()[0], 16) >> 12 & 1  # CAP_NET_ADMIN
    with open_socket("127.0.0.1") as made:
        granted = made.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2
    assert granted == (32 << 20 if may_force else min(most, 32 << 20))


@pytest.mark.parametrize("has_room", [False, True])
@pytest.mark.parametrize("size", [BLOCK_OCTETS, 100, 1, BLOCK_OCTETS + 8])
def test_datagrams_that_the_kernel_joins_are_each_at_its_place_with_its_length(size: int, has_room: bool) -> None:
    """Ten come by one call, the last one shorter, and are taken in two parts; one alone, and an empty one."""
    room = np.zeros(MOST_OCTETS + BLOCK_OCTETS, np.uint8)
    data = np.random.default_rng(size).integers(0, 256, 9 * size + (size + 1) // 2, np.uint8).tobytes()
    with open_socket("127.0.0.1") as to, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        to.setblocking(False)
        to.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
        sender.connect(to.getsockname())
        sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, size)
        for octets in (data, data[:size], b""):
            sender.send(octets)
            wanted = [octets[k : k + size] for k in range(0, len(octets), size)] or [b""]
            found, parts = [], Datagrams()
            while len(found) < len(wanted):
                count = parts.read(to, memoryview(room.data)[:MOST_OCTETS] if has_room else None)
                assert count, "nothing waits"
                for first, end in [(0, 4), (4, count)] if count > 4 else [(0, count)]:
                    lengths, places = np.zeros(end - first, np.uint32), room[first * BLOCK_OCTETS : end * BLOCK_OCTETS]
                    parts.put(first, lengths, memoryview(places.data))
                    places = places.reshape(-1, BLOCK_OCTETS)
                    found += [bytes(row[:length]) for row, length in zip(places, lengths.tolist(), strict=True)]
            assert found == [each[:BLOCK_OCTETS] for each in wanted]
        assert Datagrams().read(to) == 0
