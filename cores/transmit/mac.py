# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Cuts words into octets, and adds preamble, padding, FCS and gap."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteeth.common import eth_phy_description
from liteeth.mac.crc import LiteEthMACCRCEngine

from liteprobe.cores.formats import FCS, FCS_POLYNOMIAL, MIN_LENGTH, PREAMBLE, PREAMBLE_OCTET, SFD, SFD_OCTET
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
        self.sync.timebase += If(sink.ready,
            ahead.valid.eq(sink.valid),
            ahead.payload.eq(sink.payload),
            ahead.last_be.eq(last_be),
        ).Elif(ahead.ready,
            ahead.valid.eq(0),
        )
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
        self.sync.timebase += If(load,
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
        )

# Transmit MAC -------------------------------------------------------------------------------------

class TransmitMAC(LiteXModule):
    """Adds preamble, SFD, padding to 60 octets and FCS at a fixed latency; in ``timebase``.

    The gap between frames is left by whoever starts them (``line.py``): the MAC never makes one wait, so
    that the start of a frame fixes the tick of its SFD.

    Attributes
    ----------
    sink : Endpoint(octet_description()), in
        No stall. Frames must start ``slot_octets(length)`` ticks apart or more. ``error`` on the last
        octet makes the FCS wrong (inverted).
    source : Endpoint(eth_phy_description(8)), out
        To the PHY, registered; ``valid`` is TX_EN. The first preamble octet stands there one tick after the
        first octet on ``sink``, the SFD seven ticks later.
    sfd : Signal(), out
        High while the SFD stands on ``source``.
    sfd_probe : Signal(), out
        Likewise, of a frame of the program only.

    Source: IEEE 802.3, 3.2 (fields), 3.2.9 and 4.2.3 (FCS, padding).
    """
    def __init__(self):
        self.sink      = stream.Endpoint(octet_description())
        self.source    = stream.Endpoint(eth_phy_description(8))
        self.sfd       = Signal()
        self.sfd_probe = Signal()

        # # #

        # Registers tell each tick what it sends: a choice between many takes more LUTs in a row than 8 ns hold.
        self.preamble    = Signal(PREAMBLE + SFD) # One-hot octet of it that goes out next.
        self.is_preamble = Signal() # One after the first.
        self.octet       = stream.Endpoint(octet_description()) # Its data is zero while not valid.
        self.is_long     = Signal() # With this octet the frame is long enough.
        self.is_pad      = Signal()
        self.is_summed   = Signal() # The octet, or padding, belongs to the FCS.
        self.fcs         = Signal(FCS) # One-hot octet of the FCS that goes out next.
        self.is_fcs      = Signal()
        self.crc         = Signal(32, reset=2**32 - 1, reset_less=True)
        self.is_bad      = Signal()
        self.add_preamble()
        self.add_padding()
        self.add_fcs()
        self.add_output()

    def add_preamble(self):
        """Delay the frame by what goes before it."""
        sink   = self.sink
        was    = Signal() # Sink was valid: not a first octet.
        later  = Signal(PREAMBLE + SFD - 1)
        stages = [sink] + [stream.Endpoint(octet_description()) for _ in range(PREAMBLE + SFD - 1)] + [self.octet]
        for before, after in zip(stages, stages[1:]):
            stream.set_reset_less(after.payload) # Counts only with ``valid``.
            self.sync.timebase += [
                getattr(after, name).eq(getattr(before, name)) for name in ["valid", "data", "last", "error"]
            ]
        self.before = stages[-2] # What ``octet`` is a tick later.
        self.sync.timebase += If(~self.before.valid, self.octet.data.eq(0))
        self.comb += self.preamble.eq(Cat(sink.valid & ~was, later))
        self.sync.timebase += [
            was.eq(sink.valid),
            later.eq(self.preamble),
            self.is_preamble.eq(self.preamble[:-1] != 0),
        ]

    def add_padding(self):
        """Go on with zeros after the last octet until the frame is long enough."""
        octet = self.octet
        left  = Signal(max=MIN_LENGTH)
        ends  = Signal() # The last octet, padding included.
        pads  = Signal() # The next octet is padding.
        self.comb += [
            ends.eq(((octet.valid & octet.last) | self.is_pad) & self.is_long),
            pads.eq(((octet.valid & octet.last) | self.is_pad) & ~self.is_long),
        ]
        self.sync.timebase += [
            self.is_pad.eq(pads),
            self.is_summed.eq(self.before.valid | pads),
            self.fcs.eq(Cat(ends, self.fcs)),
            self.is_fcs.eq(ends | (self.fcs[:-1] != 0)),
            If(self.is_summed,
                left.eq(left - 1),
                If(left == 1, self.is_long.eq(1)),
            ),
            If(self.preamble[-1],
                left.eq(MIN_LENGTH - 1),
                self.is_long.eq(0),
            ),
        ]

    def add_fcs(self):
        """Run the CRC over octets and padding, then shift it out.

        The CRC is linear: what the octet adds to it is formed a tick before, apart from what it is by then.
        """
        octet        = self.octet
        parameters   = {"data_width": 8, "width": 32, "polynom": FCS_POLYNOMIAL}
        self.addend  = addend  = LiteEthMACCRCEngine(**parameters)
        self.advance = advance = LiteEthMACCRCEngine(**parameters)
        added = Signal(32, reset_less=True)
        self.comb += [
            addend.data.eq(self.before.data),
            advance.crc_prev.eq(self.crc),
        ]
        self.sync.timebase += [
            added.eq(addend.crc_next),
            If(~self.before.valid, added.eq(0)), # Padding.
            If(self.is_summed, self.crc.eq(advance.crc_next ^ added)).Else(self.crc.eq(self.crc << 8)),
            If(self.preamble[-1],
                self.crc.eq(self.crc.reset),
                self.is_bad.eq(0),
            ),
            If(octet.valid & octet.last & octet.error, self.is_bad.eq(1)),
        ]

    def add_output(self):
        """Choose the octet of the tick."""
        source, octet = self.source, self.octet
        fcs_octet = Signal(8)
        goes_out  = Signal() # An octet of the preamble does.
        stream.set_reset_less(source.payload)
        self.comb += [
            fcs_octet.eq(self.crc[24:][::-1] ^ Replicate(~self.is_bad, 8)),
            goes_out.eq(self.is_preamble | self.preamble[0]),
        ]
        self.sync.timebase += [
            source.valid.eq(goes_out | self.is_summed | self.is_fcs),
            # At most one of them is not zero.
            source.data.eq(
                octet.data
                | (Replicate(goes_out, 8) & PREAMBLE_OCTET)
                | (Replicate(self.preamble[-1], 8) & SFD_OCTET)
                | (Replicate(self.is_fcs, 8) & fcs_octet)),
            self.sfd.eq(self.preamble[-1]),
            self.sfd_probe.eq(self.preamble[-1] & self.sink.probe),
        ]
