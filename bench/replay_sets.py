# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Row ``sets`` of ``./run bench replay``: configuration sets against a model that knows their octets alone.

Random ones through the source alone, with stalls, late words and a table that answers late, and through a compiled port to the
PHY's octets (``sys`` at 50 MHz). The rates of their stream are worked out from the octets that a host sends for frames of 60 octets
back to back, in datagrams of 1460 octets. Not compared: sets that the maker of sets draws and the host refuses (drawn again).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from liteprobe.cores.formats import DATAGRAM_HEADER_WORDS, DATAGRAM_WORDS, OVERHEAD, SET_PLACES, TICK_NS, SetField
from liteprobe.host.device.link.url import sim_url
from liteprobe.host.probe import Probe
from liteprobe.host.traffic.headers import Headers
from liteprobe.host.traffic.sets import Sets
from liteprobe.host.traffic.stream import Fixed, Interval, Stream
from liteprobe.sim.drivers.replay import sets_port
from liteprobe.sim.drivers.replay.sets import BEFORE, LEAD_TICKS, SetsProgram, Trial, checked, random_program, run
from liteprobe.sim.drivers.replay.sets_maker import Made, template_of
from liteprobe.sim.drivers.system.senders import CABLE, Sent
from liteprobe.sim.drivers.tools.figures import Figure, note, row
from liteprobe.sim.drivers.traffic.port import SYS_PS
from liteprobe.sim.models.traffic.sets import LEAD, outcome
from liteprobe.sim.system.build import build_probe

ANYTHING = 1e12
LENGTH = 60
IP_OCTETS, WIRE_OCTETS = (
    20 + 8 + 4 * DATAGRAM_HEADER_WORDS,
    14 + 4 + 8 + 12,
)  # Around the words of a datagram, in IP and beyond.
RATES = {7: 85, 25: 303, 9: 109}  # Mb/s by octets of a set.
SET_FRAMES = 6000  # Of each.
PROGRAMS = 10  # One after the other on one source.


@row("replay")
def test_sets(is_full: bool) -> Iterator[Figure]:
    """Random sets of all fields, in hostile conditions and at the pins; repeats; rates of sets of 7, 25 and 9 octets."""
    yield from hostile_sets(is_full)
    yield from sets_at_pins(is_full)
    yield from repeats_at_pins()
    for octets, most in RATES.items():
        yield from rate_of(octets, most)


def hostile_sets(is_full: bool) -> Iterator[Figure]:
    """Random programs one after the other on one source: full, dry, stalled; with the table in SDRAM and in a block RAM."""
    counts = dict.fromkeys(("frames", "repeats", "underruns"), 0)
    wrong: list[Trial] = []
    for first in range(0, 1000 if is_full else 100, PROGRAMS):
        with_sdram = first % 50 != 0
        entries = 1 << 16 if with_sdram else 512
        pairs = [
            random_program(seed, 1000, entries, ("any", "full")[seed % 3 == 0])
            for seed in range(first, first + PROGRAMS)
        ]
        done = run([program for _, program in pairs], with_sdram)
        trials = [checked(made, program, one) for (made, program), one in zip(pairs, done, strict=True)]
        wrong += [one for one in trials if one.found]
        counts = {name: count + sum(one.counters[name] for one in done) for name, count in counts.items()}
    for one in wrong[:3]:
        note("; ".join(one.found[:2]))
    yield Figure("sets_hostile_frames", counts["frames"], "frames", 1e6 if is_full else 1e5, is_least=True)
    yield Figure("sets_hostile_repeats", counts["repeats"], "frames", 100, is_least=True)
    yield Figure("sets_hostile_underruns", counts["underruns"], "frames", 100, is_least=True)
    yield Figure("sets_hostile_programs_off", len(wrong), "programs", 0)


