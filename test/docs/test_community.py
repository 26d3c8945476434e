# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The project's own pages: who may reach what, how to cite it, and one version in one place."""

import inspect
import re
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from liteprobe.cores.formats import REPLAY_PORT
from liteprobe.cores.management.stack import ETHERBONE_PORT
from liteprobe.host.base import defaults
from liteprobe.host.capture.receive import open_socket, open_sockets
from liteprobe.host.cli import main as cli
from liteprobe.host.cli.commands import monitor
from liteprobe.host.device.link import etherbone
from liteprobe.host.serve.metrics import serve
from liteprobe.soc.config import ProbeConfig

ROOT = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def tracked(*patterns: str) -> list[str]:
    listed = subprocess.run(["git", "ls-files", "--", *patterns], cwd=ROOT, check=True, capture_output=True, text=True)
    return [path for path in listed.stdout.splitlines() if (ROOT / path).is_file()]


# Who listens --------------------------------------------------------------------------------------


def table() -> dict[str, tuple[str, str]]:
    """Return address and port of each listener, by its first words, as SECURITY.md has them."""
    lines = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| [^|]+ \|$", (ROOT / "SECURITY.md").read_text(), re.M)
    return {what.split(",")[0]: (address, port) for what, address, port in lines[1:] if "---" not in what}


def test_the_table_of_listeners_has_the_addresses_and_ports_of_the_code() -> None:
    rows = table()
    agent_host, agent_port = re.fullmatch(r"tcp://([\d.]+):(\d+)", defaults.AGENT_ADDRESS).groups()
    default = {name: inspect.signature(call).parameters["address"].default for name, call in
               {"capture": open_socket, "captures": open_sockets, "metrics": serve}.items()}  # fmt: skip
    assert rows["probe: Etherbone"][0].startswith(ProbeConfig.ip_address + ",")
    assert rows["probe: Etherbone"][1] == f"UDP {ETHERBONE_PORT}" == f"UDP {etherbone.DEFAULT_PORT}"
    assert rows["probe with `replay`: frames to send"][1] == f"UDP {REPLAY_PORT}"
    assert rows["host"][0] == default["capture"] == default["captures"]
    assert rows["host: metrics of `monitor --metrics PORT`"][0].split(",")[0] == default["metrics"] == monitor.LOCAL
    assert rows["agent: requests"] == (agent_host, f"TCP {agent_port}")
    assert "INADDR_LOOPBACK" in (ROOT / "sim/system/harness/management.cpp").read_text()
    assert rows["simulated probe"][0] == "127.0.0.1"


def test_whatever_listens_is_in_the_table() -> None:
    """Another file that binds a socket has to be looked at, and added there and here."""
    binds = re.compile(
        r"\.bind\(f?\"?[^)]*\)|\bzmq_bind\(|\bbind\(socket|start_http_server\(|\bcreate_server\(|make_server\("
    )
    paths = tracked("host/*.py", "host/*.c", "sim/system/*.cpp", "sim/system/*.py", "soc/*.py", "docs/examples/*.py")
    assert {path for path in paths if "/test" not in path and binds.search((ROOT / path).read_text())} <= {
        "host/agent/sockets.py",
        "host/agent/c/liteprobe_sockets.c",
        "host/capture/receive.py",
        "host/device/discover.py",  # ARP, of a raw socket.
        "host/serve/metrics.py",
        "host/serve/server.py",
        "sim/system/harness/management.cpp",
    }


# Files of the community ---------------------------------------------------------------------------


def test_the_citation_has_what_its_format_asks_for_and_no_version_of_its_own() -> None:
    """Citation File Format 1.2.0: required keys, types of the rest that is used."""
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(found)
    allowed = {"cff-version", "message", "title", "authors", "type", "abstract", "license", "keywords"}
    assert set(found) <= allowed, "look its type up in the format, and add it here"
    assert found["cff-version"] == "1.2.0" and found["type"] in ("software", "dataset")
    assert all(isinstance(found[key], str) and found[key] for key in ("message", "title", "abstract", "license"))
    assert found["authors"] and all(set(one) == {"name"} and one["name"] for one in found["authors"])
    assert all(isinstance(word, str) for word in found["keywords"]) and len(set(found["keywords"])) == len(
        found["keywords"]
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert found["license"] in str(project["license"])
    assert found["title"].lower().startswith(project["name"])


@pytest.mark.parametrize("path", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.md")), ids=lambda path: path.stem)
def test_a_template_of_an_issue_has_its_head(path: Path) -> None:
    head, _, body = path.read_text().removeprefix("---\n").partition("\n---\n")
    assert {"name", "about"} <= set(yaml.safe_load(head)) and body.count("**") >= 6


def test_the_code_of_conduct_says_whose_text_it_is_and_under_which_licence() -> None:
    text = (ROOT / "CODE_OF_CONDUCT.md").read_text()
    assert "Contributor Covenant" in text and "version 2.1" in text and "creativecommons.org/licenses/by/4.0" in text


# One version --------------------------------------------------------------------------------------


def test_the_command_says_the_version_of_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    assert metadata.version("liteprobe") == VERSION
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"liteprobe {VERSION}\n"


def test_no_second_version_is_written_anywhere() -> None:
    """Not as it is now, nor in a place that would have one of its own; the changelog names versions, the lock others'.

    The name of a wheel on a page has it, too: that must be the present one.
    """
    excused = {"pyproject.toml", "CHANGELOG.md", "requirements.lock", "test/docs/test_community.py"}
    own = re.compile(
        rf"(?<![\d.]){re.escape(VERSION)}(?![\d.])|__version__\s*=|^\s*version\s*[=:]\s*[\"']?\d", re.MULTILINE
    )
    wheel = re.compile(r"liteprobe-(\d+\.\d+\.\d+)")
    paths = tracked("*.py", "*.md", "*.toml", "*.c", "*.h", "*.cff", "*.txt", "*.yml", "run")
    texts = {path: (ROOT / path).read_text() for path in paths if path not in excused}
    assert {path for path, text in texts.items() if {*wheel.findall(text)} - {VERSION}} == set()
    assert [path for path, text in texts.items() if own.search(wheel.sub("", text))] == []
