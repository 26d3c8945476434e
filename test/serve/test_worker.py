# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A server's probe in its thread: one thing runs at a time, for one owner, and is stopped when that one is gone."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from liteprobe.host.base.errors import BusyError, NoProbeError, ProbeError, UsageError
from liteprobe.host.probe import Probe
from liteprobe.host.serve import worker as work
from liteprobe.host.serve.worker import Line, OwnedError, Owners, ProbeRun, ProbeWorker, Show
from liteprobe.sim.drivers.system.fake_link import ENDLESS, FIXED, FakeLink
from liteprobe.sim.drivers.tools.processes import wait_for
from liteprobe.sim.models.probe.streams import TrafficProbe


class Bench:
    """A worker on a model whose ports are joined by a cable, what it said, and a link that can break."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.lines, self.opened, self.error = folder, list[Line](), 0, ""
        self.worker = ProbeWorker(self.open, self.lines.append)

    def open(self) -> Probe:
        if self.error:
            raise NoProbeError(self.error)
        self.opened += 1
        model = TrafficProbe(lambda frame: [(1 - frame.port, 37, frame)])
        self.link = FakeLink(model, self.folder)
        read = self.link.read_scattered

        def read_or_not(addresses: Any) -> Any:
            if self.error:
                raise NoProbeError(self.error)
            return read(addresses)

        self.link.read_scattered = read_or_not  # type: ignore[method-assign]
        return Probe(self.link)

    def state(self) -> str:
        return str(self.worker.status()["state"])


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(work, "STATUS_S", 0.05)
    monkeypatch.setattr(work, "AGAIN_S", 0.05)
    monkeypatch.setattr(work, "LOOK_S", 0.0)
    made = Bench(tmp_path)
    with made.worker:
        wait_for(lambda: made.state() == "here")
        yield made


def endless(probe: Probe, show: Show) -> Any:
    with probe.send([ENDLESS]) as traffic:
        traffic.follow(lambda look: show(look.to_dict()))
        return traffic.result()


def fixed(probe: Probe, show: Show) -> Any:
    traffic = probe.send([FIXED])
    traffic.follow(lambda look: show(look.to_dict()))
    return traffic.result()


def test_a_run_shows_looks_and_ends_with_its_result_and_no_lease(bench: Bench) -> None:
    run = ProbeRun("n1", "streams", "fixed", "Ann", fixed, lambda run: run.result.to_dict())
    bench.worker.start(run)
    wait_for(lambda: run.is_over)
    assert (run.state, run.end) == ("ended", "sent")
    result = {"kind": "result", "run": "n1", "state": "ended", "why": "sent", **run.result.to_dict()}
    assert [row.sent for row in run.result.rows] == [FIXED.count] and bench.lines[-1] == result
    looks = [line for line in bench.lines if line["kind"] == "look"]
    assert {line["run"] for line in bench.lines} == {"n1"} and len(looks) == len(bench.lines) - 1
    assert looks and looks[-1]["streams"][0]["sent"] == FIXED.count
    assert wait_for(lambda: bench.worker.status())["lease"] is None
    assert bench.worker.status()["ports"] == [{"port": 0, "is_up": True}, {"port": 1, "is_up": True}]


def test_one_thing_runs_at_a_time_and_what_is_asked_for_meanwhile_is_done_between_looks(bench: Bench) -> None:
    run = ProbeRun("n1", "streams", "endless", "Ann", endless)
    bench.worker.start(run)
    wait_for(lambda: run.last)
    with pytest.raises(BusyError, match="'endless' of Ann runs: stop it, or wait until it ends"):
        bench.worker.start(ProbeRun("n2", "streams", "fixed", "Ann", fixed))
    thread = bench.worker.call(lambda probe: threading.current_thread().name).result(10)
    assert thread == "probe" and not run.is_over
    with pytest.raises(UsageError, match="there is no port 9"):
        bench.worker.call(lambda probe: probe.stop(9)).result(10)
    assert bench.worker.stop() and wait_for(lambda: run.is_over)
    assert (run.state, run.end, run.result.end) == ("ended", "stopped", "stopped")
    assert run.result.rows[0].sent > 0 and not bench.worker.stop()
    again = ProbeRun("n2", "streams", "fixed", "Ann", fixed)
    bench.worker.start(again)
    assert wait_for(lambda: again.is_over) and again.end == "sent"


def test_a_run_that_fails_says_why_and_the_next_one_runs(bench: Bench) -> None:
    def broken(probe: Probe, show: Show) -> None:
        raise ZeroDivisionError("of this program")

    for act, words in (
        (broken, "ZeroDivisionError('of this program'): report this"),
        (lambda probe, show: probe.stop(9), "no port 9"),
    ):
        run = ProbeRun("n", "streams", "x", "Ann", act)
        bench.worker.start(run)
        assert wait_for(lambda one=run: one.is_over) and run.state == "failed" and words in run.end
    run = ProbeRun("n", "streams", "x", "Ann", fixed)
    bench.worker.start(run)
    assert wait_for(lambda: run.is_over) and run.end == "sent"


def test_a_lost_probe_looks_lost_with_its_age_and_comes_back(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ProbeRun("n1", "streams", "endless", "Ann", endless)
    bench.worker.start(run)
    wait_for(lambda: run.last)
    bench.error = "no probe answers at 10.0.0.50"
    wait_for(lambda: bench.state() == "lost")
    assert (run.state, run.end, bench.worker.status()["error"]) == ("failed", bench.error, bench.error)
    with pytest.raises(ProbeError, match="the probe is lost: no probe answers"):
        bench.worker.start(ProbeRun("n2", "streams", "x", "Ann", fixed))
    with pytest.raises(ProbeError, match="the probe is lost"):
        bench.worker.call(lambda probe: 1).result(10)
    wait_for(lambda: bench.worker.status()["age_s"] >= 0.2)
    bench.error = ""
    wait_for(lambda: bench.state() == "here")
    assert bench.opened == 2
    held = threading.Event()
    monkeypatch.setattr(work, "STALE_S", 0.1)
    bench.worker.call(lambda probe: held.wait(10))
    wait_for(lambda: bench.state() == "stale")
    held.set()
    wait_for(lambda: bench.state() == "here")


# Owners ---------------------------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_one_owner_by_name_until_it_lets_go_or_is_silent() -> None:
    clock, gone = Clock(), list[str]()
    owners = Owners(gone.append, clock)
    with pytest.raises(UsageError, match="nobody owns the probe"):
        owners.check("x")
    ann = owners.claim("  Ann,\n lab 3 ", 30)
    assert ann.name == "Ann, lab 3"
    with pytest.raises(OwnedError, match="'Ann, lab 3' owns the probe since 20"):
        owners.claim("Bob")
    for key in (None, "", "ä", ann.key[:-1]):
        with pytest.raises(OwnedError, match="Ann"):
            owners.check(key)
    clock.now += 29
    assert owners.check(ann.key) is ann
    clock.now += 30
    assert owners.holder() is ann
    clock.now += 1
    assert (owners.holder(), gone) == (None, ["Ann, lab 3"])
    bob = owners.claim("Bob")
    with pytest.raises(OwnedError, match="Bob"):
        owners.release(ann.key)
    owners.release(bob.key)
    assert (owners.holder(), gone) == (None, ["Ann, lab 3", "Bob"])


def test_an_owner_stays_while_a_connection_of_it_is_open() -> None:
    clock = Clock()
    owners = Owners(lambda name: None, clock)
    ann = owners.claim("Ann", 5)
    assert owners.enter(ann.key) and not owners.enter("other")
    clock.now += 1000
    assert owners.holder() is ann
    owners.leave(ann.key)
    clock.now += 5
    assert owners.holder() is ann
    clock.now += 0.1
    assert owners.holder() is None


@pytest.mark.parametrize("name", ["", " \n ", "x" * 65, "a\x07b", "\u202etxt"])
def test_names_that_can_not_be(name: str) -> None:
    with pytest.raises(UsageError, match="a name has 1 to 64 characters"):
        Owners(lambda name: None).claim(name)
