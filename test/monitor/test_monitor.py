# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A monitor shows of a port what came to it, on screens of all sizes."""

import io
import math
import re
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from liteprobe.cores.formats import BINS, BinKind, Part, RecordFlag, StampPlace, UnifiedFlag
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.capture.ring import ChannelState
from liteprobe.host.cli.commands.monitor import fitting
from liteprobe.host.measure.monitor import BinSetting, Monitor, Rate
from liteprobe.host.probe import Probe
from liteprobe.host.serve.poll import Look, Poller, Worst
from liteprobe.host.traffic.train import TrainProgram
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.drivers.tools.refusals import refusal
from liteprobe.sim.models.probe.meters import PLACES_BASE, GeneratorProbe, MonitorProbe
from liteprobe.sim.models.probe.trains import PORT_STRIDE, ModelProbe
from liteprobe.sim.models.receive.meters import MeasuredFrame

MakeMonitor = Callable[[], tuple[Monitor, MonitorProbe]]
START = 1_700_000_000_000_000_000


@pytest.fixture
def make(tmp_path: Path) -> MakeMonitor:
    def make_monitor() -> tuple[Monitor, MonitorProbe]:
        model = MonitorProbe()
        return Monitor(Probe(FakeLink(model, tmp_path)), 1), model

    return make_monitor


def bring(model: MonitorProbe, delays: list[int], stream_id: int = 3, lost: tuple[int, ...] = ()) -> None:
    """Bring frames of 100 octets to port 1, a microsecond apart, with those delays."""
    sequences = [n for n in range(len(delays) + len(lost)) if n not in lost]
    for number, (sequence, delay) in enumerate(zip(sequences, delays, strict=True)):
        stamp = START + 1000 * number
        model.arrive(1, MeasuredFrame(stamp, 100, 0, True, stream_id, sequence, stamp - delay))


def test_a_stream_shows_counts_mean_and_deviation_of_its_delays(make: MakeMonitor) -> None:
    monitor, model = make()
    monitor.watch(stream_base=2)
    delays = [500, 700, -300, 1_000_000, 0]
    bring(model, delays, lost=(1, 3, 4))
    found = monitor.read()
    stream = found.streams[2]
    assert (stream.slot, stream.stream_id, stream.frames, stream.octets) == (2, 3, 5, 500)
    assert (stream.first_stamp_ns, stream.last_stamp_ns) == (START, START + 4000)
    assert (stream.lost, stream.expected, stream.duplicated, stream.reordered, stream.beyond_window) == (3, 8, 0, 0, 0)
    assert (stream.delay_min_ns, stream.delay_max_ns) == (-300, 1_000_000)
    assert stream.delay_mean_ns == statistics.mean(delays)
    assert stream.delay_std_ns == pytest.approx(statistics.stdev(delays), rel=1e-12)
    assert stream.loss_ratio == 3 / 8
    assert [other.frames for other in found.streams] == [0, 0, 5, 0, 0, 0, 0, 0]
    assert [other.stream_id for other in found.streams] == [None, 2, 3, 4, 5, 6, 7, 8]


def test_counters_tell_every_frame_from_those_of_streams(make: MakeMonitor) -> None:
    monitor, model = make()
    bring(model, [1], stream_id=7)
    model.arrive(1, MeasuredFrame(START, 60))
    model.arrive(1, MeasuredFrame(START + 5, 61, int(UnifiedFlag.FCS_ERROR), True))
    found = monitor.read()
    assert found.counters == {
        "frames": 3,
        "octets": 221,
        "first_stamp": START,
        "last_stamp": START + 5,
        "other_streams": 1,
    }


def test_a_slot_without_frames_has_no_delay(make: MakeMonitor) -> None:
    stream = make()[0].read().streams[1]
    assert math.isnan(stream.delay_mean_ns) and math.isnan(stream.delay_std_ns) and math.isnan(stream.loss_ratio)


def test_clocks_that_disagree_by_years_still_have_a_mean(make: MakeMonitor) -> None:
    monitor, model = make()
    bring(model, [START + n for n in range(40)])
    stream = monitor.read().streams[4]
    assert stream.delay_mean_ns == pytest.approx(START + 19.5, abs=256)  # A float of that size.
    assert stream.delay_sum_ns != sum(START + n for n in range(40))  # It wrapped.
    assert math.isnan(stream.delay_std_ns)


