# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Layouts of the receive path: frames on their way, and what is known of each at its end."""

# Number of SFDs that may be under way between the stamp's path and the frame's path, in bits.
number_bits = 4

def verdict_layout():
    """What the end of a frame says about it; valid with ``last``."""
    return [
        ("fcs_error",    1),           # FCS wrong, or fewer than four octets.
        ("symbol_error", 1),           # RX_ER in the frame or its preamble.
        ("overflow",     1),           # Words are missing: don't use the frame.
        ("number",       number_bits), # Which SFD; pairs the frame with its stamp.
    ]

def frame_layout(data_width):
    """Words of a frame; ``last_be`` is 0 where a frame has no octet at all."""
    return [("data", data_width), ("last_be", data_width//8)] + verdict_layout()

def report_layout():
    """What is known of a frame at its end."""
    return [
        ("number",       number_bits), # Which SFD.
        ("length",       16),          # Bytes without FCS; saturates.
        ("fcs_error",    1),
        ("symbol_error", 1),
        ("runt",         1),           # Fewer than 60 bytes.
        ("giant",        1),           # More than 9018 bytes.
        ("is_probe",     1),           # Carries the signature. Else the fields below are those of the last one that did.
        ("probe_length", 16),          # ``length`` of that frame.
        ("probe_flags",  16),          # What is wrong with it, as in a record.
        ("stream_id",    16),
        ("sequence",     32),
        ("tx_stamp",     64),          # ns.
    ]
