# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Rows of bench/monitor.py about filters: the gateware's tables, and expressions against libpcap on every frame."""

import ctypes
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.base.errors import UsageError
from liteprobe.host.capture.decode import BlockDecoder
from liteprobe.host.packets.filter import libpcap
from liteprobe.host.packets.filter.boxes import FilterDoesNotFit
from liteprobe.host.packets.filter.expression import Expression, parse
from liteprobe.host.packets.unified import unified_headers
from liteprobe.sim.drivers.capture.blocks import Captured, blocks_of
from liteprobe.sim.drivers.filter import faults, tcpdump
from liteprobe.sim.drivers.filter import filter as filter_compare
from liteprobe.sim.drivers.filter.expressions import (
    BY_LIBPCAP,
    DEEP,
    EXPRESSIONS,
    OCTETS,
    ON_HOST,
    Frames,
    RandomExpressions,
    rare,
    varied,
)
from liteprobe.sim.drivers.frames import stacks
from liteprobe.sim.drivers.tools.figures import Figure, note, row
from liteprobe.sim.models.receive.filter import FilterModel

Answers = NDArray[np.bool_]
SEEDS = range(1, 6)  # Of stacks.
SNAPS = (65535, 65535, 64, 40, 20)


@row("monitor")
def test_filter(is_full: bool) -> Iterator[Figure]:
    """Random rules and packets through the filter of the gateware, both ports at line rate, against the model."""
    rule_sets = 2000 if is_full else 400
    result = filter_compare.compare(seed=6, rule_sets=rule_sets, packets=150)
    yield Figure("filter_packets", result.packets, "packets", 100_000, is_least=True)
    yield Figure("filter_rule_sets", result.rule_sets, "sets", 100, is_least=True)
    yield Figure("filter_disagreements", result.disagreements, "packets", 0)
    yield Figure("filter_row_slots_used", result.rows_used, "rows", 64, is_least=True)
    yield Figure("filter_terms_used", result.terms_used, "terms", 8, is_least=True)
    yield Figure("filter_hits_off", result.counters_off, "counters", 0)
    # `Decision` takes an answer up to 54 cycles after the frame's end; frames come each 32.
    yield Figure("filter_latency", max(result.latencies), "cycles", 54)


