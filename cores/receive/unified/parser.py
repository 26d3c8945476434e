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
        self.note   = Record(note_layout())
        self.source = stream.Endpoint([("data", 32)])
        self.lost   = Signal()

        # # #

        self.walk = UnifiedWalk()
        self.comb += sink.connect(self.walk.sink)

        self.ends    = sink.valid & sink.last & ~sink.overflow
        self.is_kept = Signal()
        self.just_ended, self.kept = Signal(), Signal() # A cycle later.
        # Headers of the block RAM, counted as they are filled, finished and read.
        self.filled, self.finished, self.read = [Signal(log2_int(headers) + 1) for _ in range(3)]
        is_full = Signal()
        self.comb += [
            is_full.eq((self.filled - self.read)[:len(self.read)] >= headers - 1),
            # Decided early: the next frame's words go elsewhere from its first one on.
            self.is_kept.eq(~is_full & ~self.ended & ~self.just_ended),
        ]
        self.sync += [
            self.just_ended.eq(self.ends),
            self.kept.eq(self.is_kept),
            self.lost.eq(self.just_ended & ~self.kept),
            If(self.ends & self.is_kept, self.filled.eq(self.filled + 1)),
        ]

        self.add_length()
        self.add_writer(self.add_status(port))
        self.add_reader()

    def add_length(self):
        """Count the words of the frame, and keep what the MAC says of it."""
        sink  = self.sink
        words = Signal(14)
        full  = 2**len(words) - 1
        self.verdict     = Signal(2, reset_less=True)
        self.last_length = Signal(16, reset_less=True)
        self.last_number = Signal(number_bits, reset_less=True)
        self.sync += If(sink.valid,
            If(sink.last,
                words.eq(0)
            ).Elif(words != full,
                words.eq(words + 1)
            ),
            self.last_length.eq(Cat(Constant(0, 2), words) + bytes_of_last_be(sink.last_be)),
            If(words == full, self.last_length.eq(0xffff)),
            self.verdict.eq(Cat(sink.fcs_error, sink.symbol_error)),
            self.last_number.eq(sink.number),
        )

    def flags(self):
        """Return the flags of the frame that has just ended."""
        walk, length, flags = self.walk, self.last_length, Signal(12)
        for flag, condition in [
            (UnifiedFlag.FCS_ERROR,      self.verdict[0]),
            (UnifiedFlag.SYMBOL_ERROR,   self.verdict[1]),
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
        return flags

    def add_status(self, port):
        """Hold what the walk found, and return the words that are written at the frame's end."""
        walk, note = self.walk, self.note
        layers = Cat(walk.layer3, walk.tags, walk.labels)
        # In the places of flags that the host never sees set.
        internal = Cat(walk.has_link, walk.has_fragment)
        known    = [self.flags(), internal, walk.ethertype, walk.protocol, layers, walk.kinds, *walk.extensions]
        held     = [Signal(len(value), reset_less=True) for value in known]
        self.sync += If(self.just_ended & self.kept,
            self.number.eq(self.last_number),
            self.length.eq(self.last_length),
            *[to.eq(value) for to, value in zip(held, known)],
        )
        flags, internal, ethertype, protocol, layers, kinds, first, second = held
        return [
            note.stamp[:32],
            note.stamp[32:],
            Cat(self.length, note.snap_length),
            Cat(flags, note.is_matched, note.is_sampled, internal, ethertype),
            Cat(Constant(port, 8), note.channel, note.rule, protocol),
            Cat(layers, kinds, first, second),
            note.hash,
        ]

    def add_writer(self, status):
        """Write words of the frame as they pass, and those of the last frame's status between them."""
        walk, step, takes, writes = self.walk, Signal(max=status_words), Signal(), Signal()
        memory = Memory(32, headers*UNIFIED_WORDS)
        writer = memory.get_port(write_capable=True, mode=READ_FIRST)
        self.reader = memory.get_port(mode=READ_FIRST)
        self.specials += memory, writer, self.reader
        self.comb += [
            takes.eq(self.sink.valid & (walk.address != 0)),
            writes.eq(~takes & self.ended & self.noted),
            writer.we.eq(takes | writes),
            If(takes,
                writer.adr.eq(Cat(walk.address, self.filled[:-1])),
                writer.dat_w.eq(walk.data),
            ).Else(
                writer.adr.eq(Cat(step, Constant(0, 2), self.finished[:-1])),
                Case(step, {number: writer.dat_w.eq(word) for number, word in enumerate(status)}),
            ),
        ]
        self.sync += [
            If(writes,
                step.eq(step + 1),
                If(step == status_words - 1,
                    self.ended.eq(0),
                    self.finished.eq(self.finished + 1),
                ),
            ),
            If(self.just_ended & self.kept,
                self.ended.eq(1),
                step.eq(0),
            ),
        ]

    def add_reader(self):
        """Hand on finished headers, with zeros in the place of words that came to nothing."""
        source, reader, finished, read = self.source, self.reader, self.finished, self.read
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
        layer3, tags, labels = layers[:2], layers[2:5], layers[5:]
        is_any, is_ip, is_ipv6 = layer3 != Layer3.NONE, layer3[1], layer3 == Layer3.IPV6
        has_link, has_fragment = flags[14], flags[15]
        transport, tcp, probe = [flags[log2_int(int(flag))] for flag in (UnifiedFlag.TRANSPORT, UnifiedFlag.TCP, UnifiedFlag.PROBE)]
        is_extra     = tcp | probe
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
                    0 : holds.eq(transport),
                    1 : holds.eq(is_any),
                    2 : holds.eq(is_ip),
                    3 : holds.eq((layer3 == Layer3.IPV4) | (is_ipv6 & has_fragment)),
                }),
                7         : holds.eq(Mux(word[:2] == 3, is_extra, has_link)),
            }),
        ]
        return holds
