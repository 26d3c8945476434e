# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Receives the UDP blocks of a capture in a process of its own, so that receiving never waits for the disk."""

import contextlib
import multiprocessing
import os
import select
import socket
import sys
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import BLOCK_WORDS
from liteprobe.host.base import interrupt
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.base.shared_memory import SharedMemory
from liteprobe.host.capture.decode import BLOCK_OCTETS, Blocks

SLOTS = 1 << 15  # Blocks: 48 MB, 0.4 s of a full gigabit.
SOCKET_OCTETS = 32 << 20  # Asked of the kernel, which gives net.core.rmem_max at the most, but all to root.
SO_RCVBUFFORCE, UDP_GRO = 33, 104  # Of Linux; Python has no names for them.
WAIT_S = 0.05
PORT_TRIES = 20
MOST_OCTETS = 1 << 16  # Of the datagrams that the kernel joins.
CONTROL_OCTETS = socket.CMSG_SPACE(4)  # That say how long each is.
CONTROL_WORDS = 8
WRITTEN, READ, STOP, STALLS, READY = range(5)  # Words of 64 bits that both processes see.
LENGTHS_AT = 8 * CONTROL_WORDS


def open_socket(address: str = "0.0.0.0", port: int = 0) -> socket.socket:
    """Return a UDP socket with the largest buffer that the kernel gives, at most SOCKET_OCTETS.

    Raises ProbeError when the port is taken.
    """
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        try:
            made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_OCTETS)
        except PermissionError:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_OCTETS)
        made.bind((address, port))
    except OSError as error:
        made.close()
        raise ProbeError(f"can't receive on UDP port {port} ({error.strerror}): give another one") from None
    return made


def buffer_remark(sockets: Sequence[socket.socket]) -> str:
    """Return what to say of the buffer that the kernel gave each socket; nothing where it is all that was asked for."""
    # The kernel doubles what is asked for, for its own use, and says the double.
    granted = min(sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) for sock in sockets) // 2
    if granted >= SOCKET_OCTETS:
        return ""
    return (
        f"the kernel buffers {granted >> 10} KB of blocks for this program, not {SOCKET_OCTETS >> 10} KB: when the program is "
        f"late, blocks are lost and asked for again; sysctl -w net.core.rmem_max={SOCKET_OCTETS} gives more"
    )


def open_sockets(channels: Sequence[int], port: int = 0, address: str = "0.0.0.0") -> list[socket.socket]:
    """Return a socket for each channel, on UDP port ``port`` + channel; 0: where such a row of ports is free.

    Raises ProbeError when a port is taken.
    """
    for _ in range(1 if port else PORT_TRIES):
        made: list[socket.socket] = []
        first = port
        try:
            for channel in channels:
                made.append(open_socket(address, first + channel if first else 0))
                first = first or int(made[0].getsockname()[1]) - channel
            return made
        except (ProbeError, OverflowError):
            for sock in made:
                sock.close()
            if port:
                raise
    raise ProbeError("there is no row of free UDP ports: give the first one of eight, like --udp-port 40000")


class Receiver:
    """Receives blocks into memory that this process shares with the one that receives.

    Parameters
    ----------
    sockets : list of socket
        Of `open_sockets`; closed here, the other process has its own.
    channels : sequence of int
        Channel of each socket.
    slots : int
        Blocks that may wait.
    """

    def __init__(self, sockets: list[socket.socket], channels: Sequence[int] = (0,), slots: int = SLOTS) -> None:
        #: UDP port of channel 0, whether that is received or not.
        self.port = int(sockets[0].getsockname()[1]) - channels[0]
        self._slots = slots
        self._memory = SharedMemory(LENGTHS_AT + slots * (4 + BLOCK_OCTETS))
        shared = self._memory.buffer
        self._control = np.frombuffer(shared, np.uint64, CONTROL_WORDS)
        self._lengths = np.frombuffer(shared, np.uint32, slots, LENGTHS_AT)
        self._blocks = np.frombuffer(shared, np.uint32, slots * BLOCK_WORDS, LENGTHS_AT + 4 * slots)
        self._control[:] = 0
        self._is_closed = False
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(
            target=receive, args=(sockets, self._memory, slots, os.getpid()), daemon=True, name="liteprobe-receive"
        )
        interrupt.start_worker(self._process)
        for sock in sockets:
            sock.close()
        while not self._control[READY]:
            self._check_alive()
            time.sleep(0.002)

    @property
    def pid(self) -> int:
        """Number of the process that receives."""
        return self._process.pid or 0

    @property
    def waiting(self) -> int:
        """Blocks that have come and were not taken yet."""
        return int(self._control[WRITTEN] - self._control[READ])

    @property
    def stalls(self) -> int:
        """Times that all memory was full: what came then waited in the kernel, or was lost there and is asked for."""
        return int(self._control[STALLS])

    def look(self, most: int, timeout_s: float = WAIT_S) -> tuple[Blocks, NDArray[np.uint32]]:
        """Return blocks that have come, and their lengths (octets), as views that stay until `free`.

        Waits up to ``timeout_s`` for the first one, and returns none after that. Raises ProbeError when the process
        that receives has died.
        """
        ends = time.monotonic() + timeout_s
        while not (waiting := self.waiting):
            self._check_alive()
            if time.monotonic() >= ends:
                break
            time.sleep(0.001)
        first = int(self._control[READ]) % self._slots
        count = min(waiting, most, self._slots - first)
        blocks = self._blocks.reshape(-1, BLOCK_WORDS)[first : first + count]
        return blocks, self._lengths[first : first + count]

    def _check_alive(self) -> None:
        if not self._process.is_alive():
            interrupt.pass_on()
            raise ProbeError("the process that receives blocks has ended: start the capture again")

    def free(self, count: int) -> None:
        """Let the places of the ``count`` oldest blocks be used again."""
        self._control[READ] += np.uint64(count)

    def close(self) -> None:
        """End the process and give the memory back; closing twice is harmless."""
        if self._is_closed:
            return
        self._is_closed = True
        self._control[STOP] = 1
        self._process.join(timeout=2)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        del self._control, self._lengths, self._blocks
        with contextlib.suppress(BufferError):  # Someone still looks at blocks: the memory ends with this process.
            self._memory.close()


