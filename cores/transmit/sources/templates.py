# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Stores the header templates of a port, which its sources that vary headers share."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream, wishbone

from liteprobe.cores.assign import copied
from liteprobe.cores.formats import HEADER_WORDS_OF_STREAM, STREAMS
from liteprobe.cores.transmit.frames import descriptor_description
from liteprobe.cores.transmit.sources.edits import HeaderEdits, edit_description
from liteprobe.cores.transmit.sources.finish import HALF_BITS, FrameFinish
from liteprobe.cores.transmit.sources.streams.scheduler import frame_layout

HALFWORD_BITS = 16
ADDRESS_BITS  = log2_int(STREAMS*HEADER_WORDS_OF_STREAM)

header_read_layout = [
    ("adr", ADDRESS_BITS, DIR_M_TO_S), # Word, 32 for each stream.
    ("re",  1,            DIR_M_TO_S),
    ("dat", 32,           DIR_S_TO_M), # In the cycle after ``re``, and until the next.
]

# Header Store -------------------------------------------------------------------------------------

class TemplateStore(LiteXModule):
    """Keeps the headers in two banks of halfwords, so that a window of 32 bits at any halfword is one access.

    A header is octets; octet 0 is in bits 7..0 of word 0. Bank 0 has bits 15..0 of each word, bank 1 bits 31..16.

    Attributes
    ----------
    bus : wishbone.Interface, slave
        Whole words: ``sel`` is ignored. It has a cycle that the engine leaves free, and an access takes three.
    edit : Signal(), in
        The engine has the port: it reads both banks, and writes those of ``writes``.
    adrs : list of two Signal(9), in
        Of each bank.
    writes : Signal(2), in
    dat_w : Signal(32), in
    value : Signal(32), out
        What was read, for one cycle: the second after ``edit``.
    read : Record(header_read_layout)
        For the builder, at any time. A word must not be written in the cycle in which it is read.
    """
    def __init__(self):
        self.bus    = bus = wishbone.Interface(data_width=2*HALFWORD_BITS, address_width=32, addressing="word")
        self.edit   = Signal()
        self.adrs   = [Signal(ADDRESS_BITS, name=f"adr_{n}") for n in range(2)]
        self.writes = Signal(2)
        self.dat_w  = Signal(2*HALFWORD_BITS)
        self.value  = Signal(2*HALFWORD_BITS, reset_less=True)
        self.read   = Record(header_read_layout)

        # # #

        self.autocsr_exclude = {"memory_0", "memory_1"}
        step = Signal(2)
        take = Signal()
        self.comb += [
            take.eq(bus.cyc & bus.stb & (step == 0) & ~self.edit),
            bus.ack.eq(step[1]),
            bus.dat_r.eq(self.value),
        ]
        self.sync += step.eq(Cat(take, step[0]))
        for n in range(2):
            part   = slice(HALFWORD_BITS*n, HALFWORD_BITS*(n + 1))
            memory = Memory(HALFWORD_BITS, 2**ADDRESS_BITS, name=f"halfwords_{n}")
            edit   = memory.get_port(write_capable=True, mode=NO_CHANGE)
            read   = memory.get_port(has_re=True, mode=READ_FIRST)
            setattr(self, f"memory_{n}", memory)
            self.specials += memory, edit, read
            self.comb += [
                edit.adr.eq(Mux(self.edit, self.adrs[n], bus.adr[:ADDRESS_BITS])),
                edit.dat_w.eq(Mux(self.edit, self.dat_w[part], bus.dat_w[part])),
                edit.we.eq(Mux(self.edit, self.writes[n], take & bus.we)),
                *copied(read, self.read, "adr", "re"),
                self.read.dat[part].eq(read.dat_r),
            ]
            self.sync += self.value[part].eq(edit.dat_r)

# Template User ------------------------------------------------------------------------------------

