# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Hands a plan out to the stations of its probes, and gathers their results later; who is missing is named."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from liteprobe.host.agent.client import AgentClient
from liteprobe.host.agent.keys import Keys
from liteprobe.host.base.errors import DataError, ProbeError, UsageError
from liteprobe.host.base.output import write_synced
from liteprobe.host.capture.request import CaptureResult
from liteprobe.host.fleet.captures import CaptureFigures
from liteprobe.host.fleet.experiment import ExperimentResult, PairFigures, disagreeing
from liteprobe.host.fleet.halves import CAPTURE, HEARS, SENDS, SUITE, Half, joined
from liteprobe.host.fleet.plan import FILES, ExperimentPlan, PlannedCapture, PlannedPair
from liteprobe.host.fleet.probes import PlannedProbe
from liteprobe.host.fleet.station import FILE_MOST, PART_MOST, SECOND_NS, check_alone, envelope, key_of, version
from liteprobe.host.fleet.suite_runs import SuiteFigures
from liteprobe.host.fleet.suites import PlannedSuite

SCHEME = "station://"
AT_ONCE = 32  # Stations that are asked at the same time.
AT_ONCE_OF_FILE = 4  # Parts of a file.
UNFETCHED = "what was captured can't be fetched"  # So that stations keep it.
CONNECT_S = 5.0

Connect = Callable[[PlannedProbe], AgentClient]


def connector(keys: Keys | None) -> Connect:
    """Return what connects to the station of a probe by its URL, ``station://HOST:PORT``."""

    def connect(planned: PlannedProbe) -> AgentClient:
        if (keys is None) != (planned.station_key is None):
            raise UsageError(
                f"'{planned.name}': its station_key and --keys of this host belong together: give both, or none"
            )
        address = planned.url.replace(SCHEME, "tcp://")
        return AgentClient(address, keys, planned.station_key, CONNECT_S)

    return connect


def check_stations(plan: ExperimentPlan) -> None:
    """Raise UsageError unless all probes of a plan have stations, and it says when they start."""
    if others := [one.name for one in plan.probes if not one.url.startswith(SCHEME)]:
        raise UsageError(f"'{others[0]}' has no station: its url is to be station://HOST:PORT, as of all others")
    check_alone(plan)


def hand_out(plan: ExperimentPlan, text: str, connect: Connect) -> dict[str, str]:
    """Give each station its part of a plan; return why some did not take it, by the names of probes.

    Raises UsageError where the plan is none for stations, ProbeError where no station took it.
    """
    check_stations(plan)
    key = key_of(text)

    def give(planned: PlannedProbe) -> str:
        octets = envelope(text, planned.name)
        with connect(planned) as client:
            if (theirs := str(client.get("version"))) != version():
                return f"its station is LiteProbe {theirs}, this host {version()}: install the same at both"
            for begin in range(0, len(octets), PART_MOST):
                head = key + begin.to_bytes(4, "little") + len(octets).to_bytes(4, "little")
                client.set("plan", head + octets[begin : begin + PART_MOST])
        return ""

    faults = {name: why for name, why in _each(plan.probes, give).items() if why}
    if len(faults) == len(plan.probes):
        raise ProbeError(f"no station took the plan: {'; '.join(f'{name}: {why}' for name, why in faults.items())}")
    return faults


