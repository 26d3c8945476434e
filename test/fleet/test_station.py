# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Stations beside modelled probes: plans kept and run without a host, results fetched later, against the model's truth; faults."""

import errno
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from argparse import Namespace
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from liteprobe.host.agent import Agent, Keys, make_keys
from liteprobe.host.base.errors import DataError, ProbeError, UsageError
from liteprobe.host.cli.commands.station import keep
from liteprobe.host.cli.main import make_parser
from liteprobe.host.cli.stored import Keeper
from liteprobe.host.fleet import collect
from liteprobe.host.fleet.collect import hand_out
from liteprobe.host.fleet.experiment import ExperimentResult
from liteprobe.host.fleet.halves import HalfWay
from liteprobe.host.fleet.plan import read_plan
from liteprobe.host.fleet.station import ProbeStation, check_private, envelope, key_of
from liteprobe.host.serve.metrics import serve
from liteprobe.host.serve.station_metrics import StationMetrics
from liteprobe.host.store.store import ResultStore
from liteprobe.sim.drivers.system.fleet import name_of
from liteprobe.sim.drivers.system.fleet_stations import COUNT, START_S, Killed, Stations, hostile
from liteprobe.sim.drivers.tools.wire import is_full
from liteprobe.sim.models.probe.fleet import TAI_NS

FAULTS = 16 if is_full() else 8
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Stations]:
    """Three stations, reached over loopback."""
    made = Stations(tmp_path)
    with ExitStack() as stack:
        made.serve(stack)
        yield made


def check_true(fleet: Stations, result: ExperimentResult, without: Collection[str] = ()) -> None:
    """Hold all figures against what the model did; those of ``without`` have none, and say why."""
    for one in result.pairs:
        if {one.sender, one.receiver} & set(without):
            assert one.delays is None and one.why, one
            continue
        true_ns, lost = fleet.bench.truth(int(one.sender[1:]), int(one.receiver[1:]))
        assert (one.count("sent"), one.count("lost"), one.count("received")) == (20, lost, len(true_ns)), one.why
        assert one.delays is not None and one.bound_ns is not None, one.why
        assert abs(one.delays["mean"] - sum(true_ns) / len(true_ns)) < 2.5 * one.bound_ns + 8


def test_a_plan_is_run_without_a_host_and_its_result_fetched_later(fleet: Stations) -> None:
    text = fleet.text()
    plan = read_plan(text)
    assert hand_out(plan, text, collect.connector(None)) == {}
    with pytest.raises(ProbeError, match="it is not done yet: collect it in"):
        collect.collect(plan, text, collect.connector(None))
    fleet.pass_until(START_S + 2 * plan.round_ns / 1e9)
    for _ in range(2):  # Whoever breaks off may collect again.
        result = collect.collect(plan, text, collect.connector(None))
        check_true(fleet, result)
        assert result.is_complete and {one.start_time_ns for one in result.pairs} == {
            START_S * 10**9,
            START_S * 10**9 + plan.round_ns,
        }
    assert collect.forget(plan, text, collect.connector(None)) == {}
    with pytest.raises(ProbeError, match="its result was fetched already"):
        collect.collect(plan, text, collect.connector(None))
    with pytest.raises(ProbeError, match="its result fetched: give the plan another start_tai"):
        hand_out(plan, text, collect.connector(None))


def test_a_station_killed_between_two_starts_goes_on_with_the_second(fleet: Stations) -> None:
    text = fleet.text(more="round_every: 30s\n")
    plan = read_plan(text)
    hand_out(plan, text, collect.connector(None))
    fleet.pass_until(START_S + 2)  # After the first of two starts.
    fleet.replace(1)  # Killed, and there again at once: it goes on with the second.
    fleet.pass_until(START_S + 2 * plan.round_ns / 1e9)
    check_true(fleet, collect.collect(plan, text, collect.connector(None)))


