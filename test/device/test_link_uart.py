# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The UART link against a bridge that obeys LiteX's own client as well."""

import random

import pytest
from litex.tools.remote.comm_uart import CommUART

from liteprobe.host.base.errors import NoProbeError
from liteprobe.host.device.link.uart import UARTLink, open_line
from liteprobe.sim.drivers.desk.bridge import Bridge, SerialPort

SEED = 115200


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


def test_lost_octets_are_asked_for_again_after_the_bridge_gave_up() -> None:
    bridge = Bridge()
    bridge.memory, bridge.lost = {0: 1, 4: 2}, 3
    assert UARTLink(bridge, "a line").read(0, 2).tolist() == [1, 2]
    assert bridge.commands == [(2, 0, 2)] * 2
    # Stream2Wishbone drops a command that stands still for 100 ms.
    assert (bridge.waits[:2], bridge.timeout) == ([0.5, pytest.approx(0.15)], 0.5)


@pytest.mark.parametrize("late", range(1, 12))
def test_a_late_reply_is_not_taken_for_that_to_the_next_command(late: int) -> None:
    """A reply doesn't say of what it is: what comes when a machine goes on that stood still is thrown away."""
    bridge = Bridge()
    bridge.memory, bridge.late = {0: 1, 4: 2, 8: 3}, late
    link = UARTLink(bridge, "a line")
    assert [link.read(address).tolist() for address in (0, 4, 8)] == [[1], [2], [3]]


def test_what_was_left_on_the_line_is_not_taken_for_a_reply() -> None:
    bridge = Bridge()
    bridge.memory, bridge._out = {0: 1}, b"boot"
    assert UARTLink(bridge, "a line").read(0).tolist() == [1]


def test_line_without_probe_is_no_probe() -> None:
    bridge = Bridge()
    bridge.is_mute = True
    with pytest.raises(NoProbeError, match="no probe answers on /dev/ttyUSB0: check power, baud rate") as error:
        UARTLink(bridge, "/dev/ttyUSB0").read(0)
    assert (error.value.exit_code, len(bridge.commands)) == (3, 8)


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


def test_a_serial_port_leads_to_the_bridge_for_one_program_after_the_other() -> None:
    bridge = Bridge()
    port = SerialPort(bridge)
    try:
        for base in (0, 0x100000):
            link = UARTLink(open_line(port.path, 115200), port.path)
            assert link.write(base, range(base, base + 300)).tolist() == [*range(base, base + 300)]
            link.close()
    finally:
        port.close()
    assert sorted(bridge.memory.values()) == [*range(300), *range(0x100000, 0x100000 + 300)]
