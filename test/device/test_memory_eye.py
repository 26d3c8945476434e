# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The eye of a SDRAM: what a probe says of it, and what a network does about it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from liteprobe.cores.formats.probe import EyeState
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.device.eye import EYE_REGISTERS, MemoryEye, memory_eye
from liteprobe.host.probe import Probe
from liteprobe.host.traffic.network import Direction, Network
from liteprobe.sim.drivers.system.fake_link import fake_emulator


def registers(*values: int) -> Any:
    """Return registers of a probe with an eye; without values, of one whose phase is fixed."""
    found = dict(zip((f"sdram_eye_{name}" for name in EYE_REGISTERS), values, strict=False))
    return SimpleNamespace(names=list(found), read_many=lambda names: {name: found[name] for name in names})


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((1, 14, 3, 0, 200, 125_000), "2.8 ns wide at 125 MHz; 3 steps of 200 ps moved since, 0 readings wrong"),
        ((2, 0, 0, 0, 200, 78_125), "none found at the fast clock, so the memory runs at 78.125 MHz"),
        ((3, 3, 0, 1, 200, 78_125), "none found, and at 78.125 MHz it reads wrong words, too"),
        ((0, 0, 0, 0, 200, 125_000), "being looked for"),
    ],
)
def test_the_eye_is_told_in_words(values: tuple[int, ...], text: str) -> None:
    eye = memory_eye(registers(*values))
    assert eye and eye.text == text and eye.width_ps == values[1] * 200


def test_a_probe_whose_phase_is_fixed_says_nothing() -> None:
    assert memory_eye(registers()) is None


@pytest.mark.parametrize("state", [EyeState.SLOW, EyeState.FAILED])
def test_a_network_has_a_note_of_a_slow_memory_and_isnt_started_on_one_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: EyeState
) -> None:
    found = MemoryEye(state, 0, 200, 78_125, 0, 0)
    monkeypatch.setattr("liteprobe.host.run.emulate.memory_eye", lambda _: found)
    monkeypatch.setattr("liteprobe.host.probe.memory_eye", lambda _: found)
    with Probe(fake_emulator(tmp_path)[1]) as probe:
        assert probe.info()["sdram_eye"] == found.text
        if state == EyeState.FAILED:
            with pytest.raises(ProbeError, match="isn't read right .* try another board"):
                probe.emulate(Network(Direction()))
            return
        with probe.emulate(Network(Direction())) as emulation:
            assert any("the eye of the SDRAM: none found" in note for note in emulation.notes)
