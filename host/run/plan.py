# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What is to be sent: which port sends and measures which streams, checked before anything is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from liteprobe.cores.formats import OVERHEAD, TICK_NS, Part
from liteprobe.host.errors import UsageError
from liteprobe.host.run.meters import StreamMeters
from liteprobe.host.run.port import Port
from liteprobe.host.run.routes import Devices, check_ports
from liteprobe.host.run.streams_port import StreamsPort
from liteprobe.host.traffic.layout import PortWords, port_words
from liteprobe.host.traffic.load import end_ticks, share_of
from liteprobe.host.traffic.stream import Stream

IN_BAND_PORT = 0
ROOM_NS = 10_000  # Of free line for each frame: twice what an answer of management needs.


@dataclass(frozen=True)
class SendOptions:
    """How streams are sent and measured.

    Attributes
    ----------
    receive : int, mapping of int to int, or None
        Port that measures: all streams, or those that each port sends; None: the one that the wire leads to.
    seconds : float or None
        Of the probe's time, after which they are stopped; None: when they have sent all their frames.
    is_detached : bool
        They go on when this host lets go of the probe, or is gone.
    latency_range_ns : (int, int) or None
        Between what delays the histograms are; None: they follow the delays that come.
    """

    receive: int | Mapping[int, int] | None = None
    seconds: float | None = None
    is_detached: bool = False
    latency_range_ns: tuple[int, int] | None = None


@dataclass(frozen=True)
class Sender:
    """A port that sends streams.

    Attributes
    ----------
    port : Port
    transmit : StreamsPort
        Its transmit side.
    streams : tuple of Stream
        By their numbers at the port.
    words : PortWords
        What its memories hold.
    receive : int
        Port that measures them.
    """

    port: Port
    transmit: StreamsPort
    streams: tuple[Stream, ...]
    words: PortWords
    receive: int


@dataclass(frozen=True)
class Plan:
    """Streams on their way from ports to ports of a probe.

    Attributes
    ----------
    streams : tuple of Stream
        In the order in which they were given.
    senders : tuple of Sender
        By port.
    meters : dict of int to StreamMeters
        By port.
    is_quiet : bool
        The host won't hear of the probe until the streams end: they leave too little of the line that it shares.
    """

    streams: tuple[Stream, ...]
    senders: tuple[Sender, ...]
    meters: dict[int, StreamMeters]
    is_quiet: bool

    @property
    def ports(self) -> list[Port]:
        """All ports that send."""
        return [sender.port for sender in self.senders]

    def find(self, name: str) -> tuple[Sender, int]:
        """Return the sender of a stream and its number there.

        Raises
        ------
        UsageError
            When there is no such stream.
        """
        for sender in self.senders:
            for number, stream in enumerate(sender.streams):
                if stream.name == name:
                    return sender, number
        names = ", ".join(f"'{stream.name}'" for stream in self.streams)
        raise UsageError(f"there is no stream '{name}': give one of {names}")

    def duration_ns(self, seconds: float | None) -> Fraction | None:
        """Return when the last stream ends (ns from the start), or is stopped; None: never."""
        ends = [end for stream in self.streams if (end := end_ticks(stream)) is not None]
        asked = None if seconds is None else Fraction(seconds) * 10**9
        if len(ends) < len(self.streams):
            return asked
        last = TICK_NS * max(ends)
        return last if asked is None else min(last, asked)


def plan(probe: Devices, streams: Sequence[Stream], options: SendOptions) -> Plan:
    """Return what is to be sent.

    Raises
    ------
    UsageError
        When the probe can't send or measure these streams, or they add up to more than the line of a port.
    """
    probe.need(Part.STREAMS)
    _check(streams, options)
    numbers = sorted({stream.port for stream in streams})
    check_ports([(probe, number) for number in numbers], "transmit", False)
    receivers = _receivers(probe, numbers, options)
    increment = probe.timebase.increment
    senders = []
    for number in numbers:
        own = tuple(stream for stream in streams if stream.port == number)
        port = probe.ports[number]
        assert isinstance(port.transmit, StreamsPort)
        senders.append(Sender(port, port.transmit, own, port_words(own, increment), receivers[number]))
    meters = {}
    for number in sorted(set(receivers.values())):
        coming = [stream for sender in senders if sender.receive == number for stream in sender.streams]
        meters[number] = StreamMeters(probe.registers, number, coming, options.latency_range_ns)
    is_quiet = _is_quiet(probe, senders)
    found = Plan(tuple(streams), tuple(senders), meters, is_quiet)
    if is_quiet and (options.seconds is not None or found.duration_ns(None) is None):
        raise UsageError(
            f"these streams leave no room for answers on port {IN_BAND_PORT}, whose line the host shares, so nobody could stop "
            f"them: give each a count and no seconds, or a lower rate"
        )
    return found


# # #


def _check(streams: Sequence[Stream], options: SendOptions) -> None:
    seconds, names = options.seconds, [stream.name for stream in streams]
    if not streams:
        raise UsageError("there is no stream to send: give one or more")
    if seconds is not None and not 0 < seconds < float("inf"):
        raise UsageError(f"{seconds:g} seconds are out of range: give more than 0")
    if seconds is not None and options.is_detached:
        raise UsageError("nobody would be there to stop detached streams: give each a count, or stop them later")
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{names.count(name)} streams have the name '{name}': give each a name of its own")


def _receivers(probe: Devices, numbers: Sequence[int], options: SendOptions) -> dict[int, int]:
    """Return which port measures what each port sends."""
    count = len(probe.ports)
    if isinstance(options.receive, int):
        found = dict.fromkeys(numbers, options.receive)
    else:
        given = options.receive or {}
        found = {number: given.get(number, probe.link.receive_port(number, count)) for number in numbers}
    check_ports([(probe, port) for port in set(found.values())], "receive", False)
    return found


def is_shared(probe: Devices) -> bool:
    """Return whether the probe's answers to this host leave by port ``IN_BAND_PORT``, between the frames that it sends."""
    name = f"port{IN_BAND_PORT}_tx_management_sent"
    return probe.link.is_in_band and probe.registers.read(name) != probe.registers.read(name)


def _is_quiet(probe: Devices, senders: Sequence[Sender]) -> bool:
    """Return whether answers come through a port that has no room for them."""
    found = [sender.streams for sender in senders if sender.port.number == IN_BAND_PORT]
    if not found or not is_shared(probe):
        return False
    frames_per_ns = sum(share_of(one) / (TICK_NS * (one.length.mean + OVERHEAD)) for one in found[0])
    free = 1 - sum(share_of(one) for one in found[0])
    return free < ROOM_NS * frames_per_ns
