# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""``liteprobe serve`` at its socket, on a model of a probe: what it shows, who may start what, and what hostile clients get."""

import json
import random
import re
import signal
import socket as sockets
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.exceptions import InvalidStatus, WebSocketException

from liteprobe.cores.formats import PRESETS
from liteprobe.host.base.errors import NoProbeError
from liteprobe.host.capture import ring as capture_ring
from liteprobe.host.capture import run as capture_run
from liteprobe.host.capture.decode import no_blocks
from liteprobe.host.capture.sources import Batches
from liteprobe.host.capture.write.pcapng import PortInterface
from liteprobe.host.run.emulate import Emulation
from liteprobe.host.serve import app as apps
from liteprobe.host.serve import worker as work
from liteprobe.host.serve.kinds import KINDS
from liteprobe.host.serve.store import FILES, dumps
from liteprobe.host.traffic.document import read_document
from liteprobe.sim.drivers.capture.blocks import Captured, blocks_of
from liteprobe.sim.drivers.serve.client import Serving, ask, fuzzed, line_of
from liteprobe.sim.drivers.serve.ways import monitor as monitored
from liteprobe.sim.drivers.serve.ways import running
from liteprobe.sim.drivers.tools.processes import wait_for
from liteprobe.sim.models.probe.emulator import EmulatorProbe
from liteprobe.sim.models.probe.meters import MonitorProbe
from liteprobe.sim.models.probe.streams import TrafficProbe
from liteprobe.sim.models.probe.trains import ModelProbe, cable
from liteprobe.sim.models.receive.meters import MeasuredFrame

ENDLESS = {"streams": [{"name": "all", "length": 60, "pps": 20000}]}
COUNTED = {"streams": [{"name": "some", "length": 60, "pps": 20000, "count": 40}]}
TOKEN = "a-token-of-26-characters-x"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "STATUS_S", 0.1)
    monkeypatch.setattr(work, "AGAIN_S", 0.05)
    monkeypatch.setattr(work, "LOOK_S", 0.0)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Serving]:
    with Serving(tmp_path) as one:
        yield one


# What goes well -------------------------------------------------------------------------------------


def test_streams_run_are_seen_by_watchers_and_leave_a_result_with_a_link(served: Serving) -> None:
    served.claim()
    with served.lines() as one, served.lines() as other:
        assert line_of(one, "state")["owner"]["name"] == "Ann" and line_of(other, "state")["watchers"] == 2
        number = served.start("streams", COUNTED)
        look, result = line_of(one, "look"), line_of(one, "result")
        assert look["run"] == result["run"] == line_of(other, "result")["run"] == number
        assert (look.keys() - {"kind", "run"}) == {
            "elapsed_s",
            "now_ns",
            "is_running",
            "clock_state",
            "uncertainty_ns",
            "streams",
        }
        assert (result["state"], result["end"], result["streams"][0]["sent"], result["streams"][0]["lost"]) == (
            "ended",
            "sent",
            40,
            0,
        )
    status, listed = served.call("GET", "/api/runs")
    assert (status, [one["number"] for one in listed]) == (200, [number])
    assert listed[0]["files"] == ["result.json", "report.html", "document.yaml"]
    found = {name: ask(served.port, f"/r/{number}/{name}") for name in listed[0]["files"]}
    assert {name: one[0] for name, one in found.items()} == dict.fromkeys(found, 200)
    content = json.loads(found["result.json"][2])
    assert content["format"] == "liteprobe-traffic" and content["streams"] == result["streams"]
    assert [one.count for one in read_document(found["document.yaml"][2].decode())] == [40]
    page = found["report.html"]
    assert b"some" in page[2] and b"<script" not in page[2] and page[1]["content-security-policy"].endswith("sandbox")
    assert ask(served.port, f"/r/{number}")[1]["location"] == f"/r/{number}/report.html"


def test_the_page_and_all_that_it_loads_come_from_here_alone(served: Serving) -> None:
    page = ask(served.port)[2].decode()
    names = re.findall(r'(?:src|href)="(/[^"]+)"', page)
    assert len(names) == 7 and {ask(served.port, name)[0] for name in names} == {200}
    assert {name.removeprefix("/page/") for name in names} | {"LICENSE.uPlot"} == apps.PAGE_FILES.keys()
    own = [path for path in apps.PAGE.iterdir() if path.suffix in (".js", ".css", ".html") and "uPlot" not in path.name]
    assert not [path.name for path in own if re.search(r"https?://(?!www\.w3\.org/2000/svg)", path.read_text())]
    assert not re.search(r"<script>|<style>|style=| on\w+=", page)  # Its policy lets none of it run.