def sets_at_pins(is_full: bool) -> Iterator[Figure]:
    """Random programs through a port with sets alone, and one with sets and streams."""
    frames = off = 0
    for seed in range(300 if is_full else 40):
        made, program = random_program(seed, 400, pace="full")
        program = replace(program, stall_256=0, table_latency=(8, 2, 300), prime=len(program.words))
        sys_ps = SYS_PS + seed % 5 - 2  # The clock of sys is another one: up to 100 ppm off.
        found = sets_port.compared(made, sets_port.run(program, sys_ps=sys_ps, with_streams=seed % 2 == 1))
        frames, off = frames + found.frames, off + found.off
    yield Figure("sets_pins_frames", frames, "frames", 1e4, is_least=True)
    yield Figure("sets_pins_frames_and_counters_off", off, "", 0)


def repeats_at_pins() -> Iterator[Figure]:
    """Sets of which each comes when three more frames were due: each start must be on its tick nevertheless."""
    interval, count = 400, 500
    stream = Stream("sparse", 1, Fixed(LENGTH), Interval(interval_ns=TICK_NS * interval))
    sparse = Sets(stream, [{"address": n} for n in range(count)], repeats=3)
    octets = b"".join(b"\x01" + n.to_bytes(4) + b"\xff" * 3 for n in range(count)) + b"\xc0\xff\xff\xff"
    made = Made(sparse, octets, template_of(sparse), sparse.table, Fraction(interval))
    # Each in the middle between the choice of a frame and that of the next, but for the first; the bench counts from the start.
    due = np.arange(count + 1) * 4 * interval
    arrivals = np.repeat(due - LEAD - interval // 2 + LEAD_TICKS, 2)[:-1]
    arrivals[:2] = BEFORE
    done = sets_port.run(SetsProgram(sparse.settings(), made.words, arrivals, prime=1))
    repeated = [n % 4 != 0 for n in range(4 * count)]
    found = sets_port.compared(made, done, repeated[: len(done.port.ticks)])
    yield Figure("sets_repeats_at_pins", done.counters["repeats"], "frames", 3 * count, is_least=True)
    yield Figure("sets_repeats_at_pins_late", done.port.late, "frames", 0)
    yield Figure("sets_repeats_at_pins_off", found.off, "", 0)


# Rates -------------------------------------------------------------------------------------------------


def rate_of(octets: int, most: int) -> Iterator[Figure]:
    """Frames of 60 octets back to back from sets of so many octets: with a control octet each, and as a host sends them."""
    for name, in_run in (("alone", False), ("in_runs", True)):
        made, program = sets_of(octets, in_run)
        found = sets_port.compared(made, sets_port.run(program))
        seconds = SET_FRAMES * (LENGTH + OVERHEAD) * TICK_NS / 1e9
        payload = 4 * DATAGRAM_WORDS
        of_sets = 8 * len(made.octets) / seconds / 1e6
        at_ip = of_sets * (payload + IP_OCTETS) / payload
        on_wire = of_sets * (payload + IP_OCTETS + WIRE_OCTETS) / payload
        yield Figure(f"sets_{octets}_{name}_utilisation", 100 * found.utilisation, "%", 100, is_least=True)
        yield Figure(f"sets_{octets}_{name}_off", found.off + found.frames - SET_FRAMES, "", 0)
        yield Figure(f"sets_{octets}_{name}_stream", of_sets, "Mb/s", ANYTHING)
        yield Figure(f"sets_{octets}_{name}_stream_ip", at_ip, "Mb/s", most if in_run else ANYTHING)
        yield Figure(f"sets_{octets}_{name}_stream_wire", on_wire, "Mb/s", ANYTHING)


def sets_of(octets: int, in_run: bool) -> tuple[Made, SetsProgram]:
    """Return sets for frames of 60 octets."""
    chance = np.random.default_rng(octets)
    if octets == 25:
        return wide_sets(chance, in_run)
    headers = Headers(vlan_tags=(1,))
    stream = Stream("frames", 1, Fixed(LENGTH), Interval(), headers=headers, probe=False)
    columns = {"address": chance.integers(0, 1 << 32, SET_FRAMES), "vlan": chance.integers(0, 1 << 16, SET_FRAMES)}
    if octets == 9:
        columns["length"] = np.full(SET_FRAMES, LENGTH)
    made = Sets.from_columns(stream, columns)
    sizes = {"address": 4, "vlan": 2, "length": 2}
    control = made.settings().fields
    fields = [b"".join(int(columns[name][n]).to_bytes(sizes[name]) for name in columns) for n in range(SET_FRAMES)]
    content = b"".join(made.octets()) if in_run else joined(control, fields)
    whole = Made(made, content, template_of(made), made.table, None)
    return whole, SetsProgram(made.settings(), whole.words, np.full(len(whole.words), BEFORE))


def wide_sets(chance: np.random.Generator, in_run: bool) -> tuple[Made, SetsProgram]:
    """Return sets with all fields but an IPv4 address: IPv6 and two tags are more than 60 octets, so 16 of payload vary."""
    headers = Headers(vlan_tags=(1, 2), ethertype=0x88B5)
    stream = Stream("wide", 1, Fixed(LENGTH), Interval(), headers=headers, probe=False, payload=bytes(38))
    table = chance.integers(0, 1 << 32, 1 << 16)
    made = Sets(stream, [], fields=("vlan", "inner_vlan", "length", "index"), entry="mac.source", table=table.tolist())
    place = headers.payload_offset
    settings, template = made.settings(), template_of(made)
    settings = replace(
        settings,
        fields=settings.fields | SetField.ADDRESS6,
        places=settings.places | place << 8 * SET_PLACES.index(SetField.ADDRESS6),
    )
    template = replace(template, fields=template.fields | 2, places=template.places | {2: place})
    fields = [
        chance.bytes(20) + LENGTH.to_bytes(2) + chance.bytes(2)  # Address, tags, length, index.
        for _ in range(SET_FRAMES)
    ]
    content = joined(settings.fields, fields, in_run)
    whole = Made(made, content, template, made.table, None)
    return whole, SetsProgram(settings, whole.words, np.full(len(whole.words), BEFORE), tuple(made.table.tolist()))


def joined(control: int, fields: Sequence[bytes], in_run: bool = False) -> bytes:
    """Return a stream of sets, by hand."""
    if in_run:
        body = b"\xa0" + (len(fields) - 1).to_bytes(2) + bytes([control]) + b"".join(fields)
    else:
        body = b"".join(bytes([control]) + one for one in fields)
    body += b"\xc0"
    return body + b"\xff" * (-len(body) % 4)


# The whole probe ---------------------------------------------------------------------------------------


@row("replay")
def test_sets_system(is_full: bool) -> Iterator[Figure]:
    """The simulated preset ``replay``: sets by UDP into its ring, a table in its SDRAM, 64 octets back to back at the pins."""
    build = build_probe("own", with_cpu=False, preset="replay")
    chance, count = np.random.default_rng(1), 30_000 if is_full else 3000
    table = chance.integers(0, 1 << 32, 5000).tolist()
    stream = Stream("line", 7, Fixed(64), Interval(), headers=Headers(vlan_tags=(1,)))
    limits = {"address": 1 << 32, "vlan": 1 << 16, "index": len(table)}
    columns = {name: chance.integers(0, limit, count) for name, limit in limits.items()}
    asked = Sets.from_columns(stream, columns, entry="ipv4.destination", table=table)
    with (
        TemporaryDirectory() as files,
        Probe(sim_url(CABLE, build=build, link="own", pcap=Path(files) / "pins")) as probe,
    ):
        row = probe.sets(asked).ports[0]
        frames = Sent(probe, Path(files)).pins(0)
    truth = outcome(b"".join(asked.octets()), template_of(asked), table, None, 0, [False] * count)
    octets = sets_port.SetOctets(stream)
    pairs = list(zip(truth.frames, frames, strict=False))
    counts = row.counts
    yield Figure("sets_system_frames", len(frames), "frames", count, is_least=True)
    yield Figure("sets_system_octets_off", sum(octets.frame(one, ns) != got for one, (ns, got) in pairs), "frames", 0)
    yield Figure(
        "sets_system_starts_off", sum(ns - frames[0][0] != TICK_NS * one.due for one, (ns, _) in pairs), "frames", 0
    )
    off = (counts.sets != count) + counts.repeats + counts.underruns + (row.late or 0)
    yield Figure("sets_system_counters_off", off, "", 0)
