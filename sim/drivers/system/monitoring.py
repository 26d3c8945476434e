# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A simulated monitor with traffic on both ports: what a host gets of it, and what was on the pins."""

import functools
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scapy.all import IP, TCP, UDP, Ether, Raw  # type: ignore[attr-defined]
from scapy.utils import PcapWriter

from liteprobe.cores.formats import BinKind
from liteprobe.host.capture import live
from liteprobe.host.packets.batch import Batch
from liteprobe.host.packets.filter.expression import parse
from liteprobe.host.capture.ring import write_filter
from liteprobe.host.capture.request import CaptureSettings, Keep, Transport
from liteprobe.host.capture.session import CaptureSession
from liteprobe.host.capture.trigger import ProbeTrigger
from liteprobe.host.measure.monitor import Monitor
from liteprobe.host.probe import Probe
from liteprobe.sim.drivers.frames import truth
from liteprobe.sim.drivers.system.harness import Harness, probe_of

# Monitor ------------------------------------------------------------------------------------------

PORTS = 2
LINE_OVERHEAD = 24  # Octets of a frame on the line besides its own: preamble, FCS, gap.
STEP_NS = 20_000
LOOK_NS = 500_000  # Who waits longer looks again after this: simulated time is dear.


def bursts(path: Path, seed: int) -> Path:
    """Write bursts of frames of three lengths, from back to back to 12 us apart, with silence between them."""
    rand, now_us = random.Random(seed), 0
    with PcapWriter(str(path), nano=True, linktype=1) as writer:
        writer.write_header(b"")
        for _ in range(8):
            for _ in range(rand.randrange(5, 60)):
                frame = (
                    Ether(dst="02:00:00:00:00:02") / IP() / UDP() / Raw(rand.randbytes(rand.choice((18, 200, 1400))))
                )
                writer.write_packet(bytes(frame), sec=0, usec=now_us)
                now_us += rand.choice((1, 2, 12))
            now_us += rand.randrange(100, 900)
    return path


@dataclass(frozen=True)
class Got:
    """A record as the host has it."""

    port: int
    stamp: int
    length: int
    octets: bytes
    channel: int = field(compare=False, default=0)


@dataclass
class Gathered:
    """A sink that keeps all records; ``missing``: frames that gaps stand for, by channel; ``counts``: of the probe."""

    records: list[Got] = field(default_factory=list)
    missing: dict[int, int] = field(default_factory=dict)
    counts: dict[str, Any] = field(default_factory=dict)

    def write(self, batch: Batch) -> None:
        """Take records."""
        for number, head in enumerate(batch.heads):
            channel = int(batch.channel[number])
            if batch.is_gap[number]:
                self.missing[channel] = self.missing.get(channel, 0) + int(batch.missing[number])
                continue
            octets = batch.octets(number)
            self.records.append(Got(int(batch.port[number]), int(head["stamp"]), int(head["length"]), octets, channel))


def write_pcap(path: Path, frames: Sequence[bytes], interval_ns: int = 0) -> Path:
    """Write frames at even intervals (0: as close as can be) into a capture that can be played."""
    with PcapWriter(str(path), nano=True, linktype=1) as writer:
        writer.write_header(b"")
        for number, octets in enumerate(frames):
            time_ns = number * interval_ns
            writer.write_packet(octets, sec=time_ns // 10**9, usec=time_ns % 10**9)
    return path


@dataclass
class Monitored:
    """A simulated monitor.

    ``files``: folder of what is played, and of what was on the pins.
    """

    harness: Harness
    probe: Probe
    files: Path

    def play(
        self, port: int, frames: Sequence[bytes], interval_ns: int = 0, start_ns: int = 0, repeats: int = 1
    ) -> None:
        """Have frames come to a port, each ``interval_ns`` after the one before, or back to back."""
        path = write_pcap(self.files / f"played{port}.pcap", frames, interval_ns)
        assert self.harness.command(f"play {port} {start_ns} {repeats} {path}") == f"ok {len(frames)}"

    def now_ns(self) -> int:
        """Return the simulated time."""
        return int(self.harness.command("time").split()[1])

    def pins(self, port: int, direction: str = "in") -> list[tuple[int, bytes]]:
        """Return time of the SFD (ns) and octets (without FCS) of each frame that a port has got (``out``: sent)."""
        self.harness.command("sync")
        stamps, contents = truth.read_pcap(self.files / f"pins.port{port}.{direction}.pcap")
        return list(zip((int(stamp) for stamp in stamps), contents, strict=True))

    def events(self, port: int) -> dict[str, int]:
        """Return the counters of a port, as of now."""
        return Monitor(self.probe, port).events()

    def capture(
        self,
        settings: CaptureSettings,
        traffic: Callable[[], None],
        for_ns: int,
        way: Transport | None = None,
        trigger: ProbeTrigger | None = None,
    ) -> tuple[Gathered, dict[str, int]]:
        """Begin a capture, then the traffic; end it after ``for_ns``, and return what came and what channels dropped."""
        sink = Gathered()
        session = CaptureSession([sink])
        with ExitStack() as stack:
            opened = live.open_transport(self.probe, way or Transport(), settings.channels, stack)
            begun = live.begin(self.probe, settings, opened, stack, trigger)
            traffic()
            end_ns, is_ending = self.now_ns() + for_ns, False
            for blocks, lengths in begun.source.batches():
                session.take(blocks, lengths)
                if not is_ending and self.now_ns() >= end_ns:
                    is_ending = True
                    begun.source.stop()
            session.finish()
            sink.counts = begun.finish()
        return sink, sink.counts["dropped_by_probe"]


@contextmanager
def monitored(folder: Path, files: Path, *options: str) -> Iterator[Monitored]:
    """A simulated monitor, built in ``folder``; ``files``: where its captures go; ``options`` of the harness."""
    with probe_of(folder, "--pcap", str(files / "pins"), *options) as (harness, probe):

        def idle() -> None:
            harness.run(STEP_NS)

        probe.link.idle = idle  # type: ignore[method-assign]
        probe.link.wait = lambda seconds: (harness.run(min(round(seconds * 1e9), LOOK_NS)), None)[1]  # type: ignore[method-assign]
        yield Monitored(harness, probe, files)


# Shortest frames back to back on both ports, all features on --------------------------------------

LENGTH = 60
SHORTEST_NS = (LENGTH + 24) * 8
SNAP = 20
CHANNELS = (0, 1, 2, 3)
SETTLE_NS = 400_000
EXPRESSION = "udp and (net 10.0.0.0/15 or host 1.2.3.4) and dst port 53 and not vlan"
MACS = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}


