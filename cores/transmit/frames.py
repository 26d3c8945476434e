# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Layouts of the transmit path: the program, descriptors, words, octets."""

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

# What the pacer needs ready-made, one cycle of ``sys`` after the program.
pace_layout = [
    ("hold",          14), # Ticks that a frame holds the line, less what line.py takes of them.
    ("interval",      32), # Ticks, start to start, back to back resolved.
    ("interval_gap",  33), # The same after a train's last frame.
]

# One frame of the program: which one, and where it stands. An empty one only says that a stopped
# program ends here.
frame_marks = [
    ("train_last", 1),
    ("final",      1),
    ("empty",      1),
]

def descriptor_description():
    """Frames of a program before they are built: the sequence number of each, and its marks."""
    return EndpointDescription([("sequence", 32)] + frame_marks)

def word_description(data_width):
    """Words of a frame, as LiteEth's, with the marks of the frame beside each."""
    return EndpointDescription([("data", data_width), ("last_be", data_width//8)] + frame_marks)

def octet_description():
    """Octets of a frame; ``error`` asks for a wrong FCS, ``probe`` tells from management."""
    return EndpointDescription([("data", 8), ("error", 1), ("probe", 1)] + frame_marks)
