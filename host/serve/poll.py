# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""One look at a probe of preset ``monitor``: what all ports measure, how full the ring is, what was lost and why."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from liteprobe.cores.formats import CHANNELS, BinKind
from liteprobe.host.capture.ring import CHANNEL_MEMORY, CaptureRing, ChannelState
from liteprobe.host.measure.delay_bins import ENOUGH, better
from liteprobe.host.measure.monitor import NAMES, BinSetting, Histogram, Monitor, PortMeasurement, latch_all
from liteprobe.host.probe import Probe
from liteprobe.host.serve.totals import Totals

#: Events that count every frame of a port, and its octets.
ALL = ("all_frames", "all_octets")
#: Events of a port that are not a loss; all others are.
PLAIN = (
    *ALL,
    "management_frames",
    "classified",
    "matched",
    "passed",
    "sampled",
    "kept",
    "own_frames",
)
FITTING = 3  # Looks in a row at which bins fit, until they are taken for chosen: a look may be of a burst alone.
CHANGES = 12  # Of the bins of a kind at the most, until they are taken for chosen.


@dataclass(frozen=True)
class Look:
    """What a probe showed at one time.

    Attributes
    ----------
    url, clock_state : str
    uncertainty_ns : float or None
        95 % bound of the error of the probe's clock; None: not known, as of a clock that nobody disciplines.
    now_ns : int
        The probe's time.
    ports : list of PortMeasurement
    events : list of dict of str to int
        Of each port: what was seen, refused and lost, by cause.
    channels : dict of int to ChannelState
        That a capture uses.
    is_choosing : bool
        Bins are being chosen (`Poller.follow`): those of some port may have changed right after this look.
    """

    url: str
    clock_state: str
    uncertainty_ns: float | None
    now_ns: int
    ports: list[PortMeasurement]
    events: list[dict[str, int]]
    channels: dict[int, ChannelState] = field(default_factory=dict)
    is_choosing: bool = False


class Poller:
    """Looks at a probe again and again.

    Parameters
    ----------
    probe : Probe
    ports : sequence of int or None
        Which; None: all.

    Raises
    ------
    UsageError
        When the probe has no such port, or no meters.
    """

    def __init__(self, probe: Probe, ports: Sequence[int] | None = None) -> None:
        self._probe = probe
        numbers = range(probe.port_count) if ports is None else ports
        self._monitors = [Monitor(probe, number) for number in numbers]
        self._totals = Totals()
        self._following: dict[tuple[int, BinKind], tuple[int, int]] = {}  # Changes, and fitting looks, that are left.
        self._ring = CaptureRing(probe.registers) if CHANNEL_MEMORY in probe.registers.memory_names else None

    def set(
        self, stream_base: int | None, bins: Mapping[BinKind, BinSetting], rate_interval_ns: int | None = None
    ) -> None:
        """Say what is measured; nothing where nothing is given.

        Parameters
        ----------
        stream_base : int or None
            First of the streams of each port.
        bins : dict of BinKind to BinSetting
            How values are sorted.
        rate_interval_ns : int or None
            What rates are counted over, of the probe's time (ns).

        Raises
        ------
        UsageError
            When the probe can't.
        """
        for monitor in self._monitors:
            if stream_base is not None:
                monitor.watch(stream_base)
            if bins:
                monitor.set_bins(bins)
        if rate_interval_ns is not None and self._monitors:
            self._monitors[0].set_rate_interval(rate_interval_ns)

    def follow(self, kinds: Iterable[BinKind] = tuple(BinKind)) -> None:
        """Choose bins anew, at each look, until they show what comes; each change clears streams and histograms of a port."""
        chosen = tuple(kinds)
        self._following = {(monitor.port, kind): (CHANGES, FITTING) for monitor in self._monitors for kind in chosen}

    def _choose(self, monitor: Monitor, seen: PortMeasurement) -> bool:
        """Change the bins of a port, where others would show better what it has seen; return whether that goes on."""
        changed, goes_on = {}, False
        for kind, found in seen.histograms[0].items() if seen.histograms else ():
            changes, looks = self._following.get((monitor.port, kind), (0, 0))
            if not changes or not looks or not found.total:
                continue
            goes_on = True
            if found.total < ENOUGH:
                continue
            if setting := better(found, seen):
                changed[kind] = setting
            self._following[monitor.port, kind] = (changes - 1, FITTING) if setting else (changes, looks - 1)
        if changed:
            monitor.set_bins(changed)
        return goes_on

    def look(self) -> Look:
        """Return how it is now: all counts of all ports latched by one batch of writes, a microsecond or so apart."""
        probe = self._probe
        latch_all(probe.registers, [name for monitor in self._monitors for name in monitor.latches])
        ports = [monitor.read(is_latched=True) for monitor in self._monitors]
        events = [monitor.events(is_latched=True) for monitor in self._monitors]
        states = self._ring.states() if self._ring else []
        clock_state, uncertainty_ns = probe.timebase.trust()
        choosing = [self._choose(monitor, seen) for monitor, seen in zip(self._monitors, ports, strict=True)]
        return Look(
            probe.url,
            clock_state,
            uncertainty_ns,
            probe.timebase.now_ns,
            [self._totals.of_port(port) for port in ports],
            events,
            {
                number: self._totals.of_channel(number, states[number])
                for number in range(CHANNELS)
                if states and states[number].taken
            },
            any(choosing),
        )


