# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends frames that a host describes by small configuration sets."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream
from litex.soc.interconnect.csr import *

from liteprobe.cores.assign import copied
from liteprobe.cores.bus import RegisterBank, WriteOnlyCSR
from liteprobe.cores.formats import (
    BLOCK_TABLE_ENTRIES, SETS_AHEAD, SET_FIELD_OCTETS, SET_LEAD_TICKS, TABLE_ENTRIES, SetError, SetField,
)
from liteprobe.cores.transmit.frames import LENGTH_BITS, descriptor_description
from liteprobe.cores.transmit.sources.engine_memory import EngineMemory
from liteprobe.cores.transmit.sources.set_edits import SetEdits
from liteprobe.cores.transmit.sources.set_parser import FIELDS, HALF_BITS, SLOTS, SLOT_BITS, SetParser
from liteprobe.cores.transmit.sources.source import ProgramSource
from liteprobe.cores.transmit.sources.templates import FrameTemplates

# Registers, ``port<n>_sets``.
SETTINGS = {
    "fields":                "What sets may have, formats.SetField; the first one has all of them.",
    "places":                "Octets of fields in the header: formats.SET_PLACES, SET_SUMMED.",
    "first_repeats_allowed": "Repeats in a row, until the sets say another number.",
}

STATUS = {
    "sets":           "Frames of this program that were made of sets.",
    "repeats":        "Frames that were the last one again, because no set was there in time.",
    "underruns":      "Frames whose sets were waited for after they were due.",
    "first_underrun": "Sequence of the first of them; 0xffffffff: none.",
    "error":          "Why the program ended, formats.SetError; the bad set is number `sets`.",
}

AHEAD_BITS = log2_int(SETS_AHEAD)
INDEX_BIT  = list(SET_FIELD_OCTETS).index(SetField.INDEX)
NEVER      = 2**32 - 1

# Tables -------------------------------------------------------------------------------------------

class SdramTable(LiteXModule):
    """Reads entries from the SDRAM, where the host writes them by the bus.

    Parameters
    ----------
    port : BurstPort
    address : int
        First word of the table at the port.

    Attributes
    ----------
    entries, port : int, BurstPort
    sink : Endpoint([("index", 16)]), in
        One at a time: the next one once the entry is there.
    gives, data : Signal(), Signal(32), out
        The entry, in this cycle.
    """
    def __init__(self, port, address):
        self.entries = TABLE_ENTRIES
        self.port    = port
        self.sink    = sink = stream.Endpoint([("index", 16)])
        self.gives   = Signal()
        self.data    = Signal(32)

        # # #

        request = port.request
        self.comb += [
            request.valid.eq(sink.valid),
            sink.ready.eq(request.ready),
            request.address.eq(address + sink.index),
            request.rest.eq(0),
            request.write.eq(0),
            self.gives.eq(port.gives),
            self.data.eq(port.read_data),
        ]


class BlockTable(LiteXModule):
    """Keeps entries in a block RAM, for boards without SDRAM; an entry is there two cycles later.

    Attributes
    ----------
    entries, sink, gives, data
        As of `SdramTable`.
    bus : wishbone.Interface, slave
        Words of 32 bits; those that no set asks for may be written at any time. ``sel`` is ignored.
    """
    def __init__(self):
        self.entries = BLOCK_TABLE_ENTRIES
        self.sink    = sink = stream.Endpoint([("index", 16)])
        self.gives   = Signal()
        self.memory  = memory = EngineMemory(BLOCK_TABLE_ENTRIES)
        self.data    = memory.values[0]
        self.bus     = memory.bus

        # # #

        was_read = Signal()
        self.comb += [
            sink.ready.eq(1),
            memory.read.eq(sink.valid),
            memory.read_adr.eq(sink.index),
        ]
        self.sync += Cat(was_read, self.gives).eq(Cat(memory.read, was_read))

# Set Queue ----------------------------------------------------------------------------------------

