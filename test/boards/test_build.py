# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""From sources to bitstream: a missed constraint fails, nothing is built twice, the first board meets its targets."""

import json
import os
import re
import subprocess
import sys
import threading
import warnings
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import arcs
import pytest

from liteprobe.boards import BOARDS, OTHER_NAMES, VERILOG_ONLY, board
from liteprobe.host.cli import main as cli
from liteprobe.host.cli.boards import BOARDS as LINES
from liteprobe.sim.drivers.tools.formal import NATIVE_YOSYS
from liteprobe.sim.drivers.tools.processes import is_running, run_group, wait_for
from liteprobe.soc.build import bitstream as soc_build
from liteprobe.soc.build import record
from liteprobe.soc.build.arguments import config_of, left_out, parse
from liteprobe.soc.build.bitstream import (
    PLACE_AND_ROUTE,
    TOP,
    ClockTiming,
    Design,
    EndedError,
    NotMetError,
    build,
    clocks_of,
    is_hopeless,
    late_crossings,
    misses,
    place_and_route,
    router_rounds,
    synthesize,
    with_settings,
)
from liteprobe.soc.build.flagships import FLAGSHIPS, chosen, first_seed
from liteprobe.soc.build.toolchain import TOOLS, BuildError, find_tool, run_tool, version_of
from liteprobe.soc.config import HOST_PORT, HOST_PORT_RAMS, HOSTS, Area, ProbeConfig, capacity

REPOSITORY = Path(__file__).parents[2]
ASKED = {"sys": 50.0, "timebase": 125.0, "eth_rx0": 125.0}
MET = [ClockTiming("eth_rx0", 130.0, 125.0), ClockTiming("sys", 50.0, 50.0), ClockTiming("timebase", 125.01, 125.0)]
SHARE_OF_LUTS = 80.0
FIVE_MINUTES_S = 300.0

TINY = f"""\
module {TOP}(input sys_clk, input a, output reg q);
reg [63:0] count = 0, sum = 0;
always @(posedge sys_clk) begin
    count <= count * 3 + a;
    sum <= sum + count;
    q <= ^sum;
end
endmodule
"""


def tiny(folder, mhz):
    """Return a design of a 64-bit multiplication and addition, to run at ``mhz``."""
    folder.mkdir()
    (folder / f"{TOP}.v").write_text(TINY)
    (folder / f"{TOP}.ys").write_text(f"read_verilog *.v\nsynth_ecp5 -top {TOP}\nwrite_json {TOP}.json\n")
    (folder / f"{TOP}.lpf").write_text(f'LOCATE COMP "sys_clk" SITE "P6";\nFREQUENCY PORT "sys_clk" {mhz} MHz;\n')
    arguments = ("--25k", "--package", "CABGA256", "--speed", "6", "--lpf-allow-unconstrained", *PLACE_AND_ROUTE)
    return Design(folder, "LFE5U-25F-6BG256C", arguments, {"sys": mhz})


def test_the_top_level_of_a_netlist_gets_the_settings_of_the_router():
    """nextpnr reads them there, and nowhere else (frontend/json_frontend.cc)."""
    modules = {"LUT4": {"attributes": {"blackbox": "1"}}, TOP: {"attributes": {"top": "00000001"}, "cells": {}}}
    settings = {"router2/bbMargin/x": "5"}
    found = json.loads(with_settings(json.dumps({"modules": modules}), settings))["modules"]
    assert found == modules | {TOP: modules[TOP] | {"settings": settings}}


def implement(tmp_path, mhz):
    design = tiny(tmp_path / "gateware", mhz)
    netlist, _ = synthesize(design, {"yosys": version_of("yosys")})
    run = tmp_path / "run"
    run.mkdir()
    return clocks_of(place_and_route(design, netlist, 1, run))


def test_a_tool_that_says_nothing_is_told_of_with_what_to_do_next(tmp_path, monkeypatch):
    (tool := tmp_path / "yosys").write_text("#!/bin/sh\nexec sleep 60\n")
    tool.chmod(0o755)
    monkeypatch.setattr("liteprobe.soc.build.toolchain.FIRST_CALL_S", 0.2)
    monkeypatch.setattr("liteprobe.soc.build.toolchain.find_tool", lambda name: str(tool))
    with pytest.raises(BuildError, match=r"yosys --version has said nothing.*Run this again"):
        version_of("yosys")


