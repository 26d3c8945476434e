# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Reads frames with tshark into the words of the unified header: an independent witness of the parser.

Only the dissectors of the headers in question are on: nothing is guessed from payloads, and defragmentation is off. Where
tshark walks on into tunnels and ICMP's quotations, the first occurrence of a field is that of the outer header.

Where both can't say the same of a frame, each cause has a name; a cause holds only where what is before it agrees. A frame with
none is compared as a whole.
"""

import ipaddress
import os
import struct
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from liteprobe.cores.formats import (
    EXTENSION, GIANT_LENGTH, LABELS_MAX, MIN_LENGTH, SIGNATURE, TAG_KINDS, TAGS_MAX, Layer3, UnifiedFlag,
)
from liteprobe.host.packets import unified as fields
from liteprobe.host.packets.unified import unified_headers
from liteprobe.sim.models.receive import unified

# Causes of differences ----------------------------------------------------------------------------

Values = dict[str, object]
Row = dict[str, list[str]]

#: Flags that follow from what tshark shows.
WITNESSED = (
    UnifiedFlag.LENGTH_ERROR | UnifiedFlag.RUNT | UnifiedFlag.GIANT | UnifiedFlag.FRAGMENT | UnifiedFlag.FIRST_FRAGMENT
    | UnifiedFlag.TRANSPORT | UnifiedFlag.TCP | UnifiedFlag.PROBE
)  # fmt: skip
OF_LINK = {"macs"}
OF_TAGS = OF_LINK | {"tags", "tag_kinds", "tag_types"}
OF_LABELS = OF_TAGS | {"type", "labels"}
OF_IPV6 = OF_LABELS | {"layer3", "source", "destination", "ip_length", "ttl", "flow_label", "dscp", "ecn"}


def shown_flags(frame: bytes, theirs: Values, row: Row) -> UnifiedFlag:
    """Return the flags of `WITNESSED` that follow from tshark's values and the frame's length."""
    flags = UnifiedFlag.NONE
    flags |= UnifiedFlag.RUNT if len(frame) < MIN_LENGTH else UnifiedFlag.NONE
    flags |= UnifiedFlag.GIANT if len(frame) > GIANT_LENGTH else UnifiedFlag.NONE
    offset, more = theirs.get("fragment_offset"), theirs.get("more_fragments")
    flags |= UnifiedFlag.FRAGMENT if offset or more else UnifiedFlag.NONE
    flags |= UnifiedFlag.FIRST_FRAGMENT if more and not offset else UnifiedFlag.NONE
    flags |= UnifiedFlag.TRANSPORT if "ports" in theirs else UnifiedFlag.NONE
    flags |= UnifiedFlag.TCP if "tcp_sequence" in theirs else UnifiedFlag.NONE
    payload = bytes.fromhex(row["udp.payload"][0]) if row["udp.payload"] else b""
    is_udp = theirs.get("protocol") == unified.UDP and "ports" in theirs
    is_probe = is_udp and len(payload) >= 12 and payload.startswith(SIGNATURE.to_bytes(4))
    flags |= UnifiedFlag.PROBE if is_probe else UnifiedFlag.NONE
    return flags | (UnifiedFlag.LENGTH_ERROR if _is_long(frame, theirs, row) else UnifiedFlag.NONE)


def _is_long(frame: bytes, theirs: Values, row: Row) -> bool:
    """Return whether IP says more octets than there are, or IPv4 fewer than its own header."""
    tags, labels, length = theirs["tags"], theirs["labels"], theirs.get("ip_length")
    assert isinstance(tags, list) and isinstance(labels, list)
    if isinstance(length, int):
        return 14 + 4 * (len(tags) + len(labels)) + length > len(frame)
    if not (row["ip.len"] and row["ip.hdr_len"]):
        return False
    total, at = int(row["ip.len"][0]), 14 + 4 * (len(tags) + len(labels))
    # It puts what is left in the place of 0.
    return 0 < total < int(row["ip.hdr_len"][0]) and (total != len(frame) - at or any(frame[at + 2 : at + 4]))


def _begins(mine: Values, theirs: Values, name: str) -> bool:
    """Return whether tshark's list goes on where ours ends."""
    ours, others = mine.get(name), theirs.get(name)
    assert isinstance(ours, list)
    return isinstance(others, list) and len(others) > len(ours) and others[: len(ours)] == ours


