# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures what traffic of many streams is held to: every octet and every start against a model that knows only the request.

 ``utilisation``, ``random``, ``rates``, ``exponential`` and ``checksums`` run a compiled port of the gateware: from words
on its bus to the octets on its PHY, ``sys`` at 50 MHz. A second port shares nothing with it but the clock; ``system`` takes
the whole simulated tester, both ports at once. ``peers`` lets trafgen and tcpreplay send the same over a virtual link of this
machine, with whatever else it does; it needs root and their packages, and is run when it is named. Not compared: what a
program makes of a stream that it drew and that no probe can send (drawn again, and counted).
"""

import random
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import peers

from liteprobe.cores.formats import LN2, OVERHEAD, exponential_table
from liteprobe.host.traffic.stream import Fixed, Interval, Stamp, Stream
from liteprobe.sim.drivers.frames.random_streams import StreamMaker
from liteprobe.sim.drivers.frames.tshark import write_pcap
from liteprobe.sim.drivers.receive.fields import named_delays, random_errors
from liteprobe.sim.drivers.system.senders import joined, wrong_streams
from liteprobe.sim.drivers.tools.figures import Figure, note, row
from liteprobe.sim.drivers.traffic import port as port_bench
from liteprobe.sim.models.traffic import streams as traffic
from liteprobe.sim.system.build import build_probe

LENGTHS = (60, 64, 120, 128, 240, 256, 500, 512, 1000, 1024, 1514, 9000)
LINE_TICKS = 200_000  # Of each length.
TICK_NS = 8
#: Programs of streams: frames of each, and the longest frames that are drawn.
PROGRAM_FRAMES, LONGEST = 2000, (80, 200, 1514)


def figures(name: str, found: port_bench.Compared) -> Iterator[Figure]:
    """Return what must be 0 in every run."""
    yield Figure(f"{name}_frames_missing", found.missing, "frames", 0)
    yield Figure(f"{name}_starts_off", found.starts_off, "frames", 0)
    yield Figure(f"{name}_octets_off", found.octets_off + found.fcs_off, "frames", 0)
    yield Figure(f"{name}_counters_off", found.counters_off, "counters", 0)


def total(found: list[port_bench.Compared]) -> port_bench.Compared:
    """Return several runs as one; utilisation is the least."""
    sums = {name: sum(vars(one)[name] for one in found) for name in vars(found[0])}
    return port_bench.Compared(**sums | {"utilisation": min(one.utilisation for one in found)})


@row("traffic")
def test_utilisation(is_full: bool) -> Iterator[Figure]:
    """One stream and sixteen, four modifiers on each, PRBS, frames of every length back to back."""
    for count in (1, 16):
        found = []
        for length in LENGTHS:
            slot_ns = TICK_NS * (length + OVERHEAD)
            streams = [
                Stream(
                    f"stream {number}",
                    number + 1,
                    Fixed(length),
                    Interval(share=Fraction(1, count)),
                    start_ns=number * slot_ns,
                    modifiers=port_bench.CHANGES,
                    fill="prbs",
                    seed=number,
                )
                for number in range(count)
            ]
            frames = LINE_TICKS * (10 if is_full else 1) // (length + OVERHEAD)
            found.append(port_bench.compared(streams, port_bench.run(streams, frames), is_cut=True))
            yield Figure(f"utilisation_{count}x{length}", 100 * found[-1].utilisation, "%", 100, is_least=True)
        yield from figures(f"utilisation_{count}", total(found))


def programs(count: int, any_bits: float = 0.2) -> Iterator[tuple[list[Stream], port_bench.PortRun]]:
    """Yield programs of up to 16 random streams, each by its seed, and what the port made of it."""
    for seed in range(count):
        chance = random.Random(seed)
        maker = StreamMaker(seed, chance.choice(LONGEST), any_bits)
        streams = maker.streams(chance.randint(1, 16), chance.choice((0.5, 0.95, 1)))
        # The clock of sys is another one: up to 100 ppm off, either way.
        yield streams, port_bench.run(streams, PROGRAM_FRAMES, port_bench.SYS_PS + chance.randint(-2, 2))


@row("traffic")
def test_random(is_full: bool) -> Iterator[Figure]:
    """Random programs: lengths, gaps, bursts, modifiers, headers, stamps, checksums of all kinds; ``--full``: ten times as many."""
    found = [port_bench.compared(streams, ran, is_cut=True) for streams, ran in programs(500 if is_full else 55)]
    everything = total(found)
    yield Figure("random_frames", everything.frames, "frames", 1e6 if is_full else 1e5, is_least=True)
    yield from figures("random", everything)


@row("traffic")
def test_rates(is_full: bool) -> Iterator[Figure]:
    """Four streams at rates that no tick divides, each over 10^6 frames: every start as by whole fractions, no drift."""
    frames = 1_000_000 if is_full else 100_000
    shares = [Fraction(1, 7), Fraction(2, 11), Fraction(3, 13), Fraction(5, 17)]
    streams = [
        Stream(f"stream {number}", number + 1, Fixed(60), Interval(share=share)) for number, share in enumerate(shares)
    ]
    ran = port_bench.run(streams, int(frames * sum(shares) / min(shares)) + 100, with_octets=False)
    found = port_bench.compared(streams, ran, is_cut=True)
    yield Figure(
        "rates_frames_of_the_slowest", min(sent for sent, _, _ in ran.streams[:4]), "frames", frames, is_least=True
    )
    yield from figures("rates", found)
    order = traffic.schedule(streams, len(ran.ticks))
    starts = ran.ticks - ran.ticks[0]
    worst = 0.0
    for number, share in enumerate(shares):
        its = np.flatnonzero(order["stream"] == number)
        interval = Fraction(60 + OVERHEAD) / share
        due = [int(interval * frame) for frame in range(len(its))]
        worst = max(worst, float(np.max(np.abs(order["due"][its] - due))))
    yield Figure("rates_due_off_exact_fractions", worst, "ticks", 1)
    yield Figure("rates_start_before_due", int(np.sum(starts < order["due"] - order["due"][0])), "frames", 0)


@row("traffic")
def test_exponential(is_full: bool) -> Iterator[Figure]:
    """10^5 exponential gaps: starts against the model; the model's law against the exponential."""
    frames = 100_000
    streams = [Stream("poisson", 1, Fixed(60), Interval(share=Fraction(1, 20), exponential=True), seed=7)]
    found = port_bench.compared(streams, port_bench.run(streams, frames, with_octets=False), is_cut=True)
    yield Figure("exponential_frames", found.frames, "frames", frames, is_least=True)
    yield from figures("exponential", found)
    table = np.array(exponential_table())
    # Each octave of the random number has half of the one before: the mean of the law that the gateware draws from.
    mean = (table.mean() + LN2) / 2**27
    yield Figure("exponential_mean_of_the_law_off", abs(mean - 1), "", 1e-3)
    gaps = np.sort(np.diff(traffic.schedule(streams, frames + 1)["due"].astype(float)))
    rank = np.arange(len(gaps) + 1) / len(gaps)
    law = 1 - np.exp(-gaps / ((60 + OVERHEAD) * 20))
    yield Figure("exponential_kolmogorov", float(max(np.max(rank[1:] - law), np.max(law - rank[:-1]))), "", 0.006)


