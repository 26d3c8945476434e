# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The registers of configuration sets, ``port<n>_sets``."""

from migen import *

from litex.gen import *
from litex.soc.interconnect.csr import *

from liteprobe.cores.bus import WriteOnlyCSR

SETTINGS = {
    "fields":                "What sets may have, formats.SetField; the first one has all of them.",
    "places":                "Octets of fields in the header: formats.SET_PLACES, SET_SUMMED.",
    "first_repeats_allowed": "Repeats in a row, until the sets say another number.",
}

STATUS = {
    "sets":           "Frames of this program that were made of sets.",
    "repeats":        "Frames that were the last one again, because no set was there in time.",
    "underruns":      "Frames whose sets were waited for after they were due.",
    "first_underrun": "Sequence of the first of them; 0xffffffff: none.",
    "error":          "Why the program ended, formats.SetError; the bad set is number `sets`.",
}

# Set Registers ------------------------------------------------------------------------------------

class SetRegisters(LiteXModule):
    """Gives the settings and the counters of the sets of a transmit path to the bus.

    Parameters
    ----------
    path : TransmitPath
        With sets.
    """
    def __init__(self, path):
        sets     = path.sets
        settings = {name: (getattr(sets, name), description) for name, description in SETTINGS.items()}
        settings |= {
            f"template{n}": (word, f"Word {n} of the description of a stream: what is the same in all frames.")
            for n, word in enumerate(sets.template)
        }
        for name, (signal, description) in settings.items():
            register = WriteOnlyCSR(len(signal), name=name, description=description)
            setattr(self, f"_{name}", register)
            self.comb += signal.eq(register.storage)
        self._arm = CSRStorage(1, name="arm", description="Write: begin a program of sets, as arm of port<n>_tx a train.")
        self.comb += path.sets_arm.eq(self._arm.re)
        for name, description in STATUS.items():
            signal   = getattr(sets, name)
            register = CSRStatus(len(signal), name=name, description=description)
            setattr(self, f"_{name}", register)
            self.comb += register.status.eq(signal)
