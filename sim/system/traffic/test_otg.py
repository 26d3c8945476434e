# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A simulated tester served as an Open Traffic Generator: frames, captures and devices against the pins."""

import io
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import otg_configs as configs
import pytest
import snappi
from scapy.layers.inet import ICMP, IP
from scapy.layers.inet6 import ICMPv6EchoReply, ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import Ether
from scapy.utils import PcapNgReader, PcapReader, rdpcap

from liteprobe.host.base import interrupt
from liteprobe.sim.drivers.system.otg import OtgDesk, served, wrong_run
from liteprobe.sim.models.traffic import otg as model

Json = dict[str, Any]
OPENSSL = shutil.which("openssl")
CAPTURE_MOST = 16 << 10
OUT, IN = 1, 0  # Management is in band on port 0.
PORTS = [{"name": "p1", "location": "1"}, {"name": "p2", "location": "0"}]


#: With a stamp in the payload of an inner packet, and a checksum that the end of the frame makes right, by a sum of each kind.
LAYERS = (
    "vxlan, inner ipv6 and udp",
    "vxlan over ipv6, inner tcp",
    "ping",
    "ping of ipv6",
    "vxlan, inner addresses that count",
)


@pytest.fixture(scope="module")
def desk(tester: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OtgDesk]:
    interrupt.install()
    with served(
        tester, tmp_path_factory.mktemp("otg"), "shared", has_tls=bool(OPENSSL), capture_most=CAPTURE_MOST
    ) as found:
        yield found


def turned(config: Json, **more: Any) -> Json:
    """Return a configuration whose frames leave by the port without management."""
    return {**config, "ports": PORTS, **more}


@pytest.mark.parametrize("name", ["udp ports that count", "ipv6 udp ports from a list", "first bit to first bit"])
def test_frames_and_metrics_are_those_of_the_pins(desk: OtgDesk, name: str) -> None:
    config = turned(configs.RUNS[name])
    assert wrong_run(config, *desk.run(config, OUT, IN)) == []


@pytest.mark.parametrize("name", LAYERS)
def test_layers_and_their_checksums_are_those_of_the_pins(desk: OtgDesk, name: str) -> None:
    """Compare frames alone: in band the metrics have the frames of management, too."""
    config = turned(configs.RUNS[name])
    _, sent, came = desk.run(config, OUT, IN)
    assert model.wrong_frames(config["flows"][0], sent) == []
    assert [octets for _, octets in came] == [octets for _, octets in sent]


@pytest.mark.parametrize("seed", [7, 8_021])
def test_what_a_wire_loses_is_lost_in_the_metrics(tester: Path, tmp_path: Path, seed: int) -> None:
    """A flow with a probe header, and one without: each tenth frame or so is lost, some at the end, where nothing follows."""
    interrupt.install()
    with served(tester, tmp_path, "shared", f"cable?delay=1us&loss=10%&seed={seed}") as lossy:
        for name in ("udp ports that count", "first bit to first bit"):
            flow = {**configs.RUNS[name]["flows"][0], "metrics": {"enable": True, "loss": True}}
            found, sent, came = lossy.run(turned(configs.RUNS[name], flows=[flow]), OUT, IN)
            (metric,) = found
            assert 0 < len(came) < len(sent)
            assert (int(metric["frames_tx"]), int(metric["frames_rx"])) == (len(sent), len(came))
            assert int(metric["bytes_rx"]) == sum(len(frame) + 4 for _, frame in came)
            assert metric["loss"] == pytest.approx(100 * (len(sent) - len(came)) / len(sent), rel=1e-6)


def test_a_capture_has_the_frames_of_the_pins_with_their_fcs(desk: OtgDesk) -> None:
    mine = {"src": {"value": "020000000101", "mask": "ffffffffffff"}}
    capture = {"name": "c", "port_names": ["p2"], "filters": [{"choice": "ethernet", "ethernet": mine}]}
    config = turned(configs.config(configs.flow(size=configs.DRAWN)), captures=[capture])
    desk.good("/config", config)
    desk.capture("start")
    before = len(desk.pins(IN, "in"))
    desk.transmit("start")
    desk.finished()
    assert [one["capture"] for one in desk.metrics("port")] == ["stopped", "started"]
    desk.capture("stop")
    seen = [frame for _, frame in desk.pins(IN, "in")[before:]]
    found = [bytes(one) for one in rdpcap(io.BytesIO(desk.captured("p2")))]
    assert [one[:-4] for one in found] == seen and len(seen) == 30
    assert all(fcs(one[:-4]) == one[-4:] for one in found)
    part = desk.captured(
        "p2", packets={"choice": "slice", "slice": {"choice": "initial", "initial": {"start": 3, "count": 5}}}
    )
    assert [bytes(one) for one in PcapReader(io.BytesIO(part))] == found[2:7]
    assert desk.metrics("port")[1]["capture"] == "stopped"


