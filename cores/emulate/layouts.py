# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Lays out what the stages of the emulator pass on of a frame; see docs/design/emulator.md."""

from migen import bits_for

from liteprobe.cores.formats.emulate import CLASSES, DUE_BITS, FINE_BITS, LANES, TIME_BITS
from liteprobe.cores.transmit.frames import LENGTH_BITS

TICKS_BITS    = TIME_BITS - FINE_BITS # Of a time in whole ticks, modulo.
CLASS_BITS    = (CLASSES - 1).bit_length()
LANE_BITS     = (LANES - 1).bit_length()
ADDRESS_BITS  = 21 # Of a word of the store.
RING_BITS     = 5  # Of the number of bits of an address in a ring.
POSITION_BITS = ADDRESS_BITS + 1 # Of words of a lane since the start, modulo: full and empty differ.
BIT_BITS      = LENGTH_BITS + 3 # Of a bit of a frame.
DELAY_BITS    = 31
IP_BITS       = 5 # Where the IP header of a frame is: words that tags and labels take before it; the highest bit: IPv6.
WAITING_MOST  = 65535 # Frames and background frames of a class that wait, at most: as a limit says it,
FRAMES_BITS   = WAITING_MOST.bit_length() # so many bits of their number,
OCTETS_BITS   = FRAMES_BITS + LENGTH_BITS # and of their octets.
ENTRY_WORDS   = 4  # Of a frame that waits or is under way, in the SDRAM.
PLACE_BITS    = 17 # Of such entries of a class or a lane since the start, modulo: full and empty differ.

def narrowed(layout, longest):
    """Return a layout whose length, and bit that is wrong, are of frames of up to ``longest`` octets."""
    bits = {"length": bits_for(longest), "bit": bits_for(8*longest - 1)}
    return [(name, bits.get(name, width)) for name, width in layout]

def words_of(length):
    """Return how many words hold ``length`` octets."""
    return (length + 3)[2:]

arrival_layout = [ # A good frame came in.
    ("time",   TICKS_BITS), # Tick of its SFD.
    ("length", LENGTH_BITS),
    ("number", CLASS_BITS), # Of its class.
    ("ect",    1), # Its ECN codepoint isn't 0: it can be marked.
    ("ip",     IP_BITS),
]

damage_layout = [ # What is done to it.
    ("twice",   1),
    ("corrupt", 1),
    ("mended",  1), # It leaves with a good FCS.
    ("bit",     BIT_BITS), # That is wrong.
]

DAMAGE_FIELDS = tuple(name for name, _ in damage_layout)

kept_layout = damage_layout + [ # What is known of it until it leaves.
    ("marked", 1), # Its ECN codepoint becomes CE.
    ("ip",     IP_BITS),
]

KEPT_FIELDS = tuple(name for name, _ in kept_layout)

impairment_layout = arrival_layout + damage_layout + [ # What it draws.
    ("discarded", 1),
    ("lost",      1), # By a loss model or a pattern; at its arrival, or
    ("lost_late", 1), # after the queue.
    ("held",      1), # It goes to the lane of frames that are held back.
    ("delay",     DELAY_BITS), # Ticks from the end of its service, what holds it back among them.
    ("red",       32), # Draw.
]

background_layout = [ # A frame of the background comes in.
    ("time",   TIME_BITS), # Fine.
    ("length", LENGTH_BITS),
    ("number", CLASS_BITS),
    ("red",    32),
]

verdict_layout = [ # Of each frame that came in, in the order of arrivals.
    ("keep",     1), # Its octets go to the ring of
    ("lane",     LANE_BITS),
    ("position", POSITION_BITS), # from here on.
]

served_layout = kept_layout + [ # A frame has been served, or was dropped when its turn came.
    ("due",     DUE_BITS), # If no frame of its lane is due later.
    ("arrival", DUE_BITS), # Tick, modulo.
    ("gone",    1), # It was dropped: it only gives its octets back.
    ("lane",    LANE_BITS),
    ("number",  CLASS_BITS), # Of its class.
    ("length",  LENGTH_BITS),
]

departure_layout = kept_layout + [ # A frame leaves, in the order in which they are due.
    ("due",      DUE_BITS), # Tick of its SFD, modulo.
    ("gone",     1), # It was dropped.
    ("lane",     LANE_BITS),
    ("number",   CLASS_BITS),
    ("length",   LENGTH_BITS),
    ("position", POSITION_BITS), # Its words are in the ring of its lane from here on.
]

ring_layout = [ # Where the ring of a lane is in the store.
    ("lane", LANE_BITS),
    ("base", ADDRESS_BITS), # A multiple of its size, words.
    ("bits", RING_BITS),    # It has 2^bits.
]

counted_layout = [ # Something happened in a queue.
    ("number",  CLASS_BITS),
    ("length",  LENGTH_BITS),
    ("arrives", 1), # A frame, or
    ("background",   1), # a background frame; neither: something left the queue; both: a background frame was dropped there.
    ("outcome",    3), # formats.emulate.Outcome of what came, or LOST or EARLY for a frame that left the queue so.
    ("twice",   1),
    ("corrupt", 1),
    ("held",    1),
    ("marked",  1), # It left the queue with CE.
    ("frames",  FRAMES_BITS), # That wait now,
    ("octets",  OCTETS_BITS), # and their octets.
]

sent_layout = [ # It is settled when a frame leaves.
    ("number", CLASS_BITS),
    ("length", LENGTH_BITS),
    ("twice",  1),
    ("delay",  DUE_BITS), # Ticks, SFD to SFD.
]

late_layout = [ # A frame left after its tick.
    ("number", CLASS_BITS),
    ("ticks",  DUE_BITS), # By so many,
    ("waited", 1),        # because the line was busy; else the probe was too slow.
]
