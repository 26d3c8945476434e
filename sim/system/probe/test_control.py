# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The control channel of the whole probe: a network that loses, doubles and delays; two hosts; hosts that are gone."""

import contextlib
import random
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from liteprobe.cores.formats import LEASE_UNIT_BITS, TransmitState
from liteprobe.host import Probe, ProbeError, TrainProgram
from liteprobe.host.base.errors import BusyError, LeaseLostError, NetworkError
from liteprobe.host.device.lease import name_of_this_process, name_words
from liteprobe.host.device.link.etherbone import EtherboneLink, Patience, Write, encode
from liteprobe.host.device.link.sim import SimLink
from liteprobe.sim.drivers.system.hostile_relay import HostileRelay, Hostility

ENDLESS = TrainProgram(60, 2**32 - 1)


@contextlib.contextmanager
def probe_on(folder: Path, network: str = "") -> Iterator[tuple[Probe, SimLink]]:
    with Probe(f"sim://loopback?build={folder}{'&network=' + network if network else ''}") as probe:
        assert isinstance(probe.link, SimLink)
        yield probe, probe.link


def second_host(link: SimLink, steal: bool = False) -> Probe:
    """Return the same probe, as another host on the network sees it."""
    return Probe(EtherboneLink("127.0.0.1", link.port), link.map_file, steal)


def datagrams(link: SimLink) -> list[int]:
    """Return what the network saw: datagrams sent, lost, doubled, delayed, towards the probe and back."""
    return [int(count) for count in link._process.command("network").split()]


# A bad network ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "network",
    [
        pytest.param("loss=5%,seed=1", marks=pytest.mark.full),
        pytest.param("duplicate=20%,seed=2", marks=pytest.mark.full),
        pytest.param("reorder=10%,seed=3", marks=pytest.mark.full),
        pytest.param("loss=5%,duplicate=10%,reorder=5%,seed=4", marks=pytest.mark.full),
        "loss=20%,duplicate=20%,reorder=20%,seed=5",
    ],
)
def test_trains_over_a_bad_network_are_right(own: Path, network: str) -> None:
    print(network)
    rand = random.Random(network)
    with probe_on(own, network) as (probe, link):
        for _ in range(12):
            program = TrainProgram(
                rand.randrange(60, 200), rand.randrange(1, 60), rand.randrange(1, 4), stream_id=rand.randrange(65536)
            )
            result = probe.train(program)
            assert (result.sent, result.late, result.complete, result.notes) == (program.total, 0, True, ())
            assert result.records["sequence"].tolist() == list(range(program.total))
            assert set((result.records["rx_stamp"] - result.records["tx_stamp"]).tolist()) == {8}
            assert np.diff(result.records["tx_stamp"].reshape(program.repeats, -1).astype(int)).ravel().tolist() == (
                [8 * program.slot_ticks] * (program.repeats * (program.count - 1))
            )
            assert result.counters["frames"] == program.total
        sent, lost, doubled, delayed, *_ = datagrams(link)
        assert sent > 300
        assert lost + doubled + delayed > 10


def test_the_clock_is_adjusted_once_each_time_over_a_bad_network(own: Path) -> None:
    with probe_on(own, "loss=10%,duplicate=30%,reorder=10%,seed=6") as (probe, _):
        now, _, ticks = probe.timebase.moment()
        offset_ns = now - 8 * ticks
        for number in range(1, 31):
            probe.timebase.adjust(1000)
            now, _, ticks = probe.timebase.moment()
            assert now - 8 * ticks - offset_ns == 1000 * number


# Two hosts ----------------------------------------------------------------------------------------


def test_second_host_is_told_who_has_the_probe_and_changes_nothing(own: Path) -> None:
    with probe_on(own) as (probe, link):
        probe.registers.write("probe_lease_timeout", 10)
        probe.lease.ensure()
        other = second_host(link)
        who = re.escape(name_of_this_process().split(" since ")[0])
        with pytest.raises(BusyError, match=f"in use by {who} since [0-9-]+ [0-9:]+ UTC: .* --steal"):
            other.train(TrainProgram(60, 10))
        assert "now_ns" not in other.info()
        other.link.write(probe.registers.register("port0_tx_length").address, [999])
        assert probe.registers.read("port0_tx_length") == 0
        assert probe.registers.read("probe_writes_skipped") == 1
        assert probe.train(TrainProgram(60, 10)).complete
        other.close()


def test_a_stolen_probe_serves_the_thief_and_tells_the_other(own: Path) -> None:
    with probe_on(own) as (probe, link):
        probe.launch(ENDLESS)
        probe.registers.write("port0_tx_attached", 1)
        thief = second_host(link, steal=True)
        thief.lease.ensure()
        link.wait(0.00002)
        assert thief.ports[0].transmit.look()[0] == TransmitState.IDLE
        assert thief.train(TrainProgram(60, 10), receive=0).complete
        with pytest.raises(LeaseLostError, match=r"taken from this host \(it is in use by .* now\).*void, run again"):
            probe.registers.read("port0_tx_sent")
        thief.close()
        assert probe.train(TrainProgram(77, 5)).complete


def test_a_probe_that_was_reset_is_told(own: Path) -> None:
    with probe_on(own) as (probe, _):
        probe.train(TrainProgram(60, 3))
        with pytest.raises(ProbeError, match="was reset, or heard nothing"):
            probe.registers.write("ctrl_reset", 1)
            probe.registers.read("port0_tx_sent")
        assert probe.train(TrainProgram(60, 3)).complete


