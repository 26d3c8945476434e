# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The clock of a whole simulated probe beside its replay: firmware, streamed frames and the capture share one SDRAM."""

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from liteprobe.cores.formats import OVERHEAD, TICK_NS, ClockState
from liteprobe.host.device.firmware import Image
from liteprobe.host.device.firmware_build import Tools
from liteprobe.host.device.firmware_build import build as build_firmware
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.run.streamed import StreamLook
from liteprobe.host.run.replay import PortReplay, ReplayResult
from liteprobe.host.traffic.trace.trace import Trace
from liteprobe.sim.drivers.system import senders
from liteprobe.sim.drivers.system.firmware_run import FIRST_NS, PERIOD_NS, Running, Work, boot
from liteprobe.sim.drivers.system.senders import Sent
from liteprobe.sim.system.build import build_probe

MEMORY_MHZ = 80  # Of the boards' SDRAM, where ``sys`` has 50.
LENGTH = 1514  # Of the frames, back to back: the most octets.
#: Frames: fewer than the ring of a port holds, so they are read from it again and again; and more, so all is streamed again and
#: again, as fast as a simulation in lock-step takes it. A frame that is streamed is written and read: a port that streams at full
#: rate takes as much of the SDRAM as two that loop.
LOOPED, STREAMED = 20, 500
SETTLES = 8  # Periods from the first pulse with a sentence: the second is set with the sixth.
WORKED_NS = (
    7_000_000  # From a pulse until its edge has been worked off: 5 ms of 50 MHz are 4 of the simulated processor.
)


@dataclass
class Beside:
    """Holds the results of the clock and of the replay.

    Attributes
    ----------
    edges : those that came while all ports sent.
    work : CPU time of the last of them, and of the longest since the firmware began.
    is_locked : the clock was, at the end.
    frames : what left port 0.
    sustained : the part of its line that they had (%).
    """

    edges: int
    work: Work
    is_locked: bool
    ports: tuple[PortReplay, ...]
    frames: list[bytes]
    sustained: float


class Clock(NamedTuple):
    """A probe that replays and whose clock is locked, what is on its pins, and its firmware."""

    running: Running
    sent: Sent
    image: Image


@contextmanager
def locked(tools: Tools, files: Path) -> Iterator[Clock]:
    """A probe that replays, its firmware in the SDRAM, on a receiver's pulses; ``files``: where its captures go."""
    build = build_probe("own", preset="replay", main_ram="sdram", memory_mhz=MEMORY_MHZ)
    image = build_firmware(build / "csr.json", tools)
    with boot(build, image.path, link="own", pcap=files / "pins") as running:
        running.until({ClockState.LOCKED}, periods=10)
        running.receiver.has_sentences = True
        running.wait(SETTLES)
        assert running.clock()["state"] == ClockState.LOCKED
        yield Clock(running, Sent(running.probe, files), image)


def packets(port: int, frames: int) -> list[senders.Packet]:
    """Return what a port is to send, again and again."""
    return list(senders.packets(frames, port + 1, 1.0, LENGTH, LENGTH))


def replay_until(clock: Clock, frames: Mapping[int, int], is_over: Callable[[StreamLook], bool]) -> ReplayResult:
    """Replay so many frames a port, back to back and without an end, until ``is_over`` says so, which each look is given."""
    traces = {}
    for port, count in frames.items():
        file = clock.sent.files / f"port{port}.pcap"
        senders.write(file, packets(port, count))
        traces[port] = Trace.from_pcap(file)

    def show(look: StreamLook) -> None:
        if is_over(look):
            raise Interrupted(signal.SIGINT)

    try:
        clock.running.probe.replay(traces, loops=None, show=show)
    except Interrupted as end:
        result: ReplayResult
        (result,) = end.results
        return result
    raise AssertionError("a replay without an end has ended")


def beside(clock: Clock, frames: Mapping[int, int], pulses: int) -> Beside:
    """Replay so many frames a port, back to back and without an end, until the last of so many pulses has been worked off.

    No pulse follows it, so that the firmware tells of that one. Nothing is asked of the firmware meanwhile: an answer of its shell
    takes longer than all else.
    """
    running, sent, _ = clock
    receiver = running.receiver
    before = len(sent.all_pins(0))
    receiver.give(ahead=pulses)
    last_ns = FIRST_NS + (receiver.number - 1) * PERIOD_NS

    result = replay_until(clock, frames, lambda look: receiver.link.now_ns() > last_ns + WORKED_NS)
    is_locked = running.clock()["state"] == ClockState.LOCKED
    gone = sent.all_pins(0)[before:]
    (began_ns, _), (ended_ns, _) = gone[0], gone[-1]
    slot_ns = TICK_NS * (LENGTH + OVERHEAD)
    sustained = 100 * len(gone) * slot_ns / (ended_ns - began_ns + slot_ns)
    assert ended_ns > last_ns + WORKED_NS
    receiver.has_pulses = False
    work = running.work()
    receiver.has_pulses = True
    edges = (last_ns - began_ns) // PERIOD_NS + 1
    return Beside(edges, work, is_locked, result.ports, [octets for _, octets in gone], sustained)
