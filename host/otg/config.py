# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Makes of a configuration what a probe does: ports, captures, interfaces of devices, flows.

The whole message is read: what can't be, and what nobody translates, is refused by its path before anything is written.

Source: Open Traffic Generator models 1.61, config/config.yaml.
"""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from liteprobe.cores.formats import STREAMS
from liteprobe.host.base.errors import UsageError
from liteprobe.host.otg.flows import FlowEnds, OtgFlow, TimeScale, flow_of
from liteprobe.host.otg.messages import Given, OtgReport
from liteprobe.host.run.hosts import HostSettings
from liteprobe.host.traffic.load import base_of, check_port, receiver_settings

SPEED = "speed_1_gbps"
MTU_MOST = 9000
FORMATS = ("pcap", "pcapng")
SLOTS = 32  # Streams that a port tells apart, and one more for all others.


@dataclass(frozen=True)
class OtgPorts:
    """OtgPorts that a probe has, and what else is known of it."""

    count: int
    names: Mapping[str, int] = field(default_factory=dict)  # Locations of other names, by what they stand for.
    url: str = ""

    def number_of(self, location: str) -> int:
        """Return the port of a location: its number, ``URL;NUMBER``, or a name that was given; UsageError where there is none."""
        if location in self.names:
            return self.names[location]
        before, _, number = location.rpartition(";")
        if number.isdecimal() and int(number) < self.count and before in ("", self.url):
            return int(number)
        more = f", or one of {', '.join(self.names)}" if self.names else ", or name it with --location NAME=PORT"
        raise UsageError(f"'{location}' is not a port of this probe: give 0 to {self.count - 1}{more}")


@dataclass(frozen=True)
class PortCapture:
    """Describes what is to be captured of a port."""

    port_name: str
    format: str = "pcap"
    snap_length: int | None = None  # None: all octets.
    overwrites: bool = True
    filter: str = ""  # An expression in tcpdump's syntax; empty: all.


@dataclass(frozen=True)
class DeviceInterface:
    """An interface of a device: an address on a port, and who is next."""

    name: str
    ethernet: str
    path: str
    port_name: str
    address: str
    prefix: int
    gateway: str
    gateway_mac: str | None  # None: it is asked for.


@dataclass(frozen=True)
class OtgSetup:
    """Holds all that a configuration asks of a probe."""

    ports: dict[str, int] = field(default_factory=dict)  # Number, by name.
    locations: dict[str, str] = field(default_factory=dict)
    captures: dict[str, PortCapture] = field(default_factory=dict)  # By the name of the port.
    hosts: dict[str, HostSettings] = field(default_factory=dict)  # Likewise.
    interfaces: dict[str, DeviceInterface] = field(default_factory=dict)  # By every name that a flow may give.
    flows: tuple[OtgFlow, ...] = ()
    warnings: tuple[str, ...] = ()
    auto_start: bool = False
    has_loss_duration: bool = False


def setup_of(config: Any, ports: OtgPorts, scaled: TimeScale) -> OtgSetup:
    """Return what a configuration asks for.

    Raises OtgError, with the path of everything that can't be.
    """
    report = OtgReport()
    whole = Given(config, report)
    numbers, locations = _ports(whole, ports)
    _names(config, report)
    _layer1(whole, numbers)
    captures = dict(pair for one in whole.parts("captures") for pair in _captures(one, numbers))
    hosts, interfaces = _devices(whole, numbers)
    auto_start, has_loss_duration = _options(whole)
    flows = []
    for number, one in enumerate(whole.parts("flows"), 1):
        ends = _ends(one, numbers, interfaces)
        if found := flow_of(one, ends or NOWHERE, number, scaled):
            flows.append(found)
    report.check()
    _check_together(flows, numbers, report)
    report.check()
    return OtgSetup(
        numbers,
        locations,
        captures,
        hosts,
        interfaces,
        tuple(flows),
        tuple(report.warnings),
        auto_start,
        has_loss_duration,
    )


NOWHERE = FlowEnds("", None, 0)  # Of a flow whose ends are wrong: the rest is looked at all the same.


def _ports(whole: Given, ports: OtgPorts) -> tuple[dict[str, int], dict[str, str]]:
    numbers: dict[str, int] = {}
    locations: dict[str, str] = {}
    for one in whole.parts("ports"):
        name, location = str(one.value("name", "")), str(one.value("location", ""))
        try:
            number = ports.number_of(location)
        except UsageError as error:
            one.error("location", error)
            continue
        if number in numbers.values():
            one.error("location", f"another port of the configuration is at '{location}': give each a port of its own")
        numbers[name], locations[name] = number, location
    return numbers, locations


def _names(config: Any, report: OtgReport) -> None:
    """OtgReport names that are missing, or are of several things."""
    seen: dict[str, str] = {}

    def visit(message: Any, path: str) -> Iterator[tuple[str, str]]:
        for one, value in message.ListFields():
            if one.message_type is None:
                continue
            many = value if one.is_repeated else [value]
            for number, each in enumerate(many):
                below = f"{path}.{one.name}".lstrip(".") + (f"[{number}]" if one.is_repeated else "")
                known = each.DESCRIPTOR.fields_by_name
                if "name" in known and one.name in NAMED:
                    yield f"{below}.name", each.name
                if one.name in NAMED:
                    yield from visit(each, below)

    for path, name in visit(config, ""):
        if not name.strip():
            report.error(path, "it has no name: give it one of its own")
        elif name in seen:
            report.error(path, f"'{name}' is the name of {seen[name]}, too: names are unique in a configuration")
        seen.setdefault(name, path.removesuffix(".name"))


#: Lists whose members have names that are unique.
NAMED = ("ports", "layer1", "captures", "devices", "ethernets", "ipv4_addresses", "ipv6_addresses", "vlans", "flows")


def _port_names(one: Given, numbers: Mapping[str, int], name: str = "port_names") -> list[str]:
    """Return names of ports, those that are none reported."""
    found = []
    for place, port in enumerate(one.values(name)):
        if port in numbers:
            found.append(port)
        else:
            one.error(
                f"{name}[{place}]",
                f"there is no port '{port}': give one of {', '.join(numbers) or 'none is configured'}",
            )
    return found


def _layer1(whole: Given, numbers: Mapping[str, int]) -> None:
    for one in whole.parts("layer1"):
        one.value("name")
        _port_names(one, numbers)
        if one.value("promiscuous", True) is False:
            one.error("promiscuous", "ports take all frames: give true, or leave it out")
        if (speed := one.value("speed", SPEED)) not in (SPEED, "unspecified"):
            one.error("speed", f"ports of this probe are of 1 Gb/s, not {speed}: give {SPEED}, or leave it out")
        if not 64 <= (mtu := int(one.value("mtu", 1500))) <= MTU_MOST:
            one.error("mtu", f"{mtu} is out of range: give 64 to {MTU_MOST}")
        for name in ("ieee_media_defaults", "auto_negotiate"):
            if one.value(name, True) is False:
                one.error(name, "links are negotiated: give true, or leave it out")


def _options(whole: Given) -> tuple[bool, bool]:
    """Return whether protocols start with the configuration, and whether the duration of losses is wanted."""
    auto_start = has_loss_duration = False
    if options := whole.part("options"):
        if ports := options.part("port_options"):
            if ports.value("location_preemption", False):
                ports.report.warn(
                    ports.at("location_preemption"),
                    "it is passed over: a probe that another host has is taken only where the server was started with --steal",
                )
            order = ports.part("frame_ordering_mode")
            if order and order.choice("no_ordering") != "no_ordering":
                order.error("choice", "frames leave in the order in which they are due: give no_ordering")
        if protocols := options.part("protocol_options"):
            auto_start = bool(protocols.value("auto_start_all", False))
        if flows := options.part("flow_options"):
            has_loss_duration = bool(flows.value("packet_loss_duration", False))
    return auto_start, has_loss_duration


# Captures -----------------------------------------------------------------------------------------


def _captures(one: Given, numbers: Mapping[str, int]) -> list[tuple[str, PortCapture]]:
    one.value("name")
    names = _port_names(one, numbers)
    written = str(one.value("format", "pcap"))
    written = "pcap" if written == "unspecified" else written
    size = one.value("packet_size")
    overwrites = bool(one.value("overwrite", True))
    offset, terms = 0, []
    for given in one.parts("filters"):
        kind = given.choice("custom")
        if kind not in CAPTURE_FIELDS and kind != "custom":
            given.error("choice", f"'{kind}' is not supported: give custom, {', '.join(CAPTURE_FIELDS)}")
            given.abandon()
            continue
        body = given.part(kind)
        if kind == "custom":
            if body:
                terms += _custom_filter(body, offset)
            continue
        if kind in ("ipv4", "ipv6", "vlan"):
            offset = offset or 14
            terms.append(f"ether[{offset - 2}:2] = {TYPES[kind]:#06x}")
        for name, first, width in CAPTURE_FIELDS[kind]:
            chosen = body.part(name) if body else None
            if chosen:
                terms += _term(chosen, 8 * offset + first, width)
        offset += HEADER_SIZES[kind]
    found = PortCapture("", written, None if size is None else int(size), overwrites, " and ".join(terms))
    return [(name, PortCapture(name, *list(vars(found).values())[1:])) for name in names]


TYPES = {"vlan": 0x8100, "ipv4": 0x0800, "ipv6": 0x86DD}
HEADER_SIZES = {"ethernet": 14, "vlan": 4, "ipv4": 20, "ipv6": 40}
#: Fields that a capture may filter by: name, first bit of the header, bits.
CAPTURE_FIELDS: dict[str, tuple[tuple[str, int, int], ...]] = {
    "ethernet": (("dst", 0, 48), ("src", 48, 48), ("ether_type", 96, 16)),
    "vlan": (("priority", 0, 3), ("cfi", 3, 1), ("id", 4, 12), ("protocol", 16, 16)),
    "ipv4": (
        ("version", 0, 4),
        ("header_length", 4, 4),
        ("priority", 8, 8),
        ("total_length", 16, 16),
        ("identification", 32, 16),
        ("reserved", 48, 1),
        ("dont_fragment", 49, 1),
        ("more_fragments", 50, 1),
        ("fragment_offset", 51, 13),
        ("time_to_live", 64, 8),
        ("protocol", 72, 8),
        ("header_checksum", 80, 16),
        ("src", 96, 32),
        ("dst", 128, 32),
    ),
    "ipv6": (
        ("version", 0, 4),
        ("traffic_class", 4, 8),
        ("flow_label", 12, 20),
        ("payload_length", 32, 16),
        ("next_header", 48, 8),
        ("hop_limit", 56, 8),
        ("src", 64, 128),
        ("dst", 192, 128),
    ),
}


def _custom_filter(body: Given, offset: int) -> list[str]:
    width = int(body.value("bit_length", 8))
    if offset:
        body.error("offset", "custom filters come first, and count from the start of the frame: put them first")
        return []
    if not 1 <= width <= 128:
        body.error("bit_length", f"{width} is out of range: give 1 to 128")
        return []
    return _term(body, int(body.value("offset", 0)), width)


def _term(chosen: Given, first: int, width: int) -> list[str]:
    """Return conditions on the bits of a field: those that are set in the mask, all without one, have those of the value."""
    numbers = {}
    for name in ("value", "mask"):
        text = str(chosen.value(name, "00"))
        try:
            numbers[name] = int(text.removeprefix("0x").replace(":", "") or "0", 16)
        except ValueError:
            chosen.error(name, f"'{text[:40]}' is not hexadecimal: give digits 0 to f")
            return []
        if numbers[name] >= 1 << width:
            chosen.error(name, f"{text[:40]} does not fit into {width} bits")
            return []
    negate = bool(chosen.value("negate", False))
    mask = numbers["mask"] or (1 << width) - 1
    if first + width > 8 * 65535:
        chosen.error("offset", f"{first} is beyond any frame")
        return []
    terms = []
    at, end = first // 8, (first + width + 7) // 8
    left = 8 * end - first - width
    value, mask = (numbers["value"] & mask) << left, mask << left
    while at < end:
        size = 4 if end - at >= 4 else 2 if end - at >= 2 else 1
        shift = 8 * (end - at - size)
        part, bits = value >> shift & ((1 << 8 * size) - 1), mask >> shift & ((1 << 8 * size) - 1)
        if bits:
            terms.append(f"ether[{at}:{size}] & {bits:#x} = {part:#x}")
        at += size
    joined = " and ".join(terms)
    return [f"not ({joined})"] if negate else [f"({joined})"]


# Devices ------------------------------------------------------------------------------------------


def _devices(whole: Given, numbers: Mapping[str, int]) -> tuple[dict[str, HostSettings], dict[str, DeviceInterface]]:
    """Return the hosts of ports, and the interfaces by each name that a flow may give."""
    hosts: dict[str, HostSettings] = {}
    interfaces: dict[str, DeviceInterface] = {}
    for device in whole.parts("devices"):
        name, own = str(device.value("name", "")), []
        for ethernet in device.parts("ethernets"):
            own += _ethernet(ethernet, numbers, hosts)
        for one in own:
            interfaces[one.name] = one
        for alias in {name, *(one.ethernet for one in own)} if own else ():
            interfaces.setdefault(alias, next(one for one in own if alias in (name, one.ethernet)))
    return hosts, interfaces


def _ethernet(given: Given, numbers: Mapping[str, int], hosts: dict[str, HostSettings]) -> list[DeviceInterface]:
    name, mac = str(given.value("name", "")), given.value("mac")
    if not 64 <= (mtu := int(given.value("mtu", 1500))) <= MTU_MOST:
        given.error("mtu", f"{mtu} is out of range: give 64 to {MTU_MOST}")
    port = _connection(given, numbers)
    vlans = [int(vlan.value("id", 1)) for vlan in _vlans(given)]
    if len(vlans) > 1:
        given.error("vlans", f"{len(vlans)} tags: the host of a port is in one VLAN, or none")
    addresses: dict[int, str] = {}
    found = []
    for kind, version, usual in (("ipv4_addresses", 4, 24), ("ipv6_addresses", 6, 64)):
        for number, one in enumerate(given.parts(kind)):
            if number:
                one.error("", f"the host of a port has one IPv{version} address: leave out the others")
                continue
            interface = _address(one, version, usual, (name, port or ""))
            if interface:
                found.append(interface)
                addresses[version] = interface.address
    if port is None:
        return []
    if port in hosts:
        given.error(
            "connection.port_name", f"port '{port}' has an interface already, and a port has one host: leave out one"
        )
        return []
    try:
        hosts[port] = HostSettings(addresses.get(4), addresses.get(6), mac, vlans[0] if vlans else None)
    except UsageError as error:
        given.error("", error)
    return found


def _connection(given: Given, numbers: Mapping[str, int]) -> str | None:
    connection = given.part("connection")
    if connection is None or connection.choice("port_name") != "port_name":
        given.error("connection", "an interface is on a port: give connection.port_name")
        return None
    port = str(connection.value("port_name", ""))
    if port not in numbers:
        connection.error("port_name", f"there is no port '{port}'")
        return None
    return port


def _vlans(given: Given) -> Iterator[Given]:
    for vlan in given.parts("vlans"):
        vlan.value("name")
        if vlan.value("priority", 0):
            vlan.error("priority", "frames of a host have priority 0: leave it out")
        if vlan.value("tpid", "x8100") not in ("x8100", "unspecified"):
            vlan.error("tpid", "the tag of a host is 0x8100: leave it out")
        yield vlan


def _address(one: Given, version: int, usual: int, where: tuple[str, str]) -> DeviceInterface | None:
    name, prefix = str(one.value("name", "")), int(one.value("prefix", usual))
    texts = {key: str(one.value(key, "")) for key in ("address", "gateway")}
    kind = ipaddress.IPv4Address if version == 4 else ipaddress.IPv6Address
    for key, text in texts.items():
        try:
            texts[key] = str(kind(text))
        except ValueError:
            one.error(key, f"'{text}' is not an IPv{version} address")
            return None
    if not 1 <= prefix <= (32 if version == 4 else 128):
        one.error("prefix", f"{prefix} is out of range")
        return None
    mac = one.part("gateway_mac")
    gateway_mac = None
    if mac is not None:
        gateway_mac = mac.value("value", None) if mac.choice("auto") == "value" else None
        mac.value("auto")
    return DeviceInterface(name, where[0], one.path, where[1], texts["address"], prefix, texts["gateway"], gateway_mac)


# Flows together -----------------------------------------------------------------------------------


def _ends(flow: Given, numbers: Mapping[str, int], interfaces: Mapping[str, DeviceInterface]) -> FlowEnds | None:
    """Return from where to where a flow goes; None where that can't be, which is reported."""
    tx_rx = flow.part("tx_rx")
    kind = tx_rx.choice("port") if tx_rx else "port"
    chosen = tx_rx.part(kind) if tx_rx and kind in ("port", "device") else None
    if chosen is None:
        flow.error("tx_rx", "it says from where to where frames go: give tx_rx.port or tx_rx.device")
        return None
    if kind == "port":
        tx, old = str(chosen.value("tx_name", "")), chosen.value("rx_name", "")
        names = list(dict.fromkeys([*_port_names(chosen, numbers, "rx_names"), *([str(old)] if old else [])]))
        if tx not in numbers:
            chosen.error("tx_name", f"there is no port '{tx}': give one of {', '.join(numbers)}")
            return None
        if len(names) > 1:
            chosen.error("rx_names", f"a flow is measured at one port, not at {len(names)}: give one")
            return None
        if names and names[0] not in numbers:
            chosen.error("rx_name", f"there is no port '{names[0]}'")
            return None
        return FlowEnds(tx, names[0] if names else None, numbers[tx])
    if chosen.value("bidirectional", False):
        chosen.error("bidirectional", "give a flow for each direction")
    chosen.value("mode")
    pair = []
    for name in ("tx_names", "rx_names"):
        given = chosen.values(name)
        if len(given) != 1:
            chosen.error(name, f"a flow goes from one device to one, not {len(given)}: give a flow for each pair")
        elif given[0] not in interfaces:
            chosen.error(f"{name}[0]", f"there is no interface '{given[0]}' with an IPv4 or IPv6 address")
        else:
            pair.append(interfaces[given[0]])
    if len(pair) < 2:
        return None
    if pair[0] == pair[1]:
        chosen.error("rx_names[0]", "it is the one that sends: give another one")
        return None
    return FlowEnds(pair[0].port_name, pair[1].port_name, numbers[pair[0].port_name], (pair[0].name, pair[1].name))


