# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends up to 16 streams of frames."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import wishbone
from litex.soc.interconnect.csr import *

from liteprobe.cores.assign import copied
from liteprobe.cores.formats import LIST_WORDS, NO_SEQUENCE, SENT_WORDS, STREAMS
from liteprobe.cores.transmit.sources.engine_memory import EngineMemory
from liteprobe.cores.transmit.sources.source import ProgramSource
from liteprobe.cores.transmit.sources.streams.modifiers import ModifierEngine
from liteprobe.cores.transmit.sources.streams.scheduler import StreamScheduler
from liteprobe.cores.transmit.sources.templates import FrameTemplates, TemplateUser

# Registers, in ``port<n>_tx``: their names begin with the source's.
SETTINGS = {
    "mask": "Streams that streams_arm begins, bit n is stream n.",
    "hold": "The program goes on when no stream has frames any more, until stop.",
}

STROBES = {
    "begin": "Write: begin these streams while the program runs.",
    "end":   "Write: end these streams while the program runs.",
}

WORD_BITS        = 32
LATE, FIRST_LATE = 2, 3 # Words of a stream; those before are sent, the low word first.

# Sent Counters ------------------------------------------------------------------------------------

class SentCounters(LiteXModule):
    """Counts the frames of each stream that were sent, and those that were late, in a block RAM; in ``sys``.

    Attributes
    ----------
    taken : Signal(), in
        One pulse for each frame as the pacer takes it: ``stream`` and ``sequence`` are its own.
    stream, sequence : Signal(4), Signal(32), in
    late, sent : Signal(), in
        One pulse each, as of `TransmitCounters`: for the frame that is taken at about the same time. ``sent`` comes two cycles
        or more after both others, and 10 cycles or more before those of the next frame.
    clear : Signal(), in
        One pulse: all is 0. A frame that is being counted leaves no trace.
    bus : wishbone.Interface, slave
        SENT_WORDS words a stream, to be read only; an access may wait until a frame is counted, eight cycles.
    """
    def __init__(self):
        self.taken    = Signal()
        self.stream   = Signal(log2_int(STREAMS))
        self.sequence = Signal(32)
        self.late     = Signal()
        self.sent     = Signal()
        self.clear    = Signal()
        self.bus      = wishbone.Interface(data_width=WORD_BITS, address_width=32, addressing="word")

        # # #

        self.autocsr_exclude = {"memory"}
        words         = STREAMS*SENT_WORDS
        self.memory   = memory = Memory(WORD_BITS, words, init=[0]*words, name="sent_memory")
        self.port     = port   = memory.get_port(write_capable=True, mode=NO_CHANGE)
        self.specials += memory, port
        self.word     = Signal(2)                # Of the stream, that is counted in.
        self.of       = Signal(len(self.stream)) # Stream of the frame.
        self.seen     = Signal(STREAMS)          # Streams that have words in the memory.
        self.was      = Signal(WORD_BITS)        # The word that was read, or what counts for it.
        self.value    = Signal(WORD_BITS)        # What is written.
        self.is_busy  = Signal()
        self.done     = Signal()                 # The last word is written.
        self.add_steps()
        self.add_value()
        self.add_bus()

    def add_steps(self):
        """Read and write each word of the stream, for each frame."""
        is_due   = Signal()
        is_write = Signal()
        self.comb += [
            self.port.we.eq(self.is_busy & is_write & ~self.clear),
            self.done.eq(self.port.we & (self.word == SENT_WORDS - 1)),
        ]
        self.sync += [
            If(self.sent, is_due.eq(1)),
            If(self.is_busy,
                is_write.eq(~is_write),
                self.word.eq(self.word + is_write),
            ).Elif(is_due,
                self.is_busy.eq(1),
                is_due.eq(0),
            ),
            If(self.done,
                self.is_busy.eq(0),
                self.seen.eq(self.seen | (1 << self.of)),
            ),
            If(self.clear,
                self.seen.eq(0),
                self.is_busy.eq(0),
                self.word.eq(0),
                is_write.eq(0),
            ),
        ]

    def add_value(self):
        """Keep what is known of the frame, and form each word of its stream from what it was."""
        is_late  = Signal()
        carry    = Signal()
        is_first = Signal() # Late frame of its stream.
        sequence = Signal(32, reset_less=True)
        adds     = Signal()
        total    = Signal(WORD_BITS + 1)
        self.comb += [
            Case(self.word, {0: adds.eq(1), 1: adds.eq(carry), LATE: adds.eq(is_late), FIRST_LATE: adds.eq(0)}),
            total.eq(self.was + adds),
            self.value.eq(total),
            If((self.word == FIRST_LATE) & is_first, self.value.eq(sequence)),
        ]
        self.sync += [
            If(self.taken,
                self.of.eq(self.stream),
                sequence.eq(self.sequence),
            ),
            # It may come before ``taken``.
            If(self.done | (self.clear & self.is_busy), is_late.eq(0)),
            If(self.late, is_late.eq(1)),
            If(self.port.we,
                carry.eq(total[-1]),
                is_first.eq(is_late & (self.was == 0)), # Of the word before the last, where it counts.
            ),
        ]

    def add_bus(self):
        """Read for the bus where no frame is counted."""
        bus, port = self.bus, self.port
        number    = Signal(len(port.adr)) # Of the word that is read or written.
        read      = Signal(len(port.adr)) # Likewise, a cycle ago.
        is_seen   = Signal()
        self.comb += [
            number.eq(Mux(self.is_busy, Cat(self.word, self.of), bus.adr)),
            port.adr.eq(number),
            port.dat_w.eq(self.value),
            self.was.eq(Mux(is_seen, port.dat_r, Mux(read[:2] == FIRST_LATE, NO_SEQUENCE, 0))),
            bus.dat_r.eq(self.was),
        ]
        self.sync += [
            read.eq(number),
            is_seen.eq((self.seen >> number[2:]) & 1),
            bus.ack.eq(bus.cyc & bus.stb & ~bus.ack & ~self.is_busy),
        ]

