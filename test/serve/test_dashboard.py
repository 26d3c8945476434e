# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The dashboard and the rules that are shipped: each query names metrics that there are, and a Prometheus answers it."""

import copy
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from liteprobe.cores.formats import BinKind
from liteprobe.host.capture.decode import BlockDecoder
from liteprobe.host.capture.protocols import ProtocolCounts
from liteprobe.host.capture.ring import ChannelState
from liteprobe.host.measure.monitor import BinSetting, Monitor, Rate
from liteprobe.host.probe import Probe
from liteprobe.host.serve.metrics import RUN_ROWS, Metrics, serve
from liteprobe.host.serve.poll import Look, Poller
from liteprobe.sim.drivers.capture.blocks import Captured, blocks_of
from liteprobe.sim.drivers.serve.client import ask
from liteprobe.sim.drivers.serve.dashboard import DASHBOARD, FOLDER, QUERIES, answered, prometheus, schema_errors
from liteprobe.sim.drivers.serve.ways import WAYS, running
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.drivers.tools.processes import wait_for
from liteprobe.sim.models.probe.meters import MonitorProbe
from liteprobe.sim.models.receive.meters import MeasuredFrame

RULES: list[dict[str, Any]] = yaml.safe_load((FOLDER / "rules.yml").read_text())["groups"][0]["rules"]
METRIC = re.compile(r"\b(?:\w+:)?liteprobe_\w+(?::\w+)?")


def look_of(folder: Path) -> tuple[MonitorProbe, Poller]:
    """Return a probe that measures stream 3 at port 1, and what looks at it."""
    model = MonitorProbe()
    probe = Probe(FakeLink(model, folder))
    monitor = Monitor(probe, 1)
    monitor.watch(stream_base=3)
    monitor.set_bins({BinKind.LENGTH: BinSetting(0, 6), BinKind.DELAY: BinSetting(0, 6)})
    return model, Poller(probe, from_start=True)


def arrive(model: MonitorProbe, first: int, count: int) -> None:
    for number in range(first, first + count):
        stamp = 1_800_000_000_000_000_000 + 2000 * number
        model.arrive(1, MeasuredFrame(stamp, 100, 0, True, 3, number + number // 10, stamp - 500))


def whole(look: Look) -> Look:
    """Return a look with all that any probe has: a disciplined clock, and a capture."""
    ports = [replace(port, rate=Rate(1, 10**6, True, 10, 1000)) for port in look.ports]
    counts, came = ProtocolCounts(), look.ports[1].counters["frames"]
    counts.write(BlockDecoder().decode(blocks_of([Captured(1, bytes(60), 1, with_header=True)] * came)))
    return replace(
        look,
        ports=ports,
        uncertainty_ns=12.0,
        clock_state="locked",
        channels={0: ChannelState(8, 0, 3, 20, 5)},
        protocols=counts.table({1: came}),
    )


def names(text: str) -> set[str]:
    return {sample.name for one in text_string_to_metric_families(text) for sample in one.samples}


def of_a_server() -> set[str]:
    """Return the metrics that a server has beside those of a monitor."""
    found = {f"liteprobe_{name}" for name in ("probe_here", "probe_age_seconds", "link_up", "running")}
    for of, (_, figures) in RUN_ROWS.items():
        found |= {f"liteprobe_run_{of}_{figure.name}{'_total' * figure.is_counter}" for figure in figures}
    return found


def test_each_query_names_metrics_that_there_are(tmp_path: Path) -> None:
    model, poller = look_of(tmp_path)
    arrive(model, 0, 30)
    metrics, registry = Metrics(), CollectorRegistry()
    metrics.look = whole(poller.look())
    registry.register(metrics)
    there = names(generate_latest(registry).decode()) | of_a_server()
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
def scraped(tmp_path: Path) -> Iterator[tuple[Metrics, str]]:
    """Metrics that a Prometheus scrapes four times a second, and its address."""
    metrics = Metrics()
    server = serve(metrics, 0)
    with prometheus(tmp_path, [server.server_port]) as url:
        yield metrics, url
    server.shutdown()
    server.server_close()


@pytest.mark.full
@pytest.mark.skipif(not shutil.which("prometheus"), reason="prometheus is not installed: apt install prometheus")
def test_a_prometheus_has_data_for_every_panel_of_a_monitor(scraped: tuple[Metrics, str], tmp_path: Path) -> None:
    metrics, url = scraped
    model, poller = look_of(tmp_path)
    arrive(model, 0, 10)
    metrics.look = whole(poller.look())

    wait_for(lambda: answered(url, "liteprobe_build_info"))
    for number in range(1, 13):
        arrive(model, 10 * number, 10)
        look = whole(poller.look())
        metrics.look = replace(look, events=[{**one, "fcs_errors": number} for one in look.events])
        time.sleep(0.25)
    for title, queries in QUERIES.items():
        for query in queries:
            if not re.search(r"liteprobe_(run_|running|probe_|link_)", query):  # Those of a server: see the bench.
                assert wait_for(lambda query=query: answered(url, query)), (title, query)
    loss = answered(url, 'instance_port_stream:liteprobe_loss:ratio{stream="3"}')
    assert [float(one["value"][1]) for one in loss] == [pytest.approx(12 / 142, abs=0.02)]


@pytest.mark.parametrize("kind", WAYS)
def test_each_way_of_running_has_its_metrics(kind: str, tmp_path: Path) -> None:
    rows = {"streams": "stream", "stamp": "stream", "network": "class", "replay": "port", "sets": "port"}
    with running(kind, tmp_path) as served:
        run = wait_for(lambda: (one := served.app.worker.run) and one.last and one)
        text = ask(served.port, "/metrics")[2].decode()
        found = names(text)
        assert f'liteprobe_running{{kind="{kind}"}} 1.0' in text and "liteprobe_probe_here 1.0" in text
        assert (
            {"liteprobe_link_up", "liteprobe_clock_state", "liteprobe_probe_age_seconds"}
            <= found
            <= of_a_server() | {one for one in found if "_run_" not in one}
        )
        of = rows.get(kind, "progress")
        assert {one.split("_")[2] for one in found if "_run_" in one} == ({of} if kind != "monitor" else set())
        if kind == "streams":
            sent = next(row["sent"] for row in run.last["streams"] if row["name"] == "voice")
            text = ask(served.port, "/metrics")[2].decode()
            line = re.search(r'liteprobe_run_stream_sent_frames_total{port="0",stream="voice"} (\S+)', text)
            assert line and float(line[1]) >= sent
            assert 'liteprobe_run_stream_delay_min_seconds{port="0",stream="voice"} 2.96e-07' in text


@pytest.mark.full
def test_grafanas_own_types_take_the_dashboard_and_no_wrong_one() -> None:
    folder = FOLDER.parents[1] / "build" / "grafana"
    errors = schema_errors(folder, DASHBOARD)
    if errors is None:
        pytest.skip("Grafana's types come by npm: apt install npm, and a network")
    assert errors == []
    for panel, path, wrong in (
        (0, ("gridPos",), {"x": 0}),
        (8, ("options",), {"yAxis": {"unti": "s"}}),
        (0, ("fieldConfig", "defaults"), {"unit": 1}),
        (3, ("targets",), [{"refId": "A", "query": "x"}]),
    ):
        made: Any = copy.deepcopy(DASHBOARD)
        *path_to, last = path
        place = made["panels"][panel]
        for key in path_to:
            place = place[key]
        place[last] = wrong
        assert len(schema_errors(folder, made) or []) >= 1, path