def test_a_station_killed_in_mid_run_says_so_and_the_others_have_theirs(
    fleet: Stations, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = fleet.text(more="round_every: 30s\n")
    plan = read_plan(text)
    hand_out(plan, text, collect.connector(None))
    settle = HalfWay.settle

    def killed(way: HalfWay, missing: Callable[[], int]) -> None:
        if way.half.start_ns == START_S * 10**9 and way.here.url == f"sim://{name_of(1)}":
            raise Killed  # All frames were sent, and none fetched.
        settle(way, missing)

    monkeypatch.setattr(HalfWay, "settle", killed)
    with pytest.raises(Killed):
        fleet.pass_until(START_S + 2)
    fleet.replace(1)
    fleet.pass_until(START_S + 60)
    result = collect.collect(plan, text, collect.connector(None))
    first = [(one.sender, one.receiver) for one in plan.rounds()[0]]
    for one in result.pairs:
        if (one.sender, one.receiver) in first and name_of(1) in (one.sender, one.receiver):
            assert one.delays is None and "p01: late: the station was not there at the start (killed, or" in one.why
        else:
            check_true(fleet, ExperimentResult([one], {}))


def test_a_station_that_is_away_at_a_start_says_so_and_the_others_have_theirs(fleet: Stations) -> None:
    text = fleet.text(more="round_every: 30s\n")
    plan = read_plan(text)
    hand_out(plan, text, collect.connector(None))
    fleet.away = {1}
    fleet.pass_until(START_S + 2)
    fleet.away = set()
    fleet.replace(1)
    fleet.pass_until(START_S + 2 * plan.round_ns / 1e9)
    result = collect.collect(plan, text, collect.connector(None))
    for one in result.pairs:
        is_first = one.name in [f"{a.sender} to {a.receiver}" for a in plan.rounds()[0]]
        if is_first and name_of(1) in (one.sender, one.receiver):
            assert one.delays is None and "the station was not there at the start" in one.why
        else:
            check_true(fleet, ExperimentResult([one], {}))


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("unlocked", "p01: not locked: its clock is free-running"),
        ("bound", "p01: not locked well: the error of its clock is 5,000.0 ns"),
        ("busy", "p01: busy: "),
        ("absent", "p01: lost: no answer"),
        ("no link", "p01: the link of port 0"),
        ("second", "p01: its clock disagrees with the others by +1.000 s"),
    ],
)
def test_a_probe_that_is_not_fit_at_its_start_is_named_and_the_rest_is_measured(
    fleet: Stations, fault: str, said: str
) -> None:
    text = fleet.text()
    plan = read_plan(text)
    assert hand_out(plan, text, collect.connector(None)) == {}
    fleet.bench.fault(fault, 1, 1.0)
    fleet.pass_until(START_S + 2 * plan.round_ns / 1e9)
    result = collect.collect(plan, text, collect.connector(None))
    check_true(fleet, result, {name_of(1)})
    assert all(said in one.why for one in result.pairs if name_of(1) in (one.sender, one.receiver))


