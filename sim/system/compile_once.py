# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Runs a compiler for make, but compiles Verilator's own sources once for all models and simulated probes.

They are two thirds of the work of compiling a small model, and the same in each. Usage, in place of ccache (OBJCACHE):
``compile_once.py FOLDER COMPILER ARGUMENT...``; objects are kept in FOLDER.
"""

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path


def whole(target: Path, make: Callable[[Path], None]) -> Path:
    """Return ``target``, which ``make`` makes at another path first when it isn't there: whole, or not at all."""
    if not target.exists():
        new = target.with_name(f"new-{target.name}")  # What one who was interrupted has left is taken away.
        shutil.rmtree(new, ignore_errors=True)
        new.unlink(missing_ok=True)
        make(new)
        new.rename(target)
    return target


def kept_object(
    folder: Path, stem: str, texts: Iterable[str | bytes], make: Callable[[Path], None], suffix: str = ".o"
) -> Path:
    """Return the file in ``folder`` that is made of ``texts``, made by the first who asks for it.

    Parameters
    ----------
    stem : what its name begins with.
    make : makes it at a path; may raise.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = b"\0".join(text if isinstance(text, bytes) else text.encode() for text in texts)
    target = folder / f"{stem}-{sha256(text).hexdigest()[:16]}{suffix}"
    with target.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Stands alone (output.in_turn): it is run without packages.
        return whole(target, make)


def is_of_verilator(source: Path) -> bool:
    """Return whether a source belongs to Verilator and to no model."""
    return source.is_absolute() and source.match("verilator/include/verilated*.cpp")


def command_for(command: list[str], source: Path) -> list[str]:
    """Return ``command``, whose first word is the compiler, with what a source of Verilator depends on, and no more."""
    include = source.parent
    kept = [word for word in command[1:] if word.startswith(("-std=", "-DVL_", "-fcoroutines", "-fPIC", "-fvis"))]
    options = ["-O1", "-w", *sorted(kept), f"-I{include}", f"-I{include / 'vltstd'}"]
    return [command[0], *options, "-c", str(source), "-o"]


def object_of(folder: Path, command: list[str], source: Path, run: Callable[[list[str]], None]) -> Path:
    """Return the object of a source of Verilator, of those in ``folder`` or compiled by ``run``."""
    compile_ = command_for(command, source)
    compiler = subprocess.run([command[0], "--version"], check=True, capture_output=True, text=True).stdout
    around = [path.read_bytes() for path in sorted(source.parent.glob("verilated*"))]
    return kept_object(folder, source.stem, [compiler, *compile_, *around], lambda path: run([*compile_, str(path)]))


def main() -> int:
    """Run the compiler as make asks, or take what it would give from the folder; return the exit code."""
    folder, command = Path(sys.argv[1]), sys.argv[2:]
    source = Path(command[-1])
    if command[-4:-2] != ["-c", "-o"] or not is_of_verilator(source):
        return subprocess.run(command, check=False).returncode
    try:
        kept = object_of(folder, command, source, lambda words: subprocess.run(words, check=True) and None)
    except subprocess.CalledProcessError as error:
        return error.returncode
    shutil.copyfile(kept, command[-2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
