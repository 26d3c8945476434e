# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Shortest frames back to back on both ports of a whole simulated monitor, all its features on."""

from collections.abc import Sequence
from dataclasses import dataclass

from scapy.all import IP, TCP, UDP, Ether, Raw  # type: ignore[attr-defined]

from liteprobe.cores.formats import BinKind
from liteprobe.host.packets.filter.expression import parse
from liteprobe.host.capture.ring import write_filter
from liteprobe.host.capture.request import CaptureSettings, Keep
from liteprobe.host.measure.monitor import Monitor
from liteprobe.sim.bench.system.monitoring import PORTS, Got, Monitored

LENGTH = 60
SHORTEST_NS = (LENGTH + 24) * 8
SNAP = 20
CHANNELS = (0, 1, 2, 3)
SETTLE_NS = 400_000
EXPRESSION = "udp and (net 10.0.0.0/15 or host 1.2.3.4) and dst port 53 and not vlan"
MACS = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}


@dataclass(frozen=True)
class LineRate:
    """What became of it, against what was on the pins.

    Attributes
    ----------
    frames : int
        Of both ports.
    spacings_off : int
        Frames that were not ``SHORTEST_NS`` behind the one before.
    records, records_off : int
        Records that should be there; those that are missing, too many or not what was on the pins.
    counters_off : list of str
        Counters, accumulators and histograms that don't add up.
    dropped : int
        Frames that the probe dropped or that gaps stand for.
    channels : int
        That records came by.
    """

    frames: int
    spacings_off: int
    records: int
    records_off: int
    counters_off: list[str]
    dropped: int
    channels: int


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