@row("traffic")
def test_checksums(is_full: bool) -> Iterator[Figure]:
    """Frames of random programs, from the pins: tshark finds no wrong checksum of IPv4, UDP or TCP; ``--full``: 1000 programs."""
    wrong = frames = left_out = 0
    count = 1000 if is_full else 60
    with TemporaryDirectory() as folder:
        file = Path(folder) / "frames.pcap"
        for streams, ran in programs(count, any_bits=0):
            # Where a stamp stands in the place of the IPv4 checksum, the checksum is wrong on purpose.
            stamped = {
                n for n, one in enumerate(streams) if one.stamp is not None and one.stamp.place == "ipv4.checksum"
            }
            order = traffic.schedule(streams, len(ran.frames))["stream"]
            kept = [one[:-4] for one, number in zip(ran.frames, order, strict=True) if int(number) not in stamped]
            frames += len(kept)
            left_out += len(ran.frames) - len(kept)
            write_pcap(file, kept)
            wrong += _wrong_checksums(file)
    note(f"checksums: {left_out} frames with a stamp in the checksum of IPv4 left out")
    yield Figure("checksums_programs", count, "programs", count, is_least=True)
    yield Figure("checksums_frames", frames, "frames", count, is_least=True)
    yield Figure("checksums_wrong", wrong, "frames", 0)


