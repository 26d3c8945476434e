# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Gaps of captures that a compiled port replays, and the row ``peers``: those of tcpreplay, of the same file, in one run."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import peers
from numpy.typing import NDArray
from peers import Read, read

from liteprobe.cores.formats import MIN_LENGTH, OVERHEAD, TICK_NS
from liteprobe.host.traffic.trace.trace import Trace
from liteprobe.sim.drivers.frames import corpora
from liteprobe.sim.drivers.replay import port
from liteprobe.sim.drivers.replay.port import Program
from liteprobe.sim.drivers.system import senders
from liteprobe.sim.drivers.tools.figures import Figure, note, row
from liteprobe.sim.models.traffic.replay import TraceFrame

BUSIEST_LOAD = Fraction(8, 10)
PEER_LOAD, PEER_FRAMES = 0.8, 50_000
EDGES_NS = (0, 8, 100, 1000, 10_000, 100_000, 1_000_000)
ANYTHING = 1e12
PEER_TOOLS = ("tcpreplay", "tcpdump", "ip")


def trace_frames(packets: Sequence[Read], ratio: Fraction) -> list[TraceFrame]:
    """Return what must leave: each due at its time, rounded to a tick, from the first one on; ``ratio``: ticks of a ns."""
    dues = [int((one.time_ns - packets[0].time_ns) * ratio + Fraction(1, 2)) for one in packets]
    gaps = [due - before for due, before in zip(dues, [0, *dues], strict=False)]
    return [
        TraceFrame(gap, one.length, one.octets + bytes(max(0, MIN_LENGTH - len(one.octets))))
        for gap, one in zip(gaps, packets, strict=True)
    ]


def ported(trace: Trace, packets: Sequence[Read], ratio: Fraction) -> tuple[port.Run, port.Compared]:
    """Replay a trace on a compiled port; compare with what its file, read apart, says must leave."""
    words = np.concatenate(list(trace.records()))
    program = Program(trace_frames(packets, ratio), words.tolist())
    (found,) = port.run([program])
    return found, port.compared(program, found)


def busiest(_: bool) -> Iterator[Figure]:
    """The capture of the nDPI corpus with the most packets, its gaps shortened until it loads the line to 8/10."""
    name, count = "", 0
    for path in sorted(corpora.fetch("ndpi").iterdir()):
        links = [link for link, _, _ in corpora.packets(path)]
        is_plain = path.suffix == ".pcap" and all(link == corpora.LINK_ETHERNET for link in links)
        if is_plain and len(links) > count:
            name, count, chosen = path.name, len(links), path
    packets = read(chosen)
    ticks = sum(one.length + OVERHEAD for one in packets)
    ratio = ticks / BUSIEST_LOAD / (packets[-1].time_ns - packets[0].time_ns)
    trace = Trace.from_pcap(chosen, sort=True).stretched(ratio * TICK_NS)
    found, compared = ported(trace, packets, ratio)
    note(f"# busiest: {name}, {count} packets, {100 * compared.utilisation:.2f} % of the line")
    yield Figure("port_busiest_frames", compared.frames, "frames", count, is_least=True)
    yield Figure("port_busiest_starts_off", compared.starts_off + compared.missing, "frames", 0)
    yield Figure("port_busiest_octets_off", compared.octets_off + compared.fcs_off, "frames", 0)
    yield Figure("port_busiest_counters_off", compared.counters_off, "counters", 0)
    yield Figure("port_busiest_late_unexpected", found.late - trace.summary().expected_late, "frames", 0)


@row("replay")
def test_peers() -> Iterator[Figure]:
    """Error of each gap of one file: by a compiled port, and by tcpreplay on a virtual link of this machine."""
    with TemporaryDirectory(dir=Path("build")) as name:
        folder = Path(name)
        given = folder / "given.pcap"
        senders.write(given, list(senders.packets(PEER_FRAMES, 7, PEER_LOAD)))
        packets = read(given)
        started = feasible(packets)
        found, compared = ported(Trace.from_pcap(given), packets, Fraction(1, TICK_NS))
        errors = {"liteprobe": np.abs(TICK_NS * np.diff(found.ticks) - np.diff(started))}
        yield Figure("peers_liteprobe_frames", compared.frames, "frames", PEER_FRAMES, is_least=True)
        yield Figure("peers_liteprobe_off", compared.off, "findings", 0)
        if lacking := peers.missing(PEER_TOOLS):
            note(f"peers_tcpreplay: skipped, it needs {', '.join(lacking)} (apt-get install, as root)")
        else:
            seen = read(peers.watched(folder, peers.tcpreplay_file, given))
            errors["tcpreplay"] = gap_errors(packets, started, seen)
            yield Figure("peers_tcpreplay_frames_unseen", PEER_FRAMES - len(seen), "frames", ANYTHING)
    for who, off in errors.items():
        for percent in (50, 99, 100):
            most = TICK_NS if who == "liteprobe" else ANYTHING
            yield Figure(f"peers_{who}_gap_off_p{percent}", float(np.percentile(off, percent)), "ns", most)
    for line in histograms(errors):
        print(line, flush=True)


def feasible(packets: Sequence[Read]) -> NDArray[np.int64]:
    """Return when a line of 1 Gb/s can start each packet (ns, from the first one on): at its time, or when it is free."""
    found, free = [], 0
    for one in packets:
        found.append(max(one.time_ns - packets[0].time_ns, free))
        free = found[-1] + TICK_NS * (one.length + OVERHEAD)
    return np.array(found, np.int64)


def gap_errors(packets: Sequence[Read], started: NDArray[np.int64], seen: Sequence[Read]) -> NDArray[np.int64]:
    """Return how far gaps between frames that were seen one after the other are from those of the file (ns)."""
    numbers = {one.octets[: peers.SEEN_OCTETS]: number for number, one in enumerate(packets)}
    which = np.array([numbers[one.octets] for one in seen])
    stamps = np.array([one.time_ns for one in seen])
    is_next = np.diff(which) == 1
    return np.asarray(np.abs(np.diff(stamps) - np.diff(started)[which[:-1].clip(max=len(started) - 2)])[is_next])


def histograms(errors: dict[str, NDArray[np.int64]]) -> Iterator[str]:
    """Yield a table: of how many gaps (%) the error is at most so much, and more than the line before says."""
    yield "# " + " ".join(f"{text:>12}" for text in ("gap off, ns", *errors))
    edges = [-1, *EDGES_NS, ANYTHING]
    for low, high in pairwise(edges):
        shares = [100 * float(np.mean((found > low) & (found <= high))) for found in errors.values()]
        label = f"<= {high}" if high != ANYTHING else f"> {low}"
        yield "# " + " ".join([f"{label:>12}", *(f"{share:>11.4f}%" for share in shares)])
