# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What a transmit port has where its programs are of more than trains: a choice of source, and stamps of each frame."""

from typing import NamedTuple

from migen import *
from migen.fhdl.structure import _Value

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.crossing import LevelCrossing
from liteprobe.cores.transmit.frames import stamp_layout

class OtherPrograms(NamedTuple):
    """A kind of program that a transmit port has beside trains.

    Attributes
    ----------
    is_chosen : Signal(), the program is of this kind; still from before its begin until it is over
    arm : Signal(), asks for one
    begin : Signal(), pulse: it begins
    is_primed : value, of a program that began: it may start, though its first frame may be due much later
    source : Endpoint of descriptors
    """
    is_chosen: Signal
    arm: Signal
    begin: Signal
    is_primed: _Value
    source: stream.Endpoint

def add_programs(path, others):
    """Let programs of a TransmitPath be of ``others``, too: a list of `OtherPrograms`."""
    first, *more = others
    choice = If(first.is_chosen, first.source.connect(path.descriptors))
    for other in more:
        choice = choice.Elif(other.is_chosen, other.source.connect(path.descriptors))
    path.comb += [
        path.asked.eq(Reduce("OR", [path.arm, *[other.arm for other in others]])),
        choice.Else(path.schedule.source.connect(path.descriptors)),
    ]
    add_primed(path, others)
    add_stamp_of_frame(path)

def add_primed(path, others):
    """Let a program start though its first frame may be due much later."""
    is_armed  = Signal() # What the source says is about this program.
    is_primed = Signal()
    path.primed = primed = LevelCrossing("timebase")
    path.sync += [
        If(Reduce("OR", [other.begin for other in others]), is_armed.eq(1)),
        If(~path.is_busy, is_armed.eq(0)),
        is_primed.eq(is_armed & Reduce("OR", [other.is_primed for other in others])),
    ]
    path.comb += [
        primed.i.eq(is_primed),
        path.pace.is_primed.eq(primed.o),
    ]

def add_stamp_of_frame(path):
    """Tell the stamp of each frame, from its start on: by then the one before is through."""
    stamp = path.stamp
    held  = Record(stamp_layout)
    stream.set_reset_less(held)
    path.sync.timebase += [
        If(path.pace.is_begun, [getattr(held, name).eq(getattr(path.announce.source, name)) for name, _ in stamp_layout]),
        stamp.is_late.eq(~held.checksum_enable | (held.stamp_offset < held.payload_offset)),
    ]
    path.comb += [
        *[getattr(stamp, name).eq(getattr(held, name)) for name in ("payload_offset", "checksum_enable", "checksum_seed")],
        *[getattr(stamp, name).eq(getattr(held, f"stamp_{name}"))
            for name in ("enable", "offset", "octets", "shift", "nibble", "mend")],
    ]
