# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Rows ``host`` and the like of the bench ``replay``: traces, their words and their stream, on the side of the host."""

import multiprocessing
import resource
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from sink import sink

from liteprobe.cores.formats import MAX_LENGTH, OVERHEAD
from liteprobe.host.base.errors import UsageError
from liteprobe.host.replay.slots import ReplaySession
from liteprobe.host.replay.streamer import Streamer, StreamState
from liteprobe.host.replay.udp import UdpTarget
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.lengths import RandomLength
from liteprobe.host.traffic.trace.trace import Trace, TraceWords
from liteprobe.sim.drivers.frames import corpora
from liteprobe.sim.drivers.replay.fake_probe import FakeReceiver, Ring
from liteprobe.sim.drivers.system import senders
from liteprobe.sim.drivers.system.hostile_relay import HostileRelay, Hostility
from liteprobe.sim.drivers.tools.figures import Figure, note, row
from liteprobe.sim.models.traffic import replay

FILE_OCTETS = 10**9
FRAMES = 1 << 14  # Written at once.
PORT, SESSION, LEASE = 0, 7, 3
HOST_BPS, HOST_OCTETS = 1e9, 500e6
TOOL = "tcpreplay"
END_OF_PART = [0, 8 << 28 | 60]  # A record that ends what is given to the model; its frame is taken away again.


# records ------------------------------------------------------------------------------------------


def sent(trace: Trace) -> Iterator[replay.Record]:
    """Yield what a probe would send of a trace, by the model, some thousand frames at once."""
    tick, chunks = 0, [words.tolist() for words in trace.records()]
    for number, words in enumerate(chunks):
        if number < len(chunks) - 1:
            words += END_OF_PART
        found = replay.decode(words)
        if number < len(chunks) - 1:
            found.pop()
        yield from (one._replace(tick=tick + one.tick) for one in found)
        tick += found[-1].tick


@row("replay")
def test_records(is_full: bool) -> Iterator[Figure]:
    """Each word and each time of a made-up file, and of every Ethernet packet of the corpora."""
    frames = 1_000_000 if is_full else 100_000
    with TemporaryDirectory(dir=Path("build")) as folder:
        path = Path(folder) / "frames.pcap"
        senders.write(path, senders.packets(frames, 1, 0.8))
        times = [one.time_ns for one in senders.packets(frames, 1, 0.8)]
        trace = Trace.from_pcap(path)
        off = octets_off = late = free = 0
        for one, time_ns, (_, _, octets) in zip(sent(trace), times, corpora.packets(path), strict=True):
            off += abs(8 * one.tick - (time_ns - times[0])) > 4
            octets_off += one.octets != octets
            late += one.tick < free
            free = max(one.tick, free) + len(one.octets) + OVERHEAD
        yield Figure("records_frames", frames, "frames", frames, is_least=True)
        yield Figure("records_due_off_half_a_tick", off, "frames", 0)
        yield Figure("records_octets_off", octets_off, "frames", 0)
        yield Figure("records_expected_late_off", abs(trace.summary().expected_late - late), "frames", 0)
    files = packets = wrong = 0
    for path in corpora.captures():
        read = list(corpora.packets(path))
        is_plain = all(link == 1 and len(octets) <= length <= MAX_LENGTH for link, length, octets in read)
        if not read or not is_plain:
            continue
        try:
            trace = Trace.from_pcap(path, sort=True, repair=True).at_top()
            found = list(sent(trace))
        except UsageError as error:
            note(f"records: {path.name}: {error}")
            continue
        files, packets = files + 1, packets + len(read)
        is_damaged = any(
            "corrupt" in note for note in trace.source.notes
        )  # Some are so on purpose: by their times, too.
        wrong += (len(read) != len(found) and not is_damaged) or any(
            one.octets[: one.snap] != octets for one, (_, _, octets) in zip(found, read, strict=False)
        )
    yield Figure("records_corpora_packets", packets, "packets", 100_000, is_least=True)
    yield Figure("records_corpora_files_off", wrong, "files", 0)


# loss ---------------------------------------------------------------------------------------------


@row("replay")
def test_loss(is_full: bool) -> Iterator[Figure]:
    """1, 5 and 20 % of loss, doubling and reordering at once, both ways, and stalls; a ring that is emptied at 0.3 Gb/s."""
    trace = TraceWords(Trace.cbr(Interval(), RandomLength(60, 1514), 200_000 if is_full else 40_000))
    words = np.concatenate(list(trace.chunks()))
    for share in (0.0, 0.01, 0.05, 0.2):
        ring = Ring(SESSION, LEASE, words_a_second=1e7)
        hostility = Hostility(share, share, share, stall_each_s=0.2 if share else None)
        began_s = time.monotonic()
        with FakeReceiver({PORT: ring}) as receiver, HostileRelay(receiver.port, hostility) as relay:
            with Streamer(UdpTarget("127.0.0.1", relay.port), {ReplaySession(PORT, SESSION, LEASE): trace}) as streamer:
                while not (state := streamer.state(PORT)).is_all:
                    time.sleep(0.01)
            stalls = relay.counts["stalls"]
        name = f"loss_{100 * share:g}"
        wrong = np.frombuffer(bytes(ring.octets), np.uint32) != words
        yield Figure(f"{name}_words_wrong", int(np.count_nonzero(wrong)), "words", 0)
        note(f"{name}: {time.monotonic() - began_s:.1f} s, {stalls} stalls, {state}")


