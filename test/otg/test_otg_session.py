# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Clients as they are (snappi, HTTP and gRPC) against a served model of a probe: transitions, metrics, errors, faults."""

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import grpc
import pytest
import requests
import snappi
from otg_configs import FIFO, LIFO, REFUSED, config, fixed, flow, packets, pps

from liteprobe.host.base.errors import BusyError, LeaseLostError, NoProbeError, ProbeError, UsageError
from liteprobe.host.cli.main import main
from liteprobe.host.otg.flows import TimeScale
from liteprobe.host.otg.messages import pb
from liteprobe.host.otg.rest import json_of
from liteprobe.host.otg.server import OtgServer, OtgSettings, http_settings, own_certificate, serving
from liteprobe.host.otg.session import SessionSettings, error_of
from liteprobe.host.probe import Probe
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.drivers.tools.processes import LIMIT_S, wait_for
from liteprobe.sim.models.probe.streams import TrafficProbe
from liteprobe.sim.models.probe.trains import ModelProbe

Json = dict[str, Any]
CONTINUOUS = {"choice": "continuous", "continuous": {}}
needs_openssl = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="no openssl is here to make certificates: apt install openssl"
)
WIRE_NS = 8 * 37  # Of the model's cable.


@contextmanager
def served(folder: Path, **settings: Any) -> Iterator[OtgServer]:
    """Serve a model whose ports are joined by a cable."""

    def open_probe() -> Probe:
        return Probe(FakeLink(TrafficProbe(lambda frame: [(1 - frame.port, 37, frame)]), folder))

    local = http_settings("127.0.0.1", 0, None)
    with serving(open_probe, OtgSettings(local, local, SessionSettings(**settings))) as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OtgServer]:
    with served(tmp_path_factory.mktemp("otg")) as found:
        yield found


@pytest.fixture(params=["http", "grpc"])
def api(request: pytest.FixtureRequest, server: OtgServer) -> Any:
    return client(server, request.param)


def client(server: OtgServer, transport: str = "http") -> Any:
    """Return snappi's client."""
    where = server.url if transport == "http" else f"127.0.0.1:{server.grpc_port}"
    return snappi.api(where, transport=transport, verify=False, version_check=True)


def transmit(api: Any, state: str, *names: str) -> Any:
    """Start, stop, pause or resume flows."""
    control = api.control_state()
    control.traffic.flow_transmit.state = state
    control.traffic.flow_transmit.flow_names = list(names)
    return api.set_control_state(control)


def flows(api: Any) -> Any:
    """Return the metrics of all flows."""
    request = api.metrics_request()
    request.flow.flow_names = []
    return api.get_metrics(request).flow_metrics


def until(api: Any, holds: Callable[[Any], bool]) -> Any:
    """Return the metrics of all flows as soon as something holds of them."""
    return wait_for(lambda: found if holds(found := flows(api)) else None)


def stopped(found: Any) -> bool:
    return all(one.transmit == "stopped" for one in found)


def errors_of(act: Callable[[], Any]) -> Any:
    """Return the error that a client raises."""
    with pytest.raises(Exception) as raised:
        act()
    return raised.value.args[0]


def test_a_flow_is_sent_and_measured(api: Any) -> None:
    warning = api.set_config(json.dumps(config(flow(metrics=FIFO, size=fixed(200)))))
    assert list(warning.warnings or []) == []
    assert [one.transmit for one in flows(api)] == ["stopped"]
    transmit(api, "start")
    (found,) = until(api, stopped)
    assert (found.name, found.port_tx, found.port_rx) == ("f1", "p1", "p2")
    assert (found.frames_tx, found.frames_rx, found.bytes_tx, found.bytes_rx) == (30, 30, 6000, 6000)
    assert (found.loss, found.frames_tx_rate, found.frames_rx_rate) == (0.0, 0.0, 0.0)
    latency, stamps = found.latency, found.timestamps
    assert latency.minimum_ns == latency.maximum_ns == latency.average_ns == WIRE_NS
    assert stamps.last_timestamp_ns - stamps.first_timestamp_ns == pytest.approx(29 * 10_000, abs=300)


def test_latency_counts_from_the_last_bit_where_that_is_asked_for(api: Any) -> None:
    api.set_config(json.dumps(config(flow(metrics=LIFO, size=fixed(128)))))
    transmit(api, "start")
    (found,) = until(api, stopped)
    assert found.latency.average_ns == WIRE_NS - 8 * 128


