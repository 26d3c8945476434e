# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Declares the layouts of the transmit path: the program, descriptors of frames, words, octets."""

from litex.soc.interconnect.stream import EndpointDescription

# What the host asks for, but the numbers of `TrainSchedule`; see docs/design/interfaces.md, "Registers".
program_layout = [
    ("length",            14), # Bytes without FCS.
    ("start_time",        64), # ns, of the first SFD.
    ("timed",              1), # Wait for start_time.
    ("fill",               2), # formats.Fill.
    ("payload_offset",     8), # Bytes before the UDP payload.
    ("checksum_enable",    1), # Write the checksum complement.
    ("checksum_seed",     16), # One's complement sum of pseudo-header and UDP header.
]

LENGTH_BITS = 14
HOLD_BITS   = 14
DUE_BITS    = 20 # Of the tick at which a frame is due, as the pacer knows it: HORIZON and OVERDUE_MAX are far below half of it.

# Of a program or a stream: what `FrameBuild` puts into its frames,
build_layout = [
    ("stream",       4), # Of the port, from 0; 0 for a train.
    ("header_words", 6), # 32-bit words that come from the header memory.
    ("with_probe",   1), # Sequence and place of the stamp follow; then, or else at once, the fill.
    ("fill",         2), # formats.Fill.
]

# what stands in one that is replayed,
fetch_layout = [
    ("fetch",           1), # Its octets come from the ring, not from `FrameBuild`:
    ("snap", LENGTH_BITS),  # so many; zeros follow, up to the length.
]

# and what `StampInserter` writes into them as they leave.
stamp_layout = [
    ("payload_offset",   8), # Octets before what the checksum complement covers.
    ("checksum_enable",  1),
    ("checksum_seed",   16),
    ("stamp_enable",     1),
    ("stamp_offset",     8), # Of the stamp's first octet in the frame.
    ("stamp_octets",     3), # Less one.
    ("stamp_shift",      4), # Nibbles by which the time is shifted right.
    ("stamp_nibble",     1), # The high nibble of the first octet stays.
    ("stamp_mend",       1), # The two octets from stamp_offset + 6 are the checksum of an IPv4 header, the stamp is part of it.
]

def descriptor_description(with_replay=False, due_bits=64):
    """A frame before it is built, or fetched: what stands in it, and when it leaves.

    ``due``: whole ticks since the start of its program, in two's complement, or modulo. ``final``: it is the last of its
    program. An ``empty`` one is not a frame: it only says that the program ends here.
    """
    return EndpointDescription([
        ("sequence", 32),
        ("length",   LENGTH_BITS),
        ("due",      due_bits),
        ("final",    1),
        ("empty",    1),
    ] + build_layout + stamp_layout + (fetch_layout if with_replay else []))

def pace_description(with_stamps=False):
    """A frame as the pacer knows it, while its octets wait; ``hold``: ticks that it holds the line, less LINE_TICKS.

    ``due`` is modulo 2^DUE_BITS. With stamps, each frame brings what `StampInserter` needs.
    """
    return EndpointDescription([
        ("hold",  HOLD_BITS),
        ("due",   DUE_BITS),
        ("final", 1),
        ("empty", 1),
    ] + (stamp_layout if with_stamps else []))

def word_description(data_width):
    """Words of a frame, as LiteEth's."""
    return EndpointDescription([("data", data_width), ("last_be", data_width//8)])

def octet_description():
    """Octets of a frame; ``error`` asks for a wrong FCS, ``probe`` tells from management."""
    return EndpointDescription([("data", 8), ("error", 1), ("probe", 1)])
