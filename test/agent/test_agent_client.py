# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A measuring script sees an agent and keeps what it says: rows in JSON and Parquet."""

import json
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from liteprobe.host.agent import Agent, AgentClient, AgentError, AgentUnreachableError
from liteprobe.host.agent.client import Event
from liteprobe.host.agent.message import AgentStatus, MessageError, Scalar, Type
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.output import write_json
from liteprobe.host.report.agent_files import SCHEMA, document, write_parquet
from liteprobe.sim.drivers.agent import processes
from liteprobe.sim.drivers.agent.device import Device
from liteprobe.sim.drivers.tools.processes import wait_for

LIMIT_S = 0.3
PATIENT_MS = "20000"  # More than a machine stands still.
LOCAL = "tcp://127.0.0.1:0"


@pytest.fixture
def agent() -> Iterator[Agent]:
    """The example device, in a thread."""
    made = Agent("example", LOCAL, limit_s=LIMIT_S)
    Device(made)
    with made:
        yield made


@pytest.fixture
def client(agent: Agent) -> Iterator[AgentClient]:
    with AgentClient(agent.address) as made:
        yield made


# Setting and reading ------------------------------------------------------------------------------


def test_a_script_knows_what_the_device_has(client: AgentClient) -> None:
    device = client.device
    assert (device.name, device.limit_s, device.watchable) == ("example", LIMIT_S, {"reads"})
    assert device.settings["gain"] == Type.FLOAT and device.values["broken"] == Type.FLOAT and len(device.settings) == 8


def test_whole_numbers_are_taken_for_a_float(client: AgentClient) -> None:
    assert (client.set("gain", 2), type(client.get("gain"))) == (2.0, float)


@pytest.mark.parametrize("value", [2**63, float("nan"), float("inf"), "a\0", "x" * 1025, b"x" * 1025, None, [1], 1j])
def test_what_no_message_can_hold_is_refused_before_it_is_sent(client: AgentClient, value: Scalar) -> None:
    with pytest.raises((MessageError, AgentError, UsageError)):
        client.set("any", value)
    assert client.get("sets") == 0


def test_a_name_that_is_none_is_refused_before_it_is_sent(client: AgentClient) -> None:
    for name in ("", "1a", "a" * 64, "a b", "é"):
        with pytest.raises(UsageError, match="is not a name: a letter"):
            client.get(name)


def test_errors_of_the_device_are_exceptions_with_its_name_and_status(client: AgentClient) -> None:
    for name, value, status, words in (
        ("fuse", 1, AgentStatus.REFUSED, "example: the fuse is blown"),
        ("queue_length", 0, AgentStatus.RANGE, "example: 0 is out of range: 'queue_length' is 1 to 1000"),
        (
            "hang_ms",
            10000,
            AgentStatus.TIMEOUT,  # Longer than a machine stands still.
            "example: 'hang_ms' is over its time limit",
        ),
        ("hang_ms", 0, AgentStatus.BUSY, "and still runs"),
    ):
        with pytest.raises(AgentError, match=words) as error:
            client.set(name, value)
        assert (error.value.status, error.value.exit_code) == (status, 1)


# What is kept -------------------------------------------------------------------------------------


def test_each_event_is_kept_with_its_times(client: AgentClient) -> None:
    before_ns = time.time_ns()
    client.set("gain", 1.2)
    with pytest.raises(AgentError):
        client.set("queue_length", 5000)
    client.get("gain")
    client.watch("reads")
    pushed = client.pushed(0.15)
    events = client.events
    assert [(event.action, event.name, event.asked, event.value, event.status) for event in events[:3]] == [
        ("set", "gain", 1.2, 1.0, AgentStatus.OK),
        ("set", "queue_length", 5000, None, AgentStatus.RANGE),
        ("get", "gain", None, 1.0, 0),
    ]
    assert events[3:] == pushed and pushed
    times = [before_ns]
    for event in events[:3]:
        assert event.sent_ns and event.received_ns
        times += [event.sent_ns, event.times.utc_ns, event.received_ns]
    assert times == sorted(times)
    bounds = events[0].offset_bounds_ns
    assert bounds and bounds[0] <= 0 <= bounds[1] and pushed[0].offset_bounds_ns is None


