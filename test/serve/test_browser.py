# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The page of ``liteprobe serve`` in Debian's Chromium: each view and form, light and dark, wide and as on a telephone.

Pictures go to build/serve, to be looked at. axe-core, from npm into build/axe, looks for what keeps people from using it.
"""

import json
import re
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browser
import pytest
import yaml

from liteprobe.host.base.errors import NoProbeError
from liteprobe.host.serve import worker as work
from liteprobe.sim.drivers.serve.client import Serving
from liteprobe.sim.drivers.serve.ways import FRAMES_SEEN, WAYS, running
from liteprobe.sim.drivers.tools.processes import wait_for

ROOT = Path(__file__).resolve().parents[2]
PICTURES, AXE = ROOT / "build" / "serve", ROOT / "build" / "axe"
WIDE, PHONE = 1200, 390
pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(browser.PROGRAM is None, reason="no chromium is here: apt install chromium"),
]


@pytest.fixture(scope="module")
def axe() -> str:
    """The source of axe-core, fetched once."""
    source = AXE / "package" / "axe.min.js"
    if not source.exists():
        if shutil.which("npm") is None:
            pytest.skip("axe-core comes by npm, which is not installed: apt install npm")
        AXE.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["npm", "pack", "axe-core@4"], cwd=AXE, capture_output=True, check=False)
        if done.returncode:
            pytest.skip("axe-core can't be fetched: there is no network")
        subprocess.run(["tar", "xzf", *[path.name for path in AXE.glob("*.tgz")]], cwd=AXE, check=True)
    return source.read_text()


@pytest.fixture(scope="module")
def page() -> Iterator[browser.Browser]:
    PICTURES.mkdir(parents=True, exist_ok=True)
    with browser.Browser() as one:
        yield one


def faults(page: browser.Browser, axe: str) -> list[Any]:
    """Return what axe-core finds."""
    page.ask(f"{axe}; window.found = null; axe.run().then((one) => {{ window.found = one; }}); 1")
    found = page.wait(
        "window.found && {list: window.found.violations.map((one) => [one.id, one.nodes.length, one.nodes[0].html])}"
    )
    return list(found["list"])


def press(page: browser.Browser, words: str, within: str = "body") -> None:
    """Press the button or the link of these words."""
    found = (
        f"[...document.querySelectorAll('{within} button, {within} a')].find((one) => one.textContent === '{words}')"
    )
    page.wait(f"Boolean({found})")
    page.ask(f"{found}.click()")


def claim(page: browser.Browser, name: str = "Ann") -> None:
    press(page, "Claim it")
    page.wait("document.getElementById('ask').open")
    page.ask(f"document.getElementById('ask-value').value = '{name}'")
    press(page, "OK", "#ask")
    page.wait(f"document.getElementById('owner').innerText.includes('You, {name}, own the probe')")


def looked_at(page: browser.Browser, url: str, name: str, axe: str, ready: str) -> None:
    """Take pictures of a view, light, dark and as on a telephone, and have axe-core look at each."""
    for width, is_dark in ((WIDE, False), (WIDE, True), (PHONE, False), (PHONE, True)):
        page.open(url, width, is_dark=is_dark)
        page.wait(ready)
        page.ask("new Promise((done) => setTimeout(done, 300))")
        kind = f"{name}-{'phone' if width == PHONE else 'wide'}-{'dark' if is_dark else 'light'}"
        wait_for(lambda: page.ask("document.querySelectorAll('canvas, svg, td, dd, form, p').length"))
        page.picture(PICTURES / f"{kind}.png", is_whole=True)
        assert faults(page, axe) == [], kind
        assert page.ask("document.documentElement.scrollWidth") <= width, f"{kind} is wider than its window"


@pytest.mark.parametrize("kind", WAYS)
def test_what_runs_is_seen(kind: str, page: browser.Browser, axe: str, tmp_path: Path) -> None:
    ready = WAYS[kind].ready
    with running(kind, tmp_path) as served:
        looked_at(page, served.server.url, kind, axe, ready)
        assert "Ann owns the probe" in page.ask("document.getElementById('owner').innerText")
        assert not page.ask("Boolean(document.getElementById('stop'))")  # A watcher has no such button.
        page.open(served.server.url, WIDE)
        first = page.wait(ready)
        if ready == FRAMES_SEEN:
            page.wait(f"{ready} !== '{first}'")  # It goes on.
            assert ("of 3,000" in first) == (kind != "capture")
        served.call("POST", "/api/runs/current/stop")
        page.wait("(document.getElementById('end')?.innerText ?? '').includes('It has ended')")
        page.wait("document.querySelectorAll('#end a[href^=\"/r/\"]').length >= 2")
        page.ask(
            "dispatchEvent(new Event('resize')); new Promise((done) => setTimeout(done, 300))"
        )  # It is drawn anew.
        page.picture(PICTURES / f"{kind}-ended.png", is_whole=True)
        if kind == "streams":  # The table and the histograms have the figures of the result, not of the last look.
            result = served.ended().result
            for stream in result.to_dict()["streams"]:
                shown = page.ask(
                    f"[...document.querySelectorAll('tbody tr')].find((one) => one.cells[0].textContent === '{stream['name']}')"
                    ".cells[5].textContent"
                )
                assert shown == f"{stream['received']:,}"
                drawn = f"all 296 ns: {stream['received']:,}"
                assert drawn in page.ask("document.querySelector('main').innerText")
        if kind == "monitor":
            said = page.ask("document.querySelector('main').innerText")
            assert re.search(r"Counted of [1-9][0-9,]* of [1-9][0-9,]* frames\.", said) and "IPv4 TCP https" in said
        if kind == "capture":  # What can be fetched has what the page has counted, and no less.
            run = served.ended()
            octets, at, seen = (served.app.store.folder / run.number / "capture.pcapng").read_bytes(), 0, 0
            while at < len(octets):  # A block: type, 6 of a packet, and length.
                block, length = struct.unpack_from("<II", octets, at)
                at, seen = at + length, seen + (block == 6)
            assert seen == run.result.to_dict()["frames"] >= int(first.split()[0].replace(",", ""))
        for view in ("results", "api", "start"):
            if kind == "streams":
                looked_at(
                    page, f"{served.server.url}/#{view}", view, axe, "document.querySelectorAll('main .card').length"
                )


def test_a_form_starts_a_run_and_shows_errors_beside_their_fields(
    page: browser.Browser, axe: str, tmp_path: Path
) -> None:
    with Serving(tmp_path, rate=1e6, burst=10**6) as served:
        looked_at(
            page,
            f"{served.server.url}/#start/streams",
            "form",
            axe,
            "document.querySelectorAll('[data-path]').length > 5",
        )
        page.open(f"{served.server.url}/#start/streams", WIDE)
        page.wait("document.querySelectorAll('[data-path]').length > 5")
        length = "document.querySelector('[data-path=\"/streams/1/length\"] input')"
        page.ask(f"{length}.value = '7'; {length}.dispatchEvent(new Event('input'))")
        press(page, "Check")
        page.wait("document.querySelectorAll('.error').length")
        beside = page.ask(
            "document.getElementById(document.activeElement.getAttribute('aria-describedby')).textContent"
        )
        assert beside == "length 7 is out of range: give 60 to 9000 octets without FCS"
        assert page.ask(f"document.activeElement === {length}") and faults(page, axe) == []
        page.picture(PICTURES / "form-error.png", is_whole=True)
        page.ask(f"{length}.value = '512'; {length}.dispatchEvent(new Event('input'))")
        press(page, "Check")
        page.wait("document.querySelector('form').innerText.includes('It can be run.')")
        claim(page)
        press(page, "Start", "form")
        page.wait("location.hash === '#now' && document.querySelectorAll('canvas').length === 3")
        assert served.app.worker.run and served.app.worker.run.kind == "streams"
        second = [one["length"] for one in yaml.safe_load(_document(page, served))["streams"]][1]
        assert second == 512
        page.wait("document.getElementById('end').innerText.includes('It has ended')")
        press(page, "Give it back")
        page.wait("document.getElementById('owner').innerText.includes('Nobody owns the probe')")


def _document(page: browser.Browser, served: Serving) -> str:
    run = served.app.worker.run
    assert run
    press(page, "Stop")
    wait_for(lambda: (served.app.store.folder / run.number / "document.yaml").exists())
    return (served.app.store.folder / run.number / "document.yaml").read_text()


def test_every_form_is_drawn_and_its_text_is_edited(page: browser.Browser, axe: str, tmp_path: Path) -> None:
    with Serving(tmp_path, rate=1e6, burst=10**6) as served:
        for kind in ("train", "stamp", "network", "replay", "sets", "monitor", "capture", "rfc2544", "y1564", "soak"):
            page.open(f"{served.server.url}/#start/{kind}", PHONE)
            page.wait("document.querySelector('form.card h2')?.textContent.length > 0")
            assert faults(page, axe) == [], kind
            page.picture(PICTURES / f"form-{kind}.png", is_whole=True)
        press(page, "Edit as text")
        area = "document.querySelector('textarea')"
        page.ask(f"{area}.value = 'streams:\\n- length: 1\\n'; {area}.dispatchEvent(new Event('input'))")
        press(page, "Check")
        page.wait("document.querySelector('form').innerText.includes('Line 2: length 1 is out of range')")
        assert page.ask("getSelection().toString()").strip() == "- length: 1"


def test_a_run_is_claimed_started_and_stopped_by_the_keyboard_alone(page: browser.Browser, tmp_path: Path) -> None:
    def tab_to(words: str) -> None:
        """Go on from element to element until the one that is called so has the focus, and is seen to have it."""
        called = "((one) => one.ariaLabel || one.labels?.[0]?.textContent || one.textContent)(document.activeElement)"
        for _ in range(60):
            page.key("Tab")
            if page.ask(called) == words:
                assert page.ask("getComputedStyle(document.activeElement).outlineStyle") != "none"
                return
        raise AssertionError(f"Tab never came to {words}")

    def enter() -> None:
        page.key("Enter", "\r")

    with Serving(tmp_path, rate=1e6, burst=10**6) as served:
        page.open(served.server.url, WIDE)
        page.wait("document.getElementById('owner').innerText.includes('Nobody')")
        tab_to("Start")
        enter()
        page.wait("document.querySelectorAll('main .card').length > 5")
        tab_to("Streams")
        enter()
        page.wait("document.querySelectorAll('[data-path]').length > 5")
        tab_to("Add a key to options")
        page.key("ArrowDown")
        page.wait("document.activeElement.matches('[data-path=\"/duration\"] input')")
        for letter in "1h":
            page.key(letter, letter)
        tab_to("Start")  # Of the form: those above it are behind.
        enter()
        page.wait("document.getElementById('ask').open")
        for letter in "Ann":
            page.key(letter, letter)
        enter()
        page.wait("location.hash === '#now' && document.querySelectorAll('canvas').length === 3")
        assert served.app.worker.run and served.app.worker.run.owner == "Ann"
        tab_to("Stop")
        enter()
        page.wait("document.getElementById('end').innerText.includes('It has ended')")
        assert served.ended().end == "stopped"


def test_old_news_does_not_take_the_key_of_a_new_owner_and_newer_news_does(
    page: browser.Browser, tmp_path: Path
) -> None:
    with Serving(tmp_path, rate=1e6, burst=10**6) as served:
        page.open(served.server.url, WIDE)
        page.wait("page.state && document.getElementById('owner').innerText.includes('Nobody')")
        old = page.ask("JSON.stringify(page.state)")
        claim(page)
        page.ask(f"take({old})")  # It was on its way while the probe was claimed.
        assert page.ask("Boolean(kept('key'))")
        for state in (
            {"owner": None},
            {"owner": {"name": "Ann", "since": "2026-11-28T00:00:00+00:00"}, "claims": 1 << 52},
        ):
            page.ask(f"kept('key', 'x'); take({{...page.state, ...{json.dumps(state)}}})")
            assert not page.ask("Boolean(kept('key'))"), state  # Given back; another one, of the same name.


def test_a_lost_probe_and_a_second_owner_are_seen(
    page: browser.Browser, axe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "AGAIN_S", 0.2)
    with Serving(tmp_path, rate=1e6, burst=10**6) as served:
        page.open(served.server.url, WIDE)
        page.wait("document.getElementById('owner').innerText.includes('Nobody')")
        served.claim("Bob")
        page.wait("document.getElementById('owner').innerText.includes('Bob owns the probe since')")
        said = page.ask(
            "ask('POST', '/api/owner', {name: 'Ann'}).catch((error) => { window.said = error.message; }); 1"
        )
        assert said and "'Bob' owns the probe" in page.wait("window.said")
        served.error = NoProbeError("no probe answers at 10.0.0.50: see its cable")
        page.wait("document.getElementById('status').innerText.includes('LOST, STALE for')")
        page.wait("/STALE for [2-9] s/.test(document.getElementById('status').innerText)")
        page.picture(PICTURES / "lost.png", is_whole=True)
        assert faults(page, axe) == []
        served.error = None
        page.wait("document.getElementById('status').innerText.includes('Probe here')")
    page.wait("document.getElementById('status').innerText.includes('Server STALE')")  # The server has ended.
    page.picture(PICTURES / "server-gone.png", is_whole=True)


def test_a_page_that_stays_open_keeps_no_more_than_its_charts_show(page: browser.Browser, tmp_path: Path) -> None:
    with Serving(tmp_path, rate=1e6, burst=10**6) as served:
        page.open(served.server.url, WIDE)
        page.wait("typeof Series === 'function'")
        kept = page.ask(
            "(() => { const one = new Series(); for (let at = 1; at < 900000; at++) one.push(at, {a: at, b: 1});"
            " return [one.data.length, one.data[0].length, one.data[0][0], one.data[0].at(-1) > 890000]; })()"
        )
        assert kept[0] == 3 and kept[1] <= 600 and kept[2:] == [1, True]
