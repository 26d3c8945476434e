# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Keys say who may talk to an agent; all others are answered, each within its time, by both peers."""

import re
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import zmq

from liteprobe.host.agent import Agent, AgentClient, AgentUnreachableError, Keys, make_keys
from liteprobe.host.agent.keys import public_keys
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.sim.drivers.agent import processes
from liteprobe.sim.drivers.agent.raw import GET, HELLO, Controller, header
from liteprobe.sim.drivers.tools.refusals import refusal

CONNECT_S = 2.0
PATIENT_S = 60.0
AT_ONCE_S = 20.0  # Less than patience, more than a machine stands still.
Start = Callable[..., AbstractContextManager[processes.Running]]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the keys of an agent, of one it knows and of one it doesn't."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("agent", "known", "unknown"):
        make_keys(folder / name)
    return folder


@pytest.fixture
def curve(agent_peer: str, pairs: Path) -> Iterator[str]:
    """Address of an agent with keys."""
    with processes.device(agent_peer, "500", str(pairs / "agent.key_secret"), str(pairs / "known.key")) as device:
        yield device.address


@pytest.fixture
def plain(agent_peer: str) -> Iterator[str]:
    """Address of an agent without."""
    with processes.device(agent_peer, "500") as device:
        yield device.address


def keys(folder: Path, name: str) -> Keys:
    return Keys.read(folder / f"{name}.key_secret")


def refused(
    words: str, address: str, own: Keys | None = None, agent_key: Path | None = None, connect_s: float = PATIENT_S
) -> float:
    """Assert that a client is refused with these words; return how long that took (s)."""
    began_s = time.monotonic()
    with pytest.raises(AgentUnreachableError, match=words) as error:
        AgentClient(address, own, agent_key, connect_s)
    assert error.value.exit_code == 3
    return time.monotonic() - began_s


# Keys at both ends --------------------------------------------------------------------------------


def test_who_has_the_right_keys_is_served(curve: str, pairs: Path) -> None:
    with AgentClient(curve, keys(pairs, "known"), pairs / "agent.key") as client:
        client.watch("reads")
        assert (client.set("any", 7), client.get("agent.denied"), len(client.pushed(0.3)) > 3) == (7, 0, True)


def test_a_client_without_keys_is_refused_at_once(curve: str) -> None:
    assert refused("talks to those with keys alone: make them with 'liteprobe agent keys NAME'", curve) < AT_ONCE_S


def test_a_key_that_the_agent_does_not_know_is_refused_at_once_and_counted(curve: str, pairs: Path) -> None:
    words = "does not know the key of this end: give it to those who run the agent"
    assert refused(words, curve, keys(pairs, "unknown"), pairs / "agent.key") < AT_ONCE_S
    with AgentClient(curve, keys(pairs, "known"), pairs / "agent.key") as client:
        assert client.get("agent.denied") == 1


def test_another_key_than_the_agents_is_found(curve: str, pairs: Path) -> None:
    words = "breaks off the handshake: check that agent_key is its public key"
    assert refused(words, curve, keys(pairs, "known"), pairs / "unknown.key") < AT_ONCE_S


def test_a_client_with_keys_is_told_that_the_agent_has_none(plain: str, pairs: Path) -> None:
    assert refused("has no keys: start it with keys", plain, keys(pairs, "known"), pairs / "agent.key") < AT_ONCE_S


def test_pushes_need_keys_too(curve: str, pairs: Path) -> None:
    with AgentClient(curve, keys(pairs, "known"), pairs / "agent.key") as client:
        port = client.device.values_port
        context = zmq.Context()
        try:
            stranger = context.socket(zmq.SUB)
            stranger.setsockopt(zmq.SUBSCRIBE, b"")
            stranger.connect(f"tcp://127.0.0.1:{port}")
            client.watch("reads")
            ends_s, count = time.monotonic() + PATIENT_S, 0
            while count < 4:
                assert time.monotonic() < ends_s
                count += len(client.pushed(0.1))
            assert not stranger.poll(0)
        finally:
            context.destroy(linger=0)  # Else Python waits for its socket without end, in the middle of another test.