def test_a_flow_without_an_end_pauses_goes_on_and_stops(api: Any) -> None:
    api.set_config(json.dumps(config(flow(duration=CONTINUOUS, rate=pps(50_000)), flow(number=2, duration=CONTINUOUS))))
    transmit(api, "start")
    until(api, lambda found: all(one.frames_tx > 20 for one in found))
    (found, other) = until(api, lambda found: found[0].frames_rx_rate > 0)
    assert (found.transmit, other.transmit) == ("started", "started")
    assert found.frames_tx_rate == pytest.approx(50_000, rel=0.02)
    assert found.rx_l1_rate_bps == pytest.approx(50_000 * 148 * 8, rel=0.05)
    assert found.rx_rate_bps == pytest.approx(50_000 * 128 * 8, rel=0.05)
    transmit(api, "pause", "f1")
    until(api, lambda found: found[0].transmit == "paused")
    before = flows(api)[0].frames_tx
    (found, _) = until(api, lambda found: found[1].frames_tx > other.frames_tx + 100)
    assert (found.transmit, found.frames_tx) == ("paused", before)
    transmit(api, "resume", "f1")
    until(api, lambda found: found[0].frames_tx > before)
    transmit(api, "stop", "f1")
    assert [one.transmit for one in flows(api)] == ["stopped", "started"]
    transmit(api, "stop")
    found = until(api, stopped)
    assert all(one.frames_tx == one.frames_rx > 0 for one in found)


def test_what_is_configured_comes_back_as_it_was_given(api: Any) -> None:
    given = config(flow(rate=pps(123)), flow(number=2))
    api.set_config(json.dumps(given))
    assert json.loads(api.get_config().serialize("json"))["flows"][0]["rate"] == {"choice": "pps", "pps": "123"}
    added = api.config_append()
    more = added.config_append_list.add()
    more.flows.deserialize([flow(number=3)]) if hasattr(more.flows, "deserialize") else more.flows.append(
        snappi.Flow().deserialize(flow(number=3))
    )
    api.append_config(added)
    assert [one.name for one in api.get_config().flows] == ["f1", "f2", "f3"]
    gone = api.config_delete()
    gone.config_delete_list.add().flows = ["f1"]
    api.delete_config(gone)
    assert [one.name for one in api.get_config().flows] == ["f2", "f3"]
    update = api.config_update()
    update.flows.property_names = ["rate"]
    update.flows.flows.append(snappi.Flow().deserialize(flow(number=2, rate=pps(77))))
    api.update_config(update)
    assert api.get_config().flows[0].rate.pps == 77


@pytest.mark.parametrize("name", ["arp after udp", "above the line", "tracking"])
def test_what_can_not_be_is_an_error_of_the_models(api: Any, name: str) -> None:
    given, path = REFUSED[name]
    error = errors_of(lambda: api.set_config(json.dumps(given)))
    assert error.kind == "validation" and error.code in (400, 3)
    assert any(line.startswith(f"{path}: ") for line in error.errors)


def test_a_configuration_does_not_end_flows_of_another_client(api: Any, server: OtgServer) -> None:
    api.set_config(json.dumps(config(flow(duration=CONTINUOUS))))
    transmit(api, "start")
    other = client(server)
    error = errors_of(lambda: other.set_config(json.dumps(config())))
    assert error.errors == ["flows 'f1' transmit: stop them first (control/state, traffic), or serve with --replace"]
    again = errors_of(lambda: transmit(other, "start"))
    assert "flows 'f1' transmit or are paused: stop them first" in again.errors[0]
    transmit(api, "stop")
    until(api, stopped)
    other.set_config(json.dumps(config()))


def test_ports_have_counts_and_states(api: Any) -> None:
    api.set_config(json.dumps(config(flow(size=fixed(100)))))
    transmit(api, "start")
    until(api, stopped)
    request = api.metrics_request()
    request.port.port_names = []
    one, two = api.get_metrics(request).port_metrics
    assert (one.name, one.location, one.link, one.transmit, one.capture) == ("p1", "0", "up", "stopped", "stopped")
    assert (one.frames_tx, one.bytes_tx, one.speed) == (30, 3000, 125_000)
    assert (two.frames_tx, two.frames_rx, two.bytes_rx) == (0, 30, 3000)
    request.port.column_names = ["frames_tx"]
    assert json.loads(api.get_metrics(request).serialize("json"))["port_metrics"][0] == {
        "name": "p1",
        "frames_tx": "30",
    }


