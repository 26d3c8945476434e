# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""One-way delay without records: least, most, sum, sum of squares."""

from migen import *

from litex.gen import *

# Delay Accumulator --------------------------------------------------------------------------------

class DelayAccumulator(LiteXModule):
    """Accumulates RX stamp minus TX stamp over frames.

    Attributes
    ----------
    rx_stamp, tx_stamp : Signal(64), in
        ns. Must stand still from ``check`` to ``commit``.
    check : Signal(), in
        Start.
    commit : Signal(), in
        One cycle, eight cycles or more after ``check``: accumulates. Without it the frame leaves no trace.
    clear : Signal(), in
        Back to no frame at all.
    least, most : Signal((64, True)), out
        ns; 0 before the first frame.
    total : Signal((64, True)), out
        Sum (ns). Wraps.
    squares : Signal(96), out
        Sum of squares (ns^2). Wraps. A delay outside +-(2^32 - 1) ns enters with 2^32 - 1: where ``least`` or ``most``
        lies beyond, the sum is a lower bound.

    The square is built from three products of 16 x 16 bits in one multiplier, one a cycle.
    """
    def __init__(self):
        self.rx_stamp = Signal(64)
        self.tx_stamp = Signal(64)
        self.check    = Signal()
        self.commit   = Signal()
        self.clear    = Signal()
        self.least    = Signal((64, True))
        self.most     = Signal((64, True))
        self.total    = Signal((64, True))
        self.squares  = Signal(96)

        # # #

        delay     = Signal((64, True))
        is_least  = Signal()
        is_most   = Signal()
        is_first  = Signal(reset=1)
        self.sync += [
            delay.eq(self.rx_stamp - self.tx_stamp),
            is_least.eq(is_first | (delay < self.least)),
            is_most.eq( is_first | (delay > self.most)),
        ]
        square = self.add_square(delay)

        # Accumulators.
        # -------------
        self.sync += [
            If(self.commit,
                is_first.eq(0),
                If(is_least, self.least.eq(delay)),
                If(is_most,  self.most.eq(delay)),
                self.total.eq(self.total + delay),
                self.squares.eq(self.squares + square),
            ),
            If(self.clear,
                is_first.eq(1),
                self.least.eq(0), self.most.eq(0), self.total.eq(0), self.squares.eq(0),
            ),
        ]

    def add_square(self, delay):
        """Return the square of ``delay``, right eight cycles after ``check``."""
        # A number beyond 33 bits, or one that needs the 33rd for its magnitude, is clamped.
        is_negative = delay[-1]
        magnitude   = Signal(33)
        is_far      = Signal()
        clamped     = Signal(32)
        low, high   = clamped[:16], clamped[16:]
        self.sync += [
            magnitude.eq((delay[:32] ^ Replicate(is_negative, 32)) + is_negative),
            is_far.eq(delay[32:] != Replicate(is_negative, 32)),
            clamped.eq(magnitude[:32] | Replicate(is_far | magnitude[32], 32)),
        ]
        # Three cycles after ``check`` the magnitude stands; a product stands two cycles after its factors. The outer
        # products don't overlap, so one addition makes the square.
        step    = Signal(7)
        a, b    = Signal(16), Signal(16)
        product = Signal(32)
        outer   = Signal(64)
        inner   = Signal(32)
        square  = Signal(64)
        self.sync += [
            step.eq(Cat(self.check, step)),
            a.eq(Mux(step[2] | step[3], low, high)),
            b.eq(Mux(step[2], low, high)),
            product.eq(a*b),
            If(step[4], outer[:32].eq(product)),
            If(step[5], inner.eq(product)),
            If(step[6], outer[32:].eq(product)),
        ]
        self.comb += square.eq(outer + (inner << 17))
        return square
