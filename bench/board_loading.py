# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures how long it takes from two wheels to a loaded board, at a desk whose JTAG cable is simulated.

The wheels are that of the host, and that of the release in build/release (``./run release``). Without one there, it is of all
flagships with bitstreams of the usual length that nothing was built for. Nothing of the gateware, and no tool chain, is
installed, and all runs in a folder without the repository.
"""

import json
import os
import resource
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import make_release
from first_install import distribution

from liteprobe.host.device.bitstreams import BIT, INDEX, MODULE, REPORT
from liteprobe.sim.drivers.tools.fake_loaders import DONE, FOUND_5G_45, FOUND_25, FOUND_45, Machine
from liteprobe.sim.drivers.tools.figures import ROOT, Figure, note, row
from liteprobe.sim.drivers.tools.releases import leave_build
from liteprobe.soc.build.flagships import FLAGSHIPS, Flagship

SEED = 41
OCTETS = {"25": 493_721, "45": 948_745}  # Of the emulators of a 5A-75B and of an i9, as ecppack made them.
JTAG_HZ = 6e6  # openFPGALoader's own.
FROM_PIP_S, AGAIN_S = 10, 3


@row("boards")
def test_load(is_full: bool) -> Iterator[Figure]:
    """From ``pip install`` of two files to a loaded board, then each flagship; ``--full``: without pip's cache."""
    with TemporaryDirectory(prefix="liteprobe loading ") as place:
        folder = Path(place)
        released, wheel = release(folder)
        here = [one for one in FLAGSHIPS if bit_of(released, one).is_file()]
        note(f"not in the release: {', '.join(str(one) for one in FLAGSHIPS if one not in here) or 'nothing'}")
        yield Figure("wheel_of_bitstreams", wheel.stat().st_size / 1e6, "MB", 20)
        host = distribution()
        machine = Machine(folder)
        usual = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LITEPROBE"))}
        usual |= {"PATH": f"{machine.bin}:/usr/bin:/bin", "XDG_DATA_HOME": str(machine.data), "HOME": str(folder)}
        python = folder / "env" / "bin" / "python"
        started = time.monotonic()
        subprocess.run([sys._base_executable, "-m", "venv", str(folder / "env")], check=True, env=usual)  # type: ignore[attr-defined]
        note(f"left out: {time.monotonic() - started:.1f} s for an empty environment, and what JTAG itself takes:")
        note(
            *(
                f"  {8 * octets / JTAG_HZ:.1f} s for {octets} octets at {JTAG_HZ / 1e6:g} MHz"
                for octets in OCTETS.values()
            )
        )
        options = ["--no-cache-dir"] if is_full else []
        started, cpu_before_s = time.monotonic(), cpu_s()
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *options]
        subprocess.run([*command, str(host), str(wheel)], check=True, env=usual, stderr=subprocess.DEVNULL)
        installed_s = time.monotonic() - started
        yield Figure("cpu_of_install", cpu_s() - cpu_before_s, "s", FROM_PIP_S)
        right, slowest_s = 0, 0.0
        for number, one in enumerate(here):
            began = time.monotonic()
            right += load(machine, python, bit_of(released, one), usual)
            taken_s = time.monotonic() - began
            if number == 0:
                yield Figure("install_of_two_wheels", installed_s, "s", FROM_PIP_S)
                yield Figure("load_from_pip_alone", installed_s + taken_s, "s", FROM_PIP_S)
            slowest_s = max(slowest_s, taken_s)
        yield Figure("load_again_slowest", slowest_s, "s", AGAIN_S)
        yield Figure("flagships_loaded_as_released", right, "bitstreams", len(here), is_least=True)


def cpu_s() -> float:
    """Return the CPU time of processes that were run and have ended (s): a busy machine takes longer by the clock."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def release(folder: Path) -> tuple[Path, Path]:
    """Return the folder of a release and its wheel: that in build/release, else one of stand-ins that can't be compressed."""
    made = ROOT / "build" / "release"
    if (made / INDEX).is_file():
        (wheel,) = (ROOT / "build" / "dist").glob(f"{MODULE}-*.whl")
        with zipfile.ZipFile(wheel) as packed:
            assert packed.read(f"{MODULE}/{INDEX}") == (made / INDEX).read_bytes(), (
                f"{wheel} is not of {made}: make both again"
            )
        note(f"bitstreams as they were routed, of {made}")
        return made, wheel
    note("bitstreams that nothing was built for: './run release' makes real ones")
    random = Random(SEED)
    for one in FLAGSHIPS:
        leave_build(folder / "built", str(one), noise=random.randbytes(OCTETS[kind(one.board)]))
    made = folder / "dist" / "release"
    assert make_release.main(["--as-built", str(folder / "built"), "--out", str(made)]) == 0
    (wheel,) = (folder / "dist").glob("*.whl")
    return made, wheel


def bit_of(released: Path, one: Flagship) -> Path:
    """Return where the bitstream of a flagship lies in a release."""
    return released.joinpath(one.board, one.preset, BIT)


def kind(board: str) -> str:
    """Return the size of the FPGA of a board."""
    return "45" if board in ("colorlight_i9", "versa_ecp5") else "25"


def load(machine: Machine, python: Path, bit: Path, environment: dict[str, str]) -> bool:
    """Load ``BOARD/PRESET/`` at the desk where its board is; return whether the loader was given what was released."""
    board, preset = bit.parts[-3:-1]
    found = {"25": FOUND_25, "45": FOUND_5G_45 if board == "versa_ecp5" else FOUND_45}[kind(board)]
    [package] = python.parent.parent.glob(f"lib/python3*/site-packages/{MODULE}")
    file = package / board / preset / BIT
    asked = len(machine.asked)
    machine.has("openFPGALoader", None, detect=found, **{str(file): DONE})
    command = [str(python.parent / "liteprobe"), "load", board, preset]
    done = subprocess.run(command, cwd=machine.bin, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        note(f"{board}:{preset}: {done.returncode}, {done.stderr[-400:]!r}")
        return False
    report = json.loads((bit.parent / REPORT).read_text(encoding="utf-8"))
    given = [words[-1] for words in machine.asked[asked:]]
    return (
        given == ["--detect", str(file)]
        and make_release.digest(file) == make_release.digest(bit) == report["bitstream_sha256"]
    )
