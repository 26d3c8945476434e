# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures what the packet-train paper did, in simulation: loopback, switch, and a switch with other traffic."""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from liteprobe.host.base import extras
from liteprobe.host.base.defaults import DEMO_REPEATS, FIGURES_OF_TRAINS, PAPER_COUNTS, PAPER_LENGTHS
from liteprobe.host.base.output import STDOUT, Outputs, outputs, write_json, write_text
from liteprobe.host.cli.arguments import add, add_expect, every_s
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import whole

with lazily():
    from liteprobe.cores import formats
    from liteprobe.host.analysis import expect, theory
    from liteprobe.host.cli import tables, verdicts
    from liteprobe.host.device.link import sim
    from liteprobe.host.device.link import url as urls
    from liteprobe.host.report import files, page
    from liteprobe.host.suites import sweep
    from liteprobe.host.traffic import train

HELP = "measure a loopback and a switch in simulation, as the packet-train paper did; table and HTML report"
EXAMPLES = """
liteprobe demo
liteprobe demo --repeat 10 --expect 'lost == 0' --junit demo.xml
liteprobe demo --out demo-results
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add(parser, "--out DIR", Path, "folder (default: build/demo)", Path("build/demo"))
    add(parser, "--repeat R", whole, f"trains of each kind (default: {DEMO_REPEATS})", DEMO_REPEATS)
    add(parser, "--sim DIR", Path, "a simulated probe that is built already")
    add_expect(parser, FIGURES_OF_TRAINS)


LATENCY_NS = 3000
CROSS_LOAD = 0.3
CROSS_LENGTH, CROSS_COUNT, CROSS_REPEATS, CROSS_GAP_NS = 1514, 100, 25, 1e6

LEDE = (
    """
    A simulated LiteProbe, the same gateware that a board runs, sent {frames} frames in packet trains of 100 and 1000, of
    seven sizes, {repeats} trains of each kind, back to back at 1 Gb/s: through a loopback of one tick, and through a
    store-and-forward switch with a latency of 3 µs. The simulation writes down when each octet was at the probe's pins:
    that is the truth, which the probe does not know, and against which its figures stand here.""",
    """
    A third path is the same switch with other traffic at 30 % of its output. There a train of {count} comes out
    stretched: theory says {rate} Mb/s in the mean, which is neither the capacity nor what is left of it (Dovrolis et
    al., 2001). The capacity, 1000 Mb/s, is found by the pairs of frames that were not queued.""",
)


def requests(out: Path, build: Path, repeats: int) -> list[sweep.SweepRequest]:
    """Return what is measured: the paper's sweep on two wires, and one kind of train against other traffic."""
    loop_ns = formats.TICK_NS  # The shortest wire.
    # A store-and-forward switch has the whole frame, FCS included, before it sends preamble and SFD.
    switch_ns = LATENCY_NS + formats.TICK_NS * (formats.FCS + formats.PREAMBLE + formats.SFD)
    template = train.TrainProgram(length=60, count=1, repeats=repeats)
    paper = sweep.programs_for(PAPER_LENGTHS, PAPER_COUNTS, template)
    loaded = (train.TrainProgram(CROSS_LENGTH, CROSS_COUNT, CROSS_REPEATS, gap_ns=CROSS_GAP_NS),)
    wires: list[tuple[str, str, tuple[train.TrainProgram, ...], dict[str, Any]]] = [
        ("loopback", "loopback", paper, {"theory_delay": (0.0, loop_ns)}),
        ("switch", f"switch?latency={LATENCY_NS}ns", paper, {"theory_delay": (8.0, switch_ns)}),
        (
            "loaded switch",
            f"switch?latency={LATENCY_NS}ns&queue=1000&cross={CROSS_LOAD}&seed=1",
            loaded,
            {"theory_bps": theory.expected_dispersion_rate(formats.LINE_RATE_BPS, CROSS_LOAD, CROSS_COUNT)},
        ),
    ]
    made = []
    for name, wire, programs, expected in wires:
        truth = out / f"{name.replace(' ', '-')}.truth"
        url = urls.sim_url(wire, build=build, truth=truth)
        made.append(sweep.SweepRequest(name, url, programs, truth=truth, wire_bps=formats.LINE_RATE_BPS, **expected))
    return made


def run(args: argparse.Namespace) -> None:
    """Build the simulated probe, measure, print and write."""
    for extra in ("report",) if args.sim else ("sim", "report"):
        extras.require(extra)
    args.out.mkdir(parents=True, exist_ok=True)
    build = args.sim or sim.build(sim.SimOptions())
    asked = requests(args.out, build, args.repeat)
    sweep.check_programs(program for request in asked for program in request.programs)
    started = time.monotonic()
    with tables.progress(True, every_s(args)) as show:
        sent = [0] * len(asked)

        def progressed(number: int, frames: int, _: int) -> None:
            sent[number] = frames
            show([(one.name, done, one.total) for one, done in zip(asked, sent, strict=True)])

        try:
            measured = sweep.run_together(asked, progressed)
        except KeyboardInterrupt as end:
            end.args = (
                f"{end}; {sum(sent)} of {sum(one.total for one in asked)} frames were sent, and no file is written",
            )
            raise
    seconds = time.monotonic() - started
    frames = sum(request.total for request in asked)
    verdict = verdicts.judged(args, sweep.Sweeps({found.name.replace(" ", "-"): found for found in measured}))
    with outputs() as out:
        for found in measured:
            title = f"{found.name} ({found.rows[0]['repeat']} trains of each kind)"
            out.write(STDOUT, partial(tables.compared, found.rows, title))
        report = write(args, measured, out, verdict)
        said = f"{frames} frames in {seconds:.0f} s. Report: {report}"
        out.write(STDOUT, lambda: tables.console().print(said, soft_wrap=True))
        if verdict is not None:
            verdicts.publish(args, verdict, out)
    if verdict is not None:
        verdict.require()


def write(
    args: argparse.Namespace, measured: list[sweep.Sweep], out: Outputs, verdict: expect.Judgement | None = None
) -> Path:
    """Write JSON, CSV and the report; return the path of the report."""
    content = files.document(measured, ["liteprobe", *sys.argv[1:]])
    content |= {} if verdict is None else {"expect": verdict.document()}
    document, table = args.out / "trains.json", args.out / "trains.csv"
    out.write(document, lambda: write_json(document, content))
    out.write(table, lambda: write_text(table, files.as_csv(measured)))
    frames = sum(row["sent"] for found in measured[:2] for row in found.rows)
    figures = {
        "frames": f"{frames:,}",
        "repeats": str(args.repeat),
        "count": str(CROSS_COUNT),
        "rate": f"{measured[2].rows[0]['theory_bps'] / 1e6:.1f}",
    }
    path: Path = args.out / "report.html"
    lede = [page.said(text, **figures) for text in LEDE]
    out.write(path, lambda: page.write_report(path, measured, content, page.Report(paragraphs=lede, is_paper=True)))
    return path
