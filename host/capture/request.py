# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What a capture is asked for, and what became of it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from liteprobe.host.capture.settings import CaptureSettings, Keep
from liteprobe.host.errors import UsageError

BEFORE_NS = 10_000_000
#: Counts of a result that aren't 0 where something is missing that was on the wire, or was damaged on its way here.
LOSSES = ("gap_frames", "never_came", "missing", "cut", "damaged", "broken", "late", "before_given_up")


@dataclass(frozen=True)
class Transport:
    """How blocks come here: one of TRANSPORTS or None (the fastest that the link can), and to which UDP port (0: a free one)."""

    kind: str | None = None
    udp_port: int = 0


@dataclass(frozen=True)
class CaptureRequest:
    """What to capture, and where to.

    Parameters
    ----------
    write, headers, blocks : path or None
        Frames as pcapng, unified headers as Parquet, blocks as they come; ``-``: stdout. At least one.
    settings : CaptureSettings or None
        Channels, lengths, sampling, what is kept; None: what the files take.
    filter : str or None
        An expression in tcpdump's syntax. The probe filters, or this host a recording, by headers; with ``host_filter`` it
        is libpcap that filters whole frames on this host, and takes all that it knows.
    trigger : str or None
        Keep nothing until a frame matches this expression; then ``before_ns`` before it (default: 10 ms) and ``after_ns``
        behind it (None: all that follows), by stamps.
    host_trigger : bool
        Look for the trigger on this host, not in the probe.
    count : int or None
        Frames after which the capture ends.
    duration_s : float or None
        Of the probe's time, after which it ends.
    tai_utc_s : int, "probe" or None
        Write stamps in UTC, so many seconds behind TAI; "probe": as the probe knows it. None: the probe's time as it is.
    transport : Transport

    Raises
    ------
    UsageError
        When nothing could do it.
    """

    write: str | Path | None = None
    headers: str | Path | None = None
    blocks: str | Path | None = None
    settings: CaptureSettings | None = None
    filter: str | None = None
    host_filter: bool = False
    trigger: str | None = None
    before_ns: int | None = None
    after_ns: int | None = None
    host_trigger: bool = False
    count: int | None = None
    duration_s: float | None = None
    tai_utc_s: int | Literal["probe"] | None = None
    transport: Transport = Transport()

    def __post_init__(self) -> None:
        if not (self.write or self.headers or self.blocks):
            raise UsageError("nothing would be written: give -w FILE.pcapng, --headers FILE.parquet or --blocks FILE")
        if self.trigger is None and not (self.before_ns is None and self.after_ns is None and not self.host_trigger):
            raise UsageError("--before, --after and --host-trigger need a --trigger EXPR")
        if self.count is not None and self.count < 1:
            raise UsageError(f"count {self.count} is out of range: give 1 or more")
        keep = self.settings.keep if self.settings else self.keep
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
        if self.filter or self.trigger:
            from liteprobe.host.capture.expression import header_filter, host_filter  # Takes a while to load.

            host_filter(self.filter, self.host_filter)
            header_filter(self.trigger or "")

    @classmethod
    def of(cls, wanted: "CaptureRequest | str | Path | None") -> "CaptureRequest | None":
        """Return a request as it is, that of a pcapng by its path, or None."""
        return cls(write=wanted) if isinstance(wanted, str | Path) else wanted

    @property
    def keep(self) -> Keep:
        """What the files, a filter on this host and a trigger take."""
        needs_headers = bool(self.headers or self.trigger)
        needs_packets = bool(self.write or self.host_filter or not needs_headers)
        return Keep((Keep.PACKETS * needs_packets) | (Keep.HEADERS * needs_headers))

    @property
    def wanted(self) -> CaptureSettings:
        """The settings, those that nobody chose included."""
        return self.settings or CaptureSettings(keep=self.keep)


@dataclass(frozen=True)
class CaptureResult:
    """What became of a capture.

    Attributes
    ----------
    counts : dict of str to int, or to more of them
        All counts, by name, as ``liteprobe capture --json`` writes them.
    signal : int
        The signal that ended it; 0: none did.
    header_files : list of Path
        Parquet files, more than one where a file would have more than 2^31 rows.
    """

    counts: dict[str, Any]
    signal: int = 0
    header_files: list[Path] = field(default_factory=list)

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
        dropped = self.counts.get("dropped_by_probe", self.counts["dropped"])
        return not (any(self.counts.get(name) for name in LOSSES) or any(dropped.values()))
