# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What the first words of a frame say: whether it streams words to a ring, and to which place of it."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import DATAGRAM_HEADER_WORDS, DATAGRAM_MAGIC, REPLAY_PORT, DatagramFlag
from liteprobe.cores.octets import number, swapped

IP_OCTETS, UDP_OCTETS = 20, 8
MOST_WORDS = 384 # A datagram of so many isn't sound: it is easier to see than more than DATAGRAM_WORDS.
OVERHEAD = IP_OCTETS + UDP_OCTETS + 4*DATAGRAM_HEADER_WORDS
ASK_BIT  = 8 + log2_int(DatagramFlag.ASK) # Of the first word.
PORT_LINE     = 8  # Aligned word with the UDP ports: from then on it is known whose the frame is.
POSITION_LINE = 12 # The last one of the header.

# Head ---------------------------------------------------------------------------------------------

class DatagramHead(LiteXModule):
    """Looks at the words of a frame as they pass.

    Words come aligned: word k holds octets 4*k + 2 to 4*k + 5, so that IP, UDP and its payload fall on words.

    Parameters
    ----------
    mac, ip : bytes, addresses of the probe
    rings : int

    Attributes
    ----------
    begin, start : Signal(), Signal(16), in
        The first two octets of a frame.
    take, line, word : Signal(), Signal(4), Signal(32), in
        A word of the aligned frame and its number, up to POSITION_LINE.
    sessions : list of Signal(16), in
        Of each ring, while it is open.
    is_open : Signal(rings), in
    lease, is_held : Signal(16), Signal(), in
        As of `ManagementStack`.
    is_datagram : Signal(), out
        To this probe's REPLAY_PORT; right in the cycle after word PORT_LINE.
    is_sound : Signal(), out
        Lengths agree, it has the magic, and its ring is there. This, and all below, in the cycle after word POSITION_LINE.
    is_present : Signal(), out
        It is of the present session of its ring, and of the present lease; or of none, with the number 0.
    asks : Signal(), out
    ring, words : Signal, Signal(9), out
        Words behind the header, fewer than MOST_WORDS. The ring is known with word POSITION_LINE, which is the position.

    Source: RFC 791, 3.1; RFC 768; `cores/formats/replay.py`. Limits: as of `DatagramReceiver`.
    """
    def __init__(self, mac, ip, rings):
        self.begin       = Signal()
        self.start       = Signal(16)
        self.take        = Signal()
        self.line        = Signal(4)
        self.word        = Signal(32)
        self.sessions    = [Signal(16, name=f"session{n}") for n in range(rings)]
        self.is_open     = Signal(rings)
        self.lease       = Signal(16)
        self.is_held     = Signal()
        self.is_datagram = Signal()
        self.is_sound    = Signal()
        self.is_present  = Signal()
        self.asks        = Signal(reset_less=True)
        self.ring        = Signal(max=max(rings, 2), reset_less=True)
        self.words       = Signal(9)

        # # #

        word        = self.word
        is_datagram = self.is_datagram
        is_sound    = self.is_sound
        more        = Signal(14, reset_less=True) # Words of IP beyond OVERHEAD; many, if it is less.
        is_session  = Signal(reset_less=True)
        is_lease    = Signal(reset_less=True)
        port        = C(number(*REPLAY_PORT.to_bytes(2, "big")), 16)
        self.lines = {
            0:  [self.keep(is_datagram, word == number(*mac[2:]))],
            2:  [self.keep(is_datagram, word[16:] == number(8, 0))],
            3:  [self.keep(is_datagram, word[:8] == 0x45), self.keep(is_sound, word[24:26] == 0),
                 more.eq(swapped(word[16:])[2:] - OVERHEAD//4)],
            4:  [self.keep(is_datagram, Cat(word[16:22], word[24:]) == 0), # No fragment.
                 self.keep(is_sound, (more[8:] == 0) | ((more[8:] == 1) & ~more[7]))],
            5:  [self.keep(is_datagram, word[8:16] == 17)],
            7:  [self.keep(is_datagram, word == number(*ip))],
            8:  [self.keep(is_datagram, word[16:] == port)],
            9:  [self.keep(is_sound, swapped(word[:16]) == Cat(C(0, 2), more + (OVERHEAD - IP_OCTETS)//4))],
            10: [self.keep(is_sound, (word[16:] == DATAGRAM_MAGIC) & (word[:8] < rings)),
                 self.ring.eq(word if rings > 1 else 0), self.asks.eq(word[ASK_BIT])],
            11: [is_session.eq((word[16:] == Array(self.sessions)[self.ring]) & Array(self.is_open)[self.ring]),
                 is_lease.eq((word[:16] == self.lease) | ((word[:16] == 0) & ~self.is_held))],
        }
        self.comb += [
            self.is_present.eq(is_session & is_lease),
            self.words.eq(more),
        ]
        self.sync += [
            If(self.begin,
                is_datagram.eq(self.start == number(*mac[:2])),
                is_sound.eq(1),
            ),
            If(self.take, Case(self.line, self.lines)),
        ]

    def keep(self, flag, condition):
        """Clear a flag unless the condition holds."""
        return If(~condition, flag.eq(0))
