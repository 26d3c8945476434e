# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Holds what came out of a port that monitors against its model: every descriptor, header and octet, and all counters."""

import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from liteprobe.cores.formats import DAMAGE, FAULTS, GIANT_LENGTH, Layer3, MIN_LENGTH, UnifiedFlag
from liteprobe.sim.bench.receive.monitor_run import CLASSIFIED, NO_ERROR, Kept, PortRun, Sent, stamps
from liteprobe.sim.models.monitor import Answer, MonitorModel, Outcome
from liteprobe.sim.models.unified import WITH_PORTS, UnifiedHeader

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
    """What differs from the model, and what was lost on the way."""

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