def _check_together(flows: Sequence[OtgFlow], numbers: Mapping[str, int], report: OtgReport) -> None:
    """OtgReport what flows can't do beside one another."""
    for name, number in numbers.items():
        own = [flow for flow in flows if flow.tx_name == name]
        if not own:
            continue
        ends = {flow.rx_name for flow in own if flow.rx_name is not None and flow.is_measured}
        if len(ends) > 1:
            report.error(
                own[-1].path + ".tx_rx",
                f"all flows that port '{name}' sends are measured at one port, not at {', '.join(sorted(ends))}",
            )
        try:
            check_port([flow.stream for flow in own])
        except UsageError as error:
            path = own[STREAMS].path if len(own) > STREAMS else f"{own[0].path}.rate" if len(own) == 1 else "flows"
            report.error(path, str(error).replace(f"port {number}", f"port '{name}'"))
    for rx in {flow.rx_name for flow in flows}:
        coming = [flow for flow in flows if flow.rx_name == rx]
        bare = [flow for flow in coming if not flow.stream.probe]
        asked = [flow for flow in bare if flow.is_measured]
        if asked and len(bare) > 1:
            others = ", ".join(f"'{flow.name}'" for flow in bare if flow is not asked[0])
            report.error(
                f"{asked[0].path}.metrics.enable",
                "its frames carry no probe header: that needs UDP, space, and a payload of 00. So the port counts frames of "
                f"{others} as its own: give UDP headers, or a greater size, or let one such flow alone come to the port",
            )
        try:
            streams = [flow.stream for flow in coming]
            receiver_settings(streams, base_of(streams, SLOTS), SLOTS)
        except UsageError as error:
            if not asked or len(bare) == 1:
                report.error("flows", error)