def test_a_capture_is_cut_and_written_as_it_is_asked_for(desk: OtgDesk) -> None:
    capture = {"name": "c", "port_names": ["p2"], "format": "pcapng", "packet_size": 50}
    capture["filters"] = [
        {"choice": "ipv4", "ipv4": {"protocol": {"value": "11", "negate": False}}},
        {"choice": "custom", "custom": {}},
    ]
    error = desk.post("/config", turned(configs.config(configs.flow()), captures=[capture])).json()
    assert error["errors"][0].startswith("captures[0].filters[1].custom.offset: custom filters come first")
    capture["filters"] = [{"choice": "custom", "custom": {"offset": 36 * 8, "bit_length": 16, "value": "1770"}}]
    desk.good("/config", turned(configs.config(configs.flow(duration=configs.packets(7))), captures=[capture]))
    desk.capture("start")
    desk.transmit("start")
    desk.finished()
    found = [bytes(one) for one in PcapNgReader(io.BytesIO(desk.captured("p2")))]
    assert [len(one) for one in found] == [50] * 7
    assert all(one[36:38] == b"\x17\x70" for one in found)


def test_a_capture_beyond_its_limit_has_the_newest_frames_and_says_how_many_are_missing(desk: OtgDesk) -> None:
    capture = {"name": "c", "port_names": ["p2"], "format": "pcapng"}
    capture["filters"] = [{"choice": "custom", "custom": {"offset": 36 * 8, "bit_length": 16, "value": "1770"}}]
    desk.good("/config", turned(configs.config(configs.flow(duration=configs.packets(300))), captures=[capture]))
    desk.capture("start")
    before = len(desk.pins(IN, "in"))
    desk.transmit("start")
    desk.finished()
    content = desk.captured("p2")
    came = [octets for _, octets in desk.pins(IN, "in")[before:] if octets[36:38] == b"\x17\x70"]
    kept = [bytes(one)[:-4] for one in PcapNgReader(io.BytesIO(content))]
    assert len(came) == 300 and 0 < len(kept) < 300 and kept == came[-len(kept) :]
    warnings = " ".join(desk.transmit("start")["warnings"])
    assert f"left out {300 - len(kept)} frames: it may have {CAPTURE_MOST:,} octets (--capture-limit)" in warnings
    desk.finished()
    counts = content[content.rindex(b"\5\0\0\0") :]  # The last block: statistics of the interface.
    for code, count in ((4, 300), (7, 300 - len(kept)), (8, len(kept))):
        assert bytes([code, 0, 8, 0]) + count.to_bytes(8, "little") in counts


@pytest.mark.skipif(OPENSSL is None, reason="no openssl is here to make certificates: apt install openssl")
@pytest.mark.parametrize("name", ["vxlan, inner addresses that count", "gre of ethernet"])
def test_snappi_sends_layers_over_https(desk: OtgDesk, name: str) -> None:
    """The client of OTG's authors as it is, from the set of the configuration to the metrics."""
    config = turned(configs.RUNS[name])
    assert desk.server.url.startswith("https://")
    api = snappi.api(desk.server.url, verify=False)
    api.set_config(json.dumps(config))
    before = len(desk.pins(OUT)), len(desk.pins(IN, "in"))
    control = api.control_state()
    control.traffic.flow_transmit.state = "start"
    api.set_control_state(control)
    desk.finished()
    request = api.metrics_request()
    request.flow.flow_names = [config["flows"][0]["name"]]
    (metric,) = api.get_metrics(request).flow_metrics
    sent, came = desk.pins(OUT)[before[0] :], desk.pins(IN, "in")[before[1] :]
    assert model.wrong_frames(config["flows"][0], sent) == []
    assert [octets for _, octets in came] == [octets for _, octets in sent]
    assert (metric.transmit, metric.frames_tx) == ("stopped", len(sent))


