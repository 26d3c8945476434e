# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The UART link against a bridge that obeys LiteX's own client as well."""

import random

import pytest
from litex.tools.remote.comm_uart import CommUART

from liteprobe.host.device.link.uart import UARTLink
from liteprobe.host.errors import NoProbeError

SEED = 115200


class Bridge:
    """LiteX's Stream2Wishbone, seen from the line: commands in, words out."""

    def __init__(self) -> None:
        self.memory: dict[int, int] = {}
        self.commands: list[tuple[int, int, int]] = []
        self.lost = 0  # Octets of the next replies that get lost.
        self.is_mute = False
        self.is_closed = False
        self._in = b""
        self._out = b""

    def write(self, data: bytes) -> int:
        self._in += bytes(data)
        while len(self._in) >= 6:
            command, count, address = self._in[0], self._in[1], 4 * int.from_bytes(self._in[2:6], "big")
            end = 6 + 4 * count * (command == 1)
            if len(self._in) < end:
                break
            octets, self._in = self._in[6:end], self._in[end:]
            self.commands.append((command, address, count))
            self._obey(command, address, count, octets)
        return len(data)

    def _obey(self, command: int, address: int, count: int, octets: bytes) -> None:
        assert count > 0  # The bridge would take 0 for 256.
        addresses = range(address, address + 4 * count, 4)
        if command == 1:
            words = [int.from_bytes(octets[at : at + 4], "big") for at in range(0, 4 * count, 4)]
            self.memory |= dict(zip(addresses, words, strict=True))
        elif not self.is_mute:
            assert command == 2
            reply = b"".join(self.memory.get(at, 0).to_bytes(4, "big") for at in addresses)
            self._out += reply[self.lost :]
            self.lost = 0

    def read(self, size: int) -> bytes:
        octets, self._out = self._out[:size], self._out[size:]
        return octets

    def reset_input_buffer(self) -> None:
        self._out = b""

    def inWaiting(self) -> int:
        return len(self._out)

    def close(self) -> None:
        self.is_closed = True


def litex_client(bridge: Bridge) -> CommUART:
    client = CommUART.__new__(CommUART)  # Its constructor opens a device.
    client.port, client.debug, client.addr_bytes = bridge, False, 4
    return client


@pytest.mark.parametrize("count", [1, 64, 65, 255, 256, 600])
def test_words_written_are_the_words_read_and_those_of_litex(count: int) -> None:
    print(f"seed {SEED}")
    words = [random.Random(SEED).getrandbits(32) for _ in range(count)]
    bridge = Bridge()
    link = UARTLink(bridge, "a line")
    assert link.write(0x40000000, words).tolist() == words
    assert link.read(0x40000000, count).tolist() == words
    assert [litex_client(bridge).read(0x40000000 + 4 * n) for n in range(count)] == words


def test_what_litex_writes_is_read() -> None:
    bridge = Bridge()
    litex_client(bridge).write(0x50000010, [1, 2**32 - 1, 3])
    assert UARTLink(bridge, "a line").read(0x50000010, 3).tolist() == [1, 2**32 - 1, 3]


def test_neighbours_among_scattered_words_go_in_one_command() -> None:
    bridge = Bridge()
    bridge.memory = {4: 1, 8: 2, 16: 3}
    assert UARTLink(bridge, "a line").read_scattered([16, 4, 8, 8]).tolist() == [3, 1, 2, 2]
    assert bridge.commands == [(2, 16, 1), (2, 4, 2), (2, 8, 1)]


def test_nothing_asked_is_nothing_sent() -> None:
    bridge = Bridge()
    link = UARTLink(bridge, "a line")
    assert (link.read_scattered([]).tolist(), link.write(0, []).tolist(), bridge.commands) == ([], [], [])


def test_lost_octets_are_asked_for_again_after_the_bridge_gave_up(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    bridge = Bridge()
    bridge.memory, bridge.lost = {0: 1, 4: 2}, 3
    assert UARTLink(bridge, "a line").read(0, 2).tolist() == [1, 2]
    assert bridge.commands == [(2, 0, 2)] * 2
    assert pauses == [pytest.approx(0.15)]  # Stream2Wishbone drops a command that stands still for 100 ms.


def test_what_was_left_on_the_line_is_not_taken_for_a_reply() -> None:
    bridge = Bridge()
    bridge.memory, bridge._out = {0: 1}, b"boot"
    assert UARTLink(bridge, "a line").read(0).tolist() == [1]


def test_line_without_probe_is_no_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    bridge = Bridge()
    bridge.is_mute = True
    with pytest.raises(NoProbeError, match="no probe answers on /dev/ttyUSB0: check power, baud rate") as error:
        UARTLink(bridge, "/dev/ttyUSB0").read(0)
    assert (error.value.exit_code, len(bridge.commands)) == (3, 4)


def test_line_that_is_pulled_out_says_so() -> None:
    class Gone(Bridge):
        def write(self, data: bytes) -> int:
            raise OSError(5, "Input/output error")

    with pytest.raises(NoProbeError, match=r"/dev/ttyUSB0 is gone .*Input/output error.*: plug it in again"):
        UARTLink(Gone(), "/dev/ttyUSB0").read(0)


def test_closing_closes_the_line() -> None:
    bridge = Bridge()
    UARTLink(bridge, "a line").close()
    assert bridge.is_closed
