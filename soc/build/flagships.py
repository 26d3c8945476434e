# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Lists the probes that are built for people to load: board, preset, options, and the seed of placement that meets timing.

A release has them all, budgets hold their areas, and a build takes the seed of the one that it is. Stands alone: programs of
the house take it, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from liteprobe.boards import board
from liteprobe.cores.formats import DEFAULT_PRESET
from liteprobe.soc.build.arguments import config_of, parse
from liteprobe.soc.config import ProbeConfig


@dataclass(frozen=True)
class Flagship:
    """Describes a probe that is built for people to load.

    Attributes
    ----------
    board, preset : str
    options : str, of ``liteprobe build``, besides.
    seed : int, the first to try.
    """

    board: str
    preset: str
    options: str = ""
    seed: int = 1

    def __str__(self) -> str:
        return f"{self.board}:{self.preset}"

    @property
    def arguments(self) -> list[str]:
        """Return what ``liteprobe build`` takes for it."""
        return [self.board, "--preset", self.preset, *self.options.split()]

    @property
    def config(self) -> ProbeConfig:
        """Return what is built in."""
        return config_of(parse(self.arguments), board(self.board))


_ONE_WAY = "--directions 1 --no-cpu --no-discipline --no-aqm --no-spill --trace-entries 0"
#: The first of a board is the one that it gets where nobody says which.
FLAGSHIPS = (
    Flagship("colorlight_5a_75b", "train", seed=3),
    Flagship("colorlight_5a_75b", "monitor"),
    Flagship("colorlight_5a_75b", "replay", "--no-discipline"),
    Flagship("colorlight_5a_75b", "emulator", _ONE_WAY),
    Flagship("colorlight_5a_75b_v7_0", "train", seed=2),
    Flagship("colorlight_5a_75e", "train"),
    Flagship("colorlight_5a_75e_v6_0", "train"),
    Flagship("colorlight_i5", "train"),
    Flagship("colorlight_i9", "tester", seed=2),
    Flagship("colorlight_i9", "generator"),
    Flagship("colorlight_i9", "replay", "--no-cpu"),
    Flagship("colorlight_i9", "emulator", "--cpu --no-aqm --no-spill --trace-entries 0", seed=3),
    Flagship("versa_ecp5", "train"),
)


def out_folder(name: str, preset: str) -> Path:
    """Return the folder of a build, below ``build``, where nobody names another one."""
    return Path("build") / (name if preset == DEFAULT_PRESET else f"{name}_{preset}")


def chosen(words: list[str]) -> list[Flagship]:
    """Return the flagships that ``BOARD`` or ``BOARD:PRESET`` name, in the order of the table; all where none is named.

    Raises ValueError, with those there are, where a word names none.
    """
    for word in words:
        if not any(word in (one.board, str(one)) for one in FLAGSHIPS):
            raise ValueError(f"there is no flagship {word}: give BOARD or BOARD:PRESET of {', '.join(map(str, FLAGSHIPS))}")
    return [one for one in FLAGSHIPS if not words or one.board in words or str(one) in words]


def first_seed(name: str, config: ProbeConfig) -> int:
    """Return the seed of the flagship that a configuration of a board is, by preset, processor and discipline; else 1."""
    for one in FLAGSHIPS:
        if (one.board, one.preset) == (name, config.preset):
            theirs = one.config
            if (theirs.with_cpu, theirs.with_discipline) == (config.with_cpu, config.with_discipline):
                return one.seed
    return 1