def fifth_tag(mine: Values, theirs: Values, flags: UnifiedFlag, row: Row) -> set[str] | None:
    """Beyond the fourth tag nothing is parsed; tshark goes on."""
    tags = theirs["tags"]
    if not (isinstance(tags, list) and len(tags) > TAGS_MAX and _begins(mine, theirs, "tags")):
        return None
    kinds, types = theirs["tag_kinds"], theirs["tag_types"]
    assert isinstance(kinds, list) and isinstance(types, list)
    theirs |= {"tags": tags[:TAGS_MAX], "tag_kinds": kinds[:TAGS_MAX], "tag_types": types[:TAGS_MAX]}
    is_stopped = UnifiedFlag.UNPARSED in flags and mine["type"] == types[TAGS_MAX - 1]
    return OF_TAGS if is_stopped and mine["layer3"] is Layer3.NONE else None


def cut_tag(mine: Values, theirs: Values, flags: UnifiedFlag, row: Row) -> set[str] | None:
    """A tag whose second half isn't there is none here; tshark shows the first."""
    if not (UnifiedFlag.TRUNCATED in flags and _begins(mine, theirs, "tags") and theirs["type"] is None):
        return None
    for name in ("tags", "tag_kinds", "tag_types"):
        theirs[name] = theirs[name][:-1]  # type: ignore[index]
    return OF_TAGS if mine["layer3"] is theirs["layer3"] is Layer3.NONE else None


def fifth_label(mine: Values, theirs: Values, flags: UnifiedFlag, row: Row) -> set[str] | None:
    """Beyond the fourth label nothing is parsed; tshark goes on."""
    labels = theirs["labels"]
    if not (isinstance(labels, list) and len(labels) > LABELS_MAX and _begins(mine, theirs, "labels")):
        return None
    theirs["labels"] = labels[:LABELS_MAX]
    return OF_LABELS if UnifiedFlag.UNPARSED in flags and mine["layer3"] is Layer3.NONE else None


def cut_options(mine: Values, theirs: Values, flags: UnifiedFlag, row: Row) -> set[str] | None:
    """Of IPv4 the first 20 octets are taken; tshark takes none where its options are cut."""
    is_cut = UnifiedFlag.TRUNCATED in flags and "ports" not in mine
    is_cut &= mine["layer3"] is Layer3.IPV4 and theirs["layer3"] is Layer3.NONE
    return OF_LABELS if is_cut else None


def invalid_type(mine: Values, theirs: Values, flags: UnifiedFlag, row: Row) -> set[str] | None:
    """A type between the greatest length, 1500, and the least type, 1536, is none to tshark."""
    type_ = mine["type"]
    is_invalid = isinstance(type_, int) and 1500 < type_ < 1536 and theirs["type"] is None
    return set(mine) - {"type", "tag_types"} if is_invalid and mine["layer3"] is Layer3.NONE else None


def second_service_tag(mine: Values, theirs: Values, flags: UnifiedFlag, row: Row) -> set[str] | None:
    """Two service tags in a row are a tag of another kind to tshark (802.1ah)."""
    kinds, tags, others = mine["tag_kinds"], mine["tags"], theirs["tags"]
    assert isinstance(kinds, list) and isinstance(tags, list) and isinstance(others, list)
    is_pair = [2, 2] in [kinds[at : at + 2] for at in range(len(kinds))]
    return OF_LINK if is_pair and tags[: len(others)] == others else None


def _chains(mine: Values, theirs: Values) -> tuple[list[int], list[int]] | None:
    """Return the extension headers of either, where one goes on from the other."""
    ours, others = mine.get("extensions"), theirs.get("extensions")
    if not (isinstance(ours, list) and isinstance(others, list)):
        return None
    least = min(len(ours), len(others))
    return (ours, others) if ours[:least] == others[:least] else None


