# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The whole probe: programs sent and measured by the gateware, held against what stood on its pins."""

import json
from pathlib import Path

import numpy as np
import pytest

from liteprobe.host import Probe, TrainProgram
from liteprobe.sim.drivers.frames import truth
from liteprobe.sim.drivers.system.harness import Client, Harness
from liteprobe.sim.drivers.system.senders import Run, run, slots
from liteprobe.sim.models import switch


def assert_stamps_are_true(made: Run, port: int) -> None:
    """Every record: its stamps are the ticks of the SFDs at the pins, exactly."""
    records = made.result.records
    sent = {int(row["sequence"]): 8 * int(row["sfd_tick"]) for row in made.sent()}
    received = [(int(row["sequence"]), 8 * int(row["sfd_tick"])) for row in made.received(port) if not row["flags"]]
    assert [(int(r["sequence"]), int(r["rx_stamp"])) for r in records] == received
    assert [int(r["tx_stamp"]) for r in records] == [sent[int(r["sequence"])] for r in records]


@pytest.mark.parametrize("length", [60, 64, 1514])
def test_a_train_through_a_loopback_is_measured_to_the_tick(own: Path, tmp_path: Path, length: int) -> None:
    program = TrainProgram(length=length, count=40, repeats=2, gap_ns=20_000)
    made = run(own, "loopback", program, tmp_path)
    assert (made.result.sent, made.result.late, made.result.complete) == (80, 0, True)
    assert list(np.diff(made.sent()["sfd_tick"].astype(int))) == slots(program)
    assert len(made.result.records) == 80
    assert_stamps_are_true(made, port=0)


@pytest.mark.parametrize(
    "wire",
    [
        "cable?delay=1us",
        "switch?latency=3us&loss=0.1&duplicate=0.1&reorder=0.1&reorder_by=5us&seed=3",
        "switch?rate=500M&queue=20&cross=0.4&seed=5",
    ],
)
def test_every_record_agrees_with_the_pins_and_the_pins_with_the_model(own: Path, tmp_path: Path, wire: str) -> None:
    program = TrainProgram(length=300, count=60)
    made = run(own, wire, program, tmp_path)
    sent = made.sent()
    assert list(sent["sequence"]) == list(range(60))
    assert_stamps_are_true(made, port=1)
    departures = [switch.Departure(int(row["sfd_tick"]) - 7, 8 + 300 + 4) for row in sent]
    expected = switch.passage(wire, 0, departures)
    assert list(sent["fate"]) == expected.fates
    assert [int(row["sfd_tick"]) for row in made.received()] == [arrival.sfd_tick for arrival in expected.arrivals]
    assert truth.balance(made.rows, 0, 1).holds
    # What the gateware counted.
    fates = expected.fates
    assert made.result.counters["frames"] == len(expected.arrivals)
    assert made.result.counters["duplicated"] == sum(a.fate == switch.DUPLICATE for a in expected.arrivals)
    came = {arrival.number for arrival in expected.arrivals}
    # A tail that never comes can't be missed by the receiver.
    assert made.result.counters["lost"] == max(came) + 1 - len(came)
    assert fates.count(switch.DELIVERED) == len(came)


def test_corrupted_frames_are_flagged_and_enter_no_delay(own: Path, tmp_path: Path) -> None:
    made = run(own, "cable?delay=2us&corrupt=0.2&seed=9", TrainProgram(length=200, count=80), tmp_path)
    bad = int(np.sum(made.received()["flags"] & truth.BAD_FCS > 0))
    assert bad == int(np.sum(made.sent()["fate"] == truth.CORRUPTED)) > 5
    assert made.result.counters["fcs_errors"] == bad
    assert made.result.counters["frames"] == 80 - bad
    assert (made.result.counters["delay_min"], made.result.counters["delay_max"]) == (2000, 2000)