class Datagrams:
    """Takes what waits at a socket: one datagram, or many of one size that the kernel has joined (UDP_GRO, Linux 5.0).

    ``octets``: all of them, one after the other, as they came last; ``size``: of each, the last one may be shorter.
    """

    def __init__(self) -> None:
        self._place = memoryview(bytearray(MOST_OCTETS))
        self.octets, self.size, self.is_there = self._place[:0], 1, False

    def read(self, sock: socket.socket, places: memoryview | None = None) -> int:
        """Read from a socket that doesn't block, and return how many datagrams have come; 0: none waits.

        ``places``: MOST_OCTETS that will be their places; blocks are then there at once.
        """
        place = self._place if places is None else places
        try:
            count, extra, _, _ = sock.recvmsg_into([place], CONTROL_OCTETS)
        except (BlockingIOError, InterruptedError):
            return 0
        self.octets = place[:count]
        self.size = int.from_bytes(extra[0][2], sys.byteorder) if extra else max(count, 1)
        number = max(-(-count // self.size), 1)
        self.is_there = places is not None and (self.size == BLOCK_OCTETS or number == 1)
        if places is not None and not self.is_there:
            self._place[:count] = self.octets
            self.octets = self._place[:count]
        return number

    def put(self, first: int, lengths: NDArray[np.uint32], places: memoryview) -> None:
        """Put datagrams from number ``first`` on into as many places as there are ``lengths``; what is longer is cut."""
        octets = self.octets[first * self.size : (first + len(lengths)) * self.size]
        for number in range(0 if self.is_there else len(lengths)):
            some = octets[number * self.size : (number + 1) * self.size][:BLOCK_OCTETS]
            places[number * BLOCK_OCTETS :][: len(some)] = some
        lengths[:] = min(self.size, BLOCK_OCTETS)
        lengths[-1] = min(len(octets) - (len(lengths) - 1) * self.size, BLOCK_OCTETS)


def receive(sockets: list[socket.socket], memory: SharedMemory, slots: int, parent: int) -> None:
    """Receive blocks into shared memory until asked to stop, or until the parent has gone: the other process."""
    interrupt.be_worker()  # Ctrl-C is the parent's: it wants what has come.
    shared = memoryview(memory.buffer)
    control = shared[: 8 * CONTROL_WORDS].cast("Q")
    lengths = np.frombuffer(shared, np.uint32, slots, LENGTHS_AT)
    places = shared[LENGTHS_AT + 4 * slots : LENGTHS_AT + slots * (4 + BLOCK_OCTETS)]
    datagrams = Datagrams()
    ready = select.poll()
    for sock in sockets:
        sock.setblocking(False)
        with contextlib.suppress(OSError):  # An older kernel: each comes alone.
            sock.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
        ready.register(sock, select.POLLIN)
    of_number = {sock.fileno(): sock for sock in sockets}
    control[READY] = 1
    written = 0
    while not control[STOP]:
        events = ready.poll(1000 * WAIT_S)
        if not events and os.getppid() != parent:
            break
        for number, _ in events:
            at, free = written % slots * BLOCK_OCTETS, slots - (written - control[READ])
            is_room = min(len(places) - at, free * BLOCK_OCTETS) >= MOST_OCTETS
            done, count = 0, datagrams.read(of_number[number], places[at : at + MOST_OCTETS] if is_room else None)
            while done < count and not control[STOP]:
                slot = written % slots
                some = min(count - done, slots - (written - control[READ]), slots - slot)
                if some:
                    datagrams.put(done, lengths[slot : slot + some], places[slot * BLOCK_OCTETS :])
                    done, written = done + some, written + some
                    control[WRITTEN] = written
                    continue
                control[STALLS] += 1
                time.sleep(0.001)
                if os.getppid() != parent:
                    return
    for sock in sockets:
        sock.close()
    del lengths, datagrams  # And what they see of the memory.
    for view in (control, places, shared):
        view.release()
    memory.close()
