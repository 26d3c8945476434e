# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Puts the unified header of each frame together in a block RAM, and hands it on word by word."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.ethernet import GIANT_LENGTH, MIN_LENGTH
from liteprobe.cores.formats import UNIFIED_WORDS, Layer3, UnifiedFlag
from liteprobe.cores.last_be import bytes_of_last_be
from liteprobe.cores.receive.frames import frame_layout, number_bits
from liteprobe.cores.receive.unified.walk import UnifiedWalk

# Numbers ------------------------------------------------------------------------------------------

status_words = 7 # Words of the unified header that are known at the frame's end.
headers      = 16 # That a block RAM of 512 words holds.

# Layout -------------------------------------------------------------------------------------------

def note_layout():
    """What other stages say of a frame."""
    return [
        ("stamp",       64), # ns.
        ("snap_length", 16),
        ("channel",      8),
        ("rule",         8),
        ("hash",        32),
        ("is_matched",   1),
        ("is_sampled",   1),
    ]

# Unified Parser -----------------------------------------------------------------------------------

class UnifiedParser(LiteXModule):
    """Gives the unified header of every frame.

    Headers wait in a block RAM, 16 at most. One that finds no room, or whose frame ends before the last one was noted,
    is dropped whole and counted. Frames that were cut by an overflow have no header: they are counted where they were cut.

    Parameters
    ----------
    port : int
        Number of the port, for the header.

    Attributes
    ----------
    sink : Endpoint(frame_layout(32)), in
        Always ready.
    ended : Signal(), out
        A frame has ended, and ``number``, ``length`` and all that `walk` says are there until ``noted``.
    number, length : Signal(number_bits), Signal(16), out
        Which SFD; bytes without FCS, saturates.
    noted, note : Signal(), Record(note_layout()), in
        What other stages say of the frame is there; eight cycles or fewer before the next frame's end.
    source : Endpoint([("data", 32)]), out
        Words of headers; ``last`` is on the 32nd.
    lost : Signal(), out
        One cycle for each header dropped.
    """
    def __init__(self, port=0):
        self.sink   = sink = stream.Endpoint(frame_layout(32))
        self.ended  = Signal()
        self.number = Signal(number_bits, reset_less=True)
        self.length = Signal(16, reset_less=True)
        self.noted  = Signal()
        self.note   = note = Record(note_layout())
        self.source = source = stream.Endpoint([("data", 32)])
        self.lost   = Signal()

        # # #

        self.walk = walk = UnifiedWalk()
        self.comb += sink.connect(walk.sink)

        # Length.
        # -------
        words = Signal(14)
        full  = 2**len(words) - 1
        just_ended = Signal()
        verdict    = Signal(2, reset_less=True)
        length     = Signal(16, reset_less=True)
        number     = Signal(number_bits, reset_less=True)
        self.sync += [
            just_ended.eq(sink.valid & sink.last & ~sink.overflow),
            If(sink.valid,
                If(sink.last,
                    words.eq(0)
                ).Elif(words != full,
                    words.eq(words + 1)
                ),
                length.eq(Cat(Constant(0, 2), words) + bytes_of_last_be(sink.last_be)),
                If(words == full, length.eq(0xffff)),
                verdict.eq(Cat(sink.fcs_error, sink.symbol_error)),
                number.eq(sink.number),
            ),
        ]

        # Headers in the block RAM.
        # -------------------------
        # Counted as they are filled, finished and read.
        filled, finished, read = [Signal(log2_int(headers) + 1) for _ in range(3)]
        is_full = Signal()
        step    = Signal(max=status_words)
        is_kept = Signal()
        self.comb += [
            is_full.eq((filled - read)[:len(filled)] >= headers - 1),
            # Decided while the frame's last word passes: the next frame's words go elsewhere from then on.
            is_kept.eq(~is_full & ~self.ended & ~just_ended),
        ]
        kept = Signal()
        self.sync += [
            kept.eq(is_kept),
            self.lost.eq(just_ended & ~kept),
            If(sink.valid & sink.last & ~sink.overflow & is_kept, filled.eq(filled + 1)),
        ]

        # What is known at the end.
        # -------------------------
        flags = Signal(16)
        for flag, condition in [
            (UnifiedFlag.FCS_ERROR,      verdict[0]),
            (UnifiedFlag.SYMBOL_ERROR,   verdict[1]),
            (UnifiedFlag.RUNT,           length < MIN_LENGTH),
            (UnifiedFlag.GIANT,          length > GIANT_LENGTH),
            (UnifiedFlag.LENGTH_ERROR,   walk.is_bad_length),
            (UnifiedFlag.TRUNCATED,      walk.is_cut),
            (UnifiedFlag.UNPARSED,       walk.is_unparsed),
            (UnifiedFlag.FRAGMENT,       walk.is_fragment),
            (UnifiedFlag.FIRST_FRAGMENT, walk.is_first_fragment),
            (UnifiedFlag.TRANSPORT,      walk.has_transport),
            (UnifiedFlag.TCP,            walk.has_tcp),
            (UnifiedFlag.PROBE,          walk.has_probe),
        ]:
            self.comb += flags[log2_int(int(flag))].eq(condition)
        layers   = Cat(walk.layer3, walk.tags, walk.labels)
        internal = Cat(walk.has_link, walk.has_fragment) # In the places of bits that the host never sees set.
        known    = [flags[:14], walk.ethertype, walk.protocol, layers, walk.kinds, *walk.extensions, internal]
        held     = [Signal(len(value), reset_less=True) for value in known]
        self.sync += [
            If(just_ended & kept,
                self.ended.eq(1),
                step.eq(0),
                self.number.eq(number),
                self.length.eq(length),
                *[to.eq(value) for to, value in zip(held, known)],
            ),
        ]
        flags, ethertype, protocol, layers, kinds, first, second, internal = held
        all_flags = Cat(flags[:12], note.is_matched, note.is_sampled, internal)
        status = [
            note.stamp[:32],
            note.stamp[32:],
            Cat(self.length, note.snap_length),
            Cat(all_flags, ethertype),
            Cat(Constant(port, 8), note.channel, note.rule, protocol),
            Cat(layers, kinds, first, second),
            note.hash,
        ]

        # Writing.
        # --------
        memory = Memory(32, headers*UNIFIED_WORDS)
        writer, reader = memory.get_port(write_capable=True, mode=READ_FIRST), memory.get_port(mode=READ_FIRST)
        self.specials += memory, writer, reader
        takes  = Signal()
        writes = Signal()
        self.comb += [
            takes.eq(sink.valid & (walk.address != 0)),
            writes.eq(~takes & self.ended & self.noted),
            writer.we.eq(takes | writes),
            writer.adr.eq(Cat(walk.address, filled[:-1])),
            writer.dat_w.eq(walk.data),
            If(~takes,
                writer.adr.eq(Cat(step, Constant(0, 2), finished[:-1])),
                Case(step, {number: writer.dat_w.eq(word) for number, word in enumerate(status)}),
            ),
        ]
        self.sync += If(writes,
            step.eq(step + 1),
            If(step == status_words - 1,
                self.ended.eq(0),
                finished.eq(finished + 1),
            ),
        )

        # Reading.
        # --------
        self.add_reader(reader, finished, read)

    def add_reader(self, reader, finished, read):
        """Hand on finished headers, with zeros in the place of words that came to nothing."""
        source   = self.source
        word     = Signal(5)
        is_there = Signal()
        passes   = Signal()
        flags, layers = Signal(16, reset_less=True), Signal(8, reset_less=True)
        adr      = Signal(len(word) + len(read))
        place    = Cat(word, read)
        self.comb += [
            passes.eq(source.valid & source.ready),
            adr.eq(place + passes),
            reader.adr.eq(adr[:-1]),
            source.valid.eq(is_there),
            source.last.eq(word == UNIFIED_WORDS - 1),
            source.data.eq(reader.dat_r & Replicate(self.holds(word, flags, layers), 32)),
            If(word == 3, source.data[14:16].eq(0)),
        ]
        self.sync += [
            Cat(word, read).eq(adr),
            is_there.eq(adr[5:] != finished),
            If(word == 3, flags.eq(reader.dat_r[:16])),
            If(word == 5, layers.eq(reader.dat_r[:8])),
        ]

    def holds(self, word, flags, layers):
        """Return whether a word of the header came to something."""
        has          = lambda flag: flags[log2_int(int(flag))]
        layer3, tags, labels = layers[:2], layers[2:5], layers[5:]
        is_any, is_ip, is_ipv6 = layer3 != Layer3.NONE, layer3[1], layer3 == Layer3.IPV6
        has_link, has_fragment = flags[14], flags[15]
        is_extra     = has(UnifiedFlag.TCP) | has(UnifiedFlag.PROBE)
        holds        = Signal()
        self.comb += [
            Case(word[2:], {
                0         : holds.eq(1),
                1         : holds.eq((word[:2] != 3) | is_extra),
                2         : holds.eq(word[:2] < tags),
                3         : holds.eq(word[:2] < labels),
                4         : holds.eq(is_ipv6 | (is_any & (word[:2] == 0))),
                5         : holds.eq(is_ipv6 | (is_any & (word[:2] == 0))),
                6         : Case(word[:2], {
                    0 : holds.eq(has(UnifiedFlag.TRANSPORT)),
                    1 : holds.eq(is_any),
                    2 : holds.eq(is_ip),
                    3 : holds.eq((layer3 == Layer3.IPV4) | (is_ipv6 & has_fragment)),
                }),
                7         : holds.eq(Mux(word[:2] == 3, is_extra, has_link)),
            }),
        ]
        return holds