# Stream Programs ----------------------------------------------------------------------------------

class StreamPrograms(ProgramSource):
    """Has the registers of what sends streams, at 1 and at 10 Gb/s.

    Attributes
    ----------
    request : as of `ProgramSource`
    mask : Signal(16), in
        Streams that a program begins with.
    hold : Signal(), in
        The program goes on when no stream is active, until ``stop``.
    begin, end : Signal(16), in
        Pulses, one for each stream: it joins the program, it leaves it.
    active : Signal(16), out
        Streams that have frames that are not on their way yet.
    """
    name          = "streams"
    keeps_headers = False

    def __init__(self):
        ProgramSource.__init__(self)
        self.mask   = Signal(STREAMS)
        self.hold   = Signal()
        self.begin  = Signal(STREAMS)
        self.end    = Signal(STREAMS)
        self.active = Signal(STREAMS)

    def add_csr(self):
        """Add the registers of the contract."""
        self.add_settings(SETTINGS)
        self._arm = CSRStorage(1, name="arm",
            description="Write: begin the streams of streams_mask, as arm a train; ignored unless idle.")
        self.comb += self.request.eq(self._arm.re)
        for name, description in STROBES.items():
            register = CSRStorage(STREAMS, name=name, description=description)
            setattr(self, f"_{name}", register)
            self.comb += If(register.re, getattr(self, name).eq(register.storage))
        self._active = CSRStatus(STREAMS, name="active", description="Streams that have frames left, bit n is stream n.")
        self.comb   += self._active.status.eq(self.active)

# Stream Source ------------------------------------------------------------------------------------

