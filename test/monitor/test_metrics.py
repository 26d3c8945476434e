# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Metrics of a monitor, as two clients scrape them at once and an independent parser reads them; and counts that wrap."""

import io
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from liteprobe.cores.formats import BinKind, StampPlace
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.capture.ring import ChannelState
from liteprobe.host.cli import main as cli
from liteprobe.host.cli.commands import monitor as command
from liteprobe.host.cli.commands.monitor import short_view, view
from liteprobe.host.device.link.base import Words
from liteprobe.host.measure.monitor import BinSetting, Monitor, PortMeasurement, bins_at
from liteprobe.host.measure.streams import ReceivedStream
from liteprobe.host.probe import Probe
from liteprobe.host.serve.metrics import Metrics, serve
from liteprobe.host.serve.poll import WRAP, Poller, SpanBetweenLooks, Totals, Worst, document
from liteprobe.host.store.query import StoreQuery
from liteprobe.host.store.store import ResultStore
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.drivers.tools.refusals import refusal
from liteprobe.sim.models.probe.meters import GeneratorProbe, MonitorProbe
from liteprobe.sim.models.receive.meters import MeasuredFrame

FIRST = 1_800_000_000_000_000_000
LENGTHS = np.array([60, 124, 188] * 100)
DELAYS_NS = 500 + np.arange(300)
INTERVAL_NS = 2000


@pytest.fixture
def model() -> MonitorProbe:
    return MonitorProbe()


@pytest.fixture
def poller(model: MonitorProbe, tmp_path: Path) -> Poller:
    """Looks at a probe that has measured 300 frames of stream 3 at port 1, 3 lost, after 5 that were cleared."""
    probe = Probe(FakeLink(model, tmp_path))
    for number in range(5):
        model.arrive(1, MeasuredFrame(FIRST - 5 + number, 1000))
    monitor = Monitor(probe, 1)
    monitor.watch(stream_base=3)
    monitor.set_bins({BinKind.LENGTH: BinSetting(0, 6), BinKind.DELAY: BinSetting(-64, 6)})
    for number, (length, delay) in enumerate(zip(LENGTHS, DELAYS_NS, strict=True)):
        stamp = FIRST + INTERVAL_NS * number
        sequence = number + 3 * (number > 99)
        model.arrive(1, MeasuredFrame(stamp, int(length), 0, True, 3, sequence, stamp - int(delay)))
    return Poller(probe, from_start=True)


@pytest.fixture
def served() -> Iterator[tuple[Metrics, str]]:
    """Metrics, and where they are served."""
    metrics = Metrics()
    server = serve(metrics, 0)
    yield metrics, f"http://{server.server_address[0]}:{server.server_port}/metrics"
    server.shutdown()
    server.server_close()


def scrape(url: str) -> str:
    return str(urllib.request.urlopen(url).read().decode())


def families(text: str) -> dict[str, Metric]:
    return {family.name: family for family in text_string_to_metric_families(text)}


def values(family: Metric, **labels: str) -> dict[str, float]:
    """Samples that have those labels, by name and bound of their bucket."""
    return {
        sample.name.removeprefix("liteprobe_") + sample.labels.get("le", ""): sample.value
        for sample in family.samples
        if labels.items() <= sample.labels.items()
    }


def test_only_this_host_is_served_and_nothing_before_the_first_look(served: tuple[Metrics, str]) -> None:
    assert served[1].startswith("http://127.0.0.1:") and scrape(served[1]) == ""


def test_counts_are_of_all_frames_and_in_base_units(served: tuple[Metrics, str], poller: Poller) -> None:
    served[0].look = poller.look()
    found = families(scrape(served[1]))
    # The five frames before the meters were cleared came, too.
    assert values(found["liteprobe_frames"], port="1") == {"frames_total": 305}
    assert values(found["liteprobe_bytes"], port="1") == {"bytes_total": LENGTHS.sum() + 5000}
    assert values(found["liteprobe_stream_lost_frames"], stream="3") == {"stream_lost_frames": 3}
    mean = values(found["liteprobe_stream_delay_mean_seconds"], stream="3")["stream_delay_mean_seconds"]
    assert mean == pytest.approx(DELAYS_NS.mean() * 1e-9, rel=1e-12)
    assert values(found["liteprobe_build_info"]) == {"build_info": 1}
    events = {sample.labels["event"] for sample in found["liteprobe_events"].samples}
    assert "fcs_errors" in events and not events & {"all_frames", "all_octets"}
    assert [values(found["liteprobe_clock_state"], state="free-running")] == [{"clock_state": 1}]


