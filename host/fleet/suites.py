# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Plans suites of an experiment: which suite at which probe, or from which to which, and what it is asked for.

What a suite is asked for is the request of its own command: same names, same defaults.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from liteprobe.cores.formats import STREAMS
from liteprobe.host.base.document import Entries, Flag, Key, OneOf, Quantity, Section, Several, Text, Whole
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.units import DURATIONS, PER_CENT
from liteprobe.host.fleet.probes import MAC, NAME, PlannedProbe, addressed, between, called, refuse_ends
from liteprobe.host.run.stamp import COUNT_MOST, PADDING_MOST, StampSession
from liteprobe.host.suites import rfc2544, soak, y1564
from liteprobe.host.suites.search import GOALS, METHODS
from liteprobe.host.traffic.document import OF_ALL, STREAM_GROUPS, STREAMS_DOCUMENT, stream_of
from liteprobe.host.traffic.headers import Headers
from liteprobe.host.traffic.intervals import PACKETS, SHARE, TIME
from liteprobe.host.traffic.stream import Stream

STAMP = "stamp"
TRIAL_S = 3.0  # Of a trial, besides what it sends: to load it, and to wait for what is still on the way.
SUITES_MAX = 256
HEADERS = ("mac", "vlan", "ipv4", "ipv6", "udp")
SPAN = Quantity("a time", "a time like 20ms, 15min or 24h", DURATIONS, Fraction(10**17), plain="ns")
PAUSE = replace(SPAN, may_be_0=True)
PERCENT = Quantity("a share", "per cent like 0.5%, up to 100%", PER_CENT, Fraction(1), True)
AS_ASKED = "as its standard asks; short where the probe is simulated"


def _ratio(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"'{text}' is not a ratio: give one like 1e-12") from None


@dataclass(frozen=True)
class PlannedSuite:
    """A suite at a probe, or from it to another one, which measures."""

    name: str
    kind: str  # One of `KINDS`.
    sender: str
    receiver: str  # The same where it is at one probe.
    asked: Any  # A SuiteRequest, or a StampSession.
    receive: int | None = None  # Port that measures; None: where the wire leads.
    both_ways: bool = False

    @property
    def ends(self) -> tuple[str, str]:
        """Names of both probes."""
        return self.sender, self.receiver

    @property
    def is_between(self) -> bool:
        """Whether another probe measures than the one that sends."""
        return self.sender != self.receiver

    @property
    def title(self) -> str:
        """Its name and where it runs, which no other one has."""
        where = f"{self.sender} to {self.receiver}" if self.is_between else self.sender
        return f"{self.name}, {where}"

    @property
    def most_s(self) -> float:
        """Time that it takes, about, at the most (s)."""
        if isinstance(self.asked, StampSession):
            return self.asked.count * self.asked.interval_ns / 1e9 + TRIAL_S
        plan = self.asked.plan()
        most: float = plan.seconds[1] + TRIAL_S * plan.most
        return most

    @property
    def words(self) -> str:
        """Trials, or packets, and their time in words."""
        if isinstance(self.asked, StampSession):
            return f"{self.asked.count:,} packets"
        said: str = self.asked.plan().words()
        return said

    def request(self, port: int, receive: int) -> Any:
        """Return what it is asked for, from a port to one that measures; UsageError where these can't be."""
        if isinstance(self.asked, rfc2544.Rfc2544Request):
            if self.both_ways and receive == port:
                raise UsageError(f"port {receive} measures what it sends: there is no other way for both_ways")
            return replace(self.asked, ways=((port, receive), *([(receive, port)] if self.both_ways else [])))
        return self.asked if isinstance(self.asked, StampSession) else replace(self.asked, receive={port: receive})


# Documents ----------------------------------------------------------------------------------------