def collect(plan: ExperimentPlan, text: str, connect: Connect) -> ExperimentResult:
    """Gather what stations have measured, which they keep until `forget`; who is missing is among the faults.

    Raises ProbeError where no station has a result.
    """
    check_stations(plan)
    key, halves, whole = key_of(text), dict[tuple[str, str, str], Half](), list[Half]()

    def fetch(planned: PlannedProbe) -> str:
        octets, total = bytearray(), 1
        with connect(planned) as client:
            while len(octets) < total:
                part = client.set("result", key + len(octets).to_bytes(4, "little"))
                assert isinstance(part, bytes)
                total = int.from_bytes(part[:4], "little")
                octets += part[4:]
                if len(part) == 4:
                    break
        while octets:
            end = 4 + int.from_bytes(octets[:4], "little")
            half = Half.of(bytes(octets[4:end]))
            if half.end in (SUITE, CAPTURE):
                whole.append(half)
            else:
                halves[half.sender, half.receiver, half.end] = half
            del octets[:end]
        return ""

    faults = {name: why for name, why in _each(plan.probes, fetch).items() if why}
    if len(faults) == len(plan.probes):
        raise ProbeError(f"no station has a result: {'; '.join(f'{name}: {why}' for name, why in faults.items())}")
    missing = set(faults)
    every = [*halves.values(), *whole]
    odd = {start_ns: _odd([one for one in every if one.start_ns == start_ns], every) for start_ns, _ in plan.starts()}
    pairs = _pairs(plan, halves, faults, odd)
    suites = _suites(plan, [one for one in whole if one.end == SUITE], faults, odd)
    captures = _captures(plan, text, [one for one in whole if one.end == CAPTURE], faults, connect)
    faults.update({name: why for found in odd.values() for name, why in found.items() if name not in faults})
    for one in captures:
        if one.why.startswith(UNFETCHED):
            missing.add(one.probe)
            faults.setdefault(one.probe, one.why)
    return ExperimentResult(pairs, faults, captures=captures, suites=suites, missing=frozenset(missing))


def forget(plan: ExperimentPlan, text: str, connect: Connect) -> dict[str, str]:
    """Have all stations delete a plan and its result; return those that did not answer, each with the reason."""

    def tell(planned: PlannedProbe) -> str:
        with connect(planned) as client:
            client.set("fetched", key_of(text))
        return ""

    return {name: why for name, why in _each(plan.probes, tell).items() if why}


# # #


def _each(probes: Sequence[PlannedProbe], act: Callable[[PlannedProbe], str]) -> dict[str, str]:
    """Do something with each station, many at the same time; return what is said of each, or its error."""

    def tried(one: PlannedProbe) -> str:
        try:
            return act(one)
        except DataError as error:
            return str(error)
        except UsageError:
            raise
        except ProbeError as error:
            return str(error)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        said = list(pool.map(tried, probes))
    return {one.name: why for one, why in zip(probes, said, strict=True)}


def _pairs(
    plan: ExperimentPlan,
    halves: Mapping[tuple[str, str, str], Half],
    faults: Mapping[str, str],
    odd: Mapping[int, Mapping[str, str]],
) -> list[PairFigures]:
    """Return the figures of all pairs; ``odd``: probes whose clock tells another time than most, by start.

    Of a start by such a clock nothing is known: frames may have passed while the other end didn't listen.
    """
    found: dict[tuple[str, str], list[PairFigures]] = {}
    for start_ns, all_of_one in plan.starts():
        for pair in all_of_one:
            if not isinstance(pair, PlannedPair):
                continue
            ends = pair.ends
            own = {end: halves[*ends, end] for end in (SENDS, HEARS) if (*ends, end) in halves}
            said = _said(ends, odd[start_ns], faults)
            nothing = [PairFigures(*ends, name, why=said) for name in pair.flows if said]
            found[ends] = nothing or joined(pair, own, plan)
    return [one for pair in plan.pairs for one in found[pair.ends]]


def _said(names: Sequence[str], odd: Mapping[str, str], faults: Mapping[str, str]) -> str:
    """Return why nothing is known of some probes in a start; empty: it is."""
    said = [f"{name}: {odd[name]}" for name in names if name in odd]
    return "; ".join([*said, *(f"{name}: {faults[name]}" for name in names if name in faults)])


