# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What a transmit port has in the place of trains where it sends what leaves an emulated network."""

from migen import *

from litex.gen import *

from liteprobe.cores.crossing import LevelCrossing, PulseCrossing
from liteprobe.cores.formats.emulate import DUE_BITS, NOW_BITS

FORWARD_DUE_BITS     = DUE_BITS     # Of a departure.
FORWARD_ELAPSED_BITS = NOW_BITS + 1 # With its sign.

def add_forward(path):
    """Let a TransmitPath send the frames of its ``forward``, all of them in one program without an end."""
    path.forward_arm = Signal()
    add_stages(path)
    add_program(path)
    add_spoils(path, path.forward.spoils)

def add_stages(path):
    """Join the stages in the order of the data."""
    path.comb += [
        path.forward.source.connect(path.announce.sink),
        path.announce.source.connect(path.pace.descriptors),
        path.announce.build.connect(path.fetch.sink),
        path.forward.fetch.connect(path.fetch.octets),
        path.fetch.source.connect(path.crossing.sink),
        path.crossing.source.connect(path.converter.sink),
        path.converter.source.connect(path.pace.sink),
        path.pace.source.connect(path.mac.sink, omit={"ready", "error"}),
        path.mac.source.connect(path.source, omit={"ready"}),
    ]

def add_program(path):
    """Begin a program, which may start once nothing is left of the one before."""
    forward   = path.forward
    is_armed  = Signal() # What the source says is about this program.
    is_primed = Signal()
    path.primed           = primed = LevelCrossing("timebase")
    path.program_crossing = arming = PulseCrossing("sys", "timebase")
    path.comb += [
        path.taken.eq(path.forward_arm & ~path.is_busy),
        arming.i.eq(path.taken),
        path.pace.arm.eq(arming.o),
        forward.start.eq(path.begins),
        forward.stop.eq(path.is_stopped),
        primed.i.eq(is_primed),
        path.pace.is_primed.eq(primed.o),
    ]
    path.sync += [
        If(path.begins, is_armed.eq(1)),
        If(~path.is_busy, is_armed.eq(0)),
        is_primed.eq(is_armed & forward.is_primed),
    ]

def add_spoils(path, spoils):
    """Let a frame leave with a wrong FCS where ``spoils`` stands while its descriptor is shown: from its start on."""
    path.spoiled = spoiled = LevelCrossing("timebase")
    is_spoiled   = Signal()
    path.sync.timebase += If(path.pace.is_begun, is_spoiled.eq(spoiled.o))
    path.comb += [
        spoiled.i.eq(spoils),
        path.mac.sink.error.eq(path.pace.source.error | is_spoiled),
    ]