def fcs(frame: bytes) -> bytes:
    """Return the FCS of a frame, bit by bit.

    Source: IEEE 802.3-2022, 3.2.9.
    """
    crc = 0xFFFFFFFF
    for octet in frame:
        crc ^= octet
        for _ in range(8):
            crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
    return (crc ^ 0xFFFFFFFF).to_bytes(4, "little")


def device(name: str, port: str, own: int, other: int) -> Json:
    """Return a device with an interface of both families."""
    return {
        "name": name,
        "ethernets": [
            {
                "name": f"{name}.eth",
                "mac": f"02:00:00:00:00:{own:02x}",
                "connection": {"choice": "port_name", "port_name": port},
                "ipv4_addresses": [{"name": f"{name}.4", "address": f"10.0.0.{own}", "gateway": f"10.0.0.{other}"}],
                "ipv6_addresses": [
                    {"name": f"{name}.6", "address": f"2001:db8::{own:x}", "gateway": f"2001:db8::{other:x}"}
                ],
            }
        ],
    }


def test_devices_find_each_other_and_flows_their_gateway(desk: OtgDesk) -> None:
    header = {"choice": "ethernet", "ethernet": {"src": configs.value("02:00:00:00:00:11")}}
    packet = [header, configs.ipv4(src=configs.value("10.0.0.17"), dst=configs.value("10.0.0.18")), configs.udp()]
    ends = {"choice": "device", "device": {"tx_names": ["a.4"], "rx_names": ["b.4"]}}
    flow = {**configs.flow(*packet), "tx_rx": ends}
    other = device("b", "p2", 18, 17)
    for kind in ("ipv4_addresses", "ipv6_addresses"):  # In band no answer is heard on port 0.
        other["ethernets"][0][kind][0]["gateway_mac"] = {"choice": "value", "value": "02:00:00:00:00:11"}
    config = turned(configs.config(flow), devices=[device("a", "p1", 17, 18), other])
    desk.good("/config", config)
    started = desk.good(
        "/control/state", {"choice": "protocol", "protocol": {"choice": "all", "all": {"state": "start"}}}
    )
    assert started.get("warnings", []) == []
    for kind, address in (("ipv4_neighbors", "10.0.0"), ("ipv6_neighbors", "2001:db8:")):
        rows = desk.good("/monitor/states", {"choice": kind, kind: {}})[kind]
        assert [one["link_layer_address"] for one in rows] == ["02:00:00:00:00:12", "02:00:00:00:00:11"]
        assert all(one[kind[:4] + "_address"].startswith(address) for one in rows)
    before = len(desk.pins(OUT))
    desk.transmit("start")
    (found,) = desk.finished()
    assert (found["port_tx"], found["port_rx"]) == ("p1", "p2")
    assert int(found["frames_rx"]) == int(found["frames_tx"]) == 30
    sent = [frame for _, frame in desk.pins(OUT)[before:] if frame[12:14] == b"\x08\0"]
    assert {frame[:12].hex(":") for frame in sent} == {"02:00:00:00:00:12:02:00:00:00:00:11"} and len(sent) == 30


def test_a_gateway_that_does_not_answer_is_named(desk: OtgDesk) -> None:
    lost = device("a", "p1", 17, 99)
    lost["ethernets"][0].pop("ipv6_addresses")
    flow = {
        **configs.flow(configs.ethernet(), configs.ipv4(), configs.udp()),
        "tx_rx": {"choice": "device", "device": {"tx_names": ["a"], "rx_names": ["b.4"]}},
    }
    flow["packet"][0]["ethernet"].pop("dst")
    desk.good("/config", turned(configs.config(flow), devices=[lost, device("b", "p2", 18, 17)]))
    answer = desk.post(
        "/control/state",
        {"choice": "traffic", "traffic": {"choice": "flow_transmit", "flow_transmit": {"state": "start"}}},
    )
    assert (answer.status_code, answer.json()["kind"]) == (500, "internal")
    assert answer.json()["errors"] == [
        "flows[0].tx_rx.device: gateway 10.0.0.99 of 'a.4' did not answer: see to the other end"
    ]


def ping(desk: OtgDesk, version: int, *pairs: tuple[str, str]) -> list[str]:
    """Ask for pings; return the results."""
    body = {"requests": [{"src_name": name, "dst_ip": address} for name, address in pairs]}
    kind = f"ipv{version}"
    action = {"choice": "protocol", "protocol": {"choice": kind, kind: {"choice": "ping", "ping": body}}}
    found = desk.good("/control/action", action)["response"]["protocol"][kind]["ping"]["responses"]
    assert [(one["src_name"], one["dst_ip"]) for one in found] == list(pairs)
    return [one["result"] for one in found]