def test_each_metric_has_a_help_of_its_own(served: tuple[Metrics, str], poller: Poller) -> None:
    served[0].look = poller.look()
    helps = [family.documentation for family in families(scrape(served[1])).values()]
    assert len(set(helps)) == len(helps) == 26 and all(helps)


@pytest.mark.parametrize(
    ("name", "seen", "unit"),
    [
        ("frame_length_bytes", LENGTHS, 1),
        ("delay_seconds", DELAYS_NS, 1e9),
        ("interarrival_seconds", np.full(299, INTERVAL_NS), 1e9),
    ],
)
def test_histograms_have_sum_count_and_sorted_bounds_from_0_on(
    name: str, seen: NDArray[np.int64], unit: float, served: tuple[Metrics, str], poller: Poller
) -> None:
    served[0].look = poller.look()
    found = values(families(scrape(served[1]))[f"liteprobe_{name}"], port="1")
    assert found.pop(f"{name}_sum") == pytest.approx(seen.sum() / unit, rel=1e-12)
    assert found.pop(f"{name}_count") == len(seen)
    bounds = [float(key.removeprefix(f"{name}_bucket")) for key in found]
    assert bounds == sorted(bounds) and bounds[0] >= 0 and bounds[-1] == float("inf")
    assert list(found.values()) == [(seen / unit <= bound).sum() for bound in bounds]
    if name != "interarrival_seconds":
        assert np.diff(bounds[:-1]) * unit == pytest.approx(64)


def test_two_clients_at_once_read_the_same_counters_that_never_fall(
    served: tuple[Metrics, str], poller: Poller, model: MonitorProbe
) -> None:
    before = 305
    for turn in range(5):
        served[0].look = poller.look()
        with ThreadPoolExecutor(2) as clients:
            one, other = clients.map(scrape, [served[1]] * 2)
        assert one == other
        assert values(families(one)["liteprobe_frames"], port="1")["frames_total"] == before
        for number in range(turn):
            model.arrive(1, MeasuredFrame(FIRST + 10**6 * (1 + turn) + number, 60))
        before += turn


class BusyLink(FakeLink):
    """A link over which a frame comes to each port with every read; latches that go out together find none between."""

    def write_scattered(self, words: Mapping[int, int]) -> bool:
        for address, word in words.items():
            self.model.write(address, word)
        return True

    def read_scattered(self, addresses: Sequence[int]) -> Words:
        if isinstance(self.model, MonitorProbe):
            for port in range(2):
                self.model.arrive(port, MeasuredFrame(self.model.now(), 60))
        return super().read_scattered(addresses)


def test_all_counts_of_a_look_are_of_one_instant(model: MonitorProbe, tmp_path: Path) -> None:
    poller = Poller(Probe(BusyLink(model, tmp_path)))
    for _ in range(3):
        look = poller.look()
        seen = {port.counters["frames"] for port in look.ports} | {events["all_frames"] for events in look.events}
        assert len(seen) == 1
        for port in look.ports:
            totals = {kind.name: one.total for kind, one in port.histograms[0].items()}
            assert totals == {"LENGTH": port.counters["frames"], "ARRIVAL": port.counters["frames"] - 1, "DELAY": 0}


class LosingLink(BusyLink):
    """A busy link with frames between latches too, and the first batches of these out of order."""

    lost = 2

    def write_scattered(self, words: Mapping[int, int]) -> bool:
        is_lost = self.lost > 0
        self.lost -= is_lost
        for address, word in list(words.items())[:: -1 if is_lost else 1]:
            self.model.write(address, word)
            self.read_scattered([])
        return not is_lost


