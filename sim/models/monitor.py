# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Truth for a port that monitors: what becomes of each frame, up to its record.

Source: docs/design/monitor.md, docs/design/unified-header.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from liteprobe.cores.formats import CHANNELS, DAMAGE, UnifiedFlag
from liteprobe.sim.models.sample import SamplerModel, packet_hash
from liteprobe.sim.models.toeplitz import flow_hash
from liteprobe.sim.models.unified import UnifiedHeader, unified_header

TABLE_ENTRIES = 128


@dataclass(frozen=True)
class Answer:
    """What a filter says of a frame; ``channel`` is None where nothing names one."""

    matched: bool
    passed: bool
    rule: int
    channel: int | None


@dataclass(frozen=True)
class Settings:
    """Of a port, by the names of the gateware."""

    snap_length: int = 0xFFFF
    keep_headers: bool = False
    keep_damaged: bool = False
    keep_own: bool = False
    enable: bool = True
    sample_shift: int = 0
    sample_by_hash: bool = False
    sample_seed: int = 0
    table: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What becomes of a frame, where there is room for all."""

    header: UnifiedHeader
    answer: Answer
    is_damaged: bool
    is_own: bool
    is_kept: bool
    octets: bytes
    """What is kept of the frame, filled to whole words."""


@dataclass
class MonitorModel:
    """A port: give it each frame that is classified, in order.

    Parameters
    ----------
    port : its number.
    answer : the filter.
    settings : of the port.
    mac : of the probe, six octets; None: the port knows none.
    with_hash : it hashes frames; else hashes are 0, and all goes to channel 0 but what a rule sends elsewhere.
    """

    port: int
    answer: Callable[[UnifiedHeader], Answer]
    settings: Settings
    mac: bytes | None = None
    with_hash: bool = True

    def __post_init__(self) -> None:
        """Start a count of samples."""
        self.sampler = SamplerModel(self.settings.sample_shift, self.settings.sample_by_hash and self.with_hash)

    def frame(self, octets: bytes, stamp: int, verdict: UnifiedFlag = UnifiedFlag.NONE) -> Outcome:
        """Return what becomes of a frame (without FCS)."""
        settings = self.settings
        header = unified_header(octets, self.port, stamp, verdict)
        header.hash = flow_hash(header) if self.with_hash else 0
        answer = self.answer(header)
        is_damaged = bool(header.flags & int(DAMAGE)) and not settings.keep_damaged
        is_own = len(octets) >= 14 and octets[:6] == self.mac and not settings.keep_own
        is_kept = answer.passed and not is_damaged and not is_own and settings.enable
        if is_kept:
            is_kept = self.sampler.is_chosen(packet_hash(header, header.hash, settings.sample_seed))
        header.snap_length = min(len(octets), settings.snap_length)
        header.rule = answer.rule
        entry = header.hash % TABLE_ENTRIES
        table = settings.table if self.with_hash else {}
        header.channel = table.get(entry, entry % CHANNELS) if answer.channel is None else answer.channel
        for flag, is_set in [
            (UnifiedFlag.MATCHED, answer.matched),
            (UnifiedFlag.SAMPLED, settings.sample_shift > 0),
            (UnifiedFlag.HEADER, settings.keep_headers),
        ]:
            header.flags |= flag if is_set else UnifiedFlag.NONE
        kept = octets[: header.snap_length]
        return Outcome(
            header,
            answer,
            is_damaged and answer.passed and settings.enable,
            is_own and not is_damaged and answer.passed and settings.enable,
            is_kept,
            kept + bytes(-len(kept) % 4),
        )
