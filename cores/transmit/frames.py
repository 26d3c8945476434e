# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Layouts of the transmit path: the program, descriptors of frames, words, octets."""

from litex.soc.interconnect.stream import EndpointDescription

# What the host asks for; see docs/design/interfaces.md, "Registers".
program_layout = [
    ("length",            14), # Bytes without FCS.
    ("count",             32), # Frames of a train.
    ("repeats",           32), # Trains.
    ("interval_ticks",    32), # Start to start; both parts 0 is back to back.
    ("interval_fraction", 32), # 2^-32 ticks.
    ("gap_ticks",         32), # Between the slot of a train's last frame and the next head.
    ("start_time",        64), # ns, of the first SFD.
    ("timed",              1), # Wait for start_time.
    ("fill",               2), # formats.Fill.
    ("payload_offset",     8), # Bytes before the UDP payload.
    ("checksum_enable",    1), # Write the checksum complement.
    ("checksum_seed",     16), # One's complement sum of pseudo-header and UDP header.
]

# When a frame leaves, and what ends with it. An empty one is not a frame: it only says that a stopped program ends here.
timing_layout = [
    ("after", 33), # Ticks from its start to the one of the next frame.
    ("carry",  1), # One tick more, of the fractions of intervals: whoever adds has a carry to spare.
    ("final",  1), # The last of its program.
    ("empty",  1),
]

LENGTH_BITS = 14
HOLD_BITS   = 14

def descriptor_description():
    """A frame before it is built: what stands in it, and when it leaves."""
    return EndpointDescription([("sequence", 32), ("length", LENGTH_BITS)] + timing_layout)

def pace_description():
    """A frame as the pacer knows it, while its octets wait; ``hold``: ticks that it holds the line, less LINE_TICKS."""
    return EndpointDescription([("hold", HOLD_BITS)] + timing_layout)

def word_description(data_width):
    """Words of a frame, as LiteEth's."""
    return EndpointDescription([("data", data_width), ("last_be", data_width//8)])

def octet_description():
    """Octets of a frame; ``error`` asks for a wrong FCS, ``probe`` tells from management."""
    return EndpointDescription([("data", 8), ("error", 1), ("probe", 1)])