def test_plans_that_cant_be_kept_are_refused_each_with_its_reason(
    fleet: Stations, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = collect.connector(None)
    late = fleet.text(TAI_NS // 10**9 - 5)
    with pytest.raises(ProbeError, match="start_tai is past, or too near"):
        hand_out(read_plan(late), late, connect)
    text = fleet.text()
    assert hand_out(read_plan(text), text, connect) == {} == hand_out(read_plan(text), text, connect)
    other = fleet.text(START_S + 3)
    with pytest.raises(ProbeError, match=f"busy: plan {key_of(text).hex()} has this probe until TAI"):
        hand_out(read_plan(other), other, connect)
    untimed = text.replace(f"start_tai: {START_S}", "")
    with pytest.raises(UsageError, match="stations need 'start_tai'"):
        hand_out(read_plan(untimed), untimed, connect)
    # Another version, which a host finds out, and which the station would refuse by itself.
    octets = envelope(other, name_of(0), "0.0.9")
    with connect(read_plan(text).probes[0]) as client, pytest.raises(ProbeError, match=r"LiteProbe .*the host 0\.0\.9"):
        client.set("plan", key_of(other) + bytes(4) + len(octets).to_bytes(4, "little") + octets)
    for part in (
        b"",
        b"x",
        bytes(16),
        bytes(8) + (9).to_bytes(4, "little") + bytes(6),
        b"k" * 8 + bytes(4) + b"\1\0\0\0?",
    ):
        with connect(read_plan(text).probes[0]) as client, pytest.raises(ProbeError):
            client.set("plan", part)
    monkeypatch.setattr(collect, "version", lambda: "0.0.9")
    with pytest.raises(ProbeError, match=r"its station is LiteProbe .*, this host 0\.0\.9: install the same"):
        hand_out(read_plan(other), other, connect)
    assert [len(one.plans) for one in fleet.stations] == [1] * COUNT


def test_a_full_disk_loses_nothing_that_was_measured(fleet: Stations, monkeypatch: pytest.MonkeyPatch) -> None:
    text = fleet.text()
    plan = read_plan(text)
    is_full = [True]
    fsync = os.fsync

    def full(number: int) -> None:
        if is_full[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(number)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ProbeError, match=r"the plan can't be kept \(No space left on device\)"):
        hand_out(plan, text, collect.connector(None))
    is_full[0] = False
    assert hand_out(plan, text, collect.connector(None)) == {}
    is_full[0] = True
    fleet.pass_until(START_S + 2)
    assert [one.counts["unwritten"] for one in fleet.stations] == [2] * COUNT
    assert "No space left on device" in fleet.stations[0].state_text()
    is_full[0] = False
    fleet.pass_until(START_S + 2 * plan.round_ns / 1e9)
    check_true(fleet, collect.collect(plan, text, collect.connector(None)))
    assert not [path for n in range(COUNT) for path in (fleet.folder / f"s{n}").glob(".*")]


def test_who_is_missing_at_collection_is_named_and_nothing_is_let_go(fleet: Stations, tmp_path: Path, run: Run) -> None:
    text, file, found = fleet.text(), tmp_path / "plan.yaml", tmp_path / "found.json"
    file.write_text(text)
    code, out, err = run("experiment", str(file), "--by-stations")
    assert (code, err) == (0, "") and f"3 of 3 stations have the plan: first start TAI {START_S}" in out
    fleet.pass_until(START_S + 2 * read_plan(text).round_ns / 1e9)
    kept = fleet.folder / "s2"
    kept.rename(fleet.folder / "moved")
    kept.mkdir()
    code, out, err = run("experiment", str(file), "--collect", "--json", str(found))
    assert code == 0 and "p02 is missing: p02: a result can't be read (No such file or directory)" in err
    content = json.loads(found.read_text())
    assert sum(one["mean"] is not None for one in content["pairs"]) == 2 and list(content["faults"]) == ["p02"]
    kept.rmdir()
    (fleet.folder / "moved").rename(kept)
    code, out, err = run("experiment", str(file), "--collect", "--json", str(found))
    assert (code, err) == (0, "") and json.loads(found.read_text())["is_complete"] is True
    code, _, err = run("experiment", str(file), "--collect")
    assert code == 1 and err.count("its result was fetched already") == 3


def test_a_damaged_result_is_refused(fleet: Stations) -> None:
    text = fleet.text()
    plan = read_plan(text)
    hand_out(plan, text, collect.connector(None))
    fleet.pass_until(START_S + 2 * plan.round_ns / 1e9)
    path = next((fleet.folder / "s0").glob("*.half"))
    octets = bytearray(path.read_bytes())
    octets[len(octets) // 2] ^= 0x10
    path.write_bytes(octets)
    result = collect.collect(plan, text, collect.connector(None))
    assert list(result.faults) == [name_of(0)] and "damaged" in result.faults[name_of(0)]
    check_true(fleet, result, {name_of(0)})


def test_a_damaged_plan_is_named_at_the_start_of_a_station(tmp_path: Path) -> None:
    (tmp_path / "00.plan").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"00\.plan is damaged .*: remove it, and hand the plan out again"):
        ProbeStation(tmp_path, lambda: pytest.fail("opened"))


def test_a_key_that_is_not_known_hands_nothing_out(tmp_path: Path) -> None:
    for name in ("station", "lab", "stranger"):
        make_keys(tmp_path / name)
    one = ProbeStation(tmp_path / "kept", lambda: pytest.fail("opened"))
    agent = Agent("s", "tcp://127.0.0.1:0", Keys.read(tmp_path / "station.key_secret"), [tmp_path / "lab.key"])
    one.offer(agent)
    with agent:
        address = agent.address.removeprefix("tcp://")
        where = f"{{url: 'station://{address}', station_key: {tmp_path / 'station.key'}}}"
        start_s = int(time.time()) + 300
        text = f"probes: {{a: {where}, b: {{url: 'station://127.0.0.1:9'}}}}\nstart_tai: {start_s}\n"
        text += "train: {length: 60, count: 2}\n"
        plan = read_plan(text)
        stranger = collect.connector(Keys.read(tmp_path / "stranger.key_secret"))
        with pytest.raises(ProbeError, match="does not know the key of this end"):
            stranger(plan.probes[0])
        with pytest.raises(UsageError, match="'b': its station_key and --keys of this host belong together"):
            hand_out(plan, text, stranger)
        with collect.connector(Keys.read(tmp_path / "lab.key_secret"))(plan.probes[0]) as client:
            assert client.get("state") == "idle, 0 plans kept"
    assert not one.plans and agent.counts["denied"] >= 1


@pytest.mark.parametrize(
    "address", ["tcp://0.0.0.0:5582", "tcp://8.8.8.8:5582", "tcp://[::]:5582", "tcp://example.org:5582"]
)
def test_an_address_that_the_world_can_reach_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="private address"):
        check_private(address, True)
    for good in (
        "tcp://10.8.0.2:1",
        "tcp://192.168.1.2:1",
        "tcp://100.64.1.1:1",
        "tcp://[fd00::1]:1",
        "tcp://127.0.0.1:1",
    ):
        check_private(good, True)
    with pytest.raises(UsageError, match="both ends need keys"):
        check_private("tcp://10.8.0.2:5582", False)


def test_faults_of_stations_and_probes_leave_no_wrong_figure_and_are_named(tmp_path: Path) -> None:
    for seed in range(2000, 2000 + FAULTS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        one = hostile(seed, folder)
        assert (seed, one.kind, one.wrong, one.unnamed, one.missing) == (seed, one.kind, [], [], [])


# Beside it ----------------------------------------------------------------------------------------


def test_prometheus_and_a_store_have_what_came_to_this_end(fleet: Stations, tmp_path: Path) -> None:
    metrics = StationMetrics(fleet.stations[1])
    fleet.stations[1].seen.append(metrics.take)
    args = Namespace(store=str(tmp_path / "store"), probe="sim://p01", command="station")
    args.keeper = Keeper(args)
    fleet.stations[1].seen.append(lambda half: keep(args, half))
    text = fleet.text()
    plan = read_plan(text)
    hand_out(plan, text, collect.connector(None))
    fleet.pass_until(START_S + 2 * plan.round_ns / 1e9)
    server = serve(metrics, 0)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics") as answer:
            lines = answer.read().decode().splitlines()
    finally:
        server.shutdown()
        server.server_close()
    for other in (0, 2):
        true_ns = fleet.bench.truth(other, 1)[0]
        pair = f'pair="p0{other} to p01"'
        assert f'liteprobe_station_frames_total{{event="received",{pair}}} {len(true_ns):.1f}' in lines
        assert f'liteprobe_station_measured{{end="hears",{pair}}} 1.0' in lines
        (line,) = [one for one in lines if one.startswith(f'liteprobe_station_delay_seconds{{{pair},quantile="1"}}')]
        assert abs(float(line.split()[-1]) - max(true_ns) / 1e9) < 1e-6
        store = ResultStore(tmp_path / "store")
        rows = [row for file in store.files("histograms") for row in store.read(file).to_pylist()]
        own = [row for row in rows if row["part"] == f"p0{other} to p01"]
        assert sum(row["count"] for row in own) == len(true_ns)
        assert max(row["high"] for row in own) >= max(true_ns) - 1e3
    assert 'liteprobe_station_events_total{event="measured"} 4.0' in lines and "liteprobe_station_plans 1.0" in lines
    assert {one["uncertainty_ns"] for file in store.files("runs") for one in store.read(file).to_pylist()} == {math.inf}


def test_the_unit_of_systemd_is_one(tmp_path: Path, run: Run) -> None:
    code, out, _ = run("station", "--unit")
    unit = tmp_path / "liteprobe-station.service"
    unit.write_text(out)
    (command,) = re.findall(r"ExecStart=/usr/bin/env liteprobe (.*)", out)
    assert code == 0 and make_parser("station").parse_args(command.split()).folder == Path("/var/lib/liteprobe-station")
    if shutil.which("systemd-analyze"):
        done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_the_command_serves_until_a_signal_and_tells_what_it_kept(tmp_path: Path) -> None:
    line = [
        sys.executable,
        "-m",
        "liteprobe.host.cli",
        "station",
        str(tmp_path / "kept"),
        "--address",
        "tcp://127.0.0.1:0",
    ]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stderr
        said = process.stdout.readline()
        address = re.search(r"at (tcp://127\.0\.0\.1:\d+), 0 plans kept", said)
        assert address, said
        text = f"probes: {{a: {{url: 'station://{address[1][6:]}'}}, b: {{url: 'station://127.0.0.1:9'}}}}\n"
        text += f"start_tai: {int(time.time()) + 3600}\ntrain: {{length: 60, count: 2}}\n"
        plan = read_plan(text)
        assert list(hand_out(plan, text, collect.connector(None))) == ["b"]
        process.kill()  # What it took is there again.
        process.wait()
    assert len(ProbeStation(tmp_path / "kept", lambda: pytest.fail("opened")).plans) == 1


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--by-stations", "--collect"], "--by-stations begins and --collect ends"),
        ([], "has a station: give --by-stations"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path: Path, run: Run, more: list[str], said: str) -> None:
    text = "probes: {a: {url: 'station://127.0.0.1:9'}, b: {url: 'station://127.0.0.1:10'}}\nstart_tai: 9999999999\n"
    (tmp_path / "plan.yaml").write_text(text.replace("9999999999", "4000000000") + "train: {length: 60, count: 2}\n")
    code, _, err = run("experiment", str(tmp_path / "plan.yaml"), *more)
    assert code == 2 and said in err
