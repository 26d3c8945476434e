# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Trains from the first register to the result, over a model of the probe that knows the truth; programs and what is refused."""

import os
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from liteprobe.cores.formats import TransmitState
from liteprobe.host.analysis import summary
from liteprobe.host.base.errors import BusyError, NetworkError, ProbeError, UsageError
from liteprobe.host.cli import main as cli
from liteprobe.host.probe import Probe
from liteprobe.host.run.port import TransmitPort
from liteprobe.host.traffic.headers import Headers
from liteprobe.host.traffic.train import TrainProgram, gap_for, interval_ns_for_rate, schedule
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.drivers.tools.refusals import refusal
from liteprobe.sim.models.probe.trains import ModelFrame, ModelProbe, Wire, cable, damaged, loopback

DELAY_TICKS = 37

MakeProbe = Callable[..., tuple[Probe, FakeLink]]


@pytest.fixture
def make(tmp_path: Path) -> MakeProbe:
    def make_probe(wire: Wire | None = None, depth: int = 1024) -> tuple[Probe, FakeLink]:
        link = FakeLink(ModelProbe(wire or cable(DELAY_TICKS), depth=depth), tmp_path)
        return Probe(link), link

    return make_probe


@pytest.mark.parametrize(
    "program",
    [
        TrainProgram(60, 1),
        TrainProgram(60, 1000),
        TrainProgram(9000, 3),
        TrainProgram(1514, 100, interval_ns=20000.0, fill="prbs"),
        TrainProgram(64, 7, repeats=3, interval_ns=1000.0, gap_ns=4000.0, stream_id=77),
        TrainProgram(128, 5, headers=Headers(source_ip="2001:2::1", destination_ip="2001:2::2", vlan_tags=(1, 2))),
    ],
)
def test_every_frame_comes_back_in_its_record(make: MakeProbe, program: TrainProgram) -> None:
    probe, _ = make()
    result = probe.train(program)
    records = result.records
    step = int(program.interval_ns or 8 * program.slot_ticks)
    of_train = np.arange(program.total) // program.count
    starts = np.arange(program.total) * step + of_train * int(program.gap_ns or 0)
    assert records["sequence"].tolist() == list(range(program.total))
    assert (records["tx_stamp"] - records["tx_stamp"][0]).tolist() == starts.tolist()
    assert set(records["rx_stamp"] - records["tx_stamp"]) == {8 * DELAY_TICKS}
    assert set(records["length"]) == {program.length}
    assert (result.sent, result.late, result.complete, result.notes) == (program.total, 0, True, ())
    assert (result.clock_state, result.uncertainty_ns) == ("free-running", 8.0)
    assert result.counters["delay_sum"] == program.total * 8 * DELAY_TICKS
    assert result.counters["octets"] == program.total * program.length


def test_registers_hold_what_the_contract_says(make: MakeProbe) -> None:
    probe, link = make()
    headers = Headers(source_ip="2001:2::1", destination_ip="2001:2::2", vlan_tags=(1,))
    program = TrainProgram(129, 4, 2, 2000.5, 80.0, 10**9, 3, "counting", headers)
    probe.train(program)
    names = ("length", "count", "repeats", "interval_ticks", "interval_fraction", "gap_ticks", "start_time", "timed")
    assert [link.model.values[f"port0_tx_{name}"] for name in names] == [129, 4, 2, 250, 2**28, 10, 10**9, 1]
    names = ("fill", "payload_offset", "checksum_enable", "checksum_seed")
    seed = headers.checksum_seed(129)
    assert [link.model.values[f"port0_tx_{name}"] for name in names] == [1, 66, 1, seed]
    octets = b"".join(
        word.to_bytes(4, "little") for word in probe.registers.read_memory("port0_header", 0, 18).tolist()
    )
    assert octets == headers.octets(129, 3)
    names = ("stream_id", "records_enable")
    assert [link.model.values[f"port1_rx_{name}"] for name in names] == [3, 1]


def test_a_count_of_ports_that_a_network_changed_is_named_and_asks_for_no_memory(tmp_path: Path) -> None:
    model = ModelProbe(loopback(5))
    model.values["probe_ports"] ^= 1 << 29
    with pytest.raises(NetworkError, match="said to have 536,870,914 ports, its register map has 2"):
        Probe(FakeLink(model, tmp_path))