@pytest.mark.full
def test_missed_constraint_fails_soon_and_names_clock_fmax_and_target(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("liteprobe.soc.build.bitstream.ROUTER_ROUNDS", 20)
    with pytest.raises(BuildError, match=r"clock sys reaches \d+\.\d\d MHz, 400 MHz asked for") as error:
        implement(tmp_path, 400.0)
    assert error.value.exit_code == 1
    assert "once more, and what is late is routed anew" in capsys.readouterr().err
    log = tmp_path / "run" / "nextpnr.log"
    assert router_rounds(log) > 0
    assert "tmgfail=" in log.read_text(), "the last run is the one that tries again"


@pytest.mark.parametrize(
    ("fmax_mhz", "runs", "message"),
    [
        ([60.0], 1, None),
        ([40.0, 60.0], 2, None),
        ([40.0, 45.0], 2, "clock sys reaches 45.00 MHz"),
        ([40.0, None], 2, "clock sys reaches 40.00 MHz"),
        ([None], 1, "has not routed all in 201 rounds"),
    ],
)
def test_what_is_late_is_routed_anew_only_when_a_constraint_is_missed(fmax_mhz, runs, message, tmp_path, monkeypatch):
    """A router that settles at these frequencies, one a run; None: it does not settle."""
    made, asked_mhz = [], []

    def fake(_, arguments, run, log, is_hopeless):
        made.append("--tmg-ripup" in arguments)
        asked_mhz.append(float((run / f"{TOP}.lpf").read_text().split()[-2]))
        found = fmax_mhz[len(made) - 1]
        (run / "nextpnr.log").write_text(f"Info:     iter={50 if found else 201} wires=99 overused=99")
        assert is_hopeless() == (found is None)
        if found:
            clocks = {"$glbnet$sys_clk": {"achieved": found, "constraint": asked_mhz[-1]}}
            (run / "nextpnr.json").write_text(json.dumps({"fmax": clocks, "critical_paths": [], "utilization": {}}))
        return 0 if found else -9

    monkeypatch.setattr("liteprobe.soc.build.bitstream.run_tool", fake)
    design = tiny(tmp_path / "gateware", 50.0)
    (netlist := tmp_path / "netlist.json").write_text(json.dumps({"modules": {TOP: {"attributes": {"top": "1"}}}}))
    (run := tmp_path / "run").mkdir()
    if message is None:
        (clock,) = clocks_of(place_and_route(design, netlist, 1, run))
        assert (clock.fmax_mhz, clock.constraint_mhz) == (fmax_mhz[-1], 50.0)
    else:
        with pytest.raises(BuildError, match=message):
            place_and_route(design, netlist, 1, run)
    assert made == [False, True][:runs]
    assert asked_mhz == [51.0, 50.25][:runs]  # What is late by less than 2 % isn't ripped up.


def test_rounds_of_the_placer_are_none_of_the_router(tmp_path):
    log = tmp_path / "nextpnr.log"
    assert router_rounds(log) == 0
    log.write_text("Info: iter=700 steplen=0.785047 a=266.893158 penalty=[8.88, 8.88, 8.88, 8.88]\n")
    assert router_rounds(log) == 0
    with log.open("a") as lines:
        lines.write(
            "Info:     iter=1 wires=300 overused=2 overuse=2 tmgfail=7 archfail=NA\nInfo:     iter=12 wires=3 over"
        )
    assert router_rounds(log) == 12


@pytest.mark.parametrize(
    ("rounds", "left", "ends"),
    [
        (200, "overused=900 overuse=900", False),
        (201, "overused=900 overuse=900", True),
        (201, "overused=51 overuse=51", True),
        (201, "overused=1 overuse=1", False),
        (400, "overused=50 overuse=52 tmgfail=0", False),
        (300, "overused=1 overuse=1 tmgfail=50", True),
        (401, "overused=1 overuse=1 tmgfail=0", True),
    ],
)
def test_a_router_that_has_few_wires_left_has_twice_as_many_rounds(rounds, left, ends, tmp_path):
    log = tmp_path / "nextpnr.log"
    log.write_text(
        f"Info:     iter=1 wires=300 overused=99 overuse=99 archfail=NA\nInfo:     iter={rounds} wires=3 {left} archfail=NA\n"
    )
    assert is_hopeless(log) == ends


@pytest.mark.parametrize(("step", "ends"), [("0.785047", False), ("-nan", True), ("nan", True)])
def test_a_placer_without_a_step_is_ended_and_named(step, ends, tmp_path, monkeypatch):
    """As nextpnr 0.7 wrote it for half an hour."""

    def fake(_, arguments, run, log, is_over):
        (run / "nextpnr.log").write_text(f"Info: iter=5843 steplen={step} a=2924.489746\n")
        assert is_over() == ends
        return -9

    monkeypatch.setattr("liteprobe.soc.build.bitstream.run_tool", fake)
    design = tiny(tmp_path / "gateware", 50.0)
    (netlist := tmp_path / "netlist.json").write_text(json.dumps({"modules": {TOP: {"attributes": {"top": "1"}}}}))
    (run := tmp_path / "run").mkdir()
    (run / "nextpnr.out").write_text("killed\n")
    with pytest.raises(
        BuildError, match="placer does not settle: try another --seed" if ends else "nextpnr-ecp5 failed"
    ):
        place_and_route(design, netlist, 1, run)


@pytest.mark.full
def test_constraint_that_is_met_passes(tmp_path):
    (clock,) = implement(tmp_path, 20.0)
    assert (clock.name, clock.constraint_mhz) == ("sys", 20.0) and clock.fmax_mhz >= 20.0


def test_all_met_is_no_miss():
    assert misses(MET, ASKED) == []


@pytest.mark.parametrize(
    ("clock", "line"),
    [
        (ClockTiming("sys", 49.99, 50.0), "clock sys reaches 49.99 MHz, 50 MHz asked for"),
        (ClockTiming("sys", 90.0, 12.0), "clock sys was constrained to 12 MHz by mistake"),
        (ClockTiming("mystery", 90.0, 12.0), "clock mystery was constrained to 12 MHz by mistake"),
    ],
)
def test_each_miss_has_its_line(clock, line):
    clocks = [clock, *(c for c in MET if c.name != clock.name)]
    assert misses(clocks, ASKED) == [line]


def test_clock_that_nextpnr_does_not_report_is_a_miss():
    assert misses(MET[1:], ASKED) == ["clock eth_rx0 is not in the timing report, 125 MHz asked for"]


def test_digest_follows_the_sources_and_their_order_but_not_comments(tmp_path):
    design = tiny(tmp_path / "gateware", 50.0)
    path = design.folder / f"{TOP}.v"
    before = design.digest()
    path.write_text("// Date: today\n" + TINY)
    assert design.digest() == before
    path.write_text(TINY.replace("* 3", "* 5"))
    assert design.digest() != before
    path.write_text("\n".join([*TINY.splitlines()[:-2:-1], *TINY.splitlines()[:-1]]))
    assert design.digest() != before
    assert design.digest("seed 2") != design.digest("seed 1")


@pytest.mark.parametrize(
    ("own", "asked", "met", "tried"),
    [(4, None, {4}, [4]), (4, None, {2}, [4, 1, 2]), (4, 2, {2}, [2]), (4, 2, {4}, [2]), (2, None, {9}, [2, 1, 3])],
)
def test_other_seeds_are_tried_where_none_is_asked_for(own, asked, met, tried, tmp_path, monkeypatch, capsys):
    made = []

    def implement(design, facts, seed, run, is_over):
        made.append(seed)
        if seed not in met:
            raise NotMetError("timing is not met:\n  clock sys")
        leave_products(facts, seed, run)

    stand_in(monkeypatch, replace(tiny(tmp_path / "gateware", 50.0), seed=own), implement)
    for _ in range(2):  # What was met is not made again.
        if met.isdisjoint(tried):
            with pytest.raises(NotMetError):
                build("a board", seed=asked, out=tmp_path / "out", at_once=1)
            break
        report = build("a board", seed=asked, out=tmp_path / "out", at_once=1)
        assert (report["seed"], report["seeds_tried"]) == (tried[-1], tried)
        assert (tmp_path / "out" / f"{TOP}.bit").read_text() == str(tried[-1])
    assert made == tried
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("seed")]
    assert said == [f"seed {one}: timing is not met; another one is tried" for one in tried[:-1]]