def totals(port: PortMeasurement, events: Mapping[str, int]) -> tuple[int, int]:
    """Return all frames that came to a port, and their octets, since its counters were cleared.

    They are those of the events. Meters, which ``--streams`` and ``--bins`` clear by themselves, count less.
    """
    frames, octets = port.counters["frames"], port.counters["octets"]
    return events.get(ALL[0], frames), events.get(ALL[1], octets)


def losses(events: Mapping[str, int]) -> dict[str, int]:
    """Return the events that say of frames that they were refused, damaged or lost."""
    return {name: count for name, count in events.items() if name not in PLAIN}


def document(look: Look) -> dict[str, Any]:
    """Return a look as what JSON can hold; NaN becomes null."""
    ports = []
    for port, events in zip(look.ports, look.events, strict=True):
        streams = [
            asdict(stream)
            | {
                "delay_mean_ns": number(stream.delay_mean_ns),
                "delay_std_ns": number(stream.delay_std_ns),
                "loss_ratio": number(stream.loss_ratio),
            }
            for stream in port.streams
        ]
        rate = port.rate and {
            **asdict(port.rate),
            "frames_per_s": number(port.rate.frames_per_s),
            "bits_per_s": number(port.rate.bits_per_s),
            "line_bits_per_s": number(port.rate.line_bits_per_s),
        }
        histograms = [{NAMES[kind]: histogram(found) for kind, found in slot.items()} for slot in port.histograms]
        ports.append(
            {"port": port.port, "counters": port.counters, "events": events, "rate": rate, "streams": streams}
            | {"histograms": histograms, "is_saturated": port.is_saturated}
        )
    channels = {str(channel): asdict(state) for channel, state in look.channels.items()}
    clock = {"state": look.clock_state, "uncertainty_ns": look.uncertainty_ns, "now_ns": look.now_ns}
    return {"url": look.url, "clock": clock, "ports": ports, "channels": channels}


def histogram(found: Histogram) -> dict[str, Any]:
    """Return a histogram as what JSON can hold."""
    setting = found.setting
    counts = {"below": found.below, "counts": found.counts.tolist(), "above": found.above}
    return {"origin": setting.origin, "width": 1 << setting.shift, "unit": found.unit} | counts


def number(value: float) -> float | None:
    """Return a number that JSON can hold: None for NaN and infinity."""
    return value if math.isfinite(value) else None