RECEIVE = Key(Whole(0, 7), "Port that measures.", "where the wire leads; with `to`, that of the other probe")
DEFAULTS, STREAMS_KIND = (STREAMS_DOCUMENT.keys[name].kind for name in ("defaults", "streams"))
#: Of `liteprobe rfc2544`, whose options have these names; a test whose device is reset by hand is none for a plan.
BENCHMARK = Section(
    "benchmark",
    {
        "tests": Key(
            Several(OneOf((*(one for one in rfc2544.TESTS if one != "reset"), *rfc2544.TESTS_2889)), 9),
            "Which of them.",
            "the first four",
        ),
        "frame_size": Key(
            Several(Text("octets with FCS, imix, or letters of RFC 6985", r"\w+"), 64), "Sizes.", "those of RFC 2544"
        ),
        "duration": Key(SPAN, "Of a trial.", AS_ASKED),
        "pause": Key(PAUSE, "After each trial.", AS_ASKED),
        "latency_duration": Key(SPAN, "Of a trial of latency.", AS_ASKED),
        "latency_repeats": Key(Whole(1, 10_000), "Trials of latency.", AS_ASKED),
        "load": Key(SHARE, "For latency.", "the throughput"),
        "loss_step": Key(PERCENT, "From load to load.", "10%"),
        "burst_duration": Key(SPAN, "The longest burst.", AS_ASKED),
        "burst_repeats": Key(Whole(1, 10_000), "How often it is searched.", AS_ASKED),
        "ageing": Key(SPAN, "After which the device has forgotten an address.", AS_ASKED),
        "addresses_most": Key(Whole(2, 65_536), "Addresses that are tried at most.", AS_ASKED),
        "teach_rate": Key(PACKETS, "Frames a second that teach and ask for them.", AS_ASKED),
        "learned": Key(Whole(1, 65_536), "Addresses that the learning rate is measured with.", "64"),
        "search": Key(OneOf(tuple(METHODS)), "How the throughput is found.", "mlrsearch"),
        "goal": Key(OneOf(tuple(GOALS)), "What passes.", "rfc2544"),
        "precision": Key(PERCENT, "Of the load.", "0.5%"),
        "loss_ratio": Key(PERCENT, "That passes.", "the goal's"),
        "addresses": Key(Whole(1, rfc2544.ADDRESSES_MOST), "Destination addresses, one after the other.", "1"),
        "both_ways": Key(Flag(), "Both ways at once, at one probe.", "false"),
        "receive": RECEIVE,
        **{name: OF_ALL[name] for name in HEADERS},
    },
)
SERVICE_TEST = Section(
    "service test",
    {
        **y1564.SERVICES_DOCUMENT.keys,
        "tests": Key(Several(OneOf(y1564.TESTS), len(y1564.TESTS)), "Which of them.", "both"),
        "steps": Key(Several(SHARE, 16), "Of the committed rate.", "25%, 50%, 75%, 100%"),
        "duration": Key(SPAN, "Of a step.", AS_ASKED),
        "performance": Key(SPAN, "All services at once.", AS_ASKED),
        "pause": Key(PAUSE, "After each step, at least.", AS_ASKED),
        "receive": RECEIVE,
    },
)
SOAK = Section(
    "soak test",
    {
        "defaults": Key(DEFAULTS, "Keys that all streams have, unless they give them."),
        "streams": Key(STREAMS_KIND, f"The streams; up to {STREAMS}, without a count.", is_needed=True),
        "duration": Key(SPAN, "In all.", "1h; 20ms simulated"),
        "segment": Key(SPAN, "What is kept at once.", "1min; 5ms simulated"),
        "receive": RECEIVE,
    },
)
BIT_ERRORS = Section(
    "bit error test",
    {
        **SOAK.keys,
        "ber": Key(Text("a ratio like 1e-12", r"\S+", _ratio), "That isn't to be exceeded.", "no bit may be wrong"),
        "confidence": Key(PERCENT, "Of the verdict, and of the ratio.", "95%"),
    },
)
SESSION = Section(
    "STAMP session",
    {
        "address": Key(Text("an IP address", r"[0-9a-fA-F.:]+"), "Of the reflector.", is_needed=True),
        "udp_port": Key(Whole(1, 0xFFFF), "Of the reflector.", "862"),
        "count": Key(Whole(1, COUNT_MOST), "Packets.", "100"),
        "interval": Key(TIME, "From packet to packet.", "1ms"),
        "padding": Key(Whole(0, PADDING_MOST), "Octets of the TLV Extra Padding.", "none; 4 over IPv6"),
        "ssid": Key(Whole(0, 0xFFFF), "Identifier of the session.", "1"),
        "tlv": Key(Several(Text("the name of a TLV", r"\S+"), 16), "TLVs to ask for.", "none"),
        "dscp": Key(Whole(0, 63), "DSCP.", "0"),
        "ttl": Key(Whole(1, 255), "TTL or hop limit.", "255"),
        "mac": Key(MAC, "MAC address of the reflector.", "the probe's `router_mac`"),
        "stateful": Key(Flag(), "The reflector counts its answers.", "where its numbers say so"),
    },
)
#: Suites by the names of their commands.
KINDS: Mapping[str, Section] = {
    "rfc2544": BENCHMARK,
    "y1564": SERVICE_TEST,
    "soak": SOAK,
    "bert": BIT_ERRORS,
    STAMP: SESSION,
}
SUITE = Section(
    "suite",
    {
        "at": Key(NAME, "Name or label of the probes that run it, each its own.", is_needed=True),
        "to": Key(NAME, "Name or label of the probes that measure what those send.", "it is at one probe"),
        "name": Key(NAME, "For people.", "that of the suite"),
        **{name: Key(section, f"As of `liteprobe {name}`.") for name, section in KINDS.items()},
    },
)
SUITE_SECTIONS = (SUITE, *KINDS.values())