def leave_products(facts, seed, run):
    """Leave what a seed that is met leaves."""
    for product in (f"{TOP}.bit", f"{TOP}.svf"):
        (run / product).write_text(str(seed))
    (run / "report.json").write_text(json.dumps({name: facts[name] for name in ("key", "seed", "seeds_tried")}))


def stand_in(monkeypatch, design, implement):
    """Put a design, and what implements its seeds, in the place of the real ones."""
    monkeypatch.setattr(soc_build, "elaborate", lambda *_: (design, {}))
    monkeypatch.setattr(soc_build, "version_of", lambda tool: "0")
    monkeypatch.setattr(soc_build, "synthesize", lambda *_: (design.folder / "x.json", 0.0))
    monkeypatch.setattr(soc_build, "implement", implement)


@pytest.mark.parametrize(
    ("missed", "met", "begun"),
    [(set(), 1, {4, 1}), ({1}, 4, {4, 1, 2}), ({4, 1}, 2, {4, 1, 2}), ({4, 1, 2}, None, {4, 1, 2})],
)
def test_seeds_run_side_by_side_and_the_first_that_is_met_ends_the_other(missed, met, begun, tmp_path, monkeypatch):
    """Seeds 4 and 1 begin together; one that is neither met nor missed runs until it is ended."""
    began, ended, both = set(), set(), threading.Barrier(2)

    def implement(design, facts, seed, run, is_over):
        began.add(seed)
        if seed in (4, 1):
            both.wait(10)
        if seed in missed:
            raise NotMetError("timing is not met")
        if seed == met:
            if 2 in begun and met != 2:  # Not before the third has begun, in the place of the one that was missed.
                wait_for(lambda: 2 in began)
            leave_products(facts, seed, run)
            return
        wait_for(is_over)
        ended.add(seed)
        raise EndedError

    stand_in(monkeypatch, replace(tiny(tmp_path / "gateware", 50.0), seed=4), implement)
    if met is None:
        with pytest.raises(NotMetError):
            build("a board", out=tmp_path / "out", at_once=2)
    else:
        assert build("a board", out=tmp_path / "out", at_once=2)["seed"] == met
    assert (began, ended) == (begun, begun - missed - {met})


