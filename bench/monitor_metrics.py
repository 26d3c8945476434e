# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Row of bench/monitor.py about metrics: what a look and a scrape cost this host, and what promtool says of the text.

The probe is a model in this process, so a look is the host's part alone; a board's link comes on top.
"""

import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from liteprobe.host.measure.monitor import Monitor
from liteprobe.host.probe import Probe
from liteprobe.host.serve.metrics import Metrics, serve
from liteprobe.host.serve.poll import Poller
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.drivers.tools.figures import Figure, note, row
from liteprobe.sim.models.probe.meters import MonitorProbe
from liteprobe.sim.models.receive.meters import MeasuredFrame

STREAMS, FRAMES, CLIENTS = 7, 2000, 4
FIRST = 1_800_000_000_000_000_000


def filled(folder: Path) -> Poller:
    """Return what looks at a probe of two ports that has measured all streams that it can, with all histograms."""
    model = MonitorProbe()
    probe = Probe(FakeLink(model, folder))
    for port in range(2):
        Monitor(probe, port).watch(stream_base=3)
        for number in range(FRAMES):
            stamp, sequence = FIRST + 2000 * number, number // STREAMS
            sent = stamp - 500 - number
            of_probe = (True, 3 + number % STREAMS, sequence, sent)
            model.arrive(port, MeasuredFrame(stamp, 60 + number % 1400, 0, *of_probe))
    return Poller(probe)


def each_s(work: Callable[[], object], count: int) -> tuple[float, float]:
    """Return seconds of time, and of this process, that one of ``count`` takes."""
    began, used = time.perf_counter(), time.process_time()
    for _ in range(count):
        work()
    return (time.perf_counter() - began) / count, (time.process_time() - used) / count


@row("monitor")
def test_metrics(is_full: bool) -> Iterator[Figure]:
    """Looks and scrapes, from one client and from several at once; promtool, where it is installed."""
    count = 1000 if is_full else 200
    with TemporaryDirectory() as folder:
        poller, served = filled(Path(folder)), Metrics()
        _, look_s = each_s(poller.look, count // 4)
        served.look = poller.look()
        server = serve(served, 0)
        url = f"http://127.0.0.1:{server.server_port}/metrics"

        def scrape(_: int = 0) -> bytes:
            return bytes(urllib.request.urlopen(url).read())

        text = scrape()
        scrape_s, scrape_cpu_s = each_s(scrape, count)
        with ThreadPoolExecutor(CLIENTS) as clients:
            began = time.perf_counter()
            same = sum(found == text for found in clients.map(scrape, range(CLIENTS * count)))
            rate = CLIENTS * count / (time.perf_counter() - began)
        server.shutdown()
        server.server_close()
    yield Figure("metrics_look_cpu", 1e3 * look_s, "ms", 50)
    yield Figure("metrics_scrape", 1e3 * scrape_s, "ms", 50)
    yield Figure("metrics_scrape_cpu", 1e3 * scrape_cpu_s, "ms", 20)
    yield Figure(f"metrics_scrapes_of_{CLIENTS}_clients", rate, "1/s", 50, is_least=True)
    yield Figure("metrics_scrapes_off", CLIENTS * count - same, "scrapes", 0)
    yield Figure("metrics_text", len(text), "octets", 100_000)
    if not shutil.which("promtool"):
        note("skipped: promtool as a witness, it is not installed (apt install prometheus)")
        return
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    said = (done.stdout + done.stderr).decode().strip().splitlines()
    for line in said:
        note(f"promtool: {line}")
    yield Figure("metrics_promtool_says", len(said) or done.returncode, "lines", 0)
