# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Says who the probes of an experiment are, and gives what they send to one another its addresses."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, replace

from liteprobe.host.base.document import Entries, OneOf, Several, Text, Whole, check_fields, key, section_of
from liteprobe.host.base.errors import UsageError, nearest
from liteprobe.host.base.probe_url import full_url
from liteprobe.host.traffic.headers import Headers
from liteprobe.host.traffic.stream import Stream

IDS = 1 << 16  # Of streams: the id in a frame says which pair it belongs to.
LABELS_MAX = 16
NAME = Text("letters, digits, and _ . -, 32 at most", r"[A-Za-z0-9][A-Za-z0-9_.-]{0,31}")
URL = Text("an address like 192.168.1.50, or a URL", r"\S+", convert=full_url)
MAC = Text("a MAC address like 02:4c:50:00:00:01", r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")
ROLES = ("both", "sends", "receives")


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise UsageError(f"'{text}' is not an IP address: give one like 10.0.0.1") from None


@dataclass(frozen=True)
class PlannedProbe:
    """A probe of an experiment; RangeError, naming the fix, where it can't be one."""

    name: str
    url: str = key("url", URL, "Address or URL, as `--probe` takes it.")
    labels: tuple[str, ...] = key("labels", Several(NAME, LABELS_MAX), "Groups that it is in, for `pairs`.", (), "none")
    role: str = key("role", OneOf(ROLES), "What it does in pairs.", "both")
    port: int = key("port", Whole(0, 7), "Its port that sends and receives.", 0)
    map: str | None = key("map", Text("the path of a file", r".+"), "Its register map.", None, "found by its hash")
    ip: str | None = key(
        "ip", Text("an IP address", r"[0-9a-fA-F.:]+", convert=_address), "Address of its port.", None, "of benchmarks"
    )
    mac: str | None = key("mac", MAC, "MAC address of its port.", None, "locally administered")
    router_mac: str | None = key(
        "router_mac", MAC, "MAC address that its frames are sent to: of its router.", None, "that of the other probe"
    )

    station_key: str | None = key(
        "station_key",
        Text("the path of a file", r".+"),
        "Public key of its station (NAME.key).",
        None,
        "none: loopback",
    )

    def __post_init__(self) -> None:
        check_fields(self, f" of probe '{self.name}'")

    @property
    def sends(self) -> bool:
        """Whether it is the first of pairs."""
        return self.role != "receives"

    @property
    def receives(self) -> bool:
        """Whether it is the second of pairs."""
        return self.role != "sends"


PROBE = section_of(PlannedProbe, "probe")


def called(entries: Entries, key_name: str, probes: Sequence[PlannedProbe]) -> list[PlannedProbe]:
    """Return the probes that a key names, or whose label it is; UsageError, with the line, where there are none."""
    word = entries.get(key_name)
    found = [one for one in probes if one.name == word] or [one for one in probes if word in one.labels]
    if not found:
        words = tuple(
            dict.fromkeys([*(one.name for one in probes), *(label for one in probes for label in one.labels)])
        )
        raise entries.error(key_name, f"no probe has the name or label '{word}': {nearest(word, words)}")
    return found


# What they send -----------------------------------------------------------------------------------

#: Why streams of pairs don't have keys that `liteprobe send` takes.
OF_PAIRS = {
    "port": "the port of a pair is that of its probe: leave 'port' out here, and give it in `probes`",
    "from": "nobody asks for addresses here: leave 'from' out, and give 'ip', 'mac' and 'router_mac' in `probes`",
    "via": "nobody asks for addresses here: leave 'via' out, and give 'router_mac' in `probes`",
}


def addressed(own: Headers, a: PlannedProbe, b: PlannedProbe | None) -> Headers:
    """Return headers with the addresses of both ends; None: what is sent goes where the headers say, or to a router."""
    there = b or PlannedProbe(a.name, a.url)
    return replace(
        own,
        source_ip=a.ip or own.source_ip,
        destination_ip=there.ip or own.destination_ip,
        source_mac=a.mac or own.source_mac,
        destination_mac=a.router_mac or there.mac or own.destination_mac,
    )


def between(stream: Stream, a: PlannedProbe, b: PlannedProbe | None, number: int) -> Stream:
    """Return a stream with the ends of its pair; ``number``: its id."""
    check_measured(stream)
    if stream.source is not None or stream.via is not None:
        raise UsageError(f"stream '{stream.name}': {OF_PAIRS['from' if stream.via is None else 'via']}")
    if number >= IDS:
        raise UsageError(f"the streams of all pairs need more than {IDS - 1} ids: give fewer pairs or streams")
    return replace(stream, headers=addressed(stream.headers, a, b), stream_id=number, port=a.port)


def check_measured(stream: Stream) -> None:
    """Raise UsageError unless both ends of a pair can measure a stream: by probe headers with whole stamps."""
    stamp = stream.used_stamp
    if not stream.probe or stamp is None or stamp.range_ns is not None:
        raise UsageError(
            f"stream '{stream.name}': a pair is measured by probe headers and the stamps in them: "
            f"leave out '{'stamp' if stream.probe else 'probe'}', and ethertype and tcp"
        )


def refuse_ends(entries: Entries, common: Entries) -> None:
    """Raise UsageError, with the line, where a stream of a plan, or what all of them have, names ends of its own."""
    for name, why in OF_PAIRS.items():
        if name in entries.values or name in common.values:
            raise (entries if name in entries.values else common).error(name, why)