def test_each_kind_has_schemas_that_hold_and_its_examples_pass_them(served: Serving) -> None:
    status, kinds = served.call("GET", "/api/kinds")
    assert (status, [one["name"] for one in kinds]) == (200, list(KINDS))
    for one in kinds:
        jsonschema.Draft202012Validator.check_schema(one["options"])
        for example in one["examples"].values():
            jsonschema.validate(example["document"], one["schema"])
            for given in (example["text"], example["document"]):
                said = served.call("POST", "/api/check", {"kind": one["name"], "document": given})
                assert said[0] == 200 and said[1]["said"], (one["name"], said)


def test_the_description_of_the_api_names_each_path_that_answers(served: Serving) -> None:
    api = served.call("GET", "/openapi.json")[1]
    for path, methods in api["paths"].items():
        for method, one in methods.items():
            jsonschema.Draft202012Validator.check_schema(
                one.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            )
            status, said = served.call(method.upper(), path, {} if "requestBody" in one else None)
            assert (status in (200, 400)) == (status < 500) and status not in (404, 405), (path, method, said)
    assert served.call("GET", "/api/nothing") == (404, {"error": "there is no such path: see /openapi.json"})
    assert served.call("DELETE", "/api/state")[0] == 405


def test_a_network_runs_is_set_and_ends(tmp_path: Path) -> None:
    def model() -> EmulatorProbe:
        made = EmulatorProbe()
        made.values["probe_parts"] = PRESETS["emulator"]
        made.offer(0, 0, 100, 125_000)
        return made

    with Serving(tmp_path, model) as served:
        served.claim()
        assert served.call("POST", "/api/runs/current/set", {"words": ["there.delay=5ms"]})[1]["error"].startswith(
            "no network runs"
        )
        with served.lines() as one:
            number = served.start("network", "both: {rate: 10Mbit, delay: 5ms, queue: 10}")
            look = line_of(one, "look")
            assert look["there"]["classes"][0]["queue"].keys() == {"frames", "octets", "most"}
            status, said = served.call(
                "POST", "/api/runs/current/set", {"words": ["both.delay=7ms", "there.rate=5Mbit"]}
            )
            assert status == 200 and said["holds_from_s"] > 0
            wrong = served.call("POST", "/api/runs/current/set", {"words": ["there.dealy=7ms"]})
            assert wrong[0] == 400 and "delay" in wrong[1]["error"]
            assert served.call("POST", "/api/runs/current/stop") == (200, {"was_running": True})
            result = line_of(one, "result")
            assert (result["run"], result["end"]) == (number, "stopped") and any(
                "set while it ran: 1 (both.delay=7ms" in note for note in result["notes"]
            )
        assert not any(
            isinstance(port.sends_for, Emulation) and not port.sends_for.end
            for port in served.app.worker.call(lambda probe: probe.ports).result(5)
        )


def test_a_monitor_shows_ports_and_feeds_metrics(tmp_path: Path) -> None:
    def model() -> MonitorProbe:
        made = MonitorProbe()
        made.values["probe_parts"] = PRESETS["monitor"]
        for count in range(7):
            made.arrive(1, MeasuredFrame(1_800_000_000_000_000_000 + 2000 * count, 60))
        return made

    with Serving(tmp_path, model) as served:
        assert "liteprobe_frames" not in ask(served.port, "/metrics")[2].decode()
        served.claim()
        with served.lines() as one:
            served.start("monitor", duration="5ms")
            assert line_of(one, "look")["ports"][1]["counters"]["frames"] == 7
            assert line_of(one, "result")["why"] == "done"
        found = {
            family.name: family for family in text_string_to_metric_families(ask(served.port, "/metrics")[2].decode())
        }
        assert [sample.value for sample in found["liteprobe_frames"].samples] == [0, 7]