class SetQueue(LiteXModule):
    """Keeps the halfwords of up to 16 sets, and puts the entry of the table in the place of its index.

    Parameters
    ----------
    table : SdramTable or BlockTable
        Asked for one entry at a time, in the order of the sets.

    Attributes
    ----------
    write, slot, half, push, control, has_space
        As of `SetParser`, in, and the last one out.
    clear : Signal(), in
        Pulse, while ``is_idle``: it is empty.
    is_idle : Signal(), out
        No entry is to come.
    is_there, head : Signal(), Signal(8), out
        The first set is complete, with its entry; its control octet.
    read_slot, read_half : Signal(4), Signal(16), in and out
        Reads a halfword of the first set; it is there in the next cycle.
    pop : Signal(), in
        The first set is read.
    """
    def __init__(self, table):
        self.write     = Signal()
        self.slot      = Signal(SLOT_BITS)
        self.half      = Signal(HALF_BITS)
        self.push      = Signal()
        self.control   = Signal(8)
        self.has_space  = Signal()
        self.clear     = Signal()
        self.is_idle   = Signal()
        self.is_there  = Signal()
        self.head      = Signal(8)
        self.read_slot = Signal(SLOT_BITS)
        self.read_half = Signal(HALF_BITS)
        self.pop       = Signal()

        # # #

        # Else LiteX gives the memories a page of the CSR bus.
        self.autocsr_exclude = {"memory", "controls", "requests"}
        self.put   = Signal(AHEAD_BITS + 1) # Set that is coming,
        self.known = Signal(AHEAD_BITS + 1) # the first one that may lack its entry,
        self.taken = Signal(AHEAD_BITS + 1) # and the first one.
        self.left  = Signal(2)              # Halfwords of an entry that are not written.
        self.entry = Signal(2*HALF_BITS, reset_less=True)
        self.memory   = memory   = Memory(HALF_BITS, SETS_AHEAD << SLOT_BITS, name="set_fields")
        self.controls = controls = Memory(8, SETS_AHEAD, name="set_controls")
        write = memory.get_port(write_capable=True, mode=READ_FIRST)
        read  = memory.get_port(mode=READ_FIRST)
        begun = controls.get_port(write_capable=True)
        first = controls.get_port(async_read=True)
        self.specials += memory, write, read, controls, begun, first
        self.comb += [
            self.has_space.eq(self.put - self.taken != SETS_AHEAD),
            self.is_there.eq(self.known != self.taken),
            begun.adr.eq(self.put),
            begun.we.eq(self.push),
            begun.dat_w.eq(self.control),
            first.adr.eq(self.taken),
            self.head.eq(first.dat_r),
            read.adr.eq(Cat(self.read_slot, self.taken[:AHEAD_BITS])),
            self.read_half.eq(read.dat_r),
            write.we.eq(self.write | (self.left != 0)),
            If(self.write,
                write.adr.eq(Cat(self.slot, self.put[:AHEAD_BITS])),
                write.dat_w.eq(self.half),
            ).Else(
                write.adr.eq(Cat(self.left[0], Constant(SLOTS[SetField.INDEX] >> 1, SLOT_BITS - 1), self.known[:AHEAD_BITS])),
                write.dat_w.eq(self.entry[HALF_BITS:]),
            ),
        ]
        self.sync += [
            If(self.push, self.put.eq(self.put + 1)),
            If(self.pop,  self.taken.eq(self.taken + 1)),
        ]
        self.add_lookup(table)
        self.sync += If(self.clear, *[pointer.eq(0) for pointer in (self.put, self.known, self.taken)])

    def add_lookup(self, table):
        """Ask for the entries of sets that have an index, one after the other."""
        self.requests = requests = Memory(HALF_BITS + 1, SETS_AHEAD, name="set_requests")
        put = requests.get_port(write_capable=True)
        get = requests.get_port(async_read=True)
        self.specials += requests, put, get
        is_new  = Signal()
        asks    = Signal() # An entry is needed, and the table is free to be asked.
        waits   = Signal()
        is_done = Signal()
        lacks   = Signal()
        self.comb += [
            # An index is the last of its set.
            put.adr.eq(self.put),
            put.we.eq(self.push),
            put.dat_w.eq(Cat(self.half, self.control[INDEX_BIT])),
            get.adr.eq(self.known),
            is_new.eq(self.known != self.put),
            lacks.eq(is_new & get.dat_r[-1]),
            asks.eq(lacks & ~waits & (self.left == 0)),
            table.sink.valid.eq(asks),
            table.sink.index.eq(get.dat_r),
            is_done.eq(Mux(lacks, (self.left == 1) & ~self.write, is_new)),
            self.is_idle.eq(~lacks & ~waits),
        ]
        self.sync += [
            If(asks & table.sink.ready, waits.eq(1)),
            If(table.gives,
                waits.eq(0),
                self.entry.eq(table.data),
                self.left.eq(2),
            ),
            If((self.left != 0) & ~self.write,
                self.left.eq(self.left - 1),
                self.entry.eq(Cat(self.entry[:HALF_BITS], self.entry[:HALF_BITS])),
            ),
            If(is_done, self.known.eq(self.known + 1)),
        ]

