# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Declares the layouts by which the parts of a port's measurement pass a frame on."""

from migen import *

ERROR_BITS = 17 # All bits of the longest frame.
HEADS      = 4  # Frames whose first octets are kept (`FieldDelay`).

# Of every frame that is classified. An endpoint's ``valid`` is one cycle for each, at least 32 cycles apart; the rest is right
# in that cycle and stays until the next one. Can't be stalled.
measured_layout = [
    ("stamp",      64), # ns.
    ("length",     16), # Octets without FCS.
    ("flags",      16), # `UnifiedFlag`.
    ("is_probe",    1), # It has a whole probe header: the next three are there.
    ("stream_id",  16),
    ("sequence",   32),
    ("tx_stamp",   64), # ns.
    ("passed",      1), # The filter lets it pass.
    # Where such a part is built in:
    ("bit_errors", ERROR_BITS), # Of the fill, if it should be PRBS-31 (`FillCheck`).
    ("is_bare",     1),         # No probe header, but a stamp in a field: for slot 0, in no order.
    ("head",        2),         # Which one of `FieldDelay` has its first octets.
]

def passing_layout():
    """Words of a frame as they pass, for `FieldDelay`."""
    return [
        ("valid",      1),
        ("last",       1),
        ("data",      32),
        ("head",       2), # Frames that were classified before it.
    ]

def sample_layout(slots):
    """Return a value of a frame, as two words in successive cycles with ``valid``, the lower one first."""
    return [
        ("valid",    1),
        ("is_high",  1),
        ("kind",     2), # `BinKind`.
        ("slot",    log2_int(slots)),
        ("word",    32), # Of a signed number of 64 bits.
    ]
