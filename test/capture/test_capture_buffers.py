# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The kernel's buffer for the blocks of a capture: what is said where it is small, and how many blocks come by one call."""

import select
import socket
from pathlib import Path

import numpy as np
import pytest

from liteprobe.host.capture.receive import SO_RCVBUFFORCE, ManyReader, buffer_remark, open_socket, open_sockets


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


def test_many_datagrams_come_by_one_call_with_their_lengths() -> None:
    """Slots of 100 octets: what is longer is cut, what is shorter leaves the rest of its slot as it was."""
    sizes, memory = [1, 100, 0, 250, 99], np.full((8, 100), 7, np.uint8)
    reader = ManyReader(memory.ctypes.data, 8, 100)
    with open_socket("127.0.0.1") as made, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        assert reader.read(made.fileno(), 0, 8) == 0
        for number, size in enumerate(sizes):
            sender.sendto(bytes([number] * size), made.getsockname())
        assert select.select([made], [], [], 5)[0]
        assert (reader.read(made.fileno(), 2, 4), reader.read(made.fileno(), 6, 2)) == (4, 1)
        closed = made.fileno()
    assert reader.lengths[2:7].tolist() == [min(size, 100) for size in sizes]
    for number, size in enumerate(sizes):
        row = memory[2 + number]
        assert row.tolist() == [number] * min(size, 100) + [7] * (100 - min(size, 100))
    assert (memory[[0, 1, 7]] == 7).all()
    with pytest.raises(OSError, match="Bad file descriptor"):
        reader.read(closed, 0, 8)
