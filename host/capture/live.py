# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A capture of a probe: told what is wanted, begun, and ended."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.capture.receive import Receiver, open_sockets
from liteprobe.host.capture.ring import CaptureRing
from liteprobe.host.capture.settings import CaptureSettings
from liteprobe.host.capture.sources import BusSource, UdpSource
from liteprobe.host.capture.stream import Blocks
from liteprobe.host.errors import UsageError
from liteprobe.host.link.etherbone import EtherboneLink
from liteprobe.host.monitor import Monitor
from liteprobe.host.probe import Probe

WAYS = ("udp", "bus")


class Source(Protocol):
    """Where blocks come from."""

    def batches(self) -> Iterator[tuple[Blocks, NDArray[np.uint32] | None]]:
        """Yield blocks, and their lengths (octets) where they may be cut; nothing now and then."""

    def stop(self) -> None:
        """Have the capture end; `batches` goes on until all has come."""


@dataclass(frozen=True)
class Way:
    """How blocks come here: ``udp``, ``bus`` or None (what the link can), and to which UDP port (0: a free one)."""

    kind: str | None = None
    udp_port: int = 0


@dataclass(frozen=True)
class Begun:
    """A capture that runs.

    Parameters
    ----------
    source : Source
    finish : callable
        Ends it, and returns what the probe counted, by name.
    ports : int
    clock_s : callable
        Time that durations are of.
    """

    source: Source
    finish: Callable[[], dict[str, Any]]
    ports: int
    clock_s: Callable[[], float]


def open_probe(url: str, register_map: Path | None) -> Probe:
    """Return a probe that can capture.

    Raises
    ------
    UsageError
        When it is built for trains.
    """
    probe = Probe(url, register_map)
    try:
        CaptureRing(probe.registers)
    except BaseException:
        probe.close()
        raise
    return probe


def clock_words(probe: Probe) -> str:
    """Return what must be known of the stamps."""
    bound_ns = probe.timebase.uncertainty_ns()
    return f"Clock of the probe: {probe.timebase.clock_state}, within {bound_ns:.1f} ns"


def tai_utc_s(probe: Probe) -> int:
    """Return TAI - UTC as the probe knows it.

    Raises
    ------
    UsageError
        When it doesn't.
    """
    known = probe.timebase.clock.status().tai_utc_s
    if not known:
        raise UsageError("the probe doesn't know TAI - UTC: give it, like --utc 37")
    return int(known)


def begin(probe: Probe, settings: CaptureSettings, way: Way, stack: ExitStack) -> Begun:
    """Tell the probe what is wanted, and begin; ``stack`` undoes it.

    Raises
    ------
    UsageError
        When the link has no such way.
    """
    is_etherbone = isinstance(probe.link, EtherboneLink)
    kind = way.kind or ("udp" if is_etherbone else "bus")
    if kind == "udp" and not is_etherbone:
        raise UsageError("blocks come by UDP over an Etherbone link only: leave out --via udp")
    ring = CaptureRing(probe.registers)
    settings.write(probe.registers, probe.port_count)
    channels = list(settings.channels)
    if kind == "bus":
        ring.start(channels)
        stack.callback(ring.stop)
        source: Source = BusSource(ring, channels, probe.wait)
        return Begun(source, lambda: _counted(probe, ring, channels), probe.port_count, probe.link.now_s)
    receiver = Receiver(open_sockets(channels, way.udp_port), channels)
    stack.callback(receiver.close)
    ring.start(channels)
    stack.callback(ring.stop)
    ring.send_to(receiver.port, channels)
    stack.callback(ring.send_to, receiver.port, [])
    udp = UdpSource(ring, receiver, channels, idle=probe.link.idle)

    def finish() -> dict[str, Any]:
        order = udp.order
        network = {"asked_again": order.asked, "never_came": order.never_came, "stalls": receiver.stalls}
        return _counted(probe, ring, channels) | {"foreign": order.foreign, "came_again": order.repeated} | network

    return Begun(udp, finish, probe.port_count, probe.link.now_s)


def _counted(probe: Probe, ring: CaptureRing, channels: list[int]) -> dict[str, Any]:
    """Return what the probe dropped for want of room, by channel, what its ports saw, and how its clock ended."""
    states = ring.states()
    events = [Monitor(probe, port).events() for port in range(probe.port_count)]
    return {
        "dropped_by_probe": {channel: states[channel].dropped for channel in channels},
        "ports": [{"received": seen["all_frames"], "accepted": seen["passed"]} for seen in events],
        "clock": clock_words(probe),
    }
