# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What a replay and a run of configuration sets have in common: ports that send what this host streams to them."""

from collections.abc import Iterable
from typing import Protocol

from liteprobe.cores.formats import TransmitState
from liteprobe.host.errors import ProbeError
from liteprobe.host.replay.streamer import Streamer
from liteprobe.host.run.port import Port
from liteprobe.host.run.replay_figures import Sent


class StreamedJob(Protocol):
    """A port that sends, and how far it is."""

    port: Port
    state: TransmitState
    frames: int
    sent: Sent


def look_at(jobs: Iterable[StreamedJob], streamer: Streamer, words: tuple[str, str, str]) -> None:
    """Keep in each job how far its port and its stream are.

    Parameters
    ----------
    jobs : StreamedJob
    streamer : Streamer
    words : tuple of str
        For the error: what the port did, what its frames had done, and what to do again.

    Raises
    ------
    ProbeError
        When a link went down while its port sent.
    """
    did, had, again = words
    for job in jobs:
        number = job.port.number
        job.state, job.frames, is_up = job.port.transmit.look()
        state = streamer.state(number)
        job.sent = Sent(state.datagrams, state.resent, state.starved, state.accepted, state.is_done)
        if not is_up and job.state != TransmitState.IDLE:
            raise ProbeError(
                f"the link of port {number} went down while it {did} ({job.frames} frames had {had}): plug in its cable, and "
                f"{again} again"
            )
