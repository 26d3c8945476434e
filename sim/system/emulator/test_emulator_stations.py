# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Stations with a TCP/IP stack at the pins of the simulated emulator; `./run bench emulator cern_soc` fetches more."""

import json
from pathlib import Path
from typing import Any

import pytest

from liteprobe.host.cli.main import main
from liteprobe.host.device.link import sim_stations
from liteprobe.host.device.link.url import sim_url
from liteprobe.host.base.errors import ProbeError
from liteprobe.sim.drivers.emulator.cern import Kind, Line, site
from liteprobe.sim.drivers.system.emulator import emulating, packets
from liteprobe.sim.drivers.system.senders import write
from liteprobe.sim.drivers.system.stations import Fetch, fetch

Capture = pytest.CaptureFixture[str]
LINE = Line(octet=10, delay=125_000, queue=24)  # 100 Mb/s, 1 ms.
FRAMES = 34
NETWORK = ("--from-netem", "delay 1ms rate 100mbit", "--netem-back", "delay 1ms loss 100%")


def emulate(url: str, *words: str, into: Path) -> dict[str, Any]:
    """Run ``liteprobe emulate`` on a probe; return its document."""
    assert (
        main(["emulate", *words, "--probe", url, "--json", str(into / "e.json"), "--report", str(into / "e.html")]) == 0
    )
    found: dict[str, Any] = json.loads((into / "e.json").read_text())
    return found


@pytest.mark.usefixtures("stack")
def test_a_site_is_fetched_as_on_the_reference_frame_by_frame(emulator_build: Path, tmp_path: Path) -> None:
    with emulating(emulator_build, tmp_path) as emulated:
        found = fetch(emulated, Fetch(LINE, Kind.EXPONENTIAL, 0.8, site(3, 20_000), is_kept=True), 0.1)
    assert found.differences == []
    assert (found.wrong, found.late, found.lost, found.frames) == (0, 0, 0, FRAMES)


@pytest.mark.usefixtures("stack")
def test_a_web_client_and_a_server_begin_with_the_network_and_end_it(
    emulator_build: Path, tmp_path: Path, capsys: Capture
) -> None:
    url = sim_url("emulator?files=2&octets=3000", build=emulator_build)
    found = emulate(url, "--from-netem", "delay 1ms", "--netem-back", "delay 500us", into=tmp_path)
    server, client = found["stations"]["ports"]
    assert (found["end"], client["files"], client["content"], client["misread"], server["resent"]) == (
        "finished",
        2,
        3000,
        0,
        0,
    )
    # The server's address comes after 1 ms; then a round trip of 1.5 ms for the SYN, and one for each file, on lines of 1 Gb/s.
    assert 5.5e-3 < found["stations"]["seconds"] < 5.55e-3
    sent = [found[way]["classes"][0]["counts"]["sent"] for way in ("there", "back")]
    assert [(server["sent"], client["frames"]), (client["sent"], server["frames"])] == [
        (sent[0], sent[0]),
        (sent[1], sent[1]),
    ]
    assert "2 of 2 files, 3,000 octets in 5.5" in capsys.readouterr().out
    assert "2 of 2 files, 3,000 octets in 5.5" in (tmp_path / "e.html").read_text()


def test_players_play_their_captures_so_often_and_count_what_comes(
    emulator_build: Path, tmp_path: Path, capsys: Capture
) -> None:
    for port, count in enumerate((5, 3)):
        write(tmp_path / f"{port}.pcap", packets(count, port, 0.5, (60, 200)))
    play = ",".join(str(tmp_path / f"{port}.pcap") for port in range(2))
    found = emulate(sim_url(f"emulator?play={play}&repeats=2", build=emulator_build), *NETWORK, into=tmp_path)
    assert found["stations"]["seconds"] is None
    assert [(one["played"], one["frames"]) for one in found["stations"]["ports"]] == [(10, 0), (6, 10)]
    assert (found["end"], found["back"]["classes"][0]["counts"]["lost"]) == ("finished", 6)
    assert "16 frames played, 10 received." in capsys.readouterr().out


def test_without_a_stack_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sim_stations, "BUILD", "liteprobe.sim.nothing")
    with pytest.raises(ProbeError, match=r"needs apt, a network and gcc\. Without it give captures"):
        sim_stations.stack()
