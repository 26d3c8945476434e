# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The dashboard and the rules that are shipped: each query names metrics that there are, and a Prometheus answers it."""

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from liteprobe.cores.formats import BinKind
from liteprobe.host.capture.ring import ChannelState
from liteprobe.host.measure.monitor import BinSetting, Monitor, Rate
from liteprobe.host.probe import Probe
from liteprobe.host.serve.metrics import Metrics, serve
from liteprobe.host.serve.poll import Look, Poller
from liteprobe.sim.drivers.serve.client import until
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.models.probe.meters import MonitorProbe
from liteprobe.sim.models.receive.meters import MeasuredFrame

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "grafana"
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "liteprobe.json").read_text())
RULES: list[dict[str, Any]] = yaml.safe_load((FOLDER / "rules.yml").read_text())["groups"][0]["rules"]
QUERIES = {panel["title"]: [one["expr"] for one in panel["targets"]] for panel in DASHBOARD["panels"]}
METRIC = re.compile(r"\b(?:\w+:)?liteprobe_\w+(?::\w+)?")


def look_of(folder: Path) -> tuple[MonitorProbe, Poller]:
    """Return a probe that measures stream 3 at port 1, and what looks at it."""
    model = MonitorProbe()
    probe = Probe(FakeLink(model, folder))
    monitor = Monitor(probe, 1)
    monitor.watch(stream_base=3)
    monitor.set_bins({BinKind.LENGTH: BinSetting(0, 6), BinKind.DELAY: BinSetting(0, 6)})
    return model, Poller(probe)


def arrive(model: MonitorProbe, first: int, count: int) -> None:
    for number in range(first, first + count):
        stamp = 1_800_000_000_000_000_000 + 2000 * number
        model.arrive(1, MeasuredFrame(stamp, 100, 0, True, 3, number + number // 10, stamp - 500))


def whole(look: Look) -> Look:
    """Return a look with all that any probe has: a disciplined clock, and a capture."""
    ports = [replace(port, rate=Rate(1, 10**6, True, 10, 1000)) for port in look.ports]
    return replace(
        look, ports=ports, uncertainty_ns=12.0, clock_state="locked", channels={0: ChannelState(8, 0, 3, 20, 5)}
    )


def test_each_query_names_metrics_that_there_are(tmp_path: Path) -> None:
    model, poller = look_of(tmp_path)
    arrive(model, 0, 30)
    metrics, registry = Metrics(), CollectorRegistry()
    metrics.look = whole(poller.look())
    registry.register(metrics)
    there = {
        sample.name
        for one in text_string_to_metric_families(generate_latest(registry).decode())
        for sample in one.samples
    }
    recorded = {rule["record"]: rule["expr"] for rule in RULES if "record" in rule}
    asked = {name for queries in QUERIES.values() for one in queries for name in METRIC.findall(one)}
    in_rules = {name for rule in RULES for name in METRIC.findall(rule["expr"])}
    assert asked - there <= recorded.keys() and in_rules <= there and recorded.keys() <= asked
    # Every figure of a port, a stream, the clock and a capture is in a panel, but for those that repeat others.
    shown = {name.removesuffix("_total") for name in asked | in_rules}
    assert {
        "liteprobe_frames",
        "liteprobe_events",
        "liteprobe_clock_state",
        "liteprobe_capture_dropped_frames",
    } <= shown


def test_the_dashboard_is_one_that_grafana_imports() -> None:
    assert (DASHBOARD["uid"], DASHBOARD["schemaVersion"] >= 36, len(QUERIES)) == (
        "liteprobe",
        True,
        len(DASHBOARD["panels"]),
    )
    places = set()
    for number, panel in enumerate(DASHBOARD["panels"], 1):
        place = panel["gridPos"]
        assert (
            panel["id"] == number and panel["type"] in ("timeseries", "heatmap") and 0 <= place["x"] <= 24 - place["w"]
        )
        places.add((place["x"], place["y"]))
        names = [one["refId"] for one in panel["targets"]]
        assert len(set(names)) == len(names) and all("$instance" in one["expr"] for one in panel["targets"])
        assert all(one["datasource"]["uid"] == "${source}" for one in [panel, *panel["targets"]])
    assert len(places) == len(DASHBOARD["panels"])
    assert [one["name"] for one in DASHBOARD["templating"]["list"]] == ["source", "instance"]


@pytest.mark.skipif(
    not shutil.which("promtool"), reason="promtool, as a witness, is not installed: apt install prometheus"
)
def test_promtool_takes_the_rules() -> None:
    done = subprocess.run(
        ["promtool", "check", "rules", FOLDER / "rules.yml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and f"{len(RULES)} rules found" in done.stdout


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[tuple[Metrics, str]]:
    """Debian's Prometheus with the rules, which scrapes metrics four times a second, and its address."""
    metrics = Metrics()
    server = serve(metrics, 0)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    job = {"job_name": "liteprobe", "static_configs": [{"targets": [f"127.0.0.1:{server.server_port}"]}]}
    settings = {"global": {"scrape_interval": "250ms", "evaluation_interval": "250ms", "scrape_timeout": "200ms"}}
    (tmp_path / "p.yml").write_text(
        json.dumps(settings | {"rule_files": [str(FOLDER / "rules.yml")], "scrape_configs": [job]})
    )
    command = ["prometheus", f"--config.file={tmp_path / 'p.yml'}", f"--storage.tsdb.path={tmp_path / 'data'}"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stderr=log, stdout=log)
        yield metrics, f"http://127.0.0.1:{port}"
        process.terminate()
        process.wait(20)
    server.shutdown()
    server.server_close()


@pytest.mark.full
@pytest.mark.skipif(not shutil.which("prometheus"), reason="prometheus is not installed: apt install prometheus")
def test_a_prometheus_has_data_for_every_panel(prometheus: tuple[Metrics, str], tmp_path: Path) -> None:
    metrics, url = prometheus
    model, poller = look_of(tmp_path)
    arrive(model, 0, 10)
    metrics.look = whole(poller.look())

    def answered(query: str) -> list[Any]:
        asked = urllib.parse.urlencode({"query": query.replace("$instance", ".*")})
        try:
            found = json.load(urllib.request.urlopen(f"{url}/api/v1/query?{asked}", timeout=5))
        except OSError:
            return []
        assert found["status"] == "success", (query, found)
        return [one for one in found["data"]["result"] if one["value"][1] != "NaN"]

    until(lambda: answered("liteprobe_build_info"))
    for number in range(1, 13):
        arrive(model, 10 * number, 10)
        look = whole(poller.look())
        metrics.look = replace(look, events=[{**one, "fcs_errors": number} for one in look.events])
        time.sleep(0.25)
    for title, queries in QUERIES.items():
        for query in queries:
            assert until(lambda query=query: answered(query)), (title, query)
    loss = answered('instance_port_stream:liteprobe_loss:ratio{stream="3"}')
    assert [float(one["value"][1]) for one in loss] == [pytest.approx(12 / 142, abs=0.02)]