# Networks that do worse than lose ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("hostility", "said"),
    [
        (Hostility(changing=0.05), "the network changes datagrams"),
        (Hostility(longest=300), "answers short requests, but none of 128 words"),
        (Hostility(doubling=0.2, delaying=0.1, delay_s=0.005), None),
    ],
    ids=["changed", "cut", "doubled-reordered"],
)
def test_a_bad_network_gives_right_trains_or_is_named(own: Path, hostility: Hostility, said: str | None) -> None:
    with probe_on(own) as (_, link), HostileRelay(link.port, hostility) as relay:
        patience = Patience(0.05, 40)
        try:
            with Probe(EtherboneLink("127.0.0.1", relay.port, patience), link.map_file) as probe:
                result = probe.train(TrainProgram(60, 50), receive=0)
                assert (result.complete, result.notes) == (True, ())
                assert set((result.records["rx_stamp"] - result.records["tx_stamp"]).tolist()) == {8}
                assert not said
        except NetworkError as error:
            assert said is not None and said in str(error)


# A host that is gone ------------------------------------------------------------------------------


def states(probe: Probe) -> list[TransmitState]:
    """Return what each port does, asked by a host that holds nothing."""
    assert isinstance(probe.link, SimLink)
    watch = EtherboneLink("127.0.0.1", probe.link.port)
    addresses = [probe.registers.register(f"port{port}_tx_state").address for port in (0, 1)]
    found = [TransmitState(int(word)) for word in watch.read_scattered(addresses)]
    watch.close()
    return found


def flood(probe: Probe) -> None:
    """Send without end from both ports: the program of port 0 is attached, that of port 1 is not."""
    for port in (0, 1):
        probe.launch(ENDLESS, port)
    probe.registers.write("port0_tx_attached", 1)


def test_what_a_host_sends_ends_as_it_lets_go_unless_it_was_detached(own: Path) -> None:
    with probe_on(own) as (probe, link):
        flood(probe)
        probe.lease.release()
        link.wait(0.00002)
        assert states(probe) == [TransmitState.IDLE, TransmitState.RUNNING]
        assert [probe.stop(port) for port in (0, 1)] == [False, True]


@pytest.mark.full
def test_beats_keep_the_lease_and_what_a_host_sends_ends_without_them(own: Path) -> None:
    with probe_on(own) as (probe, link):
        unit_s = 2**LEASE_UNIT_BITS / probe.registers.constant("config_clock_frequency")
        probe.registers.write("probe_lease_timeout", 1)
        assert link._beats
        link._beats = (link._beats[0], 5_000_000)
        link.wait(2.5 * unit_s)
        assert probe.registers.read("probe_lease_expired") == 0
        flood(probe)
        probe.lease._stop_beats()  # As a host that is killed, or unplugged.
        started_s = link.now_s()
        while states(probe)[0] == TransmitState.RUNNING:
            assert link.now_s() < started_s + 2.2 * unit_s
            link.wait(unit_s / 16)
        assert link.now_s() >= started_s + 0.9 * unit_s
        assert states(probe)[1] == TransmitState.RUNNING
        with pytest.raises(LeaseLostError, match="heard nothing of this host for too long"):
            probe.stop(0)
        assert [probe.stop(port) for port in (0, 1)] == [False, True]
        assert probe.registers.read("probe_lease_expired") == 1


# Starts -------------------------------------------------------------------------------------------


def test_a_start_that_comes_twice_or_too_early_starts_nothing_later(own: Path) -> None:
    with probe_on(own) as (probe, link):
        probe.registers.write("probe_start", 1)  # Nothing is ready.
        assert probe.train(TrainProgram(60, 5)).complete
        address = probe.registers.register("probe_start").address
        port = probe.ports[0].transmit
        for _ in range(3):
            # What an earlier host's datagrams, doubled and late, look like to the probe: without any order.
            link._send_datagram(encode(0, [], Write(address, [1]), (link.lease, 0)))
        probe.registers.write_many({"port0_tx_count": 3, "port0_tx_repeats": 1})
        port.arm()
        link.wait(0.0005)
        assert port.look()[:2] == (TransmitState.READY, 0)


def test_a_ring_that_is_cleared_while_it_is_read_is_an_error(own: Path) -> None:
    with probe_on(own) as (probe, _):
        probe.train(TrainProgram(60, 100))
        receive = probe.ports[0].receive
        receive._read = 50
        probe.registers.write("port0_rx_clear", 1)
        with pytest.raises(
            ProbeError,
            match=r"ring of records was cleared while it was read \(4294967246 records wait in 1024 places\)",
        ):
            receive.drain()


# What no host of ours sends -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_datagrams_that_are_broken_cost_no_time_and_change_nothing(own: Path, seed: int) -> None:
    rand = random.Random(seed)
    print(f"seed {seed}")
    with probe_on(own) as (probe, link):
        probe.train(TrainProgram(60, 3))
        whole = encode(1, [0xF0000000] * 3, Write(0xF0000000, [1, 2]), (link.lease, 9))
        before_s = link.now_s()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for _ in range(300):
                octets = bytearray(whole[: rand.randrange(len(whole))] if rand.random() < 0.5 else whole)
                octets[rand.randrange(12) if len(octets) > 12 else 0 : 0] = rand.randbytes(rand.randrange(1, 4))
                stranger.sendto(bytes(octets), ("127.0.0.1", link.port))
        assert link.now_s() - before_s < 0.005
        assert probe.train(TrainProgram(60, 3)).complete


def test_a_name_fits_its_register_whatever_the_host_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Callable[[], str]] = [lambda: "x" * 300, lambda: "mæsse-" + "ü" * 60, lambda: ""]
    for call in calls:
        monkeypatch.setattr(socket, "gethostname", call)
        name = name_of_this_process()
        assert len(name_words(name)) == 16
        assert " since 20" in name
        assert np.asarray(name_words(name), dtype=">u4").tobytes().rstrip(b"\0").decode() == name