def test_no_look_has_more_frames_measured_than_seen(model: MonitorProbe, tmp_path: Path) -> None:
    link = LosingLink(model, tmp_path)
    poller = Poller(Probe(link))
    for _ in range(3):
        look = poller.look()
        for port, events in zip(look.ports, look.events, strict=True):
            assert 0 < events["all_frames"] - port.counters["frames"] <= 4  # A frame with each latch.
    link.lost = 1 << 16
    assert "loses so many datagrams" in refusal(poller.look, error=ProbeError)


def test_delays_of_short_stamps_say_modulo_what_they_are(served: tuple[Metrics, str], tmp_path: Path) -> None:
    model = GeneratorProbe()
    probe = Probe(FakeLink(model, tmp_path))
    places = {
        1: StampPlace(18, 2),
        2: StampPlace(15, 3, 4, is_nibble=True),
        3: StampPlace(40, 8),
        4: StampPlace(40, 6, 4),
    }
    for port in range(2):
        Monitor(probe, port).watch(3, places=places if port else {})
        for number in range(50):  # 100 us by the first place read so.
            model.arrive(port, MeasuredFrame(FIRST + number, 60, 0, True, 3 + number % 5, 0, FIRST + number - 34_464))
    served[0].look = look = Poller(probe).look()
    ranges = [None, 65_536, 1 << 36, None, None, None, None, None]
    assert [one.delay_modulo_ns for one in look.ports[1].streams] == ranges
    said = document(look)["ports"]
    assert [one["delay_modulo_ns"] for one in said[1]["streams"]] == ranges
    assert [one["delay"]["modulo_ns"] for one in said[1]["histograms"]] == [65_536, *ranges[1:]]
    assert (
        {one["delay_modulo_ns"] for one in said[0]["streams"]}
        == {None}
        == {said[0]["histograms"][0]["delay"]["modulo_ns"]}
    )
    found = families(scrape(served[1]))
    for name in ("stream_delay_mean_seconds", "stream_delay_max_seconds", "stream_delay_std_seconds"):
        marks = {
            tuple(map(one.labels.get, ("port", "stream"))): one.labels.get("modulo")
            for one in found[f"liteprobe_{name}"].samples
        }
        assert marks == {(p, s): None for p in "01" for s in "34567"} | {
            ("1", "3"): "6.5536e-05",
            ("1", "4"): "68.719476736",
        }
    assert {
        one.labels.get("modulo") for one in found["liteprobe_delay_seconds"].samples if one.labels["port"] == "1"
    } == {"6.5536e-05"}
    screen = Console(width=160, file=io.StringIO())
    with screen.capture() as shown:
        screen.print(view(look), short_view(look, {}, Worst()))
    text = shown.get()
    assert "modulo" in text.split("port 1")[1] and "65,536" in text and "modulo" not in text.split("port 1")[0]
    assert "34,464..34,464 ns modulo 65,536 ns" in text


def test_bins_of_an_instant_have_as_many_values_and_never_fall() -> None:
    chance = np.random.default_rng(36)
    now, shown = np.zeros(48, np.int64), np.zeros(48, np.int64)
    for _ in range(500):
        before = now.copy()
        came = np.bincount(chance.integers(0, 48, chance.integers(0, 40)), minlength=48)
        at = before + np.bincount(np.flatnonzero(came)[:5], minlength=48)
        now = np.maximum(at, before + came)
        found = bins_at(before, now, int(at.sum()))
        assert found.sum() == at.sum() and (found >= shown).all() and (before <= found).all() and (found <= now).all()
        shown = found
    assert bins_at(now, now - 1, 3).tolist() == (now - 1).tolist()  # Somebody cleared them.


# Counts that wrap -----------------------------------------------------------------------------------


def stream(frames: int, lost: int, duplicated: int) -> PortMeasurement:
    """A port whose stream 7 shows these words of 32 bits."""
    made = ReceivedStream(
        1, 7, frames, 0, 0, 0, (frames + lost) % WRAP, lost % WRAP, duplicated % WRAP, 0, 0, 0, 0, 0, 0
    )
    return PortMeasurement(0, {}, None, [made], [], False)


