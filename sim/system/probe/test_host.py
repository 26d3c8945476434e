# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The host library against the whole simulated probe: starts, clocks, faults, and many requests at once."""

import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from liteprobe.cores.formats import TransmitState
from liteprobe.host import Headers, NoProbeError, Probe, ProbeError, TrainProgram, UsageError
from liteprobe.host.device.discover import discover, places
from liteprobe.host.device.link import etherbone
from liteprobe.host.device.link.etherbone import EtherboneLink, Patience
from liteprobe.host.device.link.sim import SimOptions, start
from liteprobe.sim.drivers.system.harness import free_running

DELAY_NS = 1000
FREE_RUN_TIMEOUT_S = 20.0  # Longer than any stall of this machine: a datagram that is sent twice is a fault.


def url(folder: Path, wire: str = "cable?delay=1us", more: str = "") -> str:
    return f"sim://{wire}{'&' if '?' in wire else '?'}build={folder}{more}"


# Trains -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "program",
    [
        TrainProgram(60, 1),
        TrainProgram(9000, 3, fill="counting"),
        TrainProgram(61, 50, interval_ns=700.3, fill="prbs"),
        TrainProgram(64, 30, repeats=4, interval_ns=1000.0, gap_ns=4000.0, stream_id=65535),
        TrainProgram(82, 20, headers=Headers(source_ip="2001:2::1", destination_ip="2001:2::2")),
        TrainProgram(129, 20, headers=Headers(vlan_tags=(0xA001, 2), ttl=1, traffic_class=0xB8)),
    ],
)
def test_every_frame_comes_back_on_its_tick(own: Path, program: TrainProgram) -> None:
    with Probe(url(own)) as probe:
        result = probe.train(program)
    records = result.records
    step_ns = program.interval_ns or 8 * program.slot_ticks
    number = np.arange(program.total)
    due_ns = number * step_ns + number // program.count * (program.gap_ns or 0)
    starts_ns = (records["tx_stamp"] - records["tx_stamp"][0]).astype(int)
    assert records["sequence"].tolist() == number.tolist()
    assert np.all((due_ns - starts_ns > -1e-3) & (due_ns - starts_ns < 8))  # The whole tick of the exact time.
    assert set(records["rx_stamp"] - records["tx_stamp"]) == {DELAY_NS}
    assert (set(records["length"]), set(records["flags"])) == ({program.length}, {0})
    assert (result.sent, result.late, result.complete, result.notes) == (program.total, 0, True, ())


def test_both_ports_start_in_the_same_tick(own: Path) -> None:
    with Probe(url(own)) as probe:
        results = probe.trains([(TrainProgram(60, 200), 0, None), (TrainProgram(1514, 20, stream_id=2), 1, None)])
    assert results[0].records["tx_stamp"][0] == results[1].records["tx_stamp"][0]
    assert [(len(result.records), result.complete) for result in results] == [(200, True), (20, True)]


def test_a_management_port_counts_each_request_and_loses_none(own: Path) -> None:
    names = ("received", "receive_dropped", "receive_cut", "receive_refused", "transmit_dropped")
    with Probe(url(own)) as probe:
        read = probe.registers.read
        before = read("management_port_received")
        for _ in range(50):
            read("probe_ports")
        after = {name: read(f"management_port_{name}") for name in names}
    # The second reading of the first counter is a request, too.
    assert after == dict.fromkeys(names, 0) | {"received": before + 51}


@pytest.mark.parametrize("length", [60, pytest.param(64, marks=pytest.mark.full)])
def test_trains_longer_than_the_ring_are_drained_in_their_gaps(own: Path, length: int) -> None:
    with Probe(url(own)) as probe:
        result = probe.train(TrainProgram(length, 1000, repeats=10))
    assert (result.records["sequence"].tolist(), result.complete) == (list(range(10_000)), True)


