# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Train programs: ranges, and times in ticks, exact to 2^-32 of a tick."""

from fractions import Fraction

import pytest

from liteprobe.host.base.errors import UsageError
from liteprobe.host.traffic.headers import Headers
from liteprobe.host.traffic.train import TrainProgram, check, gap_for, interval_ns_for_rate, schedule

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
        ({"start_time_ns": -1}, "start time -1 ns is out of range"),
        ({"start_time_ns": 2**64}, "start time 18446744073709551616 ns is out of range"),
    ],
)
def test_program_out_of_range_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as error:
        check(TrainProgram(**({"length": 60, "count": 1} | fields)))  # type: ignore[arg-type]
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
    check(program)


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
    with pytest.raises(UsageError, match=r"rate .* b/s is out of range: give a rate above 0, up to 1G"):
        interval_ns_for_rate(60, rate_bps)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            TrainProgram(60, 2, interval_ns=671.99),
            "interval 671.99 ns is above the line rate for length 60: give 672 ns",
        ),
        (TrainProgram(1514, 2, interval_ns=0.0), "interval 0 ns is above the line rate for length 1514: give 12304 ns"),
        (TrainProgram(60, 2, interval_ns=-1.0), "interval -1.0 ns is out of range: give 0 or more"),
        (TrainProgram(60, 2, interval_ns=float("nan")), "interval nan ns is out of range"),
        (TrainProgram(60, 2, interval_ns=float("inf")), "interval inf ns is out of range"),
        (TrainProgram(60, 2, gap_ns=-0.5), "gap -0.5 ns is out of range"),
        (TrainProgram(60, 2, interval_ns=8.0 * 2**32), "an interval or gap is above 34.360 s"),
        (TrainProgram(60, 2, gap_ns=8.0 * 2**32), "an interval or gap is above 34.360 s"),
    ],
)
def test_time_that_cannot_be_is_refused(program: TrainProgram, message: str) -> None:
    with pytest.raises(UsageError) as error:
        schedule(program, NOMINAL)
    assert str(error.value).startswith(message)


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
