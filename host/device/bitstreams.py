# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Finds the bitstreams that were released for boards, with their register maps: ``liteprobe-bitstreams``, or a folder of them.

``./run release`` makes both. A file is used only as it was released: by its length and its SHA-256.
"""

import hashlib
import importlib.util
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from liteprobe.cores.formats import PRESETS
from liteprobe.host.base import extras
from liteprobe.host.base.errors import ProbeError, UsageError

PACKAGE, MODULE = "liteprobe-bitstreams", "liteprobe_bitstreams"
VARIABLE = "LITEPROBE_BITSTREAMS"
INDEX, BIT, MAP, REPORT = "index.json", "liteprobe.bit", "csr.json", "report.json"
FORMAT = 1  # Of the index.
ON = "liteprobe on "  # What a probe calls itself begins with it, then comes the board.


@dataclass(frozen=True)
class Bitstream:
    """Describes a bitstream that was released.

    Attributes
    ----------
    board, preset : str
    also : tuple of str, other names of boards that it is for, too.
    cable : str, JTAG cable of the board, by openFPGALoader's name.
    what : str, what is built in, in words.
    map_hash : int, of its register map, as the probe reads it.
    folder : Path, of its files.
    files : mapping of str to (int, str), length in bytes and SHA-256 of each.
    """

    board: str
    preset: str
    also: tuple[str, ...]
    cable: str
    what: str
    map_hash: int
    folder: Path
    files: dict[str, tuple[int, str]]

    @property
    def bit(self) -> Path:
        """The bitstream itself."""
        return self.folder / BIT

    @property
    def map_file(self) -> Path:
        """The register map."""
        return self.folder / MAP

    @property
    def target(self) -> dict[str, Any]:
        """Return what must be known of the board, as ``soc/build/load.py`` has it; of a bitstream that was checked."""
        facts: dict[str, Any] = json.loads((self.folder / REPORT).read_text(encoding="utf-8"))["target"]
        return facts

    def check(self) -> None:
        """Raise ProbeError, naming the file, unless each is as it was released."""
        for name, (length, digest) in self.files.items():
            path = self.folder / name
            try:
                octets = path.read_bytes()
            except OSError as error:
                raise ProbeError(f"{path} can't be read ({error.strerror}): {again()}") from None
            if len(octets) != length:
                raise ProbeError(f"{path} has {len(octets)} bytes, and was released with {length}: {again()}")
            if hashlib.sha256(octets).hexdigest() != digest:
                raise ProbeError(f"{path} is not as it was released, by its SHA-256: {again()}")


@dataclass(frozen=True)
class Release:
    """Holds the bitstreams of a release: where they lie, of which version, and each of them in the order of the release."""

    folder: Path
    version: str
    bitstreams: tuple[Bitstream, ...]

    def of_board(self, board: str) -> list[Bitstream]:
        """Return the bitstreams for a board, by any of its names."""
        return [one for one in self.bitstreams if board in (one.board, *one.also)]

    def find(self, board: str, preset: str) -> Bitstream:
        """Return the bitstream of a preset for a board; UsageError, with those there are, where there is none."""
        ours = self.of_board(board)
        if not ours:
            boards = ", ".join(dict.fromkeys(one.board for one in self.bitstreams))
            raise UsageError(
                f"{self.folder} has no bitstream for {board} (it has {boards}): liteprobe build {board} --load"
            )
        found = [one for one in ours if one.preset == preset]
        if not found:
            there = ", ".join(one.preset for one in ours)
            raise UsageError(
                f"{self.folder} has no preset {preset} for {board}, it has {there}: give one of them, or build it:  "
                f"liteprobe build {board} --load --preset {preset}"
            )
        return found[0]

    def check_version(self) -> None:
        """Raise ProbeError where it is not of this version of LiteProbe: this host may not know what is in them, or they not it."""
        ours = metadata.version("liteprobe")
        if self.version == ours:
            return
        is_older = numbers(self.version) < numbers(ours)
        one, other = (PACKAGE, "liteprobe") if is_older else ("liteprobe", PACKAGE)
        theirs, newer = (self.version, ours) if is_older else (ours, self.version)
        raise ProbeError(
            f"{one} {theirs} is older than {other} {newer}: type  {extras.install('--upgrade', f'{one}=={newer}')}"
        )


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, so that versions can be compared; parts that are not numbers are left out."""
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def again() -> str:
    """Return what to do where a file of a release is damaged."""
    return f"get the release again:  {extras.install('--force-reinstall', PACKAGE)}"