class StreamSource(StreamPrograms):
    """Emits a descriptor for each frame of up to 16 streams, in the order of their due ticks; in ``sys``.

    What a stream is stands in memories, in the words of formats/traffic.py; and so does its state. Header templates are
    edited in place before each frame: when a descriptor is there, its header is ready, and stays until the builder has read
    it. Up to three frames are on their way at a time, each from when it is due in fewer than HORIZON ticks. A frame takes at
    most 33 cycles, whatever varies in it.

    Limits: due ticks are exact as they are; one that is overdue is not moved. The source doesn't know what the line can take.

    Parameters
    ----------
    others : list of TemplateUser
        Of other sources that have programs at other times, with the same headers, builder and ``source``.

    Attributes
    ----------
    name, request, is_chosen, may_start : as of `ProgramSource`
    source : Endpoint(descriptor_description()), out
        A stream's due ticks may go back (bursts at exponential intervals); of two streams the one that is due first is first,
        the lower number on a tie. ``final`` and ``empty`` come together, when no stream is active any more.
    elapsed : Signal((64, True)), in
        Ticks since the start of the program, negative before it.
    arm, mask : Signal(), Signal(16), in
        Pulse: begins a program with the streams of ``mask``, which stays until ``is_primed``; ignored while active.
    stop : Signal(), in
        While high, the next descriptor is ``empty`` and ``final``, after those that are on their way.
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
        The header of the frame at ``source`` is being read; its stream; the word that is read next. Before and after that
        ``builds`` is 0; ``source`` is taken after it, or with the last word. A frame without it must not be taken.
    header_read : Record(header_read_layout)
        For the builder: word ``adr`` (32 for each stream) is in ``dat`` in the cycle after ``re``.
    streams_bus, modifiers_bus, lists_bus, headers_bus : wishbone.Interface, slaves
        Words of 32 bits, read and written at any time in the cycles that the engine leaves free; ``sel`` is ignored. Words of a
        stream that is active are not for writing, and its state changes between two reads.
    sent_counters : SentCounters
        What the path sends of each stream; give it a bus port.
    """
    def __init__(self, others=()):
        StreamPrograms.__init__(self)
        self.elapsed   = Signal((64, True))
        self.is_primed = Signal()
        self.is_active = Signal()

        self.scheduler = StreamScheduler()
        self.modifiers = ModifierEngine()
        self.lists     = EngineMemory(LIST_WORDS)
        self.user      = TemplateUser()
        self.templates = templates = FrameTemplates([self.user, *others])
        self.source        = templates.source
        self.builds        = templates.builds
        self.build_stream  = templates.build_stream
        self.build_word    = templates.build_word
        self.header_read   = templates.header_read
        self.streams_bus   = self.scheduler.memory.bus
        self.modifiers_bus = self.modifiers.memory.bus
        self.lists_bus     = self.lists.bus
        self.headers_bus   = templates.bus
        self.sent_counters = SentCounters()

        # # #

        # Without this LiteX gives every memory in there a page of the CSR bus.
        self.autocsr_exclude = {"scheduler", "modifiers", "lists", "templates", "sent_counters"}
        self.add_scheduler()
        self.add_modifiers()
        self.add_templates()

    def add_scheduler(self):
        """Let the scheduler begin with a frame when the modifiers of the one before are done."""
        scheduler, modifiers, user, source = self.scheduler, self.modifiers, self.user, self.source
        self.comb += [
            *copied(scheduler, self, "elapsed", "mask", "stop", "hold", "begin", "end"),
            scheduler.arm.eq(self.arm & ~self.is_active),
            *copied(self, scheduler, "is_primed", "active"),
            scheduler.may_begin.eq(modifiers.is_idle),
            modifiers.start.eq(scheduler.begins),
            modifiers.stream.eq(scheduler.next_stream),
            scheduler.frame.connect(user.frame),
            user.is_modified.eq(modifiers.is_idle),
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
            *copied(user, modifiers, "half", "in_ipv4", "in_seed"),
            modifiers.edit.connect(user.edit),
            lists.read.eq(modifiers.list_read | scheduler.list_read),
            lists.read_adr.eq(Mux(modifiers.list_read, modifiers.list_adr, scheduler.list_adr)),
            scheduler.list_grant.eq(~modifiers.list_read),
            modifiers.list_word.eq(lists.values[0]),
            scheduler.list_word.eq(lists.values[0]),
        ]

    def add_templates(self):
        """Give the modifiers the headers."""
        modifiers, templates = self.modifiers, self.templates
        self.comb += [
            templates.read.eq(modifiers.header_read),
            *[mine.eq(adr) for mine, adr in zip(templates.read_adrs, modifiers.header_adrs)],
            modifiers.header_word.eq(templates.value),
        ]

    def join(self, path):
        """Follow the programs of a path, and count what it sends of each stream."""
        ProgramSource.join(self, path)
        sent, pulses = self.sent_counters, path.counters.pulses
        self.comb += [
            self.elapsed.eq(path.elapsed.elapsed),
            # It stays primed after a program.
            self.may_start.eq(self.is_primed & self.is_chosen),
            sent.taken.eq(path.announce.taken.o & ~path.descriptors.empty),
            *copied(sent, path.descriptors, "stream", "sequence"),
            sent.late.eq(pulses["late"] & self.is_chosen),
            sent.sent.eq(pulses["sent"] & self.is_chosen),
            sent.clear.eq(path.clear | (path.taken & self.is_chosen)),
        ]
