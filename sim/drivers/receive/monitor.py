# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Plays frames into ports that monitor or measure streams, and holds what comes out against the model."""

import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.capture.descriptors import descriptor_layout
from liteprobe.cores.formats import (
    DAMAGE, FAULTS, GIANT_LENGTH, IFG, MIN_LENGTH, PREAMBLE_OCTET, SFD_OCTET, STREAM_SLOTS_MAX, TICK_NS, Layer3, UnifiedFlag,
)
from liteprobe.cores.measure.field_delay import FieldDelay
from liteprobe.cores.receive.path import MeasurePath, MonitorPath
from liteprobe.cores.receive.unified.key import key_layout
from liteprobe.cores.timebase.clock import PastTime
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.tools.pins import PinnedBench, fields_of
from liteprobe.sim.models.receive.monitor import Answer, MonitorModel, Outcome
from liteprobe.sim.models.receive.unified import WITH_PORTS, UnifiedHeader

# Numbers ------------------------------------------------------------------------------------------

PORTS   = 2
MAC     = 0x024c500000aa # Of the probe; management is on port 0.
LATENCY = 54             # Of a filter.

# Parity Matcher -----------------------------------------------------------------------------------

class ParityMatcher(LiteXModule):
    """In the place of a filter: matches frames by the parity of all fields that they have.

    Attributes
    ----------
    key, start, done, matched, passed, rule, names_channel, channel
        As of `FilterMatcher`. ``rule`` is the protocol; tagged frames with an odd VLAN id name a channel.
    drop : Signal(), in; passes what doesn't match.
    """
    def __init__(self):
        self.key           = Record(key_layout())
        self.start         = Signal()
        self.done          = Signal()
        self.matched       = Signal()
        self.passed        = Signal()
        self.rule          = Signal(8)
        self.names_channel = Signal()
        self.channel       = Signal(3)
        self.drop          = Signal()

        # # #

        key, held = self.key, Record(key_layout())
        age       = Signal(max=LATENCY + 1)
        is_any, is_ip, is_ipv6 = held.layer3 != 0, held.layer3[1], held.layer3 == 3
        fields = [
            (held.source[:32],       is_any),  (held.source[32:],      is_ipv6),
            (held.destination[:32],  is_any),  (held.destination[32:], is_ipv6),
            (held.protocol,          is_ip),   (held.vlan,             held.has_tag),
            (held.source_port,       held.has_ports),  (held.destination_port, held.has_ports),
            (held.source_mac,        held.has_macs),   (held.destination_mac,  held.has_macs),
        ]
        parity, parts = Signal(), Signal(len(fields))
        for number, (value, condition) in enumerate(fields):
            self.comb += parts[number].eq(condition & Reduce("XOR", [value[bit] for bit in range(len(value))]))
        self.comb += parity.eq(Reduce("XOR", [parts[number] for number in range(len(fields))]))
        self.sync += [
            self.done.eq(age == LATENCY - 1),
            If(age == LATENCY - 1,
                self.matched.eq(parity),
                self.passed.eq(parity ^ self.drop),
                self.rule.eq(Mux(is_ip, held.protocol, 255)),
                self.names_channel.eq(held.has_tag & held.vlan[0]),
                self.channel.eq(held.vlan[1:4]),
            ),
        ]
        # A row a cycle, for 32 cycles; what is under way behind them is not disturbed by the next frame.
        first, second = Record(key_layout()), Signal(max=LATENCY + 1)
        self.sync += [
            If(second != 0, second.eq(second + 1)),
            If(age != 0, age.eq(age + 1)),
            If(age == LATENCY - 1, age.eq(0)),
            If(second == 32, second.eq(0), age.eq(33), held.eq(first)),
            If(self.start, first.eq(key), second.eq(1)),
        ]

# Monitor Bench ------------------------------------------------------------------------------------

class Now(LiteXModule):
    """A clock that counts ticks.

    ``now``: Signal(64), out; ns, in ``timebase``. ``past``: as of TimebaseClock.
    """
    def __init__(self):
        self.now  = Signal(64)
        self.past = PastTime(self.now)

        # # #

        self.sync.timebase += self.now.eq(self.now + 8)

OF_HASH = ("sample_by_hash", "sample_seed", "table_write", "table_number", "table_value")

