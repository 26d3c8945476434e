# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sets up, runs and ends a capture of a probe."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

from liteprobe.cores.formats import TICK_NS
from liteprobe.host.base.errors import NoProbeError, UsageError
from liteprobe.host.capture.receive import Receiver, buffer_remark, open_sockets
from liteprobe.host.capture.request import CaptureSettings, Transport
from liteprobe.host.capture.ring import CaptureRing
from liteprobe.host.capture.sources import BlockSource, BusSource, DmaSource, UdpSource
from liteprobe.host.capture.trigger import ProbeTrigger, TriggeredSource
from liteprobe.host.clock.clock import ClockWatch
from liteprobe.host.clock.timebase import Timebase, bound_words
from liteprobe.host.device.link.base import Link
from liteprobe.host.device.link.dma import DmaCapture
from liteprobe.host.device.link.etherbone import EtherboneLink
from liteprobe.host.device.link.pcie import DeviceFile, PcieLink
from liteprobe.host.device.registers import Registers
from liteprobe.host.measure.monitor import Monitor

OWN_WORDS = f"a stamp comes up to {TICK_NS} ns after its SFD"


class CaptureDevice(Protocol):
    """Names what a capture needs of a `Probe`, or of what stands for one."""

    url: str
    link: Link
    registers: Registers
    timebase: Timebase
    port_count: int

    def wait(self, seconds: float) -> None:
        """Let ``seconds`` of the probe's time pass."""


@dataclass(frozen=True)
class OpenTransport:
    """Holds a transport that is there, and ours."""

    kind: str  # One of TRANSPORTS.
    udp_port: int = 0  # 0: a free one.
    dma: DmaCapture | None = None  # The rings of transport ``dma``, not started.
    remark: str = ""  # Why it isn't the fastest one, where that is not a choice of the user's; else empty.


@dataclass(frozen=True)
class RunningCapture:
    """Holds a capture that runs."""

    source: BlockSource
    finish: Callable[[], dict[str, Any]]  # Ends it, and returns what the probe counted, by name.
    ports: int
    clock_s: Callable[[], float]  # Time that durations are of.
    remark: str = ""  # What makes it slower than it could be; else empty.


def clock_words(probe: CaptureDevice) -> str:
    """Return what must be known of the stamps."""
    return f"Clock of the probe: {probe.timebase.trust_words()}; {OWN_WORDS}"


def watched_words(watch: ClockWatch) -> str:
    """Return what must be known of the stamps of a capture that has ended: the clock over all of it."""
    verdict = watch.end()
    trust = f"{verdict.state}, {bound_words(verdict.bound_ns if verdict.is_whole else None)}"
    return "; ".join([f"Clock of the probe, at its worst: {trust}", OWN_WORDS, *verdict.notes])


def tai_utc_s(probe: CaptureDevice) -> int:
    """Return TAI - UTC as the probe knows it; UsageError when it doesn't."""
    known = probe.timebase.clock.status().tai_utc_s
    if not known:
        raise UsageError("the probe doesn't know TAI - UTC: give it, like --utc 37")
    return int(known)


def open_transport(
    probe: CaptureDevice, transport: Transport, channels: Sequence[int], stack: ExitStack
) -> OpenTransport:
    """Return how blocks of ``channels`` will come, before any setting is written; ``stack`` closes it.

    Rings that another program has are an error even where any transport would do: a capture over the bus would end its.
    Raises UsageError when the link, or the probe, has no such transport; NoProbeError when rings are asked for whose
    devices can't be opened; ProbeError when another program has the rings, or the driver was made for other gateware.
    """
    link = probe.link
    if transport.kind == "udp" and not isinstance(link, EtherboneLink):
        raise UsageError("blocks come by UDP over an Etherbone link only: leave out --via udp")
    if transport.kind == "dma" and not isinstance(link, PcieLink):
        raise UsageError(
            "blocks come by DMA from a probe in a PCIe slot only: leave out --via dma, or give --probe pcie:///dev/litepcie0"
        )
    if isinstance(link, EtherboneLink) and transport.kind != "bus":
        return OpenTransport("udp", transport.udp_port)
    if not isinstance(link, PcieLink) or transport.kind == "bus":
        return OpenTransport("bus")
    try:
        return OpenTransport("dma", dma=_open_rings(probe, link.name, channels, stack))
    except (UsageError, NoProbeError) as error:
        if transport.kind:
            raise
        return OpenTransport("bus", remark=f"blocks come over the bus, which is slow: {error}")


