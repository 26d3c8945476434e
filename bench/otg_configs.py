# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Holds configurations of Open Traffic Generator, as its users write them: those that a probe runs, and those that it refuses.

Each is a flow, or several, between two ports; rates are those of a simulated probe, so that a run takes a few milliseconds.
"""

from typing import Any

Json = dict[str, Any]


def value(one: object) -> Json:
    """Return a field that never changes."""
    return {"choice": "value", "value": one}


def values(*many: object) -> Json:
    """Return a field that takes some values in turn."""
    return {"choice": "values", "values": list(many)}


def counting(start: object, step: object, count: int, kind: str = "increment") -> Json:
    """Return a field that counts."""
    return {"choice": kind, kind: {"start": start, "step": step, "count": count}}


def ethernet(number: int = 1, **more: Json) -> Json:
    """Return an Ethernet header; its source tells flows apart."""
    macs = {"dst": value("02:00:00:00:00:02"), "src": value(f"02:00:00:00:01:{number:02x}")}
    return {"choice": "ethernet", "ethernet": macs | more}


def vlan(number: int, **more: Json) -> Json:
    """Return a VLAN tag."""
    return {"choice": "vlan", "vlan": {"id": value(number)} | more}


def ipv4(**more: Any) -> Json:
    """Return an IPv4 header."""
    return {"choice": "ipv4", "ipv4": {"src": value("192.0.2.1"), "dst": value("198.51.100.7")} | more}


def ipv6(**more: Any) -> Json:
    """Return an IPv6 header."""
    return {"choice": "ipv6", "ipv6": {"src": value("2001:db8::1"), "dst": value("2001:db8:0:1::2")} | more}


def udp(**more: Json) -> Json:
    """Return a UDP header."""
    return {"choice": "udp", "udp": {"src_port": value(5000), "dst_port": value(6000)} | more}


def tcp(**more: Json) -> Json:
    """Return a TCP header."""
    return {"choice": "tcp", "tcp": {"src_port": value(5000), "dst_port": value(6000)} | more}


def header(kind: str, **fields: Any) -> Json:
    """Return a header of any kind; of ICMP an echo."""
    return {"choice": kind, kind: {"choice": "echo", "echo": fields} if kind.startswith("icmp") else fields}


def vxlan(*inner: Json) -> list[Json]:
    """Return a VXLAN packet: an outer one of IPv4, and an inner one."""
    return [ethernet(), ipv4(), udp(dst_port=value(4789)), header("vxlan", vni=value(0xABCDE)), ethernet(9), *inner]


def packets(count: int) -> Json:
    """Return a duration of some frames."""
    return {"choice": "fixed_packets", "fixed_packets": {"packets": count}}


def pps(rate: int) -> Json:
    """Return a rate in frames a second."""
    return {"choice": "pps", "pps": str(rate)}  # As clients in Go write it.


def fixed(octets: int) -> Json:
    """Return a size."""
    return {"choice": "fixed", "fixed": octets}


def flow(*packet: Json, number: int = 1, **more: Any) -> Json:
    """Return a measured flow of 30 frames of 128 octets from port p1 to port p2."""
    usual = {
        "name": f"f{number}",
        "tx_rx": {"choice": "port", "port": {"tx_name": "p1", "rx_names": ["p2"]}},
        "packet": list(packet) or [ethernet(number), ipv4(), udp()],
        "size": fixed(128),
        "rate": pps(100_000),
        "duration": packets(30),
        "metrics": {"enable": True},
    }
    return usual | more


def config(*flows: Json, **more: Any) -> Json:
    """Return a configuration of two ports."""
    ports = [{"name": "p1", "location": "0"}, {"name": "p2", "location": "1"}]
    layer1 = [{"name": "ly", "port_names": ["p1", "p2"], "speed": "speed_1_gbps"}]
    return {"ports": ports, "layer1": layer1, "flows": list(flows)} | more


def burst(bursts: int, count: int, **gap: float) -> Json:
    """Return a duration of bursts; ``gap``: between them, by its unit."""
    (unit, size), *_ = gap.items()
    return {
        "choice": "burst",
        "burst": {"bursts": bursts, "packets": count, "inter_burst_gap": {"choice": unit, unit: size}},
    }


def custom(*pairs: tuple[int, float]) -> Json:
    """Return sizes with weights."""
    rows = [{"size": size, "weight": weight} for size, weight in pairs]
    return {"choice": "weight_pairs", "weight_pairs": {"choice": "custom", "custom": rows}}


def dscp(phb: Json, ecn: Json) -> Json:
    """Return the priority of an IPv4 header."""
    return {"choice": "dscp", "dscp": {"phb": phb, "ecn": ecn}}


BACK_TO_BACK: Json = {"choice": "percentage", "percentage": 100}
UNMEASURED: Json = {"enable": False}
IMIX: Json = {"choice": "weight_pairs", "weight_pairs": {"choice": "predefined", "predefined": "imix"}}
STEPS: Json = {"choice": "increment", "increment": {"start": 64, "end": 94, "step": 3}}
LONGER: Json = {"choice": "increment", "increment": {"start": 80, "end": 110, "step": 3}}
DRAWN: Json = {"choice": "random", "random": {"min": 64, "max": 200}}
SYN = {"ctl_syn": value(1), "window": value(1024), "seq_num": value(0xFFFFFFF0), "ecn_ns": value(1)}
FIFO = {"enable": True, "loss": True, "timestamps": True, "latency": {"enable": True, "mode": "cut_through"}}
LIFO = {"enable": True, "latency": {"enable": True, "mode": "store_forward"}}
GOOD: Json = {"choice": "generated", "generated": "good"}

#: Those that a probe runs, by what is asked for.
RUNS: dict[str, Json] = {
    "udp": config(flow()),
    "no more than a name": config({**flow(), "packet": [], "metrics": UNMEASURED}),
    "udp of 64 octets": config(flow(size=fixed(64))),
    "udp of 1518 octets, back to back": config(flow(size=fixed(1518), rate=BACK_TO_BACK)),
    "udp of 64 octets, back to back": config(flow(size=fixed(64), rate=BACK_TO_BACK, duration=packets(200))),
    "udp ports from a list": config(
        flow(ethernet(), ipv4(), udp(src_port=values(5000, 5010, 5020, 5030), dst_port=values(6000, 6010, 6020)))
    ),
    "udp ports that count": config(
        flow(ethernet(), ipv4(), udp(src_port=counting(5000, 2, 10, "decrement"), dst_port=counting(6000, 2, 10)))
    ),
    "udp ports that count far": config(flow(ethernet(), ipv4(), udp(dst_port=counting(1, 1, 65000)))),
    "udp ports that count past their end": config(
        flow(ethernet(), ipv4(), udp(src_port=counting(65500, 7, 64511), dst_port=counting(20, 3, 20, "decrement")))
    ),
    "addresses that count past their end": config(
        flow(
            ethernet(),
            ipv4(src=counting("255.255.255.250", "0.0.0.1", 4), dst=counting("255.255.255.0", "0.0.16.0", 5000)),
            udp(),
        )
    ),
    "tcp": config(flow(ethernet(), ipv4(), tcp())),
    "tcp ports from a list": config(flow(ethernet(), ipv4(), tcp(src_port=values(1, 2, 3), dst_port=values(9, 8)))),
    "tcp ports that count": config(
        flow(ethernet(), ipv4(), tcp(src_port=counting(5000, 2, 10, "decrement"), dst_port=counting(6000, 2, 10)))
    ),
    "tcp syn": config(flow(ethernet(), ipv4(), tcp(**SYN))),
    "tcp sequence": config(flow(ethernet(), ipv4(), tcp(seq_num=counting(1000, 1460, 20)))),
    "tcp of 64 octets": config(flow(ethernet(), ipv4(), tcp(), size=fixed(64), metrics=UNMEASURED)),
    "ipv6 udp": config(flow(ethernet(), ipv6(), udp())),
    "ipv6 udp ports from a list": config(
        flow(ethernet(), ipv6(), udp(src_port=values(5000, 5010), dst_port=values(6000, 6010, 6020)))
    ),
    "ipv6 tcp": config(flow(ethernet(), ipv6(hop_limit=value(3), flow_label=value(0xABCDE)), tcp())),
    "ipv6 traffic class": config(flow(ethernet(), ipv6(traffic_class=values(0, 184, 40)), udp(), size=fixed(256))),
    "ipv6 networks": config(flow(ethernet(), ipv6(dst=counting("2001:db8::", "0:0:0:1::", 9)), udp(), size=fixed(200))),
    "ipv4 hosts": config(
        flow(ethernet(), ipv4(src=counting("10.0.0.1", "0.0.0.1", 200), dst=counting("10.1.0.1", "0.0.1.0", 7)), udp())
    ),
    "ipv4 without transport": config(flow(ethernet(), ipv4(), size=fixed(100))),
    "ipv4 protocol": config(flow(ethernet(), ipv4(protocol=value(89), time_to_live=value(1)), size=fixed(100))),
    "ipv4 flags": config(
        flow(ethernet(), ipv4(dont_fragment=value(1), identification=value(4660), time_to_live=value(7)), udp())
    ),
    "ipv4 fragment": config(
        flow(ethernet(), ipv4(more_fragments=value(1), identification=counting(1, 1, 100)), size=fixed(120))
    ),
    "dscp": config(flow(ethernet(), ipv4(priority=dscp(value(46), value(1))), udp())),
    "dscp from a list": config(flow(ethernet(), ipv4(priority=dscp(values(0, 8, 46, 10), value(0))), udp())),
    "tos": config(
        flow(ethernet(), ipv4(priority={"choice": "tos", "tos": {"precedence": value(5), "delay": value(1)}}), udp())
    ),
    "raw priority": config(flow(ethernet(), ipv4(priority={"choice": "raw", "raw": values(1, 3, 255)}), udp())),
    "vlan": config(flow(ethernet(), vlan(100, priority=value(5)), ipv4(), udp())),
    "vlans that count": config(flow(ethernet(), vlan(1, id=counting(1, 1, 20)), ipv4(), udp())),
    "two vlans": config(flow(ethernet(), vlan(200), vlan(10, cfi=value(1)), ipv4(), udp())),
    "two customer tags": config(flow(ethernet(ether_type=value(0x8100)), vlan(200), vlan(10), ipv4(), udp())),
    "mpls": config(
        flow(
            ethernet(),
            {"choice": "mpls", "mpls": {"label": value(1000), "traffic_class": value(3)}},
            {"choice": "mpls", "mpls": {"label": counting(16, 1, 8), "time_to_live": value(9)}},
            ipv4(),
            udp(),
        )
    ),
    "macs that count": config(
        flow(
            ethernet(
                src=counting("02:00:00:00:00:01", "00:00:00:00:00:01", 17),
                dst=counting("02:01:00:00:00:00", "00:00:00:01:00:00", 5),
            ),
            ipv4(),
            udp(),
        )
    ),
    "type of its own": config(flow(ethernet(ether_type=value(0x88B5)), size=fixed(90))),
    "custom octets": config(flow(ethernet(), ipv4(), udp(), {"choice": "custom", "custom": {"bytes": "00ff12abcdef"}})),
    "imix": config(flow(size=IMIX, rate={"choice": "mbps", "mbps": "300"})),
    "custom weights": config(flow(size=custom((64, 3.5), (512, 1), (1000, 0.5)), rate=pps(50_000))),
    "sizes in steps": config(flow(size=STEPS, metrics=UNMEASURED, rate=pps(90_000))),
    "sizes at random": config(flow(size=DRAWN, rate=pps(100_000), metrics=UNMEASURED)),
    "bits a second": config(flow(rate={"choice": "bps", "bps": "123456789"})),
    "kilobits a second": config(flow(rate={"choice": "kbps", "kbps": "250000"})),
    "a gigabit a second": config(flow(rate={"choice": "gbps", "gbps": 1})),
    "a third of the line": config(flow(rate={"choice": "percentage", "percentage": 33.3})),
    "seconds": config(flow(duration={"choice": "fixed_seconds", "fixed_seconds": {"seconds": 0.0005}})),
    "delay": config(
        flow(
            duration={
                "choice": "fixed_packets",
                "fixed_packets": {"packets": 9, "delay": {"choice": "microseconds", "microseconds": 7}},
            }
        )
    ),
    "bursts": config(flow(duration=burst(4, 6, microseconds=20.5), rate=pps(500_000))),
    "bursts back to back": config(flow(duration=burst(3, 5, bytes=250), rate=BACK_TO_BACK)),
    "bursts of one": config(flow(duration=burst(5, 1, nanoseconds=50_000.0))),
    "first bit to first bit": config(flow(metrics=FIFO)),
    "last bit to first bit": config(flow(metrics=LIFO)),
    "checksum": config(flow(ethernet(), ipv4(), udp(checksum=GOOD), size=fixed(128))),
    "no checksum": config(flow(ethernet(), ipv4(), udp(checksum={"choice": "custom", "custom": 0}), size=fixed(64))),
    "payload": config(
        flow(payload={"choice": "fixed", "fixed": {"pattern": "c0ffee", "repeat": False}}, metrics=UNMEASURED)
    ),
    "counting payload": config(flow(payload={"choice": "increment_byte"}, metrics=UNMEASURED)),
    "vxlan, inner ipv4 and udp": config(flow(*vxlan(ipv4(), udp()), size=fixed(256))),
    "vxlan, inner ipv4 and tcp": config(flow(*vxlan(ipv4(), tcp(src_port=counting(1, 1, 900))), size=fixed(256))),
    "vxlan, inner ipv6 and udp": config(
        flow(*vxlan(ipv6(src=counting("2001:db8::1", "::1", 9)), udp()), size=fixed(257))
    ),
    "vxlan, inner addresses that count": config(
        flow(
            *vxlan(ipv4(src=counting("10.0.0.1", "0.0.0.1", 30)), udp(checksum=GOOD)),
            size=fixed(150),
            metrics=UNMEASURED,
        )
    ),
    "vxlan over ipv6": config(
        flow(
            ethernet(), ipv6(), udp(dst_port=value(4789)), header("vxlan"), ethernet(9), header("arp"), size=fixed(150)
        )
    ),
    "vxlan over ipv6, inner tcp": config(
        flow(
            *[
                ethernet(),
                ipv6(),
                udp(dst_port=value(4789)),
                header("vxlan", vni=values(1, 2, 3)),
                ethernet(9),
                ipv4(),
                tcp(),
            ],
            size=fixed(300),
        )
    ),
    "vxlan with checksums": config(
        flow(
            *vxlan(ipv4(), udp(checksum=GOOD)),
            size=fixed(200),
            metrics=UNMEASURED,
            payload={"choice": "increment_byte"},
        )
    ),
    "arp": config(
        flow(
            ethernet(dst=value("ff:ff:ff:ff:ff:ff")),
            header(
                "arp",
                sender_hardware_addr=value("02:00:00:00:01:01"),
                sender_protocol_addr=counting("10.0.0.1", "0.0.0.1", 100),
                target_protocol_addr=value("10.0.0.254"),
            ),
            size=fixed(64),
        )
    ),
    "arp with a tag": config(flow(ethernet(), vlan(5), header("arp", operation=value(2)), size=fixed(64))),
    "ping": config(
        flow(
            ethernet(),
            ipv4(),
            header("icmp", identifier=value(77), sequence_number=counting(0, 1, 65536)),
            size=fixed(98),
        )
    ),
    "ping of 64 octets": config(flow(ethernet(), ipv4(), header("icmp"), size=fixed(64), metrics=UNMEASURED)),
    "ping that counts to a few": config(
        flow(
            *[ethernet(), ipv4(), header("icmp", sequence_number=counting(65530, 1, 6), type=values(0, 8))],
            {"choice": "custom", "custom": {"bytes": "00112233445566778899aabbccddeeff"}},
            size=fixed(64),
            metrics=UNMEASURED,
        )
    ),
    "ping of any size": config(flow(ethernet(), ipv4(), header("icmp"), size=DRAWN, metrics=UNMEASURED)),
    "ping of ipv6": config(
        flow(ethernet(), ipv6(dst=counting("2001:db8::", "::1", 50)), header("icmpv6"), size=fixed(118))
    ),
    "ping of ipv6 of any size": config(flow(ethernet(), ipv6(), header("icmpv6"), size=LONGER, metrics=UNMEASURED)),
    "igmp": config(
        flow(ethernet(), ipv4(), header("igmpv1", type=value(2), group_address=value("224.0.0.9")), size=fixed(64))
    ),
    "gre": config(flow(ethernet(), ipv4(), header("gre"), ipv6(), tcp(), size=fixed(180))),
    "gre with a checksum": config(
        flow(ethernet(), ipv4(), header("gre", checksum_present=value(1)), ipv4(), udp(), size=fixed(180))
    ),
    "gre of ethernet": config(
        flow(ethernet(), ipv6(), header("gre"), ethernet(7), vlan(3), ipv4(), udp(), size=fixed(180))
    ),
    "gre of ppp": config(flow(ethernet(), ipv4(), header("gre"), header("ppp"), ipv6(), udp(), size=fixed(180))),
    "ipv4 in ipv4": config(flow(ethernet(), ipv4(), ipv4(identification=values(1, 5, 9)), udp(), size=fixed(180))),
    "ipv4 in ipv6": config(flow(ethernet(), ipv6(), ipv4(), tcp(), size=fixed(180), metrics=UNMEASURED)),
    "mpls of ethernet": config(
        flow(ethernet(), header("mpls", label=value(33)), ethernet(4), ipv4(), tcp(), size=fixed(180))
    ),
    "gtp": config(
        flow(
            *[
                ethernet(),
                ipv4(),
                udp(dst_port=value(2152)),
                header("gtpv1", message_type=value(255), teid=counting(1, 1, 1000)),
            ],
            *[ipv4(), tcp()],
            size=fixed(190),
        )
    ),
    "gtp with a sequence": config(
        flow(
            *[ethernet(), ipv4(), udp(dst_port=value(2152))],
            header("gtpv1", s_flag=value(1), message_type=value(255), squence_number=counting(0, 1, 9)),
            size=fixed(90),
        )
    ),
    "gtp of version 2": config(
        flow(
            *[ethernet(), ipv4(), udp(dst_port=value(2123))],
            header(
                "gtpv2",
                teid_flag=value(1),
                teid=value(0x1234567),
                sequence_number=value(0xABCDEF),
                message_type=value(32),
            ),
            size=fixed(90),
        )
    ),
    "pause": config(flow(header("ethernetpause", time=counting(0, 1, 100)), size=fixed(64), metrics=UNMEASURED)),
    "priority pause": config(
        flow(
            header("pfcpause", class_enable_vector=value(129), pause_class_7=value(65535)),
            size=fixed(64),
            metrics=UNMEASURED,
        )
    ),
    "wrong checksum": config(
        flow(ethernet(), ipv4(), header("icmp", checksum={"choice": "custom", "custom": 4660}), size=fixed(80))
    ),
}

#: Those that it refuses, and the path of what it can't do.
REFUSED: dict[str, tuple[Json, str]] = {
    "snmp": (
        config(flow(ethernet(), ipv4(), udp(), {"choice": "snmpv2c", "snmpv2c": {}})),
        "flows[0].packet[3].snmpv2c",
    ),
    "lacp": (config(flow(ethernet(), {"choice": "lacp", "lacp": {}})), "flows[0].packet[1].lacp"),
    "arp after udp": (config(flow(ethernet(), ipv4(), udp(), header("arp"))), "flows[0].packet[3].arp"),
    "vxlan of sizes that differ": (config(flow(*vxlan(ipv4(), udp()), size=IMIX, metrics=UNMEASURED)), "flows[0].size"),
    "vxlan of many inner addresses": (
        config(flow(*vxlan(ipv4(src=counting("10.0.0.1", "0.0.0.1", 65)), udp()), size=fixed(200))),
        "flows[0].packet[5].ipv4.src",
    ),
    "vxlan whose gateway is asked for": (
        config(flow(*vxlan(ipv4(src={"choice": "auto"}), udp()), size=fixed(200))),
        "flows[0].packet[5].ipv4.src.auto",
    ),
    "vxlan without inner space": (config(flow(*vxlan(ipv4(), udp()), size=fixed(64))), "flows[0].size"),
    "headers above 128 octets": (
        config(flow(ethernet(), ipv6(), ipv6(), ipv6(), udp(), size=fixed(200))),
        "flows[0].packet",
    ),
    "ping after ping": (config(flow(ethernet(), ipv4(), header("icmp"), header("icmp"))), "flows[0].packet[3].icmp"),
    "gre without its flag": (
        config(flow(ethernet(), ipv4(), header("gre", checksum={"choice": "custom", "custom": 1}))),
        "flows[0].packet[2].gre.checksum",
    ),
    "a flag that changes": (
        config(flow(ethernet(), ipv4(), header("gre", checksum_present=values(0, 1)))),
        "flows[0].packet[2].gre.checksum_present",
    ),
    "tags of an inner field": (
        config(flow(*vxlan(ipv4(), udp(dst_port={**value(5), "metric_tags": [{"name": "t"}]})), size=fixed(200))),
        "flows[0].packet[6].udp.dst_port.metric_tags",
    ),
    "vxlan identifier that is too great": (
        config(flow(ethernet(), ipv4(), udp(), header("vxlan", vni=value(1 << 24)), ethernet(), size=fixed(200))),
        "flows[0].packet[3].vxlan.vni",
    ),
    "above the line": (config(flow(rate=pps(2_000_000))), "flows[0].rate"),
    "10 gigabit": (config(flow(rate={"choice": "gbps", "gbps": 10})), "flows[0].rate"),
    "two flows above the line": (
        config(
            flow(rate={"choice": "percentage", "percentage": 60}),
            flow(number=2, rate={"choice": "percentage", "percentage": 50}),
        ),
        "flows",
    ),
    "ten modifiers": (
        config(
            flow(
                ethernet(
                    src=counting("02:00:00:00:00:01", "00:00:00:00:00:01", 9),
                    dst=counting("02:00:00:00:00:01", "00:00:00:00:00:01", 9),
                ),
                vlan(1, id=counting(1, 1, 9)),
                ipv4(
                    src=counting("10.0.0.1", "0.0.0.1", 9),
                    dst=counting("10.0.0.1", "0.0.0.1", 9),
                    identification=counting(1, 1, 9),
                ),
                udp(src_port=counting(1, 1, 9), dst_port=counting(1, 1, 9)),
            )
        ),
        "flows[0].packet[3].udp.dst_port",
    ),
    "speed": (
        config(flow(), layer1=[{"name": "ly", "port_names": ["p1"], "speed": "speed_100_gbps"}]),
        "layer1[0].speed",
    ),
    "bgp": (
        config(devices=[{"name": "d", "bgp": {"router_id": "1.1.1.1"}, "ethernets": []}]),
        "devices[0].bgp",
    ),
    "lag": (config(flow(), lags=[{"name": "lag", "ports": []}]), "lags"),
    "lldp": (config(flow(), lldp=[{"name": "l"}]), "lldp"),
    "no such port": (config(flow(), ports=[{"name": "p1", "location": "7"}]), "ports[0].location"),
    "tracking": (
        config(flow(ethernet(), ipv4(), udp(dst_port={**value(5), "metric_tags": [{"name": "t"}]}))),
        "flows[0].packet[2].udp.dst_port.metric_tags",
    ),
    "bad checksum": (
        config(flow(ethernet(), ipv4(), udp(checksum={"choice": "generated", "generated": "bad"}))),
        "flows[0].packet[2].udp.checksum.generated",
    ),
    "bidirectional": (
        config(
            {
                **flow(),
                "tx_rx": {"choice": "device", "device": {"tx_names": ["a"], "rx_names": ["b"], "bidirectional": True}},
            }
        ),
        "flows[0].tx_rx.device.bidirectional",
    ),
    "ipsec imix": (
        config(
            flow(size={"choice": "weight_pairs", "weight_pairs": {"choice": "predefined", "predefined": "ipsec_imix"}})
        ),
        "flows[0].size.weight_pairs.predefined",
    ),
    "jumbo above": (config(flow(size=fixed(9500))), "flows[0].size.fixed"),
    "runt": (config(flow(size=fixed(60))), "flows[0].size.fixed"),
    "store and forward of imix": (config(flow(size=IMIX, metrics=LIFO)), "flows[0].metrics.latency.mode"),
    "two tcp flows": (
        config(flow(ethernet(), ipv4(), tcp()), flow(ethernet(), ipv4(), tcp(), number=2)),
        "flows[0].metrics.enable",
    ),
    "data integrity": (
        config(flow(), options={"port_options": {"data_integrity": True}}),
        "options.port_options.data_integrity",
    ),
    "payload": (config(flow(payload={"choice": "increment_byte"})), "flows[0].payload"),
    "name twice": (config(flow(), flow()), "flows[1].name"),
    "ip options": (
        config(flow(ethernet(), ipv4(options=[{"choice": "router_alert"}]), udp())),
        "flows[0].packet[1].ipv4.options",
    ),
    "stateful": (config(flow(), stateful_flows={"rocev2": []}), "stateful_flows"),
}
