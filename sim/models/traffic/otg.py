# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Truth for a flow of Open Traffic Generator: its headers octet by octet, its sizes, and when each frame is due.

All of it is worked out from the flow as its client wrote it (JSON), by arithmetic of its own. Sizes that are drawn are not
known but by their least and greatest.

Source: Open Traffic Generator models 1.61, flow/; RFC 791, 792, 826, 1112, 1661, 2784, 4443, 7348, 8200, 768, 9293; 3GPP TS 29.060
and 29.274; IEEE 802.3-2022, 31B; IEEE 802.1Q-2022, 36.
"""

import ipaddress
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

Json = dict[str, Any]
#: Fields of a header in their order: name, bits, value where the flow says nothing.
LAYOUT: dict[str, list[tuple[str, int, int]]] = {
    "ethernet": [("dst", 48, 0), ("src", 48, 0), ("ether_type", 16, -1)],
    "vlan": [("priority", 3, 0), ("cfi", 1, 0), ("id", 12, 0), ("tpid", 16, -1)],
    "mpls": [("label", 20, 16), ("traffic_class", 3, 0), ("bottom_of_stack", 1, -1), ("time_to_live", 8, 64)],
    "ipv4": [
        *[
            ("version", 4, 4),
            ("header_length", 4, 5),
            ("tos", 8, 0),
            ("total_length", 16, -1),
            ("identification", 16, 0),
        ],
        *[("reserved", 1, 0), ("dont_fragment", 1, 0), ("more_fragments", 1, 0), ("fragment_offset", 13, 0)],
        *[("time_to_live", 8, 64), ("protocol", 8, -1), ("header_checksum", 16, 0), ("src", 32, 0), ("dst", 32, 0)],
    ],
    "ipv6": [
        *[("version", 4, 6), ("traffic_class", 8, 0), ("flow_label", 20, 0), ("payload_length", 16, -1)],
        *[("next_header", 8, -1), ("hop_limit", 8, 64), ("src", 128, 0), ("dst", 128, 0)],
    ],
    "udp": [("src_port", 16, 0), ("dst_port", 16, 0), ("length", 16, -1), ("checksum", 16, 0)],
    "tcp": [
        *[("src_port", 16, 0), ("dst_port", 16, 0), ("seq_num", 32, 0), ("ack_num", 32, 0), ("data_offset", 4, 5)],
        *[("zero", 3, 0), *((name, 1, 0) for name in ("ecn_ns", "ecn_cwr", "ecn_echo", "ctl_urg", "ctl_ack"))],
        *[(name, 1, 0) for name in ("ctl_psh", "ctl_rst", "ctl_syn", "ctl_fin")],
        *[("window", 16, 0), ("checksum", 16, 0), ("urgent", 16, 0)],
    ],
    "ethernetpause": [
        ("dst", 48, 0x0180C2000001),
        ("src", 48, 0),
        ("ether_type", 16, 0x8808),
        ("control_op_code", 16, 1),
        ("time", 16, 0),
    ],
    "pfcpause": [
        *[("dst", 48, 0x0180C2000001), ("src", 48, 0), ("ether_type", 16, 0x8808), ("control_op_code", 16, 257)],
        *[("class_enable_vector", 16, 0), *((f"pause_class_{number}", 16, 0) for number in range(8))],
    ],
    "arp": [
        *[("hardware_type", 16, 1), ("protocol_type", 16, 2048), ("hardware_length", 8, 6), ("protocol_length", 8, 4)],
        *[("operation", 16, 1), ("sender_hardware_addr", 48, 0), ("sender_protocol_addr", 32, 0)],
        *[("target_hardware_addr", 48, 0), ("target_protocol_addr", 32, 0)],
    ],
    "icmp": [("type", 8, 8), ("code", 8, 0), ("checksum", 16, 0), ("identifier", 16, 0), ("sequence_number", 16, 0)],
    "icmpv6": [
        ("type", 8, 128),
        ("code", 8, 0),
        ("checksum", 16, 0),
        ("identifier", 16, 0),
        ("sequence_number", 16, 0),
    ],
    "igmpv1": [("version", 4, 1), ("type", 4, 1), ("unused", 8, 0), ("checksum", 16, 0), ("group_address", 32, 0)],
    "gre": [("checksum_present", 1, 0), ("reserved0", 12, 0), ("version", 3, 0), ("protocol", 16, -1)],
    "ppp": [("address", 8, 255), ("control", 8, 3), ("protocol_type", 16, -1)],
    "vxlan": [("flags", 8, 8), ("reserved0", 24, 0), ("vni", 24, 0), ("reserved1", 8, 0)],
    "gtpv1": [
        *[("version", 3, 1), ("protocol_type", 1, 1), ("reserved", 1, 0), ("e_flag", 1, 0), ("s_flag", 1, 0)],
        *[("pn_flag", 1, 0), ("message_type", 8, 0), ("message_length", 16, -1), ("teid", 32, 0)],
    ],
    "gtpv2": [
        *[("version", 3, 2), ("piggybacking_flag", 1, 0), ("teid_flag", 1, 0), ("spare1", 3, 0)],
        *[("message_type", 8, 0), ("message_length", 16, -1), ("sequence_number", 24, 0), ("spare2", 8, 0)],
    ],
}
TYPES = {
    "vlan": 0x8100,
    "mpls": 0x8847,
    "ipv4": 0x0800,
    "ipv6": 0x86DD,
    "arp": 0x0806,
    "ppp": 0x880B,
    "ethernet": 0x6558,
}
PROTOCOLS = {"udp": 17, "tcp": 6, "icmp": 1, "icmpv6": 58, "igmpv1": 2, "gre": 47, "ipv4": 4, "ipv6": 41}
#: Octet of the checksum in its header.
CHECKSUMS = {"udp": 6, "tcp": 16, "icmp": 2, "icmpv6": 2, "igmpv1": 2, "gre": 4}
NOTHING = {"ethernet": 0xFFFF, "vlan": 0xFFFF, "ipv4": 61, "ipv6": 59, "gre": 0x0800, "ppp": 0x21}
PRIORITY = {
    "raw": [("", 8)],
    "dscp": [("phb", 6), ("ecn", 2)],
    "tos": [("precedence", 3), ("delay", 1), ("throughput", 1), ("reliability", 1), ("monetary", 1), ("unused", 1)],
}
IMIX = (64, 570, 1518)


def number(value: Any) -> int:
    """Return an address or a number as a number."""
    if isinstance(value, int):
        return value
    parts = value.split(":")
    if len(parts) == 6 and all(len(part) == 2 for part in parts):
        return int("".join(parts), 16)
    return int(ipaddress.ip_address(value))


def taken(pattern: Json | None, default: int, frame: int, bits: int = 128) -> int:
    """Return what a field of so many bits has in a frame, a count modulo what they hold; -1: what follows from the rest."""
    if not pattern:
        return default
    kind = pattern.get("choice", "value")
    if kind == "value":
        return number(pattern.get("value", default))
    if kind == "custom":
        return int(pattern["custom"])
    if kind == "values":
        return number(pattern["values"][frame % len(pattern["values"])])
    if kind in ("increment", "decrement"):
        counter = pattern[kind]
        steps = frame % int(counter.get("count", 1)) * number(counter.get("step", 1))
        start = number(counter["start"])
        return (start + steps if kind == "increment" else start - steps) % (1 << bits)
    return default


def headers(flow: Json, frame: int, size: int) -> bytes:
    """Return the headers of a frame of ``size`` octets (with FCS); checksums of UDP and TCP are 0."""
    packet = flow.get("packet", [{"choice": "ethernet", "ethernet": {}}])
    kinds = [one["choice"] for one in packet]
    octets: list[bytes] = []
    before = 0
    for place, one in enumerate(packet):
        kind = kinds[place]
        if kind == "custom":
            octets.append(bytes.fromhex(one["custom"]["bytes"]))
            continue
        after = kinds[place + 1] if place + 1 < len(kinds) else ""
        body, word, width = body_of(one), 0, 0
        for name, bits, usual in layout_of(one):
            value = taken(body.get(name), usual, frame, bits)
            if name == "tos" and kind == "ipv4":
                value = _priority(body.get("priority"), frame)
            if value == 0xFFFF and name in ("ether_type", "tpid"):
                value = -1
            if value == -1:
                value = _following(kind, name, kinds, place, after, size - 4 - before)
            word, width = word << bits | value, width + bits
        made = word.to_bytes(width // 8)
        if kind == "ipv4":
            made = made[:10] + (0xFFFF - ones_sum(made)).to_bytes(2) + made[12:]
        octets.append(made)
        before += len(made)
    return b"".join(octets)


def body_of(header: Json) -> Json:
    """Return the fields of a header."""
    found: Json = header.get(header["choice"], {})
    return found.get("echo", {}) if header["choice"] in ("icmp", "icmpv6") else found


def layout_of(header: Json) -> list[tuple[str, int, int]]:
    """Return the fields that a header has, in their order: some are there with a flag alone."""
    kind, body = header["choice"], body_of(header)
    flags = {
        name for name in ("checksum_present", "e_flag", "s_flag", "pn_flag", "teid_flag") if taken(body.get(name), 0, 0)
    }
    rows = list(LAYOUT[kind])
    if kind == "gre" and flags:
        rows += [("checksum", 16, 0), ("reserved1", 16, 0)]
    if kind == "gtpv1" and flags:
        rows += [("squence_number", 16, 0), ("n_pdu_number", 8, 0), ("next_extension_header_type", 8, 0)]
    if kind == "gtpv2" and flags:
        rows.insert(6, ("teid", 32, 0))
    return rows


def _priority(priority: Json | None, frame: int) -> int:
    kind = (priority or {}).get("choice", "dscp")
    given, value = (priority or {}).get(kind, {}), 0
    for name, bits in PRIORITY[kind]:
        value = value << bits | taken(given.get(name) if name else given, 0, frame, bits)
    return value


def _following(kind: str, name: str, kinds: Sequence[str], place: int, after: str, left: int) -> int:
    """Return what follows from the rest: types of what is next, lengths, the bottom of the stack."""
    if name == "bottom_of_stack":
        return int(after != "mpls")
    if name in ("total_length", "length"):
        return left
    if name in ("payload_length", "message_length"):
        return left - {"ipv6": 40, "gtpv1": 8, "gtpv2": 4}[kind]
    if kind == "ethernet" and after == "vlan" and kinds.count("vlan") > 1:
        return 0x88A8  # Of two tags the outer one is a service tag (IEEE 802.1Q).
    numbers = {"ipv4": PROTOCOLS, "ipv6": PROTOCOLS, "ppp": {"ipv4": 0x21, "ipv6": 0x57}}.get(kind, TYPES)
    return numbers.get(after, NOTHING.get(kind, 0))


def ones_sum(octets: bytes) -> int:
    """Return the one's complement sum of octets (RFC 1071)."""
    total = sum(int.from_bytes(octets[at : at + 2].ljust(2, b"\0")) for at in range(0, len(octets), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def sizes(flow: Json) -> tuple[int, ...] | tuple[int, int, None]:
    """Return the sizes of frames (with FCS) until they come again; (least, greatest, None) where they are drawn."""
    size = flow.get("size", {"choice": "fixed", "fixed": 64})
    kind = size.get("choice", "fixed")
    if kind == "fixed":
        return (size.get("fixed", 64),)
    if kind == "increment":
        steps = size["increment"]
        return tuple(range(steps["start"], steps["end"] + 1, steps.get("step", 1)))
    if kind == "random":
        return size["random"]["min"], size["random"]["max"], None
    pairs = size["weight_pairs"]
    found = IMIX if pairs.get("choice", "predefined") == "predefined" else tuple(one["size"] for one in pairs["custom"])
    return (found[0],) if len(set(found)) == 1 else (min(found), max(found), None)


def mean_size(flow: Json) -> Fraction:
    """Return the mean size of frames (with FCS)."""
    size = flow.get("size", {})
    if size.get("choice") == "weight_pairs":
        pairs = size["weight_pairs"]
        rows = [(64, 7), (570, 4), (1518, 1)]
        if pairs.get("choice", "predefined") == "custom":
            rows = [(one["size"], one.get("weight", 1)) for one in pairs["custom"]]
        weights = [Fraction(str(weight)) for _, weight in rows]
        return sum((octets * weight for (octets, _), weight in zip(rows, weights, strict=True)), Fraction(0)) / sum(
            weights
        )
    found = sizes(flow)
    if found[-1] is None:
        return Fraction(int(found[0] or 0) + int(found[1] or 0), 2)
    return Fraction(sum(int(one or 0) for one in found), len(found))


def interval_ns(flow: Json, scale: int = 1) -> Fraction:
    """Return the time from a frame to the next by the rate (ns of the probe)."""
    rate = flow.get("rate", {"choice": "pps", "pps": 1000})
    kind = rate.get("choice", "pps")
    value = Fraction(str(rate.get(kind, 1000)))
    bits = 8 * (mean_size(flow) + 20)
    if kind == "pps":
        return 10**9 / value / scale
    if kind == "percentage":
        return bits / (value / 100) / scale
    unit = {"bps": 1, "kbps": 10**3, "mbps": 10**6, "gbps": 10**9}[kind]
    return bits * 10**9 / (value * unit) / scale


def dues_ns(flow: Json, scale: int = 1) -> Iterator[Fraction]:
    """Yield when frames are due, from the first one on (ns)."""
    step, frame = interval_ns(flow, scale), 0
    burst = flow.get("duration", {}).get("burst")
    while True:
        if burst and flow["duration"]["choice"] == "burst":
            packets = burst.get("packets", 1)
            gap = burst.get("inter_burst_gap", {"choice": "bytes", "bytes": 12})
            unit = {"bytes": 8, "nanoseconds": 1, "microseconds": 1000}[gap["choice"]]
            gap_ns = max(Fraction(str(gap[gap["choice"]])) * unit / scale, Fraction(96))
            inner = Fraction(8 * math.floor(step / 8 + Fraction(1, 2)))
            head = (packets - 1) * inner + 8 * (mean_size(flow) + 8) + gap_ns
            yield frame // packets * head + frame % packets * inner
        else:
            yield frame * step
        frame += 1


def count(flow: Json, scale: int = 1) -> int | None:
    """Return how many frames a flow has; None: without an end."""
    duration = flow.get("duration", {"choice": "continuous"})
    kind = duration["choice"]
    if kind == "fixed_packets":
        return int(duration[kind].get("packets", 1))
    if kind == "fixed_seconds":
        return math.ceil(Fraction(str(duration[kind].get("seconds", 1))) * 10**9 / scale / interval_ns(flow, scale))
    if kind == "burst" and duration[kind].get("bursts", 0):
        return int(duration[kind]["bursts"] * duration[kind].get("packets", 1))
    return None


def wrong_frames(flow: Json, frames: Sequence[tuple[int, bytes]], scale: int = 1, spare_ns: int = 8) -> list[str]:
    """Compare frames on the wire (ns of the SFD, octets without FCS) with a flow that has its line alone; return what differs.

    ``spare_ns``: of the resolution of the times.
    """
    wrong, known = [], sizes(flow)
    wanted = count(flow, scale)
    if wanted is not None and len(frames) != wanted:
        wrong.append(f"{len(frames)} frames, not {wanted}")
    first_ns = frames[0][0] if frames else 0
    for place, ((stamp, octets), due) in enumerate(zip(frames, dues_ns(flow, scale), strict=False)):
        size = len(octets) + 4
        least, greatest = (known[0], known[1]) if known[-1] is None else (known[place % len(known)],) * 2
        if not int(least or 0) <= size <= int(greatest or 0):
            wrong.append(f"frame {place} has {size} octets with FCS, not {least} to {greatest}")
        right = headers(flow, place, size)
        found = _without_checksum(flow, octets[: len(right)])
        if found != right:
            wrong.append(f"frame {place} begins {found.hex()}, not {right.hex()}")
        if not is_summed(flow, octets):
            wrong.append(f"frame {place} has a wrong checksum")
        if known[-1] is not None and abs(stamp - first_ns - due) > spare_ns:
            wrong.append(f"frame {place} starts {stamp - first_ns} ns after the first, not {float(due):g}")
    return wrong[:10]


def checksums(flow: Json) -> list[tuple[int, str, int]]:
    """Return where headers with a checksum begin, their kind, and where the IP header before them does; not those given."""
    found, at, ip = [], 0, 0
    for one in flow.get("packet", []):
        kind = one["choice"]
        if kind == "custom":
            break
        ip = at if kind in ("ipv4", "ipv6") else ip
        rows = layout_of(one)
        if "checksum" in [name for name, _, _ in rows] and body_of(one).get("checksum", {}).get("choice") != "custom":
            found.append((at, kind, ip))
        at += sum(bits for _, bits, _ in rows) // 8
    return found


def _without_checksum(flow: Json, octets: bytes) -> bytes:
    for at, kind, _ in checksums(flow):
        place = at + CHECKSUMS[kind]
        octets = octets[:place] + bytes(2) + octets[place + 2 :]
    return octets


def is_summed(flow: Json, octets: bytes) -> bool:
    """Return whether all checksums but those of IPv4 are right; UDP over IPv4 may have none."""
    for at, kind, ip in checksums(flow):
        six, body, before = octets[ip] >> 4 == 6, octets[at:], b""
        if kind == "udp" and not six and body[6:8] == bytes(2):
            continue
        if kind in ("udp", "tcp", "icmpv6"):
            addresses = octets[ip + 8 : ip + 40] if six else octets[ip + 12 : ip + 20]
            before = addresses + len(body).to_bytes(4) + PROTOCOLS[kind].to_bytes(4)
        if ones_sum(before + body) != 0xFFFF or (kind == "udp" and body[6:8] == bytes(2)):
            return False
    return True
