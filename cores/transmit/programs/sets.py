# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What a transmit port has beside others where it makes frames of configuration sets, too."""

from migen import *

from litex.gen import *

from liteprobe.cores.transmit.programs.headers import add_headers
from liteprobe.cores.transmit.programs.choice import OtherPrograms

def add_sets(path):
    """Give a TransmitPath sets, trains whose frames are described one by one; return what `add_programs` must know of them."""
    path.sets_arm = Signal()
    sets, schedule = path.sets, path.schedule
    templates = path.headers if path.streams is None else path.streams
    path.comb += [
        If(path.of_sets, schedule.source.connect(sets.slots)),
        sets.arm.eq(path.begins & path.of_sets),
        sets.stop.eq(path.is_stopped & path.of_sets),
        sets.elapsed.eq(path.elapsed.elapsed),
        sets.template_length.eq(path.program.length),
    ]
    path.sync += If(path.asked & ~path.is_busy, path.of_sets.eq(path.sets_arm))
    if path.streams is None:
        add_headers(path, templates)
    # Its first frame is due at once.
    return OtherPrograms(path.of_sets, path.sets_arm, sets.arm, Constant(0, 1), templates.source)