def late_hop_by_hop(mine: Values, theirs: Values, flags: UnifiedFlag, row: Row) -> set[str] | None:
    """A hop-by-hop header is walked through wherever it is; by tshark only as the first (RFC 8200, 4.1)."""
    chains = _chains(mine, theirs)
    return OF_IPV6 if chains and unified.HOP_BY_HOP in chains[0][1:] else None


def cut_extension(mine: Values, theirs: Values, flags: UnifiedFlag, row: Row) -> set[str] | None:
    """An extension header is taken at its first word; by tshark at its first octet, or once it is whole."""
    chains = _chains(mine, theirs)
    is_cut = chains and abs(len(chains[0]) - len(chains[1])) == 1 and UnifiedFlag.TRUNCATED in flags
    return OF_IPV6 if is_cut and "ports" not in mine else None


def refused_extension(mine: Values, theirs: Values, flags: UnifiedFlag, row: Row) -> set[str] | None:
    """tshark ends at an extension header whose content it refuses (options that don't fit, AH too short)."""
    chains, end = _chains(mine, theirs), row["frame.protocols"][0].split(":")[-1]
    is_end = chains and "ports" not in theirs and (end == "ah" or end.startswith("ipv6."))
    return OF_IPV6 if is_end and chains and len(chains[0]) >= len(chains[1]) else None


def cut_transport(mine: Values, theirs: Values, flags: UnifiedFlag, row: Row) -> set[str] | None:
    """Ports are taken once they are there, type and code with the checksum; tshark wants all of SCTP's and ICMP's header."""
    if UnifiedFlag.TRUNCATED not in flags or mine.get("protocol") not in unified.HEADS:
        return None
    for one in (mine, theirs):
        one.pop("ports", None)
        one["flags"] = UnifiedFlag(one["flags"]) & ~UnifiedFlag.TRANSPORT  # type: ignore[arg-type]
    return set(mine) | set(theirs)


def bad_udp_length(mine: Values, theirs: Values, flags: UnifiedFlag, row: Row) -> set[str] | None:
    """A probe is found within IP's length; tshark shows no payload where UDP's own length doesn't fit."""
    if UnifiedFlag.PROBE not in flags or row["udp.payload"]:
        return None
    mine["flags"] = UnifiedFlag(mine["flags"]) & ~UnifiedFlag.PROBE  # type: ignore[arg-type]
    return set(mine) | set(theirs)


Cause = Callable[[Values, Values, UnifiedFlag, Row], set[str] | None]
CAUSES: tuple[Cause, ...] = (
    fifth_tag, cut_tag, second_service_tag, fifth_label, cut_options, late_hop_by_hop, cut_extension, refused_extension,
    cut_transport, bad_udp_length, invalid_type,
)  # fmt: skip


# tshark -------------------------------------------------------------------------------------------

#: Dissectors that stay on, apart from those of IPv6's extension headers.
ON = "frame eth ethertype llc vlan ieee8021ad mpls arp ip ipv6 ah tcp udp sctp icmp icmpv6"
OFF = ("ip.defragment", "ipv6.defragment", "tcp.analyze_sequence_numbers", "tcp.desegment_tcp_streams")

TABLE = """
frame.protocols eth.dst eth.src eth.type eth.len
vlan.id vlan.priority vlan.dei vlan.etype vlan.len
ieee8021ad.id ieee8021ad.priority ieee8021ad.dei ieee8021ah.etype
arp.hw.type arp.proto.type arp.hw.size arp.proto.size
mpls.label mpls.exp mpls.bottom mpls.ttl arp.opcode arp.src.proto_ipv4 arp.dst.proto_ipv4
ip.src ip.dst ip.len ip.id ip.flags.df ip.flags.mf ip.frag_offset ip.ttl ip.proto ip.checksum ip.dsfield.dscp ip.dsfield.ecn
ipv6.src ipv6.dst ipv6.plen ipv6.nxt ipv6.hlim ipv6.flow ipv6.tclass.dscp ipv6.tclass.ecn
ipv6.hopopts.nxt ipv6.routing.nxt ipv6.dstopts.nxt ah.next_header
ipv6.fraghdr.nxt ipv6.fraghdr.offset ipv6.fraghdr.more
ip.hdr_len udp.payload
tcp.srcport tcp.dstport tcp.seq_raw tcp.flags tcp.window_size_value udp.srcport udp.dstport sctp.srcport sctp.dstport
icmp.type icmp.code icmpv6.type icmpv6.code
"""
FIELDS = TABLE.split()