class MonitorBench(PinnedBench):
    """Ports on pins: ``<domain>_clk``, ``<domain>_rst``, settings for both, and ``p<n>_*`` of each port.

    ``with_fields``: port 0 checks fills and takes stamps from fields, and so does port 1, which only measures; it has the pins of
    a monitor, too, on which nothing comes. Without ``with_hash`` ports hash no frame; the pins of settings that would choose by it
    lead nowhere.
    """
    def __init__(self, with_fields=False, with_hash=True):
        PinnedBench.__init__(self, "sys", "timebase", "eth_rx")
        self.layouts   = []
        self.clock     = Now()
        self.with_hash = with_hash
        shared = {name: self.add_pin(name, width) for name, width in [
            ("snap_length", 16), ("keep_headers", 1), ("keep_damaged", 1), ("keep_own", 1), ("enable", 1), ("sample_shift", 3),
            ("sample_by_hash", 1), ("sample_seed", 32), ("table_write", 1), ("table_number", 7), ("table_value", 3),
            ("clear", 1), ("latch", 1), ("drop", 1)]}
        self.fields = {name: self.add_pin(name, width) for name, width in [
            ("stream_base", 16), ("place_write", 1), ("place_number", 5), ("place_value", 32)]}
        for port in range(PORTS):
            add = self.add_measure if with_fields and port else self.add_monitor
            self.add_port(port, add(port, shared, with_fields), with_fields)

    def add_monitor(self, port, shared, with_fields):
        """Return the path of a port that monitors."""
        matcher = ParityMatcher()
        path    = MonitorPath(self.clock, matcher, port, management_mac=MAC if port == 0 else None, with_fields=with_fields,
            with_hash=self.with_hash)
        self.submodules += matcher, path
        self.comb += matcher.drop.eq(shared["drop"])
        for name, pin in shared.items():
            if name != "drop" and (self.with_hash or name not in OF_HASH):
                self.comb += getattr(path, name).eq(pin)
        return path

    def add_measure(self, port, shared, with_fields):
        """Return the path of a port that measures streams."""
        path = MeasurePath(self.clock, with_management=True)
        self.submodules += path
        self.comb += [getattr(path, name).eq(shared[name]) for name in ("clear", "latch")]
        path.skip = Signal()
        for name, layout in [("descriptor", descriptor_layout()), ("header", [("data", 32)]), ("data", [("data", 32)])]:
            setattr(path, name, stream.Endpoint(layout))
        return path

    def add_fields(self, path):
        """Take stamps from fields, and return what is measured then."""
        fields = FieldDelay(STREAM_SLOTS_MAX)
        self.submodules += fields
        bus = fields.bus
        self.comb += [
            fields.passing.eq(path.arrivals.passing),
            path.measured.connect(fields.measured),
            fields.stream_base.eq(self.fields["stream_base"]),
            bus.cyc.eq(self.fields["place_write"]), bus.stb.eq(bus.cyc), bus.we.eq(bus.cyc),
            bus.adr.eq(self.fields["place_number"]),
            bus.dat_w.eq(self.fields["place_value"]),
        ]
        return fields.source

    def add_port(self, port, path, with_fields):
        """Add the pins of a port."""
        self.add_inputs(path.sink, ["valid", "data", "error"], f"p{port}_sink_")
        self.add_input(f"p{port}_skip", path.skip)
        for name in ("descriptor", "header", "data", "management_source"):
            self.add_source(f"p{port}_{name}", getattr(path, name), [*fields_of(getattr(path, name)), "last"])
        measured = self.add_fields(path) if with_fields else path.measured
        self.add_source(f"p{port}_measured", measured, [*fields_of(measured), "last"])
        parser, bus = path.arrivals.parser, path.tally.bus
        self.add_outputs(parser, ["seen"], f"p{port}_")
        self.add_outputs(parser.frame, ["is_classified", "length"], f"p{port}_")
        self.add_outputs(path.tally, ["busy"], f"p{port}_")
        self.add_outputs(bus, ["dat_r", "ack"], f"p{port}_bus_")
        self.add_inputs(bus, ["adr", "cyc", "stb"], f"p{port}_bus_")
        self.layouts.append(path.tally.layout)

BENCH = CompiledBench(MonitorBench, Path(__file__).with_name("monitor.cpp"))

# Runs ---------------------------------------------------------------------------------------------

QUIET_TICKS = 20  # Before the first frame.
NO_ERROR = 0xFFFFFFFF
PREAMBLE = bytes([PREAMBLE_OCTET] * 7 + [SFD_OCTET])

