# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Describes a capture: its settings of the probe, what is asked for, and what became of it.

Source: docs/design/monitor.md ("Sampling").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from liteprobe.cores.formats import CHANNELS
from liteprobe.host.analysis.columns import Column, Columns
from liteprobe.host.analysis.result import Result
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.validate import validated

if TYPE_CHECKING:
    from liteprobe.host.device.registers import Registers
    from liteprobe.host.packets.filter.expression import Expression

SNAP_MOST = 65535
PROBE_PORTS = (0, 1)
SHIFT_MOST = 4
HASH_SLOTS = 128  # Of the channel table.
DAMAGED_BIT = 2  # Of register ``keep``.
BY_HASH_BIT = 3  # Of register ``sample``.


class Keep(IntEnum):
    """Names what a record has of a frame."""

    PACKETS = 1
    HEADERS = 2
    BOTH = 3


@validated
@dataclass(frozen=True)
class Sampling:
    """Chooses which of the frames that pass are recorded."""

    shift: int = 0  # One of 2^shift.
    #: By the packet's hash, so that probes with one seed choose the same packets; else every 2^shift-th.
    by_hash: bool = False
    seed: int = 0  # Of the hash, 32 bits.

    @classmethod
    def of(cls, text: str) -> Sampling:
        """Return what ``16``, ``hash:16`` or ``hash:16:7`` mean; UsageError when it is none of these."""
        words = text.split(":")
        by_hash = words[0] == "hash"
        numbers = words[1:] if by_hash else words
        try:
            one_of, seed = int(numbers[0], 0), int(numbers[1], 0) if by_hash and len(numbers) == 2 else 0
            is_right = one_of in (1 << shift for shift in range(SHIFT_MOST + 1)) and 0 <= seed < 1 << 32
        except (ValueError, IndexError):
            is_right = False
        if not is_right or len(numbers) > 1 + by_hash:
            raise UsageError(
                f"'{text}' is not a sampling: give 1, 2, 4, 8 or 16 (every so manieth frame), or hash:16 or hash:16:SEED"
            )
        return cls(one_of.bit_length() - 1, by_hash, seed)


@validated
@dataclass(frozen=True)
class CaptureSettings:
    """Sets the probe up for a capture; UsageError when no probe could do it."""

    channels: tuple[int, ...] = (0,)  # Which channels frames go to, by flow hash.
    snap_length: int = SNAP_MOST  # Octets that a record has of a frame at the most.
    keep: Keep | None = None  # What a record has of a frame; None: packets, or what the files of a request take.
    sampling: Sampling = Sampling()
    with_damaged: bool = False  # Record damaged frames too.

    def __post_init__(self) -> None:
        if not self.channels or not all(0 <= channel < CHANNELS for channel in self.channels):
            raise UsageError(f"channels are 0 to {CHANNELS - 1}: give one or more of them, like 0,1,2,3")
        if len(set(self.channels)) != len(self.channels):
            raise UsageError("a channel is named twice: give each once")
        if not 0 <= self.snap_length <= SNAP_MOST:
            raise UsageError(f"snap length {self.snap_length} is out of range: give 0 to {SNAP_MOST}")

    def table(self) -> list[int]:
        """Return the channel of each of the 128 values of ``hash & 127``: evenly spread."""
        return [self.channels[slot % len(self.channels)] for slot in range(HASH_SLOTS)]

    def write(self, registers: Registers, ports: Iterable[int]) -> None:
        """Tell the probe, for some of its ports, which keep nothing before `begin`.

        Raises UsageError when these settings need the flow hash, and the probe was built without; nothing is written
        then.
        """
        has_hash = registers.has_flow_hash
        if not has_hash:
            self._check_without_hash()
        for port in ports:
            prefix = f"port{port}_monitor_"
            sample = self.sampling.shift | self.sampling.by_hash << BY_HASH_BIT
            seed = {prefix + "sample_seed": self.sampling.seed} if has_hash else {}
            values = {prefix + "keep": 0, prefix + "snap_length": self.snap_length, prefix + "sample": sample}
            registers.write_many(values | seed)
            for slot, channel in enumerate(self.table() if has_hash else ()):
                registers.write(prefix + "channel_table", slot << 8 | channel)

    def begin(self, registers: Registers, ports: Iterable[int]) -> None:
        """Have ports keep frames from now on, and count them; the ring is running, so that none of them is missing there."""
        for port in ports:
            prefix = f"port{port}_monitor_"
            registers.write(prefix + "clear", 1)
            registers.write_many({prefix + "keep": (self.keep or Keep.PACKETS) | self.with_damaged << DAMAGED_BIT})

    def _check_without_hash(self) -> None:
        fix = "or build and load a probe with --hash, where its board has room"
        if self.sampling.by_hash:
            raise UsageError(f"this probe has no flow hash, so it samples by count alone: give --sample 8, {fix}")
        if self.channels != (0,):
            raise UsageError(f"this probe has no flow hash, so all frames go to channel 0: leave --channels out, {fix}")