#: Wireshark 4.0 prints 1 and 0, 4.4 the words.
TRUTHS = {"True": "1", "False": "0"}
PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 1)
EXTENSION_FIELDS = {
    unified.HOP_BY_HOP: "ipv6.hopopts.nxt",
    unified.ROUTING: "ipv6.routing.nxt",
    unified.FRAGMENT: "ipv6.fraghdr.nxt",
    unified.AUTHENTICATION: "ah.next_header",
    unified.DESTINATION_OPTIONS: "ipv6.dstopts.nxt",
}
PORT_FIELDS = {
    unified.TCP: ("tcp.srcport", "tcp.dstport"),
    unified.UDP: ("udp.srcport", "udp.dstport"),
    unified.SCTP: ("sctp.srcport", "sctp.dstport"),
    unified.ICMP: ("icmp.type", "icmp.code"),
    unified.ICMPV6: ("icmpv6.type", "icmpv6.code"),
}


def write_pcap(path: Path, frames: Iterable[bytes]) -> None:
    """Write frames as they are: none is longer than its octets."""
    with path.open("wb") as file:
        file.write(PCAP_HEADER)
        for number, frame in enumerate(frames):
            file.write(struct.pack("<IIII", number, 0, len(frame), len(frame)) + frame)


@cache
def disabled() -> tuple[str, ...]:
    """Return the names of the protocols of tshark that aren't looked into."""
    with TemporaryDirectory() as folder:
        listed = run(["tshark", "-G", "protocols"], {**os.environ, "WIRESHARK_CONFIG_DIR": folder}).splitlines()
    names = [line.split("\t")[2] for line in listed]
    return tuple(name for name in names if name not in ON.split() and not name.startswith("ipv6."))


def read(frames: Iterable[bytes]) -> Sequence[Row]:
    """Return, for each frame, the values of `FIELDS` in the order in which tshark met them."""
    return rows_of(tuple(frames))


@lru_cache(maxsize=2)  # A frame may be compared with several headers.
def rows_of(frames: tuple[bytes, ...]) -> tuple[Row, ...]:
    """Have tshark read frames."""
    with TemporaryDirectory() as folder:
        write_pcap(Path(folder) / "frames.pcap", frames)
        environment = {**os.environ, "WIRESHARK_CONFIG_DIR": folder}
        off = disabled()
        (Path(folder) / "disabled_protos").write_text("\n".join(off) + "\n", encoding="utf-8")
        command = ["tshark", "-n", "-r", f"{folder}/frames.pcap", "-T", "fields", "-E", "occurrence=a"]
        command += [word for preference in OFF for word in ("-o", f"{preference}:FALSE")]
        command += [word for name in FIELDS for word in ("-e", name)]
        lines = [line.split("\t") for line in run(command, environment).splitlines()]
        return tuple(
            {name: occurrences(value) for name, value in zip(FIELDS, values, strict=True)} for values in lines
        )


def occurrences(value: str) -> list[str]:
    """Return the occurrences of a field, those that are true or false as 1 and 0."""
    return [TRUTHS.get(one, one) for one in value.split(",")] if value else []


