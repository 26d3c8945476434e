# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Row ``stops`` of the bench ``replay``: a host that stops for 1 to 100 ms in the midst of a stream, through the whole probe.

The processes that prepare and send are stopped by a signal while so much of the probe's time passes. What the probe has got by the
end of that is read from it; from that and from the file it follows which frame is the first one whose octets come too late, if any.
"""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from replay_system import octets_off, probe

from liteprobe.cores.formats import OVERHEAD, RING_WORDS, TICK_NS, TRACE_HEADER_WORDS
from liteprobe.host.run.replay import PortReplay
from liteprobe.host.run.streamed import StreamLook
from liteprobe.host.traffic.trace.trace import Trace
from liteprobe.sim.drivers.system import senders
from liteprobe.sim.drivers.system.senders import Frames, Sent
from liteprobe.sim.drivers.tools.figures import Figure, note, row

STOPS_MS = (1, 3, 10, 30, 100)
LOADS = (0.8, 0.3)
MORE_LOADS = (0.05, 0.1, 0.5, 0.95)
BACK_MS = 2.0  # From the end of a stop on, that frames may lag behind what the line lets them.
TURNS = 2  # Of the ring, that a trace has words for.
MEAN_WORDS = TRACE_HEADER_WORDS + (60 + 1514) / 2 / 4 + 3 / 8


@dataclass
class Stop:
    """A stop of the host: words that the probe had by its end, and when that was (ns of the probe's clock)."""

    accepted: int
    ended_ns: int


@row("replay")
def test_stops(is_full: bool) -> Iterator[Figure]:
    """The host stops once, at several loads: the stream recovers, or the underrun is said with the frame that it must be.

    After it frames follow one another as the line lets them; those for which the line was not free are late, and only those for
    which it was are underruns, too: so of these the first one is known by arithmetic, and of late ones all are.
    """
    dry = held = 0
    for load in (*LOADS, *MORE_LOADS) if is_full else LOADS:
        for stop_ms in STOPS_MS:
            made = list(senders.packets(round(TURNS * RING_WORDS / MEAN_WORDS), stop_ms, load))
            result, out, stop = stopped(made, stop_ms / 1000)
            name = f"stops_{stop_ms}_ms_{100 * load:g}"
            yield Figure(f"{name}_frames", len(out), "frames", len(made), is_least=True)
            yield Figure(f"{name}_octets_off", len(octets_off(out, made)), "frames", 0)
            first, due = expected(made, out, stop), dues(made)
            yield Figure(f"{name}_first_underrun_off", int(result.first_underrun != first), "numbers", 0)
            exact = senders.wrong_packets(out[:first], made[:first])
            yield Figure(f"{name}_off_before", len(exact), "frames", 0)
            starts = np.array([stamp - out[0][0] for stamp, _ in out])
            ended = stop.ended_ns - out[0][0]
            is_said = (result.underruns > 0) == (first is not None) and result.underruns <= result.delayed
            yield Figure(f"{name}_underruns_off", int(not is_said), "counts", 0)
            yield Figure(f"{name}_late_off", abs(result.delayed - int(np.count_nonzero(starts > due))), "frames", 0)
            lag_ms = float(np.max(starts - soonest(made, due, first, ended))) / 1e6
            yield Figure(f"{name}_back_after", lag_ms, "ms", BACK_MS)
            note(f"# {name}: {result.underruns} underruns, first {result.first_underrun}, {stop}")
            dry, held = dry + (first is not None), held + (first is None)
    yield Figure("stops_that_ran_dry", dry, "stops", 1, is_least=True)
    yield Figure("stops_that_the_ring_outlasted", held, "stops", 1, is_least=True)


def stopped(made: list[senders.Packet], stop_s: float) -> tuple[PortReplay, Frames, Stop]:
    """Replay packets, and let the host stop once half a ring's words have been sent."""
    found: list[Stop] = []

    def show(look: StreamLook) -> None:
        if not found and look.frames[0] * MEAN_WORDS > RING_WORDS / 2:
            found.append(stop(sent, stop_s))

    with probe() as sent:
        file = sent.files / "asked.pcap"
        senders.write(file, made)
        result = sent.probe.replay(Trace.from_pcap(file), show=show)
        return result[0], sent.all_pins(0), found[0]


def stop(sent: Sent, seconds: float) -> Stop:
    """Let the host stand still, but for this process: it lets time pass."""
    pids = [one.pid for one in multiprocessing.active_children() if one.name.startswith("liteprobe-") and one.pid]
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        sent.probe.wait(seconds)
        return Stop(sent.probe.registers.read("port0_replay_accepted"), sent.probe.timebase.now_ns)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def expected(made: list[senders.Packet], out: Frames, stop: Stop) -> int | None:
    """Return the first frame of which the ring had not all words, if it was due while the host stood still."""
    words = np.cumsum([TRACE_HEADER_WORDS + -(-len(one.octets) // 4) for one in made])
    first = int(np.searchsorted(words, stop.accepted, side="right"))
    if first == len(made):
        return None
    return first if out[0][0] + dues(made)[first] < stop.ended_ns else None


def dues(made: list[senders.Packet]) -> NDArray[np.int64]:
    """Return when each packet is due, in whole ticks from the first one on (ns)."""
    return np.array([(one.time_ns - made[0].time_ns + TICK_NS // 2) // TICK_NS * TICK_NS for one in made])


def soonest(made: list[senders.Packet], due: NDArray[np.int64], first: int | None, ended_ns: int) -> NDArray[np.int64]:
    """Return when each packet can start at the soonest, if those from ``first`` on come as soon as the host goes on (ns)."""
    found, free = [], 0
    for number, one in enumerate(made):
        came = ended_ns if first is not None and number >= first else 0
        found.append(max(int(due[number]), came, free))
        free = found[-1] + TICK_NS * (len(one.octets) + OVERHEAD)
    return np.array(found)
