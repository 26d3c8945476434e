# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Takes frames and lines through the MAC of 10 Gb/s, and holds what comes out against the model of the line."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from migen import *

from litex.gen import *

from liteprobe.cores.xgmii.mac import XgmiiMAC
from liteprobe.cores.xgmii.receive import SFD_CYCLES
from liteprobe.cores.xgmii.transmit import START_CYCLES
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.tools.pins import PinnedBench
from liteprobe.sim.models import xgmii
from liteprobe.sim.models.xgmii import WORD, Line

SENT     = ["sent_count", "lost_count", "underrun_count"]
RECEIVED = [
    "frame_count", "fcs_error_count", "symbol_error_count", "runt_count", "preamble_error_count", "lane_error_count"]
LINK     = ["local_fault_count", "remote_fault_count"]

# XGMII Bench --------------------------------------------------------------------------------------

class XgmiiBench(PinnedBench):
    """A MAC on pins of its names, its ports with ``tx_`` and ``rx_`` before them."""

    def __init__(self):
        PinnedBench.__init__(self, "timebase", "eth_rx")
        self.mac = mac = XgmiiMAC()
        self.add_sink("sink", mac.transmit.sink, ["data", "last", "last_be", "error", "lane_4"])
        self.add_outputs(mac.transmit, ["data", "control", "sfd", "sfd_high"], "tx_")
        self.add_inputs(mac.receive, ["data", "control"], "rx_")
        self.add_outputs(mac.receive, ["sfd", "sfd_high"], "rx_")
        self.add_outputs(mac.receive.source, ["valid", "data", "last", "last_be", "fcs_error", "symbol_error", "number"], "source_")
        self.add_output("fault", mac.fault)
        self.add_outputs(mac.transmit, SENT)
        self.add_outputs(mac.receive, RECEIVED)
        self.add_outputs(mac.link, LINK)


BENCH = CompiledBench(XgmiiBench, Path(__file__).with_name("mac.cpp"))

# Runs ---------------------------------------------------------------------------------------------

RX_WORD = np.dtype(
    [("octets", "u1", 8), ("last_be", "u1"), ("last", "u1"), ("fcs_error", "u1"), ("symbol_error", "u1"), ("number", "u1")])
PAIR = np.dtype([("cycle", "<u4"), ("value", "<u4")])


@dataclass(frozen=True)
class Sending:
    """A frame to send: its octets, the cycle before which it isn't shown, and what is wrong with it."""

    octets: bytes
    not_before: int = 0
    lane_4: bool = False
    error: bool = False
    underrun: int = 0

    def packed(self) -> bytes:
        """Return it as the bench reads it."""
        head = np.array([len(self.octets), self.not_before, self.lane_4 | self.error << 16, self.underrun], "<u4")
        return head.tobytes() + self.octets


@dataclass(frozen=True)
class MacRun:
    """Holds what both sides did: the line that was sent, which frames were shown when, frames and counters."""

    sent: Line
    flags: NDArray[np.uint8]
    shown: list[int]
    words: NDArray[np.void]
    sfds: list[int]
    faults: list[tuple[int, int]]
    counts: dict[str, int]

    def frames(self) -> tuple[list[bytes], NDArray[np.void]]:
        """Return the frames that were received, and the last word of each."""
        ends = np.flatnonzero(self.words["last"])
        lasts = self.words[ends]
        bits = np.unpackbits(lasts["last_be"][:, None], axis=1, bitorder="little")
        assert (bits.sum(axis=1) <= 1).all()
        left = np.where(bits.any(axis=1), bits.argmax(axis=1) + 1, 0)
        begins = np.concatenate([[0], ends[:-1] + 1])
        octets = self.words["octets"].tobytes()
        places = zip((8 * begins).tolist(), (8 * ends + left).tolist())
        return [octets[begin:end] for begin, end in places], lasts

    def sfd_places(self) -> list[int]:
        """Return where each SFD was, as the transmitter reported it."""
        cycles = np.flatnonzero(self.flags & 1)
        return (8 * cycles + np.where(self.flags[cycles] & 2, 7, 3)).tolist()