def _suites(
    plan: ExperimentPlan, halves: Sequence[Half], faults: Mapping[str, str], odd: Mapping[int, Mapping[str, str]]
) -> list[SuiteFigures]:
    """Return what came of all suites."""
    known = {half.receiver: half for half in halves}
    found: dict[str, SuiteFigures] = {}
    for start_ns, all_of_one in plan.starts():
        for suite in [one for one in all_of_one if isinstance(one, PlannedSuite)]:
            half, said = known.get(suite.title), _said([suite.sender], odd[start_ns], faults)
            if half is None or half.why or said:
                why = said or f"{suite.sender}: {half.why if half else 'its station has no result of it'}"
                found[suite.title] = SuiteFigures.of(suite, why)
            else:
                found[suite.title] = SuiteFigures.of_plain(half.flows["suite"])
    return [found[one.title] for one in plan.suites]


def _captures(
    plan: ExperimentPlan, text: str, halves: Sequence[Half], faults: Mapping[str, str], connect: Connect
) -> list[CaptureFigures]:
    """Fetch what was captured at each start, and return what came of it."""
    known = {(half.sender, half.start_ns): half for half in halves}
    starts = plan.starts()
    wanted = [
        (start_ns, one.of_start(number, len(starts)))
        for one in plan.captures
        for number, (start_ns, _) in enumerate(starts, 1)
    ]

    def one_of(start_ns: int, planned: PlannedCapture) -> CaptureFigures:
        found = CaptureFigures(planned.probe, planned.files)
        half = known.get((planned.probe, start_ns))
        if half is None or not half.flows:
            found.why = faults.get(planned.probe) or (half.why if half else "its station has no result of it")
            return found
        found.why = half.why
        if (counts := half.flows["counts"]) is not None:
            failed = (half.why,) if half.why else ()
            found.result = CaptureResult(
                {name: one for name, one in counts.items() if name != "is_complete"}, failed=failed
            )
        try:
            for name, path in planned.paths.items():
                if name in half.flows["files"]:
                    _fetch_file(plan.by_name[planned.probe], (key_of(text), half, name), path, connect)
        except (ProbeError, OSError) as error:
            said = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
            found.why = f"{UNFETCHED}: {said}"
        return found

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda of: one_of(*of), wanted))


def _fetch_file(planned: PlannedProbe, of: tuple[bytes, Half, str], path: Path, connect: Connect) -> None:
    """Write a captured file, whole or not at all, unless it is there; raises OSError, or ProbeError where it is damaged."""
    key, half, name = of
    octets, digest = half.flows["files"][name]["octets"], half.flows["files"][name]["digest"]
    if path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == digest:
        return
    head = key + int(half.flows["number"]).to_bytes(4, "little") + bytes([FILES.index(name)])
    places = range(0, octets, FILE_MOST)
    parts: dict[int, bytes] = {}

    def fetch(own: Sequence[int]) -> None:
        with connect(planned) as client:
            for place in own:
                part = client.set("file", head + place.to_bytes(8, "little"))
                assert isinstance(part, bytes)
                parts[place] = part
                client.events.clear()  # It keeps all that was said.

    with ThreadPoolExecutor(AT_ONCE_OF_FILE) as pool:
        list(pool.map(fetch, [places[first::AT_ONCE_OF_FILE] for first in range(min(AT_ONCE_OF_FILE, len(places)))]))
    content = b"".join(parts[place] for place in places)
    if hashlib.sha256(content).hexdigest() != digest:
        raise ProbeError(f"{path.name} is not as it was captured: see to the station's disk")
    path.with_name(f".{path.name}.part").unlink(missing_ok=True)
    write_synced(path, content)


def _odd(halves: Sequence[Half], every: Sequence[Half]) -> dict[str, str]:
    """Return the probes whose clock differed from most others, before a start or after its end, and by how much in words.

    ``every``: of all starts: a probe that measures alone is held against what others had in theirs.
    """
    found: dict[str, str] = {}
    for place in range(2):
        times = {one.probe: float(one.off_ns[place]) for one in (*every, *halves) if one.off_ns}
        own = {one.probe for one in halves}
        found |= {name: why for name, why in disagreeing(times, SECOND_NS).items() if name in own}
    return found