def test_counts_go_on_behind_their_32_bits_also_where_a_look_is_missed() -> None:
    totals = Totals()
    duplicated = [
        0,
        3_000_000_000,
        4_294_967_295,
        4_294_967_296,
        8_589_934_591,
        12_000_000_000,
    ]  # Up to 2^32 - 1 apart.
    lost = [0, 7, 2_000_000_000, 4_000_000_000, 5_000_000_000, 4_999_999_999]  # A late frame takes one away.
    found = [totals.of_port(stream(10**11 + n, lost[n], duplicated[n])).streams[0] for n in range(6)]
    assert [seen.duplicated for seen in found] == duplicated
    assert [seen.lost for seen in found] == lost


def test_a_cleared_stream_begins_anew() -> None:
    totals = Totals()
    totals.of_port(stream(1000, 5, 4_294_967_290))
    assert totals.of_port(stream(1010, 5, 3)).streams[0].duplicated == WRAP + 3
    assert totals.of_port(stream(2, 1, 1)).streams[0].duplicated == 1


def test_drops_of_a_channel_wrap_and_begin_anew_with_a_capture() -> None:
    totals, state = Totals(), ChannelState(0, 0, 50, WRAP - 1, 64)
    assert totals.of_channel(0, state).dropped == WRAP - 1
    assert totals.of_channel(0, replace(state, written=60, dropped=9)).dropped == WRAP + 9
    assert totals.of_channel(0, replace(state, written=1, dropped=2)).dropped == 2


@pytest.mark.parametrize(
    ("condition", "code", "said"),
    [
        ("received == 300", 0, "received == 300: held: received is 300"),
        ("port 1.lost == 0", 4, "port 1.lost == 0: not held: lost is 3"),
        ("port 0.lost == 0", 0, "port 0.lost == 0: held: lost is 0"),
        ("bit_errors == 0", 5, "bit_errors == 0: unknown: bit_errors is not known"),
    ],
)
def test_a_monitor_judges_its_last_look(
    poller: Poller,
    condition: str,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(command, "open_probe", lambda args: nullcontext())
    monkeypatch.setattr(command.poll, "Poller", lambda *args: poller)
    monkeypatch.setattr(poller, "set", lambda *args: None)
    assert cli.main(["monitor", "--once", "--expect", condition]) == code
    assert said in capsys.readouterr().out.splitlines()


def test_what_came_between_two_looks(model: MonitorProbe, poller: Poller) -> None:
    """Count what came since the look before, by port, delays by their bins too; after a clear what came since that."""
    first = poller.look()
    delays = (100, 900, 900, 5000)
    for number, delay in enumerate(delays):
        stamp = FIRST + 10**9 + 1000 * number
        model.arrive(1, MeasuredFrame(stamp, 100, 0, True, 3, 9000 + number, stamp - delay))
    second = poller.look()
    found = SpanBetweenLooks(first, second)
    assert {name: row["received"] for name, row in found.figures.items()} == {"port 0": 0, "port 1": 4}
    assert found.figures["port 1"]["octets"] == 400
    cells = found.cells_by_part["port 1"]
    assert cells.total == 4 and found.cells_by_part["port 0"].total == 0
    assert all(any(low <= delay <= high for low, high in zip(cells.lows, cells.highs, strict=True)) for delay in delays)
    assert SpanBetweenLooks(second, first).figures["port 1"]["received"] == first.figures["port 1"]["received"]


def test_a_monitor_keeps_what_came_while_it_looked(
    model: MonitorProbe, poller: Poller, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def waits(*_: object) -> bool:
        model.arrive(1, MeasuredFrame(FIRST + 10**9 + next(numbers), 100))
        return next(ends)

    numbers, ends = iter(range(9)), iter([False, False, True])
    monkeypatch.setattr(command, "open_probe", lambda args: nullcontext())
    monkeypatch.setattr(command.poll, "Poller", lambda *args: poller)
    monkeypatch.setattr(poller, "set", lambda *args: None)
    monkeypatch.setattr(command.Screen, "waits", waits)
    place = tmp_path / "store"
    assert cli.main(["monitor", "--store", str(place)]) == 0
    text = "SELECT part, value FROM figures WHERE name = 'received' ORDER BY part"
    assert [(*row.values(),) for row in StoreQuery(ResultStore(place)).sql(text).rows] == [("port 0", 0), ("port 1", 2)]
    assert cli.main(["monitor", "--store", str(place), "--once"]) == 2
