# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends up to 16 streams of frames."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.formats import HEADER_WORDS_OF_STREAM, LIST_WORDS, STREAMS
from liteprobe.cores.transmit.frames import descriptor_description
from liteprobe.cores.transmit.sources.engine_memory import EngineMemory
from liteprobe.cores.transmit.sources.streams.modifiers import ModifierEngine
from liteprobe.cores.transmit.sources.streams.scheduler import StreamScheduler
from liteprobe.cores.transmit.sources.templates import FrameTemplates, TemplateUser

# Stream Source ------------------------------------------------------------------------------------

class StreamSource(LiteXModule):
    """Emits a descriptor for each frame of up to 16 streams, in the order of their due ticks; in ``sys``.

    What a stream is stands in memories, in the words of formats/traffic.py; its state is kept there too. Header templates are
    edited in place before each frame: when a descriptor is there, its header is ready, and stays until the builder has read
    it. Up to three frames are on their way at a time, each from when it is due in fewer than HORIZON ticks. A frame takes at
    most 33 cycles, whatever varies in it.

    Limits: due ticks are exact as they are; one that is overdue is not moved. The source doesn't know what the line can take.

    Parameters
    ----------
    others : list of TemplateUser
        Other sources that have programs at other times, with the same headers, builder and ``source``.

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
        frames on their way. Ignored while no program runs. A stream that has no frames left doesn't join.
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
    def __init__(self, others=()):
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
        self.user      = TemplateUser()
        self.templates = FrameTemplates([self.user, *others])
        self.header_read   = self.templates.header_read
        self.streams_bus   = self.scheduler.memory.bus
        self.modifiers_bus = self.modifiers.memory.bus
        self.lists_bus     = self.lists.bus
        self.headers_bus   = self.templates.bus

        # # #

        self.add_scheduler()
        self.add_modifiers()
        self.add_templates()

    def add_scheduler(self):
        """Let the scheduler begin with a frame when the modifiers of the one before are done."""
        scheduler, modifiers, user, source = self.scheduler, self.modifiers, self.user, self.source
        self.comb += [
            *[getattr(scheduler, name).eq(getattr(self, name)) for name in ("elapsed", "mask", "stop", "hold", "begin", "end")],
            scheduler.arm.eq(self.arm & ~self.is_active),
            self.is_primed.eq(scheduler.is_primed),
            self.active.eq(scheduler.active),
            scheduler.may_begin.eq(modifiers.is_idle),
            modifiers.start.eq(scheduler.begins),
            modifiers.stream.eq(scheduler.next_stream),
            scheduler.frame.connect(user.frame),
            user.is_modified.eq(modifiers.is_idle),
            self.templates.source.connect(source),
        ]
        self.sync += [
            If(self.arm, self.is_active.eq(1)),
            If(source.valid & source.ready & source.final, self.is_active.eq(0)),
        ]

    def add_modifiers(self):
        """Give the modifiers the lists, which the scheduler reads too, and the frame before a chance to end."""
        scheduler, modifiers, user, lists = self.scheduler, self.modifiers, self.user, self.lists
        self.comb += [
            modifiers.may_edit.eq(self.templates.may_edit),
            *[getattr(user, name).eq(getattr(modifiers, name)) for name in ("half", "in_ipv4", "in_seed")],
            modifiers.edit.connect(user.edit),
            lists.read.eq(modifiers.list_read | scheduler.list_read),
            lists.read_adr.eq(Mux(modifiers.list_read, modifiers.list_adr, scheduler.list_adr)),
            scheduler.list_grant.eq(~modifiers.list_read),
            modifiers.list_word.eq(lists.values[0]),
            scheduler.list_word.eq(lists.values[0]),
        ]

    def add_templates(self):
        """Give the modifiers the headers, and the templates what the builder does."""
        modifiers, templates = self.modifiers, self.templates
        self.comb += [
            templates.read.eq(modifiers.header_read),
            *[mine.eq(adr) for mine, adr in zip(templates.read_adrs, modifiers.header_adrs)],
            modifiers.header_word.eq(templates.value),
            *[getattr(templates, name).eq(getattr(self, name)) for name in ("builds", "build_stream", "build_word")],
        ]
