# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The suite of RFC 2544 on devices of plain Python, whose throughput, buffer, latency and loss are known."""

import copy
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from liteprobe.host.base.errors import ExpectationError, ProbeError, UndecidedError, UsageError
from liteprobe.host.report import files, rfc2544_page
from liteprobe.host.suites.rfc2544 import SIZES, TESTS, Rfc2544, Rfc2544Request, Rfc2544Result, length_of
from liteprobe.host.suites.search import GOALS, METHODS, Goal, goal_of
from liteprobe.host.suites.trials import GROWTH_MOST, Journal, Trial
from liteprobe.host.traffic.headers import Headers
from liteprobe.host.traffic.lengths import IMIX, Lengths
from liteprobe.sim.drivers.suites.fake_probe import FakeProbe
from liteprobe.sim.models.forwarder import Device, Hostile, Lossy, Policer, Switch

SIX_TENTHS = Fraction(6, 10)
SHORT = Rfc2544Request(
    tests=("throughput",), sizes=("64",), goal=Goal(seconds=0.005), latency_s=0.005, latency_repeats=2, burst_s=0.005,
    burst_repeats=3, pause_s=0.001,
)  # fmt: skip
BOTH = ((0, 1), (1, 0))


def measured(device: Device, **changes: object) -> Rfc2544Result:
    """Run the suite, short, with some settings of its own, on a device that has seen nothing before."""
    return Rfc2544(FakeProbe(copy.deepcopy(device)), replace(SHORT, **changes)).run()  # type: ignore[arg-type]


# Throughput -------------------------------------------------------------------------------------


@pytest.mark.sample(3)
@pytest.mark.parametrize("search", METHODS)
@pytest.mark.parametrize("ways", [((0, 1),), BOTH])
@pytest.mark.parametrize(
    ("device", "size"),
    [
        (Switch(rate=SIX_TENTHS), "64"),
        (Switch(rate=SIX_TENTHS, queue=20_000), "1518"),
        (Switch(frames=400_000), "128"),
        (Switch(is_shared=True), "512"),
        (Switch(faults={508: Fraction(3, 10)}), "512"),
        (Policer(), "1024"),
        (Device(), "1280"),
    ],
)
def test_throughput_is_what_the_device_has(
    device: Device, size: str, ways: tuple[tuple[int, int], ...], search: str
) -> None:
    truth = float(device.truth(length_of(size).least, len(ways) > 1))
    seconds = 0.05 if isinstance(device, Policer) else 0.005  # Its bucket lets two frames of a trial pass.
    found = measured(device, sizes=(size,), ways=ways, search=search, goal=Goal(seconds=seconds)).sizes[0].throughput
    assert found is not None and found.lower is not None
    assert found.lower * (1 - GROWTH_MOST) <= truth <= (found.upper or 1.0)
    assert found.upper is None or found.upper - found.lower <= 0.005 * found.upper


@pytest.mark.parametrize("search", METHODS)
def test_a_device_that_loses_at_any_load_has_no_throughput(search: str) -> None:
    """One frame of 50: a trial of 1 % of the line has 74."""
    found = measured(Lossy(one_of=50), search=search)
    assert found.sizes[0].share is None
    assert found.sizes[0].notes[0].startswith("no load down to 1 % of the line was shown to pass")


@pytest.mark.parametrize("queue", [5_000, 500_000])
@pytest.mark.parametrize("search", METHODS)
def test_a_queue_that_swallows_all_is_no_throughput(queue: int, search: str) -> None:
    found = measured(Switch(rate=SIX_TENTHS, queue=queue), search=search)
    throughput = found.sizes[0].throughput
    assert throughput is not None and throughput.lower is not None and throughput.lower <= SIX_TENTHS
    assert "a queue fills" in throughput.why or "frames lost" in throughput.why
    assert found.lied > 0 and found.notes[0].startswith(
        f"{found.lied} of {len(found.trials)} trials lied, and count as failed"
    )


def test_a_goal_that_allows_loss_comes_to_more() -> None:
    strict, loose = (
        measured(Policer(), goal=goal_of("rfc2544", seconds=0.005, loss_ratio=ratio)) for ratio in (0.0, 0.1)
    )
    assert strict.sizes[0].share is not None and loose.sizes[0].share is not None
    assert strict.sizes[0].share <= 0.834
    assert loose.sizes[0].share == pytest.approx(0.834 / 0.9, rel=0.006)


@pytest.mark.parametrize("name", GOALS)
def test_each_goal_comes_to_an_end(name: str) -> None:
    found = measured(Switch(rate=SIX_TENTHS, queue=16), goal=goal_of(name, seconds=0.0005)).sizes[0].throughput
    assert found is not None and found.lower is not None
    assert found.lower == pytest.approx(0.6, rel=0.03)


