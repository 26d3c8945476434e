# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Parses the frames of a port at 10 Gb/s: each goes to one of several parsers of 1 Gb/s, and comes back in its turn."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.assign import copied
from liteprobe.cores.formats.xgmii import LANES
from liteprobe.cores.receive.frames import frame_layout
from liteprobe.cores.receive.unified.key import probe_layout
from liteprobe.cores.receive.unified.parser import UnifiedParser, least_spacing
from liteprobe.cores.receive.unified.walk import WalkStep

PARSERS    = 4   # A frame of 60 octets comes to each every 42 cycles; it takes 20, or ``least_spacing`` with headers.
FRAMES_MAX = 64  # Under way.
PLACES     = 512 # Words that wait for a parser.
SPARE      = 16  # Of them, for the words that come until it is known that there are no more.
BEHIND     = 32  # A parser for which so many words wait is passed by.
BODY_WORDS = 4   # That the walk sees after the headers.

def parsed_layout():
    """Return what is known of a frame: ``flags`` as of the unified header up to PROBE, ``probe_layout()`` where ``is_probe``."""
    return [("length", 16), ("flags", 12), ("is_probe", 1), *probe_layout()]

# Frame Parser -------------------------------------------------------------------------------------

class FrameParser(LiteXModule):
    """Parses one frame after the other: a word of 32 bits a cycle, and eight octets a cycle after the headers.

    Parameters
    ----------
    with_headers : bool
        As of `UnifiedParser`.

    Attributes
    ----------
    sink : Endpoint(frame_layout(64)), in
        Words that wait; never stalls: nothing may come where there is no place.
    level : Signal, out
        How many wait.
    parser : UnifiedParser
        Its results stand from ``is_done`` on.
    is_done : Signal(), out
        A frame is parsed, and the next one waits until ``take``. One with ``overflow`` has no result.
    take : Signal(), in
    """
    def __init__(self, with_headers):
        self.sink    = sink = stream.Endpoint(frame_layout(8*LANES))
        self.is_done = Signal()
        self.take    = Signal()

        # # #

        layout = [("data", 8*LANES), ("octets", bits_for(LANES)), ("fcs_error", 1), ("symbol_error", 1), ("overflow", 1)]
        self.fifo   = fifo = stream.SyncFIFO(layout, PLACES, buffered=True)
        self.level  = fifo.level
        self.parser = parser = UnifiedParser(with_headers, with_skip=True, spacing=least_spacing if with_headers else 2)
        verdict     = ("fcs_error", "symbol_error", "overflow")
        self.comb += [
            sink.ready.eq(1),
            fifo.sink.valid.eq(sink.valid),
            fifo.sink.last.eq(sink.last),
            *copied(fifo.sink, sink, "data", *verdict),
            [If(sink.last_be[n], fifo.sink.octets.eq(n + 1)) for n in range(LANES)],
        ]

        # Halves of a word, one after the other; or whole words are passed over.
        # ----------------------------------------------------------------------
        word     = fifo.source
        halves   = stream.Endpoint(frame_layout(32))
        is_high  = Signal()
        ends     = Signal() # The half is the frame's last.
        rests    = Signal() # The frame's result isn't taken yet.
        may_end  = Signal()
        body     = Signal(max=BODY_WORDS + 2)
        is_body  = Signal()
        has_skip = Signal() # Words were passed over, and the parser doesn't know yet.
        tells    = Signal()
        skipped  = Signal(len(parser.skipped), reset_less=True)
        octets   = Signal(max=LANES//2 + 1)
        self.comb += [
            octets.eq(Mux(is_high, word.octets - LANES//2, word.octets)),
            ends.eq(word.last & (is_high | (word.octets <= LANES//2))),
            may_end.eq((parser.rest == 0) & ~parser.is_busy),
            is_body.eq((body == BODY_WORDS + 1) & ~is_high & ~word.last),
            tells.eq(has_skip & ((word.valid & word.last) | skipped[-1])),
            If(word.valid & ~rests & ~tells,
                If(is_body,
                    word.ready.eq(1),
                ).Elif(~ends | may_end,
                    halves.valid.eq(1),
                    word.ready.eq(is_high | ends),
                ),
            ),
            halves.last.eq(ends),
            halves.data.eq(Mux(is_high, word.data[32:], word.data[:32])),
            [halves.last_be[n].eq(ends & (octets == n + 1)) for n in range(LANES//2)],
            *copied(halves, word, *verdict),
            parser.skip.eq(tells),
            parser.skipped.eq(skipped),
        ]
        stream.set_reset_less(parser.sink.payload)
        self.sync += [
            *copied(parser.sink, halves, "valid", "last", "payload"),
            If(halves.valid, is_high.eq(~is_high & ~ends)),
            If(word.ready & is_body, has_skip.eq(1), skipped.eq(Mux(has_skip, skipped, 0) + 2)),
            If(tells, has_skip.eq(0)),
        ]
        self.add_body(body, halves)
        self.add_result(rests, halves)

    def add_body(self, body, halves):
        """Count the words that the walk has seen since it was done."""
        is_done = self.parser.walk.state == WalkStep.DONE
        is_new  = Signal() # The walk still says how it ended before.
        self.sync += [
            If(halves.valid & halves.last, is_new.eq(1)).Elif(self.parser.sink.valid & ~self.parser.sink.last, is_new.eq(0)),
            If(is_new | ~is_done,
                body.eq(0),
            ).Elif(self.parser.sink.valid & (body != BODY_WORDS + 1),
                body.eq(body + 1),
            ),
        ]

    def add_result(self, rests, halves):
        """Hold the frame's result, two cycles after its last word."""
        ended = Signal(2)
        sink  = self.parser.sink
        self.sync += [
            ended.eq(Cat(sink.valid & sink.last, ended)),
            If(halves.valid & halves.last, rests.eq(1)),
            If(ended[0], self.is_done.eq(1)),
            If(self.take, rests.eq(0), self.is_done.eq(0)),
        ]

# Parser -------------------------------------------------------------------------------------------

class XgmiiParser(LiteXModule):
    """Says of each frame of a port at 10 Gb/s what `UnifiedParser` says of one at 1 Gb/s, in the order in which they came.

    Frames go to the parsers in turn, but for those that are behind. One for which there is no place, or that can't be kept whole,
    is dropped and counted. So many places suffice for frames of any lengths back to back whose headers end within some hundred
    octets; longer headers back to back may be too many.

    Parameters
    ----------
    parsers : int
    with_headers : bool
        As of `UnifiedParser`.

    Attributes
    ----------
    sink : Endpoint(frame_layout(64)), in
        Words of a frame with idle cycles between them where there are some; always ready.
    ended : Signal(), out
        With the last word of a frame that ``source`` will give.
    source : Endpoint(parsed_layout()), out
    parsers : list of FrameParser
    number : Signal, out
        With ``source``: which one has the frame.
    dropped : Signal(), out
        One cycle for each frame that is dropped here; those with ``overflow`` were before.

    Source: docs/design/unified-header.md, docs/design/ten-gigabit.md.
    """
    def __init__(self, parsers=PARSERS, with_headers=False):
        self.sink    = stream.Endpoint(frame_layout(8*LANES))
        self.ended   = Signal()
        self.source  = stream.Endpoint(parsed_layout())
        self.number  = Signal(max=parsers)
        self.dropped = Signal()

        # # #

        self.parsers = [FrameParser(with_headers) for _ in range(parsers)]
        for number, parser in enumerate(self.parsers):
            self.add_module(name=f"parser{number}", module=parser)
        # Which parsers have which frames.
        self.order     = stream.SyncFIFO([("number", len(self.number)), ("is_cut", 1)], FRAMES_MAX)
        self.under_way = Signal(max=FRAMES_MAX + 2)
        self.add_choice()
        self.add_frames()
        self.add_source()

    def add_choice(self):
        """Choose the parser of the next frame."""
        count = len(self.parsers)
        self.chosen = Signal(max=count)
        self.moves  = Signal() # A frame has begun.
        spaces      = Signal(count)
        behind      = Signal(count)
        self.space  = Signal()
        after = {}
        for present in range(count):
            order = [(present + step) % count for step in range(1, count + 1)]
            choice = [self.chosen.eq(order[0])]
            for number in reversed(order):
                choice.append(If(~behind[number], self.chosen.eq(number)))
            after[present] = choice
        self.sync += [
            [spaces[n].eq(parser.level < PLACES - SPARE) for n, parser in enumerate(self.parsers)],
            [behind[n].eq(parser.level >= BEHIND) for n, parser in enumerate(self.parsers)],
            If(self.moves, Case(self.chosen, after)),
        ]
        self.comb += self.space.eq((spaces >> self.chosen)[0])
        self.spaces = spaces

    def add_frames(self):
        """Give each frame to its parser: whole, or none of it, or cut where there was no place."""
        sink     = self.sink
        is_first = Signal(reset=1)
        present  = Signal.like(self.chosen) # Parser of the frame.
        number   = Signal.like(self.chosen)
        is_kept  = Signal()
        was_kept = Signal()
        is_cut   = Signal() # Here,
        was_cut  = Signal()
        overflow = Signal() # or before.
        self.comb += [
            sink.ready.eq(1),
            number.eq(Mux(is_first, self.chosen, present)),
            is_kept.eq(Mux(is_first, self.space & (self.under_way < FRAMES_MAX), was_kept)),
            is_cut.eq(~is_first & (was_cut | ~(self.spaces >> present)[0])),
            self.moves.eq(sink.valid & is_first),
            overflow.eq(is_cut | sink.overflow),
            self.ended.eq(sink.valid & sink.last & is_kept & ~overflow),
            self.order.sink.valid.eq(sink.valid & sink.last & is_kept),
            self.order.sink.number.eq(number),
            self.order.sink.is_cut.eq(overflow),
            self.dropped.eq(sink.valid & sink.last & (~is_kept | is_cut) & ~sink.overflow),
        ]
        self.sync += If(sink.valid,
            is_first.eq(sink.last),
            present.eq(number),
            was_kept.eq(is_kept),
            was_cut.eq(is_cut),
        )
        for n, parser in enumerate(self.parsers):
            to = parser.sink
            stream.set_reset_less(to.payload)
            self.sync += [
                to.valid.eq(sink.valid & is_kept & (number == n) & (sink.last | ~is_cut)),
                *copied(to, sink, "last", "payload"),
                to.overflow.eq(overflow),
            ]

    def add_source(self):
        """Give what is known of frames in their order."""
        source, order = self.source, self.order.source
        is_done = Signal(len(self.parsers))
        is_next = Signal()
        starts  = Signal()
        is_free = Signal()
        cases   = {}
        for n, one in enumerate(self.parsers):
            parser = one.parser
            fields = parser.probe_fields.fields
            self.comb += [
                is_done[n].eq(one.is_done),
                one.take.eq(order.ready & (order.number == n)),
            ]
            cases[n] = [
                *copied(source, parser, "length", "flags", "is_probe"),
                *copied(source, fields, *[name for name, _ in probe_layout()]),
            ]
        stream.set_reset_less(source.payload)
        self.comb += [
            is_next.eq((is_done >> order.number)[0] & order.valid),
            is_free.eq(~source.valid | source.ready),
            order.ready.eq(is_next & (order.is_cut | is_free)),
            starts.eq(self.moves & self.space & (self.under_way < FRAMES_MAX)),
        ]
        self.sync += [
            If(source.ready, source.valid.eq(0)),
            If(order.ready & ~order.is_cut,
                source.valid.eq(1),
                self.number.eq(order.number),
                Case(order.number, cases),
            ),
            self.under_way.eq(self.under_way + starts - order.ready),
        ]
