# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Random generators of all classes, for frames and for ghosts: one step for both."""

from migen import *

from litex.gen import *

from liteprobe.cores.emulate.draws import STATE_BITS, next_state
from liteprobe.cores.emulate.kept import lut_ports
from liteprobe.cores.emulate.layouts import CLASS_BITS
from liteprobe.cores.formats.emulate import CLASSES

USERS = ("fates", "ghosts")

# Class Generators ---------------------------------------------------------------------------------

class ClassGenerators(LiteXModule):
    """Keeps a generator of each class for each of two users; ``ghosts`` goes before ``fates``.

    Attributes
    ----------
    uses : Signal(), in
        ``ghosts`` has this cycle; else ``fates`` has.
    numbers : dict of Signal(3), in
        Of each user: its class.
    state : Signal(64), out
        Of whose cycle it is.
    draw : Signal(32), out
        What the step draws.
    steps, puts, seeds : dict of Signal(), Signal(), Signal(64), in
        Of each user, in its cycle: the generator takes a step; or its state becomes the seed.
    """
    def __init__(self):
        self.uses    = Signal()
        self.numbers = {user: Signal(CLASS_BITS, name=f"number_{user}") for user in USERS}
        self.state   = Signal(STATE_BITS)
        self.draw    = Signal(32)
        self.steps   = {user: Signal(name=f"steps_{user}") for user in USERS}
        self.puts    = {user: Signal(name=f"puts_{user}")  for user in USERS}
        self.seeds   = {user: Signal(STATE_BITS, name=f"seed_{user}") for user in USERS}

        # # #

        frames, ghosts = USERS
        write, read = lut_ports(self, "generators", STATE_BITS, len(USERS)*CLASSES)
        following   = Signal(STATE_BITS)
        def of_user(signals):
            return Mux(self.uses, signals[ghosts], signals[frames])
        self.comb += [
            read.adr.eq(Cat(of_user(self.numbers), self.uses)),
            self.state.eq(read.dat_r),
            following.eq(next_state(self.state)),
            self.draw.eq(following[32:]),
            write.adr.eq(read.adr),
            write.we.eq(of_user(self.steps) | of_user(self.puts)),
            write.dat_w.eq(Mux(of_user(self.puts), of_user(self.seeds), following)),
        ]