def test_names_that_are_of_nothing_are_named(api: Any) -> None:
    api.set_config(json.dumps(config(flow())))
    assert "there is no flow 'x'" in errors_of(lambda: transmit(api, "start", "x")).errors[0]
    request = api.metrics_request()
    request.flow.flow_names = ["f1", "y"]
    assert errors_of(lambda: api.get_metrics(request)).errors[0].startswith("flow.flow_names[1]: there is no flow 'y'")
    capture = api.capture_request()
    capture.port_name = "p1"
    assert "nothing was captured on port 'p1'" in errors_of(lambda: api.get_capture(capture)).errors[0]
    request.bgpv4.peer_names = []
    assert "bgpv4: liteprobe does not support these metrics" in errors_of(lambda: api.get_metrics(request)).errors[0]
    action = api.control_action()
    action.protocol.ipv4.ping.requests.add(src_name="a", dst_ip="1.1.1.1")
    action.protocol.ipv4.ping.requests.add(src_name="a", dst_ip="1.1.1.1")
    assert [line.split(": ")[0] for line in errors_of(lambda: api.set_control_action(action)).errors] == [
        "protocol.ipv4.ping.requests[0].src_name",
        "protocol.ipv4.ping.requests[1].src_name",
    ]


def test_parts_that_a_probe_lacks_are_named(api: Any) -> None:
    given = config(flow(), captures=[{"name": "c", "port_names": ["p2"]}])
    error = errors_of(lambda: api.set_config(json.dumps(given)))
    assert "without the part monitor" in error.errors[0] and error.errors[0].startswith("captures: ")


def test_links_go_down_and_up_only_where_a_host_can_do_that(api: Any) -> None:
    api.set_config(json.dumps(config()))
    control = api.control_state()
    control.port.link.state = "down"
    assert "a host can't pull the cable" in errors_of(lambda: api.set_control_state(control)).errors[0]


def test_time_goes_by_the_scale_and_says_so(tmp_path: Path) -> None:
    with served(tmp_path, scale=TimeScale(Fraction(500))) as server:
        api = client(server)
        seconds = {"choice": "fixed_seconds", "fixed_seconds": {"seconds": 2}}
        warning = api.set_config(json.dumps(config(flow(rate=pps(100), duration=seconds))))
        assert warning.warnings[0].startswith("time scale 500: a second of the client is 0.002 s of the probe")
        transmit(api, "start")
        until(api, lambda found: found[0].frames_tx > 10)
        running = until(api, lambda found: found[0].frames_tx_rate > 0 or stopped(found))
        assert stopped(running) or running[0].frames_tx_rate == pytest.approx(100, rel=0.05)
        (found,) = until(api, stopped)
        assert found.frames_tx == found.frames_rx == 200
        request = api.metrics_request()
        request.port.port_names = ["p1"]
        assert api.get_metrics(request).port_metrics[0].location == "0 (time scale 500)"
        assert (
            requests.get(server.url + "/capabilities/version", timeout=LIMIT_S).headers["liteprobe-time-scale"] == "500"
        )
        assert api.get_version().app_version.endswith("+time-scale.500")


def forget(server: OtgServer) -> None:
    """Have it be two hours ago that a request came."""

    def earlier(probe: Probe) -> None:
        server.session._asked_s -= 7200

    server.worker.call(earlier).result(60)


@pytest.mark.parametrize("state", ["start", "pause"])
def test_what_a_client_that_is_gone_left_ends_and_the_probe_is_free(tmp_path: Path, state: str) -> None:
    """A flow without an end, and one that has an end and is paused: both would keep the probe from others for ever."""
    duration = CONTINUOUS if state == "start" else packets(1_000_000)
    with served(tmp_path) as server:
        api = client(server)
        api.set_config(json.dumps(config(flow(duration=duration))))
        transmit(api, "start")
        until(api, lambda found: found[0].frames_tx > 20)
        if state == "pause":
            transmit(api, "pause")
        assert server.worker.status()["lease"] is not None or server.worker.is_busy
        del api
        forget(server)
        wait_for(lambda: not server.worker.is_busy and server.worker.status()["lease"] is None)
        other = client(server)
        (found,) = flows(other)
        assert found.transmit == "stopped" and found.frames_tx == found.frames_rx > 0
        said = other.set_config(json.dumps(config(flow()))).warnings
        assert list(said or []) == []
        assert "flows were stopped: no request came for 3,600 s" in " ".join(transmit(other, "start").warnings)
        until(other, stopped)