def test_nothing_passes_an_agent_with_keys_in_plain(curve: str) -> None:
    with Controller(curve) as one:
        one.send(header(HELLO, 1, 1))
        one.send(header(GET, 1, 2), b"sets")
        assert one.take(0.3) is None


# Addresses ----------------------------------------------------------------------------------------

REACHABLE = [
    f"tcp://{host}" for host in ("0.0.0.0:0", "[::]:0", "192.0.2.1:5580", "device.example:5580", "128.0.0.1:0")
]


@pytest.mark.parametrize("address", REACHABLE)
def test_what_others_can_reach_needs_keys_at_both_ends(agent_peer: str, address: str) -> None:
    words = "can be reached by others, so both ends need keys: make them with 'liteprobe agent keys NAME'"
    done = subprocess.run([*processes.command_of(agent_peer), address], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, words in done.stderr) == (1, "", True)
    with pytest.raises(UsageError, match=re.escape(f"{address} {words}")):
        AgentClient(address)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:0", "tcp://127.8.9.10:0", "tcp://[::1]:0", "tcp://localhost:0"])
def test_loopback_needs_none(agent_peer: str, address: str) -> None:
    if ":1]" in address and not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    with processes.device(agent_peer, address=address) as device, AgentClient(device.address) as client:
        assert client.device.name == "example"


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1:5580", "tcp://127.0.0.1", "tcp://:5580", "tcp://*:5580", "ipc:///tmp/x", "tcp://127.0.0.1:65536", ""],
)
def test_what_is_not_an_address_is_refused(agent_peer: str, address: str) -> None:
    done = subprocess.run([*processes.command_of(agent_peer), address], capture_output=True, text=True, check=False)
    assert (done.returncode, "write it like tcp://127.0.0.1:5580" in done.stderr) == (1, True)
    assert "write it like tcp://127.0.0.1:5580" in refusal(AgentClient, address)


def test_a_port_that_is_taken_is_named(agent_peer: str, plain: str) -> None:
    done = subprocess.run([*processes.command_of(agent_peer), plain], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and f"cannot listen at {plain} (Address already in use)" in done.stderr


# Who does not answer ------------------------------------------------------------------------------


def test_an_agent_that_is_not_there_is_reported_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    words = f"nothing listens at tcp://127.0.0.1:{port}: start 'liteprobe agent run'"
    took_s = refused(words, f"tcp://127.0.0.1:{port}", connect_s=CONNECT_S)
    assert CONNECT_S <= took_s < CONNECT_S + AT_ONCE_S


def test_what_came_in_time_counts_on_a_machine_that_stood_still(
    agent_peer: str, plain: str, pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(zmq.Poller):
        def poll(self, timeout: float | None = None) -> list[tuple[object, int]]:
            time.sleep(0.4)
            return super().poll(timeout)

    monkeypatch.setattr(zmq, "Poller", Slow)
    with AgentClient(plain, connect_s=0.2) as client:
        assert client.device.name == "example"
    assert refused("has no keys: start it with keys", plain, keys(pairs, "known"), pairs / "agent.key", 0.2) < AT_ONCE_S


def test_an_agent_that_starts_late_is_waited_for(agent_peer: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
    found: list[str] = []
    client = threading.Thread(target=lambda: found.append(AgentClient(address, connect_s=10).device.name))
    client.start()
    time.sleep(0.3)
    with processes.device(agent_peer, address=address):
        client.join()
    assert found == ["example"]


def test_another_program_is_found_out_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        took_s = refused("check that it is an agent", address, connect_s=CONNECT_S)
    assert took_s < CONNECT_S + AT_ONCE_S


def test_a_web_server_is_not_an_agent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    stream, _ = server.accept()
                except OSError:
                    return
                with stream:
                    stream.recv(64)
                    stream.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" + b" " * 64)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            assert (
                refused("is not an agent: check address and port", f"tcp://127.0.0.1:{server.getsockname()[1]}")
                < AT_ONCE_S
            )
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def fake(answer: Callable[[list[bytes]], list[bytes]]) -> tuple[str, threading.Thread]:
    """Answer one message in another way than an agent; return where."""
    context = zmq.Context()
    router = context.socket(zmq.ROUTER)
    port = router.bind_to_random_port("tcp://127.0.0.1")

    def serve() -> None:
        identity, *frames = router.recv_multipart()
        router.send_multipart([identity, *answer(frames)])
        context.destroy(linger=1000)

    thread = threading.Thread(target=serve)
    thread.start()
    return f"tcp://127.0.0.1:{port}", thread


def answered(version: int, status: int, frames: list[bytes], *body: bytes) -> list[bytes]:
    head = frames[0]
    return [b"LPAG" + bytes([version, head[5] | 0x80, status, 0]) + head[8:] + bytes(24), *body]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda frames: answered(2, 0, frames), "the agent speaks version 2, not 1: install the same version"),
        (lambda frames: answered(1, 2, frames, b"this agent speaks version 1, not 7"), "speaks version 1, not 7"),
        (lambda frames: [b"HTTP/1.1 400"], "what came is not of a LiteProbe agent"),
        (lambda frames: answered(1, 99, frames), "status 99 is not known here"),
        (lambda frames: answered(1, 0, frames, b"short"), "description of its device is not as the protocol has it"),
        (lambda frames: answered(1, 0, frames, bytes(6) + b"\2\0", b"x", b"\1\1a"), "description of its device is not"),
        (lambda frames: answered(1, 0, frames, bytes(6) + b"\1\0", b"x", b"\7\1a"), "description of its device is not"),
    ],
)
def test_an_agent_of_another_version_or_none_is_reported(
    answer: Callable[[list[bytes]], list[bytes]], words: str
) -> None:
    address, thread = fake(answer)
    with pytest.raises(ProbeError, match=words):
        AgentClient(address, connect_s=CONNECT_S)
    thread.join()


