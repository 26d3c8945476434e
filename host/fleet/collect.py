# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Hands a plan out to the stations of its probes, and gathers their results later; who is missing is named."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from liteprobe.host.agent.client import AgentClient
from liteprobe.host.agent.keys import Keys
from liteprobe.host.base.errors import DataError, ProbeError, UsageError
from liteprobe.host.fleet.experiment import ExperimentResult, PairFigures, disagreeing
from liteprobe.host.fleet.halves import HEARS, SENDS, Half, joined
from liteprobe.host.fleet.plan import ExperimentPlan, PlannedPair
from liteprobe.host.fleet.probes import PlannedProbe
from liteprobe.host.fleet.station import PART_MOST, SECOND_NS, envelope, key_of, version

SCHEME = "station://"
AT_ONCE = 32  # Stations that are asked at the same time.
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
    if plan.captures:
        raise UsageError("stations keep no captures: leave out 'captures', or have this host run the plan")
    if plan.suites:
        raise UsageError("stations run no suites: leave out 'suites', or have this host run the plan")
    plan.starts()


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
    key, halves = key_of(text), dict[tuple[str, str, str], Half]()

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
            halves[half.sender, half.receiver, half.end] = half
            del octets[:end]
        return ""

    faults = {name: why for name, why in _each(plan.probes, fetch).items() if why}
    if len(faults) == len(plan.probes):
        raise ProbeError(f"no station has a result: {'; '.join(f'{name}: {why}' for name, why in faults.items())}")
    missing = frozenset(faults)
    return ExperimentResult(_pairs(plan, halves, faults), faults, missing=missing)


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
    plan: ExperimentPlan, halves: Mapping[tuple[str, str, str], Half], faults: dict[str, str]
) -> list[PairFigures]:
    """Return the figures of all pairs; clocks that tell another time than most are added to the faults.

    Of a start by such a clock nothing is known: frames may have passed while the other end didn't listen.
    """
    found: dict[tuple[str, str], list[PairFigures]] = {}
    for start_ns, all_of_one in plan.starts():
        odd = _odd([half for half in halves.values() if half.start_ns == start_ns])
        for pair in all_of_one:
            if not isinstance(pair, PlannedPair):
                continue
            ends = pair.ends
            own = {end: halves[*ends, end] for end in (SENDS, HEARS) if (*ends, end) in halves}
            said = [f"{name}: {odd[name]}" for name in ends if name in odd]
            said += [f"{name}: {faults[name]}" for name in ends if name in faults]
            nothing = [PairFigures(*ends, name, why="; ".join(said)) for name in pair.flows if said]
            found[ends] = nothing or joined(pair, own, plan)
        faults.update({name: why for name, why in odd.items() if name not in faults})
    return [one for pair in plan.pairs for one in found[pair.ends]]


def _odd(halves: Sequence[Half]) -> dict[str, str]:
    """Return the probes whose clock differed from most others, before a start or after its end, and by how much in words."""
    found: dict[str, str] = {}
    for place in range(2):
        known = [one for one in halves if one.off_ns]
        times = {one.sender if one.end == SENDS else one.receiver: float(one.off_ns[place]) for one in known}
        found |= disagreeing(times, SECOND_NS)
    return found