@pytest.mark.parametrize(("options", "one_of"), [({}, 1), ({"protocols": 4}, 4), ({"protocols": 0}, 0)])
def test_a_monitor_counts_by_protocol_and_says_of_how_many_frames(
    options: dict[str, int], one_of: int, tmp_path: Path
) -> None:
    with Serving(tmp_path, monitored) as served:
        served.claim()
        with served.lines() as one:
            served.start("monitor", duration="20ms", **options)
            result = line_of(one, "result")
        if not one_of:
            assert "protocols" not in result
            return
        found, port = result["protocols"], result["protocols"]["ports"][1]
        assert found["one_of"] == one_of and result["state"] == "ended"
        rows = {row["protocol"]: row for row in found["rows"]}
        # One of four in turn: of each fourth frame that is one alone, and so the page says which it looks at.
        names = {"IPv4 TCP https", "IPv4 UDP domain", "IPv6 UDP", "ARP"}
        assert rows.keys() == names if one_of == 1 else len(rows) == 1 and rows.keys() <= names
        assert sum(row["frames"] for row in rows.values()) == port["seen"] > 0
        assert one_of * port["seen"] <= port["of"] <= result["ports"][1]["events"]["all_frames"]


def test_a_sample_that_no_probe_takes_and_a_probe_that_captures_nothing_are_named(tmp_path: Path) -> None:
    def model() -> MonitorProbe:
        made = MonitorProbe()
        made.values["probe_parts"] = PRESETS["monitor"]
        return made

    with Serving(tmp_path, model) as served:
        status, said = served.call("POST", "/api/check", {"kind": "monitor", "options": {"protocols": 5}})
        assert (status, said["path"]) == (400, "/protocols") and "give 1, 2, 4, 8 or 16" in said["error"]
        served.claim()
        served.start("monitor", protocols=16)
        assert served.ended().state == "failed" and "captures nothing" in served.ended().end


def test_a_suite_shows_trials_as_they_end(served: Serving) -> None:
    served.claim()
    with served.lines() as one:
        number = served.start("soak", "streams: [{length: 60, share: 1%}]", duration="4ms", segment="2ms")
        result = line_of(one, "result")
        assert (result["state"], result["is_complete"]) == ("ended", True)
    trials = ask(served.port, f"/r/{number}/trials.jsonl")[2].decode().splitlines()
    assert [json.loads(line)["kind"] for line in trials] == ["head", "trial", "trial"]


def test_trains_are_shown_by_program_and_stopped_with_what_was_measured(tmp_path: Path) -> None:
    with Serving(tmp_path, lambda: ModelProbe(cable(37), depth=1024)) as served:
        served.claim()
        with served.lines() as one:
            served.start("train", lengths=[60, 1514], counts=[20], repeat=5, interval="20us")
            look, result = line_of(one, "look"), line_of(one, "result")
            assert (look["asked"], result["state"], result["why"]) == (200, "ended", "done")
            # A cable of 37 ticks of 8 ns; octets of a frame in each 20 us.
            assert [(row["length"], row["sent"], row["lost"], row["owd_ns"]["max"]) for row in result["trains"]] == [
                (60, 100, 0, 296), (1514, 100, 0, 296),
            ]  # fmt: skip
            assert [row["frame_bps"] for row in result["trains"]] == pytest.approx([60 * 8 / 20e-6, 1514 * 8 / 20e-6])
            number = served.start("train", lengths=[60], counts=[100], repeat=5000, interval="1ms")
            line_of(one, "look")
            served.call("POST", "/api/runs/current/stop")
            result = line_of(one, "result")
            assert (result["state"], result["why"]) == ("ended", "stopped")
        (row,) = result["trains"]
        assert row["sent"] == row["received"] < 500_000 and row["lost"] == 0
        assert ask(served.port, f"/r/{number}/report.html")[0] == 200
        said = served.call("POST", "/api/check", {"kind": "train", "options": {"repeat": 1_000_000}})[1]
        assert said["path"] == "/repeat" and "give 1,000,000 at most" in said["error"]