# Files of keys ------------------------------------------------------------------------------------


def test_keys_are_made_once_and_the_secret_one_is_its_owners(run: Run, tmp_path: Path) -> None:
    code, out, err = run("agent", "keys", str(tmp_path / "probe"))
    assert (code, err) == (0, "") and "probe.key: for the other end" in out
    files = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert files == {"probe.key": 0o644 & files["probe.key"], "probe.key_secret": 0o600}
    own = keys(tmp_path, "probe")
    assert zmq.curve_public(own.secret) == own.public == public_keys([tmp_path])[0]
    assert own.secret not in (tmp_path / "probe.key").read_bytes()
    before = (tmp_path / "probe.key_secret").read_bytes()
    code, _, err = run("agent", "keys", str(tmp_path / "probe"))
    assert code == 2 and "already: give another name" in err
    assert (tmp_path / "probe.key_secret").read_bytes() == before


def test_files_that_are_not_keys_are_named(tmp_path: Path, pairs: Path) -> None:
    (tmp_path / "empty.key").write_text("")
    (tmp_path / "short.key").write_text('public-key = "abc"\n')
    for name, words in (
        ("none.key", "(is not|name) a file of keys"),
        ("empty.key", "is not a file"),
        ("short.key", "3 characters, not 40"),
    ):
        with pytest.raises(UsageError, match=f"{name}.*{words}.*liteprobe agent keys NAME"):
            public_keys([tmp_path / name])
    assert "has no secret key: give NAME.key_secret" in refusal(Keys.read, pairs / "agent.key")
    open_to_all = tmp_path / "open.key_secret"
    open_to_all.write_bytes((pairs / "agent.key_secret").read_bytes())
    open_to_all.chmod(0o644)
    with pytest.raises(UsageError, match="others may read the secret key .*: chmod 600"):
        Keys.read(open_to_all)
    (tmp_path / "folder").mkdir()
    assert "has no NAME.key: put the public keys of controllers there" in refusal(public_keys, [tmp_path / "folder"])


def test_keys_of_one_end_alone_are_refused(pairs: Path) -> None:
    for make in (
        lambda: Agent("x", "tcp://127.0.0.1:0", keys(pairs, "agent")),
        lambda: Agent("x", "tcp://127.0.0.1:0", clients=[pairs]),
        lambda: AgentClient("tcp://127.0.0.1:1", keys(pairs, "known")),
        lambda: AgentClient("tcp://127.0.0.1:1", agent_key=pairs / "agent.key"),
    ):
        assert "belong together" in refusal(make)