#: ``is``: bit 0: a probe; bit 1: it passed; bit 2: it is bare.
MEASURED_DTYPE = np.dtype([
    ("stamp", "<u8"), ("tx_stamp", "<u8"), ("sequence", "<u4"), ("length", "<u2"), ("flags", "<u2"), ("stream_id", "<u2"),
    ("is", "<u2"), ("cycle", "<u4"), ("bit_errors", "<u4"),
])
SEEN_DTYPE = np.dtype([("length", "<u4"), ("cycle", "<u4")])
CLASSIFIED = 1 << 31
HEADER_OCTETS = 112  # Words 4 to 31 of a unified header.


@dataclass(frozen=True)
class Sent:
    """A frame on the wire: its octets without FCS, idle octets before its preamble, and what is wrong with it."""

    frame: bytes
    gap: int = IFG
    bad_fcs: bool = False
    error_at: int = NO_ERROR
    """Octet of the frame that comes with RX_ER."""

    def octets(self) -> bytes:
        """Return what is on the pins."""
        fcs = zlib.crc32(self.frame) ^ self.bad_fcs
        return PREAMBLE + self.frame + fcs.to_bytes(4, "little")


@dataclass(frozen=True)
class Kept:
    """A descriptor, and the words that came with it."""

    head: bytes
    hash: int
    has_header: bool
    lost: bool
    skipped: bool
    header: bytes
    data: bytes


@dataclass(frozen=True)
class PortRun:
    """Holds what came out of a port."""

    seen: NDArray[np.void]
    measured: NDArray[np.void]
    kept: list[Kept]
    management: list[bytes]
    counters: dict[str, int]


@cache
def layouts(with_fields: bool) -> list[dict[str, tuple[int, int]]]:
    """Return where the snapshot of each port has each counter: name to first word and words."""
    found: list[dict[str, tuple[int, int]]] = MonitorBench(with_fields).layouts
    return found


def stamps(sent: Sequence[Sent]) -> list[int]:
    """Return when the SFD of each frame stands on the pins (ns)."""
    found, tick = [], QUIET_TICKS
    for one in sent:
        tick += one.gap
        found.append(TICK_NS * (tick + len(PREAMBLE) - 1))
        tick += len(one.octets())
    return found


def wire(sent: Sequence[Sent]) -> bytes:
    """Return the file that the bench plays."""
    parts = []
    for one in sent:
        octets = one.octets()
        error_at = one.error_at if one.error_at == NO_ERROR else len(PREAMBLE) + one.error_at
        parts.append(struct.pack("<III", one.gap, len(octets), error_at) + octets)
    return b"".join(parts)


def kept(octets: bytes) -> Iterator[Kept]:
    """Yield the records of a port."""
    at = 0
    while at < len(octets):
        head, (flow, bits, words) = octets[at : at + 16], struct.unpack_from("<III", octets, at + 16)
        at += 28
        has_header, lost, skipped = (bool(bits >> bit & 1) for bit in range(3))
        header = octets[at : at + HEADER_OCTETS * (has_header and not skipped)]
        at += len(header)
        data = octets[at : at + 4 * words * (not skipped)]
        at += len(data)
        yield Kept(head, flow, has_header, lost, skipped, header, data)


def frames_of(words: NDArray[np.uint32]) -> list[bytes]:
    """Return the frames that went to management."""
    frames, octets = [], b""
    for data, marks in words.reshape(-1, 2).tolist():
        octets += struct.pack("<I", data)
        if marks >> 8:
            frames.append(octets[: len(octets) - 4 + (marks & 15).bit_length()])
            octets = b""
    return frames


@dataclass(frozen=True)
class Reader:
    """Describes how the reader of a port behaves."""

    stall: int = 0
    """Of 256 cycles, those in which it takes nothing."""
    skip: int = 0
    """Of 256 records, those of which it takes the descriptor alone."""
    pause: int = 0
    """Cycles of each stretch in which it takes nothing at all; 0 for none."""


ALWAYS = Reader()
AS_THEY_ARE: Mapping[str, int] = MappingProxyType({})


