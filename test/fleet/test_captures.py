# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Captures beside an experiment, on modelled probes: their files against what came to each probe; faults; what is refused."""

import errno
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from liteprobe.cores.formats import PRESETS
from liteprobe.host.base.errors import UsageError
from liteprobe.host.capture.write.pcapng import PcapngWriter
from liteprobe.host.fleet import collect
from liteprobe.host.fleet.experiment import Experiment
from liteprobe.host.fleet.plan import ExperimentPlan, read_plan
from liteprobe.sim.drivers.system.fleet import FleetBench, Hostile
from liteprobe.sim.drivers.system.fleet_captures import FleetCapturer, frames_of, hostile
from liteprobe.sim.drivers.system.fleet_stations import START_S, Stations, check_captures
from liteprobe.sim.drivers.system.fleet_stations import hostile_captures as hostile_stations
from liteprobe.sim.models.probe.fleet import TAI_NS

FAULTS = 6
Run = Callable[..., tuple[int, str, str]]
DOCUMENT = """
probes:
  p00: {url: 10.9.0.1, ip: 10.0.0.1, labels: [some]}
  p01: {url: 10.9.0.2, ip: 10.0.0.2}
  p02: {url: 10.9.0.3, ip: 10.0.0.3, labels: [some]}
defaults: {length: 60}
streams:
  - {name: voice, pps: 20k, count: 20}
  - {name: data, length: {least: 60, greatest: 1514}, rate: 300M, exponential: true, count: 40}
"""


def test_captures_have_all_that_came_to_their_probes_in_all_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    bench = FleetBench(3, 5, tmp_path, FleetCapturer)
    monkeypatch.setattr("liteprobe.host.probe.open_link", lambda url: bench.links[int(url.rpartition(".")[2]) - 1])
    plan, out, page = (tmp_path / name for name in ("plan.yaml", "found.json", "found.html"))
    plan.write_text(DOCUMENT + f"captures: [{{at: some, write: '{tmp_path}/{{probe}}.pcapng'}}]")
    code, text, _ = run("experiment", str(plan), "--check")
    assert code == 0 and f"capture at p02: {tmp_path}/p02.pcapng" in text and bench.fleet.now_ns == 0
    code, text, err = run("experiment", str(plan), "--json", str(out), "--report", str(page))
    assert code == 0, err
    content = json.loads(out.read_text())
    assert (content["is_complete"], [one["probe"] for one in content["captures"]]) == (True, ["p00", "p02"])
    for one in content["captures"]:
        number = int(one["probe"][1:])
        came = {
            (each.stream_id, each.sequence): each.came_ns
            for each in bench.fleet.passages
            if each.receiver == number and each.came_ns is not None
        }
        held = frames_of(tmp_path / f"{one['probe']}.pcapng")
        assert sorted(each[1:] for each in held) == sorted(came) and len(held) == one["counts"]["frames"]
        bound_ns = bench.fleet.probes[number].bound_ns
        assert all(abs(stamp - TAI_NS - came[key, at]) < 2.5 * bound_ns + 8 for stamp, key, at in held)
        assert f"capture at {one['probe']}: {len(held):,} frames, in " in text
        assert f"capture at {one['probe']}: {len(held):,} frames" in page.read_text()
    for pair in content["pairs"]:  # What is sent and measured is as true as without captures.
        true_ns, lost = bench.truth(int(pair["from"][1:]), int(pair["to"][1:]), pair["figures"]["stream_id"])
        assert (pair["lost"], pair["received"]) == (lost, len(true_ns))
        assert abs(pair["mean"] - sum(true_ns) / len(true_ns)) < 2.5 * pair["bound"] + 8


def test_who_captures_nothing_is_named_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    bench = FleetBench(3, 5, tmp_path, FleetCapturer)
    monkeypatch.setattr("liteprobe.host.probe.open_link", lambda url: bench.links[int(url.rpartition(".")[2]) - 1])
    bench.fleet.probes[0].values["probe_parts"] = PRESETS["generator"]
    plan, out = tmp_path / "plan.yaml", tmp_path / "found.json"
    plan.write_text(DOCUMENT + "captures: [{at: p00, write: a.pcapng}, {at: p02, write: /nowhere/b.pcapng}]")
    code, text, err = run("experiment", str(plan), "--json", str(out))
    assert code == 0 and "12 of 12 pairs' streams have delays" in text
    assert "no capture at p00: a generator captures nothing: load monitor or tester or replay" in err
    content = json.loads(out.read_text())
    assert content["is_complete"] is False
    first, second = (one["why"] for one in content["captures"])
    assert first.startswith("a generator captures nothing") and "/nowhere/b.pcapng" in second


