# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The keys of a document of streams, each with unit, range and meaning: reading, schema and page have them from here."""

from fractions import Fraction

from liteprobe.cores.formats import LINE_RATE_BPS, LIST_ENTRIES_MAX, MAX_LENGTH, MIN_LENGTH, MODIFIERS, STREAMS
from liteprobe.host import defaults
from liteprobe.host.traffic.document.kinds import (
    IPV4,
    IPV6,
    MAC,
    NAME,
    OCTETS,
    RATE_UNITS,
    TIME_UNITS_NS,
    Choice,
    Flag,
    Quantity,
    Value,
    Whole,
)
from liteprobe.host.traffic.document.sections import AnyOf, Either, Key, Section, Several, Weights, WholeOrList
from liteprobe.host.traffic.headers import ETHERTYPE_MIN, MPLS_LABELS_MAX, PROTOCOL_EXPERIMENT, TCP_ACK, VLAN_TAGS_MAX
from liteprobe.host.traffic.intervals import BURST_MAX, TICKS_MAX
from liteprobe.host.traffic.lengths import STEP_MAX
from liteprobe.host.traffic.stamps import PLACES, TICK_MAX, WIDTH_MAX, WIDTH_MIN
from liteprobe.host.traffic.stream import CHECKSUMS, COUNT_MAX, SEED_MAX

PORTS = 16
WORD_MAX = 2**32 - 1
ORDERS = ("cyclic", "random")
OPERATIONS = ("increment", "decrement", "random", "values")

LENGTH = Whole(MIN_LENGTH, MAX_LENGTH)
TIME_MOST = Fraction(TICKS_MAX * 8)
TIME = Quantity("a time", "a time with ns, us, ms or s, above 0, up to 34.359 s; no unit: ns", TIME_UNITS_NS, TIME_MOST)
START = Quantity(
    "a time", "a time with ns, us, ms or s, up to 34.359 s; no unit: ns", TIME_UNITS_NS, TIME_MOST, may_be_0=True
)
RATE = Quantity("a rate", "b/s, with k, M or G, above 0, up to 1G", RATE_UNITS, Fraction(LINE_RATE_BPS))
PACKETS = Quantity(
    "packets a second", "frames a second, with k or M, above 0", {"": 1, "k": 10**3, "M": 10**6}, Fraction(10**7)
)
SHARE = Quantity("a share of the line", "per cent like 12.5%, above 0%, up to 100%", {"%": 1}, Fraction(100))