def suites_of(entries: Entries, probes: Sequence[PlannedProbe]) -> Iterator[PlannedSuite]:
    """Give the suites of an item of a plan: one for each probe, or pair of probes, that it names."""
    kinds = [name for name in entries.values if name in KINDS]
    entries.refuse_both(tuple(KINDS), "suite")
    if not kinds:
        raise entries.source.error(entries.line, f"a suite is one of these: give {', '.join(KINDS)}")
    (kind,) = kinds
    given: Entries = entries.get(kind)
    if "to" in entries.values:
        if kind == STAMP:
            raise entries.error("to", "a session of STAMP is answered where it goes: leave out 'to'")
        for name in ("receive", "both_ways"):
            if name in given.values:
                raise given.error(name, f"with 'to' the other probe measures, at its own port: leave out '{name}'")
    others: Sequence[PlannedProbe | None] = called(entries, "to", probes) if "to" in entries.values else [None]
    for a in called(entries, "at", probes):
        for b in others:
            if a is b:
                continue
            with entries.source.line(given.line):
                asked = READERS[kind](given, a, b)
                yield PlannedSuite(
                    entries.get("name", kind),
                    kind,
                    a.name,
                    (b or a).name,
                    asked,
                    b.port if b else given.get("receive"),
                    bool(given.get("both_ways")),
                )


# # #


def _benchmark(given: Entries, a: PlannedProbe, b: PlannedProbe | None) -> rfc2544.Rfc2544Request:
    headers = addressed(Headers.of_entries(given.only(HEADERS)), a, b)
    values = given.values | {"sizes": given.get("frame_size")}
    receive = b.port if b else given.get("receive", a.port)
    return rfc2544.request_of(rfc2544.usual(a.url), values, headers=headers, ways=((a.port, receive),))


def _service_test(given: Entries, a: PlannedProbe, b: PlannedProbe | None) -> y1564.Y1564Request:
    nothing = Entries({}, {}, given.line, given.source)
    for one in given.get("services"):
        refuse_ends(one, given.get("defaults", nothing))
    services = tuple(
        replace(one, stream=between(one.stream, a, b, one.stream.stream_id)) for one in y1564.services_of(given)
    )
    names = ("duration", "performance", "pause")
    step_s, performance_s, pause_s = (
        float(given.get(name)) / 1e9 if name in given.values else usual_s
        for name, usual_s in zip(names, y1564.usual_s(a.url), strict=True)
    )
    others = {name: given.get(name) for name in ("tests", "steps") if name in given.values}
    return y1564.Y1564Request(services, step_s=step_s, performance_s=performance_s, pause_s=pause_s, **others)


def _soak(given: Entries, a: PlannedProbe, b: PlannedProbe | None, **others: Any) -> soak.SoakRequest:
    usual_s = soak.usual_s(a.url)
    seconds, segment_s = (
        float(given.get(name)) / 1e9 if name in given.values else one
        for name, one in zip(("duration", "segment"), usual_s, strict=True)
    )
    return soak.SoakRequest(_streams(given, a, b), seconds, segment_s, **others)


def _bit_errors(given: Entries, a: PlannedProbe, b: PlannedProbe | None) -> soak.SoakRequest:
    ber, confidence = given.get("ber"), float(given.get("confidence", soak.SoakRequest.confidence))
    found = _soak(given, a, b, is_bert=True, ber=ber, confidence=confidence)
    if ber is None or "duration" in given.values:
        return found
    return replace(found, seconds=1.01 * soak.seconds_needed(found.streams, ber, confidence))


def _streams(given: Entries, a: PlannedProbe, b: PlannedProbe | None) -> tuple[Stream, ...]:
    nothing, found = Entries({}, {}, given.line, given.source), list[Stream]()
    common = given.get("defaults", nothing)
    for number, entries in enumerate(given.get("streams"), 1):
        refuse_ends(entries, common)
        made = stream_of(entries.over(common, STREAM_GROUPS), number)
        with entries.source.line(entries.line):
            found.append(between(made, a, b, made.stream_id))
    return tuple(found)


def _session(given: Entries, a: PlannedProbe, b: PlannedProbe | None) -> StampSession:
    del b
    names = {
        "udp_port": "port", "count": "count", "padding": "padding", "ssid": "identifier", "tlv": "tlvs", "dscp": "dscp",
        "ttl": "ttl", "stateful": "is_stateful", "mac": "destination_mac",
    }  # fmt: skip
    own: dict[str, Any] = {to: given.get(name) for name, to in names.items() if name in given.values}
    if "interval" in given.values:
        own["interval_ns"] = float(given.get("interval"))
    for value, to in ((a.ip, "source"), (a.mac, "source_mac"), (a.router_mac, "destination_mac")):
        if value is not None:
            own.setdefault(to, value)
    return StampSession(given.get("address"), transmit=a.port, **own)


Reader = Callable[[Entries, PlannedProbe, PlannedProbe | None], Any]
READERS: Mapping[str, Reader] = {
    "rfc2544": _benchmark,
    "y1564": _service_test,
    "soak": _soak,
    "bert": _bit_errors,
    STAMP: _session,
}