def test_a_device_that_reboots_is_said_not_to_repeat_itself() -> None:
    """It is away once, in the second trial, which is below what passes later."""
    device = Hostile(away=(625_000, 700_000))
    found = measured(device, goal=goal_of("tst009", seconds=0.004))
    assert any("does not repeat itself" in note for note in found.sizes[0].notes) or found.sizes[0].share == 1.0


# Latency, loss, bursts --------------------------------------------------------------------------


@pytest.mark.parametrize("latency", [0, 375, 12_345])
@pytest.mark.parametrize("size", ["64", "1518"])
def test_latency_is_exact_to_a_tick(latency: int, size: str) -> None:
    found = measured(Device(latency=latency), tests=("latency",), sizes=(size,), ways=BOTH).sizes[0]
    delay_ns = 8 * (int(size) - 4 + 12 + latency)
    for way in found.latency:
        assert (way.typical, way.worst, way.pdv) == ((delay_ns, delay_ns), (delay_ns, delay_ns), (0, 0))
        assert (way.least, way.most, way.runs, way.load) == (delay_ns, delay_ns, 2, 1.0)


def test_latency_of_a_mix_is_that_of_its_lengths() -> None:
    """Of aag two of three frames are short: the median is a short one's, the 99.9 percentile a long one's."""
    found = measured(Device(), tests=("latency",), sizes=("aag",), load=0.1).sizes[0].latency[0]
    short, long = (8 * (length + 12 + 375) for length in (60, 1514))
    assert (found.typical, found.worst, found.pdv) == ((short, short), (long, long), (long - short, long - short))


def test_loss_of_each_load_is_exact() -> None:
    """A queue of one frame loses what does not fit, whatever came before: two of five at line rate."""
    found = measured(Policer(share=SIX_TENTHS), tests=("loss",))
    assert [step.load for step in found.sizes[0].loss] == [1.0, 0.9, 0.8, 0.7, 0.6, 0.5]
    for step in found.sizes[0].loss:
        frames = int(0.005 * 125e6 * step.load / 84 + 1e-9)
        cost, full, lost = Fraction(140), Fraction(0), 0
        for number in range(frames):
            tick = math.ceil(number * 84 / Fraction(str(step.load)))
            full = max(full, Fraction(tick))
            lost, full = (lost + 1, full) if full - tick > cost else (lost, full + cost)
        assert step.sent == frames
        assert abs(step.lost - lost) <= 3  # The parts of a trial meet within a tick.


@pytest.mark.parametrize("queue", [1, 2, 64, 300, 1000])
def test_the_longest_burst_is_exact_to_a_frame(queue: int) -> None:
    """Frames come every 84 ticks, and leave every 140, the first at once: so many wait when the last comes."""
    found = measured(Switch(rate=SIX_TENTHS, queue=queue), tests=("back-to-back",))

    def waiting(burst: int) -> int:
        """Return how many have not started when the last of a burst comes."""
        came = 84 * (burst - 1)
        return sum(140 * number > came for number in range(burst - 1))

    truth = next(burst for burst in range(1, 10_000) if waiting(burst + 1) >= queue)
    back_to_back, share = found.sizes[0].back_to_back, found.sizes[0].share
    assert back_to_back is not None and share is not None
    assert (back_to_back.bursts, back_to_back.is_limit) == ((truth,) * 3, True)
    implied_ns = 672.0 * truth
    assert (back_to_back.implied_ns, back_to_back.corrected_ns) == (
        pytest.approx(implied_ns), pytest.approx(implied_ns * (1 - share)),
    )  # fmt: skip


def test_a_burst_without_a_limit_is_said() -> None:
    found = measured(Device(), tests=("back-to-back",)).sizes[0]
    assert found.back_to_back is not None and not found.back_to_back.is_limit
    assert found.notes == ("back-to-back: the longest burst of 7,440 frames (5 ms) lost none",)


def test_recovery_is_between_its_bounds() -> None:
    """The queue is full at the change: nothing more is lost at half the load, so it is 0; none is without overload."""
    found = measured(Switch(rate=SIX_TENTHS, queue=16), tests=("recovery",)).sizes[0]
    assert found.recovery_ns == (0.0, 0.0)
    assert measured(Device(), tests=("recovery",)).sizes[0].recovery_ns is None


def test_recovery_of_a_device_that_is_away_for_a_while_holds_its_time() -> None:
    """It goes away when frames come fast, for 1 ms, which begins in the last frame of the overload."""

    class Sulking(Switch):
        last, until = 0, 0

        def forward(self, tick: int, port: int, length: int) -> int | None:
            gap, self.last = tick - self.last, tick
            left = super().forward(tick, port, length)
            if left is None and gap < 130:
                self.until = tick + 125_000
            return None if tick < self.until else left

    found = measured(Sulking(rate=SIX_TENTHS, queue=16), tests=("recovery",)).sizes[0]
    assert found.recovery_ns is not None
    assert found.recovery_ns[0] <= 1e6 <= found.recovery_ns[1]