def test_json_and_parquet_hold_the_same_rows(client: AgentClient, tmp_path: Path) -> None:
    values = {"any": -(2**63), "gain": 0.5, "enabled": False, "label": "é", "blob": b"\0\xff"}
    for name, value in values.items():
        client.set(name, value)
    with pytest.raises(AgentError):
        client.set("fuse", 3)
    client.watch("reads")
    client.pushed(0.1)
    write_json(tmp_path / "agent.json", document(client, ["measure.py"]))
    write_parquet(tmp_path / "agent.parquet", client.events)
    content = json.loads((tmp_path / "agent.json").read_text())
    assert (content["format"], content["device"], content["address"]) == ("liteprobe-agent", "example", client.address)
    rows = content["rows"]
    table = pq.read_table(tmp_path / "agent.parquet")
    for place, name in enumerate(table.schema.names):
        if name.endswith("_utc"):
            table = table.set_column(place, name, table.column(name).cast("int64"))
    assert table.schema.names == SCHEMA.names and len(rows) == table.num_rows == len(client.events)
    for cells, row, event in zip(table.to_pylist(), rows, client.events, strict=True):
        kinds = ("int", "float", "bool", "text", "octets")
        for column, value in (("asked", event.asked), ("value", event.value)):
            assert [cells[f"{column}_{kind}"] for kind in kinds if cells[f"{column}_{kind}"] is not None] == (
                [] if value is None else [value]
            )
            assert row[column] == (value.hex() if isinstance(value, bytes) else value)
        same = cells.keys() & row.keys()
        assert len(same) == 8 and [cells[name] for name in same] == [row[name] for name in same]
        for name in ("sent", "received", "agent"):
            assert cells[f"{name}_utc"] == row[f"{name}_utc_ns"]
    assert [row["type"] for row in rows[:6]] == ["int", "float", "bool", "text", "octets", None]
    assert rows[5]["error"] == "the fuse is blown (3)" and rows[6]["sent_utc_ns"] is None


def test_an_empty_run_is_a_file_too(tmp_path: Path) -> None:
    write_parquet(tmp_path / "empty.parquet", [])
    assert pq.read_table(tmp_path / "empty.parquet").num_rows == 0


# Watching -----------------------------------------------------------------------------------------


def test_only_what_is_pushed_can_be_watched(client: AgentClient) -> None:
    for name in ("sets", "queue_length", "nothing"):
        with pytest.raises(UsageError, match=f"'{name}' can't be watched: 'example' pushes reads"):
            client.watch(name)


def test_pushes_wait_until_they_are_taken_and_end_when_they_are_not_watched(client: AgentClient) -> None:
    client.watch("reads")
    time.sleep(0.3)
    numbers = [event.number for event in client.pushed()]
    assert len(numbers) > 3 and numbers == list(range(1, len(numbers) + 1))
    client.unwatch("reads")
    time.sleep(0.1)
    client.pushed()
    assert client.pushed(0.1) == []


def test_pushes_that_are_missing_are_counted(client: AgentClient) -> None:
    client.watch("reads")
    client.pushed(0.1)
    client.unwatch("reads")
    time.sleep(0.1)
    client.pushed()
    with AgentClient(client.address) as other:
        other.watch("reads")
        other.pushed(0.15)
        client.watch("reads")
        again = client.pushed(0.1)
    numbers = [event.number for event in client.events]
    assert again[0].missed == again[0].number - numbers[len(numbers) - len(again) - 1] - 1 > 0
    assert all(event.missed == 0 for event in again[1:])


def test_a_value_that_fails_is_pushed_as_an_error() -> None:
    agent = Agent("odd", LOCAL, limit_s=LIMIT_S)

    @agent.value("level", interval_s=0.01)
    def level() -> float:
        raise OSError("the sensor is gone")

    with agent, AgentClient(agent.address) as client:
        client.watch("level")
        event = client.pushed(0.1)[0]
    assert (event.value, event.status) == (None, AgentStatus.REFUSED) and "OSError: the sensor is gone" in event.why


def test_a_watched_value_goes_on_after_the_agent_was_restarted_and_the_gap_is_said(agent_peer: str) -> None:
    """Its values come from another port then."""
    with processes.device(agent_peer) as first, AgentClient(first.address) as client:
        client.watch("reads")
        before = client.pushed(0.2)
        assert before and all(one.status == AgentStatus.OK for one in before)
        first.process.terminate()
        first.process.wait()
        assert all(one.status == AgentStatus.OK for one in client.pushed(0.1))
        with processes.device(agent_peer, address=first.address):
            after: list[Event] = []
            wait_for(lambda: after.extend(client.pushed(0.1)) or len(after) >= 6)
        gaps = [one for one in after if one.status != AgentStatus.OK]
        assert [(one.name, one.value, one.status, "meanwhile is missing" in one.why) for one in gaps] == [
            ("reads", None, AgentStatus.TIMEOUT, True)
        ]
        values = after[after.index(gaps[0]) + 1 :]
        assert len(values) > 3 and [one.number for one in values] == list(
            range(values[0].number, values[-1].number + 1)
        )