def run(frames: Sequence[Sending] = (), line: Line | None = None, cycles: int = 0) -> MacRun:
    """Send frames, and let a line come, for so many cycles, or until both are through."""
    files = {"frames": b"".join(one.packed() for one in frames), "line": line.words().tobytes() if line else b""}
    done = BENCH.run(files, {"cycles": cycles})
    sfds, faults = done.array("sfds", PAIR), done.array("faults", PAIR)
    return MacRun(
        Line.read(done.array("sent", WORD)),
        done.array("flags", np.uint8),
        done.array("shown", "<u4").tolist(),
        done.array("words", RX_WORD),
        (8 * (sfds["cycle"].astype(int) - SFD_CYCLES) + np.where(sfds["value"], 7, 3)).tolist(),
        list(zip(faults["cycle"].tolist(), faults["value"].tolist())),
        dict(zip([*SENT, *RECEIVED, *LINK], done.numbers, strict=True)),
    )

# Truth --------------------------------------------------------------------------------------------


def wrong_sent(frames: Sequence[Sending], done: MacRun) -> list[str]:
    """Return which frames left otherwise than they should have, each octet, its FCS and its start included."""
    starts, seen = xgmii.frames_on(done.sent)
    asked = [8 * (shown + START_CYCLES) for shown in done.shown]
    expected = xgmii.started(asked, [one.lane_4 for one in frames], [len(one.octets) for one in frames])
    wrong = [f"{len(seen)} frames, not {len(frames)}"] * (len(seen) != len(frames))
    for n, (frame, octets) in enumerate(zip(frames, seen)):
        whole = xgmii.with_fcs(frame.octets)
        if frame.error:
            whole = whole[:-4] + bytes(octet ^ 255 for octet in whole[-4:])
        if octets != whole:
            wrong.append(f"frame {n} of {len(frame.octets)} octets: {octets.hex()}, not {whole.hex()}")
    wrong += [f"frame {n} starts at {got}, not {due}" for n, (got, due) in enumerate(zip(starts, expected)) if got != due]
    if done.sfd_places() != [start + 7 for start in starts]:
        wrong.append("SFDs were told of where there are none")
    return wrong


def wrong_received(line: Line, done: MacRun) -> list[str]:
    """Return what the receiver found otherwise than the model does."""
    model = xgmii.received(Line.read(line.words()))
    frames, lasts = done.frames()
    wrong = []
    if len(frames) != len(model.frames):
        wrong.append(f"{len(frames)} frames, not {len(model.frames)}")
    wrong += [f"frame {n}: {got.hex()}, not {due.hex()}" for n, (got, due) in enumerate(zip(frames, model.frames)) if got != due]
    for name, due in [("fcs_error", model.fcs_errors), ("symbol_error", model.symbol_errors)]:
        bad = np.flatnonzero(lasts[name][: len(due)] != np.array(due, np.uint8)[: len(lasts)])
        wrong += [f"{name} of frame {n} is {lasts[name][n]}" for n in bad]
    if not np.array_equal(lasts["number"], np.arange(len(lasts)) % 16):
        wrong.append("numbers of SFDs are wrong")
    if done.sfds != model.sfds:
        wrong.append("SFDs are elsewhere")
    states = [state for _, state in model.faults]
    expected = {
        "frame_count": len(model.frames),
        "fcs_error_count": sum(model.fcs_errors),
        "symbol_error_count": sum(model.symbol_errors),
        "runt_count": model.runts,
        "preamble_error_count": model.preamble_errors,
        "lane_error_count": model.lane_errors,
        "local_fault_count": states.count(xgmii.LOCAL),
        "remote_fault_count": states.count(xgmii.REMOTE),
    }
    wrong += [f"{name} is {done.counts[name]}, not {due}" for name, due in expected.items() if done.counts[name] != due]
    if [state for _, state in done.faults] != states:
        wrong.append("the link has other faults")
    return wrong