def made(count: int, rng: random.Random) -> list[bytes]:
    """Return frames with up to 4 tags and labels, extension headers, fragments and faults."""
    whole = [frame for seed in SEEDS for frame in stacks.stacks(seed)]
    others = [*varied(count // 5, rng), *rare(count // 50, rng)]
    return [*whole, *others, *stacks.fuzz(count - len(whole) - len(others), seed=9)]


class Said:
    """Counts answers that differ from libpcap's by what says so, and of those that broken frames excuse, what is broken."""

    def __init__(self, octets: Sequence[bytes]) -> None:
        self.kinds: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self._fault = cache(lambda number: faults.fault(octets[number]))

    def off(self, expression: Expression, headers: NDArray[np.void], here: Answers, there: Answers) -> Answers:
        """Return the frames that differ and of which it isn't said; those that a broken frame alone excuses are looked at."""
        unsaid = np.asarray(here != there)
        for one in sorted(expression.differences(), key=lambda one: one.is_of_broken):
            explained = unsaid & one.explains(headers, here, there)
            self.kinds[one.text] += int(np.count_nonzero(explained))
            unsaid &= ~explained
            if one.is_of_broken:
                for number in np.flatnonzero(explained).tolist():
                    self.faults[self._fault(number) or "nothing"] += 1
        return unsaid


def witness(text: str, frames: Sequence[tuple[bytes, int]]) -> NDArray[np.bool_]:
    """Return which frames (octets and snap length) libpcap takes, one by one."""

    class PacketHeader(ctypes.Structure):
        """A pcap_pkthdr."""

        _fields_ = (
            ("seconds", ctypes.c_long),
            ("microseconds", ctypes.c_long),
            ("kept", ctypes.c_uint32),
            ("length", ctypes.c_uint32),
        )

    pcap, program = libpcap.library(), libpcap.Program()
    handle = pcap.pcap_open_dead(libpcap.LINK_ETHERNET, libpcap.SNAP_LENGTH)
    if pcap.pcap_compile(handle, program, text.encode(), libpcap.OPTIMIZE, libpcap.NETMASK_UNKNOWN):
        error = pcap.pcap_geterr(handle).decode()
        if error == libpcap.REJECTS_ALL:
            return np.zeros(len(frames), np.bool_)
        raise UsageError(f"'{text}': {error}")
    found = [
        bool(
            pcap.pcap_offline_filter(
                ctypes.byref(program),
                ctypes.byref(PacketHeader(0, 0, min(snap, len(frame)), len(frame))),
                ctypes.c_char_p(frame[:snap]),
            )
        )
        for frame, snap in frames
    ]
    pcap.pcap_freecode(program)
    pcap.pcap_close(handle)
    return np.array(found, np.bool_)


def off_witness(texts: Sequence[str], frames: Sequence[bytes], rng: random.Random) -> int:
    """Return how many records of a capture ``--host-filter`` decides otherwise than libpcap does, frame by frame."""
    cut = [(frame, rng.choice(SNAPS)) for frame in frames if len(frame) >= 14]
    records = [Captured(at, frame, with_header=at % 2 == 0, snap=snap) for at, (frame, snap) in enumerate(cut)]
    batch = BlockDecoder().decode(blocks_of(records))
    assert len(batch) == len(cut)
    return sum(
        int(np.count_nonzero(libpcap.FrameFilter(libpcap.compiled(text))(batch) != witness(text, cut)))
        for text in texts
    )


def expressions(captured: Sequence[bytes], is_full: bool) -> Iterator[Figure]:
    """Filter expressions over every frame: libpcap, tcpdump, this host with what it says of differences, the probe's tables."""
    rng = random.Random(8)
    some = captured if is_full else rng.sample(captured, min(len(captured), 20_000))
    frames = Frames.of([*some, *made(100_000, rng)])
    few = Frames.of(
        [*rng.sample(captured, 500), *varied(300, rng), *rare(60, rng), *stacks.stacks()[::5], *stacks.fuzz(300, 10)]
    )
    headers, few_headers = unified_headers(frames.packed()), unified_headers(few.packed())
    maker = RandomExpressions(rng, few.keys)
    texts = [*EXPRESSIONS, *ON_HOST, *DEEP, *OCTETS, *(maker.expression() for _ in range(220))]
    unsaid = exact = off_tables = fitting = off_tcpdump = 0
    said, asked = Said(frames.octets), tcpdump.Witness(frames.octets) if tcpdump.is_there() else None
    for text in texts:
        expression = parse(text)
        before = said.kinds.total()
        here, there = expression.matches(headers), libpcap.matches(text, frames.octets)
        found = said.off(expression, headers, here, there)
        for number in np.flatnonzero(found)[:1]:
            note(f"'{text}': {frames.octets[number][:100].hex()}")
        unsaid += int(np.count_nonzero(found))
        exact += said.kinds.total() == before and not found.any()
        off_tcpdump += asked is not None and not asked.takes(text, there)
        try:
            model = FilterModel(expression.fit().words())
        except FilterDoesNotFit:
            continue
        fitting += 1
        passed = np.array([model.decide(key).passed for key in few.keys])
        off_tables += int(np.count_nonzero(passed != expression.matches(few_headers)))
    answers = len(texts) * len(frames.octets)
    for kind, count in said.kinds.most_common():
        note(f"differs as said: {count} of {answers} answers: {kind}")
    for fault, count in said.faults.most_common():
        note(f"excused by a broken frame alone: {count} answers: {fault}")
    note(f"answered as libpcap does on every frame: {exact} of {len(texts)} expressions")
    yield Figure("filter_expressions", len(texts), "expressions", 300, is_least=True)
    yield Figure("filter_expressions_that_fit", fitting, "expressions", 100, is_least=True)
    yield Figure("filter_frames_to_libpcap", len(frames.octets), "frames", 110_000, is_least=True)
    yield Figure("filter_host_off_libpcap_unsaid", unsaid, "frames", 0)
    yield Figure("filter_excused_but_not_broken", said.faults["nothing"], "answers", 0)
    yield Figure("filter_tables_off_host", off_tables, "frames", 0)
    every = [*texts, *BY_LIBPCAP]
    yield Figure("filter_host_filter_expressions", len(every), "expressions", 300, is_least=True)
    yield Figure("filter_host_filter_off_libpcap", off_witness(every, few.octets, rng), "frames", 0)
    if asked:
        off_tcpdump += sum(not asked.takes(text, libpcap.matches(text, frames.octets)) for text in BY_LIBPCAP)
        yield Figure("filter_expressions_to_tcpdump", len(every), "expressions", 300, is_least=True)
        yield Figure("filter_expressions_off_tcpdump", off_tcpdump, "expressions", 0)
    else:
        note("skipped: tcpdump as a witness, it is not installed (apt install tcpdump)")