def place() -> Path | None:
    """Return the folder of a release: what LITEPROBE_BITSTREAMS names, else that of the installed package; None: there is none."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    spec = importlib.util.find_spec(MODULE)
    return Path(spec.origin).parent if spec and spec.origin else None


def release() -> Release | None:
    """Return the release that is at hand; None: there is none. Raises ProbeError where it can't be understood."""
    folder = place()
    if folder is None:
        return None
    index = folder / INDEX
    try:
        loaded: dict[str, Any] = json.loads(index.read_text(encoding="utf-8"))
        if loaded["format"] != FORMAT:
            raise ProbeError(
                f"{index} has format {loaded['format']}, and this liteprobe reads {FORMAT}: upgrade the older of both"
            )
        return Release(folder, loaded["liteprobe"], tuple(_bitstream(folder, entry) for entry in loaded["bitstreams"]))
    except OSError as error:
        raise ProbeError(
            f"{index} can't be read ({error.strerror}): {VARIABLE} names a folder of './run release', or {again()}"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ProbeError(f"{index} is not the list of a release: {again()}") from None


def needed() -> Release:
    """Return the release that is at hand, of this version; ProbeError with what to type where there is none."""
    found = release()
    if found is None:
        raise ProbeError(
            f"no released bitstreams are installed: type  {extras.install(PACKAGE)}  or set {VARIABLE}=FOLDER of a release, "
            "or build one with 'liteprobe build BOARD --load'"
        )
    found.check_version()
    return found


def maps() -> list[Path]:
    """Return the register maps of the release at hand; none where there is no release, or it can't be read."""
    try:
        found = release()
    except ProbeError:
        return []
    return [one.map_file for one in found.bitstreams if one.map_file.is_file()] if found else []


def how_to_get(identifier: str, presets: Iterable[str], loaded: str = "") -> str:
    """Return what to type for a probe of one of ``presets``: a line that loads it, where the release at hand has it for the board.

    ``identifier``: what the probe calls itself, by which its board is known.
    ``loaded``: the preset that it has, which won't do.
    """
    wanted: Sequence[str] = [name for name in presets if name != loaded]
    board = identifier.removeprefix(ON).strip() if identifier.startswith(ON) else ""
    try:
        found = release()
    except ProbeError:
        found = None
    there = [one.preset for one in found.of_board(board)] if found and board else []
    ready = [name for name in wanted if name in there]
    if ready:
        return f"load one that has it:  {'  or  '.join(f'liteprobe load {board} {name}' for name in ready)}"
    return f"build and load one with --preset {' or '.join(wanted)}"


# # #


def _bitstream(folder: Path, entry: dict[str, Any]) -> Bitstream:
    if entry["preset"] not in PRESETS:
        raise ValueError(entry["preset"])
    here = folder / entry["board"] / entry["preset"]
    files = {str(name): (int(one["bytes"]), str(one["sha256"])) for name, one in entry["files"].items()}
    names = {*files, str(entry["board"])}
    if not {BIT, MAP, REPORT} <= names or any("/" in name or "\\" in name or name == ".." for name in names):
        raise ValueError("a name of a file")
    return Bitstream(
        str(entry["board"]), str(entry["preset"]), tuple(entry["also"]), str(entry["cable"]), str(entry["what"]),
        int(entry["map_hash"]), here, files,
    )  # fmt: skip
