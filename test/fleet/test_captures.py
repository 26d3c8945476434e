# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Captures beside an experiment, on modelled probes: their files against what came to each probe; faults; what is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from liteprobe.cores.formats import PRESETS
from liteprobe.host.base.errors import UsageError
from liteprobe.host.fleet import collect
from liteprobe.host.fleet.plan import read_plan
from liteprobe.sim.drivers.system.fleet import FleetBench
from liteprobe.sim.drivers.system.fleet_captures import FleetCapturer, frames_of, hostile
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


def test_trains_and_stations_refuse_captures() -> None:
    own = "captures: [{at: p01, write: a.pcapng}]\n"
    train = DOCUMENT.partition("defaults")[0] + "train: {length: 60, count: 9}\n" + own
    with pytest.raises(UsageError, match="'p01' hears a train, whose records take its capture"):
        read_plan(train)
    read_plan(train + "pairs: [{from: p01, to: p00}]")  # It only sends.
    text = DOCUMENT.replace("url: ", "url: station://") + "start_tai: 1800000000\n" + own
    with pytest.raises(UsageError, match="stations keep no captures: leave out 'captures'"):
        collect.hand_out(read_plan(text), text, collect.connector(None))
