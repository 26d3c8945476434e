# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""``liteprobe agent run``: a device as a YAML document of files and commands, or as a Python file."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from liteprobe.host.agent import Agent, AgentClient, AgentError
from liteprobe.host.agent.document import read_device
from liteprobe.host.agent.message import AgentStatus, Scalar
from liteprobe.host.base.errors import UsageError

LIMIT_S = 20.0  # More than a machine stands still.
LOCAL = "tcp://127.0.0.1:0"
Run = Callable[..., tuple[int, str, str]]


def agent_of(text: str, limit_s: float = LIMIT_S) -> Agent:
    """Return an agent with the device of a document."""
    device = read_device(text, limit_s)
    agent = Agent(device.name, LOCAL, limit_s=limit_s)
    device.offer(agent)
    return agent


def values_of(text: str) -> dict[str, Scalar]:
    """Return all values of a device but the agent's own."""
    with agent_of(text) as agent, AgentClient(agent.address) as client:
        return {name: client.get(name) for name in client.device.values if not name.startswith("agent.")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of files as /sys has them."""
    for port in ("eth0", "eth1"):
        for name, content in (("rx_packets", "12\n"), ("tx_dropped", "0x10\n"), ("address", "02:4c:50\n")):
            (tmp_path / port).mkdir(exist_ok=True)
            (tmp_path / port / name).write_text(content)
    (tmp_path / "limit").write_text("100\n")
    (tmp_path / "secret").write_text("password\n")
    return tmp_path


# Files --------------------------------------------------------------------------------------------


def test_files_are_values_of_their_type(folder: Path) -> None:
    (folder / "all").write_text("0.25 on:Y\nmode: fast\n")
    (folder / "raw").write_bytes(b"\0\xff")
    found = values_of(f"""
name: box
allow: ["{folder}/**"]
values:
  count: {{type: int, read: {folder}/eth0/rx_packets}}
  hexadecimal: {{type: int, read: {folder}/eth0/tx_dropped}}
  share: {{type: float, read: {folder}/all, match: '^([0-9.]+)'}}
  is_on: {{type: bool, read: {folder}/all, match: 'on:(.)'}}
  mode: {{type: text, read: {folder}/all, match: '^mode: (\\w+)$'}}
  raw: {{type: octets, read: {folder}/raw}}
""")
    assert found == {
        "count": 12, "hexadecimal": 16, "share": 0.25, "is_on": True, "mode": "fast", "raw": b"\0\xff",
    }  # fmt: skip


def test_a_star_makes_a_value_of_each_file_there_is(folder: Path) -> None:
    found = values_of(f"""
name: box
allow: ["{folder}/*/*_packets", "{folder}/eth1/*"]
values:
  packets: {{type: int, read: "{folder}/*/rx_packets"}}
  eth1: {{type: text, read: "{folder}/eth1/add*s"}}
""")
    assert found == {"packets.eth0": 12, "packets.eth1": 12, "eth1.res": "02:4c:50"}


def test_a_setting_is_written_to_its_file(folder: Path) -> None:
    text = f"""
name: box
allow: [{folder}/limit]
settings:
  limit: {{type: int, minimum: 1, maximum: 1000, write: {folder}/limit}}
values:
  limit_now: {{type: int, read: {folder}/limit, interval: 20ms}}
"""
    with agent_of(text) as agent, AgentClient(agent.address) as client:
        assert (client.get("limit_now"), client.set("limit", 7), client.get("limit_now")) == (100, 7, 7)
        assert (folder / "limit").read_text() == "7"
        with pytest.raises(AgentError, match="1001 is out of range: 'limit' is 1 to 1000"):
            client.set("limit", 1001)
        client.watch("limit_now")
        assert {event.value for event in client.pushed(0.2)} == {7}
        (folder / "limit").unlink()
        with pytest.raises(AgentError, match="cannot write '8' to .*limit \\(No such file"):
            client.set("limit", 8)
        (folder / "limit").write_text("many\n")
        with pytest.raises(AgentError, match="'limit_now' is 'many', which is not a int"):
            client.get("limit_now")


def test_a_link_that_leads_elsewhere_later_is_not_followed(folder: Path) -> None:
    text = f"""
name: box
allow: [{folder}/limit]
settings: {{limit: {{type: text, write: {folder}/limit}}}}
values: {{limit_now: {{type: text, read: {folder}/limit}}}}
"""
    with agent_of(text) as agent, AgentClient(agent.address) as client:
        assert client.get("limit_now") == "100"
        (folder / "limit").unlink()
        (folder / "limit").symlink_to(folder / "secret")
        for ask in (lambda: client.get("limit_now"), lambda: client.set("limit", "x")):
            with pytest.raises(AgentError, match="limit leads to .*secret, which is not a file that may be used"):
                ask()
    assert (folder / "secret").read_text() == "password\n"


@pytest.mark.parametrize(
    ("allow", "path", "words"),
    [
        ("", "/etc/hostname", "is not a file that may be used: add it to 'allow'"),
        ("allow: [{0}/*]", "{0}/eth0/rx_packets", "is not a file that may be used"),
        ("allow: [{0}/eth0/*]", "{0}/eth0/../secret", "is not a file that may be used"),
        ("allow: ['{0}/**']", "{0}/eth0/../../../../../../etc/hostname", "is not a file that may be used"),
        ("allow: ['/proc/**']", "/proc/self/root/etc/passwd", "leads to /etc/passwd, which is not"),
        ("allow: [{0}/link]", "{0}/link", "leads to .*secret, which is not"),
        ("allow: ['{0}/**']", "'{0}/*/nothing'", "there is no file .*nothing now"),
        ("allow: ['{0}/**']", "eth0/rx_packets", "give a whole path"),
    ],
)
def test_only_files_of_the_list_are_used(folder: Path, allow: str, path: str, words: str) -> None:
    (folder / "link").symlink_to(folder / "secret")
    text = f"name: box\n{allow.format(folder)}\nvalues:\n  x: {{type: text, read: {path.format(folder)}}}\n"
    with pytest.raises(UsageError, match=f"^device.yaml:4: .*{words}"):
        read_device(text, LIMIT_S)


def test_the_document_of_the_page_is_a_device(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "agent.md").read_text()
    counter = tmp_path / "class" / "net" / "lo" / "statistics" / "tx_dropped"
    counter.parent.mkdir(parents=True)
    counter.write_text("0\n")  # A chroot has no /sys.
    device = read_device(page.split("```yaml\n")[1].split("```")[0].replace("/sys/", f"{tmp_path}/"), LIMIT_S)
    names = [item.name for item in device.items]
    assert (device.name, names[:2], names[-2:]) == ("router", ["forwarding", "queue_length"], ["load", "kernel"])
    assert "dropped.lo" in names


# Commands -----------------------------------------------------------------------------------------

NASTY = [command.format("touch {0}/pwned") for command in ("; {0}", "$({0})", "`{0}`")]
NASTY += ["| tee {0}/pwned", "a\nb", "-n", "'\"\\", "*", "{{value}}"]


@pytest.mark.parametrize("value", NASTY)
def test_no_value_is_run_by_a_shell(tmp_path: Path, value: str) -> None:
    value = value.format(tmp_path)
    script = f"import sys, pathlib; pathlib.Path({str(tmp_path / 'seen')!r}).write_text(repr(sys.argv[1:]))"
    text = f"""
name: box
settings:
  label: {{type: text, run: [{sys.executable}, -c, "{script}", "label={{value}}", end]}}
"""
    with agent_of(text) as agent, AgentClient(agent.address) as client:
        assert client.set("label", value) == value
    assert (tmp_path / "seen").read_text() == repr([f"label={value}", "end"])
    assert not (tmp_path / "pwned").exists()


def commands_of_children() -> list[bytes]:
    """Return the command lines of the processes that this one has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # It has ended.
            parent = (folder / "stat").read_bytes().rpartition(b")")[2].split()[1]
            if int(parent) == os.getpid():
                found.append((folder / "cmdline").read_bytes())
    return found


def test_commands_give_values_and_errors(tmp_path: Path) -> None:
    text = """
name: box
values:
  kernel: {type: text, run: [/bin/uname, -s]}
  third: {type: int, run: [/bin/echo, a=1 b=22 c=333], match: 'c=(\\d+)'}
  missing: {type: int, run: [/bin/echo, nothing], match: 'c=(\\d+)'}
  fails: {type: int, run: [/bin/ls, /nowhere]}
  absent: {type: int, run: [/nowhere/program]}
  slow: {type: int, run: [/bin/sleep, "60"]}
"""
    with agent_of(text, limit_s=0.5) as agent, AgentClient(agent.address) as client:
        assert (client.get("kernel"), client.get("third")) == ("Linux", 333)
        for name, words in (
            ("missing", "nothing fits"), ("fails", "/bin/ls ended with 2: .*nowhere"), ("absent", "cannot run /nowhere/program"),
        ):  # fmt: skip
            with pytest.raises(AgentError, match=words) as error:
                client.get(name)
            assert error.value.status == AgentStatus.REFUSED
        with pytest.raises(AgentError, match="time limit|took more than 0.5 s") as error:
            client.get("slow")
        time.sleep(0.2)
        assert client.get("third") == 333
    assert [line for line in commands_of_children() if b"sleep" in line] == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("{type: int, run: 'echo {value}'}", "'run' is a list"),
        ("{type: int, run: [echo, '{value}']}", "'echo' is not a whole path: write it like /usr/sbin/tc"),
        ("{type: int, run: [/bin/sh, -c, 'echo {value}']}", "would run the value as a command"),
        ("{type: int, run: [/usr/bin/env, '{value}']}", "would run the value as a command"),
        ("{type: int, run: ['/bin/{value}']}", "would run the value as a command"),
        ("{type: int, run: [/bin/echo]}", "the command of a setting has {value} in its words"),
        ("{type: text, run: [/bin/echo, '{value}']}", "would be an option"),
        ("{type: text, run: [/bin/echo, '{value}x']}", "would be an option"),
        ("{type: octets, run: [/bin/echo, 'a={value}']}", "octets can't be a word"),
        ("{type: int, run: [/bin/echo, '{value}'], write: /tmp/x}", "give either 'write' or 'run'"),
        ("{type: int}", "give either 'write' or 'run'"),
        ("{type: whole, write: /tmp/x}", "type 'whole' is unknown"),
        ("{write: /tmp/x}", "a setting needs 'type'"),
        ("{type: int, write: '/tmp/*'}", "may be several files"),
        ("{type: int, minimum: 1.5, run: [/bin/echo, '{value}']}", "1.5 is not a whole number"),
        ("{type: int, minimum: 2, maximum: 1, run: [/bin/echo, '{value}']}", "no value lies between"),
        ("{type: text, maximum: 1, run: [/bin/echo, 'a={value}']}", "has no minimum and maximum"),
        ("{type: int, writes: /tmp/x}", "unknown key 'writes' of a setting: did you mean 'write'"),
        ("[1]", "is a mapping with keys of a setting"),
    ],
)
def test_a_setting_that_can_not_be_is_refused_with_its_line(body: str, words: str) -> None:
    with pytest.raises(UsageError, match=f"^device.yaml:3: .*{words}"):
        read_device(f"name: box\nsettings:\n  x: {body}\n", LIMIT_S)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "1: the document is empty"),
        ("a: [", "1: this is not YAML"),
        ("values: {}", "1: a document needs 'name'"),
        ("name: x", "1: there are neither settings nor values"),
        ("name: x\nvalues:\n  1a: {type: int}", "3: '1a' is not a name"),
        ("name: x\nvalues:\n  a: {type: int, run: [/bin/echo, '1'], match: '('}", "3: .* is not a regular expression"),
        ("name: x\nvalues:\n  a: {type: int, run: [/bin/echo, '1'], match: 'a'}", "3: 'a' has no group"),
        ("name: x\nvalues:\n  a: {type: int, run: [/bin/echo, '1'], interval: 10us}", "3: .* more often than each 1ms"),
        ("name: x\nvalues:\n  a: {type: int, run: [/bin/echo, '{value}']}", "3: .*that of a value has not"),
    ],
)
def test_a_document_that_can_not_be_is_refused_with_its_line(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=f"^device.yaml:{words}"):
        read_device(text, LIMIT_S)


