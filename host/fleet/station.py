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
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path

from liteprobe.host.agent.agent import Agent
from liteprobe.host.agent.keys import check_address
from liteprobe.host.agent.message import OCTETS_MOST
from liteprobe.host.base.defaults import TAI_UTC_S
from liteprobe.host.base.errors import DataError, ProbeError, UsageError
from liteprobe.host.base.output import write_synced
from liteprobe.host.fleet.experiment import lost, unfit
from liteprobe.host.fleet.halves import HEARS, SENDS, Half, half_of
from liteprobe.host.fleet.plan import ExperimentPlan, PlannedPair, read_plan
from liteprobe.host.fleet.turns import Sleep, in_turns
from liteprobe.host.probe import Probe
from liteprobe.host.suites.owd import LateError

SECOND_NS = 10**9
AHEAD_S = 10  # The probe is opened so long before a start.
STEP_S = 0.5  # From one look at what is due to the next.
KEY_OCTETS = 8  # Of the name of an experiment.
PART_HEAD = KEY_OCTETS + 8
PART_MOST = OCTETS_MOST - PART_HEAD  # Octets of a part of a plan, or of a result.
PLAN_MOST = 1 << 20  # Octets of a plan, compressed.
PLAN, HALF, FETCHED = ".plan", ".half", ".fetched"


def version() -> str:
    """Return the version of LiteProbe, which must be the same at both ends."""
    return metadata.version("liteprobe")


def key_of(text: str) -> bytes:
    """Return the name of an experiment: the beginning of the SHA-256 of its plan."""
    return hashlib.sha256(text.encode()).digest()[:KEY_OCTETS]


def envelope(text: str, name: str, of_version: str | None = None) -> bytes:
    """Return a plan as it is handed out to the station of the probe of this name."""
    return zlib.compress(json.dumps({"version": of_version or version(), "name": name, "plan": text}).encode())


@dataclass
class KeptPlan:
    """Holds a plan that a station keeps, and its part of it."""

    key: str  # In base 16.
    plan: ExperimentPlan
    name: str  # Of the probe in it.
    done: set[str] = field(default_factory=set)  # Names of halves that are on disk.

    @property
    def starts(self) -> list[tuple[int, list[tuple[PlannedPair, str]]]]:
        """Each start (TAI, ns) in which the probe has a part, with its pairs and which end of them it is."""
        found = []
        for start_ns, all_of_one in self.plan.starts():
            pairs = [one for one in all_of_one if isinstance(one, PlannedPair)]
            own = [(one, SENDS) for one in pairs if one.sender == self.name]
            own += [(one, HEARS) for one in pairs if one.receiver == self.name]
            if own:
                found.append((start_ns, own))
        return found

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
        if plan.captures:
            raise UsageError("stations keep no captures: leave out 'captures'")
        plan.starts()
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
        names = [f"{key}.{number:05}" for number, _ in _numbered(kept)]
        if not kept.done.issuperset(names) and (left_ns := kept.span_ns[1] - self._tai_ns()) > 0:
            raise ProbeError(f"it is not done yet: collect it in {left_ns / SECOND_NS:.0f} s or later")
        files = [self.folder / f"{name}{HALF}" for name in names if name in kept.done]
        try:
            parts = [path.read_bytes() for path in files]
        except OSError as error:
            raise ProbeError(f"a result can't be read ({error.strerror}): see to the station's disk") from None
        return b"".join(len(one).to_bytes(4, "little") + one for one in parts)

    def forget(self, asked: bytes) -> bytes:
        """Let go of a plan and its result: the host has it, or nobody wants it any more."""
        key = asked.hex()
        with self._lock:
            if key not in self.plans:
                return b""
            self._write(f"{key}{FETCHED}", b"")
            for path in [self.folder / f"{key}{PLAN}", *self.folder.glob(f"{key}.*{HALF}")]:
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
        own = kept.starts[number]
        if start_ns < self._tai_ns():
            self._keep_all(kept, own, "late: the station was not there at the start (killed, or without power)")
            return True
        self.state = f"measures for plan {kept.key}"
        try:
            self._measure(kept, own, wait)
        finally:
            self.state = "idle"
        return True

    def _open(self, kept: KeptPlan) -> Iterator[tuple[int, int]]:
        """Give the starts that are not done, each with its place."""
        names = {(pair.ends, end): f"{kept.key}.{number:05}" for number, (pair, end) in _numbered(kept)}
        for place, (start_ns, own) in enumerate(kept.starts):
            there = kept.done | self._unwritten.keys()
            if any(names[pair.ends, end] not in there for pair, end in own):
                yield start_ns, place

    def _measure(self, kept: KeptPlan, own: tuple[int, list[tuple[PlannedPair, str]]], wait: Sleep) -> None:
        start_ns, pairs = own
        try:
            with self._opener() as probe:
                why = unfit(kept.plan, kept.plan.by_name[kept.name], probe)
                off_ns = probe.timebase.now_ns - self._utc_ns()
                if why:
                    self._keep_all(kept, own, why)
                    return
                in_turns(
                    [partial(self._half, kept, pair, end, probe, (start_ns, off_ns)) for pair, end in pairs],
                    probe.link.wait,
                )
        except ProbeError as error:
            self._keep_all(kept, own, lost(error))

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
        half.off_ns = [off_ns, off_ns]
        with suppress(ProbeError):
            half.off_ns[1] = probe.timebase.now_ns - self._utc_ns()
        self._keep(kept, half)

    def _keep_all(self, kept: KeptPlan, own: tuple[int, list[tuple[PlannedPair, str]]], why: str) -> None:
        """Keep why nothing was measured, of all that isn't done."""
        start_ns, pairs = own
        for pair, end in pairs:
            self._keep(kept, Half(pair.sender, pair.receiver, end, start_ns, why))

    def _keep(self, kept: KeptPlan, half: Half) -> None:
        number = next(
            number
            for number, (pair, end) in _numbered(kept)
            if (pair.ends, end) == ((half.sender, half.receiver), half.end)
        )
        name = f"{kept.key}.{number:05}"
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


def _numbered(kept: KeptPlan) -> list[tuple[int, tuple[PlannedPair, str]]]:
    """Return all ends of pairs that a station measures, numbered in the order of their starts."""
    return list(enumerate(one for _, own in kept.starts for one in own))


def _part(octets: bytes) -> tuple[bytes, int, int, bytes]:
    if len(octets) <= PART_HEAD:
        raise UsageError("this can't be read as a part of a plan: install the same version at both ends")
    begin, total = (int.from_bytes(octets[at : at + 4], "little") for at in (KEY_OCTETS, KEY_OCTETS + 4))
    return octets[:KEY_OCTETS], begin, total, octets[PART_HEAD:]
