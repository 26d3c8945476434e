# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Declares the layouts of the receive path: frames on their way, and the verdict at the end of each."""

# Number of SFDs that may be under way between the stamp's path and the frame's path, in bits.
number_bits = 4

def verdict_layout():
    """Return the fields of a verdict on a frame, at its end; valid with ``last``."""
    return [
        ("fcs_error",    1),           # FCS wrong, or fewer than four octets.
        ("symbol_error", 1),           # RX_ER in the frame or its preamble.
        ("overflow",     1),           # Words are missing: don't use the frame.
        ("number",       number_bits), # Which SFD; pairs the frame with its stamp.
    ]

def frame_layout(data_width):
    """Words of a frame; ``last_be`` is 0 where a frame has no octet at all."""
    return [("data", data_width), ("last_be", data_width//8)] + verdict_layout()
