# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What the stages of the emulator tell each other of a frame; see docs/design/emulator.md."""

from liteprobe.cores.formats.emulate import CLASSES, DUE_BITS, FINE_BITS, LANES, TIME_BITS
from liteprobe.cores.transmit.frames import LENGTH_BITS

TICKS_BITS   = TIME_BITS - FINE_BITS # Of a time in whole ticks.
CLASS_BITS   = (CLASSES - 1).bit_length()
LANE_BITS    = (LANES - 1).bit_length()
ADDRESS_BITS = 21 # Of a word of the store.
NUMBER_BITS  = 12 # Of a frame that was kept, modulo.
BIT_BITS     = LENGTH_BITS + 3 # Of a bit of a frame.

arrival_layout = [ # A good frame came in.
    ("time",   TICKS_BITS), # Tick of its SFD.
    ("length", LENGTH_BITS),
    ("number", CLASS_BITS), # Of its class.
]

fate_layout = arrival_layout + [ # What it draws.
    ("discarded",  1),
    ("lost",       1), # By a loss model or a pattern; at its arrival, or
    ("late",       1), # behind the queue.
    ("twice",      1),
    ("corrupt",    1),
    ("mended",     1), # It leaves with a good FCS.
    ("bit",        BIT_BITS), # That is wrong.
    ("held",       1), # It goes to the lane of frames that are held back.
    ("delay",      31), # Ticks from the end of its service, what holds it back among them.
    ("red",        32), # Draw.
]

ghost_layout = [ # A frame of the background comes in.
    ("time",   TIME_BITS), # Fine.
    ("length", LENGTH_BITS),
    ("number", CLASS_BITS),
    ("red",    32),
]

verdict_layout = [ # Of each frame that came in, in the order of arrivals.
    ("keep",    1), # Its octets go to the store: its words, from
    ("address", ADDRESS_BITS),
    ("base",    ADDRESS_BITS), # in a ring that begins here
    ("bits",    5),            # and has 2^bits words.
]

departure_layout = [ # A frame leaves: in the order in which they are due.
    ("due",     DUE_BITS), # Tick of its SFD, modulo.
    ("lane",    LANE_BITS),
    ("length",  LENGTH_BITS),
    ("address", ADDRESS_BITS),
    ("base",    ADDRESS_BITS),
    ("bits",    5),
    ("twice",   1),
    ("corrupt", 1),
    ("mended",  1),
    ("bit",     BIT_BITS),
    ("number",  NUMBER_BITS), # How many frames were kept before it: its octets are in the store once so many and one more are.
]
