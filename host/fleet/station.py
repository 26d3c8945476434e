# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Keeps plans beside a probe, runs its part of them at their TAI second without the host that gave them, and keeps what came.

A plan comes, and a result goes, by settings of an `Agent`: one connection, its keys, its messages. All that counts is on disk:
a file is written under another name, and renamed when it is whole.
"""

import hashlib
import ipaddress
import json
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from liteprobe.host.agent.agent import Agent
from liteprobe.host.agent.keys import check_address
from liteprobe.host.agent.message import OCTETS_MOST
from liteprobe.host.base.defaults import TAI_UTC_S
from liteprobe.host.base.errors import DataError, ProbeError, UsageError
from liteprobe.host.base.output import write_synced
from liteprobe.host.fleet.captures import CaptureBeside
from liteprobe.host.fleet.experiment import lost, unfit
from liteprobe.host.fleet.halves import CAPTURE, HEARS, SENDS, SUITE, Half, half_of
from liteprobe.host.fleet.plan import FILES, STATION_MOST, ExperimentPlan, PlannedCapture, PlannedPair, read_plan
from liteprobe.host.fleet.suite_runs import SuiteFigures, SuiteRun
from liteprobe.host.fleet.suites import PlannedSuite
from liteprobe.host.fleet.turns import Sleep, in_turns
from liteprobe.host.probe import Probe
from liteprobe.host.suites.owd import LateError
from liteprobe.host.suites.trials import Journal

SECOND_NS = 10**9
AHEAD_S = 10  # The probe is opened so long before a start.
BEFORE_S = 1.0  # A capture begins so long before a start.
STEP_S = 0.5  # From one look at what is due to the next.
KEY_OCTETS = 8  # Of the name of an experiment.
PART_HEAD = KEY_OCTETS + 8
PART_MOST = OCTETS_MOST - PART_HEAD  # Octets of a part of a plan, or of a result.
FILE_MOST = OCTETS_MOST  # Of a captured file.
PLAN_MOST = 1 << 20  # Octets of a plan, compressed.
PLAN, HALF, TRIALS, FETCHED = ".plan", ".half", ".trials", ".fetched"


def version() -> str:
    """Return the version of LiteProbe, which must be the same at both ends."""
    return metadata.version("liteprobe")


def key_of(text: str) -> bytes:
    """Return the name of an experiment: the beginning of the SHA-256 of its plan."""
    return hashlib.sha256(text.encode()).digest()[:KEY_OCTETS]


def envelope(text: str, name: str, of_version: str | None = None) -> bytes:
    """Return a plan as it is handed out to the station of the probe of this name."""
    return zlib.compress(json.dumps({"version": of_version or version(), "name": name, "plan": text}).encode())


Task = tuple[PlannedPair | PlannedSuite | PlannedCapture, str]  # What is to be done, and which end of it, or what kind.


def half_key(task: Task) -> tuple[str, str, str]:
    """Return what tells the half of a task from those of others in its start: its sender, receiver and end."""
    planned, end = task
    if isinstance(planned, PlannedPair):
        return (*planned.ends, end)
    if isinstance(planned, PlannedSuite):
        return planned.sender, planned.title, end
    return planned.probe, CAPTURE, end


@dataclass
class KeptPlan:
    """Holds a plan that a station keeps, and its part of it."""

    key: str  # In base 16.
    plan: ExperimentPlan
    name: str  # Of the probe in it.
    done: set[str] = field(default_factory=set)  # Names of halves that are on disk.

    @property
    def starts(self) -> list[tuple[int, list[Task]]]:
        """Each start (TAI, ns) in which the probe has a part, with what it has to do: pairs, suites, a capture."""
        found = []
        starts = self.plan.starts()
        for number, (start_ns, all_of_one) in enumerate(starts, 1):
            pairs = [one for one in all_of_one if isinstance(one, PlannedPair)]
            own: list[Task] = [(one, SENDS) for one in pairs if one.sender == self.name]
            own += [(one, HEARS) for one in pairs if one.receiver == self.name]
            own += [(one, SUITE) for one in all_of_one if isinstance(one, PlannedSuite) and one.sender == self.name]
            captures = [one.of_start(number, len(starts)) for one in self.plan.captures if one.probe == self.name]
            own += [(one, CAPTURE) for one in captures]
            if own:
                found.append((start_ns, own))
        return found

    @property
    def names(self) -> dict[tuple[int, tuple[str, str, str]], str]:
        """Name of the file of each half, by its start and what it is of."""
        own = [(start_ns, task) for start_ns, tasks in self.starts for task in tasks]
        return {(start_ns, half_key(task)): f"{self.key}.{number:05}" for number, (start_ns, task) in enumerate(own)}

    @property
    def span_ns(self) -> tuple[int, int]:
        """From when to when the probe is taken (TAI, ns)."""
        (first_ns, _), (last_ns, last) = (self.plan.starts()[place] for place in (0, -1))
        return first_ns - AHEAD_S * SECOND_NS, last_ns + self.plan.span_ns(last)


class ProbeStation:
    """Keeps plans and results in a folder, and runs what is due.

    Parameters
    ----------
    folder : of plans and results.
    opener : opens the probe.
    utc_ns : returns the time of this machine (UTC, ns).
    """

    def __init__(self, folder: Path, opener: Callable[[], Probe], utc_ns: Callable[[], int] = time.time_ns) -> None:
        self.folder, self._opener, self._utc_ns = folder, opener, utc_ns
        self._lock = threading.Lock()
        self._parts: dict[bytes, bytearray] = {}  # Of plans that come.
        self._unwritten: dict[str, Half] = {}  # What the disk had no space for, by file.
        self._is_stopping = False
        self._runs = ""  # Key of the plan of which a start goes on.
        self.state = "idle"
        self.seen: list[
            Callable[[Half], None]
        ] = []  # Called with each end of a pair that was, or could not be, measured.
        self.counts = dict.fromkeys(("measured", "failed", "refused", "unwritten", "fetched"), 0)
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob(".*.part"):
            left.unlink()
        self.plans: dict[str, KeptPlan] = {}
        for path in sorted(folder.glob(f"*{PLAN}")):
            try:
                self.plans[path.stem] = self._kept(path.stem, path.read_bytes())
            except (ProbeError, OSError, ValueError, zlib.error) as error:
                raise DataError(f"{path} is damaged ({error}): remove it, and hand the plan out again") from None

    # What hosts ask ---------------------------------------------------------------------------

    def offer(self, agent: Agent) -> None:
        """Have an agent take plans and give results away."""
        agent.setting("plan")(self.take_part)
        agent.setting("result")(self.result_part)
        agent.setting("file")(self.file_part)
        agent.setting("fetched")(self.forget)
        agent.value("version")(self.version_text)
        agent.value("state")(self.state_text)

    def version_text(self) -> str:
        """Return the version of LiteProbe here."""
        return version()

    def state_text(self) -> str:
        """Return what it does, in words."""
        return f"{self.state}, {len(self.plans)} plans kept"

    def take_part(self, part: bytes) -> bytes:
        """Take a part of a plan: its name, where the part begins, how long all is (4 octets each), the part.

        The last part has the plan kept. Raises UsageError, with the reason, where it can't be.
        """
        key, begin, total, octets = _part(part)
        with self._lock:
            if begin == 0:
                self._parts = {key: bytearray()}  # One at a time: a host that broke off begins anew.
            held = self._parts.get(key)
            if held is None or total > PLAN_MOST or begin > len(held):
                raise UsageError("this part of a plan does not follow the one before: hand it out again")
            held[begin:] = octets
            if len(held) < total:
                return b""
            del self._parts[key]
            try:
                self._take(key.hex(), bytes(held))
            except UsageError:
                self.counts["refused"] += 1
                raise
        return b""

    def _take(self, key: str, octets: bytes) -> None:
        try:
            kept = self._kept(key, octets)
        except (ValueError, KeyError, zlib.error):
            raise UsageError(
                "what was handed out can't be read as a plan: install the same version at both ends"
            ) from None
        if key in self.plans:
            return
        if (self.folder / f"{key}{FETCHED}").exists():
            raise UsageError("this plan was run, and its result fetched: give the plan another start_tai")
        first_ns, last_ns = kept.span_ns
        now_ns = self._tai_ns()
        if first_ns + (AHEAD_S - 1) * SECOND_NS < now_ns:
            left_s = (first_ns - now_ns) / SECOND_NS + AHEAD_S
            raise UsageError(f"start_tai is past, or too near ({left_s:.1f} s ahead by this machine): give a later one")
        for other in self.plans.values():
            begin_ns, end_ns = other.span_ns
            if begin_ns < last_ns and first_ns < end_ns:
                raise UsageError(
                    f"busy: plan {other.key} has this probe until TAI {end_ns // SECOND_NS}: start after it"
                )
        try:
            self._write(f"{key}{PLAN}", octets)
        except OSError as error:
            raise UsageError(f"the plan can't be kept ({error.strerror}): free space on the station's disk") from None
        self.plans[key] = kept

    def _kept(self, key: str, octets: bytes) -> KeptPlan:
        """Return a plan of its envelope."""
        known = json.loads(zlib.decompress(octets))
        if known["version"] != version():
            raise UsageError(
                f"this station is LiteProbe {version()}, the host {known['version']}: install the same at both"
            )
        text, name = known["plan"], known["name"]
        if key_of(text).hex() != key:
            raise UsageError("what was handed out is damaged: hand it out again")
        plan = read_plan(text)
        if name not in plan.by_name:
            raise UsageError(f"the plan has no probe '{name}'")
        check_alone(plan)
        done = {path.name.removesuffix(HALF) for path in self.folder.glob(f"{key}.*{HALF}")}
        return KeptPlan(key, plan, name, done)

    def result_part(self, asked: bytes) -> bytes:
        """Return a part of a result: how long all is (4 octets), and the part.

        ``asked``: the plan's name, and where to begin (4 octets). Raises ProbeError while it is not there yet.
        """
        key, begin = asked[:KEY_OCTETS].hex(), int.from_bytes(asked[KEY_OCTETS:PART_HEAD], "little")
        with self._lock:
            octets = self._result(key)
        return len(octets).to_bytes(4, "little") + octets[begin : begin + PART_MOST]

    def _result(self, key: str) -> bytes:
        if key not in self.plans:
            if (self.folder / f"{key}{FETCHED}").exists():
                raise ProbeError("its result was fetched already")
            raise ProbeError("this station has no such plan: it was not handed out here, or changed since")
        kept = self.plans[key]
        names = list(kept.names.values())
        if self._runs == key:
            raise ProbeError("it is not done yet: a start goes on")
        if not kept.done.issuperset(names) and (left_ns := kept.span_ns[1] - self._tai_ns()) > 0:
            raise ProbeError(f"it is not done yet: collect it in {left_ns / SECOND_NS:.0f} s or later")
        files = [self.folder / f"{name}{HALF}" for name in names if name in kept.done]
        try:
            parts = [path.read_bytes() for path in files]
        except OSError as error:
            raise ProbeError(f"a result can't be read ({error.strerror}): see to the station's disk") from None
        return b"".join(len(one).to_bytes(4, "little") + one for one in parts)

    def file_part(self, asked: bytes) -> bytes:
        """Return a part of a captured file; raises ProbeError where it can't be read.

        ``asked``: the plan's name, the number of the half (4 octets), that of the file (1), and where to begin (8).
        """
        key, number, place = asked[:KEY_OCTETS].hex(), asked[KEY_OCTETS:PART_HEAD][:4], asked[KEY_OCTETS + 4]
        stem = f"{key}.{int.from_bytes(number, 'little'):05}.{FILES[place % len(FILES)]}"
        try:
            (path,) = self.folder.glob(f"{stem}.*")
            with path.open("rb") as stream:
                stream.seek(int.from_bytes(asked[KEY_OCTETS + 5 :], "little"))
                return stream.read(FILE_MOST)
        except (ValueError, OSError) as error:
            raise ProbeError(f"a captured file can't be read ({error}): see to the station's disk") from None

    def forget(self, asked: bytes) -> bytes:
        """Let go of a plan and its result: the host has it, or nobody wants it any more."""
        key = asked.hex()
        with self._lock:
            if key not in self.plans:
                return b""
            self._write(f"{key}{FETCHED}", b"")
            kept = [one for one in self.folder.glob(f"{key}.*") if one.suffix not in (PLAN, FETCHED)]
            for path in [self.folder / f"{key}{PLAN}", *kept]:
                path.unlink(missing_ok=True)
            del self.plans[key]
            self._unwritten = {name: half for name, half in self._unwritten.items() if not name.startswith(key)}
            self.counts["fetched"] += 1
        return b""

    # What is due ------------------------------------------------------------------------------

    def run(self, wait: Sleep = time.sleep) -> None:
        """Run what is due, until `stop` is called or a signal ends it."""
        while not self._is_stopping:
            self.step(wait)
            wait(STEP_S)

    def stop(self) -> None:
        """End `run`; from any thread."""
        self._is_stopping = True

    def step(self, wait: Sleep = time.sleep) -> bool:
        """Run the start that is due, if one is, and return whether one was."""
        self._write_again()
        due = [
            (start_ns, number, kept)
            for kept in list(self.plans.values())
            for start_ns, number in self._open(kept)
            if start_ns - AHEAD_S * SECOND_NS <= self._tai_ns()
        ]
        if not due:
            return False
        start_ns, number, kept = min(due, key=lambda one: one[0])
        start_ns, own = kept.starts[number]
        is_past = start_ns < self._tai_ns()
        if is_past:
            begun = [one for one in own if self._has_begun(kept, start_ns, one)]
            others = [one for one in own if one not in begun]
            self._keep_all(
                kept, (start_ns, others), "late: the station was not there at the start (killed, or without power)"
            )
            if not begun:
                return True
            own = begun
        self.state, self._runs = f"measures for plan {kept.key}", kept.key
        try:
            self._measure(kept, (start_ns, own), is_past, wait)
        finally:
            self.state, self._runs = "idle", ""
        return True

    def _has_begun(self, kept: KeptPlan, start_ns: int, task: Task) -> bool:
        """Return whether a task is a suite of which some trials are kept, and that can still go on."""
        name = kept.names[start_ns, half_key(task)]
        is_open = name not in kept.done | self._unwritten.keys() and self._tai_ns() < kept.span_ns[1]
        return is_open and (self.folder / f"{name}{TRIALS}").exists()

    def _open(self, kept: KeptPlan) -> Iterator[tuple[int, int]]:
        """Give the starts that are not done, each with its place."""
        names = kept.names
        for place, (start_ns, own) in enumerate(kept.starts):
            there = kept.done | self._unwritten.keys()
            if any(names[start_ns, half_key(task)] not in there for task in own):
                yield start_ns, place

    def _measure(self, kept: KeptPlan, own: tuple[int, list[Task]], is_past: bool, wait: Sleep) -> None:
        """Do all of a start; ``is_past``: suites go on that were cut off."""
        start_ns, tasks = own
        try:
            with self._opener() as probe:
                why = unfit(kept.plan, kept.plan.by_name[kept.name], probe)
                off_ns = probe.timebase.now_ns - self._utc_ns()
                if why:
                    self._keep_all(kept, own, why)
                    return
                captures = [
                    self._capture(kept, one, start_ns, probe) for one, _ in tasks if isinstance(one, PlannedCapture)
                ]
                acts: list[Callable[[Sleep], None]] = []
                for planned, end in tasks:
                    if isinstance(planned, PlannedPair):
                        acts.append(partial(self._half, kept, planned, end, probe, (start_ns, off_ns)))
                    elif isinstance(planned, PlannedSuite):
                        acts.append(partial(self._suite, kept, planned, probe, (start_ns, is_past, off_ns)))

                def conduct(sleep: Sleep) -> None:
                    try:
                        in_turns(acts, sleep)
                        if captures and not acts:
                            sleep(max((self._end_ns(kept, start_ns) - probe.timebase.now_ns) / SECOND_NS, 0.0))
                    finally:
                        for one in captures:
                            one.end()

                def capture(one: CaptureBeside, sleep: Sleep) -> None:
                    sleep(max((start_ns - probe.timebase.now_ns) / SECOND_NS - BEFORE_S, 0.0))
                    one.run(sleep)

                in_turns([*(partial(capture, one) for one in captures), conduct], probe.link.wait)
                for one in captures:
                    self._keep_capture(kept, one, start_ns, (off_ns, probe))
        except ProbeError as error:
            self._keep_all(kept, own, lost(error))

    @staticmethod
    def _end_ns(kept: KeptPlan, start_ns: int) -> int:
        """Return when all of a start is over, at the latest (TAI, ns), for who only captures."""
        all_of_one = next(found for begins_ns, found in kept.plan.starts() if begins_ns == start_ns)
        return start_ns + kept.plan.length_ns(all_of_one)

    def _half(
        self, kept: KeptPlan, pair: PlannedPair, end: str, probe: Probe, when: tuple[int, int], sleep: Sleep
    ) -> None:
        """Measure one end of a pair, and keep what came."""
        start_ns, off_ns = when
        half = Half(pair.sender, pair.receiver, end, start_ns)
        try:
            way = half_of(pair, probe, kept.plan, end, (start_ns, sleep))
            half = way.half
            way.run()
        except LateError as error:
            half.why = f"late: {error}"
        except ProbeError as error:
            half.why = str(error)
        self._keep(kept, half, (off_ns, probe))

    def _suite(
        self, kept: KeptPlan, suite: PlannedSuite, probe: Probe, when: tuple[int, bool, int], sleep: Sleep
    ) -> None:
        """Run a suite, its trials kept as they end, and keep what came."""
        start_ns, is_past, off_ns = when
        half = Half(*half_key((suite, SUITE)), start_ns)
        figures = SuiteFigures.of(suite)
        path = self.folder / f"{kept.names[start_ns, half_key((suite, SUITE))]}{TRIALS}"
        run = SuiteRun(
            suite, (probe, probe), kept.plan, (None if is_past else start_ns, sleep), lambda one: False, figures
        )
        try:
            with StationJournal(path, {"plan": kept.key, "suite": suite.title}, resume=path.exists()) as journal:
                figures.note = f"the station was away meanwhile: {journal.kept} trials were kept" * is_past
                run.run(journal)
        except LateError as error:
            figures.why = f"late: {error}"
        except ProbeError as error:
            figures.why = str(error)
        except OSError as error:
            figures.why = f"its trials can't be kept ({error.strerror}): free space on the station's disk"
        figures.start_time_ns = start_ns if figures.is_measured else None
        half.flows, half.sent = {"suite": figures.plain()}, figures.count("sent") or 0
        self._keep(kept, half, (off_ns, probe))

    def _capture(self, kept: KeptPlan, planned: PlannedCapture, start_ns: int, probe: Probe) -> CaptureBeside:
        """Return a capture into files here, in the place of those of the plan."""
        stem = kept.names[start_ns, half_key((planned, CAPTURE))]
        files = {name: self.folder / f"{stem}.{name}{one.suffix}" for name, one in planned.paths.items()}
        most = STATION_MOST if planned.most is None else planned.most
        return CaptureBeside(replace(planned.into(files), most=most), probe)

    def _keep_capture(self, kept: KeptPlan, one: CaptureBeside, start_ns: int, clock: tuple[int, Probe]) -> None:
        """Keep what came of a capture: its counts, and of each file the name, how many octets it has, and their digest."""
        half = Half(one.figures.probe, CAPTURE, CAPTURE, start_ns, one.figures.why)
        files = {}
        for name, path in one.paths.items():
            with suppress(OSError), path.open("rb") as stream:
                files[name] = {
                    "octets": path.stat().st_size,
                    "digest": hashlib.file_digest(stream, "sha256").hexdigest(),
                }
        number = int(kept.names[start_ns, (half.sender, half.receiver, half.end)].rpartition(".")[2])
        counts = None if one.figures.result is None else one.figures.result.to_dict()
        half.flows = {"counts": counts, "files": files, "number": number}
        self._keep(kept, half, clock)

    def _keep_all(self, kept: KeptPlan, own: tuple[int, list[Task]], why: str) -> None:
        """Keep why nothing was measured, of all that isn't done."""
        start_ns, tasks = own
        for task in tasks:
            self._keep(kept, Half(*half_key(task), start_ns, why))

    def _keep(self, kept: KeptPlan, half: Half, clock: tuple[int, Probe] | None = None) -> None:
        """Keep a half; ``clock``: how far off the probe's was before the start, and the probe."""
        if clock:
            off_ns, probe = clock
            after_ns = off_ns
            with suppress(ProbeError):
                after_ns = probe.timebase.now_ns - self._utc_ns()
            half = replace(half, off_ns=[off_ns, after_ns])
        name = kept.names[half.start_ns, (half.sender, half.receiver, half.end)]
        with self._lock:
            if name in kept.done or name in self._unwritten or kept.key not in self.plans:
                return
            self.counts["failed" if half.why else "measured"] += 1
            self._put(name, half)
        for take in self.seen:
            take(half)

    def _put(self, name: str, half: Half) -> None:
        """Write a half; what the disk has no space for is written later."""
        try:
            self._write(f"{name}{HALF}", half.octets())
        except OSError as error:
            self.counts["unwritten"] += name not in self._unwritten
            self._unwritten[name] = half
            self.state = f"results can't be written ({error.strerror})"
            return
        self._unwritten.pop(name, None)
        self.plans[name.partition(".")[0]].done.add(name)

    def _write_again(self) -> None:
        with self._lock:
            for name, half in list(self._unwritten.items()):
                self._put(name, half)

    def _write(self, name: str, octets: bytes) -> None:
        """Write a file, whole or not at all; raises OSError."""
        write_synced(self.folder / name, octets)

    def _tai_ns(self) -> int:
        """Return the time by this machine: good enough for when to open the probe, whose own clock starts it."""
        return self._utc_ns() + TAI_UTC_S * SECOND_NS


