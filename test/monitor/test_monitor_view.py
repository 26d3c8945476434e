# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The monitor's screen at sizes of terminals: what is shown fits, on pages where it must, and nothing is left out."""

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from liteprobe.cores.formats import BinKind
from liteprobe.host.capture.ring import ChannelState
from liteprobe.host.cli.commands.monitor import Fitting
from liteprobe.host.measure.monitor import BinSetting, Monitor, Rate
from liteprobe.host.probe import Probe
from liteprobe.host.serve.poll import Look, Poller, Worst
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.models.probe.meters import MonitorProbe
from liteprobe.sim.models.receive.meters import MeasuredFrame

FIRST = 1_800_000_000_000_000_000
CAUSES = ("fcs_errors", "length_errors", "runts", "giants", "overflows", "unclassified", "headers_lost", "damaged")


@pytest.fixture
def look(tmp_path: Path) -> Look:
    """Two ports with three streams each, large counts, values outside of bins, and a ring."""
    model = MonitorProbe()
    probe = Probe(FakeLink(model, tmp_path))
    for port in range(2):
        monitor = Monitor(probe, port)
        monitor.watch(stream_base=3)
        monitor.set_bins({kind: BinSetting(0, 4) for kind in BinKind})
        for number in range(300):
            stamp = FIRST + 700 * number
            sent = stamp - 500 - number
            model.arrive(port, MeasuredFrame(stamp, 60 + number, 0, True, 3 + number % 3, number // 3, sent))
    found = Poller(probe).look()
    rate = Rate(9, 10**9, True, 1_488_095, 89_285_700)
    ports = [replace(port, rate=rate) for port in found.ports]
    counts = {"all_frames": 3_857_142_240_000, "all_octets": 231_428_534_400_000}
    events = [counts | {name: 123_456 * number for number, name in enumerate(CAUSES)} for _ in ports]
    return replace(found, ports=ports, events=events, channels={0: ChannelState(0, 0, 40, 7, 64)})


def shown(look: Look, width: int, height: int, page: int = 0, has_help: bool = False) -> list[str]:
    worst, screen = Worst(since="14:00:00"), io.StringIO()
    worst.take(look)
    console = Console(width=width, height=height, file=screen)
    history = {0: [1e9] * 16, 1: [5e8, 1e9] * 8}
    console.print(Fitting(look, history, worst, 1.5, has_help, page), height=height)
    return [line.rstrip() for line in screen.getvalue().rstrip().splitlines()]


@pytest.mark.parametrize(("width", "height"), [(40, 24), (80, 24), (60, 30), (140, 24), (40, 16)])
def test_each_page_fits_and_together_they_have_all(look: Look, width: int, height: int) -> None:
    first = shown(look, width, height)
    pages = int(re.search(r"page 1/(\d+)", first[0])[1])  # type: ignore[index]
    screens = [shown(look, width, height, page) for page in range(pages)]
    assert [f"page {number + 1}/{pages}" in lines[0] for number, lines in enumerate(screens)] == [True] * pages
    for lines in screens[1:]:
        assert len(lines) <= height and max(map(len, lines)) <= width, "\n".join(lines)
    assert shown(look, width, height, pages) == first
    whole = re.sub(r"[\s│]+", " ", "\n".join("\n".join(lines) for lines in screens))
    for port in range(2):
        assert f"─ port {port} ─" in whole
    for number, name in enumerate(CAUSES):
        assert whole.count(f"{123_456 * number:,} {name.replace('_', ' ')}") >= 2, name
    for stream in (3, 4, 5):
        assert len(re.findall(rf" {stream}:? 100\b", whole)) == 2 and whole.count(f" {stream + 497}") >= 2, whole
    assert "…" not in whole
    assert whole.count("arrival") >= 4 and whole.count("below") == 6


@pytest.mark.parametrize(("width", "height"), [(40, 24), (80, 24)])
def test_first_page_of_two_ports_has_both_in_24_rows(look: Look, width: int, height: int) -> None:
    quiet = replace(look, events=[{**events, **dict.fromkeys(CAUSES, 0)} for events in look.events], channels={})
    screen = shown(quiet, width, height)
    assert len(screen) <= height and max(map(len, screen)) <= width, "\n".join(screen)
    text = "\n".join(screen)
    for words in (
        "port 0 ",
        "port 1 ",
        "1,000.000 Mb/s",
        "3,857,142,240,000 frames",
        "0 refused",
        "worst ",
        "3 streams",
    ):
        assert words in text, text
    assert text.count("arrival") == 2 and text.count("% out") >= 2


def test_a_high_terminal_has_all_at_once_and_no_pages(look: Look) -> None:
    text = "\n".join(shown(look, 100, 70))
    assert "page" not in text and "port 0" in text and "port 1" in text and "capture" in text
    assert "worst since" in text and "40/64 blocks, 40 at most" in text
    assert "choose bins anew" not in text and "choose bins anew" in "\n".join(shown(look, 100, 70, has_help=True))