def test_trains_of_both_ports_are_drained_in_their_gaps(own: Path) -> None:
    with Probe(url(own)) as probe:
        results = probe.trains([(TrainProgram(60, 1000, repeats=4), number, None) for number in range(2)])
    assert [(len(result.records), result.complete) for result in results] == [(4000, True)] * 2


def test_ring_that_nobody_could_drain_is_incomplete(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(etherbone, "READ_WORDS", 12)  # A host that asks for little at once falls behind the line.
    with Probe(url(own)) as probe:
        result = probe.train(TrainProgram(60, 4000))
    lost = result.counters["records_lost"]
    assert lost == 4000 - len(result.records) != 0
    assert (result.complete, result.counters["frames"], result.counters["lost"]) == (False, 4000, 0)
    assert result.notes[0].startswith(f"{lost} records found the ring full")


def test_clock_is_set_and_trains_start_on_its_time(own: Path) -> None:
    with Probe(url(own)) as probe:
        probe.timebase.set_time(10**18)
        start_ns = 10**18 + 2_000_000
        result = probe.train(TrainProgram(60, 10, start_time_ns=start_ns))
        assert result.records["tx_stamp"][0] == start_ns
        with pytest.raises(UsageError, match="is past or too near"):
            probe.train(TrainProgram(60, 10, start_time_ns=start_ns))


def test_interval_is_one_of_the_trimmed_clock(own: Path) -> None:
    with Probe(url(own)) as probe:
        probe.timebase.increment = (8 << 40) + (8 << 40) // 10**4  # 100 ppm fast.
        stamps = probe.train(TrainProgram(60, 1000, interval_ns=10_000.0)).records["tx_stamp"]
    drift_ns = (stamps - stamps[0]).astype(int) - 10_000 * np.arange(1000)
    assert np.abs(drift_ns).max() <= 9  # A tick, and the nanosecond of the stamp: no drift of 100 ppm, 999 ns.


# Faults -------------------------------------------------------------------------------------------


def test_link_that_is_down_is_told_before_anything_is_sent(own: Path) -> None:
    with Probe(url(own)) as probe:
        probe.link.set_link(1, False)
        probe.wait(1e-6)
        with pytest.raises(ProbeError, match="the link of port 1 is down: plug in its cable"):
            probe.train(TrainProgram(60, 10))
        assert probe.ports[0].transmit.counters()["sent"] == 0
        probe.link.set_link(1, True)
        probe.wait(1e-6)
        assert probe.train(TrainProgram(60, 10)).complete


def test_link_that_goes_down_ends_the_train(own: Path) -> None:
    with Probe(url(own)) as probe:

        def pull(sent: int, total: int) -> None:
            probe.link.set_link(1, sent < 50)

        with pytest.raises(ProbeError, match=r"the link of port 1 went down .* \(\d+ of \d+ frames had come\)"):
            probe.train(TrainProgram(1514, 100_000), progress=pull)
        assert probe.ports[0].transmit.look()[0] == TransmitState.IDLE
        assert probe.ports[1].receive.counters()["fcs_errors"] == 1  # The frame that was on its way.


def test_wire_that_is_cut_leaves_the_rest_missing(own: Path) -> None:
    with Probe(url(own, "cable?delay=1us&cut_after=30")) as probe:
        result = probe.train(TrainProgram(60, 100))
        assert (result.sent, result.records["sequence"].tolist()) == (100, list(range(30)))
        with pytest.raises(ProbeError, match="nothing came back: 100 frames left port 0, none reached port 1 whole"):
            probe.train(TrainProgram(60, 100))


def test_program_that_is_written_while_it_runs_is_told(own: Path) -> None:
    with Probe(url(own)) as probe:
        written = []

        def write(sent: int, total: int) -> None:
            if 0 < sent < total and not written:
                written.append(sent)
                probe.registers.write("port0_tx_fill", 0)
                probe.registers.write("port0_tx_start_time", 0)  # Two words.
                word = probe.registers.read_memory("port0_header", 0, 1)[0]
                probe.registers.write_memory("port0_header", 0, [word])

        result = probe.train(TrainProgram(1514, 800), progress=write)
        assert (len(written), result.counters["disturbed"]) == (1, 4)
        assert "program or headers were written 4 times while it ran" in " ".join(result.notes)
        assert probe.train(TrainProgram(60, 100)).counters["disturbed"] == 0


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Take SIGINT as Python does by itself; a shell's background job would ignore it, and never end."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_interrupt_stops_the_train_and_the_probe_goes_on(own: Path) -> None:
    with Probe(url(own)) as probe:
        # To the main thread, as the kernel gives it a Ctrl-C.
        timer = threading.Timer(0.5, signal.pthread_kill, [threading.get_ident(), signal.SIGINT])
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            probe.train(TrainProgram(1514, 10**6))
        assert probe.ports[0].transmit.look()[0] == TransmitState.IDLE
        assert len(probe.train(TrainProgram(60, 100)).records) == 100


def test_map_of_another_build_is_refused(own: Path, tester: Path) -> None:
    with pytest.raises(ProbeError, match="is the map of another build"):
        Probe(url(own), map=tester / "csr.json")


def test_option_of_a_wire_that_is_misspelt_is_a_usage_error(own: Path) -> None:
    with pytest.raises(UsageError, match=r"wire option 'latncy' is unknown for switch: choose from .*latency"):
        Probe(url(own, "switch?latncy=3us"))


# Links --------------------------------------------------------------------------------------------


def test_host_waits_for_a_train_that_holds_its_way_in(tester: Path) -> None:
    reads = []
    with Probe(url(tester, more="&link=shared")) as probe:

        def storm(sent: int, total: int) -> None:
            reads.append([probe.registers.read("probe_ports") for _ in range(5)])

        result = probe.train(TrainProgram(1514, 500), progress=storm)  # 6 ms without room for a reply.
    assert np.unique(np.diff(result.records["tx_stamp"])).tolist() == [12304]
    assert (len(result.records), result.late, result.complete) == (500, 0, True)
    assert {tuple(read) for read in reads} == {(2,) * 5}
    assert result.counters["transmit_management_dropped"] == 0


@pytest.mark.parametrize("count", [128, 4096])
def test_requests_outstanding_together_are_answered_once_each(own: Path, count: int) -> None:
    # LiteX's PacketFIFO loses count when a record ends while it is full: its depth must prevent that.
    with free_running(own) as port:
        link = EtherboneLink("127.0.0.1", port, Patience(FREE_RUN_TIMEOUT_S, tries=1, window=4))
        probe = Probe(link, own / "csr.json")
        address = probe.registers.memory("port0_header").address
        words = [(0x9E3779B9 * number) & 0xFFFFFFFF for number in range(32)]
        assert link.write(address, words).tolist() == words
        read = link.read_scattered([address + 4 * (number % 32) for number in range(count)])
        assert read.tolist() == words * (count // 32)
        probe.close()


def test_port_without_probe_is_no_probe() -> None:
    with pytest.raises(NoProbeError, match=r"no probe answers at 127\.0\.0\.1:9"):
        Probe("etherbone://127.0.0.1:9?timeout=0.01")


# Discovery ----------------------------------------------------------------------------------------


def test_a_simulated_probe_that_listens_is_found(own: Path) -> None:
    """It says what it is without its map being known."""
    process, (map_file, _) = start(SimOptions(build=own))
    try:
        (port,) = process.udp_ports
        asked, _ = places([f"127.0.0.1:{port}"])
        (found,) = discover(asked, 0.5)
    finally:
        process.close()
    constants = json.loads(map_file.read_text())["constants"]
    assert (found.identifier, found.preset, found.ports, found.answers) == (
        constants["config_identifier"],
        "train",
        2,
        1,
    )
    assert found.map_hash > 0
