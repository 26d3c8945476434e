# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Management through the pins of a stand-in: Etherbone, ARP, several clients, lock-step, and the Verilog itself."""

import json
import random
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest

from liteprobe.sim.drivers.frames import truth
from liteprobe.sim.drivers.system.harness import Client, Harness
from liteprobe.sim.system.build import move_initial_values
from liteprobe.sim.drivers.tools.processes import LIMIT_S, wait_for

CSR_SCRATCH = "ctrl_scratch"
RESET_OF_SCRATCH = 0x12345678


def address_of(folder: Path, register: str) -> int:
    found: int = json.loads((folder / "csr.json").read_text())["csr_registers"][register]["addr"]
    return found


def memory_of(folder: Path, name: str) -> int:
    found: int = json.loads((folder / "csr.json").read_text())["memories"][name]["base"]
    return found


def test_etherbone_reads_and_writes_through_the_pins(stand_in: Path) -> None:
    with Harness(stand_in) as harness:
        client = Client(harness.udp_port)
        scratch = address_of(stand_in, CSR_SCRATCH)
        assert client.read(scratch) == [RESET_OF_SCRATCH]
        client.write(scratch, [0xDEADBEEF])
        assert client.read(scratch) == [0xDEADBEEF]


@pytest.mark.parametrize("count", [1, 2, 3, 16, 17, 63, 64])
def test_bursts_up_to_64_words_come_back_whole(stand_in: Path, count: int) -> None:
    words = random.Random(count).choices(range(2**32), k=count)
    with Harness(stand_in) as harness:
        client = Client(harness.udp_port)
        sram = memory_of(stand_in, "sram")
        client.write(sram, words)
        assert client.read(sram, count) == words


def test_a_constant_decoder_is_evaluated(stand_in: Path) -> None:
    # With LiteX's `always @(*)` it reads 0: no input ever changes (FACTS: Verilator 5.48).
    with Harness(stand_in) as harness:
        assert Client(harness.udp_port).read(address_of(stand_in, "decoder_selected")) == [0x5A]


def test_registers_keep_their_initial_values_and_logic_has_none() -> None:
    head, tail = "module top(\n    output reg pin\n);\n", "endmodule\n// end\n"
    logic = "always_comb begin\n    is_on = 1'd0;\nend\n"
    given = (
        f"{head}reg    [7:0] count = 8'd5;\nreg signed [3:0] level = -4'd1;\nreg is_on = 1'd0;\nreg [7:0] ram[0:3];\n"
    )
    kept = f"{head}reg    [7:0] count;\nreg signed [3:0] level;\nreg is_on;\nreg [7:0] ram[0:3];\n"
    block = "initial begin\n    count = 8'd5;\n    level = -4'd1;\nend\n"
    assert move_initial_values(given + logic + tail) == kept + logic + block + tail


def test_each_client_gets_its_own_answers(stand_in: Path) -> None:
    with Harness(stand_in) as harness:
        clients = [Client(harness.udp_port) for _ in range(5)]
        sram = memory_of(stand_in, "sram")
        clients[0].write(sram, [10, 11, 12, 13, 14])
        for number, client in enumerate(clients):
            client.ask(sram + 4 * number)
        # All have asked before any has read: answers can't be distinguished by time.
        assert [client.answer() for client in reversed(clients)] == [[14], [13], [12], [11], [10]]


def test_what_is_sent_to_another_port_reaches_that_port_of_the_host(stand_in: Path) -> None:
    with Harness(stand_in) as harness, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as blocks:
        blocks.bind(("127.0.0.1", 0))
        blocks.settimeout(20)
        port = blocks.getsockname()[1]
        clients = [Client(harness.udp_port) for _ in range(2)]
        scratch = address_of(stand_in, CSR_SCRATCH)
        clients[0].read(scratch)
        # Of the second station, as the probe knows it.
        for register, value in [("address", 0xC0A80134), ("port", port), ("data", 0x01020304)]:
            clients[1].write(address_of(stand_in, f"teller_{register}"), [value])
        # No answer: those still come to whoever asked.
        assert clients[0].read(scratch) == clients[1].read(scratch) == [RESET_OF_SCRATCH]
        harness.run(1_000_000)
        assert sorted(blocks.recv(100)) == [1, 2, 3, 4]


def test_what_a_host_streams_comes_to_its_port_and_the_answer_back(stand_in: Path, tmp_path: Path) -> None:
    with Harness(stand_in, "--pcap", str(tmp_path / "pins")) as harness:
        word, number = harness.command("replay").split()
        hosts = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
        payloads = [random.Random(seed).randbytes(4 * words) for seed, words in enumerate((3, 368, 40, 3, 368, 17))]
        for host in hosts:
            host.settimeout(20)
            host.connect(("127.0.0.1", int(number)))  # So only answers from there arrive.
        for payload in payloads:
            for host in hosts:
                host.send(payload)
                assert host.recv(2048) == payload
        assert Client(harness.udp_port).read(address_of(stand_in, CSR_SCRATCH)) == [RESET_OF_SCRATCH]
        ports = [host.getsockname()[1] for host in hosts]
        for host in hosts:
            host.close()
    assert word == "ok"
    _, asked = truth.read_pcap(tmp_path / "pins.port2.in.pcap")
    seen = [
        struct.unpack(">HHH", frame[34:40])
        for frame in asked
        if frame[12:14] == b"\x08\x00" and frame[36:38] == b"\x04\xd4"
    ]
    assert seen == [(port, 1236, 8 + len(payload)) for payload in payloads for port in ports]


