# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends frames over a line of 10 Gb/s to the parser, and reads the unified header of each, as the driver of 1 Gb/s does."""

import struct
from collections.abc import Sequence
from pathlib import Path

from migen import *

from litex.gen import *

from liteprobe.cores.xgmii.parse import XgmiiParser, parsed_layout
from liteprobe.cores.xgmii.receive import XgmiiReceiveMAC
from liteprobe.sim.drivers.receive.unified import HeaderReader, UnifiedRun
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.tools.pins import PinnedBench

# Bench --------------------------------------------------------------------------------------------


class XgmiiParserBench(PinnedBench):
    """The receiver of a port and its parser on pins: ``rx_*``, ``parsed_*``, ``lost``, and ``header<n>_*`` of each parser."""

    def __init__(self):
        PinnedBench.__init__(self)
        self.mac = mac = XgmiiReceiveMAC()
        self.parser = parser = XgmiiParser(with_headers=True)
        self.comb += mac.source.connect(parser.sink)
        self.add_inputs(mac, ["data", "control"], "rx_")
        self.add_source("parsed", parser.source, [name for name, _ in parsed_layout()])
        self.add_output("parsed_number", parser.number)
        lost = [parser.dropped]
        for number, one in enumerate(parser.parsers):
            reader = HeaderReader(one.parser)
            self.add_module(name=f"reader{number}", module=reader)
            self.add_source(f"header{number}", reader.source, ["last", "data"])
            lost.append(reader.lost)
        self.add_output("lost", Cat(*lost))


BENCH = CompiledBench(XgmiiParserBench, Path(__file__).with_name("parse.cpp"))

# Runs ---------------------------------------------------------------------------------------------


def run(frames: Sequence[bytes], bad_fcs: Sequence[bool] = (), gap: int = 12, stall: int = 0) -> UnifiedRun:
    """Send frames (without FCS), and return their headers.

    Parameters
    ----------
    frames : octets of each, from none on; runts aren't padded.
    bad_fcs : of each frame; all good unless given.
    gap : octets between frames, with the terminate, before the next one starts in a column; on the average.
    stall : of 256 cycles, those in which nobody takes results, and up to 60 in which nobody takes headers.
    """
    sent = b"".join(
        struct.pack("<II", len(frame), bad_fcs[number] if bad_fcs else 0) + frame for number, frame in enumerate(frames)
    )
    done = BENCH.run({"frames": sent}, {"gap": gap, "stall": stall})
    count, headers, lost, cycles = done.numbers
    octets = done.files["headers"]
    assert len(octets) == 128 * headers, (len(octets), headers)
    return UnifiedRun(octets, count, lost, cycles)