def test_reset_is_how_long_the_device_was_away() -> None:
    device = Hostile()
    probe = FakeProbe(device)

    def reset() -> None:
        device.away = (device.seen, device.seen + 125_000)

    device.on_frame = lambda tick: setattr(device, "seen", tick)
    found = Rfc2544(probe, replace(SHORT, tests=("reset",), load=0.5), reset=reset).run().sizes[0]
    assert found.reset_ns is not None
    assert found.reset_ns[0] <= 1e6 <= found.reset_ns[1]
    assert found.reset_ns[1] - found.reset_ns[0] <= 2 * 2 * 672 + 1e-6


# Hostile devices --------------------------------------------------------------------------------


def test_a_device_that_drops_all_is_named_at_once() -> None:
    probe = FakeProbe(Hostile(loses_all=True))
    with pytest.raises(
        ProbeError, match="none of 40 frames came from port 0 to port 1 at 1 % of the line: see to the device's"
    ):
        Rfc2544(probe, SHORT).run()
    assert probe.sends == 2


def test_a_device_that_sends_back_is_named_at_once() -> None:
    with pytest.raises(ProbeError, match="the device sends what port 0 sends back to port 0, not to port 1"):
        measured(Hostile(is_mirror=True))


def test_a_device_that_floods_is_measured_by_what_is_not_lost() -> None:
    found = measured(Hostile(times=3))
    assert found.sizes[0].share == 1.0
    assert found.trials[0].streams[0].duplicated == 2 * found.trials[0].sent


def test_a_late_tester_shows_nothing() -> None:
    found = Rfc2544(FakeProbe(Device(), is_late=True), SHORT).run()
    assert found.sizes[0].share is None
    assert "the tester started" in found.sizes[0].notes[0]


# Kept suites ------------------------------------------------------------------------------------


def kept(path: Path, is_resumed: bool, fails_at: int | None = None) -> tuple[Rfc2544Result, int]:
    """Run the whole suite, kept in a file; return the result, and how often the probe sent."""
    probe = FakeProbe(Switch(rate=SIX_TENTHS, queue=16), fails_at=fails_at)
    request = replace(SHORT, tests=TESTS[:5], sizes=("64", "512"), ways=BOTH, goal=Goal(seconds=0.002), burst_s=0.002)
    with Journal(path, {"request": request.to_dict()}, is_resumed) as journal:
        return Rfc2544(probe, request, journal).run(), probe.sends


def test_a_link_that_flaps_ends_a_suite_that_goes_on_to_the_same_result(tmp_path: Path) -> None:
    whole, sends = kept(tmp_path / "whole.jsonl", False)
    for cut in (3, sends // 2, sends):
        path = tmp_path / f"{cut}.jsonl"
        with pytest.raises(ProbeError, match="went down"):
            kept(path, False, fails_at=cut)
        found, again = kept(path, True)
        assert found.to_dict() == whole.to_dict()
        assert again == sends - cut + 2  # The rest, and the check before it.


# What is said -----------------------------------------------------------------------------------


def test_the_plan_of_the_rfcs_says_what_shortens_it() -> None:
    plan = Rfc2544Request(ways=BOTH).plan()
    assert plan.seconds[1] > 8 * 3600
    assert [one.partition(":")[0] for one in plan.shorter] == [
        "--latency-repeats 3", "--burst-repeats 5", "--duration 10s, which is not conformant", "--frame-size 64,512,1518",
    ]  # fmt: skip
    assert SHORT.plan().shorter == ()


def test_a_suite_takes_no_more_trials_than_its_plan_says() -> None:
    for device in (Switch(rate=SIX_TENTHS, queue=16), Device(), Policer()):
        request = replace(SHORT, tests=TESTS[:5], sizes=("64", "1518"))
        found = Rfc2544(FakeProbe(device), request).run()
        repeated = sum(not trial.is_valid for trial in found.trials)  # Each may have been run again.
        assert request.plan().least <= len(found.trials) + 1 <= request.plan().most + repeated


def test_what_is_not_conformant_is_in_every_form(tmp_path: Path) -> None:
    found = measured(Switch(rate=SIX_TENTHS), tests=TESTS[:4])
    said = "5 ms trials: not conformant"
    assert found.table()["conformance"][0].startswith(said)
    assert found.to_dict()["shortfalls"][0] == said and not found.to_dict()["is_conformant"]
    assert said in repr(found)
    content = {
        **files.of_run(files.RFC2544_FORMAT, "sim://x", {"ports": 2}, ["liteprobe", "rfc2544"]),
        **found.to_dict(),
    }
    rfc2544_page.write(tmp_path / "page.html", found, content)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count(said) >= 3
    for title in ("Throughput", "Latency", "Frame loss rate", "Back-to-back frames", "Trials", "Definitions"):
        assert f"<h2>{title}</h2>" in page
    json.dumps(content)


def test_a_conformant_request_says_nothing() -> None:
    assert Rfc2544Request().shortfalls == []


def test_conditions_are_judged_between_the_two_ends_of_a_search() -> None:
    found = measured(Switch(rate=SIX_TENTHS), tests=("throughput", "latency"))
    found.expect("rate > 590M", "fps > 880k", "p50 < 4us", "64.p99_9 < 4us", "pdv < 100ns")
    with pytest.raises(ExpectationError, match="rate > 700M: not held"):
        found.expect("rate > 700M")
    with pytest.raises(UndecidedError, match="whose error bar crosses the limit"):
        found.expect("rate >= 600M")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tests": ("throuhgput",)}, "there is no test 'throuhgput': did you mean 'throughput'"),
        ({"sizes": ("63",)}, "'63' is not a frame size: give 64 to 9004"),
        ({"sizes": ("64", "64")}, "a size is given twice"),
        ({"sizes": ()}, "nothing is asked for"),
        ({"ways": ((0, 1), (0, 2))}, "a port that sends is given twice"),
        ({"search": "linear"}, "there is no search 'linear'"),
        ({"loss_step": 0.5}, "loss_step 0.5 is out of range: give 0.001 to 0.1"),
        ({"load": 1.5}, "load 1.5 is out of range"),
        ({"burst_s": 0.0}, "burst_s 0 is out of range"),
        ({"addresses": 0}, "addresses 0 is out of range"),
    ],
)
def test_what_can_not_be_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        replace(SHORT, **changes)  # type: ignore[arg-type]