def _open_rings(probe: CaptureDevice, path: str, channels: Sequence[int], stack: ExitStack) -> DmaCapture:
    if missing := [n for n in channels if f"capture_dma_written{n}" not in probe.registers.names]:
        raise UsageError(
            f"this probe has no ring for {', '.join(f'channel {n}' for n in missing)} in the host's memory: "
            f"give others (--channels), or --via bus"
        )
    dma = DmaCapture(probe.registers, path, channels, DeviceFile)
    stack.callback(dma.close)
    return dma


def begin(
    probe: CaptureDevice,
    settings: CaptureSettings,
    transport: OpenTransport,
    stack: ExitStack,
    trigger: ProbeTrigger | None = None,
) -> RunningCapture:
    """Tell the probe what is wanted, and begin; ``stack`` undoes it.

    Raises UsageError when the probe is to wait for a trigger, and blocks come by DMA, whose pointers don't know what a
    trigger frees.
    """
    if trigger and transport.dma:
        raise UsageError("by DMA all frames come to this host: look for the trigger here (--host-trigger)")
    ring = CaptureRing(probe.registers)
    settings.write(probe.registers, range(probe.port_count))
    channels = [*settings.channels, *([trigger.channel] if trigger else [])]
    if transport.kind == "udp":
        running = _begin_udp(probe, ring, channels, transport.udp_port, stack, trigger)
    else:
        ring.start(channels, trigger=trigger.word if trigger else 0)
        stack.callback(ring.stop)
        if transport.dma:
            running = _begin_dma(probe, ring, channels, transport.dma)
        else:
            running = _begin_bus(probe, ring, channels, trigger)
    settings.begin(probe.registers, range(probe.port_count))
    return running


def _begin_bus(
    probe: CaptureDevice, ring: CaptureRing, channels: list[int], trigger: ProbeTrigger | None
) -> RunningCapture:
    source, overwritten = _waiting(
        probe, ring, channels, trigger, lambda first: BusSource(ring, channels, probe.wait, first)
    )
    return RunningCapture(
        source, lambda: _counted(probe, ring, channels) | overwritten(), probe.port_count, probe.link.now_s
    )


def _waiting(
    probe: CaptureDevice,
    ring: CaptureRing,
    channels: list[int],
    trigger: ProbeTrigger | None,
    open_source: Callable[[dict[int, int]], BlockSource],
) -> tuple[BlockSource, Callable[[], dict[str, Any]]]:
    """Return a source that waits for the trigger, if there is one; and what was overwritten till then."""
    if not trigger:
        return open_source({}), dict
    source = TriggeredSource(ring, channels, probe.wait, open_source)
    return source, lambda: {"overwritten": source.overwritten}


def _begin_dma(probe: CaptureDevice, ring: CaptureRing, channels: list[int], dma: DmaCapture) -> RunningCapture:
    source = DmaSource(ring, dma, probe.wait)
    dma.start()  # Behind the ring's start, or else what an earlier capture left would come first.
    return RunningCapture(
        source,
        lambda: _counted(probe, ring, channels) | {"stalls": source.stalls},
        probe.port_count,
        probe.link.now_s,
    )


def _begin_udp(
    probe: CaptureDevice,
    ring: CaptureRing,
    channels: list[int],
    port: int,
    stack: ExitStack,
    trigger: ProbeTrigger | None,
) -> RunningCapture:
    sockets = open_sockets(channels, port)
    remark = buffer_remark(sockets)
    receiver = Receiver(sockets, channels)
    stack.callback(receiver.close)
    ring.start(channels, trigger=trigger.word if trigger else 0)
    stack.callback(ring.stop)
    stack.callback(ring.send_to, receiver.port, [])
    opened: list[UdpSource] = []

    def open_source(first: dict[int, int]) -> UdpSource:
        ring.send_to(receiver.port, channels)
        opened.append(UdpSource(ring, receiver, channels, idle=probe.link.idle, first=first))
        return opened[-1]

    source, overwritten = _waiting(probe, ring, channels, trigger, open_source)

    def finish() -> dict[str, Any]:
        found = _counted(probe, ring, channels) | overwritten() | {"stalls": receiver.stalls}
        for udp in opened:
            order = udp.order
            found |= {"asked_again": order.asked, "never_came": order.never_came}
            found |= {"foreign": order.foreign, "came_again": order.repeated}
        return found

    return RunningCapture(source, finish, probe.port_count, probe.link.now_s, remark)


def _counted(probe: CaptureDevice, ring: CaptureRing, channels: list[int]) -> dict[str, Any]:
    """Return what the probe dropped for want of space, by channel, and what its ports saw and were to keep, since `begin`."""
    states = ring.states()
    events = [Monitor(probe, port).events() for port in range(probe.port_count)]
    return {
        "dropped_by_probe": {channel: states[channel].dropped for channel in channels},
        "ports": [{"received": seen["all_frames"], "accepted": seen["sampled"]} for seen in events],
    }