def test_a_session_to_a_reflector_has_its_delay(tmp_path: Path) -> None:
    with Serving(tmp_path, lambda: TrafficProbe(lambda frame: [(frame.port, 37, frame)])) as served:
        served.claim()
        with served.lines() as one:
            served.start("stamp", address="198.18.0.2", count=200, interval="100us")
            assert line_of(one, "look")["streams"][0]["name"] == "stamp"
            result = line_of(one, "result")
        (way,) = result["ways"]
        assert [way[name] for name in ("name", "sent", "received", "lost")] == ["both", 200, 200, 0]
        assert (way["delay_ns"]["least"], way["delay_ns"]["most"]) == (296, 296)
        with served.lines() as one:
            number = served.start("stamp", address="198.18.0.2", count=1_000_000)
            line_of(one, "look")
            served.call("POST", "/api/runs/current/stop")
            result = line_of(one, "result")
        assert (result["state"], result["why"], result["end"]) == ("ended", "stopped", "stopped")
        assert 0 < result["ways"][0]["received"] <= result["ways"][0]["sent"] < 1_000_000
        assert ask(served.port, f"/r/{number}/report.html")[0] == 200
        for options, words in (
            ({}, "needs 'address'"),
            ({"address": "here"}, "here"),
            ({"address": "198.18.0.2", "tlvs": ["x"]}, "x"),
        ):
            status, said = served.call("POST", "/api/check", {"kind": "stamp", "options": options})
            assert status == 400 and said["part"] == "options" and words in said["error"], said


def test_a_capture_to_which_nothing_comes_is_stopped_and_what_came_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Quiet:
        """A probe's line: eleven frames, then nothing; two more are on their way when it is stopped."""

        is_stopped = False

        def batches(self) -> Batches:
            yield blocks_of([Captured(10**18 + number, bytes(60)) for number in range(11)]), None
            while not self.is_stopped:
                time.sleep(0.005)
                yield no_blocks(), None
            yield blocks_of([Captured(10**18 + 99, bytes(60))] * 2, first_number=1), None

        def stop(self) -> None:
            self.is_stopped = True

    def model() -> MonitorProbe:
        made = MonitorProbe()
        made.values["probe_parts"] = PRESETS["monitor"]
        return made

    monkeypatch.setattr(capture_ring, "CaptureRing", lambda registers: None)
    monkeypatch.setattr(capture_run, "_live", lambda *_: capture_run.Setup(Quiet(), ports=[PortInterface("port0")]))
    with Serving(tmp_path, model) as served:
        served.claim()
        number = served.start("capture")
        wait_for(lambda: served.app.worker.run.last)  # type: ignore[union-attr]
        assert served.app.worker.call(lambda probe: probe.port_count).result(5) == 2  # The probe is not kept by it.
        served.call("POST", "/api/runs/current/stop")
        run = served.ended()
        assert (run.state, run.end, run.result.frames, run.result.is_complete) == ("ended", "stopped", 13, True)
        content = json.loads(ask(served.port, f"/r/{number}/result.json")[2])
        assert (content["format"], content["frames"], content["run"]["state"]) == ("liteprobe-capture", 13, "ended")
        assert ask(served.port, f"/r/{number}/capture.pcapng")[0] == 200


# Errors beside their fields -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "options", "part", "path", "words"),
    [
        (
            {"streams": [{"length": 60}, {"name": "x", "length": 1}]},
            {},
            "document",
            "/streams/1/length",
            "length 1 is out of range",
        ),
        (
            {"streams": [{"length": 60, "pps": "much"}]},
            {},
            "document",
            "/streams/0/pps",
            "'pps' is packets a second, not 'much'",
        ),
        ({"streams": [{"length": 60, "vlan": [{"id": 5000}]}]}, {}, "document", "/streams/0/vlan/0/id", "out of range"),
        ({"streams": [{"length": 60, "lenght": 1}]}, {}, "document", "/streams/0/lenght", "did you mean 'length'"),
        ({"streams": [{"name": "x"}]}, {}, "document", "/streams/0", "a stream needs 'length'"),
        ("streams:\n- length: 60\n  pps: 9\n  rate: 1M\n", {}, "document", "/streams/0/rate", "both given"),
        ("streams: [", {}, "document", "", "this is not YAML"),
        (ENDLESS, {"duration": "soon"}, "options", "/duration", "'duration' is a time, not 'soon'"),
        (ENDLESS, {"speed": 1}, "options", "/speed", "unknown key 'speed'"),
        ("", {}, "document", "", "the document is empty"),
    ],
)
def test_errors_have_the_place_of_what_is_wrong(
    served: Serving, document: Any, options: Any, part: str, path: str, words: str
) -> None:
    asked = {"kind": "streams", "document": document, "options": options}
    status, said = served.call("POST", "/api/check", asked)
    assert (status, said.get("part"), said.get("path"), words in said["error"]) == (400, part, path, True), said
    served.claim()
    assert served.call("POST", "/api/runs", asked) == (status, said) and served.app.worker.run is None
    assert not list(served.app.store.folder.glob("*/*.json"))