def _wrong_checksums(file: Path) -> int:
    command = ["tshark", "-n", "-r", str(file)]
    for name in ("ip", "udp", "tcp"):
        command += ["-o", f"{name}.check_checksum:TRUE"]
    wrong = " || ".join(f"{name}.checksum.status == 0" for name in ("ip", "udp", "tcp"))
    command += ["-Y", wrong, "-T", "fields", "-e", "frame.number"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return len(done.stdout.split())


@row("traffic")
def test_system(is_full: bool) -> Iterator[Figure]:
    """The whole simulated tester, in band: random programs of 16 streams on both ports, joined by a cable, started in one tick."""
    build = build_probe("shared", with_cpu=False, preset="tester")
    frames = wrong = figures_off = 0
    seed = 0
    while frames < (100_000 if is_full else 10_000):
        seed += 1
        chance = random.Random(seed)
        maker = StreamMaker(seed, chance.choice(LONGEST), any_bits=0)
        # In band: port 0 leaves room for management. Frames without a probe header have no stamp: a port takes one place of them.
        ports = {0: maker.streams(4, 0.3), 1: maker.streams(16, 0.95)}
        sent = [
            replace(
                one,
                name=f"{port}: {number}",
                stream_id=number,
                port=port,
                count=100,
                stamp=one.stamp if one.probe else Stamp("none"),
            )
            for port, streams in ports.items()
            for number, one in enumerate(streams, 1)
        ]
        with TemporaryDirectory() as files, joined(build, Path(files)) as tester:
            result = tester.probe.send(sent).result()
            pins = [(tester.pins(port), tester.pins(1 - port, "in")) for port in ports]
        late: dict[str, int] = {}
        ends: dict[str, tuple[int, int] | None] = {}
        for port, (left, came) in enumerate(pins):
            own = [one for one in sent if one.port == port]
            lines = wrong_streams(left, own)
            for line in lines[:3]:
                note(f"seed {seed}, port {port}: {line}")
            frames += len(left)
            wrong += len(lines)
            order = traffic.schedule(own, len(left))
            for number, one in enumerate(own):
                its = np.flatnonzero(order["stream"] == number)
                late[one.name] = int(order["late"][its].sum())
                ends[one.name] = stamped_ends([(left[place][0], came[place][0]) for place in its.tolist()], one)
        for seen in result.rows:
            is_right = (seen.sent, seen.waited) == (seen.stream.count, late[seen.stream.name])
            if seen.stream.probe:
                is_right &= (seen.received, seen.lost, seen.bit_errors or 0) == (seen.sent, 0, 0)
                delay = seen.latency and (seen.latency.least_ns, seen.latency.most_ns)
                is_right &= delay == ends[seen.stream.name]
            figures_off += not is_right
    yield Figure("system_programs", seed, "programs", 1, is_least=True)
    yield Figure("system_frames", frames, "frames", 10_000, is_least=True)
    yield Figure("system_frames_off", wrong, "frames", 0)
    yield Figure("system_figures_off", figures_off, "streams", 0)


def stamped_ends(times: list[tuple[int, int]], stream: Stream) -> tuple[int, int] | None:
    """Return the least and the greatest delay (ns) that a stream's stamps can say, from its times on the pins (ns)."""
    stamp = stream.used_stamp
    if stamp is None:
        return None
    unit = 4 * stamp.tick
    delays = [((came >> unit) - (left >> unit)) % (1 << stamp.bits) << unit for left, came in times]
    return min(delays), max(delays)


@row("traffic")
def test_prbs(is_full: bool) -> Iterator[Figure]:
    """10^4 bit errors put into any place of frames of 35 streams, half of them with a mended FCS: each port's meters."""
    found = [random_errors(10_000, seed) for seed in range(1, 6 if is_full else 2)]
    yield Figure("prbs_bit_errors", min(one.flipped for one in found), "bits", 10_000, is_least=True)
    yield Figure("prbs_in_fills", sum(one.in_fills for one in found), "bits", 1000, is_least=True)
    yield Figure("prbs_frames_off", sum(one.rows_off for one in found), "frames", 0)


@row("traffic")
def test_fields(is_full: bool) -> Iterator[Figure]:
    """Delays by a stamp in every field that the host allows, each width, ticks of 1, 16, 4096 and 16^15 ns, VLAN tags 0 to 2."""
    for tags in range(3):
        seen, off = named_delays(tags, 100 if is_full else 20)
        yield Figure(f"fields_{tags}_tags_delays", seen, "frames", 1000, is_least=True)
        yield Figure(f"fields_{tags}_tags_off", off, "frames", 0)


@row("traffic", is_long=True)
def test_peers() -> Iterator[Figure]:
    """Utilisation and error of intervals of trafgen, tcpreplay and a port of the gateware, for the same requests."""
    if lacking := peers.missing():
        raise RuntimeError(f"peers need: {', '.join(lacking)}")
    anything, interval_ns = 1e12, 20_000
    for length in (60, 1514):
        frame = bytes.fromhex("024c50540002024c5054000188b5") + bytes(length - 14)
        for tool in (peers.trafgen, peers.tcpreplay):
            for asked_ns, count in ((None, 200_000), (interval_ns, 20_000)):
                with TemporaryDirectory() as folder:
                    seen = peers.seen(Path(folder), tool(frame, count, asked_ns), frame, asked_ns)
                name = f"peers_{tool.__name__}_{length}"
                if asked_ns is None:
                    yield Figure(f"{name}_utilisation", 100 * seen.utilisation, "%", anything)
                    continue
                for percent in (50, 99, 100):
                    error_ns = float(np.percentile(seen.error_ns, percent))
                    yield Figure(f"{name}_interval_off_p{percent}", error_ns, "ns", anything)
        for asked_ns, count in ((None, 20_000), (interval_ns, 2_000)):
            interval = Interval() if asked_ns is None else Interval(interval_ns=asked_ns)
            streams = [Stream("same", 1, Fixed(length), interval)]
            found = port_bench.run(streams, count)
            name = f"peers_liteprobe_{length}"
            if asked_ns is None:
                used = 100 * port_bench.compared(streams, found, is_cut=True).utilisation
                yield Figure(f"{name}_utilisation", used, "%", 100, is_least=True)
            else:
                off = np.max(np.abs(np.diff(found.ticks) * TICK_NS - asked_ns))
                yield Figure(f"{name}_interval_off_p100", float(off), "ns", 0)