def test_arp_finds_the_probe_and_each_station_is_found(stand_in: Path, tmp_path: Path) -> None:
    with Harness(stand_in, "--pcap", str(tmp_path / "pins")) as harness:
        for _ in range(2):
            Client(harness.udp_port).read(address_of(stand_in, CSR_SCRATCH))
    _, asked = truth.read_pcap(tmp_path / "pins.port2.in.pcap")
    _, answered = truth.read_pcap(tmp_path / "pins.port2.out.pcap")
    arp = [
        (frame[20:22].hex(), frame[22:28].hex(), frame[38:42].hex()) for frame in asked if frame[12:14] == b"\x08\x06"
    ]
    # The first station asks for the probe once; each answers when the probe asks for it.
    assert arp == [
        ("0001", "024c50000000", "c0a80132"),
        ("0002", "024c50000000", "c0a80132"),
        ("0002", "024c50000001", "c0a80132"),
    ]
    told = [(frame[:6].hex(), frame[30:34].hex()) for frame in answered if frame[12:14] == b"\x08\x00"]
    assert told == [("024c50000000", "c0a80133"), ("024c50000001", "c0a80134")]


def test_time_stands_still_unless_something_is_served(stand_in: Path) -> None:
    with Harness(stand_in) as harness:
        before = harness.command("time")
        time.sleep(0.05)
        assert harness.command("time") == before
        Client(harness.udp_port).read(address_of(stand_in, CSR_SCRATCH))
        after = int(harness.command("time").split()[1])
        assert 1_000 < after - int(before.split()[1]) < 10_000
        assert harness.run(1_001) == after + 1_008  # Whole ticks.


def test_a_write_has_come_when_the_next_command_is_obeyed(stand_in: Path) -> None:
    with Harness(stand_in) as harness:
        client = Client(harness.udp_port)
        client.read(address_of(stand_in, CSR_SCRATCH))
        start = harness.run(0)
        client.write(address_of(stand_in, CSR_SCRATCH), [1])
        assert harness.run(0) > start  # The write was served first, although it asks for no answer.


def test_the_same_requests_take_the_same_simulated_time(stand_in: Path) -> None:
    def times() -> list[str]:
        with Harness(stand_in) as harness:
            client = Client(harness.udp_port)
            told = []
            for count in (1, 5, 64, 2):
                client.read(memory_of(stand_in, "sram"), count)
                told.append(harness.command("time"))
        return told

    assert times() == times()


def test_what_is_no_etherbone_costs_no_waiting(stand_in: Path) -> None:
    with Harness(stand_in) as harness:
        client = Client(harness.udp_port)
        client.read(address_of(stand_in, CSR_SCRATCH))
        before = harness.run(0)
        client.socket.send(b"hello")
        assert harness.run(0) - before < 20_000


def test_time_flows_in_free_run(stand_in: Path) -> None:
    with Harness(stand_in, "--free-run") as harness:
        client = Client(harness.udp_port)
        assert client.read(address_of(stand_in, CSR_SCRATCH)) == [RESET_OF_SCRATCH]
        first = int(harness.command("time").split()[1])
        wait_for(lambda: int(harness.command("time").split()[1]) > first + 100_000)


def test_a_lock_step_probe_ends_with_the_process_that_started_it(stand_in: Path) -> None:
    with subprocess.Popen([str(stand_in / "liteprobe-sim")], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=LIMIT_S) == 0


def test_the_number_of_a_command_comes_back_with_its_answer(stand_in: Path) -> None:
    with Harness(stand_in) as harness:
        start = harness.run(0)
        assert harness.command("#7 run 80") == f"#7 ok {start + 80}"
        assert harness.command("#x time") == f"#x ok {start + 80}"
        assert harness.command("#8 leap").startswith("#8 error command 'leap' is unknown: run, time, ")
        assert harness.command("#9").startswith("#9 error command '' is unknown: run, time, ")
        assert harness.command("time") == f"ok {start + 80}"


def test_the_benchmark_prints_its_speed(stand_in: Path) -> None:
    command = [str(stand_in / "liteprobe-sim"), "--benchmark", "10000"]
    words = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert words[:2] == ["10000", "ticks"]
    assert words[-1] == "ticks/s"
    seconds, speed = float(words[3]), int(words[5])
    assert abs(speed * seconds - 10_000) < 10_000  # Both are rounded.
