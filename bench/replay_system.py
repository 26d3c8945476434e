# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Row ``system`` of the bench ``replay``: the whole simulated probe, streamed to by UDP, in lock-step, against the file alone.

Its management port is a gigabit line of its own. Time stands still while the host works, so a host that is never slow; but time
that the host lets pass in one piece brings no datagrams, so what a stream sustains for ever is measured in the row ``datagrams``.
All frames at the pins are compared: management has a port of its own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from liteprobe.cores.formats import OVERHEAD, TICK_NS
from liteprobe.host.capture.request import CaptureRequest, CaptureSettings
from liteprobe.host.run.replay import PortReplay
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.trace.trace import Trace
from liteprobe.sim.drivers.system import senders
from liteprobe.sim.drivers.system.senders import Frames, Sent
from liteprobe.sim.drivers.tools.figures import Figure, row
from liteprobe.sim.system.build import build_probe

LOAD = 0.8
#: At 100 % of the line: length, snap length (None: all), frames (more than twice the ring), per cent that must be sustained.
LINES = (
    (60, None, 20_000, 100.0),
    (64, None, 16_000, 100.0),
    (128, None, 8000, 100.0),
    (256, None, 4200, 100.0),
    (512, None, 2600, 100.0),
    (1024, None, 1500, 100.0),
    (1514, None, 1200, 100.0),
    (1514, 1024, 1500, 100.0),
)
STAMP = Stamp("octet", octet=42)
#: Replayed and captured at once, at 100 %: length, snap length of the trace, of the capture, frames. Both whole are more than
#: the SDRAM can carry, so there frames are dropped.
CAPTURES = ((60, 60, 52, 12_000), (1514, 64, 64, 4000))
BEYOND = (1514, 1514, 1514, 1000)


@dataclass
class Run:
    """Holds the result of a replay, and the frames at the pins of both ports."""

    result: PortReplay
    out: Frames
    come: Frames
    captured: int
    dropped: int


@contextmanager
def probe(network: str = "") -> Iterator[Sent]:
    """A simulated probe of the preset ``replay``."""
    build = build_probe("own", with_cpu=False, preset="replay")
    with TemporaryDirectory() as files, senders.joined(build, Path(files), network=network, link="own") as sent:
        yield sent


def replayed(made: list[senders.Packet], network: str = "", snap: int | None = None, keep: int | None = None) -> Run:
    """Replay packets of a file from port 0; with ``keep``, stamped, and captured with this snap length."""
    with probe(network) as sent:
        file = sent.files / "asked.pcap"
        senders.write(file, made)
        trace = Trace.from_pcap(file)
        trace = trace if snap is None else trace.snapped(snap)
        trace = trace if keep is None else trace.stamped(STAMP)
        settings = CaptureSettings() if keep is None else CaptureSettings(snap_length=keep)
        request = None if keep is None else CaptureRequest(str(sent.files / "seen.pcapng"), settings=settings)
        result = sent.probe.replay({0: trace}, capture=request)
        counts = result.capture.counts if result.capture else {"frames": 0, "gap_frames": 0}
        return Run(result[0], sent.all_pins(0), sent.all_pins(1, "in"), counts["frames"], counts["gap_frames"])


@row("replay")
def test_system(is_full: bool) -> Iterator[Figure]:
    """10^4 frames at 8/10 load; each length at 100 %; capture at once; a network that loses, doubles and reorders."""
    yield from exponential(10_000 if is_full else 3000)
    for length, snap, frames, least in LINES:
        yield from line(length, snap, frames, least)
    for length, snap, keep, frames in CAPTURES:
        yield from captured(length, snap, keep, frames)
    length, snap, keep, frames = BEYOND
    run = replayed(list(senders.packets(frames, 3, 1.0, length, length)), snap=snap, keep=keep)
    yield Figure("system_capture_beyond_frames_dropped", run.dropped, "frames", 1, is_least=True)
    yield Figure("system_capture_beyond_frames_uncounted", len(run.come) - run.captured - run.dropped, "frames", 0)
    for percent in (1, 5):
        yield from lossy(percent, 0.3)


def exponential(count: int) -> Iterator[Figure]:
    """Random lengths, exponential gaps."""
    made = list(senders.packets(count, 1, LOAD))
    run = replayed(made)
    yield Figure("system_frames", len(run.out), "frames", count, is_least=True)
    yield Figure("system_off", len(senders.wrong_packets(run.out, made)), "frames", 0)
    yield Figure("system_underruns", run.result.underruns, "frames", 0)
    yield Figure("system_late_unexpected", run.result.delayed - (run.result.waited or 0), "frames", 0)


def line(length: int, snap: int | None, frames: int, least: float) -> Iterator[Figure]:
    """Frames of one length back to back, from the host for as long as it takes."""
    made = list(senders.packets(frames, 2, 1.0, length, length))
    run = replayed(made, snap=snap)
    name = f"system_{length}" + ("" if snap is None else f"_snap_{snap}")
    yield Figure(f"{name}_sustained", share(run, length), "%", least, is_least=True)
    wrong = senders.wrong_packets(run.out, made, snap) if not run.result.underruns else octets_off(run.out, made)
    yield Figure(f"{name}_off", len(wrong), "frames", 0)
    yield Figure(f"{name}_underruns", run.result.underruns, "frames", 0)
    yield Figure(f"{name}_resent", run.result.sent.resent, "datagrams", 0)


def share(run: Run, length: int) -> float:
    """Return the part of the line that frames of one length had (%)."""
    ticks = (run.out[-1][0] - run.out[0][0]) / TICK_NS + length + OVERHEAD
    return 100 * len(run.out) * (length + OVERHEAD) / ticks


def captured(length: int, snap: int, keep: int, frames: int) -> Iterator[Figure]:
    """A record of each frame with its delay, while it is replayed back to back."""
    made = list(senders.packets(frames, 3, 1.0, length, length))
    run = replayed(made, snap=snap, keep=keep)
    name = f"system_capture_{length}_snap_{snap}"
    yield Figure(f"{name}_sustained", share(run, length), "%", 100, is_least=True)
    yield Figure(f"{name}_records_missing", len(run.come) - run.captured, "records", 0)
    delays = run.result.delays
    assert delays is not None
    right = [come - went for (went, _), (come, _) in zip(run.out, run.come, strict=True)]
    off = sum(one != other for one, other in zip(right, delays.values.tolist(), strict=True))
    yield Figure(f"{name}_delays_off", off, "delays", 0)


def lossy(percent: int, load: float) -> Iterator[Figure]:
    """Check that a bad network changes no frame; what comes too late is said with its number."""
    made = list(senders.packets(1500, 4, load))
    run = replayed(made, network=f"loss={percent}%,duplicate={percent}%,reorder={percent}%,seed=5")
    name = f"system_loss_{percent}"
    yield Figure(f"{name}_frames", len(run.out), "frames", len(made), is_least=True)
    yield Figure(f"{name}_octets_off", len(octets_off(run.out, made)), "frames", 0)
    first = run.result.first_underrun
    exact = senders.wrong_packets(run.out[:first], made[:first])
    yield Figure(f"{name}_off_before_an_underrun", len(exact), "frames", 0)
    print(f"# {name}: {run.result.underruns} underruns, first {first}; {run.result.sent}")


def octets_off(frames: Frames, made: list[senders.Packet]) -> list[int]:
    """Return the numbers of frames that have other octets than the file."""
    return [n for n, ((_, found), packet) in enumerate(zip(frames, made, strict=False)) if found != packet.octets]
