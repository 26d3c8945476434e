# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Keeps what the vendor had put into a board's flash, before anything else is written there."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from liteprobe.soc.build.toolchain import BuildError

DIGITS = 12 # Of the hash, in the name.
WITHOUT = "--no-backup goes without" # What else a user can do before a write.


def folder() -> Path:
    """Return where backups are kept: in the user's data folder."""
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "liteprobe" / "flash"


def kept(name: str) -> list[Path]:
    """Return the backups of a board that were made before."""
    return sorted(folder().glob(f"{name}-*.bin"))


def back_up(target: Any, dump: Callable[[Path], None], file: Path | None = None, advice: str = WITHOUT) -> Path:
    """Read the whole flash of ``target`` by ``dump`` into ``file``, or into the folder of backups; return the file.

    Without ``file`` a board that was backed up before is not read again. Raises BuildError, which ends with ``advice``, when
    the flash can't be read or kept, and exit code 2 when ``file`` is there already.
    """
    if file is None and (before := kept(target.name)):
        print(f"the flash of a {target.name} was backed up before: {before[-1]} (--backup FILE makes another)", file=sys.stderr)
        return before[-1]
    if file and file.exists():
        raise BuildError(f"{file} is there already, and is not replaced: give --backup another name", 2)
    print(f"reading the {target.flash_bytes >> 20} MB of flash for a backup, which may take some minutes", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "flash.bin"
        dump(copy)
        octets = copy.read_bytes() if copy.is_file() else b""
        if len(octets) != target.flash_bytes:
            raise BuildError(f"read {len(octets)} of {target.flash_bytes} bytes of flash: nothing was written; {advice}")
        if len(set(octets)) == 1:
            raise BuildError(f"all that was read of the flash is {octets[0]:#04x}: it may be blank; nothing was written; {advice}")
        file = file or folder() / f"{target.name}-{hashlib.sha256(octets).hexdigest()[:DIGITS]}.bin"
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            part = file.with_name(file.name + ".part")
            shutil.copyfile(copy, part)
            part.replace(file) # At once: half a backup would pass for one.
        except OSError as error:
            raise BuildError(f"can't keep the backup in {file} ({error.strerror}): give --backup FILE a place for it; {advice}") from None
    print(f"backup of the flash: {file}; 'liteprobe build {target.name} --restore {file}' writes it back", file=sys.stderr)
    return file
