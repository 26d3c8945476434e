# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Joins what fills rings to the ports that they are of, and to the lease."""

from typing import Protocol

from migen import *

from litex.gen import *

# Ring Reader Port ----------------------------------------------------------------------------------------

class RingReaderPort(Protocol):
    """Declares what is asked of a port whose ring is filled; `ReplayPort` is one.

    Attributes
    ----------
    session : Signal(16), out
        With ``opens``.
    opens, closes : Signal(), out
        Pulses, as ``open`` and ``close`` of `DatagramReceiver`.
    restart, is_restarted : Signal(), in and out
        Of its `RingReader`.
    written, fetched : Signal(32), in and out
        Position up to which the ring has its words, and up to which they are needed no more.
    keeps : Signal(), out
        The ring is needed from position 0 on, whatever was fetched.
    frames, underruns, first_underrun : Signal(32), Signal(16), Signal(32), out
    errors, is_running, is_starved : Signal(), out
        For answers to the host.
    """
    session        : Signal
    opens          : Signal
    closes         : Signal
    restart        : Signal
    is_restarted   : Signal
    written        : Signal
    fetched        : Signal
    keeps          : Signal
    frames         : Signal
    underruns      : Signal
    first_underrun : Signal
    errors         : Signal
    is_running     : Signal
    is_starved     : Signal

# Ring Filler --------------------------------------------------------------------------------------

class RingFiller(LiteXModule):
    """Fills the rings of ports with what a host streams: what `DatagramReceiver` and `SlotReceiver` have in common."""
    def join_ring(self, ring, port):
        """Join ring number ``ring`` to a `RingReaderPort`."""
        self.comb += [
            self.session[ring].eq(port.session),
            self.open[ring].eq(port.opens),
            self.close[ring].eq(port.closes),
            port.restart.eq(self.restart[ring]),
            self.is_restarted[ring].eq(port.is_restarted),
            port.written.eq(self.written[ring]),
            self.fetched[ring].eq(port.fetched),
            self.keeps[ring].eq(port.keeps),
        ]

    def join_lease(self, lease):
        """Take only what comes under a `WriteLease`, or what comes while nobody holds it."""
        self.comb += [
            self.lease.eq(lease.number),
            self.is_held.eq(lease.is_held),
        ]