def test_the_timebase_is_the_tick_of_the_harness(own: Path) -> None:
    with Probe(f"sim://loopback?build={own}") as probe:
        before = probe.link.now_ns()
        now = probe.timebase.now_ns
        after = probe.link.now_ns()
    assert before < now < after


@pytest.mark.parametrize("wire", ["loopback", "cable?delay=1us"])
def test_in_band_management_is_on_the_wire_and_moves_no_frame(tester: Path, tmp_path: Path, wire: str) -> None:
    program = TrainProgram(length=300, count=30, repeats=3, gap_ns=30_000)
    made = run(tester, wire, program, tmp_path, link="shared")
    port = 0 if wire == "loopback" else 1
    assert (made.result.sent, made.result.late, made.result.complete) == (90, 0, True)
    assert list(np.diff(made.sent()["sfd_tick"].astype(int))) == slots(program)
    assert_stamps_are_true(made, port)
    foreign = made.rows[(made.rows["port"] == 0) & (made.rows["flags"] & truth.FOREIGN > 0)]
    # Each read and each ARP request has its answer; a write has none.
    _, asked = truth.read_pcap(tmp_path / "pins.port0.in.pcap")
    wants = [frame for frame in asked if frame[20:22] == b"\x00\x01" or (frame[42:44] == b"\x4e\x6f" and frame[53])]
    own_arp = [frame for frame in asked if frame[20:22] == b"\x00\x02"]
    assert int(np.sum(foreign["direction"] == truth.OUT)) == len(wants) + len(own_arp)
    assert int(np.sum(foreign["direction"] == truth.IN)) == len(asked) - (90 if port == 0 else 0)
    # None of it comes back from the wire.
    assert len(made.received(port)) == 90
    assert truth.balance(made.rows, 0, port).holds


def test_the_serial_port_reads_and_writes_registers(uart: Path) -> None:
    with Harness(uart) as harness:
        device = harness.uart()
        with Probe(f"uart://{device}", map=uart / "csr.json") as probe:
            assert probe.registers.read("probe_ports") == 2
            probe.registers.write("port1_tx_count", 0xA5A55A5A)
            assert probe.registers.read("port1_tx_count") == 0xA5A55A5A
            program = TrainProgram(length=60, count=5)
            assert probe.train(program, transmit=0, receive=0).sent == 5


# Requests that come together ----------------------------------------------------------------------


def memory_of(folder: Path, name: str) -> int:
    found: int = json.loads((folder / "csr.json").read_text())["memories"][name]["base"]
    return found


def test_requests_of_a_batch_are_served_together_and_in_order(own: Path) -> None:
    rom = memory_of(own, "rom")

    def times(counts: list[int], together: bool) -> tuple[int, list[list[int]]]:
        with Harness(own) as harness:
            client = Client(harness.udp_port)
            client.read(rom)
            start = harness.run(0)
            requests = [client.request(rom + 4 * k, count) for k, count in enumerate(counts)]
            for some in [requests] if together else [[request] for request in requests]:
                client.ask_together(some)
                if not together:
                    harness.run(0)
            answers = [client.answer() for _ in counts]
            return harness.run(0) - start, answers

    for counts in ([64] * 4, [64, 1, 7, 64, 64, 2, 64]):
        alone, words = times(counts, False)
        together, same = times(counts, True)
        assert same == words and [len(each) for each in same] == counts
        assert times(counts, True) == (together, same), "a batch takes the same time whenever it comes"
        assert together < 0.8 * alone


def test_a_batch_that_is_broken_harms_nothing(own: Path) -> None:
    rom = memory_of(own, "rom")
    with Harness(own) as harness:
        client = Client(harness.udp_port)
        words = client.read(rom, 5)
        whole = client.request(rom, 5)
        for broken in (b"", b"\0", b"\xff\xff", b"\0\0", b"\0\x04abc", b"\0\0" * 40, b"\xff\xff" + whole):
            client.socket.send(b"LPBT" + broken)
            client.ask_together([whole])
            assert client.answer() == words, broken
