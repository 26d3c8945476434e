# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Rows about ``liteprobe serve``: from a look to the page, memory, and what a server does with requests that nobody should send.

The probe is a model, and its looks are those of 16 streams with histograms; the server is a process of its own.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import PROGRAM, Browser
from websockets import Subprotocol
from websockets.sync.client import connect

from liteprobe.host.probe import Probe
from liteprobe.host.serve.worker import ProbeRun, Show
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.lengths import IMIX
from liteprobe.host.traffic.stream import Stream
from liteprobe.sim.drivers.serve.client import Serving, ask, fuzzed
from liteprobe.sim.drivers.serve.dashboard import DASHBOARD, QUERIES, answered, prometheus, schema_errors
from liteprobe.sim.drivers.serve.ways import WAYS, running
from liteprobe.sim.drivers.tools.figures import Figure, drawn, note, row
from liteprobe.sim.drivers.tools.processes import wait_for

STREAMS = [Stream(f"s{number}", number, IMIX, Interval(share=0.05)) for number in range(1, 15)]
STREAMS += [Stream(f"t{number}", number, IMIX, Interval(share=0.05), port=1) for number in (1, 2)]
CLIENTS = 4
QUARTERS = 4
#: In a page: counts the looks that it takes, and keeps how long those with a stamp were under way, until they are taken (ms).
WATCH = """
window.looks = window.until = 0;
window.delays = [];
const Own = WebSocket;
window.WebSocket = class extends Own {
  constructor(...all) {
    super(...all);
    this.addEventListener("message", (event) => {
      const line = JSON.parse(event.data);
      if (line.kind !== "look") return;
      window.looks += 1;
      window.until = Math.round(10 * line.elapsed_s) + 1;
      if (line.sent_ns) setTimeout(() => delays.push(performance.timeOrigin + performance.now() - line.sent_ns / 1e6));
    });
  }
};
"""
PICTURES = Path(__file__).resolve().parent.parent / "build" / "serve"
#: How the panels begin that show a kind of run; those without a colon in their title, but for the monitor's, show all kinds.
PANELS = {
    "streams": "Streams:", "stamp": "Streams:", "network": "Network:", "replay": "Replay and sets:", "sets": "Replay and sets:",
    "train": "Trains:", "capture": "Capture: frames in the file", "soak": "Suite:",
}  # fmt: skip
EACH = ("What runs", "Probe and links", "Probe, since it was heard of", "Clock state")
BOUND = "Clock, bound of its error"  # Of the clock that is disciplined, that of the model that sends trains.
LOST = "Streams: lost frames"  # Of a STAMP session it is known at the end.
#: The same probe, streams and looks without a server: what that has in memory (MB).
BARE = """
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
import liteprobe.host.run.emulate, liteprobe.host.run.replay
from liteprobe.host.probe import Probe
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.lengths import IMIX
from liteprobe.host.traffic.stream import Stream
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.models.probe.streams import TrafficProbe
with TemporaryDirectory() as folder:
    model = TrafficProbe(lambda frame: [(1 - frame.port, 37, frame)])
    streams = [Stream(f"s{n}", n, IMIX, Interval(share=0.05)) for n in range(1, 15)]
    streams += [Stream(f"t{n}", n, IMIX, Interval(share=0.05), port=1) for n in (1, 2)]
    with Probe(FakeLink(model, Path(folder))).send(streams) as traffic:
        traffic.look().to_dict()
    print(int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6)
"""


