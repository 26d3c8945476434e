# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Streams from the first register to the result, over a model of the probe that knows the truth; and their faults."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from liteprobe.cores.formats import PRESETS, Part, RecordFlag, TransmitState
from liteprobe.host.base.errors import BusyError, ProbeError, UsageError
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.device import lease
from liteprobe.host.probe import Probe
from liteprobe.host.run.figures import TrafficLook, TrafficResult
from liteprobe.host.traffic.intervals import Burst, Interval
from liteprobe.host.traffic.lengths import IMIX, Fixed, RandomLength, Stepped
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.stream import Stream
from liteprobe.host.traffic.train import TrainProgram
from liteprobe.sim.drivers.system.fake_link import DELAY_TICKS, ENDLESS, FIXED, MIXED, FakeLink, MakeProbe, maker, some
from liteprobe.sim.drivers.tools.refusals import refusal
from liteprobe.sim.models.probe.streams import SENT_BASE, TrafficFrame, TrafficProbe
from liteprobe.sim.models.probe.trains import ModelFrame, ModelProbe, damaged
from liteprobe.sim.models.traffic import streams as traffic

DELAY_NS = 8 * DELAY_TICKS


@pytest.fixture
def make(tmp_path: Path) -> MakeProbe:
    return maker(tmp_path)


