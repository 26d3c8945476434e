# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""One-way delay of a frame: whether it is the least or the most, and its square."""

from migen import *

from litex.gen import *

# Delay Meter --------------------------------------------------------------------------------------

class DelayMeter(LiteXModule):
    """Measures RX stamp minus TX stamp of frames, and what accumulators of it need.

    Attributes
    ----------
    rx_stamp, tx_stamp : Signal(64), in
        ns. Must stand still from ``check`` to ``commit``.
    check : Signal(), in
        Start.
    commit : Signal(), in
        One cycle, later: the frame counts as one before the next. Without it the frame leaves no trace.
    clear : Signal(), in
        Back to no frame at all.
    delay : Signal((64, True)), out
        ns; right from a cycle after ``check``, while the stamps stand still.
    is_least, is_most : Signal(), out
        No frame before this one had less, or more; right from two cycles after ``check`` to a cycle after ``commit``.
    square : Signal(64), out
        ns^2; right from eight cycles after ``check`` to four after the next one. That of a delay outside +-(2^32 - 1) ns
        is (2^32 - 1)^2.

    The square is built from three products of 16 x 16 bits in one multiplier, one a cycle.
    """
    def __init__(self):
        self.rx_stamp = Signal(64)
        self.tx_stamp = Signal(64)
        self.check    = Signal()
        self.commit   = Signal()
        self.clear    = Signal()
        self.delay    = delay = Signal((64, True), reset_less=True)
        self.is_least = Signal()
        self.is_most  = Signal()

        # # #

        least    = Signal((64, True), reset_less=True)
        most     = Signal((64, True), reset_less=True)
        is_first = Signal(reset=1)
        self.sync += [
            delay.eq(self.rx_stamp - self.tx_stamp),
            self.is_least.eq(is_first | (delay < least)),
            self.is_most.eq( is_first | (delay > most)),
            If(self.commit,
                is_first.eq(0),
                If(self.is_least, least.eq(delay)),
                If(self.is_most,  most.eq(delay)),
            ),
            If(self.clear, is_first.eq(1)),
        ]
        self.square = self.add_square(delay)

    def add_square(self, delay):
        """Return the square of ``delay``, right eight cycles after ``check``."""
        # A number beyond 33 bits, or one that needs the 33rd for its magnitude, is clamped.
        is_negative = delay[-1]
        magnitude   = Signal(33, reset_less=True)
        is_far      = Signal()
        clamped     = Signal(32, reset_less=True)
        low, high   = clamped[:16], clamped[16:]
        self.sync += [
            magnitude.eq((delay[:32] ^ Replicate(is_negative, 32)) + is_negative),
            is_far.eq(delay[32:] != Replicate(is_negative, 32)),
            clamped.eq(magnitude[:32] | Replicate(is_far | magnitude[32], 32)),
        ]
        # Three cycles after ``check`` the magnitude stands; a product stands two cycles after its factors. The outer
        # products don't overlap, so one addition makes the square.
        step    = Signal(7)
        a       = Signal(16, reset_less=True)
        b       = Signal(16, reset_less=True)
        product = Signal(32, reset_less=True)
        outer   = Signal(64, reset_less=True)
        inner   = Signal(32, reset_less=True)
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