@pytest.mark.parametrize("transport", ["http", "grpc"])
def test_each_part_that_another_preset_lacks_is_named_with_presets_that_have_it(tmp_path: Path, transport: str) -> None:
    def open_probe() -> Probe:
        return Probe(FakeLink(ModelProbe(), tmp_path))

    local = http_settings("127.0.0.1", 0, None)
    interface = {
        "name": "e",
        "mac": "02:00:00:00:00:01",
        "connection": {"choice": "port_name", "port_name": "p1"},
        "ipv4_addresses": [{"name": "a", "address": "10.0.0.1", "gateway": "10.0.0.2"}],
    }
    given = config(
        flow(),
        captures=[{"name": "c", "port_names": ["p2"]}],
        devices=[{"name": "d", "ethernets": [interface]}],
    )
    with serving(open_probe, OtgSettings(local, local)) as server:
        api = client(server, transport)
        errors = errors_of(lambda: api.set_config(json.dumps(given))).errors
        assert [error.split(": ")[0] for error in errors] == ["flows", "flows", "captures", "devices"]
        for error, part, remedy in zip(
            errors,
            ("streams", "monitor or measure", "monitor", "hosts"),
            ("--preset generator", "generator", "--preset monitor", "--hosts"),
            strict=True,
        ):
            assert f"without the part {part}" in error and remedy in error, error
        api.set_config(json.dumps(config()))


@needs_openssl
def test_a_certificate_that_has_expired_ends_the_start_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request, key, certificate = (tmp_path / name for name in ("request.pem", "key.pem", "certificate.pem"))
    made = f"openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost -keyout {key} -out {request}"
    signed = f"openssl x509 -req -in {request} -signkey {key} -days -1 -out {certificate}"
    for command in (made, signed):
        subprocess.run(command.split(), check=True, capture_output=True)
    assert main(["otg", "--https-port", "0", "--grpc-port", "0", "--tls", str(certificate), str(key)]) == 2
    yesterday = datetime.now(UTC) - timedelta(days=1)
    said = capsys.readouterr().err
    assert f"the certificate {certificate} expired on {yesterday:%Y-%m-%d} " in said.replace("\n", " ")
    assert "give a new one (--tls CERTIFICATE.pem KEY.pem)" in said.replace("\n", " ")


def test_a_lost_probe_is_an_error_and_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("liteprobe.host.serve.worker.AGAIN_S", 0.05)
    monkeypatch.setattr("liteprobe.host.serve.worker.STATUS_S", 0.05)
    with served(tmp_path) as server:
        api = client(server)
        api.set_config(json.dumps(config(flow())))
        read, is_lost = FakeLink.read_scattered, True

        def lost(link: FakeLink, addresses: Any) -> Any:
            if is_lost:
                raise NoProbeError("the cable is out")
            return read(link, addresses)

        monkeypatch.setattr(FakeLink, "read_scattered", lost)
        error = errors_of(lambda: transmit(api, "start"))
        assert (error.code, error.kind) in (
            (503, "internal"),
            (500, "internal"),
        ) and "the cable is out" in error.errors[0]
        is_lost = False
        time.sleep(0.5)
        transmit(api, "start")
        assert until(api, stopped)[0].frames_rx == 30


def test_requests_that_are_none_are_errors_of_the_models(server: OtgServer) -> None:
    session, url = requests.Session(), server.url
    cases: list[tuple[str, str, bytes | None, Json, int]] = [
        ("POST", "/config", b"{}", {}, 415),
        ("POST", "/config", b"{}", {"Content-Type": "text/plain"}, 415),
        ("POST", "/config", b"{", {"Content-Type": "application/json"}, 400),
        ("POST", "/config", b'{"flows": 3}', {"Content-Type": "application/json"}, 400),
        ("POST", "/config", b'{"flows": [{"nothing": 1}]}', {"Content-Type": "application/json"}, 400),
        ("POST", "/config", b"[" * 5000, {"Content-Type": "application/json"}, 400),
        ("POST", "/monitor/metrics", b"\xff", {"Content-Type": "application/json"}, 400),
        ("GET", "/nothing", None, {}, 404),
        ("DELETE", "/config", None, {}, 405),
    ]
    for method, path, body, headers, status in cases:
        found = session.request(method, url + path, data=body, headers=headers, timeout=LIMIT_S)
        assert found.status_code == status, (method, path, found.text)
        error = found.json()
        assert (error["code"], error["kind"]) == (status, "validation") and error["errors"], error
    good = session.post(
        url + "/config", data=b"{}", headers={"Content-Type": "application/json; charset=utf-8"}, timeout=LIMIT_S
    )
    assert (good.status_code, good.json()) == (200, {})
    assert (
        session.post(
            url + "/config",
            data=b"{}",
            headers={"Content-Type": "application/json", "Host": "evil.example"},
            timeout=LIMIT_S,
        ).status_code
        == 421
    )


