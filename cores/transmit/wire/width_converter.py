# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""From words to octets, at the tick of the line."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.transmit.frames import octet_description, word_description

# WidthConverter -------------------------------------------------------------------------------------------

class WidthConverter(LiteXModule):
    """Cuts words into octets, lowest first; in ``timebase``.

    A word is fetched ahead, so that ``sink.ready`` is a register and no long path reaches a FIFO.

    Parameters
    ----------
    data_width : int
        32 or 64.

    Attributes
    ----------
    sink : Endpoint(word_description(data_width)), in
        The next word must come within three ticks, or octets pause.
    source : Endpoint(octet_description()), out
        One octet a tick, registered; ``error`` and ``probe`` are 0. A last word with ``last_be`` of 0 is taken
        whole.
    """
    def __init__(self, data_width):
        self.sink   = sink   = stream.Endpoint(word_description(data_width))
        self.source = source = stream.Endpoint(octet_description())

        # # #

        count   = data_width//8
        ahead   = stream.Endpoint(word_description(data_width)) # The word that was fetched ahead.
        data    = Signal(data_width)
        ends    = Signal(count) # Bit n: octet n from here is the frame's last.
        place   = Signal(count) # One-hot octet of the word.
        is_end  = Signal() # It is the word's last one that counts.
        load    = Signal()
        last_be = Signal(count)
        for unreset in [ahead.payload, source.payload, data, ends, place, is_end]: # Count only with ``valid``.
            stream.set_reset_less(unreset)

        # Fetch.
        # ------
        self.comb += [
            sink.ready.eq(~ahead.valid),
            ahead.ready.eq(load),
        ]
        self.sync.timebase += [
            If(sink.ready,
                ahead.valid.eq(sink.valid),
                ahead.payload.eq(sink.payload),
                ahead.last_be.eq(last_be),
            ).Elif(ahead.ready,
                ahead.valid.eq(0),
            ),
        ]
        self.comb += If(sink.last,
            last_be.eq(sink.last_be),
            If(sink.last_be == 0, last_be.eq(1 << (count - 1))),
        )

        # Cut.
        # ----
        self.comb += [
            load.eq(~source.valid | (source.ready & is_end)),
            source.data.eq(data[:8]),
            source.last.eq(ends[0]),
        ]
        self.sync.timebase += [
            If(load,
                source.valid.eq(ahead.valid),
                data.eq(ahead.data),
                ends.eq(ahead.last_be),
                place.eq(1),
                is_end.eq(ahead.last_be[0]),
            ).Elif(source.ready,
                data.eq(data[8:]),
                ends.eq(ends[1:]),
                place.eq(place << 1),
                is_end.eq(place[-2] | ends[1]),
            ),
        ]