def test_a_tool_that_is_ended_takes_along_what_it_has_started(tmp_path, monkeypatch):
    """One of PATH may be a script: it leads a process group, all of which ends."""
    tool = tmp_path / "yosys"
    tool.write_text("#!/bin/sh\nsleep 600 &\necho $! > child\nwait\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    child = tmp_path / "child"
    assert (
        run_tool("yosys", [], tmp_path, tmp_path / "log", lambda: child.exists() and child.read_text().endswith("\n"))
        < 0
    )
    wait_for(lambda: not is_running(int(child.read_text())))


# The record of a build ------------------------------------------------------------------------------


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Gives the report of a build of a design with some text in its Verilog, as far as a record goes."""

    def make(name, text=TINY, settings=None, **environment):
        folder = tiny(tmp_path / name, 50.0).folder
        (folder / f"{TOP}.v").write_text(text)
        for variable, value in environment.items():
            monkeypatch.setenv(variable, value)
        found = record.record(folder, ["--25k", "--placer", "heap"], settings or {})
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"date": name, "seconds": {"total": len(name)}, "seed": 1, "record": found}))
        return path

    return make


def test_two_builds_of_one_thing_have_no_difference_but_times(recorded, capsys):
    assert record.main([str(recorded("first")), str(recorded("the second"))]) == 0
    assert capsys.readouterr().out == "no difference but times\n"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"text": TINY.replace("* 3", "* 5")}, "record.sources.liteprobe.v: "),
        ({"settings": {"router2/bbMargin/x": "5"}}, 'record.nextpnr_settings.router2/bbMargin/x: null -> "5"'),
        ({"PYTHONHASHSEED": "7"}, 'record.environment.variables.PYTHONHASHSEED: null -> "7"'),
    ],
)
def test_in_what_two_builds_differ_is_said(change, said, recorded, monkeypatch, capsys):
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    before = recorded("before")
    assert record.main([str(before), str(recorded("after", **change))]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(said)


def test_a_record_names_tools_packages_and_the_commit_but_no_folder_of_this_machine(recorded):
    text = recorded("one").read_text()
    found = json.loads(text)["record"]
    assert set(found["tools"]) == {"yosys", "nextpnr-ecp5", "ecppack"}
    assert all(len(tool["sha256"]) == 64 for tool in found["tools"].values())
    assert found["packages"]["migen"] == metadata.version("migen") and found["nextpnr"] == ["--25k", "--placer", "heap"]
    assert re.fullmatch("[0-9a-f]{40}(-dirty)?", found["commit"])
    assert str(REPOSITORY) not in text and str(Path.home()) not in text


def test_a_report_without_a_record_is_a_usage_error(tmp_path, recorded, capsys):
    (tmp_path / "old.json").write_text('{"seed": 1}')
    assert record.main([str(recorded("one")), str(tmp_path / "old.json")]) == 2
    assert "old.json has no record of its build: build it again" in capsys.readouterr().err
    assert record.main([str(tmp_path / "none.json"), str(tmp_path / "old.json")]) == 2


def test_a_build_that_is_terminated_ends_its_tools(tmp_path):
    """By SIGTERM, as the command line does it to what it has started."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("yosys", "nextpnr-ecp5", "ecppack"):
        (tools / name).write_text(
            f'#!/bin/sh\n[ "$1" = --version ] && echo 1.0 && exit\necho $$ > {tmp_path}/pid\nexec sleep 600\n'
        )
        (tools / name).chmod(0o755)
    command = [
        sys.executable,
        "-m",
        "liteprobe.soc.build.bitstream",
        "versa_ecp5",
        "--no-discipline",
        "--no-cpu",
        "--out",
        "out",
    ]
    environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
        process.terminate()
        assert process.wait() == 130
        wait_for(lambda: not is_running(int((tmp_path / "pid").read_text())))
    finally:
        process.kill()


def run_build(*arguments):
    command = [sys.executable, "-m", "liteprobe.soc.build.bitstream", *arguments]
    return run_group(command, cwd=REPOSITORY)


@pytest.mark.full
@pytest.mark.timeout(7200)
def test_colorlight_5a_75b_meets_timing_area_and_time():
    result = run_build("colorlight_5a_75b")
    assert result.returncode == 0, result.stderr
    out = REPOSITORY / "build" / "colorlight_5a_75b"
    report = json.loads((out / "report.json").read_text())
    assert report["config"]["ports"] == 2
    assert report["config"]["link"] == "shared"
    assert report["config"]["with_cpu"]
    asked = {name: entry["constraint_mhz"] for name, entry in report["clocks"].items()}
    # nextpnr rounds a period to a picosecond.
    assert asked == pytest.approx(
        {"eth_rx0": 125.0, "eth_rx1": 125.0, "sys": 50.0, "timebase": 125.0, "timebase2x": 250.0}, abs=0.01
    )
    assert all(entry["fmax_mhz"] >= entry["constraint_mhz"] for entry in report["clocks"].values())
    assert report["area"]["lut4"]["available"] == 24288
    assert report["area"]["lut4"]["percent"] <= SHARE_OF_LUTS
    assert (out / f"{TOP}.bit").read_bytes().find(b"Part: LFE5U-25F-6CABGA256") > 0
    again = run_build("colorlight_5a_75b")
    assert again.returncode == 0
    assert again.stderr == "", "it was built twice"


ELABORATE = """
import logging, sys
from pathlib import Path
from liteprobe.soc.build.bitstream import elaborate, synthesize, version_of
from liteprobe.soc.build.flagships import chosen

logging.disable(logging.INFO)
(one,) = chosen(sys.argv[2:3])
design, _ = elaborate(one.board, one.config, Path(sys.argv[1]))
yosys = version_of("yosys")
digest = design.digest(yosys)
netlist = "" if digest in sys.argv[3:] else synthesize(design, {"yosys": yosys})[0]
print(digest, netlist)
"""
#: Budgets of all flagships; and what netlists take, of sources that were synthesized before: a run of Yosys is a tenth of all
#: tests.
AREAS = Path(__file__).with_name("areas.json")
FIRST = "colorlight_5a_75b:train"
ROOM = 0.95  # Of what a device holds, that a flagship may take: less room, and not every seed is routed.
SLACK = 1.05  # By which a budget may be above what is estimated: more, and it holds nothing.
OVER, UNDER = 0.03, 0.05  # By which a netlist may be above the table of parts, or below it.


def netlist_of(one, known, tmp_path):
    """Return the digest of what is synthesized of a flagship and its area, which is None where the digest is ``known``."""
    native = tmp_path / "yosys"
    native.write_text(f'#!/bin/sh\nexec {NATIVE_YOSYS} "$@"\n')
    native.chmod(0o755)
    out = tmp_path / "build"
    out.mkdir()
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    command = [sys.executable, "-c", ELABORATE, str(out), str(one), *known]
    done = run_group(command, cwd=REPOSITORY, env={**os.environ, "PATH": path})
    assert done.returncode == 0, done.stderr
    digest, _, netlist = done.stdout.splitlines()[-1].partition(" ")
    return digest, arcs.counted(Path(netlist)) if netlist else None


def assert_fits(one, area):
    """Hold the area of a netlist against budget, block RAMs and the table of parts."""
    areas, target, estimated = json.loads(AREAS.read_text()), board(one.board), one.config.area
    budget = areas["budgets"][str(one)]
    assert (area["sites"] <= budget["sites"], area["arcs"] <= budget["arcs"]) == (True, True), (area, budget)
    assert area["block RAMs"] <= target.block_rams
    ratios = area["sites"] / estimated.sites, area["arcs"] / estimated.arcs
    assert min(ratios) >= 1 - UNDER and max(ratios) <= 1 + OVER, (
        f"{one}: {dict(area)}, by the table of parts {estimated}: measure soc/config.py anew (tools/arcs.py)"
    )


def test_netlist_fits_the_first_board(tmp_path):
    """Of what ships, with its processor; nothing is placed, which ``--full`` and ``./run bench train board`` do."""
    (one,) = chosen([FIRST])
    known = json.loads(AREAS.read_text())["netlists"]
    digest, area = netlist_of(one, known, tmp_path)
    if area:
        warnings.warn(
            f"synthesized anew: to spare that, note in {AREAS.name} {json.dumps({digest: dict(area)})}", stacklevel=1
        )
    assert_fits(one, area or known[digest])


@pytest.mark.full
@pytest.mark.parametrize("one", FLAGSHIPS, ids=str)
def test_the_netlist_of_each_flagship_is_within_its_budget(one, tmp_path):
    digest, area = netlist_of(one, [], tmp_path)
    assert_fits(one, area)
    noted = {digest: dict(area)}
    assert str(one) != FIRST or json.loads(AREAS.read_text())["netlists"] == noted, (
        f"{AREAS} is of other gateware: write {json.dumps(noted)} into it"
    )


@pytest.mark.parametrize("one", FLAGSHIPS, ids=str)
def test_the_estimate_of_each_flagship_is_within_its_budget_which_leaves_room(one):
    """By the table of parts in soc/config.py, which netlists are held against."""
    budget, estimated = Area(**json.loads(AREAS.read_text())["budgets"][str(one)]), one.config.area
    assert estimated.sites <= budget.sites and estimated.arcs <= budget.arcs, (estimated, budget)
    assert budget.sites <= SLACK * estimated.sites and budget.arcs <= SLACK * estimated.arcs, "lower the budget"
    most = capacity(board(one.board).lut_sites)
    assert budget.sites <= ROOM * most.sites and budget.arcs <= ROOM * most.arcs


def test_each_flagship_has_a_budget():
    assert set(json.loads(AREAS.read_text())["budgets"]) == {str(one) for one in FLAGSHIPS}


def test_configuration_that_does_not_fit_is_a_usage_error(tmp_path):
    result = run_build("colorlight_5a_75b", "--link", "own", "--out", str(tmp_path))
    assert result.returncode == 2
    assert "use link=shared, or ports=1" in result.stderr


def test_more_than_a_monitor_of_one_port_needs_a_larger_board(tmp_path):
    result = run_build("colorlight_5a_75b", "--preset", "monitor", "--ports", "2", "--out", str(tmp_path))
    assert result.returncode == 2
    assert "build with --ports 1, or " in result.stderr
    assert "or take the board colorlight_i9 or versa_ecp5" in result.stderr


@pytest.mark.parametrize(("name", "ports", "has_cpu"), [("colorlight_i5", 1, False), ("versa_ecp5", 2, False)])
def test_a_monitor_has_by_default_what_its_board_holds(name, ports, has_cpu, tmp_path):
    result = run_build(name, "--preset", "monitor", "--no-compile", "--out", str(tmp_path))
    assert result.returncode == 0, result.stderr
    registers = json.loads((tmp_path / "csr.json").read_text())["csr_registers"]
    assert [f"port{port}_monitor_latch" in registers for port in range(3)] == [port < ports for port in range(3)]
    assert ("timer0_load" in registers) == has_cpu


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_that_is_missing_names_the_extra_that_has_it(name, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    typed = '"/nowhere/python" -m pip install "liteprobe[build]"'
    with pytest.raises(BuildError, match=re.escape(f"{name} is missing: install it on PATH, or type  {typed}")):
        find_tool(name)


def test_unknown_board_is_a_usage_error():
    result = run_build("colorlight_5a_75c")
    assert result.returncode == 2
    assert "colorlight_5a_75b" in result.stderr


@pytest.mark.parametrize("name", ["gateware", "netlists", "driver", "seed1"])
def test_a_folder_that_no_build_has_made_is_never_replaced(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(ValueError, match=f"holds '{name}', which no build has made .*give --out a new folder"):
        soc_build.claim(tmp_path)
    (tmp_path / name).rmdir()
    soc_build.claim(tmp_path)
    (tmp_path / name).mkdir()
    soc_build.claim(tmp_path)


@pytest.mark.parametrize("name", list(BOARDS))
def test_firmware_in_flash_is_behind_the_largest_bitstream(name):
    # Uncompressed, with block RAMs (ECP5 sysCONFIG Usage Guide, FPGA-TN-02039): 5.42 and 9.74 Mb.
    largest = {"25F": 5.42e6 / 8, "45F": 9.74e6 / 8}
    target = board(name)
    (size,) = (octets for part, octets in largest.items() if part in target.platform.device)
    assert size < target.flash_offset and target.flash_offset % 65536 == 0


@pytest.mark.parametrize(("delay_ns", "is_late"), [(3.4, False), (3.6, True)])
def test_a_path_to_a_clock_that_rises_together_must_be_short(delay_ns, is_late):
    """Such a path alone: nextpnr checks all others, or they go through crossings."""
    parts = [{"type": "clk-to-q", "delay": 0.5}, {"type": "routing", "delay": delay_ns - 0.5}]
    pairs = [
        ("posedge timebase2x_clk", "posedge $glbnet$crg_clkout1"),
        ("posedge $glbnet$crg_clkout1", "posedge $glbnet$crg_clkout0"),
        ("posedge timebase2x_clk", "<async>"),
    ]
    report = {"critical_paths": [{"from": start, "to": end, "path": parts} for start, end in pairs]}
    found = [f"a path from timebase2x to timebase takes {delay_ns:.2f} ns, 3.5 ns asked for"]
    assert late_crossings(report) == (found if is_late else [])


def test_a_build_takes_the_seed_of_the_flagship_that_it_is(elaborated):
    """By preset, processor and discipline; any other probe begins with seed 1."""
    monitor = ProbeConfig(preset="monitor", link="own", ports=1, with_cpu=False)
    for config, seed in ((monitor, 1), (ProbeConfig(), 3), (replace(monitor, with_cpu=True, link="shared"), 1)):
        assert elaborated("colorlight_5a_75b", config)[0].seed == seed
    assert first_seed("colorlight_5a_75b_v7_0", ProbeConfig()) == 2
    assert first_seed("colorlight_i9", ProbeConfig(preset="tester")) == 2
    assert first_seed("colorlight_i9", ProbeConfig(preset="tester", with_discipline=False)) == 1


def test_flagships_are_what_their_boards_hold_and_come_from_the_options_of_a_build():
    for one in FLAGSHIPS:
        one.config.check(board(one.board))
    assert len({str(one) for one in FLAGSHIPS}) == len(FLAGSHIPS)
    assert {one.board for one in FLAGSHIPS} == set(BOARDS)
    emulator = next(one.config for one in FLAGSHIPS if str(one) == "colorlight_5a_75b:emulator")
    assert (emulator.directions, emulator.with_cpu, emulator.spills, emulator.trace_depth) == (1, False, False, 0)


def test_flagships_are_chosen_by_board_or_by_board_and_preset():
    assert chosen([]) == list(FLAGSHIPS)
    assert [str(one) for one in chosen(["versa_ecp5", "colorlight_i9:replay"])] == [
        "colorlight_i9:replay",
        "versa_ecp5:train",
    ]
    with pytest.raises(
        ValueError, match="there is no flagship colorlight_i9:train: give BOARD or BOARD:PRESET of .*versa"
    ):
        chosen(["colorlight_i9:train"])


# What is built in unasked -------------------------------------------------------------------------


def checked(*arguments):
    """Return the configuration that a build is asked for, which its board can hold."""
    target = board(arguments[0])
    config = config_of(parse(arguments), target)
    config.check(target)
    return config


@pytest.mark.parametrize(
    ("arguments", "ports", "with_cpu", "with_streams"),
    [
        (["colorlight_5a_75b", "--preset", "generator"], 1, True, True),
        (["colorlight_5a_75b", "--preset", "monitor"], 1, False, False),
        (["colorlight_i9", "--preset", "generator"], 2, True, True),
        (["colorlight_i9", "--preset", "tester"], 2, True, False),
        (["colorlight_i9", "--preset", "tester", "--ports", "1"], 1, True, True),
    ],
)
def test_streams_are_sent_by_default_where_there_is_room(arguments, ports, with_cpu, with_streams):
    config = checked(*arguments)
    assert (config.ports, config.with_cpu, config.sends_streams) == (ports, with_cpu, with_streams)


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (["colorlight_i9", "--replay"], []),
        (["colorlight_i9", "--replay", "--no-discipline"], ["discipline of the clock"]),
        (["colorlight_i9", "--preset", "replay", "--ports", "1"], []),
        (["colorlight_i9", "--preset", "generator", "--replay"], ["configuration sets"]),
        (["colorlight_i9", "--preset", "tester", "--replay"], ["streams to send", "configuration sets"]),
        (["colorlight_i9", "--preset", "tester", "--replay", "--cpu"], ["streams to send", "configuration sets"]),
        (["colorlight_i9", "--preset", "replay"], ["configuration sets"]),
        (["colorlight_i9", "--preset", "replay", "--sets"], ["processor"]),
        (["colorlight_i9", "--preset", "tester"], ["streams to send"]),
        (["colorlight_5a_75b", "--replay", "--ports", "1", "--link", "own"], []),
        (["colorlight_5a_75b", "--preset", "generator"], []),
        (["colorlight_5a_75b", "--preset", "monitor"], ["processor"]),
    ],
)
def test_what_a_board_has_no_room_for_is_left_out_unless_asked_for_and_named(arguments, missing):
    config = checked(*arguments)
    assert list(left_out(config)) == missing


def test_a_tester_with_all_of_replay_does_not_fit_an_i9_and_the_refusal_names_what_to_leave_out():
    target = board("colorlight_i9")
    config = config_of(parse(["colorlight_i9", "--preset", "tester", "--replay", "--sets"]), target)
    with pytest.raises(ValueError, match=r"or no configuration sets \(--no-sets\), or .*--preset generator$"):
        replace(config, with_cpu=True).check(target)


@pytest.mark.parametrize(
    ("arguments", "ports", "link", "with_sets"),
    [
        (["colorlight_5a_75b", "--preset", "replay", "--no-discipline"], 1, "own", False),
        (["colorlight_i9", "--preset", "replay", "--ports", "1"], 1, "own", True),
    ],
)
def test_sets_are_made_by_default_where_there_is_room(arguments, ports, link, with_sets):
    config = checked(*arguments)
    assert (config.ports, config.link, config.makes_sets) == (ports, link, with_sets)


def test_a_replay_that_is_too_large_names_what_to_leave_out_first():
    with pytest.raises(ValueError, match=r"build with no discipline of the clock \(--no-discipline\), or "):
        checked("colorlight_5a_75b", "--preset", "replay")


@pytest.mark.parametrize(
    ("arguments", "with_hash"),
    [
        (["colorlight_5a_75b", "--preset", "replay", "--no-discipline"], False),
        (["colorlight_5a_75b", "--preset", "replay", "--no-discipline", "--hash"], True),
        (["colorlight_5a_75b", "--preset", "monitor"], True),
        (["colorlight_5a_75b", "--preset", "monitor", "--no-hash"], False),
        (["colorlight_i9", "--preset", "replay", "--ports", "1"], True),
    ],
)
def test_frames_are_hashed_by_default_where_that_is_routed(arguments, with_hash):
    config = checked(*arguments)
    assert config.with_hash == with_hash


@pytest.mark.parametrize(
    ("arguments", "mac_address", "uart_baud"),
    [
        ([], 0x10E2D5000000, 115200),
        (["--mac-address", "10:e2:d5:00:00:0A", "--uart-baud", "9600"], 0x10E2D500000A, 9600),
        (["--mac-address", "2-0-0-0-0-1"], 0x020000000001, 115200),
    ],
)
def test_addresses_and_the_rate_of_the_serial_link_are_those_that_were_given(arguments, mac_address, uart_baud):
    config = checked("colorlight_5a_75b", *arguments)
    assert (config.mac_address, config.uart_baud) == (mac_address, uart_baud)


@pytest.mark.parametrize("text", ["10:e2:d5:00:00", "10:e2:d5:00:00:0x", "10:e2:d5:00:00:001", "1::2:3:4:5", "110"])
def test_what_is_not_a_mac_address_is_refused_with_one_that_is(capsys, text):
    with pytest.raises(SystemExit) as end:
        parse(["colorlight_5a_75b", "--mac-address", text])
    assert end.value.code == 2 and f"'{text}' is not a MAC address: write it like 10:e2:d5:" in capsys.readouterr().err


# Which boards there are ---------------------------------------------------------------------------


def test_help_names_each_board_and_revision_in_a_line(capsys):
    assert set(LINES) == {*BOARDS, *OTHER_NAMES, *VERILOG_ONLY}
    assert cli.main(["build", "--help"]) == 0
    shown = capsys.readouterr().out.partition("boards:\n")[2]
    assert [line.split(maxsplit=1) for line in shown.splitlines()[: len(LINES)]] == [[*item] for item in LINES.items()]


@pytest.mark.parametrize("name", LINES)
def test_the_line_of_a_board_has_its_name_its_revision_and_its_fpga(name):
    """Of another name: its own revision, and the one whose bitstream it takes."""
    line, module, _, parameters = LINES[name], *{**BOARDS, **VERILOG_ONLY}[OTHER_NAMES.get(name, name)]
    model = line.split(" V", 1)[0] if "revision" in parameters else line.partition(",")[0]
    assert all(word.lower() in model.lower().replace("-", "") for word in module.replace("_5a_", "_5a").split("_"))
    if "revision" in parameters:
        of_name = name.partition("_v")[2].replace("_", ".") or parameters["revision"]
        assert f" V{of_name}" in line
    if name in OTHER_NAMES:
        assert line.endswith(f"the bitstream of V{parameters['revision']}")
    elif name not in VERILOG_ONLY:
        assert f", {'-'.join(board(name).platform.device.split('-')[:2])}: " in line


@pytest.mark.parametrize(
    ("arguments", "hosts"),
    [([], ()), (["--no-hosts"], ()), (["--hosts"], (0, 1)), (["--hosts", "1"], (1,)), (["--hosts", "1,0,1"], (0, 1))],
)
def test_ports_have_hosts_where_they_are_named(arguments, hosts):
    target = board("colorlight_i9")
    assert config_of(parse(["colorlight_i9", "--preset", "generator", *arguments]), target).hosts == hosts


def test_each_host_takes_its_area_and_its_block_rams():
    target = board("colorlight_i9")
    none, one, two = (ProbeConfig(preset="generator", with_hosts=n > 0, host_ports=(*range(n),)) for n in range(3))
    areas = [config.area for config in (none, one, two)]
    assert [two - one for one, two in zip(areas[1], areas[2], strict=True)] == list(HOST_PORT)
    assert [one - none for none, one in zip(areas[0], areas[1], strict=True)] == [
        sum(pair) for pair in zip(HOSTS, HOST_PORT, strict=True)
    ]
    rams = [config.block_rams_needed(target) for config in (replace(one, streams=7) for one in (none, one, two))]
    assert rams[2] - rams[1] == rams[1] - rams[0] == HOST_PORT_RAMS


def test_a_host_on_a_port_that_is_not_there_and_a_list_that_is_none_are_refused(capsys):
    with pytest.raises(ValueError, match="there is no test port 2 for a host: give --hosts ports from 0 to 1"):
        checked("colorlight_i9", "--preset", "generator", "--hosts", "0,2")
    with pytest.raises(SystemExit):
        parse(["--hosts", "colorlight_i9"])
    assert "'colorlight_i9' is not a list of ports: write it like 0 or 0,1, after the board" in capsys.readouterr().err
