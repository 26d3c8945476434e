# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Faults while streams are sent, over a model of the probe: what is said, and what is left running."""

from dataclasses import replace
from pathlib import Path

import pytest

from liteprobe.cores.formats import PRESETS, Part, RecordFlag, TransmitState
from liteprobe.host.base.errors import BusyError, ProbeError, UsageError
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.probe import Probe
from liteprobe.host.run.figures import TrafficLook
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.lengths import Fixed
from liteprobe.host.traffic.stream import Stream
from liteprobe.host.traffic.train import TrainProgram
from liteprobe.sim.drivers.system.fake_link import DELAY_TICKS, ENDLESS, FIXED, MIXED, FakeLink, MakeProbe, maker, some
from liteprobe.sim.models.probe.streams import SENT_BASE, TrafficProbe
from liteprobe.sim.models.probe.trains import ModelProbe


@pytest.fixture
def make(tmp_path: Path) -> MakeProbe:
    return maker(tmp_path)


# Faults -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("port", [0, 1])
def test_link_down_at_the_start_sends_nothing(make: MakeProbe, port: int) -> None:
    probe, model, _ = make()
    model.values[f"port{port}_tx_link_up"] = 0
    with pytest.raises(ProbeError) as error:
        probe.send([FIXED])
    assert str(error.value) == f"the link of port {port} is down: plug in its cable, and check the other end"
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
    later = Probe(link)
    few = Stream("few", 1, Fixed(64), count=3)
    said = "port 0: what was left running there was stopped"
    assert [said in later.send([few]).result().notes for _ in range(2)] == [True, False]


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
    with pytest.raises(BusyError, match="the probe is in use by"):
        other.stop(0)


def test_streams_whose_ports_were_given_something_else_are_not_taken_for_it(make: MakeProbe) -> None:
    probe, model, _ = make()
    first = probe.send([ENDLESS])
    probe.wait(0.001)
    second = probe.send([FIXED])
    for act in (first.look, first.wait, first.result, lambda: first.stop("endless"), lambda: first.start("endless")):
        with pytest.raises(UsageError) as error:
            act()
        assert str(error.value) == (
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
    with pytest.raises(UsageError, match="port 0 was reset or given something else since"):
        third.result()


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
    with pytest.raises(UsageError, match="port 0 was reset or given something else since"):
        sending.result()


def test_what_is_detached_ends_by_itself(make: MakeProbe) -> None:
    probe, model, _ = make()
    probe.send([FIXED], detach=True)
    model.advance(10**6)
    assert (model.values["port0_tx_state"], len(model.frames)) == (TransmitState.IDLE, 40)


def test_a_probe_whose_ports_do_not_start_is_said(make: MakeProbe, monkeypatch: pytest.MonkeyPatch) -> None:
    probe, model, _ = make()
    monkeypatch.setattr(model, "_start", lambda ports: None)
    with pytest.raises(ProbeError) as error:
        probe.send([FIXED]).look()
    assert str(error.value) == (
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
    assert result.notes == ("stream 'fixed': 3 of 40 frames started after their tick, number 17 first",)
    pair = probe.send([replace(FIXED, count=5), replace(MIXED, count=5)])
    model.show(SENT_BASE + 8, [3, 2])
    assert pair.result().notes == ()  # They wait for each other.


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
            "nobody would be there to stop detached streams: give each a count, or stop them later",
        ),
        (
            [FIXED, replace(FIXED, port=1)],
            {},
            "2 streams have the name 'fixed': give each a name of its own",
        ),
        (
            [FIXED, replace(MIXED, stream_id=32)],
            {},
            "stream ids 1 to 32 come to one port, which measures 31 in a row: give ids that are no further apart",
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
        with pytest.raises(UsageError) as error:
            wait()
        assert str(error.value) == message
    sending.stop("endless")
    assert sending.result()["fixed"].sent == 40
    with pytest.raises(UsageError, match="there is no stream 'x': give one of 'fixed', 'endless'"):
        sending.stop("x")


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
        with pytest.raises(UsageError, match="without the part streams: build and load one with --preset generator or"):
            act()


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
    for stream, seconds in ((replace(full, count=None), None), (full, 1.0)):
        with pytest.raises(UsageError) as error:
            probe.send([stream], seconds=seconds)
        assert str(error.value) == (
            "these streams leave no room for answers on port 0, whose line the host shares, so nobody could stop them: give "
            "each a count and no seconds, or a lower rate"
        )


def test_damaged_frames_are_no_arrivals(make: MakeProbe) -> None:
    probe, _, _ = make(some(lambda frame: [(DELAY_TICKS, replace(frame, flags=RecordFlag.FCS_ERROR))]))
    result = probe.send([FIXED]).result()
    assert (result["fixed"].received, result["fixed"].lost, result["fixed"].latency) == (0, 40, None)