def test_a_watched_value_of_an_agent_that_stays_away_ends_with_an_error(
    agent_peer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("liteprobe.host.agent.client.CONNECT_S", 0.2)
    with processes.device(agent_peer) as device, AgentClient(device.address) as client:
        client.watch("reads")
        assert client.pushed(0.1)
        device.process.terminate()
        with pytest.raises(
            AgentUnreachableError, match="the connection for watched values was lost, and the agent at "
        ):
            for _ in range(20):
                client.pushed(0.1)


# An agent that goes -------------------------------------------------------------------------------


def test_an_agent_that_is_killed_is_reported_and_one_that_is_there_again_is_used(agent_peer: str) -> None:
    with processes.device(agent_peer, "200") as device, AgentClient(device.address) as client:
        client.set("any", 1)
        device.process.send_signal(signal.SIGSTOP)
        with pytest.raises(AgentUnreachableError, match="gave no answer in 2.2 s: see whether its program still runs"):
            client.get("sets")
        device.process.send_signal(signal.SIGCONT)
        assert client.get("sets") == 1
        address = device.address
    with processes.device(agent_peer, "200", address=address), AgentClient(address) as client:
        assert client.get("sets") == 0


def test_a_request_that_is_lost_with_its_connection_is_sent_again() -> None:
    done: list[Scalar] = []
    with pytest.raises(RuntimeError, match="ended with -9"), processes.device("python", PATIENT_MS) as device:
        client = AgentClient(device.address)
        device.process.kill()
        device.process.wait()
        asking = threading.Thread(target=lambda: done.append(client.set("any", 9)))
        asking.start()
        time.sleep(0.3)
        with processes.device("python", PATIENT_MS, address=device.address), AgentClient(device.address) as other:
            asking.join()
            assert (done, other.get("sets"), client.get("sets")) == ([9], 1, 1)
        client.close()
    assert done == [9]


def test_a_request_whose_agent_goes_before_it_answers_is_sent_again() -> None:
    done: list[Scalar] = []
    with pytest.raises(RuntimeError, match="ended with -9"), processes.device("python", PATIENT_MS) as device:
        client = AgentClient(device.address)
        asking = threading.Thread(target=lambda: done.append(client.set("hang_ms", 300)))
        asking.start()
        time.sleep(0.1)
        device.process.kill()
        device.process.wait()
        with processes.device("python", PATIENT_MS, address=device.address), AgentClient(device.address) as other:
            asking.join()
            assert (done, other.get("sets")) == ([300], 1)
        client.close()
    assert done == [300]


# What can't be offered ----------------------------------------------------------------------------


def test_what_can_not_be_offered_is_refused_when_it_is_registered() -> None:
    agent = Agent("odd", LOCAL)

    def untyped(value):  # type: ignore[no-untyped-def]
        pass

    def whole(value: int) -> int:
        return value

    def text(value: str) -> None: ...

    def a_list() -> list[int]:
        return []

    for offer, words in (
        (lambda: agent.setting("x")(untyped), "does not say its type: write it like 'def x\\(value: int\\)"),
        (lambda: agent.value("x")(a_list), "does not say its type: write it like 'def x\\(\\) -> int"),
        (lambda: agent.setting("1x")(whole), "'1x' is not a name: give a letter"),
        (lambda: agent.setting("agent.x")(whole), "are the agent's own"),
        (lambda: agent.setting("x", minimum=1)(text), "has no minimum and maximum"),
        (lambda: agent.setting("x", minimum=2, maximum=1)(whole), "no value lies between"),
        (lambda: agent.setting("x", minimum=2, initial=1)(whole), "1 is out of range"),
        (lambda: agent.value("x", interval_s=1e-6), "can't be read each"),
    ):
        with pytest.raises((UsageError, MessageError), match=words):
            offer()
    agent.setting("x", initial=4)(whole)
    with pytest.raises(UsageError, match="there is a 'x' already"):
        agent.setting("x")(whole)
    with agent, AgentClient(agent.address) as client:
        assert client.get("x") == 4


def test_callbacks_are_run_one_at_a_time() -> None:
    agent = Agent("odd", LOCAL)
    inside, most = [0], [0]

    def take(value: int) -> None:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.002)
        inside[0] -= 1

    for name in "abcd":
        agent.setting(name)(take)

    def work(name: str) -> None:
        with AgentClient(agent.address) as client:
            for value in range(20):
                client.set(name, value)

    with agent, ThreadPoolExecutor(4) as threads:
        list(threads.map(work, "abcd"))
    assert most == [1]
