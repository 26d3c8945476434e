# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Which parts a probe is made of."""

from __future__ import annotations

from dataclasses import dataclass

from liteprobe.cores.formats import DEFAULT_PRESET, PRESETS, Part


@dataclass(frozen=True, kw_only=True)
class PartsConfig:
    """Chooses parts: those of a preset, and others beside or out of them.

    Parameters
    ----------
    preset : ``train`` sends trains and measures them; ``monitor`` sends nothing but management, and parses, filters,
        measures and captures what comes in (docs/design/monitor.md); ``tester`` sends trains and streams, and does all that a
        monitor does; ``generator`` sends trains and streams, and measures streams; ``replay`` sends trains and what the host
        streams to it, and does all that a monitor does; ``emulator`` joins two ports by an emulated network. ``PRESETS`` has the
        parts of each.
    with_streams : build in what sends many streams, where the preset has it (``generator``, ``tester``).
    with_replay : build in what sends traces that a host streams, beside what the preset has (``replay`` has it).
    with_sets : and what makes frames of configuration sets.
    with_hash : hash the frames that ports monitor, for channels by flow, samples by hash and the flow hash of records.
    """

    preset: str = DEFAULT_PRESET
    with_streams: bool = True
    with_replay: bool = False
    with_sets: bool = True
    with_hash: bool = True

    @property
    def parts(self) -> Part:
        """Which parts are built in."""
        parts = PRESETS[self.preset]
        if self.with_replay:
            parts |= Part.REPLAY | Part.SETS
        left_out = Part.STREAMS * (not self.with_streams) | Part.SETS * (not self.with_sets)
        return parts & ~left_out

    @property
    def generates(self) -> bool:
        """Whether ports send trains."""
        return Part.GENERATE in self.parts

    @property
    def monitors(self) -> bool:
        """Whether ports have a monitor path, in the place of a receive path that keeps records of trains alone."""
        return Part.MONITOR in self.parts

    @property
    def measures(self) -> bool:
        """Whether ports measure streams and keep nothing, in the place of a receive path that keeps records."""
        return Part.MEASURE in self.parts

    @property
    def sends_streams(self) -> bool:
        """Whether ports send many streams; then meters count bit errors, and take TX stamps from fields."""
        return Part.STREAMS in self.parts

    @property
    def replays(self) -> bool:
        """Whether ports send what the host streams: traces, and configuration sets."""
        return Part.REPLAY in self.parts

    @property
    def makes_sets(self) -> bool:
        """Whether ports make frames of configuration sets."""
        return Part.SETS in self.parts

    @property
    def emulates(self) -> bool:
        """Whether ports are joined by an emulated network."""
        return Part.EMULATE in self.parts

    @property
    def leaves_hash_out(self) -> bool:
        """Whether ports monitor, and hash no frame."""
        return self.monitors and not self.with_hash

    @property
    def counts_rates(self) -> bool:
        """Whether rates are counted over short intervals; a probe that replays leaves their place to that."""
        return self.monitors and not self.replays
