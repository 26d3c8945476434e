# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures a path to a reflector of STAMP and back, shows the session while it runs, and what came of each way."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from liteprobe.host.base import defaults
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.cli.arguments import (
    add,
    add_expect,
    add_probe,
    add_results,
    add_waiting_time,
    every_s,
    is_plain,
    of_options,
    open_probe,
)
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import time_ns, vlan_tags, whole, words

with lazily():
    import rich.console
    import rich.text

    from liteprobe.host.analysis import columns
    from liteprobe.host.cli import results, tables
    from liteprobe.host.clock import timebase
    from liteprobe.host.report import files, stamp_page
    from liteprobe.host.run import figures, stamp

HELP = "measure delay and loss to a STAMP reflector and back, each way (RFC 8762)"
EXAMPLES = """
liteprobe stamp 2001:2::2 --interval 50us
liteprobe stamp 198.18.0.2 --count 1000 --interval 100us --tlv direct-measurement,class-of-service --dscp 46
liteprobe stamp 192.0.2.7 --dst-mac 02:00:00:00:00:07 --probe etherbone://192.168.1.50 --expect 'both.p99 < 1ms'
"""
DEFAULT_PROBE = "sim://reflector"
TLVS = "location, timestamp-information, class-of-service, direct-measurement, access-report, follow-up-telemetry"
#: Options of headers: name, field of the session, type, help, default.
HEADER_OPTIONS: tuple[tuple[str, str, Any, str, Any], ...] = (
    ("--src-mac", "source_mac", str, "MAC address", defaults.SOURCE_MAC),
    (
        "--dst-mac",
        "destination_mac",
        str,
        "MAC address of the reflector, or of the router to it",
        defaults.DESTINATION_MAC,
    ),
    ("--src-port", "source_port", whole, "UDP port", defaults.SOURCE_PORT),
    ("--dscp", "dscp", whole, "DSCP, 0 to 63", 0),
    ("--ttl", "ttl", whole, "TTL or hop limit", 255),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add(parser, "address HOST", str, "IPv4 or IPv6 address of the reflector")
    add_probe(parser, DEFAULT_PROBE)
    group = parser.add_argument_group("session")
    add(group, "--port PORT", whole, "UDP port of the reflector (default: 862)", 862)
    add(group, "--count N", whole, "packets (default: 100)", 100)
    add(group, "--interval TIME", time_ns, "SFD to SFD, like 100us (default: 1ms)", 1_000_000.0)
    add(group, "--padding N", whole, "octets of the TLV Extra Padding in each packet (default: none; 4 over IPv6)")
    add(group, "--ssid ID", whole, "identifier of the session, 0 to 65535 (default: 1)", 1)
    what = f"TLVs to ask for: {TLVS}"
    add(group, "--tlv NAME[,NAME...]", words, what, [])
    counts = group.add_mutually_exclusive_group()
    add(counts, "--stateful", bool, "the reflector counts its answers (default: where its numbers say so)")
    add(counts, "--stateless", bool, "it does not")
    add(
        group,
        "--any-clock",
        bool,
        "give delays of each way though a clock isn't synchronised: they are off by the difference",
    )
    add(group, "--auth KEY", str, "not available: sessions are unauthenticated")
    add_waiting_time(group)
    group = parser.add_argument_group("headers")
    add(group, "--from ADDRESS", str, "source address (default: 198.18.0.1 or 2001:2::1)", dest="source")
    add(
        group, "--via --gateway ADDRESS", str, "router on the way; its MAC address is found before the run, with --from"
    )
    for option, name, kind, what, preset in HEADER_OPTIONS:
        add(group, f"{option} X", kind, f"{what} (default: {preset})", preset, dest=name)
    add(group, "--vlan ID[:PRIORITY]", vlan_tags, "VLAN tag, up to four times, outer first, like 7,100:5", [])
    add(group, "--transmit PORT", whole, "port of the probe (default: 0)", 0)
    add_results(parser, "write a report with plots", "way", has_records=True)
    add_expect(parser, defaults.FIGURES_OF_SESSIONS)


def run(args: argparse.Namespace) -> None:
    """Send, show, print and write."""
    session = session_of(args)
    with open_probe(args) as probe:
        publish = partial(results.publish_run, args, files.STAMP_FORMAT, probe.info(), final, stamp_page.write)
        try:
            with tables.progress(not is_plain(args), every_s(args), "packets") as shown:

                def see(look: figures.TrafficLook) -> None:
                    shown([(session.address, look.rows[0].sent, session.count)])

                result = probe.stamp(session, results.looks_of(args).beside(see, figures.TrafficLook.to_dict))
        except Interrupted as end:
            for part in end.results:
                end.args = (f"{end}; what was measured until then is incomplete",)
                publish(part, end)
            raise
        publish(result)


def session_of(args: argparse.Namespace) -> stamp.StampSession:
    """Return the session that was asked for; raises UsageError when it can't be."""
    if args.auth is not None:
        raise UsageError(
            "the authenticated mode of STAMP is not available (--auth): a probe can't work out a hash for each packet that it "
            "stamps; leave it out, and let the reflector take unauthenticated sessions"
        )
    fields = {name: getattr(args, name) for _, name, *_ in HEADER_OPTIONS}
    with of_options():
        return stamp.StampSession(
            args.address,
            port=args.port,
            count=args.count,
            interval_ns=float(args.interval),
            padding=args.padding,
            identifier=args.ssid,
            tlvs=tuple(args.tlv),
            is_stateful=True if args.stateful else False if args.stateless else None,
            source=args.source,
            via=args.via,
            vlan_tags=tuple(args.vlan),
            transmit=args.transmit,
            any_clock=args.any_clock,
            **fields,
        )


def final(result: stamp.StampResult) -> rich.console.RenderableType:
    """Return what came of a session."""
    session, one_way_ns = result.session, result.one_way_uncertainty_ns
    counted = {True: "counts its answers", False: "does not count its answers", None: "may count its answers or not"}
    error = result.error
    clock = "" if error is None else f"; its clock is {'' if error.is_synchronized else 'not '}synchronised"
    said = [
        f"{session.address} port {session.port} {counted[result.is_stateful]}{clock}. "
        f"{columns.ended(result.duration_s, result.end, result.is_complete)}.",
        f"Clock {result.clock_state}; of both ways {timebase.delay_words(result.uncertainty_ns)}"
        + ("." if one_way_ns is None else f", of each way within {one_way_ns:,.1f} ns."),
    ]
    for one in result.tlvs:
        if one.value:
            said.append(f"TLV {one.name}: {stamp.tlv_words(one)}.")
    table = tables.figures([*stamp.WAY.of(f"name {stamp.COUNTS}"), *shown_delays(result)], result.ways)
    return rich.console.Group(table, *map(rich.text.Text, said), *map(rich.text.Text, result.notes))


def shown_delays(result: stamp.StampResult) -> list[columns.Column]:
    """Return columns of delays, in the unit in which the greatest one has few digits."""
    known = [float(one.most or 0) for one in result.ways]
    unit, scale, digits = ("ns", 1.0, 0) if max(map(abs, known), default=0.0) < 10**6 else ("µs", 1e3, 1)
    keys = "least mean p50 p99 p99_9 most"
    return columns.in_unit(stamp.WAY_DELAYS.of(keys), unit, scale, digits)
