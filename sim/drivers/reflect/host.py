# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Plays frames into a port with a host, at the pins, and compares all that leaves, and all that is counted, with the model."""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from migen import *

from litex.gen import *

from liteprobe.cores.formats.reflect import (
    ACCESS_WORD, COUNT_WORD, PAGE_WORD, SEND_WORD, HostCount, HostEnable, HostWords, access_words, mail_words,
)
from liteprobe.cores.receive.arrivals import Arrivals
from liteprobe.cores.receive.unified.parser import passing_cycles
from liteprobe.cores.reflect.host import PortHost
from liteprobe.cores.timebase.clock import TimebaseClock
from liteprobe.cores.timebase.seconds import SecondsClock
from liteprobe.cores.transmit.pace import StartGate
from liteprobe.cores.transmit.path import TransmitPath
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.tools.pins import PinnedBench
from liteprobe.sim.drivers.traffic.port import frames_of
from liteprobe.sim.drivers.transmit.shown import ShownCounters, StillNumbers
from liteprobe.sim.models.reflect.host import Host

# Host Bench ---------------------------------------------------------------------------------------

CLK_FREQ = 50e6

class HostBench(PinnedBench):
    """A port that sends trains, with a host beside it, from the PHY's octets to the PHY's octets."""
    def __init__(self):
        PinnedBench.__init__(self, "sys", "timebase", "eth_rx")
        self.clock    = clock    = TimebaseClock()
        self.seconds  = seconds  = SecondsClock()
        self.gate     = gate     = StartGate(1)
        self.path     = path     = TransmitPath(clock, with_management=True, with_stamp=True)
        self.arrivals = arrivals = Arrivals(clock, False, passing_cycles, with_management=False)
        self.host     = host     = PortHost(CLK_FREQ)
        self.add_inputs(path, ["stop", "arm"])
        self.shown    = shown    = ShownCounters(path.counters)
        self.numbers  = numbers  = StillNumbers(path)
        self.add_outputs(path, ["state"])
        self.add_outputs(shown, ["sent", "late", "underruns", "management_dropped"])
        self.add_outputs(clock, ["now"])
        self.add_input("set_time", clock.set_time)
        self.add_input("set_clock", clock.set)
        self.add_outputs(path.source, ["valid", "data"], "tx_")
        self.add_inputs(arrivals.sink, ["valid", "data"], "rx_")
        self.add_inputs(host, ["enable", "rate", "send", "send_octets"])
        self.add_outputs(host, ["sending"])
        self.add_input("program_length", path.program.length)
        self.add_input("program_count", numbers.count)
        self.add_input("program_interval", numbers.interval_ticks)
        self.add_bus([host.bus])
        self.comb += [
            numbers.repeats.eq(1),
            path.program.payload_offset.eq(42),
            gate.mask.eq(1),
            gate.request.eq(self.add_pin("start_request")),
            path.start_strobe.eq(gate.strobe[0]),
            gate.ready[0].eq(path.ready),
            seconds.now.eq(clock.now),
            host.join_port(arrivals, seconds),
            host.join_line(path.management_sink, path.management_has_spare, path.management.stamp, seconds),
        ]

BENCH = CompiledBench(HostBench, Path(__file__).with_name("host.cpp"))

# Runs ---------------------------------------------------------------------------------------------

SYS_PS = 20_000 # 50 MHz.
PREAMBLE = b"\x55" * 7 + b"\xd5"
GAP = 12
ARRIVAL = np.dtype([("tick", "<u8"), ("now", "<u8")])
START_NS = 1_764_000_000 * 10**9 + 999_900_000 # Near to the end of a second: runs pass it.


@dataclass(frozen=True)
class Sent:
    """A frame as it is played: octets without FCS; idle octets before; whether it is broken."""

    octets: bytes
    gap: int = GAP
    is_broken: bool = False

    @property
    def wire(self) -> bytes:
        """Octets on the PHY."""
        fcs = zlib.crc32(self.octets) ^ (self.is_broken and 0x1)
        return PREAMBLE + self.octets + struct.pack("<I", fcs)


@dataclass(frozen=True)
class HostRun:
    """Holds what came of a run.

    Attributes
    ----------
    answers : list of (tick of SFD, now in it, octets without FCS)
        Of all frames that left but those of the program.
    program : list of (tick of SFD, octets without FCS)
    arrivals : list of now (ns) at the SFD of each frame that came
    counts : dict of HostCount to int
    memory : words at the end
    sent, late, underruns, dropped : as the port counts them
    fcs_off : frames that left with a wrong FCS
    """

    answers: list[tuple[int, int, bytes]]
    program: list[tuple[int, bytes]]
    arrivals: list[int]
    counts: dict[HostCount, int]
    memory: list[int]
    sent: int
    late: int
    underruns: int
    dropped: int
    fcs_off: int


