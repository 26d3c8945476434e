# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What a transmit port has beside others where it sends streams, too."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import STREAMS
from liteprobe.cores.transmit.programs.headers import add_headers
from liteprobe.cores.transmit.programs.choice import OtherPrograms
from liteprobe.cores.transmit.programs.sent import SentCounters

def add_streams(path):
    """Give a TransmitPath streams; return what `add_programs` must know of their programs."""
    path.streams_mask   = Signal(STREAMS)
    path.streams_hold   = Signal()
    path.streams_arm    = Signal()
    path.streams_begin  = Signal(STREAMS)
    path.streams_end    = Signal(STREAMS)
    path.streams_active = Signal(STREAMS)
    streams = path.streams
    path.comb += [
        streams.arm.eq(path.begins & path.of_streams),
        streams.stop.eq(path.is_stopped & path.of_streams),
        streams.elapsed.eq(path.elapsed.elapsed),
        streams.mask.eq(path.streams_mask),
        streams.hold.eq(path.streams_hold),
        streams.begin.eq(path.streams_begin),
        streams.end.eq(path.streams_end),
        path.streams_active.eq(streams.active),
    ]
    add_headers(path, streams)
    path.sync += If(path.asked & ~path.is_busy, path.of_streams.eq(path.streams_arm))
    add_sent(path)
    # It stays as it was behind a program.
    is_alone  = path.replay is None and path.sets is None
    is_primed = streams.is_primed if is_alone else streams.is_primed & path.of_streams
    return OtherPrograms(path.of_streams, path.streams_arm, streams.arm, is_primed, streams.source)

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
