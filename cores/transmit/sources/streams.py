# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A source of up to 16 streams of frames."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.formats import HEADER_WORDS_OF_STREAM, LIST_WORDS, STREAMS
from liteprobe.cores.transmit.frames import descriptor_description
from liteprobe.cores.transmit.sources.edits import HeaderEdits
from liteprobe.cores.transmit.sources.engine_memory import EngineMemory
from liteprobe.cores.transmit.sources.finish import FrameFinish
from liteprobe.cores.transmit.sources.headers import HeaderStore
from liteprobe.cores.transmit.sources.modifiers import ModifierEngine
from liteprobe.cores.transmit.sources.scheduler import StreamScheduler

# Stream Source ------------------------------------------------------------------------------------

class StreamSource(LiteXModule):
    """Emits a descriptor for each frame of up to 16 streams, in the order of their due ticks; in ``sys``.

    What a stream is stands in memories, in the words of formats/traffic.py; its state is kept there too. Header templates are
    edited in place before each frame: when a descriptor is there, its header is ready, and stays until the builder has read
    it. Up to three frames are on their way at a time, each from when it is due in fewer than HORIZON ticks. A frame takes at
    most 33 cycles, whatever varies in it.

    Limits: due ticks are exact as they are; one that is overdue is not moved. The source doesn't know what the line can take.

    Attributes
    ----------
    source : Endpoint(descriptor_description()), out
        A stream's due ticks may go back (bursts at exponential intervals); of two streams the one that is due first is first,
        the lower number on a tie. ``final`` and ``empty`` come together, when no stream is active any more.
    elapsed : Signal((64, True)), in
        Ticks since the start of the program, negative before it.
    arm, mask : Signal(), Signal(16), in
        Pulse: begins a program with the streams of ``mask``, which stays until ``is_primed``; ignored while active.
    stop : Signal(), in
        While high, the next descriptor is ``empty`` and ``final``, behind those that are on their way.
    hold : Signal(), in
        The program goes on when no stream is active, until ``stop``.
    begin, end : Signal(16), in
        Pulses, one for each stream: it joins the program, first due BEGIN_TICKS and its phase after now; it leaves it, but for
        frames on their way. Ignored while there is no program. A stream that has no frames left doesn't join.
    is_primed : Signal(), out
        The due ticks of all streams of ``mask`` are known, so that the first frame is on its way.
    is_active : Signal(), out
        From ``arm`` until the final descriptor is taken.
    active : Signal(16), out
        Streams that have frames that are not on their way yet.
    builds, build_stream, build_word : Signal(), Signal(4), Signal(5), in
        The header of the frame at ``source`` is being read; its stream; the word that is read next. Before and behind that
        ``builds`` is 0; ``source`` is taken behind it, or with the last word. A frame without it must not be taken.
    header_read : Record(header_read_layout)
        For the builder: word ``adr`` (32 for each stream) is in ``dat`` in the cycle after ``re``.
    streams_bus, modifiers_bus, lists_bus, headers_bus : wishbone.Interface, slaves
        Words of 32 bits, read and written at any time in the cycles that the engine leaves free; ``sel`` is ignored. Words of a
        stream that is active are not for writing, and its state changes between two reads.
    """
    def __init__(self):
        self.source    = stream.Endpoint(descriptor_description())
        self.elapsed   = Signal((64, True))
        self.arm       = Signal()
        self.mask      = Signal(STREAMS)
        self.stop      = Signal()
        self.hold      = Signal()
        self.begin     = Signal(STREAMS)
        self.end       = Signal(STREAMS)
        self.is_primed = Signal()
        self.is_active = Signal()
        self.active    = Signal(STREAMS)
        self.builds       = Signal()
        self.build_stream = Signal(log2_int(STREAMS))
        self.build_word   = Signal(log2_int(HEADER_WORDS_OF_STREAM))

        self.scheduler = StreamScheduler()
        self.modifiers = ModifierEngine()
        self.lists     = EngineMemory(LIST_WORDS)
        self.headers   = HeaderStore()
        self.edits     = HeaderEdits()
        self.finish    = FrameFinish()
        self.header_read   = self.headers.read
        self.streams_bus   = self.scheduler.memory.bus
        self.modifiers_bus = self.modifiers.memory.bus
        self.lists_bus     = self.lists.bus
        self.headers_bus   = self.headers.bus

        # # #

        self.add_scheduler()
        self.add_modifiers()
        self.add_edits()

    def add_scheduler(self):
        """Let the scheduler begin with a frame when the modifiers of the one before are done."""
        scheduler, modifiers, finish, source = self.scheduler, self.modifiers, self.finish, self.source
        self.comb += [
            *[getattr(scheduler, name).eq(getattr(self, name)) for name in ("elapsed", "mask", "stop", "hold", "begin", "end")],
            scheduler.arm.eq(self.arm & ~self.is_active),
            self.is_primed.eq(scheduler.is_primed),
            self.active.eq(scheduler.active),
            scheduler.may_begin.eq(modifiers.is_idle),
            modifiers.start.eq(scheduler.begins),
            modifiers.stream.eq(scheduler.next_stream),
            scheduler.frame.connect(finish.sink),
            finish.is_modified.eq(modifiers.is_idle),
            finish.source.connect(source),
        ]
        self.sync += [
            If(self.arm, self.is_active.eq(1)),
            If(source.valid & source.ready & source.final, self.is_active.eq(0)),
        ]

    def add_modifiers(self):
        """Give the modifiers the lists, which the scheduler reads too, and the frame before a chance to end."""
        scheduler, modifiers, finish, lists = self.scheduler, self.modifiers, self.finish, self.lists
        self.comb += [
            modifiers.may_edit.eq(finish.may_edit),
            *[getattr(finish, name).eq(getattr(modifiers, name)) for name in ("half", "in_ipv4", "in_seed")],
            lists.read.eq(modifiers.list_read | scheduler.list_read),
            lists.read_adr.eq(Mux(modifiers.list_read, modifiers.list_adr, scheduler.list_adr)),
            scheduler.list_grant.eq(~modifiers.list_read),
            modifiers.list_word.eq(lists.values[0]),
            scheduler.list_word.eq(lists.values[0]),
        ]

    def add_edits(self):
        """Edit headers behind the builder."""
        modifiers, finish, edits, headers, source = self.modifiers, self.finish, self.edits, self.headers, self.source
        self.comb += [
            finish.edit.connect(edits.sink),
            If(modifiers.edit.valid, modifiers.edit.connect(edits.sink)),
            finish.is_written.eq(edits.is_empty),
            edits.has_frame.eq(source.valid),
            edits.frame_stream.eq(source.stream),
            edits.taken.eq(source.ready),
            *[getattr(edits, name).eq(getattr(self, name)) for name in ("builds", "build_stream", "build_word")],
            edits.grant.eq(~modifiers.header_read),
            headers.edit.eq(modifiers.header_read | edits.write),
            headers.writes.eq(edits.writes & Replicate(edits.write & edits.grant, 2)),
            headers.dat_w.eq(edits.dat_w),
            *[mine.eq(Mux(modifiers.header_read, read, write))
                for mine, read, write in zip(headers.adrs, modifiers.header_adrs, edits.adrs)],
            modifiers.header_word.eq(headers.value),
        ]