def test_a_part_that_the_probe_lacks_is_named(served: Serving) -> None:
    needed = {one["name"]: one["presets"] for one in served.call("GET", "/api/kinds")[1]}
    assert (needed["network"], needed["replay"]) == (["emulator"], ["replay"])
    assert needed["monitor"] == ["monitor", "generator", "tester", "replay"]
    served.claim()
    status, said = served.call("POST", "/api/runs", {"kind": "network", "document": "both: {delay: 5ms}"})
    assert status == 400 and "was built without the part emulate: give it as preset=emulator" in said["error"]


# Owners and the lost --------------------------------------------------------------------------------


def test_one_owner_starts_and_stops_and_others_are_told_its_name(served: Serving) -> None:
    asked = {"kind": "streams", "document": ENDLESS}
    for path in ("/api/runs", "/api/runs/current/stop", "/api/runs/current/set"):
        assert served.call("POST", path, asked) == (400, {"error": "nobody owns the probe: claim it first, by a name"})
    assert (
        served.call("POST", "/api/owner", {"name": 7})[0]
        == served.call("POST", "/api/owner", {"name": "x" * 99})[0]
        == 400
    )
    key = served.claim("Ann")
    served.start("streams", ENDLESS)
    served.key = ""
    for method, path, content in (
        ("POST", "/api/owner", {"name": "Bob"}),
        ("POST", "/api/runs/current/stop", None),
        ("DELETE", "/api/owner", None),
    ):
        status, said = served.call(method, path, content)
        assert status == 409 and said["error"].startswith("'Ann' owns the probe since 20")
    served.key = key
    assert served.call("POST", "/api/runs", asked)[0] == 409  # One thing at a time.
    assert served.call("DELETE", "/api/owner") == (200, {})
    assert served.ended().end == "its owner, Ann, has gone"
    served.claim("Bob")


def test_a_client_that_vanishes_leaves_no_run_and_no_lease(served: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "LEAST_S", 0.1)
    served.claim("Ann", patience_s=0.5)
    one = served.lines()
    line_of(one, "state")
    one.send(json.dumps({"key": served.key}))
    wait_for(lambda: (owner := served.app.owners.holder()) and owner.present)
    served.start("streams", ENDLESS)
    time.sleep(0.8)  # Its connection is open: it is there.
    assert served.app.worker.is_busy
    one.socket.close()  # Without a word.
    run = served.ended()
    assert (run.end, run.result.end, served.app.owners.holder()) == ("its owner, Ann, has gone", "stopped", None)
    wait_for(lambda: served.app.worker.status()["lease"] is None)


def test_a_watcher_that_vanishes_is_forgotten_and_the_run_goes_on(served: Serving) -> None:
    served.claim()
    watcher = served.lines()
    line_of(watcher, "state")
    with served.lines() as other:
        served.start("streams", ENDLESS)
        line_of(watcher, "look")
        assert len(served.app.hub.watchers) == 2
        linger = struct.pack("ii", 1, 0)  # Its machine lost power: a reset, and no word of a WebSocket.
        watcher.socket.setsockopt(sockets.SOL_SOCKET, sockets.SO_LINGER, linger)
        watcher.socket.close()
        wait_for(lambda: len(served.app.hub.watchers) == 1)
        assert served.app.worker.is_busy
        first = line_of(other, "look")["elapsed_s"]
        assert wait_for(lambda: line_of(other, "look")["elapsed_s"] > first)
        served.call("POST", "/api/runs/current/stop")
        assert line_of(other, "result")["why"] == "stopped"


def test_a_capture_that_the_disk_has_no_space_for_says_so(tmp_path: Path) -> None:
    with running("capture", tmp_path, has_begun=False) as served:
        new = served.app.store.new

        def full() -> tuple[str, Path]:
            number, folder = new()
            (folder / "capture.pcapng").symlink_to("/dev/full")
            return number, folder

        served.app.store.new = full  # type: ignore[method-assign]
        served.start("capture")
        run = served.ended()
        assert run.state == "failed" and run.end.startswith("the disk is full: ")
        assert re.search(r"holds nothing; make room, .* frames are missing in it", run.end)
        assert served.call("GET", "/api/state")[0] == 200 and served.app.worker.status()["state"] == "here"
        served.app.store.new = new  # type: ignore[method-assign]
        served.start("capture")
        wait_for(lambda: served.app.worker.run.last.get("frames"))  # type: ignore[union-attr]


