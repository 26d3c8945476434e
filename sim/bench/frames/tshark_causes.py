# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Where unified headers and tshark can't say the same of a frame: each cause by name, and what is compared in spite of it.

A cause holds only where what is before it agrees. A frame with none is compared as a whole.
"""

from collections.abc import Callable

from liteprobe.cores.formats import (
    GIANT_LENGTH,
    LABELS_MAX,
    MIN_LENGTH,
    SIGNATURE,
    TAGS_MAX,
    Layer3,
    UnifiedFlag,
)
from liteprobe.sim.models.receive import unified

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
    total, left = int(row["ip.len"][0]), len(frame) - 14 - 4 * (len(tags) + len(labels))
    return 0 < total < int(row["ip.hdr_len"][0]) and total != left  # It puts what is left in the place of 0.


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
    cut_transport, bad_udp_length,
)  # fmt: skip