@pytest.mark.parametrize("method", ["SetConfig", "GetMetrics", "streamGetMetrics", "streamSetConfig"])
def test_octets_that_are_no_message_are_an_error_of_the_models(
    server: OtgServer, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        ends = ("stream" if method.startswith("streamSet") else "unary", "stream" if "streamGet" in method else "unary")
        call = getattr(channel, "_".join(ends))(f"/otg.Openapi/{method}")
        content = b"\xff\xff\xff"
        with pytest.raises(grpc.RpcError) as raised:
            found = call(iter([content]) if ends[0] == "stream" else content, timeout=60)
            list(found)
        assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        error = json.loads(raised.value.details())
        assert (error["kind"], error["code"]) == (
            "validation",
            3,
        ) and "can't be read as a message of the models" in error["errors"][0]
    assert caplog.records == []
    assert client(server, "grpc").get_version().sdk_version


def test_messages_come_in_pieces_where_a_client_asks_for_that(server: OtgServer) -> None:
    api = client(server, "grpc")
    api.enable_grpc_streaming = True
    api._chunk_size = 100  # Octets, so that a small configuration is several pieces.
    api.set_config(json.dumps(config(flow(), flow(number=2))))
    assert [one.name for one in api.get_config().flows] == ["f1", "f2"]
    assert [one.name for one in flows(api)] == ["f1", "f2"]
    assert "arp" in errors_of(lambda: api.set_config(json.dumps(REFUSED["arp after udp"][0]))).errors[0]


def test_floats_have_a_point_and_numbers_of_64_bits_are_texts() -> None:
    found = pb.MetricsResponse()
    row = found.flow_metrics.add()
    row.frames_tx, row.loss = 2**60, 1.0
    row.timestamps.first_timestamp_ns, row.latency.minimum_ns = 1e18, 1e-7
    assert json_of(found) == (
        b'{"flow_metrics": [{"frames_tx": "1152921504606846976", "loss": 1.0, "timestamps": '
        b'{"first_timestamp_ns": 1.0e+18}, "latency": {"minimum_ns": 1.0e-07}}]}'
    )


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        local = http_settings("127.0.0.1", 0, None)
        busy = http_settings("127.0.0.1", taken.getsockname()[1], None)
        with (
            pytest.raises(Exception, match=r"another --grpc-port"),
            serving(lambda: Probe(FakeLink(TrafficProbe(lambda frame: []), tmp_path)), OtgSettings(local, busy)),
        ):
            pass


@needs_openssl
def test_a_certificate_is_made_once_and_anew_when_it_is_no_good(tmp_path: Path) -> None:
    certificate, key = own_certificate(tmp_path / "own", "127.0.0.1")
    first = certificate.read_text()
    assert own_certificate(tmp_path / "own", "127.0.0.1") == (certificate, key) and certificate.read_text() == first
    assert key.stat().st_mode & 0o077 == 0
    for spoilt in ("", "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"):
        certificate.write_text(spoilt)
        own_certificate(tmp_path / "own", "127.0.0.1")
        assert http_settings("127.0.0.1", 0, (certificate, key)).tls()


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        (BusyError("'ann@lab' has the lease"), 409, "internal"),
        (LeaseLostError("another host took the lease"), 409, "internal"),
        (NoProbeError("no probe answers"), 503, "internal"),
        (ProbeError("the link of port 0 is down"), 500, "internal"),
        (UsageError("give 0 to 1"), 400, "validation"),
        (ZeroDivisionError(), 500, "internal"),
    ],
)
def test_an_error_of_the_library_has_the_code_of_its_kind(error: Exception, code: int, kind: str) -> None:
    """A probe that another host has is one of them: the configuration isn't at fault."""
    found = error_of(error)
    assert (found.code, found.kind) == (code, kind) and str(error) in found.errors[0]