# What goes well -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "streams",
    [
        [FIXED],
        [MIXED],
        [Stream("all", 7, Fixed(60), count=100)],
        [FIXED, MIXED, Stream("late", 3, RandomLength(64, 1514), Interval(interval_ns=30_001), 50, start_ns=100_000)],
        [
            Stream("bursts", 9, Fixed(100), Interval(pps=10_000, burst=Burst(5, 2000)), 60),
            Stream("steps", 10, Stepped(60, 600, 7), Interval(share=0.3), 100, seed=4),
            Stream("drawn", 11, replace(IMIX, random=True), Interval(pps=7001), 80),
        ],
    ],
    ids=["constant", "exponential", "back to back", "three", "bursts, steps and a table that is drawn"],
)
def test_every_frame_leaves_when_the_streams_say_and_is_counted(make: MakeProbe, streams: list[Stream]) -> None:
    probe, model, _ = make()
    result = probe.send(streams).result()
    wanted = traffic.schedule(streams, 10_000)
    first = model.frames[0].stamp
    found = [(frame.number, frame.sequence, (frame.stamp - first) // 8, frame.length) for frame in model.frames]
    starts = wanted["start"] - wanted["start"][0]
    assert found == list(zip(wanted["stream"], wanted["sequence"], starts, wanted["length"], strict=True))
    for number, (row, stream) in enumerate(zip(result.rows, streams, strict=True)):
        own = wanted[wanted["stream"] == number]
        assert (row.sent, row.received, row.lost) == (stream.count, stream.count, 0)
        assert (row.waited, row.late, row.first_late, row.delayed) == (own["late"].sum(), 0, None, own["late"].sum())
        assert row.octets == own["length"].sum()
        assert row.latency and (row.latency.least_ns, row.latency.mean_ns, row.latency.most_ns) == (DELAY_NS,) * 3
        assert row.latency.p50 == row.latency.p99_9 and row.latency.p50 and row.latency.p50.error == 0
        assert row.latency.cells.total == stream.count
    assert (result.end, result.is_complete) == ("sent", True)
    assert model.values["port0_tx_state"] == TransmitState.IDLE


def test_send_returns_while_streams_run_and_looks_see_them_grow(make: MakeProbe) -> None:
    probe, model, _ = make()
    looks: list[TrafficLook] = []
    sending = probe.send([replace(FIXED, count=400), MIXED])
    assert model.values["port0_tx_state"] == TransmitState.RUNNING
    assert 0 < sending.look().rows[0].sent < 400
    sending.wait(looks.append)
    sent = [look.rows[0].sent for look in looks]
    assert sent == sorted(sent) and len(looks) > 20
    for look in looks[1:-1]:
        rate = look.rows[0].sent_fps
        assert rate and rate.least <= 20_000 <= rate.most
        came = look.rows[0].received_fps
        assert came and came.least < 20_200 and came.most > 19_800
    assert [look.is_running for look in looks] == [True] * (len(looks) - 1) + [False]
    assert sending.result().rows[0].lost == 0


def test_ports_start_in_the_same_tick_and_each_is_measured_where_its_wire_leads(make: MakeProbe) -> None:
    probe, model, _ = make()
    result = probe.send([FIXED, replace(MIXED, port=1)]).result()
    first = {port: next(frame for frame in model.frames if frame.port == port).stamp for port in (0, 1)}
    assert first[0] == first[1]
    assert [(row.stream.port, row.receive, row.lost) for row in result.rows] == [(0, 1, 0), (1, 0, 0)]


def test_streams_of_two_ports_may_come_to_one(make: MakeProbe) -> None:
    probe, _, _ = make(lambda frame: [(1, DELAY_TICKS, frame)])
    result = probe.send([FIXED, replace(MIXED, port=1)], receive=1).result()
    assert [(row.receive, row.received, row.lost) for row in result.rows] == [(1, 40, 0), (1, 200, 0)]


def test_registers_hold_what_the_contract_says(make: MakeProbe) -> None:
    probe, model, _ = make()
    with probe.send([replace(FIXED, stream_id=500), replace(MIXED, stream_id=503)]):
        names = ("streams_mask", "streams_hold", "attached", "timed")
        assert [model.values[f"port0_tx_{name}"] for name in names] == [3, 1, 1, 0]
        assert model.values["port1_measure_stream_base"] == 500
        assert model.values["port1_measure_prbs"] == 1 << 4
    assert model.values["port0_tx_state"] == TransmitState.IDLE


@pytest.mark.parametrize("seconds", [1e-6, 17e-6, 1e-4, 0.00333, 0.01])
def test_seconds_end_streams_to_the_tick_by_their_own_count(make: MakeProbe, seconds: float) -> None:
    streams = [
        ENDLESS,
        MIXED,
        FIXED,
        Stream("late", 9, Fixed(60), Interval(pps=5000), start_ns=200_000),
        Stream("random", 10, RandomLength(60, 200), Interval(pps=9000, exponential=True, burst=Burst(3)), seed=3),
    ]
    probe, model, _ = make()
    looks: list[TrafficLook] = []
    sending = probe.send(streams, seconds=seconds)
    sending.follow(looks.append)
    result = sending.result()
    ticks = round(seconds * 125e6)
    wanted = traffic.schedule(streams, 10_000)
    for number, row in enumerate(result.rows):
        due = wanted["due"][wanted["stream"] == number]
        past = np.flatnonzero(due >= ticks)
        assert row.sent == row.received == (past[0] if len(past) else len(due))
        assert sum(frame.number == number for frame in model.frames) == row.sent
    assert (result.end, result.is_complete, result.duration_s) == ("stopped", True, seconds)
    assert all(row.lost == 0 for row in result.rows)
    assert result.notes == ()


def test_seconds_that_are_longer_than_all_frames_take_change_nothing(make: MakeProbe) -> None:
    probe, _, _ = make()
    result = probe.send([FIXED], seconds=1.0).result()
    assert (result.end, result["fixed"].sent) == ("sent", 40) and result.duration_s < 0.01


def test_seconds_beyond_what_a_probe_counts_are_kept_by_the_host(
    make: MakeProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("liteprobe.host.traffic.layout.WORD", 10)
    probe, model, _ = make()
    result = probe.send([ENDLESS], seconds=0.01).result()
    row = result["endless"]
    frames_per_s = 1e7 / (8 * 152)
    assert (result.end, result.is_complete, row.lost) == ("stopped", True, 0)
    assert row.sent == len(model.frames) == pytest.approx(0.01 * frames_per_s, rel=0.1)
    assert row.sent_fps and row.sent_fps.least < frames_per_s < row.sent_fps.most
    assert row.received_fps and row.received_fps.least <= frames_per_s <= row.received_fps.most
    assert row.received_bps and row.received_bps.least == pytest.approx(1e7, rel=1e-6)


def test_rates_of_what_was_sent_are_those_of_the_frames_not_of_the_program(make: MakeProbe) -> None:
    probe, model, _ = make()
    others = [replace(FIXED, name=f"other {n}", stream_id=20 + n, length=Fixed(1500), count=9) for n in range(3)]
    waits = Stream("waits", 9, Fixed(60), Interval(pps=10_000), start_ns=500_000)
    result = probe.send([*others, waits, MIXED], seconds=0.004).result()
    for number, row in enumerate(result.rows):
        own = [frame.stamp for frame in model.frames if frame.number == number]
        true = 1e9 * (len(own) - 1) / (own[-1] - own[0])
        assert row.sent_fps and row.sent_fps.least <= true <= row.sent_fps.most
    alone = probe.send([waits], seconds=0.004).result()["waits"]
    assert alone.sent_fps and alone.sent_fps.least < 10_000 < alone.sent_fps.most < 10_000.1


def test_a_look_is_one_instant(make: MakeProbe) -> None:
    """Frames go on while a look is read: no count may contradict another."""
    probe, _, _ = make()
    looks: list[TrafficLook] = []
    fast = [Stream(f"fast {n}", 40 + n, Fixed(60), Interval(share=0.3)) for n in range(3)]
    with probe.send(fast) as sending:
        for _ in range(40):
            looks.append(sending.look())
    for look in looks:
        for row in look.rows:
            assert row.received is not None and row.latency and row.lost == 0
            assert row.received <= row.sent <= row.received + 1  # The wire takes 37 ticks, a frame comes every 93.
            assert row.latency.cells.total == row.received
    assert looks[-1].rows[0].sent > looks[0].rows[0].sent


def test_a_stream_stops_and_starts_again_while_others_run(make: MakeProbe) -> None:
    probe, model, _ = make()
    sending = probe.send([ENDLESS, FIXED])
    sending.stop("endless")
    probe.wait(0.001)
    stopped = [row.sent for row in sending.look().rows]
    assert not sending.look().rows[0].is_active
    probe.wait(0.005)
    assert sending.look().rows[0].sent == stopped[0] and sending.look().rows[1].sent == 40
    assert sending.is_running is False  # The one that is finite has ended, too; its port waits.
    sending.start("endless")
    sending.start("fixed")
    probe.wait(0.005)
    look = sending.look()
    assert look.rows[0].is_active and look.rows[0].sent > stopped[0] and look.rows[1].sent == 80
    sending.stop()
    result = sending.result()
    assert [row.lost for row in result.rows] == [0, 0]
    numbers = [frame.sequence for frame in model.frames if frame.number == 0]
    assert numbers == list(range(len(numbers)))  # It went on where it was.
    assert (result.end, result.is_complete, result.notes) == ("stopped", True, ())
    with pytest.raises(
        UsageError, match="port 0 has ended, so stream 'fixed' can't start again: send all of them anew"
    ):
        sending.start("fixed")


def test_to_start_a_stream_that_runs_leaves_it_as_it_is(make: MakeProbe) -> None:
    probe, model, _ = make()
    sending = probe.send([FIXED])
    for _ in range(5):
        sending.start("fixed")
    result = sending.result()
    gaps = {after.stamp - before.stamp for before, after in zip(model.frames, model.frames[1:], strict=False)}
    assert (gaps, result["fixed"].sent, result["fixed"].late) == ({50_000}, 40, 0)
    assert result.notes == ()


def test_streams_without_a_probe_header_are_counted_as_sent(make: MakeProbe) -> None:
    probe, _, _ = make()
    bare = Stream("bare", 4, Fixed(60), Interval(pps=20_000), 40, probe=False)
    result = probe.send([FIXED, bare]).result()
    assert (result["bare"].sent, result["bare"].received, result["bare"].lost, result["bare"].latency) == (
        40, None, None, None,
    )  # fmt: skip
    assert (result["fixed"].received, result["fixed"].lost) == (40, 0)


def test_a_stamp_in_a_field_gives_a_delay_without_a_probe_header(make: MakeProbe) -> None:
    probe, _, _ = make()
    field = Stream(
        "field", 4, Fixed(60), Interval(pps=20_000), 40, probe=False, stamp=Stamp("ipv4.identification", tick=2)
    )
    result = probe.send([field]).result()
    row = result["field"]
    assert (row.received, row.lost) == (40, None) and row.latency
    assert row.latency.mean_ns == pytest.approx(DELAY_NS, abs=256) and result.uncertainty_ns == 8 + 256
    place = 18 | (2 - 1) << 8 | 2 << 11 | 1 << 16  # Octets 18 and 19, from bit 8 on.
    assert probe.registers.read_memory("port1_places", 0, 1).tolist() == [place]
    assert result.notes == (
        "stream 'field': it has no probe header, so what is received counts any frame without one that came to port 1",
    )


@pytest.mark.parametrize("stamp", [None, Stamp("ipv4.identification", tick=2)])
def test_a_delay_is_not_taken_where_other_streams_without_a_probe_header_come(
    make: MakeProbe, stamp: Stamp | None
) -> None:
    probe, _, _ = make()
    field = Stream(
        "field", 4, Fixed(60), Interval(pps=20_000), 40, probe=False, stamp=Stamp("ipv4.identification", tick=2)
    )
    result = probe.send([field, replace(field, name="other", stream_id=5, stamp=stamp)]).result()
    assert [(row.sent, row.received, row.latency) for row in result.rows] == [(40, None, None)] * 2
    note = "it is not measured: the port that it comes to can't tell it from other streams without a probe header"
    assert result.notes == tuple(f"stream '{name}': {note}" for name in ("field", "other")[: 2 if stamp else 1])


def test_a_stream_without_a_stamp_has_no_delay_and_moves_no_bins(make: MakeProbe) -> None:
    """The probe takes its clock for the delay: the header has 0 in the place of the stamp."""
    probe, _, _ = make()
    result = probe.send([replace(FIXED, stamp=Stamp("none")), MIXED]).result()
    assert (result["fixed"].received, result["fixed"].lost, result["fixed"].latency) == (40, 0, None)
    delays = result["mixed"].latency
    assert delays and (delays.least_ns, delays.most_ns, delays.outside) == (DELAY_NS, DELAY_NS, 0)
    assert delays.p50 and delays.p50.error <= 4
    assert result.notes == ()


def test_a_stream_of_which_nothing_came_is_said(make: MakeProbe) -> None:
    probe, _, _ = make(lambda frame: [(1, DELAY_TICKS, frame)] * (frame.number == 1))
    result = probe.send([FIXED, MIXED]).result()
    assert [(row.received, row.lost) for row in result.rows] == [(0, 40), (200, 0)]
    assert result.notes == (
        "stream 'fixed': none of its 40 frames came to port 1 whole and in time: check what is on the way, give a longer "
        "waiting time, or name the port that it leads to (receive)",
    )


# Histograms ---------------------------------------------------------------------------------------


def spread(frame: TrafficFrame) -> list[tuple[int, ModelFrame]]:
    """Delays from 5000 to 5999 ticks, all of them as often."""
    return [(5000 + 7 * frame.sequence % 1000, frame)]


def check_percentiles(result: TrafficResult, delays_ns: list[int]) -> None:
    for row in result.rows:
        latency = row.latency
        assert latency and (latency.least_ns, latency.most_ns) == (min(delays_ns), max(delays_ns))
        assert latency.cells.total == len(delays_ns)
        for percent, bounds in ((50, latency.p50), (99, latency.p99), (99.9, latency.p99_9)):
            true = np.sort(delays_ns)[int(np.ceil(percent * len(delays_ns) / 100)) - 1]
            assert bounds and bounds.least <= true <= bounds.most


def test_histograms_go_to_where_the_delays_are_and_lose_none(make: MakeProbe) -> None:
    probe, model, _ = make(some(spread))
    stream = replace(FIXED, count=1000, interval=Interval(pps=100_000))
    result = probe.send([stream]).result()
    delays_ns = [8 * (5000 + 7 * number % 1000) for number in range(1000)]
    check_percentiles(result, delays_ns)
    median = result["fixed"].latency and result["fixed"].latency.p50
    assert median and median.error <= 512  # Of 8000 ns: 46 bins, with room, and what came before these were placed.
    assert model.values["port1_measure_delay_shift"] in (8, 9)


def test_histograms_follow_delays_that_move(make: MakeProbe) -> None:
    ramp = [300 + 20 * number for number in range(1000)]
    probe, model, _ = make(some(lambda frame: [(ramp[frame.sequence], frame)]))
    stream = replace(FIXED, count=1000, interval=Interval(pps=100_000))
    sending = probe.send([stream])
    first = model.values["port1_measure_delay_shift"]
    result = sending.result()
    assert model.values["port1_measure_delay_shift"] > first
    check_percentiles(result, [8 * delay for delay in ramp])


def test_a_range_that_is_given_stays_and_says_what_lies_outside(make: MakeProbe) -> None:
    probe, model, _ = make(some(spread))
    stream = replace(FIXED, count=1000, interval=Interval(pps=100_000))
    result = probe.send([stream], latency_range_ns=(40_000, 45_000)).result()
    assert (model.values["port1_measure_delay_origin"], model.values["port1_measure_delay_shift"]) == (39_936, 7)
    delays_ns = [8 * (5000 + 7 * number % 1000) for number in range(1000)]
    check_percentiles(result, delays_ns)
    outside = sum(delay >= 39_936 + 46 * 128 for delay in delays_ns)
    assert result.notes == (
        f"stream 'fixed': {outside} of 1000 delays are outside of the range that was given; percentiles there reach to the "
        f"extremes",
    )


def test_a_bin_that_was_full_leaves_no_percentiles(make: MakeProbe) -> None:
    probe, model, _ = make()
    model.meters[1].bin_limit = 30
    result = probe.send([FIXED]).result()
    latency = result["fixed"].latency
    assert latency and latency.mean_ns == DELAY_NS and latency.p50 is latency.p99 is latency.p99_9 is None
    assert (result.is_complete, result.notes) == (
        False,
        ("port 1: a bin of a histogram was full, so there are no percentiles",),
    )


# What the network does ----------------------------------------------------------------------------


def test_lost_doubled_and_reordered_frames_are_counted_exactly(make: MakeProbe) -> None:
    def hostile(frame: TrafficFrame) -> list[tuple[int, ModelFrame]]:
        if frame.sequence % 10 == 9:
            return []
        if frame.sequence % 10 == 5:
            return [(DELAY_TICKS, frame), (DELAY_TICKS + 100, frame)]
        return [(DELAY_TICKS + 20_000 if frame.sequence % 10 == 2 else DELAY_TICKS, frame)]

    probe, _, _ = make(some(hostile))
    stream = replace(FIXED, count=400)
    row = probe.send([stream]).result()["fixed"]
    assert (row.sent, row.received, row.lost, row.duplicated, row.reordered) == (400, 400, 40, 40, 40)
    assert row.loss_ratio == 0.1


def test_the_last_frames_are_lost_when_they_have_not_come_in_time(make: MakeProbe) -> None:
    probe, _, link = make(some(lambda frame: [(DELAY_TICKS, frame)] * (frame.sequence < 30)))
    result = probe.send([FIXED]).result()
    assert (result["fixed"].received, result["fixed"].lost) == (30, 10)
    assert sum(link.waits[-30:]) >= link.arrival_timeout_s
    assert result.is_complete


def test_bit_errors_are_counted_apart_by_the_fcs(make: MakeProbe) -> None:
    def flip(frame: TrafficFrame) -> list[tuple[int, ModelFrame]]:
        wrong = replace(frame, bit_errors=frame.sequence % 3)
        return [(DELAY_TICKS, damaged(wrong) if frame.sequence % 10 == 0 else wrong)]

    probe, _, _ = make(some(flip))
    checked = Stream("checked", 1, Fixed(100), Interval(pps=20_000), 100, fill="prbs")
    result = probe.send([checked, replace(FIXED, stream_id=2)]).result()
    row = result["checked"]
    errors = [number % 3 for number in range(100)]
    assert row.damaged_bit_errors == sum(errors[::10])
    assert row.bit_errors == sum(errors) - sum(errors[::10])
    assert row.checked_bits == 90 * 8 * (100 - 42 - 18)
    ratio = row.bit_error_ratio
    assert ratio and ratio.least < row.bit_errors / row.checked_bits < ratio.most
    assert (result["fixed"].bit_errors, result["fixed"].bit_error_ratio) == (None, None)
    assert result.notes == ("port 1: 14 frames with a bad FCS came, which are in no stream",)


def test_no_bit_error_is_a_bound(make: MakeProbe) -> None:
    probe, _, _ = make()
    row = probe.send([MIXED]).result()["mixed"]
    ratio = row.bit_error_ratio
    assert row.checked_bits and ratio and (ratio.least, ratio.most) == (0.0, 3.0 / row.checked_bits)


# Faults -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("port", [0, 1])
def test_link_down_at_the_start_sends_nothing(make: MakeProbe, port: int) -> None:
    probe, model, _ = make()
    model.values[f"port{port}_tx_link_up"] = 0
    assert (
        refusal(probe.send, [FIXED], error=ProbeError)
        == f"the link of port {port} is down: plug in its cable, and check the other end"
    )
    assert model.frames == []


@pytest.mark.parametrize("port", [0, 1])
def test_link_that_goes_down_ends_the_streams_and_what_came_is_there(make: MakeProbe, port: int) -> None:
    probe, model, _ = make()
    sending = probe.send([replace(FIXED, count=400)])
    before = sending.look().rows[0].sent
    model.values[f"port{port}_tx_link_up"] = model.values[f"port{port}_rx_link_up"] = 0
    with pytest.raises(ProbeError) as error:
        sending.wait()
    assert str(error.value).startswith(f"the link of port {port} went down while streams ran (")
    assert str(error.value).endswith("plug in its cable, and send again")
    assert model.values["port0_tx_state"] == TransmitState.IDLE
    row = sending.result()["fixed"]
    assert before <= row.sent < 400 and row.received is not None and row.received <= row.sent


def test_an_interrupt_stops_the_streams_and_gives_what_had_come(make: MakeProbe) -> None:
    def interrupt(look: TrafficLook) -> None:
        if look.rows[0].sent > 20:
            raise Interrupted

    probe, model, link = make()
    with pytest.raises(Interrupted) as end:
        probe.send([ENDLESS], seconds=1.0).wait(interrupt)
    (result,) = end.value.results
    sent = result["endless"].sent
    model.advance(10**6)
    assert len(model.frames) == sent == result["endless"].received and link.silences[-1] == 0
    assert (result.end, result.is_complete) == ("interrupted", False)
    assert result.notes == ("interrupted: the streams were stopped before their end",)


def test_a_stream_that_was_stopped_in_mid_frame_has_sent_it_whole(make: MakeProbe) -> None:
    probe, model, _ = make()
    sending = probe.send([Stream("long", 1, Fixed(9000))])
    sending.stop()
    result = sending.result()
    assert (result["long"].lost, result["long"].sent) == (0, len(model.frames))


def test_what_was_left_running_is_stopped_and_the_result_says_so(make: MakeProbe) -> None:
    probe, _, link = make()
    probe.send([ENDLESS], detach=True)
    probe.close()
    later = Probe(link, steal=True)
    few = Stream("few", 1, Fixed(64), count=3)
    said = "port 0: what was left running there was stopped"
    assert [said in later.send([few]).result().notes for _ in range(2)] == [True, False]


def test_what_another_host_left_running_is_refused_by_its_name_and_goes_on(
    make: MakeProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after others have had the probe meanwhile, for another port."""
    name = "a@host (pid 1) since 2026-11-26 19:00:00 UTC"
    monkeypatch.setattr(lease, "name_of_this_process", lambda: name)
    probe, model, link = make()
    probe.send([ENDLESS], detach=True)
    probe.close()
    monkeypatch.undo()
    few = Stream("few", 1, Fixed(64), count=3)
    for _ in range(2):
        with Probe(link) as later:
            assert later.send([replace(few, port=1)]).result()["few"].sent == 3
            with pytest.raises(BusyError) as busy:
                later.send([few])
        assert re.fullmatch(
            rf"port 0 sends what was left running there, [0-9,]+ frames so far, by {re.escape(name)}: wait until it is done, "
            "use another port, or end it with --steal \\(steal=True\\) or  liteprobe stop --port 0",
            str(busy.value),
        )
    sent = len(model.frames)
    model.advance(10**6)
    assert len(model.frames) > sent


def test_streams_end_with_the_lease_unless_they_are_detached(make: MakeProbe) -> None:
    for detach, is_active in ((False, False), (True, True)):
        probe, model, link = make()
        probe.send([ENDLESS], detach=detach)
        probe.close()
        sent = len(model.frames)
        model.advance(10**6)
        assert (len(model.frames) > sent) == is_active
        later = Probe(link)
        found = later.traffic()
        assert [(one.port, one.number, one.stream_id, one.is_active, one.is_endless) for one in found] == [
            (0, 0, 3, is_active, True)
        ]
        assert found[0].is_attached != detach
        assert found[0].sent == len(model.frames) or is_active
        assert later.stop(0) == is_active
        assert [one.is_active for one in later.traffic()] == [False]


def test_a_second_host_sees_streams_that_are_not_its_own_but_cannot_stop_them(make: MakeProbe) -> None:
    probe, _, link = make()
    probe.send([ENDLESS])
    other = Probe(link)
    assert [one.stream_id for one in other.traffic() if one.is_active] == [3]
    assert "the probe is in use by" in refusal(other.stop, 0, error=BusyError)


def test_streams_whose_ports_were_given_something_else_are_not_taken_for_it(make: MakeProbe) -> None:
    probe, model, _ = make()
    first = probe.send([ENDLESS])
    probe.wait(0.001)
    second = probe.send([FIXED])
    for act in (first.look, first.wait, first.result, lambda: first.stop("endless"), lambda: first.start("endless")):
        assert refusal(act) == (
            "port 0 was reset or given something else since, so what came of these streams is gone: take the result before"
        )
    first.stop()
    assert model.values["port0_tx_state"] == TransmitState.RUNNING
    result = second.result()
    assert (result["fixed"].sent, result["fixed"].received) == (40, 40)
    probe.launch(TrainProgram(60, count=10))
    assert second.result() is result  # It was taken before.
    third = probe.send([FIXED])
    third.stop()
    probe.launch(TrainProgram(60, count=10))
    assert "port 0 was reset or given something else since" in refusal(third.result)


def test_streams_of_different_ports_run_beside_each_other(make: MakeProbe) -> None:
    probe, _, _ = make()
    first, second = probe.send([FIXED]), probe.send([replace(FIXED, port=1)])
    assert [one.result()["fixed"].received for one in (first, second)] == [40, 40]


def test_a_stream_without_an_end_that_ended_all_the_same_is_said(make: MakeProbe) -> None:
    probe, _, _ = make()
    sending = probe.send([ENDLESS, FIXED])
    probe.wait(0.005)
    probe.ports[0].transmit.stop()  # As a console would.
    probe.wait(0.001)
    sending.look()
    result = sending.result()
    assert (result.end, result.is_complete) == ("sent", False)
    assert result.notes == (
        "stream 'endless': it has no end, but ended: was its port stopped from the console of the probe, or the probe reset?",
    )


def test_streams_of_a_probe_that_was_reset_have_no_result(make: MakeProbe, monkeypatch: pytest.MonkeyPatch) -> None:
    probe, _, _ = make()
    sending = probe.send([FIXED])
    with monkeypatch.context() as patch:
        patch.setattr(probe.registers, "write", lambda name, value: None)  # The model can't be reset.
        probe.reset()
    assert "port 0 was reset or given something else since" in refusal(sending.result)


def test_what_is_detached_ends_by_itself(make: MakeProbe) -> None:
    probe, model, _ = make()
    probe.send([FIXED], detach=True)
    model.advance(10**6)
    assert (model.values["port0_tx_state"], len(model.frames)) == (TransmitState.IDLE, 40)


def test_a_probe_whose_ports_do_not_start_is_said(make: MakeProbe, monkeypatch: pytest.MonkeyPatch) -> None:
    probe, model, _ = make()
    monkeypatch.setattr(model, "_start", lambda ports: None)
    assert refusal(probe.send([FIXED]).look, error=ProbeError) == (
        "the probe did not start the streams: was a port stopped from its console? Send them again"
    )


def test_a_program_that_was_written_while_it_ran_is_said(make: MakeProbe) -> None:
    probe, model, _ = make()
    sending = probe.send([FIXED])
    model.values |= {"port0_tx_disturbed": 3, "port0_tx_underruns": 2}
    assert sending.result().notes == (
        "port 0: 2 frames were built too late for the line",
        "port 0: what it sends was written 3 times while it ran, so what was sent is not what was asked for: let one host at "
        "a time use the port",
    )


def test_late_frames_are_said_of_a_stream_that_nothing_delays(make: MakeProbe) -> None:
    probe, model, _ = make()
    sending = probe.send([FIXED])
    model.show(SENT_BASE + 8, [3, 17])
    result = sending.result()
    assert (result["fixed"].late, result["fixed"].first_late) == (3, 17)
    said = "frames left late, though the line was free, number {} first: report this"
    assert result.notes == (f"stream 'fixed': 3 of 40 {said.format(17)}",)
    assert (result["fixed"].waited, result["fixed"].delayed, result.count("late"), result.count("waited")) == (
        0,
        3,
        3,
        0,
    )


def test_frames_that_wait_are_told_from_late_ones(make: MakeProbe, monkeypatch: pytest.MonkeyPatch) -> None:
    streams = [replace(FIXED, count=None), Stream("other", 5, Fixed(1514), Interval(share=0.5))]
    for is_late in (0, 2):
        probe, model, _ = make()
        sending = probe.send(streams)
        probe.wait(2e-3)
        sending.stop()
        sent = [count.sent for count in sending._plan.senders[0].transmit.counts(2)]
        wanted = traffic.schedule(streams, sum(sent))
        waits = [int((wanted["late"] & (wanted["stream"] == number)).sum()) for number in (0, 1)]
        model.show(SENT_BASE + 8, [waits[0] + is_late, 0])
        result = sending.result()
        assert [(row.waited, row.late) for row in result.rows] == [(waits[0], is_late), (waits[1], 0)]
        assert waits[0] > 10 and len(result.notes) == bool(is_late)
    probe, model, _ = make()
    monkeypatch.setattr("liteprobe.host.traffic.due.PLANNED_MOST", 10)
    sending = probe.send([replace(one, count=50) for one in streams])
    result = sending.result()
    row = next(row for row in result.rows if row.delayed)
    assert (row.late, row.waited, result.count("late"), result.to_dict()["streams"][0]["late"]) == (None,) * 4
    assert any("there are too many" in note for note in result.notes)


@pytest.mark.parametrize(
    ("streams", "options", "message"),
    [
        ([], {}, "there is no stream to send: give one or more"),
        ([replace(FIXED, port=2)], {}, "there is no transmit port 2: give 0 to 1"),
        ([FIXED], {"receive": 5}, "there is no receive port 5: give 0 to 1"),
        ([FIXED], {"seconds": 0.0}, "0 seconds are out of range: give more than 0"),
        (
            [ENDLESS],
            {"seconds": 1.0, "detach": True},
            "no host is left to stop detached streams after a duration: give each a count, or stop them later",
        ),
        ([FIXED, replace(FIXED, port=1)], {}, "2 streams have the name 'fixed': give each a name of its own"),
        (
            [FIXED, replace(MIXED, stream_id=32)],
            {},
            "stream ids 1 to 32 come to one port, which measures 31 in a row: give ids that are closer to one another",
        ),
        (
            [replace(FIXED, interval=Interval(share=0.7)), replace(MIXED, interval=Interval(share=0.4))],
            {},
            "the streams of port 0 add up to 110 % of the line (fixed 70 %, mixed 40 %): lower the rates",
        ),
        (
            [FIXED],
            {"latency_range_ns": (0, 10**12)},
            "delays from 0 to 1000000000000 ns are too far apart for a histogram: give a range of up to 98784247808 ns",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    make: MakeProbe, streams: list[Stream], options: dict[str, object], message: str
) -> None:
    probe, model, _ = make()
    before = dict(model.values)
    with pytest.raises(UsageError) as error:
        probe.send(streams, **options)  # type: ignore[arg-type]
    assert str(error.value) == message
    assert model.values == before


def test_streams_without_an_end_are_not_waited_for(make: MakeProbe) -> None:
    probe, _, _ = make()
    sending = probe.send([FIXED, ENDLESS])
    message = "streams without an end ('endless') are not waited for: call stop, or give seconds"
    for wait in (sending.wait, sending.result):
        assert refusal(wait) == message
    sending.stop("endless")
    assert sending.result()["fixed"].sent == 40
    assert "there is no stream 'x': give one of 'fixed', 'endless'" in refusal(sending.stop, "x")


def test_a_probe_built_without_its_streams_says_that_another_build_of_it_may_have_them(tmp_path: Path) -> None:
    """As the tester of an i9 is, by default: its own preset is not the way out by itself."""
    model = TrafficProbe()
    model.values["probe_parts"] = int(PRESETS["generator"] & ~Part.STREAMS)
    with Probe(FakeLink(model, tmp_path)) as probe:
        assert probe.info()["preset"] == "generator"
        with pytest.raises(UsageError) as error:
            probe.send([FIXED])
    assert str(error.value).endswith(
        "was built without the part streams: build and load one with --preset tester, or a generator with --traffic, where "
        "its board has room"
    )


def test_a_probe_that_only_sends_trains_says_which_build_sends_streams(tmp_path: Path) -> None:
    probe = Probe(FakeLink(ModelProbe(), tmp_path))
    for act in (lambda: probe.send([FIXED]), probe.traffic):
        assert "without the part streams: build and load one with --preset generator or" in refusal(act)


# In band ------------------------------------------------------------------------------------------


def test_in_band_streams_that_leave_no_room_are_announced_and_not_looked_at(
    make: MakeProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe, model, link = make()
    link.is_in_band = True
    read, held = model.read, []

    def answer(address: int) -> int:
        """Leave a line that is full when it is free again."""
        if model.values["port0_tx_state"] == TransmitState.RUNNING:
            held.append(address)
            while model.values["port0_tx_state"] == TransmitState.RUNNING and model.values["port0_tx_streams_active"]:
                model.advance(1000)
        model.values["port0_tx_management_sent"] += 1
        return read(address)

    monkeypatch.setattr(model, "read", answer)
    full = Stream("full", 1, Fixed(60), count=2000)
    result = probe.send([full]).result()
    assert (result["full"].sent, result["full"].lost) == (2000, 0)
    assert 2000 * 672e-9 < link.silences[0] < 2000 * 672e-9 * 1.2 + 2e-3
    assert held[0] == probe.registers.register("probe_start").address
    assert refusal(probe.send, [replace(full, count=None)]) == (
        "these streams leave no room for answers on port 0, whose line the host shares, so they could not be stopped: give "
        "each a count, or all a time, or a lower rate"
    )
    result = probe.send([replace(full, count=None)], seconds=0.001).result()
    assert (result["full"].sent, result["full"].lost, result.end) == (-(-125_000 // 84), 0, "stopped")


def test_damaged_frames_are_no_arrivals(make: MakeProbe) -> None:
    probe, _, _ = make(some(lambda frame: [(DELAY_TICKS, replace(frame, flags=RecordFlag.FCS_ERROR))]))
    result = probe.send([FIXED]).result()
    assert (result["fixed"].received, result["fixed"].lost, result["fixed"].latency) == (0, 40, None)
