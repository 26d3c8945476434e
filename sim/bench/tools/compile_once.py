# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Runs a compiler for make, but compiles Verilator's own sources once for all models.

They are two thirds of the work of compiling a small model, and the same in each. Usage, in place of ccache (OBJCACHE):
``compile_once.py FOLDER COMPILER ARGUMENT...``; objects are kept in FOLDER.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory


def shared_source(command: list[str]) -> Path | None:
    """Return the source that ``command`` compiles, if it belongs to Verilator and to no model."""
    source = Path(command[-1])
    is_compilation = command[-4:-2] == ["-c", "-o"]
    return (
        source if is_compilation and source.is_absolute() and source.match("verilator/include/verilated*.cpp") else None
    )


def key_of(command: list[str], source: Path) -> str:
    """Return a name for the object: it depends on the compiler, the whole command, and the sources around it."""
    compiler = subprocess.run([command[0], "--version"], check=True, capture_output=True, text=True).stdout
    texts = [path.read_bytes() for path in sorted(source.parent.glob("verilated*"))]
    return sha256(b"\0".join([compiler.encode(), *(word.encode() for word in command), *texts])).hexdigest()[:16]


def compile_once(folder: Path, command: list[str]) -> int:
    """Run ``command``, or take its object from ``folder``; return the exit code."""
    source = shared_source(command)
    if source is None:
        return subprocess.run(command, check=False).returncode
    folder.mkdir(parents=True, exist_ok=True)
    wanted = Path(command[-2])
    kept = folder / f"{source.stem}-{key_of(command, source)}.o"
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            code = subprocess.run(command, check=False).returncode
            if code:
                return code
            with TemporaryDirectory(dir=folder) as temporary:  # It is there whole, or not at all.
                os.replace(shutil.copyfile(wanted, Path(temporary) / "object"), kept)
            return 0
    shutil.copyfile(kept, wanted)
    return 0


if __name__ == "__main__":
    sys.exit(compile_once(Path(sys.argv[1]), sys.argv[2:]))
