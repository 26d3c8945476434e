# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Builds LiteX's logic analyzer into a probe: it sees what each port sends, octet by octet, and litescope_cli reads it.

Stands alone: ``--scope`` of a build adds it as a part of one's own (`liteprobe.soc.extension`).
"""

from migen import *

from litescope import LiteScopeAnalyzer

from liteprobe.cores.formats import TICKS_PER_SECOND

DEPTH = 1024 # Samples, one a tick.
SHOWN = ("valid", "ready", "last", "data")

def extend(soc):
    """Add registers ``scope``: group n has what port n gives to its PHY, in ``timebase``."""
    groups = {}
    for number, phy in enumerate(soc.phys):
        groups[number] = [Signal(len(getattr(phy.sink, name)), name=f"port{number}_tx_{name}") for name in SHOWN]
        soc.comb += [signal.eq(getattr(phy.sink, name)) for signal, name in zip(groups[number], SHOWN)]
    scope = LiteScopeAnalyzer(groups, DEPTH, samplerate=TICKS_PER_SECOND, clock_domain="timebase", csr_csv=None)
    soc.add_module(name="scope", module=scope)