BEFORE_NS = 10_000_000
PCAP = ".pcap"  # A file that ends so is written as pcap; others are pcapng.
#: Counts of a result that aren't 0 where something is missing that was on the wire, or was damaged on its way here.
LOSSES = ("gap_frames", "never_came", "missing", "cut", "damaged", "broken", "late", "before_given_up")


@validated
@dataclass(frozen=True)
class Transport:
    """Names how blocks come here: one of TRANSPORTS or None (the fastest that the link can), and the UDP port (0: a free one)."""

    kind: str | None = None
    udp_port: int = 0


@validated
@dataclass(frozen=True)
class CaptureRequest:
    """Asks for a capture: what of the frames, and into which files.

    Raises
    ------
    UsageError
        When nothing could do it.
    """

    #: Frames as pcapng, or as pcap where it ends in ``.pcap``; of the files at least one, ``-``: stdout.
    write: str | Path | None = None
    headers: str | Path | None = None  # Unified headers as Parquet.
    blocks: str | Path | None = None  # Blocks as they come.
    settings: CaptureSettings = CaptureSettings()  # Channels, lengths, sampling, what is recorded.
    ports: tuple[int, ...] | None = None  # Of the probe: keep what came to these alone; None: to any.
    #: An expression in tcpdump's syntax. The probe filters, or this host a recording, by headers; with ``host_filter``
    #: it is libpcap that filters whole frames on this host, and takes all that it knows.
    filter: str | None = None
    host_filter: bool = False
    #: Keep nothing until a frame matches this expression; then ``before_ns`` before it (default: 10 ms) and
    #: ``after_ns`` after it (None: all that follows), by stamps.
    trigger: str | None = None
    before_ns: int | None = None
    after_ns: int | None = None
    host_trigger: bool = False  # Look for the trigger on this host, not in the probe.
    count: int | None = None  # Frames after which the capture ends.
    duration_s: float | None = None  # Of the probe's time, after which it ends.
    #: Write stamps in UTC, so many seconds behind TAI; "probe": as the probe knows it. None: the probe's time as it is.
    tai_utc_s: int | Literal["probe"] | None = None
    transport: Transport = Transport()
    lines: str | Path | None = None  # A line of text for each frame.
    is_for_sinks: bool = False  # A companion of the capture takes the records, so that no file need be written.

    def __post_init__(self) -> None:
        if self.trigger is None and not (self.before_ns is None and self.after_ns is None and not self.host_trigger):
            raise UsageError("--before, --after and --host-trigger need a --trigger EXPR")
        if self.count is not None and self.count < 1:
            raise UsageError(f"count {self.count} is out of range: give 1 or more")
        if self.ports is not None and not (self.ports and set(self.ports) <= set(PROBE_PORTS)):
            raise UsageError("ports of a probe are 0 and 1: give one of them, like --port 1, or leave it out for both")
        keep = self.wanted.keep
        if self.write and keep == Keep.HEADERS:
            raise UsageError("pcapng needs packets: give --keep both, or --headers FILE.parquet in the place of -w")
        if self.headers and keep == Keep.PACKETS:
            raise UsageError("--headers needs headers: give --keep both")
        if self.trigger and keep == Keep.PACKETS:
            raise UsageError("a trigger looks at headers: give --keep both")
        if self.host_filter and not self.filter:
            raise UsageError("--host-filter needs a --filter EXPR")
        if self.host_filter and keep == Keep.HEADERS:
            raise UsageError("--host-filter looks at the octets of frames: give --keep both")
        if self.passing and not self.host_filter:
            self.passing.check_headers()
        if self.firing:
            self.firing.check_headers()
        if self.lines and keep == Keep.PACKETS:
            raise UsageError("lines need headers: give --keep both, or -w FILE.pcapng")
        if self.write and _ending_is_wrong(Path(self.write)):
            raise UsageError(
                f"{self.write} says by its ending neither pcapng nor pcap: give FILE.pcapng, FILE.pcap (frames and nanoseconds "
                "alone), or - for stdout, to be packed as in -w - | gzip > FILE.pcapng.gz"
            )
        if not (self.write or self.headers or self.blocks or self.lines or self.is_for_sinks):
            raise UsageError("nothing would be written: give -w FILE.pcapng, --headers FILE.parquet or --blocks FILE")

    @cached_property
    def passing(self) -> Expression | None:
        """The filter, parsed; None: every frame passes."""
        return _parsed(self.filter, self.host_filter)

    @cached_property
    def firing(self) -> Expression | None:
        """The trigger, parsed."""
        return _parsed(self.trigger)

    @property
    def probe_ports(self) -> int:
        """Bit n: frames of port n are wanted."""
        return sum(1 << port for port in set(PROBE_PORTS if self.ports is None else self.ports))

    @classmethod
    def of(cls, wanted: CaptureRequest | str | Path | None) -> CaptureRequest | None:
        """Return a request as it is, that of a pcapng by its path, or None."""
        return cls(write=wanted) if isinstance(wanted, str | Path) else wanted

    @property
    def wanted(self) -> CaptureSettings:
        """The settings; where nobody chose what to keep, with what the files, a filter on this host and a trigger take."""
        if self.settings.keep is not None:
            return self.settings
        needs_headers = bool(self.headers or self.trigger or self.lines)
        needs_packets = bool(self.write or self.host_filter or not needs_headers)
        return replace(self.settings, keep=Keep((Keep.PACKETS * needs_packets) | (Keep.HEADERS * needs_headers)))


