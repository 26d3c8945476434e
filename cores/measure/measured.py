# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What the parts of a port's measurement tell each other of a frame."""

from migen import *

# Of every frame that is classified. An endpoint's ``valid`` is one cycle for each, at least 32 cycles apart; the rest is right
# in that cycle and stays until the next one. Can't be stalled.
measured_layout = [
    ("stamp",     64), # ns.
    ("length",    16), # Octets without FCS.
    ("flags",     16), # `UnifiedFlag`.
    ("is_probe",   1), # It has a whole probe header: the next three are there.
    ("stream_id", 16),
    ("sequence",  32),
    ("tx_stamp",  64), # ns.
    ("passed",     1), # The filter lets it pass.
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