def run(
    sent: Sequence[Sequence[Sent]],
    reader: Reader = ALWAYS,
    settings: Mapping[str, int] = AS_THEY_ARE,
    with_fields: bool = False,
    with_hash: bool = True,
) -> list[PortRun]:
    """Play frames into each port and return what came out.

    Parameters
    ----------
    sent : of each port.
    reader : of both.
    settings : by name, of both ports; ``table<n>`` are entries of the channel table, ``place<n>`` of the places of stamps.
    with_fields : both ports check fills and take stamps from fields, and port 1 only measures.
    with_hash : they hash frames.
    """
    files = {f"wire{port}": wire(sent[port]) for port in range(PORTS)}
    behaviour = {"stall": reader.stall, "skip": reader.skip, "pause": reader.pause}
    options = {"snap_length": 0xFFFF, "enable": 1, **settings, **behaviour}
    done = BENCH.run(files, options, with_fields=with_fields, with_hash=with_hash)
    found = []
    for port, line in enumerate(done.output.splitlines()):
        snapshot = list(map(int, line.split()[1:]))
        found.append(
            PortRun(
                done.array(f"seen{port}", SEEN_DTYPE),
                done.array(f"measured{port}", MEASURED_DTYPE),
                list(kept(done.files[f"records{port}"])),
                frames_of(done.array(f"management{port}", np.uint32)),
                {
                    name: sum(snapshot[first + word] << 32 * (words - 1 - word) for word in range(words))
                    for name, (first, words) in layouts(with_fields)[port].items()
                },
            )
        )
    assert len(found) == PORTS
    return found


# Comparison ---------------------------------------------------------------------------------------

LEAST_SPACING = 32  # Cycles between two frames that are classified.
NOTHING = 255


def parity_answer(drop: bool = False) -> Callable[[UnifiedHeader], Answer]:
    """Return the filter of the bench: frames match by the parity of all fields that they have."""

    def answer(header: UnifiedHeader) -> Answer:
        fields = [header.source, header.destination]
        if header.layer3 in (Layer3.IPV4, Layer3.IPV6):
            fields.append(bytes([header.protocol]))
        if header.tags:
            fields.append((int.from_bytes(header.tags[0][:2]) & 0xFFF).to_bytes(2))
        if UnifiedFlag.TRANSPORT in header.flags and header.protocol in WITH_PORTS:
            fields.append(header.ports)
        fields.append(header.macs)
        matched = int.from_bytes(b"".join(fields)).bit_count() % 2 == 1
        vlan = int.from_bytes(header.tags[0][:2]) if header.tags else 0
        rule = header.protocol if header.layer3 in (Layer3.IPV4, Layer3.IPV6) else NOTHING
        return Answer(matched, matched != drop, rule, vlan >> 1 & 7 if vlan & 1 else None)

    return answer


@dataclass
class Findings:
    """Lists what differs from the model, and what was lost on the way."""

    wrong: list[str] = field(default_factory=list)
    frames: int = 0
    unclassified: int = 0
    kept: int = 0
    lost: int = 0
    without_header: int = 0
    unplaced: int = 0

    def expect(self, what: str, got: object, wanted: object) -> None:
        """Note where they differ."""
        if got != wanted:
            self.wrong.append(f"{what}: {got!r}, not {wanted!r}")


def verdict_of(sent: Sent) -> UnifiedFlag:
    """Return what the MAC says of a frame."""
    fcs = UnifiedFlag.FCS_ERROR if sent.bad_fcs else UnifiedFlag.NONE
    return fcs | (UnifiedFlag.SYMBOL_ERROR if sent.error_at != NO_ERROR else UnifiedFlag.NONE)


def check_measured(findings: Findings, row: dict[str, int], outcome: Outcome, stamp: int) -> None:
    """Hold what the meters get of a frame against the model."""
    header, answer = outcome.header, outcome.answer
    is_probe = header.tx_stamp is not None
    wanted = {
        "stamp": stamp,
        "length": header.length,
        "flags": int(header.flags & ~UnifiedFlag.HEADER),
        "is": is_probe | answer.passed << 1,
    }
    if is_probe:
        wanted |= {
            "tx_stamp": header.tx_stamp or 0,
            "sequence": header.sequence,
            "stream_id": int.from_bytes(header.detail[2:]),
        }
    got = {name: int(row[name]) for name in wanted}
    got["flags"] &= ~int(UnifiedFlag.HEADER)
    findings.expect("measured", got, wanted)


def check_kept(findings: Findings, kept: Kept, outcome: Outcome, keep_headers: bool) -> None:
    """Hold a record against the model; where it says that something was lost, that must be all that is missing."""
    header = outcome.header
    findings.lost += kept.lost
    if kept.lost:
        header.snap_length = 0
        findings.expect("octets of a lost frame", (kept.data, kept.has_header), (b"", False))
    else:
        findings.expect("octets", kept.data, b"" if kept.skipped else outcome.octets)
        findings.without_header += keep_headers and not kept.has_header
    if not kept.has_header:
        header.flags &= ~UnifiedFlag.HEADER
    octets = header.octets()
    findings.expect("head", kept.head, octets[:16])
    findings.expect("hash", kept.hash, header.hash)
    if kept.has_header and not kept.skipped:
        findings.expect("header", kept.header, octets[16:])