def test_pings_are_answered_by_who_is_there_alone(desk: OtgDesk) -> None:
    """Beside a capture and without: on the pins are the questions and answers, with right checksums."""
    other = device("b", "p2", 18, 17)
    for kind in ("ipv4_addresses", "ipv6_addresses"):  # In band no answer is heard on port 0.
        other["ethernets"][0][kind][0]["gateway_mac"] = {"choice": "value", "value": "02:00:00:00:00:11"}
    own = device("a", "p1", 17, 18)
    capture = {"name": "c", "port_names": ["p2"], "packet_size": 70}
    desk.good("/config", turned(configs.config(), devices=[own, other], captures=[capture]))
    before = [len(desk.pins(OUT, end)) for end in ("out", "in")]
    assert ping(desk, 4, ("a.4", "10.0.0.18"), ("a.4", "10.0.0.99"), ("a.4", "192.0.2.1")) == [
        "succeeded",
        "failed",
        "failed",
    ]
    desk.capture("start")
    assert ping(desk, 6, ("a.6", "2001:db8::12")) == ["succeeded"]
    captured = [bytes(one)[:-4] for one in rdpcap(io.BytesIO(desk.captured("p2")))]
    asked, answered = (
        [Ether(octets) for _, octets in desk.pins(OUT, end)[count:]]
        for end, count in zip(("out", "in"), before, strict=True)
    )
    four, six = [one for one in asked if ICMP in one], [one for one in asked if ICMPv6EchoRequest in one]
    near, far = ([one for one in four if one[IP].dst == address] for address in ("10.0.0.18", "192.0.2.1"))
    assert len(near) + len(far) == len(four) and [one[ICMP].seq for one in far] == [1, 2, 3]
    assert {(one.dst, one[IP].src, one[ICMP].type) for one in four} == {("02:00:00:00:00:12", "10.0.0.17", 8)}
    for ours, kind in ((near, ICMP), (six, ICMPv6EchoRequest)):  # Again where the answer was not here in time.
        assert [one[kind].seq for one in ours] == list(range(1, len(ours) + 1)) and 1 <= len(ours) <= 3
    assert [(one[ICMP].type, one[ICMP].id, one[ICMP].seq) for one in answered if ICMP in one] == [
        (0, one[ICMP].id, one[ICMP].seq) for one in near
    ]
    assert [(one[IPv6].src, one[ICMPv6EchoReply].seq) for one in answered if ICMPv6EchoReply in one] == [
        ("2001:db8::12", one[ICMPv6EchoRequest].seq) for one in six
    ]
    assert [one for one in captured if one[12:14] == b"\x86\xdd" and one[54] == 128] == [bytes(one)[:66] for one in six]
    for frame in asked + answered:
        octets = bytes(frame)
        for layer in (IP, ICMP, ICMPv6EchoRequest, ICMPv6EchoReply):
            if layer in frame:
                frame[layer].delfieldval("cksum" if layer.__name__.startswith("ICMPv6") else "chksum")
        assert bytes(frame) == octets


@pytest.mark.parametrize(
    ("name", "address", "path"),
    [
        ("c.4", "10.0.0.18", "src_name"),
        ("a.6", "10.0.0.18", "src_name"),
        ("a.4", "2001:db8::12", "dst_ip"),
        ("a.4", "10.0.0.17", "dst_ip"),
        ("a.4", "224.0.0.1", "dst_ip"),
        ("a.4", "x" * 500, "dst_ip"),
    ],
)
def test_pings_that_can_not_be_are_refused_by_their_path(desk: OtgDesk, name: str, address: str, path: str) -> None:
    desk.good("/config", turned(configs.config(), devices=[device("a", "p1", 17, 18)]))
    requests = [{"src_name": "a.4", "dst_ip": "10.0.0.18"}, {"src_name": name, "dst_ip": address}]
    part = {"choice": "ping", "ping": {"requests": requests}}
    answer = desk.post("/control/action", {"choice": "protocol", "protocol": {"choice": "ipv4", "ipv4": part}})
    assert (answer.status_code, len(answer.json()["errors"])) == (400, 1)
    assert re.match(rf"protocol\.ipv4\.ping\.requests\[1\]\.{path}: ", answer.json()["errors"][0])