def run(command: Sequence[str], environment: dict[str, str]) -> str:
    """Return what tshark prints."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"tshark failed: {done.stderr[-1000:]}")
    return done.stdout


def first(row: Row, name: str) -> int | None:
    """Return the first occurrence of a number."""
    return int(row[name][0], 0) if row[name] else None


class Reading:
    """One frame as tshark sees it, in the words of `values`."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.chain = row["frame.protocols"][0].split(":") if row["frame.protocols"] else []
        self.values: Values = {}
        self.link()

    def pop(self, *names: str) -> str:
        """Step over one of these dissectors, if it is next; return its name."""
        return self.chain.pop(0) if self.chain and self.chain[0] in names else ""

    def link(self) -> None:
        """MACs, tags, labels, then what is behind."""
        row, values = self.row, self.values
        self.pop("eth")
        values["macs"] = [row[name][0] if row[name] else None for name in ("eth.dst", "eth.src")]
        type_ = [*row["eth.type"], *row["eth.len"]][:1]
        types: list[int] = []  # Before each tag, and behind the last.
        self.pop("ethertype")
        tags, seen = [], {"vlan": 0, "ieee8021ad": 0}
        while name := self.pop("vlan", "ieee8021ad"):
            place = seen[name]
            seen[name] += 1
            parts = [row[f"{name}.{part}"][place : place + 1] for part in ("priority", "dei", "id")]
            if not all(parts):
                break
            priority, dei, number = (int(part[0], 0) for part in parts)
            types.append(int(type_[0], 0) if type_ else -1)
            tags.append(priority << 13 | dei << 12 | number)
            of_tag = row["vlan.etype"] + row["vlan.len"] if name == "vlan" else row["ieee8021ah.etype"]
            type_ = of_tag[place : place + 1]
            self.pop("ethertype")
        values["tags"], values["type"] = tags, int(type_[0], 0) if type_ else None
        values["tag_kinds"] = [TAG_KINDS.get(one) for one in types]
        values["tag_types"] = [*types[1:], values["type"]] if tags else []
        labels = []
        if self.pop("mpls"):
            columns = [row[f"mpls.{part}"] for part in ("label", "exp", "bottom", "ttl")]
            for label, exp, bottom, ttl in zip(*columns, strict=False):
                labels.append(int(label) << 12 | int(exp) << 9 | int(bottom) << 8 | int(ttl))
                if int(bottom):
                    break
        values["labels"] = labels
        kind = self.layer3()
        values["layer3"] = kind
        if kind is not Layer3.NONE:
            {Layer3.ARP: self.arp, Layer3.IPV4: self.ipv4, Layer3.IPV6: self.ipv6}[kind]()

    def layer3(self) -> Layer3:
        """Return which layer 3 tshark read in full, of those that a unified header has."""
        name, ethernet_ipv4 = self.unnamed() or self.pop("arp", "ip", "ipv6"), [1, 0x0800, 6, 4]
        if name == "arp":
            sort = [first(self.row, f"arp.{part}") for part in ("hw.type", "proto.type", "hw.size", "proto.size")]
            is_ours = sort == ethernet_ipv4 and self.values["type"] == unified.ARP and self.row["arp.dst.proto_ipv4"]
            return Layer3.ARP if is_ours else Layer3.NONE
        # It shows no address where a header is malformed or cut.
        if not name or not self.row[f"{name}.dst"]:
            return Layer3.NONE
        return Layer3.IPV4 if name == "ip" else Layer3.IPV6

    def unnamed(self) -> str:
        """Return what Wireshark 4.4 dissects behind labels, but leaves out of the protocols that it lists."""
        shown = {name: len(self.row[f"{name}.dst"]) for name in ("ip", "ipv6")}
        return next((name for name in shown if self.values["labels"] and shown[name] > self.chain.count(name)), "")

    def take(self, **names: str) -> None:
        """Take the first occurrence of each field under another name."""
        for name, shown in names.items():
            self.values[name] = first(self.row, shown)

    def addresses(self, source: str, destination: str) -> None:
        """Take the first address of either end."""
        self.values["source"], self.values["destination"] = (
            self.row[name][0] if self.row[name] else None for name in (source, destination)
        )

    def in_octets(self, name: str) -> None:
        """Turn a field of units of 8 octets into octets."""
        value = self.values[name]
        self.values[name] = 8 * value if isinstance(value, int) else None

    def arp(self) -> None:
        """ARP of IPv4."""
        self.addresses("arp.src.proto_ipv4", "arp.dst.proto_ipv4")
        self.take(arp_operation="arp.opcode")

    def ipv4(self) -> None:
        """IPv4."""
        self.addresses("ip.src", "ip.dst")
        self.take(ip_length="ip.len", ip_id="ip.id", ttl="ip.ttl", ip_checksum="ip.checksum", protocol="ip.proto")
        self.take(dscp="ip.dsfield.dscp", ecn="ip.dsfield.ecn", fragment_offset="ip.frag_offset")
        self.take(more_fragments="ip.flags.mf", dont_fragment="ip.flags.df")
        self.in_octets("fragment_offset")
        self.transport()

    def ipv6(self) -> None:
        """IPv6, walking through its extension headers by their next-header fields."""
        self.addresses("ipv6.src", "ipv6.dst")
        self.take(ip_length="ipv6.plen", ttl="ipv6.hlim", flow_label="ipv6.flow", protocol="ipv6.nxt")
        self.take(dscp="ipv6.tclass.dscp", ecn="ipv6.tclass.ecn")
        length = self.values["ip_length"]
        self.values["ip_length"] = length + 40 if isinstance(length, int) else None
        extensions, seen, protocol = list[int](), dict.fromkeys(FIELDS, 0), first(self.row, "ipv6.nxt")
        while protocol in EXTENSION_FIELDS and len(extensions) < 2 and not self.values.get("fragment_offset"):
            name = EXTENSION_FIELDS[protocol]
            following = self.row[name][seen[name] : seen[name] + 1]
            if not following:
                break
            seen[name] += 1
            extensions.append(protocol)
            if protocol == unified.FRAGMENT:
                self.take(fragment_offset="ipv6.fraghdr.offset", more_fragments="ipv6.fraghdr.more")
                self.in_octets("fragment_offset")
            protocol = int(following[0])
        self.values["extensions"], self.values["protocol"] = extensions, protocol
        self.transport()

    def transport(self) -> None:
        """Return the layer after IP."""
        protocol = self.values["protocol"]
        if not isinstance(protocol, int) or protocol not in PORT_FIELDS or self.values.get("fragment_offset"):
            return
        ports = [first(self.row, name) for name in PORT_FIELDS[protocol]]
        if None not in ports:
            self.values["ports"] = ports
        if protocol == unified.TCP and self.row["tcp.window_size_value"]:
            self.take(tcp_sequence="tcp.seq_raw", tcp_flags="tcp.flags", tcp_window="tcp.window_size_value")