def check_alone(plan: ExperimentPlan) -> None:
    """Raise UsageError unless each station can run its part of a plan alone."""
    if between := next((one for one in plan.suites if one.is_between), None):
        raise UsageError(
            f"'{between.title}' goes on by what came to the other probe, which a station doesn't know: leave out 'to', or have "
            "this host run the plan"
        )
    plan.starts()


class StationJournal(Journal):
    """Keeps the trials of a suite as far as the disk has space; those that it has not are lost only where the station dies."""

    _is_full = False

    def _append(self, content: Mapping[str, Any]) -> None:
        try:
            if not self._is_full:
                super()._append(content)
        except OSError:
            self._is_full = True  # A torn line is left out by who goes on, so it is the last one.


def check_private(address: str, has_keys: bool) -> None:
    """Raise UsageError unless an address of a station is of this machine alone, or of a private network."""
    host, _ = check_address(address, has_keys, is_agent=True)
    try:
        found = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        if host == "localhost":
            return
        raise UsageError(f"{address}: give the number of one private address, as of a VPN, not a name") from None
    if found.is_unspecified or not (found.is_private or found in ipaddress.ip_network("100.64.0.0/10")):
        raise UsageError(
            f"{address} can be reached from the world: give a private address of this machine, as of a VPN, or loopback with ssh -R"
        )


# # #


def _part(octets: bytes) -> tuple[bytes, int, int, bytes]:
    if len(octets) <= PART_HEAD:
        raise UsageError("this can't be read as a part of a plan: install the same version at both ends")
    begin, total = (int.from_bytes(octets[at : at + 4], "little") for at in (KEY_OCTETS, KEY_OCTETS + 4))
    return octets[:KEY_OCTETS], begin, total, octets[PART_HEAD:]
