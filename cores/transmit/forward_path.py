# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The transmit path of a port by which frames leave an emulated network."""

from migen import *

from litex.gen import *

from liteprobe.cores.transmit import TransmitPath
from liteprobe.cores.transmit.registers import add_forward_registers

# Forward Transmit ---------------------------------------------------------------------------------

class ForwardTransmit(TransmitPath):
    """Sends what leaves an emulated network, in the place of trains and all else: a program without an end.

    Frames leave without stamps. It has neither ``program``, ``header``, ``arm`` nor ``clear``.

    Parameters
    ----------
    forward : ForwardSource
    with_management, pad_ticks : as of `TransmitPath`

    Attributes
    ----------
    forward_arm : Signal(), in, ``sys``
        One pulse; ignored unless idle.
    """
    def __init__(self, forward, with_management=False, pad_ticks=0):
        self.forward = forward

        # # #

        TransmitPath.__init__(self, None, with_management=with_management, pad_ticks=pad_ticks)

    def add_csr(self):
        """Add the registers of the contract."""
        add_forward_registers(self)