def has_bad_length(header: UnifiedHeader) -> bool:
    """Return whether a probe frame that isn't damaged says a wrong length, or ends in the probe's header."""
    is_whole = UnifiedFlag.PROBE in header.flags and not header.flags & int(DAMAGE)
    return is_whole and (UnifiedFlag.LENGTH_ERROR in header.flags or header.tx_stamp is None)


def check_spacing(findings: Findings, seen: Sequence[tuple[int, bool]]) -> None:
    """Frames that end soon after one that was classified are not; all others are."""
    last = -LEAST_SPACING
    for cycle, classified in seen:
        if classified != (cycle - last >= LEAST_SPACING):
            findings.wrong.append(f"cycle {cycle}, {cycle - last} after the last: classified {classified}")
        last = cycle if classified else last


def outcomes(model: MonitorModel, sent: Sequence[Sent], run: PortRun) -> Iterator[tuple[Sent, int, Outcome]]:
    """Yield each frame that was classified with its stamp and what becomes of it."""
    flags = (run.seen["length"] & CLASSIFIED) != 0
    for one, stamp, is_classified in zip(sent, stamps(sent), flags.tolist(), strict=True):
        if is_classified:
            yield one, stamp, model.frame(one.frame, stamp, verdict_of(one))


def check(model: MonitorModel, sent: Sequence[Sent], run: PortRun) -> Findings:
    """Return what differs between a port and its model; frames must all have an SFD that is taken."""
    findings, settings = Findings(), model.settings
    seen = list(zip(run.seen["cycle"].tolist(), ((run.seen["length"] & CLASSIFIED) != 0).tolist(), strict=True))
    findings.expect("frames seen", len(seen), len(sent))
    if findings.wrong:
        return findings
    check_spacing(findings, seen)
    count = Counter[str]()
    measured, kept, at = iter(run.measured), run.kept, 0
    found = list(outcomes(model, sent, run))
    findings.expect("frames measured", len(run.measured), len(found))
    for (_, stamp, outcome), row in zip(found, measured, strict=False):
        check_measured(findings, row, outcome, stamp)
        count["length_errors"] += has_bad_length(outcome.header)
        count["bad_probes"] += outcome.header.tx_stamp is not None and bool(outcome.header.flags & int(FAULTS))
        count["matched"] += outcome.answer.matched
        count["passed"] += outcome.answer.passed
        count["damaged"] += outcome.is_damaged
        count["own_frames"] += outcome.is_own
        count["sampled"] += outcome.is_kept
        if not outcome.is_kept:
            continue
        if at == len(kept) or struct.unpack_from("<Q", kept[at].head)[0] != stamp:
            findings.unplaced += 1
            continue
        check_kept(findings, kept[at], outcome, settings.keep_headers)
        at += 1
    findings.expect("records", at, len(kept))
    findings.frames, findings.kept = len(sent), len(kept)
    findings.unclassified = len(sent) - len(found)
    check_counters(findings, sent, run.counters, count)
    return findings


def check_counters(findings: Findings, sent: Sequence[Sent], counters: dict[str, int], count: Counter[str]) -> None:
    """Hold the counters against what was on the wire, and what came out."""
    lengths = [len(one.frame) for one in sent]
    wanted = {
        **count,
        "all_frames": len(sent),
        "all_octets": sum(min(length, 0xFFFF) for length in lengths),
        "fcs_errors": sum(one.bad_fcs for one in sent),
        "symbol_errors": sum(one.error_at != NO_ERROR for one in sent),
        "runts": sum(length < MIN_LENGTH for length in lengths),
        "giants": sum(length > GIANT_LENGTH for length in lengths),
        "preamble_errors": 0,
        "overflows": 0,
        "stamp_errors": 0,
        "classified": len(sent) - findings.unclassified,
        "unclassified": findings.unclassified,
        "kept": findings.kept,
        "staging_dropped": findings.lost,
        "headers_lost": findings.without_header,
        "unplaced": findings.unplaced,
    }
    for name in ("length_errors", "bad_probes", "matched", "passed", "damaged", "own_frames", "sampled"):
        wanted.setdefault(name, 0)
    got = {name: value for name, value in counters.items() if name in wanted}
    findings.expect("counters", got, {name: wanted[name] for name in got})
    findings.expect("names of counters", sorted(got), sorted(wanted))
    findings.expect("kept and unplaced", counters["kept"] + counters["unplaced"], counters["sampled"])
