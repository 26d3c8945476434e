# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Squares a delay with one multiplier.

Stands alone: arithmetic without a frame, which a test of its own compares over all widths.
"""

from migen import *

from litex.gen import *

class DelaySquare(LiteXModule):
    """Squares a delay by three products of 17 x 17 bits, one a cycle.

    Attributes
    ----------
    delay : Signal((64, True)), in
        ns. Must stand still from three cycles before ``start`` to two cycles after it.
    start : Signal(3), in
        One cycle for each bit, one after the other, bit 0 first.
    square : Signal(64), out
        ns^2; right from five cycles after ``start[0]`` to two after the next one. That of a delay outside +-(2^32 - 1) ns is
        (2^32 - 1)^2.
    """
    def __init__(self):
        self.delay  = Signal((64, True))
        self.start  = Signal(3)
        self.square = Signal(64)

        # # #

        # A delay of 33 bits is its high 17, signed, and its low 16; so no magnitude is needed. Far delays, and -2^32, are
        # taken for 2^32 - 1.
        bits   = Signal(64)
        sign   = Signal()
        is_far = Signal(reset_less=True)
        a      = Signal((17, True), reset_less=True)
        b      = Signal((17, True), reset_less=True)
        near   = Signal(32)
        low    = Signal((17, True))
        high   = Signal((17, True))
        # Four inputs to a LUT, then a tree.
        differs = Signal(11, reset_less=True)
        is_some = Signal(8, reset_less=True)
        self.sync += [
            differs.eq(Cat(*[bits[n:n + 3] != Replicate(sign, len(bits[n:n + 3])) for n in range(32, 64, 3)])),
            is_some.eq(Cat(*[bits[n:n + 4] != 0 for n in range(0, 32, 4)])),
            is_far.eq((differs != 0) | (sign & (is_some == 0))),
        ]
        self.comb += [
            bits.eq(self.delay),
            sign.eq(bits[-1]),
            near.eq(bits[:32] | Replicate(is_far, 32)),
            low.eq( Cat(near[:16], Constant(0, 1))),
            high.eq(Cat(near[16:], sign & ~is_far)),
        ]

        # The outer products don't overlap, so one addition makes the square.
        product = Signal((34, True), reset_less=True)
        outer   = Signal(64, reset_less=True)
        inner   = Signal((33, True), reset_less=True)
        step    = [self.start]
        for _ in range(2):
            late = Signal(3)
            self.sync += late.eq(step[-1])
            step.append(late)
        self.sync += [
            a.eq(Mux(self.start[0], low, high)),
            b.eq(Mux(self.start[2], high, low)),
            product.eq(a*b),
            If(step[2][0], outer[:32].eq(product)),
            If(step[2][1], inner.eq(product)),
            If(step[2][2], outer[32:].eq(product)),
        ]
        shifted = Signal((47, True))
        upper   = Signal(47)
        self.comb += [
            shifted.eq(inner),
            upper.eq(outer[17:] + shifted),
            self.square.eq(Cat(outer[:17], upper)),
        ]