def test_a_probe_that_is_lost_looks_lost_and_others_are_still_served(served: Serving) -> None:
    served.claim()
    with served.lines() as one:
        served.start("streams", ENDLESS)
        line_of(one, "look")
        served.error = NoProbeError("no probe answers at 10.0.0.50: see its cable")
        result = line_of(one, "result")
        assert (result["state"], result["why"]) == ("failed", str(served.error))
        probe = wait_for(lambda: (found := line_of(one, "state")["probe"])["state"] == "lost" and found)
        assert probe["error"] == str(served.error) and probe["url"]
        status, said = served.call("POST", "/api/runs", {"kind": "streams", "document": ENDLESS})
        assert status in (502, 503) and str(served.error) in said["error"]
        served.error = None
        wait_for(lambda: line_of(one, "state")["probe"]["state"] == "here")


# Hostile --------------------------------------------------------------------------------------------


def test_lines_need_the_token_and_the_origin(tmp_path: Path) -> None:
    with Serving(tmp_path, token=TOKEN) as served:
        for more in (
            {},
            {"additional_headers": {"Authorization": "Bearer no"}},
            {"origin": "https://elsewhere.example"},
        ):
            with pytest.raises((InvalidStatus, WebSocketException)):
                served.lines(**more)
        with served.lines(
            additional_headers={"Authorization": f"Bearer {TOKEN}"}, origin=f"http://127.0.0.1:{served.port}"
        ) as one:
            assert line_of(one, "state")
        statuses = {
            path: ask(served.port, path)[0]
            for path in ("/", "/page/app.js", "/api/state", "/api/kinds", "/openapi.json", "/metrics")
        }
        assert statuses == {
            "/": 200,
            "/page/app.js": 200,
            "/api/state": 401,
            "/api/kinds": 401,
            "/openapi.json": 401,
            "/metrics": 401,
        }


@pytest.mark.parametrize(
    "path",
    [
        "/page/../app.py", "/page/%2e%2e/app.py", "/page/..%2fapp.py", "/page/index.html", "/page/README.md", "/page//etc/passwd",
        "/r/../../etc/passwd", "/r/uploads/x", f"/r/{'A' * 22}/meta.json", f"/r/{'A' * 22}/report.pickle", "/r/%2e%2e/result.json",
        "/r/%00/result.json", f"/r/{'../' * 7}aa/result.json",
    ],
)  # fmt: skip
def test_no_other_file_is_given_away(served: Serving, path: str) -> None:
    assert ask(served.port, path)[0] == 404
    assert ask(served.port, path, method="POST", body="x")[0] in (404, 405)