LENGTH_TABLE = Section(
    "length",
    {
        "least": Key(LENGTH, "The shortest; with `greatest`."),
        "greatest": Key(LENGTH, "The longest."),
        "step": Key(
            Whole(1, STEP_MAX),
            "Each frame is so much longer than the one before, and the least follows the greatest.",
            "1",
        ),
        "weights": Key(
            Weights(LENGTH, Whole(1, LIST_ENTRIES_MAX)),
            "In the place of `least` and `greatest`: how often each length comes.",
        ),
        "table": Key(
            AnyOf(Choice(("imix",)), Several(LENGTH, LIST_ENTRIES_MAX)),
            "In the place of `weights`: the lengths one after the other, or `imix`.",
        ),
        "order": Key(Choice(ORDERS), "`random`: each frame draws its length.", "cyclic"),
    },
)
BURST = Section(
    "burst",
    {
        "count": Key(Whole(1, BURST_MAX), "Frames of a burst.", is_needed=True),
        "interval": Key(TIME, "From start to start within a burst, rounded to ticks of 8 ns.", "back to back"),
    },
)
MAC_TABLE = Section(
    "mac",
    {
        "source": Key(MAC, "Source address.", defaults.SOURCE_MAC),
        "destination": Key(MAC, "Destination address.", defaults.DESTINATION_MAC),
    },
)
VLAN = Section(
    "vlan",
    {
        "id": Key(Whole(0, 0xFFF), "VLAN id.", is_needed=True),
        "priority": Key(Whole(0, 7), "Priority.", "0"),
        "drop_eligible": Key(Flag(), "Drop eligible indicator.", "false"),
    },
)
MPLS = Section(
    "mpls",
    {
        "label": Key(Whole(0, 0xFFFFF), "Label.", is_needed=True),
        "traffic_class": Key(Whole(0, 7), "Traffic class.", "0"),
        "ttl": Key(Whole(0, 255), "Time to live.", str(defaults.TTL)),
    },
)
IPV4_TABLE = Section(
    "ipv4",
    {
        "source": Key(IPV4, "Source address.", defaults.SOURCE_IP),
        "destination": Key(IPV4, "Destination address.", defaults.DESTINATION_IP),
        "ttl": Key(Whole(0, 255), "Time to live.", str(defaults.TTL)),
        "tos": Key(Whole(0, 255), "Type of service: DSCP and ECN.", str(defaults.TRAFFIC_CLASS)),
        "identification": Key(Whole(0, 0xFFFF), "Identification.", "0"),
        "protocol": Key(
            Whole(0, 255),
            "The payload follows IP at once, with this protocol.",
            f"UDP or TCP; {PROTOCOL_EXPERIMENT} is for experiments",
        ),
    },
)
IPV6_TABLE = Section(
    "ipv6",
    {
        "source": Key(IPV6, "Source address.", defaults.SOURCE_IPV6),
        "destination": Key(IPV6, "Destination address.", defaults.DESTINATION_IPV6),
        "hop_limit": Key(Whole(0, 255), "Hop limit.", str(defaults.TTL)),
        "traffic_class": Key(Whole(0, 255), "Traffic class: DSCP and ECN.", str(defaults.TRAFFIC_CLASS)),
        "flow_label": Key(Whole(0, 0xFFFFF), "Flow label.", "0"),
        "next_header": Key(
            Whole(0, 255),
            "The payload follows IP at once, with this next header.",
            f"UDP or TCP; {PROTOCOL_EXPERIMENT} is for experiments",
        ),
    },
)
UDP = Section(
    "udp",
    {
        "source": Key(Whole(0, 0xFFFF), "Source port.", str(defaults.SOURCE_PORT)),
        "destination": Key(Whole(0, 0xFFFF), "Destination port.", str(defaults.DESTINATION_PORT)),
    },
)
TCP = Section(
    "tcp",
    {
        **UDP.keys,
        "flags": Key(Whole(0, 255), "The octet of flags: 0x02 is SYN, 0x10 ACK.", f"{TCP_ACK:#04x}"),
    },
)
STAMP = Section(
    "stamp",
    {
        "place": Key(Choice(tuple(PLACES)), "Where it stands.", is_needed=True),
        "octet": Key(Whole(0, 255), "With the place `octet`: first octet of the stamp, from 0 at the destination MAC."),
        "width": Key(Whole(WIDTH_MIN, WIDTH_MAX), "With the place `octet`: bits, a multiple of 8.", str(WIDTH_MAX)),
        "tick": Key(Whole(0, TICK_MAX), "It counts units of 16^tick ns.", "0"),
    },
)
MODIFY = Section(
    "modifier",
    {
        "field": Key(NAME, "What changes, by name."),
        "offset": Key(Whole(0, 124), "In the place of `field`: the first of four octets, even."),
        "mask": Key(Whole(1, WORD_MAX, hexadecimal=True), "With `offset`: the bits of the four octets that change."),
        "op": Key(Choice(OPERATIONS), "How it changes from frame to frame.", is_needed=True),
        "first": Key(Value(), "Of `increment` and `decrement`: value of the first frame.", "what the headers have"),
        "step": Key(Whole(1, WORD_MAX), "Of `increment` and `decrement`: what is added or taken away.", "1"),
        "count": Key(
            Whole(0, WORD_MAX), "Of `increment` and `decrement`: values until the first comes again; 0: never.", "0"
        ),
        "values": Key(Several(Value(), LIST_ENTRIES_MAX), "Of `values`: those that the field takes."),
        "order": Key(Choice(ORDERS), "Of `values`: `random` draws one for each frame.", "cyclic"),
    },
)
STREAM = Section(
    "stream",
    {
        "name": Key(NAME, "For people: in tables and reports.", "stream-<id>"),
        "id": Key(
            Whole(0, 0xFFFF),
            "Number that a probe header carries; those that one port receives lie within 31.",
            "its place in the document, from 1",
        ),
        "port": Key(Whole(0, PORTS - 1), "Port that sends it.", "0"),
        "length": Key(
            Either(AnyOf(Choice(("imix",)), WholeOrList(LENGTH, Several(LENGTH, LIST_ENTRIES_MAX))), LENGTH_TABLE),
            "Octets of a frame without FCS; a list is taken from the first to the last and again.",
            "must be given",
        ),
        "interval": Key(
            TIME, "From start to start; with `burst` from the head of a burst to the next.", "back to back"
        ),
        "rate": Key(RATE, "In the place of `interval`: mean rate on the wire, with preamble, FCS and gap."),
        "pps": Key(PACKETS, "In the place of `interval`: mean number of frames a second."),
        "share": Key(SHARE, "In the place of `interval`: mean share of the line; 100% is back to back."),
        "exponential": Key(
            Flag(),
            "Intervals are drawn from an exponential distribution (Poisson); their mean is 1.073 s at most.",
            "false",
        ),
        "burst": Key(BURST, "Frames come in bursts."),
        "count": Key(Whole(1, COUNT_MAX), "Frames.", "endless"),
        "start": Key(START, "From the start of the program to the first frame.", "0"),
        "mac": Key(MAC_TABLE, "MAC addresses."),
        "vlan": Key(
            Several(Either(Whole(0, 0xFFF), VLAN), VLAN_TAGS_MAX), "VLAN tags, outer first; a number is an id."
        ),
        "mpls": Key(
            Several(Either(Whole(0, 0xFFFFF), MPLS), MPLS_LABELS_MAX), "MPLS labels, outer first; a number is a label."
        ),
        "ipv4": Key(IPV4_TABLE, "IPv4 header.", "IPv4"),
        "ipv6": Key(IPV6_TABLE, "IPv6 header, in the place of `ipv4`."),
        "ethertype": Key(
            Whole(ETHERTYPE_MIN, 0xFFFF, hexadecimal=True), "In the place of IP: the payload follows this type."
        ),
        "udp": Key(UDP, "UDP header.", "UDP"),
        "tcp": Key(TCP, "TCP header, in the place of `udp`."),
        "payload": Key(OCTETS, "Octets that follow the headers, before the fill; without a probe header alone."),
        "fill": Key(Choice(tuple(defaults.FILLS)), "The rest of the frame.", "zero"),
        "probe": Key(Flag(), "A probe header follows UDP: the stream is measured on reception.", "true with UDP"),
        "stamp": Key(
            Either(Choice(tuple(PLACES)), STAMP),
            "Where the time of sending stands.",
            "probe with a probe header, else none",
        ),
        "checksum": Key(Choice(tuple(CHECKSUMS)), "How the checksum of UDP or TCP is made right.", "auto"),
        "modify": Key(Several(MODIFY, MODIFIERS), "What changes in the headers from frame to frame."),
        "seed": Key(Whole(0, SEED_MAX), "Of all that is random in the stream.", "1"),
    },
)
OF_ALL = {name: key for name, key in STREAM.keys.items() if name not in ("name", "id")}
DOCUMENT = Section(
    "document",
    {
        "defaults": Key(Section("stream", OF_ALL), "Keys that all streams have, unless they give them."),
        "streams": Key(Several(STREAM, 16 * STREAMS), "The streams; up to 16 of each port.", is_needed=True),
    },
)

#: In the order of the page.
SECTIONS = (
    DOCUMENT,
    STREAM,
    LENGTH_TABLE,
    BURST,
    MAC_TABLE,
    VLAN,
    MPLS,
    IPV4_TABLE,
    IPV6_TABLE,
    UDP,
    TCP,
    STAMP,
    MODIFY,
)