def test_sizes_are_with_fcs_and_genomes_are_those_of_the_rfc() -> None:
    assert [length_of(size).least for size in SIZES] == [60, 124, 252, 508, 1020, 1276, 1514]
    assert length_of("imix") == IMIX
    assert length_of("aadg") == Lengths((60, 60, 508, 1514))


def addresses(trial: Trial) -> Iterator[str]:
    """Yield the names of the ways of a trial."""
    yield from (way.name for way in trial.streams)


def test_the_way_back_has_the_addresses_the_other_way_round() -> None:
    request = replace(SHORT, ways=BOTH, addresses=256, headers=Headers(source_ip="10.0.0.1", destination_ip="10.0.1.1"))
    there, back = request.streams("64", 0.5, 0.001)
    assert (there.headers.source_ip, back.headers.source_ip) == ("10.0.0.1", "10.0.1.1")
    assert (there.headers.destination_mac, back.headers.destination_mac) == (
        back.headers.source_mac,
        there.headers.source_mac,
    )
    assert [modifier.count for stream in (there, back) for modifier in stream.modifiers] == [256, 256]  # type: ignore[union-attr]
    assert list(addresses(Rfc2544(FakeProbe(Device()), request).run().trials[0])) == ["0 to 1", "1 to 0"]


# Hosts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hosts", "routers", "wanted"),
    [
        (
            ("10.0.1.2", "10.0.2.2"),
            ("10.0.1.1", "10.0.2.1"),
            [("10.0.1.2", "10.0.2.2", "10.0.1.1"), ("10.0.2.2", "10.0.1.2", "10.0.2.1")],
        ),
        (("10.0.1.2",), (), [("10.0.1.2", "198.18.0.2", None), ("198.18.0.2", "10.0.1.2", None)]),
        ((), (), [(None, "198.18.0.2", None), (None, "198.18.0.1", None)]),
    ],
)
def test_each_way_comes_from_the_host_of_its_port(
    hosts: tuple[str, ...], routers: tuple[str, ...], wanted: list[tuple[str | None, str, str | None]]
) -> None:
    request = Rfc2544Request(ways=BOTH, hosts=hosts, routers=routers)
    streams = request.counted("64", 0.5, 10)
    assert [(one.source, one.headers.destination_ip, one.via) for one in streams] == wanted
    assert [one.headers.source_ip for one in streams] == [destination for _, destination, _ in wanted[::-1]]


@pytest.mark.parametrize(
    ("hosts", "routers", "said"),
    [
        ((), ("10.0.1.1",), "a router is asked from an address of the port"),
        (("10.0.1.2", "10.0.1.3", "10.0.1.4"), (), "3 addresses of hosts are too many"),
        (("10.0.1.2", "fd00::1"), (), "of different families"),
        (("10.0.1.300",), (), "'10.0.1.300' is not an IP address"),
    ],
)
def test_hosts_that_can_not_be_are_refused(hosts: tuple[str, ...], routers: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Rfc2544Request(ways=BOTH, hosts=hosts, routers=routers).counted("64", 0.5, 10)