# host ---------------------------------------------------------------------------------------------


def write_capture(path: Path, lengths: tuple[int, int], octets: int) -> None:
    """Write a pcap of random frames, back to back at 1 Gb/s."""
    chance = np.random.default_rng(1)
    fill = chance.bytes(2048)
    time_ns = 1_700_000_000 * 10**9
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", senders.NANOSECONDS, 2, 4, 0, 0, 1 << 18, 1))
        while file.tell() < octets:
            parts = []
            for length in chance.integers(*lengths, FRAMES, endpoint=True).tolist():
                parts += [struct.pack("<IIII", *divmod(time_ns, 10**9), length, length), fill[:length]]
                time_ns += 8 * (length + OVERHEAD)
            file.write(b"".join(parts))


def peak_octets(pids: list[int]) -> int:
    """Return the greatest memory of processes together, each at its own peak."""
    kilobytes = 0
    for pid in pids:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        kilobytes += next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return 1024 * kilobytes


@row("replay")
def test_host(is_full: bool) -> Iterator[Figure]:
    """A capture of 1 GB, of 60 to 1514 octets, of 1514 and of 60 alone: looked through, then prepared and streamed to a sink."""
    for name, lengths in (("mixed", (60, 1514)), ("1514", (1514, 1514)), ("60", (60, 60))):
        with TemporaryDirectory(dir=Path("build")) as folder:
            path = Path(folder) / "frames.pcap"
            write_capture(path, lengths, FILE_OCTETS if is_full or name != "60" else FILE_OCTETS // 4)
            trace = Trace.from_pcap(path)
            began_s = time.monotonic()
            summary = trace.summary()
            looked_s = time.monotonic() - began_s
            yield Figure(f"host_{name}_looked_through", 8 * summary.octets / looked_s / 1e9, "Gb/s", 1, is_least=True)
            yield Figure(f"host_{name}_expected_late", summary.expected_late, "frames", 0)
            yield from streamed(name, trace, summary.octets, summary.words)
            yield from paced(name, trace, summary.words, summary.duration_s)
            if name == "mixed":
                yield from tool(path, summary.octets)


def streamed(name: str, trace: Trace, octets: int, words: int) -> Iterator[Figure]:
    """Stream a trace to a sink that takes all at once."""
    taken = stream(name, trace, None)
    state = taken.state
    yield Figure(f"host_{name}_streamed", 8 * octets / taken.took_s / 1e9, "Gb/s", HOST_BPS / 1e9, is_least=True)
    yield Figure(f"host_{name}_words_missing", words - taken.words, "words", 0)
    yield Figure(f"host_{name}_resent", 100 * state.resent / state.datagrams, "%", 100)
    yield Figure(f"host_{name}_memory", taken.peak / 1e6, "MB", HOST_OCTETS / 1e6)


def paced(name: str, trace: Trace, words: int, seconds: float) -> Iterator[Figure]:
    """Stream a trace to a sink that empties a ring of 512 KiB as a line of 1 Gb/s does: how often it runs dry."""
    taken = stream(f"{name} paced", trace, words / seconds)
    yield Figure(f"host_{name}_paced_words_missing", words - taken.words, "words", 0)
    yield Figure(f"host_{name}_paced_dry", taken.dry, "times", 0)
    yield Figure(f"host_{name}_paced_dry_ms", 1e3 * taken.dry_s, "ms", 0)
    yield Figure(f"host_{name}_paced_least_level", taken.least, "words", 1, is_least=True)


class Taken(NamedTuple):
    """Counts what a sink took: words, how often, how long and how nearly its ring was empty; how the stream went."""

    words: int
    dry: int
    dry_s: float
    least: int
    state: StreamState
    took_s: float
    peak: int


def stream(name: str, trace: Trace, words_a_second: float | None) -> Taken:
    """Stream a trace to a process, and return what it took."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=sink, args=(theirs, words_a_second), daemon=True)
    process.start()
    target = UdpTarget("127.0.0.1", ours.recv())
    began_s = time.monotonic()
    with Streamer(target, {ReplaySession(PORT, SESSION, LEASE): TraceWords(trace)}) as streamer:
        while not (state := streamer.state(PORT)).accepted:
            time.sleep(0.001)
        first_s = time.monotonic()
        while not (state := streamer.state(PORT)).is_all:
            time.sleep(0.01)
        took_s = time.monotonic() - first_s
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        peak = own + peak_octets(streamer.pids)
    ours.send(None)
    accepted, dry, dry_s, least = ours.recv()
    process.join()
    note(f"{name}: {state}; {took_s:.2f} s, ready after {first_s - began_s:.2f} s")
    return Taken(accepted, dry, dry_s, least, state, took_s, peak)


def tool(path: Path, octets: int) -> Iterator[Figure]:
    """tcpreplay on the same file, as fast as it can, into the loopback; said and left out where it isn't installed."""
    if shutil.which(TOOL) is None:
        note(f"host_{TOOL}: skipped, it is not installed (apt install {TOOL})")
        return
    began_s = time.monotonic()
    done = subprocess.run(
        [TOOL, "-q", "--topspeed", "-i", "lo", str(path)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        note(f"host_{TOOL}: skipped, it failed: {done.stderr.strip()[-200:]}")
        return
    yield Figure(f"host_{TOOL}", 8 * octets / (time.monotonic() - began_s) / 1e9, "Gb/s", 0, is_least=True)