def _ending_is_wrong(path: Path) -> bool:
    """Return whether a file's name says something else than it would have; pipes and devices have any name."""
    is_file = path.is_file() or not path.exists()
    return is_file and str(path) != "-" and path.suffix.lower() not in (PCAP, ".pcapng")


def _parsed(text: str | None, by_libpcap: bool = False) -> Expression | None:
    if not text:
        return None
    from liteprobe.host.packets.filter.expression import parse  # Takes a while to load.

    return parse(text, by_libpcap)


@dataclass(frozen=True, repr=False)
class CaptureResult(Result):
    """Says what became of a capture: all of `Result`, as far as a capture knows it (nothing of delays, or of what was sent).

    >>> CaptureResult({"frames": 3, "octets": 192, "dropped": {"0": 0}}).received
    3
    """

    counts: dict[str, Any]  # All counts, by name, as ``liteprobe capture --json`` writes them.
    signal: int = 0  # The signal that ended it; 0: none did.
    #: Parquet files, more than one where a file would have more than 2^31 rows.
    header_files: list[Path] = field(default_factory=list)
    failed: tuple[str, ...] = ()  # What ended files before the capture had, a line each.

    COLUMNS: ClassVar[Columns] = Columns(
        Column("received", "", "Frames", of=lambda one: one.frames),
        Column("lost", "", "Lost", of=lambda one: one.frames_lost),
        Column("octets", "", "Octets", of=lambda one: one.octets),
    )

    @property
    def parts(self) -> dict[str, CaptureResult]:
        """The capture itself."""
        return {"capture": self}

    def to_dict(self) -> dict[str, Any]:
        """Return all counts as plain data, as ``liteprobe capture --json`` has them."""
        return {**self.counts, "is_complete": self.is_complete}

    @property
    def frames_lost(self) -> int | None:
        """Frames that were to be kept and are not in the files; None: a part is lost of which it isn't known what was in it."""
        if self.failed or any(self.counts.get(name) for name in LOSSES if name != "gap_frames"):
            return None
        return max(sum(self._dropped.values()), int(self.counts.get("gap_frames", 0)))

    @property
    def _dropped(self) -> Mapping[str, int]:
        found: Mapping[str, int] = self.counts.get("dropped_by_probe", self.counts["dropped"])
        return found

    @property
    def frames(self) -> int:
        """Frames that were written."""
        return int(self.counts["frames"])

    @property
    def octets(self) -> int:
        """Their octets on the wire, without FCS."""
        return int(self.counts["octets"])

    @property
    def is_complete(self) -> bool:
        """Whether every frame that was to be kept was written."""
        return not (self.failed or any(self.counts.get(name) for name in LOSSES) or any(self._dropped.values()))