# Sets Source --------------------------------------------------------------------------------------

class SetsSource(ProgramSource):
    """Makes a frame of each configuration set, or the last one again when no set is there in time; in ``sys``.

    When frames are due, and how many there are at most, is the business of a `TrainSchedule`: each of its descriptors is a
    slot. What is the same in all frames stands in the header of stream 0, and is described as that of a stream. A frame takes 27
    cycles, and its set one cycle an octet, beside the one before.

    A set that isn't there SET_LEAD_TICKS before its frame is due is not there in time: the last frame is repeated in its slot,
    if there was one, up to ``repeats_allowed`` times in a row. Then the program waits, and the slots after it keep their due ticks:
    frames that come after them are late, and are repeated likewise.

    Parameters
    ----------
    table : SdramTable or BlockTable
    with_templates : bool
        With header templates of its own, for a path without streams: ``header_read`` and so on. Else ``user`` is one of the
        ``others`` of a `StreamSource`, whose ``source`` is that of both.

    Attributes
    ----------
    name, request, is_chosen, may_start : as of `ProgramSource`
    words : Endpoint([("data", 32)]), in
        Sets: octet 0 is in bits 7..0. Taken from ``arm`` to the word of SET_END: then the next program may begin.
    written, prime : Signal(32), in
        Words that came in all, and how many of them must be there before the first frame, if there is no SET_END before. A
        host that has fewer writes a smaller ``prime``.
    slots : Endpoint(descriptor_description()), in
        From `TrainSchedule`: ``sequence``, ``due``, ``final`` and ``empty`` of each frame.
    length : Signal(14), out
        Of the frame whose slot is taken next, from at least 10 cycles before: its interval may depend on it.
    ends : Signal(), out
        Level: no set follows, so the schedule must stop.
    user : TemplateUser
        One of `FrameTemplates`. A ``final``, ``empty`` frame is the last one.
    builds, build_stream, build_word, headers_bus : as of `StreamSource`
        With templates.
    elapsed : Signal((64, True)), in
        Ticks since the start of the program, negative before it.
    arm : Signal(), in
        Pulse: begins a program; ignored while active.
    stop : Signal(), in
        Level, as that of the schedule: no more frames are made of sets.
    template : list of four Signal(32), in
        Words 0 to 3 of STREAM_FIELDS. As all settings, they stand still while active.
    template_length : Signal(14), in
        Length of all frames, where sets have none.
    fields : Signal(6), in
        `SetField`: what sets may have; the first one has all of them.
    places : Signal(48), in
        SET_PLACES and SET_SUMMED, 8 bits each.
    first_repeats_allowed : Signal(16), in
        Until the first SET_REPEAT.
    is_primed : Signal(), out
        The first frame is on its way.
    is_active : Signal(), out
        From ``arm`` to the final frame.
    is_starved : Signal(), out
        A frame is overdue, and no set is there.
    sets, repeats, underruns : Signal(32), out
        Frames of sets; repeated ones; frames of sets that were waited for after they were due. Of the present program, or the
        last one.
    first_underrun : Signal(32), out
        Sequence of the first of these; all ones: none.
    error : Signal(3), out
        `SetError`, once all sets before it are sent: the bad one is number ``sets``.
    """
    name         = "sets"
    is_scheduled = True
    source       = None

    def __init__(self, table, with_templates=False):
        ProgramSource.__init__(self)
        self.words           = stream.Endpoint([("data", 32)])
        self.written         = Signal(32)
        self.prime           = Signal(32)
        self.slots           = stream.Endpoint(descriptor_description())
        self.length          = Signal(LENGTH_BITS)
        self.ends            = Signal()
        self.elapsed         = Signal((64, True))
        self.template_length = Signal(LENGTH_BITS)
        self.first_repeats_allowed = Signal(HALF_BITS)
        self.is_primed       = Signal()
        self.is_active       = Signal()
        self.is_starved      = Signal()
        self.sets            = Signal(32)
        self.repeats         = Signal(32)
        self.underruns       = Signal(32)
        self.first_underrun  = Signal(32, reset=NEVER)
        self.error           = Signal(max=max(SetError) + 1)

        self.table    = table
        self.parser   = SetParser(table.entries)
        self.queue    = SetQueue(table)
        self.edits    = SetEdits()
        self.user     = self.edits.user
        self.template = self.edits.template
        self.fields   = self.parser.fields
        self.places   = self.edits.places
        if with_templates:
            self.templates    = templates = FrameTemplates([self.user])
            self.source       = templates.source
            self.header_read  = templates.header_read
            self.builds       = templates.builds
            self.build_stream = templates.build_stream
            self.build_word   = templates.build_word
            self.headers_bus  = templates.bus

        # # #

        self.is_repeat  = Signal()                            # The frame has no set of its own,
        self.may_repeat = Signal()                            # or one that hasn't may come now.
        self.allowed    = Signal(HALF_BITS, reset_less=True)  # In a row.
        self.in_row     = Signal(HALF_BITS, reset_less=True)
        self.has_last   = Signal()
        self.was_starved = Signal()
        self.begins      = Signal()
        self.shows       = Signal()                           # A frame is passed on.
        self.comes_end   = Signal()                           # All sets are sent, up to the end or an error.
        self.fsm        = FSM(reset_state="IDLE")
        self.add_parts()
        self.add_choice()
        self.add_frame()
        self.add_dry()
        self.add_counters()

    def add_parts(self):
        """Join parser, queue and edits."""
        parser, queue, edits = self.parser, self.queue, self.edits
        self.comb += [
            self.words.connect(parser.sink),
            parser.clear.eq(self.begins),
            parser.stop.eq(self.ends),
            parser.has_space.eq(queue.has_space),
            queue.clear.eq(self.begins),
            *copied(queue, parser, "write", "slot", "half", "push", "control"),
            queue.read_slot.eq(edits.read_slot),
            edits.read_half.eq(queue.read_half),
            edits.fields.eq(self.fields),
            edits.named.eq(Mux(self.is_repeat, 0, queue.head)),
            self.length.eq(Mux(self.fields[FIELDS.index(SetField.LENGTH)], edits.first_half, self.template_length)),
        ]

    def add_choice(self):
        """Choose what comes next: a set, a number of repeats, the last frame again, or the end."""
        fsm, queue, slots, user = self.fsm, self.queue, self.slots, self.user
        is_filled = Signal()
        self.sync += is_filled.eq((self.written >= self.prime) | self.parser.is_ended)
        fsm.act("IDLE", If(self.arm, NextState("BEGIN")))
        # Entries of the table that a program before this one asked for may still come.
        fsm.act("BEGIN",
            If(queue.is_idle,
                self.begins.eq(1),
                NextState("FILL"),
            ),
        )
        fsm.act("FILL", If(self.stop, NextState("END")).Elif(is_filled, NextState("CHOOSE")))
        fsm.act("CHOOSE",
            If(self.stop | (slots.valid & slots.empty),
                NextState("END"),
            ).Elif(queue.is_there & queue.head[7],
                If(queue.head[6],
                    self.comes_end.eq(1),
                    NextState("END"),
                ).Else(
                    NextState("NUMBER"),
                ),
            # One frame at a time is in the templates.
            ).Elif(slots.valid & user.frame.ready & (queue.is_there | self.may_repeat),
                NextValue(self.is_repeat, ~queue.is_there),
                self.edits.start.eq(1),
                NextState("EDIT"),
            ),
        )
        # Between sets slot 0 is read, where the number is.
        fsm.act("NUMBER",
            NextValue(self.allowed, queue.read_half),
            queue.pop.eq(1),
            NextState("CHOOSE"),
        )

    def add_frame(self):
        """Pass a frame on once its header is edited, and the last one at the end."""
        fsm, slots, user = self.fsm, self.slots, self.user
        fsm.act("EDIT", If(self.edits.is_done, NextState("SHOW")))
        fsm.act("SHOW",
            user.frame.valid.eq(1),
            self.shows.eq(user.frame.ready),
            If(self.shows,
                slots.ready.eq(1),
                self.queue.pop.eq(~self.is_repeat),
                NextState("CHOOSE"),
                If(slots.final, NextState("FINAL")),
            ),
        )
        fsm.act("END",
            self.ends.eq(1),
            slots.ready.eq(1),
            If(slots.valid & slots.final, NextState("FINAL")),
        )
        fsm.act("FINAL",
            user.frame.valid.eq(1),
            user.frame.final.eq(1),
            user.frame.empty.eq(1),
            If(user.frame.ready, NextState("IDLE")),
        )
        self.comb += [
            self.is_active.eq(~fsm.ongoing("IDLE")),
            user.is_chosen.eq(self.is_active),
            user.is_modified.eq(1),
            *copied(user.frame, slots, "sequence", "due"),
            user.frame.length.eq(self.length),
            *[getattr(user.frame, name).eq(word) for name, word in zip(("control", "places", "fields", "sums"), self.template)],
        ]

    def add_dry(self):
        """Tell whether the last frame may be repeated in this slot, and whether a set is overdue."""
        ahead      = Signal(64) # Ticks until the slot is due, in two's complement.
        is_near    = Signal()
        is_overdue = Signal()
        lead       = log2_int(SET_LEAD_TICKS)
        self.comb += [
            ahead.eq(self.slots.due - self.elapsed),
            self.may_repeat.eq(is_near & self.has_last & (self.in_row < self.allowed)),
            self.is_starved.eq(is_overdue & self.slots.valid & self.user.frame.ready & self.fsm.ongoing("CHOOSE") &
                ~self.queue.is_there & ~self.may_repeat),
        ]
        self.sync += [
            is_near.eq(ahead[-1] | (ahead[lead:-1] == 0)),
            is_overdue.eq(ahead[-1]),
            If(self.is_starved, self.was_starved.eq(1)),
            If(self.shows,
                self.was_starved.eq(0),
                self.has_last.eq(1),
                self.in_row.eq(Mux(self.is_repeat, self.in_row + 1, 0)),
            ),
            If(self.begins,
                self.allowed.eq(self.first_repeats_allowed),
                self.was_starved.eq(0),
                self.has_last.eq(0),
                self.in_row.eq(0),
            ),
        ]

    def add_counters(self):
        """Count the frames of a program, by where they come from."""
        is_set = self.shows & ~self.is_repeat
        self.sync += [
            If(is_set, self.sets.eq(self.sets + 1)),
            If(self.shows & self.is_repeat, self.repeats.eq(self.repeats + 1)),
            If(is_set & self.was_starved,
                self.underruns.eq(self.underruns + 1),
                If(self.first_underrun == NEVER, self.first_underrun.eq(self.slots.sequence)),
            ),
            If(self.begins,
                *[signal.eq(0) for signal in (self.sets, self.repeats, self.underruns, self.error)],
                self.first_underrun.eq(NEVER),
                self.is_primed.eq(0),
            ),
            If(self.shows, self.is_primed.eq(1)),
            If(self.comes_end, self.error.eq(self.parser.error)),
        ]

    def join(self, path):
        """Follow the programs of a path, which are due as trains."""
        ProgramSource.join(self, path)
        self.comb += [
            If(self.is_chosen, path.schedule.source.connect(self.slots)),
            self.elapsed.eq(path.elapsed.elapsed),
            self.template_length.eq(path.program.length),
        ]

# Set Registers ------------------------------------------------------------------------------------

class SetRegisters(RegisterBank):
    """Gives the settings and the counters of a `SetsSource` to the bus.

    Parameters
    ----------
    sets : SetsSource
    """
    def __init__(self, sets):
        settings = {name: (getattr(sets, name), description) for name, description in SETTINGS.items()}
        settings |= {
            f"template{n}": (word, f"Word {n} of the description of a stream: what is the same in all frames.")
            for n, word in enumerate(sets.template)
        }
        for name, (signal, description) in settings.items():
            register = WriteOnlyCSR(len(signal), name=name, description=description)
            setattr(self, f"_{name}", register)
            self.comb += signal.eq(register.storage)
        self._arm = CSRStorage(1, name="arm", description="Write: begin a program of sets, as arm of port<n>_tx a train.")
        self.comb += sets.request.eq(self._arm.re)
        self.add_status(STATUS, sets)
