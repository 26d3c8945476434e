# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Makes a wheel for this platform with simulated probes in it: the first train then needs no compiler and no gateware.

It has the variants that the commands take by themselves (`VARIANTS`); any other one is built where it is asked for, as ever.
Usage: ``./run wheel [FOLDER]``; without a folder the wheel goes to build/dist.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from liteprobe.cores.formats import PRESETS
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.device.link.sim import EXECUTABLE, MAP, SimOptions, build

ROOT = Path(__file__).resolve().parent.parent
#: Each preset as ``sim://loopback?preset=...`` has it; ``sim://emulator``; ``cpu=0``, as on the page of the clock; in band.
VARIANTS = (
    *(SimOptions(preset=preset) for preset in PRESETS),
    SimOptions(preset="emulator", with_cpu=False),
    SimOptions(with_cpu=False),
    SimOptions(link="shared"),
)


def main() -> int:
    """Build the simulated probes and the wheel, and print the name of the wheel; return the exit code."""
    if len(sys.argv) > 2 or (sys.argv[1:2] and sys.argv[1].startswith("-")):
        print("usage: ./run wheel [FOLDER]", file=sys.stderr)
        return 2
    folder = Path(sys.argv[1] if sys.argv[1:] else ROOT / "build" / "dist").absolute()
    try:
        with TemporaryDirectory(prefix="liteprobe-wheel-") as place:
            print(make(folder, Path(place)))
    except ProbeError as error:
        print(f"wheel: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def make(folder: Path, place: Path) -> Path:
    """Make the wheel in a folder by way of an empty place; raises ProbeError where it can't be built."""
    built = place / "built"
    for number, options in enumerate(VARIANTS, 1):
        print(f"wheel: simulated probe {number} of {len(VARIANTS)}: {options.variant}", file=sys.stderr, flush=True)
        (built / options.variant).mkdir(parents=True)
        for name in (EXECUTABLE, MAP):
            shutil.copy(build(options) / name, built / options.variant)
    source = place / "source"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("cores", "soc", "boards", "host", "sim", "firmware", "tools"):
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "run"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    done = subprocess.run(
        [*command, "--wheel-dir", str(place / "made"), str(source)],
        env={**os.environ, "LITEPROBE_BUILT": str(built)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ProbeError(f"the wheel can't be made: {done.stderr[-1000:]}")
    wheel = next((place / "made").glob("*.whl"))
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.move(wheel, folder / wheel.name))


if __name__ == "__main__":
    sys.exit(main())