class TemplateUser:
    """Carries the frame and the edits of one source to `FrameTemplates`.

    Attributes
    ----------
    frame : Endpoint(frame_layout)
        Goes to `FrameFinish`; ready only while no frame is on its way there.
    is_modified, half, in_ipv4, in_seed : Signal(), Signal(16), Signal(), Signal()
        As of `FrameFinish`; the last two are 0 while the source is idle.
    edit : Endpoint(edit_description())
        Taken at once; not in the cycles in which `FrameFinish` has one.
    is_chosen : Signal()
        The program is of this source. Of several, the first one has the templates while no other is chosen.
    """
    def __init__(self):
        self.frame       = stream.Endpoint(frame_layout)
        self.is_modified = Signal()
        self.half        = Signal(HALF_BITS)
        self.in_ipv4     = Signal()
        self.in_seed     = Signal()
        self.edit        = stream.Endpoint(edit_description())
        self.is_chosen   = Signal()

# Frame Templates ----------------------------------------------------------------------------------

class FrameTemplates(LiteXModule):
    """Edits header templates in place, and passes a frame on as a descriptor once its header is ready.

    Parameters
    ----------
    users : list of TemplateUser
        One at a time has a program.

    Attributes
    ----------
    source : Endpoint(descriptor_description()), out
    may_edit : Signal(), out
        As of `FrameFinish`.
    read, read_adrs, value : Signal(), list of two Signal(9), Signal(32), in, in and out
        A user reads a header, before any edit is written; as ``edit``, ``adrs`` and ``value`` of `TemplateStore`.
    builds, build_stream, build_word : Signal(), Signal(4), Signal(5), in
    header_read : Record(header_read_layout)
        All as of `StreamSource`.
    bus : wishbone.Interface, slave
        Of the headers, 32 words for each stream.
    """
    def __init__(self, users):
        self.source       = stream.Endpoint(descriptor_description())
        self.may_edit     = Signal()
        self.read         = Signal()
        self.builds       = Signal()
        self.build_stream = Signal(log2_int(STREAMS))
        self.build_word   = Signal(log2_int(HEADER_WORDS_OF_STREAM))
        self.headers      = headers = TemplateStore()
        self.edits        = edits   = HeaderEdits()
        self.finish       = finish  = FrameFinish()
        self.read_adrs    = [Signal.like(adr, name=f"read_adr_{n}") for n, adr in enumerate(headers.adrs)]
        self.value        = headers.value
        self.header_read  = headers.read
        self.bus          = headers.bus

        # # #

        self.add_users(users)
        self.comb += [
            self.may_edit.eq(finish.may_edit),
            finish.is_written.eq(edits.is_empty),
            finish.source.connect(self.source),
            edits.has_frame.eq(self.source.valid),
            edits.frame_stream.eq(self.source.stream),
            edits.taken.eq(self.source.ready),
            *copied(edits, self, "builds", "build_stream", "build_word"),
            edits.grant.eq(~self.read),
            headers.edit.eq(self.read | edits.write),
            headers.writes.eq(edits.writes & Replicate(edits.write & edits.grant, 2)),
            headers.dat_w.eq(edits.dat_w),
            *[mine.eq(Mux(self.read, read, write)) for mine, read, write in zip(headers.adrs, self.read_adrs, edits.adrs)],
        ]

    def add_users(self, users):
        """Join the one that has a program."""
        finish, edits = self.finish, self.edits
        def joined(user):
            return [
                user.frame.connect(finish.sink),
                *copied(finish, user, "is_modified", "half"),
            ]
        chosen = joined(users[0])
        for user in users[1:]:
            chosen = [If(user.is_chosen, *joined(user)).Else(*chosen)]
        self.comb += [
            *chosen,
            finish.in_ipv4.eq(Reduce("OR", [user.in_ipv4 for user in users])),
            finish.in_seed.eq(Reduce("OR", [user.in_seed for user in users])),
            finish.edit.connect(edits.sink),
            *[If(user.edit.valid, user.edit.connect(edits.sink)) for user in users],
        ]