def test_start_time_is_that_of_the_first_sfd(make: MakeProbe) -> None:
    probe, _ = make()
    assert probe.train(TrainProgram(60, 3, start_time_ns=5_000_000)).records["tx_stamp"][0] == 5_000_000
    with pytest.raises(UsageError, match="start time 5000000 ns is past or too near"):
        probe.train(TrainProgram(60, 3, start_time_ns=5_000_000))


def test_stamps_are_64_bits_of_the_probes_clock(make: MakeProbe) -> None:
    probe, _ = make()
    probe.timebase.set_time(10**18)
    records = probe.train(TrainProgram(60, 3)).records
    assert 0 < int(records["tx_stamp"][0]) - 10**18 < 10**6
    assert set(records["rx_stamp"] - records["tx_stamp"]) == {8 * DELAY_TICKS}


def test_start_that_came_too_late_is_said(make: MakeProbe, monkeypatch: pytest.MonkeyPatch) -> None:
    probe, link = make()
    monkeypatch.setattr(link, "expect_silence", lambda seconds: link.model.advance(250_000))  # A slow network: 2 ms.
    start_ns = link.model.now() + 1_500_000
    result = probe.train(TrainProgram(60, 3, start_time_ns=start_ns))
    late_ns = int(result.records["tx_stamp"][0]) - start_ns
    assert 500_000 < late_ns < 600_000
    assert result.notes == (f"the first frame left {late_ns} ns after its start time: ask for a later one",)


