# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Trains on both ports of a tester at once, while it captures and measures all that arrives; compared with the pins."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from liteprobe.cores.formats import BINS, TICK_NS, slot_octets
from liteprobe.host.capture.request import CaptureSettings, Keep
from liteprobe.host.measure.monitor import Monitor
from liteprobe.host.traffic.train import TrainProgram
from liteprobe.sim.drivers.system.monitoring import PORTS, Got, Monitored, monitored
from liteprobe.sim.models.receive.meters import BinSettings, MeasuredFrame, PortMeterModel

CABLE = "cable?delay=1us"
STREAM_BASE = 1
IN_BAND = 0  # Port of management.
AHEAD_NS = 2_000_000  # From the request to the first SFD.
SETTLE_NS = 400_000
SILENCE_S = 120  # Of this machine: trains without a gap leave management no room, and 5 ms of them take it some seconds.

Frames = Sequence[tuple[int, bytes]]


@contextmanager
def joined(folder: Path, files: Path, wire: str = CABLE) -> Iterator[Monitored]:
    """A simulated tester, built in ``folder``, whose two ports are joined by a wire; ``files``: where its captures go."""
    with monitored(folder, files, "--wire", wire) as found:
        yield found


@dataclass(frozen=True)
class Findings:
    """Compares the result with what was on the pins.

    Attributes
    ----------
    frames : probe frames that arrived at both ports.
    starts_off, stamps_off : frames that left at another time than their slot's, or carry another.
    records, dropped : frames in records; frames that channels dropped.
    records_off : records that are not what was on the pins, or are there twice.
    uncounted : frames that are in no record, and that no channel has dropped.
    measures_off : accumulators, histograms and counters that say something else.
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


def send_and_see(tester: Monitored, lengths: Sequence[int], count: int, snap: int, spare_ticks: int = 0) -> Findings:
    """Send ``count`` frames from each port, beginning in the same tick, capture ``snap`` octets of each, and compare.

    Parameters
    ----------
    lengths : of the frames of each port.
    spare_ticks : from the slot of a frame to the next start; 0: back to back.
    """
    probe = tester.probe
    slots_ns = [TICK_NS * (slot_octets(length) + spare_ticks) for length in lengths]
    meters = [Monitor(probe, port) for port in range(PORTS)]
    for meter in meters:
        meter.watch(STREAM_BASE, prbs=range(meter.slots))
    starts_ns: list[int] = []

    def traffic() -> None:
        starts_ns.append(probe.timebase.now_ns + AHEAD_NS)
        like = TrainProgram(60, count, start_time_ns=starts_ns[0], fill="prbs")
        probe.launch_all([
            (replace(like, length=length, interval_ns=slot_ns if spare_ticks else None, stream_id=STREAM_BASE + port), port)
            for port, (length, slot_ns) in enumerate(zip(lengths, slots_ns, strict=True))
        ])
        probe.link.expect_silence(SILENCE_S)

    settings = CaptureSettings(snap_length=snap, keep=Keep.PACKETS)
    got, dropped = tester.capture(settings, traffic, AHEAD_NS + count * max(slots_ns) + SETTLE_NS)
    probe.link.expect_silence(0)
    sent = [probe_frames(tester, port, "out") for port in range(PORTS)]
    came = [probe_frames(tester, port) for port in range(PORTS)]
    slots = [[starts_ns[0] + slot_ns * number for number in range(count)] for slot_ns in slots_ns]
    on_pins = {Got(port, stamp, len(octets), octets[:snap]) for port in range(PORTS) for stamp, octets in came[port]}
    records = set(got.records)
    frames, lost = sum(map(len, came)), sum(dropped.values())
    return Findings(
        frames=frames,
        starts_off=sum(differing([stamp for stamp, _ in one], wanted) for one, wanted in zip(sent, slots, strict=True)),
        stamps_off=sum(field(octets, 52, 60) != stamp for one in sent for stamp, octets in one),
        records=len(records),
        dropped=lost,
        records_off=len(records - on_pins) + len(got.records) - len(records),
        uncounted=frames - len(records) - lost + abs(sum(got.missing.values()) - lost),
        measures_off=[
            f"port {port}: {line}"
            for port, meter in enumerate(meters)
            for line in [*meters_off(tester, meter), *events_off(meter, [len(octets) for _, octets in came[port]])]
        ],
    )


def differing(found: Sequence[int], wanted: Sequence[int]) -> int:
    """Return in how many places two lists differ, those that only one of them has too."""
    return sum(one != other for one, other in zip(found, wanted, strict=False)) + abs(len(found) - len(wanted))


def measured(stamp: int, octets: bytes) -> MeasuredFrame:
    """Return a frame on the pins as a meter takes it."""
    if octets[42:46] != b"LPRO":
        return MeasuredFrame(stamp, len(octets))
    stream_id, sequence, tx_stamp = (field(octets, start, end) for start, end in ((46, 48), (48, 52), (52, 60)))
    return MeasuredFrame(stamp, len(octets), 0, True, stream_id, sequence, tx_stamp)


def meters_off(tester: Monitored, meter: Monitor) -> list[str]:
    """Return which accumulators and bins of a port and of its streams aren't those of the model, fed with what was on the pins.

    In band, requests of the host come before and meanwhile: the pins are taken from the first to the last frame of the
    accumulators, and bins of the port itself aren't looked at.
    """
    port, *streams = meter.accumulators()
    histograms = meter.read().histograms
    set_ = meter.bins()
    origins, shifts = ({kind: getattr(one, name) for kind, one in set_.items()} for name in ("origin", "shift"))
    model = PortMeterModel(STREAM_BASE, settings=BinSettings(origins, shifts), slots=len(streams))
    for stamp, octets in tester.pins(meter.port):
        if port["first_stamp"] <= stamp <= port["last_stamp"]:
            model.arrive(measured(stamp, octets))
    lines = different(port, vars(model.port))
    for slot, (found, stream) in enumerate(zip(streams, model.streams, strict=True)):
        wanted: dict[str, Any] = stream.accumulators()
        del wanted["lost"]  # Derived, of the host; the rest is what the probe has.
        lines += [f"slot {slot}: {line}" for line in different(found, wanted)]
        for kind, bins in BINS.items():
            shown = histograms[slot][kind]
            counts = [shown.below, *shown.counts.tolist(), shown.above]
            if counts != model.bins[slot][bins.first : bins.first + bins.words] and (slot or meter.port != IN_BAND):
                lines.append(f"slot {slot}: bins of {kind.name}")
    return lines


def events_off(meter: Monitor, lengths: Sequence[int]) -> list[str]:
    """Return which counters of a port say that a frame is more, less, or was refused: ``lengths`` came, all are to be captured.

    A capture clears them when it begins. In band, frames of management come too, one of them while they are cleared or
    read: so what counts these is held against ``management_frames``, and may be one more or less. Those that come when the
    capture has ended are not left out of anything, so ``own_frames`` has fewer.
    """
    found = meter.events()
    in_band = meter.port == IN_BAND
    managed = found["management_frames"]
    wanted = dict.fromkeys(found, 0) | dict.fromkeys(("sampled", "kept"), len(lengths)) | {"all_octets": sum(lengths)}
    wanted |= dict.fromkeys(("all_frames", "classified", "matched", "passed"), len(lengths) + managed)
    wanted |= {"management_frames": managed, "own_frames": managed}
    if in_band:
        wanted["all_octets"] = found["all_octets"]  # The host's requests have lengths of their own.
        wanted["own_frames"] = min(max(found["own_frames"], 1), managed)
        for name in ("all_frames", "classified", "matched", "passed", "own_frames"):
            if abs(found[name] - wanted[name]) <= 1:
                wanted[name] = found[name]
    return different(found, wanted)


def different(found: Mapping[str, int | None], wanted: Mapping[str, int | None]) -> list[str]:
    """Return what differs, a line each."""
    return [f"{name} {found[name]}, not {value}" for name, value in wanted.items() if found[name] != value]
