# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Trains on both ports of a tester at once, while it captures and measures all that arrives; compared with the pins."""

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from liteprobe.cores.formats import BinKind, OVERHEAD
from liteprobe.host.capture.settings import CaptureSettings, Keep
from liteprobe.host.monitor import Monitor
from liteprobe.host.train import TrainProgram
from liteprobe.sim.bench.monitoring import PORTS, Got, Monitored, monitored

OCTET_NS = 8
AHEAD_NS = 2_000_000  # From the request to the first SFD.
SETTLE_NS = 400_000
SILENCE_S = 120  # Of this machine: trains without a gap leave management no room, and 5 ms of them take it some seconds.
ARRIVED_WELL = ("all_frames", "all_octets", "classified", "matched", "passed", "sampled", "kept", "management_frames", "own_frames")

Frames = Sequence[tuple[int, bytes]]


@contextmanager
def joined(folder: Path, files: Path) -> Iterator[Monitored]:
    """A simulated tester, built in ``folder``, whose two ports are joined by a cable; ``files``: where its captures go."""
    with monitored(folder, files, "--wire", "cable?delay=1us") as found:
        yield found


@dataclass(frozen=True)
class Findings:
    """What became of it, against what was on the pins.

    Attributes
    ----------
    frames : int
        Probe frames that arrived at both ports.
    starts_off, stamps_off : int
        Frames that left at another time than their slot's, or carry another.
    records, dropped : int
        Frames in records; frames that channels dropped.
    records_off : int
        Records that are not what was on the pins, or are there twice.
    uncounted : int
        Frames that are in no record, and that no channel has dropped.
    measures_off : list of str
        Accumulators, histograms and counters that say something else.
    """

    frames: int
    starts_off: int
    stamps_off: int
    records: int
    dropped: int
    records_off: int
    uncounted: int
    measures_off: list[str]


def field(octets: bytes, start: int, end: int) -> int:
    """Return a field of a frame."""
    return int.from_bytes(octets[start:end], "big")


def probe_frames(tester: Monitored, port: int, direction: str = "in") -> list[tuple[int, bytes]]:
    """Return time and octets of the probe frames on a port's pins."""
    return [(stamp, octets) for stamp, octets in tester.pins(port, direction) if octets[42:46] == b"LPRO"]


def send_and_see(tester: Monitored, length: int, count: int, snap: int) -> Findings:
    """Send ``count`` frames back to back from each port in the same tick, capture ``snap`` octets of each, and compare."""
    probe, slot_ns = tester.probe, OCTET_NS * (length + OVERHEAD)
    meters = [Monitor(probe, port) for port in range(PORTS)]
    for meter in meters:
        meter.watch(stream_base=1)
    before = [meter.events() for meter in meters]
    starts_ns: list[int] = []

    def traffic() -> None:
        starts_ns.append(probe.timebase.now_ns + AHEAD_NS)
        program = TrainProgram(length, count, start_time_ns=starts_ns[0], fill="prbs")
        probe.launch_all([(replace(program, stream_id=1 + port), port) for port in range(PORTS)])
        probe.link.expect_silence(SILENCE_S)

    settings = CaptureSettings(snap_length=snap, keep=Keep.PACKETS)
    got, dropped = tester.capture(settings, traffic, AHEAD_NS + count * slot_ns + SETTLE_NS)
    probe.link.expect_silence(0)
    sent = [probe_frames(tester, port, "out") for port in range(PORTS)]
    came = [probe_frames(tester, port) for port in range(PORTS)]
    slots = [starts_ns[0] + slot_ns * number for number in range(count)]
    on_pins = {Got(port, stamp, len(octets), octets[:snap]) for port in range(PORTS) for stamp, octets in came[port]}
    records = set(got.records)
    frames, lost = sum(map(len, came)), sum(dropped.values())
    return Findings(
        frames=frames,
        starts_off=sum(differing([stamp for stamp, _ in one], slots) for one in sent),
        stamps_off=sum(field(octets, 52, 60) != stamp for one in sent for stamp, octets in one),
        records=len(records),
        dropped=lost,
        records_off=len(records - on_pins) + len(got.records) - len(records),
        uncounted=frames - len(records) - lost + abs(sum(got.missing.values()) - lost),
        measures_off=[
            f"port {port}: {line}"
            for port, meter in enumerate(meters)
            for line in [*stream_off(meter, 2 - port, came[port]), *events_off(meter, before[port], len(came[port]))]
        ],
    )


def differing(found: Sequence[int], wanted: Sequence[int]) -> int:
    """Return in how many places two lists differ, those that only one of them has too."""
    return sum(one != other for one, other in zip(found, wanted, strict=False)) + abs(len(found) - len(wanted))


def stream_off(meter: Monitor, slot: int, frames: Frames) -> list[str]:
    """Return what the accumulators and histograms of a stream say that the pins don't."""
    seen = meter.read()
    # Management in band may stand before a frame on its way: the pins say how long each took.
    delays_ns = [stamp - field(octets, 52, 60) for stamp, octets in frames]
    wanted = {
        "stream_id": slot,
        "frames": len(frames),
        "octets": sum(len(octets) for _, octets in frames),
        "first_stamp_ns": frames[0][0],
        "last_stamp_ns": frames[-1][0],
        "expected": len(frames),
        **dict.fromkeys(("lost", "duplicated", "reordered", "beyond_window"), 0),
        "delay_min_ns": min(delays_ns),
        "delay_max_ns": max(delays_ns),
        "delay_sum_ns": sum(delays_ns),
        "delay_square_sum": sum(delay**2 for delay in delays_ns),
    }
    totals = {BinKind.LENGTH: len(frames), BinKind.DELAY: len(frames), BinKind.ARRIVAL: len(frames) - 1}
    found = {name: getattr(seen.streams[slot], name) for name in wanted}
    found |= {kind.name: seen.histograms[slot][kind].total for kind in totals}
    return different(found, wanted | {kind.name: total for kind, total in totals.items()})


def events_off(meter: Monitor, before: dict[str, int], frames: int) -> list[str]:
    """Return which counters of a port say that a frame is more, less, or was refused."""
    more = {name: value - before[name] for name, value in meter.events().items()}
    arrived = frames + more["management_frames"]
    wanted = {name: count if name in ARRIVED_WELL else 0 for name, count in more.items()}
    return different(more, wanted | {"all_frames": arrived, "classified": arrived})


def different(found: Mapping[str, int | None], wanted: Mapping[str, int | None]) -> list[str]:
    """Return what differs, a line each."""
    return [f"{name} {found[name]}, not {value}" for name, value in wanted.items() if found[name] != value]