def test_faults_at_any_moment_leave_no_wrong_file_and_are_named(tmp_path: Path) -> None:
    for seed in range(4002, 4002 + FAULTS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        one = hostile(seed, folder)
        assert (seed, one.wrong, one.unnamed, one.missing, one.is_stopped) == (seed, [], [], [], True)


@pytest.mark.parametrize(
    ("captures", "said"),
    [
        ("{at: p09, write: a.pcapng}", "no probe has the name or label 'p09'"),
        ("{at: p00}", "nothing would be written"),
        ("{at: some, write: a.pcapng}", "'p00' and 'p02' would both write a.pcapng: give a file each, as with {probe}"),
        ("{at: p00, write: '-'}", "stdout can't take captures"),
        ("{at: p00, write: a.txt}", "says by its ending neither pcapng nor pcap"),
        ("{at: p00, write: a.pcapng, filter: 'udp prt 3'}", "plan.yaml:10: "),
        ("{at: p00, write: a.pcapng, sample: 3}", "'3' is not a sampling"),
        ("{at: p00, write: a.pcapng, count: 3}", "unknown key 'count' of a capture"),
        ("{at: p00, write: a.pcapng}, {at: some, blocks: '{probe}'}", "a probe has two captures: leave out one"),
    ],
)
def test_captures_that_cant_be_are_refused_with_their_line(captures: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        read_plan(DOCUMENT + f"captures: [{captures}]")
    assert said in str(error.value) and str(error.value).startswith("plan.yaml:10: ")


def test_trains_refuse_captures() -> None:
    own = "captures: [{at: p01, write: a.pcapng}]\n"
    train = DOCUMENT.partition("defaults")[0] + "train: {length: 60, count: 9}\n" + own
    with pytest.raises(UsageError, match="'p01' hears a train, whose records take its capture"):
        read_plan(train)
    read_plan(train + "pairs: [{from: p01, to: p00}]")  # It only sends.


def test_a_capture_ends_when_its_files_have_so_many_octets(tmp_path: Path) -> None:
    bench = FleetBench(3, 5, tmp_path, FleetCapturer)
    text = DOCUMENT + f"captures: [{{at: p00, size: 3k, write: '{tmp_path}/a.pcapng'}}]"
    with Experiment(read_plan(text), opener=lambda one: bench.open_one(bench.planned()[int(one.name[1:])])) as run:
        (one,) = run.run().captures
    assert one.why.startswith("its files came to 3,000 octets, and it ended") and one.result
    assert not one.is_complete and 0 < one.result.frames == len(frames_of(tmp_path / "a.pcapng")) < 120


# By stations --------------------------------------------------------------------------------------


@pytest.fixture
def stations(tmp_path: Path) -> Iterator[Stations]:
    """Three stations of probes that capture, whose plan has run: two starts, captures at two of them."""
    made = Stations(tmp_path, of=FleetCapturer)
    with ExitStack() as stack:
        made.serve(stack)
        yield made


def handed(made: Stations, here: Path, more: str = "") -> tuple[ExperimentPlan, str]:
    """Have stations run a plan with captures, whose files come to ``here``."""
    text = made.text(
        more=f"round_every: 30s\ncaptures: [{{at: p00, {more}write: '{here}/{{probe}}.pcapng'}}, "
        f"{{at: p02, write: '{here}/{{probe}}.pcapng'}}]\n"
    )
    plan = read_plan(text)
    assert collect.hand_out(plan, text, collect.connector(None)) == {}
    made.pass_until(START_S + 60)
    return plan, text


def test_what_stations_captured_comes_with_their_results(stations: Stations, tmp_path: Path) -> None:
    plan, text = handed(stations, tmp_path)
    result = collect.collect(plan, text, collect.connector(None))
    found = Hostile("none", [], [], [], True, False)
    check_captures(stations, result, found, "")
    assert result.is_complete and (found.wrong, found.missing) == ([], [])
    assert [Path(one.files[0]).name for one in result.captures] == [
        f"p0{n}-{of}.pcapng" for n in (0, 2) for of in (1, 2)
    ]
    assert all(one.result and one.result.frames > 40 for one in result.captures)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.pcapng")}
    assert collect.collect(plan, text, collect.connector(None)).is_complete  # What is here isn't fetched again.
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.pcapng")} == before
    assert collect.forget(plan, text, collect.connector(None)) == {}
    assert {path.suffix for one in stations.stations for path in one.folder.iterdir()} == {".fetched"}


def test_a_file_that_cant_be_fetched_is_named_and_kept_by_its_station(stations: Stations, tmp_path: Path) -> None:
    here = tmp_path / "here"
    plan, text = handed(stations, here)  # There is no such folder.
    result = collect.collect(plan, text, collect.connector(None))
    assert [one.why for one in result.captures] == [
        f"what was captured can't be fetched: {here}/.p0{n}-{of}.pcapng.part: No such file or directory"
        for n in (0, 2)
        for of in (1, 2)
    ]
    assert set(result.faults) == result.missing == {"p00", "p02"}
    assert all(one.bound_ns is not None for one in result.pairs)  # The rest is there.
    here.mkdir()
    (damaged,) = stations.stations[0].folder.glob("*.00002.write.pcapng")
    octets = damaged.read_bytes()
    damaged.write_bytes(octets[:-1] + bytes([octets[-1] ^ 1]))
    result = collect.collect(plan, text, collect.connector(None))
    assert [one.why for one in result.captures] == [
        "what was captured can't be fetched: p00-1.pcapng is not as it was captured: see to the station's disk", "", "", "",
    ]  # fmt: skip
    assert result.missing == {"p00"} and not (here / "p00-1.pcapng").exists() and (here / "p00-2.pcapng").exists()


def test_stations_whose_disks_are_full_say_so(
    stations: Stations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*of: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(PcapngWriter, "write", full)
    plan, text = handed(stations, tmp_path)
    result = collect.collect(plan, text, collect.connector(None))
    assert all("No space left on device" in one.why for one in result.captures) and not result.is_complete
    assert all(one.bound_ns is not None for one in result.pairs) and not result.missing


def test_stations_that_are_befallen_leave_no_wrong_file(tmp_path: Path) -> None:
    for seed in range(4100, 4100 + FAULTS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        one = hostile_stations(seed, folder)
        assert (seed, one.kind, one.wrong, one.unnamed, one.missing) == (seed, one.kind, [], [], [])