# The command --------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_a_python_file_until_it_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "fan.py").write_text(
        "from liteprobe.host.agent import Agent\n"
        "def offer(agent: Agent) -> None:\n"
        "    @agent.setting('speed', minimum=0, maximum=5)\n"
        "    def speed(value: int) -> None:\n"
        "        pass\n"
    )
    command = [sys.executable, "-m", "liteprobe.host.cli", "agent", "run", str(tmp_path / "fan.py"), "--address", LOCAL]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout
    line = process.stdout.readline()
    with AgentClient(line.split()[2].rstrip(":")) as client:
        assert (client.device.name, client.set("speed", 3), line.split()[-1]) == ("fan", 3, "speed")
        with pytest.raises(AgentError):
            client.set("speed", 6)
    process.send_signal(number)
    is_terminated = number == signal.SIGTERM
    ended = "3 requests\n" + "liteprobe: terminated\n" * is_terminated
    assert (process.communicate(timeout=LIMIT_S), process.returncode) == (("", ended), 143 * is_terminated)


def test_the_command_refuses_what_it_can_not_serve(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "idle.py").write_text("def offer(agent):\n    pass\n")
    (tmp_path / "text.txt").write_text("")
    for words, arguments in (
        ("there is no file", ["run", "nowhere.py"]),
        ("nowhere.yaml", ["run", "nowhere.yaml"]),
        ("has no function offer(agent)", ["run", str(tmp_path / "empty.py")]),
        ("offers nothing", ["run", str(tmp_path / "idle.py"), "--address", LOCAL]),
        ("is neither a YAML document nor a Python file", ["run", str(tmp_path / "text.txt")]),
        ("takes a name alone", ["keys", str(tmp_path / "x"), "--address", LOCAL]),
        (
            "can be reached by others, so both ends need keys",
            ["run", str(tmp_path / "idle.py"), "--address", "tcp://0.0.0.0:0"],
        ),
        ("there is no action 'dance'", ["dance", "x"]),
    ):
        code, out, err = run("agent", *arguments)
        assert (code in (1, 2), out, words in err) == (True, "", True), err
