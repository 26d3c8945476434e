# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Python, packages, compilers and tools."""

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata

from liteprobe.host import extras, folders
from liteprobe.host.doctor.check import Check, found, missing
from liteprobe.host.errors import ProbeError

OLDEST, NEWEST = (3, 11), (3, 14)  # That this is tested with; pyproject.toml and ./run have them, too.
SYSTEMS = ("Linux",)
COMPILERS = {"g++": "the simulated probe", "cc": "the servo (clock discipline)"}
TOOLS_PROGRAM = "liteprobe.soc.build.toolchain"
LOADER = "openFPGALoader"
TIMEOUT_S = 60.0


def python(version: Sequence[int] = sys.version_info[:3]) -> Check:
    """Look at Python's version, and at the system."""
    said = f"{'.'.join(map(str, version[:3]))}, {sys.executable}"
    if not OLDEST <= tuple(version[:2]) <= NEWEST:
        wanted = " to ".join(".".join(map(str, ends)) for ends in (OLDEST, NEWEST))
        return missing(
            "Python", said, f"install Python {wanted}, and LiteProbe into an environment of it", is_needed=True
        )
    if platform.system() not in SYSTEMS:
        return found("Python", f"{said} ({platform.system()}: host only, see docs/install.md)")
    return found("Python", said)


def packages() -> Check:
    """Look for the packages that each command needs."""
    lacking = [name for module, name in extras.NEEDED.items() if not extras.is_installed(module)]
    if lacking:
        advice = extras.install(*lacking)
        return missing("packages of the host", f"without {', '.join(lacking)}", advice, is_needed=True)
    where = "a clone" if folders.is_clone() else "installed"
    return found("packages of the host", f"liteprobe {metadata.version('liteprobe')}, {where}: {folders.ROOT}")


def optional() -> list[Check]:
    """Look for the packages of each extra."""
    checks = []
    for extra in extras.EXTRAS:
        lacking = extras.lacking(extra)
        name = f"extra {extra}"
        if lacking:
            checks.append(missing(name, f"without {', '.join(lacking)}", extras.command(extra)))
        else:
            checks.append(found(name, ", ".join(extras.EXTRAS[extra])))
    return checks


def build_folder() -> Check:
    """Look whether what is built can be kept."""
    try:
        return found("folder of builds", str(folders.build_folder()))
    except ProbeError as error:
        return missing("folder of builds", str(error), f"export {folders.VARIABLE}=FOLDER")


def compilers() -> list[Check]:
    """Look for C and C++ compilers."""
    checks = []
    for name, purpose in COMPILERS.items():
        path = os.environ.get("CC") if name == "cc" and "CC" in os.environ else shutil.which(name)
        if path:
            checks.append(found(name, f"{path}, for {purpose}"))
        else:
            checks.append(
                missing(name, f"{purpose} is compiled here", f"apt-get install {'gcc' if name == 'cc' else name}")
            )
    return checks


def tools() -> list[Check]:
    """Look for what makes and loads bitstreams, which the gateware's own program knows."""
    command = [sys.executable, "-m", TOOLS_PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    if done.returncode:
        said = f"{TOOLS_PROGRAM} failed: {done.stderr.strip()[-200:]}"
        return [missing("tools", said, "install LiteProbe again, whole")]
    paths: dict[str, str | None] = json.loads(done.stdout)
    return [tool(name, path) for name, path in paths.items()]


def tool(name: str, path: str | None) -> Check:
    """Look at a tool that is at ``path``; None: it isn't here."""
    if path is None:
        advice = f"install it on PATH, or type  {extras.command('build')}"
        return missing(name, "neither on PATH nor in Python's environment", advice)
    if name == LOADER:
        said = subprocess.run(
            [path, "--Version"], capture_output=True, text=True, check=False, timeout=TIMEOUT_S
        ).stderr
        if "shared libraries" in said:
            return missing(name, f"{path} can't start: {said.strip()[-200:]}", "apt-get install libftdi1-2")
    return found(name, path)
