# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""All that the programs of a transmit port may be of."""

from liteprobe.cores.transmit.programs.choice import add_programs
from liteprobe.cores.transmit.programs.replay import add_replay
from liteprobe.cores.transmit.programs.sets import add_sets
from liteprobe.cores.transmit.programs.streams import add_streams
from liteprobe.cores.transmit.sources.templates import FrameTemplates

def add_sources(path, pad_ticks):
    """Let a TransmitPath take descriptors of trains, and of all else that programs may be of."""
    if path.streams is None and path.sets is None:
        path.header = path.build.header
    elif path.streams is None:
        path.headers = FrameTemplates([path.sets.user])
    parts  = ((path.streams, add_streams), (path.replay, add_replay), (path.sets, add_sets))
    others = [add(path) for source, add in parts if source is not None]
    if others:
        assert pad_ticks <= 2 # Or a stamp at STAMP_OFFSET_MIN is not known in time.
        add_programs(path, others)
    else:
        path.comb += [
            path.schedule.source.connect(path.descriptors),
            path.asked.eq(path.arm),
        ]