# What we read, in the same words -------------------------------------------------------------------

def values(octets: bytes) -> list[Values]:
    """Return what unified headers say, in the words of `Reading`."""
    headers = unified_headers(octets)
    columns = {name: column.tolist() for name, column in fields.ip_fields(headers).items()}
    columns["tcp_flags"], columns["tcp_window"] = fields.tcp_flags(headers).tolist(), fields.tcp_window(headers).tolist()
    return [values_of(header, {name: column[n] for name, column in columns.items()}) for n, header in enumerate(headers)]


def values_of(header: np.void, of_ip: dict[str, int]) -> Values:
    """Return what one header says."""
    flags, kind = UnifiedFlag(int(header["flags"])), Layer3(int(header["layers"]) & 3)
    has_link = any(header["destination_mac"].tobytes() + header["source_mac"].tobytes()) or header["ethertype"]
    found: Values = {
        "macs": [header[f"{end}_mac"].tobytes().hex(":") if has_link else None for end in ("destination", "source")],
        "tags": header["tags"]["tci"][: header["layers"] >> 2 & 7].tolist(),
        "type": int(header["ethertype"]) if has_link else None,
        "tag_kinds": [int(header["tag_kinds"]) >> 2 * place & 3 for place in range(header["layers"] >> 2 & 7)],
        "tag_types": header["tags"]["type"][: header["layers"] >> 2 & 7].tolist(),
        "labels": header["labels"][: header["layers"] >> 5].tolist(),
        "layer3": kind,
    }
    if kind is Layer3.NONE:
        return found
    octets = 16 if kind is Layer3.IPV6 else 4
    for end in ("source", "destination"):
        found[end] = str(ipaddress.ip_address(header[end].tobytes()[:octets]))
    if kind is Layer3.ARP:
        return found | {"arp_operation": of_ip["arp_operation"]}
    extensions = [int(kind) & ~EXTENSION for kind in header["extensions"] if kind]
    names = ["ip_length", "ttl", "dscp", "ecn"]
    names += ["ip_id", "ip_checksum", "dont_fragment"] if kind is Layer3.IPV4 else ["flow_label"]
    if kind is Layer3.IPV6:
        found["extensions"] = extensions
    if kind is Layer3.IPV4 or unified.FRAGMENT in extensions:
        names += ["fragment_offset", "more_fragments"]
    found |= {name: of_ip[name] for name in names} | {"protocol": int(header["protocol"])}
    if flags & UnifiedFlag.TRANSPORT:
        found["ports"] = [int(header[f"{end}_port"]) for end in ("source", "destination")]
        if found["protocol"] in (unified.ICMP, unified.ICMPV6):
            found["ports"] = list(divmod(int(header["source_port"]), 256))
    if flags & UnifiedFlag.TCP:
        found |= {"tcp_sequence": int(header["sequence"]), **{n: of_ip[n] for n in ("tcp_flags", "tcp_window")}}
    return found


