# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Plans of experiments: what a document says, who sends to whom in which start, and what is refused."""

import json
import re
from dataclasses import replace
from fractions import Fraction

import jsonschema
import pytest
import yaml

from liteprobe.host.base.errors import UsageError
from liteprobe.host.fleet.plan import ExperimentPlan, mesh, plan_schema, read_plan
from liteprobe.host.fleet.probes import PlannedProbe
from liteprobe.host.traffic.document import read_document
from liteprobe.host.traffic.train import TrainProgram
from liteprobe.sim.drivers.tools.figures import ROOT

PLAN = """
probes:
  berlin: {url: 192.168.1.50, labels: [core], ip: 10.0.0.1, mac: "02:00:00:00:00:01", router_mac: "02:00:00:00:00:fe"}
  hamburg: {url: 192.168.1.51, labels: [edge], ip: 10.0.0.2, mac: "02:00:00:00:00:02", port: 1}
  munich: {url: 192.168.1.52, labels: [edge], role: receives}
start_tai: 1800000000
preset: train
clock_bound: 2us
train: {length: 64, count: 100, interval: 10us, vlan: [7]}
"""
STREAMS = """
probes:
  berlin: {url: 192.168.1.50, labels: [core], ip: 10.0.0.1}
  hamburg: {url: 192.168.1.51, labels: [edge], ip: 10.0.0.2, port: 1}
  munich: {url: 192.168.1.52, labels: [edge], ip: 10.0.0.3}
start_tai: 1800000000
defaults: {length: 60}
streams:
  - {name: v, id: 40, rate: 10M, count: 100}
  - {name: w, id: 43, length: [64, 1514], vlan: [7], pps: 1k, count: 5}
"""
LISTED = "pairs:\n  - {from: core, to: edge}\n  - {from: hamburg, to: berlin, train: {length: 1514, rate: 500M}}\n"


def test_a_document_is_a_plan() -> None:
    plan = read_plan(PLAN + LISTED)
    assert [one.url for one in plan.probes] == [f"etherbone://192.168.1.{n}" for n in (50, 51, 52)]
    assert (plan.start_tai_s, plan.preset, plan.clock_bound_ns) == (1_800_000_000, "train", 2000)
    assert [(one.sender, one.receiver) for one in plan.pairs] == [
        ("berlin", "hamburg"), ("berlin", "munich"), ("hamburg", "berlin"),
    ]  # fmt: skip
    there, _, back = (one.program for one in plan.pairs)
    assert there and back
    assert (there.length, there.count, there.interval_ns, there.headers.vlan_tags) == (64, 100, 10_000.0, (7,))
    assert (there.headers.source_ip, there.headers.destination_ip) == ("10.0.0.1", "10.0.0.2")
    assert (there.headers.source_mac, there.headers.destination_mac) == ("02:00:00:00:00:01", "02:00:00:00:00:fe")
    # 1514 octets, and 24 of the line, at 500 Mb/s.
    assert (back.length, back.count, back.interval_ns) == (1514, 100, 8 * 1538 / 0.5)
    assert (back.headers.destination_mac, back.headers.vlan_tags) == ("02:00:00:00:00:01", (7,))
    assert len({one.program.stream_id for one in plan.pairs if one.program}) == 3


def test_a_mesh_is_the_default_and_keeps_to_roles() -> None:
    plan = read_plan(PLAN)
    assert {(one.sender, one.receiver) for one in plan.pairs} == {
        ("berlin", "hamburg"), ("hamburg", "berlin"), ("berlin", "munich"), ("hamburg", "munich"),
    }  # fmt: skip


def test_streams_of_pairs_are_those_of_liteprobe_send_between_the_ends_of_each_pair() -> None:
    own = (
        "pairs: [{from: core, to: edge, both_ways: true}, {from: hamburg, to: munich, streams: [{pps: 1k, count: 7}]}]"
    )
    plan = read_plan(STREAMS + own)
    given = {one.name: one for one in read_document(STREAMS[STREAMS.index("defaults") :])}
    ends = {"berlin": ("10.0.0.1", 0), "hamburg": ("10.0.0.2", 1), "munich": ("10.0.0.3", 0)}
    ids = []
    for pair in plan.pairs:
        assert pair.program is None
        for one in pair.streams:
            (source, port), (destination, _) = ends[pair.sender], ends[pair.receiver]
            assert (one.headers.source_ip, one.headers.destination_ip, one.port) == (source, destination, port)
            if one.name in given:
                same = given[one.name]
                headers = replace(same.headers, source_ip=source, destination_ip=destination)
                assert one == replace(same, headers=headers, port=port, stream_id=one.stream_id)
        ids.append([one.stream_id for one in pair.streams])
    assert [(one.sender, one.receiver) for one in plan.pairs] == [
        ("berlin", "hamburg"), ("berlin", "munich"), ("hamburg", "berlin"), ("munich", "berlin"), ("hamburg", "munich"),
    ]  # fmt: skip
    # As far apart as given, and no two pairs have one in common.
    assert ids == [[40, 43], [44, 47], [48, 51], [52, 55], [56]]
    # 84 octets of the line at 10 Mb/s are 67.2 us: 100 frames take 6.72 ms; 5 at 1 kpps 5 ms.
    assert plan.pairs[0].longest_ns(None) == 6_720_000 and plan.pairs[0].longest_ns(Fraction(10**6)) == 10**6
    assert plan.pairs[4].longest_ns(None) == 7_000_000 and plan.round_ns == 12 * 10**9