def test_launch_waits_in_band_until_its_trains_end_and_not_where_it_failed(
    make: MakeProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe, link = make()
    silences: list[float] = []
    monkeypatch.setattr(link, "expect_silence", silences.append)
    before_ns = link.model.now()
    end_ns = probe.launch_all([(TrainProgram(60, 50), 0), (TrainProgram(1514, 1000, stream_id=2), 1)])
    (silence_s,) = silences  # Nothing has ended it since.
    assert end_ns - before_ns > 1000 * 12_304
    assert silence_s * 1e9 >= end_ns - link.model.now()
    assert "is past or too near" in refusal(probe.launch, TrainProgram(60, 3, start_time_ns=8))
    assert silences[-1] == 0


def test_ports_started_together_start_in_the_same_tick(make: MakeProbe) -> None:
    probe, _ = make()
    first, second = probe.trains([(TrainProgram(60, 50), 0, None), (TrainProgram(1514, 20, stream_id=2), 1, None)])
    assert first.records["tx_stamp"][0] == second.records["tx_stamp"][0]
    assert (len(first.records), len(second.records)) == (50, 20)


def test_ring_that_turns_round_gives_every_record_once(make: MakeProbe) -> None:
    probe, _ = make(depth=64)
    seen: list[tuple[int, int]] = []
    result = probe.train(TrainProgram(1514, 1000), progress=lambda sent, total: seen.append((sent, total)))
    assert result.records["sequence"].tolist() == list(range(1000))
    assert result.complete
    assert seen[-1] == (1000, 1000)
    assert seen == sorted(seen)


def test_gap_that_nobody_gave_is_long_enough_for_the_ring(make: MakeProbe) -> None:
    probe, _ = make(depth=64)
    result = probe.train(TrainProgram(60, 60, repeats=20))
    assert (len(result.records), result.complete) == (1200, True)
    # Between two looks at the clock the model takes 224 ticks for the rest of the first, and 4520 for sixty records; 1.25 is
    # the margin.
    record_ns = 1.25 * 8 * (212 + 224 + 4520) / 60
    assert result.program.gap_ns == pytest.approx(60 * record_ns - 60 * 672 + 100_000)
    heads = result.records["tx_stamp"][::60].astype(int)
    assert set(np.diff(heads)) == {60 * 672 + 109_240}
    assert probe.train(TrainProgram(60, 3, repeats=20)).program.gap_ns == 0  # The ring holds them all.
    assert probe.train(TrainProgram(60, 100)).program.gap_ns == 0  # No second train.
    assert not probe.train(TrainProgram(60, 60, repeats=20, gap_ns=0.0)).complete


def test_ring_that_overflows_is_incomplete_and_said(make: MakeProbe) -> None:
    probe, _ = make(depth=64)
    result = probe.train(TrainProgram(60, 2000))
    lost = result.counters["records_lost"]
    assert lost == 2000 - len(result.records) != 0
    assert not result.complete
    assert result.notes[0].startswith(f"{lost} records found the ring full, so per-packet figures are incomplete")
    assert result.counters["frames"] == 2000


def test_a_result_says_how_far_to_trust_a_delay_of_a_crystal(make: MakeProbe) -> None:
    probe, _ = make(cable(125_000))  # 1 ms.
    probe.timebase.oscillator_ppm = 50.0
    assert probe.train(TrainProgram(60, 2)).uncertainty_ns == pytest.approx(8.0 + 50.0)


def test_programs_longer_than_memory_are_counted_without_records(
    make: MakeProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("liteprobe.host.run.trains.RECORDS_MAX", 99)
    probe, _ = make()
    result = probe.train(TrainProgram(60, 100))
    assert (len(result.records), result.counters["frames"], result.complete) == (0, 100, False)
    assert result.notes == ("100 frames are too many for records: measured by accumulators",)


# Faults -------------------------------------------------------------------------------------------


def some(keep: Callable[[ModelFrame], int]) -> Wire:
    """Return a cable that delivers a frame as often as ``keep`` says."""
    return lambda frame: cable(DELAY_TICKS)(frame) * keep(frame)  # type: ignore[operator]


def test_lost_frames_are_waited_for_and_missing(make: MakeProbe) -> None:
    probe, link = make(some(lambda frame: int(frame.sequence % 10 != 9)))
    result = probe.train(TrainProgram(60, 100))
    assert result.records["sequence"].tolist() == [n for n in range(100) if n % 10 != 9]
    assert (result.complete, result.counters["frames"]) == (True, 90)
    assert sum(link.waits[1:]) == pytest.approx(link.arrival_timeout_s, rel=0.05)


def test_a_slow_queue_is_waited_for_while_frames_come(make: MakeProbe) -> None:
    between_ticks = 187_500  # 1.5 ms; the last of ten frames comes long after the 2 ms from the end.
    probe, _ = make(lambda frame: [(1, DELAY_TICKS + between_ticks * frame.sequence, frame)])
    result = probe.train(TrainProgram(60, 10))
    assert result.records["sequence"].tolist() == list(range(10))


def test_frames_that_come_late_but_in_time_are_taken(make: MakeProbe) -> None:
    late_ticks = 225_000  # 1.8 ms, of the 2 ms that are waited.
    probe, _ = make(lambda frame: [(1, DELAY_TICKS if frame.sequence else late_ticks, frame)])
    result = probe.train(TrainProgram(60, 10))
    assert result.records["sequence"].tolist() == [*range(1, 10), 0]


def test_duplicates_of_the_last_frame_are_taken(make: MakeProbe) -> None:
    probe, _ = make(lambda frame: [(1, DELAY_TICKS, frame), (1, DELAY_TICKS + 4000, frame)])
    result = probe.train(TrainProgram(60, 10))
    assert (len(result.records), result.counters["duplicated"], result.complete) == (20, 10, True)


def test_nothing_comes_back_is_an_error_that_names_both_ports(make: MakeProbe) -> None:
    probe, _ = make(some(lambda frame: 0))
    with pytest.raises(
        ProbeError, match=r"nothing came back: 5 frames left port 0, none reached port 1 whole"
    ) as error:
        probe.train(TrainProgram(60, 5))
    assert error.value.exit_code == 1


def test_frames_that_are_all_damaged_are_named_as_such(make: MakeProbe) -> None:
    probe, _ = make(lambda frame: [(1, DELAY_TICKS, damaged(frame))])
    assert "(5 with a bad FCS, 0 of other streams)" in refusal(probe.train, TrainProgram(60, 5), error=ProbeError)


def test_frames_of_another_port_show_where_the_wire_leads(make: MakeProbe) -> None:
    probe, _ = make(loopback(DELAY_TICKS))
    assert "name the port it leads to (--receive)" in refusal(probe.train, TrainProgram(60, 5), error=ProbeError)
    assert len(probe.train(TrainProgram(60, 5), receive=0).records) == 5


@pytest.mark.parametrize("port", [0, 1])
def test_link_down_at_the_start_sends_nothing(make: MakeProbe, port: int) -> None:
    probe, link = make()
    link.model.values[f"port{port}_tx_link_up"] = 0
    with pytest.raises(ProbeError, match=f"the link of port {port} is down: plug in its cable"):
        probe.train(TrainProgram(60, 5))
    assert link.model.values["port0_tx_sent"] == 0


def test_train_cut_by_the_wire_says_how_much_had_come(make: MakeProbe) -> None:
    def cut(frame: ModelFrame) -> list[tuple[int, int, ModelFrame]]:
        if frame.sequence == 6:
            link.model.values["port1_tx_link_up"] = link.model.values["port1_rx_link_up"] = 0
        return [(1, DELAY_TICKS, frame)]

    probe, link = make(cut)
    with pytest.raises(ProbeError, match=r"the link of port 1 went down during the train \(6 of 10 frames had come\)"):
        probe.train(TrainProgram(60, 10))


def test_link_that_goes_down_ends_the_train(make: MakeProbe) -> None:
    def pull(sent: int, total: int) -> None:
        link.model.values["port0_tx_link_up"] = int(sent < 300)

    probe, link = make()
    with pytest.raises(
        ProbeError, match=r"the link of port 0 went down during the train \(\d+ of \d+ frames had come\)"
    ):
        probe.train(TrainProgram(1514, 100_000), progress=pull)
    assert link.model.values["port0_tx_sent"] < 1000
    assert link.model.values["port0_tx_state"] == 0


def test_late_frames_and_underruns_are_said(make: MakeProbe) -> None:
    probe, link = make()

    def late(frame: ModelFrame) -> list[tuple[int, int, ModelFrame]]:
        link.model.values |= {"port0_tx_late": 2, "port0_tx_first_late": 7, "port0_tx_underruns": 1}
        return [(1, DELAY_TICKS, frame)]

    link.model.wire = late
    result = probe.train(TrainProgram(60, 10))
    assert result.late == 2
    assert result.notes == (
        "2 frames started after their tick, number 7 first",
        "1 frames were built too late for the line",
    )


def test_train_that_stands_still_is_stopped_and_incomplete(make: MakeProbe) -> None:
    def stall(frame: ModelFrame) -> list[tuple[int, int, ModelFrame]]:
        if frame.sequence == 3:
            link.model._programs[0] = {}
        return [(1, DELAY_TICKS, frame)]

    probe, link = make(stall)
    result = probe.train(TrainProgram(60, 10))
    assert (result.sent, result.complete, len(result.records)) == (4, False, 4)
    assert result.notes == ("6 frames were not sent: the train stood still",)
    assert link.model.values["port0_tx_state"] == 0


def test_counts_of_a_train_that_is_stopped_are_those_after_the_stop(
    make: MakeProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frames leave after the last look that found none, and before the stop."""
    probe, link = make()
    model, start, stop = link.model, link.model._start, TransmitPort.stop

    def late(port: TransmitPort) -> None:
        model._tx(0, state=TransmitState.READY)
        start([0])
        model.advance(300)
        stop(port)

    monkeypatch.setattr(model, "_start", lambda ports: model._tx(0, state=TransmitState.RUNNING))
    monkeypatch.setattr(TransmitPort, "stop", late)
    result = probe.train(TrainProgram(60, 10))
    row = summary.row(result)
    assert 0 < result.sent < 10 and (row["sent"], row["received"], row["lost"]) == (result.sent, result.sent, 0)
    assert result.notes == (f"{10 - result.sent} frames were not sent: the train stood still",)


def test_a_short_waiting_time_counts_from_the_first_frame_on(make: MakeProbe, monkeypatch: pytest.MonkeyPatch) -> None:
    probe, link = make()
    model, start, link.arrival_timeout_s = link.model, link.model._start, 10e-6

    def late(ports: list[int]) -> None:
        """Start as the pacer does: it runs, and the first frame leaves 2068 ticks later."""
        model._tx(0, state=TransmitState.RUNNING)

        def begin() -> None:
            model._tx(0, state=TransmitState.READY)
            start(ports)

        model._at(model.tick + 2068, begin)

    monkeypatch.setattr(model, "_start", late)
    result = probe.train(TrainProgram(60, 10))
    assert (result.sent, result.counters["lost"], result.notes) == (10, 0, ())


def test_interrupt_stops_the_train_and_goes_on(make: MakeProbe) -> None:
    def interrupt(sent: int, total: int) -> None:
        if sent > 100:
            raise KeyboardInterrupt

    probe, link = make()
    with pytest.raises(KeyboardInterrupt):
        probe.train(TrainProgram(1514, 100_000), progress=interrupt)
    sent = link.model.values["port0_tx_sent"]
    link.model.advance(10**6)
    assert link.model.values["port0_tx_sent"] == sent < 1000
    assert link.silences[-1] == 0


def test_program_that_still_runs_is_stopped_before_the_next(make: MakeProbe, tmp_path: Path) -> None:
    probe, link = make()

    def vanish(sent: int, total: int) -> None:
        raise RuntimeError

    stop, link.model._tx_stop = link.model._tx_stop, lambda port: None  # type: ignore[method-assign]
    with pytest.raises(RuntimeError):
        probe.train(TrainProgram(1514, 100_000), progress=vanish)
    link.model._tx_stop = stop  # type: ignore[method-assign]
    assert link.model.values["port0_tx_state"] == 4
    link.model.values["probe_lease_owner"] = 0x8002  # As two seconds of silence leave it.
    assert f" (pid {os.getpid()}) since " in refusal(Probe(link).train, TrainProgram(60, 10), error=BusyError)
    result = Probe(link, steal=True).train(TrainProgram(60, 10))
    assert (len(result.records), result.complete) == (10, True)


def test_port_that_does_not_stop_is_an_error(make: MakeProbe) -> None:
    probe, link = make()
    link.model.values["port0_tx_state"] = 4
    link.model._tx_stop = lambda port: None  # type: ignore[method-assign]
    probe = Probe(link, steal=True)
    assert "port 0 doesn't stop sending" in refusal(probe.train, TrainProgram(60, 10), error=ProbeError)


def test_silence_is_announced_for_as_long_as_the_train_takes(make: MakeProbe) -> None:
    probe, link = make()
    probe.train(TrainProgram(1514, 1000))
    assert link.silences[0] == pytest.approx(12304e-6, abs=2e-3)
    assert link.silences[0] >= 12304e-6
    assert link.silences[-1] == 0


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        ([], "there is no train to send: give one or more"),
        ([(TrainProgram(60, 1), 2, 0)], "there is no transmit port 2: give 0 to 1"),
        ([(TrainProgram(60, 1), -1, 0)], "there is no transmit port -1"),
        ([(TrainProgram(60, 1), 0, 2)], "there is no receive port 2: give 0 to 1"),
        ([(TrainProgram(60, 1), 0, 1)] * 2, "a transmit port is given twice"),
        ([(TrainProgram(60, 1), 0, 1), (TrainProgram(60, 1), 1, 1)], "a receive port is given twice"),
        ([(TrainProgram(60, 2, interval_ns=600.0), 0, 1)], "interval 600 ns is above the line rate"),
    ],
)
def test_request_that_cannot_be_is_refused_before_anything_is_written(
    make: MakeProbe, requests: list[tuple[TrainProgram, int, int | None]], message: str
) -> None:
    probe, link = make()
    before = dict(link.model.values)
    with pytest.raises(UsageError, match=message):
        probe.trains(requests)
    assert link.model.values == before


# Programs -----------------------------------------------------------------------------------------


NOMINAL = 8 << 40  # Increment of a clock of 8 ns a tick.


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"length": 59}, "length 59 is out of range: give 60 to 9000 octets without FCS"),
        ({"length": 9001}, "length 9001 is out of range: give 60 to 9000"),
        ({"length": 0}, "length 0 is out of range"),
        (
            {"length": 81, "headers": Headers(source_ip="::1", destination_ip="::2")},
            "length 81 is out of range: give 82 to 9000 octets without FCS with these headers",
        ),
        ({"count": 0}, "count 0 is out of range: give 1 to 4294967295"),
        ({"count": 2**32}, "count 4294967296 is out of range"),
        ({"repeats": 0}, "repeats 0 is out of range: give 1 or more"),
        ({"count": 2**16, "repeats": 2**16}, "count 65536 x repeats 65536 is 4294967296 frames: give 4294967295"),
        ({"stream_id": 65536}, "stream id 65536 is out of range"),
        ({"stream_id": -1}, "stream id -1 is out of range"),
        ({"fill": "random"}, "fill 'random' is unknown: give one of zero, counting, prbs"),
        ({"interval_ns": -1.0}, "interval -1.0 ns is out of range: give 0 or more"),
        ({"interval_ns": float("nan")}, "interval_ns is nan (float): give a finite number, in ns"),
        ({"interval_ns": float("inf")}, "interval_ns is inf (float): give a finite number, in ns"),
        ({"gap_ns": -0.5}, "gap -0.5 ns is out of range"),
        ({"start_time_ns": -1}, "start time -1 ns is out of range"),
        ({"start_time_ns": 2**64}, "start time 18446744073709551616 ns is out of range"),
    ],
)
def test_program_out_of_range_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as error:
        TrainProgram(**({"length": 60, "count": 1} | fields))  # type: ignore[arg-type]
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    "program",
    [
        TrainProgram(60, 1),
        TrainProgram(9000, 2**32 - 1),
        TrainProgram(60, 65537, repeats=65535),  # 2^32-1 frames.
        TrainProgram(82, 1, headers=Headers(source_ip="::1", destination_ip="::2")),
        TrainProgram(60, 1, stream_id=65535, fill="prbs", start_time_ns=2**64 - 1),
    ],
)
def test_program_at_the_edge_of_a_range_is_taken(program: TrainProgram) -> None:
    assert replace(program) == program


@pytest.mark.parametrize(
    ("interval_ns", "ticks", "fraction"),
    [
        (None, 0, 0),
        (672.0, 84, 0),
        (673.0, 84, 2**29),
        (680.0, 85, 0),
        (1000.0 + 8 * 2.0**-32, 125, 1),
        (1e9, 125_000_000, 0),
        (672.1, 84, round(Fraction(672.1) % 8 / 8 * 2**32)),
    ],
)
def test_interval_is_ticks_with_a_fraction(interval_ns: float | None, ticks: int, fraction: int) -> None:
    found = schedule(TrainProgram(60, 2, interval_ns=interval_ns), NOMINAL)
    assert (found.interval_ticks, found.interval_fraction, found.notes) == (ticks, fraction, ())


@pytest.mark.parametrize("increment", [NOMINAL, NOMINAL + 1, NOMINAL - 8 * 10**8, NOMINAL + 8 * 10**8, 16 << 40])
@pytest.mark.parametrize("interval_ns", [20000.0, 12345.678, 1e6 / 3])
def test_interval_is_one_of_the_clocks_own_nanoseconds(increment: int, interval_ns: float) -> None:
    found = schedule(TrainProgram(60, 2, interval_ns=interval_ns), increment)
    ticks = found.interval_ticks + Fraction(found.interval_fraction, 2**32)
    assert abs(ticks * Fraction(increment, 2**40) - Fraction(interval_ns)) <= Fraction(increment, 2**40) / 2**33


@pytest.mark.parametrize(
    ("rate_bps", "length", "interval_ns"),
    [(1e9, 60, 672.0), (1e9, 9000, 72192.0), (5e8, 1514, 24608.0), (1e6, 64, 704000.0), (3e8, 60, 2240.0)],
)
def test_rate_counts_the_whole_slot(rate_bps: float, length: int, interval_ns: float) -> None:
    assert interval_ns_for_rate(length, rate_bps) == interval_ns


@pytest.mark.parametrize("rate_bps", [0.0, -1.0, float("nan"), float("inf")])
def test_rate_that_is_none_is_refused(rate_bps: float) -> None:
    with pytest.raises(UsageError, match=r"(b/s is out of range: give a rate above 0, up to 1G|give a finite number)"):
        interval_ns_for_rate(60, rate_bps)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            TrainProgram(60, 2, interval_ns=671.99),
            "interval 671.99 ns is above the line rate for length 60: give 672 ns",
        ),
        (TrainProgram(1514, 2, interval_ns=0.0), "interval 0 ns is above the line rate for length 1514: give 12304 ns"),
        (TrainProgram(60, 2, interval_ns=8.0 * 2**32), "an interval or gap is above 34.360 s"),
        (TrainProgram(60, 2, gap_ns=8.0 * 2**32), "an interval or gap is above 34.360 s"),
    ],
)
def test_time_that_cannot_be_is_refused(program: TrainProgram, message: str) -> None:
    assert refusal(schedule, program, NOMINAL).startswith(message)


def test_line_rate_by_a_fast_clock_is_back_to_back_and_said() -> None:
    # 8 ns of this clock are more than a tick: 672 ns are 83.99 ticks, less than the line takes.
    found = schedule(TrainProgram(60, 2, interval_ns=672.0), NOMINAL + NOMINAL // 10**5)
    assert (found.interval_ticks, found.interval_fraction) == (0, 0)
    assert found.notes == ("the line is 10.0 ppm slower than the rate asked for, by the probe's clock: back to back",)
    with pytest.raises(UsageError, match="above the line rate"):
        schedule(TrainProgram(60, 2, interval_ns=672.0), NOMINAL + 3 * NOMINAL // 10**4)


@pytest.mark.parametrize(
    ("program", "duration_ns"),
    [
        (TrainProgram(60, 1), 672),
        (TrainProgram(60, 1000), 672_000),
        (TrainProgram(60, 10, repeats=3, interval_ns=1000.0, gap_ns=800.0), 31_600),
        (TrainProgram(1514, 2, repeats=2, gap_ns=11.0), 4 * 12304 + 8),  # A gap is whole ticks.
    ],
)
def test_duration_is_to_the_end_of_the_last_slot(program: TrainProgram, duration_ns: int) -> None:
    assert schedule(program, NOMINAL).duration_ns == duration_ns


@pytest.mark.parametrize(
    ("program", "is_in_band", "gap_ns"),
    [
        (TrainProgram(60, 1000, repeats=2), False, 2_000_000.0 - 672_000.0 + 50.0),
        (TrainProgram(60, 1000, repeats=2), True, 2_000_000.0 + 50.0),
        (TrainProgram(1514, 1000, repeats=2), False, 50.0),
        (TrainProgram(60, 1000, repeats=2, interval_ns=1500.0), False, 500_000.0 + 50.0),
    ],
)
def test_gap_is_what_fetching_takes_beyond_the_train(program: TrainProgram, is_in_band: bool, gap_ns: float) -> None:
    assert gap_for(program, 2000.0, 50.0, is_in_band) == gap_ns


# owd ----------------------------------------------------------------------------------------------


LOCKED = {"clock_state": 3, "clock_alive": 1, "clock_updates": 1, "clock_uncertainty": 2560, "pps_period": 10**9}
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, ModelProbe]:
    """Two probes with locked clocks; ``etherbone://a`` leads to one, ``etherbone://b`` to the other."""
    made = {name: ModelProbe(cable(), with_clock=True) for name in "ab"}
    for model in made.values():
        model.values |= LOCKED

    monkeypatch.setattr("liteprobe.host.probe.open_link", lambda url: FakeLink(made[url[-1]], tmp_path))
    return made


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*arguments: str) -> tuple[int, str]:
        return cli.main(["owd", "--from", "etherbone://a", *arguments]), capsys.readouterr().err

    return command


def test_what_makes_no_sense_is_a_usage_error(run: Run, models: dict[str, ModelProbe]) -> None:
    to = ("--to", "etherbone://b")
    for arguments, said in (
        ((), "--to URL"),
        ((*to, "--known-delay", "1us"), "go together"),
        ((*to, "--receive", "2"), "there is no receive port 2 in etherbone://b"),
        ((*to, "--transmit", "7"), "there is no transmit port 7 in etherbone://a"),
        ((*to, "--length", "59"), "length 59"),
    ):
        code, err = run(*arguments)
        assert (code, said in err) == (2, True), err


@pytest.mark.parametrize("state", [0, 1, 2])
@pytest.mark.parametrize("which", "ab")
def test_a_clock_that_is_not_to_be_trusted_is_named(
    run: Run, models: dict[str, ModelProbe], which: str, state: int
) -> None:
    models[which].values |= {"clock_state": state, "clock_alive": int(state > 0)}
    code, err = run("--to", "etherbone://b")
    assert (code, f"the clock of etherbone://{which} is" in err) == (1, True), err


def test_clocks_of_different_seconds_are_refused(run: Run, models: dict[str, ModelProbe]) -> None:
    models["b"].advance(125_000_000 * 3)
    code, err = run("--to", "etherbone://b")
    assert code == 1 and "differ by 3.00" in err, err


def test_a_link_that_is_down_is_named(run: Run, models: dict[str, ModelProbe]) -> None:
    models["b"].values["port0_tx_link_up"] = 0
    code, err = run("--to", "etherbone://b")
    assert code == 1 and "the link of port 0 of etherbone://b is down" in err, err
