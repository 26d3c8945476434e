# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A probe that replays, for tests of the host: the model of its registers, and its datagrams on a real socket."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np

from liteprobe.sim.bench.replay.fake_receiver import FakeReceiver, Ring
from liteprobe.sim.bench.system.fake_link import FakeLink
from liteprobe.sim.models.probe.replay import ReplayModel


Model = TypeVar("Model", bound=ReplayModel)


class ReplayLink(FakeLink):
    """A link to a model, beside a socket that takes datagrams.

    Parameters
    ----------
    receiver : FakeReceiver or None
        None: this way has none.
    """

    def __init__(self, model: ReplayModel, folder: Path, receiver: FakeReceiver | None) -> None:
        super().__init__(model, folder)
        self._receiver = receiver

    def replay_address(self) -> tuple[str, int] | None:
        """Return where the socket is."""
        return ("127.0.0.1", self._receiver.port) if self._receiver else None


@contextmanager
def fake_probe(
    folder: Path, kind: type[Model] = ReplayModel  # type: ignore[assignment]
) -> Iterator[tuple[Model, ReplayLink, FakeReceiver]]:
    """Give a model of some kind, the link to it and the socket; the map is written to a folder."""
    rings: dict[int, Ring] = {}

    def words(port: int) -> list[int]:
        octets = bytes(rings[port].octets) if port in rings else b""
        return [int(word) for word in np.frombuffer(octets[: len(octets) // 4 * 4], "<u4")]

    def open_ring(port: int, session: int, lease: int) -> None:
        rings[port] = Ring(session, lease)

    with FakeReceiver(rings) as receiver:
        model = kind(words, open_ring)
        yield model, ReplayLink(model, folder, receiver), receiver