def test_a_document_names_no_file_of_this_host(served: Serving, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("root:x:0:0\n")
    for name in (str(secret), "../secret", "/etc/passwd"):
        status, said = served.call("POST", "/api/check", {"kind": "network", "document": {"there": {"trace": name}}})
        assert (status, said["path"]) == (400, "/there/trace") and "no file of this host can be named here" in said[
            "error"
        ]
    for name in ("../secret", "0" * 16, "x/../../secret"):
        status, said = served.call("POST", "/api/check", {"kind": "replay", "options": {"file": name}})
        assert (status, said["path"]) == (400, "/file")


def test_captures_are_uploaded_by_the_owner_alone_and_few_are_kept(
    served: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ask(served.port, "/api/captures", b"x")[0] == 400
    key = {"X-LiteProbe-Key": served.claim()}
    status, _, said = ask(served.port, "/api/captures", b"not a capture" * 99_000, **key)
    assert (status, json.loads(said)["octets"]) == (201, 13 * 99_000)  # More than other bodies may have.
    status, _, said = ask(
        served.port, "/api/check", json.dumps({"kind": "replay", "options": {"file": json.loads(said)["file"]}})
    )
    assert status == 400 and json.loads(said)["path"] == "/file"
    names = [json.loads(ask(served.port, "/api/captures", b"x", **key)[2])["file"] for _ in range(18)]
    assert len(list(served.app.store.uploads.iterdir())) == 16 and (served.app.store.uploads / names[-1]).exists()


def test_a_slow_reader_is_let_go_and_others_get_all(served: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apps, "SLOW_S", 1.0)
    served.claim()
    link = sockets.create_connection(("127.0.0.1", served.port))
    link.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
    link.sendall(
        b"GET /api/lines HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    wait_for(lambda: served.app.hub.watchers)
    slow = next(iter(served.app.hub.watchers))
    with served.lines() as one, ThreadPoolExecutor() as pool:
        result = pool.submit(line_of, one, "result", 60.0)  # It takes whatever comes.

        def is_gone() -> bool:
            served.app.hub.tell({"kind": "look", "run": "x", "fill": "x" * 500_000})
            return slow not in served.app.hub.watchers

        wait_for(is_gone, 60.0)
        assert slow.skipped and len(slow.lines) <= apps.WAITING_MOST
        assert served.call("GET", "/api/state")[0] == 200
        served.start("streams", COUNTED)
        assert result.result(60.0)["why"] == "sent"
    link.close()


def test_random_garbage_starts_nothing_and_breaks_nothing(served: Serving) -> None:
    found = fuzzed(served, random.Random(20261128), 400)
    assert found.keys() >= {200, 400, 404, 405} and max(found) < 500 and served.app.worker.run is None
    wait_for(lambda: not served.app.hub.watchers)
    with served.lines() as one:
        assert line_of(one, "state")["probe"]["state"] == "here"


def test_documents_that_take_long_to_check_hold_up_nobody_else(
    served: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apps, "CHECK_WAIT_S", 0.05)
    going = [served.app._checks.acquire(timeout=1) for _ in range(apps.CHECKS_MOST)]  # Checks that go on.
    asked = {"kind": "streams", "document": COUNTED}
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: served.call("POST", "/api/check", asked), range(24)))
    assert {status for status, _ in answers} == {409} and "try again in a moment" in answers[0][1]["error"]
    assert served.call("GET", "/api/state")[0] == 200
    for _ in going:
        served.app._checks.release()
    assert served.call("POST", "/api/check", asked)[0] == 200


def test_a_page_s_example_for_a_day_is_checked_at_once(served: Serving) -> None:
    text = next(iter(KINDS["streams"].examples.values()))  # type: ignore[union-attr]
    began_s = time.monotonic()
    asked = {"kind": "streams", "document": text, "options": {"duration": "24h"}}
    assert served.call("POST", "/api/check", asked)[0] == 200
    assert time.monotonic() - began_s < 30  # Drawing each of its random intervals takes minutes.


def test_aliases_of_aliases_are_read_in_a_moment(served: Serving) -> None:
    levels = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))
    began = time.monotonic()
    status, said = served.call(
        "POST", "/api/check", {"kind": "streams", "document": f"a0: &a0 [x]\n{levels}\nstreams: *a29"}
    )
    assert status == 400 and said["error"] and time.monotonic() - began < 5


def test_what_is_no_number_of_json_becomes_null() -> None:
    assert json.loads(dumps({"a": [1.5, float("inf"), {"b": float("nan")}]})) == {"a": [1.5, None, {"b": None}]}
    assert "report.pickle" not in FILES


# The command ----------------------------------------------------------------------------------------


def test_the_command_serves_until_ctrl_c_whether_a_probe_is_there_or_not(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "liteprobe.host.cli",
        "serve",
        "--port",
        "0",
        "--folder",
        str(tmp_path / "results"),
    ]
    command += ["--probe", "etherbone://127.0.0.1:9?timeout=0.1", "--token", str(tmp_path / "token")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stderr
        said = [process.stdout.readline() for _ in range(2)]
        token = (tmp_path / "token").read_text().strip()
        assert (
            re.fullmatch(r"serving etherbone://\S+ on http://127.0.0.1:\d+; Ctrl-C ends it\n", said[0])
            and token in said[1]
        )
        port = int(re.findall(r":(\d+);", said[0])[0])
        answers = [ask(port, "/api/state", Authorization=f"Bearer {token}") for _ in range(2)]
        assert answers[0][0] == 200 and json.loads(answers[0][2])["probe"]["state"] in ("opening", "lost")
        process.send_signal(signal.SIGINT)
        assert (process.wait(40), process.stderr.read()) == (0, "")


def test_the_command_is_not_open_by_accident(run: Any, tmp_path: Path) -> None:
    code, out, err = run("serve", "--address", "0.0.0.0", "--folder", str(tmp_path))
    assert (code, out) == (
        2,
        "",
    ) and "open to the network, so it takes --token FILE and --tls CERTIFICATE.pem KEY.pem" in err