def rss_mb() -> float:
    """Return the memory that this process has now (MB)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def serve(looks: int, fast: int, pause_s: float) -> None:
    """Serve looks at ten a second, then as fast as can be; print the port, and the memory before each quarter and at the end.

    It begins, and goes on after each, when a line comes.
    """
    from liteprobe.host.serve import worker

    worker.LOOK_S = 0.0  # All looks are passed on: this row paces them.
    with tempfile.TemporaryDirectory() as folder, Serving(Path(folder), rate=1e6, burst=10**6) as served:
        print(json.dumps({"port": served.port}), flush=True)
        sys.stdin.readline()

        def act(probe: Probe, show: Show) -> None:
            with probe.send(STREAMS) as traffic:
                look = traffic.look().to_dict()
            begin_s = time.monotonic()
            for number in range(looks):
                time.sleep(max(0.0, begin_s + number / 10 - time.monotonic()))
                show({**look_at(look, number), "sent_ns": time.time_ns()})
            for number in range(fast):
                if number % (fast // QUARTERS) == 0:
                    print(json.dumps({"memory": rss_mb()}), flush=True)
                    sys.stdin.readline()
                show(look_at(look, looks + number))
                if number % 50 == 0:
                    time.sleep(pause_s)  # As long as four readers and their server need, about.
            print(json.dumps({"memory": rss_mb()}), flush=True)

        run = ProbeRun("n", "streams", "bench", "bench", act)
        served.app.worker.start(run)
        wait_for(lambda: run.is_over, 3600)
        if run.state != "ended":
            print(json.dumps({"failed": run.end}), flush=True)
        sys.stdin.readline()


def look_at(look: dict[str, Any], number: int) -> dict[str, Any]:
    """Return the look of a number, at ten a second: rates that rise and fall, counts that grow, histograms of 60 bins."""
    rows = []
    for which, one in enumerate(look["streams"]):
        rate = one["offered_bps"] * (1 + 0.1 * math.sin(number / 50 + which))
        bins = [[296 + 8 * bin, 296 + 8 * bin, 27 * number // (bin + 1)] for bin in range(60)]
        counts = {"sent": 1637 * number, "received": 1637 * number - number // 7, "lost": number // 7}
        latency = {**one["latency_ns"], "histogram": bins, "p99": [300 + number % 97, 308 + number % 97]}
        rows.append({**one, **counts, "received_bps": [rate, rate], "latency_ns": latency})
    return {**look, "streams": rows, "elapsed_s": number / 10}


class Source:
    """A process that serves looks: ``looks`` at ten a second, then ``fast`` of them with a pause after every 50th."""

    def __init__(self, looks: int, fast: int, pause_s: float = 0.02) -> None:
        command = [sys.executable, __file__, *(str(one) for one in (looks, fast, pause_s))]
        paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}  # As pytest found what this file imports.
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=paths)
        self.port = self._read()["port"]

    def _read(self) -> dict[str, Any]:
        assert self._child.stdout
        found: dict[str, Any] = json.loads(self._child.stdout.readline())
        assert "failed" not in found, found
        return found

    def go(self) -> None:
        """Let it go on."""
        assert self._child.stdin
        self._child.stdin.write("go\n")
        self._child.stdin.flush()

    def memory(self) -> Iterator[float]:
        """Yield its memory before the first of the fast looks, and after each quarter of them (MB); it waits meanwhile."""
        for _ in range(QUARTERS + 1):
            self.go()
            yield self._read()["memory"]

    def end(self) -> None:
        """End it."""
        self.go()
        self._child.wait(60)


@row("serve")
def test_page(is_full: bool) -> Iterator[Figure]:
    """16 streams, ten looks a second, four WebSockets: from the look to its reader, and memory in an hour of looks."""
    looks, fast = (300, 36_000) if is_full else (30, 400)
    bare = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True, check=True)
    source = Source(looks, fast)
    port = source.port
    delays_ms: list[float] = []
    skipped, ready = [0] * CLIENTS, threading.Barrier(CLIENTS + 1)

    def watch(which: int) -> None:
        made: Any = connect(f"ws://127.0.0.1:{port}/api/lines", subprotocols=[Subprotocol("liteprobe")], max_size=None)
        with made as one:
            ready.wait()
            for text in one:
                line = json.loads(text)
                if line["kind"] == "look" and "sent_ns" in line:
                    delays_ms.append((time.time_ns() - line["sent_ns"]) / 1e6)
                skipped[which] = line.get("skipped", skipped[which])
                if line["kind"] == "result":
                    return

    threads = [threading.Thread(target=watch, args=(which,), daemon=True) for which in range(CLIENTS)]
    for thread in threads:
        thread.start()
    ready.wait()
    before, *quarters = source.memory()
    for thread in threads:
        thread.join(600)
    source.end()
    said = ", ".join(f"{one:.1f}" for one in quarters)
    note(f"bare library {float(bare.stdout):.1f} MB, server {before:.1f} MB, by quarters of {fast:,} looks {said} MB")
    note(f"left out of the fast looks, for readers that were slower: {sum(skipped)} of {CLIENTS * fast}")
    yield Figure("serve_look_to_reader_p95", float(np.percentile(delays_ms, 95)), "ms", 50)
    yield Figure("serve_looks_missed", CLIENTS * looks - len(delays_ms), "looks", 0)
    yield Figure("serve_memory_beyond_the_library", before - float(bare.stdout), "MB", 25)
    yield Figure("serve_memory_growth", quarters[-1] - before, "MB", 3)


@row("serve", is_long=True)
def test_browsers(is_full: bool) -> Iterator[Figure]:
    """The same looks in the pages of four Chromiums: from a look until a page has taken it; heap of the pages over an hour."""
    if PROGRAM is None:
        pytest.skip("no chromium is here: apt-get install chromium")
    looks, fast = (300, 36_000) if is_full else (50, 2_000)
    source, heaps = Source(looks, fast, 0.2), []
    with ExitStack() as stack:
        pages = [stack.enter_context(Browser()) for _ in range(CLIENTS)]
        for page in pages:
            page.before(WATCH)
            page.open(f"http://127.0.0.1:{source.port}/", 1200)
            page.wait("document.getElementById('owner').innerText.length > 0")
        for number, server in enumerate(source.memory()):
            due = looks + fast * number // QUARTERS
            for page in pages:
                page.wait(f"until >= {due}", 600)
            heaps.append([page.heap_mb() for page in pages])
            said = ", ".join(f"{one:.1f}" for one in heaps[-1])
            note(f"after {due / 10:,.0f} s of looks: server {server:.1f} MB, heaps of the pages {said} MB")
            if number == QUARTERS - 1:
                PICTURES.mkdir(parents=True, exist_ok=True)
                pages[0].picture(PICTURES / "hour.png", is_whole=True)
            if number == 0:
                delays_ms = np.concatenate([page.ask("delays") for page in pages])
        taken = sum(page.ask("looks") for page in pages)
        source.end()
    note(
        f"left out of the fast looks, for pages that were slower: {CLIENTS * (looks + fast) - taken} of {CLIENTS * fast}"
    )
    yield Figure("serve_look_to_page_p95", float(np.percentile(delays_ms, 95)), "ms", 50)
    yield Figure("serve_page_looks_missed", CLIENTS * looks - delays_ms.size, "looks", 0)
    yield Figure("serve_page_heap_growth", max(np.subtract(heaps[-1], heaps[1])), "MB", 1)


@row("serve")
def test_hostile(is_full: bool) -> Iterator[Figure]:
    """Random requests by a new seed: none is a fault of the server, none starts anything, others are served."""
    count = 100_000 if is_full else 150
    with tempfile.TemporaryDirectory() as folder, Serving(Path(folder), rate=1e6, burst=10**6) as served:
        found = fuzzed(served, drawn(), count)
        note(f"statuses: {dict(sorted(found.items()))}")
        yield Figure("serve_hostile_faults", sum(n for status, n in found.items() if status >= 500), "requests", 0)
        yield Figure("serve_hostile_started", int(served.app.worker.run is not None), "runs", 0)
        yield Figure(
            "serve_hostile_then_served", int(ask(served.port, "/api/state")[0] == 200), "answers", 1, is_least=True
        )


def panels_of(kind: str) -> set[str]:
    """Return the titles of the panels that must have data while this runs."""
    titles = {title for title in QUERIES if title in EACH}
    if kind != "monitor":
        titles |= {BOUND} if kind == "train" else set()
        return titles | {title for title in QUERIES if title.startswith(PANELS[kind])} - (
            {LOST} if kind == "stamp" else set()
        )
    return titles | {title for title in QUERIES if not title.startswith(tuple(PANELS.values()))} - {BOUND}


@row("serve", is_long=True)
def test_grafana(is_full: bool) -> Iterator[Figure]:
    """Debian's Prometheus scrapes a server for each way of running; each query of each panel of the dashboard is asked of it."""
    del is_full
    missing: list[str] = []
    seen: set[str] = set()
    asked = 0
    for kind in WAYS:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            served = stack.enter_context(running(kind, folder))
            url = stack.enter_context(prometheus(folder, [served.port]))
            wait_for(partial(answered, url, "liteprobe_running"), 60)
            for title in sorted(panels_of(kind)):
                for query in QUERIES[title]:
                    asked += 1
                    try:
                        wait_for(partial(answered, url, query), 15)
                        seen.add(title)
                    except TimeoutError:
                        missing.append(f"{kind}: {title}")
    note(f"{len(WAYS)} ways of running ({', '.join(WAYS)}), {len(QUERIES)} panels, {asked} queries")
    note(f"without data: {', '.join(missing) or 'none'}")
    yield Figure("serve_grafana_queries_without_data", len(missing), "queries", 0)
    yield Figure("serve_grafana_panels_without_data", len(set(QUERIES) - seen), "panels", 0)
    errors = schema_errors(Path("build") / "grafana", DASHBOARD)
    note(
        "Grafana's types: npm or a registry is not here"
        if errors is None
        else f"Grafana's types: {errors or 'no error'}"
    )
    if errors is not None:
        yield Figure("serve_grafana_type_errors", len(errors), "errors", 0)


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
