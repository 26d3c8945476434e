# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A simulated monitor with traffic on both ports: what a host gets of it, and what was on the pins."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scapy.all import IP, UDP, Ether, Raw  # type: ignore[attr-defined]
from scapy.utils import PcapWriter

from liteprobe.host.capture import live
from liteprobe.host.capture.request import Transport
from liteprobe.host.packets.batch import Batch
from liteprobe.host.capture.session import CaptureSession
from liteprobe.host.capture.request import CaptureSettings
from liteprobe.host.capture.trigger import ProbeTrigger
from liteprobe.host.measure.monitor import Monitor
from liteprobe.host.probe import Probe
from liteprobe.sim.bench.frames import truth
from liteprobe.sim.bench.system.harness import Harness, probe_of

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

    Attributes
    ----------
    harness : Harness
    probe : Probe
    files : Path
        Folder of what is played, and of what was on the pins.
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
