# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Samples of an asynchronous pin, one a tick: what any pin can give."""

from migen import *
from migen.genlib.cdc import MultiReg

from litex.gen import *

# From a tick to that in which its samples are given.
SAMPLE_TICKS = 2
# Samples a tick that are of use: the PPS input knows the part of a tick by two bits.
SAMPLES = (1, 2, 4)

# Pin Samples --------------------------------------------------------------------------------------

class PinSamples(LiteXModule):
    """Samples a pin as each tick ends. Boards that can do better have a module with the same attribute.

    Parameters
    ----------
    pad : Signal(), asynchronous

    Attributes
    ----------
    samples : Signal(1), out, ``timebase``
        The pin as the tick SAMPLE_TICKS before ended.
    """
    def __init__(self, pad):
        self.samples = Signal()

        # # #

        self.specials += MultiReg(pad, self.samples, "timebase", n=SAMPLE_TICKS)