# Side by side --------------------------------------------------------------------------------------

ISL = (bytes.fromhex("01000c0000"), bytes.fromhex("0c000c0000"))
"""Destinations of Cisco's Inter-Switch Link, which tshark unwraps: no Ethernet frames of 802.3."""


@dataclass
class Comparison:
    """Counts how unified headers and tshark agree."""

    compared: int = 0
    fields: int = 0
    skipped: int = 0
    found: list[str] = field(default_factory=list)
    causes: Counter[str] = field(default_factory=Counter)
    """Frames that were compared in part, by what they have (`CAUSES`)."""

    def add(self, frame: bytes, mine: Values, row: Row, flags: UnifiedFlag) -> None:
        """Compare one frame."""
        theirs = Reading(row).values
        if frame.startswith(ISL):
            self.skipped += 1
            return
        mine, theirs = dict(mine), dict(theirs)
        if mine["layer3"] is Layer3.IPV4 and mine["ip_length"] == 0:
            # It puts the frame's length in the place of a length of 0.
            mine["ip_length"] = len(frame) - 14 - 4 * len(frame_words(mine))
            self.causes["ipv4_length_of_0"] += 1
            flags &= ~UnifiedFlag.LENGTH_ERROR
        mine["flags"], theirs["flags"] = flags & WITNESSED, shown_flags(frame, theirs, row)
        if any(mine.get(name) != theirs.get(name) for name in mine.keys() | theirs.keys()):
            for cause in CAUSES:
                if (kept := cause(mine, theirs, flags, row)) is not None:
                    self.causes[cause.__name__] += 1
                    mine, theirs = ({name: one[name] for name in kept if name in one} for one in (mine, theirs))
                    break
        self.compared += 1
        self.fields += len(mine.keys() | theirs.keys())
        differing = [name for name in sorted(mine.keys() | theirs.keys()) if mine.get(name) != theirs.get(name)]
        if differing:
            what = {name: (mine.get(name), theirs.get(name)) for name in differing}
            self.found.append(f"{what} {flags!r} {frame[:100].hex()}")


def frame_words(found: Values) -> list[int]:
    """Return the words of tags and labels."""
    tags, labels = found["tags"], found["labels"]
    assert isinstance(tags, list) and isinstance(labels, list)
    return tags + labels


def compare(frames: Sequence[bytes], octets: bytes) -> Comparison:
    """Hold the unified headers of frames against tshark's reading of them."""
    result = Comparison()
    flags = unified_headers(octets)["flags"].tolist()
    for frame, mine, row, flag in zip(frames, values(octets), read(frames), flags, strict=True):
        result.add(frame, mine, row, UnifiedFlag(flag))
    return result