@pytest.mark.parametrize("count", [2, 3, 5, 20])
def test_a_mesh_takes_one_start_less_than_it_has_probes_and_each_port_once_in_each(count: int) -> None:
    probes = [PlannedProbe(f"p{n}", f"10.0.0.{n + 1}") for n in range(count)]
    rounds = ExperimentPlan(tuple(probes), mesh(probes, TrainProgram(60, 1))).rounds()
    assert len(rounds) == count - 1
    for pairs in rounds:
        assert (
            sorted(one.sender for one in pairs)
            == sorted(one.receiver for one in pairs)
            == sorted(p.name for p in probes)
        )
    assert len({(one.sender, one.receiver) for pairs in rounds for one in pairs}) == count * (count - 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PLAN + "pairs: [{from: core, to: edgy}]", "plan.yaml:10: no probe has the name or label 'edgy'"),
        (PLAN + "pairs: [{from: munich, to: berlin}]", "plan.yaml:10: 'munich' only receives"),
        (PLAN + "pairs: [{from: berlin, to: berlin}]", "plan.yaml:10: no pair has two probes"),
        (PLAN + "pairs: [{from: core, to: edge}, {from: berlin, to: munich}]", "is given twice: leave out one"),
        (PLAN + "pairs: some", "pairs 'some' is unknown"),
        (PLAN + "start_in: 5s", "'start_tai' and 'start_in' of an experiment are both given"),
        (PLAN.replace("192.168.1.51", "192.168.1.50"), "probes 'berlin' and 'hamburg' are both etherbone://192.168.1.50"),
        (PLAN.replace("hamburg:", "berlin:"), "'berlin' is given twice"),
        (PLAN.replace("count: 100, ", ""), "a train needs 'count'"),
        (PLAN.replace("length: 64", "length: [64, 72]"), "the frames of a train have one length"),
        (PLAN.replace("length: 64", "length: 20000"), "out of range"),
        (PLAN.replace("preset: train", "preset: trains"), "preset 'trains' is unknown"),
        (PLAN.replace("clock_bound: 2us", "clock_bound: 2"), None),
        (PLAN.replace("role: receives", "role: hears"), "role 'hears' is unknown"),
        (PLAN.replace("10.0.0.2", "10.0.0.300"), "plan.yaml:4: '10.0.0.300' is not an IP address"),
        (PLAN.replace("ip: 10.0.0.2", "ip: fe80::1"), "families"),
        ("probes: {a: {url: 10.0.0.1}}\ntrain: {length: 60, count: 1}", "has 1 probes: give 2 to 256"),
        (PLAN + "streams: [{length: 60, count: 1}]", "plan.yaml:10: 'train' and 'streams' of an experiment are both given"),
        (STREAMS + "pairs: [{from: core, to: edge, train: {}, streams: []}]", "'streams' has 0 items"),
        (STREAMS + "pairs: [{from: core, to: edge, train: {length: 60}}]", "a train needs 'count'"),
        (STREAMS.replace("rate: 10M", "port: 1"), "plan.yaml:9: the port of a pair is that of its probe: leave 'port' out"),
        (STREAMS.replace("rate: 10M", "from: 10.0.0.1"), "plan.yaml:9: nobody asks for addresses here: leave 'from' out"),
        (STREAMS.replace("{length: 60}", "{length: 60, via: 10.0.0.9}"), "plan.yaml:7: nobody asks for addresses here"),
        (STREAMS.replace("rate: 10M", "probe: false"), "plan.yaml:9: stream 'v': a pair is measured by probe headers"),
        (STREAMS.replace("rate: 10M", "stamp: none"), "leave out 'stamp'"),
        (STREAMS.replace("rate: 10M", "rat: 10M"), "plan.yaml:9: unknown key 'rat' of a stream: "),
        (STREAMS.replace("pps: 1k", "rate: 995M"), "add up to"),
        (STREAMS.replace(", count: 5", ""), "plan.yaml:2: stream 'w' has no end: give it a count, or a duration of all"),
        (STREAMS.replace("id: 40", "id: 65535"), "need more than 65535 ids"),
        (STREAMS + "duration: 0s", "out of range"),
        (PLAN + "duration: 1s", "'duration' is of streams, and no pair has any"),
        (STREAMS.partition("streams:")[0], "nothing says what is sent: give 'train' or 'streams'"),
        ("", "the document is empty"),
    ],
)  # fmt: skip
def test_what_cant_be_is_refused_with_its_line(text: str, said: str | None) -> None:
    if said is None:
        assert read_plan(text).clock_bound_ns == 2
        return
    with pytest.raises(UsageError) as error:
        read_plan(text)
    assert said in str(error.value) and str(error.value).startswith("plan.yaml:")


def test_the_schema_takes_what_the_reader_takes() -> None:
    validator = jsonschema.Draft202012Validator(json.loads(json.dumps(plan_schema())))
    assert validator.is_valid(yaml.safe_load(PLAN + LISTED)) and validator.is_valid(yaml.safe_load(STREAMS))
    assert not validator.is_valid(yaml.safe_load(STREAMS.replace("rate: 10M", "rat: 10M")))
    assert not validator.is_valid(yaml.safe_load(PLAN + "pairs: some"))


def test_the_plans_of_the_page_are_plans() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "experiment.md").read_text(encoding="utf-8"), re.DOTALL)
    plans = [block for block in blocks if block.startswith("probes:")]
    assert len(plans) >= 5
    for text in plans:
        assert read_plan(text).all_rounds()
