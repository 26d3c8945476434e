# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Grants exclusive write access to one host, for as long as it is heard.

Stands alone: it is a contract with hosts, whatever the management link.
"""

from math import ceil

from migen import *

from litex.gen import *

from litex.soc.interconnect.csr import *

from liteprobe.cores.formats import LEASE_NAME_WORDS, LEASE_UNIT_BITS
from liteprobe.cores.bus import WriteOnlyCSR

TIMEOUT_S = 2.0

# Write Lease ----------------------------------------------------------------------------------------

class WriteLease(LiteXModule):
    """Grants the probe to one host at a time, and takes it back from a host that has fallen silent.

    A claim names the number of the present lease, which each claim and each end changes. So of two hosts that claim at once
    one gets it, and a claim that the network doubled or delayed does nothing.

    Parameters
    ----------
    sys_clk_freq : float, Hz
    unit_bits : int
        Times are in 2^unit_bits cycles.

    Attributes
    ----------
    owner : CSRStatus(32)
        Token of the host that holds the lease (31:16; 0: nobody does), number of the lease (15:0, never 0).
    claim : CSR(32), write only
        Token (not 0) and number: takes the lease if nobody holds it and the number is the present one. What ``owner`` reads
        keeps the lease for another ``timeout``. Anything else does nothing.
    steal : CSR(32), write only
        Likewise, but takes it from whoever holds it.
    release : CSR(32), write only
        What ``owner`` reads: ends the lease. Anything else does nothing.
    left : CSRStatus(8)
        Until the lease ends (2^20 cycles of ``sys``), if nothing is heard.
    timeout : WriteOnlyCSR(8)
        How long the host may be silent (2^20 cycles of ``sys``), 1 to 255; it reads two seconds after power-up.
    name : WriteOnlyCSR(512)
        Who holds the lease, in UTF-8, padded with zeros; written by the holder.
    expired : CSRStatus(16)
        Leases whose host fell silent. Wraps.
    number : Signal(16), out
    is_held : Signal(), out
    heard : Signal(), in
        One pulse: the holder has asked for something.
    granted : Signal(), out
        One pulse as a lease begins.
    ended : Signal(), out
        One pulse as a lease ends, however.
    """
    def __init__(self, sys_clk_freq, unit_bits=LEASE_UNIT_BITS):
        self.owner   = CSRStatus(32, description="Token of the holder (31:16; 0: none), number of the lease (15:0).")
        self.claim   = CSR(32)
        self.steal   = CSR(32)
        self.release = CSR(32)
        self.left    = CSRStatus(8, description="Until the lease ends in silence (2^20 cycles of sys).")
        units        = ceil(TIMEOUT_S*sys_clk_freq/2**unit_bits)
        self.timeout = WriteOnlyCSR(8, "timeout", "How long the holder may be silent (2^20 cycles of sys).", reset=units)
        self.name    = WriteOnlyCSR(32*LEASE_NAME_WORDS, "name", "Who holds the lease, in UTF-8.")
        self.expired = CSRStatus(16, description="Leases whose host fell silent. Wraps.")
        self.number  = Signal(16)
        self.is_held = Signal()
        self.heard   = Signal()
        self.granted = Signal()
        self.ended   = Signal()

        # # #

        token  = Signal(16)
        count  = Signal(15)              # Of claims and ends.
        part   = Signal(unit_bits, reset_less=True) # Of a unit of time.
        unit   = Signal()
        left   = Signal(8)
        claims, steals, releases = self.claim, self.steal, self.release
        is_present  = Signal() # The number that comes with a claim.
        is_mine     = Signal() # Token and number do.
        is_released = Signal()
        is_expired  = Signal()
        word        = claims.r # One bus: what is written is the same for all three.
        self.comb += [
            self.number.eq(Cat(count, 1)),
            self.is_held.eq(token != 0),
            self.owner.status.eq(Cat(self.number, token)),
            self.left.status.eq(left),
            is_present.eq((word[:16] == self.number) & (word[16:] != 0)),
            is_mine.eq((word == self.owner.status) & self.is_held),
            is_released.eq(releases.re & is_mine),
            is_expired.eq(self.is_held & unit & (left == 0)),
            self.granted.eq(is_present & ((claims.re & ~self.is_held) | steals.re)),
            self.ended.eq(is_released | is_expired | (self.granted & self.is_held)),
        ]
        self.sync += [
            Cat(part, unit).eq(part + 1),
            If(self.is_held & unit, left.eq(left - 1)),
            If(self.granted | self.heard | (claims.re & is_mine), left.eq(self.timeout.storage)),
            If(self.granted | self.ended, count.eq(count + 1)),
            If(self.granted,
                token.eq(word[16:]),
            ).Elif(self.ended,
                token.eq(0),
                self.expired.status.eq(self.expired.status + is_expired),
            ),
        ]
