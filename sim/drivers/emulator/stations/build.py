# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The stack and what runs on it, compiled; lwIP is Debian's source package, fetched into build/ and never committed."""

import hashlib
import shutil
import subprocess
import sys
import tarfile
from functools import cache
from pathlib import Path

from liteprobe.host.base.folders import build_folder
from liteprobe.sim.drivers.tools import debian

HERE = Path(__file__).resolve().parent
PACKAGE = "lwip"
LWIP = build_folder() / "corpora" / PACKAGE
LIBRARIES = build_folder() / "stations"
FLAGS = ("-std=c11", "-O2", "-fPIC", "-shared", "-Wl,-Bsymbolic", "-Wall", "-Wextra", "-Werror")

def take(tar: tarfile.TarFile, folder: Path) -> None:
    """Take lwIP's sources out of its archive."""
    for member in tar:
        path = member.name.partition("/")[2]
        if member.isfile() and path.startswith("src/") and path.endswith((".c", ".h")):
            file = tar.extractfile(member)
            assert file is not None
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(file.read())

def lacking() -> str:
    """Return why stations can't be compiled on this machine; "": they can. Fetches lwIP if need be."""
    if not shutil.which("gcc"):
        return "no gcc: install the package gcc"
    try:
        debian.source(PACKAGE, LWIP, take)
    except (RuntimeError, OSError, ValueError, subprocess.CalledProcessError) as error:
        return f"the source package {PACKAGE} can't be fetched: {error}"
    return ""

@cache
def library() -> Path:
    """Return the library of a station, compiled anew when its sources have changed.

    Raises RuntimeError with what is lacking, or what the compiler says.
    """
    reason = lacking()
    if reason:
        raise RuntimeError(reason)
    own = sorted([*HERE.glob("*.[ch]"), *HERE.glob("arch/*.h")])
    core = LWIP / "src" / "core"
    stack = [*sorted(core.glob("*.c")), *sorted(core.glob("ipv4/*.c")), LWIP / "src" / "netif" / "ethernet.c"]
    state = " ".join(FLAGS).encode() + b"".join(path.read_bytes() for path in (*own, *stack))
    found = LIBRARIES / f"{hashlib.sha256(state).hexdigest()[:16]}.so"
    if not found.exists():
        LIBRARIES.mkdir(parents=True, exist_ok=True)
        part = found.with_suffix(f".part{id(own)}")
        units = [*(path for path in own if path.suffix == ".c"), *stack]
        command = ["gcc", *FLAGS, f"-I{HERE}", "-isystem", str(LWIP / "src" / "include"), "-o", str(part), *map(str, units)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"gcc failed:\n{done.stderr[-3000:]}")
        part.replace(found)
    return found

def main() -> int:
    """Print the library of a station, or what is lacking."""
    try:
        print(library())
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0

if __name__ == "__main__":
    sys.exit(main())