@dataclass(frozen=True)
class LineRate:
    """Compares the result with what was on the pins.

    Attributes
    ----------
    frames : of both ports.
    spacings_off : frames that were not ``SHORTEST_NS`` behind the one before.
    records, records_off : records that should be there; those that are missing, too many or not what was on the pins.
    counters_off : counters, accumulators and histograms that don't add up.
    dropped : frames that the probe dropped or that gaps stand for.
    channels : that records came by.
    """

    frames: int
    spacings_off: int
    records: int
    records_off: int
    counters_off: list[str]
    dropped: int
    channels: int


@functools.cache  # Scapy takes long, and runs have the same frames.
def shortest(number: int, port: int) -> bytes:
    """Return a frame of 60 octets, UDP or TCP, of one of many flows."""
    ip = IP(src=f"10.{port}.{number % 7}.{number % 251}", dst=f"192.168.{number % 3}.9")
    layer4 = UDP(sport=1000 + number % 50, dport=(53, 80, 443)[number % 3]) / Raw(number.to_bytes(18, "big"))
    if number % 5 == 0:
        layer4 = TCP(sport=2000, dport=(22, 80)[number % 2]) / Raw(number.to_bytes(6, "big"))
    return bytes(Ether(**MACS) / ip / layer4)


def is_wanted(frame: bytes) -> bool:
    """Return whether `EXPRESSION` holds for a frame of `shortest`."""
    return frame[23] == 17 and frame[36:38] == (53).to_bytes(2, "big")


def line_rate(monitor: Monitored, count: int) -> LineRate:
    """Send ``count`` frames to each port, filter, spread over channels, capture and measure them; compare all."""
    frames = [[shortest(number, port) for number in range(count)] for port in range(PORTS)]
    write_filter(monitor.probe.registers, parse(EXPRESSION).fit())

    def traffic() -> None:
        start_ns = monitor.now_ns() + 50_000
        for port in range(PORTS):
            monitor.play(port, frames[port], start_ns=start_ns)

    settings = CaptureSettings(channels=CHANNELS, snap_length=SNAP, keep=Keep.PACKETS)
    got, dropped = monitor.capture(settings, traffic, for_ns=count * SHORTEST_NS + SETTLE_NS)
    pins = [monitor.pins(port) for port in range(PORTS)]
    wanted = [
        Got(port, stamp, len(octets), octets[:SNAP])
        for port in range(PORTS)
        for stamp, octets in pins[port]
        if is_wanted(octets)
    ]
    return LineRate(
        frames=sum(map(len, pins)),
        spacings_off=sum(spacings_off([stamp for stamp, _ in port]) for port in pins),
        records=len(wanted),
        records_off=len(set(wanted) ^ set(got.records)) + abs(len(wanted) - len(got.records)),
        counters_off=[line for port in range(PORTS) for line in counters_off(monitor, port, frames[port])],
        dropped=sum(dropped.values()) + sum(got.missing.values()),
        channels=len({record.channel for record in got.records}),
    )


def spacings_off(stamps: Sequence[int]) -> int:
    """Return how many frames were not as close as can be to the one before."""
    return sum(later - earlier != SHORTEST_NS for earlier, later in zip(stamps, stamps[1:], strict=False))


def counters_off(monitor: Monitored, port: int, frames: Sequence[bytes]) -> list[str]:
    """Return what a port has counted wrong: all frames are whole, and those that pass the filter are kept."""
    passed = sum(map(is_wanted, frames))
    wanted = {"all_frames": len(frames), "all_octets": LENGTH * len(frames), "classified": len(frames)}
    wanted |= dict.fromkeys(("matched", "passed", "sampled", "kept"), passed)
    found = monitor.events(port)
    lines = [f"{name} {count}, not {wanted.get(name, 0)}" for name, count in found.items() if count != wanted.get(name, 0)]
    lines += [f"no counter {name}" for name in wanted.keys() - found.keys()]
    seen = Monitor(monitor.probe, port).read()
    sums = [("frames", seen.counters["frames"], len(frames)), ("octets", seen.counters["octets"], LENGTH * len(frames))]
    for kind, count in ((BinKind.LENGTH, len(frames)), (BinKind.ARRIVAL, len(frames) - 1)):
        histogram = seen.histograms[0][kind]
        sums.append((kind.name, int(histogram.counts.sum()) + histogram.below + histogram.above, count))
    lines += [f"{name} {got}, not {count}" for name, got, count in sums if got != count]
    return [f"port {port}: {line}" for line in lines]