def test_bins_count_every_value_once_and_their_edges_say_where(make: MakeMonitor) -> None:
    monitor, model = make()
    monitor.set_bins({BinKind.DELAY: BinSetting(-512, 6), BinKind.LENGTH: BinSetting(64, 5)})
    rng = np.random.default_rng(3)
    delays = rng.integers(-1000, 4000, 300)
    bring(model, [int(delay) for delay in delays])
    found = monitor.read()
    delay = found.histograms[4][BinKind.DELAY]
    assert delay.unit == "ns"
    assert delay.edges.tolist() == [-512 + 64 * n for n in range(BINS[BinKind.DELAY].regular + 1)]
    assert delay.counts.tolist() == np.histogram(delays, delay.edges)[0].tolist()
    assert (delay.below, delay.above) == ((delays < -512).sum(), (delays >= delay.edges[-1]).sum())
    assert delay.total == 300 == found.streams[4].frames
    assert found.histograms[0][BinKind.ARRIVAL].total == 299
    assert found.histograms[0][BinKind.LENGTH].counts[1] == 300
    assert monitor.bins()[BinKind.DELAY] == BinSetting(-512, 6)


@pytest.mark.parametrize(
    ("kind", "setting", "message"),
    [
        (BinKind.LENGTH, BinSetting(-1, 0), "bins of length can't begin at -1 octets: give 0 to 65535"),
        (BinKind.ARRIVAL, BinSetting(1 << 32, 0), "bins of arrival can't begin at 4294967296 ns: give 0 to 4294967295"),
        (BinKind.DELAY, BinSetting(0, 32), r"bins of 2\^32 ns: give a shift of 0 to 31"),
    ],
)
def test_bins_that_no_register_holds_are_refused(
    make: MakeMonitor, kind: BinKind, setting: BinSetting, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        make()[0].set_bins({kind: setting})


def test_new_bins_begin_empty(make: MakeMonitor) -> None:
    monitor, model = make()
    bring(model, [1, 2, 3])
    monitor.set_bins({BinKind.DELAY: BinSetting(0, 1)})
    found = monitor.read()
    assert (found.counters["frames"], found.histograms[0][BinKind.DELAY].total) == (0, 0)


def test_rates_are_of_the_last_interval_with_and_without_the_line_overhead(make: MakeMonitor) -> None:
    monitor, model = make()
    assert monitor.read().rate is None
    monitor.set_rate_interval(250_000_000)
    model.end_interval([7, 372_024], [700, 372_024 * 60])
    rate = monitor.read().rate
    assert rate == Rate(1, 250_000_000, True, 372_024, 372_024 * 60)
    assert rate.frames_per_s == 1_488_096
    assert rate.bits_per_s == 1_488_096 * 64 * 8
    assert rate.line_bits_per_s == 1_488_096 * 84 * 8


def test_an_interval_that_the_clock_cut_has_no_rate(make: MakeMonitor) -> None:
    monitor, model = make()
    model.end_interval([1, 1], [60, 60], is_whole=False)
    rate = monitor.rate()
    assert rate and math.isnan(rate.frames_per_s) and math.isnan(rate.bits_per_s) and math.isnan(rate.line_bits_per_s)


def test_rates_that_change_while_they_are_read_are_read_again(
    make: MakeMonitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor, model = make()
    model.end_interval([1, 1], [60, 60])
    many, calls = monitor._registers.read_many, []

    def meanwhile(names: list[str]) -> dict[str, int]:
        found = many(names)
        if len(calls) < limit:
            calls.append(1)
            model.end_interval([2, 2 + len(calls)], [120, 120])
        return found

    monkeypatch.setattr(monitor._registers, "read_many", meanwhile)
    limit = 2
    rate = monitor.rate()
    assert rate and (rate.number, rate.frames) == (3, 4)
    limit = 100
    assert "shorter than the time to read it" in refusal(monitor.rate, error=ProbeError)


@pytest.mark.parametrize("interval_ns", [999_999, 1 << 32])
def test_an_interval_that_cant_be_is_refused(make: MakeMonitor, interval_ns: int) -> None:
    with pytest.raises(UsageError, match=f"no rates over {interval_ns} ns: give 1000000 to 4294967295"):
        make()[0].set_rate_interval(interval_ns)


def test_a_probe_without_meters_is_refused_and_so_is_a_port_that_isnt_there(tmp_path: Path) -> None:
    probe = Probe(FakeLink(ModelProbe(), tmp_path))
    assert "measures trains only" in refusal(Monitor, probe, 0)
    assert "no port 2: give 0 to 1" in refusal(Monitor, probe, 2)


# Fills and fields ---------------------------------------------------------------------------------


@pytest.fixture
def generator(tmp_path: Path) -> tuple[Probe, GeneratorProbe]:
    """A probe of preset generator, and what it is in truth."""
    model = GeneratorProbe()
    return Probe(FakeLink(model, tmp_path)), model


def test_bit_errors_are_shown_of_streams_whose_fill_is_checked(generator: tuple[Probe, GeneratorProbe]) -> None:
    probe, model = generator
    monitor = Monitor(probe, 1)
    monitor.watch(stream_base=5, prbs=[1, 3])
    for stream_id, errors, flags in [(5, 3, 0), (5, 4, 0), (6, 7, 0), (7, 9, int(RecordFlag.FCS_ERROR))]:
        model.arrive(1, MeasuredFrame(START, 100, flags, True, stream_id, 0, START, True, errors))
    streams = probe.measure(1).streams
    found = [(stream.bit_errors, stream.damaged_bit_errors, stream.frames) for stream in streams[:5]]
    assert found == [(None, None, 0), (7, 0, 2), (None, None, 1), (0, 9, 0), (None, None, 0)]
    monitor.watch(stream_base=5)
    assert monitor.prbs_slots == set()


def test_places_are_written_by_slot_and_those_of_others_are_cleared(generator: tuple[Probe, GeneratorProbe]) -> None:
    probe, model = generator
    monitor = Monitor(probe, 1)
    first = PLACES_BASE + PORT_STRIDE
    monitor.watch(places={0: StampPlace(18, 2), 7: StampPlace(15, 3, 4, is_nibble=True)})
    assert [model.read(first + 4 * slot) for slot in range(8)] == [0x10112, 0, 0, 0, 0, 0, 0, 0x1A20F]
    monitor.watch(places={1: StampPlace(255, 1, 14)})
    assert [model.read(first + 4 * slot) for slot in range(8)] == [0, 0x170FF, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prbs": [8]}, "port 1 has no slot 8: give 0 to 7"),
        ({"places": {-1: StampPlace(18, 2)}}, "port 1 has no slot -1: give 0 to 7"),
        ({"places": {1: StampPlace(18, 9)}}, "a stamp can't have 9 octets: give 1 to 8"),
        ({"places": {1: StampPlace(250, 7)}}, "can't lie in octets 250 to 256: give places within 256 octets"),
        ({"places": {1: StampPlace(18, 8, 16)}}, "a stamp can't be shifted by 16 nibbles: give 0 to 15"),
    ],
)
def test_a_slot_or_a_place_that_cant_be_is_refused(
    generator: tuple[Probe, GeneratorProbe], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        Monitor(generator[0], 1).watch(**settings)


def test_a_monitor_without_fields_says_which_presets_have_them(make: MakeMonitor) -> None:
    monitor, model = make()
    bring(model, [1, 2, 3])
    assert monitor.read().streams[4].bit_errors is None
    for settings in ({"prbs": [1]}, {"places": {1: StampPlace(18, 2)}}):
        with pytest.raises(UsageError, match="checks no fill .* with --preset generator or tester"):
            monitor.watch(**settings)


def test_a_train_of_a_generator_is_measured_without_records(generator: tuple[Probe, GeneratorProbe]) -> None:
    probe, model = generator
    model.bit_errors = 2
    result = probe.train(TrainProgram(100, 50, repeats=2, stream_id=9, fill="prbs"), receive=0)
    assert (result.sent, result.late, len(result.records), result.complete) == (100, 0, 0, False)
    assert (result.counters["frames"], result.counters["lost"], result.counters["records_lost"]) == (100, 0, 0)
    assert (result.counters["bit_errors"], result.counters["all_frames"], result.program.gap_ns) == (200, 100, 0)
    assert (result.counters["delay_min"], result.counters["delay_max"]) == (80, 80)
    assert "this probe keeps no records of frames: measured by accumulators" in result.notes
    assert not any("too many for records" in note for note in result.notes)


def test_a_probe_that_counts_no_rates_says_so(generator: tuple[Probe, GeneratorProbe]) -> None:
    found = generator[0].measure(0)
    assert (found.rate, found.has_rates) == (None, False)
    with pytest.raises(UsageError, match="counts no rates: build and load one with --preset monitor or tester"):
        Monitor(generator[0], 0).set_rate_interval(1_000_000)


def test_a_part_that_is_missing_is_named_with_the_presets_that_have_it(
    generator: tuple[Probe, GeneratorProbe], tmp_path: Path
) -> None:
    train = Probe(FakeLink(ModelProbe(), tmp_path))
    with pytest.raises(UsageError, match="part monitor or measure: .* --preset monitor or generator or tester"):
        train.measure(0)
    assert "part record: build and load one with --preset train" in refusal(generator[0].need, Part.RECORD)


# Screens ------------------------------------------------------------------------------------------


FIRST = 1_800_000_000_000_000_000
CAUSES = ("fcs_errors", "length_errors", "runts", "giants", "overflows", "unclassified", "headers_lost", "damaged")


@pytest.fixture
def look(tmp_path: Path) -> Look:
    """Two ports with three streams each, large counts, values outside of bins, and a ring."""
    model = MonitorProbe()
    probe = Probe(FakeLink(model, tmp_path))
    for port in range(2):
        monitor = Monitor(probe, port)
        monitor.watch(stream_base=3)
        monitor.set_bins({kind: BinSetting(0, 4) for kind in BinKind})
        for number in range(300):
            stamp = FIRST + 700 * number
            sent = stamp - 500 - number
            model.arrive(port, MeasuredFrame(stamp, 60 + number, 0, True, 3 + number % 3, number // 3, sent))
    found = Poller(probe).look()
    rate = Rate(9, 10**9, True, 1_488_095, 89_285_700)
    ports = [replace(port, rate=rate) for port in found.ports]
    counts = {"all_frames": 3_857_142_240_000, "all_octets": 231_428_534_400_000}
    events = [counts | {name: 123_456 * number for number, name in enumerate(CAUSES)} for _ in ports]
    return replace(found, ports=ports, events=events, channels={0: ChannelState(0, 0, 40, 7, 64)})


def shown(look: Look, width: int, height: int, page: int = 0, has_help: bool = False) -> list[str]:
    worst, screen = Worst(since="14:00:00"), io.StringIO()
    worst.take(look)
    console = Console(width=width, height=height, file=screen)
    history = {0: [1e9] * 16, 1: [5e8, 1e9] * 8}
    console.print(fitting(look, history, worst, 1.5, has_help, page), height=height)
    return [line.rstrip() for line in screen.getvalue().rstrip().splitlines()]


@pytest.mark.parametrize(
    ("width", "height"),
    [(80, 24), (40, 16), *(pytest.param(*size, marks=pytest.mark.full) for size in ((40, 24), (60, 30), (140, 24)))],
)
def test_each_page_fits_and_together_they_have_all(look: Look, width: int, height: int) -> None:
    first = shown(look, width, height)
    pages = int(re.search(r"page 1/(\d+)", first[0])[1])  # type: ignore[index]
    screens = [shown(look, width, height, page) for page in range(pages)]
    assert [f"page {number + 1}/{pages}" in lines[0] for number, lines in enumerate(screens)] == [True] * pages
    for lines in screens[1:]:
        assert len(lines) <= height and max(map(len, lines)) <= width, "\n".join(lines)
    assert shown(look, width, height, pages) == first
    whole = re.sub(r"[\s│]+", " ", "\n".join("\n".join(lines) for lines in screens))
    for port in range(2):
        assert f"port {port} ─" in whole
    for number, name in enumerate(CAUSES):
        assert whole.count(f"{123_456 * number:,} {name.replace('_', ' ')}") >= 2, name
    for stream in (3, 4, 5):
        assert len(re.findall(rf" {stream}:? 100\b", whole)) == 2 and whole.count(f" {stream + 497}") >= 2, whole
    assert "…" not in whole
    assert whole.count("arrival") >= 4 and whole.count("below") == 6


@pytest.mark.parametrize(("width", "height"), [(40, 24), (80, 24)])
def test_first_page_of_two_ports_has_both_in_24_rows(look: Look, width: int, height: int) -> None:
    quiet = replace(look, events=[{**events, **dict.fromkeys(CAUSES, 0)} for events in look.events], channels={})
    screen = shown(quiet, width, height)
    assert len(screen) <= height and max(map(len, screen)) <= width, "\n".join(screen)
    text = "\n".join(screen)
    for words in (
        "port 0 ",
        "port 1 ",
        "1,000.000 Mb/s",
        "3,857,142,240,000 frames",
        "0 refused",
        "worst ",
        "3 streams",
    ):
        assert words in text, text
    assert text.count("arrival") == 2 and text.count("% out") >= 2


def test_a_high_terminal_has_all_at_once_and_no_pages(look: Look) -> None:
    text = "\n".join(shown(look, 100, 70))
    assert "page" not in text and "port 0" in text and "port 1" in text and "capture" in text
    assert "worst since" in text and "40/64 blocks, 40 at most" in text
    assert "choose bins anew" not in text and "choose bins anew" in "\n".join(shown(look, 100, 70, has_help=True))