def run(
    host: Host,
    frames: Sequence[Sent],
    mail: Sequence[tuple[int, bytes]] = (),
    train: tuple[int, int, int] = (60, 0, 0),
    rate: int = 0,
    start_ns: int = START_NS,
) -> HostRun:
    """Play ``frames`` into the port of ``host``.

    Parameters
    ----------
    mail : (number of the frame before which it is sent, octets): what the host's program sends, all alike but the length.
    train : length, count and interval (ticks) of a program beside it; its header begins with zeros.
    """
    records, places = b"", []
    for one in frames:
        places.append(len(records))
        records += struct.pack("<II", one.gap, len(one.wire)) + one.wire
    given = host.enable and host.enable | HostEnable.TAGGED * (host.vlan is not None)
    given |= HostEnable.INFORMATION * bool(host.information)
    settings = [given, rate, start_ns >> 32, start_ns & 0xFFFFFFFF]
    words = HostWords(
        host.mac, host.ipv4, host.ipv6, host.vlan or 0, host.stamp_port, host.error_estimate, host.information).words
    memory = [*enumerate(words, PAGE_WORD), *enumerate(access_words(host.access), ACCESS_WORD)]
    for _, octets in mail[:1]:
        memory += enumerate(mail_words(octets), SEND_WORD)
    memory += [(1 << 31 | places[before], len(octets)) for before, octets in mail]
    files = {
        "wire": records,
        "settings": struct.pack(f"<{len(settings)}I", *settings),
        "memory": b"".join(struct.pack("<II", *pair) for pair in memory),
    }
    length, count, interval = train
    options = {"sys_ps": SYS_PS, "length": length, "count": count, "interval": interval}
    done = BENCH.run(files, options)
    ticks, now, _, octets = frames_of(done)
    left = [(int(tick), int(at), one) for tick, at, one in zip(ticks, now, octets, strict=True)]
    words = done.array("left", "<u4").tolist()
    is_program = [one[:12] == bytes(12) for _, _, one in left]
    return HostRun(
        [(tick, at, one[:-4]) for (tick, at, one), is_one in zip(left, is_program, strict=True) if not is_one],
        [(tick, one[:-4]) for (tick, _, one), is_one in zip(left, is_program, strict=True) if is_one],
        done.array("arrivals", ARRIVAL)["now"].tolist(),
        {count: words[COUNT_WORD + count] for count in HostCount},
        words,
        *done.numbers,
        sum(struct.pack("<I", zlib.crc32(one[:-4])) != one[-4:] for _, _, one in left),
    )


@dataclass(frozen=True)
class Compared:
    """Says how a run differs from the model.

    Attributes
    ----------
    expected, octets : answers that the model gives, and their octets
    differences : what is another, in words, the first twenty
    """

    expected: int
    octets: int
    differences: list[str]


def at_line_rate(host: Host, frames: Sequence[bytes], broken: Sequence[bool] = ()) -> list[Sent]:
    """Return frames back to back; after one whose answer is longer, the line is idle for as long as the answer takes more."""
    found, longer = [], 0
    for number, octets in enumerate(frames):
        is_broken = number < len(broken) and broken[number]
        found.append(Sent(octets, GAP + longer, is_broken))
        answer = None if is_broken else host.outcome(octets)[1]
        longer = 0 if answer is None else max(0, len(answer) - len(octets))
    host.sessions.clear()
    host.received.clear()
    return found


def compared(host: Host, frames: Sequence[Sent], found: HostRun) -> Compared:
    """Compare each answer, octet by octet, and each count; answers must come in the order of the requests."""
    counts = dict.fromkeys(HostCount, 0)
    differences: list[str] = []
    given = iter(found.answers)
    expected = octets = 0
    for number, (frame, arrival) in enumerate(zip(frames, found.arrivals, strict=True)):
        if frame.is_broken:
            continue
        is_answered = host.copy().outcome(frame.octets)[1] is not None
        outcome = host.outcome(frame.octets)[0] if not is_answered else None
        if is_answered:
            quick = host.copy().outcome(frame.octets)[0]
            if quick is HostCount.HEARD:
                outcome = quick
            else:
                answer = next(given, None)
                if answer is None:
                    differences.append(f"frame {number}: no answer to {frame.octets.hex()}")
                    host.outcome(frame.octets)
                    continue
                _, left, has = answer
                outcome, wanted = host.outcome(frame.octets, arrival, left)
                assert wanted is not None
                expected, octets = expected + 1, octets + len(wanted)
                if has != wanted.ljust(60, b"\0"):
                    shown = f"{frame.octets.hex()} is answered\n  {has.hex()}, not\n  {wanted.hex()}"
                    differences.append(f"frame {number} ({outcome!r}):\n  {shown}")
        if outcome is not None:
            counts[outcome] += 1
    differences += [f"answer without a request: {has.hex()}" for _, _, has in given]
    differences += [f"{count.name} is {found.counts[count]}, not {counts[count]}" for count in HostCount
        if found.counts[count] != counts[count]]
    if found.fcs_off or found.underruns or found.dropped:
        differences.append(f"{found.fcs_off} wrong FCS, {found.underruns} underruns, {found.dropped} dropped")
    return Compared(expected, octets, differences[:20])
