# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What a transmit port has beside others where it replays traces, too."""

from migen import *

from litex.gen import *

from liteprobe.cores.transmit.fetch import FrameFetch
from liteprobe.cores.transmit.programs.choice import OtherPrograms

def add_replay(path):
    """Give a TransmitPath the replay of traces; return what `add_programs` must know of their programs."""
    path.replay_arm = Signal()
    path.fetch      = FrameFetch()
    replay = path.replay
    path.comb += [
        replay.start.eq(path.begins & path.of_replay),
        replay.stop.eq(path.is_stopped & path.of_replay),
        replay.is_past.eq(path.announce.is_past),
        replay.fetch.connect(path.fetch.octets),
    ]
    path.sync += If(path.asked & ~path.is_busy, path.of_replay.eq(path.replay_arm))
    add_fetch(path)
    return OtherPrograms(path.of_replay, path.replay_arm, replay.start, replay.is_primed, replay.source)

def add_fetch(path):
    """Build a frame or fetch it, as its descriptor says; all frames of a program are of one kind."""
    build, fetch, words = path.announce.build, path.fetch, path.crossing.sink
    path.comb += [
        fetch.sink.valid.eq(build.valid & build.fetch),
        path.build.sink.valid.eq(build.valid & ~build.fetch),
        build.connect(fetch.sink, omit={"valid", "ready"}),
        build.connect(path.build.sink, omit={"valid", "ready", "fetch", "snap"}),
        build.ready.eq(Mux(build.fetch, fetch.sink.ready, path.build.sink.ready)),
        If(build.fetch,
            fetch.source.connect(words),
        ).Else(
            path.build.source.connect(words),
        ),
    ]
