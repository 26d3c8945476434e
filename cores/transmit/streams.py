# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What a transmit port has beside others where it sends streams, too."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.crossing import LevelCrossing
from liteprobe.cores.formats import STREAMS
from liteprobe.cores.transmit.frames import stamp_layout
from liteprobe.cores.transmit.sent import SentCounters

def add_streams(path):
    """Let a program of a TransmitPath be of streams, too."""
    path.streams_mask   = Signal(STREAMS)
    path.streams_hold   = Signal()
    path.streams_arm    = Signal()
    path.streams_begin  = Signal(STREAMS)
    path.streams_end    = Signal(STREAMS)
    path.streams_active = Signal(STREAMS)
    streams, build = path.streams, path.build
    path.comb += [
        path.asked.eq(path.arm | path.streams_arm),
        If(path.of_streams,
            streams.source.connect(path.descriptors),
        ).Else(
            path.schedule.source.connect(path.descriptors),
        ),
        streams.arm.eq(path.begins & path.of_streams),
        streams.stop.eq(path.is_stopped & path.of_streams),
        streams.elapsed.eq(path.elapsed.elapsed),
        streams.mask.eq(path.streams_mask),
        streams.hold.eq(path.streams_hold),
        streams.begin.eq(path.streams_begin),
        streams.end.eq(path.streams_end),
        path.streams_active.eq(streams.active),
        streams.header_read.adr.eq(build.header_adr),
        streams.header_read.re.eq(build.header_re),
        build.header_dat.eq(streams.header_read.dat),
        *[getattr(streams, name).eq(getattr(build, name)) for name in ("builds", "build_stream", "build_word")],
    ]
    path.sync += If(path.asked & ~path.is_busy, path.of_streams.eq(path.streams_arm))
    add_primed(path)
    add_stamp_of_frame(path)
    add_sent(path)

def add_primed(path):
    """Let a program of streams start though its first frame may be due much later."""
    is_armed  = Signal() # What the source says is about this program.
    is_primed = Signal()
    path.primed = primed = LevelCrossing("timebase")
    path.sync += [
        If(path.streams.arm, is_armed.eq(1)),
        If(~path.is_busy, is_armed.eq(0)),
        is_primed.eq(is_armed & path.streams.is_primed),
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

def add_sent(path):
    """Count for each stream."""
    path.sent_counters = sent = SentCounters()
    pulses = path.counters.pulses
    path.comb += [
        sent.taken.eq(path.announce.taken.o & ~path.descriptors.empty),
        sent.stream.eq(path.descriptors.stream),
        sent.sequence.eq(path.descriptors.sequence),
        sent.late.eq(pulses["late"] & path.of_streams),
        sent.sent.eq(pulses["sent"] & path.of_streams),
        sent.clear.eq(path.clear | (path.taken & path.of_streams)),
    ]
